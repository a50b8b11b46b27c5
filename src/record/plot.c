/*
 * plot.c - curves of a run, read back from its events.jsonl, and axes with round numbers.
 */
#include "record/record.h"
#include <errno.h>
#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

// ---- reading ---------------------------------------------------------------------------------

static tti_curve *curve_of(tti_curves *c, const char *name)
{
    for (int i = 0; i < c->n; i++)
        if (strcmp(c->curve[i].name, name) == 0)
            return &c->curve[i];
    if (c->n == TTI_MAX_CURVES || strlen(name) >= sizeof(c->curve[0].name))
        return NULL;
    int at = c->n++;
    if (strcmp(name, "loss") == 0) { // first, wherever it came
        memmove(&c->curve[1], &c->curve[0], sizeof(c->curve[0]) * (size_t)at);
        at = 0;
    }
    memset(&c->curve[at], 0, sizeof(c->curve[at]));
    snprintf(c->curve[at].name, sizeof(c->curve[at].name), "%s", name);
    return &c->curve[at];
}

static tt_status add_point(tti_curves *c, const char *name, bool validates, tti_point p)
{
    tti_curve *curve = curve_of(c, name);
    if (curve == NULL)
        return TT_OK;
    tti_point **points = validates ? &curve->validation : &curve->points;
    int64_t *n = validates ? &curve->n_validation : &curve->n;
    int64_t *cap = validates ? &curve->cap_validation : &curve->cap;
    if (*n > 0 && (*points)[*n - 1].x == p.x) // the end of an epoch is also a step
        (*n)--;
    if (!tti_grow(c->ctx, points, cap, *n + 1, sizeof(**points)))
        return TT_ENOMEM;
    (*points)[(*n)++] = p;
    return TT_OK;
}

// Forgets what came after a checkpoint that the run went back to.
static void rewind_to(tti_curves *c, double step)
{
    for (int i = 0; i < c->n; i++) {
        tti_curve *k = &c->curve[i];
        while (k->n > 0 && k->points[k->n - 1].x >= step)
            k->n--;
        while (k->n_validation > 0 && k->validation[k->n_validation - 1].x >= step)
            k->n_validation--;
    }
}

// What is kept from line to line.
typedef struct reading {
    double last;          // step of the event before
    bool validates_alone; // validations have events of their own; epochs repeat their values
} reading;

/*
 * The training loss of a step alone is preferred to its mean over the epoch so far, which jumps
 * where the next epoch begins.
 */
static tt_status add_values(tti_curves *c, json_t *ev, double x, bool training, bool validation)
{
    const char *name;
    json_t *value;
    bool has_step_loss = json_object_get(ev, "step_loss") != NULL;
    json_object_foreach(ev, name, value)
    {
        bool validates = strncmp(name, "validation_", 11) == 0;
        const char *plain = validates ? name + 11 : name;
        double y = json_number_value(value);
        if (!json_is_number(value) || !(fabs(y) < 1e100) || !(validates ? validation : training))
            continue;
        if (has_step_loss && strcmp(name, "loss") == 0)
            continue;
        if (strcmp(name, "step_loss") == 0)
            plain = "loss";
        if (tti_is_measure(plain))
            TT_TRY(add_point(c, plain, validates, (tti_point){x, y}));
    }
    return TT_OK;
}

static tt_status add_event(tti_curves *c, json_t *ev, reading *r)
{
    const char *kind = json_string_value(json_object_get(ev, "event"));
    const json_t *step = json_object_get(ev, "step");
    double x = json_number_value(step);
    if (kind == NULL || !json_is_number(step) || !(fabs(x) < 1e18))
        return TT_OK;
    bool validation = strcmp(kind, "validation") == 0;
    if (strcmp(kind, "step") != 0 && strcmp(kind, "epoch") != 0 && !validation)
        return TT_OK;
    if (x < r->last)
        rewind_to(c, x);
    r->last = x;
    r->validates_alone |= validation;
    return add_values(c, ev, x, !validation, validation || !r->validates_alone);
}

tt_status tti_curves_read(tt_ctx *ctx, const char *path, tti_curves *out)
{
    char *line = NULL;
    size_t room = 0;
    reading r = {.last = -1};
    bool is_other = tti_file_exists(path) && !tti_file_is_regular(path);
    FILE *f = is_other ? NULL : fopen(path, "re");
    tt_status st = TT_OK;
    if (is_other)
        return TT_FAIL(ctx, TT_EIO, "cannot read '%s': it is not a regular file", path);
    if (f == NULL)
        return TT_FAIL(ctx, TT_EIO, "cannot open '%s': %s", path, strerror(errno));
    *out = (tti_curves){.ctx = ctx};
    for (ssize_t n; st == TT_OK && (n = getline(&line, &room, f)) > 0;) {
        json_t *ev = json_loadb(line, (size_t)n, 0, NULL);
        if (json_is_object(ev))
            st = add_event(out, ev, &r);
        json_decref(ev);
    }
    if (st == TT_OK && ferror(f))
        st = TT_FAIL(ctx, TT_EIO, "cannot read '%s': %s", path, strerror(errno));
    free(line); // getline()'s
    fclose(f);
    if (st != TT_OK)
        tti_curves_free(out);
    return st;
}

void tti_curves_free(tti_curves *c)
{
    for (int i = 0; i < c->n; i++) {
        tti_free(c->ctx, c->curve[i].points);
        tti_free(c->ctx, c->curve[i].validation);
    }
    c->n = 0;
}

tti_range tti_curve_range(const tti_curve *k)
{
    tti_range r = {INFINITY, -INFINITY, INFINITY, -INFINITY};
    for (int64_t i = 0; i < k->n + k->n_validation; i++) {
        tti_point p = i < k->n ? k->points[i] : k->validation[i - k->n];
        r.x_low = fmin(r.x_low, p.x);
        r.x_high = fmax(r.x_high, p.x);
        r.y_low = fmin(r.y_low, p.y);
        r.y_high = fmax(r.y_high, p.y);
    }
    return r;
}

// ---- axes ------------------------------------------------------------------------------------

static void label_of(double v, char out[16])
{
    double a = fabs(v);
    if (a >= 1e15 || (a > 0 && a < 1e-4))
        snprintf(out, 16, "%.1e", v);
    else if (a >= 1e9)
        snprintf(out, 16, "%.5gG", v / 1e9);
    else if (a >= 1e6)
        snprintf(out, 16, "%.5gM", v / 1e6);
    else if (a >= 1e4)
        snprintf(out, 16, "%.5gk", v / 1e3);
    else
        snprintf(out, 16, "%.6g", v);
}

static void add_tick(tti_axis *a, double v)
{
    if (a->n == TTI_MAX_TICKS)
        return;
    a->at[a->n] = v;
    label_of(v, a->label[a->n++]);
}

// The round number (1, 2 or 5 times a power of ten) that is not below x.
static double round_up(double x)
{
    double power = pow(10, floor(log10(x))), part = x / power;
    return power * (part <= 1.0001 ? 1 : part <= 2.0001 ? 2 : part <= 5.0001 ? 5 : 10);
}

static void linear_ticks(tti_axis *a, int wanted)
{
    double step = round_up((a->high - a->low) / wanted);
    double first = ceil(a->low / step - 1e-9);
    for (int i = 0; i < TTI_MAX_TICKS; i++) {
        double v = (first + i) * step;
        if (v > a->high + 1e-9 * step)
            return;
        add_tick(a, fabs(v) < 1e-9 * step ? 0 : v);
    }
}

static void log_ticks(tti_axis *a, int wanted)
{
    static const double parts[] = {1, 2, 5};
    int low = (int)floor(log10(a->low)), high = (int)ceil(log10(a->high));
    bool all = high - low <= TTI_MIN(4, wanted - 1);
    int every = TTI_MAX(1, (high - low + wanted - 1) / wanted);
    for (int e = low; e <= high; e += all ? 1 : every) {
        for (int i = 0; i < (all ? 3 : 1); i++) {
            double v = parts[i] * pow(10, e);
            if (v >= a->low * 0.9999 && v <= a->high * 1.0001)
                add_tick(a, v);
        }
    }
}

void tti_axis_make(double low, double high, int wanted, bool may_log, tti_axis *out)
{
    *out = (tti_axis){.low = low, .high = high};
    if (!(high - low > 1e-9 * fmax(fabs(low), fabs(high)))) { // all one value
        double half = low != 0 ? 0.05 * fabs(low) : 0.5;
        out->low = low - half;
        out->high = high + half;
    }
    out->is_log = may_log && low > 0 && high >= 30 * low;
    if (out->is_log)
        log_ticks(out, wanted);
    else
        linear_ticks(out, wanted);
}

double tti_axis_place(const tti_axis *a, double value)
{
    if (a->is_log)
        return log(value / a->low) / log(a->high / a->low);
    return (value - a->low) / (a->high - a->low);
}

int tti_gather(const tti_point *points, int64_t n, const tti_axis *x, int columns, tti_column *out)
{
    int used = 0, before = -1;
    int64_t count = 0;
    for (int64_t i = 0; i < n; i++) {
        int place = (int)(tti_axis_place(x, points[i].x) * (columns - 1) + 0.5);
        if (used == 0 || (place != before && used < columns)) {
            out[used++] = (tti_column){.low = INFINITY, .high = -INFINITY};
            count = 0;
            before = place;
        }
        tti_column *c = &out[used - 1];
        count++;
        c->x += (points[i].x - c->x) / (double)count;
        c->mean += (points[i].y - c->mean) / (double)count;
        c->low = fmin(c->low, points[i].y);
        c->high = fmax(c->high, points[i].y);
    }
    return used;
}
