/*
 * options.c - the options of all strategies as rows. The job's section distribute has them too; a
 * strategy names those it uses, and the others are refused, as they would do nothing.
 */
#include "base/value.h"
#include "plan/spread/pipe_schedule.h"
#include "strategy/strategy.h"
#include <stdio.h>
#include <string.h>

static const char *const schedule_words[] = {"1f1b", "gpipe", "interleaved", NULL};
static const char *const reduce_words[] = {"exact", "fast", NULL};
static const char *const update_words[] = {"auto", "each", "shard", NULL};

#define ROW(name_, type_, value_, help_, max_, words_)                                     \
    {                                                                                      \
#name_, TT_OPT_##type_, value_, help_, offsetof(tt_spread, name_), 0, max_, words_ \
    }
const tt_option tti_spread_rows[] = {
    ROW(replicas, INT32, "0",
        "number of data-parallel copies of the model; 0: as many as the devices allow",
        TT_MAX_LANES, NULL),
    ROW(stages, INT32, "0",
        "pipeline: number of devices per replica; 0: from pins, else devices / replicas",
        TT_MAX_LANES, NULL),
    ROW(schedule, ENUM, "1f1b", "pipeline: order in which stages process micro-batches", 0,
        schedule_words),
    ROW(chunks, INT32, "0", "pipeline, schedule interleaved: number of stages per device; 0: 2",
        TTI_MAX_CHUNKS, NULL),
    ROW(micro, INT32, "0", "pipeline: number of micro-batches per replica; 0: one per lane",
        TT_MAX_LANES, NULL),
    ROW(reduce, ENUM, "exact",
        "how gradients are summed over devices; fast gives up bit-identical results", 0,
        reduce_words),
    ROW(wire, DTYPE, "f32",
        "element type in which gradients are sent: f32; with reduce: fast also bf16, f16", 0, NULL),
    ROW(bucket, SIZE, "0", "bytes of gradients per all-reduce; 0: chosen from the model's size",
        1e18, NULL),
    ROW(update, ENUM, "auto", "whether each replica updates all weights or only a shard of them", 0,
        update_words),
    ROW(share, TEXT, "equal",
        "how the lanes are divided over replicas: equal, auto (by measured speed), or numbers such "
        "as [2, 1]",
        0, NULL),
    TT_OPTION_END,
};

bool tti_strategy_uses(const tti_strategy *s, const char *name)
{
    for (int i = 0; s != NULL && s->uses[i] != NULL; i++)
        if (strcmp(s->uses[i], name) == 0)
            return true;
    return false;
}

// Zero is the default too; and one stage, replica or micro-batch is what everything has.
static bool asks_nothing(const tt_option *row, const tt_spread *spread)
{
    static const char zero[sizeof(tti_value)];
    const void *at = (const char *)spread + row->offset;
    if (memcmp(at, zero, tti_value_bytes(row->type)) == 0 || tti_option_is_default(row, spread))
        return true;
    return row->type == TT_OPT_INT32 && *(const int *)at == 1;
}

bool tti_spread_takes(const tti_strategy *s, const tt_option *row, const tt_spread *spread)
{
    return asks_nothing(row, spread) || tti_strategy_uses(s, row->name);
}

// "strategy mirrored has no stages; pipeline has".
static tt_status refuse(tt_ctx *ctx, const tti_strategy *s, const tt_option *row)
{
    char others[128] = "";
    int n = 0, found = 0;
    for (int i = 0; tti_strategy_at(i) != NULL; i++)
        if (tti_strategy_uses(tti_strategy_at(i), row->name))
            n += snprintf(others + n, sizeof(others) - (size_t)n, "%s%s", found++ > 0 ? ", " : "",
                          tti_strategy_at(i)->name);
    return TT_FAIL(ctx, TT_EINVAL, "strategy %s has no option %s; strategy %s %s", s->name,
                   row->name, others, found > 1 ? "have" : "has");
}

tt_status tti_spread_check(tt_ctx *ctx, const tti_strategy *s, const tt_spread *spread)
{
    char where[64];
    snprintf(where, sizeof(where), "strategy %s", s->name);
    TT_TRY(tti_options_check(ctx, tti_spread_rows, spread, where));
    for (const tt_option *row = tti_spread_rows; row->type != TT_OPT_END; row++)
        if (!tti_spread_takes(s, row, spread))
            return refuse(ctx, s, row);
    if (spread->wire != TT_F32 && spread->wire != TT_BF16 && spread->wire != TT_F16)
        return TT_FAIL(ctx, TT_EINVAL, "strategy %s: wire is %s; use f32, bf16 or f16", s->name,
                       tt_dtype_name(spread->wire));
    if (spread->chunks > 1 && spread->schedule != TT_PIPE_INTERLEAVED)
        return TT_FAIL(ctx, TT_EINVAL,
                       "strategy %s: chunks is %d, but schedule %s has one stage per device; use "
                       "schedule: interleaved for several",
                       s->name, spread->chunks, schedule_words[spread->schedule]);
    tti_mesh none = {0}; // numbers alone
    static const tti_topology nowhere;
    return tti_assign_shares(&nowhere, ctx, s, spread->share, &none);
}
