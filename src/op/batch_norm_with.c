/*
 * batch_norm_with.c - batch norm as users ask for it: the nodes of batch_norm.c, or the one of
 * batch_norm_lane.c, and the updates of running statistics.
 */
#include "op/batch_norm.h"
#include "op/op.h"

extern const tt_op tti_op_batch_norm_stats, tti_op_batch_norm_apply, tti_op_batch_norm_running;

tt_tensor *tti_batch_norm_guard(tt_graph *g, tt_tensor *update, tt_tensor *go)
{
    const tt_node *n = update == NULL ? NULL : update->node;
    if (n == NULL || go == NULL || n->op != &tti_op_batch_norm_running || n->n_in != 2)
        return update;
    return tt_node_out(g, n->op, 3, (tt_tensor *[]){n->in[0], n->in[1], go}, n->attr);
}

tt_tensor *tt_batch_norm_with(tt_graph *g, tt_tensor *x, tt_batch_norm_vars vars,
                              const tt_batch_norm_opts *opts)
{
    if (!tti_has_graph(g, x, "batch_norm"))
        return NULL;
    TTI_OPTS_OWN(tt_graph_get_ctx(g), "batch_norm", tt_batch_norm_opts, opts);
    if (opts == NULL)
        return NULL;
    tti_batch_norm_attr a = {.eps = tti_or_default(opts->eps, 1e-5),
                             .momentum = tti_or_default(opts->momentum, 0.9),
                             .act = tti_act_fused(opts->act),
                             .has_residual = opts->residual != NULL};
    tt_tensor *mean = vars.mean, *unbiased = NULL, *y;
    if (opts->over != TT_OVER_BATCH && opts->over != TT_OVER_LANE) {
        (void)TT_FAIL(tt_graph_get_ctx(g), TT_EINVAL,
                      "batch_norm: over is %d, neither TT_OVER_BATCH nor TT_OVER_LANE",
                      (int)opts->over);
        return NULL;
    }
    if (!opts->infer && opts->over == TT_OVER_LANE) {
        tt_tensor *in[] = {x, vars.gamma, vars.beta, opts->residual};
        y = tti_batch_norm_lane(g, in, &a, &mean, &unbiased);
    } else {
        tt_tensor *var = vars.var;
        if (!opts->infer) {
            tt_node *stats = tt_node_new(g, &tti_op_batch_norm_stats, 1, &x, NULL, NULL);
            if (stats == NULL)
                return NULL;
            mean = stats->outs[0];
            var = stats->outs[1];
            unbiased = stats->outs[2];
        }
        tt_tensor *in[] = {x, mean, var, vars.gamma, vars.beta, opts->residual};
        y = tt_node_out(g, &tti_op_batch_norm_apply, 5 + a.has_residual, in, &a);
    }
    if (y == NULL)
        return NULL;
    tt_tensor **out[] = {opts->new_mean, opts->new_var};
    for (int i = 0; i < 2; i++) {
        tt_tensor *pair[] = {i == 0 ? vars.mean : vars.var, i == 0 ? mean : unbiased};
        if (out[i] == NULL)
            continue;
        *out[i] = opts->infer ? pair[0] : tt_node_out(g, &tti_op_batch_norm_running, 2, pair, &a);
        if (*out[i] == NULL)
            return NULL;
    }
    return tti_act_apart(g, y, opts->act);
}
