/*
 * stages.c - what each stage of planning did: the program before and after it in numbers, and the
 * program as text.
 */
#include "plan/stages.h"
#include "device/device.h"
#include <stdio.h>
#include <string.h>

static const struct {
    const char *name, *does;
} stages[TTI_N_STAGES] = {
    [TTI_STAGE_BUILD] = {"build", "live nodes; duplicates merged, constants folded"},
    [TTI_STAGE_RECOMPUTE] = {"recompute", "activations to compute again instead of keeping them"},
    [TTI_STAGE_SPREAD] = {"spread", "copies for replicas, stages and micro-batches; their sums"},
    [TTI_STAGE_PLACE] = {"place", "a device for every node"},
    [TTI_STAGE_CUT] = {"cut", "transfers between devices"},
    [TTI_STAGE_CHAIN] = {"chain", "nodes and their readers as one kernel of a GPU"},
    [TTI_STAGE_FUSE] = {"fuse", "chains of pointwise nodes as one"},
    [TTI_STAGE_ORDER] = {"order", "one order of all nodes"},
    [TTI_STAGE_MEMORY] = {"memory", "lifetimes, in-place results, offsets"},
    [TTI_STAGE_EMIT] = {"emit", "kernel calls, addresses, waits"},
};

const char *tti_stage_name(tti_stage s)
{
    return stages[s].name;
}

tt_status tti_stage_find(tt_ctx *ctx, const char *name, tti_stage *out)
{
    const char *names[TTI_N_STAGES + 1] = {NULL}, *near;
    char list[TTI_N_STAGES * 16] = "";
    for (int i = 0; i < TTI_N_STAGES; i++) {
        names[i] = stages[i].name;
        if (strcmp(names[i], name) == 0) {
            *out = (tti_stage)i;
            return TT_OK;
        }
        size_t at = strlen(list);
        snprintf(list + at, sizeof(list) - at, "%s%s", i == 0 ? "" : ", ", names[i]);
    }
    near = tti_nearest(name, names);
    return TT_FAIL(ctx, TT_EINVAL, "unknown stage '%.80s'%s%s%s; the stages are %s", name,
                   near != NULL ? " (did you mean '" : "", near != NULL ? near : "",
                   near != NULL ? "'?)" : "", list);
}

// ---- numbers ---------------------------------------------------------------------------------

static void count_node(const tti_plan *p, const tti_pnode *pn, tti_stage_counts *c)
{
    c->nodes++;
    c->values += pn->n_out;
    c->transfers += pn->kind == TTI_RECV || pn->kind == TTI_SEND;
    c->sums += tti_kind_of(pn)->combines || pn->kind == TTI_LIBRARY_COLLECTIVE;
    for (int o = 0; o < pn->n_out; o++) {
        const tti_value *v = &p->values[pn->out + o];
        if (pn->kind == TTI_RECV)
            c->transferred += v->bytes;
        if (v->memory == TTI_ARENA && v->root == pn->out + o)
            c->bytes += v->bytes;
    }
}

void tti_stage_count(const tti_plan *p, tti_stage_counts *out)
{
    *out = (tti_stage_counts){.is_done = true};
    for (int64_t i = 0; i < p->n_nodes; i++)
        if (!p->nodes[i].is_dropped)
            count_node(p, &p->nodes[i], out);
    for (int d = 0; d < p->top->n_devices; d++) {
        out->arenas += p->devices[d].arena_bytes;
        out->entries += p->exe.lists[d].n_entries;
    }
}

void tti_stage_watch_see(tti_stage_watch *w, const tti_plan *p, tti_stage stage, int64_t ns)
{
    if (stage == TTI_STAGE_BUILD) { // of another plan
        w->graph_nodes = p->graph->n_nodes;
        w->graph_tensors = 0;
        for (int64_t i = 0; i < p->graph->n_nodes; i++)
            w->graph_tensors += p->graph->nodes[i]->n_out;
        memset(w->after, 0, sizeof(w->after));
    }
    tti_stage_count(p, &w->after[stage]);
    w->after[stage].ns = ns;
    if ((int)stage != w->show)
        return;
    tti_free(p->ctx, w->text);
    w->text = tti_program_text(p, stage);
}

void tti_stage_watch_deinit(tt_ctx *ctx, tti_stage_watch *w)
{
    tti_free(ctx, w->text);
    w->text = NULL;
}

static void put_size(tti_text *t, size_t bytes)
{
    char size[32];
    tti_size_text((double)bytes, size);
    tti_text_add(t, " %11s", size);
}

static void print_row(tti_text *t, const char *name, const tti_stage_counts *before,
                      const tti_stage_counts *c, const char *does)
{
    tti_text_add(t, "%-10s %8lld -> %-8lld %8lld -> %-8lld", name, (long long)before->nodes,
                 (long long)c->nodes, (long long)before->values, (long long)c->values);
    put_size(t, c->bytes);
    tti_text_add(t, " %9lld", (long long)c->transfers);
    put_size(t, c->transferred);
    tti_text_add(t, " %6lld", (long long)c->sums);
    put_size(t, c->arenas);
    tti_text_add(t, " %8lld %8.2f  %s\n", (long long)c->entries, (double)c->ns * 1e-6, does);
}

static void print_json(tti_text *t, const char *name, const tti_stage_counts *before,
                       const tti_stage_counts *c, bool first)
{
    tti_text_add(t,
                 "%s\n{\"stage\":\"%s\",\"nodes_in\":%lld,\"nodes\":%lld,\"values_in\":%lld,"
                 "\"values\":%lld,\"bytes_in\":%zu,\"bytes\":%zu,\"transfers\":%lld,"
                 "\"transferred\":%zu,\"sums\":%lld,\"arenas\":%zu,\"entries\":%lld,\"ms\":%.3f}",
                 first ? "" : ",", name, (long long)before->nodes, (long long)c->nodes,
                 (long long)before->values, (long long)c->values, before->bytes, c->bytes,
                 (long long)c->transfers, c->transferred, (long long)c->sums, c->arenas,
                 (long long)c->entries, (double)c->ns * 1e-6);
}

// The numbers of what planning began with.
static tti_stage_counts counts_of_graph(const tti_stage_watch *w)
{
    return (tti_stage_counts){.nodes = w->graph_nodes, .values = w->graph_tensors};
}

char *tti_stage_watch_text(tt_ctx *ctx, const tti_stage_watch *w)
{
    tti_text t = {.ctx = ctx};
    tti_stage_counts before = counts_of_graph(w);
    tti_text_add(&t, "%-10s %8s    %-8s %8s    %-8s %11s %9s %11s %6s %11s %8s %8s  %s\n", "stage",
                 "nodes", "after", "values", "after", "bytes", "transfers", "received", "sums",
                 "arenas", "entries", "ms", "result");
    for (int i = 0; i < TTI_N_STAGES; i++) {
        if (!w->after[i].is_done)
            continue;
        print_row(&t, stages[i].name, &before, &w->after[i], stages[i].does);
        before = w->after[i];
    }
    if (w->text != NULL)
        tti_text_add(&t, "\nthe program after %s\n%s", stages[w->show].name, w->text);
    return tti_text_take(&t);
}

char *tti_stage_watch_json(tt_ctx *ctx, const tti_stage_watch *w)
{
    tti_text t = {.ctx = ctx};
    tti_stage_counts before = counts_of_graph(w);
    tti_text_add(&t, "{\"stages\":[");
    for (int i = 0, n = 0; i < TTI_N_STAGES; i++) {
        if (!w->after[i].is_done)
            continue;
        print_json(&t, stages[i].name, &before, &w->after[i], n++ == 0);
        before = w->after[i];
    }
    tti_text_add(&t, "]");
    if (w->text != NULL) {
        tti_text_add(&t, ",\n\"program\":{\"after\":\"%s\",\"text\":", stages[w->show].name);
        tti_text_json(&t, w->text);
        tti_text_add(&t, "}");
    }
    tti_text_add(&t, "}\n");
    return tti_text_take(&t);
}

// ---- the program as text ---------------------------------------------------------------------

static void put_op(tti_text *t, const tti_plan *p, const tti_pnode *pn)
{
    if (pn->kind != TTI_FUSED && pn->kind != TTI_CHAINED)
        tti_text_add(t, "%s", tti_pnode_kind_name(pn));
    for (int i = 0; (pn->kind == TTI_FUSED || pn->kind == TTI_CHAINED) && i < pn->n_members; i++)
        tti_text_add(t, "%s%s", i == 0 ? "" : "+", p->nodes[pn->members[i]].node->op->name);
}

// "f32[4, 8] in %3 [data split(0)@1] at 1024": type, whose memory it is, layout, where.
static void put_value(tti_text *t, const tti_plan *p, int v, tti_stage stage)
{
    static const char *const memories[] = {"", " variable", " constant", " staged"};
    const tti_value *value = &p->values[v];
    char shape[TT_SHAPE_TEXT];
    tt_shape_text(&value->shape, shape);
    tti_text_add(t, "%s%s", tt_dtype_name(value->dtype), shape);
    if (value->root != v)
        tti_text_add(t, " in %%%d", value->root);
    tti_text_add(t, "%s", memories[value->memory]);
    char layout[TTI_LAYOUTS_TEXT];
    if (strcmp(tti_layout_text(&value->layout, layout), "replicated") != 0)
        tti_text_add(t, " [%s]", layout);
    if (stage >= TTI_STAGE_MEMORY && value->root == v && value->memory == TTI_ARENA &&
        value->count > 0)
        tti_text_add(t, " at %zu", value->offset);
}

static void put_node(tti_text *t, const tti_plan *p, int i, tti_stage stage)
{
    const tti_pnode *pn = &p->nodes[i];
    tti_text_add(t, "%5d %-8s ", i, pn->device < 0 ? "-" : p->top->devices[pn->device]->name);
    for (int o = 0; o < pn->n_out; o++)
        tti_text_add(t, "%s%%%d", o == 0 ? "" : ", ", pn->out + o);
    tti_text_add(t, "%s", pn->n_out > 0 ? " = " : "");
    put_op(t, p, pn);
    tti_text_add(t, "(");
    for (int k = 0; k < pn->n_in; k++)
        tti_text_add(t, "%s%%%d", k == 0 ? "" : ", ", pn->in[k]);
    tti_text_add(t, ")");
    for (int o = 0; o < pn->n_out; o++) {
        tti_text_add(t, "%s", o == 0 ? " : " : ", ");
        put_value(t, p, pn->out + o, stage);
    }
    tti_text_add(t, "  '%s'", pn->node != NULL ? pn->node->name : "");
    bool on_rows = pn->kind == TTI_OP || pn->kind == TTI_FUSED || pn->kind == TTI_CHAINED;
    if (on_rows && pn->lanes != &p->lanes)
        tti_text_add(t, " rows %lld-%lld", (long long)pn->first_row,
                     (long long)(pn->first_row + pn->lanes->bound[pn->lanes->n]));
    if (pn->micro > 0)
        tti_text_add(t, " micro-batch %d", pn->micro);
    if (pn->stage > 0)
        tti_text_add(t, " stage %d", pn->stage);
    for (int k = 0; k < pn->n_after; k++)
        tti_text_add(t, "%s%d", k == 0 ? " after " : ", ", pn->after[k]);
    if (pn->reason != NULL)
        tti_text_add(t, "  (%s)", pn->reason);
    tti_text_add(t, "\n");
}

char *tti_program_text(const tti_plan *p, tti_stage stage)
{
    tti_text t = {.ctx = p->ctx};
    bool ordered = stage >= TTI_STAGE_ORDER;
    for (int64_t i = 0; i < (ordered ? p->n_order : p->n_nodes); i++) {
        int node = ordered ? p->order[i] : (int)i;
        if (!p->nodes[node].is_dropped)
            put_node(&t, p, node, stage);
    }
    return tti_text_take(&t);
}
