/*
 * split.c - takes records out of a data set as a second one.
 *
 * Which ones are taken is worked out from the values of one column, or from none, and the seed:
 * records, or groups of them, have an order (a permutation, or that of the file), and the first of
 * it are taken. Groups, and the values of a class, are numbered as they first appear. Both data
 * sets keep lists of indices into the source, which they share.
 */
#include "data/csv.h"
#include "data/data.h"
#include <math.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#define SPLIT_STREAM 0x73706c69ull // sets these numbers apart from others of the same seed
#define MOST_KEYED   INT32_MAX     // records that are told apart by a column

static const char *const take_words[] = {"random", "first", "last", NULL};
// clang-format off
const tt_option tti_split_options[] = {
    {"fraction", TT_OPT_FLOAT, "0", "part of the training data to take: 0.1",
     offsetof(tt_data_split_opts, fraction), 0, 1e18, NULL},
    {"rows", TT_OPT_INT, "0", "number of records to take, instead of fraction",
     offsetof(tt_data_split_opts, rows), 0, 1e18, NULL},
    {"stratify", TT_OPT_TEXT, "",
     "field or CSV column with classes: each keeps its proportion in both parts",
     offsetof(tt_data_split_opts, stratify), 0, 0, NULL},
    {"group", TT_OPT_TEXT, "",
     "field or CSV column: records with the same value stay in the same part",
     offsetof(tt_data_split_opts, group), 0, 0, NULL},
    {"take", TT_OPT_ENUM, "random",
     "which records to take; last: the newest, if they are in order of time",
     offsetof(tt_data_split_opts, take), 0, 0, take_words},
    {"seed", TT_OPT_INT, "0", "random seed of the choice; 0: that of the job",
     offsetof(tt_data_split_opts, seed), 0, 0, NULL},
    TT_OPTION_END,
};
// clang-format on

typedef struct split {
    tt_data *d;
    tt_data_split_opts o;
    int64_t n, want;
    const char *by; // the field or column; NULL: none
    int64_t n_kinds;
    int32_t *kind;            // by record
    int64_t *size;            // by kind
    int64_t *first, *in_kind; // records of a kind: in_kind[first[k]..first[k + 1])
    bool *taken;              // by record
    int64_t *subset[2];       // what is left, what is taken
    int64_t n_taken;
    tt_data *made;
} split;

// Place i of n in the order in which they are taken.
static int64_t pick(const split *s, int64_t i, int64_t n, uint64_t which)
{
    if (s->o.take == TT_SPLIT_FIRST)
        return i;
    if (s->o.take == TT_SPLIT_LAST)
        return n - 1 - i;
    tti_philox p = tti_philox4((uint64_t)s->o.seed, which, SPLIT_STREAM);
    return (int64_t)tti_permute((uint64_t)i, (uint64_t)n, (uint64_t)p.v[0] << 32 | p.v[1]);
}

// ---- options ---------------------------------------------------------------------------------

static tt_status read_options(split *s, const tt_data_split_opts *opts)
{
    tt_data *d = s->d;
    tt_ctx *ctx = d->ctx;
    tt_data_split_opts *o = &s->o;
    TT_TRY(TTI_OPTS_COPY(ctx, "split", opts, o));
    bool stratified = o->stratify != NULL && o->stratify[0] != '\0';
    bool grouped = o->group != NULL && o->group[0] != '\0';
    s->by = stratified ? o->stratify : grouped ? o->group : NULL;
    s->n = d->count;
    o->seed = o->seed != 0 ? o->seed : d->opts.seed;
    if (d->is_started || d->n_transforms > 0)
        return TT_FAIL(ctx, TT_EINVAL, "split: the data must be split before %s",
                       d->is_started ? "tt_data_start()" : "transforms are added");
    if (o->take < TT_SPLIT_RANDOM || o->take > TT_SPLIT_LAST)
        return TT_FAIL(ctx, TT_EINVAL, "split: there is no way %d to take records", (int)o->take);
    if (stratified && grouped)
        return TT_FAIL(ctx, TT_EINVAL, "split: give either stratify or group, not both");
    if ((o->fraction != 0) == (o->rows != 0))
        return TT_FAIL(ctx, TT_EINVAL, "split: give %s",
                       o->rows != 0 ? "either fraction or rows, not both"
                                    : "fraction, such as 0.1, or a number of rows");
    if (!(o->fraction >= 0 && o->fraction < 1))
        return TT_FAIL(ctx, TT_EINVAL,
                       "split: fraction is %g; it must be above 0 and below 1 (for a number of "
                       "records: rows)",
                       o->fraction);
    if (o->rows < 0)
        return TT_FAIL(ctx, TT_EINVAL, "split: rows is %lld; it must be at least 1",
                       (long long)o->rows);
    double part = floor(o->fraction * (double)d->source.count + 0.5);
    s->want = o->rows > 0 ? o->rows : TTI_MAX((int64_t)part, 1);
    if (s->want >= s->n)
        return TT_FAIL(ctx, TT_EINVAL,
                       "split: %lld of %lld records are to be taken, and none would be left",
                       (long long)s->want, (long long)s->n);
    if (s->by != NULL && s->n > MOST_KEYED)
        return TT_FAIL(ctx, TT_EUNSUPPORTED, "split: by '%s' at most %d records can be split",
                       s->by, MOST_KEYED);
    return TT_OK;
}

// ---- values of a column ----------------------------------------------------------------------

static tt_status hash_field(const split *s, int field, uint64_t *keys)
{
    tt_data *d = s->d;
    tti_single one;
    tt_status st = tti_single_open(d, &one);
    for (int64_t i = 0; st == TT_OK && i < s->n; i++) {
        st = tti_single_read(&one, tti_data_record(d, i));
        if (st == TT_OK)
            keys[i] = tti_hash64(one.slot.fields[field], tti_field_bytes(&d->fields[field]), 0);
    }
    tti_single_close(&one);
    return st;
}

static tt_status read_keys(const split *s, uint64_t *keys)
{
    const tt_data *d = s->d;
    int field = -1;
    for (int f = 0; f < d->source.n_fields; f++)
        field = strcmp(d->fields[f].name, s->by) == 0 ? f : field;
    if (tti_csv_has_column(d, s->by) || (field < 0 && tti_csv_about_of(d, &(tti_csv_about){0})))
        return tti_csv_hash_column(d, s->by, d->subset, s->n, keys);
    if (field >= 0)
        return hash_field(s, field, keys);
    tti_text names = {.ctx = d->ctx};
    for (int f = 0; f < d->source.n_fields; f++)
        tti_text_add(&names, "%s'%s'", f > 0 ? ", " : "", d->fields[f].name);
    tt_status st = TT_FAIL(d->ctx, TT_EINVAL, "split: %s has no field '%.64s'; its fields are %s",
                           tti_data_name(d), s->by, names.s != NULL ? names.s : "");
    tti_text_free(&names);
    return st;
}

// Numbers the values in order of appearance: s->kind, s->size, s->n_kinds.
static tt_status number_keys(split *s, const uint64_t *keys)
{
    tt_ctx *ctx = s->d->ctx;
    int64_t slots = 64;
    while (slots < 2 * s->n)
        slots *= 2;
    int64_t *table = tti_calloc(ctx, (size_t)slots, sizeof(*table)); // record + 1; 0: free
    if (table == NULL)
        return TT_ENOMEM;
    for (int64_t i = 0; i < s->n; i++) {
        uint64_t at = keys[i];
        while (table[at & (uint64_t)(slots - 1)] != 0 &&
               keys[table[at & (uint64_t)(slots - 1)] - 1] != keys[i])
            at++;
        int64_t *slot = &table[at & (uint64_t)(slots - 1)];
        if (*slot == 0) {
            *slot = i + 1;
            s->kind[i] = (int32_t)s->n_kinds++;
        } else {
            s->kind[i] = s->kind[*slot - 1];
        }
        s->size[s->kind[i]]++;
    }
    tti_free(ctx, table);
    return TT_OK;
}

static tt_status find_kinds(split *s)
{
    tt_ctx *ctx = s->d->ctx;
    size_t n = (size_t)s->n;
    uint64_t *keys = tti_alloc(ctx, n * sizeof(*keys));
    s->kind = tti_alloc(ctx, n * sizeof(*s->kind));
    s->size = tti_calloc(ctx, n + 1, sizeof(*s->size));
    s->first = tti_calloc(ctx, n + 2, sizeof(*s->first));
    s->in_kind = tti_alloc(ctx, n * sizeof(*s->in_kind));
    tt_status st =
        keys == NULL || s->kind == NULL || s->size == NULL || s->first == NULL || s->in_kind == NULL
            ? TT_ENOMEM
            : read_keys(s, keys);
    if (st == TT_OK)
        st = number_keys(s, keys);
    tti_free(ctx, keys);
    TT_TRY(st);
    for (int64_t i = 0; i < s->n; i++)
        s->first[s->kind[i] + 2]++;
    for (int64_t k = 0; k < s->n_kinds; k++)
        s->first[k + 2] += s->first[k + 1];
    for (int64_t i = 0; i < s->n; i++) // first[k + 1] goes up to where kind k ends
        s->in_kind[s->first[s->kind[i] + 1]++] = i;
    return TT_OK;
}

// ---- choosing --------------------------------------------------------------------------------

static void take(split *s, int64_t record)
{
    s->taken[record] = true;
    s->n_taken++;
}

// What a class gets, and what it would get beyond whole records.
typedef struct quota {
    int64_t kind, n, rest;
} quota;

static int by_rest(const void *a, const void *b)
{
    const quota *x = a, *y = b;
    if (x->rest != y->rest)
        return x->rest < y->rest ? 1 : -1;
    return x->kind < y->kind ? -1 : 1;
}

// A column of measurements, by mistake: its values have hardly any records each.
static tt_status check_classes(const split *s)
{
    if (s->n_kinds > s->n / 2)
        return TT_FAIL(s->d->ctx, TT_EINVAL,
                       "split: '%s' has %lld different values in %lld records; stratify needs "
                       "classes, each with several records",
                       s->by, (long long)s->n_kinds, (long long)s->n);
    return TT_OK;
}

/*
 * Each class gets its part of want, rounded down; what is missing then goes to those with the
 * largest rest. One record of each class stays.
 */
static tt_status take_stratified(split *s)
{
    TT_TRY(check_classes(s));
    tt_ctx *ctx = s->d->ctx;
    quota *q = tti_calloc(ctx, (size_t)s->n_kinds + 1, sizeof(*q));
    int64_t left = s->want, before = -1;
    if (q == NULL)
        return TT_ENOMEM;
    for (int64_t k = 0; k < s->n_kinds; k++) {
        int64_t part = s->want * s->size[k];
        q[k] = (quota){k, TTI_MIN(part / s->n, s->size[k] - 1), part % s->n};
        left -= q[k].n;
    }
    qsort(q, (size_t)s->n_kinds, sizeof(*q), by_rest);
    while (left > 0 && left != before) {
        before = left;
        for (int64_t k = 0; k < s->n_kinds && left > 0; k++) {
            bool has_room = q[k].n < s->size[q[k].kind] - 1;
            q[k].n += has_room;
            left -= has_room;
        }
    }
    for (int64_t k = 0; k < s->n_kinds; k++)
        for (int64_t i = 0, kind = q[k].kind; i < q[k].n; i++)
            take(s, s->in_kind[s->first[kind] + pick(s, i, s->size[kind], (uint64_t)kind + 1)]);
    tti_free(ctx, q);
    return TT_OK;
}

static void take_group(split *s, int64_t k)
{
    for (int64_t i = s->first[k]; i < s->first[k + 1]; i++)
        take(s, s->in_kind[i]);
}

// Whole groups, each that brings the number of records nearer to want; at least one group.
static tt_status take_groups(split *s)
{
    int64_t n_groups = 0, least = 0;
    if (s->n_kinds < 2)
        return TT_FAIL(
            s->d->ctx, TT_EINVAL,
            "split: '%s' has the same value in all %lld records; there is only one group", s->by,
            (long long)s->n);
    for (int64_t i = 0; i < s->n_kinds && s->n_taken < s->want; i++) {
        int64_t k = pick(s, i, s->n_kinds, 0), missing = s->want - s->n_taken;
        if (s->size[k] - missing > missing || n_groups + 1 == s->n_kinds)
            continue;
        take_group(s, k);
        n_groups++;
    }
    for (int64_t k = 0; k < s->n_kinds; k++)
        least = s->size[k] < s->size[least] ? k : least;
    if (n_groups == 0)
        take_group(s, least);
    return TT_OK;
}

static tt_status choose(split *s)
{
    if (s->by != NULL)
        TT_TRY(find_kinds(s));
    if (s->by != NULL)
        return s->by == s->o.group ? take_groups(s) : take_stratified(s);
    for (int64_t i = 0; i < s->want; i++)
        take(s, pick(s, i, s->n, 0));
    return TT_OK;
}

// ---- two data sets ---------------------------------------------------------------------------

static tt_status make_lists(split *s)
{
    tt_data *d = s->d;
    int64_t n[2] = {0, 0};
    s->subset[0] = tti_alloc(d->ctx, (size_t)(s->n - s->n_taken) * sizeof(int64_t) + 1);
    s->subset[1] = tti_alloc(d->ctx, (size_t)s->n_taken * sizeof(int64_t) + 1);
    if (s->subset[0] == NULL || s->subset[1] == NULL)
        return TT_ENOMEM;
    for (int64_t i = 0; i < s->n; i++)
        s->subset[s->taken[i]][n[s->taken[i]]++] = tti_data_record(d, i);
    return TT_OK;
}

static void free_data(void *owner)
{
    tt_data_free(owner);
}

// The second data set; d still has all records.
static tt_status make_second(split *s)
{
    tt_data *d = s->d, *made = tti_calloc(d->ctx, 1, sizeof(*made));
    if (made == NULL)
        return TT_ENOMEM;
    if (d->n_users == NULL && (d->n_users = tti_calloc(d->ctx, 1, sizeof(int))) != NULL)
        *d->n_users = 1;
    if (d->n_users == NULL) {
        tti_free(d->ctx, made);
        return TT_ENOMEM;
    }
    ++*d->n_users;
    made->ctx = d->ctx;
    made->def = d->def;
    made->source = d->source;
    made->n_users = d->n_users;
    made->opts = d->opts;
    made->opts.no_shuffle = true;
    made->count = s->n_taken;
    made->subset = s->subset[1];
    s->subset[1] = NULL;
    memcpy(made->fields, d->fields, sizeof(made->fields));
    memcpy(made->files, d->files, sizeof(made->files));
    made->n_files = d->n_files;
    tti_own(d->ctx, &made->owned, made, free_data);
    s->made = made;
    return tti_lanes_build(made);
}

// d without the records that were taken; as it was if that fails.
static tt_status shrink(split *s)
{
    tt_data *d = s->d, was = *d;
    d->subset = s->subset[0];
    d->count = s->n - s->n_taken;
    d->lane_first = d->lane_records = NULL;
    tt_status st = tti_lanes_build(d);
    if (st != TT_OK) {
        tti_free(d->ctx, d->lane_first);
        tti_free(d->ctx, d->lane_records);
        d->subset = was.subset;
        d->count = was.count;
        d->lane_first = was.lane_first;
        d->lane_records = was.lane_records;
        return st;
    }
    s->subset[0] = was.subset; // freed with the rest
    tti_free(d->ctx, was.lane_first);
    tti_free(d->ctx, was.lane_records);
    d->is_compared = false;
    tti_ring_free(d);
    return TT_OK;
}

tt_data *tt_data_split_with(tt_data *d, const tt_data_split_opts *opts)
{
    if (d == NULL || tti_is_stuck(d->ctx))
        return NULL;
    split s = {.d = d};
    tt_status st = read_options(&s, opts);
    if (st == TT_OK && (s.taken = tti_calloc(d->ctx, (size_t)s.n, sizeof(*s.taken))) == NULL)
        st = TT_ENOMEM;
    if (st == TT_OK)
        st = choose(&s);
    if (st == TT_OK)
        st = make_lists(&s);
    if (st == TT_OK)
        st = make_second(&s);
    if (st == TT_OK)
        st = shrink(&s);
    if (st != TT_OK) {
        tt_data_free(s.made);
        s.made = NULL;
    }
    void *blocks[] = {s.kind, s.size, s.first, s.in_kind, s.taken, s.subset[0], s.subset[1]};
    for (int i = 0; i < TTI_COUNT(blocks); i++)
        tti_free(d->ctx, blocks[i]);
    return s.made;
}
