/*
 * plan_topology.c - plans for devices that are not here: many of them, GPUs, and topologies from
 * files.
 */
#include "../command.h"
#include "../test.h"
#include "base/ctx.h"
#include "base/set.h"
#include "comm/collective_schedule.h"
#include "device/gpu_profile.h"
#include "fit_models.h"
#include "job/topology_file.h"
#include "plan/memory/arena_gaps.h"
#include "plan/verify/verify.h"
#include "run/run.h"
#include "train/compile.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define out command_out
#define err command_err

// ---- sets ------------------------------------------------------------------------------------

TEST(sets_have_as_many_words_as_needed)
{
    uint64_t words[TTI_SET_WORDS(130)] = {0};
    tti_set s = {words, 130};
    CHECK_INT(TTI_SET_WORDS(0), 0);
    CHECK_INT(TTI_SET_WORDS(64), 1);
    CHECK_INT(TTI_SET_WORDS(65), 2);
    for (int i = 0; i < 130; i += 43)
        tti_set_add(&s, i);
    for (int i = -2; i < 300; i++)
        CHECK(tti_set_has(&s, i) == (i >= 0 && i < 130 && i % 43 == 0));
    CHECK_INT(tti_set_count(&s), 4);
}

// ---- gaps ------------------------------------------------------------------------------------

static bool share_time(const tti_arena_block *a, const tti_arena_block *b)
{
    return a->first <= b->last && b->first <= a->last;
}

// Where a block goes, by trying every place: the smallest gap, the lowest of those, else the end.
static size_t place_of(const tti_arena_block *b, const tti_arena_block *put, int n, size_t align)
{
    size_t best = SIZE_MAX, best_gap = SIZE_MAX, end = 0;
    for (int i = -1; i < n; i++) { // gaps begin at 0 or behind a block
        size_t at = i < 0 ? 0 : (put[i].offset + put[i].bytes + align - 1) / align * align;
        size_t next = SIZE_MAX;
        bool busy = false;
        if (i >= 0 && !share_time(&put[i], b))
            continue;
        end = TTI_MAX(end, at);
        for (int k = 0; k < n; k++) {
            if (!share_time(&put[k], b))
                continue;
            size_t behind = (put[k].offset + put[k].bytes + align - 1) / align * align;
            busy |= put[k].offset < at && behind > at;
            busy |= put[k].offset <= at && behind > at;
            if (put[k].offset >= at)
                next = TTI_MIN(next, put[k].offset);
        }
        if (busy || next == SIZE_MAX || next - at < b->bytes)
            continue;
        if (next - at < best_gap || (next - at == best_gap && at < best)) {
            best = at;
            best_gap = next - at;
        }
    }
    return best != SIZE_MAX ? best : end;
}

TEST(blocks_go_to_the_smallest_gap)
{
    enum {
        N = 300
    };
    tt_ctx *ctx = test_ctx();
    tti_arena_block put[N];
    static const int counts[] = {1, N, 16 * N, 1 << 20}; // slices: one to one per time
    for (unsigned seed = 1; seed <= 8; seed++) {
        tti_gaps g;
        srand(seed);
        CHECK_OK(tti_gaps_open(ctx, counts[seed % 4], 400, 64, &g));
        for (int i = 0; i < N; i++) {
            int first = rand() % 200;
            tti_arena_block b = {.value = i,
                                 .first = first,
                                 .last = first + rand() % (seed % 2 != 0 ? 20 : 150),
                                 .bytes = (size_t)(1 + rand() % 1000)};
            size_t want = place_of(&b, put, i, 64);
            CHECK_OK(tti_gaps_put(&g, &b));
            ck_assert_msg(b.offset == want, "seed %u, block %d: at %zu, not %zu", seed, i, b.offset,
                          want);
            put[i] = b;
        }
        tti_gaps_close(&g);
    }
    CHECK_OK(tt_close(ctx));
}

TEST(most_bytes_alive_are_found_with_their_place)
{
    tti_arena_block b[] = {{.first = 0, .last = 3, .bytes = 10},
                           {.first = 2, .last = 2, .bytes = 5},
                           {.first = 3, .last = 9, .bytes = 7},
                           {.first = 4, .last = 4, .bytes = 10}},
                    room[4];
    int at;
    CHECK_INT(tti_most_alive(b, room, 4, &at), 17); // 3: the first has not ended
    CHECK_INT(at, 3);
    CHECK_INT(tti_most_alive(b, room, 0, &at), 0);
}

// ---- many devices ----------------------------------------------------------------------------

// A plan of a model's step for some devices, which holds every rule.
static void plan_on(const char *strategy, int hosts, int n, int lanes, int64_t *bytes)
{
    tt_ctx *ctx =
        tt_open(.strategy = strategy, .lanes = lanes,
                .spread =
                    tt_spread(.replicas = strcmp(strategy, "pipeline") == 0 ? hosts * n / 2 : 0),
                .on_event = test_ignore_event);
    tt_model *m = fit_model(ctx, FIT_MLP);
    tti_topology top;
    tti_plan *p = NULL;
    CHECK_OK(tti_topology_make(ctx, &ctx->top, hosts, n, &top));
    top.host_memory = 0;
    CHECK_INT(top.n_devices, hosts * n);
    int64_t before = atomic_load(&ctx->alloc_bytes);
    tt_status st = tti_step_look(m, lanes, 1, &top, NULL, &p);
    ck_assert_msg(st == TT_OK, "%s %d x %d: %s", strategy, hosts, n, tt_last_error(ctx).message);
    *bytes = atomic_load(&ctx->alloc_bytes) - before;
    st = tti_plan_verify(p, TTI_STAGE_EMIT);
    ck_assert_msg(st == TT_OK, "%s %d x %d: %s", strategy, hosts, n, tt_last_error(ctx).message);
    int used = 0;
    for (int d = 0; d < top.n_devices; d++)
        used += p->exe.lists[d].n_entries > 0;
    CHECK_INT(used, hosts * n);
    tti_plan_free(p);
    tti_topology_free(ctx, &top);
    CHECK_OK(tt_close(ctx));
}

TEST(plans_for_a_thousand_devices_hold_the_rules)
{
    static const struct {
        const char *strategy;
        int hosts, devices;
    } cases[] = {{"mirrored", 1, 65},   {"mirrored", 16, 8},  {"pipeline", 1, 130},
                 {"mirrored", 1, 1024}, {"mirrored", 128, 8}, {"mirrored", 1024, 1},
                 {"central", 64, 8},    {"pipeline", 128, 8}};
    for (int i = 0; i < TTI_COUNT(cases); i++) {
        int64_t bytes, n = cases[i].hosts * cases[i].devices;
        plan_on(cases[i].strategy, cases[i].hosts, cases[i].devices, (int)n, &bytes);
        // What a device adds does not grow with their number.
        ck_assert_msg(bytes < n * (1 << 20), "%s %d x %d: %lld bytes", cases[i].strategy,
                      cases[i].hosts, cases[i].devices, (long long)bytes);
    }
}

// ---- messages --------------------------------------------------------------------------------

static bool is_host_sum(const tti_plan *p, const tti_pnode *pn)
{
    return !pn->is_dropped && pn->kind == TTI_TREE && pn->what != NULL && pn->lanes != &p->lanes;
}

// Messages with a host's sum that is made on a device, from a piece on, which a device receives.
static int sends_of(const tti_plan *p, const tti_collective *what, int device, int piece, int to)
{
    int n = 0;
    for (int64_t i = 0; i < p->n_nodes; i++) {
        const tti_pnode *receive = &p->nodes[i];
        if (receive->kind != TTI_RECV || receive->is_dropped || receive->transfer == NULL ||
            receive->n_after != 1 || receive->device != to)
            continue;
        const tti_pnode *send = &p->nodes[receive->after[0]];
        CHECK_INT(send->transfer->peer, p->top->devices[to]->task);
        for (int k = 0; k < send->n_in; k++) {
            const tti_pnode *sum = &p->nodes[p->values[send->in[k]].node];
            n += is_host_sum(p, sum) && sum->what == what && sum->device == device &&
                 (sum->piece < 0 || sum->piece == piece);
        }
    }
    return n;
}

// Does a process add up a sum to its end? Metrics are only where they are fetched.
static bool is_needed(const tti_plan *p, const tti_collective *what, int task)
{
    for (int64_t i = 0; i < p->n_nodes; i++) {
        const tti_pnode *pn = &p->nodes[i];
        if (pn->kind == TTI_TREE && pn->what == what && pn->lanes == &p->lanes && !pn->is_dropped &&
            p->top->devices[pn->device]->task == task)
            return true;
    }
    return false;
}

// The messages of one sum of a plan are those of the schedule, for the turn that its maker has.
static void check_sum(const tti_plan *p, const tti_pnode *sum, const tti_host_map *hosts,
                      int *sends)
{
    tti_collective_step steps[256];
    tti_collective_schedule s = {.steps = steps};
    tti_collective_request q = {.kind = sum->what->kind,
                                .root = sum->what->root,
                                .hosts = hosts,
                                .grain = sum->piece >= 0 ? TTI_BY_HOST : TTI_WHOLE,
                                .turn = sum->device - hosts->first[hosts->host[sum->device]]};
    for (int r = 0; r < hosts->n; r++) {
        tti_collective_schedule_make(&q, r, &s);
        for (int i = 0; i < s.n_sum; i++) {
            if (steps[i].kind != TTI_STEP_SEND)
                continue;
            int task = p->top->devices[steps[i].peer]->task;
            int n = sends_of(p, sum->what, r, steps[i].first, steps[i].peer);
            CHECK_INT(n, is_needed(p, sum->what, task));
            *sends += n;
        }
    }
}

static void follow_schedule(int hosts, int n)
{
    tt_ctx *ctx =
        tt_open(.strategy = "mirrored", .lanes = hosts * n, .on_event = test_ignore_event);
    tt_model *m = fit_model(ctx, FIT_MLP);
    tti_topology top;
    tti_plan *p = NULL;
    tti_host_map map;
    int first_of[64], sends = 0, sent = 0;
    CHECK_OK(tti_topology_make(ctx, &ctx->top, hosts, n, &top));
    top.host_memory = 0;
    CHECK_OK(tti_step_look(m, hosts * n, 1, &top, NULL, &p));
    for (int i = 0; i < hosts * n; i++)
        first_of[i] = i / n * n;
    CHECK_OK(tti_host_map_make(ctx, hosts * n, first_of, &map));
    const tti_collective *last = NULL;
    for (int64_t i = 0; i < p->n_nodes; i++) {
        const tti_pnode *pn = &p->nodes[i];
        if (is_host_sum(p, pn) && pn->what != last)
            check_sum(p, pn, &map, &sends);
        last = is_host_sum(p, pn) ? pn->what : last;
        for (int k = 0; pn->kind == TTI_SEND && !pn->is_dropped && k < pn->n_in; k++)
            sent += is_host_sum(p, &p->nodes[p->values[pn->in[k]].node]);
    }
    ck_assert_int_gt(sends, 0);
    CHECK_INT(sent, sends); // and no others
    tti_host_map_free(ctx, &map);
    tti_plan_free(p);
    tti_topology_free(ctx, &top);
    CHECK_OK(tt_close(ctx));
}

TEST(sums_of_plans_are_sent_as_the_schedule_of_collectives_says)
{
    follow_schedule(2, 2);
    follow_schedule(4, 2);
    follow_schedule(3, 5);
}

// ---- files -----------------------------------------------------------------------------------

static const char *write_topology(const char *text)
{
    static char path[400];
    command_write("cluster.yaml", text);
    snprintf(path, sizeof(path), "%s/cluster.yaml", test_folder());
    return path;
}

TEST(topologies_are_read_from_files)
{
    tt_ctx *ctx = tt_open(.devices = "cpu:0", .threads = 4);
    tti_topology t;
    CHECK_OK(tti_topology_read(
        ctx, &ctx->top,
        write_topology(
            "hosts:\n"
            "  - {count: 2, processes: 2, devices: {kind: h200, count: 4, limit: 8GiB}}\n"
            "  - devices:\n"
            "      - {kind: cpu, count: 2, memory: 1GiB, speed: 0.5}\n"
            "      - {kind: gpu}\n"
            "links: {same_host: 450GB/s, cross_host: 400Gbit/s}\n"),
        &t));
    CHECK_INT(t.n_devices, 11);
    CHECK_INT(t.n_tasks, 5);
    CHECK(t.same_host == 450e9 && t.cross_host == 50e9);
    static const char *const names[] = {"task:0/gpu:0", "task:0/gpu:1", "task:1/gpu:0",
                                        "task:1/gpu:1", "task:2/gpu:0", "task:2/gpu:1",
                                        "task:3/gpu:0", "task:3/gpu:1", "task:4/cpu:0",
                                        "task:4/cpu:1", "task:4/gpu:0"};
    for (int d = 0; d < 11; d++) {
        const tti_device *v = t.devices[d];
        CHECK_STR(v->name, names[d]);
        CHECK_INT(v->index, d);
        CHECK(v->is_away == (v->task > 0));
        CHECK(t.limit[d] == (d < 8    ? (size_t)8 << 30
                             : d < 10 ? (size_t)1 << 30
                                      : tti_gpu_profile_find(NULL)->memory));
        CHECK(t.speed[d] == (d == 8 || d == 9 ? 0.5 : 1));
        for (int o = 0; o < 5; o++) // processes of one host read each other's memory
            CHECK(tti_set_has(&v->near, o) == (v->task / 2 == o / 2));
    }
    tti_topology_free(ctx, &t);
    CHECK_OK(tt_close(ctx));
}

TEST(mistakes_in_topologies_are_named)
{
    static const struct {
        const char *text, *words;
    } cases[] = {
        {"host: {devices: {kind: cpu}}\n",
         "cluster.yaml:1:1: unknown key 'host'; did you mean 'hosts'?"},
        {"links: {}\n", "hosts is missing"},
        {"hosts: []\n", "hosts: the list is empty"},
        {"hosts: 8\n", "hosts: is a text; use a map"},
        {"hosts:\n  - {cuont: 8}\n",
         "cluster.yaml:2:6: hosts: unknown key 'cuont'; did you mean 'count'?"},
        {"hosts: {count: 8}\n", "hosts: devices is missing"},
        {"hosts: {count: 0, devices: {kind: cpu}}\n", "count is 0; use a number from 1 to 65536"},
        {"hosts: {devices: {}}\n", "kind is missing; use cpu, gpu, h200"},
        {"hosts: {devices: {kind: h20}}\n", "kind 'h20'; did you mean 'h200'? (cpu, gpu, h200)"},
        {"hosts: {devices: {kind: quantum}}\n", "kind 'quantum' is not one of cpu, gpu, h200"},
        {"hosts: {devices: {kind: cpu, memory: big}}\n",
         "hosts.devices.memory: 'big' is not a size"},
        {"hosts: {devices: {kind: cpu, memory: 1GiB, limit: 2GiB}}\n",
         "the limit is above the memory"},
        {"hosts: {devices: {kind: cpu, speed: -1}}\n", "speed must be above 0"},
        {"hosts: {processes: 3, devices: {kind: cpu, count: 4}}\n",
         "4 devices cannot be divided evenly among 3 processes"},
        {"hosts: {devices: {kind: cpu}}\nlinks: {cross_host: fast}\n",
         "cluster.yaml:2:21: links: cross_host is 'fast'; use a rate such as 50GB/s"},
        {"hosts: {count: 60000, devices: {kind: cpu, count: 2}}\n", "at most 65536 devices"},
        {"hosts: [\n", "cluster.yaml:"},
    };
    for (int i = 0; i < TTI_COUNT(cases); i++) {
        tt_ctx *ctx = tt_open(.on_event = test_ignore_event);
        tti_topology t;
        tt_status st = tti_topology_read(ctx, &ctx->top, write_topology(cases[i].text), &t);
        ck_assert_msg(st != TT_OK, "%s was read", cases[i].text);
        CHECK_MESSAGE(ctx, cases[i].words);
        CHECK(tt_close(ctx) != TT_OK);
    }
    tt_ctx *ctx = tt_open(.on_event = test_ignore_event);
    tti_topology t;
    CHECK(tti_topology_read(ctx, &ctx->top, "none.yaml", &t) == TT_EIO);
    CHECK(tt_close(ctx) == TT_EIO);
}

// ---- the command -----------------------------------------------------------------------------

TEST(plans_for_gpus_are_made_without_one)
{
    command_write("small.yaml", command_small_job);
    command_ok("plan small.yaml --strategy mirrored --topology 2x4gpu --verify");
    CHECK_HAS(out, "task:1/gpu:3");
    CHECK_HAS(out, "the plan was checked: every rule holds");
    CHECK_HAS(out, "up to 8 replicas (lanes: 8)");
    command_write("cluster.yaml", "hosts: {count: 2, devices: {kind: h200, count: 2}}\n"
                                  "links: {same_host: 450GB/s, cross_host: 50GB/s}\n");
    command_ok("plan small.yaml --strategy mirrored --topology cluster.yaml --verify");
    CHECK_HAS(out, "links: the device that receives most takes ");
    CHECK_HAS(out, "memory is an upper bound from the recorded profile of NVIDIA H200");
    CHECK_HAS(out, "139.8 GiB"); // the limit
    command_ok("plan small.yaml --strategy mirrored --topology cluster.yaml --json");
    CHECK_HAS(out, "\"bound\":\"");
    command_ok("plan small.yaml --strategy mirrored --topology 4cpu --json");
    CHECK(strstr(out, "\"bound\":") == NULL);
}

TEST(plans_for_many_replicas_have_lanes_for_them)
{
    command_write("small.yaml", command_small_job);
    command_ok("plan small.yaml --strategy mirrored --topology 4x8cpu --verify");
    CHECK_HAS(out, "planned with lanes: 32 and 32 rows per step");
    CHECK_HAS(out, "with the job's lanes: 8 and ");
    CHECK_HAS(out, "8 replicas would be used");
    CHECK_INT(command_run("plan small.yaml --strategy mirrored --topology 4x8cpu --lanes 8"), 3);
    CHECK_HAS(err, "32 replicas, but 8 lanes");
}
