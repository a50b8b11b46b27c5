/*
 * pipe_schedule.c - tables of pipeline schedules, and their trial on paper.
 *
 * All three kinds are one table with another warm-up: a device begins with some forward slots, then
 * takes one forward and one backward in turn, and ends with the backward slots that are left. gpipe
 * warms up with all of them, 1f1b with one per stage that follows and one to spare. A device with
 * several stages (interleaved) takes n_devices micro-batches through its first stage, the same ones
 * through its second, and so on; backward from its last stage to its first.
 */
#include "plan/spread/pipe_schedule.h"
#include <math.h>
#include <string.h>

#define MAX_MICRO 65536

static const char *const kinds[] = {"1f1b", "gpipe", "interleaved"};

// ---- the numbers -----------------------------------------------------------------------------

static tt_status check_costs(tt_ctx *ctx, const tti_schedule_query *q, const double *cost,
                             const char *what)
{
    for (int s = 0; cost != NULL && s < q->n_stages; s++)
        if (!isfinite(cost[s]) || cost[s] < 0)
            return TT_FAIL(ctx, TT_EINVAL, "schedule %s: stage %d costs %g %s", kinds[q->kind], s,
                           cost[s], what);
    return TT_OK;
}

static tt_status check(tt_ctx *ctx, const tti_schedule_query *q)
{
    if ((int)q->kind < 0 || (int)q->kind >= TTI_COUNT(kinds))
        return TT_FAIL(ctx, TT_EINVAL, "there is no pipeline schedule %d", (int)q->kind);
    const char *kind = kinds[q->kind];
    int p = q->n_devices;
    if (p < 1 || p > TT_MAX_LANES)
        return TT_FAIL(ctx, TT_EINVAL, "schedule %s: %d devices; 1 to %d are allowed", kind, p,
                       TT_MAX_LANES);
    if (q->kind != TT_PIPE_INTERLEAVED && q->n_stages != p)
        return TT_FAIL(ctx, TT_EINVAL,
                       "schedule %s: %d stages on %d devices, but each device has one stage; use "
                       "schedule: interleaved for several",
                       kind, q->n_stages, p);
    if (q->n_stages < p || q->n_stages % p != 0)
        return TT_FAIL(
            ctx, TT_EINVAL,
            "schedule %s: %d stages cannot be divided evenly among %d devices; use %d stages", kind,
            q->n_stages, p, TTI_MAX((q->n_stages + p - 1) / p, 1) * p);
    if (q->n_stages / p > TTI_MAX_CHUNKS)
        return TT_FAIL(ctx, TT_EINVAL, "schedule %s: %d stages per device; at most %d are allowed",
                       kind, q->n_stages / p, TTI_MAX_CHUNKS);
    if (q->n_micro < 1 || q->n_micro > MAX_MICRO)
        return TT_FAIL(ctx, TT_EINVAL, "schedule %s: %d micro-batches; 1 to %d are allowed", kind,
                       q->n_micro, MAX_MICRO);
    TT_TRY(check_costs(ctx, q, q->forward, "forward"));
    return check_costs(ctx, q, q->backward, "backward");
}

// ---- each device's own order -----------------------------------------------------------------

/*
 * Slots of a device and direction, those counted that are left out: a last round that is not full
 * is taken as if it were, as other orders of it can deadlock.
 */
static int count_slots(const tti_schedule_query *q)
{
    int p = q->n_devices, n_chunks = q->n_stages / p;
    return n_chunks == 1 ? q->n_micro : (q->n_micro + p - 1) / p * p * n_chunks;
}

// The k-th forward slot of a device, or the k-th backward slot.
static tti_pipe_slot nth_slot(const tti_schedule_query *q, int device, int k, bool backward)
{
    int p = q->n_devices, n_chunks = q->n_stages / p;
    int round = k / (p * n_chunks), chunk = k / p % n_chunks;
    return (tti_pipe_slot){.stage = (backward ? n_chunks - 1 - chunk : chunk) * p + device,
                           .micro = round * p + k % p,
                           .backward = backward};
}

// Forward slots of a device before its first backward slot, less the one that goes with that.
static int warm_up(const tti_schedule_query *q, int device, int n_forward)
{
    int p = q->n_devices, n_chunks = q->n_stages / p;
    if (q->kind == TT_PIPE_GPIPE)
        return n_forward;
    int n = p - 1 - device;
    if (n_chunks == 1 && n > 0)
        n++; // one more than must be, or the next device would wait whenever this one is late
    if (n_chunks > 1) // each round trip is twice as far, and all stages before the last come first
        n = 2 * n + (n_chunks - 1) * p;
    return TTI_MIN(n, n_forward);
}

static int put_slot(const tti_schedule_query *q, tti_pipe_slot slot, tti_pipe_slot *row, int n)
{
    if (slot.micro < q->n_micro)
        row[n++] = slot;
    return n;
}

static void fill_device(const tti_schedule_query *q, int device, tti_pipe_slot *row)
{
    int n_forward = count_slots(q), n_backward = q->forward_only ? 0 : n_forward;
    int ahead = q->forward_only ? 0 : warm_up(q, device, n_forward), n = 0;
    for (int k = 0; k < n_forward + ahead; k++) {
        if (k < n_forward)
            n = put_slot(q, nth_slot(q, device, k, false), row, n);
        if (k >= ahead && k - ahead < n_backward)
            n = put_slot(q, nth_slot(q, device, k - ahead, true), row, n);
    }
}

// ---- the trial -------------------------------------------------------------------------------

typedef struct trial {
    const tti_schedule_query *q;
    tti_pipe_slot *rows; // [n_devices][n_row]
    double *end;         // as tti_schedule.at: when a slot that has run ended
    int n_row;
    int *next; // slot of each device that comes next
    double *free_at;
    int *now; // by stage: micro-batches whose backward is still to come
} trial;

static int64_t slot_index(const tti_schedule_query *q, int stage, int micro, bool backward)
{
    return ((int64_t)stage * q->n_micro + micro) * 2 + backward;
}

static double slot_cost(const tti_schedule_query *q, tti_pipe_slot s)
{
    if (s.backward)
        return q->backward != NULL ? q->backward[s.stage] : 2;
    return q->forward != NULL ? q->forward[s.stage] : 1;
}

// Moves *start to the end of the slot that must run before; false: that has not run yet.
static bool wait_for(const trial *t, const tti_schedule *out, int64_t index, double *start)
{
    if (out->at[index] < 0)
        return false;
    *start = TTI_MAX(*start, t->end[index]);
    return true;
}

// Whether the next slot of a device may run, and from when on.
static bool is_ready(const trial *t, const tti_schedule *out, int device, double *start)
{
    const tti_schedule_query *q = t->q;
    if (t->next[device] == t->n_row)
        return false;
    tti_pipe_slot s = t->rows[(int64_t)device * t->n_row + t->next[device]];
    *start = t->free_at[device];
    if (!s.backward)
        return s.stage == 0 || wait_for(t, out, slot_index(q, s.stage - 1, s.micro, false), start);
    if (!wait_for(t, out, slot_index(q, s.stage, s.micro, false), start))
        return false;
    return s.stage == q->n_stages - 1 ||
           wait_for(t, out, slot_index(q, s.stage + 1, s.micro, true), start);
}

static tt_status deadlock(tt_ctx *ctx, const trial *t)
{
    const tti_schedule_query *q = t->q;
    for (int d = 0; d < q->n_devices; d++) {
        if (t->next[d] == t->n_row)
            continue;
        tti_pipe_slot s = t->rows[(int64_t)d * t->n_row + t->next[d]];
        return TT_FAIL(
            ctx, TT_EINVAL,
            "schedule %s cannot run with %d devices, %d stages, %d micro-batches: device "
            "%d waits forever before micro-batch %d %s stage %d",
            kinds[q->kind], q->n_devices, q->n_stages, q->n_micro, d, s.micro,
            s.backward ? "backward in" : "forward in", s.stage);
    }
    return TT_OK;
}

/*
 * Always runs the slot that can begin first, of the lowest device among equals. Whatever becomes
 * ready later begins later too, so the slots come out in order of their beginning.
 */
static tt_status run_trial(tt_ctx *ctx, trial *t, tti_schedule *out)
{
    const tti_schedule_query *q = t->q;
    double work = 0, last = 0;
    for (int i = 0; i < out->n; i++) {
        int device = -1;
        double begin = 0, start;
        for (int d = 0; d < q->n_devices; d++) {
            if (is_ready(t, out, d, &start) && (device < 0 || start < begin)) {
                device = d;
                begin = start;
            }
        }
        if (device < 0)
            return deadlock(ctx, t);
        tti_pipe_slot s = t->rows[(int64_t)device * t->n_row + t->next[device]++];
        int64_t index = slot_index(q, s.stage, s.micro, s.backward);
        t->free_at[device] = t->end[index] = begin + slot_cost(q, s);
        out->slots[i] = s;
        out->at[index] = i;
        t->now[s.stage] += s.backward ? -1 : 1;
        out->most[s.stage] = TTI_MAX(out->most[s.stage], q->forward_only ? 1 : t->now[s.stage]);
        work += slot_cost(q, s);
        last = TTI_MAX(last, t->end[index]);
    }
    out->bubble = last > 0 ? TTI_MAX(1 - work / (last * q->n_devices), 0) : 0;
    return TT_OK;
}

tt_status tti_schedule_make(tt_ctx *ctx, const tti_schedule_query *q, tti_schedule *out)
{
    memset(out, 0, sizeof(*out));
    TT_TRY(check(ctx, q));
    tt_status st = TT_ENOMEM;
    int n_forward = q->n_stages / q->n_devices * q->n_micro; // of a device
    trial t = {.q = q, .n_row = q->forward_only ? n_forward : 2 * n_forward};
    size_t n_index = (size_t)q->n_stages * (size_t)q->n_micro * 2;
    out->n = q->n_devices * t.n_row;
    t.rows = tti_calloc(ctx, (size_t)out->n, sizeof(*t.rows));
    t.end = tti_calloc(ctx, n_index, sizeof(*t.end));
    out->slots = tti_calloc(ctx, (size_t)out->n, sizeof(*out->slots));
    out->at = tti_calloc(ctx, n_index, sizeof(*out->at));
    out->most = tti_calloc(ctx, (size_t)q->n_stages, sizeof(*out->most));
    t.next = tti_calloc(ctx, (size_t)(q->n_devices + q->n_stages), sizeof(*t.next));
    t.free_at = tti_calloc(ctx, (size_t)q->n_devices, sizeof(*t.free_at));
    if (t.rows == NULL || t.end == NULL || out->slots == NULL || out->at == NULL ||
        out->most == NULL || t.next == NULL || t.free_at == NULL)
        goto free_trial;
    t.now = t.next + q->n_devices;

    for (size_t i = 0; i < n_index; i++)
        out->at[i] = -1;
    for (int d = 0; d < q->n_devices; d++)
        fill_device(q, d, t.rows + (int64_t)d * t.n_row);
    st = run_trial(ctx, &t, out);

free_trial:
    tti_free(ctx, t.rows);
    tti_free(ctx, t.end);
    tti_free(ctx, t.next);
    tti_free(ctx, t.free_at);
    if (st != TT_OK)
        tti_schedule_free(ctx, out);
    return st;
}

void tti_schedule_free(tt_ctx *ctx, tti_schedule *s)
{
    tti_free(ctx, s->slots);
    tti_free(ctx, s->at);
    tti_free(ctx, s->most);
    memset(s, 0, sizeof(*s));
}
