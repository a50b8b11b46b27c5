/*
 * progress.h - showing a fit while it trains, for the command and for programs that ask for it, and
 * numbers as people read them.
 */
#ifndef TUTTI_RECORD_PROGRESS_H
#define TUTTI_RECORD_PROGRESS_H

#include "base/base.h"
#include <stdio.h>

typedef struct tti_progress {
    FILE *out;
    bool is_live;  // a terminal: the line is redrawn
    bool is_drawn; // such a line stands in the terminal's last row
    bool has_first;
    double first_step, first_seconds; // where the rate of steps is counted from
    double line_seconds, line_step;   // of the line before
    bool validates_alone;             // validations come by themselves, not with epochs
    int64_t shown_ns;
} tti_progress;

void tti_progress_init(tti_progress *p, FILE *out);
void tti_progress_event(tti_progress *p, const tt_event *ev); // each event of the context
void tti_progress_clear(tti_progress *p);                     // removes the line that is redrawn

int tti_terminal_width(int fd); // 80 where it is no terminal

void tti_value_text(double v, char out[32]);      // a loss or metric: "0.0812", "4.505e+28"
void tti_rate_text(double v, char out[32]);       // "41,200"
void tti_time_text(double seconds, char out[32]); // "3 min 20 s"
void tti_step_text(double ms, char out[32]);      // "1.25 ms"

#endif
