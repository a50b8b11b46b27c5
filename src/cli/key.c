/*
 * key.c - tutti key: secrets of jobs over several machines.
 */
#include "cli/cli.h"
#include "cluster/cluster.h"
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static int write_key(const char *path, const char *text)
{
    char line[TTI_SECRET_TEXT + 1];
    int n = snprintf(line, sizeof(line), "%s\n", text);
    int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    if (fd < 0)
        return cli_error("cannot make '%s': %s", path, strerror(errno));
    bool ok = write(fd, line, (size_t)n) == n;
    int error = errno;
    ok = close(fd) == 0 && ok;
    explicit_bzero(line, sizeof(line));
    if (ok)
        return CLI_OK;
    (void)unlink(path);
    return cli_error("cannot write '%s': %s", path, strerror(error));
}

static int run(const cli_args *args)
{
    unsigned char secret[TT_SECRET_BYTES];
    char text[TTI_SECRET_TEXT];
    if (strcmp(args->words[0], "new") != 0)
        return cli_usage("tutti key: unknown argument '%s'; tutti key new makes a secret",
                         args->words[0]);
    tt_ctx *ctx = cli_open(args, "cpu:0");
    if (ctx == NULL)
        return CLI_FAILED;
    int rc = CLI_FAILED;
    if (tt_secret_new(ctx, secret) == TT_OK) {
        tti_secret_print(secret, text);
        rc = args->n_words > 1 ? write_key(args->words[1], text) : CLI_OK;
        if (args->n_words == 1)
            printf("%s\n", text);
    }
    explicit_bzero(secret, sizeof(secret));
    explicit_bzero(text, sizeof(text));
    int closed = cli_close(ctx, NULL);
    return rc != CLI_OK ? rc : closed;
}

const cli_verb cli_key = {
    .name = "key",
    .words = "new [FILE]",
    .summary = "create the secret for a job on several machines",
    .help =
        "Prints a new secret, or writes it to FILE, readable by its owner only. Copy the file to\n"
        "every machine of the job and set TUTTI_SECRET_FILE=FILE for tutti train. tutti run "
        "creates\n"
        "a secret for each job by itself.\n",
    .min_words = 1,
    .max_words = 2,
    .run = run,
};
