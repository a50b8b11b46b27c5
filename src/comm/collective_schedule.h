/*
 * collective_schedule.h - who sends what to whom in a collective: for each member a list of steps,
 * made by one function from the kind of collective, the hosts that the members are on, and how much
 * goes in a message. Calls of tt_comm follow it over shared memory and the wire
 * (transport/process*.c), where a member is a process. Plans make a node of each fold of a host
 * (plan/spread/host_sums.c), where a member is a replica; their sends and receives are the edges
 * between nodes.
 *
 * The members of a host read each other's memory. What a host has for another is added up there, by
 * one of its members, before it is sent: as much of the lane tree as the host has operands of. A
 * result is sent once to each host. Which member acts for its host goes round: by the piece, or by
 * turns. A host of one member is the flat case: it sends its addends as they are.
 *
 * What a step moves is a range of pieces: piece q is the one whose sum member q makes, or what it
 * has for others at the start of a call that only copies.
 */
#ifndef TUTTI_COMM_COLLECTIVE_SCHEDULE_H
#define TUTTI_COMM_COLLECTIVE_SCHEDULE_H

#include "base/base.h"
#include "device/collective.h"

// Members by host. Hosts are numbered in the order of their first members.
typedef struct tti_host_map {
    int n, n_hosts;
    int *host;    // by member
    int *first;   // by host, and the end of all: where in members its own begin
    int *members; // in order
} tti_host_map;

// first_of: by member the first one on its host. Free with tti_host_map_free().
tt_status tti_host_map_make(tt_ctx *ctx, int n, const int *first_of, tti_host_map *out) TTI_CHECKED;
void tti_host_map_free(tt_ctx *ctx, tti_host_map *m);

static inline int tti_host_size(const tti_host_map *m, int host)
{
    return m->first[host + 1] - m->first[host];
}

// Which of n acts in a turn; any number is one.
static inline int tti_turn_of(int turn, int n)
{
    return (turn % n + n) % n;
}

// The member that acts for its host in a turn.
static inline int tti_host_agent(const tti_host_map *m, int host, int turn)
{
    return m->members[m->first[host] + tti_turn_of(turn, tti_host_size(m, host))];
}

typedef enum tti_message_grain {
    TTI_BY_MEMBER = 0, // a message has the piece of one member; its agent's turn is that member
    TTI_BY_HOST = 1,   // the pieces of all members of a host, which are next to each other
    TTI_WHOLE = 2,     // all of the result, which every member makes
} tti_message_grain;

typedef enum tti_collective_step_kind {
    TTI_STEP_FOLD = 0,    // add up what the members of `host` have of the pieces; -1: of all hosts
    TTI_STEP_SEND = 1,    // what was folded, or one's own piece, to member `peer` of another host
    TTI_STEP_RECEIVE = 2, // from member `peer` of another host, into memory that this host reads
    TTI_STEP_COPY = 3,    // results out of the memory of member `peer`, of this host, to one's own
} tti_collective_step_kind;

typedef struct tti_collective_step {
    tti_collective_step_kind kind;
    int peer;
    int host;       // folds: whose addends; receives: where they are from
    int first, end; // pieces
} tti_collective_step;

typedef struct tti_collective_request {
    tti_collective_kind kind; // a reduction, TTI_ALL_GATHER, or one in which each pair differs
    int root;                 // of TTI_REDUCE_TO: a member
    const tti_host_map *hosts;
    tti_message_grain grain;
    int turn; // of TTI_BY_HOST and TTI_WHOLE
} tti_collective_request;

typedef struct tti_collective_schedule {
    tti_collective_step
        *steps; // of one member, in order: first the sum, then what hands out results
    int n, n_sum;
} tti_collective_schedule;

// Steps that one member has at the most.
int tti_collective_schedule_room(const tti_host_map *m);
// Fills out->steps, which has room for that many, with what member `self` does.
void tti_collective_schedule_make(const tti_collective_request *q, int self,
                                  tti_collective_schedule *out);

#endif
