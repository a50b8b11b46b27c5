/*
 * ranks.c - a job's other processes, as the verbs see them.
 */
#include "cli/ranks.h"
#include "base/secure.h"
#include "cli/elastic.h"
#include "cli/signals.h"
#include "cluster/cluster.h"
#include "net/world.h"
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

bool cli_is_first(const tt_ctx *ctx)
{
    return cli_rank(ctx) == 0;
}

int cli_rank(const tt_ctx *ctx)
{
    return ctx->world == NULL ? 0 : tti_world_self(ctx->world);
}

int cli_ranks(const tt_ctx *ctx)
{
    return ctx->world == NULL ? 1 : tti_world_size(ctx->world);
}

// ---- joining ---------------------------------------------------------------------------------

// Lines of a resolved job that may differ from process to process.
static bool is_own(const char *line)
{
    line += strspn(line, " ");
    return strncmp(line, "devices:", 8) == 0 || strncmp(line, "threads:", 8) == 0 ||
           strncmp(line, "workers:", 8) == 0 || strncmp(line, "prefetch:", 9) == 0;
}

// What all processes are about to do, which must be the same; NULL: out of memory.
static char *job_text(cli_job *j, const cli_args *args)
{
    char *whole = tt_job_print(j->job);
    bool goes_on = cli_elastic_is_on(); // some were told so, for others it goes without saying
    tti_text t = {.ctx = j->reader};
    for (char *line = whole, *next; line != NULL && *line != '\0'; line = next) {
        size_t n = strcspn(line, "\n");
        next = line[n] == '\n' ? line + n + 1 : NULL;
        if (!is_own(line))
            tti_text_put(&t, line, n + (next != NULL));
    }
    tti_text_add(
        &t, "\ntutti %s, resume %d restart %d profile %lld trace %lld hashes %d dry-run %d\n",
        args->verb->name, args->resume && !goes_on, args->restart && !goes_on,
        (long long)args->profile, (long long)args->trace, args->hashes != NULL, args->dry_run);
    tt_string_free(j->reader, whole);
    return tti_text_take(&t);
}

// Parameter servers and evaluators, which do not train.
static int stand_aside(cli_job *j, const cli_args *args, const tt_cluster *c)
{
    const tt_task *t = &c->tasks[c->task];
    if (strcmp(t->job, "ps") == 0) {
        (void)TT_FAIL(j->reader, TT_EUNSUPPORTED,
                      "this process is ps %d (%s), but Tutti has no parameter servers: remove ps "
                      "from the cluster",
                      t->index, c->found_in);
        return CLI_BAD_JOB;
    }
    j->evaluates = args->verb == &cli_train && !args->dry_run;
    cli_tell("this is %s %d (%s), which %s\n", t->job, t->index, c->found_in,
             j->evaluates ? "evaluates new checkpoints of the run"
                          : "has no work: the training processes evaluate together");
    return CLI_OK;
}

static const char *get_env(const void *user, const char *name)
{
    (void)user;
    return tti_env(name);
}

// From tutti run it is the first line of standard input. What follows there is requests, which are
// listened to from now on: also while others are waited for.
tt_status cli_take_secret(tt_ctx *ctx)
{
    typedef struct told {
        unsigned char secret[TT_SECRET_BYTES];
        char text[TTI_SECRET_TEXT];
    } told;
    const char *file = tti_env("TUTTI_SECRET_FILE");
    bool has;
    if (file == NULL || strcmp(file, "-") != 0)
        return TT_OK;
    told *t = tti_secure_new(ctx, sizeof(*t));
    if (t == NULL)
        return TT_ENOMEM;
    tt_status st = tti_secret_find(ctx, &(tti_cluster_env){.get = get_env}, t->secret, &has);
    if (st == TT_OK) {
        tti_secret_print(t->secret, t->text);
        bool ok = setenv("TUTTI_SECRET", t->text, 1) == 0 && unsetenv("TUTTI_SECRET_FILE") == 0;
        st = ok ? TT_OK : TT_FAIL(ctx, TT_ENOMEM, "out of memory");
    }
    tti_secure_free(t, sizeof(*t));
    if (st == TT_OK)
        cli_follow_launcher();
    return st;
}

int cli_join(cli_job *j, const cli_args *args, cli_cluster *out, bool *is_beside)
{
    tt_cluster *c = NULL;
    *out = (cli_cluster){NULL, NULL};
    *is_beside = false;
    if (args->alone) // as if nobody else had been started
        setenv("TUTTI_CLUSTER", "ignore", 1);
    tt_status st = tt_cluster_find(j->reader, &c);
    if (st != TT_OK) {
        fputs("tutti: tutti env shows what was found; set TUTTI_CLUSTER=ignore to ignore it\n",
              stderr);
        return st == TT_ENOMEM ? CLI_FAILED : CLI_BAD_JOB;
    }
    out->found = c;
    if (c->rank < 0) {
        *is_beside = true;
        return stand_aside(j, args, c);
    }
    if (c->n_processes == 1)
        return CLI_OK;
    (void)cli_signals_join(j->reader);
    st = cli_take_secret(j->reader);
    if (st == TT_OK)
        st = tt_cluster_tasks(j->reader, c, args->verb->name, &out->tasks);
    (void)cli_signals_join(NULL);
    char *told = getenv("TUTTI_SECRET");
    if (told != NULL) // it was read: now it is in no core dump and in no child's environment
        explicit_bzero(told, strlen(told));
    return st == TT_OK ? CLI_OK : cli_code(st);
}

void cli_join_free(cli_job *j, cli_cluster *c)
{
    tt_tasks_free(j->reader, c->tasks);
    tt_cluster_free(j->reader, c->found);
    *c = (cli_cluster){NULL, NULL};
}

// ---- the launcher ----------------------------------------------------------------------------

#define GRACE_S 60 // a rank that nobody waits for any more has that long to save

// Lines from tutti run: "end" is a request to save and end. Nothing more comes: it is gone.
static void *follow(void *arg)
{
    (void)arg;
    char *line = NULL;
    size_t room = 0;
    for (ssize_t n; (n = getline(&line, &room, stdin)) > 0;) {
        line[n - (line[n - 1] == '\n')] = '\0';
        if (strcmp(line, "end") == 0)
            kill(getpid(), SIGTERM);
        if (cli_elastic_is_on())
            cli_elastic_order(line);
    }
    free(line);
    if (cli_elastic_is_on())
        cli_elastic_order("gone");
    kill(getpid(), SIGTERM);
    sleep(GRACE_S);
    _exit(CLI_LOST);
}

void cli_follow_launcher(void)
{
    pthread_t thread;
    pthread_attr_t attr;
    sigset_t all, old;
    sigfillset(&all); // signals are for the main thread
    pthread_sigmask(SIG_SETMASK, &all, &old);
    pthread_attr_init(&attr);
    pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_DETACHED);
    (void)pthread_create(&thread, &attr, follow, NULL);
    pthread_attr_destroy(&attr);
    pthread_sigmask(SIG_SETMASK, &old, NULL);
}

// ---- what ranks tell each other --------------------------------------------------------------

#define JOB_MOST 32768

// The first line of a that is not the same in b, n characters; false: there is none.
static bool first_difference(const char *a, const char *b, int line[4])
{
    size_t at = 0, begin = 0;
    while (a[at] != '\0' && a[at] == b[at])
        begin = a[at++] == '\n' ? at : begin;
    line[0] = line[2] = (int)begin;
    line[1] = (int)strcspn(a + begin, "\n");
    line[3] = (int)strcspn(b + begin, "\n");
    return a[at] != b[at];
}

static tt_status find_difference(tt_ctx *ctx, const char *all)
{
    for (int i = 1; i < cli_ranks(ctx); i++) {
        const char *theirs = all + (size_t)i * JOB_MOST;
        const tti_rank *r = tti_world_rank(ctx->world, i);
        int at[4];
        if (first_difference(theirs, all, at))
            return TT_FAIL(
                ctx, TT_EINVAL,
                "rank %d (%s, host %s, pid %d) has a different job: its line is '%.*s', on rank 0 "
                "it is '%.*s'; start all ranks with the same job file and flags",
                i, r->name, r->host, r->pid, TTI_MIN(at[1], 200), theirs + at[0],
                TTI_MIN(at[3], 200), all + at[2]);
    }
    return TT_FAIL(ctx, TT_EINVAL,
                   "the ranks have different jobs (after the first %d characters); start all ranks "
                   "with the same job file and flags",
                   JOB_MOST);
}

tt_status cli_compare_jobs(cli_job *j, const cli_args *args)
{
    tt_hash hash, all_hash[TT_MAX_TASKS];
    tt_ctx *ctx = j->ctx;
    int n = cli_ranks(ctx);
    if (n == 1)
        return TT_OK;
    char *text = job_text(j, args);
    if (text == NULL)
        return TT_FAIL(ctx, TT_ENOMEM, "out of memory");
    hash = tti_hash128(text, strlen(text));
    tt_status st = tti_world_exchange(ctx->world, "the job", &hash, sizeof(hash), all_hash, 0);
    bool same = true;
    for (int i = 0; st == TT_OK && i < n; i++)
        same = same && all_hash[i].low == all_hash[0].low && all_hash[i].high == all_hash[0].high;
    if (st == TT_OK && !same) {
        char *mine = tti_calloc(ctx, (size_t)n + 1, JOB_MOST), *all = mine + JOB_MOST;
        if (mine != NULL)
            snprintf(mine, JOB_MOST, "%s", text);
        st = mine == NULL
                 ? TT_ENOMEM
                 : tti_world_exchange(ctx->world, "the job's lines", mine, JOB_MOST, all, 0);
        if (st == TT_OK)
            st = find_difference(ctx, all);
        tti_free(ctx, mine);
    }
    tti_free(j->reader, text);
    return st;
}

tt_status cli_share_path(tt_ctx *ctx, tt_status st, const char *message, char path[TTI_RUN_PATH])
{
    typedef struct word {
        int32_t status;
        char path[TTI_RUN_PATH], message[TTI_MESSAGE_MAX];
    } word;
    if (cli_ranks(ctx) == 1)
        return st;
    word *all = tti_calloc(ctx, (size_t)cli_ranks(ctx) + 1, sizeof(*all));
    if (all == NULL)
        return TT_ENOMEM;
    word *mine = &all[cli_ranks(ctx)];
    mine->status = (int32_t)st;
    snprintf(mine->path, sizeof(mine->path), "%s", path);
    snprintf(mine->message, sizeof(mine->message), "%s", message);
    tt_status met = tti_world_exchange(ctx->world, "the run's folder", mine, sizeof(*mine), all, 0);
    if (met == TT_OK && !cli_is_first(ctx)) {
        all[0].path[TTI_RUN_PATH - 1] = all[0].message[sizeof(all[0].message) - 1] = '\0';
        memcpy(path, all[0].path, TTI_RUN_PATH);
        st = (tt_status)all[0].status;
    }
    if (met == TT_OK && st != TT_OK)
        (void)TT_FAIL(ctx, st, "%s", all[0].message);
    tti_free(ctx, all);
    return st != TT_OK ? st : met;
}

// ---- who there is ----------------------------------------------------------------------------

typedef struct links {
    float rate[TT_MAX_TASKS], latency[TT_MAX_TASKS];
    uint8_t shares_memory[TT_MAX_TASKS];
    char devices[256];
} links;

static void print_text(tti_text *t, tt_ctx *ctx, const links *all)
{
    int n = cli_ranks(ctx);
    tti_text_add(t, "%d processes\n  %4s  %-20s %-16s %8s  %s\n", n, "rank", "task", "host", "pid",
                 "devices");
    for (int i = 0; i < n; i++) {
        const tti_rank *r = tti_world_rank(ctx->world, i);
        tti_text_add(t, "  %4d  %-20s %-16s %8d  %s\n", i, r->name, r->host, r->pid,
                     all[i].devices);
    }
    tti_text_add(t, "  %-9s %-9s %10s %10s\n", "link", "transport", "GB/s", "us");
    for (int i = 0; i < n; i++)
        for (int k = i + 1; k < n; k++) {
            char pair[32];
            snprintf(pair, sizeof(pair), "%d-%d", i, k);
            tti_text_add(t, "  %-9s %-9s %10.2f %10.0f\n", pair,
                         all[i].shares_memory[k] ? "shm" : "wire", 1e-9 * (double)all[i].rate[k],
                         (double)all[i].latency[k]);
        }
}

static void print_json(tti_text *t, tt_ctx *ctx, const links *all)
{
    int n = cli_ranks(ctx);
    tti_text_add(t, "{\"event\": \"ranks\", \"ranks\": [");
    for (int i = 0; i < n; i++) {
        const tti_rank *r = tti_world_rank(ctx->world, i);
        tti_text_add(t, "%s{\"rank\": %d, \"task\": ", i > 0 ? ", " : "", i);
        tti_text_json(t, r->name);
        tti_text_add(t, ", \"host\": ");
        tti_text_json(t, r->host);
        tti_text_add(t, ", \"pid\": %d, \"devices\": ", r->pid);
        tti_text_json(t, all[i].devices);
        tti_text_add(t, "}");
    }
    tti_text_add(t, "], \"links\": [");
    for (int i = 0; i < n; i++)
        for (int k = i + 1; k < n; k++)
            tti_text_add(t,
                         "%s{\"ranks\": [%d, %d], \"transport\": \"%s\", \"bytes_per_second\": "
                         "%.0f, \"latency_us\": %.1f}",
                         i + k > 1 ? ", " : "", i, k, all[i].shares_memory[k] ? "shm" : "wire",
                         (double)all[i].rate[k], (double)all[i].latency[k]);
    tti_text_add(t, "]}\n");
}

static void list_devices(const tt_ctx *ctx, char *out, size_t room)
{
    const char *given = tti_world_rank(ctx->world, cli_rank(ctx))->devices;
    snprintf(out, room, "%s", given);
}

tt_status cli_tell_ranks(tt_ctx *ctx, const cli_args *args)
{
    int n = cli_ranks(ctx);
    if (n == 1)
        return TT_OK;
    links *all = tti_calloc(ctx, (size_t)n + 1, sizeof(*all));
    if (all == NULL)
        return TT_ENOMEM;
    links *mine = &all[n];
    for (int i = 0; i < n; i++) {
        const tti_rank *r = tti_world_rank(ctx->world, i);
        mine->rate[i] = (float)r->bytes_per_second;
        mine->latency[i] = (float)r->latency_us;
        mine->shares_memory[i] = r->shares_memory;
    }
    list_devices(ctx, mine->devices, sizeof(mine->devices));
    tt_status st = tti_world_exchange(ctx->world, "links", mine, sizeof(*mine), all, 0);
    tti_text t = {.ctx = ctx};
    if (st == TT_OK && cli_is_first(ctx) && !args->quiet) {
        for (int i = 0; i < n; i++)
            all[i].devices[sizeof(all[i].devices) - 1] = '\0';
        if (args->json)
            print_json(&t, ctx, all);
        else
            print_text(&t, ctx, all);
        cli_print_text(&t);
        fflush(stdout);
    }
    tti_free(ctx, all);
    return st;
}
