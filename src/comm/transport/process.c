/*
 * process.c - groups over several processes: opening and waiting (process.h).
 */
#include "comm/transport/process_sum.h"
#include "device/device.h"
#include "net/timeout.h"
#include <stdio.h>
#include <string.h>
#include <unistd.h>

// ---- waiting ---------------------------------------------------------------------------------

static const tti_rank *rank_of(const tti_process *p, int i)
{
    return tti_world_rank(p->w, p->subgroup.ranks[i]);
}

static tt_status late(tt_comm *c, const char *what, int i, tt_status st)
{
    const tti_process *p = c->state;
    return st == TT_ETIMEOUT ? tti_world_stuck(p->w, p->subgroup.ranks[i], what, c->deadline_ms)
                             : st;
}

tt_status tti_process_wait(tt_comm *c, const char *what, int rank, tti_flag *f, uint32_t v)
{
    tti_process *p = c->state;
    tti_timeout timeout;
    if (tti_flag_wait(f, v, p->spins, 0) == TT_OK) // no clock is read for a short wait
        return TT_OK;
    tti_timeout_begin(&timeout, c->ctx, c->deadline_ms);
    tt_status st;
    bool told = false;
    while ((st = tti_flag_wait(f, v, 0, tti_deadline(TTI_POLL_MS))) != TT_OK) {
        TT_TRY(tti_world_status(p->w));
        if (tti_timeout_expired(&timeout))
            return late(c, what, rank, TT_ETIMEOUT);
        if (!told)
            tti_world_waits_for(p->w, p->subgroup.ranks[rank]);
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
    tti_message l = {p->subgroup.id, run, (uint32_t)edge, bytes};
    return late(c, what, to, tti_world_send(p->w, p->subgroup.ranks[to], &l, data, c->deadline_ms));
}

tt_status tti_process_receive(tt_comm *c, const char *what, int from, uint32_t run, tti_edge edge,
                              void *data, size_t bytes)
{
    tti_process *p = c->state;
    tti_message l = {p->subgroup.id, run, (uint32_t)edge, bytes};
    return late(c, what, from,
                tti_world_receive(p->w, p->subgroup.ranks[from], &l, data, c->deadline_ms));
}

tt_status tti_process_exchange(tt_comm *c, const char *what, const void *mine, size_t bytes,
                               void *all)
{
    tti_process *p = c->state;
    return tti_subgroup_exchange(p->w, &p->subgroup, what, mine, bytes, all, c->deadline_ms);
}

// ---- opening ---------------------------------------------------------------------------------

typedef struct introduction {
    int32_t n_members;
    char transport[8];
    tti_segment_name memory;
} introduction;

static tt_status compare_introductions(tt_comm *c, const introduction *all)
{
    tti_process *p = c->state;
    for (int i = 0; i < p->n; i++) {
        if (strncmp(all[i].transport, all[0].transport, sizeof(all[i].transport)) != 0)
            return TT_FAIL(c->ctx, TT_EINVAL,
                           "comm: rank %d opens a group of transport %.8s, but rank %d of %.8s",
                           p->subgroup.ranks[i], all[i].transport, p->subgroup.ranks[0],
                           all[0].transport);
        p->first[i + 1] = p->first[i] + all[i].n_members;
        p->most = TTI_MAX(p->most, all[i].n_members);
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
    size_t counts = (size_t)p->most * (size_t)total * sizeof(int64_t);
    p->head_bytes = sizeof(tti_call_head) + (size_t)total * sizeof(tti_member_head) +
                    TTI_MAX(TTI_SMALL, counts + 8);
    p->head_bytes = (p->head_bytes + 63) / 64 * 64;
}

const tti_collective_schedule *tti_process_schedule(tti_process *p, tti_collective_kind kind,
                                                    int root)
{
    if (p->scheduled != (int)kind || p->root != root) {
        tti_collective_request q = {.kind = kind, .root = root, .hosts = &p->map};
        tti_collective_schedule_make(&q, p->self, &p->schedule);
        p->scheduled = (int)kind;
        p->root = root;
    }
    return &p->schedule;
}

/*
 * Who shares memory with whom, as everybody sees it. If that makes hosts, of which some have
 * several processes, work is hierarchical: within a host first.
 */
static tt_status find_hosts(tt_comm *c)
{
    tti_process *p = c->state;
    size_t n = (size_t)p->n;
    bool *all = tti_calloc(c->ctx, n * n, sizeof(*all)); // by process: with whom it shares memory
    if (all == NULL)
        return TT_ENOMEM;
    tt_status st = tti_process_exchange(c, "links of a group", p->shares_memory, n, all);
    int n_hosts = 0;
    bool is_clear = true;
    for (int i = 0; i < p->n; i++) {
        p->host[i] = 0;
        while (p->host[i] < i && !all[(size_t)i * n + (size_t)p->host[i]])
            p->host[i]++;
        n_hosts += p->host[i] == i;
        is_clear = is_clear && memcmp(&all[(size_t)i * n], &all[(size_t)p->host[i] * n], n) == 0;
    }
    tti_free(c->ctx, all);
    TT_TRY(st);
    // With cross-host ones anywhere all have large slots: rounds are everybody's.
    p->slot_bytes = n_hosts > 1 ? TTI_SLOT_WIRE : TTI_SLOT_SHM;
    p->is_hierarchical = is_clear && n_hosts > 1 && n_hosts < p->n;
    for (int i = 0; !p->is_hierarchical && i < p->n; i++)
        p->host[i] = i;
    TT_TRY(tti_host_map_make(c->ctx, p->n, p->host, &p->map));
    p->schedule.steps = tti_alloc(c->ctx, sizeof(tti_collective_step) *
                                              (size_t)tti_collective_schedule_room(&p->map));
    if (p->schedule.steps == NULL)
        return TT_ENOMEM;
    p->scheduled = -1;
    if (!p->is_hierarchical)
        return TT_OK;
    p->hosts = tti_hosts_new(c->ctx);
    return p->hosts == NULL ? TT_ENOMEM : TT_OK;
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
    tti_flag_init_shared(&a->closed);
    bool any_wire = false;
    for (int i = 0; i < p->n; i++) {
        if (p->shares_memory[i])
            continue;
        any_wire = true;
        p->heads[i] = tti_alloc(c->ctx, p->head_bytes);
        p->room[i] = tti_alloc(c->ctx, p->slot_bytes);
        if (p->heads[i] == NULL || p->room[i] == NULL)
            return TT_ENOMEM;
    }
    p->out = any_wire ? tti_alloc(c->ctx, p->slot_bytes) : NULL;
    return any_wire && p->out == NULL ? TT_ENOMEM : TT_OK;
}

static void process_close(tt_comm *c)
{
    tti_process *p = c->state;
    if (p == NULL)
        return;
    tti_process_p2p_close(c);
    for (int i = 0; i < p->n; i++) {
        tti_segment_free(&p->maps[i]);
        tti_free(c->ctx, p->heads[i]);
        tti_free(c->ctx, p->room[i]);
    }
    tti_segment_free(&p->mine);
    tti_free(c->ctx, p->out);
    tti_free(c->ctx, p->hosts);
    tti_free(c->ctx, p->schedule.steps);
    tti_host_map_free(c->ctx, &p->map);
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

// Who is in the group, and with which of them it shares memory.
static tt_status find_processes(tt_comm *c, const int *ranks, int n)
{
    tti_process *p = c->state;
    TT_TRY(tti_subgroup_make(p->w, ranks, n, &p->subgroup));
    p->n = p->subgroup.n;
    while (p->subgroup.ranks[p->self] != tti_world_self(p->w))
        p->self++;
    int shared = 0;
    for (int i = 0; i < p->n; i++) {
        shared += rank_of(p, i)->shares_memory;
        p->shares_memory[i] =
            i == p->self || (rank_of(p, i)->shares_memory && c->transport != &tti_transport_wire);
        if (!p->shares_memory[i] && c->transport == &tti_transport_shm)
            return TT_FAIL(c->ctx, TT_EUNSUPPORTED,
                           "comm: transport shm cannot reach rank %d (%s, host %s)",
                           p->subgroup.ranks[i], rank_of(p, i)->name, rank_of(p, i)->host);
    }
    p->spins = shared <= tti_cores() ? 20000 : 0; // else who is waited for needs this core
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
    TT_TRY(compare_introductions(c, all));
    size_areas(p, c->total);
    TT_TRY(find_hosts(c));
    TT_TRY(make_memory(c));
    mine.memory = tti_segment_name_of(&p->mine);
    TT_TRY(tti_process_exchange(c, "memory of a group", &mine, sizeof(mine), all));
    for (int i = 0; i < p->n; i++) {
        if (i == p->self || !p->shares_memory[i])
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

// ---- the records -----------------------------------------------------------------------------

static int process_of(const tt_comm *c, int member)
{
    return tti_process_of(c->state, member);
}

static tt_status late_message(tt_comm *c, const char *what, int from)
{
    return late(c, what, from, TT_ETIMEOUT);
}

#define PROCESS(name_, help_)                                                                     \
    {                                                                                             \
        .name = name_, .help = help_, .open = process_open, .close = process_close,               \
        .agree = tti_process_agree, .select = tti_process_select, .reduce = tti_process_reduce,   \
        .move = tti_process_move, .process_of = process_of, .send = tti_process_p2p_send,         \
        .receive = tti_process_p2p_receive, .arrived = tti_process_p2p_has, .late = late_message, \
    }
const tti_transport tti_transport_auto =
    PROCESS("auto", "members of the job's processes: shared memory on one host, else TCP");
const tti_transport tti_transport_shm =
    PROCESS("shm", "members of the job's processes on one host, through shared memory");
const tti_transport tti_transport_wire =
    PROCESS("wire", "members of the job's processes, through encrypted connections");
