/*
 * cli.c - runs the built command and looks at what it prints, where, and its exit code.
 */
#include "../command.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

#define out command_out
#define err command_err
#define run command_run

// Exit code 2, nothing on stdout, this message on stderr.
static void check_usage(const char *line, const char *message)
{
    int rc = run(line);
    ck_assert_msg(rc == 2, "tutti %s: exit code %d", line, rc);
    CHECK_STR(out, "");
    CHECK_HAS(err, message);
}

static const char *write_file(const char *name, const char *text)
{
    static char path[300];
    snprintf(path, sizeof(path), "%s/%s", test_folder(), name);
    command_write(name, text);
    return path;
}

// Enough of JSON to tell that brackets and quotes match.
static void check_json(const char *s)
{
    char stack[64];
    int depth = 0;
    bool quoted = false;
    for (; *s != '\0'; s++) {
        if (quoted) {
            s += *s == '\\';
            quoted = *s != '"';
        } else if (*s == '"') {
            quoted = true;
        } else if (*s == '{' || *s == '[') {
            CHECK(depth < 64);
            stack[depth++] = *s;
        } else if (*s == '}' || *s == ']') {
            CHECK(depth > 0 && stack[--depth] == (*s == '}' ? '{' : '['));
        }
    }
    CHECK(!quoted && depth == 0);
}

TEST(version_prints_what_is_in)
{
    CHECK_INT(run("version"), 0);
    CHECK(strncmp(out, tt_version_text(), strlen(tt_version_text())) == 0);
    CHECK_HAS(out, "\ncuda: ");
    CHECK_STR(err, "");
    CHECK_INT(run("--version"), 0);
    CHECK(strncmp(out, tt_version_text(), strlen(tt_version_text())) == 0);
    CHECK_INT(run("version --json"), 0);
    check_json(out);
    CHECK_HAS(out, "{\"tutti\": \"" TT_VERSION "\", \"arithmetic\": ");
}

TEST(help_shows_verbs_and_topics)
{
    CHECK_INT(run("help"), 0);
    for (const char *const *w = (const char *const[]){"devices", "kernels", "plan", "diff",
                                                      "version", "exit", "graph", NULL};
         *w != NULL; w++)
        CHECK_HAS(out, *w);
    CHECK_INT(run("--help"), 0);
    CHECK_HAS(out, "usage: tutti COMMAND");
    CHECK_INT(run(""), 2); // no verb: the overview, but not a success
    CHECK_HAS(out, "usage: tutti COMMAND");

    CHECK_INT(run("help plan"), 0);
    CHECK_HAS(out, "usage: tutti plan FILE [FLAGS]");
    CHECK_HAS(out, "--rows N");
    CHECK_INT(run("plan --help"), 0);
    CHECK_HAS(out, "usage: tutti plan FILE [FLAGS]");
    CHECK_INT(run("diff -h"), 0);
    CHECK_HAS(out, "usage: tutti diff A B [FLAGS]");
    CHECK_INT(run("help exit"), 0);
    CHECK_HAS(out, "2    wrong command line");
    CHECK_INT(run("help devices"), 0);
    CHECK_HAS(out, "cpu:0*2@512MiB");
    CHECK_HAS(out, "gpu:0*2@40%");
    CHECK_INT(run("help graph"), 0);
    CHECK_HAS(out, "tutti graph 1");
    CHECK_INT(run("help environment"), 0);
    CHECK_HAS(out, "TUTTI_ISA");
    CHECK_HAS(out, "TUTTI_CUDA_CHECK=1");
}

TEST(help_knows_the_sections_of_jobs)
{
    char alone[sizeof(out)];
    for (const char *const *w = (const char *const[]){"model", "data", "distribute", "init",
                                                      "checkpoint", "output", NULL};
         *w != NULL; w++) {
        char line[64];
        snprintf(line, sizeof(line), "help %s", *w);
        CHECK_INT(run(line), 0);
        memcpy(alone, out, sizeof(out));
        snprintf(line, sizeof(line), "help job %s", *w);
        CHECK_INT(run(line), 0);
        CHECK_STR(alone, out);
    }
    CHECK_INT(run("help train"), 0);
    CHECK_HAS(out, "usage: tutti train JOB");
    CHECK_HAS(out, "tutti help job train");
    CHECK_INT(run("help data show"), 0);
    CHECK_HAS(out, "usage: tutti data show JOB");
    check_usage("help distrbute", "unknown topic 'distrbute'; did you mean 'distribute'?");
}

TEST(help_explains_every_op)
{
    CHECK_INT(run("help op conv2d"), 0);
    CHECK_HAS(out, "conv2d: ");
    CHECK_HAS(out, "Attributes:");
    CHECK_HAS(out, "stride");
    CHECK_INT(run("help matmul"), 0);
    CHECK_HAS(out, "matmul: ");
    CHECK_INT(run("help ops"), 0);
    CHECK_HAS(out, "softmax");
    check_usage("help op matmull", "unknown op 'matmull'; did you mean 'matmul'?");
    check_usage("help dveices", "unknown topic 'dveices'; did you mean 'devices'?");
    check_usage("help zzzzzzzz", "unknown topic 'zzzzzzzz'");
    check_usage("help plan more", "unexpected argument 'more'");
}

TEST(bad_command_lines_say_what_is_wrong)
{
    check_usage("paln", "unknown command 'paln'; did you mean 'plan'?");
    check_usage("zzzzzzzz", "unknown command 'zzzzzzzz'; tutti help lists the commands");
    check_usage("plan", "tutti plan needs FILE");
    check_usage("diff one", "tutti diff needs A B");
    check_usage("diff one two three", "unexpected argument 'three'");
    check_usage("devices extra", "unexpected argument 'extra'");
    check_usage("plan x --deivces cpu:0", "unknown flag --deivces; did you mean --devices?");
    check_usage("plan x --qqqqqqq", "tutti plan: unknown flag --qqqqqqq");
    check_usage("diff a b --rows 3", "tutti diff has no flag --rows");
    check_usage("plan x --rows", "--rows needs a value: --rows N");
    check_usage("plan x --rows ten", "--rows: 'ten' is not an integer");
    check_usage("plan x --rows 0", "--rows: 0 is not between 1 and");
    check_usage("plan x --json=1", "--json takes no value");
    check_usage("plan x --json --dot", "only one of --json, --dot and --svg");
    check_usage("plan x -j", "flags begin with --");
    check_usage("train x.yaml --set train.batch",
                "--set: 'train.batch' is not of the form KEY=VALUE");
    check_usage("train x.yaml --set =3", "--set: '=3' is not of the form KEY=VALUE");
    check_usage("devices --level loud", "--level: 'loud' is not one of error");
}

TEST(devices_are_listed)
{
    CHECK_INT(run("devices"), 0);
    CHECK_HAS(out, "device");
    CHECK_HAS(out, "cpu:0");
    CHECK_INT(run("devices --devices cpu:0*2@512MiB --threads 2"), 0);
    CHECK_HAS(out, "cpu:1");
    CHECK_HAS(out, "512.0 MiB");
    CHECK_INT(run("devices --devices=cpu:0*2 --json"), 0);
    check_json(out);
    CHECK_HAS(out, "{\"name\": \"cpu:1\", \"physical\": \"cpu:0\", \"model\": ");
    CHECK_INT(run("devices --devices tpu:0"), 2);
    CHECK_STR(out, "");
    CHECK_HAS(err, "tutti: error: ");
    CHECK_HAS(err, "tpu");
}

TEST(kernels_are_listed)
{
    setenv("TUTTI_CUDA_MODULE", "/nowhere", 1);
    CHECK_INT(run("kernels"), 0);
    CHECK_HAS(out, "no GPU kernels: TUTTI_CUDA_MODULE: /nowhere: cannot open");
    CHECK_HAS(out, "\nmatmul ");
    CHECK_HAS(out, "f32  f64  bf16 f16  i32  i64  u8   bool");
    CHECK_INT(run("kernels softmax"), 0);
    CHECK_HAS(out, "\nsoftmax ");
    CHECK(strstr(out, "\nmatmul ") == NULL);
    CHECK_INT(run("kernels --json"), 0);
    check_json(out);
    CHECK_HAS(out, "{\"op\": \"matmul\", \"kernels\": {\"cpu\": [\"f32\"");
    CHECK_INT(run("kernels zzzzzz"), 1);
    CHECK_HAS(err, "no op name contains 'zzzzzz'");
}

TEST(kernels_of_gpus_are_listed_with_their_libraries)
{
    if (getenv("TUTTI_CUDA_MODULE") == NULL)
        test_skip("TUTTI_CUDA_MODULE is not set");
    setenv("TUTTI_CUDA_OWN", "1", 1); // as if there were no libraries
    CHECK_INT(run("kernels"), 0);
    CHECK_HAS(out, "GPU kernels: CUDA ");
    CHECK_HAS(out, "\nmatmul                 cg   c    cg   cg   .    .    .    .     ours  ");
    CHECK_HAS(out, "\nsquare_sum             .    cg   ");
    CHECK_HAS(out, "\nprint                  c    c    "); // has none on GPUs
    CHECK_INT(run("kernels --json square_sum"), 0);
    check_json(out);
    CHECK_HAS(out, "\"cuda\": [\"f64\"]}, \"cuda_by\": \"ours\"");
}

static const char model[] = "tutti graph 1\n"
                            "%x = feed {shape=[b, 16]}\n"
                            "%w = variable {shape=[16, 4], init=glorot_uniform}\n"
                            "%y = matmul(%x, %w)\n"
                            "%p = softmax(%y)\n";

TEST(plans_are_shown)
{
    char line[600];
    const char *path = write_file("model", model);
    snprintf(line, sizeof(line), "plan %s --rows 32", path);
    CHECK_INT(run(line), 0);
    CHECK_HAS(out, "matmul");
    CHECK_HAS(out, "cpu:0");
    CHECK_HAS(out, "softmax");
    snprintf(line, sizeof(line), "plan %s --rows 32 --target y", path);
    CHECK_INT(run(line), 0);
    CHECK_HAS(out, "matmul");
    CHECK(strstr(out, "softmax") == NULL);
    snprintf(line, sizeof(line), "plan %s --json --rows=32 --devices cpu:0*2", path);
    CHECK_INT(run(line), 0);
    check_json(out);
    snprintf(line, sizeof(line), "plan %s --dot", path);
    CHECK_INT(run(line), 0);
    CHECK_HAS(out, "digraph");
}

TEST(plans_are_drawn)
{
    char line[900], svg[400];
    const char *path = write_file("model", model);
    snprintf(svg, sizeof(svg), "%s/plan.svg", test_folder());
    snprintf(line, sizeof(line), "plan %s --svg %s", path, svg);
    int rc = run(line);
    if (rc == 0) {
        CHECK_HAS(out, "/plan.svg: the plan of ");
        command_read("plan.svg", out, sizeof(out));
        CHECK_HAS(out, "<svg");
    } else {
        CHECK_INT(rc, 1);
        CHECK_HAS(err, "--svg needs dot: install graphviz");
    }
}

TEST(plan_reads_standard_input)
{
    write_file("in", model);
    CHECK_INT(run("plan -"), 0);
    CHECK_HAS(out, "matmul");
}

TEST(plan_names_the_file_that_is_wrong)
{
    char line[600];
    CHECK_INT(run("plan /nowhere/at/all"), 1);
    CHECK_STR(out, "");
    CHECK_STR(err,
              "tutti: error: /nowhere/at/all: cannot open: No such file or directory\n"); // once
    const char *path = write_file("bad", "tutti graph 1\n%x = feed\n%y = matmull(%x, %x)\n");
    snprintf(line, sizeof(line), "plan %s", path);
    CHECK_INT(run(line), 1);
    CHECK_HAS(err,
              "/bad: graph text line 3 column 6: unknown op 'matmull'; did you mean 'matmul'?");
    path = write_file("model", model);
    snprintf(line, sizeof(line), "plan %s --target q", path);
    CHECK_INT(run(line), 1);
    CHECK_HAS(err, "the graph has no tensor 'q'");
    snprintf(line, sizeof(line), "plan %s", test_folder()); // a folder stands for a run
    CHECK_INT(run(line), 1);
    CHECK_HAS(err, "is a folder without job.yaml and checkpoints, so it is not a run");
}

TEST(diff_compares_runs)
{
    char line[900], a[300], b[300], c[300];
    const char *names[] = {"a", "b", "c"};
    char *paths[] = {a, b, c};
    command_path();
    for (int i = 0; i < 3; i++) {
        tt_ctx *ctx = test_ctx();
        tt_graph *g = tt_graph_new(ctx);
        tt_session *s = tt_session_new(g, .hashes = true);
        tt_tensor *x = tt_feed(g, .shape = TT_SHAPE(TT_BATCH, 3), .name = "x");
        tt_tensor *y = tt_exp(g, x);
        float v[6] = {0, 1, 2, 3, 4, i == 2 ? 5.5f : 5}, r[6];
        CHECK_OK(tt_run(s, .feeds = &(tt_feed_value){x, v, TT_SHAPE(2, 3), TT_F32}, .n_feeds = 1,
                        .fetches = &(tt_fetch){y, r, sizeof(r)}, .n_fetches = 1));
        snprintf(paths[i], 300, "%s/%s", test_folder(), names[i]);
        CHECK_OK(tt_hashes_write(s, paths[i]));
        CHECK_OK(tt_close(ctx));
    }
    snprintf(line, sizeof(line), "diff %s %s", a, b);
    CHECK_INT(run(line), 0);
    snprintf(line, sizeof(line), "diff %s %s", a, c);
    CHECK_INT(run(line), 1);
    CHECK_HAS(out, "node x");
    CHECK_STR(err, "");
    snprintf(line, sizeof(line), "diff %s %s --json", a, c);
    CHECK_INT(run(line), 1);
    check_json(out);
    CHECK_HAS(out, "{\"same\": false");
    snprintf(line, sizeof(line), "diff %s /nowhere/b", a);
    CHECK_INT(run(line), 1);
    CHECK_HAS(err, "/nowhere/b");
}

TEST(help_explains_keys)
{
    command_ok("help job");
    CHECK_HAS(out, "model");
    command_ok("help train.optimizer.adam");
    CHECK_HAS(out, "lr");
    CHECK_INT(run("help train.optimizer.adan"), 2);
    CHECK_HAS(err, "adam");
    command_ok("help exit");
    CHECK_HAS(out, "85   stopped by SIGTERM");
    command_ok("help train");
    CHECK_HAS(out, "--resume");
}

TEST(a_full_disk_is_an_error)
{
    char line[600];
    snprintf(line, sizeof(line), "%s help > /dev/full 2> %s/err", command_path(), test_folder());
    int status = system(line);
    CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 1);
    command_read("err", err, sizeof(err));
    CHECK_HAS(err, "cannot write to standard output: No space left on device");
}

// A reader that ends early (| head) is no error: nothing is printed, whatever the caller does with
// SIGPIPE. Closed standard files are not taken by files of ours.
TEST(a_reader_that_ends_early_is_no_error)
{
    static const char *const lines[] = {"help job",
                                        "help",
                                        "train small.yaml --json",
                                        "kernels",
                                        "plan small.yaml",
                                        "devices",
                                        "train small.yaml --dry-run",
                                        "version",
                                        "eval small --json",
                                        "inspect small",
                                        "predict small",
                                        "env"};
    char line[256];
    command_write("small.yaml", command_small_job);
    for (int i = 0; i < (int)(sizeof(lines) / sizeof(lines[0])); i++)
        for (int ignored = 0; ignored < 2; ignored++) {
            snprintf(line, sizeof(line), "%s { sleep 0.1; $TUTTI %s; } | true",
                     ignored ? "trap '' PIPE;" : "", lines[i]);
            CHECK_INT(command_shell(line), 0);
            ck_assert_msg(command_err[0] == '\0', "%s: %s", lines[i], command_err);
        }
}

TEST(a_closed_standard_file_is_reported)
{
    command_write("small.yaml", command_small_job);
    CHECK_INT(command_shell("$TUTTI version >&-"), 1);
    CHECK_HAS(command_err, "cannot write to standard output");
    CHECK_INT(command_shell("$TUTTI train small.yaml --run here/x --quiet <&- >&- 2>&-"), 0);
    command_read("here/x/events.jsonl", command_out, sizeof(command_out));
    json_decref(command_last_object(command_out, NULL)); // every line is an object
}
