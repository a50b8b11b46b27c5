/*
 * replay.h - a run, or some of its steps, done again: another process trains the job that the run's
 * chain names in a folder of its own, from a checkpoint of the run or from step 0, and the two
 * chains are compared.
 */
#ifndef TUTTI_CLI_REPLAY_H
#define TUTTI_CLI_REPLAY_H

#include "cli/cli.h"
#include "record/chain.h"

// A run that is looked at, with its chain.
typedef struct cli_past {
    tt_ctx *ctx;
    const cli_args *args;
    char run[TTI_RUN_PATH];
    tti_links links;
    const tti_link *start; // the last one: which job, which data
    int64_t first;         // the index in links of the start at step 0 that the run goes back to
    bool is_program;       // of a program with tt_record(), which no job describes
    char devices[512], strategy[64]; // where the run's job says it runs; "": not known
} cli_past;

// Finds the run of the command line's first word and reads its chain; key: see tti_links_read().
tt_status cli_past_open(cli_past *p, tt_ctx *ctx, const cli_args *args,
                        const uint8_t *key) TTI_CHECKED;
void cli_past_close(cli_past *p);
// The hash of the weights after a step, from any line that has it; NULL: none has.
const char *cli_past_weights(const cli_past *p, int64_t step);
int64_t cli_past_last(const cli_past *p); // the last step with a hash

typedef struct cli_replay {
    const char *folder; // is made
    int64_t from;       // the step of the checkpoint to go on from; 0: from the beginning
    int64_t until;      // the last step; at least 1
    const char *chain;  // for --chain
    const char *hashes; // for --hashes; NULL: none
    bool as_recorded;   // on the run's own devices, whatever the flags say
} cli_replay;

/*
 * Does it, on the devices of the flags, or else of the run. Where the run was resumed with another
 * job, so is this. Fails with what the other process said if that could not train.
 */
tt_status cli_replay_run(const cli_past *p, const cli_replay *r) TTI_CHECKED;

// The steps that two chains have in common, as far as they are compared.
typedef struct cli_chain_diff {
    int64_t n;          // hashes that were compared
    int64_t last_equal; // the last step before the first difference; -1: none
    int64_t first;      // the first step whose hashes differ; -1: none does
    char recorded[33], repeated[33];
} cli_chain_diff;
tt_status cli_chain_compare(const cli_past *p, const char *folder, int64_t from, int64_t until,
                            cli_chain_diff *out) TTI_CHECKED;
// Whether a run has a checkpoint of that step that is as the chain says; "" in why then.
tt_status cli_checkpoint_check(const cli_past *p, const tti_link *link, char why[256]) TTI_CHECKED;
// The last step up to at whose checkpoint is there and as the chain says; 0: none.
tt_status cli_checkpoint_before(const cli_past *p, int64_t at, int64_t *step) TTI_CHECKED;

#endif
