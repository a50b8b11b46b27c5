/*
 * tensorboard.c - records of TensorBoard's event files, written by hand.
 *
 * A file is a row of records: length (8 bytes), masked CRC-32C of the length, payload, masked
 * CRC-32C of the payload, all little-endian. The payload is a protocol buffer, an Event:
 *
 *   1 double wall_time   2 int64 step   3 string file_version
 *   5 Summary { 1 repeated Value { 1 string tag   2 float simple_value   4 image   5 histogram
 *                                  8 tensor   9 metadata } }
 *   7 SessionLog { 1 enum status, 1 = START }
 *
 * Fields are a key, number << 3 | type, and a value: a varint (0), 8 bytes (1), a length and bytes
 * (2), 4 bytes (5).
 */
#include "record/record.h"
#include <math.h>
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

static void put_double(writer *w, int field, double value)
{
    uint64_t bits;
    memcpy(&bits, &value, sizeof(bits));
    put_key(w, field, 1);
    put_fixed(w, bits, 8);
}

static void put_doubles(writer *w, int field, const double *values, int n)
{
    put_key(w, field, 2);
    put_varint(w, (uint64_t)n * 8);
    for (int i = 0; i < n; i++) {
        uint64_t bits;
        memcpy(&bits, &values[i], sizeof(bits));
        put_fixed(w, bits, 8);
    }
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
    put_double(&w, 1, time);
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

// ---- histograms and images -------------------------------------------------------------------

static size_t summary_of(double time, int64_t step, const writer *value, uint8_t *out)
{
    writer w = begin(out, time), length = {(uint8_t[16]){0}, 0};
    put_step(&w, step);
    put_key(&length, 1, 2);
    put_varint(&length, value->n);
    put_key(&w, 5, 2);
    put_varint(&w, length.n + value->n);
    memcpy(w.out + w.n, length.out, length.n);
    memcpy(w.out + w.n + length.n, value->out, value->n);
    w.n += length.n + value->n;
    return end(&w);
}

// Buckets of equal width from the lowest to the highest value; those that are not finite are left
// out.
#define BUCKETS 40
size_t tti_board_histogram(double time, int64_t step, const char *tag, const float *values,
                           int64_t n, uint8_t out[TTI_BOARD_MAX])
{
    uint8_t histogram[BUCKETS * 16 + 128], room[BUCKETS * 16 + 128 + TTI_BOARD_TAG + 32];
    double low = INFINITY, high = -INFINITY, sum = 0, squares = 0, count = 0;
    double limits[BUCKETS], counts[BUCKETS] = {0};
    for (int64_t i = 0; i < n; i++) {
        if (!isfinite(values[i]))
            continue;
        low = fmin(low, values[i]);
        high = fmax(high, values[i]);
        sum += values[i];
        squares += (double)values[i] * values[i];
        count++;
    }
    if (count == 0 || strlen(tag) > TTI_BOARD_TAG)
        return 0;
    double width = high > low ? (high - low) / BUCKETS : 1e-12 + fabs(high) * 1e-6;
    for (int64_t i = 0; i < n; i++)
        if (isfinite(values[i]))
            counts[(int)fmin((values[i] - low) / width, BUCKETS - 1)]++;
    for (int i = 0; i < BUCKETS; i++)
        limits[i] = i + 1 < BUCKETS ? low + width * (i + 1) : fmax(high, low + width * BUCKETS);
    writer h = {histogram, 0}, value = {room, 0};
    put_double(&h, 1, low);
    put_double(&h, 2, high);
    put_double(&h, 3, count);
    put_double(&h, 4, sum);
    put_double(&h, 5, squares);
    put_doubles(&h, 6, limits, BUCKETS);
    put_doubles(&h, 7, counts, BUCKETS);
    put_bytes(&value, 1, tag, strlen(tag));
    put_bytes(&value, 5, histogram, h.n);
    return summary_of(time, step, &value, out);
}

size_t tti_board_image(double time, int64_t step, const char *tag, const tti_picture *p,
                       const uint8_t *png, size_t bytes, uint8_t *room, uint8_t *out)
{
    writer value = {room, 0}, head = {(uint8_t[64]){0}, 0};
    put_key(&head, 1, 0);
    put_varint(&head, (uint64_t)p->height);
    put_key(&head, 2, 0);
    put_varint(&head, (uint64_t)p->width);
    put_key(&head, 3, 0);
    put_varint(&head, (uint64_t)p->channels);
    put_key(&head, 4, 2);
    put_varint(&head, bytes);
    put_bytes(&value, 1, tag, strnlen(tag, TTI_BOARD_TAG));
    put_key(&value, 4, 2);
    put_varint(&value, head.n + bytes);
    memcpy(room + value.n, head.out, head.n);
    memcpy(room + value.n + head.n, png, bytes);
    value.n += head.n + bytes;
    return summary_of(time, step, &value, out);
}

// ---- hyper-parameters ------------------------------------------------------------------------

// SessionStartInfo { 1 map { 1 key   2 Value { 2 double   3 string } }   5 double start_time }
static void put_keys(writer *w, double time, const tt_pair *pairs, int n)
{
    for (int i = 0; i < n; i++) {
        uint8_t one[1024], what[512];
        writer value = {what, 0}, entry = {one, 0};
        size_t key = strlen(pairs[i].name),
               text = pairs[i].text != NULL ? strlen(pairs[i].text) : 0;
        if (key + text > 400 || w->n + key + text + 64 > TTI_BOARD_KEYS - 512)
            continue;
        if (pairs[i].text != NULL) {
            put_bytes(&value, 3, pairs[i].text, text);
        } else {
            put_double(&value, 2, pairs[i].number);
        }
        put_bytes(&entry, 1, pairs[i].name, key);
        put_bytes(&entry, 2, what, value.n);
        put_bytes(w, 1, one, entry.n);
    }
    put_double(w, 5, time);
}

size_t tti_board_keys(double time, const tt_pair *pairs, int n, uint8_t out[TTI_BOARD_KEYS])
{
    static const char tag[] = "_hparams_/session_start_info", plugin[] = "hparams";
    // A tensor of no elements: its type is float, its shape one dimension of 0.
    static const uint8_t tensor[] = {1 << 3, 1, 2 << 3 | 2, 2, 2 << 3 | 2, 0};
    uint8_t room[4][TTI_BOARD_KEYS];
    writer start = {room[0], 0}, data = {room[1], 0}, metadata = {room[2], 0}, value = {room[3], 0};
    put_keys(&start, time, pairs, n);
    put_bytes(&data, 3, room[0], start.n); // HParamsPluginData
    put_bytes(&metadata, 1, plugin, strlen(plugin));
    put_bytes(&metadata, 2, room[1], data.n); // PluginData
    data.n = 0;
    put_bytes(&data, 1, room[2], metadata.n); // SummaryMetadata
    put_bytes(&value, 1, tag, strlen(tag));
    put_bytes(&value, 8, tensor, sizeof(tensor));
    put_bytes(&value, 9, room[1], data.n);
    metadata.n = 0;
    put_bytes(&metadata, 1, room[3], value.n); // Summary
    writer w = begin(out, time);
    put_bytes(&w, 5, room[2], metadata.n);
    return end(&w);
}
