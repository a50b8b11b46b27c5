/*
 * progress.h - showing a run while it trains.
 */
#ifndef TUTTI_CLI_PROGRESS_H
#define TUTTI_CLI_PROGRESS_H

#include "cli/cli.h"
#include "record/progress.h"

typedef enum cli_form {
    CLI_LINES, // as record/progress.h writes them
    CLI_JSON,  // the events
    CLI_QUIET,
} cli_form;

typedef struct cli_progress {
    cli_form form;
    void (*on_begin)(void); // called when a fit begins; may be NULL
    bool has_ended;         // the fit has told how it went
    bool has_steps;         // it has told of a step
    tti_progress lines;
} cli_progress;

void cli_progress_init(cli_progress *p, const cli_args *args, void (*on_begin)(void));
void cli_progress_event(void *user, const tt_event *ev); // a context's on_event; user is it
void cli_progress_clear(cli_progress *p);                // removes the line that is redrawn

// The numbers of reports look like those of progress.
#define cli_terminal_width tti_terminal_width
#define cli_value_text     tti_value_text
#define cli_rate_text      tti_rate_text
#define cli_time_text      tti_time_text
#define cli_step_text      tti_step_text

#endif
