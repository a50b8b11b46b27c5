/*
 * data_errors.c - mistakes in data are refused with the data set, the file, the record and what to
 * do: labels, values that are not finite, shapes and types that do not fit the model, CSV files
 * that are read in the wrong way.
 */
#include "data_test.h"
#include "jobs.h"
#include <math.h>
#include <stdio.h>
#include <unistd.h>

static float x4[40][4], t1[40];

static tt_model *dense(tt_ctx *ctx, int units, tt_loss_kind loss)
{
    tt_model *m = tt_sequential(ctx, .input = {4});
    tt_layer_dense(m, .units = units);
    tt_compile(m, .loss = loss, .optimizer = tt_sgd(.lr = 0.01));
    test_fill(x4[0], 160, 3, -1, 1);
    test_fill(t1, 40, 4, -1, 1);
    return m;
}

static tt_data *labels(tt_ctx *ctx, const int32_t *y)
{
    return tt_memory(ctx, .x = x4, .y = y, .x_shape = TT_SHAPE(4), .y_dtype = TT_I32, .count = 40,
                     .batch = 8);
}

// ---- labels ----------------------------------------------------------------------------------

TEST(a_label_out_of_range_names_record_range_and_remedy)
{
    static const struct {
        int32_t label;
        const char *message;
    } cases[] = {
        {7, "training data: memory: record 21, field 'y': the label is 7, but the model's output "
            "'dense_1' has 5 classes, 0 to 4; give it 8 units, or check the labels"},
        {5, "give it 6 units, or check the labels: they must count from 0"},
        {-1, "record 21, field 'y': the label is -1, but labels are 0 to 4; check the data, or "
             "ignore it"},
        {-7, "the label is -7, but labels are 0 to 4; check the data"},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        tt_ctx *ctx = test_ctx();
        int32_t y[40] = {0};
        y[21] = cases[i].label;
        CHECK(tt_fit(dense(ctx, 5, TT_CROSS_ENTROPY), labels(ctx, y)) == TT_EINVAL);
        CHECK_MESSAGE(ctx, cases[i].message);
        CHECK(tt_close(ctx) == TT_EINVAL);
    }
}

TEST(an_id_beyond_the_vocabulary_names_record_and_remedy)
{
    static int32_t ids[40][3], y[40];
    for (int k = 0; k < 2; k++) {
        tt_ctx *ctx = test_ctx();
        tt_model *m = tt_model_new(ctx);
        tt_input(m, .name = "x", .shape = {3}, .dtype = TT_I32);
        tt_layer_embedding(m, .vocab = 10, .width = 4, .name = "words");
        tt_layer_flatten(m);
        tt_layer_dense(m, .units = 2);
        tt_compile(m, .loss = TT_CROSS_ENTROPY);
        memset(ids, 0, sizeof(ids));
        ids[16][2] = k == 0 ? 99 : -3;
        tt_data *d = tt_memory(ctx, .x = ids, .x_dtype = TT_I32, .x_shape = TT_SHAPE(3), .y = y,
                               .y_dtype = TT_I32, .count = 40, .batch = 8);
        CHECK(tt_fit(m, d) == TT_EINVAL);
        CHECK_MESSAGE(ctx, k == 0 ? "training data: memory: record 16, field 'x', element [2]: the "
                                    "id is 99, but 'words' has a vocabulary of 10, ids 0 to 9; set "
                                    "vocab: 100, or check the data"
                                  : "the id is -3, but ids are 0 to 9; check the data");
        CHECK(tt_close(ctx) == TT_EINVAL);
    }
}

TEST(a_label_that_is_ignored_is_allowed)
{
    tt_ctx *ctx = test_ctx();
    int32_t y[40] = {0};
    y[21] = -100;
    tt_model *m = tt_sequential(ctx, .input = {4});
    tt_layer_dense(m, .units = 5);
    tt_compile(m,
               .losses = {tt_loss(.kind = TT_CROSS_ENTROPY, .has_ignore = true, .ignore = -100)});
    CHECK_OK(tt_fit(m, labels(ctx, y)));
    y[3] = -99;
    CHECK(tt_fit(m, labels(ctx, y)) == TT_EINVAL);
    CHECK_MESSAGE(ctx, "record 3");
    CHECK(tt_close(ctx) == TT_EINVAL);
}

// One model's classes do not bind the next one that reads the same data.
TEST(labels_are_checked_for_the_model_that_reads_them)
{
    tt_ctx *ctx = test_ctx();
    int32_t y[40] = {0};
    y[21] = 7;
    tt_data *d = labels(ctx, y);
    CHECK(tt_fit(dense(ctx, 5, TT_CROSS_ENTROPY), d) == TT_EINVAL);
    tt_clear_error(ctx);
    CHECK_OK(tt_fit(dense(ctx, 8, TT_CROSS_ENTROPY), d));
    tt_evaluation e;
    tt_model *small = dense(ctx, 6, TT_CROSS_ENTROPY);
    CHECK(tt_evaluate(small, d, &e) == TT_EINVAL);
    CHECK_MESSAGE(ctx, "has 6 classes, 0 to 5");
    CHECK(tt_close(ctx) == TT_EINVAL);
}

TEST(a_label_in_a_csv_names_line_and_column)
{
    tt_ctx *ctx = test_ctx();
    char text[512] = "id,a,b,c,d,kind\n\n";
    for (int i = 0; i < 12; i++)
        snprintf(text + strlen(text), sizeof(text) - strlen(text), "%d,1,2,3,4,%d\n", i,
                 i == 9 ? 6 : i % 5);
    data_text("k.csv", text);
    tt_data *d = tt_csv(ctx, .file = data_path("k.csv"), .skip = "id", .classes = true, .first = 2);
    CHECK_INT(tt_data_count(d), 10);
    CHECK(tt_fit(dense(ctx, 5, TT_CROSS_ENTROPY), d) == TT_EINVAL);
    CHECK_MESSAGE(ctx, "k.csv': record 9, line 12, column 'kind': the label is 6");
    CHECK(tt_close(ctx) == TT_EINVAL);
}

// ---- values ----------------------------------------------------------------------------------

TEST(nan_in_data_names_the_record_in_any_order)
{
    tt_ctx *ctx = test_ctx();
    tt_model *m = dense(ctx, 1, TT_MSE);
    x4[17][2] = NAN;
    tt_data *d = tt_memory(ctx, .x = x4, .y = t1, .x_shape = TT_SHAPE(4), .y_shape = TT_SHAPE(1),
                           .count = 40, .batch = 8);
    CHECK(tt_fit(m, d) == TT_ENAN);
    CHECK_MESSAGE(ctx, "training data: memory: record 17, field 'x', element [2] is NaN");
    tt_clear_error(ctx);
    x4[17][2] = 0;
    t1[30] = -INFINITY;
    CHECK(tt_fit(m, d) == TT_ENAN);
    CHECK_MESSAGE(ctx, "record 30, field 'y', element [0] is -infinity");
    tt_clear_error(ctx);
    CHECK_OK(tt_fit(m, d, .nan = TT_NAN_SKIP));
    CHECK_OK(tt_close(ctx));
}

static void count_warnings(void *user, const tt_event *ev)
{
    int *n = user;
    if (strcmp(ev->kind, "log") == 0 && strstr(ev->text, "validation data: memory: record 5"))
        ++*n;
}

TEST(nan_in_validation_data_is_told_once)
{
    int n = 0;
    tt_ctx *ctx = tt_open(.devices = "cpu:0", .on_event = count_warnings, .user = &n);
    static float bad[8][4], t[8];
    tt_model *m = dense(ctx, 1, TT_MSE);
    bad[5][0] = NAN;
    tt_data *d = tt_memory(ctx, .x = x4, .y = t1, .x_shape = TT_SHAPE(4), .count = 40);
    tt_data *v = tt_memory(ctx, .x = bad, .y = t, .x_shape = TT_SHAPE(4), .count = 8);
    CHECK_OK(tt_fit(m, d, .epochs = 3, .validate = v));
    CHECK_INT(n, 1);
    CHECK_OK(tt_close(ctx));
}

static void build_fails(const char *job, const char *message)
{
    job_built b = job_build(job);
    CHECK(b.status != TT_OK);
    CHECK_MESSAGE(b.ctx, message);
    tt_clear_error(b.ctx);
    job_close(&b);
}

// ---- shapes ----------------------------------------------------------------------------------

static tt_hash trained(tt_loss_kind loss, tt_shape shape)
{
    tt_ctx *ctx = test_ctx();
    tt_model *m = dense(ctx, 1, loss);
    tt_hash h;
    for (int i = 0; i < 40; i++)
        t1[i] = t1[i] > 0;
    tt_data *d = tt_memory(ctx, .x = x4, .y = t1, .x_shape = TT_SHAPE(4), .y_shape = shape,
                           .count = 40, .batch = 8);
    tt_data *v = tt_memory(ctx, .x = x4, .y = t1, .x_shape = TT_SHAPE(4), .y_shape = shape,
                           .count = 8, .batch = 8);
    CHECK_OK(tt_fit(m, d, .epochs = 2, .validate = v));
    CHECK_OK(tt_model_hash(m, &h));
    CHECK_OK(tt_close(ctx));
    return h;
}

TEST(a_target_of_one_number_may_have_an_axis_or_not)
{
    static const tt_loss_kind losses[] = {TT_MSE, TT_MAE, TT_HUBER, TT_BINARY_CROSS_ENTROPY};
    for (int i = 0; i < 4; i++) {
        tt_hash a = trained(losses[i], TT_SHAPE(1)), b = trained(losses[i], TT_SCALAR);
        ck_assert_msg(memcmp(&a, &b, sizeof(a)) == 0, "loss %d", (int)losses[i]);
    }
}

TEST(shapes_that_do_not_fit_name_set_shapes_and_cause)
{
    static const struct {
        const char *train, *model, *loss, *message;
    } cases[] = {
        {"csv: {file: v.csv, y: k}", "dense: 2", "cross_entropy",
         "field 'y' of the training data (csv 'v.csv') has shape [1] per record, but the model's "
         "target 'y' has shape [2]; cross_entropy takes class numbers, which are integers, but the "
         "field is f32: set classes: true"},
        {"csv: {file: v.csv, y: k}", "dense: 3", "mse",
         "has shape [1] per record, but the model's target 'y' has shape [3]; give the last layer "
         "1 "
         "unit, one for each number of the target"},
        {"csv: {file: v.csv, y: k, classes: true}", "dense: 3", "mse",
         "the field has class numbers: use the loss cross_entropy, not mse"},
        {"digits: {count: 16}", "dense: 10", "cross_entropy",
         "field 'y' of the training data (digits) has shape [] per record, but the model's target "
         "'y' has shape [28, 28]; the model keeps the axes of its input: a flatten layer"},
        {"digits: {count: 16}", "dense: 1", "mse", "a flatten layer"},
    };
    data_text("v.csv", "a,b,k\n1,2,0\n3,4,1\n5,6,2\n");
    CHECK(chdir(test_folder()) == 0);
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        char job[512];
        snprintf(job, sizeof(job),
                 "data: {train: {%s}}\nmodel: [%s]\ntrain: {epochs: 1, batch: 4, loss: %s}\n",
                 cases[i].train, cases[i].model, cases[i].loss);
        build_fails(job, cases[i].message);
    }
}

TEST(the_set_that_does_not_fit_is_named_before_training)
{
    data_text("t.csv", "a,b,y\n1,2,0\n3,4,1\n");
    data_text("w.csv", "a,b,c,y\n1,2,3,0\n3,4,5,1\n");
    CHECK(chdir(test_folder()) == 0);
    build_fails("data: {train: {csv: t.csv}, test: {csv: w.csv}}\nmodel: [dense: 1]\n"
                "train: {epochs: 1, loss: mse}\n",
                "field 'x' of the test data (csv 'w.csv') has shape [3] per record, but the "
                "model's input 'x' has shape [2]; all parts need the same columns");
    build_fails("data: {train: {csv: t.csv}, validate: {csv: w.csv}}\nmodel: [dense: 1]\n"
                "train: {epochs: 1, loss: mse}\n",
                "field 'x' of the validation data (csv 'w.csv')");
}

TEST(a_missing_target_is_asked_for)
{
    tt_ctx *ctx = test_ctx();
    tt_data *d = tt_memory(ctx, .x = x4, .x_shape = TT_SHAPE(4), .count = 40);
    CHECK(tt_fit(dense(ctx, 1, TT_MSE), d) == TT_EINVAL);
    CHECK_MESSAGE(ctx,
                  "the training data (memory) has 1 field, but the model takes 2 (inputs, then "
                  "targets); is the target (y) missing?");
    CHECK(tt_close(ctx) == TT_EINVAL);
}

// ---- CSV files -------------------------------------------------------------------------------

TEST(csv_mistakes_say_what_to_set)
{
    static const struct {
        const char *text;
        tt_csv_opts o;
        const char *message;
    } cases[] = {
        {"a,b,town\n1,2,rome\n",
         {0},
         "column 'town': 'rome' is not a number that f32 can hold; if "
         "the column has class names, set classes: true"},
        {"a,town,y\n1,rome,2\n",
         {0},
         "line 2, column 'town': 'rome' is not a number that f32 can "
         "hold; leave the column out (skip, or x with the inputs)"},
        {"a,b,y\n1,,2\n", {0}, "column 'b': '' is empty; fill it in, remove the record, leave"},
        {"a;b;y\n1;2;3\n",
         {.y = "y"},
         "has no column 'y'; its columns are 'a;b;y'; the line looks "
         "separated by ';': set comma: \";\""},
        {"a;b;y\n1;2;3\n", {0}, "no column is left for x; the line looks separated by ';'"},
        {"a\tb\ty\n1\t2\t3\n", {0}, "set comma: tab"},
        {"a,b,y\n1,2,3\n", {.comma = ";"}, "set comma: \",\""},
        {"1,2,3\n4,5,6\n",
         {.y = "y"},
         "has no column 'y'; its columns are '1', '2', '3'; the first "
         "line has only numbers: if the file has no header line, set "
         "no_header: true, and columns are called c0"},
        {"a,b\n1,2\n",
         {.no_header = true},
         "line 1, column 'c0': 'a' is not a number that f32 can "
         "hold; if the first line names the columns, remove "
         "no_header"},
        {"width,price\n1,2\n", {.y = "prize"}, "did you mean 'price'?"},
        {"a,b,y\n1,2,3\n", {.skip = "c"}, "has no column 'c'"},
        {"a,b,y\n1,2,3\n", {.skip = "a, b"}, "no column is left for x"},
        {"a,b,y\n1,2,3\n",
         {.skip = "a", .x = "b"},
         "give the inputs with x, or the others with "
         "skip"},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        tt_ctx *ctx = test_ctx();
        tt_csv_opts o = cases[i].o;
        data_text("m.csv", cases[i].text);
        o.opts_size = sizeof(o);
        o.file = data_path("m.csv");
        CHECK(tt_csv_with(ctx, &o) == NULL);
        CHECK_MESSAGE(ctx, cases[i].message);
        tt_clear_error(ctx);
        CHECK_OK(tt_close(ctx));
    }
}

static void keep_warning(void *user, const tt_event *ev)
{
    if (strcmp(ev->kind, "log") == 0)
        snprintf(user, 512, "%s", ev->text);
}

TEST(a_header_of_numbers_is_warned_of)
{
    char text[512] = "";
    tt_ctx *ctx = tt_open(.devices = "cpu:0", .on_event = keep_warning, .user = text);
    data_text("n.csv", "1,2,3\n4,5,6\n");
    CHECK_INT(tt_data_count(tt_csv(ctx, .file = data_path("n.csv"))), 1);
    CHECK(strstr(text, "set no_header: true") != NULL);
    text[0] = '\0';
    CHECK_INT(tt_data_count(tt_csv(ctx, .file = data_path("n.csv"), .no_header = true)), 2);
    CHECK_STR(text, "");
    CHECK_OK(tt_close(ctx));
}

TEST(skipped_columns_are_no_inputs)
{
    tt_ctx *ctx = test_ctx();
    tt_field f[TT_MAX_FIELDS];
    data_text("s.csv", "id,a,name,b,y\n7,1,\"x, y\",2,3\n8,4,z,5,6\n");
    tt_data *d = tt_csv(ctx, .file = data_path("s.csv"), .skip = "id, name", .no_shuffle = true);
    tt_batch_data b = data_all(d);
    const float *x = b.fields[0];
    CHECK_INT(tt_data_fields(d, f), 2);
    CHECK_INT(f[0].shape.dim[0], 2);
    CHECK(x[0] == 1 && x[1] == 2 && x[2] == 4 && x[3] == 5);
    CHECK_OK(tt_close(ctx));
}
