/*
 * progress.h - showing a run while it trains, and numbers as people read them.
 */
#ifndef TUTTI_CLI_PROGRESS_H
#define TUTTI_CLI_PROGRESS_H

#include "cli/cli.h"

typedef enum cli_form {
    CLI_PLAIN, // lines
    CLI_LIVE,  // a line that is drawn over
    CLI_JSON,  // the events
    CLI_QUIET,
} cli_form;

typedef struct cli_progress {
    cli_form form;
    void (*on_begin)(void); // called when a fit begins; may be NULL
    bool is_drawn;          // a living line stands in the terminal's last row
    bool has_first;
    bool has_ended;                   // the fit has told how it went
    double first_step, first_seconds; // where the rate of steps is counted from
    double line_seconds, line_step;   // of the line before
    bool validates_alone;             // validations come by themselves, not with epochs
    int64_t shown_ns;
} cli_progress;

void cli_progress_init(cli_progress *p, const cli_args *args, void (*on_begin)(void));
void cli_progress_event(void *user, const tt_event *ev); // a context's on_event; user is it
void cli_progress_clear(cli_progress *p);                // removes the living line

int cli_terminal_width(int fd); // 80 where it is no terminal

void cli_rate_text(double v, char out[32]);       // "41,200"
void cli_time_text(double seconds, char out[32]); // "3 min 20 s"
void cli_step_text(double ms, char out[32]);      // "1.25 ms"

#endif
