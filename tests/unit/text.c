/*
 * text.c - graphs as text: what is printed reads back to the same text, and nothing else does harm.
 */
#include "graph/text.h"
#include "../test.h"
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

// ---- an op with every kind of attribute ------------------------------------------------------

typedef struct all_attr {
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
} all_attr;

static const char *const modes[] = {"valid", "same", "explicit", NULL};

static const tt_option all_rows[] = {
    {"flag", TT_OPT_BOOL, "false", "", offsetof(all_attr, flag), 0, 0, NULL},
    {"count", TT_OPT_INT, "3", "", offsetof(all_attr, count), 1, 100, NULL},
    {"rate", TT_OPT_FLOAT, "0.1", "", offsetof(all_attr, rate), 0, 0, NULL},
    {"label", TT_OPT_STRING, "", "", offsetof(all_attr, label), 0, 0, NULL},
    {"mode", TT_OPT_ENUM, "same", "", offsetof(all_attr, mode), 0, 0, modes},
    {"pads", TT_OPT_INTS, "[]", "", offsetof(all_attr, pads), 0, 0, NULL},
    {"limit", TT_OPT_SIZE, "0", "", offsetof(all_attr, limit), 0, 0, NULL},
    {"dtype", TT_OPT_DTYPE, "f32", "", offsetof(all_attr, dtype), 0, 0, NULL},
    {"shape", TT_OPT_SHAPE, "[]", "", offsetof(all_attr, shape), 0, 0, NULL},
    {"given", TT_OPT_INT, NULL, "", offsetof(all_attr, given), 0, 0, NULL},
    TT_OPTION_END,
};

// Three outputs, all like input 0; the second has the attributes' type and shape.
static tt_status all_infer(tt_infer *q)
{
    const all_attr *a = q->attr;
    q->n_out = 3;
    for (int i = 0; i < 3; i++) {
        q->shape[i] = q->in[0]->shape;
        q->dtype[i] = q->in[0]->dtype;
    }
    q->shape[1] = a->shape;
    q->dtype[1] = a->dtype;
    return a->given == 13 ? TT_FAIL(q->ctx, TT_ESHAPE, "text_all: 13 brings bad luck") : TT_OK;
}

static const tt_op all_op = {
    .name = "text_all",
    .help = "has every kind of attribute",
    .inputs = 1,
    .max_inputs = -1,
    .outputs = 3,
    .types = TT_TYPES_ALL,
    .attrs = all_rows,
    .attr_size = sizeof(all_attr),
    .infer = all_infer,
};

static tt_status pair_infer(tt_infer *q)
{
    q->shape[0] = q->in[0]->shape;
    q->dtype[0] = q->in[0]->dtype;
    return TT_OK;
}

static const tt_op pair_op = {
    .name = "text_pair",
    .help = "takes two inputs and has no attributes",
    .inputs = 2,
    .types = TT_TYPES_ALL,
    .infer = pair_infer,
};

static tt_ctx *text_ctx(void)
{
    tt_ctx *ctx = test_ctx();
    CHECK_OK(tt_op_register(ctx, &all_op));
    CHECK_OK(tt_op_register(ctx, &pair_op));
    return ctx;
}

static all_attr plain_attr(tt_ctx *ctx)
{
    all_attr a;
    memset(&a, 0, sizeof(a));
    CHECK_OK(tti_options_default(ctx, all_rows, &a));
    a.given = 1;
    return a;
}

static tt_tensor *pair(tt_graph *g, tt_tensor *a, tt_tensor *b, const char *name)
{
    return tt_node_new(g, &pair_op, 2, (tt_tensor *[]){a, b}, NULL, name)->out;
}

// ---- round trips -----------------------------------------------------------------------------

// The text holds what rows describe: eight bytes in a row that none does must be zero.
static void check_undescribed(const tt_node *n)
{
    size_t size = n->attr == NULL ? 0 : n->op->attr_size, gap = 0;
    for (size_t i = 0; i < size; i++) {
        const tt_option *row = n->op->attrs;
        while (row != NULL && row->type != TT_OPT_END &&
               (i < row->offset || i >= row->offset + tti_value_bytes(row->type)))
            row++;
        gap = row != NULL && row->type != TT_OPT_END ? 0 : gap + 1;
        for (size_t k = 0; gap == 8 && k < 8; k++)
            ck_assert_msg(((const char *)n->attr)[i - k] == 0, "%s: no row describes byte %zu",
                          n->op->name, i - k);
        gap %= 8;
    }
}

// Prints, parses, prints: gives the text, which both times is the same. Free with tt_string_free().
static char *round_trip(tt_graph *g)
{
    tt_ctx *ctx = tt_graph_get_ctx(g);
    char *a = tt_graph_print(g);
    ck_assert_msg(a != NULL, "print: %s", tt_last_error(ctx).message);
    tt_graph *back = tt_graph_parse(ctx, a, strlen(a));
    ck_assert_msg(back != NULL, "%s in\n%s", tt_last_error(ctx).message, a);
    char *b = tt_graph_print(back);
    CHECK_STR(b, a);

    CHECK_INT(back->n_nodes, g->n_nodes);
    for (int64_t i = 0; i < g->n_nodes; i++) {
        const tt_node *x = g->nodes[i], *y = back->nodes[i];
        CHECK(x->op == y->op && x->key == y->key && x->n_after == y->n_after);
        CHECK(x->has_pin == y->has_pin && x->mixes_rows == y->mixes_rows);
        CHECK(x->data_bytes == y->data_bytes &&
              memcmp(x->data_bytes ? x->data : "", x->data_bytes ? y->data : "", x->data_bytes) ==
                  0);
        check_undescribed(x);
        for (int k = 0; k < x->n_out; k++)
            CHECK(memcmp(&x->outs[k]->layout, &y->outs[k]->layout, sizeof(tt_layout)) == 0);
    }
    tt_string_free(ctx, b);
    tt_graph_free(back);
    return a;
}

static void check_round_trip(tt_graph *g, const char *expected)
{
    char *s = round_trip(g);
    CHECK_STR(s, expected);
    tt_string_free(tt_graph_get_ctx(g), s);
}

TEST(an_empty_graph)
{
    tt_ctx *ctx = text_ctx();
    check_round_trip(tt_graph_new(ctx), "tutti graph 1\n");
    CHECK_OK(tt_close(ctx));
}

TEST(sources_round_trip)
{
    tt_ctx *ctx = text_ctx();
    tt_graph *g = tt_graph_new(ctx);
    tt_feed(g, .shape = TT_SHAPE(TT_BATCH, 784), .name = "x");
    tt_feed(g, .dtype = TT_I64, .shape = TT_SHAPE(-64), .name = "y");
    tt_variable(g, .shape = TT_SHAPE(784, 10), .init = {TT_INIT_GLOROT_UNIFORM, 0, 0}, .name = "w");
    tt_variable(g, .dtype = TT_BF16, .init = {TT_INIT_NORMAL, 0.1, 1.0 / 3}, .no_train = true,
                .name = "v");
    check_round_trip(g, "tutti graph 1\n"
                        "%x = feed {shape=[b, 784]}\n"
                        "%y = feed {dtype=i64, shape=[64b]}\n"
                        "%w = variable {shape=[784, 10], init=glorot_uniform}\n"
                        "%v = variable {dtype=bf16, init=normal, a=0.1, b=0.3333333333333333, "
                        "no_train=true}\n");
    CHECK_OK(tt_close(ctx));
}

TEST(every_kind_of_attribute_round_trips)
{
    tt_ctx *ctx = text_ctx();
    tt_graph *g = tt_graph_new(ctx);
    tt_tensor *x = tt_feed(g, .shape = TT_SHAPE(TT_BATCH, 2), .name = "x");
    all_attr a = plain_attr(ctx);
    CHECK(tt_node_new(g, &all_op, 1, &x, &a, "plain") != NULL);
    a = (all_attr){.flag = true,
                   .count = 99,
                   .rate = -1e-300,
                   .label = "a \"b\" \\ c\n\x01, {d}=[e] \xc3\xa9",
                   .mode = 2,
                   .pads = {3, {1, -2, INT64_MIN}},
                   .limit = (size_t)3 << 20,
                   .dtype = TT_U8,
                   .shape = TT_SHAPE(3, -2, 0),
                   .given = INT64_MAX};
    tt_node *n = tt_node_new(g, &all_op, 1, &x, &a, "full");
    CHECK(n != NULL);
    CHECK(tt_node_new(g, &pair_op, 2, (tt_tensor *[]){n->outs[2], n->outs[1]}, NULL, NULL) != NULL);
    check_round_trip(g,
                     "tutti graph 1\n"
                     "%x = feed {shape=[b, 2]}\n"
                     "%plain = text_all(%x) {given=1} : f32[b, 2], f32[], f32[b, 2]\n"
                     "%full = text_all(%x) {flag=true, count=99, rate=-1e-300, "
                     "label=\"a \\\"b\\\" \\\\ c\\x0a\\x01, {d}=[e] \xc3\xa9\", mode=explicit, "
                     "pads=[1, -2, -9223372036854775808], limit=3MiB, dtype=u8, shape=[3, 2b, 0], "
                     "given=9223372036854775807} : f32[b, 2], u8[3, 2b, 0], f32[b, 2]\n"
                     "%text_pair = text_pair(%full:2, %full:1) : f32[b, 2]\n");
    CHECK_OK(tt_close(ctx));
}

TEST(constants_keep_their_bits)
{
    tt_ctx *ctx = text_ctx();
    tt_graph *g = tt_graph_new(ctx);
    float f[] = {0.1f, -0.0f, 3.4028235e38f, INFINITY, 16777217.0f};
    double d[] = {0.1, -1e-310, M_PI};
    int64_t l[] = {INT64_MIN, INT64_MAX, 9007199254740993};
    uint8_t b[] = {1, 0}, odd[] = {2, 0}, u[] = {0, 255};
    uint16_t h[] = {0x3c00, 0x0001, 0xfbff}, bf[] = {0x3f80, 0x7f80, 0x3dcd};
    uint32_t payload = 0x7fc01234;
    tt_const(g, TT_F32, TT_SHAPE(5), f);
    tt_const(g, TT_F64, TT_SHAPE(3), d);
    tt_const(g, TT_I64, TT_SHAPE(1, 3), l);
    tt_const(g, TT_BOOL, TT_SHAPE(2), b);
    tt_const(g, TT_BOOL, TT_SHAPE(2), odd);
    tt_const(g, TT_U8, TT_SHAPE(2), u);
    tt_const(g, TT_F16, TT_SHAPE(3), h);
    tt_const(g, TT_BF16, TT_SHAPE(3), bf);
    tt_const(g, TT_F32, TT_SCALAR, &payload);
    tt_const(g, TT_F32, TT_SHAPE(0, 3), NULL);
    tt_fill(g, TT_F32, TT_SHAPE(100, 7), 0.1);
    tt_fill(g, TT_I32, TT_SHAPE(17), -3);
    check_round_trip(g, "tutti graph 1\n"
                        "%const = const {shape=[5]} data [0.1, -0, 3.4028235e+38, inf, 16777216]\n"
                        "%const_1 = const {dtype=f64, shape=[3]} data [0.1, -1e-310, "
                        "3.141592653589793]\n"
                        "%const_2 = const {dtype=i64, shape=[1, 3]} data [-9223372036854775808, "
                        "9223372036854775807, 9007199254740993]\n"
                        "%const_3 = const {dtype=bool, shape=[2]} data [1, 0]\n"
                        "%const_4 = const {dtype=bool, shape=[2]} data base64 AgA=\n"
                        "%const_5 = const {dtype=u8, shape=[2]} data [0, 255]\n"
                        "%const_6 = const {dtype=f16, shape=[3]} data [1, 5.96046e-08, -65504]\n"
                        "%const_7 = const {dtype=bf16, shape=[3]} data [1, inf, 0.100098]\n"
                        "%const_8 = const data base64 NBLAfw==\n"
                        "%const_9 = const {shape=[0, 3]} data []\n"
                        "%const_10 = const {shape=[100, 7]} data all 0.1\n"
                        "%const_11 = const {dtype=i32, shape=[17]} data all -3\n");
    for (int n = 17; n < 400; n += 31) // base64 with every length of rest
        test_uniform(g, (uint64_t)n, TT_SHAPE(n));
    uint8_t bytes[300];
    for (int i = 0; i < 300; i++)
        bytes[i] = (uint8_t)(i * 7);
    for (int n = 297; n <= 300; n++)
        tt_const(g, TT_U8, TT_SHAPE(n), bytes);
    tt_string_free(ctx, round_trip(g));
    CHECK_OK(tt_close(ctx));
}

TEST(names_places_and_order_round_trip)
{
    tt_ctx *ctx = text_ctx();
    tt_graph *g = tt_graph_new(ctx);
    tt_tensor *x = tt_feed(g, .name = "odd name, \"quoted\" (really) = %:\n\xff");
    tt_name_push(g, "outer");
    tt_device_push(g, "cpu:0");
    tt_tensor *y = pair(g, x, x, "y");
    tt_device_pop(g);
    tt_name_pop(g);
    tt_tensor *z = pair(g, y, x, "z");
    tt_tensor *p = pair(g, x, x, "p"), *q = pair(g, x, x, "q"), *r = pair(g, x, x, "r");
    tt_pin(z, "/job:worker/replica:0/task:1/device:GPU:2");
    CHECK_OK(tt_colocate(p, q));
    CHECK_OK(tt_colocate(y, z));                     // group 1, printed as 0
    CHECK_OK(tt_after(y, (tt_tensor *[]){p, q}, 2)); // later nodes
    CHECK_OK(tt_after(r, (tt_tensor *[]){x}, 1));
    check_round_trip(
        g, "tutti graph 1\n"
           "%\"odd name, \\\"quoted\\\" (really) = %:\\x0a\xff\" = feed\n"
           "%outer/y = text_pair(%\"odd name, \\\"quoted\\\" (really) = %:\\x0a\xff\", "
           "%\"odd name, \\\"quoted\\\" (really) = %:\\x0a\xff\") @/device:CPU:0 colocate(0) : "
           "f32[]\n"
           "%z = text_pair(%outer/y, %\"odd name, \\\"quoted\\\" (really) = %:\\x0a\xff\") "
           "@/job:worker/replica:0/task:1/device:GPU:2 colocate(0) : f32[]\n"
           "%p = text_pair(%\"odd name, \\\"quoted\\\" (really) = %:\\x0a\xff\", "
           "%\"odd name, \\\"quoted\\\" (really) = %:\\x0a\xff\") colocate(1) : f32[]\n"
           "%q = text_pair(%\"odd name, \\\"quoted\\\" (really) = %:\\x0a\xff\", "
           "%\"odd name, \\\"quoted\\\" (really) = %:\\x0a\xff\") colocate(1) : f32[]\n"
           "%r = text_pair(%\"odd name, \\\"quoted\\\" (really) = %:\\x0a\xff\", "
           "%\"odd name, \\\"quoted\\\" (really) = %:\\x0a\xff\") : f32[]\n"
           "after %outer/y: %p, %q\n"
           "after %r: %\"odd name, \\\"quoted\\\" (really) = %:\\x0a\xff\"\n");
    CHECK_OK(tt_close(ctx));
}

TEST(a_training_step_round_trips)
{
    tt_ctx *ctx = text_ctx();
    tt_graph *g = tt_graph_new(ctx);
    tt_tensor *x = tt_feed(g, .shape = TT_SHAPE(TT_BATCH, 28, 28, 1), .name = "x");
    tt_tensor *labels = tt_feed(g, .dtype = TT_I32, .shape = TT_SHAPE(TT_BATCH), .name = "labels");
    tt_tensor *k = tt_variable(g, .shape = TT_SHAPE(3, 3, 1, 8), .init = {TT_INIT_HE_NORMAL, 0, 0},
                               .name = "k");
    tt_tensor *w = tt_variable(g, .shape = TT_SHAPE(14 * 14 * 8, 10), .name = "w");
    tt_tensor *h = tt_conv2d(g, x, k, .padding = TT_SAME, .act = TT_RELU);
    h = tt_flatten(g, tt_max_pool2d(g, h, .size = {2, 2}));
    h = tt_dropout(g, h, 0.25);
    tt_tensor *loss = tt_mean(g, tt_cross_entropy(g, tt_matmul(g, h, w), labels));
    tt_tensor *vars[] = {k, w}, *grads[2];
    CHECK_OK(tt_grad(g, loss, NULL, 2, vars, grads));
    for (int i = 0; i < 2; i++)
        CHECK(tt_update_adam(g, vars[i], grads[i], .weight_decay = 0.01) != NULL);
    tt_string_free(ctx, round_trip(g));
    CHECK_OK(tt_close(ctx));
}

// ---- reading ---------------------------------------------------------------------------------

static tt_graph *parse(tt_ctx *ctx, const char *s)
{
    return tt_graph_parse(ctx, s, strlen(s));
}

// Just above the middle of two numbers of the type: an f32 or f64 in between would be the middle.
TEST(constants_are_rounded_once)
{
    static const struct {
        const char *text;
        tt_dtype type;
        uint32_t bits;
    } cases[] = {
        {"1.0000000596046448", TT_F32, 0x3f800001},
        {"-1.00000005960464477539062500000001", TT_F32, 0xbf800001},
        {"1.000000059604644775390625", TT_F32, 0x3f800000},
        {"1.00390625000000000000001", TT_BF16, 0x3f81},
        {"-1.0039062501", TT_BF16, 0xbf81},
        {"1.00390625", TT_BF16, 0x3f80},
        {"1.01171874999999999", TT_BF16, 0x3f81},
        {"1.00048828125000000000001", TT_F16, 0x3c01},
        {"1.00048828125", TT_F16, 0x3c00},
        {"1e999", TT_F16, 0x7c00},
    };
    tt_ctx *ctx = text_ctx();
    char text[200];
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        uint32_t got = 0;
        snprintf(text, sizeof(text), "tutti graph 1\n%%x = const {dtype=%s} data [%s]\n",
                 tt_dtype_name(cases[i].type), cases[i].text);
        tt_graph *g = parse(ctx, text);
        ck_assert_msg(g != NULL, "%s", tt_last_error(ctx).message);
        tt_tensor *x = tt_graph_find(g, "x");
        CHECK_OK(tt_eval(g, x, &got, 1));
        ck_assert_msg(got == cases[i].bits, "%s is %#x, not %#x", text, got, cases[i].bits);
    }
    uint16_t half;
    tt_graph *g = tt_graph_new(ctx);
    CHECK_OK(tt_eval(g, tt_fill(g, TT_BF16, TT_SCALAR, 1.00390625 + 1e-12), &half, 1));
    CHECK_INT(half, 0x3f81);
    CHECK_OK(tt_eval(g, tt_fill(g, TT_F16, TT_SCALAR, -1.00048828125 - 1e-12), &half, 1));
    CHECK_INT(half, 0xbc01);
    CHECK_OK(tt_eval(g, tt_fill(g, TT_BF16, TT_SCALAR, 1.01171875 - 1e-12), &half, 1));
    CHECK_INT(half, 0x3f81);
    CHECK_OK(tt_close(ctx));
}

TEST(loose_texts_are_read)
{
    tt_ctx *ctx = text_ctx();
    tt_graph *g = parse(ctx, "tutti graph 1\r\n"
                             "# a comment\n"
                             "\n"
                             "   \t\n"
                             "%x=feed{shape=[b,3],dtype=f32}   # not a comment\n");
    CHECK(g == NULL);
    CHECK_MESSAGE(ctx, "line 5 column 34");
    tt_clear_error(ctx);
    g = parse(ctx, "tutti graph 1\r\n"
                   "# a comment\n"
                   "\n"
                   "   \t\n"
                   "  %x=feed{shape=[ b,3 ]}\t\r\n"
                   "%c = const() {shape=[2], dtype=f32} data [ 0.5 ,1e3 ] colocate( 1 )@cpu:0\n"
                   "%\"y\" = text_pair ( %\"x\" , %x:0 ): f32[-1, 3]");
    ck_assert_msg(g != NULL, "%s", tt_last_error(ctx).message);
    char *s = tt_graph_print(g);
    CHECK_STR(s, "tutti graph 1\n"
                 "%x = feed {shape=[b, 3]}\n"
                 "%c = const {shape=[2]} data [0.5, 1000] @/device:CPU:0 colocate(0)\n"
                 "%y = text_pair(%x, %x) : f32[b, 3]\n");
    tt_string_free(ctx, s);
    CHECK_OK(tt_close(ctx));
}

#define HEAD "tutti graph 1\n%x = feed\n"

TEST(bad_texts_have_messages)
{
    static const struct {
        const char *text, *message;
    } cases[] = {
        {"", "graph text line 1 column 1: 'tutti graph 1' expected"},
        {"tutti grape 1\n", "line 1 column 1: 'tutti graph 1' expected"},
        {"tutti graph 2\n", "line 1 column 13: this version reads graph texts of version 1 only"},
        {"tutti graph 12\n", "line 1 column 14: this version reads"},
        {HEAD "x = feed\n", "line 3 column 1: a name beginning with '%' expected"},
        {HEAD "%x = feed\n", "line 3 column 1: there already is a node 'x'"},
        {HEAD "%y feed\n", "line 3 column 4: '=' expected after the name"},
        {HEAD "%y\n", "line 3 column 3: '=' is missing after the name"},
        {HEAD "% = feed\n", "line 3 column 3: a name expected"},
        {HEAD "%\"\" = feed\n", "a name is empty"},
        {HEAD "%\"y = feed\n", "line 3 column 2: the quotes of a name are not closed"},
        {HEAD "%\"y\\n\" = feed\n", "only \\\\, \\\" and \\xHH may be escaped"},
        {HEAD "%\"y\\xg0\" = feed\n", "\\x takes two hexadecimal digits"},
        {HEAD "%\"y\\x00\" = feed\n", "a zero byte in a name"},
        {HEAD "%y = \n", "an op is missing"},
        {HEAD "%y = text_piar(%x, %x)\n",
         "line 3 column 6: unknown op 'text_piar'; did you mean 'text_pair'?"},
        {HEAD "%y = qqqqqqqqqqqq(%x)\n", "unknown op 'qqqqqqqqqqqq'"},
        {HEAD "%y = text_pair(%x, %z)\n",
         "line 3 column 20: there is no node 'z' before this line"},
        {HEAD "%y = text_pair(%x %x)\n", "')' expected after the inputs"},
        {HEAD "%y = text_pair(%x, %x\n", "')' is missing after the inputs"},
        {HEAD "%y = text_pair(%x, %x:1)\n", "'x' has no output 1, only 1"},
        {HEAD "%y = text_pair(%x, %x:99999999999)\n", "the number of an output is above"},
        {HEAD "%y = text_pair(%x)\n", "graph text line 3: text_pair: takes 2 inputs, got 1"},
        {HEAD "%y = text_pair(%x, %x) {a=1}\n", "text_pair has no attribute 'a'"},
        {HEAD "%y = text_all(%x) {giben=1}\n",
         "line 3 column 20: text_all has no attribute 'giben'; did you mean 'given'?"},
        {HEAD "%y = text_all(%x)\n", "text_all: attribute 'given' must be given"},
        {HEAD "%y = text_all(%x) {given=1, given=2}\n", "attribute 'given' is given twice"},
        {HEAD "%y = text_all(%x) {given}\n", "'=' expected after an attribute's name"},
        {HEAD "%y = text_all(%x) {given=}\n", "a value expected"},
        {HEAD "%y = text_all(%x) {given=x}\n", "text_all: given 'x' is not an integer"},
        {HEAD "%y = text_all(%x) {given=1, count=101}\n", "text_all: count '101' is above 100"},
        {HEAD "%y = text_all(%x) {given=1, mode=sane}\n", "did you mean 'same'?"},
        {HEAD "%y = text_all(%x) {given=1, pads=[1, 2}\n", "the bracket of a list is not closed"},
        {HEAD "%y = text_all(%x) {given=1, shape=[b, b]}\n", "is not a shape"},
        {HEAD "%y = text_all(%x) {given=1\n", "'}' is missing after the attributes"},
        {HEAD "%y = text_all(%x) {given=13}\n", "graph text line 3: text_all: 13 brings bad luck"},
        {HEAD "%y = text_all(%x) {given=1} : f32[], f32[3], f32[]\n",
         "line 3 column 38: output 1 of 'y' is written as f32[3] but is f32[]"},
        {HEAD "%y = text_all(%x) {given=1} : f32[], i32[], f32[]\n", "is written as i32[]"},
        {HEAD "%y = text_all(%x) {given=1} : f32[], f32[]\n", "',' is missing after a type"},
        {HEAD "%y = text_all(%x) {given=1} : f32, f32[], f32[]\n", "a shape in brackets expected"},
        {HEAD "%y = text_all(%x) {given=1} : f31[]\n", "'f31' is not an element type"},
        {HEAD "%y = text_pair(%x, %x) : f32[] %x\n", "line 3 column 32: the line should end here"},
        {HEAD "%y = text_pair(%x, %x) colocated(1)\n", "expected, not 'colocated'"},
        {HEAD "%y = text_pair(%x, %x) colocate(x)\n", "colocate expected"},
        {HEAD "%y = text_pair(%x, %x) colocate(99999999)\n", "colocate is above"},
        {HEAD "%y = text_pair(%x, %x) stage(1)\n", "a stage is a pin; use @local:1"},
        {HEAD "%y = text_pair(%x, %x) @\n", "a device is missing"},
        {HEAD "%y = text_pair(%x, %x) @nonsense:x\n", "graph text line 3: "},
        {HEAD "%y = feed {shape=[99999999999999, 99999999]}\n", "is too large"},
        {HEAD "%y = variable {shape=[b]}\n", "open dimension"},
        {HEAD "%y = feed data [1]\n", "only const has data"},
        {HEAD "%y = const {shape=[1]}\n", "const needs data"},
        {HEAD "%y = const {shape=[2]} data [1]\n", "',' expected after a number"},
        {HEAD "%y = const {shape=[1]} data [1, 2]\n", "']' expected after the last element"},
        {HEAD "%y = const {shape=[1]} data [one]\n", "'one' is not a value of type f32"},
        {HEAD "%y = const {dtype=u8} data [256]\n", "'256' is not a value of type u8"},
        {HEAD "%y = const {dtype=bool} data [-1]\n", "'-1' is not a value of type bool"},
        {HEAD "%y = const data one\n", "data is 'all', 'base64' or a list in brackets"},
        {HEAD "%y = const {shape=[2]} data base64 AAAAAA=AAAA=\n", "this is not base64 of 8 bytes"},
        {HEAD "%y = const data base64 AAAA#A==\n", "this is not base64 of 4 bytes"},
        {HEAD "%y = const {shape=[b]} data all 0\n", "open dimension"},
        {HEAD "%y = const {shape=[1000000000, 1000]} data all 0\n", "constants take more than"},
        {HEAD "%y = const {shape=[1000000]} data [0]\n", "the text ends before 1000000 elements"},
        {HEAD "%y = const {shape=[10000]} data base64 AA==\n", "the text ends before"},
        {HEAD "after %x %x\n", "':' expected after the node that waits"},
        {HEAD "after %x: %y\n", "there is no node 'y' before this line"},
        {HEAD "after %x: %x\n",
         "graph text line 3: 'x' cannot run after 'x': that would be a cycle"},
        {HEAD "%y = text_pair(%x, %x)\nafter %x: %y\n", "line 4: 'x' cannot run after 'y'"},
        {HEAD "%y = feed\n%z = feed\nafter %y: %z\nafter %z: %x\nafter %x: %y\n", "a cycle"},
    };
    tt_ctx *ctx = text_ctx();
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        tt_alloc_stats before = tt_alloc_stats_get(ctx);
        CHECK(parse(ctx, cases[i].text) == NULL);
        ck_assert_msg(strstr(tt_last_error(ctx).message, cases[i].message) != NULL,
                      "'%s' but expected '%s' for\n%s", tt_last_error(ctx).message,
                      cases[i].message, cases[i].text);
        tt_clear_error(ctx);
        CHECK_INT(tt_alloc_stats_get(ctx).blocks, before.blocks);
    }
    CHECK(tt_graph_parse(ctx, NULL, 5) == NULL);
    CHECK_INT(tt_close(ctx), TT_EINVAL);
}

static const char sample[] =
    "tutti graph 1\n"
    "%x = feed {shape=[b, 784]}\n"
    "%w = variable {shape=[784, 10], init=normal, a=0.5, b=0.25}\n"
    "%\"odd \\\"name\\\" \\x0a\" = const {shape=[3]} data [1, -0.5, inf]\n"
    "%c = const {dtype=u8, shape=[17]} data base64 AAECAwQFBgcICQoLDA0ODxA=\n"
    "%d = const {shape=[100, 3]} data all 0.125\n"
    "%a = text_all(%x) {label=\"a, b\", mode=explicit, pads=[1, 2], given=4} @/device:CPU:0 "
    "colocate(0) : f32[b, 784], f32[], f32[b, 784]\n"
    "%y = text_pair(%a:2, %\"odd \\\"name\\\" \\x0a\") colocate(0) : f32[b, 784]\n"
    "after %y: %w, %c\n";

TEST(texts_cut_anywhere_do_no_harm)
{
    tt_ctx *ctx = text_ctx();
    size_t n = sizeof(sample) - 1;
    for (size_t cut = 0; cut <= n; cut++) {
        char *copy = malloc(cut + 1); // exact: the address sanitizer sees reads past the end
        memcpy(copy, sample, cut);
        char *exact = realloc(copy, cut > 0 ? cut : 1);
        tt_graph *g = tt_graph_parse(ctx, exact, cut);
        ck_assert_msg((g == NULL) == (tt_status_of(ctx) != TT_OK), "cut at %zu", cut);
        tt_graph_free(g);
        tt_clear_error(ctx);
        free(exact);
    }
    tt_graph *g = tt_graph_parse(ctx, sample, n);
    char *s = tt_graph_print(g);
    CHECK_STR(s, sample);
    tt_string_free(ctx, s);
    CHECK_OK(tt_close(ctx));
}

TEST(texts_with_any_byte_changed_do_no_harm)
{
    tt_ctx *ctx = text_ctx();
    char text[sizeof(sample)];
    static const char bytes[] = "\0\n\r \"%:,=[]{}()@#\\b-9\xff";
    for (size_t i = 0; i < sizeof(sample) - 1; i++) {
        for (size_t k = 0; k < sizeof(bytes) - 1; k++) {
            memcpy(text, sample, sizeof(sample));
            text[i] = bytes[k];
            tt_graph *g = tt_graph_parse(ctx, text, sizeof(sample) - 1);
            CHECK((g == NULL) == (tt_status_of(ctx) != TT_OK));
            tt_graph_free(g);
            tt_clear_error(ctx);
        }
    }
    CHECK_OK(tt_close(ctx));
}

TEST(reading_and_printing_survive_any_failed_allocation)
{
    tt_ctx *ctx = text_ctx();
    for (int64_t n = 1;; n++) {
        tt_alloc_stats before = tt_alloc_stats_get(ctx);
        tti_fail_alloc_at(ctx, n);
        tt_graph *g = tt_graph_parse(ctx, sample, sizeof(sample) - 1);
        char *s = tt_graph_print(g);
        tti_fail_alloc_at(ctx, 0);
        bool done = s != NULL;
        ck_assert_msg(done || tt_status_of(ctx) == TT_ENOMEM, "allocation %lld", (long long)n);
        tt_string_free(ctx, s);
        tt_graph_free(g);
        tt_clear_error(ctx);
        CHECK_INT(tt_alloc_stats_get(ctx).blocks, before.blocks);
        if (done)
            break;
        CHECK(n < 10000);
    }
    CHECK_OK(tt_close(ctx));
}

TEST(large_graphs_are_read_in_time)
{
    tt_ctx *ctx = text_ctx();
    tti_text t = {.ctx = ctx};
    tti_text_add(&t, "%s\n%%n0 = feed\n", TTI_TEXT_MAGIC);
    enum {
        N = 20000
    };
    for (int i = 1; i < N; i++)
        tti_text_add(&t, "%%n%d = text_pair(%%n%d, %%n%d) : f32[]\n", i, i - 1, i / 2);
    for (int i = 2; i < N; i += 2) // every second one waits for its neighbour: no cycle, many edges
        tti_text_add(&t, "after %%n%d: %%n%d\n", i, i - 1);
    char *s = tti_text_take(&t);
    tt_graph *g = tt_graph_parse(ctx, s, strlen(s));
    ck_assert_msg(g != NULL, "%s", tt_last_error(ctx).message);
    CHECK_INT(g->n_nodes, N);
    tt_string_free(ctx, s);
    CHECK_OK(tt_close(ctx));
}

TEST(null_gives_null)
{
    CHECK(tt_graph_print(NULL) == NULL);
    CHECK(tt_graph_parse(NULL, "", 0) == NULL);
    tt_string_free(NULL, NULL);
}
