/*
 * option_json.h - options as a JSON object of texts, {"units": "10", "act": "relu"}, and back.
 */
#ifndef TUTTI_BASE_OPTION_JSON_H
#define TUTTI_BASE_OPTION_JSON_H

#include "base/base.h"
#include <jansson.h>

void tti_options_json(tti_text *t, const tt_option *rows, const void *from);
/*
 * Defaults, then the object's values, each checked; texts are borrowed from o. NULL is an empty
 * object. file is for messages.
 */
tt_status tti_options_of_json(tt_ctx *ctx, const char *file, const char *where,
                              const tt_option *rows, const json_t *o, void *out) TTI_CHECKED;

// A shape, [28, 28, 1], of numbers above 0, with room for a batch axis.
void tti_shape_json(tti_text *t, const tt_shape *s);
bool tti_shape_of_json(const json_t *list, tt_shape *out);

#endif
