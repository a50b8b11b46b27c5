/*
 * scores.c - losses and metrics of a model as sums over the batch: built into its training graph
 * and into its inference graph, and read from what a run gives.
 */
#include "base/ctx.h"
#include "train/compile.h"
#include <string.h>

// The tensor in the training graph that stands for one of the inference graph.
static tt_tensor *twin(tt_model *m, tt_tensor *t, bool training)
{
    if (!training)
        return t;
    for (int64_t i = 0; i < m->n_layers; i++)
        if (m->layers[i]->out == t)
            return m->layers[i]->train_out;
    return NULL;
}

static tt_status find_output(tti_step *s, int i, const tti_output *outs, int n, tt_tensor **out)
{
    const char *name = s->losses[i].output;
    if (name == NULL && i < n) {
        *out = outs[i].tensor;
        return TT_OK;
    }
    for (int k = 0; name != NULL && k < n; k++) {
        if (strcmp(outs[k].name, name) == 0) {
            *out = outs[k].tensor;
            return TT_OK;
        }
    }
    if (name == NULL)
        return TT_FAIL(s->model->ctx, TT_EINVAL, "compile: %d losses, but the model has %d outputs",
                       s->n_losses, n);
    return TT_FAIL(s->model->ctx, TT_EINVAL, "compile: the model has no output '%s'", name);
}

static tt_status add_sum(tti_step *s, tti_scores *sc, tt_tensor *t)
{
    tt_shape shape = tt_tensor_shape(t);
    if (t == NULL)
        return tt_status_of(s->model->ctx);
    int64_t size = tt_shape_count(&shape);
    if (size < 0)
        return TT_FAIL(s->model->ctx, TT_ESHAPE, "compile: '%s' is not a sum over the batch",
                       tt_tensor_name(t));
    sc->sums[sc->n_sums++] = (tti_sum){t, size, sc->n_numbers};
    sc->n_numbers += size;
    return TT_OK;
}

// The feed of a loss's weights, behind those of all targets. Losses may share one.
static tt_status add_weights(tti_step *s, tti_scores *sc, int loss, tt_tensor **out)
{
    const char *name = s->losses[loss].sample_weight;
    int first = s->model->n_inputs + s->n_losses;
    for (int i = first; name != NULL && i < sc->n_feeds; i++)
        if (strcmp(s->losses[sc->weighs[i]].sample_weight, name) == 0)
            *out = sc->feeds[i];
    if (name == NULL || *out != NULL)
        return TT_OK;
    if (sc->n_feeds == TTI_MAX_FEEDS)
        return TT_FAIL(s->model->ctx, TT_EINVAL,
                       "compile: inputs, targets and sample weights are more than %d",
                       TTI_MAX_FEEDS);
    *out = tt_feed(sc->graph, .shape = TT_SHAPE(TT_BATCH), .name = name);
    sc->weighs[sc->n_feeds] = loss;
    sc->feeds[sc->n_feeds++] = *out;
    return *out == NULL ? tt_status_of(s->model->ctx) : TT_OK;
}

// outputs: by loss; feeds of all targets are there.
static tt_status add_losses(tti_step *s, tti_scores *sc, tt_tensor *const *outputs)
{
    for (int i = 0; i < s->n_losses; i++) {
        tt_tensor *weights = NULL;
        TT_TRY(add_weights(s, sc, i, &weights));
        TT_TRY(tti_loss_build_weighted(sc->graph, &s->losses[i], outputs[i],
                                       sc->feeds[s->model->n_inputs + i], weights, &sc->terms[i]));
        TT_TRY(add_sum(s, sc, sc->terms[i].sum));
        if (sc->terms[i].count != NULL)
            TT_TRY(add_sum(s, sc, sc->terms[i].count));
    }
    return TT_OK;
}

// outputs: by loss. Metrics built in are of the first.
static tt_status add_metrics(tti_step *s, tti_scores *sc, tt_tensor *const *outputs)
{
    for (int i = 0; i < s->n_metrics; i++) {
        tti_metric *metric = &s->metrics[i];
        int k = metric->loss;
        tti_metric_inputs in = {.output = outputs[k],
                                .logits = sc->terms[k].logits,
                                .target = sc->feeds[s->model->n_inputs + k],
                                .loss = &s->losses[k],
                                .terms = sc->terms[k],
                                .top_k = s->opts.top_k,
                                .thresholds = s->opts.thresholds,
                                .threshold = s->opts.threshold};
        tt_tensor *states[TTI_MAX_STATES] = {NULL};
        TT_TRY(tti_metric_build(sc->graph, metric, &in, states));
        for (int n = 0; n < metric->n_states; n++)
            TT_TRY(add_sum(s, sc, states[n]));
        TT_TRY(tti_metric_check_size(s->model->ctx, metric, sc->n_numbers));
    }
    return TT_OK;
}

// What is said of the first target holds for every loss that names it.
static bool has_first_target(const tti_step *s, int loss)
{
    const char *a = s->losses[0].target, *b = s->losses[loss].target;
    return loss == 0 || (a != NULL && b != NULL && strcmp(a, b) == 0);
}

tt_status tti_scores_build(tti_step *s, tti_scores *sc, tt_graph *g, bool training)
{
    tt_model *m = s->model;
    tti_output outs[TTI_MAX_INPUTS];
    tt_tensor *outputs[TT_MAX_LOSSES];
    int n_outs = tti_model_outputs(m, outs);
    *sc = (tti_scores){.graph = g};
    sc->sums =
        tti_calloc(m->ctx, 2 * TT_MAX_LOSSES + TT_MAX_METRICS * TTI_MAX_STATES, sizeof(*sc->sums));
    if (sc->sums == NULL || n_outs < 1)
        return tt_status_of(m->ctx) != TT_OK
                   ? tt_status_of(m->ctx)
                   : TT_FAIL(m->ctx, TT_EINVAL, "compile: the model has no layers");
    for (int i = 0; i < m->n_inputs; i++)
        sc->feeds[sc->n_feeds++] = twin(m, m->inputs[i]->out, training);
    for (int i = 0; i < s->n_losses; i++) {
        tt_tensor *out = NULL;
        tt_shape shape;
        tt_dtype dtype;
        char name[64] = "y";
        TT_TRY(find_output(s, i, outs, n_outs, &out));
        out = twin(m, out, training);
        if (out == NULL)
            return TT_FAIL(m->ctx, TT_EINVAL, "compile: output %d is not the output of a layer", i);
        outputs[i] = out;
        bool first = has_first_target(s, i);
        TT_TRY(tti_loss_target(m->ctx, &s->losses[i], out, first && s->opts.dense_targets, &shape,
                               &dtype));
        if (first && s->opts.target_dtype != TT_F32)
            dtype = s->opts.target_dtype;
        if (s->losses[i].target != NULL)
            strncpy(name, s->losses[i].target, sizeof(name) - 1);
        tt_tensor *target = tt_feed(g, .dtype = dtype, .shape = shape, .name = name);
        sc->feeds[sc->n_feeds++] = target;
        if (target == NULL)
            return tt_status_of(m->ctx);
    }
    TT_TRY(add_losses(s, sc, outputs));
    for (int i = 0; i < s->n_metrics; i++)
        TT_TRY(tti_metric_find_loss(s, &s->metrics[i], outs, n_outs));
    return add_metrics(s, sc, outputs);
}

static int loss_sum_index(const tti_scores *sc, int loss)
{
    int at = 0;
    for (int i = 0; i < loss; i++)
        at += sc->terms[i].count != NULL ? 2 : 1;
    return at;
}

double tti_scores_loss(const tti_step *s, const tti_scores *sc, const double *numbers, int64_t rows)
{
    double total = 0;
    for (int i = 0; i < s->n_losses; i++) {
        const tti_sum *sum = &sc->sums[loss_sum_index(sc, i)];
        double count =
            sc->terms[i].count != NULL ? numbers[sum[1].at] : (double)(rows * sc->terms[i].per_row);
        total += count > 0 ? s->losses[i].weight * numbers[sum->at] / count : 0;
    }
    return total;
}

int64_t tti_scores_table(const tti_step *s, const tti_scores *sc, const double *numbers,
                         const char *name, double *out, int64_t n)
{
    int at = loss_sum_index(sc, s->n_losses);
    for (int i = 0; i < s->n_metrics; at += s->metrics[i++].n_states) {
        const tti_metric *metric = &s->metrics[i];
        const double *states[TTI_MAX_STATES];
        int64_t sizes[TTI_MAX_STATES];
        if (strcmp(metric->name, name) != 0 || metric->def == NULL || metric->def->table == NULL)
            continue;
        for (int k = 0; k < metric->n_states; k++) {
            states[k] = numbers + sc->sums[at + k].at;
            sizes[k] = sc->sums[at + k].size;
        }
        return metric->def->table(states, sizes, out, n);
    }
    return 0;
}

void tti_scores_metrics(const tti_step *s, const tti_scores *sc, const double *numbers,
                        double out[TT_MAX_METRICS])
{
    int at = loss_sum_index(sc, s->n_losses);
    for (int i = 0; i < s->n_metrics; i++) {
        const double *states[TTI_MAX_STATES];
        int64_t sizes[TTI_MAX_STATES];
        for (int k = 0; k < s->metrics[i].n_states; k++, at++) {
            states[k] = numbers + sc->sums[at].at;
            sizes[k] = sc->sums[at].size;
        }
        out[i] = tti_metric_value(&s->metrics[i], states, sizes);
    }
}

int tti_scores_feed(const tti_scores *sc, const void *const *fields, int64_t rows,
                    tt_feed_value *out)
{
    for (int i = 0; i < sc->n_feeds; i++) {
        tt_shape shape = tt_tensor_shape(sc->feeds[i]);
        int open = tt_open_axis(&shape);
        if (open >= 0)
            shape.dim[open] = -shape.dim[open] * rows;
        out[i] = (tt_feed_value){sc->feeds[i], fields[i], shape, tt_tensor_dtype(sc->feeds[i])};
    }
    return sc->n_feeds;
}
