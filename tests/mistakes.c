/*
 * mistakes.c - makes typical mistakes and looks at the answers.
 */
#include "mistakes.h"
#include <stdio.h>
#include <stdlib.h>

// A job for rows that replace one of its lines by sed: every line is a thing of its own.
static const char job[] = "name: job\n"
                          "data:\n"
                          "  train: {digits: {count: 64}}\n"
                          "model:\n"
                          "  - flatten\n"
                          "  - dense: 10\n"
                          "train:\n"
                          "  epochs: 1\n"
                          "  batch: 32\n"
                          "  loss: cross_entropy\n"
                          "  optimizer: {adam: {lr: 1e-3}}\n";

static void check_text(const mistake *m, const char *words)
{
    static char both[sizeof(command_out) + sizeof(command_err)];
    snprintf(both, sizeof(both), "%s%s", command_err, command_out);
    ck_assert_msg(words == NULL || strstr(both, words) != NULL, "%s: no '%s' in\n%.4000s", m->what,
                  words, both);
}

void mistakes_make(const mistake *rows, int n)
{
    command_write("small.yaml", command_small_job);
    command_write("job.yaml", job);
    for (int i = 0; i < n; i++) {
        const mistake *m = &rows[i];
        char line[4096];
        snprintf(line, sizeof(line),
                 "rm -rf at && mkdir at && for f in *.yaml *.npy; do if [ -e $f ]; then cp $f at; "
                 "fi; done; cd at; J=small.yaml; { %s\n} >setup 2>&1 || { cat setup; exit 99; }; "
                 "%s",
                 m->setup != NULL ? m->setup : ":", m->line);
        int code = command_shell(line);
        ck_assert_msg(code == m->code, "%s: exit code %d, not %d:\n%s%s", m->what, code, m->code,
                      command_err, command_out);
        check_text(m, m->culprit);
        check_text(m, m->hint);
        ck_assert_msg(strstr(command_err, "tt_") == NULL, "%s: a name of C:\n%s", m->what,
                      command_err);
        int told = command_count(command_err, "\ntutti: error: ") +
                   (strncmp(command_err, "tutti: error: ", 14) == 0);
        ck_assert_msg(told <= 1, "%s: told twice:\n%s", m->what, command_err);
    }
}
