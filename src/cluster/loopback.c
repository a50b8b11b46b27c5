/*
 * loopback.c - the key of a job on one machine whose processes were given no secret. Rank 0 makes a
 * random one and puts it into a file that its user alone can read, in a folder that is the user's
 * alone; the other ranks read it there. The file is named after rank 0's port, or after the job
 * where nobody has told a port: then it tells the address too. It counts only while rank 0 holds
 * it (a lock, which ends with the process), and goes when all have met. So who reads the key is of
 * this user and on this machine, and no key serves two jobs.
 */
#include "base/ctx.h"
#include "base/thread.h"
#include "cluster/cluster.h"
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define NAME       "key-"
#define AGAIN_MS   10
#define LOCK_TRIES 200
#define REMEDY \
    "; 'tutti key new FILE' makes a secret, and TUTTI_SECRET_FILE=FILE gives it to every process"

// ---- the folder ------------------------------------------------------------------------------

// Opens a folder that belongs to this user and that nobody else can enter, or write to; -1: no.
static int open_own(const char *path, mode_t others)
{
    struct stat s;
    int fd = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (fd >= 0 && (fstat(fd, &s) != 0 || s.st_uid != geteuid() || (s.st_mode & others) != 0)) {
        close(fd);
        errno = EPERM;
        fd = -1;
    }
    return fd;
}

// "tutti" in the user's runtime folder, if that is there and the user's; -1: no.
static int open_in(const char *runtime, char *path, size_t room)
{
    int fd = runtime[0] == '/' ? open_own(runtime, 022) : -1;
    if (fd < 0 || (size_t)snprintf(path, room, "%s/tutti", runtime) >= room) {
        if (fd >= 0)
            close(fd);
        return -1;
    }
    (void)mkdirat(fd, "tutti", 0700); // it may be there
    close(fd);
    return open_own(path, 077);
}

// Where all of this user's processes look: the runtime folder, or one in /tmp.
static tt_status open_folder(tt_ctx *ctx, const char *runtime, char *path, size_t room, int *out)
{
    char own[64];
    int fd = runtime != NULL ? open_in(runtime, path, room) : -1;
    snprintf(own, sizeof(own), "/run/user/%u", (unsigned)geteuid());
    if (fd < 0)
        fd = open_in(own, path, room);
    if (fd < 0) {
        snprintf(path, room, "/tmp/tutti-%u", (unsigned)geteuid());
        (void)mkdir(path, 0700);
        fd = open_own(path, 077);
    }
    if (fd < 0)
        return TT_FAIL(ctx, TT_EIO,
                       "no secret is set, and the job's key cannot be kept in '%s': %s" REMEDY,
                       path, errno == EPERM ? "it is not private to this user" : strerror(errno));
    *out = fd;
    return TT_OK;
}

// ---- the file --------------------------------------------------------------------------------

// Opens a key that its maker still holds; -1: there is none. Others than this user's do not count.
static int open_held(int folder, const char *name)
{
    struct stat s;
    int fd = openat(folder, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    if (fd < 0)
        return -1;
    bool is_own =
        fstat(fd, &s) == 0 && S_ISREG(s.st_mode) && s.st_uid == geteuid() && (s.st_mode & 077) == 0;
    if (is_own && flock(fd, LOCK_SH | LOCK_NB) != 0 && errno == EWOULDBLOCK)
        return fd;
    close(fd);
    return -1;
}

// Keys whose makers were killed.
static void remove_stale(int folder)
{
    int copy = dup(folder);
    DIR *d = copy >= 0 ? fdopendir(copy) : NULL;
    if (d == NULL && copy >= 0)
        close(copy);
    for (struct dirent *e; d != NULL && (e = readdir(d)) != NULL;) {
        if (strncmp(e->d_name, NAME, strlen(NAME)) != 0)
            continue;
        int fd = open_held(folder, e->d_name);
        if (fd >= 0)
            close(fd);
        else
            (void)unlinkat(folder, e->d_name, 0);
    }
    if (d != NULL)
        closedir(d);
}

bool tti_key_write(int fd, const unsigned char key[TT_SECRET_BYTES], const char *address)
{
    char text[TTI_KEY_TEXT + 2];
    tti_secret_print(key, text);
    size_t n = TTI_SECRET_TEXT - 1;
    n += (size_t)snprintf(text + n, sizeof(text) - n, "%s%s\n", address != NULL ? " " : "",
                          address != NULL ? address : "");
    bool ok = write(fd, text, n) == (ssize_t)n;
    explicit_bzero(text, sizeof(text));
    return ok;
}

bool tti_key_read(int fd, unsigned char key[TT_SECRET_BYTES], char *address)
{
    char text[TTI_KEY_TEXT + 2];
    ssize_t n = pread(fd, text, sizeof(text) - 1, 0);
    text[TTI_MAX(n, 0)] = '\0';
    char *end = strchr(text, '\n'), *space = strchr(text, ' ');
    bool ok = end != NULL && (address == NULL) == (space == NULL); // else it is not whole yet
    if (ok && address != NULL) {
        *end = '\0';
        end = space;
        ok = tti_address_fault(space + 1, true) == NULL && strlen(space + 1) < TTI_ADDRESS;
        if (ok)
            snprintf(address, TTI_ADDRESS, "%s", space + 1);
    }
    ok = ok && tti_secret_parse(text, (size_t)(end - text), key);
    explicit_bzero(text, sizeof(text));
    return ok;
}

void tti_key_name(const char *id, char out[32])
{
    snprintf(out, 32, NAME "%016llx", (unsigned long long)tti_hash64(id, strlen(id), 0));
}

// Rank 0's part; nobody else makes or removes keys meanwhile.
static tt_status make(tt_ctx *ctx, int folder, const tti_loopback_opts *o, tti_loopback_key *k,
                      unsigned char key[TT_SECRET_BYTES])
{
    const char *name = strrchr(k->path, '/') + 1;
    int held = open_held(folder, name);
    if (held >= 0) {
        close(held);
        return TT_FAIL(ctx, TT_EIO,
                       "cannot listen at %s: another process of this user is rank 0 there (it "
                       "holds '%s'); this task may have been started twice",
                       o->address, k->path);
    }
    remove_stale(folder);
    if (getrandom(key, TT_SECRET_BYTES, 0) != TT_SECRET_BYTES)
        return TT_FAIL(ctx, TT_EIO, "the system provides no random numbers for the job's key");
    k->fd = openat(folder, name, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
    if (k->fd < 0 || flock(k->fd, LOCK_EX) != 0 || !tti_key_write(k->fd, key, o->told))
        return TT_FAIL(ctx, TT_EIO,
                       "no secret is set, and the job's key cannot be written to '%s': %s" REMEDY,
                       k->path, strerror(errno));
    return TT_OK;
}

// The part of the others: rank 0 may come later.
static tt_status await(tt_ctx *ctx, int folder, const tti_loopback_opts *o,
                       const tti_loopback_key *k, unsigned char key[TT_SECRET_BYTES])
{
    const char *name = strrchr(k->path, '/') + 1;
    int64_t deadline = tti_deadline(o->wait_ms);
    for (;;) {
        int fd = open_held(folder, name);
        bool ok = fd >= 0 && tti_key_read(fd, key, o->told);
        if (fd >= 0)
            close(fd);
        if (ok)
            return TT_OK;
        if (atomic_load(&ctx->stop) != 0)
            return TT_FAIL(ctx, TT_ESTOP, "stopped on request while waiting for other processes");
        if (tti_now_ns() > deadline)
            return TT_FAIL(ctx, TT_EPEER,
                           "rank 0 (%s) does not answer at %s within %lld ms: it was not started "
                           "on this machine by this user, or this rank was started twice. Without "
                           "a secret the job's key is rank 0's file '%s'" REMEDY,
                           o->rank_0, o->address[0] != '\0' ? o->address : "127.0.0.1",
                           (long long)o->wait_ms, k->path);
        nanosleep(&(struct timespec){.tv_nsec = AGAIN_MS * 1000000}, NULL);
    }
}

/*
 * Two that become rank 0 at once do so one after the other. Whoever holds the folder does so for a
 * moment, unless it was stopped just then: that must not stop every other job of the user.
 */
static tt_status lock_folder(tt_ctx *ctx, int folder)
{
    for (int i = 0; i < LOCK_TRIES && flock(folder, LOCK_EX | LOCK_NB) != 0; i++) {
        if (atomic_load(&ctx->stop) != 0)
            return TT_FAIL(ctx, TT_ESTOP, "stopped on request while waiting for other processes");
        nanosleep(&(struct timespec){.tv_nsec = AGAIN_MS * 1000000}, NULL);
    }
    return TT_OK;
}

tt_status tti_loopback_key_get(tt_ctx *ctx, const tti_loopback_opts *o, tti_loopback_key *k,
                               unsigned char key[TT_SECRET_BYTES])
{
    const char *colon = strrchr(o->address, ':');
    char folder_path[sizeof(k->path) - 32], name[32];
    int folder = -1;
    k->fd = -1;
    TT_TRY(open_folder(ctx, o->runtime, folder_path, sizeof(folder_path), &folder));
    if (o->id != NULL)
        tti_key_name(o->id, name);
    else
        snprintf(name, sizeof(name), NAME "%.5s", colon != NULL ? colon + 1 : "0");
    snprintf(k->path, sizeof(k->path), "%s/%s", folder_path, name);
    tt_status st;
    if (o->rank == 0) {
        st = lock_folder(ctx, folder);
        if (st == TT_OK)
            st = make(ctx, folder, o, k, key);
    } else {
        st = await(ctx, folder, o, k, key);
    }
    close(folder);
    if (st != TT_OK)
        tti_loopback_key_end(k);
    return st;
}

void tti_loopback_key_end(tti_loopback_key *k)
{
    if (k->fd < 0)
        return;
    (void)unlink(k->path); // before the lock goes: until then the name is ours
    close(k->fd);
    k->fd = -1;
}
