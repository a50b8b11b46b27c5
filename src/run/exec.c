/*
 * exec.c - walking a plan: one worker per device goes through its list.
 *
 * A run has a sequence number; an entry that another device waits for sets its flag to it. Flags
 * only grow, so nothing is reset between runs, and the hot path has no lock. When a device fails it
 * records the error, marks the run failed and raises every flag: all others come out of their
 * waits, see the mark and stop. The calling thread is the worker of the first device that has work,
 * or submits for all devices with streams (submit.c).
 */
#include "net/timeout.h"
#include "net/world.h"
#include "run/run.h"
#include <stdio.h>

static void raise_all(tti_plan *p, uint32_t sequence)
{
    for (int i = 0; i < p->exe.n_flags; i++)
        tti_flag_set(p->exe.flags[i], sequence);
}

static tt_status fail_run(tt_session *s, tti_plan *p, tt_status st)
{
    atomic_store(&s->failed, (int)st);
    raise_all(p, s->sequence);
    return st;
}

// The run of a job that fails elsewhere ends here too, and not only at the next wait for another
// process: that may be many kernels away.
typedef struct failing {
    tt_session *s;
    tti_plan *p;
} failing;

static void job_failed(void *user)
{
    const failing *f = user;
    // Updates have begun: all sums are here. They come to their end, unless they wait for another
    // process, which sees by itself that the job has failed.
    if (atomic_load(&f->s->writing) == f->s->sequence)
        return;
    (void)fail_run(f->s, f->p, TT_EPEER);
}

// Where a device is: "which is in 'dense/matmul' (matmul)", or whom it waits for in turn.
static void say_where(const tt_session *s, const tti_plan *p, int device, char *out, size_t room)
{
    size_t n = 0;
    out[0] = '\0';
    for (int hops = 0; hops < s->ctx->top.n_devices && n < room - 1; hops++) {
        int on = atomic_load_explicit(&s->clocks[device].waits_on, memory_order_relaxed) - 1;
        int at = atomic_load_explicit(&s->clocks[device].at, memory_order_relaxed);
        if (s->ctx->top.devices[device]->is_away)
            return; // its own process knows
        if (on < 0) {
            const tti_entry_list *list = &p->exe.lists[device];
            const tti_pnode *pn = at < list->n_entries ? &p->nodes[list->entries[at].pnode] : NULL;
            if (pn != NULL)
                snprintf(out + n, room - n, ", which is in '%s' (%s)", pn->node->name,
                         tti_pnode_kind_name(pn));
            return;
        }
        int more =
            snprintf(out + n, room - n, ", which waits for %s", s->ctx->top.devices[on]->name);
        n += more > 0 ? (size_t)more : 0;
        device = on;
    }
}

// The rank whose device is waited for in the end; -1: it is one of this process.
static int rank_behind(const tt_session *s, int device)
{
    for (int hops = 0; hops < s->ctx->top.n_devices; hops++) {
        if (s->ctx->top.devices[device]->is_away)
            return s->ctx->top.devices[device]->task;
        int on = atomic_load_explicit(&s->clocks[device].waits_on, memory_order_relaxed) - 1;
        if (on < 0)
            break;
        device = on;
    }
    return -1;
}

static tt_status wait_timed_out(tt_session *s, tti_plan *p, int device, const tti_entry *en,
                                const tti_wait *w, double waited)
{
    const tti_pnode *pn = &p->nodes[en->pnode];
    char where[384];
    int rank = rank_behind(s, w->entry_device);
    if (rank >= 0)
        return tti_world_stuck(s->ctx->world, rank, w->waits_for->name, s->wait_ms);
    say_where(s, p, w->entry_device, where, sizeof(where));
    return TT_FAIL(s->ctx, TT_ETIMEOUT,
                   "%s waited %.1f s in '%s' (%s) for '%s' (%s) of %s%s; it did not arrive in step "
                   "%lld, and there was no progress for %.1f s (deadline_ms)",
                   s->ctx->top.devices[device]->name, waited, pn->node->name,
                   tti_pnode_kind_name(pn), w->waits_for->name, w->waits_for->op->name,
                   s->ctx->top.devices[w->entry_device]->name, where, (long long)p->step->step + 1,
                   1e-3 * (double)s->wait_ms);
}

#define TIMES       4       // the longest run so far: how long nothing may get on in one
#define LEARN_RUNS  20      // of a plan, until a deadline is learned from them
#define LEARN_TIMES 20      // the longest of them
#define TRIAL       16      // runs each way
#define TRIAL_WARM  6       // of them the first, not looked at
#define TRIAL_EVERY 2048    // runs from one trial to the next
#define TRIAL_NS    3000000 // longer runs have no trials

// Before a run: which way it goes.
static void set_pace(tti_pace *t)
{
    int64_t at = t->runs % TRIAL_EVERY;
    if (t->is_long || at > 2 * TRIAL)
        return;
    if (at == 0)
        t->best[0] = t->best[1] = INT64_MAX;
    if (at == 2 * TRIAL)
        t->alone = t->best[1] < t->best[0] - t->best[0] / 8;
    else
        t->alone = at >= TRIAL;
}

static void note_pace(tti_pace *t, int64_t ns)
{
    int64_t at = t->runs++ % TRIAL_EVERY;
    if (t->is_long || at >= 2 * TRIAL)
        return;
    if (at % TRIAL >= TRIAL_WARM)
        t->best[t->alone] = TTI_MIN(t->best[t->alone], ns);
    if (at == TRIAL - 1 && t->best[0] > TRIAL_NS)
        t->is_long = true;
}

static tt_status run_call(const tti_device *d, const tti_call *c, bool alone)
{
    if (c->is_move)
        return tti_device_copy(c->to, c->launch.out[0].data, c->from, c->launch.in[0].data,
                               (size_t)c->launch.out[0].count *
                                   tt_dtype_bytes(c->launch.out[0].dtype));
    if (c->n_threads == 1 || alone) {
        if (c->n_phases == 1 && c->n_threads == 1) // the record is complete as it stands
            return c->launch.end > 0 ? c->fn(&c->launch) : TT_OK;
        tt_launch l = c->launch;
        for (l.phase = 0; l.phase < c->n_phases; l.phase++) {
            l.end = c->units[l.phase];
            if (l.end > 0)
                TT_TRY(c->fn(&l));
        }
        return TT_OK;
    }
    for (int phase = 0; phase < c->n_phases; phase++) {
        if (c->units[phase] == 0)
            continue;
        TT_TRY(tti_team_run(d->team, c->fn, &c->launch, phase, c->units[phase], c->chunk[phase],
                            c->local_bytes));
    }
    return TT_OK;
}

void tti_record_span(tt_session *s, tti_plan *p, int device, int entry, int64_t begin, int64_t end)
{
    int64_t at = atomic_fetch_add(&s->n_spans, 1);
    s->spans[at % TTI_SPANS] = (tti_span){begin, end, p, device, entry, s->n_runs};
}

// A wait that is not over yet: its time is told from computing.
tt_status tti_wait_for_entry(tt_session *s, tti_plan *p, int device, const tti_entry *en,
                             const tti_wait *w)
{
    tti_clock *c = &s->clocks[device];
    int64_t begin = tti_now_ns();
    atomic_store_explicit(&c->waits_on, w->entry_device + 1, memory_order_relaxed);
    int spins = s->ctx->top.devices[device]->is_crowded ? 0 : 20000;
    double waited = 0;
    tt_status st = w->is_shared
                       ? tti_wait_shared(s, w->flag, s->sequence, spins,
                                         s->ctx->top.devices[w->entry_device]->task, w->waits_for)
                       : tti_flag_await(s->ctx, w->flag, s->sequence, spins, s->wait_ms, &waited);
    c->waiting[w->entry_device] += tti_now_ns() - begin;
    if (st == TT_ETIMEOUT)
        st = wait_timed_out(s, p, device, en, w, waited);
    atomic_store_explicit(&c->waits_on, 0, memory_order_relaxed); // others may have told of it
    return st;
}

static tt_status run_entry(tt_session *s, tti_plan *p, int device, int index)
{
    const tti_entry *en = &p->exe.lists[device].entries[index];
    tti_device *d = s->ctx->top.devices[device];
    for (int i = 0; i < en->n_waits; i++) {
        if (!tti_flag_is_set(en->waits[i].flag, s->sequence))
            TT_TRY(tti_wait_for_entry(s, p, device, en, &en->waits[i]));
        if (atomic_load_explicit(&s->failed, memory_order_relaxed) != TT_OK)
            return TT_ESTOP;
    }
    bool faulty = s->ctx->fault != NULL, timed = s->trace || en->is_communication || faulty;
    int64_t begin = timed ? tti_now_ns() : 0;
    if (faulty)
        TT_TRY(tti_fault_before(s, p, device, en));
    if (en->writes_variable &&
        atomic_load_explicit(&s->writing, memory_order_relaxed) != s->sequence)
        atomic_store(&s->writing, s->sequence);
    for (int i = 0; i < en->n_calls; i++)
        TT_TRY(en->calls[i].transfer != NULL ? tti_run_mail(s, p, en, &en->calls[i])
                                             : run_call(d, &en->calls[i], p->exe.pace.alone));
    if (faulty)
        tti_fault_after(s, p, device, en, tti_now_ns() - begin);
    if (timed) {
        int64_t end = tti_now_ns();
        if (en->is_communication)
            s->clocks[device].communication += end - begin;
        if (s->trace)
            tti_record_span(s, p, device, index, begin, end);
    }
    if (s->hashes)
        TT_TRY(tti_hashes_add(s, p, en));
    if (en->done != NULL)
        tti_flag_set(en->done, s->sequence);
    return TT_OK;
}

static tt_status walk_list(tt_session *s, tti_plan *p, int device)
{
    const tti_entry_list *list = &p->exe.lists[device];
    for (int i = 0; i < list->n_entries; i++) {
        atomic_store_explicit(&s->clocks[device].at, i, memory_order_relaxed);
        if (atomic_load_explicit(&s->failed, memory_order_relaxed) != TT_OK)
            return TT_ESTOP; // elsewhere
        tt_status st = run_entry(s, p, device, i);
        if (st == TT_OK && atomic_load_explicit(&s->ctx->stop, memory_order_relaxed) != 0)
            st = TT_FAIL(s->ctx, TT_ESTOP, "run: stopped on request");
        if (st != TT_OK) {
            // A kernel that fails without saying why still gets a message that names it.
            const tti_pnode *pn = &p->nodes[list->entries[i].pnode];
            if (st != TT_ESTOP && tt_status_of(s->ctx) == TT_OK)
                st = TT_FAIL(s->ctx, st, "%s '%s' failed on %s in step %lld",
                             tti_pnode_kind_name(pn), pn->node->name,
                             s->ctx->top.devices[device]->name, (long long)p->step->step + 1);
            return fail_run(s, p, st);
        }
        tti_device_moved(s->ctx->top.devices[device]);
    }
    atomic_store_explicit(&s->clocks[device].at, list->n_entries, memory_order_relaxed);
    return TT_OK;
}

static void walk(tt_session *s, tti_plan *p, int device)
{
    tti_clock *c = &s->clocks[device];
    int64_t begin = tti_now_ns();
    (void)walk_list(s, p, device);
    c->ended = tti_now_ns();
    c->walking += c->ended - begin;
}

static void walk_task(void *arg)
{
    tti_walk_task *t = arg;
    walk(t->session, t->plan, t->device);
    (void)tti_flag_add(&t->session->finished, 1);
}

// A device that is still in its list and waits for nobody; else one that waits.
static int find_late(const tt_session *s, const tti_plan *p)
{
    int late = 0;
    for (int d = 0; d < s->ctx->top.n_devices; d++) {
        if (s->ctx->top.devices[d]->is_away ||
            atomic_load(&s->clocks[d].at) >= p->exe.lists[d].n_entries)
            continue;
        late = d;
        if (atomic_load(&s->clocks[d].waits_on) == 0)
            break;
    }
    return late;
}

static void tell_late(tt_session *s, tti_plan *p, double waited)
{
    int late = find_late(s, p), rank = rank_behind(s, late);
    char where[384];
    if (rank >= 0) {
        (void)tti_world_stuck(s->ctx->world, rank, NULL, s->wait_ms);
        return;
    }
    say_where(s, p, late, where, sizeof(where));
    (void)TT_FAIL(s->ctx, TT_ETIMEOUT,
                  "%s%s%s has not finished step %lld within %.1f s; there was no progress for %.1f "
                  "s (deadline_ms)",
                  s->ctx->top.devices[late]->name, where, where[0] != 0 ? "," : "",
                  (long long)p->step->step + 1, waited, 1e-3 * (double)s->wait_ms);
}

// Blocks until the other devices have ended; a late one is told of, then waited for again.
static void wait_for_devices(tt_session *s, tti_plan *p)
{
    const tti_device *first = s->ctx->top.devices[0];
    double waited;
    while (tti_flag_await(s->ctx, &s->finished, s->n_finished, first->is_crowded ? 0 : 20000,
                          s->wait_ms, &waited) != TT_OK) {
        if (atomic_load(&s->failed) == TT_OK) {
            tell_late(s, p, waited);
            (void)fail_run(s, p, TT_ETIMEOUT);
        }
        TT_LOG(s->ctx, TT_WARN, "run: still waiting for a kernel to return");
    }
}

// Whoever ended before the last one waited for it: no run begins before all have ended.
static void note_last(tt_session *s, const tti_plan *p, int64_t begin)
{
    int last = -1;
    for (int d = 0; d < s->ctx->top.n_devices; d++)
        if (p->exe.lists[d].n_entries > 0 && !s->ctx->top.devices[d]->is_away &&
            (last < 0 || s->clocks[d].ended > s->clocks[last].ended))
            last = d;
    for (int d = 0; d < s->ctx->top.n_devices; d++) {
        tti_clock *c = &s->clocks[d];
        if (p->exe.lists[d].n_entries == 0 || d == last || c->ended < begin ||
            s->ctx->top.devices[d]->is_away)
            continue;
        int64_t ns = s->clocks[last].ended - c->ended;
        c->waiting[last] += ns;
        c->walking += ns;
    }
}

/*
 * How long processes wait for one that does not get on: where nobody said so, by the longest run of
 * the plan so far, which has their waits for each other in it.
 */
static int64_t learned(const tt_session *s, const tti_plan *p)
{
    const tt_ctx *ctx = s->ctx;
    if (ctx->learn_ms == 0 || ctx->top.n_tasks < 2 || p->exe.pace.runs < LEARN_RUNS)
        return ctx->deadline_ms;
    int64_t ms = LEARN_TIMES * p->exe.longest_ns / 1000000;
    return TTI_MIN(ctx->deadline_ms, TTI_MAX(ctx->learn_ms, ms));
}

// Runs that were long may be so again; of the first run nothing is known.
static void set_waits(tt_session *s, const tti_plan *p)
{
    int64_t deadline = learned(s, p);
    s->wait_ms = TTI_MAX(deadline, TIMES * p->exe.longest_ns / 1000000);
    s->sync_ms = p->exe.longest_ns == 0 ? TTI_SLOWER * deadline : s->wait_ms;
}

tt_status tti_execute(tt_session *s, tti_plan *p)
{
    tt_ctx *ctx = s->ctx;
    int64_t begin = tti_now_ns();
    set_pace(&p->exe.pace);
    s->sequence++;
    s->n_runs++;
    set_waits(s, p);
    atomic_store(&s->failed, TT_OK);
    TT_TRY(tti_border_wait(s));
    failing f = {s, p};
    if (ctx->world != NULL)
        tti_world_on_fail(ctx->world, job_failed, &f);
    int own = -1;
    bool streams = p->exe.n_submissions > 0;
    for (int d = 0; d < ctx->top.n_devices; d++) {
        if (p->exe.lists[d].n_entries == 0 || tti_has_streams(ctx->top.devices[d]) ||
            ctx->top.devices[d]->is_away)
            continue;
        if (own < 0 && !streams) {
            own = d;
            continue;
        }
        s->tasks[d] = (tti_walk_task){s, p, d};
        atomic_store_explicit(&s->clocks[d].at, 0, memory_order_relaxed);
        s->n_finished++;
        tt_status st = ctx->top.devices[d]->backend->submit(ctx->top.devices[d],
                                                            (tti_task){walk_task, &s->tasks[d]});
        if (st != TT_OK) {
            s->n_finished--;
            (void)fail_run(s, p, st);
            break;
        }
    }
    if (own >= 0) {
        unsigned saved = tti_fp_enter();
        if (atomic_load(&s->failed) == TT_OK)
            walk(s, p, own);
        tti_fp_leave(saved);
    }
    if (streams && atomic_load(&s->failed) == TT_OK) {
        tt_status st = tti_submit(s, p);
        if (st != TT_OK)
            (void)fail_run(s, p, st);
    }
    wait_for_devices(s, p);
    if (ctx->world != NULL)
        tti_world_on_fail(ctx->world, NULL, NULL);
    note_last(s, p, begin);
    note_pace(&p->exe.pace, tti_now_ns() - begin);
    tt_status st = (tt_status)atomic_load(&s->failed);
    if (st == TT_OK)
        st = tti_border_set(s);
    if (st == TT_OK) {
        p->exe.longest_ns = TTI_MAX(p->exe.longest_ns, tti_now_ns() - begin);
        return TT_OK;
    }
    st = tt_status_of(ctx) != TT_OK ? tt_status_of(ctx) : st;
    if (ctx->top.n_tasks > 1) // the others wait for what will not come
        tti_world_fail_with(ctx, st);
    return st;
}
