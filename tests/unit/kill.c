/*
 * kill.c - a process that saves is killed at any moment. What it had reported as saved, or
 * something newer, loads afterwards and is of one piece.
 *
 * The child saves in a loop; the parent waits until a folder is being written, then a random time
 * of up to a few milliseconds, and kills. Even rounds go through the saver of a run's folder, odd
 * ones replace one checkpoint in its place.
 */
#include "../checkpoint.h"
#include "../test.h"
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define ROUNDS 200
#define SCALE  20000 // elements: about 1.5 MB a save

static char run_path[400], model_path[400];
static _Atomic int64_t *reported; // shared with the child: the last step known to be saved

static void child_run(int64_t step)
{
    static tti_snapshot s;
    tt_ctx *ctx = test_ctx();
    tti_saver *saver;
    CHECK_OK(tti_saver_open(ctx, run_path, 2, &saver));
    for (;; step++) {
        test_snapshot_make(&s, step, SCALE);
        CHECK_OK(tti_saver_save(saver, &s, step % 3 == 0));
        test_snapshot_free(&s);
        if (step % 2 == 0) { // every other time the next save meets this one
            CHECK_OK(tti_saver_wait(saver));
            atomic_store(&reported[0], step);
        }
    }
}

static void child_model(int64_t step)
{
    static tti_snapshot s;
    tt_ctx *ctx = test_ctx();
    for (;; step++) {
        test_snapshot_make(&s, step, SCALE);
        CHECK_OK(tti_checkpoint_write(ctx, model_path, &s));
        test_snapshot_free(&s);
        atomic_store(&reported[1], step);
    }
}

static void sleep_us(uint64_t us)
{
    nanosleep(&(struct timespec){.tv_nsec = (long)us * 1000}, NULL);
}

// Waits for a folder that begins with ".tmp-"; the child may end first only by failing.
static void wait_for_save(const char *folder, pid_t pid)
{
    char **names;
    int64_t n;
    for (bool found = false; !found;) {
        if (tti_folder_exists(folder) && tti_folder_list(NULL, folder, &names, &n) == TT_OK) {
            for (int64_t i = 0; i < n; i++)
                found = found || strncmp(names[i], TTI_TMP, strlen(TTI_TMP)) == 0;
            tti_names_free(NULL, names, n);
        }
        CHECK(waitpid(pid, NULL, WNOHANG) == 0);
        sleep_us(20);
    }
}

// The step that is there now; it loads and all its numbers are of that step.
static int64_t check(const char *path)
{
    static tti_snapshot s;
    tt_ctx *ctx = test_ctx();
    ck_assert_msg(tti_checkpoint_read(ctx, path, &s) == TT_OK, "%s", tt_last_error(ctx).message);
    test_snapshot_check(&s, SCALE);
    int64_t step = s.state.step;
    tti_snapshot_free(ctx, &s);
    CHECK_OK(tt_close(ctx));
    return step;
}

static int64_t check_run(void)
{
    char newest[TTI_PATH_MAX], best[TTI_PATH_MAX];
    tt_ctx *ctx = test_ctx();
    CHECK_OK(tti_checkpoint_newest(ctx, run_path, newest));
    CHECK_OK(tti_checkpoint_best(ctx, run_path, best));
    CHECK_OK(tt_close(ctx));
    if (best[0] != '\0')
        CHECK_INT(check(best) % 3, 0);
    return newest[0] == '\0' ? 0 : check(newest);
}

static int64_t check_model(void)
{
    return tti_folder_exists(model_path) ? check(model_path) : 0;
}

TEST(save_killed_at_any_moment)
{
    uint64_t random = 20240611;
    snprintf(run_path, sizeof(run_path), "%s/run", test_folder());
    snprintf(model_path, sizeof(model_path), "%s/model/m.tutti", test_folder());
    char model_folder[400];
    snprintf(model_folder, sizeof(model_folder), "%s/model", test_folder());
    reported = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    CHECK(reported != MAP_FAILED);
    int64_t last[2] = {0, 0}, in_save = 0;
    for (int round = 0; round < ROUNDS; round++) {
        int kind = round % 2;
        pid_t pid = fork();
        CHECK(pid >= 0);
        if (pid == 0) {
            (kind == 0 ? child_run : child_model)(last[kind] + 1);
            _exit(0);
        }
        wait_for_save(kind == 0 ? run_path : model_folder, pid);
        random = random * 6364136223846793005u + 1442695040888963407u;
        int64_t late = last[kind] > 0 ? 0 : 500 * round; // a slow machine must get to its first one
        sleep_us(late + (int64_t)((random >> 33) % 8000));
        CHECK(kill(pid, SIGKILL) == 0);
        CHECK(waitpid(pid, NULL, 0) == pid);
        char **names;
        int64_t n;
        CHECK_OK(tti_folder_list(NULL, kind == 0 ? run_path : model_folder, &names, &n));
        in_save += strncmp(names[0], TTI_TMP, strlen(TTI_TMP)) == 0;
        tti_names_free(NULL, names, n);
        int64_t step = kind == 0 ? check_run() : check_model();
        ck_assert_msg(step >= atomic_load(&reported[kind]),
                      "round %d: step %lld is there, %lld was", round, (long long)step,
                      (long long)atomic_load(&reported[kind]));
        CHECK(step >= last[kind]);
        last[kind] = step;
    }
    CHECK(in_save > ROUNDS / 4); // the kills do fall into saves
    CHECK(last[0] > 0 && last[1] > 0);
}
