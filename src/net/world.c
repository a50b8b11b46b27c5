/*
 * world.c - the life of a world: ranks meet, test their links, part. Its thread takes messages and
 * watches (failure_detector.c); callers wait for what it brings.
 *
 * To meet, every rank says hello to every other, again and again until all are there; with all
 * hellos everyone compares them by itself and comes to the same result.
 */
#include "net/world.h"
#include "net/world_own.h"
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define MS INT64_C(1000000)

int tti_world_self(const tti_world *w)
{
    return w->self;
}

int tti_world_size(const tti_world *w)
{
    return w->n;
}

uint32_t tti_world_count(const tti_world *w)
{
    return w->all.count;
}

const tti_rank *tti_world_rank(const tti_world *w, int rank)
{
    return rank >= 0 && rank < w->n ? &w->peers[rank].rank : NULL;
}

bool tti_world_wait(tti_world *w, int64_t deadline_ns)
{
    int64_t now = tti_now_ns(), until = TTI_MIN(deadline_ns, now + 100 * MS);
    if (now >= deadline_ns)
        return false;
    struct timespec ts = {.tv_sec = (time_t)(until / 1000000000),
                          .tv_nsec = (long)(until % 1000000000)};
    (void)pthread_cond_timedwait(&w->changed, &w->mu, &ts);
    return true;
}

bool tti_world_is_asked(const tti_world *w)
{
    // A signal handler sets it, or another thread.
    return w->stop != NULL && __atomic_load_n(w->stop, __ATOMIC_RELAXED) != 0;
}

// ---- the thread ------------------------------------------------------------------------------

static void end_texts(tti_hello *h)
{
    h->version[sizeof(h->version) - 1] = h->name[sizeof(h->name) - 1] = '\0';
    h->host[sizeof(h->host) - 1] = h->boot[sizeof(h->boot) - 1] = '\0';
    h->devices[sizeof(h->devices) - 1] = h->transport[sizeof(h->transport) - 1] = '\0';
    h->job_text[sizeof(h->job_text) - 1] = '\0';
}

// A second process that says it is that rank is refused: the first one stays.
static void take_hello(tti_world *w, int from, const void *message, size_t bytes)
{
    tti_peer *p = &w->peers[from];
    tti_hello h = {.magic = 0};
    memcpy(&h, message, TTI_MIN(bytes, sizeof(h)));
    end_texts(&h);
    bool twice = p->has_hello && p->hello.incarnation != h.incarnation;
    if (twice) {
        tti_control_message no = {
            .magic = TTI_WIRE_MAGIC, .kind = TTI_REFUSED, .incarnation = w->incarnation};
        snprintf(no.text, sizeof(no.text),
                 "rank %d (%s) was started twice: rank %d is connected to process %d of host %s, "
                 "and process %d of host %s came later",
                 from, p->rank.name, w->self, p->hello.pid, p->hello.host, h.pid, h.host);
        tti_wire_answer(w->wire, &no, sizeof(no));
        TT_LOG(w->ctx, TT_WARN, "%s; the second is refused", no.text);
        return;
    }
    pthread_mutex_lock(&w->mu);
    if (!p->has_hello)
        p->hello = h;
    p->has_hello = true;
    p->heard_ns = tti_now_ns();
    pthread_cond_broadcast(&w->changed);
    pthread_mutex_unlock(&w->mu);
}

void tti_world_take(void *world, int from, const void *message, size_t bytes)
{
    tti_world *w = world;
    tti_peer *p = &w->peers[from];
    tti_control_message n = {.magic = 0};
    memcpy(&n, message, TTI_MIN(bytes, sizeof(n)));
    n.text[sizeof(n.text) - 1] = '\0';
    if (bytes >= 2 * sizeof(uint32_t) && n.kind == TTI_HELLO) {
        take_hello(w, from, message, bytes);
    } else if (n.magic == TTI_WIRE_MAGIC && n.kind == TTI_REFUSED) {
        pthread_mutex_lock(&w->mu);
        memcpy(w->refused, n.text, sizeof(w->refused));
        pthread_cond_broadcast(&w->changed);
        pthread_mutex_unlock(&w->mu);
    } else if (n.magic == TTI_WIRE_MAGIC && p->has_hello && n.incarnation == p->hello.incarnation) {
        pthread_mutex_lock(&w->mu);
        p->heard_ns = tti_now_ns();
        tti_wire_taken(w->wire, from, n.taken);
        if (n.kind == TTI_BYE) {
            p->has_left = true;
            p->n_left = (uint32_t)n.silent_ms;
        }
        p->has_met |= n.kind == TTI_MET;
        p->knows_leaving |= n.kind == TTI_BYE_TAKEN;
        pthread_cond_broadcast(&w->changed);
        pthread_mutex_unlock(&w->mu);
        if (n.kind == TTI_BYE)
            tti_world_tell(w, from, &(tti_control_message){.kind = TTI_BYE_TAKEN});
        tti_failure_note(w, from, &n);
    }
}

// Everybody's links are tested: from here on silence is loss.
static void begin(tti_world *w)
{
    pthread_mutex_lock(&w->mu);
    for (int i = 0; i < w->n; i++)
        w->peers[i].heard_ns = tti_now_ns();
    pthread_mutex_unlock(&w->mu);
    tti_hello *own = &w->peers[w->self].hello; // said no more
    explicit_bzero(own->data_key, sizeof(own->data_key));
    tti_wire_met(w->wire);
    w->is_open = true;
}

// And that all hellos are here, as soon as they are. Who has met has the hello, but must go on
// hearing from this rank: who falls silent is taken for frozen. Of many processes each says it less
// often: all together they would be busy with nothing else.
static void say_hello(tti_world *w, int64_t now)
{
    int64_t every_ms = w->heartbeat_ms * TTI_MAX(w->n / 8, 1);
    bool has_all = true, is_time = now - w->beat_ns >= every_ms * MS;
    for (int i = 0; i < w->n; i++)
        has_all = has_all && (i == w->self || w->peers[i].has_hello);
    for (int i = 0; i < w->n; i++) {
        tti_control_message met = {.kind = TTI_MET}, beat = {.kind = TTI_BEAT};
        if (i == w->self)
            continue;
        if (is_time && !w->peers[i].has_met)
            tti_wire_tell(w->wire, i, &w->peers[w->self].hello, sizeof(tti_hello));
        if (has_all && (is_time || !w->has_all))
            tti_world_tell(w, i, &met);
        else if (is_time && w->peers[i].has_met)
            tti_world_tell(w, i, &beat);
    }
    w->has_all = has_all;
    w->beat_ns = is_time ? now : w->beat_ns;
}

static void serve(void *arg)
{
    tti_world *w = arg;
    tti_wire_calls calls = {tti_world_take, tti_messages_take, w};
    int tick_ms = (int)TTI_MAX(TTI_MIN(w->heartbeat_ms / 4, (int64_t)50), (int64_t)1);
    while (!atomic_load(&w->is_stopping)) {
        if (!w->is_open && atomic_load(&w->wants_open))
            begin(w);
        if (!w->is_open && tti_world_is_asked(w)) // every wait ends with that
            tti_world_set_failed(w, TT_ESTOP,
                                 "stopped on request while waiting for other processes");
        if (w->is_open)
            tti_failure_tick(w, tti_now_ns());
        else
            say_hello(w, tti_now_ns());
        tti_wire_serve(w->wire, tick_ms, &calls);
    }
}

// ---- rendezvous ------------------------------------------------------------------------------

static bool has(const tti_peer *p, bool met)
{
    return met ? p->has_met : p->has_hello;
}

static tt_status missing(tti_world *w, int rank)
{
    const tti_peer *p = &w->peers[rank];
    int64_t s = w->rendezvous_ms;
    tti_wire_state state = tti_wire_state_of(w->wire, rank);
    int refused = tti_wire_refused(w->wire);
    char more[96] = "";
    if (refused > 0)
        snprintf(more, sizeof(more), "; %d connections without a key of this job were refused",
                 refused);
    if (state == TTI_WIRE_SILENT)
        return TT_FAIL(w->ctx, TT_EPEER,
                       "rank %d (%s) does not answer at %s within %lld ms: it was not started, or "
                       "listens elsewhere%s",
                       rank, p->rank.name, p->address, (long long)s, more);
    if (state == TTI_WIRE_ANSWERS)
        return TT_FAIL(w->ctx, TT_EPEER,
                       "rank %d (%s) listens at %s, but has not answered within %lld ms: it hangs, "
                       "is stopped, or is another program%s",
                       rank, p->rank.name, p->address, (long long)s, more);
    if (state == TTI_WIRE_REFUSES)
        return TT_FAIL(w->ctx, TT_EPEER,
                       "the program that answers at %s is not rank %d (%s) of this job: it has "
                       "another secret, or is another program (waited %lld ms)%s",
                       p->address, rank, p->rank.name, (long long)s, more);
    return TT_FAIL(
        w->ctx, TT_EPEER,
        "rank %d (%s) at %s is running, but has not completed the handshake within %lld ms: it "
        "hangs, or is stopped%s",
        rank, p->rank.name, p->address, (long long)s, more);
}

/*
 * Whom all wait for: not heard of, or the longest time ago. It may be none of those that are
 * missing here: who froze after it met this rank, but no other, keeps the others from having met.
 */
static int most_missing(tti_world *w, bool met)
{
    int worst = -1;
    int64_t longest = -1, now = tti_now_ns();
    int64_t heard = 3 * w->heartbeat_ms * TTI_MAX(w->n / 8, 1) * MS;
    for (int i = 0; i < w->n; i++) {
        const tti_peer *p = &w->peers[i];
        if (i == w->self || (has(p, met) && now - p->heard_ns < heard))
            continue;
        bool is_ready = tti_wire_state_of(w->wire, i) == TTI_WIRE_READY;
        int64_t silent = p->has_hello ? now - p->heard_ns : INT64_MAX - is_ready;
        if (silent > longest) {
            longest = silent;
            worst = i;
        }
    }
    return worst;
}

// Waits for the hellos of all, or for all having those; with mu held. The first rank that is
// missing, or -1.
static int await_all(tti_world *w, bool met, int64_t deadline)
{
    for (;;) {
        int rank = 0;
        while (rank < w->n && (rank == w->self || has(&w->peers[rank], met)))
            rank++;
        if (rank == w->n)
            return -1;
        if (w->refused[0] != '\0' || atomic_load(&w->has_failed) || !tti_world_wait(w, deadline))
            return rank;
    }
}

static tt_status await_step(tti_world *w, bool met, int64_t deadline)
{
    char refused[TTI_MESSAGE_MAX];
    pthread_mutex_lock(&w->mu);
    int rank = await_all(w, met, deadline);
    if (rank >= 0)
        rank = most_missing(w, met);
    memcpy(refused, w->refused, sizeof(refused));
    pthread_mutex_unlock(&w->mu);
    if (refused[0] != '\0')
        return TT_FAIL(w->ctx, TT_EINVAL, "%s", refused);
    if (atomic_load(&w->has_failed))
        return tt_status_of(w->ctx);
    return rank < 0 ? TT_OK : missing(w, rank);
}

static tt_status rendezvous(tti_world *w)
{
    int64_t deadline = tti_deadline(w->rendezvous_ms);
    for (int i = 0; i < w->n; i++) {
        if (i == w->self)
            continue;
        TT_TRY(tti_wire_connect(w->wire, i, w->peers[i].address));
    }
    TT_TRY(tti_thread_start(w->ctx, &w->thread, "tutti-world", serve, w));
    TT_TRY(await_step(w, false, deadline));
    TT_TRY(tti_hello_check_all(w));
    TT_TRY(
        await_step(w, true, deadline)); // only then messages can be sent: all know whose they are
    for (int i = 0; i < w->n; i++) {    // where its address is, at the port that its hello tells
        char at[192];
        snprintf(at, sizeof(at), "%s", w->peers[i].address);
        char *colon = strrchr(at, ':');
        if (i == w->self || colon == NULL)
            continue;
        snprintf(colon, 8, ":%d", (int)(uint16_t)w->peers[i].hello.data_port);
        uint8_t *key = w->peers[i].hello.data_key;
        tt_status st = tti_wire_connect_data(w->wire, i, at, key);
        explicit_bzero(key, TT_SECRET_BYTES);
        TT_TRY(st);
    }
    return TT_OK;
}

static tt_status compare_incarnations(tti_world *w)
{
    size_t n = (size_t)w->n;
    uint64_t *mine = tti_calloc(w->ctx, n * (n + 1), sizeof(*mine)), *all = mine + n;
    if (mine == NULL)
        return TT_ENOMEM;
    for (int i = 0; i < w->n; i++)
        mine[i] = w->peers[i].hello.incarnation;
    tt_status st = tti_world_exchange(w, "meeting", mine, n * sizeof(*mine), all, w->rendezvous_ms);
    for (int i = 0; i < w->n; i++)
        for (int k = 0; st == TT_OK && k < w->n; k++)
            if (all[i * w->n + k] != mine[k])
                st = TT_FAIL(w->ctx, TT_EPEER,
                             "rank %d (%s) was started twice: rank %d and rank %d are connected "
                             "to different processes",
                             k, w->peers[k].rank.name, i, w->self);
    tti_free(w->ctx, mine);
    return st;
}

// All have met when all say so: nobody is still about to find a difference, or a second process.
static tt_status agree(tti_world *w, tti_segment *probes)
{
    TT_TRY(compare_incarnations(w));
    TT_TRY(tti_links_shm(w, probes));
    TT_TRY(tti_links_test(w, probes));
    return tti_world_exchange(w, "self-test", NULL, 0, NULL, w->rendezvous_ms);
}

static tt_status open_world(tti_world *w, const tt_tasks *tasks, const char *devices)
{
    char bind[192] = "";
    TT_TRY(tti_tasks_read(w, tasks, bind, sizeof(bind)));
    if (w->n == 1) {
        w->peers[0].rank.shares_memory = true;
        w->peers[0].rank.pid = getpid();
        return TT_OK;
    }
    TT_TRY(tti_wire_open(
        w->ctx, &(tti_wire_opts){w->n, w->self, bind, tasks->secret, w->no_encryption}, &w->wire));
    TT_TRY(tti_segment_new(w->ctx, tti_probe_bytes(), &w->probe));
    tti_probe_init(w);
    TT_TRY(tti_hello_make(w, tasks, devices));
    TT_TRY(rendezvous(w));
    tti_segment probes[TT_MAX_TASKS] = {{.at = NULL}};
    tt_status st = agree(w, probes);
    for (int i = 0; i < w->n; i++)
        tti_segment_free(&probes[i]);
    TT_TRY(st);
    atomic_store(&w->wants_open, true); // the thread watches for loss from its next round on
    tti_wire_wake(w->wire);
    return TT_OK;
}

tt_status tti_world_open(tt_ctx *ctx, const tt_tasks *tasks, const char *devices, tti_world **out)
{
    int n = TTI_MAX(1, TTI_MIN(tasks->n, TT_MAX_TASKS)); // others are refused below
    tti_world *w = tti_calloc(ctx, 1, sizeof(*w) + (size_t)n * sizeof(tti_peer));
    if (w == NULL)
        return TT_ENOMEM;
    w->n_peers = n;
    w->ctx = ctx;
    w->suspect = -1;
    w->probe.fd = -1;
    pthread_condattr_t attr;
    pthread_condattr_init(&attr);
    pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
    pthread_cond_init(&w->changed, &attr);
    pthread_condattr_destroy(&attr);
    pthread_mutex_init(&w->mu, NULL);
    for (int i = 0; i < w->n_peers; i++) {
        w->peers[i].pid_fd = -1;
        pthread_mutex_init(&w->peers[i].out_mu, NULL);
    }
    tt_status st = open_world(w, tasks, devices);
    if (st != TT_OK) {
        tti_world_close(w);
        return st;
    }
    *out = w;
    return TT_OK;
}

// ---- parting ---------------------------------------------------------------------------------

// An error of this process is told to all before it goes; a verdict shows that it has arrived.
static void tell_error(tti_world *w)
{
    tti_world_fail(w, tt_status_of(w->ctx), tt_last_error(w->ctx).message);
    int64_t deadline = tti_deadline(1000);
    pthread_mutex_lock(&w->mu);
    while (!atomic_load(&w->has_failed) && tti_world_wait(w, deadline))
        ;
    pthread_mutex_unlock(&w->mu);
}

// What this process has sent is taken before it goes: a slow link, or one that breaks just now,
// needs the world's thread for that.
static void await_taken(tti_world *w)
{
    int64_t deadline = tti_deadline(w->loss_ms);
    tti_control_message ask = {.kind = TTI_ASK};
    for (int i = 0; i < w->n; i++)
        if (i != w->self && !tti_wire_has_taken(w->wire, i))
            tti_world_tell(w, i, &ask);
    pthread_mutex_lock(&w->mu);
    for (int i = 0; i < w->n; i++)
        while (i != w->self && !w->peers[i].has_left && !atomic_load(&w->has_failed) &&
               !tti_wire_has_taken(w->wire, i) && tti_world_wait(w, deadline))
            ;
    pthread_mutex_unlock(&w->mu);
}

// The first rank that has neither left nor this rank's goodbye; n: none. With mu held.
static int who_does_not_know(const tti_world *w)
{
    int i = 0;
    while (i < w->n && (i == w->self || w->peers[i].has_left || w->peers[i].knows_leaving))
        i++;
    return i;
}

/*
 * Says goodbye until everybody knows it. What a process has sent is not yet received when it closes
 * its connections: a socket that is closed with something left to read takes back what is still on
 * its way, and those who stay would wait for a rank that is gone, and take it for lost.
 */
static void leave(tti_world *w)
{
    int64_t deadline = tti_deadline(w->loss_ms);
    atomic_store(&w->is_leaving, true);
    pthread_mutex_lock(&w->mu);
    while (who_does_not_know(w) < w->n && tti_now_ns() < deadline) {
        for (int i = who_does_not_know(w); i < w->n; i++) {
            tti_control_message bye = {.kind = TTI_BYE, .silent_ms = w->peers[i].n_out};
            if (i != w->self && !w->peers[i].has_left && !w->peers[i].knows_leaving)
                tti_world_tell(w, i, &bye);
        }
        int64_t again = TTI_MIN(deadline, tti_deadline(TTI_MAX(w->heartbeat_ms, (int64_t)100)));
        while (who_does_not_know(w) < w->n && tti_world_wait(w, again))
            ;
    }
    pthread_mutex_unlock(&w->mu);
}

// Those it has met end with its error, also where no verdict came of telling it.
static void tell_last(tti_world *w)
{
    bool is_open = atomic_load(&w->wants_open);
    bool is_untold = tt_status_of(w->ctx) != TT_OK && !atomic_load(&w->has_failed);
    for (int i = 0; i < w->n; i++) {
        tti_control_message n = {.kind = TTI_BYE, .silent_ms = w->peers[i].n_out};
        if (!is_open || is_untold) {
            n.kind = TTI_VERDICT;
            n.status = (int32_t)tt_status_of(w->ctx);
            snprintf(n.text, sizeof(n.text), "%s", tt_last_error(w->ctx).message);
        }
        if (i != w->self && !w->peers[i].has_left)
            tti_world_tell(w, i, &n);
    }
}

void tti_world_close(tti_world *w)
{
    if (w == NULL)
        return;
    if (atomic_load(&w->wants_open) && tt_status_of(w->ctx) != TT_OK)
        tell_error(w);
    else if (atomic_load(&w->wants_open))
        await_taken(w);
    if (atomic_load(&w->wants_open) && tt_status_of(w->ctx) == TT_OK)
        leave(w);
    atomic_store(&w->is_stopping, true);
    if (w->wire != NULL)
        tti_wire_wake(w->wire);
    tti_thread_join(&w->thread);
    bool all_know = who_does_not_know(w) == w->n;
    for (int i = 0; w->wire != NULL && i < w->n; i++)
        if (i != w->self && (w->peers[i].died_ns != 0 || w->lost == i + 1)) {
            w->peers[i].has_left = true; // nothing reaches it
            tti_wire_forget(w->wire, i);
        }
    if (w->wire != NULL && !atomic_load(&w->is_leaving))
        tell_last(w);
    if (w->wire != NULL)
        tti_wire_close(w->wire, all_know ? 0 : 500);
    tti_segment_free(&w->probe);
    tti_messages_free(w);
    tti_free(w->ctx, w->turns);
    for (int i = 0; i < w->n_peers; i++) {
        if (w->peers[i].pid_fd >= 0)
            close(w->peers[i].pid_fd);
        pthread_mutex_destroy(&w->peers[i].out_mu);
    }
    pthread_cond_destroy(&w->changed);
    pthread_mutex_destroy(&w->mu);
    tti_free(w->ctx, w);
}
