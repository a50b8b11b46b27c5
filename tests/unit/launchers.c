/*
 * launchers.c - what launchers say of a process: a table of environments as they make them, with
 * what is read; one of broken and contradicting ones with their messages; Slurm's short forms; the
 * file by which machines of one job share a key.
 */
#include "cluster/launchers.h"
#include "../command.h"
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>
#include <utime.h>

#define MOST 16

static const char *get(const void *user, const char *name)
{
    const char *const *set = user;
    size_t n = strlen(name);
    for (int i = 0; i < MOST && set[i] != NULL; i++)
        if (strncmp(set[i], name, n) == 0 && set[i][n] == '=')
            return set[i] + n + 1;
    return NULL;
}

static tt_status find(tt_ctx *ctx, const char *const *set, tt_cluster **out)
{
    tti_cluster_env env = {get, set, "web-2", "hydra_pmi_proxy 12 345"};
    return tti_cluster_read(ctx, &env, out);
}

#define OMPI(rank, size, local, n)                                \
    "OMPI_COMM_WORLD_RANK=" #rank, "OMPI_COMM_WORLD_SIZE=" #size, \
        "OMPI_COMM_WORLD_LOCAL_RANK=" #local, "OMPI_COMM_WORLD_LOCAL_SIZE=" #n
#define HYDRA(rank, size, local, n) \
    "PMI_RANK=" #rank, "PMI_SIZE=" #size, "MPI_LOCALRANKID=" #local, "MPI_LOCALNRANKS=" #n
#define SRUN(rank, size, local, node)                                              \
    "SLURM_PROCID=" #rank, "SLURM_STEP_NUM_TASKS=" #size, "SLURM_LOCALID=" #local, \
        "SLURM_NODEID=" #node, "SLURM_JOB_ID=71", "SLURM_STEP_ID=2"
#define NODES(list, each) "SLURM_STEP_NODELIST=" list, "SLURM_STEP_TASKS_PER_NODE=" each
#define TORCH(rank, size) "RANK=" #rank, "WORLD_SIZE=" #size, "MASTER_ADDR=a", "MASTER_PORT=29500"

// What is expected: source, launcher, rank, local rank, the first one's address, id.
static const struct {
    const char *says, *set[MOST];
} good[] = {
    {"5 OpenMPI's mpirun: rank 3 of 4, local 1 of 2, first at '', id 'PMIX_NAMESPACE=77'",
     {OMPI(3, 4, 1, 2), "PMIX_NAMESPACE=77", "PMIX_RANK=3"}},
    {"5 OpenMPI's mpirun: rank 0 of 2, local 0 of 0, first at '', id ''",
     {"OMPI_COMM_WORLD_RANK=0", "OMPI_COMM_WORLD_SIZE=2"}},
    {"5 OpenMPI's mpirun: rank 1 of 2, local 1 of 2, first at 'a:1', id 'TUTTI_JOB_ID=x'",
     {OMPI(1, 2, 1, 2), "PMIX_NAMESPACE=77", "TUTTI_JOB_ID=x", "TUTTI_LEADER=a:1"}},
    {"5 OpenMPI's mpirun: rank 1 of 2, local 1 of 2, first at 'm:29500', id ''",
     {OMPI(1, 2, 1, 2), "MASTER_ADDR=m", "MASTER_PORT=29500", "WORLD_SIZE=2"}},
    {"5 OpenMPI's mpirun: rank 1 of 2, local 1 of 2, first at '[::1]:7', id ''",
     {OMPI(1, 2, 1, 2), "MASTER_ADDR=::1", "MASTER_PORT=7"}},
    // Its daemons were started by srun, one a machine.
    {"5 OpenMPI's mpirun: rank 5 of 6, local 1 of 2, first at '', id 'PMIX_NAMESPACE=77'",
     {OMPI(5, 6, 1, 2), "PMIX_NAMESPACE=77", SRUN(2, 3, 0, 2)}},
    {"5 mpirun of MPICH or Intel MPI: rank 1 of 4, local 1 of 4, first at '', id 'hydra_pmi_proxy "
     "12 345'",
     {HYDRA(1, 4, 1, 4), "PMI_FD=8"}},
    {"5 mpirun of MPICH or Intel MPI: rank 4 of 6, local 0 of 2, first at '', id 'hydra_pmi_proxy "
     "12 345'",
     {HYDRA(4, 6, 0, 2), SRUN(2, 3, 0, 2)}},
    {"5 MVAPICH's mpirun: rank 1 of 2, local 1 of 2, first at '', id 'hydra_pmi_proxy 12 345'",
     {"MV2_COMM_WORLD_RANK=1", "MV2_COMM_WORLD_SIZE=2", "MV2_COMM_WORLD_LOCAL_RANK=1",
      "MV2_COMM_WORLD_LOCAL_SIZE=2"}},
    {"5 horovodrun: rank 1 of 2, local 1 of 2, first at '', id "
     "'HOROVOD_GLOO_RENDEZVOUS_ADDR=10.0.0.1 HOROVOD_GLOO_RENDEZVOUS_PORT=5'",
     {"HOROVOD_RANK=1", "HOROVOD_SIZE=2", "HOROVOD_LOCAL_RANK=1", "HOROVOD_LOCAL_SIZE=2",
      "HOROVOD_GLOO_RENDEZVOUS_ADDR=10.0.0.1", "HOROVOD_GLOO_RENDEZVOUS_PORT=5"}},
    {"5 jsrun: rank 1 of 2, local 1 of 2, first at '', id 'LSB_JOBID=9'",
     {"JSM_NAMESPACE_RANK=1", "JSM_NAMESPACE_SIZE=2", "JSM_NAMESPACE_LOCAL_RANK=1",
      "JSM_NAMESPACE_LOCAL_SIZE=2", "LSB_JOBID=9"}},
    {"5 flux run: rank 1 of 2, local 0 of 0, first at '', id 'FLUX_JOB_ID=f1'",
     {"FLUX_TASK_RANK=1", "FLUX_JOB_SIZE=2", "FLUX_TASK_LOCAL_ID=0", "FLUX_JOB_ID=f1"}},
    // Slurm: several nodes, one node, a part of a heterogeneous job, after a requeue.
    {"5 Slurm's srun: rank 4 of 5, local 0 of 1, first at 'n1:20073', id 'SLURM_JOB_ID=71 "
     "SLURM_STEP_ID=2'",
     {SRUN(4, 5, 0, 2), NODES("n[1-3]", "2(x2),1"), "SLURM_NTASKS=9"}},
    {"5 Slurm's srun: rank 1 of 2, local 1 of 2, first at 'gpu07:20073', id 'SLURM_JOB_ID=71 "
     "SLURM_STEP_ID=2'",
     {SRUN(1, 2, 1, 0), NODES("gpu07", "2")}},
    {"5 Slurm's srun: rank 2 of 3, local 0 of 1, first at 'n1:20073', id 'SLURM_JOB_ID=71 "
     "SLURM_STEP_ID=2'",
     {SRUN(2, 3, 0, 1), NODES("n[1-2]", "2,1"), "SLURM_HET_SIZE=2", "SLURM_NTASKS=3"}},
    {"5 Slurm's srun: rank 1 of 2, local 0 of 1, first at 'a:20073', id 'SLURM_JOB_ID=71 "
     "SLURM_STEP_ID=2 SLURM_RESTART_COUNT=1'",
     {SRUN(1, 2, 0, 1), NODES("a,b", "1(x2)"), "SLURM_RESTART_COUNT=1"}},
    {"5 Slurm's srun: rank 1 of 2, local 0 of 1, first at 'a:20073', id 'SLURM_JOB_ID=71 "
     "SLURM_STEP_ID=2'",
     {SRUN(1, 2, 0, 1), NODES("a,b", "1(x2)"), "PMI_RANK=1", "PMI_SIZE=2", "PMIX_RANK=1"}},
    // One task, and the shell of a batch script, which has a rank and no step.
    {"0 : rank 0 of 1, local 0 of 1, first at '', id ''", {SRUN(0, 1, 0, 0), NODES("a", "1")}},
    {"0 : rank 0 of 1, local 0 of 1, first at '', id ''",
     {"SLURM_PROCID=0", "SLURM_NTASKS=6", "SLURM_JOB_ID=71", "SLURM_NODELIST=n[1-3]"}},
    {"0 : rank 0 of 1, local 0 of 1, first at '', id ''", {OMPI(0, 1, 0, 1), "PMIX_RANK=0"}},
    {"5 a launcher with PMI: rank 1 of 2, local 0 of 0, first at '', id 'PMI_JOBID=5'",
     {"PMI_RANK=1", "PMI_SIZE=2", "PMI_JOBID=5"}},
    {"5 a launcher with PMIx: rank 3 of 4, local 0 of 0, first at '', id 'PMIX_NAMESPACE=ns'",
     {"PMIX_RANK=3", "TUTTI_SIZE=4", "PMIX_NAMESPACE=ns"}},
    // torchrun: its own settings a machine, and when itself has started the process, through srun.
    {"5 torchrun's settings for a machine: rank 1 of 2, local 0 of 1, first at 'j-0.j:29500', id "
     "''",
     {"PET_NNODES=2", "PET_NODE_RANK=1", "PET_MASTER_ADDR=j-0.j", "PET_NPROC_PER_NODE=auto"}},
    {"5 torchrun's settings for a machine: rank 1 of 2, local 0 of 1, first at 'h:2', id "
     "'PET_RDZV_ID=r'",
     {"PET_NNODES=2:2", "PET_NODE_RANK=1", "PET_RDZV_ENDPOINT=h:2", "PET_RDZV_ID=r",
      "PET_NPROC_PER_NODE=1", "JOB_COMPLETION_INDEX=1"}},
    {"3 : rank 3 of 4, local 1 of 2, first at 'a:29500', id ''",
     {TORCH(3, 4), "LOCAL_RANK=1", "LOCAL_WORLD_SIZE=2", "TORCHELASTIC_RUN_ID=none",
      SRUN(1, 2, 0, 1), "PET_NNODES=2", "PET_NODE_RANK=1"}},
    {"3 : rank 1 of 2, local 0 of 1, first at 'a:29500', id ''",
     {TORCH(1, 2), "JOB_COMPLETION_INDEX=1"}}, // the training operator's, one process a pod
    // Schedulers of containers.
    {"5 SkyPilot: rank 1 of 2, local 0 of 1, first at '10.0.0.1', id ''",
     {"SKYPILOT_NODE_RANK=1", "SKYPILOT_NUM_NODES=2", "SKYPILOT_NODE_IPS=10.0.0.1\n10.0.0.2"}},
    {"5 Volcano: rank 1 of 2, local 0 of 1, first at 'w-0.w', id ''",
     {"VC_TASK_INDEX=1", "VC_WORKER_NUM=2", "VC_WORKER_HOSTS=w-0.w,w-1.w"}},
    {"5 an indexed Job of Kubernetes: rank 1 of 4, local 0 of 1, first at 'j-0.j:29600', id ''",
     {"JOB_COMPLETION_INDEX=1", "TUTTI_SIZE=4", "TUTTI_LEADER=j-0.j:29600",
      "KUBERNETES_SERVICE_HOST=10.0.0.1"}},
    {"0 : rank 0 of 1, local 0 of 1, first at '', id ''",
     {"JOB_COMPLETION_INDEX=0", "TUTTI_SIZE=1", "KUBERNETES_SERVICE_HOST=10.0.0.1"}},
    {"5 a StatefulSet of Kubernetes: rank 2 of 3, local 0 of 1, first at 'web-0.web:29600', id ''",
     {"KUBERNETES_SERVICE_HOST=10.0.0.1", "TUTTI_SIZE=3", "TUTTI_LEADER=web-0.web:29600"}},
    {"5 a StatefulSet of Kubernetes: rank 1 of 3, local 0 of 1, first at 'web-0.web', id ''",
     {"KUBERNETES_SERVICE_HOST=10.0.0.1", "TUTTI_SIZE=3", "TUTTI_LEADER=web-0.web",
      "POD_NAME=web-1"}},
    {"0 : rank 0 of 1, local 0 of 1, first at '', id ''", // a pod, and no job of several
     {"KUBERNETES_SERVICE_HOST=10.0.0.1"}},
    // Ours, and those that agree with it.
    {"5 TUTTI_RANK and TUTTI_SIZE: rank 1 of 2, local 0 of 0, first at 'a:1', id "
     "'TUTTI_LEADER=a:1'",
     {"TUTTI_RANK=1", "TUTTI_SIZE=2", "TUTTI_LEADER=a:1", SRUN(0, 3, 0, 0)}},
    {"4 : rank 1 of 2, local 0 of 1, first at 'a:1', id ''",
     {"TUTTI_TASKS=a:1,b:1", "TUTTI_RANK=1", OMPI(1, 2, 0, 1)}},
    {"1 : rank 2 of 3, local 1 of 2, first at 'a', id ''", // a hosts file, and who by mpirun
     {"TUTTI_HOSTS=hosts", OMPI(2, 3, 1, 2)}},
    {"3 : rank 1 of 2, local 0 of 1, first at 'a:29500', id ''", {TORCH(1, 2), SRUN(1, 2, 0, 0)}},
};

TEST(launchers_are_read)
{
    tt_ctx *ctx = test_ctx();
    command_write("hosts", "a\nb slots=2\n");
    CHECK(chdir(test_folder()) == 0);
    for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++) {
        tt_cluster *c = NULL;
        char says[1024];
        tt_status st = find(ctx, good[i].set, &c);
        ck_assert_msg(st == TT_OK, "%s: %s", good[i].says, tt_last_error(ctx).message);
        snprintf(says, sizeof(says), "%d %s: rank %d of %d, local %d of %d, first at '%s', id '%s'",
                 (int)c->source, c->launcher, c->rank, c->n_processes, c->local_rank, c->n_local,
                 c->tasks[0].address, c->id);
        CHECK_STR(says, good[i].says);
        tt_cluster_free(ctx, c);
    }
    CHECK_OK(tt_close(ctx));
}

#define ALONE "; --alone runs the whole job in every process"
static const struct {
    const char *message, *set[MOST];
} bad[] = {
    {"OMPI_COMM_WORLD_RANK=4, set by OpenMPI's mpirun, but OMPI_COMM_WORLD_SIZE=4: the rank must "
     "be a number from 0 to 3",
     {OMPI(4, 4, 0, 4)}},
    {"OMPI_COMM_WORLD_SIZE=0, set by OpenMPI's mpirun, is not a number from 1 to 1024",
     {OMPI(0, 0, 0, 1)}},
    {"OMPI_COMM_WORLD_SIZE=1025, set by OpenMPI's mpirun, is not a number from 1 to 1024",
     {OMPI(0, 1025, 0, 1)}},
    {"PMI_RANK=x, set by mpirun of MPICH or Intel MPI, is not a number from 0 to 1023",
     {HYDRA(x, 4, 0, 4)}},
    {"OpenMPI's mpirun: this is process 2 of 2 on its machine, but there are 4 in all "
     "(OMPI_COMM_WORLD_SIZE)",
     {OMPI(2, 4, 2, 2)}},
    {"OpenMPI's mpirun: this is process 0 of 8 on its machine, but there are 4 in all "
     "(OMPI_COMM_WORLD_SIZE)",
     {OMPI(2, 4, 0, 8)}},
    {"OpenMPI's mpirun has started several processes (OMPI_COMM_WORLD_SIZE=4), but "
     "OMPI_COMM_WORLD_RANK, the rank of this one, is not set" ALONE,
     {"OMPI_COMM_WORLD_SIZE=4"}},
    {"OpenMPI's mpirun has started this process (OMPI_COMM_WORLD_RANK=1), but nothing says how "
     "many "
     "there are: set OMPI_COMM_WORLD_SIZE to the number of processes for each of them, 1 if each "
     "is a job of its own" ALONE,
     {"OMPI_COMM_WORLD_RANK=1"}},
    {"a launcher with PMIx has started this process (PMIX_RANK=0), but nothing says how many there "
     "are: set TUTTI_SIZE to the number of processes for each of them, 1 if each is a job of its "
     "own" ALONE,
     {"PMIX_RANK=0"}},
    {"an indexed Job of Kubernetes has started this process (JOB_COMPLETION_INDEX=2), but nothing "
     "says how many there are: set TUTTI_SIZE to the number of processes for each of them, 1 if "
     "each is a job of its own" ALONE,
     {"JOB_COMPLETION_INDEX=2"}},
    {"JOB_COMPLETION_INDEX=4, set by an indexed Job of Kubernetes, but TUTTI_SIZE=4: the rank must "
     "be a number from 0 to 3",
     {"JOB_COMPLETION_INDEX=4", "TUTTI_SIZE=4"}},
    {"the number of the pod=5, set by a StatefulSet of Kubernetes, but TUTTI_SIZE=3: the rank must "
     "be a number from 0 to 2",
     {"KUBERNETES_SERVICE_HOST=1", "TUTTI_SIZE=3", "POD_NAME=web-5"}},
    {"TUTTI_SIZE=3, but nothing says which of the processes this one is; set TUTTI_RANK, from 0 "
     "on, "
     "or start it through a launcher that does",
     {"TUTTI_SIZE=3"}},
    {"OMPI_COMM_WORLD_SIZE=4, set by OpenMPI's mpirun, but TUTTI_SIZE=2; unset TUTTI_SIZE",
     {OMPI(1, 4, 1, 4), "TUTTI_SIZE=2"}},
    {"TUTTI_LEADER=a:b: the port must be from 1 to 65535", {OMPI(1, 4, 1, 4), "TUTTI_LEADER=a:b"}},
    {"MASTER_ADDR:MASTER_PORT=a:0: the port must be from 1 to 65535",
     {OMPI(1, 4, 1, 4), "MASTER_ADDR=a", "MASTER_PORT=0"}},
    // Slurm's short forms
    {"SLURM_STEP_NODELIST=n[1-: a bracket is not closed",
     {SRUN(1, 2, 0, 1), NODES("n[1-", "1(x2)")}},
    {"SLURM_STEP_NODELIST=n[3-1]: between brackets there must be numbers and ranges: [1-3,7]",
     {SRUN(1, 2, 0, 1), NODES("n[3-1]", "1(x2)")}},
    {"SLURM_STEP_TASKS_PER_NODE=1 does not tell the number of processes of node 1 (SLURM_NODEID): "
     "2(x3),1 means three nodes with two each and one with one",
     {SRUN(1, 2, 0, 1), NODES("n[1-2]", "1")}},
    {"SLURM_NODEID=x is not a number", {SRUN(1, 2, 0, x), NODES("n[1-2]", "1(x2)")}},
    // torchrun's settings
    {"PET_NNODES=1:4 does not say how many machines there are; start the job with torchrun "
     "--no-python tutti train JOB, or set PET_NNODES to a number",
     {"PET_NNODES=1:4", "PET_NODE_RANK=1"}},
    {"PET_NPROC_PER_NODE=2, but RANK is not set: this is one process for the whole machine. Set "
     "PET_NPROC_PER_NODE=1 (--devices gives it several devices), or start 2 with torchrun "
     "--no-python tutti train JOB",
     {"PET_NNODES=2", "PET_NODE_RANK=1", "PET_NPROC_PER_NODE=2"}},
    {"SKYPILOT_NODE_IPS=a b: a host name may contain only letters, digits, '.', '-' and '_'",
     {"SKYPILOT_NODE_RANK=1", "SKYPILOT_NUM_NODES=2", "SKYPILOT_NODE_IPS=a b"}},
    // Those that disagree
    {"OpenMPI's mpirun says that this process is rank 1 of 4 (OMPI_COMM_WORLD_SIZE=4), but mpirun "
     "of MPICH or Intel MPI that it is rank 0 of 2 (PMI_SIZE=2); start it through one of them, or "
     "unset the variables of the other" ALONE,
     {OMPI(1, 4, 1, 4), HYDRA(0, 2, 0, 2)}},
    {"Slurm's srun says that this process is rank 1 of 2 (SLURM_STEP_NUM_TASKS=2), but a launcher "
     "with PMI that it is rank 1 of 4 (PMI_SIZE=4); start it through one of them, or unset the "
     "variables of the other" ALONE,
     {SRUN(1, 2, 0, 1), NODES("a,b", "1(x2)"), "PMI_RANK=1", "PMI_SIZE=4"}},
    {"the number of training processes is 4 and this one of rank 1 according to RANK, WORLD_SIZE, "
     "but 2 and this one of rank 1 according to SLURM_PROCID, SLURM_STEP_NUM_TASKS; unset one of "
     "them",
     {TORCH(1, 4), SRUN(1, 2, 0, 1), NODES("a,b", "1(x2)")}},
    {"WORLD_SIZE=1, but OpenMPI's mpirun has started 4 processes (OMPI_COMM_WORLD_SIZE=4); unset "
     "WORLD_SIZE",
     {OMPI(1, 4, 1, 4), "WORLD_SIZE=1"}},
};

TEST(launchers_that_are_wrong_are_refused)
{
    tt_ctx *ctx = test_ctx();
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        tt_cluster *c = NULL;
        int64_t blocks = tt_alloc_stats_get(ctx).blocks;
        tt_status st = find(ctx, bad[i].set, &c);
        CHECK_STR(tt_last_error(ctx).message, bad[i].message);
        CHECK(st == TT_EINVAL && c == NULL && tt_alloc_stats_get(ctx).blocks == blocks);
        tt_clear_error(ctx);
    }
    CHECK_OK(tt_close(ctx));
}

// ---- Slurm's short forms ---------------------------------------------------------------------

static void join(void *user, const char *host)
{
    char *list = user;
    size_t n = strlen(list);
    snprintf(list + n, 1024 - n, "%s%s", n > 0 ? " " : "", host);
}

TEST(node_lists_are_expanded)
{
    static const struct {
        const char *text, *hosts, *fault;
    } cases[] = {
        {"n1", "n1", NULL},
        {"n1,n2", "n1 n2", NULL},
        {"n[1-3]", "n1 n2 n3", NULL},
        {"n[1-3,7,9-10]", "n1 n2 n3 n7 n9 n10", NULL},
        {"n[08-11]", "n08 n09 n10 n11", NULL},
        {"n[098-101]x", "n098x n099x n100x n101x", NULL},
        {"r[1-2]n[1-2]", "r1n1 r1n2 r2n1 r2n2", NULL},
        {"r[1-2]-[01,03].site,login,gpu[5]",
         "r1-01.site r1-03.site r2-01.site r2-03.site login gpu5", NULL},
        {"tux[0-1],lx[15,17-18]", "tux0 tux1 lx15 lx17 lx18", NULL},
        {"n[1-1000000]", "n1 n2 n3 n4 n5 n6 n7 n8 n9 n10", NULL}, // no more than asked for
        {"n[9-8]", "", "between brackets there must be numbers and ranges: [1-3,7]"},
        {"n[]", "", "between brackets there must be numbers and ranges: [1-3,7]"},
        {"n[1,]", "n1", "between brackets there must be numbers and ranges: [1-3,7]"},
        {"n[-1]", "", "between brackets there must be numbers and ranges: [1-3,7]"},
        {"n[1-]", "", "between brackets there must be numbers and ranges: [1-3,7]"},
        {"n[a]", "", "between brackets there must be numbers and ranges: [1-3,7]"},
        {"n[99999999999]", "", "between brackets there must be numbers and ranges: [1-3,7]"},
        {"n[1", "", "a bracket is not closed"},
        {"", "", "the host is missing"},
        {"n1,", "n1", "the host is missing"},
        {"n1,,n2", "n1", "the host is missing"},
        {"-n[1-2]", "", "every part of a host name must begin with a letter or digit"},
        {"n1]", "", "a host name may contain only letters, digits, '.', '-' and '_'"},
        {"n1;rm", "", "a host name may contain only letters, digits, '.', '-' and '_'"},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        char list[1024] = "";
        int n = 0;
        const char *fault = tti_nodelist_expand(cases[i].text, 10, join, list, &n);
        CHECK_STR(list, cases[i].hosts);
        CHECK_STR(fault != NULL ? fault : "", cases[i].fault != NULL ? cases[i].fault : "");
    }
    char name[400]; // one that gets too long
    memset(name, 'a', sizeof(name));
    snprintf(name + 250, sizeof(name) - 250, "[100000-100001]");
    char list[1024] = "";
    int n = 0;
    CHECK_STR(tti_nodelist_expand(name, 10, join, list, &n), "a host name is too long");
}

TEST(numbers_per_node_are_read)
{
    static const struct {
        const char *text;
        int node, n; // 0: it is not told
    } cases[] = {{"1", 0, 1},       {"1", 1, 0},    {"2(x3)", 2, 2}, {"2(x3)", 3, 0},
                 {"2(x2),1", 2, 1}, {"3,2", 1, 2},  {"", 0, 0},      {"x", 0, 0},
                 {"2(x", 0, 0},     {"2(x)", 0, 0}, {"2(x0)", 0, 0}, {"0", 0, 0},
                 {"2,", 1, 0},      {"9999", 0, 0}, {"2(x3", 0, 0},  {"2(x999999999),1", 5, 2}};
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        int n = -1;
        bool ok = tti_per_node(cases[i].text, cases[i].node, &n);
        ck_assert_msg(ok == (cases[i].n > 0) && (!ok || n == cases[i].n), "%s of %d: %d",
                      cases[i].text, cases[i].node, n);
    }
}

// ---- the key in a folder that is shared ------------------------------------------------------

static tt_status get_key(tt_ctx *ctx, int rank, const char *id, const char *folder,
                         tti_loopback_key *k, unsigned char *key, char *told)
{
    tti_shared_key_opts o = {.rank = rank,
                             .rank_0 = "task 0",
                             .id = id,
                             .folder = folder,
                             .wait_ms = 100,
                             .by = "test",
                             .told = told};
    return tti_shared_key_get(ctx, &o, k, key);
}

TEST(machines_share_a_key_by_a_file)
{
    tt_ctx *ctx = test_ctx();
    tti_loopback_key k, other;
    unsigned char key[32], same[32];
    char told[TTI_ADDRESS] = "10.0.0.7:2222", heard[TTI_ADDRESS] = "", name[32], path[512];
    struct stat st;
    CHECK_OK(get_key(ctx, 0, "job 1", test_folder(), &k, key, told));
    CHECK_OK(get_key(ctx, 1, "job 1", test_folder(), &other, same, heard));
    CHECK(memcmp(key, same, 32) == 0);
    CHECK_STR(heard, told);
    tti_key_name("job 1", name);
    snprintf(path, sizeof(path), "%s/%s", test_folder(), name);
    CHECK_STR(k.path, path);
    CHECK(stat(path, &st) == 0 && (st.st_mode & 07777) == 0600);
    // Another job does not find it.
    CHECK(get_key(ctx, 1, "job 2", test_folder(), &other, same, heard) == TT_EPEER);
    CHECK_HAS(tt_last_error(ctx).message, "it is not there: rank 0 was not started, or the folder "
                                          "is not shared; set TUTTI_KEY_DIR to a folder");
    tt_clear_error(ctx);
    // One that others can read, or that is of an earlier start, does not count.
    CHECK(chmod(path, 0640) == 0);
    CHECK(get_key(ctx, 1, "job 1", test_folder(), &other, same, heard) == TT_EPEER);
    CHECK_HAS(tt_last_error(ctx).message, "it belongs to another user, or others can read it");
    tt_clear_error(ctx);
    CHECK(chmod(path, 0600) == 0 && utime(path, &(struct utimbuf){1, 1}) == 0);
    CHECK(get_key(ctx, 1, "job 1", test_folder(), &other, same, heard) == TT_EPEER);
    CHECK_HAS(tt_last_error(ctx).message, "it is of an earlier start");
    tt_clear_error(ctx);
    // Nor one with anything but a key and an address in it.
    command_write(name, "not a key\n");
    CHECK(get_key(ctx, 1, "job 1", test_folder(), &other, same, heard) == TT_EPEER);
    tt_clear_error(ctx);
    tti_loopback_key_end(&k); // with the file
    CHECK(access(path, F_OK) != 0);
    CHECK(get_key(ctx, 1, "job 1", "/no/such", &other, same, heard) == TT_EIO);
    CHECK_HAS(tt_last_error(ctx).message, "no file can be made in that folder");
    tt_clear_error(ctx);
    CHECK(get_key(ctx, 0, "job 1", "/no/such", &other, same, told) == TT_EIO);
    CHECK_HAS(tt_last_error(ctx).message, "cannot be written to '/no/such/key-");
    tt_clear_error(ctx);
    CHECK(get_key(ctx, 0, "job 1", NULL, &other, same, told) == TT_EINVAL); // and no home
    tt_clear_error(ctx);
    CHECK_OK(tt_close(ctx));
    CHECK_INT(command_shell("ls -A | grep -v out | grep -v err"), 1); // nothing is left
}
