/*
 * data_npy.c - NumPy's files: types, versions, archives, damage.
 */
#include "data_test.h"
#include <stdio.h>
#include <stdlib.h>
#include <zlib.h>

// ---- making files ----------------------------------------------------------------------------

typedef struct file {
    uint8_t bytes[4096];
    size_t n;
} file;

static void put(file *f, const void *p, size_t n)
{
    CHECK(f->n + n <= sizeof(f->bytes));
    memcpy(f->bytes + f->n, p, n);
    f->n += n;
}

static void put_int(file *f, uint64_t v, int bytes)
{
    for (int i = 0; i < bytes; i++, v >>= 8)
        put(f, &(uint8_t){(uint8_t)v}, 1);
}

static file npy(int version, const char *dict, const void *data, size_t n)
{
    file f = {.n = 0};
    put(&f, "\x93NUMPY", 6);
    put_int(&f, (uint64_t)version, 1);
    put_int(&f, 0, 1);
    put_int(&f, strlen(dict), version == 1 ? 2 : 4);
    put(&f, dict, strlen(dict));
    put(&f, data, n);
    return f;
}

static file npy_of(const char *descr, const char *shape, const void *data, size_t n)
{
    char dict[200];
    snprintf(dict, sizeof(dict), "{'descr': '%s', 'fortran_order': False, 'shape': %s, }   \n",
             descr, shape);
    return npy(1, dict, data, n);
}

// An archive of files; packs: by deflate.
static file zip(int n, const char *const *names, const file *files, bool packs, int flaw)
{
    file z = {.n = 0}, dir = {.n = 0};
    for (int i = 0; i < n; i++) {
        uint8_t packed[4096];
        size_t size = files[i].n, bytes = size, at = z.n;
        memcpy(packed, files[i].bytes, size);
        if (packs) {
            z_stream s = {0};
            CHECK(deflateInit2(&s, 9, Z_DEFLATED, -15, 8, Z_DEFAULT_STRATEGY) == Z_OK);
            s.next_in = (uint8_t *)files[i].bytes;
            s.avail_in = (unsigned)size;
            s.next_out = packed;
            s.avail_out = sizeof(packed);
            CHECK(deflate(&s, Z_FINISH) == Z_STREAM_END);
            bytes = s.total_out;
            deflateEnd(&s);
        }
        uint32_t crc = (uint32_t)crc32(0, files[i].bytes, (unsigned)size) ^ (flaw == 1);
        put(&z, "PK\3\4", 4);
        put_int(&z, 45, 2);
        put_int(&z, 0, 2);
        put_int(&z, packs ? 8 : 0, 2);
        put_int(&z, 0, 4); // time
        put_int(&z, crc, 4);
        put_int(&z, 0xffffffff, 4); // as NumPy writes it: the sizes are in the directory
        put_int(&z, 0xffffffff, 4);
        put_int(&z, strlen(names[i]), 2);
        put_int(&z, 20, 2);
        put(&z, names[i], strlen(names[i]));
        put_int(&z, 0x100001, 4);
        put_int(&z, size, 8);
        put_int(&z, bytes, 8);
        put(&z, packed, bytes);

        put(&dir, "PK\1\2", 4);
        put_int(&dir, 45, 2);
        put_int(&dir, 45, 2);
        put_int(&dir, flaw == 2, 2); // encrypted
        put_int(&dir, flaw == 3 ? 12 : packs ? 8 : 0, 2);
        put_int(&dir, 0, 4);
        put_int(&dir, crc, 4);
        put_int(&dir, flaw == 4 ? 0xffffffff : flaw == 5 ? bytes + 10000 : bytes, 4);
        put_int(&dir, size + (flaw == 6), 4);
        put_int(&dir, strlen(names[i]), 2);
        put_int(&dir, 0, 12);
        put_int(&dir, at + (flaw == 7), 4);
        put(&dir, names[i], strlen(names[i]));
    }
    size_t at = z.n;
    put(&z, dir.bytes, dir.n);
    put(&z, "PK\5\6", 4);
    put_int(&z, 0, 4);
    put_int(&z, (uint64_t)n, 2);
    put_int(&z, (uint64_t)n, 2);
    put_int(&z, dir.n, 4);
    put_int(&z, flaw == 8 ? 0xffffffff : at + (flaw == 9 ? 1000 : 0), 4);
    put_int(&z, 3, 2);
    put(&z, "hey", 3); // a comment
    return z;
}

static tt_data *open_pair(tt_ctx *ctx)
{
    return tt_npy(ctx, .x = data_path("x.npy"), .y = data_path("y.npy"), .no_shuffle = true);
}

static tt_data *open_zip(tt_ctx *ctx)
{
    return tt_npy(ctx, .file = data_path("a.npz"), .no_shuffle = true);
}

static void write_pair(void)
{
    file x = npy_of("<f4", "(3, 2)", (float[]){1, 2, 3, 1e-40f, 5, 6}, 24);
    file y = npy_of("<i8", "(3,)", (int64_t[]){2, 0, 1}, 24);
    data_write("x.npy", x.bytes, x.n);
    data_write("y.npy", y.bytes, y.n);
}

// ---- tests -----------------------------------------------------------------------------------

TEST(npy_values)
{
    tt_ctx *ctx = test_ctx();
    tt_field f[TT_MAX_FIELDS];
    write_pair();
    for (int packed = 0; packed < 2; packed++) {
        tt_data *d = open_pair(ctx);
        tt_batch_data b = data_all(d);
        CHECK_INT(tt_data_fields(d, f), 2);
        CHECK(f[0].shape.rank == 1 && f[0].shape.dim[0] == 2 && f[0].dtype == TT_F32);
        CHECK(f[1].shape.rank == 0 && f[1].dtype == TT_I32 && f[1].classes == 3);
        CHECK(memcmp(b.fields[0], (float[]){1, 2, 3, 0, 5, 6}, 24) == 0); // no subnormals
        CHECK(memcmp(b.fields[1], (int32_t[]){2, 0, 1}, 12) == 0);
        tt_data_free(d);
        file y = npy_of("<i8", "(3,)", (int64_t[]){2, 0, 1}, 24);
        data_gzip("y.npy", y.bytes, y.n);
    }
    CHECK_OK(tt_close(ctx));
}

TEST(npy_types)
{
    static const struct {
        const char *descr;
        int bytes;
        uint8_t raw[16];
        tt_dtype as_x;
        double want[2];
    } cases[] = {
        {"<f4", 4, {0, 0, 0x20, 0xc0, 0, 0, 0x80, 0x3f}, TT_F32, {-2.5, 1}},
        {"<f8",
         8,
         {0, 0, 0, 0, 0, 0, 0xe0, 0x3f, 0, 0, 0, 0, 0, 0, 0x59, 0xc0},
         TT_F32,
         {0.5, -100}},
        {"<i4", 4, {0xfd, 0xff, 0xff, 0xff, 0, 0, 1, 0}, TT_I32, {-3, 65536}},
        {"<i8",
         8,
         {5, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff},
         TT_I32,
         {5, -1}},
        {"|u1", 1, {7, 255}, TT_U8, {7, 255}},
        {"<u2", 2, {1, 2, 0xff, 0xff}, TT_I32, {513, 65535}},
        {"|b1", 1, {0, 1}, TT_BOOL, {0, 1}},
    };
    tt_ctx *ctx = test_ctx();
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        file f = npy_of(cases[i].descr, "(2,)", cases[i].raw, 2 * (size_t)cases[i].bytes);
        data_write("x.npy", f.bytes, f.n);
        data_write("y.npy", f.bytes, f.n);
        tt_field field[TT_MAX_FIELDS];
        tt_data *d = open_pair(ctx);
        tt_batch_data b = data_all(d);
        tt_data_fields(d, field);
        CHECK_INT(field[0].dtype, cases[i].as_x);
        CHECK_INT(field[1].dtype, cases[i].as_x == TT_F32 ? TT_F32 : TT_I32);
        for (int k = 0; k < 2; k++) {
            const void *x = b.fields[0], *y = b.fields[1];
            double got = cases[i].as_x == TT_F32   ? (double)((const float *)x)[k]
                         : cases[i].as_x == TT_I32 ? ((const int32_t *)x)[k]
                                                   : ((const uint8_t *)x)[k];
            CHECK(got == cases[i].want[k]);
            if (cases[i].as_x != TT_F32)
                CHECK(((const int32_t *)y)[k] == (int32_t)cases[i].want[k]);
        }
        tt_data_free(d);
    }
    CHECK_OK(tt_close(ctx));
}

TEST(npy_headers)
{
    tt_ctx *ctx = test_ctx();
    static const float data[6] = {1, 2, 3, 4, 5, 6};
    static const char *const good[] = {
        "{'descr': '<f4', 'fortran_order': False, 'shape': (3, 2), }",
        "{\"shape\":(3,2L),\"descr\":\"<f4\",\"fortran_order\":False}\n",
        "{ 'fortran_order' : False , 'shape' : ( 3 , 2 , ) , 'descr' : '<f4' , } \n\n",
    };
    for (int i = 0; i < 3; i++) {
        file f = npy(i + 1, good[i], data, sizeof(data));
        data_write("x.npy", f.bytes, f.n);
        tt_batch_data b = data_all(tt_npy(ctx, .x = data_path("x.npy"), .no_shuffle = true));
        CHECK(memcmp(b.fields[0], data, sizeof(data)) == 0);
    }
    CHECK_OK(tt_close(ctx));
    write_pair();
    static const struct {
        int version;
        const char *dict, *words;
    } bad[] = {
        {4, "{'descr': '<f4', 'fortran_order': False, 'shape': (3, 2)}", "has version 4.0"},
        {1, "{'descr': '>f4', 'fortran_order': False, 'shape': (3, 2)}", "'>f4', big-endian"},
        {1, "{'descr': '<c8', 'fortran_order': False, 'shape': (3, 2)}", "elements are '<c8'"},
        {1, "{'descr': [('a', '<f4')], 'fortran_order': False, 'shape': (3, 2)}", "structured"},
        {1, "{'descr': '<f4', 'fortran_order': True, 'shape': (3, 2)}", "Fortran order"},
        {1, "{'descr': '<f4', 'fortran_order': Maybe, 'shape': (3, 2)}", "True or False expected"},
        {1, "{'descr': '<f4', 'fortran_order': False}", "header: shape is missing"},
        {1, "{'descr': '<f4', 'fortran_order': False, 'shape': ()}", "is a scalar"},
        {1, "{'descr': '<f4', 'fortran_order': False, 'shape': (3, 0)}", "axis 1 has a size of 0"},
        {1, "{'descr': '<f4', 'fortran_order': False, 'shape': (-3, 2)}", "a number expected"},
        {1, "{'descr': '<f4', 'fortran_order': False, 'shape': (3 2)}", "a comma expected"},
        {1, "{'descr': '<f4', 'fortran_order': False, 'shape': (1,1,1,1,1,1,1,1,6)}", "8 axes"},
        {1, "{'descr': '<f4', 'fortran_order': False, 'shape': (99999999999999999999,)}",
         "a number of 64 bits"},
        {1, "{'descr': '<f4', 'fortran_order': False, 'shape': (9223372036854775807, 2)}",
         "9223372036854775807 records of 8 bytes"},
        {1, "{'descr': '<f4', 'fortran_order': False, 'shape': (3, 2)} x", "the end expected"},
        {1, "{'descr': '<f4', 'other': False, 'shape': (3, 2)}", "unexpected key 'other'"},
        {1, "{'descr': '<f4', 'descr': '<f4', 'shape': (3, 2)}", "key 'descr'"},
        {1, "{'descr': '<f4', 'fortran_order': False, 'shape': (2, 2)}", "has 8 bytes after"},
        {1, "{'descr': '<f4', 'fortran_order': False, 'shape': (4, 2)}", "in record 3 of 4"},
        {1, "", "a dictionary expected"},
    };
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        file f = npy(bad[i].version, bad[i].dict, data, sizeof(data));
        data_write("x.npy", f.bytes, f.n);
        data_refuses(open_pair, bad[i].words);
    }
    file y = npy_of("<i8", "(2,)", (int64_t[]){5000000000, 0}, 16);
    file x = npy_of("<f4", "(2,)", data, 8);
    data_write("x.npy", x.bytes, x.n);
    data_write("y.npy", y.bytes, y.n);
    data_refuses(open_pair, "y.npy: record 0: the value 5000000000 does not fit into 32 bits");
    y = npy_of("<i8", "(1,)", (int64_t[]){0}, 8);
    data_write("y.npy", y.bytes, y.n);
    data_refuses(open_pair, "y.npy: has 1 records, but '");
}

TEST(npy_cut_short)
{
    file x = npy_of("<f4", "(3, 2)", (float[]){1, 2, 3, 4, 5, 6}, 24);
    write_pair();
    data_cuts("x.npy", x.bytes, x.n, open_pair);
}

static file zip_pair(bool packs, int flaw)
{
    static const char *const names[] = {"x.npy", "y.npy"};
    file files[] = {npy_of("<f4", "(3, 2)", (float[]){1, 2, 3, 4, 5, 6}, 24),
                    npy_of("|u1", "(3,)", (uint8_t[]){2, 0, 1}, 3)};
    return zip(2, names, files, packs, flaw);
}

TEST(npz_values)
{
    tt_ctx *ctx = test_ctx();
    for (int packs = 0; packs < 2; packs++) {
        file z = zip_pair(packs, 0);
        data_write("a.npz", z.bytes, z.n);
        tt_batch_data b = data_all(open_zip(ctx));
        CHECK(memcmp(b.fields[0], (float[]){1, 2, 3, 4, 5, 6}, 24) == 0);
        CHECK(memcmp(b.fields[1], (int32_t[]){2, 0, 1}, 12) == 0);
        b = data_all(tt_npy(ctx, .file = data_path("a.npz"), .x = "y.npy", .y = "x"));
        CHECK(b.fields[1] != NULL);
        CHECK(tt_npy(ctx, .file = data_path("a.npz"), .x = "z") == NULL);
        CHECK_MESSAGE(ctx, "a.npz: has no array 'z'; its last array is 'y.npy'");
        tt_clear_error(ctx);
    }
    CHECK(tt_npy(ctx) == NULL);
    CHECK_MESSAGE(ctx, "npy: x or file must be given");
    CHECK(tt_close(ctx) == TT_EINVAL);
}

TEST(npz_damaged)
{
    static const char *const words[] = {
        NULL,
        "a.npz: x.npy: is damaged: its checksum is",
        "a.npz: x.npy: is encrypted",
        "uses compression method 12",
        "zip64",
        NULL, // by method, below
        NULL,
        "is not at byte 1, as the directory says",
        "zip64",
        "its directory, ",
    };
    for (int packs = 0; packs < 2; packs++) {
        for (int flaw = 1; flaw < 10; flaw++) {
            file z = zip_pair(packs, flaw);
            data_write("a.npz", z.bytes, z.n);
            const char *want = words[flaw];
            if (flaw == 5)
                want = packs ? " are outside the file" : "is stored in";
            if (flaw == 6)
                want = packs ? "decompresses to" : "is stored in";
            data_refuses(open_zip, want);
        }
        file z = zip_pair(packs, 0);
        data_cuts("a.npz", z.bytes, z.n, open_zip);
    }
}

TEST(npy_without_memory)
{
    write_pair();
    data_no_memory(open_pair);
    for (int packs = 0; packs < 2; packs++) {
        file z = zip_pair(packs, 0);
        data_write("a.npz", z.bytes, z.n);
        data_no_memory(open_zip);
    }
}
