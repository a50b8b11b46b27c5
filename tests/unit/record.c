/*
 * record.c - run folders, and what a recorder leaves in them, also when the disk is full.
 */
#include "record/record.h"
#include "../test.h"
#include <dirent.h>
#include <jansson.h>
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

static const char *in_folder(const char *name)
{
    static char path[4][600];
    static int turn;
    turn = (turn + 1) % 4;
    snprintf(path[turn], sizeof(path[turn]), "%s/%s", test_folder(), name);
    return path[turn];
}

TEST(run_folders_are_numbered)
{
    tt_ctx *ctx = test_ctx();
    char path[TTI_RUN_PATH], want[TTI_RUN_PATH + 64];
    const char *root = in_folder("deep/runs");
    CHECK_OK(tti_run_folder_newest(ctx, root, "digits", path)); // no root yet
    CHECK_STR(path, "");
    for (int i = 1; i <= 3; i++) {
        CHECK_OK(tti_run_folder_new(ctx, root, "digits", path));
        snprintf(want, sizeof(want), "%s/digits-%03d", root, i);
        CHECK_STR(path, want);
        CHECK(access(path, F_OK) == 0);
    }
    // A gap is not filled, so that the highest number is the newest run.
    snprintf(want, sizeof(want), "%s/digits-001", root);
    CHECK(rmdir(want) == 0);
    snprintf(want, sizeof(want), "%s/digits-009", root);
    CHECK(mkdir(want, 0700) == 0);
    CHECK_OK(tti_run_folder_newest(ctx, root, "digits", path));
    CHECK_STR(path, want);
    CHECK_OK(tti_run_folder_new(ctx, root, "digits", path));
    snprintf(want, sizeof(want), "%s/digits-010", root);
    CHECK_STR(path, want);
    // Other names do not count: a longer one, no number.
    for (const char *const *w =
             (const char *const[]){"digits-big-100", "digits-200x", "digits-", "digits-30", NULL};
         *w != NULL; w++) {
        snprintf(want, sizeof(want), "%s/%s", root, *w);
        CHECK(mkdir(want, 0700) == 0);
    }
    CHECK_OK(tti_run_folder_newest(ctx, root, "digits", path));
    CHECK(strstr(path, "digits-010") != NULL);
    CHECK_OK(tt_close(ctx));
}

TEST(run_folders_have_plain_names)
{
    tt_ctx *ctx = test_ctx();
    char path[TTI_RUN_PATH];
    CHECK_OK(tti_run_folder_new(ctx, in_folder("runs"), "../a b/c", path));
    CHECK(strstr(path, "/runs/-.-a-b-c-001") != NULL);
    CHECK_OK(tti_run_folder_newest(ctx, in_folder("runs"), "../a b/c", path));
    CHECK(strstr(path, "/runs/-.-a-b-c-001") != NULL);
    CHECK_OK(tti_run_folder_new(ctx, in_folder("runs"), "", path));
    CHECK(strstr(path, "/runs/run-001") != NULL);
    CHECK_OK(tt_close(ctx));

    ctx = test_ctx();
    char deep[300];
    memset(deep, 'd', sizeof(deep));
    deep[256] = '\0';
    CHECK(tti_run_folder_new(ctx, in_folder(deep), "x", path) != TT_OK);
    CHECK(tt_close(ctx) != TT_OK);

    ctx = test_ctx();
    FILE *f = fopen(in_folder("file"), "w");
    fclose(f);
    CHECK(tti_run_folder_new(ctx, in_folder("file"), "x", path) == TT_EIO);
    CHECK_MESSAGE(ctx, "file");
    CHECK(tt_close(ctx) == TT_EIO);
}

static void emit_step(tt_ctx *ctx, int step)
{
    tt_pair p[] = {{"step", step, NULL}, {"loss", 1.0 / step, NULL}, {"accuracy", NAN, NULL}};
    tti_emit_pairs(ctx, "step", p, 3);
}

// Lines of events.jsonl; each must be an object. The kinds of them, with spaces behind.
static int read_lines(const char *path, char *kinds, size_t room)
{
    char *line = NULL;
    size_t size = 0;
    int n = 0;
    FILE *f = fopen(path, "r");
    CHECK(f != NULL);
    *kinds = '\0';
    for (ssize_t k; (k = getline(&line, &size, f)) > 0; n++) {
        json_error_t e;
        json_t *o = json_loadb(line, (size_t)k, JSON_REJECT_DUPLICATES, &e);
        ck_assert_msg(json_is_object(o), "line %d: %s: %s", n + 1, e.text, line);
        double t = json_real_value(json_object_get(o, "time"));
        CHECK(t > 1.5e9 && t < 1e11);
        size_t at = strlen(kinds);
        snprintf(kinds + at, room - at, "%s ", json_string_value(json_object_get(o, "event")));
        json_decref(o);
    }
    free(line);
    fclose(f);
    return n;
}

static int count_boards(const char *folder)
{
    int n = 0;
    DIR *d = opendir(folder);
    CHECK(d != NULL);
    for (struct dirent *e; (e = readdir(d)) != NULL;)
        n += strncmp(e->d_name, "events.out.tfevents.", 20) == 0;
    closedir(d);
    return n;
}

TEST(events_become_lines)
{
    tt_ctx *ctx = test_ctx();
    tti_recorder *r;
    char kinds[400];
    CHECK_OK(tti_recorder_open(ctx, test_folder(), true, &r));
    tti_emit_pairs(ctx, "begin", &(tt_pair){"name", 0, "a \"b\"\n"}, 1);
    emit_step(ctx, 1);
    // Written when it happens, not when the recorder is closed.
    CHECK_INT(read_lines(in_folder("events.jsonl"), kinds, sizeof(kinds)), 2);
    TT_LOG(ctx, TT_WARN, "a \"warning\" with \x80 and \\");
    tti_emit(ctx, &(tt_event){.kind = "print", .text = "not for here"});
    tti_emit_pairs(ctx, "end", &(tt_pair){"steps", 1, NULL}, 1);
    tti_recorder_close(r);
    emit_step(ctx, 2); // nobody listens
    CHECK_INT(read_lines(in_folder("events.jsonl"), kinds, sizeof(kinds)), 4);
    CHECK_STR(kinds, "begin step log end ");
    CHECK_INT(count_boards(in_folder("tensorboard")), 1);
    tti_recorder_close(NULL);
    CHECK_OK(tt_close(ctx));
}

TEST(a_resumed_run_appends_whole_lines)
{
    tt_ctx *ctx = test_ctx();
    tti_recorder *r;
    char kinds[400];
    FILE *f = fopen(in_folder("events.jsonl"), "w"); // killed in the middle of a line
    fputs("{\"time\": 1600000000.5, \"event\": \"step\", \"step\": 1}\n{\"time\": 16000", f);
    fclose(f);
    CHECK_OK(tti_recorder_open(ctx, test_folder(), true, &r));
    emit_step(ctx, 2);
    tti_recorder_close(r);
    CHECK_INT(read_lines(in_folder("events.jsonl"), kinds, sizeof(kinds)), 2);
    CHECK_OK(tti_recorder_open(ctx, test_folder(), true, &r));
    emit_step(ctx, 3);
    tti_recorder_close(r);
    CHECK_INT(read_lines(in_folder("events.jsonl"), kinds, sizeof(kinds)), 3);
    CHECK_INT(count_boards(in_folder("tensorboard")), 2); // one a session
    CHECK_OK(tt_close(ctx));
}

TEST(a_torn_first_line_is_cut)
{
    tt_ctx *ctx = test_ctx();
    tti_recorder *r;
    char kinds[400];
    FILE *f = fopen(in_folder("events.jsonl"), "w");
    fputs("{\"time\": 16000", f);
    fclose(f);
    CHECK_OK(tti_recorder_open(ctx, test_folder(), true, &r));
    emit_step(ctx, 1);
    tti_recorder_close(r);
    CHECK_INT(read_lines(in_folder("events.jsonl"), kinds, sizeof(kinds)), 1);
    CHECK_OK(tt_close(ctx));
}

typedef struct heard {
    int warnings;
    char last[400];
} heard;

static void hear(void *user, const tt_event *ev)
{
    heard *h = user;
    if (strcmp(ev->kind, "log") != 0 || ev->level != TT_WARN)
        return;
    h->warnings++;
    snprintf(h->last, sizeof(h->last), "%s", ev->text);
}

TEST(a_full_disk_is_told_once)
{
    heard h = {0};
    tt_ctx *ctx = tt_open(.on_event = hear, .user = &h);
    tti_recorder *r;
    if (access("/dev/full", W_OK) != 0)
        test_skip("no /dev/full");
    CHECK(symlink("/dev/full", in_folder("events.jsonl")) == 0);
    CHECK_OK(tti_recorder_open(ctx, test_folder(), true, &r));
    CHECK_INT(h.warnings, 0);
    for (int i = 1; i <= 3000; i++) // more than waits
        emit_step(ctx, i);
    CHECK_INT(h.warnings, 1);
    CHECK(strstr(h.last, "events.jsonl': No space left on device") != NULL);
    tti_recorder_close(r);
    CHECK_INT(count_boards(in_folder("tensorboard")), 1); // the other file is whole
    CHECK_INT(h.warnings, 1);
    CHECK_OK(tt_close(ctx));
}

TEST(files_that_cannot_be_opened_are_warnings)
{
    heard h = {0};
    tt_ctx *ctx = tt_open(.on_event = hear, .user = &h);
    tti_recorder *r;
    CHECK(mkdir(in_folder("events.jsonl"), 0700) == 0);
    FILE *f = fopen(in_folder("tensorboard"), "w");
    fclose(f);
    CHECK_OK(tti_recorder_open(ctx, test_folder(), true, &r));
    emit_step(ctx, 1);
    tti_recorder_close(r);
    CHECK_INT(h.warnings, 2);
    CHECK_OK(tt_close(ctx));
}

// Room comes back: lines that waited are written, none is torn, none is lost.
TEST(lines_wait_for_room)
{
    heard h = {0};
    tt_ctx *ctx = tt_open(.on_event = hear, .user = &h);
    tti_recorder *r;
    char kinds[2000];
    struct rlimit old, small = {1234, RLIM_INFINITY}; // bytes a file may have
    CHECK(getrlimit(RLIMIT_FSIZE, &old) == 0);
    small.rlim_max = old.rlim_max;
    signal(SIGXFSZ, SIG_IGN);
    CHECK_OK(tti_recorder_open(ctx, test_folder(), true, &r));
    CHECK(setrlimit(RLIMIT_FSIZE, &small) == 0);
    for (int i = 1; i <= 100; i++)
        emit_step(ctx, i);
    CHECK(setrlimit(RLIMIT_FSIZE, &old) == 0);
    CHECK_INT(h.warnings, 2); // one a file
    emit_step(ctx, 101);
    tti_recorder_close(r);
    // The warnings are lines too: the one about events.jsonl and the one about the event file.
    CHECK_INT(read_lines(in_folder("events.jsonl"), kinds, sizeof(kinds)), 103);
    CHECK_OK(tt_close(ctx));
}
