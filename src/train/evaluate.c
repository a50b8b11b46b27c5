/*
 * evaluate.c - loss and metrics over a data set. Sums are merged over batches and divided once.
 */
#include "base/ctx.h"
#include "data/data.h"
#include "run/run.h"
#include "train/compile.h"
#include <math.h>
#include <stdio.h>
#include <string.h>

static tt_status exchange(tt_ctx *ctx, tti_variable *a, tti_variable *b)
{
    char *room = tti_alloc(ctx, 2 * a->bytes + 1);
    if (room == NULL)
        return TT_ENOMEM;
    tt_status st = tti_variable_read(a, ctx, room);
    if (st == TT_OK)
        st = tti_variable_read(b, ctx, room + a->bytes);
    if (st == TT_OK)
        st = tti_variable_write(b, ctx, room);
    if (st == TT_OK)
        st = tti_variable_write(a, ctx, room + a->bytes);
    tti_free(ctx, room);
    return st;
}

// Exchanges every weight with its moving average; called twice, it leaves all as it was.
static tt_status swap_averages(tt_model *m)
{
    tt_ctx *ctx = m->ctx;
    tt_session *session = tti_model_session(m);
    if (session == NULL)
        return tt_status_of(ctx);
    for (int64_t i = 0; i < m->n_weights; i++) {
        char name[TTI_NAME_MAX];
        snprintf(name, sizeof(name), "%s/ema", m->weights[i].name);
        tti_variable *average = tti_store_find(session->store, name), *weight;
        if (average == NULL)
            continue;
        TT_TRY(tti_session_variable(session, m->weights[i].var->node, &weight));
        TT_TRY(exchange(ctx, average, weight));
    }
    return TT_OK;
}

tt_status tti_begin_averages(tt_model *m)
{
    tti_step *s = m->step;
    for (int64_t i = 0; i < m->n_weights && s->step > s->unapplied; i++) {
        char name[TTI_NAME_MAX + 8];
        tti_variable *average, *weight;
        snprintf(name, sizeof(name), "%s/ema", m->weights[i].name);
        tt_tensor *t = tt_graph_find(s->graph, name);
        if (t == NULL || tti_store_find(s->session->store, name) != NULL)
            continue;
        TT_TRY(tti_session_variable(s->session, t->node, &average));
        TT_TRY(tti_session_variable(s->session, m->weights[i].train_var->node, &weight));
        char *room = tti_alloc(m->ctx, weight->bytes + 1);
        tt_status st = room == NULL ? TT_ENOMEM : tti_variable_read(weight, m->ctx, room);
        if (st == TT_OK)
            st = tti_variable_write(average, m->ctx, room);
        tti_free(m->ctx, room);
        TT_TRY(st);
    }
    return TT_OK;
}

// parts: the batch goes through in so many, one after another; its sums are those of the whole.
static tt_status add_batch(tt_model *m, const tt_batch_data *batch, int64_t parts, const int *field,
                           tt_fetch *fetches, double *sums)
{
    tti_step *s = m->step;
    const tti_scores *sc = &s->eval;
    const void *fields[TTI_MAX_FEEDS];
    for (int i = 0; i < sc->n_feeds; i++)
        fields[i] = batch->fields[field[i]];
    int n = tti_scores_feed(sc, fields, batch->rows, s->feed_values);
    TT_TRY(tt_run(m->session, .feeds = s->feed_values, .n_feeds = n, .fetches = fetches,
                  .n_fetches = sc->n_sums, .micro = (int)parts));
    for (int64_t i = 0; i < sc->n_numbers; i++)
        sums[i] += s->room[i];
    return TT_OK;
}

// A loss that is not finite because of the data is no fault of the model.
static void warn_of_record(tt_model *m, tt_data *data, const int *field, const tt_batch_data *batch)
{
    const tti_scores *sc = &m->step->eval;
    bool is_good = true;
    for (int64_t i = 0; i < sc->n_numbers; i++)
        is_good &= isfinite(m->step->room[i]);
    tti_text where = {.ctx = m->ctx};
    bool found = !is_good && tti_find_bad_record(sc, data, field, batch, &where);
    data->is_warned_of |= found;
    if (found && where.s != NULL)
        TT_LOG(m->ctx, TT_WARN, "evaluate: the data has a value that is not a finite number: %s",
               where.s);
    tti_text_free(&where);
}

static tt_status sum_up(tt_model *m, tt_data *data, const tt_evaluate_opts *o, tt_evaluation *out)
{
    tti_step *s = m->step;
    const tti_scores *sc = &s->eval;
    int field[TTI_MAX_FEEDS];
    TT_TRY(tti_match_fields(m, sc, data, field));
    if (tti_model_session(m) == NULL)
        return tt_status_of(m->ctx);
    int64_t want = tt_data_count(data), done = 0;
    int64_t parts = o->batch > 0 ? TTI_MAX(o->accumulate, 1) : 1;
    if (o->rows > 0)
        want = TTI_MIN(want, o->rows);
    tt_fetch *fetches = tti_calloc(m->ctx, (size_t)sc->n_sums + 1, sizeof(*fetches));
    double *sums = tti_calloc(m->ctx, (size_t)sc->n_numbers + 1, sizeof(*sums));
    tt_status st = fetches == NULL || sums == NULL ? TT_ENOMEM : TT_OK;
    for (int i = 0; st == TT_OK && i < sc->n_sums; i++)
        fetches[i] = (tt_fetch){sc->sums[i].tensor, s->room + sc->sums[i].at,
                                (size_t)sc->sums[i].size * sizeof(float)};
    if (st == TT_OK && want == tt_data_count(data)) // rows of a batch that is cut lie otherwise
        st = tti_own_lanes(m->session->graph, data);
    if (st == TT_OK)
        st = tt_data_start(data, o->batch * parts, 0);
    while (st == TT_OK && done < want) {
        tt_batch_data batch;
        st = tt_data_next(data, &batch);
        batch.rows = TTI_MIN(batch.rows, want - done);
        if (st == TT_OK)
            st = add_batch(m, &batch, parts, field, fetches, sums);
        if (st == TT_OK && !data->is_warned_of)
            warn_of_record(m, data, field, &batch);
        done += batch.rows;
    }
    tti_data_own(data, 0, 0, 0);
    if (st == TT_OK) {
        tt_evaluation e = {.rows = done, .n_metrics = s->n_metrics};
        e.loss = tti_scores_loss(s, sc, sums, done);
        tti_scores_metrics(s, sc, sums, e.metrics);
        memcpy(s->evaluated, sums, (size_t)sc->n_numbers * sizeof(*sums));
        s->is_evaluated = true;
        for (int i = 0; i < s->n_metrics; i++)
            e.names[i] = s->metrics[i].name;
        tti_out_copy(out, o->out_size == 0 ? sizeof(e) : o->out_size, &e, sizeof(e));
    }
    tti_free(m->ctx, fetches);
    tti_free(m->ctx, sums);
    return st;
}

tt_status tt_evaluate_with(tt_model *m, tt_data *data, tt_evaluation *out,
                           const tt_evaluate_opts *opts)
{
    tt_ctx *ctx = m != NULL ? m->ctx : data != NULL ? data->ctx : NULL;
    if (m == NULL || data == NULL || out == NULL || opts == NULL)
        return ctx == NULL ? TT_EINVAL
                           : TT_FAIL(ctx, TT_EINVAL, "evaluate: %s NULL",
                                     m == NULL      ? "the model is"
                                     : data == NULL ? "the data is"
                                     : out == NULL  ? "the room for the result is"
                                                    : "the options are");
    if (tti_is_stuck(m->ctx))
        return tt_status_of(m->ctx);
    if (m->step == NULL)
        return TT_FAIL(m->ctx, TT_EINVAL, "evaluate: the model is not compiled");
    tt_evaluate_opts o;
    TT_TRY(TTI_OPTS_COPY(m->ctx, "evaluate", opts, &o));
    int64_t both;
    if (o.batch < 0 || o.rows < 0 || o.accumulate < 0)
        return TT_FAIL(m->ctx, TT_EINVAL, "evaluate: batch, rows or accumulate is negative");
    if (o.accumulate > m->ctx->top.lanes || !tti_mul_i64(o.batch, TTI_MAX(o.accumulate, 1), &both))
        return TT_FAIL(m->ctx, TT_EINVAL,
                       "evaluate: batch %lld, accumulate %lld: accumulate is at most %d, the lanes",
                       (long long)o.batch, (long long)o.accumulate, m->ctx->top.lanes);
    if (tt_data_count(data) < 1)
        return TT_FAIL(m->ctx, TT_EINVAL, "evaluate: the data has no records");
    TT_TRY(tti_data_compare(data, "the data to evaluate"));
    if (!o.ema)
        return sum_up(m, data, &o, out);
    TT_TRY(swap_averages(m));
    tt_status st = sum_up(m, data, &o, out);
    TT_TRY(swap_averages(m));
    return st;
}

int64_t tt_evaluate_table(tt_model *m, const char *metric, double *out, int64_t n)
{
    if (m == NULL || metric == NULL || m->step == NULL || !m->step->is_evaluated)
        return 0;
    return tti_scores_table(m->step, &m->step->eval, m->step->evaluated, metric, out,
                            out == NULL ? 0 : n);
}
