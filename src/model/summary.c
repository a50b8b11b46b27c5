/*
 * summary.c - a model as a table or as JSON: layers, output shapes, parameters, bytes.
 *
 * Both forms are made of the same facts, gathered first; the table's columns are as wide as their
 * widest entry.
 */
#include "model/model.h"
#include <stdio.h>
#include <string.h>

#define NUMBER 32 // digits of an int64_t with commas

typedef struct totals {
    int64_t parameters, trainable;
    size_t bytes;
} totals;

static int64_t layer_parameters(const tt_model *m, const tti_layer *l)
{
    int64_t n = 0;
    for (int i = l->first_weight; i < l->first_weight + l->n_weights; i++)
        n += tt_shape_count(&m->weights[i].var->shape);
    return n;
}

static totals count(const tt_model *m)
{
    totals t = {0};
    for (int64_t i = 0; i < m->n_weights; i++) {
        const tti_weight *w = &m->weights[i];
        int64_t n = tt_shape_count(&w->var->shape);
        t.parameters += n;
        t.trainable += w->trains ? n : 0;
        t.bytes += (size_t)n * tt_dtype_bytes(w->var->dtype);
    }
    return t;
}

static const char *kind_of(const tti_layer *l)
{
    return l->def == NULL ? "input" : l->def->name;
}

// 25557032 as "25,557,032".
static const char *with_commas(int64_t n, char out[NUMBER])
{
    char digits[NUMBER];
    int length = snprintf(digits, sizeof(digits), "%lld", (long long)n), at = 0;
    for (int i = 0; i < length; i++) {
        if (i > 0 && (length - i) % 3 == 0)
            out[at++] = ',';
        out[at++] = digits[i];
    }
    out[at] = 0;
    return out;
}

// ---- text ------------------------------------------------------------------------------------

enum {
    NAME,
    KIND,
    OUTPUT,
    PARAMETERS,
    N_COLUMNS
};
typedef struct line {
    char cell[N_COLUMNS][TT_SHAPE_TEXT];
} line;

static void line_of(tt_model *m, const tti_layer *l, line *out)
{
    char shape[TT_SHAPE_TEXT], number[NUMBER];
    snprintf(out->cell[NAME], TT_SHAPE_TEXT, "%s", l->name);
    snprintf(out->cell[KIND], TT_SHAPE_TEXT, "%s", kind_of(l));
    bool is_f32 = l->out->dtype == TT_F32;
    snprintf(out->cell[OUTPUT], TT_SHAPE_TEXT, "%s%s%.100s",
             is_f32 ? "" : tt_dtype_name(l->out->dtype), is_f32 ? "" : " ",
             tt_shape_text(&l->out->shape, shape));
    if (l->share != l)
        snprintf(out->cell[PARAMETERS], TT_SHAPE_TEXT, "of %s", l->share->name);
    else
        snprintf(out->cell[PARAMETERS], TT_SHAPE_TEXT, "%s",
                 with_commas(layer_parameters(m, l), number));
}

static void put_line(tti_text *t, const line *l, const int width[N_COLUMNS])
{
    for (int i = 0; i < N_COLUMNS - 1; i++)
        tti_text_add(t, "%-*s  ", width[i], l->cell[i]);
    tti_text_add(t, "%*s\n", width[PARAMETERS], l->cell[PARAMETERS]);
}

static void put_bytes(tti_text *t, size_t bytes)
{
    static const char *const units[] = {"bytes", "KiB", "MiB", "GiB", "TiB"};
    int u = 0;
    size_t scale = 1;
    while (u + 1 < TTI_COUNT(units) && bytes / scale >= 1024) {
        scale *= 1024;
        u++;
    }
    size_t tenths = (bytes / scale) * 10 + (bytes % scale) * 10 / scale;
    if (u == 0)
        tti_text_add(t, "%zu bytes", bytes);
    else
        tti_text_add(t, "%zu.%zu %s", tenths / 10, tenths % 10, units[u]);
}

static void put_text(tti_text *t, tt_model *m)
{
    line head = {{"layer", "kind", "output", "parameters"}}, row;
    int width[N_COLUMNS] = {0};
    for (int64_t i = -1; i < m->n_layers; i++) {
        if (i >= 0)
            line_of(m, m->layers[i], &row);
        for (int k = 0; k < N_COLUMNS; k++)
            width[k] = TTI_MAX(width[k], (int)strlen(i < 0 ? head.cell[k] : row.cell[k]));
    }
    put_line(t, &head, width);
    for (int64_t i = 0; i < m->n_layers; i++) {
        line_of(m, m->layers[i], &row);
        put_line(t, &row, width);
    }
    totals all = count(m);
    char number[NUMBER];
    tti_text_add(t, "parameters %s", with_commas(all.parameters, number));
    tti_text_add(t, ", trainable %s, weights ", with_commas(all.trainable, number));
    put_bytes(t, all.bytes);
    tti_text_add(t, "\n");
}

// ---- JSON ------------------------------------------------------------------------------------

// The batch is -1.
static void json_shape(tti_text *t, const tt_shape *s)
{
    for (int i = 0; i < s->rank; i++)
        tti_text_add(t, "%s%lld", i == 0 ? "[" : ",", (long long)s->dim[i]);
    tti_text_add(t, "%s]", s->rank == 0 ? "[" : "");
}

static void json_layer(tti_text *t, tt_model *m, const tti_layer *l)
{
    tti_text_add(t, "{\"name\":");
    tti_text_json(t, l->name);
    tti_text_add(t, ",\"kind\":\"%s\",\"from\":[", kind_of(l));
    for (int i = 0; i < l->n_in; i++) {
        tti_text_add(t, "%s", i == 0 ? "" : ",");
        tti_text_json(t, tti_layer_of(m, l->in[i])->name);
    }
    tti_text_add(t, "],\"dtype\":\"%s\",\"shape\":", tt_dtype_name(l->out->dtype));
    json_shape(t, &l->out->shape);
    tti_text_add(t, ",\"parameters\":%lld", (long long)layer_parameters(m, l));
    if (l->share != l) {
        tti_text_add(t, ",\"shares\":");
        tti_text_json(t, l->share->name);
    }
    tti_text_add(t, "}");
}

static void put_json(tti_text *t, tt_model *m)
{
    tti_output out[TTI_MAX_INPUTS];
    int n_out = tti_model_outputs(m, out);
    tti_text_add(t, "{\"layers\":[");
    for (int64_t i = 0; i < m->n_layers; i++) {
        tti_text_add(t, "%s", i == 0 ? "" : ",");
        json_layer(t, m, m->layers[i]);
    }
    tti_text_add(t, "],\"outputs\":[");
    for (int i = 0; i < n_out; i++) {
        tti_text_add(t, "%s{\"name\":", i == 0 ? "" : ",");
        tti_text_json(t, out[i].name);
        tti_text_add(t, ",\"layer\":");
        tti_text_json(t, tti_layer_of(m, out[i].tensor)->name);
        tti_text_add(t, "}");
    }
    totals all = count(m);
    tti_text_add(t, "],\"parameters\":%lld,\"trainable\":%lld,\"bytes\":%zu}",
                 (long long)all.parameters, (long long)all.trainable, all.bytes);
}

char *tt_summary(tt_model *m, bool json)
{
    if (m == NULL || tti_is_stuck(m->ctx))
        return NULL;
    tti_text t = {.ctx = m->ctx};
    if (json)
        put_json(&t, m);
    else
        put_text(&t, m);
    return tti_text_take(&t);
}
