/*
 * shared_key.c - the key of a job over several machines whose processes were given no secret, and
 * rank 0's address: a file of mode 0600 in a folder that all machines share, named after the job.
 * Rank 0 writes it under another name and renames it, so that it is read whole; the others take
 * only a file of their own user that nobody else can read, and that is not older than rank 0 waits
 * for them, by the clock of the file system. It goes when all have met.
 */
#include "base/ctx.h"
#include "base/thread.h"
#include "cluster/cluster.h"
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define FIRST_MS 10  // between two looks,
#define MOST_MS  250 // ever more
#define SLACK_S  5
#define REMEDY                                                                                     \
    "; set TUTTI_KEY_DIR to a folder of this user that all machines share, or make a secret with " \
    "'tutti key new FILE', copy it to every machine, and set TUTTI_SECRET_FILE=FILE and "          \
    "TUTTI_LEADER=host:port of rank 0"

typedef struct place {
    char folder[256], path[320], own[352]; // own: a name that no other process uses
} place;

static tt_status find_place(tt_ctx *ctx, const tti_shared_key_opts *o, place *p)
{
    char name[32], host[64] = "";
    if (o->folder == NULL && (o->home == NULL || o->home[0] != '/'))
        return TT_FAIL(ctx, TT_EINVAL,
                       "no secret is set, and there is no home folder for the job's key" REMEDY);
    int n = o->folder != NULL ? snprintf(p->folder, sizeof(p->folder), "%s", o->folder)
                              : snprintf(p->folder, sizeof(p->folder), "%s/.tutti", o->home);
    if (n < 0 || (size_t)n >= sizeof(p->folder))
        return TT_FAIL(ctx, TT_EINVAL, "the path of the folder for the job's key is too long: '%s'",
                       o->folder != NULL ? o->folder : o->home);
    if (o->folder == NULL)
        (void)mkdir(p->folder, 0700); // it may be there
    (void)gethostname(host, sizeof(host) - 1);
    tti_key_name(o->id, name);
    snprintf(p->path, sizeof(p->path), "%s/%s", p->folder, name);
    snprintf(p->own, sizeof(p->own), "%s/.%.40s-%ld", p->folder, host, (long)getpid());
    return TT_OK;
}

static int open_new(const char *path)
{
    int fd = open(path, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
    if (fd < 0 && errno == EEXIST && unlink(path) == 0) // of a process that was killed
        fd = open(path, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
    return fd;
}

static tt_status make(tt_ctx *ctx, const tti_shared_key_opts *o, const place *p,
                      tti_loopback_key *k, unsigned char key[TT_SECRET_BYTES])
{
    if (getrandom(key, TT_SECRET_BYTES, 0) != TT_SECRET_BYTES)
        return TT_FAIL(ctx, TT_EIO, "the system provides no random numbers for the job's key");
    k->fd = open_new(p->own);
    bool ok = k->fd >= 0 && tti_key_write(k->fd, key, o->told) && fsync(k->fd) == 0 &&
              rename(p->own, p->path) == 0;
    if (!ok) {
        int error = errno;
        (void)unlink(p->own);
        return TT_FAIL(ctx, TT_EIO,
                       "no secret is set, and the job's key cannot be written to '%s': %s" REMEDY,
                       p->path, strerror(error));
    }
    snprintf(k->path, sizeof(k->path), "%s", p->path);
    return TT_OK;
}

// What time it is there; a file that was made also lets a network file system look again.
static bool time_there(const place *p, int64_t *out)
{
    struct stat s;
    int fd = open_new(p->own);
    bool ok = fd >= 0 && fstat(fd, &s) == 0;
    if (fd >= 0) {
        close(fd);
        (void)unlink(p->own);
    }
    if (ok)
        *out = s.st_mtime;
    return ok;
}

typedef enum look {
    NOT_THERE,
    READ,
    NO_FOLDER,
    OF_OTHERS, // it is somebody else's, or can be read by others
    OLD,
} look;

static look look_at(const tti_shared_key_opts *o, const place *p, unsigned char *key)
{
    struct stat s;
    int64_t now;
    if (!time_there(p, &now))
        return NO_FOLDER;
    int fd = open(p->path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    if (fd < 0)
        return NOT_THERE;
    look found = NOT_THERE;
    if (fstat(fd, &s) != 0 || !S_ISREG(s.st_mode) || s.st_uid != geteuid() ||
        (s.st_mode & 077) != 0)
        found = OF_OTHERS;
    else if (s.st_mtime < now - o->wait_ms / 1000 - SLACK_S)
        found = OLD;
    else if (tti_key_read(fd, key, o->told))
        found = READ;
    close(fd);
    return found;
}

static tt_status await(tt_ctx *ctx, const tti_shared_key_opts *o, const place *p,
                       unsigned char key[TT_SECRET_BYTES])
{
    static const char *const why[] = {
        [NOT_THERE] = "it is not there: rank 0 was not started, or the folder is not shared",
        [NO_FOLDER] = "no file can be made in that folder",
        [OF_OTHERS] = "it belongs to another user, or others can read it",
        [OLD] = "it is of an earlier start: rank 0 of this one has not written it",
    };
    int64_t deadline = tti_deadline(o->wait_ms);
    for (int ms = FIRST_MS;; ms = TTI_MIN(ms * 3 / 2, MOST_MS)) {
        look found = look_at(o, p, key);
        if (found == READ)
            return TT_OK;
        if (atomic_load(&ctx->stop) != 0)
            return TT_FAIL(ctx, TT_ESTOP, "stopped on request while waiting for other processes");
        if (tti_now_ns() > deadline || found == NO_FOLDER)
            return TT_FAIL(ctx, found == NO_FOLDER ? TT_EIO : TT_EPEER,
                           "no secret is set, so rank 0 (%s; started by %s) tells its key and "
                           "address by the file '%s', but within %lld ms %s" REMEDY,
                           o->rank_0, o->by, p->path, (long long)o->wait_ms, why[found]);
        nanosleep(&(struct timespec){.tv_nsec = ms * 1000000L}, NULL);
    }
}

tt_status tti_shared_key_get(tt_ctx *ctx, const tti_shared_key_opts *o, tti_loopback_key *k,
                             unsigned char key[TT_SECRET_BYTES])
{
    place p;
    k->fd = -1;
    TT_TRY(find_place(ctx, o, &p));
    tt_status st = o->rank == 0 ? make(ctx, o, &p, k, key) : await(ctx, o, &p, key);
    if (st != TT_OK && k->fd >= 0) {
        close(k->fd);
        k->fd = -1;
    }
    return st;
}
