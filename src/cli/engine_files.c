/*
 * engine_files.c - the files by which other engines run a job: an sbatch file for Slurm, manifests
 * for Kubernetes. Both let processes save when they are stopped (SIGTERM) and start the job again
 * after exit code 85; neither holds a secret.
 */
#include "cli/engine.h"
#include <string.h>

#define PORT      29600
#define MEETS_MS  600000 // pods come when there is room for them
#define JOB_IN    "/etc/tutti/job/job.yaml"
#define SECRET_IN "/etc/tutti/key/secret"

void cli_shell_word(tti_text *t, const char *word)
{
    static const char plain[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
                                "-_=./:,@%+";
    if (word[0] != '\0' && word[strspn(word, plain)] == '\0') {
        tti_text_add(t, "%s", word);
        return;
    }
    tti_text_put(t, "'", 1);
    for (; *word != '\0'; word++)
        tti_text_put(t, *word == '\'' ? "'\\''" : word, *word == '\'' ? 4 : 1);
    tti_text_put(t, "'", 1);
}

// ---- Slurm -----------------------------------------------------------------------------------

static void sbatch_lines(const cli_started *s, tti_text *t)
{
    const cli_args *a = s->args;
    tti_text_add(t, "#SBATCH --job-name=%s\n#SBATCH --nodes=%lld\n#SBATCH --ntasks=%lld\n", s->name,
                 (long long)s->nodes, (long long)s->n);
    if (s->n % s->nodes == 0)
        tti_text_add(t, "#SBATCH --ntasks-per-node=%lld\n", (long long)(s->n / s->nodes));
    if (a->cpus > 0)
        tti_text_add(t, "#SBATCH --cpus-per-task=%lld\n", (long long)a->cpus);
    if (a->gpus > 0)
        tti_text_add(t, "#SBATCH --gpus-per-task=%lld\n", (long long)a->gpus);
    if (s->memory_mib > 0) // Slurm knows it per node or per core
        tti_text_add(t, "#SBATCH --mem=%lldM\n",
                     (long long)(s->memory_mib * ((s->n + s->nodes - 1) / s->nodes)));
    if (s->time_s > 0)
        tti_text_add(t, "#SBATCH --time=%lld-%02lld:%02lld:%02lld\n",
                     (long long)(s->time_s / 86400), (long long)(s->time_s / 3600 % 24),
                     (long long)(s->time_s / 60 % 60), (long long)(s->time_s % 60));
    if (a->partition != NULL)
        tti_text_add(t, "#SBATCH --partition=%s\n", a->partition);
    if (a->account != NULL)
        tti_text_add(t, "#SBATCH --account=%s\n", a->account);
    tti_text_add(t,
                 "#SBATCH --output=%s-%%j.out\n"
                 "#SBATCH --requeue --open-mode=append\n"
                 "#SBATCH --signal=TERM@%lld\n",
                 s->name, (long long)s->grace_s);
    for (int i = 0; i < a->options.n; i++)
        tti_text_add(t, "#SBATCH %s\n", a->options.v[i]);
}

void cli_sbatch_file(const cli_started *s, tti_text *t)
{
    tti_text_add(t, "#!/bin/bash\n# Made by tutti run --engine slurm. Submit it with sbatch.\n");
    sbatch_lines(s, t);
    tti_text_add(t, "\ncd ");
    cli_shell_word(t, s->dir);
    tti_text_add(t,
                 " || exit 1\n"
                 "export TUTTI_STARTED_BY='" CLI_ENGINE_BY "slurm -n %lld'\n"
                 "# The processes of one srun are one job. SIGTERM, before the time limit or at a\n"
                 "# preemption, goes to them: they save and exit with 85.\n"
                 "srun --kill-on-bad-exit=0",
                 (long long)s->n);
    for (char **w = s->words; *w != NULL; w++) {
        tti_text_add(t, " ");
        cli_shell_word(t, *w);
        if (s->adds_run && w == s->words + 1) {
            tti_text_add(t, " --resume --run ");
            cli_shell_word(t, s->runs);
            tti_text_add(t, "/%s-slurm-\"$SLURM_JOB_ID\"", s->name);
        }
    }
    tti_text_add(t,
                 "\ncode=$?\n"
                 "# Slurm does not requeue a job that has exited by itself, unless RequeueExit has "
                 "85.\n"
                 "if [ $code = 85 ]; then\n"
                 "    scontrol requeue \"$SLURM_JOB_ID\"\n"
                 "fi\n"
                 "exit $code\n");
}

// ---- Kubernetes ------------------------------------------------------------------------------

static void meta(const cli_started *s, tti_text *t, const char *version, const char *kind,
                 const char *suffix)
{
    tti_text_add(t, "apiVersion: %s\nkind: %s\nmetadata:\n  name: \"%s%s\"\n", version, kind,
                 s->name, suffix);
    if (s->args->space != NULL)
        tti_text_add(t, "  namespace: \"%s\"\n", s->args->space);
    tti_text_add(t, "  labels: {app: \"%s\"}\n", s->name);
}

// A text as a block, each line as it is.
static void block(tti_text *t, const char *text, const char *indent)
{
    for (const char *at = text, *end; *at != '\0'; at = end + (*end == '\n')) {
        end = at + strcspn(at, "\n");
        tti_text_add(t, "%s%.*s\n", end > at ? indent : "", (int)(end - at), at);
    }
}

static void resources(const cli_started *s, tti_text *t)
{
    const cli_args *a = s->args;
    if (a->cpus == 0 && s->memory_mib == 0 && a->gpus == 0)
        return;
    tti_text_add(t, "          resources:\n");
    if (a->cpus > 0 || s->memory_mib > 0) {
        tti_text_add(t, "            requests:\n");
        if (a->cpus > 0)
            tti_text_add(t, "              cpu: %lld\n", (long long)a->cpus);
        if (s->memory_mib > 0)
            tti_text_add(t, "              memory: %lldMi\n", (long long)s->memory_mib);
    }
    if (s->memory_mib > 0 || a->gpus > 0)
        tti_text_add(t, "            limits:\n");
    if (s->memory_mib > 0)
        tti_text_add(t, "              memory: %lldMi\n", (long long)s->memory_mib);
    if (a->gpus > 0)
        tti_text_add(t, "              nvidia.com/gpu: %lld\n", (long long)a->gpus);
}

static void container(const cli_started *s, tti_text *t)
{
    tti_text_add(t, "        - name: tutti\n          image: ");
    tti_text_json(t, s->args->image);
    tti_text_add(t, "\n          workingDir: ");
    tti_text_json(t, s->dir);
    tti_text_add(t, "\n          command:\n");
    for (char **w = s->words; *w != NULL; w++) {
        bool is_job = s->job != NULL && w[1] == NULL;
        tti_text_add(t, "            - ");
        tti_text_json(t, is_job ? JOB_IN : *w);
        tti_text_add(t, "\n");
        if (s->adds_run && w == s->words + 1) {
            tti_text_add(t, "            - --resume\n            - ");
            tti_text add = {.ctx = t->ctx};
            tti_text_add(&add, "--run=%s/%s", s->runs, s->name);
            char *run = tti_text_take(&add);
            tti_text_json(t, run != NULL ? run : "");
            tti_free(t->ctx, run);
            tti_text_add(t, "\n");
        }
    }
    tti_text_add(t,
                 "          env:\n"
                 "            - {name: TUTTI_SIZE, value: \"%lld\"}\n"
                 "            - {name: TUTTI_LEADER, value: \"%s-0.%s:%d\"}\n"
                 "            - {name: TUTTI_SECRET_FILE, value: " SECRET_IN "}\n"
                 "            - {name: TUTTI_RENDEZVOUS_MS, value: \"%d\"}\n"
                 "            - {name: TUTTI_STARTED_BY, value: " CLI_ENGINE_BY "k8s -n %lld}\n",
                 (long long)s->n, s->name, s->name, PORT, MEETS_MS, (long long)s->n);
    resources(s, t);
    tti_text_add(t, "          volumeMounts:\n"
                    "            - {name: key, mountPath: /etc/tutti/key, readOnly: true}\n");
    if (s->job != NULL)
        tti_text_add(t, "            - {name: job, mountPath: /etc/tutti/job, readOnly: true}\n");
    tti_text_add(t, "            - name: work\n              mountPath: ");
    tti_text_json(t, s->dir);
    tti_text_add(t, "\n");
}

static void volumes(const cli_started *s, tti_text *t)
{
    tti_text_add(t,
                 "      volumes:\n"
                 "        - name: key\n"
                 "          secret: {secretName: %s-key, defaultMode: 256} # 0400\n",
                 s->name);
    if (s->job != NULL)
        tti_text_add(t, "        - name: job\n          configMap: {name: %s-job}\n", s->name);
    if (s->args->claim != NULL)
        tti_text_add(t,
                     "        - name: work\n          persistentVolumeClaim: {claimName: \"%s\"}\n",
                     s->args->claim);
    else
        tti_text_add(t, "        - name: work # runs go with their pods; --claim keeps them\n"
                        "          emptyDir: {}\n");
}

static void job(const cli_started *s, tti_text *t)
{
    meta(s, t, "batch/v1", "Job", "");
    tti_text_add(t,
                 "spec:\n"
                 "  completionMode: Indexed # the index is the rank\n"
                 "  completions: %lld\n"
                 "  parallelism: %lld\n"
                 "  backoffLimit: %lld\n",
                 (long long)s->n, (long long)s->n, (long long)(6 * s->n));
    if (s->time_s > 0)
        tti_text_add(t, "  activeDeadlineSeconds: %lld\n", (long long)s->time_s);
    tti_text_add(t,
                 "  podFailurePolicy: # 85: saved, to be continued; 2, 3, 4: the job is wrong\n"
                 "    rules:\n"
                 "      - action: Ignore\n"
                 "        onExitCodes: {containerName: tutti, operator: In, values: [85]}\n"
                 "      - action: Ignore\n"
                 "        onPodConditions: [{type: DisruptionTarget, status: \"True\"}]\n"
                 "      - action: FailJob\n"
                 "        onExitCodes: {containerName: tutti, operator: In, values: [2, 3, 4]}\n"
                 "  template:\n"
                 "    metadata:\n"
                 "      labels: {app: \"%s\"}\n"
                 "    spec:\n"
                 "      restartPolicy: Never\n"
                 "      subdomain: \"%s\"\n"
                 "      terminationGracePeriodSeconds: %lld\n"
                 "      containers:\n",
                 s->name, s->name, (long long)s->grace_s);
    container(s, t);
    volumes(s, t);
}

void cli_manifests(const cli_started *s, tti_text *t)
{
    const char *space = s->args->space;
    tti_text_add(t,
                 "# Made by tutti run --engine k8s. The job's secret, once for each job:\n"
                 "#   tutti key new secret\n"
                 "#   kubectl create secret generic %s-key --from-file=secret=secret%s%s\n"
                 "# Then: kubectl apply -f FILE\n",
                 s->name, space != NULL ? " --namespace=" : "", space != NULL ? space : "");
    if (s->job != NULL) {
        meta(s, t, "v1", "ConfigMap", "-job");
        tti_text_add(t, "data:\n  job.yaml: |2\n");
        block(t, s->job, "    ");
        tti_text_add(t, "---\n");
    }
    meta(s, t, "v1", "Service", "");
    tti_text_add(t,
                 "spec:\n"
                 "  clusterIP: None # names for the pods: %s-0.%s\n"
                 "  publishNotReadyAddresses: true\n"
                 "  selector: {app: \"%s\"}\n"
                 "---\n",
                 s->name, s->name, s->name);
    job(s, t);
}
