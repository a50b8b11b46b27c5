/*
 * placed_run.c - runs of a client's graph, and its variables. Segments of other tasks are runs of
 * sessions there; all of a level start before any is waited for. After a failure their connections
 * are closed, which cancels what is under way, and the next run makes new ones.
 */
#include "base/ctx.h"
#include "serve/placed.h"
#include <stdio.h>
#include <string.h>

// Bytes of a value whose rows are known; -1: too many.
static int64_t bytes_of(const tt_tensor *t, int64_t rows, tt_shape *shape)
{
    int64_t n = (int64_t)tt_dtype_bytes(t->dtype);
    *shape = t->shape;
    for (int i = 0; i < shape->rank; i++) {
        if (shape->dim[i] < 0 && !tti_mul_i64(-shape->dim[i], rows, &shape->dim[i]))
            return -1;
        if (!tti_mul_i64(n, shape->dim[i], &n))
            return -1;
    }
    return n;
}

static int64_t rows_of(const tt_feed_value *feeds, int n)
{
    for (int i = 0; i < n; i++) {
        int axis = tt_open_axis(&feeds[i].tensor->shape);
        if (axis >= 0 && axis < feeds[i].shape.rank)
            return feeds[i].shape.dim[axis] / -feeds[i].tensor->shape.dim[axis];
    }
    return 1;
}

static tt_status read_feeds(tti_placed *p, const tti_run_def *d, tti_reader *r)
{
    if (!tti_grow(p->ctx, &p->feeds, &p->cap_feeds, d->n_feeds + 1, sizeof(*p->feeds)))
        return TT_ENOMEM;
    for (int i = 0; i < d->n_feeds; i++) {
        tt_feed_value *f = &p->feeds[i];
        *f = (tt_feed_value){.tensor = d->feeds[i], .dtype = tti_get_dtype(r)};
        f->shape = tti_get_shape(r);
        tti_get_align(r);
        int64_t bytes = (int64_t)tt_dtype_bytes(f->dtype);
        for (int k = 0; k < f->shape.rank; k++)
            if (f->shape.dim[k] < 0 || !tti_mul_i64(bytes, f->shape.dim[k], &bytes))
                return tti_bad_message(p->client, "run");
        f->data = tti_get_bytes(r, (size_t)bytes);
        if (r->failed)
            return tti_bad_message(p->client, "run");
    }
    return TT_OK;
}

// ---- several tasks ---------------------------------------------------------------------------

static tt_status prepare(tti_placed *p, tti_run_def *d, tti_segment *s, int64_t rows)
{
    for (int64_t i = 0; i < s->n_feeds; i++) {
        const tti_cut *c = &d->parts.cuts[s->feeds[i]];
        s->values[i] = (tt_feed_value){s->feed_tensors[i], c->data, c->shape, c->tensor->dtype};
    }
    if (s->rows != NULL) {
        if (!tti_grow(p->ctx, &p->zeros, &p->cap_zeros, rows + 1, 1))
            return TT_ENOMEM;
        memset(p->zeros, 0, (size_t)rows);
        s->values[s->n_feeds] = (tt_feed_value){s->rows, p->zeros, TT_SHAPE(rows), TT_U8};
    }
    for (int64_t i = 0; i < s->n_fetches; i++) {
        tti_cut *c = &d->parts.cuts[s->fetches[i]];
        int64_t bytes = bytes_of(c->tensor, rows, &c->shape);
        if (bytes < 0 || (size_t)bytes > p->client->host->bounds.memory)
            return TT_FAIL(p->ctx, TT_ELIMIT, "'%s' is above the limit of %zu bytes of %s",
                           c->tensor->node->name, p->client->host->bounds.memory,
                           p->client->host->task);
        if (!tti_grow(p->ctx, &c->own, &c->cap, bytes + 1, 1))
            return TT_ENOMEM;
        c->bytes = (size_t)bytes;
        c->data = c->own;
        s->results[i] = (tt_fetch){s->fetch_tensors[i], c->own, c->bytes};
    }
    return TT_OK;
}

// Starts it, or with finish ends it; segments of this task run when they are ended.
static tt_status run_segment(tti_placed *p, tti_segment *s, const tt_run_opts *like, bool finish)
{
    tt_run_opts o = *like;
    o.feeds = s->values;
    o.n_feeds = (int)s->n_feeds + (s->rows != NULL);
    o.fetches = s->results;
    o.n_fetches = (int)s->n_fetches;
    o.targets = s->targets;
    o.n_targets = (int)s->n_targets;
    tti_remote *remote = tti_session_remote(s->session);
    const tti_spec_task *t = &p->client->host->spec.tasks[s->task];
    char where[96];
    snprintf(where, sizeof(where), "/job:%s/task:%d: ", t->job, t->index);
    tti_fail_where(p->ctx, where);
    tt_status st = TT_OK;
    if (remote != NULL)
        st = finish ? tti_remote_finish(remote, &o) : tti_remote_start(remote, &o);
    else if (finish)
        st = tt_run_with(s->session, &o);
    tti_fail_where(p->ctx, NULL);
    return st;
}

// Those of this task run while the others compute.
static tt_status run_level(tti_placed *p, tti_run_def *d, int64_t first, int64_t end,
                           const tt_run_opts *o, int64_t rows)
{
    for (int64_t i = first; i < end; i++) {
        tti_segment *s = &d->parts.segments[i];
        if (s->session == NULL)
            continue;
        TT_TRY(prepare(p, d, s, rows));
        TT_TRY(run_segment(p, s, o, false));
    }
    for (int pass = 0; pass < 2; pass++) {
        for (int64_t i = first; i < end; i++) {
            tti_segment *s = &d->parts.segments[i];
            bool here = s->task == p->client->host->self;
            if (s->session != NULL && here == (pass == 0))
                TT_TRY(run_segment(p, s, o, true));
        }
    }
    return TT_OK;
}

static tt_status run_parts(tti_placed *p, tti_run_def *d, const tt_run_opts *o, tti_text *out)
{
    int64_t rows = rows_of(p->feeds, d->n_feeds);
    if (o->batch.global_rows != 0 || o->micro > 1)
        return TT_FAIL(p->ctx, TT_EUNSUPPORTED,
                       "run: parts of a batch and micro-batches need a graph on one task");
    for (int64_t i = 0; i < d->parts.n_cuts; i++) { // what the client feeds
        tti_cut *c = &d->parts.cuts[i];
        if (c->tensor->node->op != &tti_op_feed)
            continue;
        c->data = NULL;
        for (int k = 0; k < d->n_feeds && c->data == NULL; k++) {
            if (d->feeds[k] != c->tensor)
                continue;
            c->data = p->feeds[k].data;
            c->shape = p->feeds[k].shape;
            tt_shape unused;
            c->bytes = (size_t)TTI_MAX(bytes_of(c->tensor, rows, &unused), 0);
        }
        if (c->data == NULL)
            return TT_FAIL(p->ctx, TT_EINVAL, "run: feed '%s' is missing", c->tensor->node->name);
    }
    for (int64_t first = 0, end; first < d->parts.n; first = end) {
        for (end = first;
             end < d->parts.n && d->parts.segments[end].level == d->parts.segments[first].level;)
            end++;
        TT_TRY(run_level(p, d, first, end, o, rows));
    }
    for (int i = 0; i < d->n_fetches; i++) {
        const tti_cut *c = &d->parts.cuts[tti_partition_cut(&d->parts, d->fetches[i])];
        if (c->bytes > p->rooms[i])
            return TT_FAIL(p->ctx, TT_ESHAPE,
                           "fetch of '%s' needs %zu bytes, but there is room for %zu",
                           c->tensor->node->name, c->bytes, p->rooms[i]);
        tti_put_u64(out, c->bytes);
        tti_put_align(out);
        tti_text_put(out, c->data, c->bytes);
    }
    return TT_OK;
}

// ---- one task --------------------------------------------------------------------------------

// Fetches are written to where they stand in the answer, which does not move meanwhile.
static tt_status run_here(tti_placed *p, tti_run_def *d, tt_run_opts *o, tti_text *out)
{
    int64_t rows = rows_of(p->feeds, d->n_feeds), total = 0;
    bool is_part = o->batch.global_rows != 0;
    if (!tti_grow(p->ctx, &p->results, &p->cap_results, d->n_fetches + 1, sizeof(*p->results)))
        return TT_ENOMEM;
    for (int i = 0; i < d->n_fetches; i++) {
        tt_shape shape;
        int64_t need = bytes_of(d->fetches[i], rows, &shape);
        // Of a part of a batch, sums have a number of rows that the plan knows.
        size_t room = is_part || need < 0 ? p->rooms[i] : TTI_MIN(p->rooms[i], (size_t)need);
        total += 8 + 2 * TTI_PACK_ALIGN;
        if (room > p->client->host->bounds.memory ||
            (total += (int64_t)room) > (int64_t)p->client->host->bounds.memory)
            return TT_FAIL(p->ctx, TT_ELIMIT,
                           "the fetches of a run are above the limit of %zu bytes of %s",
                           p->client->host->bounds.memory, p->client->host->task);
        p->results[i] = (tt_fetch){d->fetches[i], NULL, room};
    }
    if (!tti_grow(NULL, &out->s, &out->cap, out->n + total + 1, 1))
        return TT_FAIL(p->ctx, TT_ENOMEM, "no memory for an answer of %lld bytes",
                       (long long)total);
    for (int i = 0; i < d->n_fetches; i++) {
        tti_put_u64(out, p->results[i].bytes);
        tti_put_align(out);
        p->results[i].data = out->s + out->n;
        if (is_part)
            memset(p->results[i].data, 0, p->results[i].bytes);
        out->n += (int64_t)p->results[i].bytes;
    }
    o->feeds = p->feeds;
    o->n_feeds = d->n_feeds;
    o->fetches = p->results;
    o->n_fetches = d->n_fetches;
    o->targets = d->targets;
    o->n_targets = d->n_targets;
    return tt_run_with(p->session, o);
}

tt_status tti_placed_run(tti_placed *p, tti_reader *r, tti_text *out)
{
    tti_run_def *d;
    TT_TRY(tti_placed_def(p, r, &d));
    tt_run_opts o = {.opts_size = sizeof(o)};
    o.step = tti_get_i64(r);
    o.unapplied = tti_get_i64(r);
    o.lr = tti_get_f32(r);
    o.grad_scale = tti_get_f32(r);
    o.micro = (int)tti_get_u32(r);
    o.batch.first_row = tti_get_i64(r);
    o.batch.global_rows = tti_get_i64(r);
    o.batch.lanes = (int)tti_get_u32(r);
    if (!tti_grow(p->ctx, &p->rooms, &p->cap_rooms, d->n_fetches + 1, sizeof(*p->rooms)))
        return TT_ENOMEM;
    for (int i = 0; i < d->n_fetches; i++)
        p->rooms[i] = (size_t)tti_get_u64(r);
    TT_TRY(read_feeds(p, d, r));
    if (!tti_get_end(r))
        return tti_bad_message(p->client, "run");
    if (p->session != NULL)
        return run_here(p, d, &o, out);
    tt_status st = run_parts(p, d, &o, out);
    if (st != TT_OK)
        tti_run_def_drop_parts(d);
    return st;
}

// ---- variables -------------------------------------------------------------------------------

// The session that has a variable: this one's, or one on its task with all variables there.
static tt_status home_of(tti_placed *p, const tt_node *var, tt_session **s, tt_tensor **v)
{
    int task = p->task[var->id];
    *s = p->session;
    *v = var->out;
    if (p->session != NULL)
        return TT_OK;
    if (p->homes[task] == NULL) {
        tt_graph_free(p->home_graphs[task]);
        tt_graph *g = p->home_graphs[task] = tt_graph_new(p->ctx);
        for (int64_t i = 0; g != NULL && i < p->g->n_nodes; i++) {
            const tt_node *n = p->g->nodes[i];
            if (n->op != &tti_op_variable || p->task[i] != task)
                continue;
            tt_node *c = tt_node_new(g, n->op, 0, NULL, n->attr, n->name);
            if (c == NULL)
                return tt_status_of(p->ctx);
            tti_copy_pin(c, n);
        }
        p->homes[task] = g == NULL ? NULL : tti_placed_session(p, g, task);
        if (p->homes[task] == NULL)
            return tt_status_of(p->ctx);
    }
    *s = p->homes[task];
    *v = tt_graph_find(p->home_graphs[task], var->name);
    return TT_OK;
}

tt_status tti_placed_variable(tti_placed *p, uint32_t kind, tti_reader *r, tti_text *out)
{
    char name[TTI_NAME_MAX];
    tti_get_text(r, name, sizeof(name));
    tti_get_align(r);
    if (r->failed)
        return tti_bad_message(p->client, "variable");
    tt_tensor *t = tt_graph_find(p->g, name), *v;
    if (!tti_is_variable(t))
        return TT_FAIL(p->ctx, TT_EINVAL, "the graph has no variable '%s'", name);
    tt_session *s;
    TT_TRY(home_of(p, t->node, &s, &v));
    size_t bytes = (size_t)(r->end - r->at);
    tt_status st = TT_OK;
    if (kind == TTI_ASK_SET) {
        st = tt_set_variable(s, v, bytes > 0 ? (const void *)r->at : "", bytes);
    } else {
        size_t need = (size_t)tt_shape_count(&t->shape) * tt_dtype_bytes(t->dtype);
        if (bytes != 0)
            return tti_bad_message(p->client, "variable");
        if (!tti_grow(NULL, &out->s, &out->cap, out->n + (int64_t)need + 1, 1))
            return TT_FAIL(p->ctx, TT_ENOMEM, "no memory for variable '%s'", name);
        st = tt_get_variable(s, v, out->s + out->n, need);
        out->n += (int64_t)need;
    }
    if (st != TT_OK && p->session == NULL) {
        tt_graph_free(p->home_graphs[p->task[t->node->id]]); // and its connection
        p->home_graphs[p->task[t->node->id]] = NULL;
        p->homes[p->task[t->node->id]] = NULL;
    }
    return st;
}
