/*
 * layer_noise.c - random layers that act in training only: spatial_dropout, gaussian_dropout,
 * gaussian_noise. Numbers depend on seed, step, layer, row and element, on no device.
 */
#include "model/layer.h"
#include "op/op.h"
#include <math.h>

// ---- dropout of channels ---------------------------------------------------------------------

static const tt_option rate_options[] = {
    TTI_RATE_ROW(tt_layer_dropout_opts, rate, "fraction to drop in training"),
    TT_OPTION_END,
};

static tt_tensor *spatial_build(tt_build *b, const void *opts, tt_tensor *const *in, int n_in)
{
    (void)n_in;
    const tt_layer_dropout_opts *o = opts;
    tt_graph *g = b->graph;
    tt_tensor *one = in[0];
    if (!tti_rate_check(b, "rate", o->rate) ||
        !tti_x_check(b, in[0], 3, "[batch, time, channels] or [batch, height, width, channels]"))
        return NULL;
    if (!b->training || o->rate == 0)
        return in[0];
    for (int i = 1; i < in[0]->shape.rank - 1 && one != NULL; i++)
        one = tt_slice(g, one, i, 0, 1);
    tt_tensor *mask = one == NULL ? NULL : tt_dropout(g, tti_ones_like(g, one), o->rate);
    return mask == NULL ? NULL : tt_mul(g, in[0], mask);
}

static tt_tensor *gaussian_dropout_build(tt_build *b, const void *opts, tt_tensor *const *in,
                                         int n_in)
{
    (void)n_in;
    const tt_layer_dropout_opts *o = opts;
    if (!tti_rate_check(b, "rate", o->rate) || !tti_x_check(b, in[0], 1, "[batch, ...]"))
        return NULL;
    if (!b->training || o->rate == 0)
        return in[0];
    tt_tensor *factor =
        tt_gaussian_noise(b->graph, tti_ones_like(b->graph, in[0]), sqrt(o->rate / (1 - o->rate)));
    return factor == NULL ? NULL : tt_mul(b->graph, in[0], factor);
}

TTI_LAYER(spatial_dropout, tt_layer_dropout_opts, rate_options, "rate", spatial_build,
          "dropout of whole channels in training")
TTI_LAYER(gaussian_dropout, tt_layer_dropout_opts, rate_options, "rate", gaussian_dropout_build,
          "multiply by normal numbers of mean 1 and deviation sqrt(rate / (1 - rate)) in training")

// ---- noise -----------------------------------------------------------------------------------

static const tt_option noise_options[] = {
    {"deviation", TT_OPT_FLOAT, "0.1", "standard deviation of what is added",
     offsetof(tt_layer_gaussian_noise_opts, deviation), 0, 1e6, NULL},
    TT_OPTION_END,
};

static tt_tensor *noise_build(tt_build *b, const void *opts, tt_tensor *const *in, int n_in)
{
    (void)n_in;
    const tt_layer_gaussian_noise_opts *o = opts;
    if (!tti_x_check(b, in[0], 1, "[batch, ...]"))
        return NULL;
    return b->training ? tt_gaussian_noise(b->graph, in[0], o->deviation) : in[0];
}

TTI_LAYER(gaussian_noise, tt_layer_gaussian_noise_opts, noise_options, "deviation", noise_build,
          "add normal numbers of mean 0 in training")
