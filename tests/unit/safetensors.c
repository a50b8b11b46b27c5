/*
 * safetensors.c - the file format: what is written is read back, what the format does not allow is
 * refused by name, and a file cut or changed anywhere never crashes the reader.
 */
#include "save/safetensors.h"
#include "../test.h"
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static char *path_of(const char *name)
{
    static char path[4][400];
    static int next;
    char *p = path[next++ % 4];
    snprintf(p, sizeof(path[0]), "%s/%s", test_folder(), name);
    return p;
}

static void write_bytes(const char *path, const void *data, size_t n)
{
    FILE *f = fopen(path, "wb");
    CHECK(f != NULL && fwrite(data, 1, n, f) == n && fclose(f) == 0);
}

// A file of a header and so many zero bytes.
static const char *write_header(const char *header, size_t data)
{
    const char *path = path_of("bad.safetensors");
    size_t n = strlen(header);
    unsigned char *all = calloc(1, 8 + n + data);
    for (int i = 0; i < 8; i++)
        all[i] = (unsigned char)((uint64_t)n >> 8 * i);
    memcpy(all + 8, header, n);
    write_bytes(path, all, 8 + n + data);
    free(all);
    return path;
}

static void refuse(const char *header, size_t data, const char *message)
{
    tt_ctx *ctx = test_ctx();
    tti_safetensors f;
    const char *path = write_header(header, data);
    ck_assert_msg(tti_safetensors_open(ctx, path, &f) != TT_OK, "accepted: %.300s", header);
    CHECK_MESSAGE(ctx, "bad.safetensors");
    CHECK_MESSAGE(ctx, message);
    tt_clear_error(ctx);
    CHECK_OK(tt_close(ctx));
}

static void accept(const char *header, size_t data, int64_t n)
{
    tt_ctx *ctx = test_ctx();
    tti_safetensors f;
    const char *path = write_header(header, data);
    ck_assert_msg(tti_safetensors_open(ctx, path, &f) == TT_OK, "%s: %.300s",
                  tt_last_error(ctx).message, header);
    CHECK_INT(f.n, n);
    tti_safetensors_close(&f);
    CHECK_OK(tt_close(ctx));
}

static const float three[3] = {1, -2.5f, 3e-40f};
static const int64_t eight[2] = {INT64_MIN, 7};
static const uint8_t bytes[5] = {0, 1, 2, 254, 255};

#define TENSORS                                                                       \
    {                                                                                 \
        {"b", TT_F32, TT_SHAPE(3), three, sizeof(three)},                             \
            {"a \"quoted\\\" \xc3\xa9", TT_U8, TT_SHAPE(5, 1), bytes, sizeof(bytes)}, \
            {"wide", TT_I64, TT_SHAPE(2), eight, sizeof(eight)},                      \
            {"none", TT_BF16, TT_SHAPE(0, 4), NULL, 0},                               \
        {                                                                             \
            "scalar", TT_F64, TT_SCALAR, eight, 8                                     \
        }                                                                             \
    }

TEST(safetensors_round_trip)
{
    tt_ctx *ctx = test_ctx();
    const tti_named in[] = TENSORS;
    static const char *const metadata[] = {"z", "last\n", "a", "first", NULL};
    const char *path = path_of("x.safetensors");
    tt_hash hash;
    tti_safetensors f;
    char *all;
    size_t n;
    CHECK_OK(tti_safetensors_write(ctx, path, in, 5, metadata, &hash));
    CHECK_OK(tti_file_read(ctx, path, 0, &all, &n));
    tt_hash same = tti_hash128(all, n);
    CHECK(same.low == hash.low && same.high == hash.high);
    CHECK_INT(all[0] % 8, 0); // data is aligned

    CHECK_OK(tti_safetensors_open(ctx, path, &f));
    CHECK_INT(f.n, 5);
    CHECK_STR(f.metadata[0], "a");
    CHECK_STR(f.metadata[3], "last\n");
    CHECK(f.metadata[4] == NULL);
    for (int i = 0; i < 5; i++) {
        int64_t k = tti_safetensors_find(&f, in[i].name);
        char out[64];
        CHECK(k >= 0);
        CHECK_INT(f.tensors[k].dtype, in[i].dtype);
        CHECK(memcmp(&f.tensors[k].shape, &in[i].shape, sizeof(tt_shape)) == 0);
        CHECK_INT(f.tensors[k].bytes, in[i].bytes);
        CHECK_INT(f.offsets[k] % tt_dtype_bytes(in[i].dtype), 0);
        CHECK_OK(tti_safetensors_read(&f, k, out));
        CHECK(in[i].bytes == 0 || memcmp(out, in[i].data, in[i].bytes) == 0);
    }
    CHECK_INT(tti_safetensors_find(&f, "nothing"), -1);
    tti_safetensors_close(&f);

    // The order in which tensors are given does not matter.
    tti_named turned[5];
    for (int i = 0; i < 5; i++)
        turned[i] = in[4 - i];
    CHECK_OK(tti_safetensors_write(ctx, path, turned, 5, metadata, &same));
    CHECK(same.low == hash.low && same.high == hash.high);
    tti_free(ctx, all);
    CHECK_OK(tt_close(ctx));
}

TEST(safetensors_empty)
{
    tt_ctx *ctx = test_ctx();
    const char *path = path_of("empty.safetensors");
    tt_hash hash;
    tti_safetensors f;
    CHECK_OK(tti_safetensors_write(ctx, path, NULL, 0, NULL, &hash));
    CHECK_OK(tti_safetensors_open(ctx, path, &f));
    CHECK_INT(f.n, 0);
    CHECK_INT(f.file_bytes, 16);
    tti_safetensors_close(&f);
    CHECK_OK(tt_close(ctx));
}

TEST(safetensors_writer_refuses)
{
    const struct {
        tti_named t[2];
        const char *message;
    } cases[] = {
        {{{"\xff", TT_U8, TT_SHAPE(1), bytes, 1}, {"b", TT_U8, TT_SHAPE(1), bytes, 1}}, "UTF-8"},
        {{{"a", TT_U8, TT_SHAPE(1), bytes, 1}, {"a", TT_U8, TT_SHAPE(1), bytes, 1}},
         "two tensors have the name 'a'"},
        {{{"__metadata__", TT_U8, TT_SHAPE(1), bytes, 1}, {"b", TT_U8, TT_SHAPE(1), bytes, 1}},
         "__metadata__"},
        {{{"a", TT_F32, TT_SHAPE(1), bytes, 1}, {"b", TT_U8, TT_SHAPE(1), bytes, 1}},
         "'a' has 1 bytes, its shape 4"},
    };
    tt_ctx *ctx = test_ctx();
    tt_hash hash;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        const char *path = path_of("refused.safetensors");
        CHECK(tti_safetensors_write(ctx, path, cases[i].t, 2, NULL, &hash) != TT_OK);
        CHECK_MESSAGE(ctx, cases[i].message);
        CHECK(!tti_file_exists(path));
        tt_clear_error(ctx);
    }
    CHECK_OK(tt_close(ctx));
}

TEST(safetensors_accepts)
{
    accept("{}", 0, 0);
    accept("{}      ", 0, 0);
    accept("{ \"__metadata__\" : { } }", 0, 0);
    accept("{\"a\":{\"dtype\":\"F32\",\"shape\":[],\"data_offsets\":[0,4]}}", 4, 1);
    accept("{\"a\":{\"dtype\":\"F32\",\"shape\":[0,9223372036854775807],\"data_offsets\":[0,0]}}",
           0, 1);
    accept("{\n\t\"a\" : {\"data_offsets\": [ 0 , 4 ], \"shape\": [ 4 ], \"dtype\": \"I8\"} \r\n}",
           4, 1);
    accept("{\"a\":{\"dtype\":\"F4\",\"shape\":[2,3],\"data_offsets\":[0,3]}}", 3, 1);
    accept("{\"z\":{\"dtype\":\"U8\",\"shape\":[1],\"data_offsets\":[0,1]},"
           "\"a\":{\"dtype\":\"U8\",\"shape\":[0],\"data_offsets\":[1,1]},"
           "\"b\":{\"dtype\":\"U8\",\"shape\":[2],\"data_offsets\":[1,3]}}",
           3, 3);
    accept("{\"\\u00e9\\ud83d\\ude00\\/\":{\"dtype\":\"BOOL\",\"shape\":[1],"
           "\"data_offsets\":[0,1]}}",
           1, 1);
}

TEST(safetensors_refuses)
{
#define ONE(type, shape, offsets) \
    "{\"a\":{\"dtype\":\"" type "\",\"shape\":" shape ",\"data_offsets\":" offsets "}}"
    static const struct {
        const char *header;
        size_t data;
        const char *message;
    } cases[] = {
        {"", 0, "must begin with '{'"},
        {" {}", 0, "must begin with '{'"},
        {"[]", 0, "must begin with '{'"},
        {"{", 0, "expected '\"'"},
        {"{}\n", 0, "only spaces"},
        {"{}{}", 0, "only spaces"},
        {"{}", 1, "1 bytes of data, its header 0"},
        {ONE("F32", "[1e0]", "[0,4]"), 4, "integer"},
        {ONE("F32", "[1.0]", "[0,4]"), 4, "integer"},
        {ONE("F32", "[-0]", "[0,0]"), 0, "integer"},
        {ONE("F32", "[-1]", "[0,4]"), 4, "integer"},
        {ONE("F32", "[01]", "[0,4]"), 4, "integer"},
        {ONE("F32", "[9223372036854775808]", "[0,4]"), 4, "integer"},
        {ONE("F32", "[\"1\"]", "[0,4]"), 4, "integer"},
        {ONE("F32", "[1,]", "[0,4]"), 4, "integer"},
        {ONE("F32", "1", "[0,4]"), 4, "expected '['"},
        {ONE("F32", "[4611686018427387904,4]", "[0,4]"), 4, "'a': its shape is too large"},
        {ONE("F32", "[2]", "[0,4]"), 4, "do not hold its 64 bits"},
        {ONE("F32", "[1]", "[4,0]"), 4, "offsets 4 to 0"},
        {ONE("F32", "[1]", "[0,8]"), 8, "offsets 0 to 8"},
        {ONE("F32", "[1]", "[0]"), 4, "expected ','"},
        {ONE("F32", "[1]", "[0,4,8]"), 4, "expected ']'"},
        {ONE("F32", "[1]", "[0,4]"), 5, "5 bytes of data, its header 4"},
        {ONE("F32", "[1]", "[0,4]"), 3, "3 bytes of data, its header 4"},
        {ONE("F32", "[1]", "[4,8]"), 8, "'a' begins at byte 4 of the data, not at 0"},
        {ONE("F4", "[3]", "[0,1]"), 1, "do not hold its 12 bits"},
        {ONE("Q7", "[1]", "[0,4]"), 4, "'a': 'Q7' is not an element type"},
        {ONE("f32", "[1]", "[0,4]"), 4, "'f32' is not an element type"},
        {"{\"a\":{\"dtype\":\"F32\",\"shape\":[1]}}", 4, "is missing"},
        {"{\"a\":{}}", 0, "expected '\"'"},
        {"{\"a\":null}", 0, "expected '{'"},
        {"{\"a\":{\"dtype\":\"U8\",\"dtype\":\"U8\",\"shape\":[0],\"data_offsets\":[0,0]}}", 0,
         "repeated key 'dtype'"},
        {"{\"a\":{\"dtype\":\"U8\",\"extra\":1,\"shape\":[0],\"data_offsets\":[0,0]}}", 0,
         "unknown key 'extra'"},
        {"{\"a\":{\"dtype\":\"U8\",\"shape\":[1],\"data_offsets\":[0,1]},"
         "\"a\":{\"dtype\":\"U8\",\"shape\":[1],\"data_offsets\":[1,2]}}",
         2, "two tensors have the name 'a'"},
        {"{\"a\":{\"dtype\":\"U8\",\"shape\":[1],\"data_offsets\":[0,1]},"
         "\"\\u0061\":{\"dtype\":\"U8\",\"shape\":[1],\"data_offsets\":[1,2]}}",
         2, "two tensors have the name 'a'"},
        {"{\"a\":{\"dtype\":\"U8\",\"shape\":[2],\"data_offsets\":[0,2]},"
         "\"b\":{\"dtype\":\"U8\",\"shape\":[2],\"data_offsets\":[1,3]}}",
         3, "'b' begins at byte 1 of the data, not at 2"},
        {"{\"a\":{\"dtype\":\"U8\",\"shape\":[2],\"data_offsets\":[0,2]},"
         "\"b\":{\"dtype\":\"U8\",\"shape\":[1],\"data_offsets\":[3,4]}}",
         4, "'b' begins at byte 3 of the data, not at 2"},
        {"{\"__metadata__\":{\"a\":1}}", 0, "expected '\"'"},
        {"{\"__metadata__\":[]}", 0, "expected '{'"},
        {"{\"__metadata__\":{\"a\":\"x\",\"a\":\"y\"}}", 0, "metadata 'a' is given twice"},
        {"{\"__metadata__\":{},\"__metadata__\":{}}", 0, "second __metadata__"},
        {"{\"\xff\":{}}", 0, "UTF-8"},
        {"{\"\xed\xa0\x80\":{}}", 0, "UTF-8"},
        {"{\"\xc0\x80\":{}}", 0, "UTF-8"},
        {"{\"a\nb\":{}}", 0, "control character"},
        {"{\"a\\u0000\":{}}", 0, "a zero character"},
        {"{\"\\ud800\":{}}", 0, "bad \\u escape"},
        {"{\"\\ud800\\u0041\":{}}", 0, "bad \\u escape"},
        {"{\"\\x41\":{}}", 0, "unknown escape"},
        {"{\"a", 0, "ends within a string"},
        {ONE("U8",
             "[1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,"
             "1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1]",
             "[0,1]"),
         1, "more than 64 axes"},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
        refuse(cases[i].header, cases[i].data, cases[i].message);
}

TEST(safetensors_refuses_deep_nesting)
{
    size_t n = 100000;
    char *deep = malloc(n + 1);
    memset(deep, '[', n);
    deep[n] = '\0';
    refuse(deep, 0, "must begin with '{'");
    memcpy(deep, "{\"a\":", 5);
    refuse(deep, 0, "expected '{'");
    free(deep);
}

TEST(safetensors_refuses_lengths)
{
    static const struct {
        unsigned char bytes[16];
        size_t n;
        const char *message;
    } cases[] = {
        {{0}, 0, "is not a safetensors file: it has only 0 bytes"},
        {{2}, 7, "is not a safetensors file: it has only 7 bytes"},
        {{0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, '{', '}'},
         10,
         "header would be 18446744073"},
        {{0xf8, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, '{', '}'},
         10,
         "header would be 18446744073"},
        {{1, 0xe1, 0xf5, 5, 0, 0, 0, 0, '{', '}'}, 10, "header would be 100000001 bytes"},
        {{3, 0, 0, 0, 0, 0, 0, 0, '{', '}'}, 10, "the file is shorter"},
    };
    tt_ctx *ctx = test_ctx();
    tti_safetensors f;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        const char *path = path_of("short.safetensors");
        write_bytes(path, cases[i].bytes, cases[i].n);
        CHECK(tti_safetensors_open(ctx, path, &f) == TT_EPARSE);
        CHECK_MESSAGE(ctx, cases[i].message);
        tt_clear_error(ctx);
    }
    CHECK(tti_safetensors_open(ctx, test_folder(), &f) == TT_EIO);
    CHECK_MESSAGE(ctx, "it is a folder");
    tt_clear_error(ctx);
    CHECK(tti_safetensors_open(ctx, path_of("missing"), &f) == TT_EIO);
    CHECK_MESSAGE(ctx, "No such file");
    tt_clear_error(ctx);
    CHECK_OK(tt_close(ctx));
}

TEST(safetensors_cut_at_every_byte)
{
    tt_ctx *ctx = test_ctx();
    const tti_named in[] = TENSORS;
    const char *path = path_of("cut.safetensors");
    char *all;
    size_t n;
    tt_hash hash;
    tti_safetensors f;
    CHECK_OK(tti_safetensors_write(ctx, path, in, 5, NULL, &hash));
    CHECK_OK(tti_file_read(ctx, path, 0, &all, &n));
    for (size_t k = 0; k < n; k++) {
        char *part = malloc(k > 0 ? k : 1); // of its own size, for the address sanitizer
        memcpy(part, all, k);
        CHECK(tti_safetensors_parse(ctx, "cut", part, k, k, &f) == TT_EPARSE);
        tt_clear_error(ctx);
        free(part);
    }
    tti_free(ctx, all);
    CHECK_OK(tt_close(ctx));
}

TEST(safetensors_names_what_it_cannot_hold)
{
    tt_ctx *ctx = test_ctx();
    tti_safetensors f;
    char out[64];
    const char *path = write_header(
        "{\"half\":{\"dtype\":\"F8_E4M3\",\"shape\":[2,2],\"data_offsets\":[0,4]},"
        "\"deep\":{\"dtype\":\"F32\",\"shape\":[1,1,1,1,1,1,1,1,1],\"data_offsets\":[4,8]}}",
        8);
    CHECK_OK(tti_safetensors_open(ctx, path, &f));
    int64_t half = tti_safetensors_find(&f, "half"), deep = tti_safetensors_find(&f, "deep");
    CHECK_STR(f.types[half], "F8_E4M3");
    CHECK_INT(f.first_dim[deep + 1] - f.first_dim[deep], 9);
    CHECK(tti_safetensors_read(&f, half, out) == TT_EDTYPE);
    CHECK_MESSAGE(ctx, "'half' has type F8_E4M3, which Tutti does not support");
    tt_clear_error(ctx);
    CHECK(tti_safetensors_read(&f, deep, out) == TT_ESHAPE);
    CHECK_MESSAGE(ctx, "'deep' has 9 axes");
    tt_clear_error(ctx);
    tti_safetensors_close(&f);
    CHECK_OK(tt_close(ctx));
}

// A file that shrinks after it was opened.
TEST(safetensors_file_changes)
{
    tt_ctx *ctx = test_ctx();
    const tti_named in[] = TENSORS;
    const char *path = path_of("shrinks.safetensors");
    tt_hash hash;
    tti_safetensors f;
    char out[64];
    CHECK_OK(tti_safetensors_write(ctx, path, in, 5, NULL, &hash));
    CHECK_OK(tti_safetensors_open(ctx, path, &f));
    CHECK(truncate(path, 64) == 0);
    CHECK(tti_safetensors_read(&f, tti_safetensors_find(&f, "wide"), out) == TT_EIO);
    CHECK_MESSAGE(ctx, "ends at byte");
    tt_clear_error(ctx);
    tti_safetensors_close(&f);
    CHECK_OK(tt_close(ctx));
}

TEST(safetensors_a_million_tensors)
{
    int64_t n = 1000000;
    tt_ctx *ctx = test_ctx();
    const char *path = path_of("many.safetensors");
    tti_named *in = calloc((size_t)n, sizeof(*in));
    char *names = malloc((size_t)n * 16);
    uint8_t one = 1;
    tt_hash hash;
    tti_safetensors f;
    for (int64_t i = 0; i < n; i++) {
        char *name = names + i * 16;
        snprintf(name, 16, "%llx", (unsigned long long)i * 0x9e3779b9u % 0xfffffffbu);
        in[i] = (tti_named){name, TT_U8, TT_SHAPE(1), &one, 1};
    }
    CHECK_OK(tti_safetensors_write(ctx, path, in, n, NULL, &hash));
    CHECK_OK(tti_safetensors_open(ctx, path, &f));
    CHECK_INT(f.n, n);
    for (int64_t i = 0; i < n; i += 1001)
        CHECK(tti_safetensors_find(&f, in[i].name) >= 0);
    tti_safetensors_close(&f);
    free(in);
    free(names);
    CHECK_OK(tt_close(ctx));
}

TEST(safetensors_without_memory)
{
    const tti_named in[] = TENSORS;
    tt_ctx *ctx = test_ctx();
    const char *path = path_of("memory.safetensors");
    tt_hash hash;
    tti_safetensors f;
    int k = 1;
    for (bool done = false; !done; k++) {
        tti_fail_alloc_at(ctx, k);
        done = tti_safetensors_write(ctx, path, in, 5, NULL, &hash) == TT_OK;
        CHECK(done || tt_status_of(ctx) == TT_ENOMEM);
        CHECK(done == tti_file_exists(path));
        tti_fail_alloc_at(ctx, 0);
        tt_clear_error(ctx);
    }
    CHECK(k > 3);
    k = 1;
    for (bool done = false; !done; k++) {
        tti_fail_alloc_at(ctx, k);
        done = tti_safetensors_open(ctx, path, &f) == TT_OK;
        CHECK(done || tt_status_of(ctx) == TT_ENOMEM);
        tti_fail_alloc_at(ctx, 0);
        tt_clear_error(ctx);
    }
    CHECK(k > 8);
    tti_safetensors_close(&f);
    CHECK_OK(tt_close(ctx));
}
