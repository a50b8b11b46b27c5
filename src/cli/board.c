/*
 * board.c - histograms, images and confusion matrices for TensorBoard (board.h).
 */
#include "cli/board.h"
#include "data/data.h"
#include "model/model.h"
#include "run/run.h"
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

// ---- weights ---------------------------------------------------------------------------------

// All processes read a weight together; the first one writes.
static tt_status on_epoch(void *user, tt_model *m, const tt_progress *p)
{
    cli_board *b = user;
    tt_session *s = tt_model_get_session(m);
    for (int64_t i = 0; s != NULL && i < m->n_weights; i++) {
        const void *bytes;
        void *room = NULL;
        char tag[TTI_BOARD_TAG];
        tti_variable *v;
        if (tt_tensor_dtype(m->weights[i].var) != TT_F32)
            continue;
        TT_TRY(tti_session_variable(s, m->weights[i].train_var->node, &v));
        TT_TRY(tti_variable_look(m->ctx, v, &bytes, &room));
        snprintf(tag, sizeof(tag), "weights/%.240s", m->weights[i].name);
        if (b->recorder != NULL)
            tti_recorder_histogram(b->recorder, tag, p->step, bytes,
                                   (int64_t)(v->bytes / sizeof(float)));
        tti_free(m->ctx, room);
    }
    return TT_OK;
}

// ---- the confusion matrix --------------------------------------------------------------------

static tt_status on_validation(void *user, tt_model *m, const tt_progress *p)
{
    cli_board *b = user;
    int64_t n = tt_evaluate_table(m, "confusion", NULL, 0);
    int classes = (int)(sqrt((double)n) + 0.5);
    if (b->recorder == NULL || n == 0 || classes > TTI_CLASSES)
        return TT_OK;
    double *counts = tti_calloc(m->ctx, (size_t)n, sizeof(*counts));
    if (counts == NULL)
        return TT_ENOMEM;
    (void)tt_evaluate_table(m, "confusion", counts, n);
    tti_picture picture = tti_picture_confusion(m->ctx, counts, classes);
    tti_free(m->ctx, counts);
    if (picture.pixels == NULL)
        return TT_ENOMEM;
    tti_recorder_image(b->recorder, "confusion_matrix/validation", p->step, &picture);
    tti_free(m->ctx, picture.pixels);
    return TT_OK;
}

// ---- images of the data ----------------------------------------------------------------------

// The field with pictures: height, width, and 1, 3 or 4 channels; -1: there is none.
static int image_field(const tt_data *d)
{
    for (int f = 0; f < d->source.n_fields; f++) {
        const tt_field *field = &d->source.fields[f];
        int64_t last = field->shape.rank == 3 ? field->shape.dim[2] : 1;
        bool has_channels = last == 1 || last == 3 || last == 4;
        if (field->dtype == TT_F32 && has_channels && field->shape.rank >= 2 &&
            field->shape.rank <= 3 && field->shape.dim[0] >= 2 && field->shape.dim[1] >= 2 &&
            field->shape.dim[0] <= TTI_PICTURE_SIDE && field->shape.dim[1] <= TTI_PICTURE_SIDE)
            return f;
    }
    return -1;
}

// Whatever the range of its values is, the lowest is black and the highest is white.
static void to_pixels(const float *x, int64_t n, uint8_t *out)
{
    float low = INFINITY, high = -INFINITY;
    for (int64_t i = 0; i < n; i++) {
        low = isfinite(x[i]) ? fminf(low, x[i]) : low;
        high = isfinite(x[i]) ? fmaxf(high, x[i]) : high;
    }
    for (int64_t i = 0; i < n; i++)
        out[i] = isfinite(x[i]) && high > low
                     ? (uint8_t)(255.0F * (x[i] - low) / (high - low) + 0.5F)
                     : 0;
}

static tt_status write_images(const cli_board *b, tt_data *d)
{
    int f = image_field(d);
    if (f < 0) {
        TT_LOG(d->ctx, TT_WARN,
               "output.images: the training data has no images: no f32 field of shape [height, "
               "width] or [height, width, channels] with 1, 3 or 4 channels");
        return TT_OK;
    }
    const tt_shape *shape = &d->source.fields[f].shape;
    tti_picture p = {.height = (int)shape->dim[0],
                     .width = (int)shape->dim[1],
                     .channels = shape->rank == 3 ? (int)shape->dim[2] : 1};
    tti_single one = {0};
    int64_t n = tt_shape_count(shape);
    p.pixels = tti_alloc(d->ctx, (size_t)n);
    tt_status st = p.pixels == NULL ? TT_ENOMEM : tti_single_open(d, &one);
    for (int64_t i = 0; st == TT_OK && i < TTI_MIN(b->images, d->count); i++) {
        char tag[64];
        st = tti_single_read(&one, tti_data_record(d, i));
        if (st != TT_OK)
            break;
        to_pixels(one.slot.fields[f], n, p.pixels);
        snprintf(tag, sizeof(tag), "data/%s/%lld", d->source.fields[f].name, (long long)i);
        tti_recorder_image(b->recorder, tag, 0, &p);
    }
    tti_single_close(&one);
    tti_free(d->ctx, p.pixels);
    return st;
}

// ---- -----------------------------------------------------------------------------------------

tt_status cli_board_begin(cli_board *b, cli_job *j, tti_recorder *recorder, tt_fit_opts *o, int *n)
{
    const char *histograms = tt_job_get(j->job, "output.histograms");
    const char *images = tt_job_get(j->job, "output.images");
    *b = (cli_board){.recorder = recorder,
                     .histograms = histograms != NULL && strcmp(histograms, "true") == 0,
                     .images = images != NULL ? atoi(images) : 0,
                     .epoch = *tt_callback(TT_AT_EPOCH, 1, on_epoch, b),
                     .validation = *tt_callback(TT_AT_VALIDATION, 1, on_validation, b)};
    if (!j->tensorboard)
        return TT_OK;
    if (b->histograms)
        o->callbacks[(*n)++] = &b->epoch;
    if (o->validate != NULL)
        o->callbacks[(*n)++] = &b->validation;
    return b->images > 0 && recorder != NULL ? write_images(b, j->parts.train) : TT_OK;
}
