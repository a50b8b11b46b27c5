/*
 * share.c - snapshots from one process of a job to others: a head, the table of tensors,
 * then each tensor as one letter, from where it lies.
 */
#include "save/share.h"
#include "base/thread.h"
#include "net/world.h"
#include <stdio.h>
#include <string.h>

#define WAIT_MS (INT64_C(3600) * 1000) // who is lost is found sooner; a disk may be slow
#define LETTER  UINT64_C(0x736e617073686f74)

bool tti_is_first(const tt_ctx *ctx)
{
    return ctx->world == NULL || tti_world_self(ctx->world) == 0;
}

int tti_ranks(const tt_ctx *ctx)
{
    return ctx->world == NULL ? 1 : tti_world_size(ctx->world);
}

tt_status tti_ranks_wait(tt_ctx *ctx, tt_status st, const char *what)
{
    if (tti_ranks(ctx) == 1)
        return st;
    if (st == TT_OK)
        st = tt_status_of(ctx);
    if (st != TT_OK) {
        tti_world_fail_with(ctx, st);
        return st;
    }
    return tti_world_exchange(ctx->world, what, NULL, 0, NULL, WAIT_MS);
}

// ---- the table -------------------------------------------------------------------------------

typedef struct head {
    uint64_t has, table, data; // bytes
    uint64_t has_it;           // the receiver's: nothing is to be sent to it
    int64_t n, n_weights, origin;
} head;

typedef struct row {
    tt_shape shape;
    int32_t dtype;
    uint32_t name; // bytes of the name, its end included, which follow all rows
    uint64_t bytes;
} row;

// state, rows, names, path, job. All processes have one version, so structs are equal.
static char *make_table(tt_ctx *ctx, const tti_snapshot *s, size_t *bytes)
{
    tti_text t = {.ctx = ctx};
    const char *path = s->path != NULL ? s->path : "", *job = s->state.job;
    tti_text_put(&t, (const char *)&s->state, sizeof(s->state));
    for (int64_t i = 0; i < s->n; i++) {
        const tti_named *k = &s->tensors[i];
        row r;
        memset(&r, 0, sizeof(r));
        r.shape = k->shape;
        r.dtype = (int32_t)k->dtype;
        r.name = (uint32_t)strlen(k->name) + 1;
        r.bytes = k->bytes;
        tti_text_put(&t, (const char *)&r, sizeof(r));
    }
    for (int64_t i = 0; i < s->n; i++)
        tti_text_put(&t, s->tensors[i].name, strlen(s->tensors[i].name) + 1);
    tti_text_put(&t, path, strlen(path) + 1);
    tti_text_put(&t, job != NULL ? job : "", job != NULL ? strlen(job) + 1 : 0);
    *bytes = (size_t)t.n;
    return tti_text_take(&t);
}

static tt_status bad_table(tt_ctx *ctx)
{
    return TT_FAIL(ctx, TT_EPARSE, "the snapshot that another rank sent is inconsistent");
}

// Takes a text of the table that ends within it; NULL: it does not.
static char *take_text(tt_ctx *ctx, const char **at, const char *end)
{
    size_t n = strnlen(*at, (size_t)(end - *at));
    if (*at + n >= end)
        return NULL;
    char *copy = tti_strdup(ctx, *at);
    *at += n + 1;
    return copy;
}

static tt_status read_table(tt_ctx *ctx, const head *h, const char *table, tti_snapshot *out)
{
    size_t rows = (size_t)h->n * sizeof(row), names = 0;
    uint64_t data = 0;
    const char *end = table + h->table, *at = table + sizeof(out->state);
    if (h->n < 0 || h->n > (1 << 24) || h->n_weights < 0 || h->n_weights > h->n ||
        sizeof(out->state) + rows > h->table)
        return bad_table(ctx);
    memcpy(&out->state, table, sizeof(out->state));
    out->state.job = NULL;
    out->tensors = tti_calloc(ctx, (size_t)h->n + 1, sizeof(*out->tensors));
    if (out->tensors == NULL)
        return TT_ENOMEM;
    const char *name = at + rows;
    for (int64_t i = 0; i < h->n; i++) {
        row r;
        memcpy(&r, at + (size_t)i * sizeof(r), sizeof(r));
        if (r.name < 1 || r.name > (size_t)(end - name) - names || r.bytes > h->data - data)
            return bad_table(ctx);
        out->tensors[i] =
            (tti_named){.dtype = (tt_dtype)r.dtype, .shape = r.shape, .bytes = (size_t)r.bytes};
        names += r.name;
        data += r.bytes;
    }
    out->names[0] = tti_alloc(ctx, names + 1);
    out->memory[0] = tti_alloc(ctx, (size_t)data + 1);
    if (out->names[0] == NULL || out->memory[0] == NULL)
        return TT_ENOMEM;
    memcpy(out->names[0], name, names);
    out->names[0][names] = '\0';
    const char *to = out->memory[0], *text = out->names[0];
    for (int64_t i = 0; i < h->n; i++) {
        out->tensors[i].name = text;
        out->tensors[i].data = to;
        text += strlen(text) + 1;
        to += out->tensors[i].bytes;
        if (text > out->names[0] + names)
            return bad_table(ctx);
    }
    name += names;
    out->n = h->n;
    out->origin = (tti_origin)h->origin;
    out->n_weights = h->n_weights;
    out->path = take_text(ctx, &name, end);
    if (out->path == NULL)
        return tt_status_of(ctx) != TT_OK ? tt_status_of(ctx) : bad_table(ctx);
    out->state.job = name < end ? take_text(ctx, &name, end) : NULL;
    return tt_status_of(ctx);
}

// ---- sending ---------------------------------------------------------------------------------

// What letters do not record is recorded here.
static tt_status recorded(tt_ctx *ctx, tt_status st)
{
    if (st == TT_OK || tt_status_of(ctx) != TT_OK)
        return st == TT_OK ? TT_OK : tt_status_of(ctx);
    return TT_FAIL(ctx, st, "the tensors of a checkpoint were not transferred between ranks");
}

static tt_status send_all(tt_ctx *ctx, const tti_snapshot *s, const char *table, size_t bytes,
                          const head *wants)
{
    tti_world *w = ctx->world;
    uint32_t run = tti_world_count(w);
    for (int to = 0; to < tti_world_size(w); to++) {
        tti_message l = {LETTER, run, 0, bytes};
        if (to == tti_world_self(w) || wants[to].has_it)
            continue;
        TT_TRY(recorded(ctx, tti_world_send(w, to, &l, table, WAIT_MS)));
        for (int64_t i = 0; i < s->n; i++) {
            l.edge = (uint32_t)i + 1;
            l.bytes = s->tensors[i].bytes;
            TT_TRY(recorded(ctx, tti_world_send(w, to, &l, s->tensors[i].data, WAIT_MS)));
        }
    }
    return TT_OK;
}

static tt_status receive_all(tt_ctx *ctx, int from, const head *h, tti_snapshot *out)
{
    tti_message l = {LETTER, tti_world_count(ctx->world), 0, h->table};
    char *table = tti_alloc(ctx, (size_t)h->table + 1);
    if (table == NULL)
        return TT_ENOMEM;
    tt_status st = recorded(ctx, tti_world_receive(ctx->world, from, &l, table, WAIT_MS));
    if (st == TT_OK)
        st = read_table(ctx, h, table, out);
    tti_free(ctx, table);
    for (int64_t i = 0; st == TT_OK && i < out->n; i++) {
        char *to = out->memory[0] + ((const char *)out->tensors[i].data - out->memory[0]);
        l.edge = (uint32_t)i + 1;
        l.bytes = out->tensors[i].bytes;
        st = recorded(ctx, tti_world_receive(ctx->world, from, &l, to, WAIT_MS));
    }
    if (st != TT_OK)
        tti_snapshot_free(ctx, out);
    return st;
}

tt_status tti_snapshot_share_from(tt_ctx *ctx, int from, bool has_it, tti_snapshot *s, bool *has)
{
    head h = {.has = 0, .has_it = has_it}, all[TT_MAX_TASKS];
    size_t bytes = 0;
    char *table = NULL;
    bool sends = tti_world_self(ctx->world) == from && *has;
    if (sends) {
        table = make_table(ctx, s, &bytes);
        if (table == NULL)
            return TT_ENOMEM;
        h = (head){
            .has = 1, .table = bytes, .n = s->n, .n_weights = s->n_weights, .origin = s->origin};
        for (int64_t i = 0; i < s->n; i++)
            h.data += s->tensors[i].bytes;
    }
    tt_status st = tti_world_exchange(ctx->world, "the checkpoint", &h, sizeof(h), all, WAIT_MS);
    if (st == TT_OK && sends)
        st = send_all(ctx, s, table, bytes, all);
    tti_free(ctx, table);
    if (st != TT_OK || has_it || tti_world_self(ctx->world) == from)
        return st;
    *has = all[from].has != 0;
    memset(s, 0, sizeof(*s));
    return *has ? receive_all(ctx, from, &all[from], s) : TT_OK;
}

tt_status tti_snapshot_share(tt_ctx *ctx, tt_status st, tti_snapshot *s, bool *has)
{
    return tti_ranks(ctx) == 1 || st != TT_OK ? st : tti_snapshot_share_from(ctx, 0, false, s, has);
}
