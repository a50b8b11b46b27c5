/*
 * signals.h - Ctrl-C and SIGTERM while training.
 */
#ifndef TUTTI_CLI_SIGNALS_H
#define TUTTI_CLI_SIGNALS_H

#include "cli/cli.h"

void cli_signals_take(void);
// While a job's processes wait for each other, both end that: waits of reader, and those of what
// looks at the flag that this gives. NULL: they wait no longer.
const volatile int *cli_signals_join(tt_ctx *reader);
void cli_signals_fit(tt_ctx *ctx); // a fit of this context begins
void cli_signals_over(void);       // it has ended, and everything is saved
void cli_signals_again(void);      // it has not: another one follows
int cli_signals_code(void);        // CLI_AGAIN or CLI_BREAK if one came; else CLI_OK

#endif
