/*
 * option.c - option rows: defaults, text in and out, bounds, the environment, help, suggestions.
 */
#include "../test.h"
#include "base/value.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

typedef struct conf {
    bool flag;
    int64_t count;
    double rate;
    char label[TT_OPT_STRING_MAX];
    int mode;
    tt_ints pads;
    size_t limit;
    tt_dtype dtype;
    tt_shape shape;
    int64_t given;
} conf;

static const char *const modes[] = {"valid", "same", "explicit", NULL};

static const tt_option rows[] = {
    {"flag", TT_OPT_BOOL, "true", "a switch", offsetof(conf, flag), 0, 0, NULL},
    {"count", TT_OPT_INT, "3", "a number", offsetof(conf, count), 1, 100, NULL},
    {"rate", TT_OPT_FLOAT, "0.1", "a rate", offsetof(conf, rate), 0, 0, NULL},
    {"label", TT_OPT_STRING, "", "a word", offsetof(conf, label), 0, 0, NULL},
    {"mode", TT_OPT_ENUM, "same", "how", offsetof(conf, mode), 0, 0, modes},
    {"pads", TT_OPT_INTS, "[1, -2]", "", offsetof(conf, pads), 0, 0, NULL},
    {"limit", TT_OPT_SIZE, "512MiB", "", offsetof(conf, limit), 0, 0, NULL},
    {"dtype", TT_OPT_DTYPE, "bf16", "", offsetof(conf, dtype), 0, 0, NULL},
    {"shape", TT_OPT_SHAPE, "[b, 3]", "", offsetof(conf, shape), 0, 0, NULL},
    {"given", TT_OPT_INT, NULL, "", offsetof(conf, given), 0, 0, NULL},
    TT_OPTION_END,
};

static const tt_option *row_of(const char *name)
{
    const tt_option *row = rows;
    while (strcmp(row->name, name) != 0)
        row++;
    return row;
}

TEST(defaults_are_filled)
{
    tt_ctx *ctx = test_ctx();
    conf c;
    memset(&c, 0xAA, sizeof(c));
    CHECK_OK(tti_options_default(ctx, rows, &c));
    CHECK(c.flag && c.count == 3 && c.rate == 0.1 && c.label[0] == '\0' && c.mode == 1);
    CHECK(c.pads.n == 2 && c.pads.v[0] == 1 && c.pads.v[1] == -2);
    CHECK(c.limit == (size_t)512 << 20 && c.dtype == TT_BF16);
    CHECK(c.shape.rank == 2 && c.shape.dim[0] == TT_BATCH && c.shape.dim[1] == 3);
    CHECK_INT(c.given, 0);
    for (const tt_option *row = rows; row->type != TT_OPT_END; row++)
        CHECK(tti_option_is_default(row, &c) == (row->value != NULL));
    CHECK_OK(tt_close(ctx));
}

TEST(values_print_as_they_parse)
{
    static const struct {
        const char *name, *text, *printed;
    } cases[] = {
        {"flag", "yes", "true"},
        {"flag", "0", "false"},
        {"count", "42", "42"},
        {"rate", "1e-3", "0.001"},
        {"rate", "0.30000000000000004", "0.30000000000000004"},
        {"rate", "-0", "-0"},
        {"rate", "inf", "inf"},
        {"rate", "0x1.8p1", "3"},
        {"rate", "1.7976931348623157e308", "1.7976931348623157e+308"},
        {"rate", "5e-324", "4.94065645841247e-324"},
        {"label", "any {text}, \"really\"", "any {text}, \"really\""},
        {"mode", "explicit", "explicit"},
        {"pads", "1,2,3", "[1, 2, 3]"},
        {"pads", "[ -9223372036854775808 ]", "[-9223372036854775808]"},
        {"pads", "[]", "[]"},
        {"pads", "", "[]"},
        {"limit", "0", "0"},
        {"limit", "1.5GiB", "1536MiB"},
        {"limit", "1000", "1000"},
        {"limit", "2 TiB", "2TiB"},
        {"limit", "5MB", "5000000"},
        {"limit", "18446744073709551615", "18446744073709551615"},
        {"dtype", "i64", "i64"},
        {"shape", "[]", "[]"},
        {"shape", "[64b, 0, 7]", "[64b, 0, 7]"},
        {"shape", "-1, 784", "[b, 784]"},
    };
    tt_ctx *ctx = test_ctx();
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        conf c = {0}, d = {0};
        CHECK_OK(tti_options_default(ctx, rows, &c));
        CHECK_OK(tti_options_default(ctx, rows, &d));
        CHECK_OK(tti_option_set(ctx, rows, &c, "conf", cases[i].name, cases[i].text));
        tti_text t = {.ctx = ctx};
        tti_option_print(&t, row_of(cases[i].name), &c);
        CHECK_STR(t.s != NULL ? t.s : "", cases[i].printed);
        CHECK_OK(tti_option_set(ctx, rows, &d, "conf", cases[i].name, cases[i].printed));
        CHECK(memcmp(&c, &d, sizeof(c)) == 0);
        tti_text_free(&t);
    }
    CHECK_OK(tt_close(ctx));
}

TEST(bad_values_name_the_culprit)
{
    static const struct {
        const char *name, *text, *message;
    } cases[] = {
        {"flag", "maybe", "conf: flag 'maybe' is not true or false"},
        {"count", "0", "conf: count '0' is below 1"},
        {"count", "101", "conf: count '101' is above 100"},
        {"count", "3.5", "conf: count '3.5' is not an integer"},
        {"count", "99999999999999999999", "is not an integer"},
        {"count", "", "not an integer"},
        {"rate", "fast", "conf: rate 'fast' is not a number"},
        {"mode", "sume", "conf: mode 'sume' is unknown; did you mean 'same'?"},
        {"mode", "reflect", "conf: mode 'reflect' is not one of valid, same, explicit"},
        {"pads", "[1, 2", "is not a list"},
        {"pads", "[1,, 2]", "is not a list"},
        {"pads", "[1, 2,]", "is not a list"},
        {"pads", "[1 2]", "is not a list"},
        {"pads", "1]", "is not a list"},
        {"pads", "[b]", "is not a list"},
        {"pads", "1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17", "at most 16"},
        {"limit", "lots", "conf: limit 'lots' is not a size"},
        {"limit", "-1", "is not a size"},
        {"limit", "99999999TiB", "is not a size"},
        {"limit", "18446744073709551616", "is not a size"},
        {"dtype", "f33", "conf: dtype 'f33' is not an element type"},
        {"shape", "[b, b]", "is not a shape"},
        {"shape", "[1,2,3,4,5,6,7,8,9]", "at most 8 dimensions"},
        {"shape", "[-3b]", "is not a shape"},
        {"shape", "[0b]", "is not a shape"},
        {"cuont", "3", "conf: unknown option 'cuont'; did you mean 'count'?"},
        {"zzzzzz", "3", "conf: unknown option 'zzzzzz'"},
    };
    tt_ctx *ctx = test_ctx();
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        conf c = {0}, zero = {0};
        CHECK_INT(tti_option_set(ctx, rows, &c, "conf", cases[i].name, cases[i].text), TT_EINVAL);
        CHECK_MESSAGE(ctx, cases[i].message);
        CHECK(memcmp(&c, &zero, sizeof(c)) == 0); // nothing is half-written
        tt_clear_error(ctx);
    }
    char text[TT_OPT_STRING_MAX + 1];
    memset(text, 'a', sizeof(text) - 1);
    text[sizeof(text) - 1] = '\0';
    conf c = {0};
    CHECK_INT(tti_option_set(ctx, rows, &c, "conf", "label", text), TT_EINVAL);
    CHECK_MESSAGE(ctx, "is too long");
    tt_clear_error(ctx);
    text[TT_OPT_STRING_MAX - 1] = '\0';
    CHECK_OK(tti_option_set(ctx, rows, &c, "conf", "label", text));
    CHECK_OK(tt_close(ctx));
}

TEST(every_double_reads_back)
{
    uint64_t x = 88172645463325252u;
    for (int i = 0; i < 20000; i++) {
        char text[TTI_DOUBLE_TEXT];
        double d, back = 0;
        x ^= x << 13, x ^= x >> 7, x ^= x << 17;
        memcpy(&d, &x, sizeof(d));
        if (isnan(d))
            continue;
        CHECK(tti_double_parse(tti_double_text(d, text), &back));
        CHECK(memcmp(&d, &back, sizeof(d)) == 0);
    }
}

TEST(environment_is_read_by_row)
{
    tt_ctx *ctx = test_ctx();
    conf c;
    setenv("TUTTI_CONF_COUNT", "7", 1);
    setenv("TUTTI_CONF_MODE", "valid", 1);
    CHECK_OK(tti_options_default(ctx, rows, &c));
    CHECK_OK(tti_options_env(ctx, rows, &c, "conf"));
    CHECK(c.count == 7 && c.mode == 0 && c.rate == 0.1);
    CHECK_STR(tti_env("TUTTI_CONF_COUNT"), "7");
    CHECK(tti_env("TUTTI_CONF_NOT_SET") == NULL);

    setenv("TUTTI_CONF_COUNT", "many", 1);
    CHECK_INT(tti_options_env(ctx, rows, &c, "conf"), TT_EINVAL);
    CHECK_MESSAGE(ctx, "TUTTI_CONF_COUNT 'many'");
    CHECK_INT(tt_close(ctx), TT_EINVAL);
}

TEST(help_shows_every_row)
{
    tt_ctx *ctx = test_ctx();
    tti_text t = {.ctx = ctx};
    tti_options_help(&t, rows);
    for (const tt_option *row = rows; row->type != TT_OPT_END; row++)
        CHECK(strstr(t.s, row->name) != NULL);
    CHECK(strstr(t.s, "how: valid, same, explicit (default same)") != NULL);
    CHECK(strstr(t.s, "from 1 to 100 (default 3)") != NULL);
    CHECK(strstr(t.s, "required") != NULL);
    tti_text_free(&t);
    CHECK_OK(tt_close(ctx));
}

TEST(a_bad_default_is_found)
{
    static const tt_option bad[] = {
        {"n", TT_OPT_INT, "three", "", 0, 0, 0, NULL},
        TT_OPTION_END,
    };
    tt_ctx *ctx = test_ctx();
    int64_t n;
    CHECK_INT(tti_options_default(ctx, bad, &n), TT_EINVAL);
    CHECK_MESSAGE(ctx, "its default 'three'");
    CHECK_INT(tt_close(ctx), TT_EINVAL);
}

TEST(rows_of_every_op_fit_its_attributes)
{
    tt_ctx *ctx = test_ctx();
    const tt_op *op;
    for (int i = 0; (op = tt_op_at(ctx, i)) != NULL; i++) {
        uint8_t *covered = calloc(op->attr_size + 1, 1), *attr = calloc(op->attr_size + 1, 1);
        for (const tt_option *row = op->attrs; row != NULL && row->type != TT_OPT_END; row++) {
            size_t bytes = tti_value_bytes(row->type);
            ck_assert_msg(row->offset + bytes <= op->attr_size, "%s.%s is outside", op->name,
                          row->name);
            for (size_t k = 0; k < bytes; k++) {
                ck_assert_msg(covered[row->offset + k] == 0, "%s.%s overlaps", op->name, row->name);
                covered[row->offset + k] = 1;
            }
        }
        CHECK_OK(tti_options_default(ctx, op->attrs, attr));
        ck_assert_msg(op->help != NULL && op->help[0] != '\0', "%s has no help", op->name);
        free(covered);
        free(attr);
    }
    CHECK_OK(tt_close(ctx));
}
