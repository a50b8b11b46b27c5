/*
 * partition.c - the segments of a run (partition.h).
 */
#include "serve/partition.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MOST_LEVELS 4096

typedef struct maker {
    const tti_partition_request *r;
    tti_partition *p;
    tt_ctx *ctx;
    tt_graph *g;
    uint8_t *live;
    int *level;
    int *written;     // by variable: the lowest level of its updates; INT32_MAX: none
    tt_node **mapped; // by node: its clone in the segment being built
    int *cut_of;      // by node: number of its first cut + 1
} maker;

// ---- what is needed --------------------------------------------------------------------------

static tt_status mark_live(maker *m)
{
    tt_node **stack = NULL;
    int64_t n = 0, cap = 0;
    tt_status st = TT_OK;
    for (int i = 0; i < m->r->n_fetches + m->r->n_targets && st == TT_OK; i++) {
        tt_tensor *t = i < m->r->n_fetches ? m->r->fetches[i] : m->r->targets[i - m->r->n_fetches];
        if (!tti_grow(m->ctx, &stack, &cap, n + 1, sizeof(*stack)))
            st = TT_ENOMEM;
        else
            stack[n++] = t->node;
    }
    while (n > 0 && st == TT_OK) {
        tt_node *node = stack[--n];
        if (m->live[node->id])
            continue;
        m->live[node->id] = 1;
        if (!tti_grow(m->ctx, &stack, &cap, n + node->n_in + node->n_after, sizeof(*stack))) {
            st = TT_ENOMEM;
            break;
        }
        for (int i = 0; i < node->n_in; i++)
            stack[n++] = node->in[i]->node;
        for (int i = 0; i < node->n_after; i++)
            stack[n++] = node->after[i];
    }
    tti_free(m->ctx, stack);
    return st;
}

// ---- levels ----------------------------------------------------------------------------------

static bool goes_anywhere(const maker *m, const tt_node *n)
{
    return m->r->task[n->id] < 0;
}

static int behind(const maker *m, const tt_node *first, const tt_node *n)
{
    if (goes_anywhere(m, first))
        return 0;
    return m->level[first->id] + (m->r->task[first->id] != m->r->task[n->id]);
}

// Levels only rise; true: one has.
static bool raise_level(maker *m, const tt_node *n)
{
    int level = m->level[n->id];
    for (int i = 0; i < n->n_in; i++)
        level = TTI_MAX(level, behind(m, n->in[i]->node, n));
    for (int i = 0; i < n->n_after; i++)
        level = TTI_MAX(level, behind(m, n->after[i], n));
    for (int i = 0; i < n->n_in; i++) // updates of one variable come together
        if (tti_writes(n, i) && m->written[n->in[i]->node->id] != INT32_MAX)
            level = TTI_MAX(level, m->written[n->in[i]->node->id]);
    bool rises = level > m->level[n->id];
    m->level[n->id] = level;
    for (int i = 0; i < n->n_in; i++) {
        int *w = &m->written[n->in[i]->node->id];
        if (tti_writes(n, i) && (*w == INT32_MAX || *w < level)) {
            rises |= *w != INT32_MAX;
            *w = level;
        }
    }
    return rises;
}

static tt_status set_levels(maker *m)
{
    for (int64_t i = 0; i < m->g->n_nodes; i++)
        m->written[i] = INT32_MAX;
    for (int pass = 0; pass < MOST_LEVELS; pass++) {
        bool rises = false;
        for (int64_t i = 0; i < m->g->n_nodes; i++) {
            const tt_node *n = m->g->nodes[i];
            if (m->live[i] && !goes_anywhere(m, n) && n->op != &tti_op_variable)
                rises |= raise_level(m, n);
        }
        if (!rises)
            return TT_OK;
    }
    return TT_FAIL(m->ctx, TT_ELIMIT, "the graph changes between tasks more than %d times",
                   MOST_LEVELS);
}

// ---- segments --------------------------------------------------------------------------------

static tti_segment *segment_of(maker *m, int task, int level)
{
    tti_partition *p = m->p;
    for (int64_t i = 0; i < p->n; i++)
        if (p->segments[i].task == task && p->segments[i].level == level)
            return &p->segments[i];
    if (!tti_grow(m->ctx, &p->segments, &p->cap, p->n + 1, sizeof(*p->segments)))
        return NULL;
    p->segments[p->n] = (tti_segment){.task = task, .level = level};
    return &p->segments[p->n++];
}

static tti_segment *home_of(maker *m, const tt_node *n)
{
    return goes_anywhere(m, n) ? segment_of(m, m->r->self, 0)
                               : segment_of(m, m->r->task[n->id], m->level[n->id]);
}

static int by_level(const void *a, const void *b)
{
    const tti_segment *x = a, *y = b;
    return x->level != y->level ? (x->level < y->level ? -1 : 1) : x->task - y->task;
}

int tti_partition_cut(const tti_partition *p, const tt_tensor *t)
{
    for (int64_t i = 0; i < p->n_cuts; i++)
        if (p->cuts[i].tensor == t)
            return (int)i;
    return -1;
}

static int cut(maker *m, tt_tensor *t)
{
    int *known = &m->cut_of[t->node->id];
    int found = *known > 0 && m->p->cuts[*known - 1].tensor == t ? *known - 1
                : *known > 0                                     ? tti_partition_cut(m->p, t)
                                                                 : -1;
    if (found >= 0)
        return found;
    if (!tti_grow(m->ctx, &m->p->cuts, &m->p->cap_cuts, m->p->n_cuts + 1, sizeof(*m->p->cuts)))
        return -1;
    m->p->cuts[m->p->n_cuts] = (tti_cut){.tensor = t};
    if (*known == 0)
        *known = (int)m->p->n_cuts + 1;
    return (int)m->p->n_cuts++;
}

#define ADD(m, array, n, cap, value)                                    \
    (tti_grow((m)->ctx, &(array), &(cap), (n) + 1, sizeof(*(array))) && \
     ((array)[n] = (value), true))

// The segment gives this cut to others.
static bool gives(maker *m, tti_segment *s, int number)
{
    for (int64_t i = 0; i < s->n_fetches; i++)
        if (s->fetches[i] == number)
            return true;
    if (!ADD(m, s->fetches, s->n_fetches, s->cap_fetches, number))
        return false;
    s->n_fetches++;
    return true;
}

// ---- graphs ----------------------------------------------------------------------------------

// A feed of the segment for a cut.
static tt_tensor *feed_of(maker *m, tti_segment *s, tt_tensor *t)
{
    int number = cut(m, t);
    char name[32];
    for (int64_t i = 0; i < s->n_feeds; i++)
        if (s->feeds[i] == number)
            return s->feed_tensors[i];
    if (number < 0 || !ADD(m, s->feeds, s->n_feeds, s->cap_feeds, number) ||
        !tti_grow(m->ctx, &s->feed_tensors, &s->cap_feed_tensors, s->n_feeds + 1,
                  sizeof(*s->feed_tensors)))
        return NULL;
    snprintf(name, sizeof(name), "_cut_%d", number);
    tt_tensor *f = tt_feed(s->graph, .dtype = t->dtype, .shape = t->shape, .name = name);
    if (f == NULL)
        return NULL;
    s->feed_tensors[s->n_feeds++] = f;
    return f;
}

void tti_copy_pin(tt_node *c, const tt_node *n)
{
    c->has_pin = n->has_pin && n->pin.type[0] != '\0';
    c->pin = n->pin;
    c->pin.job[0] = '\0';
    c->pin.replica = c->pin.task = -1;
}

static tt_node *copy_node(maker *m, tti_segment *s, const tt_node *n, tt_tensor *const *in)
{
    tt_node *c = n->op == &tti_op_const
                     ? tti_const_node(s->graph, n->out->dtype, n->out->shape, n->data, n->name)
                     : tt_node_new(s->graph, n->op, n->n_in, in, n->attr, n->name);
    m->mapped[n->id] = c;
    if (c == NULL)
        return NULL;
    tti_copy_pin(c, n);
    c->colocation = n->colocation;
    s->graph->n_colocations = TTI_MAX(s->graph->n_colocations, n->colocation + 1);
    return c;
}

// Can a segment read the variable itself, and see what it was before the run?
static bool reads_itself(const maker *m, const tti_segment *s, const tt_node *var)
{
    return m->r->task[var->id] == s->task && m->written[var->id] >= s->level;
}

// What t is in the segment.
static tt_tensor *tensor_in(maker *m, tti_segment *s, tt_tensor *t)
{
    const tt_node *n = t->node;
    if (n->op == &tti_op_feed)
        return feed_of(m, s, t);
    bool copies = n->op == &tti_op_const || (n->op == &tti_op_variable && reads_itself(m, s, n));
    if (m->mapped[n->id] == NULL && copies)
        (void)copy_node(m, s, n, NULL);
    if (m->mapped[n->id] != NULL)
        return m->mapped[n->id]->outs[t->index];
    return copies ? NULL : feed_of(m, s, t);
}

static tt_status clone_node(maker *m, tti_segment *s, const tt_node *n)
{
    tt_tensor *few[16], **in = few;
    if (n->n_in > 16)
        in = tti_calloc(m->ctx, (size_t)n->n_in, sizeof(*in));
    bool ok = in != NULL;
    for (int i = 0; ok && i < n->n_in; i++) {
        in[i] = tensor_in(m, s, n->in[i]);
        ok = in[i] != NULL;
    }
    ok = ok && copy_node(m, s, n, in) != NULL;
    if (in != few)
        tti_free(m->ctx, in);
    return ok ? TT_OK : tt_status_of(m->ctx);
}

static tt_status add_order(maker *m, const tti_segment *s, const tt_node *n)
{
    for (int i = 0; i < n->n_after; i++) {
        const tt_node *first = n->after[i];
        bool here = !goes_anywhere(m, first) && m->r->task[first->id] == s->task &&
                    m->level[first->id] == s->level && m->mapped[first->id] != NULL;
        tt_tensor *dep = here ? m->mapped[first->id]->out : NULL;
        if (here)
            TT_TRY(tt_after(m->mapped[n->id]->out, &dep, 1));
    }
    return TT_OK;
}

static tt_status build(maker *m, tti_segment *s)
{
    memset(m->mapped, 0, (size_t)m->g->n_nodes * sizeof(*m->mapped));
    s->graph = tt_graph_new(m->ctx);
    if (s->graph == NULL)
        return tt_status_of(m->ctx);
    for (int64_t i = 0; i < m->g->n_nodes; i++) {
        const tt_node *n = m->g->nodes[i];
        if (m->live[i] && !goes_anywhere(m, n) && n->op != &tti_op_variable &&
            m->r->task[i] == s->task && m->level[i] == s->level)
            TT_TRY(clone_node(m, s, n));
    }
    for (int64_t i = 0; i < m->g->n_nodes; i++)
        if (m->mapped[i] != NULL && m->g->nodes[i]->n_after > 0)
            TT_TRY(add_order(m, s, m->g->nodes[i]));
    for (int i = 0; i < m->r->n_targets; i++) {
        const tt_tensor *t = m->r->targets[i];
        if (m->mapped[t->node->id] == NULL || home_of(m, t->node) != s)
            continue;
        if (!ADD(m, s->targets, s->n_targets, s->cap_targets,
                 m->mapped[t->node->id]->outs[t->index]))
            return TT_ENOMEM;
        s->n_targets++;
    }
    return TT_OK;
}

// After all graphs: which tensor each fetch of a segment is.
static tt_status find_fetches(maker *m, tti_segment *s)
{
    if (!tti_grow(m->ctx, &s->fetch_tensors, &s->cap_fetch_tensors, s->n_fetches + 1,
                  sizeof(*s->fetch_tensors)))
        return TT_ENOMEM;
    for (int64_t i = 0; i < s->n_fetches; i++) {
        const tt_tensor *t = m->p->cuts[s->fetches[i]].tensor;
        tt_node *c = tti_node_find(s->graph, t->node->name);
        if (c == NULL && t->node->op == &tti_op_feed) {
            for (int64_t k = 0; k < s->n_feeds && c == NULL; k++)
                c = s->feeds[k] == s->fetches[i] ? s->feed_tensors[k]->node : NULL;
        } else if (c == NULL) { // a source that only others read
            memset(m->mapped, 0, (size_t)m->g->n_nodes * sizeof(*m->mapped));
            c = copy_node(m, s, t->node, NULL);
        }
        if (c == NULL)
            return tt_status_of(m->ctx);
        s->fetch_tensors[i] = c->outs[t->index];
    }
    return TT_OK;
}

// A node that another segment only waits for is computed nevertheless.
static tt_status add_awaited(maker *m, const tt_node *n)
{
    for (int i = 0; i < n->n_after; i++) {
        const tt_node *first = n->after[i];
        tti_segment *s = goes_anywhere(m, first) ? NULL : home_of(m, first);
        if (s == NULL || first->op == &tti_op_variable || s == home_of(m, n))
            continue;
        tt_node *c = tti_node_find(s->graph, first->name);
        if (c == NULL || !ADD(m, s->targets, s->n_targets, s->cap_targets, c->out))
            return TT_ENOMEM;
        s->n_targets++;
    }
    return TT_OK;
}

/*
 * Every segment that a node or a fetched value needs is made first, so that the array stays where
 * it is. Variables that are read elsewhere are read at level 0 of their task.
 */
static tt_status make_segments(maker *m)
{
    for (int64_t i = 0; i < m->g->n_nodes; i++) {
        const tt_node *n = m->g->nodes[i];
        if (!m->live[i] || goes_anywhere(m, n))
            continue;
        if (segment_of(m, m->r->task[i], m->level[i]) == NULL)
            return TT_ENOMEM;
    }
    for (int i = 0; i < m->r->n_fetches; i++)
        if (home_of(m, m->r->fetches[i]->node) == NULL)
            return TT_ENOMEM;
    qsort(m->p->segments, (size_t)m->p->n, sizeof(*m->p->segments), by_level);
    for (int64_t i = 0; i < m->p->n; i++)
        TT_TRY(build(m, &m->p->segments[i]));
    for (int i = 0; i < m->r->n_fetches; i++) {
        tt_tensor *t = m->r->fetches[i];
        tti_segment *s = home_of(m, t->node);
        int number = cut(m, t);
        if (number < 0 || (t->node->op != &tti_op_feed && !gives(m, s, number)))
            return TT_ENOMEM;
    }
    for (int64_t k = 0; k < m->p->n; k++) { // what a segment is fed with, another gives
        for (int64_t i = 0; i < m->p->segments[k].n_feeds; i++) {
            int number = m->p->segments[k].feeds[i];
            const tt_node *n = m->p->cuts[number].tensor->node;
            if (n->op != &tti_op_feed && !gives(m, home_of(m, n), number))
                return TT_ENOMEM;
        }
    }
    for (int64_t i = 0; i < m->p->n; i++)
        TT_TRY(find_fetches(m, &m->p->segments[i]));
    for (int64_t i = 0; i < m->g->n_nodes; i++)
        if (m->live[i] && m->g->nodes[i]->n_after > 0 && !goes_anywhere(m, m->g->nodes[i]))
            TT_TRY(add_awaited(m, m->g->nodes[i]));
    return TT_OK;
}

static bool has_open(const tti_segment *s)
{
    for (int64_t i = 0; i < s->n_feeds; i++)
        if (tt_open_axis(&s->feed_tensors[i]->shape) >= 0)
            return true;
    return false;
}

// Room of a run; and a feed that tells the rows.
static tt_status finish(maker *m)
{
    for (int64_t i = 0; i < m->p->n; i++) {
        tti_segment *s = &m->p->segments[i];
        if (!has_open(s)) {
            s->rows =
                tt_feed(s->graph, .dtype = TT_U8, .shape = TT_SHAPE(TT_BATCH), .name = "_rows");
            if (s->rows == NULL)
                return tt_status_of(m->ctx);
        }
        s->values = tti_calloc(m->ctx, (size_t)s->n_feeds + 1, sizeof(*s->values));
        s->results = tti_calloc(m->ctx, (size_t)s->n_fetches + 1, sizeof(*s->results));
        if (s->values == NULL || s->results == NULL)
            return TT_ENOMEM;
    }
    return TT_OK;
}

tt_status tti_partition_make(const tti_partition_request *r, tti_partition *out)
{
    tt_ctx *ctx = r->graph->ctx;
    size_t n = (size_t)r->graph->n_nodes + 1;
    *out = (tti_partition){.ctx = ctx};
    maker m = {.r = r, .p = out, .ctx = ctx, .g = r->graph};
    m.live = tti_calloc(ctx, n, sizeof(*m.live));
    m.level = tti_calloc(ctx, n, sizeof(*m.level));
    m.written = tti_calloc(ctx, n, sizeof(*m.written));
    m.mapped = tti_calloc(ctx, n, sizeof(*m.mapped));
    m.cut_of = tti_calloc(ctx, n, sizeof(*m.cut_of));
    bool ok = m.live != NULL && m.level != NULL && m.written != NULL && m.mapped != NULL &&
              m.cut_of != NULL;
    tt_status st = ok ? mark_live(&m) : TT_ENOMEM;
    st = st == TT_OK ? set_levels(&m) : st;
    st = st == TT_OK ? make_segments(&m) : st;
    st = st == TT_OK ? finish(&m) : st;
    tti_free(ctx, m.live);
    tti_free(ctx, m.level);
    tti_free(ctx, m.written);
    tti_free(ctx, m.mapped);
    tti_free(ctx, m.cut_of);
    return st;
}

void tti_partition_free(tti_partition *p)
{
    for (int64_t i = 0; i < p->n; i++) {
        tti_segment *s = &p->segments[i];
        tt_graph_free(s->graph); // and its session
        tti_free(p->ctx, s->feeds);
        tti_free(p->ctx, s->fetches);
        tti_free(p->ctx, s->feed_tensors);
        tti_free(p->ctx, s->fetch_tensors);
        tti_free(p->ctx, s->targets);
        tti_free(p->ctx, s->values);
        tti_free(p->ctx, s->results);
    }
    for (int64_t i = 0; i < p->n_cuts; i++)
        tti_free(p->ctx, p->cuts[i].own);
    tti_free(p->ctx, p->segments);
    tti_free(p->ctx, p->cuts);
    *p = (tti_partition){.ctx = p->ctx};
}
