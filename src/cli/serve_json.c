/*
 * serve_json.c - requests and answers of a service: JSON tensors of the Open Inference Protocol
 * (KServe v2), the description of the model, metrics in Prometheus' text format.
 *
 * Bodies are anybody's: names, types, shapes and the number of elements are compared with the model
 * before memory is taken for them; what is wrong is named.
 */
#include "base/ctx.h"
#include "cli/serve_model.h"
#include "graph/graph.h"
#include <math.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

static const char *const types[TT_N_DTYPES] = {
    [TT_F32] = "FP32",  [TT_F64] = "FP64",  [TT_BF16] = "BF16", [TT_F16] = "FP16",
    [TT_I32] = "INT32", [TT_I64] = "INT64", [TT_U8] = "UINT8",  [TT_BOOL] = "BOOL",
};

void cli_request_free(cli_request *r)
{
    if (r == NULL)
        return;
    for (int i = 0; i < TTI_MAX_INPUTS; i++) {
        free(r->inputs[i]);
        free(r->outputs[i]);
    }
    free(r->body);
    free(r);
}

bool cli_request_fail(cli_request *r, int code, const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    vsnprintf(r->error, sizeof(r->error), fmt, args);
    va_end(args);
    r->code = code;
    return false;
}

// ---- in --------------------------------------------------------------------------------------

static int input_named(const cli_service *s, const char *name)
{
    for (int i = 0; i < s->n_inputs; i++)
        if (strcmp(s->inputs[i].name, name) == 0)
            return i;
    return -1;
}

static int output_named(const cli_service *s, const char *name)
{
    for (int i = 0; i < s->n_outputs; i++)
        if (strcmp(s->outputs[i].name, name) == 0)
            return i;
    return -1;
}

static const char *shape_text(const tt_shape *record, char buf[TT_SHAPE_TEXT])
{
    tt_shape s = {.rank = record->rank + 1, .dim = {-1}};
    memcpy(s.dim + 1, record->dim, sizeof(s.dim[0]) * (size_t)record->rank);
    return tt_shape_text(&s, buf);
}

// The shape: [rows, ...], the rest as the model's.
static bool read_shape(cli_request *r, const tt_port *p, const json_t *shape, int64_t *rows)
{
    char want[TT_SHAPE_TEXT];
    size_t n = json_array_size(shape);
    bool fits = json_is_array(shape) && n == (size_t)p->raw_shape.rank + 1;
    for (size_t i = 0; fits && i < n; i++) {
        const json_t *d = json_array_get(shape, i);
        fits = json_is_integer(d) && (i == 0 || json_integer_value(d) == p->raw_shape.dim[i - 1]);
    }
    *rows = fits ? json_integer_value(json_array_get(shape, 0)) : 0;
    if (fits && *rows >= 1 && *rows <= INT32_MAX)
        return true;
    char *got = shape != NULL ? json_dumps(shape, JSON_ENCODE_ANY) : NULL;
    (void)cli_request_fail(r, 400, "input '%s': its shape is %.200s; it must be %s, b at least 1",
                           p->name, got != NULL ? got : "missing", shape_text(&p->raw_shape, want));
    free(got);
    return false;
}

typedef struct reading {
    cli_request *r;
    const tt_port *p;
    char *to;
    int64_t n, at;
} reading;

static bool put_number(reading *d, const json_t *v)
{
    static const double lowest[TT_N_DTYPES] = {[TT_I32] = INT32_MIN, [TT_I64] = -0x1p63},
                        highest[TT_N_DTYPES] = {
                            [TT_I32] = INT32_MAX, [TT_I64] = 0x1p63, [TT_U8] = 255, [TT_BOOL] = 1};
    tt_dtype t = d->p->raw_dtype;
    bool is_float = t == TT_F32 || t == TT_F64 || t == TT_F16 || t == TT_BF16;
    double x = json_is_boolean(v) ? json_is_true(v) : json_number_value(v);
    bool ok = is_float ? json_is_number(v)
                       : (json_is_integer(v) || (t == TT_BOOL && json_is_boolean(v))) &&
                             x >= lowest[t] && x <= highest[t];
    if (!ok) {
        char *got = json_dumps(v, JSON_ENCODE_ANY);
        (void)cli_request_fail(d->r, 400, "input '%s': element %lld is %.60s, not %s", d->p->name,
                               (long long)d->at, got != NULL ? got : "?", types[t]);
        free(got);
        return false;
    }
    if (t == TT_I64)
        ((int64_t *)(void *)d->to)[d->at++] = json_integer_value(v);
    else
        tti_put_number(t, d->to, d->at++, x);
    return true;
}

// Flat or nested, as the protocol allows.
static bool put_values(reading *d, const json_t *list, int depth)
{
    for (size_t i = 0; i < json_array_size(list); i++) {
        const json_t *v = json_array_get(list, i);
        if (json_is_array(v) && depth <= TT_MAX_RANK + 1) {
            if (!put_values(d, v, depth + 1))
                return false;
            continue;
        }
        if (d->at == d->n)
            return cli_request_fail(d->r, 400, "input '%s': data has more than %lld elements",
                                    d->p->name, (long long)d->n);
        if (!put_number(d, v))
            return false;
    }
    return true;
}

static bool read_input(const cli_service *s, cli_request *r, const json_t *o)
{
    const char *name = json_string_value(json_object_get(o, "name")),
               *type = json_string_value(json_object_get(o, "datatype"));
    const json_t *data = json_object_get(o, "data");
    int i = name != NULL ? input_named(s, name) : -1;
    int64_t rows;
    if (i < 0)
        return cli_request_fail(r, 400,
                                "input '%.64s' is not one of the model's; the first is '%s'",
                                name != NULL ? name : "", s->inputs[0].name);
    const tt_port *p = &s->inputs[i];
    if (r->inputs[i] != NULL)
        return cli_request_fail(r, 400, "input '%s' is given twice", name);
    if (type == NULL || strcmp(type, types[p->raw_dtype]) != 0)
        return cli_request_fail(r, 400, "input '%s': datatype is %.32s; it must be %s", name,
                                type != NULL ? type : "missing", types[p->raw_dtype]);
    if (!read_shape(r, p, json_object_get(o, "shape"), &rows))
        return false;
    if (r->rows != 0 && r->rows != rows)
        return cli_request_fail(r, 400, "input '%s' has %lld records, another input %lld", name,
                                (long long)rows, (long long)r->rows);
    r->rows = rows;
    if (!json_is_array(data))
        return cli_request_fail(r, 400, "input '%s' has no data", name);
    reading d = {.r = r, .p = p, .n = rows * tt_shape_count(&p->raw_shape)};
    if ((size_t)d.n > r->n) // an element takes a character at least
        return cli_request_fail(r, 400,
                                "input '%s': data has fewer than the %lld elements of its "
                                "shape",
                                name, (long long)d.n);
    d.to = r->inputs[i] = calloc((size_t)rows, s->in_bytes[i] + 1);
    if (d.to == NULL)
        return cli_request_fail(r, 500, "out of memory");
    if (!put_values(&d, data, 0))
        return false;
    return d.at == d.n
               ? true
               : cli_request_fail(r, 400, "input '%s': data has %lld elements, its shape %lld",
                                  name, (long long)d.at, (long long)d.n);
}

static bool read_asked(const cli_service *s, cli_request *r, const json_t *list)
{
    for (int i = 0; i < s->n_outputs; i++)
        r->asked[i] = json_array_size(list) == 0;
    for (size_t k = 0; k < json_array_size(list); k++) {
        const char *name = json_string_value(json_object_get(json_array_get(list, k), "name"));
        int i = name != NULL ? output_named(s, name) : -1;
        if (i < 0)
            return cli_request_fail(r, 400,
                                    "output '%.64s' is not one of the model's; the first is '%s'",
                                    name != NULL ? name : "", s->outputs[0].name);
        r->asked[i] = true;
    }
    for (int i = 0; i < s->n_outputs; i++) {
        if (!r->asked[i])
            continue;
        r->outputs[i] = calloc((size_t)r->rows, s->out_bytes[i] + 1);
        if (r->outputs[i] == NULL)
            return cli_request_fail(r, 500, "out of memory");
    }
    return true;
}

static bool read_all(const cli_service *s, cli_request *r, const json_t *root)
{
    const json_t *inputs = json_object_get(root, "inputs");
    const char *id = json_string_value(json_object_get(root, "id"));
    if (id != NULL && strlen(id) >= sizeof(r->id))
        return cli_request_fail(r, 400, "id has more than %zu bytes", sizeof(r->id) - 1);
    if (id != NULL)
        strcpy(r->id, id);
    if (!json_is_array(inputs))
        return cli_request_fail(r, 400, "the request has no list 'inputs'");
    for (size_t i = 0; i < json_array_size(inputs); i++)
        if (!read_input(s, r, json_array_get(inputs, i)))
            return false;
    for (int i = 0; i < s->n_inputs; i++)
        if (r->inputs[i] == NULL)
            return cli_request_fail(r, 400, "input '%s' is missing", s->inputs[i].name);
    return read_asked(s, r, json_object_get(root, "outputs"));
}

bool cli_serve_parse(const cli_service *s, cli_request *r)
{
    json_error_t e;
    json_t *root = json_loadb(r->body != NULL ? r->body : "", r->n, JSON_REJECT_DUPLICATES, &e);
    if (root == NULL)
        return cli_request_fail(r, 400, "the body is not valid JSON: line %d, column %d: %s",
                                e.line, e.column, e.text);
    bool ok = read_all(s, r, root);
    json_decref(root);
    free(r->body);
    r->body = NULL;
    return ok;
}

// ---- out -------------------------------------------------------------------------------------

static void put_shape(tti_text *t, const char *first, const tt_shape *record)
{
    tti_text_add(t, "\"shape\": [%s", first);
    for (int i = 0; i < record->rank; i++)
        tti_text_add(t, ", %lld", (long long)record->dim[i]);
    tti_text_add(t, "]");
}

static void put_value(tti_text *t, tt_dtype type, const char *data, int64_t i)
{
    double x = tti_get_number(type, data, i);
    if (type == TT_I64)
        tti_text_add(t, "%lld", (long long)((const int64_t *)(const void *)data)[i]);
    else if (!isfinite(x))
        tti_text_add(t, "null");
    else
        tti_text_add(t, type == TT_F64 ? "%.17g" : "%.9g", x);
}

void cli_serve_print(const cli_service *s, const cli_request *r, tti_text *t)
{
    char rows[32];
    const char *comma = "";
    snprintf(rows, sizeof(rows), "%lld", (long long)r->rows);
    tti_text_add(t, "{\"model_name\": ");
    tti_text_json(t, s->name);
    tti_text_add(t, ", \"model_version\": \"1\"");
    if (r->id[0] != '\0') {
        tti_text_add(t, ", \"id\": ");
        tti_text_json(t, r->id);
    }
    tti_text_add(t, ", \"outputs\": [");
    for (int i = 0; i < s->n_outputs; i++) {
        const tt_port *p = &s->outputs[i];
        int64_t n = r->rows * tt_shape_count(&p->shape);
        if (r->outputs[i] == NULL)
            continue;
        tti_text_add(t, "%s{\"name\": ", comma);
        tti_text_json(t, p->name);
        tti_text_add(t, ", \"datatype\": \"%s\", ", types[p->dtype]);
        put_shape(t, rows, &p->shape);
        tti_text_add(t, ", \"data\": [");
        for (int64_t k = 0; k < n; k++) {
            tti_text_put(t, ",", k > 0);
            put_value(t, p->dtype, r->outputs[i], k);
        }
        tti_text_add(t, "]}");
        comma = ", ";
    }
    tti_text_add(t, "]}\n");
}

static void describe_port(tti_text *t, const tt_port *p, bool is_input)
{
    tti_text_add(t, "{\"name\": ");
    tti_text_json(t, p->name);
    tti_text_add(t, ", \"datatype\": \"%s\", ", types[is_input ? p->raw_dtype : p->dtype]);
    put_shape(t, "-1", is_input ? &p->raw_shape : &p->shape);
}

void cli_serve_describe(const cli_service *s, tti_text *t)
{
    tti_text_add(t, "{\"name\": ");
    tti_text_json(t, s->name);
    tti_text_add(t, ", \"versions\": [\"1\"], \"platform\": \"tutti\", \"inputs\": [");
    for (int i = 0; i < s->n_inputs; i++) {
        tti_text_add(t, "%s", i > 0 ? ", " : "");
        describe_port(t, &s->inputs[i], true);
        tti_text_add(t, "}");
    }
    tti_text_add(t, "], \"outputs\": [");
    for (int i = 0; i < s->n_outputs; i++) {
        const json_t *words = s->m->model->use->outputs[i].words;
        tti_text_add(t, "%s", i > 0 ? ", " : "");
        describe_port(t, &s->outputs[i], false);
        char *names = words != NULL ? json_dumps(words, 0) : NULL;
        if (names != NULL)
            tti_text_add(t, ", \"parameters\": {\"classes\": %s}", names);
        free(names);
        tti_text_add(t, "}");
    }
    tti_text_add(t, "]}\n");
}

static void put_metric(tti_text *t, const char *name, const char *kind, const char *help, int64_t v)
{
    tti_text_add(t, "# HELP %s %s\n# TYPE %s %s\n%s %lld\n", name, help, name, kind, name,
                 (long long)v);
}

void cli_serve_metrics(cli_service *s, tti_text *t)
{
    pthread_mutex_lock(&s->mu);
    cli_serve_stats x = s->stats;
    pthread_mutex_unlock(&s->mu);
    pthread_mutex_lock(&s->queue.mu);
    int64_t waiting = s->queue.n;
    pthread_mutex_unlock(&s->queue.mu);
    tti_text_add(t,
                 "# HELP tutti_requests_total Inference requests by result.\n"
                 "# TYPE tutti_requests_total counter\n"
                 "tutti_requests_total{result=\"ok\"} %lld\n"
                 "tutti_requests_total{result=\"client_error\"} %lld\n"
                 "tutti_requests_total{result=\"server_error\"} %lld\n"
                 "tutti_requests_total{result=\"refused\"} %lld\n",
                 (long long)x.ok, (long long)x.client_errors, (long long)x.server_errors,
                 (long long)x.refused);
    put_metric(t, "tutti_records_total", "counter", "Records that were predicted.", x.records);
    put_metric(t, "tutti_batches_total", "counter", "Runs of the model.", x.batches);
    put_metric(t, "tutti_padding_records_total", "counter", "Records that fill up batches.",
               x.padded);
    put_metric(t, "tutti_queue_requests", "gauge", "Requests that wait.", waiting);
    put_metric(t, "tutti_requests_in_flight", "gauge", "Requests that are not answered yet.",
               atomic_load(&s->in_flight));
    tti_text_add(t, "# HELP tutti_request_seconds Time from a request's headers to its answer.\n"
                    "# TYPE tutti_request_seconds histogram\n");
    for (int i = 0; i < CLI_SERVE_BUCKETS; i++)
        tti_text_add(t, "tutti_request_seconds_bucket{le=\"%g\"} %lld\n", cli_serve_bounds[i],
                     (long long)x.buckets[i]);
    tti_text_add(t,
                 "tutti_request_seconds_bucket{le=\"+Inf\"} %lld\ntutti_request_seconds_sum %.9g\n"
                 "tutti_request_seconds_count %lld\n",
                 (long long)x.ok, x.seconds, (long long)x.ok);
}
