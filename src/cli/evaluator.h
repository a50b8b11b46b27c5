/*
 * evaluator.h - a task that does not train but evaluates: TF_CONFIG's "evaluator".
 */
#ifndef TUTTI_CLI_EVALUATOR_H
#define TUTTI_CLI_EVALUATOR_H

#include "cli/job.h"

/*
 * Evaluates the checkpoints of the job's run as they come, until the run has ended; gives an exit
 * code. The job is built, in this process alone.
 */
int cli_evaluator(cli_job *j, const cli_args *args);

#endif
