/*
 * dtype.c - element types: their names and sizes.
 */
#include "base/base.h"
#include <string.h>

static const struct {
    const char *name;
    size_t bytes;
} types[TT_N_DTYPES] = {
    [TT_F32] = {"f32", 4}, [TT_F64] = {"f64", 8}, [TT_BF16] = {"bf16", 2}, [TT_F16] = {"f16", 2},
    [TT_I32] = {"i32", 4}, [TT_I64] = {"i64", 8}, [TT_U8] = {"u8", 1},     [TT_BOOL] = {"bool", 1},
};

const char *tt_dtype_name(tt_dtype t)
{
    return (unsigned)t < TT_N_DTYPES ? types[t].name : "?";
}

size_t tt_dtype_bytes(tt_dtype t)
{
    return (unsigned)t < TT_N_DTYPES ? types[t].bytes : 0;
}

tt_status tti_parse_dtype(tt_ctx *ctx, const char *text, tt_dtype *out)
{
    for (int i = 0; i < TT_N_DTYPES; i++) {
        if (strcmp(text, types[i].name) == 0) {
            *out = (tt_dtype)i;
            return TT_OK;
        }
    }
    return TT_FAIL(ctx, TT_EPARSE,
                   "'%.64s' is not an element type; use f32, f64, bf16, f16, i32, i64, u8 or bool",
                   text);
}
