/*
 * streams.h - what a backend does whose kernels only enqueue work. A module that is loaded fills
 * this record itself: nothing of the library stands between a call and its function. Such a module
 * knows a device by its head.
 */
#ifndef TUTTI_DEVICE_STREAMS_H
#define TUTTI_DEVICE_STREAMS_H

#include "device/collective.h"

#ifdef __cplusplus
extern "C" {
#endif

struct tti_device;
struct tti_flag;

// What a device begins with.
typedef struct tti_device_head {
    void *state;   // the backend's; NULL: its memory is the host's, or another process has it
    char name[32]; // "cpu:1"; of several processes "task:1/cpu:0"
} tti_device_head;

/*
 * Of devices whose kernels only enqueue work on streams of theirs. One thread at a time submits for
 * all such devices of a context, walking their entries in the plan's order, so that a wait is
 * always for something already enqueued. copy is between memory of any two devices (NULL: the
 * host's, which must not change until sync). An event is made by the first record() with *event
 * NULL and freed by drop_event(). notify sets a flag of the host once all that is enqueued on d has
 * ended. sync waits for d, naming op and device if work of its failed. Between capture_begin() and
 * capture_end() work of these devices is not run but gathered into *exec, which launch() runs any
 * number of times.
 */
typedef struct tti_streams {
    void *(*stream)(struct tti_device *d); // for tt_launch.stream; to be called before a kernel is
    tt_status (*copy)(struct tti_device *d, void *dst, const struct tti_device *from,
                      const void *src, size_t bytes);
    tt_status (*record)(struct tti_device *d, void **event);
    tt_status (*wait)(struct tti_device *d, void *event);
    void (*drop_event)(struct tti_device *d, void *event);
    tt_status (*notify)(struct tti_device *d, struct tti_flag *flag, uint32_t value);
    tt_status (*sync)(struct tti_device *d, int64_t deadline_ns);
    tt_status (*capture_begin)(struct tti_device *const *d, int n);
    tt_status (*capture_end)(struct tti_device *const *d, int n, bool keep, void **exec);
    tt_status (*launch)(struct tti_device *d, void *exec);
    void (*drop_exec)(struct tti_device *d, void *exec);
    // Seconds between two events that have ended, for traces.
    double (*elapsed)(struct tti_device *d, void *first, void *last);
    // Memory of the host that copies at full speed; NULL: none left.
    void *(*pinned)(struct tti_device *d, size_t bytes);
    void (*unpin)(struct tti_device *d, void *p);
    /*
     * ahead copies from the host beside the device's other work: after the event, if there is one,
     * *arrived being recorded then. settle waits for such copies. try_alloc is false, with nothing
     * recorded, where there is no memory.
     */
    tt_status (*ahead)(struct tti_device *d, void *dst, const void *src, size_t bytes, void *after,
                       void **arrived);
    void (*settle)(struct tti_device *d);
    bool (*try_alloc)(struct tti_device *d, size_t bytes, void **out);
    /*
     * Joint work, by a library. joins: can it between these n devices? words say which library it
     * is, or why not. gang makes their state, or finds it; it lives as long as the first of them to
     * close. together enqueues work on all of them at once, beside their other work but after all
     * of that so far; mark records an event after it, which others have to wait for.
     */
    bool (*joins)(struct tti_device *const *d, int n, char *words, size_t size);
    tt_status (*gang)(struct tti_device *const *d, int n, void **out);
    tt_status (*together)(void *gang, const tti_library_call *list, int n);
    tt_status (*mark)(struct tti_device *d, void **event);
} tti_streams;

#ifdef __cplusplus
}
#endif
#endif
