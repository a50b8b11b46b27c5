/*
 * job_examples.c - the job files in examples/: all can be read and built, on tiny files where they
 * need some; without their files they say which one is missing.
 */
#include "../jobs.h"
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

// Prints, reads the print, prints again.
static void expect_stable(tt_job *j, tt_ctx *ctx)
{
    char *text = tt_job_print(j);
    CHECK(text != NULL);
    tt_job *again = tt_job_parse(ctx, text, strlen(text), "again.yaml");
    ck_assert_msg(again != NULL, "%s\n%s", tt_last_error(ctx).message, text);
    char *same = tt_job_print(again);
    CHECK_STR(same, text);
    tt_string_free(ctx, text);
    tt_string_free(ctx, same);
    tt_job_free(again);
}

static const char *const examples[] = {
    "digits",       "finetune", "mnist_cnn",  "source_gpt", "csv_regression",    "shakespeare_gpt",
    "cifar_resnet", "mirrored", "accumulate", "pipeline",   "replicas_of_split", "split",
    "recompute",    "too_big",  "imbalanced"};
#define N_EXAMPLES ((int)(sizeof(examples) / sizeof(examples[0])))

// The repository's root: tests run from it.
static void example_path(const char *name, char path[256])
{
    snprintf(path, 256, "examples/%s.yaml", name);
    if (access(path, R_OK) != 0)
        test_skip("not run from the repository's root");
}

TEST(job_examples_are_stable)
{
    test_need_yaml();
    tt_ctx *ctx = test_ctx();
    for (int i = 0; i < N_EXAMPLES; i++) {
        char path[256];
        example_path(examples[i], path);
        tt_job *j = tt_job_read(ctx, path, .no_env = true);
        ck_assert_msg(j != NULL, "%s", tt_last_error(ctx).message);
        CHECK_STR(tt_job_name(j), examples[i]);
        expect_stable(j, ctx);
        tt_job_free(j);
    }
    CHECK_OK(tt_close(ctx));
}

static void write_file(const char *folder, const char *name, const void *data, size_t bytes)
{
    char path[512];
    snprintf(path, sizeof(path), "%s/%s", folder, name);
    FILE *f = fopen(path, "wb");
    CHECK(f != NULL && fwrite(data, 1, bytes, f) == bytes);
    fclose(f);
}

static void make_folder(const char *folder, const char *name, char out[512])
{
    snprintf(out, 512, "%s/%s", folder, name);
    char command[600];
    snprintf(command, sizeof(command), "mkdir -p '%s'", out);
    CHECK(system(command) == 0);
}

// Tiny files of the formats that the examples read: zeros, and some text.
static void make_data(const char *folder)
{
    static unsigned char records[2 * 3073 + 784 * 4 + 64];
    static char text[20000];
    char at[512];
    make_folder(folder, "mnist", at);
    static const char *const sets[] = {"train", "t10k"};
    for (int i = 0; i < 2; i++) {
        char name[64];
        unsigned char images[16 + 784 * 4] = {0, 0, 8, 3, 0, 0, 0, 4, 0, 0, 0, 28, 0, 0, 0, 28};
        unsigned char labels[8 + 4] = {0, 0, 8, 1, 0, 0, 0, 4};
        snprintf(name, sizeof(name), "%s-images-idx3-ubyte", sets[i]);
        write_file(at, name, images, sizeof(images));
        snprintf(name, sizeof(name), "%s-labels-idx1-ubyte", sets[i]);
        write_file(at, name, labels, sizeof(labels));
    }
    make_folder(folder, "cifar10", at);
    for (int i = 1; i <= 5; i++) {
        char name[64];
        snprintf(name, sizeof(name), "data_batch_%d.bin", i);
        write_file(at, name, records, 2 * 3073);
    }
    write_file(at, "test_batch.bin", records, 2 * 3073);
    for (size_t i = 0; i < sizeof(text); i++)
        text[i] = (char)('a' + i % 26);
    write_file(folder, "input.txt", text, sizeof(text));
}

static tt_status build_example(const char *name, const char *const *sets, int n, char *message)
{
    char path[256];
    example_path(name, path);
    tt_ctx *reader = test_ctx();
    tt_job *j = tt_job_read(reader, path, .sets = sets, .n_sets = n, .no_env = true);
    job_built b = job_build_read(reader, j);
    snprintf(message, 512, "%s", tt_last_error(b.ctx).message);
    job_close(&b);
    return b.status;
}

TEST(job_examples_build)
{
    test_need_yaml();
    char dir[512], message[512];
    make_data(test_folder());
    snprintf(dir, sizeof(dir), "data.dir=%s", test_folder());
    for (int i = 0; i < N_EXAMPLES; i++) {
        bool needs_files = strcmp(examples[i], "mnist_cnn") == 0 ||
                           strcmp(examples[i], "cifar_resnet") == 0 ||
                           strcmp(examples[i], "shakespeare_gpt") == 0;
        const char *const sets[] = {needs_files ? dir : "init.file="};
        ck_assert_msg(build_example(examples[i], sets, 1, message) == TT_OK, "%s", message);
    }
}

TEST(job_examples_say_which_file_is_missing)
{
    test_need_yaml();
    char message[512];
    static const struct {
        const char *name, *words;
    } cases[] = {
        {"mnist_cnn", "data.train: mnist: '/nowhere' has no train-images-idx3-ubyte"},
        {"cifar_resnet", "data.train: cannot open '/nowhere/data_batch_1.bin'"},
        {"shakespeare_gpt", "/nowhere/input.txt"},
    };
    const char *const sets[] = {"data.dir=/nowhere"};
    for (int i = 0; i < (int)(sizeof(cases) / sizeof(cases[0])); i++) {
        CHECK(build_example(cases[i].name, sets, 1, message) == TT_EIO);
        ck_assert_msg(strstr(message, cases[i].words) != NULL, "message is '%s'", message);
        ck_assert_msg(strstr(message, "data.train: ") != NULL, "message is '%s'", message);
    }
    const char *const init[] = {"init.file=/nowhere"};
    CHECK(build_example("finetune", init, 1, message) == TT_EIO);
    ck_assert_msg(strstr(message, "init: ") != NULL && strstr(message, "/nowhere") != NULL,
                  "message is '%s'", message);
}

TEST(job_test_data_is_the_test_split)
{
    test_need_yaml();
    tt_ctx *ctx = test_ctx();
    tt_job *j =
        job_parse(ctx, "data: {train: mnist, test: mnist, validate: {mnist: {split: train}}}\n"
                       "model: [flatten]\n");
    ck_assert_msg(j != NULL, "%s", tt_last_error(ctx).message);
    CHECK_STR(tt_job_get(j, "data.train.mnist.split"), "train");
    CHECK_STR(tt_job_get(j, "data.test.mnist.split"), "test");
    CHECK_STR(tt_job_get(j, "data.validate.mnist.split"), "train");
    expect_stable(j, ctx);
    CHECK_OK(tt_close(ctx));
}
