/*
 * ready_more.c - more whole models: lstm_lm, named as PyTorch's example of a word language model;
 * tabular, named as fastai's; autoencoder, "encoder.<i>" and "decoder.<i>" as in nn.Sequential.
 */
#include "base/ctx.h"
#include "model/attend.h"
#include <math.h>
#include <stdio.h>
#include <tutti/models.h>
#include <tutti/recurrent.h>

// ---- lstm_lm ---------------------------------------------------------------------------------

#define OPTS tt_layer_lstm_lm_opts
static const tt_option lstm_lm_options[] = {
    {"layers", TT_OPT_INT32, "2", "number of LSTM layers", offsetof(OPTS, layers), 1, 1000, NULL},
    {"width", TT_OPT_INT32, "128", "size of the embedding vectors", offsetof(OPTS, width), 1,
     TTI_MAX_WIDTH, NULL},
    {"units", TT_OPT_INT32, "128", "number of outputs of a step", offsetof(OPTS, units), 1,
     TTI_MAX_WIDTH, NULL},
    {"vocab", TT_OPT_INT, NULL, "vocabulary size", offsetof(OPTS, vocab), 1, TTI_MAX_WIDTH, NULL},
    TTI_RATE_ROW(OPTS, dropout, "dropout rate after the embedding and after each layer"),
    {"tied", TT_OPT_BOOL, "false",
     "share the output weights with the embedding; width must equal units", offsetof(OPTS, tied), 0,
     0, NULL},
    TT_OPTION_END,
};

static tt_tensor *lstm_lm_expand(tt_model *m, const void *opts, const char *name)
{
    (void)name;
    const OPTS *o = opts;
    tt_init init = {TT_INIT_UNIFORM, -0.1, 0.1};
    if (o->tied && o->width != o->units) {
        (void)TT_FAIL(m->ctx, TT_EINVAL,
                      "lstm_lm: width is %d and units is %d; with tied they must be equal",
                      o->width, o->units);
        return NULL;
    }
    tt_tensor *embed = tt_layer_embedding(m, .vocab = o->vocab, .width = o->width, .init = init,
                                          .name = "encoder", .from = {o->from[0]});
    if (o->dropout != 0)
        tt_layer_dropout(m, .rate = o->dropout, .name = "drop.0");
    tt_layer_lstm(m, .units = o->units, .layers = o->layers, .dropout = o->dropout, .name = "rnn");
    if (o->dropout != 0)
        tt_layer_dropout(m, .rate = o->dropout, .name = "drop.1");
    if (!o->tied)
        return tt_layer_dense(m, .units = (int)o->vocab, .init = init, .name = "decoder");
    tt_layer_embedding_opts tied = {
        .vocab = o->vocab, .width = o->width, .name = "tied", .share = embed};
    if (embed == NULL || tti_layer_add(m, &tti_kind_tied_dense, &tied) == NULL)
        return NULL;
    return tti_layer_add(m, &tti_kind_add_bias, &(tt_plain_opts){.name = "decoder"});
}

const tti_layer_def tti_kind_lstm_lm = {
    .name = "lstm_lm",
    .help = "language model of LSTM layers: tokens [time] to logits [time, vocab]",
    .options = lstm_lm_options,
    .size = sizeof(OPTS),
    .common = offsetof(OPTS, name),
    .expand = lstm_lm_expand,
};

tt_tensor *tt_layer_lstm_lm_with(tt_model *m, const OPTS *opts)
{
    return tti_layer_call(m, &tti_kind_lstm_lm, opts);
}

// ---- tabular ---------------------------------------------------------------------------------

typedef struct column_opts {
    size_t opts_size;
    int column, width; // width 0: the columns from this one on, as they are
    int64_t vocab;
    TT_LAYER_OPTIONS;
} column_opts;

static const tt_option column_options[] = {
    {"column", TT_OPT_INT32, "0", "number of the column", offsetof(column_opts, column), 0,
     TTI_MAX_WIDTH, NULL},
    {"width", TT_OPT_INT32, "0", "size of the embedding vectors; 0: this column and all after it",
     offsetof(column_opts, width), 0, TTI_MAX_WIDTH, NULL},
    {"vocab", TT_OPT_INT, "0", "number of categories", offsetof(column_opts, vocab), 0,
     TTI_MAX_WIDTH, NULL},
    TT_OPTION_END,
};

static tt_tensor *column_build(tt_build *b, const void *opts, tt_tensor *const *in, int n_in)
{
    (void)n_in;
    const column_opts *o = opts;
    tt_graph *g = b->graph;
    int64_t all = in[0]->shape.dim[1];
    if (o->width == 0)
        return tt_slice(g, in[0], 1, o->column, all);
    tt_tensor *ids = tt_squeeze(g, tt_slice(g, in[0], 1, o->column, o->column + 1), 1);
    tt_init init = {TT_INIT_TRUNCATED_NORMAL, 0, 0.01};
    tt_tensor *w = tti_layer_weight(b, "weight", TT_SHAPE(o->vocab, o->width), init);
    tt_tensor *y = w == NULL ? NULL : tt_embedding(g, w, tt_cast(g, ids, TT_I32));
    return y == NULL ? NULL : tti_compute(b, y);
}

const tti_layer_def tti_kind_column_embedding = {
    .name = "column_embedding",
    .help = "embedding of one column of a table, or the columns from one on",
    .options = column_options,
    .size = sizeof(column_opts),
    .common = offsetof(column_opts, name),
    .build = column_build,
};

static const tt_option tabular_options[] = {
    {"categories", TT_OPT_INTS, "[]",
     "how many values each of the first columns has: whole numbers from 0; the other columns are "
     "numbers",
     offsetof(tt_layer_tabular_opts, categories), 1, TTI_MAX_WIDTH, NULL},
    {"units", TT_OPT_INTS, "[200, 100]", "number of outputs of each hidden layer",
     offsetof(tt_layer_tabular_opts, units), 1, TTI_MAX_WIDTH, NULL},
    {"classes", TT_OPT_INT32, "1", "number of outputs", offsetof(tt_layer_tabular_opts, classes), 1,
     TTI_MAX_WIDTH, NULL},
    TTI_RATE_ROW(tt_layer_tabular_opts, dropout, "dropout rate after each hidden layer"),
    {"no_batch_norm", TT_OPT_BOOL, "false",
     "no batch norm of the numbers and after the hidden layers",
     offsetof(tt_layer_tabular_opts, no_batch_norm), 0, 0, NULL},
    TTI_OVER_ROW(tt_layer_tabular_opts),
    TT_OPTION_END,
};

// Embeddings of the first columns side by side with the others.
static tt_tensor *columns_add(tt_model *m, const tt_layer_tabular_opts *o, tt_tensor *x)
{
    int n = o->categories.n, parts = 0;
    int64_t all = x->shape.dim[1];
    tt_tensor *part[TTI_COUNT(o->categories.v) + 1] = {NULL};
    char name[32];
    for (; parts < n; parts++) {
        int64_t count = o->categories.v[parts];
        // fastai's rule
        int width = (int)fmin(600, floor(1.6 * pow((double)count, 0.56) + 0.5));
        snprintf(name, sizeof(name), "embeds.%d", parts);
        column_opts c = {.column = parts,
                         .width = width < 1 ? 1 : width,
                         .vocab = count,
                         .name = name,
                         .from = {x}};
        part[parts] = tti_layer_add(m, &tti_kind_column_embedding, &c);
        if (part[parts] == NULL)
            return NULL;
    }
    if (n < all) {
        column_opts c = {.column = n, .name = "numbers", .from = {x}};
        part[parts] = n == 0 ? x : tti_layer_add(m, &tti_kind_column_embedding, &c);
        if (part[parts] != NULL && !o->no_batch_norm)
            part[parts] =
                tt_layer_batch_norm(m, .over = o->over, .name = "bn_cont", .from = {part[parts]});
        if (part[parts++] == NULL)
            return NULL;
    }
    tt_tensor *y = part[0];
    for (int at = 1; at < parts && y != NULL;) { // eight inputs at most in each
        tt_layer_concat_opts join = {.opts_size = sizeof(join), .axis = -1, .name = name};
        snprintf(name, sizeof(name), "columns.%d", at);
        join.from[0] = y;
        for (int i = 1; i < TT_MAX_FROM && at < parts; i++)
            join.from[i] = part[at++];
        y = tt_layer_concat_with(m, &join);
    }
    return y;
}

static tt_tensor *tabular_expand(tt_model *m, const void *opts, const char *name)
{
    (void)name;
    const tt_layer_tabular_opts *o = opts;
    char text[TT_SHAPE_TEXT], path[48];
    tt_tensor *x = o->from[0] != NULL ? o->from[0]
                   : m->n_layers > 0  ? m->layers[m->n_layers - 1]->out
                                      : NULL;
    if (x == NULL || x->shape.rank != 2 || x->dtype > TT_F16 || x->shape.dim[1] < o->categories.n) {
        (void)TT_FAIL(m->ctx, TT_ESHAPE,
                      "tabular: x is %s %s; it must be numbers [batch, columns] with at least %d "
                      "columns, one for each of categories",
                      x == NULL ? "missing" : tt_dtype_name(x->dtype),
                      x == NULL ? "" : tt_shape_text(&x->shape, text), o->categories.n);
        return NULL;
    }
    if (o->categories.n > TTI_COUNT(o->categories.v) || o->units.n > TTI_COUNT(o->units.v)) {
        (void)TT_FAIL(m->ctx, TT_EINVAL,
                      "tabular: %d categories and %d units; at most %d of each are allowed",
                      o->categories.n, o->units.n, TTI_COUNT(o->units.v));
        return NULL;
    }
    x = columns_add(m, o, x);
    for (int i = 0; i < o->units.n && x != NULL; i++) {
        snprintf(path, sizeof(path), "layers.%d.0", i);
        x = tt_layer_dense(m, .units = (int)o->units.v[i], .act = TT_RELU,
                           .no_bias = !o->no_batch_norm, .init = {TT_INIT_HE_UNIFORM, 0, 0},
                           .name = path, .from = {x});
        snprintf(path, sizeof(path), "layers.%d.2", i);
        if (!o->no_batch_norm && x != NULL)
            x = tt_layer_batch_norm(m, .over = o->over, .name = path);
        snprintf(path, sizeof(path), "layers.%d.3", i);
        if (o->dropout != 0 && x != NULL)
            x = tt_layer_dropout(m, .rate = o->dropout, .name = path);
    }
    snprintf(path, sizeof(path), "layers.%d.0", o->units.n);
    return x == NULL ? NULL : tt_layer_dense(m, .units = o->classes, .name = path, .from = {x});
}

const tti_layer_def tti_kind_tabular = {
    .name = "tabular",
    .help = "network for tables [columns], with embeddings of the columns of categories",
    .options = tabular_options,
    .size = sizeof(tt_layer_tabular_opts),
    .common = offsetof(tt_layer_tabular_opts, name),
    .expand = tabular_expand,
};

tt_tensor *tt_layer_tabular_with(tt_model *m, const tt_layer_tabular_opts *opts)
{
    return tti_layer_call(m, &tti_kind_tabular, opts);
}

// ---- autoencoder -----------------------------------------------------------------------------

static const tt_option autoencoder_options[] = {
    {"units", TT_OPT_INTS, NULL,
     "number of outputs of each layer of the encoder; the last one is the code",
     offsetof(tt_layer_autoencoder_opts, units), 1, TTI_MAX_WIDTH, NULL},
    TTI_ACT_ROW(tt_layer_autoencoder_opts, "relu"),
    {"last", TT_OPT_ENUM, "linear", "activation of the output",
     offsetof(tt_layer_autoencoder_opts, last), 0, 0, tti_act_words},
    TT_OPTION_END,
};

static tt_tensor *autoencoder_expand(tt_model *m, const void *opts, const char *name)
{
    (void)name;
    const tt_layer_autoencoder_opts *o = opts;
    tt_tensor *x = o->from[0] != NULL ? o->from[0]
                   : m->n_layers > 0  ? m->layers[m->n_layers - 1]->out
                                      : NULL;
    char path[48], text[TT_SHAPE_TEXT];
    int n = o->units.n;
    if (x == NULL || x->shape.rank < 2 || x->dtype > TT_F16) {
        (void)TT_FAIL(m->ctx, TT_ESHAPE, "autoencoder: x is %s %s; it must be numbers [batch, ...]",
                      x == NULL ? "missing" : tt_dtype_name(x->dtype),
                      x == NULL ? "" : tt_shape_text(&x->shape, text));
        return NULL;
    }
    tt_shape record = {.rank = x->shape.rank - 1};
    int64_t width = 1;
    for (int i = 0; i < record.rank; i++)
        width *= record.dim[i] = x->shape.dim[i + 1];
    if (record.rank > 1)
        x = tt_layer_flatten(m, .name = "flat", .from = {x});
    for (int i = 0; i < 2 * n && x != NULL; i++) {
        bool code = i == n - 1, last = i == 2 * n - 1;
        int64_t units = i < n ? o->units.v[i] : last ? width : o->units.v[2 * n - 2 - i];
        snprintf(path, sizeof(path), "%s.%d", i < n ? "encoder" : "decoder", i % n * 2);
        x = tt_layer_dense(m, .units = (int)units,
                           .act = last   ? o->last
                                  : code ? TT_LINEAR
                                         : o->act,
                           .name = path, .from = {x});
    }
    if (x == NULL || record.rank == 1)
        return x;
    return tt_layer_reshape(m, .shape = record, .name = "shaped");
}

const tti_layer_def tti_kind_autoencoder = {
    .name = "autoencoder",
    .help = "autoencoder of dense layers: to a code, and back to the shape of the input",
    .options = autoencoder_options,
    .size = sizeof(tt_layer_autoencoder_opts),
    .common = offsetof(tt_layer_autoencoder_opts, name),
    .main = "units",
    .expand = autoencoder_expand,
};

tt_tensor *tt_layer_autoencoder_with(tt_model *m, const tt_layer_autoencoder_opts *opts)
{
    return tti_layer_call(m, &tti_kind_autoencoder, opts);
}
