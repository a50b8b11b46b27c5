/*
 * csv_cell.c - cells, numbers and words of CSV files (csv.h).
 */
#include "base/value.h"
#include "data/csv.h"
#include <float.h>
#include <math.h>
#include <string.h>

// ---- cells -----------------------------------------------------------------------------------

static void keep(tti_cell *c, int byte)
{
    if (c->n < TTI_CELL_MAX - 1)
        c->text[c->n++] = (char)byte;
    else
        c->is_long = true;
}

// Blanks around a cell do not count; a separator is none.
static bool is_blank(const tti_csv_at *at, int byte)
{
    return (byte == ' ' || byte == '\t' || byte == '\r') && byte != at->comma;
}

static bool ends_cell(tti_csv_at *at, tti_cell *c, int byte)
{
    if (byte == '\n')
        at->line++;
    c->is_last = byte == '\n' || byte == TTI_SCAN_END;
    return c->is_last || byte == at->comma;
}

tt_status tti_csv_zero(tt_ctx *ctx, const char *path, int64_t line, int64_t column)
{
    return TT_FAIL(ctx, TT_EPARSE,
                   "%s: line %lld has a zero byte at byte %lld: the file is damaged or is not CSV "
                   "(save a UTF-16 file as UTF-8)",
                   path, (long long)line, (long long)column);
}

#define FARTHEST ((int64_t)1 << 20) // bytes of a line that are counted for a message

// A zero byte was read: counts the bytes of its line in front of it.
static tt_status refuse_zero(tt_ctx *ctx, const tti_csv_at *at)
{
    int64_t place = tti_scan_at(&at->scan) - 1, column = 1;
    unsigned char byte;
    while (column <= TTI_MIN(place, FARTHEST) &&
           tti_bytes_read(ctx, at->scan.bytes, place - column, 1, &byte) == TT_OK && byte != '\n')
        column++;
    return tti_csv_zero(ctx, at->scan.bytes->path, at->line, column);
}

// What follows an opening quote. Gives the first byte after the cell's blanks.
static tt_status quoted(tt_ctx *ctx, tti_csv_at *at, tti_cell *c, int *after)
{
    int64_t line = at->line;
    c->is_quoted = true;
    for (;;) {
        int byte = tti_scan_byte(ctx, &at->scan);
        if (byte == TTI_SCAN_ERROR)
            return tt_status_of(ctx);
        if (byte == TTI_SCAN_END)
            return TT_FAIL(ctx, TT_EIO, "%s: line %lld: a quote is not closed",
                           at->scan.bytes->path, (long long)line);
        if (byte == at->quote) {
            byte = tti_scan_byte(ctx, &at->scan);
            if (byte != at->quote) {
                while (is_blank(at, byte))
                    byte = tti_scan_byte(ctx, &at->scan);
                *after = byte;
                return byte == TTI_SCAN_ERROR ? tt_status_of(ctx) : TT_OK;
            }
        }
        if (byte == 0)
            return refuse_zero(ctx, at);
        at->line += byte == '\n';
        keep(c, byte);
    }
}

tt_status tti_csv_cell(tt_ctx *ctx, tti_csv_at *at, tti_cell *c, bool *more)
{
    int byte;
    c->n = 0;
    c->is_long = c->is_quoted = c->is_last = false;
    do
        byte = tti_scan_byte(ctx, &at->scan);
    while (is_blank(at, byte));
    *more = byte != TTI_SCAN_END;
    if (at->quote != 0 && byte == at->quote) {
        TT_TRY(quoted(ctx, at, c, &byte));
        if (!ends_cell(at, c, byte))
            return TT_FAIL(ctx, TT_EIO, "%s: line %lld: there is text after a closing quote",
                           at->scan.bytes->path, (long long)at->line);
    } else {
        for (; byte != TTI_SCAN_ERROR && !ends_cell(at, c, byte);
             byte = tti_scan_byte(ctx, &at->scan)) {
            if (byte == 0)
                return refuse_zero(ctx, at);
            keep(c, byte);
        }
        while (c->n > 0 && is_blank(at, c->text[c->n - 1]))
            c->n--;
    }
    c->text[c->n] = '\0';
    return byte == TTI_SCAN_ERROR ? tt_status_of(ctx) : TT_OK;
}

// ---- numbers ---------------------------------------------------------------------------------

// Powers of ten that a double holds exactly.
static const double tens[] = {1e0,  1e1,  1e2,  1e3,  1e4,  1e5,  1e6,  1e7,
                              1e8,  1e9,  1e10, 1e11, 1e12, 1e13, 1e14, 1e15,
                              1e16, 1e17, 1e18, 1e19, 1e20, 1e21, 1e22};

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

// Reads digits on to *m and counts them; *exact turns false when they no longer fit.
static const char *digits(const char *s, uint64_t *m, int *n, bool *exact)
{
    for (; is_digit(*s); s++, ++*n) {
        if (*m > (UINT64_MAX - 9) / 10)
            *exact = false;
        else
            *m = *m * 10 + (uint64_t)(*s - '0');
    }
    return s;
}

/*
 * Whether rounding v to a float gives the float nearest to the decimal that v is nearest to. It
 * does unless v is the middle of two floats, where the decimal may lie to either side of it.
 */
static bool rounds_once(double v)
{
    uint64_t bits;
    memcpy(&bits, &v, sizeof(bits));
    return (bits & 0x1fffffff) != 0x10000000 && (v >= FLT_MIN || v == 0);
}

/*
 * Up to 2^53 times or over an exact power of ten is one rounding, so it is the nearest double. The
 * rest, and what is at a middle then, is left to the slow way.
 */
bool tti_csv_number(const char *text, float *out)
{
    const char *s = text;
    uint64_t m = 0;
    int before = 0, after = 0, power = 0;
    bool exact = true, minus = *s == '-';
    s += minus || *s == '+';
    s = digits(s, &m, &before, &exact);
    if (*s == '.')
        s = digits(s + 1, &m, &after, &exact);
    if (before + after == 0)
        return false;
    if (*s == 'e' || *s == 'E') {
        uint64_t e = 0;
        int n = 0;
        bool small = true, down = s[1] == '-';
        s = digits(s + 1 + (down || s[1] == '+'), &e, &n, &small);
        if (n == 0)
            return false;
        exact &= small && e < 1000;
        power = exact ? (int)e * (down ? -1 : 1) : 0;
    }
    if (*s != '\0')
        return false;

    double v;
    power -= after;
    if (exact && m <= (uint64_t)1 << 53 && power >= -22 && power <= 22) {
        v = power < 0 ? (double)m / tens[-power] : (double)m * tens[power];
        *out = (float)(minus ? -v : v);
        if (rounds_once(v))
            return isfinite(*out);
    }
    return tti_float_parse(text, out) && isfinite(*out);
}

// ---- words -----------------------------------------------------------------------------------

static int64_t slot_of(const tti_words *w, const char *word)
{
    uint64_t h = tti_hash64(word, strlen(word), 0);
    for (uint64_t i = h;; i++) {
        int64_t slot = (int64_t)(i & (uint64_t)(w->slots - 1));
        if (w->table[slot] == 0 || strcmp(w->words[w->table[slot] - 1], word) == 0)
            return slot;
    }
}

int32_t tti_words_find(const tti_words *w, const char *word)
{
    return w->slots == 0 ? -1 : w->table[slot_of(w, word)] - 1;
}

// Twice the room, so that half of it stays free.
static tt_status widen(tt_ctx *ctx, tti_words *w)
{
    int64_t slots = TTI_MAX(w->slots * 2, 64);
    int32_t *table = tti_calloc(ctx, (size_t)slots, sizeof(*table));
    if (table == NULL)
        return TT_ENOMEM;
    tti_free(ctx, w->table);
    w->table = table;
    w->slots = slots;
    for (int64_t i = 0; i < w->n; i++)
        w->table[slot_of(w, w->words[i])] = (int32_t)i + 1;
    return TT_OK;
}

tt_status tti_words_add(tt_ctx *ctx, tti_words *w, const char *word)
{
    if (tti_words_find(w, word) >= 0)
        return TT_OK;
    if (w->n == TTI_WORDS_MAX)
        return TT_EINVAL;
    if (w->n * 2 >= w->slots)
        TT_TRY(widen(ctx, w));
    if (!tti_grow(ctx, &w->words, &w->cap, w->n + 1, sizeof(*w->words)))
        return TT_ENOMEM;
    char *copy = tti_strdup(ctx, word);
    if (copy == NULL)
        return TT_ENOMEM;
    w->table[slot_of(w, word)] = (int32_t)w->n + 1;
    w->words[w->n++] = copy;
    return TT_OK;
}

void tti_words_free(tt_ctx *ctx, tti_words *w)
{
    for (int64_t i = 0; i < w->n; i++)
        tti_free(ctx, w->words[i]);
    tti_free(ctx, w->words);
    tti_free(ctx, w->table);
    *w = (tti_words){0};
}

int32_t tti_words_number(const char *word)
{
    int32_t v = 0;
    if (!is_digit(word[0]) || (word[0] == '0' && word[1] != '\0'))
        return -1;
    for (const char *s = word; *s != '\0'; s++) {
        if (!is_digit(*s) || v > TTI_WORDS_MAX / 10)
            return -1;
        v = v * 10 + (*s - '0');
    }
    return v < TTI_WORDS_MAX ? v : -1;
}
