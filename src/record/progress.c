/*
 * progress.c - the lines that show a fit: on a terminal one line per epoch that is redrawn,
 * elsewhere a line at the end of each epoch or validation, and one every ten seconds.
 */
#include "record/progress.h"
#include "record/record.h"
#include <math.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#define DRAW_NS  50000000               // a living line is drawn at most this often
#define PLAIN_NS (INT64_C(10000000000)) // plain lines within an epoch
#define BAR      24

// ---- numbers as people read them -------------------------------------------------------------

void tti_rate_text(double v, char out[32])
{
    char digits[32];
    if (!(v >= 0) || v >= 1e15) {
        snprintf(out, 32, "-");
        return;
    }
    int n = snprintf(digits, sizeof(digits), v < 10 ? "%.1f" : "%.0f", v), to = 0;
    for (int i = 0; i < n; i++) {
        if (i > 0 && v >= 1000 && (n - i) % 3 == 0)
            out[to++] = ',';
        out[to++] = digits[i];
    }
    out[to] = '\0';
}

void tti_time_text(double seconds, char out[32])
{
    if (!(seconds < 1e9))
        snprintf(out, 32, "-");
    else if (seconds < 0.0009995)
        snprintf(out, 32, "%.3g us", seconds * 1e6);
    else if (seconds < 0.9995)
        snprintf(out, 32, "%.0f ms", seconds * 1e3);
    else if (seconds < 9.95)
        snprintf(out, 32, "%.1f s", seconds);
    else if (seconds < 59.5)
        snprintf(out, 32, "%.0f s", seconds);
    else if (seconds < 3570)
        snprintf(out, 32, "%d min %d s", (int)(seconds + 0.5) / 60, (int)(seconds + 0.5) % 60);
    else
        snprintf(out, 32, "%d h %d min", (int)(seconds + 30) / 3600,
                 (int)(seconds + 30) % 3600 / 60);
}

void tti_step_text(double ms, char out[32])
{
    if (ms < 0.0995) // two digits would be 0.00 of a small model
        snprintf(out, 32, "%.3g us", ms * 1e3);
    else
        snprintf(out, 32, "%.2f ms", ms);
}

void tti_value_text(double v, char out[32])
{
    snprintf(out, 32, fabs(v) < 1e7 || !isfinite(v) ? "%.4f" : "%.4g", v);
}

// ---- values of an event ----------------------------------------------------------------------

static double number(const tt_event *ev, const char *name)
{
    for (int i = 0; i < ev->n_pairs; i++)
        if (ev->pairs[i].text == NULL && strcmp(ev->pairs[i].name, name) == 0)
            return ev->pairs[i].number;
    return 0;
}

static const char *text(const tt_event *ev, const char *name)
{
    for (int i = 0; i < ev->n_pairs; i++)
        if (ev->pairs[i].text != NULL && strcmp(ev->pairs[i].name, name) == 0)
            return ev->pairs[i].text;
    return NULL;
}

static bool is_validation(const char *name)
{
    return strncmp(name, "validation_", 11) == 0;
}

static bool is_shown(const tt_pair *p, bool validation)
{
    return p->text == NULL && is_validation(p->name) == validation && tti_is_measure(p->name);
}

// ---- pieces of a line ------------------------------------------------------------------------

#define MAX_PIECES 32
typedef struct pieces {
    int n;
    char text[MAX_PIECES][64];
    int rank[MAX_PIECES]; // those with the highest are left out first where there is no room
} pieces;

static void add(pieces *l, int rank, const char *fmt, ...) TT_PRINTF(3, 4);
static void add(pieces *l, int rank, const char *fmt, ...)
{
    va_list ap;
    if (l->n == MAX_PIECES)
        return;
    va_start(ap, fmt);
    vsnprintf(l->text[l->n], sizeof(l->text[0]), fmt, ap);
    va_end(ap);
    l->rank[l->n++] = rank;
}

static int length(const pieces *l)
{
    int n = 0;
    for (int i = 0; i < l->n; i++)
        n += (int)strlen(l->text[i]) + (n > 0 && l->text[i][0] != '\0' ? 2 : 0);
    return n;
}

// Leaves pieces out until the line has at most width columns; 0: no limit.
static void join(pieces *l, int width, char *out, size_t room)
{
    while (width > 0 && length(l) > width) {
        int worst = 0;
        for (int i = 1; i < l->n; i++)
            if (l->text[i][0] != '\0' && l->rank[i] >= l->rank[worst])
                worst = i;
        if (worst == 0)
            break;
        l->text[worst][0] = '\0';
    }
    size_t n = 0;
    out[0] = '\0';
    for (int i = 0; i < l->n && n < room; i++)
        if (l->text[i][0] != '\0')
            n += (size_t)snprintf(out + n, room - n, "%s%s", n > 0 ? "  " : "", l->text[i]);
    if (width > 0 && (size_t)width < room)
        out[width] = '\0';
}

static void add_head(pieces *l, const tt_event *ev)
{
    if (number(ev, "epochs") > 0 && strcmp(ev->kind, "validation") != 0)
        add(l, 0, "epoch %.0f/%.0f", number(ev, "epoch"), number(ev, "epochs"));
    else
        add(l, 0, "step %.0f/%.0f", number(ev, "step"), number(ev, "steps"));
}

static void add_measures(pieces *l, const tt_event *ev, bool validation)
{
    bool first = true;
    for (int i = 0; i < ev->n_pairs; i++) {
        const tt_pair *p = &ev->pairs[i];
        if (!is_shown(p, validation))
            continue;
        const char *name = validation ? p->name + 11 : p->name;
        bool is_loss = strcmp(name, "loss") == 0;
        char value[32];
        tti_value_text(p->number, value);
        add(l, is_loss ? 2 : 4, "%s%.30s %s", validation && first ? "validation " : "", name,
            value);
        first = false;
    }
}

static void add_rate(pieces *l, const tt_event *ev)
{
    char rate[32];
    double v = number(ev, "samples_per_second");
    if (v <= 0)
        return;
    tti_rate_text(v, rate);
    add(l, 5, "%s samples/s", rate);
}

static double part_done(const tt_event *ev)
{
    bool by_epochs = number(ev, "epochs") > 0;
    double done = number(ev, by_epochs ? "rows" : "step");
    double all = number(ev, by_epochs ? "epoch_rows" : "steps");
    return all > 0 ? TTI_MIN(done / all, 1.0) : 0;
}

static void add_bar(pieces *l, double part, int width)
{
    char bar[BAR + 1];
    int full = (int)(part * width);
    for (int i = 0; i < width; i++)
        bar[i] = i < full ? '=' : i == full ? '>' : ' ';
    bar[width] = '\0';
    add(l, 6, "[%s]", bar);
}

static void add_time_left(pieces *l, const tti_progress *p, const tt_event *ev)
{
    char left[32];
    double done = number(ev, "step") - p->first_step;
    double rate = done > 0 ? (number(ev, "seconds") - p->first_seconds) / done : 0;
    double seconds = rate * (number(ev, "steps") - number(ev, "step"));
    if (done <= 0 || seconds <= 0)
        return;
    tti_time_text(seconds, left);
    if (seconds < 9.95) // tenths would only flicker
        snprintf(left, sizeof(left), "%.0f s", ceil(seconds));
    add(l, 3, "%s left", left);
}

// ---- showing ---------------------------------------------------------------------------------

int tti_terminal_width(int fd)
{
    struct winsize w;
    if (ioctl(fd, TIOCGWINSZ, &w) != 0 || w.ws_col == 0)
        return 80;
    return w.ws_col;
}

void tti_progress_clear(tti_progress *p)
{
    if (p->is_drawn)
        fputs("\r\033[K", p->out);
    p->is_drawn = false;
    fflush(p->out);
}

static void draw(tti_progress *p, const tt_event *ev)
{
    char line[512];
    int width = TTI_MAX(tti_terminal_width(fileno(p->out)) - 1, 0); // the last column wraps
    pieces l = {.n = 0};
    add_head(&l, ev);
    add_bar(&l, part_done(ev), BAR);
    add(&l, 1, "%3.0f%%", 100 * part_done(ev));
    add_measures(&l, ev, false);
    add_rate(&l, ev);
    add_time_left(&l, p, ev);
    for (int bar = BAR; bar > 6 && length(&l) > width; bar -= 6) { // a shorter bar may be enough
        pieces shorter = {.n = 0};
        add_bar(&shorter, part_done(ev), bar - 6);
        memcpy(l.text[1], shorter.text[0], sizeof(l.text[1]));
    }
    join(&l, width, line, sizeof(line));
    fprintf(p->out, "\r%s\033[K", width > 0 ? line : "");
    fflush(p->out);
    p->is_drawn = true;
}

// A line that stays: the end of an epoch, a validation, or a sign of life in a file.
static void put_line(tti_progress *p, const tt_event *ev, bool is_end)
{
    char line[1024], took[32];
    pieces l = {.n = 0};
    double now = number(ev, "seconds");
    add_head(&l, ev);
    if (!is_end)
        add(&l, 1, "%.0f%%", 100 * part_done(ev));
    add_measures(&l, ev, false);
    if (is_end && (strcmp(ev->kind, "validation") == 0 || !p->validates_alone))
        add_measures(&l, ev, true);
    add_rate(&l, ev);
    if (is_end) {
        tti_time_text(now - p->line_seconds, took);
        add(&l, 0, "%s", took);
        if (text(ev, "best") != NULL)
            add(&l, 0, "best");
        p->line_seconds = now;
    } else {
        add_time_left(&l, p, ev);
    }
    join(&l, 0, line, sizeof(line));
    tti_progress_clear(p);
    fprintf(p->out, "%s\n", line);
    fflush(p->out);
}

static void on_step(tti_progress *p, const tt_event *ev)
{
    int64_t now = tti_now_ns();
    if (!p->has_first) {
        p->has_first = true;
        p->first_step = number(ev, "step");
        p->first_seconds = number(ev, "seconds");
        p->shown_ns = p->is_live ? 0 : now;
    }
    if (now - p->shown_ns < (p->is_live ? DRAW_NS : PLAIN_NS))
        return;
    p->shown_ns = now;
    if (p->is_live)
        draw(p, ev);
    else
        put_line(p, ev, false);
}

// Where validations have lines of their own, an epoch's line does not repeat them; counted in steps
// it may have nothing else to tell.
static void on_end(tti_progress *p, const tt_event *ev)
{
    bool is_validation = strcmp(ev->kind, "validation") == 0;
    p->validates_alone |= is_validation;
    if (!is_validation && number(ev, "epochs") == 0 && number(ev, "step") == p->line_step)
        return;
    put_line(p, ev, true);
    p->line_step = number(ev, "step");
    p->shown_ns = tti_now_ns();
}

// An event that says itself what happened: early stopping, a plateau, another membership.
static void on_message(tti_progress *p, const tt_event *ev)
{
    const char *message = text(ev, "message");
    tti_progress_clear(p);
    fprintf(p->out, "%s\n", message != NULL ? message : ev->kind);
    fflush(p->out);
}

void tti_progress_event(tti_progress *p, const tt_event *ev)
{
    if (strcmp(ev->kind, "log") == 0 || strcmp(ev->kind, "end") == 0)
        tti_progress_clear(p); // what follows may go to the same terminal
    else if (strcmp(ev->kind, "step") == 0)
        on_step(p, ev);
    else if (strcmp(ev->kind, "epoch") == 0 || strcmp(ev->kind, "validation") == 0)
        on_end(p, ev);
    else if (strcmp(ev->kind, "early_stop") == 0 || strcmp(ev->kind, "plateau") == 0 ||
             strcmp(ev->kind, "membership") == 0)
        on_message(p, ev);
}

void tti_progress_init(tti_progress *p, FILE *out)
{
    const char *term = tti_env("TERM");
    *p = (tti_progress){.out = out};
    p->is_live = isatty(fileno(out)) && (term == NULL || strcmp(term, "dumb") != 0);
}
