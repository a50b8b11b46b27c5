/*
 * chain.cuh - chains of plan/program.h as their kernels see them: a member's arguments as if it
 * were called alone.
 */
#ifndef TUTTI_CUDA_CHAIN_CUH
#define TUTTI_CUDA_CHAIN_CUH

#include "cuda/kernel.cuh"
#include "plan/program.h"

struct tti_chain_part {
    tt_arg in[TTI_CHAIN_IN], out[TTI_CHAIN_IN];
    tt_launch l;
};

static inline const tti_chain *tti_chain_of(const void *tune)
{
    const tti_chain *c;
    memcpy(&c, tune, sizeof(c));
    return c;
}

// Of member m; the data of what is not kept is NULL. Not to be copied: l points into it.
static inline void tti_chain_take(const tt_launch *l, int m, tti_chain_part *p)
{
    const tti_chain *c = tti_chain_of(l->tune);
    const tti_chain_member *mb = &c->members[m];
    p->l = *l;
    for (int i = 0; i < mb->n_in; i++) {
        int at = mb->in[i];
        p->in[i] = at < TTI_FUSE_OF ? l->in[at] : l->out[at - TTI_FUSE_OF];
    }
    for (int i = 0; i < mb->n_out; i++) {
        p->out[i] = l->out[mb->out + i];
        if ((c->kept >> (mb->out + i) & 1u) == 0)
            p->out[i].data = NULL;
    }
    p->l.node = mb->node;
    p->l.attr = mb->node->attr;
    p->l.in = p->in;
    p->l.out = p->out;
    p->l.n_in = mb->n_in;
    p->l.n_out = mb->n_out;
}

// The member's input that the one before it makes first, or -1: it reads another.
static inline int tti_chain_link(const tti_chain *c, int m)
{
    int at = -1, n = 0;
    for (int i = 0; i < c->members[m].n_in; i++)
        if (c->members[m].in[i] >= TTI_FUSE_OF) {
            n++;
            at = c->members[m].in[i] == TTI_FUSE_OF + c->members[m - 1].out ? i : at;
        }
    return n == 1 ? at : -1;
}

// Have two arguments the same elements, one for one?
static inline bool tti_chain_same(const tt_arg *a, const tt_arg *b)
{
    bool same = a->dtype == b->dtype && a->shape.rank == b->shape.rank;
    for (int i = 0; same && i < a->shape.rank; i++)
        same = a->shape.dim[i] == b->shape.dim[i];
    return same;
}

#endif
