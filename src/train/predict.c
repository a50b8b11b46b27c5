/*
 * predict.c - tt_predict(): records through a model, any number of inputs and outputs. Rows are
 * free, so the batch does not change a prediction's bits.
 */
#include "base/ctx.h"
#include "data/data.h"
#include "run/run.h"
#include "train/compile.h"
#include "train/use.h"
#include <string.h>

// One call.
typedef struct call {
    tt_model *m;
    tt_session *session;
    tt_predict_opts o;
    int64_t n;
    tti_output outputs[TTI_MAX_INPUTS];
    int n_outputs;
} call;

static size_t row_bytes(const tt_tensor *t)
{
    tt_shape s = tt_tensor_shape(t);
    return (size_t)-tt_shape_count(&s) * tt_dtype_bytes(tt_tensor_dtype(t));
}

static tt_status check(call *c)
{
    tt_ctx *ctx = c->m->ctx;
    bool wanted = false;
    for (int i = 0; i < c->m->n_inputs; i++)
        if (c->n > 0 && c->o.inputs[i] == NULL)
            return TT_FAIL(ctx, TT_EINVAL, "predict: the model has %d input%s, and '%s' is missing",
                           c->m->n_inputs, c->m->n_inputs == 1 ? "" : "s: give all in .inputs",
                           c->m->inputs[i]->name);
    for (int i = 0; i < c->n_outputs; i++) {
        tt_shape s = tt_tensor_shape(c->outputs[i].tensor);
        if (c->o.outputs[i] == NULL)
            continue;
        wanted = true;
        if (tt_open_axis(&s) != 0)
            return TT_FAIL(ctx, TT_ESHAPE, "predict: output '%s' has no row for each record",
                           c->outputs[i].name);
    }
    return wanted || c->n == 0 ? TT_OK : TT_FAIL(ctx, TT_EINVAL, "predict: out is missing");
}

// Rows [first, first + rows) of the outputs from inputs that begin at in.
static tt_status run(call *c, const void *const *in, int64_t first, int64_t rows)
{
    tt_feed_value feeds[TTI_MAX_INPUTS];
    tt_fetch fetches[TTI_MAX_INPUTS];
    int n = 0;
    for (int i = 0; i < c->m->n_inputs; i++) {
        tt_tensor *t = c->m->inputs[i]->out;
        tt_shape shape = tt_tensor_shape(t);
        shape.dim[0] = rows;
        feeds[i] = (tt_feed_value){t, in[i], shape, tt_tensor_dtype(t)};
    }
    for (int i = 0; i < c->n_outputs; i++) {
        tt_tensor *t = c->outputs[i].tensor;
        size_t row = row_bytes(t);
        if (c->o.outputs[i] != NULL)
            fetches[n++] =
                (tt_fetch){t, (char *)c->o.outputs[i] + (size_t)first * row, (size_t)rows * row};
    }
    TT_TRY(tt_run(c->session, .feeds = feeds, .n_feeds = c->m->n_inputs, .fetches = fetches,
                  .n_fetches = n));
    for (int i = 0; i < c->n_outputs && c->o.raw; i++)
        if (c->o.outputs[i] != NULL && tt_tensor_dtype(c->outputs[i].tensor) == TT_F32) {
            char *at = (char *)c->o.outputs[i] + (size_t)first * row_bytes(c->outputs[i].tensor);
            TT_TRY(tt_model_finish(c->m, i, (float *)(void *)at, rows));
        }
    return TT_OK;
}

// ---- records before their preprocessing ------------------------------------------------------

typedef struct raw {
    const void *arrays[TTI_MAX_INPUTS];
    size_t bytes[TTI_MAX_INPUTS];
    int n;
} raw;

static tt_status raw_read(tt_ctx *ctx, void *self, int64_t i, void *const *out)
{
    const raw *r = self;
    (void)ctx;
    for (int k = 0; k < r->n; k++)
        memcpy(out[k], (const char *)r->arrays[k] + (size_t)i * r->bytes[k], r->bytes[k]);
    return TT_OK;
}

static tt_status same_as_input(tt_model *m, int i, const tt_field *f)
{
    tt_port port;
    char a[TT_SHAPE_TEXT], b[TT_SHAPE_TEXT];
    TT_TRY(tt_model_input(m, i, &port));
    bool same = port.shape.rank == f->shape.rank && port.dtype == f->dtype;
    for (int k = 0; same && k < f->shape.rank; k++)
        same = port.shape.dim[k] == f->shape.dim[k];
    return same ? TT_OK
                : TT_FAIL(m->ctx, TT_ESHAPE,
                          "predict: prepared records of '%s' are %s %s, the model's input is %s %s",
                          port.name, tt_dtype_name(f->dtype), tt_shape_text(&f->shape, a),
                          tt_dtype_name(port.dtype), tt_shape_text(&port.shape, b));
}

static tt_status run_raw(call *c)
{
    raw r = {.n = c->m->n_inputs};
    tt_source source = {.count = c->n, .n_fields = r.n, .self = &r, .read = raw_read};
    tt_field fields[TT_MAX_FIELDS];
    const tti_use *u = tti_use_get(c->m);
    if (u == NULL)
        return tt_status_of(c->m->ctx);
    for (int i = 0; i < r.n; i++) {
        tt_port port;
        TT_TRY(tt_model_input(c->m, i, &port));
        source.fields[i] = (tt_field){.dtype = port.raw_dtype, .shape = port.raw_shape};
        const char *name = u->input_field[i] >= 0 && u->data != NULL
                               ? u->fields[u->input_field[i]].field.name
                               : port.name;
        strncpy(source.fields[i].name, name, sizeof(source.fields[i].name) - 1);
        r.arrays[i] = c->o.inputs[i];
        r.bytes[i] = tti_field_bytes(&source.fields[i]);
    }
    tt_data *d = tt_data_new(c->m->ctx, &source, .no_shuffle = true, .workers = -1);
    tt_status st = d == NULL ? tt_status_of(c->m->ctx) : tt_model_prepare(c->m, d);
    int n = st == TT_OK ? tt_data_fields(d, fields) : 0;
    for (int i = 0; i < n && st == TT_OK; i++)
        st = same_as_input(c->m, i, &fields[i]);
    if (st == TT_OK)
        st = tt_data_start(d, c->o.batch, 0);
    for (int64_t done = 0; st == TT_OK && done < c->n;) {
        tt_batch_data b;
        st = tt_data_next(d, &b);
        if (st == TT_OK)
            st = run(c, b.fields, done, b.rows);
        done += b.rows;
    }
    tt_data_free(d);
    return st;
}

// ---- the call --------------------------------------------------------------------------------

tt_status tt_predict_with(tt_model *m, const void *x, int64_t n, void *out,
                          const tt_predict_opts *opts)
{
    if (m == NULL)
        return TT_EINVAL;
    if (opts != NULL && tti_is_stuck(m->ctx))
        return tt_status_of(m->ctx);
    call c = {.m = m, .n = n};
    TT_TRY(TTI_OPTS_COPY(m->ctx, "predict", opts, &c.o));
    c.n_outputs = m->n_layers > 0 ? tti_model_outputs(m, c.outputs) : 0;
    if (m->n_inputs < 1 || c.n_outputs < 1)
        return TT_FAIL(m->ctx, TT_EINVAL, "predict: the model has %d inputs and %d outputs",
                       m->n_inputs, c.n_outputs);
    if (n < 0)
        return TT_FAIL(m->ctx, TT_EINVAL, "predict: %lld records", (long long)n);
    if (x != NULL)
        c.o.inputs[0] = x;
    if (out != NULL)
        c.o.outputs[0] = out;
    c.o.batch = c.o.batch > 0 ? c.o.batch : 256;
    TT_TRY(check(&c));
    c.session = tti_model_session(m);
    if (c.session == NULL)
        return tt_status_of(m->ctx);
    if (n == 0 || c.o.raw)
        return n == 0 ? TT_OK : run_raw(&c);
    for (int64_t done = 0; done < n; done += c.o.batch) {
        const void *in[TTI_MAX_INPUTS];
        for (int i = 0; i < m->n_inputs; i++)
            in[i] = (const char *)c.o.inputs[i] + (size_t)done * row_bytes(m->inputs[i]->out);
        TT_TRY(run(&c, in, done, TTI_MIN(c.o.batch, n - done)));
    }
    return TT_OK;
}
