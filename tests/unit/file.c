/*
 * file.c - files and folders: durable writing, and what happens when the disk fails. A loop makes
 * the k-th call fail, k = 1, 2, ..., until a save needs fewer calls than that: each time the old
 * checkpoint or the new one is there, whole, and nothing half-written is left.
 */
#include "base/file.h"
#include "../checkpoint.h"
#include "../test.h"
#include "base/ctx.h"
#include "base/disk.h"
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#define SCALE 5
#define MANY  2000 // calls: a save that takes more is not failing where it should

static char *path_of(const char *name)
{
    static char path[32][512];
    static int next;
    char *p = path[next++ % 32];
    snprintf(p, sizeof(path[0]), "%s/%s", test_folder(), name);
    return p;
}

static void write_text(const char *path, const char *text)
{
    FILE *f = fopen(path, "wb");
    CHECK(f != NULL && fputs(text, f) >= 0 && fclose(f) == 0);
}

static void check_text(tt_ctx *ctx, const char *path, const char *want)
{
    char *text;
    size_t n;
    CHECK_OK(tti_file_read(ctx, path, 0, &text, &n));
    CHECK_INT(n, strlen(want));
    CHECK_STR(text, want);
    tti_free(ctx, text);
}

// Names in a folder that begin with a dot: what a save leaves when it is cut off.
static int count_hidden(const char *folder)
{
    DIR *d = opendir(folder);
    int n = 0;
    for (struct dirent *e; (e = readdir(d)) != NULL;)
        n += e->d_name[0] == '.' && strcmp(e->d_name, ".") != 0 && strcmp(e->d_name, "..") != 0;
    closedir(d);
    return n;
}

TEST(file_read_whole)
{
    tt_ctx *ctx = test_ctx();
    char *text;
    size_t n;
    write_text(path_of("empty"), "");
    check_text(ctx, path_of("empty"), "");
    write_text(path_of("f"), "0123456789");
    check_text(ctx, path_of("f"), "0123456789");
    CHECK_OK(tti_file_read(ctx, path_of("f"), 10, &text, &n));
    tti_free(ctx, text);
    CHECK(tti_file_read(ctx, path_of("f"), 9, &text, &n) == TT_EIO);
    CHECK_MESSAGE(ctx, "larger than the limit of 9 bytes");
    tt_clear_error(ctx);
    CHECK(tti_file_read(ctx, path_of("none"), 0, &text, &n) == TT_EIO);
    CHECK_MESSAGE(ctx, "none");
    tt_clear_error(ctx);
    CHECK(tti_file_read(ctx, test_folder(), 0, &text, &n) == TT_EIO);
    CHECK_MESSAGE(ctx, "it is a folder");
    tt_clear_error(ctx);
    // Sizes that the system does not tell beforehand.
    CHECK_OK(tti_file_read(ctx, "/proc/self/status", 0, &text, &n));
    CHECK(n > 100 && strlen(text) == n);
    tti_free(ctx, text);
    CHECK_OK(tt_close(ctx));
}

TEST(file_read_large)
{
    tt_ctx *ctx = test_ctx();
    char *data = malloc(1000003), *text;
    size_t n;
    for (int i = 0; i < 1000003; i++)
        data[i] = (char)(i % 251);
    CHECK_OK(tti_file_replace(ctx, path_of("large"), data, 1000003));
    for (int how = 0; how >= TTI_DISK_SHORT; how--) { // also with a short read
        tti_disk_fail_at(ctx, 2, how);
        CHECK_OK(tti_file_read(ctx, path_of("large"), 0, &text, &n));
        CHECK(n == 1000003 && memcmp(text, data, n) == 0);
        tti_free(ctx, text);
    }
    free(data);
    CHECK_OK(tt_close(ctx));
}

TEST(file_split)
{
    static const struct {
        const char *path, *folder, *name;
    } cases[] = {
        {"a", ".", "a"},    {"a/b", "a", "b"},    {"/a", "/", "a"},
        {"a/b/", "a", "b"}, {"a//b//", "a", "b"}, {"../a", "..", "a"},
    };
    tt_ctx *ctx = test_ctx();
    char folder[TTI_PATH_MAX], name[256];
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        CHECK_OK(tti_file_split(ctx, cases[i].path, folder, name));
        CHECK_STR(folder, cases[i].folder);
        CHECK_STR(name, cases[i].name);
    }
    static const char *const bad[] = {"", "/", "//", ".", "..", "a/.", "a/../"};
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        CHECK(tti_file_split(ctx, bad[i], folder, name) == TT_EINVAL);
        tt_clear_error(ctx);
    }
    CHECK_OK(tt_close(ctx));
}

TEST(file_replace)
{
    tt_ctx *ctx = test_ctx();
    CHECK_OK(tti_file_replace(ctx, path_of("f"), "one", 3));
    check_text(ctx, path_of("f"), "one");
    CHECK_OK(tti_file_replace(ctx, path_of("f"), "", 0));
    check_text(ctx, path_of("f"), "");
    CHECK(tti_file_replace(ctx, path_of("none/f"), "x", 1) == TT_EIO);
    CHECK_MESSAGE(ctx, "No such file");
    tt_clear_error(ctx);
    CHECK_INT(count_hidden(test_folder()), 0);
    CHECK_OK(tt_close(ctx));
}

TEST(file_replace_behind_links)
{
    tt_ctx *ctx = test_ctx();
    char link[512];
    CHECK_OK(tti_folder_make(ctx, path_of("there")));
    write_text(path_of("there/f"), "old");
    CHECK(symlink("there/f", path_of("one")) == 0 && symlink("one", path_of("two")) == 0);
    CHECK_OK(tti_file_replace(ctx, path_of("two"), "new", 3));
    check_text(ctx, path_of("there/f"), "new");
    CHECK(readlink(path_of("two"), link, sizeof(link)) == 3 && memcmp(link, "one", 3) == 0);
    CHECK(readlink(path_of("one"), link, sizeof(link)) == 7);
    CHECK_INT(unlink(path_of("there/f")), 0); // a link to nothing: that is made
    CHECK_OK(tti_file_replace(ctx, path_of("one"), "again", 5));
    check_text(ctx, path_of("there/f"), "again");
    CHECK(symlink(path_of("there/g"), path_of("absolute")) == 0);
    CHECK_OK(tti_file_replace(ctx, path_of("absolute"), "g", 1));
    check_text(ctx, path_of("there/g"), "g");
    CHECK(symlink("round", path_of("round")) == 0);
    CHECK(tti_file_replace(ctx, path_of("round"), "x", 1) == TT_EIO);
    CHECK_MESSAGE(ctx, "/round'");
    tt_clear_error(ctx);
    CHECK_INT(count_hidden(test_folder()) + count_hidden(path_of("there")), 0);
    CHECK_OK(tt_close(ctx));
}

TEST(file_replace_devices)
{
    tt_ctx *ctx = test_ctx();
    struct stat st;
    char got[16];
    CHECK_INT(mkfifo(path_of("pipe"), 0600), 0);
    int fd = open(path_of("pipe"), O_RDONLY | O_NONBLOCK);
    CHECK_OK(tti_file_replace(ctx, path_of("pipe"), "through", 7));
    CHECK(read(fd, got, sizeof(got)) == 7 && memcmp(got, "through", 7) == 0);
    close(fd);
    CHECK(stat(path_of("pipe"), &st) == 0 && S_ISFIFO(st.st_mode));
    CHECK(symlink("/dev/full", path_of("full")) == 0);
    CHECK(tti_file_replace(ctx, path_of("full"), "x", 1) == TT_EIO);
    CHECK_MESSAGE(ctx, "/full': No space left on device");
    tt_clear_error(ctx);
    CHECK(tti_file_replace(ctx, "none/f", "x", 1) == TT_EIO);
    CHECK_MESSAGE(ctx, "cannot create 'none/f': No such file"); // as it was asked for
    tt_clear_error(ctx);
    CHECK_INT(count_hidden(test_folder()), 0);
    CHECK_OK(tt_close(ctx));
}

// What a writer that was killed left goes; what is being written stays, and comes to its place.
TEST(leftovers_of_dead_writers_are_removed)
{
    tt_ctx *ctx = test_ctx();
    tti_writer w;
    tt_hash hash;
    char name[64];
    const char *folder = path_of("run");
    CHECK_OK(tti_folder_make(ctx, folder));
    write_text(path_of("run/.tmp-job.yaml-4194305"), "half a jo");
    write_text(path_of("run/.tmp-of-a-user"), "not ours");
    CHECK_OK(tti_writer_open(ctx, path_of("run/best"), true, &w));
    CHECK_OK(tti_writer_add(&w, "new", 3));
    CHECK_OK(tti_fresh_clean(ctx, folder));
    snprintf(name, sizeof(name), "run/.tmp-best-%d", (int)getpid());
    CHECK(access(path_of(name), F_OK) == 0);
    CHECK(access(path_of("run/.tmp-job.yaml-4194305"), F_OK) != 0);
    CHECK(access(path_of("run/.tmp-of-a-user"), F_OK) == 0);
    CHECK_OK(tti_writer_close(&w, &hash));
    check_text(ctx, path_of("run/best"), "new");
    CHECK_INT(count_hidden(folder), 1);
    CHECK_OK(tt_close(ctx));
}

TEST(folder_make_and_remove)
{
    tt_ctx *ctx = test_ctx();
    char **names;
    int64_t n;
    CHECK_OK(tti_folder_make(ctx, path_of("a/b/c")));
    CHECK_OK(tti_folder_make(ctx, path_of("a/b/c/")));
    write_text(path_of("a/b/file"), "x");
    CHECK(tti_folder_make(ctx, path_of("a/b/file/d")) == TT_EIO);
    tt_clear_error(ctx);
    CHECK_OK(tti_folder_list(ctx, path_of("a/b"), &names, &n));
    CHECK(n == 2 && strcmp(names[0], "c") == 0 && strcmp(names[1], "file") == 0);
    tti_names_free(ctx, names, n);

    // A link is removed, not what it leads to.
    CHECK_OK(tti_folder_make(ctx, path_of("kept")));
    write_text(path_of("kept/file"), "x");
    CHECK(symlink("../../kept", path_of("a/b/link")) == 0);
    CHECK_OK(tti_folder_remove(ctx, path_of("a")));
    CHECK(!tti_folder_exists(path_of("a")));
    CHECK(tti_file_exists(path_of("kept/file")));
    CHECK_OK(tti_folder_remove(ctx, path_of("a"))); // not there
    CHECK_OK(tt_close(ctx));
}

// ---- failing disks ---------------------------------------------------------------------------

static int64_t step_at(tt_ctx *ctx, const char *path)
{
    static tti_snapshot s;
    ck_assert_msg(tti_checkpoint_read(ctx, path, &s) == TT_OK, "%s", tt_last_error(ctx).message);
    test_snapshot_check(&s, SCALE);
    int64_t step = s.state.step;
    tti_snapshot_free(ctx, &s);
    return step;
}

/*
 * Saves step 2 over step 1, or where there is nothing, with the k-th call failing like this. True
 * if the save made fewer calls.
 */
static bool fail_at(int k, int how, bool is_new)
{
    static tti_snapshot one, two;
    tt_ctx *ctx = test_ctx();
    char *path = path_of("m.tutti");
    test_snapshot_make(&one, 1, SCALE);
    test_snapshot_make(&two, 2, SCALE);
    CHECK_OK(tti_folder_remove(ctx, path));
    if (!is_new)
        CHECK_OK(tti_checkpoint_write(ctx, path, &one));

    tti_disk_fail_at(ctx, k, how);
    tt_status st = tti_checkpoint_write(ctx, path, &two);
    bool done = atomic_load(&ctx->disk_fail_in) > 0;
    tti_disk_fail_at(ctx, 0, 0);
    if (how == EINTR || how == TTI_DISK_SHORT || done)
        ck_assert_msg(st == TT_OK, "call %d, error %d: %s", k, how, tt_last_error(ctx).message);
    if (st != TT_OK) {
        CHECK(st == TT_EIO);
        CHECK_MESSAGE(ctx, test_folder());
        CHECK_MESSAGE(ctx, strerror(how));
    }
    tt_clear_error(ctx);
    bool there = tti_folder_exists(path);
    CHECK(there || (is_new && st != TT_OK));
    int64_t step = there ? step_at(ctx, path) : 0;
    CHECK(st != TT_OK || step == 2);
    // The old one may be left beside the new, if the failure came after it was put in place.
    if (step != 2 && count_hidden(test_folder()) != 0)
        ck_abort_msg("call %d, error %d leaves something", k, how);

    CHECK_OK(tti_checkpoint_write(ctx, path, &two)); // the disk works again
    CHECK_INT(step_at(ctx, path), 2);
    CHECK_INT(count_hidden(test_folder()), 0);
    test_snapshot_free(&one);
    test_snapshot_free(&two);
    CHECK_OK(tt_close(ctx));
    return done;
}

static void fail_everywhere(int how)
{
    for (int is_new = 0; is_new < 2; is_new++) {
        int k = 1;
        while (k < MANY && !fail_at(k, how, is_new))
            k++;
        CHECK(k > 12 && k < MANY);
    }
}

TEST(save_with_eio)
{
    fail_everywhere(EIO);
}

TEST(save_on_a_full_disk)
{
    fail_everywhere(ENOSPC);
}

TEST(save_interrupted)
{
    fail_everywhere(EINTR);
}

TEST(save_with_short_writes)
{
    fail_everywhere(TTI_DISK_SHORT);
}

// EINVAL is what a file system says that cannot exchange two names: the way around it works too.
TEST(save_without_exchange)
{
    fail_everywhere(EINVAL);
}

TEST(save_recovers_what_was_moved_aside)
{
    static tti_snapshot s;
    tt_ctx *ctx = test_ctx();
    test_snapshot_make(&s, 3, SCALE);
    CHECK_OK(tti_checkpoint_write(ctx, path_of("m"), &s));
    CHECK(rename(path_of("m"), path_of(".old-m")) == 0);
    CHECK_INT(step_at(ctx, path_of("m")), 3);
    CHECK_INT(count_hidden(test_folder()), 0);
    test_snapshot_free(&s);
    CHECK_OK(tt_close(ctx));
}

// A real limit of the system, met in the middle of a file.
TEST(save_over_a_size_limit)
{
    static tti_snapshot s;
    tt_ctx *ctx = test_ctx();
    tti_saver *saver;
    signal(SIGXFSZ, SIG_IGN);
    test_snapshot_make(&s, 1, SCALE);
    CHECK_OK(tti_saver_open(ctx, path_of("run"), 2, &saver));
    CHECK_OK(tti_saver_save(saver, &s, true));
    CHECK_OK(tti_saver_wait(saver));
    test_snapshot_free(&s);

    struct rlimit old, small = {.rlim_cur = 100000};
    CHECK(getrlimit(RLIMIT_FSIZE, &old) == 0);
    small.rlim_max = old.rlim_max;
    test_snapshot_make(&s, 2, 100000);
    CHECK(setrlimit(RLIMIT_FSIZE, &small) == 0);
    CHECK_OK(tti_saver_save(saver, &s, true));
    CHECK(tti_saver_wait(saver) == TT_EIO); // told once
    CHECK_MESSAGE(ctx, "step-2");
    CHECK_MESSAGE(ctx, "File too large");
    CHECK(setrlimit(RLIMIT_FSIZE, &old) == 0);
    tt_clear_error(ctx);
    CHECK_INT(count_hidden(path_of("run")), 0);
    CHECK(!tti_folder_exists(path_of("run/step-2")));
    CHECK_STR(tti_saver_newest(saver), path_of("run/step-1"));
    CHECK_INT(step_at(ctx, path_of("run/step-1")), 1);
    CHECK_OK(tti_saver_save(saver, &s, false));
    CHECK_OK(tti_saver_wait(saver));
    CHECK_STR(tti_saver_newest(saver), path_of("run/step-2"));
    test_snapshot_free(&s);
    CHECK_OK(tt_close(ctx));
}

// The saver's own calls: the note of the best one, and removing what is too old.
TEST(saver_on_a_failing_disk)
{
    static tti_snapshot s;
    for (int k = 1, done = 0; !done; k++) {
        tt_ctx *ctx = test_ctx();
        tti_saver *saver;
        char newest[TTI_PATH_MAX], best[TTI_PATH_MAX];
        CHECK(k < MANY);
        CHECK_OK(tti_folder_remove(ctx, path_of("run")));
        CHECK_OK(tti_saver_open(ctx, path_of("run"), 1, &saver));
        test_snapshot_make(&s, 1, SCALE);
        CHECK_OK(tti_saver_save(saver, &s, true));
        CHECK_OK(tti_saver_wait(saver));
        s.state.step = 2;
        test_snapshot_free(&s);
        test_snapshot_make(&s, 2, SCALE);
        tti_disk_fail_at(ctx, k, EIO);
        CHECK_OK(tti_saver_save(saver, &s, true));
        tt_status st = tti_saver_wait(saver);
        done = atomic_load(&ctx->disk_fail_in) > 0;
        tti_disk_fail_at(ctx, 0, 0);
        CHECK(st == (tt_status_of(ctx)));
        CHECK(!done || st == TT_OK);
        tt_clear_error(ctx);
        tti_saver_close(saver);
        CHECK_OK(tti_checkpoint_newest(ctx, path_of("run"), newest));
        CHECK_OK(tti_checkpoint_best(ctx, path_of("run"), best));
        int64_t step = step_at(ctx, newest);
        CHECK(step == 2 || (step == 1 && st != TT_OK));
        step_at(ctx, best); // whichever it is, it is there
        test_snapshot_free(&s);
        CHECK_OK(tt_close(ctx));
    }
}
