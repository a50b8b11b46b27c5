/*
 * value.c - option values as text: lists, shapes, words and bounds; number_text.c has the numbers.
 * What is printed reads back to the same bits.
 */
#include "base/value.h"
#include "base/hints.h"
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SPACES " \t"

// ---- lists: "[1, 2]", "1,2"; shapes: "[b, 784]", "[64b, 3]", "[-1, 784]" ----------------------

/*
 * Reads up to max numbers; -1 if the text is no list of them. With open, "b" and "64b" are the
 * dimensions -1 and -64.
 */
static int parse_list(const char *text, int64_t *out, int max, bool open)
{
    const char *s = text + strspn(text, SPACES);
    bool bracket = *s == '[';
    int n = 0;
    s += bracket;
    s += strspn(s, SPACES);
    while (*s != '\0' && *s != ']') {
        char *end = (char *)s;
        errno = 0;
        long long x = open && *s == 'b' ? 1 : strtoll(s, &end, 10);
        bool is_open = open && *end == 'b';
        if ((end == s && !is_open) || errno != 0 || n == max || (is_open && x < 1))
            return -1;
        s = end + is_open;
        out[n++] = is_open ? -x : x;
        s += strspn(s, SPACES);
        if (*s == ',') {
            s++;
            s += strspn(s, SPACES);
            if (*s == '\0' || *s == ']')
                return -1;
        } else if (*s != '\0' && *s != ']') {
            return -1;
        }
    }
    if (bracket != (*s == ']'))
        return -1;
    s += bracket;
    return s[strspn(s, SPACES)] == '\0' ? n : -1;
}

static bool parse_shape(const char *text, tt_shape *out)
{
    int n_open = 0;
    *out = (tt_shape){0};
    out->rank = parse_list(text, out->dim, TT_MAX_RANK, true);
    for (int i = 0; i < out->rank; i++)
        n_open += out->dim[i] < 0;
    return out->rank >= 0 && n_open < 2;
}

static void print_list(tti_text *t, const int64_t *v, int n, bool open)
{
    tti_text_put(t, "[", 1);
    for (int i = 0; i < n; i++) {
        if (i > 0)
            tti_text_put(t, ", ", 2);
        if (!open || v[i] >= 0)
            tti_text_add(t, "%lld", (long long)v[i]);
        else if (v[i] == -1)
            tti_text_put(t, "b", 1);
        else
            tti_text_add(t, "%llub", -(unsigned long long)v[i]);
    }
    tti_text_put(t, "]", 1);
}

// ---- values ----------------------------------------------------------------------------------

size_t tti_value_bytes(tt_opt_type type)
{
    static const size_t bytes[] = {
        [TT_OPT_END] = 0,
        [TT_OPT_BOOL] = sizeof(bool),
        [TT_OPT_INT] = sizeof(int64_t),
        [TT_OPT_FLOAT] = sizeof(double),
        [TT_OPT_STRING] = TT_OPT_STRING_MAX,
        [TT_OPT_ENUM] = sizeof(int),
        [TT_OPT_INTS] = sizeof(tt_ints),
        [TT_OPT_SIZE] = sizeof(size_t),
        [TT_OPT_DTYPE] = sizeof(tt_dtype),
        [TT_OPT_SHAPE] = sizeof(tt_shape),
        [TT_OPT_INT32] = sizeof(int),
        [TT_OPT_TEXT] = sizeof(const char *),
        [TT_OPT_PAIR] = sizeof(int[2]),
    };
    return (unsigned)type < TTI_COUNT(bytes) ? bytes[type] : 0;
}

static bool parse_bool(const char *s, bool *out)
{
    static const char *const words[] = {"false", "true", "no", "yes", "off", "on", "0", "1"};
    for (int i = 0; i < TTI_COUNT(words); i++) {
        if (strcmp(s, words[i]) == 0) {
            *out = i & 1;
            return true;
        }
    }
    return false;
}

static bool parse_word(const tt_option *row, const char *text, int *out, char *why)
{
    int n = 0;
    for (int i = 0; row->names[i] != NULL; i++) {
        if (strcmp(text, row->names[i]) == 0) {
            *out = i;
            return true;
        }
    }
    const tti_hint *h = tti_hint_find(row->name, NULL, text);
    const char *near = tti_meant(text, row->names);
    char hint[TTI_HINT_MAX];
    if (tti_hint_helps(h, text, near)) {
        snprintf(why, TTI_WHY_MAX, "is unknown; %s", tti_hint_text(h, hint));
        return false;
    }
    if (near != NULL) {
        snprintf(why, TTI_WHY_MAX, "is unknown; did you mean '%s'?", near);
        return false;
    }
    tti_text list = {.ctx = NULL};
    while (row->names[n] != NULL)
        n++;
    tti_text_names(&list, row->names, n, 60); // behind what it is of
    char *names = tti_text_take(&list);
    snprintf(why, TTI_WHY_MAX, "is not one of %s", names != NULL ? names : "its words");
    tti_free(NULL, names);
    return false;
}

static bool within(const tt_option *row, double x, char *why)
{
    char bound[TTI_DOUBLE_TEXT];
    if (row->min == 0 && row->max == 0)
        return true;
    if (x >= row->min && x <= row->max)
        return true;
    if (isnan(x))
        snprintf(why, TTI_WHY_MAX, "is not a number");
    else if (x < row->min)
        snprintf(why, TTI_WHY_MAX, "is below %s", tti_double_text(row->min, bound));
    else
        snprintf(why, TTI_WHY_MAX, "is above %s", tti_double_text(row->max, bound));
    return false;
}

static bool no(char *why, const char *text)
{
    snprintf(why, TTI_WHY_MAX, "%s", text);
    return false;
}

// A number that fits an int.
static bool parse_int32(const tt_option *row, const char *text, int *out, char *why)
{
    int64_t x;
    if (!tti_int_parse(text, &x) || x < INT32_MIN || x > INT32_MAX)
        return no(why, "is not an integer of 32 bits");
    *out = (int)x;
    return within(row, (double)x, why);
}

// One number for both, or two.
static bool parse_pair(const tt_option *row, const char *text, int out[2], char *why)
{
    int64_t v[2];
    int n = parse_list(text, v, 2, false);
    for (int i = 0; i < n; i++) {
        if (v[i] < INT32_MIN || v[i] > INT32_MAX)
            return no(why, "is not an integer of 32 bits");
        if (!within(row, (double)v[i], why))
            return false;
    }
    if (n < 1)
        return no(why, "is neither an integer nor a pair of integers: 3, [3, 5]");
    out[0] = (int)v[0];
    out[1] = (int)v[n - 1];
    return true;
}

bool tti_value_parse(const tt_option *row, const char *text, tti_value *out, char why[TTI_WHY_MAX])
{
    memset(out, 0, sizeof(*out));
    switch (row->type) {
    case TT_OPT_BOOL:
        return parse_bool(text, &out->b) || no(why, "is not true or false");
    case TT_OPT_INT:
        if (!tti_int_parse(text, &out->i))
            return no(why, "is not an integer");
        return within(row, (double)out->i, why);
    case TT_OPT_FLOAT:
        return tti_double_parse(text, &out->f) ? within(row, out->f, why)
                                               : no(why, "is not a number");
    case TT_OPT_STRING:
        if (strlen(text) >= TT_OPT_STRING_MAX)
            return no(why, "is too long");
        strcpy(out->s, text);
        return true;
    case TT_OPT_ENUM:
        return parse_word(row, text, &out->word, why);
    case TT_OPT_INTS:
        out->ints.n = parse_list(text, out->ints.v, TTI_COUNT(out->ints.v), false);
        for (int i = 0; i < out->ints.n; i++)
            if (!within(row, (double)out->ints.v[i], why))
                return false;
        return out->ints.n >= 0 || no(why, "is not a list of at most 16 integers: [1, 2]");
    case TT_OPT_SIZE:
        if (!tti_size_parse(text, &out->size))
            return no(why, "is not a size; write a number of bytes, or '512MiB', '1.5GiB'");
        return within(row, (double)out->size, why);
    case TT_OPT_DTYPE:
        return tti_parse_dtype(NULL, text, &out->dtype) == TT_OK ||
               no(why, "is not an element type; use f32, f64, bf16, f16, i32, i64, u8 or bool");
    case TT_OPT_SHAPE:
        return parse_shape(text, &out->shape) || no(why, "is not a shape such as [b, 28, 28], with "
                                                         "at most 8 dimensions, one of them open");
    case TT_OPT_INT32:
        return parse_int32(row, text, &out->i32, why);
    case TT_OPT_TEXT:
        out->text = text;
        return true;
    case TT_OPT_PAIR:
        return parse_pair(row, text, out->pair, why);
    case TT_OPT_END:
        break;
    }
    return no(why, "has no type");
}

bool tti_value_check(const tt_option *row, const tti_value *v, char why[TTI_WHY_MAX])
{
    char reason[TTI_WHY_MAX], number[TTI_DOUBLE_TEXT];
    double x[16] = {0};
    int n = 1, n_words = 0;
    switch (row->type) {
    case TT_OPT_INT:
        x[0] = (double)v->i;
        break;
    case TT_OPT_FLOAT:
        x[0] = v->f;
        break;
    case TT_OPT_SIZE:
        x[0] = (double)v->size;
        break;
    case TT_OPT_INT32:
        x[0] = v->i32;
        break;
    case TT_OPT_PAIR:
        x[0] = v->pair[0];
        x[1] = v->pair[1];
        n = 2;
        break;
    case TT_OPT_INTS:
        n = TTI_MAX(0, TTI_MIN(v->ints.n, TTI_COUNT(v->ints.v)));
        for (int i = 0; i < n; i++)
            x[i] = (double)v->ints.v[i];
        break;
    case TT_OPT_ENUM:
        while (row->names[n_words] != NULL)
            n_words++;
        if (v->word >= 0 && v->word < n_words)
            return true;
        snprintf(why, TTI_WHY_MAX, "%d is not one of its values", v->word);
        return false;
    default:
        return true;
    }
    for (int i = 0; i < n; i++) {
        if (within(row, x[i], reason))
            continue;
        snprintf(why, TTI_WHY_MAX, "%s %.*s", tti_double_text(x[i], number), TTI_WHY_MAX - 48,
                 reason);
        return false;
    }
    return true;
}

void tti_value_print(tti_text *t, const tt_option *row, const tti_value *v)
{
    char number[TTI_DOUBLE_TEXT];
    int n_words = 0;
    switch (row->type) {
    case TT_OPT_BOOL:
        tti_text_add(t, "%s", v->b ? "true" : "false");
        break;
    case TT_OPT_INT:
        tti_text_add(t, "%lld", (long long)v->i);
        break;
    case TT_OPT_FLOAT:
        tti_text_add(t, "%s", tti_double_text(v->f, number));
        break;
    case TT_OPT_STRING:
        tti_text_put(t, v->s, strnlen(v->s, TT_OPT_STRING_MAX - 1));
        break;
    case TT_OPT_ENUM:
        while (row->names[n_words] != NULL)
            n_words++;
        tti_text_add(t, "%s", v->word >= 0 && v->word < n_words ? row->names[v->word] : "?");
        break;
    case TT_OPT_INTS:
        print_list(t, v->ints.v, TTI_MIN(v->ints.n, TTI_COUNT(v->ints.v)), false);
        break;
    case TT_OPT_SIZE:
        tti_size_print(t, v->size);
        break;
    case TT_OPT_DTYPE:
        tti_text_add(t, "%s", tt_dtype_name(v->dtype));
        break;
    case TT_OPT_SHAPE:
        print_list(t, v->shape.dim, TTI_MIN(v->shape.rank, TT_MAX_RANK), true);
        break;
    case TT_OPT_INT32:
        tti_text_add(t, "%d", v->i32);
        break;
    case TT_OPT_TEXT:
        tti_text_put(t, v->text != NULL ? v->text : "", v->text != NULL ? strlen(v->text) : 0);
        break;
    case TT_OPT_PAIR:
        if (v->pair[0] == v->pair[1])
            tti_text_add(t, "%d", v->pair[0]);
        else
            tti_text_add(t, "[%d, %d]", v->pair[0], v->pair[1]);
        break;
    case TT_OPT_END:
        break;
    }
}

bool tti_value_equal(const tt_option *row, const tti_value *a, const tti_value *b)
{
    switch (row->type) {
    case TT_OPT_STRING:
        return strncmp(a->s, b->s, TT_OPT_STRING_MAX) == 0;
    case TT_OPT_INTS:
        return a->ints.n == b->ints.n &&
               (a->ints.n <= 0 ||
                memcmp(a->ints.v, b->ints.v, (size_t)a->ints.n * sizeof(int64_t)) == 0);
    case TT_OPT_SHAPE:
        return a->shape.rank == b->shape.rank &&
               (a->shape.rank <= 0 ||
                memcmp(a->shape.dim, b->shape.dim, (size_t)a->shape.rank * sizeof(int64_t)) == 0);
    case TT_OPT_TEXT:
        return strcmp(a->text != NULL ? a->text : "", b->text != NULL ? b->text : "") == 0;
    default: // bits, so that -0 is not 0
        return memcmp(a, b, tti_value_bytes(row->type)) == 0;
    }
}
