/*
 * frame.c - messages from their parts (frame.h). Memory grows with what has come, not with what was
 * announced.
 */
#include "serve/frame.h"
#include <string.h>

#define KEEP ((int64_t)64 << 20) // room that is kept between messages

tti_assembled tti_assembly_add(tti_assembly *a, tti_frame_type type, const void *part, size_t bytes,
                               size_t max)
{
    tti_frame_head h;
    if (bytes < sizeof(h))
        return TTI_BROKEN;
    memcpy(&h, part, sizeof(h));
    size_t n = bytes - sizeof(h);
    if (h.magic != TTI_FRAME_MAGIC || h.type != (uint32_t)type || n > TTI_SERVE_CHUNK)
        return TTI_BROKEN;
    if (!a->is_begun) {
        if (h.offset != 0)
            return h.number == a->number ? TTI_IGNORED : TTI_BROKEN;
        a->is_begun = true;
        a->number = h.number;
        a->total = h.total;
        a->kind = h.kind;
        a->got = 0;
    }
    if (h.number != a->number || h.total != a->total || h.kind != a->kind || h.offset != a->got ||
        n > a->total - a->got || (n == 0 && a->total > 0))
        return TTI_BROKEN;
    if (a->total > max) {
        a->is_begun = false;
        return TTI_TOO_LARGE;
    }
    if (!tti_grow(NULL, &a->body, &a->cap, (int64_t)(a->got + n) + 1, 1)) {
        a->is_begun = false;
        return TTI_NO_MEMORY;
    }
    if (n > 0)
        memcpy(a->body + a->got, (const char *)part + sizeof(h), n);
    a->got += n;
    a->body[a->got] = '\0';
    if (a->got < a->total)
        return TTI_PART;
    a->is_begun = false;
    return TTI_WHOLE;
}

void tti_assembly_next(tti_assembly *a)
{
    if (a->cap > KEEP)
        tti_assembly_free(a);
}

void tti_assembly_free(tti_assembly *a)
{
    tti_free(NULL, a->body);
    a->body = NULL;
    a->cap = 0;
}
