/*
 * tensorboard.c - records of TensorBoard's event files, written by hand.
 *
 * A file is a row of records: length (8 bytes), masked CRC-32C of the length, payload, masked
 * CRC-32C of the payload, all little-endian. The payload is a protocol buffer, an Event:
 *
 *   1 double wall_time   2 int64 step   3 string file_version
 *   5 Summary { 1 repeated Value { 1 string tag   2 float simple_value } }
 *   7 SessionLog { 1 enum status, 1 = START }
 *
 * Fields are a key, number << 3 | type, and a value: a varint (0), 8 bytes (1), a length and bytes
 * (2), 4 bytes (5).
 */
#include "record/record.h"
#include <string.h>

#define HEAD 12 // length and its sum

uint32_t tti_crc32c(const void *data, size_t bytes)
{
    const uint8_t *p = data;
    uint32_t crc = 0xFFFFFFFFu;
    for (size_t i = 0; i < bytes; i++) {
        crc ^= p[i];
        for (int bit = 0; bit < 8; bit++)
            crc = crc >> 1 ^ (0x82F63B78u & (0u - (crc & 1u))); // Castagnoli, bits reversed
    }
    return ~crc;
}

// Sums of data that itself holds sums are masked: rotated, and a constant added.
static uint32_t masked(const void *data, size_t bytes)
{
    uint32_t crc = tti_crc32c(data, bytes);
    return (crc >> 15 | crc << 17) + 0xA282EAD8u;
}

typedef struct writer {
    uint8_t *out;
    size_t n;
} writer;

static void put_fixed(writer *w, uint64_t v, int bytes)
{
    for (int i = 0; i < bytes; i++)
        w->out[w->n++] = (uint8_t)(v >> 8 * i);
}

static void put_varint(writer *w, uint64_t v)
{
    for (; v >= 0x80; v >>= 7)
        w->out[w->n++] = (uint8_t)(v | 0x80);
    w->out[w->n++] = (uint8_t)v;
}

static void put_key(writer *w, int field, int type)
{
    put_varint(w, (uint64_t)(field << 3 | type));
}

static void put_bytes(writer *w, int field, const void *data, size_t bytes)
{
    put_key(w, field, 2);
    put_varint(w, bytes);
    memcpy(w->out + w->n, data, bytes);
    w->n += bytes;
}

static void put_float(writer *w, int field, double value)
{
    float f = (float)value;
    uint32_t bits;
    memcpy(&bits, &f, sizeof(bits));
    put_key(w, field, 5);
    put_fixed(w, bits, 4);
}

// Begins an Event behind the place of the record's head.
static writer begin(uint8_t *out, double time)
{
    writer w = {out, HEAD};
    uint64_t bits;
    memcpy(&bits, &time, sizeof(bits));
    put_key(&w, 1, 1);
    put_fixed(&w, bits, 8);
    return w;
}

static void put_step(writer *w, int64_t step)
{
    put_key(w, 2, 0);
    put_varint(w, (uint64_t)step);
}

// Puts the head in front and the sum behind.
static size_t end(writer *w)
{
    size_t payload = w->n - HEAD;
    writer head = {w->out, 0};
    put_fixed(&head, payload, 8);
    put_fixed(&head, masked(w->out, 8), 4);
    put_fixed(w, masked(w->out + HEAD, payload), 4);
    return w->n;
}

size_t tti_board_version(double time, uint8_t out[TTI_BOARD_MAX])
{
    static const char version[] = "brain.Event:2";
    writer w = begin(out, time);
    put_bytes(&w, 3, version, strlen(version));
    return end(&w);
}

size_t tti_board_start(double time, int64_t step, uint8_t out[TTI_BOARD_MAX])
{
    writer w = begin(out, time);
    put_step(&w, step);
    put_bytes(&w, 7, (const uint8_t[]){1 << 3, 1}, 2);
    return end(&w);
}

size_t tti_board_scalars(double time, int64_t step, const tt_pair *pairs, int n,
                         uint8_t out[TTI_BOARD_MAX])
{
    uint8_t values[TTI_BOARD_MAX], one[512];
    writer summary = {values, 0};
    for (int i = 0; i < n; i++) {
        size_t tag = strlen(pairs[i].name);
        writer value = {one, 0};
        if (tag > sizeof(one) - 32 || summary.n + tag + 32 > sizeof(values) - 128)
            continue;
        put_bytes(&value, 1, pairs[i].name, tag);
        put_float(&value, 2, pairs[i].number);
        put_bytes(&summary, 1, one, value.n);
    }
    writer w = begin(out, time);
    put_step(&w, step);
    put_bytes(&w, 5, values, summary.n);
    return end(&w);
}
