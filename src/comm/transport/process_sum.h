/*
 * process_sum.h - a sum over members in several processes, as its rounds see it, and its hierarchy
 * of hosts.
 *
 * Where a host has several processes and there are several hosts, an addition whose two operands
 * are of one host is made there: one of the host's processes, the agent for the cross-host process
 * that sums that range, puts together what its host has and sends that. What is left to be added is
 * the rest of the same tree, so the bits are the same. A result is sent once to each host, to its
 * agent, which lays it into memory for all.
 */
#ifndef TUTTI_COMM_TRANSPORT_PROCESS_SUM_H
#define TUTTI_COMM_TRANSPORT_PROCESS_SUM_H

#include "comm/transport/process.h"

#define TTI_MAX_ADDENDS TTI_MAX(TT_MAX_MEMBERS, TT_MAX_LANES)

typedef struct tti_sum {
    tt_comm *c;
    tti_process *p;
    const tti_comm_call *call;
    tti_reduction *r;
    bool is_handed_on; // results go to other processes: to all, or to one
    int only;          // which; -1: to all
    int64_t chunk, rounds;
    // Of the group's processes and the sum's addends; what is beyond them is never written, as a
    // call would spend its time on that.
    int64_t begin[TT_MAX_TASKS], end[TT_MAX_TASKS]; // ranges
    int n_addends[TT_MAX_TASKS];
    int nth[TTI_MAX_ADDENDS]; // of an addend among its process's
} tti_sum;

static inline int64_t tti_sum_piece(const tti_sum *s, int q, int64_t k)
{
    return TTI_MIN(s->begin[q] + k * s->chunk, s->end[q]);
}

// Does a host, named by its first process, get results?
static inline bool tti_sum_reaches(const tti_sum *s, int host)
{
    return s->only < 0 || s->p->host[s->only] == host;
}

static inline int tti_process_of(const tti_process *p, int member)
{
    int q = 0;
    while (p->first[q + 1] <= member)
        q++;
    return q;
}

struct tti_hosts *tti_hosts_new(tt_ctx *ctx); // NULL: recorded; tti_free()
// Which additions of the call are made within hosts.
void tti_hosts_plan(tti_sum *s);
// Round k: what this process is the agent of, put together and sent.
tt_status tti_hosts_relay(tti_sum *s, int64_t k) TTI_CHECKED;
// Round k: the sum of this process's range, from what is in its host and what comes from others.
tt_status tti_hosts_sum(tti_sum *s, int64_t k) TTI_CHECKED;
// Round k: this process's result, once to each other host.
tt_status tti_hosts_send(tti_sum *s, int64_t k, const char *result, size_t bytes) TTI_CHECKED;
// A message of process q, of another host, for this host, whose agent this is: into its memory.
tt_status tti_hosts_take(tt_comm *c, const char *what, int q, uint32_t round, tti_edge edge,
                         size_t bytes) TTI_CHECKED;
// Where what cross-host process q has sent is, once its agent here has it.
tt_status tti_hosts_find(tt_comm *c, const char *what, int q, uint32_t round,
                         const char **out) TTI_CHECKED;

#endif
