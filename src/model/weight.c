/*
 * weight.c - the weights of a model: variables named by path, one in each of the two graphs.
 */
#include "base/ctx.h"
#include "model/model.h"
#include <stdio.h>
#include <string.h>

static tti_weight *find(tt_model *m, const char *path)
{
    for (int64_t i = 0; i < m->n_weights; i++)
        if (strcmp(m->weights[i].name, path) == 0)
            return &m->weights[i];
    return NULL;
}

static bool same_shape(const tt_shape *a, const tt_shape *b)
{
    return a->rank == b->rank &&
           (a->rank <= 0 ||
            memcmp(a->dim, b->dim, sizeof(a->dim[0]) * (size_t)TTI_MIN(a->rank, TT_MAX_RANK)) == 0);
}

// Float inputs of 64 bits need weights of 64; all others are kept in f32, which updates can round.
static tt_dtype dtype_of(const tt_build *b)
{
    const tti_layer *l = b->layer;
    return l->n_in > 0 && l->in[0]->dtype == TT_F64 ? TT_F64 : TT_F32;
}

static tt_status check_known(tt_build *b, const tti_weight *w, tt_shape shape)
{
    char here[TT_SHAPE_TEXT], there[TT_SHAPE_TEXT];
    tt_ctx *ctx = b->model->ctx;
    if (w->layer != b->layer->share)
        return TT_FAIL(ctx, TT_EINVAL, "weight '%s' belongs to layer '%s'", w->name,
                       w->layer->name);
    if (!same_shape(&w->var->shape, &shape) || w->var->dtype != dtype_of(b))
        return TT_FAIL(ctx, TT_ESHAPE, "weight '%s' is %s %s in layer '%s' but %s %s here", w->name,
                       tt_dtype_name(w->var->dtype), tt_shape_text(&w->var->shape, there),
                       w->layer->name, tt_dtype_name(dtype_of(b)), tt_shape_text(&shape, here));
    return TT_OK;
}

static tt_tensor *make(tt_build *b, const char *path, tt_shape shape, tt_init init, bool trains)
{
    tt_graph *g = b->graph;
    size_t from = tti_scope_root(g);
    tt_tensor *var = tt_variable(g, .dtype = dtype_of(b), .shape = shape, .init = init,
                                 .name = path, .no_train = !trains);
    tti_scope_back(g, from);
    if (var != NULL && strcmp(var->node->name, path) != 0) {
        (void)TT_FAIL(g->ctx, TT_EINVAL, "the graph already has a node '%s'", path);
        return NULL;
    }
    return var;
}

// A weight that the model does not have yet.
static tt_tensor *add(tt_build *b, const char *path, tt_shape shape, tt_init init, bool trains)
{
    tt_model *m = b->model;
    if (b->layer->share != b->layer) {
        (void)TT_FAIL(m->ctx, TT_EINVAL, "layer '%s' has no weight '%s' to share",
                      b->layer->share->name, path);
        return NULL;
    }
    if (b->training) {
        (void)TT_FAIL(m->ctx, TT_EINVAL,
                      "weight '%s' is only used in training; make it in inference too", path);
        return NULL;
    }
    if (!tti_grow(m->ctx, &m->weights, &m->cap_weights, m->n_weights + 1, sizeof(*m->weights)))
        return NULL;
    tt_tensor *var = make(b, path, shape, init, trains);
    char *name = var == NULL ? NULL : tti_strdup(m->ctx, path);
    if (name == NULL)
        return NULL;
    m->weights[m->n_weights++] =
        (tti_weight){.name = name, .var = var, .trains = trains, .layer = b->layer};
    return var;
}

static tt_tensor *get(tt_build *b, const char *name, tt_shape shape, tt_init init, bool trains)
{
    if (b == NULL || tti_is_stuck(b->model->ctx))
        return NULL;
    tt_model *m = b->model;
    char path[TTI_NAME_MAX];
    if (name == NULL || name[0] == 0 || name[strcspn(name, "/:\" \t\n")] != 0) {
        (void)TT_FAIL(m->ctx, TT_EINVAL, "'%.64s' is not a valid name of a weight",
                      name == NULL ? "" : name);
        return NULL;
    }
    int length = snprintf(path, sizeof(path), "%s.%s", b->layer->share->name, name);
    if (length >= TTI_NAME_MAX) {
        (void)TT_FAIL(m->ctx, TT_EINVAL, "the name of weight '%.64s...' is longer than %d", path,
                      TTI_NAME_MAX - 1);
        return NULL;
    }
    tti_weight *w = find(m, path);
    if (w == NULL)
        return add(b, path, shape, init, trains);
    if (check_known(b, w, shape) != TT_OK)
        return NULL;
    if (!b->training)
        return w->var;
    if (w->train_var == NULL)
        w->train_var = make(b, path, shape, init, trains);
    return w->train_var;
}

tt_tensor *tti_layer_weight(tt_build *b, const char *name, tt_shape shape, tt_init init)
{
    return get(b, name, shape, init, true);
}

tt_tensor *tt_layer_weight(tt_build *b, const char *name, tt_shape shape, tt_init init)
{
    tt_tensor *w = get(b, name, shape, init, true);
    return w == NULL ? NULL : tti_compute(b, w);
}

tt_tensor *tti_layer_state(tt_build *b, const char *name, tt_shape shape, tt_init init)
{
    return get(b, name, shape, init, false);
}

int64_t tt_model_parameters(const tt_model *m)
{
    int64_t n = 0;
    for (int64_t i = 0; m != NULL && i < m->n_weights; i++)
        n += tt_shape_count(&m->weights[i].var->shape);
    return n;
}

int tt_model_weights_sized(const tt_model *m, tt_weight_info *out, int max, size_t size)
{
    if (m == NULL)
        return 0;
    for (int64_t i = 0; out != NULL && i < m->n_weights && i < max; i++) {
        const tti_weight *w = &m->weights[i];
        tt_weight_info info = {w->name, w->var->dtype, w->var->shape, w->trains};
        tti_out_copy((char *)out + (size_t)i * size, size, &info, sizeof(info));
    }
    return (int)m->n_weights;
}
