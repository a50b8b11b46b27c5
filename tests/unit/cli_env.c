/*
 * cli_env.c - the command in environments that launchers make: tutti env tells what it found, and
 * no verb does the work of one process several times.
 */
#include "../command.h"
#include "cluster/cluster.h"
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define CHIEF_AND_TWO                                                                  \
    "TF_CONFIG={\"cluster\": {\"chief\": [\"c:1\"], \"worker\": [\"a:1\", \"b:1\"]}, " \
    "\"task\": {\"type\": \"worker\", \"index\": 1}}"
#define TORCH_FOUR "RANK=0", "WORLD_SIZE=4", "MASTER_ADDR=a", "MASTER_PORT=29500"

// Sets these "NAME=value" texts, NULL at the end, and unsets every other variable that is read.
static void put(const char *first, ...)
{
    char copy[512];
    va_list ap;
    for (const char *const *v = tti_cluster_variables; *v != NULL; v++)
        unsetenv(*v);
    va_start(ap, first);
    for (const char *s = first; s != NULL; s = va_arg(ap, const char *)) {
        snprintf(copy, sizeof(copy), "%s", s);
        char *value = strchr(copy, '=');
        *value++ = '\0';
        setenv(copy, value, 1);
    }
    va_end(ap);
}

TEST(env_tells_what_was_found)
{
    put(NULL);
    command_ok("env");
    CHECK_STR(command_out, "one process: no launcher has started others beside it (tutti help env "
                           "lists the variables that are read)\n");
    put(CHIEF_AND_TWO, "RANK=", NULL);
    command_ok("env");
    CHECK_HAS(command_out, "3 training processes (TF_CONFIG): this is worker 1, rank 2, ");
    CHECK_HAS(command_out, "\nTF_CONFIG                  {\"cluster\": {\"chief\": ");
    CHECK_HAS(command_out, "\nRANK                       empty\n");
    CHECK_HAS(command_out, "\n  chief 0                 0         1  c:1\n");
    CHECK_HAS(command_out, "\n* worker 1                2         1  b:1\n");
    CHECK_HAS(command_out, "tutti train joins the other processes; tutti train --alone, or ");
    CHECK_HAS(command_out, "No secret is set, so all must run on this machine by the same user.");
    command_ok("env --json");
    json_t *o = command_last_object(command_out, NULL);
    CHECK_INT(json_integer_value(json_object_get(o, "processes")), 3);
    CHECK_INT(json_array_size(json_object_get(o, "tasks")), 3);
    CHECK_STR(json_string_value(json_object_get(o, "source")), "tf_config");
    json_decref(o);
    command_write("hosts", "a\nb slots=3 # three\n");
    put("TUTTI_HOSTS=hosts", "TUTTI_RANK=2", NULL);
    command_ok("env");
    CHECK_HAS(command_out,
              "4 training processes (TUTTI_HOSTS=hosts): this is worker 1, rank 2, local rank 1\n");
    CHECK_HAS(command_out, "\n* worker 1              1-3         3  b\n");
}

TEST(env_tells_what_is_wrong)
{
    put("RANK=4", "WORLD_SIZE=4", NULL);
    CHECK_INT(command_run("env"), 3);
    CHECK_HAS(command_out, "\nRANK                       4\n");
    CHECK_STR(
        command_err,
        "tutti: error: environment: RANK=4, but WORLD_SIZE=4: it must be a number from 0 to 3\n");
    CHECK_INT(command_run("env --json"), 3);
    json_t *o = command_last_object(command_out, NULL);
    CHECK(json_is_string(json_object_get(o, "error")));
    CHECK(json_is_object(json_object_get(o, "variables")));
    json_decref(o);
}

// With nothing written, neither to standard output nor as a run.
static void refused(const char *line, const char *message)
{
    char runs[400];
    CHECK_INT(command_run(line), 3);
    CHECK_STR(command_err, message);
    CHECK_STR(command_out, "");
    snprintf(runs, sizeof(runs), "%s/runs", test_folder());
    CHECK(access(runs, F_OK) != 0);
}

TEST(work_of_several_processes_is_not_done_by_each)
{
    command_write("small.yaml", command_small_job);
    put(CHIEF_AND_TWO, NULL);
    refused("bench small.yaml",
            "tutti: error: the environment describes 3 processes that train (TF_CONFIG: this is "
            "worker 1, rank 2), but this command runs in one; start one process with --devices, or "
            "unset TF_CONFIG, or set TUTTI_CLUSTER=ignore\n");
    // Machines need a secret.
    static const char *const lines[] = {"train small.yaml", "train small.yaml --dry-run",
                                        "eval small.yaml --checkpoint x/y"};
    for (size_t i = 0; i < sizeof(lines) / sizeof(lines[0]); i++)
        refused(lines[i], "tutti: error: 3 processes (TF_CONFIG), rank 0 at c:1, but no secret: "
                          "across machines each needs the job's; 'tutti key new FILE' makes one, "
                          "every machine gets a copy, and TUTTI_SECRET_FILE=FILE tells where it "
                          "is; or TUTTI_KEY_DIR is a folder that all machines share\n");
    // One process trains, and this is not it.
    put("TF_CONFIG={\"cluster\": {\"chief\": [\"a:1\"]}, "
        "\"task\": {\"type\": \"evaluator\", \"index\": 0}}",
        NULL);
    command_ok("train small.yaml --dry-run");
    CHECK_HAS(command_err, "this is evaluator 0 (TF_CONFIG), which has no work");
    command_write("blind.yaml", "data: {train: {digits: 8}}\nmodel: [flatten, {dense: 10}]\n"
                                "train: {loss: cross_entropy, batch: 8, epochs: 1}\n");
    CHECK_INT(command_run("train blind.yaml"), 3);
    CHECK_HAS(command_err, "needs data: blind.yaml has neither data.test nor");
    put("TF_CONFIG={\"cluster\": {\"chief\": [\"a:1\"], \"ps\": [\"b:1\"]}, "
        "\"task\": {\"type\": \"ps\", \"index\": 0}}",
        NULL);
    CHECK_INT(command_run("train small.yaml"), 3);
    CHECK_HAS(command_err, "Tutti has no parameter servers");
    put("RANK=1", NULL);
    CHECK_INT(command_run("train small.yaml"), 3);
    CHECK_HAS(command_err, "WORLD_SIZE is not set");
    CHECK_HAS(command_err, "set TUTTI_CLUSTER=ignore to ignore it");
    command_ok("train --help");
    command_ok("summary small.yaml"); // looks, and does no work
}

// What tutti env says of launchers, and why one of them counts.
TEST(env_tells_which_launcher_counts)
{
    put("OMPI_COMM_WORLD_SIZE=2", "OMPI_COMM_WORLD_RANK=1", "OMPI_COMM_WORLD_LOCAL_RANK=1",
        "OMPI_COMM_WORLD_LOCAL_SIZE=2", "PMIX_NAMESPACE=77", "PMIX_RANK=1", "SLURM_STEP_ID=0",
        "SLURM_PROCID=0", "SLURM_STEP_NUM_TASKS=3", NULL);
    command_ok("env");
    CHECK_HAS(command_out, "2 training processes (OpenMPI's mpirun: OMPI_COMM_WORLD_RANK, "
                           "OMPI_COMM_WORLD_SIZE): this is worker 1, rank 1, local rank 1\n");
    CHECK_HAS(command_out, "\n* OpenMPI's mpirun: started this process\n");
    CHECK_HAS(command_out,
              "\n  Slurm's srun: passed over: the one above has started this process\n");
    CHECK_HAS(command_out, "rank 0 makes a key for this user on this machine");
    command_ok("env --json");
    json_t *o = command_last_object(command_out, NULL);
    CHECK_STR(json_string_value(json_object_get(o, "launcher")), "OpenMPI's mpirun");
    CHECK_STR(json_string_value(json_object_get(o, "source")), "launcher");
    json_decref(o);
    put("PMI_RANK=1", "PMI_SIZE=2", NULL);
    command_ok("env");
    CHECK_HAS(command_out, "Nothing says where rank 0 is: set TUTTI_LEADER or TUTTI_JOB_ID.");
}

// A process that a launcher has started beside others, of which none comes, trains nothing.
TEST(processes_of_a_launcher_do_not_train_each_alone)
{
    static const struct {
        const char *set[6], *told; // told NULL: one process
        int code;
    } cases[] = {
        {{"SLURM_STEP_ID=0", "SLURM_STEP_NUM_TASKS=4", "SLURM_PROCID=2", "SLURM_JOB_ID=987654"},
         "(/job:worker/task:0; started by Slurm's srun) tells its key and address by the file",
         76},
        {{"OMPI_COMM_WORLD_SIZE=2", "OMPI_COMM_WORLD_RANK=1", "OMPI_COMM_WORLD_LOCAL_RANK=1",
          "OMPI_COMM_WORLD_LOCAL_SIZE=2", "PMIX_NAMESPACE=987654"},
         "rank 0 (/job:worker/task:0) does not answer at 127.0.0.1 within 300 ms",
         76},
        {{"PMI_SIZE=8", "PMI_RANK=0"},
         "a launcher with PMI has started 8 processes (PMI_RANK=0 PMI_SIZE=8), but nothing says "
         "where rank 0 is: set TUTTI_LEADER=host:port",
         3},
        {{"PMIX_RANK=0"}, "a launcher with PMIx has started this process (PMIX_RANK=0)", 3},
        {{"JOB_COMPLETION_INDEX=0"},
         "an indexed Job of Kubernetes has started this process (JOB_COMPLETION_INDEX=0), but "
         "nothing says how many there are: set TUTTI_SIZE",
         3},
        {{"MV2_COMM_WORLD_SIZE=2"},
         "MVAPICH's mpirun has started several processes (MV2_COMM_WORLD_SIZE=2), but "
         "MV2_COMM_WORLD_RANK, the rank of this one, is not set",
         3},
        // One task, an interactive step, and the shell of a batch script with tasks to come.
        {{"SLURM_STEP_ID=0", "SLURM_STEP_NUM_TASKS=1", "SLURM_PROCID=0"}, NULL, 0},
        {{"SLURM_JOB_ID=7", "SLURM_PROCID=0", "SLURM_STEP_NUM_TASKS="}, NULL, 0},
        {{"OMPI_COMM_WORLD_SIZE=1", "OMPI_COMM_WORLD_RANK=0", "PMIX_RANK=0"}, NULL, 0},
    };
    command_write("small.yaml", command_small_job);
    setenv("TUTTI_RENDEZVOUS_MS", "300", 1);
    setenv("TUTTI_KEY_DIR", test_folder(), 1);
    for (int i = 0; i < TTI_COUNT(cases); i++) {
        const char *const *s = cases[i].set;
        put(s[0], s[1], s[2], s[3], s[4], NULL);
        if (cases[i].told == NULL) {
            command_ok("train small.yaml --quiet --set train.epochs=1");
            continue;
        }
        int code = command_run("train small.yaml --quiet");
        CHECK_HAS(command_err, cases[i].told);
        CHECK_INT(code, cases[i].code);
        CHECK_INT(command_run("bench small.yaml --steps 1"), 3);
        CHECK_INT(command_run("run -n 2 small.yaml"), 3);
        if (i > 0)
            continue;
        CHECK_HAS(command_err, "use tutti train in place of tutti run, which joins them; --alone");
        command_ok("train small.yaml --quiet --set train.epochs=1 --alone");
        command_ok("bench small.yaml --steps 1 --alone");
        command_ok("run -n 2 small.yaml --quiet --set train.epochs=1 --devices cpu:0 --alone");
    }
    // The name of a pod may come later, which is waited for as long as for a process.
    setenv("TUTTI_SECRET", "00112233445566778899aabbccddeeff00112233445566778899aabbccddeeff", 1);
    setenv("KUBERNETES_SERVICE_HOST", "10.0.0.1", 1);
    put("JOB_COMPLETION_INDEX=1", "TUTTI_SIZE=2", "TUTTI_LEADER=no-such-host.invalid:1", NULL);
    CHECK_INT(command_run("train small.yaml"), 1);
    CHECK_HAS(command_err, "host 'no-such-host.invalid' does not resolve");
    static const char *const others[] = {"TUTTI_RENDEZVOUS_MS", "TUTTI_KEY_DIR", "SLURM_JOB_ID",
                                         "TUTTI_SECRET", "KUBERNETES_SERVICE_HOST"};
    for (int i = 0; i < TTI_COUNT(others); i++)
        unsetenv(others[i]);
}

// Trains, and gives the hash of the weights.
static void train(char hash[64])
{
    command_ok("train small.yaml --json");
    command_hash(command_out, hash);
}

TEST(one_process_trains_as_always)
{
    char hash[64], same[64];
    command_write("small.yaml", command_small_job);
    put(NULL);
    train(hash);
    put("WORLD_SIZE=1", "RANK=0", "LOCAL_RANK=0", "MASTER_ADDR=localhost", "MASTER_PORT=1", NULL);
    train(same);
    CHECK_STR(same, hash);
    put("TF_CONFIG={\"cluster\": {\"worker\": [\"a:1\"]}, "
        "\"task\": {\"type\": \"worker\", \"index\": 0}}",
        NULL);
    train(same);
    CHECK_STR(same, hash);
    put(CHIEF_AND_TWO, "TUTTI_CLUSTER=ignore", NULL);
    train(same);
    CHECK_STR(same, hash);
}
