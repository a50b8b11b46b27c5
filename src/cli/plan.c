/*
 * plan.c - tutti plan: what each device would do for a graph, without running it.
 */
#include "cli/job.h"
#include "device/device.h"
#include "plan/stages.h"
#include "plan/verify/verify.h"
#include "run/run.h"
#include "strategy/strategy.h"
#include "train/compile.h"
#include <errno.h>
#include <fcntl.h>
#include <spawn.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define MAX_FILE ((int64_t)4 << 30)

extern char **environ;

// The whole file, "-" being standard input; NULL: the error is recorded.
static char *read_file(tt_ctx *ctx, const char *path, size_t *bytes)
{
    bool standard = strcmp(path, "-") == 0;
    int fd = standard ? STDIN_FILENO : open(path, O_RDONLY | O_CLOEXEC);
    char *s = NULL;
    int64_t n = 0, cap = 0;
    if (fd < 0) {
        TT_FAIL(ctx, TT_EIO, "cannot open: %s", strerror(errno));
        return NULL;
    }
    for (;;) {
        if (n > MAX_FILE) {
            TT_FAIL(ctx, TT_EIO, "is larger than %lld bytes", (long long)MAX_FILE);
            break;
        }
        if (!tti_grow(ctx, &s, &cap, n + 65536, 1))
            break;
        ssize_t r = read(fd, s + n, (size_t)(cap - n));
        if (r < 0 && errno == EINTR)
            continue;
        if (r < 0)
            TT_FAIL(ctx, TT_EIO, "cannot read: %s", strerror(errno));
        if (r <= 0)
            break;
        n += r;
    }
    if (!standard)
        close(fd);
    if (tt_status_of(ctx) != TT_OK) {
        tti_free(ctx, s);
        return NULL;
    }
    *bytes = (size_t)n;
    return s;
}

// Has Graphviz draw the text into a file.
static tt_status draw(tt_ctx *ctx, const char *text, const char *path)
{
    char *const argv[] = {"dot", "-Tsvg", "-o", (char *)path, NULL};
    posix_spawn_file_actions_t actions;
    FILE *in = tmpfile();
    pid_t pid;
    int status = 0, err = errno;
    if (in == NULL)
        return TT_FAIL(ctx, TT_EIO, "cannot make a temporary file: %s", strerror(err));
    if (fputs(text, in) < 0 || fflush(in) != 0 || fseek(in, 0, SEEK_SET) != 0) {
        err = errno;
        fclose(in);
        return TT_FAIL(ctx, TT_EIO, "cannot write a temporary file: %s", strerror(err));
    }
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_adddup2(&actions, fileno(in), STDIN_FILENO);
    err = posix_spawnp(&pid, "dot", &actions, NULL, argv, environ);
    posix_spawn_file_actions_destroy(&actions);
    if (err == 0)
        while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
            ;
    fclose(in);
    if (err == ENOENT || (WIFEXITED(status) && WEXITSTATUS(status) == 127))
        return TT_FAIL(ctx, TT_EUNSUPPORTED,
                       "--svg needs dot: install graphviz, or use --dot and draw elsewhere");
    if (err != 0)
        return TT_FAIL(ctx, TT_EIO, "cannot start dot: %s", strerror(err));
    if (!WIFEXITED(status) || WEXITSTATUS(status) != 0)
        return TT_FAIL(ctx, TT_EIO, "dot failed to draw %s", path);
    return TT_OK;
}

// The tensors that --target names.
static tt_status find_targets(tt_ctx *ctx, tt_graph *g, const cli_args *args, tt_tensor **out)
{
    for (int i = 0; i < args->targets.n; i++) {
        out[i] = tt_graph_find(g, args->targets.v[i]);
        if (out[i] == NULL)
            return TT_FAIL(ctx, TT_EINVAL, "the graph has no tensor '%s'", args->targets.v[i]);
    }
    return TT_OK;
}

// The plan that was made last.
static tt_status verify(const tt_session *s)
{
    return s->plans != NULL ? tti_plan_verify(s->plans, TTI_STAGE_EMIT) : TT_OK;
}

// Sessions whose plans are for other devices, if the command line names some.
static tt_status look_elsewhere(const cli_args *args, tt_ctx *ctx, tti_topology *top,
                                tt_session *const *s, int n)
{
    if (args->topology == NULL)
        return TT_OK;
    TT_TRY(tti_topology_parse(ctx, &ctx->top, args->topology, top));
    top->host_memory = 0; // of this machine
    for (int i = 0; i < n; i++)
        s[i]->top = top;
    return TT_OK;
}

static void look_back(tt_ctx *ctx, tti_topology *top, tt_session *const *s, int n)
{
    for (int i = 0; i < n; i++) {
        tti_session_forget(s[i]);
        s[i]->top = NULL;
    }
    tti_topology_free(ctx, top);
}

// Makes the plan once more, seeing every stage of it.
static void print_stages(const cli_args *args, tt_session *s, const tt_plan_opts *opts,
                         tt_model *model, int64_t accumulate)
{
    tt_ctx *ctx = s->ctx;
    tti_stage_watch w = {.show = -1};
    tti_stage show;
    if (args->stage != NULL) {
        if (tti_stage_find(ctx, args->stage, &show) != TT_OK)
            return;
        w.show = (int)show;
    }
    tti_session_forget(s);
    s->watch = &w;
    char *plan = model != NULL ? tti_step_plan(model, opts->rows, accumulate, TT_PLAN_TEXT)
                               : tt_plan_print_with(s, opts);
    s->watch = NULL;
    char *text = NULL;
    if (plan != NULL)
        text = args->json ? tti_stage_watch_json(ctx, &w) : tti_stage_watch_text(ctx, &w);
    tt_string_free(ctx, plan);
    if (text != NULL && !args->quiet)
        cli_print(text);
    tti_free(ctx, text);
    tti_stage_watch_deinit(ctx, &w);
}

// model: of a job whose step is planned; NULL: a graph.
static void print_plan(const tt_graph *g, const cli_args *args, tt_session *s,
                       tt_tensor *const *targets, int64_t rows, tt_model *model, int64_t accumulate)
{
    tt_ctx *ctx = g->ctx;
    tt_plan_form form = args->json ? TT_PLAN_JSON : TT_PLAN_TEXT;
    if (args->dot || args->svg != NULL)
        form = TT_PLAN_DOT;
    bool step = model != NULL && model->step != NULL && args->targets.n == 0;
    tt_plan_opts opts = {.opts_size = sizeof(opts),
                         .targets = args->targets.n > 0 ? targets : NULL,
                         .n_targets = args->targets.n,
                         .rows = rows,
                         .form = form};
    if (args->stages || args->stage != NULL) {
        print_stages(args, step ? model->step->session : s, &opts, step ? model : NULL, accumulate);
        return;
    }
    char *out = step ? tti_step_plan(model, rows, accumulate, form) : tt_plan_print_with(s, &opts);
    if (out == NULL)
        return;
    if (args->svg == NULL && !args->quiet)
        cli_print(out);
    if (args->verify && verify(step ? model->step->session : s) == TT_OK && !args->quiet &&
        form == TT_PLAN_TEXT)
        cli_printf("\nthe plan was checked: every rule holds\n");
    const tti_topology *top = s->top != NULL ? s->top : &ctx->top;
    if (form == TT_PLAN_TEXT && !args->quiet && top->n_devices > 1) {
        char most[TTI_MOST_TEXT];
        cli_printf("\n%s\n", tti_most_text(top, g, most));
    }
    if (args->svg != NULL && draw(ctx, out, args->svg) == TT_OK)
        cli_wrote(args, args->svg, "plan", args->words[0]);
    tt_string_free(ctx, out);
}

static void print_size(const char *before, const char *name, size_t bytes)
{
    char size[32];
    tti_size_text((double)bytes, size);
    printf("%s%s %s", before, name, size);
}

// What stands beside the step's memory while the job is trained.
static void print_validation(cli_job *j)
{
    size_t bytes[TTI_MAX_DEVICES], all = 0;
    if (tt_status_of(j->ctx) != TT_OK || cli_job_validation(j, bytes) != TT_OK)
        return;
    for (int i = 0; i < tt_device_count(j->ctx); i++)
        all += bytes[i];
    for (int i = 0; all > 0 && i < tt_device_count(j->ctx); i++)
        print_size(i == 0 ? "validation needs in addition to a step: " : ", ",
                   j->ctx->top.devices[i]->name, bytes[i]);
    printf(all > 0 ? "\n" : "");
}

static int plan_graph(const cli_args *args)
{
    tt_tensor *targets[CLI_MAX_TEXTS];
    size_t bytes = 0;
    tt_ctx *ctx = cli_open(args, "cpu:0");
    if (ctx == NULL)
        return cli_open_code(args, NULL);
    char *text = read_file(ctx, args->words[0], &bytes);
    tt_graph *g = text != NULL ? tt_graph_parse(ctx, text, bytes) : NULL;
    tt_session *s = g != NULL ? tt_session_new(g) : NULL;
    tti_topology top = {.made = NULL};
    if (s != NULL && find_targets(ctx, g, args, targets) == TT_OK &&
        look_elsewhere(args, ctx, &top, &s, 1) == TT_OK)
        print_plan(g, args, s, targets, args->rows, NULL, 1);
    if (s != NULL)
        look_back(ctx, &top, &s, 1);
    tti_free(ctx, text);
    return cli_close(ctx, args->words[0]);
}

// A job's training step, or its model alone where the job has no train section.
static int plan_job(const cli_args *args)
{
    tt_tensor *targets[CLI_MAX_TEXTS];
    cli_job j;
    int rc = cli_job_read(args, args->words[0], CLI_NOTHING, &j);
    if (rc == CLI_OK)
        rc = cli_job_build(&j, args, NULL, NULL);
    if (rc != CLI_OK)
        return cli_job_close(&j, rc);
    tt_graph *g = tt_model_get_train_graph(j.parts.model);
    tt_session *s = tt_model_get_session(j.parts.model);
    if (g == NULL) {
        g = tt_model_get_graph(j.parts.model);
        s = tt_session_new(g);
    }
    int64_t accumulate = TTI_MAX(j.parts.fit->accumulate, 1);
    int64_t rows = args->rows > 0 ? args->rows : TTI_MAX(j.parts.fit->batch, 1) * accumulate;
    bool whole = args->rows == 0 && args->targets.n == 0; // the job's own step
    bool here = args->topology == NULL;
    tt_model *m = j.parts.model;
    tt_session *sessions[] = {s, m->step != NULL ? m->step->session : s};
    tti_topology top = {.made = NULL};
    whole &= here;
    if (find_targets(j.ctx, g, args, targets) == TT_OK &&
        look_elsewhere(args, j.ctx, &top, sessions, 2) == TT_OK &&
        (!whole || cli_job_check_memory(&j, true) == TT_OK))
        print_plan(g, args, s, targets, rows, j.parts.model, accumulate);
    bool plain = !args->json && !args->dot && args->svg == NULL && !args->stages;
    if (whole && plain && !args->quiet && args->stage == NULL)
        print_validation(&j);
    look_back(j.ctx, &top, sessions, 2);
    return cli_job_close(&j, cli_code(tt_status_of(j.ctx)));
}

static int run(const cli_args *args)
{
    const char *word = args->words[0];
    return cli_is_job_file(word) || cli_is_folder(word) ? plan_job(args) : plan_graph(args);
}

const cli_verb cli_plan = {
    .name = "plan",
    .words = "FILE",
    .summary = "show what each device would do for a job or a graph, without running it",
    .help =
        "FILE is a job file (.yaml) or a run folder: shows the plan of a training step. It can "
        "also\n"
        "be a graph in text form (tutti help graph), or - for standard input. Lists the op, name,\n"
        "device, bytes and reason for the placement of every node, on several devices also its\n"
        "layout along the axes of the mesh, then the totals. --topology 8x4 plans for 8 hosts "
        "with\n"
        "4 devices each, which need not be there. --verify checks the plan.\n"
        "--stages shows what each stage of planning did: nodes and values before and after it, "
        "the\n"
        "bytes they need, transfers, sums over devices, and the time it took; --stage cut also "
        "prints\n"
        "the program after that stage. --svg needs Graphviz's dot.\n",
    .flags = "json dot svg quiet verify stages stage topology devices strategy rows target lanes "
             "threads isa set",
    .min_words = 1,
    .max_words = 1,
    .run = run,
};
