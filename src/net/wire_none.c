/*
 * wire_none.c - wire.h in a build without ZeroMQ: opening says so, and nothing else is ever called.
 */
#include "net/wire.h"

#ifndef TUTTI_HAVE_ZMQ

tt_status tti_wire_open(tt_ctx *ctx, const tti_wire_opts *o, tti_wire **out)
{
    (void)out;
    return TT_FAIL(ctx, TT_EUNSUPPORTED,
                   "%d tasks, but this build has no ZeroMQ: one process; install libzmq3-dev and "
                   "build again",
                   o->n);
}

void tti_wire_forget(tti_wire *w, int rank)
{
    (void)w;
    (void)rank;
}

void tti_wire_close(tti_wire *w, int linger_ms)
{
    (void)w, (void)linger_ms;
}

int tti_wire_data_port(const tti_wire *w)
{
    (void)w;
    return 0;
}

tt_status tti_wire_connect(tti_wire *w, int rank, const char *address)
{
    (void)w, (void)rank, (void)address;
    return TT_EUNSUPPORTED;
}

tt_status tti_wire_connect_data(tti_wire *w, int rank, const char *address, const uint8_t *key)
{
    (void)key;
    return tti_wire_connect(w, rank, address);
}

const uint8_t *tti_wire_data_key(const tti_wire *w)
{
    (void)w;
    return NULL;
}

void tti_wire_taken(tti_wire *w, int by, uint32_t n)
{
    (void)w, (void)by, (void)n;
}

bool tti_wire_has_taken(tti_wire *w, int rank)
{
    (void)w, (void)rank;
    return true;
}

tti_wire_state tti_wire_state_of(const tti_wire *w, int rank)
{
    (void)w, (void)rank;
    return TTI_WIRE_SILENT;
}

int tti_wire_refused(const tti_wire *w)
{
    (void)w;
    return 0;
}

int tti_wire_forged(const tti_wire *w)
{
    (void)w;
    return 0;
}

void tti_wire_tell(tti_wire *w, int to, const void *message, size_t bytes)
{
    (void)w, (void)to, (void)message, (void)bytes;
}

tt_status tti_wire_put(tti_wire *w, int to, const struct iovec *parts, int n, int wait_ms)
{
    (void)w, (void)to, (void)parts, (void)n, (void)wait_ms;
    return TT_EUNSUPPORTED;
}

void tti_wire_serve(tti_wire *w, int timeout_ms, const tti_wire_calls *c)
{
    (void)w, (void)timeout_ms, (void)c;
}

void tti_wire_answer(tti_wire *w, const void *message, size_t bytes)
{
    (void)w, (void)message, (void)bytes;
}

void tti_wire_met(tti_wire *w)
{
    (void)w;
}

void tti_wire_wake(tti_wire *w)
{
    (void)w;
}

#else
typedef int tti_wire_none; // a source is not empty
#endif
