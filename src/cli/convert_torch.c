/*
 * convert_torch.c - tutti convert --to torch. What of a weight is laid out otherwise depends on its
 * layer, so the model is built of its card.
 */
#include "cli/convert_torch.h"
#include "save/fitting.h"
#include "save/rename.h"
#include <string.h>

typedef struct torch_file {
    tt_ctx *ctx;
    const cli_args *args;
    tt_model *model;
    tti_snapshot snapshot;
    tti_form *forms;
    tti_named *tensors;
    char **names, **data;
    int64_t n;
} torch_file;

static bool is_gpt2(const torch_file *f)
{
    return f->args->map != NULL && tti_map_rules(f->args->map) != f->args->map;
}

// "bn.mean" of a batch norm is "bn.running_mean" there.
static tt_status torch_name(torch_file *f, int64_t i, char out[TTI_RENAME_MAX])
{
    char name[TTI_RENAME_MAX];
    const tti_weight *w = &f->model->weights[i];
    TT_TRY(is_gpt2(f) ? tti_rename_back(f->ctx, tti_map_rules(f->args->map), w->name, name)
                      : tti_rename(f->ctx, f->args->map, w->name, name));
    tti_torch_name_back(w->layer->def, name, out, TTI_RENAME_MAX);
    return TT_OK;
}

static tt_status add(torch_file *f, int64_t i)
{
    char name[TTI_RENAME_MAX];
    tti_named *t = &f->tensors[f->n];
    const tti_form *form = &f->forms[i];
    TT_TRY(torch_name(f, i, name));
    if (f->args->only != NULL && !tti_match(f->args->only, name))
        return TT_OK;
    *t = f->snapshot.tensors[i];
    f->names[f->n] = tti_strdup(f->ctx, name);
    if (f->names[f->n] == NULL)
        return TT_ENOMEM;
    t->name = f->names[f->n];
    if (form->view.rank > 0 && !(is_gpt2(f) && tti_match(TTI_CONV1D, name))) {
        f->data[f->n] = tti_alloc(f->ctx, t->bytes + 1);
        if (f->data[f->n] == NULL)
            return TT_ENOMEM;
        tti_form_give(form, tt_dtype_bytes(t->dtype), t->data, f->data[f->n]);
        t->data = f->data[f->n];
        t->shape = form->file;
    }
    f->n++;
    return TT_OK;
}

static tt_status write_all(torch_file *f, tt_hash *hash)
{
    static const char *const metadata[] = {"format", "pt", NULL};
    size_t room = (size_t)f->model->n_weights + 1;
    TT_TRY(tti_rename_check(f->ctx, tti_map_rules(f->args->map)));
    TT_TRY(tti_model_snapshot(f->model, &f->snapshot));
    TT_TRY(tti_model_forms(f->model, &f->forms));
    f->tensors = tti_calloc(f->ctx, room, sizeof(*f->tensors));
    f->names = tti_calloc(f->ctx, room, sizeof(*f->names));
    f->data = tti_calloc(f->ctx, room, sizeof(*f->data));
    if (f->tensors == NULL || f->names == NULL || f->data == NULL)
        return TT_ENOMEM;
    for (int64_t i = 0; i < f->model->n_weights; i++)
        TT_TRY(add(f, i));
    return tti_safetensors_write(f->ctx, f->args->words[1], f->tensors, f->n, metadata, hash);
}

tt_status cli_convert_to_torch(tt_ctx *ctx, const cli_args *args, const char *path, int64_t *n,
                               tt_hash *hash)
{
    torch_file *f = tti_calloc(ctx, 1, sizeof(*f));
    if (f == NULL)
        return TT_ENOMEM;
    *f = (torch_file){.ctx = ctx, .args = args, .model = tt_model_load(ctx, path)};
    tt_status st = f->model == NULL ? tt_status_of(ctx) : write_all(f, hash);
    *n = f->n;
    for (int64_t i = 0; f->model != NULL && i < f->model->n_weights; i++) {
        tti_free(ctx, f->names != NULL ? f->names[i] : NULL);
        tti_free(ctx, f->data != NULL ? f->data[i] : NULL);
    }
    tti_free(ctx, f->tensors);
    tti_free(ctx, f->names);
    tti_free(ctx, f->data);
    tti_free(ctx, f->forms);
    tti_snapshot_free(ctx, &f->snapshot);
    tt_model_free(f->model);
    tti_free(ctx, f);
    return st;
}
