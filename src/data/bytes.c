/*
 * bytes.c - files on disk or in memory (bytes.h).
 */
#include "data/bytes.h"
#include "base/ctx.h"
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

#define INFLATE_MOST ((int64_t)16 << 30) // bytes that a gzip file may hold
#define CHUNK        65536

// ---- inflating -------------------------------------------------------------------------------

static void *z_alloc(void *ctx, unsigned n, unsigned bytes)
{
    size_t total;
    return tti_mul_size(n, bytes, &total) ? tti_alloc(ctx, total) : NULL;
}

static void z_free(void *ctx, void *p)
{
    tti_free(ctx, p);
}

static tt_status z_begin(tt_ctx *ctx, const char *path, z_stream *z, int window_bits)
{
    *z = (z_stream){.zalloc = z_alloc, .zfree = z_free, .opaque = ctx};
    int rc = inflateInit2(z, window_bits);
    if (rc == Z_MEM_ERROR)
        return TT_ENOMEM;
    if (rc != Z_OK)
        return TT_FAIL(ctx, TT_EIO, "%s: zlib cannot start: error %d", path, rc);
    return TT_OK;
}

static tt_status z_damaged(tt_ctx *ctx, const char *path, const z_stream *z, int rc, int64_t at)
{
    if (rc == Z_MEM_ERROR)
        return TT_ENOMEM; // recorded by the allocation
    if (rc == Z_BUF_ERROR)
        return TT_FAIL(ctx, TT_EIO, "%s: compressed data is cut short at byte %lld", path,
                       (long long)at);
    return TT_FAIL(ctx, TT_EIO, "%s: compressed data is damaged near byte %lld: %s", path,
                   (long long)at, z->msg != NULL ? z->msg : "unknown block");
}

// What has been inflated so far; grows.
typedef struct pool {
    unsigned char *data;
    int64_t n, cap, most;
    bool stops; // at most, without an error
} pool;

static bool is_enough(const pool *p)
{
    return p->stops && p->n >= p->most;
}

static tt_status pool_room(tt_ctx *ctx, const char *path, pool *p)
{
    if (p->n < TTI_MIN(p->cap, p->most))
        return TT_OK;
    if (p->n >= p->most)
        return TT_FAIL(ctx, TT_EIO, "%s: decompresses to more than %lld bytes", path,
                       (long long)p->most - 1);
    return tti_grow(ctx, &p->data, &p->cap, TTI_MAX(p->n + 1, 4 * CHUNK), 1) ? TT_OK : TT_ENOMEM;
}

// Inflates as much as there is room for; *rc is zlib's answer.
static tt_status inflate_some(tt_ctx *ctx, const char *path, z_stream *z, pool *out, int *rc)
{
    TT_TRY(pool_room(ctx, path, out));
    unsigned room = (unsigned)TTI_MIN(TTI_MIN(out->cap, out->most) - out->n, 1 << 30);
    z->next_out = out->data + out->n;
    z->avail_out = room;
    *rc = inflate(z, Z_NO_FLUSH);
    out->n += room - z->avail_out;
    return TT_OK;
}

// Inflates all of raw: one gzip member or several, one after another.
static tt_status inflate_members(tt_ctx *ctx, const tti_bytes *raw, z_stream *z, pool *out)
{
    unsigned char in[CHUNK];
    int64_t at = 0;
    int rc = Z_OK;
    while ((at < raw->n || z->avail_in > 0) && !is_enough(out)) {
        if (z->avail_in == 0) {
            size_t n = (size_t)TTI_MIN(raw->n - at, CHUNK);
            TT_TRY(tti_bytes_read(ctx, raw, at, n, in));
            z->next_in = in;
            z->avail_in = (unsigned)n;
            at += (int64_t)n;
        }
        if (rc == Z_STREAM_END && inflateReset(z) != Z_OK)
            return z_damaged(ctx, raw->path, z, Z_STREAM_ERROR, at);
        TT_TRY(inflate_some(ctx, raw->path, z, out, &rc));
        if (rc != Z_OK && rc != Z_STREAM_END && !(rc == Z_BUF_ERROR && z->avail_in == 0))
            return z_damaged(ctx, raw->path, z, rc, at - z->avail_in);
    }
    while ((rc == Z_OK || rc == Z_BUF_ERROR) &&
           !is_enough(out)) { // all is read; what zlib holds back comes out
        int64_t before = out->n;
        TT_TRY(inflate_some(ctx, raw->path, z, out, &rc));
        if (rc != Z_STREAM_END && out->n == before)
            return z_damaged(ctx, raw->path, z, Z_BUF_ERROR, at);
    }
    return TT_OK;
}

/*
 * Inflates the beginning and asks the format what there will be: nothing that is no such file grows
 * beyond that. *most: bytes that may come.
 */
static tt_status look_at_head(tt_ctx *ctx, const tti_bytes *b, tti_promise promise, int64_t *most)
{
    z_stream z;
    pool head = {.most = TTI_HEAD_BYTES, .stops = true};
    TT_TRY(z_begin(ctx, b->path, &z, 15 + 16));
    tt_status st = inflate_members(ctx, b, &z, &head);
    inflateEnd(&z);
    tti_bytes view = {.path = b->path, .fd = -1, .data = head.data, .n = head.n};
    int64_t size = -1;
    if (st == TT_OK)
        st = promise(ctx, &view, &size);
    tti_free(ctx, head.data);
    // Deflate makes at most 1032 bytes of one.
    if (st == TT_OK && size / 1040 > b->n)
        return TT_FAIL(ctx, TT_EIO,
                       "%s: %lld compressed bytes cannot hold the %lld bytes of its header",
                       b->path, (long long)b->n, (long long)size);
    if (st == TT_OK && size >= 0)
        *most = TTI_MIN(*most, size + 1); // one more, so that too many are seen
    return st;
}

// b, a gzip file, becomes what is in it.
static tt_status gunzip(tt_ctx *ctx, tti_bytes *b, tti_promise promise)
{
    z_stream z;
    pool out = {.most = INFLATE_MOST};
    if (ctx->top.host_memory > 0) // what has no header must leave room for the rest
        out.most = (int64_t)TTI_MIN((size_t)out.most, ctx->top.host_memory / 2);
    if (promise != NULL)
        TT_TRY(look_at_head(ctx, b, promise, &out.most));
    TT_TRY(z_begin(ctx, b->path, &z, 15 + 16));
    tt_status st = inflate_members(ctx, b, &z, &out);
    inflateEnd(&z);
    unsigned char *fit = NULL;
    if (st == TT_OK && (fit = tti_realloc(ctx, out.data, (size_t)TTI_MAX(out.n, 1))) == NULL)
        st = TT_ENOMEM;
    if (st != TT_OK) {
        tti_free(ctx, out.data);
        return st;
    }
    if (b->fd >= 0)
        close(b->fd);
    tti_free(ctx, b->owned);
    b->fd = -1;
    b->owned = (char *)fit;
    b->data = fit;
    b->n = out.n;
    return TT_OK;
}

tt_status tti_bytes_inflate(tt_ctx *ctx, const tti_bytes *whole, const char *name, int64_t at,
                            int64_t n, int64_t size, tti_bytes *out)
{
    tti_bytes raw = {.fd = -1};
    z_stream z;
    pool p = {0};
    // Deflate makes at most 1032 bytes of one: a size beyond that is a lie, and not allocated.
    if (size > INFLATE_MOST || size / 1040 > n)
        return TT_FAIL(ctx, TT_EIO, "%s: %lld compressed bytes cannot hold %lld bytes", name,
                       (long long)n, (long long)size);
    TT_TRY(tti_bytes_part(ctx, whole, name, at, n, &raw));
    tt_status st = z_begin(ctx, name, &z, -15);
    if (st == TT_OK) {
        p.cap = p.most = size + 1; // one more, so that too many are seen
        p.data = tti_alloc(ctx, (size_t)p.cap);
        st = p.data == NULL ? TT_ENOMEM : inflate_members(ctx, &raw, &z, &p);
        inflateEnd(&z);
    }
    if (st == TT_OK && p.n != size)
        st = TT_FAIL(ctx, TT_EIO, "%s: decompresses to %lld bytes instead of %lld", name,
                     (long long)p.n, (long long)size);
    if (st != TT_OK) {
        tti_free(ctx, p.data);
        tti_bytes_close(ctx, &raw);
        return st;
    }
    raw.is_part = false;
    raw.fd = -1;
    raw.start = 0;
    raw.n = size;
    raw.owned = (char *)p.data;
    raw.data = p.data;
    *out = raw;
    return TT_OK;
}

// ---- opening ---------------------------------------------------------------------------------

static tt_status open_fd(tt_ctx *ctx, tti_bytes *b)
{
    struct stat st;
    b->fd = open(b->path, O_RDONLY | O_CLOEXEC | O_NONBLOCK); // a pipe must not make us wait
    if (b->fd < 0 || fstat(b->fd, &st) != 0)
        return TT_FAIL(ctx, TT_EIO, "cannot open '%s': %s", b->path, strerror(errno));
    if (!S_ISREG(st.st_mode))
        return TT_FAIL(ctx, TT_EIO,
                       "'%s' is not a regular file: pipes, devices and folders cannot be read",
                       b->path);
    b->n = st.st_size;
    return TT_OK;
}

// All of the file into memory.
static tt_status load(tt_ctx *ctx, tti_bytes *b)
{
    char *all = tti_alloc(ctx, (size_t)TTI_MAX(b->n, 1));
    if (all == NULL)
        return TT_ENOMEM;
    tt_status st = tti_bytes_read(ctx, b, 0, (size_t)b->n, all);
    if (st != TT_OK) {
        tti_free(ctx, all);
        return st;
    }
    close(b->fd);
    b->fd = -1;
    b->owned = all;
    b->data = (unsigned char *)all;
    return TT_OK;
}

tt_status tti_bytes_open(tt_ctx *ctx, const char *path, int64_t keep, tti_bytes *out)
{
    return tti_bytes_open_as(ctx, path, keep, NULL, out);
}

tt_status tti_bytes_open_as(tt_ctx *ctx, const char *path, int64_t keep, tti_promise promise,
                            tti_bytes *out)
{
    tti_bytes b = {.fd = -1, .path = tti_strdup(ctx, path)};
    unsigned char magic[2] = {0};
    tt_status st = b.path == NULL ? TT_ENOMEM : open_fd(ctx, &b);
    if (st == TT_OK && b.n >= 2)
        st = tti_bytes_read(ctx, &b, 0, 2, magic);
    if (st == TT_OK && magic[0] == 0x1f && magic[1] == 0x8b)
        st = gunzip(ctx, &b, promise);
    else if (st == TT_OK && b.n <= keep)
        st = load(ctx, &b);
    if (st != TT_OK) {
        tti_bytes_close(ctx, &b);
        return st;
    }
    *out = b;
    return TT_OK;
}

tt_status tti_bytes_memory(tt_ctx *ctx, const char *path, const void *data, size_t n,
                           tti_bytes *out)
{
    *out = (tti_bytes){.fd = -1, .is_part = true, .data = data, .n = (int64_t)n};
    out->path = tti_strdup(ctx, path);
    return out->path != NULL ? TT_OK : TT_ENOMEM;
}

tt_status tti_bytes_part(tt_ctx *ctx, const tti_bytes *whole, const char *name, int64_t at,
                         int64_t n, tti_bytes *out)
{
    if (at < 0 || n < 0 || at > whole->n || n > whole->n - at)
        return TT_FAIL(ctx, TT_EIO,
                       "%s: bytes %lld to %lld are outside the file, which has %lld bytes", name,
                       (long long)at, (long long)at + n, (long long)whole->n);
    *out = *whole;
    out->path = tti_strdup(ctx, name);
    out->is_part = true;
    out->owned = NULL;
    out->start = whole->start + at;
    out->n = n;
    return out->path != NULL ? TT_OK : TT_ENOMEM;
}

void tti_bytes_close(tt_ctx *ctx, tti_bytes *b)
{
    if (b->path != NULL && !b->is_part && b->fd >= 0)
        close(b->fd);
    if (!b->is_part)
        tti_free(ctx, b->owned);
    tti_free(ctx, b->path);
    *b = (tti_bytes){.fd = -1};
}

// ---- reading ---------------------------------------------------------------------------------

tt_status tti_bytes_read(tt_ctx *ctx, const tti_bytes *b, int64_t at, size_t n, void *out)
{
    if (at < 0 || at > b->n || n > (size_t)(b->n - at))
        return TT_FAIL(ctx, TT_EIO, "%s: %zu bytes at byte %lld are past the end, byte %lld",
                       b->path, n, (long long)at, (long long)b->n);
    if (b->fd < 0) {
        if (n > 0)
            memcpy(out, b->data + b->start + at, n);
        return TT_OK;
    }
    for (size_t done = 0; done < n;) {
        ssize_t got =
            pread(b->fd, (char *)out + done, n - done, (off_t)(b->start + at + (int64_t)done));
        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0)
            return TT_FAIL(ctx, TT_EIO, "%s: cannot read at byte %lld: %s", b->path,
                           (long long)at + (long long)done, strerror(errno));
        if (got == 0)
            return TT_FAIL(ctx, TT_EIO,
                           "%s: ends at byte %lld; it had %lld bytes when it was opened", b->path,
                           (long long)at + (long long)done, (long long)b->n);
        done += (size_t)got;
    }
    return TT_OK;
}

tt_status tti_bytes_crc(tt_ctx *ctx, const tti_bytes *b, uint32_t *out)
{
    tti_scan s;
    uLong crc = crc32(0, NULL, 0);
    tti_scan_begin(&s, b, 0, b->n);
    for (;;) {
        int c = tti_scan_byte(ctx, &s);
        if (c == TTI_SCAN_ERROR)
            return tt_status_of(ctx);
        if (c == TTI_SCAN_END)
            break;
        s.p--; // all of the window at once
        while (s.p < s.p_end) {
            unsigned n = (unsigned)TTI_MIN(s.p_end - s.p, 1 << 30);
            crc = crc32(crc, s.p, n);
            s.p += n;
        }
    }
    *out = (uint32_t)crc;
    return TT_OK;
}

void tti_scan_begin(tti_scan *s, const tti_bytes *b, int64_t at, int64_t end)
{
    s->bytes = b;
    s->next = TTI_MIN(at, b->n);
    s->end = TTI_MIN(end, b->n);
    s->p = s->p_end = s->window;
}

int tti_scan_more(tt_ctx *ctx, tti_scan *s)
{
    int64_t left = s->end - s->next;
    if (left <= 0)
        return TTI_SCAN_END;
    if (s->bytes->fd < 0) { // it is all there
        s->p = s->bytes->data + s->bytes->start + s->next;
        s->p_end = s->p + left;
        s->next = s->end;
        return *s->p++;
    }
    size_t n = (size_t)TTI_MIN(left, (int64_t)sizeof(s->window));
    if (tti_bytes_read(ctx, s->bytes, s->next, n, s->window) != TT_OK)
        return TTI_SCAN_ERROR;
    s->next += (int64_t)n;
    s->p = s->window;
    s->p_end = s->window + n;
    return *s->p++;
}
