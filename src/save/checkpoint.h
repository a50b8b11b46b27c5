/*
 * checkpoint.h - checkpoints: a folder with weights.safetensors, optimizer.safetensors and
 * manifest.json (step, cursor, checksums, the job).
 *
 * Written as "<folder>/.tmp-<name>", synced, renamed to "<folder>/<name>"; a checkpoint is there as
 * a whole or not at all. Nothing in it depends on time, place, devices or threads: equal runs
 * write equal bytes.
 */
#ifndef TUTTI_SAVE_CHECKPOINT_H
#define TUTTI_SAVE_CHECKPOINT_H

#include "device/device.h"
#include "save/safetensors.h"
#include <tutti/train.h>

#define TTI_MAX_SUMS 8192

typedef struct tti_watch_state {
    bool has_best;
    double best;
    int64_t bad; // looks without a better value
} tti_watch_state;

// Everything a run needs to go on, its tensors apart. A new field is a row in manifest.c.
typedef struct tti_train_state {
    int64_t step;   // updates done
    int64_t cursor; // records seen: epoch * count + place in it
    int64_t count;  // records of an epoch; 0: not known
    int lanes;
    int64_t batch, accumulate;
    uint64_t seed;
    int arithmetic;
    char gpu[TTI_BITS_TEXT]; // models and libraries that decide the bits of GPUs; "": none
    double lr_factor;        // of the plateau rule
    tti_watch_state early, plateau, best;
    int64_t skipped;   // steps of this fit not applied
    int64_t unapplied; // steps of the model's life not applied: Adam does not count them
    int n_sums;        // loss and metrics of the epoch so far
    double sums[TTI_MAX_SUMS];
    char *job; // the resolved job without what only says where it runs; may be NULL
} tti_train_state;

// What a file of weights says of itself.
typedef enum tti_origin {
    TTI_FROM_TUTTI = 0, // a checkpoint, or metadata format: tutti
    TTI_FROM_TORCH,     // metadata format: pt
    TTI_FROM_UNKNOWN,
} tti_origin;

typedef struct tti_snapshot {
    tti_train_state state;
    tti_origin origin;
    int64_t n_weights; // tensors[0..n_weights) are the model's, the rest the optimizer's
    int64_t n;
    tti_named *tensors;
    char *memory[2], *names[2]; // what tensors point into, if not to memory of variables
    char *path;                 // where it was read from; NULL: nowhere
    char *card;                 // of the model (save/card.h); NULL: none, as of one that was read
} tti_snapshot;

// Writes a checkpoint to path as a whole, after it was read back. What is there is replaced if it
// is a checkpoint, and left alone with an error if it is anything else or of another version.
tt_status tti_checkpoint_write(tt_ctx *ctx, const char *path, const tti_snapshot *s) TTI_CHECKED;
/*
 * Reads one: checks the manifest, every checksum and the tables before anything is given out.
 * Everything in *out is freed by tti_snapshot_free().
 */
tt_status tti_checkpoint_read(tt_ctx *ctx, const char *path, tti_snapshot *out) TTI_CHECKED;
void tti_snapshot_free(tt_ctx *ctx,
                       tti_snapshot *s); // its tensor list, job and what it was read to
/*
 * state_hash.c: hashes of what a checkpoint holds, as text: equal for the snapshot that was written
 * and the one that is read. The state is all of it but the tensors.
 */
typedef struct tti_snapshot_hashes {
    char weights[33], optimizer[33], state[33];
} tti_snapshot_hashes;
tt_status tti_snapshot_hash(tt_ctx *ctx, const tti_snapshot *s,
                            tti_snapshot_hashes *out) TTI_CHECKED;
/*
 * look.c: is it whole? TT_OK with damage "" if so; TT_OK with what is wrong if it is proven to be
 * damaged; any other status, recorded, if it cannot be judged: of another version, not readable.
 * Sizes are compared, with deep every byte by the checksums.
 */
#define TTI_DAMAGE 160
tt_status tti_checkpoint_look(tt_ctx *ctx, const char *path, bool deep,
                              char damage[TTI_DAMAGE]) TTI_CHECKED;
/*
 * Path of the newest whole checkpoint of a folder ("step-<n>"), "" if there is none. Damaged ones
 * are skipped with a warning; one that cannot be judged is an error. Leftovers of a save that was
 * cut off are removed.
 */
tt_status tti_checkpoint_newest(tt_ctx *ctx, const char *folder,
                                char path[TTI_PATH_MAX]) TTI_CHECKED;
// The same to go on from: every byte is compared, and a folder whose checkpoints are all damaged is
// an error.
tt_status tti_checkpoint_resume(tt_ctx *ctx, const char *folder,
                                char path[TTI_PATH_MAX]) TTI_CHECKED;
// How many there are by their names, whatever is in them.
tt_status tti_checkpoint_count(tt_ctx *ctx, const char *folder, int64_t *n) TTI_CHECKED;
// Moves the checkpoints of a folder out of the way, to "<folder>.old-<n>"; moved is "" if there is
// nothing to move.
tt_status tti_checkpoint_set_aside(tt_ctx *ctx, const char *folder,
                                   char moved[TTI_PATH_MAX]) TTI_CHECKED;
// Path of the one that the folder's file "best" names; "" if there is none, or, with a warning, if
// the file is damaged or what it names is not there.
tt_status tti_checkpoint_best(tt_ctx *ctx, const char *folder, char path[TTI_PATH_MAX]) TTI_CHECKED;
// The step of a name "step-<n>"; -1 for any other.
int64_t tti_checkpoint_step(const char *name);
// The newest checkpoint where path is a folder of them, or of a run; path itself otherwise.
tt_status tti_checkpoint_resolve(tt_ctx *ctx, const char *path, char out[TTI_PATH_MAX]) TTI_CHECKED;

/*
 * The background writer of one folder. save() waits until the save before has ended, copies the
 * tensors and returns; the thread writes "step-<n>", then removes all that are older than the
 * newest keep, but for the best. Only checkpoints that were read whole count as kept, and none that
 * cannot be judged is removed. Errors of the thread stick in the context and are returned by the
 * next call. A step below one that the folder had before is refused: it belongs to another run.
 */
typedef struct tti_saver tti_saver;
tt_status tti_saver_open(tt_ctx *ctx, const char *folder, int keep, tti_saver **out) TTI_CHECKED;
tt_status tti_saver_save(tti_saver *s, const tti_snapshot *snapshot, bool is_best) TTI_CHECKED;
tt_status tti_saver_wait(tti_saver *s) TTI_CHECKED; // until everything given is on disk
// The run goes on from that step's checkpoint, which was read: later ones are its to replace.
tt_status tti_saver_resumed(tti_saver *s, int64_t step) TTI_CHECKED;
const char *tti_saver_newest(tti_saver *s); // path of the last one that is whole; ""
void tti_saver_close(tti_saver *s);         // waits; NULL is fine

/*
 * A model's weights and, once it is compiled, the other variables of its training graph. The
 * tensors point into the store: valid until the variables are freed, and changed by every step. The
 * state is all zero but for seed, lanes and arithmetic.
 */
tt_status tti_model_snapshot(tt_model *m, tti_snapshot *out) TTI_CHECKED;
// Writes a snapshot's values into the variables; all names, types and shapes are compared first.
// weights_only leaves the optimizer's variables as they are.
tt_status tti_model_restore(tt_model *m, const tti_snapshot *s, bool weights_only) TTI_CHECKED;

#endif
