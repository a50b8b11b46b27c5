/*
 * decode.c - image files: which format it is, memory, and what all formats share (decode.h).
 */
#include "data/decode.h"
#include <string.h>
#include <strings.h>

#define MAX_SIDE 65535

unsigned char *tti_room_get(tt_ctx *ctx, tti_decode_room *r, int i, size_t bytes)
{
    if (bytes <= r->bytes[i] && r->memory[i] != NULL)
        return r->memory[i];
    tti_free(NULL, r->memory[i]);
    r->bytes[i] = 0;
    r->memory[i] = tti_alloc(NULL, TTI_MAX(bytes, 4096)); // no context's: it outlives a reader's
    if (r->memory[i] != NULL)
        r->bytes[i] = TTI_MAX(bytes, 4096);
    else
        (void)TT_FAIL(ctx, TT_ENOMEM, "images: no memory for %zu bytes", bytes);
    return r->memory[i];
}

void tti_room_free(tti_decode_room *r)
{
    for (int i = 0; i < TTI_COUNT(r->memory); i++) {
        tti_free(NULL, r->memory[i]);
        r->memory[i] = NULL;
        r->bytes[i] = 0;
    }
}

void tti_pool_init(tti_room_pool *p)
{
    *p = (tti_room_pool){.free = NULL};
    pthread_mutex_init(&p->mu, NULL);
}

void tti_pool_deinit(tti_room_pool *p)
{
    while (p->free != NULL) {
        tti_decode_room *r = p->free;
        p->free = r->next;
        tti_room_free(r);
        tti_free(NULL, r);
    }
    pthread_mutex_destroy(&p->mu);
}

tti_decode_room *tti_pool_borrow(tt_ctx *ctx, tti_room_pool *p)
{
    pthread_mutex_lock(&p->mu);
    tti_decode_room *r = p->free;
    if (r != NULL)
        p->free = r->next;
    pthread_mutex_unlock(&p->mu);
    if (r == NULL && (r = tti_calloc(NULL, 1, sizeof(*r))) == NULL)
        (void)TT_FAIL(ctx, TT_ENOMEM, "data: no memory to decode");
    return r;
}

void tti_pool_return(tti_room_pool *p, tti_decode_room *r)
{
    pthread_mutex_lock(&p->mu);
    r->next = p->free;
    p->free = r;
    pthread_mutex_unlock(&p->mu);
}

tt_status tti_pixels_room(tt_ctx *ctx, const tti_coded *c, tti_decode_room *r, int64_t high,
                          int64_t wide, int channels, tti_pixels *out)
{
    if (high < 1 || wide < 1 || high > MAX_SIDE || wide > MAX_SIDE || high * wide > c->max_pixels)
        return TT_FAIL(ctx, TT_EIO,
                       "%s: has %lld x %lld pixels; at most %lld million are allowed "
                       "(max_megapixels), and %d on a side",
                       c->path, (long long)wide, (long long)high,
                       (long long)(c->max_pixels / 1000000), MAX_SIDE);
    size_t bytes = (size_t)high * (size_t)wide * (size_t)channels;
    *out = (tti_pixels){.high = high, .wide = wide, .channels = channels};
    out->p = tti_room_get(ctx, r, 1, bytes);
    return out->p != NULL ? TT_OK : TT_ENOMEM;
}

tt_status tti_damaged(tt_ctx *ctx, const tti_coded *c, const char *format, const char *why)
{
    return TT_FAIL(ctx, TT_EIO, "%s: the %s data is damaged or cut short: %s%s%s", c->path, format,
                   why, c->remedy != NULL ? "; " : "", c->remedy != NULL ? c->remedy : "");
}

// ---- formats ---------------------------------------------------------------------------------

typedef struct format {
    const char *name, *label, *package, *magic;
    size_t at, n; // of the magic
    tt_status (*decode)(tt_ctx *ctx, const tti_coded *c, tti_decode_room *r, tti_pixels *out);
    const char *(*version)(void);
} format;

static const format formats[] = {
    {"jpeg", "JPEG", "libjpeg-dev", "\xff\xd8\xff", 0, 3, tti_decode_jpeg, tti_jpeg_version},
    {"png", "PNG", "libpng-dev", "\x89PNG\r\n\x1a\n", 0, 8, tti_decode_png, tti_png_version},
    {"webp", "WebP", "libwebp-dev", "WEBP", 8, 4, tti_decode_webp, tti_webp_version},
};

static const format *format_of(const unsigned char *p, size_t n)
{
    for (int i = 0; i < TTI_COUNT(formats); i++)
        if (n >= formats[i].at + formats[i].n &&
            memcmp(p + formats[i].at, formats[i].magic, formats[i].n) == 0)
            return &formats[i];
    return NULL;
}

bool tti_is_image(const unsigned char *p, size_t n)
{
    return format_of(p, n) != NULL;
}

bool tti_is_image_name(const char *name)
{
    static const char *const endings[] = {".jpg", ".jpeg", ".png", ".webp"};
    const char *dot = strrchr(name, '.');
    for (int i = 0; dot != NULL && i < TTI_COUNT(endings); i++)
        if (strcasecmp(dot, endings[i]) == 0)
            return true;
    return false;
}

const char *tti_decoder_version(const char *name)
{
    for (int i = 0; i < TTI_COUNT(formats); i++)
        if (strcmp(formats[i].name, name) == 0)
            return formats[i].version();
    return NULL;
}

void tti_decoders_describe(tti_text *t)
{
    for (int i = 0; i < TTI_COUNT(formats); i++) {
        const char *version = formats[i].version();
        if (version != NULL)
            tti_text_add(t, "%s: yes (%s)\n", formats[i].name, version);
        else
            tti_text_add(t, "%s: no (%s files cannot be read: install %s and build again)\n",
                         formats[i].name, formats[i].label, formats[i].package);
    }
}

tt_status tti_decode(tt_ctx *ctx, const tti_coded *c, tti_decode_room *r, tti_pixels *out)
{
    const format *f = format_of(c->data, c->n);
    if (f == NULL)
        return TT_FAIL(ctx, TT_EIO, "%s: %s", c->path,
                       c->n == 0 ? "the file is empty" : "is not a JPEG, PNG or WebP file");
    if (f->version() == NULL)
        return TT_FAIL(ctx, TT_EUNSUPPORTED,
                       "%s: this build cannot read %s files; install %s and build again "
                       "(make deps && make)",
                       c->path, f->label, f->package);
    return f->decode(ctx, c, r, out);
}
