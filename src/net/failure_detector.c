/*
 * failure_detector.c - who is lost, and one report of it for all.
 *
 * Every rank tells every other a few times a second what it is doing. One that is silent too long,
 * or whose process on this host has ended, is suspected. All tell their suspicion to the lowest
 * rank they still hear, which alone writes the report and sends it to all: so the cause is one.
 * Should it not answer, the next one does. A rank that fails by itself tells its error the same
 * way.
 */
#include "net/timeout.h"
#include "net/world_own.h"
#include <poll.h>
#include <stdio.h>
#include <string.h>

#define MS         INT64_C(1000000)
#define VERDICT_MS 1000 // until the rank that writes reports has answered

void tti_world_tell(tti_world *w, int to, tti_control_message *n)
{
    n->magic = TTI_WIRE_MAGIC;
    n->incarnation = w->incarnation;
    n->taken = w->peers[to].n_in;
    w->peers[to].n_told = n->taken;
    size_t bytes = offsetof(tti_control_message, text) + strnlen(n->text, sizeof(n->text) - 1) + 1;
    tti_wire_tell(w->wire, to, n, bytes);
}

void tti_world_tell_all(tti_world *w, tti_control_message *n)
{
    for (int i = 0; i < w->n; i++)
        if (i != w->self && !w->peers[i].has_left)
            tti_world_tell(w, i, n);
}

// ---- failing ---------------------------------------------------------------------------------

void tti_world_set_failed(tti_world *w, tt_status st, const char *text)
{
    if (atomic_load(&w->has_failed) || atomic_load(&w->is_leaving)) // this rank's part is done
        return;
    if (text[0] == '\0')
        text = "a rank ended the job without saying why";
    (void)TT_FAIL(w->ctx, st, "%s", text); // before anyone sees that it has failed
    pthread_mutex_lock(&w->mu);
    atomic_store(&w->has_failed, true);
    pthread_cond_broadcast(&w->changed);
    if (w->on_fail != NULL) // under the lock: once taken back, it is not running
        w->on_fail(w->on_fail_user);
    pthread_mutex_unlock(&w->mu);
}

static void note_lost(tti_world *w, int lost, int64_t silent_ms)
{
    pthread_mutex_lock(&w->mu);
    if (!atomic_load(&w->has_failed)) {
        w->lost = lost;
        w->lost_silent_ms = silent_ms;
    }
    pthread_mutex_unlock(&w->mu);
}

int tti_world_lost(tti_world *w, int64_t *silent_ms)
{
    if (w == NULL || !atomic_load(&w->has_failed))
        return -1;
    pthread_mutex_lock(&w->mu);
    int lost = w->lost - 1;
    *silent_ms = w->lost_silent_ms;
    pthread_mutex_unlock(&w->mu);
    return lost < w->n ? lost : -1;
}

// lost: who is lost or stuck, + 1; 0: nobody.
static void give_verdict(tti_world *w, tt_status st, const char *text, int lost, int64_t silent_ms)
{
    tti_control_message n = {
        .kind = TTI_VERDICT, .status = (int32_t)st, .rank = lost, .silent_ms = silent_ms};
    note_lost(w, lost, silent_ms);
    snprintf(n.text, sizeof(n.text), "%s", text);
    tti_world_tell_all(w, &n);
    tti_world_set_failed(w, st, n.text);
}

// The lowest rank that can be asked; this one if no other is.
static int judge(tti_world *w)
{
    int i = 0;
    while (i != w->self && (w->peers[i].has_left || w->peers[i].is_suspect))
        i++;
    return i;
}

static void condemn(tti_world *w, int lost, int64_t silent_ms, int by)
{
    char text[TTI_MESSAGE_MAX];
    size_t n = tti_print_rank(w, text, sizeof(text), lost);
    const tti_peer *p = &w->peers[lost];
    bool hears =
        lost != w->self && !p->is_suspect && tti_now_ns() - p->heard_ns < w->loss_ms * MS / 2;
    if (p->died_ns != 0)
        n += (size_t)snprintf(text + n, sizeof(text) - n, " has died; it was ");
    else if (hears)
        n += (size_t)snprintf(text + n, sizeof(text) - n,
                              " has sent no heartbeat to rank %d for %.1f s, though rank %d "
                              "receives them: the link between them is lost; it was ",
                              by, 1e-3 * (double)silent_ms, w->self);
    else
        n += (size_t)snprintf(
            text + n, sizeof(text) - n,
            ": no heartbeat for %.1f s: it hangs, has died, or its link is lost; it was ",
            1e-3 * (double)silent_ms);
    tti_doing d = tti_doing_of(w, lost);
    n += tti_print_doing(text + n, sizeof(text) - n, &d);
    tti_print_others(w, text + n, sizeof(text) - n, lost);
    give_verdict(w, TT_EPEER, text, lost + 1, silent_ms);
}

static void suspect(tti_world *w, int lost, int64_t silent_ms, int64_t now)
{
    w->peers[lost].is_suspect = true;
    if (w->suspect < 0) {
        w->suspect = lost;
        w->suspect_silent_ms = silent_ms;
    }
    int who = judge(w);
    if (who == w->self) {
        condemn(w, w->suspect, w->suspect_silent_ms, w->self);
        return;
    }
    tti_control_message n = {
        .kind = TTI_SUSPECT, .rank = w->suspect, .silent_ms = w->suspect_silent_ms};
    n.status = w->peers[w->suspect].died_ns != 0;
    tti_world_tell(w, who, &n);
    w->verdict_by = now + 250 * MS;
}

static void fail(tti_world *w, tt_status st, const char *message, int stuck)
{
    if (w == NULL || w->wire == NULL) // alone
        return;
    pthread_mutex_lock(&w->mu);
    bool first = !w->wants_fail && !w->has_told && !atomic_load(&w->has_failed);
    if (first) {
        w->fail_status = st;
        snprintf(w->fail_text, sizeof(w->fail_text), "%s", message);
        w->fail_rank = stuck;
        w->wants_fail = true;
    }
    pthread_mutex_unlock(&w->mu);
    if (first)
        tti_wire_wake(w->wire);
}

void tti_world_fail(tti_world *w, tt_status st, const char *message)
{
    fail(w, st, message, 0);
}

void tti_world_fail_with(tt_ctx *ctx, tt_status st)
{
    tt_error e = tt_last_error(ctx);
    tti_world_fail(ctx->world, e.status != TT_OK ? e.status : st, e.message);
}

tt_status tti_world_stuck(tti_world *w, int rank, const char *what, int64_t wait_ms)
{
    char text[TTI_MESSAGE_MAX], why[160];
    int last = rank;
    for (int hops = 0; hops < w->n; hops++) { // who waits for whom
        int next = tti_doing_of(w, last).waits_for - 1;
        if (next < 0 || next >= w->n || next == w->self || next == last)
            break;
        last = next;
    }
    wait_ms = TTI_MAX(wait_ms, 3 * w->heartbeat_ms);
    size_t n = tti_print_rank(w, text, sizeof(text), last);
    snprintf(why, sizeof(why), " has made no progress for %.1f s (deadline_ms); it was ",
             1e-3 * (double)wait_ms);
    n += (size_t)snprintf(text + n, sizeof(text) - n, "%s", why);
    tti_doing d = tti_doing_of(w, last);
    n += tti_print_doing(text + n, sizeof(text) - n, &d);
    n += (size_t)snprintf(text + n, sizeof(text) - n, "; rank %d waits for %s%srank %d", w->self,
                          what != NULL ? what : "", what != NULL ? " of " : "", rank);
    tti_print_others(w, text + TTI_MIN(n, sizeof(text) - 1),
                     sizeof(text) - TTI_MIN(n, sizeof(text) - 1), last);
    // All have waited for the same: one of their reports is everybody's.
    fail(w, TT_ETIMEOUT, text, last + 1);
    int64_t deadline = tti_deadline(VERDICT_MS);
    pthread_mutex_lock(&w->mu);
    while (!atomic_load(&w->has_failed) && tti_world_wait(w, deadline))
        ;
    pthread_mutex_unlock(&w->mu);
    (void)TT_FAIL(w->ctx, TT_ETIMEOUT, "%s", text); // there was no answer
    return tt_status_of(w->ctx);
}

tt_status tti_world_late(tti_world *w, int rank, const char *what, int64_t wait_ms)
{
    char text[192];
    int64_t every_ms =
        w->heartbeat_ms * TTI_MAX(w->n / 8, 1); // how often each says that it is there
    int64_t now = tti_now_ns(), longest = TTI_MAX(w->loss_ms, 3 * every_ms) * MS;
    int silent = -1;
    pthread_mutex_lock(&w->mu);
    for (int i = 0; i < w->n; i++)
        if (i != w->self && !w->peers[i].has_left && now - w->peers[i].heard_ns > longest) {
            longest = now - w->peers[i].heard_ns;
            silent = i;
        }
    pthread_mutex_unlock(&w->mu);
    (void)tti_print_rank(w, text, sizeof(text), silent >= 0 ? silent : rank);
    if (silent < 0)
        return TT_FAIL(w->ctx, TT_ETIMEOUT, "%s: no message from %s within %lld ms", what, text,
                       (long long)wait_ms);
    return TT_FAIL(w->ctx, TT_EPEER,
                   "%s: no heartbeat for %.1f s: it hangs, has died, or its link is lost; rank %d "
                   "waited for rank %d in %s while the job started",
                   text, 1e-9 * (double)longest, w->self, rank, what);
}

tt_status tti_world_status(tti_world *w)
{
    return w != NULL && atomic_load(&w->has_failed) ? tt_status_of(w->ctx) : TT_OK;
}

void tti_world_on_fail(tti_world *w, tti_world_fail_fn fn, void *user)
{
    pthread_mutex_lock(&w->mu);
    w->on_fail = fn;
    w->on_fail_user = user;
    if (fn != NULL && atomic_load(&w->has_failed))
        fn(user);
    pthread_mutex_unlock(&w->mu);
}

// stuck: whom it failed of, + 1; 0: of itself.
static void condemn_failing(tti_world *w, int rank, tt_status st, const char *text, int stuck)
{
    char all[TTI_MESSAGE_MAX];
    bool names_one = strncmp(text, "rank ", 5) == 0; // the culprit is another one
    size_t n = names_one ? 0 : tti_print_rank(w, all, sizeof(all), rank);
    snprintf(all + n, sizeof(all) - n, "%s%s", names_one ? "" : ": ", text);
    give_verdict(w, st, all, stuck, 0);
}

static void tell_own_failure(tti_world *w, int64_t now)
{
    tti_control_message n = {.kind = TTI_FAILING};
    pthread_mutex_lock(&w->mu);
    bool wants = w->wants_fail && !w->has_told;
    w->has_told |= wants;
    n.status = (int32_t)w->fail_status;
    n.rank = w->fail_rank;
    memcpy(n.text, w->fail_text, sizeof(n.text));
    pthread_mutex_unlock(&w->mu);
    if (!wants)
        return;
    int who = judge(w);
    if (who == w->self) {
        condemn_failing(w, w->self, (tt_status)n.status, n.text, n.rank);
        return;
    }
    tti_world_tell(w, who, &n);
    w->verdict_by = now + 250 * MS;
}

// ---- the world's thread ----------------------------------------------------------------------

// What a rank says it fails with; not being well is no success.
static tt_status status_of(const tti_control_message *n)
{
    switch (n->status) {
#define KNOWN(code, value, text) \
    case value:                  \
        return code == TT_OK ? TT_EPEER : code;
        TT_STATUS_LIST(KNOWN)
#undef KNOWN
    default:
        return TT_EPEER;
    }
}

void tti_failure_note(tti_world *w, int from, const tti_control_message *n)
{
    tti_peer *p = &w->peers[from];
    bool had_failed = atomic_load(&w->has_failed);
    switch (n->kind) {
    case TTI_BEAT:
        atomic_store_explicit(&p->progress, n->doing.progress, memory_order_relaxed);
        atomic_store_explicit(&p->cpu_ms, n->doing.cpu_ms, memory_order_relaxed);
        pthread_mutex_lock(&w->mu);
        p->doing = n->doing;
        p->doing.operation[sizeof(p->doing.operation) - 1] = '\0';
        p->doing.tensor[sizeof(p->doing.tensor) - 1] = '\0';
        pthread_mutex_unlock(&w->mu);
        break;
    case TTI_ASK:
        p->is_asking = true;
        tti_world_tell(w, from, &(tti_control_message){.kind = TTI_TAKEN});
        break;
    case TTI_SUSPECT:
        if (n->rank < 0 || n->rank >= w->n || had_failed)
            break; // the verdict is on its way
        if (n->status != 0 && n->rank != w->self)
            w->peers[n->rank].died_ns = tti_now_ns();
        condemn(w, n->rank, n->silent_ms, from);
        break;
    case TTI_FAILING:
        if (!had_failed)
            condemn_failing(w, from, status_of(n), n->text, n->rank);
        break;
    case TTI_VERDICT:
        if (had_failed)
            break;
        note_lost(w, n->rank, n->silent_ms);
        tti_world_set_failed(w, status_of(n), n->text);
        break;
    default:
        break;
    }
}

static void watch_process(tti_peer *p, int64_t now)
{
    struct pollfd f = {.fd = p->pid_fd, .events = POLLIN};
    if (p->pid_fd >= 0 && p->died_ns == 0 && poll(&f, 1, 0) == 1)
        p->died_ns = now;
}

// This rank has done its part and waits only for others to know that it leaves: who has ended will
// not.
static void leave_without(tti_world *w, tti_peer *p)
{
    pthread_mutex_lock(&w->mu);
    if (p->died_ns != 0 && !p->has_left) {
        p->has_left = true;
        pthread_cond_broadcast(&w->changed);
    }
    pthread_mutex_unlock(&w->mu);
}

static void watch(tti_world *w, int i, int64_t now)
{
    tti_peer *p = &w->peers[i];
    if (i == w->self || p->has_left || p->is_suspect)
        return;
    watch_process(p, now);
    if (atomic_load(&w->is_leaving)) {
        leave_without(w, p);
        return;
    }
    pthread_mutex_lock(&w->mu);
    int64_t silent = (now - p->heard_ns) / MS;
    pthread_mutex_unlock(&w->mu);
    if (p->died_ns != 0 && now - p->died_ns > 100 * MS) // its goodbye may still be on its way
        suspect(w, i, silent, now);
    else if (silent > w->loss_ms - w->heartbeat_ms)
        suspect(w, i, silent, now);
}

void tti_failure_tick(tti_world *w, int64_t now)
{
    // What this process slept through says nothing of the others.
    int64_t asleep = w->looked_ns != 0 ? now - w->looked_ns - 2 * w->heartbeat_ms * MS : 0;
    if (asleep > 0)
        for (int i = 0; i < w->n; i++)
            w->peers[i].heard_ns += asleep;
    w->looked_ns = now;
    if (now - w->beat_ns >= w->heartbeat_ms * MS) {
        tti_control_message n = {.kind = TTI_BEAT, .doing = tti_doing_own(w)};
        tti_world_tell_all(w, &n);
        w->beat_ns = now;
    }
    if (atomic_load(&w->has_failed))
        return;
    tell_own_failure(w, now);
    for (int i = 0; i < w->n && !atomic_load(&w->has_failed); i++)
        watch(w, i, now);
    if (w->verdict_by != 0 && now > w->verdict_by && !atomic_load(&w->has_failed)) {
        w->verdict_by = 0;
        int who = judge(w); // it does not answer
        if (w->suspect >= 0) {
            suspect(w, who == w->self ? w->suspect : who, w->suspect_silent_ms, now);
        } else { // this process's own failure
            w->peers[who].is_suspect = true;
            w->has_told = false;
        }
    }
}
