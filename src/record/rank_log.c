/*
 * rank_log.c - the log of one process of a job with several, in the run's folder.
 */
#include "base/ctx.h"
#include "base/file.h"
#include "record/record.h"
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

struct tti_rank_log {
    tti_observer observer;
    int fd;
};

// One write a line: whoever reads along sees whole ones.
static void put(tti_rank_log *l, const char *kind, const char *text)
{
    char line[TTI_MESSAGE_MAX + 128], when[32];
    struct timespec now;
    struct tm tm;
    clock_gettime(CLOCK_REALTIME, &now);
    gmtime_r(&now.tv_sec, &tm);
    strftime(when, sizeof(when), "%Y-%m-%dT%H:%M:%S", &tm);
    int n = snprintf(line, sizeof(line), "%s.%03dZ %s %s", when, (int)(now.tv_nsec / 1000000), kind,
                     text);
    n = TTI_MIN(n, (int)sizeof(line) - 1);
    line[n] = '\n';
    if (write(l->fd, line, (size_t)n + 1) < 0)
        return; // a full disk ends no training
}

static void on_event(void *user, const tt_event *ev)
{
    static const char *const levels[] = {"log", "error", "warn", "info", "debug", "trace"};
    bool is_log = strcmp(ev->kind, "log") == 0;
    if (strcmp(ev->kind, "step") == 0 || strcmp(ev->kind, "hash") == 0)
        return;
    put(user, is_log ? levels[TTI_MIN((unsigned)ev->level, 5u)] : ev->kind,
        ev->text != NULL ? ev->text : "");
}

tt_status tti_rank_log_open(tt_ctx *ctx, const char *folder, int rank, tti_rank_log **out)
{
    char logs[TTI_PATH_MAX], name[32], path[TTI_PATH_MAX], first[128];
    TT_TRY(tti_file_join(ctx, logs, folder, "logs"));
    TT_TRY(tti_folder_make(ctx, logs));
    snprintf(name, sizeof(name), "rank-%d.log", rank);
    TT_TRY(tti_file_join(ctx, path, logs, name));
    tti_rank_log *l = calloc(1, sizeof(*l)); // not the context's memory: that is counted
    if (l == NULL)
        return TT_FAIL(ctx, TT_ENOMEM, "log: out of memory");
    l->fd = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC | O_NONBLOCK, 0666);
    if (l->fd < 0) {
        free(l);
        return TT_FAIL(ctx, TT_EIO, "cannot write '%s': %s", path, strerror(errno));
    }
    snprintf(first, sizeof(first), "rank %d, process %d, version %s", rank, getpid(), TT_VERSION);
    put(l, "open", first);
    l->observer = (tti_observer){.fn = on_event, .user = l};
    tti_observe(ctx, &l->observer);
    *out = l;
    return TT_OK;
}

void tti_rank_log_close(tti_rank_log *l)
{
    if (l == NULL)
        return;
    put(l, "close", "");
    close(l->fd);
    free(l);
}
