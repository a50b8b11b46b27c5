/*
 * job_build.c - what jobs build: data with its paths and transforms, models of every form, the
 * options of compile and fit; and what they say when they cannot.
 */
#include "../jobs.h"
#include "data/data.h"
#include "job/job.h"
#include "train/compile.h"
#include <stdio.h>
#include <sys/stat.h>

TEST(job_builds_its_parts)
{
    test_need_yaml();
    job_built b = job_build_ok(job_small);
    CHECK_INT(tt_data_count(b.parts.train), 64);
    CHECK_INT(tt_data_count(b.parts.validate), 16);
    CHECK_INT(tt_data_count(b.parts.test), 16);
    CHECK(b.parts.fit->validate == b.parts.validate && b.parts.fit->batch == 16);
    CHECK(b.parts.fit->epochs == 1 && b.parts.fit->keep == 3 && b.parts.fit->job != NULL);
    CHECK(b.parts.fit->checkpoints == NULL && b.parts.fit->callbacks[0] == NULL);
    CHECK(tt_model_parameters(b.parts.model) == 4 * 9 + 4 + 13 * 13 * 4 * 10 + 10);
    CHECK(tt_model_get_train_graph(b.parts.model) != NULL);
    CHECK(tt_data_order(b.parts.validate, 0, 3) == 3); // only training data is shuffled
    CHECK_OK(tt_fit_with(b.parts.model, b.parts.train, b.parts.fit));
    job_close(&b);
}

// ---- a source of the test's own: what it is opened with --------------------------------------

typedef struct probe_opts {
    const char *file, *dir, *split;
} probe_opts;
static const tt_option probe_rows[] = {
    {"file", TT_OPT_TEXT, NULL, "", offsetof(probe_opts, file), 0, 0, NULL},
    {"dir", TT_OPT_TEXT, "", "", offsetof(probe_opts, dir), 0, 0, NULL},
    {"split", TT_OPT_TEXT, "train", "", offsetof(probe_opts, split), 0, 0, NULL},
    TT_OPTION_END,
};
static char probed[2048];

static tt_status probe_read(tt_ctx *ctx, void *self, int64_t i, void *const *out)
{
    (void)ctx, (void)self, (void)i;
    *(float *)out[0] = 0;
    return TT_OK;
}

static tt_status probe_open(tt_ctx *ctx, const void *options, tt_source *out)
{
    const probe_opts *o = options;
    snprintf(probed + strlen(probed), sizeof(probed) - strlen(probed), "%s|%s|%s\n", o->file,
             o->dir, o->split);
    if (strcmp(o->file, "bad") == 0)
        return TT_FAIL(ctx, TT_EIO, "bad: cannot open");
    *out = (tt_source){.count = 4,
                       .n_fields = 1,
                       .fields = {{.name = "x", .shape = TT_SHAPE(1)}},
                       .read = probe_read};
    return TT_OK;
}

static const tt_source_def probe = {.name = "probe",
                                    .options = probe_rows,
                                    .options_size = sizeof(probe_opts),
                                    .main = "file",
                                    .open = probe_open};

static tt_status build_probe(const char *yaml, bool registered, char message[512])
{
    tt_ctx *reader = test_ctx(), *ctx = test_ctx();
    tt_job_parts parts;
    CHECK_OK(tt_source_register(reader, &probe));
    if (registered)
        CHECK_OK(tt_source_register(ctx, &probe));
    tt_job *j = job_parse(reader, yaml);
    ck_assert_msg(j != NULL, "%s", tt_last_error(reader).message);
    tt_status st = tt_job_build(j, ctx, &parts);
    snprintf(message, 512, "%s", tt_last_error(ctx).message);
    tt_clear_error(ctx);
    CHECK_OK(tt_close(ctx));
    CHECK_OK(tt_close(reader));
    return st;
}

TEST(job_sources_get_their_paths)
{
    test_need_yaml();
    char message[512], yaml[1024], wanted[2048];
    const char *dir = test_folder();
    snprintf(yaml, sizeof(yaml),
             "data:\n"
             "  dir: %s\n"
             "  train: {probe: [a, ./b, /c, ../d]}\n"
             "  test: {probe: {file: e, dir: f}}\n"
             "model: [dense: 1]\n",
             dir);
    CHECK_OK(build_probe(yaml, true, message));
    snprintf(wanted, sizeof(wanted), "%s/a, ./b, /c, ../d|%s|train\n%s/e|f|test\n", dir, dir, dir);
    CHECK_STR(probed, wanted);

    // A folder of the kind's name is its own.
    char own[512];
    snprintf(own, sizeof(own), "%s/probe", dir);
    CHECK(mkdir(own, 0700) == 0);
    probed[0] = '\0';
    CHECK_OK(build_probe(yaml, true, message));
    snprintf(wanted, sizeof(wanted), "%s/a, ./b, /c, ../d|%s|train\n%s/e|f|test\n", dir, own, dir);
    CHECK_STR(probed, wanted);

    probed[0] = '\0';
    CHECK_OK(build_probe("data: {train: {probe: a}}\nmodel: [dense: 1]\n", true, message));
    CHECK_STR(probed, "a||train\n");
    CHECK(build_probe(yaml, false, message) == TT_EINVAL);
    CHECK_STR(message,
              "j.yaml:3:18: data.train: source 'probe' is not registered with the context");
    CHECK(build_probe("data: {train: {probe: bad}}\nmodel: [dense: 1]\n", true, message) == TT_EIO);
    CHECK_STR(message, "j.yaml:1:23: data.train: bad: cannot open");
}

TEST(job_random_transforms_are_for_training)
{
    test_need_yaml();
    job_built b =
        job_build_ok("data:\n"
                     "  train: {digits: 8}\n"
                     "  test: {digits: 8}\n"
                     "  transform: [random_flip, normalise: {mean: 1}, {one_hot: {field: y}}]\n"
                     "model: [flatten, dense: 10]\n"
                     "train: {loss: cross_entropy, batch: 8}\n");
    CHECK_INT(b.parts.train->n_transforms, 3);
    CHECK_INT(b.parts.test->n_transforms, 2);
    CHECK(b.parts.model->step->opts.dense_targets); // floats: probabilities
    CHECK_OK(tt_fit_with(b.parts.model, b.parts.train, b.parts.fit));
    job_close(&b);
    job_build_fails(
        "data:\n"
        "  train: {digits: 8}\n"
        "  transform:\n"
        "    - random_flip\n"
        "    - one_hot\n"
        "model: [flatten]\n",
        "j.yaml:5:7: data.transform.1: one_hot: field 'x' is f32; it must be i32, i64 or u8");
}

TEST(job_without_train_is_not_compiled)
{
    test_need_yaml();
    job_built b = job_build_ok("data: {test: {digits: 8}}\nmodel: [flatten, dense: 10]\n");
    CHECK(b.parts.train == NULL && b.parts.test != NULL);
    CHECK(tt_model_get_train_graph(b.parts.model) == NULL);
    job_close(&b);
    b = job_build_ok("model:\n  inputs: {x: {shape: [4]}}\n  layers: [dense: 3]\n");
    CHECK_INT(tt_model_parameters(b.parts.model), 4 * 3 + 3);
    job_close(&b);
}

TEST(job_models_may_join_and_share)
{
    test_need_yaml();
    // Names, from, share: two towers of one weight, joined; 784*5+5 and 10*2+2 parameters.
    job_built b = job_build_ok("data: {train: {digits: 8}}\n"
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
    job_close(&b);

    // x + f(x), also inside another, from elsewhere, with an activation.
    b = job_build_ok("data: {train: {digits: 8}}\n"
                     "model:\n"
                     "  - flatten\n"
                     "  - dense: {units: 6, name: base}\n"
                     "  - residual: [dense: 6, residual: [dense: 6]]\n"
                     "  - residual: {layers: [dense: 6], act: relu, from: base, name: r}\n"
                     "  - dense: {units: 2, from: r}\n");
    CHECK_INT(tt_model_parameters(b.parts.model), 784 * 6 + 6 + 3 * (36 + 6) + 12 + 2);
    job_close(&b);
}

TEST(job_models_say_what_is_wrong)
{
    test_need_yaml();
    const char *data = "data: {train: {digits: 8}}\n";
    static const struct {
        const char *model, *message;
    } cases[] = {
        {"model: [flatten, dense: {units: 3, from: flaten_1}]\n",
         "j.yaml:2:42: model.1.dense.from: there is no layer or input 'flaten_1' before this one; "
         "did you mean 'flatten_1'?"},
        {"model: [flatten, dense: {units: 3, share: zzz}]\n",
         "j.yaml:2:43: model.1.dense.share: there is no layer or input 'zzz' before this one"},
        {"model: []\n", "j.yaml:2:8: model: has no layers"},
        {"model: [residual: []]\n", "j.yaml:2:19: model.0.residual: layers must be given"},
        {"model: [embedding: {width: 4}]\n",
         "j.yaml:2:20: model.0.embedding: vocab must be given: the data does not define it"},
        {"model: {inputs: [a, b, c], layers: [flatten]}\n",
         "j.yaml:2:18: model.inputs.a: the data has no field 'a'; its fields are 'x' and 'y'"},
        {"model: {layers: [flatten], outputs: [flatten_1, q]}\n",
         "j.yaml:2:37: model.outputs: there is no layer or input 'q' before this one"},
        {"model: [flatten, residual: {layers: [dense: 784], name: flatten_1}]\n",
         "j.yaml:2:28: model.1.residual: the model already has a layer 'flatten_1'"},
        {"model: [flatten, conv2d: 3]\n",
         "j.yaml:2:26: model.1.conv2d: conv2d_1: x is [b, 784]; it must be [batch, height, width, "
         "channels]"},
    };
    for (int i = 0; i < TTI_COUNT(cases); i++) {
        char yaml[512];
        snprintf(yaml, sizeof(yaml), "%s%s", data, cases[i].model);
        job_build_fails(yaml, cases[i].message);
    }
    job_build_fails(
        "model: [flatten]\n",
        "j.yaml:1:8: model: the job has no data, so model.inputs must describe the inputs");
}

TEST(job_optimizers_and_losses_reach_compile)
{
    test_need_yaml();
    job_built b =
        job_build_ok("data: {train: {digits: 16}}\n"
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
    const tt_fit_opts *f = b.parts.fit;
    CHECK(f->steps == 2 && f->batch == 8 && f->accumulate == 2 && f->nan == TT_NAN_SKIP);
    CHECK(f->save_every == 7 && f->keep == 2 && f->early_stop->patience == 2);
    CHECK_STR(f->early_stop->value, "loss");
    CHECK_STR(f->best->value, "loss");
    CHECK(f->plateau->value == NULL && f->plateau->patience == 0);
    CHECK_OK(tt_fit_with(b.parts.model, b.parts.train, f));
    job_close(&b);
}

// Heads of one model that learn one label: classes, or after one_hot probabilities.
TEST(job_losses_may_share_a_target)
{
    test_need_yaml();
    const char *const transforms[] = {"", ", transform: [one_hot: {field: y}]"};
    for (int i = 0; i < 2; i++) {
        char text[1024];
        snprintf(text, sizeof(text),
                 "data: {train: {digits: 16}%s}\n"
                 "model:\n"
                 "  layers:\n"
                 "    - flatten\n"
                 "    - dense: {units: 10, name: a}\n"
                 "    - dense: {units: 10, name: b, from: flatten_1}\n"
                 "  outputs: [a, b]\n"
                 "train:\n"
                 "  steps: 2\n"
                 "  batch: 8\n"
                 "  losses:\n"
                 "    - cross_entropy: {output: a, target: y}\n"
                 "    - cross_entropy: {output: b, target: y, weight: 0.5}\n",
                 transforms[i]);
        job_built b = job_build_ok(text);
        CHECK_OK(tt_fit_with(b.parts.model, b.parts.train, b.parts.fit));
        job_close(&b);
    }
}

TEST(job_zero_means_zero)
{
    test_need_yaml();
    job_built b = job_build_ok(
        "data: {train: {digits: 16}}\n"
        "model: [flatten, dense: 10]\n"
        "train:\n"
        "  loss: cross_entropy\n"
        "  optimizer:\n"
        "    adamw: {beta1: 0, weight_decay: 0, groups: [{match: '*.bias', lr_scale: 0}]}\n");
    const tt_optimizer *o = b.parts.model->step->opts.optimizer;
    CHECK(o->weight_decay == 0 && o->beta1 == 0 && o->beta2 == 0.999);
    static float bias[10], weight[7840], first[7840];
    tt_session *s = tt_model_get_session(b.parts.model);
    const tti_weight *w = b.parts.model->weights;
    CHECK_STR(w[1].name, "dense_1.bias");
    CHECK_OK(tt_get_variable(s, w[0].train_var, first, sizeof(first)));
    CHECK_OK(tt_fit_with(b.parts.model, b.parts.train, b.parts.fit));
    s = tt_model_get_session(b.parts.model);
    CHECK_OK(tt_get_variable(s, w[0].train_var, weight, sizeof(weight)));
    CHECK_OK(tt_get_variable(s, w[1].train_var, bias, sizeof(bias)));
    CHECK(memcmp(weight, first, sizeof(first)) != 0);
    for (int i = 0; i < 10; i++)
        CHECK(bias[i] == 0); // its learning rate is 0
    job_close(&b);
}

TEST(job_building_without_memory)
{
    test_need_yaml();
    int k = 1, built_at = 0;
    for (; k < 4000 && built_at == 0; k++) {
        tt_ctx *ctx = test_ctx();
        tti_fail_alloc_at(ctx, k);
        tt_job *j = job_parse(ctx, job_small);
        tti_fail_alloc_at(ctx, 0);
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
    tt_job *j = job_parse(reader, job_small);
    for (k = 1; k < 40000; k += k < 200 ? 1 : 17) { // most of it is the model's, tested there
        tt_ctx *ctx = test_ctx();
        tt_job_parts parts;
        tti_fail_alloc_at(ctx, k);
        tt_status st = tt_job_build(j, ctx, &parts);
        tti_fail_alloc_at(ctx, 0);
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

// ---- recomputation ---------------------------------------------------------------------------

static void check_recompute(const char *yaml, const char *want)
{
    tt_ctx *ctx = test_ctx();
    char text[1024];
    snprintf(text, sizeof(text), "%s  recompute: %s\n", job_small, yaml);
    tt_job *j = job_parse(ctx, text);
    ck_assert_msg(j != NULL, "%s: %s", yaml, tt_last_error(ctx).message);
    CHECK_STR(tt_job_get(j, "train.recompute"), want);
    CHECK_OK(tt_close(ctx));
}

TEST(recompute_is_a_word_a_list_or_a_budget)
{
    test_need_yaml();
    check_recompute("all", "all");
    check_recompute("[conv2d, dense*]", "conv2d, dense*");
    check_recompute("{budget: 4GiB}", "budget 4GiB");
    check_recompute("budget 4GiB", "budget 4GiB");
    tt_ctx *ctx = test_ctx();
    char text[1024];
    snprintf(text, sizeof(text), "%s  recompute: {bugdet: 4GiB}\n", job_small);
    CHECK(job_parse(ctx, text) == NULL);
    CHECK_MESSAGE(ctx, "train.recompute: a map here must have the single key 'budget'");
    CHECK(tt_close(ctx) == TT_EINVAL);
}
