/*
 * cli_train.c - the command trains: what it prints and leaves behind, its exit codes, and that a
 * run that was ended, killed or resumed has the weights of one that was left alone.
 */
#include "../command.h"
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <jansson.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static bool is_there(const char *name)
{
    char path[600];
    snprintf(path, sizeof(path), "%s/%s", test_folder(), name);
    return access(path, F_OK) == 0;
}

// The weights_hash of the last line of what was printed.
static void hash_of(const char *text, char out[64])
{
    json_t *o = command_last_object(text, NULL);
    const char *hash = json_string_value(json_object_get(o, "weights_hash"));
    ck_assert_msg(hash != NULL && strlen(hash) == 32, "no weights_hash in %s", text);
    snprintf(out, 64, "%s", hash);
    json_decref(o);
}

// ---- what is printed -------------------------------------------------------------------------

// "time 52 ms: compute 12 %, data 8 %, ...": the parts add up.
static void check_percentages(void)
{
    int sum = 0, n = 0;
    const char *line = strstr(command_out, "\ntime        ");
    for (const char *s = line + 1; s < strchr(line + 1, '\n'); s++) {
        int percent;
        if (*s != ' ' || sscanf(s, " %d %%", &percent) != 1)
            continue;
        const char *digits = s + strspn(s, " ");
        if (digits[strspn(digits, "0123456789") + 1] != '%')
            continue;
        sum += percent;
        n++;
        s = digits;
    }
    CHECK_INT(n, 5);
    CHECK_INT(sum, 100);
}

TEST(train_makes_a_run)
{
    command_write("small.yaml", command_small_job);
    command_ok("train small.yaml");
    CHECK_STR(command_err, "");
    CHECK_HAS(command_out, "epoch 1/3  loss ");
    CHECK_HAS(command_out, "epoch 3/3  loss ");
    CHECK_HAS(command_out, "  validation loss ");
    CHECK_HAS(command_out, "\ntime        ");
    check_percentages();
    CHECK_HAS(command_out, "\ntest        loss ");
    CHECK_HAS(command_out, " after 30 steps\n");
    CHECK_HAS(command_out, "\nrun         runs/small-001\n");
    CHECK(strchr(command_out, '\r') == NULL && strchr(command_out, '\033') == NULL);
    CHECK(is_there("runs/small-001/job.yaml") && is_there("runs/small-001/events.jsonl"));
    CHECK(is_there("runs/small-001/tensorboard") && is_there("runs/small-001/checkpoints/step-30"));
    command_read("runs/small-001/events.jsonl", command_out, sizeof(command_out));
    int n;
    json_t *end = command_last_object(command_out, &n);
    CHECK(n > 6); // begin, steps, epochs, checkpoints, end
    CHECK_STR(json_string_value(json_object_get(end, "event")), "end");
    json_decref(end);
    command_ok("train small.yaml --quiet"); // a second run has its own folder
    CHECK_STR(command_out, "");
    CHECK_STR(command_err, "");
    CHECK(is_there("runs/small-002/job.yaml"));
}

TEST(validations_are_told_once)
{
    command_write("small.yaml", command_small_job);
    command_ok("train small.yaml --set train.epochs=0 --set train.steps=25 "
               "--set train.validate_every=10");
    CHECK_INT(command_count(command_out, "step 10/25  "), 1);
    CHECK_INT(command_count(command_out, "validation loss"), 3); // 10, 20 and the end
    command_ok("train small.yaml --set train.epochs=2 --set train.validate_every=8");
    CHECK_INT(command_count(command_out, "validation loss"), 3); // 8, 16, 20
    CHECK_INT(command_count(command_out, "epoch 1/2  loss"), 1);
    CHECK_INT(command_count(command_out, "step 8/20  loss"), 1);
}

TEST(train_speaks_json)
{
    int n;
    command_write("small.yaml", command_small_job);
    command_ok("train small.yaml --json --runs r --set train.epochs=2");
    json_t *o = command_last_object(command_out, &n);
    CHECK(n > 4);
    CHECK_STR(json_string_value(json_object_get(o, "event")), "summary");
    CHECK_INT(json_integer_value(json_object_get(o, "steps")), 20);
    CHECK_INT(json_integer_value(json_object_get(o, "epochs")), 2);
    CHECK(json_number_value(json_object_get(o, "loss")) > 0);
    CHECK(json_is_number(json_object_get(json_object_get(o, "metrics"), "accuracy")));
    CHECK(json_is_number(json_object_get(json_object_get(o, "validation"), "loss")));
    CHECK_INT(json_integer_value(json_object_get(json_object_get(o, "test"), "rows")), 96);
    CHECK(json_number_value(json_object_get(o, "samples_per_second")) > 0);
    CHECK(json_number_value(json_object_get(o, "step_ms_median")) > 0);
    CHECK(json_number_value(json_object_get(o, "first_step_seconds")) > 0);
    const json_t *device = json_array_get(json_object_get(o, "devices"), 0);
    CHECK_STR(json_string_value(json_object_get(device, "name")), "cpu:0");
    CHECK(json_integer_value(json_object_get(device, "peak_bytes")) > 50000);
    CHECK_STR(json_string_value(json_object_get(o, "run")), "r/small-001");
    json_decref(o);
}

TEST(a_dry_run_leaves_nothing)
{
    command_write("small.yaml", command_small_job);
    command_ok("train small.yaml --dry-run");
    CHECK_HAS(command_out, "dense");
    CHECK_HAS(command_out, "training    320 records");
    CHECK_HAS(command_out, "steps       30: 3 epochs of 10, batch 32");
    CHECK_HAS(command_out, "memory      cpu:0: ");
    CHECK_HAS(command_out, "matmul"); // the plan
    CHECK(!is_there("runs"));
    command_ok("train small.yaml --dry-run --quiet");
    CHECK_STR(command_out, "");
    command_ok("train small.yaml --dry-run --json --devices cpu:0*2 --set "
               "distribute.strategy=mirrored");
    json_t *o = command_last_object(command_out, NULL);
    CHECK_HAS(json_string_value(json_object_get(o, "job")), "batch: 32");
    CHECK(json_object_size(json_object_get(o, "model")) > 0);
    CHECK_INT(json_integer_value(json_object_get(o, "steps")), 30);
    const json_t *memory = json_object_get(o, "memory");
    CHECK_INT(json_array_size(memory), 2);
    const json_t *second = json_array_get(memory, 1);
    CHECK_STR(json_string_value(json_object_get(second, "device")), "cpu:1");
    CHECK(json_integer_value(json_object_get(second, "activations")) > 0);
    const json_t *first = json_array_get(memory, 0);
    // The weights on both, the moments in pieces.
    CHECK(json_integer_value(json_object_get(first, "variables")) +
              json_integer_value(json_object_get(second, "variables")) >
          (784 + 10) * 16 * 4 * 4);
    json_decref(o);
    CHECK(!is_there("runs"));
    command_ok("summary small.yaml");
    CHECK_HAS(command_out, "dense");
    command_ok("summary small.yaml --json");
    json_decref(json_loads(command_out, 0, NULL));
    command_ok("plan small.yaml");
    CHECK_HAS(command_out, "matmul");
    CHECK(!is_there("runs"));
}

// ---- what is wrong ---------------------------------------------------------------------------

static void check_bad(const char *line, int code, const char *message)
{
    int found = command_run(line);
    ck_assert_msg(found == code, "tutti %s: exit code %d: %s", line, found, command_err);
    CHECK_HAS(command_err, message);
    CHECK(strncmp(command_err, "tutti: ", 7) == 0);
    CHECK(strchr(command_err, '\n') == strrchr(command_err, '\n')); // told once
    CHECK_STR(command_out, "");
    CHECK(!is_there("runs"));
}

TEST(bad_jobs_end_with_code_3)
{
    command_write("small.yaml", command_small_job);
    command_write("bad.yaml", "name: bad\nmodell: [flatten]\n");
    command_write("empty.yaml", "name: empty\nmodel: [{dense: 3}]\n");
    check_bad("train nowhere.yaml", 3, "nowhere.yaml");
    check_bad("train bad.yaml", 3, "bad.yaml:2:1: unknown key 'modell'; did you mean 'model'?");
    check_bad("train small.yaml --set train.bacth=3", 3, "did you mean 'batch'?");
    check_bad("train small.yaml --set train.batch=none", 3, "train.batch");
    check_bad("train small.yaml --set train.optimizer.adam.lr=-1", 3, "lr");
    check_bad("train small.yaml --set data.train.digits.count=0", 3, "count");
    check_bad("train empty.yaml", 3, "empty.yaml");
    check_bad("train small.yaml --set train.steps=5", 3,
              "train.steps: 5 beside train.epochs 3 (small.yaml:13:11)");
    check_bad("train small.yaml --set distribute.strategy=mirorred", 3, "did you mean 'mirrored'?");
    check_bad("train small.yaml --set distribute.devices=tpu:0", 3, "tpu");
    check_bad("train small.yaml --devices tpu:0", 2, "tpu");
    check_bad("train small.yaml --devices gpu:63", 2, "gpu");
    check_bad("train small.yaml --devices cpu:1", 2, "cpu:1 does not exist");
    check_bad("train small.yaml --isa avx9", 2, "avx9");
    check_bad("predict small.yaml --prompt a", 2, "--prompt needs a job whose data.train is text");
    check_bad("train nowhere", 1, "there is no run 'nowhere'");
    check_bad("eval small.yaml", 1, "there is no run of 'small' in 'runs'");
    check_bad("train small.yaml --json --quiet", 2, "exclude each other");
    check_bad("train small.yaml --sett x=1", 2, "did you mean --set?");
}

// Found when the fit begins: the folder is there by then.
static void check_wrong(const char *line, const char *message)
{
    int found = command_run(line);
    ck_assert_msg(found == 3, "tutti %s: exit code %d: %s", line, found, command_err);
    CHECK_HAS(command_err, message);
    CHECK(strchr(command_err, '\n') == strrchr(command_err, '\n'));
}

TEST(what_the_fit_refuses_ends_with_code_3_too)
{
    command_write("small.yaml", command_small_job);
    check_wrong("train small.yaml --set model.0=dropout", "model's target 'y' is [28, 28]");
    check_wrong("train small.yaml --set model.3.dense=5", "not in [0, 5)");
    check_wrong("train small.yaml --set checkpoint.best=foo", "foo");
    check_wrong("train small.yaml --set train.early_stop.value=foo "
                "--set train.early_stop.patience=2",
                "foo");
    command_ok("train small.yaml --quiet --run r");
    check_wrong("train r --resume --set train.batch=16", "was made with");
    check_wrong("train r --resume --set distribute.lanes=4", "was made with");
    check_wrong("train r --resume --set data.train.digits.count=319", "records an epoch");
    command_ok("train r --resume --quiet --set train.epochs=4"); // the run's job is as it was
    command_read("r/job.yaml", command_out, sizeof(command_out));
    CHECK_HAS(command_out, "epochs: 4");
}

TEST(a_loss_that_is_not_finite_ends_with_code_4)
{
    command_write("small.yaml", command_small_job);
    CHECK_INT(command_run("train small.yaml --set train.optimizer.adam.lr=1e30"), 4);
    CHECK_HAS(command_err, "the loss is not finite");
    CHECK_HAS(command_err, "tutti: error: step ");
}

TEST(a_run_is_not_written_over)
{
    command_write("small.yaml", command_small_job);
    command_ok("train small.yaml --quiet --run here/x");
    CHECK(is_there("here/x/job.yaml"));
    CHECK_INT(command_run("train small.yaml --run here/x"), 1);
    CHECK_HAS(command_err, "'here/x' holds a run already; --resume goes on with it");
    CHECK_INT(command_run("train here/x"), 2);
    CHECK_HAS(command_err, "'here/x' is a run: --resume goes on with it");
}

// --resume alone means the newest run of the job, or a new one where there is none.
TEST(resume_finds_the_newest_run)
{
    command_write("small.yaml", command_small_job);
    command_ok("train small.yaml --resume --quiet");
    CHECK(is_there("runs/small-001/checkpoints/step-30"));
    command_ok("train small.yaml --quiet");
    command_ok("train small.yaml --resume --set train.epochs=4");
    CHECK_HAS(command_out, "epoch 4/4  loss ");
    CHECK(strstr(command_out, "epoch 3/4") == NULL);
    CHECK_HAS(command_out, "run         runs/small-002\n");
    CHECK(is_there("runs/small-002/checkpoints/step-40"));
    CHECK(!is_there("runs/small-001/checkpoints/step-40") && !is_there("runs/small-003"));
    command_read("runs/small-002/job.yaml", command_out, sizeof(command_out));
    CHECK_HAS(command_out, "epochs: 4");
}

// It would begin again from nothing in the folder of the run that was refused.
TEST(resume_passes_over_a_run_that_was_refused)
{
    command_write("small.yaml", command_small_job);
    command_ok("train small.yaml --quiet");
    CHECK_INT(command_run("train small.yaml --strategy mirrored --devices cpu:0*9"), 3);
    CHECK(is_there("runs/small-002"));
    command_ok("train small.yaml --resume --set train.epochs=4");
    CHECK_HAS(command_err, "'runs/small-002' has no steps; 'runs/small-001' is used");
    CHECK(strstr(command_out, "epoch 3/4") == NULL);
    CHECK(is_there("runs/small-001/checkpoints/step-40"));
}

TEST(a_full_disk_for_events_is_a_warning)
{
    char path[600];
    command_write("small.yaml", command_small_job);
    snprintf(path, sizeof(path), "%s/r", test_folder());
    CHECK(mkdir(path, 0700) == 0);
    snprintf(path, sizeof(path), "%s/r/events.jsonl", test_folder());
    if (access("/dev/full", W_OK) != 0 || symlink("/dev/full", path) != 0)
        test_skip("no /dev/full");
    command_ok("train small.yaml --quiet --run r");
    CHECK_HAS(command_err, "tutti: warn: cannot write 'r/events.jsonl': No space left on device");
    CHECK(strchr(command_err, '\n') == strrchr(command_err, '\n')); // once
}

// ---- same bits -------------------------------------------------------------------------------

TEST(devices_change_no_bit)
{
    char one[64], other[64];
    command_write("small.yaml", command_small_job);
    command_ok("train small.yaml --json");
    hash_of(command_out, one);
    const char *const flags[] = {"--devices cpu:0*2", "--devices cpu:0*3 --threads 2",
                                 "--isa plain --threads 1"};
    for (int i = 0; i < 3; i++) {
        char line[200];
        snprintf(line, sizeof(line),
                 "train small.yaml --json --set distribute.strategy=mirrored %s", flags[i]);
        command_ok(line);
        hash_of(command_out, other);
        ck_assert_msg(strcmp(one, other) == 0, "%s: %s, not %s", flags[i], other, one);
    }
    command_ok("eval small.yaml --json");
    hash_of(command_out, other);
    CHECK_STR(one, other);
    command_ok("eval runs/small-001");
    CHECK_HAS(command_out, "test        loss ");
    CHECK_HAS(command_out, "96 records");
    CHECK_HAS(command_out, "runs/small-001/checkpoints/step-30");
    command_ok("eval small-001 --checkpoint best");
    CHECK_HAS(command_out, "runs/small-001/checkpoints/step-");
    command_ok("eval small-001 --checkpoint step-20");
    CHECK_HAS(command_out, "runs/small-001/checkpoints/step-20");
    CHECK_INT(command_run("eval small-001 --checkpoint step-21"), 1);
    CHECK_HAS(command_err, "runs/small-001/checkpoints/step-21");
    command_ok("predict small-001 --count 5 --json");
    int lines;
    json_t *o = command_last_object(command_out, &lines);
    CHECK_INT(lines, 5);
    CHECK(json_is_integer(json_object_get(o, "class")));
    CHECK(json_is_integer(json_object_get(o, "label")));
    CHECK(json_number_value(json_object_get(o, "probability")) > 0.05);
    json_decref(o);
    command_ok("eval small-002 --json --checkpoint runs/small-001/checkpoints/step-30");
    hash_of(command_out, other);
    CHECK_STR(one, other);
}

// Goes on until it is ended.
#define ENDLESS "--set train.epochs=0 --set train.steps=1000000000 --set checkpoint.every=5"

static int count_lines(const char *name)
{
    char path[400], buffer[4096];
    int n = 0;
    snprintf(path, sizeof(path), "%s/%s", test_folder(), name);
    int fd = open(path, O_RDONLY);
    for (ssize_t r; fd >= 0 && (r = read(fd, buffer, sizeof(buffer))) > 0;)
        for (ssize_t i = 0; i < r; i++)
            n += buffer[i] == '\n';
    if (fd >= 0)
        close(fd);
    return n;
}

static void nap(long microseconds)
{
    nanosleep(&(struct timespec){0, microseconds * 1000}, NULL);
}

// Starts a run and sends it a signal when cut/events.jsonl has so many lines more.
static pid_t start_and_send(const char *line, int lines, int number, long delay)
{
    int before = count_lines("cut/events.jsonl");
    pid_t pid = command_start(line);
    while (count_lines("cut/events.jsonl") < before + lines)
        nap(500);
    nap(delay);
    CHECK(kill(pid, number) == 0);
    return pid;
}

// The newest checkpoint of the run "cut".
static int64_t newest_step(void)
{
    char path[400];
    int64_t newest = -1;
    snprintf(path, sizeof(path), "%s/cut/checkpoints", test_folder());
    DIR *d = opendir(path);
    CHECK(d != NULL);
    for (struct dirent *e; (e = readdir(d)) != NULL;)
        if (strncmp(e->d_name, "step-", 5) == 0 && atoll(e->d_name + 5) > newest)
            newest = atoll(e->d_name + 5);
    closedir(d);
    return newest;
}

// Resumes "cut" for some steps more, and makes as many in one go: the weights must be the same.
static void check_same_weights(void)
{
    char line[300], cut[64], whole[64];
    long long steps = (long long)newest_step() + 13;
    snprintf(line, sizeof(line), "train cut --resume --json --set train.steps=%lld", steps);
    command_ok(line);
    hash_of(command_out, cut);
    snprintf(line, sizeof(line),
             "train small.yaml --json --run whole --set train.epochs=0 --set train.steps=%lld",
             steps);
    command_ok(line);
    hash_of(command_out, whole);
    ck_assert_msg(strcmp(cut, whole) == 0, "%lld steps: %s, in one go %s", steps, cut, whole);
    snprintf(line, sizeof(line), "train cut --resume --json --set train.steps=%lld", steps);
    command_ok(line); // nothing is left to do
    hash_of(command_out, cut);
    CHECK_STR(cut, whole);
}

TEST(sigterm_saves_and_asks_to_come_again)
{
    command_write("small.yaml", command_small_job);
    CHECK_INT(
        command_wait(start_and_send("train small.yaml --json --run cut " ENDLESS, 5, SIGTERM, 700)),
        85);
    json_t *o = command_last_object(command_out, NULL);
    CHECK_INT(json_integer_value(json_object_get(o, "steps")), newest_step()); // saved
    json_decref(o);
    CHECK_HAS(command_err, "tutti train cut --resume");
    check_same_weights();
}

TEST(interrupts_save_then_stop)
{
    command_write("small.yaml", command_small_job);
    CHECK_INT(
        command_wait(start_and_send("train small.yaml --json --run cut " ENDLESS, 4, SIGINT, 300)),
        130);
    CHECK_HAS(command_err, "saving after this step; Ctrl-C again stops at once");
    json_t *o = command_last_object(command_out, NULL);
    CHECK_INT(json_integer_value(json_object_get(o, "steps")), newest_step());
    json_decref(o);
    pid_t pid = start_and_send("train cut --resume --json", 4, SIGINT, 0);
    kill(pid, SIGINT); // the second one: saved or not, it ends
    CHECK_INT(command_wait(pid), 130);
    check_same_weights();
}

// The second one comes inside a step, which is long enough to be met, if not each time.
TEST(a_second_interrupt_stops_at_once)
{
    command_write("small.yaml", command_small_job);
    for (int i = 0; i == 0 || (i < 5 && strstr(command_err, "stopped and saved") != NULL); i++) {
        pid_t pid = start_and_send("train small.yaml --json --run cut --set train.batch=320 "
                                   "--set model.1.dense.units=20000 --set train.epochs=1000 "
                                   "--resume",
                                   1, SIGINT, 50000);
        do {
            nap(500);
            command_read("err", command_err, sizeof(command_err));
        } while (strstr(command_err, "saving after this step") == NULL);
        CHECK(kill(pid, SIGINT) == 0);
        CHECK_INT(command_wait(pid), 130);
    }
    CHECK_HAS(command_err, "tutti: stopped at once, without saving; to go on from the last "
                           "checkpoint: tutti train cut --resume\n");
    CHECK(strstr(command_err, "tutti: error:") == NULL);
}

// Killed at twenty random instants, in steps and in checkpoints: the same weights come out.
TEST(kills_lose_nothing)
{
    unsigned seed = (unsigned)time(NULL) ^ (unsigned)getpid();
    command_write("small.yaml", command_small_job);
    for (int i = 0; i < 20; i++) {
        int lines = 1 + rand_r(&seed) % 4;
        int late =
            i == 0 || newest_step() > 0 ? 0 : 2000 * i; // a busy machine is slow to save the first
        pid_t pid = start_and_send("train small.yaml --resume --quiet --run cut " ENDLESS, lines,
                                   SIGKILL, late + rand_r(&seed) % 4000);
        CHECK_INT(command_wait(pid), -SIGKILL);
    }
    CHECK(newest_step() > 0);
    check_same_weights();
    command_read("cut/events.jsonl", command_out, sizeof(command_out));
    json_decref(command_last_object(command_out, NULL)); // every line is whole
}

TEST(one_process_a_run)
{
    command_write("small.yaml", command_small_job);
    pid_t pid = start_and_send("train small.yaml --quiet --run cut " ENDLESS, 3, SIGSTOP, 0);
    CHECK_INT(command_run("train cut --resume"), 1);
    CHECK_HAS(command_err, "another process is training in 'cut'");
    kill(pid, SIGKILL);
    CHECK_INT(command_wait(pid), -SIGKILL);
    check_same_weights();
}

// ---- beside training -------------------------------------------------------------------------

// A run that failed before it saved anything hides no older one that did.
TEST(empty_runs_are_passed_over)
{
    static const char *const lines[] = {"eval small", "eval small.yaml", "predict small --count 1",
                                        "inspect small"};
    static const char told[] =
        "tutti: warn: 'runs/small-002' has no checkpoint; 'runs/small-001' is used\n";
    char path[600];
    command_write("small.yaml", command_small_job);
    command_ok("train small.yaml --quiet");
    snprintf(path, sizeof(path), "%s/runs/small-002", test_folder());
    CHECK_INT(mkdir(path, 0777), 0);
    command_read("runs/small-001/job.yaml", command_out, sizeof(command_out));
    command_write("runs/small-002/job.yaml", command_out);
    command_write("runs/small-002/events.jsonl", "{\"event\": \"begin\"}\n");
    for (int i = 0; i < 4; i++) {
        command_ok(lines[i]);
        CHECK_STR(command_err, told);
    }
    command_ok("plot small");
    CHECK_STR(command_err,
              "tutti: warn: 'runs/small-002' has no steps; 'runs/small-001' is used\n");
    CHECK_HAS(command_out, "loss   ");
    CHECK_INT(command_run("eval small-002"), 1); // one that is named is meant
    CHECK_HAS(command_err, "'runs/small-002/checkpoints' has no checkpoint yet");
    command_ok("eval small --level error");
    CHECK_STR(command_err, "");
}

TEST(runs_are_looked_at)
{
    command_write("small.yaml", command_small_job);
    CHECK_INT(command_run("trace small"), 1);
    command_ok("train small.yaml --quiet --trace 5 --hashes hashes");
    CHECK(is_there("hashes"));
    command_ok("trace small");
    CHECK_HAS(command_out, "runs/small-001/trace.json");
    command_ok("trace small out.json --quiet");
    CHECK_STR(command_out, "");
    command_ok("trace small out.json");
    CHECK_STR(command_out, "out.json: the trace of runs/small-001\n");
    command_read("out.json", command_out, sizeof(command_out));
    json_t *o = json_loads(command_out, 0, NULL);
    CHECK(o != NULL);
    json_decref(o);
    command_ok("plot small");
    CHECK_HAS(command_out, "loss   ");
    CHECK_HAS(command_out, "accuracy   ");
    command_ok("plot small-001 --svg loss.svg --quiet");
    CHECK_STR(command_out, "");
    command_ok("plot small-001 --svg loss.svg");
    CHECK_STR(command_out, "loss.svg: the curves of runs/small-001\n");
    command_read("loss.svg", command_out, sizeof(command_out));
    CHECK_HAS(command_out, "<svg ");
    CHECK_HAS(command_out, ">small-001</text>");
    command_ok("bench small.yaml cpu:0 cpu:0*2 --steps 5");
    CHECK_HAS(command_out, "cpu:0*2 ");
    command_ok("bench small.yaml --steps 5 --json");
    o = command_last_object(command_out, NULL);
    CHECK(json_number_value(json_object_get(o, "step_ms_median")) > 0);
    json_decref(o);
    command_ok("train small.yaml --profile 5");
    CHECK_HAS(command_out, "matmul");
}

TEST(help_explains_keys)
{
    command_ok("help job");
    CHECK_HAS(command_out, "model");
    command_ok("help train.optimizer.adam");
    CHECK_HAS(command_out, "lr");
    CHECK_INT(command_run("help train.optimizer.adan"), 2);
    CHECK_HAS(command_err, "adam");
    command_ok("help exit");
    CHECK_HAS(command_out, "85   ended by SIGTERM");
    command_ok("help train");
    CHECK_HAS(command_out, "--resume");
}

// ---- the living line -------------------------------------------------------------------------

// Runs a line with standard output on a terminal of this width; command_out is what it got.
static int run_on_terminal(const char *line, int width)
{
    int master = posix_openpt(O_RDWR | O_NOCTTY);
    if (master < 0 || grantpt(master) != 0 || unlockpt(master) != 0)
        test_skip("no pseudo-terminals");
    char name[128], shell[1200];
    CHECK(ptsname_r(master, name, sizeof(name)) == 0);
    CHECK(ioctl(master, TIOCSWINSZ, &(struct winsize){24, (unsigned short)width, 0, 0}) == 0);
    int slave = open(name, O_RDWR | O_NOCTTY); // keeps it open until all is read
    CHECK(slave >= 0);
    snprintf(shell, sizeof(shell), "cd %s && TERM=xterm exec %s %s > %s 2> err", test_folder(),
             command_path(), line, name);
    pid_t pid = fork();
    if (pid == 0) {
        execl("/bin/sh", "sh", "-c", shell, (char *)NULL);
        _exit(127);
    }
    size_t n = 0;
    int status = 0;
    fcntl(master, F_SETFL, O_NONBLOCK);
    for (bool ended = false; n < sizeof(command_out) - 1;) {
        ssize_t r = read(master, command_out + n, sizeof(command_out) - 1 - n);
        if (r > 0) {
            n += (size_t)r;
            continue;
        }
        if (ended)
            break;
        ended = waitpid(pid, &status, WNOHANG) == pid;
        nap(1000);
    }
    command_out[n] = '\0';
    close(slave);
    close(master);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

// Every text that is drawn over (between a carriage return and the escape) is within the width.
static int check_drawn(int width)
{
    int drawn = 0;
    for (const char *s = command_out; (s = strchr(s, '\r')) != NULL;) {
        s++;
        const char *end = strstr(s, "\033[K");
        size_t n = end != NULL ? (size_t)(end - s) : 0;
        if (end == NULL || memchr(s, '\n', n) != NULL)
            continue; // the end of a permanent line
        ck_assert_msg((int)n < width, "%d columns: '%.*s'", width, (int)n, s);
        drawn += n > 0;
    }
    return drawn;
}

TEST(the_living_line_fits_any_terminal)
{
    static const int widths[] = {1, 2, 12, 30, 50, 80, 200};
    command_write("small.yaml", command_small_job);
    for (int i = 0; i < 7; i++) {
        CHECK_INT(run_on_terminal("train small.yaml --set train.epochs=2", widths[i]), 0);
        int drawn = check_drawn(widths[i]);
        CHECK(widths[i] < 2 || drawn >= 1);
        CHECK_HAS(command_out, "epoch 2/2  loss ");
        if (widths[i] >= 80)
            CHECK_HAS(command_out, "epoch 1/2  [");
        if (widths[i] == 12)
            CHECK_HAS(command_out, "\repoch 1/2\033[K");
    }
}
