/*
 * run_info.c - what became of a run, read from its events.jsonl: the last start's events say how it
 * went, those of all starts what its best value is.
 */
#include "record/run_info.h"
#include <errno.h>
#include <fcntl.h>
#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

const char *tti_run_state_name(tti_run_state state)
{
    static const char *const names[] = {"empty",       "training", "finished", "stopped",
                                        "interrupted", "failed",   "killed"};
    return (unsigned)state < TTI_COUNT(names) ? names[state] : "";
}

bool tti_run_is_locked(const char *folder)
{
    int fd = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    bool is_locked = fd >= 0 && flock(fd, LOCK_SH | LOCK_NB) != 0 && errno == EWOULDBLOCK;
    if (fd >= 0)
        close(fd); // and with it a lock that was got
    return is_locked;
}

// ---- events ----------------------------------------------------------------------------------

typedef struct reading {
    tti_run_info *info;
    tti_run_state before; // of the starts before the last one
    bool is_open;         // the last start has not told how it ended
    bool has_best_marks;  // events say which values are the best
} reading;

static void copy_text(const json_t *ev, const char *name, char *out, size_t room)
{
    const char *s = json_string_value(json_object_get(ev, name));
    if (s != NULL)
        snprintf(out, room, "%s", s);
}

static void take_steps(tti_run_info *r, const json_t *ev)
{
    const json_t *step = json_object_get(ev, "step"), *steps = json_object_get(ev, "steps");
    double a = json_number_value(step), b = json_number_value(steps);
    if (json_is_number(step) && a >= 0 && a < 1e18)
        r->step = (int64_t)a;
    if (json_is_number(steps) && b >= 0 && b < 1e18)
        r->steps = (int64_t)b;
}

/*
 * An event names the value that is the best so far. Runs of older versions do not: the lowest loss
 * of validation, or of training, counts.
 */
static void take_best(reading *r, const json_t *ev)
{
    tti_run_info *info = r->info;
    const char *name = json_string_value(json_object_get(ev, "best"));
    bool is_marked = name != NULL;
    if (is_marked && !r->has_best_marks)
        info->best_name[0] = '\0'; // what was guessed
    r->has_best_marks |= is_marked;
    if (r->has_best_marks && !is_marked)
        return;
    if (name == NULL)
        name = json_is_number(json_object_get(ev, "validation_loss")) ? "validation_loss" : "loss";
    const json_t *value = json_object_get(ev, name);
    double v = json_number_value(value);
    bool is_first = strcmp(info->best_name, name) != 0;
    if (!json_is_number(value) || (!is_marked && !is_first && !(v < info->best)))
        return;
    snprintf(info->best_name, sizeof(info->best_name), "%s", name);
    info->best = v;
}

static void take_end(reading *r, const json_t *ev)
{
    tti_run_info *info = r->info;
    const char *ended = json_string_value(json_object_get(ev, "ended"));
    bool is_stopped = json_number_value(json_object_get(ev, "stopped")) != 0;
    copy_text(ev, "weights_hash", info->hash, sizeof(info->hash));
    if (ended != NULL && strcmp(ended, "already") == 0) {
        info->state = r->before;
        return;
    }
    if (ended == NULL) // an older version
        ended = is_stopped ? "callback" : info->step >= info->steps ? "finished" : "request";
    info->state = strcmp(ended, "finished") == 0  ? TTI_RUN_FINISHED
                  : strcmp(ended, "request") == 0 ? TTI_RUN_INTERRUPTED
                                                  : TTI_RUN_STOPPED;
}

static void take_event(reading *r, const json_t *ev)
{
    tti_run_info *info = r->info;
    const char *kind = json_string_value(json_object_get(ev, "event"));
    const char *level = json_string_value(json_object_get(ev, "level"));
    const json_t *time = json_object_get(ev, "time");
    if (kind == NULL)
        return;
    if (json_is_number(time))
        info->time = json_number_value(time);
    if (strcmp(kind, "begin") == 0) {
        r->before = info->state;
        info->state = TTI_RUN_KILLED; // until another event says what it was
        info->why[0] = '\0';
        info->n_starts++;
        r->is_open = true;
        take_steps(info, ev);
    } else if (strcmp(kind, "step") == 0) {
        take_steps(info, ev);
    } else if (strcmp(kind, "epoch") == 0 || strcmp(kind, "validation") == 0) {
        take_steps(info, ev);
        take_best(r, ev);
    } else if (strcmp(kind, "early_stop") == 0) {
        copy_text(ev, "message", info->why, sizeof(info->why));
    } else if (strcmp(kind, "end") == 0) {
        take_steps(info, ev);
        take_end(r, ev);
        r->is_open = false;
    } else if (r->is_open && strcmp(kind, "log") == 0 && level != NULL &&
               strcmp(level, "error") == 0) { // else of a start that was refused, or asked to end
        info->state = TTI_RUN_FAILED;
        copy_text(ev, "text", info->why, sizeof(info->why));
    }
}

// Of the many lines about steps only the last of a row counts: the others need not be read.
static bool is_step(const char *line, size_t n)
{
    static const char word[] = "\"event\": \"step\"";
    return memmem(line, TTI_MIN(n, (size_t)80), word, sizeof(word) - 1) != NULL;
}

static void take_line(reading *r, const char *line, size_t n)
{
    json_t *ev = json_loadb(line, n, 0, NULL);
    if (json_is_object(ev))
        take_event(r, ev);
    json_decref(ev);
}

static void read_events(FILE *f, tti_run_info *out)
{
    char *line[2] = {NULL, NULL}; // the one that is read; the last about a step
    size_t room[2] = {0, 0}, n_step = 0;
    reading r = {.info = out, .before = TTI_RUN_EMPTY};
    for (ssize_t n; (n = getline(&line[0], &room[0], f)) > 0;) {
        if (is_step(line[0], (size_t)n)) {
            char *other = line[0];
            size_t other_room = room[0];
            line[0] = line[1];
            room[0] = room[1];
            line[1] = other;
            room[1] = other_room;
            n_step = (size_t)n;
            continue;
        }
        if (n_step > 0)
            take_line(&r, line[1], n_step);
        n_step = 0;
        take_line(&r, line[0], (size_t)n);
    }
    if (n_step > 0)
        take_line(&r, line[1], n_step);
    free(line[0]); // getline()'s
    free(line[1]);
}

tt_status tti_run_info_read(tt_ctx *ctx, const char *folder, tti_run_info *out)
{
    char path[TTI_PATH_MAX];
    struct stat st;
    TT_TRY(tti_file_join(ctx, path, folder, "events.jsonl"));
    *out = (tti_run_info){.state = TTI_RUN_EMPTY, .best = NAN};
    if (stat(folder, &st) == 0)
        out->time = (double)st.st_mtim.tv_sec;
    FILE *f = tti_file_is_regular(path) ? fopen(path, "re") : NULL;
    if (f != NULL) {
        read_events(f, out);
        fclose(f);
    }
    // A run whose last start has ended is not locked, or its lock is of the next start.
    if ((out->state == TTI_RUN_EMPTY || out->state == TTI_RUN_KILLED) && tti_run_is_locked(folder))
        out->state = TTI_RUN_TRAINING;
    return TT_OK;
}
