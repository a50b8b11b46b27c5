/*
 * fit_lines.c - lines of progress for programs: tt_fit(.progress).
 */
#include "fit_models.h"
#include "test.h"
#include <stdio.h>

// What a fit writes to a stream; the bytes on standard error are counted.
static char *shown(tt_fit_opts o, tt_status want, off_t *on_stderr)
{
    static char text[4096];
    char path[600];
    snprintf(path, sizeof(path), "%s/err", test_folder());
    FILE *out = tmpfile(), *err = freopen(path, "w+", stderr);
    CHECK(out != NULL && err != NULL);
    tt_ctx *ctx = tt_open(.threads = 1);
    tt_data *d = fit_points(ctx);
    o.opts_size = sizeof(o);
    o.progress = out;
    o.validate = fit_points(ctx);
    CHECK(tt_fit_with(fit_line(ctx), d, &o) == want);
    (void)tt_close(ctx);
    *on_stderr = ftello(err);
    rewind(out);
    size_t n = fread(text, 1, sizeof(text) - 1, out);
    text[n] = '\0';
    fclose(out);
    return text;
}

TEST(progress_goes_to_the_programs_stream_as_the_command_writes_it)
{
    off_t on_stderr;
    char *text = shown((tt_fit_opts){.epochs = 2}, TT_OK, &on_stderr);
    char *second = strchr(text, '\n');
    CHECK(on_stderr == 0); // the lines per epoch of programs that ask for nothing
    CHECK(second != NULL && strncmp(text, "epoch 1/2  loss 0.", 18) == 0);
    CHECK(strncmp(second, "\nepoch 2/2  loss 0.", 19) == 0);
    CHECK(strstr(text, "  mae 0.") != NULL && strstr(text, "  validation loss 0.") != NULL);
    CHECK(strchr(second + 1, '\n') == text + strlen(text) - 1); // two lines
    CHECK(strchr(text, '\r') == NULL);                          // it is not a terminal
}

TEST(progress_counts_steps_where_the_fit_does)
{
    off_t on_stderr;
    char *text = shown((tt_fit_opts){.steps = 3, .validate_every = 3}, TT_OK, &on_stderr);
    CHECK(strstr(text, "step 3/3  loss 0.") != NULL);
}
