/*
 * cli_resume.c - what --resume does with checkpoints that are damaged, of another version or cannot
 * be read: only proven damage is skipped, by name, and a good checkpoint never gives way to a bad
 * one.
 */
#include "../command.h"
#include "save/manifest.h"
#include <dirent.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

static const char *at(const char *name)
{
    static char path[8][600];
    static int next;
    char *p = path[next++ % 8];
    snprintf(p, sizeof(path[0]), "%s/%s", test_folder(), name);
    return p;
}

// A run "cut" with checkpoints of steps 10, 20 and 30.
static void make_run(void)
{
    command_write("small.yaml", command_small_job);
    command_ok("train small.yaml --quiet --run cut");
    CHECK(command_left("cut/checkpoints/step-10") && command_left("cut/checkpoints/step-30"));
}

static void cut_short(const char *file)
{
    struct stat st;
    CHECK(stat(at(file), &st) == 0 && truncate(at(file), st.st_size / 2) == 0);
}

static void flip_byte(const char *file)
{
    FILE *f = fopen(at(file), "r+b");
    CHECK(f != NULL && fseek(f, -3, SEEK_END) == 0);
    int c = fgetc(f);
    CHECK(fseek(f, -3, SEEK_END) == 0 && fputc(c ^ 4, f) != EOF && fclose(f) == 0);
}

static void remove_file(const char *file)
{
    CHECK(unlink(at(file)) == 0);
}

// The manifest as a later version of Tutti would write it, its checksum right.
static void make_newer(const char *file)
{
    char text[1 << 14], hash[TTI_HASH_TEXT];
    command_read(file, text, sizeof(text));
    char *version = strstr(text, "\"version\": 1,"), *seal = text;
    CHECK(version != NULL);
    version[11] = '2';
    for (char *next; (next = strstr(seal + 1, "  \"xxh3_128\": \"")) != NULL;)
        seal = next;
    memcpy(seal + 15, tti_hash_text(tti_hash128(text, (size_t)(seal - text)), hash), 32);
    command_write(file, text);
}

// A file that cannot be opened, whoever asks.
static void make_unreadable(const char *file)
{
    CHECK(unlink(at(file)) == 0 && symlink("manifest.json", at(file)) == 0);
}

// Resumes without an end, asks it to end as soon as it trains; the step that it says it has saved.
static int64_t resume_and_end(void)
{
    command_read("cut/events.jsonl", command_out, sizeof(command_out));
    int before = command_count(command_out, "\"event\": \"step\"");
    pid_t pid = command_start("train cut --resume --json --set checkpoint.keep=1 "
                              "--set train.epochs=0 --set train.steps=1000000");
    do {
        usleep(300);
        command_read("cut/events.jsonl", command_out, sizeof(command_out));
    } while (command_count(command_out, "\"event\": \"step\"") <= before);
    CHECK(kill(pid, SIGTERM) == 0);
    CHECK_INT(command_wait(pid), 85);
    CHECK_HAS(command_err, "stopped and saved");
    json_t *o = command_last_object(command_out, NULL);
    int64_t step = json_integer_value(json_object_get(o, "steps"));
    json_decref(o);
    return step;
}

typedef struct harm {
    const char *file;
    void (*fn)(const char *file);
} harm;

static const harm harms[] = {
    {"weights.safetensors", cut_short},     {"weights.safetensors", flip_byte},
    {"optimizer.safetensors", remove_file}, {"manifest.json", flip_byte},
    {"manifest.json", remove_file},
};

// The damaged checkpoint has the highest step of all: still the one just saved is kept.
TEST(a_good_checkpoint_never_gives_way_to_a_damaged_one)
{
    char file[128], line[128];
    for (int i = 0; i < TTI_COUNT(harms); i++) {
        make_run();
        CHECK(rename(at("cut/checkpoints/step-30"), at("cut/checkpoints/step-900000")) == 0);
        snprintf(file, sizeof(file), "cut/checkpoints/step-900000/%s", harms[i].file);
        harms[i].fn(file);
        int64_t step = resume_and_end();
        CHECK(step > 20);
        CHECK_HAS(command_err, "step-900000");
        snprintf(file, sizeof(file), "cut/checkpoints/step-%lld", (long long)step);
        ck_assert_msg(command_left(file), "%s is gone (harm %d)", file, i);
        CHECK(!command_left("cut/checkpoints/step-20"));
        snprintf(line, sizeof(line), "train cut --resume --json --set train.steps=%lld",
                 (long long)step);
        command_ok(line);
        json_t *o = command_last_object(command_out, NULL);
        CHECK_INT(json_integer_value(json_object_get(o, "steps")), step);
        json_decref(o);
        snprintf(file, sizeof(file), "harmed-%d", i);
        CHECK(rename(at("cut"), at(file)) == 0);
    }
}

// A checkpoint that this version cannot judge is not skipped, and neither is anything overwritten.
TEST(resume_skips_no_checkpoint_that_is_not_damaged)
{
    static const struct {
        void (*fn)(const char *file);
        int code;
        const char *message;
    } kinds[] = {
        {make_newer, 3, "step-30/manifest.json: checkpoint format 2; this version of Tutti reads"},
        {make_unreadable, 1, "step-30/manifest.json': Too many levels of symbolic links"},
    };
    for (int i = 0; i < TTI_COUNT(kinds); i++) {
        char file[32];
        make_run();
        kinds[i].fn("cut/checkpoints/step-30/manifest.json");
        CHECK_INT(command_run("train cut --resume --set train.epochs=4"), kinds[i].code);
        CHECK_HAS(command_err, kinds[i].message);
        CHECK(strstr(command_err, "damaged") == NULL);
        CHECK(!command_left("cut/checkpoints/step-40"));
        CHECK_INT(command_run("eval cut"), kinds[i].code);
        CHECK_HAS(command_err, kinds[i].message);
        snprintf(file, sizeof(file), "kind-%d", i);
        CHECK(rename(at("cut"), at(file)) == 0);
    }
}

// Step 0 is not where a run with checkpoints goes on, unless it is asked for.
TEST(resume_starts_again_only_when_asked)
{
    make_run();
    for (int step = 10; step <= 30; step += 10) {
        char file[64];
        snprintf(file, sizeof(file), "cut/checkpoints/step-%d/weights.safetensors", step);
        flip_byte(file);
    }
    CHECK_INT(command_run("train cut --resume --set train.epochs=4"), 1);
    CHECK_HAS(command_err, "step-30/weights.safetensors");
    CHECK_HAS(command_err, "no checkpoint of 'cut/checkpoints' can be read");
    CHECK_HAS(command_err, "--restart");
    CHECK(!command_left("cut/checkpoints/step-40"));
    command_ok("train cut --restart --json");
    char again[64], whole[64];
    command_hash(command_out, again);
    CHECK(command_left("cut/checkpoints/step-30"));
    CHECK(command_left("cut/checkpoints.old-1/step-30")); // what was there is still somebody's
    command_ok("train small.yaml --json --run whole");
    command_hash(command_out, whole);
    CHECK_STR(again, whole);
    command_ok("train cut --restart --json --set train.epochs=1"); // good ones are kept as well
    CHECK(command_left("cut/checkpoints.old-2/step-30"));
    CHECK(!command_left("cut/checkpoints/step-30") && command_left("cut/checkpoints/step-10"));
    CHECK_INT(command_run("train small.yaml --restart --run nowhere"), 1);
    CHECK_HAS(command_err, "'nowhere' holds no run to restart");
}

// What a run starts from is what it starts again from.
TEST(a_restart_begins_with_the_weights_of_init)
{
    char first[64], again[64];
    make_run();
    CHECK(rename(at("cut"), at("base")) == 0);
    command_ok("train small.yaml --json --run cut --set init.file=base");
    command_hash(command_out, first);
    command_ok("train cut --resume --restart --json");
    command_hash(command_out, again);
    CHECK_STR(again, first);
    CHECK(command_left("cut/checkpoints.old-1"));
}
