/*
 * log.c - the way out of a context: events, handed one at a time to the owner's function. Without
 * one, log lines and printed values go to stderr.
 */
#include "base/ctx.h"
#include <errno.h>
#include <math.h>
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

// An epoch for a program that listens to nothing: "epoch 2 of 5: loss 0.1234, accuracy 0.9678".
static void epoch_to_stderr(const tt_event *ev)
{
    static const char *const skipped[] = {"step",      "steps", "rows",    "epoch_rows",
                                          "step_loss", "lr",    "seconds", "epoch",
                                          "epochs",    "best",  NULL};
    char text[512] = "";
    double epoch = 0, epochs = 0;
    size_t n = 0;
    for (int i = 0; i < ev->n_pairs && n < sizeof(text) - 80; i++) {
        const tt_pair *p = &ev->pairs[i];
        epoch = strcmp(p->name, "epoch") == 0 ? p->number : epoch;
        epochs = strcmp(p->name, "epochs") == 0 ? p->number : epochs;
        int k = 0;
        while (skipped[k] != NULL && strcmp(skipped[k], p->name) != 0)
            k++;
        if (skipped[k] == NULL)
            n += (size_t)snprintf(text + n, sizeof(text) - n, "%s%.32s %.4g", n > 0 ? ", " : "",
                                  p->name, p->number);
    }
    char out[640];
    int length = epochs > 0
                     ? snprintf(out, sizeof(out), "epoch %.0f of %.0f: %s\n", epoch, epochs, text)
                     : snprintf(out, sizeof(out), "epoch %.0f: %s\n", epoch, text);
    write_all(out, (size_t)length);
}

// An event that says itself what happened.
static void message_to_stderr(const tt_event *ev)
{
    char out[640];
    for (int i = 0; i < ev->n_pairs; i++) {
        if (ev->pairs[i].text == NULL || strcmp(ev->pairs[i].name, "message") != 0)
            continue;
        int n = snprintf(out, sizeof(out), "%.600s\n", ev->pairs[i].text);
        write_all(out, (size_t)n);
    }
}

// One line, one write, so that lines of several processes do not mix.
static void to_stderr(const tt_event *ev)
{
    char line[TTI_MESSAGE_MAX + 32];
    const char *word = ev->kind;
    if (strcmp(ev->kind, "log") == 0)
        word = (unsigned)ev->level < TTI_COUNT(level_names) ? level_names[ev->level] : "log";
    else if (strcmp(ev->kind, "epoch") == 0) {
        epoch_to_stderr(ev);
        return;
    } else if (strcmp(ev->kind, "early_stop") == 0 || strcmp(ev->kind, "plateau") == 0) {
        message_to_stderr(ev);
        return;
    } else if (strcmp(ev->kind, "print") != 0)
        return; // the others are for programs

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
    for (tti_observer *o = ctx->observers; o != NULL; o = o->next)
        o->fn(o->user, ev);
    if (ctx->on_event != NULL)
        ctx->on_event(ctx->user, ev);
    else if ((ctx->level != TT_ERROR && !ctx->has_progress) || ev->n_pairs == 0) // errors alone
        to_stderr(ev);
    pthread_mutex_unlock(&ctx->mu);
}

void tti_log(tt_ctx *ctx, tt_level level, const char *fmt, ...)
{
    if (ctx == NULL)
        return;
    tt_level most = ctx->level == TT_LOG_DEFAULT ? TT_WARN : ctx->level;
    if (level > most || atomic_load(&ctx->attempt) != NULL)
        return;

    char text[TTI_MESSAGE_MAX], raw[TTI_MESSAGE_MAX];
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(raw, sizeof(raw), fmt, ap);
    va_end(ap);
    (void)tti_escape(text, sizeof(text), raw, strlen(raw), false);
    tti_emit(ctx, &(tt_event){.kind = "log", .level = level, .text = text});
}

// Adds to a buffer of fixed size; what has no room is cut off.
typedef struct line {
    char s[16384];
    size_t n;
} line;

static void put(line *l, const char *fmt, ...) TT_PRINTF(2, 3);
static void put(line *l, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    int n = vsnprintf(l->s + l->n, sizeof(l->s) - l->n, fmt, ap);
    va_end(ap);
    if (n > 0)
        l->n = TTI_MIN(l->n + (size_t)n, sizeof(l->s) - 1);
}

static void put_quoted(line *l, const char *s)
{
    put(l, "\"");
    for (; *s != '\0'; s++) {
        unsigned char c = (unsigned char)*s;
        if (c == '"' || c == '\\')
            put(l, "\\%c", c);
        else if (c < 0x20)
            put(l, "\\u%04x", c);
        else
            put(l, "%c", c);
    }
    put(l, "\"");
}

void tti_emit_pairs(tt_ctx *ctx, const char *kind, const tt_pair *pairs, int n)
{
    line l = {.n = 0};
    put(&l, "{\"event\": \"%s\"", kind);
    for (int i = 0; i < n && l.n < sizeof(l.s) - 256; i++) {
        put(&l, ", \"%s\": ", pairs[i].name);
        double x = pairs[i].number;
        if (pairs[i].text != NULL)
            put_quoted(&l, pairs[i].text);
        else if (isfinite(x) && x == (double)(int64_t)x && fabs(x) < 1e15)
            put(&l, "%lld", (long long)x);
        else if (isfinite(x))
            put(&l, "%.9g", x);
        else
            put(&l, "null"); // JSON has no NaN
    }
    put(&l, "}");
    tti_emit(ctx, &(tt_event){.kind = kind, .text = l.s, .pairs = pairs, .n_pairs = n});
}

void tti_observe(tt_ctx *ctx, tti_observer *o)
{
    pthread_mutex_lock(&ctx->mu);
    o->next = ctx->observers;
    ctx->observers = o;
    pthread_mutex_unlock(&ctx->mu);
}

void tti_unobserve(tt_ctx *ctx, tti_observer *o)
{
    pthread_mutex_lock(&ctx->mu);
    for (tti_observer **at = &ctx->observers; *at != NULL; at = &(*at)->next) {
        if (*at == o) {
            *at = o->next;
            break;
        }
    }
    pthread_mutex_unlock(&ctx->mu);
}
