/*
 * catalog.c - the catalogue against the tables that job files are checked by: everything that a job
 * may name is listed, with the rows that the parser has; in C, as JSON, and by the command.
 */
#include "job/catalog.h"
#include "../command.h"
#include "strategy/strategy.h"
#include "train/loss.h"
#include "train/optimizer.h"
#include <stdio.h>

// The number of an entry by name; -1: the group does not have it.
static int find(tt_ctx *ctx, tt_catalog_group group, const char *name)
{
    tt_catalog_entry e;
    for (int i = 0; i < tt_catalog_count(ctx, group); i++) {
        CHECK_OK(tt_catalog_get(ctx, group, i, &e));
        if (strcmp(e.name, name) == 0)
            return i;
    }
    return -1;
}

static bool find_option(tt_ctx *ctx, tt_catalog_group group, const char *entry, const char *name,
                        tt_catalog_option *out)
{
    tt_catalog_entry e;
    int i = find(ctx, group, entry);
    ck_assert_msg(i >= 0, "%s lacks '%s'", tt_catalog_group_name(group), entry);
    CHECK_OK(tt_catalog_get(ctx, group, i, &e));
    for (int k = 0; k < e.n_options; k++) {
        CHECK_OK(tt_catalog_option_get(ctx, group, i, k, out));
        if (strcmp(out->name, name) == 0)
            return true;
    }
    return false;
}

TEST(catalog_lists_every_kind)
{
    static const char *const layers[] = {
#define X(name) #name,
#include "model/layers.def"
    };
    static const char *const sources[] = {
#include "data/sources.def"
    };
    static const char *const transforms[] = {
#include "data/transforms.def"
#undef X
    };
    tt_ctx *ctx = test_ctx();
    for (int i = 0; i < TTI_COUNT(layers); i++)
        ck_assert_msg(find(ctx, TT_CATALOG_LAYER, layers[i]) >= 0, "%s", layers[i]);
    CHECK(find(ctx, TT_CATALOG_LAYER, "residual") >= 0);
    CHECK_INT(tt_catalog_count(ctx, TT_CATALOG_LAYER), TTI_COUNT(layers) + 1);
    for (int i = 0; i < TTI_COUNT(sources); i++) {
        bool is_named = strcmp(sources[i], "memory") != 0; // the arrays of a program
        CHECK((find(ctx, TT_CATALOG_SOURCE, sources[i]) >= 0) == is_named);
        CHECK((find(ctx, TT_CATALOG_TEST_SOURCE, sources[i]) >= 0) == is_named);
    }
    CHECK(find(ctx, TT_CATALOG_TEST_SOURCE, "split") >= 0);
    CHECK_INT(tt_catalog_count(ctx, TT_CATALOG_TRANSFORM), TTI_COUNT(transforms));
    for (int i = 0; i < TTI_COUNT(transforms); i++)
        CHECK(find(ctx, TT_CATALOG_TRANSFORM, transforms[i]) >= 0);
    for (int i = 0; tti_loss_at(i) >= 0; i++)
        CHECK(find(ctx, TT_CATALOG_LOSS, tti_loss_name((tt_loss_kind)tti_loss_at(i))) >= 0);
    CHECK(find(ctx, TT_CATALOG_LOSS, "msle") >= 0 && find(ctx, TT_CATALOG_LOSS, "custom") < 0);
    for (int i = 0; tti_metric_at(i) != NULL; i++)
        CHECK(find(ctx, TT_CATALOG_METRIC, tti_metric_at(i)->name) >= 0);
    for (int i = 0; tti_optimizer_at(i) != NULL; i++)
        CHECK(find(ctx, TT_CATALOG_OPTIMIZER, tti_optimizer_at(i)->name) >= 0);
    for (int i = 0; tti_schedule_at(i) != NULL; i++)
        CHECK(find(ctx, TT_CATALOG_SCHEDULE, tti_schedule_at(i)->name) >= 0);
    for (int i = 0; tti_strategy_at(i) != NULL; i++)
        CHECK(find(ctx, TT_CATALOG_STRATEGY, tti_strategy_at(i)->name) >= 0);
    for (int i = 0; tt_op_at(ctx, i) != NULL; i++)
        CHECK_INT(find(ctx, TT_CATALOG_OP, tt_op_at(ctx, i)->name), i);
    CHECK_OK(tt_close(ctx));
}

TEST(catalog_helps_with_every_kind)
{
    tt_catalog_entry e;
    tt_catalog_option o;
    tt_ctx *ctx = test_ctx();
    for (int g = 0; g < TT_N_CATALOG_GROUPS; g++)
        for (int i = 0; i < tt_catalog_count(ctx, (tt_catalog_group)g); i++) {
            CHECK_OK(tt_catalog_get(ctx, (tt_catalog_group)g, i, &e));
            const char *group = tt_catalog_group_name((tt_catalog_group)g);
            ck_assert_msg(e.help[0] != '\0' || g == TT_CATALOG_SECTION, "%s %s", group, e.name);
            ck_assert_msg(strchr(e.help, '\n') == NULL, "%s %s: %s", group, e.name, e.help);
            for (int k = 0; k < e.n_options; k++) {
                CHECK_OK(tt_catalog_option_get(ctx, (tt_catalog_group)g, i, k, &o));
                ck_assert_msg(o.help[0] != '\0' || g == TT_CATALOG_OP, "%s %s.%s", group, e.name,
                              o.name);
                CHECK((o.type != NULL) == (o.form == TT_CATALOG_VALUE));
                CHECK(o.form == TT_CATALOG_VALUE || o.group >= 0 || o.section != NULL);
            }
        }
    CHECK_OK(tt_close(ctx));
}

// ---- every row of the parser -----------------------------------------------------------------

typedef struct walk {
    tt_ctx *ctx;
    const void *seen[256]; // choices and records
    int n_seen, n_rows;
} walk;

static bool is_seen(walk *w, const void *what)
{
    for (int i = 0; i < w->n_seen; i++)
        if (w->seen[i] == what)
            return true;
    CHECK(w->n_seen < TTI_COUNT(w->seen));
    w->seen[w->n_seen++] = what;
    return false;
}

static void walk_schema(walk *w, const tti_schema *s);

static void compare_row(walk *w, tt_catalog_group group, const char *entry, const tti_schema *s,
                        const tt_option *row)
{
    tt_catalog_option o;
    bool is_there = find_option(w->ctx, group, entry, row->name, &o);
    bool is_hidden = s->takes != NULL && !s->takes(s->name, row->name);
    ck_assert_msg(is_there != is_hidden, "%s %s.%s", tt_catalog_group_name(group), entry,
                  row->name);
    if (is_hidden)
        return;
    w->n_rows++;
    const char *value = tti_schema_default(s, row);
    CHECK_STR(o.type, tti_option_type(row->type));
    CHECK(o.value == value);
    CHECK(o.help == row->help);
    CHECK(o.has_bounds == (row->min != 0 || row->max != 0));
    CHECK(o.min == row->min && o.max == row->max);
    CHECK(o.choices == row->names);
    CHECK(value != NULL || o.is_required || o.is_from_data);
}

static void walk_record(walk *w, tt_catalog_group group, const char *entry, const tti_schema *s)
{
    tt_catalog_option o;
    for (const tt_option *r = s->rows; r != NULL && r->type != TT_OPT_END; r++)
        compare_row(w, group, entry, s, r);
    for (const tt_option *r = s->more; r != NULL && r->type != TT_OPT_END; r++)
        compare_row(w, group, entry, s, r);
    for (const tti_key *k = s->keys; k != NULL && k->name != NULL; k++) {
        CHECK(find_option(w->ctx, group, entry, k->name, &o));
        CHECK(o.value == k->value);
        walk_schema(w, k->schema);
    }
}

static void walk_choice(walk *w, const tti_schema *s)
{
    tti_schema kind, first;
    int group = -1;
    for (int g = 0; g < TT_N_CATALOG_GROUPS && group < 0; g++)
        if (g != TT_CATALOG_STRATEGY && g != TT_CATALOG_OP && g != TT_CATALOG_SECTION &&
            tti_catalog_at(w->ctx, (tt_catalog_group)g, 0, &first) && s->at(w->ctx, 0, &kind) &&
            strcmp(first.name, kind.name) == 0 && first.rows == kind.rows)
            group = g;
    ck_assert_msg(group >= 0, "no group has the kinds of %s", s->name);
    for (int i = 0; s->at(w->ctx, i, &kind); i++)
        walk_record(w, (tt_catalog_group)group, kind.name, &kind);
}

static void walk_schema(walk *w, const tti_schema *s)
{
    tti_schema section;
    if (s == NULL || is_seen(w, s))
        return;
    if (s->form == TTI_CHOICE)
        walk_choice(w, s);
    walk_schema(w, s->item);
    walk_schema(w, s->alt);
    if (s->form != TTI_RECORD)
        return;
    for (int i = 0; tti_catalog_at(w->ctx, TT_CATALOG_SECTION, i, &section); i++)
        if (section.rows == s->rows) {
            walk_record(w, TT_CATALOG_SECTION, section.name, s);
            return;
        }
    ck_abort_msg("no section has the keys of %s (%s)", s->name != NULL ? s->name : "?",
                 s->rows != NULL ? s->rows[0].name : "no rows");
}

TEST(catalog_has_every_row_of_the_parser)
{
    walk w = {.ctx = test_ctx()};
    walk_schema(&w, &tti_job_schema);
    CHECK(w.n_rows > 250);
    CHECK_OK(tt_close(w.ctx));
}

TEST(catalog_options_say_what_jobs_take)
{
    tt_catalog_option o;
    tt_ctx *ctx = test_ctx();
    CHECK(find_option(ctx, TT_CATALOG_LAYER, "dense", "units", &o));
    CHECK(o.is_required && o.value == NULL && o.has_bounds && o.min == 1);
    CHECK_STR(o.type, "int");
    CHECK(find_option(ctx, TT_CATALOG_LAYER, "dense", "act", &o));
    CHECK_STR(o.type, "word");
    CHECK_STR(o.value, "linear");
    CHECK_STR(o.choices[0], "linear");
    CHECK(find_option(ctx, TT_CATALOG_LAYER, "embedding", "vocab", &o));
    CHECK(o.is_from_data && !o.is_required);
    CHECK(find_option(ctx, TT_CATALOG_SOURCE, "mnist", "split", &o));
    CHECK_STR(o.value, "train");
    CHECK(find_option(ctx, TT_CATALOG_TEST_SOURCE, "mnist", "split", &o));
    CHECK_STR(o.value, "test");
    CHECK(find_option(ctx, TT_CATALOG_LOSS, "huber", "delta", &o));
    CHECK(!find_option(ctx, TT_CATALOG_LOSS, "mse", "delta", &o));
    CHECK(find_option(ctx, TT_CATALOG_STRATEGY, "pipeline", "stages", &o));
    CHECK(!find_option(ctx, TT_CATALOG_STRATEGY, "mirrored", "stages", &o));
    CHECK(find_option(ctx, TT_CATALOG_OPTIMIZER, "adam", "schedule", &o));
    CHECK_INT(o.form, TT_CATALOG_CHOICE);
    CHECK_INT(o.group, TT_CATALOG_SCHEDULE);
    CHECK_STR(o.value, "constant");
    CHECK(find_option(ctx, TT_CATALOG_OPTIMIZER, "adam", "groups", &o));
    CHECK_INT(o.form, TT_CATALOG_LIST);
    CHECK_INT(o.group, -1);
    CHECK_STR(o.section, "train.optimizer.*.groups");
    CHECK(find_option(ctx, TT_CATALOG_SECTION, "job", "model", &o));
    CHECK_INT(o.group, TT_CATALOG_LAYER);
    CHECK_STR(o.section, "model");
    CHECK(find_option(ctx, TT_CATALOG_SECTION, "distribute", "pins", &o));
    CHECK_INT(o.form, TT_CATALOG_NAMED);
    CHECK_STR(o.section, "distribute.pins.*");
    CHECK_OK(tt_close(ctx));
}

// ---- calls -----------------------------------------------------------------------------------

static tt_status never_open(tt_ctx *ctx, const void *options, tt_source *out)
{
    (void)ctx, (void)options, (void)out;
    return TT_EINVAL;
}

TEST(catalog_has_what_a_program_registered)
{
    static const tt_option rows[] = {{"file", TT_OPT_TEXT, NULL, "where", 0, 0, 0, NULL},
                                     TT_OPTION_END};
    static const tt_source_def own = {.name = "own_source",
                                      .help = "mine",
                                      .options = rows,
                                      .options_size = sizeof(char *),
                                      .main = "file",
                                      .open = never_open};
    tt_catalog_entry e;
    tt_ctx *ctx = test_ctx(), *other = test_ctx();
    CHECK_OK(tt_source_register(ctx, &own));
    CHECK_OK(
        tt_catalog_get(ctx, TT_CATALOG_SOURCE, find(ctx, TT_CATALOG_SOURCE, "own_source"), &e));
    CHECK_STR(e.help, "mine");
    CHECK_STR(e.main, "file");
    CHECK_INT(e.n_options, 1);
    CHECK_INT(find(other, TT_CATALOG_SOURCE, "own_source"), -1);
    char *json = tt_catalog_json(ctx);
    CHECK_HAS(json, "\"own_source\"");
    tt_string_free(ctx, json);
    CHECK_OK(tt_close(other));
    CHECK_OK(tt_close(ctx));
}

TEST(catalog_writes_no_more_than_the_struct_of_the_caller)
{
    tt_ctx *ctx = test_ctx();
    for (size_t n = 0; n <= sizeof(tt_catalog_option) + 8; n++) {
        unsigned char room[sizeof(tt_catalog_option) + 16];
        memset(room, 0xA5, sizeof(room));
        CHECK_OK(tt_catalog_get_sized(ctx, TT_CATALOG_LAYER, 1, (void *)room, n));
        for (size_t i = TTI_MIN(n, sizeof(tt_catalog_entry)); i < sizeof(room); i++)
            CHECK_INT(room[i], i < n ? 0 : 0xA5);
        memset(room, 0xA5, sizeof(room));
        CHECK_OK(tt_catalog_option_sized(ctx, TT_CATALOG_LAYER, 1, 0, (void *)room, n));
        for (size_t i = TTI_MIN(n, sizeof(tt_catalog_option)); i < sizeof(room); i++)
            CHECK_INT(room[i], i < n ? 0 : 0xA5);
    }
    CHECK_OK(tt_close(ctx));
}

TEST(catalog_refuses_what_is_not_there)
{
    tt_catalog_entry e;
    tt_catalog_option o;
    tt_ctx *ctx = test_ctx();
    int n = tt_catalog_count(ctx, TT_CATALOG_LOSS);
    CHECK_INT(n, 17);
    CHECK_INT(tt_catalog_count(ctx, (tt_catalog_group)99), 0);
    CHECK_INT(tt_catalog_count(NULL, TT_CATALOG_LOSS), 0);
    CHECK(tt_catalog_group_name((tt_catalog_group)99) == NULL);
    CHECK(tt_catalog_group_name((tt_catalog_group)-1) == NULL);
    CHECK(tt_catalog_get(ctx, TT_CATALOG_LOSS, n, &e) == TT_EINVAL);
    CHECK_MESSAGE(ctx, "catalog: losses has 17 entries, counted from 0; there is no 17");
    tt_clear_error(ctx);
    CHECK(tt_catalog_get(ctx, (tt_catalog_group)99, 0, &e) == TT_EINVAL);
    CHECK_MESSAGE(ctx, "catalog: there is no group 99");
    tt_clear_error(ctx);
    CHECK(tt_catalog_option_get(ctx, TT_CATALOG_LOSS, 0, 99, &o) == TT_EINVAL);
    CHECK_MESSAGE(ctx, "catalog: losses 'cross_entropy' has no option number 99");
    tt_clear_error(ctx);
    CHECK(tt_catalog_option_get(ctx, TT_CATALOG_LOSS, 0, -1, &o) == TT_EINVAL);
    tt_clear_error(ctx);
    CHECK_OK(tt_close(ctx));
}

// ---- JSON ------------------------------------------------------------------------------------

// The object's keys are these, in this order.
static void check_keys(const json_t *object, const char *const *keys)
{
    const char *key;
    json_t *value;
    int n = 0;
    json_object_foreach((json_t *)object, key, value)
    {
        CHECK(keys[n] != NULL);
        CHECK_STR(key, keys[n++]);
    }
    CHECK(keys[n] == NULL);
}

static void check_entry(tt_ctx *ctx, tt_catalog_group group, int i, const json_t *entry)
{
    static const char *const entry_keys[] = {"name", "help", "main", "options", NULL};
    static const char *const op_keys[] = {"name",       "help",    "main",   "min_inputs",
                                          "max_inputs", "outputs", "dtypes", "gradient",
                                          "options",    NULL};
    static const char *const option_keys[] = {"name",      "form",    "type", "default", "required",
                                              "from_data", "min",     "max",  "choices", "map_keys",
                                              "group",     "section", "help", NULL};
    tt_catalog_entry e;
    CHECK_OK(tt_catalog_get(ctx, group, i, &e));
    check_keys(entry, group == TT_CATALOG_OP ? op_keys : entry_keys);
    CHECK_STR(json_string_value(json_object_get(entry, "name")), e.name);
    const json_t *options = json_object_get(entry, "options");
    CHECK_INT((int)json_array_size(options), e.n_options);
    for (int k = 0; k < e.n_options; k++) {
        tt_catalog_option o;
        const json_t *j = json_array_get(options, (size_t)k);
        CHECK_OK(tt_catalog_option_get(ctx, group, i, k, &o));
        check_keys(j, option_keys);
        CHECK_STR(json_string_value(json_object_get(j, "name")), o.name);
        CHECK_STR(json_string_value(json_object_get(j, "help")), o.help);
        CHECK(json_is_true(json_object_get(j, "required")) == o.is_required);
        const json_t *value = json_object_get(j, "default");
        bool is_number =
            o.type != NULL && (strcmp(o.type, "int") == 0 || strcmp(o.type, "float") == 0);
        bool is_bool = o.type != NULL && strcmp(o.type, "bool") == 0;
        if (o.value == NULL)
            CHECK(json_is_null(value));
        else
            ck_assert_msg(is_number ? json_is_number(value)
                          : is_bool ? json_is_boolean(value)
                                    : json_is_string(value),
                          "%s.%s: %s", e.name, o.name, o.value);
        CHECK(json_is_number(json_object_get(j, "min")) == o.has_bounds);
        CHECK(json_is_array(json_object_get(j, "choices")) ==
              (o.type != NULL && strcmp(o.type, "word") == 0));
    }
}

static void check_groups(tt_ctx *ctx, const json_t *all)
{
    CHECK_INT((int)json_integer_value(json_object_get(all, "catalog")), 1);
    CHECK_STR(json_string_value(json_object_get(all, "version")), TT_VERSION);
    CHECK_INT((int)json_array_size(json_object_get(all, "dtypes")), TT_N_DTYPES);
    for (int g = 0; g < TT_N_CATALOG_GROUPS; g++) {
        const json_t *list = json_object_get(all, tt_catalog_group_name((tt_catalog_group)g));
        int n = tt_catalog_count(ctx, (tt_catalog_group)g);
        CHECK(n > 0);
        CHECK_INT((int)json_array_size(list), n);
        for (int i = 0; i < n; i++)
            check_entry(ctx, (tt_catalog_group)g, i, json_array_get(list, (size_t)i));
    }
}

TEST(catalog_json_says_the_same)
{
    static const char *const keys[] = {"catalog",      "version",    "dtypes",    "sources",
                                       "test_sources", "transforms", "layers",    "losses",
                                       "metrics",      "optimizers", "schedules", "strategies",
                                       "ops",          "sections",   NULL};
    json_error_t e;
    tt_ctx *ctx = test_ctx();
    char *text = tt_catalog_json(ctx);
    json_t *all = json_loads(text, JSON_REJECT_DUPLICATES, &e);
    ck_assert_msg(all != NULL, "line %d: %s", e.line, e.text);
    check_keys(all, keys);
    check_groups(ctx, all);
    json_decref(all);
    tt_string_free(ctx, text);
    CHECK_OK(tt_close(ctx));
}

// Everything in memory of its own that can run out does so with an error.
TEST(catalog_json_without_memory_is_an_error)
{
    bool is_whole = false;
    for (int n = 1; !is_whole; n++) {
        tt_ctx *ctx = test_ctx();
        tti_fail_alloc_at(ctx, n);
        char *text = tt_catalog_json(ctx);
        tti_fail_alloc_at(ctx, 0);
        is_whole = text != NULL;
        tt_string_free(ctx, text);
        CHECK(tt_close(ctx) == (is_whole ? TT_OK : TT_ENOMEM));
        CHECK(n < 200);
    }
}

static const json_t *named(const json_t *list, const char *name)
{
    for (size_t i = 0; i < json_array_size(list); i++)
        if (strcmp(json_string_value(json_object_get(json_array_get(list, i), "name")), name) == 0)
            return json_array_get(list, i);
    return NULL;
}

TEST(help_json_has_commands_and_flags)
{
    static const char *const command_keys[] = {
        "name", "summary", "arguments", "min_arguments", "max_arguments", "help", "flags", NULL};
    static const char *const flag_keys[] = {"name", "type", "value", "repeats",
                                            "min",  "max",  "help",  NULL};
    json_error_t e;
    char line[64];
    tt_ctx *ctx = test_ctx();
    command_ok("help --json");
    json_t *all = json_loads(command_out, JSON_REJECT_DUPLICATES, &e);
    ck_assert_msg(all != NULL, "line %d: %s", e.line, e.text);
    check_groups(ctx, all);
    const json_t *commands = json_object_get(all, "commands"),
                 *flags = json_object_get(all, "flags");
    for (size_t i = 0; i < json_array_size(flags); i++)
        check_keys(json_array_get(flags, i), flag_keys);
    CHECK(json_array_size(commands) >= 19);
    // What help prints of a command is what the JSON says of it.
    for (size_t i = 0; i < json_array_size(commands); i++) {
        const json_t *c = json_array_get(commands, i), *own = json_object_get(c, "flags");
        check_keys(c, command_keys);
        const char *name = json_string_value(json_object_get(c, "name"));
        // `help data` is the section of job files.
        snprintf(line, sizeof(line), "help %s%s", name, strcmp(name, "data") == 0 ? " show" : "");
        command_ok(line);
        CHECK_INT(command_count(command_out, "\n  --"), (int)json_array_size(own));
        for (size_t k = 0; k < json_array_size(own); k++) {
            const json_t *f = named(flags, json_string_value(json_array_get(own, k)));
            CHECK(f != NULL);
            CHECK_HAS(command_out, json_string_value(json_object_get(f, "help")));
        }
    }
    json_decref(all);
    CHECK_OK(tt_close(ctx));
}

TEST(help_json_takes_no_topic)
{
    CHECK_INT(command_run("help train --json"), 2);
    CHECK_HAS(command_err, "tutti help --json prints all topics; remove 'train'");
}

// A layer's name alone is enough where no op has it.
TEST(help_of_a_layer_by_its_name)
{
    test_need_yaml();
    CHECK_INT(command_run("help conv1d"), 0);
    CHECK(strstr(command_out, "model.conv1d: 1-D convolution of sequences") != NULL);
    CHECK(strstr(command_out, "causal") != NULL);
}
