/*
 * zeros.c - a number that is given is that number, zero too, or it is refused by name: every
 * numeric row of every registry is tried with 0 and with its bounds, down to what is built of it.
 */
#include "../jobs.h"
#include "data/data.h"
#include "graph/graph.h"
#include "job/job.h"
#include "model/layer.h"
#include "train/compile.h"
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

static bool is_number(const tt_option *row)
{
    return row->type == TT_OPT_INT || row->type == TT_OPT_FLOAT || row->type == TT_OPT_INT32 ||
           row->type == TT_OPT_SIZE;
}

static double number_of(const tt_option *row, const void *from)
{
    const char *at = (const char *)from + row->offset;
    double f;
    int64_t i;
    int small;
    size_t size;
    switch (row->type) {
    case TT_OPT_FLOAT:
        memcpy(&f, at, sizeof(f));
        return f;
    case TT_OPT_INT:
        memcpy(&i, at, sizeof(i));
        return (double)i;
    case TT_OPT_INT32:
        memcpy(&small, at, sizeof(small));
        return small;
    default:
        memcpy(&size, at, sizeof(size));
        return (double)size;
    }
}

// ---- rows ------------------------------------------------------------------------------------

// Every table of rows: fn is called with its name.
static void each_table(void (*fn)(const char *where, const tt_option *rows))
{
    for (int i = 0; tti_layer_at(i) != NULL; i++)
        fn(tti_layer_at(i)->name, tti_layer_at(i)->options);
    for (int i = 0; tt_source_at(NULL, i) != NULL; i++)
        fn(tt_source_at(NULL, i)->name, tt_source_at(NULL, i)->options);
    for (int i = 0; tti_transform_at(i) != NULL; i++)
        fn(tti_transform_at(i)->name, tti_transform_at(i)->options);
    for (int i = 0; tti_optimizer_at(i) != NULL; i++)
        fn(tti_optimizer_at(i)->name, tti_optimizer_at(i)->options);
    for (int i = 0; tti_schedule_at(i) != NULL; i++)
        fn(tti_schedule_at(i)->name, tti_schedule_at(i)->options);
    fn("loss", tti_loss_options);
    fn("job", tti_job_top_rows);
    fn("data", tti_job_data_rows);
    fn("train", tti_job_train_rows);
    fn("early_stop", tti_job_early_stop_rows);
    fn("plateau", tti_job_plateau_rows);
    fn("checkpoint", tti_job_checkpoint_rows);
    fn("group", tti_job_group_rows);
    fn("distribute", tti_job_distribute_rows);
    fn("spread", tti_spread_rows);
}

static tt_ctx *ctx;
static int n_tried, n_taken;

// A job's record with this one value, as a struct.
static bool bind(const tt_option *rows, const tt_option *row, const char *text, char out[4096])
{
    tti_tree t = {.ctx = ctx};
    tti_item *record = tti_item_new(&t, TTI_MAP, (tti_place){0}), *value = NULL;
    bool is_taken = tti_value_item(&t, row, row->name, text, (tti_place){0}, &value) == TT_OK;
    CHECK(record != NULL);
    if (is_taken) {
        tti_item_add(record, row->name, (tti_place){0}, value);
        memset(out, 0, 4096);
        CHECK_OK(tti_bind(ctx, rows, record, out));
    }
    tt_clear_error(ctx);
    tti_tree_free(&t);
    return is_taken;
}

static void try_number(const char *where, const tt_option *rows, const tt_option *row, double x,
                       bool wanted)
{
    char text[64], opts[4096];
    snprintf(text, sizeof(text), row->type == TT_OPT_FLOAT ? "%.17g" : "%.0f", x);
    bool is_taken = bind(rows, row, text, opts);
    n_tried++;
    n_taken += is_taken;
    ck_assert_msg(is_taken == wanted, "%s.%s: %s is %s", where, row->name, text,
                  is_taken ? "taken" : "refused");
    if (!is_taken)
        return;
    double got = number_of(row, opts);
    double standard = row->value != NULL && row->type == TT_OPT_FLOAT ? atof(row->value) : 1;
    if (row->type == TT_OPT_FLOAT)
        got = tti_or_default(got, standard); // as what is built of it reads it
    ck_assert_msg(got == x, "%s.%s: %s became %g", where, row->name, text, got);
}

static void try_rows(const char *where, const tt_option *rows)
{
    for (const tt_option *row = rows; row != NULL && row->type != TT_OPT_END; row++) {
        bool bound = row->min != 0 || row->max != 0;
        if (!is_number(row))
            continue;
        try_number(where, rows, row, 0, !bound || (row->min <= 0 && row->max >= 0));
        if (!bound)
            continue;
        bool is_whole = row->type != TT_OPT_FLOAT;
        try_number(where, rows, row, row->min, true);
        try_number(where, rows, row, row->max, true);
        if (row->type != TT_OPT_SIZE)
            try_number(where, rows, row, is_whole ? row->min - 1 : row->min - fabs(row->min) - 1,
                       false);
        if (row->max < 1e15)
            try_number(where, rows, row, is_whole ? row->max + 1 : row->max * 1.5, false);
    }
}

TEST(every_numeric_row_takes_zero_and_its_bounds)
{
    ctx = test_ctx();
    each_table(try_rows);
    ck_assert_msg(n_tried > 500 && n_taken > 300, "only %d values, %d taken", n_tried, n_taken);
    CHECK_OK(tt_close(ctx));
}

// ---- what is built ---------------------------------------------------------------------------

// Every op attribute of this name is zero; how many there are.
static int count_zeros(const tt_graph *g, const char *where, const char *name)
{
    int n = 0;
    for (int64_t i = 0; g != NULL && i < g->n_nodes; i++) {
        const tt_node *node = g->nodes[i];
        for (const tt_option *row = node->op->attrs; row != NULL && row->type != TT_OPT_END; row++)
            if (is_number(row) && strcmp(row->name, name) == 0) {
                double x = number_of(row, node->attr);
                ck_assert_msg(x == 0, "%s: %s is %g in %s", where, name, x, node->op->name);
                ck_assert_msg(!signbit(x), "%s: %s is -0 in %s", where, name, node->op->name);
                n++;
            }
    }
    return n;
}

// Inputs and what must be given; the first that a kind can be built with is taken.
static const char *const inputs[] = {"{x: {shape: [8, 8, 4]}}", "{x: {shape: [6, 8]}}",
                                     "{x: {shape: [6], dtype: i32}}", "{x: {shape: [12]}}"};
static const struct {
    const char *row, *value;
} needed[] = {{"units", "4"},  {"filters", "4"}, {"heads", "2"},      {"vocab", "16"},
              {"width", "8"},  {"shape", "-1"},  {"order", "[1, 0]"}, {"context", "6"},
              {"hidden", "4"}, {"times", "2"},   {"size", "2"},       {"pad", "1"}};

static void layer_yaml(char *out, size_t size, const tti_layer_def *def, const char *input,
                       const char *zero)
{
    int n = snprintf(out, size, "model:\n  inputs: %s\n  layers:\n    - %s: {", input, def->name);
    const char *comma = "";
    for (const tt_option *row = def->options; row != NULL && row->type != TT_OPT_END; row++) {
        const char *value = zero != NULL && strcmp(row->name, zero) == 0 ? "0" : NULL;
        for (size_t i = 0; i < sizeof(needed) / sizeof(needed[0]); i++)
            if (row->value == NULL && value == NULL && strcmp(row->name, needed[i].row) == 0)
                value = needed[i].value;
        if (value != NULL) {
            n += snprintf(out + n, size - (size_t)n, "%s%s: %s", comma, row->name, value);
            comma = ", ";
        }
    }
    snprintf(out + n, size - (size_t)n, "}\n");
}

TEST(layers_have_the_zeros_they_are_given)
{
    test_need_yaml();
    int n_built = 0, n_attrs = 0;
    for (int i = 0; tti_layer_at(i) != NULL; i++) {
        const tti_layer_def *def = tti_layer_at(i);
        for (const tt_option *row = def->options; row != NULL && row->type != TT_OPT_END; row++) {
            bool zero_fits = (row->min == 0 && row->max == 0) || (row->min <= 0 && row->max >= 0);
            if (!is_number(row) || !zero_fits)
                continue;
            for (size_t k = 0; k < sizeof(inputs) / sizeof(inputs[0]); k++) {
                char yaml[512], where[128];
                snprintf(where, sizeof(where), "%s.%s", def->name, row->name);
                layer_yaml(yaml, sizeof(yaml), def, inputs[k], NULL);
                job_built plain = job_build(yaml);
                bool fits = plain.status == TT_OK;
                job_close(&plain);
                if (!fits)
                    continue;
                layer_yaml(yaml, sizeof(yaml), def, inputs[k], row->name);
                job_built b = job_build(yaml);
                if (b.status != TT_OK) {
                    CHECK_MESSAGE(b.ctx, row->name); // refused by name
                } else {
                    const tt_model *m = b.parts.model;
                    const tti_layer *l = m->layers[m->n_layers - 1];
                    if (l->def == def) {
                        double x = number_of(row, l->opts);
                        ck_assert_msg(x == 0, "%s: the layer has %g", where, x);
                    }
                    if (atof(row->value) != 0) // else zero may stand for something else
                        n_attrs += count_zeros(m->graph, where, row->name);
                    n_built++;
                }
                job_close(&b);
                break;
            }
        }
    }
    ck_assert_msg(n_built >= 20 && n_attrs >= 3, "%d built, %d attributes", n_built, n_attrs);
}

// Running statistics are in the training graph alone.
TEST(running_statistics_may_keep_nothing)
{
    job_built b = job_build_ok("data: {train: {digits: 16}}\n"
                               "model: [flatten, dense: 10, batch_norm: {momentum: 0, eps: 0}]\n"
                               "train: {loss: cross_entropy, batch: 8}\n");
    const tt_graph *g = b.parts.model->step->graph;
    CHECK_INT(count_zeros(g, "batch_norm", "momentum"), 4 + 4); // guarded or not, and of sgd
    CHECK(count_zeros(g, "batch_norm", "eps") >= 1);
    job_close(&b);
}

static job_built train_with(const char *loss, const char *optimizer)
{
    char yaml[512];
    snprintf(yaml, sizeof(yaml),
             "data: {train: {digits: 16}}\nmodel: [flatten, dense: 10]\n"
             "train: {loss: %s, optimizer: %s, steps: 4, batch: 8}\n",
             loss, optimizer);
    return job_build(yaml);
}

TEST(optimizers_have_the_zeros_they_are_given)
{
    test_need_yaml();
    int n_attrs = 0, n = 0;
    for (int i = 0; tti_optimizer_at(i) != NULL; i++) {
        const tti_optimizer_def *def = tti_optimizer_at(i);
        for (const tt_option *row = def->options; row->type != TT_OPT_END; row++) {
            char text[128], where[64];
            if (!is_number(row) || row->min > 0) // zero is out of bounds, which is tried elsewhere
                continue;
            snprintf(where, sizeof(where), "%s.%s", def->name, row->name);
            snprintf(text, sizeof(text), "{%s: {%s: 0}}", def->name, row->name);
            job_built b = train_with("cross_entropy", text);
            ck_assert_msg(b.status == TT_OK, "%s: %s", where, tt_last_error(b.ctx).message);
            CHECK_OK(tti_compile_again(b.parts.model, true, false, false)); // as a fit may do
            double x = number_of(row, &b.parts.model->step->rule.o);
            ck_assert_msg(x == 0 && !signbit(x), "%s: the optimizer has %g", where, x);
            if (strcmp(row->name, "initial") != 0)
                n_attrs += count_zeros(b.parts.model->step->graph, where, row->name);
            job_close(&b);
            n++;
        }
    }
    ck_assert_msg(n > 40 && n_attrs > 20, "%d rows, %d attributes", n, n_attrs);
}

TEST(schedules_end_at_the_zero_they_are_given)
{
    test_need_yaml();
    static const char *const kinds[] = {"cosine", "linear", "one_cycle"};
    for (int i = 0; i < 3; i++) {
        char text[128];
        snprintf(text, sizeof(text), "{sgd: {schedule: {%s: {final: 0, steps: 8}}}}", kinds[i]);
        job_built b = train_with("cross_entropy", text);
        CHECK_OK(b.status);
        const tt_optimizer *o = &b.parts.model->step->rule.o;
        ck_assert_msg(tt_schedule_at(o->schedule, 8, 8) == 0, "%s ends at %g", kinds[i],
                      tt_schedule_at(o->schedule, 8, 8));
        job_close(&b);
    }
    tt_schedule *s = tt_one_cycle(.steps = 8, .final = TT_ZERO), *other = tt_one_cycle(.steps = 8);
    CHECK(tt_schedule_at(s, 8, 8) == 0);
    CHECK_NEAR(tt_schedule_at(other, 8, 8), 1e-4, 1e-12);
}

TEST(losses_have_the_zeros_they_are_given)
{
    job_built b = train_with("{cross_entropy: {weight: 0, ignore: 0, smoothing: 0}}", "sgd");
    CHECK_OK(b.status);
    const tt_loss *l = &b.parts.model->step->losses[0];
    ck_assert_msg(l->weight == 0, "the weight is %g", l->weight);
    CHECK(l->has_ignore && l->ignore == 0 && l->smoothing == 0);
    tt_hash before, after;
    CHECK_OK(tt_model_hash(b.parts.model, &before));
    CHECK_OK(tt_fit_with(b.parts.model, b.parts.train, b.parts.fit));
    CHECK_OK(tt_model_hash(b.parts.model, &after));
    CHECK(before.low == after.low && before.high == after.high); // nothing to learn from
    job_close(&b);
    b = train_with("{cross_entropy: {has_ignore: false, ignore: 0}}", "sgd");
    CHECK_OK(b.status);
    CHECK(!b.parts.model->step->losses[0].has_ignore);
    job_close(&b);
}

TEST(programs_ask_for_zero_by_name)
{
    tt_ctx *c = test_ctx();
    tt_model *m = tt_sequential(c, .input = {4});
    tt_layer_dense(m, .units = 3);
    tt_layer_batch_norm(m, .momentum = TT_ZERO, .eps = TT_ZERO);
    tt_layer_layer_norm(m, .eps = TT_ZERO);
    CHECK_OK(tt_compile(m, .losses = {tt_loss(.kind = TT_MSE, .weight = TT_ZERO)},
                        .optimizer = tt_adamw(.lr = TT_ZERO, .beta1 = TT_ZERO, .eps = TT_ZERO,
                                              .weight_decay = TT_ZERO)));
    CHECK(m->step->losses[0].weight == 0);
    const tt_optimizer *o = &m->step->rule.o;
    CHECK(o->lr == 0 && o->beta1 == 0 && o->eps == 0 && o->weight_decay == 0);
    CHECK(count_zeros(m->step->graph, "a program", "eps") >= 4);
    CHECK(count_zeros(m->step->graph, "a program", "momentum") >= 2);
    CHECK_OK(tt_close(c));
}

TEST(a_scale_of_zero_is_refused)
{
    job_build_fails("data: {train: {digits: 16}, transform: [normalise: {scale: 0}]}\n"
                    "model: [flatten, dense: 10]\n",
                    "j.yaml:1:52: data.transform.0: normalise: mean is 0 and scale is 0; both "
                    "must be finite and scale not 0");
}
