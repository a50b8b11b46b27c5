/*
 * args.c - flags. One table says all of them; a verb names those it takes.
 */
#include "base/hints.h"
#include "cli/cli.h"
#include "job/job.h"
#include "strategy/strategy.h"
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef enum kind {
    SWITCH, // bool
    TEXT,   // const char *
    NUMBER, // int64_t
    REAL,   // double
    MANY,   // cli_texts: may be given several times
} kind;

typedef struct flag {
    const char *name, *value, *help;
    kind kind;
    size_t offset;
    int64_t min, max;
} flag;

#define AT(field) offsetof(cli_args, field)
static const flag flags[] = {
    {"json", NULL, "print JSON", SWITCH, AT(json), 0, 0},
    {"quiet", NULL, "print nothing but warnings and errors", SWITCH, AT(quiet), 0, 0},
    {"dot", NULL, "print the graph in Graphviz DOT format", SWITCH, AT(dot), 0, 0},
    {"svg", "OUT", "write an SVG image to OUT", TEXT, AT(svg), 0, 0},
    {"set", "KEY=VALUE", "override a key of the job file: train.batch=256; may be repeated", MANY,
     AT(sets), 0, 0},
    {"epochs", "N", "number of passes over the training data, instead of the job's", NUMBER,
     AT(epochs), 1, (int64_t)1 << 40},
    {"batch", "N", "global batch size, instead of the job's", NUMBER, AT(batch), 1,
     (int64_t)1 << 30},
    {"lr", "X", "learning rate of the optimizer, instead of the job's", TEXT, AT(lr), 0, 0},
    {"devices", "D", "devices to use: cpu:0*2, gpu:0@20GiB, all (tutti help devices)", TEXT,
     AT(devices), 0, 0},
    {"strategy", "WORD", "how to use several devices: single, mirrored, central, pipeline", TEXT,
     AT(strategy), 0, 0},
    {"topology", "HxN", "plan for H hosts with N devices each, all like the first: 8x4cpu, 4", TEXT,
     AT(topology), 0, 0},
    {"verify", NULL, "check the plan: order, waits, memory, transfers, lanes", SWITCH, AT(verify),
     0, 0},
    {"stages", NULL, "show what each stage of planning did, instead of the plan", SWITCH,
     AT(stages), 0, 0},
    {"stage", "NAME", "like --stages, followed by the program after this stage", TEXT, AT(stage), 0,
     0},
    {"rows", "N", "batch size", NUMBER, AT(rows), 1, (int64_t)1 << 40},
    {"target", "NAME", "tensor to compute; may be repeated (default: all outputs)", MANY,
     AT(targets), 0, 0},
    {"lanes", "N", "number of fixed slices of the global batch; changes bits (default 8)", NUMBER,
     AT(lanes), 1, 1024},
    {"threads", "N", "CPU threads, shared by all CPU devices (default: one per core)", NUMBER,
     AT(threads), 1, 4096},
    {"isa", "SET", "instruction set: plain, fma, avx2, avx512 (default: the best)", TEXT, AT(isa),
     0, 0},
    {"resume", NULL, "continue from the newest checkpoint of the run, if there is one", SWITCH,
     AT(resume), 0, 0},
    {"restart", NULL,
     "restart the run at step 0; its old checkpoints are moved to checkpoints.old-N", SWITCH,
     AT(restart), 0, 0},
    {"alone", NULL, "run the whole job in this process, although srun or mpirun started several",
     SWITCH, AT(alone), 0, 0},
    {"run", "DIR", "the run's folder (default: a new one, runs/NAME-NNN; with --resume the newest)",
     TEXT, AT(run), 0, 0},
    {"runs", "ROOT", "folder that holds the run folders (default: runs)", TEXT, AT(runs), 0, 0},
    {"failed", NULL, "only runs that failed or have trained nothing", SWITCH, AT(failed), 0, 0},
    {"where", "KEY=VALUE",
     "only runs for which this holds: a key of the job, a metric, state, tag, hash; signs = != < "
     "<= > >= and ~ (contains); may be repeated",
     MANY, AT(where), 0, 0},
    {"sort", "KEY", "order by a key or metric, the lowest first; -KEY: the highest first", TEXT,
     AT(sort), 0, 0},
    {"limit", "N", "show at most N runs", NUMBER, AT(limit), 1, (int64_t)1 << 40},
    {"checkpoint", "PATH",
     "checkpoint to use: a path, best, step-N or a safetensors file (default: the newest)", TEXT,
     AT(checkpoint), 0, 0},
    {"dry-run", NULL,
     "print the resolved job, the layers, steps, memory and plan, and do not train", SWITCH,
     AT(dry_run), 0, 0},
    {"profile", "N", "measure N steps and print the time per layer and op", NUMBER, AT(profile), 1,
     100000},
    {"trace", "N", "write a trace of the first N steps to trace.json in the run folder", NUMBER,
     AT(trace), 1, 100000},
    {"hashes", "FILE", "write a hash of every node, lane and step, for tutti diff", TEXT,
     AT(hashes), 0, 0},
    {"steps", "N", "number of steps to time (default 50); of audit: the interval to replay, A..B",
     NUMBER, AT(steps), 1, 1000000},
    {"until", "STEP", "stop and save after this step, with the schedule of the whole training",
     NUMBER, AT(until), 1, (int64_t)1 << 60},
    {"chain", "N",
     "steps between two hashes in the run's chain.jsonl: a number, auto (at most 1 % of the time), "
     "off, or as:RUN for the steps that RUN has (default: auto)",
     TEXT, AT(chain), 0, 0},
    {"key", "FILE", "key that signs the chain of hashes, made by tutti key new FILE", TEXT, AT(key),
     0, 0},
    {"commits", "A..B", "commits to search: A gives the good result, B the bad one", TEXT,
     AT(commits), 0, 0},
    {"build", "LINE", "shell command that builds a commit, for example \"make CUDA=0\"", TEXT,
     AT(build), 0, 0},
    {"metric", "NAME", "compare this metric instead of the weights, with --bound", TEXT, AT(metric),
     0, 0},
    {"bound", "X", "a metric that differs by more than X from that of the good run is bad", REAL,
     AT(bound), 0, (int64_t)1 << 60},
    {"no-trial", NULL, "skip the measurement of whether one device would be faster", SWITCH,
     AT(no_trial), 0, 0},
    {"most", "N", "compare 1 to N devices", NUMBER, AT(most), 1, 64},
    {"input", "FILES",
     "records to predict: a file (.csv, .npy, .npz, IDX), a folder, a glob, or - for standard "
     "input",
     TEXT, AT(input), 0, 0},
    {"data", "FILE", "data with targets: .csv, .npz, or X,Y (two .npy or IDX files)", TEXT,
     AT(data), 0, 0},
    {"output", "FILE", "write the predictions to FILE: .csv, .jsonl or .npy", TEXT, AT(output), 0,
     0},
    {"layout", "nchw", "layout of the images of --input: nchw (channels first) or nhwc", TEXT,
     AT(layout), 0, 0},
    {"top", "K", "show the K most probable classes of each record", NUMBER, AT(top), 1, 65536},
    {"all", NULL, "show the probabilities of all classes", SWITCH, AT(all), 0, 0},
    {"count", "N", "largest number of records to use", NUMBER, AT(count), 1, (int64_t)1 << 40},
    {"prompt", "TEXT", "text that the model continues", TEXT, AT(prompt), 0, 0},
    {"length", "N", "number of characters to generate (default 200)", NUMBER, AT(length), 1,
     1000000},
    {"temperature", "T",
     "sampling temperature; 0 always takes the most probable character (default 0.8)", REAL,
     AT(temperature), 0, 100},
    {"seed", "N", "random seed of the sampling (default 0)", NUMBER, AT(seed), 0, INT64_MAX},
    {"map", "RULES", "rename tensors: \"old.*=new.*, head=classifier\"", TEXT, AT(map), 0, 0},
    {"only", "NAMES", "convert only tensors whose new names match: \"encoder.*, *.bias\"", TEXT,
     AT(only), 0, 0},
    {"partial", NULL, "skip tensors of types that Tutti does not support", SWITCH, AT(partial), 0,
     0},
    {"to", "torch", "write weights with the layout and names of this framework: torch", TEXT,
     AT(to), 0, 0},
    {"processes", "N", "number of processes on this machine; short form -n N", NUMBER,
     AT(processes), 1, 64},
    {"on", "HOSTS", "hosts and processes per host: host1:2,host2:2; short form -H HOSTS", TEXT,
     AT(on), 0, 0},
    {"hosts", "FILE", "file of hosts, one line host[:port] [slots=N] each", TEXT, AT(hosts), 0, 0},
    {"ssh", "WORDS", "command that connects to a host (default: ssh -T -o BatchMode=yes)", TEXT,
     AT(ssh), 0, 0},
    {"dir", "DIR", "working directory on the hosts (default: the current one)", TEXT, AT(dir), 0,
     0},
    {"command", "PATH", "path of tutti on the hosts (default: its path here)", TEXT, AT(command), 0,
     0},
    {"port", "N", "port on which rank 0 listens (default: a free port)", NUMBER, AT(port), 1,
     65535},
    {"grace", "S",
     "seconds that processes get to save and exit before they are killed (default 60)", NUMBER,
     AT(grace), 1, 86400},
    {"workers", "A..B",
     "elastic: the job goes on while there are A to B processes; a lost one ends no job", TEXT,
     AT(workers), 0, 0},
    {"replace", "N", "with --workers: start a new process for a lost one, at most N times", NUMBER,
     AT(replace), 1, 1000000},
    {"loss", "MS", "with --workers: milliseconds of silence after which a process is out", NUMBER,
     AT(loss), 100, 3600000},
    {"wait", "S",
     "with --workers: seconds to wait for processes below A before all save and end (default 60)",
     NUMBER, AT(wait), 1, 86400},
    {"restarts", "N",
     "without --workers: start all processes again from the last checkpoint, at most N times",
     NUMBER, AT(restarts), 1, 1000000},
    {"engine", "WORD", "starts the processes: local, ssh, mpi, slurm, k8s", TEXT, AT(engine), 0, 0},
    {"nodes", "N", "number of machines (Slurm)", NUMBER, AT(nodes), 1, 1024},
    {"gpus", "N", "GPUs of each process (Slurm, Kubernetes)", NUMBER, AT(gpus), 1, 64},
    {"cpus", "N", "CPU cores of each process (Slurm, Kubernetes)", NUMBER, AT(cpus), 1, 4096},
    {"memory", "SIZE", "memory of each process (Slurm, Kubernetes): 16G", TEXT, AT(memory), 0, 0},
    {"time", "T", "limit (Slurm, Kubernetes): MINUTES, H:MM:SS, D-HH:MM:SS", TEXT, AT(time), 0, 0},
    {"partition", "NAME", "partition of Slurm", TEXT, AT(partition), 0, 0},
    {"account", "NAME", "account of Slurm", TEXT, AT(account), 0, 0},
    {"image", "IMAGE", "container image with tutti (Kubernetes)", TEXT, AT(image), 0, 0},
    {"claim", "NAME", "volume claim: the working directory (Kubernetes)", TEXT, AT(claim), 0, 0},
    {"namespace", "NAME", "namespace of Kubernetes", TEXT, AT(space), 0, 0},
    {"option", "TEXT", "flag for mpirun, or line of the sbatch file; repeatable", MANY, AT(options),
     0, 0},
    {"launcher", "WORDS", "command that starts or submits (mpirun, sbatch)", TEXT, AT(launcher), 0,
     0},
    {"write", "FILE", "with --dry-run: where to write what is made", TEXT, AT(write), 0, 0},
    {"level", "L", "lowest level that is logged to stderr: error, warn, info, debug, trace", TEXT,
     AT(level), 0, 0},
    {"help", NULL, "show this help", SWITCH, AT(help), 0, 0},
};

// Does verb take the flag? --help and --level go with every verb.
bool cli_takes(const cli_verb *verb, const char *name)
{
    size_t n = strlen(name);
    if (strcmp(name, "help") == 0 || strcmp(name, "level") == 0)
        return true;
    for (const char *s = verb->flags; s != NULL && *s != '\0'; s += strspn(s, " ")) {
        size_t length = strcspn(s, " ");
        if (length == n && memcmp(s, name, n) == 0)
            return true;
        s += length;
    }
    return false;
}

bool cli_flag_at(int i, cli_flag *out)
{
    static const char *const types[] = {
        [SWITCH] = "bool", [TEXT] = "text", [NUMBER] = "int", [REAL] = "float", [MANY] = "text"};
    if (i < 0 || i >= TTI_COUNT(flags))
        return false;
    const flag *f = &flags[i];
    *out = (cli_flag){.name = f->name,
                      .type = types[f->kind],
                      .value = f->value,
                      .help = f->help,
                      .repeats = f->kind == MANY,
                      .has_bounds = f->kind == NUMBER || f->kind == REAL,
                      .min = f->min,
                      .max = f->max};
    return true;
}

// One flag's words; 0: it is not set.
static int words_of(const flag *f, const cli_args *a, char **out)
{
    const void *at = (const char *)a + f->offset;
    const cli_texts *all = at;
    char number[32] = "";
    const char *value = NULL;
    int n = 0;
    if (f->kind == SWITCH && *(const bool *)at)
        return asprintf(out, "--%s", f->name) > 0 ? 1 : -1;
    if (f->kind == NUMBER && *(const int64_t *)at != 0) {
        snprintf(number, sizeof(number), "%lld", (long long)*(const int64_t *)at);
        value = number;
    }
    if (f->kind == TEXT)
        value = *(const char *const *)at;
    if (value != NULL)
        return asprintf(out, "--%s=%s", f->name, value) > 0 ? 1 : -1;
    for (; f->kind == MANY && n < all->n; n++)
        if (asprintf(&out[n], "--%s=%s", f->name, all->v[n]) < 0)
            return -1;
    return n;
}

int cli_flag_words(const cli_verb *verb, const cli_args *a, char **out, int room)
{
    int n = 0;
    for (int i = 0; i < TTI_COUNT(flags); i++) {
        if (!cli_takes(verb, flags[i].name))
            continue;
        if (n + CLI_MAX_TEXTS >= room)
            return -1;
        int more = words_of(&flags[i], a, out + n);
        if (more < 0)
            return -1;
        n += more;
    }
    out[n] = NULL;
    return n;
}

// Flags that set a key of the job, for hints.
static const char *const flag_keys[][2] = {
    {"train.epochs", "epochs"},          {"train.batch", "batch"},
    {"train.optimizer.adam.lr", "lr"},   {"distribute.devices", "devices"},
    {"distribute.strategy", "strategy"}, {"distribute.lanes", "lanes"},
    {"distribute.threads", "threads"},
};

// "; use --batch N" for the key of a job; "" where the verb cannot set it.
static void key_hint(const cli_verb *verb, const char *key, char out[TTI_HINT_MAX])
{
    out[0] = '\0';
    for (int i = 0; i < TTI_COUNT(flag_keys); i++)
        if (strcmp(flag_keys[i][0], key) == 0 && cli_takes(verb, flag_keys[i][1])) {
            snprintf(out, TTI_HINT_MAX, "; use --%s", flag_keys[i][1]);
            return;
        }
    if (cli_takes(verb, "set"))
        snprintf(out, TTI_HINT_MAX, "; use --set %.200s=VALUE", key);
}

// A flag of another framework, or the name of a key.
static void flag_hint(const cli_verb *verb, const char *name, char out[TTI_HINT_MAX])
{
    char key[128], path[256];
    const tti_hint *h = tti_hint_find("flag", NULL, name);
    out[0] = '\0';
    if (h != NULL) {
        snprintf(out, TTI_HINT_MAX, "; %s", h->note);
        return;
    }
    snprintf(key, sizeof(key), "%s", name);
    for (char *c = key; *c != '\0'; c++)
        *c = *c == '-' ? '_' : *c;
    h = tti_hint_find("key", NULL, name);
    if (tti_job_key_path(key, path))
        key_hint(verb, path, out);
    else if (h != NULL && h->ours != NULL)
        key_hint(verb, h->ours, out);
    else if (h != NULL && cli_takes(verb, "set"))
        snprintf(out, TTI_HINT_MAX, "; %s", h->note);
}

static int unknown_flag(const cli_verb *verb, const char *name)
{
    const char *names[TTI_COUNT(flags) + 1];
    char shown[TTI_COUNT(flags)][32], hint[TTI_HINT_MAX];
    const char *all[TTI_COUNT(flags)];
    int n = 0;
    bool is_others = false;
    for (int i = 0; i < TTI_COUNT(flags); i++) {
        is_others = is_others || strcmp(flags[i].name, name) == 0;
        if (!cli_takes(verb, flags[i].name))
            continue;
        snprintf(shown[n], sizeof(shown[n]), "--%s", flags[i].name);
        all[n] = shown[n];
        names[n++] = flags[i].name;
    }
    names[n] = NULL;
    const char *near = tti_meant(name, names);
    flag_hint(verb, name, hint);
    if (near != NULL && (hint[0] == '\0' || tti_is_same_word(name, near)) && !is_others)
        snprintf(hint, sizeof(hint), "; did you mean --%s?", near);
    tti_text t = {.ctx = NULL};
    tti_text_names(&t, all, n, 12);
    char *list = tti_text_take(&t);
    int rc = cli_usage(is_others ? "tutti %s has no flag --%s%s\n  possible: %s"
                                 : "tutti %s: unknown flag --%s%s\n  possible: %s",
                       verb->name, name, hint, list != NULL ? list : "");
    tti_free(NULL, list);
    return rc;
}

static int set_number(const flag *f, const char *value, cli_args *out)
{
    char *end;
    errno = 0;
    long long v = strtoll(value, &end, 10);
    if (end == value || *end != '\0' || errno != 0)
        return cli_usage("--%s: '%s' is not an integer", f->name, value);
    if (v < f->min || v > f->max)
        return cli_usage("--%s: %lld is not between %lld and %lld", f->name, v, (long long)f->min,
                         (long long)f->max);
    *(int64_t *)((char *)out + f->offset) = v;
    return CLI_OK;
}

static int set_real(const flag *f, const char *value, cli_args *out)
{
    char *end;
    double v = strtod(value, &end);
    if (end == value || *end != '\0' || !(v >= (double)f->min && v <= (double)f->max))
        return cli_usage("--%s: '%s' is not a number from %lld to %lld", f->name, value,
                         (long long)f->min, (long long)f->max);
    *(double *)((char *)out + f->offset) = v;
    return CLI_OK;
}

static int set(const flag *f, const char *value, cli_args *out)
{
    void *at = (char *)out + f->offset;
    switch (f->kind) {
    case SWITCH:
        *(bool *)at = true;
        return CLI_OK;
    case TEXT:
        *(const char **)at = value;
        return CLI_OK;
    case NUMBER:
        return set_number(f, value, out);
    case REAL:
        return set_real(f, value, out);
    case MANY: {
        cli_texts *all = at;
        if (all == &out->sets && (value[0] == '=' || strchr(value, '=') == NULL))
            return cli_usage(
                "--set: '%s' is not of the form KEY=VALUE, for example train.batch=256", value);
        if (all->n == CLI_MAX_TEXTS)
            return cli_usage("--%s is given more than %d times, the limit", f->name, CLI_MAX_TEXTS);
        all->v[all->n++] = value;
        return CLI_OK;
    }
    }
    return CLI_USAGE;
}

// One "--name", "--name=value" or "--name value"; *i is moved past it.
static int one_flag(const cli_verb *verb, int argc, char **argv, int *i, cli_args *out)
{
    char name[64];
    const char *s = argv[*i] + 2, *equals = strchr(s, '=');
    snprintf(name, sizeof(name), "%.*s", equals != NULL ? (int)(equals - s) : (int)strlen(s), s);
    const flag *f = flags;
    while (f < flags + TTI_COUNT(flags) && strcmp(f->name, name) != 0)
        f++;
    if (f == flags + TTI_COUNT(flags) || !cli_takes(verb, name))
        return unknown_flag(verb, name);

    const char *value = equals != NULL ? equals + 1 : NULL;
    if (f->kind == SWITCH && value != NULL)
        return cli_usage("--%s takes no value", name);
    if (f->kind != SWITCH && value == NULL) {
        if (*i + 1 == argc)
            return cli_usage("--%s needs a value: --%s %s", name, name, f->value);
        value = argv[++*i];
    }
    if (f->offset == AT(steps) && strcmp(verb->name, "audit") == 0) {
        out->interval = value;
        return CLI_OK;
    }
    return set(f, value, out);
}

static int check_strategy(const char *word)
{
    const char *names[16], *near;
    int n = 0;
    if (word == NULL || tti_strategy_find(word) != NULL)
        return CLI_OK;
    while (n < TTI_COUNT(names) - 1 && tti_strategy_at(n) != NULL) {
        names[n] = tti_strategy_at(n)->name;
        n++;
    }
    names[n] = NULL;
    const tti_hint *h = tti_hint_find("strategy", NULL, word);
    near = h != NULL ? h->ours : tti_meant(word, names);
    if (near != NULL)
        return cli_usage("--strategy: '%s' is unknown; did you mean '%s'?", word, near);
    return cli_usage("--strategy: '%s' is not one of single, mirrored, central, pipeline", word);
}

// A text, so that the job has it as it was written.
static int check_lr(const char *text)
{
    char *end;
    double v = text != NULL ? strtod(text, &end) : 0;
    if (text != NULL && (end == text || *end != '\0' || !(v >= 0) || v > 1e300))
        return cli_usage("--lr: '%s' is not a number of at least 0", text);
    return CLI_OK;
}

static int check(const cli_verb *verb, const cli_args *a)
{
    if (a->help)
        return CLI_OK;
    if (check_strategy(a->strategy) != CLI_OK)
        return CLI_USAGE;
    if (a->n_words < verb->min_words)
        return cli_usage("tutti %s needs %s", verb->name, verb->words);
    if (a->n_words > verb->max_words)
        return cli_usage("tutti %s: unexpected argument '%s'", verb->name,
                         a->words[verb->max_words]);
    if (check_lr(a->lr) != CLI_OK)
        return CLI_USAGE;
    if (a->json && a->quiet)
        return cli_usage("tutti %s: --json and --quiet cannot be combined", verb->name);
    if (a->json + a->dot + (a->svg != NULL) > 1)
        return cli_usage("tutti %s: only one of --json, --dot and --svg may be given", verb->name);
    return CLI_OK;
}

// The long name of a flag that has a short one; NULL: it has none.
static char *long_name(const cli_verb *verb, const char *word)
{
    static char processes[] = "--processes", on[] = "--on";
    char *name = strcmp(word, "-n") == 0 ? processes : strcmp(word, "-H") == 0 ? on : NULL;
    return name != NULL && cli_takes(verb, name + 2) ? name : NULL;
}

int cli_parse(const cli_verb *verb, int argc, char **argv, cli_args *out)
{
    bool only_words = false; // after "--"
    *out = (cli_args){.temperature = 0.8, .length = 200, .steps = 50};
    for (int i = 0; i < argc; i++) {
        if (!only_words && strcmp(argv[i], "--") == 0) {
            only_words = true;
        } else if (!only_words && strcmp(argv[i], "-h") == 0) {
            out->help = true;
        } else if (!only_words && long_name(verb, argv[i]) != NULL) {
            argv[i] = long_name(verb, argv[i]);
            i--;
        } else if (!only_words && strncmp(argv[i], "--", 2) == 0) {
            int rc = one_flag(verb, argc, argv, &i, out);
            if (rc != CLI_OK)
                return rc;
        } else if (!only_words && argv[i][0] == '-' && argv[i][1] != '\0') {
            return cli_usage("tutti %s: unknown flag %s; flags begin with --", verb->name, argv[i]);
        } else if (out->n_words == CLI_MAX_WORDS) {
            return cli_usage("tutti %s: more than %d arguments", verb->name, CLI_MAX_WORDS);
        } else {
            out->words[out->n_words++] = argv[i];
            only_words = only_words || (out->n_words == 1 && verb->ends_flags != NULL &&
                                        verb->ends_flags(argv[i]));
        }
    }
    return check(verb, out);
}
