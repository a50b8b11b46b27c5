/*
 * data_parallel_by_hand.c - what strategy mirrored does, step by step: the batch is cut into
 * segments of whole lanes, every device has its own copy of the weights and computes the gradients
 * of its segment, all-reduce averages them, each device updates its copy. The weights in the end
 * are those of mirrored and of one device, to the bit.
 */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <tutti/tutti.h>

enum {
    DEVICES = 2,
    STEPS = 20,
    BATCH = 100,
    LANES = 8,
    WEIGHTS = 4
};
static const float lr = 1e-3f;

static tt_tensor *add_layers(tt_model *m)
{
    tt_layer_flatten(m);
    tt_layer_dense(m, .units = 128, .act = TT_RELU);
    return tt_layer_dense(m, .units = 10);
}

static tt_hash by_setting(const char *strategy, const char *devices)
{
    tt_ctx *ctx = tt_open(.strategy = strategy, .devices = devices, .seed = 1);
    tt_data *digits = tt_digits(ctx, .count = 5000, .batch = BATCH);
    tt_model *m = tt_sequential(ctx, .input = {28, 28, 1});
    tt_hash hash = {0, 0};
    add_layers(m);
    tt_compile(m, .loss = TT_CROSS_ENTROPY, .optimizer = tt_adam(.lr = lr));
    tt_fit(m, digits, .steps = STEPS);
    tt_weight_hash(tt_model_get_session(m), &hash); // weights and the optimizer's state
    return tt_close(ctx) == TT_OK ? hash : (tt_hash){0, 0};
}

// One device: a context with its own copy of everything.
typedef struct replica {
    tt_ctx *ctx;
    tt_session *session;
    tt_tensor *x, *y, *seed, *grads[WEIGHTS], *means[WEIGHTS], *updates[WEIGHTS];
    float *room[WEIGHTS]; // a gradient: at first the segment's sums, then the batch's mean
    int64_t sizes[WEIGHTS], step;
    tt_batch_data batch;
    tt_part part; // its segment
    tt_mean_factors factors;
} replica;

static void open_replica(replica *r)
{
    r->ctx = tt_open(.threads = 1, .seed = 1, .lanes = LANES); // the same seed: the same weights
    tt_model *m = tt_sequential(r->ctx, .input = {28, 28, 1});
    tt_tensor *logits = add_layers(m), *weights[WEIGHTS];
    tt_graph *g = tt_model_get_graph(m);
    r->x = tt_graph_find(g, "x");
    r->y = tt_feed(g, .dtype = TT_I32, .shape = TT_SHAPE(TT_BATCH), .name = "y");
    r->seed = tt_feed(g, .shape = TT_SCALAR, .name = "seed");
    tt_trainable(g, weights, WEIGHTS);
    tt_grad(g, tt_sum(g, tt_cross_entropy(g, logits, r->y)), r->seed, WEIGHTS, weights, r->grads);
    for (int i = 0; i < WEIGHTS; i++) {
        tt_shape shape = tt_tensor_shape(weights[i]);
        r->sizes[i] = tt_shape_count(&shape);
        r->room[i] = malloc((size_t)r->sizes[i] * LANES * sizeof(float)); // a sum a lane, at most
        r->means[i] = tt_feed(g, .shape = shape);
        r->updates[i] = tt_update_adam(g, weights[i], r->means[i]);
    }
    r->session = tt_session_new(g);
}

static void *compute_gradients(void *arg)
{
    replica *r = arg;
    tt_fetch fetches[WEIGHTS];
    const float *x = (const float *)r->batch.fields[0] + r->part.batch.first_row * 28 * 28;
    const int32_t *y = (const int32_t *)r->batch.fields[1] + r->part.batch.first_row;
    tt_feed_value feeds[] = {{r->x, x, TT_SHAPE(r->part.rows, 28, 28, 1), TT_F32},
                             {r->y, y, TT_SHAPE(r->part.rows), TT_I32},
                             {r->seed, &r->factors.seed, TT_SCALAR, TT_F32}};
    for (int i = 0; i < WEIGHTS; i++)
        fetches[i] = (tt_fetch){r->grads[i], r->room[i],
                                (size_t)(r->part.n_sums * r->sizes[i]) * sizeof(float)};
    if (r->part.rows > 0)
        tt_run(r->session, .feeds = feeds, .n_feeds = 3, .fetches = fetches, .n_fetches = WEIGHTS,
               .batch = r->part.batch, .step = r->step);
    return NULL;
}

static void *apply_updates(void *arg)
{
    replica *r = arg;
    tt_feed_value feeds[WEIGHTS];
    for (int i = 0; i < WEIGHTS; i++)
        feeds[i] = (tt_feed_value){r->means[i], r->room[i], tt_tensor_shape(r->means[i]), TT_F32};
    tt_run(r->session, .feeds = feeds, .n_feeds = WEIGHTS, .targets = r->updates,
           .n_targets = WEIGHTS, .step = r->step, .lr = lr);
    return NULL;
}

static void on_all(replica *r, void *(*fn)(void *)) // at the same time
{
    pthread_t threads[DEVICES];
    for (int d = 0; d < DEVICES; d++)
        pthread_create(&threads[d], NULL, fn, &r[d]);
    for (int d = 0; d < DEVICES; d++)
        pthread_join(threads[d], NULL);
}

static void average(tt_comm *comm, replica *r)
{
    for (int i = 0; i < WEIGHTS; i++) {
        tt_member m[DEVICES];
        for (int d = 0; d < DEVICES; d++)
            m[d] = (tt_member){.in = r[d].room[i],
                               .out = r[d].room[i],
                               .count = r[d].sizes[i],
                               .first_lane = r[d].part.first_lane,
                               .n_lanes = r[d].part.n_lanes};
        tt_all_reduce(comm, m, .factor = r[0].factors.scale);
    }
}

static tt_hash by_hand(void)
{
    replica r[DEVICES] = {{0}};
    tt_hash hash[DEVICES] = {{0, 0}};
    tt_ctx *ctx = tt_open(.devices = "cpu:0*2", .seed = 1, .lanes = LANES);
    tt_data *digits = tt_digits(ctx, .count = 5000, .batch = BATCH);
    tt_comm *comm = tt_comm_open(ctx, .members = DEVICES);
    for (int d = 0; d < DEVICES; d++)
        open_replica(&r[d]);
    tt_data_start(digits, 0, 0);
    for (int64_t step = 0; step < STEPS && tt_status_of(ctx) == TT_OK; step++) {
        tt_batch_data batch;
        if (tt_data_next(digits, &batch) != TT_OK)
            break;
        for (int d = 0; d < DEVICES; d++) { // segment
            r[d].step = step;
            r[d].batch = batch;
            r[d].factors = tt_mean_factors_of(batch.rows);
            tt_batch_part(ctx, batch.rows, d, DEVICES, &r[d].part);
        }
        on_all(r, compute_gradients);
        average(comm, r);
        on_all(r, apply_updates);
    }
    tt_data_stop(digits);
    bool good = tt_close(ctx) == TT_OK;
    for (int d = 0; d < DEVICES; d++) {
        tt_weight_hash(r[d].session, &hash[d]);
        good &= tt_close(r[d].ctx) == TT_OK && hash[d].low == hash[0].low;
        for (int i = 0; i < WEIGHTS; i++)
            free(r[d].room[i]);
    }
    return good ? hash[0] : (tt_hash){0, 0};
}

int main(void)
{
    static const char *const names[] = {"one device", "mirrored", "by hand"};
    tt_hash hashes[] = {by_setting("single", "cpu:0"), by_setting("mirrored", "cpu:0*2"),
                        by_hand()};
    bool same = hashes[0].low != 0;
    for (int i = 0; i < 3; i++) {
        printf("%-10s  %016llx%016llx\n", names[i], (unsigned long long)hashes[i].high,
               (unsigned long long)hashes[i].low);
        same &= hashes[i].low == hashes[0].low && hashes[i].high == hashes[0].high;
    }
    return same ? 0 : 1;
}
