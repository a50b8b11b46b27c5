/*
 * elastic.h - a fit in a job whose processes may change: what one process keeps in memory while its
 * context is closed and another one, with other processes, is opened.
 *
 * A step is applied in all processes or in none of them that count: each knows whether its
 * variables are those before the step in flight, those after it, or neither. The first two are
 * kept as they are; of the last, the copy that is made now and then is. All go on from the newest
 * that one of them has.
 */
#ifndef TUTTI_TRAIN_ELASTIC_H
#define TUTTI_TRAIN_ELASTIC_H

#include "save/checkpoint.h"
#include <tutti/train.h>

struct tti_fit;

// The state after a step, in memory of no context.
typedef struct tti_kept {
    bool has;
    bool is_pending; // what follows a step (validation, checkpoints) is still to be done
    int64_t validations;
    tt_progress progress;
    tti_snapshot snapshot;
} tti_kept;

typedef struct tti_elastic {
    // Set before a fit.
    int64_t epoch;            // number of the membership, from 1
    int source;               // the rank whose state all go on from; -1: as without all this
    int64_t since_ns;         // when the membership began to change; 0: it is the first
    char message[512];        // why; "": nothing is told
    _Atomic int wants_change; // the fit is to end at the next step that all agree upon
    // Set by it.
    bool is_changed;            // it has ended because of that
    int64_t reached;            // the newest step that this process has seen
    int64_t lost_steps;         // steps that are computed again
    tti_kept last, copy;        // at the end of the fit; from time to time during it
    int64_t copied_ns, copy_ns; // when the copy was made, and how long that took
    // The state that goes with the variables as they are after the last step.
    tti_train_state state;
    tt_progress progress;
    int64_t validations;
    bool is_pending;
} tti_elastic;

void tti_elastic_free(tti_elastic *e); // what it keeps
// How far the state is that it would go on from: twice the step, + 1 if what follows it is done;
// -1: there is none.
int64_t tti_elastic_age(const tti_elastic *e);

// ---- of a fit; all do nothing where the job is not elastic -----------------------------------

// After a step, and again after what follows it.
void tti_elastic_commit(struct tti_fit *f, bool is_pending);
// Is it time for a copy? The first rank says so, and all make it.
bool tti_elastic_is_copy_due(const struct tti_fit *f);
tt_status tti_elastic_copy(struct tti_fit *f) TTI_CHECKED;
// After a step: a copy of this process's own, if it takes next to no time and nobody is asked.
void tti_elastic_copy_cheaply(struct tti_fit *f);
// The fit ends, well or not: keeps the newest whole state.
void tti_elastic_keep(struct tti_fit *f);
// All ranks: goes on from the state of the source.
tt_status tti_elastic_restore(struct tti_fit *f) TTI_CHECKED;
bool tti_elastic_is_resumed(const struct tti_fit *f); // it has a source
// After the first step: tells that the membership has changed.
void tti_elastic_tell(struct tti_fit *f);

#endif
