/*
 * update.h - what update.c and update_cpu.c share.
 */
#ifndef TUTTI_OP_UPDATE_H
#define TUTTI_OP_UPDATE_H

#include <tutti/extend.h>
#include <tutti/ops.h>

typedef struct tti_update_attr {
    double lr_scale, weight_decay, momentum, beta1, beta2, eps;
    int64_t nesterov, has_scale;
} tti_update_attr;
typedef struct tti_ema_attr {
    double decay;
    int64_t has_scale;
} tti_ema_attr;

/*
 * For ops like those of update.c: shapes of a variable, a gradient and state, least to most inputs
 * but for the scale, which is the last one; the units of a call; a state variable "<var>/<what>".
 */
tt_status tti_update_infer(tt_infer *q, int least, int most, bool has_scale);
tt_status tti_update_prep(tt_prep *p);
tt_tensor *tti_update_state(tt_graph *g, const tt_tensor *var, const char *what, double value);
// Such an op: least_ to most_ inputs, of which bits of writes_ say which are written.
#define TTI_UPDATE_OP(name_, help_, attr_, rows_, least_, most_, writes_)                    \
    static tt_status name_##_infer(tt_infer *q)                                              \
    {                                                                                        \
        return tti_update_infer(q, least_, most_, ((const attr_ *)q->attr)->has_scale != 0); \
    }                                                                                        \
    const tt_op tti_op_update_##name_ = {                                                    \
        .name = "update_" #name_,                                                            \
        .help = help_,                                                                       \
        .inputs = least_,                                                                    \
        .max_inputs = most_ + 1,                                                             \
        .flags = TT_OP_UPDATE | TT_OP_NO_GRAD | TT_OP_FLAT,                                  \
        .types = 1u << TT_F32 | 1u << TT_F64,                                                \
        .attrs = rows_,                                                                      \
        .attr_size = sizeof(attr_),                                                          \
        .infer = name_##_infer,                                                              \
        .split = tti_split_whole,                                                            \
        .kernel = {[TT_CPU] = TTI_CPU(update_##name_, tti_update_prep)},                     \
        .writes = writes_,                                                                   \
    }

// update_more.c: the direction of lamb, which keeps its moments beside var.
tt_tensor *tti_lamb_direction(tt_graph *g, tt_tensor *var, tt_tensor *grad,
                              const tt_update_opts *o);

TT_CPU_DECLARE(assign);
TT_CPU_DECLARE(update_sgd);
TT_CPU_DECLARE(update_adam);
TT_CPU_DECLARE(update_adamw);
TT_CPU_DECLARE(update_rmsprop);
TT_CPU_DECLARE(update_adagrad);
TT_CPU_DECLARE(update_lion);
TT_CPU_DECLARE(update_ema);

#endif
