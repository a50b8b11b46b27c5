/*
 * log.c - the way out of a context: events, handed one at a time to the owner's function. Without
 * one, log lines and printed values go to stderr.
 */
#include "base/ctx.h"
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static const char *const level_names[] = {"log", "error", "warn", "info", "debug", "trace"};

// All of it, or as much as stderr takes; a lost log line is no error.
static void write_all(const char *s, size_t n)
{
    while (n > 0) {
        ssize_t w = write(STDERR_FILENO, s, n);
        if (w < 0 && errno == EINTR)
            continue;
        if (w <= 0)
            return;
        s += w;
        n -= (size_t)w;
    }
}

// One line, one write, so that lines of several processes do not mix.
static void to_stderr(const tt_event *ev)
{
    char line[TTI_MESSAGE_MAX + 32];
    const char *word = ev->kind;
    if (strcmp(ev->kind, "log") == 0)
        word = (unsigned)ev->level < TTI_COUNT(level_names) ? level_names[ev->level] : "log";
    else if (strcmp(ev->kind, "print") != 0)
        return; // "run" and "plan" are for programs

    size_t n = strlen(ev->text);
    int head = snprintf(line, sizeof(line), "tutti: %s: ", word);
    if (head > 0 && (size_t)head + n + 2 <= sizeof(line)) {
        memcpy(line + head, ev->text, n);
        line[(size_t)head + n] = '\n';
        write_all(line, (size_t)head + n + 1);
    } else { // a long printed value
        write_all(line, strlen(line));
        write_all(ev->text, n);
        write_all("\n", 1);
    }
}

void tti_emit(tt_ctx *ctx, const tt_event *ev)
{
    if (ctx == NULL)
        return;
    pthread_mutex_lock(&ctx->mu); // recursive: the owner's function may call the library
    if (ctx->on_event != NULL)
        ctx->on_event(ctx->user, ev);
    else
        to_stderr(ev);
    pthread_mutex_unlock(&ctx->mu);
}

void tti_log(tt_ctx *ctx, tt_level level, const char *fmt, ...)
{
    if (ctx == NULL)
        return;
    tt_level most = ctx->level == TT_LOG_DEFAULT ? TT_WARN : ctx->level;
    if (level > most)
        return;

    char text[TTI_MESSAGE_MAX];
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(text, sizeof(text), fmt, ap);
    va_end(ap);
    tti_emit(ctx, &(tt_event){.kind = "log", .level = level, .text = text});
}
