/*
 * remote.h - sessions on servers. serve/ has what is declared here: it comes after run/ and knows
 * how to reach a server, which sessions need not.
 */
#ifndef TUTTI_RUN_REMOTE_H
#define TUTTI_RUN_REMOTE_H

#include "base/base.h"
#include <tutti/run.h>

typedef struct tti_remote tti_remote;

// How a session of a server's own reaches another task; all zero for a program's.
typedef struct tti_remote_way {
    const unsigned char *secret; // instead of a key file; NULL: found
    int isolate;                 // 2: the container goes with the last session that is open on it
} tti_remote_way;

// tt_session_new() with these; NULL after an error.
tt_session *tti_session_new_by(tt_graph *g, const tt_session_opts *opts, const tti_remote_way *way);
tti_remote *tti_session_remote(const tt_session *s); // NULL: it runs here

// Connects, and sends the session's graph. NULL after an error.
tti_remote *tti_remote_open(tt_graph *g, const tt_session_opts *o, const tti_remote_way *way);
void tti_remote_close(tti_remote *r); // NULL is fine
// A run whose feeds have been checked; in two parts, so that several servers work at once. Between
// them fetches and what they point to stay in place.
tt_status tti_remote_start(tti_remote *r, const tt_run_opts *o) TTI_CHECKED;
tt_status tti_remote_finish(tti_remote *r, const tt_run_opts *o) TTI_CHECKED;
tt_status tti_remote_get(tti_remote *r, const tt_node *var, void *out, size_t bytes) TTI_CHECKED;
tt_status tti_remote_set(tti_remote *r, const tt_node *var, const void *data,
                         size_t bytes) TTI_CHECKED;

#endif
