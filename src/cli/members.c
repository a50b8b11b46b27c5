/*
 * members.c - who belongs to an elastic job. The launcher alone decides, so there is never more
 * than one membership: where processes cannot hear each other, those that it chooses go on, and
 * the others end.
 *
 * A membership has a number, which only grows. When a member has ended, or members say that one is
 * lost, all that are left say that they are ready, and how far the state is that they have in
 * memory. When all of them have, the next membership begins: the lowest rank that is left becomes
 * the first, and all take the newest state. Who was not waited for is told that it is out as soon
 * as it listens. Processes that come or go of the user's will are waited for in the same way, after
 * all members have ended the same step.
 */
#include "base/base.h"
#include "base/file.h"
#include "base/thread.h"
#include "cli/elastic.h"
#include "cli/launch_own.h"
#include "cli/resize.h"
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define MS      INT64_C(1000000)
#define LATE_MS 60000 // after the first member is ready, until one that is not is out
#define PING_MS 200
#define WAIT_S  60
#define ASK_MS  200 // between two looks for a request

struct cli_members {
    cli_launching *a;
    const cli_elastic_opts *o;
    int64_t epoch;
    int wanted;         // processes
    bool is_forming;    // members are waited for
    bool is_asked;      // to end at a step, for others to come or to go
    int64_t forming_ns; // since when
    int64_t since_ns;   // when the first loss happened, or a process came
    int64_t below_ns;   // since when there are too few; 0: there are enough
    int64_t asked_ns;   // when a request was looked for
    int64_t replaced;   // processes that were started for others
    bool has_finished;  // a member has ended well
    char why[400];      // for the next membership
    char run[TTI_RUN_PATH];
    char text[TT_MAX_TASKS * 64 + TTI_RUN_PATH + 1024]; // a line
};

struct cli_members *cli_members_new(cli_launching *a)
{
    struct cli_members *m = calloc(1, sizeof(*m));
    if (m == NULL)
        return NULL;
    m->a = a;
    m->o = a->l->elastic;
    m->wanted = a->l->n;
    m->is_forming = true;
    m->forming_ns = tti_now_ns();
    return m;
}

void cli_members_free(struct cli_members *m)
{
    free(m);
}

static bool is_here(const cli_child *c)
{
    return c->pid > 0 && c->state != CLI_OUT;
}

static int count(const struct cli_members *m, cli_member_state state)
{
    int n = 0;
    for (int i = 0; i < m->a->n; i++)
        n += m->a->child[i].pid > 0 && m->a->child[i].state == state;
    return n;
}

static void order(struct cli_members *m, int i, const char *line)
{
    cli_child *c = &m->a->child[i];
    size_t n = strlen(line);
    // A pipe that is full is that of a process that is frozen, and will be out.
    if (c->pid > 0 && (write(c->in, line, n) != (ssize_t)n || write(c->in, "\n", 1) != 1))
        return;
}

static const char *host_of(const struct cli_members *m, int i)
{
    const char *host = m->a->l->processes[m->a->child[i].slot].host;
    return host != NULL ? host : m->o->machine;
}

static void add_why(struct cli_members *m, const char *text)
{
    size_t n = strlen(m->why);
    if (strstr(m->why, text) == NULL)
        snprintf(m->why + n, sizeof(m->why) - n, "%s%s", n > 0 ? ", " : "", text);
}

static void begin_forming(struct cli_members *m, int64_t since_ns)
{
    if (!m->is_forming) {
        m->is_forming = true;
        m->forming_ns = tti_now_ns();
        m->since_ns = since_ns;
    }
    m->since_ns = TTI_MIN(m->since_ns, since_ns);
}

// A member is no longer one; how: "killed by signal 9 (Killed)".
static void lose(struct cli_members *m, int i, const char *how)
{
    cli_child *c = &m->a->child[i];
    char text[256];
    if (c->state == CLI_OUT)
        return;
    snprintf(text, sizeof(text), "rank %d on %.120s lost: %s", c->rank, host_of(m, i), how);
    if (m->epoch > 0 && c->rank >= 0)
        add_why(m, text);
    c->state = CLI_OUT;
    if (c->pid <= 0)
        return;
    snprintf(m->text, sizeof(m->text),
             "out\tthis process is out of the job: as rank %d it was taken for lost (%s), and the "
             "others went on without it; it has published nothing since",
             c->rank, how);
    order(m, i, m->text);
}

// ---- what they say ---------------------------------------------------------------------------

static int child_of_rank(const struct cli_members *m, int64_t rank)
{
    for (int i = 0; i < m->a->n; i++)
        if (m->a->child[i].rank == rank && m->a->child[i].state != CLI_OUT)
            return i;
    return -1;
}

static void on_ready(struct cli_members *m, int i, char *rest)
{
    cli_child *c = &m->a->child[i];
    int64_t age = -1, port = 0, lost = -1, silent = 0, *to[] = {&age, &port, &lost, &silent};
    for (int k = 0; k < TTI_COUNT(to) && rest != NULL; k++)
        *to[k] = atoll(strsep(&rest, "\t"));
    bool was_member = c->state == CLI_MEMBER;
    if (c->state == CLI_OUT || port < 1 || port > 65535)
        return; // it will be told, or has been
    c->state = CLI_READY;
    c->age = age;
    c->port = (int)port;
    if (!was_member)
        return;
    int64_t now = tti_now_ns();
    begin_forming(m, now - silent * MS);
    int who = lost >= 0 ? child_of_rank(m, lost) : -1;
    if (who < 0 || who == i || m->a->child[who].state != CLI_MEMBER)
        return;
    char how[64];
    if (m->a->child[who].pid > 0) {
        snprintf(how, sizeof(how), silent > 0 ? "no heartbeat for %.1f s" : "no progress",
                 1e-3 * (double)silent);
        lose(m, who, how);
    }
}

static void hear_line(struct cli_members *m, int i, char *line)
{
    char *rest = line, *word = strsep(&rest, "\t");
    if (strcmp(word, "ready") == 0)
        on_ready(m, i, rest);
    else if (strcmp(word, "alive") == 0)
        m->a->child[i].alive_ns = tti_now_ns();
    else if (strcmp(word, "run") == 0 && rest != NULL && m->a->child[i].state == CLI_MEMBER)
        snprintf(m->run, sizeof(m->run), "%s", rest);
}

size_t cli_members_hear(struct cli_members *m, int i, char *s, size_t n)
{
    cli_child *c = &m->a->child[i];
    size_t kept = 0;
    for (size_t k = 0; k < n; k++) {
        if (s[k] == CLI_ELASTIC_MARK) {
            c->is_telling = true;
            c->n_line = 0;
        } else if (c->is_telling && s[k] == '\n') {
            c->line[c->n_line] = '\0';
            c->is_telling = false;
            hear_line(m, i, c->line);
        } else if (c->is_telling) {
            c->line[c->n_line] = s[k];
            c->n_line += c->n_line + 1 < sizeof(c->line);
        } else {
            s[kept++] = s[k];
        }
    }
    return kept;
}

bool cli_members_ended(struct cli_members *m, int i)
{
    cli_child *c = &m->a->child[i];
    char how[96];
    if (c->state == CLI_OUT)
        return true;
    bool killed = WIFSIGNALED(c->status);
    int code = killed ? 0 : WEXITSTATUS(c->status);
    if (!killed && code != CLI_LOST && code != 255) { // 255: ssh has lost its host
        m->has_finished |= code == CLI_OK || code == CLI_AGAIN;
        return false;
    }
    if (m->epoch == 0)
        return false; // the job has not begun
    if (killed)
        snprintf(how, sizeof(how), "killed by signal %d (%s)", WTERMSIG(c->status),
                 strsignal(WTERMSIG(c->status)));
    else
        snprintf(how, sizeof(how), "ended with code %d", code);
    bool was_member = c->state == CLI_MEMBER;
    if (was_member || c->state == CLI_READY)
        begin_forming(m, tti_now_ns());
    lose(m, i, how);
    // Members that are connecting just now would wait for it.
    for (int k = 0; was_member && k < m->a->n; k++)
        if (m->a->child[k].state == CLI_MEMBER)
            order(m, k, "lost");
    return true;
}

// ---- a new membership ------------------------------------------------------------------------

/*
 * A member that is not ready yet may be at the end of a long kernel, or copy a large state: as long
 * as it answers, it is waited for. One that is frozen does not.
 */
static bool is_awaited(struct cli_members *m, int i, int64_t now)
{
    cli_child *c = &m->a->child[i];
    if (now - TTI_MAX(m->forming_ns, c->alive_ns) > m->o->loss_ms * MS ||
        now - m->forming_ns > LATE_MS * MS) {
        lose(m, i, "no answer");
        return false;
    }
    if (now - c->pinged_ns > PING_MS * MS) {
        c->pinged_ns = now;
        order(m, i, "ping");
    }
    return true;
}

static bool waits_for_members(struct cli_members *m)
{
    int64_t now = tti_now_ns();
    bool waits = false;
    if (m->epoch == 0) // all of the first ones, as in a job of fixed size
        return count(m, CLI_STARTING) > 0;
    for (int i = 0; i < m->a->n; i++)
        if (m->a->child[i].pid > 0 && m->a->child[i].state == CLI_MEMBER)
            waits |= is_awaited(m, i, now);
    return waits;
}

// Members before newcomers, by rank; newcomers as they were started.
static int list_ready(const struct cli_members *m, int *out)
{
    int n = 0;
    for (int rank = 0; rank < TT_MAX_TASKS; rank++)
        for (int i = 0; i < m->a->n; i++) {
            const cli_child *c = &m->a->child[i];
            if (c->pid > 0 && c->state == CLI_READY && c->rank == rank)
                out[n++] = i;
        }
    for (int i = 0; i < m->a->n; i++) {
        const cli_child *c = &m->a->child[i];
        if (c->pid > 0 && c->state == CLI_READY && c->rank < 0)
            out[n++] = i;
    }
    return n;
}

static size_t put_addresses(struct cli_members *m, const int *who, int n, char *to, size_t room)
{
    size_t at = 0;
    for (int i = 0; i < n && at < room; i++) {
        const cli_child *c = &m->a->child[who[i]];
        at += (size_t)snprintf(to + at, room - at, "%s%s:%d", i > 0 ? "," : "",
                               m->o->hosts[c->slot], c->port);
    }
    return at;
}

static void tell_count(struct cli_members *m, int n, const char *what)
{
    char text[64];
    snprintf(text, sizeof(text), "%d worker%s %s", n, n == 1 ? " has" : "s have", what);
    if (n > 0)
        add_why(m, text);
}

static void form(struct cli_members *m, const int *who, int n, bool ends)
{
    int64_t now = tti_now_ns(), newest = -1;
    int source = -1;
    for (int i = m->wanted; i < n; i++) { // more than are wanted
        m->a->child[who[i]].state = CLI_OUT;
        order(m, who[i], "leave");
    }
    tell_count(m, n - m->wanted, "left");
    n = TTI_MIN(n, m->wanted);
    int came = 0;
    for (int i = 0; i < n; i++) {
        const cli_child *c = &m->a->child[who[i]];
        came += c->rank < 0 && m->epoch > 0;
        if (c->age > newest) {
            newest = c->age;
            source = i;
        }
    }
    tell_count(m, came, "joined");
    m->epoch++;
    for (int i = 0; i < n; i++) {
        size_t at = (size_t)snprintf(
            m->text, sizeof(m->text), "epoch\t%lld\t%d\t%d\t%d\t%lld\t%d\t%s\t%s\t",
            (long long)m->epoch, n, i, source, (long long)((now - m->since_ns) / MS), ends, m->run,
            m->epoch > 1 ? m->why : "");
        (void)put_addresses(m, who, n, m->text + at, sizeof(m->text) - at);
        m->a->child[who[i]].state = CLI_MEMBER;
        m->a->child[who[i]].rank = i;
        order(m, who[i], m->text);
    }
    m->a->leader = who[0];
    m->is_forming = m->is_asked = false;
    m->below_ns = 0;
    m->why[0] = '\0';
}

static void replace(struct cli_members *m)
{
    while (m->replaced < m->o->replace && m->a->ended_ns == 0 && !m->has_finished) {
        int n = 0, slot = 0;
        bool used[TT_MAX_TASKS] = {false};
        for (int i = 0; i < m->a->n; i++)
            if (is_here(&m->a->child[i])) {
                n++;
                used[m->a->child[i].slot] = true;
            }
        while (slot < m->o->max && used[slot])
            slot++;
        if (n >= m->wanted || slot == m->o->max || cli_launch_start(m->a, slot) < 0)
            return;
        m->replaced++;
    }
}

static void form_if_ready(struct cli_members *m)
{
    int who[TT_MAX_TASKS];
    if (waits_for_members(m))
        return;
    int n = list_ready(m, who);
    bool ends = m->a->ended_ns != 0;
    for (int i = 0; i < n && m->has_finished; i++) { // the job has come to its end without them
        m->a->child[who[i]].state = CLI_OUT;
        order(m, who[i], "leave");
    }
    if (n == 0 || m->has_finished)
        return;
    if (n < m->o->min && m->epoch > 0 && !ends) {
        int64_t now = tti_now_ns(), wait = m->o->wait_s > 0 ? m->o->wait_s : WAIT_S;
        if (m->below_ns == 0) {
            m->below_ns = now;
            cli_tell("%s; %d worker%s left, and the job needs %d: waiting %lld s for more (tutti "
                     "resize), then it is saved\n",
                     m->why, n, n == 1 ? " is" : "s are", m->o->min, (long long)wait);
        }
        ends = now - m->below_ns >= wait * 1000 * MS;
        if (!ends)
            return;
    }
    form(m, who, n, ends);
}

// ---- requests --------------------------------------------------------------------------------

static void look_for_request(struct cli_members *m)
{
    int64_t now = tti_now_ns();
    char refused[256] = "";
    int wanted = m->wanted;
    if (m->run[0] == '\0' || now - m->asked_ns < ASK_MS * MS)
        return;
    m->asked_ns = now;
    if (!cli_resize_take(m->run, &wanted))
        return;
    if (wanted < m->o->min || wanted > m->o->max)
        snprintf(refused, sizeof(refused), "the job has --workers %d..%d; %d is not within that",
                 m->o->min, m->o->max, wanted);
    cli_resize_answer(m->run, refused);
    if (refused[0] != '\0')
        return;
    m->wanted = wanted;
    for (int n = count(m, CLI_MEMBER) + count(m, CLI_READY) + count(m, CLI_STARTING), slot = 0;
         n < wanted && slot < m->o->max; slot++) {
        bool used = false;
        for (int i = 0; i < m->a->n; i++)
            used |= is_here(&m->a->child[i]) && m->a->child[i].slot == slot;
        if (!used && cli_launch_start(m->a, slot) >= 0)
            n++;
    }
}

// Processes that wait, or members that are too many: all end the same step first.
static void ask_for_change(struct cli_members *m)
{
    int members = count(m, CLI_MEMBER), ready = count(m, CLI_READY);
    bool grows = ready > 0 && members<m->wanted, shrinks = members> m->wanted;
    if (m->is_asked || m->has_finished || m->a->ended_ns != 0 || (!grows && !shrinks))
        return;
    m->is_asked = true;
    m->since_ns = tti_now_ns();
    for (int i = 0; i < m->a->n; i++)
        if (m->a->child[i].state == CLI_MEMBER)
            order(m, i, "change");
}

// All that is left of the job are processes that do not belong to it.
static void end_rest(struct cli_members *m)
{
    if (count(m, CLI_MEMBER) > 0 ||
        (m->is_forming && !m->has_finished && count(m, CLI_READY) + count(m, CLI_STARTING) > 0))
        return;
    for (int i = 0; i < m->a->n; i++)
        if (m->a->child[i].pid > 0)
            kill(-m->a->child[i].pid, SIGKILL);
}

void cli_members_tick(struct cli_members *m)
{
    if (m->a->first >= 0) // the job has failed
        return;
    if (m->epoch > 0)
        replace(m);
    look_for_request(m);
    if (m->is_forming)
        form_if_ready(m);
    else
        ask_for_change(m);
    if (m->epoch > 0)
        end_rest(m);
}
