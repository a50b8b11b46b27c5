/*
 * fit_share.c - share auto: lanes by measured speed. What devices are good for in general is
 * measured before the first plan; how long this model's lanes take on each is known after some
 * steps. Once, if the slowest replica would gain enough, lanes are dealt anew. No bit depends on
 * it.
 */
#include "base/ctx.h"
#include "device/device.h"
#include "run/run.h"
#include "save/share.h"
#include "strategy/strategy.h"
#include "train/fit.h"
#include <stdio.h>
#include <string.h>

#define FIRST 4    // steps that are not looked at
#define STEPS 16   // that are
#define GAIN  0.10 // of the slowest replica's time, at least

static int64_t compute_of(const tti_fit *f, int device)
{
    return tti_clock_read(f->step->session, device, 0).compute;
}

// A plan for other lanes needs other memory: what fits a limit now might not then.
static bool is_wanted(const tti_fit *f)
{
    const tt_ctx *ctx = f->model->ctx;
    // How long devices of other processes take is not known here.
    bool wanted = tti_ranks(ctx) == 1 && ctx->top.n_devices > 1 && ctx->top.spread.share != NULL &&
                  strcmp(ctx->top.spread.share, "auto") == 0 && !f->step->session->trace;
    for (int d = 0; wanted && d < ctx->top.n_devices; d++)
        wanted = ctx->top.devices[d]->limit == 0;
    return wanted;
}

static tt_status mark(tti_fit *f)
{
    tt_ctx *ctx = f->model->ctx;
    f->share_marks = tti_calloc(ctx, (size_t)ctx->top.n_devices, sizeof(*f->share_marks));
    if (f->share_marks == NULL)
        return TT_ENOMEM;
    for (int d = 0; d < ctx->top.n_devices; d++)
        f->share_marks[d] = compute_of(f, d);
    return TT_OK;
}

static int lanes_of(const int *end, int r)
{
    return end[r] - (r > 0 ? end[r - 1] : 0);
}

static void lanes_text(const int *end, int n, char *out, size_t room)
{
    size_t at = 0;
    out[0] = '\0';
    for (int r = 0; r < n && at + 8 < room; r++)
        at += (size_t)snprintf(out + at, room - at, "%s%d", r > 0 ? ", " : "", lanes_of(end, r));
}

// Time of one lane on each replica, its slowest device counting; false: something was not measured.
static bool lane_times(const double *times, const tti_mesh *m, const int *end, double *out)
{
    out[0] = 0; // if it takes no lanes
    for (int r = m->n_without_lanes; r < tti_mesh_size(m, TTI_AXIS_DATA); r++) {
        double most = 0;
        for (int l = 0; l < tti_mesh_size(m, TTI_AXIS_PIPE); l++)
            most = TTI_MAX(most, times[tti_mesh_device(m, r, l)]);
        if (most <= 0 || lanes_of(end, r) < 1)
            return false;
        out[r] = most / lanes_of(end, r);
    }
    return true;
}

static double slowest(const tti_mesh *m, const int *end, const double *lane)
{
    double most = 0;
    for (int r = 0; r < tti_mesh_size(m, TTI_AXIS_DATA); r++)
        most = TTI_MAX(most, lane[r] * lanes_of(end, r));
    return most;
}

// By replica: lanes up to which it takes now and then, and the time of one lane.
typedef struct assignment {
    int *was, *now;
    double *lane;
    double *times, *speed; // by device
} assignment;

static tt_status assignment_alloc(tt_ctx *ctx, int n, assignment *d)
{
    size_t rooms = (size_t)n + 1;
    d->was = tti_calloc(ctx, 2 * rooms, sizeof(int));
    d->lane = tti_calloc(ctx, 3 * rooms, sizeof(double));
    if (d->was == NULL || d->lane == NULL)
        return TT_ENOMEM;
    d->now = d->was + rooms;
    d->times = d->lane + rooms;
    d->speed = d->times + rooms;
    return TT_OK;
}

static void tell(tti_fit *f, const tti_mesh *m, const assignment *d)
{
    tt_ctx *ctx = f->model->ctx;
    char before[256], after[256];
    int replicas = tti_mesh_size(m, TTI_AXIS_DATA);
    lanes_text(d->was, replicas, before, sizeof(before));
    lanes_text(d->now, replicas, after, sizeof(after));
    tt_pair pairs[] = {
        {"step", (double)f->step->step, NULL}, {"lanes", 0, after}, {"was", 0, before}};
    tti_emit_pairs(ctx, "share", pairs, TTI_COUNT(pairs));
    TT_LOG(ctx, TT_INFO, "share auto: replicas now have %s lanes; before, %s", after, before);
}

static tt_status assign_anew(tti_fit *f, assignment *d)
{
    tt_ctx *ctx = f->model->ctx;
    const tti_topology *top = f->step->session->top;
    tti_mesh m;
    TT_TRY(top->strategy->mesh(top, f->step->graph, &m));
    int first = m.n_without_lanes, replicas = tti_mesh_size(&m, TTI_AXIS_DATA);
    if (replicas - first < 2 || replicas - first > top->lanes)
        return TT_OK;
    TT_TRY(assignment_alloc(ctx, top->n_devices, d));
    tti_assign_lanes(&m, top->lanes, d->was);
    for (int i = 0; i < top->n_devices; i++)
        d->times[i] = (double)(compute_of(f, i) - f->share_marks[i]);
    TT_TRY(tti_by_device(ctx, d->times));
    if (!lane_times(d->times, &m, d->was, d->lane))
        return TT_OK;
    memcpy(d->speed, top->speed, sizeof(*d->speed) * (size_t)top->n_devices);
    for (int r = first; r < replicas; r++)
        for (int l = 0; l < tti_mesh_size(&m, TTI_AXIS_PIPE); l++)
            d->speed[tti_mesh_device(&m, r, l)] = d->lane[first] / d->lane[r];
    m.speed = d->speed;
    tti_assign_lanes(&m, top->lanes, d->now);
    if (slowest(&m, d->now, d->lane) > (1 - GAIN) * slowest(&m, d->was, d->lane))
        return TT_OK;
    TT_TRY(tti_session_set_speeds(f->step->session, d->speed));
    if (f->model->session != NULL) // validation has the same lanes
        TT_TRY(tti_session_set_speeds(f->model->session, d->speed));
    tell(f, &m, d);
    return TT_OK;
}

tt_status tti_fit_share(tti_fit *f)
{
    int64_t done = f->step->step - f->first_step;
    if (done == FIRST && is_wanted(f))
        return mark(f);
    if (done != FIRST + STEPS || f->share_marks == NULL)
        return TT_OK;
    assignment d = {NULL};
    tt_status st = assign_anew(f, &d);
    tti_free(f->model->ctx, d.was);
    tti_free(f->model->ctx, d.lane);
    tti_free(f->model->ctx, f->share_marks);
    f->share_marks = NULL;
    return st;
}
