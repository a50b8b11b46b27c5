/*
 * call_bytes.c - bytes whose length the others do not know: a broadcast and a gather of single
 * bytes whose counts differ. Members say theirs when they agree on the call, and the result is
 * allocated then.
 */
#include "comm/comm.h"
#include <string.h>

static tt_status begin(tt_comm *c, tti_collective_kind kind, const tt_bytes *in,
                       const tt_comm_opts *opts, tti_comm_call *call, tt_member **members)
{
    const char *name = tti_call_name(kind);
    *members = tti_calloc(c->ctx, (size_t)c->n_members, sizeof(**members));
    if (*members == NULL)
        return TT_ENOMEM;
    TT_TRY(tti_call_begin(c->ctx, kind, *members, c->n_members, c->first, c->total, opts, call));
    call->what.dtype = TT_U8;
    int root = call->what.root - c->first;
    bool is_one = kind == TTI_BROADCAST_BYTES;
    int first = is_one ? TTI_MAX(root, 0) : 0;
    int end = !is_one ? c->n_members : root >= 0 && root < c->n_members ? root + 1 : first;
    if (in == NULL && first < end)
        return TT_FAIL(c->ctx, TT_EINVAL, "%s: in is NULL, and member %d is of this process", name,
                       c->first + first);
    for (int i = first; i < end; i++) {
        const tt_bytes *b = &in[is_one ? 0 : i];
        if (b->bytes > (size_t)1 << 48)
            return TT_FAIL(c->ctx, TT_EINVAL,
                           "%s: member %d has %zu bytes; at most %zu are allowed", name,
                           c->first + i, b->bytes, (size_t)1 << 48);
        (*members)[i] = (tt_member){.in = b->data, .count = (int64_t)b->bytes};
    }
    return TT_OK;
}

static tt_status bytes(tt_comm *c, tti_collective_kind kind, const tt_bytes *in, tt_bytes *out,
                       const tt_comm_opts *opts)
{
    tti_comm_call call;
    tt_member *members = NULL;
    tti_handle_clear(opts);
    if (out != NULL) // what fails leaves nothing to free
        memset(out, 0,
               sizeof(*out) * (size_t)(kind == TTI_GATHER_BYTES && c != NULL ? c->total : 1));
    TT_TRY(tti_comm_ready(c));
    if (out == NULL)
        return tti_comm_end(c, TT_FAIL(c->ctx, TT_EINVAL, "%s: out is NULL", tti_call_name(kind)));
    tt_status st = begin(c, kind, in, opts, &call, &members);
    if (st == TT_OK) {
        call.made = out;
        st = tti_call_submit(c, &call);
    }
    tti_free(c->ctx, members);
    return tti_comm_end(c, st);
}

tt_status tt_broadcast_bytes_with(tt_comm *c, const tt_bytes *in, tt_bytes *out,
                                  const tt_comm_opts *opts)
{
    return bytes(c, TTI_BROADCAST_BYTES, in, out, opts);
}

tt_status tt_gather_bytes_with(tt_comm *c, const tt_bytes *in, tt_bytes *out,
                               const tt_comm_opts *opts)
{
    return bytes(c, TTI_GATHER_BYTES, in, out, opts);
}

void tt_bytes_free(tt_ctx *ctx, tt_bytes *out)
{
    if (ctx == NULL || out == NULL)
        return;
    tti_free(ctx, (void *)out->data);
    *out = (tt_bytes){NULL, 0};
}
