/*
 * board.h - what tutti train writes for TensorBoard besides losses and metrics: histograms of the
 * weights, the first images of the training data, and the confusion matrix of each validation.
 */
#ifndef TUTTI_CLI_BOARD_H
#define TUTTI_CLI_BOARD_H

#include "cli/job.h"

typedef struct cli_board {
    tti_recorder *recorder; // NULL in processes that do not record
    bool histograms;
    int images;
    tt_callback epoch, validation;
} cli_board;

// By the job's keys output.histograms and output.images: adds callbacks to those of a fit. All
// processes of a job call it; a board stays in place until the fit is over.
tt_status cli_board_begin(cli_board *b, cli_job *j, tti_recorder *recorder, tt_fit_opts *o,
                          int *n) TTI_CHECKED;

#endif
