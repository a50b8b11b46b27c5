/*
 * cli_files.c - files that are not what they should be: pipes and sockets, gzip that grows without
 * end, zero bytes in text, a note of the best checkpoint that is empty. Each is refused by name and
 * with the right exit code, at once, and nothing hangs.
 */
#include "../command.h"
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>
#include <zlib.h>

// Sanitizers need addresses without end.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define LITTLE_MEMORY ""
#else
#define LITTLE_MEMORY "ulimit -v 700000; "
#endif

static char *path_of(const char *name)
{
    static char path[8][600];
    static int next;
    char *p = path[next++ % 8];
    snprintf(p, sizeof(path[0]), "%s/%s", test_folder(), name);
    return p;
}

static void make_pipe(const char *name)
{
    (void)unlink(path_of(name));
    CHECK_INT(mkfifo(path_of(name), 0600), 0);
}

// Runs a line that must end by itself, with this code and these words.
static void ends(const char *line, int code, const char *words)
{
    char shell[1024];
    snprintf(shell, sizeof(shell), "timeout 20 $TUTTI %s", line);
    int got = command_shell(shell);
    ck_assert_msg(got == code, "tutti %s: exit code %d (124: it hangs): %s", line, got,
                  command_err);
    CHECK_HAS(command_err, words);
}

static void train_small(void)
{
    command_write("small.yaml", command_small_job);
    command_ok("train small.yaml --quiet --run a");
}

TEST(a_pipe_in_place_of_a_file_is_refused)
{
    static const char *const files[] = {"manifest.json", "weights.safetensors",
                                        "optimizer.safetensors"};
    static const char not_regular[] = "not a regular file";
    char name[128];
    train_small();
    CHECK_INT(command_shell("cp -r a keep"), 0);
    for (int i = 0; i < 3; i++) {
        snprintf(name, sizeof(name), "a/checkpoints/step-30/%s", files[i]);
        make_pipe(name);
        if (i < 2)
            ends("eval a --checkpoint a/checkpoints/step-30", 1, not_regular);
        ends("inspect a/checkpoints/step-30", 1, not_regular);
        CHECK_INT(command_shell("timeout 20 $TUTTI train a --resume --quiet; test $? != 124"), 0);
        CHECK_INT(command_shell("rm -rf a; cp -r keep a"), 0);
    }
    make_pipe("a/checkpoints/best");
    ends("eval a --checkpoint best", 1, not_regular);
    CHECK_INT(command_shell("rm -rf a; cp -r keep a"), 0);
    make_pipe("a/events.jsonl");
    ends("plot a", 1, not_regular);
    ends("train a --resume --quiet --set train.epochs=4", 0, "training continues without it");
    make_pipe("a/job.yaml");
    ends("eval a", 1, not_regular);
    make_pipe("w.safetensors");
    ends("train small.yaml --set init.file=w.safetensors", 3, not_regular);
    ends("inspect w.safetensors", 1, not_regular);
}

TEST(a_pipe_in_place_of_data_is_refused)
{
    static const char *const data[] = {"csv: {file: p}", "idx: {x: p, y: p}", "npy: {x: p, y: p}",
                                       "text: {file: p, context: 4}",
                                       "tokens: {file: p, vocab: 9, context: 4}"};
    char job[512];
    for (int i = 0; i < 5; i++) {
        make_pipe("p");
        snprintf(job, sizeof(job),
                 "data: {train: {%s}}\nmodel: [flatten, dense: 2]\n"
                 "train: {batch: 4, loss: mse, optimizer: sgd}\n",
                 data[i]);
        command_write("job.yaml", job);
        ends("train job.yaml", 3, "'p' is not a regular file");
    }
    struct sockaddr_un a = {.sun_family = AF_UNIX, .sun_path = "p"};
    int s = socket(AF_UNIX, SOCK_STREAM, 0);
    CHECK(unlink(path_of("p")) == 0 && chdir(test_folder()) == 0);
    CHECK_INT(bind(s, (struct sockaddr *)&a, sizeof(a)), 0);
    ends("train job.yaml", 3, "cannot open 'p'");
    ends("inspect p", 1, "socket");
    close(s);
}

// A job may still come through a pipe.
TEST(a_job_may_come_through_a_pipe)
{
    command_write("small.yaml", command_small_job);
    make_pipe("job");
    int code = command_shell("cat small.yaml > job & timeout 20 $TUTTI train job --quiet --run a");
    ck_assert_msg(code == 0, "exit code %d: %s", code, command_err);
}

// So many bytes as one member of a gzip file; gives how many it has.
static size_t deflate_member(const void *data, size_t n, unsigned char *out, size_t room)
{
    z_stream z = {.next_in = (unsigned char *)data, .avail_in = (unsigned)n};
    CHECK_INT(deflateInit2(&z, 1, Z_DEFLATED, 15 + 16, 9, Z_DEFAULT_STRATEGY), Z_OK);
    z.next_out = out;
    z.avail_out = (unsigned)room;
    CHECK_INT(deflate(&z, Z_FINISH), Z_STREAM_END);
    deflateEnd(&z);
    return room - z.avail_out;
}

// A head, then 2 GB of zeros, as gzip.
static void write_bomb(const char *name, const void *head, size_t n)
{
    static char zeros[20 << 20];
    static unsigned char out[1 << 20], first[1 << 10];
    static size_t bytes;
    FILE *f = fopen(path_of(name), "wb");
    CHECK(f != NULL);
    if (bytes == 0)
        bytes = deflate_member(zeros, sizeof(zeros), out, sizeof(out));
    if (n > 0) {
        size_t length = deflate_member(head, n, first, sizeof(first));
        CHECK(fwrite(first, 1, length, f) == length);
    }
    for (int i = 0; i < 100; i++)
        CHECK(fwrite(out, 1, bytes, f) == bytes);
    CHECK_INT(fclose(f), 0);
}

// Refused by the header, before it takes memory.
TEST(gzip_that_is_no_such_file_does_not_grow)
{
    static const unsigned char idx[] = {0, 0, 8, 3, 0, 0, 0, 2, 0, 0, 0, 28, 0, 0, 0, 28};
    static const char npy[] = "\x93NUMPY\1\0\x3a\0{'descr': '<f4', 'fortran_order': False, "
                              "'shape': (2, 4)}  \n";
    static const struct {
        const char *data;
        const void *head;
        size_t n;
        const char *words;
    } cases[] = {
        {"idx: {x: b.gz, y: b.gz}", "", 0, "is not an IDX file: it begins with 00 00 00 00"},
        {"idx: {x: b.gz, y: b.gz}", idx, sizeof(idx), "decompresses to more than 1584 bytes"},
        {"npy: {x: b.gz, y: b.gz}", "", 0, "is not a .npy file"},
        {"npy: {x: b.gz, y: b.gz}", npy, sizeof(npy) - 1, "decompresses to more than 100 bytes"},
        {"csv: {file: b.gz}", "x,y\n1,2\n", 8, "line 3 has a zero byte at byte 1"},
    };
    char job[512];
    for (int i = 0; i < 5; i++) {
        write_bomb("b.gz", cases[i].head, cases[i].n);
        snprintf(job, sizeof(job),
                 "data: {train: {%s}}\nmodel: [flatten, dense: 2]\n"
                 "train: {batch: 4, loss: mse, optimizer: sgd}\n",
                 cases[i].data);
        command_write("job.yaml", job);
        int code = command_shell(LITTLE_MEMORY "timeout 20 $TUTTI train job.yaml");
        ck_assert_msg(code == 3, "%s: exit code %d: %s", cases[i].data, code, command_err);
        CHECK_HAS(command_err, cases[i].words);
    }
}

TEST(a_zero_byte_in_csv_is_refused)
{
    static const struct {
        const char *text;
        size_t n;
        const char *words;
    } cases[] = {{"x,y\n1,2\n3,2\0garbage\n", 20, "t.csv: line 3 has a zero byte at byte 4"},
                 {"x,y\n1,2\n\"3\0\",4\n", 15, "t.csv: line 3 has a zero byte at byte 3"},
                 {"x,y\0z\n1,2\n", 10, "t.csv: line 1 has a zero byte at byte 4"},
                 {"x,y\n1,2\n\0", 9, "t.csv: line 3 has a zero byte at byte 1"}};
    command_write("job.yaml", "data: {train: {csv: {file: t.csv}}}\nmodel: [dense: 1]\n"
                              "train: {batch: 2, loss: mse, optimizer: sgd}\n");
    for (int i = 0; i < 4; i++) {
        FILE *f = fopen(path_of("t.csv"), "wb");
        CHECK(f != NULL && fwrite(cases[i].text, 1, cases[i].n, f) == cases[i].n);
        CHECK_INT(fclose(f), 0);
        ends("train job.yaml", 3, cases[i].words);
    }
}

TEST(a_column_name_that_is_too_long_is_refused)
{
    char text[700] = "";
    memset(text, 'n', 300);
    strcat(text, ",y\n1,2\n");
    command_write("t.csv", text);
    command_write("job.yaml", "data: {train: {csv: {file: t.csv}}}\nmodel: [dense: 1]\n"
                              "train: {batch: 2, loss: mse, optimizer: sgd}\n");
    ends("train job.yaml", 3, "is longer than 255 bytes");
    char line[800];
    text[300] = '\0';
    command_write("t.csv", "x,y\n1,2\n");
    snprintf(line, sizeof(line), "train job.yaml --set data.train.csv.x=%s", text);
    ends(line, 3, "has 300 bytes; at most 255 are allowed");
}

// The note of the best is written in one go, but a disk may still lose it.
TEST(a_damaged_note_of_the_best_is_passed_over)
{
    static const char *const notes[] = {"", "step-", "step-99999\n", "../../x\n"};
    train_small();
    for (int i = 0; i < 4; i++) {
        char line[128];
        command_write("a/checkpoints/best", notes[i]);
        ends("eval a --checkpoint best", 1, "has no best checkpoint");
        snprintf(line, sizeof(line), "train a --resume --quiet --set train.epochs=%d", 4 + 2 * i);
        ends(line, 0, "");
        command_write("a/checkpoints/best", notes[i]);
        snprintf(line, sizeof(line), // the last ones are no better
                 "train a --resume --quiet --set train.epochs=%d --set train.optimizer.adam.lr=0",
                 5 + 2 * i);
        ends(line, 0, "which is not a checkpoint there; it is ignored");
    }
}

// What is wrong with the data, at whatever time it is found, is 3: again does not help.
TEST(bad_records_have_the_exit_code_of_bad_data)
{
    FILE *f = fopen(path_of("t.bin"), "wb");
    unsigned short tokens[400];
    for (int i = 0; i < 400; i++)
        tokens[i] = (unsigned short)(i == 390 ? 77 : i % 9);
    CHECK(f != NULL && fwrite(tokens, 2, 400, f) == 400 && fclose(f) == 0);
    command_write("job.yaml", "data: {train: {tokens: {file: t.bin, vocab: 9, context: 8}}}\n"
                              "model: [embedding: {vocab: 9, width: 4}, dense: 9]\n"
                              "train: {batch: 4, loss: cross_entropy, optimizer: sgd}\n");
    ends("train job.yaml", 3, "token 77, at byte 780, must be below 9");
}
