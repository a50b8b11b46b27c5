/*
 * shared.c - variables of plans that span processes.
 *
 * All processes have the same list of copies and pieces of a variable; each has memory for its own,
 * in segments that processes of one host map, so that plans read them where they are. Between runs
 * the value of a variable is with all copies, or in_parts: each process has fresh what its devices
 * wrote, and reading the whole is done by all together, with letters. What is told, and to whom,
 * follows from the list alone, so all processes take part or none does.
 */
#include "net/world.h"
#include "run/run.h"
#include <stdlib.h>
#include <string.h>

#define ALIGN 64

static tti_copy *copy_of(tti_variable *v, int task)
{
    for (int i = 0; i < v->n_copies; i++)
        if (v->copy[i].task == task)
            return &v->copy[i];
    return NULL;
}

tti_copy *tti_shared_copy(tti_variable *v)
{
    return copy_of(v, v->ctx->top.task);
}

static tti_copy *copy_on(const tti_variable *v, const tti_device *d)
{
    for (int i = 0; i < v->n_copies; i++)
        if (strcmp(v->copy[i].device, d->name) == 0)
            return (tti_copy *)&v->copy[i];
    return NULL;
}

static tti_piece *piece_of(const tti_variable *v, const tti_want *w)
{
    for (int i = 0; i < v->n_pieces; i++)
        if (v->piece[i].begin == w->begin && v->piece[i].bytes == w->bytes &&
            strcmp(v->piece[i].device, w->dev->name) == 0)
            return (tti_piece *)&v->piece[i];
    return NULL;
}

size_t tti_shared_needs(const tti_variable *v, const tti_want *w)
{
    return (w->is_piece ? piece_of(v, w) != NULL : copy_on(v, w->dev) != NULL) ? 0 : w->bytes;
}

static int task_of(const tt_ctx *ctx, const char *device)
{
    for (int d = 0; d < ctx->top.n_devices; d++)
        if (strcmp(ctx->top.devices[d]->name, device) == 0)
            return ctx->top.devices[d]->task;
    return 0;
}

// ---- telling the value -----------------------------------------------------------------------

// One range of the value from a process to those of a set.
typedef struct telling {
    int from;
    uint64_t to; // bit by rank
    size_t begin, bytes;
} telling;

static tt_status failed(tti_variable *v, tt_status st, int rank)
{
    if (st != TT_ETIMEOUT)
        return st;
    return tti_world_stuck(v->ctx->world, rank, v->name, v->ctx->deadline_ms);
}

static tt_status tell(tti_variable *v, const telling *t, int n, const char *have, char *out)
{
    tt_ctx *ctx = v->ctx;
    tti_message l = {.plan = tti_hash64(v->name, strlen(v->name), 7) >> 1, .run = v->n_told++};
    tti_world_doing(ctx->world, "read", v->name);
    for (int pass = 0; pass < 2; pass++) { // all that goes out, then all that comes in
        for (int i = 0; i < n; i++) {
            l.edge = (uint32_t)i;
            l.bytes = t[i].bytes;
            bool mine = t[i].from == ctx->top.task;
            for (int r = 0; pass == 0 && mine && r < ctx->top.n_tasks; r++) {
                if ((t[i].to >> r & 1u) == 0)
                    continue;
                tt_status st =
                    tti_world_send(ctx->world, r, &l, have + t[i].begin, ctx->deadline_ms);
                if (st != TT_OK)
                    return failed(v, st, r);
            }
            if (pass == 0 || mine || (t[i].to >> ctx->top.task & 1u) == 0)
                continue;
            tt_status st =
                tti_world_receive(ctx->world, t[i].from, &l, out + t[i].begin, ctx->deadline_ms);
            if (st != TT_OK)
                return failed(v, st, t[i].from);
        }
    }
    tti_world_doing(ctx->world, NULL, NULL);
    return TT_OK;
}

tt_status tti_shared_read(tti_variable *v, void *out)
{
    tt_ctx *ctx = v->ctx;
    uint64_t all = ctx->top.n_tasks == 64 ? UINT64_MAX : ((uint64_t)1 << ctx->top.n_tasks) - 1,
             have = 0;
    if (v->n_copies == 0) {
        memcpy(out, v->local, v->bytes);
        return TT_OK;
    }
    tti_copy *own = tti_shared_copy(v);
    const char *data = own == NULL ? NULL : own->data;
    if (v->in_parts) {
        telling t[TTI_MAX_DEVICES];
        for (int i = 0; i < v->n_pieces; i++) {
            const tti_piece *p = &v->piece[i];
            int from = task_of(ctx, p->device);
            t[i] = (telling){from, all & ~((uint64_t)1 << from), p->begin, p->bytes};
            if (from == ctx->top.task && data != out)
                memcpy((char *)out + p->begin, data + p->begin, p->bytes);
        }
        return tell(v, t, v->n_pieces, data, out);
    }
    for (int i = 0; i < v->n_copies; i++)
        have |= (uint64_t)1 << v->copy[i].task;
    if (own != NULL && data != out)
        memcpy(out, data, v->bytes);
    if (have == all)
        return TT_OK;
    telling t = {__builtin_ctzll(have), all & ~have, 0, v->bytes};
    return tell(v, &t, 1, data, out);
}

// Plans use pieces of it alone: of a process's copy no more than its pieces is ever touched.
static bool is_cut(const tti_variable *v)
{
    for (int i = 0; i < v->n_copies; i++)
        if (v->copy[i].is_whole)
            return false;
    return v->n_pieces > 0 && !v->is_mixed;
}

// The value, or this process's pieces of it, into a copy.
static void put(const tti_variable *v, void *copy, const void *data)
{
    if (copy == data)
        return;
    if (!is_cut(v))
        memcpy(copy, data, v->bytes);
    for (int i = 0; i < v->n_pieces && is_cut(v); i++) {
        const tti_piece *p = &v->piece[i];
        if (task_of(v->ctx, p->device) == v->ctx->top.task)
            memcpy((char *)copy + p->begin, (const char *)data + p->begin, p->bytes);
    }
}

tt_status tti_shared_write(tti_variable *v, const void *data)
{
    tt_ctx *ctx = v->ctx;
    if (v->n_copies > 0) // others may still be in a run that reads this process's
        TT_TRY(tti_world_exchange(ctx->world, "a variable is set", NULL, 0, NULL, 0));
    for (int i = 0; i < v->n_copies; i++)
        if (v->copy[i].task == ctx->top.task)
            put(v, v->copy[i].data, data);
    if (v->local != NULL && v->local != data)
        memcpy(v->local, data, v->bytes);
    v->in_parts = is_cut(v);
    return TT_OK;
}

// What was in parts becomes whole with every process that has a copy.
static tt_status make_whole(tti_variable *v)
{
    tti_copy *own = tti_shared_copy(v);
    void *room = own != NULL ? own->data : tti_alloc(v->ctx, v->bytes + 1);
    if (room == NULL)
        return TT_ENOMEM;
    tt_status st = tti_shared_read(v, room);
    for (int i = 0; st == TT_OK && i < v->n_copies; i++)
        if (v->copy[i].task == v->ctx->top.task && v->copy[i].data != room)
            memcpy(v->copy[i].data, room, v->bytes);
    if (own == NULL)
        tti_free(v->ctx, room);
    v->in_parts = false;
    return st;
}

// Copies of other devices than those that were written get the value.
static tt_status refresh_copies(tti_variable *v, uint64_t devices)
{
    tt_ctx *ctx = v->ctx;
    tti_copy *fresh = NULL, *stale = NULL;
    uint64_t have = 0, lack = 0;
    for (int i = 0; i < v->n_copies; i++) {
        tti_copy *c = &v->copy[i];
        bool is_fresh = false;
        for (int d = 0; d < ctx->top.n_devices; d++)
            is_fresh |=
                (devices >> d & 1u) != 0 && strcmp(ctx->top.devices[d]->name, c->device) == 0;
        *(is_fresh ? &have : &lack) |= (uint64_t)1 << c->task;
        if (c->task == ctx->top.task)
            *(is_fresh ? &fresh : &stale) = c;
    }
    if (lack == 0 || have == 0)
        return TT_OK;
    if ((lack & ~have) != 0) {
        telling t = {__builtin_ctzll(have), lack & ~have, 0, v->bytes};
        TT_TRY(
            tell(v, &t, 1, fresh == NULL ? NULL : fresh->data, stale == NULL ? NULL : stale->data));
    }
    if (stale == NULL)
        return TT_OK;
    const void *from = fresh != NULL ? fresh->data : stale->data;
    for (int i = 0; i < v->n_copies; i++)
        if (v->copy[i].task == ctx->top.task && v->copy[i].data != from)
            memcpy(v->copy[i].data, from, v->bytes);
    return TT_OK;
}

tt_status tti_shared_refresh(tti_variable *v, uint64_t devices, bool in_pieces)
{
    if (!in_pieces)
        return refresh_copies(v, devices);
    v->in_parts = true;
    bool whole = v->is_mixed;
    for (int i = 0; i < v->n_copies; i++)
        whole |= v->copy[i].is_whole;
    return whole ? make_whole(v) : TT_OK;
}

// ---- plans want memory -----------------------------------------------------------------------

// What a plan adds: copies without memory yet, at offsets in a segment of their process.
typedef struct addition {
    tti_variable *v;
    int copy;
    size_t offset;
} addition;

typedef struct binder {
    tt_store *store;
    tt_ctx *ctx;
    addition *added;
    int64_t n, cap;
    size_t bytes[TT_MAX_TASKS];
    tti_segment segments[TT_MAX_TASKS];
} binder;

static tt_status add_copy(binder *b, tti_variable *v, const tti_device *d)
{
    tt_ctx *ctx = b->ctx;
    if (v->n_copies == TTI_MAX_DEVICES)
        return TT_FAIL(ctx, TT_EUNSUPPORTED, "variable '%s': more than %d copies", v->name,
                       TTI_MAX_DEVICES);
    if (!tti_grow(ctx, &b->added, &b->cap, b->n + 1, sizeof(*b->added)))
        return TT_ENOMEM;
    b->added[b->n++] = (addition){v, v->n_copies, b->bytes[d->task]};
    b->bytes[d->task] += (v->bytes + ALIGN - 1) & ~(size_t)(ALIGN - 1);
    tti_copy *c = &v->copy[v->n_copies++];
    *c = (tti_copy){.task = d->task, .is_bound = true};
    memcpy(c->device, d->name, sizeof(d->name));
    return TT_OK;
}

// Before the list changes: the value with every process, where a new copy could not have it.
static tt_status keep_value(tti_variable *v, const tti_want *w)
{
    if (v->in_parts && !(w->is_piece && piece_of(v, w) != NULL))
        TT_TRY(make_whole(v));
    if (v->n_copies == 0 || v->local != NULL || copy_of(v, w->dev->task) != NULL)
        return TT_OK;
    void *data = tti_host_alloc(NULL, v->bytes);
    if (data == NULL)
        return TT_FAIL(v->ctx, TT_ENOMEM, "variable '%s': out of memory for %zu bytes", v->name,
                       v->bytes);
    tt_status st = tti_shared_read(v, data);
    v->local = data;
    return st;
}

static tt_status add_piece(binder *b, tti_variable *v, const tti_want *w)
{
    if (piece_of(v, w) != NULL)
        return TT_OK;
    for (int i = 0; i < v->n_pieces; i++) // another cut of the same
        v->is_mixed |= v->piece[i].begin < w->begin + w->bytes &&
                       w->begin < v->piece[i].begin + v->piece[i].bytes;
    if (v->is_mixed)
        return TT_FAIL(b->ctx, TT_EUNSUPPORTED,
                       "variable '%s': plans of one job divide it into different pieces", v->name);
    if (v->n_pieces == TTI_MAX_DEVICES)
        return TT_FAIL(b->ctx, TT_EUNSUPPORTED, "variable '%s': more than %d pieces", v->name,
                       TTI_MAX_DEVICES);
    tti_piece *p = &v->piece[v->n_pieces++];
    *p = (tti_piece){.begin = w->begin, .bytes = w->bytes};
    memcpy(p->device, w->dev->name, sizeof(w->dev->name));
    tti_count_variable(b->ctx, w->dev->name, (int64_t)w->bytes);
    return TT_OK;
}

static tt_status list_want(binder *b, const tti_want *w)
{
    tti_variable *v;
    TT_TRY(tti_store_get(b->store, w->var, w->dev, &v));
    TT_TRY(keep_value(v, w));
    if (w->is_piece) {
        if (copy_of(v, w->dev->task) == NULL)
            TT_TRY(add_copy(b, v, w->dev));
        return add_piece(b, v, w);
    }
    tti_copy *c = copy_on(v, w->dev);
    if (c == NULL) {
        TT_TRY(add_copy(b, v, w->dev));
        c = &v->copy[v->n_copies - 1];
        tti_count_variable(b->ctx, w->dev->name, (int64_t)w->bytes);
    }
    c->is_whole = true;
    return TT_OK;
}

// Own memory, filled; then everybody's names.
static tt_status make_memory(binder *b)
{
    tt_ctx *ctx = b->ctx;
    tti_segment_name mine = {0}, names[TT_MAX_TASKS];
    tti_segment *own = &b->segments[ctx->top.task];
    if (b->bytes[ctx->top.task] > 0) {
        TT_TRY(tti_segment_new(ctx, b->bytes[ctx->top.task], own));
        mine = tti_segment_name_of(own);
    }
    for (int64_t i = 0; i < b->n; i++) {
        const addition *a = &b->added[i];
        if (a->v->copy[a->copy].task != ctx->top.task)
            continue;
        char *to = (char *)own->at + a->offset;
        const void *from = a->v->local;
        for (int k = 0; k < a->v->n_copies && from == NULL; k++)
            from = a->v->copy[k].task == ctx->top.task ? a->v->copy[k].data : NULL;
        a->v->copy[a->copy].data = to;
        if (from == NULL)
            return TT_FAIL(ctx, TT_EINVAL, "variable '%s' has no value: this is a bug in the store",
                           a->v->name);
        put(a->v, to, from);
    }
    TT_TRY(tti_world_exchange(ctx->world, "variables", &mine, sizeof(mine), names, 0));
    for (int r = 0; r < ctx->top.n_tasks; r++)
        if (r != ctx->top.task && b->bytes[r] > 0 && tti_world_rank(ctx->world, r)->shares_memory)
            TT_TRY(tti_segment_map(ctx, &names[r], &b->segments[r]));
    TT_TRY(tti_world_exchange(ctx->world, "variables are there", NULL, 0, NULL, 0));
    tti_segment_seal(own);
    for (int64_t i = 0; i < b->n; i++) {
        const addition *a = &b->added[i];
        tti_copy *c = &a->v->copy[a->copy];
        if (b->segments[c->task].at != NULL)
            c->data = (char *)b->segments[c->task].at + a->offset;
    }
    return TT_OK;
}

static void give_addresses(binder *b, const tti_want *w, int n, void **out)
{
    for (int i = 0; i < n; i++) {
        tti_variable *v = tti_store_find(b->store, w[i].var->name);
        const tti_copy *c = w[i].is_piece ? copy_of(v, w[i].dev->task) : copy_on(v, w[i].dev);
        out[i] = c->data == NULL ? NULL : (char *)c->data + (w[i].is_piece ? w[i].begin : 0);
        tti_host_free(NULL, v->local); // with a copy now, or with whoever has one
        v->local = NULL;
        v->in_parts |= is_cut(v);
    }
}

tt_status tti_shared_bind(tt_store *s, tt_ctx *ctx, const tti_want *w, int n, void **out)
{
    binder b = {.store = s, .ctx = ctx};
    tt_status st = TT_OK;
    for (int i = 0; st == TT_OK && i < n; i++)
        st = list_want(&b, &w[i]);
    if (st == TT_OK && b.n > 0)
        st = make_memory(&b);
    for (int r = 0; r < ctx->top.n_tasks; r++) {
        if (b.segments[r].at == NULL)
            continue;
        tti_segment *grown = s->segments;
        if (tti_grow(NULL, &grown, &s->cap_segments, s->n_segments + 1, sizeof(*grown))) {
            s->segments = grown;
            s->segments[s->n_segments++] = b.segments[r];
        } else {
            st = TT_ENOMEM;
        }
    }
    if (st == TT_OK)
        give_addresses(&b, w, n, out);
    tti_free(ctx, b.added);
    return st;
}

// ---- when a context ends ---------------------------------------------------------------------

static int by_name(const void *a, const void *b)
{
    return strcmp((*(tti_variable *const *)a)->name, (*(tti_variable *const *)b)->name);
}

// One copy in memory of its own; what cannot be read any more is zero, and the context says why.
static void leave_one(tti_variable *v, tt_ctx *ctx)
{
    void *data = v->n_copies == 0 ? v->local : tti_host_alloc(NULL, v->bytes);
    bool read = v->n_copies == 0 ||
                (data != NULL && tt_status_of(ctx) == TT_OK && tti_shared_read(v, data) == TT_OK);
    if (data != NULL && !read)
        memset(data, 0, v->bytes);
    v->local = NULL;
    v->ctx = NULL;
    v->in_parts = false;
    v->n_pieces = 0;
    v->n_copies = data != NULL;
    v->copy[0] = (tti_copy){.data = data};
    memcpy(v->copy[0].device, "cpu:0", 6);
}

void tti_shared_leave(tt_store *s, tt_ctx *ctx)
{
    if (s == NULL || ctx->top.n_tasks < 2 || atomic_load(&s->refs) < 2)
        return;
    tti_variable **list = tti_calloc(NULL, (size_t)s->n + 1, sizeof(*list));
    int64_t n = 0;
    for (int64_t i = 0; list != NULL && i < s->cap; i++)
        for (tti_variable *v = s->table[i]; v != NULL; v = v->next)
            if (v->ctx == ctx)
                list[n++] = v;
    if (n > 0) // in one order with all processes
        qsort(list, (size_t)n, sizeof(*list), by_name);
    for (int64_t i = 0; i < n; i++)
        leave_one(list[i], ctx);
    for (int64_t i = 0; list != NULL && i < s->n_segments; i++)
        tti_segment_free(&s->segments[i]);
    s->n_segments = list != NULL ? 0 : s->n_segments;
    tti_free(NULL, list);
}
