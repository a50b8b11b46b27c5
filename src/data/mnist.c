/*
 * mnist.c - MNIST: four IDX files in a folder, and other sets of their form.
 */
#include "data/data.h"
#include "data/idx.h"
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

// The file as it is distributed, or as some unpack it: '-' or '.' before idx, .gz or not.
static tt_status mnist_file(tt_ctx *ctx, const char *dir, const char *part, const char *rest,
                            char out[TTI_PATH_MAX])
{
    static const char *const ends[] = {".gz", ""};
    for (int i = 0; i < 4; i++) {
        int n = snprintf(out, TTI_PATH_MAX, "%s/%s%c%s%s", dir, part, i < 2 ? '-' : '.', rest,
                         ends[i % 2]);
        if (n > 0 && n < TTI_PATH_MAX && access(out, F_OK) == 0)
            return TT_OK;
    }
    return TT_FAIL(
        ctx, TT_EIO,
        "mnist: '%s' has no %s-%s.gz; set dir or TUTTI_DATA_DIR to the folder of the four files",
        dir, part, rest);
}

static tt_status mnist_open(tt_ctx *ctx, const void *options, tt_source *out)
{
    const tt_mnist_opts *o = options;
    char dir[TTI_PATH_MAX], x[TTI_PATH_MAX], y[TTI_PATH_MAX];
    bool test = strcmp(o->split, "test") == 0;
    if (!test && strcmp(o->split, "train") != 0)
        return TT_FAIL(ctx, TT_EINVAL, "mnist: split is '%s'; use 'train' or 'test'", o->split);
    TT_TRY(tti_data_dir(ctx, o->dir, "mnist", dir));
    TT_TRY(mnist_file(ctx, dir, test ? "t10k-images" : "train-images", "idx3-ubyte", x));
    TT_TRY(mnist_file(ctx, dir, test ? "t10k-labels" : "train-labels", "idx1-ubyte", y));
    tt_source s = {0};
    TT_TRY(tti_idx_open(ctx, x, y, 10, &s));
    tt_shape *shape = &s.fields[0].shape;
    if (shape->rank != 2 || shape->dim[0] != 28 || shape->dim[1] != 28 ||
        s.fields[1].dtype != TT_I32) {
        char text[TT_SHAPE_TEXT];
        tt_status st = TT_FAIL(ctx, TT_EIO,
                               "%s: records have shape %s; MNIST needs [28, 28], each with a label",
                               x, tt_shape_text(shape, text));
        s.close(ctx, s.self);
        return st;
    }
    *shape = TT_SHAPE(28, 28, 1);
    *out = s;
    return TT_OK;
}

static const tt_option mnist_options[] = {
    {"split", TT_OPT_TEXT, "train", "which part of the data set: train or test",
     offsetof(tt_mnist_opts, split), 0, 0, NULL},
    {"dir", TT_OPT_TEXT, "", "folder of the files; default: TUTTI_DATA_DIR/mnist, else data/mnist",
     offsetof(tt_mnist_opts, dir), 0, 0, NULL},
    TT_OPTION_END,
};

const tt_source_def tti_source_mnist = {
    .name = "mnist",
    .help = "MNIST's four files, or a data set in the same format (Fashion-MNIST)",
    .options = mnist_options,
    .options_size = sizeof(tt_mnist_opts),
    .main = "split",
    .open = mnist_open,
};
