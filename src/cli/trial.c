/*
 * trial.c - whether a job's spread over devices is faster than one device.
 *
 * The fit itself tells how long its steps take. Then, once, the same job is built on one device
 * with all cores in a context of its own, and some steps are timed there while the fit waits:
 * nothing of the job that trains is touched. Only where that costs at most a fiftieth of the run.
 */
#include "cli/trial.h"
#include "cli/side.h"
#include "run/run.h"
#include "strategy/strategy.h"
#include <unistd.h>

#define WINDOWS   5 // before the trial; the first is not looked at
#define LEAST_MS  5000
#define PART      50   // of the run: what the trial may take
#define TOLERANCE 1.05 // slower by less is not told

// How long one step takes on one device; budget_ms is for all of it but opening.
static tt_status time_one(cli_trial *t, double budget_ms, double *out)
{
    cli_side side;
    double ms = 0, best = 0, spent = 0;
    tt_open_opts opts = cli_one_device(t->job);
    tt_status st = cli_side_open(t->job, &opts, &side);
    if (st == TT_OK)
        st = cli_side_step(&side); // makes the plan
    for (int i = 0; st == TT_OK && i < WINDOWS - 1 && (i == 0 || spent < budget_ms / 2); i++) {
        st = cli_side_time(&side, i == 0 ? 1 : CLI_TRIAL_EVERY, &ms);
        spent += ms * (i == 0 ? 1 : CLI_TRIAL_EVERY);
        best = i == 0 || ms < best ? ms : best;
    }
    cli_side_close(&side);
    *out = best;
    return st;
}

// One device needs at most what all have together; limits say that it may not have it.
static bool has_room(tt_ctx *ctx)
{
    size_t bytes = 0, room = (size_t)sysconf(_SC_AVPHYS_PAGES) * (size_t)sysconf(_SC_PAGESIZE);
    for (int i = 0; i < tt_device_count(ctx); i++) {
        tt_device_info d;
        if (tt_device_get(ctx, i, &d) != TT_OK || d.limit > 0)
            return false;
        bytes += d.variables + d.arena;
    }
    return bytes < room / 2;
}

static void tell(const cli_trial *t, tt_model *m)
{
    if (t->spread_ms <= TOLERANCE * t->one_ms)
        return;
    bool exact = m->ctx->top.spread.reduce == TT_REDUCE_EXACT;
    TT_LOG(m->ctx, TT_WARN,
           "strategy %s on %d devices takes %.3g ms per step, one device with all cores takes %.3g "
           "ms: it is %.2f times slower; use --devices cpu:0 --strategy single%s",
           m->ctx->top.strategy->name, m->ctx->top.n_devices, t->spread_ms, t->one_ms,
           t->spread_ms / t->one_ms, exact ? " for the same weights" : "");
}

tt_status cli_trial_look(void *user, tt_model *m, const tt_progress *p)
{
    cli_trial *t = user;
    if (t->is_over || m->ctx->top.n_devices < 2)
        return TT_OK;
    int64_t compute = m->step->times.compute;
    double ms = (double)(compute - t->compute_ns) * 1e-6 / CLI_TRIAL_EVERY;
    t->compute_ns = compute;
    if (++t->windows > 1)
        t->spread_ms = t->windows == 2 || ms < t->spread_ms ? ms : t->spread_ms;
    if (t->windows < WINDOWS)
        return TT_OK;
    t->is_over = true;
    // One device is at most so many times slower: then it takes the work of all.
    double run_ms = t->spread_ms * (double)p->steps, budget = run_ms / PART;
    double need = (double)t->opened_ns * 1e-6 + 4 * t->spread_ms * m->ctx->top.n_devices;
    if (run_ms < LEAST_MS || need > budget || !has_room(m->ctx))
        return TT_OK;
    if (time_one(t, budget - need, &t->one_ms) != TT_OK)
        t->one_ms = 0; // a job that one device cannot hold: nothing to compare
    else
        tell(t, m);
    return TT_OK;
}
