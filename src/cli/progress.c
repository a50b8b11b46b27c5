/*
 * progress.c - what the command shows while it trains: lines of progress, or with --json the events
 * themselves; log lines between them.
 */
#include "cli/progress.h"
#include <stdio.h>
#include <string.h>

void cli_progress_clear(cli_progress *p)
{
    tti_progress_clear(&p->lines);
}

void cli_progress_event(void *user, const tt_event *ev)
{
    cli_progress *p = user;
    if (p->on_begin != NULL && strcmp(ev->kind, "begin") == 0)
        p->on_begin();
    p->has_ended |= strcmp(ev->kind, "end") == 0;
    p->has_steps |= strcmp(ev->kind, "step") == 0;
    if (strcmp(ev->kind, "log") == 0) {
        if (ev->level == TT_ERROR)
            return; // told once, when the context is closed
        cli_progress_clear(p);
        cli_log_line(ev);
    } else if (ev->n_pairs == 0 || p->form == CLI_QUIET || strcmp(ev->kind, "hash") == 0) {
        return;
    } else if (p->form == CLI_JSON) {
        if (strcmp(ev->kind, "record") == 0)
            return; // of the folder
        printf("%s\n", ev->text);
        fflush(stdout);
    } else {
        tti_progress_event(&p->lines, ev);
    }
}

void cli_progress_init(cli_progress *p, const cli_args *args, void (*on_begin)(void))
{
    *p = (cli_progress){.form = CLI_LINES, .on_begin = on_begin};
    tti_progress_init(&p->lines, stdout);
    if (args->quiet)
        p->form = CLI_QUIET;
    else if (args->json)
        p->form = CLI_JSON;
}
