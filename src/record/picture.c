/*
 * picture.c - pictures for TensorBoard (record.h): PNG, and confusion matrices as pictures.
 *
 * A PNG is a signature and chunks: length, kind, data, CRC-32 of kind and data, all big-endian. Its
 * data are the rows, each behind a byte that names its filter (0: none), compressed by zlib.
 */
#include "record/record.h"
#include <string.h>
#include <zlib.h>

// ---- PNG -------------------------------------------------------------------------------------

static uint8_t *put_u32(uint8_t *to, uint32_t v)
{
    for (int i = 0; i < 4; i++)
        to[i] = (uint8_t)(v >> (24 - 8 * i));
    return to + 4;
}

// Data that is already in its place gets its head and sum.
static uint8_t *put_chunk(uint8_t *to, const char *kind, size_t bytes)
{
    put_u32(to, (uint32_t)bytes);
    memcpy(to + 4, kind, 4);
    uint32_t sum = (uint32_t)crc32(crc32(0, NULL, 0), to + 4, (uInt)(bytes + 4));
    return put_u32(to + 8 + bytes, sum);
}

uint8_t *tti_picture_png(tt_ctx *ctx, const tti_picture *p, size_t *bytes)
{
    static const uint8_t signature[] = {137, 'P', 'N', 'G', 13, 10, 26, 10};
    size_t row = (size_t)p->width * (size_t)p->channels, raw = (row + 1) * (size_t)p->height;
    uLongf packed = compressBound((uLong)raw);
    uint8_t *rows = tti_alloc(ctx, raw + 1);
    uint8_t *out = rows != NULL ? tti_alloc(ctx, (size_t)packed + 128) : NULL;
    if (out == NULL) {
        tti_free(ctx, rows);
        return NULL;
    }
    for (int y = 0; y < p->height; y++) {
        rows[(size_t)y * (row + 1)] = 0;
        memcpy(rows + (size_t)y * (row + 1) + 1, p->pixels + (size_t)y * row, row);
    }
    memcpy(out, signature, sizeof(signature));
    uint8_t *at = out + sizeof(signature), *head = at + 8;
    head = put_u32(put_u32(head, (uint32_t)p->width), (uint32_t)p->height);
    head[0] = 8; // bits of a channel
    head[1] = p->channels == 1 ? 0 : p->channels == 3 ? 2 : 6;
    head[2] = head[3] = head[4] = 0;
    at = put_chunk(at, "IHDR", 13);
    int rc = compress2(at + 8, &packed, rows, (uLong)raw, 6);
    tti_free(ctx, rows);
    if (rc != Z_OK) { // it has room; only memory can be lacking
        tti_free(ctx, out);
        return NULL;
    }
    at = put_chunk(at, "IDAT", packed);
    at = put_chunk(at, "IEND", 0);
    *bytes = (size_t)(at - out);
    return out;
}

// ---- confusion matrices ----------------------------------------------------------------------

#define CELL_LABELLED 32 // pixels of a cell with numbers
#define MOST_LABELLED 20 // classes

// Digits of 3 x 5 points, a bit each, rows from the top.
static const uint16_t digits[10] = {075557, 026227, 071747, 071717, 055711,
                                    074717, 074757, 071111, 075757, 075717};

typedef struct canvas {
    tti_picture *p;
    int cell, border;
} canvas;

static void fill(const canvas *c, int x, int y, int w, int h, const uint8_t colour[3])
{
    for (int i = y; i < y + h && i < c->p->height; i++)
        for (int k = x; k < x + w && k < c->p->width; k++)
            memcpy(c->p->pixels + 3 * ((size_t)i * (size_t)c->p->width + (size_t)k), colour, 3);
}

// A number of at most three digits in the middle of a cell; points are 2 x 2 pixels.
static void draw_number(const canvas *c, int x, int y, int number, const uint8_t colour[3])
{
    int n = number > 99 ? 3 : number > 9 ? 2 : 1;
    x += (c->cell - (8 * n - 2)) / 2 + 8 * (n - 1);
    y += (c->cell - 10) / 2;
    for (int i = 0; i < n; i++, number /= 10, x -= 8)
        for (int bit = 0; bit < 15; bit++)
            if (digits[number % 10] >> (14 - bit) & 1)
                fill(c, x + 2 * (bit % 3), y + 2 * (bit / 3), 2, 2, colour);
}

tti_picture tti_picture_confusion(tt_ctx *ctx, const double *counts, int n)
{
    static const uint8_t white[3] = {255, 255, 255}, black[3] = {0, 0, 0};
    bool is_labelled = n <= MOST_LABELLED;
    int cell = is_labelled ? CELL_LABELLED : TTI_MAX(640 / n, 1);
    int border = is_labelled ? cell : 0, side = border + n * cell;
    tti_picture p = {.height = side, .width = side, .channels = 3};
    canvas c = {&p, cell, border};
    p.pixels = side <= TTI_PICTURE_SIDE ? tti_alloc(ctx, (size_t)side * (size_t)side * 3) : NULL;
    if (p.pixels == NULL)
        return p;
    fill(&c, 0, 0, side, side, white);
    for (int row = 0; row < n; row++) {
        double all = 0;
        for (int k = 0; k < n; k++)
            all += counts[row * n + k];
        if (is_labelled) {
            draw_number(&c, 0, border + row * cell, row, black);
            draw_number(&c, border + row * cell, 0, row, black);
        }
        for (int k = 0; k < n; k++) {
            double part = all > 0 ? counts[row * n + k] / all : 0;
            uint8_t shade[3] = {(uint8_t)(247 - 239 * part), (uint8_t)(251 - 203 * part),
                                (uint8_t)(255 - 148 * part)};
            int x = border + k * cell, y = border + row * cell, line = is_labelled ? 1 : 0;
            fill(&c, x, y, cell - line, cell - line, shade);
            if (is_labelled && counts[row * n + k] > 0)
                draw_number(&c, x, y, (int)(100 * part + 0.5), part > 0.5 ? white : black);
        }
    }
    return p;
}
