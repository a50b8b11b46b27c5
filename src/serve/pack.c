/*
 * pack.c - fields of messages (pack.h).
 */
#include "serve/pack.h"
#include <string.h>

const void *tti_get_bytes(tti_reader *r, size_t bytes)
{
    if (r->failed || bytes > (size_t)(r->end - r->at)) {
        r->failed = true;
        return NULL;
    }
    const void *at = r->at;
    r->at += bytes;
    return at;
}

#define GET(type, name)                                    \
    type tti_get_##name(tti_reader *r)                     \
    {                                                      \
        type v = 0;                                        \
        const void *from = tti_get_bytes(r, sizeof(type)); \
        if (from != NULL)                                  \
            memcpy(&v, from, sizeof(type));                \
        return v;                                          \
    }
GET(uint32_t, u32)
GET(uint64_t, u64)
GET(int64_t, i64)
GET(float, f32)

void tti_get_text(tti_reader *r, char *out, size_t room)
{
    uint32_t n = tti_get_u32(r);
    out[0] = '\0';
    const char *s = n < room ? tti_get_bytes(r, n) : NULL;
    if (s == NULL || memchr(s, '\0', n) != NULL) {
        r->failed = true;
        return;
    }
    memcpy(out, s, n);
    out[n] = '\0';
}

void tti_get_align(tti_reader *r)
{
    size_t at = (size_t)(r->at - r->begin), over = at % TTI_PACK_ALIGN;
    if (over != 0)
        (void)tti_get_bytes(r, TTI_PACK_ALIGN - over);
}

tt_shape tti_get_shape(tti_reader *r)
{
    tt_shape s = {0};
    uint32_t rank = tti_get_u32(r);
    if (rank > TT_MAX_RANK) {
        r->failed = true;
        return s;
    }
    for (uint32_t i = 0; i < rank; i++) {
        s.dim[i] = tti_get_i64(r);
        if (s.dim[i] < -((int64_t)1 << 40) || s.dim[i] > (int64_t)1 << 40)
            r->failed = true;
    }
    s.rank = r->failed ? 0 : (int)rank;
    return r->failed ? (tt_shape){0} : s;
}

tt_dtype tti_get_dtype(tti_reader *r)
{
    uint32_t t = tti_get_u32(r);
    if (t >= TT_N_DTYPES)
        r->failed = true;
    return t < TT_N_DTYPES ? (tt_dtype)t : TT_F32;
}

bool tti_get_end(const tti_reader *r)
{
    return !r->failed && r->at == r->end;
}

void tti_put_u32(tti_text *t, uint32_t v)
{
    tti_text_put(t, (const char *)&v, sizeof(v));
}

void tti_put_u64(tti_text *t, uint64_t v)
{
    tti_text_put(t, (const char *)&v, sizeof(v));
}

void tti_put_i64(tti_text *t, int64_t v)
{
    tti_text_put(t, (const char *)&v, sizeof(v));
}

void tti_put_f32(tti_text *t, float v)
{
    tti_text_put(t, (const char *)&v, sizeof(v));
}

void tti_put_text(tti_text *t, const char *s)
{
    s = s == NULL ? "" : s;
    tti_put_u32(t, (uint32_t)strlen(s));
    tti_text_put(t, s, strlen(s));
}

void tti_put_align(tti_text *t)
{
    static const char zeros[TTI_PACK_ALIGN] = {0};
    size_t over = (size_t)t->n % TTI_PACK_ALIGN;
    if (over != 0)
        tti_text_put(t, zeros, TTI_PACK_ALIGN - over);
}

void tti_put_shape(tti_text *t, const tt_shape *s)
{
    tti_put_u32(t, (uint32_t)s->rank);
    for (int i = 0; i < s->rank; i++)
        tti_put_i64(t, s->dim[i]);
}
