/*
 * decode_webp.c - WebP by libwebp, still images only. Transparency is left out.
 */
#include "data/decode.h"

#ifdef TUTTI_HAVE_WEBP

#include <webp/decode.h>

#define STR_(x) #x
#define STR(x)  STR_(x)

tt_status tti_decode_webp(tt_ctx *ctx, const tti_coded *c, tti_decode_room *r, tti_pixels *out)
{
    WebPBitstreamFeatures f;
    tti_pixels p;
    if (WebPGetFeatures(c->data, c->n, &f) != VP8_STATUS_OK)
        return tti_damaged(ctx, c, "WebP", "it has no valid header");
    if (f.has_animation)
        return TT_FAIL(ctx, TT_EUNSUPPORTED,
                       "%s: is an animated WebP file; only still images can be read", c->path);
    TT_TRY(tti_pixels_room(ctx, c, r, f.height, f.width, 3, &p));
    size_t stride = (size_t)p.wide * 3;
    if (WebPDecodeRGBInto(c->data, c->n, p.p, stride * (size_t)p.high, (int)stride) == NULL)
        return tti_damaged(ctx, c, "WebP", "the decoder stopped");
    *out = p;
    return TT_OK;
}

const char *tti_webp_version(void)
{
    static const char text[] = "libwebp, ABI " STR(WEBP_DECODER_ABI_VERSION);
    return text;
}

#else

tt_status tti_decode_webp(tt_ctx *ctx, const tti_coded *c, tti_decode_room *r, tti_pixels *out)
{
    (void)r, (void)out;
    return TT_FAIL(ctx, TT_EUNSUPPORTED, "%s: this build cannot read WebP files", c->path);
}

const char *tti_webp_version(void)
{
    return NULL;
}

#endif
