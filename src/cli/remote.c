/*
 * remote.c - the words that start a process of tutti run on another host, by ssh.
 */
#include "cli/engine.h"
#include "cli/launch.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SSH "ssh -T -o BatchMode=yes"

// For the shell of the host: nothing in it has a meaning.
static void put_quoted(tti_text *t, const char *word_)
{
    tti_text_add(t, " '");
    for (; *word_ != '\0'; word_++)
        tti_text_put(t, *word_ == '\'' ? "'\\''" : word_, *word_ == '\'' ? 4 : 1);
    tti_text_add(t, "'");
}

// An error that the host's shell tells, with the rank and the host.
static void put_complaint(tti_text *t, int rank, const char *host, const char *what,
                          const char *path, const char *flag)
{
    tti_text line = {.ctx = t->ctx};
    tti_text_add(&line, "tutti: error: rank %d on %s: %s '%s'; %s", rank, host, what, path, flag);
    char *text = tti_text_take(&line);
    tti_text_add(t, " || { echo");
    put_quoted(t, text != NULL ? text : "");
    tti_text_add(t, " >&2; exit 1; }; ");
    tti_free(t->ctx, text);
}

// What the host runs, for sh: in the folder, if it is there, the command, if it is there.
static tt_status make_script(tt_ctx *ctx, const cli_remote *r, cli_process *p, char **out)
{
    tti_text t = {.ctx = ctx};
    tti_text_add(&t, "cd");
    put_quoted(&t, r->dir);
    tti_text_add(&t, " 2>/dev/null");
    put_complaint(&t, r->rank, r->host, "cannot enter the folder", r->dir,
                  "--dir gives the working directory on the hosts");
    tti_text_add(&t, "command -v");
    put_quoted(&t, r->command);
    tti_text_add(&t, " >/dev/null");
    put_complaint(&t, r->rank, r->host, "cannot find the command", r->command,
                  "--command gives the path of tutti on the hosts");
    tti_text_add(&t, "exec env");
    for (char **v = p->sets; *v != NULL; v++)
        put_quoted(&t, *v);
    put_quoted(&t, r->command);
    for (int i = 0; i < r->n_words; i++)
        put_quoted(&t, r->words[i]);
    *out = tti_text_take(&t);
    return *out != NULL ? TT_OK : TT_ENOMEM;
}

tt_status cli_remote_words(tt_ctx *ctx, const cli_remote *r, cli_process *p)
{
    char *rest = NULL, *script = NULL;
    char *ssh = strdup(r->ssh != NULL ? r->ssh : SSH);
    tti_text t = {.ctx = ctx};
    int n = 0;
    if (ssh == NULL)
        return TT_FAIL(ctx, TT_ENOMEM, "out of memory");
    for (char *w = strtok_r(ssh, " ", &rest); w != NULL; w = strtok_r(NULL, " ", &rest)) {
        if (n == CLI_LAUNCH_WORDS - 2) {
            free(ssh);
            return TT_FAIL(ctx, TT_EINVAL, "--ssh has more than %d words", CLI_LAUNCH_WORDS - 2);
        }
        p->words[n++] = strdup(w);
    }
    free(ssh);
    size_t length = strlen(r->host); // ssh takes IPv6 without its brackets
    bool bracket = r->host[0] == '[';
    p->words[n++] = strndup(r->host + bracket, length - 2 * bracket);
    TT_TRY(make_script(ctx, r, p, &script));
    tti_text_add(&t, "exec sh -c");
    put_quoted(&t, script);
    tti_free(ctx, script);
    char *line = tti_text_take(&t);
    p->words[n] = line != NULL ? strdup(line) : NULL;
    tti_free(ctx, line);
    return TT_OK;
}
