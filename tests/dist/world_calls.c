/*
 * world_calls.c - calls with a root, unequal counts, bytes, messages, handles and groups of calls
 * between processes: the bits of one process with all members, by shared memory, by wire and over
 * hosts; what differs is refused by all, and a rank that dies ends every wait.
 */
#include "comm/comm.h"
#include "world_test.h"
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define MOST 16 // members

// ---- one call, in the group of all processes and alone ---------------------------------------

typedef struct one_call {
    tti_collective_kind kind;
    int64_t count;
    tt_dtype dtype;
    tt_combine combine;
    int lanes; // 0: none
    bool unequal;
} one_call;

static const one_call calls[] = {
    {TTI_REDUCE_TO, 1024, TT_F32, TT_COMBINE_SUM, 8, false},
    {TTI_REDUCE_TO, 100001, TT_F32, TT_COMBINE_SUM, 8, false},
    {TTI_REDUCE_TO, 20001, TT_F32, TT_COMBINE_SUM, 0, false},
    {TTI_REDUCE_TO, 9001, TT_BF16, TT_COMBINE_SUM, 0, false},
    {TTI_REDUCE_TO, 8333, TT_F64, TT_COMBINE_SUM, 7, false},
    {TTI_REDUCE_TO, 3, TT_I64, TT_COMBINE_MAX, 0, false},
    {TTI_REDUCE_TO, 0, TT_F32, TT_COMBINE_SUM, 8, false},
    {TTI_GATHER_TO, 30001, TT_F32, 0, 0, true},
    {TTI_GATHER_TO, 5, TT_U8, 0, 0, false},
    {TTI_GATHER_TO, 0, TT_F64, 0, 0, false},
    {TTI_SCATTER_FROM, 20001, TT_F16, 0, 0, true},
    {TTI_SCATTER_FROM, 30001, TT_F32, 0, 0, false},
    {TTI_SCATTER_FROM, 1, TT_BOOL, 0, 0, false},
    {TTI_ALL_TO_ALL, 30001, TT_F32, 0, 0, true},
    {TTI_ALL_TO_ALL, 3, TT_I32, 0, 0, true},
    {TTI_ALL_TO_ALL, 10001, TT_F32, 0, 0, false},
    {TTI_ALL_REDUCE, 100001, TT_F32, TT_COMBINE_SUM, 8, false},
    {TTI_BROADCAST, 150001, TT_U8, 0, 0, false},
    {TTI_ALL_GATHER, 30001, TT_F32, 0, 0, true},
    {TTI_REDUCE_SCATTER, 30001, TT_F32, TT_COMBINE_SUM, 8, false},
};

// Elements of member i, or from i to j.
static int64_t count_of(const one_call *k, int i, int j)
{
    if (!k->unequal)
        return k->count;
    return (i + 2 * j) % 3 == 0 ? 0 : k->count / (1 + i + j);
}

typedef struct set { // of members, with room for everything
    tt_member m[MOST];
    int64_t counts[MOST * MOST], received[MOST * MOST];
    size_t in_bytes, bytes; // of each in and out
} set;

static void make_set(const one_call *k, int first, int n, int total, set *s)
{
    size_t item = tt_dtype_bytes(k->dtype);
    bool is_sum = tti_collective_def_of((int)k->kind)->reduces;
    size_t blocks = is_sum || k->kind == TTI_BROADCAST ? 1 : (size_t)total;
    *s = (set){.bytes = (size_t)k->count * item * blocks + 64};
    s->in_bytes = is_sum ? 4 * s->bytes : s->bytes; // up to four partial sums
    for (int i = 0; i < n; i++) {
        tt_member *m = &s->m[i];
        *m = (tt_member){malloc(s->in_bytes), calloc(1, s->bytes), count_of(k, first + i, 0), 0, 0};
        world_fill((char *)m->in, s->in_bytes / 8 * 8, k->dtype, first + i);
        if (k->lanes > 0) {
            m->first_lane = k->lanes * (first + i) / total;
            m->n_lanes = k->lanes * (first + i + 1) / total - m->first_lane;
        }
        for (int j = 0; j < total; j++)
            s->counts[i * total + j] = count_of(k, first + i, j);
        if (k->kind == TTI_ALL_TO_ALL && k->unequal)
            m->count = k->count * total;
    }
    for (int j = 0; k->kind == TTI_SCATTER_FROM && j < total; j++)
        s->counts[j] = count_of(k, j, 0);
}

static void drop_set(set *s, int n)
{
    for (int i = 0; i < n; i++) {
        free((void *)s->m[i].in);
        free(s->m[i].out);
    }
}

static tt_status make(tt_comm *c, const one_call *k, set *s, tt_handle **h)
{
    tt_comm_opts o = {sizeof(o),
                      .dtype = k->dtype,
                      .combine = k->combine,
                      .lanes = k->lanes,
                      .root = tt_comm_members(c) - 1,
                      .handle = h,
                      .received = s->received};
    o.counts = k->unequal ? s->counts : NULL;
    static tt_status (*const fn[])(tt_comm *, const tt_member *, const tt_comm_opts *) = {
        [TTI_ALL_REDUCE] = tt_all_reduce_with,         [TTI_REDUCE_TO] = tt_reduce_to_with,
        [TTI_REDUCE_SCATTER] = tt_reduce_scatter_with, [TTI_ALL_GATHER] = tt_all_gather_with,
        [TTI_GATHER_TO] = tt_gather_to_with,           [TTI_SCATTER_FROM] = tt_scatter_from_with,
        [TTI_BROADCAST] = tt_broadcast_from_with,      [TTI_ALL_TO_ALL] = tt_all_to_all_with,
    };
    return fn[k->kind](c, s->m, &o);
}

static void compare(tt_ctx *ctx, const one_call *k, set *own, set *all, int first, int n, int total)
{
    for (int i = 0; i < n && tt_status_of(ctx) == TT_OK; i++) {
        bool same = memcmp(own->m[i].out, all->m[first + i].out, own->bytes) == 0;
        for (int j = 0; k->kind == TTI_ALL_TO_ALL && j < total; j++)
            same = same && own->received[i * total + j] == all->received[(first + i) * total + j];
        for (int j = 0; k->kind == TTI_ALL_GATHER && j < total; j++)
            same = same && own->received[j] == all->received[j];
        if (!same)
            (void)TT_FAIL(ctx, TT_EINVAL, "call %d: member %d differs", (int)(k - calls),
                          first + i);
    }
}

// Unequal processes: rank r has 1 + r % 2 members.
static int first_of(int rank)
{
    return rank + rank / 2;
}

// Every call by itself; all in the background at once; all as one operation.
static void all_calls(world_job *j, int rank, tt_ctx *ctx)
{
    enum {
        N = TTI_COUNT(calls)
    };
    int n = 1 + rank % 2, first = first_of(rank), total = first_of(j->n);
    set *own = calloc(N, sizeof(*own)), *all = calloc(N, sizeof(*all));
    tt_comm *alone = tt_comm_open(ctx, .members = total, .transport = "local");
    tt_comm *group = tt_comm_open(ctx, .members = n, .transport = j->arg);
    if (tt_comm_first(group) != first)
        (void)TT_FAIL(ctx, TT_EINVAL, "first is %d", tt_comm_first(group));
    for (int way = 0; way < 3 && tt_status_of(ctx) == TT_OK; way++) {
        tt_handle *h[N] = {NULL}, *g = NULL;
        for (int i = 0; i < N; i++) {
            make_set(&calls[i], 0, total, total, &all[i]);
            make_set(&calls[i], first, n, total, &own[i]);
            IGNORED(make(alone, &calls[i], &all[i], NULL));
        }
        if (way == 2)
            IGNORED(tt_call_group_begin(group));
        for (int i = 0; i < N; i++)
            IGNORED(make(group, &calls[i], &own[i], way == 1 ? &h[i] : NULL));
        if (way == 2)
            IGNORED(tt_call_group_end(group, .handle = rank % 2 == 0 ? &g : NULL));
        for (int i = N - 1; i >= 0; i--)
            IGNORED(tt_handle_wait(&h[i]));
        IGNORED(tt_handle_wait(&g));
        for (int i = 0; i < N; i++) {
            compare(ctx, &calls[i], &own[i], &all[i], first, n, total);
            drop_set(&all[i], total);
            drop_set(&own[i], n);
        }
        j->ranks[rank].stage = way;
    }
    free(own);
    free(all);
}

static void on_halves(world_job *j, int rank, tt_tasks *t)
{
    if (strcmp(j->arg, "auto") == 0)
        t->host = rank < (j->n + 1) / 2 ? "a" : "b";
}

static const char *const transports[] = {"shm", "wire", "auto"};

// By shared memory, by wire, over two hosts, which takes three ranks for one to have several.
static void expect_fine(void (*run)(world_job *, int, tt_ctx *), int least, int most)
{
    for (int t = 0; t < 3; t++)
        for (int n = t == 2 ? TTI_MIN(3, most) : least; n <= (t == 1 ? TTI_MIN(3, most) : most);
             n++) {
            world_job j = {
                .n = n, .lanes = 8, .run = run, .change = on_halves, .arg = (void *)transports[t]};
            world_run(&j);
            for (int i = 0; i < n; i++)
                ck_assert_msg(j.ranks[i].status == TT_OK, "rank %d of %d by %s, stage %d: %s", i, n,
                              transports[t], j.ranks[i].stage, j.ranks[i].message);
        }
}

TEST(world_calls_of_all_kinds_are_exact)
{
    expect_fine(all_calls, 2, 4);
}

// ---- bytes -----------------------------------------------------------------------------------

static void send_bytes(world_job *j, int rank, tt_ctx *ctx)
{
    int n = 1 + rank % 2, total = first_of(j->n);
    tt_comm *c = tt_comm_open(ctx, .members = n, .transport = j->arg);
    for (int turn = 0; turn < 3 && tt_status_of(ctx) == TT_OK; turn++) {
        static char text[2][400000];
        tt_bytes in[2], out[MOST], one;
        for (int i = 0; i < n; i++) { // of several slots, a few bytes, none
            int m = first_of(rank) + i;
            size_t bytes = turn == 0 ? (size_t)m * 50000 : turn == 1 ? (size_t)m : 0;
            memset(text[i], 'a' + m, sizeof(text[i]));
            in[i] = (tt_bytes){text[i], bytes};
        }
        if (tt_gather_bytes(c, in, out) != TT_OK)
            return;
        for (int m = 0; m < total; m++) {
            size_t bytes = turn == 0 ? (size_t)m * 50000 : turn == 1 ? (size_t)m : 0;
            const char *at = out[m].data;
            if (out[m].bytes != bytes || at[bytes] != '\0' ||
                (bytes > 0 && (at[0] != 'a' + m || at[bytes - 1] != 'a' + m)))
                (void)TT_FAIL(ctx, TT_EINVAL, "turn %d: bytes of member %d differ", turn, m);
        }
        tt_bytes_free(ctx, out);
        int root = turn % total;
        bool is_mine = root >= first_of(rank) && root < first_of(rank) + n;
        tt_bytes word = {"the word of the root", 21};
        if (tt_broadcast_bytes(c, is_mine ? &word : NULL, &one, .root = root) != TT_OK)
            return;
        if (one.bytes != 21 || strcmp(one.data, word.data) != 0)
            (void)TT_FAIL(ctx, TT_EINVAL, "turn %d: got %zu bytes", turn, one.bytes);
        tt_bytes_free(ctx, &one);
    }
}

TEST(world_bytes_of_any_length_reach_everybody)
{
    expect_fine(send_bytes, 1, 3);
}

// ---- messages --------------------------------------------------------------------------------

enum {
    LONG = 700001
};

// A ring with long messages, tags out of order, and collectives in between in another order.
static void ring(world_job *j, int rank, tt_ctx *ctx)
{
    static float a[LONG], b[LONG], sum[1000], x[3];
    tt_comm *c = tt_comm_open(ctx, .members = 1, .transport = j->arg);
    int right = (rank + 1) % j->n, left = (rank + j->n - 1) % j->n;
    tt_handle *h[4] = {NULL};
    for (int turn = 0; turn < 3 && tt_status_of(ctx) == TT_OK; turn++) {
        for (int i = 0; i < LONG; i++)
            a[i] = (float)(rank * 1000 + i % 1000 + turn);
        for (int i = 0; i < 1000; i++)
            sum[i] = (float)(rank + i);
        memset(b, 0, sizeof(b));
        tt_member m = {sum, sum, 1000, 0, 0};
        if (rank == 0) { // receives wait behind nothing, and sends neither
            IGNORED(tt_receive_from(c, b, LONG, left, .tag = 7, .handle = &h[0]));
            IGNORED(tt_all_reduce(c, &m, .handle = &h[1]));
            IGNORED(tt_send_to(c, a, LONG, right, .tag = 7, .handle = &h[2]));
            for (int i = 0; i < 3; i++)
                IGNORED(tt_send_to(c, &(float){(float)i}, 1, right, .tag = i));
            IGNORED(tt_handle_wait(&h[0]));
        } else {
            for (int i = 2; i >= 0; i--)
                IGNORED(tt_receive_from(c, &x[i], 1, left, .tag = i));
            IGNORED(tt_receive_from(c, b, LONG, left, .tag = 7));
            for (int i = 0; i < 3; i++)
                IGNORED(tt_send_to(c, &(float){(float)i}, 1, right, .tag = i));
            IGNORED(tt_send_to(c, a, LONG, right, .tag = 7));
            IGNORED(tt_all_reduce(c, &m, .handle = &h[1]));
        }
        for (int i = 2; rank == 0 && i >= 0; i--)
            IGNORED(tt_receive_from(c, &x[i], 1, left, .tag = i));
        IGNORED(tt_handle_wait_all(h, 4));
        bool same = x[0] == 0 && x[1] == 1 && x[2] == 2;
        for (int i = 0; i < LONG; i++)
            same = same && b[i] == (float)(left * 1000 + i % 1000 + turn);
        for (int i = 0; i < 1000; i++)
            same = same && sum[i] == (float)(j->n * i + j->n * (j->n - 1) / 2);
        if (tt_status_of(ctx) == TT_OK && !same)
            (void)TT_FAIL(ctx, TT_EINVAL, "turn %d differs", turn);
    }
}

TEST(world_messages_go_beside_collectives)
{
    expect_fine(ring, 2, 3);
}

// A sender that goes at once: what it has sent can still be received. What nobody wants is dropped.
static void send_and_go(world_job *j, int rank, tt_ctx *ctx)
{
    static float x[3][LONG];
    tt_comm *c = tt_comm_open(ctx, .members = 1, .transport = j->arg);
    if (rank == 0) {
        for (int i = 0; i < 3; i++) {
            x[i][LONG - 1] = (float)i;
            IGNORED(tt_send_to(c, x[i], LONG, 1, .tag = i, .handle = &(tt_handle *){NULL}));
            tt_comm_free(i == 1 ? c : NULL); // waits for its own sends
            c = i == 1 ? tt_comm_open(ctx, .members = 1, .transport = j->arg) : c;
        }
        return;
    }
    usleep(100000);
    for (int i = 0; i < 2; i++) {
        IGNORED(tt_receive_from(c, x[i], LONG, 0, .tag = i));
        if (tt_status_of(ctx) == TT_OK && x[i][LONG - 1] != (float)i)
            (void)TT_FAIL(ctx, TT_EINVAL, "message %d ends with %g", i, (double)x[i][LONG - 1]);
    }
    (void)tt_comm_open(ctx, .members = 1, .transport = j->arg);
}

TEST(world_messages_outlive_their_senders_group)
{
    for (int t = 0; t < 2; t++) {
        world_job j = {.n = 2, .run = send_and_go, .arg = (void *)transports[t]};
        world_run(&j);
        for (int i = 0; i < 2; i++)
            ck_assert_msg(j.ranks[i].status == TT_OK, "rank %d by %s: %s", i, transports[t],
                          j.ranks[i].message);
    }
}

// What comes first is found first; a test does not wait.
static void any(world_job *j, int rank, tt_ctx *ctx)
{
    tt_comm *c = tt_comm_open(ctx, .members = 1, .transport = j->arg);
    int which = -2;
    float x[3] = {0}, one = (float)(rank + 1);
    tt_handle *h[3] = {NULL};
    if (rank == 0) {
        bool done = true;
        for (int i = 1; i < j->n; i++)
            IGNORED(tt_receive_from(c, &x[i], 1, i, .handle = &h[i]));
        IGNORED(tt_handle_test(&h[1], &done));
        if (done) // nobody sends before this
            (void)TT_FAIL(ctx, TT_EINVAL, "done too early");
        IGNORED(tt_barrier(c));
        IGNORED(tt_handle_wait_any(h, 3, &which));
        if (which != j->n - 1 && tt_status_of(ctx) == TT_OK)
            (void)TT_FAIL(ctx, TT_EINVAL, "%d was first", which);
        IGNORED(tt_send_to(c, &one, 1, 1));
        while (h[1] != NULL && tt_handle_test(&h[1], &done) == TT_OK)
            usleep(100);
        if (tt_status_of(ctx) == TT_OK && (x[1] != 2 || x[2] != 3))
            (void)TT_FAIL(ctx, TT_EINVAL, "got %g and %g", (double)x[1], (double)x[2]);
        return;
    }
    IGNORED(tt_barrier(c));
    if (rank == 1) // after the other one was received
        IGNORED(tt_receive_from(c, &x[0], 1, 0));
    IGNORED(tt_send_to(c, &one, 1, 0));
}

TEST(world_waits_for_any_take_the_first)
{
    expect_fine(any, 3, 3);
}

// ---- small calls together --------------------------------------------------------------------

// Calls of a group that differ in what only one process knows are found before any is made.
static void group_differs(world_job *j, int rank, tt_ctx *ctx)
{
    float x[4] = {0}, y[4] = {0};
    tt_comm *c = tt_comm_open(ctx, .members = 1, .transport = j->arg);
    tt_member a = {x, x, 4, rank, 1}, b = {y, y, rank == 1 ? 3 : 4, rank, 1};
    x[0] = 1;
    IGNORED(tt_call_group_begin(c));
    IGNORED(tt_all_reduce(c, &a, .lanes = 2));
    IGNORED(tt_all_reduce(c, &b, .lanes = 2));
    IGNORED(tt_call_group_end(c));
    if (x[0] != 1)
        snprintf(j->ranks[rank].note, sizeof(j->ranks[rank].note), "written");
}

static void group_is_longer(world_job *j, int rank, tt_ctx *ctx)
{
    float x[4] = {0};
    tt_comm *c = tt_comm_open(ctx, .members = 1, .transport = j->arg);
    tt_member a = {x, x, 4, rank, 1};
    IGNORED(tt_call_group_begin(c));
    for (int i = 0; i <= rank; i++)
        IGNORED(tt_all_reduce(c, &a, .lanes = 2));
    IGNORED(tt_call_group_end(c));
}

static void other_root(world_job *j, int rank, tt_ctx *ctx)
{
    float x[8] = {0}, y[8];
    tt_comm *c = tt_comm_open(ctx, .members = 1, .transport = j->arg);
    tt_member m = {x, y, 4, 0, 0};
    tt_handle *h;
    IGNORED(tt_reduce_to(c, &m, .root = rank, .handle = &h));
    IGNORED(tt_handle_wait(&h));
}

static void other_order(world_job *j, int rank, tt_ctx *ctx)
{
    float x[8] = {0}, y[16];
    tt_comm *c = tt_comm_open(ctx, .members = 1, .transport = j->arg);
    tt_member m = {x, y, 4, 0, 0};
    tt_handle *h[2] = {NULL};
    IGNORED(rank == 0 ? tt_gather_to(c, &m, .handle = &h[0])
                      : tt_all_reduce(c, &m, .handle = &h[0]));
    IGNORED(rank == 1 ? tt_gather_to(c, &m, .handle = &h[1])
                      : tt_all_reduce(c, &m, .handle = &h[1]));
    IGNORED(tt_handle_wait_all(h, 2));
}

static void other_blocks(world_job *j, int rank, tt_ctx *ctx)
{
    float x[8] = {0}, y[8];
    tt_comm *c = tt_comm_open(ctx, .members = 1, .transport = j->arg);
    tt_member m = {x, y, rank == 1 ? 3 : 4, 0, 0};
    IGNORED(tt_scatter_from(c, &m, .counts = rank == 0 ? (int64_t[]){4, 4} : NULL));
}

static void some_counts(world_job *j, int rank, tt_ctx *ctx)
{
    float x[8] = {0}, y[8];
    tt_comm *c = tt_comm_open(ctx, .members = 1, .transport = j->arg);
    tt_member m = {x, y, 4, 0, 0};
    IGNORED(tt_all_to_all(c, &m, .counts = rank == 0 ? (int64_t[]){1, 2} : NULL));
}

static void little_room(world_job *j, int rank, tt_ctx *ctx)
{
    float x[8] = {0}, y[8];
    tt_comm *c = tt_comm_open(ctx, .members = 1, .transport = j->arg);
    tt_member m = {x, y, rank == 0 ? 2 : 4, 0, 0};
    IGNORED(tt_all_to_all(c, &m, .counts = (int64_t[]){2, 2}));
}

static void other_message(world_job *j, int rank, tt_ctx *ctx)
{
    float x[8] = {0};
    tt_comm *c = tt_comm_open(ctx, .members = 1, .transport = j->arg);
    if (rank == 0)
        IGNORED(tt_send_to(c, x, 4, 1, .tag = 3));
    else
        IGNORED(tt_receive_from(c, x, 5, 0, .tag = 3));
    IGNORED(tt_barrier(c));
}

static void expect(void (*run)(world_job *, int, tt_ctx *), const char *words)
{
    for (int t = 0; t < 2; t++) {
        world_job j = {.n = 2, .run = run, .change = on_halves, .arg = (void *)transports[t]};
        world_run(&j);
        for (int i = 0; i < 2; i++) {
            ck_assert_msg(j.ranks[i].status == TT_EINVAL &&
                              strstr(j.ranks[i].message, words) != NULL,
                          "rank %d, %s: %s", i, transports[t], j.ranks[i].message);
            ck_assert_msg(j.ranks[i].note[0] == '\0', "rank %d, %s", i, transports[t]);
        }
    }
}

TEST(world_calls_with_other_values_are_refused_by_all)
{
    expect(group_differs, "all_reduce: member 1 has 3 elements of f32, but member 0 has 4 of f32");
    expect(group_is_longer, "member 1 has 2 calls left in its group, but member 0 has 1");
    expect(other_root, "root 1, but member 0 has combine 0, lanes 8, root 0");
    expect(other_order, "member 1 is in all_reduce, call 0, but member 0 is in gather_to, call 0");
    expect(other_blocks, "member 1 takes 3 elements, but the root, member 0, has 4 for it");
    expect(some_counts, "member 1 gives no counts, but member 0 does");
    expect(little_room, "member 0 receives 4 elements, but its out has room for 2 (count)");
    expect(other_message, "member 0 sends 4 elements of f32 with tag 3, but member 1 expects 5");
}

// ---- loss ------------------------------------------------------------------------------------

// Waits in each kind of handle for a rank that dies.
static void wait_for_ever(world_job *j, int rank, tt_ctx *ctx)
{
    static float x[100000];
    int way = *(int *)j->arg, which;
    tt_comm *c = tt_comm_open(ctx, .members = 1, .transport = way % 2 == 0 ? "shm" : "wire");
    tt_member m = {x, x, 100000, 0, 0};
    tt_handle *h[3] = {NULL};
    IGNORED(tt_barrier(c));
    j->ranks[rank].stage = 1;
    if (rank == 2)
        for (;;)
            pause();
    if (way < 4)
        IGNORED(tt_all_reduce(c, &m, .handle = &h[0]));
    IGNORED(tt_all_reduce(c, &m, .handle = &h[1]));
    IGNORED(tt_receive_from(c, x, 1, 2, .handle = &h[2]));
    if (way < 2)
        IGNORED(tt_handle_wait_all(h, 3));
    else if (way < 4)
        IGNORED(tt_handle_wait_any(h, 3, &which));
    else
        IGNORED(tt_handle_wait(&h[2])); // the others are left to tt_close()
}

TEST(world_handles_end_when_a_process_dies)
{
    for (int way = 0; way < 6; way++) {
        world_job j = {.n = 3, .run = wait_for_ever, .arg = &way};
        world_start(&j);
        for (int i = 0; i < 3; i++)
            world_await_stage(&j, i, 1);
        usleep(50000);
        kill(j.ranks[2].pid, SIGKILL);
        world_join(&j, 5);
        for (int i = 0; i < 2; i++)
            ck_assert_msg(j.ranks[i].status == TT_EPEER &&
                              strstr(j.ranks[i].message, "rank 2 (/job:worker/task:2") != NULL,
                          "way %d, rank %d: %s", way, i, j.ranks[i].message);
    }
}

// A message that nobody sends: the wait has the deadline and names who it waits for.
static void no_message(world_job *j, int rank, tt_ctx *ctx)
{
    float x;
    int which, way = *(int *)j->arg;
    tt_comm *c = tt_comm_open(ctx, .members = 1, .deadline_ms = 300);
    tt_handle *h = NULL;
    if (rank == 1) {
        while (tt_status_of(ctx) == TT_OK)
            usleep(1000);
        return;
    }
    if (way == 0)
        IGNORED(tt_receive_from(c, &x, 1, 1, .tag = 5));
    IGNORED(tt_receive_from(c, &x, 1, 1, .tag = 5, .handle = &h));
    if (way == 1)
        IGNORED(tt_handle_wait(&h));
    else
        IGNORED(tt_handle_wait_any(&h, 1, &which));
}

TEST(world_messages_that_do_not_come_end_at_the_deadline)
{
    for (int way = 0; way < 3; way++) {
        world_job j = {.n = 2, .run = no_message, .arg = &way};
        world_run(&j);
        for (int i = 0; i < 2; i++)
            ck_assert_msg(
                j.ranks[i].status == TT_ETIMEOUT &&
                    strstr(j.ranks[i].message,
                           "rank 0 waits for the message with tag 5 for member 0 of rank 1") !=
                        NULL,
                "way %d, rank %d: %s", way, i, j.ranks[i].message);
    }
}
