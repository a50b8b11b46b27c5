/*
 * calls.c - the values of calls.h: a small model, data, a graph and the rest, all of one context.
 */
#include "calls.h"
#include <unistd.h>

calls_values fx;

void *fx_room(void)
{
    static _Alignas(64) char room[1 << 16];
    memset(room, 0, sizeof(room));
    return room;
}

// Options with all defaults.
void *fx_opts(size_t size)
{
    static _Alignas(64) char room[1 << 14];
    memset(room, 0, sizeof(room));
    memcpy(room, &size, sizeof(size));
    return room;
}

// Does a call of that name take it? NULL: any may.
static bool is_for(const char *call, const char *what)
{
    return call == NULL || strstr(call, what) != NULL;
}

void calls_open(void)
{
    calls_open_for(NULL);
}

void calls_open_for(const char *call)
{
    static float x[16], y[4];
    static const char job[] = "model: [dense: 2]\n";
    CHECK_INT(chdir(test_folder()), 0); // some of the calls write files
    fx.ctx = tt_open(.devices = "cpu:0", .on_event = test_ignore_event);
    fx.graph = tt_graph_new(fx.ctx);
    fx.tensor = tt_variable(fx.graph, .shape = TT_SHAPE(4, 4), .name = "v");
    for (int i = 0; i < 4; i++)
        fx.tensors[i] = fx.tensor;
    fx.session = tt_session_new(fx.graph);
    fx.model = tt_sequential(fx.ctx, .input = {4});
    tt_layer_dense(fx.model, .units = 1);
    tt_compile(fx.model, .loss = TT_MSE);
    fx.data = tt_memory(fx.ctx, .x = x, .y = y, .x_shape = TT_SHAPE(4), .y_shape = TT_SHAPE(1),
                        .count = 4, .batch = 4);
    fx.comm = tt_comm_open(fx.ctx);
    fx.store = tt_store_new();
    fx.recorder = is_for(call, "record")
                      ? tt_record(fx.ctx, .dir = "recorded", .no_tensorboard = true)
                      : NULL;
    tt_queue_part part = {TT_F32, TT_SHAPE(2)};
    fx.queue = is_for(call, "queue")
                   ? tt_queue_open(fx.ctx, "q", .capacity = 2, .parts = &part, .n_parts = 1)
                   : NULL;
    (void)tt_queue_close(fx.queue);
    fx.threads = is_for(call, "threads") ? tt_threads_new(fx.ctx) : NULL;
    fx.op = tt_op_find(fx.ctx, "relu");
    if (strstr(tt_version_text(), "yaml: no") == NULL)
        fx.job = tt_job_parse(fx.ctx, job, sizeof(job) - 1, "job.yaml");
    tt_clear_error(fx.ctx);
}

void calls_close(void)
{
    tt_close(fx.ctx);
    tt_store_release(fx.store);
}
