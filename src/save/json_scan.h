/*
 * json_scan.h - JSON of a known form, read in one pass without a tree, so that memory stays in
 * proportion to the text and numbers are seen as they are written: 1e3, -0 and 2^63 are refused.
 */
#ifndef TUTTI_SAVE_JSON_SCAN_H
#define TUTTI_SAVE_JSON_SCAN_H

#include "base/base.h"

typedef struct tti_json_scan {
    tt_ctx *ctx;
    const char *path, *start, *at, *end; // of the file, for messages; the text and the place in it
    tti_text texts;                      // those read so far, each with a zero behind it
} tti_json_scan;

// Records TT_EPARSE, what and where.
tt_status tti_json_fail(const tti_json_scan *r, const char *what) TTI_CHECKED;
// The next character that is not a space; '\0' at the end.
char tti_json_peek(tti_json_scan *r);
tt_status tti_json_expect(tti_json_scan *r, char c) TTI_CHECKED;
// After an element of a list: is there another? Takes "," or the closing bracket.
tt_status tti_json_more(tti_json_scan *r, char close, bool *again) TTI_CHECKED;
// A string, added to the texts; *out is its place there.
tt_status tti_json_text(tti_json_scan *r, int64_t *out) TTI_CHECKED;
// An integer from 0 to 2^63 - 1, written with digits only.
tt_status tti_json_number(tti_json_scan *r, int64_t *out) TTI_CHECKED;

#endif
