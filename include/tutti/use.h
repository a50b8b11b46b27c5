/*
 * use.h - trained models in use: loaded whole, asked what they take and give, run on new records.
 *
 * What a fit, tt_save(), tt_export() or tutti convert wrote is a whole model: its weights, its
 * layers, the preprocessing of its data with all numbers, the names of classes, how a normalised
 * target is undone. Neither the job file nor the training data is needed to use it.
 */
#ifndef TUTTI_USE_H
#define TUTTI_USE_H

#include <tutti/train.h>

#ifdef __cplusplus
extern "C" {
#endif

/*
 * The model at path: a run's folder or a folder of checkpoints (the newest is taken), a checkpoint,
 * a model.tutti or other safetensors file that Tutti wrote. Owned by ctx; NULL on failure. It can
 * be run, evaluated (after tt_compile() or tt_model_compile()), and trained on.
 */
TT_API tt_model *tt_model_load(tt_ctx *ctx, const char *path);
// Compiles it with the losses and metrics it was trained with, for tt_evaluate(); optimizer: sgd.
TT_API tt_status tt_model_compile(tt_model *m);

typedef enum tt_meaning {
    TT_MEANS_VALUES = 0,  // numbers; in the target's own units once finished
    TT_MEANS_CLASSES = 1, // a score for each class; once finished a probability
    TT_MEANS_BINARY = 2,  // scores of yes or no; once finished probabilities of yes
} tt_meaning;

typedef struct tt_port {
    const char *name; // borrowed until the model is freed
    tt_dtype dtype;
    tt_shape shape;     // of one record, as the model takes or gives it
    tt_dtype raw_dtype; // inputs: before the preprocessing that the model knows
    tt_shape raw_shape; //
    tt_meaning meaning; // outputs
} tt_port;
// Input or output i, from 0. TT_EINVAL where there is none.
TT_API int tt_model_input_count(const tt_model *m);
TT_API int tt_model_output_count(tt_model *m);
TT_API tt_status tt_model_input_sized(tt_model *m, int i, tt_port *out, size_t size);
TT_API tt_status tt_model_output_sized(tt_model *m, int i, tt_port *out, size_t size);
#define tt_model_input(m, i, out)  tt_model_input_sized((m), (i), (out), sizeof(tt_port))
#define tt_model_output(m, i, out) tt_model_output_sized((m), (i), (out), sizeof(tt_port))
// The name of a class of output i; NULL where classes have numbers only. Borrowed.
TT_API const char *tt_model_class(tt_model *m, int i, int64_t class_number);

// Appends the model's preprocessing to raw data, so that it can be evaluated or predicted.
TT_API tt_status tt_model_prepare(tt_model *m, tt_data *raw);
// n rows of output i, f32, in place: probabilities of scores, values in the target's own units.
TT_API tt_status tt_model_finish(tt_model *m, int i, float *y, int64_t n);

/*
 * Writes the model as an ONNX file (opset 17, IR version 8), for ONNX Runtime and others; replaced
 * atomically. Inputs and outputs have the model's names, and a first dimension of any size. Fails
 * with TT_EUNSUPPORTED, naming it, for an op or transform that ONNX does not have, and for a model
 * of more than 2 GB.
 */
typedef struct tt_export_onnx_opts {
    size_t opts_size;
    bool raw; // as in tt_predict(): with the model's preprocessing, and results finished
} tt_export_onnx_opts;
TT_API tt_status tt_export_onnx_with(tt_model *m, const char *path,
                                     const tt_export_onnx_opts *opts);
#define tt_export_onnx(...) TT_CALL2(tt_export_onnx, __VA_ARGS__, )

#ifdef __cplusplus
}
#endif
#endif
