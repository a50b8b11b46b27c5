/*
 * cli_devices.c - what the command tells of several devices: how they scale, how they spent their
 * time, and when one would be faster.
 */
#include "../command.h"
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

TEST(bench_measures_a_job_whose_schedule_ends_with_the_training)
{
    command_write("small.yaml", command_small_job);
    command_ok("bench small.yaml cpu:0 cpu:0*2 --steps 3 --set "
               "train.optimizer.adam.schedule=cosine");
    CHECK_HAS(command_out, "cpu:0*2");
}

TEST(bench_scale_compares_numbers_of_devices)
{
    command_write("small.yaml", command_small_job);
    command_ok("bench scale small.yaml --steps 5 --most 3");
    CHECK_HAS(command_out, "mirrored, batch 32, 5 rounds of 1 steps\n");
    CHECK_HAS(command_out, "speed-up");
    CHECK_HAS(command_out, "1.00x       100 %\n");
    CHECK_HAS(command_out, "\n      3 ");
    command_ok("bench scale small.yaml --steps 5 --most 2 --strategy pipeline --json");
    int lines;
    json_t *o = command_last_object(command_out, &lines);
    CHECK(lines == 2 || lines == 3); // with one core there is no line for all of them
    CHECK(json_number_value(json_object_get(o, "speed_up")) > 0);
    CHECK(json_number_value(json_object_get(o, "step_ms_low")) <=
          json_number_value(json_object_get(o, "step_ms_high")));
    json_decref(o);
    CHECK_HAS(command_out, "\"devices\": 2, ");
    CHECK_HAS(command_out, "\"strategy\": \"pipeline\"");
    // What cannot be is told, the others are measured.
    CHECK_INT(command_run("bench scale small.yaml --steps 5 --most 2 --lanes 1"), 1);
    CHECK_HAS(command_err, "2 devices: strategy mirrored: 2 replicas");
    CHECK_HAS(command_out, "1.00x");
    command_write("split.yaml", "data: {train: {digits: 64}}\n"
                                "model: [flatten, dense: 20, dense: {units: 10, device: local:1}]\n"
                                "train: {batch: 32, loss: cross_entropy}\n"
                                "distribute: {devices: cpu:0*2, pins: {dense_1: local:0}}\n");
    command_ok("bench scale split.yaml --steps 5 --most 3"); // one device takes no pins
    CHECK_HAS(command_err, "warn: 3 devices: strategy mirrored: 3 devices cannot be divided");
    CHECK_HAS(command_out, "1.00x");
    CHECK_HAS(command_out, "\n      2 ");
    CHECK_INT(command_run("bench scale"), 2);
    CHECK_INT(command_run("bench scale none.yaml"), 3);
}

// Device lines of the summary: each adds up to 100 %, and one is the slowest.
TEST(train_tells_how_devices_spent_their_time)
{
    command_write("small.yaml", command_small_job);
    command_ok("train small.yaml --devices cpu:0*3 --strategy mirrored");
    for (int d = 0; d < 3; d++) {
        char head[32];
        int sum = 0, percent;
        snprintf(head, sizeof(head), "\ncpu:%d       compute ", d);
        const char *line = strstr(command_out, head);
        CHECK(line != NULL);
        const char *end = strchr(line + 1, '\n');
        for (const char *s = line + 1; s < end; s++)
            if (s[0] == ' ' && sscanf(s, " %d %%", &percent) == 1)
                sum += percent;
        CHECK_INT(sum, 100);
    }
    CHECK_HAS(command_out, "\nslowest     cpu:");
    CHECK(strstr(command_out, "\nagainst ") == NULL); // too short a job for a trial
    command_ok("train small.yaml --devices cpu:0*2 --strategy mirrored --json");
    json_t *o = command_last_object(command_out, NULL);
    json_t *device = json_array_get(json_object_get(o, "devices"), 1);
    CHECK(json_number_value(json_object_get(device, "compute_seconds")) > 0);
    CHECK(json_is_object(json_object_get(device, "waiting_seconds")));
    json_decref(o);
    CHECK_INT(command_count(command_out, "\"event\": \"device\""), 2);
}

// One device that is much slower makes the spread slower than one device alone.
TEST(train_tells_when_one_device_would_be_faster)
{
    command_write("small.yaml", command_small_job);
    setenv("TUTTI_FAULT_HOW", "slow", 1);
    setenv("TUTTI_FAULT_DEVICE", "cpu:1", 1);
    setenv("TUTTI_FAULT_TIMES", "60", 1);
    pid_t pid = command_start("train small.yaml --devices cpu:0*2 --strategy mirrored "
                              "--set train.epochs=100000");
    for (int i = 0; i < 4000; i++) {
        command_read("err", command_err, sizeof(command_err));
        if (strstr(command_err, "times slower") != NULL)
            break;
        usleep(10000);
    }
    kill(pid, SIGTERM);
    CHECK_INT(command_wait(pid), 85);
    CHECK_HAS(command_err, "strategy mirrored on 2 devices takes ");
    CHECK_HAS(command_err, "use --devices cpu:0 --strategy single for the same");
    CHECK_INT(command_count(command_err, "times slower"), 1);
    CHECK_HAS(command_out, "\ncompared    one device with all cores takes ");
}

// GPUs of the emulation: memory, compute capability, which reach each other, which are left out.
TEST(devices_lists_gpus)
{
    if (!test_gpu_is_emulated())
        test_skip("the emulation is not built: make emu");
    setenv("TUTTI_EMU_CARDS", "3", 1);
    setenv("TUTTI_EMU_CAPABILITY", "7.0,9.0,8.6", 1);
    command_ok("devices");
    CHECK_HAS(command_out, "left out: emulated GPU has compute capability 7.0; 8.0 or newer is ");
    CHECK_HAS(command_out, "emulated GPU, compute capability 9.0, 0000:02:00.0\n");
    CHECK_HAS(command_out, "emulated GPU, compute capability 8.6, 0000:03:00.0\n");
    CHECK_HAS(command_out, "1.0 GiB");
    CHECK_HAS(command_out, "gpu:0 and gpu:1 reach each other's memory\n");
    CHECK(strstr(command_out, "gpu:2") == NULL);
    setenv("TUTTI_EMU_CAPABILITY", "9.0", 1);
    command_ok("devices --json");
    CHECK_HAS(command_out, "\"reaches\": [\"gpu:0\", \"gpu:2\"]");
    setenv("TUTTI_EMU_PEERS", "0", 1);
    command_ok("devices");
    CHECK_HAS(command_out, "gpu:0 to gpu:2 copy through the host\n");
    setenv("TUTTI_EMU_DRIVER", "0", 1);
    command_ok("devices");
    CHECK_HAS(command_out, "no gpu: no NVIDIA driver is installed");
}
