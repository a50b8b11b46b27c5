/*
 * processes_fit.c - fit, evaluate, save and load as a program calls them, in every process of a
 * job: each reads its own rows only, all get the same results, rank 0 writes, and what one of them
 * says or cannot do is everybody's.
 */
#include "world_test.h"
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#define RECORDS 60
#define BATCH   16
#define EPOCHS  2

typedef struct made {
    _Atomic int *n_read;
    int64_t bad; // this record cannot be read
} made;

static tt_status made_read(tt_ctx *ctx, void *self, int64_t i, void *const *out)
{
    made *m = self;
    (*m->n_read)++;
    if (i == m->bad)
        return TT_FAIL(ctx, TT_EIO, "made.bin: record %d is bad", (int)i);
    for (int k = 0; k < 4; k++)
        ((float *)out[0])[k] = (float)((i * 7 + k * 5) % 13) / 13.0f;
    ((float *)out[1])[0] = (float)(i % 5) / 5.0f;
    return TT_OK;
}

typedef struct task {
    int64_t bad_on; // rank that cannot read a record; -1: none
    int stops_on;   // rank whose callback ends the fit after 3 steps; -1: none
    const char *folder;
} task;

static tt_status stop(void *user, tt_model *m, const tt_progress *p)
{
    (void)m;
    return *(const bool *)user && p->step >= 3 ? TT_ESTOP : TT_OK;
}

// The mean squared error, as a program would write it.
static tt_status squares_build(void *user, tt_graph *g, const tt_metric_inputs *in,
                               tt_tensor **states)
{
    (void)user;
    tt_tensor *d = tt_sub(g, in->target, in->output);
    states[0] = tt_sum(g, tt_mul(g, d, d));
    states[1] = tt_sum(g, tt_broadcast(g, tt_scalar(g, 1), d));
    return TT_OK;
}

static double squares_value(void *user, const double *const *sums, const int64_t *sizes)
{
    (void)user;
    (void)sizes;
    return sums[0][0] / sums[1][0];
}

// What a program does, the same in all processes.
static void program(world_job *j, int rank, tt_ctx *ctx)
{
    const task *t = j->arg;
    char path[500];
    bool stops = t->stops_on == rank;
    made own = {.n_read = &j->ranks[rank].stage, .bad = t->bad_on == rank ? 40 : -1};
    tt_source s = {
        .count = RECORDS,
        .n_fields = 2,
        .fields = {{.name = "x", .shape = TT_SHAPE(4)}, {.name = "y", .shape = TT_SHAPE(1)}},
        .self = &own,
        .read = made_read};
    tt_data *d = tt_data_new(ctx, &s, .batch = BATCH, .workers = -1);
    tt_model *m = tt_sequential(ctx, .input = {4});
    tt_layer_dense(m, .units = 8, .act = TT_RELU);
    tt_layer_dense(m, .units = 1);
    tt_compile(
        m, .loss = TT_MSE, .optimizer = tt_adam(.lr = 1e-2f), .metrics = TT_METRIC_MSE,
        .own_metrics = {tt_metric("squares", squares_build, squares_value, NULL, true, NULL)});
    snprintf(path, sizeof(path), "%s/run", t->folder);
    tt_fit(m, d, .epochs = EPOCHS, .checkpoints = path,
           .callbacks = {tt_callback(TT_AT_STEP, 1, stop, &stops)});
    int n_fit = j->ranks[rank].stage;
    tt_evaluation e = {.loss = 0};
    tt_fit_report report = {.steps = 0};
    tt_hash hash = {0, 0}, loaded = {0, 0};
    if (tt_evaluate(m, d, &e, .batch = BATCH) != TT_OK || tt_fit_report_get(m, &report) != TT_OK ||
        tt_model_hash(m, &hash) != TT_OK)
        return;
    int n_evaluate = j->ranks[rank].stage - n_fit;
    snprintf(path, sizeof(path), "%s/model", t->folder);
    tt_save(m, path);
    tt_fit(m, d, .epochs = 1);
    tt_load(m, path);
    if (tt_model_hash(m, &loaded) != TT_OK)
        return;
    snprintf(j->ranks[rank].note, sizeof(j->ranks[rank].note), "%lld %a %a %a %016llx %d",
             (long long)report.steps, e.loss, e.metrics[1], report.last->metrics[1],
             (unsigned long long)hash.low,
             e.metrics[0] == e.metrics[1] && report.last->metrics[0] == report.last->metrics[1] &&
                 loaded.low == hash.low && loaded.high == hash.high);
    j->ranks[rank].hash = (uint64_t)n_fit << 32 | (uint64_t)n_evaluate;
}

static const char *new_folder(int n)
{
    static char path[400];
    snprintf(path, sizeof(path), "%s/%d", test_folder(), n);
    CHECK(mkdir(path, 0700) == 0);
    return path;
}

static void all_well(const world_job *j)
{
    for (int i = 0; i < j->n; i++)
        ck_assert_msg(j->ranks[i].status == TT_OK, "rank %d of %d: %s", i, j->n,
                      j->ranks[i].message);
}

TEST(processes_fit_reads_each_row_once)
{
    char want[256] = "";
    for (int n = 1; n <= 4; n++) {
        task t = {.bad_on = -1, .stops_on = -1, .folder = new_folder(n)};
        world_job j = {
            .n = n, .strategy = "mirrored", .devices = "cpu:0", .run = program, .arg = &t};
        uint64_t n_fit = 0, n_evaluate = 0;
        world_run(&j);
        all_well(&j);
        if (n == 1)
            snprintf(want, sizeof(want), "%s", j.ranks[0].note);
        for (int i = 0; i < n; i++) {
            CHECK_STR(j.ranks[i].note, want);
            CHECK(j.ranks[i].hash >> 32 > 0);
            n_fit += j.ranks[i].hash >> 32;
            n_evaluate += j.ranks[i].hash & UINT32_MAX;
        }
        // Before that, several compare their data: so few records are all read by each.
        CHECK_INT(n_fit, RECORDS * EPOCHS + (n > 1 ? n * RECORDS : 0));
        CHECK_INT(n_evaluate, RECORDS);
    }
    CHECK(strstr(want, "8 0x") == want && want[strlen(want) - 1] == '1');
}

TEST(processes_fit_ends_when_one_says_so)
{
    task t = {.bad_on = -1, .stops_on = 1, .folder = new_folder(0)};
    world_job j = {.n = 3, .strategy = "mirrored", .devices = "cpu:0", .run = program, .arg = &t};
    world_run(&j);
    all_well(&j);
    for (int i = 0; i < 3; i++)
        CHECK_STR(j.ranks[i].note, j.ranks[0].note);
    CHECK(j.ranks[0].note[0] == '3'); // after that step, as one process does
}

TEST(processes_fit_fails_when_one_does)
{
    for (int rank = 0; rank < 2; rank++) {
        task t = {.bad_on = rank, .stops_on = -1, .folder = new_folder(rank)};
        world_job j = {
            .n = 2, .strategy = "mirrored", .devices = "cpu:0", .run = program, .arg = &t};
        world_run(&j);
        for (int i = 0; i < 2; i++) {
            ck_assert_msg(j.ranks[i].status == TT_EIO, "rank %d: %s", i, j.ranks[i].message);
            ck_assert_msg(strstr(j.ranks[i].message, "made.bin: record 40 is bad") != NULL, "%s",
                          j.ranks[i].message);
        }
    }
}
