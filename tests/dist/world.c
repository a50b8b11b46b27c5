/*
 * world.c - processes of a job: they meet, exchange, send messages, share memory and part.
 */
#include "net/keys.h"
#include "world_test.h"
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static const char *const transports[] = {"auto", "shm", "wire"};

static void all_well(const world_job *j)
{
    for (int i = 0; i < j->n; i++)
        ck_assert_msg(j->ranks[i].status == TT_OK, "rank %d of %d (%s): %s", i, j->n,
                      j->tasks.transport, j->ranks[i].message);
}

// ---- exchange --------------------------------------------------------------------------------

static void exchange(world_job *j, int rank, tt_ctx *ctx)
{
    tti_world *w = ctx->world;
    for (int round = 0; round < 20; round++) {
        int mine[3] = {rank, round, 7}, all[WORLD_MOST][3];
        if (tti_world_exchange(w, "a round", mine, sizeof(mine), all, 0) != TT_OK)
            return;
        for (int i = 0; i < j->n; i++)
            if (all[i][0] != i || all[i][1] != round || all[i][2] != 7)
                (void)TT_FAIL(ctx, TT_EINVAL, "round %d: rank %d gave %d %d", round, i, all[i][0],
                              all[i][1]);
    }
    const tti_rank *r = tti_world_rank(w, j->n - 1);
    snprintf(j->ranks[rank].note, sizeof(j->ranks[rank].note), "%s %d %d %d %d", r->name,
             tti_world_self(w), tti_world_size(w), r->shares_memory, r->bytes_per_second > 0);
}

TEST(world_processes_exchange)
{
    for (int n = 1; n <= 4; n++) {
        for (int t = 0; t < 3; t++) {
            world_job j = {.n = n, .tasks = {.transport = transports[t]}, .run = exchange};
            char expected[64];
            world_run(&j);
            all_well(&j);
            bool near = n == 1 || t != 2;
            snprintf(expected, sizeof(expected), "/job:worker/task:%d 0 %d %d %d", n - 1, n, near,
                     n > 1);
            CHECK_STR(j.ranks[0].note, expected);
        }
    }
}

static void bind_by_name(world_job *j, int rank, tt_tasks *t)
{
    (void)j;
    t->bind = rank == 0 ? "lo" : "127.0.0.1";
}

TEST(world_listens_at_an_interface_by_name)
{
    world_job j = {.n = 2, .run = exchange, .change = bind_by_name};
    world_run(&j);
    all_well(&j);
}

static void exchange_other_words(world_job *j, int rank, tt_ctx *ctx)
{
    (void)j;
    int mine = 0, all[WORLD_MOST];
    IGNORED(tti_world_exchange(ctx->world, rank == 1 ? "the end" : "the beginning", &mine,
                               sizeof(mine), all, 0));
}

TEST(world_exchange_names_who_differs)
{
    world_job j = {.n = 3, .run = exchange_other_words};
    world_run(&j);
    for (int i = 0; i < 3; i++) {
        ck_assert_msg(j.ranks[i].status == TT_EINVAL, "rank %d: %s", i, j.ranks[i].message);
        ck_assert_msg(strstr(j.ranks[i].message, "the end") != NULL, "%s", j.ranks[i].message);
    }
}

// ---- messages ---------------------------------------------------------------------------------

static const size_t sizes[] = {0, 1, 1000, 524288, 524289, 3000001};

static char pattern(size_t i, size_t bytes, int from)
{
    return (char)(i * 7 + bytes + (size_t)from);
}

// Everybody sends to everybody, small ones first, and reads in another order.
static void messages(world_job *j, int rank, tt_ctx *ctx)
{
    tti_world *w = ctx->world;
    int64_t wait_ms = 15000;
    char *data = malloc(3000001);
    for (int s = 0; s < TTI_COUNT(sizes); s++)
        for (int to = 0; to < j->n; to++) {
            for (size_t i = 0; i < sizes[s]; i++)
                data[i] = pattern(i, sizes[s], rank);
            tti_message l = {77, 5, (uint32_t)s, sizes[s]};
            if (to != rank && tti_world_send(w, to, &l, data, wait_ms) != TT_OK)
                (void)TT_FAIL(ctx, TT_EIO, "send %d to %d", s, to);
        }
    for (int s = TTI_COUNT(sizes) - 1; s >= 0; s--)
        for (int from = 0; from < j->n; from++) {
            tti_message l = {77, 5, (uint32_t)s, sizes[s]};
            memset(data, 0, 3000001);
            if (from == rank)
                continue;
            if (tti_world_receive(w, from, &l, data, wait_ms) != TT_OK)
                (void)TT_FAIL(ctx, TT_EIO, "receive %d from %d", s, from);
            for (size_t i = 0; i < sizes[s]; i++)
                if (data[i] != pattern(i, sizes[s], from)) {
                    (void)TT_FAIL(ctx, TT_EIO, "message %d from %d: byte %zu", s, from, i);
                    break;
                }
        }
    free(data);
}

TEST(world_messages_of_all_sizes_arrive)
{
    for (int plain = 0; plain < 2; plain++) {
        world_job j = {.n = 3, .tasks = {.no_encryption = plain != 0}, .run = messages};
        world_run(&j);
        all_well(&j);
    }
}

// Bytes in as many places as there are, of lengths that do not divide a chunk; some are empty.
static void scattered(world_job *j, int rank, tt_ctx *ctx)
{
    (void)j;
    enum {
        N = 301,
        EACH = 7919
    };
    struct iovec parts[N];
    char *data = calloc(N, EACH), *at = data;
    size_t bytes = 0;
    for (int i = 0; i < N; i++) {
        parts[i] = (struct iovec){at, i % 5 == 2 ? 0 : (size_t)(i * 37 % EACH)};
        at += EACH;
        bytes += parts[i].iov_len;
    }
    tti_message l = {77, 6, 0, bytes};
    int64_t messages[2], sent[2];
    if (rank == 0) {
        size_t k = 0;
        for (int i = 0; i < N; i++)
            for (size_t b = 0; b < parts[i].iov_len; b++)
                ((char *)parts[i].iov_base)[b] = pattern(k++, bytes, 0);
        tti_world_sent(ctx->world, 1, &messages[0], &sent[0]);
        IGNORED(tti_world_send_parts(ctx->world, 1, &l, parts, N, 15000));
        tti_world_sent(ctx->world, 1, &messages[1], &sent[1]);
        if (messages[1] != messages[0] + 1 || sent[1] != sent[0] + (int64_t)bytes)
            (void)TT_FAIL(ctx, TT_EIO, "%lld messages, %lld bytes",
                          (long long)(messages[1] - messages[0]), (long long)(sent[1] - sent[0]));
    } else {
        IGNORED(tti_world_receive(ctx->world, 0, &l, data, 15000));
        for (size_t i = 0; i < bytes; i++)
            if (data[i] != pattern(i, bytes, 0)) {
                (void)TT_FAIL(ctx, TT_EIO, "byte %zu of %zu", i, bytes);
                break;
            }
    }
    free(data);
}

TEST(world_messages_of_several_places_arrive_as_one)
{
    world_job j = {.n = 2, .run = scattered};
    world_run(&j);
    all_well(&j);
}

static void message_of_another_size(world_job *j, int rank, tt_ctx *ctx)
{
    (void)j;
    char data[64] = "x";
    tti_message l = {77, 5, 1, rank == 0 ? 32 : 33};
    if (rank == 0)
        IGNORED(tti_world_send(ctx->world, 1, &l, data, 5000));
    else
        IGNORED(tti_world_receive(ctx->world, 0, &l, data, 5000));
    int mine = 0, all[2];
    IGNORED(tti_world_exchange(ctx->world, "after", &mine, sizeof(mine), all, 5000));
}

TEST(world_message_of_another_size_is_an_error_on_both_sides)
{
    world_job j = {.n = 2, .run = message_of_another_size};
    world_run(&j);
    for (int i = 0; i < 2; i++) {
        CHECK(j.ranks[i].status != TT_OK);
        ck_assert_msg(strstr(j.ranks[i].message, "bytes") != NULL ||
                          strstr(j.ranks[i].message, "the size of a message") != NULL,
                      "%s", j.ranks[i].message);
    }
}

// ---- shared memory ---------------------------------------------------------------------------

static void share(world_job *j, int rank, tt_ctx *ctx)
{
    tti_segment mine = {.at = NULL}, theirs = {.at = NULL};
    tti_segment_name name, all[WORLD_MOST];
    if (tti_segment_new(ctx, 100000, &mine) != TT_OK)
        return;
    ((int *)mine.at)[24999] = 1000 + rank;
    name = tti_segment_name_of(&mine);
    int next = (rank + 1) % j->n;
    if (tti_world_exchange(ctx->world, "segments", &name, sizeof(name), all, 0) == TT_OK &&
        tti_segment_map(ctx, &all[next], &theirs) == TT_OK) {
        j->ranks[rank].hash = (uint64_t)((int *)theirs.at)[24999];
        IGNORED(tti_world_exchange(ctx->world, "read", NULL, 0, NULL, 0));
    }
    tti_segment_free(&theirs);
    tti_segment_free(&mine);
}

TEST(world_processes_map_each_others_memory)
{
    world_job j = {.n = 2, .run = share};
    world_run(&j);
    all_well(&j);
    CHECK_INT(j.ranks[0].hash, 1001);
    CHECK_INT(j.ranks[1].hash, 1000);
}

// ---- keys ------------------------------------------------------------------------------------

static void hex(const tti_digest *d, char out[65])
{
    for (int i = 0; i < 32; i++)
        snprintf(out + (size_t)2 * i, 3, "%02x", d->byte[i]);
}

TEST(world_keys_follow_the_published_examples)
{
    char text[65];
    tti_digest d = tti_sha256("abc", 3);
    hex(&d, text);
    CHECK_STR(text, "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
    d = tti_sha256("abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq", 56);
    hex(&d, text);
    CHECK_STR(text, "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1");
    d = tti_hmac("Jefe", 4, "what do ya want for nothing?", 28); // RFC 4231, case 2
    hex(&d, text);
    CHECK_STR(text, "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843");
    uint8_t secret[TT_SECRET_BYTES] = {1};
    tti_digest a = tti_derive(secret, "curve", 0), b = tti_derive(secret, "curve", 1);
    tti_digest c = tti_derive(secret, "data", 0);
    CHECK(!tti_equal(&a, &b, sizeof(a)) && !tti_equal(&a, &c, sizeof(a)));
}
