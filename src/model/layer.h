/*
 * layer.h - what kinds of layers share: option rows, weights in the type of the input, activations.
 *
 * A kind is a const record tti_kind_NAME (tti_layer_def) in a file of its family, and a line in
 * layers.def. Failures are told by TT_FAIL() without the layer's name: it is put in front.
 */
#ifndef TUTTI_MODEL_LAYER_H
#define TUTTI_MODEL_LAYER_H

#include "model/model.h"
#include <tutti/layers.h>

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

#define TTI_MAX_WIDTH 1e9  // of units, filters, vocabularies
#define TTI_MAX_SIDE  4096 // of a window, a stride, a padding

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

/*
 * Images and sequences of floats: [batch, height, width, channels], [batch, time, channels]. False:
 * recorded, saying what to do about one without channels.
 */
bool tti_layer_image_check(tt_build *b, const tt_tensor *x) TTI_CHECKED;
bool tti_layer_sequence_check(tt_build *b, const tt_tensor *x) TTI_CHECKED;
// Padding in rows and columns on each side, instead of a rule: not both.
bool tti_layer_pad_check(tt_build *b, tt_padding padding, const int pad[2]) TTI_CHECKED;
// That groups divide channels and filters.
bool tti_layer_groups_check(tt_build *b, int groups, int64_t channels, int64_t filters) TTI_CHECKED;
tt_padding tti_layer_pad_rule(tt_padding padding, const int pad[2]);
// A row of an int, of a pair.
#define TTI_INT_ROW(type, field, standard, least, help)                                         \
    {                                                                                           \
#field, TT_OPT_INT32, (standard), (help), offsetof(type, field), (least), TTI_MAX_SIDE, \
            NULL                                                                                \
    }
#define TTI_PAIR_ROW(type, field, standard, least, help)                                       \
    {                                                                                          \
#field, TT_OPT_PAIR, (standard), (help), offsetof(type, field), (least), TTI_MAX_SIDE, \
            NULL                                                                               \
    }
#define TTI_FILTERS_ROW(type)                                                                   \
    {                                                                                           \
        "filters", TT_OPT_INT32, NULL, "number of output channels", offsetof(type, filters), 1, \
            TTI_MAX_WIDTH, NULL                                                                 \
    }
#define TTI_PADDING_ROW(type)                                                                      \
    {                                                                                              \
        "padding", TT_OPT_ENUM, "valid",                                                           \
            "padding of the borders; same keeps the size at stride 1", offsetof(type, padding), 0, \
            0, tti_padding_words                                                                   \
    }
// The record of a kind with one input and its call, tt_layer_NAME_with().
#define TTI_LAYER(name_, type_, options_, main_, build_, help_)        \
    const tti_layer_def tti_kind_##name_ = {                           \
        .name = #name_,                                                \
        .help = help_,                                                 \
        .options = options_,                                           \
        .size = sizeof(type_),                                         \
        .common = offsetof(type_, name),                               \
        .main = main_,                                                 \
        .build = build_,                                               \
    };                                                                 \
    tt_tensor *tt_layer_##name_##_with(tt_model *m, const type_ *opts) \
    {                                                                  \
        return tti_layer_call(m, &tti_kind_##name_, opts);             \
    }

#endif
