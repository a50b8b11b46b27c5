/*
 * step.c - one update: feeds in, sums out. Everything was laid out by tt_compile(), so a step
 * allocates nothing.
 */
#include "base/ctx.h"
#include "comm/lane_tree.h"
#include "run/run.h"
#include "save/share.h"
#include "train/compile.h"
#include <math.h>
#include <stdio.h>
#include <string.h>

static void feed_scalar(tt_feed_value *out, int *n, tt_tensor *feed, const float *value)
{
    if (feed != NULL)
        out[(*n)++] = (tt_feed_value){feed, value, TT_SCALAR, TT_F32};
}

// The seeds and factors of a batch with rows rows.
typedef struct factors {
    float inv_p, p, count;
    float seed[TT_MAX_LOSSES];
} factors;

static factors make_factors(const tti_step *s, int64_t rows)
{
    factors f = {1, 1, 1, {0}};
    if (s->n_losses == 1) {
        double terms = (double)(rows * s->train.terms[0].per_row);
        double p = tti_power_of_two(terms);
        f.p = (float)p;
        f.inv_p = (float)(s->losses[0].weight / p);
        f.count = (float)terms;
    }
    for (int i = 0; s->n_losses > 1 && i < s->n_losses; i++)
        f.seed[i] = (float)(s->losses[i].weight / (double)(rows * s->train.terms[i].per_row));
    return f;
}

static int feed_factors(tti_step *s, const factors *f, int n)
{
    feed_scalar(s->feed_values, &n, s->inv_p, &f->inv_p);
    feed_scalar(s->feed_values, &n, s->p, &f->p);
    feed_scalar(s->feed_values, &n, s->count, &f->count);
    for (int i = 0; i < s->n_losses; i++)
        feed_scalar(s->feed_values, &n, s->loss_seed[i], &f->seed[i]);
    return n;
}

// ---- batches that are too small --------------------------------------------------------------

static int64_t few_rows_of(const tt_model *m, int64_t i)
{
    const tti_layer *l = m->layers[i];
    return l->def != NULL && l->def->few_rows != NULL ? l->def->few_rows(l, m->ctx->top.lanes) : 0;
}

int64_t tti_few_rows(const tt_model *m)
{
    int64_t most = 0;
    for (int64_t i = 0; i < m->n_layers; i++)
        most = TTI_MAX(most, few_rows_of(m, i));
    return most;
}

void tti_few_rows_warn(tt_model *m, int64_t rows)
{
    int n = 0, lanes = m->ctx->top.lanes, single = 0;
    const char *first = NULL;
    char others[48] = "";
    int64_t most = 0;
    for (int64_t i = 0; i < m->n_layers; i++) {
        int64_t few = few_rows_of(m, i);
        if (rows > few)
            continue;
        if (n++ == 0)
            first = m->layers[i]->name;
        most = TTI_MAX(most, few);
    }
    if (n == 0)
        return;
    m->step->few_rows = 0;
    if (n > 1)
        snprintf(others, sizeof(others), " and %d other layer%s", n - 1, n > 2 ? "s" : "");
    for (int l = 0; l < lanes; l++)
        single += tti_lane_row(l + 1, rows, lanes) - tti_lane_row(l, rows, lanes) == 1;
    if (!tti_is_first(m->ctx))
        return;
    if (most == 1)
        TT_LOG(m->ctx, TT_WARN,
               "%s%s: a batch of 1 row gives one value per channel, which has no variance: nothing "
               "before the layer is trained by it; give every batch 2 rows or more, the last of an "
               "epoch too",
               first, others);
    else
        TT_LOG(
            m->ctx, TT_WARN,
            "%s%s: of a batch of %lld row%s %d of the %d lanes have one value per channel, which "
            "has no variance: nothing before the layer is trained by them; give batches %lld "
            "rows or more, or the job fewer lanes, or the layer over: batch",
            first, others, (long long)rows, rows == 1 ? "" : "s", single, lanes,
            (long long)most + 1);
}

// ---- a step ----------------------------------------------------------------------------------

float tti_step_lr(const tti_step *s)
{
    return tti_learning_rate(&s->rule.o, s->step - s->base, s->total, s->lr_factor);
}

tt_status tti_step_run(tt_model *m, const void *const *fields, int64_t rows, int64_t accumulate,
                       float lr, bool *applied, double *norm)
{
    tti_step *s = m->step;
    factors f = make_factors(s, rows);
    if (rows <= s->few_rows)
        tti_few_rows_warn(m, rows);
    int n = tti_scores_feed(&s->train, fields, rows, s->feed_values);
    n = feed_factors(s, &f, n);
    float *more = s->room + s->train.n_numbers;
    more[0] = 0;
    more[1] = 1;
    more[2] = 0;
    TT_TRY(tt_run(s->session, .feeds = s->feed_values, .n_feeds = n, .fetches = s->fetches,
                  .n_fetches = s->n_fetches, .targets = s->targets, .n_targets = s->n_targets,
                  .step = s->step, .lr = lr, .micro = (int)accumulate, .next = s->next_values,
                  .n_next = s->n_next, .unapplied = s->unapplied));
    atomic_store(&s->session->written, atomic_load(&s->session->writing));
    for (int64_t i = 0; i < s->train.n_numbers; i++)
        s->numbers[i] = s->room[i];
    s->lr = lr;
    *norm = more[0];
    *applied = !isnan(more[1]);
    s->scale = more[2];
    s->step++;
    s->unapplied += !*applied;
    return TT_OK;
}

// A loop by hand has no last step for a schedule to end with.
static tt_status check_schedule(tt_model *m)
{
    const tt_schedule *s = &m->step->rule.schedule;
    bool ends = s->kind == TT_LR_COSINE || s->kind == TT_LR_LINEAR || s->kind == TT_LR_ONE_CYCLE ||
                s->kind == TT_LR_POLYNOMIAL || s->kind == TT_LR_WSD;
    if (!ends || s->steps > 0)
        return TT_OK;
    const char *name = "";
    for (int i = 0; tti_schedule_at(i) != NULL; i++)
        if (tti_schedule_at(i)->kind == s->kind)
            name = tti_schedule_at(i)->name;
    return TT_FAIL(
        m->ctx, TT_EINVAL,
        "train step: schedule %s does not say where it ends, and a loop by hand does not "
        "either; give it steps, such as .schedule = tt_%s(.steps = 1000), or give each step its "
        "learning rate as the lr of tt_train_step()",
        name, name);
}

tt_status tt_train_step_with(tt_model *m, const tt_batch_data *batch, tt_progress *out,
                             const tt_train_step_opts *opts)
{
    if (m == NULL)
        return TT_EINVAL;
    if (batch == NULL || opts == NULL)
        return TT_FAIL(m->ctx, TT_EINVAL, "train step: %s NULL",
                       batch == NULL ? "the batch is" : "the options are");
    if (tti_is_stuck(m->ctx))
        return tt_status_of(m->ctx);
    if (m->step == NULL)
        return TT_FAIL(m->ctx, TT_EINVAL, "train step: the model is not compiled");
    if (batch->rows < 1)
        return TT_FAIL(m->ctx, TT_EINVAL, "train step: the batch has no rows");
    tti_step *s = m->step;
    for (int i = 0; i < s->train.n_feeds; i++)
        if (batch->fields[i] == NULL)
            return TT_FAIL(m->ctx, TT_EINVAL, "train step: field %d, for '%s', is missing", i,
                           tt_tensor_name(s->train.feeds[i]));
    tt_train_step_opts o;
    TT_TRY(TTI_OPTS_COPY(m->ctx, "train step", opts, &o));
    bool applied, has_lr = o.lr != 0 || signbit(o.lr);
    double norm;
    if (!isfinite((float)o.lr) || o.lr < 0)
        return TT_FAIL(m->ctx, TT_EINVAL,
                       "train step: lr is %g; it must be a finite number that is not negative",
                       o.lr);
    if (!has_lr)
        TT_TRY(check_schedule(m));
    TT_TRY(tti_step_run(m, batch->fields, batch->rows, 1,
                        has_lr ? (float)(o.lr + 0) : tti_step_lr(s), &applied, &norm));
    if (out == NULL)
        return TT_OK;
    tt_progress p = {.step = s->step,
                     .rows = batch->rows,
                     .n_metrics = s->n_metrics,
                     .lr = s->lr,
                     .gradient_norm = norm,
                     .loss_scale = s->scale,
                     .is_skipped = !applied};
    p.loss = p.step_loss = tti_scores_loss(s, &s->train, s->numbers, batch->rows);
    tti_scores_metrics(s, &s->train, s->numbers, p.metrics);
    memcpy(p.step_metrics, p.metrics, sizeof(p.metrics));
    for (int i = 0; i < s->n_metrics; i++)
        p.names[i] = s->metrics[i].name;
    tti_out_copy(out, o.out_size == 0 ? sizeof(p) : o.out_size, &p, sizeof(p));
    return TT_OK;
}

tt_tensor **tti_step_targets(tt_model *m)
{
    const tti_step *s = m->step;
    size_t n = (size_t)(s->n_fetches + s->n_targets);
    tt_tensor **list = tti_calloc(m->ctx, n + 1, sizeof(*list));
    for (int i = 0; list != NULL && i < s->n_fetches; i++)
        list[i] = s->fetches[i].tensor;
    if (list != NULL)
        memcpy(list + s->n_fetches, s->targets, sizeof(*list) * (size_t)s->n_targets);
    return list;
}

tt_status tti_step_look(tt_model *m, int64_t rows, int64_t accumulate, const tti_topology *top,
                        struct tti_stage_watch *watch, tti_plan **out)
{
    tti_load load = {
        .batch = rows / accumulate, .accumulate = accumulate, .records = rows, .is_dry = true};
    const tti_step *s = m->step;
    if (top == NULL)
        TT_TRY(tti_memory_check(m, &load));
    if (rows <= s->few_rows)
        tti_few_rows_warn(m, rows);
    tt_tensor **list = tti_step_targets(m);
    if (list == NULL)
        return TT_ENOMEM;
    tt_plan_opts opts = {.opts_size = sizeof(opts),
                         .targets = list,
                         .n_targets = s->n_fetches + s->n_targets,
                         .n_fetched = s->n_fetches,
                         .rows = rows,
                         .micro = (int)accumulate};
    tt_status st = tti_session_look(s->session, &opts, top, watch, out);
    tti_free(m->ctx, list);
    return st;
}

char *tti_step_plan(tt_model *m, int64_t rows, int64_t accumulate, tt_plan_form form)
{
    tti_load load = {
        .batch = rows / accumulate, .accumulate = accumulate, .records = rows, .is_dry = true};
    const tti_step *s = m->step;
    if (tti_memory_check(m, &load) != TT_OK)
        return NULL;
    if (rows <= s->few_rows)
        tti_few_rows_warn(m, rows);
    tt_tensor **list = tti_step_targets(m);
    if (list == NULL)
        return NULL;
    char *text = tt_plan_print(s->session, .targets = list,
                               .n_targets = s->n_fetches + s->n_targets, .n_fetched = s->n_fetches,
                               .rows = rows, .form = form, .micro = (int)accumulate);
    tti_free(m->ctx, list);
    return text;
}

// ---- looking for what is not finite ----------------------------------------------------------

int64_t tti_first_not_finite(tt_dtype type, const void *x, int64_t n)
{
    const float *f = x;
    bool good = type > TT_F16;
    if (type == TT_F32) { // most of it, and fast
        float sum = 0;
        for (int64_t i = 0; i < n; i++)
            sum += f[i] * 0;
        good = sum == 0;
    }
    for (int64_t i = 0; !good && i < n; i++)
        if (!isfinite(tti_get_number(type, x, i)))
            return i;
    return -1;
}

/*
 * A run only to look: where it cannot be, because there is no memory or no plan for less than a
 * step (pipelines), nothing is known and nothing has failed.
 */
static bool look(tti_step *s, int n_feeds, const tt_fetch *fetches, int n)
{
    tt_ctx *ctx = s->model->ctx;
    tt_status st = tt_run(s->session, .feeds = s->feed_values, .n_feeds = n_feeds,
                          .fetches = fetches, .n_fetches = n, .step = s->step - 1);
    if (st == TT_EINVAL || st == TT_ESHAPE || st == TT_EUNSUPPORTED || st == TT_ELIMIT ||
        st == TT_ENOMEM)
        tt_clear_error(ctx);
    return st == TT_OK;
}

const char *tti_find_nan(tt_model *m, const void *const *fields, int64_t rows, bool *known)
{
    tti_step *s = m->step;
    *known = true;
    for (int64_t i = 0; *known && i < m->n_layers; i++) {
        tt_tensor *t = m->layers[i]->train_out;
        tt_shape shape = tt_tensor_shape(t);
        int64_t n = tt_shape_count(&shape);
        tt_dtype type = tt_tensor_dtype(t);
        if (t == NULL || type > TT_F16 || n == 0)
            continue;
        n = n < 0 ? -n * rows : n;
        size_t bytes = (size_t)n * tt_dtype_bytes(type);
        void *values = tti_alloc(m->ctx, bytes);
        int n_feeds = tti_scores_feed(&s->train, fields, rows, s->feed_values);
        tt_fetch fetch = {t, values, bytes};
        *known = values != NULL && look(s, n_feeds, &fetch, 1);
        bool good = !*known || tti_first_not_finite(type, values, n) < 0;
        tti_free(m->ctx, values);
        if (!good)
            return m->layers[i]->name;
    }
    return NULL;
}

// Numbers of a check: f32 of magnitudes, one for each block and part, or one f64.
static double check_of(tt_dtype type, const float *x, int64_t n)
{
    double most = 0, square;
    if (type == TT_F64) {
        memcpy(&square, x, sizeof(square));
        return sqrt(square);
    }
    for (int64_t i = 0; i < n && !isnan(most); i++)
        most = x[i] <= most ? most : x[i];
    return most;
}

static const char *checked_name(const tti_step *s, int i)
{
    return i < s->n_weights ? s->names[i] : tt_tensor_name(s->states[i - s->n_weights]);
}

// Runs the step's gradients again, without updates; numbers of check i are at room + i * each.
static bool run_checks(tt_model *m, const void *const *fields, int64_t rows, tt_fetch *fetches,
                       float *room, int64_t each)
{
    tti_step *s = m->step;
    int n = 0;
    factors f = make_factors(s, rows);
    for (int i = 0; i < s->n_weights + s->n_states; i++)
        if (s->checks[i] != NULL)
            fetches[n++] = (tt_fetch){s->checks[i], room + i * each, (size_t)each * sizeof(*room)};
    int n_feeds = tti_scores_feed(&s->train, fields, rows, s->feed_values);
    n_feeds = feed_factors(s, &f, n_feeds);
    return look(s, n_feeds, fetches, n);
}

bool tti_find_gradient(tt_model *m, const void *const *fields, int64_t rows, const char **name,
                       double *value)
{
    tti_step *s = m->step;
    int n = s->n_weights + s->n_states, worst = -1;
    int64_t each = 0;
    for (int i = 0; i < n; i++) {
        tt_shape shape = tt_tensor_shape(s->checks[i]);
        each = TTI_MAX(each, s->checks[i] == NULL ? 0 : tt_shape_count(&shape));
    }
    each += m->ctx->top.n_devices + 2; // replicas with parts of it have one more each, at most
    each += each % 2;                  // an f64 may be there
    tt_fetch *fetches = tti_calloc(m->ctx, (size_t)n + 1, sizeof(*fetches));
    float *room = tti_calloc(m->ctx, (size_t)n * (size_t)each + 1, sizeof(*room));
    bool is_run = s->guard && fetches != NULL && room != NULL &&
                  run_checks(m, fields, rows, fetches, room, each);
    for (int i = n - 1; is_run && i >= 0; i--) { // from the output on
        double y = s->checks[i] == NULL
                       ? 0
                       : check_of(tt_tensor_dtype(s->checks[i]), room + i * each, each);
        bool counts = i < s->n_weights || !isfinite(y);
        if (s->checks[i] == NULL || !counts || (worst >= 0 && !(y > *value) && isfinite(y)))
            continue;
        worst = i;
        *value = y;
        if (!isfinite(y))
            break;
    }
    tti_free(m->ctx, fetches);
    tti_free(m->ctx, room);
    if (worst >= 0)
        *name = checked_name(s, worst);
    return worst >= 0;
}
