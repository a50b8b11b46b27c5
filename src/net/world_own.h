/*
 * world_own.h - the inside of a world: its state, and the messages that its ranks send each other.
 *
 * One thread of the world takes all messages and watches the others; callers wait on one condition.
 * Control messages are structs of one layout for all: a rank of another build is told apart by the
 * head of its hello and nothing else of it is looked at.
 */
#ifndef TUTTI_NET_WORLD_OWN_H
#define TUTTI_NET_WORLD_OWN_H

#include "net/wire.h"
#include "net/world.h"

#define TTI_WIRE_MAGIC 0x54540003u // the last digits: version of these messages

typedef enum tti_control {
    TTI_HELLO = 1,
    TTI_REFUSED = 2, // text: why
    TTI_BEAT = 3,
    TTI_SUSPECT = 4, // rank: who is not heard
    TTI_FAILING = 5, // status, text: the sender's own
    TTI_VERDICT = 6, // status, text: what all end with
    TTI_BYE = 7,
    TTI_MET = 8, // the sender has everybody's hello
    TTI_TAKEN = 9,
    TTI_ASK = 10,       // the sender leaves as soon as it knows that all it sent has been taken
    TTI_BYE_TAKEN = 11, // the receiver's goodbye has arrived
} tti_control;

typedef struct tti_doing {
    char operation[48], tensor[80];
    int64_t for_ms;
    int32_t waits_for; // rank + 1; 0: nobody
    uint64_t progress; // timeout.h
    int64_t cpu_ms;
} tti_doing;

typedef struct tti_control_message { // every control message but hello
    uint32_t magic, kind;
    uint64_t incarnation; // of the sender
    int32_t rank; // of a suspect; of a failure or verdict: who is lost or stuck, + 1; 0: nobody
    int32_t status;
    int64_t silent_ms; // of who is lost; of a goodbye: chunks sent
    uint32_t taken;    // chunks of the receiver that the sender has
    tti_doing doing;
    char text[TTI_MESSAGE_MAX];
} tti_control_message;

typedef struct tti_hello {
    uint32_t magic, kind;
    uint64_t incarnation;
    char version[16];
    int32_t arithmetic, n, rank, pid, data_port, no_encryption;
    char name[64], host[64], boot[64], devices[256], transport[8];
    tt_hash job;
    char job_text[256]; // its beginning
    tti_segment_name probe;
    uint8_t data_key[TT_SECRET_BYTES]; // what data to this rank is sealed with, if not encrypted
} tti_hello;

// A message on its way in: chunks arrive in order, into the reader's memory if it waits already.
typedef struct tti_inbox {
    struct tti_inbox *next;
    tti_message message;
    int from;
    char *data;
    size_t capacity; // of data; 0: it is the reader's
    uint64_t arrived;
    bool is_filling; // the world's thread is copying
} tti_inbox;

typedef struct tti_chunk { // head of a data message
    uint32_t magic, n;     // n: which one of this sender to this receiver
    uint64_t incarnation;
    tti_message message;
    uint64_t at;
} tti_chunk;

typedef struct tti_peer {
    tti_rank rank;
    char address[160]; // resolved
    tti_hello hello;   // guarded by mu up to the meeting, constant afterwards
    bool has_hello, has_met, has_left, is_suspect;
    bool knows_leaving; // it has this rank's goodbye
    bool is_asking;     // the world's thread: wants to know of every chunk
    int64_t heard_ns;
    int64_t died_ns; // its process was seen to have ended; 0
    tti_doing doing;
    _Atomic uint64_t progress; // of doing
    _Atomic int64_t cpu_ms;
    int pid_fd;            // -1: not watched
    _Atomic uint32_t n_in; // chunks; written by the world's thread
    uint32_t n_out;        // guarded by out_mu, as the next two
    uint64_t sent_messages, sent_bytes;
    _Atomic uint32_t n_told; // n_in as it was told last
    uint32_t n_taken;        // chunks of messages that can be read
    uint32_t n_left;         // has_left: chunks that it has sent
    pthread_mutex_t out_mu;  // messages to it, one after another
} tti_peer;

struct tti_world {
    tt_ctx *ctx;
    int n, self;
    int64_t rendezvous_ms, heartbeat_ms, loss_ms;
    bool no_encryption;
    const volatile int *stop; // while it opens: tt_tasks.stop
    char transport[8];
    uint64_t incarnation;
    tti_wire *wire;
    tti_thread thread;
    _Atomic bool wants_open, is_leaving, is_stopping, has_failed, has_devices;
    bool has_all, is_open; // the world's thread: it has all hellos; it watches for loss
    tti_segment probe;

    pthread_mutex_t mu;     // guards what follows, and peers
    pthread_cond_t changed; // something has arrived, or the world has failed
    char refused[TTI_MESSAGE_MAX];
    tti_inbox *inbox, *spare;
    size_t inbox_bytes;
    tti_doing doing;
    int64_t doing_since;
    bool wants_fail, has_told; // this process fails: to be told, told
    tt_status fail_status;
    char fail_text[TTI_MESSAGE_MAX];
    int fail_rank; // who is stuck, + 1; 0: this process fails by itself
    int lost;      // the verdict's: who is lost or stuck, + 1; 0: nobody
    int64_t lost_silent_ms;
    tti_world_fail_fn on_fail;
    void *on_fail_user;

    // The world's thread alone.
    int64_t beat_ns, looked_ns, verdict_by;
    int suspect; // -1: nobody
    int64_t suspect_silent_ms;

    // The context's thread alone.
    tti_subgroup all; // exchanges of everybody
    uint64_t *turns;  // by subgroups made so far: a number of its ranks
    int n_turns, turns_room;
    int n_peers;
    tti_peer peers[]; // by rank
};

// hello.c
tt_status tti_hello_make(tti_world *w, const tt_tasks *tasks, const char *devices) TTI_CHECKED;
tt_status tti_hello_check_all(tti_world *w) TTI_CHECKED; // everybody's is there
tt_status tti_tasks_read(tti_world *w, const tt_tasks *tasks, char *bind, size_t room) TTI_CHECKED;

// message.c; the world's thread, and when all has ended
void tti_messages_take(void *world, int from, const void *message, size_t bytes);
void tti_messages_free(tti_world *w);

// doing.c
tti_doing tti_doing_own(tti_world *w);
tti_doing tti_doing_of(tti_world *w, int rank); // this process's, or as of its last heartbeat
size_t tti_print_doing(char *out, size_t room, const tti_doing *d);
size_t tti_print_rank(tti_world *w, char *out, size_t room, int rank);
void tti_print_others(tti_world *w, char *out, size_t room, int but);

// failure_detector.c; the world's thread
void tti_failure_note(tti_world *w, int from, const tti_control_message *n);
void tti_failure_tick(tti_world *w, int64_t now);
void tti_world_tell(tti_world *w, int to, tti_control_message *n); // fills in the head
void tti_world_tell_all(tti_world *w, tti_control_message *n);     // who has not left
// Any thread, before the job has begun: records that rank has not come, or who is silent instead.
tt_status tti_world_late(tti_world *w, int rank, const char *what, int64_t wait_ms);
void tti_world_set_failed(tti_world *w, tt_status st, const char *text);

// links.c
size_t tti_probe_bytes(void);
void tti_probe_init(tti_world *w);
// Who shares memory with whom; probes, one per rank, are mapped where that is possible.
tt_status tti_links_shm(tti_world *w, tti_segment *probes) TTI_CHECKED;
tt_status tti_links_test(tti_world *w, const tti_segment *probes) TTI_CHECKED;

// world.c: somebody wants tt_open() to end
bool tti_world_is_asked(const tti_world *w);
// the world's thread: a control message, or a hello
void tti_world_take(void *world, int from, const void *message, size_t bytes);
// waits on w->changed, with mu held, up to the deadline or for a moment; false: passed.
bool tti_world_wait(tti_world *w, int64_t deadline_ns);

#endif
