/*
 * read_record.c - one record of a batch: read, transformed field by field, mixed with another.
 */
#include "data/data.h"
#include "graph/graph.h"

static tti_philox random_of(const tt_data *d, int64_t epoch, int64_t record, uint64_t place)
{
    return tti_philox4((uint64_t)d->opts.seed ^ 0x7472616e73666f72ull, (uint64_t)record,
                       (uint64_t)epoch << 8 | place);
}

// Applies the transforms of field f; the last one writes to row.
static tt_status transform(const tt_data *d, tti_reader *r, int f, int64_t epoch, int64_t record,
                           void *row)
{
    const void *x = r->source[f];
    int last = -1, turn = 0;
    for (int i = 0; i < d->n_transforms; i++)
        if (d->transforms[i].field == f)
            last = i;
    for (int i = 0; i <= last; i++) {
        const tti_transform *t = &d->transforms[i];
        if (t->field != f)
            continue;
        tti_philox random = random_of(d, epoch, record, (uint64_t)t->place);
        void *y = i == last ? row : r->scratch[turn];
        TT_TRY(t->def->apply(&r->ctx, t, record, &random, &r->room, x, y));
        x = y;
        turn = !turn;
    }
    return TT_OK;
}

// One record, transformed, to at.
static tt_status read_one(const tt_data *d, tti_reader *r, int64_t epoch, int64_t record,
                          void *const *at)
{
    void *out[TT_MAX_FIELDS] = {0};
    int n = d->source.n_fields;
    for (int f = 0; f < n; f++)
        out[f] = r->source[f] != NULL ? r->source[f] : at[f];
    TT_TRY(d->source.read(&r->ctx, d->source.self, record, out));
    for (int f = 0; f < n; f++) {
        const tt_field *field = &d->source.fields[f];
        tti_flush(field->dtype, out[f], tt_shape_count(&field->shape));
        if (r->source[f] != NULL)
            TT_TRY(transform(d, r, f, epoch, record, at[f]));
        if (d->labels[f].classes > 0)
            TT_TRY(tti_data_check_labels(d, &r->ctx, record, f, at[f]));
    }
    return TT_OK;
}

#define MIX_PLACE 128 // apart from the numbers of other transforms

tt_status tti_record_read(const tt_data *d, tti_reader *r, const tti_slot *slot, int64_t epoch,
                          int64_t record, int64_t row)
{
    void *at[TT_MAX_FIELDS] = {0};
    for (int f = 0; f < d->source.n_fields; f++)
        at[f] = (char *)slot->fields[f] + (size_t)row * tti_field_bytes(&d->fields[f]);
    TT_TRY(read_one(d, r, epoch, record, at));
    for (int i = 0; i < d->n_transforms; i++) {
        const tti_transform *t = &d->transforms[i];
        if (!t->def->mixes)
            continue;
        tti_philox random = random_of(d, epoch, record, MIX_PLACE + (uint64_t)i);
        double keep;
        tti_chance c;
        int64_t other = tti_mix_partner(d, t, &random, &keep, &c);
        if (other < 0)
            continue;
        TT_TRY(read_one(d, r, epoch, other, r->other));
        tti_mix(d, t, keep, &c, at, r->other);
    }
    return TT_OK;
}
