/*
 * tfrecord.c - TFRecord files as a source: a length, its checksum, the record and its checksum.
 * Opening reads the lengths; checksums of records are compared whenever a record is read.
 */
#include "data/shards.h"
#include <stddef.h>
#include <string.h>

#define MOST_RECORD ((uint64_t)1 << 30)
#define HEAD        12
#define TAIL        4

typedef struct tfrecord {
    tti_files files;
    char *x, *y;
    int64_t count, cap;
    int64_t *start;  // of records, behind their heads, in all files
    uint32_t *bytes; // of each
    int64_t cap_bytes;
    tti_feature_kind x_kind, y_kind;
    int64_t n_x, n_y;
    tti_images_about about;
    tti_room_pool pool;
    tt_field field[2];
} tfrecord;

static uint64_t little(const unsigned char *p, int n)
{
    uint64_t v = 0;
    for (int i = 0; i < n; i++)
        v |= (uint64_t)p[i] << (8 * i);
    return v;
}

static bool checks(const unsigned char *p, size_t n, const unsigned char *sum)
{
    uint32_t crc = tti_record_crc(p, n), masked = (crc >> 15 | crc << 17) + 0xa282ead8;
    return masked == (uint32_t)little(sum, 4);
}

// ---- one record ------------------------------------------------------------------------------

static const char *path_of(const tfrecord *t, int64_t i)
{
    return t->files.file[tti_files_find(&t->files, t->start[i])].path;
}

static tt_status load(tt_ctx *ctx, const tfrecord *t, int64_t i, tti_decode_room *r,
                      const unsigned char **out)
{
    size_t n = t->bytes[i];
    unsigned char *p = tti_room_get(ctx, r, 0, n + TAIL);
    if (p == NULL)
        return TT_ENOMEM;
    TT_TRY(tti_files_read(ctx, &t->files, t->start[i], n + TAIL, p));
    if (!checks(p, n, p + n))
        return TT_FAIL(ctx, TT_EIO, "%s: record %lld is damaged: its checksum does not match",
                       path_of(t, i), (long long)i);
    *out = p;
    return TT_OK;
}

static tt_status find(tt_ctx *ctx, const tfrecord *t, int64_t i, const unsigned char *p,
                      const char *name, tti_feature *out)
{
    if (!tti_example_find(p, t->bytes[i], name, out))
        return TT_FAIL(ctx, TT_EIO, "%s: record %lld is not a tf.train.Example", path_of(t, i),
                       (long long)i);
    if (out->kind != TTI_FEATURE_NONE)
        return TT_OK;
    tti_text names = {.ctx = ctx};
    tti_example_names(p, t->bytes[i], &names);
    tt_status st = TT_FAIL(ctx, TT_EINVAL, "%s: record %lld has no feature '%s'; it has %s",
                           path_of(t, i), (long long)i, name, names.s != NULL ? names.s : "none");
    tti_text_free(&names);
    return st;
}

static const char *const kind_names[] = {"nothing", "bytes", "floats", "integers"};

static tt_status odd(tt_ctx *ctx, const tfrecord *t, int64_t i, const char *name,
                     const tti_feature *f, tti_feature_kind kind, int64_t n)
{
    return TT_FAIL(ctx, TT_EIO,
                   "%s: record %lld: feature '%s' has %lld %s, but in record 0 it has %lld %s",
                   path_of(t, i), (long long)i, name, (long long)f->n, kind_names[f->kind],
                   (long long)n, kind_names[kind]);
}

static tt_status put_ints(tt_ctx *ctx, const tfrecord *t, int64_t i, const char *name,
                          const tti_feature *f, tti_decode_room *r, int32_t *out)
{
    int64_t *wide = (int64_t *)(void *)tti_room_get(ctx, r, 2, (size_t)f->n * sizeof(*wide));
    if (wide == NULL)
        return TT_ENOMEM;
    if (!tti_feature_ints(f, wide))
        return TT_FAIL(ctx, TT_EIO, "%s: record %lld is damaged", path_of(t, i), (long long)i);
    for (int64_t k = 0; k < f->n; k++) {
        if (wide[k] < INT32_MIN || wide[k] > INT32_MAX)
            return TT_FAIL(ctx, TT_EIO, "%s: record %lld: feature '%s': %lld does not fit in i32",
                           path_of(t, i), (long long)i, name, (long long)wide[k]);
        out[k] = (int32_t)wide[k];
    }
    return TT_OK;
}

static tt_status put(tt_ctx *ctx, const tfrecord *t, int64_t i, const char *name,
                     const tti_feature *f, tti_decode_room *r, void *out)
{
    tti_coded c = {.path = path_of(t, i)};
    if (f->kind == TTI_FEATURE_INTS)
        return put_ints(ctx, t, i, name, f, r, out);
    if (f->kind == TTI_FEATURE_FLOATS && tti_feature_floats(f, out))
        return TT_OK;
    if (f->kind != TTI_FEATURE_BYTES || !tti_feature_bytes(f, &c.data, &c.n))
        return TT_FAIL(ctx, TT_EIO, "%s: record %lld is damaged", path_of(t, i), (long long)i);
    return tti_images_decode(ctx, &t->about, &c, r, out);
}

static tt_status read_with(tt_ctx *ctx, const tfrecord *t, int64_t i, tti_decode_room *r,
                           void *const *out)
{
    const unsigned char *p;
    tti_feature f;
    TT_TRY(load(ctx, t, i, r, &p));
    TT_TRY(find(ctx, t, i, p, t->x, &f));
    if (f.kind != t->x_kind || f.n != t->n_x)
        return odd(ctx, t, i, t->x, &f, t->x_kind, t->n_x);
    TT_TRY(put(ctx, t, i, t->x, &f, r, out[0]));
    if (t->y[0] == '\0')
        return TT_OK;
    TT_TRY(find(ctx, t, i, p, t->y, &f));
    if (f.kind != t->y_kind || f.n != t->n_y)
        return odd(ctx, t, i, t->y, &f, t->y_kind, t->n_y);
    return put(ctx, t, i, t->y, &f, r, out[1]);
}

static tt_status tfrecord_read(tt_ctx *ctx, void *self, int64_t i, void *const *out)
{
    tfrecord *t = self;
    tti_decode_room *r = tti_pool_borrow(ctx, &t->pool);
    if (r == NULL)
        return TT_ENOMEM;
    tt_status st = read_with(ctx, t, i, r, out);
    tti_pool_return(&t->pool, r);
    return st;
}

// ---- opening ---------------------------------------------------------------------------------

static void tfrecord_close(tt_ctx *ctx, void *self)
{
    tfrecord *t = self;
    tti_files_close(ctx, &t->files);
    tti_free(ctx, t->x);
    tti_free(ctx, t->y);
    tti_free(ctx, t->start);
    tti_free(ctx, t->bytes);
    tti_pool_deinit(&t->pool);
    tti_free(ctx, t);
}

static tt_status index_file(tt_ctx *ctx, tfrecord *t, int64_t k)
{
    const tti_bytes *b = &t->files.file[k];
    unsigned char head[HEAD];
    for (int64_t at = 0; at < b->n;) {
        if (b->n - at < HEAD + TAIL)
            return TT_FAIL(ctx, TT_EIO, "%s: is cut short at byte %lld, in record %lld", b->path,
                           (long long)b->n, (long long)t->count);
        TT_TRY(tti_bytes_read(ctx, b, at, HEAD, head));
        uint64_t n = little(head, 8);
        if (!checks(head, 8, head + 8))
            return TT_FAIL(ctx, TT_EIO,
                           "%s: record %lld, byte %lld: the checksum of its length does not match; "
                           "the file is damaged or is not TFRecord",
                           b->path, (long long)t->count, (long long)at);
        if (n > MOST_RECORD || (int64_t)n > b->n - at - HEAD - TAIL)
            return TT_FAIL(ctx, TT_EIO, "%s: record %lld of %llu bytes is cut short, or too large",
                           b->path, (long long)t->count, (unsigned long long)n);
        if (!tti_grow(ctx, &t->start, &t->cap, t->count + 1, sizeof(*t->start)) ||
            !tti_grow(ctx, &t->bytes, &t->cap_bytes, t->count + 1, sizeof(*t->bytes)))
            return TT_ENOMEM;
        t->start[t->count] = t->files.start[k] + at + HEAD;
        t->bytes[t->count++] = (uint32_t)n;
        at += HEAD + (int64_t)n + TAIL;
    }
    return TT_OK;
}

// The first record says what all are.
static tt_status describe_x(tt_ctx *ctx, tfrecord *t, const tt_tfrecord_opts *o,
                            const tti_feature *f)
{
    tt_field *x = &t->field[0];
    char shape[TT_SHAPE_TEXT];
    t->x_kind = f->kind;
    t->n_x = f->n;
    *x = (tt_field){.name = "x", .dtype = f->kind == TTI_FEATURE_INTS ? TT_I32 : TT_F32};
    if (f->kind == TTI_FEATURE_BYTES) {
        if (f->n != 1)
            return TT_FAIL(ctx, TT_EINVAL,
                           "tfrecord: feature '%s' has %lld byte strings; one image file is "
                           "allowed",
                           t->x, (long long)f->n);
        if (o->size[0] < 1 || o->size[1] < 1 || (o->channels != 1 && o->channels != 3))
            return TT_FAIL(ctx, TT_EINVAL,
                           "tfrecord: feature '%s' is an image file: give size, the height and "
                           "width of all records, for example size: [224, 224], and channels: 3 "
                           "or 1",
                           t->x);
        t->about = (tti_images_about){.high = o->size[0],
                                      .wide = o->size[1],
                                      .channels = o->channels,
                                      .fit = o->fit,
                                      .max_pixels = 100000000};
        x->dtype = TT_U8;
        x->shape = TT_SHAPE(o->size[0], o->size[1], o->channels);
        return TT_OK;
    }
    if (f->n < 1)
        return TT_FAIL(ctx, TT_EINVAL, "tfrecord: feature '%s' of record 0 is empty", t->x);
    x->shape = o->shape.rank > 0 ? o->shape : TT_SHAPE(f->n);
    if (tt_shape_count(&x->shape) != f->n)
        return TT_FAIL(ctx, TT_ESHAPE, "tfrecord: feature '%s' has %lld values, but shape is %s",
                       t->x, (long long)f->n, tt_shape_text(&o->shape, shape));
    return TT_OK;
}

static tt_status describe_y(tt_ctx *ctx, tfrecord *t, const tt_tfrecord_opts *o,
                            const tti_feature *f)
{
    t->y_kind = f->kind;
    t->n_y = f->n;
    if (f->kind == TTI_FEATURE_BYTES || f->n < 1)
        return TT_FAIL(ctx, TT_EINVAL,
                       "tfrecord: target '%s' has %lld %s; it must be an integer class, or floats",
                       t->y, (long long)f->n, kind_names[f->kind]);
    t->field[1] = (tt_field){.name = "y", .shape = TT_SHAPE(f->n)};
    if (f->kind == TTI_FEATURE_INTS) {
        t->field[1].dtype = TT_I32;
        t->field[1].classes = o->classes;
        if (f->n == 1)
            t->field[1].shape = (tt_shape){0};
    }
    return TT_OK;
}

// The largest class of all records, where it is not given.
static tt_status count_classes(tt_ctx *ctx, tfrecord *t, tti_decode_room *r)
{
    int32_t most = 0, v;
    for (int64_t i = 0; i < t->count; i++) {
        const unsigned char *p;
        tti_feature f;
        TT_TRY(load(ctx, t, i, r, &p));
        TT_TRY(find(ctx, t, i, p, t->y, &f));
        if (f.kind != TTI_FEATURE_INTS || f.n != 1)
            return odd(ctx, t, i, t->y, &f, t->y_kind, t->n_y);
        TT_TRY(put_ints(ctx, t, i, t->y, &f, r, &v));
        if (v < 0)
            return TT_FAIL(ctx, TT_EIO, "%s: record %lld: class %d of '%s' is below 0",
                           path_of(t, i), (long long)i, v, t->y);
        most = TTI_MAX(most, v);
    }
    t->field[1].classes = (int64_t)most + 1;
    return TT_OK;
}

static tt_status tfrecord_init(tt_ctx *ctx, tfrecord *t, const tt_tfrecord_opts *o,
                               tti_decode_room *r)
{
    const unsigned char *p;
    tti_feature f;
    t->x = tti_strdup(ctx, o->x);
    t->y = tti_strdup(ctx, o->y);
    if (t->x == NULL || t->y == NULL)
        return TT_ENOMEM;
    for (int64_t k = 0; k < t->files.n; k++)
        TT_TRY(index_file(ctx, t, k));
    if (t->count == 0)
        return TT_FAIL(ctx, TT_EIO, "%s: has no records", t->files.file[0].path);
    TT_TRY(load(ctx, t, 0, r, &p));
    TT_TRY(find(ctx, t, 0, p, t->x, &f));
    TT_TRY(describe_x(ctx, t, o, &f));
    if (t->y[0] == '\0')
        return TT_OK;
    TT_TRY(find(ctx, t, 0, p, t->y, &f));
    TT_TRY(describe_y(ctx, t, o, &f));
    bool counts = t->y_kind == TTI_FEATURE_INTS && t->n_y == 1 && o->classes == 0;
    return counts ? count_classes(ctx, t, r) : TT_OK;
}

// Takes the files over.
static tt_status open_files(tt_ctx *ctx, tti_files *files, const tt_tfrecord_opts *o,
                            tt_source *out)
{
    tfrecord *t = tti_calloc(ctx, 1, sizeof(*t));
    if (t == NULL) {
        tti_files_close(ctx, files);
        return TT_ENOMEM;
    }
    t->files = *files;
    tti_pool_init(&t->pool);
    tti_decode_room *r = tti_pool_borrow(ctx, &t->pool);
    tt_status st = r != NULL ? tfrecord_init(ctx, t, o, r) : TT_ENOMEM;
    if (r != NULL)
        tti_pool_return(&t->pool, r);
    if (st != TT_OK) {
        tfrecord_close(ctx, t);
        return st;
    }
    *out = (tt_source){.count = t->count,
                       .n_fields = t->y[0] != '\0' ? 2 : 1,
                       .fields = {t->field[0], t->field[1]},
                       .self = t,
                       .read = tfrecord_read,
                       .close = tfrecord_close};
    return TT_OK;
}

tt_status tti_tfrecord_source(tt_ctx *ctx, tti_bytes *b, const tt_tfrecord_opts *o, tt_source *out)
{
    tti_files files;
    TT_TRY(tti_files_of(ctx, b, &files));
    return open_files(ctx, &files, o, out);
}

static tt_status tfrecord_open(tt_ctx *ctx, const void *options, tt_source *out)
{
    const tt_tfrecord_opts *o = options;
    tti_files files;
    TT_TRY(tti_files_open(ctx, "tfrecord", o->file, &files));
    return open_files(ctx, &files, o, out);
}

bool tti_tfrecord_about(const tt_data *d, tti_images_about *out)
{
    const tfrecord *t = d->source.close == tfrecord_close ? d->source.self : NULL;
    if (t == NULL || t->x_kind != TTI_FEATURE_BYTES)
        return false;
    *out = t->about;
    return true;
}

void tti_tfrecord_describe(const tt_data *d, tti_text *t)
{
    const tfrecord *r = d->source.close == tfrecord_close ? d->source.self : NULL;
    if (r == NULL)
        return;
    tti_text_add(t, ", \"features\": {\"x\": ");
    tti_text_json(t, r->x);
    tti_text_add(t, ", \"y\": ");
    tti_text_json(t, r->y);
    tti_text_add(t, "}");
}

static const char *const fit_words[] = {"crop", "stretch", "pad", NULL};
// clang-format off
static const tt_option tfrecord_options[] = {
    {"file", TT_OPT_TEXT, NULL, "TFRecord files: names or patterns; may be compressed (.gz)",
     offsetof(tt_tfrecord_opts, file), 0, 0, NULL},
    {"x", TT_OPT_TEXT, NULL, "the input feature: floats, integers, or one image file",
     offsetof(tt_tfrecord_opts, x), 0, 0, NULL},
    {"y", TT_OPT_TEXT, "", "the target feature: an integer class, or floats",
     offsetof(tt_tfrecord_opts, y), 0, 0, NULL},
    {"shape", TT_OPT_SHAPE, "[]", "shape of x; default: one axis",
     offsetof(tt_tfrecord_opts, shape), 0, 0, NULL},
    {"classes", TT_OPT_INT, "0", "number of classes; 0: found by reading all records",
     offsetof(tt_tfrecord_opts, classes), 0, INT32_MAX, NULL},
    {"size", TT_OPT_PAIR, "0", "images: height and width that they are resized to",
     offsetof(tt_tfrecord_opts, size), 0, 16384, NULL},
    {"channels", TT_OPT_INT32, "3", "images: 3 for colour, 1 for grey",
     offsetof(tt_tfrecord_opts, channels), 1, 3, NULL},
    {"fit", TT_OPT_ENUM, "crop", "images of other proportions: crop, stretch or pad",
     offsetof(tt_tfrecord_opts, fit), 0, 0, fit_words},
    TT_OPTION_END,
};
// clang-format on

const tt_source_def tti_source_tfrecord = {
    .name = "tfrecord",
    .help = "TFRecord files of tf.train.Example",
    .options = tfrecord_options,
    .options_size = sizeof(tt_tfrecord_opts),
    .main = "file",
    .open = tfrecord_open,
};
