/*
 * catalog.h - the catalogue inside the library: every group is a list of records of the schema.
 */
#ifndef TUTTI_JOB_CATALOG_H
#define TUTTI_JOB_CATALOG_H

#include "job/schema.h"
#include <tutti/catalog.h>

// Entry i of a group as a record; false past the end. The name of a section is its dotted path.
bool tti_catalog_at(tt_ctx *ctx, tt_catalog_group group, int i, tti_schema *out);
// Option k of a record; false past the end.
bool tti_catalog_option(tt_ctx *ctx, const tti_schema *s, int k, tt_catalog_option *out);
// A row by itself, with its default.
tt_catalog_option tti_catalog_row(const tti_schema *s, const tt_option *row);

// Adds what tt_catalog_json() prints without the closing brace, so that more keys can follow.
void tti_catalog_json(tt_ctx *ctx, tti_text *t);

#endif
