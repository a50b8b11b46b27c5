/*
 * process_memory.c - memory of a group that all its processes of one host have mapped
 * (tt_comm_memory()), and sums of values that all lie in it: nothing is copied, every process reads
 * everybody's addends where they are and writes everybody's results, each in its range of the
 * elements.
 */
#include "comm/nontemporal.h"
#include "comm/transport/process.h"
#include <string.h>

struct tti_block {
    tti_block *next; // newest first: numbers count from the oldest, in all processes alike
    int number;
    tti_segment mine, maps[TT_MAX_TASKS];
};

static tt_status map_others(tt_comm *c, tti_block *b)
{
    tti_process *p = c->state;
    tti_segment_name mine = tti_segment_name_of(&b->mine), all[TT_MAX_TASKS];
    TT_TRY(tti_process_exchange(c, "memory of a group", &mine, sizeof(mine), all));
    for (int i = 0; i < p->n; i++) {
        if (all[i].bytes != mine.bytes)
            return TT_FAIL(c->ctx, TT_EINVAL,
                           "comm: memory of %llu bytes in rank %d, but of %llu in rank %d",
                           (unsigned long long)all[i].bytes, p->subgroup.ranks[i],
                           (unsigned long long)mine.bytes, p->subgroup.ranks[p->self]);
        if (i != p->self && p->shares_memory[i])
            TT_TRY(tti_segment_map(c->ctx, &all[i], &b->maps[i]));
    }
    return tti_process_exchange(c, "mapped", NULL, 0, NULL);
}

void *tt_comm_memory(tt_comm *c, size_t bytes)
{
    if (c == NULL || tti_is_stuck(c->ctx))
        return NULL;
    tti_comm_drain(c, &c->calls); // which look for memory among the blocks
    tti_block *b = tti_calloc(c->ctx, 1, sizeof(*b));
    if (b == NULL)
        return NULL;
    b->next = c->blocks;
    b->number = c->blocks != NULL ? c->blocks->number + 1 : 0;
    b->mine.fd = -1;
    c->blocks = b; // freed with the group, also after an error
    tt_status st = tti_segment_new(c->ctx, bytes, &b->mine);
    if (st == TT_OK && c->transport != &tti_transport_local)
        st = map_others(c, b);
    if (st != TT_OK && c->transport != &tti_transport_local)
        tti_world_fail_with(c->ctx, st);
    return st == TT_OK ? b->mine.at : NULL;
}

void tti_blocks_free(tt_comm *c)
{
    while (c->blocks != NULL) {
        tti_block *b = c->blocks;
        c->blocks = b->next;
        for (int i = 0; i < TT_MAX_TASKS; i++)
            tti_segment_free(&b->maps[i]);
        tti_segment_free(&b->mine);
        tti_free(c->ctx, b);
    }
}

tti_place tti_place_of(const tt_comm *c, const void *at, size_t bytes)
{
    for (const tti_block *b = c->blocks; b != NULL; b = b->next) {
        uintptr_t from = (uintptr_t)b->mine.at, to = (uintptr_t)at;
        if (to >= from && to - from <= b->mine.bytes && bytes <= b->mine.bytes - (to - from))
            return (tti_place){to - from, b->number, 1};
    }
    return (tti_place){.is_known = 0};
}

// A place in rank q's memory as this process sees it; NULL: it does not.
static char *find(const tt_comm *c, int q, tti_place place, size_t bytes)
{
    const tti_process *p = c->state;
    const tti_block *b = c->blocks;
    while (b != NULL && b->number != place.block)
        b = b->next;
    if (place.is_known == 0 || b == NULL || place.at > b->mine.bytes ||
        bytes > b->mine.bytes - place.at)
        return NULL;
    char *base = q == p->self ? b->mine.at : b->maps[q].at;
    return base == NULL ? NULL : base + place.at;
}

// Fills in where all members' memory is; false: some of it cannot be reached.
static bool find_all(tt_comm *c, const tti_comm_call *call, const tti_reduction *r)
{
    const tti_process *p = c->state;
    size_t in = (size_t)r->count * tt_dtype_bytes(r->from);
    size_t out = (size_t)r->count * tt_dtype_bytes(r->to);
    for (int q = 0; q < p->n; q++) {
        const tti_member_head *h = (const void *)(p->head[q] + 1);
        for (int i = 0; i < p->first[q + 1] - p->first[q]; i++) {
            tt_member *m = &c->all[p->first[q] + i];
            int parts = tti_member_parts(call, p->first[q] + i);
            char *from = find(c, q, h[i].in, in * (size_t)parts), *to = find(c, q, h[i].out, out);
            if ((from == NULL && parts > 0) || to == NULL)
                return false;
            m->in = from;
            m->out = to;
        }
    }
    return true;
}

bool tti_process_is_shared(tt_comm *c, const tti_comm_call *call, const tti_reduction *r)
{
    if (call->what.kind != TTI_ALL_REDUCE)
        return false;
    if (find_all(c, call, r))
        return true;
    for (int i = 0; i < c->total; i++) // as it was: others' memory is not known
        if (i < c->first || i >= c->first + c->n_members)
            c->all[i].in = c->all[i].out = NULL;
    return false;
}

tt_status tti_process_sum_shared(tt_comm *c, const tti_comm_call *call, tti_reduction *r,
                                 int64_t begin, int64_t end)
{
    tti_process *p = c->state;
    size_t bytes = (size_t)r->count * tt_dtype_bytes(r->from);
    for (int i = 0; i < r->n; i++) {
        tti_addend *a = &r->addend[i];
        a->data = (const char *)c->all[a->member].in + (size_t)a->part * bytes;
    }
    r->passes = bytes >= TTI_NONTEMPORAL_LEAST;
    tti_reduction_run(r, begin, end); // members are all: it writes everybody's out
    uint32_t round = p->round++;
    tti_area *mine = p->area[p->self];
    tti_flag_set(&mine->filled, round + 1);
    tti_flag_set(&mine->taken, round + 1);
    for (int q = 0; q < p->n; q++)
        if (q != p->self)
            TT_TRY(tti_process_wait(c, call->name, q, &p->area[q]->taken, round + 1));
    tti_flag_set(&mine->summed, round + 1);
    tti_flag_set(&mine->got, round + 1);
    return TT_OK;
}
