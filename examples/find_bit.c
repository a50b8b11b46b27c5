/*
 * find_bit.c - two runs that should agree and do not: one weight was nudged by a few units of the
 * last place. Hashes per node and lane name the first node that differs, a dump the element.
 */
#include <stdio.h>
#include <string.h>
#include <tutti/tutti.h>

enum {
    ROWS = 13,
    C = 20
};

// Trains a little and writes the hashes of every node; at step 1 weight `nudge` of w2 is changed.
static tt_status record(const char *path, const char *devices, int nudge)
{
    tt_ctx *ctx = tt_open(.devices = devices);
    tt_graph *g = tt_graph_new(ctx);
    tt_init he = {TT_INIT_HE_NORMAL, 0, 0};
    tt_tensor *x = tt_feed(g, .shape = TT_SHAPE(TT_BATCH, C), .name = "x");
    tt_tensor *w1 = tt_variable(g, .shape = TT_SHAPE(C, C), .init = he, .name = "w1");
    tt_tensor *w2 = tt_variable(g, .shape = TT_SHAPE(C, C), .init = he, .name = "w2");
    tt_tensor *h = tt_matmul(g, x, w1, .act = TT_RELU);
    tt_tensor *loss = tt_mean(g, tt_square(g, tt_matmul(g, h, w2)));
    tt_tensor *vars[] = {w1, w2}, *grads[2], *updates[2];
    tt_grad(g, loss, NULL, 2, vars, grads);
    for (int i = 0; i < 2; i++)
        updates[i] = tt_update_adam(g, vars[i], grads[i]);

    tt_session *s = tt_session_new(g, .hashes = true, .dump = "matmul_1");
    float xs[ROWS * C], w[C * C];
    for (int i = 0; i < ROWS * C; i++)
        xs[i] = (float)(i % 17) / 17 - 0.4f;
    tt_feed_value feed = {x, xs, TT_SHAPE(ROWS, C), TT_F32};
    for (int step = 0; step < 2; step++) {
        if (step == 1 && nudge >= 0) {
            tt_get_variable(s, w2, w, sizeof(w));
            uint32_t bits;
            memcpy(&bits, &w[nudge], sizeof(bits));
            bits += 16;
            memcpy(&w[nudge], &bits, sizeof(bits));
            tt_set_variable(s, w2, w, sizeof(w));
        }
        tt_run(s, .feeds = &feed, .n_feeds = 1, .targets = updates, .n_targets = 2, .step = step,
               .lr = 1e-3f);
    }
    tt_hashes_write(s, path);
    return tt_close(ctx);
}

static bool compare(const char *a, const char *b)
{
    tt_ctx *ctx = tt_open();
    bool same = false;
    char *report = NULL;
    tt_hashes_diff(ctx, a, b, &same, &report); // what `tutti diff A B` prints
    printf("%s and %s: %s", a, b, report == NULL ? "\n" : report);
    tt_string_free(ctx, report);
    return tt_close(ctx) == TT_OK && same;
}

int main(void)
{
    record("one.hashes", "cpu:0", -1);
    record("two.hashes", "cpu:0*2", -1);
    record("nudged.hashes", "cpu:0", 47);
    bool same = compare("one.hashes", "two.hashes");
    return same && !compare("one.hashes", "nudged.hashes") ? 0 : 1;
}
