/*
 * data_test.c - files for tests of data sets (data_test.h).
 */
#include "data_test.h"
#include <stdio.h>
#include <stdlib.h>
#include <zlib.h>

const char *data_path(const char *name)
{
    static char paths[8][400];
    static int turn;
    char *path = paths[turn++ % 8];
    snprintf(path, sizeof(paths[0]), "%s/%s", test_folder(), name);
    return path;
}

void data_write(const char *name, const void *bytes, size_t n)
{
    FILE *f = fopen(data_path(name), "wb");
    CHECK(f != NULL && fwrite(bytes, 1, n, f) == n && fclose(f) == 0);
}

void data_text(const char *name, const char *text)
{
    data_write(name, text, strlen(text));
}

void data_gzip(const char *name, const void *bytes, size_t n)
{
    gzFile f = gzopen(data_path(name), "wb");
    CHECK(f != NULL);
    CHECK(n == 0 || gzwrite(f, bytes, (unsigned)n) == (int)n);
    CHECK(gzclose(f) == Z_OK);
}

tt_batch_data data_all(tt_data *d)
{
    tt_batch_data b = {0};
    CHECK(d != NULL);
    CHECK_OK(tt_data_start(d, tt_data_count(d), 0));
    CHECK_OK(tt_data_next(d, &b));
    CHECK_INT(b.rows, tt_data_count(d));
    return b;
}

void data_cuts(const char *name, const void *bytes, size_t n, data_open_fn *open)
{
    tt_ctx *ctx = test_ctx();
    for (size_t cut = 0; cut < n; cut += cut < 200 || n - cut < 100 ? 1 : 37) {
        data_write(name, bytes, cut);
        tt_data *d = open(ctx);
        ck_assert_msg(d == NULL, "%s opens when cut at byte %zu of %zu", name, cut, n);
        CHECK(tt_status_of(ctx) == TT_EIO);
        CHECK_MESSAGE(ctx, name);
        tt_clear_error(ctx);
    }
    data_write(name, bytes, n);
    tt_data *d = open(ctx);
    ck_assert_msg(d != NULL, "%s", tt_last_error(ctx).message);
    CHECK_OK(tt_close(ctx));
}

void data_no_memory(data_open_fn *open)
{
    int k = 1;
    for (; k < 5000; k++) {
        tt_ctx *ctx = test_ctx();
        tt_batch_data b;
        tti_fail_alloc_at(ctx, k);
        tt_data *d = open(ctx);
        bool ok = d != NULL && tt_data_start(d, 0, 0) == TT_OK && tt_data_next(d, &b) == TT_OK;
        tti_fail_alloc_at(ctx, 0);
        ck_assert_msg(ok || tt_status_of(ctx) == TT_ENOMEM, "allocation %d: %s", k,
                      tt_last_error(ctx).message);
        tt_clear_error(ctx);
        tt_status st = tt_close(ctx);
        ck_assert_msg(st == TT_OK, "allocation %d: tt_close gives %s", k, tt_status_name(st));
        if (ok)
            break;
    }
    CHECK(k > 3 && k < 5000);
}

void data_refuses(data_open_fn *open, const char *words)
{
    tt_ctx *ctx = test_ctx();
    CHECK(open(ctx) == NULL);
    CHECK(tt_status_of(ctx) != TT_OK);
    CHECK_MESSAGE(ctx, words);
    tt_clear_error(ctx);
    CHECK_OK(tt_close(ctx));
}
