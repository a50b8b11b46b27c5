/*
 * cli_runs.c - runs and their folders: which one is meant, what is looked at in it.
 */
#include "../command.h"
#include <stdio.h>
#include <sys/stat.h>

TEST(a_run_is_not_written_over)
{
    command_write("small.yaml", command_small_job);
    command_ok("train small.yaml --quiet --run here/x");
    CHECK(command_left("here/x/job.yaml"));
    CHECK_INT(command_run("train small.yaml --run here/x"), 1);
    CHECK_HAS(command_err, "'here/x' already holds a run; add --resume to continue it");
    CHECK_INT(command_run("train here/x"), 2);
    CHECK_HAS(command_err, "'here/x' is a run; add --resume to continue it");
}

// --resume alone means the newest run of the job, or a new one where there is none.
TEST(resume_finds_the_newest_run)
{
    command_write("small.yaml", command_small_job);
    command_ok("train small.yaml --resume --quiet");
    CHECK(command_left("runs/small-001/checkpoints/step-30"));
    command_ok("train small.yaml --quiet");
    command_ok("train small.yaml --resume --set train.epochs=4");
    CHECK_HAS(command_out, "epoch 4/4  loss ");
    CHECK(strstr(command_out, "epoch 3/4") == NULL);
    CHECK_HAS(command_out, "run         runs/small-002\n");
    CHECK(command_left("runs/small-002/checkpoints/step-40"));
    CHECK(!command_left("runs/small-001/checkpoints/step-40") && !command_left("runs/small-003"));
    command_read("runs/small-002/job.yaml", command_out, sizeof(command_out));
    CHECK_HAS(command_out, "epochs: 4");
}

// A start that fails before its first step leaves nothing, not even the folder of all runs.
TEST(a_refused_start_leaves_no_folder)
{
    static const char *const lines[] = {
        "train small.yaml --strategy mirrored --devices cpu:0*9",
        "train small.yaml --set train.early_stop.value=foo --set train.early_stop.patience=2",
        "train small.yaml --run here/new --set train.early_stop.value=foo --set "
        "train.early_stop.patience=2"};
    command_write("small.yaml", command_small_job);
    for (int i = 0; i < 3; i++) {
        CHECK_INT(command_run(lines[i]), 3);
        CHECK(!command_left("runs") && !command_left("here/new"));
    }
    command_ok("train small.yaml --quiet");
    for (int i = 0; i < 3; i++) {
        CHECK_INT(command_run(lines[i]), 3);
        CHECK(!command_left("runs/small-002") && !command_left("here/new"));
    }
    // A folder that was there before stays, with what is in it.
    CHECK_INT(command_shell("mkdir -p mine && echo 1 > mine/data && $TUTTI train small.yaml --run "
                            "mine --set train.early_stop.value=foo --set "
                            "train.early_stop.patience=2"),
              3);
    CHECK(command_left("mine/data"));
    command_ok("train small.yaml --resume --set train.epochs=4");
    CHECK(strstr(command_out, "epoch 3/4") == NULL);
    CHECK(command_left("runs/small-001/checkpoints/step-40"));
}

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

// A folder beside the runs that has the name of the job: its data, or its source.
TEST(a_folder_named_like_the_job_hides_no_run)
{
    static const char *const lines[] = {"eval small", "predict small --count 1", "plot small",
                                        "inspect small", "train small --resume --quiet"};
    char path[600];
    command_write("small.yaml", command_small_job);
    snprintf(path, sizeof(path), "%s/small", test_folder());
    CHECK_INT(mkdir(path, 0777), 0);
    CHECK_INT(command_run("eval small"), 1);
    CHECK_HAS(command_err, "'small' is a folder without job.yaml and checkpoints, so it is not a "
                           "run, and there is no run of that name in 'runs'");
    command_ok("train small.yaml --quiet");
    snprintf(path, sizeof(path), "%s/runs/small", test_folder()); // nor does one in the root
    CHECK_INT(mkdir(path, 0777), 0);
    for (int i = 0; i < 5; i++)
        command_ok(lines[i]);
    command_ok("convert small out.safetensors");
    CHECK_INT(command_run("eval ./small"), 1); // a path is meant as it is
    CHECK_HAS(command_err, "is a folder without job.yaml");
}

// Killed while it wrote the job or noted the best checkpoint.
TEST(a_start_removes_what_a_kill_left)
{
    command_write("small.yaml", command_small_job);
    command_ok("train small.yaml --quiet --run a");
    command_write("a/.tmp-job.yaml-4194305", "name: sm");
    command_write("a/checkpoints/.tmp-best-4194305", "st");
    command_ok("train a --resume --quiet --set train.epochs=4");
    CHECK(!command_left("a/.tmp-job.yaml-4194305"));
    CHECK(!command_left("a/checkpoints/.tmp-best-4194305"));
    CHECK(command_left("a/checkpoints/step-40"));
}

// ---- what --resume says ----------------------------------------------------------------------

TEST(a_finished_run_says_so_when_resumed)
{
    command_write("small.yaml", command_small_job);
    command_ok("train small.yaml");
    CHECK_HAS(command_out, "ended       finished: all 30 steps are done\n");
    CHECK_HAS(command_out, "best        validation_loss ");
    command_ok("train small.yaml --resume");
    CHECK_HAS(command_out, "ended       already finished with 30 of 30 steps; nothing was trained "
                           "(to train longer, add --epochs N)\n");
    command_ok("train small.yaml --resume --json");
    json_t *o = command_last_object(command_out, NULL);
    CHECK_STR(json_string_value(json_object_get(o, "ended")), "already");
    json_decref(o);
    command_ok("train small.yaml --resume --epochs 4");
    CHECK_HAS(command_out, "ended       finished: all 40 steps are done\n");
}

TEST(early_stopping_and_plateaus_are_shown)
{
    command_write("small.yaml", command_small_job);
    command_ok("train small.yaml --epochs 40 --lr 0.2 --set train.early_stop.patience=3 --set "
               "train.plateau.patience=2 --run a");
    CHECK_HAS(command_out, "\nearly stopping after step ");
    CHECK_HAS(command_out, "validation_loss has not improved in 3 checks (best ");
    CHECK_HAS(command_out, "\nplateau after step ");
    CHECK_HAS(command_out, "the learning rate goes from 0.2 to 0.02\n");
    CHECK_HAS(command_out, "ended       early stopping after ");
    CHECK_HAS(command_out, " of 400 steps\n");
    CHECK_INT(command_count(command_out, "\nearly stopping after step "), 1);
    CHECK(strncmp(command_out, "epoch 1/40 ", 11) == 0);
    CHECK_HAS(command_out, "  best\nepoch 2/40 "); // the first values are the best so far
    command_ok("train a --resume");
    CHECK_HAS(command_out, "already ended by early stopping after ");
    command_ok("train small.yaml --epochs 40 --lr 0.2 --set train.early_stop.patience=3 --run b "
               "--quiet");
    CHECK_STR(command_out, "");
}

TEST(a_misspelt_run_is_not_started)
{
    command_write("small.yaml", command_small_job);
    command_ok("train small.yaml --resume");
    CHECK_STR(command_err, "tutti: 'small' has no run in 'runs' to resume; a new one is started\n");
    CHECK_INT(command_run("train small.yaml --resume --run runs/smal-001"), 1);
    CHECK_HAS(command_err, "there is no run 'runs/smal-001' to resume; did you mean "
                           "'runs/small-001'?");
    CHECK(!command_left("runs/smal-001"));
    static const char *const rows[][2] = {
        {"train smal --resume", "there is no run 'smal' here or in 'runs'; did you mean 'small'?"},
        {"plot samll-001", "did you mean 'small-001'?"},
        {"eval runs/smll-001", "did you mean 'runs/small-001'?"},
        {"eval zzzz", "there is no run 'zzzz' here or in 'runs'; tutti runs lists"}};
    for (int i = 0; i < 4; i++) {
        CHECK_INT(command_run(rows[i][0]), 1);
        CHECK_HAS(command_err, rows[i][1]);
    }
    // Another number is another run.
    command_ok("train small.yaml --resume --run runs/small-007 --epochs 1");
    CHECK_HAS(command_err, "there is no run in 'runs/small-007' to resume; a new one is started");
}

// ---- the list --------------------------------------------------------------------------------

TEST(runs_are_listed_and_removed)
{
    command_write("small.yaml", command_small_job);
    command_ok("runs");
    CHECK_STR(command_out, "there are no runs in 'runs'\n");
    command_ok("train small.yaml --quiet");
    CHECK_INT(command_run("train small.yaml --quiet --lr 1e6"), 4);
    command_ok("train small.yaml --quiet --epochs 90 --lr 0.2 --set train.early_stop.patience=1");
    CHECK_INT(command_shell("mkdir -p runs/notes runs/small-004 && touch runs/file && cp "
                            "runs/small-001/job.yaml runs/small-004"),
              0);
    command_ok("runs");
    CHECK_INT(command_count(command_out, "\n"), 6); // with the error of small-002
    CHECK_HAS(command_out, "\nsmall-001  finished  ");
    CHECK_HAS(command_out, "\nsmall-002  failed  ");
    CHECK_HAS(command_out, "\n  step 10: training has diverged: ");
    CHECK_HAS(command_out, "\nsmall-003  stopped  ");
    CHECK_HAS(command_out, "small-004  empty  ");
    CHECK_HAS(command_out, "  30/30  validation_loss ");
    CHECK(strstr(command_out, "small-003") < strstr(command_out, "small-001")); // newest first
    command_ok("runs --failed");
    CHECK(strstr(command_out, "small-001") == NULL && strstr(command_out, "small-003") == NULL);
    CHECK_HAS(command_out, "small-002");
    command_ok("runs --json");
    json_t *list = json_loads(command_out, 0, NULL);
    CHECK_INT((int)json_array_size(list), 4);
    for (int i = 0; i < 4; i++) {
        const json_t *o = json_array_get(list, (size_t)i), *best = json_object_get(o, "best");
        if (strcmp(json_string_value(json_object_get(o, "run")), "small-001") != 0)
            continue;
        CHECK_STR(json_string_value(json_object_get(o, "state")), "finished");
        CHECK_STR(json_string_value(json_object_get(o, "path")), "runs/small-001");
        CHECK_INT((int)json_integer_value(json_object_get(o, "step")), 30);
        CHECK_STR(json_string_value(json_object_get(best, "name")), "validation_loss");
        CHECK(json_number_value(json_object_get(best, "value")) > 0);
        CHECK_INT((int)strlen(json_string_value(json_object_get(o, "weights_hash"))), 32);
    }
    json_decref(list);
    command_ok("runs rm --failed");
    CHECK_HAS(command_out, "removed runs/small-002 (failed)\n");
    CHECK_HAS(command_out, "removed runs/small-004 (empty)\n");
    CHECK(!command_left("runs/small-002") && !command_left("runs/small-004"));
    CHECK(command_left("runs/small-001") && command_left("runs/notes"));
    command_ok("runs rm --failed");
    CHECK_STR(command_out, "there are no failed runs in 'runs'\n");
    command_ok("runs rm small-003 runs/small-001/");
    CHECK(!command_left("runs/small-001") && !command_left("runs/small-003"));
}

TEST(runs_that_cannot_be_removed_all_stay)
{
    static const struct {
        const char *line, *message;
        int code;
    } rows[] = {
        {"runs rm small-001 smal-001", "there is no run 'runs/smal-001'; did you mean 'runs/small",
         1},
        {"runs rm small-001 small", "there is no run 'runs/small'; tutti runs lists", 1},
        {"runs rm notes", "there is no run 'runs/notes'", 1},
        {"runs rm", "tutti runs rm needs names of runs, or --failed", 2},
        {"runs rm small-001 --failed", "give names or --failed, not both", 2},
        {"runs remove small-001",
         "unknown word 'remove'; possible: ls, show, compare, best, tag, untag, note, rm", 2},
        {"runs rm small-001 --json", "prints no JSON", 2},
    };
    command_write("small.yaml", command_small_job);
    command_ok("train small.yaml --quiet");
    CHECK_INT(command_shell("mkdir runs/notes"), 0);
    for (int i = 0; i < 7; i++) {
        int rc = command_run(rows[i].line);
        ck_assert_msg(rc == rows[i].code, "%s: %d: %s", rows[i].line, rc, command_err);
        CHECK_HAS(command_err, rows[i].message);
    }
    CHECK(command_left("runs/small-001/checkpoints/step-30") && command_left("runs/notes"));
    // One that trains.
    CHECK_INT(command_shell("$TUTTI train small.yaml --quiet --epochs 1000000 --run runs/live & "
                            "p=$!; until ls runs/live/checkpoints 2>&1 | grep -q step-; do sleep "
                            "0.02; done; $TUTTI runs; $TUTTI runs rm small-001 live; echo code "
                            "$?; kill $p; wait $p; $TUTTI runs"),
              0);
    CHECK_HAS(command_out, "live       training  ");
    CHECK_HAS(command_out, "code 1\n");
    CHECK_HAS(command_err, "a process is training in 'runs/live': nothing was removed");
    CHECK_HAS(command_out, "live       interrupted  ");
    CHECK(command_left("runs/small-001/checkpoints/step-30"));
}

// What was refused, or asked to end, has not failed: rm --failed must leave it.
TEST(a_good_run_stays_good)
{
    command_write("small.yaml", command_small_job);
    command_ok("train small.yaml --quiet");
    CHECK_INT(command_run("train small.yaml --resume --batch 64"), 3);
    command_ok("runs");
    CHECK_HAS(command_out, "small-001  finished  ");
    command_ok("train small.yaml --resume --quiet"); // nothing to do
    command_ok("runs rm --failed");
    CHECK_STR(command_out, "there are no failed runs in 'runs'\n");
    // Killed between two events, and a line that was cut off.
    CHECK_INT(command_shell("cp -r runs/small-001 runs/small-002; cd runs/small-002; head -n 3 "
                            "events.jsonl > e; printf '{\"time\": 5, \"eve' >> e; mv e "
                            "events.jsonl; $TUTTI runs --runs .."),
              0);
    CHECK_HAS(command_out, "small-002  killed  ");
}

TEST(runs_are_compared)
{
    command_write("small.yaml", command_small_job);
    command_ok("train small.yaml --quiet");
    command_ok("train small.yaml --quiet --lr 0.01 --set train.metrics=[]");
    command_ok("plot small-001 small-002");
    CHECK_HAS(command_out, "loss   a small-001   b small-002\n");
    CHECK_HAS(command_out, "validation loss   a small-001   b small-002\n");
    CHECK_HAS(command_out, "\naccuracy   a small-001\n"); // the other has none
    command_ok("plot small-001 small-002 --svg both.svg");
    CHECK_STR(command_out, "both.svg: the curves of these runs\n");
    command_read("both.svg", command_out, sizeof(command_out));
    CHECK_HAS(command_out, ">small-001, small-002</text>");
    CHECK_INT(command_count(command_out, ">small-002</text>"), 2);
    CHECK_INT(command_count(command_out, ">small-001</text>"), 4);
    // Two of one name are told apart by their paths.
    CHECK_INT(command_shell("mkdir other && cp -r runs/small-001 other"), 0);
    command_ok("plot small-001 other/small-001");
    CHECK_HAS(command_out, "loss   a runs/small-001   b other/small-001\n");
    CHECK_INT(command_run("plot small-001 nothing"), 1);
    CHECK_HAS(command_err, "there is no run 'nothing'");
}

TEST(runs_are_looked_at)
{
    command_write("small.yaml", command_small_job);
    CHECK_INT(command_run("trace small"), 1);
    command_ok("train small.yaml --quiet --trace 5 --hashes hashes");
    CHECK(command_left("hashes"));
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
