/*
 * gpu_messages.c - messages between processes whose values are in the memory of a GPU. They go
 * through pinned memory of the host: a send copies there, waits for the copy and sends; a receive
 * is copied from there in the order of the device's other work. No process waits on the GPU for
 * another one, so a peer that is late or lost is seen by the deadlines of the host.
 */
#include "net/world.h"
#include "run/run.h"
#include <string.h>
#include <sys/uio.h>

static tti_message message_of(const tt_session *s, const tti_plan *p, const tti_transfer *m, int i)
{
    return (tti_message){p->fingerprint, s->sequence, (uint32_t)(m->edge + i), m->bytes};
}

// The values of a send, or the ranges of one, side by side in the pinned memory.
static tt_status copy_out(const tti_plan *p, tti_device *d, const tti_pnode *pn, const tti_call *c,
                          char *staged)
{
    const tti_streams *st = d->backend->streams;
    const tti_transfer *m = c->transfer;
    (void)st->stream(d); // its card is the one that copies go by
    for (int k = 0; m->parts != NULL && k < pn->n_in; k++) {
        size_t bytes = p->values[pn->in[k]].bytes;
        TT_TRY(st->copy(d, staged, d, c->launch.in[k].data, bytes));
        staged += bytes;
    }
    for (int i = 0; m->parts == NULL && c->launch.n_in > 0 && i < m->n; i++) {
        const char *data = c->launch.in[0].data;
        TT_TRY(st->copy(d, staged + (size_t)i * m->bytes, d,
                        data + m->begin + (size_t)i * m->stride, m->bytes));
    }
    return TT_OK;
}

tt_status tti_submit_messages(tt_session *s, tti_plan *p, tti_device *d, const tti_entry *en,
                              const tti_call *c)
{
    const tti_transfer *m = c->transfer;
    const tti_pnode *pn = &p->nodes[en->pnode];
    const tti_streams *streams = d->backend->streams;
    char *staged = p->exe.messages + c->staged_at;
    bool sends = pn->kind == TTI_SEND;
    tt_status st = TT_OK;
    if (sends) {
        TT_TRY(copy_out(p, d, pn, c, staged));
        TT_TRY(streams->sync(d, tti_deadline(s->sync_ms)));
    }
    for (int i = 0; i < m->n && st == TT_OK; i++) {
        tti_message l = message_of(s, p, m, i);
        char *at = staged + (size_t)i * m->bytes;
        st = sends ? tti_world_send(s->ctx->world, m->peer, &l, at, s->wait_ms)
                   : tti_world_receive(s->ctx->world, m->peer, &l, at, s->wait_ms);
    }
    if (st == TT_ETIMEOUT)
        st = tti_world_stuck(s->ctx->world, m->peer, pn->node->name, s->wait_ms);
    if (st != TT_OK || sends || c->launch.n_out == 0)
        return st;
    (void)streams->stream(d);
    return streams->copy(d, c->launch.out[0].data, NULL, staged, (size_t)m->n * m->bytes);
}
