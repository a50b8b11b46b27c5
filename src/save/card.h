/*
 * card.h - everything about a model that inference needs besides its weights: architecture, fields
 * and transforms of the data it was trained on, loss and metrics. JSON in the metadata of the
 * weights' safetensors file, so that a checkpoint, and one file, is a whole model.
 */
#ifndef TUTTI_SAVE_CARD_H
#define TUTTI_SAVE_CARD_H

#include "model/model.h"
#include "save/safetensors.h"
#include <jansson.h>

#define TTI_CARD          "tutti.model"    // its key in the metadata
#define TTI_CARD_TRAINING "tutti.training" // of a file: how the training went
#define TTI_CARD_VERSION  1

// The card of a model; free with tti_free(). NULL: recorded.
char *tti_card_print(tt_model *m);

// Reads and checks the outermost part. Freed with json_decref(); file is for messages.
tt_status tti_card_parse(tt_ctx *ctx, const char *file, const char *text, json_t **out) TTI_CHECKED;
// The card in a table's metadata, borrowed; NULL: there is none.
const char *tti_card_find(const tti_safetensors *f);
/*
 * That of the weights at path: a run's folder, a folder of checkpoints, a checkpoint or a file; its
 * table alone is read. file is where the weights are. *out NULL: it was written without one.
 */
tt_status tti_card_read(tt_ctx *ctx, const char *path, char file[TTI_PATH_MAX],
                        json_t **out) TTI_CHECKED;

#endif
