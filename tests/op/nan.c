/*
 * nan.c - a NaN propagates: the rule of docs/arithmetic.md, tried on every op of the table in
 * nan_rows.c.
 *
 * A row has an op with its inputs. One element of one float input becomes a NaN: every element of
 * the results that changes with other numbers in that place must be a NaN then, and every other
 * one must keep its bits. Inputs that only choose (the mask of a gradient, a comparison) count a
 * NaN as a number, which the row names. Each row is run in every instruction set, with one thread
 * or with three, in f32, bf16 and f16, and as "gpu/nan/..." on a GPU. An op without a row fails.
 */
#include "nan_rows.h"
#include "op_trial.h"
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#define MAX_OUT 16
#define PLACES  12

TEST(every_op_has_a_nan_row)
{
    tt_ctx *ctx = test_ctx();
    char missing[2048] = "";
    const tt_op *op;
    for (int i = 0; (op = tt_op_at(ctx, i)) != NULL; i++) {
        bool found = (op->flags & TT_OP_SOURCE) != 0;
        for (int k = 0; k < n_nan_rows && !found; k++)
            found = strcmp(nan_rows[k].op, op->name) == 0;
        if (!found)
            snprintf(missing + strlen(missing), sizeof(missing) - strlen(missing), " %s", op->name);
    }
    for (int k = 0; k < n_nan_rows; k++)
        ck_assert_msg(tt_op_find(ctx, nan_rows[k].op) != NULL, "no op is called '%s'",
                      nan_rows[k].op);
    CHECK_OK(tt_close(ctx));
    ck_assert_msg(missing[0] == '\0', "ops without a row in tests/op/nan_rows.c:%s", missing);
}

// ---- a trial: one context with the row's node ------------------------------------------------

typedef struct nan_in {
    char name[16], kind[8], shape[48];
    int limit;
    tt_dtype dtype;
    tt_tensor *tensor;
    tt_shape bound;
    int64_t count;
    double *value;
} nan_in;

typedef struct nan_trial {
    const nan_row *row;
    const char *device, *isa;
    tt_dtype dtype;
    int threads, n_in, n_out;
    nan_in in[8];
    tt_tensor *out[MAX_OUT]; // outputs of the node, then variables
    int64_t count[MAX_OUT];
    tt_ctx *ctx;
    tt_session *s;
} nan_trial;

typedef struct nan_result {
    double *v[MAX_OUT];
} nan_result;

#define BATCH 11 // rows of an open axis

static void parse_inputs(nan_trial *t, char *text, size_t room)
{
    size_t n = (size_t)snprintf(text, room, "tutti graph 1\n");
    for (const char *at = t->row->in; *at != '\0'; at += *at == ' ') {
        nan_in *in = &t->in[t->n_in++];
        int used = 0;
        ck_assert_msg(
            sscanf(at, "%15[^:]:%7[^[]%47[^]]]%n", in->name, in->kind, in->shape, &used) == 3,
            "row '%s': '%s'", t->row->op, at);
        at += used;
        if (*at == '<')
            in->limit = (int)strtol(at + 1, (char **)&at, 10);
        bool is_var = strcmp(in->kind, "var") == 0;
        const char *type = is_var ? "f32" : in->kind[0] == 'T' ? tt_dtype_name(t->dtype) : in->kind;
        n += (size_t)snprintf(text + n, room - n, "%%%s = %s {dtype=%s, shape=%s]}\n", in->name,
                              is_var ? "variable" : "feed", type, in->shape);
    }
    snprintf(text + n, room - n, "%%out = %s\n", t->row->call);
}

static int64_t count_of(tt_tensor *x)
{
    tt_shape s = tt_tensor_shape(x);
    for (int i = 0; i < s.rank; i++)
        if (s.dim[i] < 0)
            s.dim[i] *= -BATCH;
    return tt_shape_count(&s);
}

static void open_trial(nan_trial *t, const nan_row *row, const char *device, const char *isa,
                       int threads, tt_dtype dtype)
{
    char text[2048];
    *t = (nan_trial){.row = row, .device = device, .isa = isa, .dtype = dtype, .threads = threads};
    parse_inputs(t, text, sizeof(text));
    t->ctx = tt_open(.devices = device, .isa = isa, .threads = threads,
                     .on_event = test_ignore_event, .lanes = 4, .seed = 7);
    tt_graph *g = tt_graph_parse(t->ctx, text, strlen(text));
    ck_assert_msg(g != NULL, "%s: %s\n%s", row->op, tt_last_error(t->ctx).message, text);
    for (int i = 0; i < t->n_in; i++) {
        nan_in *in = &t->in[i];
        in->tensor = tt_graph_find(g, in->name);
        in->dtype = tt_tensor_dtype(in->tensor);
        in->bound = tt_tensor_shape(in->tensor);
        for (int k = 0; k < in->bound.rank; k++)
            if (in->bound.dim[k] < 0)
                in->bound.dim[k] *= -BATCH;
        in->count = tt_shape_count(&in->bound);
        in->value = malloc(sizeof(double) * (size_t)(in->count + 1));
        float *x = malloc(sizeof(float) * (size_t)(in->count + 1));
        test_fill(x, in->count, (uint64_t)i + 1, 0.25, 2);
        for (int64_t k = 0; k < in->count; k++)
            in->value[k] = in->limit > 0 ? floor(((double)x[k] - 0.25) / 1.75 * in->limit)
                                         : op_round(in->dtype, (double)x[k]);
        free(x);
    }
    const tt_node *n = tt_tensor_get_node(tt_graph_find(g, "out"));
    for (int i = 0; i < n->n_out; i++)
        t->out[t->n_out++] = n->outs[i];
    for (int i = 0; i < t->n_in; i++)
        if (strcmp(t->in[i].kind, "var") == 0)
            t->out[t->n_out++] = t->in[i].tensor;
    for (int i = 0; i < t->n_out; i++)
        t->count[i] = count_of(t->out[i]);
    t->s = tt_session_new(g, .no_fold = true);
}

static bool is_variable(const nan_trial *t, const tt_tensor *x)
{
    for (int i = 0; i < t->n_in; i++)
        if (t->in[i].tensor == x)
            return true;
    return false;
}

static void run_trial(nan_trial *t, nan_result *r)
{
    tt_feed_value feeds[8];
    tt_fetch fetches[MAX_OUT];
    void *data[MAX_OUT];
    int n_feeds = 0, n_fetches = 0;
    for (int i = 0; i < t->n_in; i++) {
        nan_in *in = &t->in[i];
        void *x = op_encode(in->dtype, in->value, in->count);
        size_t bytes = tt_dtype_bytes(in->dtype) * (size_t)in->count;
        if (strcmp(in->kind, "var") == 0) {
            CHECK_OK(tt_set_variable(t->s, in->tensor, x, bytes));
            free(x);
        } else {
            feeds[n_feeds++] = (tt_feed_value){in->tensor, x, in->bound, in->dtype};
        }
    }
    for (int i = 0; i < t->n_out; i++) {
        size_t bytes = tt_dtype_bytes(tt_tensor_dtype(t->out[i])) * (size_t)t->count[i];
        data[i] = calloc(1, bytes + 8);
        if (!is_variable(t, t->out[i]))
            fetches[n_fetches++] = (tt_fetch){t->out[i], data[i], bytes};
    }
    tt_status st = tt_run(t->s, .feeds = feeds, .n_feeds = n_feeds, .fetches = fetches,
                          .n_fetches = n_fetches, .step = 3, .lr = 0.1f);
    ck_assert_msg(st == TT_OK, "%s: %s", t->row->op, tt_last_error(t->ctx).message);
    for (int i = 0; i < t->n_out; i++) {
        tt_dtype dtype = tt_tensor_dtype(t->out[i]);
        if (is_variable(t, t->out[i]))
            CHECK_OK(tt_get_variable(t->s, t->out[i], data[i],
                                     tt_dtype_bytes(dtype) * (size_t)t->count[i]));
        r->v[i] = malloc(sizeof(double) * (size_t)(t->count[i] + 1));
        for (int64_t k = 0; k < t->count[i]; k++)
            r->v[i][k] = op_decode(dtype, data[i], k);
        free(data[i]);
    }
    for (int i = 0; i < n_feeds; i++)
        free((void *)feeds[i].data);
}

static void free_result(const nan_trial *t, nan_result *r)
{
    for (int i = 0; i < t->n_out; i++)
        free(r->v[i]);
}

static void close_trial(nan_trial *t)
{
    for (int i = 0; i < t->n_in; i++)
        free(t->in[i].value);
    CHECK_OK(tt_close(t->ctx));
}

// ---- the rule --------------------------------------------------------------------------------

static bool same(double a, double b)
{
    return memcmp(&a, &b, sizeof(a)) == 0 || (isnan(a) && isnan(b));
}

// Places of an input: its ends, the bodies and tails of vectors, the ends of parts of threads.
static int places_of(const nan_trial *t, const nan_in *in, int64_t *at)
{
    bool is_slow = strcmp(t->device, "gpu:0") == 0 && test_gpu_is_emulated();
    int64_t n = in->count;
    const int64_t want[PLACES] = {0,         n - 1,     n / 2, 5,      15,   16,
                                  n / 3 - 1, n / 3 + 7, n - 2, n - 17, 6671, 13341};
    int k = 0;
    for (int i = 0; i < (is_slow ? 4 : PLACES); i++) {
        bool is_new = want[i] >= 0 && want[i] < n;
        for (int j = 0; j < k; j++)
            is_new = is_new && at[j] != want[i];
        if (is_new)
            at[k++] = want[i];
    }
    return k;
}

static void fail_at(const nan_trial *t, const nan_in *in, int64_t at, int out, int64_t k,
                    double got, const char *why)
{
    ck_abort_msg("%s, %s, %s, %s, %d threads: with NaN at %s[%lld] element %lld of output %d is "
                 "%g: %s",
                 t->row->call, tt_dtype_name(t->dtype), t->device,
                 t->isa == NULL ? "best set" : t->isa, t->threads, in->name, (long long)at,
                 (long long)k, out, got, why);
}

// Runs with each of n numbers in one place: which elements of the results change?
static void mark_changes(nan_trial *t, double *at, const double *numbers, int n,
                         const nan_result *base, uint8_t *const *marks, uint8_t mark)
{
    double old = *at;
    for (int i = 0; i < n; i++) {
        nan_result other;
        *at = numbers[i];
        run_trial(t, &other);
        for (int o = 0; o < t->n_out; o++)
            for (int64_t k = 0; k < t->count[o]; k++)
                if (!same(other.v[o][k], base->v[o][k]))
                    marks[o][k] |= mark;
        free_result(t, &other);
    }
    *at = old;
}

/*
 * What depends on one place: bit 1 where elements change with usual numbers there, bit 2 where they
 * change with huge ones. Every instruction set computes the same, so the search by one serves all.
 */
static void find_marks(nan_trial *t, int input, int64_t at, const nan_result *base, uint8_t **marks)
{
    nan_in *in = &t->in[input];
    double huge = in->dtype == TT_F16 ? 6e4 : 1e30;
    const double usual[] = {HIGH, LOW, 0.3125, 1.1875};
    const double most[] = {huge, -huge, INFINITY, -INFINITY};
    for (int o = 0; o < t->n_out; o++)
        marks[o] = calloc((size_t)t->count[o] + 1, 1);
    mark_changes(t, &in->value[at], usual, 4, base, marks, 1);
    mark_changes(t, &in->value[at], most, t->row->taps ? 2 : 4, base, marks, 2);
}

/*
 * NaN in one place: elements that change with usual numbers there are NaN, those that change not
 * even with huge ones keep their bits.
 */
static void check_spreads(nan_trial *t, int input, int64_t at, const nan_result *base,
                          uint8_t *const *marks)
{
    nan_in *in = &t->in[input];
    double old = in->value[at];
    bool meets_zeros = t->row->few && t->dtype != TT_F32 && strcmp(t->device, "gpu:0") == 0;
    bool is_padded = (t->row->padded >> input & 1) != 0 || meets_zeros;
    nan_result got;
    in->value[at] = NAN;
    run_trial(t, &got);
    in->value[at] = old;
    for (int o = 0; o < t->n_out; o++) {
        for (int64_t k = 0; (t->row->loose >> o & 1) == 0 && k < t->count[o]; k++) {
            if ((marks[o][k] & 1) != 0 && !isnan(got.v[o][k]))
                fail_at(t, in, at, o, k, got.v[o][k], "it depends on that, and is not NaN");
            if (marks[o][k] == 0 && !is_padded && !same(got.v[o][k], base->v[o][k]))
                fail_at(t, in, at, o, k, got.v[o][k], "it does not depend on that");
        }
    }
    free_result(t, &got);
}

// A NaN that only chooses counts as a number.
static void check_counts_as(nan_trial *t, nan_in *in, int64_t at, double as)
{
    double old = in->value[at];
    nan_result got, want;
    in->value[at] = as;
    run_trial(t, &want);
    in->value[at] = NAN;
    run_trial(t, &got);
    in->value[at] = old;
    for (int o = 0; o < t->n_out; o++)
        for (int64_t k = 0; k < t->count[o]; k++)
            if (!same(got.v[o][k], want.v[o][k]))
                fail_at(t, in, at, o, k, got.v[o][k], "a NaN counts as another number there");
    free_result(t, &want);
    free_result(t, &got);
}

typedef struct nan_way {
    const char *device, *isa;
    int threads;
    nan_trial t;
    nan_result base;
} nan_way;

static void open_way(nan_way *w, const nan_row *row, tt_dtype dtype)
{
    open_trial(&w->t, row, w->device, w->isa, w->threads, dtype);
    run_trial(&w->t, &w->base);
    for (int o = 0; o < w->t.n_out; o++)
        for (int64_t k = 0; k < w->t.count[o]; k++)
            ck_assert_msg(!isnan(w->base.v[o][k]), "%s: NaN without one", row->call);
}

static void close_way(nan_way *w)
{
    free_result(&w->t, &w->base);
    close_trial(&w->t);
}

static void try_place(nan_way *best, nan_way *ways, int n, int input, int64_t at)
{
    const nan_row *row = best->t.row;
    uint8_t *marks[MAX_OUT] = {NULL};
    bool chooses = (row->chooses >> input & 1) != 0;
    if (!chooses)
        find_marks(&best->t, input, at, &best->base, marks);
    for (int w = 0; w < n; w++) {
        if (chooses)
            check_counts_as(&ways[w].t, &ways[w].t.in[input], at,
                            at == 0 && row->as_first != 0 ? row->as_first : row->as[input]);
        else
            check_spreads(&ways[w].t, input, at, &ways[w].base, marks);
    }
    for (int o = 0; o < MAX_OUT; o++)
        free(marks[o]);
}

// A library of a real GPU may leave out what another way computes: there the GPU searches itself.
static void try_row(const nan_row *row, nan_way *ways, int n, tt_dtype dtype)
{
    bool is_real = strcmp(ways[0].device, "gpu:0") == 0 && !test_gpu_is_emulated();
    nan_way best = {.device = is_real ? "gpu:0" : "cpu:0", .threads = 1};
    open_way(&best, row, dtype);
    for (int w = 0; w < n; w++)
        open_way(&ways[w], row, dtype);
    for (int i = 0; i < best.t.n_in; i++) {
        int64_t at[PLACES];
        nan_in *in = &ways[0].t.in[i];
        int n_at = op_is_float(in->dtype) ? places_of(&ways[0].t, in, at) : 0;
        for (int k = 0; k < n_at; k++)
            try_place(&best, ways, n, i, at[k]);
    }
    for (int w = 0; w < n; w++)
        close_way(&ways[w]);
    close_way(&best);
}

static void run_entry(const test_entry *e)
{
    const char *op = e->arg;
    bool is_gpu = strncmp(e->name, "gpu/", 4) == 0;
    static const tt_dtype types[] = {TT_F32, TT_BF16, TT_F16};
    if (is_gpu)
        test_need_gpu();
    for (int k = 0; k < n_nan_rows; k++) {
        const nan_row *r = &nan_rows[k];
        if (strcmp(r->op, op) != 0 || r->exempt != NULL || (is_gpu && r->no_gpu))
            continue;
        for (int i = 0; i < (r->f32_only ? 1 : 3); i++) {
            nan_way ways[8] = {{.device = "gpu:0", .threads = 1}};
            int n = is_gpu ? 1 : 0;
            for (int set = 0; !is_gpu && test_isa(set) != NULL; set++)
                if (i == 0 || set == 0 ||
                    test_isa(set + 1) == NULL) // halves: the best and the last
                    ways[n++] = (nan_way){.device = "cpu:0",
                                          .isa = test_isa(set),
                                          .threads = set == 0 && i == 0 ? 3 : 1};
            try_row(r, ways, n, types[i]);
        }
    }
}

// "nan/op" and "gpu/nan/op" for every op of the rows.
__attribute__((constructor)) static void register_rows(void)
{
    static test_entry entries[2][NAN_ROWS_MOST];
    static char names[2][NAN_ROWS_MOST][48];
    for (int gpu = 0; gpu < 2; gpu++)
        for (int k = 0; k < n_nan_rows; k++) {
            bool is_new = nan_rows[k].exempt == NULL;
            for (int j = 0; j < k; j++)
                is_new = is_new && strcmp(nan_rows[k].op, nan_rows[j].op) != 0;
            if (!is_new)
                continue;
            snprintf(names[gpu][k], sizeof(names[gpu][k]), "%snan/%s", gpu ? "gpu/" : "",
                     nan_rows[k].op);
            entries[gpu][k] = (test_entry){
                .file = __FILE__, .name = names[gpu][k], .run = run_entry, .arg = nan_rows[k].op};
            test_register(&entries[gpu][k]);
        }
}
