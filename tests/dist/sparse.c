/*
 * sparse.c - gradients of embeddings that touch few rows: shards keep and exchange those rows, and
 * the weights have the bits of one device, which makes the whole gradient.
 */
#include "test.h"
#include "train/compile.h"
#include <stdio.h>
#include <stdlib.h>
#include <tutti/tutti.h>

#define CONTEXT 6
#define WIDTH   24
#define RECORDS 61 // two batches of 24 and one of 13
#define LARGE   5000
#define SMALL   20 // so many ids are there that the whole gradient is smaller

typedef struct way {
    const char *strategy, *devices;
    int64_t accumulate;
    int64_t vocab;
    bool tied;
    bool no_clip; // a clipped gradient is put together once more, for its norm
    tt_precision precision;
    tt_update_where update;
} way;

// Ids that repeat within records and between them, and both ends of the table.
static int32_t ids[RECORDS][CONTEXT];
static int32_t labels[RECORDS][CONTEXT];

static void make_records(int64_t vocab)
{
    uint32_t r = 12345;
    for (int i = 0; i < RECORDS; i++)
        for (int k = 0; k < CONTEXT; k++) {
            r = r * 1664525u + 1013904223u;
            ids[i][k] = (int32_t)((r >> 8) % (k % 2 == 0 ? (uint32_t)vocab : 9u));
            labels[i][k] = (int32_t)((r >> 12) % 10);
        }
    for (int i = 0; i < RECORDS; i += 3)
        ids[i][0] = i % 2 == 0 ? 0 : (int32_t)vocab - 1;
    int64_t blocks = (vocab * WIDTH + 1023) / 1024, at = 0;
    for (int n = 2; n <= 8; n++) // rows that are cut where one replica's piece ends
        for (int piece = 1; piece < n; piece++) {
            int64_t row = blocks * piece / n * 1024 / WIDTH;
            ids[at++ % RECORDS][4] = (int32_t)(row < vocab ? row : vocab - 1);
        }
}

static tt_model *build(tt_ctx *ctx, const way *w)
{
    tt_model *m = tt_sequential(ctx, .input = {CONTEXT}, .dtype = TT_I32);
    if (w->tied) {
        tt_layer_gpt(m, .layers = 1, .heads = 2, .width = WIDTH, .vocab = w->vocab);
    } else {
        tt_layer_embedding(m, .vocab = w->vocab, .width = WIDTH);
        tt_layer_dense(m, .units = 11, .act = TT_RELU);
        tt_layer_dense(m, .units = 10);
    }
    tt_compile(m, .loss = TT_CROSS_ENTROPY, .precision = w->precision,
               .optimizer =
                   tt_adamw(.lr = 0.01, .weight_decay = 0.1, .clip_global = w->no_clip ? 0 : 0.5));
    return m;
}

static tt_ctx *open_way(const way *w)
{
    return tt_open(.devices = w->devices, .strategy = w->strategy, .threads = 2,
                   .spread = tt_spread(.update = w->update), .on_event = test_ignore_event);
}

// The weights after three epochs, and whether the plan of a step has sums of touched rows.
static tt_hash train(const way *w, bool *is_sparse)
{
    make_records(w->vocab);
    tt_ctx *ctx = open_way(w);
    tt_model *m = build(ctx, w);
    int64_t parts = w->accumulate > 0 ? w->accumulate : 1;
    tt_data *d =
        tt_memory(ctx, .x = ids, .x_dtype = TT_I32, .x_shape = TT_SHAPE(CONTEXT), .y = labels,
                  .y_dtype = TT_I32, .y_shape = TT_SHAPE(CONTEXT), .count = RECORDS);
    tt_status st = tt_fit(m, d, .epochs = 3, .batch = 24 / parts, .accumulate = parts);
    ck_assert_msg(st == TT_OK, "%s: %s", w->devices, tt_last_error(ctx).message);
    tt_hash h;
    CHECK_OK(tt_model_hash(m, &h));
    char *text = tti_step_plan(m, 24, parts, TT_PLAN_TEXT);
    ck_assert_msg(text != NULL, "%s", tt_last_error(ctx).message);
    *is_sparse = strstr(text, "sparse rows") != NULL;
    tt_string_free(ctx, text);
    CHECK_OK(tt_close(ctx));
    return h;
}

static const way ways[] = {
    {"mirrored", "cpu:0*2", .accumulate = 1},
    {"mirrored", "cpu:0*3", .accumulate = 1},
    {"mirrored", "cpu:0*8", .accumulate = 1},
    {"mirrored", "cpu:0*3", .accumulate = 1, .update = TT_UPDATE_EACH},
    {"single", "cpu:0", .accumulate = 2},
    {"single", "cpu:0", .accumulate = 4},
    {"mirrored", "cpu:0*2", .accumulate = 2},
    {"mirrored", "cpu:0*3", .accumulate = 2},
    {"central", "cpu:0*3", .accumulate = 1},
    {"pipeline", "cpu:0*2", .accumulate = 1},
};

static void check_ways(way base, bool sparse)
{
    bool is_sparse;
    base.strategy = "single";
    base.devices = "cpu:0";
    tt_hash one = train(&base, &is_sparse);
    CHECK(!is_sparse);
    for (size_t i = 0; i < sizeof(ways) / sizeof(ways[0]); i++) {
        way w = ways[i];
        w.vocab = base.vocab;
        w.tied = base.tied;
        w.precision = base.precision;
        tt_hash h = train(&w, &is_sparse);
        ck_assert_msg(h.low == one.low && h.high == one.high, "%s on %s, accumulate %d: other bits",
                      w.strategy, w.devices, (int)w.accumulate);
        ck_assert_msg(is_sparse == sparse, "%s on %s, accumulate %d: rows touched %d", w.strategy,
                      w.devices, (int)w.accumulate, is_sparse);
    }
}

TEST(touched_rows_change_no_bit)
{
    check_ways((way){.vocab = LARGE}, true);
}

TEST(small_tables_are_added_whole)
{
    check_ways((way){.vocab = SMALL}, false);
}

// The output's use of the table has a gradient of all rows, added after the embedding's.
TEST(tied_embeddings_keep_their_bits)
{
    check_ways((way){.vocab = 1500, .tied = true}, true);
}

TEST(touched_rows_in_bf16_change_no_bit)
{
    check_ways((way){.vocab = LARGE, .precision = TT_PRECISION_BF16}, true);
}

// What is rounded for the wire is made whole: rounding leaves something in every row.
TEST(narrow_sums_are_whole)
{
    tt_ctx *ctx = tt_open(.devices = "cpu:0*2", .strategy = "mirrored",
                          .on_event = test_ignore_event, .spread = tt_spread(.wire = TT_BF16));
    static const way w = {.vocab = LARGE};
    tt_model *m = build(ctx, &w);
    char *text = tti_step_plan(m, 24, 1, TT_PLAN_TEXT);
    ck_assert_msg(text != NULL, "%s", tt_last_error(ctx).message);
    CHECK(strstr(text, "rounded for sending") != NULL && strstr(text, "sparse rows") == NULL);
    tt_string_free(ctx, text);
    CHECK_OK(tt_close(ctx));
}

// ---- sums themselves -------------------------------------------------------------------------

#define ROWS   11
#define IDS    5
#define PLACES 900

typedef struct sum_case {
    tt_dtype dtype, id_dtype;
    int64_t width;
    bool is_turned; // the batch is the second axis of ids
} sum_case;

static size_t item_of(tt_dtype t)
{
    return t == TT_F64 ? 8 : t == TT_F32 ? 4 : 2;
}

// Sums of rows from the first on; a part of the batch has one per sub-tree of its lanes, in f32.
static void sum(const char *devices, const sum_case *c, int64_t rows, int micro, void *out,
                size_t bytes)
{
    static float x[ROWS * IDS * 300];
    int64_t at[ROWS * IDS];
    int32_t narrow[ROWS * IDS];
    test_fill(x, ROWS * IDS * c->width, 7, -1, 1);
    for (int i = 0; i < ROWS * IDS; i++) {
        at[i] = i % 4 == 0 ? PLACES - 1 : i % 7 == 0 ? 0 : i * 131 % PLACES;
        narrow[i] = (int32_t)at[i];
    }
    tt_ctx *ctx = tt_open(.devices = devices, .strategy = "mirrored", .threads = 2,
                          .on_event = test_ignore_event);
    tt_graph *g = tt_graph_new(ctx);
    tt_tensor *feed = tt_feed(g, .shape = TT_SHAPE(TT_BATCH, IDS, c->width), .name = "x");
    tt_tensor *places =
        tt_feed(g, .shape = TT_SHAPE(TT_BATCH, IDS), .dtype = c->id_dtype, .name = "ids");
    tt_tensor *value = tt_cast(g, feed, c->dtype), *where = places;
    if (c->is_turned) {
        value = tt_transpose(g, value, TT_AXES(1, 0, 2));
        where = tt_transpose(g, where, TT_AXES(1, 0));
    }
    tt_tensor *y = tt_scatter_add(g, value, where, PLACES);
    tt_session *s = tt_session_new(g);
    tt_feed_value in[] = {{feed, x, TT_SHAPE(rows, IDS, c->width), TT_F32},
                          {places, c->id_dtype == TT_I32 ? (void *)narrow : (void *)at,
                           TT_SHAPE(rows, IDS), c->id_dtype}};
    tt_fetch fetch = {y, out, bytes};
    tt_status st = tt_run(s, .feeds = in, .n_feeds = 2, .fetches = &fetch, .n_fetches = 1,
                          .batch = {0, ROWS, 8}, .micro = micro);
    ck_assert_msg(st == TT_OK, "%s: %s", devices, tt_last_error(ctx).message);
    if (rows == ROWS) {
        char *text = tt_plan_print(s, .targets = &y, .n_targets = 1, .rows = rows, .micro = micro);
        CHECK((strstr(text, "sparse rows") != NULL) == (strcmp(devices, "cpu:0") != 0));
        tt_string_free(ctx, text);
    }
    CHECK_OK(tt_close(ctx));
}

TEST(touched_rows_add_up_to_the_sum)
{
    static const sum_case cases[] = {
        {TT_F32, TT_I32, 24, false}, {TT_F32, TT_I64, 1, false},  {TT_F32, TT_I32, 300, false},
        {TT_F32, TT_I32, 130, true}, {TT_F64, TT_I64, 17, false}, {TT_BF16, TT_I32, 24, false},
        {TT_F16, TT_I32, 9, true},
    };
    static const char *const devices[] = {"cpu:0*2", "cpu:0*3", "cpu:0*8"};
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        const sum_case *c = &cases[i];
        int64_t count = PLACES * c->width;
        size_t whole = (size_t)count * item_of(c->dtype);
        size_t parts = 3 * (size_t)count * (c->dtype == TT_F64 ? 8 : 4); // of lanes 0 to 6
        char *want = calloc(1, parts), *got = calloc(1, parts);
        for (int d = 0; d < 3; d++) {
            sum("cpu:0", c, ROWS, 1, want, whole);
            sum(devices[d], c, ROWS, 1 + d % 2, got, whole);
            ck_assert_msg(memcmp(want, got, whole) == 0, "case %zu on %s", i, devices[d]);
            sum("cpu:0", c, 9, 1, want, parts); // lane 7 has rows 9 and 10
            sum(devices[d], c, 9, 1 + d % 2, got, parts);
            ck_assert_msg(memcmp(want, got, parts) == 0, "case %zu on %s: parts", i, devices[d]);
        }
        free(want);
        free(got);
    }
}

// An id that is no place is named, whoever has it.
TEST(touched_rows_refuse_an_id_out_of_range)
{
    static const way w = {.strategy = "mirrored", .devices = "cpu:0*2", .vocab = LARGE};
    make_records(w.vocab);
    ids[20][3] = LARGE;
    tt_ctx *ctx = open_way(&w);
    tt_model *m = build(ctx, &w);
    tt_data *d =
        tt_memory(ctx, .x = ids, .x_dtype = TT_I32, .x_shape = TT_SHAPE(CONTEXT), .y = labels,
                  .y_dtype = TT_I32, .y_shape = TT_SHAPE(CONTEXT), .count = RECORDS);
    CHECK(tt_fit(m, d, .batch = 24) == TT_EINVAL);
    CHECK_MESSAGE(ctx, "5000");
    tt_clear_error(ctx);
    CHECK_OK(tt_close(ctx));
}

// ---- what it saves ---------------------------------------------------------------------------

// A number of the plan's first device, in bytes of the table.
static double figure(const way *w, const char *name)
{
    tt_ctx *ctx = open_way(w);
    tt_model *m = build(ctx, w);
    char *text = tti_step_plan(m, 24, w->accumulate > 0 ? w->accumulate : 1, TT_PLAN_JSON);
    const char *at = text == NULL ? NULL : strstr(text, "\"devices\":");
    at = at == NULL ? NULL : strstr(at, name);
    ck_assert_msg(at != NULL, "%s: %s", w->devices, tt_last_error(ctx).message);
    double bytes = atof(at + strlen(name));
    tt_string_free(ctx, text);
    CHECK_OK(tt_close(ctx));
    return bytes / ((double)w->vocab * WIDTH * 4);
}

/*
 * Added whole, two replicas receive half of the table's gradient and half of the table, and hold
 * the gradient; here only the table's half is left, and half a gradient is held.
 */
TEST(touched_rows_save_memory_and_traffic)
{
    static const way large = {
        .strategy = "mirrored", .devices = "cpu:0*2", .vocab = LARGE, .no_clip = true};
    static const way three = {
        .strategy = "mirrored", .devices = "cpu:0*3", .vocab = LARGE, .no_clip = true};
    static const way turns = {
        .strategy = "single", .devices = "cpu:0", .vocab = LARGE, .no_clip = true, .accumulate = 4};
    double received = figure(&large, "\"received\":"), arena = figure(&large, "\"activations\":");
    ck_assert_msg(received > 0.49 && received < 0.6, "received %g", received);
    ck_assert_msg(arena < 0.8, "arena %g", arena);
    received = figure(&three, "\"received\":");
    arena = figure(&three, "\"activations\":");
    ck_assert_msg(received < 0.8, "three: received %g", received); // whole: 2 parts of each, 2 of 3
    ck_assert_msg(arena < 0.6, "three: arena %g", arena);
    arena = figure(&turns, "\"activations\":");
    ck_assert_msg(arena < 1.3, "in turn: arena %g", arena); // whole: at least two at a time
}
