/*
 * run_info.h - what became of a run.
 */
#ifndef TUTTI_RECORD_RUN_INFO_H
#define TUTTI_RECORD_RUN_INFO_H

#include "record/record.h"

typedef enum tti_run_state {
    TTI_RUN_EMPTY,       // nothing was trained
    TTI_RUN_TRAINING,    // a process trains in the folder
    TTI_RUN_FINISHED,    // all epochs or steps are done
    TTI_RUN_STOPPED,     // by early stopping or a callback
    TTI_RUN_INTERRUPTED, // on request, after saving
    TTI_RUN_FAILED,      // with an error
    TTI_RUN_KILLED,      // its last start has no end, and no process trains
} tti_run_state;
const char *tti_run_state_name(tti_run_state state); // "finished"

typedef struct tti_run_info {
    tti_run_state state;
    double time; // of the last event, else of the folder; seconds since 1970
    int n_starts;
    int64_t step, steps; // done, and in total
    char best_name[64];  // "validation_loss"; "": there is none
    double best;         // its best value
    char hash[33];       // of the weights when it last ended; "": it has not
    char why[512];       // the error, or why it stopped; "": nothing is known
} tti_run_info;

// Reads a run's folder. A file that cannot be read makes an empty run; fails if the path is too
// long.
tt_status tti_run_info_read(tt_ctx *ctx, const char *folder, tti_run_info *out) TTI_CHECKED;
bool tti_run_is_locked(const char *folder); // does a process train in it?

#endif
