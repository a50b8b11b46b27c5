/*
 * bucket_hook.c - a user's hook on buckets of gradients (tutti/comm.h): what it is given, in one
 * process and in several; that what it makes is what the weights get; and what it must not be.
 */
#include "world_test.h"
#include <stdio.h>
#include <string.h>

#define RECORDS 64
#define STEPS   6

typedef struct seen {
    int n_calls, next, n_buckets, n_gradients;
    int64_t step, elements;
    bool is_wrong;
    tt_status result;
    float factor; // what it multiplies the sums by; 0: 1
} seen;

// Sums as the library would, and looks at what it was given.
static tt_status hook(void *user, const tt_bucket *b)
{
    seen *s = user;
    tt_member m[8];
    bool first = b->index == 0;
    s->is_wrong |= b->size != sizeof(*b) || b->index != (first ? 0 : s->next);
    s->is_wrong |= b->n_replicas < 1 || b->n_replicas > 8 || b->n_gradients < 1;
    s->is_wrong |= tt_comm_members(b->comm) < b->n_replicas || b->step < s->step;
    s->next = b->index + 1;
    s->n_calls++;
    s->n_buckets = b->n_buckets;
    s->step = b->step;
    s->n_gradients = first ? b->n_gradients : s->n_gradients + b->n_gradients;
    s->elements = first ? 0 : s->elements;
    for (int i = 0; i < b->n_gradients; i++) {
        const tt_gradient *g = &b->gradients[i];
        for (int r = 0; r < b->n_replicas; r++) {
            const tt_gradient *own = &g[r * b->n_gradients];
            s->is_wrong |= own->data == NULL || strcmp(own->weight, g->weight) != 0;
            s->is_wrong |= tt_shape_count(&own->shape) != own->count || own->count != g->count;
            m[r] = (tt_member){.in = own->data, .out = own->data, .count = own->count};
        }
        s->elements += g->count;
        tt_status st = tt_all_reduce(b->comm, m, .factor = s->factor);
        if (st != TT_OK)
            return st;
    }
    return s->result;
}

static tt_status made_read(tt_ctx *ctx, void *self, int64_t i, void *const *out)
{
    (void)ctx;
    (void)self;
    for (int k = 0; k < 12; k++)
        ((float *)out[0])[k] = (float)((i * 7 + k * 5) % 13) / 13.0f;
    ((float *)out[1])[0] = (float)(i % 5) / 5.0f;
    return TT_OK;
}

// A fit of a few steps; hook may be NULL.
static tt_hash train(tt_ctx *ctx, tt_bucket_fn fn, seen *s)
{
    tt_source source = {
        .count = RECORDS,
        .n_fields = 2,
        .fields = {{.name = "x", .shape = TT_SHAPE(12)}, {.name = "y", .shape = TT_SHAPE(1)}},
        .read = made_read};
    tt_data *d = tt_data_new(ctx, &source, .batch = 16, .workers = -1);
    tt_model *m = tt_sequential(ctx, .input = {12});
    tt_hash hash = {0, 0};
    tt_layer_dense(m, .units = 32, .act = TT_RELU, .name = "a");
    tt_layer_dense(m, .units = 1, .name = "b");
    tt_compile(m, .loss = TT_MSE, .optimizer = tt_adam(.lr = 1e-2f), .bucket_hook = fn,
               .bucket_user = s);
    tt_fit(m, d, .steps = STEPS);
    IGNORED(tt_model_hash(m, &hash));
    return hash;
}

static tt_ctx *open_fast(const char *devices, size_t bucket)
{
    return tt_open(.devices = devices, .strategy = "mirrored", .lanes = 8,
                   .on_event = test_ignore_event,
                   .spread = tt_spread(.reduce = TT_REDUCE_FAST, .bucket = bucket));
}

// What the library makes of the same devices. Exact sums of replicas, each a lane, are its own.
static tt_hash expected(const char *devices)
{
    tt_ctx *ctx = open_fast(devices, 0);
    tt_hash hash = train(ctx, NULL, NULL);
    CHECK_OK(tt_close(ctx));
    return hash;
}

TEST(bucket_hook_makes_what_the_weights_get)
{
    static const char *const devices[] = {"cpu:0*2", "cpu:0*3", "cpu:0*8"};
    for (size_t i = 0; i < sizeof(devices) / sizeof(devices[0]); i++) {
        tt_hash want = expected(devices[i]);
        for (size_t bucket = 0; bucket < 2; bucket++) {
            seen s = {.step = 0};
            tt_ctx *ctx = open_fast(devices[i], bucket);
            tt_hash got = train(ctx, hook, &s);
            CHECK_OK(tt_close(ctx));
            ck_assert_msg(got.low == want.low && got.high == want.high, "%s: other weights",
                          devices[i]);
            CHECK(!s.is_wrong);
            CHECK_INT(s.n_calls, STEPS * s.n_buckets);
            CHECK_INT(s.n_gradients, 3); // the bias of b has one element
            CHECK_INT(s.elements, 12 * 32 + 32 + 32);
            CHECK(bucket == 0 || s.n_buckets > 1); // of a byte: one each
        }
    }
}

TEST(bucket_hook_results_are_used)
{
    tt_hash hash[2];
    for (int i = 0; i < 2; i++) {
        seen s = {.factor = i == 0 ? 1 : 0.5f};
        tt_ctx *ctx = open_fast("cpu:0*3", 0);
        hash[i] = train(ctx, hook, &s);
        CHECK_OK(tt_close(ctx));
    }
    CHECK(hash[0].low != hash[1].low);
}

TEST(bucket_hook_is_not_called_for_one_replica)
{
    seen s = {.step = 0};
    tt_ctx *ctx = open_fast("cpu:0", 0);
    (void)train(ctx, hook, &s);
    CHECK_OK(tt_close(ctx));
    CHECK_INT(s.n_calls, 0);
}

static void expect(tt_ctx *ctx, tt_status st, const char *words)
{
    const char *message = tt_last_error(ctx).message;
    ck_assert_msg(tt_status_of(ctx) == st && strstr(message, words) != NULL, "%s", message);
    CHECK(tt_close(ctx) == st);
}

TEST(bucket_hook_is_refused_where_it_cannot_be)
{
    seen s = {.step = 0};
    tt_ctx *ctx =
        tt_open(.devices = "cpu:0*2", .strategy = "mirrored", .on_event = test_ignore_event);
    (void)train(ctx, hook, &s);
    expect(ctx, TT_EINVAL, "summed exactly here (reduce: exact)");
    ctx = tt_open(.devices = "cpu:0*2", .strategy = "mirrored", .on_event = test_ignore_event,
                  .spread = tt_spread(.reduce = TT_REDUCE_FAST, .wire = TT_BF16));
    (void)train(ctx, hook, &s);
    expect(ctx, TT_EINVAL, "already sent as bf16 (wire)");
    CHECK_INT(s.n_calls, 0);
}

TEST(bucket_hook_errors_end_the_run)
{
    seen s = {.result = TT_EIO};
    tt_ctx *ctx = open_fast("cpu:0*2", 0);
    (void)train(ctx, hook, &s);
    expect(ctx, TT_EIO, "bucket_hook: returned TT_EIO for bucket 0 of ");
    CHECK_INT(s.n_calls, 1);
}

// ---- several processes -----------------------------------------------------------------------

static void run(world_job *j, int rank, tt_ctx *ctx)
{
    seen s = {.result = j->arg != NULL && rank == 1 ? TT_EIO : TT_OK};
    j->ranks[rank].hash = train(ctx, hook, &s).low;
    snprintf(j->ranks[rank].note, sizeof(j->ranks[rank].note), "%d %d", s.is_wrong,
             s.n_calls == STEPS * s.n_buckets);
}

TEST(bucket_hook_over_processes)
{
    static const char *const transports[] = {"shm", "wire"};
    tt_hash want = expected("cpu:0*4");
    for (int i = 0; i < 2; i++) {
        world_job j = {.n = 2,
                       .devices = "cpu:0*2",
                       .strategy = "mirrored",
                       .lanes = 8,
                       .spread = tt_spread(.reduce = TT_REDUCE_FAST),
                       .tasks = {.transport = transports[i]},
                       .run = run};
        world_run(&j);
        for (int r = 0; r < j.n; r++) {
            ck_assert_msg(j.ranks[r].status == TT_OK, "rank %d: %s", r, j.ranks[r].message);
            ck_assert_msg(j.ranks[r].hash == want.low, "rank %d, %s: other weights", r,
                          transports[i]);
            CHECK_STR(j.ranks[r].note, "0 1");
        }
    }
}

TEST(bucket_hook_that_fails_in_one_process_ends_all)
{
    int fails = 1;
    world_job j = {.n = 2,
                   .devices = "cpu:0",
                   .strategy = "mirrored",
                   .lanes = 8,
                   .spread = tt_spread(.reduce = TT_REDUCE_FAST),
                   .run = run,
                   .arg = &fails};
    world_run(&j);
    for (int r = 0; r < j.n; r++)
        ck_assert_msg(j.ranks[r].status != TT_OK &&
                          strstr(j.ranks[r].message, "bucket_hook: returned TT_EIO") != NULL,
                      "rank %d: %s", r, j.ranks[r].message);
}
