/*
 * matrix_ways.c - the ways of the matrix, one record each.
 */
#include "cli/matrix.h"
#include <stdio.h>
#include <string.h>

#define S    .strategy = "single"
#define M    .strategy = "mirrored"
#define C    .strategy = "central"
#define P    .strategy = "pipeline"
#define D(n) .devices = (n)

const matrix_way matrix_ways[] = {
    {MATRIX_SINGLE, S, D(1)},
    {MATRIX_SINGLE, S, D(1), .threads = 1},
    {MATRIX_SINGLE, S, D(1), .isa = "plain"},
    {MATRIX_SINGLE, S, D(2)},

    {MATRIX_MIRRORED, M, D(1)},
    {MATRIX_MIRRORED, M, D(2)},
    {MATRIX_MIRRORED, M, D(3)},
    {MATRIX_MIRRORED, M, D(4)},
    {MATRIX_MIRRORED, M, D(8)},
    {MATRIX_MIRRORED, M, D(2), .isa = "plain", .threads = 1},
    {MATRIX_MIRRORED, M, D(2), .spread = {.bucket = 1}},
    {MATRIX_MIRRORED, M, D(3), .spread = {.bucket = 4096}},
    {MATRIX_MIRRORED, M, D(4), .spread = {.bucket = 1 << 26}},
    {MATRIX_MIRRORED, M, D(3), .spread = {.update = TT_UPDATE_EACH}},
    {MATRIX_MIRRORED, M, D(3), .spread = {.update = TT_UPDATE_SHARD}},
    {MATRIX_MIRRORED, M, D(8), .spread = {.update = TT_UPDATE_SHARD, .bucket = 4096}},
    {MATRIX_MIRRORED, M, D(2), .spread = {.share = "2,1"}},
    {MATRIX_MIRRORED, M, D(3), .spread = {.share = "1,5,2", .update = TT_UPDATE_SHARD}},
    {MATRIX_MIRRORED, M, D(2), .spread = {.share = "auto"}},
    {MATRIX_MIRRORED, M, D(3), .accumulate = 2, .spread = {.share = "auto"}},

    {MATRIX_CENTRAL, C, D(1)},
    {MATRIX_CENTRAL, C, D(2)},
    {MATRIX_CENTRAL, C, D(3)},
    {MATRIX_CENTRAL, C, D(8)},
    {MATRIX_CENTRAL, C, D(2), .spread = {.share = "2,1"}},

    {MATRIX_PINS, S, D(2), .pins = 2},
    {MATRIX_PINS, S, D(3), .pins = 3},
    {MATRIX_PINS, S, D(4), .pins = 4, .threads = 4},

    {MATRIX_REPLICAS, M, D(2), .pins = 2, .is_local = true},
    {MATRIX_REPLICAS, M, D(4), .pins = 2, .is_local = true},
    {MATRIX_REPLICAS, M, D(8), .pins = 2, .is_local = true},
    {MATRIX_REPLICAS, M, D(3), .pins = 3, .is_local = true},
    {MATRIX_REPLICAS, M, D(4), .pins = 2, .is_local = true, .spread = {.update = TT_UPDATE_SHARD}},
    {MATRIX_REPLICAS, C, D(4), .pins = 2, .is_local = true},

    {MATRIX_PIPELINE, P, D(1)},
    {MATRIX_PIPELINE, P, D(2)},
    {MATRIX_PIPELINE, P, D(3)},
    {MATRIX_PIPELINE, P, D(4)},
    {MATRIX_PIPELINE, P, D(2), .spread = {.schedule = TT_PIPE_GPIPE}},
    {MATRIX_PIPELINE, P, D(3), .spread = {.schedule = TT_PIPE_GPIPE}},
    {MATRIX_PIPELINE, P, D(2), .spread = {.micro = 4}},
    {MATRIX_PIPELINE, P, D(2), .spread = {.micro = 3, .schedule = TT_PIPE_GPIPE}},
    {MATRIX_PIPELINE, P, D(2), .spread = {.micro = 1}},
    {MATRIX_PIPELINE, P, D(2), .pins = 2, .is_local = true},
    {MATRIX_PIPELINE, P, D(2), .recompute = "all"},

    {MATRIX_INTERLEAVED, P, D(2), .spread = {.schedule = TT_PIPE_INTERLEAVED}},
    {MATRIX_INTERLEAVED, P, D(2), .spread = {.schedule = TT_PIPE_INTERLEAVED, .micro = 4}},

    {MATRIX_PIPELINES, P, D(4), .spread = {.replicas = 2}},
    {MATRIX_PIPELINES, P, D(4), .spread = {.replicas = 2, .schedule = TT_PIPE_GPIPE}},
    {MATRIX_PIPELINES, P, D(8), .spread = {.replicas = 4}},
    {MATRIX_PIPELINES, P, D(4), .spread = {.replicas = 2, .update = TT_UPDATE_SHARD}},
    {MATRIX_PIPELINES, P, D(6), .spread = {.replicas = 3, .micro = 2}},

    {MATRIX_ACCUMULATE, S, D(1), .accumulate = 2},
    {MATRIX_ACCUMULATE, S, D(1), .accumulate = 4},
    {MATRIX_ACCUMULATE, M, D(2), .accumulate = 2},
    {MATRIX_ACCUMULATE, M, D(2), .accumulate = 4},
    {MATRIX_ACCUMULATE, M, D(3), .accumulate = 2, .spread = {.update = TT_UPDATE_SHARD}},
    {MATRIX_ACCUMULATE, C, D(2), .accumulate = 4},
    {MATRIX_ACCUMULATE, S, D(2), .accumulate = 2, .pins = 2},
    {MATRIX_ACCUMULATE, M, D(4), .accumulate = 2, .pins = 2, .is_local = true},
    {MATRIX_ACCUMULATE, P, D(2), .accumulate = 2},
    {MATRIX_ACCUMULATE, M, D(2), .accumulate = 2, .recompute = "all"},

    {MATRIX_RECOMPUTE, S, D(1), .recompute = "all"},
    {MATRIX_RECOMPUTE, S, D(1), .recompute = "budget 4MiB"},
    {MATRIX_RECOMPUTE, S, D(1), .recompute = "*_1"},
    {MATRIX_RECOMPUTE, M, D(2), .recompute = "all"},
    {MATRIX_RECOMPUTE, C, D(3), .recompute = "all"},
    {MATRIX_RECOMPUTE, S, D(2), .pins = 2, .recompute = "all"},
    {MATRIX_RECOMPUTE, M, D(4), .pins = 2, .is_local = true, .recompute = "all"},

    {MATRIX_LANES_1, M, D(1), .lanes = 1},
    {MATRIX_LANES_1, S, D(2), .lanes = 1, .pins = 2},
    {MATRIX_LANES_1, P, D(2), .lanes = 1},
    {MATRIX_LANES_1, S, D(1), .lanes = 1, .recompute = "all"},

    {MATRIX_LANES_4, M, D(2), .lanes = 4},
    {MATRIX_LANES_4, M, D(3), .lanes = 4},
    {MATRIX_LANES_4, M, D(4), .lanes = 4},
    {MATRIX_LANES_4, C, D(3), .lanes = 4},
    {MATRIX_LANES_4, P, D(2), .lanes = 4},
    {MATRIX_LANES_4, S, D(1), .lanes = 4, .accumulate = 4},

    {MATRIX_LANES_16, M, D(2), .lanes = 16},
    {MATRIX_LANES_16, M, D(3), .lanes = 16},
    {MATRIX_LANES_16, M, D(8), .lanes = 16},
    {MATRIX_LANES_16, C, D(4), .lanes = 16},
    {MATRIX_LANES_16, P, D(4), .lanes = 16, .spread = {.replicas = 2}},
    {MATRIX_LANES_16, S, D(1), .lanes = 16, .accumulate = 2},
};

int matrix_n_ways(void)
{
    return TTI_COUNT(matrix_ways);
}

matrix_way matrix_reference(int lanes)
{
    return (matrix_way){.group = MATRIX_SINGLE, S, D(1), .lanes = lanes};
}

bool matrix_has(const matrix_model *model, const matrix_way *way)
{
    return !model->is_joined || (way->accumulate < 2 && strcmp(way->strategy, "pipeline") != 0);
}

const char *matrix_strategy(const matrix_way *way)
{
    bool mirrored = strcmp(way->strategy, "mirrored") == 0;
    if (way->pins > 0 && strcmp(way->strategy, "single") == 0)
        return "pins";
    if (way->pins > 0 && mirrored)
        return "mirrored x pins";
    if (way->pins > 0 && strcmp(way->strategy, "central") == 0)
        return "central x pins";
    if (way->spread.replicas > 1)
        return "pipeline x mirrored";
    return way->strategy;
}

static void add(char out[128], const char *name, const char *value)
{
    size_t n = strlen(out);
    snprintf(out + n, 128 - n, "%s%s%s%s", n > 0 ? ", " : "", name, *name != '\0' ? " " : "",
             value);
}

static void add_number(char out[128], const char *name, int64_t value)
{
    char text[24];
    snprintf(text, sizeof(text), "%lld", (long long)value);
    if (value > 0)
        add(out, name, text);
}

void matrix_options(const matrix_way *way, char out[128])
{
    static const char *const schedules[] = {"", "gpipe", "interleaved"};
    static const char *const updates[] = {"", "each", "shard"};
    const tt_spread *s = &way->spread;
    out[0] = '\0';
    add_number(out, "lanes", way->lanes);
    add_number(out, "replicas", s->replicas);
    if (s->schedule != TT_PIPE_1F1B)
        add(out, "", schedules[s->schedule]);
    add_number(out, "micro", s->micro);
    add_number(out, "bucket", (int64_t)s->bucket);
    if (s->update != TT_UPDATE_AUTO)
        add(out, "update", updates[s->update]);
    if (s->share != NULL)
        add(out, "share", s->share);
    add_number(out, "accumulate", way->accumulate);
    if (way->recompute != NULL)
        add(out, "recompute", way->recompute);
    if (way->isa != NULL)
        add(out, "isa", way->isa);
    add_number(out, "threads", way->threads);
}
