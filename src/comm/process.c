/*
 * process.c - groups over several processes: opening, and agreeing on a call (process.h).
 *
 * A call begins with everybody's head: its fingerprint, its members' counts and lanes, and a small
 * call's values, so that a small sum costs one exchange of flags. Heads lie in two places by turns:
 * who writes the head of call n + 2 knows from everybody's head of call n + 1 that call n is over.
 */
#include "comm/patience.h"
#include "comm/process_sum.h"
#include "device/device.h"
#include <stdio.h>
#include <string.h>
#include <unistd.h>

// ---- waiting ---------------------------------------------------------------------------------

static const tti_rank *rank_of(const tti_process *p, int i)
{
    return tti_world_rank(p->w, p->circle.ranks[i]);
}

static tt_status late(tt_comm *c, const char *what, int i, tt_status st)
{
    const tti_process *p = c->state;
    return st == TT_ETIMEOUT ? tti_world_stuck(p->w, p->circle.ranks[i], what, c->deadline_ms) : st;
}

tt_status tti_process_wait(tt_comm *c, const char *what, int rank, tti_flag *f, uint32_t v)
{
    tti_process *p = c->state;
    tti_patience patience;
    if (tti_flag_wait(f, v, p->spins, 0) == TT_OK) // no clock is read for a short wait
        return TT_OK;
    tti_patience_begin(&patience, c->ctx, c->deadline_ms);
    tt_status st;
    bool told = false;
    while ((st = tti_flag_wait(f, v, 0, tti_deadline(TTI_LOOK_MS))) != TT_OK) {
        TT_TRY(tti_world_status(p->w));
        if (tti_patience_is_over(&patience))
            return late(c, what, rank, TT_ETIMEOUT);
        if (!told)
            tti_world_waits_for(p->w, p->circle.ranks[rank]);
        told = true;
    }
    if (told)
        tti_world_waits_for(p->w, -1);
    return TT_OK;
}

tt_status tti_process_send(tt_comm *c, const char *what, int to, uint32_t run, tti_edge edge,
                           const void *data, size_t bytes)
{
    tti_process *p = c->state;
    tti_letter l = {p->circle.id, run, (uint32_t)edge, bytes};
    return late(c, what, to, tti_world_send(p->w, p->circle.ranks[to], &l, data, c->deadline_ms));
}

tt_status tti_process_receive(tt_comm *c, const char *what, int from, uint32_t run, tti_edge edge,
                              void *data, size_t bytes)
{
    tti_process *p = c->state;
    tti_letter l = {p->circle.id, run, (uint32_t)edge, bytes};
    return late(c, what, from,
                tti_world_receive(p->w, p->circle.ranks[from], &l, data, c->deadline_ms));
}

tt_status tti_process_exchange(tt_comm *c, const char *what, const void *mine, size_t bytes,
                               void *all)
{
    tti_process *p = c->state;
    return tti_circle_exchange(p->w, &p->circle, what, mine, bytes, all, c->deadline_ms);
}

// ---- opening ---------------------------------------------------------------------------------

typedef struct introduction {
    int32_t n_members;
    char transport[8];
    tti_segment_name memory;
} introduction;

static tt_status meet(tt_comm *c, const introduction *all)
{
    tti_process *p = c->state;
    for (int i = 0; i < p->n; i++) {
        if (strncmp(all[i].transport, all[0].transport, sizeof(all[i].transport)) != 0)
            return TT_FAIL(c->ctx, TT_EINVAL,
                           "comm: rank %d opens a group of transport %.8s, but rank %d of %.8s",
                           p->circle.ranks[i], all[i].transport, p->circle.ranks[0],
                           all[0].transport);
        p->first[i + 1] = p->first[i] + all[i].n_members;
    }
    c->total = p->first[p->n];
    c->first = p->first[p->self];
    if (c->total > TT_MAX_MEMBERS)
        return TT_FAIL(c->ctx, TT_EINVAL, "comm: %d members; 1 to %d are allowed", c->total,
                       TT_MAX_MEMBERS);
    return TT_OK;
}

static void size_areas(tti_process *p, int total)
{
    p->head_bytes = sizeof(tti_call_head) + (size_t)total * sizeof(tti_member_head) + TTI_SMALL;
    p->head_bytes = (p->head_bytes + 63) / 64 * 64;
}

int tti_process_agent(const tti_process *p, int host, int q)
{
    int n = 0;
    for (int i = 0; i < p->n; i++)
        n += p->host[i] == host;
    int i = host;
    for (int left = q % n; left > 0; left--)
        do
            i++;
        while (p->host[i] != host);
    return i;
}

/*
 * Who is near whom, as everybody sees it. If that makes hosts, of which some have several
 * processes, work goes in layers: within a host first.
 */
static tt_status find_hosts(tt_comm *c)
{
    tti_process *p = c->state;
    uint64_t near = 0, all[TT_MAX_TASKS];
    for (int i = 0; i < p->n; i++)
        near |= (uint64_t)p->is_near[i] << i;
    TT_TRY(tti_process_exchange(c, "links of a group", &near, sizeof(near), all));
    int n_hosts = 0;
    bool is_clear = true;
    for (int i = 0; i < p->n; i++) {
        p->host[i] = 0;
        while (p->host[i] < i && (all[i] >> p->host[i] & 1) == 0)
            p->host[i]++;
        n_hosts += p->host[i] == i;
        is_clear = is_clear && all[i] == all[p->host[i]];
    }
    // With far ones anywhere all have large slots: rounds are everybody's.
    p->slot_bytes = n_hosts > 1 ? TTI_SLOT_FAR : TTI_SLOT_NEAR;
    p->is_layered = is_clear && n_hosts > 1 && n_hosts < p->n;
    if (!p->is_layered)
        return TT_OK;
    p->layers = tti_layers_new(c->ctx);
    return p->layers == NULL ? TT_ENOMEM : TT_OK;
}

static tt_status make_memory(tt_comm *c)
{
    tti_process *p = c->state;
    size_t bytes = sizeof(tti_area) + 2 * p->head_bytes + 2 * TTI_SLOTS * p->slot_bytes;
    TT_TRY(tti_segment_new(c->ctx, bytes, &p->mine));
    tti_area *a = p->area[p->self] = p->mine.at;
    tti_flag_init_shared(&a->called);
    tti_flag_init_shared(&a->filled);
    tti_flag_init_shared(&a->taken);
    tti_flag_init_shared(&a->summed);
    tti_flag_init_shared(&a->got);
    tti_flag_init_shared(&a->spread);
    bool any_far = false;
    for (int i = 0; i < p->n; i++) {
        if (p->is_near[i])
            continue;
        any_far = true;
        p->heads[i] = tti_alloc(c->ctx, p->head_bytes);
        p->room[i] = tti_alloc(c->ctx, p->slot_bytes);
        if (p->heads[i] == NULL || p->room[i] == NULL)
            return TT_ENOMEM;
    }
    p->out = any_far ? tti_alloc(c->ctx, p->slot_bytes) : NULL;
    return any_far && p->out == NULL ? TT_ENOMEM : TT_OK;
}

static void process_close(tt_comm *c)
{
    tti_process *p = c->state;
    if (p == NULL)
        return;
    for (int i = 0; i < p->n; i++) {
        tti_segment_free(&p->maps[i]);
        tti_free(c->ctx, p->heads[i]);
        tti_free(c->ctx, p->room[i]);
    }
    tti_segment_free(&p->mine);
    tti_free(c->ctx, p->out);
    tti_free(c->ctx, p->layers);
    tti_free(c->ctx, p);
}

static tt_status check_devices(tt_comm *c)
{
    for (int i = 0; i < c->ctx->top.n_devices; i++)
        if (!c->ctx->top.devices[i]->backend->host_memory)
            return TT_FAIL(c->ctx, TT_EUNSUPPORTED,
                           "comm: %s has its own memory, which transport %s cannot access",
                           c->ctx->top.devices[i]->name, c->transport->name);
    return TT_OK;
}

// Who is in the group, and which of them are near.
static tt_status find_processes(tt_comm *c, const int *ranks, int n)
{
    tti_process *p = c->state;
    TT_TRY(tti_circle_make(p->w, ranks, n, &p->circle));
    p->n = p->circle.n;
    while (p->circle.ranks[p->self] != tti_world_self(p->w))
        p->self++;
    int near = 0;
    for (int i = 0; i < p->n; i++) {
        near += rank_of(p, i)->is_near;
        p->is_near[i] =
            i == p->self || (rank_of(p, i)->is_near && c->transport != &tti_transport_wire);
        if (!p->is_near[i] && c->transport == &tti_transport_shm)
            return TT_FAIL(c->ctx, TT_EUNSUPPORTED,
                           "comm: transport shm cannot reach rank %d (%s, host %s)",
                           p->circle.ranks[i], rank_of(p, i)->name, rank_of(p, i)->host);
    }
    p->spins = near <= tti_cores() ? 20000 : 0; // else who is waited for needs this core
    return TT_OK;
}

static tt_status open_process(tt_comm *c, const int *ranks, int n)
{
    tti_process *p = c->state;
    introduction mine = {.n_members = c->n_members}, all[TT_MAX_TASKS];
    TT_TRY(check_devices(c));
    snprintf(mine.transport, sizeof(mine.transport), "%s", c->transport->name);
    TT_TRY(find_processes(c, ranks, n));
    TT_TRY(tti_process_exchange(c, "opening a group", &mine, sizeof(mine), all));
    TT_TRY(meet(c, all));
    size_areas(p, c->total);
    TT_TRY(find_hosts(c));
    TT_TRY(make_memory(c));
    mine.memory = tti_segment_name_of(&p->mine);
    TT_TRY(tti_process_exchange(c, "memory of a group", &mine, sizeof(mine), all));
    for (int i = 0; i < p->n; i++) {
        if (i == p->self || !p->is_near[i])
            continue;
        TT_TRY(tti_segment_map(c->ctx, &all[i].memory, &p->maps[i]));
        p->area[i] = p->maps[i].at;
    }
    // Nobody goes before all have mapped: a process that ends takes the way to its memory with it.
    return tti_process_exchange(c, "group", NULL, 0, NULL);
}

static tt_status process_open(tt_comm *c, const int *ranks, int n)
{
    if (c->ctx->world == NULL)
        return TT_FAIL(
            c->ctx, TT_EINVAL,
            "comm: transport %s connects processes, but the context was opened without tasks",
            c->transport->name);
    tti_process *p = c->state = tti_calloc(c->ctx, 1, sizeof(*p));
    if (p == NULL)
        return TT_ENOMEM;
    p->w = c->ctx->world;
    p->mine.fd = -1;
    p->passes = true;
    tt_status st = open_process(c, ranks, n);
    if (st != TT_OK)
        tti_world_fail_with(c->ctx, st);
    return st;
}

// ---- agreeing --------------------------------------------------------------------------------

const char *tti_process_small(const tti_call_head *h)
{
    const tti_member_head *m = (const void *)(h + 1);
    return (const char *)(m + h->n_members);
}

// Writes the head of a call; its bytes.
static size_t write_head(const tt_comm *c, const tti_comm_call *call, const tti_fingerprint *print,
                         char *to)
{
    tti_call_head *h = (void *)to;
    tti_member_head *m = (void *)(h + 1);
    char *small = (char *)(m + call->n_mine);
    size_t bytes = 0, item = tt_dtype_bytes(call->opts.dtype);
    // Without lanes of its own a process cannot know whether its members hold a value or nothing.
    bool sums =
        (call->kind == TTI_ALL_REDUCE || call->kind == TTI_REDUCE_SCATTER) && call->has_lanes;
    *h = (tti_call_head){.print = *print, .n_members = call->n_mine, .is_small = sums};
    for (int i = 0; i < call->n_mine; i++) {
        const tt_member *from = &call->members[i];
        m[i] = (tti_member_head){from->count, from->first_lane, from->n_lanes,
                                 tti_place_of(c, from->in, 0), tti_place_of(c, from->out, 0)};
        size_t n = 0;
        if (sums && h->is_small && from->count <= (int64_t)TTI_SMALL)
            n = (size_t)from->count * item * (size_t)TTI_MAX(tti_member_parts(call, i), 0);
        h->is_small = h->is_small && from->count <= (int64_t)TTI_SMALL && n <= TTI_SMALL - bytes &&
                      (n == 0 || from->in != NULL);
        if (h->is_small && n > 0)
            tti_process_put(c->state, small + bytes, from->in, n);
        bytes = h->is_small ? bytes + n : 0;
    }
    return (size_t)(small - to) + bytes;
}

static tt_status exchange_heads(tt_comm *c, const char *name, char *head, size_t bytes)
{
    tti_process *p = c->state;
    uint32_t call = p->n_calls++;
    p->head[p->self] = (void *)head;
    tti_flag_set(&p->area[p->self]->called, call + 1);
    for (int d = 1; d < p->n; d++) {
        int to = (p->self + d) % p->n;
        uint64_t n = bytes;
        if (p->is_near[to])
            continue;
        TT_TRY(tti_process_send(c, name, to, call, TTI_EDGE_HEAD, &n, sizeof(n)));
        TT_TRY(tti_process_send(c, name, to, call, TTI_EDGE_HEAD + 8, head, bytes));
    }
    for (int d = 1; d < p->n; d++) {
        int from = (p->self + d) % p->n;
        uint64_t n = 0;
        if (p->is_near[from]) {
            TT_TRY(tti_process_wait(c, name, from, &p->area[from]->called, call + 1));
            p->head[from] = (void *)tti_area_head(p, p->area[from], call);
            continue;
        }
        TT_TRY(tti_process_receive(c, name, from, call, TTI_EDGE_HEAD, &n, sizeof(n)));
        if (n < sizeof(tti_call_head) || n > p->head_bytes)
            return TT_FAIL(c->ctx, TT_EPEER, "%s: rank %d sends %llu bytes as the head of a call",
                           name, from, (unsigned long long)n);
        TT_TRY(tti_process_receive(c, name, from, call, TTI_EDGE_HEAD + 8, p->heads[from], n));
        p->head[from] = (void *)p->heads[from];
    }
    return TT_OK;
}

// Compares everybody's fingerprint with rank 0's and collects all members.
static tt_status compare(tt_comm *c, tti_comm_call *call)
{
    tti_process *p = c->state;
    bool has_lanes = false;
    for (int q = 0; q < p->n; q++) {
        const tti_call_head *h = p->head[q];
        const tti_member_head *m = (const void *)(h + 1);
        int n = p->first[q + 1] - p->first[q];
        TT_TRY(tti_fingerprint_check(c->ctx, call->name, 0, &p->head[0]->print, p->first[q],
                                     &h->print));
        for (int i = 0; i < n && h->n_members == n; i++) {
            tt_member *to = &c->all[p->first[q] + i];
            *to = (tt_member){NULL, NULL, m[i].count, m[i].first_lane, m[i].n_lanes};
            has_lanes |= m[i].n_lanes != 0 || m[i].first_lane != 0;
        }
    }
    for (int i = 0; i < call->n_mine; i++)
        c->all[c->first + i] = call->members[i];
    call->members = c->all;
    call->n = c->total;
    call->first = c->first;
    call->has_lanes = has_lanes;
    return TT_OK;
}

static tt_status process_agree(tt_comm *c, tti_comm_call *call, const tti_fingerprint *prints)
{
    tti_process *p = c->state;
    for (int i = 1; i < call->n; i++)
        TT_TRY(tti_fingerprint_check(c->ctx, call->name, c->first, &prints[0], c->first + i,
                                     &prints[i]));
    tti_world_doing(p->w, call->name, NULL);
    char *head = tti_area_head(p, p->area[p->self], p->n_calls);
    size_t bytes = write_head(c, call, &prints[0], head);
    TT_TRY(exchange_heads(c, call->name, head, bytes));
    return compare(c, call);
}

static tt_status process_barrier(tt_comm *c)
{
    tti_process *p = c->state;
    tti_fingerprint print = {.sequence = c->sequence++, .kind = TTI_BARRIER};
    tti_comm_call call = {.kind = TTI_BARRIER, .name = tti_call_name(TTI_BARRIER)};
    TT_TRY(tti_transport_local.barrier(c));
    tti_world_doing(p->w, call.name, NULL);
    char *head = tti_area_head(p, p->area[p->self], p->n_calls);
    size_t bytes = write_head(c, &call, &print, head);
    TT_TRY(exchange_heads(c, call.name, head, bytes));
    for (int q = 0; q < p->n; q++)
        TT_TRY(tti_fingerprint_check(c->ctx, call.name, 0, &p->head[0]->print, p->first[q],
                                     &p->head[q]->print));
    return TT_OK;
}

#define PROCESS(name_, help_)                                                           \
    {                                                                                   \
        .name = name_, .help = help_, .open = process_open, .close = process_close,     \
        .agree = process_agree, .reduce = tti_process_reduce, .move = tti_process_move, \
        .barrier = process_barrier,                                                     \
    }
const tti_transport tti_transport_auto =
    PROCESS("auto", "members of the job's processes: shared memory on one host, else TCP");
const tti_transport tti_transport_shm =
    PROCESS("shm", "members of the job's processes on one host, through shared memory");
const tti_transport tti_transport_wire =
    PROCESS("wire", "members of the job's processes, through encrypted connections");
