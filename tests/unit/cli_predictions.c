/*
 * cli_predictions.c - what predict reads and writes: files, folders, patterns, standard input;
 * tables, JSON lines, CSV, .npy; several inputs and outputs.
 */
#include "../command.h"
#include "save/checkpoint.h"
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <zlib.h>

static const char *path_of(const char *name)
{
    static char path[4][600];
    static int next;
    char *p = path[next++ % 4];
    snprintf(p, sizeof(path[0]), "%s/%s", test_folder(), name);
    return p;
}

typedef struct bytes {
    unsigned char data[1 << 16];
    size_t n;
} bytes;

static void put(bytes *b, const void *data, size_t n)
{
    CHECK(b->n + n <= sizeof(b->data));
    memcpy(b->data + b->n, data, n);
    b->n += n;
}

static void put_number(bytes *b, uint64_t v, int n)
{
    for (int i = 0; i < n; i++)
        put(b, &(unsigned char){(unsigned char)(v >> 8 * i)}, 1);
}

static void put_npy(bytes *b, const char *shape, const float *x, int n)
{
    char header[118], text[120];
    snprintf(text, sizeof(text), "{'descr': '<f4', 'fortran_order': False, 'shape': (%s), }",
             shape);
    memset(header, ' ', sizeof(header));
    memcpy(header, text, strlen(text));
    header[117] = '\n';
    put(b, "\x93NUMPY\x01\x00\x76\x00", 10);
    put(b, header, sizeof(header));
    put(b, x, sizeof(*x) * (size_t)n);
}

static void write_bytes(const char *name, const bytes *b)
{
    FILE *f = fopen(path_of(name), "wb");
    CHECK(f != NULL && fwrite(b->data, 1, b->n, f) == b->n && fclose(f) == 0);
}

static void write_npy(const char *name, const char *shape, const float *x, int n)
{
    static bytes b;
    b.n = 0;
    put_npy(&b, shape, x, n);
    write_bytes(name, &b);
}

// Arrays, stored, in one .npz.
static void write_npz(const char *name, const char *const *names, const bytes *arrays, int n)
{
    static bytes zip, directory;
    zip.n = directory.n = 0;
    for (int i = 0; i < n; i++) {
        char file[64];
        int length = snprintf(file, sizeof(file), "%s.npy", names[i]);
        uint64_t crc = crc32(0, arrays[i].data, (uInt)arrays[i].n), at = zip.n;
        for (int k = 0; k < 2; k++) {
            bytes *b = k == 0 ? &zip : &directory;
            put_number(b, k == 0 ? 0x04034b50 : 0x02014b50, 4);
            put_number(b, 20, k == 0 ? 2 : 2);
            if (k == 1)
                put_number(b, 20, 2);
            put_number(b, 0, 2 + 2 + 2 + 2);
            put_number(b, crc, 4);
            put_number(b, arrays[i].n, 4);
            put_number(b, arrays[i].n, 4);
            put_number(b, (uint64_t)length, 2);
            put_number(b, 0, 2);
            if (k == 1) {
                put_number(b, 0, 2 + 2 + 2);
                put_number(b, 0, 4);
                put_number(b, at, 4);
            }
            put(b, file, (size_t)length);
        }
        put(&zip, arrays[i].data, arrays[i].n);
    }
    uint64_t at = zip.n;
    put(&zip, directory.data, directory.n);
    put_number(&zip, 0x06054b50, 4);
    put_number(&zip, 0, 4);
    put_number(&zip, (uint64_t)n, 2);
    put_number(&zip, (uint64_t)n, 2);
    put_number(&zip, directory.n, 4);
    put_number(&zip, at, 4);
    put_number(&zip, 0, 2);
    write_bytes(name, &zip);
}

// ---- forms -----------------------------------------------------------------------------------

// One dense layer with weights that can be followed by hand: y = x, three classes by name.
static void train_classes(void)
{
    command_write("three.csv", "a,b,c,kind\n9,0,0,red\n0,9,0,green\n0,0,9,\"blue, dark\"\n"
                               "8,0,0,red\n0,8,0,green\n0,0,8,\"blue, dark\"\n");
    command_write("three.yaml",
                  "name: three\n"
                  "data: {train: {csv: {file: three.csv, y: kind, classes: true}}}\n"
                  "model: [{dense: 3}]\n"
                  "checkpoint: {every: 1000}\n"
                  "train: {epochs: 50, batch: 6, loss: cross_entropy, optimizer: {sgd: {lr: "
                  "0.1}}}\n");
    command_ok("train three.yaml --quiet");
    command_write("new.csv", "a,b,c\n5,0,0\n0,0,5\n");
}

TEST(predictions_are_written_in_every_form)
{
    static char text[1 << 16];
    train_classes();
    command_ok("predict three --input new.csv");
    CHECK_HAS(command_out, "record   class      probability \n0        red        ");
    CHECK_HAS(command_out, "\n1        blue, dark ");
    command_ok("predict three --input new.csv --top 2 --json");
    CHECK_HAS(command_out, "{\"record\": 0, \"class\": \"red\", \"probability\": 0.");
    CHECK_INT(command_count(command_out, "\"top\": ["), 2);
    CHECK_INT(command_count(command_out, "{\"class\": "), 4);
    command_ok("predict three --input new.csv --all");
    CHECK_HAS(command_out, "0        red 0.");
    CHECK_HAS(command_out, "  blue, dark 0.");

    command_ok("predict three --input new.csv --output p.csv");
    CHECK_HAS(command_out, "p.csv: the predictions of runs/three-001/checkpoints/step-50");
    command_read("p.csv", text, sizeof(text));
    CHECK_HAS(text, "record,class,probability\n0,red,0.");
    CHECK_HAS(text, "\n1,\"blue, dark\",0.");
    command_ok("predict three --input new.csv --output p.csv --top 2");
    command_read("p.csv", text, sizeof(text));
    CHECK_HAS(text, "record,class,probability,class_2,probability_2\n0,red,0.");
    command_ok("predict three --input new.csv --output p.csv --all");
    command_read("p.csv", text, sizeof(text));
    CHECK_HAS(text, "record,red,green,\"blue, dark\"\n0,0.");
    command_ok("predict three --input new.csv --output p.jsonl --quiet");
    CHECK_STR(command_out, "");
    command_read("p.jsonl", text, sizeof(text));
    CHECK_INT(command_count(text, "\n"), 2);
    command_ok("predict three --input new.csv --output p.npy");
    FILE *f = fopen(path_of("p.npy"), "rb");
    float y[6];
    size_t n = fread(text, 1, 128, f);
    CHECK(n == 128 && fread(y, sizeof(float), 6, f) == 6 && fgetc(f) == EOF);
    fclose(f);
    CHECK_HAS(text + 10, "'shape': (2, 3,), }");
    CHECK_NEAR(y[0] + y[1] + y[2], 1, 1e-6);
    CHECK(y[0] > 0.9 && y[5] > 0.9);
    CHECK_INT(command_run("predict three --input new.csv --output p.xls"), 2);
    CHECK_HAS(command_err, "--output: the format of 'p.xls' cannot be written; use .csv");
    CHECK_INT(command_run("predict three --input nothing.csv --output q.csv"), 3);
    CHECK(!command_left("q.csv"));
    CHECK_INT(command_run("predict three --input new.csv --output no/q.csv"), 1);
    CHECK_HAS(command_err, "cannot write 'no/q.csv'");
}

TEST(records_come_from_files_folders_patterns_and_pipes)
{
    static char one[1 << 16];
    train_classes();
    command_ok("predict three --input new.csv --json");
    strcpy(one, command_out);
    command_write("in", "a,b,c\n5,0,0\n0,0,5\n"); // standard input
    command_ok("predict three --input - --json");
    CHECK_STR(command_out, one);
    CHECK(mkdir(path_of("dir"), 0777) == 0);
    command_write("dir/b.csv", "c,b,a\n5,0,0\n");
    command_write("dir/a.csv", "a,b,c\n5,0,0\n0,0,5\n");
    command_write("dir/.hidden", "nothing");
    command_ok("predict three --input dir --json");
    CHECK_INT(command_count(command_out, "\n"), 3);
    CHECK_HAS(command_out, "{\"file\": \"dir/a.csv\", \"record\": 1, \"class\": \"blue, dark\"");
    CHECK_HAS(command_out, "{\"file\": \"dir/b.csv\", \"record\": 0, \"class\": \"blue, dark\"");
    command_ok("predict three --input dir/*.csv --count 2 --json");
    CHECK_INT(command_count(command_out, "\n"), 2);
    CHECK_INT(command_run("predict three --input dir/*.npy"), 1);
    CHECK_HAS(command_err, "no file matches 'dir/*.npy'");
    command_write("photo.jpg", "\xff\xd8\xff\xe0 JFIF");
    CHECK_INT(command_run("predict three --input photo.jpg"), 3);
    CHECK_HAS(command_err, "photo.jpg is an image file, but the model was not trained on image");
}

TEST(channels_first_are_converted)
{
    static float last[2 * 784], first[2 * 784];
    static char want[1 << 16];
    command_write("pictures.yaml",
                  "name: pictures\n"
                  "data: {train: {digits: {count: 32}}}\n"
                  "model: [{reshape: [14, 14, 4]}, {conv2d: 2}, flatten, {dense: 10}]\n"
                  "train: {epochs: 1, batch: 16, loss: cross_entropy, optimizer: sgd}\n");
    for (int i = 0; i < 2 * 784; i++)
        last[i] = first[i] = (float)(i % 97) / 97; // one channel: the same bytes
    write_npy("last.npy", "2, 28, 28, 1", last, 2 * 784);
    write_npy("first.npy", "2, 1, 28, 28", first, 2 * 784);
    command_ok("train pictures.yaml --quiet");
    command_ok("predict pictures --input last.npy --all");
    strcpy(want, command_out);
    CHECK_INT(command_run("predict pictures --input first.npy"), 3);
    CHECK_HAS(command_err, "--layout nchw converts them");
    command_ok("predict pictures --input first.npy --layout nchw --all");
    CHECK_STR(command_out, want);
    CHECK_INT(command_run("predict pictures --input last.npy --layout chw"), 2);
}

// ---- several inputs and outputs --------------------------------------------------------------

TEST(several_inputs_and_outputs)
{
    static bytes arrays[2];
    static const char *const names[] = {"left", "right"};
    const float left[4] = {1, 2, 3, 4}, right[2] = {10, 20};
    float sum[4], double_right[2];
    tt_ctx *ctx = test_ctx();
    tt_model *m = tt_model_new(ctx);
    tt_tensor *a = tt_input(m, .shape = {2}, .name = "left");
    tt_tensor *b = tt_input(m, .shape = {1}, .name = "right");
    tt_tensor *both = tt_layer_concat(m, .from = {a, b});
    tt_tensor *x = tt_layer_dense(m, .units = 2, .from = {both}, .init = {TT_INIT_CONSTANT, 1, 0});
    tt_tensor *y = tt_layer_dense(m, .units = 1, .from = {b}, .init = {TT_INIT_CONSTANT, 2, 0});
    CHECK_OK(tt_output(m, x, "sum"));
    CHECK_OK(tt_output(m, y, "double"));
    CHECK_OK(tt_predict(m, NULL, 2, NULL, .inputs = {left, right}, .outputs = {sum, double_right},
                        .batch = 1));
    CHECK(sum[0] == 13 && sum[2] == 27 && double_right[1] == 40);
    CHECK_OK(tt_predict(m, NULL, 2, NULL, .inputs = {left, right}, .outputs = {NULL, sum}));
    CHECK(sum[0] == 20);
    CHECK(tt_predict(m, left, 2, sum) == TT_EINVAL);
    CHECK_MESSAGE(ctx, "the model has 2 inputs: give all in .inputs, and 'right' is missing");
    tt_clear_error(ctx);
    CHECK_OK(tt_export(m, path_of("two.tutti")));
    CHECK_OK(tt_close(ctx));

    put_npy(&arrays[0], "2, 2", left, 4);
    put_npy(&arrays[1], "2, 1", right, 2);
    write_npz("both.npz", names, arrays, 2);
    write_npz("one.npz", names, arrays, 1);
    command_ok("predict two.tutti --input both.npz");
    CHECK_STR(command_out, "0        sum: 13 13 double: 20\n1        sum: 27 27 double: 40\n");
    command_ok("predict two.tutti --input both.npz --json");
    CHECK_HAS(command_out, "{\"record\": 1, \"sum\": [27, 27], \"double\": [40]}");
    static char text[1 << 16];
    command_ok("predict two.tutti --input both.npz --output p.csv");
    command_read("p.csv", text, sizeof(text));
    CHECK_STR(text, "record,sum_0,sum_1,double\n0,13,13,20\n1,27,27,40\n");
    CHECK_INT(command_run("predict two.tutti --input one.npz"), 3);
    CHECK_HAS(command_err, "has no array 'right'");
    CHECK_INT(command_run("predict two.tutti --input both.npz --output p.npy"), 1);
    CHECK_HAS(command_err, "the model has 2 outputs, but .npy holds one array");
}

// ---- checkpoints of older versions -----------------------------------------------------------

TEST(runs_without_a_card_are_built_as_their_job_says)
{
    static char want[1 << 16];
    static tti_snapshot s;
    train_classes();
    command_ok("predict three --input new.csv --all --json");
    strcpy(want, command_out);
    tt_ctx *ctx = test_ctx();
    const char *path = path_of("runs/three-001/checkpoints/step-50");
    CHECK_OK(tti_checkpoint_read(ctx, path, &s)); // what is read has no card
    CHECK_OK(tti_checkpoint_write(ctx, path, &s));
    tti_snapshot_free(ctx, &s);
    CHECK(tt_model_load(ctx, path) == NULL);
    CHECK_MESSAGE(ctx, "holds only weights, not a model");
    tt_clear_error(ctx);
    CHECK_OK(tt_close(ctx));
    command_ok("predict three --input new.csv --all --json");
    CHECK_STR(command_out, want);
    command_ok("eval three --data three.csv");
    CHECK_INT(command_run("convert three m.tutti"), 1);
    CHECK_HAS(command_err, "a model needs a description of its layers");
    command_ok("train three --resume --quiet");
}
