/*
 * plot_text.c - curves in characters: one panel each, training as dots, validation as 'o'.
 *
 * A cell of the panel holds 2 x 4 Braille dots, so a line is finer than a character; in plain form
 * a cell is one '*'.
 */
#include "record/record.h"
#include <math.h>
#include <stdio.h>
#include <string.h>

#define MAX_WIDTH  400
#define MAX_HEIGHT 200
#define LABELS     9 // columns left of the axis

typedef struct canvas {
    int columns, rows; // of cells
    bool plain;
    tti_axis x, y;
    uint8_t dots[MAX_HEIGHT][MAX_WIDTH]; // bit 2 dy + dx of a cell
    char marks[MAX_HEIGHT][MAX_WIDTH];   // 0: none
} canvas;

static int clamp(double v, int high)
{
    return v < 0 ? 0 : v > high ? high : (int)v;
}

// Sets the dot nearest to a point given as fractions of the panel.
static void set_dot(canvas *c, double fx, double fy)
{
    int across = c->plain ? 1 : 2, down = c->plain ? 1 : 4;
    int x = clamp(fx * (c->columns * across - 1) + 0.5, c->columns * across - 1);
    int y = clamp((1 - fy) * (c->rows * down - 1) + 0.5, c->rows * down - 1);
    c->dots[y / down][x / across] |= (uint8_t)(1u << (2 * (y % down) + x % across));
}

static void draw_points(canvas *c, const tti_curve *k)
{
    tti_column at[MAX_WIDTH]; // one a cell: finer would show noise
    int n = tti_gather(k->points, k->n, &c->x, c->columns, at);
    for (int i = 0; i < n; i++) {
        double x = tti_axis_place(&c->x, at[i].x), y = tti_axis_place(&c->y, at[i].mean);
        set_dot(c, x, y);
        if (i + 1 == n)
            break;
        double x1 = tti_axis_place(&c->x, at[i + 1].x), y1 = tti_axis_place(&c->y, at[i + 1].mean);
        int between = 2 * (int)ceil(fmax(fabs(x1 - x) * c->columns, fabs(y1 - y) * c->rows * 2));
        for (int j = 1; j < between; j++)
            set_dot(c, x + (x1 - x) * j / between, y + (y1 - y) * j / between);
    }
    for (int64_t i = 0; i < k->n_validation; i++) {
        double x = tti_axis_place(&c->x, k->validation[i].x);
        double y = tti_axis_place(&c->y, k->validation[i].y);
        c->marks[clamp((1 - y) * (c->rows - 1) + 0.5, c->rows - 1)]
                [clamp(x * (c->columns - 1) + 0.5, c->columns - 1)] = 'o';
    }
}

// The letter of a run: a, b, c, ...
static char letter_of(int run)
{
    return (char)('a' + run % 26);
}

// One letter a column; where two runs meet the later one is seen.
static void draw_letters(canvas *c, const tti_line *l)
{
    tti_column at[MAX_WIDTH];
    int n = tti_gather(l->points, l->n, &c->x, c->columns, at);
    for (int i = 0; i < n; i++) {
        double x = tti_axis_place(&c->x, at[i].x), y = tti_axis_place(&c->y, at[i].mean);
        c->marks[clamp((1 - y) * (c->rows - 1) + 0.5, c->rows - 1)]
                [clamp(x * (c->columns - 1) + 0.5, c->columns - 1)] = letter_of(l->run);
    }
}

// U+2800 and one bit for each dot, in Unicode's order, as UTF-8.
static void put_braille(tti_text *t, uint8_t dots)
{
    static const uint8_t bits[] = {0x01, 0x08, 0x02, 0x10, 0x04, 0x20, 0x40, 0x80};
    unsigned code = 0x2800;
    for (int i = 0; i < 8; i++)
        if (dots & 1u << i)
            code |= bits[i];
    char utf8[3] = {(char)(0xE0 | code >> 12), (char)(0x80 | (code >> 6 & 0x3F)),
                    (char)(0x80 | (code & 0x3F))};
    tti_text_put(t, utf8, 3);
}

// 'o' and the second run are yellow, other runs have colours of their own.
static void put_mark(tti_text *t, char mark, bool colour)
{
    static const int codes[] = {36, 33, 32, 31, 35, 34};
    int code = mark == 'o' ? 33 : codes[(mark - 'a') % TTI_COUNT(codes)];
    if (colour)
        tti_text_add(t, "\033[%dm%c\033[m", code, mark);
    else
        tti_text_add(t, "%c", mark);
}

static void put_row(tti_text *t, const canvas *c, int row, bool colour)
{
    int last = c->columns - 1; // no spaces behind the last mark
    while (last >= 0 && c->dots[row][last] == 0 && !c->marks[row][last])
        last--;
    for (int i = 0; i <= last; i++) {
        if (c->marks[row][i])
            put_mark(t, c->marks[row][i], colour);
        else if (c->dots[row][i] == 0)
            tti_text_put(t, " ", 1);
        else if (c->plain)
            tti_text_put(t, "*", 1);
        else
            put_braille(t, c->dots[row][i]);
    }
    tti_text_put(t, "\n", 1);
}

// The label of the tick in this row; "" if there is none.
static const char *row_label(const canvas *c, int row)
{
    for (int i = 0; i < c->y.n; i++) {
        double place = (1 - tti_axis_place(&c->y, c->y.at[i])) * (c->rows - 1);
        if (fabs(place - row) <= 0.5)
            return c->y.label[i];
    }
    return "";
}

static void put_x_axis(tti_text *t, const canvas *c)
{
    char line[MAX_WIDTH + 1];
    int end = 0; // columns in use
    tti_text_add(t, "%*s%s", LABELS, "", c->plain ? "+" : "└");
    for (int i = 0; i < c->columns; i++)
        tti_text_add(t, "%s", c->plain ? "-" : "─");
    memset(line, ' ', sizeof(line));
    for (int i = 0; i < c->x.n; i++) {
        int n = (int)strlen(c->x.label[i]);
        int at = (int)(tti_axis_place(&c->x, c->x.at[i]) * (c->columns - 1) + 0.5) - n / 2;
        at = TTI_MAX(TTI_MIN(at, c->columns - n), 0);
        if (end > 0 && at <= end)
            continue;
        if (at + n > c->columns)
            continue;
        memcpy(line + at, c->x.label[i], (size_t)n);
        end = at + n;
    }
    line[end] = '\0';
    tti_text_add(t, "\n%*s %s\n", LABELS, "", line);
}

static void open_canvas(canvas *c, tti_range r)
{
    tti_axis_make(r.x_low, r.x_high, TTI_MAX(c->columns / 12, 2), false, &c->x);
    tti_axis_make(r.y_low, r.y_high, TTI_MAX(c->rows / 3, 2), true, &c->y);
    memset(c->dots, 0, sizeof(c->dots));
    memset(c->marks, 0, sizeof(c->marks));
}

static void put_rows(tti_text *t, const canvas *c, const tti_text_plot *form)
{
    for (int row = 0; row < c->rows; row++) {
        const char *label = row_label(c, row);
        tti_text_add(t, "%*s%s", LABELS, label, form->plain ? "|" : *label != '\0' ? "┤" : "│");
        put_row(t, c, row, form->colour);
    }
    put_x_axis(t, c);
}

static void put_panel(tti_text *t, const tti_curve *k, canvas *c, const tti_text_plot *form)
{
    open_canvas(c, tti_curve_range(k));
    draw_points(c, k);
    const char *train = form->plain ? "*" : "⠒";
    tti_text_add(t, "%s", k->name);
    if (k->n > 0)
        tti_text_add(t, "   %s training", train);
    if (k->n_validation > 0) {
        tti_text_add(t, "   ");
        put_mark(t, 'o', form->colour);
        tti_text_add(t, " validation");
    }
    tti_text_put(t, "\n", 1);
    put_rows(t, c, form);
}

static canvas *new_canvas(tt_ctx *ctx, const tti_text_plot *form)
{
    canvas *v = tti_calloc(ctx, 1, sizeof(*v));
    if (v == NULL)
        return NULL;
    v->columns = TTI_MIN(TTI_MAX(form->width - LABELS - 1, 8), MAX_WIDTH);
    v->rows = TTI_MIN(TTI_MAX(form->height - 3, 4), MAX_HEIGHT);
    v->plain = form->plain;
    return v;
}

char *tti_panels_text(tt_ctx *ctx, const tti_panel *panels, int n, const tti_text_plot *form)
{
    tti_text t = {.ctx = ctx};
    canvas *v = new_canvas(ctx, form);
    if (v == NULL)
        return NULL;
    for (int i = 0; i < n; i++) {
        const tti_panel *k = &panels[i];
        open_canvas(v, tti_panel_range(k));
        tti_text_add(&t, "%s%s", i > 0 ? "\n" : "", k->name);
        for (int l = 0; l < k->n; l++) {
            draw_letters(v, &k->line[l]);
            tti_text_add(&t, "   ");
            put_mark(&t, letter_of(k->line[l].run), form->colour);
            tti_text_add(&t, " %s", k->line[l].label);
        }
        tti_text_put(&t, "\n", 1);
        put_rows(&t, v, form);
    }
    if (n == 0)
        tti_text_add(&t, "no steps yet\n");
    tti_free(ctx, v);
    return tti_text_take(&t);
}

char *tti_curves_text(const tti_curves *c, const tti_text_plot *form)
{
    tti_text t = {.ctx = c->ctx};
    canvas *v = new_canvas(c->ctx, form);
    if (v == NULL)
        return NULL;
    bool any = false;
    for (int i = 0; i < c->n; i++) {
        if (c->curve[i].n + c->curve[i].n_validation == 0)
            continue;
        tti_text_add(&t, any ? "\n" : "");
        put_panel(&t, &c->curve[i], v, form);
        any = true;
    }
    if (!any)
        tti_text_add(&t, "no steps yet\n");
    tti_free(c->ctx, v);
    return tti_text_take(&t);
}
