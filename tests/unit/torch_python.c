/*
 * torch_python.c - weights go from PyTorch to Tutti and back, with the real packages: an MLP, a
 * CNN, torchvision's ResNet-18 and Hugging Face's GPT-2 give equal logits. tests/python/torch_test
 * has the other half; TUTTI_TORCH_PYTHON names a Python with torch, torchvision, transformers and
 * safetensors.
 */
#include "../command.h"
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

static char *path_of(const char *name, const char *ending)
{
    static char path[4][600];
    static int next;
    char *p = path[next++ % 4];
    snprintf(p, sizeof(path[0]), "%s/%s%s", test_folder(), name, ending);
    return p;
}

// ---- the models, as torch_test has them ------------------------------------------------------

static tt_model *build_mlp(tt_ctx *ctx)
{
    tt_model *m = tt_sequential(ctx, .input = {64});
    tt_layer_dense(m, .units = 64, .act = TT_RELU, .name = "0");
    tt_layer_dense(m, .units = 10, .name = "2");
    return m;
}

static tt_model *build_cnn(tt_ctx *ctx)
{
    tt_model *m = tt_sequential(ctx, .input = {12, 10, 3});
    tt_layer_conv2d(m, .filters = 8, .pad = {1}, .act = TT_RELU, .name = "0");
    tt_layer_max_pool2d(m);
    tt_layer_depthwise_conv2d(m, .pad = {1}, .name = "3");
    tt_layer_conv2d(m, .filters = 16, .name = "4");
    tt_layer_batch_norm(m, .act = TT_RELU, .name = "5");
    tt_layer_flatten(m);
    tt_layer_batch_norm(m, .name = "8");
    tt_layer_dense(m, .units = 192, .act = TT_RELU, .name = "9");
    tt_layer_dropout(m, .rate = 0.5);
    tt_layer_dense(m, .units = 10, .name = "12");
    return m;
}

static tt_model *build_resnet(tt_ctx *ctx)
{
    tt_model *m = tt_sequential(ctx, .input = {64, 64, 3});
    tt_layer_resnet(m, .depth = 18, .classes = 10);
    return m;
}

static tt_model *build_gpt2(tt_ctx *ctx)
{
    tt_model *m = tt_sequential(ctx, .input = {16}, .dtype = TT_I32);
    tt_layer_gpt(m, .layers = 2, .heads = 2, .width = 32, .vocab = 50);
    return m;
}

static const struct {
    const char *name, *map;
    tt_model *(*build)(tt_ctx *ctx);
    int64_t rows, x_bytes, y_size; // of all rows
} models[] = {
    {"mlp", "", build_mlp, 4, 4 * 64 * 4, 4 * 10},
    {"cnn", "", build_cnn, 3, 3 * 360 * 4, 3 * 10},
    {"resnet", "", build_resnet, 2, 2 * 64 * 64 * 3 * 4, 2 * 10},
    {"gpt2", " --map huggingface_gpt2", build_gpt2, 3, 3 * 16 * 4, 3 * 16 * 50},
};
#define N ((int)(sizeof(models) / sizeof(models[0])))

// ---- files -----------------------------------------------------------------------------------

static void read_numbers(const char *name, const char *ending, void *to, size_t bytes)
{
    FILE *f = fopen(path_of(name, ending), "rb");
    ck_assert_msg(f != NULL && fread(to, 1, bytes, f) == bytes && fgetc(f) == EOF, "%s%s", name,
                  ending);
    fclose(f);
}

static void write_numbers(const char *name, const char *ending, const float *x, int64_t n)
{
    FILE *f = fopen(path_of(name, ending), "wb");
    CHECK(f != NULL && fwrite(x, sizeof(*x), (size_t)n, f) == (size_t)n && fclose(f) == 0);
}

static void python(const char *what)
{
    static char log[1 << 14];
    char line[2000];
    const char *exe = getenv("TUTTI_TORCH_PYTHON"), *script = "tests/python/torch_test";
    if (exe == NULL || access(exe, X_OK) != 0 || access(script, R_OK) != 0)
        test_skip("no Python with PyTorch (TUTTI_TORCH_PYTHON)");
    snprintf(line, sizeof(line), "'%s' '%s' %s '%s' >'%s' 2>&1", exe, script, what, test_folder(),
             path_of("python", ".log"));
    int rc = system(line);
    if (WEXITSTATUS(rc) == 77)
        test_skip("TUTTI_TORCH_PYTHON has no torch, torchvision, transformers or safetensors");
    command_read("python.log", log, sizeof(log));
    ck_assert_msg(rc == 0, "%s: %s", what, log);
}

static double difference(const float *a, const float *b, int64_t n)
{
    double most = 0, size = 1;
    for (int64_t i = 0; i < n; i++) {
        most = fmax(most, fabs((double)a[i] - b[i]));
        size = fmax(size, fabs((double)b[i]));
    }
    return most / size;
}

// ---- there and back --------------------------------------------------------------------------

static void from_torch(int i, const char *ending, const void *x, const float *want)
{
    static float y[3 * 16 * 50];
    tt_ctx *ctx = test_ctx();
    tt_model *m = models[i].build(ctx);
    tt_status st = tt_load(m, path_of(models[i].name, ending));
    ck_assert_msg(st == TT_OK, "%s%s: %s", models[i].name, ending, tt_last_error(ctx).message);
    CHECK_OK(tt_predict(m, x, models[i].rows, y));
    double d = difference(y, want, models[i].y_size);
    ck_assert_msg(d < 1e-5, "%s%s: logits differ by %g", models[i].name, ending, d);
    CHECK_OK(tt_export(m, path_of(models[i].name, ".tutti")));
    CHECK_OK(tt_close(ctx));
}

static void to_torch(int i, const char *from, const char *to)
{
    char line[400];
    snprintf(line, sizeof(line), "convert %s%s %s.%s.safetensors --to torch%s", models[i].name,
             from, models[i].name, to, models[i].map);
    command_ok(line);
}

// A model that Tutti made, with statistics and weights of its own.
static void ours(int i, const void *x)
{
    static float y[3 * 16 * 50];
    tt_ctx *ctx = tt_open(.devices = "cpu:0", .seed = 5, .on_event = test_ignore_event);
    tt_model *m = models[i].build(ctx);
    CHECK_OK(tt_predict(m, x, models[i].rows, y));
    write_numbers(models[i].name, ".ours", y, models[i].y_size);
    CHECK_OK(tt_save(m, path_of(models[i].name, ".own")));
    CHECK_OK(tt_close(ctx));
}

TEST(weights_go_to_pytorch_and_back)
{
    static char x[2 * 64 * 64 * 3 * 4];
    static float y[3 * 16 * 50];
    python("make");
    for (int i = 0; i < N; i++) {
        read_numbers(models[i].name, ".x", x, (size_t)models[i].x_bytes);
        read_numbers(models[i].name, ".y", y, (size_t)models[i].y_size * sizeof(float));
        from_torch(i, ".pt", x, y);
        from_torch(i, ".safetensors", x, y);
        to_torch(i, ".tutti", "back");
        ours(i, x);
        to_torch(i, ".own", "torch");
    }
    python("check");
}
