/*
 * protobuf.c - the wire format of protocol buffers (protobuf.h).
 */
#include "save/protobuf.h"
#include <string.h>

enum {
    WIRE_VARINT = 0,
    WIRE_64 = 1,
    WIRE_BYTES = 2,
    WIRE_32 = 5
};

// ---- writing ---------------------------------------------------------------------------------

void tti_pb_varint(tti_text *t, uint64_t v)
{
    char bytes[10];
    size_t n = 0;
    do {
        bytes[n++] = (char)((v & 127) | (v > 127 ? 128 : 0));
        v >>= 7;
    } while (v > 0);
    tti_text_put(t, bytes, n);
}

static void tag(tti_text *t, int field, int wire)
{
    tti_pb_varint(t, (uint64_t)field << 3 | (uint64_t)wire);
}

void tti_pb_int(tti_text *t, int field, int64_t v)
{
    tag(t, field, WIRE_VARINT);
    tti_pb_varint(t, (uint64_t)v);
}

void tti_pb_float(tti_text *t, int field, float v)
{
    uint32_t bits;
    char bytes[4];
    memcpy(&bits, &v, sizeof(bits));
    for (int i = 0; i < 4; i++)
        bytes[i] = (char)(bits >> 8 * i & 255);
    tag(t, field, WIRE_32);
    tti_text_put(t, bytes, sizeof(bytes));
}

void tti_pb_head(tti_text *t, int field, uint64_t n)
{
    tag(t, field, WIRE_BYTES);
    tti_pb_varint(t, n);
}

void tti_pb_bytes(tti_text *t, int field, const void *data, size_t n)
{
    tti_pb_head(t, field, n);
    if (n > 0)
        tti_text_put(t, data, n);
}

void tti_pb_text(tti_text *t, int field, const char *s)
{
    tti_pb_bytes(t, field, s, strlen(s));
}

void tti_pb_part(tti_text *t, int field, tti_text *part)
{
    t->failed |= part->failed;
    tti_pb_bytes(t, field, part->s, (size_t)part->n);
    tti_text_free(part);
}
