// The same from C++: the functions behind the keyword macros.
#include <tutti/extend.h>
#include <tutti/tutti.h>

int main()
{
    tt_open_opts open{};
    open.opts_size = sizeof(open);
    open.devices = "cpu:0";
    tt_ctx *ctx = tt_open_with(&open);
    tt_graph *g = tt_graph_new(ctx);
    const float data[] = {1, 2, 3};
    tt_shape shape{1, {3}};
    tt_tensor *x = tt_const(g, TT_F32, shape, data);
    float y[3] = {0, 0, 0};
    tt_eval(g, tt_add(g, x, x), y, 3);
    return tt_close(ctx) == TT_OK && y[2] == 6 ? 0 : 1;
}
