/*
 * job.c - whole jobs: the tables of all sections, checks, printing, building, the example files.
 */
#include "job/job.h"
#include "../test.h"
#include "train/compile.h"
#include <stdio.h>
#include <stdlib.h>

static const char small[] = "data:\n"
                            "  train: {digits: {count: 64}}\n"
                            "  validate: {digits: {count: 16, seed: 3}}\n"
                            "  test: {digits: 16}\n"
                            "model:\n"
                            "  - conv2d: {filters: 4, kernel: 3, act: relu}\n"
                            "  - max_pool2d: 2\n"
                            "  - flatten\n"
                            "  - dense: 10\n"
                            "train:\n"
                            "  epochs: 1\n"
                            "  batch: 16\n"
                            "  loss: cross_entropy\n"
                            "  optimizer: {adam: {lr: 1e-3}}\n"
                            "  metrics: [accuracy]\n";

static void need_yaml(void)
{
#ifndef TUTTI_HAVE_YAML
    test_skip("this build has no libyaml");
#endif
}

static tt_job *parse(tt_ctx *ctx, const char *yaml)
{
    return tt_job_parse(ctx, yaml, strlen(yaml), "j.yaml");
}

static void expect_error(const char *yaml, const char *message)
{
    tt_ctx *ctx = test_ctx();
    ck_assert_msg(parse(ctx, yaml) == NULL, "no error '%s' from\n%s", message, yaml);
    CHECK_STR(tt_last_error(ctx).message, message);
    tt_clear_error(ctx);
    CHECK_OK(tt_close(ctx));
}

// Parses; building in a context of the job's own must fail so.
static void expect_build_error(const char *yaml, const char *message)
{
    tt_ctx *reader = test_ctx();
    tt_job *j = parse(reader, yaml);
    ck_assert_msg(j != NULL, "%s\n%s", tt_last_error(reader).message, yaml);
    tt_open_opts o = tt_job_open_opts(j);
    o.on_event = test_ignore_event;
    tt_ctx *ctx = tt_open_with(&o);
    tt_job_parts parts;
    ck_assert_msg(tt_job_build(j, ctx, &parts) != TT_OK, "no error '%s' from\n%s", message, yaml);
    CHECK_STR(tt_last_error(ctx).message, message);
    tt_clear_error(ctx);
    CHECK_OK(tt_close(ctx));
    CHECK_OK(tt_close(reader));
}

// Prints, reads the print, prints again.
static void expect_stable(tt_job *j, tt_ctx *ctx)
{
    char *text = tt_job_print(j), *core = tt_job_core_print(j);
    CHECK(text != NULL && core != NULL);
    tt_job *again = parse(ctx, text), *from_core = parse(ctx, core);
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
    need_yaml();
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
                 "j.yaml:1:14: train.nan: 'never' is none of stop, skip, continue");
    expect_error("distribute: {lanes: 0}\n", "j.yaml:1:21: distribute.lanes: '0' is below 1");
    expect_error("train: {optimizer: {adam: {groups: [{lr_scale: 2}]}}}\n",
                 "j.yaml:1:37: train.optimizer.adam.groups.0: match must be given");
}

TEST(job_parts_are_checked_together)
{
    need_yaml();
    expect_error("data: {train: digits}\n", "j.yaml:1:1: model must be given");
    expect_error("model: [flatten]\ntrain: {loss: mse}\n",
                 "j.yaml:1:1: data: train must be given: the job trains");
    expect_error("data: {train: digits}\nmodel: [flatten]\ntrain: {batch: 3}\n",
                 "j.yaml:3:8: train: loss must be given");
    expect_error("data: {train: digits}\nmodel: [flatten]\ntrain: {loss: mse, losses: [mse]}\n",
                 "j.yaml:3:20: train: give either loss or losses");
    expect_error("data: {train: digits}\nmodel: [flatten]\ntrain: {loss: mse, accumulate: 3}\n",
                 "j.yaml:3:32: train.accumulate: 3 does not divide the 8 lanes; 1, 2, 4, 8 do");
    tt_ctx *ctx = test_ctx();
    CHECK(parse(ctx, "data: {train: digits}\nmodel: [flatten]\ndistribute: {lanes: 12}\n"
                     "train: {loss: mse, accumulate: 3}\n") != NULL);
    CHECK_OK(tt_close(ctx));
}

TEST(job_files_are_read)
{
    need_yaml();
    tt_ctx *ctx = test_ctx();
    char path[512];
    snprintf(path, sizeof(path), "%s/tiny.job.yaml", test_folder());
    CHECK(tt_job_read(ctx, path) == NULL);
    CHECK(tt_status_of(ctx) == TT_EIO);
    CHECK_MESSAGE(ctx, path);
    tt_clear_error(ctx);

    FILE *f = fopen(path, "w");
    fputs(small, f);
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
    tt_open_opts o = tt_job_open_opts(j);
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
    need_yaml();
    tt_ctx *ctx = test_ctx();
    char other[2048];
    snprintf(other, sizeof(other), "%sname: other\ndistribute: {devices: cpu:0*4}\n%s", small,
             "output: {dir: elsewhere}\n");
    char *with_workers = strstr(other, "data:\n") + strlen("data:\n");
    memmove(with_workers + 13, with_workers, strlen(with_workers) + 1);
    memcpy(with_workers, "  workers: 3\n", 13);
    tt_job *a = parse(ctx, small), *b = parse(ctx, other);
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
        {"", "distribute: which devices"},
        {"train", "  batch           int     32       rows of a step over all devices"},
        {"train.batch", "rows of a step over all devices"},
        {"train.optimizer", "  adamw"},
        {"train.optimizer.adam", "learning rate"},
        {"train.optimizer.adam.schedule.cosine", "warmup"},
        {"train.optimizer.adam.groups", "match"},
        {"train.loss.cross_entropy", "smoothing"},
        {"train.metrics", "accuracy"},
        {"model", "conv2d"},
        {"model.dense", "must be given"},
        {"model.gpt", "of the data"},
        {"model.residual", "x + f(x)"},
        {"model.inputs", "of the data's field"},
        {"data.train", "digits"},
        {"data.train.digits", "noise"},
        {"init", "A bare value is file."},
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

// ---- building --------------------------------------------------------------------------------

typedef struct built {
    tt_ctx *reader, *ctx;
    tt_job *job;
    tt_job_parts parts;
} built;

static built build(const char *yaml)
{
    built b = {.reader = test_ctx()};
    b.job = parse(b.reader, yaml);
    ck_assert_msg(b.job != NULL, "%s\n%s", tt_last_error(b.reader).message, yaml);
    tt_open_opts o = tt_job_open_opts(b.job);
    o.on_event = test_ignore_event;
    b.ctx = tt_open_with(&o);
    tt_status st = tt_job_build(b.job, b.ctx, &b.parts);
    ck_assert_msg(st == TT_OK, "%s\n%s", tt_last_error(b.ctx).message, yaml);
    return b;
}

static void close_built(built *b)
{
    CHECK_OK(tt_close(b->ctx));
    CHECK_OK(tt_close(b->reader));
}

TEST(job_builds_its_parts)
{
    need_yaml();
    built b = build(small);
    CHECK_INT(tt_data_count(b.parts.train), 64);
    CHECK_INT(tt_data_count(b.parts.validate), 16);
    CHECK_INT(tt_data_count(b.parts.test), 16);
    CHECK(b.parts.fit.validate == b.parts.validate && b.parts.fit.batch == 16);
    CHECK(b.parts.fit.epochs == 1 && b.parts.fit.keep == 3 && b.parts.fit.job != NULL);
    CHECK(b.parts.fit.checkpoints == NULL && b.parts.fit.n_callbacks == 0);
    CHECK(tt_model_parameters(b.parts.model) == 4 * 9 + 4 + 13 * 13 * 4 * 10 + 10);
    CHECK(tt_model_get_train_graph(b.parts.model) != NULL);
    CHECK(tt_data_order(b.parts.validate, 0, 3) == 3); // only training data is shuffled
    CHECK_OK(tt_fit_with(b.parts.model, b.parts.train, &b.parts.fit));
    close_built(&b);
}

TEST(job_without_train_is_not_compiled)
{
    need_yaml();
    built b = build("data: {test: {digits: 8}}\nmodel: [flatten, dense: 10]\n");
    CHECK(b.parts.train == NULL && b.parts.test != NULL);
    CHECK(tt_model_get_train_graph(b.parts.model) == NULL);
    close_built(&b);
    b = build("model:\n  inputs: {x: {shape: [4]}}\n  layers: [dense: 3]\n");
    CHECK_INT(tt_model_parameters(b.parts.model), 4 * 3 + 3);
    close_built(&b);
}

TEST(job_models_may_join_and_share)
{
    need_yaml();
    // Names, from, share: two towers of one weight, joined; 784*5+5 and 10*2+2 parameters.
    built b = build("data: {train: {digits: 8}}\n"
                    "model:\n"
                    "  inputs: [x]\n"
                    "  layers:\n"
                    "    - flatten: {name: flat}\n"
                    "    - dense: {units: 5, name: a}\n"
                    "    - dense: {units: 5, from: flat, share: a, name: b}\n"
                    "    - concat: {from: [a, b]}\n"
                    "    - dense: 2\n"
                    "      name: out\n"
                    "  outputs: [out, a]\n");
    CHECK_INT(tt_model_parameters(b.parts.model), 784 * 5 + 5 + 10 * 2 + 2);
    CHECK_INT(b.parts.model->n_outputs, 2);
    close_built(&b);

    // x + f(x), also inside another, from elsewhere, with an activation.
    b = build("data: {train: {digits: 8}}\n"
              "model:\n"
              "  - flatten\n"
              "  - dense: {units: 6, name: base}\n"
              "  - residual: [dense: 6, residual: [dense: 6]]\n"
              "  - residual: {layers: [dense: 6], act: relu, from: base, name: r}\n"
              "  - dense: {units: 2, from: r}\n");
    CHECK_INT(tt_model_parameters(b.parts.model), 784 * 6 + 6 + 3 * (36 + 6) + 12 + 2);
    close_built(&b);
}

TEST(job_models_say_what_is_wrong)
{
    need_yaml();
    const char *data = "data: {train: {digits: 8}}\n";
    static const struct {
        const char *model, *message;
    } cases[] = {
        {"model: [flatten, dense: {units: 3, from: flaten_1}]\n",
         "j.yaml:2:42: model.1.dense.from: no layer or input 'flaten_1' comes before; did you mean "
         "'flatten_1'?"},
        {"model: [flatten, dense: {units: 3, share: zzz}]\n",
         "j.yaml:2:43: model.1.dense.share: no layer or input 'zzz' comes before"},
        {"model: []\n", "j.yaml:2:8: model: has no layers"},
        {"model: [residual: []]\n", "j.yaml:2:19: model.0.residual: layers must be given"},
        {"model: [embedding: {width: 4}]\n",
         "j.yaml:2:20: model.0.embedding: vocab must be given: the data does not say it"},
        {"model: {inputs: [a, b, c], layers: [flatten]}\n",
         "j.yaml:2:24: model.inputs.c: shape must be given: the data has no such field"},
        {"model: {layers: [flatten], outputs: [flatten_1, q]}\n",
         "j.yaml:2:37: model.outputs: no layer or input 'q' comes before"},
        {"model: [flatten, residual: {layers: [dense: 784], name: flatten_1}]\n",
         "j.yaml:2:28: model.1.residual: the model has a layer 'flatten_1' already"},
        {"model: [flatten, conv2d: 3]\n",
         "j.yaml:2:26: model.1.conv2d: conv2d_1: x is [b, 784]; it must be [batch, height, width, "
         "channels]"},
    };
    for (int i = 0; i < TTI_COUNT(cases); i++) {
        char yaml[512];
        snprintf(yaml, sizeof(yaml), "%s%s", data, cases[i].model);
        expect_build_error(yaml, cases[i].message);
    }
    expect_build_error("model: [flatten]\n", "j.yaml:1:8: model: the job has no data, so "
                                             "model.inputs must say what goes in");
}

TEST(job_optimizers_and_losses_reach_compile)
{
    need_yaml();
    built b = build("data: {train: {digits: 16}}\n"
                    "model: [flatten, dense: 10]\n"
                    "train:\n"
                    "  steps: 2\n"
                    "  batch: 8\n"
                    "  accumulate: 2\n"
                    "  nan: skip\n"
                    "  losses: [{cross_entropy: {smoothing: 0.1, ignore: 9}, weight: 0.5}]\n"
                    "  metrics: [accuracy, top_k]\n"
                    "  top_k: 3\n"
                    "  optimizer:\n"
                    "    adamw:\n"
                    "      lr: 0.01\n"
                    "      weight_decay: 0\n"
                    "      schedule: {cosine: {warmup: 5, final: 0.1}}\n"
                    "      groups: [{match: '*.bias', lr_scale: 2, no_decay: true}]\n"
                    "  early_stop: {patience: 2, value: loss}\n"
                    "checkpoint: {every: 7, keep: 2, best: loss}\n");
    const tt_fit_opts *f = &b.parts.fit;
    CHECK(f->steps == 2 && f->batch == 8 && f->accumulate == 2 && f->nan == TT_NAN_SKIP);
    CHECK(f->save_every == 7 && f->keep == 2 && f->early_stop.patience == 2);
    CHECK_STR(f->early_stop.value, "loss");
    CHECK_STR(f->best.value, "loss");
    CHECK(f->plateau.value == NULL && f->plateau.patience == 0);
    CHECK_OK(tt_fit_with(b.parts.model, b.parts.train, f));
    close_built(&b);
}

TEST(job_zero_means_zero)
{
    need_yaml();
    built b =
        build("data: {train: {digits: 16}}\n"
              "model: [flatten, dense: 10]\n"
              "train:\n"
              "  loss: cross_entropy\n"
              "  optimizer:\n"
              "    adamw: {beta1: 0, weight_decay: 0, groups: [{match: '*.bias', lr_scale: 0}]}\n");
    const tt_optimizer *o = &b.parts.model->step->opts.optimizer;
    CHECK(o->weight_decay == 0 && o->beta1 == 0 && o->beta2 == 0.999);
    static float bias[10], weight[7840], first[7840];
    tt_session *s = tt_model_get_session(b.parts.model);
    const tti_weight *w = b.parts.model->weights;
    CHECK_STR(w[1].name, "dense_1.bias");
    CHECK_OK(tt_get_variable(s, w[0].train_var, first, sizeof(first)));
    CHECK_OK(tt_fit_with(b.parts.model, b.parts.train, &b.parts.fit));
    s = tt_model_get_session(b.parts.model);
    CHECK_OK(tt_get_variable(s, w[0].train_var, weight, sizeof(weight)));
    CHECK_OK(tt_get_variable(s, w[1].train_var, bias, sizeof(bias)));
    CHECK(memcmp(weight, first, sizeof(first)) != 0);
    for (int i = 0; i < 10; i++)
        CHECK(bias[i] == 0); // its learning rate is 0
    close_built(&b);
}

TEST(job_building_without_memory)
{
    need_yaml();
    int k = 1, built_at = 0;
    for (; k < 4000 && built_at == 0; k++) {
        tt_ctx *ctx = test_ctx();
        tt_fail_alloc_at(ctx, k);
        tt_job *j = parse(ctx, small);
        tt_fail_alloc_at(ctx, 0);
        if (j != NULL)
            built_at = k;
        else
            ck_assert_msg(tt_status_of(ctx) == TT_ENOMEM, "allocation %d: %s", k,
                          tt_last_error(ctx).message);
        tt_clear_error(ctx);
        CHECK_OK(tt_close(ctx));
    }
    CHECK(built_at > 5);
    tt_ctx *reader = test_ctx();
    tt_job *j = parse(reader, small);
    for (k = 1; k < 40000; k += k < 200 ? 1 : 17) { // most of it is the model's, tested there
        tt_ctx *ctx = test_ctx();
        tt_job_parts parts;
        tt_fail_alloc_at(ctx, k);
        tt_status st = tt_job_build(j, ctx, &parts);
        tt_fail_alloc_at(ctx, 0);
        ck_assert_msg(st == TT_OK || st == TT_ENOMEM, "allocation %d: %s", k,
                      tt_last_error(ctx).message);
        tt_clear_error(ctx);
        CHECK_OK(tt_close(ctx));
        if (st == TT_OK)
            break;
    }
    CHECK(k < 40000);
    CHECK_OK(tt_close(reader));
}
