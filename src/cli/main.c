/*
 * main.c - the tutti command: finds the verb, reads its flags, runs it.
 */
#include "cli/cli.h"
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

const cli_verb *const cli_verbs[] = {
    &cli_train,         &cli_run,      &cli_resize,      &cli_eval,    &cli_predict,
    &cli_generate_text, &cli_tokenize, &cli_serve_model, &cli_summary, &cli_bench,
    &cli_runs,          &cli_plot,     &cli_trace,       &cli_plan,    &cli_diff,
    &cli_reproduce,     &cli_audit,    &cli_bisect,      &cli_data,    &cli_inspect,
    &cli_convert,       &cli_devices,  &cli_kernels,     &cli_graph,   &cli_serve,
    &cli_ping,          &cli_state,    &cli_env,         &cli_key,     &cli_version,
    &cli_help,          NULL};

const cli_verb *cli_find(const char *name)
{
    for (int i = 0; cli_verbs[i] != NULL; i++)
        if (strcmp(cli_verbs[i]->name, name) == 0)
            return cli_verbs[i];
    return NULL;
}

void cli_write(FILE *to, const char *s, size_t n, bool colours)
{
    char shown[4096 * 4 + 1];
    for (size_t at = 0; at < n;) {
        size_t part = TTI_MIN(n - at, (size_t)4096), tail = 0;
        // A part ends where a character does.
        while (at + part < n && tail < 3 && part > 3 &&
               ((unsigned char)s[at + part] & 0xC0) == 0x80) {
            part--;
            tail++;
        }
        fwrite(shown, 1, tti_escape(shown, sizeof(shown), s + at, part, colours), to);
        at += part;
    }
}

static void say(const char *head, const char *fmt, va_list ap)
{
    char *s = NULL;
    int n = vasprintf(&s, fmt, ap);
    fputs(head, stderr);
    if (n >= 0)
        cli_write(stderr, s, (size_t)n, false);
    free(s);
}

void cli_tell(const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    say("tutti: ", fmt, ap);
    va_end(ap);
}

int cli_usage(const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    say("tutti: usage: ", fmt, ap);
    va_end(ap);
    fputs("\n", stderr);
    return CLI_USAGE;
}

int cli_error(const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    say("tutti: error: ", fmt, ap);
    va_end(ap);
    fputs("\n", stderr);
    return CLI_FAILED;
}

void cli_print(const char *s)
{
    if (s != NULL)
        cli_write(stdout, s, strlen(s), false);
}

void cli_printf(const char *fmt, ...)
{
    char *s = NULL;
    va_list ap;
    va_start(ap, fmt);
    if (vasprintf(&s, fmt, ap) >= 0)
        cli_print(s);
    va_end(ap);
    free(s);
}

bool cli_print_text(tti_text *t)
{
    char *s = tti_text_take(t);
    cli_print(s);
    tti_free(t->ctx, s);
    return s != NULL;
}

bool cli_is_stdout(const char *file)
{
    struct stat a, b;
    return stat(file, &a) == 0 && fstat(STDOUT_FILENO, &b) == 0 && a.st_dev == b.st_dev &&
           a.st_ino == b.st_ino;
}

void cli_wrote(const cli_args *args, const char *file, const char *what, const char *whom)
{
    if (!args->quiet && !args->json && !cli_is_stdout(file))
        cli_printf("%s: the %s of %s\n", file, what, whom);
}

static const char *const levels[] = {"default", "error", "warn", "info", "debug", "trace", NULL};

static int level_of(const char *word)
{
    for (int i = 1; word != NULL && levels[i] != NULL; i++)
        if (strcmp(word, levels[i]) == 0)
            return i;
    return 0;
}

tt_level cli_level(const cli_args *args)
{
    return (tt_level)level_of(args->level);
}

void cli_log_line(const tt_event *ev)
{
    fprintf(stderr, "tutti: %s: %s\n", levels[ev->level], ev->text);
}

// Errors are told once, by cli_close().
static void on_event(void *user, const tt_event *ev)
{
    (void)user;
    if (strcmp(ev->kind, "log") == 0 && ev->level != TT_ERROR)
        cli_log_line(ev);
}

int cli_code(tt_status st)
{
    switch (st) {
    case TT_OK:
        return CLI_OK;
    case TT_EINVAL:
    case TT_ESHAPE:
    case TT_EDTYPE:
    case TT_EPARSE:
    case TT_EUNSUPPORTED:
    case TT_ELIMIT:
        return CLI_BAD_JOB;
    case TT_ENAN:
        return CLI_NAN;
    case TT_EPEER:
    case TT_ETIMEOUT:
        return CLI_LOST;
    default:
        return CLI_FAILED;
    }
}

static tt_status opened; // how the last cli_open() went

int cli_open_code(const cli_args *args, const tt_ctx *ctx)
{
    tt_status st = ctx != NULL ? tt_status_of(ctx) : opened;
    bool is_given = args->devices != NULL || args->isa != NULL;
    bool is_wrong = st != TT_ENOMEM && st != TT_EIO && st != TT_EPEER && st != TT_ETIMEOUT;
    return is_given && is_wrong ? CLI_USAGE : ctx != NULL ? cli_code(st) : CLI_FAILED;
}

tt_ctx *cli_open(const cli_args *args, const char *devices)
{
    tt_ctx *ctx =
        tt_open(.devices = args->devices != NULL ? args->devices : devices, .isa = args->isa,
                .strategy = args->strategy, .threads = (int)args->threads,
                .lanes = (int)args->lanes, .level = cli_level(args), .on_event = on_event);
    opened = ctx == NULL ? TT_ENOMEM : tt_status_of(ctx);
    if (ctx == NULL)
        fputs("tutti: error: out of memory\n", stderr);
    else if (tt_status_of(ctx) != TT_OK) {
        cli_close(ctx, NULL);
        ctx = NULL;
    }
    return ctx;
}

int cli_close(tt_ctx *ctx, const char *what)
{
    tt_error e = tt_last_error(ctx);
    bool told = e.status != TT_OK;
    if (told)
        fprintf(stderr, "tutti: error: %s%s%s\n", what != NULL ? what : "",
                what != NULL ? ": " : "", e.message);
    tt_status st = tt_close(ctx);
    if (told || st == TT_OK)
        return told ? CLI_FAILED : CLI_OK;
    fprintf(stderr, "tutti: error: %s\n", tt_status_text(st));
    return cli_code(st);
}

static int unknown_verb(const char *word)
{
    const char *names[32];
    int n = 0;
    for (; cli_verbs[n] != NULL; n++)
        names[n] = cli_verbs[n]->name;
    names[n] = NULL;
    const char *near = tti_nearest(word, names);
    if (near != NULL)
        return cli_usage("unknown command '%s'; did you mean '%s'?", word, near);
    return cli_usage("unknown command '%s'; tutti help lists the commands", word);
}

static int run(int argc, char **argv)
{
    cli_args args;
    const char *word = argc > 1 ? argv[1] : NULL;
    if (word == NULL) {
        args = (cli_args){0};
        return cli_help.run(&args) == CLI_OK ? CLI_USAGE : CLI_FAILED;
    }
    if (strcmp(word, "--help") == 0 || strcmp(word, "-h") == 0)
        word = "help";
    if (strcmp(word, "--version") == 0)
        word = "version";
    const cli_verb *verb = cli_find(word);
    if (verb == NULL)
        return unknown_verb(word);
    int rc = cli_parse(verb, argc - 2, argv + 2, &args);
    if (rc != CLI_OK)
        return rc;
    if (args.level != NULL && level_of(args.level) == 0)
        return cli_usage("--level: '%s' is not one of error, warn, info, debug, trace", args.level);
    if (args.help) {
        args = (cli_args){.words = {verb->name}, .n_words = 1};
        verb = &cli_help;
    }
    args.verb = verb;
    rc = verb->alone ? cli_alone(&args) : CLI_OK;
    return rc == CLI_OK ? verb->run(&args) : rc;
}

/*
 * A caller may have closed standard files (<&-). The next files and pipes would get their numbers,
 * and with them what is printed or what a child is to inherit. Writing to standard output still
 * fails, and is reported.
 */
static bool open_standard_files(void)
{
    for (int fd = 0; fd < 3; fd++)
        if (fcntl(fd, F_GETFD) < 0 && errno == EBADF &&
            open("/dev/null", fd == STDERR_FILENO ? O_WRONLY : O_RDONLY) != fd)
            return false;
    return true;
}

bool cli_is_unread(void)
{
    struct pollfd p = {.fd = STDOUT_FILENO, .events = POLLOUT};
    return poll(&p, 1, 0) == 1 && (p.revents & POLLERR) != 0;
}

int main(int argc, char **argv)
{
    if (!open_standard_files())
        return CLI_FAILED;
    int rc = run(argc, argv);
    if ((fflush(stdout) != 0 || ferror(stdout)) && !cli_is_unread()) {
        fprintf(stderr, "tutti: error: cannot write to standard output: %s\n", strerror(errno));
        return rc != CLI_OK ? rc : CLI_FAILED;
    }
    return rc;
}
