/*
 * catalog_json.c - the catalogue as JSON, for programs that generate bindings and editors. Every
 * object of a kind has the same keys, in the same order; what does not apply is null. An entry is
 * a line, and so is an option.
 */
#include "base/value.h"
#include "job/catalog.h"
#include <math.h>
#include <string.h>

#define FORMAT 1 // raised when a key changes its meaning or goes; a new key does not raise it

// "key": "text", or null.
static void add_text(tti_text *t, const char *key, const char *s)
{
    tti_text_add(t, "\"%s\": ", key);
    if (s != NULL)
        tti_text_json(t, s);
    else
        tti_text_add(t, "null");
}

static void add_words(tti_text *t, const char *key, const char *const *words)
{
    tti_text_add(t, ", \"%s\": %s", key, words != NULL ? "[" : "null");
    for (int i = 0; words != NULL && words[i] != NULL; i++) {
        tti_text_add(t, "%s", i > 0 ? ", " : "");
        tti_text_json(t, words[i]);
    }
    tti_text_add(t, "%s", words != NULL ? "]" : "");
}

static void add_bound(tti_text *t, const char *key, const tt_catalog_option *o, double v)
{
    char text[TTI_DOUBLE_TEXT];
    tti_text_add(t, ", \"%s\": %s", key, o->has_bounds ? tti_double_text(v, text) : "null");
}

// Numbers and truth values as such, the rest as a job file has it.
static void add_default(tti_text *t, const tt_catalog_option *o)
{
    char text[TTI_DOUBLE_TEXT];
    double v;
    const char *type = o->type != NULL && o->value != NULL ? o->type : "";
    bool is_number = strcmp(type, "int") == 0 || strcmp(type, "float") == 0;
    tti_text_add(t, ", ");
    if (strcmp(type, "bool") == 0)
        tti_text_add(t, "\"default\": %s", strcmp(o->value, "true") == 0 ? "true" : "false");
    else if (is_number && tti_double_parse(o->value, &v) && isfinite(v))
        tti_text_add(t, "\"default\": %s", tti_double_text(v, text));
    else
        add_text(t, "default", o->value);
}

static void add_option(tti_text *t, const tt_catalog_option *o)
{
    static const char *const forms[] = {[TT_CATALOG_VALUE] = "value",
                                        [TT_CATALOG_MAP] = "map",
                                        [TT_CATALOG_CHOICE] = "choice",
                                        [TT_CATALOG_LIST] = "list",
                                        [TT_CATALOG_NAMED] = "named"};
    bool is_word = o->type != NULL && strcmp(o->type, "word") == 0;
    tti_text_add(t, "{");
    add_text(t, "name", o->name);
    tti_text_add(t, ", \"form\": \"%s\", ", forms[o->form]);
    add_text(t, "type", o->type);
    add_default(t, o);
    tti_text_add(t, ", \"required\": %s", o->is_required ? "true" : "false");
    tti_text_add(t, ", \"from_data\": %s", o->is_from_data ? "true" : "false");
    add_bound(t, "min", o, o->min);
    add_bound(t, "max", o, o->max);
    add_words(t, "choices", is_word ? o->choices : NULL);
    add_words(t, "map_keys", is_word ? NULL : o->choices);
    tti_text_add(t, ", ");
    add_text(t, "group", tt_catalog_group_name((tt_catalog_group)o->group));
    tti_text_add(t, ", ");
    add_text(t, "section", o->section);
    tti_text_add(t, ", ");
    add_text(t, "help", o->help);
    tti_text_add(t, "}");
}

// What only ops have: inputs, outputs, element types, whether there is a gradient.
static void add_op(tti_text *t, const tt_op *op)
{
    unsigned types = op->types == 0 ? TT_TYPES_FLOAT : op->types;
    const char *names[TT_N_DTYPES + 1];
    int n = 0;
    for (int i = 0; i < TT_N_DTYPES; i++)
        if (types & 1u << i)
            names[n++] = tt_dtype_name((tt_dtype)i);
    names[n] = NULL;
    tti_text_add(t, ", \"min_inputs\": %d, \"max_inputs\": ", op->inputs);
    if (op->max_inputs < 0)
        tti_text_add(t, "null");
    else
        tti_text_add(t, "%d", op->max_inputs == 0 ? op->inputs : op->max_inputs);
    tti_text_add(t, ", \"outputs\": %d", op->outputs == 0 ? 1 : op->outputs);
    add_words(t, "dtypes", names);
    tti_text_add(t, ", \"gradient\": %s", op->grad != NULL ? "true" : "false");
}

static void add_entry(tt_ctx *ctx, tti_text *t, const tti_schema *s, const tt_op *op)
{
    tt_catalog_option o;
    tti_text_add(t, "  {");
    add_text(t, "name", s->name);
    tti_text_add(t, ", ");
    add_text(t, "help", s->help != NULL ? s->help : "");
    tti_text_add(t, ", ");
    add_text(t, "main", s->main);
    if (op != NULL)
        add_op(t, op);
    tti_text_add(t, ", \"options\": [");
    for (int k = 0; tti_catalog_option(ctx, s, k, &o); k++) {
        tti_text_add(t, "%s\n    ", k > 0 ? "," : "");
        add_option(t, &o);
    }
    tti_text_add(t, "]}");
}

void tti_catalog_json(tt_ctx *ctx, tti_text *t)
{
    const char *types[TT_N_DTYPES + 1] = {NULL};
    tti_schema s;
    for (int i = 0; i < TT_N_DTYPES; i++)
        types[i] = tt_dtype_name((tt_dtype)i);
    tti_text_add(t, "{\n\"catalog\": %d,\n\"version\": \"%s\"", FORMAT, TT_VERSION);
    add_words(t, "dtypes", types);
    for (int g = 0; g < TT_N_CATALOG_GROUPS; g++) {
        tti_text_add(t, ",\n\"%s\": [", tt_catalog_group_name((tt_catalog_group)g));
        for (int i = 0; tti_catalog_at(ctx, (tt_catalog_group)g, i, &s); i++) {
            tti_text_add(t, "%s\n", i > 0 ? "," : "");
            add_entry(ctx, t, &s, g == TT_CATALOG_OP ? tt_op_at(ctx, i) : NULL);
        }
        tti_text_add(t, "]");
    }
}
