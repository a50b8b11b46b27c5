/*
 * job.c - whole jobs: the tables of all sections, checks, files, printing, help.
 */
#include "job/job.h"
#include "../jobs.h"
#include <stdio.h>
#include <stdlib.h>

// The message, but for the list of what is possible (hints.c looks at those).
static void expect_error(const char *yaml, const char *message)
{
    char got[8192];
    tt_ctx *ctx = test_ctx();
    ck_assert_msg(job_parse(ctx, yaml) == NULL, "no error '%s' from\n%s", message, yaml);
    snprintf(got, sizeof(got), "%s", tt_last_error(ctx).message);
    char *list = strstr(got, "\n  possible: ");
    if (list != NULL)
        *list = '\0';
    CHECK_STR(got, message);
    tt_clear_error(ctx);
    CHECK_OK(tt_close(ctx));
}

// Prints, reads the print, prints again.
static void expect_stable(tt_job *j, tt_ctx *ctx)
{
    char *text = tt_job_print(j), *core = tt_job_core_print(j);
    CHECK(text != NULL && core != NULL);
    tt_job *again = job_parse(ctx, text), *from_core = job_parse(ctx, core);
    ck_assert_msg(again != NULL && from_core != NULL, "%s\n%s", tt_last_error(ctx).message, text);
    char *same = tt_job_print(again), *same_core = tt_job_core_print(from_core);
    CHECK_STR(same, text);
    CHECK_STR(same_core, core);
    tt_string_free(ctx, text);
    tt_string_free(ctx, core);
    tt_string_free(ctx, same);
    tt_string_free(ctx, same_core);
    tt_job_free(again);
    tt_job_free(from_core);
}

// ---- reading and printing --------------------------------------------------------------------

TEST(job_errors_name_the_place)
{
    test_need_yaml();
    expect_error("model: [flatten]\ntrain: {bacth: 3}\n",
                 "j.yaml:2:9: train: unknown key 'bacth'; did you mean 'batch'?");
    expect_error("model: [flatten]\ntrian: {batch: 3}\n",
                 "j.yaml:2:1: unknown key 'trian'; did you mean 'train'?");
    expect_error("data: {train: {digit: 5}}\n",
                 "j.yaml:1:16: data.train: unknown source 'digit'; did you mean 'digits'?");
    expect_error("data: {train: {digits: {cout: 5}}}\n",
                 "j.yaml:1:25: data.train.digits: unknown key 'cout'; did you mean 'count'?");
    expect_error("data: {train: {digits: 0}}\n",
                 "j.yaml:1:24: data.train.digits.count: '0' is below 1");
    expect_error("model:\n  - desne: 10\n",
                 "j.yaml:2:5: model.0: unknown layer 'desne'; did you mean 'dense'?");
    expect_error("model:\n  - dense: {act: relu}\n",
                 "j.yaml:2:12: model.0.dense: units must be given");
    expect_error("model:\n  - dense: {units: 4, act: rleu}\n",
                 "j.yaml:2:28: model.0.dense.act: 'rleu' is unknown; did you mean 'relu'?");
    expect_error("train: {optimizer: {adam: {lr: -1}}}\n",
                 "j.yaml:1:32: train.optimizer.adam.lr: '-1' is below 0");
    expect_error("train: {optimizer: {adam: {schedule: {cosin: }}}}\n",
                 "j.yaml:1:39: train.optimizer.adam.schedule: unknown schedule 'cosin'; did you "
                 "mean 'cosine'?");
    expect_error(
        "train: {metrics: [acuracy]}\n",
        "j.yaml:1:19: train.metrics.0: unknown metric 'acuracy'; did you mean 'accuracy'?");
    expect_error("train: {loss: hubert}\n",
                 "j.yaml:1:15: train.loss: unknown loss 'hubert'; did you mean 'huber'?");
    expect_error("train: {nan: never}\n",
                 "j.yaml:1:14: train.nan: 'never' is not one of stop, skip, continue");
    expect_error("distribute: {lanes: 0}\n", "j.yaml:1:21: distribute.lanes: '0' is below 1");
    expect_error(
        "distribute: {strategy: mirored}\n",
        "j.yaml:1:24: distribute.strategy: 'mirored' is unknown; did you mean 'mirrored'?");
    expect_error("train: {optimizer: {adam: {groups: [{lr_scale: 2}]}}}\n",
                 "j.yaml:1:37: train.optimizer.adam.groups.0: match must be given");
}

TEST(job_parts_are_checked_together)
{
    test_need_yaml();
    expect_error("data: {train: digits}\n", "j.yaml:1:1: model must be given");
    expect_error("model: [flatten]\ntrain: {loss: mse}\n",
                 "j.yaml:1:1: data: train must be given: the job trains");
    expect_error("data: {train: digits}\nmodel: [flatten]\ntrain: {batch: 3}\n",
                 "j.yaml:3:8: train: loss must be given");
    expect_error("data: {train: digits}\nmodel: [flatten]\ntrain: {loss: mse, losses: [mse]}\n",
                 "j.yaml:3:20: train: give either loss or losses, not both");
    expect_error("data: {train: digits}\nmodel: [flatten]\ntrain: {loss: mse, accumulate: 3}\n",
                 "j.yaml:3:32: train.accumulate: 3 does not divide the 8 lanes; 1, 2, 4, 8 do");
    expect_error("data: {train: digits}\nmodel: [flatten]\n"
                 "train: {loss: mse, epochs: 2, steps: 7}\n",
                 "j.yaml:3:38: train.steps: is 7, but train.epochs is 2 (j.yaml:3:28); give only "
                 "one of them");
    tt_ctx *ctx = test_ctx();
    CHECK(job_parse(ctx, "data: {train: digits}\nmodel: [flatten]\n"
                         "train: {loss: mse, epochs: 2, steps: 0}\n") != NULL);
    CHECK(job_parse(ctx, "data: {train: digits}\nmodel: [flatten]\ndistribute: {lanes: 12}\n"
                         "train: {loss: mse, accumulate: 3}\n") != NULL);
    CHECK_OK(tt_close(ctx));
}

TEST(job_files_are_read)
{
    test_need_yaml();
    tt_ctx *ctx = test_ctx();
    char path[512];
    snprintf(path, sizeof(path), "%s/tiny.job.yaml", test_folder());
    CHECK(tt_job_read(ctx, path) == NULL);
    CHECK(tt_status_of(ctx) == TT_EIO);
    CHECK_MESSAGE(ctx, path);
    tt_clear_error(ctx);

    FILE *f = fopen(path, "w");
    fputs(job_small, f);
    fclose(f);
    const char *sets[] = {"train.batch=9", "distribute.devices=cpu:0*3", "seed=77"};
    setenv("TUTTI_TRAIN_BATCH", "8", 1);
    setenv("TUTTI_TRAIN_EPOCHS", "4", 1);
    tt_job *j = tt_job_read(ctx, path, .sets = sets, .n_sets = 3);
    CHECK(j != NULL);
    CHECK_STR(tt_job_name(j), "tiny");
    CHECK_STR(tt_job_get(j, "train.batch"), "9");
    CHECK_STR(tt_job_get(j, "train.epochs"), "4");
    CHECK_STR(tt_job_get(j, "train.optimizer.adam.lr"), "0.001");
    CHECK_STR(tt_job_get(j, "output.dir"), "runs");
    CHECK(tt_job_get(j, "output") == NULL && tt_job_get(j, "output.dri") == NULL);
    tt_open_opts o = *tt_job_open_opts(j);
    CHECK_STR(o.devices, "cpu:0*3");
    CHECK_STR(o.strategy, "single");
    CHECK(o.lanes == 8 && o.seed == 77 && o.threads == 0);
    expect_stable(j, ctx);
    j = tt_job_read(ctx, path, .no_env = true);
    CHECK_STR(tt_job_get(j, "train.batch"), "16");
    tt_job_free(j);
    CHECK_OK(tt_close(ctx));
}

TEST(job_core_is_free_of_places)
{
    test_need_yaml();
    tt_ctx *ctx = test_ctx();
    char other[2048];
    snprintf(other, sizeof(other), "%sname: other\ndistribute: {devices: cpu:0*4}\n%s", job_small,
             "output: {dir: elsewhere}\n");
    char *with_workers = strstr(other, "data:\n") + strlen("data:\n");
    memmove(with_workers + 13, with_workers, strlen(with_workers) + 1);
    memcpy(with_workers, "  workers: 3\n", 13);
    tt_job *a = job_parse(ctx, job_small), *b = job_parse(ctx, other);
    ck_assert_msg(b != NULL, "%s", tt_last_error(ctx).message);
    char *x = tt_job_core_print(a), *y = tt_job_core_print(b), *whole = tt_job_print(b);
    CHECK_STR(x, y);
    CHECK(strstr(x, "cpu:0") == NULL && strstr(x, "name") != NULL); // names of layers stay
    CHECK(strstr(whole, "elsewhere") != NULL && strstr(whole, "workers: 3") != NULL);
    tt_string_free(ctx, x);
    tt_string_free(ctx, y);
    tt_string_free(ctx, whole);
    CHECK_OK(tt_close(ctx));
}

TEST(job_help_comes_from_the_tables)
{
    tt_ctx *ctx = test_ctx();
    static const struct {
        const char *key, *words;
    } cases[] = {
        {"", "distribute: devices and parallelism"},
        {"train", "  batch           int     32       global batch size: records per step"},
        {"train.batch", "global batch size: records per step"},
        {"train.optimizer", "  adamw"},
        {"train.optimizer.adam", "learning rate"},
        {"train.optimizer.adam.schedule.cosine", "warmup"},
        {"train.optimizer.adam.groups", "match"},
        {"train.loss.cross_entropy", "smoothing"},
        {"train.metrics", "accuracy"},
        {"model", "conv2d"},
        {"model.dense", "required"},
        {"model.gpt", "from the data"},
        {"model.residual", "x + f(x)"},
        {"model.inputs", "that of the data field"},
        {"data.train", "digits"},
        {"data.train.digits", "noise"},
        {"init", "A plain value sets file."},
        {"checkpoint", "keep"},
        {"distribute", "cpu:0*2"},
        {"output", "runs"},
    };
    for (int i = 0; i < TTI_COUNT(cases); i++) {
        char *text = tt_job_help(ctx, cases[i].key);
        ck_assert_msg(text != NULL, "'%s': %s", cases[i].key, tt_last_error(ctx).message);
        ck_assert_msg(strstr(text, cases[i].words) != NULL, "'%s' is not in\n%s", cases[i].words,
                      text);
        tt_string_free(ctx, text);
    }
    CHECK(tt_job_help(ctx, "train.optimzer") == NULL);
    CHECK_STR(tt_last_error(ctx).message, "train has no key 'optimzer'; did you mean 'optimizer'?");
    tt_clear_error(ctx);
    CHECK_OK(tt_close(ctx));
}
