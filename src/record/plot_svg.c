/*
 * plot_svg.c - curves as a picture: one panel each, training as a line, validation as a line with
 * dots.
 *
 * A long run has more points than the panel has pixels: points are gathered in columns, the line
 * goes through each column's mean and a pale band from its lowest to its highest.
 */
#include "record/record.h"
#include <math.h>
#include <string.h>

#define WIDTH    760
#define PANEL    300
#define TOP      44 // of the picture: the title
#define LEFT     64 // of a panel: numbers of the y axis
#define RIGHT    24
#define HEAD     34 // of a panel: its name and the legend
#define FOOT     42 // numbers of the x axis
#define COLUMNS  120
#define TRAIN    "#2563c9"
#define VALIDATE "#d9580d"

typedef struct panel {
    tti_text *t;
    tti_axis x, y;
    double top, width, height; // of the box that values are drawn in; its left edge is LEFT
} panel;

static double at_x(const panel *p, double v)
{
    return LEFT + p->width * tti_axis_place(&p->x, v);
}

static double at_y(const panel *p, double v)
{
    return p->top + p->height * (1 - tti_axis_place(&p->y, v));
}

static void add_text(tti_text *t, const char *s)
{
    for (; *s != '\0'; s++) {
        if (*s == '<' || *s == '>' || *s == '&')
            tti_text_add(t, "&#%d;", *s);
        else if ((unsigned char)*s >= 0x20)
            tti_text_put(t, s, 1);
    }
}

static void draw_axes(const panel *p, bool is_last)
{
    for (int i = 0; i < p->y.n; i++) {
        double y = at_y(p, p->y.at[i]);
        tti_text_add(p->t, "<line x1=\"%d\" x2=\"%.1f\" y1=\"%.1f\" y2=\"%.1f\" class=\"grid\"/>\n",
                     LEFT, LEFT + p->width, y, y);
        tti_text_add(p->t, "<text x=\"%d\" y=\"%.1f\" text-anchor=\"end\">%s</text>\n", LEFT - 8,
                     y + 4, p->y.label[i]);
    }
    double bottom = p->top + p->height;
    for (int i = 0; i < p->x.n; i++) {
        double x = at_x(p, p->x.at[i]);
        tti_text_add(p->t,
                     "<line x1=\"%.1f\" x2=\"%.1f\" y1=\"%.1f\" y2=\"%.1f\" class=\"axis\"/>\n", x,
                     x, bottom, bottom + 4);
        tti_text_add(p->t, "<text x=\"%.1f\" y=\"%.1f\" text-anchor=\"middle\">%s</text>\n", x,
                     bottom + 18, p->x.label[i]);
    }
    tti_text_add(p->t, "<path d=\"M%d %.1fV%.1fH%.1f\" class=\"axis\"/>\n", LEFT, p->top, bottom,
                 LEFT + p->width);
    if (is_last)
        tti_text_add(p->t, "<text x=\"%.1f\" y=\"%.1f\" text-anchor=\"middle\">step</text>\n",
                     LEFT + p->width / 2, bottom + 36);
}

static void draw_line(const panel *p, const tti_point *points, int64_t n, const char *colour,
                      bool dots)
{
    tti_column c[COLUMNS];
    int used = tti_gather(points, n, &p->x, COLUMNS, c);
    if (n > used) {
        tti_text_add(p->t, "<path fill=\"%s\" opacity=\".18\" d=\"", colour);
        for (int i = 0; i < used; i++)
            tti_text_add(p->t, "%c%.1f %.1f", i == 0 ? 'M' : 'L', at_x(p, c[i].x),
                         at_y(p, c[i].high));
        for (int i = used - 1; i >= 0; i--)
            tti_text_add(p->t, "L%.1f %.1f", at_x(p, c[i].x), at_y(p, c[i].low));
        tti_text_add(p->t, "Z\"/>\n");
    }
    tti_text_add(p->t,
                 "<path fill=\"none\" stroke=\"%s\" stroke-width=\"1.8\" "
                 "stroke-linejoin=\"round\" d=\"",
                 colour);
    for (int i = 0; i < used; i++)
        tti_text_add(p->t, "%c%.1f %.1f", i == 0 ? 'M' : 'L', at_x(p, c[i].x), at_y(p, c[i].mean));
    tti_text_add(p->t, "\"/>\n");
    for (int i = 0; (dots || used == 1) && i < used; i++)
        tti_text_add(p->t, "<circle cx=\"%.1f\" cy=\"%.1f\" r=\"3\" fill=\"%s\"/>\n",
                     at_x(p, c[i].x), at_y(p, c[i].mean), colour);
}

static void draw_legend(const panel *p, const tti_curve *k)
{
    static const char *const names[] = {"training", "validation"}, *const colours[] = {TRAIN,
                                                                                       VALIDATE};
    double x = LEFT + p->width, y = p->top - 14;
    for (int i = 1; i >= 0; i--) {
        if ((i == 0 ? k->n : k->n_validation) == 0)
            continue;
        x -= i == 0 ? 82 : 88;
        tti_text_add(p->t, "<path stroke=\"%s\" stroke-width=\"2.5\" d=\"M%.0f %.0fh18\"/>\n",
                     colours[i], x, y - 4);
        tti_text_add(p->t, "<text x=\"%.0f\" y=\"%.0f\">%s</text>\n", x + 24, y, names[i]);
    }
}

// The axes of a panel for values in this range, and its name.
static panel open_panel(tti_text *t, const char *name, tti_range r, double top, bool is_last)
{
    panel p = {
        .t = t, .top = top + HEAD, .width = WIDTH - LEFT - RIGHT, .height = PANEL - HEAD - FOOT};
    tti_axis_make(r.x_low, r.x_high, 8, false, &p.x);
    double room = 0.04 * (r.y_high - r.y_low);
    bool may_log = r.y_low > 0 && r.y_high >= 30 * r.y_low;
    if (may_log)
        tti_axis_make(r.y_low / 1.1, r.y_high * 1.1, 6, true, &p.y);
    else
        tti_axis_make(r.y_low - room, r.y_high + room, 6, false, &p.y);
    tti_text_add(t, "<text x=\"%d\" y=\"%.0f\" class=\"name\">", LEFT, p.top - 14);
    add_text(t, name);
    tti_text_add(t, "</text>\n");
    draw_axes(&p, is_last);
    return p;
}

static void draw_panel(tti_text *t, const tti_curve *k, double top, bool is_last)
{
    panel p = open_panel(t, k->name, tti_curve_range(k), top, is_last);
    if (k->n > 0)
        draw_line(&p, k->points, k->n, TRAIN, false);
    if (k->n_validation > 0)
        draw_line(&p, k->validation, k->n_validation, VALIDATE, k->n_validation <= 60);
    draw_legend(&p, k);
}

static void begin_picture(tti_text *t, const char *title, int panels)
{
    int height = TOP + PANEL * TTI_MAX(panels, 1);
    tti_text_add(t,
                 "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%d\" height=\"%d\" "
                 "viewBox=\"0 0 %d %d\">\n",
                 WIDTH, height, WIDTH, height);
    tti_text_add(t, "<style>text{font:12px sans-serif;fill:#3a3f47}"
                    ".title{font-size:18px;font-weight:600;fill:#16191d}"
                    ".name{font-size:14px;font-weight:600;fill:#16191d}"
                    ".grid{stroke:#e3e6ea}.axis{stroke:#6d747e;fill:none}</style>\n"
                    "<rect width=\"100%%\" height=\"100%%\" fill=\"#fff\"/>\n");
    tti_text_add(t, "<text x=\"%d\" y=\"30\" class=\"title\">", LEFT);
    add_text(t, title);
    tti_text_add(t, "</text>\n");
    if (panels == 0)
        tti_text_add(t, "<text x=\"%d\" y=\"%d\">no steps yet</text>\n", LEFT, TOP + HEAD);
}

char *tti_curves_svg(const tti_curves *c)
{
    tti_text t = {.ctx = c->ctx};
    int panels = 0;
    for (int i = 0; i < c->n; i++)
        panels += c->curve[i].n + c->curve[i].n_validation > 0;
    begin_picture(&t, c->title, panels);
    double top = TOP;
    for (int i = 0; i < c->n; i++) {
        if (c->curve[i].n + c->curve[i].n_validation == 0)
            continue;
        draw_panel(&t, &c->curve[i], top, --panels == 0);
        top += PANEL;
    }
    tti_text_add(&t, "</svg>\n");
    return tti_text_take(&t);
}

// ---- several runs ----------------------------------------------------------------------------

static const char *colour_of(int run)
{
    static const char *const colours[] = {TRAIN,     VALIDATE,  "#1a8f4c", "#b3261e",
                                          "#7b3fb8", "#0e8f9c", "#8a6d1a", "#c2428f"};
    return colours[run % TTI_COUNT(colours)];
}

// From right to left; a name takes about 7 pixels a letter.
static void draw_labels(const panel *p, const tti_panel *k)
{
    double x = LEFT + p->width, y = p->top - 14;
    for (int i = k->n - 1; i >= 0; i--) {
        x -= 7.0 * (double)strlen(k->line[i].label) + 38;
        if (x < LEFT + 140)
            break; // no room beside the panel's name
        tti_text_add(p->t, "<path stroke=\"%s\" stroke-width=\"2.5\" d=\"M%.0f %.0fh18\"/>\n",
                     colour_of(k->line[i].run), x, y - 4);
        tti_text_add(p->t, "<text x=\"%.0f\" y=\"%.0f\">", x + 24, y);
        add_text(p->t, k->line[i].label);
        tti_text_add(p->t, "</text>\n");
    }
}

char *tti_panels_svg(tt_ctx *ctx, const char *title, const tti_panel *panels, int n)
{
    tti_text t = {.ctx = ctx};
    begin_picture(&t, title, n);
    for (int i = 0; i < n; i++) {
        const tti_panel *k = &panels[i];
        panel p = open_panel(&t, k->name, tti_panel_range(k), TOP + PANEL * i, i == n - 1);
        for (int l = 0; l < k->n; l++)
            draw_line(&p, k->line[l].points, k->line[l].n, colour_of(k->line[l].run),
                      k->line[l].n <= 20);
        draw_labels(&p, k);
    }
    tti_text_add(&t, "</svg>\n");
    return tti_text_take(&t);
}
