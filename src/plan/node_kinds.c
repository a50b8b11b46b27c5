/*
 * node_kinds.c - the kinds of plan nodes, one record each: a new kind is a row here, a word in
 * plan.h and a function that drafts its calls.
 */
#include "comm/comm.h"
#include "plan/emit/draft.h"

static const char *op_name(const tti_pnode *pn)
{
    return pn->node->op->name;
}

static const char *fused_name(const tti_pnode *pn)
{
    return pn->n_members > 1 ? "fused" : op_name(pn);
}

static const char *collective_name(const tti_pnode *pn)
{
    return tti_call_name((int)pn->what->kind);
}

// ---- what they write -------------------------------------------------------------------------

static bool op_writes(const tti_plan *p, const tti_pnode *pn, int k)
{
    (void)p;
    return tti_writes(pn->node, k);
}

// Pieces of a variable are put into the copy that is the first input.
static bool writes_first(const tti_plan *p, const tti_pnode *pn, int k)
{
    return k == 0 && p->values[pn->out].memory == TTI_VARIABLE;
}

// What narrowing takes away is kept in the last input.
static bool writes_last(const tti_plan *p, const tti_pnode *pn, int k)
{
    (void)p;
    return k == pn->n_in - 1;
}

// ---- the records -----------------------------------------------------------------------------

static const tti_kind kinds[] = {
    [TTI_OP] = {.name_of = op_name, .writes = op_writes, .draft = tti_draft_op},
    [TTI_RECV] = {.name = "receive",
                  .communicates = true,
                  .layout = TTI_LAYOUT_MOVES,
                  .draft = tti_draft_transfer},
    [TTI_COPY] = {.name = "copy", .layout = TTI_LAYOUT_MOVES, .draft = tti_draft_transfer},
    [TTI_FUSED] = {.name_of = fused_name, .kernel = TTI_KERNEL_FUSED, .draft = tti_draft_fused},
    [TTI_TREE] = {.name = "tree",
                  .kernel = TTI_KERNEL_TREE,
                  .communicates = true,
                  .combines = true,
                  .combines_lanes = true,
                  .layout = TTI_LAYOUT_REDUCES,
                  .draft = tti_draft_combining},
    [TTI_GATHER] = {.name = "gather",
                    .kernel = TTI_KERNEL_GATHER,
                    .communicates = true,
                    .combines = true,
                    .combines_lanes = true,
                    .layout = TTI_LAYOUT_GATHERS,
                    .draft = tti_draft_combining},
    [TTI_MOMENTS] = {.name = "merge",
                     .kernel = TTI_KERNEL_MOMENTS,
                     .communicates = true,
                     .combines = true,
                     .combines_lanes = true,
                     .layout = TTI_LAYOUT_REDUCES,
                     .draft = tti_draft_combining},
    [TTI_COLLECT] = {.name = "collect",
                     .kernel = TTI_KERNEL_COLLECT,
                     .communicates = true,
                     .combines = true,
                     .writes = writes_first,
                     .layout = TTI_LAYOUT_COLLECTS,
                     .draft = tti_draft_combining},
    [TTI_NARROW] = {.name = "narrow",
                    .kernel = TTI_KERNEL_NARROW,
                    .communicates = true,
                    .writes = writes_last,
                    .layout = TTI_LAYOUT_REDUCES,
                    .draft = tti_draft_combining},
    [TTI_SEND] = {.name = "send",
                  .communicates = true,
                  .layout = TTI_LAYOUT_MOVES,
                  .draft = tti_draft_transfer},
    [TTI_LIBRARY_COLLECTIVE] = {.name_of = collective_name,
                                .communicates = true,
                                .writes = writes_first,
                                .layout = TTI_LAYOUT_LIBRARY,
                                .draft = tti_draft_collective},
    [TTI_HOOK] = {.name = "hook",
                  .communicates = true,
                  .combines = true,
                  .layout = TTI_LAYOUT_MOVES,
                  .draft = tti_draft_hook},
    [TTI_HOOKED] = {.name = "hooked", .layout = TTI_LAYOUT_REDUCES, .draft = tti_draft_hook},
    [TTI_CHAINED] = {.name = "chain", .draft = tti_draft_chain},
};

const tti_kind *tti_kind_of(const tti_pnode *pn)
{
    return &kinds[pn->kind];
}

bool tti_writes_input(const tti_plan *p, const tti_pnode *pn, int k)
{
    const tti_kind *kind = tti_kind_of(pn);
    return kind->writes != NULL && kind->writes(p, pn, k);
}

const char *tti_pnode_kind_name(const tti_pnode *pn)
{
    const tti_kind *k = tti_kind_of(pn);
    return k->name != NULL ? k->name : k->name_of(pn);
}

bool tti_is_communication(const tti_pnode *pn)
{
    return tti_kind_of(pn)->communicates;
}
