/*
 * processes_runs.c - runs by hand over real processes: what each must give, gets and pays; and what
 * everybody is told when one of them fails, dies or does something else.
 */
#include "base/ctx.h"
#include "model.h"
#include "run/run.h"
#include "world_test.h"
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

static const char *const transports[] = {"shm", "wire"};

static void all_well(const world_job *j)
{
    for (int i = 0; i < j->n; i++)
        ck_assert_msg(j->ranks[i].status == TT_OK, "rank %d of %d (%s): %s", i, j->n,
                      j->tasks.transport, j->ranks[i].message);
}

// ---- batches of every size -------------------------------------------------------------------

static uint64_t train(tt_ctx *ctx, double *loss)
{
    static const int64_t rows[] = {17, 64, 1, 17, 5, 3};
    test_model m;
    tt_hash hash = {0, 0};
    if (!test_model_build(&m, ctx, NULL, NULL, NULL))
        return 0;
    tt_session *s = tt_session_new(m.g);
    for (int step = 0; step < 6; step++)
        *loss = test_model_step(&m, s, step, rows[step]);
    return tt_weight_hash(s, &hash) == TT_OK ? hash.low ^ hash.high : 0;
}

static void train_rank(world_job *j, int rank, tt_ctx *ctx)
{
    double loss = 0;
    j->ranks[rank].hash = train(ctx, &loss);
    snprintf(j->ranks[rank].note, sizeof(j->ranks[rank].note), "%a", loss);
}

TEST(processes_few_rows_have_the_bits_of_one)
{
    double loss = 0;
    char note[64];
    tt_ctx *ctx = tt_open(.devices = "cpu:0", .threads = 1, .on_event = test_ignore_event);
    uint64_t want = train(ctx, &loss);
    CHECK_OK(tt_close(ctx));
    snprintf(note, sizeof(note), "%a", loss);
    for (int n = 2; n <= 4; n++) {
        for (int t = 0; t < 2; t++) {
            world_job j = {.n = n,
                           .tasks = {.transport = transports[t]},
                           .strategy = "mirrored",
                           .devices = n == 2 ? "cpu:0*2" : "cpu:0",
                           .run = train_rank};
            world_run(&j);
            all_well(&j);
            for (int i = 0; i < n; i++) {
                CHECK_STR(j.ranks[i].note, note);
                CHECK(j.ranks[i].hash == want);
            }
        }
    }
}

// Two hosts with two processes each: memory within one, messages between them.
static void two_hosts(world_job *j, int rank, tt_tasks *t)
{
    (void)j;
    t->host = rank < 2 ? "a" : "b";
}

TEST(processes_near_and_far_have_the_bits_of_one)
{
    static const char *const strategies[] = {"mirrored", "central", "single"};
    double loss = 0;
    tt_ctx *ctx = tt_open(.devices = "cpu:0", .threads = 1, .on_event = test_ignore_event);
    uint64_t want = train(ctx, &loss);
    CHECK_OK(tt_close(ctx));
    for (int i = 0; i < 4; i++) {
        world_job j = {.n = 4,
                       .strategy = strategies[i % 3],
                       .spread = tt_spread(.update = i == 3 ? TT_UPDATE_SHARD : TT_UPDATE_AUTO),
                       .devices = "cpu:0*2",
                       .change = two_hosts,
                       .run = train_rank};
        if (i == 3)
            j.strategy = "mirrored";
        world_run(&j);
        all_well(&j);
        for (int r = 0; r < 4; r++)
            CHECK(j.ranks[r].hash == want);
    }
}

// Messages of a step to processes of the other host; nothing goes within one.
static void count_messages(world_job *j, int rank, tt_ctx *ctx)
{
    test_model m;
    if (!test_model_build(&m, ctx, NULL, NULL, NULL))
        return;
    tt_session *s = tt_session_new(m.g);
    int64_t sent[2] = {0, 0}, bytes[2] = {0, 0};
    for (int step = 0; step < 3; step++) {
        (void)test_model_step(&m, s, step, 64); // the first two meet and make plans
        for (int r = 0; r < j->n && step > 0; r++) {
            int64_t n, b;
            tti_world_sent(ctx->world, r, &n, &b);
            sent[step - 1] += (rank < 2) != (r < 2) ? n : 0;
            bytes[step - 1] += (rank < 2) != (r < 2) ? b : 0;
        }
    }
    snprintf(j->ranks[rank].note, sizeof(j->ranks[rank].note), "%lld %lld",
             (long long)(sent[1] - sent[0]), (long long)(bytes[1] - bytes[0]));
}

// Messages and bytes of a step from the first host to the second.
static void messages_of(const char *transport, int64_t *messages, int64_t *bytes)
{
    world_job j = {.n = 4,
                   .strategy = "mirrored",
                   .tasks = {.transport = transport},
                   .spread = tt_spread(.bucket = 1 << 30),
                   .change = strcmp(transport, "auto") == 0 ? two_hosts : NULL,
                   .run = count_messages};
    world_run(&j);
    all_well(&j);
    *messages = *bytes = 0;
    for (int r = 0; r < 2; r++) {
        long long n, b;
        CHECK(sscanf(j.ranks[r].note, "%lld %lld", &n, &b) == 2);
        *messages += n;
        *bytes += b;
    }
}

TEST(processes_of_a_host_send_together)
{
    int64_t by_rank, by_host, bytes[2];
    messages_of("wire", &by_rank, &bytes[0]);
    messages_of("auto", &by_host, &bytes[1]);
    // By rank each process sends each of its sums and variables to two; by host the sums of all are
    // one message, and the variables of each process.
    ck_assert_msg(4 * by_host <= by_rank, "%lld messages, %lld without hosts", (long long)by_host,
                  (long long)by_rank);
    ck_assert_msg(2 * bytes[1] <= bytes[0] + 4096, "%lld bytes, %lld without hosts",
                  (long long)bytes[1], (long long)bytes[0]);
}

// ---- names, pins, fetches --------------------------------------------------------------------

// x on task 0, times a variable of task 2, plus one of task 1; all processes get all of it.
static void pinned(world_job *j, int rank, tt_ctx *ctx)
{
    float x[3] = {1, 2, 3}, y[3] = {0}, w = 0;
    tt_graph *g = tt_graph_new(ctx);
    tt_tensor *feed = tt_feed(g, .shape = TT_SHAPE(TT_BATCH));
    tt_device_push(g, "/job:worker/task:2/cpu:0");
    tt_tensor *a = tt_variable(g, .name = "a", .init = {TT_INIT_CONSTANT, 3, 0});
    tt_tensor *ax = tt_mul(g, feed, a);
    tt_device_pop(g);
    tt_device_push(g, "/job:worker/task:1/cpu:0");
    tt_tensor *b = tt_variable(g, .name = "b", .init = {TT_INIT_CONSTANT, 5, 0});
    tt_tensor *sum = tt_add(g, ax, b);
    tt_tensor *grown = tt_assign(g, b, tt_add(g, b, a));
    tt_device_pop(g);
    tt_session *s = tt_session_new(g);
    for (int i = 0; i < 3; i++) {
        tt_feed_value in = {feed, x, TT_SHAPE(3), TT_F32};
        tt_fetch out = {sum, y, sizeof(y)};
        IGNORED(tt_run(s, .feeds = &in, .n_feeds = 1, .fetches = &out, .n_fetches = 1,
                       .targets = &grown, .n_targets = 1));
    }
    IGNORED(tt_get_variable(s, b, &w, sizeof(w)));
    float again = 7;
    IGNORED(tt_set_variable(s, b, &again, sizeof(again)));
    IGNORED(tt_get_variable(s, b, &again, sizeof(again)));
    tt_device_info d = {.threads = 0};
    IGNORED(tt_device_get(ctx, tt_device_count(ctx) - 1, &d));
    snprintf(j->ranks[rank].note, sizeof(j->ranks[rank].note), "%g %g %g, %g %g, %d %s", y[0], y[1],
             y[2], w, again, tt_device_count(ctx), d.name);
}

TEST(processes_pins_name_tasks_and_all_get_what_is_fetched)
{
    for (int t = 0; t < 2; t++) {
        world_job j = {.n = 3, .tasks = {.transport = transports[t]}, .run = pinned};
        world_run(&j);
        all_well(&j);
        for (int i = 0; i < 3; i++)
            CHECK_STR(j.ranks[i].note, "14 17 20, 14 7, 3 task:2/cpu:0");
    }
}

// ---- own rows --------------------------------------------------------------------------------

// A row is a page; those of the other process cannot be read.
static void own_rows(world_job *j, int rank, tt_ctx *ctx)
{
    int64_t page = sysconf(_SC_PAGESIZE), width = page / 4;
    char *x =
        mmap(NULL, (size_t)(8 * page), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    for (int64_t i = 0; i < 8 * width; i++)
        ((float *)(void *)x)[i] = (float)(i % 7);
    mprotect(x + (rank == 0 ? 4 * page : 0), (size_t)(4 * page), PROT_NONE);
    tt_graph *g = tt_graph_new(ctx);
    tt_tensor *feed = tt_feed(g, .shape = TT_SHAPE(TT_BATCH, width));
    tt_tensor *sum = tt_sum(g, feed, .axis = TT_FIRST);
    tt_session *s = tt_session_new(g);
    float y[4096] = {0};
    tt_feed_value in = {feed, x, TT_SHAPE(8, width), TT_F32};
    tt_fetch out = {sum, y, sizeof(y)};
    IGNORED(tt_run(s, .feeds = &in, .n_feeds = 1, .fetches = &out, .n_fetches = 1));
    snprintf(j->ranks[rank].note, sizeof(j->ranks[rank].note), "%g", y[3]);
    munmap(x, (size_t)(8 * page));
}

TEST(processes_look_at_their_own_rows_only)
{
    double want = 0;
    for (int64_t r = 0, width = sysconf(_SC_PAGESIZE) / 4; r < 8; r++)
        want += (double)((r * width + 3) % 7);
    char note[32];
    snprintf(note, sizeof(note), "%g", want);
    for (int t = 0; t < 2; t++) {
        world_job j = {
            .n = 2, .tasks = {.transport = transports[t]}, .strategy = "mirrored", .run = own_rows};
        world_run(&j);
        all_well(&j);
        CHECK_STR(j.ranks[0].note, note);
        CHECK_STR(j.ranks[1].note, note);
    }
}

// ---- what a step costs -----------------------------------------------------------------------

static void count_blocks(world_job *j, int rank, tt_ctx *ctx)
{
    test_model m;
    if (!test_model_build(&m, ctx, NULL, NULL, NULL))
        return;
    tt_session *s = tt_session_new(m.g);
    for (int step = 0; step < 40; step++)
        IGNORED(isnan(test_model_step(&m, s, step, 64)) ? TT_EINVAL : TT_OK);
    int64_t before = atomic_load(&ctx->alloc_calls);
    for (int step = 40; step < 60; step++)
        IGNORED(isnan(test_model_step(&m, s, step, 64)) ? TT_EINVAL : TT_OK);
    j->ranks[rank].stage = (int)(atomic_load(&ctx->alloc_calls) - before);
}

TEST(processes_steps_allocate_nothing)
{
    for (int t = 0; t < 2; t++) {
        world_job j = {.n = 2,
                       .tasks = {.transport = transports[t]},
                       .strategy = "mirrored",
                       .run = count_blocks};
        world_run(&j);
        all_well(&j);
        for (int i = 0; i < 2; i++) // letters that come early may need room once more
            CHECK(t == 0 ? j.ranks[i].stage == 0 : j.ranks[i].stage < 20);
    }
}

// ---- failures --------------------------------------------------------------------------------

static void run_steps(world_job *j, int rank, tt_ctx *ctx, int steps)
{
    test_model m;
    if (!test_model_build(&m, ctx, NULL, NULL, NULL))
        return;
    tt_session *s = tt_session_new(m.g);
    for (int step = 0; step < steps && tt_status_of(ctx) == TT_OK; step++) {
        (void)test_model_step(&m, s, step, 64);
        j->ranks[rank].stage = step;
    }
}

static void die_in_step(world_job *j, int rank, tt_ctx *ctx)
{
    if (rank == 1) {
        run_steps(j, rank, ctx, 5);
        raise(SIGKILL);
    }
    run_steps(j, rank, ctx, 1000000);
}

TEST(processes_death_ends_the_runs_of_all)
{
    for (int t = 0; t < 2; t++) {
        world_job j = {.n = 3,
                       .tasks = {.transport = transports[t]},
                       .strategy = "mirrored",
                       .run = die_in_step};
        world_run(&j);
        for (int i = 0; i < 3; i += 2) {
            ck_assert_msg(j.ranks[i].status == TT_EPEER, "rank %d: %s", i, j.ranks[i].message);
            ck_assert_msg(strstr(j.ranks[i].message, "/job:worker/task:1") != NULL, "%s",
                          j.ranks[i].message);
            ck_assert_msg(j.ranks[i].seconds < 6, "it took %g s", j.ranks[i].seconds);
        }
    }
}

static void fail_in_step(world_job *j, int rank, tt_ctx *ctx)
{
    run_steps(j, rank, ctx, 20);
}

static void set_fault(world_job *j, int rank, tt_tasks *t)
{
    (void)j;
    (void)t;
    if (rank != 1)
        return;
    setenv("TUTTI_FAULT_HOW", "fail", 1);
    setenv("TUTTI_FAULT_OP", "matmul", 1);
    setenv("TUTTI_FAULT_RUN", "3", 1);
}

TEST(processes_failure_of_one_is_the_cause_of_all)
{
    for (int t = 0; t < 2; t++) {
        world_job j = {.n = 3,
                       .tasks = {.transport = transports[t]},
                       .strategy = "mirrored",
                       .change = set_fault,
                       .run = fail_in_step};
        world_run(&j);
        for (int i = 0; i < 3; i++) {
            ck_assert_msg(j.ranks[i].status == TT_EDEVICE, "rank %d: %s", i, j.ranks[i].message);
            ck_assert_msg(strstr(j.ranks[i].message, "failed on task:1/cpu:0 in step 3") != NULL,
                          "rank %d: %s", i, j.ranks[i].message);
        }
    }
}

static void other_graph(world_job *j, int rank, tt_ctx *ctx)
{
    (void)j;
    float x[8] = {0}, y[8];
    tt_graph *g = tt_graph_new(ctx);
    tt_tensor *feed = tt_feed(g, .shape = TT_SHAPE(TT_BATCH), .name = "x");
    tt_tensor *a = tt_exp(g, feed), *b = rank == 1 ? tt_tanh(g, a) : tt_sqrt(g, a);
    tt_session *s = tt_session_new(g);
    tt_feed_value in = {feed, x, TT_SHAPE(8), TT_F32};
    tt_fetch out = {b, y, sizeof(y)};
    IGNORED(tt_run(s, .feeds = &in, .n_feeds = 1, .fetches = &out, .n_fetches = 1));
}

TEST(processes_other_plans_are_refused_by_all)
{
    for (int t = 0; t < 2; t++) {
        world_job j = {.n = 3, .tasks = {.transport = transports[t]}, .run = other_graph};
        world_run(&j);
        for (int i = 0; i < 3; i++) {
            ck_assert_msg(j.ranks[i].status == TT_EINVAL, "rank %d: %s", i, j.ranks[i].message);
            ck_assert_msg(strstr(j.ranks[i].message, "tanh") != NULL &&
                              strstr(j.ranks[i].message, "sqrt") != NULL &&
                              strstr(j.ranks[i].message, "/job:worker/task:1") != NULL,
                          "rank %d: %s", i, j.ranks[i].message);
        }
    }
}

// ---- what is said of all processes' values ---------------------------------------------------

#define HASHES "hashes-of-processes"

static void write_hashes(world_job *j, int rank, tt_ctx *ctx)
{
    char path[512];
    test_model m;
    (void)rank;
    if (!test_model_build(&m, ctx, NULL, NULL, NULL))
        return;
    tt_session *s = tt_session_new(m.g, .hashes = true);
    for (int step = 0; step < 3; step++)
        (void)test_model_step(&m, s, step, 13);
    snprintf(path, sizeof(path), "%s/%s", (const char *)j->arg, HASHES);
    IGNORED(tt_hashes_write(s, path));
}

static void write_one(const char *folder, char path[512])
{
    test_model m;
    tt_ctx *ctx = tt_open(.devices = "cpu:0", .threads = 1, .on_event = test_ignore_event);
    CHECK(test_model_build(&m, ctx, NULL, NULL, NULL));
    tt_session *s = tt_session_new(m.g, .hashes = true);
    for (int step = 0; step < 3; step++)
        (void)test_model_step(&m, s, step, 13);
    snprintf(path, 512, "%s/one", folder);
    CHECK_OK(tt_hashes_write(s, path));
    CHECK_OK(tt_close(ctx));
}

static long read_all(const char *path, char *out, size_t room)
{
    FILE *f = fopen(path, "rb");
    CHECK(f != NULL);
    size_t n = fread(out, 1, room, f);
    fclose(f);
    return (long)n;
}

TEST(processes_hash_every_node_as_one_does)
{
    static char one[1 << 18], many[1 << 18];
    char path[512], at[512];
    const char *folder = test_folder();
    write_one(folder, at);
    long n = read_all(at, one, sizeof(one));
    CHECK(n > 1000 && n < (long)sizeof(one));
    for (int t = 0; t < 2; t++) {
        world_job j = {.n = 3,
                       .tasks = {.transport = transports[t]},
                       .strategy = "mirrored",
                       .run = write_hashes,
                       .arg = (void *)folder};
        world_run(&j);
        all_well(&j);
        snprintf(path, sizeof(path), "%s/%s", folder, HASHES);
        CHECK_INT(read_all(path, many, sizeof(many)), n);
        CHECK(memcmp(one, many, (size_t)n) == 0);
    }
}

static void spoil(world_job *j, int rank, tt_ctx *ctx)
{
    test_model m;
    (void)j;
    if (!test_model_build(&m, ctx, NULL, NULL, NULL))
        return;
    tt_session *s = tt_session_new(m.g);
    for (int step = 0; step < 2; step++)
        (void)test_model_step(&m, s, step, 64);
    IGNORED(tti_replicas_check(s, 2));
    if (tt_status_of(ctx) != TT_OK)
        return;
    for (int64_t i = 0; rank == 1 && i < ctx->store->cap; i++)
        for (tti_variable *v = ctx->store->table[i]; v != NULL; v = v->next)
            for (tti_shard *one = v->shards; one != NULL; one = one->next)
                if (one->task == rank)
                    ((uint8_t *)one->data)[0] ^= 1;
    IGNORED(tti_replicas_check(s, 2));
}

TEST(processes_whose_copies_differ_are_named)
{
    for (int t = 0; t < 2; t++) {
        world_job j = {
            .n = 3, .tasks = {.transport = transports[t]}, .strategy = "mirrored", .run = spoil};
        world_run(&j);
        for (int i = 0; i < 3; i++) {
            ck_assert_msg(j.ranks[i].status == TT_EDEVICE, "rank %d: %s", i, j.ranks[i].message);
            ck_assert_msg(strstr(j.ranks[i].message, "copy of /job:worker/task:1 differs") != NULL,
                          "%s", j.ranks[i].message);
        }
    }
}

// ---- afterwards ------------------------------------------------------------------------------

// What lay with another process is here when the job is over and the store is not.
static void keep_store(world_job *j, int rank, tt_ctx *ctx)
{
    (void)ctx;
    float w = 0;
    tt_store *store = tt_store_new();
    tt_tasks t = *(const tt_tasks *)j->arg;
    t.self = rank;
    t.addresses = j->addresses + 2;
    t.secret = j->secret;
    tt_ctx *job = tt_open(.devices = "cpu:0", .threads = 1, .store = store, .tasks = &t,
                          .on_event = test_ignore_event);
    tt_graph *g = tt_graph_new(job);
    tt_device_push(g, "/job:worker/task:1/cpu:0");
    tt_tensor *a = tt_variable(g, .name = "a", .init = {TT_INIT_CONSTANT, 3, 0});
    tt_tensor *more = tt_assign(g, a, tt_add(g, a, a));
    tt_device_pop(g);
    for (int i = 0; i < 40; i++) // nobody receives anything
        IGNORED(tt_run(tt_session_new(g), .targets = &more, .n_targets = i < 2 ? 1 : 0));
    tt_status closed = tt_close(job);
    tt_ctx *later = tt_open(.devices = "cpu:0", .threads = 1, .store = store);
    tt_graph *h = tt_graph_new(later);
    tt_tensor *b = tt_variable(h, .name = "a", .init = {TT_INIT_CONSTANT, 3, 0});
    IGNORED(tt_get_variable(tt_session_new(h), b, &w, sizeof(w)));
    IGNORED(tt_close(later));
    tt_store_release(store);
    snprintf(j->ranks[rank].note, sizeof(j->ranks[rank].note), "%g %d", w, (int)closed);
}

TEST(processes_leave_values_in_a_store_that_lives_on)
{
    for (int t = 0; t < 2; t++) {
        tt_tasks inner = {.opts_size = sizeof(inner), .n = 2, .transport = transports[t]};
        world_job j = {.n = 4, .run = NULL};
        world_prepare(&j); // two of its addresses are for the job, two for what follows
        j.n = 2;
        j.run = keep_store;
        j.arg = &inner;
        for (int i = 0; i < 2; i++)
            world_fork(&j, i);
        world_join(&j, 20);
        all_well(&j);
        CHECK_STR(j.ranks[0].note, "12 0");
        CHECK_STR(j.ranks[1].note, "12 0");
    }
}

// A hundred runs of which the first process hears nothing: it does not get ahead without end.
static void only_give(world_job *j, int rank, tt_ctx *ctx)
{
    float x = 1, sum = 0;
    tt_graph *g = tt_graph_new(ctx);
    tt_device_push(g, "/job:worker/task:0/cpu:0");
    tt_tensor *feed = tt_feed(g, .shape = TT_SCALAR);
    tt_tensor *twice = tt_add(g, feed, feed);
    tt_device_pop(g);
    tt_device_push(g, "/job:worker/task:1/cpu:0");
    tt_tensor *a = tt_variable(g, .name = "a");
    tt_tensor *more = tt_assign(g, a, tt_add(g, a, twice));
    tt_device_pop(g);
    tt_session *s = tt_session_new(g);
    for (int i = 0; i < 100; i++) {
        tt_feed_value in = {feed, &x, TT_SCALAR, TT_F32};
        IGNORED(tt_run(s, .feeds = &in, .n_feeds = 1, .targets = &more, .n_targets = 1));
    }
    IGNORED(tt_get_variable(s, a, &sum, sizeof(sum)));
    snprintf(j->ranks[rank].note, sizeof(j->ranks[rank].note), "%g", sum);
}

TEST(processes_that_only_give_wait_for_the_others)
{
    for (int t = 0; t < 2; t++) {
        world_job j = {.n = 2, .tasks = {.transport = transports[t]}, .run = only_give};
        world_run(&j);
        all_well(&j);
        CHECK_STR(j.ranks[0].note, "200");
        CHECK_STR(j.ranks[1].note, "200");
    }
}

static void name_chief(world_job *j, int rank, tt_tasks *t)
{
    static const char *const names[] = {"/job:chief/task:0", "/job:worker/task:0",
                                        "/job:worker/task:1"};
    (void)j, (void)rank;
    t->names = names;
}

static void pin_to_jobs(world_job *j, int rank, tt_ctx *ctx)
{
    tt_device_info d[4] = {{.threads = 0}};
    for (int i = 0; i < 4; i++)
        IGNORED(tt_device_get(ctx, i, &d[i]));
    tt_graph *g = tt_graph_new(ctx);
    float y = 0;
    tt_device_push(g, "/job:worker/task:1/cpu:0");
    tt_tensor *a = tt_variable(g, .name = "a", .init = {TT_INIT_CONSTANT, 3, 0});
    tt_device_pop(g);
    tt_device_push(g, "/job:chief/task:0/cpu:1");
    tt_tensor *b = tt_add(g, a, a);
    tt_device_pop(g);
    IGNORED(tt_eval(g, b, &y, 1));
    snprintf(j->ranks[rank].note, sizeof(j->ranks[rank].note), "%g %s %s %s %s", y, d[0].name,
             d[1].name, d[2].name, d[3].name);
}

// The chief has two devices, the others one each.
static const char *of_rank(int rank)
{
    return rank == 0 ? "cpu:0*2" : "cpu:0";
}

TEST(processes_of_several_jobs_and_unequal_devices)
{
    for (int t = 0; t < 2; t++) {
        world_job j = {.n = 3,
                       .tasks = {.transport = transports[t]},
                       .change = name_chief,
                       .devices_of = of_rank,
                       .run = pin_to_jobs};
        world_run(&j);
        all_well(&j);
        for (int i = 0; i < 3; i++)
            CHECK_STR(j.ranks[i].note,
                      "6 chief:0/cpu:0 chief:0/cpu:1 worker:0/cpu:0 worker:1/cpu:0");
    }
}
