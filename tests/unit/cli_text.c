/*
 * cli_text.c - texts for people: help, lists of names, sizes and times, names in other scripts.
 */
#include "../command.h"
#include <stdio.h>
#include <stdlib.h>

// One record a step, so that a step takes microseconds.
static const char tiny[] = "name: %s\n"
                           "data: {train: {csv: {file: t.csv, y: y}}}\n"
                           "model: [dense: 1]\n"
                           "train: {epochs: 20, batch: 4, loss: mse, optimizer: sgd}\n";

static void write_tiny(const char *name)
{
    char job[1024];
    snprintf(job, sizeof(job), tiny, name);
    command_write("tiny.yaml", job);
    command_write("t.csv", "x,y\n1,2\n2,4\n3,6\n4,8\n");
}

// Every key of every layer, loss and so on says what it is, then its bounds.
TEST(help_of_every_kind_is_whole)
{
    static const char *const sections[] = {"model", "train.optimizer", "train.loss", "data.train",
                                           "data.transform"};
    static char list[sizeof(command_out)];
    char line[256], name[64];
    int n = 0;
    for (int s = 0; s < 5; s++) {
        snprintf(line, sizeof(line), "help %s", sections[s]);
        command_ok(line);
        memcpy(list, command_out, sizeof(list));
        for (const char *at = list; (at = strchr(at, '\n')) != NULL && at[1] != '\0'; at++) {
            if (sscanf(at + 1, "  %63[a-z0-9_]", name) != 1)
                continue;
            snprintf(line, sizeof(line), "help %s.%s", sections[s], name);
            if (command_run(line) != 0)
                continue; // a line of prose
            n++;
            ck_assert_msg(strstr(command_out, " ;") == NULL, "%s: %s", line, command_out);
        }
    }
    CHECK(n > 50);
}

TEST(help_of_a_loss_has_its_own_options)
{
    static const char *const words[] = {"smoothing", "ignore", "delta"};
    static const char *const losses[] = {
        "cross_entropy", "binary_cross_entropy", "mse", "mae", "huber", "focal", "dice"};
    char line[64];
    for (int l = 0; l < 7; l++) {
        snprintf(line, sizeof(line), "help train.loss.%s", losses[l]);
        command_ok(line);
        CHECK_HAS(command_out, "weight");
        for (int w = 0; w < 3; w++)
            ck_assert_msg((strstr(command_out, words[w]) != NULL) == (w == 0   ? l == 0
                                                                      : w == 1 ? l == 0 || l == 5
                                                                               : l == 4),
                          "%s: %s", line, command_out);
    }
}

// All names, and no line that a terminal would break.
TEST(lists_of_names_are_whole)
{
    command_write("small.yaml", command_small_job);
    CHECK_INT(command_run("train small.yaml --set model=[zzzzqqq]"), 3);
    CHECK_HAS(command_err, "unknown layer 'zzzzqqq'\n  possible: residual, dense, ");
    CHECK_HAS(command_err, " autoencoder\n");
    for (const char *s = command_err; *s != '\0'; s += strcspn(s, "\n") + 1)
        ck_assert_msg(strcspn(s, "\n") <= 120, "%s", s);
    CHECK_INT(command_run("train small.yaml --set model.1.dense.init=zzzzqqq"), 3);
    CHECK_HAS(command_err, "'zzzzqqq' is not one of zeros, constant, ");
    CHECK_HAS(command_err, "lecun_uniform,\n  lecun_normal\n");
}

TEST(a_short_step_has_its_time)
{
    char number[16] = "", unit[8] = "";
    write_tiny("tiny");
    command_ok("train tiny.yaml");
    const char *at = strstr(command_out, "median step ");
    CHECK(at != NULL && sscanf(at, "median step %15s %7[a-z]", number, unit) == 2);
    ck_assert_msg(strncmp(number, "0.0", 3) != 0, "median step %s %s", number, unit);
    CHECK(strcmp(unit, "us") == 0 || strcmp(unit, "ms") == 0);
}

// Names in any script name folders; what a shell or a terminal would mind does not.
TEST(names_of_other_scripts_survive)
{
    static const char *const names[][2] = {{"größe", "größe-001"},
                                           {"日本語 2", "日本語-2-001"},
                                           {"a/b;c", "a-b-c-001"},
                                           {"\"x\\x80\\u0085y\"", "x--y-001"}};
    char path[128];
    for (int i = 0; i < 4; i++) {
        write_tiny(names[i][0]);
        command_ok("train tiny.yaml --quiet");
        snprintf(path, sizeof(path), "runs/%s/job.yaml", names[i][1]);
        ck_assert_msg(command_left(path), "%s is not there", path);
    }
    command_ok("eval größe --set data.test.csv.file=t.csv --json");
    CHECK_HAS(command_out, "\"loss\"");
}

TEST(a_name_that_no_folder_can_have_is_refused)
{
    char name[300];
    memset(name, 'n', 299);
    name[241] = '\0';
    write_tiny(name);
    CHECK_INT(command_run("train tiny.yaml"), 3);
    CHECK_HAS(command_err, "has 241 bytes; at most 240 fit into the name of a run folder");
    CHECK(!command_left("runs"));
    command_ok("train tiny.yaml --quiet --run here");
    name[240] = '\0';
    write_tiny(name);
    command_ok("train tiny.yaml --quiet");
    command_ok("train tiny.yaml --quiet --resume --set train.epochs=21");
}
