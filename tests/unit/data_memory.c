/*
 * data_memory.c - arrays of the program as a data set: x and y, or any number of named fields, each
 * with its own type and shape; and what is refused.
 */
#include "test.h"

#define COUNT 12

typedef struct arrays {
    float left[COUNT * 3], right[COUNT * 4], size[COUNT];
    int32_t kind[COUNT];
} arrays;

static void fill(arrays *a)
{
    test_fill(a->left, COUNT * 3, 1, -1, 1);
    test_fill(a->right, COUNT * 4, 2, -1, 1);
    test_fill(a->size, COUNT, 3, -1, 1);
    for (int i = 0; i < COUNT; i++)
        a->kind[i] = i * 5 % 3;
}

static tt_data *four_fields(tt_ctx *ctx, const arrays *a)
{
    return tt_memory(ctx, .count = COUNT, .batch = 6,
                     .fields = {tt_array("left", a->left, TT_F32, TT_SHAPE(3)),
                                tt_array("right", a->right, TT_F32, TT_SHAPE(2, 2)),
                                tt_array("kind", a->kind, TT_I32, TT_SCALAR),
                                tt_array("size", a->size, TT_F32, TT_SHAPE(1))});
}

TEST(memory_has_any_number_of_named_fields)
{
    tt_ctx *ctx = test_ctx();
    static arrays a;
    fill(&a);
    tt_data *d = four_fields(ctx, &a);
    tt_field f[TT_MAX_FIELDS];
    tt_batch_data batch;
    CHECK(d != NULL);
    CHECK_INT(tt_data_fields(d, f), 4);
    CHECK_STR(f[1].name, "right");
    CHECK(f[1].shape.rank == 2 && f[1].dtype == TT_F32 && f[2].classes == 3);
    CHECK_OK(tt_data_start(d, 0, 0));
    CHECK_OK(tt_data_next(d, &batch));
    for (int r = 0; r < 6; r++) {
        int64_t i = tt_data_order(d, 0, r);
        CHECK(memcmp((const float *)batch.fields[0] + r * 3, a.left + i * 3, 12) == 0);
        CHECK(memcmp((const float *)batch.fields[1] + r * 4, a.right + i * 4, 16) == 0);
        CHECK(((const int32_t *)batch.fields[2])[r] == a.kind[i]);
        CHECK(((const float *)batch.fields[3])[r] == a.size[i]);
    }
    tt_data_stop(d);
    CHECK_OK(tt_close(ctx));
}

static tt_status read_record(tt_ctx *ctx, void *self, int64_t i, void *const *out)
{
    const arrays *a = self;
    (void)ctx;
    memcpy(out[0], a->left + i * 3, 12);
    memcpy(out[1], a->right + i * 4, 16);
    memcpy(out[2], a->kind + i, 4);
    memcpy(out[3], a->size + i, 4);
    return TT_OK;
}

// Two inputs and two targets, matched by name: the bits of a source written by hand.
TEST(a_model_with_two_inputs_and_outputs_trains_from_memory)
{
    static arrays a;
    tt_hash hash[2];
    fill(&a);
    for (int k = 0; k < 2; k++) {
        tt_ctx *ctx = test_ctx();
        tt_source source = {.count = COUNT,
                            .n_fields = 4,
                            .fields = {{.name = "left", .shape = TT_SHAPE(3)},
                                       {.name = "right", .shape = TT_SHAPE(2, 2)},
                                       {.name = "kind", .dtype = TT_I32, .classes = 3},
                                       {.name = "size", .shape = TT_SHAPE(1)}},
                            .self = &a,
                            .read = read_record};
        tt_data *d = k == 0 ? four_fields(ctx, &a) : tt_data_new(ctx, &source, .batch = 6);
        tt_model *m = tt_model_new(ctx);
        tt_tensor *right = tt_input(m, .shape = {2, 2}, .name = "right"); // in another order
        tt_tensor *left = tt_input(m, .shape = {3}, .name = "left");
        tt_tensor *both = tt_layer_concat(m, .from = {left, tt_layer_flatten(m, .from = {right})});
        tt_output(m, tt_layer_dense(m, .units = 3, .from = {both}), "class");
        tt_output(m, tt_layer_dense(m, .units = 1, .from = {both}), "length");
        tt_compile(m, .losses = {tt_loss(.kind = TT_CROSS_ENTROPY, .target = "kind"),
                                 tt_loss(.kind = TT_MSE, .target = "size")});
        ck_assert_msg(tt_fit(m, d, .epochs = 3) == TT_OK, "%s", tt_last_error(ctx).message);
        CHECK_OK(tt_model_hash(m, &hash[k]));
        CHECK_OK(tt_close(ctx));
    }
    CHECK(hash[0].low == hash[1].low && hash[0].high == hash[1].high);
}

TEST(memory_names_what_is_wrong_with_its_fields)
{
    static const float x[4];
    static const tt_array no_size = {.name = "a", .data = x};
    const struct {
        tt_memory_opts o;
        tt_status st;
        const char *words;
    } bad[] = {
        {{.count = 4}, TT_EINVAL, "x must be given, or fields"},
        {{.count = 4, .fields = {tt_array()}}, TT_EINVAL, "field 0, '', has no name"},
        {{.count = 4, .fields = {tt_array(.data = x)}}, TT_EINVAL, "field 0, '', has no name"},
        {{.count = 4, .fields = {tt_array("a", x, 0, {0}), tt_array("b", NULL, 0, {0})}},
         TT_EINVAL,
         "field 1, 'b', has no data"},
        {{.count = 4, .x = x, .fields = {tt_array("a", x, 0, {0})}}, TT_EINVAL, "not both"},
        {{.count = 4, .y = x, .fields = {tt_array("a", x, 0, {0})}}, TT_EINVAL, "not both"},
        {{.count = 4, .fields = {tt_array("a", x, 0, {0}), tt_array("a", x, 0, {0})}},
         TT_EINVAL,
         "two fields have the name 'a'"},
        {{.count = 4, .fields = {tt_array("", x, 0, {0})}}, TT_EINVAL, "cannot be called ''"},
        {{.count = 4, .fields = {tt_array("a_name_that_is_longer_than_31_bytes", x, 0, {0})}},
         TT_EINVAL,
         "use 1 to 31 bytes"},
        {{.count = 4, .fields = {&no_size}}, TT_EINVAL, "memory: field 0: opts_size is 0"},
        {{.count = 0, .fields = {tt_array("a", x, 0, {0})}}, TT_EINVAL, "count must be given"},
        {{.count = 4, .fields = {tt_array("a", x, 0, {1, {0}})}},
         TT_ESHAPE,
         "memory: a: cannot use"},
        {{.count = 4, .fields = {tt_array("a", x, (tt_dtype)77, {0})}},
         TT_ESHAPE,
         "memory: a: cannot"},
    };
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        tt_ctx *ctx = test_ctx();
        tt_memory_opts o = bad[i].o;
        o.opts_size = sizeof(o);
        CHECK(tt_memory_with(ctx, &o) == NULL);
        CHECK_MESSAGE(ctx, bad[i].words);
        CHECK(tt_close(ctx) == bad[i].st);
    }
}

// Options of a program that was compiled before there were fields.
TEST(memory_takes_options_without_fields)
{
    static float x[4], y[4];
    tt_ctx *ctx = test_ctx();
    tt_memory_opts o = {.opts_size = offsetof(tt_memory_opts, fields), .x = x, .y = y, .count = 4};
    o.fields[0] = tt_array("z", x, 0, {0}); // past its end
    tt_data *d = tt_memory_with(ctx, &o);
    tt_field f[TT_MAX_FIELDS];
    CHECK(d != NULL && tt_data_fields(d, f) == 2);
    CHECK_OK(tt_close(ctx));
}
