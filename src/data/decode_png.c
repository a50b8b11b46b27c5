/*
 * decode_png.c - PNG by libpng. Palettes and few bits are expanded, 16 bits reduced to their upper
 * 8, transparency is left out. Gamma and colour profiles are ignored. Its errors leave by
 * longjmp() to tti_decode_png().
 */
#include "data/decode.h"

#ifdef TUTTI_HAVE_PNG

#include <png.h>
#include <setjmp.h>
#include <stdio.h>
#include <string.h>

#define MAX_SIDE  65535
#define MAX_CHUNK (16 << 20) // memory of one ancillary chunk

typedef struct decoder {
    const tti_coded *c;
    size_t at;
    png_structp png;
    png_infop info;
    jmp_buf back;
    char why[128];
    tt_status status;
    tti_pixels out;
    png_bytep *rows;
} decoder;

static void on_error(png_structp png, png_const_charp why)
{
    decoder *d = png_get_error_ptr(png);
    snprintf(d->why, sizeof(d->why), "%s", why);
    longjmp(d->back, 1);
}

static void on_warning(png_structp png, png_const_charp why)
{
    (void)png, (void)why; // it can be read all the same
}

static void read_bytes(png_structp png, png_bytep to, size_t n)
{
    decoder *d = png_get_io_ptr(png);
    if (n > d->c->n - d->at)
        on_error(png, "the file ends early");
    memcpy(to, d->c->data + d->at, n);
    d->at += n;
}

static void decode(tt_ctx *ctx, tti_decode_room *r, decoder *d)
{
    png_structp png = d->png;
    png_set_read_fn(png, d, read_bytes);
    png_set_user_limits(png, MAX_SIDE, MAX_SIDE);
    png_set_chunk_malloc_max(png, MAX_CHUNK);
    png_set_crc_action(png, PNG_CRC_ERROR_QUIT, PNG_CRC_DEFAULT);
    png_read_info(png, d->info);
    bool is_grey = (png_get_color_type(png, d->info) & PNG_COLOR_MASK_COLOR) == 0;
    png_set_expand(png);
    png_set_strip_16(png);
    png_set_strip_alpha(png);
    (void)png_set_interlace_handling(png);
    int64_t high = png_get_image_height(png, d->info), wide = png_get_image_width(png, d->info);
    png_read_update_info(png, d->info);
    d->status = tti_pixels_room(ctx, d->c, r, high, wide, is_grey ? 1 : 3, &d->out);
    if (d->status == TT_OK) {
        d->rows = (png_bytep *)(void *)tti_room_get(ctx, r, 2, (size_t)high * sizeof(*d->rows));
        d->status = d->rows != NULL ? TT_OK : TT_ENOMEM;
    }
    if (d->status != TT_OK)
        longjmp(d->back, 1);
    size_t stride = png_get_rowbytes(png, d->info);
    if (stride != (size_t)(wide * d->out.channels))
        on_error(png, "an unusual type of pixels");
    for (int64_t i = 0; i < high; i++)
        d->rows[i] = d->out.p + (size_t)i * stride;
    png_read_image(png, d->rows);
    png_read_end(png, NULL); // sees that the file is whole
}

tt_status tti_decode_png(tt_ctx *ctx, const tti_coded *c, tti_decode_room *r, tti_pixels *out)
{
    decoder *d = tti_calloc(ctx, 1, sizeof(*d));
    if (d == NULL)
        return TT_ENOMEM;
    d->c = c;
    tt_status st = TT_OK;
    if (setjmp(d->back) == 0) {
        d->png = png_create_read_struct(PNG_LIBPNG_VER_STRING, d, on_error, on_warning);
        d->info = d->png != NULL ? png_create_info_struct(d->png) : NULL;
        if (d->info == NULL) {
            d->status = TT_FAIL(ctx, TT_ENOMEM, "%s: libpng has no memory", c->path);
            longjmp(d->back, 1);
        }
        decode(ctx, r, d);
        *out = d->out;
    } else {
        st = d->status != TT_OK ? d->status : tti_damaged(ctx, c, "PNG", d->why);
    }
    png_destroy_read_struct(&d->png, &d->info, NULL);
    tti_free(ctx, d);
    return st;
}

const char *tti_png_version(void)
{
    return "libpng " PNG_LIBPNG_VER_STRING;
}

#else

tt_status tti_decode_png(tt_ctx *ctx, const tti_coded *c, tti_decode_room *r, tti_pixels *out)
{
    (void)r, (void)out;
    return TT_FAIL(ctx, TT_EUNSUPPORTED, "%s: this build cannot read PNG files", c->path);
}

const char *tti_png_version(void)
{
    return NULL;
}

#endif
