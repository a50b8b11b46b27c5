/*
 * queue.h - a queue of elements, for any number of threads and clients.
 *
 * An element is the bytes of its parts, one behind the other, and for a padding queue their shapes.
 * Enqueueing and dequeueing are all or nothing. A handle that has enqueued is a producer, one that
 * has dequeued a consumer; when the last of either is lost without saying goodbye, calls that wait
 * for one fail with its name.
 */
#ifndef TUTTI_SERVE_QUEUE_H
#define TUTTI_SERVE_QUEUE_H

#include "base/base.h"
#include <pthread.h>
#include <tutti/serve.h>

#define TTI_QUEUE_NAME 256

typedef struct tti_queue_shape { // what a queue is made with
    tt_queue_kind kind;
    int64_t capacity, min_after;
    uint64_t seed;
    int n_parts;
    tt_queue_part parts[TT_QUEUE_MAX_PARTS];
} tti_queue_shape;

typedef struct tti_element {
    int64_t priority;
    uint64_t order;
    size_t bytes;
    tt_shape *shapes; // padding: by part, behind data
    char *data;
} tti_element;

typedef struct tti_queue_core {
    char name[TTI_QUEUE_NAME];
    _Atomic int refs;
    tti_queue_shape shape;
    size_t max_bytes; // of all elements
    pthread_mutex_t mu;
    pthread_cond_t changed;
    // Guarded by mu:
    tti_element *v; // ring from head; a heap from 0 of a priority queue
    int64_t head, n;
    size_t bytes;
    uint64_t n_in, n_drawn;
    bool is_closed, is_cancelled;
    int producers, consumers;
    char lost_producer[128], lost_consumer[128]; // the last one that was lost, while none is left
    struct tti_queue_core *next;                 // in its container
} tti_queue_core;

// A call: whose it is, how long it waits, and what ends it early (either may be NULL).
typedef struct tti_queue_call {
    tt_ctx *ctx;
    int64_t wait_ms;
    const _Atomic int *stop; // not 0: TT_ESTOP
} tti_queue_call;

// What is wrong with it is recorded. what: "queue 'a'".
tt_status tti_queue_shape_check(tt_ctx *ctx, const char *name, tti_queue_shape *s) TTI_CHECKED;
tti_queue_core *tti_queue_core_new(tt_ctx *ctx, const char *name, const tti_queue_shape *s,
                                   size_t max_bytes);
void tti_queue_core_retain(tti_queue_core *q);
void tti_queue_core_release(tti_queue_core *q);
// Does what a second opener gives agree with the queue? Zero fields agree with anything.
tt_status tti_queue_core_agrees(tt_ctx *ctx, const tti_queue_core *q,
                                const tti_queue_shape *s) TTI_CHECKED;

// Bytes of one element of a part; with shape, of a padding queue's, -1: it does not fit the part.
int64_t tti_queue_part_bytes(const tti_queue_core *q, int part, const tt_shape *shape);

tt_status tti_queue_core_put(tti_queue_core *q, const tti_queue_call *call,
                             const void *const *values, const tt_shape *shapes, int64_t n,
                             const int64_t *priorities) TTI_CHECKED;
/*
 * Takes elements: *taken, each still the queue's former element; the caller frees them with
 * tti_elements_free(). peek, if not NULL, is asked with the elements, before they are taken,
 * whether they fit; an error of it leaves them in the queue.
 */
typedef tt_status (*tti_queue_fits)(void *user, const tti_element *e, int64_t n);
tt_status tti_queue_core_take(tti_queue_core *q, const tti_queue_call *call, int64_t n, bool up_to,
                              tti_queue_fits fits, void *user, tti_element **out,
                              int64_t *taken) TTI_CHECKED;
void tti_elements_free(tti_element *e, int64_t n);
// The shape that the elements have together: of a padding queue the largest of each dimension.
tt_shape tti_elements_shape(const tti_queue_core *q, const tti_element *e, int64_t n, int part);
// Writes a part of the elements, one behind the other, with that shape.
void tti_elements_write(const tti_queue_core *q, const tti_element *e, int64_t n, int part,
                        const tt_shape *shape, char *to);

tt_ctx *tti_queue_ctx(const tt_queue *q);       // a handle's; NULL for NULL
tti_queue_core *tti_queue_core_of(tt_queue *q); // a handle's; NULL: it is a server's
void tti_queue_core_close(tti_queue_core *q, bool cancel);
int64_t tti_queue_core_size(tti_queue_core *q);
void tti_queue_core_begin(tti_queue_core *q, bool produces); // one more producer, or consumer
// One less; who: its name if it was lost, NULL if it left.
void tti_queue_core_end(tti_queue_core *q, bool produces, const char *who);

#endif
