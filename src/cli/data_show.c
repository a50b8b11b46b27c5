/*
 * data_show.c - tutti data show: what a job trains on: records, shapes, values, classes, columns,
 * records that training and test data share, a sheet of pictures, and how fast records are read
 * against a step.
 */
#include "cli/data_show.h"
#include "cli/job.h"
#include "cli/progress.h"
#include "data/csv_own.h"
#include "data/data.h"
#include "data/describe.h"
#include "train/compile.h"
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define LOOKED_AT  10000 // records for statistics
#define COMPARED   200000
#define CLASSES    20 // shown
#define COLUMNS    40
#define MEASURE_NS 500000000
#define STEPS      8

// ---- values ----------------------------------------------------------------------------------

typedef struct moments {
    double n, sum, squares, low, high;
    int64_t missing;
} moments;

static double value_at(tt_dtype t, const void *x, int64_t i)
{
    switch (t) {
    case TT_F32:
        return (double)((const float *)x)[i];
    case TT_I32:
        return ((const int32_t *)x)[i];
    case TT_I64:
        return (double)((const int64_t *)x)[i];
    case TT_U8:
    case TT_BOOL:
        return ((const uint8_t *)x)[i];
    default:
        return NAN;
    }
}

static void add(moments *m, double v)
{
    if (!isfinite(v)) {
        m->missing++;
        return;
    }
    m->low = m->n == 0 || v < m->low ? v : m->low;
    m->high = m->n == 0 || v > m->high ? v : m->high;
    m->n++;
    m->sum += v;
    m->squares += v * v;
}

static void print_moments(const char *name, const char *shape, const moments *m)
{
    double mean = m->n > 0 ? m->sum / m->n : 0;
    double deviation = m->n > 0 ? sqrt(fmax(m->squares / m->n - mean * mean, 0)) : 0;
    printf("  %-12s %-22s %10.5g %10.5g %10.5g %10.5g", name, shape, m->low, m->high, mean,
           deviation);
    if (m->missing > 0)
        printf("  %lld missing", (long long)m->missing);
    printf("\n");
}

// ---- one data set ----------------------------------------------------------------------------

typedef struct look {
    moments field[TT_MAX_FIELDS], *column;
    int64_t *classes, n_classes, n_columns, records;
} look;

static tt_status read_all(tt_data *d, look *l)
{
    tti_single one;
    int64_t n = TTI_MIN(d->count, LOOKED_AT);
    tt_status st = tti_single_open(d, &one);
    for (int64_t k = 0; st == TT_OK && k < n; k++) {
        st = tti_single_read(&one, tti_data_record(d, k * d->count / n));
        for (int f = 0; st == TT_OK && f < d->source.n_fields; f++) {
            int64_t size = tt_shape_count(&d->fields[f].shape);
            for (int64_t i = 0; i < size; i++) {
                double v = value_at(d->fields[f].dtype, one.slot.fields[f], i);
                add(&l->field[f], v);
                if (f == 0 && l->column != NULL)
                    add(&l->column[i % l->n_columns], v);
                if (f == 1 && size == 1 && l->classes != NULL && v >= 0 && v < (double)l->n_classes)
                    l->classes[(int64_t)v]++;
            }
        }
        l->records++;
    }
    tti_single_close(&one);
    return st;
}

static void print_classes(const tt_data *d, const look *l)
{
    int64_t n, least = INT64_MAX, most = 0;
    char *const *words = tti_data_words(d, &n);
    printf("  classes     ");
    for (int64_t c = 0; c < l->n_classes; c++) {
        least = TTI_MIN(least, l->classes[c]);
        most = TTI_MAX(most, l->classes[c]);
        if (c == CLASSES)
            printf(" and %lld more", (long long)(l->n_classes - c));
        if (c >= CLASSES)
            continue;
        if (words != NULL && c < n)
            printf(" %s %lld", words[c], (long long)l->classes[c]);
        else
            printf(" %lld: %lld", (long long)c, (long long)l->classes[c]);
    }
    printf("\n");
    if (least == 0)
        printf("  a class has no record here\n");
    else if (most >= 3 * least)
        printf("  the largest class has %.1f times the records of the smallest: data.balance: true "
               "repeats the others\n",
               (double)most / (double)least);
}

// Columns of a CSV file, as they were taken: types, and words of categories.
static void print_columns(const tt_data *d, const look *l)
{
    static const char *const kinds[] = {"number", "category", "date"};
    if (!tti_csv_is(d))
        return;
    const tti_csv *c = d->source.self;
    printf("  %-20s %-10s %10s %10s %10s %10s\n", "column", "type", "min", "max", "mean",
           "deviation");
    for (int64_t i = 0, shown = 0; i < c->n && shown < COLUMNS; i++) {
        if (c->x[i] < 0)
            continue;
        shown++;
        if (c->kind[i] == TTI_CSV_WORD) {
            printf("  %-20.40s %-10s %lld words", c->names[i], kinds[c->kind[i]],
                   (long long)c->tables[i].n);
            for (int64_t k = 0; k < TTI_MIN(c->tables[i].n, 5); k++)
                printf("%s %.30s", k == 0 ? ":" : ",", c->tables[i].words[k]);
            printf("%s\n", c->tables[i].n > 5 ? ", ..." : "");
            continue;
        }
        const moments *m = &l->column[c->at[i]];
        double mean = m->n > 0 ? m->sum / m->n : 0;
        double deviation = m->n > 0 ? sqrt(fmax(m->squares / m->n - mean * mean, 0)) : 0;
        printf("  %-20.40s %-10s %10.5g %10.5g %10.5g %10.5g", c->names[i], kinds[c->kind[i]],
               m->low, m->high, mean, deviation);
        if (m->missing > 0)
            printf("  %lld missing", (long long)m->missing);
        printf("\n");
    }
}

// The records of the source, before transforms: d has none yet.
static tt_status show_data(const char *what, tt_data *d)
{
    look l = {0};
    char shape[TT_SHAPE_TEXT], text[128];
    bool has_classes = d->source.n_fields > 1 && d->fields[1].classes > 0;
    if (tti_csv_is(d)) {
        l.n_columns = ((const tti_csv *)d->source.self)->wide;
        l.column = tti_calloc(d->ctx, (size_t)l.n_columns, sizeof(*l.column));
    }
    if (has_classes) {
        l.n_classes = d->fields[1].classes;
        l.classes = tti_calloc(d->ctx, (size_t)l.n_classes, sizeof(*l.classes));
    }
    tt_status st = read_all(d, &l);
    if (st == TT_OK) {
        printf("%s: %s, %lld records%s\n", what, tti_data_name(d), (long long)d->count,
               l.records < d->count ? " (a sample of 10,000 is shown)" : "");
        printf("  %-12s %-22s %10s %10s %10s %10s\n", "field", "type, shape", "min", "max", "mean",
               "deviation");
        for (int f = 0; f < d->source.n_fields; f++) {
            snprintf(text, sizeof(text), "%s %s", tt_dtype_name(d->fields[f].dtype),
                     tt_shape_text(&d->fields[f].shape, shape));
            print_moments(d->fields[f].name, text, &l.field[f]);
        }
        if (has_classes)
            print_classes(d, &l);
        print_columns(d, &l);
    }
    tti_free(d->ctx, l.column);
    tti_free(d->ctx, l.classes);
    return st;
}

// ---- the same record twice -------------------------------------------------------------------

typedef struct print {
    uint64_t hash;
    int64_t record;
} print;

static int by_hash(const void *a, const void *b)
{
    const print *x = a, *y = b;
    return x->hash != y->hash ? (x->hash > y->hash) - (x->hash < y->hash)
                              : (x->record > y->record) - (x->record < y->record);
}

// Hashes of the inputs of records, sorted.
static print *prints_of(tt_data *d, int64_t *n)
{
    *n = TTI_MIN(d->count, COMPARED);
    print *p = tti_alloc(d->ctx, (size_t)*n * sizeof(*p));
    tti_single one;
    if (p == NULL || tti_single_open(d, &one) != TT_OK)
        *n = 0;
    for (int64_t i = 0; i < *n; i++) {
        p[i].record = tti_data_record(d, i);
        if (tti_single_read(&one, p[i].record) != TT_OK) {
            *n = 0;
            break;
        }
        p[i].hash = tti_hash64(one.slot.fields[0], tti_field_bytes(&d->fields[0]), 1);
    }
    if (p != NULL)
        tti_single_close(&one);
    if (p != NULL)
        qsort(p, (size_t)*n, sizeof(*p), by_hash);
    return p;
}

static tt_status show_shared(tt_data *train, tt_data *other, const char *what)
{
    int64_t n, m, shared = 0, i = 0;
    print first[2] = {{0}};
    print *a = prints_of(train, &n), *b = prints_of(other, &m);
    for (int64_t k = 0; k < m; k++) {
        while (i < n && a[i].hash < b[k].hash)
            i++;
        if (i == n || a[i].hash != b[k].hash)
            continue;
        if (shared++ == 0) {
            first[0] = a[i];
            first[1] = b[k];
        }
    }
    if (n > 0 && m > 0)
        printf("duplicates: %lld of %lld records of %s have the inputs of a training record",
               (long long)shared, (long long)m, what);
    if (shared > 0) {
        tti_text t = {.ctx = train->ctx};
        tti_data_where(train, first[0].record, 0, -1, &t);
        tti_text_add(&t, " and ");
        tti_data_where(other, first[1].record, 0, -1, &t);
        printf(": %s", t.s != NULL ? t.s : "");
        tti_text_free(&t);
    }
    printf("\n");
    tti_free(train->ctx, a);
    tti_free(train->ctx, b);
    return tt_status_of(train->ctx);
}

// ---- speed -----------------------------------------------------------------------------------

static tt_status show_speed(cli_job *j)
{
    tt_data *d = j->parts.train;
    tt_batch_data b = {0};
    tt_progress progress;
    int64_t rows = 0, batch = j->parts.fit->batch;
    tti_step *s = j->parts.model->step;
    char rate[32], step_rate[32];
    if (s != NULL && s->rule.schedule.steps == 0)
        s->rule.schedule.steps = STEPS + 2;
    TT_TRY(tt_data_start(d, batch, 0));
    int64_t begin = tti_now_ns();
    do {
        TT_TRY(tt_data_next(d, &b));
        rows += b.rows;
    } while (tti_now_ns() - begin < MEASURE_NS);
    double reads = (double)rows / (1e-9 * (double)(tti_now_ns() - begin)), best = 1e30;
    for (int i = 0; i < STEPS; i++) {
        begin = tti_now_ns();
        TT_TRY(tt_train_step(j->parts.model, &b, &progress));
        best = fmin(best, 1e-9 * (double)(tti_now_ns() - begin));
    }
    double steps = (double)b.rows / best;
    tt_data_stop(d);
    cli_rate_text(reads, rate);
    cli_rate_text(steps, step_rate);
    printf("speed: the data set reads %s records/s with %d worker%s, the step takes %s samples/s; "
           "%s\n",
           rate, TTI_MAX(d->opts.workers, 0), d->opts.workers == 1 ? "" : "s", step_rate,
           reads > 1.2 * steps ? "training does not wait for data"
                               : "training waits for data: set data.workers higher");
    return TT_OK;
}

// ---- the verb --------------------------------------------------------------------------------

static tt_status show(cli_job *j, const cli_args *args)
{
    static const char *const names[] = {"data.train", "data.validate", "data.test"};
    tt_job_parts *p = &j->parts;
    tt_data *parts[] = {p->train, p->validate, p->test};
    int kept[3] = {0};
    tt_field fields[3][TT_MAX_FIELDS];
    tt_status st = TT_OK;
    if (p->train == NULL)
        return TT_FAIL(j->ctx, TT_EINVAL, "%s has no data.train", j->file);
    // Values before transforms: they are set aside for a moment.
    for (int i = 0; i < 3; i++) {
        if (parts[i] == NULL)
            continue;
        kept[i] = parts[i]->n_transforms;
        memcpy(fields[i], parts[i]->fields, sizeof(fields[i]));
        parts[i]->n_transforms = 0;
        memcpy(parts[i]->fields, parts[i]->source.fields, sizeof(fields[i]));
        tti_ring_free(parts[i]);
    }
    for (int i = 0; i < 3 && st == TT_OK; i++)
        if (parts[i] != NULL)
            st = show_data(names[i], parts[i]);
    for (int i = 1; i < 3 && st == TT_OK; i++)
        if (parts[i] != NULL)
            st = show_shared(parts[0], parts[i], names[i]);
    if (st == TT_OK && args->output != NULL)
        st = cli_sheet_write(p->train, args->output);
    for (int i = 0; i < 3; i++) {
        if (parts[i] == NULL)
            continue;
        parts[i]->n_transforms = kept[i];
        memcpy(parts[i]->fields, fields[i], sizeof(fields[i]));
    }
    if (st == TT_OK && args->output != NULL && !args->quiet)
        printf("pictures: %s\n", args->output);
    return st == TT_OK ? show_speed(j) : st;
}

static int run(const cli_args *args)
{
    cli_job j;
    if (strcmp(args->words[0], "show") != 0)
        return cli_usage("data: '%s' is not known; use tutti data show JOB", args->words[0]);
    if (args->n_words < 2)
        return cli_usage("data show: JOB is missing");
    int rc = cli_job_read(args, args->words[1], CLI_NOTHING, &j);
    if (rc == CLI_OK)
        rc = cli_job_build(&j, args, NULL, NULL);
    if (rc == CLI_OK)
        rc = cli_code(show(&j, args));
    return cli_job_close(&j, rc);
}

const cli_verb cli_data = {
    .name = "data",
    .words = "show JOB",
    .summary = "show the data of a job: records, values, classes, duplicates, speed",
    .help =
        "Prints for each part of the data the number of records, the fields with their types,\n"
        "shapes and values before transforms, the number of records per class, and the columns\n"
        "of CSV files with their types. Then: how many records of the other parts have the\n"
        "inputs of a training record, and how fast records are read against a training step.\n"
        "--output FILE.png writes the first 64 images of the training data as one picture.\n",
    .flags = "set devices threads output quiet",
    .min_words = 1,
    .max_words = 2,
    .run = run,
};
