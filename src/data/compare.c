/*
 * compare.c - processes of a job compare their data before they use it. Each reads on its own the
 * rows of its own lanes, so other values on one of them would be trained on unseen, and fewer
 * records would leave the others waiting.
 *
 * Compared are the number of records, the fields, the sizes of the files, and the values of
 * records: as many as a moment allows, in an order that spreads them over all, or all of them if
 * asked for. Where values differ, halving finds the record.
 */
#include "data/data.h"
#include "data/images.h"
#include "device/device.h"
#include "net/world.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define BUDGET_NS INT64_C(100000000) // of reading, unless all is asked for
#define FEWEST    64                 // records that are read whatever it takes
#define MOST      ((int64_t)1 << 20) // hashes; each is of several records where there are more
#define PARTS     32                 // of a range that are compared at once

typedef struct facts {
    int64_t count, n_hashes;
    uint64_t fields;
    int64_t bytes[TTI_DATA_FILES];
} facts;

typedef struct reading {
    tt_data *d;
    tt_ctx ctx; // errors of records are not those of the job: all may have them
    char *memory;
    void *out[TT_MAX_FIELDS];
    size_t bytes[TT_MAX_FIELDS];
    int64_t stride; // from one record to the next, coprime to their number
    int64_t group;  // records of one hash
    uint64_t *hashes;
    int64_t n, most;
} reading;

static int64_t gcd(int64_t a, int64_t b)
{
    while (b != 0) {
        int64_t r = a % b;
        a = b;
        b = r;
    }
    return a;
}

// The i-th record that is looked at: after count of them all were.
static int64_t record_at(const reading *r, int64_t i)
{
    int64_t n = r->d->count, at = 0;
    if (n < INT32_MAX)
        return tti_data_record(r->d, i * r->stride % n);
    for (int64_t step = r->stride; i > 0; i /= 2, step = step * 2 % n) // the product is too large
        at = i % 2 != 0 ? (at + step) % n : at;
    return tti_data_record(r->d, at);
}

static void quiet(void *user, const tt_event *ev)
{
    (void)user;
    (void)ev;
}

static tt_status open_reading(tt_data *d, reading *r)
{
    size_t total = 0;
    *r = (reading){.d = d};
    tti_ctx_init(&r->ctx);
    r->ctx.on_event = quiet;
    r->ctx.top.lanes = d->ctx->top.lanes;
    r->ctx.seed = d->ctx->seed;
    r->ctx.top.isa = d->ctx->top.isa;
    for (int f = 0; f < d->source.n_fields; f++) {
        r->bytes[f] = tti_field_bytes(&d->source.fields[f]);
        total += (r->bytes[f] + 63) & ~(size_t)63;
    }
    r->group = (d->count + MOST - 1) / MOST;
    r->most = (d->count + r->group - 1) / r->group;
    r->stride = TTI_MAX((int64_t)((double)d->count * 0.6180339887), 1);
    while (gcd(r->stride, d->count) != 1)
        r->stride++;
    r->memory = tti_host_alloc(d->ctx, total + 64);
    r->hashes = tti_alloc(d->ctx, (size_t)r->most * sizeof(*r->hashes));
    if (r->memory == NULL || r->hashes == NULL)
        return TT_ENOMEM;
    char *at = r->memory;
    for (int f = 0; f < d->source.n_fields; f++) {
        r->out[f] = at;
        at += (r->bytes[f] + 63) & ~(size_t)63;
    }
    return TT_OK;
}

static void close_reading(reading *r)
{
    tti_host_free(r->d->ctx, r->memory);
    tti_free(r->d->ctx, r->hashes);
    tti_ctx_deinit(&r->ctx);
}

// The hash of one record, or of the fact that it cannot be read.
static uint64_t hash_record(reading *r, int64_t record, uint64_t seed)
{
    if (r->d->source.read(&r->ctx, r->d->source.self, record, r->out) != TT_OK) {
        tt_clear_error(&r->ctx);
        return tti_hash64("unreadable", 10, seed);
    }
    for (int f = 0; f < r->d->source.n_fields; f++)
        seed = tti_hash64(r->out[f], r->bytes[f], seed + 1);
    return seed;
}

static void read_records(reading *r, bool all)
{
    int64_t begin = tti_now_ns();
    for (; r->n < r->most; r->n++) {
        if (!all && r->n * r->group >= FEWEST && tti_now_ns() - begin > BUDGET_NS)
            break;
        uint64_t h = 0;
        for (int64_t i = r->n * r->group; i < TTI_MIN((r->n + 1) * r->group, r->d->count); i++)
            h = hash_record(r, record_at(r, i), h);
        r->hashes[r->n] = h;
        atomic_fetch_add_explicit(&r->d->ctx->pulse, 1, memory_order_relaxed);
    }
}

static facts facts_of(const reading *r)
{
    const tt_data *d = r->d;
    facts f;
    memset(&f, 0, sizeof(f));
    f.count = d->count;
    f.n_hashes = r->n;
    for (int i = 0; i < d->source.n_fields; i++) {
        const tt_field *field = &d->source.fields[i];
        f.fields = tti_hash64(field->name, strlen(field->name), f.fields + 1);
        f.fields = tti_hash64(&field->dtype, sizeof(field->dtype), f.fields);
        f.fields = tti_hash64(field->shape.dim, sizeof(int64_t) * (size_t)field->shape.rank,
                              f.fields + (uint64_t)field->shape.rank);
    }
    // Numbers that were fitted on the data are equal where all of it is.
    for (int i = 0; i < d->n_transforms; i++)
        f.fields = tti_hash64(d->transforms[i].about, strlen(d->transforms[i].about), f.fields + 1);
    for (int i = 0; i < d->n_files; i++)
        f.bytes[i] = d->files[i].bytes;
    return f;
}

// ---- what differs ----------------------------------------------------------------------------

// "rank 1 (/job:worker/task:1, host b, pid 7): data.train (csv 'train.csv') "
static void print_head(const tt_data *d, int rank, const char *what, int file, char *out,
                       size_t room)
{
    const tti_rank *r = tti_world_rank(d->ctx->world, rank);
    const char *path = d->n_files > 0 ? d->files[file].path : "";
    snprintf(out, room, "rank %d (%s, host %s, pid %d): %s (%s%s%s%s)", rank, r->name, r->host,
             r->pid, what, tti_data_name(d), path[0] != '\0' ? " '" : "", path,
             path[0] != '\0' ? "'" : "");
}

static tt_status compare_facts(tt_data *d, const char *what, const facts *all)
{
    char head[TTI_DATA_PATH + 256];
    for (int i = 1; i < tti_world_size(d->ctx->world); i++) {
        const facts *a = &all[i], *b = &all[0];
        print_head(d, i, what, 0, head, sizeof(head));
        if (a->count != b->count)
            return TT_FAIL(
                d->ctx, TT_EINVAL,
                "%s has %lld records, but on rank 0 it has %lld; every process needs the same data",
                head, (long long)a->count, (long long)b->count);
        if (a->fields != b->fields)
            return TT_FAIL(d->ctx, TT_EINVAL,
                           "%s has other fields, types, shapes or transforms than on rank 0; every "
                           "process needs the same data",
                           head);
        for (int k = 0; k < TTI_DATA_FILES; k++) {
            if (a->bytes[k] == b->bytes[k])
                continue;
            print_head(d, i, what, TTI_MIN(k, TTI_MAX(d->n_files - 1, 0)), head, sizeof(head));
            return TT_FAIL(
                d->ctx, TT_EINVAL,
                "%s has %lld bytes, but on rank 0 it has %lld; every process needs the same data",
                head, (long long)a->bytes[k], (long long)b->bytes[k]);
        }
    }
    return TT_OK;
}

static uint64_t hash_range(const reading *r, int64_t begin, int64_t end)
{
    return tti_hash64(&r->hashes[begin], (size_t)(end - begin) * sizeof(r->hashes[0]), 5);
}

// A record that one process cannot read differs, too, and why is what counts.
static tt_status tell_unreadable(reading *r, const char *what, int64_t record)
{
    typedef struct reason {
        int32_t status;
        char text[512];
    } reason;
    tt_ctx *ctx = r->d->ctx;
    int n = tti_world_size(ctx->world);
    reason *all = tti_calloc(ctx, (size_t)n + 1, sizeof(*all)), *mine = &all[n];
    if (all == NULL)
        return TT_ENOMEM;
    mine->status =
        (int32_t)r->d->source.read(&r->ctx, r->d->source.self, record, r->out); // once more
    snprintf(mine->text, sizeof(mine->text), "%s", tt_last_error(&r->ctx).message);
    tt_clear_error(&r->ctx);
    tt_status st = tti_world_exchange(ctx->world, what, mine, sizeof(*mine), all, 0);
    for (int i = 0; st == TT_OK && i < n; i++) {
        char head[TTI_DATA_PATH + 256];
        if (all[i].status == TT_OK)
            continue;
        print_head(r->d, i, what, 0, head, sizeof(head));
        all[i].text[sizeof(all[i].text) - 1] = '\0';
        st = TT_FAIL(ctx, TT_EIO, "%s: record %lld cannot be read: %s", head, (long long)record,
                     all[i].text);
    }
    tti_free(ctx, all);
    return st;
}

// Every process knows the same hashes of all, so all look at the same part next.
static tt_status compare_values(reading *r, const char *what, int64_t n)
{
    tt_ctx *ctx = r->d->ctx;
    int64_t begin = 0, end = n;
    int rank = 0;
    uint64_t mine[PARTS], all[TT_MAX_TASKS * PARTS];
    while (begin < end) {
        int64_t size = end - begin;
        for (int k = 0; k < PARTS; k++)
            mine[k] = hash_range(r, begin + size * k / PARTS, begin + size * (k + 1) / PARTS);
        TT_TRY(tti_world_exchange(ctx->world, what, mine, sizeof(mine), all, 0));
        int odd = -1;
        for (int i = 1; i < tti_world_size(ctx->world) && odd < 0; i++)
            for (int k = 0; k < PARTS && odd < 0; k++)
                if (all[i * PARTS + k] != all[k]) {
                    odd = k;
                    rank = i;
                }
        if (odd < 0)
            return TT_OK;
        int64_t first = begin + size * odd / PARTS;
        end = begin + size * (odd + 1) / PARTS;
        begin = first;
        if (end - begin == 1)
            break;
    }
    if (n == 0)
        return TT_OK;
    char head[TTI_DATA_PATH + 256], more[64] = "";
    if (r->group == 1)
        TT_TRY(tell_unreadable(r, what, record_at(r, begin)));
    print_head(r->d, rank, what, 0, head, sizeof(head));
    if (r->group > 1)
        snprintf(more, sizeof(more), ", or one of %lld others,", (long long)(r->group - 1));
    return TT_FAIL(
        ctx, TT_EINVAL,
        "%s: record %lld %shas other values than on rank 0; every process needs the same data",
        head, (long long)record_at(r, begin * r->group), more);
}

tt_status tti_data_compare(tt_data *d, const char *what)
{
    if (d == NULL || d->is_compared || d->ctx->world == NULL || tti_world_size(d->ctx->world) == 1)
        return TT_OK;
    facts mine, *all = tti_calloc(d->ctx, (size_t)tti_world_size(d->ctx->world), sizeof(*all));
    reading r;
    if (all == NULL)
        return TT_ENOMEM;
    tt_status st = open_reading(d, &r);
    if (st == TT_OK) {
        read_records(&r, d->opts.compare_all);
        mine = facts_of(&r);
        st = tti_world_exchange(d->ctx->world, what, &mine, sizeof(mine), all, 0);
    }
    if (st == TT_OK)
        st = compare_facts(d, what, all);
    int64_t n = INT64_MAX;
    for (int i = 0; st == TT_OK && i < tti_world_size(d->ctx->world); i++)
        n = TTI_MIN(n, all[i].n_hashes);
    if (st == TT_OK)
        st = compare_values(&r, what, n);
    close_reading(&r);
    tti_free(d->ctx, all);
    d->is_compared = st == TT_OK;
    return st;
}

tt_status tti_data_print_make(tt_data *d, tti_data_print *out)
{
    reading r;
    *out = (tti_data_print){.count = d->count, .n_files = d->n_files};
    tt_status st = open_reading(d, &r);
    if (st == TT_OK) {
        for (int64_t i = 0; i < TTI_MIN(FEWEST, d->count); i++)
            out->records = hash_record(&r, record_at(&r, i), out->records);
        out->fields = facts_of(&r).fields + tti_images_hash(d);
    }
    close_reading(&r);
    for (int i = 0; st == TT_OK && i < d->n_files; i++) {
        out->file[i].path = d->files[i].path;
        out->file[i].bytes = d->files[i].bytes;
        out->file[i].hash = tti_file_print(d->files[i].path);
    }
    return st;
}
