/*
 * trial.h - whether a job's spread over devices is faster than one device: measured once in a run.
 */
#ifndef TUTTI_CLI_TRIAL_H
#define TUTTI_CLI_TRIAL_H

#include "cli/cli.h"

typedef struct cli_trial {
    tt_job *job;
    int64_t opened_ns;  // how long it took to build the job
    int64_t compute_ns; // of the fit, when the last window began
    double spread_ms;   // a step as the job says; the quickest window
    double one_ms;      // on one device with all cores; 0: not measured
    int windows;
    bool is_over;
} cli_trial;

#define CLI_TRIAL_EVERY 8 // steps of a window

// A callback for each CLI_TRIAL_EVERY steps of a fit; user is the trial.
tt_status cli_trial_look(void *user, tt_model *m, const tt_progress *p);

#endif
