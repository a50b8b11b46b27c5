/*
 * use_load.c - tt_model_load(): a whole model of a card and its weights.
 */
#include "base/ctx.h"
#include "model/describe.h"
#include "save/card.h"
#include "train/loss.h"
#include "train/use.h"
#include <string.h>

static char *note_of(tt_ctx *ctx, const json_t *card, const char *key)
{
    const json_t *o = json_object_get(card, key);
    char *text = json_is_object(o) ? json_dumps(o, 0) : NULL;
    char *own = text != NULL ? tti_strdup(ctx, text) : NULL;
    free(text);
    return own;
}

tt_status tti_model_of_card(tt_ctx *ctx, const char *file, const json_t *card, tt_model **out)
{
    tt_model *m = NULL;
    TT_TRY(tti_model_of_json(ctx, file, card, &m));
    m->about_data = note_of(ctx, card, "data");
    m->about_train = note_of(ctx, card, "train");
    if (tti_use_get(m) == NULL) {
        tt_model_free(m);
        return tt_status_of(ctx);
    }
    *out = m;
    return TT_OK;
}

tt_model *tt_model_load(tt_ctx *ctx, const char *path)
{
    char file[TTI_PATH_MAX];
    json_t *card = NULL;
    tt_model *m = NULL;
    if (tti_is_stuck(ctx))
        return NULL;
    if (path == NULL || path[0] == '\0') {
        (void)TT_FAIL(ctx, TT_EINVAL, "model_load: no path is given");
        return NULL;
    }
    tt_status st = tti_card_read(ctx, path, file, &card);
    if (st == TT_OK && card == NULL)
        st = TT_FAIL(
            ctx, TT_EUNSUPPORTED,
            "%s holds only weights, not a model: build the model and load them with tt_load()",
            file);
    if (st == TT_OK)
        st = tti_model_of_card(ctx, file, card, &m);
    json_decref(card);
    if (st == TT_OK && tt_load(m, path) == TT_OK)
        return m;
    tt_model_free(m);
    return NULL;
}

// ---- compiling -------------------------------------------------------------------------------

static const char *or_null(const char *s)
{
    return s != NULL && s[0] != '\0' ? s : NULL;
}

static tt_status read_loss(tt_model *m, const json_t *o, tt_loss *out)
{
    const char *kind = json_string_value(json_object_get(o, "kind"));
    int number = kind != NULL ? tti_loss_find(kind) : -1;
    if (number < 0)
        return TT_FAIL(
            m->ctx, TT_EUNSUPPORTED,
            "the model was trained with a program's own loss; compile it in that program");
    *out = *tt_loss();
    TT_TRY(tti_options_of_json(m->ctx, "the model", "loss", tti_loss_options,
                               json_object_get(o, "options"), out));
    out->kind = (tt_loss_kind)number;
    out->output = or_null(out->output);
    out->target = or_null(out->target);
    out->sample_weight = or_null(out->sample_weight);
    out->class_weight = or_null(out->class_weight);
    return TT_OK;
}

tt_status tti_use_compile_opts(tt_model *m, tt_compile_opts *out, tt_loss losses[TT_MAX_LOSSES])
{
    const tti_use *u = tti_use_get(m);
    if (u == NULL)
        return tt_status_of(m->ctx);
    const json_t *list = json_object_get(u->train, "losses"),
                 *metrics = json_object_get(u->train, "metrics");
    *out = (tt_compile_opts){.opts_size = sizeof(*out)};
    if (json_array_size(list) < 1 || json_array_size(list) > TT_MAX_LOSSES)
        return TT_FAIL(m->ctx, TT_EINVAL,
                       "the model does not say which loss it was trained with; call tt_compile()");
    for (size_t i = 0; i < json_array_size(list); i++) {
        TT_TRY(read_loss(m, json_array_get(list, i), &losses[i]));
        out->losses[i] = &losses[i];
    }
    for (size_t i = 0; i < json_array_size(metrics); i++) {
        const char *name = json_string_value(json_array_get(metrics, i));
        const tti_metric_def *def = name != NULL ? tti_metric_find(name) : NULL;
        if (def != NULL)
            out->metrics |= (int)def->bit;
        else if (name != NULL)
            TT_LOG(m->ctx, TT_WARN,
                   "the metric '%s' was defined by the program that trained the model and is left "
                   "out; that program can give it to tt_compile() again",
                   name);
    }
    out->top_k = (int)json_integer_value(json_object_get(u->train, "top_k"));
    out->thresholds = (int)json_integer_value(json_object_get(u->train, "thresholds"));
    out->threshold = json_number_value(json_object_get(u->train, "threshold"));
    out->dense_targets = json_is_true(json_object_get(u->train, "dense_targets"));
    const char *type = json_string_value(json_object_get(u->train, "target_type"));
    return type == NULL ? TT_OK : tti_parse_dtype(m->ctx, type, &out->target_dtype);
}

tt_status tt_model_compile(tt_model *m)
{
    tt_compile_opts o;
    tt_loss losses[TT_MAX_LOSSES];
    if (m == NULL)
        return TT_EINVAL;
    if (tti_is_stuck(m->ctx))
        return tt_status_of(m->ctx);
    TT_TRY(tti_use_compile_opts(m, &o, losses));
    return tt_compile_with(m, &o);
}
