/*
 * npy_header.c - the header of NumPy's array files: a magic, a version, a length, and a dictionary
 * in Python's notation with the keys descr, fortran_order and shape.
 */
#include "base/base.h"
#include "data/npy.h"
#include <string.h>

#define HEADER_MAX 65536

static const struct {
    const char *descr;
    tti_npy_type type;
    int64_t bytes;
} types[] = {{"<f4", TTI_NPY_F4, 4}, {"<f8", TTI_NPY_F8, 8}, {"<i4", TTI_NPY_I4, 4},
             {"<i8", TTI_NPY_I8, 8}, {"|u1", TTI_NPY_U1, 1}, {"<u2", TTI_NPY_U2, 2},
             {"|b1", TTI_NPY_B1, 1}};

// What is being read; an error is recorded once.
typedef struct reader {
    tt_ctx *ctx;
    const char *path;
    const char *s; // the rest of the dictionary, zero-ended
} reader;

static tt_status no_dict(reader *r, const char *what)
{
    return TT_FAIL(r->ctx, TT_EIO, "%s: header: %s expected at '%.24s'", r->path, what, r->s);
}

static void skip_blanks(reader *r)
{
    r->s += strspn(r->s, " \t\n\r");
}

static bool take(reader *r, char c)
{
    skip_blanks(r);
    if (*r->s != c)
        return false;
    r->s++;
    return true;
}

static tt_status take_text(reader *r, char out[64])
{
    skip_blanks(r);
    char quote = *r->s;
    if (quote != '\'' && quote != '"')
        return no_dict(r, "a text");
    const char *end = strchr(r->s + 1, quote);
    size_t n = end != NULL ? (size_t)(end - r->s) - 1 : 64;
    if (n > 63)
        return no_dict(r, "a short text");
    memcpy(out, r->s + 1, n);
    out[n] = '\0';
    r->s = end + 1;
    return TT_OK;
}

static tt_status take_bool(reader *r, bool *out)
{
    skip_blanks(r);
    *out = strncmp(r->s, "True", 4) == 0;
    if (!*out && strncmp(r->s, "False", 5) != 0)
        return no_dict(r, "True or False");
    r->s += *out ? 4 : 5;
    return TT_OK;
}

static tt_status take_number(reader *r, int64_t *out)
{
    int64_t v = 0;
    skip_blanks(r);
    if (*r->s < '0' || *r->s > '9')
        return no_dict(r, "a number");
    for (; *r->s >= '0' && *r->s <= '9'; r->s++)
        if (!tti_mul_i64(v, 10, &v) || __builtin_add_overflow(v, *r->s - '0', &v))
            return no_dict(r, "a number of 64 bits");
    r->s += *r->s == 'L'; // of Python 2
    *out = v;
    return TT_OK;
}

// A tuple: the first axis counts records, the others are a record's.
static tt_status take_shape(reader *r, tti_npy *f)
{
    int rank = 0;
    int64_t v = 0;
    f->n = 1;
    if (!take(r, '('))
        return no_dict(r, "a tuple");
    while (!take(r, ')')) {
        if (rank == TT_MAX_RANK)
            return TT_FAIL(r->ctx, TT_EIO, "%s: has more than %d axes", r->path, TT_MAX_RANK);
        TT_TRY(take_number(r, &v));
        if (rank > 0 && (v < 1 || !tti_mul_i64(f->n, v, &f->n) || f->n > INT32_MAX))
            return TT_FAIL(r->ctx, TT_EIO, "%s: axis %d has a size of %lld", r->path, rank,
                           (long long)v);
        if (rank == 0)
            f->count = v;
        else
            f->shape.dim[rank - 1] = v;
        rank++;
        if (!take(r, ',') && *r->s != ')')
            return no_dict(r, "a comma");
    }
    if (rank == 0)
        return TT_FAIL(r->ctx, TT_EIO, "%s: is a scalar; the first axis must count records",
                       r->path);
    f->shape.rank = rank - 1;
    return TT_OK;
}

static tt_status take_type(reader *r, tti_npy *f)
{
    char descr[64];
    skip_blanks(r);
    if (*r->s == '[')
        return TT_FAIL(r->ctx, TT_EIO, "%s: is a structured array; only plain arrays can be read",
                       r->path);
    TT_TRY(take_text(r, descr));
    for (int i = 0; i < TTI_COUNT(types); i++) {
        if (strcmp(descr, types[i].descr) == 0) {
            f->type = types[i].type;
            f->element = types[i].bytes;
            return TT_OK;
        }
    }
    return TT_FAIL(r->ctx, TT_EIO,
                   "%s: elements are '%s'%s; <f4, <f8, <i4, <i8, <u2, |u1 and |b1 can be read",
                   r->path, descr, descr[0] == '>' ? ", big-endian" : "");
}

static tt_status take_dict(reader *r, tti_npy *f)
{
    bool has_type = false, has_order = false, has_shape = false;
    if (!take(r, '{'))
        return no_dict(r, "a dictionary");
    while (!take(r, '}')) {
        char key[64];
        bool fortran = false;
        TT_TRY(take_text(r, key));
        if (!take(r, ':'))
            return no_dict(r, "a colon");
        if (strcmp(key, "descr") == 0 && !has_type) {
            has_type = true;
            TT_TRY(take_type(r, f));
        } else if (strcmp(key, "fortran_order") == 0 && !has_order) {
            has_order = true;
            TT_TRY(take_bool(r, &fortran));
        } else if (strcmp(key, "shape") == 0 && !has_shape) {
            has_shape = true;
            TT_TRY(take_shape(r, f));
        } else {
            return TT_FAIL(r->ctx, TT_EIO, "%s: header: unexpected key '%s'", r->path, key);
        }
        if (fortran)
            return TT_FAIL(
                r->ctx, TT_EIO,
                "%s: is in Fortran order; save it in C order (numpy.ascontiguousarray())", r->path);
        if (!take(r, ',') && *r->s != '}')
            return no_dict(r, "a comma");
    }
    skip_blanks(r);
    if (*r->s != '\0')
        return no_dict(r, "the end");
    if (!has_type || !has_order || !has_shape)
        return TT_FAIL(r->ctx, TT_EIO, "%s: header: %s is missing", r->path,
                       !has_type    ? "descr"
                       : !has_order ? "fortran_order"
                                    : "shape");
    return TT_OK;
}

static tt_status body_size(tt_ctx *ctx, const tti_npy *f, int64_t *out)
{
    int64_t record = f->n * f->element;
    if (f->count == 0)
        return TT_FAIL(ctx, TT_EIO, "%s: has no records", f->bytes.path);
    if (!tti_mul_i64(record, f->count, out) || *out > INT64_MAX - f->header - 1)
        return TT_FAIL(ctx, TT_EIO, "%s: %lld records of %lld bytes are too large", f->bytes.path,
                       (long long)f->count, (long long)record);
    return TT_OK;
}

static tt_status check_size(tt_ctx *ctx, const tti_npy *f)
{
    int64_t record = f->n * f->element, have = f->bytes.n - f->header, want;
    TT_TRY(body_size(ctx, f, &want));
    if (have < want)
        return TT_FAIL(ctx, TT_EIO, "%s: is cut short at byte %lld, within record %lld of %lld",
                       f->bytes.path, (long long)f->bytes.n, (long long)(have / record),
                       (long long)f->count);
    if (have > want)
        return TT_FAIL(ctx, TT_EIO, "%s: has %lld bytes after its last record", f->bytes.path,
                       (long long)(have - want));
    return TT_OK;
}

static tt_status parse_header(tt_ctx *ctx, tti_npy *f)
{
    unsigned char head[12] = {0};
    const char *path = f->bytes.path;
    TT_TRY(tti_bytes_read(ctx, &f->bytes, 0, (size_t)TTI_MIN(f->bytes.n, 12), head));
    if (f->bytes.n < 10 || memcmp(head, "\x93NUMPY", 6) != 0)
        return TT_FAIL(ctx, TT_EIO, "%s: is not a .npy file", path);
    if (head[6] < 1 || head[6] > 3)
        return TT_FAIL(ctx, TT_EIO,
                       "%s: has version %d.%d of the format; versions 1 to 3 can be read", path,
                       head[6], head[7]);
    int64_t at = head[6] == 1 ? 10 : 12, n = head[8] | head[9] << 8;
    if (head[6] > 1)
        n |= (int64_t)head[10] << 16 | (int64_t)head[11] << 24;
    if (n > HEADER_MAX || at + n > f->bytes.n)
        return TT_FAIL(ctx, TT_EIO, "%s: the header has %lld bytes, but the file has %lld", path,
                       (long long)n, (long long)f->bytes.n);
    f->header = at + n;
    char *text = tti_alloc(ctx, (size_t)n + 1);
    if (text == NULL)
        return TT_ENOMEM;
    tt_status st = tti_bytes_read(ctx, &f->bytes, at, (size_t)n, text);
    text[n] = '\0';
    reader r = {ctx, path, text};
    if (st == TT_OK && strlen(text) != (size_t)n)
        st = TT_FAIL(ctx, TT_EIO, "%s: header: contains a zero byte", path);
    if (st == TT_OK)
        st = take_dict(&r, f);
    tti_free(ctx, text);
    return st;
}

static tt_status parse(tt_ctx *ctx, tti_npy *f)
{
    TT_TRY(parse_header(ctx, f));
    return check_size(ctx, f);
}

tt_status tti_npy_promise(tt_ctx *ctx, const tti_bytes *head, int64_t *size)
{
    tti_npy f = {.bytes = *head};
    if (head->n >= 4 && memcmp(head->data, "PK\3\4", 4) == 0)
        return TT_OK; // an archive, whose parts say their sizes
    TT_TRY(parse_header(ctx, &f));
    TT_TRY(body_size(ctx, &f, size));
    *size += f.header;
    return TT_OK;
}

tt_status tti_npy_parse(tt_ctx *ctx, tti_bytes *b, tti_npy *out)
{
    tti_npy f = {.bytes = *b};
    *b = (tti_bytes){.fd = -1};
    tt_status st = parse(ctx, &f);
    if (st != TT_OK)
        tti_bytes_close(ctx, &f.bytes);
    else
        *out = f;
    return st;
}
