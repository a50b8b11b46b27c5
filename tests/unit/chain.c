/*
 * chain.c - the chain of a run: what is in it, that it is the same however a job runs, that it goes
 * on after a resume, and what breaks it.
 */
#include "record/chain.h"
#include "../command.h"
#include <stdio.h>

static void read_links(const char *run, tt_ctx *ctx, tti_links *out)
{
    char path[600];
    snprintf(path, sizeof(path), "%s/%s", test_folder(), run);
    CHECK_OK(tti_links_read(ctx, path, NULL, out));
}

static int count(const tti_links *l, tti_link_kind kind)
{
    int n = 0;
    for (int64_t i = 0; i < l->n; i++)
        n += l->v[i].kind == kind;
    return n;
}

TEST(a_run_has_a_chain)
{
    tt_ctx *ctx = test_ctx();
    tti_links l;
    char hash[64], path[600];
    int64_t begin = 0;
    command_write("small.yaml", command_small_job);
    command_ok("train small.yaml --json --run a --chain 10");
    command_hash(command_out, hash);
    CHECK(strstr(command_out, "\"event\": \"hash\"") == NULL);
    read_links("a", ctx, &l);
    CHECK_INT(l.broken, 0);
    CHECK_INT(count(&l, TTI_LINK_START), 1);
    CHECK_INT(count(&l, TTI_LINK_STEP), 3);
    CHECK_INT(count(&l, TTI_LINK_CHECKPOINT), 3);
    CHECK_INT(count(&l, TTI_LINK_END), 1);
    CHECK_INT(l.v[0].step, 0);
    CHECK_HAS(json_string_value(json_object_get(l.v[0].o, "job")), "batch: 32");
    CHECK_INT(json_integer_value(json_object_get(
                  json_object_get(json_object_get(l.v[0].o, "data"), "train"), "records")),
              320);
    CHECK_STR(tti_links_weights(&l, 30), hash);
    CHECK(tti_links_weights(&l, 29) == NULL);
    snprintf(path, sizeof(path), "%s/a", test_folder());
    CHECK(tti_links_check_log(&l, path, &begin) == NULL);
    tti_links_free(&l);
    CHECK_OK(tt_close(ctx));
}

// Without --chain: the first step, then as often as is cheap; --chain off: no file.
TEST(chain_steps_are_chosen)
{
    tt_ctx *ctx = test_ctx();
    tti_links l;
    command_write("small.yaml", command_small_job);
    command_ok("train small.yaml --quiet --run a");
    command_ok("train small.yaml --quiet --run b --chain off");
    command_ok("train small.yaml --quiet --run c --chain as:a");
    CHECK(!command_left("b/chain.jsonl"));
    read_links("a", ctx, &l);
    CHECK_INT(l.v[1].step, 1);
    CHECK_INT(l.v[2].step, 8);
    int64_t n = l.n;
    tti_links_free(&l);
    read_links("c", ctx, &l);
    CHECK_INT(l.n, n);
    tti_links_free(&l);
    CHECK_INT(command_run("train small.yaml --quiet --run d --chain often"), 3);
    CHECK_HAS(command_err, "--chain 'often' is not a number of steps, auto, off or as:RUN");
    CHECK_OK(tt_close(ctx));
}

// The same hashes at the same steps on two devices, in two processes, and over a stop.
TEST(chain_does_not_depend_on_devices)
{
    static const char *const lines[] = {
        "train small.yaml --quiet --run a --chain 7",
        "train small.yaml --quiet --run b --chain 7 --strategy mirrored --devices cpu:0*2 "
        "--no-trial",
        "run -n 2 small.yaml --quiet --run c --chain 7 --strategy mirrored --devices cpu:0",
        "train small.yaml --quiet --run d --chain 7 --until 12"};
    static const char *const runs[] = {"a", "b", "c", "d"};
    tt_ctx *ctx = test_ctx();
    tti_links a, l;
    command_write("small.yaml", command_small_job);
    for (int i = 0; i < 4; i++)
        command_ok(lines[i]);
    command_ok("train d --resume --quiet --chain 7");
    read_links("a", ctx, &a);
    for (int i = 1; i < 4; i++) {
        read_links(runs[i], ctx, &l);
        CHECK_INT(l.broken, 0);
        CHECK_INT(count(&l, TTI_LINK_START), i == 3 ? 2 : 1);
        for (int64_t step = 7; step <= 28; step += 7)
            CHECK_STR(tti_links_weights(&l, step), tti_links_weights(&a, step));
        CHECK_STR(tti_links_weights(&l, 30), tti_links_weights(&a, 30));
        tti_links_free(&l);
    }
    tti_links_free(&a);
    CHECK_OK(tt_close(ctx));
}

// A line that is changed, removed or put in breaks the chain there; a torn one is cut off.
TEST(chain_finds_changes)
{
    static const struct {
        const char *line;
        int broken;
    } cases[] = {{"sed -i '4s/\"step\": 20/\"step\": 21/' a/chain.jsonl", 4},
                 {"sed -i 2d a/chain.jsonl", 2},
                 {"sed -i 2p a/chain.jsonl", 3},
                 {"sed -i '4s/link\": \"./link\": \"x/' a/chain.jsonl", 4},
                 {"printf '{\"step\": 99' >> a/chain.jsonl", 0}};
    tt_ctx *ctx = test_ctx();
    tti_links l;
    command_write("small.yaml", command_small_job);
    command_ok("train small.yaml --quiet --run first --chain 10");
    for (int i = 0; i < TTI_COUNT(cases); i++) {
        CHECK_INT(command_shell("rm -rf a && cp -r first a"), 0);
        CHECK_INT(command_shell(cases[i].line), 0);
        read_links("a", ctx, &l);
        CHECK_INT(l.broken, cases[i].broken);
        tti_links_free(&l);
    }
    command_ok("train a --resume --quiet --chain 10 --epochs 4");
    read_links("a", ctx, &l);
    CHECK_INT(l.broken, 0);
    CHECK(tti_links_weights(&l, 40) != NULL);
    tti_links_free(&l);
    CHECK_OK(tt_close(ctx));
}

TEST(record_says_where_a_run_ran)
{
    command_write("small.yaml", command_small_job);
    CHECK_INT(command_shell("git init -q . && git add small.yaml && git -c user.name=a -c "
                            "user.email=a@b commit -qm first && echo >> small.yaml && "
                            "TUTTI_SECRET=00 CUDA_VISIBLE_DEVICES=7 NCCL_AUTH_TOKEN=hush $TUTTI "
                            "train small.yaml --quiet --run a && git rev-parse HEAD > head"),
              0);
    char head[64] = "";
    command_read("head", head, sizeof(head));
    head[strcspn(head, "\n")] = '\0';
    command_ok("runs show ./a");
    CHECK_HAS(command_out, head);
    CHECK_HAS(command_out, "changed           yes");
    CHECK_HAS(command_out, "train_data        320 records, ");
    CHECK_HAS(command_out, "CUDA_VISIBLE_DEVICES=7");
    CHECK_HAS(command_out, "instruction_sets");
    CHECK_INT(command_shell("! grep -r -e hush -e TUTTI_SECRET a"), 0);
}
