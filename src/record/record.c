/*
 * record.c - the recorder that writes a run's events down.
 *
 * Everything is written as it happens: a run that is killed has told all it did. A disk that is
 * full costs a warning: what cannot be written waits in a small buffer, then whole lines are
 * dropped, so that a file goes on well-formed when there is room again.
 */
#include "record/record.h"
#include "base/ctx.h"
#include "base/file.h"
#include "record/chain.h"
#include "record/tracker.h"
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

// ---- a file that is added to -----------------------------------------------------------------

typedef struct sink {
    char path[TTI_RUN_PATH + 256];
    int fd;                // -1: nothing is written
    bool tells;            // false once a failure was told
    size_t n;              // bytes that wait
    char waiting[1 << 20]; // images are the largest; what is not used takes no memory
} sink;

struct tti_recorder {
    tt_ctx *ctx;
    tti_observer observer;
    sink events, board;
    tti_chain *chain;         // NULL: there is none
    tti_hasher *log;          // with a chain: of all that events.jsonl holds
    int64_t log_bytes;        // and how much that is
    bool has_begun;           // a session of TensorBoard is open
    bool validates_alone;     // validations have events of their own
    int64_t step;             // the last one whose values were written for TensorBoard
    tti_tracker *trackers[2]; // NULL: none
};

static void told(tti_recorder *r, sink *s, const char *what)
{
    int error = errno;
    if (!s->tells)
        return;
    s->tells = false; // first: the warning is an event, and comes back here
    TT_LOG(r->ctx, TT_WARN, "cannot %s '%s': %s; training continues without it", what, s->path,
           strerror(error));
}

static void sink_flush(tti_recorder *r, sink *s)
{
    size_t done = 0;
    while (done < s->n) {
        ssize_t w = write(s->fd, s->waiting + done, s->n - done);
        if (w < 0 && errno == EINTR)
            continue;
        if (w <= 0) {
            told(r, s, "write");
            break;
        }
        if (s == &r->events && r->log != NULL) {
            tti_hash_add(r->log, s->waiting + done, (size_t)w);
            r->log_bytes += w;
        }
        done += (size_t)w;
    }
    s->n -= done;
    memmove(s->waiting, s->waiting + done, s->n);
}

// Adds pieces that belong together: all of them, or, if there is no room, none.
static void sink_add(tti_recorder *r, sink *s, const char *const *pieces, const size_t *bytes,
                     int n)
{
    size_t total = 0;
    for (int i = 0; i < n; i++)
        total += bytes[i];
    if (s->fd < 0 || total > sizeof(s->waiting) - s->n)
        return;
    for (int i = 0; i < n; i++) {
        memcpy(s->waiting + s->n, pieces[i], bytes[i]);
        s->n += bytes[i];
    }
    sink_flush(r, s);
}

static void sink_close(sink *s)
{
    if (s->fd >= 0)
        close(s->fd);
}

// ---- events ----------------------------------------------------------------------------------

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_REALTIME, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

// The event's object with the time in front of its fields.
static void add_line(tti_recorder *r, double time, const char *object)
{
    char head[48];
    size_t n = strlen(object);
    if (n < 2 || object[0] != '{')
        return;
    int h = snprintf(head, sizeof(head), "{\"time\": %.6f, ", time);
    sink_add(r, &r->events, (const char *const[]){head, object + 1, "\n"},
             (const size_t[]){(size_t)h, n - 1, 1}, 3);
    for (int i = 0; i < TTI_COUNT(r->trackers); i++)
        if (r->trackers[i] != NULL)
            tti_tracker_add(r->trackers[i], time, object + 1);
}

static void add_log(tti_recorder *r, double time, const tt_event *ev)
{
    static const char *const levels[] = {"", "error", "warn", "info", "debug", "trace"};
    tti_text t = {0}; // of no context: a lost line is no error
    tti_text_add(&t, "{\"event\": \"log\", \"level\": \"%s\", \"text\": ",
                 (unsigned)ev->level < TTI_COUNT(levels) ? levels[ev->level] : "");
    tti_text_json(&t, ev->text);
    tti_text_add(&t, "}");
    char *s = tti_text_take(&t);
    if (s != NULL)
        add_line(r, time, s);
    tti_free(NULL, s);
}

static void add_record(tti_recorder *r, const uint8_t *record, size_t bytes)
{
    sink_add(r, &r->board, (const char *const[]){(const char *)record}, &bytes, 1);
}

static bool is_one_of(const char *word, const char *const *words)
{
    while (*words != NULL && strcmp(*words, word) != 0)
        words++;
    return *words != NULL;
}

static const char *const counts[] = {"time", "step",       "steps",   "epoch", "epochs",
                                     "rows", "epoch_rows", "seconds", NULL};
static const char *const rates[] = {
    "lr", "samples_per_second", "step_loss", "gradient_norm", "loss_scale", NULL};

bool tti_is_measure(const char *name)
{
    return !is_one_of(name, counts) && !is_one_of(name, rates);
}

static const tt_pair *find(const tt_event *ev, const char *name)
{
    for (int i = 0; i < ev->n_pairs; i++)
        if (strcmp(ev->pairs[i].name, name) == 0)
            return &ev->pairs[i];
    return NULL;
}

static bool is_validation(const char *name)
{
    return strncmp(name, "validation_", 11) == 0;
}

/*
 * What of an event TensorBoard shows, each value once a step. Those of steps come again with the
 * epoch's end. Those of a validation come with the epoch, or, where validations have events of
 * their own, with these; an epoch then repeats old ones.
 */
static int board_pairs(const tti_recorder *r, const tt_event *ev, int64_t step, tt_pair *out,
                       int max)
{
    bool only_validation = strcmp(ev->kind, "validation") == 0;
    int n = 0;
    for (int i = 0; i < ev->n_pairs && n < max; i++) {
        const tt_pair *p = &ev->pairs[i];
        if (p->text != NULL || is_one_of(p->name, counts))
            continue;
        bool is_new = is_validation(p->name) ? only_validation || !r->validates_alone
                                             : !only_validation && step > r->step;
        if (is_new)
            out[n++] = *p;
    }
    return n;
}

static void add_scalars(tti_recorder *r, double time, const tt_event *ev)
{
    uint8_t record[TTI_BOARD_MAX];
    tt_pair pairs[32];
    const tt_pair *at = find(ev, "step");
    if (at == NULL)
        return;
    int64_t step = (int64_t)at->number;
    if (!r->has_begun) {
        add_record(r, record, tti_board_start(time, step, record));
        r->has_begun = true;
        r->step = step - 1;
    }
    r->validates_alone |= strcmp(ev->kind, "validation") == 0;
    int n = board_pairs(r, ev, step, pairs, TTI_COUNT(pairs));
    if (n > 0)
        add_record(r, record, tti_board_scalars(time, step, pairs, n, record));
    if (strcmp(ev->kind, "validation") != 0)
        r->step = TTI_MAX(r->step, step);
}

static void on_event(void *user, const tt_event *ev)
{
    static const char *const values[] = {"step", "epoch", "validation", NULL};
    tti_recorder *r = user;
    double time = now();
    if (strcmp(ev->kind, "log") == 0) {
        add_log(r, time, ev);
        return;
    }
    bool is_hash = strcmp(ev->kind, "hash") == 0; // of the chain only
    if (is_hash && r->chain != NULL)
        tti_chain_event(r->chain, ev, r->log_bytes, tti_hash_now(r->log));
    if (ev->n_pairs == 0 || is_hash)
        return; // "run", "plan", "print": of no interest here
    if (strcmp(ev->kind, "begin") == 0)
        r->has_begun = false;
    add_line(r, time, ev->text);
    if (is_one_of(ev->kind, values))
        add_scalars(r, time, ev);
    if (r->chain != NULL)
        tti_chain_event(r->chain, ev, r->log_bytes, tti_hash_now(r->log));
}

// ---- the recorder ----------------------------------------------------------------------------

// Cuts off a last line that a killed run left without its end.
static void cut_torn_line(int fd)
{
    struct stat st;
    char tail[1 << 14];
    if (fd < 0 || fstat(fd, &st) != 0 || !S_ISREG(st.st_mode) || st.st_size == 0)
        return;
    off_t from = st.st_size > (off_t)sizeof(tail) ? st.st_size - (off_t)sizeof(tail) : 0;
    ssize_t n = pread(fd, tail, sizeof(tail), from);
    if (n <= 0)
        return;
    const char *last = memrchr(tail, '\n', (size_t)n);
    off_t keep = last != NULL ? from + (last - tail) + 1 : from;
    if (last == NULL && from > 0)
        return; // no line of ours is that long
    if (keep < st.st_size && ftruncate(fd, keep) != 0)
        (void)!write(fd, "\n", 1);
}

// The first free name, so that a run resumed within the second does not add to another's file.
static void open_board(tti_recorder *r, const char *folder)
{
    char host[64] = "localhost";
    snprintf(r->board.path, sizeof(r->board.path), "%s/tensorboard", folder);
    r->board.tells = true;
    if (mkdir(r->board.path, 0777) != 0 && errno != EEXIST) {
        told(r, &r->board, "make");
        return;
    }
    if (gethostname(host, sizeof(host) - 1) != 0 || strchr(host, '/') != NULL)
        snprintf(host, sizeof(host), "localhost");
    long long time = (long long)now();
    for (int n = 0; r->board.fd < 0; n++) {
        snprintf(r->board.path, sizeof(r->board.path),
                 "%s/tensorboard/events.out.tfevents.%010lld.%s.%d", folder, time, host, n);
        r->board.fd = open(r->board.path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
        if (r->board.fd < 0 && errno != EEXIST) {
            told(r, &r->board, "open");
            return;
        }
    }
    uint8_t record[TTI_BOARD_MAX];
    add_record(r, record, tti_board_version(now(), record));
}

tt_status tti_recorder_open(tt_ctx *ctx, const char *folder, bool tensorboard, tti_recorder **out)
{
    if (strlen(folder) >= TTI_RUN_PATH)
        return TT_FAIL(ctx, TT_EINVAL, "run folder '%s': the path has more than %d bytes", folder,
                       TTI_RUN_PATH - 1);
    tti_recorder *r = tti_calloc(ctx, 1, sizeof(*r));
    if (r == NULL)
        return TT_ENOMEM;
    r->ctx = ctx;
    r->observer = (tti_observer){.fn = on_event, .user = r};
    snprintf(r->events.path, sizeof(r->events.path), "%s/events.jsonl", folder);
    r->events.tells = true;
    r->events.fd = open(r->events.path, O_RDWR | O_CREAT | O_APPEND | O_CLOEXEC | O_NONBLOCK, 0666);
    struct stat st;
    if (r->events.fd >= 0 && fstat(r->events.fd, &st) == 0 && S_ISFIFO(st.st_mode)) {
        close(r->events.fd); // nobody may read it, and then writing waits
        r->events.fd = -1;
        errno = ESPIPE;
    }
    if (r->events.fd < 0)
        told(r, &r->events, "open");
    cut_torn_line(r->events.fd);
    r->board.fd = -1;
    if (tensorboard)
        open_board(r, folder);
    tti_observe(ctx, &r->observer);
    *out = r;
    return TT_OK;
}

void tti_recorder_keys(tti_recorder *r, const tt_pair *pairs, int n)
{
    uint8_t record[TTI_BOARD_KEYS];
    if (r->board.fd >= 0)
        add_record(r, record, tti_board_keys(now(), pairs, n, record));
    for (int i = 0; i < TTI_COUNT(r->trackers); i++)
        if (r->trackers[i] != NULL)
            tti_tracker_keys(r->trackers[i], now(), pairs, n);
}

tt_status tti_recorder_track(tti_recorder *r, const char *folder, const tti_track_opts *o)
{
    const char *const urls[] = {o->http, o->mlflow};
    static const tti_tracker_kind kinds[] = {TTI_TRACKER_JSON, TTI_TRACKER_MLFLOW};
    for (int i = 0; i < TTI_COUNT(urls); i++) {
        tti_tracker *t = NULL;
        if (urls[i] == NULL || urls[i][0] == '\0')
            continue;
        TT_TRY(tti_tracker_open(r->ctx, kinds[i], urls[i], folder, o->name, &t));
        pthread_mutex_lock(&r->ctx->mu); // events come from several threads, and under it
        r->trackers[i] = t;
        pthread_mutex_unlock(&r->ctx->mu);
    }
    return TT_OK;
}

void tti_recorder_histogram(tti_recorder *r, const char *tag, int64_t step, const float *values,
                            int64_t n)
{
    uint8_t record[TTI_BOARD_MAX];
    size_t bytes = tti_board_histogram(now(), step, tag, values, n, record);
    pthread_mutex_lock(&r->ctx->mu); // events come from several threads, and under it
    if (bytes > 0)
        add_record(r, record, bytes);
    pthread_mutex_unlock(&r->ctx->mu);
}

void tti_recorder_image(tti_recorder *r, const char *tag, int64_t step, const tti_picture *p)
{
    size_t bytes = 0;
    uint8_t *png = r->board.fd >= 0 ? tti_picture_png(NULL, p, &bytes) : NULL;
    uint8_t *room = png != NULL ? tti_alloc(NULL, 2 * (bytes + TTI_BOARD_MAX)) : NULL;
    if (room != NULL) {
        uint8_t *out = room + bytes + TTI_BOARD_MAX;
        size_t n = tti_board_image(now(), step, tag, p, png, bytes, room, out);
        pthread_mutex_lock(&r->ctx->mu);
        add_record(r, out, n);
        pthread_mutex_unlock(&r->ctx->mu);
    }
    tti_free(NULL, png);
    tti_free(NULL, room);
}

// The hash of what the file of events holds already.
static void hash_log(tti_recorder *r)
{
    char part[1 << 14];
    struct stat st;
    bool is_file = r->events.fd >= 0 && fstat(r->events.fd, &st) == 0 && S_ISREG(st.st_mode);
    for (ssize_t n;
         is_file && (n = pread(r->events.fd, part, sizeof(part), (off_t)r->log_bytes)) > 0;
         r->log_bytes += n)
        tti_hash_add(r->log, part, (size_t)n);
}

tt_status tti_recorder_chain(tti_recorder *r, const char *folder, const tti_chain_opts *o)
{
    tti_chain *chain = NULL;
    tti_hasher *log = tti_hash_begin(r->ctx);
    if (log == NULL)
        return TT_FAIL(r->ctx, TT_ENOMEM, "out of memory");
    tt_status st = tti_chain_open(r->ctx, folder, o, &chain);
    if (st != TT_OK) {
        (void)tti_hash_end(r->ctx, log);
        return st;
    }
    pthread_mutex_lock(&r->ctx->mu); // events come from several threads, and under it
    r->log = log;
    hash_log(r);
    r->chain = chain;
    r->ctx->hashing.is_on = true;
    pthread_mutex_unlock(&r->ctx->mu);
    return TT_OK;
}

void tti_recorder_close(tti_recorder *r)
{
    if (r == NULL)
        return;
    for (int i = 0; i < TTI_COUNT(r->trackers); i++) {
        pthread_mutex_lock(&r->ctx->mu);
        tti_tracker *t = r->trackers[i];
        r->trackers[i] = NULL;
        pthread_mutex_unlock(&r->ctx->mu);
        tti_tracker_close(t); // while the recorder listens: what it warns of is recorded
    }
    tti_unobserve(r->ctx, &r->observer);
    if (r->chain != NULL)
        r->ctx->hashing = (tti_hashing){.is_on = false};
    tti_chain_close(r->chain);
    sink_flush(r, &r->events);
    sink_flush(r, &r->board);
    sink_close(&r->events);
    sink_close(&r->board);
    if (r->log != NULL)
        (void)tti_hash_end(r->ctx, r->log);
    tti_free(r->ctx, r);
}
