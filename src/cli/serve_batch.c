/*
 * serve_batch.c - the worker of a service: what waits in the queue goes through the model at once.
 *
 * Nothing waits for a batch to fill: while one runs, the next gathers by itself. A batch has 1, 2,
 * 4, ... records, the last one repeated, so that few plans are made, all of them before the first
 * request. If a run fails, each request is run alone, so that a bad record fails only its own.
 */
#include "base/ctx.h"
#include "cli/serve_model.h"
#include <stdlib.h>
#include <string.h>

const double cli_serve_bounds[CLI_SERVE_BUCKETS] = {0.0005, 0.001, 0.002, 0.005, 0.01, 0.02,
                                                    0.05,   0.1,   0.2,   0.5,   1,    5};

void cli_serve_count(cli_service *s, const cli_request *r)
{
    double seconds = (double)(tti_now_ns() - r->begin_ns) * 1e-9;
    pthread_mutex_lock(&s->mu);
    cli_serve_stats *t = &s->stats;
    t->ok += r->code == 200;
    t->refused += r->code == 503;
    t->client_errors += r->code >= 400 && r->code < 500;
    t->server_errors += r->code >= 500 && r->code != 503;
    if (r->code == 200) {
        t->records += r->rows;
        t->seconds += seconds;
        for (int i = 0; i < CLI_SERVE_BUCKETS; i++)
            t->buckets[i] += seconds <= cli_serve_bounds[i];
    }
    pthread_mutex_unlock(&s->mu);
}

// Runs rows records of batch_in, filled up to a power of two.
static tt_status run(cli_service *s, int64_t rows)
{
    tt_predict_opts o = {.opts_size = sizeof(o), .raw = true};
    int64_t n = 1;
    while (n < rows)
        n *= 2;
    n = TTI_MIN(n, s->gather);
    o.batch = n;
    for (int i = 0; i < s->n_inputs; i++) {
        char *last = s->batch_in[i] + (size_t)(rows - 1) * s->in_bytes[i];
        for (int64_t k = rows; k < n; k++)
            memcpy(s->batch_in[i] + (size_t)k * s->in_bytes[i], last, s->in_bytes[i]);
        o.inputs[i] = s->batch_in[i];
    }
    for (int i = 0; i < s->n_outputs; i++)
        o.outputs[i] = s->batch_out[i];
    tt_status st = tt_predict_with(s->m->model, NULL, n, NULL, &o);
    pthread_mutex_lock(&s->mu);
    s->stats.batches++;
    s->stats.padded += n - rows;
    pthread_mutex_unlock(&s->mu);
    return st;
}

static void give_in(cli_service *s, const cli_request *r, int64_t first, int64_t rows, int64_t at)
{
    for (int i = 0; i < s->n_inputs; i++)
        memcpy(s->batch_in[i] + (size_t)at * s->in_bytes[i],
               r->inputs[i] + (size_t)first * s->in_bytes[i], (size_t)rows * s->in_bytes[i]);
}

static void take_out(cli_service *s, cli_request *r, int64_t first, int64_t rows, int64_t at)
{
    for (int i = 0; i < s->n_outputs; i++)
        if (r->outputs[i] != NULL)
            memcpy(r->outputs[i] + (size_t)first * s->out_bytes[i],
                   s->batch_out[i] + (size_t)at * s->out_bytes[i], (size_t)rows * s->out_bytes[i]);
}

static void done(cli_service *s, cli_request *r)
{
    if (r->code == 0)
        r->code = 200;
    atomic_store(&r->is_done, true);
    s->wake(r);
}

// What a run's failure means for a request; the context can be used again, unless a device is lost.
static void failed(cli_service *s, cli_request *r, tt_status st)
{
    tt_ctx *ctx = s->m->j.ctx;
    bool mine = st == TT_EINVAL || st == TT_ESHAPE || st == TT_EDTYPE;
    (void)cli_request_fail(r, mine ? 400 : 500, "%s", tt_last_error(ctx).message);
    if (st == TT_EDEVICE)
        atomic_store(&s->is_lost, true);
    else
        tt_clear_error(ctx);
}

// One request by itself, in slices of the largest batch.
static void run_alone(cli_service *s, cli_request *r)
{
    for (int64_t at = 0; at < r->rows; at += s->gather) {
        int64_t rows = TTI_MIN(s->gather, r->rows - at);
        give_in(s, r, at, rows, 0);
        tt_status st = run(s, rows);
        if (st != TT_OK) {
            failed(s, r, st);
            break;
        }
        take_out(s, r, at, rows, 0);
    }
    done(s, r);
}

static void run_some(cli_service *s, cli_request **list, int n, int64_t rows)
{
    int64_t at = 0;
    for (int i = 0; i < n; at += list[i++]->rows)
        give_in(s, list[i], 0, list[i]->rows, at);
    if (n == 1 || run(s, rows) != TT_OK) {
        if (n > 1 && !atomic_load(&s->is_lost))
            tt_clear_error(s->m->j.ctx);
        for (int i = 0; i < n; i++)
            run_alone(s, list[i]);
        return;
    }
    at = 0;
    for (int i = 0; i < n; i++) {
        take_out(s, list[i], 0, list[i]->rows, at);
        at += list[i]->rows;
        done(s, list[i]);
    }
}

// The next request: the one kept from before, or one from the queue.
static cli_request *take(cli_service *s, int64_t deadline)
{
    void *r = s->held;
    s->held = NULL;
    if (r == NULL && tti_queue_pop(&s->queue, &r, deadline) != TT_OK)
        return NULL;
    return r;
}

static void work(void *arg)
{
    cli_service *s = arg;
    enum {
        MOST = 1024
    };
    cli_request *list[MOST], *r;
    while ((r = take(s, TTI_FOREVER)) != NULL) {
        int n = 0;
        int64_t rows = 0;
        do {
            list[n++] = r;
            rows += r->rows;
        } while (n < MOST && rows < s->gather && (r = take(s, 0)) != NULL &&
                 rows + r->rows <= s->gather);
        if (r != list[n - 1])
            s->held = r; // too many records for this run
        if (rows > s->gather)
            run_alone(s, list[0]);
        else
            run_some(s, list, n, rows);
    }
}

static tt_status warm_up(cli_service *s)
{
    int64_t rows = 1;
    for (;; rows = TTI_MIN(2 * rows, s->gather)) {
        TT_TRY(run(s, rows));
        if (rows == s->gather)
            break;
    }
    s->stats = (cli_serve_stats){0};
    return TT_OK;
}

tt_status cli_serve_start(cli_service *s)
{
    tt_ctx *ctx = s->m->j.ctx;
    for (int i = 0; i < s->n_inputs; i++) {
        s->batch_in[i] = tti_calloc(ctx, (size_t)s->gather, s->in_bytes[i] + 1);
        if (s->batch_in[i] == NULL)
            return TT_ENOMEM;
    }
    for (int i = 0; i < s->n_outputs; i++) {
        s->batch_out[i] = tti_calloc(ctx, (size_t)s->gather, s->out_bytes[i] + 1);
        if (s->batch_out[i] == NULL)
            return TT_ENOMEM;
    }
    TT_TRY(tti_queue_init(ctx, &s->queue, s->queue_size));
    TT_TRY(warm_up(s));
    TT_TRY(tti_thread_start(ctx, &s->worker, "serve", work, s));
    atomic_store(&s->is_ready, true);
    return TT_OK;
}

void cli_serve_stop(cli_service *s)
{
    tt_ctx *ctx = s->m->j.ctx;
    if (s->queue.items != NULL) {
        tti_queue_close(&s->queue);
        tti_thread_join(&s->worker);
        tti_queue_deinit(ctx, &s->queue);
    }
    for (int i = 0; i < TTI_MAX_INPUTS; i++) {
        tti_free(ctx, s->batch_in[i]);
        tti_free(ctx, s->batch_out[i]);
    }
}
