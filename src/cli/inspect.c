/*
 * inspect.c - tutti inspect: what is in a safetensors file, a checkpoint or a run's folder. Every
 * checksum of a checkpoint is compared on the way.
 */
#include "cli/cli.h"
#include "save/card.h"
#include "save/manifest.h"
#include "save/pt.h"
#include "train/use.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static void add_bytes(tti_text *t, uint64_t bytes)
{
    static const char *const units[] = {"bytes", "KiB", "MiB", "GiB", "TiB"};
    double v = (double)bytes;
    int u = 0;
    for (; v >= 1024 && u < 4; u++)
        v /= 1024;
    tti_text_add(t, u == 0 ? "%.0f %s" : "%.1f %s", v, units[u]);
}

#define SHOWN 60 // characters of a name or a metadata text

// A text from a file, for a terminal: no control characters, not too long.
static const char *clean(const char *s, char out[SHOWN + 4])
{
    size_t n = 0;
    while (*s != '\0' && n + 4 <= SHOWN) {
        size_t length = (size_t)TTI_MAX(tti_utf8_length(s, 4), 1);
        bool control = (unsigned char)*s < 0x20 || *s == 0x7F;
        memcpy(out + n, control ? "?" : s, length);
        n += length;
        s += length;
    }
    memcpy(out + n, "...", 4);
    if (*s == '\0')
        out[n] = '\0';
    return out;
}

static const char *shape_text(const tti_safetensors *f, int64_t i, char *out, size_t room)
{
    size_t n = 0;
    out[n++] = '[';
    for (int64_t d = f->first_dim[i]; d < f->first_dim[i + 1] && n + 24 < room; d++)
        n += (size_t)snprintf(out + n, room - n, "%s%lld", d > f->first_dim[i] ? ", " : "",
                              (long long)f->dims[d]);
    snprintf(out + n, room - n, "]");
    return out;
}

// ---- tables ----------------------------------------------------------------------------------

static void print_table(tti_text *t, const char *file, const tti_safetensors *f)
{
    char shape[64 * 24], name[SHOWN + 4], value[SHOWN + 4];
    int name_width = 4, shape_width = 5;
    uint64_t bytes = 0;
    for (int64_t i = 0; i < f->n; i++) {
        int n = (int)strlen(clean(f->tensors[i].name, name));
        int s = (int)strlen(shape_text(f, i, shape, sizeof(shape)));
        name_width = TTI_MAX(name_width, n);
        shape_width = TTI_MAX(shape_width, TTI_MIN(s, 40));
        bytes += f->tensors[i].bytes;
    }
    tti_text_add(t, "%s: %lld tensor%s, ", file, (long long)f->n, f->n == 1 ? "" : "s");
    add_bytes(t, bytes);
    tti_text_add(t, "\n");
    for (char **m = f->metadata; *m != NULL; m += 2)
        if (strcmp(m[0], TTI_CARD) != 0) // shown below
            tti_text_add(t, "  metadata: %s = %s\n", clean(m[0], name), clean(m[1], value));
    if (f->n > 0)
        tti_text_add(t, "  %-*s  %-7s  %-*s  %12s\n", name_width, "name", "type", shape_width,
                     "shape", "bytes");
    for (int64_t i = 0; i < f->n; i++)
        tti_text_add(t, "  %-*s  %-7s  %-*s  %12zu\n", name_width, clean(f->tensors[i].name, name),
                     f->types[i], shape_width, shape_text(f, i, shape, sizeof(shape)),
                     f->tensors[i].bytes);
}

static void print_table_json(tti_text *t, const char *file, const tti_safetensors *f)
{
    char shape[64 * 24];
    tti_text_add(t, "{\"file\": ");
    tti_text_json(t, file);
    tti_text_add(t, ", \"bytes\": %llu, \"metadata\": {", (unsigned long long)f->file_bytes);
    for (char **m = f->metadata; *m != NULL; m += 2) {
        tti_text_add(t, "%s", m > f->metadata ? ", " : "");
        tti_text_json(t, m[0]);
        tti_text_add(t, ": ");
        tti_text_json(t, m[1]);
    }
    tti_text_add(t, "}, \"tensors\": [");
    for (int64_t i = 0; i < f->n; i++) {
        tti_text_add(t, "%s\n  {\"name\": ", i > 0 ? "," : "");
        tti_text_json(t, f->tensors[i].name);
        tti_text_add(t, ", \"type\": \"%s\", \"shape\": %s, \"bytes\": %zu, \"offset\": %llu}",
                     f->types[i], shape_text(f, i, shape, sizeof(shape)), f->tensors[i].bytes,
                     (unsigned long long)f->offsets[i]);
    }
    tti_text_add(t, "]}");
}

// ---- the model that is in it -----------------------------------------------------------------

#define CLASSES_SHOWN 12

static void print_port(tti_text *t, const char *what, const tt_port *p)
{
    char shape[TT_SHAPE_TEXT];
    tti_text_add(t, "  %-7s %s  %s %s", what, p->name, tt_dtype_name(p->dtype),
                 tt_shape_text(&p->shape, shape));
}

static void print_classes(tti_text *t, tt_model *m, int i, int64_t n)
{
    char name[SHOWN + 4];
    if (tt_model_class(m, i, 0) == NULL) {
        tti_text_add(t, ", %lld classes", (long long)n);
        return;
    }
    for (int64_t k = 0; k < TTI_MIN(n, CLASSES_SHOWN); k++)
        tti_text_add(t, "%s%s", k == 0 ? ", classes: " : "; ",
                     clean(tt_model_class(m, i, k), name));
    if (n > CLASSES_SHOWN)
        tti_text_add(t, "; and %lld more", (long long)(n - CLASSES_SHOWN));
}

// Of a file that says which model its weights are; one that cannot be built is no error here.
static void print_model(tt_ctx *ctx, const char *file, const tti_safetensors *f, tti_text *t)
{
    tt_model *m = NULL;
    json_t *card = NULL;
    tt_port p;
    const char *text = tti_card_find(f);
    if (text == NULL || tti_card_parse(ctx, file, text, &card) != TT_OK ||
        tti_model_of_card(ctx, file, card, &m) != TT_OK) {
        tt_clear_error(ctx);
        json_decref(card);
        return;
    }
    const char *by = json_string_value(json_object_get(card, "tutti"));
    tti_text_add(t, "  a model of %lld layers, %lld parameters, written by tutti %.32s\n",
                 (long long)json_array_size(json_object_get(card, "layers")),
                 (long long)tt_model_parameters(m), by != NULL ? by : "?");
    for (int i = 0; i < tt_model_input_count(m); i++)
        if (tt_model_input(m, i, &p) == TT_OK) {
            print_port(t, "input", &p);
            tti_text_add(t, "\n");
        }
    for (int i = 0; i < tt_model_output_count(m); i++)
        if (tt_model_output(m, i, &p) == TT_OK) {
            print_port(t, "output", &p);
            if (p.meaning == TT_MEANS_CLASSES)
                print_classes(t, m, i, tt_shape_count(&p.shape));
            tti_text_add(t, "\n");
        }
    tt_model_free(m);
    json_decref(card);
}

// A file of safetensors, or of torch.save().
static tt_status open_table(tt_ctx *ctx, const char *path, tti_safetensors *f, char **data)
{
    char head[8] = {0};
    int fd;
    uint64_t bytes;
    TT_TRY(tti_file_open(ctx, path, &fd, &bytes));
    tt_status st = tti_file_pread(ctx, path, fd, head, (size_t)TTI_MIN(bytes, 8), 0);
    close(fd);
    TT_TRY(st);
    if (tti_is_pt(head, (size_t)TTI_MIN(bytes, 8)))
        return tti_pt_read(ctx, path, f, data);
    return tti_safetensors_open(ctx, path, f);
}

static tt_status inspect_file(tt_ctx *ctx, const char *path, const char *name, bool json,
                              tti_text *t)
{
    tti_safetensors f;
    char *data = NULL;
    TT_TRY(open_table(ctx, path, &f, &data));
    (json ? print_table_json : print_table)(t, name, &f);
    if (!json)
        print_model(ctx, name, &f, t);
    tti_safetensors_close(&f);
    tti_free(ctx, data);
    return TT_OK;
}

// ---- checkpoints -----------------------------------------------------------------------------

static void print_state(tti_text *t, const char *path, const tti_manifest *m)
{
    const tti_train_state *s = &m->state;
    tti_text_add(t, "%s: a checkpoint\n  step        %lld\n", path, (long long)s->step);
    if (s->cursor > 0 && s->count > 0)
        tti_text_add(t, "  records     %lld, in epoch %lld: %lld of %lld\n", (long long)s->cursor,
                     (long long)(s->cursor / s->count + 1), (long long)(s->cursor % s->count),
                     (long long)s->count);
    if (s->batch > 0)
        tti_text_add(t, "  batch       %lld, %lld batch%s per update\n", (long long)s->batch,
                     (long long)s->accumulate, s->accumulate == 1 ? "" : "es");
    tti_text_add(t, "  lanes       %d\n  seed        %llu\n", s->lanes,
                 (unsigned long long)s->seed);
    if (s->skipped > 0)
        tti_text_add(t, "  skipped     %lld steps whose loss or gradients were not finite\n",
                     (long long)s->skipped);
    if (s->best.has_best)
        tti_text_add(t, "  best value  %.9g\n", s->best.best);
    tti_text_add(t, "  written by  tutti %s, arithmetic %d\n", m->tutti, s->arithmetic);
    if (s->gpu[0] != '\0')
        tti_text_add(t, "  on          %s\n", s->gpu);
    for (int i = 0; i < TTI_N_FILES; i++) {
        char hash[TTI_HASH_TEXT];
        tti_text_add(t, "  %-22s xxh3_128 %s, verified\n", tti_checkpoint_files[i],
                     tti_hash_text(m->files[i].hash, hash));
    }
}

static void print_state_json(tti_text *t, const char *path, const tti_manifest *m)
{
    const tti_train_state *s = &m->state;
    tti_text_add(t, "{\"checkpoint\": ");
    tti_text_json(t, path);
    tti_text_add(t,
                 ", \"step\": %lld, \"cursor\": %lld, \"count\": %lld, \"batch\": %lld, "
                 "\"accumulate\": %lld, \"lanes\": %d, \"seed\": \"%llu\", \"arithmetic\": %d, "
                 "\"skipped\": %lld, \"tutti\": ",
                 (long long)s->step, (long long)s->cursor, (long long)s->count, (long long)s->batch,
                 (long long)s->accumulate, s->lanes, (unsigned long long)s->seed, s->arithmetic,
                 (long long)s->skipped);
    tti_text_json(t, m->tutti);
    if (s->gpu[0] != '\0') {
        tti_text_add(t, ", \"gpu\": ");
        tti_text_json(t, s->gpu);
    }
    tti_text_add(t, ", \"xxh3_128\": {");
    for (int i = 0; i < TTI_N_FILES; i++) {
        char hash[TTI_HASH_TEXT];
        tti_text_add(t, "%s\"%s\": \"%s\"", i > 0 ? ", " : "", tti_checkpoint_files[i],
                     tti_hash_text(m->files[i].hash, hash));
    }
    tti_text_add(t, "}, \"job\": ");
    if (s->job != NULL)
        tti_text_json(t, s->job);
    else
        tti_text_add(t, "null");
}

static tt_status print_checkpoint(tt_ctx *ctx, const char *path, bool json, const tti_manifest *m,
                                  tti_text *t)
{
    char file[TTI_PATH_MAX];
    (json ? print_state_json : print_state)(t, path, m);
    for (int i = 0; i < TTI_N_FILES; i++) {
        tti_text_add(t, "%s", !json ? "\n" : i == 0 ? ", \"files\": [" : ", ");
        TT_TRY(tti_file_join(ctx, file, path, tti_checkpoint_files[i]));
        TT_TRY(inspect_file(ctx, file, tti_checkpoint_files[i], json, t));
    }
    tti_text_add(t, "%s", json ? "]}" : "");
    return TT_OK;
}

// Reads all of it, so that every checksum is compared.
static tt_status verify(tt_ctx *ctx, const char *path)
{
    tti_snapshot *s = tti_calloc(ctx, 1, sizeof(*s));
    if (s == NULL)
        return TT_ENOMEM;
    tt_status st = tti_checkpoint_read(ctx, path, s);
    if (st == TT_OK)
        tti_snapshot_free(ctx, s);
    tti_free(ctx, s);
    return st;
}

static tt_status inspect_checkpoint(tt_ctx *ctx, const char *path, bool json, tti_text *t)
{
    TT_TRY(verify(ctx, path));
    tti_manifest *m = tti_calloc(ctx, 1, sizeof(*m));
    tt_status st = m == NULL ? TT_ENOMEM : tti_manifest_of(ctx, path, m);
    if (st == TT_OK) {
        st = print_checkpoint(ctx, path, json, m, t);
        tti_free(ctx, m->state.job);
    }
    tti_free(ctx, m);
    return st;
}

// ---- folders of checkpoints ------------------------------------------------------------------

static int newest_first(const void *a, const void *b)
{
    int64_t x = tti_checkpoint_step(*(char *const *)a), y = tti_checkpoint_step(*(char *const *)b);
    return x < y ? 1 : x > y ? -1 : 0;
}

// One line for a checkpoint; a damaged one is told and counted.
static tt_status list_one(tt_ctx *ctx, const char *folder, const char *name, const char *best,
                          bool json, tti_text *t, int *damaged)
{
    char path[TTI_PATH_MAX], why[1024] = "";
    TT_TRY(tti_file_join(ctx, path, folder, name));
    if (verify(ctx, path) != TT_OK) {
        snprintf(why, sizeof(why), "%s", tt_last_error(ctx).message);
        tt_clear_error(ctx);
        ++*damaged;
    }
    bool is_best = strcmp(path, best) == 0;
    if (json) {
        tti_text_add(t, "{\"step\": %lld, \"best\": %s, \"damaged\": ",
                     (long long)tti_checkpoint_step(name), is_best ? "true" : "false");
        if (why[0] != '\0')
            tti_text_json(t, why);
        else
            tti_text_add(t, "null");
        tti_text_add(t, ", \"path\": ");
        tti_text_json(t, path);
        tti_text_add(t, "}");
    } else {
        tti_text_add(t, "  %-16s %s%s%s\n", name, why[0] != '\0' ? "damaged: " : "complete", why,
                     is_best ? ", best" : "");
    }
    return TT_OK;
}

static tt_status inspect_folder(tt_ctx *ctx, const char *folder, bool json, tti_text *t,
                                int *damaged)
{
    char **names, best[TTI_PATH_MAX];
    int64_t n, listed = 0;
    TT_TRY(tti_checkpoint_best(ctx, folder, best));
    TT_TRY(tti_folder_list(ctx, folder, &names, &n));
    if (n > 1)
        qsort(names, (size_t)n, sizeof(*names), newest_first);
    tt_status st = TT_OK;
    tti_text_add(t, "%s", json ? "{\"folder\": " : folder);
    if (json)
        tti_text_json(t, folder);
    for (int64_t i = 0; i < n && st == TT_OK && tti_checkpoint_step(names[i]) >= 0; i++) {
        if (listed++ == 0)
            tti_text_add(t, "%s", json ? ", \"checkpoints\": [" : ": checkpoints, newest first\n");
        else
            tti_text_add(t, "%s", json ? ",\n  " : "");
        st = list_one(ctx, folder, names[i], best, json, t, damaged);
    }
    if (st == TT_OK && listed == 0)
        st = TT_FAIL(ctx, TT_EIO, "there is no checkpoint in '%s'", folder);
    tti_text_add(t, "%s", json ? "]}" : "");
    tti_names_free(ctx, names, n);
    return st;
}

// ---- the verb --------------------------------------------------------------------------------

static tt_status inspect(tt_ctx *ctx, const cli_args *args, tti_text *t, int *damaged)
{
    char word[TTI_PATH_MAX], inside[TTI_PATH_MAX];
    TT_TRY(cli_weights_find(ctx, args, args->words[0], word));
    if (tti_file_exists(word))
        return inspect_file(ctx, word, word, args->json, t);
    TT_TRY(tti_file_join(ctx, inside, word, TTI_MANIFEST));
    if (tti_file_exists(inside))
        return inspect_checkpoint(ctx, word, args->json, t);
    TT_TRY(tti_file_join(ctx, inside, word, "checkpoints"));
    return inspect_folder(ctx, tti_folder_exists(inside) ? inside : word, args->json, t, damaged);
}

static int run(const cli_args *args)
{
    tt_ctx *ctx = cli_open(args, "cpu:0");
    if (ctx == NULL)
        return CLI_FAILED;
    tti_text t = {.ctx = ctx};
    int damaged = 0;
    if (inspect(ctx, args, &t, &damaged) == TT_OK) {
        tti_text_add(&t, "%s", args->json ? "\n" : "");
        cli_print_text(&t);
    }
    tti_text_free(&t);
    int rc = cli_close(ctx, NULL);
    return rc == CLI_OK && damaged > 0 ? CLI_FAILED : rc;
}

const cli_verb cli_inspect = {
    .name = "inspect",
    .words = "PATH",
    .summary = "show the contents of a checkpoint, a run or a safetensors file",
    .help =
        "PATH is a safetensors file, a checkpoint, or a run (its folder or name, or the name or\n"
        "file of a job: then its newest run with a checkpoint). For a safetensors file, prints "
        "the\n"
        "name, type, shape and bytes of every tensor; for a checkpoint, also the state of the\n"
        "training; for a run, its checkpoints. Checksums are verified: the exit code is 1 if one\n"
        "is wrong.\n",
    .flags = "json runs",
    .min_words = 1,
    .max_words = 1,
    .run = run,
};
