/*
 * engine.c - tutti run --engine mpi|slurm|k8s: processes that mpirun or Slurm starts. They find
 * each other by the variables of that launcher (cluster/launchers.c), so all that is done here is
 * the command or the file, with what the flags ask for.
 */
#include "cli/engine.h"
#include "base/file.h"
#include "cluster/cluster.h"
#include <errno.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/wait.h>
#include <unistd.h>

enum {
    NEAR = 1,
    SSH = 2,
    MPI = 4,
    SLURM = 8,
    K8S = 16,
};

static const struct {
    const char *name;
    int bit;
} engines[] = {{"local", NEAR}, {"ssh", SSH}, {"mpi", MPI}, {"slurm", SLURM}, {"k8s", K8S}};

static const char *name_of(const cli_args *a)
{
    return a->engine != NULL ? a->engine : a->on != NULL || a->hosts != NULL ? "ssh" : "local";
}

static int engine_of(const cli_args *a)
{
    for (int i = 0; i < TTI_COUNT(engines); i++)
        if (strcmp(engines[i].name, name_of(a)) == 0)
            return engines[i].bit;
    return 0;
}

bool cli_engine_is_unknown(const cli_args *a)
{
    return engine_of(a) == 0;
}

bool cli_engine_is_other(const cli_args *a)
{
    return (engine_of(a) & (MPI | SLURM | K8S)) != 0;
}

// ---- flags -----------------------------------------------------------------------------------

static int check_time(const char *text, int64_t *out)
{
    long long v[4] = {0}; // days, hours, minutes, seconds
    int n = 0;
    bool days = text != NULL &&
                sscanf(text, "%9lld-%2lld:%2lld:%2lld%n", &v[0], &v[1], &v[2], &v[3], &n) == 4 &&
                text[n] == '\0';
    *out = 0;
    if (text == NULL)
        return CLI_OK;
    if (!days) {
        v[0] = v[1] = v[2] = v[3] = n = 0;
        bool hours =
            sscanf(text, "%9lld:%2lld:%2lld%n", &v[1], &v[2], &v[3], &n) == 3 && text[n] == '\0';
        if (!hours) {
            v[1] = v[2] = v[3] = n = 0;
            if (sscanf(text, "%9lld%n", &v[2], &n) != 1 || text[n] != '\0')
                v[2] = -1;
        }
    }
    int64_t s = ((v[0] * 24 + v[1]) * 60 + v[2]) * 60 + v[3];
    if (v[0] < 0 || v[1] < 0 || v[2] < 0 || v[3] < 0 || v[3] > 59 || s <= 0)
        return cli_usage("--time: '%s' is not a time limit: MINUTES, H:MM:SS or D-HH:MM:SS", text);
    *out = s;
    return CLI_OK;
}

static int check_memory(const char *text, int64_t *mib)
{
    char unit = 'M', end = '\0';
    long long v = 0;
    *mib = 0;
    if (text == NULL)
        return CLI_OK;
    int n = sscanf(text, "%9lld%c%c", &v, &unit, &end);
    int64_t times = unit == 'M' ? 1 : unit == 'G' ? 1024 : unit == 'T' ? 1024 * 1024 : 0;
    if (n < 2 || n > 2 || v <= 0 || times == 0)
        return cli_usage("--memory: '%s' is not a size: 512M, 16G or 1T", text);
    *mib = v * times;
    return CLI_OK;
}

// A word that goes into a file of others: nothing in it has a meaning there.
static int check_word(const char *flag, const char *text)
{
    if (text != NULL &&
        (text[0] == '\0' || text[strspn(text, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
                                              "0123456789-_.,/:@+")] != '\0'))
        return cli_usage("--%s: '%s' has characters other than letters, digits and -_.,/:@+", flag,
                         text);
    return CLI_OK;
}

static int check_flags(const cli_args *a, int engine)
{
    const struct {
        const char *flag;
        bool is_set;
        int engines;
    } rows[] = {
        {"processes", a->processes > 0, NEAR | MPI | SLURM | K8S},
        {"nodes", a->nodes > 0, SLURM},
        {"gpus", a->gpus > 0, SLURM | K8S},
        {"cpus", a->cpus > 0, SLURM | K8S},
        {"memory", a->memory != NULL, SLURM | K8S},
        {"time", a->time != NULL, SLURM | K8S},
        {"partition", a->partition != NULL, SLURM},
        {"account", a->account != NULL, SLURM},
        {"image", a->image != NULL, K8S},
        {"claim", a->claim != NULL, K8S},
        {"namespace", a->space != NULL, K8S},
        {"option", a->options.n > 0, MPI | SLURM},
        {"launcher", a->launcher != NULL, MPI | SLURM},
        {"write", a->write != NULL, SLURM | K8S},
        {"on", a->on != NULL, SSH | MPI},
        {"hosts", a->hosts != NULL, SSH | MPI},
        {"ssh", a->ssh != NULL, SSH},
        {"dir", a->dir != NULL, SSH | SLURM | K8S},
        {"command", a->command != NULL, SSH | MPI | SLURM | K8S},
        {"port", a->port > 0, NEAR | SSH},
        {"grace", a->grace > 0, NEAR | SSH | SLURM | K8S},
        {"workers", a->workers != NULL, NEAR | SSH},
        {"replace", a->replace > 0, NEAR | SSH},
        {"loss", a->loss > 0, NEAR | SSH},
        {"wait", a->wait > 0, NEAR | SSH},
        {"restarts", a->restarts > 0, NEAR | SSH},
    };
    for (int i = 0; i < TTI_COUNT(rows); i++) {
        char list[64] = "";
        size_t n = 0;
        if (!rows[i].is_set || (rows[i].engines & engine) != 0)
            continue;
        for (int k = 0; k < TTI_COUNT(engines); k++)
            if ((rows[i].engines & engines[k].bit) != 0)
                n += (size_t)snprintf(list + n, sizeof(list) - n, "%s%s", n > 0 ? ", " : "",
                                      engines[k].name);
        return cli_usage("tutti run: --%s does not apply to --engine %s; it does to %s",
                         rows[i].flag, name_of(a), list);
    }
    return CLI_OK;
}

int cli_engine_check(const cli_args *a)
{
    int engine = engine_of(a);
    int64_t unused;
    if (engine == 0)
        return cli_usage("--engine: '%s' is not one of local, ssh, mpi, slurm, k8s", a->engine);
    if (check_flags(a, engine) != CLI_OK || check_time(a->time, &unused) != CLI_OK ||
        check_memory(a->memory, &unused) != CLI_OK ||
        check_word("partition", a->partition) != CLI_OK ||
        check_word("account", a->account) != CLI_OK || check_word("claim", a->claim) != CLI_OK ||
        check_word("namespace", a->space) != CLI_OK)
        return CLI_USAGE;
    for (int i = 0; i < a->options.n; i++)
        if (strchr(a->options.v[i], '\n') != NULL)
            return cli_usage("--option: a flag has one line");
    if (!cli_engine_is_other(a))
        return CLI_OK;
    if (a->processes == 0 && !(engine == MPI && (a->on != NULL || a->hosts != NULL)))
        return cli_usage("tutti run --engine %s needs -n N, the number of processes", a->engine);
    if (a->nodes > a->processes)
        return cli_usage("--nodes: %lld machines for %lld processes", (long long)a->nodes,
                         (long long)a->processes);
    if (engine == K8S && a->image == NULL)
        return cli_usage("tutti run --engine k8s needs --image, a container image with tutti");
    if (engine == K8S && !a->dry_run)
        return cli_usage("tutti run --engine k8s prints manifests with --dry-run; apply them with "
                         "kubectl apply -f -");
    if (a->write != NULL && !a->dry_run)
        return cli_usage("tutti run: --write needs --dry-run");
    if (a->devices != NULL && strchr(a->devices, ';') != NULL)
        return cli_usage("--devices: a list per process is for --engine local and ssh");
    return CLI_OK;
}

// ---- what is started -------------------------------------------------------------------------

typedef struct engine_job {
    cli_started s;
    tt_ctx *ctx;
    char *words[CLI_LAUNCH_WORDS + 8];
    char dir[PATH_MAX], exe[PATH_MAX];
    char *text;
} engine_job;

// The name of the job's file or of the program, as Kubernetes and Slurm take it.
static void make_name(const char *word, char out[54])
{
    const char *slash = strrchr(word, '/'), *at = slash != NULL ? slash + 1 : word;
    const char *dot = strrchr(at, '.');
    size_t n = 0;
    for (; *at != '\0' && at != dot && n < 40; at++) {
        bool is_word = (*at >= 'a' && *at <= 'z') || (*at >= '0' && *at <= '9');
        char c = is_word ? *at : *at >= 'A' && *at <= 'Z' ? (char)(*at - 'A' + 'a') : '-';
        if (c != '-' || (n > 0 && out[n - 1] != '-'))
            out[n++] = c;
    }
    while (n > 0 && out[n - 1] == '-')
        n--;
    out[n] = '\0';
    if (n == 0 || (out[0] >= '0' && out[0] <= '9')) { // names of services begin with a letter
        memmove(out + 4, out, n + 1);
        memcpy(out, n > 0 ? "job-" : "job", 4); // the second one's end, too
    }
}

// The words that each process runs: the program's, or tutti train with its flags and the job.
static tt_status make_words(engine_job *e, bool is_program)
{
    const cli_args *a = e->s.args;
    cli_args for_train = *a;
    int n = 0;
    for_train.alone = for_train.dry_run = false;
    if (is_program) {
        for (int i = 0; i < a->n_words; i++)
            e->words[n++] = strdup(a->words[i]);
        return TT_OK;
    }
    e->words[n++] = strdup(a->command != NULL ? a->command : e->exe);
    e->words[n++] = strdup("train");
    int more = cli_flag_words(&cli_train, &for_train, e->words + n, CLI_LAUNCH_WORDS - 8);
    if (more < 0)
        return TT_FAIL(e->ctx, TT_ENOMEM, "too many flags");
    n += more;
    e->words[n++] = strdup("--");
    e->words[n++] = strdup(a->words[0]);
    e->words[n] = NULL;
    return TT_OK;
}

static tt_status prepare(engine_job *e, bool is_program)
{
    cli_started *s = &e->s;
    const cli_args *a = s->args;
    int engine = engine_of(a);
    ssize_t n = readlink("/proc/self/exe", e->exe, sizeof(e->exe) - 1);
    if (n < 0 || getcwd(e->dir, sizeof(e->dir)) == NULL)
        return TT_FAIL(e->ctx, TT_EIO, "cannot find the path of tutti or the working directory: %s",
                       strerror(errno));
    if (engine == K8S) // what is here says nothing of there
        snprintf(e->exe, sizeof(e->exe), "tutti");
    make_name(a->words[0], s->name);
    s->is_program = is_program;
    s->words = e->words;
    s->dir = a->dir != NULL ? a->dir : engine == K8S ? "/work" : e->dir;
    s->runs = a->runs != NULL ? a->runs : "runs";
    s->n = a->processes;
    s->nodes = a->nodes > 0 ? a->nodes : 1;
    s->grace_s = a->grace > 0 ? a->grace : 60;
    s->adds_run = !is_program && a->run == NULL && !a->resume && !a->restart;
    (void)check_time(a->time, &s->time_s);
    (void)check_memory(a->memory, &s->memory_mib);
    if (!is_program) { // what cannot be read is not submitted
        size_t bytes;
        TT_TRY(tti_stream_read(e->ctx, a->words[0], 512 * 1024, &e->text, &bytes));
        s->job = engine == K8S ? e->text : NULL;
    }
    return make_words(e, is_program);
}

// ---- starting --------------------------------------------------------------------------------

// Is it Hydra's mpirun (MPICH, Intel)? Its flags differ from OpenMPI's.
static bool is_hydra(const char *command)
{
    char line[512] = "", shell[600];
    snprintf(shell, sizeof(shell), "%.400s --version 2>/dev/null", command);
    FILE *f = popen(shell, "re");
    bool hydra = false;
    while (f != NULL && fgets(line, sizeof(line), f) != NULL)
        hydra = hydra || strstr(line, "HYDRA") != NULL || strstr(line, "Intel(R) MPI") != NULL;
    if (f != NULL)
        pclose(f);
    return hydra;
}

static int add_split(char **out, int n, const char *text)
{
    char *copy = strdup(text), *rest = NULL;
    for (char *w = copy != NULL ? strtok_r(copy, " ", &rest) : NULL; w != NULL && n < 64;
         w = strtok_r(NULL, " ", &rest))
        out[n++] = strdup(w);
    free(copy);
    return n;
}

static void print_words(tti_text *t, char **words)
{
    for (char **w = words; *w != NULL; w++) {
        tti_text_add(t, "%s", w > words ? " " : "");
        cli_shell_word(t, *w);
    }
    tti_text_add(t, "\n");
}

// Replaces this process: signals and the exit code are then those of the launcher.
static int become(engine_job *e, char **words)
{
    if (e->s.args->dry_run) {
        tti_text t = {.ctx = e->ctx};
        print_words(&t, words);
        return cli_print_text(&t) ? CLI_OK : CLI_FAILED;
    }
    fflush(NULL);
    execvp(words[0], words);
    return cli_error("cannot start '%s': %s; --launcher gives another command", words[0],
                     strerror(errno));
}

static void add_words(char **out, int n, char **words)
{
    for (; *words != NULL && n < CLI_LAUNCH_WORDS + 80; words++)
        out[n++] = *words;
    out[n] = NULL;
}

static int run_mpi(engine_job *e)
{
    const cli_args *a = e->s.args;
    const char *command = a->launcher != NULL ? a->launcher : "mpirun";
    static char *out[CLI_LAUNCH_WORDS + 96];
    char number[32], id[40];
    uint64_t random[2] = {0};
    bool hydra = is_hydra(command);
    int n = add_split(out, 0, command);
    for (int i = 0; i < a->options.n; i++)
        n = add_split(out, n, a->options.v[i]);
    snprintf(number, sizeof(number), "%lld", (long long)a->processes);
    if (a->processes > 0) {
        out[n++] = strdup("-n");
        out[n++] = strdup(number);
    }
    if (a->on != NULL || a->hosts != NULL) {
        out[n++] =
            strdup(a->on != NULL ? (hydra ? "-hosts" : "--host") : (hydra ? "-f" : "--hostfile"));
        out[n++] = strdup(a->on != NULL ? a->on : a->hosts);
    }
    // What names the start, where the launcher has nothing of the kind.
    if (getrandom(random, sizeof(random), 0) == sizeof(random)) {
        snprintf(id, sizeof(id), "%016llx%016llx", (unsigned long long)random[0],
                 (unsigned long long)random[1]);
        setenv("TUTTI_JOB_ID", id, 1);
        setenv("TUTTI_STARTED_BY", CLI_ENGINE_BY "mpi", 1);
    }
    static const char *const passed[] = {
        "TUTTI_JOB_ID",        "TUTTI_STARTED_BY", "TUTTI_KEY_DIR",   "TUTTI_SECRET_FILE",
        "TUTTI_LEADER",        "TUTTI_BIND",       "TUTTI_TRANSPORT", "TUTTI_ENCRYPTION",
        "TUTTI_RENDEZVOUS_MS", "TUTTI_LOSS_MS"};
    for (int i = 0; !hydra && i < TTI_COUNT(passed); i++) // Hydra passes all on
        if (getenv(passed[i]) != NULL && !(a->dry_run && i < 2)) {
            out[n++] = strdup("-x");
            out[n++] = strdup(passed[i]);
        }
    add_words(out, n, e->words);
    return become(e, out);
}

// Hands the file to sbatch on its standard input; its exit code.
static int submit(engine_job *e, tti_text *file)
{
    const char *command = e->s.args->launcher != NULL ? e->s.args->launcher : "sbatch";
    char *text = tti_text_take(file);
    if (text == NULL)
        return cli_error("out of memory");
    fflush(NULL);
    signal(SIGPIPE, SIG_IGN); // a command that is not there reads nothing
    FILE *f = popen(command, "we");
    size_t bytes = strlen(text);
    bool ok = f != NULL && fwrite(text, 1, bytes, f) == bytes;
    int status = f != NULL ? pclose(f) : -1;
    tti_free(e->ctx, text);
    if (ok && status >= 0 && WIFEXITED(status) && WEXITSTATUS(status) == 0)
        return CLI_OK;
    if (status >= 0 && WIFEXITED(status) && WEXITSTATUS(status) == 127)
        return cli_error("'%s' was not found: is this a machine of a Slurm cluster? --dry-run "
                         "prints the sbatch file",
                         command);
    return cli_error("'%s' has refused the job", command);
}

static int write_file(engine_job *e, tti_text *file)
{
    const char *path = e->s.args->write;
    if (path == NULL)
        return cli_print_text(file) ? CLI_OK : CLI_FAILED;
    char *text = tti_text_take(file);
    if (text == NULL)
        return cli_error("out of memory");
    tt_status st = tti_file_replace(e->ctx, path, text, strlen(text));
    tti_free(e->ctx, text);
    return st == TT_OK ? CLI_OK : CLI_FAILED;
}

static int run_slurm(engine_job *e)
{
    const cli_args *a = e->s.args;
    const char *job = getenv("SLURM_JOB_ID");
    tti_text t = {.ctx = e->ctx};
    if (job != NULL && job[0] != '\0' && !a->dry_run) { // inside an allocation: a step of it
        static char *out[CLI_LAUNCH_WORDS + 96];
        char n[32];
        int at = add_split(out, 0, a->launcher != NULL ? a->launcher : "srun");
        for (int i = 0; i < a->options.n; i++)
            at = add_split(out, at, a->options.v[i]);
        snprintf(n, sizeof(n), "--ntasks=%lld", (long long)a->processes);
        out[at++] = strdup(n);
        add_words(out, at, e->words);
        return become(e, out);
    }
    cli_sbatch_file(&e->s, &t);
    return a->dry_run ? write_file(e, &t) : submit(e, &t);
}

static int run_k8s(engine_job *e)
{
    tti_text t = {.ctx = e->ctx};
    cli_manifests(&e->s, &t);
    return write_file(e, &t);
}

int cli_engine_run(const cli_args *a, bool is_program)
{
    cli_args plain = {.level = a->level};
    engine_job *e = calloc(1, sizeof(*e));
    if (e == NULL)
        return cli_error("out of memory");
    e->s.args = a;
    e->ctx = cli_open(&plain, "cpu:0");
    int rc = CLI_FAILED;
    if (e->ctx != NULL) {
        tt_status st = prepare(e, is_program);
        int engine = engine_of(a);
        rc = st != TT_OK     ? CLI_BAD_JOB
             : engine == MPI ? run_mpi(e)
             : engine == K8S ? run_k8s(e)
                             : run_slurm(e);
        for (char **w = e->words; *w != NULL; w++)
            free(*w);
        tti_free(e->ctx, e->text);
        int closed = cli_close(e->ctx, NULL);
        rc = rc != CLI_OK ? rc : closed;
    }
    free(e);
    return rc;
}
