/*
 * elastic.h - a process of a job whose membership changes, as tutti run --workers starts it. The
 * launcher says by lines on standard input who the members are; this process answers by lines on
 * standard error that begin with CLI_ELASTIC_MARK, which the launcher takes out.
 *
 *   ready AGE PORT LOST SILENT   this process is in no membership: how far its state is
 *                                (tti_elastic_age()), the port it will listen at, the rank that was
 *                                lost (-1: none) and for how many milliseconds nothing was heard
 *   run PATH                     the run's folder
 *   alive                        an answer to ping
 *
 *   epoch E N RANK SOURCE SINCE END RUN WHY ADDRESSES
 *                                become that rank of N; fields are behind tabs
 *   change                       end at the next step that all agree upon, and say ready
 *   ping                         say alive: this process is waited for
 *   lost                         a member has ended: do not wait for it while connecting
 *   out TEXT                     the others have gone on without this process: end
 *   leave                        the job needs it no longer: end well
 *   end                          save and end
 */
#ifndef TUTTI_CLI_ELASTIC_H
#define TUTTI_CLI_ELASTIC_H

#include "cli/ranks.h"
#include "train/elastic.h"

#define CLI_ELASTIC_MARK '\x1e'
#define CLI_ELASTIC_ENV  "TUTTI_ELASTIC" // the host by which others reach this process

bool cli_elastic_is_on(void);
// A line from the launcher, without its end; the thread that reads them.
void cli_elastic_order(const char *line);
/*
 * Says ready and waits to become a member; then the environment says who the others are, as where
 * tutti run starts a job of fixed size. Or an exit code with *is_over: this process is not needed,
 * or was asked to end. Errors are in ctx.
 */
int cli_elastic_join(tt_ctx *ctx, bool *is_over);
const volatile int *cli_elastic_stop(void); // ends the opening of a context
void cli_elastic_opened(tt_ctx *ctx);       // the context of this membership is open
void cli_elastic_options(tt_open_opts *o, tt_spread *spread); // of a context of the job
// After a training has ended with that code: is there another one, with other processes?
bool cli_elastic_again(cli_job *j, int rc);
void cli_elastic_close(void);

tti_elastic *cli_elastic_state(void);
const char *cli_elastic_run(void); // folder that the job already has; "": none
/*
 * All ranks: the folder is the job's from here on. The first tells the launcher, and sees to it
 * that older memberships publish nothing in checkpoints any more.
 */
tt_status cli_elastic_folder(tt_ctx *ctx, const char *run, const char *checkpoints);
bool cli_elastic_ends(void); // this membership is only to save and end

#endif
