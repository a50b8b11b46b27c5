/*
 * advice.c - jobs over a device's limit: refused before the first step, with what would make them
 * fit. Each thing that is said is done, and must hold to the byte.
 */
#include "../command.h"
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static const char wide[] = "data: {train: {digits: {count: 600}}}\n"
                           "model: [flatten, mlp: {units: [64,64,64,64,64,64,64,64,64,64,10]}]\n"
                           "train: {batch: 600, loss: cross_entropy, optimizer: sgd}\n";

static const char checked[] = "data: {train: {digits: {count: 64}}, validate: {digits: 64}}\n"
                              "model:\n"
                              "  - conv2d: {filters: 8, padding: same, act: relu}\n"
                              "  - conv2d: {filters: 8, padding: same, act: relu}\n"
                              "  - conv2d: {filters: 8, padding: same, act: relu}\n"
                              "  - flatten\n"
                              "  - dense: 10\n"
                              "train: {batch: 48, loss: cross_entropy, optimizer: adam}\n";

typedef enum kind {
    RECOMPUTE,
    ACCUMULATE,
    BATCH,
    MIRRORED,
    PIPELINE,
    BF16,
    N_KINDS,
} kind;

typedef struct advice {
    long long bytes;
    char flags[160];
} advice;

// One line of the message as flags of the command; false: it is no advice.
static bool read_line(const char *line, advice *out, bool *seen)
{
    char devices[64], strategy[16], all[32] = "";
    long long k, batch;
    int at = 0;
    if (sscanf(line, " %lld  %n", &out->bytes, &at) != 1)
        return false;
    line += at;
    if (strncmp(line, "recompute: all", 14) == 0) {
        snprintf(all, sizeof(all), "--set train.recompute=all");
        seen[RECOMPUTE] = true;
        line += line[14] == ',' ? 16 : 14;
    }
    snprintf(out->flags, sizeof(out->flags), "%s", all);
    if (sscanf(line, "accumulate: %lld, batch: %lld", &k, &batch) == 2) {
        snprintf(out->flags, sizeof(out->flags),
                 "--set train.accumulate=%lld --set train.batch=%lld%s%s", k, batch,
                 *all != 0 ? " " : "", all);
        seen[ACCUMULATE] = true;
    } else if (sscanf(line, "batch: %lld", &batch) == 1) {
        snprintf(out->flags, sizeof(out->flags), "--set train.batch=%lld%s%s", batch,
                 *all != 0 ? " " : "", all);
        seen[BATCH] = true;
    } else if (sscanf(line, "devices: \"%63[^\"]\", strategy: %15s", devices, strategy) == 2) {
        snprintf(out->flags, sizeof(out->flags), "--devices %s --strategy %s", devices, strategy);
        seen[strcmp(strategy, "pipeline") == 0 ? PIPELINE : MIRRORED] = true;
    } else if (strncmp(line, "precision: bf16", 15) == 0) {
        snprintf(out->flags, sizeof(out->flags), "--set train.precision=bf16");
        seen[BF16] = true;
    }
    return out->flags[0] != 0;
}

static long long member(const json_t *o, const char *name)
{
    return json_integer_value(json_object_get(o, name));
}

// The fullest device of the plan, as --dry-run has it, with validation.
static long long planned(const char *line)
{
    command_ok(line);
    json_t *o = command_last_object(command_out, NULL);
    const json_t *memory = json_object_get(o, "memory");
    long long most = 0;
    for (size_t i = 0; i < json_array_size(memory); i++) {
        const json_t *d = json_array_get(memory, i);
        long long n = member(d, "total") + member(d, "validation");
        most = n > most ? n : most;
    }
    json_decref(o);
    return most;
}

// Refused with this limit; gives how many things would help. Each is tried.
static int check_advice(const char *limit, bool *seen)
{
    static char message[1 << 16];
    char line[512];
    advice a[16];
    int n = 0;
    snprintf(line, sizeof(line), "train job.yaml --devices cpu:0@%s --quiet", limit);
    CHECK_INT(command_run(line), 3);
    CHECK_HAS(command_err, "more than its limit of ");
    CHECK_HAS(command_err, "settings that would fit, with the bytes needed on the fullest device:");
    snprintf(message, sizeof(message), "%s", strstr(command_err, "settings that would fit"));
    for (char *s = strchr(message, '\n'); s != NULL && n < 16; s = strchr(s + 1, '\n'))
        n += read_line(s + 1, &a[n], seen);
    for (int i = 0; i < n; i++) {
        char devices[64] = "";
        if (strstr(a[i].flags, "--devices") == NULL)
            snprintf(devices, sizeof(devices), "--devices cpu:0@%s ", limit);
        snprintf(line, sizeof(line), "train job.yaml %s%s --quiet", devices, a[i].flags);
        ck_assert_msg(command_run(line) == 0, "'%s' was advised, but: %s", line, command_err);
        snprintf(line, sizeof(line), "train job.yaml %s%s --dry-run --json", devices, a[i].flags);
        ck_assert_msg(planned(line) == a[i].bytes, "%s: %lld bytes were said", line, a[i].bytes);
    }
    return n;
}

TEST(what_is_advised_fits_to_the_byte)
{
    bool seen[N_KINDS] = {false};
    test_need_yaml();
    command_write("job.yaml", wide);
    CHECK(check_advice("3800KiB", seen) >= 5);
    for (int i = 0; i < N_KINDS; i++)
        ck_assert_msg(seen[i], "kind %d was never advised", i);
}

// Little room: fewer things help, and those that are said still do.
TEST(advice_for_a_small_limit_holds)
{
    bool seen[N_KINDS] = {false};
    test_need_yaml();
    command_write("job.yaml", wide);
    CHECK(check_advice("1100KiB", seen) >= 1);
}

// Validation has an arena beside the step's: it is counted before the first step.
TEST(validation_counts_too)
{
    bool seen[N_KINDS] = {false};
    test_need_yaml();
    command_write("job.yaml", checked);
    ck_assert_int_ne(command_run("train job.yaml --devices cpu:0@7200KiB --quiet"), 0);
    CHECK_HAS(command_err, "training needs ");
    CHECK_HAS(command_err, " and validation ");
    char runs[600];
    snprintf(runs, sizeof(runs), "%s/runs", test_folder());
    CHECK(access(runs, F_OK) != 0); // it has no folder
    CHECK(check_advice("7200KiB", seen) >= 2);
    // plan and --dry-run tell what train would.
    ck_assert_int_ne(command_run("train job.yaml --devices cpu:0@7200KiB --dry-run --quiet"), 0);
    CHECK_HAS(command_err, " and validation ");
    ck_assert_int_ne(command_run("plan job.yaml --devices cpu:0@7200KiB"), 0);
    CHECK_HAS(command_err, " and validation ");
    command_ok("plan job.yaml");
    CHECK_HAS(command_out, "validation needs in addition to a step: cpu:0 ");
}

// In a pipeline validation finds the weights where the step has them, not where it would be cut
// best itself; and statistics are read where they are not written.
TEST(what_is_measured_with_validation_is_what_was_planned)
{
    static const char *const ways[] = {"single --devices cpu:0", "mirrored --devices cpu:0*3",
                                       "central --devices cpu:0*3", "pipeline --devices cpu:0*3",
                                       "pipeline --devices cpu:0*4 --set distribute.replicas=2"};
    char line[256];
    test_need_yaml();
    command_write("job.yaml", "data: {train: {digits: 24}, validate: {digits: 24}}\n"
                              "model: {resnet: {width: 4, small: true, over: lane}}\n"
                              "train: {batch: 20, loss: cross_entropy, optimizer: sgd}\n");
    for (size_t i = 0; i < sizeof(ways) / sizeof(ways[0]); i++) {
        snprintf(line, sizeof(line), "train job.yaml --strategy %s --json --dry-run", ways[i]);
        command_ok(line);
        json_t *plan = command_last_object(command_out, NULL);
        snprintf(line, sizeof(line), "train job.yaml --strategy %s --json --no-trial", ways[i]);
        command_ok(line);
        json_t *run = command_last_object(command_out, NULL);
        const json_t *memory = json_object_get(plan, "memory"),
                     *devices = json_object_get(run, "devices");
        ck_assert_uint_eq(json_array_size(memory), json_array_size(devices));
        CHECK(member(json_array_get(memory, 0), "validation") > 0);
        for (size_t k = 0; k < json_array_size(memory); k++) {
            const json_t *d = json_array_get(memory, k);
            long long peak = member(json_array_get(devices, k), "peak_bytes");
            ck_assert_msg(member(d, "total") + member(d, "validation") == peak,
                          "%s: device %zu: %lld and %lld planned, %lld used", ways[i], k,
                          member(d, "total"), member(d, "validation"), peak);
        }
        json_decref(plan);
        json_decref(run);
    }
}

// Fewer micro-batches need fewer partial sums of gradients.
TEST(a_pipeline_is_told_how_many_micro_batches_fit)
{
    long long bytes;
    int micro;
    test_need_yaml();
    command_write("job.yaml", "data: {train: {digits: 32}}\n"
                              "model: [flatten, mlp: {units: [256, 256, 10]}]\n"
                              "train: {batch: 32, loss: cross_entropy, optimizer: sgd}\n"
                              "distribute: {strategy: pipeline}\n");
    CHECK_INT(command_run("train job.yaml --quiet --devices cpu:0*2@3MiB"), 3);
    const char *at = strstr(command_err, "micro: ");
    ck_assert_msg(at != NULL, "%s", command_err);
    while (at[-1] != '\n')
        at--;
    CHECK_INT(sscanf(at, "%lld micro: %d (same bits)", &bytes, &micro), 2);
    char line[160];
    snprintf(line, sizeof(line),
             "train job.yaml --json --dry-run --devices cpu:0*2@3MiB --set distribute.micro=%d",
             micro);
    CHECK(planned(line) == bytes);
}

TEST(a_limit_that_nothing_fits_says_so)
{
    test_need_yaml();
    command_write("job.yaml", wide);
    ck_assert_int_ne(command_run("train job.yaml --devices cpu:0@64KiB --quiet"), 0);
    CHECK_HAS(command_err, "no tried batch, recomputation or number of devices would fit");
    ck_assert_int_ne(command_run("plan job.yaml --devices cpu:0@64KiB"), 0);
    CHECK_HAS(command_err, "this plan needs ");
}

static tt_model *small_mlp(tt_ctx *ctx)
{
    tt_model *m = tt_sequential(ctx, .input = {28, 28, 1});
    tt_layer_flatten(m);
    tt_layer_mlp(m, .units = {11, {64, 64, 64, 64, 64, 64, 64, 64, 64, 64, 10}});
    tt_compile(m, .loss = TT_CROSS_ENTROPY, .optimizer = tt_sgd(.lr = 0.1));
    return m;
}

// The model is as it was: what is fitted next has the weights of one that was never refused.
TEST(a_refused_model_can_still_be_fitted)
{
    tt_hash hash[2];
    for (int i = 0; i < 2; i++) {
        tt_ctx *ctx = tt_open(.devices = i == 0 ? "cpu:0" : "cpu:0@3800KiB", .seed = 3,
                              .on_event = test_ignore_event);
        tt_model *m = small_mlp(ctx);
        tt_data *d = tt_digits(ctx, .count = 600);
        if (i == 1) {
            tt_graph *g = tt_model_get_train_graph(m);
            CHECK(tt_fit(m, d, .batch = 600, .epochs = 1) == TT_ELIMIT);
            CHECK_MESSAGE(ctx, "precision: bf16");
            tt_clear_error(ctx);
            CHECK(tt_model_get_train_graph(m) == g);
        }
        CHECK_OK(tt_fit(m, d, .batch = 64, .epochs = 1));
        tt_plan_memory mem;
        CHECK_OK(tt_plan_memory_get(tt_model_get_session(m), 0, &mem));
        CHECK(i == 0 || mem.total <= mem.limit);
        CHECK_OK(tt_model_hash(m, &hash[i]));
        CHECK_OK(tt_close(ctx));
    }
    CHECK(hash[0].low == hash[1].low && hash[0].high == hash[1].high);
}

// Allocations fail one after another while advice is looked for: nothing leaks or crashes.
TEST(advice_survives_failing_allocations)
{
    for (int k = 1; k < 6000; k += 97) {
        tt_ctx *ctx = tt_open(.devices = "cpu:0@3800KiB", .on_event = test_ignore_event);
        tt_model *m = small_mlp(ctx);
        tt_data *d = tt_digits(ctx, .count = 600);
        tti_fail_alloc_at(ctx, k);
        tt_status st = tt_fit(m, d, .batch = 600, .epochs = 1);
        tti_fail_alloc_at(ctx, 0);
        ck_assert_msg(st == TT_ELIMIT || st == TT_ENOMEM, "allocation %d: %s", k,
                      tt_last_error(ctx).message);
        tt_clear_error(ctx);
        CHECK_OK(tt_close(ctx));
    }
}
