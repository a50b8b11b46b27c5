/*
 * cli_index.c - tutti runs over its index: filters, order, tags, comparisons; an index that is
 * removed, damaged or behind is made good from the folders.
 */
#include "../command.h"
#include <stdio.h>

// Four runs: two with the same bits, one with another rate, one with another batch.
static void make_runs(void)
{
    command_write("small.yaml", command_small_job);
    command_ok("train small.yaml --quiet");
    command_ok("train small.yaml --quiet --strategy mirrored --devices cpu:0*2");
    command_ok("train small.yaml --quiet --lr 0.5");
    command_ok("train small.yaml --quiet --batch 16 --epochs 1");
    command_run("runs --limit 1");
    if (strstr(command_err, "this build has no SQLite") != NULL)
        test_skip("built without SQLite");
}

// The names of the runs that are listed, in order: "small-001 small-002".
static const char *names(const char *flags)
{
    static char out[1024];
    char line[512];
    json_error_t e;
    size_t at = 0;
    snprintf(line, sizeof(line), "runs --json%s%s", flags[0] != '\0' ? " " : "", flags);
    command_ok(line);
    json_t *list = json_loads(command_out, 0, &e);
    ck_assert_msg(json_is_array(list), "%s", command_out);
    out[0] = '\0';
    for (size_t i = 0; i < json_array_size(list); i++)
        at += (size_t)snprintf(out + at, sizeof(out) - at, "%s%s", i > 0 ? " " : "",
                               json_string_value(json_object_get(json_array_get(list, i), "run")));
    json_decref(list);
    return out;
}

TEST(runs_are_filtered_and_sorted)
{
    make_runs();
    CHECK_STR(names(""), "small-004 small-003 small-002 small-001");
    CHECK_STR(names("--where lr=0.5"), "small-003");
    CHECK_STR(names("--where lr==0.5"), "small-003");
    CHECK_STR(names("--where train.batch=16 --where state=finished"), "small-004");
    CHECK_STR(names("--where batch!=16 --sort run"), "small-001 small-002 small-003");
    CHECK_STR(names("--where devices~cpu:1"), "small-002");
    CHECK_STR(names("--where lr<0.5 --where batch>=17 --sort run"), "small-001 small-002");
    CHECK_STR(names("--where strategy=pipeline"), "");
    CHECK_STR(names("--sort -lr --limit 1"), "small-003");
    char hash[64], line[128];
    command_ok("runs show small-001 --json");
    json_t *o = json_loads(command_out, 0, NULL);
    snprintf(hash, sizeof(hash), "%s",
             json_string_value(json_object_get(json_object_get(o, "run"), "hash")));
    json_decref(o);
    snprintf(line, sizeof(line), "--where hash=%.8s --sort run", hash);
    CHECK_STR(names(line), "small-001 small-002"); // the same bits, by the start of their hash
    command_ok("runs best loss");
    CHECK_HAS(command_out, "best");
    CHECK_INT(command_count(command_out, "finished"), 4);
}

TEST(runs_have_tags_and_notes)
{
    make_runs();
    command_ok("runs tag small-003 good fast");
    command_ok("runs tag small-001 good");
    CHECK_STR(names("--where tag=good --sort run"), "small-001 small-003");
    command_ok("runs untag small-003 good");
    CHECK_STR(names("--where tag=good"), "small-001");
    CHECK_STR(names("--where tag=fast"), "small-003");
    CHECK_INT(command_shell("$TUTTI runs note small-003 'a higher rate'"), 0);
    command_ok("runs show small-003");
    CHECK_HAS(command_out, "note  a higher rate\n");
    CHECK_HAS(command_out, "tag   fast\n");
    CHECK_INT(command_run("runs tag small-003 a,b"), 1);
    CHECK_HAS(command_err, "'a,b' is not a tag");
    CHECK_INT(command_run("runs tag small-009 x"), 1);
    CHECK_HAS(command_err, "there is no run 'runs/small-009'");
}

TEST(two_runs_are_held_against_each_other)
{
    make_runs();
    command_ok("runs compare small-001 small-002");
    CHECK_HAS(command_out, "distribute.devices                cpu:0                 cpu:0*2\n");
    CHECK_HAS(command_out, "loss     equal in all 3 epochs that both have\n");
    CHECK_HAS(command_out, "weights  equal, bit for bit: ");
    command_ok("runs compare small-001 small-003");
    CHECK_HAS(command_out, ".lr ");
    CHECK_HAS(command_out, "loss     differs from epoch 1 on: ");
    CHECK_HAS(command_out, "weights  differ: ");
    command_ok("runs compare small-001 small-001 --json");
    json_t *o = json_loads(command_out, 0, NULL);
    CHECK(json_is_true(json_object_get(o, "weights_equal")));
    CHECK_INT((int)json_array_size(json_object_get(o, "job")), 0);
    CHECK(json_is_null(json_object_get(o, "first_epoch_that_differs")));
    json_decref(o);
}

TEST(the_index_follows_the_folders)
{
    static char first[sizeof(command_out)];
    make_runs();
    command_ok("runs tag small-002 kept");
    command_ok("runs --json --sort run");
    snprintf(first, sizeof(first), "%s", command_out);
    CHECK(command_left("runs/.index.sqlite"));
    CHECK_INT(command_shell("rm runs/.index.sqlite"), 0); // made anew
    command_ok("runs --json --sort run");
    CHECK_STR(command_out, first);
    command_write("runs/.index.sqlite", "this is no index"); // damaged
    command_ok("runs --json --sort run");
    CHECK_STR(command_out, first);
    CHECK_INT(command_shell("head -c 9000 runs/.index.sqlite > x && mv x runs/.index.sqlite"), 0);
    command_ok("runs --json --sort run");
    CHECK_STR(command_out, first);
    command_ok("runs rm small-003");
    CHECK_STR(names("--sort run"), "small-001 small-002 small-004");
    command_ok("train small.yaml --quiet");
    CHECK_STR(names("--sort run"), "small-001 small-002 small-004 small-005");
    CHECK_INT(command_shell("mv runs/small-001 elsewhere"), 0);
    CHECK_STR(names("--sort run"), "small-002 small-004 small-005");
    // What the job says no more can be no key.
    CHECK_INT(command_shell("echo 'nonsense: [' > runs/small-002/job.yaml"), 0);
    CHECK_STR(names("--where batch>0 --sort run"), "small-004 small-005");
}

TEST(mistakes_about_runs_are_told)
{
    static const struct {
        const char *line, *says;
        int code;
    } bad[] = {
        {"runs --where bacth=3", "no run has a key or metric 'bacth'; did you mean 'batch'?", 1},
        {"runs --sort accurracy", "did you mean 'accuracy'?", 1},
        {"runs --where loss", "'loss' is not of the form KEY=VALUE", 1},
        {"runs shwo", "unknown word 'shwo'; possible: ls, show, compare", 2},
        {"runs compare small-001", "tutti runs compare needs two runs", 2},
        {"runs tag small-001", "tutti runs tag needs a run and tags", 2},
        {"runs best", "tutti runs best needs a metric", 2},
        {"runs --limit 0", "--limit: 0 is not between 1", 2},
    };
    make_runs();
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        CHECK_INT(command_run(bad[i].line), bad[i].code);
        CHECK_HAS(command_err, bad[i].says);
    }
}
