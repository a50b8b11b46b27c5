/*
 * snapshot.c - a model's variables as a list of tensors, and such a list back into them.
 *
 * Weights are variables of the inference graph. What else the training graph has (moments, moving
 * averages) is the optimizer's; its variables are those that no weight is named like.
 */
#include "base/ctx.h"
#include "run/run.h"
#include "save/card.h"
#include "save/fitting.h"
#include <stdlib.h>
#include <string.h>

static int by_name(const void *a, const void *b)
{
    return strcmp(((const tti_slot *)a)->name, ((const tti_slot *)b)->name);
}

static int64_t count_variables(const tt_graph *g)
{
    int64_t n = 0;
    for (int64_t i = 0; g != NULL && i < g->n_nodes; i++)
        n += g->nodes[i]->op == &tti_op_variable;
    return n;
}

// Adds the training graph's variables that are no weights behind the n weights in slots.
static tt_status add_others(tt_model *m, tt_graph *g, tti_slot *slots, int64_t *n)
{
    int64_t n_weights = *n;
    tti_slot *sorted = tti_calloc(m->ctx, (size_t)n_weights + 1, sizeof(*sorted));
    if (sorted == NULL)
        return TT_ENOMEM;
    memcpy(sorted, slots, sizeof(*slots) * (size_t)n_weights);
    qsort(sorted, (size_t)n_weights, sizeof(*sorted), by_name);
    for (int64_t i = 0; i < g->n_nodes; i++) {
        tt_node *node = g->nodes[i];
        tti_slot slot = {node->name, tt_model_get_session(m), node->out};
        if (node->op == &tti_op_variable &&
            bsearch(&slot, sorted, (size_t)n_weights, sizeof(slot), by_name) == NULL)
            slots[(*n)++] = slot;
    }
    tti_free(m->ctx, sorted);
    qsort(slots + n_weights, (size_t)(*n - n_weights), sizeof(*slots), by_name);
    return TT_OK;
}

tt_status tti_model_slots(tt_model *m, tti_slot **out, int64_t *n_weights, int64_t *n)
{
    tt_graph *g = tt_model_get_train_graph(m);
    tt_session *session = tti_model_session(m);
    if (session == NULL)
        return tt_status_of(m->ctx);
    int64_t most = m->n_weights + count_variables(g);
    tti_slot *slots = tti_calloc(m->ctx, (size_t)most + 1, sizeof(*slots));
    if (slots == NULL)
        return TT_ENOMEM;
    for (int64_t i = 0; i < m->n_weights; i++)
        slots[i] = (tti_slot){m->weights[i].name, session, m->weights[i].var};
    int64_t count = m->n_weights;
    tt_status st = g == NULL ? TT_OK : add_others(m, g, slots, &count);
    if (st != TT_OK) {
        tti_free(m->ctx, slots);
        return st;
    }
    *out = slots;
    *n_weights = m->n_weights;
    *n = count;
    return TT_OK;
}

// Tensors point to the variables' own memory; of those not in the host's, to *room.
static tt_status fill_tensors(tt_ctx *ctx, const tti_slot *slots, int64_t n, tti_named *out,
                              char **room)
{
    size_t away = 0;
    for (int64_t i = 0; i < n; i++) {
        tti_variable *v;
        TT_TRY(tti_session_variable(slots[i].session, slots[i].var->node, &v));
        out[i] =
            (tti_named){.name = v->name, .dtype = v->dtype, .shape = v->shape, .bytes = v->bytes};
        away += tti_variable_here(v) == NULL ? v->bytes : 0;
    }
    *room = away == 0 ? NULL : tti_alloc(ctx, away);
    if (away > 0 && *room == NULL)
        return TT_ENOMEM;
    char *at = *room;
    for (int64_t i = 0; i < n; i++) {
        tti_variable *v;
        TT_TRY(tti_session_variable(slots[i].session, slots[i].var->node, &v));
        out[i].data = tti_variable_here(v);
        if (out[i].data != NULL)
            continue;
        out[i].data = at;
        TT_TRY(tti_variable_read(v, ctx, at));
        at += v->bytes;
    }
    return TT_OK;
}

tt_status tti_model_snapshot(tt_model *m, tti_snapshot *out)
{
    tti_slot *slots;
    int64_t n_weights, n;
    TT_TRY(tti_model_slots(m, &slots, &n_weights, &n));
    tti_named *tensors = tti_calloc(m->ctx, (size_t)n + 1, sizeof(*tensors));
    char *room = NULL;
    tt_status st = tensors == NULL ? TT_ENOMEM : fill_tensors(m->ctx, slots, n, tensors, &room);
    tti_free(m->ctx, slots);
    if (st != TT_OK) {
        tti_free(m->ctx, room);
        tti_free(m->ctx, tensors);
        return st;
    }
    memset(out, 0, sizeof(*out));
    out->card = tti_card_print(m);
    out->state.lanes = m->ctx->top.lanes;
    out->state.seed = m->ctx->seed;
    out->state.arithmetic = tti_arithmetic_of(m->ctx);
    tti_bits_of(m->ctx, out->state.gpu);
    out->state.lr_factor = 1;
    out->n_weights = n_weights;
    out->n = n;
    out->tensors = tensors;
    out->memory[0] = room;
    if (out->card != NULL)
        return TT_OK;
    tti_snapshot_free(m->ctx, out);
    return TT_ENOMEM;
}

// What follows the last '/' of a state variable's name: "adam_m".
static const char *state_of(const char *name)
{
    const char *slash = strrchr(name, '/');
    return slash != NULL ? slash + 1 : "";
}

// The optimizer that keeps such a state; NULL: no optimizer does.
static const char *keeper(const char *state)
{
    static const char *const keepers[][2] = {
        {"adam_m", "adam or adamw"},
        {"adam_v", "adam or adamw"},
        {"rmsprop_square", "rmsprop"},
        {"rmsprop_momentum", "rmsprop with momentum"},
        {"adagrad_sum", "adagrad"},
        {"lion_m", "lion"},
        {"sgd_momentum", "sgd with momentum"},
        {"adadelta_square", "adadelta"},
        {"adamax_m", "adamax"},
        {"nadam_m", "nadam"},
        {"amsgrad_m", "amsgrad"},
        {"ftrl_n", "ftrl"},
        {"lamb_m", "lamb"},
    };
    for (int i = 0; i < TTI_COUNT(keepers); i++)
        if (strcmp(keepers[i][0], state) == 0)
            return keepers[i][1];
    return NULL;
}

// Only sgd without momentum keeps nothing.
static const char *optimizer_of(const tti_named *tensors, const tti_slot *slots, int64_t n)
{
    const char *found = NULL;
    for (int64_t i = 0; i < n; i++) {
        const char *k = keeper(state_of(tensors != NULL ? tensors[i].name : slots[i].name));
        if (found == NULL || (k != NULL && strlen(k) > strlen(found)))
            found = k != NULL ? k : found;
    }
    return found != NULL ? found : "sgd without momentum";
}

// Names of its state tell which optimizer a checkpoint is of.
static tt_status check_optimizer(tt_ctx *ctx, const tti_fitting *f)
{
    const char *theirs = optimizer_of(f->tensors, NULL, f->n_tensors);
    const char *ours = optimizer_of(NULL, f->slots, f->n_slots);
    if (strcmp(theirs, ours) == 0)
        return TT_OK;
    return TT_FAIL(ctx, TT_EINVAL,
                   "%s: the optimizer has changed: the checkpoint is of %s, this training uses %s; "
                   "resume with the same optimizer, or start a new run from these weights with "
                   "init: %s",
                   f->file, theirs, ours, f->file);
}

tt_status tti_model_restore(tt_model *m, const tti_snapshot *s, bool weights_only)
{
    tti_slot *slots;
    int64_t n_weights, n;
    TT_TRY(tti_model_slots(m, &slots, &n_weights, &n));
    tti_fitting f[2] = {{.slots = slots, .n_slots = n_weights},
                        {.slots = slots + n_weights, .n_slots = n - n_weights}};
    int64_t *found = tti_calloc(m->ctx, (size_t)n + 1, sizeof(*found));
    tt_status st = found == NULL ? TT_ENOMEM : TT_OK;
    int parts = weights_only ? 1 : 2;
    for (int i = 0; i < parts && st == TT_OK; i++) {
        f[i].file = s->path != NULL ? s->path : "checkpoint";
        f[i].tensors = s->tensors + (i == 0 ? 0 : s->n_weights);
        f[i].n_tensors = i == 0 ? s->n_weights : s->n - s->n_weights;
        f[i].found = found + (i == 0 ? 0 : n_weights);
        st = i == 0 ? TT_OK : check_optimizer(m->ctx, &f[i]);
        if (st == TT_OK)
            st = tti_fitting_find(m->ctx, &f[i]);
    }
    for (int i = 0; i < parts && st == TT_OK; i++)
        st = tti_fitting_apply(m->ctx, &f[i]);
    tti_free(m->ctx, found);
    tti_free(m->ctx, slots);
    return st;
}
