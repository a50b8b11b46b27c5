/*
 * protobuf.h - the wire format of protocol buffers, as much as ONNX files need of it: a writer into
 * a growing text, and a reader that checks every length before it is used.
 *
 * A message is a sequence of fields: a number and a wire type, then a varint, 4 or 8 bytes, or a
 * length and so many bytes. Nested messages are bytes.
 */
#ifndef TUTTI_SAVE_PROTOBUF_H
#define TUTTI_SAVE_PROTOBUF_H

#include "base/base.h"

#define TTI_PB_MAX INT32_MAX // bytes of a message: what readers of the format accept

// ---- writing ---------------------------------------------------------------------------------

void tti_pb_varint(tti_text *t, uint64_t v);
void tti_pb_int(tti_text *t, int field, int64_t v);
void tti_pb_float(tti_text *t, int field, float v);
void tti_pb_bytes(tti_text *t, int field, const void *data, size_t n);
void tti_pb_text(tti_text *t, int field, const char *s);
void tti_pb_part(tti_text *t, int field, tti_text *part); // frees part
// What begins a field of n bytes that follow.
void tti_pb_head(tti_text *t, int field, uint64_t n);

#endif
