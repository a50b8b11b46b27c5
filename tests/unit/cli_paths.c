/*
 * cli_paths.c - long paths and names: taken whole, or refused by name. Nothing is cut, and what is
 * refused leaves nothing behind.
 */
#include "../command.h"
#include "base/file.h"
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#define DEEP "d123456789d123456789d123456789d123456789d123456789d123456789/"

// "d.../d.../", of at least so many bytes, with its folders made in the test's folder.
static const char *deep(size_t bytes, bool make)
{
    static char path[8192];
    char full[8700];
    path[0] = '\0';
    while (strlen(path) < bytes) {
        strcat(path, DEEP);
        snprintf(full, sizeof(full), "%s/%s", test_folder(), path);
        if (make)
            CHECK(mkdir(full, 0777) == 0 || access(full, F_OK) == 0);
    }
    return path;
}

static const char *longline(const char *fmt, const char *path)
{
    static char line[16384];
    snprintf(line, sizeof(line), fmt, path, path);
    return line;
}

static int run_line(const char *line)
{
    CHECK_INT(setenv("LINE", line, 1), 0);
    return command_shell("eval \"$TUTTI $LINE\"");
}

// A job whose path is cut would be another file.
TEST(a_long_job_path_is_read_whole)
{
    static const size_t lengths[] = {200, 287, 300, 600, 2000, 3500};
    for (int i = 0; i < 6; i++) {
        const char *folder = deep(lengths[i], true);
        char name[8300];
        snprintf(name, sizeof(name), "%ssmall.yaml", folder);
        CHECK_INT(setenv("NAME", name, 1), 0);
        command_write("small.yaml", command_small_job);
        CHECK_INT(command_shell("cp small.yaml \"$NAME\""), 0);
        int code = run_line(longline("train %ssmall.yaml --quiet --set train.epochs=1", folder));
        ck_assert_msg(code == 0, "%zu bytes: exit code %d: %.300s", strlen(name), code,
                      command_err);
        code = run_line(longline("plan %ssmall.yaml --quiet", folder));
        ck_assert_msg(code == 0, "plan: exit code %d: %.300s", code, command_err);
    }
    CHECK_INT(run_line(longline("train %ssmall.yaml --quiet", deep(4300, false))), 3);
    CHECK_HAS(command_err, "bytes; at most 4095 are allowed");
}

TEST(a_long_run_path_is_used_whole)
{
    static const size_t lengths[] = {120, 200, 250, 700, 3000};
    command_write("small.yaml", command_small_job);
    for (int i = 0; i < 5; i++) {
        const char *folder = deep(lengths[i], false);
        int code =
            run_line(longline("train small.yaml --run %srun --json --set train.epochs=1", folder));
        ck_assert_msg(code == 0, "%zu bytes: exit code %d: %.300s", strlen(folder), code,
                      command_err);
        json_t *o = command_last_object(command_out, NULL);
        const char *saved = json_string_value(json_object_get(o, "checkpoint"));
        char want[8300];
        snprintf(want, sizeof(want), "%srun/checkpoints/step-10", folder);
        CHECK_STR(saved, want);
        json_decref(o);
        CHECK_INT(run_line(longline("eval %srun --json", folder)), 0);
        CHECK_INT(
            run_line(longline("eval small.yaml --checkpoint %srun/checkpoints/step-10", folder)),
            0);
        CHECK_INT(run_line(longline("predict %srun --count 1", folder)), 0);
        CHECK_INT(run_line(longline("train %srun --resume --quiet --set train.epochs=2", folder)),
                  0);
        CHECK_INT(run_line(longline("plot %srun --svg %srun/x.svg --quiet", folder)), 0);
        CHECK_INT(run_line(longline("inspect %srun", folder)), 0);
        CHECK_INT(run_line(longline("convert %srun %srun/out.safetensors", folder)), 0);
        CHECK_INT(run_line(longline("train small.yaml --runs %sruns --quiet", folder)), 0);
    }
}

// Before anything is made.
TEST(a_run_path_that_is_too_long_leaves_nothing)
{
    command_write("small.yaml", command_small_job);
    CHECK_INT(run_line(longline("train small.yaml --run %srun", deep(3600, false))), 1);
    CHECK_HAS(command_err, "at most 3583 are allowed");
    CHECK_INT(run_line(longline("train small.yaml --runs %sruns", deep(3600, false))), 1);
    CHECK_HAS(command_err, "at most 3583 are allowed");
    CHECK_INT(run_line(longline("train %srun --resume", deep(3600, false))), 1);
    CHECK_HAS(command_err, "at most 3583 are allowed");
    CHECK(!command_left("d123456789d123456789d123456789d123456789d123456789d123456789"));
}

TEST(long_paths_of_data_and_weights_are_read_whole)
{
    const char *folder = deep(700, true);
    char job[4096], name[1024];
    snprintf(job, sizeof(job),
             "data: {train: {csv: {file: %st.csv, y: y}}}\n"
             "model: [dense: 1]\n"
             "train: {epochs: 1, batch: 4, loss: mse, optimizer: sgd}\n",
             folder);
    command_write("long.yaml", job);
    snprintf(name, sizeof(name), "%st.csv", folder);
    CHECK_INT(setenv("NAME", name, 1), 0);
    CHECK_INT(command_shell("printf 'x,y\\n1,2\\n2,4\\n' > \"$NAME\""), 0);
    CHECK_INT(run_line("train long.yaml --quiet --run a"), 0);
    CHECK_INT(run_line(longline("convert a %sw.safetensors", folder)), 0);
    snprintf(job + strlen(job), sizeof(job) - strlen(job), "init: {file: %sw.safetensors}\n",
             folder);
    command_write("long.yaml", job);
    int code = run_line("train long.yaml --quiet --run b");
    ck_assert_msg(code == 0, "exit code %d: %.600s", code, command_err);
}

// A flag that became a setting of the job was cut at 128 bytes.
TEST(a_long_list_of_devices_is_read_whole)
{
    char line[1024] = "train digits.yaml --dry-run --quiet --devices cpu:0@";
    command_write("digits.yaml", command_small_job);
    for (int i = 0; i < 12; i++)
        strcat(line, "0000000000");
    strcat(line, "512MiB");
    command_ok(line);
    strcat(line, "x");
    CHECK(command_run(line) != 0);
}

// A file of the longest name is written by way of a shorter temporary one.
TEST(a_file_of_the_longest_name_is_written)
{
    char name[300] = "";
    memset(name, 'n', 243);
    strcat(name, ".safetensors");
    CHECK_INT(strlen(name), 255);
    command_write("small.yaml", command_small_job);
    command_ok("train small.yaml --quiet --run a");
    int code = run_line(longline("convert a %s", name));
    ck_assert_msg(code == 0, "exit code %d: %.600s", code, command_err);
    CHECK(command_left(name));
}
