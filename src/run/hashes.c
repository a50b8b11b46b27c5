/*
 * hashes.c - a hash per node, lane and step in canonical row order, and the comparison of two files
 * of them: the tool that finds a differing bit across spreads, instruction sets and machines.
 *
 * A tensor split over lanes has one hash per lane, whoever computed it; others have one. Lines are
 * "step node:output lane hash", in order of the graph. A node that was dumped adds its bytes.
 */
#include "net/world.h"
#include "run/run.h"
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MAGIC "tutti hashes 1"

// Hash of entries [begin, end) of the open axis, in row-major order.
static uint64_t hash_rows(const char *data, const tt_shape *shape, int axis, size_t item,
                          int64_t begin, int64_t end)
{
    int64_t outer = 1, inner = 1;
    for (int i = 0; i < axis; i++)
        outer *= shape->dim[i];
    for (int i = axis + 1; i < shape->rank; i++)
        inner *= shape->dim[i];
    uint64_t h = 0;
    for (int64_t o = 0; o < outer; o++)
        h = tti_hash64(data + (size_t)((o * shape->dim[axis] + begin) * inner) * item,
                       (size_t)((end - begin) * inner) * item, h);
    return h;
}

static tt_status add_row(tt_session *s, const tt_node *n, int output, int lane, uint64_t hash,
                         int64_t step)
{
    if (!tti_grow(s->ctx, &s->rows, &s->cap_rows, s->n_rows + 1, sizeof(*s->rows)))
        return TT_ENOMEM;
    s->rows[s->n_rows++] = (tti_hash_row){step, n, output, lane, hash};
    return TT_OK;
}

static tt_status keep_dump(tt_session *s, const void *data, size_t bytes)
{
    char *copy = tti_realloc(s->ctx, s->dumped, bytes + 1);
    if (copy == NULL)
        return TT_ENOMEM;
    memcpy(copy, data, bytes);
    s->dumped = copy;
    s->dumped_bytes = bytes;
    return TT_OK;
}

// Partial sums of a replica are told by the tree node; what each has whole, by the first.
static bool is_replica(const tti_plan *p, const tti_pnode *pn, const tti_value *v)
{
    if (pn->lanes == &p->lanes)
        return false;
    return tti_is_partial(v->tensor) || pn->is_copy || pn->first_row > 0;
}

tt_status tti_hashes_add(tt_session *s, const tti_plan *p, const tti_entry *en)
{
    const tti_pnode *pn = &p->nodes[en->pnode];
    bool tells = pn->kind == TTI_OP || pn->kind == TTI_TREE || pn->kind == TTI_MOMENTS ||
                 (pn->kind == TTI_LIBRARY_COLLECTIVE && pn->what->kind == TTI_ALL_REDUCE);
    if (!tells || pn->is_recomputed)
        return TT_OK; // copies have the hash of what they copy
    if (pn->is_copy && pn->lanes == &p->lanes)
        return TT_OK; // the first replica tells
    if (pn->kind == TTI_OP && (pn->node->op->flags & TT_OP_PARTS) != 0)
        return TT_OK; // what a replica makes depends on the parts it has
    const tt_lanes *lanes = pn->lanes;
    tti_device *dev = s->ctx->top.devices[pn->device];
    pthread_mutex_lock(&s->rows_mu);
    tt_status st = TT_OK;
    for (int k = 0; st == TT_OK && k < pn->n_out; k++) {
        const tti_value *v = &p->values[pn->out + k];
        const char *data = tti_value_data(s, p, pn->out + k);
        int axis = tt_open_axis(&v->tensor->shape);
        size_t item = tt_dtype_bytes(v->dtype);
        if (axis < 0 && is_replica(p, pn, v))
            continue;
        char *room = NULL;
        if (tti_has_streams(dev)) {
            room = tti_alloc(s->ctx, v->bytes + 1);
            st = room == NULL ? TT_ENOMEM : tti_device_copy(NULL, room, dev, data, v->bytes);
            data = room;
        }
        if (st == TT_OK && k == 0 && s->dump[0] != 0 && strcmp(s->dump, pn->node->name) == 0)
            st = keep_dump(s, data, v->bytes);
        if (axis < 0 && st == TT_OK)
            st = add_row(s, pn->node, v->tensor->index, -1, tti_hash64(data, v->bytes, 0),
                         p->step->step);
        for (int i = 0; axis >= 0 && st == TT_OK && i < lanes->n; i++) {
            int64_t per = -v->tensor->shape.dim[axis];
            uint64_t h = hash_rows(data, &v->shape, axis, item, lanes->bound[i] * per,
                                   lanes->bound[i + 1] * per);
            st = add_row(s, pn->node, k, lanes->first + i, h, p->step->step);
        }
        tti_free(s->ctx, room);
    }
    pthread_mutex_unlock(&s->rows_mu);
    return st;
}

static int by_place(const void *a, const void *b)
{
    const tti_hash_row *x = a, *y = b;
    if (x->step != y->step)
        return x->step < y->step ? -1 : 1;
    if (x->node != y->node)
        return x->node->id - y->node->id;
    return x->output != y->output ? x->output - y->output : x->lane - y->lane;
}

// ---- between processes -----------------------------------------------------------------------

#define OF_ROWS UINT64_C(0x68617368)

// Bytes of every process to the first one; told is how many each has.
static tt_status to_first(tt_session *s, const char *what, const void *mine, uint64_t bytes,
                          uint64_t *told)
{
    tt_ctx *ctx = s->ctx;
    TT_TRY(tti_world_exchange(ctx->world, what, &bytes, sizeof(bytes), told, 0));
    tti_message l = {OF_ROWS, tti_world_count(ctx->world), 0, bytes};
    return ctx->top.task == 0 || bytes == 0
               ? TT_OK
               : tti_world_send(ctx->world, 0, &l, mine, ctx->deadline_ms);
}

static tt_status take(tt_session *s, int from, uint64_t bytes, void *out)
{
    tt_ctx *ctx = s->ctx;
    tti_message l = {OF_ROWS, tti_world_count(ctx->world), 0, bytes};
    return tti_world_receive(ctx->world, from, &l, out, ctx->deadline_ms);
}

// The first process gets all rows; the others' are gone then. Nodes go as their ids.
static tt_status gather_rows(tt_session *s)
{
    uint64_t told[TT_MAX_TASKS], size = sizeof(*s->rows);
    for (int64_t i = 0; i < s->n_rows && s->ctx->top.task > 0; i++) {
        int64_t id = s->rows[i].node->id;
        memcpy(&s->rows[i].node, &id, sizeof(id));
    }
    TT_TRY(to_first(s, "hashes", s->rows, (uint64_t)s->n_rows * size, told));
    if (s->ctx->top.task > 0)
        s->n_rows = 0;
    for (int r = 1; s->ctx->top.task == 0 && r < s->ctx->top.n_tasks; r++) {
        int64_t n = (int64_t)(told[r] / size), from = s->n_rows;
        if (n == 0)
            continue;
        if (!tti_grow(s->ctx, &s->rows, &s->cap_rows, from + n, sizeof(*s->rows)))
            return TT_ENOMEM;
        TT_TRY(take(s, r, told[r], &s->rows[from]));
        for (int64_t i = from; i < from + n; i++) {
            int64_t id;
            memcpy(&id, &s->rows[i].node, sizeof(id));
            if (id < 0 || id >= s->graph->n_nodes)
                return TT_FAIL(s->ctx, TT_EPEER, "hashes: %s has a node %lld, which is not there",
                               tti_world_rank(s->ctx->world, r)->name, (long long)id);
            s->rows[i].node = s->graph->nodes[id];
        }
        s->n_rows += n;
    }
    return TT_OK;
}

static tt_status gather_dump(tt_session *s)
{
    uint64_t told[TT_MAX_TASKS];
    if (s->dump[0] == 0)
        return TT_OK;
    TT_TRY(to_first(s, "a dump", s->dumped, s->dumped_bytes, told));
    for (int r = 1; s->ctx->top.task == 0 && r < s->ctx->top.n_tasks; r++) {
        char *room = told[r] == 0 ? NULL : tti_alloc(s->ctx, told[r] + 1);
        if (told[r] > 0 && room == NULL)
            return TT_ENOMEM;
        tt_status st = told[r] == 0 ? TT_OK : take(s, r, told[r], room);
        if (st == TT_OK && room != NULL && s->dumped == NULL) {
            s->dumped = room;
            s->dumped_bytes = (size_t)told[r];
            room = NULL;
        }
        tti_free(s->ctx, room);
        TT_TRY(st);
    }
    return TT_OK;
}

tt_status tt_hashes_write(tt_session *s, const char *path)
{
    if (s == NULL)
        return TT_EINVAL;
    if (path == NULL)
        return TT_FAIL(s->ctx, TT_EINVAL, "hashes: the path is NULL");
    if (!s->hashes)
        return TT_FAIL(s->ctx, TT_EINVAL, "hashes: the session was opened without .hashes");
    if (s->ctx->top.n_tasks > 1) {
        TT_TRY(gather_rows(s));
        TT_TRY(gather_dump(s));
    }
    if (s->dump[0] != 0 && s->dumped == NULL && s->ctx->top.task == 0)
        return TT_FAIL(s->ctx, TT_EINVAL,
                       "hashes: '%s', which should be dumped, is not a node that ran", s->dump);
    if (s->ctx->top.task > 0)
        return TT_OK; // the first process writes
    if (s->n_rows > 0)
        qsort(s->rows, (size_t)s->n_rows, sizeof(*s->rows), by_place);
    tti_text t = {.ctx = s->ctx};
    tti_text_add(&t, "%s arithmetic %d\n", MAGIC, tti_arithmetic_of(s->ctx));
    for (int64_t i = 0; i < s->n_rows; i++) {
        const tti_hash_row *r = &s->rows[i];
        tti_text_add(&t, "%lld %s:%d %d %016" PRIx64 "\n", (long long)r->step, r->node->name,
                     r->output, r->lane, r->hash);
    }
    if (s->dumped != NULL) {
        tti_text_add(&t, "dump %s ", s->dump);
        for (size_t i = 0; i < s->dumped_bytes; i++)
            tti_text_add(&t, "%02x", (uint8_t)s->dumped[i]);
        tti_text_add(&t, "\n");
    }
    return tti_text_write(&t, path);
}

// ---- comparing -------------------------------------------------------------------------------

static tt_status open_hashes(tt_ctx *ctx, const char *path, FILE **out, int *arithmetic)
{
    char *line = NULL;
    size_t cap = 0;
    FILE *f = fopen(path, "re");
    if (f == NULL)
        return TT_FAIL(ctx, TT_EIO, "cannot read '%s': %s", path, strerror(errno));
    bool good =
        getline(&line, &cap, f) > 0 && sscanf(line, MAGIC " arithmetic %d", arithmetic) == 1;
    free(line);
    if (!good) {
        fclose(f);
        return TT_FAIL(ctx, TT_EPARSE, "'%s' is not a file of hashes ('%s')", path, MAGIC);
    }
    *out = f;
    return TT_OK;
}

// Element size is not known here, so the place is given in bytes and in f32 elements.
static void diff_dumps(tti_text *t, const char *a, const char *b)
{
    size_t i = 0;
    while (a[i] != 0 && a[i] == b[i])
        i++;
    const char *hex = strrchr(a, ' ');
    size_t at = hex == NULL || a + i <= hex ? 0 : (i - (size_t)(hex + 1 - a)) / 2;
    tti_text_add(t, "first differing byte of the dump: %zu (f32 element %zu)\n", at, at / 4);
}

static void describe(tti_text *t, const char *line)
{
    long long step;
    int lane, len = 0;
    char node[TTI_NAME_MAX + 16];
    if (sscanf(line, "%lld %270s %d%n", &step, node, &lane, &len) != 3) {
        tti_text_add(t, "first difference: %s", line);
        return;
    }
    tti_text_add(t, "first difference: step %lld, node %s", step, node);
    if (lane >= 0)
        tti_text_add(t, ", lane %d", lane);
    tti_text_add(t, "\n");
}

tt_status tt_hashes_diff(tt_ctx *ctx, const char *a, const char *b, bool *same, char **report)
{
    if (ctx == NULL)
        return TT_EINVAL;
    if (a == NULL || b == NULL || same == NULL || report == NULL)
        return TT_FAIL(ctx, TT_EINVAL, "hashes: a path or the room for the result is NULL");
    if (tti_is_stuck(ctx))
        return tt_status_of(ctx);
    FILE *fa = NULL, *fb = NULL;
    char *la = NULL, *lb = NULL;
    size_t ca = 0, cb = 0;
    tti_text t = {.ctx = ctx};
    int va = 0, vb = 0;
    tt_status st = open_hashes(ctx, a, &fa, &va);
    if (st == TT_OK)
        st = open_hashes(ctx, b, &fb, &vb);
    if (st == TT_OK && va != vb)
        tti_text_add(&t, "the files are from arithmetic versions %d%s and %d%s: bits may differ\n",
                     va, tti_arithmetic_note(va), vb, tti_arithmetic_note(vb));
    bool equal = true;
    int64_t rows = 0;
    while (st == TT_OK) {
        ssize_t na = getline(&la, &ca, fa), nb = getline(&lb, &cb, fb);
        if (na <= 0 && nb <= 0)
            break;
        bool dumps = na > 0 && nb > 0 && strncmp(la, "dump ", 5) == 0;
        if (na > 0 && nb > 0 && strcmp(la, lb) == 0) {
            rows++;
            continue;
        }
        if (equal && (na <= 0 || nb <= 0))
            tti_text_add(&t, "'%s' ends after %lld hashes, the other file is longer\n",
                         na <= 0 ? a : b, (long long)rows);
        else if (dumps)
            diff_dumps(&t, la, lb);
        else if (equal)
            describe(&t, la);
        equal = false;
        if (na <= 0 || nb <= 0)
            break;
    }
    if (st == TT_OK && equal)
        tti_text_add(&t, "equal: %lld hashes\n", (long long)rows);
    free(la);
    free(lb);
    if (fa != NULL)
        fclose(fa);
    if (fb != NULL)
        fclose(fb);
    if (st != TT_OK)
        return st;
    char *text = tti_text_take(&t);
    if (text == NULL)
        return TT_ENOMEM;
    *same = equal;
    *report = text;
    return TT_OK;
}

// ---- weights ---------------------------------------------------------------------------------

static int by_name(const void *a, const void *b)
{
    return strcmp((*(const tt_node *const *)a)->name, (*(const tt_node *const *)b)->name);
}

// Where its value is, or *room with a copy, to be freed.
static tt_status value_of(tt_session *s, const tt_node *var, size_t bytes, const void **data,
                          void **room)
{
    tti_variable *v;
    if (s->remote == NULL) {
        TT_TRY(tti_session_variable(s, var, &v));
        return tti_variable_look(s->ctx, v, data, room);
    }
    *room = tti_alloc(s->ctx, bytes + 1);
    *data = *room;
    tt_status st = *room == NULL ? TT_ENOMEM : tti_remote_get(s->remote, var, *room, bytes);
    if (st != TT_OK)
        tti_free(s->ctx, *room);
    return st;
}

tt_status tt_weight_hash(tt_session *s, tt_hash *out)
{
    if (s == NULL)
        return TT_EINVAL;
    if (out == NULL)
        return TT_FAIL(s->ctx, TT_EINVAL, "weight hash: the room for it is NULL");
    if (tti_is_stuck(s->ctx))
        return tt_status_of(s->ctx);
    tt_graph *g = s->graph;
    const tt_node **vars = tti_calloc(s->ctx, (size_t)g->n_nodes + 1, sizeof(*vars));
    if (vars == NULL)
        return TT_ENOMEM;
    size_t n = 0;
    for (int64_t i = 0; i < g->n_nodes; i++)
        if (g->nodes[i]->op == &tti_op_variable)
            vars[n++] = g->nodes[i];
    qsort(vars, n, sizeof(*vars), by_name);
    tti_hasher *h = tti_hash_begin(s->ctx);
    tti_hold hold; // all of them as they are at one moment
    tt_status held = tti_store_hold(s->store, s->ctx, true, &hold);
    tt_status st = h == NULL ? TT_ENOMEM : held;
    for (size_t i = 0; st == TT_OK && i < n; i++) {
        const tt_tensor *t = vars[i]->out;
        size_t bytes = (size_t)tt_shape_count(&t->shape) * tt_dtype_bytes(t->dtype);
        int64_t head[TT_MAX_RANK + 2] = {t->dtype, t->shape.rank};
        memcpy(head + 2, t->shape.dim, sizeof(int64_t) * (size_t)t->shape.rank);
        tti_hash_add(h, vars[i]->name, strlen(vars[i]->name) + 1);
        tti_hash_add(h, head, sizeof(int64_t) * (size_t)(t->shape.rank + 2));
        const void *data;
        void *room;
        st = value_of(s, vars[i], bytes, &data, &room);
        if (st != TT_OK)
            break;
        tti_hash_add(h, data, bytes);
        tti_free(s->ctx, room);
    }
    if (held == TT_OK)
        tti_store_let_go(s->store, &hold);
    if (st == TT_OK)
        *out = tti_hash_end(s->ctx, h);
    else if (h != NULL)
        (void)tti_hash_end(s->ctx, h);
    tti_free(s->ctx, vars);
    return st;
}
