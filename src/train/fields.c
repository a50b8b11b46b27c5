/*
 * fields.c - which field of a data set goes to which input or target of a model. What does not fit
 * is refused before the first step, with the data set's part in the job, both shapes and the
 * probable cause.
 */
#include "base/ctx.h"
#include "comm/lane_tree.h"
#include "data/data.h"
#include "device/device.h"
#include "graph/graph.h"
#include "net/world.h"
#include "op/op.h"
#include "save/share.h"
#include "train/compile.h"
#include <math.h>
#include <stdio.h>
#include <string.h>

#define HINT    400
#define LOOK_NS INT64_C(1000000000)

static int field_named(const tt_field *fields, int n, const char *name)
{
    for (int i = 0; name != NULL && i < n; i++)
        if (strcmp(fields[i].name, name) == 0)
            return i;
    return -1;
}

// A feed of the model, and the field that is to go there.
typedef struct pair {
    tt_model *m;
    const tt_data *d;
    const tt_field *field;
    const tt_tensor *feed;
    const tt_loss *loss; // of a target or a weight; NULL: an input
    bool is_weight;
    tt_shape want; // of one record
} pair;

static tt_shape record_of(const tt_tensor *feed)
{
    tt_shape s = tt_tensor_shape(feed), one = {.rank = s.rank - 1};
    memcpy(one.dim, s.dim + 1, sizeof(one.dim[0]) * (size_t)one.rank);
    return one;
}

static bool same_shape(const tt_shape *a, const tt_shape *b)
{
    return a->rank == b->rank && memcmp(a->dim, b->dim, sizeof(a->dim[0]) * (size_t)a->rank) == 0;
}

// A target [] fits [1] and [1] fits []: the same numbers, whoever wrote them down.
static bool fits(const pair *p)
{
    tt_shape a = p->field->shape, b = p->want;
    if (p->loss != NULL && a.rank == b.rank + 1 && a.dim[a.rank - 1] == 1)
        a.rank--;
    else if (p->loss != NULL && b.rank == a.rank + 1 && b.dim[b.rank - 1] == 1)
        b.rank--;
    return same_shape(&a, &b);
}

static bool is_float(tt_dtype t)
{
    return t <= TT_F16;
}

static bool is_integer(tt_dtype t)
{
    return t == TT_I32 || t == TT_I64 || t == TT_U8;
}

// How labels become integers, by kind of source.
static const char *integers_of(const tt_data *d)
{
    const char *kind = tti_data_name(d);
    if (strcmp(kind, "csv") == 0)
        return "set classes: true for the target column";
    if (strcmp(kind, "npy") == 0)
        return "save y as integers: np.save(\"y.npy\", y.astype(np.int32))";
    if (strcmp(kind, "memory") == 0)
        return "give y as int32_t, with .y_dtype = TT_I32";
    return "give them as i32";
}

// The probable cause of a target that does not fit; "": not known.
static void target_hint(const pair *p, char out[HINT])
{
    const tt_shape *have = &p->field->shape, *want = &p->want;
    tt_loss_kind kind = p->loss->kind;
    const char *loss = tti_loss_name(kind);
    bool has_labels = tti_loss_has_labels(kind);
    bool is_one = tt_shape_count(have) == 1;
    out[0] = '\0';
    if (has_labels && is_float(p->field->dtype) && is_one)
        snprintf(out, HINT,
                 "; %s takes class numbers, which are integers, but the field is %s: %s; "
                 "for numbers that are not classes use the loss mse",
                 loss, tt_dtype_name(p->field->dtype), integers_of(p->d));
    else if (!has_labels && want->rank == 1 && is_one && is_integer(p->field->dtype) &&
             p->field->classes > 2)
        snprintf(out, HINT, "; the field has class numbers: use the loss cross_entropy, not %s",
                 loss);
    else if (want->rank > have->rank && (want->rank > 1 || has_labels))
        snprintf(
            out, HINT,
            "; the model keeps the axes of its input: a flatten layer (or another that removes "
            "them) is probably missing before the last layer");
    else if (!has_labels && want->rank == 1 && have->rank <= 1)
        snprintf(out, HINT, "; give the last layer %lld unit%s, one for each number of the target",
                 (long long)tt_shape_count(have), is_one ? "" : "s");
    else if (has_labels && have->rank == 1 && want->rank == 1 && is_float(p->field->dtype))
        snprintf(out, HINT, "; give the last layer %lld units, one for each class",
                 (long long)have->dim[0]);
    else if (has_labels && have->rank == want->rank + 1)
        snprintf(
            out, HINT,
            kind == TT_CROSS_ENTROPY
                ? "; cross_entropy takes one class number per position, or probabilities as floats"
                : "; it takes one class number per position");
}

// That of an input.
static void input_hint(const pair *p, char out[HINT])
{
    const tt_shape *have = &p->field->shape, *want = &p->want;
    bool is_csv = strcmp(tti_data_name(p->d), "csv") == 0;
    bool trains = p->d->role == NULL || strcmp(p->d->role, "training") == 0;
    out[0] = '\0';
    if (have->rank == 3 && want->rank == 3 && have->dim[0] == want->dim[2] &&
        have->dim[1] == want->dim[0])
        snprintf(out, HINT,
                 "; the channels are first: add the transform channels_last before all others");
    else if (have->rank + 1 == want->rank && want->dim[want->rank - 1] == 1 &&
             tt_shape_count(have) == tt_shape_count(want))
        snprintf(out, HINT, "; an axis of 1 channel is missing: save the array with that shape");
    else if (!trains && have->rank == want->rank && is_csv)
        snprintf(out, HINT,
                 "; all parts need the same columns as the training data: choose them with x, y or "
                 "skip");
    else if (!trains)
        snprintf(out, HINT, "; all parts need records of the shape that the training data has");
}

static tt_status refuse(const pair *p, tt_status st, const char *have, const char *want)
{
    char hint[HINT];
    tti_text title = {.ctx = p->m->ctx};
    tti_data_title(p->d, (int)(p->field - p->d->fields), &title);
    if (p->is_weight)
        snprintf(hint, HINT, "; a sample weight is one f32 number per record");
    else if (p->loss != NULL)
        target_hint(p, hint);
    else
        input_hint(p, hint);
    st = TT_FAIL(p->m->ctx, st, "field '%s' of %s %s, but the model's %s '%s' %s%s", p->field->name,
                 title.s != NULL ? title.s : "the data", have,
                 p->is_weight      ? "sample weight"
                 : p->loss != NULL ? "target"
                                   : "input",
                 tt_tensor_name(p->feed), want, hint);
    tti_text_free(&title);
    return st;
}

static tt_status check_field(const pair *p)
{
    char a[TT_SHAPE_TEXT], b[TT_SHAPE_TEXT], have[TT_SHAPE_TEXT + 32], want[TT_SHAPE_TEXT + 32];
    if (!fits(p)) {
        snprintf(have, sizeof(have), "has shape %s per record", tt_shape_text(&p->field->shape, a));
        snprintf(want, sizeof(want), "has shape %s", tt_shape_text(&p->want, b));
        return refuse(p, TT_ESHAPE, have, want);
    }
    if (p->field->dtype == tt_tensor_dtype(p->feed))
        return TT_OK;
    snprintf(have, sizeof(have), "is %s", tt_dtype_name(p->field->dtype));
    snprintf(want, sizeof(want), "is %s", tt_dtype_name(tt_tensor_dtype(p->feed)));
    return refuse(p, TT_EDTYPE, have, want);
}

// ---- labels and ids --------------------------------------------------------------------------

// The name of the output that a loss is taken of.
static const char *output_name(tt_model *m, int loss)
{
    tti_output outs[TTI_MAX_INPUTS];
    const char *name = m->step->losses[loss].output;
    int n = tti_model_outputs(m, outs);
    return name != NULL ? name : loss < n ? outs[loss].name : "";
}

/*
 * Labels and ids are checked as records are read. Where the source knows that some are too large,
 * they are looked for now, for a moment, and not found in the middle of an epoch.
 */
static tt_status watch(tt_data *d, int field, const tti_labels *l)
{
    const tti_labels *was = &d->labels[field];
    if (was->classes == l->classes && was->has_ignore == l->has_ignore &&
        was->ignore == l->ignore && was->is_id == l->is_id && strcmp(was->layer, l->layer) == 0)
        return TT_OK; // the same model: its workers may be reading
    tt_data_stop(d);
    d->labels[field] = *l;
    if (d->fields[field].classes <= l->classes)
        return TT_OK;
    tti_single one;
    int64_t begin = tti_now_ns();
    tt_status st = tti_single_open(d, &one);
    for (int64_t i = 0; st == TT_OK && i < d->count && tti_now_ns() - begin < LOOK_NS; i++)
        st = tti_single_read(&one, tti_data_record(d, i));
    tti_single_close(&one);
    return st;
}

static tt_status watch_labels(tt_model *m, const tti_scores *sc, int loss, tt_data *d, int field)
{
    const tt_loss *l = &m->step->losses[loss];
    tt_shape shape = tt_tensor_shape(sc->terms[loss].logits);
    if (!tti_loss_has_labels(l->kind) || !is_integer(d->fields[field].dtype))
        return TT_OK;
    tti_labels w = {
        .classes = shape.dim[shape.rank - 1], .has_ignore = l->has_ignore, .ignore = l->ignore};
    snprintf(w.layer, sizeof(w.layer), "%s", output_name(m, loss));
    return watch(d, field, &w);
}

// Ids of an input that an embedding looks up.
static tt_status watch_ids(const tti_scores *sc, int input, tt_data *d, int field)
{
    tti_labels w = {.is_id = true};
    for (int64_t i = 0; i < sc->graph->n_nodes; i++) {
        const tt_node *n = sc->graph->nodes[i];
        if (n->op != &tti_op_embedding || n->in[1] != sc->feeds[input])
            continue;
        int64_t rows = n->in[0]->shape.dim[0];
        if (w.classes != 0 && w.classes <= rows)
            continue;
        w.classes = rows;
        snprintf(w.layer, sizeof(w.layer), "%.*s", (int)strcspn(n->name, "/"), n->name);
    }
    return w.classes > 0 && is_integer(d->fields[field].dtype) ? watch(d, field, &w) : TT_OK;
}

static tt_status taken_twice(tt_model *m, const tt_field *fields, int n, int at, int input)
{
    tti_text t = {.ctx = m->ctx};
    for (int i = 0; i < n; i++)
        tti_text_add(&t, "%s'%s'", i > 0 ? ", " : "", fields[i].name);
    tt_status st =
        TT_FAIL(m->ctx, TT_EINVAL,
                "the model's input '%s' is not a field of the data, and the field at its position, "
                "'%s', has another use; name the inputs after the fields: %s",
                m->inputs[input]->name, fields[at].name, t.s != NULL ? t.s : "");
    tti_text_free(&t);
    return st;
}

// No field is an input and something else too: a label would be fed as what it is to be told from.
static tt_status check_uses(tt_model *m, const tti_scores *sc, const tt_field *fields, int n,
                            const int field[TTI_MAX_FEEDS])
{
    for (int i = 0; m->n_inputs > 1 && i < m->n_inputs; i++) {
        if (field_named(fields, n, m->inputs[i]->name) >= 0)
            continue;
        for (int k = 0; k < sc->n_feeds; k++)
            if (k != i && field[k] == field[i])
                return taken_twice(m, fields, n, field[i], i);
    }
    return TT_OK;
}

static tt_status no_field(tt_model *m, const tt_data *d, const char *name, int n, int n_feeds)
{
    tti_text title = {.ctx = m->ctx};
    tti_data_title(d, 0, &title);
    const char *s = title.s != NULL ? title.s : "the data";
    tt_status st =
        name != NULL
            ? TT_FAIL(m->ctx, TT_EINVAL, "%s has no field '%s', which a loss needs", s, name)
            : TT_FAIL(m->ctx, TT_EINVAL,
                      "%s has %d field%s, but the model takes %d (inputs, then targets)%s", s, n,
                      n == 1 ? "" : "s", n_feeds,
                      n < n_feeds ? "; is the target (y) missing?" : "");
    tti_text_free(&title);
    return st;
}

tt_status tti_match_fields(tt_model *m, const tti_scores *sc, tt_data *d, int field[TTI_MAX_FEEDS])
{
    tt_field fields[TT_MAX_FIELDS];
    int n = tt_data_fields(d, fields);
    memset(d->labels, 0, sizeof(d->labels));
    for (int i = 0; i < sc->n_feeds; i++) {
        bool is_weight = i >= m->n_inputs + m->step->n_losses;
        const tt_loss *loss = is_weight          ? &m->step->losses[sc->weighs[i]]
                              : i >= m->n_inputs ? &m->step->losses[i - m->n_inputs]
                                                 : NULL;
        const char *name = is_weight      ? loss->sample_weight
                           : loss != NULL ? loss->target
                                          : m->inputs[i]->name;
        int at = field_named(fields, n, name);
        if (at < 0 && loss != NULL && name != NULL)
            return no_field(m, d, name, n, sc->n_feeds);
        if (at < 0 && i >= n) // losses may name one target, so only the place counts
            return no_field(m, d, NULL, n, sc->n_feeds);
        field[i] = at >= 0 ? at : i;
        pair p = {.m = m,
                  .d = d,
                  .field = &d->fields[field[i]],
                  .feed = sc->feeds[i],
                  .loss = loss,
                  .is_weight = is_weight,
                  .want = record_of(sc->feeds[i])};
        TT_TRY(check_field(&p));
    }
    TT_TRY(check_uses(m, sc, fields, n, field));
    for (int i = 0; i < m->n_inputs + m->step->n_losses; i++)
        TT_TRY(i < m->n_inputs ? watch_ids(sc, i, d, field[i])
                               : watch_labels(m, sc, i - m->n_inputs, d, field[i]));
    return TT_OK;
}

// ---- values that are not finite --------------------------------------------------------------

// Rows of a batch that were read here, the others being other processes'.
static void own_rows(const tt_data *d, int64_t rows, int64_t *first, int64_t *end)
{
    *first = 0;
    *end = rows;
    if (d->own_lanes > 0) {
        *first = tti_lane_row(d->own_first, rows, d->own_lanes);
        *end = tti_lane_row(d->own_last, rows, d->own_lanes);
    }
}

bool tti_find_bad_record(const tti_scores *sc, const tt_data *d, const int *field,
                         const tt_batch_data *b, tti_text *out)
{
    int64_t first, end, record;
    own_rows(d, b->rows, &first, &end);
    for (int i = 0; i < sc->n_feeds; i++) {
        const tt_field *f = &d->fields[field[i]];
        const char *x = b->fields[field[i]];
        int64_t size = tt_shape_count(&f->shape);
        size_t bytes = tti_field_bytes(f);
        for (int64_t row = first; row < end; row++) {
            int64_t at = tti_first_not_finite(f->dtype, x + (size_t)row * bytes, size);
            if (at < 0)
                continue;
            tti_order_at(d, b->epoch, d->batch, b->first + row, 1, &record);
            tti_data_where(d, record, field[i], at, out);
            double v = tti_get_number(f->dtype, x + (size_t)row * bytes, at);
            tti_text_add(out, " is %s", isnan(v) ? "NaN" : v > 0 ? "infinity" : "-infinity");
            return true;
        }
    }
    return false;
}

char *tti_shared_bad_record(tt_model *m, const tti_scores *sc, const tt_data *d, const int *field,
                            const tt_batch_data *b)
{
    enum {
        ROOM = 1024
    };
    tt_ctx *ctx = m->ctx;
    int n = tti_ranks(ctx);
    tti_text mine = {.ctx = ctx};
    char *all = tti_calloc(ctx, (size_t)n + 1, ROOM), *room = all + (size_t)n * ROOM;
    if (all == NULL)
        return NULL;
    if (tti_find_bad_record(sc, d, field, b, &mine) && mine.s != NULL)
        snprintf(room, ROOM, "%s", mine.s);
    tti_text_free(&mine);
    if (n > 1 &&
        tti_world_exchange(ctx->world, "a record that is not finite", room, ROOM, all, 0) != TT_OK)
        n = 0;
    for (int i = 0; n > 1 && i < n && room[0] == '\0'; i++)
        memcpy(room, all + (size_t)i * ROOM, ROOM);
    char *text = room[0] != '\0' ? tti_strdup(ctx, room) : NULL;
    tti_free(ctx, all);
    return text;
}
