/*
 * profile.c - where a step's time goes: by op, by layer, by device, from the spans that the
 * training session recorded, and one sentence that names the bottleneck.
 */
#include "base/ctx.h"
#include "run/run.h"
#include "train/compile.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MAX_ROWS 512

typedef struct row {
    char name[TTI_NAME_MAX + 64];
    int64_t ns, calls;
} row;

typedef struct table {
    row rows[MAX_ROWS];
    int n;
    int64_t total;
} table;

static void add(table *t, const char *name, int64_t ns)
{
    int i = 0;
    while (i < t->n && strcmp(t->rows[i].name, name) != 0)
        i++;
    if (i == MAX_ROWS)
        return;
    if (i == t->n) {
        t->rows[t->n++] = (row){.ns = 0};
        strncpy(t->rows[i].name, name, sizeof(t->rows[i].name) - 1);
    }
    t->rows[i].ns += ns;
    t->rows[i].calls++;
    t->total += ns;
}

static int by_time(const void *a, const void *b)
{
    const row *x = a, *y = b;
    return x->ns != y->ns ? (x->ns < y->ns ? 1 : -1) : strcmp(x->name, y->name);
}

// The layer in whose scope a node was made; NULL: none.
static const char *scope_layer(const tt_model *m, const char *node)
{
    size_t n = strcspn(node, "/");
    for (int64_t i = 0; i < m->n_layers; i++) {
        const char *name = m->layers[i]->name;
        if (strlen(name) == n && strncmp(name, node, n) == 0 && node[n] == '/')
            return name;
    }
    return NULL;
}

static const char *weight_layer(const tt_model *m, const tt_node *n)
{
    for (int64_t i = 0; n->op == &tti_op_variable && i < m->n_weights; i++)
        if (strcmp(m->weights[i].name, n->name) == 0)
            return m->weights[i].layer->name;
    return NULL;
}

/*
 * A node's layer. Gradients are made outside the layers' scopes: one belongs to the layer of a
 * weight it reads, or of the weight whose update reads it, or of a value of the forward pass.
 */
static const char *layer_of(const tt_model *m, const tt_node *n)
{
    const char *layer = scope_layer(m, n->name);
    for (int i = 0; layer == NULL && i < n->n_in; i++)
        layer = weight_layer(m, n->in[i]->node);
    const tt_graph *g = n->graph;
    for (int64_t k = n->id + 1; layer == NULL && k < g->n_nodes; k++) {
        const tt_node *u = g->nodes[k];
        if ((u->op->flags & TT_OP_UPDATE) != 0 && u->n_in > 1 && u->in[1]->node == n)
            layer = weight_layer(m, u->in[0]->node);
    }
    for (int i = 0; layer == NULL && i < n->n_in; i++)
        layer = scope_layer(m, n->in[i]->node->name);
    return layer != NULL ? layer : "loss, metrics, norm";
}

typedef struct profile {
    table ops, layers, devices;
    table both;          // "op in layer"
    int64_t steps, wall; // steps measured; from the first span to the last
    const char **layer;  // by node id; NULL: not known yet
} profile;

static void collect(const tt_model *m, profile *p)
{
    const tt_session *s = m->step->session;
    int64_t n = TTI_MIN(atomic_load(&s->n_spans), (int64_t)TTI_SPANS), first = INT64_MAX, last = 0;
    int64_t low = INT64_MAX, high = 0;
    for (int64_t i = 0; i < n; i++) {
        const tti_span *sp = &s->spans[i];
        const tti_entry *en = &sp->plan->exe.lists[sp->device].entries[sp->entry];
        const tti_pnode *pn = &sp->plan->nodes[en->pnode];
        const char *layer = p->layer[pn->node->id];
        char both[TTI_NAME_MAX + 64];
        if (layer == NULL)
            layer = p->layer[pn->node->id] = layer_of(m, pn->node);
        snprintf(both, sizeof(both), "%.40s in layer '%s'", tti_pnode_kind_name(pn), layer);
        add(&p->both, both, sp->end_ns - sp->begin_ns);
        add(&p->ops, tti_pnode_kind_name(pn), sp->end_ns - sp->begin_ns);
        add(&p->layers, layer, sp->end_ns - sp->begin_ns);
        add(&p->devices, m->ctx->top.devices[sp->device]->name, sp->end_ns - sp->begin_ns);
        low = TTI_MIN(low, sp->run);
        high = TTI_MAX(high, sp->run);
        first = TTI_MIN(first, sp->begin_ns);
        last = TTI_MAX(last, sp->end_ns);
    }
    p->steps = n > 0 ? high - low + 1 : 0;
    p->wall = n > 0 ? last - first : 0;
    table *tables[] = {&p->ops, &p->layers, &p->devices, &p->both};
    for (int i = 0; i < 4; i++)
        qsort(tables[i]->rows, (size_t)tables[i]->n, sizeof(row), by_time);
}

static double us_per_step(const profile *p, int64_t ns)
{
    return (double)ns / 1e3 / (double)TTI_MAX(p->steps, 1);
}

static void print_table(tti_text *t, const profile *p, const char *what, const table *tab)
{
    tti_text_add(t, "%-32s %12s %7s %10s\n", what, "us/step", "share", "calls");
    for (int i = 0; i < tab->n && i < 20; i++)
        tti_text_add(t, "%-32s %12.1f %6.1f%% %10lld\n", tab->rows[i].name,
                     us_per_step(p, tab->rows[i].ns),
                     100.0 * (double)tab->rows[i].ns / (double)TTI_MAX(tab->total, 1),
                     (long long)(tab->rows[i].calls / TTI_MAX(p->steps, 1)));
    if (tab->n > 20)
        tti_text_add(t, "and %d more\n", tab->n - 20);
    tti_text_add(t, "\n");
}

static void print_sentence(tti_text *t, const tt_model *m, const profile *p)
{
    const tti_times *times = &m->step->times;
    double data = (double)times->data, compute = (double)times->compute;
    int n_devices = p->devices.n;
    double busy = (double)p->devices.total / (double)TTI_MAX(p->wall * TTI_MAX(n_devices, 1), 1);
    if (data > 0.2 * (data + compute))
        tti_text_add(t,
                     "The bottleneck is data loading: the step waits for data %.0f%% of the time.",
                     100 * data / (data + compute));
    else if (busy < 0.5)
        tti_text_add(t,
                     "The bottleneck is outside the kernels: devices compute %.0f%% of the time; "
                     "try a larger batch.",
                     100 * busy);
    else if (p->both.n > 0)
        tti_text_add(t, "The bottleneck is %s, with %.0f%% of the time.", p->both.rows[0].name,
                     100.0 * (double)p->both.rows[0].ns / (double)TTI_MAX(p->both.total, 1));
}

static void print_json(tti_text *t, const profile *p, const char *what, const table *tab)
{
    tti_text_add(t, ", \"%s\": [", what);
    for (int i = 0; i < tab->n; i++) {
        tti_text_add(t, "%s{\"name\": ", i > 0 ? ", " : "");
        tti_text_json(t, tab->rows[i].name);
        tti_text_add(t, ", \"us_per_step\": %.3f, \"calls_per_step\": %lld}",
                     us_per_step(p, tab->rows[i].ns),
                     (long long)(tab->rows[i].calls / TTI_MAX(p->steps, 1)));
    }
    tti_text_add(t, "]");
}

tt_status tti_profile_make(tt_model *m)
{
    tt_ctx *ctx = m->ctx;
    profile *p = tti_calloc(ctx, 1, sizeof(*p));
    if (p != NULL)
        p->layer = tti_calloc(ctx, (size_t)m->step->graph->n_nodes + 1, sizeof(*p->layer));
    if (p == NULL || p->layer == NULL) {
        tti_free(ctx, p);
        return TT_ENOMEM;
    }
    collect(m, p);
    tti_text text = {.ctx = ctx}, json = {.ctx = ctx}, sentence = {.ctx = ctx};
    tti_text_add(&text,
                 "%lld steps measured, %.1f us per step\n"
                 "\n",
                 (long long)p->steps, us_per_step(p, p->wall));
    print_table(&text, p, "op", &p->ops);
    print_table(&text, p, "layer", &p->layers);
    print_table(&text, p, "device", &p->devices);
    print_sentence(&sentence, m, p);
    char *says = tti_text_take(&sentence);
    tti_text_add(&text, "%s\n", says != NULL ? says : "");
    tti_text_add(&json, "{\"steps\": %lld", (long long)p->steps);
    print_json(&json, p, "ops", &p->ops);
    print_json(&json, p, "layers", &p->layers);
    print_json(&json, p, "devices", &p->devices);
    tti_text_add(&json, ", \"says\": ");
    tti_text_json(&json, says != NULL ? says : "");
    tti_text_add(&json, "}\n");
    tti_free(ctx, says);
    tti_free(ctx, p->layer);
    tti_free(ctx, p);
    tti_free(ctx, m->step->profile);
    tti_free(ctx, m->step->profile_json);
    m->step->profile = tti_text_take(&text);
    m->step->profile_json = tti_text_take(&json);
    return m->step->profile == NULL || m->step->profile_json == NULL ? TT_ENOMEM : TT_OK;
}

char *tt_fit_profile(tt_model *m, bool json)
{
    if (m == NULL || m->step == NULL)
        return NULL;
    const char *s = json ? m->step->profile_json : m->step->profile;
    return s == NULL ? NULL : tti_strdup(m->ctx, s);
}
