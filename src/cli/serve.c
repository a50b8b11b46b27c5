/*
 * serve.c - tutti serve: the server of a task, or a whole cluster on this machine; tutti ping.
 */
#include "base/ctx.h"
#include "cli/cli.h"
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define GRACE_S 10

static const char help[] =
    "Runs the server of one task of a cluster, in the foreground. CLUSTER is a file:\n"
    "\n"
    "  jobs:\n"
    "    ps: [10.0.0.1:2222]\n"
    "    worker:\n"
    "      - 10.0.0.2:2222\n"
    "      - {address: 10.0.0.3:2222, devices: \"cpu:0, gpu:0\"}\n"
    "  devices: cpu:0      # of tasks that name none\n"
    "  key: cluster.key    # made by tutti key new; needed beyond this machine\n"
    "\n"
    "Without CLUSTER, TF_CONFIG is read. --local N runs a whole cluster of N tasks on free ports\n"
    "of this machine instead, --jobs names them. The address of each task is printed when it\n"
    "accepts clients; --ready-fd N then writes a line to file descriptor N, and tutti ping asks.\n"
    "SIGTERM and Ctrl-C let requests under way end (--grace), then stop the server.\n";

static int not_ready(const char *why)
{
    return cli_error("--ready-fd: %s", why);
}

static int tell_ready(const cli_args *args, const tt_server *s)
{
    for (int i = 0; i < tt_server_count(s) && !args->quiet; i++)
        cli_printf("%s %s\n", tt_server_task(s, i), tt_server_target(s, i));
    if (fflush(stdout) != 0)
        return cli_error("cannot write to standard output: %s", strerror(errno));
    if (args->ready_fd == 0)
        return CLI_OK;
    int fd = (int)args->ready_fd;
    if (write(fd, "ready\n", 6) != 6)
        return not_ready(strerror(errno));
    if (fd > STDERR_FILENO)
        close(fd);
    return CLI_OK;
}

static int await_signal(tt_ctx *ctx, tt_server *s, const cli_args *args, const sigset_t *set)
{
    int number;
    while ((number = sigwaitinfo(set, NULL)) < 0 && errno == EINTR)
        ;
    int64_t grace = args->grace > 0 ? args->grace : GRACE_S;
    tt_status st = tt_server_stop(s, number == SIGINT ? 0 : grace * 1000);
    if (st != TT_OK && number != SIGINT)
        return CLI_FAILED;
    tt_clear_error(ctx);
    return number == SIGINT ? CLI_BREAK : CLI_OK;
}

static int run(const cli_args *args)
{
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGTERM);
    sigaddset(&set, SIGINT);
    sigaddset(&set, SIGHUP);
    if (args->local > 0 && (args->n_words > 0 || args->task != NULL))
        return cli_usage("tutti serve: --local starts all tasks of a cluster of its own; leave "
                         "CLUSTER and --task out");
    if (args->local == 0 && args->jobs != NULL)
        return cli_usage("tutti serve: --jobs needs --local N");
    sigprocmask(SIG_BLOCK, &set, NULL); // before any thread is there
    signal(SIGPIPE, SIG_IGN);
    cli_args own = *args; // the devices are those of sessions
    own.devices = NULL;
    tt_ctx *ctx = cli_open(&own, "cpu:0");
    if (ctx == NULL)
        return CLI_FAILED;
    tt_server *s = args->local > 0
                       ? tt_cluster_local(ctx, (int)args->local, .jobs = args->jobs,
                                          .devices = args->devices, .threads = (int)args->threads)
                       : tt_serve(ctx, .cluster = args->n_words > 0 ? args->words[0] : NULL,
                                  .task = args->task, .devices = args->devices, .bind = args->bind,
                                  .key = args->key, .threads = (int)args->threads);
    int rc = s == NULL ? cli_code(tt_status_of(ctx)) : tell_ready(args, s);
    if (s != NULL && rc == CLI_OK)
        rc = await_signal(ctx, s, args, &set);
    int closed = cli_close(ctx, NULL);
    return rc != CLI_OK ? rc : closed;
}

const cli_verb cli_serve = {
    .name = "serve",
    .words = "[CLUSTER]",
    .summary = "run a server that computes graphs for clients and keeps their variables",
    .help = help,
    .flags = "task local jobs devices threads bind key ready-fd grace quiet",
    .min_words = 0,
    .max_words = 1,
    .run = run,
};

// ---- ping ------------------------------------------------------------------------------------

static void print_info(const cli_args *args, const char *target, const tt_server_info *i)
{
    tti_text t = {.ctx = NULL};
    char size[32];
    tti_size_text((double)i->bytes, size);
    if (args->json) {
        tti_text_add(&t, "{\"target\": ");
        tti_text_json(&t, target);
        tti_text_add(&t, ", \"task\": ");
        tti_text_json(&t, i->task);
        tti_text_add(&t, ", \"version\": \"%s\", \"devices\": ", i->version);
        tti_text_json(&t, i->devices);
        tti_text_add(&t,
                     ", \"tasks\": %d, \"clients\": %d, \"sessions\": %d, \"containers\": %d, "
                     "\"variables\": %d, \"queues\": %d, \"bytes\": %zu, \"runs\": %lld, "
                     "\"failed\": %lld, \"up_ms\": %lld, \"draining\": %s}\n",
                     i->n_tasks, i->clients, i->sessions, i->containers, i->variables, i->queues,
                     i->bytes, (long long)i->runs, (long long)i->refused, (long long)i->up_ms,
                     i->is_draining ? "true" : "false");
    } else {
        tti_text_add(&t, "%s: %s of %d, Tutti %s, %s\n", target, i->task, i->n_tasks, i->version,
                     i->devices);
        tti_text_add(&t, "  clients %d, sessions %d, runs %lld, failed requests %lld\n", i->clients,
                     i->sessions, (long long)i->runs, (long long)i->refused);
        tti_text_add(&t, "  containers %d, variables %d (%s), queues %d%s\n", i->containers,
                     i->variables, size, i->queues, i->is_draining ? ", stopping" : "");
    }
    cli_print_text(&t);
}

static int run_ping(const cli_args *args)
{
    tt_ctx *ctx = cli_open(args, "cpu:0");
    if (ctx == NULL)
        return CLI_FAILED;
    tt_server_info info;
    tt_status st =
        tt_ping(ctx, args->words[0], &info, .key = args->key, .deadline_ms = args->wait * 1000);
    if (st == TT_OK && !args->quiet)
        print_info(args, args->words[0], &info);
    int closed = cli_close(ctx, NULL);
    return st != TT_OK ? cli_code(st) : closed;
}

const cli_verb cli_ping = {
    .name = "ping",
    .words = "TARGET",
    .summary = "ask a server whether it is there and what it has",
    .help = "TARGET is tutti://host:port. Without --wait the server must answer at once; with it,\n"
            "one that is not up yet is waited for. Exits with 76 if no server answers or it\n"
            "refuses the key.\n",
    .flags = "key wait json quiet",
    .min_words = 1,
    .max_words = 1,
    .run = run_ping,
};
