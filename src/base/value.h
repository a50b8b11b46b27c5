/*
 * value.h - one option's value: from text, to text, compared.
 */
#ifndef TUTTI_BASE_VALUE_H
#define TUTTI_BASE_VALUE_H

#include "base/base.h"

typedef union tti_value {
    bool b;
    int64_t i;
    double f;
    char s[TT_OPT_STRING_MAX];
    int word;
    tt_ints ints;
    size_t size;
    tt_dtype dtype;
    tt_shape shape;
    int i32;
    const char *text;
    int pair[2];
} tti_value;

#define TTI_WHY_MAX 1024

size_t tti_value_bytes(tt_opt_type type);
// False, with the reason in why ("is no number", "is below 1"), if text is no value of the row.
bool tti_value_parse(const tt_option *row, const char *text, tti_value *out,
                     char why[TTI_WHY_MAX]) TTI_CHECKED;
// Bounds and words of a value that did not come from text; why then names the value too.
bool tti_value_check(const tt_option *row, const tti_value *v, char why[TTI_WHY_MAX]) TTI_CHECKED;
void tti_value_print(tti_text *t, const tt_option *row, const tti_value *v);
bool tti_value_equal(const tt_option *row, const tti_value *a, const tti_value *b);

// number_text.c: decimal text of a double, whatever the locale: with this many digits, or as many
// as it takes to read back to the same bits.
#define TTI_DOUBLE_TEXT 40
const char *tti_double_digits(double x, int digits, char buf[TTI_DOUBLE_TEXT]);
const char *tti_double_text(double x, char buf[TTI_DOUBLE_TEXT]);
bool tti_double_parse(const char *text, double *out) TTI_CHECKED;
// The nearest float of the decimal, rounded once.
bool tti_float_parse(const char *text, float *out) TTI_CHECKED;
// The nearest double, but where it is not exact the neighbour whose last bit is 1: rounding that to
// fewer bits gives what rounding the decimal would.
bool tti_double_parse_odd(const char *text, double *out) TTI_CHECKED;
bool tti_int_parse(const char *text, int64_t *out) TTI_CHECKED;
// Digits, a point and up to six more digits, a unit: "512MiB", "1.5GiB", "4096".
bool tti_size_parse(const char *text, size_t *out) TTI_CHECKED;
void tti_size_print(tti_text *t, size_t size); // with the largest unit that divides it

#endif
