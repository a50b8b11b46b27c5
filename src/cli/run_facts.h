/*
 * run_facts.h - what is known of a run, as pairs of a key and a value: keys of its job, its last
 * metrics, what became of it, its tags and its note. All of it is read from the run's folder.
 */
#ifndef TUTTI_CLI_RUN_FACTS_H
#define TUTTI_CLI_RUN_FACTS_H

#include "cli/cli.h"
#include "record/run_info.h"

typedef enum cli_fact_kind {
    CLI_FACT_RUN,    // state, step, best, hash, ...
    CLI_FACT_JOB,    // "train.batch"
    CLI_FACT_METRIC, // the last value of "loss", "validation_accuracy"
    CLI_FACT_PLACE,  // where it ran: devices, lanes, processes, version
    CLI_FACT_NOTE,   // tag, note
} cli_fact_kind;

typedef struct cli_fact {
    cli_fact_kind kind;
    char *key, *value;
    double number; // NaN: the value is not a number
} cli_fact;

typedef struct cli_facts {
    tt_ctx *ctx;
    tti_run_info info;
    cli_fact *v;
    int64_t n, cap;
} cli_facts;

// Reads a run's folder; what is damaged in it is left out.
tt_status cli_facts_read(tt_ctx *ctx, const char *folder, cli_facts *out) TTI_CHECKED;
void cli_facts_free(cli_facts *f);
const cli_fact *cli_fact_find(const cli_facts *f, const char *key); // the first; NULL: none

// The values of a metric at the ends of epochs; free with tti_free().
tt_status cli_curve_read(tt_ctx *ctx, const char *folder, const char *name, double **out,
                         int64_t *n) TTI_CHECKED;

// tags.json of a run's folder: adds or removes a tag, or sets the note.
#define CLI_TAGS "tags.json"
tt_status cli_tag_change(tt_ctx *ctx, const char *folder, const char *tag, bool add) TTI_CHECKED;
tt_status cli_note_set(tt_ctx *ctx, const char *folder, const char *note) TTI_CHECKED;

#endif
