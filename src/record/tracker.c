/*
 * tracker.c - the thread that sends events to a server (tracker.h).
 *
 * Events are lines in a buffer; the thread exchanges it for an empty one and keeps what it took
 * until the server has it. While the server cannot be reached, it waits longer from try to try.
 */
#include "record/tracker.h"
#include "base/ctx.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define EVERY_MS 1000  // between two requests
#define MOST_MS  60000 // between two tries
#define CLOSE_MS 5000  // for what is left at the end

// ---- events in -------------------------------------------------------------------------------

static void add_pieces(tti_tracker *t, const char *const *pieces, int n)
{
    size_t total = 0;
    for (int i = 0; i < n; i++)
        total += strlen(pieces[i]);
    pthread_mutex_lock(&t->mu);
    if (total > TTI_TRACKER_ROOM - t->n) {
        t->dropped++;
    } else {
        for (int i = 0; i < n; i++) {
            memcpy(t->waiting + t->n, pieces[i], strlen(pieces[i]));
            t->n += strlen(pieces[i]);
        }
    }
    pthread_cond_signal(&t->changed);
    pthread_mutex_unlock(&t->mu);
}

void tti_tracker_add(tti_tracker *t, double time, const char *object)
{
    char head[48];
    snprintf(head, sizeof(head), "{\"time\": %.6f, ", time);
    add_pieces(t, (const char *const[]){head, object, "\n"}, 3);
}

void tti_tracker_keys(tti_tracker *t, double time, const tt_pair *pairs, int n)
{
    tti_text text = {0}; // of no context: what is lost here is no error
    tti_text_add(&text, "\"event\": \"keys\", \"keys\": {");
    for (int i = 0; i < n; i++) {
        tti_text_add(&text, i > 0 ? ", " : "");
        tti_text_json(&text, pairs[i].name);
        tti_text_add(&text, ": ");
        if (pairs[i].text != NULL)
            tti_text_json(&text, pairs[i].text);
        else
            tti_text_add(&text, "%.17g", pairs[i].number);
    }
    tti_text_add(&text, "}}");
    char *s = tti_text_take(&text);
    if (s != NULL)
        tti_tracker_add(t, time, s);
    tti_free(NULL, s);
}

// ---- requests --------------------------------------------------------------------------------

int tti_tracker_ask(tti_tracker *t, const char *path, json_t *body, json_t **answer,
                    char why[TTI_HTTP_WHY])
{
    char *text = body != NULL ? json_dumps(body, JSON_COMPACT) : NULL, *got = NULL;
    const char *name = t->kind == TTI_TRACKER_MLFLOW ? "MLFLOW_TRACKING_TOKEN" : "TUTTI_HTTP_TOKEN";
    const char *token = tti_env(name);
    int status = 0;
    if (body != NULL && text == NULL)
        snprintf(why, TTI_HTTP_WHY, "out of memory");
    else
        status = tti_http_send(&(tti_http){.url = &t->url,
                                           .path = path,
                                           .body = text,
                                           .token = token,
                                           .until_ns = &t->until_ns},
                               &got, why);
    if (answer != NULL)
        *answer = got != NULL ? json_loads(got, 0, NULL) : NULL;
    t->is_refused = status >= 400 && status < 500 && status != 408 && status != 429;
    free(text); // json_dumps()'s
    tti_free(NULL, got);
    return status;
}

// {"job": "digits", "run": "digits-001", "events": [...]}
static int send_json(tti_tracker *t, json_t *events, char why[TTI_HTTP_WHY])
{
    json_t *body = json_pack("{s:s, s:s, s:s, s:O}", "job", t->name, "run", t->run, "folder",
                             t->folder, "events", events);
    int status = tti_tracker_ask(t, NULL, body, NULL, why);
    json_decref(body);
    return status;
}

// What was taken, as an array.
static json_t *events_of(const char *lines, size_t n)
{
    json_t *all = json_array();
    for (const char *s = lines, *end = lines + n; s < end;) {
        const char *next = memchr(s, '\n', (size_t)(end - s));
        size_t length = next != NULL ? (size_t)(next - s) : (size_t)(end - s);
        json_t *one = json_loadb(s, length, 0, NULL);
        if (one != NULL)
            json_array_append_new(all, one);
        s += length + 1;
    }
    return all;
}

static bool send_lines(tti_tracker *t, const char *lines, size_t n, char why[TTI_HTTP_WHY])
{
    json_t *events = events_of(lines, n);
    bool is_sent;
    if (t->kind == TTI_TRACKER_MLFLOW) {
        is_sent = tti_mlflow_send(t, events, why);
    } else {
        int status = send_json(t, events, why);
        is_sent = status >= 200 && status < 300;
    }
    json_decref(events);
    return is_sent;
}

// ---- the thread ------------------------------------------------------------------------------

void tti_tracker_warn(tti_tracker *t, const char *why)
{
    if (t->is_warned)
        return;
    t->is_warned = true;
    TT_LOG(t->ctx, TT_WARN, "%s: %s; training continues, and the run's folder has all values",
           t->key, why);
}

// Until something may be done: an event, the end, or ms have passed. Under mu.
static void wait_ms(tti_tracker *t, int64_t ms, bool for_events)
{
    int64_t end = tti_deadline(ms);
    while (!t->is_over && !(for_events && t->n > 0)) {
        int64_t left = end - tti_now_ns();
        if (left <= 0)
            return;
        struct timespec until;
        clock_gettime(CLOCK_MONOTONIC, &until);
        until.tv_sec += left / 1000000000;
        until.tv_nsec += left % 1000000000;
        until.tv_sec += until.tv_nsec / 1000000000;
        until.tv_nsec %= 1000000000;
        pthread_cond_timedwait(&t->changed, &t->mu, &until);
    }
}

static bool is_over(tti_tracker *t)
{
    pthread_mutex_lock(&t->mu);
    bool over = t->is_over;
    pthread_mutex_unlock(&t->mu);
    return over;
}

// Tries until the server has the lines, or refuses them; false: the end came first.
static bool deliver(tti_tracker *t, size_t n)
{
    char why[TTI_HTTP_WHY];
    for (int64_t pause = EVERY_MS;; pause = TTI_MIN(2 * pause, MOST_MS)) {
        bool is_last = is_over(t);
        if (send_lines(t, t->taken, n, why))
            return true;
        tti_tracker_warn(t, why);
        pthread_mutex_lock(&t->mu);
        for (size_t i = 0; (t->is_refused || is_last) && i < n; i++)
            t->dropped += t->taken[i] == '\n';
        if (!t->is_refused && !is_last)
            wait_ms(t, pause, false);
        pthread_mutex_unlock(&t->mu);
        if (t->is_refused || is_last)
            return t->is_refused;
    }
}

static void run(void *arg)
{
    tti_tracker *t = arg;
    char why[TTI_HTTP_WHY];
    bool is_taken = true, is_last = false;
    while (is_taken && !is_last) {
        pthread_mutex_lock(&t->mu);
        while (!t->is_over && t->n == 0)
            wait_ms(t, MOST_MS, true);
        wait_ms(t, EVERY_MS, false); // more may come
        char *lines = t->waiting;
        size_t n = t->n;
        t->waiting = t->taken;
        t->taken = lines;
        t->n = 0;
        is_last = t->is_over;
        pthread_mutex_unlock(&t->mu);
        if (n > 0)
            is_taken = deliver(t, n);
    }
    if (is_taken && t->kind == TTI_TRACKER_MLFLOW && !tti_mlflow_end(t, why))
        tti_tracker_warn(t, why);
}

// ---- opening and closing ---------------------------------------------------------------------

static void tracker_free(tti_tracker *t)
{
    pthread_cond_destroy(&t->changed);
    pthread_mutex_destroy(&t->mu);
    tti_free(t->ctx, t->waiting);
    tti_free(t->ctx, t->taken);
    tti_free(t->ctx, t);
}

tt_status tti_tracker_open(tt_ctx *ctx, tti_tracker_kind kind, const char *url, const char *folder,
                           const char *name, tti_tracker **out)
{
    tti_tracker *t = tti_calloc(ctx, 1, sizeof(*t));
    pthread_condattr_t attr;
    if (t == NULL)
        return TT_ENOMEM;
    const char *slash = strrchr(folder, '/');
    t->ctx = ctx;
    t->kind = kind;
    t->key = kind == TTI_TRACKER_MLFLOW ? "output.mlflow" : "output.http";
    snprintf(t->folder, sizeof(t->folder), "%s", folder);
    snprintf(t->run, sizeof(t->run), "%.255s", slash != NULL ? slash + 1 : folder);
    snprintf(t->name, sizeof(t->name), "%.255s", name[0] != '\0' ? name : "run");
    snprintf(t->status, sizeof(t->status), "FAILED"); // until the run says that it has ended
    atomic_store(&t->until_ns, TTI_FOREVER);
    pthread_mutex_init(&t->mu, NULL);
    pthread_condattr_init(&attr);
    pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
    pthread_cond_init(&t->changed, &attr);
    pthread_condattr_destroy(&attr);
    tt_status st = tti_url_read(ctx, t->key, url, &t->url);
    if (st == TT_OK) {
        t->waiting = tti_alloc(ctx, TTI_TRACKER_ROOM);
        t->taken = tti_alloc(ctx, TTI_TRACKER_ROOM);
        st = t->waiting != NULL && t->taken != NULL ? TT_OK : TT_ENOMEM;
    }
    if (st == TT_OK)
        st = tti_thread_start(ctx, &t->thread, "tutti-tracker", run, t);
    if (st != TT_OK) {
        tracker_free(t);
        return st;
    }
    *out = t;
    return TT_OK;
}

void tti_tracker_close(tti_tracker *t)
{
    if (t == NULL)
        return;
    atomic_store(&t->until_ns, tti_deadline(CLOSE_MS));
    pthread_mutex_lock(&t->mu);
    t->is_over = true;
    pthread_cond_signal(&t->changed);
    pthread_mutex_unlock(&t->mu);
    tti_thread_join(&t->thread);
    if (t->dropped > 0)
        TT_LOG(t->ctx, t->is_warned ? TT_INFO : TT_WARN, // one warning is enough
               "%s: %lld events were not sent: the server was down or too slow; the run's folder "
               "has them",
               t->key, (long long)t->dropped);
    tracker_free(t);
}
