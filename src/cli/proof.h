/*
 * proof.h - what makes a run repeatable: the record of where and with what it ran, as the event
 * "record", and the chain of hashes that is bound to its job and data (record/chain.h).
 */
#ifndef TUTTI_CLI_PROOF_H
#define TUTTI_CLI_PROOF_H

#include "cli/job.h"
#include "record/chain.h"

typedef struct cli_proof {
    int64_t *steps; // those of another run's chain; NULL: none
} cli_proof;

// All ranks call it before a fit; recorder is that of the first, NULL in the others.
tt_status cli_proof_begin(cli_proof *p, cli_job *j, const cli_args *args, tti_recorder *recorder,
                          const char *folder) TTI_CHECKED;
void cli_proof_end(cli_proof *p, tt_ctx *ctx);

// Keys of the section distribute on which the bits depend.
#define CLI_N_BIT_KEYS 3
extern const char *const cli_bit_keys[CLI_N_BIT_KEYS];

// The key that the file --key names; false in *has without one.
tt_status cli_key_read(tt_ctx *ctx, const cli_args *args, uint8_t out[TTI_CHAIN_KEY],
                       bool *has) TTI_CHECKED;
// Members of a JSON object: version, arithmetic, job and data as they are now. Free with
// tti_free(); NULL: recorded.
char *cli_about(cli_job *j);

// run_record.c: the event "record": versions, git state, data, environment, hardware.
tt_status cli_record_tell(cli_job *j) TTI_CHECKED;

#endif
