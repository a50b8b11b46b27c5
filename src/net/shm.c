/*
 * shm.c - memory that processes of one host share: a file that only lives in memory (memfd) and
 * has no name; another process of the same user opens it through /proc/PID/fd. When all who have it
 * are gone, also killed ones, the system frees it.
 */
#include "net/world.h"
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#ifndef MADV_COLLAPSE
#define MADV_COLLAPSE 25
#endif
#define LARGE ((size_t)2 << 20)

// Begins where a huge page can.
static char *map_aligned(int fd, size_t bytes)
{
    size_t page = (size_t)sysconf(_SC_PAGESIZE), used = (bytes + page - 1) / page * page;
    char *room = mmap(NULL, used + LARGE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (room == MAP_FAILED)
        return MAP_FAILED;
    size_t skip = (LARGE - ((uintptr_t)room & (LARGE - 1))) & (LARGE - 1);
    char *at = mmap(room + skip, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, fd, 0);
    int err = errno;
    if (at == MAP_FAILED)
        munmap(room + skip, used);
    if (skip > 0)
        munmap(room, skip);
    munmap(room + skip + used, LARGE - skip);
    errno = err;
    return at;
}

/*
 * Large segments have huge pages, as a wish: products of matrices read them, too. By its settings
 * the system takes small pages for shared memory in most places, but it makes huge ones on request,
 * of those of which a part is there.
 */
static void *map(int fd, size_t bytes)
{
    if (bytes < LARGE)
        return mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    char *at = map_aligned(fd, bytes);
    size_t whole = bytes / LARGE * LARGE;
    if (at == MAP_FAILED)
        return MAP_FAILED;
    for (size_t i = 0; i < whole; i += LARGE)
        (void)*(volatile char *)(at + i);
    (void)madvise(at, whole, MADV_COLLAPSE);
    return at;
}

tt_status tti_segment_new(tt_ctx *ctx, size_t bytes, tti_segment *out)
{
    bytes = TTI_MAX(bytes, (size_t)1);
    int fd = memfd_create("tutti", MFD_CLOEXEC);
    if (fd < 0)
        return TT_FAIL(ctx, TT_ENOMEM, "shared memory of %zu bytes: %s", bytes, strerror(errno));
    void *at = ftruncate(fd, (off_t)bytes) == 0 ? map(fd, bytes) : MAP_FAILED;
    if (at == MAP_FAILED) {
        int err = errno;
        close(fd);
        return TT_FAIL(ctx, TT_ENOMEM, "shared memory of %zu bytes: %s", bytes, strerror(err));
    }
    *out = (tti_segment){at, bytes, fd};
    return TT_OK;
}

void tti_segment_free(tti_segment *s)
{
    if (s->at == NULL)
        return;
    munmap(s->at, s->bytes);
    if (s->fd >= 0)
        close(s->fd);
    *s = (tti_segment){.fd = -1};
}

void tti_segment_seal(tti_segment *s)
{
    if (s->at != NULL && s->fd >= 0)
        close(s->fd);
    s->fd = -1;
}

tti_segment_name tti_segment_name_of(const tti_segment *s)
{
    return (tti_segment_name){getpid(), s->fd, s->bytes};
}

bool tti_segment_try(const tti_segment_name *name, tti_segment *out)
{
    char path[64];
    struct stat st;
    void *at = MAP_FAILED;
    snprintf(path, sizeof(path), "/proc/%d/fd/%d", name->pid, name->fd);
    int fd = open(path, O_RDWR | O_CLOEXEC);
    if (fd < 0)
        return false;
    errno = EINVAL; // another size: it is not what was named
    if (fstat(fd, &st) == 0 && (uint64_t)st.st_size == name->bytes)
        at = map(fd, name->bytes);
    int err = errno;
    close(fd);
    errno = err;
    if (at == MAP_FAILED)
        return false;
    *out = (tti_segment){at, name->bytes, -1};
    return true;
}

tt_status tti_segment_map(tt_ctx *ctx, const tti_segment_name *name, tti_segment *out)
{
    if (!tti_segment_try(name, out))
        return TT_FAIL(ctx, TT_EPEER, "shared memory of process %d, %zu bytes: %s", name->pid,
                       (size_t)name->bytes, strerror(errno));
    return TT_OK;
}
