/*
 * decode.h - image files in memory as pixels: JPEG, PNG and WebP, by libraries that may be absent
 * when building.
 *
 * The same file gives the same pixels wherever the same library decodes it: JPEG always with the
 * accurate integer transform and smooth (fancy) upsampling. The size is known from the header, and
 * checked, before memory for pixels is taken.
 */
#ifndef TUTTI_DATA_DECODE_H
#define TUTTI_DATA_DECODE_H

#include "base/base.h"
#include <pthread.h>

// Memory that one thread decodes with; it grows and is kept from image to image.
typedef struct tti_decode_room {
    unsigned char *memory[4]; // 0: the file, 1: its pixels, 2 and 3: for resizing
    size_t bytes[4];
    struct tti_decode_room *next; // for the owner's list
} tti_decode_room;
// Memory i with at least so many bytes; NULL: recorded.
unsigned char *tti_room_get(tt_ctx *ctx, tti_decode_room *r, int i, size_t bytes);
void tti_room_free(tti_decode_room *r); // what it holds, not itself

// Rooms that readers borrow.
typedef struct tti_room_pool {
    pthread_mutex_t mu;
    tti_decode_room *free; // guarded by mu
} tti_room_pool;
void tti_pool_init(tti_room_pool *p);
void tti_pool_deinit(tti_room_pool *p);
tti_decode_room *tti_pool_borrow(tt_ctx *ctx, tti_room_pool *p); // NULL: recorded
void tti_pool_return(tti_room_pool *p, tti_decode_room *r);

// A file to decode.
typedef struct tti_coded {
    const char *path; // for messages
    const unsigned char *data;
    size_t n;
    const char *remedy; // what to do about a damaged one; NULL: nothing is said
    int64_t max_pixels; // larger ones are refused
    int64_t least[2];   // JPEG may be decoded at a reduced scale that has this size; 0: full scale
} tti_coded;

// Its pixels: [high, wide, channels] of bytes, 1 channel (grey) or 3 (red, green, blue).
typedef struct tti_pixels {
    int64_t high, wide;
    int channels;
    unsigned char *p;
} tti_pixels;

// Fails with TT_EIO for a damaged file, TT_EUNSUPPORTED for one that this build cannot read.
tt_status tti_decode(tt_ctx *ctx, const tti_coded *c, tti_decode_room *r,
                     tti_pixels *out) TTI_CHECKED;
bool tti_is_image(const unsigned char *p, size_t n); // by the first 12 bytes
bool tti_is_image_name(const char *name);            // by the ending: .jpg .jpeg .png .webp
// "libjpeg-turbo 2.1.5" by format: "jpeg", "png", "webp"; NULL: not in this build.
const char *tti_decoder_version(const char *format);
// Lines for `tutti version`: "jpeg: yes (libjpeg-turbo 2.1.5)".
void tti_decoders_describe(tti_text *t);

// ---- one file each ---------------------------------------------------------------------------

tt_status tti_decode_jpeg(tt_ctx *ctx, const tti_coded *c, tti_decode_room *r,
                          tti_pixels *out) TTI_CHECKED;
tt_status tti_decode_png(tt_ctx *ctx, const tti_coded *c, tti_decode_room *r,
                         tti_pixels *out) TTI_CHECKED;
tt_status tti_decode_webp(tt_ctx *ctx, const tti_coded *c, tti_decode_room *r,
                          tti_pixels *out) TTI_CHECKED;
const char *tti_jpeg_version(void);
const char *tti_png_version(void);
const char *tti_webp_version(void);
// Room for the pixels of an image, which is not too large.
tt_status tti_pixels_room(tt_ctx *ctx, const tti_coded *c, tti_decode_room *r, int64_t high,
                          int64_t wide, int channels, tti_pixels *out) TTI_CHECKED;
tt_status tti_damaged(tt_ctx *ctx, const tti_coded *c, const char *format,
                      const char *why) TTI_CHECKED;

// ---- resizing (resample.c) -------------------------------------------------------------------

// A rectangle of an image, in pixels that may be fractions.
typedef struct tti_box {
    float left, top, right, bottom;
} tti_box;
/*
 * Resizes box of x to y, which has its size and channels set and room for them: bilinear with
 * antialiasing, weights in 22-bit fixed point, columns first. All numbers are integers or doubles
 * that are added, multiplied and divided, so every processor gives the same bits. Uses memory 2
 * and 3 of r. x and y do not overlap.
 */
tt_status tti_resize(tt_ctx *ctx, const tti_pixels *x, const tti_box *box, tti_decode_room *r,
                     tti_pixels *y) TTI_CHECKED;
// The largest box with the proportions of high by wide, in the middle of x.
tti_box tti_box_fit(const tti_pixels *x, int64_t high, int64_t wide);
// To grey (ITU-R 601) or to three equal channels, in place or to y with room; channels 1 or 3.
void tti_recolour(const tti_pixels *x, int channels, unsigned char *y);

#endif
