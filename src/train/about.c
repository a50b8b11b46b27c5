/*
 * about.c - a model's notes on its training, for its card: JSON texts.
 */
#include "train/compile.h"
#include "train/use.h"
#include <string.h>

static void forget(tt_model *m)
{
    if (m->use != NULL)
        m->free_use(m);
}

tt_status tti_note_data(tt_model *m, const tt_data *d)
{
    tti_text t = {.ctx = m->ctx};
    tti_data_describe(d, &t);
    char *s = tti_text_take(&t);
    if (s == NULL)
        return TT_ENOMEM;
    forget(m);
    tti_free(m->ctx, m->about_data);
    m->about_data = s;
    return TT_OK;
}

tt_status tti_note_train(tt_model *m, int64_t batch, int64_t accumulate)
{
    const tti_step *s = m->step;
    tti_text t = {.ctx = m->ctx};
    tti_text_add(&t, "{\"losses\": [");
    for (int i = 0; i < s->n_losses; i++) {
        tt_loss l = s->losses[i];
        const char *kind = tti_loss_name(l.kind);
        if (l.delta == 0)
            l.delta = 1; // its default, where it is used at all
        if (l.gamma == 0)
            l.gamma = tti_or_default(l.gamma, 2);
        tti_text_add(&t, "%s{\"kind\": \"%s\", \"options\": ", i > 0 ? ", " : "", kind);
        tti_options_json(&t, tti_loss_options, &l);
        tti_text_add(&t, "}");
    }
    tti_text_add(&t, "], \"metrics\": [");
    for (int i = 0; i < s->n_metrics; i++)
        tti_text_add(&t, "%s\"%s\"", i > 0 ? ", " : "", s->metrics[i].name);
    tti_text_add(&t, "], \"top_k\": %d, \"dense_targets\": %s, \"target_type\": \"%s\"",
                 s->opts.top_k, s->opts.dense_targets ? "true" : "false",
                 tt_dtype_name(s->opts.target_dtype));
    tti_text_add(&t, ", \"thresholds\": %d, \"threshold\": %.17g", s->opts.thresholds,
                 s->opts.threshold);
    if (batch > 0)
        tti_text_add(&t, ", \"batch\": %lld, \"accumulate\": %lld", (long long)batch,
                     (long long)accumulate);
    tti_text_add(&t, "}");
    char *text = tti_text_take(&t);
    if (text == NULL)
        return TT_ENOMEM;
    forget(m);
    tti_free(m->ctx, m->about_train);
    m->about_train = text;
    return TT_OK;
}
