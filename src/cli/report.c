/*
 * report.c - how a run went: a table for people, an object for programs.
 */
#include "cli/report.h"
#include "cli/progress.h"
#include "strategy/strategy.h"
#include "train/fit.h"
#include <math.h>
#include <stdio.h>
#include <string.h>

void cli_percentages(const double *parts, int n, int *out)
{
    double sum = 0;
    int left = 100;
    for (int i = 0; i < n; i++)
        sum += parts[i];
    for (int i = 0; i < n; i++) {
        out[i] = sum > 0 ? (int)(100 * parts[i] / sum) : 0;
        left -= out[i];
    }
    for (; sum > 0 && left > 0; left--) { // to those that lost most by rounding down
        int best = 0;
        double most = -1;
        for (int i = 0; i < n; i++) {
            double lost = 100 * parts[i] / sum - out[i];
            if (lost > most) {
                most = lost;
                best = i;
            }
        }
        out[best]++;
    }
}

void cli_hash_text(const tt_hash *h, char out[33])
{
    snprintf(out, 33, "%016llx%016llx", (unsigned long long)h->high, (unsigned long long)h->low);
}

void cli_json_number(tti_text *t, double v)
{
    if (isfinite(v))
        tti_text_add(t, "%.9g", v);
    else
        tti_text_add(t, "null");
}

void cli_evaluation_text(tti_text *t, const tt_evaluation *e)
{
    char value[32];
    cli_value_text(e->loss, value);
    tti_text_add(t, "loss %s", value);
    for (int i = 0; i < e->n_metrics; i++) {
        cli_value_text(e->metrics[i], value);
        tti_text_add(t, "  %s %s", e->names[i], value);
    }
}

static void metrics_json(tti_text *t, int n, const char *const *names, const double *values)
{
    tti_text_add(t, "{");
    for (int i = 0; i < n; i++) {
        tti_text_add(t, "%s", i > 0 ? ", " : "");
        tti_text_json(t, names[i]);
        tti_text_add(t, ": ");
        cli_json_number(t, values[i]);
    }
    tti_text_add(t, "}");
}

void cli_evaluation_json(tti_text *t, const tt_evaluation *e)
{
    tti_text_add(t, "\"rows\": %lld, \"loss\": ", (long long)e->rows);
    cli_json_number(t, e->loss);
    tti_text_add(t, ", \"metrics\": ");
    metrics_json(t, e->n_metrics, e->names, e->metrics);
}

// ---- for people ------------------------------------------------------------------------------

static void put_end(tti_text *t, const tt_fit_report *f)
{
    long long steps = f->steps, all = f->total_steps;
    tti_text_add(t, "ended       ");
    switch (f->ended) {
    case TT_FIT_FINISHED:
        tti_text_add(t, "finished: all %lld steps are done\n", all);
        break;
    case TT_FIT_EARLY_STOP:
        tti_text_add(t, "early stopping after %lld of %lld steps\n", steps, all);
        break;
    case TT_FIT_CALLBACK:
        tti_text_add(t, "stopped by a callback after %lld of %lld steps\n", steps, all);
        break;
    case TT_FIT_REQUESTED:
        tti_text_add(t, "interrupted after %lld of %lld steps\n", steps, all);
        break;
    case TT_FIT_ALREADY:
        tti_text_add(t,
                     f->is_stopped
                         ? "already ended by early stopping after %lld of %lld steps; nothing was "
                           "trained\n"
                         : "already finished with %lld of %lld steps; nothing was trained (to "
                           "train longer, add --epochs N)\n",
                     steps, all);
        break;
    }
}

static void put_best(tti_text *t, const tt_fit_report *f)
{
    char value[32];
    if (!isfinite(f->best))
        return;
    cli_value_text(f->best, value);
    tti_text_add(t, "best        %s %s\n", f->best_name, value);
}

static void put_time(tti_text *t, const tt_fit_report *f)
{
    static const char *const names[] = {"compute", "data", "checkpoints", "validation", "other"};
    double rest = f->seconds - f->compute_seconds - f->data_seconds - f->checkpoint_seconds -
                  f->validate_seconds;
    double parts[] = {f->compute_seconds, f->data_seconds, f->checkpoint_seconds,
                      f->validate_seconds, fmax(rest, 0)};
    int percent[5];
    char total[32];
    cli_percentages(parts, 5, percent);
    cli_time_text(f->seconds, total);
    tti_text_add(t, "time        %s:", total);
    for (int i = 0; i < 5; i++)
        tti_text_add(t, "%s %s %d %%", i > 0 ? "," : "", names[i], percent[i]);
    tti_text_add(t, "\n");
}

static void put_speed(tti_text *t, const tt_fit_report *f)
{
    char rate[32], first[32], step[32];
    cli_rate_text(f->samples_per_second, rate);
    cli_time_text(f->first_step_seconds, first);
    cli_step_text(f->step_ms_median, step);
    tti_text_add(t, "speed       %s samples/s, median step %s, first step after %s\n", rate, step,
                 first);
}

static void put_lanes(tti_text *t, tt_model *m)
{
    char most[TTI_MOST_TEXT];
    const tt_graph *g = tt_model_get_train_graph(m);
    if (g != NULL && tt_device_count(g->ctx) > 1)
        tti_text_add(t, "scaling     %s\n", tti_most_text(&g->ctx->top, g, most));
}

static void put_memory(tti_text *t, tt_ctx *ctx)
{
    char card[32] = "";
    tti_text_add(t, "memory     ");
    for (int i = 0; i < tt_device_count(ctx); i++) {
        tt_device_info d;
        char size[32];
        if (tt_device_get(ctx, i, &d) != TT_OK)
            continue;
        tti_size_text((double)(d.variables + d.arena), size);
        tti_text_add(t, "%s %s %s", i > 0 ? "," : "", d.name, size);
        bool told = strcmp(d.physical, card) == 0; // once for all parts of a card
        memcpy(card, d.physical, sizeof(card));
        if (d.overhead == 0 || told)
            continue;
        tti_size_text((double)d.overhead, size);
        tti_text_add(t, " (plus %s for CUDA and its libraries)", size);
    }
    tti_text_add(t, "\n");
}

// "cpu:1       compute 71 %, communication 4 %, waiting for cpu:0 12 %, data 1 %, idle 12 %"
static void put_device_time(tti_text *t, tt_ctx *ctx, const tt_device_times *d)
{
    static const char *const names[] = {"compute", "communication", "data", "idle"};
    const double own[4] = {d->compute, d->communication, d->data, d->idle};
    int n = tt_device_count(ctx);
    double *parts = tti_calloc(ctx, (size_t)(4 + n), sizeof(*parts) + sizeof(int));
    if (parts == NULL) {
        t->failed = true;
        return;
    }
    int *percent = (int *)(void *)(parts + 4 + n);
    memcpy(parts, own, sizeof(own));
    memcpy(parts + 4, d->waiting_for, sizeof(double) * (size_t)n);
    cli_percentages(parts, 4 + n, percent);
    tti_text_add(t, "%-11s", d->name);
    for (int i = 0; i < 4; i++) {
        tti_text_add(t, "%s %s %d %%", i > 0 ? "," : "", names[i], percent[i]);
        for (int k = 0; i == 1 && k < n; k++) {
            tt_device_info other;
            if (percent[4 + k] > 0 && tt_device_get(ctx, k, &other) == TT_OK)
                tti_text_add(t, ", waiting for %s %d %%", other.name, percent[4 + k]);
        }
    }
    tti_free(ctx, parts);
    tti_text_add(t, "\n");
}

static void put_trial(tti_text *t, const cli_report *r)
{
    char step[32];
    cli_step_text(r->one_ms, step);
    if (r->one_ms > 0)
        tti_text_add(
            t, "compared    one device with all cores takes %s per step: %.2fx as fast as that\n",
            step, r->one_ms / r->spread_ms);
}

static void put_device_times(tti_text *t, tt_ctx *ctx, const cli_report *r)
{
    tt_device_times d;
    int n = tt_device_count(ctx);
    for (int i = 0; n > 1 && i < n; i++)
        if (tt_fit_device_times(r->model, i, &d) == TT_OK)
            put_device_time(t, ctx, &d);
    if (r->fit.slowest >= 0 && tt_fit_device_times(r->model, r->fit.slowest, &d) == TT_OK)
        tti_text_add(t, "slowest     %s, busy %.0f %% of the time\n", d.name,
                     d.seconds > 0 ? 100 * (d.compute + d.communication) / d.seconds : 0);
}

void cli_report_text(tt_ctx *ctx, const cli_report *r)
{
    tti_text t = {.ctx = ctx};
    char hash[33];
    cli_hash_text(&r->fit.weights, hash);
    tti_text_add(&t, "\n");
    put_end(&t, &r->fit);
    put_time(&t, &r->fit);
    if (r->fit.step_ms_median > 0)
        put_speed(&t, &r->fit);
    put_trial(&t, r);
    put_device_times(&t, ctx, r);
    put_lanes(&t, r->model);
    put_memory(&t, ctx);
    put_best(&t, &r->fit);
    if (r->has_test) {
        tti_text_add(&t, "test        ");
        cli_evaluation_text(&t, &r->test);
        tti_text_add(&t, "\n");
    }
    if (r->fit.skipped > 0)
        tti_text_add(&t, "skipped     %lld steps whose loss or gradients were not finite\n",
                     (long long)r->fit.skipped);
    tti_text_add(&t, "weights     %s after %lld steps\n", hash, (long long)r->fit.steps);
    tti_text_add(&t, "run         %s\n", r->run);
    cli_print_text(&t);
}

// ---- for programs ----------------------------------------------------------------------------

static void put_number(tti_text *t, const char *name, double v)
{
    tti_text_add(t, ", \"%s\": ", name);
    cli_json_number(t, v);
}

static void put_spent(tti_text *t, tt_ctx *ctx, const tt_device_times *d)
{
    put_number(t, "seconds", d->seconds);
    put_number(t, "compute_seconds", d->compute);
    put_number(t, "communication_seconds", d->communication);
    put_number(t, "data_seconds", d->data);
    put_number(t, "idle_seconds", d->idle);
    tti_text_add(t, ", \"waiting_seconds\": {");
    for (int i = 0, n = 0; i < tt_device_count(ctx); i++) {
        tt_device_info other;
        if (d->waiting_for[i] <= 0 || tt_device_get(ctx, i, &other) != TT_OK)
            continue;
        tti_text_add(t, "%s\"%s\": ", n++ > 0 ? ", " : "", other.name);
        cli_json_number(t, d->waiting_for[i]);
    }
    tti_text_add(t, "}");
}

static void put_devices(tti_text *t, tt_ctx *ctx, const cli_report *r)
{
    tti_text_add(t, "[");
    for (int i = 0; i < tt_device_count(ctx); i++) {
        tt_device_info d;
        if (tt_device_get(ctx, i, &d) != TT_OK)
            continue;
        tti_text_add(t, "%s{\"name\": ", i > 0 ? ", " : "");
        tti_text_json(t, d.name);
        tti_text_add(t, ", \"peak_bytes\": %zu", d.variables + d.arena);
        tt_device_times spent;
        if (tt_fit_device_times(r->model, i, &spent) == TT_OK)
            put_spent(t, ctx, &spent);
        if (i == r->fit.slowest)
            tti_text_add(t, ", \"slowest\": true");
        tti_text_add(t, "}");
    }
    tti_text_add(t, "]");
}

void cli_report_json(tt_ctx *ctx, const cli_report *r)
{
    tti_text t = {.ctx = ctx};
    const tt_fit_report *f = &r->fit;
    const tt_progress *p = f->last;
    char hash[33];
    cli_hash_text(&f->weights, hash);
    tti_text_add(&t,
                 "{\"event\": \"summary\", \"steps\": %lld, \"epochs\": %lld, \"ended\": "
                 "\"%s\"",
                 (long long)f->steps, (long long)f->epochs, tti_fit_end_name(f->ended));
    if (isfinite(f->best)) {
        tti_text_add(&t, ", \"best\": {\"name\": ");
        tti_text_json(&t, f->best_name);
        put_number(&t, "value", f->best);
        tti_text_add(&t, "}");
    }
    put_number(&t, "loss", p->loss);
    tti_text_add(&t, ", \"metrics\": ");
    metrics_json(&t, p->n_metrics, p->names, p->metrics);
    if (p->has_validation) {
        tti_text_add(&t, ", \"validation\": {\"loss\": ");
        cli_json_number(&t, p->validation_loss);
        tti_text_add(&t, ", \"metrics\": ");
        metrics_json(&t, p->n_metrics, p->names, p->validation);
        tti_text_add(&t, "}");
    }
    if (r->has_test) {
        tti_text_add(&t, ", \"test\": {");
        cli_evaluation_json(&t, &r->test);
        tti_text_add(&t, "}");
    }
    tti_text_add(&t, ", \"weights_hash\": \"%s\"", hash);
    put_number(&t, "samples_per_second", f->samples_per_second);
    put_number(&t, "step_ms_median", f->step_ms_median);
    put_number(&t, "first_step_seconds", f->first_step_seconds);
    put_number(&t, "seconds", f->seconds);
    put_number(&t, "compute_seconds", f->compute_seconds);
    put_number(&t, "data_seconds", f->data_seconds);
    put_number(&t, "checkpoint_seconds", f->checkpoint_seconds);
    put_number(&t, "validate_seconds", f->validate_seconds);
    if (r->one_ms > 0) {
        put_number(&t, "spread_step_ms", r->spread_ms);
        put_number(&t, "one_device_step_ms", r->one_ms);
    }
    put_number(&t, "skipped", (double)f->skipped);
    tti_text_add(&t, ", \"devices\": ");
    put_devices(&t, ctx, r);
    tti_text_add(&t, ", \"checkpoint\": ");
    tti_text_json(&t, f->saved);
    tti_text_add(&t, ", \"run\": ");
    tti_text_json(&t, r->run);
    tti_text_add(&t, "}\n");
    cli_print_text(&t);
}
