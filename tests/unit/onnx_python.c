/*
 * onnx_python.c - ONNX files of every kind of layer and model pass the format's checker and give
 * the same numbers in ONNX Runtime. tests/python/onnx_test has the other half; TUTTI_ONNX_PYTHON
 * names a Python with onnx, onnxruntime and numpy.
 */
#include "../command.h"
#include "../onnx_cases.h"
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

static void put(const char *name, const char *ending, const void *x, size_t bytes)
{
    char path[600];
    snprintf(path, sizeof(path), "%s/%s%s", test_folder(), name, ending);
    FILE *f = fopen(path, "wb");
    CHECK(f != NULL && fwrite(x, 1, bytes, f) == bytes && fclose(f) == 0);
}

static void export_case(int i)
{
    char name[32], path[600];
    tt_ctx *ctx = test_ctx();
    tt_model *m = onnx_case_build(ctx, &onnx_cases[i]);
    size_t bytes;
    int64_t n;
    void *x = onnx_case_input(m, ROWS, &bytes);
    float *y = onnx_case_run(m, x, ROWS, &n);
    snprintf(name, sizeof(name), "%03d", i);
    snprintf(path, sizeof(path), "%s/%s.onnx", test_folder(), name);
    ck_assert_msg(tt_export_onnx(m, path) == TT_OK, "%s: %s", onnx_cases[i].text,
                  tt_last_error(ctx).message);
    put(name, ".x", x, bytes);
    put(name, ".y", y, (size_t)n * sizeof(*y));
    put(name, ".txt", onnx_cases[i].text, strlen(onnx_cases[i].text));
    CHECK_OK(tt_close(ctx));
}

static void has_every_kind(void)
{
    const tti_layer_def *def;
    for (int i = 0; (def = tti_layer_at(i)) != NULL; i++) {
        bool found = false;
        for (int k = 0; k < onnx_n_cases; k++)
            found |= strncmp(onnx_cases[k].text, def->name, strlen(def->name)) == 0 &&
                     strchr(" ", onnx_cases[k].text[strlen(def->name)]) != NULL;
        ck_assert_msg(found, "tests/onnx_cases.c has no case of the layer %s", def->name);
    }
}

TEST(onnx_runtime_agrees)
{
    static char log[1 << 16];
    char line[2000];
    const char *exe = getenv("TUTTI_ONNX_PYTHON"), *script = "tests/python/onnx_test";
    if (exe == NULL || access(exe, X_OK) != 0 || access(script, R_OK) != 0)
        test_skip("no Python with ONNX Runtime (TUTTI_ONNX_PYTHON)");
    has_every_kind();
    for (int i = 0; i < onnx_n_cases; i++)
        export_case(i);
    snprintf(line, sizeof(line), "'%s' '%s' '%s' >'%s/python.log' 2>&1", exe, script, test_folder(),
             test_folder());
    int rc = system(line);
    if (WEXITSTATUS(rc) == 77)
        test_skip("TUTTI_ONNX_PYTHON has no onnx, onnxruntime or numpy");
    command_read("python.log", log, sizeof(log));
    ck_assert_msg(rc == 0, "%s", log);
}
