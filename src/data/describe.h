/*
 * describe.h - what a data set does to records, as JSON: what inference needs of it, kept with the
 * model. Fields before their transforms, with the words of classes; columns of a CSV file; the
 * vocabulary of a text; transforms that are not random, with their numbers.
 */
#ifndef TUTTI_DATA_DESCRIBE_H
#define TUTTI_DATA_DESCRIBE_H

#include "base/option_json.h"
#include "data/data.h"

// Names of classes by number, borrowed; NULL: there are none, or they are numbers.
char *const *tti_data_words(const tt_data *d, int64_t *n);
void tti_data_describe(const tt_data *d, tti_text *t);

// The same read back; texts are borrowed from the object.
typedef struct tti_described_field {
    tt_field field;
    const json_t *words; // of its classes; NULL: they are numbers
} tti_described_field;
// The fields; how many, or -1 (recorded).
int tti_described_fields(tt_ctx *ctx, const char *file, const json_t *o,
                         tti_described_field out[TT_MAX_FIELDS]);
/*
 * Appends the transforms of o to d, those of fields that it lacks apart: records to predict have
 * no target.
 */
tt_status tti_described_transforms(tt_data *d, const char *file, const json_t *o) TTI_CHECKED;

#endif
