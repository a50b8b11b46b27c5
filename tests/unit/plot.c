/*
 * plot.c - curves read back from events, axes, and both kinds of drawing.
 */
#include "../test.h"
#include "record/record.h"
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

static char path[400];

static tti_curves read_text(tt_ctx *ctx, const char *text)
{
    tti_curves c;
    snprintf(path, sizeof(path), "%s/events.jsonl", test_folder());
    FILE *f = fopen(path, "w");
    fputs(text, f);
    fclose(f);
    CHECK_OK(tti_curves_read(ctx, path, &c));
    return c;
}

static const char run[] =
    "{\"time\": 1, \"event\": \"begin\", \"name\": \"digits <1>\", \"steps\": 6}\n"
    "{\"time\": 1, \"event\": \"step\", \"step\": 1, \"lr\": 0.1, \"accuracy\": 0.25, \"loss\": "
    "2}\n"
    "{\"time\": 1, \"event\": \"step\", \"step\": 2, \"accuracy\": 0.5, \"loss\": 1}\n"
    "{\"time\": 1, \"event\": \"epoch\", \"step\": 2, \"loss\": 1.5, \"validation_loss\": 1.25}\n"
    "this is no JSON\n"
    "[1, 2]\n"
    "{\"time\": 1, \"event\": \"step\", \"step\": 3, \"loss\": null}\n"
    "{\"time\": 1, \"event\": \"step\", \"step\": 4, \"loss\": 0.5}\n"
    "{\"time\": 1, \"event\": \"validation\", \"step\": 4, \"validation_loss\": 0.75}\n";

TEST(curves_are_read_from_events)
{
    tt_ctx *ctx = test_ctx();
    tti_curves c = read_text(ctx, run);
    CHECK_INT(c.n, 2);
    CHECK_STR(c.curve[0].name, "loss"); // first, though accuracy came before it
    CHECK_STR(c.curve[1].name, "accuracy");
    CHECK_INT(c.curve[0].n, 3);
    CHECK(c.curve[0].points[0].x == 1 && c.curve[0].points[0].y == 2);
    CHECK(c.curve[0].points[1].x == 2 && c.curve[0].points[1].y == 1.5); // the epoch's value
    CHECK(c.curve[0].points[2].x == 4);
    CHECK_INT(c.curve[0].n_validation, 2);
    CHECK(c.curve[0].validation[1].x == 4 && c.curve[0].validation[1].y == 0.75);
    CHECK_INT(c.curve[1].n, 2);
    CHECK_INT(c.curve[1].n_validation, 0);
    tti_curves_free(&c);
    CHECK_OK(tt_close(ctx));
}

// The loss of a step alone; and validations once, though an epoch tells the last one again.
TEST(curves_have_no_jumps_and_no_echoes)
{
    tt_ctx *ctx = test_ctx();
    tti_curves c =
        read_text(ctx, "{\"event\": \"step\", \"step\": 1, \"loss\": 9, \"step_loss\": 2}\n"
                       "{\"event\": \"validation\", \"step\": 1, \"loss\": 8, \"step_loss\": 7,"
                       " \"validation_loss\": 3}\n"
                       "{\"event\": \"epoch\", \"step\": 2, \"loss\": 9, \"step_loss\": 1,"
                       " \"validation_loss\": 3}\n");
    CHECK_INT(c.n, 1);
    CHECK_INT(c.curve[0].n, 2);
    CHECK(c.curve[0].points[0].y == 2 && c.curve[0].points[1].y == 1);
    CHECK_INT(c.curve[0].n_validation, 1);
    CHECK(c.curve[0].validation[0].x == 1 && c.curve[0].validation[0].y == 3);
    tti_curves_free(&c);
    CHECK_OK(tt_close(ctx));
}

TEST(a_resumed_run_replaces_what_it_does_again)
{
    tt_ctx *ctx = test_ctx();
    char text[2000];
    snprintf(text, sizeof(text),
             "%s{\"event\": \"begin\", \"name\": \"digits\"}\n"
             "{\"event\": \"step\", \"step\": 2, \"loss\": 7}\n"
             "{\"event\": \"step\", \"step\": 3, \"loss\": 6}\n",
             run);
    tti_curves c = read_text(ctx, text);
    CHECK_INT(c.curve[0].n, 3);
    CHECK(c.curve[0].points[1].x == 2 && c.curve[0].points[1].y == 7);
    CHECK(c.curve[0].points[2].x == 3 && c.curve[0].points[2].y == 6);
    CHECK_INT(c.curve[0].n_validation, 0);
    tti_curves_free(&c);
    CHECK_OK(tt_close(ctx));
}

TEST(a_missing_file_is_named)
{
    tt_ctx *ctx = test_ctx();
    tti_curves c;
    CHECK(tti_curves_read(ctx, "/nowhere/events.jsonl", &c) == TT_EIO);
    CHECK_MESSAGE(ctx, "cannot open '/nowhere/events.jsonl'");
    CHECK(tt_close(ctx) == TT_EIO);
}

static void check_axis(double low, double high, int wanted, bool may_log, const char *labels)
{
    tti_axis a;
    char all[400] = "";
    tti_axis_make(low, high, wanted, may_log, &a);
    for (int i = 0; i < a.n; i++) {
        double place = tti_axis_place(&a, a.at[i]);
        CHECK(place >= -0.01 && place <= 1.01);
        snprintf(all + strlen(all), sizeof(all) - strlen(all), "%s ", a.label[i]);
    }
    CHECK_STR(all, labels);
}

TEST(axes_have_round_numbers)
{
    check_axis(0, 10, 5, false, "0 2 4 6 8 10 ");
    check_axis(0, 1, 5, false, "0 0.2 0.4 0.6 0.8 1 ");
    check_axis(-1, 1, 4, false, "-1 -0.5 0 0.5 1 ");
    check_axis(0.912, 0.987, 4, false, "0.92 0.94 0.96 0.98 ");
    check_axis(1, 46900, 5, false, "10k 20k 30k 40k ");
    check_axis(0, 3.2e6, 3, false, "0 2M ");
    check_axis(1, 1, 4, false, "0.95 1 1.05 ");
    check_axis(0, 0, 4, false, "-0.5 0 0.5 ");
    check_axis(0.01, 2, 6, true, "0.01 0.02 0.05 0.1 0.2 0.5 1 2 ");
    check_axis(1e-6, 10, 4, true, "1.0e-06 0.0001 0.01 1 ");
    check_axis(0.5, 2, 4, true, "0.5 1 1.5 2 "); // not far enough apart for a logarithm
    check_axis(1e-90, 2e-90, 2, false, "1.0e-90 1.5e-90 2.0e-90 ");
}

// No column of the drawing is beyond the width.
static int widest(const char *s)
{
    int most = 0, n = 0;
    for (; *s != '\0'; s++) {
        n = *s == '\n' ? 0 : n + (((unsigned char)*s & 0xC0) != 0x80); // UTF-8: count leaders
        most = n > most ? n : most;
    }
    return most;
}

TEST(text_plots_fit_their_width)
{
    tt_ctx *ctx = test_ctx();
    tti_curves c = read_text(ctx, run);
    for (int width = 20; width <= 200; width += 45) {
        for (int plain = 0; plain < 2; plain++) {
            char *s = tti_curves_text(&c, &(tti_text_plot){width, 14, plain, false});
            CHECK(s != NULL);
            CHECK(widest(s) <= width || widest(s) <= 40); // the legend's line has its own length
            CHECK(strstr(s, "loss") != NULL && strstr(s, "validation") != NULL);
            CHECK(strchr(s, 'o') != NULL);
            for (const char *p = s; plain && *p != '\0'; p++)
                CHECK((*p >= 0x20 && *p < 0x7F) || *p == '\n');
            tti_free(ctx, s);
        }
    }
    char *tiny = tti_curves_text(&c, &(tti_text_plot){0, 0, false, true});
    CHECK(tiny != NULL);
    tti_free(ctx, tiny);
    tti_curves_free(&c);
    CHECK_OK(tt_close(ctx));
}

// The line goes where the values are: falling from the top left to the bottom right.
TEST(text_plots_show_the_values)
{
    tt_ctx *ctx = test_ctx();
    tti_curves c = read_text(ctx, "{\"event\": \"step\", \"step\": 0, \"loss\": 10}\n"
                                  "{\"event\": \"step\", \"step\": 20, \"loss\": 0}\n");
    char *s = tti_curves_text(&c, &(tti_text_plot){31, 14, true, false});
    CHECK_STR(s, "loss   * training\n"
                 "       10|**\n"
                 "         | ***\n"
                 "         |   ***\n"
                 "         |     ***\n"
                 "         |       ***\n"
                 "        5|         ***\n"
                 "         |           ***\n"
                 "         |             ***\n"
                 "         |               ***\n"
                 "         |                 ***\n"
                 "        0|                   **\n"
                 "         +---------------------\n"
                 "          0        10        20\n");
    tti_free(ctx, s);
    tti_curves_free(&c);
    CHECK_OK(tt_close(ctx));
}

TEST(pictures_are_well_formed)
{
    tt_ctx *ctx = test_ctx();
    tti_curves c = read_text(ctx, run);
    snprintf(c.title, sizeof(c.title), "digits <1>");
    char *s = tti_curves_svg(&c);
    CHECK(s != NULL && strncmp(s, "<svg ", 5) == 0);
    CHECK(strstr(s, "digits &#60;1&#62;</text>") != NULL);
    CHECK(strstr(s, ">loss</text>") != NULL && strstr(s, ">accuracy</text>") != NULL);
    CHECK(strstr(s, ">validation</text>") != NULL && strstr(s, ">step</text>") != NULL);
    CHECK(strstr(s, "nan") == NULL && strstr(s, "inf") == NULL);
    CHECK_STR(s + strlen(s) - 7, "</svg>\n");
    tti_free(ctx, s);
    tti_curves_free(&c);

    c = read_text(ctx, ""); // nothing happened yet
    s = tti_curves_svg(&c);
    CHECK(s != NULL && strstr(s, "no steps yet") != NULL);
    tti_free(ctx, s);
    s = tti_curves_text(&c, &(tti_text_plot){80, 20, false, false});
    CHECK_STR(s, "no steps yet\n");
    tti_free(ctx, s);
    tti_curves_free(&c);
    CHECK_OK(tt_close(ctx));
}

// Many points, equal values, one point, extreme numbers.
TEST(pictures_of_odd_runs)
{
    static const char *const runs[] = {
        "{\"event\": \"step\", \"step\": 5, \"loss\": 3}\n",
        "{\"event\": \"step\", \"step\": 1, \"loss\": 1e99}\n"
        "{\"event\": \"step\", \"step\": 2, \"loss\": -1e99}\n",
        "{\"event\": \"step\", \"step\": 1, \"loss\": 1e308}\n",
        "{\"event\": \"step\", \"step\": 1e300, \"loss\": 1}\n",
        "{\"event\": \"step\", \"step\": 1, \"loss\": 1e-99}\n"
        "{\"event\": \"step\", \"step\": 900000000000, \"loss\": 1e99}\n",
    };
    tt_ctx *ctx = test_ctx();
    for (int i = 0; i < 5; i++) {
        tti_curves c = read_text(ctx, runs[i]);
        char *svg = tti_curves_svg(&c);
        char *text = tti_curves_text(&c, &(tti_text_plot){60, 12, false, false});
        CHECK(svg != NULL && text != NULL);
        CHECK(strstr(svg, "nan") == NULL && strstr(svg, "inf") == NULL);
        tti_free(ctx, svg);
        tti_free(ctx, text);
        tti_curves_free(&c);
    }
    snprintf(path, sizeof(path), "%s/events.jsonl", test_folder());
    FILE *f = fopen(path, "w");
    for (int i = 0; i < 20000; i++)
        fprintf(f, "{\"event\": \"step\", \"step\": %d, \"loss\": %g}\n", i, 1 + i % 7 * 0.1);
    fclose(f);
    tti_curves c;
    CHECK_OK(tti_curves_read(ctx, path, &c));
    CHECK_INT(c.curve[0].n, 20000);
    char *svg = tti_curves_svg(&c);
    CHECK(strlen(svg) < 50000); // gathered, not one element a step
    tti_free(ctx, svg);
    tti_curves_free(&c);
    CHECK_OK(tt_close(ctx));
}
