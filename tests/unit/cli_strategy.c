/*
 * cli_strategy.c - --strategy of the verbs that read a job, and how far lanes let it be spread.
 */
#include "../command.h"
#include <stdio.h>

#define out command_out
#define err command_err

TEST(strategies_are_chosen_by_a_flag)
{
    static const char *const verbs[] = {"train", "plan", "eval", "predict", "bench"};
    command_write("small.yaml", command_small_job);
    for (size_t i = 0; i < sizeof(verbs) / sizeof(verbs[0]); i++) {
        char line[128];
        snprintf(line, sizeof(line), "%s small.yaml --strategy mirored", verbs[i]);
        CHECK_INT(command_run(line), 2);
        CHECK_HAS(err, "--strategy: 'mirored' is unknown; did you mean 'mirrored'?");
        snprintf(line, sizeof(line), "%s small.yaml --strategy swarmed", verbs[i]);
        CHECK_INT(command_run(line), 2);
        CHECK_HAS(err, "'swarmed' is not one of single, mirrored, central, pipeline");
    }
    command_ok("train small.yaml --dry-run --strategy mirrored --devices cpu:0*2");
    CHECK_HAS(out, "strategy: mirrored");
    command_ok("train small.yaml --strategy mirrored --devices cpu:0*2");
    CHECK_HAS(out, "scaling     up to 8 replicas (lanes: 8)\n");
    command_ok("eval small --strategy mirrored --devices cpu:0*2");
    command_ok("predict small --strategy mirrored --devices cpu:0*2 --count 3");
}

TEST(plans_say_how_far_lanes_go)
{
    command_write("small.yaml", command_small_job);
    command_ok("plan small.yaml --lanes 4 --strategy mirrored --devices cpu:0*2");
    CHECK_HAS(out, "\nup to 4 replicas (lanes: 4)\n");
    CHECK_INT(command_run("plan small.yaml --lanes 2 --strategy mirrored --devices cpu:0*3"), 3);
    CHECK_HAS(err, "3 replicas, but 2 lanes, and a replica needs at least one; use lanes: 3");
}

TEST(plans_are_made_for_machines_that_are_not_here)
{
    command_write("small.yaml", command_small_job);
    command_ok("plan small.yaml --strategy mirrored --topology 4x2 --verify");
    CHECK_HAS(out, "task:3/cpu:1");
    CHECK_HAS(out, "the plan was checked: every rule holds\n\nup to 8 replicas (lanes: 8)\n");
    command_ok("plan small.yaml --strategy mirrored --topology 8x8cpu --lanes 64 --verify");
    CHECK_HAS(out, "task:7/cpu:7");
    command_ok("plan small.yaml --strategy mirrored --devices cpu:0*3 --verify");
    CHECK_HAS(out, "the plan was checked");
    CHECK_INT(command_run("plan small.yaml --strategy mirrored --topology 16 --lanes 8"), 3);
    CHECK_HAS(err, "16 replicas, but 8 lanes, and a replica needs at least one; use lanes: 16");
    CHECK_INT(command_run("plan small.yaml --topology 999x999"), 3);
    CHECK_HAS(err, "999 hosts of 999 devices; at most 65536 devices are allowed");
    CHECK_INT(command_run("plan small.yaml --topology many"), 3);
    CHECK_HAS(err, "topology 'many': use hosts x devices and their kind, such as 8x4cpu");
}

// Bytes the first device receives in a step.
static double received(const char *share)
{
    char line[256];
    snprintf(
        line, sizeof(line),
        "plan wide.yaml --strategy mirrored --devices cpu:0*2 --json --set distribute.share=%s",
        share);
    command_ok(line);
    json_t *o = json_loads(out, 0, NULL);
    CHECK(o != NULL);
    const json_t *device = json_array_get(json_object_get(o, "devices"), 0);
    double n = json_number_value(json_object_get(device, "received"));
    json_decref(o);
    return n;
}

// Lanes 0 to 2 are two sub-trees, 3 to 7 too: of each gradient twice as many sums are exchanged,
// but the weights are gathered once, as before. W weights, of 4 bytes each.
TEST(plans_count_every_partial_sum)
{
    const double weights = 784 * 512 * 4, small = 512 * 10 * 4 + 522 * 4;
    command_write("wide.yaml", "data: {train: {digits: {count: 32}}}\n"
                               "model: [flatten, {dense: 512}, {dense: 10}]\n"
                               "train: {steps: 2, batch: 32, loss: cross_entropy}\n");
    double even = received("equal"), odd = received("[3,5]");
    CHECK(even >= weights && even <= weights + 2 * small + 100);
    CHECK(odd >= 1.5 * weights && odd <= 1.5 * weights + 3 * small + 100);
}

TEST(plans_of_pipelines_say_how_much_is_idle)
{
    command_write("small.yaml", command_small_job);
    command_ok("plan small.yaml --strategy pipeline --devices cpu:0*2");
    CHECK_HAS(out, "pipeline: 1f1b, 2 stages on 2 devices; devices idle ");
    CHECK_HAS(out, "(11.1 % if all cost the same)\n");
    command_ok("plan small.yaml --strategy pipeline --devices cpu:0*2 --json");
    CHECK_HAS(out, "\"bubble\":0.");
    CHECK_HAS(out, "\"even_bubble\":0.111111");
}

TEST(jobs_name_options_that_do_not_go_with_the_strategy)
{
    command_write("small.yaml", command_small_job);
    CHECK_INT(command_run("plan small.yaml --strategy mirrored --set distribute.stages=2"), 3);
    CHECK_HAS(err, "distribute: strategy mirrored has no option stages; strategy pipeline has");
    CHECK_INT(command_run("plan small.yaml --strategy mirrored --set distribute.share=2,x"), 3);
    CHECK_HAS(err, "share '2,x': 'x' is not a number");
    CHECK_INT(command_run("plan small.yaml --strategy mirrored --set distribute.share=[2,1,1] "
                          "--devices cpu:0*2"),
              3);
    CHECK_HAS(err, "has 3 numbers, but there are 2 replicas");
    CHECK_INT(command_run("plan small.yaml --set distribute.wire=i32"), 3);
    CHECK_HAS(err, "wire is i32; use f32, bf16 or f16");
}

// A run of a pipeline is resumed with a word: what belongs to the pipeline is left out.
TEST(another_strategy_leaves_the_options_of_the_jobs_own)
{
    char job[4096];
    snprintf(job, sizeof(job),
             "%sdistribute: {strategy: pipeline, devices: cpu:0*4, replicas: 2, schedule: gpipe}\n",
             command_small_job);
    command_write("piped.yaml", job);
    command_ok("train piped.yaml --run r --quiet");
    CHECK_STR(err, "");
    command_ok("train r --resume --set train.epochs=4 --strategy single --devices cpu:0");
    CHECK_HAS(err, "ignored, because strategy single has no such option: replicas, schedule\n");
    command_read("r/job.yaml", out, sizeof(out));
    CHECK_HAS(out, "replicas: 0");
    CHECK_HAS(out, "schedule: 1f1b");
    command_ok("train piped.yaml --dry-run --strategy mirrored --set distribute.replicas=4");
    CHECK_INT(command_run("train piped.yaml --strategy single --set distribute.stages=2"), 3);
    CHECK_HAS(err, "strategy single has no option stages; strategy pipeline has");
}

// What was trained by pins goes on, and is used, where there is one device; with the same weights.
TEST(one_device_leaves_out_pins)
{
    char hash[64];
    command_write("split.yaml", "data: {train: {digits: 64}, test: {digits: 16}}\n"
                                "model:\n"
                                "  - flatten\n"
                                "  - residual: {layers: [dense: 784], device: local:1}\n"
                                "  - dense: {units: 20, device: local:1}\n"
                                "  - dense: 10\n"
                                "train: {batch: 32, epochs: 2, loss: cross_entropy}\n"
                                "distribute: {devices: cpu:0*2, pins: {dense_3: local:0}}\n");
    command_ok("train split.yaml --run whole");
    snprintf(hash, sizeof(hash), "%.44s", strstr(out, "\nweights "));
    command_ok("train split.yaml --run r --quiet --set train.epochs=1");
    command_ok("eval r --devices cpu:0");
    CHECK_HAS(err, "pins are ignored: there is only cpu:0\n");
    command_ok("train r --resume --devices cpu:0 --set train.epochs=2");
    CHECK_HAS(out, hash);
    command_ok("eval r"); // the run's job has no pins any more
    CHECK_STR(err, "");
    // Pins that are given beside it count.
    CHECK_INT(command_run("train split.yaml --devices cpu:0 --set distribute.pins.dense_1=local:1"),
              3);
    CHECK_HAS(err, "is pinned to local:1, but there is only cpu:0");
}
