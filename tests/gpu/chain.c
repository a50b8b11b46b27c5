/*
 * chain.c - nodes that plans give to one kernel on GPUs: which they are, that the result has the
 * bits of the nodes one by one, and that no circle comes of it.
 */
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

// The work with and without chains: n of them of this kind, the same bits, no more memory.
static void check(work *w, const char *chain, int n)
{
    static char want[1 << 22], got[1 << 22];
    tt_session *plain = tt_session_new(w->g, .no_fuse = true), *s = tt_session_new(w->g);
    CHECK_INT(count_in_plan(w, plain, chain), 0);
    CHECK_INT(count_in_plan(w, s, chain), n);
    size_t bytes = run(w, plain, want);
    CHECK(bytes <= sizeof(want) && run(w, s, got) == bytes);
    for (size_t i = 0; i < bytes; i++)
        ck_assert_msg(want[i] == got[i], "%s: byte %zu of %zu differs", chain, i, bytes);
    CHECK(s->plans->devices[0].arena_bytes <= plain->plans->devices[0].arena_bytes);
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
            check(&w, ENTROPY, 1);
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
    check(&w, ENTROPY, 1);
}
