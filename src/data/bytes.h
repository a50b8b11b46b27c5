/*
 * bytes.h - files as bytes that several threads read at any place at once.
 *
 * A plain file stays on disk and is read with pread(): mapped memory would end the process when the
 * file is cut short behind its back. What cannot be read in the middle, a gzip file, is inflated
 * into memory once. Every failure names the file.
 */
#ifndef TUTTI_DATA_BYTES_H
#define TUTTI_DATA_BYTES_H

#include "base/base.h"

typedef struct tti_bytes {
    char *path;                // for messages; owned
    int64_t n;                 // bytes
    int fd;                    // -1: in memory
    bool is_part;              // fd and data belong to another
    int64_t start;             // where byte 0 lies in the file
    const unsigned char *data; // in memory
    char *owned;               // the same, if it is to be freed
} tti_bytes;

// Opens a file; one of at most keep bytes is read into memory at once and costs no open file.
tt_status tti_bytes_open(tt_ctx *ctx, const char *path, int64_t keep, tti_bytes *out) TTI_CHECKED;
/*
 * The same where the format has a header: of a gzip file the first bytes are inflated and shown
 * before the rest is. promise fails if they begin no such file, and says how many bytes there are
 * in all, or leaves *size alone if that is not known.
 */
#define TTI_HEAD_BYTES (128 << 10)
typedef tt_status (*tti_promise)(tt_ctx *ctx, const tti_bytes *head, int64_t *size);
tt_status tti_bytes_open_as(tt_ctx *ctx, const char *path, int64_t keep, tti_promise promise,
                            tti_bytes *out) TTI_CHECKED;
// Bytes that lie in memory already, borrowed.
tt_status tti_bytes_memory(tt_ctx *ctx, const char *path, const void *data, size_t n,
                           tti_bytes *out) TTI_CHECKED;
// Bytes [at, at + n) of whole, which stays open longer; name is what messages call them.
tt_status tti_bytes_part(tt_ctx *ctx, const tti_bytes *whole, const char *name, int64_t at,
                         int64_t n, tti_bytes *out) TTI_CHECKED;
// Bytes [at, at + n) of whole inflated (raw deflate) into memory: size bytes, no more, no less.
tt_status tti_bytes_inflate(tt_ctx *ctx, const tti_bytes *whole, const char *name, int64_t at,
                            int64_t n, int64_t size, tti_bytes *out) TTI_CHECKED;
void tti_bytes_close(tt_ctx *ctx, tti_bytes *b); // one that is all zero is fine

// Exactly n bytes from at on.
tt_status tti_bytes_read(tt_ctx *ctx, const tti_bytes *b, int64_t at, size_t n,
                         void *out) TTI_CHECKED;
// CRC-32 of all bytes, as zip files have it.
tt_status tti_bytes_crc(tt_ctx *ctx, const tti_bytes *b, uint32_t *out) TTI_CHECKED;

// ---- one after another -----------------------------------------------------------------------

// Reads bytes [at, end) in order through a small window. Never allocates.
#define TTI_SCAN_END   (-1)
#define TTI_SCAN_ERROR (-2) // recorded
typedef struct tti_scan {
    const tti_bytes *bytes;
    int64_t next, end; // in the file: what follows the window, where to stop
    const unsigned char *p, *p_end;
    unsigned char window[4096];
} tti_scan;
void tti_scan_begin(tti_scan *s, const tti_bytes *b, int64_t at, int64_t end);
int tti_scan_more(tt_ctx *ctx, tti_scan *s);

// The next byte, TTI_SCAN_END or TTI_SCAN_ERROR.
static inline int tti_scan_byte(tt_ctx *ctx, tti_scan *s)
{
    return s->p < s->p_end ? *s->p++ : tti_scan_more(ctx, s);
}

// Where the next byte lies.
static inline int64_t tti_scan_at(const tti_scan *s)
{
    return s->next - (s->p_end - s->p);
}

// ---- several files as one --------------------------------------------------------------------

// Files one after another, as if they were one.
typedef struct tti_files {
    int64_t n, cap;
    tti_bytes *file;
    int64_t *start; // n + 1: where each begins; the last is the size of all
    int64_t kept;   // bytes of them in memory
} tti_files;

// The names that "a.bin, b*.bin" stands for, as in tti_files_open().
typedef struct tti_names {
    char **names;
    int64_t n, cap;
} tti_names;
tt_status tti_names_find(tt_ctx *ctx, const char *who, const char *list,
                         tti_names *out) TTI_CHECKED;
void tti_names_close(tt_ctx *ctx, tti_names *l);

// "a.bin, b*.bin": names and globs; what a glob finds is sorted byte by byte. None is an error.
tt_status tti_files_open(tt_ctx *ctx, const char *who, const char *list,
                         tti_files *out) TTI_CHECKED;
// One open file, taken over.
tt_status tti_files_of(tt_ctx *ctx, tti_bytes *b, tti_files *out) TTI_CHECKED;
void tti_files_close(tt_ctx *ctx, tti_files *f);
// The file that byte at lies in.
int64_t tti_files_find(const tti_files *f, int64_t at);
// n bytes from at on, over the borders of files.
tt_status tti_files_read(tt_ctx *ctx, const tti_files *f, int64_t at, size_t n,
                         void *out) TTI_CHECKED;

// TUTTI_DATA_DIR/name, or "data/name"; or dir, if it is given. out has room for 4096.
#define TTI_PATH_MAX 4096
tt_status tti_data_dir(tt_ctx *ctx, const char *dir, const char *name,
                       char out[TTI_PATH_MAX]) TTI_CHECKED;

#endif
