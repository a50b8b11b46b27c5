/*
 * plan.c - tutti plan: what each device would do for a graph, without running it.
 */
#include "cli/job.h"
#include "device/device.h"
#include "job/topology_file.h"
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

// What is planned: a step of a model that is trained, or the outputs of a graph.
typedef struct subject {
    tt_graph *graph;
    tt_session *session;
    tt_model *model; // NULL: a graph
    tt_tensor *const *targets;
    int64_t rows, accumulate;
    const tti_topology *top; // NULL: the context's
    int had_lanes;           // as the job has them, where the plan has more; else 0
    int64_t had_rows;
} subject;

static tt_status make_plan(const subject *s, const cli_args *args, tti_stage_watch *watch,
                           tti_plan **out)
{
    if (s->model != NULL && s->model->step != NULL && args->targets.n == 0)
        return tti_step_look(s->model, s->rows, s->accumulate, s->top, watch, out);
    tt_plan_opts opts = {.opts_size = sizeof(opts),
                         .targets = args->targets.n > 0 ? s->targets : NULL,
                         .n_targets = args->targets.n,
                         .rows = s->rows};
    return tti_session_look(s->session, &opts, s->top, watch, out);
}

// What the stages of planning did.
static void print_stages(const subject *s, const cli_args *args)
{
    tt_ctx *ctx = s->session->ctx;
    tti_stage_watch w = {.show = -1};
    tti_stage show;
    tti_plan *p;
    if (args->stage != NULL) {
        if (tti_stage_find(ctx, args->stage, &show) != TT_OK)
            return;
        w.show = (int)show;
    }
    char *text = NULL;
    if (make_plan(s, args, &w, &p) == TT_OK) {
        text = args->json ? tti_stage_watch_json(ctx, &w) : tti_stage_watch_text(ctx, &w);
        tti_plan_free(p);
    }
    if (text != NULL && !args->quiet)
        cli_print(text);
    tti_free(ctx, text);
    tti_stage_watch_deinit(ctx, &w);
}

// After the plan as text: was it checked, and how far could it be spread?
static void print_rest(const subject *s, bool is_checked)
{
    const tti_topology *top = s->top != NULL ? s->top : &s->session->ctx->top;
    char most[TTI_MOST_TEXT];
    if (is_checked)
        cli_printf("\nthe plan was checked: every rule holds\n");
    if (top->n_devices > 1)
        cli_printf("\n%s\n", tti_most_text(top, s->graph, most));
    if (s->had_lanes > 0)
        cli_printf("planned with lanes: %d and %lld rows per step, so that every replica has a "
                   "lane with a row; with the job's lanes: %d and %lld rows, %d replica%s would be "
                   "used, and other bits come out\n",
                   top->lanes, (long long)s->rows, s->had_lanes, (long long)s->had_rows,
                   s->had_lanes, s->had_lanes == 1 ? "" : "s");
}

static void print_plan(const subject *s, const cli_args *args)
{
    tt_ctx *ctx = s->session->ctx;
    tt_plan_form form = args->json ? TT_PLAN_JSON : TT_PLAN_TEXT;
    if (args->dot || args->svg != NULL)
        form = TT_PLAN_DOT;
    if (args->stages || args->stage != NULL) {
        print_stages(s, args);
        return;
    }
    tti_plan *p;
    if (make_plan(s, args, NULL, &p) != TT_OK)
        return;
    char *out = tti_plan_text(p, form);
    if (out != NULL && args->svg == NULL && !args->quiet)
        cli_print(out);
    bool good = !args->verify || tti_plan_verify(p, TTI_STAGE_EMIT) == TT_OK;
    if (out != NULL && good && form == TT_PLAN_TEXT && !args->quiet)
        print_rest(s, args->verify);
    if (out != NULL && good && args->svg != NULL && draw(ctx, out, args->svg) == TT_OK)
        cli_wrote(args, args->svg, "plan", args->words[0]);
    tt_string_free(ctx, out);
    tti_plan_free(p);
}

/*
 * A replica takes at least one lane, and a lane at least one row. Where a topology has room for
 * more replicas than there are lanes, and the command line does not say how many there are, the
 * plan is for as many lanes, and for a batch with a row for each.
 */
static tt_status match_lanes(const cli_args *args, tti_topology *top, subject *s)
{
    tti_mesh mesh;
    int had = top->lanes;
    if (args->lanes > 0)
        return TT_OK;
    top->lanes = TT_MAX_LANES;
    tt_status st = top->strategy->mesh(top, s->graph, &mesh);
    int replicas = st == TT_OK ? tti_mesh_size(&mesh, TTI_AXIS_DATA) - mesh.n_without_lanes : 0;
    top->lanes = TTI_MAX(had, replicas);
    if (st != TT_OK || replicas <= had)
        return st;
    s->had_lanes = had;
    s->had_rows = s->rows;
    if (args->rows == 0)
        s->rows =
            TTI_MAX(s->rows, (top->lanes + s->accumulate - 1) / s->accumulate * s->accumulate);
    return TT_OK;
}

// Reads the topology that the command line names, if it names one.
static tt_status look_elsewhere(const cli_args *args, tt_ctx *ctx, tti_topology *top, subject *s)
{
    if (args->topology == NULL)
        return TT_OK;
    if (tti_is_topology_file(args->topology))
        TT_TRY(tti_topology_read(ctx, &ctx->top, args->topology, top));
    else
        TT_TRY(tti_topology_parse(ctx, &ctx->top, args->topology, top));
    top->host_memory = 0; // of this machine
    s->top = top;
    return match_lanes(args, top, s);
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
    int n = tt_device_count(j->ctx);
    size_t all = 0, *bytes = tti_calloc(j->ctx, (size_t)n, sizeof(*bytes));
    bool known = bytes != NULL && cli_job_validation(j, bytes) == TT_OK;
    for (int i = 0; known && i < n; i++)
        all += bytes[i];
    for (int i = 0; all > 0 && i < n; i++)
        print_size(i == 0 ? "validation needs in addition to a step: " : ", ",
                   j->ctx->top.devices[i]->name, bytes[i]);
    printf(all > 0 ? "\n" : "");
    tti_free(j->ctx, bytes);
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
    tti_topology top = {.made = NULL};
    subject s = {.graph = g,
                 .session = g != NULL ? tt_session_new(g) : NULL,
                 .targets = targets,
                 .rows = args->rows,
                 .accumulate = 1};
    if (s.session != NULL && find_targets(ctx, g, args, targets) == TT_OK &&
        look_elsewhere(args, ctx, &top, &s) == TT_OK)
        print_plan(&s, args);
    tti_topology_free(ctx, &top);
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
    tti_topology top = {.made = NULL};
    subject s = {.graph = tt_model_get_train_graph(j.parts.model),
                 .session = tt_model_get_session(j.parts.model),
                 .model = j.parts.model,
                 .targets = targets,
                 .accumulate = TTI_MAX(j.parts.fit->accumulate, 1)};
    if (s.graph == NULL) {
        s.graph = tt_model_get_graph(j.parts.model);
        s.session = tt_session_new(s.graph);
    }
    s.rows = args->rows > 0 ? args->rows : TTI_MAX(j.parts.fit->batch, 1) * s.accumulate;
    // The job's own step, on this machine.
    bool whole = args->rows == 0 && args->targets.n == 0 && args->topology == NULL;
    if (s.session != NULL && find_targets(j.ctx, s.graph, args, targets) == TT_OK &&
        look_elsewhere(args, j.ctx, &top, &s) == TT_OK &&
        (!whole || cli_job_check_memory(&j, true) == TT_OK))
        print_plan(&s, args);
    bool plain = !args->json && !args->dot && args->svg == NULL && !args->stages;
    if (whole && plain && !args->quiet && args->stage == NULL && tt_status_of(j.ctx) == TT_OK)
        print_validation(&j);
    tti_topology_free(j.ctx, &top);
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
        "layout along the axes of the mesh, then the totals. --topology 8x4gpu plans for 8 hosts\n"
        "with 4 GPUs each, which need not be there; --topology cluster.yaml reads hosts, devices\n"
        "and links from a file. --verify checks the plan.\n"
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
