/*
 * subgroup.c - exchanges: everybody of a subgroup of ranks gives the same number of bytes and gets
 * those of all. The subgroup of all ranks is the world's own; others are told apart by a number
 * that their ranks and how many subgroups these have made give, so nobody needs to ask anyone for
 * it.
 */
#include "net/world_own.h"
#include <stdio.h>
#include <string.h>

#define OF_WORLD (UINT64_C(1) << 63)

// ---- who is in it ----------------------------------------------------------------------------

static tt_status check_ranks(tti_world *w, const int *ranks, int n)
{
    bool has_self = false;
    if (n < 1 || n > w->n)
        return TT_FAIL(w->ctx, TT_EINVAL, "a group cannot have %d of %d ranks", n, w->n);
    for (int i = 0; i < n; i++) {
        if (ranks[i] < 0 || ranks[i] >= w->n)
            return TT_FAIL(w->ctx, TT_EINVAL, "a group has rank %d, but there are only %d ranks",
                           ranks[i], w->n);
        if (i > 0 && ranks[i] <= ranks[i - 1])
            return TT_FAIL(w->ctx, TT_EINVAL,
                           "the ranks of a group must ascend, but rank %d follows rank %d",
                           ranks[i], ranks[i - 1]);
        has_self |= ranks[i] == w->self;
    }
    if (!has_self)
        return TT_FAIL(w->ctx, TT_EINVAL, "rank %d opens a group that it does not belong to",
                       w->self);
    return TT_OK;
}

// How many subgroups of these ranks there were before; one more from now on.
static tt_status count_turn(tti_world *w, uint64_t of, uint64_t *turn)
{
    if (w->n_turns == w->turns_room) {
        int room = TTI_MAX(2 * w->turns_room, 16);
        uint64_t *more = tti_alloc(w->ctx, (size_t)room * sizeof(*more));
        if (more == NULL)
            return TT_ENOMEM;
        if (w->n_turns > 0)
            memcpy(more, w->turns, (size_t)w->n_turns * sizeof(*more));
        tti_free(w->ctx, w->turns);
        w->turns = more;
        w->turns_room = room;
    }
    *turn = 0;
    for (int i = 0; i < w->n_turns; i++)
        *turn += w->turns[i] == of;
    w->turns[w->n_turns++] = of;
    return TT_OK;
}

tt_status tti_subgroup_make(tti_world *w, const int *ranks, int n, tti_subgroup *out)
{
    tti_subgroup c = {.n = ranks == NULL ? w->n : n};
    if (ranks != NULL)
        TT_TRY(check_ranks(w, ranks, n));
    for (int i = 0; i < c.n; i++)
        c.ranks[i] = ranks == NULL ? i : ranks[i];
    uint64_t turn, of = tti_hash64(c.ranks, (size_t)c.n * sizeof(c.ranks[0]), (uint64_t)c.n);
    TT_TRY(count_turn(w, of, &turn));
    c.id = tti_hash64(&turn, sizeof(turn), of) >> 1;
    *out = c;
    return TT_OK;
}

// ---- exchanges -------------------------------------------------------------------------------

typedef struct topic {
    char what[64];
    uint64_t bytes;
} topic;

static tt_status failed(tti_world *w, int rank, const char *what, tt_status st, int64_t ms)
{
    if (st != TT_ETIMEOUT)
        return st;
    return atomic_load(&w->wants_open) ? tti_world_stuck(w, rank, what, ms)
                                       : tti_world_late(w, rank, what, ms);
}

static tt_status take(tti_world *w, int rank, uint64_t plan, uint32_t run, const topic *mine,
                      void *to, int64_t wait_ms)
{
    topic theirs;
    tti_message l = {plan, run, 0, sizeof(topic)};
    TT_TRY(tti_world_receive(w, rank, &l, &theirs, wait_ms));
    const tti_rank *r = &w->peers[rank].rank;
    if (memcmp(theirs.what, mine->what, sizeof(theirs.what)) != 0 || theirs.bytes != mine->bytes)
        return TT_FAIL(w->ctx, TT_EINVAL,
                       "rank %d (%s) is at '%.63s' with %llu bytes, but rank %d at '%s' with %llu",
                       rank, r->name, theirs.what, (unsigned long long)theirs.bytes, w->self,
                       mine->what, (unsigned long long)mine->bytes);
    l = (tti_message){plan, run, 1, mine->bytes};
    return l.bytes == 0 ? TT_OK : tti_world_receive(w, rank, &l, to, wait_ms);
}

tt_status tti_subgroup_exchange(tti_world *w, tti_subgroup *c, const char *what, const void *mine,
                                size_t bytes, void *all, int64_t deadline_ms)
{
    if (tti_is_stuck(w->ctx))
        return tt_status_of(w->ctx);
    if (c->n == w->n) // so that a rank that does something else is noticed at once
        c = &w->all;
    int64_t ms = deadline_ms == 0 ? w->ctx->deadline_ms : deadline_ms;
    uint32_t run = c->count++;
    uint64_t plan = OF_WORLD | c->id;
    topic t = {.bytes = bytes};
    snprintf(t.what, sizeof(t.what), "%s", what);
    tti_message head = {plan, run, 0, sizeof(t)}, body = {plan, run, 1, bytes};
    int self = 0;
    while (c->ranks[self] != w->self)
        self++;
    for (int d = 1; d < c->n; d++) { // everybody begins with somebody else
        int to = c->ranks[(self + d) % c->n];
        tt_status st = tti_world_send(w, to, &head, &t, ms);
        if (st == TT_OK && bytes > 0)
            st = tti_world_send(w, to, &body, mine, ms);
        if (st != TT_OK)
            return failed(w, to, what, st, ms);
    }
    if (bytes > 0)
        memcpy((char *)all + (size_t)self * bytes, mine, bytes);
    for (int d = 1; d < c->n; d++) {
        int from = (self + d) % c->n;
        tt_status st =
            take(w, c->ranks[from], plan, run, &t, (char *)all + (size_t)from * bytes, ms);
        if (st != TT_OK)
            return failed(w, c->ranks[from], what, st, ms);
    }
    return TT_OK;
}

tt_status tti_world_exchange(tti_world *w, const char *what, const void *mine, size_t bytes,
                             void *all, int64_t deadline_ms)
{
    return tti_subgroup_exchange(w, &w->all, what, mine, bytes, all, deadline_ms);
}
