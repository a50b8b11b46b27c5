/*
 * idx.c - IDX files (idx.h) as a source.
 */
#include "data/idx.h"
#include "data/data.h"
#include <stddef.h>
#include <string.h>

#define CHUNK 4096

static const struct {
    int type;
    size_t bytes;
    bool is_integer;
} types[] = {{0x08, 1, true}, {0x09, 1, true},  {0x0b, 2, true},
             {0x0c, 4, true}, {0x0d, 4, false}, {0x0e, 8, false}};

static uint32_t big32(const unsigned char *p)
{
    return (uint32_t)p[0] << 24 | (uint32_t)p[1] << 16 | (uint32_t)p[2] << 8 | p[3];
}

// ---- header ----------------------------------------------------------------------------------

static tt_status parse_axes(tt_ctx *ctx, tti_idx *f, int rank)
{
    unsigned char axes[4 * TT_MAX_RANK];
    const char *path = f->bytes.path;
    f->header = 4 + 4 * (int64_t)rank;
    if (f->bytes.n < f->header)
        return TT_FAIL(ctx, TT_EIO, "%s: is cut short at byte %lld, within its header", path,
                       (long long)f->bytes.n);
    TT_TRY(tti_bytes_read(ctx, &f->bytes, 4, 4 * (size_t)rank, axes));
    f->count = big32(axes);
    f->shape.rank = rank - 1;
    f->n = 1;
    for (int i = 1; i < rank; i++) {
        f->shape.dim[i - 1] = big32(axes + 4 * i);
        if (f->shape.dim[i - 1] == 0 || !tti_mul_i64(f->n, f->shape.dim[i - 1], &f->n) ||
            f->n > INT32_MAX)
            return TT_FAIL(ctx, TT_EIO, "%s: axis %d has a size of %lld", path, i,
                           (long long)f->shape.dim[i - 1]);
    }
    return TT_OK;
}

static tt_status body_size(tt_ctx *ctx, const tti_idx *f, int64_t *out)
{
    int64_t record = f->n * (int64_t)f->element;
    if (f->count == 0)
        return TT_FAIL(ctx, TT_EIO, "%s: has no records", f->bytes.path);
    if (!tti_mul_i64(record, f->count, out) || *out > INT64_MAX - f->header - 1)
        return TT_FAIL(ctx, TT_EIO, "%s: %lld records of %lld bytes are too large", f->bytes.path,
                       (long long)f->count, (long long)record);
    return TT_OK;
}

// The size must be what the header says: not a byte less or more.
static tt_status check_size(tt_ctx *ctx, const tti_idx *f)
{
    const char *path = f->bytes.path;
    int64_t record = f->n * (int64_t)f->element, have = f->bytes.n - f->header, want;
    TT_TRY(body_size(ctx, f, &want));
    if (have < want)
        return TT_FAIL(ctx, TT_EIO, "%s: is cut short at byte %lld, within record %lld of %lld",
                       path, (long long)f->bytes.n, (long long)(have / record),
                       (long long)f->count);
    if (have > want)
        return TT_FAIL(ctx, TT_EIO, "%s: has %lld bytes after its last record", path,
                       (long long)(have - want));
    return TT_OK;
}

static tt_status parse_header(tt_ctx *ctx, tti_idx *f)
{
    unsigned char magic[4];
    const char *path = f->bytes.path;
    if (f->bytes.n < 4)
        return TT_FAIL(ctx, TT_EIO, "%s: is not an IDX file: it has only %lld bytes", path,
                       (long long)f->bytes.n);
    TT_TRY(tti_bytes_read(ctx, &f->bytes, 0, 4, magic));
    f->type = magic[2];
    for (int i = 0; i < TTI_COUNT(types); i++)
        if (types[i].type == f->type)
            f->element = types[i].bytes;
    if (magic[0] != 0 || magic[1] != 0 || f->element == 0)
        return TT_FAIL(ctx, TT_EIO, "%s: is not an IDX file: it begins with %02x %02x %02x %02x",
                       path, magic[0], magic[1], magic[2], magic[3]);
    if (magic[3] < 1 || magic[3] > TT_MAX_RANK)
        return TT_FAIL(ctx, TT_EIO, "%s: has %d axes; 1 to %d are allowed", path, magic[3],
                       TT_MAX_RANK);
    for (int v = 0; v < 256; v++)
        f->unit[v] = (float)v / 255.0f;
    return parse_axes(ctx, f, magic[3]);
}

static tt_status parse(tt_ctx *ctx, tti_idx *f)
{
    TT_TRY(parse_header(ctx, f));
    return check_size(ctx, f);
}

// How many bytes a file with this header has.
static tt_status promise(tt_ctx *ctx, const tti_bytes *head, int64_t *size)
{
    tti_idx f = {.bytes = *head};
    TT_TRY(parse_header(ctx, &f));
    TT_TRY(body_size(ctx, &f, size));
    *size += f.header;
    return TT_OK;
}

tt_status tti_idx_parse(tt_ctx *ctx, tti_bytes *b, tti_idx *out)
{
    tti_idx f = {.bytes = *b};
    *b = (tti_bytes){.fd = -1};
    tt_status st = parse(ctx, &f);
    if (st != TT_OK)
        tti_bytes_close(ctx, &f.bytes);
    else
        *out = f;
    return st;
}

// ---- elements --------------------------------------------------------------------------------

static double element_at(const unsigned char *p, int type)
{
    switch (type) {
    case 0x08:
        return p[0];
    case 0x09:
        return (int8_t)p[0];
    case 0x0b:
        return (int16_t)(p[0] << 8 | p[1]);
    case 0x0c:
        return (int32_t)big32(p);
    case 0x0d: {
        uint32_t u = big32(p);
        float v;
        memcpy(&v, &u, sizeof(v));
        return (double)v;
    }
    default: {
        uint64_t u = (uint64_t)big32(p) << 32 | big32(p + 4);
        double v;
        memcpy(&v, &u, sizeof(v));
        return v;
    }
    }
}

tt_status tti_idx_floats(tt_ctx *ctx, const tti_idx *f, int64_t i, float *out)
{
    unsigned char raw[CHUNK];
    int64_t at = f->header + i * f->n * (int64_t)f->element, per = CHUNK / (int64_t)f->element;
    for (int64_t done = 0; done < f->n; done += per) {
        int64_t n = TTI_MIN(f->n - done, per);
        TT_TRY(tti_bytes_read(ctx, &f->bytes, at + done * (int64_t)f->element,
                              (size_t)n * f->element, raw));
        if (f->type == 0x08)
            for (int64_t k = 0; k < n; k++)
                out[done + k] = f->unit[raw[k]];
        else
            for (int64_t k = 0; k < n; k++)
                out[done + k] = (float)element_at(raw + (size_t)k * f->element, f->type);
    }
    return TT_OK;
}

bool tti_idx_has_labels(const tti_idx *f)
{
    return f->shape.rank == 0 && f->type != 0x0d && f->type != 0x0e;
}

tt_status tti_idx_label(tt_ctx *ctx, const tti_idx *f, int64_t i, int32_t *out)
{
    unsigned char raw[8];
    TT_TRY(tti_bytes_read(ctx, &f->bytes, f->header + i * (int64_t)f->element, f->element, raw));
    *out = (int32_t)element_at(raw, f->type);
    return TT_OK;
}

tt_status tti_idx_classes(tt_ctx *ctx, const tti_idx *f, int64_t most, int64_t *out)
{
    int32_t low = 0, high = 0;
    unsigned char raw[CHUNK];
    int64_t per = CHUNK / (int64_t)f->element;
    for (int64_t i = 0; i < f->count; i++) {
        int64_t k = i % per;
        if (k == 0)
            TT_TRY(tti_bytes_read(ctx, &f->bytes, f->header + i * (int64_t)f->element,
                                  (size_t)TTI_MIN(per, f->count - i) * f->element, raw));
        int32_t v = (int32_t)element_at(raw + (size_t)k * f->element, f->type);
        if (most != 0 && (v < 0 || v >= most))
            return TT_FAIL(ctx, TT_EPARSE,
                           "%s: record %lld: the label is %d, but must be below %lld",
                           f->bytes.path, (long long)i, v, (long long)most);
        low = TTI_MIN(low, v);
        high = TTI_MAX(high, v);
    }
    *out = most != 0 ? most : low < 0 ? 0 : (int64_t)high + 1;
    return TT_OK;
}

// ---- a source --------------------------------------------------------------------------------

typedef struct idx_pair {
    tti_idx x, y;
    bool has_y;
} idx_pair;

static tt_status idx_read(tt_ctx *ctx, void *self, int64_t i, void *const *out)
{
    const idx_pair *p = self;
    TT_TRY(tti_idx_floats(ctx, &p->x, i, out[0]));
    if (!p->has_y)
        return TT_OK;
    if (tti_idx_has_labels(&p->y))
        return tti_idx_label(ctx, &p->y, i, out[1]);
    return tti_idx_floats(ctx, &p->y, i, out[1]);
}

static void idx_close(tt_ctx *ctx, void *self)
{
    idx_pair *p = self;
    tti_bytes_close(ctx, &p->x.bytes);
    tti_bytes_close(ctx, &p->y.bytes);
    tti_free(ctx, p);
}

static tt_status idx_target(tt_ctx *ctx, const idx_pair *p, int64_t classes, tt_field *y)
{
    *y = (tt_field){.name = "y", .shape = p->y.shape};
    if (p->y.count != p->x.count)
        return TT_FAIL(ctx, TT_EIO, "%s: has %lld records, but '%s' has %lld", p->y.bytes.path,
                       (long long)p->y.count, p->x.bytes.path, (long long)p->x.count);
    if (!tti_idx_has_labels(&p->y))
        return TT_OK;
    y->dtype = TT_I32;
    return tti_idx_classes(ctx, &p->y, classes, &y->classes);
}

tt_status tti_idx_source(tt_ctx *ctx, tti_bytes *x, tti_bytes *y, int64_t classes, tt_source *out)
{
    tt_status st = TT_ENOMEM;
    tt_source s = {.n_fields = 1, .read = idx_read, .close = idx_close};
    idx_pair *p = tti_calloc(ctx, 1, sizeof(*p));
    if (p == NULL)
        goto close_files;
    st = tti_idx_parse(ctx, x, &p->x);
    if (st == TT_OK && y != NULL) {
        p->has_y = true;
        s.n_fields = 2;
        st = tti_idx_parse(ctx, y, &p->y);
        if (st == TT_OK)
            st = idx_target(ctx, p, classes, &s.fields[1]);
    }
    if (st != TT_OK) {
        idx_close(ctx, p);
        goto close_files;
    }
    s.count = p->x.count;
    s.fields[0] = (tt_field){.name = "x", .shape = p->x.shape};
    s.self = p;
    *out = s;
    return TT_OK;

close_files:
    tti_bytes_close(ctx, x);
    if (y != NULL)
        tti_bytes_close(ctx, y);
    return st;
}

tt_status tti_idx_open(tt_ctx *ctx, const char *x, const char *y, int64_t classes, tt_source *out)
{
    tti_bytes bx = {.fd = -1}, by = {.fd = -1};
    bool has_y = y != NULL && y[0] != '\0';
    TT_TRY(tti_bytes_open_as(ctx, x, 0, promise, &bx));
    tt_status st = has_y ? tti_bytes_open_as(ctx, y, 0, promise, &by) : TT_OK;
    if (st != TT_OK) {
        tti_bytes_close(ctx, &bx);
        return st;
    }
    return tti_idx_source(ctx, &bx, has_y ? &by : NULL, classes, out);
}

static tt_status idx_open(tt_ctx *ctx, const void *options, tt_source *out)
{
    const tt_idx_opts *o = options;
    if (o->x == NULL || o->x[0] == '\0')
        return TT_FAIL(ctx, TT_EINVAL, "idx: x must be given");
    return tti_idx_open(ctx, o->x, o->y, 0, out);
}

static const tt_option idx_options[] = {
    {"x", TT_OPT_TEXT, NULL, "IDX file with the records; may be compressed (.gz)",
     offsetof(tt_idx_opts, x), 0, 0, NULL},
    {"y", TT_OPT_TEXT, "", "IDX file with the labels or other targets", offsetof(tt_idx_opts, y), 0,
     0, NULL},
    TT_OPTION_END,
};

const tt_source_def tti_source_idx = {
    .name = "idx",
    .help = "files in the IDX format, the format of MNIST",
    .options = idx_options,
    .options_size = sizeof(tt_idx_opts),
    .main = "x",
    .open = idx_open,
};
