/*
 * job_tree.c - YAML to a tree, changes to it, a tree against tables of this file's own, and back to
 * YAML. Every message is compared whole: file, line, column, path, what is wrong.
 */
#include "../test.h"
#include "job/schema.h"
#include <stdio.h>
#include <stdlib.h>

// ---- tables ----------------------------------------------------------------------------------

typedef struct conf {
    bool flag;
    int64_t count;
    double rate;
    const char *words;
    int mode;
    tt_ints sizes;
    int pair[2];
    tt_shape shape;
} conf;

static const char *const modes[] = {"stop", "skip", "continue", NULL};

static const tt_option plain_rows[] = {
    {"flag", TT_OPT_BOOL, "true", "a switch", offsetof(conf, flag), 0, 0, NULL},
    {"count", TT_OPT_INT, "3", "how many", offsetof(conf, count), 1, 100, NULL},
    {"rate", TT_OPT_FLOAT, "0.1", "how much", offsetof(conf, rate), 0, 0, NULL},
    {"words", TT_OPT_TEXT, "", "some words", offsetof(conf, words), 0, 0, NULL},
    {"mode", TT_OPT_ENUM, "stop", "what then", offsetof(conf, mode), 0, 0, modes},
    {"sizes", TT_OPT_INTS, "[]", "sizes", offsetof(conf, sizes), 0, 0, NULL},
    {"pair", TT_OPT_PAIR, "2", "two", offsetof(conf, pair), 1, 9, NULL},
    {"shape", TT_OPT_SHAPE, "[b, 2]", "shape", offsetof(conf, shape), 0, 0, NULL},
    TT_OPTION_END,
};
static const tt_option adam_rows[] = {
    {"lr", TT_OPT_FLOAT, "0.001", "learning rate", offsetof(conf, rate), 0, 10, NULL},
    TT_OPTION_END,
};
static const tt_option dense_rows[] = {
    {"units", TT_OPT_INT, NULL, "width", offsetof(conf, count), 1, 1000, NULL},
    {"act", TT_OPT_TEXT, "linear", "activation", offsetof(conf, words), 0, 0, NULL},
    TT_OPTION_END,
};
static const tt_option embed_rows[] = {
    {"vocab", TT_OPT_INT, NULL, "symbols", offsetof(conf, count), 1, 1000, NULL},
    TT_OPTION_END,
};
static const tt_option name_rows[] = {
    {"name", TT_OPT_TEXT, "", "its name", offsetof(conf, words), 0, 0, NULL},
    TT_OPTION_END,
};
static const tt_option top_rows[] = {
    {"title", TT_OPT_TEXT, "none", "a title", offsetof(conf, words), 0, 0, NULL},
    TT_OPTION_END,
};

static bool optimizer_at(tt_ctx *ctx, int i, tti_schema *out)
{
    static const char *const names[] = {"sgd", "adam"};
    (void)ctx;
    if (i >= 2)
        return false;
    *out = (tti_schema){.form = TTI_RECORD, .name = names[i], .rows = adam_rows};
    return true;
}

static bool layer_at(tt_ctx *ctx, int i, tti_schema *out);
static const char *const beside[] = {"name", NULL};
static const tti_schema layer = {
    .form = TTI_CHOICE, .name = "layer", .at = layer_at, .beside = beside};
static const tti_schema layers = {.form = TTI_LIST_OF, .item = &layer, .help = "some layers"};
static const tti_key residual_keys[] = {{"layers", &layers, NULL}, {NULL, NULL, NULL}};

static bool layer_at(tt_ctx *ctx, int i, tti_schema *out)
{
    static const tti_schema kinds[] = {
        {.name = "dense", .rows = dense_rows, .more = name_rows, .main = "units"},
        {.name = "flatten", .more = name_rows},
        {.name = "embed", .rows = embed_rows, .later = "vocab"},
        {.name = "residual", .keys = residual_keys, .main = "layers"},
        {.name = "bare"},
    };
    (void)ctx;
    if (i >= TTI_COUNT(kinds))
        return false;
    *out = kinds[i];
    return true;
}

static const tti_schema optimizer = {
    .form = TTI_CHOICE, .name = "optimizer", .at = optimizer_at, .help = "the rule"};
static const tti_schema input = {.form = TTI_RECORD, .rows = name_rows};
static const tti_schema inputs = {.form = TTI_NAMED, .item = &input};
static const tti_key functional_keys[] = {
    {"inputs", &inputs, ""}, {"layers", &layers, ""}, {NULL, NULL, NULL}};
static const tti_schema functional = {.form = TTI_RECORD, .keys = functional_keys};
static const tti_schema model = {
    .form = TTI_LIST_OF, .item = &layer, .alt = &functional, .help = "the model"};
static const tti_schema small = {.form = TTI_RECORD, .rows = name_rows, .main = "name"};
static const tti_key plain_keys[] = {
    {"optimizer", &optimizer, "sgd"}, {"small", &small, ""}, {NULL, NULL, NULL}};
static const tti_schema plain = {
    .form = TTI_RECORD, .rows = plain_rows, .keys = plain_keys, .help = "plain things"};
static const tti_key top_keys[] = {
    {"plain", &plain, ""}, {"model", &model, NULL}, {"extra", &small, NULL}, {NULL, NULL, NULL}};
static const tti_schema top = {
    .form = TTI_RECORD, .rows = top_rows, .keys = top_keys, .help = "Everything"};

// ---- helpers ---------------------------------------------------------------------------------

// Reads, sets, resolves and prints; NULL: the context has the error.
static char *through(tt_ctx *ctx, const char *yaml, const char *const *sets, bool env)
{
    tti_tree tree = {.ctx = ctx};
    tti_item *root = NULL, *resolved = NULL;
    char *out = NULL;
    tt_status st = tti_yaml_read(&tree, "j.yaml", yaml, strlen(yaml), &root);
    if (st == TT_OK && env)
        st = tti_environment(&tree, &top, root);
    for (int i = 0; sets != NULL && sets[i] != NULL && st == TT_OK; i++)
        st = tti_tree_assign(&tree, root, sets[i]);
    if (st == TT_OK)
        st = tti_resolve(&tree, &top, "", root, &resolved);
    if (st == TT_OK) {
        tti_text t = {.ctx = ctx};
        tti_tree_print(&t, resolved, NULL);
        out = tti_text_take(&t);
    }
    tti_tree_free(&tree);
    return out;
}

static void expect_text(const char *yaml, const char *const *sets, bool env, const char *wanted)
{
    tt_ctx *ctx = test_ctx();
    char *text = through(ctx, yaml, sets, env);
    ck_assert_msg(text != NULL, "'%s': %s", yaml, tt_last_error(ctx).message);
    ck_assert_msg(strstr(text, wanted) != NULL, "'%s' is not in:\n%s", wanted, text);
    char *again = through(ctx, text, NULL, false);
    ck_assert_msg(again != NULL, "%s\n%s", tt_last_error(ctx).message, text);
    CHECK_STR(again, text);
    tti_free(ctx, text);
    tti_free(ctx, again);
    CHECK_OK(tt_close(ctx));
}

static void expect_error_set(const char *yaml, const char *const *sets, bool env,
                             const char *message)
{
    tt_ctx *ctx = test_ctx();
    char *text = through(ctx, yaml, sets, env);
    ck_assert_msg(text == NULL, "no error '%s' from\n%s", message, yaml);
    CHECK_STR(tt_last_error(ctx).message, message);
    tt_clear_error(ctx);
    CHECK_OK(tt_close(ctx));
}

#define PLAIN_KEYS                                                                  \
    "\n  possible: flag, count, rate, words, mode, sizes, pair, shape, optimizer, " \
    "small"
static void expect_error(const char *yaml, const char *message)
{
    expect_error_set(yaml, NULL, false, message);
}

// ---- reading ---------------------------------------------------------------------------------

TEST(job_yaml_syntax_errors_say_where)
{
    test_need_yaml();
    expect_error("", "j.yaml:1:1: is empty");
    expect_error("# nothing\n", "j.yaml:1:1: is empty");
    expect_error("plain:\n  on: [1, 2\n", "j.yaml:3:1: did not find expected ',' or ']'");
    expect_error("plain:\n\ton: 1\n", "j.yaml:2:1: found character that cannot start any token");
    expect_error("a: \xff\n", "j.yaml:1:4: invalid leading UTF-8 octet");
    expect_error("title: a\n---\ntitle: b\n",
                 "j.yaml:2:1: a second document begins here; a job file has only one");
    expect_error("title: !!python/object:os.system x\n",
                 "j.yaml:1:8: tags are not allowed in a job");
    expect_error("plain: !x {on: true}\n", "j.yaml:1:8: tags are not allowed in a job");
    expect_error("title: \"a\\0b\"\n", "j.yaml:1:8: a text contains a zero byte");
    expect_error("? [a, b]\n: c\n", "j.yaml:1:3: a key must be a word");
    expect_error("\"\": c\n", "j.yaml:1:1: a key is empty");
    expect_error("title: a\nplain: {}\ntitle: b\n",
                 "j.yaml:3:1: key 'title' was given before, at line 1, column 1");
    expect_error("plain:\n  <<: {on: true}\n",
                 "j.yaml:2:3: merge keys (<<) are not allowed; write the keys out");
    expect_error("title: *x\n", "j.yaml:1:8: there is no anchor 'x' before this alias");
    expect_error("title: &x [*x]\n", "j.yaml:1:12: there is no anchor 'x' before this alias");
}

TEST(job_yaml_is_bounded)
{
    test_need_yaml();
    char deep[128] = "title: ";
    memset(deep + 7, '[', 40);
    expect_error(deep, "j.yaml:1:39: lists and maps are nested too deep");

    // Each line of aliases ten times the one before: refused when the items run out.
    expect_error("a: &a [x, x, x, x, x, x, x, x, x, x]\n"
                 "b: &b [*a, *a, *a, *a, *a, *a, *a, *a, *a, *a]\n"
                 "c: &c [*b, *b, *b, *b, *b, *b, *b, *b, *b, *b]\n"
                 "d: &d [*c, *c, *c, *c, *c, *c, *c, *c, *c, *c]\n"
                 "e: &e [*d, *d, *d, *d, *d, *d, *d, *d, *d, *d]\n",
                 "j.yaml:1:32: the job has more than 20000 items");

    // Aliases of aliases count with their depth.
    char nested[2048] = "a0: &a0 [x]\n";
    for (int i = 1; i < 40; i++)
        snprintf(nested + strlen(nested), 64, "a%d: &a%d [*a%d]\n", i, i, i - 1);
    expect_error(nested, "j.yaml:31:12: lists and maps are nested too deep");

    tt_ctx *ctx = test_ctx();
    size_t bytes = TTI_MAX_JOB_BYTES + 1;
    char *big = malloc(bytes);
    memset(big, ' ', bytes);
    tti_tree tree = {.ctx = ctx};
    tti_item *root;
    CHECK(tti_yaml_read(&tree, "j.yaml", big, bytes, &root) == TT_EPARSE);
    CHECK_MESSAGE(ctx, "j.yaml: has 1048577 bytes; a job file has at most 1048576");
    free(big);
    tt_clear_error(ctx);

    tti_text t = {.ctx = ctx};
    for (int i = 0; i < 257; i++)
        tti_text_add(&t, "k%d: 1\n", i);
    char *keys = tti_text_take(&t);
    expect_error(keys, "j.yaml:257:1: a map has too many keys");
    tti_free(ctx, keys);
    tti_tree_free(&tree);
    CHECK_OK(tt_close(ctx));
}

TEST(job_aliases_are_copies)
{
    test_need_yaml();
    expect_text("model:\n- dense: &d {units: 7, act: relu}\n- dense: *d\n", NULL, false,
                "  - dense: {units: 7, act: relu, name: \"\"}\n"
                "  - dense: {units: 7, act: relu, name: \"\"}\n");
    const char *const sets[] = {"model.1.dense.units=8", NULL};
    expect_text("model:\n- dense: &d {units: 7, act: relu}\n- dense: *d\n", sets, false,
                "  - dense: {units: 7, act: relu, name: \"\"}\n"
                "  - dense: {units: 8, act: relu, name: \"\"}\n");
}

// ---- resolving -------------------------------------------------------------------------------

TEST(job_keys_are_checked)
{
    test_need_yaml();
    expect_error("plain:\n  flag: true\n  cuont: 4\n",
                 "j.yaml:3:3: plain: unknown key 'cuont'; did you mean 'count'?" PLAIN_KEYS);
    expect_error("plan: {}\n", "j.yaml:1:1: unknown key 'plan'; did you mean 'plain'?\n  possible: "
                               "title, plain, model, extra");
    expect_error("plain: {zzzzzzz: 1}\n", "j.yaml:1:9: plain: unknown key 'zzzzzzz'" PLAIN_KEYS);
    expect_error("model: [bare: {x: 1}]\n",
                 "j.yaml:1:16: model.0.bare: unknown key 'x'; it has no keys");
    expect_error("plain: 7\n", "j.yaml:1:8: plain: is a text, but must be a map");
    expect_error("plain: [7]\n", "j.yaml:1:8: plain: is a list, but must be a map");
    expect_error("[1]\n", "j.yaml:1:1: is a list, but must be a map");
    expect_text("plain:\n", NULL, false, "count: 3");
}

TEST(job_values_are_checked)
{
    test_need_yaml();
    expect_error("plain:\n  count: 0\n", "j.yaml:2:10: plain.count: '0' is below 1");
    expect_error("plain:\n  count: 101\n", "j.yaml:2:10: plain.count: '101' is above 100");
    expect_error("plain:\n  count: 1.5\n", "j.yaml:2:10: plain.count: '1.5' is not an integer");
    expect_error("plain:\n  count:\n", "j.yaml:2:9: plain.count: is empty, but must be an integer");
    expect_error("plain:\n  count: [1]\n",
                 "j.yaml:2:10: plain.count: is a list, but must be an integer");
    expect_error("plain:\n  words: {a: 1}\n",
                 "j.yaml:2:10: plain.words: is a map, but must be a text or a list of texts");
    expect_error("plain: {flag: maybe}\n", "j.yaml:1:15: plain.flag: 'maybe' is not true or false");
    expect_error("plain: {rate: fast}\n", "j.yaml:1:15: plain.rate: 'fast' is not a number");
    expect_error("plain: {rate: nan}\n", "j.yaml:1:15: plain.rate: 'nan' is not a number");
    expect_error("plain: {mode: skpi}\n",
                 "j.yaml:1:15: plain.mode: 'skpi' is unknown; did you mean 'skip'?");
    expect_error("plain: {mode: never}\n",
                 "j.yaml:1:15: plain.mode: 'never' is not one of stop, skip, continue");
    expect_error("plain: {sizes: [1, x]}\n",
                 "j.yaml:1:16: plain.sizes: '[1, x]' is not a list of at most 16 integers: [1, 2]");
    expect_error("plain: {sizes: [1, [2]]}\n",
                 "j.yaml:1:20: plain.sizes: an item is a list, but must be an integer");
    expect_error("plain: {words: [a, \"b,c\"]}\n",
                 "j.yaml:1:20: plain.words: 'b,c': an item must not contain a comma");
    expect_error("plain: {pair: [1, 10]}\n", "j.yaml:1:15: plain.pair: '[1, 10]' is above 9");
}

TEST(job_values_are_printed_as_rows_do)
{
    test_need_yaml();
    expect_text("plain: {flag: no, count: 4, rate: 1e-3, mode: skip}\n", NULL, false,
                "  flag: false\n  count: 4\n  rate: 0.001\n  words: \"\"\n  mode: skip\n");
    expect_text("plain: {words: [a, \"b c\", d*], sizes: [1, 2], pair: [3, 4], shape: [b, 28]}\n",
                NULL, false, "words: \"a, b c, d*\"\n");
    expect_text("plain: {sizes: [1, 2], pair: [3, 4], shape: [b, 28]}\n", NULL, false,
                "sizes: [1, 2]\n  pair: [3, 4]\n  shape: [b, 28]\n");
    static const char *const texts[] = {"~",       "null", "true", "12",   "a: b", "'",
                                        "\\\"",    "#x",   "- a",  "[a]",  "{",    "*x",
                                        "\\n",     "\\t",  "Null", "a, b", " a",   "\\u00e9",
                                        "\\u0001", "x y",  "0x1F", "1e3",  "%x",   "a\\\\b"};
    for (int i = 0; i < TTI_COUNT(texts); i++) {
        char yaml[64];
        snprintf(yaml, sizeof(yaml), "title: \"%s\"\n", texts[i]);
        expect_text(yaml, NULL, false, "title: \"");
    }
    expect_text("title: runs/a-b_1.x\n", NULL, false, "title: runs/a-b_1.x\n");
}

TEST(job_choices_take_every_form)
{
    test_need_yaml();
    expect_text("title: x\n", NULL, false, "  optimizer:\n    sgd: {lr: 0.001}\n");
    expect_text("plain: {optimizer: adam}\n", NULL, false, "    adam: {lr: 0.001}\n");
    expect_text("plain: {optimizer: {adam: }}\n", NULL, false, "    adam: {lr: 0.001}\n");
    expect_text("plain: {optimizer: {adam: {lr: 2}}}\n", NULL, false, "    adam: {lr: 2}\n");
    expect_error("plain: {optimizer: admm}\n",
                 "j.yaml:1:20: plain.optimizer: unknown optimizer 'admm'; did you mean 'adam'?\n  "
                 "possible: sgd, adam");
    expect_error("plain: {optimizer: newton}\n",
                 "j.yaml:1:20: plain.optimizer: unknown optimizer 'newton'\n  possible: sgd, adam");
    expect_error("plain: {optimizer: {sgd: , adam: }}\n",
                 "j.yaml:1:28: plain.optimizer: 'adam' and 'sgd' (j.yaml:1:21) are both given; "
                 "only one optimizer is allowed");
    expect_error("plain: {optimizer: {adam: 3}}\n",
                 "j.yaml:1:27: plain.optimizer.adam: is a text, but must be a map");
    expect_error("plain: {optimizer: [adam]}\n",
                 "j.yaml:1:20: plain.optimizer: is a list, but must name one optimizer");
    expect_error("plain: {optimizer: {}}\n",
                 "j.yaml:1:20: plain.optimizer: must name one optimizer");
    expect_error("plain: {optimizer: {adam: {lr: 11}}}\n",
                 "j.yaml:1:32: plain.optimizer.adam.lr: '11' is above 10");
}

TEST(job_layers_take_every_form)
{
    test_need_yaml();
    expect_text("model:\n- dense: 10\n- flatten\n- dense: {units: 3}\n- bare\n", NULL, false,
                "model:\n"
                "  - dense: {units: 10, act: linear, name: \"\"}\n"
                "  - flatten: {name: \"\"}\n"
                "  - dense: {units: 3, act: linear, name: \"\"}\n"
                "  - bare\n");
    expect_text("model:\n- dense: 10\n  name: head\n", NULL, false,
                "  - dense: {units: 10, act: linear, name: head}\n");
    expect_text("model:\n- dense: {units: 2}\n  name: head\n", NULL, false,
                "  - dense: {units: 2, act: linear, name: head}\n");
    expect_text("model: {dense: 4}\n", NULL, false, "  - dense: {units: 4");
    expect_text("model: flatten\n", NULL, false, "  - flatten: {name: \"\"}\n");
    expect_text("model: []\n", NULL, false, "model: []\n");
    expect_text("model: [embed]\n", NULL, false, "  - embed\n");
    expect_text("model: [residual: [flatten, dense: 2]]\n", NULL, false,
                "  - residual:\n"
                "      layers:\n"
                "        - flatten: {name: \"\"}\n"
                "        - dense: {units: 2, act: linear, name: \"\"}\n");
    expect_text("model: {inputs: [a, b], layers: [flatten]}\n", NULL, false,
                "model:\n"
                "  inputs:\n"
                "    a: {name: \"\"}\n"
                "    b: {name: \"\"}\n"
                "  layers:\n"
                "    - flatten: {name: \"\"}\n");
    expect_error("model:\n- dense\n", "j.yaml:2:3: model.0.dense: units must be given");
    expect_error("model:\n- flatten\n- desne: 4\n",
                 "j.yaml:3:3: model.1: unknown layer 'desne'; did you mean 'dense'?\n  possible: "
                 "dense, flatten, embed, residual, bare");
    expect_error("model:\n- dense: {units: 2, name: a}\n  name: head\n",
                 "j.yaml:3:3: model.0.dense: 'name' is given twice");
    expect_error("model:\n- bare:\n  name: head\n",
                 "j.yaml:3:3: model.0.bare: unknown key 'name'; it has no keys");
    expect_error("model:\n- flatten\n-\n",
                 "j.yaml:3:2: model.1: is empty, but must name one layer");
    expect_error("model: [residual: [flatten, dense: 0]]\n",
                 "j.yaml:1:36: model.0.residual.layers.1.dense.units: '0' is below 1");
    expect_error("model: {inputs: [a, a]}\n", "j.yaml:1:21: model.inputs: 'a' is given twice");
    expect_error("model: {inputs: [[a]]}\n",
                 "j.yaml:1:18: model.inputs: an item is a list, but must be a name");
}

// ---- --set and the environment ---------------------------------------------------------------

TEST(job_sets_win_and_say_where)
{
    test_need_yaml();
    const char *const a[] = {"plain.count=5", "plain.count=6", "title=x y", NULL};
    expect_text("plain: {count: 4}\n", a, false, "count: 6\n");
    const char *const b[] = {"plain.optimizer.adam.lr=5", NULL};
    expect_text("plain: {optimizer: adam}\n", b, false, "adam: {lr: 5}\n");
    expect_text("plain: {optimizer: {adam: {lr: 2}}}\n", b, false, "adam: {lr: 5}\n");
    expect_text("title: x\n", b, false, "adam: {lr: 5}\n");
    expect_error_set("plain: {optimizer: sgd}\n", b, false,
                     "--set plain.optimizer.adam.lr: plain.optimizer: 'adam' and 'sgd' "
                     "(j.yaml:1:20) are both given; only one optimizer is allowed");
    const char *const c[] = {"model.0.dense.act=relu", "model.1.dense.units=9", NULL};
    expect_text("model: [dense: 10, dense: 11]\n", c, false,
                "  - dense: {units: 10, act: relu, name: \"\"}\n"
                "  - dense: {units: 9, act: linear, name: \"\"}\n");
    const char *const d[] = {"plain.sizes=[4, 5]", "plain.optimizer={adam: {lr: 3}}",
                             "plain.words=*.bias", NULL};
    expect_text("title: x\n", d, false, "words: \"*.bias\"\n");
    expect_text("title: x\n", d, false, "sizes: [4, 5]\n");
    expect_text("title: x\n", d, false, "adam: {lr: 3}\n");
    const char *const e[] = {"plain.words=", NULL};
    expect_text("plain: {words: x}\n", e, false, "words: \"\"\n");

    static const struct {
        const char *set, *message;
    } bad[] = {
        {"plain.count=0", "--set plain.count: plain.count: '0' is below 1"},
        {"plain.cuont=1",
         "--set plain.cuont: plain: unknown key 'cuont'; did you mean 'count'?" PLAIN_KEYS},
        {"plain.count", "--set 'plain.count' must be KEY=VALUE"},
        {"=3", "--set '=3' must be KEY=VALUE"},
        {"plain..count=3", "--set plain..count: the path has an empty part"},
        {"model.2.dense=3", "--set model.2.dense: there is no item 2: the list has length 1"},
        {"model.x.dense=3",
         "--set model.x.dense: 'x' must be a number from 0 to 0: it is an index into a list"},
        {"plain.sizes=[1", "--set plain.sizes:2:1: did not find expected ',' or ']'"},
    };
    for (int i = 0; i < TTI_COUNT(bad); i++) {
        const char *const sets[] = {bad[i].set, NULL};
        expect_error_set("model: [flatten]\n", sets, false, bad[i].message);
    }
}

TEST(job_environment_stands_between_file_and_sets)
{
    test_need_yaml();
    setenv("TUTTI_PLAIN_COUNT", "7", 1);
    setenv("TUTTI_PLAIN_SMALL_NAME", "one", 1);
    setenv("TUTTI_PLAIN_WORDS", "", 1);
    setenv("TUTTI_EXTRA_NAME", "never", 1); // the job has no such section
    expect_text("plain: {count: 4, words: a}\n", NULL, true, "count: 7\n");
    expect_text("plain: {count: 4, words: a}\n", NULL, true, "words: a\n");
    expect_text("plain: {small: m}\n", NULL, true, "small: {name: one}\n");
    expect_text("plain: {count: 4}\n", NULL, false, "count: 4\n");
    expect_text("extra: x\n", NULL, true, "extra: {name: never}\n");
    const char *const sets[] = {"plain.count=8", NULL};
    expect_text("plain: {count: 4}\n", sets, true, "count: 8\n");
    setenv("TUTTI_PLAIN_COUNT", "many", 1);
    expect_error_set("title: a\n", NULL, true,
                     "environment TUTTI_PLAIN_COUNT: plain.count: 'many' is not an integer");
}

// ---- structs, help ---------------------------------------------------------------------------

TEST(job_records_bind_to_structs)
{
    test_need_yaml();
    tt_ctx *ctx = test_ctx();
    tti_tree tree = {.ctx = ctx};
    tti_item *root, *resolved;
    const char *yaml = "plain: {flag: false, count: 9, words: [a, b], sizes: [1, 2, 3], pair: 5}\n";
    CHECK_OK(tti_yaml_read(&tree, "j.yaml", yaml, strlen(yaml), &root));
    CHECK_OK(tti_resolve(&tree, &top, "", root, &resolved));
    conf c;
    CHECK_OK(tti_bind(ctx, plain_rows, tti_item_get(resolved, "plain"), &c));
    CHECK(!c.flag && c.count == 9 && c.rate == 0.1 && c.mode == 0);
    CHECK_STR(c.words, "a, b");
    CHECK(c.sizes.n == 3 && c.sizes.v[2] == 3 && c.pair[0] == 5 && c.pair[1] == 5);
    CHECK(c.shape.rank == 2 && c.shape.dim[0] == TT_BATCH);
    tti_tree_free(&tree);
    CHECK_OK(tt_close(ctx));
}

static void expect_help(const char *path, const char *wanted)
{
    tt_ctx *ctx = test_ctx();
    tti_text t = {.ctx = ctx};
    tt_status st = tti_schema_help(ctx, &t, &top, path);
    char *text = tti_text_take(&t);
    ck_assert_msg(st == TT_OK, "%s", tt_last_error(ctx).message);
    ck_assert_msg(strstr(text, wanted) != NULL, "'%s' is not in:\n%s", wanted, text);
    tti_free(ctx, text);
    CHECK_OK(tt_close(ctx));
}

TEST(job_help_walks_the_tables)
{
    expect_help("", "Everything\n\n");
    expect_help("", "plain: plain things\n");
    expect_help("plain", "plain: plain things\n"
                         "  key        type    default  meaning\n"
                         "  flag       bool    true     a switch\n"
                         "  count      int     3        how many; from 1 to 100\n");
    expect_help("plain", "  mode       word    stop     what then: stop, skip, continue\n");
    expect_help("plain", "  optimizer  one of  sgd      the rule\n");
    expect_help("plain.count", "  count  int   3        how many; from 1 to 100\n");
    expect_help("plain.optimizer", "Choose one optimizer:\n  sgd   \n  adam  \n");
    expect_help("plain.optimizer.adam", "  lr   float  0.001    learning rate; from 0 to 10\n");
    expect_help("model", "A list; each item:\nChoose one layer:\n  dense");
    expect_help("model", "Or a map:\n");
    expect_help("model.dense", "  units  int   required  width; from 1 to 1000\n");
    expect_help("model.dense", "A plain value sets units.\n");
    expect_help("model.3.dense", "units");
    expect_help("model.embed", "from the data");
    expect_help("model.residual.layers.dense", "units");
    expect_help("model.inputs.x", "its name");
}

TEST(job_help_suggests)
{
    tt_ctx *ctx = test_ctx();
    static const struct {
        const char *path, *message;
    } cases[] = {
        {"plian", "a job has no key 'plian'; did you mean 'plain'?"},
        {"plain.cout", "plain has no key 'cout'; did you mean 'count'?"},
        {"plain.count.x", "plain has no key 'count'; did you mean 'count'?"},
        {"plain.optimizer.admm", "plain.optimizer has no key 'admm'; did you mean 'adam'?"},
        {"model.desne", "model has no key 'desne'; did you mean 'dense'?"},
        {"qqqqqq", "a job has no key 'qqqqqq'"},
    };
    for (int i = 0; i < TTI_COUNT(cases); i++) {
        tti_text t = {.ctx = ctx};
        CHECK(tti_schema_help(ctx, &t, &top, cases[i].path) == TT_EINVAL);
        CHECK_STR(tt_last_error(ctx).message, cases[i].message);
        tti_text_free(&t);
        tt_clear_error(ctx);
    }
    CHECK_OK(tt_close(ctx));
}

TEST(job_tree_without_memory)
{
    test_need_yaml();
    const char *const sets[] = {"plain.sizes=[4, 5]", "model.0.dense.act=relu", NULL};
    const char *yaml = "plain: &p {count: 4, words: [a, b], optimizer: adam}\n"
                       "model: [dense: 4, residual: [dense: 5, flatten]]\n";
    int k = 1;
    for (; k < 2000; k++) {
        tt_ctx *ctx = test_ctx();
        tti_fail_alloc_at(ctx, k);
        char *text = through(ctx, yaml, sets, false);
        tti_fail_alloc_at(ctx, 0);
        bool done = text != NULL;
        ck_assert_msg(tt_status_of(ctx) == (done ? TT_OK : TT_ENOMEM), "allocation %d: %s", k,
                      tt_last_error(ctx).message);
        tti_free(ctx, text);
        tt_clear_error(ctx);
        CHECK_OK(tt_close(ctx));
        if (done)
            break;
    }
    CHECK(k > 5 && k < 2000);
}
