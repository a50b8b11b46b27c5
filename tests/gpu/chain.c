/*
 * chain.c - nodes that plans give to one kernel on GPUs: which they are, that the result has the
 * bits of the nodes one by one, and that no circle comes of it.
 */
#include "model/model.h"
#include "run/run.h"
#include "test.h"
#include <stdlib.h>
#include <string.h>

#define MAX 16

// A graph with what is fed and fetched.
typedef struct work {
    tt_ctx *ctx;
    tt_graph *g;
    int64_t rows;
    tt_dtype type; // of what is fed as numbers
    tt_tensor *feeds[MAX], *fetches[MAX];
    int n_feeds, n_fetches;
    int64_t classes; // of labels
} work;

// Numbers of the work's type in [-4, 4): [rows, shape ...].
static tt_tensor *numbers(work *w, int64_t per, int64_t cols)
{
    tt_tensor *x = tt_feed(w->g, .shape = TT_SHAPE(TT_BATCH, per, cols));
    w->feeds[w->n_feeds++] = x;
    return w->type == TT_F32 ? tt_scale(w->g, x, 4, 0) : tt_cast(w->g, x, w->type);
}

static tt_tensor *labels(work *w, int64_t per, int64_t classes)
{
    w->classes = classes;
    return w->feeds[w->n_feeds++] =
               tt_feed(w->g, .dtype = TT_I32, .shape = TT_SHAPE(TT_BATCH, per));
}

static void fetch(work *w, tt_tensor *t)
{
    ck_assert_msg(t != NULL, "%s", tt_last_error(w->ctx).message);
    w->fetches[w->n_fetches++] = t;
}

static void open_work(work *w, const char *devices, tt_dtype type, int64_t rows)
{
    *w = (work){.type = type, .rows = rows};
    w->ctx = tt_open(.devices = devices, .on_event = test_ignore_event, .lanes = 4);
    w->g = tt_graph_new(w->ctx);
}

// Two runs, of which the second may be captured; what they fetch, in `to`. Bytes.
static size_t run(work *w, tt_session *s, char *to)
{
    tt_feed_value feeds[MAX];
    tt_fetch fetches[MAX];
    size_t bytes = 0;
    for (int i = 0; i < w->n_feeds; i++) {
        tt_shape shape = w->feeds[i]->shape;
        shape.dim[0] = w->rows;
        int64_t n = tt_shape_count(&shape);
        float *data = malloc(sizeof(float) * (size_t)n);
        test_fill(data, n, (uint64_t)i + 1, -1, 1);
        for (int64_t k = 0; k < n && w->feeds[i]->dtype == TT_I32; k++)
            ((int32_t *)(void *)data)[k] = k % 5 == 3 ? -1 : (int32_t)((k * 7919) % w->classes);
        feeds[i] = (tt_feed_value){
            .tensor = w->feeds[i], .data = data, .shape = shape, .dtype = w->feeds[i]->dtype};
    }
    for (int i = 0; i < w->n_fetches; i++) {
        tt_shape shape = w->fetches[i]->shape;
        if (tt_open_axis(&shape) == 0)
            shape.dim[0] *= -w->rows;
        size_t n = (size_t)tt_shape_count(&shape) * tt_dtype_bytes(w->fetches[i]->dtype);
        fetches[i] = (tt_fetch){.tensor = w->fetches[i], .data = to + bytes, .bytes = n};
        bytes += n;
    }
    for (int k = 0; k < 2; k++) {
        memset(to, 0x5a, bytes);
        ck_assert_msg(tt_run(s, .feeds = feeds, .n_feeds = w->n_feeds, .fetches = fetches,
                             .n_fetches = w->n_fetches) == TT_OK,
                      "%s", tt_last_error(w->ctx).message);
    }
    for (int i = 0; i < w->n_feeds; i++)
        free((void *)feeds[i].data);
    return bytes;
}

// How often the words stand in the plan's first column.
static int count_in_plan(work *w, tt_session *s, const char *words)
{
    char *text =
        tt_plan_print(s, .targets = w->fetches, .n_targets = w->n_fetches, .rows = w->rows);
    ck_assert_msg(text != NULL, "%s", tt_last_error(w->ctx).message);
    int n = 0;
    for (const char *at = text; (at = strchr(at, '\n')) != NULL;)
        n += strncmp(++at, words, strlen(words)) == 0 && at[strlen(words)] == ' ';
    tt_string_free(w->ctx, text);
    return n;
}

// The work with and without chains: n of this kind and of the other, the same bits, no more memory.
static void check(work *w, const char *chain, int n, const char *other)
{
    static char want[1 << 22], got[1 << 22];
    tt_session *plain = tt_session_new(w->g, .no_fuse = true), *s = tt_session_new(w->g);
    CHECK_INT(count_in_plan(w, plain, chain), 0);
    CHECK_INT(count_in_plan(w, s, chain), n);
    if (other != NULL)
        CHECK_INT(count_in_plan(w, s, other), n);
    size_t bytes = run(w, plain, want);
    CHECK(bytes <= sizeof(want) && run(w, s, got) == bytes);
    for (size_t i = 0; i < bytes; i++)
        ck_assert_msg(want[i] == got[i], "%s: byte %zu of %zu differs", chain, i, bytes);
    // What a chain works in, and its sums over rows, are there together with its inputs.
    const tti_entry_list *list = &s->plans->exe.lists[0];
    size_t more = 0;
    for (int i = 0; i < list->n_entries; i++) {
        const tti_pnode *pn = &s->plans->nodes[list->entries[i].pnode];
        if (pn->kind != TTI_CHAINED)
            continue;
        bool sums = strstr(chain, "+sum") != NULL;
        size_t sum = sums ? s->plans->values[pn->out + pn->n_out - 1].bytes : 0;
        more = TTI_MAX(more, list->entries[i].calls->scratch_bytes + sum + 512);
    }
    size_t apart = plain->plans->devices[0].lower_bound;
    ck_assert_msg(s->plans->devices[0].lower_bound <= apart + more,
                  "%s: %zu bytes at once, apart %zu", chain, s->plans->devices[0].lower_bound,
                  apart);
    CHECK_OK(tt_close(w->ctx));
}

static const tt_dtype types[] = {TT_F32, TT_BF16, TT_F16};

// ---- cross entropy ---------------------------------------------------------------------------

#define ENTROPY "cross_entropy+cross_entropy_grad"

TEST(gpu_chains_of_cross_entropy_and_its_gradient)
{
    // By warps and by blocks, of whole packs and not; rows kept in shared memory, with several
    // groups of packs on their way.
    static const int64_t cols[] = {1, 10, 64, 1001, 1024, 1032, 1031, 8200, 20480, 33000};
    test_need_gpu();
    for (int i = 0; i < 10; i++)
        for (int k = 0; k < 3; k++) {
            work w;
            open_work(&w, "gpu:0", types[k], i < 6 ? 9 : 2);
            tt_tensor *x = numbers(&w, 3, cols[i]), *t = labels(&w, 3, cols[i]);
            tt_tensor *seed = tt_feed(w.g, .shape = TT_SHAPE(TT_BATCH, 3)), *dx;
            w.feeds[w.n_feeds++] = seed;
            tt_tensor *loss = tt_cross_entropy(w.g, x, t, .smoothing = i % 2 == 1 ? 0.1 : 0,
                                               .has_ignore = true, .ignore = -1);
            CHECK_OK(tt_grad(w.g, loss, seed, 1, &x, &dx));
            fetch(&w, loss);
            fetch(&w, tt_scale(w.g, dx, 2, 0));
            check(&w, ENTROPY, 1, NULL);
        }
}

// Each gradient needs the other's loss: one chain is made, the other would close a circle.
TEST(gpu_chains_make_no_circle)
{
    work w;
    test_need_gpu();
    open_work(&w, "gpu:0", TT_F32, 4);
    tt_tensor *x[2], *loss[2], *dx;
    for (int i = 0; i < 2; i++) {
        x[i] = numbers(&w, 1, 10);
        loss[i] = tt_cross_entropy(w.g, x[i], labels(&w, 1, 10), .has_ignore = true, .ignore = -1);
    }
    for (int i = 0; i < 2; i++) {
        CHECK_OK(tt_grad(w.g, loss[i], loss[1 - i], 1, &x[i], &dx));
        fetch(&w, dx);
    }
    check(&w, ENTROPY, 1, NULL);
}

// ---- norms -----------------------------------------------------------------------------------

// y = norm(x + r); what comes past it is added to the gradient of the norm.
static void residual(work *w, int64_t per, int64_t cols, bool rms)
{
    // What is added comes from no pointwise nodes, with which the sum would be joined.
    tt_tensor *x = tt_log_softmax(w->g, numbers(w, per, cols)), *dy = numbers(w, per, cols);
    tt_tensor *r = tt_log_softmax(w->g, numbers(w, per, cols));
    tt_tensor *gamma = tt_variable(w->g, .shape = TT_SHAPE(cols), .init = {TT_INIT_UNIFORM, -1, 1});
    tt_tensor *beta = tt_variable(w->g, .shape = TT_SHAPE(cols), .init = {TT_INIT_UNIFORM, -1, 1});
    tt_tensor *s = tt_add(w->g, x, r), *dx[4];
    tt_tensor *y = rms ? tt_rms_norm(w->g, s, gamma) : tt_layer_norm(w->g, s, gamma, beta);
    tt_tensor *xs[] = {s, gamma, beta}, *out = tt_add(w->g, s, y);
    CHECK_OK(tt_grad(w->g, out, dy, rms ? 2 : 3, xs, dx));
    fetch(w, out);
    for (int i = 0; i < (rms ? 2 : 3); i++)
        fetch(w, i == 0 ? tt_scale(w->g, dx[i], 2, 0) : dx[i]);
}

// By warps in registers, by warps from memory, by blocks, with columns past a block's memory. Of
// the shortest rows lanes have several chunks.
static void check_norms(bool rms)
{
    static const int64_t cols[] = {8, 24, 33, 512, 768, 1000, 1024, 1025, 2056, 7000};
    test_need_gpu();
    for (int i = 0; i < 10; i++)
        for (int k = 0; k < 3; k++) {
            work w;
            open_work(&w, "gpu:0", types[k], i < 3 ? 41 : i < 7 ? 6 : 2);
            residual(&w, i < 3 ? 7 : 2, cols[i], rms);
            check(&w, rms ? "add+rms_norm" : "add+layer_norm", 1,
                  rms ? "rms_norm_grad+add" : "layer_norm_grad+add");
        }
}

TEST(gpu_chains_of_layer_norms_and_the_sums_around_them)
{
    check_norms(false);
}

TEST(gpu_chains_of_rms_norms_and_the_sums_around_them)
{
    check_norms(true);
}

// ---- sums over rows --------------------------------------------------------------------------

// A bias, an activation, and the gradients of both.
static void biased(work *w, tt_tensor *(*act)(tt_graph *g, tt_tensor *x), int64_t per, int64_t cols)
{
    tt_tensor *bias = tt_variable(w->g, .shape = TT_SHAPE(cols), .init = {TT_INIT_UNIFORM, -1, 1});
    tt_tensor *b = w->type == TT_F32 ? bias : tt_cast(w->g, bias, w->type), *d[2];
    // What the gradients come from are no pointwise nodes, with which they would be joined.
    tt_tensor *dy = tt_softmax(w->g, numbers(w, per, cols));
    tt_tensor *z = tt_softmax(w->g, tt_add(w->g, numbers(w, per, cols), b));
    tt_tensor *u = tt_add(w->g, z, b), *y = act(w->g, u), *xs[] = {u, b};
    CHECK_OK(tt_grad(w->g, y, dy, 2, xs, d));
    fetch(w, y);
    fetch(w, tt_softmax(w->g, d[0]));
    fetch(w, d[1]);
}

TEST(gpu_chains_of_activations_gradients_and_sums_over_rows)
{
    static const struct {
        tt_tensor *(*act)(tt_graph *g, tt_tensor *x);
        const char *chain;
    } acts[] = {{tt_gelu, "gelu_grad+sum"},        {tt_relu, "relu_grad+sum"},
                {tt_silu, "silu_grad+sum"},        {tt_sigmoid, "sigmoid_grad+sum"},
                {tt_tanh, "tanh_grad+sum"},        {tt_softplus, "softplus_grad+sum"},
                {tt_gelu_erf, "gelu_erf_grad+sum"}};
    // Rows of a lane: less than a chunk, chunks of which the last is short, many columns.
    static const int64_t rows[][3] = {{5, 3, 8}, {9, 70, 40}, {13, 41, 8}, {2, 5, 520}};
    test_need_gpu();
    for (int i = 0; i < 7; i++)
        for (int k = 0; k < 4; k++) {
            work w;
            open_work(&w, "gpu:0", types[(i + k) % 3], rows[k][0]);
            biased(&w, acts[i].act, rows[k][1], rows[k][2]);
            check(&w, acts[i].chain, 1, NULL);
        }
}

// ---- spread ----------------------------------------------------------------------------------

// Nodes of a training step's plan that are this chain, after a step of a GPT of two blocks.
static int count_in_step(const char *devices, const char *strategy, const char *recompute,
                         const char *chain)
{
    static int32_t x[8 * 8], y[8 * 8];
    tt_ctx *ctx = tt_open(.devices = devices, .strategy = strategy, .on_event = test_ignore_event);
    tt_model *m = tt_sequential(ctx, .input = {8}, .dtype = TT_I32);
    tt_layer_gpt(m, .layers = 2, .heads = 2, .width = 16, .vocab = 29);
    tt_compile(m, .loss = TT_CROSS_ENTROPY, .optimizer = tt_sgd(.lr = 0.1), .recompute = recompute);
    tt_batch_data b = {.rows = 8, .fields = {x, y}};
    ck_assert_msg(tt_train_step(m, &b, NULL) == TT_OK, "%s", tt_last_error(ctx).message);
    const tti_plan *p = tt_model_get_session(m)->plans;
    int n = 0;
    for (int i = 0; i < p->n_order; i++) {
        char name[TTI_KERNEL_TEXT] = "";
        if (p->nodes[p->order[i]].kind == TTI_CHAINED) {
            tti_kernel_key key = tti_chain_key(p->nodes[p->order[i]].chain);
            tti_kernel_key_text(&key, name);
        }
        n += strcmp(name, chain) == 0;
    }
    CHECK_OK(tt_close(ctx));
    return n;
}

TEST(gpu_chains_are_found_however_work_is_spread)
{
    static const struct {
        const char *devices, *strategy, *recompute;
        int times; // nodes are there so often
    } ways[] = {{"gpu:0", "single", "none", 1},
                {"gpu:0*2", "mirrored", "none", 2},
                {"gpu:0*2", "pipeline", "none", 8}, // micro-batches
                {"gpu:0", "single", "block.*", 1}};
    test_need_gpu();
    for (int i = 0; i < 4; i++) {
        const char *d = ways[i].devices, *s = ways[i].strategy, *r = ways[i].recompute;
        int n = ways[i].times;
        CHECK_INT(count_in_step(d, s, r, "chain " ENTROPY), n);
        CHECK_INT(count_in_step(d, s, r, "chain layer_norm_grad+add"), 4 * n);
        // Of what is computed again, sums are kept at the ends of blocks and their norms are not.
        CHECK_INT(count_in_step(d, s, r, "chain add+layer_norm"), i == 3 ? 6 : 4 * n);
    }
}
