/*
 * process_sum.h - a sum over members in several processes, as its rounds see it, and its hierarchy
 * of hosts.
 *
 * Who does what is in the schedule (comm/collective_schedule.h). Where a host has several processes
 * and there are several hosts, an addition whose two operands are of one host is made there: the
 * agent for a process of another host puts together what its host has for that one and sends it.
 * What is left to be added is the rest of the same tree, so the bits are the same. A result is sent
 * once to each host, to its agent, which lays it into memory for all.
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
    const tti_collective_schedule *schedule;
    bool is_handed_on; // results go to other processes
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
// Where a host finds what process q of another one has sent it, in the memory of its agent.
char *tti_hosts_place(const tti_process *p, int agent, int q, uint32_t round);
// The same once it is there: a step that copies out of its agent's memory.
tt_status tti_hosts_find(tt_comm *c, const char *what, const tti_collective_step *copy,
                         uint32_t round, const char **out) TTI_CHECKED;

#endif
