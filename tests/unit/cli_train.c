/*
 * cli_train.c - the command trains: what it prints and leaves behind, its exit codes, and that
 * devices change no bit.
 */
#include "../command.h"
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

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
    CHECK(command_left("runs/small-001/job.yaml") && command_left("runs/small-001/events.jsonl"));
    CHECK(command_left("runs/small-001/tensorboard") &&
          command_left("runs/small-001/checkpoints/step-30"));
    command_read("runs/small-001/events.jsonl", command_out, sizeof(command_out));
    int n;
    json_t *end = command_last_object(command_out, &n);
    CHECK(n > 6); // begin, steps, epochs, checkpoints, end
    CHECK_STR(json_string_value(json_object_get(end, "event")), "end");
    json_decref(end);
    command_ok("train small.yaml --quiet"); // a second run has its own folder
    CHECK_STR(command_out, "");
    CHECK_STR(command_err, "");
    CHECK(command_left("runs/small-002/job.yaml"));
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
    CHECK(!command_left("runs"));
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
    CHECK(!command_left("runs"));
    command_ok("summary small.yaml");
    CHECK_HAS(command_out, "dense");
    command_ok("summary small.yaml --json");
    json_decref(json_loads(command_out, 0, NULL));
    command_ok("plan small.yaml");
    CHECK_HAS(command_out, "matmul");
    CHECK(!command_left("runs"));
}

// ---- what is wrong ---------------------------------------------------------------------------

static void check_bad(const char *line, int code, const char *message)
{
    int found = command_run(line);
    ck_assert_msg(found == code, "tutti %s: exit code %d: %s", line, found, command_err);
    CHECK_HAS(command_err, message);
    CHECK(strncmp(command_err, "tutti: ", 7) == 0);
    CHECK_INT(command_count(command_err, "tutti: "), 1); // told once
    CHECK_STR(command_out, "");
    CHECK(!command_left("runs"));
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
              "train.steps: is 5, but train.epochs is 3 (small.yaml:13:11)");
    check_bad("train small.yaml --set distribute.strategy=mirorred", 3, "did you mean 'mirrored'?");
    check_bad("train small.yaml --set distribute.devices=tpu:0", 3, "tpu");
    check_bad("train small.yaml --devices tpu:0", 2, "tpu");
    check_bad("train small.yaml --devices gpu:63", 2, "gpu");
    check_bad("train small.yaml --devices cpu:1", 2, "cpu:1 does not exist");
    check_bad("train small.yaml --isa avx9", 2, "avx9");
    check_bad("predict small.yaml --prompt a", 1,
              "there is no run of 'small' in 'runs'; train it first");
    check_bad("train nowhere", 1, "there is no run 'nowhere'");
    check_bad("eval small.yaml", 1, "there is no run of 'small' in 'runs'; train it first");
    check_bad("train small.yaml --json --quiet", 2, "cannot be combined");
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
    check_wrong("train small.yaml --set model.0=dropout", "model's target 'y' has shape [28, 28]");
    check_wrong(
        "train small.yaml --set model.3.dense=5",
        "the label is 7, but the model's output 'dense_2' has 5 classes, 0 to 4; give it 10 units");
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
    CHECK_HAS(command_err, "the loss is NaN or infinite");
    CHECK_HAS(command_err, "tutti: error: step ");
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
    command_hash(command_out, one);
    const char *const flags[] = {"--devices cpu:0*2", "--devices cpu:0*3 --threads 2",
                                 "--isa plain --threads 1"};
    for (int i = 0; i < 3; i++) {
        char line[200];
        snprintf(line, sizeof(line),
                 "train small.yaml --json --set distribute.strategy=mirrored %s", flags[i]);
        command_ok(line);
        command_hash(command_out, other);
        ck_assert_msg(strcmp(one, other) == 0, "%s: %s, not %s", flags[i], other, one);
    }
    command_ok("eval small.yaml --json");
    command_hash(command_out, other);
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
    command_hash(command_out, other);
    CHECK_STR(one, other);
}
