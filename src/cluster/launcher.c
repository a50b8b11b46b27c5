/*
 * launcher.c - has a launcher that Tutti does not join started several processes? Each would then
 * do all of the work. Only what says so of this very process counts: an allocation with room for
 * many tasks, as the shell of a batch script has it, is none.
 */
#include "cluster/cluster.h"
#include <stdio.h>
#include <stdlib.h>

static const struct {
    const char *launcher, *size;
    const char *with; // it counts only where this is set, too; NULL: always
} sizes[] = {
    {"srun", "SLURM_STEP_NUM_TASKS", "SLURM_STEP_ID"},
    {"mpirun", "OMPI_COMM_WORLD_SIZE", NULL},
    {"mpirun", "PMI_SIZE", NULL},
    {"mpirun", "MV2_COMM_WORLD_SIZE", NULL},
    {"jsrun", "JSM_NAMESPACE_SIZE", NULL},
    {"flux run", "FLUX_JOB_SIZE", NULL},
};

bool tti_launcher_find(char out[TTI_LAUNCHER_TEXT])
{
    for (int i = 0; i < TTI_COUNT(sizes); i++) {
        const char *size = tti_env(sizes[i].size);
        bool counts = sizes[i].with == NULL || tti_env(sizes[i].with) != NULL;
        long n = size != NULL && counts ? strtol(size, NULL, 10) : 0;
        if (n < 2)
            continue;
        snprintf(out, TTI_LAUNCHER_TEXT, "%s started %ld processes (%s=%ld)", sizes[i].launcher, n,
                 sizes[i].size, n);
        return true;
    }
    const char *rank = tti_env("PMIX_RANK"); // which has no variable of how many there are
    long r = rank != NULL ? strtol(rank, NULL, 10) : 0;
    if (r < 1)
        return false;
    snprintf(out, TTI_LAUNCHER_TEXT, "a launcher started %ld processes or more (PMIX_RANK=%ld)",
             r + 1, r);
    return true;
}
