/*
 * card.c - cards of models (card.h): made, and read from files that may be anything.
 */
#include "save/card.h"
#include "base/ctx.h"
#include "model/describe.h"
#include "save/manifest.h"
#include "save/pt.h"
#include <string.h>
#include <unistd.h>

char *tti_card_print(tt_model *m)
{
    tti_text t = {.ctx = m->ctx};
    tti_text_add(&t, "{\"version\": %d, \"tutti\": ", TTI_CARD_VERSION);
    tti_text_json(&t, TT_VERSION);
    tti_text_add(&t, ", \"lanes\": %d, ", m->ctx->top.lanes);
    tti_model_describe(m, &t);
    if (m->about_data != NULL)
        tti_text_add(&t, ", \"data\": %s", m->about_data);
    if (m->about_train != NULL)
        tti_text_add(&t, ", \"train\": %s", m->about_train);
    tti_text_add(&t, "}");
    return tti_text_take(&t);
}

tt_status tti_card_parse(tt_ctx *ctx, const char *file, const char *text, json_t **out)
{
    json_error_t error;
    json_t *root = json_loads(text, JSON_REJECT_DUPLICATES, &error);
    if (root == NULL)
        return TT_FAIL(ctx, TT_EPARSE, "%s: its description of the model: %s", file, error.text);
    const json_t *version = json_object_get(root, "version");
    if (json_is_integer(version) && json_integer_value(version) == TTI_CARD_VERSION) {
        *out = root;
        return TT_OK;
    }
    const char *by = json_string_value(json_object_get(root, "tutti"));
    tt_status st = TT_FAIL(ctx, TT_EUNSUPPORTED,
                           "%s: its description of the model has version %lld, written by tutti "
                           "%.32s; this one reads %d",
                           file, (long long)json_integer_value(version), by != NULL ? by : "?",
                           TTI_CARD_VERSION);
    json_decref(root);
    return st;
}

const char *tti_card_find(const tti_safetensors *f)
{
    for (char **m = f->metadata; *m != NULL; m += 2)
        if (strcmp(m[0], TTI_CARD) == 0)
            return m[1];
    return NULL;
}

static tt_status looks_like_pt(tt_ctx *ctx, const char *file, bool *out)
{
    char head[8] = {0};
    int fd;
    uint64_t bytes;
    TT_TRY(tti_file_open(ctx, file, &fd, &bytes));
    tt_status st = tti_file_pread(ctx, file, fd, head, (size_t)TTI_MIN(bytes, 8), 0);
    close(fd);
    *out = tti_is_pt(head, (size_t)TTI_MIN(bytes, 8));
    return st;
}

tt_status tti_card_read(tt_ctx *ctx, const char *path, char file[TTI_PATH_MAX], json_t **out)
{
    char found[TTI_PATH_MAX];
    tti_safetensors f;
    *out = NULL;
    TT_TRY(tti_checkpoint_resolve(ctx, path, found));
    if (tti_folder_exists(found))
        TT_TRY(tti_file_join(ctx, file, found, tti_checkpoint_files[TTI_FILE_WEIGHTS]));
    else
        memcpy(file, found, sizeof(found));
    bool is_pt = false;
    TT_TRY(looks_like_pt(ctx, file, &is_pt));
    if (is_pt)
        return TT_OK;
    TT_TRY(tti_safetensors_open(ctx, file, &f));
    const char *text = tti_card_find(&f);
    tt_status st = text == NULL ? TT_OK : tti_card_parse(ctx, file, text, out);
    tti_safetensors_close(&f);
    return st;
}
