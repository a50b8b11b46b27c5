/*
 * parts.h - what the files of the module share with each other and with no kernel.
 *
 * Every entry from the library makes its device's card current on the calling thread first. A card
 * whose context was lost by an error (CUDA calls it sticky) stays lost for the process: its first
 * cause is kept and all later calls fail with it.
 */
#ifndef TUTTI_CUDA_PARTS_H
#define TUTTI_CUDA_PARTS_H

#include "cuda/cuda.h"
#include <pthread.h>

#define TTI_MAX_CARDS 64
#define TTI_CAUSE     256

// A block of device memory; in a list, newest first.
typedef struct tti_block {
    struct tti_block *next;
    void *at;
    size_t bytes;
} tti_block;

// A flag to be set by a host function of the stream; used again when it has run.
typedef struct tti_note {
    struct tti_note *next;
    struct tti_flag *flag;
    uint32_t value;
    bool is_captured; // runs any number of times, as long as exec lives
    void *exec;       // NULL while the capture is on
    int is_busy;      // atomic: set here, cleared by the stream
} tti_note;

struct tti_parts {
    tti_block *blocks;
    tti_note *notes;
    cudaStream_t copies; // of what is fed next; made when first asked for
    cudaEvent_t fork;    // orders this stream with others around captures and their launches
    bool is_capturing;
    // Copies from cards that this one does not reach, through pinned memory in two halves, and to
    // cards that do not reach this one.
    char *bounce;
    cudaEvent_t is_in[2]; // this card has taken what was in that half
    cudaStream_t out;
    cudaEvent_t is_out;       // the newest piece has left this card
    cudaStream_t collectives; // of a library, beside other work; made when first asked for
    cudaEvent_t forked;       // what that waits for
    struct tti_communicator_link *communicators; // that this device is in
    int64_t checks;                              // TUTTI_CUDA_CHECK
};

// A captured program and the devices it covers; its launch is in the order of all their streams.
typedef struct tti_exec {
    cudaGraphExec_t graph;
    int n;
    tti_cuda_device *devices[1]; // n
} tti_exec;

// What is known of a card in this process; guarded by mu.
typedef struct tti_card {
    char lost[TTI_CAUSE]; // the error that lost it; "" while it works
    size_t held;          // bytes that alloc gave, over all devices of it
    size_t before;        // bytes in use on it when it was first opened
    int n_open;
} tti_card;
typedef struct tti_cards {
    pthread_mutex_t mu;
    tti_card card[TTI_MAX_CARDS];
} tti_cards;
extern tti_cards tti_cuda_cards;

// Makes d's card current; fails if it is lost.
tt_status tti_cuda_enter(const tti_cuda_device *d);
// The same for releases: never fails, false if the card is lost.
bool tti_cuda_enter_quietly(const tti_cuda_device *d);

// CUDA's number of the i-th card that can be used; -1: there is none.
int tti_cuda_ordinal(int i);
int tti_cuda_count(char *why, size_t n);
tt_status tti_cuda_card_get(int i, tti_cuda_card *out);
void tti_cuda_versions(char *out, size_t n);
void tti_cuda_bits(int i, char *out, size_t n);

tt_status tti_cuda_open_device(tt_ctx *ctx, const char *name, int i, void **out);
#define TTI_MAX_GROUP 64 // devices of a context that work together

// The state of a device of the library; NULL: its memory is the host's, or it is NULL itself.
static inline tti_cuda_device *tti_cuda_of(const struct tti_device *d)
{
    return d == NULL ? NULL : (tti_cuda_device *)((const tti_device_head *)d)->state;
}
// Those of n devices, at most TTI_MAX_GROUP, to out, which it returns.
static inline tti_cuda_device **tti_cuda_all(struct tti_device *const *d, int n,
                                             tti_cuda_device **out)
{
    for (int i = 0; i < n; i++)
        out[i] = tti_cuda_of(d[i]);
    return out;
}

void tti_cuda_close_device(struct tti_device *d);
tt_status tti_cuda_alloc(struct tti_device *d, size_t bytes, void **out);
bool tti_cuda_try_alloc(struct tti_device *d, size_t bytes, void **out);
void tti_cuda_free(struct tti_device *d, void *p);
size_t tti_cuda_overhead(struct tti_device *d);
void *tti_cuda_pinned(struct tti_device *d, size_t bytes);
void tti_cuda_unpin(struct tti_device *d, void *p);

tt_status tti_cuda_copy_now(struct tti_device *to, void *dst, struct tti_device *from,
                            const void *src, size_t bytes);
tt_status tti_cuda_copy(struct tti_device *d, void *dst, const struct tti_device *from,
                        const void *src, size_t bytes);
bool tti_cuda_can_read(const struct tti_device *d, const struct tti_device *other);
bool tti_cuda_reaches(int i, int other);

// As in tti_streams.
void *tti_cuda_stream(struct tti_device *d);
tt_status tti_cuda_record(struct tti_device *d, void **event);
tt_status tti_cuda_record_on(tti_cuda_device *d, cudaStream_t s, void **event);
tt_status tti_cuda_wait(struct tti_device *d, void *event);
tt_status tti_cuda_ahead(struct tti_device *d, void *dst, const void *src, size_t bytes,
                         void *after, void **arrived);
void tti_cuda_settle(struct tti_device *d);
void tti_cuda_drop_event(struct tti_device *d, void *event);
double tti_cuda_elapsed(struct tti_device *d, void *first, void *last);
tt_status tti_cuda_notify(struct tti_device *d, struct tti_flag *flag, uint32_t value);
tt_status tti_cuda_sync(struct tti_device *d, int64_t deadline_ns);
tt_status tti_cuda_sync_on(tti_cuda_device *d, int64_t deadline_ns);
void tti_cuda_settle_on(const tti_cuda_device *d);
void *tti_cuda_pinned_on(const tti_cuda_device *d, size_t bytes);
void tti_cuda_unpin_on(const tti_cuda_device *d, void *p);

tt_status tti_cuda_capture_begin(struct tti_device *const *d, int n);
tt_status tti_cuda_capture_end(struct tti_device *const *d, int n, bool keep, void **exec);
tt_status tti_cuda_launch(struct tti_device *d, void *exec);
void tti_cuda_drop_exec(struct tti_device *d, void *exec);

// Free and total bytes of a card, found by its bus, without a context on it; false: not known.
bool tti_cuda_nvml_memory(const char *bus, size_t *free_bytes, size_t *total);

void tti_recipes_drop(tti_cuda_device *d);

#endif
