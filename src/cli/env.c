/*
 * env.c - tutti env: which processes the environment names, and why; and the guard of the verbs
 * that work in one process.
 */
#include "cli/cli.h"
#include "cluster/cluster.h"
#include <stdio.h>
#include <string.h>

static const char help[] =
    "Shows which processes of a job the environment describes, and which of them this process is.\n"
    "The sources below are read in this order; if several are set, they must agree:\n"
    "  TUTTI_TASKS       host:port,host:port of all processes, as set by tutti run; TUTTI_RANK is\n"
    "                    the rank of this process, TUTTI_LOCAL=0/2 its local rank and the number\n"
    "                    of processes on this machine\n"
    "  TUTTI_HOSTS       a file with one line host[:port] [slots=N] per machine; '#' starts a\n"
    "                    comment; set TUTTI_RANK if the host name does not identify the process\n"
    "  TF_CONFIG         TensorFlow's JSON with cluster and task\n"
    "  RANK, WORLD_SIZE  with MASTER_ADDR and MASTER_PORT, and optionally LOCAL_RANK,\n"
    "                    LOCAL_WORLD_SIZE and GROUP_RANK, as set by torchrun\n"
    "An empty variable counts as not set. With TUTTI_CLUSTER=ignore there is one process, "
    "whatever\n"
    "else is set.\n"
    "\n"
    "train, eval and predict join the other processes. Across machines they need the job's "
    "secret:\n"
    "set TUTTI_SECRET_FILE to a file made by tutti key new and copied to every machine, or\n"
    "TUTTI_SECRET to the secret itself. More settings:\n"
    "  TUTTI_TRANSPORT       auto, shm or wire\n"
    "  TUTTI_BIND            address or interface to listen on\n"
    "  TUTTI_ENCRYPTION=off  send data unencrypted\n"
    "  TUTTI_RENDEZVOUS_MS   how long processes wait for each other at the start (10000)\n"
    "  TUTTI_LOSS_MS         time without a heartbeat after which a process counts as lost (2000)\n"
    "bench runs in one process and refuses an environment that describes several.\n"
    "\n"
    "Processes started by srun or mpirun do not join each other: train and bench refuse to run\n"
    "the whole job in each of them, unless --alone is given.\n";

static const char *const sources[] = {"none", "hosts", "tf_config", "torchrun", "tasks"};

// ---- what was found --------------------------------------------------------------------------

static bool is_set(const char *name)
{
    const char *value = tti_env(name);
    return value != NULL && value[0] != '\0';
}

// As it is, but for what a terminal should not get.
static void put_plain(tti_text *t, const char *s)
{
    for (; *s != '\0'; s++)
        tti_text_put(t, *s >= ' ' && *s <= '~' ? s : "?", 1);
}

static void print_variables(tti_text *t)
{
    tti_text_add(t, "%-17s %s\n", "variable", "value");
    for (const char *const *v = tti_cluster_variables; *v != NULL; v++) {
        tti_text_add(t, "%-17s ", *v);
        if (is_set(*v))
            put_plain(t, tti_env(*v));
        else
            tti_text_add(t, "%s", tti_env(*v) != NULL ? "empty" : "not set");
        tti_text_add(t, "\n");
    }
}

static void print_tasks(tti_text *t, const tt_cluster *c)
{
    tti_text_add(t, "\n  %-15s %9s %9s  %s\n", "task", "rank", "processes", "address");
    for (int i = 0; i < c->n_tasks; i++) {
        const tt_task *k = &c->tasks[i];
        char name[32], ranks[32] = "-";
        snprintf(name, sizeof(name), "%s %d", k->job, k->index);
        if (k->first_rank >= 0 && k->n_processes > 1)
            snprintf(ranks, sizeof(ranks), "%d-%d", k->first_rank,
                     k->first_rank + k->n_processes - 1);
        else if (k->first_rank >= 0)
            snprintf(ranks, sizeof(ranks), "%d", k->first_rank);
        tti_text_add(t, "%c %-15s %9s %9d  %s\n", i == c->task ? '*' : ' ', name, ranks,
                     k->n_processes, k->address[0] != '\0' ? k->address : "unknown");
    }
}

// One line: what was found, and where.
static void print_finding(tti_text *t, const tt_cluster *c)
{
    const tt_task *k = &c->tasks[c->task];
    if (c->is_ignored) {
        tti_text_add(t,
                     "one process: TUTTI_CLUSTER=ignore is set, so no other variable was read\n");
    } else if (c->source == TT_CLUSTER_NONE) {
        tti_text_add(t, "one process: none of ");
        for (const char *const *v = tti_cluster_variables; *v != NULL; v++)
            tti_text_add(t, "%s%s", v == tti_cluster_variables ? "" : ", ", *v);
        tti_text_add(t, " is set\n");
    } else {
        tti_text_add(t, "%d %s (", c->n_processes,
                     c->n_processes == 1 ? "training process" : "training processes");
        put_plain(t, c->found_in);
        tti_text_add(t, "): this is %s %d, ", k->job, k->index);
        if (c->rank < 0)
            tti_text_add(t, "which does not train\n");
        else
            tti_text_add(t, "rank %d, local rank %d\n", c->rank, c->local_rank);
    }
}

static void print_text(tti_text *t, const tt_cluster *c)
{
    print_finding(t, c);
    if (c->source == TT_CLUSTER_NONE && !c->is_ignored)
        return;
    tti_text_add(t, "\n");
    print_variables(t);
    if (c->source != TT_CLUSTER_NONE)
        print_tasks(t, c);
    if (c->rank < 0)
        tti_text_add(t, "\nThis process has no work: the training processes evaluate together.\n");
    else if (c->n_processes > 1)
        tti_text_add(
            t,
            "\ntutti train joins the other processes%s. Set TUTTI_CLUSTER=ignore to train alone.\n",
            is_set("TUTTI_SECRET_FILE") || is_set("TUTTI_SECRET")
                ? ""
                : "; no secret is set, so all must run on this machine by the same user");
}

// ---- JSON ------------------------------------------------------------------------------------

static void json_text(tti_text *t, const char *name, const char *value)
{
    tti_text_add(t, "\"%s\": ", name);
    if (value != NULL)
        tti_text_json(t, value);
    else
        tti_text_add(t, "null");
}

static void json_variables(tti_text *t)
{
    tti_text_add(t, "\"variables\": {");
    for (const char *const *v = tti_cluster_variables; *v != NULL; v++) {
        tti_text_add(t, "%s", v == tti_cluster_variables ? "" : ", ");
        json_text(t, *v, tti_env(*v));
    }
    tti_text_add(t, "}");
}

static void json_cluster(tti_text *t, const tt_cluster *c)
{
    json_text(t, "source", sources[c->source]);
    tti_text_add(t, ", \"ignored\": %s, ", c->is_ignored ? "true" : "false");
    json_text(t, "found_in", c->found_in);
    tti_text_add(t, ", ");
    json_text(t, "text", c->text);
    tti_text_add(t, ", \"processes\": %d, \"rank\": %d, \"local_processes\": %d, ", c->n_processes,
                 c->rank, c->n_local);
    tti_text_add(t, "\"local_rank\": %d, \"task\": %d, \"tasks\": [", c->local_rank, c->task);
    for (int i = 0; i < c->n_tasks; i++) {
        const tt_task *k = &c->tasks[i];
        tti_text_add(t, "%s{\"job\": \"%s\", \"index\": %d, ", i > 0 ? ", " : "", k->job, k->index);
        json_text(t, "address", k->address);
        tti_text_add(t, ", \"processes\": %d, \"first_rank\": %d}", k->n_processes, k->first_rank);
    }
    tti_text_add(t, "], ");
}

// ---- the verb and the guard ------------------------------------------------------------------

static void ignore_event(void *user, const tt_event *ev)
{
    (void)user, (void)ev;
}

static tt_ctx *open_quietly(void)
{
    return tt_open(.devices = "cpu:0", .threads = 1, .on_event = ignore_event);
}

// An environment that cannot be understood is as a job that cannot be.
static int close_with(tt_ctx *ctx, tt_status st)
{
    int rc = cli_close(ctx, st != TT_OK ? "environment" : NULL);
    return st == TT_OK || st == TT_ENOMEM ? rc : CLI_BAD_JOB;
}

static int run(const cli_args *args)
{
    tt_cluster *c = NULL;
    tt_ctx *ctx = open_quietly(), *printer = open_quietly(); // one may carry the error
    tti_text t = {.ctx = printer};
    if (ctx == NULL || printer == NULL)
        return cli_error("out of memory");
    tt_status st = tt_cluster_find(ctx, &c);
    if (args->json) {
        tti_text_add(&t, "{");
        if (st == TT_OK)
            json_cluster(&t, c);
        else
            json_text(&t, "error", tt_last_error(ctx).message);
        tti_text_add(&t, "%s", st == TT_OK ? "" : ", ");
        json_variables(&t);
        tti_text_add(&t, "}\n");
    } else if (st == TT_OK) {
        print_text(&t, c);
    } else {
        print_variables(&t);
    }
    cli_print_text(&t);
    tt_cluster_free(ctx, c);
    int rc = close_with(ctx, st);
    return cli_close(printer, NULL) == CLI_OK ? rc : CLI_FAILED;
}

// "TF_CONFIG, RANK": what would have to be unset.
static void list_set(char *out, size_t room)
{
    size_t n = 0;
    out[0] = '\0';
    for (const char *const *v = tti_cluster_variables; *v != NULL; v++)
        if (is_set(*v) && n < room)
            n += (size_t)snprintf(out + n, room - n, "%s%s", n > 0 ? ", " : "", *v);
}

int cli_not_one_of_many(const cli_args *args)
{
    char found[TTI_LAUNCHER_TEXT];
    const char *cluster = tti_env("TUTTI_CLUSTER");
    bool ignored = cluster != NULL && strcmp(cluster, "ignore") == 0;
    if (args->alone || args->dry_run || ignored || !tti_launcher_find(found))
        return CLI_OK;
    (void)cli_error(
        "%s, each of which would run the whole job: start them with tutti run, or set TUTTI_TASKS "
        "and TUTTI_RANK for each (tutti help env); --alone runs the whole job in every process",
        found);
    return CLI_BAD_JOB;
}

int cli_alone(const cli_args *args)
{
    char set[256];
    tt_cluster *c = NULL;
    list_set(set, sizeof(set));
    if (set[0] == '\0')
        return args->verb->alone ? cli_not_one_of_many(args) : CLI_OK;
    tt_ctx *ctx = open_quietly();
    if (ctx == NULL)
        return cli_error("out of memory");
    tt_status st = tt_cluster_find(ctx, &c);
    if (st == TT_OK && (c->n_processes > 1 || c->rank < 0)) {
        char rank[32] = "which does not train", found[TTI_EXCERPT];
        if (c->rank >= 0)
            snprintf(rank, sizeof(rank), "rank %d", c->rank);
        st = TT_FAIL(ctx, TT_EINVAL,
                     "the environment describes %d process%s that train%s (%s: this is %s %d, %s), "
                     "but this command runs in one; start one process with --devices, or unset %s, "
                     "or set TUTTI_CLUSTER=ignore",
                     c->n_processes, c->n_processes == 1 ? "" : "es",
                     c->n_processes == 1 ? "s" : "", tti_excerpt(found, c->found_in),
                     c->tasks[c->task].job, c->tasks[c->task].index, rank, set);
        tt_cluster_free(ctx, c);
        cli_close(ctx, NULL);
        return CLI_BAD_JOB;
    }
    tt_cluster_free(ctx, c);
    int rc = close_with(ctx, st);
    if (st != TT_OK)
        fputs("tutti: tutti env shows what was found; set TUTTI_CLUSTER=ignore to ignore it\n",
              stderr);
    return rc;
}

const cli_verb cli_env = {
    .name = "env",
    .summary = "show the job's processes as found in the environment",
    .help = help,
    .flags = "json",
    .run = run,
};
