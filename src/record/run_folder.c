/*
 * run_folder.c - names and numbers of run folders (record.h).
 */
#include "base/file.h"
#include "record/record.h"
#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#define NAME_MAX_BYTES \
    240 // of a job's name: a number and what programs add still fit a file's name

// Letters of any script; of ASCII those that no shell or program minds. C1 controls are not.
static bool is_plain(const char *c, int n)
{
    if (n > 1)
        return n > 2 || (unsigned char)c[0] != 0xC2 || (unsigned char)c[1] >= 0xA0;
    return (*c >= 'a' && *c <= 'z') || (*c >= 'A' && *c <= 'Z') || (*c >= '0' && *c <= '9') ||
           *c == '.' || *c == '_' || *c == '-';
}

static tt_status file_name(tt_ctx *ctx, const char *name, char out[NAME_MAX_BYTES + 1])
{
    char *to = out;
    if (*name == '\0')
        name = "run";
    if (strlen(name) > NAME_MAX_BYTES)
        return TT_FAIL(ctx, TT_EINVAL,
                       "the job's name '%.40s...' has %zu bytes; at most %d fit into the name of a "
                       "run folder: give the job a shorter name, or the run a folder with --run",
                       name, strlen(name), NAME_MAX_BYTES);
    for (int n; *name != '\0'; name += n) {
        n = TTI_MAX(tti_utf8_length(name, strlen(name)), 1);
        bool plain = (n > 1 || (unsigned char)*name < 0x80) && is_plain(name, n) &&
                     !(to == out && *name == '.');
        if (plain)
            memcpy(to, name, (size_t)n);
        else
            *to = '-';
        to += plain ? n : 1;
    }
    *to = '\0';
    return TT_OK;
}

// The number of "<name>-<nnn>"; 0 if entry is none.
static int number_of(const char *entry, const char *name)
{
    size_t n = strlen(name);
    if (strncmp(entry, name, n) != 0 || entry[n] != '-')
        return 0;
    const char *digits = entry + n + 1;
    size_t count = strspn(digits, "0123456789");
    if (count < 3 || count > 9 || digits[count] != '\0')
        return 0;
    int number = 0;
    for (size_t i = 0; i < count; i++)
        number = number * 10 + digits[i] - '0';
    return number;
}

// The highest number there is, below another one if that is not 0; 0 if there is none.
static int highest(const char *root, const char *name, int below)
{
    int most = 0;
    DIR *d = opendir(root);
    if (d == NULL)
        return 0;
    for (struct dirent *e; (e = readdir(d)) != NULL;) {
        int number = number_of(e->d_name, name);
        if (below == 0 || number < below)
            most = TTI_MAX(most, number);
    }
    closedir(d);
    return most;
}

static tt_status numbered(tt_ctx *ctx, const char *root, const char *name, int number, char *path)
{
    int n = snprintf(path, TTI_RUN_PATH, "%s/%s-%03d", root, name, number);
    if (n >= TTI_RUN_PATH)
        return TT_FAIL(
            ctx, TT_EINVAL,
            "run folder '%.200s.../%s-%03d': the path has %d bytes; at most %d are allowed", root,
            name, number, n, TTI_RUN_PATH - 1);
    return TT_OK;
}

tt_status tti_run_name_check(tt_ctx *ctx, const char *name)
{
    char file[NAME_MAX_BYTES + 1];
    return file_name(ctx, name, file);
}

tt_status tti_run_folder_new(tt_ctx *ctx, const char *root, const char *name,
                             char path[TTI_RUN_PATH])
{
    char file[NAME_MAX_BYTES + 1];
    TT_TRY(file_name(ctx, name, file));
    TT_TRY(numbered(ctx, root, file, 1, path)); // before anything is made
    TT_TRY(tti_folder_make(ctx, root));
    for (int number = highest(root, file, 0) + 1;; number++) {
        TT_TRY(numbered(ctx, root, file, number, path));
        if (mkdir(path, 0777) == 0)
            return TT_OK;
        if (errno != EEXIST) // someone else may have made it in between
            return TT_FAIL(ctx, TT_EIO, "cannot make run folder '%s': %s", path, strerror(errno));
    }
}

tt_status tti_run_folder_below(tt_ctx *ctx, const char *root, const char *name, int *number,
                               char path[TTI_RUN_PATH])
{
    char file[NAME_MAX_BYTES + 1];
    TT_TRY(file_name(ctx, name, file));
    *number = highest(root, file, *number);
    *path = '\0';
    return *number > 0 ? numbered(ctx, root, file, *number, path) : TT_OK;
}

tt_status tti_run_folder_newest(tt_ctx *ctx, const char *root, const char *name,
                                char path[TTI_RUN_PATH])
{
    int number = 0;
    return tti_run_folder_below(ctx, root, name, &number, path);
}
