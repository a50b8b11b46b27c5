/*
 * run_record.c - the record of a start (record/origin.c), with the git state of the job's folder.
 */
#include "cli/child.h"
#include "cli/proof.h"
#include "job/job.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define GIT_MS 2000

typedef struct git {
    char commit[64], changed[8];
} git;

// ---- git -------------------------------------------------------------------------------------

static bool in_git(const char *folder)
{
    char path[TTI_PATH_MAX], *full = realpath(folder, NULL);
    bool found = false;
    while (full != NULL && !found) {
        char *slash = strrchr(full, '/');
        found = tti_file_join(NULL, path, full, ".git") == TT_OK && access(path, F_OK) == 0;
        if (slash == NULL || slash == full)
            break;
        *slash = '\0';
    }
    free(full); // realpath()'s
    return found;
}

// One call says both: "# branch.oid <commit>", and a line for each file that was changed.
static void git_state(const char *folder, git *f)
{
    const char *const words[] = {
        "git", "-C", folder, "status", "--porcelain=v2", "--branch", "--untracked-files=no", NULL};
    static const char oid[] = "# branch.oid ";
    tti_text t = {0};
    if (!in_git(folder) ||
        cli_child_run(&(cli_child){.words = words, .out = &t, .timeout_ms = GIT_MS}) != 0) {
        tti_text_free(&t);
        return;
    }
    char *text = tti_text_take(&t);
    snprintf(f->changed, sizeof(f->changed), "no");
    for (char *line = text; line != NULL && *line != '\0';) {
        char *end = strchrnul(line, '\n');
        if (strncmp(line, oid, sizeof(oid) - 1) == 0)
            snprintf(f->commit, sizeof(f->commit), "%.*s",
                     (int)TTI_MIN(end - line - (ptrdiff_t)sizeof(oid) + 1, (ptrdiff_t)60),
                     line + sizeof(oid) - 1);
        else if (line[0] != '#')
            snprintf(f->changed, sizeof(f->changed), "yes");
        line = *end != '\0' ? end + 1 : end;
    }
    tti_free(NULL, text);
}

tt_status cli_record_tell(cli_job *j)
{
    git g = {0};
    char folder[TTI_PATH_MAX], name[256];
    if (tti_file_split(NULL, j->file, folder, name) == TT_OK)
        git_state(folder, &g);
    return tti_run_origin_tell(j->ctx, &(tti_run_origin){.commit = g.commit,
                                                         .changed = g.changed,
                                                         .train = j->parts.train,
                                                         .validate = j->parts.validate,
                                                         .test = j->parts.test});
}
