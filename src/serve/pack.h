/*
 * pack.h - messages between clients and servers: fields one behind the other, numbers in the
 * machine's order (little endian on all that Tutti runs on). What is read comes from outside: a
 * reader never passes the end, and one failure makes all that follow fail.
 */
#ifndef TUTTI_SERVE_PACK_H
#define TUTTI_SERVE_PACK_H

#include "base/base.h"

#define TTI_PACK_ALIGN 64 // of elements within a message

typedef struct tti_reader {
    const uint8_t *begin, *at, *end;
    bool failed;
} tti_reader;

static inline tti_reader tti_reader_of(const void *data, size_t bytes)
{
    return (tti_reader){data, data, (const uint8_t *)data + bytes, false};
}

uint32_t tti_get_u32(tti_reader *r);
uint64_t tti_get_u64(tti_reader *r);
int64_t tti_get_i64(tti_reader *r);
float tti_get_f32(tti_reader *r);
// Bytes within the message; NULL after a failure.
const void *tti_get_bytes(tti_reader *r, size_t bytes);
// A text without zero bytes that fits into room; else it fails and out is "".
void tti_get_text(tti_reader *r, char *out, size_t room);
void tti_get_align(tti_reader *r);
tt_shape tti_get_shape(tti_reader *r);
tt_dtype tti_get_dtype(tti_reader *r);
// Nothing failed, and nothing is left.
bool tti_get_end(const tti_reader *r);

// What is put: appended to a text, which is bytes here.
void tti_put_u32(tti_text *t, uint32_t v);
void tti_put_u64(tti_text *t, uint64_t v);
void tti_put_i64(tti_text *t, int64_t v);
void tti_put_f32(tti_text *t, float v);
void tti_put_text(tti_text *t, const char *s); // NULL: ""
void tti_put_align(tti_text *t);
void tti_put_shape(tti_text *t, const tt_shape *s);

#endif
