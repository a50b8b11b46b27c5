/*
 * world.h - the processes of a job, connected: who they are, small exchanges that all take part in,
 * messages of any size between two, memory that processes of one host share, and the loss of one.
 *
 * Every process makes the same plan and runs the same calls in the same order, so an exchange needs
 * no leader: it is matched by its number. What arrives says what it is, and that is compared before
 * its data is looked at. Nothing here waits without a deadline; when a process is lost, every wait
 * ends and the context has the one report that all processes get: who, and what everybody was
 * doing.
 */
#ifndef TUTTI_NET_WORLD_H
#define TUTTI_NET_WORLD_H

#include "base/ctx.h"
#include "base/thread.h"
#include <sys/uio.h>
#include <tutti/tasks.h>

typedef struct tti_world tti_world;

// What is known of a process after everybody has said hello.
typedef struct tti_rank {
    char name[64]; // "/job:worker/task:1"
    char host[64];
    char devices[256]; // as given to its tt_open()
    int pid;
    bool shares_memory; // on this host, with memory that can be mapped: not with transport "wire"
    double bytes_per_second, latency_us; // of the self-test of the link; 0 for this process
} tti_rank;

/*
 * Connects to all tasks: hello (version, arithmetic, job, transport), authenticated and encrypted
 * by keys derived from the job's secret; then a self-test of every link. All errors name the task,
 * in the same words on every rank where it is one of the job's. On failure nothing is left.
 */
tt_status tti_world_open(tt_ctx *ctx, const tt_tasks *tasks, const char *devices,
                         tti_world **out) TTI_CHECKED;
/*
 * After the last call of this process: says goodbye, so that leaving is not loss; a context that
 * carries an error tells it to the others first, as tti_world_fail() does. NULL is allowed.
 */
void tti_world_close(tti_world *w);

// A time to wait for others where so many processes of the job are on this machine: longer where
// they outnumber the cores by far, and at the start also where much else runs here.
int64_t tti_timeout_ms(int64_t ms, int processes, bool is_start);
#define TTI_RENDEZVOUS_MS 10000 // where nothing else is said

// The address of an interface of this machine, "eth0", as a number; false: there is none.
bool tti_interface_address(const char *interface, char out[128]);

int tti_world_self(const tti_world *w);
int tti_world_size(const tti_world *w);
uint32_t tti_world_count(const tti_world *w); // exchanges so far: the same in all between two
const tti_rank *tti_world_rank(const tti_world *w, int rank);

/*
 * Everybody gives bytes (the same number) and gets those of all, by rank. what is for messages and
 * must be equal in all: who differs is named. The context's thread only; deadline_ms 0: the
 * context's. Errors are recorded.
 */
tt_status tti_world_exchange(tti_world *w, const char *what, const void *mine, size_t bytes,
                             void *all, int64_t deadline_ms) TTI_CHECKED;

// Some of the ranks, for exchanges among them alone.
typedef struct tti_subgroup {
    uint64_t id;                // the same in all of them, and of no other subgroup; below 2^63
    int n, ranks[TT_MAX_TASKS]; // ascending; this process is one of them
    uint32_t count;             // exchanges so far
} tti_subgroup;
/*
 * The subgroup of some ranks, or of all if ranks is NULL. A second one of the same ranks is another
 * one: those who make it count how many they have made. The context's thread only.
 */
tt_status tti_subgroup_make(tti_world *w, const int *ranks, int n, tti_subgroup *out) TTI_CHECKED;
// As tti_world_exchange(); all is by the place in the subgroup.
tt_status tti_subgroup_exchange(tti_world *w, tti_subgroup *c, const char *what, const void *mine,
                                size_t bytes, void *all, int64_t deadline_ms) TTI_CHECKED;

/*
 * How far all others have come, and the processor time they have used, as of their last heartbeats;
 * their sum says whether anything gets on. Any thread.
 */
uint64_t tti_world_progress(const tti_world *w, int64_t *cpu_ms);
int64_t tti_world_heartbeat(const tti_world *w); // milliseconds
void tti_world_has_devices(tti_world *w);        // from here on others are told how far this one is

// ---- messages --------------------------------------------------------------------------------

// What a message is; equal on both sides, or it is an error and never wrong data.
typedef struct tti_message {
    uint64_t plan; // fingerprint of the plan, or of a group; those with the top bit are the world's
    uint32_t run;  // sequence
    uint32_t edge; // which of the plan's
    uint64_t bytes;
} tti_message;

/*
 * Hands bytes over to be sent; returns as soon as they are copied, which takes as long as the link
 * takes to get rid of all but the last few megabytes. Any thread. TT_ETIMEOUT once nothing has got
 * on for wait_ms (timeout.h) and TT_EPEER when the world has failed are not recorded here: the
 * latter is already.
 */
tt_status tti_world_send(tti_world *w, int to, const tti_message *l, const void *data,
                         int64_t wait_ms) TTI_CHECKED;
// The same of bytes that lie in several places: one message, of all of them one after another.
tt_status tti_world_send_parts(tti_world *w, int to, const tti_message *l,
                               const struct iovec *parts, int n, int64_t wait_ms) TTI_CHECKED;
/*
 * Waits for the message from that rank and copies it to data; messages may come in any order. Any
 * thread. One of another size is TT_EINVAL, recorded; other errors as above.
 */
tt_status tti_world_receive(tti_world *w, int from, const tti_message *l, void *data,
                            int64_t wait_ms) TTI_CHECKED;

// What has been sent to a rank so far, all of it but heartbeats and the like. Any thread.
void tti_world_sent(tti_world *w, int to, int64_t *messages, int64_t *bytes);
// Has it come as a whole, of any size, or has the world failed? Any thread.
bool tti_world_has(tti_world *w, int from, const tti_message *l);

// ---- shared memory ---------------------------------------------------------------------------

// Memory that processes of one host can map: zeroed, page aligned. It has no name in any folder and
// goes away with the last process that has it, also a killed one.
typedef struct tti_segment {
    void *at;
    size_t bytes;
    int fd; // -1: another process's, mapped
} tti_segment;
tt_status tti_segment_new(tt_ctx *ctx, size_t bytes, tti_segment *out) TTI_CHECKED;
void tti_segment_free(tti_segment *s); // all zero is allowed
void tti_segment_seal(tti_segment *s); // all who want it have mapped it: no others can
// How another process finds it: sent by tti_world_exchange().
typedef struct tti_segment_name {
    int pid, fd;
    uint64_t bytes;
} tti_segment_name;
tti_segment_name tti_segment_name_of(const tti_segment *s);
// false, with errno: it cannot be mapped. The other one records that.
bool tti_segment_try(const tti_segment_name *name, tti_segment *out) TTI_CHECKED;
tt_status tti_segment_map(tt_ctx *ctx, const tti_segment_name *name, tti_segment *out) TTI_CHECKED;

// ---- loss ------------------------------------------------------------------------------------

/*
 * TT_OK while everybody is well. Else the context has the error: which rank, host, operation, since
 * when, what the others were doing.
 */
tt_status tti_world_status(tti_world *w);
/*
 * Once it has failed: the rank that is lost or stuck, and for how long nothing was heard of it; -1:
 * the cause is another one, an error of a process. Any thread.
 */
int tti_world_lost(tti_world *w, int64_t *silent_ms);
// Tells everybody that this process fails and why; they end with that cause. The first time only.
void tti_world_fail(tti_world *w, tt_status st, const char *message);
// The same with the context's error, its status and its message; st where it has none.
void tti_world_fail_with(tt_ctx *ctx, tt_status st);
/*
 * Records TT_ETIMEOUT: this process has waited for that rank, and nothing got on. Who is named is
 * the rank at the end: it may itself wait for another one, and so on.
 */
tt_status tti_world_stuck(tti_world *w, int rank, const char *what, int64_t wait_ms);
// Whom this process waits for, for the reports of others; -1: nobody. Any thread.
void tti_world_waits_for(tti_world *w, int rank);
// What this process is doing, for reports: copied; NULL: nothing. Any thread.
void tti_world_doing(tti_world *w, const char *operation, const char *tensor);
/*
 * Called once when the world fails, on the world's own thread, or at once if it has: wakes whoever
 * waits on flags, and calls nothing of the world. Once it is taken back it is not running.
 */
typedef void (*tti_world_fail_fn)(void *user);
void tti_world_on_fail(tti_world *w, tti_world_fail_fn fn, void *user); // fn NULL: taken back

#endif
