/*
 * cycle.c - looks for a cycle of inputs and control edges by depth first search with a stack of its
 * own, so that no graph is too deep.
 */
#include "graph/text.h"

enum {
    NEW,
    ON_PATH,
    DONE
};

// What node n waits for: its inputs, then its control edges; NULL past the end.
static const tt_node *waits_for(const tt_node *n, int64_t i)
{
    if (i < n->n_in)
        return n->in[i]->node;
    return i - n->n_in < n->n_after ? n->after[i - n->n_in] : NULL;
}

// next[id] is the edge to follow next, parent[id] leads back. True if a cycle is found.
static bool search(const tt_graph *g, int32_t root, int64_t *next, int32_t *parent, uint8_t *state)
{
    int32_t at = root;
    state[at] = ON_PATH;
    parent[at] = -1;
    while (at >= 0) {
        const tt_node *to = waits_for(g->nodes[at], next[at]++);
        if (to == NULL) {
            state[at] = DONE;
            at = parent[at];
        } else if (state[to->id] == ON_PATH) {
            return true;
        } else if (state[to->id] == NEW) {
            state[to->id] = ON_PATH;
            parent[to->id] = at;
            at = to->id;
        }
    }
    return false;
}

bool tti_find_cycle(const tt_graph *g, uint8_t *path, bool *found)
{
    int64_t *next = tti_calloc(g->ctx, (size_t)g->n_nodes, sizeof(*next));
    int32_t *parent = tti_calloc(g->ctx, (size_t)g->n_nodes, sizeof(*parent));
    bool ok = next != NULL && parent != NULL;
    *found = false;
    for (int64_t i = 0; ok && !*found && i < g->n_nodes; i++)
        *found = path[i] == NEW && search(g, (int32_t)i, next, parent, path);
    for (int64_t i = 0; i < g->n_nodes; i++)
        path[i] = path[i] == ON_PATH;
    tti_free(g->ctx, next);
    tti_free(g->ctx, parent);
    return ok;
}
