/*
 * cli.h - the tutti command: one file per verb, one record each. Only this folder prints to stdout
 * or decides exit codes.
 */
#ifndef TUTTI_CLI_CLI_H
#define TUTTI_CLI_CLI_H

#include "base/base.h"
#include "record/record.h"
#include <stdio.h>
#include <tutti/tutti.h>

// Exit codes; `tutti help exit` prints them.
enum {
    CLI_OK = 0,
    CLI_FAILED = 1,  // an error, or a difference found by diff
    CLI_USAGE = 2,   // the command line is wrong
    CLI_BAD_JOB = 3, // a job, its data or its model is wrong or does not fit: again does not help
    CLI_NAN = 4,     // the loss was not finite
    CLI_LOST = 76,   // a process or device of the job was lost or stuck: to be resumed
    CLI_AGAIN = 85,  // ended by SIGTERM or SIGHUP after saving: to be resumed
    CLI_BREAK = 130, // ended by Ctrl-C
};

#define CLI_MAX_TEXTS 256
#define CLI_MAX_WORDS 64

// What a flag says that may be given several times.
typedef struct cli_texts {
    const char *v[CLI_MAX_TEXTS];
    int n;
} cli_texts;

// What flags and words of the command line say.
typedef struct cli_args {
    bool json, quiet, dot, help, resume, restart, alone, dry_run, partial, no_trial, all, verify,
        failed, stages, plain, isolate;
    const char *devices, *strategy, *isa, *svg, *level, *run, *runs, *checkpoint, *hashes, *input,
        *data, *output, *layout, *to, *prompt, *map, *only, *on, *hosts, *ssh, *dir, *command,
        *topology, *lr, *stage, *sort, *chain, *key, *interval, *build, *commits, *metric, *listen,
        *token, *tokenizer, *task, *jobs, *bind, *container;
    const char *engine, *launcher, *memory, *time, *partition, *account, *image, *claim, *space,
        *write, *workers; // of tutti run
    int64_t rows, threads, lanes, profile, trace, steps, most, count, length, seed, processes, port,
        grace, top, epochs, batch, limit, until, nodes, gpus, cpus, gather, queue, body, timeout,
        top_k, samples, train, local, ready_fd, wait, replace, loss, restarts;
    double temperature, bound, top_p, penalty;
    cli_texts targets, sets, where, options, stops, feeds;
    const struct cli_verb *verb;
    const char *words[CLI_MAX_WORDS]; // what is no flag
    int n_words;
} cli_args;

typedef struct cli_verb {
    const char *name;
    const char *words;   // "FILE", for the usage line
    const char *summary; // one line
    const char *help;    // more lines
    const char *flags;   // names of the flags it takes, with spaces between
    int min_words, max_words;
    bool alone;                           // refused where the environment names several processes
    bool joins;                           // joins them
    bool (*ends_flags)(const char *word); // behind such a first word all are words; NULL: none is
    int (*run)(const cli_args *args);
} cli_verb;

extern const cli_verb cli_train, cli_eval, cli_predict, cli_summary, cli_bench, cli_plot, cli_trace,
    cli_data, cli_inspect, cli_convert, cli_serve_model, cli_generate_text, cli_tokenize,
    cli_devices, cli_kernels, cli_plan, cli_diff, cli_env, cli_key, cli_run, cli_resize, cli_runs,
    cli_reproduce, cli_audit, cli_bisect, cli_serve, cli_ping, cli_state, cli_graph, cli_version,
    cli_help;
extern const cli_verb *const cli_verbs[]; // NULL at the end

// args.c: reads the words after the verb; CLI_USAGE after telling what is wrong.
int cli_parse(const cli_verb *verb, int argc, char **argv, cli_args *out);
void cli_print_flags(const cli_verb *verb); // help.c: as help shows them
bool cli_takes(const cli_verb *verb, const char *flag);
// A flag of any verb, for help as JSON; false past the end.
typedef struct cli_flag {
    const char *name, *type, *help;
    const char *value; // what its value is called: "N"; NULL: it has none
    bool repeats, has_bounds;
    int64_t min, max;
} cli_flag;
bool cli_flag_at(int i, cli_flag *out);
int cli_help_json(const cli_args *args); // help_json.c
// The flags of a that verb takes, as words "--name=value" for another command, NULL behind them;
// each is the caller's to free. How many; -1: out of memory, or more than room.
int cli_flag_words(const cli_verb *verb, const cli_args *a, char **out, int room);

// runs.c
bool cli_is_folder(const char *path);
// What a run must have to be of use: one that failed at once has nothing.
typedef enum cli_need {
    CLI_NOTHING,
    CLI_CHECKPOINT,
    CLI_STEPS,
} cli_need;
// The folder that word means: itself, if it is a run's, one of that name in --runs, or a job's
// newest run there. Of a job's runs the newest with what is needed; if there is a newer one, that
// is told.
tt_status cli_run_find(tt_ctx *ctx, const cli_args *args, const char *word, cli_need need,
                       char path[TTI_RUN_PATH]);
// The same by the job's name; "" if it has no run.
tt_status cli_run_newest(tt_ctx *ctx, const char *root, const char *name, cli_need need,
                         char path[TTI_RUN_PATH]);

bool cli_is_run(const char *folder); // has it a job or checkpoints?
/*
 * The run beside path, or the job's name of one, whose name is nearest to path's; false: none is
 * near. Names that differ in digits only are those of different runs, not slips of the pen.
 */
bool cli_run_near(const char *path, char near[TTI_RUN_PATH]);

// The file or folder that holds the weights that word means: itself, the newest run of a job file,
// or a run as above.
tt_status cli_weights_find(tt_ctx *ctx, const cli_args *args, const char *word,
                           char path[TTI_PATH_MAX]);

bool cli_has_checkpoint(const char *run);
// The newest checkpoint of a run's folder.
tt_status cli_newest_checkpoint(tt_ctx *ctx, const char *run, char path[TTI_RUN_PATH + 64]);

// same_bits.c: a verb of bench.
int cli_same_bits(const cli_args *args);

// scale.c: tutti bench scale.
int cli_scale(const cli_args *args);

// env.c: CLI_OK, unless the environment names other processes that would do the same work; then
// CLI_BAD_JOB after telling so.
int cli_alone(const cli_args *args);
// The same for a launcher alone, as other sources are replaced by tutti run.
int cli_not_one_of_many(const cli_args *args);

// main.c
const cli_verb *cli_find(const char *name);
// Tells what is wrong with the command line on stderr; gives CLI_USAGE.
int cli_usage(const char *fmt, ...) TT_PRINTF(1, 2);
// A line to standard error, behind "tutti: ".
void cli_tell(const char *fmt, ...) TT_PRINTF(1, 2);
// Tells an error of the command's own on stderr; gives CLI_FAILED.
int cli_error(const char *fmt, ...) TT_PRINTF(1, 2);
// The exit code of a status: of building a job's parts, of training, of measuring.
int cli_code(tt_status st);
// The exit code when a context (NULL: of cli_open()) could not be opened: a device or instruction
// set that the command line asks for and that is not there is the command line's mistake; that the
// system gives no threads or memory is not.
int cli_open_code(const cli_args *args, const tt_ctx *ctx);
// A context with the devices and settings of the flags; NULL after telling why not.
tt_ctx *cli_open(const cli_args *args, const char *devices);
// Closes it and tells its error, if any, with what (a file name, or NULL) in front.
int cli_close(tt_ctx *ctx, const char *what);
// One line of the log on stderr.
void cli_log_line(const tt_event *ev);
tt_level cli_level(const cli_args *args);
bool cli_is_stdout(const char *file); // by whatever name, "/dev/stdout"
// Has the reader of standard output ended, as in `| head`? Then failing writes are no error.
bool cli_is_unread(void);
// Tells that the file was written, "FILE: the <what> of <whom>": not with --quiet or --json, nor
// behind the data on standard output.
void cli_wrote(const cli_args *args, const char *file, const char *what, const char *whom);
// Prints a text that may be NULL.
void cli_print(const char *s);
void cli_printf(const char *fmt, ...) TT_PRINTF(1, 2);
// Text that files, their names or other processes may have parts in: no control character of it
// reaches a terminal (tti_escape()). All of these go through it.
void cli_write(FILE *to, const char *s, size_t n, bool colours);
// Prints what was collected and frees it; false: memory ran out before.
bool cli_print_text(tti_text *t);

#endif
