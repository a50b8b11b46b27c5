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

// It would begin again from nothing in the folder of the run that was refused.
TEST(resume_passes_over_a_run_that_was_refused)
{
    command_write("small.yaml", command_small_job);
    command_ok("train small.yaml --quiet");
    CHECK_INT(command_run("train small.yaml --strategy mirrored --devices cpu:0*9"), 3);
    CHECK(command_left("runs/small-002"));
    command_ok("train small.yaml --resume --set train.epochs=4");
    CHECK_HAS(command_err, "'runs/small-002' has no steps; 'runs/small-001' is used");
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
