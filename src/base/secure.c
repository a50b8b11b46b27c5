/*
 * secure.c - memory for secrets (secure.h): pages of their own.
 */
#include "base/secure.h"
#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

static size_t whole_pages(size_t bytes)
{
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    return (bytes + page - 1) / page * page;
}

void *tti_secure_new(tt_ctx *ctx, size_t bytes)
{
    size_t n = whole_pages(bytes);
    void *p = mmap(NULL, n, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (p == MAP_FAILED) {
        (void)TT_FAIL(ctx, TT_ENOMEM, "out of memory: %zu bytes for secrets: %s", n,
                      strerror(errno));
        return NULL;
    }
    (void)madvise(p, n, MADV_DONTDUMP);
    (void)mlock(p, n); // a wish: users may lock little
    return p;
}

void tti_secure_free(void *p, size_t bytes)
{
    if (p == NULL)
        return;
    explicit_bzero(p, bytes);
    (void)munmap(p, whole_pages(bytes));
}
