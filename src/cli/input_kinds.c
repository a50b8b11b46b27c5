/*
 * input_kinds.c - files for models that were trained on image files, JSON lines or TFRecord
 * (input.h): read as the training data was, which the model's card says.
 */
#include "base/file.h"
#include "cli/input.h"
#include "data/csv.h"
#include "data/shards.h"
#include <string.h>

// ---- images ----------------------------------------------------------------------------------

static tt_status images_about(tt_ctx *ctx, const json_t *o, tti_images_about *out)
{
    const json_t *size = json_object_get(o, "size");
    int64_t high = json_integer_value(json_array_get(size, 0));
    int64_t wide = json_integer_value(json_array_get(size, 1));
    int64_t channels = json_integer_value(json_object_get(o, "channels"));
    int64_t fit = json_integer_value(json_object_get(o, "fit"));
    int64_t most = json_integer_value(json_object_get(o, "max_pixels"));
    if (high < 1 || wide < 1 || high > 65535 || wide > 65535 || (channels != 1 && channels != 3) ||
        fit < 0 || fit > TT_IMAGES_PAD || most < 1)
        return TT_FAIL(ctx, TT_EPARSE, "the model's description of its images is not valid");
    *out = (tti_images_about){.high = (int)high,
                              .wide = (int)wide,
                              .channels = (int)channels,
                              .fit = (tt_images_fit)fit,
                              .scaled = json_is_true(json_object_get(o, "scaled")),
                              .max_pixels = most};
    return TT_OK;
}

static const json_t *about(cli_model *m, const char *key)
{
    const tti_use *use = tti_use_get(m->model);
    return use != NULL ? json_object_get(use->data, key) : NULL;
}

bool cli_input_is_images(cli_model *m)
{
    return about(m, "images") != NULL;
}

tt_status cli_input_images(cli_model *m, char *const *names, int64_t n, tt_data **out)
{
    tti_images_about a;
    TT_TRY(images_about(m->j.ctx, about(m, "images"), &a));
    tt_data *d = tti_images_of_files(m->j.ctx, &a, names, n);
    if (d == NULL)
        return tt_status_of(m->j.ctx);
    tt_status st = tt_model_prepare(m->model, d);
    if (st != TT_OK) {
        tt_data_free(d);
        return st;
    }
    *out = d;
    return TT_OK;
}

// The model's class names, as option words.
static void put_words(cli_model *m, tti_text *words)
{
    const tti_use *use = tti_use_get(m->model);
    const json_t *names = use->n_fields > 1 ? use->fields[1].words : NULL;
    for (size_t i = 0; i < json_array_size(names); i++)
        tti_csv_list(words, json_string_value(json_array_get(names, i)));
}

// Folders with the model's classes as their names, or a list with labels.
static tt_data *open_images(cli_model *m, const char *file)
{
    tt_ctx *ctx = m->j.ctx;
    tti_text words = {.ctx = ctx};
    tti_images_about a;
    if (images_about(ctx, about(m, "images"), &a) != TT_OK)
        return NULL;
    put_words(m, &words);
    bool is_folder = tti_folder_exists(file);
    tt_data *d =
        tt_images(ctx, .dir = is_folder ? file : "", .file = is_folder ? "" : file,
                  .size = {a.high, a.wide}, .channels = a.channels, .fit = a.fit,
                  .scaled = a.scaled, .words = words.s != NULL ? words.s : "",
                  .max_megapixels = TTI_MAX(a.max_pixels / 1000000, 1), .no_shuffle = true);
    tti_text_free(&words);
    if (d != NULL && d->source.n_fields < 2) {
        (void)TT_FAIL(ctx, TT_EINVAL,
                      "%s: has no labels; give a folder with one folder per class, or a CSV file "
                      "of paths and labels",
                      file);
        tt_data_free(d);
        d = NULL;
    }
    return d;
}

// ---- JSON lines, TFRecord --------------------------------------------------------------------

static tt_data *open_jsonl(cli_model *m, const char *file, bool with_target)
{
    const json_t *keys = about(m, "keys");
    const tti_use *use = tti_use_get(m->model);
    const char *x = json_string_value(json_object_get(keys, "x"));
    const char *y = json_string_value(json_object_get(keys, "y"));
    bool classes = with_target && use->n_fields > 1 && use->fields[1].field.dtype == TT_I32;
    tti_text words = {.ctx = m->j.ctx};
    if (classes)
        put_words(m, &words);
    tt_data *d = tt_jsonl(m->j.ctx, .file = file, .x = x != NULL ? x : "",
                          .y = with_target && y != NULL ? y : "-", .classes = classes,
                          .words = words.s != NULL ? words.s : "", .no_shuffle = true);
    tti_text_free(&words);
    return d;
}

static tt_data *open_tfrecord(cli_model *m, const char *file, bool with_target)
{
    const json_t *features = about(m, "features");
    const tti_use *use = tti_use_get(m->model);
    const char *x = json_string_value(json_object_get(features, "x"));
    const char *y = json_string_value(json_object_get(features, "y"));
    return tt_tfrecord(m->j.ctx, .file = file, .x = x != NULL ? x : "",
                       .y = with_target && y != NULL ? y : "", .shape = use->fields[0].field.shape,
                       .classes = use->n_fields > 1 ? use->fields[1].field.classes : 0,
                       .no_shuffle = true);
}

bool cli_input_kind(cli_model *m, const char *file, bool with_target, tt_data **out)
{
    if (cli_input_is_images(m))
        *out = open_images(m, file);
    else if (about(m, "keys") != NULL)
        *out = open_jsonl(m, file, with_target);
    else if (about(m, "features") != NULL)
        *out = open_tfrecord(m, file, with_target);
    else
        return false;
    return true;
}
