/*
 * cifar10.c - CIFAR-10's binary files: records of a label and three planes of 32 by 32 bytes, red,
 * green, blue.
 */
#include "data/bytes.h"
#include "data/data.h"
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#define PLANE  (32 * 32)
#define RECORD (1 + 3 * PLANE)
#define FILES  5

typedef struct cifar {
    int n;
    tti_bytes file[FILES];
    int64_t first[FILES + 1]; // number of each file's first record
    float unit[256];          // bytes as numbers in [0, 1]
} cifar;

static tt_status cifar_read(tt_ctx *ctx, void *self, int64_t i, void *const *out)
{
    const cifar *c = self;
    unsigned char raw[RECORD];
    float *x = out[0];
    int f = 0;
    while (i >= c->first[f + 1])
        f++;
    TT_TRY(tti_bytes_read(ctx, &c->file[f], (i - c->first[f]) * RECORD, RECORD, raw));
    if (raw[0] >= 10)
        return TT_FAIL(ctx, TT_EPARSE, "%s: record %lld: the label is %d, but must be below 10",
                       c->file[f].path, (long long)(i - c->first[f]), raw[0]);
    for (int p = 0; p < PLANE; p++)
        for (int k = 0; k < 3; k++)
            x[3 * p + k] = c->unit[raw[1 + k * PLANE + p]];
    *(int32_t *)out[1] = raw[0];
    return TT_OK;
}

static void cifar_close(tt_ctx *ctx, void *self)
{
    cifar *c = self;
    for (int f = 0; f < c->n; f++)
        tti_bytes_close(ctx, &c->file[f]);
    tti_free(ctx, c);
}

static tt_status add_file(tt_ctx *ctx, cifar *c, const char *path)
{
    tti_bytes *b = &c->file[c->n];
    TT_TRY(tti_bytes_open(ctx, path, 0, b));
    c->n++;
    if (b->n == 0 || b->n % RECORD != 0)
        return TT_FAIL(ctx, TT_EIO,
                       "%s: is cut short at byte %lld, within record %lld; a record has %d bytes",
                       path, (long long)b->n, (long long)(b->n / RECORD), RECORD);
    c->first[c->n] = c->first[c->n - 1] + b->n / RECORD;
    return TT_OK;
}

static tt_status add_files(tt_ctx *ctx, cifar *c, const char *dir, bool test)
{
    char path[TTI_PATH_MAX + 64];
    if (test) {
        snprintf(path, sizeof(path), "%s/test_batch.bin", dir);
        return add_file(ctx, c, path);
    }
    for (int f = 1; f <= FILES; f++) {
        snprintf(path, sizeof(path), "%s/data_batch_%d.bin", dir, f);
        TT_TRY(add_file(ctx, c, path));
    }
    return TT_OK;
}

static tt_status cifar_open(tt_ctx *ctx, const void *options, tt_source *out)
{
    const tt_cifar10_opts *o = options;
    char dir[TTI_PATH_MAX];
    bool test = strcmp(o->split, "test") == 0;
    if (!test && strcmp(o->split, "train") != 0)
        return TT_FAIL(ctx, TT_EINVAL, "cifar10: split is '%s'; use 'train' or 'test'", o->split);
    TT_TRY(tti_data_dir(ctx, o->dir, "cifar10", dir));
    cifar *c = tti_calloc(ctx, 1, sizeof(*c));
    if (c == NULL)
        return TT_ENOMEM;
    for (int v = 0; v < 256; v++)
        c->unit[v] = (float)v / 255.0f;
    tt_status st = add_files(ctx, c, dir, test);
    if (st != TT_OK) {
        cifar_close(ctx, c);
        return st;
    }
    *out = (tt_source){
        .count = c->first[c->n],
        .n_fields = 2,
        .fields = {{.name = "x", .dtype = TT_F32, .shape = TT_SHAPE(32, 32, 3)},
                   {.name = "y", .dtype = TT_I32, .classes = 10}},
        .self = c,
        .read = cifar_read,
        .close = cifar_close,
    };
    return TT_OK;
}

static const tt_option cifar_options[] = {
    {"split", TT_OPT_TEXT, "train", "which part of the data set: train or test",
     offsetof(tt_cifar10_opts, split), 0, 0, NULL},
    {"dir", TT_OPT_TEXT, "",
     "folder of the files; default: TUTTI_DATA_DIR/cifar10, else data/cifar10",
     offsetof(tt_cifar10_opts, dir), 0, 0, NULL},
    TT_OPTION_END,
};

const tt_source_def tti_source_cifar10 = {
    .name = "cifar10",
    .help = "CIFAR-10 in its binary format",
    .options = cifar_options,
    .options_size = sizeof(tt_cifar10_opts),
    .main = "split",
    .open = cifar_open,
};
