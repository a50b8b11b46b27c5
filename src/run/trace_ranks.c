/*
 * trace_ranks.c - one trace of several processes. Their clocks are compared first: those of one
 * host are the same; of another host the offset is taken from the fastest of a few round trips with
 * rank 0, so it is known to half of that round trip's time. Then each makes the events of its own
 * devices, and rank 0 gets them.
 */
#include "net/world.h"
#include "run/run.h"
#include <string.h>

#define ROUND_TRIPS 8

static tt_status late(const tt_session *s, int rank, tt_status st)
{
    if (st != TT_ETIMEOUT)
        return st;
    return tti_world_stuck(s->ctx->world, rank, "trace", s->ctx->deadline_ms);
}

static tt_status send(const tt_session *s, int to, tti_message *m, const void *data, size_t bytes)
{
    m->edge++;
    m->bytes = bytes;
    return late(s, to, tti_world_send(s->ctx->world, to, m, data, s->ctx->deadline_ms));
}

static tt_status receive(const tt_session *s, int from, tti_message *m, void *data, size_t bytes)
{
    m->edge++;
    m->bytes = bytes;
    return late(s, from, tti_world_receive(s->ctx->world, from, m, data, s->ctx->deadline_ms));
}

// Rank 0: how far the clock of a rank is ahead.
static tt_status ask_clock(const tt_session *s, int rank, tti_message m, int64_t *ahead)
{
    int64_t best = INT64_MAX, offset = 0;
    for (int i = 0; i < ROUND_TRIPS; i++) {
        int64_t begin = tti_now_ns(), its;
        TT_TRY(send(s, rank, &m, &begin, sizeof(begin)));
        TT_TRY(receive(s, rank, &m, &its, sizeof(its)));
        int64_t end = tti_now_ns();
        if (end - begin < best) {
            best = end - begin;
            offset = its - (begin + (end - begin) / 2);
        }
    }
    *ahead = offset;
    return send(s, rank, &m, ahead, sizeof(*ahead));
}

static tt_status answer_clock(const tt_session *s, tti_message m, int64_t *ahead)
{
    for (int i = 0; i < ROUND_TRIPS; i++) {
        int64_t asked, now;
        TT_TRY(receive(s, 0, &m, &asked, sizeof(asked)));
        now = tti_now_ns();
        TT_TRY(send(s, 0, &m, &now, sizeof(now)));
    }
    return receive(s, 0, &m, ahead, sizeof(*ahead));
}

// How far this process's clock is ahead of rank 0's, in nanoseconds.
static tt_status compare_clocks(const tt_session *s, tti_message m, int64_t *ahead)
{
    const tti_world *w = s->ctx->world;
    const char *first = tti_world_rank(w, 0)->host;
    *ahead = 0;
    if (s->ctx->top.task > 0)
        return strcmp(tti_world_rank(w, s->ctx->top.task)->host, first) == 0
                   ? TT_OK
                   : answer_clock(s, m, ahead);
    for (int r = 1; r < s->ctx->top.n_tasks; r++) {
        int64_t its;
        if (strcmp(tti_world_rank(w, r)->host, first) != 0)
            TT_TRY(ask_clock(s, r, m, &its));
    }
    return TT_OK;
}

// The events of rank r, which come as bytes of text.
static tt_status take_events(const tt_session *s, int r, size_t bytes, tti_message m, tti_text *t)
{
    char *text = tti_alloc(s->ctx, bytes + 1);
    if (text == NULL)
        return TT_ENOMEM;
    tt_status st = receive(s, r, &m, text, bytes);
    text[st == TT_OK ? bytes : 0] = '\0';
    if (st == TT_OK)
        tti_text_add(t, "%s", text);
    tti_free(s->ctx, text);
    return st;
}

// Where this process's first span began, by rank 0's clock; and how long its events are as text.
typedef struct summary {
    int64_t first;
    uint64_t bytes;
} summary;

static tt_status exchange_all(const tt_session *s, const summary *mine, summary *all)
{
    return tti_world_exchange(s->ctx->world, "trace", mine, sizeof(*mine), all, 0);
}

static tt_status gather(const tt_session *s, summary *all, tti_text *t)
{
    tt_ctx *ctx = s->ctx;
    tti_message m = {.plan = tti_hash64("trace", 5, 0) >> 1, .run = tti_world_count(ctx->world)};
    int64_t ahead, start = INT64_MAX;
    TT_TRY(compare_clocks(s, m, &ahead));
    m.edge = 1000; // behind those of clocks
    int64_t first = tti_trace_first(s);
    summary mine = {.first = first == INT64_MAX ? first : first - ahead};
    TT_TRY(exchange_all(s, &mine, all));
    for (int r = 0; r < ctx->top.n_tasks; r++)
        start = TTI_MIN(start, all[r].first);
    start = start == INT64_MAX ? 0 : start; // nothing was recorded
    tti_text own = {.ctx = ctx};
    tti_trace_events(s, start + ahead, &own);
    char *text = tti_text_take(&own);
    if (text == NULL)
        return TT_ENOMEM;
    mine.bytes = strlen(text);
    tt_status st = exchange_all(s, &mine, all);
    if (st == TT_OK && ctx->top.task > 0)
        st = send(s, 0, &m, text, (size_t)mine.bytes);
    else if (st == TT_OK)
        tti_text_add(t, "%s", text);
    tti_free(ctx, text);
    for (int r = 1; r < ctx->top.n_tasks && ctx->top.task == 0 && st == TT_OK; r++)
        st = take_events(s, r, (size_t)all[r].bytes, m, t);
    return st;
}

tt_status tti_trace_gather(const tt_session *s, tti_text *t)
{
    summary *all = tti_calloc(s->ctx, (size_t)s->ctx->top.n_tasks, sizeof(*all));
    if (all == NULL)
        return TT_ENOMEM;
    tt_status st = gather(s, all, t);
    tti_free(s->ctx, all);
    return st;
}
