/*
 * plot_compare.c - several runs in one picture: which values go into which panel.
 */
#include "record/record.h"
#include <math.h>
#include <stdio.h>
#include <string.h>

static tti_panel *panel_of(tti_panel *panels, int *n, const char *name)
{
    for (int i = 0; i < *n; i++)
        if (strcmp(panels[i].name, name) == 0)
            return &panels[i];
    if (*n == TTI_MAX_PANELS)
        return NULL;
    tti_panel *p = &panels[(*n)++];
    *p = (tti_panel){.n = 0};
    snprintf(p->name, sizeof(p->name), "%s", name);
    return p;
}

static void add_line(tti_panel *p, const char *label, int run, const tti_point *points, int64_t n)
{
    if (p != NULL && n > 0 && p->n < TTI_MAX_LINES)
        p->line[p->n++] = (tti_line){.label = label, .run = run, .points = points, .n = n};
}

// Both panels of a metric stand one after the other, in the order in which runs name metrics.
int tti_panels_make(const tti_curves *const *runs, const char *const *labels, int n,
                    tti_panel out[TTI_MAX_PANELS])
{
    int n_panels = 0, kept = 0;
    for (int r = 0; r < n; r++) {
        for (int i = 0; i < runs[r]->n; i++) {
            const tti_curve *k = &runs[r]->curve[i];
            char name[80];
            add_line(panel_of(out, &n_panels, k->name), labels[r], r, k->points, k->n);
            snprintf(name, sizeof(name), "validation %s", k->name);
            add_line(panel_of(out, &n_panels, name), labels[r], r, k->validation, k->n_validation);
        }
    }
    for (int i = 0; i < n_panels; i++) // those that no run has values for
        if (out[i].n > 0)
            out[kept++] = out[i];
    return kept;
}

tti_range tti_panel_range(const tti_panel *p)
{
    tti_range r = {INFINITY, -INFINITY, INFINITY, -INFINITY};
    for (int l = 0; l < p->n; l++) {
        for (int64_t i = 0; i < p->line[l].n; i++) {
            tti_point at = p->line[l].points[i];
            r.x_low = fmin(r.x_low, at.x);
            r.x_high = fmax(r.x_high, at.x);
            r.y_low = fmin(r.y_low, at.y);
            r.y_high = fmax(r.y_high, at.y);
        }
    }
    return r;
}
