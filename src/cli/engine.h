/*
 * engine.h - tutti run with the launchers of others: mpirun, Slurm, Kubernetes.
 */
#ifndef TUTTI_CLI_ENGINE_H
#define TUTTI_CLI_ENGINE_H

#include "cli/cli.h"

#define CLI_LAUNCH_WORDS 1024
#define CLI_ENGINE_BY    "tutti run --engine " // begins TUTTI_STARTED_BY of such processes

// Is --engine a known one, and does it take the other flags? CLI_USAGE after telling what is wrong.
int cli_engine_check(const cli_args *a);
bool cli_engine_is_unknown(const cli_args *a);
bool cli_engine_is_other(const cli_args *a); // is it one that others start: mpi, slurm, k8s?
// Starts the processes, submits the job, or prints what would be; the exit code.
int cli_engine_run(const cli_args *a, bool is_program);

// What is to be started, as the files of engines have it.
typedef struct cli_started {
    const cli_args *args;
    char **words;     // what each process runs; NULL at the end
    char name[54];    // of the job: letters, digits and dashes
    const char *dir;  // working directory
    const char *job;  // text of the job file; NULL: a program
    bool is_program;  // not a job file
    bool adds_run;    // the engine names the run's folder and resumes it
    const char *runs; // folder of runs
    int64_t n, nodes, grace_s;
    int64_t time_s;     // 0: no limit
    int64_t memory_mib; // 0: not told
} cli_started;

// engine_files.c
void cli_sbatch_file(const cli_started *s, tti_text *t);
void cli_manifests(const cli_started *s, tti_text *t);
void cli_shell_word(tti_text *t, const char *word); // quoted if that is needed

#endif
