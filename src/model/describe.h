/*
 * describe.h - the architecture of a model as JSON, and a model of such a text.
 *
 * Layers stand there as they were built: composites as what they are made of, every option with its
 * value. So the model of a file does not depend on defaults, which may change.
 */
#ifndef TUTTI_MODEL_DESCRIBE_H
#define TUTTI_MODEL_DESCRIBE_H

#include "base/option_json.h"
#include "model/model.h"

// "inputs": [...], "layers": [...], "outputs": [...] without braces around it.
void tti_model_describe(tt_model *m, tti_text *t);
// A model of an object with these three; owned by ctx. file is for messages.
tt_status tti_model_of_json(tt_ctx *ctx, const char *file, const json_t *o,
                            tt_model **out) TTI_CHECKED;

#endif
