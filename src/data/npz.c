/*
 * npz.c - an array of a NumPy archive, which is a zip file: the directory at its end lists entries,
 * each stored as it is or deflated. A stored entry is read where it lies.
 */
#include "base/base.h"
#include "data/npy.h"
#include <stdio.h>
#include <string.h>

#define END_BYTES   22 // of the end record, without its comment
#define ENTRY_BYTES 46 // of a directory entry, without its names
#define LOCAL_BYTES 30 // of the header in front of an entry's data
#define NAME_MAX_   256

typedef struct entry {
    unsigned flags, method;
    uint32_t crc;
    int64_t packed, size, at; // bytes in the file, bytes inflated, place of the local header
    char name[NAME_MAX_];
} entry;

typedef struct directory {
    int64_t at, bytes, n;
} directory;

static uint32_t little(const unsigned char *p, int n)
{
    uint32_t v = 0;
    for (int i = n - 1; i >= 0; i--)
        v = v << 8 | p[i];
    return v;
}

static tt_status no_zip64(tt_ctx *ctx, const char *path)
{
    return TT_FAIL(ctx, TT_EUNSUPPORTED,
                   "%s: is a zip64 archive, 4 GiB or more; save its arrays as .npy files", path);
}

/*
 * The end record is the last one in the file whose comment ends where the file does.
 */
static tt_status find_directory(tt_ctx *ctx, const tti_bytes *zip, directory *out)
{
    unsigned char tail[1024 + END_BYTES], *p = NULL;
    int64_t n = TTI_MIN(zip->n, (int64_t)sizeof(tail)), from = zip->n - n;
    TT_TRY(tti_bytes_read(ctx, zip, from, (size_t)n, tail));
    for (int64_t i = n - END_BYTES; i >= 0 && p == NULL; i--)
        if (little(tail + i, 4) == 0x06054b50 && i + END_BYTES + little(tail + i + 20, 2) == n)
            p = tail + i;
    if (p == NULL)
        return TT_FAIL(ctx, TT_EIO, "%s: is not a zip archive, or is cut short", zip->path);
    *out = (directory){.n = little(p + 10, 2), .bytes = little(p + 12, 4), .at = little(p + 16, 4)};
    if (out->n == 0xffff || out->bytes == 0xffffffff || out->at == 0xffffffff)
        return no_zip64(ctx, zip->path);
    if (little(p + 4, 2) != 0 || little(p + 6, 2) != 0 || little(p + 8, 2) != out->n)
        return TT_FAIL(ctx, TT_EIO, "%s: is one part of a multi-part zip archive", zip->path);
    if (out->at + out->bytes > from + (p - tail))
        return TT_FAIL(ctx, TT_EIO,
                       "%s: its directory, %lld bytes at byte %lld, is outside the file", zip->path,
                       (long long)out->bytes, (long long)out->at);
    return TT_OK;
}

// The directory entry at *at, which moves on.
static tt_status read_entry(tt_ctx *ctx, const tti_bytes *zip, const directory *d, int64_t *at,
                            entry *e)
{
    unsigned char p[ENTRY_BYTES];
    int64_t end = d->at + d->bytes;
    if (*at + ENTRY_BYTES > end)
        return TT_FAIL(ctx, TT_EIO, "%s: its directory is cut short at byte %lld", zip->path,
                       (long long)*at);
    TT_TRY(tti_bytes_read(ctx, zip, *at, ENTRY_BYTES, p));
    int64_t name = little(p + 28, 2),
            next = *at + ENTRY_BYTES + name + little(p + 30, 2) + little(p + 32, 2);
    if (little(p, 4) != 0x02014b50 || next > end)
        return TT_FAIL(ctx, TT_EIO, "%s: its directory is damaged at byte %lld", zip->path,
                       (long long)*at);
    *e = (entry){.flags = little(p + 8, 2),
                 .method = little(p + 10, 2),
                 .crc = little(p + 16, 4),
                 .packed = little(p + 20, 4),
                 .size = little(p + 24, 4),
                 .at = little(p + 42, 4)};
    if (name < NAME_MAX_) // no array of ours has a longer one
        TT_TRY(tti_bytes_read(ctx, zip, *at + ENTRY_BYTES, (size_t)name, e->name));
    *at = next;
    return TT_OK;
}

// "x" names the entry "x.npy", and "x.npy" does too.
static bool is_called(const entry *e, const char *name)
{
    size_t n = strlen(name);
    return strncmp(e->name, name, n) == 0 &&
           (e->name[n] == '\0' || strcmp(e->name + n, ".npy") == 0);
}

// The entry's bytes, inflated if need be.
static tt_status open_entry(tt_ctx *ctx, const tti_bytes *zip, const entry *e, const char *called,
                            tti_bytes *out)
{
    unsigned char p[LOCAL_BYTES];
    if (e->packed == 0xffffffff || e->size == 0xffffffff || e->at == 0xffffffff)
        return no_zip64(ctx, zip->path);
    if ((e->flags & 1) != 0)
        return TT_FAIL(ctx, TT_EUNSUPPORTED, "%s: is encrypted", called);
    if (e->method != 0 && e->method != 8)
        return TT_FAIL(
            ctx, TT_EUNSUPPORTED,
            "%s: uses compression method %u; only 0 (stored) and 8 (deflate) can be read", called,
            e->method);
    if (e->at + LOCAL_BYTES > zip->n)
        return TT_FAIL(ctx, TT_EIO, "%s: begins at byte %lld, but the file has %lld bytes", called,
                       (long long)e->at, (long long)zip->n);
    TT_TRY(tti_bytes_read(ctx, zip, e->at, LOCAL_BYTES, p));
    if (little(p, 4) != 0x04034b50)
        return TT_FAIL(ctx, TT_EIO, "%s: is not at byte %lld, as the directory says", called,
                       (long long)e->at);
    int64_t data = e->at + LOCAL_BYTES + little(p + 26, 2) + little(p + 28, 2);
    if (e->method == 0 && e->packed != e->size)
        return TT_FAIL(ctx, TT_EIO, "%s: is stored in %lld bytes but should have %lld", called,
                       (long long)e->packed, (long long)e->size);
    if (e->method == 0)
        return tti_bytes_part(ctx, zip, called, data, e->size, out);
    return tti_bytes_inflate(ctx, zip, called, data, e->packed, e->size, out);
}

// Looks for a name; without it, *out is the last entry.
static tt_status look_for(tt_ctx *ctx, const tti_bytes *zip, const char *name, bool *found,
                          entry *out)
{
    directory d = {0};
    *found = false;
    *out = (entry){0};
    TT_TRY(find_directory(ctx, zip, &d));
    int64_t at = d.at;
    for (int64_t i = 0; i < d.n && !*found; i++) {
        TT_TRY(read_entry(ctx, zip, &d, &at, out));
        *found = is_called(out, name);
    }
    return TT_OK;
}

tt_status tti_npz_ending(tt_ctx *ctx, const tti_bytes *zip, const char *ending, bool *found,
                         char name[256])
{
    directory d = {0};
    size_t k = strlen(ending);
    *found = false;
    TT_TRY(find_directory(ctx, zip, &d));
    int64_t at = d.at;
    for (int64_t i = 0; i < d.n && !*found; i++) {
        entry e;
        TT_TRY(read_entry(ctx, zip, &d, &at, &e));
        size_t n = strnlen(e.name, sizeof(e.name) - 1);
        *found = n >= k && memcmp(e.name + n - k, ending, k) == 0;
        memcpy(name, e.name, sizeof(e.name));
    }
    return TT_OK;
}

tt_status tti_npz_has(tt_ctx *ctx, const tti_bytes *zip, const char *name, bool *out)
{
    entry e;
    return look_for(ctx, zip, name, out, &e);
}

tt_status tti_npz_find(tt_ctx *ctx, const tti_bytes *zip, const char *name, tti_bytes *out)
{
    entry e;
    bool found;
    char called[TTI_PATH_MAX + NAME_MAX_];
    TT_TRY(look_for(ctx, zip, name, &found, &e));
    if (!found)
        return TT_FAIL(ctx, TT_EIO, "%s: has no array '%.64s'; its last array is '%.64s'",
                       zip->path, name, e.name);
    snprintf(called, sizeof(called), "%s: %s", zip->path, e.name);
    tti_bytes b = {.fd = -1};
    uint32_t crc = 0;
    TT_TRY(open_entry(ctx, zip, &e, called, &b));
    tt_status st = tti_bytes_crc(ctx, &b, &crc);
    if (st == TT_OK && crc != e.crc)
        st = TT_FAIL(ctx, TT_EIO, "%s: is damaged: its checksum is %08x instead of %08x", called,
                     crc, e.crc);
    if (st != TT_OK) {
        tti_bytes_close(ctx, &b);
        return st;
    }
    *out = b;
    return TT_OK;
}
