/*
 * catalog.c - the catalogue: the tables of job files, strategies and ops as lists of entries with
 * options. It has no rows of its own; a group is found by where a job names its kinds.
 */
#include "job/catalog.h"
#include "strategy/strategy.h"
#include <string.h>

// The groups whose kinds a job chooses: where it does. "*" is any kind or name.
static const struct {
    const char *name, *path;
} groups[TT_N_CATALOG_GROUPS] = {
    [TT_CATALOG_SOURCE] = {"sources", "data.train"},
    [TT_CATALOG_TEST_SOURCE] = {"test_sources", "data.validate"},
    [TT_CATALOG_TRANSFORM] = {"transforms", "data.transform"},
    [TT_CATALOG_LAYER] = {"layers", "model"},
    [TT_CATALOG_LOSS] = {"losses", "train.loss"},
    [TT_CATALOG_METRIC] = {"metrics", "train.metrics"},
    [TT_CATALOG_OPTIMIZER] = {"optimizers", "train.optimizer"},
    [TT_CATALOG_SCHEDULE] = {"schedules", "train.optimizer.*.schedule"},
    [TT_CATALOG_STRATEGY] = {"strategies", NULL},
    [TT_CATALOG_OP] = {"ops", NULL},
    [TT_CATALOG_SECTION] = {"sections", NULL},
};

// The maps with fixed keys, by their paths; "job" is the whole file.
static const char *const sections[] = {"job",
                                       "data",
                                       "model",
                                       "model.inputs.*",
                                       "train",
                                       "train.optimizer.*.groups",
                                       "train.early_stop",
                                       "train.plateau",
                                       "init",
                                       "checkpoint",
                                       "distribute",
                                       "distribute.pins.*",
                                       "output"};

const char *tt_catalog_group_name(tt_catalog_group group)
{
    return (unsigned)group < TT_N_CATALOG_GROUPS ? groups[group].name : NULL;
}

// ---- entries ---------------------------------------------------------------------------------

// The choice that lists and named maps are of; NULL: they are of a record.
static const tti_schema *choice_of(const tti_schema *s)
{
    while (s != NULL && s->form != TTI_CHOICE)
        s = s->form == TTI_RECORD ? NULL : s->item;
    return s;
}

// The record that stands there: of a list its other form, if it has one.
static const tti_schema *record_of(const tti_schema *s)
{
    while (s != NULL && s->form != TTI_RECORD)
        s = s->form == TTI_CHOICE ? NULL : s->alt != NULL ? s->alt : s->item;
    return s;
}

static bool strategy_takes(const char *kind, const char *row)
{
    return tti_strategy_uses(tti_strategy_find(kind), row);
}

static bool strategy_at(int i, tti_schema *out)
{
    const tti_strategy *s = tti_strategy_at(i);
    if (s == NULL)
        return false;
    *out = (tti_schema){.form = TTI_RECORD,
                        .name = s->name,
                        .help = s->help,
                        .rows = tti_spread_rows,
                        .takes = strategy_takes};
    return true;
}

static bool op_at(tt_ctx *ctx, int i, tti_schema *out)
{
    const tt_op *op = tt_op_at(ctx, i);
    if (op == NULL)
        return false;
    *out = (tti_schema){.form = TTI_RECORD, .name = op->name, .help = op->help, .rows = op->attrs};
    return true;
}

static bool section_at(tt_ctx *ctx, int i, tti_schema *out)
{
    tti_schema at = tti_job_schema;
    if (i < 0 || i >= TTI_COUNT(sections) || (i > 0 && !tti_schema_at(ctx, sections[i], &at)))
        return false;
    const tti_schema *record = record_of(&at);
    if (record == NULL)
        return false;
    const char *help = record->help != NULL ? record->help : at.help;
    *out = *record;
    out->name = sections[i];
    out->help = help;
    return true;
}

bool tti_catalog_at(tt_ctx *ctx, tt_catalog_group group, int i, tti_schema *out)
{
    tti_schema at;
    if ((unsigned)group >= TT_N_CATALOG_GROUPS || i < 0)
        return false;
    if (group == TT_CATALOG_STRATEGY)
        return strategy_at(i, out);
    if (group == TT_CATALOG_OP)
        return op_at(ctx, i, out);
    if (group == TT_CATALOG_SECTION)
        return section_at(ctx, i, out);
    if (!tti_schema_at(ctx, groups[group].path, &at))
        return false;
    const tti_schema *choice = choice_of(&at);
    return choice != NULL && choice->at(ctx, i, out);
}

// ---- options ---------------------------------------------------------------------------------

tt_catalog_option tti_catalog_row(const tti_schema *s, const tt_option *row)
{
    tt_catalog_option o = {.name = row->name,
                           .help = row->help != NULL ? row->help : "",
                           .form = TT_CATALOG_VALUE,
                           .type = tti_option_type(row->type),
                           .value = tti_schema_default(s, row),
                           .has_bounds = row->min != 0 || row->max != 0,
                           .min = row->min,
                           .max = row->max,
                           .choices = row->names,
                           .group = -1};
    o.is_from_data = o.value == NULL && s->later != NULL && strcmp(s->later, row->name) == 0;
    o.is_required = o.value == NULL && !o.is_from_data;
    return o;
}

// The group with this choice; -1: there is none.
static int group_of(tt_ctx *ctx, const tti_schema *choice)
{
    tti_schema at;
    for (int g = 0; g < TT_N_CATALOG_GROUPS; g++) {
        if (groups[g].path == NULL || !tti_schema_at(ctx, groups[g].path, &at))
            continue;
        const tti_schema *other = choice_of(&at);
        if (other != NULL && other->at == choice->at)
            return g;
    }
    return -1;
}

static const char *section_of(tt_ctx *ctx, const tti_schema *record)
{
    tti_schema at;
    for (int i = 0; section_at(ctx, i, &at); i++)
        if (at.rows == record->rows && at.keys == record->keys)
            return sections[i];
    return NULL;
}

static tt_catalog_option key_option(tt_ctx *ctx, const tti_key *key)
{
    static const tt_catalog_form forms[] = {[TTI_RECORD] = TT_CATALOG_MAP,
                                            [TTI_CHOICE] = TT_CATALOG_CHOICE,
                                            [TTI_LIST_OF] = TT_CATALOG_LIST,
                                            [TTI_NAMED] = TT_CATALOG_NAMED};
    const tti_schema *s = key->schema, *choice = choice_of(s), *record = record_of(s);
    return (tt_catalog_option){.name = key->name,
                               .help = s->help != NULL ? s->help : "",
                               .form = forms[s->form],
                               .value = key->value,
                               .group = choice != NULL ? group_of(ctx, choice) : -1,
                               .section = record != NULL ? section_of(ctx, record) : NULL};
}

bool tti_catalog_option(tt_ctx *ctx, const tti_schema *s, int k, tt_catalog_option *out)
{
    const tt_option *const both[] = {s->rows, s->more};
    if (k < 0)
        return false;
    for (int i = 0; i < 2; i++)
        for (const tt_option *row = both[i]; row != NULL && row->type != TT_OPT_END; row++)
            if (!tti_schema_hides(s, row) && k-- == 0) {
                *out = tti_catalog_row(s, row);
                return true;
            }
    for (const tti_key *key = s->keys; key != NULL && key->name != NULL; key++)
        if (k-- == 0) {
            *out = key_option(ctx, key);
            return true;
        }
    return false;
}

// ---- the public calls ------------------------------------------------------------------------

static tt_status entry_at(tt_ctx *ctx, tt_catalog_group group, int i, tti_schema *out)
{
    if (ctx == NULL)
        return TT_EINVAL;
    if ((unsigned)group >= TT_N_CATALOG_GROUPS)
        return TT_FAIL(ctx, TT_EINVAL, "catalog: there is no group %d; the last is %d", (int)group,
                       TT_N_CATALOG_GROUPS - 1);
    if (!tti_catalog_at(ctx, group, i, out))
        return TT_FAIL(ctx, TT_EINVAL, "catalog: %s has %d entries, counted from 0; there is no %d",
                       groups[group].name, tt_catalog_count(ctx, group), i);
    return TT_OK;
}

int tt_catalog_count(tt_ctx *ctx, tt_catalog_group group)
{
    tti_schema s;
    int n = 0;
    while (ctx != NULL && tti_catalog_at(ctx, group, n, &s))
        n++;
    return n;
}

tt_status tt_catalog_get_sized(tt_ctx *ctx, tt_catalog_group group, int i, tt_catalog_entry *out,
                               size_t size)
{
    tti_schema s;
    tt_catalog_option o;
    TT_TRY(entry_at(ctx, group, i, &s));
    if (out == NULL)
        return TT_FAIL(ctx, TT_EINVAL, "catalog: out is missing");
    tt_catalog_entry e = {.name = s.name, .help = s.help != NULL ? s.help : "", .main = s.main};
    while (tti_catalog_option(ctx, &s, e.n_options, &o))
        e.n_options++;
    tti_out_copy(out, size, &e, sizeof(e));
    return TT_OK;
}

tt_status tt_catalog_option_sized(tt_ctx *ctx, tt_catalog_group group, int i, int k,
                                  tt_catalog_option *out, size_t size)
{
    tti_schema s;
    tt_catalog_option o;
    TT_TRY(entry_at(ctx, group, i, &s));
    if (out == NULL)
        return TT_FAIL(ctx, TT_EINVAL, "catalog: out is missing");
    if (!tti_catalog_option(ctx, &s, k, &o))
        return TT_FAIL(ctx, TT_EINVAL, "catalog: %s '%s' has no option number %d",
                       groups[group].name, s.name, k);
    tti_out_copy(out, size, &o, sizeof(o));
    return TT_OK;
}

char *tt_catalog_json(tt_ctx *ctx)
{
    tti_text t = {.ctx = ctx};
    if (tti_is_stuck(ctx))
        return NULL;
    tti_catalog_json(ctx, &t);
    tti_text_add(&t, "\n}\n");
    return tti_text_take(&t);
}
