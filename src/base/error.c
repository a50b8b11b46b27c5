/*
 * error.c - the sticky error of a context. The first error wins: it is written under ctx->mu, then
 * the status is published by one atomic store, so reading it costs one load and no lock.
 */
#include "base/ctx.h"
#include <stdio.h>
#include <string.h>

static const char *const status_names[] = {
#define NAME(code, value, text) [value] = #code,
    TT_STATUS_LIST(NAME)
#undef NAME
};

static const char *const status_texts[] = {
#define TEXT(code, value, text) [value] = text,
    TT_STATUS_LIST(TEXT)
#undef TEXT
};

const char *tt_status_name(tt_status st)
{
    return (unsigned)st < TTI_COUNT(status_names) ? status_names[st] : "TT_UNKNOWN";
}

const char *tt_status_text(tt_status st)
{
    return (unsigned)st < TTI_COUNT(status_texts) ? status_texts[st] : "unknown status";
}

// The file as a reader of the source tree knows it: what follows the last "src/".
static const char *short_file(const char *file)
{
    const char *found = file;
    for (const char *s = file; (s = strstr(s, "src/")) != NULL; s += 4)
        found = s;
    return found;
}

tt_status tti_vfail(tt_ctx *ctx, tt_status st, const char *file, int line, const char *fmt,
                    va_list args)
{
    if (ctx == NULL || st == TT_OK)
        return st;

    char text[TTI_MESSAGE_MAX], raw[TTI_MESSAGE_MAX];
    vsnprintf(raw, sizeof(raw), fmt, args); // with words of files and of other processes
    (void)tti_escape(text, sizeof(text), raw, strlen(raw), false);

    pthread_mutex_lock(&ctx->mu);
    bool first = atomic_load_explicit(&ctx->status, memory_order_relaxed) == TT_OK;
    const char *where = ctx->where != NULL ? ctx->where : "";
    size_t head = strnlen(where, TTI_MESSAGE_MAX / 2);
    memmove(text + head, text, sizeof(text) - head);
    memcpy(text, where, head);
    text[sizeof(text) - 1] = '\0';
    if (first) {
        memcpy(ctx->message, text, sizeof(text));
        ctx->file = short_file(file != NULL ? file : "");
        ctx->line = line;
        atomic_store_explicit(&ctx->status, (int)st, memory_order_release);
    }
    pthread_mutex_unlock(&ctx->mu);

    // What follows from the first error is for those who debug.
    tti_log(ctx, first ? TT_ERROR : TT_DEBUG, first ? "%s" : "then: %s", text);
    return st;
}

tt_status tt_fail(tt_ctx *ctx, tt_status st, const char *file, int line, const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    st = tti_vfail(ctx, st, file, line, fmt, args);
    va_end(args);
    return st;
}

void tti_attempt_begin(tt_ctx *ctx, tti_attempt *a)
{
    a->status = TT_OK;
    a->outer = atomic_load(&ctx->attempt);
    atomic_store(&ctx->attempt, a);
}

tt_status tti_attempt_end(tt_ctx *ctx, tti_attempt *a)
{
    pthread_mutex_lock(&ctx->mu);
    a->status = (tt_status)atomic_load(&ctx->status);
    memcpy(a->message, ctx->message, sizeof(a->message));
    a->file = ctx->file;
    a->line = ctx->line;
    ctx->message[0] = '\0';
    ctx->file = "";
    ctx->line = 0;
    atomic_store(&ctx->status, TT_OK);
    pthread_mutex_unlock(&ctx->mu);
    atomic_store(&ctx->attempt, a->outer);
    return a->status;
}

tt_status tti_attempt_raise(tt_ctx *ctx, const tti_attempt *a)
{
    return tt_fail(ctx, a->status, a->file, a->line, "%s", a->message);
}

void tti_fail_where(tt_ctx *ctx, const char *text)
{
    pthread_mutex_lock(&ctx->mu);
    ctx->where = text;
    pthread_mutex_unlock(&ctx->mu);
}

tt_error tt_last_error(const tt_ctx *ctx)
{
    if (ctx == NULL)
        return (tt_error){TT_EINVAL, "no context", "", 0};
    int st = atomic_load_explicit(&ctx->status, memory_order_acquire);
    if (st == TT_OK)
        return (tt_error){TT_OK, "", "", 0};
    return (tt_error){(tt_status)st, ctx->message, ctx->file, ctx->line};
}

tt_status tt_status_of(const tt_ctx *ctx)
{
    if (ctx == NULL)
        return TT_EINVAL;
    return (tt_status)atomic_load_explicit(&ctx->status, memory_order_acquire);
}

void tt_clear_error(tt_ctx *ctx)
{
    if (ctx == NULL)
        return;
    pthread_mutex_lock(&ctx->mu);
    ctx->message[0] = '\0';
    ctx->file = "";
    ctx->line = 0;
    atomic_store(&ctx->status, TT_OK);
    atomic_store(&ctx->stop, 0);
    pthread_mutex_unlock(&ctx->mu);
}

bool tti_is_stuck(const tt_ctx *ctx)
{
    if (tti_is_forked(ctx))
        tti_fork_fail((tt_ctx *)ctx);
    return tt_status_of(ctx) != TT_OK;
}
