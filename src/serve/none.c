/*
 * none.c - servers and connections in a build without ZeroMQ: opening says so.
 */
#include "serve/serve.h"

#ifndef TUTTI_HAVE_ZMQ

#define NONE "this build has no ZeroMQ: install libzmq3-dev and build again"

tt_status tti_listening_open(tt_ctx *ctx, const char *bind, tti_listening **out, int *port)
{
    (void)bind, (void)out, (void)port;
    return TT_FAIL(ctx, TT_EUNSUPPORTED, "no server: " NONE);
}

tt_status tti_listening_start(tti_listening *l, tti_host *h)
{
    (void)l, (void)h;
    return TT_EUNSUPPORTED;
}

bool tti_listening_drain(tti_listening *l, int64_t ms)
{
    (void)l, (void)ms;
    return true;
}

void tti_listening_close(tti_listening *l)
{
    (void)l;
}

tt_status tti_channel_open(tt_ctx *ctx, const tti_channel_opts *o, tti_channel **out)
{
    (void)out;
    return TT_FAIL(ctx, TT_EUNSUPPORTED, "%s cannot be reached: " NONE, o->target);
}

void tti_channel_close(tti_channel *c)
{
    (void)c;
}

const char *tti_channel_target(const tti_channel *c)
{
    (void)c;
    return "";
}

int64_t tti_channel_run_ms(const tti_channel *c)
{
    (void)c;
    return 0;
}

tt_status tti_channel_send(tti_channel *c, tti_request kind, const tti_piece *pieces, int n)
{
    (void)c, (void)kind, (void)pieces, (void)n;
    return TT_EUNSUPPORTED;
}

tt_status tti_channel_receive(tti_channel *c, int64_t wait_ms, tti_reader *out)
{
    (void)c, (void)wait_ms, (void)out;
    return TT_EUNSUPPORTED;
}

tt_status tti_channel_ask(tti_channel *c, tti_request kind, tti_text *t, int64_t wait_ms,
                          tti_reader *out)
{
    (void)c, (void)kind, (void)wait_ms, (void)out;
    tti_text_free(t);
    return TT_EUNSUPPORTED;
}

#endif
