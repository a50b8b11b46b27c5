/*
 * outputs.c - calls that fill a struct: an older caller's is shorter and gets no byte more than it
 * has, a newer caller's is longer and gets zeros where this library knows nothing.
 */
#include "../calls.h"

#define ROOM 4096
#define MORE 24

static tt_batch_data batch;
static float x[16], y[4];

static void train(void)
{
    calls_open();
    CHECK_OK(tt_fit(fx.model, fx.data));
    batch = (tt_batch_data){.rows = 4, .fields = {x, y}};
}

// One call, by number; false past the last. *known is the size of the struct here.
static bool fill(int i, void *out, size_t size, size_t *known)
{
    static const size_t sizes[] = {
        sizeof(tt_device_info), sizeof(tt_fit_report),   sizeof(tt_device_times),
        sizeof(tt_port),        sizeof(tt_port),         sizeof(tt_batch_data),
        sizeof(tt_evaluation),  sizeof(tt_progress),     sizeof(tt_plan_memory),
        sizeof(tt_weight_info), sizeof(tt_catalog_entry)};
    if (i >= (int)(sizeof(sizes) / sizeof(sizes[0])))
        return false;
    *known = sizes[i];
    switch (i) {
    case 0:
        return tt_device_get_sized(fx.ctx, 0, out, size) == TT_OK;
    case 1:
        return tt_fit_report_get_sized(fx.model, out, size) == TT_OK;
    case 2:
        return tt_fit_device_times_sized(fx.model, 0, out, size) == TT_OK;
    case 3:
        return tt_model_input_sized(fx.model, 0, out, size) == TT_OK;
    case 4:
        return tt_model_output_sized(fx.model, 0, out, size) == TT_OK;
    case 5:
        CHECK_OK(tt_data_start(fx.data, 4, 0));
        CHECK_OK(tt_data_next_sized(fx.data, out, size));
        tt_data_stop(fx.data);
        return true;
    case 6: // 0 would be the whole struct
        return tt_evaluate_with(fx.model, fx.data, out,
                                TT_OPTS(tt_evaluate_opts, .out_size = size)) == TT_OK;
    case 7:
        return tt_train_step_with(fx.model, &batch, out,
                                  TT_OPTS(tt_train_step_opts, .out_size = size)) == TT_OK;
    case 8:
        return tt_plan_memory_get_sized(tt_model_get_session(fx.model), 0, out, size) == TT_OK;
    case 9:
        return tt_model_weights_sized(fx.model, out, 1, size) == 2;
    default:
        return tt_catalog_get_sized(fx.ctx, TT_CATALOG_LAYER, 0, out, size) == TT_OK;
    }
}

static void check_call(int i, size_t known)
{
    unsigned char room[ROOM];
    size_t again;
    CHECK(known + MORE <= ROOM);
    for (size_t size = 8; size <= known + MORE; size += 8) {
        memset(room, 0xA5, sizeof(room));
        CHECK(fill(i, room, size, &again));
        for (size_t b = size; b < sizeof(room); b++)
            ck_assert_msg(room[b] == 0xA5, "call %d: byte %zu of a struct of %zu", i, b, size);
        for (size_t b = known; b < size; b++)
            ck_assert_msg(room[b] == 0, "call %d: byte %zu of a struct of %zu", i, b, size);
    }
}

TEST(no_call_writes_past_the_struct_of_the_caller)
{
    unsigned char room[ROOM];
    size_t known;
    int n = 0;
    train();
    for (; fill(n, room, 8, &known); n++)
        check_call(n, known);
    CHECK_INT(n, 11);
    calls_close();
}

TEST(a_weight_of_an_older_caller_has_its_stride)
{
    struct {
        const char *name;
    } names[2];
    tt_weight_info all[2];
    calls_open();
    CHECK_INT(tt_model_weights(fx.model, all, 2), 2);
    CHECK_INT(
        tt_model_weights_sized(fx.model, (tt_weight_info *)(void *)names, 2, sizeof(names[0])), 2);
    CHECK_STR(names[0].name, all[0].name);
    CHECK_STR(names[1].name, all[1].name);
    calls_close();
}
