/*
 * pins.c - layers on devices by hand: "device:" of a layer, "pins:" of patterns, names relative to
 * the replica; and what jobs say when they cannot mean it.
 */
#include "../jobs.h"
#include "device/device.h"
#include "job/job.h"
#include "model/model.h"
#include <stdio.h>

#define HEAD "data: {train: {digits: {count: 32}}}\n"
#define TAIL "train: {steps: 2, batch: 16, loss: cross_entropy, optimizer: adam}\n"

// "dense_1=local:0 dense_2=-": the layers of a job's model and where they are pinned.
static void check_pins(const char *yaml, const char *want)
{
    job_built b = job_build_ok(yaml);
    char got[1024] = "";
    size_t n = 0;
    for (int64_t i = 0; i < b.parts.model->n_layers; i++) {
        const tti_layer *l = b.parts.model->layers[i];
        if (l->def == NULL)
            continue;
        n += (size_t)snprintf(got + n, sizeof(got) - n, "%s%s=", n > 0 ? " " : "", l->name);
        if (l->has_pin)
            n += (size_t)snprintf(got + n, sizeof(got) - n, "%s:%d", l->pin.type, l->pin.index);
        else
            n += (size_t)snprintf(got + n, sizeof(got) - n, "-");
    }
    CHECK_STR(got, want);
    job_close(&b);
}

TEST(layers_have_devices)
{
    check_pins(HEAD "model:\n"
                    "  - flatten\n"
                    "  - dense: {units: 8, device: cpu:1}\n"
                    "  - dense: 8\n"
                    "    device: local:1\n"
                    "  - residual:\n"
                    "      layers: [{dense: 8}, {dense: {units: 8, device: local:0}}]\n"
                    "      device: local:2\n"
                    "  - dense: 10\n" TAIL,
               "flatten_1=- dense_1=cpu:1 dense_2=local:1 dense_3=local:2 dense_4=local:0 "
               "add_1=local:2 dense_5=-");
}

// Of two patterns that match the first counts; the layer's own device counts before both.
TEST(patterns_pin_layers)
{
    check_pins(HEAD "model:\n"
                    "  - flatten\n"
                    "  - dense: {units: 8, name: block_0a}\n"
                    "  - dense: {units: 8, name: block_0b, device: cpu:2}\n"
                    "  - dense: {units: 8, name: block_1}\n"
                    "  - dense: 10\n" TAIL
                    "distribute: {devices: 'cpu:0*3', pins: {block_0*: local:0, 'dense*': "
                    "\"cpu:1\", 'block*': local:1}}\n",
               "flatten_1=- block_0a=local:0 block_0b=cpu:2 block_1=local:1 dense_1=cpu:1");
}

// What a ready model is made of has names too.
TEST(patterns_pin_layers_of_composites)
{
    job_built b = job_build_ok("data: {train: {digits: {count: 32}}}\n"
                               "model:\n"
                               "  - flatten\n"
                               "  - mlp: {units: [16, 10]}\n" TAIL
                               "distribute: {devices: 'cpu:0*2', pins: {'dense_2': local:1}}\n");
    int pinned = 0;
    for (int64_t i = 0; i < b.parts.model->n_layers; i++)
        pinned += b.parts.model->layers[i]->has_pin;
    CHECK_INT(pinned, 1);
    job_close(&b);
}

TEST(bad_pins_are_refused)
{
    job_build_fails(
        HEAD "model:\n  - flatten\n  - dense: {units: 10, device: 'cpu:x'}\n" TAIL,
        "j.yaml:4:32: model.1.dense.device: device 'cpu:x': the index must be a number");
    job_build_fails(
        HEAD "model: [flatten, {dense: 10}]\n" TAIL
             "distribute:\n  pins:\n    dense*: local:0\n    dens_1: local:0\n",
        "j.yaml:7:5: distribute.pins: 'dens_1' matches no layer; did you mean 'dense_1'?");
    job_build_fails(
        HEAD "model: [flatten, {dense: 10}]\n" TAIL "distribute: {pins: {'block*': local:0}}\n",
        "j.yaml:4:21: distribute.pins: 'block*' matches no layer; the first is 'flatten_1'");
    job_build_fails(HEAD "model: [flatten, {dense: 10}]\n" TAIL
                         "distribute: {pins: {'dense*': 'a b'}}\n",
                    "j.yaml:4:31: distribute.pins.dense*: device 'a b': the type must be a name "
                    "such as cpu or gpu");
}

// Where layers are does not change what they compute: a checkpoint's job must not say it.
TEST(devices_are_no_part_of_a_checkpoints_job)
{
    static const char *const models[] = {
        "model:\n  - flatten\n  - dense: {units: 10, device: local:1}\n",
        "model:\n  - flatten: {device: cpu:0}\n  - dense: {units: 10}\n"};
    char *core[2], *whole;
    job_built b[2];
    for (int i = 0; i < 2; i++) {
        char yaml[512];
        snprintf(yaml, sizeof(yaml), HEAD "%s" TAIL "distribute: {devices: 'cpu:0*2'}\n",
                 models[i]);
        b[i] = job_build_ok(yaml);
        core[i] = tt_job_core_print(b[i].job);
        CHECK(core[i] != NULL && strstr(core[i], "device") == NULL);
    }
    CHECK_STR(core[0], core[1]);
    CHECK(strstr(core[0], "flatten: {name: \"\", from: \"\", share: \"\"}") != NULL);
    whole = tt_job_print(b[0].job);
    CHECK(strstr(whole, "device: \"local:1\"") != NULL);
    tt_job *again = tt_job_parse(b[0].reader, whole, strlen(whole), "again.yaml");
    CHECK(again != NULL);
    char *twice = tt_job_print(again);
    CHECK_STR(twice, whole);
    tt_string_free(b[0].reader, whole);
    tt_string_free(b[0].reader, twice);
    for (int i = 0; i < 2; i++) {
        tt_string_free(b[i].reader, core[i]);
        job_close(&b[i]);
    }
}

// An input that a user calls device is none.
TEST(inputs_may_be_called_device)
{
    job_built b =
        job_build_ok("data: {train: {digits: {count: 32}}}\n"
                     "model: {inputs: {device: {}}, layers: [flatten, {dense: 10}]}\n" TAIL);
    char *core = tt_job_core_print(b.job);
    CHECK(strstr(core, "device:") != NULL);
    tt_string_free(b.reader, core);
    job_close(&b);
}

TEST(pinned_jobs_survive_missing_memory)
{
    static const char yaml[] =
        HEAD "model:\n  - flatten\n  - dense: {units: 10, device: local:1}\n" TAIL
             "distribute: {devices: 'cpu:0*2', pins: {'flat*': local:0, 'dense*': local:0}}\n";
    for (int64_t k = 1;; k += 7) {
        tt_ctx *reader = test_ctx(), *ctx = test_ctx_on("cpu:0*2", NULL, 1);
        tt_job *j = job_parse(reader, yaml);
        tt_job_parts parts;
        CHECK(j != NULL);
        tti_fail_alloc_at(ctx, k);
        tt_status st = tt_job_build(j, ctx, &parts);
        tti_fail_alloc_at(ctx, 0);
        CHECK(st == TT_OK || st == TT_ENOMEM);
        CHECK(tt_close(ctx) == st);
        CHECK_OK(tt_close(reader));
        if (st == TT_OK)
            break;
    }
}

// ---- names -----------------------------------------------------------------------------------

TEST(local_devices_are_the_contexts)
{
    tt_ctx *ctx = test_ctx_on("cpu:0*3", NULL, 1);
    tt_device_name name;
    for (int i = 0; i < 3; i++) {
        char text[16];
        snprintf(text, sizeof(text), "Local:%d", i);
        CHECK_OK(tt_device_parse(ctx, text, &name));
        CHECK_STR(name.type, "local");
        CHECK(tti_device_match(&ctx->top, &name) == ctx->top.devices[i]);
    }
    CHECK_OK(tt_device_parse(ctx, "local", &name));
    CHECK(tti_device_match(&ctx->top, &name) == ctx->top.devices[0]);
    CHECK_OK(tt_device_parse(ctx, "local:3", &name));
    CHECK(tti_device_match(&ctx->top, &name) == NULL);
    CHECK_OK(tt_close(ctx));
}

TEST(local_pins_place_nodes)
{
    tt_ctx *ctx = test_ctx_on("cpu:0*2", NULL, 1);
    tt_graph *g = tt_graph_new(ctx);
    tt_tensor *y = tt_relu(g, test_uniform(g, 1, TT_SHAPE(4, 5)));
    CHECK_OK(tt_pin(y, "local:1"));
    tt_session *s = tt_session_new(g);
    char *plan = tt_plan_print(s, .targets = &y, .n_targets = 1);
    CHECK(plan != NULL && strstr(plan, "cpu:1") != NULL);
    tt_string_free(ctx, plan);
    tt_tensor *z = tt_relu(g, y);
    CHECK_OK(tt_pin(z, "local:2"));
    CHECK(tt_plan_print(s, .targets = &z, .n_targets = 1) == NULL);
    CHECK_MESSAGE(ctx, "is pinned to local:2, but there is only cpu:0, cpu:1");
    CHECK(tt_close(ctx) == TT_EINVAL);
}

TEST(a_pin_to_no_device_is_told_which_there_are)
{
    tt_ctx *ctx = tt_open(.devices = "cpu:0*2", .strategy = "mirrored");
    tt_graph *g = tt_graph_new(ctx);
    tt_tensor *w = tt_variable(g, .shape = {5}, .name = "w");
    CHECK_OK(tt_pin(w, "cpu:7"));
    tt_session *s = tt_session_new(g);
    CHECK(tt_plan_print(s, .targets = &w, .n_targets = 1) == NULL);
    CHECK_MESSAGE(ctx, "'w' is pinned to /device:CPU:7, but there is only cpu:0, cpu:1");
    CHECK(tt_close(ctx) == TT_EINVAL);
}

static tt_hash weights_of(const char *more)
{
    char yaml[1024];
    snprintf(yaml, sizeof(yaml),
             HEAD "model:\n"
                  "  - flatten\n"
                  "  - dense: {units: 24, act: relu}\n"
                  "  - dense: 10\n" TAIL "%s",
             more);
    job_built b = job_build_ok(yaml);
    tt_hash h;
    tt_fit_opts o = *b.parts.fit;
    tt_status st = tt_fit_with(b.parts.model, b.parts.train, &o);
    ck_assert_msg(st == TT_OK, "%s", tt_last_error(b.ctx).message);
    CHECK_OK(tt_model_hash(b.parts.model, &h));
    job_close(&b);
    return h;
}

TEST(pins_change_no_bit)
{
    static const char *const others[] = {
        "devices: 'cpu:0*2'", "devices: 'cpu:0*2', strategy: pipeline",
        "devices: 'cpu:0*4', strategy: mirrored", "devices: 'cpu:0*4', strategy: central",
        "devices: 'cpu:0*4', strategy: pipeline"};
    tt_hash one = weights_of("");
    for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++) {
        char more[200];
        snprintf(more, sizeof(more), "distribute: {%s, pins: {dense_2: local:1}}\n", others[i]);
        tt_hash two = weights_of(more);
        ck_assert_msg(one.low == two.low && one.high == two.high, "%s", more);
    }
}

// What stands before the pinned layers is on the first device, as with strategy single.
TEST(unpinned_layers_stay_on_the_first_device)
{
    job_built b =
        job_build_ok(HEAD "model: [flatten, {dense: 24}, {dense: 10}]\n" TAIL
                          "distribute: {devices: 'cpu:0*4', strategy: mirrored, pins: {dense_2: "
                          "local:1}}\n");
    tt_fit_opts o = *b.parts.fit;
    CHECK_OK(tt_fit_with(b.parts.model, b.parts.train, &o));
    for (int d = 0; d < 4; d++) {
        tt_device_info info;
        CHECK_OK(tt_device_get(b.ctx, d, &info));
        CHECK(info.variables > 0);
    }
    job_close(&b);
}
