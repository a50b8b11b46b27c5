/*
 * world_comm.c - collectives between processes give the bits that one process with all members
 * gives, by shared memory and by wire, for every call, type and odd size.
 */
#include "net/world_own.h"
#include "world_test.h"
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define MOST_COUNT 150001

// ---- one call, in the group of all processes and alone ---------------------------------------

typedef struct one_call {
    int kind; // 0 all_reduce, 1 reduce_scatter, 2 all_gather, 3 broadcast, 4 all_to_all
    int64_t count;
    tt_dtype dtype;
    tt_combine combine;
    int lanes; // 0: none
    bool in_place;
} one_call;

static const one_call calls[] = {
    {0, 1024, TT_F32, TT_COMBINE_SUM, 8, false},
    {0, 1, TT_F32, TT_COMBINE_SUM, 8, false},
    {0, 0, TT_F32, TT_COMBINE_SUM, 8, false},
    {0, 150001, TT_F32, TT_COMBINE_SUM, 8, false},
    {0, 150001, TT_F32, TT_COMBINE_SUM, 0, true},
    {0, 33333, TT_F64, TT_COMBINE_SUM, 7, false},
    {0, 40001, TT_BF16, TT_COMBINE_SUM, 0, false},
    {0, 17, TT_I32, TT_COMBINE_MAX, 0, false},
    {0, 999, TT_I64, TT_COMBINE_MIN, 0, true},
    {1, 150001, TT_F32, TT_COMBINE_SUM, 8, false},
    {1, 100, TT_F32, TT_COMBINE_SUM, 8, false},
    {1, 3, TT_F32, TT_COMBINE_SUM, 0, false},
    {2, 60001, TT_F32, 0, 0, false},
    {2, 0, TT_U8, 0, 0, false},
    {3, 150001, TT_U8, 0, 0, false},
    {3, 5, TT_F64, 0, 0, false},
    {4, 20001, TT_F32, 0, 0, false},
    {4, 1, TT_BOOL, 0, 0, false},
};

// in and out of member i of n; a gather's counts differ.
static tt_member member_of(const one_call *k, int i, int n)
{
    tt_member m = {.count = k->kind == 2 ? k->count / n + i : k->count};
    size_t item = tt_dtype_bytes(k->dtype), blocks = 1;
    if (k->lanes > 0) {
        m.first_lane = k->lanes * i / n;
        m.n_lanes = k->lanes * (i + 1) / n - m.first_lane;
        blocks = 4; // as many parts at most: lanes 1 to 6
    }
    if (k->kind == 4)
        blocks = (size_t)n;
    size_t bytes = (size_t)m.count * item * blocks;
    char *in = malloc(bytes + 1);
    world_fill(in, bytes, k->dtype, i);
    m.in = in;
    size_t out = k->kind == 2 ? (size_t)(k->count + (int64_t)n * n) * item : bytes;
    m.out = k->in_place ? in : calloc(1, out + 1);
    return m;
}

static tt_status make(tt_comm *c, const one_call *k, const tt_member *m)
{
    tt_comm_opts o = {sizeof(o), .dtype = k->dtype, .combine = k->combine, .lanes = k->lanes};
    switch (k->kind) {
    case 0:
        return tt_all_reduce_with(c, m, &o);
    case 1:
        return tt_reduce_scatter_with(c, m, &o);
    case 2:
        return tt_all_gather_with(c, m, &o);
    case 3:
        o.root = tt_comm_members(c) - 1;
        return tt_broadcast_from_with(c, m, &o);
    default:
        return tt_all_to_all_with(c, m, &o);
    }
}

static size_t out_bytes(const one_call *k, const tt_member *all, int i, int n)
{
    int64_t count = all[i].count;
    if (k->kind == 1)
        count = (i + 1) * count / n - i * count / n;
    if (k->kind == 4)
        count *= n;
    for (int m = 0; k->kind == 2 && m < n; m++)
        count = m == 0 ? all[0].count : count + all[m].count;
    return (size_t)count * tt_dtype_bytes(k->dtype);
}

static void compare(tt_ctx *ctx, const one_call *k, tt_comm *alone, tt_comm *group, int first,
                    int mine)
{
    int n = tt_comm_members(group);
    tt_member all[16], own[16];
    for (int i = 0; i < n; i++)
        all[i] = member_of(k, i, n);
    for (int i = 0; i < mine; i++)
        own[i] = member_of(k, first + i, n);
    if (make(alone, k, all) == TT_OK && make(group, k, own) == TT_OK)
        for (int i = 0; i < mine; i++)
            if (memcmp(own[i].out, all[first + i].out, out_bytes(k, all, first + i, n)) != 0)
                (void)TT_FAIL(ctx, TT_EINVAL, "call %d: member %d differs", (int)(k - calls),
                              first + i);
    for (int i = 0; i < n + mine; i++) {
        tt_member *m = i < n ? &all[i] : &own[i - n];
        if (!k->in_place)
            free(m->out);
        free((void *)m->in);
    }
}

// Unequal processes: rank r has 1 + r % 2 members.
static void all_calls(world_job *j, int rank, tt_ctx *ctx)
{
    int first = 0, total = 0;
    for (int r = 0; r < j->n; r++) {
        first += r < rank ? 1 + r % 2 : 0;
        total += 1 + r % 2;
    }
    tt_comm *alone = tt_comm_open(ctx, .members = total, .transport = "local");
    tt_comm *group = tt_comm_open(ctx, .members = 1 + rank % 2, .transport = j->arg);
    for (int round = 0; round < 2; round++)
        for (int i = 0; i < (round == 0 ? TTI_COUNT(calls) : 4) && tt_status_of(ctx) == TT_OK;
             i++) {
            compare(ctx, &calls[i], alone, group, first, 1 + rank % 2);
            if (i % 5 == 0)
                IGNORED(tt_barrier(group));
        }
    if (tt_status_of(ctx) == TT_OK && tt_comm_members(group) != total)
        (void)TT_FAIL(ctx, TT_EINVAL, "%d members", tt_comm_members(group));
}

static void expect_same(const char *transport, int least,
                        void (*change)(world_job *, int, tt_tasks *))
{
    for (int n = least; n <= 4; n++) {
        world_job j = {.n = n, .lanes = 8, .run = all_calls, .arg = (void *)transport};
        j.change = change;
        world_run(&j);
        for (int i = 0; i < n; i++)
            ck_assert_msg(j.ranks[i].status == TT_OK, "rank %d of %d: %s", i, n,
                          j.ranks[i].message);
    }
}

TEST(world_collectives_by_shared_memory_are_exact)
{
    expect_same("shm", 1, NULL);
}

TEST(world_collectives_by_wire_are_exact)
{
    expect_same("wire", 1, NULL);
}

// Hosts with several processes: neighbours in rank, every other one, unequal ones.
static void on_halves(world_job *j, int rank, tt_tasks *t)
{
    t->host = rank < (j->n + 1) / 2 ? "a" : "b";
}

static void on_turns(world_job *j, int rank, tt_tasks *t)
{
    (void)j;
    t->host = rank % 2 == 0 ? "a" : "b";
}

static void on_three(world_job *j, int rank, tt_tasks *t)
{
    t->host = rank == 0 ? "a" : rank == j->n - 1 ? "c" : "b";
}

TEST(world_collectives_over_hosts_are_exact)
{
    expect_same("auto", 3, on_halves);
    expect_same("auto", 4, on_turns);
    expect_same("auto", 4, on_three);
}

// What goes from host to host: of each range one sum of a host, and its result once.
static void count_chunks(world_job *j, int rank, tt_ctx *ctx)
{
    static float x[400000], y[400000];
    tti_world *w = ctx->world;
    tt_comm *group = tt_comm_open(ctx, .members = 1);
    tt_member m = {x, y, 400000, rank, 1};
    uint32_t before = 0, after = 0;
    for (int i = 0; i < j->n; i++)
        before += w->peers[i].n_out;
    IGNORED(tt_all_reduce(group, &m, .lanes = j->n));
    for (int i = 0; i < j->n; i++)
        after += w->peers[i].n_out;
    j->ranks[rank].hash = after - before;
}

TEST(world_sums_are_combined_within_hosts)
{
    for (int t = 0; t < 2; t++) {
        world_job j = {.n = 4, .run = count_chunks, .change = t == 0 ? on_halves : NULL};
        j.tasks.transport = t == 0 ? "auto" : "wire";
        world_run(&j);
        for (int i = 0; i < 4; i++)
            CHECK(j.ranks[i].status == TT_OK);
        // Two messages of a head to each rank of another host, then two chunks a range: of one such
        // rank and of the result to one host; without hosts of three ranks each.
        CHECK_INT(j.ranks[1].hash, t == 0 ? 2 * 2 + 2 + 2 : 3 * (2 + 2 + 2));
    }
}

// ---- the group's own memory ------------------------------------------------------------------

// The same sum with all values in the group's memory, in place and not, and with some elsewhere.
static void shared_sums(world_job *j, int rank, tt_ctx *ctx)
{
    size_t bytes = MOST_COUNT * sizeof(float), room = 4 * bytes;
    tt_comm *alone = tt_comm_open(ctx, .members = j->n, .transport = "local");
    tt_comm *group = tt_comm_open(ctx, .members = 1, .transport = j->arg);
    char *in = tt_comm_memory(group, room), *out = tt_comm_memory(group, bytes + 64);
    for (int way = 0; way < 4 && tt_status_of(ctx) == TT_OK; way++) {
        one_call k = {0, way == 3 ? 5 : MOST_COUNT - way, TT_F32, TT_COMBINE_SUM, 8, false};
        tt_member all[WORLD_MOST], own = member_of(&k, rank, j->n), mine = own;
        for (int i = 0; i < j->n; i++)
            all[i] = member_of(&k, i, j->n);
        memcpy(in, own.in, (size_t)k.count * sizeof(float) * 4);
        mine.in = in;
        mine.out = way == 1 ? in : out + 4;
        if (way == 2 && rank == 1)
            mine.out = own.out; // one that the others do not reach
        if (make(alone, &k, all) == TT_OK && make(group, &k, &mine) == TT_OK &&
            memcmp(mine.out, all[rank].out, (size_t)k.count * sizeof(float)) != 0)
            (void)TT_FAIL(ctx, TT_EINVAL, "way %d: rank %d differs", way, rank);
        for (int i = 0; i <= j->n; i++) {
            free(i < j->n ? all[i].out : own.out);
            free((void *)(i < j->n ? all[i].in : own.in));
        }
        IGNORED(tt_barrier(group)); // who reads my out reads it before I write it again
    }
}

TEST(world_sums_in_the_groups_memory_are_exact)
{
    static const char *const transports[] = {"shm", "wire"};
    for (int t = 0; t < 2; t++)
        for (int n = 1; n <= 3; n++) {
            world_job j = {.n = n, .lanes = 8, .run = shared_sums, .arg = (void *)transports[t]};
            world_run(&j);
            for (int i = 0; i < n; i++)
                ck_assert_msg(j.ranks[i].status == TT_OK, "rank %d of %d by %s: %s", i, n,
                              transports[t], j.ranks[i].message);
        }
}

static void other_bytes(world_job *j, int rank, tt_ctx *ctx)
{
    tt_comm *group = tt_comm_open(ctx, .members = 1, .transport = j->arg);
    (void)tt_comm_memory(group, rank == 1 ? 1000 : 2000);
}

// ---- what is refused -------------------------------------------------------------------------

static void other_count(world_job *j, int rank, tt_ctx *ctx)
{
    float x[8] = {0};
    tt_comm *c = tt_comm_open(ctx, .transport = j->arg);
    tt_member m = {x, x, rank == 1 ? 7 : 8, rank, 1};
    IGNORED(tt_all_reduce(c, &m, .lanes = 2));
}

static void other_call(world_job *j, int rank, tt_ctx *ctx)
{
    float x[8] = {0}, y[16];
    tt_comm *c = tt_comm_open(ctx, .transport = j->arg);
    tt_member m = {x, y, 8, 0, 0};
    if (rank == 1)
        IGNORED(tt_all_gather(c, &m));
    else
        IGNORED(tt_all_reduce(c, &m));
}

static void bad_call(world_job *j, int rank, tt_ctx *ctx)
{
    float x[8] = {0};
    tt_comm *c = tt_comm_open(ctx, .transport = j->arg);
    tt_member m = {rank == 1 ? NULL : x, x, 8, rank, 1};
    IGNORED(tt_all_reduce(c, &m, .lanes = 2));
}

static void expect(void (*run)(world_job *, int, tt_ctx *), const char *words)
{
    static const char *const transports[] = {"shm", "wire"};
    for (int t = 0; t < 2; t++) {
        world_job j = {.n = 2, .run = run, .arg = (void *)transports[t]};
        world_run(&j);
        for (int i = 0; i < 2; i++)
            ck_assert_msg(j.ranks[i].status != TT_OK && strstr(j.ranks[i].message, words) != NULL,
                          "rank %d, %s: %s", i, transports[t], j.ranks[i].message);
    }
}

TEST(world_calls_that_differ_are_refused_by_all)
{
    expect(other_count, "all_reduce: member 1 has 7 elements of f32, but member 0 has 8 of f32");
    expect(other_call, "member 1 is in all_gather, call 0, but member 0 is in all_reduce, call 0");
    expect(other_bytes, "memory of ");
    expect(bad_call, "member 1: in is NULL, for 8 elements");
}

static void reduce_for_ever(world_job *j, int rank, tt_ctx *ctx)
{
    static float x[100000];
    tt_comm *c = tt_comm_open(ctx, .transport = j->arg);
    tt_member m = {x, x, 100000, rank, 1};
    for (int i = 0; tt_status_of(ctx) == TT_OK; i++) {
        IGNORED(tt_all_reduce(c, &m, .lanes = j->n));
        j->ranks[rank].stage = i;
    }
}

TEST(world_collectives_end_when_a_process_dies)
{
    static const char *const transports[] = {"shm", "wire"};
    for (int t = 0; t < 2; t++) {
        world_job j = {.n = 3, .run = reduce_for_ever, .arg = (void *)transports[t]};
        world_start(&j);
        for (int i = 0; i < 3; i++)
            world_await_stage(&j, i, 3);
        kill(j.ranks[2].pid, SIGKILL);
        world_join(&j, 5);
        for (int i = 0; i < 2; i++)
            ck_assert_msg(j.ranks[i].status == TT_EPEER &&
                              strstr(j.ranks[i].message, "rank 2 (/job:worker/task:2") != NULL &&
                              strstr(j.ranks[i].message, "in all_reduce") != NULL,
                          "rank %d: %s", i, j.ranks[i].message);
    }
}

TEST(world_transports_need_tasks)
{
    tt_ctx *ctx = test_ctx();
    CHECK(tt_comm_open(ctx, .transport = "shm") == NULL);
    CHECK_MESSAGE(ctx, "the context was opened without tasks");
    CHECK(tt_close(ctx) == TT_EINVAL);
}
