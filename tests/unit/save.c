/*
 * save.c - tt_save(), tt_load(), tt_export(): weights come back as they were, names can be mapped,
 * and what does not fit is told by name and leaves the model alone.
 */
#include "../test.h"
#include "model/model.h"
#include "save/rename.h"
#include "save/safetensors.h"
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

static char *path_of(const char *name)
{
    static char path[8][400];
    static int next;
    char *p = path[next++ % 8];
    snprintf(p, sizeof(path[0]), "%s/%s", test_folder(), name);
    return p;
}

static tt_model *mlp(tt_ctx *ctx, int hidden, const char *first)
{
    tt_model *m = tt_sequential(ctx, .input = {6});
    tt_layer_dense(m, .units = hidden, .act = TT_RELU, .name = first);
    tt_layer_batch_norm(m, .name = "norm");
    tt_layer_dense(m, .units = 3, .name = "head");
    return m;
}

// Another context's seed gives other weights.
static tt_ctx *seeded(uint64_t seed)
{
    return tt_open(.devices = "cpu:0", .seed = seed, .on_event = test_ignore_event);
}

static tt_hash hash_of(tt_model *m)
{
    tt_hash h;
    CHECK_OK(tt_weight_hash(tti_model_session(m), &h));
    return h;
}

static bool same(tt_hash a, tt_hash b)
{
    return a.low == b.low && a.high == b.high;
}

static void read_weight(tt_model *m, int i, float *out, size_t bytes)
{
    CHECK_OK(tt_get_variable(tti_model_session(m), m->weights[i].var, out, bytes));
}

TEST(save_and_load)
{
    tt_ctx *a = seeded(1), *b = seeded(2);
    tt_model *x = mlp(a, 8, "first"), *y = mlp(b, 8, "first");
    CHECK_OK(tt_save(x, path_of("m.tutti"))); // never run: weights are as initialised
    tt_hash want = hash_of(x);
    CHECK(!same(want, hash_of(y)));
    CHECK_OK(tt_load(y, path_of("m.tutti")));
    CHECK(same(want, hash_of(y)));
    CHECK_OK(tt_export(x, path_of("m.safetensors")));
    tt_model *z = mlp(b, 8, "first"); // the same variables of the store
    CHECK_OK(tt_load(z, path_of("m.safetensors")));
    CHECK(same(want, hash_of(z)));
    CHECK_OK(tt_close(a));
    CHECK_OK(tt_close(b));
}

// So many updates from a batch of made-up numbers.
static void train(tt_model *m, int steps)
{
    float x[7 * 6];
    int32_t y[7];
    test_fill(x, 7 * 6, 5, -1, 1);
    for (int i = 0; i < 7; i++)
        y[i] = i % 3;
    tt_batch_data batch = {.fields = {x, y}, .rows = 7};
    for (int i = 0; i < steps; i++)
        CHECK_OK(tt_train_step(m, &batch, NULL));
}

static void compile(tt_model *m, const tt_optimizer *o)
{
    CHECK_OK(tt_compile(m, .loss = TT_CROSS_ENTROPY, .optimizer = o));
}

// Training goes on from a checkpoint as if it had never stopped: moments and step come back too.
TEST(save_and_go_on)
{
    tt_ctx *a = seeded(1), *b = seeded(2), *c = seeded(3);
    tt_model *x = mlp(a, 8, "first"), *y = mlp(b, 8, "first"), *z = mlp(c, 8, "first");
    compile(x, tt_adam(.lr = 0.01, .ema = 0.9));
    train(x, 3);
    CHECK_OK(tt_save(x, path_of("m")));
    train(x, 4);
    compile(y, tt_adam(.lr = 0.01, .ema = 0.9));
    CHECK_OK(tt_load(y, path_of("m")));
    train(y, 4);
    CHECK(same(hash_of(x), hash_of(y)));
    CHECK_OK(tt_save(x, path_of("x")));
    CHECK_OK(tt_save(y, path_of("y")));

    // Another optimizer takes the weights and goes its own way.
    compile(z, tt_sgd(.lr = 0.01, .momentum = 0.9));
    CHECK_OK(tt_load(z, path_of("x")));
    CHECK(same(hash_of(x), hash_of(z)));
    train(z, 1);
    CHECK_OK(tt_close(a));
    CHECK_OK(tt_close(b));
    CHECK_OK(tt_close(c));
}

TEST(load_without_arguments)
{
    tt_ctx *ctx = seeded(1);
    tt_model *m = mlp(ctx, 8, "first");
    CHECK(tt_save(NULL, "x") == TT_EINVAL);
    CHECK(tt_load(NULL, "x") == TT_EINVAL);
    CHECK(tt_export(NULL, "x") == TT_EINVAL);
    CHECK(tt_save(m, "") == TT_EINVAL);
    tt_clear_error(ctx);
    CHECK(tt_load(m, NULL) == TT_EINVAL);
    tt_clear_error(ctx);
    CHECK(tt_load(m, path_of("nowhere")) == TT_EIO);
    CHECK_MESSAGE(ctx, "nowhere");
    CHECK(tt_save(m, path_of("x")) == TT_EIO); // the context is stuck
    CHECK(!tti_folder_exists(path_of("x")));
    tt_clear_error(ctx);
    CHECK_OK(tt_close(ctx));
}

// Loading x's weights into y fails with these words and leaves y as it was.
static void refuse(tt_model *y, const char *path, tt_load_opts opts, const char *words)
{
    tt_hash before = hash_of(y);
    opts.opts_size = sizeof(opts);
    CHECK(tt_load_with(y, path, &opts) != TT_OK);
    CHECK_MESSAGE(y->ctx, words);
    tt_clear_error(y->ctx);
    CHECK(same(before, hash_of(y)));
}

TEST(load_of_another_model)
{
    tt_ctx *a = seeded(1), *b = seeded(2);
    tt_model *x = mlp(a, 8, "first");
    CHECK_OK(tt_save(x, path_of("m")));
    CHECK_OK(tt_export(x, path_of("m.safetensors")));
    refuse(mlp(b, 9, "first"), path_of("m"), (tt_load_opts){0},
           "m/weights.safetensors: 'first.weight' is f32 [6, 8] but the model's is [6, 9]");
    tt_close(b);
    b = seeded(2);
    tt_model *y = mlp(b, 8, "other");
    refuse(y, path_of("m.safetensors"), (tt_load_opts){0},
           "m.safetensors does not fit the model: missing in the file: 'other.weight', "
           "'other.bias'; not in the model: 'first.bias', 'first.weight'");
    refuse(y, path_of("m"), (tt_load_opts){.map = "first=other"},
           "missing in the file: 'other.weight'");
    refuse(y, path_of("m"), (tt_load_opts){.map = "first"}, "'first' is not of the form old=new");
    refuse(y, path_of("m"), (tt_load_opts){.map = "first.*=other"}, "needs one * on both sides");
    refuse(y, path_of("m"), (tt_load_opts){.map = "first.bias=head.bias"},
           "'first.bias' and 'head.bias' both become 'head.bias'");
    refuse(y, path_of("m"), (tt_load_opts){.only = "nothing*"}, "none of its tensors is selected");
    CHECK_OK(tt_close(a));
    CHECK_OK(tt_close(b));
}

TEST(load_in_part)
{
    float want[6 * 8], got[6 * 8], head[3], before[3];
    tt_ctx *a = seeded(1), *b = seeded(2);
    tt_model *x = mlp(a, 8, "first"), *y = mlp(b, 8, "other");
    CHECK_OK(tt_save(x, path_of("m")));
    read_weight(x, 0, want, sizeof(want));
    int last = (int)y->n_weights - 2; // head.weight, head.bias
    CHECK_STR(y->weights[last + 1].name, "head.bias");

    CHECK_OK(tt_load(y, path_of("m"), .map = "nothing=x, first.*=other.*", .only = "other.*"));
    read_weight(y, 0, got, sizeof(got));
    CHECK(memcmp(want, got, sizeof(got)) == 0);

    float nines[3] = {9, 9, 9};
    tt_set_variable(tti_model_session(x), x->weights[last + 1].var, nines, sizeof(nines));
    CHECK_OK(tt_save(x, path_of("m")));
    read_weight(y, last + 1, before, sizeof(before));
    CHECK(before[0] != 9);
    CHECK_OK(tt_load(y, path_of("m"), .partial = true));
    read_weight(y, last + 1, head, sizeof(head));
    CHECK(memcmp(head, nines, sizeof(head)) == 0);
    CHECK_OK(tt_close(a));
    CHECK_OK(tt_close(b));
}

// Narrower floats go into wider weights; what would lose something does not.
TEST(load_of_other_types)
{
    tt_ctx *ctx = seeded(1);
    tt_model *m = tt_sequential(ctx, .input = {2});
    tt_layer_dense(m, .units = 2, .no_bias = true, .name = "d");
    const uint16_t bf16[4] = {0x3f80, 0xbf80, 0x4000, 0x0001}; // 1, -1, 2, a subnormal
    const double f64[4] = {1, 2, 3, 4};
    tti_named t = {"d.weight", TT_BF16, TT_SHAPE(2, 2), bf16, sizeof(bf16)};
    tt_hash hash;
    float got[4];
    CHECK_OK(tti_safetensors_write(ctx, path_of("b"), &t, 1, NULL, &hash));
    CHECK_OK(tt_load(m, path_of("b"), .layout = TT_WEIGHTS_TUTTI));
    read_weight(m, 0, got, sizeof(got));
    CHECK(got[0] == 1 && got[1] == -1 && got[2] == 2 && got[3] == 0 && !signbit(got[3]));
    t = (tti_named){"d.weight", TT_F64, TT_SHAPE(2, 2), f64, sizeof(f64)};
    CHECK_OK(tti_safetensors_write(ctx, path_of("d"), &t, 1, NULL, &hash));
    refuse(m, path_of("d"), (tt_load_opts){.layout = TT_WEIGHTS_TUTTI},
           "'d.weight' is f64 [2, 2] but the model's is f32");
    CHECK_OK(tt_close(ctx));
}

TEST(load_of_a_damaged_file)
{
    tt_ctx *ctx = seeded(1);
    tt_model *m = mlp(ctx, 8, "first");
    CHECK_OK(tt_save(m, path_of("m")));
    FILE *f = fopen(path_of("m/weights.safetensors"), "r+b");
    CHECK(fseek(f, -3, SEEK_END) == 0 && fputc(77, f) == 77 && fclose(f) == 0);
    refuse(m, path_of("m"), (tt_load_opts){0}, "weights.safetensors: its checksum is wrong");
    CHECK_OK(tt_close(ctx));
}

TEST(load_without_memory)
{
    tt_ctx *a = seeded(1), *b = seeded(2);
    tt_model *x = mlp(a, 8, "first"), *y = mlp(b, 8, "first");
    CHECK_OK(tt_save(x, path_of("m")));
    tt_hash want = hash_of(x), before = hash_of(y);
    int k = 1;
    for (;; k++) {
        tti_fail_alloc_at(b, k);
        tt_status st = tt_load(y, path_of("m"));
        tti_fail_alloc_at(b, 0);
        if (st == TT_OK)
            break;
        CHECK(st == TT_ENOMEM);
        tt_clear_error(b);
        CHECK(same(before, hash_of(y)));
    }
    CHECK(k > 20);
    CHECK(same(want, hash_of(y)));
    CHECK_OK(tt_close(a));
    CHECK_OK(tt_close(b));
}

TEST(rename_rules)
{
    static const struct {
        const char *map, *from, *to;
    } cases[] = {
        {NULL, "a", "a"},
        {"", "a", "a"},
        {"a=b", "a", "b"},
        {"a=b", "aa", "aa"},
        {"x=y, a=b,b=c", "a", "b"}, // the first rule that matches, once
        {" old.* = new.* ", "old.0.weight", "new.0.weight"},
        {"old.*=new.*", "old.", "new."},
        {"old.*=new.*", "older", "older"},
        {"*.w=*.weight", "a.b.w", "a.b.weight"},
        {"*=m.*", "x", "m.x"},
        {"m.*=*", "m.x", "x"},
        {"a*a=<*>", "aa", "<>"},
        {"a*a=<*>", "a", "a"}, // the star does not make the a's overlap
    };
    tt_ctx *ctx = test_ctx();
    char out[TTI_RENAME_MAX], long_name[TTI_RENAME_MAX];
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        CHECK_OK(tti_rename_check(ctx, cases[i].map));
        CHECK_OK(tti_rename(ctx, cases[i].map, cases[i].from, out));
        CHECK_STR(out, cases[i].to);
    }
    memset(long_name, 'x', sizeof(long_name) - 1);
    long_name[sizeof(long_name) - 1] = '\0';
    CHECK_OK(tti_rename(ctx, NULL, long_name, out));
    CHECK(tti_rename(ctx, "*=y*", long_name, out) == TT_EINVAL);
    tt_clear_error(ctx);
    static const char *const bad[] = {"a",       "=",    "a=",   "=b", "a=b=c",
                                      "a**=b**", "a*=b", "a=b*", ",,"};
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        ck_assert_msg(tti_rename_check(ctx, bad[i]) == TT_EINVAL, "'%s' was accepted", bad[i]);
        tt_clear_error(ctx);
    }
    CHECK_OK(tt_close(ctx));
}
