/*
 * verify.c - the checker of plans: plans of every layout hold its rules, and a plan that is changed
 * in any of many ways (verify_changes.h) breaks the rule that the change is against.
 */
#include "plan/verify/verify.h"
#include "../test.h"
#include "device/device.h"
#include "fit_models.h"
#include "strategy/strategy.h"
#include "train/compile.h"
#include "verify_changes.h"
#include <stdio.h>
#include <string.h>

typedef struct layout {
    const char *strategy;
    int hosts, devices;
    const tt_spread *spread;
} layout;

static const layout layouts[] = {
    {"single", 1, 1, NULL},
    {"mirrored", 1, 4, tt_spread(.update = TT_UPDATE_SHARD)},
    {"mirrored", 1, 3, tt_spread(.update = TT_UPDATE_EACH)},
    {"mirrored", 2, 2, tt_spread(.update = TT_UPDATE_SHARD)},
    {"mirrored", 2, 4, tt_spread(.update = TT_UPDATE_SHARD)},
    {"mirrored", 4, 1, NULL},
    {"central", 1, 3, NULL},
    {"central", 3, 1, NULL},
    {"pipeline", 1, 3, NULL},
    {"pipeline", 2, 2, tt_spread(.replicas = 2)},
};

typedef struct fixture {
    tt_ctx *ctx;
    tt_model *model;
    tti_topology top;
    tti_plan *plan;
} fixture;

// A plan of a model's training step, to be looked at.
static void open_fixture(fixture *f, const layout *l, fit_kind kind)
{
    *f = (fixture){.ctx = tt_open(.strategy = l->strategy, .spread = l->spread,
                                  .on_event = test_ignore_event)};
    tti_mesh mesh;
    f->model = fit_model(f->ctx, kind);
    CHECK_OK(tti_topology_make(f->ctx, &f->ctx->top, l->hosts, l->devices, &f->top));
    CHECK_OK(f->top.strategy->mesh(&f->top, f->model->step->graph, &mesh));
    const tti_step *s = f->model->step;
    tt_tensor **list = tti_step_targets(f->model);
    tti_plan_request r = {.targets = list,
                          .n_targets = s->n_fetches + s->n_targets,
                          .n_fetched = s->n_fetches,
                          .rows = 48,
                          .top = &f->top,
                          .mesh = &mesh,
                          .dry_run = true};
    CHECK_OK(tti_plan_new(s->graph, &r, &f->plan));
    tti_free(f->ctx, list);
}

static void close_fixture(fixture *f)
{
    tti_plan_free(f->plan);
    tti_topology_free(f->ctx, &f->top);
    CHECK_OK(tt_close(f->ctx));
}

TEST(plans_of_every_layout_hold_the_rules)
{
    for (int i = 0; i < TTI_COUNT(layouts) * FIT_N_KINDS; i++) {
        fixture f;
        open_fixture(&f, &layouts[i / FIT_N_KINDS], (fit_kind)(i % FIT_N_KINDS));
        CHECK_OK(tti_plan_verify(f.plan, TTI_STAGE_EMIT));
        close_fixture(&f);
    }
}

// ---- changes ---------------------------------------------------------------------------------

// Is the rule that a message names one of these?
static bool is_named(const char *rules, const char *message)
{
    static const char begin[] = "wrong plan: ";
    const char *at = strstr(message, begin);
    char word[32] = "nothing";
    if (at != NULL)
        snprintf(word, sizeof(word), "%.*s", (int)strcspn(at + strlen(begin), ":"),
                 at + strlen(begin));
    return strstr(rules, word) != NULL;
}

#define PER_LAYOUT 6

// Makes changes of a class to plans of every layout.
static void run_change(const test_entry *e)
{
    const plan_change *c = e->arg;
    int made = 0;
    for (int i = 0; i < TTI_COUNT(layouts) * PER_LAYOUT; i++) {
        fixture f;
        int n = i % PER_LAYOUT;
        open_fixture(&f, &layouts[i / PER_LAYOUT], n % 2 == 0 ? FIT_MLP : FIT_CNN);
        if (c->make(f.plan, n * 3)) {
            tt_status st = tti_plan_verify(f.plan, TTI_STAGE_EMIT);
            const char *text = tt_last_error(f.ctx).message;
            ck_assert_msg(st == TT_EASSERT && is_named(c->rules, text),
                          "%s, layout %d, number %d: status %d, '%s'", c->name, i / PER_LAYOUT, n,
                          st, text);
            tt_clear_error(f.ctx);
            made++;
        }
        close_fixture(&f);
    }
    ck_assert_msg(made >= 12, "only %d such changes could be made", made);
}

#define MOST 64
static test_entry entries[MOST];
static char names[MOST][96];

static int register_list(const plan_change *list, int at)
{
    for (int i = 0; list[i].name != NULL && at < MOST; i++, at++) {
        int n = snprintf(names[at], sizeof(names[at]), "plan_change_%s", list[i].name);
        for (int k = 0; k < n; k++)
            if (names[at][k] == ' ' || names[at][k] == '\'')
                names[at][k] = '_';
        entries[at] =
            (test_entry){.file = __FILE__, .name = names[at], .run = run_change, .arg = &list[i]};
        test_register(&entries[at]);
    }
    return at;
}

__attribute__((constructor)) static void register_changes(void)
{
    int n = register_list(plan_changes, 0);
    (void)register_list(plan_layout_changes, n);
}
