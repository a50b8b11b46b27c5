/*
 * chain_read.c - reads the chain of a run and finds where it is broken (chain.h).
 */
#include "base/ctx.h"
#include "net/keys.h"
#include "record/link.h"
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define MOST_BYTES ((size_t)1 << 30)

static const char *text_of(const json_t *o, const char *name)
{
    const char *s = json_string_value(json_object_get(o, name));
    return s != NULL ? s : "";
}

// false: it is no line of a chain.
static bool read_link(json_t *o, tti_link *out)
{
    static const char *const kinds[] = {"start", "step", "checkpoint", "end"};
    for (int i = 0; i < TTI_COUNT(kinds); i++) {
        const json_t *step = json_object_get(o, kinds[i]);
        if (!json_is_integer(step))
            continue;
        *out = (tti_link){.kind = (tti_link_kind)i,
                          .step = json_integer_value(step),
                          .weights = text_of(o, "weights"),
                          .state = text_of(o, "state"),
                          .optimizer = text_of(o, "optimizer"),
                          .log_bytes = json_integer_value(json_object_get(o, "log")),
                          .log_hash = text_of(o, "log_hash"),
                          .is_signed = text_of(o, "sign")[0] != '\0',
                          .o = o};
        return true;
    }
    return false;
}

// Does the link follow from the one before and the rest of the line?
static bool is_linked(tti_links *l, const char *line, size_t n, const json_t *o)
{
    char link[TTI_LINK];
    const char *at = NULL, *end = line + n;
    for (const char *next = line; (next = memmem(next, (size_t)(end - next), TTI_LINK_WORD,
                                                 sizeof(TTI_LINK_WORD) - 1)) != NULL;
         next++)
        at = next;
    if (at == NULL || !tti_link_make(l->ctx, l->link, line, (size_t)(at - line), link) ||
        strcmp(text_of(o, "link"), link) != 0)
        return false;
    memcpy(l->link, link, sizeof(l->link));
    return true;
}

static bool is_signed_by(const uint8_t *key, const char *link, const json_t *o)
{
    char sign[TTI_LINK];
    const char *found = text_of(o, "sign");
    tti_link_sign(key, link, sign);
    return strlen(found) == TTI_LINK - 1 && tti_equal(found, sign, TTI_LINK - 1);
}

// False at the first line that is not right.
static bool take_line(tti_links *l, const uint8_t *key, const char *line, size_t n, int number)
{
    json_t *o = json_loadb(line, n, 0, NULL);
    tti_link link;
    bool is_right = json_is_object(o) && read_link(o, &link) && is_linked(l, line, n, o) &&
                    tti_grow(l->ctx, &l->v, &l->cap, l->n + 1, sizeof(*l->v));
    if (!is_right) {
        l->broken = number;
        json_decref(o);
        return false;
    }
    if (key != NULL && l->unsigned_line == 0 && !is_signed_by(key, l->link, o))
        l->unsigned_line = number;
    link.line = number;
    l->v[l->n++] = link;
    return true;
}

tt_status tti_links_read(tt_ctx *ctx, const char *folder, const uint8_t *key, tti_links *out)
{
    char path[TTI_PATH_MAX], *text = NULL;
    size_t bytes = 0;
    *out = (tti_links){.ctx = ctx};
    memset(out->link, '0', TTI_LINK - 1);
    TT_TRY(tti_file_join(ctx, path, folder, TTI_CHAIN));
    TT_TRY(tti_file_read(ctx, path, MOST_BYTES, &text, &bytes));
    int number = 0;
    for (char *line = text, *end = text + bytes; line < end;) {
        char *stop = memchr(line, '\n', (size_t)(end - line));
        number++;
        if (stop == NULL) // torn by a kill: the next start cuts it off
            break;
        if (!take_line(out, key, line, (size_t)(stop - line), number))
            break;
        line = stop + 1;
    }
    tti_free(ctx, text);
    return TT_OK;
}

void tti_links_free(tti_links *l)
{
    for (int64_t i = 0; i < l->n; i++)
        json_decref(l->v[i].o);
    tti_free(l->ctx, l->v);
    *l = (tti_links){.ctx = l->ctx};
}

const char *tti_links_weights(const tti_links *l, int64_t step)
{
    for (int64_t i = l->n - 1; i >= 0; i--)
        if (l->v[i].step == step && l->v[i].kind != TTI_LINK_START &&
            l->v[i].kind != TTI_LINK_CHECKPOINT)
            return l->v[i].weights;
    return NULL;
}

static int by_step(const void *a, const void *b)
{
    int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return (x > y) - (x < y);
}

tt_status tti_links_steps(tt_ctx *ctx, const char *run, int64_t **steps)
{
    tti_links l;
    TT_TRY(tti_links_read(ctx, run, NULL, &l));
    *steps = tti_calloc(ctx, (size_t)l.n + 1, sizeof(**steps));
    int64_t n = 0;
    for (int64_t i = 0; *steps != NULL && i < l.n; i++)
        if (l.v[i].kind == TTI_LINK_STEP)
            (*steps)[n++] = l.v[i].step;
    tti_links_free(&l);
    if (*steps == NULL)
        return TT_ENOMEM;
    qsort(*steps, (size_t)n, sizeof(**steps), by_step);
    ctx->hashing = (tti_hashing){.at = *steps, .n_at = n};
    return TT_OK;
}

const tti_link *tti_links_check_log(const tti_links *l, const char *folder, int64_t *begin)
{
    char path[TTI_PATH_MAX], part[1 << 14], text[33];
    const tti_link *found = NULL;
    int64_t at = 0;
    if (tti_file_join(NULL, path, folder, "events.jsonl") != TT_OK)
        return NULL;
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    tti_hasher *h = tti_hash_begin(NULL);
    for (int64_t i = 0; h != NULL && found == NULL && i < l->n; i++) {
        const tti_link *k = &l->v[i];
        *begin = at;
        while (at < k->log_bytes) {
            size_t n = (size_t)TTI_MIN(k->log_bytes - at, (int64_t)sizeof(part));
            ssize_t got = fd >= 0 ? pread(fd, part, n, (off_t)at) : -1;
            if (got <= 0)
                break;
            tti_hash_add(h, part, (size_t)got);
            at += got;
        }
        tt_hash now = tti_hash_now(h);
        snprintf(text, sizeof(text), "%016llx%016llx", (unsigned long long)now.high,
                 (unsigned long long)now.low);
        if (at != k->log_bytes || strcmp(text, k->log_hash) != 0)
            found = k;
    }
    if (h != NULL)
        (void)tti_hash_end(NULL, h);
    if (fd >= 0)
        close(fd);
    return found;
}
