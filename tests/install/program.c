// Compiled against an installed copy: y = relu(x w) of a graph, run once.
#include <stdio.h>
#include <tutti/tutti.h>

int main(void)
{
    tt_ctx *ctx = tt_open(.devices = "cpu:0");
    tt_graph *g = tt_graph_new(ctx);
    tt_tensor *x = tt_feed(g, .shape = TT_SHAPE(TT_BATCH, 2));
    const float w_data[] = {1, -1, 2, -2}, x_data[] = {1, 2, 3, 4, 5, 6};
    tt_tensor *w = tt_const(g, TT_F32, TT_SHAPE(2, 2), w_data);
    tt_tensor *y = tt_matmul(g, x, w, .act = TT_RELU);
    tt_session *s = tt_session_new(g);
    float out[6] = {0};

    tt_run(s, .feeds = (tt_feed_value[]){{x, x_data, TT_SHAPE(3, 2), TT_F32}}, .n_feeds = 1,
           .fetches = (tt_fetch[]){{y, out, sizeof(out)}}, .n_fetches = 1);
    if (tt_close(ctx) != TT_OK)
        return 1;
    return out[0] == 5 && out[1] == 0 && out[2] == 11 && out[4] == 17 ? 0 : 2;
}
