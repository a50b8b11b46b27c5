/*
 * read.c - batches read ahead.
 *
 * A ring of slots. Batch k goes into slot k % n; it may be filled once batch k - n was handed back.
 * Whoever wants to read takes the next number with one atomic step, fills the slot and raises its
 * flag; the caller waits for the flag of the batch it is to hand out, and reads too when that one
 * is not ready. Workers fill whatever is free, then park until half the ring is free again: with
 * tiny batches nobody is woken for each.
 *
 * Nothing is allocated or copied after tt_data_start(): batches are the slots themselves.
 */
#include "comm/lane_tree.h"
#include "data/data.h"
#include "device/device.h"
#include "graph/graph.h"
#include "net/timeout.h"
#include <stdio.h>
#include <string.h>

#define ALIGN       64
#define AUTO_BYTES  ((size_t)1 << 20)
#define LOOK_MS     100 // how often a wait looks for a request to stop
#define AT_ONCE     32  // records that are looked up together
#define AUTO_FEWEST 4
#define AUTO_MOST   64

// ---- filling a slot --------------------------------------------------------------------------

// Keeps what a reader's context says for the one who will ask for this batch.
static void keep_error(const tt_data *d, tti_reader *r, tti_slot *slot, tt_status st,
                       int64_t record)
{
    tt_error e = tt_last_error(&r->ctx);
    slot->status = st;
    if (e.status != TT_OK)
        snprintf(slot->message, sizeof(slot->message), "%s", e.message);
    else
        snprintf(slot->message, sizeof(slot->message), "%s: record %lld could not be read",
                 tti_data_name(d), (long long)record);
    tt_clear_error(&r->ctx);
}

static void fill(tt_data *d, tti_reader *r, int64_t k)
{
    tti_slot *slot = &d->ring.slots[k % d->ring.n_slots];
    tt_batch_data b = tti_batch_at(d, k);
    int64_t record[AT_ONCE], row = 0, end = b.rows;
    slot->status = TT_OK;
    if (d->own_lanes > 0) { // other processes read the others
        row = tti_lane_row(d->own_first, b.rows, d->own_lanes);
        end = tti_lane_row(d->own_last, b.rows, d->own_lanes);
    }
    for (int64_t i = 0; row < end && slot->status == TT_OK; row++, i = (i + 1) % AT_ONCE) {
        if (atomic_load_explicit(&d->stop, memory_order_relaxed))
            return;
        if (i == 0)
            tti_order_at(d, b.epoch, d->batch, b.first + row, TTI_MIN(end - row, AT_ONCE), record);
        tt_status st = tti_record_read(d, r, slot, b.epoch, record[i], row);
        if (st != TT_OK)
            keep_error(d, r, slot, st, record[i]);
        uint64_t n = atomic_load_explicit(&r->n_read, memory_order_relaxed) + 1;
        atomic_store_explicit(&r->n_read, n, memory_order_relaxed);
        if (r == d->ring.readers && n % 64 == 0) // the caller's own: nobody waits for it here
            atomic_fetch_add_explicit(&d->ctx->pulse, 1, memory_order_relaxed);
    }
    tti_flag_set(&slot->ready, (uint32_t)(k / d->ring.n_slots) + 1);
}

// The number of a batch that nobody reads yet and that has room; -1: none.
static int64_t claim(tt_data *d)
{
    int64_t k = atomic_load(&d->claimed);
    while (k < atomic_load(&d->released) + d->ring.n_slots)
        if (atomic_compare_exchange_weak(&d->claimed, &k, k + 1))
            return k;
    return -1;
}

static void work(void *arg)
{
    tti_reader *r = arg;
    tt_data *d = r->data;
    (void)tti_fp_enter(); // for this thread's life
    while (!atomic_load(&d->stop)) {
        uint32_t seen = atomic_load(&d->work.value); // before looking: what comes after wakes us
        int64_t k = claim(d);
        if (k >= 0)
            fill(d, r, k);
        else
            (void)!tti_flag_wait(&d->work, seen + 1, 0, TTI_FOREVER);
    }
}

// ---- the ring --------------------------------------------------------------------------------

static size_t aligned(size_t n)
{
    return (n + ALIGN - 1) / ALIGN * ALIGN;
}

static void *align(void *p)
{
    return (void *)(((uintptr_t)p + ALIGN - 1) / ALIGN * ALIGN);
}

// A reader's errors come out with their batch; its other log lines go out at once.
static void pass_on(void *user, const tt_event *ev)
{
    tt_data *d = user;
    if (strcmp(ev->kind, "log") != 0 || ev->level != TT_ERROR)
        tti_emit(d->ctx, ev);
}

static void reader_init(tt_data *d, tti_reader *r)
{
    r->data = d;
    tti_ctx_init(&r->ctx);
    r->ctx.on_event = pass_on;
    r->ctx.user = d;
    r->ctx.level = d->ctx->level;
    r->ctx.top.lanes = d->ctx->top.lanes;
    r->ctx.seed = d->ctx->seed;
    r->ctx.top.isa = d->ctx->top.isa;
    r->ctx.deadline_ms = d->ctx->deadline_ms;
}

static bool mixes(const tt_data *d)
{
    for (int i = 0; i < d->n_transforms; i++)
        if (d->transforms[i].def->mixes)
            return true;
    return false;
}

// Bytes of scratch that a reader needs, and where in them each piece begins; base may be NULL.
static size_t lay_scratch(const tt_data *d, tti_reader *r, char *base)
{
    size_t bytes = 0, most = 0;
    for (int f = 0; f < d->source.n_fields; f++) {
        bool is_changed = false;
        for (int i = 0; i < d->n_transforms; i++) {
            is_changed |= d->transforms[i].field == f;
            most = TTI_MAX(most, tti_field_bytes(&d->transforms[i].out));
        }
        if (!is_changed)
            continue;
        if (base != NULL)
            r->source[f] = base + bytes;
        bytes += aligned(tti_field_bytes(&d->source.fields[f]));
    }
    for (int i = 0; i < 2; i++) {
        if (base != NULL)
            r->scratch[i] = base + bytes;
        bytes += aligned(most);
    }
    for (int f = 0; mixes(d) && f < d->source.n_fields; f++) {
        if (base != NULL)
            r->other[f] = base + bytes;
        bytes += aligned(tti_field_bytes(&d->fields[f]));
    }
    return bytes;
}

static bool slot_bytes(const tt_data *d, int64_t rows, size_t *out)
{
    *out = 0;
    for (int f = 0; f < d->source.n_fields; f++) {
        size_t n;
        if (!tti_mul_size((size_t)rows, tti_field_bytes(&d->fields[f]), &n) || n > SIZE_MAX / 4096)
            return false;
        *out += aligned(n);
    }
    return true;
}

static int count_slots(const tt_data *d, size_t bytes, int n_workers)
{
    int64_t ahead = d->opts.prefetch;
    if (ahead == 0)
        ahead = TTI_MAX(AUTO_FEWEST, TTI_MIN(AUTO_MOST, (int64_t)(AUTO_BYTES / (bytes + 1))));
    if (n_workers == 0)
        ahead = 0;
    return (int)TTI_MAX(ahead, n_workers) + 1; // one more: the batch that is handed out
}

static tt_status ring_alloc(tt_data *d, int64_t rows)
{
    tti_ring *g = &d->ring;
    int n_workers = TTI_MAX(d->opts.workers, 0);
    size_t bytes, total, each = lay_scratch(d, NULL, NULL);
    if (!slot_bytes(d, rows, &bytes))
        return TT_FAIL(d->ctx, TT_ENOMEM, "%s: batches of %lld records are too large",
                       tti_data_name(d), (long long)rows);
    g->n_slots = count_slots(d, bytes, n_workers);
    g->slots = tti_calloc(d->ctx, (size_t)g->n_slots, sizeof(*g->slots));
    g->readers = tti_calloc(d->ctx, (size_t)n_workers + 1, sizeof(*g->readers));
    if (g->slots == NULL || g->readers == NULL)
        return TT_ENOMEM;
    for (; g->n_readers <= n_workers; g->n_readers++)
        reader_init(d, &g->readers[g->n_readers]);
    if (!tti_mul_size(bytes, (size_t)g->n_slots, &total))
        return TT_FAIL(d->ctx, TT_ENOMEM, "%s: %d batches of %lld records are too large",
                       tti_data_name(d), g->n_slots, (long long)rows);
    g->memory = tti_staging_alloc(d->ctx, total + ALIGN);
    g->scratch = tti_alloc(d->ctx, each * (size_t)g->n_readers + ALIGN);
    if (g->memory == NULL || g->scratch == NULL)
        return TT_ENOMEM;
    char *at = align(g->memory), *scratch = align(g->scratch);
    for (int s = 0; s < g->n_slots; s++) {
        for (int f = 0; f < d->source.n_fields; f++) {
            g->slots[s].fields[f] = at;
            at += aligned((size_t)rows * tti_field_bytes(&d->fields[f]));
        }
    }
    for (int i = 0; i < g->n_readers; i++)
        lay_scratch(d, &g->readers[i], scratch + (size_t)i * each);
    g->rows = rows;
    return TT_OK;
}

void tti_ring_free(tt_data *d)
{
    tti_ring *g = &d->ring;
    for (int i = 0; i < g->n_readers; i++) {
        tti_room_free(&g->readers[i].room);
        tti_ctx_deinit(&g->readers[i].ctx);
    }
    tti_free(d->ctx, g->slots);
    tti_free(d->ctx, g->readers);
    tti_staging_free(d->ctx, g->memory);
    tti_free(d->ctx, g->scratch);
    *g = (tti_ring){0};
}

void tti_data_own(tt_data *d, int first, int last, int lanes)
{
    tt_data_stop(d);
    d->own_first = first;
    d->own_last = last;
    d->own_lanes = lanes;
}

// ---- single records --------------------------------------------------------------------------

tt_status tti_single_open(tt_data *d, tti_single *s)
{
    size_t scratch = lay_scratch(d, NULL, NULL), bytes;
    *s = (tti_single){0};
    reader_init(d, &s->reader);
    if (!slot_bytes(d, 1, &bytes))
        return TT_FAIL(d->ctx, TT_ENOMEM, "%s: a record is too large", tti_data_name(d));
    s->memory = tti_alloc(d->ctx, scratch + bytes + 2 * ALIGN);
    if (s->memory == NULL)
        return TT_ENOMEM;
    char *at = align(s->memory);
    for (int f = 0; f < d->source.n_fields; f++) {
        s->slot.fields[f] = at;
        at += aligned(tti_field_bytes(&d->fields[f]));
    }
    lay_scratch(d, &s->reader, align(at));
    return TT_OK;
}

tt_status tti_single_read(tti_single *s, int64_t record)
{
    tt_data *d = s->reader.data;
    unsigned saved = tti_fp_enter();
    tt_status st = tti_record_read(d, &s->reader, &s->slot, 0, record, 0);
    tti_fp_leave(saved);
    if (st == TT_OK)
        return st;
    keep_error(d, &s->reader, &s->slot, st, record);
    return TT_FAIL(d->ctx, st, "%s", s->slot.message);
}

void tti_single_close(tti_single *s)
{
    if (s->reader.data == NULL)
        return;
    tti_free(s->reader.data->ctx, s->memory);
    tti_room_free(&s->reader.room);
    tti_ctx_deinit(&s->reader.ctx);
    *s = (tti_single){0};
}

// ---- what programs call ----------------------------------------------------------------------

static tt_status start_at(tt_data *d, int64_t batch, int64_t cursor)
{
    int64_t count = d->count;
    d->batch = batch;
    d->epoch = cursor / count;
    d->first = cursor % count;
    if (d->lane_first != NULL && d->first % batch != 0)
        return TT_FAIL(d->ctx, TT_EINVAL,
                       "%s: cursor %lld is position %lld of its epoch, which must be a multiple of "
                       "the batch size %lld, because records belong to lanes",
                       tti_data_name(d), (long long)cursor, (long long)d->first, (long long)batch);
    TT_TRY(tti_lanes_check(d, batch));

    int64_t rows = TTI_MIN(batch, count);
    if (d->ring.rows != rows) {
        tti_ring_free(d);
        tt_status st = ring_alloc(d, rows);
        if (st != TT_OK) {
            tti_ring_free(d);
            return st;
        }
    }
    d->next = 0;
    atomic_store(&d->claimed, 0);
    atomic_store(&d->released, 0);
    atomic_store(&d->stop, false);
    for (int s = 0; s < d->ring.n_slots; s++)
        tti_flag_set(&d->ring.slots[s].ready, 0);
    d->is_started = true;
    for (int i = 1; i < d->ring.n_readers; i++)
        TT_TRY(tti_thread_start(d->ctx, &d->ring.readers[i].thread, "tutti data", work,
                                &d->ring.readers[i]));
    return TT_OK;
}

tt_status tt_data_start(tt_data *d, int64_t batch, int64_t cursor)
{
    if (d == NULL)
        return TT_EINVAL;
    if (tti_is_stuck(d->ctx))
        return tt_status_of(d->ctx);
    tt_data_stop(d);
    if (batch < 0 || batch > TTI_MAX_BATCH || cursor < 0 || cursor > INT64_MAX / 2)
        return TT_FAIL(d->ctx, TT_EINVAL, "%s: cannot read batches of %lld from cursor %lld",
                       tti_data_name(d), (long long)batch, (long long)cursor);
    tt_status st = start_at(d, batch == 0 ? d->opts.batch : batch, cursor);
    if (st != TT_OK)
        tt_data_stop(d);
    return st;
}

static uint64_t records_read(const tt_data *d)
{
    uint64_t n = 0;
    for (int i = 0; i < d->ring.n_readers; i++)
        n += atomic_load_explicit(&d->ring.readers[i].n_read, memory_order_relaxed);
    return n;
}

// Reads until batch k is ready; waits only for what workers have begun.
static tt_status await(tt_data *d, tti_slot *slot, int64_t k)
{
    uint32_t want = (uint32_t)(k / d->ring.n_slots) + 1;
    tti_timeout p = {.ctx = NULL};
    uint64_t read = 0;
    while (!tti_flag_is_set(&slot->ready, want)) {
        int64_t mine = claim(d);
        if (mine >= 0) {
            unsigned saved = tti_fp_enter();
            fill(d, &d->ring.readers[0], mine);
            tti_fp_leave(saved);
            continue;
        }
        if (p.ctx == NULL)
            tti_timeout_begin(&p, d->ctx, d->ctx->deadline_ms);
        if (tti_flag_wait(&slot->ready, want, 0, tti_deadline(LOOK_MS)) == TT_OK)
            return TT_OK;
        if (atomic_load(&d->ctx->stop))
            return TT_FAIL(d->ctx, TT_ESTOP, "%s: stopped on request", tti_data_name(d));
        if (records_read(d) != read) // others, who wait for this process, see it too
            atomic_fetch_add_explicit(&d->ctx->pulse, 1, memory_order_relaxed);
        read = records_read(d);
        if (tti_timeout_expired(&p))
            return TT_FAIL(d->ctx, TT_ETIMEOUT,
                           "%s: workers have read no record for %.1f s (deadline_ms)",
                           tti_data_name(d), 1e-3 * (double)d->ctx->deadline_ms);
    }
    return TT_OK;
}

tt_status tt_data_next_sized(tt_data *d, tt_batch_data *out, size_t size)
{
    if (d == NULL)
        return TT_EINVAL;
    if (out == NULL)
        return TT_FAIL(d->ctx, TT_EINVAL, "data next: the room for the batch is NULL");
    if (tti_is_stuck(d->ctx))
        return tt_status_of(d->ctx);
    if (!d->is_started)
        return TT_FAIL(d->ctx, TT_EINVAL, "%s: call tt_data_start() before tt_data_next()",
                       tti_data_name(d));

    int64_t k = d->next, n = d->ring.n_slots;
    atomic_store(&d->released, k);
    if (d->ring.n_readers > 1 && (k + n - atomic_load(&d->claimed)) * 2 >= n)
        tti_flag_add(&d->work, 1);

    tti_slot *slot = &d->ring.slots[k % n];
    TT_TRY(await(d, slot, k));
    if (slot->status != TT_OK)
        return TT_FAIL(d->ctx, slot->status, "%s", slot->message);
    tt_batch_data batch = tti_batch_at(d, k);
    for (int f = 0; f < d->source.n_fields; f++)
        batch.fields[f] = slot->fields[f];
    tti_out_copy(out, size, &batch, sizeof(batch));
    d->next = k + 1;
    return TT_OK;
}

bool tti_data_peek(tt_data *d, tt_batch_data *out)
{
    if (!d->is_started)
        return false;
    int64_t k = d->next, n = d->ring.n_slots;
    tti_slot *slot = &d->ring.slots[k % n];
    if (!tti_flag_is_set(&slot->ready, (uint32_t)(k / n) + 1) || slot->status != TT_OK)
        return false;
    *out = tti_batch_at(d, k);
    for (int f = 0; f < d->source.n_fields; f++)
        out->fields[f] = slot->fields[f];
    return true;
}

void tt_data_stop(tt_data *d)
{
    if (d == NULL || !d->is_started)
        return;
    atomic_store(&d->stop, true);
    tti_flag_add(&d->work, 1);
    for (int i = 1; i < d->ring.n_readers; i++)
        tti_thread_join(&d->ring.readers[i].thread);
    d->is_started = false;
}
