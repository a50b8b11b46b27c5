/*
 * print_plan.c - a plan to look at: a table, JSON, or a graph for Graphviz coloured by device.
 */
#include "plan/plan.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static size_t bytes_of(const tti_plan *p, const tti_pnode *pn)
{
    size_t n = 0;
    for (int i = 0; i < pn->n_out; i++)
        n += p->values[pn->out + i].bytes;
    return n;
}

// "add + relu + mul" of a fused or chained node, the op's name of others.
static void put_op(tti_text *t, const tti_plan *p, const tti_pnode *pn)
{
    if (pn->kind != TTI_FUSED && pn->kind != TTI_CHAINED) {
        tti_text_add(t, "%s", tti_pnode_kind_name(pn));
        return;
    }
    for (int i = 0; i < pn->n_members; i++)
        tti_text_add(t, "%s%s", i == 0 ? "" : "+", p->nodes[pn->members[i]].node->op->name);
}

static void put_human(tti_text *t, size_t bytes)
{
    char size[32];
    tti_size_text((double)bytes, size);
    tti_text_add(t, "%s", size);
}

// A column of a table.
static void put_column(tti_text *t, size_t bytes)
{
    char size[32];
    tti_size_text((double)bytes, size);
    tti_text_add(t, " %12s", size);
}

static void print_devices(tti_text *t, tti_plan *p)
{
    tti_text_add(t, "\n%-8s %12s %12s %12s %12s %12s %12s %12s\n", "memory", "weights", "gradients",
                 "optimizer", "activations", "workspace", "total", "limit");
    for (int d = 0; d < p->top->n_devices; d++) {
        const tti_device_plan *dp = &p->devices[d];
        const tti_usage *u = &dp->usage;
        const size_t parts[] = {u->weights,     u->gradients, u->optimizer,
                                u->activations, u->workspace, tti_plan_bytes(dp)};
        tti_text_add(t, "%-8s", p->top->devices[d]->name);
        for (int i = 0; i < TTI_COUNT(parts); i++)
            put_column(t, parts[i]);
        if (p->top->devices[d]->limit == 0)
            tti_text_add(t, " %12s", "none");
        else
            put_column(t, p->top->devices[d]->limit);
        tti_text_add(t, "\n");
    }
    tti_text_add(t, "\n%-8s %12s %12s %12s %12s\n", "device", "entries", "arena", "lower bound",
                 "received");
    for (int d = 0; d < p->top->n_devices; d++) {
        const tti_device_plan *dp = &p->devices[d];
        tti_text_add(t, "%-8s %12d", p->top->devices[d]->name, p->exe.lists[d].n_entries);
        put_column(t, dp->arena_bytes);
        put_column(t, dp->lower_bound);
        put_column(t, dp->received_bytes);
        tti_text_add(t, "\n");
    }
}

// Bytes that a device receives from other hosts.
static size_t cross_bytes(const tti_plan *p, size_t *by_device)
{
    size_t most = 0;
    memset(by_device, 0, sizeof(*by_device) * (size_t)p->top->n_devices);
    for (int i = 0; i < p->n_order; i++) {
        const tti_pnode *pn = &p->nodes[p->order[i]];
        if (pn->kind == TTI_RECV && pn->transfer != NULL && pn->n_out > 0)
            by_device[pn->device] += p->values[pn->out].bytes;
    }
    for (int d = 0; d < p->top->n_devices; d++)
        most = TTI_MAX(most, by_device[d]);
    return most;
}

// How long the links take for what the busiest device receives in a step, where rates are known.
static void print_links(tti_text *t, const tti_plan *p)
{
    const tti_topology *top = p->top;
    size_t same = 0, *cross = tti_calloc(p->ctx, (size_t)top->n_devices, sizeof(*cross));
    if (cross == NULL)
        return;
    size_t most = cross_bytes(p, cross);
    for (int d = 0; d < top->n_devices; d++)
        same = TTI_MAX(same, p->devices[d].received_bytes - cross[d]);
    if (top->same_host > 0 || top->cross_host > 0)
        tti_text_add(t, "\nlinks: the device that receives most takes");
    if (top->same_host > 0)
        tti_text_add(t, " %.3g ms from its own host at %.4g GB/s",
                     1e3 * (double)same / top->same_host, 1e-9 * top->same_host);
    if (top->cross_host > 0)
        tti_text_add(t, "%s %.3g ms from other hosts at %.4g GB/s", top->same_host > 0 ? "," : "",
                     1e3 * (double)most / top->cross_host, 1e-9 * top->cross_host);
    if (top->same_host > 0 || top->cross_host > 0)
        tti_text_add(t, "\n");
    tti_free(p->ctx, cross);
}

// The backend of devices that are only planned for; NULL: there is none.
static const tti_backend *bound_of(const tti_plan *p)
{
    for (int d = 0; d < p->top->n_devices; d++)
        if (p->top->devices[d]->backend->bound != NULL)
            return p->top->devices[d]->backend;
    return NULL;
}

static void print_bound(tti_text *t, const tti_plan *p)
{
    const tti_backend *b = bound_of(p);
    tti_facts facts;
    if (b == NULL)
        return;
    b->facts(0, &facts);
    tti_text_add(t,
                 "\nThis machine has no %s: memory is an upper bound from the recorded profile of "
                 "%s (%s).\n",
                 b->name, facts.model, b->bound);
}

static void print_pipeline(tti_text *t, const tti_plan *p)
{
    static const char *const kinds[] = {"1f1b", "gpipe", "interleaved"};
    const tti_mesh *m = &p->mesh;
    if (m->n_stages == 0)
        return;
    tti_text_add(t,
                 "\npipeline: %s, %d stages on %d devices; devices idle %.1f %% of the time by the "
                 "estimated cost of the stages (%.1f %% if all cost the same)\n",
                 kinds[p->top->spread.schedule], m->n_stages, tti_mesh_size(m, TTI_AXIS_PIPE),
                 100 * p->bubble, 100 * p->even_bubble);
}

static int recompute_percent(const tti_plan *p)
{
    return p->forward_ns > 0 ? (int)(100 * p->recompute_ns / p->forward_ns + 0.5) : 0;
}

static bool is_compared(const tti_plan *p)
{
    size_t plain = 0;
    for (int d = 0; d < p->top->n_devices; d++)
        plain += p->devices[d].plain_bytes;
    return plain > 0;
}

// What computing activations again saves and costs.
static void print_recompute(tti_text *t, const tti_plan *p)
{
    if (!is_compared(p))
        return;
    tti_text_add(t, "\nrecompute: %d nodes, about %d %% of the forward work\n", p->n_recomputed,
                 recompute_percent(p));
    for (int d = 0; d < p->top->n_devices; d++) {
        size_t plain = p->devices[d].plain_bytes, now = p->devices[d].arena_bytes;
        tti_text_add(t, "%-8s arena ", p->top->devices[d]->name);
        put_human(t, now);
        tti_text_add(t, " instead of ");
        put_human(t, plain);
        tti_text_add(t, ", saves ");
        put_human(t, plain > now ? plain - now : 0);
        tti_text_add(t, "\n");
    }
}

// Of GPUs that add in any order: who carries the sums between them, and how many there are.
typedef struct carried {
    bool is_asked;
    const char *words; // NULL: nobody but our own kernels
    const char *why;   // likewise
    int n[3];          // by tti_collective_kind
} carried;

static carried carried_by(const tti_plan *p)
{
    carried c = {.why = "no sum is supported by the library"};
    for (int d = 0; d < p->top->n_devices; d++)
        c.is_asked |= tti_has_streams(p->top->devices[d]);
    c.is_asked &=
        tti_mesh_size(&p->mesh, TTI_AXIS_DATA) > 1 && p->top->spread.reduce == TT_REDUCE_FAST;
    if (p->n_communicators > 0 && !p->communicators[0].is_usable)
        c.why = p->communicators[0].words;
    for (int64_t u = 0; u < p->n_collectives; u++) {
        if (p->collectives[u].communicator < 0 || p->nodes[p->collectives[u].first].is_dropped)
            continue;
        c.words = p->communicators[p->collectives[u].communicator].words;
        c.n[p->collectives[u].what->kind]++;
    }
    return c;
}

static void print_carried(tti_text *t, const tti_plan *p)
{
    carried c = carried_by(p);
    if (c.is_asked && c.words != NULL)
        tti_text_add(t,
                     "\ngradient sums: by %s, in any order: %d all_reduce, %d reduce_scatter, %d "
                     "all_gather in %d groups\n",
                     c.words, c.n[TTI_ALL_REDUCE], c.n[TTI_REDUCE_SCATTER], c.n[TTI_ALL_GATHER],
                     p->exe.n_groups);
    else if (c.is_asked)
        tti_text_add(t, "\ngradient sums: by Tutti's own kernels, in any order: %s\n", c.why);
}

static void json_carried(tti_text *t, const tti_plan *p)
{
    carried c = carried_by(p);
    if (!c.is_asked)
        return;
    tti_text_add(t, ",\n\"sums\":{\"by\":");
    tti_text_json(t, c.words != NULL ? c.words : "");
    tti_text_add(t, ",\"why\":");
    tti_text_json(t, c.words == NULL ? c.why : "");
    tti_text_add(t, ",\"all_reduce\":%d,\"reduce_scatter\":%d,\"all_gather\":%d,\"groups\":%d}",
                 c.n[TTI_ALL_REDUCE], c.n[TTI_REDUCE_SCATTER], c.n[TTI_ALL_GATHER],
                 p->exe.n_groups);
}

// What is received: the same value between the same devices counts as one.
typedef struct transfer {
    const tt_tensor *tensor;
    int from, to;
    int first; // position of the first
    int times;
    size_t bytes;
} transfer;

static int by_transfer(const void *a, const void *b)
{
    const transfer *x = a, *y = b;
    int64_t id = x->tensor->node->id - y->tensor->node->id;
    if (id != 0)
        return id < 0 ? -1 : 1;
    if (x->tensor != y->tensor)
        return x->tensor < y->tensor ? -1 : 1; // of one node: in one array
    if (x->from != y->from)
        return x->from - y->from;
    return x->to != y->to ? x->to - y->to : x->first - y->first;
}

static int by_place(const void *a, const void *b)
{
    return ((const transfer *)a)->first - ((const transfer *)b)->first;
}

// All there are, each once, in the plan's order; how many. list has room for those of every node.
static int list_transfers(const tti_plan *p, transfer *list)
{
    int all = 0, n = 0;
    for (int i = 0; i < p->n_order; i++) {
        const tti_pnode *pn = &p->nodes[p->order[i]];
        if (pn->kind == TTI_RECV)
            list[all++] = (transfer){.tensor = p->values[pn->out].tensor,
                                     .from = pn->from,
                                     .to = pn->device,
                                     .first = i,
                                     .times = 1,
                                     .bytes = p->values[pn->out].bytes};
    }
    qsort(list, (size_t)all, sizeof(*list), by_transfer);
    for (int i = 0; i < all; i++) {
        transfer *last = n > 0 ? &list[n - 1] : NULL;
        if (last == NULL || last->tensor != list[i].tensor || last->from != list[i].from ||
            last->to != list[i].to) {
            list[n++] = list[i];
            continue;
        }
        last->times++;
        last->bytes += list[i].bytes;
    }
    qsort(list, (size_t)n, sizeof(*list), by_place);
    return n;
}

// Each once, with how often: micro-batches repeat them.
static void print_transfers(tti_text *t, const tti_plan *p)
{
    transfer *list = tti_calloc(p->ctx, (size_t)p->n_order + 1, sizeof(*list));
    int n = list == NULL ? 0 : list_transfers(p, list);
    for (int i = 0; i < n; i++) {
        tti_text_add(t, "%s%s -> %s  %-28s ", i > 0 ? "" : "\ntransfers\n",
                     p->top->devices[list[i].from]->name, p->top->devices[list[i].to]->name,
                     p->nodes[p->order[list[i].first]].node->name);
        put_human(t, list[i].bytes);
        if (list[i].times > 1)
            tti_text_add(t, " in %d parts", list[i].times);
        tti_text_add(t, "\n");
    }
    tti_free(p->ctx, list);
}

// A plan on one device, in one go, has nothing to say of layouts.
static bool has_layouts(const tti_plan *p)
{
    return tti_mesh_n_devices(&p->mesh) > 1;
}

static void print_mesh(tti_text *t, const tti_plan *p)
{
    const tti_mesh *m = &p->mesh;
    char text[TTI_MESH_TEXT];
    if (!has_layouts(p))
        return;
    tti_text_add(t, "\nmesh: %s; variables %s", tti_mesh_text(m, text),
                 m->state == TT_LAYOUT_ONE ? "on the first replica" : "on every replica");
    tti_text_add(t, "%s\n", m->n_without_lanes > 0 ? ", which takes no lanes" : "");
}

static void json_mesh(tti_text *t, const tti_plan *p)
{
    const tti_mesh *m = &p->mesh;
    tti_text_add(t, ",\n\"mesh\":{\"axes\":[");
    for (int i = 0; i < m->n_axes; i++)
        tti_text_add(t, "%s{\"name\":\"%s\",\"size\":%d}", i == 0 ? "" : ",",
                     tti_mesh_axis_name(m->axis[i].name), m->axis[i].size);
    tti_text_add(t, "],\"variables\":\"%s\",\"replicas_without_lanes\":%d,\"stages\":%d}",
                 m->state == TT_LAYOUT_ONE ? "one" : "replicated", m->n_without_lanes, m->n_stages);
}

// The layout along every axis of the mesh.
static void json_layout(tti_text *t, const tti_plan *p, const tti_layout *l)
{
    char text[TTI_LAYOUT_TEXT];
    tti_text_add(t, ",\"layout\":{");
    for (int i = 0; i < p->mesh.n_axes; i++) {
        tti_mesh_axis axis = p->mesh.axis[i].name;
        tti_text_add(t, "%s\"%s\":\"%s\"", i == 0 ? "" : ",", tti_mesh_axis_name(axis),
                     tti_layout_entry_text(l->on[axis], text));
    }
    tti_text_add(t, "}");
}

static void put_layout(tti_text *t, const tti_plan *p, const tti_pnode *pn)
{
    char text[TTI_LAYOUTS_TEXT] = "";
    if (has_layouts(p))
        tti_text_add(t, "  %-28s",
                     pn->n_out > 0 ? tti_layout_text(&p->values[pn->out].layout, text) : "");
}

static void print_text(tti_text *t, tti_plan *p)
{
    tti_text_add(t, "%-18s %-28s %-8s %12s", "op", "name", "device", "size");
    tti_text_add(t, has_layouts(p) ? "  %-28s  %s\n" : "%s  %s\n", has_layouts(p) ? "layout" : "",
                 "reason");
    for (int i = 0; i < p->n_order; i++) {
        const tti_pnode *pn = &p->nodes[p->order[i]];
        tti_text op = {.ctx = p->ctx};
        put_op(&op, p, pn);
        char *name = tti_text_take(&op);
        tti_text_add(t, "%-18s %-28s %-8s", name == NULL ? "" : name, pn->node->name,
                     p->top->devices[pn->device]->name);
        put_column(t, bytes_of(p, pn));
        put_layout(t, p, pn);
        tti_text_add(t, "  %s\n", pn->reason == NULL ? "" : pn->reason);
        tti_free(p->ctx, name);
    }
    print_devices(t, p);
    print_mesh(t, p);
    print_bound(t, p);
    print_links(t, p);
    print_pipeline(t, p);
    print_recompute(t, p);
    print_carried(t, p);
    print_transfers(t, p);
    if (p->fallbacks > 0)
        tti_text_add(t, "\n%d node%s not on the device given by a pin or the strategy\n",
                     p->fallbacks, p->fallbacks == 1 ? " is" : "s are");
}

static void json_shape(tti_text *t, const tt_shape *s)
{
    tti_text_add(t, "[");
    for (int i = 0; i < s->rank; i++)
        tti_text_add(t, "%s%lld", i == 0 ? "" : ",", (long long)s->dim[i]);
    tti_text_add(t, "]");
}

static void json_usage(tti_text *t, const tti_device_plan *dp)
{
    const tti_usage *u = &dp->usage;
    tti_text_add(t,
                 "{\"weights\":%zu,\"gradients\":%zu,\"optimizer\":%zu,\"activations\":%zu,"
                 "\"workspace\":%zu,\"total\":%zu",
                 u->weights, u->gradients, u->optimizer, u->activations, u->workspace,
                 tti_plan_bytes(dp));
    if (dp->plain_bytes > 0)
        tti_text_add(t, ",\"arena_without_recompute\":%zu", dp->plain_bytes);
    tti_text_add(t, "}");
}

static void print_json(tti_text *t, tti_plan *p)
{
    tti_text_add(t, "{\"rows\":%lld,\"lanes\":%d,\"fallbacks\":%d,\"nodes\":[", (long long)p->rows,
                 p->lanes.total, p->fallbacks);
    for (int i = 0; i < p->n_order; i++) {
        const tti_pnode *pn = &p->nodes[p->order[i]];
        tti_text_add(t, "%s\n{\"op\":\"", i == 0 ? "" : ",");
        put_op(t, p, pn);
        tti_text_add(t, "\",\"name\":");
        tti_text_json(t, pn->node->name);
        tti_text_add(t, ",\"device\":\"%s\",\"bytes\":%zu,\"reason\":",
                     p->top->devices[pn->device]->name, bytes_of(p, pn));
        tti_text_json(t, pn->reason == NULL ? "" : pn->reason);
        if (pn->n_out > 0) {
            const tti_value *v = &p->values[pn->out], *root = &p->values[tti_root(p, pn->out)];
            tti_text_add(t, ",\"dtype\":\"%s\",\"shape\":", tt_dtype_name(v->dtype));
            json_shape(t, &v->shape);
            if (root->memory == TTI_ARENA)
                tti_text_add(t, ",\"offset\":%zu", root->offset);
            json_layout(t, p, &v->layout);
        }
        tti_text_add(t, "}");
    }
    tti_text_add(t, "],\n\"devices\":[");
    for (int d = 0; d < p->top->n_devices; d++) {
        const tti_device_plan *dp = &p->devices[d];
        tti_text_add(t,
                     "%s\n{\"name\":\"%s\",\"entries\":%d,\"variables\":%zu,\"activations\":%zu,"
                     "\"lower_bound\":%zu,\"received\":%zu,\"limit\":%zu,\"memory\":",
                     d == 0 ? "" : ",", p->top->devices[d]->name, p->exe.lists[d].n_entries,
                     dp->variable_bytes, dp->arena_bytes, dp->lower_bound, dp->received_bytes,
                     p->top->devices[d]->limit);
        json_usage(t, dp);
        tti_text_add(t, "}");
    }
    tti_text_add(t, "]");
    json_mesh(t, p);
    if (p->mesh.n_stages > 0)
        tti_text_add(t, ",\n\"bubble\":%.6f,\"even_bubble\":%.6f", p->bubble, p->even_bubble);
    if (is_compared(p))
        tti_text_add(t, ",\n\"recompute\":{\"nodes\":%d,\"forward_percent\":%d}", p->n_recomputed,
                     recompute_percent(p));
    json_carried(t, p);
    if (bound_of(p) != NULL) {
        tti_text_add(t, ",\n\"bound\":");
        tti_text_json(t, bound_of(p)->bound);
    }
    tti_text_add(t, "}\n");
}

static void print_dot(tti_text *t, tti_plan *p)
{
    static const char *const colors[] = {"#cfe2f3", "#d9ead3", "#fce5cd", "#ead1dc",
                                         "#fff2cc", "#d9d2e9", "#d0e0e3", "#f4cccc"};
    tti_text_add(t, "digraph plan {\n  rankdir=TB;\n  node [shape=box,style=\"rounded,filled\","
                    "fontname=\"sans-serif\",fontsize=10];\n");
    for (int i = 0; i < p->n_order; i++) {
        const tti_pnode *pn = &p->nodes[p->order[i]];
        char shape[TT_SHAPE_TEXT] = "";
        if (pn->n_out > 0)
            tt_shape_text(&p->values[pn->out].shape, shape);
        tti_text_add(t, "  n%d [fillcolor=\"%s\",label=", p->order[i],
                     colors[pn->device % TTI_COUNT(colors)]);
        tti_text label = {.ctx = p->ctx};
        put_op(&label, p, pn);
        tti_text_add(&label, "\n%s\n%s %s", pn->node->name, p->top->devices[pn->device]->name,
                     shape);
        char *text = tti_text_take(&label);
        tti_text_json(t, text == NULL ? "" : text);
        tti_free(p->ctx, text);
        tti_text_add(t, "];\n");
        for (int k = 0; k < pn->n_in; k++) {
            int maker = p->values[pn->in[k]].node;
            if (!p->nodes[maker].is_dropped)
                tti_text_add(t, "  n%d -> n%d%s;\n", maker, p->order[i],
                             pn->kind == TTI_RECV ? " [style=bold,color=\"#cc0000\"]" : "");
        }
        for (int k = 0; k < pn->n_after; k++)
            tti_text_add(t, "  n%d -> n%d [style=dashed];\n", pn->after[k], p->order[i]);
    }
    tti_text_add(t, "}\n");
}

char *tti_plan_text(tti_plan *p, tt_plan_form form)
{
    tti_text t = {.ctx = p->ctx};
    if (form == TT_PLAN_JSON)
        print_json(&t, p);
    else if (form == TT_PLAN_DOT)
        print_dot(&t, p);
    else
        print_text(&t, p);
    return tti_text_take(&t);
}
