/*
 * pt.c - files of torch.save(): pickles that ask for code are refused by name; whatever the bytes
 * are, nothing runs and nothing crashes.
 */
#include "../test.h"
#include "save/pickle.h"
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

// {"w": a tensor [2, 3] of storage "0"}, as torch.save() writes it.
static const char good[] = "\x80\x02"
                           "ccollections\nOrderedDict\nq\0)Rq\1("
                           "X\1\0\0\0wq\2ctorch._utils\n_rebuild_tensor_v2\nq\3(("
                           "X\7\0\0\0storageq\4ctorch\nFloatStorage\nq\5X\1\0\0\0"
                           "0q\6X\3\0\0\0cpuq\7K\6tq\10QK\0K\2K\3\x86q\11K\3K\1\x86q\12\x89h\0)Rq"
                           "\13tq\14Rq\15u.";

static tt_status read(tt_ctx *ctx, const void *data, size_t n, tti_pickle *p)
{
    return tti_pickle_read(ctx, "f.pt", data, n, p);
}

TEST(pickles_of_tensors)
{
    tt_ctx *ctx = test_ctx();
    tti_pickle p;
    CHECK_OK(read(ctx, good, sizeof(good) - 1, &p));
    CHECK_INT(p.n, 1);
    const tti_pickled *t = &p.tensors[0];
    CHECK_STR(t->name, "w");
    CHECK_STR(t->type, "FloatStorage");
    CHECK_STR(t->key, "0");
    CHECK(t->numel == 6 && t->rank == 2 && t->shape[0] == 2 && t->shape[1] == 3 &&
          t->stride[0] == 3 && t->stride[1] == 1 && t->offset == 0);
    tti_pickle_free(ctx, &p);
    CHECK_OK(tt_close(ctx));
}

static void refuses(const char *data, size_t n, const char *words)
{
    tt_ctx *ctx = test_ctx();
    tti_pickle p;
    CHECK(read(ctx, data, n, &p) != TT_OK);
    CHECK_MESSAGE(ctx, words);
    tt_clear_error(ctx);
    CHECK_OK(tt_close(ctx));
}
#define REFUSES(text, words) refuses(text, sizeof(text) - 1, words)

TEST(pickles_never_run_code)
{
    REFUSES("\x80\x02"
            "cos\nsystem\nX\4\0\0\0lsls\x85R.",
            "needs Python's 'os.system', but code in a file is never run");
    REFUSES("\x80\4\x8c\2os\x8c\6system\x93.", "needs Python's 'os.system'");
    REFUSES("\x80\x02"
            "cbuiltins\neval\n.",
            "needs Python's 'builtins.eval'");
    REFUSES("\x80\x02"
            "c__main__\nModel\n.",
            "torch.save(model.state_dict(), \"model.pt\")");
    REFUSES("(S'ls'\nios\nsystem\n.", "has the operation 0x53");
    REFUSES("\x80\x02"
            "ctorch\nFloatStorage\n)R.",
            "a call of a storage's type");
    REFUSES("\x80\x02K\1.", "is not a dictionary of tensors");
    REFUSES("\x80\x02}.", "has no tensors in it");
    REFUSES("", "it is cut short");
    REFUSES("h\5.", "a memo that does not exist");
    REFUSES("}r\xff\xff\xff\xff.", "an empty memo");
    REFUSES("X\xff\xff\xff\x7f"
            "a.",
            "a text is cut short");
}

// Every cut and every flip of a bit: an error or a table, never a crash.
TEST(pickles_damaged)
{
    tt_ctx *ctx = test_ctx();
    tti_pickle p;
    for (size_t n = 0; n < sizeof(good) - 1; n++) {
        CHECK(read(ctx, good, n, &p) != TT_OK);
        tt_clear_error(ctx);
    }
    for (size_t i = 0; i < (sizeof(good) - 1) * 8; i++) {
        char *flipped = malloc(sizeof(good) - 1); // its own memory: reading past it is found
        memcpy(flipped, good, sizeof(good) - 1);
        flipped[i / 8] ^= (char)(1 << i % 8);
        if (read(ctx, flipped, sizeof(good) - 1, &p) == TT_OK)
            tti_pickle_free(ctx, &p);
        tt_clear_error(ctx);
        free(flipped);
    }
    CHECK_OK(tt_close(ctx));
}

TEST(zip_files_that_torch_did_not_write)
{
    char path[400];
    snprintf(path, sizeof(path), "%s/f.pt", test_folder());
    static const char *const texts[] = {"PK\3\4 and nothing else", "\x80\2\x8a\x0al\xfc\x9c\x46"};
    static const char *const words[] = {"is not a zip archive", "before version 1.6"};
    for (int i = 0; i < 2; i++) {
        tt_ctx *ctx = test_ctx();
        tt_model *m = tt_sequential(ctx, .input = {2});
        tt_layer_dense(m, .units = 1);
        FILE *f = fopen(path, "wb");
        fwrite(texts[i], 1, strlen(texts[i]), f);
        fclose(f);
        CHECK(tt_load(m, path) != TT_OK);
        CHECK_MESSAGE(ctx, words[i]);
        tt_clear_error(ctx);
        CHECK_OK(tt_close(ctx));
    }
}

// tests/golden/tiny.pt: torch.save({"epoch": 3, "lr": 0.1, "state_dict": ...}) of a transposed
// matrix, a bf16 vector, a parameter, a part of a longer vector and a scalar.
TEST(a_file_of_torch_save_is_read)
{
    const float x[2] = {1, 10};
    float y[3];
    tt_ctx *ctx = test_ctx();
    tt_model *m = tt_sequential(ctx, .input = {2});
    tt_layer_dense(m, .units = 3, .name = "fc");
    tt_layer_batch_norm(m, .name = "bn");
    tt_status st = tt_load(m, "tests/golden/tiny.pt");
    ck_assert_msg(st == TT_OK, "%s", tt_last_error(ctx).message);
    CHECK_OK(tt_predict(m, x, 1, y)); // (x W + b - mean) / sqrt(1 + eps); W is [0 1; 2 3; 4 5]^T
    CHECK_NEAR(y[0], (0 + 10 + 0.5 - 1) / sqrt(1 + 1e-5), 1e-5);
    CHECK_NEAR(y[1], (2 + 30 + 1.5 - 2) / sqrt(1 + 1e-5), 1e-5);
    CHECK_NEAR(y[2], (4 + 50 + 2.5 - 3) / sqrt(1 + 1e-5), 1e-5);
    CHECK_OK(tt_close(ctx));
}
