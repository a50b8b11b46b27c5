/*
 * loopback.c - the key of a job on one machine without a secret: random, its user's alone, there
 * only while rank 0 waits for the others.
 */
#include "../test.h"
#include "cluster/cluster.h"
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

static tti_loopback_opts of(int rank)
{
    return (tti_loopback_opts){.rank = rank,
                               .rank_0 = "/job:worker/task:0",
                               .address = "127.0.0.1:4321",
                               .runtime = test_folder(),
                               .wait_ms = 60};
}

static tt_status get(tt_ctx *ctx, int rank, tti_loopback_key *k, unsigned char key[TT_SECRET_BYTES])
{
    tti_loopback_opts o = of(rank);
    return tti_loopback_key_get(ctx, &o, k, key);
}

static unsigned mode_of(const char *path)
{
    struct stat s;
    CHECK(stat(path, &s) == 0);
    return s.st_mode & 07777;
}

TEST(loopback_key_is_random_private_and_gone_in_the_end)
{
    tt_ctx *ctx = test_ctx();
    unsigned char a[TT_SECRET_BYTES], b[TT_SECRET_BYTES], zero[TT_SECRET_BYTES] = {0};
    tti_loopback_key first, other;
    char folder[400];
    CHECK(chmod(test_folder(), 0700) == 0);
    umask(0);
    CHECK_OK(get(ctx, 0, &first, a));
    snprintf(folder, sizeof(folder), "%s/tutti", test_folder());
    CHECK(strncmp(first.path, folder, strlen(folder)) == 0);
    CHECK_INT(mode_of(folder), 0700);
    CHECK_INT(mode_of(first.path), 0600);
    CHECK(memcmp(a, zero, sizeof(a)) != 0);
    CHECK_OK(get(ctx, 1, &other, b));
    CHECK(memcmp(a, b, sizeof(a)) == 0);
    tti_loopback_key_end(&other); // not its own: it stays
    CHECK(access(first.path, F_OK) == 0);
    tti_loopback_key_end(&first);
    CHECK(access(first.path, F_OK) != 0);
    CHECK_OK(get(ctx, 0, &first, b));
    CHECK(memcmp(a, b, sizeof(a)) != 0); // another job, another key
    tti_loopback_key_end(&first);
    CHECK_OK(tt_close(ctx));
}

TEST(loopback_key_of_a_dead_process_does_not_count)
{
    unsigned char key[TT_SECRET_BYTES], old[TT_SECRET_BYTES];
    tti_loopback_key k;
    int pipes[2], status;
    CHECK(chmod(test_folder(), 0700) == 0 && pipe(pipes) == 0);
    pid_t pid = fork();
    CHECK(pid >= 0);
    if (pid == 0) {
        tt_ctx *own = tt_open(.on_event = test_ignore_event);
        if (get(own, 0, &k, key) == TT_OK)
            (void)!write(pipes[1], key, sizeof(key));
        pause();
    }
    close(pipes[1]);
    tt_ctx *ctx = test_ctx();
    CHECK(read(pipes[0], old, sizeof(old)) == sizeof(old));
    CHECK(get(ctx, 0, &k, key) == TT_EIO);
    CHECK_MESSAGE(ctx, "cannot listen at 127.0.0.1:4321: another process of this user is rank 0");
    tt_clear_error(ctx);
    kill(pid, SIGKILL);
    waitpid(pid, &status, 0);
    CHECK(access(k.path, F_OK) == 0); // it is left, but nobody holds it
    CHECK(get(ctx, 1, &k, key) == TT_EPEER);
    CHECK_MESSAGE(ctx,
                  "rank 0 (/job:worker/task:0) does not answer at 127.0.0.1:4321 within 60 ms");
    tt_clear_error(ctx);
    CHECK_OK(get(ctx, 0, &k, key));
    CHECK(memcmp(key, old, sizeof(key)) != 0);
    tti_loopback_key_end(&k);
    CHECK_OK(tt_close(ctx));
}

// What somebody else could have put there is not used.
TEST(loopback_key_is_kept_in_no_folder_of_others)
{
    tt_ctx *ctx = test_ctx();
    unsigned char key[TT_SECRET_BYTES];
    tti_loopback_key k;
    char folder[400], elsewhere[400];
    size_t n = strlen(test_folder());
    CHECK(chmod(test_folder(), 0777) == 0); // whoever likes to writes to it
    CHECK_OK(get(ctx, 0, &k, key));
    CHECK(strncmp(k.path, test_folder(), n) != 0);
    tti_loopback_key_end(&k);
    CHECK(chmod(test_folder(), 0700) == 0);
    snprintf(folder, sizeof(folder), "%s/tutti", test_folder());
    snprintf(elsewhere, sizeof(elsewhere), "%s/elsewhere", test_folder());
    CHECK(mkdir(elsewhere, 0700) == 0 && symlink(elsewhere, folder) == 0);
    CHECK_OK(get(ctx, 0, &k, key));
    CHECK(strncmp(k.path, test_folder(), n) != 0);
    tti_loopback_key_end(&k);
    CHECK(unlink(folder) == 0 && mkdir(folder, 0755) == 0);
    CHECK_OK(get(ctx, 0, &k, key));
    CHECK(strncmp(k.path, test_folder(), n) != 0);
    tti_loopback_key_end(&k);
    if (geteuid() == 0) { // another user's
        CHECK(chmod(folder, 0700) == 0 && chown(folder, 1, 1) == 0);
        CHECK_OK(get(ctx, 0, &k, key));
        CHECK(strncmp(k.path, test_folder(), n) != 0);
        tti_loopback_key_end(&k);
    }
    CHECK_OK(tt_close(ctx));
}

// A file that others could read or have made is no key, even while it is locked.
TEST(loopback_key_of_another_user_does_not_count)
{
    tt_ctx *ctx = test_ctx();
    unsigned char key[TT_SECRET_BYTES];
    tti_loopback_key k, held;
    CHECK(chmod(test_folder(), 0700) == 0);
    CHECK_OK(get(ctx, 0, &held, key));
    CHECK_OK(get(ctx, 1, &k, key));
    CHECK(chmod(held.path, 0640) == 0);
    CHECK(get(ctx, 1, &k, key) == TT_EPEER);
    tt_clear_error(ctx);
    CHECK(chmod(held.path, 0600) == 0);
    if (geteuid() == 0) {
        CHECK(chown(held.path, 1, 1) == 0);
        CHECK(get(ctx, 1, &k, key) == TT_EPEER);
        tt_clear_error(ctx);
    }
    tti_loopback_key_end(&held);
    CHECK_OK(tt_close(ctx));
}
