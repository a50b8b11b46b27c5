/*
 * verify_collectives.c - the rules on what replicas do together; verify.h names them.
 */
#include "plan/verify/verify.h"
#include <stdlib.h>

typedef struct member {
    const tti_collective *what;
    int kind, piece, pnode;
} member;

static int by_piece(const void *a, const void *b)
{
    const member *x = a, *y = b;
    if (x->what != y->what)
        return (uintptr_t)x->what < (uintptr_t)y->what ? -1 : 1;
    if (x->kind != y->kind || x->piece != y->piece)
        return x->kind != y->kind ? x->kind - y->kind : x->piece - y->piece;
    return x->pnode - y->pnode;
}

// A member's piece is one of the collective's, and what it makes is as long.
static tt_status check_piece(const tti_plan *p, int i)
{
    const tti_pnode *pn = &p->nodes[i];
    int covered = TTI_MAX(pn->n_covered, 1);
    if (pn->piece > pn->what->n - covered)
        return tti_broken(p, "collective", i, "has piece %d of %d", pn->piece, pn->what->n);
    int64_t begin, end;
    tti_piece_of(pn, &begin, &end);
    int64_t parts = pn->lanes->n == p->lanes.n ? 1 : pn->lanes->n_parts;
    if (pn->kind == TTI_TREE && p->values[pn->out].count != parts * (end - begin))
        return tti_broken(p, "collective", i, "makes %lld elements; its piece has %lld",
                          (long long)p->values[pn->out].count, (long long)(end - begin));
    return TT_OK;
}

// All nodes of an op are there, or none.
static tt_status check_op(const tti_plan *p, const tti_collective_op *op)
{
    for (int k = 1; k < op->n; k++)
        if (p->nodes[op->first + k].is_dropped != p->nodes[op->first].is_dropped)
            return tti_broken(p, "collective", op->first + k, "is a member whose others %s dropped",
                              p->nodes[op->first].is_dropped ? "were" : "were not");
    return TT_OK;
}

tt_status tti_verify_collectives(const tti_plan *p)
{
    member *m = tti_alloc(p->ctx, sizeof(*m) * (size_t)(p->n_nodes + 1));
    tt_status st = m == NULL ? TT_ENOMEM : TT_OK;
    int n = 0;
    for (int i = 0; st == TT_OK && i < p->n_nodes; i++) {
        const tti_pnode *pn = &p->nodes[i];
        if (pn->is_dropped || pn->what == NULL || pn->piece < 0)
            continue;
        st = check_piece(p, i);
        if (pn->n_covered == 0)
            m[n++] = (member){pn->what, (int)pn->kind, pn->piece, i};
    }
    if (st == TT_OK)
        qsort(m, (size_t)n, sizeof(*m), by_piece);
    for (int i = 1; st == TT_OK && i < n; i++)
        if (m[i].what == m[i - 1].what && m[i].kind == m[i - 1].kind &&
            m[i].piece == m[i - 1].piece)
            st = tti_broken(p, "collective", m[i].pnode, "has piece %d, as node %d has", m[i].piece,
                            m[i - 1].pnode);
    for (int64_t c = 0; st == TT_OK && c < p->n_collectives; c++)
        st = check_op(p, &p->collectives[c]);
    tti_free(p->ctx, m);
    return st;
}
