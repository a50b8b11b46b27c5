/*
 * frame.h - the parts that messages travel in. A request or an answer is one or more parts with the
 * same number: each has this head and up to TTI_SERVE_CHUNK bytes. The receiver of an answer grants
 * further parts as it takes them; requests are held back by ZeroMQ's bounds alone.
 */
#ifndef TUTTI_SERVE_FRAME_H
#define TUTTI_SERVE_FRAME_H

#include "serve/serve.h"

#define TTI_FRAME_MAGIC 0x31535454u // "TTS1"

typedef enum tti_frame_type {
    TTI_FRAME_REQUEST = 1,
    TTI_FRAME_ANSWER = 2,
    TTI_FRAME_CREDIT = 3, // total: parts
    TTI_FRAME_BYE = 4,    // the client leaves
} tti_frame_type;

typedef struct tti_frame_head {
    uint32_t magic, type;
    uint64_t number; // of the request, from 1
    uint64_t total;  // bytes of the whole body
    uint64_t offset; // of this part
    uint32_t kind;   // of a request: tti_request; of an answer: tt_status
    uint32_t zero;
} tti_frame_head;

// A message that comes in.
typedef struct tti_assembly {
    uint64_t number, total, got;
    uint32_t kind;
    bool is_begun;
    char *body; // room of its own, kept between messages
    int64_t cap;
} tti_assembly;

typedef enum tti_assembled {
    TTI_PART,      // more is to come
    TTI_WHOLE,     //
    TTI_TOO_LARGE, // above the limit: told once, then its other parts are ignored
    TTI_NO_MEMORY, // likewise
    TTI_IGNORED,   // of a message that was refused
    TTI_BROKEN,    // not a part of anything
} tti_assembled;

// Adds a part; bytes are those of the head and what follows it.
tti_assembled tti_assembly_add(tti_assembly *a, tti_frame_type type, const void *part, size_t bytes,
                               size_t max);
void tti_assembly_next(tti_assembly *a); // after a whole one; large room is given back
void tti_assembly_free(tti_assembly *a);

#endif
