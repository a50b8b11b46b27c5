/*
 * cli_engine.c - tutti run --engine: the sbatch file, the manifests and the mpirun command that it
 * makes, what they hold of the flags, and flags that an engine does not take.
 */
#include "../command.h"
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#ifdef TUTTI_HAVE_YAML
#include <yaml.h>
#endif

TEST(an_sbatch_file_holds_what_was_asked_for)
{
    command_write("my job.yaml", command_small_job);
    command_write("small.yaml", command_small_job);
    CHECK_INT(
        command_shell("$TUTTI run --engine slurm -n 4 --nodes 2 --gpus 1 --cpus 8 --memory "
                      "16G --time 1-02:03:04 --partition long --account team --grace 90 "
                      "--option --constraint=a100 --option '--mail-type=END' --dir \"/data/it's"
                      "\" --command /opt/tutti --epochs 3 'my job.yaml' --dry-run --write "
                      "job.sh && bash -n job.sh && cat job.sh"),
        0);
    static const char *const lines[] = {
        "#!/bin/bash\n",
        "#SBATCH --job-name=my-job\n#SBATCH --nodes=2\n#SBATCH --ntasks=4\n"
        "#SBATCH --ntasks-per-node=2\n#SBATCH --cpus-per-task=8\n#SBATCH --gpus-per-task=1\n"
        "#SBATCH --mem=32768M\n#SBATCH --time=1-02:03:04\n#SBATCH --partition=long\n"
        "#SBATCH --account=team\n#SBATCH --output=my-job-%j.out\n"
        "#SBATCH --requeue --open-mode=append\n#SBATCH --signal=TERM@90\n"
        "#SBATCH --constraint=a100\n#SBATCH --mail-type=END\n",
        "\ncd '/data/it'\\''s' || exit 1\n",
        "\nexport TUTTI_STARTED_BY='tutti run --engine slurm -n 4'\n",
        "\nsrun --kill-on-bad-exit=0 /opt/tutti train --resume --run runs/my-job-slurm-\""
        "$SLURM_JOB_ID\" --epochs=3 -- 'my job.yaml'\n",
        "\nif [ $code = 85 ]; then\n    scontrol requeue \"$SLURM_JOB_ID\"\nfi\nexit $code\n",
    };
    for (size_t i = 0; i < sizeof(lines) / sizeof(lines[0]); i++)
        CHECK_HAS(command_out, lines[i]);
    // A run that the user names is not replaced; unequal nodes; minutes.
    command_ok("run --engine slurm -n 3 --nodes 2 --time 90 --run here small.yaml --dry-run");
    CHECK_HAS(command_out, "#SBATCH --ntasks=3\n#SBATCH --time=0-01:30:00\n");
    CHECK_HAS(command_out, " train --run=here -- small.yaml\n");
}

// The file does what it says: stand-ins for srun and scontrol, once saved, once finished.
TEST(an_sbatch_file_requeues_a_job_that_was_saved)
{
    command_write("small.yaml", command_small_job);
    command_write("srun", "#!/bin/bash\necho \"srun $*\" >>log\nexit $(cat code)\n");
    command_write("scontrol", "#!/bin/bash\necho \"scontrol $*\" >>log\n");
    CHECK_INT(command_shell("chmod +x srun scontrol && $TUTTI run --engine slurm -n 2 small.yaml "
                            "--dry-run --write job.sh"),
              0);
    static const struct {
        const char *code;
        int exit;
        bool again;
    } cases[] = {{"0", 0, false}, {"85", 85, true}, {"3", 3, false}};
    for (int i = 0; i < 3; i++) {
        command_write("code", cases[i].code);
        command_write("log", "");
        CHECK_INT(command_shell("PATH=$PWD:$PATH SLURM_JOB_ID=7 bash job.sh"), cases[i].exit);
        CHECK_INT(command_shell("cat log"), 0);
        CHECK_HAS(command_out, "train --resume --run runs/small-slurm-7 -- small.yaml\n");
        CHECK((strstr(command_out, "scontrol requeue 7\n") != NULL) == cases[i].again);
    }
}

TEST(slurm_gets_the_file_or_a_step)
{
    command_write("small.yaml", command_small_job);
    command_write("sbatch", "#!/bin/bash\necho \"Submitted batch job 7: $1\"; cat >got\n");
    command_write("srun", "#!/bin/bash\necho \"srun $*\"\nexit 85\n");
    CHECK_INT(command_shell("chmod +x sbatch srun; PATH=$PWD:$PATH $TUTTI run --engine slurm -n 2 "
                            "small.yaml --launcher 'sbatch --wait' && bash -n got && cat got"),
              0);
    CHECK_HAS(command_out, "Submitted batch job 7: --wait\n#!/bin/bash\n");
    CHECK_INT(command_shell("SLURM_JOB_ID=7 PATH=$PWD:$PATH $TUTTI run --engine slurm -n 2 "
                            "small.yaml --option '--exclusive -m block'"),
              85);
    CHECK_HAS(command_out, "srun --exclusive -m block --ntasks=2 ");
    CHECK_INT(command_shell("$TUTTI run --engine slurm -n 2 --launcher no-such small.yaml"), 1);
    CHECK_HAS(command_err, "'no-such' was not found: is this a machine of a Slurm cluster?");
}

#ifdef TUTTI_HAVE_YAML
// How many documents there are; -1: it is not YAML.
static int documents(const char *text)
{
    yaml_parser_t parser;
    int n = 0;
    yaml_parser_initialize(&parser);
    yaml_parser_set_input_string(&parser, (const unsigned char *)text, strlen(text));
    for (bool more = true; more && n >= 0;) {
        yaml_document_t d;
        if (!yaml_parser_load(&parser, &d)) {
            n = -1;
            break;
        }
        more = yaml_document_get_root_node(&d) != NULL;
        n += more;
        yaml_document_delete(&d);
    }
    yaml_parser_delete(&parser);
    return n;
}
#endif

TEST(manifests_hold_what_was_asked_for)
{
    command_write("On.yaml", command_small_job);
    command_ok("run --engine k8s -n 4 --image site/tutti:1.2 --claim data --gpus 2 --cpus 4 "
               "--memory 512M --time 60 --namespace team --grace 45 --epochs 3 On.yaml --dry-run");
#ifdef TUTTI_HAVE_YAML
    CHECK_INT(documents(command_out), 3);
#endif
    static const char *const lines[] = {
        "#   kubectl create secret generic on-key --from-file=secret=secret --namespace=team\n",
        "kind: ConfigMap\nmetadata:\n  name: \"on-job\"\n  namespace: \"team\"\n",
        "kind: Service\nmetadata:\n  name: \"on\"\n",
        "  clusterIP: None ",
        "  completionMode: Indexed ",
        "  completions: 4\n  parallelism: 4\n",
        "  activeDeadlineSeconds: 3600\n",
        "onExitCodes: {containerName: tutti, operator: In, values: [85]}\n",
        "      subdomain: \"on\"\n      terminationGracePeriodSeconds: 45\n",
        "          image: \"site/tutti:1.2\"\n          workingDir: \"/work\"\n",
        "            - \"train\"\n            - --resume\n            - \"--run=runs/on\"\n"
        "            - \"--epochs=3\"\n            - \"--\"\n"
        "            - \"/etc/tutti/job/job.yaml\"\n",
        "{name: TUTTI_SIZE, value: \"4\"}\n",
        "{name: TUTTI_LEADER, value: \"on-0.on:29600\"}\n",
        "{name: TUTTI_SECRET_FILE, value: /etc/tutti/key/secret}\n",
        "              cpu: 4\n              memory: 512Mi\n            limits:\n"
        "              memory: 512Mi\n              nvidia.com/gpu: 2\n",
        "secret: {secretName: on-key, defaultMode: 256}",
        "persistentVolumeClaim: {claimName: \"data\"}\n",
    };
    for (size_t i = 0; i < sizeof(lines) / sizeof(lines[0]); i++)
        CHECK_HAS(command_out, lines[i]);
    // The job file is in it as it is.
    char line[256], text[300];
    const char *at = command_small_job;
    while (*at != '\0') {
        size_t n = strcspn(at, "\n");
        snprintf(line, sizeof(line), "%.*s", (int)n, at);
        snprintf(text, sizeof(text), "\n    %s\n", line);
        if (n > 0)
            CHECK_HAS(command_out, text);
        at += n + (at[n] == '\n');
    }
    // Without most of it, and of a program.
    command_ok("run --engine k8s -n 1 --image i --dry-run On.yaml");
    CHECK_HAS(command_out, "          emptyDir: {}\n");
    CHECK(strstr(command_out, "resources:") == NULL);
    command_ok("run --engine k8s -n 2 --image i --dry-run python train.py --seed 1");
    CHECK_HAS(command_out, "            - \"python\"\n            - \"train.py\"\n"
                           "            - \"--seed\"\n            - \"1\"\n          env:\n");
    CHECK(strstr(command_out, "ConfigMap") == NULL);
}

// The secret is in nothing that is printed or started.
TEST(mpirun_is_started_with_what_was_asked_for)
{
    command_write("small.yaml", command_small_job);
    command_write("mpirun", "#!/bin/bash\n[ \"$1\" != --version ] || { cat version; exit; }\n"
                            "echo \"mpirun $*\"; echo \"id ${#TUTTI_JOB_ID}\"; exit 76\n");
    command_write("version", "mpirun (Open MPI) 4.1.4\n");
    CHECK_INT(
        command_shell("chmod +x mpirun; PATH=$PWD:$PATH $TUTTI run --engine mpi -n 4 -H a:2,b:2 "
                      "--option --oversubscribe small.yaml --epochs 2 --command tutti"),
        76);
    CHECK_STR(command_out, "mpirun --oversubscribe -n 4 --host a:2,b:2 -x TUTTI_JOB_ID -x "
                           "TUTTI_STARTED_BY tutti train --epochs=2 -- small.yaml\nid 32\n");
    command_write("version", "HYDRA build details:\n    Version: 4.0.2\n");
    CHECK_INT(
        command_shell("PATH=$PWD:$PATH $TUTTI run --engine mpi --hosts h -n 2 --command tutti "
                      "small.yaml"),
        76);
    CHECK_STR(command_out, "mpirun -n 2 -f h tutti train -- small.yaml\nid 32\n");
    CHECK_INT(command_shell("$TUTTI run --engine mpi --launcher no-such -n 2 small.yaml"), 1);
    CHECK_HAS(command_err, "cannot start 'no-such'");
}

TEST(engines_refuse_what_they_cannot_do)
{
    static const struct {
        const char *line, *message;
    } cases[] = {
        {"--engine pbs -n 2 small.yaml",
         "--engine: 'pbs' is not one of local, ssh, mpi, slurm, k8s"},
        {"--engine mpi small.yaml", "tutti run --engine mpi needs -n N, the number of processes"},
        {"--engine mpi -n 2 --gpus 1 small.yaml",
         "--gpus does not apply to --engine mpi; it does to slurm, k8s"},
        {"--engine k8s -n 2 --partition p small.yaml",
         "--partition does not apply to --engine k8s; it does to slurm"},
        {"--engine local -n 2 --nodes 2 small.yaml",
         "--nodes does not apply to --engine local; it does to slurm"},
        {"-n 2 --nodes 2 small.yaml", "--nodes does not apply to --engine local; it does to slurm"},
        {"-H a:2 --gpus 1 small.yaml", "--gpus does not apply to --engine ssh"},
        {"--engine slurm -n 2 --nodes 3 small.yaml", "--nodes: 3 machines for 2 processes"},
        {"--engine slurm -n 2 --time 1:2 small.yaml", "--time: '1:2' is not a time limit"},
        {"--engine slurm -n 2 --time 0 small.yaml", "--time: '0' is not a time limit"},
        {"--engine slurm -n 2 --memory 16 small.yaml", "--memory: '16' is not a size"},
        {"--engine slurm -n 2 --memory 16GB small.yaml", "--memory: '16GB' is not a size"},
        {"--engine slurm -n 2 --partition a;b small.yaml", "--partition: 'a;b' has characters"},
        {"--engine slurm -n 2 --write f small.yaml", "--write needs --dry-run"},
        {"--engine k8s -n 2 small.yaml", "needs --image"},
        {"--engine k8s -n 2 --image i small.yaml", "prints manifests with --dry-run"},
        {"--engine mpi -n 2 --devices cpu:0;cpu:1 small.yaml", "a list per process is for"},
    };
    command_write("small.yaml", command_small_job);
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        char line[256];
        snprintf(line, sizeof(line), "run %s", cases[i].line);
        CHECK_INT(command_run(line), 2);
        CHECK_HAS(command_err, cases[i].message);
    }
    CHECK_INT(command_run("run --engine slurm -n 2 none.yaml --dry-run"), 3);
    CHECK_HAS(command_err, "none.yaml");
}

// The file resumes whatever is there: a run of another job beside it is no slip of the pen.
TEST(two_jobs_of_one_name_have_runs_of_their_own)
{
    command_write("small.yaml", command_small_job);
    command_write("srun", "#!/bin/bash\nexec \"${@:2}\"\n");
    CHECK_INT(command_shell("chmod +x srun && $TUTTI run --engine slurm -n 1 small.yaml --dry-run "
                            "--write job.sh && for id in 8 10 10; do PATH=$PWD:$PATH "
                            "SLURM_JOB_ID=$id bash job.sh || exit 1; done; ls runs"),
              0);
    CHECK_HAS(command_out, "small-slurm-10\nsmall-slurm-8\n");
}
