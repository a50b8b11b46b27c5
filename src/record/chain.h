/*
 * chain.h - the chain of a run: chain.jsonl in its folder, a line for each start, each hash of the
 * weights, each checkpoint and each end.
 *
 * A line ends with its link: SHA-256 of the link before it (64 zeros before the first) and the line
 * up to there. So no line can be changed, removed or put in without breaking the links behind it.
 * Each also says how long events.jsonl was and the hash of that much of it. With a key, a line is
 * signed: HMAC-SHA-256 of its link. Lines are only ever added; a run that goes on adds a start.
 */
#ifndef TUTTI_RECORD_CHAIN_H
#define TUTTI_RECORD_CHAIN_H

#include "record/record.h"
#include <jansson.h>

#define TTI_CHAIN     "chain.jsonl"
#define TTI_CHAIN_KEY 32
#define TTI_LINK      65 // hexadecimal digits and a zero

// ---- writing ---------------------------------------------------------------------------------

typedef struct tti_chain_opts {
    const char *about;  // members of a JSON object that each start says: the job, the data; or NULL
    const uint8_t *key; // TTI_CHAIN_KEY bytes, copied; NULL: lines are not signed
} tti_chain_opts;

typedef struct tti_chain tti_chain;
// A file that cannot be written is told once, as a warning.
tt_status tti_chain_open(tt_ctx *ctx, const char *folder, const tti_chain_opts *o,
                         tti_chain **out) TTI_CHECKED;
// log_bytes, log_hash: of events.jsonl so far. Other events than those of the chain are ignored.
void tti_chain_event(tti_chain *c, const tt_event *ev, int64_t log_bytes, tt_hash log_hash);
void tti_chain_close(tti_chain *c); // NULL is fine

// ---- reading ---------------------------------------------------------------------------------

typedef enum tti_link_kind {
    TTI_LINK_START,
    TTI_LINK_STEP,
    TTI_LINK_CHECKPOINT,
    TTI_LINK_END,
} tti_link_kind;

typedef struct tti_link {
    tti_link_kind kind;
    int64_t step;
    int line;                      // from 1
    const char *weights;           // "" of a start
    const char *state, *optimizer; // of checkpoints; else ""
    int64_t log_bytes;
    const char *log_hash;
    bool is_signed;
    json_t *o; // all of it
} tti_link;

typedef struct tti_links {
    tt_ctx *ctx;
    tti_link *v;
    int64_t n, cap;
    int broken;        // the first line that is no line of a chain, or whose link is wrong; 0: none
    int unsigned_line; // with a key: the first line without its signature; 0: none
    char link[TTI_LINK]; // the last one that is right
} tti_links;

// Reads as far as links are right, and signatures, where there is a key. Fails if the file cannot
// be read; a chain that is broken is no failure.
tt_status tti_links_read(tt_ctx *ctx, const char *folder, const uint8_t *key,
                         tti_links *out) TTI_CHECKED;
void tti_links_free(tti_links *l);
// The last hash of the weights at that step; NULL: none.
const char *tti_links_weights(const tti_links *l, int64_t step);
// Fits of ctx hash their weights at the steps of another run's chain. *steps: to be freed once they
// are over.
tt_status tti_links_steps(tt_ctx *ctx, const char *run, int64_t **steps) TTI_CHECKED;
// The first and last byte of events.jsonl between which it is not what the chain says, and the link
// that says so; NULL: it is as it was.
const tti_link *tti_links_check_log(const tti_links *l, const char *folder, int64_t *begin);

#endif
