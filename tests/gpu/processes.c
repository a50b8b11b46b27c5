/*
 * processes.c - GPUs of several processes: messages between them go through memory of the host, and
 * what one GPU computes comes out of all. Nothing here opens a GPU in the process that forks the
 * others, as a card cannot be used on both sides of a fork.
 */
#include "cli/matrix.h"
#include "ranks.h"
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>

static void need_processes(void)
{
    CHECK_INT(command_run("devices"), 0);
    if (strstr(command_out, "gpu:0") == NULL) {
        ck_assert_msg(getenv("TUTTI_CUDA_MODULE") == NULL && getenv("TEST_GPU") == NULL,
                      "no gpu:0 in '%.1000s'", command_out);
        test_skip("no GPU can be used");
    }
    if (strstr(tt_version_text(), "zeromq: yes") == NULL)
        test_skip("this build has no ZeroMQ");
}

static void check_way(int model, matrix_way way, int tasks, const char *transport)
{
    const matrix_model *m = &matrix_models[model];
    matrix_way one = matrix_reference(way.lanes);
    matrix_result want, got;
    way.device = one.device = "gpu:0";
    matrix_run_job(m, &one, 1, "shm", &want);
    ck_assert_msg(want.status == TT_OK, "one GPU: %s", want.message);
    matrix_run_job(m, &way, tasks, transport, &got);
    ck_assert_msg(matrix_same(&got, &want), "%s.%s, %s on %d GPUs of %d processes, %s: %s", m->name,
                  m->optimizer, way.strategy, way.devices, tasks, transport,
                  got.status == TT_OK ? "other weights than one GPU" : got.message);
}

TEST(gpu_processes_mirrored_have_the_bits_of_one)
{
    need_processes();
    check_way(1, (matrix_way){.strategy = "mirrored", .devices = 2}, 2, "shm");
    check_way(1, (matrix_way){.strategy = "mirrored", .devices = 3}, 2, "wire");
}

TEST(gpu_processes_with_sharded_updates_have_the_bits_of_one)
{
    need_processes();
    matrix_way way = {.strategy = "mirrored", .devices = 3, .spread = {.update = TT_UPDATE_SHARD}};
    check_way(0, way, 3, "shm");
}

TEST(gpu_processes_of_a_pipeline_have_the_bits_of_one)
{
    need_processes();
    check_way(1, (matrix_way){.strategy = "pipeline", .devices = 2}, 2, "shm");
}

static const char *const job = "name: g\nseed: 2\ndata: {train: {digits: {count: 32}}}\n"
                               "model: [flatten, {dense: 10}]\n"
                               "train: {steps: 2, batch: 16, loss: cross_entropy, optimizer: sgd}\n"
                               "distribute: {strategy: mirrored}\n";

TEST(gpu_processes_divide_the_gpus_of_a_host)
{
    need_processes();
    if (!test_gpu_is_emulated())
        test_skip("needs several GPUs, which only the emulation has");
    setenv("TUTTI_EMU_CARDS", "3", 1);
    command_write("job.yaml", job);
    CHECK_INT(command_run("run -n 2 job.yaml --devices gpu:all --json"), 0);
    CHECK_HAS(command_out, "task:0/gpu:0");
    CHECK_HAS(command_out, "task:1/gpu:1"); // the second of two that it has
    ck_assert(strstr(command_out, "task:0/gpu:1") == NULL);
    CHECK(command_run("run -n 4 job.yaml --devices gpu:all") != 0);
    CHECK_HAS(command_err, "4 processes of the job are on a host with 3 GPUs");
}

TEST(gpu_processes_with_cpus_beside_gpus_are_refused)
{
    need_processes();
    command_write("job.yaml", job);
    CHECK(command_run("run -n 2 job.yaml --devices cpu:0,gpu:0") != 0);
    CHECK_HAS(command_err, "has CPUs and GPUs");
}

TEST(gpu_process_that_is_killed_is_survived_by_the_others)
{
    char want[64], got[64];
    pid_t child[2];
    need_processes();
    command_write("job.yaml", job);
    command_ok("train job.yaml --devices gpu:0 --json --set train.steps=80");
    command_hash(command_out, want);
    pid_t pid =
        ranks_launch("run -n 2 --workers 1..2 job.yaml --devices gpu:0 --run r --json --set "
                     "train.steps=80",
                     "r", 10, child, 2);
    CHECK(kill(child[1], SIGKILL) == 0);
    CHECK_INT(command_wait(pid), 0);
    command_hash(command_out, got);
    CHECK_STR(got, want);
    CHECK_HAS(command_out, "going on with 1 worker");
    ranks_nothing_left();
}
