/*
 * accumulate_loop.c - gradient accumulation by hand: a batch of 100 goes through in 4 micro-batches
 * of whole lanes each; their gradients are combined and applied once. The loop, the
 * setting .accumulate = 4 and the big batch give one hash.
 */
#include <stdio.h>
#include <stdlib.h>
#include <tutti/tutti.h>

enum {
    MICRO = 4,
    STEPS = 20,
    BATCH = 100,
    LANES = 8,
    WEIGHTS = 4
};
static const float lr = 0.1f;

static tt_tensor *add_layers(tt_model *m)
{
    tt_layer_flatten(m);
    tt_layer_dense(m, .units = 64, .act = TT_RELU);
    return tt_layer_dense(m, .units = 10);
}

static tt_hash by_setting(int accumulate)
{
    tt_ctx *ctx = tt_open(.seed = 1, .lanes = LANES);
    tt_data *digits = tt_digits(ctx, .count = 5000, .batch = BATCH / accumulate);
    tt_model *m = tt_sequential(ctx, .input = {28, 28, 1});
    tt_hash hash = {0, 0};
    add_layers(m);
    tt_compile(m, .loss = TT_CROSS_ENTROPY, .optimizer = tt_sgd(.lr = lr, .momentum = 0.9));
    tt_fit(m, digits, .steps = STEPS, .accumulate = accumulate);
    tt_weight_hash(tt_model_get_session(m), &hash); // weights and the optimizer's state
    return tt_close(ctx) == TT_OK ? hash : (tt_hash){0, 0};
}

typedef struct loop {
    tt_ctx *ctx;
    tt_session *session;
    tt_tensor *x, *y, *seed, *grads[WEIGHTS], *sums[WEIGHTS], *updates[WEIGHTS];
    int64_t sizes[WEIGHTS];
    tt_member parts[WEIGHTS][MICRO]; // gradients of each micro-batch, and of which lanes they are
} loop;

static void build(loop *l)
{
    tt_model *m = tt_sequential(l->ctx, .input = {28, 28, 1});
    tt_tensor *logits = add_layers(m), *w[WEIGHTS];
    tt_graph *g = tt_model_get_graph(m);
    l->x = tt_graph_find(g, "x");
    l->y = tt_feed(g, .dtype = TT_I32, .shape = TT_SHAPE(TT_BATCH), .name = "y");
    l->seed = tt_feed(g, .shape = TT_SCALAR, .name = "seed");
    tt_trainable(g, w, WEIGHTS);
    tt_grad(g, tt_sum(g, tt_cross_entropy(g, logits, l->y)), l->seed, WEIGHTS, w, l->grads);
    for (int i = 0; i < WEIGHTS; i++) {
        tt_shape shape = tt_tensor_shape(w[i]);
        l->sizes[i] = tt_shape_count(&shape);
        l->sums[i] = tt_feed(g, .shape = shape); // the combined gradient comes in here
        l->updates[i] = tt_update_sgd(g, w[i], l->sums[i], .momentum = 0.9);
        for (int j = 0; j < MICRO; j++) { // one sum a lane, at most
            l->parts[i][j].out = malloc((size_t)l->sizes[i] * LANES * sizeof(float));
            l->parts[i][j].in = l->parts[i][j].out;
            l->parts[i][j].count = l->sizes[i];
        }
    }
    l->session = tt_session_new(g);
}

static void run_micro_batch(loop *l, const tt_batch_data *b, int j, tt_mean_factors mean)
{
    tt_part p;
    tt_fetch fetches[WEIGHTS];
    if (tt_batch_part(l->ctx, b->rows, j, MICRO, &p) != TT_OK)
        return;
    const float *x = (const float *)b->fields[0] + p.batch.first_row * 28 * 28;
    const int32_t *y = (const int32_t *)b->fields[1] + p.batch.first_row;
    tt_feed_value feeds[] = {{l->x, x, TT_SHAPE(p.rows, 28, 28, 1), TT_F32},
                             {l->y, y, TT_SHAPE(p.rows), TT_I32},
                             {l->seed, &mean.seed, TT_SCALAR, TT_F32}};
    for (int i = 0; i < WEIGHTS; i++) {
        tt_member *part = &l->parts[i][j];
        part->first_lane = p.first_lane;
        part->n_lanes = p.n_lanes;
        fetches[i] =
            (tt_fetch){l->grads[i], part->out, (size_t)(p.n_sums * l->sizes[i]) * sizeof(float)};
    }
    if (p.rows > 0)
        tt_run(l->session, .feeds = feeds, .n_feeds = 3, .fetches = fetches, .n_fetches = WEIGHTS,
               .batch = p.batch);
}

static void update(loop *l, int64_t step, tt_mean_factors mean)
{
    tt_feed_value feeds[WEIGHTS];
    for (int i = 0; i < WEIGHTS; i++) {
        float *sum = l->parts[i][0].out;
        tt_sum_lanes(l->ctx, l->parts[i], MICRO, sum); // in the order of the tree over lanes
        feeds[i] = (tt_feed_value){l->sums[i], sum, tt_tensor_shape(l->sums[i]), TT_F32};
    }
    tt_run(l->session, .feeds = feeds, .n_feeds = WEIGHTS, .targets = l->updates,
           .n_targets = WEIGHTS, .step = step, .lr = lr, .grad_scale = mean.scale);
}

static tt_hash by_hand(void)
{
    loop l = {.ctx = tt_open(.seed = 1, .lanes = LANES)};
    tt_data *digits = tt_digits(l.ctx, .count = 5000, .batch = BATCH);
    tt_batch_data batch;
    tt_hash hash = {0, 0};
    build(&l);
    tt_data_start(digits, 0, 0);
    for (int64_t step = 0; step < STEPS && tt_data_next(digits, &batch) == TT_OK; step++) {
        tt_mean_factors mean = tt_mean_factors_of(batch.rows);
        for (int j = 0; j < MICRO; j++)
            run_micro_batch(&l, &batch, j, mean);
        update(&l, step, mean);
    }
    tt_data_stop(digits);
    tt_weight_hash(l.session, &hash);
    for (int i = 0; i < WEIGHTS * MICRO; i++)
        free(l.parts[i / MICRO][i % MICRO].out);
    return tt_close(l.ctx) == TT_OK ? hash : (tt_hash){0, 0};
}

int main(void)
{
    static const char *const names[] = {"batch of 100", "accumulate 4", "by hand"};
    tt_hash hashes[] = {by_setting(1), by_setting(MICRO), by_hand()};
    bool same = hashes[0].low != 0;
    for (int i = 0; i < 3; i++) {
        printf("%-12s  %016llx%016llx\n", names[i], (unsigned long long)hashes[i].high,
               (unsigned long long)hashes[i].low);
        same &= hashes[i].low == hashes[0].low && hashes[i].high == hashes[0].high;
    }
    return same ? 0 : 1;
}
