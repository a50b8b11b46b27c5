/*
 * graph_tour.c - what a graph is made of: feeds, variables, an open batch, a gradient, an update,
 * print and assert, values at once, and the text form.
 */
#include <stdio.h>
#include <string.h>
#include <tutti/tutti.h>

static void on_event(void *user, const tt_event *ev)
{
    (void)user;
    if (strcmp(ev->kind, "print") == 0)
        printf("print: %s\n", ev->text);
}

int main(void)
{
    tt_ctx *ctx = tt_open(.seed = 1, .on_event = on_event);
    tt_graph *g = tt_graph_new(ctx);

    tt_tensor *x = tt_feed(g, .shape = TT_SHAPE(TT_BATCH, 2), .name = "x");
    tt_tensor *y = tt_feed(g, .shape = TT_SHAPE(TT_BATCH, 1), .name = "y");
    tt_tensor *w = tt_variable(g, .shape = TT_SHAPE(2, 1), .name = "w",
                               .init = {TT_INIT_GLOROT_UNIFORM, 0, 0});
    tt_tensor *b = tt_variable(g, .shape = TT_SHAPE(1), .name = "b");
    tt_tensor *p = tt_matmul(g, x, w, .bias = b);
    tt_tensor *loss = tt_mean(g, tt_square(g, tt_sub(g, p, y)));

    tt_tensor *vars[] = {w, b}, *grads[2], *updates[2];
    tt_grad(g, loss, NULL, 2, vars, grads);
    for (int i = 0; i < 2; i++)
        updates[i] = tt_update_sgd(g, vars[i], grads[i], .momentum = 0.9);

    tt_session *s = tt_session_new(g);
    const float xs[] = {0, 0, 0, 1, 1, 0, 1, 1}, ys[] = {1, 4, 3, 6}; // y = 1 + 2 x0 + 3 x1
    tt_feed_value feeds[] = {{x, xs, TT_SHAPE(4, 2), TT_F32}, {y, ys, TT_SHAPE(4, 1), TT_F32}};
    float value = 0, wb[3] = {0};
    for (int step = 0; step < 400; step++)
        tt_run(s, .feeds = feeds, .n_feeds = 2, .targets = updates, .n_targets = 2, .n_fetches = 1,
               .fetches = &(tt_fetch){loss, &value, sizeof(value)}, .step = step, .lr = 0.1f);
    tt_get_variable(s, w, wb, 2 * sizeof(float));
    tt_get_variable(s, b, wb + 2, sizeof(float));
    printf("loss %g, w %g %g, b %g\n", (double)value, (double)wb[0], (double)wb[1], (double)wb[2]);

    // At once: no session, no feeds; the value of what variables and constants give.
    float norm = 0;
    tt_eval(g, tt_sqrt(g, tt_sum(g, tt_square(g, w))), &norm, 1);
    printf("|w| = %g\n", (double)norm);

    tt_tensor *seen = tt_print(g, loss, "loss");
    tt_tensor *good = tt_less(g, loss, tt_scalar(g, 1e-3));
    tt_tensor *checked = tt_assert(g, seen, good, "loss is too large");
    tt_run(s, .feeds = feeds, .n_feeds = 2, .targets = &checked, .n_targets = 1);

    char *text = tt_graph_print(g);
    tt_graph *back = text == NULL ? NULL : tt_graph_parse(ctx, text, strlen(text));
    char *again = back == NULL ? NULL : tt_graph_print(back);
    bool same = again != NULL && strcmp(text, again) == 0;
    printf("%s%s\n", text == NULL ? "" : text, same ? "read back: the same" : "read back: differs");
    tt_string_free(ctx, text);
    tt_string_free(ctx, again);
    tt_status st = tt_close(ctx); // the first error of all these calls
    return st == TT_OK && same && value < 1e-3f ? 0 : 1;
}
