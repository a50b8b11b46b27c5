/*
 * fit.h - the training loop's own state. fit.c is the loop; fit_tell.c what it tells (progress,
 * events, report); fit_nan.c steps that are not finite; fit_devices.c how devices spent their time,
 * fit_share.c lanes by that; fit_hash.c hashes of the weights; fit_watch.c early stopping,
 * plateaus, the best; fit_save.c checkpoints; fit_ranks.c what several processes agree upon.
 */
#ifndef TUTTI_TRAIN_FIT_H
#define TUTTI_TRAIN_FIT_H

#include "record/progress.h"
#include "save/checkpoint.h"
#include "train/compile.h"

// Hashes of the weights at some steps, fit_hash.c.
typedef struct tti_fit_hashing {
    bool is_on;
    int64_t every;              // 0: by what they cost
    int64_t next, at;           // the step of the next one; its place in a list of steps
    int64_t mark_ns, mark_step; // the time of all steps at the last one, and its step
} tti_fit_hashing;

typedef struct tti_fit {
    tt_model *model;
    tti_step *step;
    tt_data *data;
    tt_fit_opts o; // its pointers lead to what follows
    tt_callback callbacks[TT_MAX_CALLBACKS];
    int n_callbacks;
    tt_watch early_stop, plateau_watch, best_watch;
    int64_t count;           // records of the data
    int64_t rows_per_update; // batch times accumulate
    int64_t updates_per_epoch;
    int64_t first_step;   // of this call: a resumed fit does not begin at 0
    int64_t cursor;       // records seen
    int64_t first_cursor; // of this call
    int64_t base_cursor;  // of this fit
    int field[TTI_MAX_FEEDS];
    int validate_field[TTI_MAX_FEEDS];
    tt_progress progress;
    tti_watch_state early, plateau, best;
    int64_t skipped, told_nan, validations;
    int64_t told_ns; // when the last step event went out
    int64_t epoch_ns, epoch_first_rows;
    bool is_new_epoch;                        // the epoch's sums begin with the next step
    bool stop;                                // a callback or early stopping ended it
    bool is_early;                            // it was early stopping
    bool is_best;                             // the values just looked at are the best so far
    bool has_steps;                           // this call has done a step
    double first_loss;                        // of its first step that was applied
    char early_text[256], plateau_text[256];  // to be told after the epoch's values; "": nothing
    bool wants_stop;                          // a callback of this process says so
    bool is_ended;                            // tt_request_end()
    int64_t agree_at, agreed_step, agreed_ns; // with the other processes, fit_ranks.c
    tti_saver *saver;                         // of the first process; NULL in the others
    int64_t saved_step;
    float *best_weights; // early_stop.restore: all weights, one after another
    tti_times *times;
    tti_progress lines; // with o.progress
    tti_observer observer;
    tti_fit_hashing hashing;
    struct tti_slot *slots; // elastic.h: what copies of the state are made of; NULL: not yet
    int64_t n_slots, copied_step;
    bool has_state;       // elastic.h: a state was noted
    bool is_pending;      // the step before is done, but not what follows it
    bool is_changed;      // it ends at this step because processes come or go
    int64_t *share_marks; // share auto: each device's compute so far; NULL: before and after
} tti_fit;

// fit_tell.c
void tti_fit_begin_event(tti_fit *f);
void tti_fit_progress(tti_fit *f, int64_t rows, double norm);
void tti_fit_progress_before(tti_fit *f); // of a step that begins
void tti_fit_metrics(tti_fit *f); // of the progress: only where someone looks, before they do
void tti_fit_step_event(tti_fit *f, bool force);
void tti_fit_epoch_event(tti_fit *f, const char *kind);
tt_status tti_fit_report(tti_fit *f) TTI_CHECKED;
const char *tti_fit_end_name(tt_fit_end end); // in events: "finished", "early_stop", ...

// Begins and ends writing progress to o.progress, if that is given.
void tti_fit_show(tti_fit *f);
void tti_fit_show_end(tti_fit *f);

/*
 * fit_nan.c: after a step that was not applied. overflow is that of f16: the scale is halved by the
 * step itself; where it cannot be, what is wrong is not the scale, and the run fails unless it
 * asked to skip such steps.
 */
tt_status tti_fit_not_finite(tti_fit *f, const tt_batch_data *b,
                             const void *const *fields) TTI_CHECKED;
tt_status tti_fit_overflow(tti_fit *f, const tt_batch_data *b,
                           const void *const *fields) TTI_CHECKED;

// fit_devices.c: reads the clocks; one event a device, when there are several.
tt_status tti_fit_tell_devices(tti_fit *f) TTI_CHECKED;

// fit_ranks.c: after each step, whether all processes end.
tt_status tti_fit_agree(tti_fit *f) TTI_CHECKED;

// fit_share.c: share auto, after each step; once, lanes are dealt by how long they took.
tt_status tti_fit_share(tti_fit *f) TTI_CHECKED;

// fit_hash.c: agrees with the other processes; after each step, an event if a hash is due.
tt_status tti_fit_hash_begin(tti_fit *f) TTI_CHECKED;
tt_status tti_fit_hash(tti_fit *f) TTI_CHECKED;

// fit_watch.c
tt_status tti_fit_check_watch(tti_fit *f, const char *what, const tt_watch *w) TTI_CHECKED;
// Looks at early stopping and plateau after an epoch or a validation; f->is_best for checkpoints.
tt_status tti_fit_watch(tti_fit *f) TTI_CHECKED;
void tti_fit_watch_tell(tti_fit *f);                  // what that decided, as events
const char *tti_fit_best_name(const tti_fit *f);      // what the best checkpoint is chosen by
tt_status tti_fit_check_loss(tti_fit *f) TTI_CHECKED; // fails where training has diverged
tt_status tti_fit_restore_best(tti_fit *f) TTI_CHECKED;

// fit_save.c
tt_status tti_fit_open_saver(tti_fit *f) TTI_CHECKED; // and goes on from the newest if asked
tt_status tti_fit_save(tti_fit *f, bool is_best) TTI_CHECKED;
// The newest checkpoint or the best, in all processes; *has false: there is none.
tt_status tti_fit_read(tti_fit *f, bool best, tti_snapshot *out, bool *has) TTI_CHECKED;
void tti_fit_close_saver(tti_fit *f);
void tti_fit_state(tti_fit *f, tti_train_state *s); // all but the tensors
// Goes on from a snapshot, which comes from a file or from what is called so.
tt_status tti_fit_go_on(tti_fit *f, const tti_snapshot *s, const char *from) TTI_CHECKED;

#endif
