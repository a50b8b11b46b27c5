/*
 * cluster.h (internal) - one reader per source of a cluster, and what they share. Readers get the
 * environment as a function, so that tests and fuzzers need none.
 */
#ifndef TUTTI_CLUSTER_CLUSTER_H
#define TUTTI_CLUSTER_CLUSTER_H

#include "base/base.h"
#include <tutti/cluster.h>
#include <tutti/tasks.h>

typedef struct tti_cluster_env {
    const char *(*get)(const void *user, const char *name); // NULL if it is not set
    const void *user;
    const char *host;   // this machine's name
    const char *parent; // the daemon of a launcher that this process is below; NULL: none
} tti_cluster_env;

// A variable that is set and not empty; else NULL.
const char *tti_cluster_get(const tti_cluster_env *env, const char *name);
// All variables that are looked at; NULL at the end.
extern const char *const tti_cluster_variables[];

// tt_cluster_find() with an environment of one's own.
tt_status tti_cluster_read(tt_ctx *ctx, const tti_cluster_env *env, tt_cluster **out) TTI_CHECKED;

// ---- sources: each fills a cluster that is all zero but for source; the caller frees it ------

tt_status tti_cluster_tf_config(tt_ctx *ctx, const char *text, size_t bytes,
                                tt_cluster *c) TTI_CHECKED;
tt_status tti_cluster_torchrun(tt_ctx *ctx, const tti_cluster_env *env, tt_cluster *c) TTI_CHECKED;
// path is for messages; rank is what TUTTI_RANK says, or NULL.
tt_status tti_cluster_hosts(tt_ctx *ctx, const char *path, const char *text, size_t bytes,
                            const char *rank, const char *host, tt_cluster *c) TTI_CHECKED;
// TUTTI_TASKS, TUTTI_RANK and TUTTI_LOCAL, as tutti run sets them.
tt_status tti_cluster_list(tt_ctx *ctx, const tti_cluster_env *env, tt_cluster *c) TTI_CHECKED;
// "host1:2,host2": processes on each host, as -H of tutti run has it; rank 0 is this one.
tt_status tti_cluster_words(tt_ctx *ctx, const char *text, tt_cluster *c) TTI_CHECKED;
bool tti_cluster_has_torchrun(const tti_cluster_env *env);

// ---- tasks.c ---------------------------------------------------------------------------------

extern const char *const tti_cluster_jobs[]; // "chief", "worker", "ps", "evaluator", NULL

// Appends a task, the next of its job. where is for messages. An address is checked, copied, and
// must be the only one of its kind; "" is not known. Ranks are given in the order of the calls.
tt_status tti_task_add(tt_ctx *ctx, tt_cluster *c, const char *where, const char *job,
                       const char *address, bool needs_port, int n_processes) TTI_CHECKED;
int tti_task_find(const tt_cluster *c, const char *job, int index); // -1: there is none
int tti_task_count(const tt_cluster *c, const char *job);
// Says that this process is the k-th of a task's.
void tti_task_choose(tt_cluster *c, int task, int k);
// Says that this process is the one of the rank in text; name says where the tasks were told.
tt_status tti_task_choose_rank(tt_ctx *ctx, const char *name, const char *text,
                               tt_cluster *c) TTI_CHECKED;

// What is wrong with "host:port" or "host"; NULL: nothing.
const char *tti_address_fault(const char *address, bool needs_port);
// The same of a bare host; IPv6 without its brackets.
const char *tti_host_fault(const char *host, size_t n);
// A decimal number without sign, blanks or leading zeros, at most max.
bool tti_cluster_number(const char *s, int max, int *out);

// ---- nodelist.c: Slurm's short forms ---------------------------------------------------------

// Calls for each host of "n[1-3,07]", at most that many; gives what is wrong, or NULL.
const char *tti_nodelist_expand(const char *text, int most,
                                void (*call)(void *user, const char *host), void *user, int *n);
// "2(x3),1": the number of the node; false: it is not told.
bool tti_per_node(const char *text, int node, int *out);

// ---- joining ---------------------------------------------------------------------------------

#define TTI_PORT        29600 // of a host's first process, where none is told
#define TTI_SECRET_TEXT (2 * TT_SECRET_BYTES + 1)
#define TTI_ADDRESS     192

// The job's secret by TUTTI_SECRET_FILE or TUTTI_SECRET; *has false: neither is set.
tt_status tti_secret_find(tt_ctx *ctx, const tti_cluster_env *env, unsigned char out[32],
                          bool *has) TTI_CHECKED;
// That of a file, or "-": standard input. what stands before its name in messages.
tt_status tti_secret_read(tt_ctx *ctx, const tti_cluster_env *env, const char *what,
                          const char *path, unsigned char out[32]) TTI_CHECKED;
bool tti_secret_parse(const char *text, size_t n, unsigned char out[32]); // as tutti key prints it
void tti_secret_print(const unsigned char secret[32], char out[TTI_SECRET_TEXT]);

// The key of a job on one machine without a secret (loopback.c): rank 0 makes it and keeps it for
// the others until tti_loopback_key_end().
typedef struct tti_loopback_key {
    int fd; // rank 0: the file, locked; -1: none
    char path[320];
} tti_loopback_key;

typedef struct tti_loopback_opts {
    int rank;
    const char *rank_0, *address; // its name; where it listens
    const char *runtime;          // XDG_RUNTIME_DIR; NULL where it is not set
    int64_t wait_ms;              // for rank 0
    const char *id;               // of the job: the file is named after it; NULL: after the port
    char *told;                   // with id: rank 0's address, from it to the others
} tti_loopback_opts;

tt_status tti_loopback_key_get(tt_ctx *ctx, const tti_loopback_opts *o, tti_loopback_key *k,
                               unsigned char key[32]) TTI_CHECKED;
void tti_loopback_key_end(tti_loopback_key *k);

/*
 * shared_key.c: the same in a folder that all machines of a job share: rank 0 writes a key and its
 * address to a file that its user alone can read, named after the job; the others read it there.
 */
typedef struct tti_shared_key_opts {
    int rank;
    const char *rank_0; // its name
    const char *id;     // of the job
    const char *folder; // TUTTI_KEY_DIR; NULL: .tutti in home
    const char *home;   // HOME; NULL where it is not set
    int64_t wait_ms;    // for rank 0
    const char *by;     // who has started the processes, for messages
    char *told;         // rank 0's address, from it to the others
} tti_shared_key_opts;

tt_status tti_shared_key_get(tt_ctx *ctx, const tti_shared_key_opts *o, tti_loopback_key *k,
                             unsigned char key[32]) TTI_CHECKED;

// "key address" as the files of both have it.
#define TTI_KEY_TEXT (TTI_SECRET_TEXT + TTI_ADDRESS)
bool tti_key_write(int fd, const unsigned char key[32], const char *address);
bool tti_key_read(int fd, unsigned char key[32], char *address); // address may be NULL
void tti_key_name(const char *id, char out[32]);                 // of the file

// A port of that address (a number, IPv6 without brackets) that is free, and nobody's while *fd is
// open; 0: there is none.
int tti_port_hold(const char *host, int *fd);
bool tti_is_loopback(const char *address); // by its name: of "host:port" or "host"
// own_host.c: the i-th address at which others may reach this machine, the best first; bind is
// TUTTI_BIND or NULL. false: there are no more.
bool tti_own_host(const char *bind, int i, char out[128]);

/*
 * Ranks whose addresses are not told ("") take a free port each and tell rank 0, whose address is
 * told; from it everybody learns all. t has n, self, secret, bind and rendezvous_ms.
 */
tt_status tti_rendezvous(tt_ctx *ctx, const tt_tasks *t,
                         char (*addresses)[TTI_ADDRESS]) TTI_CHECKED;

// Text for messages: its beginning, with '?' for what a terminal should not get.
#define TTI_EXCERPT 72
const char *tti_excerpt(char out[TTI_EXCERPT], const char *s);

#endif
