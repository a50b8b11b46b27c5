/*
 * safetensors_python.c - the Python package reads what we write, and we read what it writes.
 * tests/python/safetensors_test has the other half.
 */
#include "../test.h"
#include "graph/graph.h"
#include "save/safetensors.h"
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static const struct {
    const char *name;
    tt_dtype dtype;
    tt_shape shape;
} tensors[] = {
    {"f32", TT_F32, {2, {3, 5}}},
    {"f64", TT_F64, {3, {2, 1, 4}}},
    {"f16", TT_F16, {1, {7}}},
    {"i32", TT_I32, {1, {11}}},
    {"i64", TT_I64, {0, {0}}},
    {"u8", TT_U8, {1, {3}}},
    {"bool", TT_BOOL, {1, {5}}},
    {"empty", TT_F32, {2, {0, 3}}},
    {"caf\xc3\xa9 \"x\"\\", TT_F32, {1, {1}}},
};
#define N ((int)(sizeof(tensors) / sizeof(tensors[0])))

static double value(tt_dtype t, int64_t i)
{
    return t == TT_BOOL ? i % 2 : t == TT_U8 ? 7 * i % 13 : 7 * i % 13 - 3;
}

static void write_ours(tt_ctx *ctx, const char *path)
{
    static const char *const metadata[] = {"format", "tutti", "note", "two\nlines", NULL};
    static char data[N][256];
    tti_named in[N];
    tt_hash hash;
    for (int k = 0; k < N; k++) {
        int64_t n = tt_shape_count(&tensors[k].shape);
        for (int64_t i = 0; i < n; i++)
            tti_put_number(tensors[k].dtype, data[k], i, value(tensors[k].dtype, i));
        in[k] = (tti_named){tensors[k].name, tensors[k].dtype, tensors[k].shape, data[k],
                            (size_t)n * tt_dtype_bytes(tensors[k].dtype)};
    }
    CHECK_OK(tti_safetensors_write(ctx, path, in, N, metadata, &hash));
}

static void read_theirs(tt_ctx *ctx, const char *path)
{
    char data[256];
    tti_safetensors f;
    ck_assert_msg(tti_safetensors_open(ctx, path, &f) == TT_OK, "%s", tt_last_error(ctx).message);
    CHECK_INT(f.n, N + 2);
    CHECK_STR(f.metadata[1], "python");
    CHECK_STR(f.types[tti_safetensors_find(&f, "i8")], "I8");
    CHECK_STR(f.types[tti_safetensors_find(&f, "u16")], "U16");
    for (int k = 0; k < N; k++) {
        int64_t at = tti_safetensors_find(&f, tensors[k].name);
        ck_assert_msg(at >= 0, "no '%s'", tensors[k].name);
        CHECK_INT(f.tensors[at].dtype, tensors[k].dtype);
        CHECK(memcmp(&f.tensors[at].shape, &tensors[k].shape, sizeof(tt_shape)) == 0);
        CHECK_OK(tti_safetensors_read(&f, at, data));
        for (int64_t i = 0; i < tt_shape_count(&tensors[k].shape); i++)
            CHECK(tti_get_number(tensors[k].dtype, data, i) == value(tensors[k].dtype, i));
    }
    tti_safetensors_close(&f);
}

TEST(safetensors_with_python)
{
    const char *given = getenv("TUTTI_PYTHON"), *script = "tests/python/safetensors_test";
    const char *python = given != NULL ? given : "build/python/bin/python";
    char line[2048], ours[400], theirs[400];
    if (access(script, R_OK) != 0 || (given == NULL && access(python, X_OK) != 0))
        test_skip("no Python with safetensors (TUTTI_PYTHON)");
    snprintf(line, sizeof(line), "%s -c 'import numpy, safetensors' 2>/dev/null", python);
    if (system(line) != 0)
        test_skip("no Python with safetensors (TUTTI_PYTHON)");

    tt_ctx *ctx = test_ctx();
    snprintf(ours, sizeof(ours), "%s/ours.safetensors", test_folder());
    snprintf(theirs, sizeof(theirs), "%s/theirs.safetensors", test_folder());
    write_ours(ctx, ours);
    snprintf(line, sizeof(line), "%s %s %s %s", python, script, ours, theirs);
    CHECK_INT(system(line), 0);
    read_theirs(ctx, theirs);
    CHECK_OK(tt_close(ctx));
}
