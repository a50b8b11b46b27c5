/*
 * escape.c - words of files, of their names and of other processes reach no terminal with control
 * characters in them.
 */
#include "../command.h"
#include "base/base.h"
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define EVIL "\033]0;owned\007\033[2J"

static void shows(const char *text, const char *as)
{
    char out[256];
    size_t n = tti_escape(out, sizeof(out), text, strlen(text), false);
    CHECK_STR(out, as);
    CHECK_INT(n, strlen(as));
}

TEST(escape_leaves_text_and_shows_the_rest)
{
    shows("", "");
    shows("plain text, 100 % of it\n\ttabbed", "plain text, 100 % of it\n\ttabbed");
    shows("\xc3\xa9\xe2\x82\xac\xf0\x9f\x99\x82", "\xc3\xa9\xe2\x82\xac\xf0\x9f\x99\x82");
    shows("\033[31mred", "\\x1b[31mred");
    shows("a\rb\x7f\x01", "a\\x0db\\x7f\\x01");
    shows("\x9b\xff\xc3", "\\x9b\\xff\\xc3"); // no UTF-8
    shows("\xc2\x9b", "\\xc2\\x9b");          // a control character in UTF-8
    shows("\xe2\x80\xae"
          "evil",
          "\\xe2\\x80\\xaeevil"); // from right to left
    char small[8];
    CHECK_INT(tti_escape(small, sizeof(small), "ab\033cdef", 7, false), 7);
    CHECK_STR(small, "ab\\x1bc");
    char out[64];
    tti_escape(out, sizeof(out), "\033[33mo\033[m\033[2J", 13, true);
    CHECK_STR(out, "\033[33mo\033[m\\x1b[2J");
}

TEST(escape_is_in_every_error_and_log_line)
{
    tt_ctx *ctx = test_ctx();
    (void)TT_FAIL(ctx, TT_EIO, "cannot open '%s'", EVIL);
    CHECK_STR(tt_last_error(ctx).message, "cannot open '\\x1b]0;owned\\x07\\x1b[2J'");
    CHECK(tt_close(ctx) == TT_EIO);
}

static void is_clean(const char *what)
{
    CHECK(strpbrk(command_err, "\033\007\r") == NULL);
    CHECK(strpbrk(command_out, "\033\007\r") == NULL);
    ck_assert_msg(strstr(command_err, "\\x1b") != NULL || strstr(command_out, "\\x1b") != NULL ||
                      strstr(command_out, "a?[2Jb") != NULL,
                  "%s: %s %s", what, command_out, command_err);
}

// A file of tensors with one whose name is not meant for terminals.
static void write_tensors(const char *name)
{
    static const char head[] = "{\"a\\u001b[2Jb\":{\"dtype\":\"F32\",\"shape\":[1],"
                               "\"data_offsets\":[0,4]}}       ";
    char path[400];
    uint64_t n = (sizeof(head) - 1) / 8 * 8;
    snprintf(path, sizeof(path), "%s/%s", test_folder(), name);
    FILE *f = fopen(path, "w");
    CHECK(f != NULL && fwrite(&n, 8, 1, f) == 1 && fwrite(head, 1, n, f) == n &&
          fwrite("\0\0\0\0", 1, 4, f) == 4 && fclose(f) == 0);
}

TEST(escape_is_in_what_the_command_prints)
{
    (void)command_path();
    CHECK(command_run("train no" EVIL ".yaml") != 0);
    is_clean("a file that is not there");
    CHECK(command_run("train" EVIL) != 0);
    is_clean("a verb");
    CHECK(command_run("train small.yaml --" EVIL) != 0);
    is_clean("a flag");
    command_write("evil.yaml", "name: evil\nmodel: [flatten, \"\\e[2J\"]\n");
    CHECK(command_run("train evil.yaml") != 0);
    is_clean("a layer");
    write_tensors("evil.safetensors");
    command_ok("inspect evil.safetensors");
    is_clean("a tensor's name");
    command_write("small.yaml", command_small_job);
    command_ok("train small.yaml --run run" EVIL);
    is_clean("a run's name");
}
