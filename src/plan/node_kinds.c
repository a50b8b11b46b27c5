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

// Sends or receives what is there.
#define TRANSFER(name_)                                                  \
    {                                                                    \
        .name = name_, .communicates = true, .layout = TTI_LAYOUT_MOVES, \
        .draft = tti_draft_transfer                                      \
    }
// Makes one value of several by a kernel that reads them where they are, on other devices too.
#define COMBINING(name_, kernel_, layout_, ...)                                   \
    {                                                                             \
        .name = name_, .kernel = TTI_KERNEL_##kernel_, .communicates = true,      \
        .layout = TTI_LAYOUT_##layout_, .draft = tti_draft_combining, __VA_ARGS__ \
    }
#define OF_LANES .combines = true, .combines_lanes = true

static const tti_kind kinds[] = {
    [TTI_OP] = {.name_of = op_name, .writes = op_writes, .draft = tti_draft_op},
    [TTI_RECV] = TRANSFER("receive"),
    [TTI_COPY] = {.name = "copy", .layout = TTI_LAYOUT_MOVES, .draft = tti_draft_transfer},
    [TTI_FUSED] = {.name_of = fused_name, .kernel = TTI_KERNEL_FUSED, .draft = tti_draft_fused},
    [TTI_TREE] = COMBINING("tree", TREE, REDUCES, OF_LANES),
    [TTI_GATHER] = COMBINING("gather", GATHER, GATHERS, OF_LANES),
    [TTI_MOMENTS] = COMBINING("merge", MOMENTS, REDUCES, OF_LANES),
    [TTI_COLLECT] =
        COMBINING("collect", COLLECT, COLLECTS, .combines = true, .writes = writes_first),
    [TTI_NARROW] = COMBINING("narrow", NARROW, REDUCES, .writes = writes_last),
    [TTI_SEND] = TRANSFER("send"),
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
