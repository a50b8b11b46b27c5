/*
 * stages.h - the stages of planning by name, and what each has done to the program.
 */
#ifndef TUTTI_PLAN_STAGES_H
#define TUTTI_PLAN_STAGES_H

#include "plan/plan.h"

typedef enum tti_stage {
    TTI_STAGE_BUILD,
    TTI_STAGE_RECOMPUTE,
    TTI_STAGE_SPREAD,
    TTI_STAGE_PLACE,
    TTI_STAGE_CUT,
    TTI_STAGE_CHAIN,
    TTI_STAGE_FUSE,
    TTI_STAGE_ORDER,
    TTI_STAGE_MEMORY, // a trial ends here
    TTI_STAGE_EMIT,
    TTI_N_STAGES,
} tti_stage;
const char *tti_stage_name(tti_stage s);
// The stage of a name; TT_EINVAL, listing the names, if there is none.
tt_status tti_stage_find(tt_ctx *ctx, const char *name, tti_stage *out) TTI_CHECKED;

// The program after a stage, in numbers.
typedef struct tti_stage_counts {
    int64_t nodes;      // that do something: views and sources too, not what was dropped
    int64_t values;     // that these make
    size_t bytes;       // of those that need memory in an arena, as if none shared any
    int64_t transfers;  // receives and sends
    size_t transferred; // bytes that these receive
    int64_t sums;       // nodes that put together what several devices or micro-batches made
    size_t arenas;      // bytes of all arenas, from memory on
    int64_t entries;    // of all devices' lists, once emitted
    int64_t ns;         // that the stage took
    bool is_done;       // false: the stage was left out
} tti_stage_counts;
void tti_stage_count(const tti_plan *p, tti_stage_counts *out);

/*
 * Sees a plan after each of its stages: tti_plan_request.watch. Trials, which other plans are
 * compared with, are not seen.
 */
typedef struct tti_stage_watch {
    int64_t graph_nodes, graph_tensors; // what planning began with
    tti_stage_counts after[TTI_N_STAGES];
    int show;   // stage whose program is kept as text; -1: none
    char *text; // that program; free with tti_stage_watch_deinit()
} tti_stage_watch;
void tti_stage_watch_deinit(tt_ctx *ctx, tti_stage_watch *w);
// What the stages did as a table, with the program if it was kept; and as JSON. Free with
// tti_free(). NULL: TT_ENOMEM recorded.
char *tti_stage_watch_text(tt_ctx *ctx, const tti_stage_watch *w);
char *tti_stage_watch_json(tt_ctx *ctx, const tti_stage_watch *w);

// The program after a stage as text, a node a line; from order on in the plan's order.
char *tti_program_text(const tti_plan *p, tti_stage stage);

// plan.c: a stage went well. Debug builds check the plan (verify.h); then the watch sees it.
tt_status tti_stage_done(tti_plan *p, const tti_plan_request *req, tti_stage stage) TTI_CHECKED;
void tti_stage_watch_see(tti_stage_watch *w, const tti_plan *p, tti_stage stage, int64_t ns);

#endif
