/*
 * layer.h - what kinds of layers share: option rows, weights in the type of the input, activations.
 *
 * A kind is a const record tti_kind_NAME (tti_layer_def) in a file of its family, and a line in
 * layers.def. Failures are told by TT_FAIL() without the layer's name: it is put in front.
 */
#ifndef TUTTI_MODEL_LAYER_H
#define TUTTI_MODEL_LAYER_H

#include "model/model.h"

// Words of job files, in the order of the enums.
extern const char *const tti_act_words[], *const tti_padding_words[], *const tti_init_words[],
                                                                          *const tti_over_words[];

// Rows that several kinds have; standard is the default, as text.
#define TTI_ACT_ROW(type, standard)                                                             \
    {                                                                                           \
        "act", TT_OPT_ENUM, (standard), "activation", offsetof(type, act), 0, 0, tti_act_words, \
    }
#define TTI_NO_BIAS_ROW(type)                                                                      \
    {                                                                                              \
        "no_bias", TT_OPT_BOOL, "false", "do not add a bias", offsetof(type, no_bias), 0, 0, NULL, \
    }
#define TTI_OVER_ROW(type)                                                           \
    {                                                                                \
        "over", TT_OPT_ENUM, "batch",                                                \
            "compute batch norm statistics over the whole batch, or over each lane", \
            offsetof(type, over), 0, 0, tti_over_words,                              \
    }
#define TTI_RATE_ROW(type, field, help)                                       \
    {                                                                         \
#field, TT_OPT_FLOAT, "0", (help), offsetof(type, field), 0, 1, NULL, \
    }
#define TTI_INIT_ROWS(type, standard)                                                             \
    {"init", TT_OPT_ENUM, (standard),    "initializer of the weights", offsetof(type, init.kind), \
     0,      0,           tti_init_words},                                                        \
        {"init_a",                                                                                \
         TT_OPT_FLOAT,                                                                            \
         "0",                                                                                     \
         "initializer's parameter: the constant, lower bound or mean",                            \
         offsetof(type, init.a),                                                                  \
         0,                                                                                       \
         0,                                                                                       \
         NULL},                                                                                   \
    {                                                                                             \
        "init_b", TT_OPT_FLOAT, "0",                                                              \
            "initializer's parameter: the upper bound or standard deviation; "                    \
            "default: -0.05 to 0.05, standard deviation 0.02",                                    \
            offsetof(type, init.b), 0, 0, NULL,                                                   \
    }

extern const tti_layer_def tti_kind_tied_dense; // of gpt; no job names it

#define TTI_MAX_WIDTH 1e9 // of units, filters, vocabularies

// A weight as x needs it: kept in f32 (f64 where x is f64), cast to the type of x.
tt_tensor *tti_weight_for(tt_build *b, tt_tensor *x, const char *name, tt_shape shape,
                          tt_init init);
// Glorot's and He's as bounds or deviation, of fans that the weight's shape does not show.
tt_init tti_init_with_fans(tt_init init, double in, double out);
#define TTI_ONES ((tt_init){TT_INIT_CONSTANT, 1, 0})

// Softmax is no part of a product's node: what the node gets, and what follows it.
tt_act tti_act_inside(tt_act act);
tt_tensor *tti_act_after(tt_graph *g, tt_tensor *y, tt_act act);

// Dropout when training; false (recorded) if the rate is not from 0 to below 1.
bool tti_rate_check(tt_build *b, const char *what, double rate) TTI_CHECKED;
tt_tensor *tti_dropout_in(tt_build *b, tt_tensor *x, double rate);

// A norm of x over its last axis with weights "<name>.weight" and "<name>.bias"; name may be "".
typedef struct tti_norm {
    double eps;
    bool no_bias, rms;
} tti_norm;
tt_tensor *tti_norm_in(tt_build *b, tt_tensor *x, const char *name, const tti_norm *o);
// "weight" and "bias", behind name and a point if there is a name.
void tti_weight_names(const char *name, char weight[TTI_NAME_MAX], char bias[TTI_NAME_MAX]);

// True if x is a float [batch, ...] of at least this rank with a closed last axis; else recorded,
// saying what must be there: "[batch, ..., features]".
bool tti_x_check(tt_build *b, const tt_tensor *x, int rank, const char *wanted) TTI_CHECKED;

#endif
