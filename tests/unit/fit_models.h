/*
 * fit_models.h - three small models and their data, for tests of training: an MLP, a CNN and a GPT.
 * Sums in them have more than 500 terms and row counts that are no power of two, so that a wrong
 * order of additions shows.
 */
#ifndef TUTTI_TEST_FIT_MODELS_H
#define TUTTI_TEST_FIT_MODELS_H

#include "test.h"

typedef enum fit_kind {
    FIT_MLP = 0,
    FIT_CNN = 1,
    FIT_GPT = 2,
} fit_kind;
#define FIT_N_KINDS 3
const char *fit_name(fit_kind kind);

// A compiled model in ctx; NULL if the context has an error.
tt_model *fit_model(tt_ctx *ctx, fit_kind kind);
tt_model *fit_model_in(tt_ctx *ctx, fit_kind kind, tt_precision precision);
// Its data: so many records, always the same.
tt_data *fit_data(tt_ctx *ctx, fit_kind kind, int64_t count);

// The smallest: one dense unit of two inputs, and eight records for it in batches of four.
tt_model *fit_line(tt_ctx *ctx);
tt_data *fit_points(tt_ctx *ctx);

#endif
