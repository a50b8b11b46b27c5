/*
 * onnx_file.c - the ONNX file: nodes were collected as bytes; stored tensors are written from where
 * they are. Field numbers are those of onnx.proto.
 */
#include "base/ctx.h"
#include "save/onnx.h"

enum {
    GRAPH_NAME = 2,
    GRAPH_STORED = 5
};

// A stored tensor up to its elements.
static void stored_head(const tti_onnx_weight *w, tti_text *t)
{
    tti_text all = {.ctx = t->ctx};
    for (int i = 0; i < w->shape.rank; i++)
        tti_pb_int(&all, 1, w->shape.dim[i]);
    tti_pb_int(&all, 2, tti_onnx_type(w->dtype));
    tti_pb_text(&all, 8, w->name);
    tti_pb_head(&all, 9, w->bytes);
    t->failed |= all.failed;
    tti_pb_head(t, GRAPH_STORED, (uint64_t)all.n + w->bytes);
    if (!all.failed)
        tti_text_put(t, all.s, (size_t)all.n);
    tti_text_free(&all);
}

// What stands before the graph, and its length.
static void model_head(tti_text *t, uint64_t graph)
{
    tti_pb_int(t, 1, TTI_ONNX_IR);
    tti_pb_text(t, 2, "tutti");
    tti_pb_text(t, 3, TT_VERSION);
    tti_pb_head(t, 7, graph);
}

static void model_tail(tti_text *t, const char *const *metadata)
{
    tti_text opset = {.ctx = t->ctx};
    tti_pb_text(&opset, 1, "");
    tti_pb_int(&opset, 2, TTI_ONNX_OPSET);
    tti_pb_part(t, 8, &opset);
    for (const char *const *m = metadata; m != NULL && *m != NULL; m += 2) {
        tti_text pair = {.ctx = t->ctx};
        tti_pb_text(&pair, 1, m[0]);
        tti_pb_text(&pair, 2, m[1]);
        tti_pb_part(t, 14, &pair);
    }
}

static tt_status put(tti_writer *w, tti_text *t)
{
    if (t->failed)
        return TT_ENOMEM;
    tt_status st = t->n > 0 ? tti_writer_add(w, t->s, (size_t)t->n) : TT_OK;
    t->n = 0;
    return st;
}

static tt_status put_all(tti_onnx *o, tti_writer *w, uint64_t graph, const char *const *metadata,
                         tti_text *t)
{
    model_head(t, graph);
    TT_TRY(put(w, t));
    TT_TRY(put(w, &o->nodes));
    tti_pb_text(t, GRAPH_NAME, "tutti");
    for (int64_t i = 0; i < o->n_stored; i++) {
        stored_head(&o->stored[i], t);
        TT_TRY(put(w, t));
        TT_TRY(tti_writer_add(w, o->stored[i].data, o->stored[i].bytes));
    }
    TT_TRY(put(w, t));
    TT_TRY(put(w, &o->inputs));
    TT_TRY(put(w, &o->outputs));
    model_tail(t, metadata);
    return put(w, t);
}

tt_status tti_onnx_write(tti_onnx *o, const char *path, const char *const *metadata, tt_hash *hash)
{
    tti_writer w;
    tti_text t = {.ctx = o->ctx};
    tti_pb_text(&t, GRAPH_NAME, "tutti");
    uint64_t graph = (uint64_t)(o->nodes.n + o->inputs.n + o->outputs.n + t.n);
    t.n = 0;
    for (int64_t i = 0; i < o->n_stored; i++, t.n = 0) {
        stored_head(&o->stored[i], &t);
        graph += (uint64_t)t.n + o->stored[i].bytes;
    }
    bool failed = o->failed || t.failed || o->inputs.failed || o->outputs.failed;
    tt_status st = !failed                         ? TT_OK
                   : tt_status_of(o->ctx) != TT_OK ? tt_status_of(o->ctx)
                                                   : TT_ENOMEM;
    if (st == TT_OK && graph > TTI_PB_MAX - 65536)
        st = TT_FAIL(o->ctx, TT_EUNSUPPORTED,
                     "%s: the model has %.2f GB; an ONNX file holds at most 2 GB. Write .tutti or "
                     ".safetensors",
                     path, (double)graph / 1e9);
    if (st == TT_OK)
        st = tti_writer_open(o->ctx, path, true, &w);
    if (st == TT_OK) {
        st = put_all(o, &w, graph, metadata, &t);
        if (st == TT_OK)
            st = tti_writer_close(&w, hash);
        else
            tti_writer_drop(&w);
    }
    tti_text_free(&t);
    return st;
}
