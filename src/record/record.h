/*
 * record.h - the run folder: runs/NAME-NNN with job.yaml, events.jsonl, tensorboard/, checkpoints/.
 *
 * A recorder listens to a context's events and writes them down; nothing else knows of it. Curves
 * are read back from events.jsonl and drawn.
 */
#ifndef TUTTI_RECORD_RECORD_H
#define TUTTI_RECORD_RECORD_H

#include "base/base.h"
#include "base/file.h"

#define TTI_RUN_PATH (TTI_PATH_MAX - 512) // with room for the files in it

/*
 * Makes "<root>/<name>-<nnn>", its number one above the highest there. ASCII of name that is no
 * letter, digit, '.', '_' or '-' becomes '-', as do bytes that are no UTF-8; other letters stay.
 */
tt_status tti_run_folder_new(tt_ctx *ctx, const char *root, const char *name,
                             char path[TTI_RUN_PATH]) TTI_CHECKED;
// Fails if the name is too long for a folder's.
tt_status tti_run_name_check(tt_ctx *ctx, const char *name) TTI_CHECKED;
// The one with the highest number, or the highest below *number if that is not 0; *number becomes
// its own. "" if there is none.
tt_status tti_run_folder_below(tt_ctx *ctx, const char *root, const char *name, int *number,
                               char path[TTI_RUN_PATH]) TTI_CHECKED;
// The one with the highest number; "" if there is none.
tt_status tti_run_folder_newest(tt_ctx *ctx, const char *root, const char *name,
                                char path[TTI_RUN_PATH]) TTI_CHECKED;

typedef struct tti_recorder tti_recorder;
/*
 * Appends to the folder's events.jsonl and, if asked, writes a TensorBoard event file of its own. A
 * file that cannot be written is told once, as a warning; that is no error.
 */
tt_status tti_recorder_open(tt_ctx *ctx, const char *folder, bool tensorboard,
                            tti_recorder **out) TTI_CHECKED;
void tti_recorder_close(tti_recorder *r); // NULL is fine
// Hyper-parameters for TensorBoard; nothing where it is not written for.
void tti_recorder_keys(tti_recorder *r, const tt_pair *pairs, int n);
/*
 * Also writes the chain of the run (chain.h), for which fits of the context tell hashes of their
 * weights until the recorder is closed: at these steps, or as the context's hashing says already.
 */
struct tti_chain_opts;
tt_status tti_recorder_chain(tti_recorder *r, const char *folder,
                             const struct tti_chain_opts *o) TTI_CHECKED;

/*
 * Tells where the run comes from, as an event "record" (origin.c): versions, arithmetic, data,
 * machine, environment, and what is known of the program's commit; "" or NULL: nothing.
 */
struct tt_data;
typedef struct tti_run_origin {
    const char *commit, *changed;
    struct tt_data *train, *validate, *test; // NULL: none
} tti_run_origin;
tt_status tti_run_origin_tell(tt_ctx *ctx, const tti_run_origin *o) TTI_CHECKED;

/*
 * Also sends events to servers (tracker.h), from here on. Addresses that are empty or NULL are left
 * out; name is the job's. Fails with TT_EINVAL for what is no address.
 */
typedef struct tti_track_opts {
    const char *http, *mlflow, *name;
} tti_track_opts;
tt_status tti_recorder_track(tti_recorder *r, const char *folder,
                             const tti_track_opts *o) TTI_CHECKED;

/*
 * What a rank of a job with several processes tells: "<folder>/logs/rank-<n>.log", a line for each
 * of its context's log lines and events but those of single steps. Added to, as events.jsonl is. It
 * outlives the context; errors of closing that are in it, too.
 */
typedef struct tti_rank_log tti_rank_log;
tt_status tti_rank_log_open(tt_ctx *ctx, const char *folder, int rank,
                            tti_rank_log **out) TTI_CHECKED;
void tti_rank_log_close(tti_rank_log *l); // NULL is fine

// Is a value of a step, by its name, a loss or metric, and no count, time or rate?
bool tti_is_measure(const char *name);

// ---- TensorBoard's event files (tensorboard.c) -----------------------------------------------

#define TTI_BOARD_MAX 4096 // bytes of one record, at most

uint32_t tti_crc32c(const void *data, size_t bytes);
// Each writes one record to out and gives its bytes. The first of a file:
size_t tti_board_version(double time, uint8_t out[TTI_BOARD_MAX]);
// A run goes on from step: TensorBoard forgets what it read of this step and later ones.
size_t tti_board_start(double time, int64_t step, uint8_t out[TTI_BOARD_MAX]);
// Values of one step; pairs that do not fit are left out.
size_t tti_board_scalars(double time, int64_t step, const tt_pair *pairs, int n,
                         uint8_t out[TTI_BOARD_MAX]);

/*
 * The keys of a job for TensorBoard's page of hyper-parameters: numbers, or texts where a pair has
 * one. Pairs that do not fit are left out.
 */
#define TTI_BOARD_KEYS 16384
size_t tti_board_keys(double time, const tt_pair *pairs, int n, uint8_t out[TTI_BOARD_KEYS]);

#define TTI_BOARD_TAG 256 // bytes of a name, at most
// A histogram of the values that are finite; 0 bytes: there are none, or the tag is too long.
size_t tti_board_histogram(double time, int64_t step, const char *tag, const float *values,
                           int64_t n, uint8_t out[TTI_BOARD_MAX]);
// An image; room and out have bytes + TTI_BOARD_MAX each.
struct tti_picture;
size_t tti_board_image(double time, int64_t step, const char *tag, const struct tti_picture *p,
                       const uint8_t *png, size_t bytes, uint8_t *room, uint8_t *out);

/*
 * Adds them to what a recorder writes for TensorBoard; nothing where it writes nothing for it. What
 * cannot be written is dropped, as other records are.
 */
void tti_recorder_histogram(tti_recorder *r, const char *tag, int64_t step, const float *values,
                            int64_t n);
void tti_recorder_image(tti_recorder *r, const char *tag, int64_t step,
                        const struct tti_picture *p);

// ---- pictures (picture.c) --------------------------------------------------------------------

#define TTI_PICTURE_SIDE 4096 // pixels of a side, at most
#define TTI_CLASSES      640  // of a confusion matrix, at most
typedef struct tti_picture {
    uint8_t *pixels;             // rows from the top, channels of a pixel side by side
    int height, width, channels; // channels: 1 grey, 3 red, green and blue, 4 with opacity
} tti_picture;
// Encoded as PNG; *bytes is its size. Free with tti_free(); NULL: out of memory.
uint8_t *tti_picture_png(tt_ctx *ctx, const tti_picture *p, size_t *bytes);
/*
 * A confusion matrix, counts [n, n] by class and prediction: a row per class, darker where more of
 * the class are predicted so, with the percentage in each cell up to 20 classes. pixels: to be
 * freed with tti_free(); NULL: out of memory.
 */
tti_picture tti_picture_confusion(tt_ctx *ctx, const double *counts, int n);

// ---- curves (plot.c, plot_svg.c, plot_text.c) ------------------------------------------------

typedef struct tti_point {
    double x, y; // step, value; both finite
} tti_point;
typedef struct tti_curve {
    char name[64]; // "loss"
    int64_t n, cap, n_validation, cap_validation;
    tti_point *points, *validation; // by ascending step
} tti_curve;
#define TTI_MAX_CURVES 16
typedef struct tti_curves {
    tt_ctx *ctx;
    char title[64]; // above the picture; set by the caller, if at all
    int n;
    tti_curve curve[TTI_MAX_CURVES]; // the loss first
} tti_curves;

/*
 * Reads the losses and metrics of an events.jsonl. Lines that are no events are passed over; where
 * a run was resumed, what came after the checkpoint is replaced by what was done again.
 */
tt_status tti_curves_read(tt_ctx *ctx, const char *path, tti_curves *out) TTI_CHECKED;
void tti_curves_free(tti_curves *c);
typedef struct tti_range {
    double x_low, x_high, y_low, y_high;
} tti_range;
tti_range tti_curve_range(const tti_curve *k); // of all its points; it has at least one
// A picture, one panel a curve. Free with tti_free(); NULL: out of memory.
char *tti_curves_svg(const tti_curves *c);
/*
 * The same in characters, width columns wide. Plain: ASCII only, else Braille dots; colour: with
 * escape codes.
 */
typedef struct tti_text_plot {
    int width, height; // of a panel, axes included
    bool plain, colour;
} tti_text_plot;
char *tti_curves_text(const tti_curves *c, const tti_text_plot *form);

/*
 * Several runs in one picture: a panel for each loss and metric, for training and for validation,
 * with a line of each run that has such values.
 */
#define TTI_MAX_LINES  16
#define TTI_MAX_PANELS (2 * TTI_MAX_CURVES)
typedef struct tti_line {
    const char *label; // the run's
    int run;           // its number, for its colour and letter
    const tti_point *points;
    int64_t n;
} tti_line;
typedef struct tti_panel {
    char name[80]; // "loss", "validation loss"
    int n;
    tti_line line[TTI_MAX_LINES];
} tti_panel;
// The panels of n runs, whose curves are borrowed; gives how many.
int tti_panels_make(const tti_curves *const *runs, const char *const *labels, int n,
                    tti_panel out[TTI_MAX_PANELS]);
tti_range tti_panel_range(const tti_panel *p); // of all its points; it has at least one
char *tti_panels_svg(tt_ctx *ctx, const char *title, const tti_panel *panels, int n);
char *tti_panels_text(tt_ctx *ctx, const tti_panel *panels, int n, const tti_text_plot *form);

// An axis: ticks at round numbers within [low, high].
#define TTI_MAX_TICKS 16
typedef struct tti_axis {
    double low, high; // the range that is drawn
    bool is_log;
    int n;
    double at[TTI_MAX_TICKS];
    char label[TTI_MAX_TICKS][16];
} tti_axis;
// wanted: about so many ticks. Logarithmic only where may_log, low > 0 and high >= 30 low.
void tti_axis_make(double low, double high, int wanted, bool may_log, tti_axis *out);
double tti_axis_place(const tti_axis *a, double value); // 0 at low, 1 at high

// Points of one column of a drawing.
typedef struct tti_column {
    double x, mean, low, high;
} tti_column;
// Gathers points by their place on the x axis; gives how many of the columns have any.
int tti_gather(const tti_point *points, int64_t n, const tti_axis *x, int columns, tti_column *out);

#endif
