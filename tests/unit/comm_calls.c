/*
 * comm_calls.c - calls with a root, unequal counts, bytes, messages, handles and groups of calls,
 * within one process: every value against a plain loop, the edges, and what is refused.
 */
#include "comm/comm.h"
#include "test.h"
#include <stdio.h>
#include <stdlib.h>

#define MOST 5

static const tt_dtype types[] = {TT_F32, TT_F64, TT_BF16, TT_F16, TT_I32, TT_I64, TT_U8, TT_BOOL};
static const int64_t counts[] = {0, 1, 7, 4001};

static tt_ctx *open_here(void)
{
    return tt_open(.devices = "cpu:0*2", .threads = 2, .lanes = 8, .on_event = test_ignore_event);
}

static void expect(tt_ctx *ctx, tt_status got, tt_status want, const char *words)
{
    ck_assert_msg(got == want, "'%s': status %d", words, (int)got);
    CHECK_MESSAGE(ctx, words);
    tt_clear_error(ctx);
}

// Byte k of member i: what is copied is compared as bytes, whatever the type.
static char byte_of(int i, int64_t k)
{
    return (char)(i * 37 + k * 11 + k / 251);
}

static char *new_bytes(int i, size_t bytes)
{
    char *b = malloc(bytes + 1);
    for (size_t k = 0; k < bytes; k++)
        b[k] = byte_of(i, (int64_t)k);
    return b;
}

static void check_bytes(const char *got, int from, size_t at, size_t bytes)
{
    for (size_t k = 0; k < bytes; k++)
        if (got[k] != byte_of(from, (int64_t)(at + k)))
            ck_abort_msg("byte %zu of %zu from member %d is wrong", k, bytes, from);
}

static void drop(tt_member *m, int n)
{
    for (int i = 0; i < n; i++) {
        free((void *)m[i].in);
        free(m[i].out);
    }
}

// ---- calls with a root -----------------------------------------------------------------------

TEST(gather_to_a_root_puts_all_ins_one_after_another)
{
    tt_ctx *ctx = open_here();
    for (int n = 1; n <= MOST; n++) {
        tt_comm *c = tt_comm_open(ctx, .members = n);
        for (int t = 0; t < TTI_COUNT(types); t++)
            for (int root = 0; root < n; root++) {
                size_t item = tt_dtype_bytes(types[t]), at = 0;
                tt_member m[MOST];
                int64_t received[MOST] = {0}, total = 0;
                for (int i = 0; i < n; i++) { // one of them has nothing
                    m[i] = (tt_member){.count = i == 1 ? 0 : 100 * i + t};
                    total += m[i].count;
                    m[i].in = new_bytes(i, (size_t)m[i].count * item);
                }
                m[root].out = malloc((size_t)total * item + 1);
                ((char *)m[root].out)[(size_t)total * item] = 77;
                CHECK_OK(tt_gather_to(c, m, .dtype = types[t], .root = root, .received = received));
                for (int i = 0; i < n; i++) {
                    CHECK_INT(received[i], m[i].count);
                    check_bytes((char *)m[root].out + at, i, 0, (size_t)m[i].count * item);
                    at += (size_t)m[i].count * item;
                }
                CHECK(((char *)m[root].out)[at] == 77);
                drop(m, n);
            }
        tt_comm_free(c);
    }
    CHECK_OK(tt_close(ctx));
}

TEST(scatter_from_a_root_gives_each_its_block)
{
    tt_ctx *ctx = open_here();
    for (int n = 1; n <= MOST; n++) {
        tt_comm *c = tt_comm_open(ctx, .members = n);
        for (int t = 0; t < TTI_COUNT(types); t++)
            for (int k = 0; k < TTI_COUNT(counts); k++)
                for (int unequal = 0; unequal < 2; unequal++) {
                    int root = (n - 1 + t) % n;
                    size_t item = tt_dtype_bytes(types[t]), at = 0;
                    tt_member m[MOST] = {{NULL, NULL, 0, 0, 0}};
                    int64_t each[MOST], total = 0;
                    for (int i = 0; i < n; i++) {
                        each[i] = unequal != 0 ? counts[(i + k) % TTI_COUNT(counts)] : counts[k];
                        m[i].count = each[i];
                        m[i].out = malloc((size_t)each[i] * item + 1);
                        total += each[i];
                    }
                    m[root].in = new_bytes(root, (size_t)total * item);
                    CHECK_OK(tt_scatter_from(c, m, .dtype = types[t], .root = root,
                                             .counts = unequal != 0 ? each : NULL));
                    for (int i = 0; i < n; i++) {
                        check_bytes(m[i].out, root, at, (size_t)each[i] * item);
                        at += (size_t)each[i] * item;
                    }
                    drop(m, n);
                }
        tt_comm_free(c);
    }
    CHECK_OK(tt_close(ctx));
}

// The root's own piece may stay where it is.
TEST(roots_work_in_place)
{
    tt_ctx *ctx = open_here();
    tt_comm *c = tt_comm_open(ctx, .members = 3);
    float all[6] = {0, 1, 2, 3, 4, 5}, a[2], b[2];
    tt_member m[3] = {{NULL, a, 2, 0, 0}, {all, all + 2, 2, 0, 0}, {NULL, b, 2, 0, 0}};
    CHECK_OK(tt_scatter_from(c, m, .root = 1));
    CHECK(a[0] == 0 && a[1] == 1 && all[2] == 2 && all[3] == 3 && b[0] == 4 && b[1] == 5);
    a[0] = 10;
    b[1] = 50;
    tt_member g[3] = {{a, NULL, 2, 0, 0}, {all + 2, all, 2, 0, 0}, {b, NULL, 2, 0, 0}};
    CHECK_OK(tt_gather_to(c, g, .root = 1));
    CHECK(all[0] == 10 && all[1] == 1 && all[2] == 2 && all[5] == 50);
    tt_member r[3] = {{a, NULL, 2, 0, 0}, {b, b, 2, 0, 0}, {all, NULL, 2, 0, 0}};
    CHECK_OK(tt_reduce_to(c, r, .root = 1));
    CHECK(b[0] == 10 + 4 + 10 && b[1] == 1 + 50 + 1);
    m[1].out = all + 1; // not its block
    expect(ctx, tt_scatter_from(c, m, .root = 1), TT_EINVAL, "scatter_from: member 1: in and out");
    CHECK_OK(tt_close(ctx));
}

// The same bits as an all-reduce, and nobody else's memory is touched.
TEST(reduce_to_a_root_is_the_all_reduce_of_the_root)
{
    enum {
        COUNT = 9001
    };
    static char in[MOST][COUNT * 8], all[MOST][COUNT * 8], out[MOST][COUNT * 8];
    tt_ctx *ctx = open_here();
    for (int n = 1; n <= MOST; n++) {
        tt_comm *c = tt_comm_open(ctx, .members = n);
        for (int t = 0; t < 6; t++)
            for (int how = 0; how < 3; how++) {
                int64_t count = counts[(t + how) % 3] * 1000 + how;
                int root = (t + how) % n;
                size_t bytes = (size_t)count * tt_dtype_bytes(types[t]);
                tt_member a[MOST], r[MOST];
                memset(out, 99, sizeof(out));
                for (int i = 0; i < n; i++) {
                    for (int64_t k = 0; k < count; k++) {
                        float f = (float)((k * 7 + i * 31) % 97) * 0.37f - 11;
                        double d = f;
                        uint16_t h = types[t] == TT_BF16 ? tti_to_bf16(f) : tti_to_f16(f);
                        int32_t i32 = (int32_t)f;
                        int64_t i64 = i32;
                        const void *v[] = {&f, &d, &h, &h, &i32, &i64};
                        memcpy(in[i] + (size_t)k * tt_dtype_bytes(types[t]), v[t],
                               tt_dtype_bytes(types[t]));
                    }
                    a[i] = (tt_member){in[i], all[i], count, 0, 0};
                    r[i] = (tt_member){in[i], i == root ? out[i] : NULL, count, 0, 0};
                }
                CHECK_OK(tt_all_reduce(c, a, .dtype = types[t], .combine = (tt_combine)how));
                CHECK_OK(tt_reduce_to(c, r, .dtype = types[t], .combine = (tt_combine)how,
                                      .root = root));
                CHECK(memcmp(out[root], all[root], bytes) == 0 && out[root][bytes] == 99);
                for (int i = 0; i < n; i++)
                    CHECK(i == root || out[i][0] == 99);
            }
        tt_comm_free(c);
    }
    CHECK_OK(tt_close(ctx));
}

// ---- unequal blocks --------------------------------------------------------------------------

TEST(unequal_blocks_reach_everybody)
{
    tt_ctx *ctx = open_here();
    for (int n = 1; n <= MOST; n++) {
        tt_comm *c = tt_comm_open(ctx, .members = n);
        for (int t = 0; t < TTI_COUNT(types); t++) {
            size_t item = tt_dtype_bytes(types[t]);
            int64_t each[MOST * MOST], received[MOST * MOST];
            tt_member m[MOST];
            for (int k = 0; k < n * n; k++)
                each[k] = (k * 13 + t) % 4 == 0 ? 0 : (k * 211 + t) % 3000;
            for (int i = 0; i < n; i++) {
                int64_t in = 0, out = 0;
                for (int j = 0; j < n; j++) {
                    in += each[i * n + j];
                    out += each[j * n + i];
                }
                m[i] = (tt_member){new_bytes(i, (size_t)in * item), malloc((size_t)out * item + 1),
                                   out + i, 0, 0};
                ((char *)m[i].out)[(size_t)out * item] = 77;
            }
            CHECK_OK(tt_all_to_all(c, m, .dtype = types[t], .counts = each, .received = received));
            for (int i = 0; i < n; i++) {
                size_t at = 0;
                for (int j = 0; j < n; j++) {
                    int64_t before = 0;
                    for (int k = 0; k < i; k++)
                        before += each[j * n + k];
                    CHECK_INT(received[i * n + j], each[j * n + i]);
                    check_bytes((char *)m[i].out + at, j, (size_t)before * item,
                                (size_t)each[j * n + i] * item);
                    at += (size_t)each[j * n + i] * item;
                }
                CHECK(((char *)m[i].out)[at] == 77);
            }
            drop(m, n);
        }
        tt_comm_free(c);
    }
    CHECK_OK(tt_close(ctx));
}

// ---- bytes -----------------------------------------------------------------------------------

TEST(bytes_of_any_length_are_broadcast_and_gathered)
{
    tt_ctx *ctx = open_here();
    tt_comm *c = tt_comm_open(ctx, .members = 3);
    tt_bytes in[3] = {{"one", 3}, {NULL, 0}, {"three", 5}}, out[3], one;
    tt_bytes job = {"a job", 6}, nothing = {NULL, 0};
    CHECK_OK(tt_gather_bytes(c, in, out));
    CHECK(out[0].bytes == 3 && out[1].bytes == 0 && out[2].bytes == 5);
    CHECK_STR(out[0].data, "one");
    CHECK_STR(out[1].data, "");
    CHECK_STR(out[2].data, "three");
    tt_bytes_free(ctx, out);
    CHECK(out[0].data == NULL);
    CHECK_OK(tt_broadcast_bytes(c, &job, &one, .root = 2));
    CHECK(one.bytes == 6 && memcmp(one.data, "a job", 6) == 0);
    tt_bytes_free(ctx, &one);
    CHECK_OK(tt_broadcast_bytes(c, &nothing, &one));
    CHECK(one.bytes == 0 && one.data != NULL);
    tt_bytes_free(ctx, &one);
    tt_bytes_free(ctx, NULL);
    expect(ctx, tt_broadcast_bytes(c, NULL, &one), TT_EINVAL,
           "in is NULL, and member 0 is of this");
    expect(ctx, tt_gather_bytes(c, in, NULL), TT_EINVAL, "gather_bytes: out is NULL");
    in[1].bytes = 4;
    expect(ctx, tt_gather_bytes(c, in, out), TT_EINVAL, "member 1: in is NULL, for 4 elements");
    CHECK(out[0].data == NULL);
    CHECK_OK(tt_close(ctx));
}

// ---- messages --------------------------------------------------------------------------------

TEST(messages_are_matched_by_sender_receiver_and_tag)
{
    tt_ctx *ctx = open_here();
    tt_comm *c = tt_comm_open(ctx, .members = 3);
    int32_t x[4] = {0};
    for (int32_t i = 0; i < 4; i++) // two of one tag keep their order
        CHECK_OK(tt_send_to(c, &i, 1, 2, .member = 1, .tag = i / 2, .dtype = TT_I32));
    CHECK_OK(tt_send_to(c, &(int32_t){9}, 1, 2, .member = 0, .dtype = TT_I32));
    CHECK_OK(tt_receive_from(c, &x[0], 1, 1, .member = 2, .tag = 1, .dtype = TT_I32));
    CHECK_OK(tt_receive_from(c, &x[1], 1, 0, .member = 2, .dtype = TT_I32));
    CHECK_OK(tt_receive_from(c, &x[2], 1, 1, .member = 2, .dtype = TT_I32));
    CHECK_OK(tt_receive_from(c, &x[3], 1, 1, .member = 2, .tag = 1, .dtype = TT_I32));
    CHECK(x[0] == 2 && x[1] == 9 && x[2] == 0 && x[3] == 3);
    CHECK_OK(tt_send_to(c, NULL, 0, 0));
    CHECK_OK(tt_receive_from(c, NULL, 0, 0));
    expect(ctx, tt_receive_from(c, x, 1, 0, .member = 2, .tag = 5), TT_EINVAL,
           "member 2 waits for a message of member 0 with tag 5, but both are of this process");
    expect(ctx, tt_receive_from(c, x, 2, 1, .member = 2, .dtype = TT_F32), TT_EINVAL,
           "member 1 sends 1 elements of i32 with tag 0, but member 2 expects 2 of f32");
    expect(ctx, tt_send_to(c, x, 1, 3), TT_EINVAL, "send_to: there is no member 3");
    expect(ctx, tt_send_to(c, x, 1, 0, .member = 3), TT_EINVAL, "this process has 3 members");
    expect(ctx, tt_send_to(c, NULL, 1, 0), TT_EINVAL, "data is NULL, for 1 elements");
    expect(ctx, tt_receive_from(c, x, -1, 0), TT_EINVAL, "-1 elements");
    expect(ctx, tt_receive_from(c, x, 1, 0, .dtype = (tt_dtype)99), TT_EDTYPE, "element type 99");
    CHECK_OK(tt_close(ctx)); // one is left, and does not leak
}

// ---- handles ---------------------------------------------------------------------------------

TEST(handles_are_waited_for_in_any_order)
{
    enum {
        CALLS = 12,
        COUNT = 70001
    };
    static float x[CALLS][2][COUNT], y[CALLS][2][COUNT];
    tt_ctx *ctx = open_here();
    tt_comm *c = tt_comm_open(ctx, .members = 2);
    tt_handle *h[CALLS], *r, *s;
    float got = 0;
    CHECK_OK(tt_receive_from(c, &got, 1, 0, .member = 1, .handle = &r));
    for (int i = 0; i < CALLS; i++) {
        for (int k = 0; k < COUNT; k++) {
            x[i][0][k] = (float)(i + k);
            x[i][1][k] = (float)(2 * k);
        }
        tt_member m[2] = {{x[i][0], y[i][0], COUNT, 0, 0}, {x[i][1], y[i][1], COUNT, 0, 0}};
        CHECK_OK(tt_all_reduce(c, m, .handle = &h[i])); // m is copied
    }
    CHECK_OK(tt_barrier(c)); // comes after them
    for (int i = 0; i < CALLS; i++)
        CHECK(y[i][1][COUNT - 1] == (float)(i + 3 * (COUNT - 1)));
    bool done = true;
    CHECK_OK(tt_handle_test(&r, &done));
    CHECK(!done && r != NULL);
    CHECK_OK(tt_send_to(c, &(float){4}, 1, 1, .handle = &s));
    CHECK_OK(tt_handle_test(&r, &done));
    CHECK(done && r == NULL && got == 4);
    int which = 7;
    CHECK_OK(tt_handle_wait(&h[CALLS - 1]));
    CHECK(h[CALLS - 1] == NULL);
    CHECK_OK(tt_handle_wait(&h[CALLS - 1])); // NULL is done
    CHECK_OK(tt_handle_wait_any(h, CALLS, &which));
    CHECK(which >= 0 && which < CALLS - 1 && h[which] == NULL);
    CHECK_OK(tt_handle_wait_all(h, CALLS));
    CHECK_OK(tt_handle_wait_any(h, CALLS, &which));
    CHECK_INT(which, -1);
    CHECK(tt_handle_wait(NULL) == TT_EINVAL && tt_handle_test(NULL, &done) == TT_EINVAL);
    CHECK_OK(tt_close(ctx)); // s was never waited for
}

// Beside a session that uses the devices.
TEST(handles_go_on_while_a_session_runs)
{
    static float x[2][300000], y[2][300000];
    tt_ctx *ctx = open_here();
    tt_comm *c = tt_comm_open(ctx, .members = 2);
    tt_graph *g = tt_graph_new(ctx);
    tt_tensor *v = tt_variable(g, .shape = TT_SHAPE(64, 64), .init = {TT_INIT_NORMAL, 0, 1});
    tt_tensor *z = tt_sum(g, tt_matmul(g, v, v));
    tt_session *s = tt_session_new(g);
    float first = 0, sum = 0;
    for (int k = 0; k < 300000; k++)
        x[0][k] = x[1][k] = (float)k;
    for (int i = 0; i < 20; i++) {
        tt_handle *h;
        tt_member m[2] = {{x[0], y[0], 300000, 0, 0}, {x[1], y[1], 300000, 0, 0}};
        CHECK_OK(tt_all_reduce(c, m, .handle = &h));
        tt_fetch fetch = {z, i == 0 ? &first : &sum, sizeof(float)};
        CHECK_OK(tt_run(s, .fetches = &fetch, .n_fetches = 1));
        CHECK_OK(tt_handle_wait(&h));
        CHECK(y[1][299999] == 2 * 299999.0f && (i == 0 || sum == first));
    }
    CHECK_OK(tt_close(ctx));
}

TEST(errors_of_calls_in_the_background_are_everybodys)
{
    tt_ctx *ctx = open_here();
    tt_comm *c = tt_comm_open(ctx, .members = 2);
    float x[4] = {0}, y[4];
    tt_handle *h[3];
    tt_member good[2] = {{x, x, 4, 0, 0}, {y, y, 4, 0, 0}};
    tt_member bad[2] = {{x, x, 4, 0, 0}, {y, y, 3, 0, 0}};
    CHECK_OK(tt_all_reduce(c, bad, .handle = &h[0])); // found when it is made
    tt_status st = tt_all_reduce(c, good, .handle = &h[1]);
    CHECK(st == TT_OK || st == TT_EINVAL);
    CHECK(tt_handle_wait_all(h, 2) == TT_EINVAL);
    CHECK_MESSAGE(ctx, "all_reduce: member 1 has 3 elements of f32, but member 0 has 4 of f32");
    CHECK(tt_all_reduce(c, good, .handle = &h[2]) == TT_EINVAL && h[2] == NULL);
    tt_clear_error(ctx);
    CHECK_OK(tt_all_reduce(c, good, .handle = &h[2]));
    CHECK_OK(tt_handle_wait(&h[2]));
    h[0] = (void *)x; // a call that fails at once leaves no handle
    expect(ctx, tt_all_reduce(c, good, .dtype = TT_U8, .handle = &h[0]), TT_EDTYPE, "type u8");
    CHECK(h[0] == NULL);
    CHECK_OK(tt_receive_from(c, x, 1, 0, .handle = &h[0]));
    expect(ctx, tt_handle_wait(&h[0]), TT_EINVAL, "this process, which has not sent it");
    CHECK_OK(tt_close(ctx));
}

// Every allocation of a call with a handle may fail, and nothing leaks.
TEST(handles_fail_cleanly_without_memory)
{
    for (int64_t n = 1; n < 40; n++) {
        tt_ctx *ctx = open_here();
        tt_comm *c = tt_comm_open(ctx, .members = 2);
        float x[2] = {1, 2}, seven = 7, got = 0;
        tt_member m[2] = {{x, x, 1, 0, 0}, {x + 1, x + 1, 1, 0, 0}};
        tt_bytes in[2] = {{"a", 1}, {"bc", 2}}, out[2] = {{NULL, 0}, {NULL, 0}};
        tt_handle *h = NULL, *s = NULL;
        tti_fail_alloc_at(ctx, n);
        (void)(tt_all_reduce(c, m, .handle = &h) == TT_OK);
        (void)(tt_send_to(c, &seven, 1, 1, .handle = &s) == TT_OK);
        (void)(tt_handle_wait(&h) == TT_OK);
        (void)(tt_gather_bytes(c, in, out) == TT_OK);
        (void)(tt_call_group_begin(c) == TT_OK);
        (void)(tt_all_reduce(c, m) == TT_OK);
        (void)(tt_receive_from(c, &got, 1, 0, .member = 1) == TT_OK);
        (void)(tt_call_group_end(c) == TT_OK);
        tti_fail_alloc_at(ctx, 0);
        tt_bytes_free(ctx, out);
        tt_status st = tt_close(ctx); // also fails if anything leaked
        if (st == TT_OK) {
            CHECK(n > 8 && got == 7);
            return;
        }
        CHECK(st == TT_ENOMEM);
    }
    ck_abort_msg("it never succeeded");
}

// ---- groups of calls -------------------------------------------------------------------------

TEST(a_group_of_calls_is_one_operation)
{
    tt_ctx *ctx = open_here();
    tt_comm *c = tt_comm_open(ctx, .members = 2);
    for (int background = 0; background < 2; background++) {
        float a[2] = {1, 2}, b[2] = {10, 20}, all[2][4], got = 0;
        int64_t i[2] = {3, 4};
        tt_handle *h = NULL;
        CHECK_OK(tt_call_group_begin(c));
        CHECK_OK(tt_receive_from(c, &got, 1, 0, .member = 1)); // before it is sent
        {
            tt_member m[2] = {{a, a, 2, 0, 0}, {b, b, 2, 0, 0}};
            CHECK_OK(tt_all_reduce(c, m));
            tt_member k[2] = {{&i[0], &i[0], 1, 0, 0}, {&i[1], &i[1], 1, 0, 0}};
            CHECK_OK(tt_all_reduce(c, k, .dtype = TT_I64, .combine = TT_COMBINE_MAX));
            tt_member g[2] = {{a, all[0], 2, 0, 0}, {b, all[1], 2, 0, 0}};
            CHECK_OK(tt_all_gather(c, g)); // of what the first has made
        }
        CHECK_OK(tt_send_to(c, &(float){5}, 1, 1));
        CHECK(a[0] == 1 && got == 0); // nothing has begun
        CHECK_OK(tt_call_group_end(c, .handle = background != 0 ? &h : NULL));
        CHECK_OK(tt_handle_wait(&h));
        CHECK(a[0] == 11 && b[1] == 22 && i[0] == 4 && i[1] == 4 && got == 5);
        CHECK(all[1][0] == 11 && all[1][3] == 22);
    }
    float x[2] = {0};
    tt_handle *h;
    tt_member m[2] = {{x, x, 1, 0, 0}, {x + 1, x + 1, 1, 0, 0}};
    expect(ctx, tt_call_group_end(c), TT_EINVAL, "it ends, but none has begun");
    CHECK_OK(tt_call_group_begin(c));
    expect(ctx, tt_call_group_begin(c), TT_EINVAL, "another one has begun and not ended");
    expect(ctx, tt_all_reduce(c, m, .handle = &h), TT_EINVAL, "give it to tt_call_group_end()");
    CHECK_OK(tt_call_group_end(c)); // of no calls
    CHECK_OK(tt_call_group_begin(c));
    CHECK(tt_all_reduce(c, NULL) == TT_EINVAL);
    CHECK(tt_call_group_end(c) == TT_EINVAL); // it ends all the same
    tt_clear_error(ctx);
    CHECK_OK(tt_call_group_begin(c));
    CHECK_OK(tt_all_reduce(c, m));
    CHECK_OK(tt_call_group_end(c));
    CHECK_OK(tt_close(ctx));
}

// ---- what is refused -------------------------------------------------------------------------

TEST(calls_that_do_not_fit_are_refused_by_name)
{
    tt_ctx *ctx = open_here();
    tt_comm *c = tt_comm_open(ctx, .members = 2);
    float x[8] = {0}, y[8];
    tt_member m[2] = {{x, x + 4, 2, 0, 0}, {y, y + 4, 2, 0, 0}};
    expect(ctx, tt_reduce_to(c, m, .root = 2), TT_EINVAL, "root is 2, but there are 2 members");
    expect(ctx, tt_gather_to(c, m, .root = -1), TT_EINVAL, "gather_to: root is -1");
    expect(ctx, tt_reduce_to(c, m, .dtype = TT_U8), TT_EDTYPE, "reduce_to: elements of type u8");
    m[1].count = 3;
    expect(ctx, tt_scatter_from(c, m), TT_EINVAL,
           "member 1 takes 3 elements, but the root, member 0, has 2 for it");
    expect(ctx, tt_scatter_from(c, m, .counts = (int64_t[]){2, 4}), TT_EINVAL,
           "member 1 takes 3 elements, but the root, member 0, has 4 for it");
    expect(ctx, tt_scatter_from(c, m, .counts = (int64_t[]){2, -1}), TT_EINVAL, "counts[1] is -1");
    expect(ctx, tt_all_to_all(c, m, .counts = (int64_t[]){1, 1, 1, 3}), TT_EINVAL,
           "member 1 receives 4 elements, but its out has room for 3 (count)");
    m[1].count = 2;
    m[0].out = NULL;
    expect(ctx, tt_gather_to(c, m), TT_EINVAL, "member 0: out is NULL, for 4 elements");
    CHECK_OK(tt_gather_to(c, m, .root = 1));
    tti_fingerprint a = {.factor = 1, .left = 1}, b = a;
    b.factor = 0.5;
    expect(ctx, tti_fingerprint_check(ctx, "reduce_to", 0, &a, 1, &b), TT_EINVAL,
           "member 1 has factor 0.5, round f32, fast 0, but member 0 has factor 1, round f32");
    b = a;
    b.left = 3;
    expect(ctx, tti_fingerprint_check(ctx, "reduce_to", 0, &a, 1, &b), TT_EINVAL,
           "member 1 has 3 calls left in its group, but member 0 has 1");
    b = a;
    b.is_unequal = 1;
    expect(ctx, tti_fingerprint_check(ctx, "all_to_all", 0, &a, 1, &b), TT_EINVAL,
           "member 1 gives unequal counts, but member 0 does not");
    CHECK_OK(tt_close(ctx));
}
