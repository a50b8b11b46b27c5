/*
 * verify_memory.c - the rules on memory: is none used for two things at once, and does every kernel
 * look for a value where it is?
 *
 * Which of two uses comes first is told by the clocks of the walk (verify_lists.c).
 */
#include "device/device.h"
#include "plan/verify/verify_walk.h"
#include <stdlib.h>
#include <string.h>

// ---- memory ----------------------------------------------------------------------------------

typedef struct use {
    int root, node;
} use;

typedef struct region {
    int arena, root;
    size_t begin, end;
    int first; // position of who writes it first; -1: before all
    int uses, n_uses;
} region;

static int by_root(const void *a, const void *b)
{
    const use *x = a, *y = b;
    return x->root != y->root ? x->root - y->root : x->node - y->node;
}

static int by_begin(const void *a, const void *b)
{
    const region *x = a, *y = b;
    if (x->arena != y->arena)
        return x->arena - y->arena;
    if (x->begin != y->begin)
        return x->begin < y->begin ? -1 : 1;
    return x->root - y->root;
}

// Every use of a region comes before the other's first.
static tt_status check_apart(const tti_list_walk *w, const use *uses, const region *a,
                             const region *b)
{
    const tti_plan *p = w->p;
    const region *early = a->first <= b->first ? a : b, *late = early == a ? b : a;
    int writer = uses[late->uses].node;
    for (int k = 1; k < late->n_uses; k++)
        if (p->nodes[uses[late->uses + k].node].position < p->nodes[writer].position)
            writer = uses[late->uses + k].node;
    if (p->values[early->root].keep)
        return tti_broken(p, "memory", writer, "writes over value %d, which is fetched",
                          early->root);
    for (int k = 0; k < early->n_uses; k++) {
        int user = uses[early->uses + k].node;
        if (user == writer || !tti_walked_is_done(w, user, writer))
            return tti_broken(p, "memory", writer,
                              "writes value %d over value %d, which node %d may still use",
                              late->root, early->root, user);
    }
    return TT_OK;
}

// The regions of one arena, by where they begin.
static tt_status check_arena(const tti_list_walk *w, const use *uses, const region *r, int n)
{
    const tti_plan *p = w->p;
    const tti_device_plan *dp = &p->devices[r->arena % w->n];
    size_t bytes = r->arena >= w->n ? dp->mapped_bytes : dp->arena_bytes - dp->mapped_bytes;
    for (int i = 0; i < n; i++) {
        if (r[i].end > bytes)
            return tti_broken(p, "memory", p->values[r[i].root].node,
                              "has value %d up to byte %zu of %zu", r[i].root, r[i].end, bytes);
        for (int k = i + 1; k < n && r[k].begin < r[i].end; k++)
            TT_TRY(check_apart(w, uses, &r[i], &r[k]));
    }
    return TT_OK;
}

static int64_t add_use(const tti_list_walk *w, use *uses, int64_t n, int value, int node)
{
    int root = tti_root(w->p, value);
    const tti_value *v = &w->p->values[root];
    if (v->memory == TTI_ARENA && v->bytes > 0)
        uses[n++] = (use){root, node};
    return n;
}

// All uses of arena memory by entries, by root; scratch is of one entry.
static int64_t list_uses(const tti_list_walk *w, use *uses)
{
    const tti_plan *p = w->p;
    int64_t n = 0;
    for (int i = 0; i < p->n_nodes; i++) {
        const tti_pnode *pn = &p->nodes[i];
        if (pn->is_dropped || w->entry[i] < 0)
            continue;
        for (int k = 0; k < pn->n_in; k++)
            if (tti_reads(pn, k))
                n = add_use(w, uses, n, pn->in[k], i);
        for (int k = 0; k < pn->n_out; k++)
            n = add_use(w, uses, n, pn->out + k, i);
    }
    for (int64_t v = 0; v < p->n_values; v++) {
        const tti_pnode *pn = &p->nodes[p->values[v].node];
        bool scratch = p->values[v].root == v && (v < pn->out || v >= pn->out + pn->n_out);
        if (scratch && p->values[v].first >= 0 && w->entry[p->values[v].node] >= 0)
            n = add_use(w, uses, n, (int)v, p->values[v].node);
    }
    qsort(uses, (size_t)n, sizeof(*uses), by_root);
    return n;
}

// On devices with streams small and large feeds are there before anything else begins.
static bool is_early(const tti_plan *p, int root)
{
    const tti_value *v = &p->values[root];
    const tti_pnode *pn = &p->nodes[v->node];
    return pn->kind == TTI_OP && pn->node->op == &tti_op_feed &&
           tti_has_streams(p->top->devices[v->device]);
}

tt_status tti_verify_memory(const tti_list_walk *w)
{
    const tti_plan *p = w->p;
    int64_t max = p->n_values + 1, n_uses;
    for (int64_t i = 0; i < p->n_nodes; i++)
        max += p->nodes[i].n_in + p->nodes[i].n_out;
    use *uses = tti_alloc(p->ctx, sizeof(*uses) * (size_t)max);
    region *regions = tti_alloc(p->ctx, sizeof(*regions) * (size_t)(p->n_values + 1));
    tt_status st = uses == NULL || regions == NULL ? TT_ENOMEM : TT_OK;
    n_uses = st == TT_OK ? list_uses(w, uses) : 0;
    int n = 0;
    for (int64_t i = 0, next; i < n_uses; i = next) {
        const tti_value *v = &p->values[uses[i].root];
        for (next = i; next < n_uses && uses[next].root == uses[i].root;)
            next++;
        region *r = &regions[n++];
        *r = (region){.arena = tti_arena_of(p, v),
                      .root = uses[i].root,
                      .begin = v->offset,
                      .end = v->offset + v->bytes,
                      .first = INT32_MAX,
                      .uses = (int)i,
                      .n_uses = (int)(next - i)};
        for (int64_t k = i; k < next; k++)
            r->first = TTI_MIN(r->first, p->nodes[uses[k].node].position);
        r->first = is_early(p, r->root) ? -1 : r->first;
    }
    if (n > 0)
        qsort(regions, (size_t)n, sizeof(*regions), by_begin);
    for (int i = 0, next; st == TT_OK && i < n; i = next) {
        for (next = i; next < n && regions[next].arena == regions[i].arena;)
            next++;
        st = check_arena(w, uses, &regions[i], next - i);
    }
    tti_free(p->ctx, uses);
    tti_free(p->ctx, regions);
    return st;
}

// ---- addresses -------------------------------------------------------------------------------

static int by_at(const void *a, const void *b)
{
    const tti_patch *x = a, *y = b;
    return (x->at > y->at) - (x->at < y->at);
}

static tt_status check_argument(const tti_plan *p, const tti_patch *patches, int pnode, int value,
                                const tt_arg *arg)
{
    const tti_value *root = &p->values[tti_root(p, value)];
    tti_patch key = {.at = (void *)&arg->data};
    const tti_patch *found =
        bsearch(&key, patches, (size_t)p->exe.n_patches, sizeof(*patches), by_at);
    if (root->memory != TTI_ARENA)
        return found == NULL ? TT_OK
                             : tti_broken(p, "address", pnode, "has value %d in an arena", value);
    int arena = tti_arena_of(p, root);
    size_t offset = root->offset + p->values[value].skip;
    if (found == NULL || found->arena != arena || found->offset != offset)
        return tti_broken(p, "address", pnode,
                          "looks for value %d at %zu of arena %d; it is at %zu "
                          "of %d",
                          value, found == NULL ? 0 : found->offset,
                          found == NULL ? -1 : found->arena, offset, arena);
    return TT_OK;
}

// Entries of one call, whose arguments are the node's.
tt_status tti_verify_addresses(const tti_list_walk *w)
{
    const tti_plan *p = w->p;
    size_t bytes = sizeof(tti_patch) * (size_t)(p->exe.n_patches + 1);
    tti_patch *patches = tti_alloc(p->ctx, bytes);
    tt_status st = patches == NULL ? TT_ENOMEM : TT_OK;
    if (st == TT_OK && p->exe.n_patches > 0) {
        memcpy(patches, p->exe.patches, sizeof(*patches) * (size_t)p->exe.n_patches);
        qsort(patches, (size_t)p->exe.n_patches, sizeof(*patches), by_at);
    }
    for (int i = 0; st == TT_OK && i < p->n_nodes; i++) {
        const tti_pnode *pn = &p->nodes[i];
        if (pn->is_dropped || w->entry[i] < 0 || tti_walked_entry(w, i)->n_calls != 1)
            continue;
        const tt_launch *l = &tti_walked_entry(w, i)->calls[0].launch;
        bool feed = pn->kind == TTI_OP && pn->node->op == &tti_op_feed;
        for (int k = 0; st == TT_OK && k < l->n_in && !feed; k++)
            if (tti_reads(pn, k))
                st = check_argument(p, patches, i, pn->in[k], &l->in[k]);
        for (int k = 0; st == TT_OK && k < l->n_out; k++)
            st = check_argument(p, patches, i, pn->out + k, &l->out[k]);
    }
    tti_free(p->ctx, patches);
    return st;
}
