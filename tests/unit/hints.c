/*
 * hints.c - words of other frameworks: the table holds only what exists, and every message that
 * looks there answers with Tutti's word and all possible ones, whole.
 */
#include "base/hints.h"
#include "../command.h"
#include "../jobs.h"
#include "job/job.h"
#include <ctype.h>
#include <stdio.h>

// ---- the table -------------------------------------------------------------------------------

static bool has_help(const char *path)
{
    tt_ctx *ctx = test_ctx();
    char *text = tt_job_help(ctx, path);
    bool found = text != NULL;
    tt_string_free(ctx, text);
    tt_clear_error(ctx);
    CHECK_OK(tt_close(ctx));
    return found;
}

// Is name a kind below the path?
static bool is_kind(const char *path, const char *name)
{
    char whole[256];
    snprintf(whole, sizeof(whole), "%s.%s", path, name);
    return has_help(whole);
}

// Is the key one of any kind that stands in the section?
static bool is_key_below(const char *section, const char *key)
{
    static const struct {
        const char *section, *kinds;
    } rows[] = {
        {"model", "dense conv2d max_pool2d dropout embedding attention transformer_block gpt"},
        {"data", "train.csv train.text transform.normalise"},
        {"train.optimizer", "adam sgd"},
        {"train.loss", "cross_entropy"},
    };
    char path[256];
    for (int i = 0; i < TTI_COUNT(rows); i++) {
        if (strcmp(rows[i].section, section) != 0)
            continue;
        for (const char *s = rows[i].kinds; *s != '\0'; s += strspn(s, " ")) {
            size_t n = strcspn(s, " ");
            snprintf(path, sizeof(path), "%s.%.*s.%s", section, (int)n, s, key);
            if (has_help(path))
                return true;
            s += n;
        }
    }
    snprintf(path, sizeof(path), "%s.%s", section, key);
    return has_help(path);
}

static bool is_value(const char *key, const char *value)
{
    static const char *const forms[][2] = {
        {"strategy", "distribute: {strategy: %s}"},
        {"act", "model: [dense: {units: 1, act: %s}]"},
        {"init", "model: [dense: {units: 1, init: %s}]"},
        {"precision", "train: {precision: %s, loss: mse}\ndata: {train: {digits: 3}}"},
    };
    char yaml[256] = "";
    for (int i = 0; i < TTI_COUNT(forms); i++)
        if (strcmp(forms[i][0], key) == 0)
            snprintf(yaml, sizeof(yaml), forms[i][1], value);
    CHECK(yaml[0] != '\0');
    if (strstr(yaml, "model") == NULL)
        strcat(yaml, "\nmodel: [flatten]\n");
    tt_ctx *ctx = test_ctx();
    bool found = tt_job_parse(ctx, yaml, strlen(yaml), "j.yaml") != NULL;
    tt_clear_error(ctx);
    CHECK_OK(tt_close(ctx));
    return found;
}

static bool exists(const tti_hint *h)
{
    static const char *const paths[][2] = {{"layer", "model"},
                                           {"loss", "train.loss"},
                                           {"metric", "train.metrics"},
                                           {"optimizer", "train.optimizer"},
                                           {"source", "data.train"},
                                           {"schedule", "train.optimizer.adam.schedule"},
                                           {"transform", "data.transform"}};
    if (strcmp(h->kind, "key") == 0)
        return h->where == NULL ? has_help(h->ours) : is_key_below(h->where, h->ours);
    for (int i = 0; i < TTI_COUNT(paths); i++)
        if (strcmp(paths[i][0], h->kind) == 0)
            return is_kind(paths[i][1], h->ours);
    return is_value(h->kind, h->ours);
}

TEST(hints_name_what_exists)
{
    test_need_yaml();
    for (int i = 0; tti_hint_at(i) != NULL; i++) {
        const tti_hint *h = tti_hint_at(i);
        ck_assert_msg(h->ours != NULL || h->note != NULL, "%s: %s", h->kind, h->words);
        if (h->ours != NULL)
            ck_assert_msg(exists(h), "%s: %s: there is no '%s'", h->kind, h->words, h->ours);
    }
}

// A word that is found by another row first would never be looked at.
TEST(hints_are_reached)
{
    for (int i = 0; tti_hint_at(i) != NULL; i++) {
        const tti_hint *h = tti_hint_at(i);
        for (const char *s = h->words; *s != '\0'; s += strspn(s, " ")) {
            char word[64];
            size_t n = strcspn(s, " ");
            snprintf(word, sizeof(word), "%.*s", (int)n, s);
            ck_assert_msg(tti_hint_find(h->kind, h->where, word) == h, "%s: %s", h->kind, word);
            if (h->ours != NULL && strcmp(h->kind, "key") != 0)
                ck_assert_msg(!tti_is_same_word(word, h->ours), "%s is the same word", word);
            s += n;
        }
    }
}

TEST(hints_take_any_spelling)
{
    static const char *const spellings[] = {"CrossEntropyLoss", "cross_entropy_loss",
                                            "cross-entropy-loss", "torch.nn.CrossEntropyLoss",
                                            "nn.CrossEntropyLoss"};
    for (int i = 0; i < TTI_COUNT(spellings); i++) {
        const tti_hint *h = tti_hint_find("loss", NULL, spellings[i]);
        ck_assert_msg(h != NULL && strcmp(h->ours, "cross_entropy") == 0, "%s", spellings[i]);
    }
    CHECK(tti_hint_find("loss", NULL, "") == NULL && tti_hint_find("loss", NULL, "._-") == NULL);
    CHECK(tti_hint_find("loss", NULL, "rms") == NULL); // of another kind
    CHECK_STR(tti_hint_find("key", "train.optimizer.adam", "learning_rate")->ours, "lr");
    CHECK_STR(tti_hint_find("key", "train", "learning_rate")->ours, "train.optimizer.adam.lr");
    CHECK(tti_is_same_word("Conv2D", "conv_2d") && !tti_is_same_word("conv2d", "conv3d"));
    const char *const names[] = {"batch_norm", "relu", NULL};
    CHECK_STR(tti_meant("BatchNorm", names), "batch_norm");
    CHECK_STR(tti_meant("nn.ReLU", names), "relu");
    CHECK_STR(tti_meant("rleu", names), "relu");
    CHECK(tti_meant("", names) == NULL && tti_meant("zzz", names) == NULL);
}

// ---- what is printed -------------------------------------------------------------------------

// The small job with one line put in another's place.
static void write_with(const char *old, const char *new)
{
    char text[4096];
    const char *at = strstr(command_small_job, old);
    ck_assert_msg(at != NULL, "no '%s' in the job", old);
    snprintf(text, sizeof(text), "%.*s%s%s", (int)(at - command_small_job), command_small_job, new,
             at + strlen(old));
    command_write("m.yaml", text);
}

TEST(words_of_other_frameworks_in_a_job)
{
    static const struct {
        const char *old, *new, *message, *list;
    } rows[] = {
        {"batch: 32", "batch_size: 32", "train: unknown key 'batch_size'; use train.batch",
         "epochs, steps, batch, accumulate,"},
        {"batch: 32", "lr: 0.1", "unknown key 'lr'; use train.optimizer.adam.lr", "plateau\n"},
        {"batch: 32", "btach: 32", "unknown key 'btach'; did you mean 'batch'?\n", "plateau\n"},
        {"seed: 3", "learning_rate: 0.1", "use train.optimizer.adam.lr (an option", "output\n"},
        {"seed: 3", "epochs: 3", "it belongs to section train: use train.epochs\n", "output\n"},
        {"seed: 3", "num_workers: 2", "use data.workers\n", "name, seed, data, model"},
        {"seed: 3", "val_split: 0.1", "use data.validate", "name, seed, data, model"},
        {"seed: 3", "tokenizer: bpe", "other tokenizers", "name, seed, data, model"},
        {"dense: 10", "Dense: 10", "unknown layer 'Dense'; did you mean 'dense'?\n", "lenet, "},
        {"dense: 10", "nn.Linear: 10", "unknown layer 'nn.Linear'; use dense\n",
         "tabular, autoencoder\n"},
        {"dense: 10", "Conv2D: 10", "did you mean 'conv2d'?\n", "tabular, autoencoder\n"},
        {"dense: 10", "ReLU", "use activation (as in activation: relu, or act: relu",
         "tabular, autoencoder\n"},
        {"dense: 10", "SimpleRNN: 10", "use rnn\n", "tabular, autoencoder\n"},
        {"dense: 10", "dense: {units: [64, 10]}",
         "is a list, but must be an integer; for several layers use mlp: [128, 10]", ""},
        {"dense: 10", "dense: {out_features: 10}", "unknown key 'out_features'; use units\n",
         "possible: units, act, no_bias"},
        {"dense: 10", "conv2d: {out_features: 10}", "unknown key 'out_features'\n",
         "possible: filters, kernel"},
        {"dense: 10", "dense: 10\n    act: relu", "'act' is a key of dense: write it below", ""},
        {"act: relu", "act: ReLU", "'ReLU' is unknown; did you mean 'relu'?", ""},
        {"act: relu", "act: swish", "'swish' is unknown; use silu", ""},
        {"act: relu", "activation: relu", "unknown key 'activation'; use act\n", "device\n"},
        {"loss: cross_entropy", "loss: CrossEntropyLoss", "use cross_entropy\n",
         "mae, huber, kl_divergence,"},
        {"loss: cross_entropy", "loss: categorical_crossentropy", "use cross_entropy\n", "msle\n"},
        {"{adam: {lr: 1e-3}}", "Adam", "did you mean 'adam'?\n", "adagrad, lion, adadelta,"},
        {"{adam: {lr: 1e-3}}", "{adam: {learning_rate: 1}}", "'learning_rate'; use lr\n",
         "possible: lr, beta1"},
        {"{adam: {lr: 1e-3}}", "{name: adam, lr: 1e-3}", "the optimizer's name is the key", ""},
        {"{adam: {lr: 1e-3}}", "{adam: , lr: 1e-3}", "'lr' is a key of adam: write it below", ""},
        {"[accuracy]", "[acc]", "unknown metric 'acc'; use accuracy\n", "confusion\n"},
    };
    test_need_yaml();
    for (int i = 0; i < TTI_COUNT(rows); i++) {
        write_with(rows[i].old, rows[i].new);
        CHECK_INT(command_run("train m.yaml --dry-run --quiet"), 3);
        CHECK_HAS(command_err, rows[i].message);
        CHECK_HAS(command_err, rows[i].list);
        CHECK(command_count(command_err, "tutti: error: m.yaml:") == 1);
    }
}

TEST(words_of_other_frameworks_as_flags)
{
    static const char *const rows[][2] = {
        {"--epoch 3", "unknown flag --epoch; use --epochs\n"},
        {"--batch-size 3", "unknown flag --batch-size; use --batch\n"},
        {"--batch_size=3", "unknown flag --batch_size; use --batch\n"},
        {"--learning-rate 3", "unknown flag --learning-rate; use --lr\n"},
        {"--num-workers 3", "unknown flag --num-workers; use --set data.workers=VALUE\n"},
        {"--steps 3", "tutti train has no flag --steps; use --set train.steps=VALUE\n"},
        {"--optimizer adam", "use --set train.optimizer=VALUE\n"},
        {"--gpus 2", "use --devices\n"},
        {"--verbose", "use --level info\n"},
        {"--config m.yaml", "the job file is given without a flag: tutti train job.yaml\n"},
        {"--Resume", "did you mean --resume?\n"},
        {"--zzzz", "unknown flag --zzzz\n  possible: --json, "},
        {"--strategy ddp", "--strategy: 'ddp' is unknown; did you mean 'mirrored'?\n"},
        {"--lr fast", "--lr: 'fast' is not a number"},
        {"--lr -1", "--lr: '-1' is not a number"},
        {"--epochs 0", "--epochs: 0 is not between 1 and"},
    };
    for (int i = 0; i < TTI_COUNT(rows); i++) {
        char line[128];
        snprintf(line, sizeof(line), "train m.yaml %s", rows[i][0]);
        CHECK_INT(command_run(line), 2);
        CHECK_HAS(command_err, rows[i][1]);
    }
}

TEST(help_knows_words_of_other_frameworks)
{
    command_ok("help Linear");
    CHECK_STR(command_out, "Linear as a layer: use dense\n  in C: tt_layer_dense()\n");
    command_ok("help CrossEntropyLoss");
    CHECK_HAS(command_out, "use cross_entropy\n  in C: TT_CROSS_ENTROPY\n");
    command_ok("help concatenate");
    CHECK_HAS(command_out, "tt_layer_concat()");
    command_ok("help batch_size");
    CHECK_HAS(command_out, "batch_size as a key: use train.batch");
}

// The flags are the keys: the run keeps them, and the weights are those of a job that has them.
TEST(common_flags_set_the_keys)
{
    char flags[64], keys[64];
    test_need_yaml();
    command_write("small.yaml", command_small_job);
    command_ok("train small.yaml --json --epochs 2 --batch 64 --lr 0.02 --run a");
    command_hash(command_out, flags);
    command_ok("train small.yaml --json --run b --set train.epochs=2 --set train.batch=64 --set "
               "train.optimizer.adam.lr=0.02");
    command_hash(command_out, keys);
    CHECK_STR(flags, keys);
    command_read("a/job.yaml", command_out, sizeof(command_out));
    CHECK_HAS(command_out, "epochs: 2\n");
    CHECK_HAS(command_out, "batch: 64\n");
    CHECK_HAS(command_out, "lr: 0.02\n");
    // Where the job counts steps, the flag still counts epochs.
    command_ok("train small.yaml --epochs 1 --run c --set train.epochs=0 --set train.steps=5");
    CHECK_HAS(command_out, "epoch 1/1 ");
    // The optimizer is the job's, in whatever form, or the default one.
    static const char *const forms[][2] = {
        {"optimizer: lion", "lion:\n      lr: 0.5\n"},
        {"optimizer: {sgd: }", "sgd:\n      lr: 0.5\n"},
        {"optimizer: {adamw: {weight_decay: 0.1}}", "adamw:\n      lr: 0.5\n"},
        {"nan: stop", "sgd:\n      lr: 0.5\n"}};
    for (int i = 0; i < TTI_COUNT(forms); i++) {
        write_with("optimizer: {adam: {lr: 1e-3}}", forms[i][0]);
        command_ok("train m.yaml --dry-run --lr 0.5");
        CHECK_HAS(command_out, forms[i][1]);
    }
}
