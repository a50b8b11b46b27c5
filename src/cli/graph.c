/*
 * graph.c - tutti graph run: computes a graph of a text file, here or on a server.
 */
#include "graph/graph.h"
#include "base/ctx.h"
#include "base/file.h"
#include "cli/cli.h"
#include "data/npy.h"
#include "save/safetensors.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MAX_TEXT ((size_t)1 << 30)

static const char help[] =
    "run FILE computes a graph (tutti help graph) and prints what it fetches: a hash of its bytes\n"
    "and, if they are few, its values. Each --target is a tensor to fetch, or the server that\n"
    "computes the graph: tutti://host:port. Without a tensor, all that no other node reads are\n"
    "fetched. A feed is given as NAME=FILE.npy, or as NAME=NUMBER, which fills it; --rows is then\n"
    "the size of the batch. Variables on a server stay there for later runs.\n";

typedef struct running {
    const cli_args *args;
    tt_ctx *ctx;
    tt_graph *g;
    const char *server;
    tt_feed_value *feeds;
    int n_feeds;
    tt_fetch *fetches;
    int n_fetches;
    int64_t rows;
} running;

// ---- feeds -----------------------------------------------------------------------------------

static tt_status read_npy(running *r, const char *path, tt_feed_value *f)
{
    static const tt_dtype types[] = {
        [TTI_NPY_F4] = TT_F32, [TTI_NPY_F8] = TT_F64, [TTI_NPY_I4] = TT_I32, [TTI_NPY_I8] = TT_I64,
        [TTI_NPY_U1] = TT_U8,  [TTI_NPY_U2] = TT_I32, [TTI_NPY_B1] = TT_BOOL};
    tti_bytes b = {.fd = -1};
    tti_npy npy;
    TT_TRY(tti_bytes_open(r->ctx, path, 0, &b));
    TT_TRY(tti_npy_parse(r->ctx, &b, &npy));
    tt_status st = TT_OK;
    if (npy.type == TTI_NPY_U2 || npy.shape.rank >= TT_MAX_RANK)
        st = TT_FAIL(r->ctx, TT_EDTYPE, "feed '%s': %s has elements or a shape that no tensor has",
                     tt_tensor_name(f->tensor), path);
    f->dtype = types[npy.type];
    f->shape = (tt_shape){.rank = npy.shape.rank + 1, .dim = {npy.count}};
    for (int i = 0; st == TT_OK && i < npy.shape.rank; i++)
        f->shape.dim[i + 1] = npy.shape.dim[i];
    size_t bytes = (size_t)(npy.count * npy.n * npy.element);
    char *data = st == TT_OK ? tti_alloc(r->ctx, bytes + 1) : NULL;
    f->data = data;
    if (st == TT_OK)
        st = data == NULL ? TT_ENOMEM : tti_bytes_read(r->ctx, &npy.bytes, npy.header, bytes, data);
    tti_bytes_close(r->ctx, &npy.bytes);
    return st;
}

static tt_status fill(running *r, double value, tt_feed_value *f)
{
    f->dtype = f->tensor->dtype;
    f->shape = f->tensor->shape;
    for (int i = 0; i < f->shape.rank; i++)
        if (f->shape.dim[i] < 0)
            f->shape.dim[i] = -f->shape.dim[i] * (r->args->rows > 0 ? r->args->rows : 1);
    int64_t n = tt_shape_count(&f->shape);
    char *data = tti_calloc(r->ctx, (size_t)n + 1, tt_dtype_bytes(f->dtype));
    f->data = data;
    for (int64_t i = 0; data != NULL && i < n; i++)
        tti_put_number(f->dtype, data, i, value);
    return data == NULL ? TT_ENOMEM : TT_OK;
}

static tt_status read_feeds(running *r)
{
    const cli_texts *t = &r->args->feeds;
    r->feeds = tti_calloc(r->ctx, (size_t)t->n + 1, sizeof(*r->feeds));
    if (r->feeds == NULL)
        return TT_ENOMEM;
    r->rows = 1;
    for (int i = 0; i < t->n; i++) {
        char name[TTI_NAME_MAX], *end;
        const char *equals = strchr(t->v[i], '=');
        if (equals == NULL)
            return TT_FAIL(r->ctx, TT_EINVAL, "--feed '%s' is not NAME=FILE.npy or NAME=NUMBER",
                           t->v[i]);
        snprintf(name, sizeof(name), "%.*s", (int)(equals - t->v[i]), t->v[i]);
        tt_feed_value *f = &r->feeds[r->n_feeds];
        f->tensor = tt_graph_find(r->g, name);
        if (f->tensor == NULL || f->tensor->node->op != &tti_op_feed)
            return TT_FAIL(r->ctx, TT_EINVAL, "--feed: the graph has no feed '%s'", name);
        r->n_feeds++;
        double value = strtod(equals + 1, &end);
        bool is_number = end != equals + 1 && *end == '\0';
        TT_TRY(is_number ? fill(r, value, f) : read_npy(r, equals + 1, f));
        int open = tt_open_axis(&f->tensor->shape);
        if (open >= 0 && open < f->shape.rank)
            r->rows = f->shape.dim[open] / -f->tensor->shape.dim[open];
    }
    return TT_OK;
}

// ---- fetches ---------------------------------------------------------------------------------

static tt_status add_fetch(running *r, tt_tensor *t)
{
    int64_t bytes = (int64_t)tt_dtype_bytes(t->dtype);
    for (int i = 0; i < t->shape.rank; i++) {
        int64_t n = t->shape.dim[i] < 0 ? -t->shape.dim[i] * r->rows : t->shape.dim[i];
        if (!tti_mul_i64(bytes, n, &bytes))
            return TT_FAIL(r->ctx, TT_ESHAPE, "'%s' is too large", tt_tensor_name(t));
    }
    tt_fetch *f = &r->fetches[r->n_fetches];
    *f = (tt_fetch){t, tti_alloc(r->ctx, (size_t)bytes + 1), (size_t)bytes};
    if (f->data == NULL)
        return TT_ENOMEM;
    r->n_fetches++;
    return TT_OK;
}

static tt_status choose_fetches(running *r)
{
    const cli_texts *t = &r->args->targets;
    size_t most = (size_t)t->n;
    for (int64_t i = 0; i < r->g->n_nodes; i++)
        most += (size_t)r->g->nodes[i]->n_out;
    r->fetches = tti_calloc(r->ctx, most + 1, sizeof(*r->fetches));
    uint8_t *read = tti_calloc(r->ctx, (size_t)r->g->n_nodes + 1, 1);
    tt_status st = r->fetches == NULL || read == NULL ? TT_ENOMEM : TT_OK;
    for (int64_t i = 0; st == TT_OK && i < r->g->n_nodes; i++)
        for (int k = 0; k < r->g->nodes[i]->n_in; k++)
            read[r->g->nodes[i]->in[k]->node->id] = 1;
    for (int i = 0; st == TT_OK && i < t->n; i++) {
        if (strstr(t->v[i], "://") != NULL)
            continue;
        tt_tensor *x = tt_graph_find(r->g, t->v[i]);
        st = x != NULL ? add_fetch(r, x)
                       : TT_FAIL(r->ctx, TT_EINVAL, "the graph has no tensor '%s'", t->v[i]);
    }
    bool none = r->n_fetches == 0;
    for (int64_t i = 0; st == TT_OK && none && i < r->g->n_nodes; i++) {
        const tt_node *n = r->g->nodes[i];
        for (int k = 0; st == TT_OK && !read[i] && n->op != &tti_op_feed && k < n->n_out; k++)
            st = add_fetch(r, n->outs[k]);
    }
    tti_free(r->ctx, read);
    return st;
}

static void print_fetch(const running *r, tti_text *t, const tt_fetch *f)
{
    char text[TT_SHAPE_TEXT], number[64];
    tt_shape s = f->tensor->shape;
    for (int i = 0; i < s.rank; i++)
        s.dim[i] = s.dim[i] < 0 ? -s.dim[i] * r->rows : s.dim[i];
    int64_t n = tt_shape_count(&s);
    tt_hash h = tti_hash128(f->data, f->bytes);
    if (r->args->json) {
        tti_text_add(t, "{\"name\": ");
        tti_text_json(t, tt_tensor_name(f->tensor));
        tti_text_add(t, ", \"dtype\": \"%s\", \"shape\": %s, \"hash\": \"%016llx%016llx\"",
                     tt_dtype_name(f->tensor->dtype), tt_shape_text(&s, text),
                     (unsigned long long)h.high, (unsigned long long)h.low);
    } else {
        tti_text_add(t, "%-24s %s %-16s %016llx%016llx", tt_tensor_name(f->tensor),
                     tt_dtype_name(f->tensor->dtype), tt_shape_text(&s, text),
                     (unsigned long long)h.high, (unsigned long long)h.low);
    }
    if (n > 0 && n <= 8) {
        tti_text_add(t, r->args->json ? ", \"values\": [" : "  ");
        for (int64_t i = 0; i < n; i++) {
            snprintf(number, sizeof(number), "%.9g", tti_get_number(f->tensor->dtype, f->data, i));
            tti_text_add(t, "%s%s", i == 0 ? "" : r->args->json ? ", " : " ", number);
        }
        tti_text_add(t, r->args->json ? "]" : "");
    }
    tti_text_add(t, r->args->json ? "}\n" : "\n");
}

static tt_status write_fetches(const running *r)
{
    tt_hash hash;
    tti_named *named = tti_calloc(r->ctx, (size_t)r->n_fetches + 1, sizeof(*named));
    if (named == NULL)
        return TT_ENOMEM;
    for (int i = 0; i < r->n_fetches; i++) {
        const tt_fetch *f = &r->fetches[i];
        named[i] = (tti_named){tt_tensor_name(f->tensor), f->tensor->dtype, f->tensor->shape,
                               f->data, f->bytes};
        for (int k = 0; k < named[i].shape.rank; k++)
            if (named[i].shape.dim[k] < 0)
                named[i].shape.dim[k] *= -r->rows;
    }
    tt_status st = tti_safetensors_write(r->ctx, r->args->output, named, r->n_fetches, NULL, &hash);
    tti_free(r->ctx, named);
    return st;
}

static tt_status compute(running *r)
{
    char *text;
    size_t bytes;
    TT_TRY(tti_stream_read(r->ctx, r->args->words[1], MAX_TEXT, &text, &bytes));
    r->g = tt_graph_parse(r->ctx, text, bytes);
    tti_free(r->ctx, text);
    if (r->g == NULL)
        return tt_status_of(r->ctx);
    TT_TRY(read_feeds(r));
    TT_TRY(choose_fetches(r));
    tt_session *s =
        r->server != NULL
            ? tt_session_new(r->g, .target = r->server, .key = r->args->key,
                             .container = r->args->container, .isolate = r->args->isolate)
            : tt_session_new(r->g);
    if (s == NULL)
        return tt_status_of(r->ctx);
    TT_TRY(tt_run(s, .feeds = r->feeds, .n_feeds = r->n_feeds, .fetches = r->fetches,
                  .n_fetches = r->n_fetches));
    if (r->args->output != NULL)
        TT_TRY(write_fetches(r));
    tti_text t = {.ctx = r->ctx};
    for (int i = 0; i < r->n_fetches && !r->args->quiet; i++)
        print_fetch(r, &t, &r->fetches[i]);
    return cli_print_text(&t) ? TT_OK : TT_ENOMEM;
}

static int run(const cli_args *args)
{
    running r = {.args = args};
    if (strcmp(args->words[0], "run") != 0)
        return cli_usage(
            "tutti graph: unknown argument '%s'; tutti graph run FILE computes a graph",
            args->words[0]);
    for (int i = 0; i < args->targets.n; i++) {
        if (strstr(args->targets.v[i], "://") == NULL)
            continue;
        if (r.server != NULL)
            return cli_usage("tutti graph: --target names two servers");
        r.server = args->targets.v[i];
    }
    if (r.server == NULL && (args->container != NULL || args->isolate || args->key != NULL))
        return cli_usage("tutti graph: --container, --isolate and --key need a server: "
                         "--target tutti://host:port");
    r.ctx = cli_open(args, "cpu:0");
    if (r.ctx == NULL)
        return cli_open_code(args, NULL);
    r.ctx->seed = (uint64_t)args->seed;
    tt_status st = compute(&r);
    for (int i = 0; i < r.n_feeds; i++)
        tti_free(r.ctx, (void *)r.feeds[i].data);
    for (int i = 0; i < r.n_fetches; i++)
        tti_free(r.ctx, r.fetches[i].data);
    tti_free(r.ctx, r.feeds);
    tti_free(r.ctx, r.fetches);
    int closed = cli_close(r.ctx, args->words[1]);
    return st != TT_OK ? cli_code(st) : closed;
}

const cli_verb cli_graph = {
    .name = "graph",
    .words = "run FILE",
    .summary = "compute a graph of a text file, here or on a server",
    .help = help,
    .flags = "target feed rows container isolate key output seed lanes devices threads isa json "
             "quiet",
    .min_words = 2,
    .max_words = 2,
    .run = run,
};
