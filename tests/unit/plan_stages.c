/*
 * plan_stages.c - each stage of planning on a graph written by hand: the whole program after it.
 */
#include "../command.h"
#include "../test.h"
#include "plan/stages.h"
#include "run/run.h"
#include "strategy/strategy.h"
#include <stdio.h>
#include <string.h>

#define HEAD "tutti graph 1\n"

typedef struct stage_case {
    const char *name; // what is looked at
    const char *graph, *target;
    tti_stage stage;
    const char *program;
    const char *strategy; // NULL: single
    int hosts, devices;   // 0: one
} stage_case;

// The watch of a plan of the case's graph, for 8 rows in 2 lanes.
static void watch(const stage_case *c, tti_stage_watch *w, tt_ctx **ctx)
{
    *ctx = tt_open(.lanes = 2, .strategy = c->strategy, .on_event = test_ignore_event);
    tt_graph *g = tt_graph_parse(*ctx, c->graph, strlen(c->graph));
    ck_assert_msg(g != NULL, "%s: %s", c->name, tt_last_error(*ctx).message);
    tt_tensor *target = tt_graph_find(g, c->target);
    tt_session *s = tt_session_new(g);
    tti_topology top;
    CHECK_OK(
        tti_topology_make(*ctx, &(*ctx)->top, TTI_MAX(c->hosts, 1), TTI_MAX(c->devices, 1), &top));
    *w = (tti_stage_watch){.show = (int)c->stage};
    tt_plan_opts opts = {.opts_size = sizeof(opts), .targets = &target, .n_targets = 1, .rows = 8};
    tti_plan *p;
    tt_status st = tti_session_look(s, &opts, &top, w, &p);
    ck_assert_msg(st == TT_OK, "%s: %s", c->name, tt_last_error(*ctx).message);
    tti_plan_free(p);
    tti_topology_free(*ctx, &top);
}

static void check_cases(const stage_case *cases, int n)
{
    for (int i = 0; i < n; i++) {
        tti_stage_watch w;
        tt_ctx *ctx;
        watch(&cases[i], &w, &ctx);
        ck_assert_msg(w.text != NULL && strcmp(w.text, cases[i].program) == 0,
                      "%s: after %s the program is\n%s", cases[i].name,
                      tti_stage_name(cases[i].stage), w.text == NULL ? "nothing\n" : w.text);
        tti_stage_watch_deinit(ctx, &w);
        CHECK_OK(tt_close(ctx));
    }
}

#define STEP                                                    \
    HEAD "%x = feed {shape=[b, 4]}\n"                           \
         "%w = variable {shape=[4, 2]}\n"                       \
         "%h = matmul(%x, %w) : f32[b, 2]\n"                    \
         "%a = tanh(%h) : f32[b, 2]\n"                          \
         "%g = matmul(%x, %a) {transpose_a=true} : f32[4, 2]\n" \
         "%u = update_sgd(%w, %g) : f32[4, 2]\n"

TEST(build_keeps_what_the_target_needs_once)
{
    static const stage_case cases[] = {
        {.name = "dead nodes, duplicates",
         .graph = HEAD "%x = feed {shape=[b, 4]}\n"
                       "%p = exp(%x) : f32[b, 4]\n"
                       "%q = exp(%x) : f32[b, 4]\n"
                       "%unused = neg(%x) : f32[b, 4]\n"
                       "%y = add(%p, %q) : f32[b, 4]\n",
         .target = "y",
         .stage = TTI_STAGE_BUILD,
         .program = "    0 -        %0 = feed() : f32[8, 4]  'x'\n"
                    "    1 -        %1 = exp(%0) : f32[8, 4]  'p'\n"
                    "    2 -        %2 = add(%1, %1) : f32[8, 4]  'y'\n"},
        {.name = "constants",
         .graph = HEAD "%x = feed {shape=[b, 4]}\n"
                       "%c = const data [2]\n"
                       "%d = const data [3]\n"
                       "%e = mul(%c, %d) : f32[]\n"
                       "%y = mul(%x, %e) : f32[b, 4]\n",
         .target = "y",
         .stage = TTI_STAGE_BUILD,
         .program = "    0 -        %0 = feed() : f32[8, 4]  'x'\n"
                    "    1 -        %1 = const() : f32[] constant  'c'\n"
                    "    2 -        %2 = const() : f32[] constant  'd'\n"
                    "    4 -        %4 = mul(%0, %3) : f32[8, 4]  'y'\n"},
    };
    check_cases(cases, TTI_COUNT(cases));
}

TEST(spread_copies_rows_and_adds_their_sums)
{
    static const stage_case cases[] = {
        {.name = "two replicas",
         .graph = STEP,
         .target = "u",
         .stage = TTI_STAGE_SPREAD,
         .strategy = "mirrored",
         .devices = 2,
         .program =
             "    0 cpu:0    %0 = feed() : f32[4, 4] [data split(0)@0]  'x' rows 0-4  (lane 0)\n"
             "    1 cpu:1    %1 = feed() : f32[4, 4] [data split(0)@1]  'x' rows 4-8  (lane 1)\n"
             "    2 cpu:0    %2 = variable() : f32[4, 2] variable  'w'  (replica)\n"
             "    3 cpu:1    %3 = variable() : f32[4, 2] variable  'w'  (replica)\n"
             "    4 cpu:0    %4 = matmul(%0, %2) : f32[4, 2] [data split(0)@0]  'h' rows 0-4  "
             "(lane 0)\n"
             "    5 cpu:1    %5 = matmul(%1, %3) : f32[4, 2] [data split(0)@1]  'h' rows 4-8  "
             "(lane 1)\n"
             "    6 cpu:0    %6 = tanh(%4) : f32[4, 2] [data split(0)@0]  'a' rows 0-4  (lane 0)\n"
             "    7 cpu:1    %7 = tanh(%5) : f32[4, 2] [data split(0)@1]  'a' rows 4-8  (lane 1)\n"
             "    8 cpu:0    %8 = matmul(%0, %6) : f32[1, 4, 2] [data partial@0]  'g' rows 0-4  "
             "(lane 0)\n"
             "    9 cpu:1    %9 = matmul(%1, %7) : f32[1, 4, 2] [data partial@1]  'g' rows 4-8  "
             "(lane 1)\n"
             "   10 cpu:0    %10 = tree(%8, %9) : f32[4, 2]  'g'  (sums of all lanes)\n"
             "   11 cpu:1    %11 = tree(%8, %9) : f32[4, 2]  'g'  (sums of all lanes)\n"
             "   12 cpu:0    %12 = update_sgd(%2, %10) : f32[4, 2] in %2 variable  'u'  (replica)\n"
             "   13 cpu:1    %13 = update_sgd(%3, %11) : f32[4, 2] in %3 variable  'u'  "
             "(replica)\n"},
        {.name = "variables on the first device",
         .graph = STEP,
         .target = "u",
         .stage = TTI_STAGE_SPREAD,
         .strategy = "central",
         .devices = 2,
         .program =
             "    0 cpu:0    %0 = feed() : f32[4, 4] [data split(0)@0]  'x' rows 0-4  (lane 0)\n"
             "    1 cpu:1    %1 = feed() : f32[4, 4] [data split(0)@1]  'x' rows 4-8  (lane 1)\n"
             "    2 cpu:0    %2 = variable() : f32[4, 2] variable [data one@0]  'w'  (replica)\n"
             "    3 cpu:0    %3 = matmul(%0, %2) : f32[4, 2] [data split(0)@0]  'h' rows 0-4  "
             "(lane 0)\n"
             "    4 cpu:1    %4 = matmul(%1, %2) : f32[4, 2] [data split(0)@1]  'h' rows 4-8  "
             "(lane 1)\n"
             "    5 cpu:0    %5 = tanh(%3) : f32[4, 2] [data split(0)@0]  'a' rows 0-4  (lane 0)\n"
             "    6 cpu:1    %6 = tanh(%4) : f32[4, 2] [data split(0)@1]  'a' rows 4-8  (lane 1)\n"
             "    7 cpu:0    %7 = matmul(%0, %5) : f32[1, 4, 2] [data partial@0]  'g' rows 0-4  "
             "(lane 0)\n"
             "    8 cpu:1    %8 = matmul(%1, %6) : f32[1, 4, 2] [data partial@1]  'g' rows 4-8  "
             "(lane 1)\n"
             "    9 cpu:0    %9 = tree(%7, %8) : f32[4, 2] [data one@0]  'g'  (sums of all lanes)\n"
             "   10 cpu:0    %10 = update_sgd(%2, %9) : f32[4, 2] in %2 variable [data one@0]  'u' "
             " (replica)\n"},
        {.name = "one device",
         .graph = STEP,
         .target = "u",
         .stage = TTI_STAGE_SPREAD,
         .program = "    0 -        %0 = feed() : f32[8, 4]  'x'\n"
                    "    1 -        %1 = variable() : f32[4, 2] variable  'w'\n"
                    "    2 -        %2 = matmul(%0, %1) : f32[8, 2]  'h'\n"
                    "    3 -        %3 = tanh(%2) : f32[8, 2]  'a'\n"
                    "    4 -        %4 = matmul(%0, %3) : f32[4, 2]  'g'\n"
                    "    5 -        %5 = update_sgd(%1, %4) : f32[4, 2] in %1 variable  'u'\n"},
    };
    check_cases(cases, TTI_COUNT(cases));
}

#define PINNED                                   \
    HEAD "%x = feed {shape=[b, 4]}\n"            \
         "%p = softmax(%x) @cpu:1 : f32[b, 4]\n" \
         "%q = softmax(%p) : f32[b, 4]\n"        \
         "%r = softmax(%q) @cpu:0 : f32[b, 4]\n" \
         "%s = exp(%q) @cpu:0 : f32[b, 4]\n"     \
         "%y = sub(%r, %s) : f32[b, 4]\n"

TEST(place_follows_pins_and_inputs)
{
    static const stage_case cases[] = {
        {.name = "pins",
         .graph = PINNED,
         .target = "y",
         .stage = TTI_STAGE_PLACE,
         .devices = 2,
         .program = "    0 cpu:1    %0 = feed() : f32[8, 4]  'x'  (read by p)\n"
                    "    1 cpu:1    %1 = softmax(%0) : f32[8, 4]  'p'  (pin)\n"
                    "    2 cpu:1    %2 = softmax(%1) : f32[8, 4]  'q'  (input p)\n"
                    "    3 cpu:0    %3 = softmax(%2) : f32[8, 4]  'r'  (pin)\n"
                    "    4 cpu:0    %4 = exp(%2) : f32[8, 4]  's'  (pin)\n"
                    "    5 cpu:0    %5 = sub(%3, %4) : f32[8, 4]  'y'  (input r)\n"},
    };
    check_cases(cases, TTI_COUNT(cases));
}

TEST(cut_receives_a_value_once_per_device)
{
    static const stage_case cases[] = {
        {.name = "two readers of one value",
         .graph = PINNED,
         .target = "y",
         .stage = TTI_STAGE_CUT,
         .devices = 2,
         .program = "    0 cpu:1    %0 = feed() : f32[8, 4]  'x'  (read by p)\n"
                    "    1 cpu:1    %1 = softmax(%0) : f32[8, 4]  'p'  (pin)\n"
                    "    2 cpu:1    %2 = softmax(%1) : f32[8, 4]  'q'  (input p)\n"
                    "    3 cpu:0    %3 = softmax(%6) : f32[8, 4]  'r'  (pin)\n"
                    "    4 cpu:0    %4 = exp(%6) : f32[8, 4]  's'  (pin)\n"
                    "    5 cpu:0    %5 = sub(%3, %4) : f32[8, 4]  'y'  (input r)\n"
                    "    6 cpu:0    %6 = receive(%2) : f32[8, 4]  'q'  (received)\n"},
        {.name = "a variable that another device reads",
         .graph = STEP,
         .target = "u",
         .stage = TTI_STAGE_CUT,
         .strategy = "central",
         .devices = 2,
         .program =
             "    0 cpu:0    %0 = feed() : f32[4, 4] [data split(0)@0]  'x' rows 0-4  (lane 0)\n"
             "    1 cpu:1    %1 = feed() : f32[4, 4] [data split(0)@1]  'x' rows 4-8  (lane 1)\n"
             "    2 cpu:0    %2 = variable() : f32[4, 2] variable [data one@0]  'w'  (replica)\n"
             "    3 cpu:0    %3 = matmul(%0, %2) : f32[4, 2] [data split(0)@0]  'h' rows 0-4  "
             "(lane 0)\n"
             "    4 cpu:1    %4 = matmul(%1, %11) : f32[4, 2] [data split(0)@1]  'h' rows 4-8  "
             "(lane 1)\n"
             "    5 cpu:0    %5 = tanh(%3) : f32[4, 2] [data split(0)@0]  'a' rows 0-4  (lane 0)\n"
             "    6 cpu:1    %6 = tanh(%4) : f32[4, 2] [data split(0)@1]  'a' rows 4-8  (lane 1)\n"
             "    7 cpu:0    %7 = matmul(%0, %5) : f32[1, 4, 2] [data partial@0]  'g' rows 0-4  "
             "(lane 0)\n"
             "    8 cpu:1    %8 = matmul(%1, %6) : f32[1, 4, 2] [data partial@1]  'g' rows 4-8  "
             "(lane 1)\n"
             "    9 cpu:0    %9 = tree(%7, %8) : f32[4, 2] [data one@0]  'g'  (sums of all lanes)\n"
             "   10 cpu:0    %10 = update_sgd(%2, %9) : f32[4, 2] in %2 variable [data one@0]  'u' "
             " (replica)\n"
             "   11 cpu:1    %11 = receive(%2) : f32[4, 2] [data one@0]  'w'  (received)\n"},
        {.name = "two processes that share no memory",
         .graph = STEP,
         .target = "u",
         .stage = TTI_STAGE_CUT,
         .strategy = "central",
         .hosts = 2,
         .program = "    0 task:0/cpu:0 %0 = feed() : f32[4, 4] [data split(0)@0]  'x' rows 0-4  "
                    "(lane 0)\n"
                    "    1 task:1/cpu:0 %1 = feed() : f32[4, 4] [data split(0)@1]  'x' rows 4-8  "
                    "(lane 1)\n"
                    "    2 task:0/cpu:0 %2 = variable() : f32[4, 2] variable [data one@0]  'w'  "
                    "(replica)\n"
                    "    3 task:0/cpu:0 %3 = matmul(%0, %2) : f32[4, 2] [data split(0)@0]  'h' "
                    "rows 0-4  (lane 0)\n"
                    "    4 task:1/cpu:0 %4 = matmul(%1, %11) : f32[4, 2] [data split(0)@1]  'h' "
                    "rows 4-8  (lane 1)\n"
                    "    5 task:0/cpu:0 %5 = tanh(%3) : f32[4, 2] [data split(0)@0]  'a' rows 0-4  "
                    "(lane 0)\n"
                    "    6 task:1/cpu:0 %6 = tanh(%4) : f32[4, 2] [data split(0)@1]  'a' rows 4-8  "
                    "(lane 1)\n"
                    "    7 task:0/cpu:0 %7 = matmul(%0, %5) : f32[1, 4, 2] [data partial@0]  'g' "
                    "rows 0-4  (lane 0)\n"
                    "    8 task:1/cpu:0 %8 = matmul(%1, %6) : f32[1, 4, 2] [data partial@1]  'g' "
                    "rows 4-8  (lane 1)\n"
                    "    9 task:0/cpu:0 %9 = tree(%7, %12) : f32[4, 2] [data one@0]  'g'  (sums of "
                    "all lanes)\n"
                    "   10 task:0/cpu:0 %10 = update_sgd(%2, %9) : f32[4, 2] in %2 variable [data "
                    "one@0]  'u'  (replica)\n"
                    "   11 task:0/cpu:0 send(%2)  'w'  (to another process)\n"
                    "   12 task:1/cpu:0 %11 = receive() : f32[4, 2] [data one@0]  'w' after 11  "
                    "(received)\n"
                    "   13 task:1/cpu:0 send(%8)  'g'  (to another process)\n"
                    "   14 task:0/cpu:0 %12 = receive() : f32[1, 4, 2] [data partial@1]  'g' after "
                    "13  (received)\n"
                    "   15 task:0/cpu:0 send(%10)  'u'  (to another process)\n"
                    "   16 task:1/cpu:0 %13 = receive() : f32[4, 2] [data one@0]  'u' after 15  "
                    "(received)\n"},
    };
    check_cases(cases, TTI_COUNT(cases));
}

TEST(fuse_joins_pointwise_nodes_that_nobody_else_reads)
{
    static const stage_case cases[] = {
        {.name = "a chain",
         .graph = HEAD "%x = feed {shape=[b, 4]}\n"
                       "%p = exp(%x) : f32[b, 4]\n"
                       "%q = add(%p, %x) : f32[b, 4]\n"
                       "%y = tanh(%q) : f32[b, 4]\n",
         .target = "y",
         .stage = TTI_STAGE_FUSE,
         .program = "    0 cpu:0    %0 = feed() : f32[8, 4]  'x'  (read by p)\n"
                    "    3 cpu:0    %3 = exp+add+tanh(%0) : f32[8, 4]  'y'  (input q)\n"},
        {.name = "a value that two read",
         .graph = HEAD "%x = feed {shape=[b, 4]}\n"
                       "%p = exp(%x) : f32[b, 4]\n"
                       "%q = softmax(%p) : f32[b, 4]\n"
                       "%y = tanh(%p) : f32[b, 4]\n"
                       "%z = add(%q, %y) : f32[b, 4]\n",
         .target = "z",
         .stage = TTI_STAGE_FUSE,
         .program = "    0 cpu:0    %0 = feed() : f32[8, 4]  'x'  (read by p)\n"
                    "    1 cpu:0    %1 = exp(%0) : f32[8, 4]  'p'  (first device with the kernel)\n"
                    "    2 cpu:0    %2 = softmax(%1) : f32[8, 4]  'q'  (input p)\n"
                    "    4 cpu:0    %4 = tanh+add(%1, %2) : f32[8, 4]  'z'  (input q)\n"},
        {.name = "other devices",
         .graph = HEAD "%x = feed {shape=[b, 4]}\n"
                       "%p = exp(%x) @cpu:1 : f32[b, 4]\n"
                       "%y = tanh(%p) @cpu:0 : f32[b, 4]\n",
         .target = "y",
         .stage = TTI_STAGE_FUSE,
         .devices = 2,
         .program = "    0 cpu:1    %0 = feed() : f32[8, 4]  'x'  (read by p)\n"
                    "    1 cpu:1    %1 = exp(%0) : f32[8, 4]  'p'  (pin)\n"
                    "    2 cpu:0    %2 = tanh(%3) : f32[8, 4]  'y'  (pin)\n"
                    "    3 cpu:0    %3 = receive(%1) : f32[8, 4]  'p'  (received)\n"},
    };
    check_cases(cases, TTI_COUNT(cases));
}

TEST(order_puts_updates_after_their_gradients_and_receives_before_readers)
{
    static const stage_case cases[] = {
        {.name = "two replicas",
         .graph = STEP,
         .target = "u",
         .stage = TTI_STAGE_ORDER,
         .strategy = "mirrored",
         .devices = 2,
         .program =
             "    2 cpu:0    %2 = variable() : f32[4, 2] variable  'w'  (replica)\n"
             "    3 cpu:1    %3 = variable() : f32[4, 2] variable  'w'  (replica)\n"
             "    0 cpu:0    %0 = feed() : f32[4, 4] [data split(0)@0]  'x' rows 0-4  (lane 0)\n"
             "    1 cpu:1    %1 = feed() : f32[4, 4] [data split(0)@1]  'x' rows 4-8  (lane 1)\n"
             "    4 cpu:0    %4 = matmul(%0, %2) : f32[4, 2] [data split(0)@0]  'h' rows 0-4  "
             "(lane 0)\n"
             "    5 cpu:1    %5 = matmul(%1, %3) : f32[4, 2] [data split(0)@1]  'h' rows 4-8  "
             "(lane 1)\n"
             "    6 cpu:0    %6 = tanh(%4) : f32[4, 2] [data split(0)@0]  'a' rows 0-4  (lane 0)\n"
             "    7 cpu:1    %7 = tanh(%5) : f32[4, 2] [data split(0)@1]  'a' rows 4-8  (lane 1)\n"
             "    8 cpu:0    %8 = matmul(%0, %6) : f32[1, 4, 2] [data partial@0]  'g' rows 0-4  "
             "(lane 0)\n"
             "    9 cpu:1    %9 = matmul(%1, %7) : f32[1, 4, 2] [data partial@1]  'g' rows 4-8  "
             "(lane 1)\n"
             "   10 cpu:0    %10 = tree(%8, %9) : f32[4, 2]  'g'  (sums of all lanes)\n"
             "   11 cpu:1    %11 = tree(%8, %9) : f32[4, 2]  'g'  (sums of all lanes)\n"
             "   12 cpu:0    %12 = update_sgd(%2, %10) : f32[4, 2] in %2 variable  'u'  (replica)\n"
             "   13 cpu:1    %13 = update_sgd(%3, %11) : f32[4, 2] in %3 variable  'u'  "
             "(replica)\n"},
        {.name = "receives",
         .graph = PINNED,
         .target = "y",
         .stage = TTI_STAGE_ORDER,
         .devices = 2,
         .program = "    0 cpu:1    %0 = feed() : f32[8, 4]  'x'  (read by p)\n"
                    "    1 cpu:1    %1 = softmax(%0) : f32[8, 4]  'p'  (pin)\n"
                    "    2 cpu:1    %2 = softmax(%1) : f32[8, 4]  'q'  (input p)\n"
                    "    6 cpu:0    %6 = receive(%2) : f32[8, 4]  'q'  (received)\n"
                    "    3 cpu:0    %3 = softmax(%6) : f32[8, 4]  'r'  (pin)\n"
                    "    5 cpu:0    %5 = exp+sub(%6, %3) : f32[8, 4]  'y'  (input r)\n"},
    };
    check_cases(cases, TTI_COUNT(cases));
}

TEST(memory_reuses_what_is_no_longer_read)
{
    static const stage_case cases[] = {
        {.name = "in place",
         .graph = HEAD "%x = feed {shape=[b, 64]}\n"
                       "%p = softmax(%x) : f32[b, 64]\n"
                       "%q = tanh(%p) : f32[b, 64]\n"
                       "%r = softmax(%q) : f32[b, 64]\n",
         .target = "r",
         .stage = TTI_STAGE_MEMORY,
         .program = "    0 cpu:0    %0 = feed() : f32[8, 64] at 0  'x'  (read by p)\n"
                    "    1 cpu:0    %1 = softmax(%0) : f32[8, 64] in %0  'p'  (first device with "
                    "the kernel)\n"
                    "    2 cpu:0    %2 = tanh(%1) : f32[8, 64] in %0  'q'  (input p)\n"
                    "    3 cpu:0    %3 = softmax(%2) : f32[8, 64] in %0  'r'  (input q)\n"},
        {.name = "read later",
         .graph = HEAD "%x = feed {shape=[b, 64]}\n"
                       "%p = softmax(%x) : f32[b, 64]\n"
                       "%q = softmax(%p) : f32[b, 64]\n"
                       "%r = mul(%q, %x) : f32[b, 64]\n",
         .target = "r",
         .stage = TTI_STAGE_MEMORY,
         .program = "    0 cpu:0    %0 = feed() : f32[8, 64] at 0  'x'  (read by p)\n"
                    "    1 cpu:0    %1 = softmax(%0) : f32[8, 64] at 2048  'p'  (first device with "
                    "the kernel)\n"
                    "    2 cpu:0    %2 = softmax(%1) : f32[8, 64] in %1  'q'  (input p)\n"
                    "    3 cpu:0    %3 = mul(%2, %0) : f32[8, 64] in %1  'r'  (input q)\n"},
    };
    check_cases(cases, TTI_COUNT(cases));
}

// ---- recompute: on a graph with gradients ----------------------------------------------------

// Of three values that the backward part reads, two are computed again, right before it.
TEST(recompute_copies_activations_to_where_they_are_read)
{
    tt_ctx *ctx = test_ctx();
    tt_graph *g = tt_graph_new(ctx);
    tt_tensor *x = tt_feed(g, .shape = TT_SHAPE(TT_BATCH, 4), .name = "x");
    tt_tensor *a = tt_tanh(g, x), *b = tt_tanh(g, a), *loss = tt_sum(g, tt_square(g, b)), *dx;
    CHECK_OK(tt_grad(g, loss, NULL, 1, &x, &dx));
    static const char *const programs[] = {
        // kept: every value once
        "tanh(%0) : f32[8, 4]  'tanh'\n",
        // recomputed: the copy comes after the sum of the forward part
        "(recomputed)\n",
    };
    int64_t nodes[2] = {0};
    for (int i = 0; i < 2; i++) {
        tt_session *s = tt_session_new(g, .recompute = i == 0 ? NULL : "all");
        tti_stage_watch w = {.show = TTI_STAGE_RECOMPUTE};
        tt_plan_opts opts = {.opts_size = sizeof(opts), .targets = &dx, .n_targets = 1, .rows = 8};
        tti_plan *p;
        CHECK_OK(tti_session_look(s, &opts, NULL, &w, &p));
        CHECK(w.text != NULL);
        CHECK_HAS(w.text, programs[i]);
        CHECK_INT(command_count(w.text, "(recomputed)"), i == 0 ? 0 : 1);
        if (i == 1) // the copy stands behind what the forward part ends with
            CHECK(strstr(w.text, "(recomputed)") > strstr(w.text, "tanh(%1)"));
        nodes[i] = w.after[TTI_STAGE_RECOMPUTE].nodes;
        CHECK_INT(w.after[TTI_STAGE_BUILD].nodes, nodes[0]);
        tti_plan_free(p);
        tti_stage_watch_deinit(ctx, &w);
    }
    CHECK_INT(nodes[1], nodes[0] + 1);
    CHECK_OK(tt_close(ctx));
}

// ---- numbers ---------------------------------------------------------------------------------

TEST(stages_are_counted_before_and_after)
{
    static const stage_case step = {.name = "central",
                                    .graph = STEP,
                                    .target = "u",
                                    .stage = TTI_STAGE_EMIT,
                                    .strategy = "central",
                                    .devices = 2};
    tti_stage_watch w;
    tt_ctx *ctx;
    watch(&step, &w, &ctx);
    CHECK_INT(w.graph_nodes, 6);
    CHECK_INT(w.graph_tensors, 6);
    static const int64_t nodes[TTI_N_STAGES] = {6, 6, 11, 11, 12, 12, 12, 12, 12, 12};
    for (int i = 0; i < TTI_N_STAGES; i++) {
        const tti_stage_counts *c = &w.after[i];
        CHECK(c->is_done);
        CHECK_INT(c->nodes, nodes[i]);
        CHECK_INT(c->values, nodes[i]); // each makes one
        CHECK_INT(c->transfers, i >= TTI_STAGE_CUT ? 1 : 0);
        CHECK_INT((int64_t)c->transferred, i >= TTI_STAGE_CUT ? 4 * 2 * 4 : 0);
        CHECK_INT(c->sums, i >= TTI_STAGE_SPREAD ? 1 : 0);
        CHECK((c->arenas > 0) == (i >= TTI_STAGE_MEMORY));
        CHECK_INT(c->entries, i == TTI_STAGE_EMIT ? 11 : 0); // all but the variable
        CHECK(c->ns >= 0);
    }
    // x, h, a, g of 8 rows as built; a gradient of each lane and their sum once spread.
    CHECK_INT((int64_t)w.after[TTI_STAGE_BUILD].bytes, 8 * 4 * 4 + 2 * 8 * 2 * 4 + 4 * 2 * 4);
    CHECK_INT((int64_t)w.after[TTI_STAGE_SPREAD].bytes, 8 * 4 * 4 + 2 * 8 * 2 * 4 + 3 * 4 * 2 * 4);
    tti_stage_watch_deinit(ctx, &w);
    CHECK_OK(tt_close(ctx));
}

TEST(stages_are_found_by_name)
{
    tt_ctx *ctx = test_ctx();
    for (int i = 0; i < TTI_N_STAGES; i++) {
        tti_stage s;
        CHECK_OK(tti_stage_find(ctx, tti_stage_name((tti_stage)i), &s));
        CHECK_INT((int)s, i);
    }
    tti_stage s = TTI_STAGE_CUT;
    CHECK(tti_stage_find(ctx, "memroy", &s) == TT_EINVAL);
    CHECK_INT((int)s, TTI_STAGE_CUT);
    CHECK_STR(tt_last_error(ctx).message,
              "unknown stage 'memroy' (did you mean 'memory'?); the stages are build, recompute, "
              "spread, place, cut, chain, fuse, order, memory, emit");
    CHECK(tt_close(ctx) == TT_EINVAL);
}

TEST(the_command_shows_stages)
{
    command_write("small.yaml", command_small_job);
    command_ok("plan small.yaml --stages --strategy mirrored --devices cpu:0*2");
    for (int i = 0; i < TTI_N_STAGES; i++) {
        char row[32];
        snprintf(row, sizeof(row), "\n%-10s ", tti_stage_name((tti_stage)i));
        CHECK_INT(command_count(command_out, row), 1);
    }
    CHECK(strstr(command_out, "the program after") == NULL);
    CHECK(strstr(command_out, "reason") == NULL); // not the plan
    command_ok("plan small.yaml --stage order");
    CHECK_HAS(command_out, "\nthe program after order\n");
    CHECK_HAS(command_out, " = variable() : f32[");
    command_ok("plan small.yaml --stage cut --json");
    json_t *o = json_loads(command_out, 0, NULL);
    CHECK(json_array_size(json_object_get(o, "stages")) == TTI_N_STAGES);
    const json_t *build = json_array_get(json_object_get(o, "stages"), 0);
    const json_t *next = json_array_get(json_object_get(o, "stages"), 1);
    CHECK_INT(json_integer_value(json_object_get(next, "nodes_in")),
              json_integer_value(json_object_get(build, "nodes")));
    const json_t *program = json_object_get(o, "program");
    CHECK_STR(json_string_value(json_object_get(program, "after")), "cut");
    CHECK(json_string_length(json_object_get(program, "text")) > 100);
    json_decref(o);
    CHECK_INT(command_run("plan small.yaml --stage cutt"), 3);
    CHECK_HAS(command_err, "unknown stage 'cutt' (did you mean 'cut'?); the stages are build,");
    // A plan for machines that are not here, and a graph.
    command_ok("plan small.yaml --stages --strategy mirrored --topology 2x2");
    command_write("g.txt", STEP);
    command_ok("plan g.txt --rows 8 --lanes 2 --stage build");
    CHECK_HAS(command_out, "build             6 -> 6               6 -> 6              288 B");
}
