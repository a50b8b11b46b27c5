/*
 * sheet.c - a contact sheet: images of a data set as one PNG file (data_show.h). zlib is all that
 * a PNG file needs.
 */
#include "base/file.h"
#include "cli/data_show.h"
#include <math.h>
#include <string.h>
#include <zlib.h>

#define ACROSS 8
#define IMAGES 64
#define GAP    2
#define SIDE   512 // the most that is shown of an image

static void put32(unsigned char *p, uint32_t v)
{
    for (int i = 0; i < 4; i++)
        p[i] = (unsigned char)(v >> (24 - 8 * i));
}

static tt_status put_chunk(tti_writer *w, const char *name, const unsigned char *data, size_t n)
{
    unsigned char head[8], tail[4];
    put32(head, (uint32_t)n);
    memcpy(head + 4, name, 4);
    uLong crc = crc32(0, head + 4, 4);
    crc = n > 0 ? crc32(crc, data, (uInt)n) : crc;
    put32(tail, (uint32_t)crc);
    TT_TRY(tti_writer_add(w, head, 8));
    if (n > 0)
        TT_TRY(tti_writer_add(w, data, n));
    return tti_writer_add(w, tail, 4);
}

// rows: for each a zero (no filter), then its pixels.
static tt_status write_png(tt_ctx *ctx, const char *file, const unsigned char *rows, int64_t high,
                           int64_t wide)
{
    unsigned char head[13];
    tt_hash hash;
    size_t n = (size_t)high * (size_t)(3 * wide + 1);
    uLongf packed = compressBound((uLong)n);
    unsigned char *room = tti_alloc(ctx, packed);
    tti_writer *w = tti_calloc(ctx, 1, sizeof(*w));
    tt_status st = room != NULL && w != NULL ? TT_OK : TT_ENOMEM;
    if (st == TT_OK && compress2(room, &packed, rows, (uLong)n, 6) != Z_OK)
        st = TT_FAIL(ctx, TT_ENOMEM, "%s: cannot compress the picture", file);
    if (st == TT_OK)
        st = tti_writer_open(ctx, file, true, w);
    if (st == TT_OK) {
        put32(head, (uint32_t)wide);
        put32(head + 4, (uint32_t)high);
        memcpy(head + 8, "\x08\x02\0\0\0", 5); // 8 bits, red, green, blue
        st = tti_writer_add(w, "\x89PNG\r\n\x1a\n", 8);
        if (st == TT_OK)
            st = put_chunk(w, "IHDR", head, 13);
        if (st == TT_OK)
            st = put_chunk(w, "IDAT", room, packed);
        if (st == TT_OK)
            st = put_chunk(w, "IEND", NULL, 0);
        if (st == TT_OK)
            st = tti_writer_close(w, &hash);
        else
            tti_writer_drop(w);
    }
    tti_free(ctx, w);
    tti_free(ctx, room);
    return st;
}

// A value as a byte; floats from low to high.
static unsigned char shade(tt_dtype t, const void *x, int64_t i, float low, float high)
{
    if (t == TT_U8)
        return ((const uint8_t *)x)[i];
    float v = (((const float *)x)[i] - low) / (high > low ? high - low : 1) * 255;
    return (unsigned char)(v < 0 ? 0 : v > 255 ? 255 : v);
}

static void put_image(const tt_field *f, const void *x, unsigned char *rows, int64_t wide,
                      int64_t top, int64_t left)
{
    int64_t h = TTI_MIN(f->shape.dim[0], SIDE), w = TTI_MIN(f->shape.dim[1], SIDE);
    int64_t channels = f->shape.rank == 3 ? f->shape.dim[2] : 1;
    float low = 0, high = 0;
    for (int64_t i = 0; f->dtype == TT_F32 && i < tt_shape_count(&f->shape); i++) {
        low = i == 0 ? ((const float *)x)[0] : fminf(low, ((const float *)x)[i]);
        high = i == 0 ? ((const float *)x)[0] : fmaxf(high, ((const float *)x)[i]);
    }
    for (int64_t r = 0; r < h; r++)
        for (int64_t c = 0; c < w; c++)
            for (int k = 0; k < 3; k++)
                rows[(top + r) * (3 * wide + 1) + 1 + 3 * (left + c) + k] = shade(
                    f->dtype, x, (r * f->shape.dim[1] + c) * channels + (channels == 3 ? k : 0),
                    low, high);
}

tt_status cli_sheet_write(tt_data *d, const char *file)
{
    const tt_field *f = &d->fields[0];
    int64_t channels = f->shape.rank == 3 ? f->shape.dim[2] : 1;
    bool is_image = (f->shape.rank == 2 || f->shape.rank == 3) &&
                    (channels == 1 || channels == 3) && (f->dtype == TT_U8 || f->dtype == TT_F32);
    if (!is_image)
        return TT_FAIL(d->ctx, TT_EINVAL,
                       "--output: field '%s' is not images ([height, width] or [height, width, 1 "
                       "or 3] of u8 or f32)",
                       f->name);
    int64_t n = TTI_MIN(d->count, IMAGES), across = TTI_MIN(n, ACROSS);
    int64_t h = TTI_MIN(f->shape.dim[0], SIDE) + GAP, w = TTI_MIN(f->shape.dim[1], SIDE) + GAP;
    int64_t high = (n + across - 1) / across * h, wide = across * w;
    unsigned char *rows = tti_calloc(d->ctx, (size_t)high, (size_t)(3 * wide + 1));
    tti_single one;
    tt_status st = tti_single_open(d, &one);
    for (int64_t i = 0; rows != NULL && st == TT_OK && i < n; i++) {
        st = tti_single_read(&one, tti_data_record(d, i * d->count / n));
        if (st == TT_OK)
            put_image(f, one.slot.fields[0], rows, wide, i / across * h, i % across * w);
    }
    tti_single_close(&one);
    if (st == TT_OK)
        st = rows != NULL ? write_png(d->ctx, file, rows, high, wide) : TT_ENOMEM;
    tti_free(d->ctx, rows);
    return st;
}
