/*
 * draft.h - between draft.c and emit.c: an entry's calls before memory is planned.
 */
#ifndef TUTTI_PLAN_DRAFT_H
#define TUTTI_PLAN_DRAFT_H

#include "op/op.h"
#include "plan/plan.h"

// An entry in the making.
typedef struct tti_draft {
    tti_call *calls;
    int n_calls;
    size_t scratch_bytes;
    size_t *scratch_at; // per call: its scratch, its local
    size_t *local_at;
    size_t *wide_at; // per argument: its f32 form; SIZE_MAX: not widened
    bool has_entry;
} tti_draft;

typedef struct tti_emitter {
    tti_plan *p;
    const tti_plan_request *req;
    tti_draft *drafts; // by plan node
    int *scratch;      // by plan node: value
    int *run;          // by plan node: the first of those whose calls may be made at once; -1
    int *entry;        // by plan node: index in its device's list; -1
    tti_flag **flag;   // by plan node
    uint8_t *wanted;   // by plan node: another process waits for it
} tti_emitter;

// waits.c: entries that wait for others, by their plan nodes.
typedef struct tti_wait_list {
    tti_emitter *e;
    int *from, *to;
    int64_t n, cap_from, cap_to;
} tti_wait_list;
tt_status tti_collect_waits(tti_wait_list *w) TTI_CHECKED;

// prepare.c: tti_prepare() with a kernel that is not the op's own.
tt_status tti_prepare_kernel(tti_plan *p, const tt_node *n, const tt_kernel *k, const tti_device *d,
                             const tt_lanes *lanes, const tt_arg *in, const tt_arg *out,
                             tt_prep *prep) TTI_CHECKED;

// Pieces of a draft: room for calls, a call with its arguments unfilled, how many threads it takes.
bool tti_start_draft(tti_emitter *e, int pnode, int calls);
tti_call *tti_new_call(tti_emitter *e, int pnode, tt_kernel_fn fn, int n_in, int n_out);
void tti_set_threads(tti_call *c, int n_threads, double ns);
// reduce_tree.c: of what puts sums, rows or pieces together, with the kernels of a CPU.
tt_status tti_draft_sums(tti_emitter *e, int pnode) TTI_CHECKED;

// The calls of the kinds of plan nodes (node_kinds.c).
tt_status tti_draft_op(tti_emitter *e, int pnode) TTI_CHECKED;
tt_status tti_draft_fused(tti_emitter *e, int pnode) TTI_CHECKED;
tt_status tti_draft_chain(tti_emitter *e, int pnode) TTI_CHECKED;
tt_status tti_draft_combining(tti_emitter *e, int pnode) TTI_CHECKED;
tt_status tti_draft_collective(tti_emitter *e, int pnode) TTI_CHECKED;
tt_status tti_draft_hook(tti_emitter *e, int pnode) TTI_CHECKED;
tt_status tti_draft_transfer(tti_emitter *e, int pnode) TTI_CHECKED;

// The calls of one plan node; has_entry tells whether there are any.
tt_status tti_draft_node(tti_emitter *e, int pnode);

#endif
