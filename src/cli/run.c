/*
 * run.c - tutti run: the processes of a job, here or on other hosts, each a tutti train, or a
 * program of the user, that is told who the others are. On one machine all addresses are told;
 * across hosts only the first one's: the others take a free port and meet there.
 */
#include "base/file.h"
#include "base/secure.h"
#include "cli/elastic.h"
#include "cli/engine.h"
#include "cli/launch.h"
#include "cluster/cluster.h"
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>
#include <unistd.h>

#define MOST_WORDS CLI_LAUNCH_WORDS
#define MOST_SETS  8

typedef struct starting {
    const cli_args *args;
    tt_ctx *ctx;
    tt_cluster *hosts; // NULL: processes on this machine
    int n, slots;      // processes to start, and those that may be started in all
    bool is_far;       // some are reached by ssh
    char exe[PATH_MAX], dir[PATH_MAX], machine[256];
    char *train[MOST_WORDS]; // words behind the command: train, flags, job
    int n_train, devices_at; // which of them is --devices; -1: none
    int held[TT_MAX_TASKS];
    char tasks[TT_MAX_TASKS * TTI_ADDRESS];
    char *devices[TT_MAX_TASKS]; // of each; NULL: as the job says
    cli_process processes[TT_MAX_TASKS];
    cli_elastic_opts elastic; // max 0: the job is not
    char host_text[TT_MAX_TASKS][256];
    const char *host_names[TT_MAX_TASKS];
} starting;

// ---- a job or a program ---------------------------------------------------------------------

static bool is_executable(const char *path)
{
    struct stat st;
    return stat(path, &st) == 0 && S_ISREG(st.st_mode) && access(path, X_OK) == 0;
}

// Is it a command of $PATH, an executable file or Python, and not a job file?
static bool is_program(const char *word)
{
    const char *end = strrchr(word, '.'), *path = getenv("PATH");
    char file[PATH_MAX];
    if (end != NULL && (strcmp(end, ".yaml") == 0 || strcmp(end, ".yml") == 0))
        return false;
    if (strchr(word, '/') != NULL)
        return is_executable(word);
    if (access(word, F_OK) == 0)
        return false; // a file here, which a shell would not run by that name
    if (strncmp(word, "python", 6) == 0)
        return true; // perhaps only on the machines, or in the image, where it is to run
    for (size_t n; path != NULL && *path != '\0'; path += n + (path[n] == ':')) {
        n = strcspn(path, ":");
        if (snprintf(file, sizeof(file), "%.*s/%s", (int)n, path, word) < (int)sizeof(file) &&
            is_executable(file))
            return true;
    }
    return false;
}

// ---- who ------------------------------------------------------------------------------------

static tt_status find_hosts(starting *s)
{
    const cli_args *a = s->args;
    if (a->on == NULL && a->hosts == NULL) {
        s->n = (int)a->processes;
        return TT_OK;
    }
    tt_cluster *c = tti_calloc(s->ctx, 1, sizeof(*c));
    if (c == NULL)
        return TT_ENOMEM;
    s->hosts = c;
    if (a->on != NULL) {
        TT_TRY(tti_cluster_words(s->ctx, a->on, c));
    } else {
        char *text;
        size_t bytes;
        TT_TRY(tti_stream_read(s->ctx, a->hosts, TT_CLUSTER_MAX_TEXT, &text, &bytes));
        c->text = text;
        TT_TRY(tti_cluster_hosts(s->ctx, a->hosts, text, bytes, "0", s->machine, c));
    }
    s->n = c->n_processes;
    if (s->n > TT_MAX_TASKS)
        return TT_FAIL(s->ctx, TT_EINVAL, "%s names %d processes; at most %d are allowed", a->hosts,
                       s->n, TT_MAX_TASKS);
    return TT_OK;
}

// The host of an address without its port.
static void host_of(const char *address, char out[256])
{
    size_t n = address[0] == '[' ? strcspn(address, "]") + 1 : strcspn(address, ":");
    snprintf(out, 256, "%.*s", (int)n, address);
}

static const tt_task *task_of(const starting *s, int rank)
{
    int i = 0;
    while (s->hosts->tasks[i].first_rank + s->hosts->tasks[i].n_processes <= rank)
        i++;
    return &s->hosts->tasks[i];
}

// With a command to reach hosts of one's own, all are reached by it.
static bool is_far(const starting *s, const char *host)
{
    return s->args->ssh != NULL || !(tti_is_loopback(host) || strcasecmp(host, s->machine) == 0);
}

// ---- where ----------------------------------------------------------------------------------

static tt_status near_addresses(starting *s)
{
    size_t at = 0;
    if (s->elastic.max > 0)
        return TT_OK; // each chooses its own
    for (int i = 0; i < s->n; i++) {
        int port = i == 0 && s->args->port > 0 ? (int)s->args->port
                                               : tti_port_hold("127.0.0.1", &s->held[i]);
        if (port == 0)
            return TT_FAIL(s->ctx, TT_EIO, "127.0.0.1 has no free port: %s", strerror(errno));
        at += (size_t)snprintf(s->tasks + at, sizeof(s->tasks) - at, "%s127.0.0.1:%d",
                               i > 0 ? "," : "", port);
    }
    return TT_OK;
}

// The first one's port is free here, which says little of there; --port says another.
static tt_status far_addresses(starting *s)
{
    char host[256];
    const char *first = s->hosts->tasks[0].address, *colon = strrchr(first, ':');
    int port = (int)s->args->port, fd = -1;
    host_of(first, host);
    if (tti_is_loopback(host) && s->hosts->n_tasks > 1)
        return TT_FAIL(s->ctx, TT_EINVAL,
                       "the first host is %s, which the other hosts cannot reach; give it by a "
                       "name or address that they can reach",
                       host);
    if (port == 0 && colon != NULL && first[0] != '[')
        (void)!tti_cluster_number(colon + 1, 65535, &port); // of a hosts file
    if (port == 0)
        port = tti_port_hold("127.0.0.1", &fd);
    if (fd >= 0)
        close(fd);
    size_t at = (size_t)snprintf(s->tasks, sizeof(s->tasks), "%s:%d", host, port);
    for (int i = 1; i < s->n; i++)
        at += (size_t)snprintf(s->tasks + at, sizeof(s->tasks) - at, ",?");
    return TT_OK;
}

// ---- what -----------------------------------------------------------------------------------

// --devices "cpu:0*2;cpu:0": of each process; one list without ';' is for all.
static tt_status deal_devices(starting *s)
{
    const char *list = s->args->devices;
    int n = 0;
    if (list == NULL || strchr(list, ';') == NULL)
        return TT_OK;
    for (const char *at = list;; at++) {
        size_t length = strcspn(at, ";");
        if (n < s->n && asprintf(&s->devices[n], "--devices=%.*s", (int)length, at) < 0)
            return TT_FAIL(s->ctx, TT_ENOMEM, "out of memory");
        n++;
        at += length;
        if (*at == '\0')
            break;
    }
    if (n != s->n)
        return TT_FAIL(s->ctx, TT_EINVAL,
                       "--devices '%s' lists devices for %d processes, but there are %d; a list "
                       "without ';' applies to all",
                       list, n, s->n);
    return TT_OK;
}

// The words of a program are run as they are.
static tt_status program_words(starting *s)
{
    const cli_args *a = s->args;
    char *flags[MOST_WORDS];
    int n = cli_flag_words(&cli_train, a, flags, MOST_WORDS);
    for (int i = n - 1; i > 0; i--)
        free(flags[i]);
    if (n > 0) {
        (void)TT_FAIL(s->ctx, TT_EINVAL, "%s applies to job files; a program chooses that itself",
                      flags[0]);
        free(flags[0]);
        return TT_EINVAL;
    }
    snprintf(s->exe, sizeof(s->exe), "%s", a->words[0]);
    for (; s->n_train < a->n_words - 1; s->n_train++)
        if ((s->train[s->n_train] = strdup(a->words[s->n_train + 1])) == NULL)
            return TT_FAIL(s->ctx, TT_ENOMEM, "out of memory");
    return TT_OK;
}

static tt_status make_words(starting *s)
{
    cli_args a = *s->args;
    a.alone = false; // which is about tutti run itself
    s->devices_at = -1;
    if (is_program(a.words[0]))
        return program_words(s);
    s->train[0] = strdup("train");
    int n = cli_flag_words(&cli_train, &a, s->train + 1, MOST_WORDS - 4);
    if (s->train[0] == NULL || n < 0)
        return TT_FAIL(s->ctx, TT_ENOMEM, "too many flags");
    for (int i = 1; i <= n; i++)
        if (strncmp(s->train[i], "--devices=", 10) == 0)
            s->devices_at = i;
    s->train[n + 1] = strdup("--");
    s->train[n + 2] = strdup(s->args->words[0]);
    s->n_train = n + 3;
    return s->train[n + 1] != NULL && s->train[n + 2] != NULL ? deal_devices(s) : TT_ENOMEM;
}

static const char *word(const starting *s, int rank, int i)
{
    return i == s->devices_at && s->devices[rank] != NULL ? s->devices[rank] : s->train[i];
}

static tt_status far_words(starting *s, int rank, const char *host, cli_process *p)
{
    const char *words[MOST_WORDS];
    const cli_args *a = s->args;
    for (int i = 0; i < s->n_train; i++)
        words[i] = word(s, rank, i);
    p->host = task_of(s, rank)->address;
    return cli_remote_words(s->ctx,
                            &(cli_remote){.rank = rank,
                                          .host = host,
                                          .ssh = a->ssh,
                                          .dir = a->dir != NULL ? a->dir : s->dir,
                                          .command = a->command != NULL ? a->command : s->exe,
                                          .words = words,
                                          .n_words = s->n_train},
                            p);
}

// For what a process says about going on.
static bool set_started_by(const cli_args *a, char **out)
{
    char who[32];
    snprintf(who, sizeof(who), "%lld", (long long)a->processes);
    const char *flag = a->processes > 0 ? "-n" : a->on != NULL ? "-H" : "--hosts";
    const char *value = a->processes > 0 ? who : a->on != NULL ? a->on : a->hosts;
    return asprintf(out, "TUTTI_STARTED_BY=tutti run %s %s%s%s", flag, value,
                    a->workers != NULL ? " --workers " : "",
                    a->workers != NULL ? a->workers : "") > 0;
}

// What a process is told of the others: who they are, or that the launcher will say it.
static bool set_others(const starting *s, int rank, const char *host, char **sets)
{
    int local = rank, n_local = s->n;
    if (s->elastic.max > 0)
        return asprintf(&sets[0], CLI_ELASTIC_ENV "=%s", host) > 0 &&
               asprintf(&sets[1], "TUTTI_LOSS_MS=%lld", (long long)s->elastic.loss_ms) > 0 &&
               asprintf(&sets[2], "TUTTI_HEARTBEAT_MS=%lld",
                        (long long)TTI_MIN(250, TTI_MAX(s->elastic.loss_ms / 8, 10))) > 0;
    if (s->hosts != NULL) {
        local = rank - task_of(s, rank)->first_rank;
        n_local = task_of(s, rank)->n_processes;
    }
    return asprintf(&sets[0], "TUTTI_TASKS=%s", s->tasks) > 0 &&
           asprintf(&sets[1], "TUTTI_RANK=%d", rank) > 0 &&
           asprintf(&sets[2], "TUTTI_LOCAL=%d/%d", local, n_local) > 0;
}

static tt_status make_process(starting *s, int rank)
{
    cli_process *p = &s->processes[rank];
    char host[256] = "127.0.0.1";
    int n = 0;
    p->words = calloc(MOST_WORDS + 2, sizeof(*p->words));
    p->sets = calloc(MOST_SETS, sizeof(*p->sets));
    if (p->words == NULL || p->sets == NULL)
        return TT_FAIL(s->ctx, TT_ENOMEM, "out of memory");
    if (s->hosts != NULL)
        host_of(task_of(s, rank)->address, host);
    snprintf(s->host_text[rank], sizeof(s->host_text[rank]), "%s", host);
    s->host_names[rank] = s->host_text[rank];
    if (!set_others(s, rank, host, p->sets) ||
        (p->sets[3] = strdup("TUTTI_SECRET_FILE=-")) == NULL ||
        !set_started_by(s->args, &p->sets[4]))
        return TT_FAIL(s->ctx, TT_ENOMEM, "out of memory");
    if (s->is_far && is_far(s, host))
        return far_words(s, rank, host, p);
    p->words[n++] = strdup(s->exe);
    for (int i = 0; i < s->n_train; i++)
        p->words[n++] = strdup(word(s, rank, i));
    return TT_OK;
}

// ---- the verb -------------------------------------------------------------------------------

static tt_status prepare(starting *s)
{
    for (int i = 0; i < TT_MAX_TASKS; i++)
        s->held[i] = -1;
    ssize_t n = readlink("/proc/self/exe", s->exe, sizeof(s->exe) - 1);
    if (n < 0 || getcwd(s->dir, sizeof(s->dir)) == NULL)
        return TT_FAIL(s->ctx, TT_EIO, "cannot find the path of tutti or the working directory: %s",
                       strerror(errno));
    if (gethostname(s->machine, sizeof(s->machine) - 1) != 0)
        s->machine[0] = '\0';
    TT_TRY(find_hosts(s));
    TT_TRY(cli_workers_find(s->ctx, s->args, s->n, is_program(s->args->words[0]), &s->elastic));
    if (s->elastic.max > 0) {
        s->elastic.hosts = s->host_names;
        s->elastic.max = s->hosts == NULL ? s->elastic.max : s->n; // where else would they run
        snprintf(s->elastic.machine, sizeof(s->elastic.machine), "%s", s->machine);
    }
    s->slots = TTI_MAX(s->n, s->elastic.max);
    for (int i = 0; s->hosts != NULL && i < s->hosts->n_tasks; i++) {
        char host[256];
        host_of(s->hosts->tasks[i].address, host);
        s->is_far = s->is_far || is_far(s, host);
    }
    TT_TRY(s->is_far ? far_addresses(s) : near_addresses(s));
    TT_TRY(make_words(s));
    for (int i = 0; i < s->slots; i++)
        TT_TRY(make_process(s, i));
    return TT_OK;
}

static void free_words(char **words)
{
    for (int i = 0; words != NULL && words[i] != NULL; i++)
        free(words[i]);
    free(words);
}

// It can be prepared again.
static void clean(starting *s)
{
    for (int i = 0; i < TT_MAX_TASKS; i++) {
        free_words(s->processes[i].words);
        free_words(s->processes[i].sets);
        free(s->devices[i]);
        s->processes[i] = (cli_process){0};
        s->devices[i] = NULL;
    }
    for (int i = 0; i < MOST_WORDS; i++) {
        free(s->train[i]);
        s->train[i] = NULL;
    }
    s->n_train = 0;
    tt_cluster_free(s->ctx, s->hosts);
    s->hosts = NULL;
}

static int check(const cli_args *a)
{
    if (a->n_words > 1 && !is_program(a->words[0]))
        return cli_usage("tutti run: unexpected argument '%s': '%s' is not a program", a->words[1],
                         a->words[0]);
    if (cli_engine_is_other(a) || cli_engine_is_unknown(a))
        return cli_engine_check(a);
    int n = (a->processes > 0) + (a->on != NULL) + (a->hosts != NULL);
    if (n != 1)
        return cli_usage("tutti run needs one of -n N, -H HOSTS and --hosts FILE%s",
                         n > 1 ? ", not several" : "");
    if (a->processes > 0 && (a->ssh != NULL || a->dir != NULL || a->command != NULL))
        return cli_usage(
            "--ssh, --dir and --command apply to other hosts only: use them with -H or --hosts");
    return cli_engine_check(a);
}

static int launch(starting *s)
{
    typedef struct made {
        unsigned char secret[TT_SECRET_BYTES];
        char text[TTI_SECRET_TEXT];
    } made;
    made *m = tti_secure_new(s->ctx, sizeof(*m));
    if (m == NULL || tt_secret_new(s->ctx, m->secret) != TT_OK) {
        tti_secure_free(m, sizeof(*m));
        return CLI_FAILED;
    }
    tti_secret_print(m->secret, m->text);
    for (int i = 0; i < s->n; i++)
        if (s->held[i] >= 0)
            close(s->held[i]);
    cli_launch l = {.processes = s->processes,
                    .n = s->n,
                    .secret = m->text,
                    .grace_s = s->args->grace > 0 ? s->args->grace : 60,
                    .elastic = s->elastic.max > 0 ? &s->elastic : NULL};
    int rc = cli_launch_run(&l);
    tti_secure_free(m, sizeof(*m));
    return rc;
}

static int prepare_and_launch(starting *s)
{
    tt_status st = prepare(s);
    int rc = st == TT_OK ? launch(s) : st == TT_ENOMEM ? CLI_FAILED : CLI_USAGE;
    clean(s);
    return rc;
}

static int run(const cli_args *args)
{
    if (check(args) != CLI_OK)
        return CLI_USAGE;
    int alone = cli_not_one_of_many(args);
    if (alone != CLI_OK)
        return alone;
    if (cli_engine_is_other(args))
        return cli_engine_run(args, is_program(args->words[0]));
    cli_args plain = {.level = args->level};
    starting *s = calloc(1, sizeof(*s));
    if (s == NULL)
        return cli_error("out of memory");
    s->args = args;
    s->ctx = cli_open(&plain, "cpu:0");
    int rc = CLI_FAILED;
    if (s->ctx != NULL) {
        rc = prepare_and_launch(s);
        cli_args again = *args;
        again.resume = true;
        again.restart = false;
        for (int64_t k = 1; rc == CLI_LOST && k <= args->restarts; k++) {
            cli_tell("a process was lost; all are started again from the last checkpoint (%lld of "
                     "%lld restarts)\n",
                     (long long)k, (long long)args->restarts);
            s->args = &again;
            rc = prepare_and_launch(s);
        }
        int closed = cli_close(s->ctx, NULL);
        rc = rc != CLI_OK ? rc : closed;
    }
    free(s);
    return rc;
}

const cli_verb cli_run = {
    .name = "run",
    .words = "JOB, or PROGRAM and its arguments",
    .summary = "train a job with several processes, on this machine or on several hosts",
    .help =
        "Starts tutti train JOB in N processes on this machine, or on other hosts by ssh. tutti "
        "and\n"
        "the working directory must have the same paths there, unless --command and --dir say\n"
        "otherwise. The processes receive a secret, made for this job, on standard input. They "
        "train\n"
        "one model, with the same bits as one process with all the devices.\n"
        "\n"
        "  tutti run -n 4 job.yaml --devices cpu:0\n"
        "  tutti run -n 2 job.yaml --devices 'cpu:0*2;cpu:0'    one list per process\n"
        "  tutti run -H host1:2,host2:2 job.yaml\n"
        "  tutti run -n 4 python train.py --seed 1    a program that opens Tutti itself\n"
        "\n"
        "--engine chooses who starts the processes: local or ssh (the default for -n, and for -H "
        "and\n"
        "--hosts), mpi (mpirun), slurm (sbatch, or srun inside an allocation), k8s. With "
        "--dry-run,\n"
        "mpi, slurm and k8s print the command, the sbatch file or the manifests instead:\n"
        "  tutti run --engine mpi -n 4 job.yaml\n"
        "  tutti run --engine slurm -n 8 --nodes 2 --gpus 1 --time 12:00:00 job.yaml --dry-run\n"
        "  tutti run --engine k8s -n 4 --image site/tutti --claim data job.yaml --dry-run\n"
        "\n"
        "With --workers A..B the job is elastic: it goes on, with the same weights, while A to B\n"
        "processes are left, and others can join it (tutti resize). --restarts N starts a job of\n"
        "fixed size again from its last checkpoint when a process is lost:\n"
        "  tutti run -n 3 --workers 2..4 --replace 10 job.yaml\n"
        "\n"
        "Standard output shows rank 0; every process writes its log to logs/rank-N.log in the run\n"
        "folder. If one process fails, all stop; the exit code is that of the first failure, or "
        "76\n"
        "if that process was killed or lost (tutti help exit). After Ctrl-C or SIGTERM all "
        "processes\n"
        "save after the same step and exit with 85.\n",
    .flags = "engine processes workers replace loss wait restarts nodes gpus cpus memory time "
             "partition account image claim namespace "
             "option launcher write on hosts ssh dir command port grace epochs batch lr set "
             "devices strategy "
             "lanes threads isa "
             "resume restart alone run runs dry-run json quiet profile trace hashes no-trial "
             "until chain key",
    .min_words = 1,
    .max_words = CLI_MAX_WORDS,
    .ends_flags = is_program,
    .run = run,
};
