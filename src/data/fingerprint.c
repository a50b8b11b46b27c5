/*
 * fingerprint.c - hashes of the files that data is read from. A file of at most WHOLE bytes is
 * hashed as it is; of a larger one, as many bytes in blocks spread over it, so that the start of a
 * run does not read a terabyte first.
 */
#include "base/ctx.h"
#include "base/file.h"
#include "data/data.h"
#include <dirent.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define WHOLE  (INT64_C(64) << 20)
#define BLOCK  (INT64_C(64) << 10)
#define BLOCKS (WHOLE / BLOCK)

static uint64_t hash_block(int fd, int64_t at, char *room, uint64_t h)
{
    ssize_t n = pread(fd, room, BLOCK, (off_t)at);
    return n > 0 ? tti_hash64(room, (size_t)n, h + 1) : h;
}

static uint64_t hash_file(int folder, const char *path, char *room, uint64_t h)
{
    struct stat st;
    int fd = openat(folder, path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (fd < 0 || fstat(fd, &st) != 0 || !S_ISREG(st.st_mode)) {
        if (fd >= 0)
            close(fd);
        return h;
    }
    int64_t bytes = st.st_size, n = (bytes + BLOCK - 1) / BLOCK;
    h = tti_hash64(&bytes, sizeof(bytes), h);
    for (int64_t i = 0; i < TTI_MIN(n, BLOCKS); i++)
        h = hash_block(fd, n <= BLOCKS ? i * BLOCK : i * (n - 1) / (BLOCKS - 1) * BLOCK, room, h);
    close(fd);
    return h;
}

static void ignore(void *user, const tt_event *ev)
{
    (void)user;
    (void)ev;
}

static uint64_t hash_folder(const char *path, char *room)
{
    char **names = NULL;
    int64_t n = 0, left = WHOLE;
    uint64_t h = 7;
    int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    tt_ctx quiet = {.on_event = ignore};
    tti_ctx_init(&quiet);
    if (fd < 0 || tti_folder_list(&quiet, path, &names, &n) != TT_OK)
        n = 0;
    for (int64_t i = 0; i < n; i++) {
        struct stat st;
        if (fstatat(fd, names[i], &st, 0) != 0 || !S_ISREG(st.st_mode))
            continue;
        int64_t bytes = st.st_size;
        h = tti_hash64(names[i], strlen(names[i]), h);
        h = tti_hash64(&bytes, sizeof(bytes), h);
        if (bytes <= left)
            h = hash_file(fd, names[i], room, h);
        left -= TTI_MIN(bytes, left);
    }
    tti_names_free(&quiet, names, n);
    tti_ctx_deinit(&quiet);
    if (fd >= 0)
        close(fd);
    return h;
}

uint64_t tti_file_print(const char *path)
{
    struct stat st;
    char *room = tti_alloc(NULL, BLOCK);
    uint64_t h = 0;
    if (room != NULL && stat(path, &st) == 0)
        h = S_ISDIR(st.st_mode) ? hash_folder(path, room) : hash_file(AT_FDCWD, path, room, 3);
    tti_free(NULL, room);
    return h == 3 ? 0 : h;
}
