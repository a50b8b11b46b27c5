/*
 * optimizer_kinds.c - kinds of optimizers as option rows.
 */
#include "train/optimizer.h"
#include <string.h>

#define ROW(name_, type_, value_, help_, low_, high_)                                  \
    {                                                                                  \
#name_, type_, value_, help_, offsetof(tt_optimizer, name_), low_, high_, NULL \
    }
#define LR(value_) ROW(lr, TT_OPT_FLOAT, value_, "learning rate", 0, 1e30)
#define BELOW_ONE  0.9999999999999999
#define EPS(value_) \
    ROW(eps, TT_OPT_FLOAT, value_, "small constant added to the denominator", 0, 1e30)
#define DECAY(value_)              ROW(weight_decay, TT_OPT_FLOAT, value_, "weight decay", 0, 1e30)
#define BETA(name_, value_, help_) ROW(name_, TT_OPT_FLOAT, value_, help_, 0, BELOW_ONE)

#define MOMENTS                                                        \
    BETA(beta1, "0.9", "decay rate of the gradient's moving average"), \
        BETA(beta2, "0.999", "decay rate of the squared gradient's moving average")

#define MOMENTUM \
    ROW(momentum, TT_OPT_FLOAT, "0", "momentum: fraction of the last update kept", 0, BELOW_ONE)

#define COMMON                                                                                     \
    ROW(no_decay, TT_OPT_TEXT, "",                                                                 \
        "weights without weight decay, as name patterns: '*.bias, norm*'", 0, 0),                  \
        ROW(clip_value, TT_OPT_FLOAT, "0",                                                         \
            "clip each gradient element to this absolute value; 0: off", 0, 1e30),                 \
        ROW(clip_norm, TT_OPT_FLOAT, "0", "clip the gradient of each weight to this norm; 0: off", \
            0, 1e30),                                                                              \
        ROW(clip_global, TT_OPT_FLOAT, "0",                                                        \
            "clip all gradients together to this global norm; 0: off", 0, 1e30),                   \
        ROW(ema, TT_OPT_FLOAT, "0",                                                                \
            "decay of an exponential moving average of the weights; 0: off", 0, BELOW_ONE),        \
        ROW(layer_decay, TT_OPT_FLOAT, "0",                                                        \
            "factor on the learning rate from each layer with weights to the one before; 0: off",  \
            0, 1),                                                                                 \
        TT_OPTION_END

static const tt_option sgd_options[] = {
    LR("1e-2"), MOMENTUM, ROW(nesterov, TT_OPT_BOOL, "false", "use Nesterov momentum", 0, 0),
    DECAY("0"), COMMON};
static const tt_option adam_options[] = {LR("1e-3"), MOMENTS, EPS("1e-8"), DECAY("0"), COMMON};
static const tt_option adamw_options[] = {LR("1e-3"), MOMENTS, EPS("1e-8"), DECAY("0.01"), COMMON};
static const tt_option rmsprop_options[] = {
    LR("1e-3"),
    MOMENTUM,
    BETA(beta1, "0.9", "decay rate of the squared gradient's moving average"),
    EPS("1e-7"),
    DECAY("0"),
    COMMON};
static const tt_option adagrad_options[] = {
    LR("1e-2"),
    ROW(initial, TT_OPT_FLOAT, "0.1", "initial value of the accumulated squares", 0, 1e30),
    EPS("1e-7"), DECAY("0"), COMMON};
static const tt_option adadelta_options[] = {
    LR("1"), BETA(beta1, "0.9", "decay rate of the averages of squared gradients and steps"),
    EPS("1e-6"), DECAY("0"), COMMON};
static const tt_option adamax_options[] = {
    LR("2e-3"),
    BETA(beta1, "0.9", "decay rate of the gradient's moving average"),
    BETA(beta2, "0.999", "decay rate of the largest gradient"),
    EPS("1e-8"),
    DECAY("0"),
    COMMON};
static const tt_option nadam_options[] = {LR("2e-3"), MOMENTS, EPS("1e-8"), DECAY("0"), COMMON};
static const tt_option ftrl_options[] = {
    LR("1e-3"),
    ROW(initial, TT_OPT_FLOAT, "0.1", "initial value of the accumulated squares", 1e-30, 1e30),
    ROW(l1, TT_OPT_FLOAT, "0", "strength of the penalty by magnitude: makes weights zero", 0, 1e30),
    ROW(l2, TT_OPT_FLOAT, "0", "strength of the penalty by square", 0, 1e30),
    ROW(eps, TT_OPT_FLOAT, "0", "constant added to the root of the squares (the paper's beta)", 0,
        1e30),
    DECAY("0"),
    COMMON};
static const tt_option lamb_options[] = {LR("1e-3"), MOMENTS, EPS("1e-6"), DECAY("0.01"), COMMON};
static const tt_option lars_options[] = {
    LR("0.1"),
    ROW(momentum, TT_OPT_FLOAT, "0.9", "momentum: fraction of the last update kept", 0, BELOW_ONE),
    ROW(nesterov, TT_OPT_BOOL, "false", "use Nesterov momentum", 0, 0),
    ROW(trust, TT_OPT_FLOAT, "0.001",
        "trust coefficient: a step is at most so large, as a part of the weight's norm", 1e-30,
        1e30),
    DECAY("0"),
    COMMON};
static const tt_option lion_options[] = {
    LR("1e-4"), BETA(beta1, "0.9", "decay rate used for the direction of the update"),
    BETA(beta2, "0.99", "decay rate of the gradient's moving average"), DECAY("0"), COMMON};

static const tti_optimizer_def kinds[] = {
    {"sgd", "stochastic gradient descent, with optional momentum", TT_SGD, sgd_options,
     tt_update_sgd_with},
    {"adam", "Adam; weight decay is added to the gradient", TT_ADAM, adam_options,
     tt_update_adam_with},
    {"adamw", "AdamW: Adam with decoupled weight decay", TT_ADAMW, adamw_options,
     tt_update_adamw_with},
    {"rmsprop", "RMSprop", TT_RMSPROP, rmsprop_options, tt_update_rmsprop_with},
    {"adagrad", "Adagrad", TT_ADAGRAD, adagrad_options, tt_update_adagrad_with},
    {"lion", "Lion, with decoupled weight decay", TT_LION, lion_options, tt_update_lion_with},
    {"adadelta", "Adadelta", TT_ADADELTA, adadelta_options, tt_update_adadelta_with},
    {"adamax", "Adamax: Adam with the largest gradient in place of the mean square", TT_ADAMAX,
     adamax_options, tt_update_adamax_with},
    {"nadam", "Nadam: Adam with Nesterov momentum", TT_NADAM, nadam_options, tt_update_nadam_with},
    {"amsgrad", "AMSGrad: Adam with the largest mean square so far", TT_AMSGRAD, adam_options,
     tt_update_amsgrad_with},
    {"ftrl", "FTRL-Proximal, for sparse linear models", TT_FTRL, ftrl_options, tt_update_ftrl_with},
    {"lamb", "LAMB: Adam whose steps are scaled to the norm of each weight, for large batches",
     TT_LAMB, lamb_options, NULL},
    {"lars", "LARS: SGD whose steps are scaled to the norm of each weight, for large batches",
     TT_LARS, lars_options, NULL},
};

const tti_optimizer_def *tti_optimizer_at(int i)
{
    return i >= 0 && i < TTI_COUNT(kinds) ? &kinds[i] : NULL;
}

const tti_optimizer_def *tti_optimizer_find(const char *name)
{
    for (int i = 0; name != NULL && i < TTI_COUNT(kinds); i++)
        if (strcmp(kinds[i].name, name) == 0)
            return &kinds[i];
    return NULL;
}

const tti_optimizer_def *tti_optimizer_of(tt_optimizer_kind kind)
{
    for (int i = 0; i < TTI_COUNT(kinds); i++)
        if (kinds[i].kind == kind)
            return &kinds[i];
    return NULL;
}
