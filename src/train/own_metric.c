/*
 * own_metric.c - metrics that the program defines, beside those built in. Their states are lane
 * sums like those of metric.c, so they are merged along the same tree and have the same bits
 * everywhere.
 */
#include "base/ctx.h"
#include "record/record.h"
#include "save/checkpoint.h"
#include "train/compile.h"
#include <ctype.h>
#include <string.h>

#define NAME_MAX_LENGTH 31 // with "validation_" in front it is still a short name

// ---- records ---------------------------------------------------------------------------------

static bool is_name(const char *s)
{
    size_t n = strlen(s);
    bool good = n > 0 && n <= NAME_MAX_LENGTH && !isdigit((unsigned char)s[0]);
    for (size_t i = 0; good && i < n; i++)
        good = (s[i] >= 'a' && s[i] <= 'z') || (s[i] >= 'A' && s[i] <= 'Z') ||
               (s[i] >= '0' && s[i] <= '9') || s[i] == '_';
    return good;
}

// What has this name already; NULL: nothing. Events, curves and watches find values by their names.
static const char *taken_by(const char *name, const tt_metric *own, int before)
{
    for (int i = 0; i < before; i++)
        if (strcmp(own[i].name, name) == 0)
            return "another own metric";
    if (tti_metric_find(name) != NULL)
        return "a built-in metric";
    if (strcmp(name, "loss") == 0 || strncmp(name, "validation_", 11) == 0)
        return "a loss or a value of the validation";
    return tti_is_measure(name) && strcmp(name, "event") != 0 ? NULL : "another value of a step";
}

tt_status tti_own_metrics_check(tt_ctx *ctx, const tt_metric *own, int n)
{
    for (int i = 0; i < n; i++) {
        const tt_metric *m = &own[i];
        if (m->name == NULL)
            return TT_FAIL(ctx, TT_EINVAL, "compile: own metric %d has no name", i);
        if (!is_name(m->name))
            return TT_FAIL(ctx, TT_EINVAL,
                           "compile: an own metric cannot be called '%s'; use up to %d letters, "
                           "digits and _, not starting with a digit",
                           m->name, NAME_MAX_LENGTH);
        const char *taken = taken_by(m->name, own, i);
        if (taken != NULL)
            return TT_FAIL(ctx, TT_EINVAL,
                           "compile: an own metric cannot be called '%s', which is the name of %s; "
                           "choose another",
                           m->name, taken);
        if (m->build == NULL || m->value == NULL)
            return TT_FAIL(ctx, TT_EINVAL, "compile: metric '%s' has no %s function", m->name,
                           m->build == NULL ? "build" : "value");
    }
    return TT_OK;
}

tt_status tti_metrics_read(tti_step *s)
{
    tt_ctx *ctx = s->model->ctx;
    const tt_compile_opts *o = &s->opts;
    int known = 0;
    for (int i = 0; tti_metric_at(i) != NULL; i++) {
        const tti_metric_def *def = tti_metric_at(i);
        known |= (int)def->bit;
        if ((o->metrics & (int)def->bit) != 0 && s->n_metrics < TT_MAX_METRICS)
            s->metrics[s->n_metrics++] = (tti_metric){.name = def->name, .def = def};
    }
    if ((o->metrics & ~known) != 0)
        return TT_FAIL(ctx, TT_EINVAL,
                       "compile: metrics is %d, which is not a set of metrics; a loss is not a "
                       "metric (use TT_METRIC_MSE, not TT_MSE)",
                       o->metrics);
    int n = s->n_metrics + s->n_own_metrics;
    if (n > TT_MAX_METRICS)
        return TT_FAIL(ctx, TT_EINVAL, "compile: %d metrics; a model has at most %d", n,
                       TT_MAX_METRICS);
    for (int i = 0; i < s->n_own_metrics; i++)
        s->metrics[s->n_metrics++] =
            (tti_metric){.name = s->own_metrics[i].name, .own = &s->own_metrics[i]};
    return TT_OK;
}

tt_status tti_metric_find_loss(const tti_step *s, tti_metric *metric, const tti_output *outs, int n)
{
    const char *name = metric->own != NULL ? metric->own->output : NULL;
    metric->loss = 0;
    for (int i = 0; name != NULL && i < s->n_losses; i++) {
        const char *output = s->losses[i].output;
        if (output == NULL && i < n)
            output = outs[i].name;
        if (output != NULL && strcmp(output, name) == 0) {
            metric->loss = i;
            return TT_OK;
        }
    }
    return name == NULL ? TT_OK
                        : TT_FAIL(s->model->ctx, TT_EINVAL,
                                  "compile: metric '%s': no loss is computed from an output '%s'; "
                                  "a metric needs the target of that loss",
                                  metric->name, name);
}

// ---- states and values -----------------------------------------------------------------------

// Only a sum over the rows can be added over lanes and batches.
static tt_status check_state(tt_graph *g, const tti_metric *m, int i, const tt_tensor *t)
{
    tt_ctx *ctx = tt_graph_get_ctx(g);
    char text[TT_SHAPE_TEXT];
    if (t->graph != g)
        return TT_FAIL(ctx, TT_EINVAL,
                       "compile: metric '%s': state %d, '%s', is not of the graph given to build()",
                       m->name, i, tt_tensor_name(t));
    if (t->layout.kind != TT_LAYOUT_PARTIAL)
        return TT_FAIL(ctx, TT_ESHAPE,
                       "compile: metric '%s': state %d, '%s' of shape %s, is not a sum over the "
                       "batch; make each state by tt_sum() or tt_scatter_add(), and combine the "
                       "sums in value()",
                       m->name, i, tt_tensor_name(t), tt_shape_text(&t->shape, text));
    if (t->dtype != TT_F32)
        return TT_FAIL(ctx, TT_EDTYPE,
                       "compile: metric '%s': state %d, '%s', is %s; a state is f32: use "
                       "tt_cast(g, x, TT_F32) before the sum",
                       m->name, i, tt_tensor_name(t), tt_dtype_name(t->dtype));
    return TT_OK;
}

static tt_status build_own(tt_graph *g, const tti_metric *m, const tti_metric_inputs *in,
                           tt_tensor *states[TTI_MAX_STATES], int *n_states)
{
    tt_ctx *ctx = tt_graph_get_ctx(g);
    tt_metric_inputs given = {.output = in->output, .logits = in->logits, .target = in->target};
    if (in->loss->has_ignore)
        given.mask = tti_loss_mask(g, in->loss, in->target);
    TT_TRY(tt_status_of(ctx));
    tt_status st = m->own->build(m->own->user, g, &given, states);
    TT_TRY(tt_status_of(ctx));
    if (st != TT_OK)
        return TT_FAIL(ctx, st, "compile: metric '%s': its build function failed", m->name);
    for (int i = 0; i < TTI_MAX_STATES; i++)
        if (states[i] != NULL)
            *n_states = i + 1;
    if (*n_states == 0)
        return TT_FAIL(ctx, TT_EINVAL,
                       "compile: metric '%s': its build function wrote no state to states[0]",
                       m->name);
    for (int i = 0; i < *n_states; i++) {
        if (states[i] == NULL)
            return TT_FAIL(ctx, TT_EINVAL, "compile: metric '%s': states[%d] is NULL", m->name, i);
        TT_TRY(check_state(g, m, i, states[i]));
    }
    return TT_OK;
}

tt_status tti_metric_build(tt_graph *g, tti_metric *m, const tti_metric_inputs *in,
                           tt_tensor *states[TTI_MAX_STATES])
{
    int n = 0, before = m->n_states;
    TT_TRY(m->own != NULL ? build_own(g, m, in, states, &n) : m->def->build(g, in, states, &n));
    if (before != 0 && n != before)
        return TT_FAIL(tt_graph_get_ctx(g), TT_EINVAL,
                       "compile: metric '%s' has %d states for training, but %d for evaluation; "
                       "its build function must write the same ones each time",
                       m->name, before, n);
    m->n_states = n;
    return TT_OK;
}

tt_status tti_metric_check_size(tt_ctx *ctx, const tti_metric *m, int64_t n)
{
    if (n < TTI_MAX_SUMS || (m->own == NULL && !m->def->is_large)) // with the count of the rows
        return TT_OK;
    if (m->own == NULL)
        return TT_FAIL(ctx, TT_EINVAL,
                       "compile: metric '%s': the sums of losses and metrics have %lld elements "
                       "together; checkpoints keep at most %d: give fewer thresholds, or leave it "
                       "out for so many classes",
                       m->name, (long long)n, TTI_MAX_SUMS - 1);
    return TT_FAIL(ctx, TT_EINVAL,
                   "compile: metric '%s': the sums of losses and metrics have %lld elements "
                   "together; checkpoints keep at most %d",
                   m->name, (long long)n, TTI_MAX_SUMS - 1);
}

double tti_metric_value(const tti_metric *m, const double *const *sums, const int64_t *sizes)
{
    return m->own != NULL ? m->own->value(m->own->user, sums, sizes)
                          : m->def->finish(sums, sizes, m->n_states);
}

bool tti_metric_rises(const tti_metric *metrics, int n, const char *name)
{
    for (int i = 0; i < n; i++)
        if (metrics[i].own != NULL && strcmp(metrics[i].name, name) == 0)
            return !metrics[i].own->lower_is_better;
    const tti_metric_def *def = tti_metric_find(name);
    return def != NULL ? !def->is_lower_better : strcmp(name, "loss") != 0;
}
