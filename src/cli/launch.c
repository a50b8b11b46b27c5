/*
 * launch.c - the processes of a job. Each has a pipe as standard input: the secret first, then the
 * request to end, if one comes; that the launcher is gone shows as its end, also through ssh and
 * after kill -9. Each has a process group of its own, so that Ctrl-C reaches the launcher alone.
 */
#include "cli/launch_own.h"
#include "cluster/cluster.h"
#include "net/world.h"
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define KEEP      65536 // bytes of what a rank says that are kept
#define MOST_MORE 256   // processes of an elastic job beside the first ones
#define LONGEST   4096  // bytes of a line
#define ALONE_MS  2000  // after one has failed the others find that out by themselves, or are told
#define TOLD_MS   2000  // SIGTERM to SIGKILL where one has failed

typedef cli_child child;
typedef cli_launching launch;

static volatile sig_atomic_t wants_end, interrupts;

static void on_end(int number)
{
    wants_end = 1;
    interrupts += number == SIGINT;
}

static void on_child(int number)
{
    (void)number; // it wakes ppoll()
}

// ---- starting --------------------------------------------------------------------------------

// In the child: only async-signal-safe calls, as far as it has threads; it has none.
static void become(const cli_process *p, const int in[2], const int err[2], bool has_output)
{
    setpgid(0, 0);
    for (const char *const *v = tti_cluster_variables; *v != NULL; v++)
        unsetenv(*v);
    unsetenv("TUTTI_SECRET");
    for (char **s = p->sets; *s != NULL; s++)
        putenv(*s);
    dup2(in[0], STDIN_FILENO);
    dup2(err[1], STDERR_FILENO);
    if (!has_output)
        dup2(err[1], STDOUT_FILENO);
    signal(SIGPIPE, SIG_DFL);
    execvp(p->words[0], p->words);
    cli_error("cannot start '%s': %s", p->words[0], strerror(errno));
    _exit(CLI_FAILED);
}

int cli_launch_start(launch *a, int slot)
{
    if (a->n == a->room) {
        errno = EAGAIN;
        return -1;
    }
    int i = a->n, in[2] = {-1, -1}, err[2] = {-1, -1};
    child *c = &a->child[i];
    *c = (child){.slot = slot, .in = -1, .err = -1, .rank = -1, .age = -1};
    if (pipe2(in, O_CLOEXEC) != 0 || pipe2(err, O_CLOEXEC) != 0)
        return -1;
    fflush(NULL);
    pid_t pid = fork();
    if (pid == 0) {
        sigprocmask(SIG_SETMASK, a->mask, NULL);
        // Of an elastic job each is the first at some time, and silent before.
        become(&a->l->processes[slot], in, err, i == 0 || a->members != NULL);
    }
    close(in[0]);
    close(err[1]);
    c->in = in[1];
    c->err = err[0];
    a->n++;
    if (pid < 0)
        return -1;
    c->pid = pid;
    c->said = i > 0 || a->members != NULL ? malloc(KEEP) : NULL;
    a->n_alive++;
    fcntl(c->err, F_SETFL, O_NONBLOCK);
    size_t n = strlen(a->l->secret); // no copy of it here: see base/secure.h
    if (write(c->in, a->l->secret, n) < 0 || write(c->in, "\n", 1) < 0)
        return i;                      // it has ended, which is seen soon
    fcntl(c->in, F_SETFL, O_NONBLOCK); // one that is frozen does not read
    return i;
}

// ---- what they say ---------------------------------------------------------------------------

// The same cause is told as "tutti: error: X" by whom it is of, as "... rank 1 (...): X" by others.
static void strip(const char **line, size_t *n)
{
    static const char error[] = "tutti: error: ", rank[] = "rank ";
    const char *s = *line, *end = s + *n;
    if (*n > sizeof(error) && memcmp(s, error, sizeof(error) - 1) == 0)
        s += sizeof(error) - 1;
    const char *close = memmem(s, (size_t)(end - s), "): ", 3);
    if ((size_t)(end - s) > sizeof(rank) && memcmp(s, rank, sizeof(rank) - 1) == 0 && close != NULL)
        s = close + 3;
    *n = (size_t)(end - s);
    *line = s;
}

static bool was_seen(launch *a, const char *line, size_t n, bool add)
{
    strip(&line, &n);
    uint64_t hash = tti_hash64(line, n, 0);
    for (int i = 0; i < a->n_seen; i++)
        if (a->seen[i] == hash)
            return true;
    if (add && a->n_seen < CLI_MAX_SEEN)
        a->seen[a->n_seen++] = hash;
    return false;
}

static void see_lines(launch *a, const char *s, size_t n)
{
    while (n > 0) {
        const char *end = memchr(s, '\n', n);
        size_t length = end != NULL ? (size_t)(end - s) : n;
        (void)was_seen(a, s, length, true);
        n -= TTI_MIN(length + 1, n);
        s += length + 1;
    }
}

// The end of what a rank says is what counts.
static void keep(child *c, const char *s, size_t n)
{
    if (c->said == NULL)
        return;
    if (c->n_said + n > KEEP) {
        size_t drop = TTI_MIN(c->n_said, c->n_said + n - KEEP);
        memmove(c->said, c->said + drop, c->n_said - drop);
        c->n_said -= drop;
    }
    memcpy(c->said + c->n_said, s, n);
    c->n_said += n;
}

// What the first one says is shown as it comes; the end of a character may come later.
static void pass_on(child *c, const char *s, size_t n)
{
    char text[LONGEST + sizeof(c->tail)];
    memcpy(text, c->tail, c->n_tail);
    memcpy(text + c->n_tail, s, n);
    n += c->n_tail;
    c->n_tail = 0;
    for (size_t k = 1; k < sizeof(c->tail) && k <= n; k++) {
        unsigned char b = (unsigned char)text[n - k];
        size_t whole = b >= 0xF0 ? 4 : b >= 0xE0 ? 3 : b >= 0xC0 ? 2 : 0;
        if (whole > k)
            c->n_tail = k;
        if (whole > 0 || b < 0x80)
            break;
    }
    memcpy(c->tail, text + n - c->n_tail, c->n_tail);
    cli_write(stderr, text, n - c->n_tail, false);
}

static void listen_to(launch *a, int i)
{
    child *c = &a->child[i];
    char buf[LONGEST];
    while (c->err >= 0) {
        ssize_t n = read(c->err, buf, sizeof(buf));
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0 && errno == EAGAIN)
            return;
        if (n <= 0) {
            close(c->err);
            c->err = -1;
            return;
        }
        if (a->members != NULL)
            n = (ssize_t)cli_members_hear(a->members, i, buf, (size_t)n);
        if (i == a->leader) {
            see_lines(a, buf, (size_t)n);
            pass_on(c, buf, (size_t)n);
        } else {
            keep(c, buf, (size_t)n);
        }
    }
}

// A rank's own words, as a line.
static void show(int rank, const char *s, size_t n)
{
    fprintf(stderr, "rank %d: ", rank);
    cli_write(stderr, s, n, false);
    fputs("\n", stderr);
}

// What the others have said and the first has not, each line once.
static void tell_rest(launch *a)
{
    for (int i = 0; i < a->n; i++) {
        const child *c = &a->child[i];
        for (size_t at = 0; at < c->n_said;) {
            size_t n = strcspn(c->said + at, "\n");
            n = TTI_MIN(n, c->n_said - at);
            if (n > 0 && !was_seen(a, c->said + at, n, true))
                show(i, c->said + at, n);
            at += n + 1;
        }
    }
}

// ---- ending ----------------------------------------------------------------------------------

static void signal_all(launch *a, int number)
{
    for (int i = 0; i < a->n; i++)
        if (a->child[i].pid > 0)
            kill(-a->child[i].pid, number);
}

// Also through ssh, which passes no signals on.
static void ask_all_to_end(launch *a)
{
    for (int i = 0; i < a->n; i++)
        if (a->child[i].pid > 0 && write(a->child[i].in, "end\n", 4) < 0)
            continue; // it is about to go
}

static bool is_lost(const child *c)
{
    return WIFEXITED(c->status) && WEXITSTATUS(c->status) == CLI_LOST;
}

/*
 * Is one that has failed the cause, instead of those that failed before? One that lost another is
 * not, though it may end first, or be looked at first: a rank that cannot listen at its port has to
 * clean up while the others notice. What was killed by the launcher is no cause.
 */
static bool is_cause(const launch *a, const child *c)
{
    if (a->first < 0)
        return true;
    bool by_itself = WIFEXITED(c->status) || (a->termed_ns == 0 && !a->is_killed);
    return is_lost(&a->child[a->first]) && !is_lost(c) && by_itself;
}

static void reap(launch *a)
{
    for (int i = 0; i < a->n; i++) {
        child *c = &a->child[i];
        if (c->pid <= 0 || waitpid(c->pid, &c->status, WNOHANG) != c->pid)
            continue;
        kill(-c->pid, SIGKILL); // what it may have started
        c->pid = 0;
        a->n_alive--;
        listen_to(a, i); // what it said last
        if (a->members != NULL && cli_members_ended(a->members, i))
            continue;
        bool is_well = WIFEXITED(c->status) &&
                       (WEXITSTATUS(c->status) == CLI_OK || WEXITSTATUS(c->status) == CLI_AGAIN);
        if (is_well)
            continue;
        a->failed_ns = a->first < 0 ? tti_now_ns() : a->failed_ns;
        a->first = is_cause(a, c) ? i : a->first;
    }
}

// One that ended because another was lost knew the others.
static bool has_met(const launch *a)
{
    bool met = false;
    for (int i = 0; i < a->n; i++) {
        const child *c = &a->child[i];
        met = met || (c->pid == 0 && is_lost(c));
    }
    return met;
}

// Each stage follows the one before when that had its time.
static void press(launch *a)
{
    int64_t now = tti_now_ns(), ms = 1000000;
    if (wants_end && a->ended_ns == 0) {
        a->ended_ns = now;
        fputs("tutti: all processes are saving; press Ctrl-C again to stop them immediately\n",
              stderr);
        ask_all_to_end(a);
    }
    if (interrupts > 1 || (a->ended_ns != 0 && now - a->ended_ns > a->l->grace_s * 1000 * ms)) {
        if (!a->is_killed && interrupts <= 1)
            fprintf(stderr, "tutti: some processes did not exit within %lld s and are killed\n",
                    (long long)a->l->grace_s);
        signal_all(a, SIGKILL);
        a->is_killed = true;
    }
    if (a->failed_ns != 0 && a->termed_ns == 0 && now - a->failed_ns > ALONE_MS * ms) {
        a->termed_ns = now;
        signal_all(a, SIGTERM);
    }
    if (a->termed_ns != 0 && now - a->termed_ns > (has_met(a) ? TOLD_MS : a->meet_ms) * ms)
        signal_all(a, SIGKILL);
}

static void watch(launch *a, const sigset_t *mask)
{
    struct pollfd *fds = calloc((size_t)a->room, sizeof(*fds));
    struct timespec tick = {.tv_nsec = 100 * 1000000};
    while (a->n_alive > 0) {
        for (int i = 0; i < a->n; i++) {
            listen_to(a, i);
            if (fds != NULL)
                fds[i] = (struct pollfd){.fd = a->child[i].err, .events = POLLIN};
        }
        reap(a);
        press(a);
        if (a->members != NULL)
            cli_members_tick(a->members);
        if (a->n_alive > 0)
            (void)ppoll(fds, fds != NULL ? (nfds_t)a->n : 0, &tick, mask);
    }
    for (int i = 0; i < a->n; i++)
        listen_to(a, i);
    free(fds);
}

static int code_of(const launch *a)
{
    if (a->first < 0) {
        for (int i = 0; i < a->n; i++)
            if (a->child[i].state != CLI_OUT && WEXITSTATUS(a->child[i].status) != CLI_OK)
                return WEXITSTATUS(a->child[i].status);
        return CLI_OK;
    }
    const child *c = &a->child[a->first];
    const cli_process *p = &a->l->processes[a->child[a->first].slot];
    // Asked to end after the last step was saved, some leave before the others.
    for (int i = 0; a->ended_ns != 0 && WIFEXITED(c->status) && i < a->n; i++)
        if (WEXITSTATUS(c->status) == CLI_LOST && WIFEXITED(a->child[i].status) &&
            WEXITSTATUS(a->child[i].status) == CLI_AGAIN)
            return CLI_AGAIN;
    if (WIFSIGNALED(c->status)) {
        cli_tell("rank %d%s%s was killed by signal %d (%s)\n", a->first,
                 p->host != NULL ? " on " : "", p->host != NULL ? p->host : "", WTERMSIG(c->status),
                 strsignal(WTERMSIG(c->status)));
        return interrupts > 1 ? CLI_BREAK : CLI_LOST;
    }
    if (p->host != NULL && WEXITSTATUS(c->status) == 255) {
        cli_tell("rank %d: cannot reach host %s (%s exited with code 255)\n", a->first, p->host,
                 p->words[0]);
        return CLI_FAILED;
    }
    return WEXITSTATUS(c->status);
}

// ---- all of it -------------------------------------------------------------------------------

static void take(int number, void (*handler)(int))
{
    struct sigaction old, new = {.sa_handler = handler};
    sigemptyset(&new.sa_mask);
    if (sigaction(number, NULL, &old) == 0 && old.sa_handler != SIG_IGN)
        sigaction(number, &new, NULL);
}

static bool start_all(launch *a)
{
    for (int i = 0; i < a->l->n; i++)
        if (cli_launch_start(a, i) < 0) {
            cli_error("cannot start process %d of %d: %s", i, a->l->n, strerror(errno));
            signal_all(a, SIGKILL);
            return false;
        }
    return true;
}

int cli_launch_run(const cli_launch *l)
{
    sigset_t ours, old;
    launch a = {.l = l, .first = -1, .meet_ms = tti_timeout_ms(TTI_RENDEZVOUS_MS, l->n, true)};
    a.room = l->n + (l->elastic != NULL ? MOST_MORE : 0);
    a.mask = &old;
    a.child = calloc((size_t)a.room, sizeof(*a.child));
    if (a.child != NULL && l->elastic != NULL)
        a.members = cli_members_new(&a);
    if (a.child == NULL || (l->elastic != NULL && a.members == NULL)) {
        free(a.child);
        return cli_error("out of memory");
    }
    a.leader = l->elastic != NULL ? -1 : 0;
    sigemptyset(&ours); // they come while ppoll() waits, so none is missed
    int numbers[] = {SIGINT, SIGTERM, SIGHUP, SIGCHLD};
    for (int i = 0; i < TTI_COUNT(numbers); i++)
        sigaddset(&ours, numbers[i]);
    sigprocmask(SIG_BLOCK, &ours, &old);
    for (int i = 0; i < 3; i++)
        take(numbers[i], on_end);
    take(SIGCHLD, on_child);
    signal(SIGPIPE, SIG_IGN);
    bool started = start_all(&a);
    watch(&a, &old);
    int rc = started ? code_of(&a) : CLI_FAILED;
    if (rc != CLI_OK && rc != CLI_AGAIN)
        tell_rest(&a);
    sigprocmask(SIG_SETMASK, &old, NULL);
    for (int i = 0; i < a.n; i++) {
        if (a.child[i].in >= 0)
            close(a.child[i].in);
        if (a.child[i].err >= 0)
            close(a.child[i].err);
        free(a.child[i].said);
    }
    cli_members_free(a.members);
    free(a.child);
    return rc;
}
