/*
 * data.h (internal) - a data set: a source, transforms, an order, and batches read ahead.
 *
 * Batches are numbered from the cursor that tt_data_start() was given; each number says by itself
 * which records it holds (order.c). So whoever is free, a worker or the caller, takes the next
 * number and fills its slot of a ring (read.c); who did it cannot be seen in the result.
 */
#ifndef TUTTI_DATA_DATA_H
#define TUTTI_DATA_DATA_H

#include "base/ctx.h"
#include "base/thread.h"
#include "data/chance.h"
#include "data/decode.h"
#include <tutti/data.h>

#define TTI_MAX_TRANSFORMS 16
#define TTI_MAX_BATCH      ((int64_t)1 << 40)

// ---- kinds of sources ------------------------------------------------------------------------

#define X(kind) extern const tt_source_def tti_source_##kind;
#include "data/sources.def"
#undef X

extern const tt_option tti_data_options[];  // rows over tt_data_opts: common to all kinds
extern const tt_option tti_split_options[]; // rows over tt_data_split_opts

// The common part of some kind's options.
#define TTI_DATA_OPTS(o)                               \
    ((tt_data_opts){.opts_size = sizeof(tt_data_opts), \
                    .batch = (o).batch,                \
                    .no_shuffle = (o).no_shuffle,      \
                    .seed = (o).seed,                  \
                    .workers = (o).workers,            \
                    .prefetch = (o).prefetch,          \
                    .compare_all = (o).compare_all})

// ---- transforms ------------------------------------------------------------------------------

typedef struct tti_transform tti_transform;

// A kind of transform: of one field of one record, from x to y, which do not overlap.
typedef struct tti_transform_def {
    const char *name, *help;
    const tt_option *options; // rows over tt_transform_opts
    const char *main;         // the row that a bare value sets; NULL: none
    // Optional: replaces the options that ask for numbers from the data. own: texts to free.
    tt_status (*fit)(tt_data *d, tti_transform *t, char *own[2]);
    // Checks t->in and the options, says what comes out in t->out; may allocate t->table.
    tt_status (*prepare)(tt_ctx *ctx, tti_transform *t);
    // random: four words keyed by (seed, epoch, record) and the transform's place in its field.
    // room: memory of the reader, kept from record to record.
    tt_status (*apply)(tt_ctx *ctx, const tti_transform *t, int64_t record,
                       const tti_philox *random, tti_decode_room *room, const void *x, void *y);
    bool mixes; // with another record, after all transforms (mix.c)
} tti_transform_def;
// The row that every kind has.
#define TTI_FIELD_ROW                                                       \
    {                                                                       \
        "field", TT_OPT_TEXT, "", "field to transform; default: the first", \
            offsetof(tt_transform_opts, field), 0, 0, NULL                  \
    }
const tti_transform_def *tti_transform_at(int i); // NULL past the end
const tti_transform_def *tti_transform_find(const char *name);
#define X(kind) extern const tti_transform_def tti_transform_##kind;
#include "data/transforms.def"
#undef X

struct tti_transform {
    const tti_transform_def *def;
    tt_transform_opts opts; // texts are not kept
    int field;
    int place; // which of its field's transforms it is: the same on two fields, the same numbers
    tt_field in, out;
    float *table; // what prepare() worked out; freed with the data set
    char *about;  // its options as JSON; freed with it, too
};

// mix.c. All other fields must be f32 when it is added.
tt_status tti_mix_check(tt_data *d, const tti_transform *t) TTI_CHECKED;
// The record to mix with, -1: none; and how much of the first is kept.
int64_t tti_mix_partner(const tt_data *d, const tti_transform *t, const tti_philox *random,
                        double *keep, tti_chance *c);
void tti_mix(const tt_data *d, const tti_transform *t, double keep, tti_chance *c, void *const *x,
             void *const *other);

size_t tti_field_bytes(const tt_field *f); // of one record; the source's were checked

// ---- data sets -------------------------------------------------------------------------------

// Room for one batch.
typedef struct tti_slot {
    tti_flag ready;   // how often a batch in it has been made ready
    tt_status status; // of reading it; not TT_OK: message says why
    char message[TTI_MESSAGE_MAX];
    void *fields[TT_MAX_FIELDS];
} tti_slot;

/*
 * Whoever reads: the caller is reader 0, workers follow. Its context takes the errors of reading
 * ahead, so that they come out with the batch they belong to and not whenever they happen.
 */
typedef struct tti_reader {
    tt_data *data;
    tti_thread thread;
    tt_ctx ctx;
    char *source[TT_MAX_FIELDS]; // where a field with transforms is read to
    char *scratch[2];            // between transforms
    void *other[TT_MAX_FIELDS];  // the record that one is mixed with; NULL: nothing is mixed
    tti_decode_room room;        // of transforms of images
    _Atomic uint64_t n_read;     // records; its own, for who waits
} tti_reader;

// read_record.c: a record of an epoch, to a row of a slot; errors are recorded in the reader's ctx.
tt_status tti_record_read(const tt_data *d, tti_reader *r, const tti_slot *slot, int64_t epoch,
                          int64_t record, int64_t row) TTI_CHECKED;

// What tt_data_start() makes; kept from start to start while the sizes stay.
typedef struct tti_ring {
    int64_t rows; // most rows of a batch
    int n_slots, n_readers;
    tti_slot *slots;
    tti_reader *readers;
    char *memory, *scratch;
} tti_ring;

// A file, or a folder of files, that a source reads, as its options name it.
#define TTI_DATA_FILES 4
#define TTI_DATA_PATH  256
typedef struct tti_data_file {
    char path[TTI_DATA_PATH]; // its end, if it is longer
    int64_t bytes;            // of a folder: of the files in it
} tti_data_file;

// Class labels, or ids of an embedding, that a model can use; others are errors when they are read.
typedef struct tti_labels {
    int64_t classes; // they are below it; 0: not checked
    bool has_ignore;
    int64_t ignore; // a label that is allowed besides
    bool is_id;
    char layer[64]; // the output that is compared with labels, or the embedding: for the message
} tti_labels;

struct tt_data {
    tt_ctx *ctx;
    struct tti_hooks owned;
    const tt_source_def *def; // NULL: a source of the caller's
    tt_source source;
    int *n_users;      // data sets that share the source; NULL: this one only
    tt_data_opts opts; // filled
    int64_t count;     // records: all of the source, or those of a split
    int64_t *subset;   // their indices in the source, in order; NULL: all
    const char *role;  // "training", "validation", "test": for messages; NULL: not known
    tti_labels labels[TT_MAX_FIELDS];
    tt_field fields[TT_MAX_FIELDS];
    tti_transform transforms[TTI_MAX_TRANSFORMS];
    int n_transforms;
    // Records by lane: those of lane l are lane_records[lane_first[l]..lane_first[l + 1]).
    int64_t *lane_first, *lane_records;

    tti_data_file files[TTI_DATA_FILES]; // for compare.c
    int n_files;
    bool is_compared;  // with those of the job's other processes
    bool is_warned_of; // a value that is not finite

    int own_first, own_last, own_lanes; // tti_data_own(); own_lanes 0: all rows are read

    // Set by tt_data_start().
    bool is_started;
    int64_t batch; // rows asked for
    int64_t epoch, first;
    tti_ring ring;
    int64_t next;             // number of the batch that tt_data_next() gives
    _Atomic int64_t claimed;  // batches [0, claimed) are read or being read
    _Atomic int64_t released; // batches [0, released) have been handed back
    tti_flag work;            // goes up when workers should look again
    _Atomic bool stop;
};

const char *tti_data_name(const tt_data *d); // for messages
// The index in the source of the i-th record.
static inline int64_t tti_data_record(const tt_data *d, int64_t i)
{
    return d->subset != NULL ? d->subset[i] : i;
}

/*
 * where.c: adds where a value is: "training data: csv 'a.csv': record 3, line 5, column 'b'".
 * record is its index in the source; element is that of the field, -1: none.
 */
void tti_data_where(const tt_data *d, int64_t record, int field, int64_t element, tti_text *t);
// "the training data (csv 'a.csv')"
void tti_data_title(const tt_data *d, int field, tti_text *t);
// Fails if the record, whose values are in x, has a label that the model cannot use.
tt_status tti_data_check_labels(const tt_data *d, tt_ctx *ctx, int64_t record, int field,
                                const void *x) TTI_CHECKED;

// ---- single records, outside of batches ------------------------------------------------------

typedef struct tti_single {
    tti_reader reader;
    tti_slot slot; // its fields have the record after tti_single_read()
    char *memory;
} tti_single;
tt_status tti_single_open(tt_data *d, tti_single *s) TTI_CHECKED;
// Errors are recorded in d's context.
tt_status tti_single_read(tti_single *s, int64_t record) TTI_CHECKED;
void tti_single_close(tti_single *s); // one that is all zero is fine

// Batch number k: its epoch, first place in it, and rows.
tt_batch_data tti_batch_at(const tt_data *d, int64_t k);
// The batch that tt_data_next() will give, if it is there already.
bool tti_data_peek(tt_data *d, tt_batch_data *out);
// From the next tt_data_start() on only rows of lanes [first, last) of so many are read; what else
// is in a batch has no meaning. lanes 0: all.
void tti_data_own(tt_data *d, int first, int last, int lanes);
// Lists of records by lane, for a source that says lanes.
tt_status tti_lanes_build(tt_data *d) TTI_CHECKED;
// That every lane has the records that batches of so many rows need.
tt_status tti_lanes_check(tt_data *d, int64_t batch) TTI_CHECKED;
// The records at n places of an epoch from i on, in batches of so many rows.
void tti_order_at(const tt_data *d, int64_t epoch, int64_t batch, int64_t i, int64_t n,
                  int64_t *out);

void tti_ring_free(tt_data *d);

/*
 * compare.c: all processes of a job call it, in the same order; only the first call with a data set
 * does something. Fails in all of them, naming rank, file and what differs. what is "data.train".
 */
tt_status tti_data_compare(tt_data *d, const char *what) TTI_CHECKED;
/*
 * compare.c: what tells one data set from another, for the record of a run: the number of records,
 * fields and transforms, some records spread over all, and the files. Large files are hashed in
 * part (fingerprint.c).
 */
typedef struct tti_data_print {
    int64_t count;
    uint64_t fields, records;
    int n_files;
    struct {
        const char *path; // of the data set
        int64_t bytes;
        uint64_t hash; // 0: it cannot be read
    } file[TTI_DATA_FILES];
} tti_data_print;
tt_status tti_data_print_make(tt_data *d, tti_data_print *out) TTI_CHECKED;
uint64_t tti_file_print(const char *path); // of a file, or of the files in a folder

#endif
