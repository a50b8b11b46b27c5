/*
 * signals.c - Ctrl-C and SIGTERM while training. The library takes no signals: the handlers only
 * set what it looks at between steps.
 *
 * Before the first step nothing is worth saving: Ctrl-C ends the process, SIGTERM is remembered
 * until the fit begins; where processes wait for each other, both end that. While the fit runs,
 * both let it finish the step and save; a second Ctrl-C stops it inside the step. Afterwards
 * everything is saved, and both end the process.
 */
#include "cli/signals.h"
#include <signal.h>
#include <string.h>
#include <unistd.h>

static tt_ctx *volatile fitting; // NULL before and after the fit
static tt_ctx *volatile joining; // not NULL while processes wait for each other
static volatile sig_atomic_t is_over, interrupts, terms, ends_joining;

static void end_joining(void)
{
    ends_joining = 1;
    tt_request_stop(joining);
}

static void tell(const char *s)
{
    if (write(STDERR_FILENO, s, strlen(s)) < 0)
        return; // nobody listens
}

static void on_interrupt(int number)
{
    (void)number;
    tt_ctx *ctx = fitting;
    interrupts++;
    if (ctx == NULL && joining != NULL && interrupts == 1) {
        end_joining();
        return;
    }
    if (ctx == NULL || interrupts > 2)
        _exit(CLI_BREAK);
    if (interrupts == 2) {
        tt_request_stop(ctx);
        return;
    }
    tt_request_end(ctx);
    tell("\ntutti: saving after this step; press Ctrl-C again to stop immediately\n");
}

static void on_term(int number)
{
    (void)number;
    tt_ctx *ctx = fitting;
    terms = 1;
    if (is_over)
        _exit(CLI_AGAIN);
    if (ctx != NULL)
        tt_request_end(ctx);
    else if (joining != NULL)
        end_joining();
}

// Not where the caller has it ignored, as nohup does.
static void take(int number, void (*handler)(int))
{
    struct sigaction old, new = {.sa_handler = handler, .sa_flags = SA_RESTART};
    sigemptyset(&new.sa_mask);
    if (sigaction(number, NULL, &old) == 0 && old.sa_handler != SIG_IGN)
        sigaction(number, &new, NULL);
}

void cli_signals_take(void)
{
    take(SIGINT, on_interrupt);
    take(SIGTERM, on_term);
    take(SIGHUP, on_term);
    signal(SIGPIPE, SIG_IGN); // output that nobody reads any more ends no training
}

const volatile int *cli_signals_join(tt_ctx *reader)
{
    joining = reader;
    if (reader != NULL && terms)
        end_joining();
    return &ends_joining;
}

void cli_signals_fit(tt_ctx *ctx)
{
    fitting = ctx;
    if (terms)
        tt_request_end(ctx);
}

void cli_signals_over(void)
{
    is_over = 1;
    fitting = NULL;
}

void cli_signals_again(void)
{
    is_over = 0;
}

int cli_signals_code(void)
{
    return interrupts > 0 ? CLI_BREAK : terms ? CLI_AGAIN : CLI_OK;
}
