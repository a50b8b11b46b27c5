/*
 * checkpoint.c - checkpoint folders: what is saved is read, a damaged one is refused by the name of
 * the file, and the background saver keeps the newest and the best.
 */
#include "../checkpoint.h"
#include "../test.h"
#include "base/disk.h"
#include "save/manifest.h"
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#define SCALE 5

static const char *const files[] = {"weights.safetensors", "optimizer.safetensors",
                                    "manifest.json"};

static char *path_of(const char *name)
{
    static char path[32][512];
    static int next;
    char *p = path[next++ % 32];
    snprintf(p, sizeof(path[0]), "%s/%s", test_folder(), name);
    return p;
}

static void write_bytes(const char *path, const void *data, size_t n)
{
    unlink(path); // a file system may sync one that is cut to nothing and written again
    FILE *f = fopen(path, "wb");
    CHECK(f != NULL && fwrite(data, 1, n, f) == n && fclose(f) == 0);
}

static void save(tt_ctx *ctx, const char *path, int64_t step)
{
    static tti_snapshot s;
    test_snapshot_make(&s, step, SCALE);
    ck_assert_msg(tti_checkpoint_write(ctx, path, &s) == TT_OK, "%s", tt_last_error(ctx).message);
    test_snapshot_free(&s);
}

static void check_loads(tt_ctx *ctx, const char *path, int64_t step)
{
    static tti_snapshot s;
    ck_assert_msg(tti_checkpoint_read(ctx, path, &s) == TT_OK, "%s", tt_last_error(ctx).message);
    CHECK_INT(s.state.step, step);
    test_snapshot_check(&s, SCALE);
    tti_snapshot_free(ctx, &s);
}

// Refused, with this file named.
static void check_refused(tt_ctx *ctx, const char *path, const char *file)
{
    static tti_snapshot s;
    CHECK(tti_checkpoint_read(ctx, path, &s) != TT_OK);
    CHECK_MESSAGE(ctx, file);
    tt_clear_error(ctx);
}

static int count_names(const char *folder)
{
    DIR *d = opendir(folder);
    int n = 0;
    for (struct dirent *e; (e = readdir(d)) != NULL;)
        n += strcmp(e->d_name, ".") != 0 && strcmp(e->d_name, "..") != 0;
    closedir(d);
    return n;
}

TEST(checkpoint_round_trip)
{
    tt_ctx *ctx = test_ctx();
    char *path = path_of("x.tutti");
    save(ctx, path, 7);
    check_loads(ctx, path, 7);
    save(ctx, path, 8); // in its place
    check_loads(ctx, path, 8);
    CHECK_INT(count_names(test_folder()), 1);
    CHECK_INT(count_names(path), 3);
    CHECK_OK(tt_close(ctx));
}

TEST(checkpoint_bytes_are_equal)
{
    tt_ctx *ctx = test_ctx();
    save(ctx, path_of("a"), 7);
    save(ctx, path_of("deep/er/b"), 7);
    for (int i = 0; i < 3; i++) {
        char *a, *b, name[64];
        size_t n, m;
        snprintf(name, sizeof(name), "a/%s", files[i]);
        CHECK_OK(tti_file_read(ctx, path_of(name), 0, &a, &n));
        snprintf(name, sizeof(name), "deep/er/b/%s", files[i]);
        CHECK_OK(tti_file_read(ctx, path_of(name), 0, &b, &m));
        CHECK(n == m && memcmp(a, b, n) == 0);
        tti_free(ctx, a);
        tti_free(ctx, b);
    }
    CHECK_OK(tt_close(ctx));
}

// Each file of a checkpoint, harmed at each of its bytes; whole again it loads.
static void harm_every_byte(void (*harm)(const char *file, char *all, size_t n, size_t at))
{
    tt_ctx *ctx = test_ctx();
    char *path = path_of("x"), *all, file[600];
    size_t n;
    save(ctx, path, 7);
    for (int i = 0; i < 3; i++) {
        snprintf(file, sizeof(file), "%s/%s", path, files[i]);
        CHECK_OK(tti_file_read(ctx, file, 0, &all, &n));
        for (size_t k = 0; k < n; k++) {
            harm(file, all, n, k);
            check_refused(ctx, path, files[i]);
        }
        write_bytes(file, all, n);
        check_loads(ctx, path, 7);
        tti_free(ctx, all);
    }
    CHECK_OK(tt_close(ctx));
}

static void cut(const char *file, char *all, size_t n, size_t at)
{
    (void)n;
    write_bytes(file, all, at);
}

static void flip(const char *file, char *all, size_t n, size_t at)
{
    char bit = (char)(1 << at % 8);
    all[at] = (char)(all[at] ^ bit);
    write_bytes(file, all, n);
    all[at] = (char)(all[at] ^ bit);
}

TEST(checkpoint_cut_at_every_byte)
{
    harm_every_byte(cut);
}

TEST(checkpoint_flip_in_every_byte)
{
    harm_every_byte(flip);
}

TEST(checkpoint_missing_and_strange_files)
{
    tt_ctx *ctx = test_ctx();
    char *path = path_of("x"), file[600];
    for (int i = 0; i < 3; i++) {
        save(ctx, path, 7);
        snprintf(file, sizeof(file), "%s/%s", path, files[i]);
        CHECK(unlink(file) == 0);
        check_refused(ctx, path, files[i]);
    }
    save(ctx, path, 7);
    snprintf(file, sizeof(file), "%s/notes.txt", path);
    write_bytes(file, "x", 1);
    check_refused(ctx, path, "holds 'notes.txt'");
    check_refused(ctx, path_of("nowhere"), "nowhere");
    CHECK_OK(tt_close(ctx));
}

// A manifest that was changed and sealed again.
static void make_later(tt_ctx *ctx, const char *path)
{
    char *text, file[600], hash[TTI_HASH_TEXT];
    size_t n;
    snprintf(file, sizeof(file), "%s/manifest.json", path);
    CHECK_OK(tti_file_read(ctx, file, 0, &text, &n));
    *(strstr(text, "\"version\": 1") + 11) = '2';
    char *seal = strstr(text, "  \"xxh3_128\": \"");
    for (char *next; (next = strstr(seal + 1, "  \"xxh3_128\": \"")) != NULL;)
        seal = next;
    memcpy(seal + 15, tti_hash_text(tti_hash128(text, (size_t)(seal - text)), hash), 32);
    write_bytes(file, text, n);
    tti_free(ctx, text);
}

TEST(checkpoint_of_a_later_format)
{
    tt_ctx *ctx = test_ctx();
    static tti_snapshot s;
    char *path = path_of("x"), file[600];
    save(ctx, path, 7);
    make_later(ctx, path);
    check_refused(ctx, path, "checkpoint format 2; this version of Tutti reads format 1");
    test_snapshot_make(&s, 8, SCALE);
    CHECK(tti_checkpoint_write(ctx, path, &s) == TT_EUNSUPPORTED);
    CHECK_MESSAGE(ctx, "it holds a checkpoint of another version of Tutti, which is not replaced");
    tt_clear_error(ctx);
    check_refused(ctx, path, "checkpoint format 2");
    snprintf(file, sizeof(file), "%s/manifest.json", path);
    CHECK(unlink(file) == 0 && symlink("manifest.json", file) == 0);
    CHECK(tti_checkpoint_write(ctx, path, &s) == TT_EIO);
    CHECK_MESSAGE(ctx, "cannot be read, so it is not replaced");
    tt_clear_error(ctx);
    test_snapshot_free(&s);
    CHECK_OK(tt_close(ctx));
}

// A bit that the disk changes is noticed before the new checkpoint takes the place of the old one.
TEST(checkpoint_is_read_back)
{
    tt_ctx *ctx = test_ctx();
    static tti_snapshot s;
    char *path = path_of("x");
    int n_flips = 0;
    save(ctx, path, 7);
    test_snapshot_make(&s, 8, SCALE);
    for (int k = 1; k < 40; k++) {
        tti_disk_fail_at(ctx, k, TTI_DISK_FLIP);
        tt_status st = tti_checkpoint_write(ctx, path, &s);
        tti_disk_fail_at(ctx, 0, 0);
        n_flips += st != TT_OK;
        if (st != TT_OK)
            CHECK_MESSAGE(ctx, "was written, but reading it back finds damage: ");
        tt_clear_error(ctx);
        check_loads(ctx, path, st == TT_OK ? 8 : 7);
        CHECK_INT(count_names(test_folder()), 1);
        save(ctx, path, 7);
    }
    CHECK_INT(n_flips, 3); // each file is one write
    test_snapshot_free(&s);
    CHECK_OK(tt_close(ctx));
}

TEST(checkpoint_replaces_only_checkpoints)
{
    tt_ctx *ctx = test_ctx();
    static tti_snapshot s;
    char *folder = path_of("precious");
    test_snapshot_make(&s, 1, SCALE);
    CHECK(mkdir(folder, 0700) == 0);
    write_bytes(path_of("precious/photo"), "x", 1);
    CHECK(tti_checkpoint_write(ctx, folder, &s) == TT_EIO);
    CHECK_MESSAGE(ctx, "it holds 'photo'");
    tt_clear_error(ctx);
    CHECK(tti_file_exists(path_of("precious/photo")));
    CHECK(tti_checkpoint_write(ctx, path_of("precious/photo"), &s) == TT_EIO);
    CHECK_MESSAGE(ctx, "not a folder");
    tt_clear_error(ctx);
    CHECK(symlink("precious", path_of("link")) == 0);
    CHECK(tti_checkpoint_write(ctx, path_of("link"), &s) == TT_EIO);
    tt_clear_error(ctx);
    static const char *const bad[] = {"", "/", ".", "..", "a/.."};
    for (int i = 0; i < 5; i++) {
        CHECK(tti_checkpoint_write(ctx, bad[i], &s) != TT_OK);
        tt_clear_error(ctx);
    }
    test_snapshot_free(&s);
    CHECK_OK(tt_close(ctx));
}

// ---- several in a folder ---------------------------------------------------------------------

TEST(checkpoint_newest)
{
    tt_ctx *ctx = test_ctx();
    char newest[TTI_PATH_MAX], *folder = path_of("run");
    CHECK_OK(tti_checkpoint_newest(ctx, folder, newest));
    CHECK_STR(newest, "");
    CHECK(mkdir(folder, 0700) == 0);
    CHECK_OK(tti_checkpoint_newest(ctx, folder, newest));
    CHECK_STR(newest, "");
    save(ctx, path_of("run/step-9"), 9);
    save(ctx, path_of("run/step-10"), 10);
    CHECK(mkdir(path_of("run/step-11"), 0700) == 0); // no checkpoint at all
    CHECK(mkdir(path_of("run/step-012"), 0700) == 0);
    CHECK(mkdir(path_of("run/step-x"), 0700) == 0);
    CHECK(mkdir(path_of("run/.tmp-step-12"), 0700) == 0);
    write_bytes(path_of("run/.tmp-step-12/weights.safetensors"), "x", 1);
    write_bytes(path_of("run/.tmp-best-77"), "x", 1);
    CHECK_OK(tti_checkpoint_newest(ctx, folder, newest));
    CHECK_STR(newest, path_of("run/step-10"));
    CHECK(!tti_folder_exists(path_of("run/.tmp-step-12")));
    CHECK(!tti_file_exists(path_of("run/.tmp-best-77")));
    CHECK_OK(tt_close(ctx));
}

// One that another process is writing is no leftover.
TEST(checkpoint_being_written_stays)
{
    tt_ctx *ctx = test_ctx();
    char newest[TTI_PATH_MAX];
    tti_fresh f;
    static tti_snapshot s;
    test_snapshot_make(&s, 1, SCALE);
    CHECK_OK(tti_fresh_begin(ctx, path_of("run/step-1"), &f));
    CHECK_OK(tti_checkpoint_newest(ctx, path_of("run"), newest));
    CHECK(tti_folder_exists(path_of("run/.tmp-step-1")));
    CHECK(tti_checkpoint_write(ctx, path_of("run/step-1"), &s) == TT_EIO);
    CHECK_MESSAGE(ctx, "is being written by another process");
    tt_clear_error(ctx);
    tti_fresh_drop(ctx, &f);
    CHECK(!tti_folder_exists(path_of("run/.tmp-step-1")));
    CHECK_OK(tti_checkpoint_write(ctx, path_of("run/step-1"), &s));
    test_snapshot_free(&s);
    CHECK_OK(tt_close(ctx));
}

// Its writer is frozen in the middle, and others go on without it: when it wakes it can neither
// publish what it has written nor spoil what they write.
TEST(checkpoint_of_an_older_membership_is_not_published)
{
    tt_ctx *old = test_ctx(), *new = test_ctx();
    char path[TTI_PATH_MAX], file[TTI_PATH_MAX], newest[TTI_PATH_MAX];
    tti_fresh f;
    static tti_snapshot s;
    test_snapshot_make(&s, 1, SCALE);
    snprintf(path, sizeof(path), "%s", path_of("run/step-1"));
    snprintf(file, sizeof(file), "%s", path_of("membership"));
    old->epoch_file = new->epoch_file = file;
    old->epoch = 1;
    new->epoch = 2;
    CHECK_OK(tti_fence_raise(old, path_of("run")));
    CHECK_OK(tti_fresh_begin(old, path, &f));
    CHECK(tti_folder_exists(path_of("run/.tmp-1-step-1")));
    CHECK_OK(tti_fence_check(old, path));
    CHECK_OK(tti_fence_raise(new, path_of("run")));
    CHECK(!tti_folder_exists(path_of("run/.tmp-1-step-1")));
    CHECK_OK(tti_checkpoint_write(new, path, &s));
    CHECK(tti_fresh_commit(old, &f) == TT_EPEER);
    CHECK_MESSAGE(old, "is not published: this process was in membership 1 of the job");
    tt_clear_error(old);
    CHECK(tti_checkpoint_write(old, path_of("run/step-2"), &s) == TT_EPEER);
    tt_clear_error(old);
    old->epoch = 0; // what has no membership is not asked
    CHECK_OK(tti_fresh_begin(old, path_of("run/step-3"), &f));
    tti_fresh_drop(old, &f);
    CHECK_OK(tti_checkpoint_newest(new, path_of("run"), newest));
    CHECK_STR(newest, path);
    CHECK(!tti_folder_exists(path_of("run/step-2")));
    test_snapshot_free(&s);
    CHECK_OK(tt_close(old));
    CHECK_OK(tt_close(new));
}

// It has passed the check, and is frozen before it puts its folder in place.
TEST(checkpoint_of_an_older_membership_has_no_place)
{
    tt_ctx *old = test_ctx(), *new = test_ctx();
    char file[TTI_PATH_MAX], none[TTI_PATH_MAX];
    tti_fresh f;
    snprintf(file, sizeof(file), "%s", path_of("membership"));
    snprintf(none, sizeof(none), "%s", path_of("no-such-file"));
    old->epoch_file = none; // as before the others went on
    new->epoch_file = file;
    old->epoch = 1;
    new->epoch = 2;
    CHECK_OK(tti_fresh_begin(old, path_of("run/step-1"), &f));
    CHECK_OK(tti_fence_raise(new, path_of("run")));
    CHECK(tti_fresh_commit(old, &f) == TT_EIO);
    tt_clear_error(old);
    CHECK(!tti_folder_exists(path_of("run/step-1")));
    CHECK_OK(tt_close(old));
    CHECK_OK(tt_close(new));
}

static void saver_save(tti_saver *saver, int64_t step, bool is_best)
{
    static tti_snapshot s;
    test_snapshot_make(&s, step, SCALE);
    CHECK_OK(tti_saver_save(saver, &s, is_best));
    test_snapshot_free(&s); // the saver has its copy
}

TEST(saver_keeps_newest_and_best)
{
    tt_ctx *ctx = test_ctx();
    tti_saver *saver;
    char best[TTI_PATH_MAX], *folder = path_of("run");
    CHECK_OK(tti_saver_open(ctx, folder, 2, &saver));
    CHECK_STR(tti_saver_newest(saver), "");
    for (int64_t step = 1; step <= 12; step++)
        saver_save(saver, step, step == 2 || step == 4);
    CHECK_OK(tti_saver_wait(saver));
    CHECK_STR(tti_saver_newest(saver), path_of("run/step-12"));
    CHECK_OK(tti_checkpoint_best(ctx, folder, best));
    CHECK_STR(best, path_of("run/step-4"));
    CHECK_INT(count_names(folder), 4);
    check_loads(ctx, best, 4);
    check_loads(ctx, path_of("run/step-11"), 11);
    check_loads(ctx, path_of("run/step-12"), 12);
    tti_saver_close(saver);

    CHECK_OK(tti_saver_open(ctx, folder, 1, &saver)); // goes on
    CHECK_STR(tti_saver_newest(saver), path_of("run/step-12"));
    saver_save(saver, 12, false);
    saver_save(saver, 13, true);
    tti_saver_close(saver);
    CHECK_INT(count_names(folder), 2);
    check_loads(ctx, path_of("run/step-13"), 13);
    CHECK_OK(tt_close(ctx));
}

static void flip_weights(const char *path)
{
    char file[600];
    snprintf(file, sizeof(file), "%s/weights.safetensors", path);
    FILE *f = fopen(file, "r+b");
    CHECK(f != NULL && fseek(f, -1, SEEK_END) == 0);
    int c = fgetc(f);
    CHECK(fseek(f, -1, SEEK_END) == 0 && fputc(c ^ 1, f) != EOF && fclose(f) == 0);
}

// Only checkpoints that were read whole count; what this version cannot judge is not removed.
TEST(saver_counts_good_checkpoints_only)
{
    tt_ctx *ctx = test_ctx();
    tti_saver *saver;
    char *folder = path_of("run");
    for (int64_t step = 1; step <= 6; step++) {
        char name[32];
        snprintf(name, sizeof(name), "run/step-%lld", (long long)step);
        save(ctx, path_of(name), step);
    }
    flip_weights(path_of("run/step-2"));
    flip_weights(path_of("run/step-5"));
    make_later(ctx, path_of("run/step-1"));
    CHECK_OK(tti_saver_open(ctx, folder, 3, &saver));
    saver_save(saver, 7, false);
    CHECK_OK(tti_saver_wait(saver));
    CHECK(tti_folder_exists(path_of("run/step-7")) && tti_folder_exists(path_of("run/step-6")));
    CHECK(tti_folder_exists(path_of("run/step-5"))); // damaged: one more has to stay
    CHECK(tti_folder_exists(path_of("run/step-4")));
    CHECK(!tti_folder_exists(path_of("run/step-3")) && !tti_folder_exists(path_of("run/step-2")));
    CHECK(tti_folder_exists(path_of("run/step-1")));
    saver_save(saver, 8, false);
    saver_save(saver, 9, false);
    tti_saver_close(saver);
    CHECK_INT(count_names(folder), 4);
    CHECK(tti_folder_exists(path_of("run/step-1")));
    CHECK_OK(tt_close(ctx));
}

TEST(saver_refuses)
{
    tt_ctx *ctx = test_ctx();
    static tti_snapshot s;
    tti_saver *saver;
    CHECK(tti_saver_open(ctx, path_of("run"), 0, &saver) == TT_EINVAL);
    tt_clear_error(ctx);
    write_bytes(path_of("file"), "x", 1);
    CHECK(tti_saver_open(ctx, path_of("file/run"), 1, &saver) == TT_EIO);
    CHECK_MESSAGE(ctx, "file");
    tt_clear_error(ctx);
    CHECK(tti_saver_open(ctx, "", 1, &saver) == TT_EINVAL);
    tt_clear_error(ctx);
    save(ctx, path_of("run/step-5"), 5);
    CHECK_OK(tti_saver_open(ctx, path_of("run"), 1, &saver));
    test_snapshot_make(&s, 4, SCALE);
    CHECK(tti_saver_save(saver, &s, false) == TT_EINVAL);
    CHECK_MESSAGE(ctx, "has a checkpoint of step 5, so step 4 belongs to another run");
    test_snapshot_free(&s);
    tti_saver_close(saver);
    tt_clear_error(ctx);
    check_loads(ctx, path_of("run/step-5"), 5);
    CHECK_OK(tt_close(ctx));
}

// The buffer is made by the first save; later ones ask for little.
TEST(saver_buffer_is_kept)
{
    tt_ctx *ctx = test_ctx();
    static tti_snapshot s;
    tti_saver *saver;
    CHECK_OK(tti_saver_open(ctx, path_of("run"), 3, &saver));
    test_snapshot_make(&s, 1, 1 << 16);
    CHECK_OK(tti_saver_save(saver, &s, false));
    CHECK_OK(tti_saver_wait(saver));
    size_t held = tt_alloc_stats_get(ctx).bytes;
    for (s.state.step = 2; s.state.step < 5; s.state.step++)
        CHECK_OK(tti_saver_save(saver, &s, false));
    CHECK_OK(tti_saver_wait(saver));
    CHECK_INT(tt_alloc_stats_get(ctx).bytes, held);
    test_snapshot_free(&s);
    CHECK_OK(tt_close(ctx)); // closes the saver too
}
