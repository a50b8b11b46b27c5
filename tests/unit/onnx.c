/*
 * onnx.c - ONNX files without Python: the bytes are walked by a reader of this test's own. Every
 * value is defined once, before it is used; names, types, shapes and elements are the model's.
 */
#include "../onnx_cases.h"
#include "../own_op.h"
#include "base/file.h"
#include "base/testing.h"
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define MAX_VALUES 4000

typedef struct span {
    const unsigned char *at, *end;
} span;

typedef struct field {
    int number, wire;
    uint64_t value;
    span bytes;
} field;

static uint64_t varint(span *s)
{
    uint64_t v = 0;
    for (int shift = 0; shift < 64; shift += 7) {
        CHECK(s->at < s->end);
        unsigned char b = *s->at++;
        v |= (uint64_t)(b & 127) << shift;
        if (b < 128)
            return v;
    }
    ck_abort_msg("a number of more than 64 bits");
    return 0;
}

static bool next(span *s, field *f)
{
    if (s->at == s->end)
        return false;
    uint64_t tag = varint(s);
    *f = (field){.number = (int)(tag >> 3), .wire = (int)(tag & 7)};
    if (f->wire == 0) {
        f->value = varint(s);
        return true;
    }
    uint64_t n = f->wire == 5 ? 4 : f->wire == 2 ? varint(s) : UINT64_MAX;
    ck_assert_msg(n <= (uint64_t)(s->end - s->at), "field %d has %llu bytes", f->number,
                  (unsigned long long)n);
    f->bytes = (span){s->at, s->at + n};
    s->at += n;
    return true;
}

static char *text_of(span s)
{
    size_t n = (size_t)(s.end - s.at);
    char *t = test_zeros(n + 1, 1);
    memcpy(t, s.at, n);
    return t;
}

// ---- a file ----------------------------------------------------------------------------------

typedef struct file {
    int64_t ir, opset;
    char *defined[MAX_VALUES];
    int n_defined;
    char ops[8000]; // "MatMul Add "
    char *inputs[8], *outputs[8];
    int n_inputs, n_outputs;
    int n_stored;
    size_t stored_bytes;
    char metadata[4000]; // "key=text;"
} file;

static bool is_defined(const file *f, const char *name)
{
    for (int i = 0; i < f->n_defined; i++)
        if (strcmp(f->defined[i], name) == 0)
            return true;
    return false;
}

static void define(file *f, char *name)
{
    ck_assert_msg(name[0] != '\0' && !is_defined(f, name), "'%s' is defined twice", name);
    CHECK(f->n_defined < MAX_VALUES);
    f->defined[f->n_defined++] = name;
}

static void read_stored(file *f, span s)
{
    int64_t count = 1;
    size_t bytes = 0, size = 0;
    for (field x; next(&s, &x);) {
        static const size_t sizes[] = {[1] = 4, [2] = 1, [6] = 4, [7] = 8, [9] = 1};
        if (x.number == 1)
            count *= (int64_t)x.value;
        if (x.number == 2)
            size = sizes[x.value];
        if (x.number == 8)
            define(f, text_of(x.bytes));
        if (x.number == 9)
            bytes = (size_t)(x.bytes.end - x.bytes.at);
    }
    ck_assert_uint_eq(bytes, (size_t)count * size);
    f->n_stored++;
    f->stored_bytes += bytes;
}

static void read_node(file *f, span s)
{
    char *outputs[64];
    int n = 0;
    for (field x; next(&s, &x);) {
        if (x.number == 1) {
            const char *in = text_of(x.bytes);
            ck_assert_msg(is_defined(f, in), "'%s' is used before it is defined", in);
        }
        if (x.number == 2)
            outputs[n++] = text_of(x.bytes);
        if (x.number == 4) {
            strcat(f->ops, text_of(x.bytes));
            strcat(f->ops, " ");
        }
    }
    for (int i = 0; i < n; i++)
        define(f, outputs[i]);
}

static char *port_name(span s)
{
    for (field x; next(&s, &x);)
        if (x.number == 1)
            return text_of(x.bytes);
    return NULL;
}

static void read_graph(file *f, span s)
{
    span all = s;
    for (field x; next(&s, &x);) { // what nodes may use comes behind them in the file
        if (x.number == 5)
            read_stored(f, x.bytes);
        if (x.number == 11)
            define(f, f->inputs[f->n_inputs++] = port_name(x.bytes));
    }
    for (field x; next(&all, &x);) {
        if (x.number == 1)
            read_node(f, x.bytes);
        if (x.number == 12)
            f->outputs[f->n_outputs++] = port_name(x.bytes);
    }
    for (int i = 0; i < f->n_outputs; i++)
        ck_assert_msg(is_defined(f, f->outputs[i]), "output '%s' has no value", f->outputs[i]);
}

static void read_pair(span s, int64_t *number, char *text)
{
    for (field x; next(&s, &x);) {
        if (x.wire == 0)
            *number = (int64_t)x.value;
        else if (text != NULL)
            strcat(strcat(text, text_of(x.bytes)), x.number == 1 ? "=" : ";");
    }
}

static char *path_of(const char *name)
{
    static char path[600];
    snprintf(path, sizeof(path), "%s/%s", test_folder(), name);
    return path;
}

static file *read_file(const char *path)
{
    file *f = test_zeros(1, sizeof(*f));
    char *data;
    size_t bytes;
    int64_t unused;
    CHECK_OK(tti_file_read(NULL, path, 0, &data, &bytes));
    span s = {(unsigned char *)data, (unsigned char *)data + bytes};
    for (field x; next(&s, &x);) {
        if (x.number == 1)
            f->ir = (int64_t)x.value;
        if (x.number == 7)
            read_graph(f, x.bytes);
        if (x.number == 8)
            read_pair(x.bytes, &f->opset, NULL);
        if (x.number == 14)
            read_pair(x.bytes, &unused, f->metadata);
    }
    tti_free(NULL, data);
    return f;
}

// ---- tests -----------------------------------------------------------------------------------

static file *exported(const onnx_case *c)
{
    tt_ctx *ctx = test_ctx();
    tt_model *m = onnx_case_build(ctx, c);
    ck_assert_msg(tt_export_onnx(m, path_of("m.onnx")) == TT_OK, "%s: %s", c->text,
                  tt_last_error(ctx).message);
    CHECK_OK(tt_close(ctx));
    return read_file(path_of("m.onnx"));
}

TEST(onnx_files_define_values_once_and_first)
{
    for (int i = 0; i < onnx_n_cases; i++) {
        const file *f = exported(&onnx_cases[i]);
        CHECK(f->ir == 8 && f->opset == 17 && f->n_inputs == 1 && f->n_outputs == 1);
        CHECK(f->n_stored > 0 && f->ops[0] != '\0');
    }
}

TEST(onnx_dense_is_matmul_add)
{
    const file *f = exported(&(onnx_case){"dense units=4 act=relu", {5}, 0});
    ck_assert_str_eq(f->ops, "MatMul Add MatMul Add Relu Identity ");
    ck_assert_uint_eq(f->stored_bytes, 4 * (5 * 6 + 6 + 6 * 4 + 4));
    ck_assert_str_eq(f->metadata, "tutti.input=prepared records;tutti.output=plain;");
}

TEST(onnx_recurrences_take_the_product_before_them)
{
    const file *f = exported(&(onnx_case){"lstm units=7", {9, 5}, 0});
    ck_assert_str_eq(f->ops, "MatMul Add Transpose LSTM Squeeze Transpose Identity ");
}

static tt_status zeros(tt_ctx *ctx, void *self, int64_t i, void *const *out)
{
    (void)ctx, (void)self;
    memset(out[0], (int)i, 12);
    *(int32_t *)out[1] = (int32_t)(i % 3);
    return TT_OK;
}

// What predict does before and after the model is in the file, if asked for.
TEST(onnx_raw_has_preprocessing_and_probabilities)
{
    tt_ctx *ctx = test_ctx();
    tt_source s = {.count = 16, .n_fields = 2, .read = zeros};
    s.fields[0] = (tt_field){.name = "x", .dtype = TT_U8, .shape = TT_SHAPE(12)};
    s.fields[1] = (tt_field){.name = "y", .dtype = TT_I32, .classes = 3};
    tt_data *d = tt_data_new(ctx, &s, .batch = 8);
    CHECK_OK(tt_transform(d, "normalise", .mean = 3, .scale = 2));
    tt_model *m = tt_sequential(ctx, .input = {12});
    tt_layer_dense(m, .units = 3, .name = "scores");
    CHECK_OK(tt_compile(m, .loss = TT_CROSS_ENTROPY));
    CHECK_OK(tt_fit(m, d, .epochs = 1));
    CHECK_OK(tt_export_onnx(m, path_of("raw.onnx"), .raw = true));
    const file *f = read_file(path_of("raw.onnx"));
    ck_assert_str_eq(f->ops, "Cast Sub Div MatMul Add Softmax Identity ");
    CHECK(strstr(f->metadata, "tutti.preprocessing=normalise of x;") != NULL);
    CHECK(strstr(f->metadata, "tutti.output=as tutti predict;") != NULL);
    ck_assert_str_eq(f->outputs[0], "scores");
    CHECK_OK(tt_export_onnx(m, path_of("plain.onnx")));
    ck_assert_str_eq(read_file(path_of("plain.onnx"))->ops, "MatMul Add Identity ");
    CHECK_OK(tt_close(ctx));
}

// A layer of an op that ONNX does not have.
static const tt_op own_op = {
    .name = "own_op", .inputs = 1, .infer = own_op_as_input, .split = own_op_split_as_input};

static tt_tensor *own_layer(void *user, tt_build *b, tt_tensor *const *in, int n)
{
    (void)user, (void)n;
    return tt_node_out(tt_build_graph(b), &own_op, 1, in, NULL);
}

TEST(onnx_refuses_by_name)
{
    tt_ctx *ctx = test_ctx();
    tt_model *m = tt_sequential(ctx, .input = {5});
    CHECK(tt_layer_custom(m, .fn = own_layer, .name = "mine") != NULL);
    CHECK(tt_export_onnx(m, path_of("own.onnx")) == TT_EUNSUPPORTED);
    CHECK(strstr(tt_last_error(ctx).message, "own_op") != NULL);
    CHECK(access(path_of("own.onnx"), F_OK) != 0);
    tt_clear_error(ctx);
    CHECK(tt_export_onnx(m, "") == TT_EINVAL);
    tt_clear_error(ctx);
    tt_model *empty = tt_model_new(ctx);
    CHECK(tt_export_onnx(empty, path_of("e.onnx")) == TT_EINVAL);
    tt_clear_error(ctx);
    CHECK_OK(tt_close(ctx));
}

// Failing to allocate, wherever, leaves no file and no leak.
TEST(onnx_without_memory)
{
    tt_ctx *ctx = test_ctx();
    tt_model *m = onnx_case_build(ctx, &(onnx_case){"conv2d filters=4", {6, 7, 5}, 0});
    CHECK_OK(tt_export_onnx(m, path_of("whole.onnx")));
    const file *whole = read_file(path_of("whole.onnx"));
    int failures = 0;
    for (int k = 1; k < 2000; k++) {
        unlink(path_of("some.onnx"));
        tti_fail_alloc_at(ctx, k);
        tt_status st = tt_export_onnx(m, path_of("some.onnx"));
        tti_fail_alloc_at(ctx, 0);
        tt_clear_error(ctx);
        if (st == TT_OK)
            break;
        CHECK(st == TT_ENOMEM && access(path_of("some.onnx"), F_OK) != 0);
        failures++;
    }
    CHECK(failures > 10 && failures < 1999);
    ck_assert_str_eq(read_file(path_of("some.onnx"))->ops, whole->ops);
    CHECK_OK(tt_close(ctx));
}
