/*
 * runs.c - finding the folder of a run by what people call it.
 */
#include "cli/cli.h"
#include "record/record.h"
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

bool cli_is_folder(const char *path)
{
    struct stat st;
    return stat(path, &st) == 0 && S_ISDIR(st.st_mode);
}

// A folder; else one of that name in the runs' root; else the newest run of the job of that name.
tt_status cli_run_find(tt_ctx *ctx, const cli_args *args, const char *word, char path[TTI_RUN_PATH])
{
    size_t n = strlen(word);
    while (n > 1 && word[n - 1] == '/')
        n--;
    if (snprintf(path, TTI_RUN_PATH, "%.*s", (int)n, word) < TTI_RUN_PATH && cli_is_folder(path))
        return TT_OK;
    const char *root = args->runs != NULL ? args->runs : "runs";
    if (strchr(word, '/') == NULL) {
        int length = snprintf(path, TTI_RUN_PATH, "%s/%s", root, word);
        if (length < TTI_RUN_PATH && cli_is_folder(path))
            return TT_OK;
        TT_TRY(tti_run_folder_newest(ctx, root, word, path));
        if (*path != '\0')
            return TT_OK;
    }
    return TT_FAIL(ctx, TT_EIO, "there is no run '%s' here or in '%s'", word, root);
}

// Looks only: the run may be saving at this moment.
tt_status cli_newest_checkpoint(tt_ctx *ctx, const char *run, char path[TTI_RUN_PATH + 64])
{
    char folder[TTI_RUN_PATH + 16];
    long long newest = -1;
    snprintf(folder, sizeof(folder), "%s/checkpoints", run);
    DIR *d = opendir(folder);
    for (struct dirent *e; d != NULL && (e = readdir(d)) != NULL;) {
        char *end = e->d_name + 5;
        long long step =
            strncmp(e->d_name, "step-", 5) == 0 ? strtoll(e->d_name + 5, &end, 10) : -1;
        if (*end == '\0' && end > e->d_name + 5 && step > newest)
            newest = step;
    }
    if (d != NULL)
        closedir(d);
    if (newest < 0)
        return TT_FAIL(ctx, TT_EIO, "'%s' has no checkpoint yet", folder);
    snprintf(path, TTI_RUN_PATH + 64, "%s/step-%lld", folder, newest);
    return TT_OK;
}
