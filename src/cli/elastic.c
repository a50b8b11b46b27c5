/*
 * elastic.c - a process of a job whose membership changes (elastic.h). Its state stays in memory
 * from one membership to the next; each has a context, connections and keys of its own.
 */
#include "cli/elastic.h"
#include "base/file.h"
#include "base/secure.h"
#include "cli/signals.h"
#include "cluster/cluster.h"
#include "net/keys.h"
#include "net/world.h"
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define REJOIN_MS   3000 // to connect again
#define MOST_FIELDS 16

typedef struct secrets {
    unsigned char job[TT_SECRET_BYTES], epoch[TT_SECRET_BYTES];
} secrets;

typedef struct membership {
    int64_t epoch;
    int n, rank, source;
    int64_t since_ms;
    bool ends;
} membership;

static struct {
    pthread_mutex_t mu; // guards order
    pthread_cond_t changed;
    char *order;       // the last one of the launcher that is not carried out; NULL: none
    volatile int stop; // ends the opening of a context
    bool is_opening;   // guarded by mu
    bool is_alone;     // the launcher is gone; guarded by mu
    tti_elastic *state;
    secrets *secrets;
    membership now;
    char run[TTI_RUN_PATH], epoch_file[TTI_RUN_PATH + 16];
    char host[256];
    int port, held;
    int out, none; // standard output, and where that of others than the first goes
    int lost;      // of the membership that has ended; -1: nobody
    int64_t lost_silent_ms;
    char *text; // the order that is carried out
} me = {.mu = PTHREAD_MUTEX_INITIALIZER, .held = -1, .out = -1, .none = -1, .lost = -1};

bool cli_elastic_is_on(void)
{
    const char *host = tti_env(CLI_ELASTIC_ENV);
    return host != NULL && host[0] != '\0';
}

tti_elastic *cli_elastic_state(void)
{
    return me.state;
}

const char *cli_elastic_run(void)
{
    return me.run;
}

bool cli_elastic_ends(void)
{
    return me.now.ends;
}

// The thread that opens the context's connections reads it.
static void set_stop(int value)
{
    __atomic_store_n(&me.stop, value, __ATOMIC_RELAXED);
}

const volatile int *cli_elastic_stop(void)
{
    return &me.stop;
}

// ---- lines -----------------------------------------------------------------------------------

// One write each, so that no other line is in it.
static void say(const char *line)
{
    char whole[TTI_RUN_PATH + 128];
    int n = snprintf(whole, sizeof(whole), "%c%s\n", CLI_ELASTIC_MARK, line);
    if (write(STDERR_FILENO, whole, (size_t)TTI_MIN(n, (int)sizeof(whole) - 1)) < 0)
        return; // the launcher is gone, which is seen elsewhere
}

tt_status cli_elastic_folder(tt_ctx *ctx, const char *run, const char *checkpoints)
{
    char line[TTI_RUN_PATH + 16];
    if (me.state == NULL)
        return TT_OK;
    snprintf(me.run, sizeof(me.run), "%s", run);
    snprintf(me.epoch_file, sizeof(me.epoch_file), "%s/membership", run);
    if (!cli_is_first(ctx))
        return TT_OK;
    snprintf(line, sizeof(line), "run\t%s", run);
    say(line);
    return tti_fence_raise(ctx, checkpoints);
}

// It may be in the middle of anything, after it was frozen: it touches nothing any more.
static void end_as_outsider(const char *why)
{
    char text[600];
    int n = snprintf(text, sizeof(text), "tutti: error: %s\n", why);
    if (write(STDERR_FILENO, text, (size_t)TTI_MIN(n, (int)sizeof(text) - 1)) < 0)
        _exit(CLI_LOST);
    _exit(CLI_LOST);
}

void cli_elastic_order(const char *line)
{
    if (strncmp(line, "out\t", 4) == 0)
        end_as_outsider(line + 4);
    pthread_mutex_lock(&me.mu);
    if (strcmp(line, "ping") == 0) {
        say("alive");
    } else if (strcmp(line, "end") == 0 || strcmp(line, "gone") == 0) {
        me.is_alone = me.is_alone || line[0] == 'g';
        if (me.state == NULL || tti_elastic_age(me.state) < 0)
            set_stop(1); // there is nothing to save
    } else if (strcmp(line, "change") == 0 || strcmp(line, "lost") == 0) {
        if (me.is_opening)
            set_stop(1);
        else if (me.state != NULL && line[0] == 'c')
            atomic_store(&me.state->wants_change, 1);
    } else {
        char *copy = strdup(line);
        if (copy != NULL) {
            free(me.order);
            me.order = copy;
        }
        pthread_cond_broadcast(&me.changed);
    }
    pthread_mutex_unlock(&me.mu);
}

// The next order; NULL: a signal came first. A process that has a state to save waits for the
// others to save it with.
static char *await_order(const volatile int *stop)
{
    char *line = NULL;
    pthread_mutex_lock(&me.mu);
    bool saves = tti_elastic_age(me.state) >= 0;
    while (me.order == NULL && (*stop == 0 || (saves && !me.is_alone))) {
        struct timespec until;
        clock_gettime(CLOCK_REALTIME, &until);
        until.tv_nsec += 20000000;
        until.tv_sec += until.tv_nsec / 1000000000;
        until.tv_nsec %= 1000000000;
        (void)pthread_cond_timedwait(&me.changed, &me.mu, &until);
    }
    line = me.order;
    me.order = NULL;
    set_stop(0);
    me.is_opening = line != NULL;
    if (me.state != NULL)
        atomic_store(&me.state->wants_change, 0);
    pthread_mutex_unlock(&me.mu);
    return line;
}

// ---- becoming a member -----------------------------------------------------------------------

static tt_status begin(tt_ctx *ctx)
{
    if (me.state != NULL)
        return TT_OK;
    snprintf(me.host, sizeof(me.host), "%s", tti_env(CLI_ELASTIC_ENV));
    me.out = dup(STDOUT_FILENO);
    me.none = open("/dev/null", O_WRONLY | O_CLOEXEC);
    me.secrets = tti_secure_new(ctx, sizeof(*me.secrets));
    me.state = calloc(1, sizeof(*me.state));
    if (me.out < 0 || me.none < 0 || me.secrets == NULL || me.state == NULL)
        return TT_FAIL(ctx, TT_ENOMEM, "out of memory or descriptors");
    fcntl(me.out, F_SETFD, FD_CLOEXEC);
    TT_TRY(cli_take_secret(ctx));
    char *text = getenv("TUTTI_SECRET");
    bool has = text != NULL && tti_secret_parse(text, strlen(text), me.secrets->job);
    return has ? TT_OK
               : TT_FAIL(ctx, TT_EINVAL,
                         CLI_ELASTIC_ENV " is set, but the secret of tutti run is missing: only "
                                         "tutti run --workers sets this variable");
}

// At this host, by the name that the others have for it, or at every address.
static tt_status hold_port(tt_ctx *ctx)
{
    if (me.held >= 0)
        close(me.held);
    me.port = tti_port_hold(tti_is_loopback(me.host) ? "127.0.0.1" : "0.0.0.0", &me.held);
    return me.port != 0 ? TT_OK
                        : TT_FAIL(ctx, TT_EIO, "%s has no free port: %s", me.host, strerror(errno));
}

// Fields behind tabs; how many.
static int split(char *line, char *field[MOST_FIELDS])
{
    int n = 0;
    for (char *rest = line; rest != NULL && n < MOST_FIELDS; n++)
        field[n] = strsep(&rest, "\t");
    return n;
}

// Keys of their own for every membership: those of an older one open nothing. The rest is as where
// the environment says who the processes are.
static tt_status set_environment(tt_ctx *ctx, const char *addresses)
{
    char purpose[64], rank[16], text[TTI_SECRET_TEXT], ms[32];
    snprintf(purpose, sizeof(purpose), "membership %lld", (long long)me.now.epoch);
    tti_digest d = tti_derive(me.secrets->job, purpose, 0);
    memcpy(me.secrets->epoch, d.byte, sizeof(me.secrets->epoch));
    tti_secret_print(me.secrets->epoch, text);
    snprintf(rank, sizeof(rank), "%d", me.now.rank);
    snprintf(ms, sizeof(ms), "%lld", (long long)tti_timeout_ms(REJOIN_MS, me.now.n, true));
    bool ok = setenv("TUTTI_TASKS", addresses, 1) == 0 && setenv("TUTTI_RANK", rank, 1) == 0 &&
              setenv("TUTTI_SECRET", text, 1) == 0;
    if (ok && me.now.epoch > 1) // all are running already
        ok = setenv("TUTTI_RENDEZVOUS_MS", ms, 0) == 0;
    explicit_bzero(&d, sizeof(d));
    explicit_bzero(text, sizeof(text));
    return ok ? TT_OK : TT_FAIL(ctx, TT_ENOMEM, "out of memory");
}

static tt_status bad_order(tt_ctx *ctx)
{
    return TT_FAIL(ctx, TT_EPARSE,
                   "tutti run sent a membership that cannot be read: it is of "
                   "another version");
}

static tt_status read_membership(tt_ctx *ctx, char *line)
{
    char *f[MOST_FIELDS];
    int n = split(line, f);
    membership m = {0};
    if (n != 10 || strcmp(f[0], "epoch") != 0)
        return bad_order(ctx);
    m.epoch = atoll(f[1]);
    m.n = atoi(f[2]);
    m.rank = atoi(f[3]);
    m.source = atoi(f[4]);
    m.since_ms = atoll(f[5]);
    m.ends = f[6][0] == '1';
    if (m.epoch < 1 || m.n < 1 || m.n > TT_MAX_TASKS || m.rank < 0 || m.rank >= m.n)
        return bad_order(ctx);
    snprintf(me.run, sizeof(me.run), "%s", f[7]);
    me.now = m;
    me.state->epoch = m.epoch;
    me.state->source = m.source;
    me.state->since_ns = tti_now_ns() - m.since_ms * 1000000;
    snprintf(me.state->message, sizeof(me.state->message), "%s", f[8]);
    return set_environment(ctx, f[9]);
}

static tt_status join(tt_ctx *ctx, bool *is_over)
{
    char line[128];
    TT_TRY(begin(ctx));
    me.state->is_changed = false;
    fflush(stdout);
    if (dup2(me.none, STDOUT_FILENO) < 0)
        return TT_FAIL(ctx, TT_EIO, "cannot set standard output: %s", strerror(errno));
    TT_TRY(hold_port(ctx));
    snprintf(line, sizeof(line), "ready\t%lld\t%d\t%d\t%lld", (long long)tti_elastic_age(me.state),
             me.port, me.lost, (long long)me.lost_silent_ms);
    say(line);
    me.lost = -1;
    const volatile int *stop = cli_signals_join(ctx);
    free(me.text);
    me.text = await_order(stop);
    (void)cli_signals_join(NULL);
    *is_over = me.text == NULL || strcmp(me.text, "leave") == 0;
    if (*is_over)
        return TT_OK;
    TT_TRY(read_membership(ctx, me.text));
    close(me.held);
    me.held = -1;
    if (me.now.rank == 0 && dup2(me.out, STDOUT_FILENO) < 0)
        return TT_FAIL(ctx, TT_EIO, "cannot set standard output: %s", strerror(errno));
    return TT_OK;
}

int cli_elastic_join(tt_ctx *ctx, bool *is_over)
{
    tt_status st = join(ctx, is_over);
    if (*is_over)
        return me.text == NULL ? CLI_AGAIN : CLI_OK;
    return st == TT_OK ? CLI_OK : cli_code(st);
}

void cli_elastic_options(tt_open_opts *o, tt_spread *spread)
{
    bool can = o->strategy != NULL &&
               (strcmp(o->strategy, "mirrored") == 0 || strcmp(o->strategy, "pipeline") == 0);
    if (me.state == NULL || !can || o->spread == NULL || o->spread->update != TT_UPDATE_AUTO)
        return;
    *spread = *o->spread;
    spread->update = TT_UPDATE_EACH; // so that every process has the whole state
    o->spread = spread;
}

void cli_elastic_opened(tt_ctx *ctx)
{
    if (me.state == NULL)
        return;
    pthread_mutex_lock(&me.mu);
    me.is_opening = false;
    if (__atomic_load_n(&me.stop, __ATOMIC_RELAXED) != 0) // it came too late to end the opening
        atomic_store(&me.state->wants_change, 1);
    pthread_mutex_unlock(&me.mu);
    ctx->elastic = me.state;
    ctx->epoch = me.now.epoch;
    ctx->epoch_file = me.epoch_file;
    char *secret = getenv("TUTTI_SECRET"); // it was read
    if (secret != NULL)
        explicit_bzero(secret, strlen(secret));
}

// ---- the next membership ---------------------------------------------------------------------

bool cli_elastic_again(cli_job *j, int rc)
{
    if (me.state == NULL || rc == CLI_OK || me.now.n == 0)
        return me.state != NULL && me.state->is_changed;
    tt_ctx *ctx = j->ctx != NULL ? j->ctx : j->reader;
    tt_status st = tt_status_of(ctx);
    me.lost = tti_world_lost(j->ctx != NULL ? j->ctx->world : NULL, &me.lost_silent_ms);
    if (me.state->is_changed)
        return true;
    if (st == TT_ESTOP && cli_signals_code() == CLI_OK)
        return true; // someone went while all were connecting, as this process or another one saw
    return st == TT_EPEER || (st == TT_ETIMEOUT && me.lost >= 0);
}

void cli_elastic_close(void)
{
    if (me.state == NULL)
        return;
    tti_elastic_free(me.state);
    free(me.state);
    me.state = NULL;
    tti_secure_free(me.secrets, sizeof(*me.secrets));
    free(me.text);
    free(me.order);
    if (me.held >= 0)
        close(me.held);
    close(me.out);
    close(me.none);
}
