/*
 * comm.c - collectives on values: sums over lanes against one run of all lanes, to the bit; the
 * other calls against plain loops in doubles; what is refused, and in which words.
 */
#include "comm/comm.h"
#include "test.h"
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#define MOST 64 // members

static tt_ctx *open_lanes(const char *devices, int lanes)
{
    return tt_open(.devices = devices, .threads = 2, .lanes = lanes, .on_event = test_ignore_event);
}

// ---- sums over lanes -------------------------------------------------------------------------

enum {
    IN = 37,
    OUT = 19,
    COUNT = IN * OUT,
    PARTS = 24
};

// A sum over rows that rounds: what the gradient of a weight is.
typedef struct product {
    tt_graph *g;
    tt_tensor *x, *dw;
    tt_session *s;
    float xs[61 * IN];
} product;

static void build_product(product *p, tt_ctx *ctx, tt_dtype type)
{
    p->g = tt_graph_new(ctx);
    p->x = tt_feed(p->g, .shape = TT_SHAPE(TT_BATCH, IN));
    tt_tensor *w = tt_variable(p->g, .shape = TT_SHAPE(IN, OUT), .init = {TT_INIT_NORMAL, 0, 0.3});
    tt_tensor *x = tt_cast(p->g, p->x, type), *v = tt_cast(p->g, w, type);
    p->dw = tt_matmul(p->g, x, tt_matmul(p->g, x, v), .transpose_a = true);
    p->s = tt_session_new(p->g);
    test_fill(p->xs, 61 * IN, 7, -1, 1);
}

static void run_product(product *p, int64_t rows, const tt_part *part, void *out, size_t bytes)
{
    tt_batch batch = part == NULL ? (tt_batch){0, rows, 0} : part->batch;
    int64_t n = part == NULL ? rows : part->rows;
    tt_feed_value feed = {p->x, p->xs + batch.first_row * IN, TT_SHAPE(n, IN), TT_F32};
    tt_fetch fetch = {p->dw, out, bytes};
    ck_assert_msg(tt_run(p->s, .feeds = &feed, .n_feeds = 1, .fetches = &fetch, .n_fetches = 1,
                         .batch = batch) == TT_OK,
                  "%s", tt_last_error(tt_graph_get_ctx(p->g)).message);
}

// Parts of one batch, member i holding part order[i].
static void sum_parts(product *p, tt_ctx *ctx, int64_t rows, int n, tt_dtype type, bool reverse)
{
    static char in[16][PARTS * COUNT * 8], out[16][COUNT * 8], whole[COUNT * 8], one[COUNT * 8];
    size_t item = tt_dtype_bytes(type), wide = type == TT_F64 ? 8 : 4;
    bool rounds = item < wide;
    tt_member members[16];
    run_product(p, rows, NULL, whole, COUNT * item);
    for (int i = 0; i < n; i++) {
        tt_part part;
        CHECK_OK(tt_batch_part(ctx, rows, reverse ? n - 1 - i : i, n, &part));
        memset(out[i], 0x55, sizeof(out[i]));
        members[i] =
            (tt_member){part.rows > 0 ? in[i] : NULL, out[i], COUNT, part.first_lane, part.n_lanes};
        if (part.rows > 0)
            run_product(p, rows, &part, in[i], (size_t)part.n_sums * COUNT * wide);
    }
    tt_comm *c = tt_comm_open(ctx, .members = n);
    tt_dtype from = rounds ? TT_F32 : type, to = rounds ? type : TT_F32;
    ck_assert_msg(tt_all_reduce(c, members, .dtype = from, .round = to) == TT_OK, "%s",
                  tt_last_error(ctx).message);
    for (int i = 0; i < n; i++)
        ck_assert_msg(memcmp(out[i], whole, COUNT * item) == 0,
                      "%lld rows in %d parts, %s: member %d has other bits", (long long)rows, n,
                      tt_dtype_name(type), i);
    CHECK_OK(tt_sum_lanes(ctx, members, n, one, .dtype = from, .round = to));
    CHECK(memcmp(one, whole, COUNT * item) == 0);
    tt_comm_free(c);
}

static void sums_of_type(tt_dtype type)
{
    static const int lanes[] = {8, 1, 3, 6, 16}, parts[] = {2, 3, 4, 7, 8};
    static const int64_t rows[] = {1, 3, 8, 17, 61};
    bool halves = type == TT_BF16 || type == TT_F16; // of one row a part is the whole, and rounded
    for (int l = 0; l < 5; l++) {
        tt_ctx *ctx = open_lanes("cpu:0*2", lanes[l]);
        static product p;
        build_product(&p, ctx, type);
        for (int r = 0; r < 5; r++)
            for (int n = 0; n < 5; n++)
                if (parts[n] <= lanes[l] && (rows[r] > 1 || !halves))
                    sum_parts(&p, ctx, rows[r], parts[n], type, (r + n) % 2 == 1);
        CHECK_OK(tt_close(ctx));
    }
}

TEST(sums_over_lanes_have_the_bits_of_one_run_f32)
{
    sums_of_type(TT_F32);
}

TEST(sums_over_lanes_have_the_bits_of_one_run_f64)
{
    sums_of_type(TT_F64);
}

TEST(sums_over_lanes_have_the_bits_of_one_run_bf16)
{
    sums_of_type(TT_BF16);
}

TEST(sums_over_lanes_have_the_bits_of_one_run_f16)
{
    sums_of_type(TT_F16);
}

TEST(parts_of_a_batch_hold_every_row_and_lane_once)
{
    static const int lanes[] = {1, 5, 8, 16};
    for (int l = 0; l < 4; l++) {
        tt_ctx *ctx = open_lanes("cpu:0", lanes[l]);
        for (int64_t rows = 1; rows <= 35; rows++)
            for (int n = 1; n <= lanes[l]; n++) {
                int64_t row = 0;
                int lane = 0;
                for (int i = 0; i < n; i++) {
                    tt_part p;
                    CHECK_OK(tt_batch_part(ctx, rows, i, n, &p));
                    CHECK(p.batch.first_row == row && p.batch.global_rows == rows);
                    CHECK((p.rows == 0) == (p.n_lanes == 0) && (p.rows == 0) == (p.n_sums == 0));
                    CHECK(p.rows == 0 || p.first_lane == lane);
                    row += p.rows;
                    lane += p.n_lanes;
                }
                CHECK_INT(row, rows);
                CHECK_INT(lane, lanes[l]);
            }
        CHECK_OK(tt_close(ctx));
    }
}

// The order is the tree's: (a + b) + (c + d), not ((a + b) + c) + d.
TEST(members_without_lanes_are_lanes)
{
    tt_ctx *ctx = test_ctx();
    tt_comm *c = tt_comm_open(ctx, .members = 4);
    float v[4] = {1, 0x1p-24f, 0x1p-24f, 0x1p-24f}, out[4], fast[4];
    tt_member m[4], f[4];
    for (int i = 0; i < 4; i++) {
        m[i] = (tt_member){&v[i], &out[i], 1, 0, 0};
        f[i] = (tt_member){&v[i], &fast[i], 1, 0, 0};
    }
    CHECK_OK(tt_all_reduce(c, m));
    CHECK_OK(tt_all_reduce(c, f, .fast = true));
    CHECK(out[0] == 1 + 0x1p-23f && out[3] == out[0]);
    CHECK(fast[0] == 1);
    CHECK_OK(tt_all_reduce(c, m, .factor = 0.25));
    CHECK(out[2] == (1 + 0x1p-23f) / 4);
    CHECK_OK(tt_close(ctx));
}

// A check for every element: only a failing one goes through Check, which takes microseconds.
#define EACH(cond) ((cond) ? (void)0 : fail_element(#cond))
static void fail_element(const char *cond)
{
    ck_abort_msg("%s does not hold", cond);
}

// ---- values ----------------------------------------------------------------------------------

static double get(tt_dtype t, const void *data, int64_t i)
{
    switch (t) {
    case TT_F64:
        return ((const double *)data)[i];
    case TT_BF16:
        return tti_from_bf16(((const uint16_t *)data)[i]);
    case TT_F16:
        return tti_from_f16(((const uint16_t *)data)[i]);
    case TT_I32:
        return ((const int32_t *)data)[i];
    case TT_I64:
        return (double)((const int64_t *)data)[i];
    case TT_U8:
        return ((const uint8_t *)data)[i];
    default:
        return ((const float *)data)[i];
    }
}

static void put(tt_dtype t, void *data, int64_t i, double v)
{
    switch (t) {
    case TT_F64:
        ((double *)data)[i] = v;
        break;
    case TT_BF16:
        ((uint16_t *)data)[i] = tti_to_bf16((float)v);
        break;
    case TT_F16:
        ((uint16_t *)data)[i] = tti_to_f16((float)v);
        break;
    case TT_I32:
        ((int32_t *)data)[i] = (int32_t)v;
        break;
    case TT_I64:
        ((int64_t *)data)[i] = (int64_t)v;
        break;
    case TT_U8:
        ((uint8_t *)data)[i] = (uint8_t)v;
        break;
    default:
        ((float *)data)[i] = (float)v;
        break;
    }
}

// A number of member m's element i that halves hold exactly.
static double value(int m, int64_t i)
{
    return (double)((m * 31 + i * 7) % 97) - 48;
}

typedef struct group {
    tt_comm *c;
    int n;
    tt_member m[MOST];
    char *memory; // ins, then outs
} group;

// n members with n_in elements in and n_out out.
static group make_group(tt_ctx *ctx, int n, int64_t n_in, int64_t n_out, int64_t count, tt_dtype t)
{
    group g = {.c = tt_comm_open(ctx, .members = n), .n = n};
    size_t item = tt_dtype_bytes(t), in = (size_t)n_in * item, out = (size_t)n_out * item;
    CHECK(g.c != NULL && tt_comm_members(g.c) == n);
    g.memory = calloc((size_t)n, in + out + 1);
    for (int i = 0; i < n; i++) {
        g.m[i] = (tt_member){n_in == 0 ? NULL : g.memory + (size_t)i * in,
                             n_out == 0 ? NULL : g.memory + (size_t)n * in + (size_t)i * out, count,
                             0, 0};
        for (int64_t k = 0; k < n_in; k++)
            put(t, (void *)g.m[i].in, k, value(i, k));
    }
    return g;
}

static void drop_group(group *g)
{
    tt_comm_free(g->c);
    free(g->memory);
}

static double combined(tt_combine how, int n, int64_t k)
{
    double r = value(0, k);
    for (int i = 1; i < n; i++) {
        double v = value(i, k);
        r = how == TT_COMBINE_SUM ? r + v : how == TT_COMBINE_MAX ? fmax(r, v) : fmin(r, v);
    }
    return r;
}

static void reduce_values(tt_ctx *ctx, int n, int64_t count, tt_dtype t, tt_combine how)
{
    group g = make_group(ctx, n, count, count, count, t);
    if ((n + count) % 2 == 0) // in place
        for (int i = 0; i < n; i++)
            g.m[i].out = (void *)g.m[i].in;
    ck_assert_msg(tt_all_reduce(g.c, g.m, .dtype = t, .combine = how) == TT_OK, "%s",
                  tt_last_error(ctx).message);
    for (int64_t k = 0; k < count; k++) {
        char room[8];
        put(t, room, 0, combined(how, n, k)); // the exact sum, rounded once
        for (int i = 0; i < n; i++)
            if (get(t, g.m[i].out, k) != get(t, room, 0))
                ck_abort_msg("%s: %d members: element %lld of %lld of member %d is %g, not %g",
                             tt_dtype_name(t), n, (long long)k, (long long)count, i,
                             get(t, g.m[i].out, k), get(t, room, 0));
    }
    drop_group(&g);
}

TEST(reductions_have_the_values_of_doubles)
{
    static const int members[] = {1, 2, 3, 5, 64};
    static const int64_t counts[] = {0, 1, 7, 257, 9001};
    static const tt_dtype types[] = {TT_F32, TT_F64, TT_BF16, TT_F16, TT_I32, TT_I64};
    tt_ctx *ctx = open_lanes("cpu:0*3", 8);
    for (int n = 0; n < 5; n++)
        for (int c = 0; c < 5; c++)
            for (int t = 0; t < 6; t++)
                for (int how = 0; how < 3; how++)
                    reduce_values(ctx, members[n], counts[c], types[t], (tt_combine)how);
    CHECK_OK(tt_close(ctx));
}

TEST(scattered_shares_make_the_whole_sum)
{
    static const int members[] = {1, 2, 3, 7};
    static const int64_t counts[] = {0, 1, 2, 1001, 40000};
    tt_ctx *ctx = open_lanes("cpu:0*2", 8);
    for (int n = 0; n < 4; n++)
        for (int c = 0; c < 5; c++)
            for (int in_place = 0; in_place < 2; in_place++) {
                int64_t count = counts[c];
                group g = make_group(ctx, members[n], count, count, count, TT_F32);
                for (int i = 0; in_place == 1 && count > 0 && i < g.n; i++)
                    g.m[i].out = (float *)g.m[i].in + i * count / g.n;
                CHECK_OK(tt_reduce_scatter(g.c, g.m));
                for (int i = 0; i < g.n; i++)
                    for (int64_t k = i * count / g.n; k < (i + 1) * count / g.n; k++)
                        EACH(((float *)g.m[i].out)[k - i * count / g.n] ==
                             combined(TT_COMBINE_SUM, g.n, k));
                drop_group(&g);
            }
    CHECK_OK(tt_close(ctx));
}

TEST(gather_puts_all_ins_one_after_another)
{
    static const tt_dtype types[] = {TT_F32, TT_U8, TT_I64, TT_F16};
    tt_ctx *ctx = open_lanes("cpu:0*2", 8);
    for (int t = 0; t < 4; t++)
        for (int n = 1; n <= 5; n += 2)
            for (int in_place = 0; in_place < 2; in_place++) {
                int64_t each[] = {9, 0, 30000, 1, 17}, total = 0, at = 0;
                size_t item = tt_dtype_bytes(types[t]);
                for (int i = 0; i < n; i++)
                    total += each[i];
                group g = make_group(ctx, n, 30000, total, 0, types[t]);
                for (int i = 0; i < n; at += each[i++]) {
                    g.m[i].count = each[i];
                    if (in_place == 0)
                        continue;
                    memcpy((char *)g.m[i].out + (size_t)at * item, g.m[i].in,
                           (size_t)each[i] * item);
                    g.m[i].in = (char *)g.m[i].out + (size_t)at * item;
                }
                g.m[1 % n].in = n > 1 ? NULL : g.m[0].in; // it brings nothing
                CHECK_OK(tt_all_gather(g.c, g.m, .dtype = types[t]));
                for (int j = 0; j < n; j++) {
                    at = 0;
                    for (int i = 0; i < n; at += each[i++])
                        for (int64_t k = 0; k < each[i]; k++) {
                            char room[8];
                            put(types[t], room, 0, value(i, k));
                            EACH(get(types[t], g.m[j].out, at + k) == get(types[t], room, 0));
                        }
                }
                drop_group(&g);
            }
    CHECK_OK(tt_close(ctx));
}

TEST(broadcast_and_exchange_move_every_element)
{
    static const int64_t counts[] = {0, 1, 33, 70001};
    tt_ctx *ctx = open_lanes("cpu:0*2", 8);
    for (int n = 1; n <= 5; n++)
        for (int c = 0; c < 4; c++) {
            int64_t count = counts[c];
            int root = n / 2;
            group g = make_group(ctx, n, count, count, count, TT_I32);
            for (int i = 0; i < n; i++)
                g.m[i].in = i == root ? g.m[i].in : NULL;
            CHECK_OK(tt_broadcast_from(g.c, g.m, .dtype = TT_I32, .root = root));
            for (int i = 0; i < n; i++)
                for (int64_t k = 0; k < count; k++)
                    EACH(((int32_t *)g.m[i].out)[k] == value(root, k));
            drop_group(&g);

            g = make_group(ctx, n, count * n, count * n, count, TT_F64);
            CHECK_OK(tt_all_to_all(g.c, g.m, .dtype = TT_F64));
            for (int i = 0; i < n; i++)
                for (int j = 0; j < n; j++)
                    for (int64_t k = 0; k < count; k++)
                        EACH(((double *)g.m[i].out)[j * count + k] == value(j, i * count + k));
            CHECK_OK(tt_barrier(g.c));
            drop_group(&g);
        }
    CHECK_OK(tt_close(ctx));
}

TEST(zeros_have_no_sign_and_nan_stays)
{
    tt_ctx *ctx = test_ctx();
    tt_comm *c = tt_comm_open(ctx, .members = 2);
    float a[4] = {-0.0f, NAN, 1, 1e-40f}, b[4] = {-0.0f, 1, NAN, 0};
    float x[4], y[4];
    tt_member m[2] = {{a, x, 4, 0, 0}, {b, y, 4, 0, 0}};
    for (int how = 0; how < 3; how++) {
        CHECK_OK(tt_all_reduce(c, m, .combine = (tt_combine)how));
        CHECK(x[0] == 0 && !signbit(x[0]) && isnan(x[1]) && isnan(x[2]));
        CHECK(x[3] == 0); // subnormals are zero
        CHECK(memcmp(x, y, sizeof(x)) == 0);
    }
    CHECK_OK(tt_close(ctx));
}

// ---- what is refused -------------------------------------------------------------------------

static void expect(tt_ctx *ctx, tt_status got, tt_status want, const char *words)
{
    ck_assert_msg(got == want, "'%s': status %d", words, (int)got);
    CHECK_MESSAGE(ctx, words);
    tt_clear_error(ctx);
}

TEST(lanes_that_do_not_fit_are_refused_by_name)
{
    tt_ctx *ctx = open_lanes("cpu:0", 8);
    tt_comm *c = tt_comm_open(ctx, .members = 3);
    static float in[PARTS], out[3];
    tt_member m[3] = {{in, &out[0], 1, 0, 3}, {in, &out[1], 1, 3, 2}, {in, &out[2], 1, 5, 3}};
    CHECK_OK(tt_all_reduce(c, m));
    m[1].n_lanes = 1;
    expect(ctx, tt_all_reduce(c, m), TT_EINVAL, "all_reduce: no member holds lane 4 of 8");
    m[1].n_lanes = 3;
    expect(ctx, tt_all_reduce(c, m), TT_EINVAL, "lane 5 is held by member 1 and by member 2");
    m[1].n_lanes = 2;
    m[2].n_lanes = 4;
    expect(ctx, tt_all_reduce(c, m), TT_EINVAL, "member 2: 4 lanes from lane 5 on are not in 8");
    m[2].n_lanes = 2;
    expect(ctx, tt_all_reduce(c, m), TT_EINVAL, "no member holds lane 7 of 8");
    CHECK_OK(tt_all_reduce(c, m, .lanes = 7));
    m[2].first_lane = INT32_MAX;
    expect(ctx, tt_all_reduce(c, m), TT_EINVAL, "2 lanes from lane 2147483647 on");
    m[2].first_lane = -1;
    expect(ctx, tt_all_reduce(c, m), TT_EINVAL, "2 lanes from lane -1 on are not in 8");
    m[2] = (tt_member){in, &out[2], 1, 5, 3};
    expect(ctx, tt_all_reduce(c, m, .combine = TT_COMBINE_MAX), TT_EINVAL,
           "lanes apply to sums only");
    expect(ctx, tt_all_reduce(c, m, .lanes = 2000), TT_EINVAL, "2000 lanes; 1 to 1024");
    tt_part part;
    expect(ctx, tt_batch_part(ctx, 10, 0, 9, &part), TT_EINVAL, "9 parts, but a batch of 8 lanes");
    expect(ctx, tt_batch_part(ctx, 10, 2, 2, &part), TT_EINVAL, "there is no part 2 of 2");
    expect(ctx, tt_batch_part(ctx, 0, 0, 2, &part), TT_EINVAL, "a batch cannot have 0 rows");
    CHECK_OK(tt_close(ctx));
}

TEST(bad_members_are_refused_by_name)
{
    tt_ctx *ctx = open_lanes("cpu:0", 8);
    tt_comm *c = tt_comm_open(ctx, .members = 2);
    float a[8] = {0}, b[8] = {0}, x[16] = {42}, y[16] = {42};
    tt_member good[2] = {{a, x, 4, 0, 0}, {b, y, 4, 0, 0}}, m[2];
#define REFUSED(change, call, code, words) \
    memcpy(m, good, sizeof(m));            \
    change;                                \
    expect(ctx, call, code, words)
    REFUSED(m[1].count = 3, tt_all_reduce(c, m), TT_EINVAL,
            "member 1 has 3 elements of f32, but member 0 has 4 of f32");
    REFUSED(m[1].count = -1, tt_all_gather(c, m), TT_EINVAL, "member 1 has -1 elements");
    REFUSED(m[0].count = INT64_MAX, tt_all_gather(c, m), TT_EINVAL,
            "member 0 has 9223372036854775807");
    REFUSED(m[1].in = NULL, tt_all_reduce(c, m), TT_EINVAL, "member 1: in is NULL, for 4 elements");
    REFUSED(m[0].out = NULL, tt_all_reduce(c, m), TT_EINVAL, "member 0: out is NULL");
    REFUSED(m[1].out = b + 1, tt_all_reduce(c, m), TT_EINVAL, "member 1: in and out overlap");
    REFUSED(m[1].out = b, tt_all_reduce(c, m, .round = TT_BF16), TT_EINVAL, "in and out overlap");
    REFUSED(m[1].out = b, tt_all_to_all(c, m), TT_EINVAL,
            "all_to_all: member 1: in and out overlap");
    REFUSED(m[1].in = y, tt_all_gather(c, m), TT_EINVAL,
            "all_gather: member 1: in and out overlap");
    REFUSED(m[1].out = b, tt_reduce_scatter(c, m), TT_EINVAL, "in and out overlap");
    REFUSED((void)0, tt_broadcast_from(c, m, .root = 2), TT_EINVAL, "root is 2, but there are 2");
    REFUSED((void)0, tt_all_reduce(c, m, .dtype = TT_U8), TT_EDTYPE,
            "elements of type u8 cannot be added");
    REFUSED((void)0, tt_all_reduce(c, m, .dtype = (tt_dtype)99), TT_EDTYPE, "no element type 99");
    REFUSED((void)0, tt_all_reduce(c, m, .dtype = TT_I32, .factor = 0.5), TT_EDTYPE,
            "factor is 0.5, but it applies to floats only, and elements are i32");
    REFUSED((void)0, tt_all_reduce(c, m, .dtype = TT_F64, .round = TT_F16), TT_EDTYPE,
            "f64 cannot be rounded to f16");
    REFUSED((void)0, tt_all_reduce(c, m, .combine = (tt_combine)5), TT_EINVAL, "unknown combine 5");
    REFUSED((void)0, tt_all_reduce(c, NULL), TT_EINVAL, "members is NULL");
    REFUSED((void)0, tt_sum_lanes(ctx, m, 0, x), TT_EINVAL, "0 parts; 1 to 1024 are allowed");
    REFUSED((void)0, tt_sum_lanes(ctx, m, 2, NULL), TT_EINVAL, "out is NULL");
    REFUSED((void)0, tt_sum_lanes(ctx, m, 2, a + 1), TT_EINVAL, "member 0: in and out overlap");
    REFUSED(m[1].count = 2, tt_sum_lanes(ctx, m, 2, x), TT_EINVAL, "member 1 has 2 elements");
    CHECK(tt_all_reduce(NULL, m) == TT_EINVAL && tt_barrier(NULL) == TT_EINVAL);
    CHECK(tt_comm_members(NULL) == 0);
    tt_comm_free(NULL);
    CHECK(tt_comm_open(ctx, .members = 1025) == NULL);
    expect(ctx, tt_status_of(ctx), TT_EINVAL, "comm: 1025 members; 1 to 1024 are allowed");
    CHECK(tt_comm_open(ctx, .transport = "pigeon") == NULL);
    expect(ctx, tt_status_of(ctx), TT_EUNSUPPORTED, "there is no transport 'pigeon'");
    CHECK(x[0] == 42 && y[0] == 42); // nothing was written
    CHECK_OK(tt_close(ctx));
}

// What a later transport gets from another process.
TEST(members_in_different_calls_are_told_apart)
{
    tt_ctx *ctx = test_ctx();
    tti_fingerprint a = {.sequence = 7, .count = 4, .lanes = 8}, b = a;
    CHECK_OK(tti_fingerprint_check(ctx, "all_reduce", 0, &a, 3, &b));
    b.sequence = 8;
    b.kind = TTI_BROADCAST;
    expect(ctx, tti_fingerprint_check(ctx, "all_reduce", 0, &a, 3, &b), TT_EINVAL,
           "member 3 is in broadcast, call 8, but member 0 is in all_reduce, call 7");
    b = a;
    b.dtype = TT_BF16;
    expect(ctx, tti_fingerprint_check(ctx, "all_reduce", 0, &a, 3, &b), TT_EINVAL,
           "member 3 has 4 elements of bf16, but member 0 has 4 of f32");
    b = a;
    b.lanes = 4;
    expect(ctx, tti_fingerprint_check(ctx, "all_reduce", 0, &a, 3, &b), TT_EINVAL,
           "member 3 has combine 0, lanes 4, root 0, but member 0 has combine 0, lanes 8, root 0");
    CHECK_OK(tt_close(ctx));
}

// ---- memory and time -------------------------------------------------------------------------

TEST(calls_allocate_nothing_and_opening_fails_cleanly)
{
    for (int64_t n = 1; n < 20; n++) {
        tt_ctx *ctx = open_lanes("cpu:0*2", 8);
        tti_fail_alloc_at(ctx, n);
        tt_comm *c = tt_comm_open(ctx);
        tti_fail_alloc_at(ctx, 0);
        if (c == NULL) {
            CHECK(tt_close(ctx) == TT_ENOMEM); // and nothing has leaked
            continue;
        }
        CHECK(n > 2 && tt_comm_members(c) == 2);
        static float a[50000], b[50000];
        tt_member m[2] = {{a, a, 50000, 0, 0}, {b, b, 50000, 0, 0}};
        tt_alloc_stats before = tt_alloc_stats_get(ctx);
        CHECK_OK(tt_all_reduce(c, m));
        CHECK_OK(tt_broadcast_from(c, m));
        CHECK_OK(tt_sum_lanes(ctx, m, 2, a));
        CHECK_OK(tt_barrier(c));
        CHECK(tt_alloc_stats_get(ctx).calls == before.calls);
        CHECK_OK(tt_close(ctx));
        return;
    }
    ck_abort_msg("opening never succeeded");
}

static void slow_units(const void *arg, int64_t begin, int64_t end)
{
    for (int64_t u = begin; u < end; u++)
        if (u == *(const int64_t *)arg)
            nanosleep(&(struct timespec){0, 200000000}, NULL);
}

TEST(a_late_device_is_named)
{
    tt_ctx *ctx = open_lanes("cpu:0*2", 8);
    int64_t slow = 1; // the second device's
    tti_work w = {.name = "all_reduce",
                  .fn = slow_units,
                  .arg = &slow,
                  .units = 2,
                  .chunk = 1,
                  .bytes = INT64_MAX,
                  .deadline_ms = 20};
    expect(ctx, tti_comm_spread(ctx, &w), TT_ETIMEOUT,
           "all_reduce: cpu:1 has not finished its part within 0.0");
    w.deadline_ms = 60000;
    CHECK_OK(tti_comm_spread(ctx, &w));
    CHECK_OK(tt_close(ctx));
}

// ---- means -----------------------------------------------------------------------------------

TEST(a_mean_is_seeded_by_a_power_of_two)
{
    static const struct {
        int64_t count;
        float seed, scale;
    } cases[] = {{1, 1, 1},
                 {2, 0.5f, 1},
                 {3, 0.25f, 4.0f / 3},
                 {100, 1.0f / 128, 1.28f},
                 {1024, 1.0f / 1024, 1},
                 {(1 << 24) + 1, 0x1p-25f, 2}, // counts are f32 where they are divided by
                 {0, 1, 0}};
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        tt_mean_factors f = tt_mean_factors_of(cases[i].count);
        ck_assert_msg(f.seed == cases[i].seed && f.scale == cases[i].scale, "%lld: %a and %a",
                      (long long)cases[i].count, f.seed, f.scale);
    }
}
