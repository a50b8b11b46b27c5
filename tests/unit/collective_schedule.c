/*
 * collective_schedule.c - the steps of collectives, carried out on sets: what a member has is which
 * addends are in each piece. Every send has its receive; every result has every addend once; hosts
 * send as few messages as they should.
 */
#include "comm/collective_schedule.h"
#include "base/ctx.h"
#include "test.h"

#define MOST 12

typedef struct message {
    int from, to, first, end;
    unsigned addends[MOST]; // by piece: a bit for each member whose addend is in it
    bool is_taken, is_result;
} message;

typedef struct member {
    tti_collective_schedule schedule;
    tti_collective_step steps[8 * MOST];
    int at;
    unsigned folded[MOST]; // what a send takes
    unsigned held[MOST];   // of other hosts, in memory that this host reads
    unsigned sum[MOST], result[MOST];
    bool is_summed[MOST], is_held[MOST]; // results
} member;

typedef struct world {
    tti_collective_request q;
    const tti_host_map *hosts;
    member m[MOST];
    message sent[MOST * MOST * 4];
    int n_sent;
} world;

static bool receive(world *w, int self, const tti_collective_step *step, bool is_result)
{
    for (int i = 0; i < w->n_sent; i++) {
        message *l = &w->sent[i];
        if (l->is_taken || l->from != step->peer || l->to != self || l->is_result != is_result)
            continue;
        CHECK(l->first == step->first && l->end == step->end);
        l->is_taken = true;
        for (int p = l->first; p < l->end; p++) {
            if (is_result)
                w->m[self].result[p] = l->addends[p];
            else
                CHECK((w->m[self].held[p] & l->addends[p]) == 0);
            w->m[self].held[p] |= is_result ? 0 : l->addends[p];
            w->m[self].is_held[p] |= is_result;
        }
        return true;
    }
    return false;
}

// The end of a sum: the addends of this host and what came to any member of it.
static bool fold_all(world *w, int self, const tti_collective_step *step)
{
    unsigned all = (1u << w->hosts->n) - 1;
    for (int p = step->first; p < step->end; p++) {
        unsigned sum = 0;
        for (int k = 0; k < w->hosts->n; k++)
            if (w->hosts->host[k] == w->hosts->host[self])
                sum |= 1u << k | w->m[k].held[p];
        if (sum != all)
            return false; // not there yet
        w->m[self].sum[p] = w->m[self].result[p] = sum;
        w->m[self].is_summed[p] = true;
    }
    return true;
}

static void fold_host(world *w, int self, const tti_collective_step *step)
{
    CHECK_INT(step->host, w->hosts->host[self]);
    for (int p = step->first; p < step->end; p++) {
        w->m[self].folded[p] = 0;
        for (int k = 0; k < w->hosts->n; k++)
            if (w->hosts->host[k] == step->host)
                w->m[self].folded[p] |= 1u << k;
    }
}

static void send(world *w, int self, const tti_collective_step *step, bool is_result)
{
    message l = {self, step->peer, step->first, step->end, {0}, false, is_result};
    CHECK(w->hosts->host[self] != w->hosts->host[step->peer]);
    for (int p = step->first; p < step->end; p++)
        l.addends[p] = is_result ? w->m[self].sum[p] : w->m[self].folded[p];
    w->sent[w->n_sent++] = l;
}

static bool copy(world *w, int self, const tti_collective_step *step)
{
    const member *from = &w->m[step->peer];
    int p = step->first;
    CHECK_INT(w->hosts->host[step->peer], w->hosts->host[self]);
    if (!from->is_summed[p] && !from->is_held[p])
        return false;
    w->m[self].result[p] = from->result[p];
    return true;
}

static bool carry_out(world *w, int self)
{
    member *m = &w->m[self];
    const tti_collective_step *step = &m->steps[m->at];
    bool is_result = m->at >= m->schedule.n_sum;
    if (step->kind == TTI_STEP_RECEIVE)
        return receive(w, self, step, is_result);
    if (step->kind == TTI_STEP_COPY)
        return copy(w, self, step);
    if (step->kind == TTI_STEP_FOLD && step->host < 0)
        return fold_all(w, self, step);
    if (step->kind == TTI_STEP_FOLD)
        fold_host(w, self, step);
    else
        send(w, self, step, is_result);
    return true;
}

// Until nobody gets on: then all must have ended, and every message must have been taken.
static void run(world *w)
{
    for (int i = 0; i < w->hosts->n; i++) {
        w->m[i] = (member){.at = 0};
        w->m[i].schedule.steps = w->m[i].steps;
        CHECK(tti_collective_schedule_room(w->hosts) <= TTI_COUNT(w->m[i].steps));
        tti_collective_schedule_make(&w->q, i, &w->m[i].schedule);
        if (w->q.kind == TTI_ALL_GATHER) {
            w->m[i].sum[i] = w->m[i].result[i] = (1u << w->hosts->n) - 1;
            w->m[i].is_summed[i] = true;
        }
    }
    w->n_sent = 0;
    for (bool any = true; any;) {
        any = false;
        for (int i = 0; i < w->hosts->n; i++)
            while (w->m[i].at < w->m[i].schedule.n && carry_out(w, i)) {
                w->m[i].at++;
                any = true;
            }
    }
    for (int i = 0; i < w->hosts->n; i++)
        CHECK_INT(w->m[i].at, w->m[i].schedule.n);
    for (int i = 0; i < w->n_sent; i++)
        CHECK(w->sent[i].is_taken);
}

static void check_results(const world *w)
{
    unsigned all = (1u << w->hosts->n) - 1;
    for (int i = 0; i < w->hosts->n; i++)
        for (int p = 0; p < w->hosts->n; p++) {
            bool has = w->q.kind == TTI_REDUCE_SCATTER ? p == i
                       : w->q.kind == TTI_REDUCE_TO    ? i == w->q.root
                                                       : true;
            if (has)
                CHECK_INT((int)w->m[i].result[p], (int)all);
        }
}

static int messages_between(const world *w, int from, int to, bool is_result)
{
    int n = 0;
    for (int i = 0; i < w->n_sent; i++)
        n += w->hosts->host[w->sent[i].from] == from && w->hosts->host[w->sent[i].to] == to &&
             w->sent[i].is_result == is_result;
    return n;
}

// A sum goes from host to host once, or once for each member there; a result once from each.
static void check_messages(const world *w)
{
    const tti_host_map *m = w->hosts;
    bool shares =
        w->q.kind == TTI_ALL_GATHER || w->q.kind == TTI_ALL_REDUCE || w->q.kind == TTI_REDUCE_TO;
    for (int a = 0; a < m->n_hosts; a++)
        for (int b = 0; b < m->n_hosts; b++) {
            bool to_root = w->q.kind != TTI_REDUCE_TO || m->host[w->q.root] == b;
            bool whole = w->q.grain == TTI_WHOLE && w->q.kind != TTI_ALL_GATHER;
            int sums = w->q.grain == TTI_BY_MEMBER ? tti_host_size(m, b) : !whole || to_root;
            if (a == b || w->q.kind == TTI_ALL_GATHER)
                sums = 0;
            CHECK_INT(messages_between(w, a, b, false), sums);
            CHECK_INT(messages_between(w, a, b, true),
                      a != b && shares && to_root && !whole ? tti_host_size(m, a) : 0);
        }
}

static void check_kinds(world *w)
{
    static const tti_collective_kind kinds[] = {TTI_ALL_REDUCE, TTI_REDUCE_SCATTER, TTI_REDUCE_TO,
                                                TTI_ALL_GATHER};
    for (int k = 0; k < TTI_COUNT(kinds); k++)
        for (int grain = TTI_BY_MEMBER; grain <= TTI_WHOLE; grain++)
            for (int turn = -1; turn < w->hosts->n; turn++) {
                bool is_scattered = kinds[k] == TTI_REDUCE_SCATTER;
                bool in_row = grain != TTI_BY_HOST;
                for (int i = 1; i < w->hosts->n; i++) // pieces of a host are next to each other
                    in_row |= w->hosts->host[i] < w->hosts->host[i - 1];
                if ((grain == TTI_WHOLE && is_scattered) || (grain == TTI_BY_HOST && in_row) ||
                    (grain == TTI_BY_HOST && kinds[k] == TTI_REDUCE_TO))
                    continue;
                w->q = (tti_collective_request){kinds[k], TTI_MAX(turn, 0), w->hosts,
                                                (tti_message_grain)grain, turn};
                run(w);
                check_results(w);
                check_messages(w);
            }
}

TEST(schedules_of_collectives_reach_all_and_send_once_per_host)
{
    static const int layouts[][MOST + 1] = {
        {1, 0},                                   // one alone
        {2, 0, 1},                                // two hosts of one
        {4, 0, 0, 0, 0},                          // one host
        {4, 0, 0, 2, 2},                          // two hosts of two
        {5, 0, 1, 1, 3, 3},                       // unequal hosts
        {6, 0, 1, 0, 1, 0, 1},                    // members of two hosts by turns
        {12, 0, 0, 0, 3, 3, 5, 6, 6, 6, 6, 6, 6}, // four hosts of 3, 2, 1 and 6
    };
    static world w;
    tt_ctx *ctx = test_ctx();
    for (int i = 0; i < TTI_COUNT(layouts); i++) {
        tti_host_map map;
        CHECK_OK(tti_host_map_make(ctx, layouts[i][0], &layouts[i][1], &map));
        w.hosts = &map;
        check_kinds(&w);
        tti_host_map_free(ctx, &map);
    }
    CHECK_OK(tt_close(ctx));
}

// Pairs that have something else for each other send it themselves, and only across hosts.
TEST(schedules_of_exchanges_have_a_message_for_each_pair_of_hosts)
{
    static const int first_of[] = {0, 0, 2, 2, 2};
    tt_ctx *ctx = test_ctx();
    tti_host_map map;
    CHECK_OK(tti_host_map_make(ctx, 5, first_of, &map));
    CHECK_INT(map.n_hosts, 2);
    tti_collective_step steps[64];
    tti_collective_schedule s = {.steps = steps};
    tti_collective_request q = {.kind = TTI_ALL_TO_ALL, .hosts = &map};
    int sends[5][5] = {{0}}, receives[5][5] = {{0}};
    for (int i = 0; i < 5; i++) {
        int copies = 0;
        tti_collective_schedule_make(&q, i, &s);
        for (int k = 0; k < s.n; k++) {
            sends[i][steps[k].peer] += steps[k].kind == TTI_STEP_SEND;
            receives[steps[k].peer][i] += steps[k].kind == TTI_STEP_RECEIVE;
            copies += steps[k].kind == TTI_STEP_COPY;
        }
        CHECK_INT(copies, 4);
    }
    for (int i = 0; i < 5; i++)
        for (int j = 0; j < 5; j++) {
            CHECK_INT(sends[i][j], map.host[i] != map.host[j]);
            CHECK_INT(receives[i][j], sends[i][j]);
        }
    tti_host_map_free(ctx, &map);
    CHECK_OK(tt_close(ctx));
}
