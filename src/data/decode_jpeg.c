/*
 * decode_jpeg.c - JPEG by libjpeg-turbo. Its errors leave by longjmp() to decode(), which owns
 * nothing but the decompressor.
 */
#include "data/decode.h"

#ifdef TUTTI_HAVE_JPEG

#include <stdio.h>
// clang-format off
#include <jpeglib.h> // needs stdio.h first
#include <jerror.h>
// clang-format on
#include <setjmp.h>
#include <string.h>

#define MAX_SCANS 500 // of a progressive file: each costs a pass over all pixels

typedef struct decoder {
    struct jpeg_decompress_struct j;
    struct jpeg_error_mgr errors;
    struct jpeg_progress_mgr progress;
    jmp_buf back;
    char why[JMSG_LENGTH_MAX];
    tti_pixels out;
    tt_status status; // set before a jump that is our own
} decoder;

static _Noreturn void leave(j_common_ptr j)
{
    decoder *d = j->client_data;
    j->err->format_message(j, d->why);
    longjmp(d->back, 1);
}

// What can be left out without a wrong pixel is passed over; everything else is damage.
static void on_message(j_common_ptr j, int level)
{
    int code = j->err->msg_code;
    if (level >= 0 || code == JWRN_EXTRANEOUS_DATA || code == JWRN_ADOBE_XFORM ||
        code == JWRN_TOO_MUCH_DATA || code == JWRN_JFIF_MAJOR)
        return;
    leave(j);
}

static void no_output(j_common_ptr j)
{
    (void)j;
}

static void on_progress(j_common_ptr j)
{
    decoder *d = j->client_data;
    if (d->j.input_scan_number <= MAX_SCANS)
        return;
    snprintf(d->why, sizeof(d->why), "it has more than %d scans", MAX_SCANS);
    longjmp(d->back, 1);
}

// The smallest of 1/1, 1/2, 1/4 and 1/8 that is at least as large as asked for on both sides.
static unsigned scale_for(const tti_coded *c, int64_t high, int64_t wide)
{
    unsigned scale = 1;
    while (c->least[0] > 0 && scale < 8 && (high + 2 * scale - 1) / (2 * scale) >= c->least[0] &&
           (wide + 2 * scale - 1) / (2 * scale) >= c->least[1])
        scale *= 2;
    return scale;
}

static unsigned char times(unsigned a, unsigned b)
{
    unsigned t = a * b + 128;
    return (unsigned char)((t + (t >> 8)) >> 8);
}

// Ink to light, in place: four bytes to three. Files of Adobe have their inks inverted.
static void from_cmyk(unsigned char *row, int64_t n, bool inverted)
{
    for (int64_t i = 0; i < n; i++) {
        unsigned char black = inverted ? row[4 * i + 3] : (unsigned char)(255 - row[4 * i + 3]);
        for (int k = 0; k < 3; k++) {
            unsigned char ink = inverted ? (unsigned char)(255 - row[4 * i + k]) : row[4 * i + k];
            row[3 * i + k] = (unsigned char)(black - times(ink, black));
        }
    }
}

static void read_rows(decoder *d, unsigned char *spare)
{
    bool is_ink = d->j.out_color_space == JCS_CMYK;
    size_t stride = (size_t)d->out.wide * (size_t)d->out.channels;
    while (d->j.output_scanline < d->j.output_height) {
        unsigned char *row = d->out.p + d->j.output_scanline * stride;
        JSAMPROW at = is_ink ? spare : row;
        (void)jpeg_read_scanlines(&d->j, &at, 1);
        if (is_ink) {
            from_cmyk(spare, d->out.wide, d->j.saw_Adobe_marker);
            memcpy(row, spare, stride);
        }
    }
}

static void decode(tt_ctx *ctx, const tti_coded *c, tti_decode_room *r, decoder *d)
{
    jpeg_mem_src(&d->j, c->data, c->n);
    (void)jpeg_read_header(&d->j, TRUE);
    d->j.dct_method = JDCT_ISLOW;
    d->j.do_fancy_upsampling = TRUE;
    bool is_ink = d->j.jpeg_color_space == JCS_CMYK || d->j.jpeg_color_space == JCS_YCCK;
    bool is_grey = d->j.jpeg_color_space == JCS_GRAYSCALE;
    d->j.out_color_space = is_ink ? JCS_CMYK : is_grey ? JCS_GRAYSCALE : JCS_RGB;
    if ((int64_t)d->j.image_width * d->j.image_height <= c->max_pixels) {
        d->j.scale_num = 1;
        d->j.scale_denom = scale_for(c, d->j.image_height, d->j.image_width);
    } // otherwise it is refused below
    jpeg_calc_output_dimensions(&d->j);
    int64_t high = d->j.output_height, wide = d->j.output_width;
    d->status = tti_pixels_room(ctx, c, r, high, wide, is_grey ? 1 : 3, &d->out);
    unsigned char *spare = NULL;
    if (d->status == TT_OK && is_ink) {
        spare = tti_room_get(ctx, r, 2, (size_t)wide * 4);
        d->status = spare != NULL ? TT_OK : TT_ENOMEM;
    }
    if (d->status != TT_OK)
        longjmp(d->back, 1);
    (void)jpeg_start_decompress(&d->j);
    read_rows(d, spare);
    (void)jpeg_finish_decompress(&d->j);
}

tt_status tti_decode_jpeg(tt_ctx *ctx, const tti_coded *c, tti_decode_room *r, tti_pixels *out)
{
    decoder *d = tti_calloc(ctx, 1, sizeof(*d));
    if (d == NULL)
        return TT_ENOMEM;
    d->j.err = jpeg_std_error(&d->errors);
    d->errors.error_exit = leave;
    d->errors.emit_message = on_message;
    d->errors.output_message = no_output;
    d->progress.progress_monitor = on_progress;
    d->j.client_data = d;
    tt_status st = TT_OK;
    if (setjmp(d->back) == 0) {
        jpeg_create_decompress(&d->j);
        d->j.client_data = d;
        d->j.progress = &d->progress;
        decode(ctx, c, r, d);
        *out = d->out;
    } else {
        st = d->status != TT_OK ? d->status : tti_damaged(ctx, c, "JPEG", d->why);
    }
    jpeg_destroy_decompress(&d->j);
    tti_free(ctx, d);
    return st;
}

#define STR_(x) #x
#define STR(x)  STR_(x)

const char *tti_jpeg_version(void)
{
#ifdef LIBJPEG_TURBO_VERSION
    return "libjpeg-turbo " STR(LIBJPEG_TURBO_VERSION);
#else
    return "libjpeg " STR(JPEG_LIB_VERSION);
#endif
}

#else

tt_status tti_decode_jpeg(tt_ctx *ctx, const tti_coded *c, tti_decode_room *r, tti_pixels *out)
{
    (void)r, (void)out;
    return TT_FAIL(ctx, TT_EUNSUPPORTED, "%s: this build cannot read JPEG files", c->path);
}

const char *tti_jpeg_version(void)
{
    return NULL;
}

#endif
