/*
 * env.c - tutti env: which processes the environment names, and why; and the guard of the verbs
 * that work in one process.
 */
#include "cli/cli.h"
#include "cluster/launchers.h"
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
    "  launchers         TUTTI_RANK with TUTTI_SIZE, mpirun (OpenMPI, MPICH, Intel MPI, MVAPICH),\n"
    "                    srun, horovodrun, jsrun, flux run, PET_* of torchrun, SkyPilot, Volcano,\n"
    "                    Kubernetes (indexed Jobs, StatefulSets) and PMIx, by their variables. Of\n"
    "                    several the one that started this very process counts\n"
    "An empty variable counts as not set. With TUTTI_CLUSTER=ignore, or tutti train --alone, "
    "there\n"
    "is one process, whatever else is set.\n"
    "\n"
    "train, eval and predict join the other processes. Settings for launchers:\n"
    "  TUTTI_SIZE            number of processes, where the launcher does not tell it "
    "(Kubernetes)\n"
    "  TUTTI_LEADER          host:port of rank 0; MASTER_ADDR and MASTER_PORT do as well\n"
    "  TUTTI_JOB_ID          a text that is new for every start, where the launcher has none\n"
    "Processes need a common secret: set TUTTI_SECRET_FILE to a file made by tutti key new, on\n"
    "every machine, or TUTTI_SECRET to the secret itself. Without one, rank 0 makes a key and the\n"
    "others read it from a file: on one machine in the user's runtime folder; of launchers on\n"
    "several machines in TUTTI_KEY_DIR, a folder that all share (~/.tutti). More settings:\n"
    "  TUTTI_TRANSPORT       auto, shm or wire\n"
    "  TUTTI_BIND            address or interface to listen on\n"
    "  TUTTI_ENCRYPTION=off  send data unencrypted\n"
    "  TUTTI_RENDEZVOUS_MS   how long processes wait for each other at the start (10000)\n"
    "  TUTTI_LOSS_MS         time without a heartbeat after which a process counts as lost (2000)\n"
    "bench and run refuse an environment in which they would do the same work several times,\n"
    "unless --alone is given.\n";

static const char *const sources[] = {"none",     "hosts", "tf_config",
                                      "torchrun", "tasks", "launcher"};

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

// Those that are set or empty; there are too many to list the others.
static void print_variables(tti_text *t)
{
    bool any = false;
    for (const char *const *v = tti_cluster_variables; *v != NULL; v++) {
        if (tti_env(*v) == NULL)
            continue;
        if (!any)
            tti_text_add(t, "%-26s %s\n", "variable", "value");
        any = true;
        tti_text_add(t, "%-26s ", *v);
        if (is_set(*v))
            put_plain(t, tti_env(*v));
        else
            tti_text_add(t, "empty");
        tti_text_add(t, "\n");
    }
}

// Which launchers have left their variables, and why one of them counts.
static void print_launchers(tti_text *t, const tt_cluster *c)
{
    tti_here here;
    bool any = false;
    int depth = -1; // of the one that counts
    tti_cluster_here(&here);
    for (int i = 0; tti_launcher_at(i) != NULL; i++) {
        const tti_launcher *l = tti_launcher_at(i);
        bool counts = c->launcher[0] != '\0' && strcmp(c->launcher, l->name) == 0;
        if (!tti_launcher_has(l, &here.env))
            continue;
        if (!any)
            tti_text_add(t, "\nlauncher\n");
        any = true;
        depth = counts ? l->depth : depth;
        tti_text_add(t, "%c %s: %s\n", counts ? '*' : ' ', l->name,
                     counts                                ? "started this process"
                     : c->source == TT_CLUSTER_NONE        ? "started one process"
                     : tti_launcher_is_torchrun(&here.env) ? "passed over: torchrun, which it "
                                                             "started, has started this process"
                     : l->depth < depth ? "passed over: the one above has started this process"
                                        : "says the same, or that it started one process");
    }
}

// How the processes get the job's secret and find rank 0.
static void print_key(tti_text *t, const tt_cluster *c)
{
    const char *folder = tti_env("TUTTI_KEY_DIR");
    bool near = c->n_local == c->n_processes;
    if (is_set("TUTTI_SECRET_FILE") || is_set("TUTTI_SECRET"))
        tti_text_add(t, "The secret is that of %s.",
                     is_set("TUTTI_SECRET_FILE") ? "TUTTI_SECRET_FILE" : "TUTTI_SECRET");
    else if (c->id[0] != '\0' && near)
        tti_text_add(t, "No secret is set: rank 0 makes a key for this user on this machine.");
    else if (c->id[0] != '\0' || (folder != NULL && folder[0] != '\0'))
        tti_text_add(t, "No secret is set: rank 0 puts a key into a file of mode 0600 in %s.",
                     folder != NULL && folder[0] != '\0' ? folder : "~/.tutti");
    else
        tti_text_add(t, "No secret is set, so all must run on this machine by the same user.");
    if (c->launcher[0] != '\0' && c->tasks[0].address[0] == '\0' && c->id[0] == '\0')
        tti_text_add(t, " Nothing says where rank 0 is: set TUTTI_LEADER or TUTTI_JOB_ID.");
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
        tti_text_add(t, "one process: no launcher has started others beside it (tutti help env "
                        "lists the variables that are read)\n");
    } else {
        tti_text_add(t, "%d %s (", c->n_processes,
                     c->n_processes == 1 ? "training process" : "training processes");
        if (c->launcher[0] != '\0')
            tti_text_add(t, "%s: ", c->launcher);
        put_plain(t, c->found_in);
        tti_text_add(t, "): this is %s %d, ", k->job, k->index);
        if (c->rank < 0)
            tti_text_add(t, "which does not train\n");
        else
            tti_text_add(t, "rank %d, local rank %d\n", c->rank, c->local_rank);
    }
}

static bool some_set(void)
{
    for (const char *const *v = tti_cluster_variables; *v != NULL; v++)
        if (tti_env(*v) != NULL)
            return true;
    return false;
}

static void print_text(tti_text *t, const tt_cluster *c)
{
    print_finding(t, c);
    if (!some_set())
        return;
    tti_text_add(t, "\n");
    print_variables(t);
    if (!c->is_ignored)
        print_launchers(t, c);
    if (c->source != TT_CLUSTER_NONE)
        print_tasks(t, c);
    if (c->rank < 0) {
        tti_text_add(t, "\nThis process has no work: the training processes evaluate together.\n");
    } else if (c->n_processes > 1) {
        tti_text_add(t, "\ntutti train joins the other processes; tutti train --alone, or "
                        "TUTTI_CLUSTER=ignore, trains alone.\n");
        print_key(t, c);
        tti_text_add(t, "\n");
    }
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
    json_text(t, "launcher", c->launcher);
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
    const char *how = tti_env("TUTTI_CLUSTER");
    tti_launch by;
    tti_here here;
    if (args->alone || (how != NULL && strcmp(how, "ignore") == 0))
        return CLI_OK;
    tt_ctx *ctx = open_quietly();
    if (ctx == NULL)
        return cli_error("out of memory");
    tti_cluster_here(&here);
    tt_status st = tti_launcher_find(ctx, &here.env, false, &by);
    if (st == TT_OK && by.by != NULL)
        st = TT_FAIL(ctx, TT_EINVAL,
                     "%s has started %d processes (%s=%d), and each of them would start the job: "
                     "use tutti train in place of tutti run, which joins them; --alone starts it "
                     "in every process",
                     by.by->name, by.n, by.by->size, by.n);
    return close_with(ctx, st);
}

int cli_alone(const cli_args *args)
{
    char set[256];
    tt_cluster *c = NULL;
    list_set(set, sizeof(set));
    if (set[0] == '\0' || args->alone)
        return CLI_OK;
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
