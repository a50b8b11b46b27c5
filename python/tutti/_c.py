"""Written by python/generate.py from include/tutti/*.h; not edited by hand."""
from ctypes import (
    CFUNCTYPE,
    Structure,
    c_bool,
    c_char,
    c_char_p,
    c_double,
    c_float,
    c_int,
    c_int64,
    c_size_t,
    c_uint,
    c_uint64,
    c_uint8,
    c_void_p,
)

# Function pointers.

tt_event_fn = CFUNCTYPE(None, c_void_p, c_void_p)
tt_place_fn = CFUNCTYPE(c_void_p, c_void_p, c_void_p)
tt_layer_fn = CFUNCTYPE(c_void_p, c_void_p, c_void_p, c_void_p, c_int)
tt_bucket_fn = CFUNCTYPE(c_int, c_void_p, c_void_p)
tt_loss_fn = CFUNCTYPE(c_void_p, c_void_p, c_void_p, c_void_p, c_void_p)
tt_metric_build_fn = CFUNCTYPE(c_int, c_void_p, c_void_p, c_void_p, c_void_p)
tt_metric_value_fn = CFUNCTYPE(c_double, c_void_p, c_void_p, c_void_p)
tt_schedule_fn = CFUNCTYPE(c_double, c_void_p, c_int64, c_int64)
tt_callback_fn = CFUNCTYPE(c_int, c_void_p, c_void_p, c_void_p)
tt_thread_fn = CFUNCTYPE(c_int, c_void_p, c_void_p)

# Words of enums.

ENUMS = {
    "tt_status": {
        "TT_OK": 0,
        "TT_EINVAL": 1,
        "TT_ESHAPE": 2,
        "TT_EDTYPE": 3,
        "TT_ENOMEM": 4,
        "TT_EIO": 5,
        "TT_EDEVICE": 6,
        "TT_EPEER": 7,
        "TT_ETIMEOUT": 8,
        "TT_EPARSE": 9,
        "TT_EUNSUPPORTED": 10,
        "TT_ELIMIT": 11,
        "TT_EASSERT": 12,
        "TT_ESTOP": 13,
        "TT_ENAN": 14,
    },
    "tt_dtype": {
        "TT_F32": 0,
        "TT_F64": 1,
        "TT_BF16": 2,
        "TT_F16": 3,
        "TT_I32": 4,
        "TT_I64": 5,
        "TT_U8": 6,
        "TT_BOOL": 7,
    },
    "tt_level": {
        "TT_LOG_DEFAULT": 0,
        "TT_ERROR": 1,
        "TT_WARN": 2,
        "TT_INFO": 3,
        "TT_DEBUG": 4,
        "TT_TRACE": 5,
    },
    "tt_soft": {
        "TT_SOFT_WARN": 0,
        "TT_SOFT_ON": 1,
        "TT_SOFT_OFF": 2,
    },
    "tt_reduce": {
        "TT_REDUCE_EXACT": 0,
        "TT_REDUCE_FAST": 1,
    },
    "tt_pipe": {
        "TT_PIPE_1F1B": 0,
        "TT_PIPE_GPIPE": 1,
        "TT_PIPE_INTERLEAVED": 2,
    },
    "tt_update_where": {
        "TT_UPDATE_AUTO": 0,
        "TT_UPDATE_EACH": 1,
        "TT_UPDATE_SHARD": 2,
    },
    "tt_images_fit": {
        "TT_IMAGES_CROP": 0,
        "TT_IMAGES_STRETCH": 1,
        "TT_IMAGES_PAD": 2,
    },
    "tt_images_corrupt": {
        "TT_CORRUPT_ERROR": 0,
        "TT_CORRUPT_SKIP": 1,
    },
    "tt_csv_missing": {
        "TT_MISSING_ERROR": 0,
        "TT_MISSING_NAN": 1,
    },
    "tt_csv_unseen": {
        "TT_UNSEEN_ERROR": 0,
        "TT_UNSEEN_ZEROS": 1,
    },
    "tt_split_take": {
        "TT_SPLIT_RANDOM": 0,
        "TT_SPLIT_FIRST": 1,
        "TT_SPLIT_LAST": 2,
    },
    "tt_normalise": {
        "TT_NORMALISE_GIVEN": 0,
        "TT_NORMALISE_FIT": 1,
        "TT_NORMALISE_FIT_ALL": 3,
    },
    "tt_init_kind": {
        "TT_INIT_ZEROS": 0,
        "TT_INIT_CONSTANT": 1,
        "TT_INIT_UNIFORM": 2,
        "TT_INIT_NORMAL": 3,
        "TT_INIT_TRUNCATED_NORMAL": 4,
        "TT_INIT_GLOROT_UNIFORM": 5,
        "TT_INIT_GLOROT_NORMAL": 6,
        "TT_INIT_HE_UNIFORM": 7,
        "TT_INIT_HE_NORMAL": 8,
        "TT_INIT_LECUN_UNIFORM": 9,
        "TT_INIT_LECUN_NORMAL": 10,
    },
    "tt_act": {
        "TT_LINEAR": 0,
        "TT_RELU": 1,
        "TT_GELU": 2,
        "TT_GELU_ERF": 3,
        "TT_SIGMOID": 4,
        "TT_TANH": 5,
        "TT_SILU": 6,
        "TT_ELU": 7,
        "TT_LEAKY_RELU": 8,
        "TT_SOFTPLUS": 9,
        "TT_SOFTMAX": 10,
        "TT_SELU": 11,
        "TT_RELU6": 12,
        "TT_MISH": 13,
        "TT_HARD_SIGMOID": 14,
        "TT_HARD_SWISH": 15,
        "TT_SOFTSIGN": 16,
    },
    "tt_padding": {
        "TT_VALID": 0,
        "TT_SAME": 1,
        "TT_EXPLICIT": 2,
    },
    "tt_over": {
        "TT_OVER_BATCH": 0,
        "TT_OVER_LANE": 1,
    },
    "tt_catalog_group": {
        "TT_CATALOG_SOURCE": 0,
        "TT_CATALOG_TEST_SOURCE": 1,
        "TT_CATALOG_TRANSFORM": 2,
        "TT_CATALOG_LAYER": 3,
        "TT_CATALOG_LOSS": 4,
        "TT_CATALOG_METRIC": 5,
        "TT_CATALOG_OPTIMIZER": 6,
        "TT_CATALOG_SCHEDULE": 7,
        "TT_CATALOG_STRATEGY": 8,
        "TT_CATALOG_OP": 9,
        "TT_CATALOG_SECTION": 10,
    },
    "tt_catalog_form": {
        "TT_CATALOG_VALUE": 0,
        "TT_CATALOG_MAP": 1,
        "TT_CATALOG_CHOICE": 2,
        "TT_CATALOG_LIST": 3,
        "TT_CATALOG_NAMED": 4,
    },
    "tt_cluster_source": {
        "TT_CLUSTER_NONE": 0,
        "TT_CLUSTER_HOSTS": 1,
        "TT_CLUSTER_TF_CONFIG": 2,
        "TT_CLUSTER_TORCHRUN": 3,
        "TT_CLUSTER_TASKS": 4,
        "TT_CLUSTER_LAUNCHER": 5,
    },
    "tt_plan_form": {
        "TT_PLAN_TEXT": 0,
        "TT_PLAN_JSON": 1,
        "TT_PLAN_DOT": 2,
    },
    "tt_combine": {
        "TT_COMBINE_SUM": 0,
        "TT_COMBINE_MAX": 1,
        "TT_COMBINE_MIN": 2,
    },
    "tt_loss_kind": {
        "TT_LOSS_NONE": 0,
        "TT_CROSS_ENTROPY": 1,
        "TT_BINARY_CROSS_ENTROPY": 2,
        "TT_MSE": 3,
        "TT_MAE": 4,
        "TT_HUBER": 5,
        "TT_CUSTOM_LOSS": 6,
        "TT_KL_DIVERGENCE": 7,
        "TT_COSINE_SIMILARITY": 8,
        "TT_HINGE": 9,
        "TT_SQUARED_HINGE": 10,
        "TT_CATEGORICAL_HINGE": 11,
        "TT_POISSON": 12,
        "TT_LOG_COSH": 13,
        "TT_FOCAL": 14,
        "TT_BINARY_FOCAL": 15,
        "TT_DICE": 16,
        "TT_MAPE": 17,
        "TT_MSLE": 18,
    },
    "tt_metric_kind": {
        "TT_ACCURACY": 256,
        "TT_TOP_K": 512,
        "TT_PRECISION": 1024,
        "TT_RECALL": 2048,
        "TT_F1": 4096,
        "TT_METRIC_MSE": 8192,
        "TT_METRIC_MAE": 16384,
        "TT_PERPLEXITY": 32768,
        "TT_AUC": 65536,
        "TT_AUC_PR": 131072,
        "TT_IOU": 262144,
        "TT_RMSE": 524288,
        "TT_R2": 1048576,
        "TT_METRIC_MAPE": 2097152,
        "TT_METRIC_COSINE": 4194304,
        "TT_BITS_PER_BYTE": 8388608,
        "TT_CALIBRATION_ERROR": 16777216,
        "TT_CONFUSION": 33554432,
    },
    "tt_schedule_kind": {
        "TT_LR_CONSTANT": 0,
        "TT_LR_STEP": 1,
        "TT_LR_EXPONENTIAL": 2,
        "TT_LR_COSINE": 3,
        "TT_LR_LINEAR": 4,
        "TT_LR_ONE_CYCLE": 5,
        "TT_LR_CUSTOM": 6,
        "TT_LR_PIECEWISE": 7,
        "TT_LR_POLYNOMIAL": 8,
        "TT_LR_INVERSE_TIME": 9,
        "TT_LR_COSINE_RESTARTS": 10,
        "TT_LR_WSD": 11,
    },
    "tt_decay_shape": {
        "TT_DECAY_LINEAR": 0,
        "TT_DECAY_COSINE": 1,
        "TT_DECAY_SQRT": 2,
    },
    "tt_optimizer_kind": {
        "TT_SGD": 0,
        "TT_ADAM": 1,
        "TT_ADAMW": 2,
        "TT_RMSPROP": 3,
        "TT_ADAGRAD": 4,
        "TT_LION": 5,
        "TT_ADADELTA": 6,
        "TT_ADAMAX": 7,
        "TT_NADAM": 8,
        "TT_AMSGRAD": 9,
        "TT_FTRL": 10,
        "TT_LAMB": 11,
        "TT_LARS": 12,
    },
    "tt_precision": {
        "TT_PRECISION_F32": 0,
        "TT_PRECISION_BF16": 1,
        "TT_PRECISION_F16": 2,
    },
    "tt_moment": {
        "TT_AT_STEP": 0,
        "TT_AT_EPOCH": 1,
        "TT_AT_VALIDATION": 2,
        "TT_AT_END": 3,
        "TT_AT_STEP_BEGIN": 4,
        "TT_AT_EPOCH_BEGIN": 5,
        "TT_AT_BEGIN": 6,
    },
    "tt_nan": {
        "TT_NAN_STOP": 0,
        "TT_NAN_SKIP": 1,
        "TT_NAN_CONTINUE": 2,
    },
    "tt_fit_end": {
        "TT_FIT_FINISHED": 0,
        "TT_FIT_EARLY_STOP": 1,
        "TT_FIT_CALLBACK": 2,
        "TT_FIT_REQUESTED": 3,
        "TT_FIT_ALREADY": 4,
    },
    "tt_weight_layout": {
        "TT_WEIGHTS_AUTO": 0,
        "TT_WEIGHTS_TUTTI": 1,
        "TT_WEIGHTS_TORCH": 2,
    },
    "tt_upsample_mode": {
        "TT_NEAREST": 0,
        "TT_BILINEAR": 1,
    },
    "tt_recurrent_kind": {
        "TT_RNN": 0,
        "TT_GRU": 1,
        "TT_LSTM": 2,
    },
    "tt_queue_kind": {
        "TT_QUEUE_FIFO": 0,
        "TT_QUEUE_SHUFFLE": 1,
        "TT_QUEUE_PADDING": 2,
        "TT_QUEUE_PRIORITY": 3,
    },
    "tt_meaning": {
        "TT_MEANS_VALUES": 0,
        "TT_MEANS_CLASSES": 1,
        "TT_MEANS_BINARY": 2,
    },
}

# Structs. _enums_ names the enum of a field, _points_ the struct it points to.


class tt_shape(Structure):
    _fields_ = [
        ("rank", c_int),
        ("dim", c_int64 * 8),
    ]


class tt_axes(Structure):
    _fields_ = [
        ("n", c_int),
        ("axis", c_int * 8),
    ]


class tt_ints(Structure):
    _fields_ = [
        ("n", c_int),
        ("v", c_int64 * 16),
    ]


class tt_hash(Structure):
    _fields_ = [
        ("low", c_uint64),
        ("high", c_uint64),
    ]


class tt_pair(Structure):
    _fields_ = [
        ("name", c_char_p),
        ("number", c_double),
        ("text", c_char_p),
    ]


class tt_event(Structure):
    _fields_ = [
        ("kind", c_char_p),
        ("level", c_int),
        ("text", c_char_p),
        ("pairs", c_void_p),
        ("n_pairs", c_int),
    ]
    _enums_ = {"level": "tt_level"}
    _points_ = {"pairs": "tt_pair"}


class tt_spread(Structure):
    _fields_ = [
        ("opts_size", c_size_t),
        ("replicas", c_int),
        ("stages", c_int),
        ("schedule", c_int),
        ("chunks", c_int),
        ("micro", c_int),
        ("reduce", c_int),
        ("wire", c_int),
        ("bucket", c_size_t),
        ("update", c_int),
        ("share", c_char_p),
    ]
    _enums_ = {"schedule": "tt_pipe", "reduce": "tt_reduce", "wire": "tt_dtype", "update": "tt_update_where"}


class tt_open_opts(Structure):
    _fields_ = [
        ("opts_size", c_size_t),
        ("devices", c_char_p),
        ("strategy", c_char_p),
        ("lanes", c_int),
        ("seed", c_uint64),
        ("soft", c_int),
        ("threads", c_int),
        ("deadline_ms", c_int64),
        ("level", c_int),
        ("on_event", tt_event_fn),
        ("user", c_void_p),
        ("isa", c_char_p),
        ("store", c_void_p),
        ("spread", c_void_p),
        ("tasks", c_void_p),
    ]
    _enums_ = {"soft": "tt_soft", "level": "tt_level"}
    _points_ = {"spread": "tt_spread", "tasks": "tt_tasks"}


class tt_error(Structure):
    _fields_ = [
        ("status", c_int),
        ("message", c_char_p),
        ("file", c_char_p),
        ("line", c_int),
    ]
    _enums_ = {"status": "tt_status"}


class tt_alloc_stats(Structure):
    _fields_ = [
        ("calls", c_int64),
        ("blocks", c_int64),
        ("bytes", c_size_t),
    ]


class tt_field(Structure):
    _fields_ = [
        ("name", c_char * 32),
        ("dtype", c_int),
        ("shape", tt_shape),
        ("classes", c_int64),
    ]
    _enums_ = {"dtype": "tt_dtype"}


class tt_source(Structure):
    _fields_ = [
        ("count", c_int64),
        ("n_fields", c_int),
        ("fields", tt_field * 16),
        ("self", c_void_p),
        ("read", CFUNCTYPE(c_int, c_void_p, c_void_p, c_int64, c_void_p)),
        ("close", CFUNCTYPE(None, c_void_p, c_void_p)),
        ("lane", CFUNCTYPE(c_int, c_void_p, c_int64, c_int)),
    ]


class tt_data_opts(Structure):
    _fields_ = [
        ("opts_size", c_size_t),
        ("batch", c_int),
        ("no_shuffle", c_bool),
        ("seed", c_int64),
        ("workers", c_int),
        ("prefetch", c_int),
        ("compare_all", c_bool),
    ]


class tt_digits_opts(Structure):
    _fields_ = [
        ("opts_size", c_size_t),
        ("count", c_int64),
        ("first", c_int64),
        ("set", c_int64),
        ("noise", c_double),
        ("batch", c_int),
        ("no_shuffle", c_bool),
        ("seed", c_int64),
        ("workers", c_int),
        ("prefetch", c_int),
        ("compare_all", c_bool),
    ]


class tt_mnist_opts(Structure):
    _fields_ = [
        ("opts_size", c_size_t),
        ("split", c_char_p),
        ("dir", c_char_p),
        ("batch", c_int),
        ("no_shuffle", c_bool),
        ("seed", c_int64),
        ("workers", c_int),
        ("prefetch", c_int),
        ("compare_all", c_bool),
    ]


class tt_idx_opts(Structure):
    _fields_ = [
        ("opts_size", c_size_t),
        ("x", c_char_p),
        ("y", c_char_p),
        ("batch", c_int),
        ("no_shuffle", c_bool),
        ("seed", c_int64),
        ("workers", c_int),
        ("prefetch", c_int),
        ("compare_all", c_bool),
    ]


class tt_cifar10_opts(Structure):
    _fields_ = [
        ("opts_size", c_size_t),
        ("split", c_char_p),
        ("dir", c_char_p),
        ("batch", c_int),
        ("no_shuffle", c_bool),
        ("seed", c_int64),
        ("workers", c_int),
        ("prefetch", c_int),
        ("compare_all", c_bool),
    ]


class tt_images_opts(Structure):
    _fields_ = [
        ("opts_size", c_size_t),
        ("dir", c_char_p),
        ("file", c_char_p),
        ("size", c_int * 2),
        ("channels", c_int),
        ("fit", c_int),
        ("scaled", c_bool),
        ("corrupt", c_int),
        ("words", c_char_p),
        ("max_megapixels", c_int64),
        ("batch", c_int),
        ("no_shuffle", c_bool),
        ("seed", c_int64),
        ("workers", c_int),
        ("prefetch", c_int),
        ("compare_all", c_bool),
        ("cache", c_bool),
    ]
    _enums_ = {"fit": "tt_images_fit", "corrupt": "tt_images_corrupt"}


class tt_csv_opts(Structure):
    _fields_ = [
        ("opts_size", c_size_t),
        ("file", c_char_p),
        ("y", c_char_p),
        ("x", c_char_p),
        ("classes", c_bool),
        ("words", c_char_p),
        ("no_header", c_bool),
        ("comma", c_char_p),
        ("first", c_int64),
        ("count", c_int64),
        ("batch", c_int),
        ("no_shuffle", c_bool),
        ("seed", c_int64),
        ("workers", c_int),
        ("prefetch", c_int),
        ("compare_all", c_bool),
        ("skip", c_char_p),
        ("categories", c_char_p),
        ("hash", c_int),
        ("dates", c_char_p),
        ("missing", c_int),
        ("unseen", c_int),
        ("quote", c_char_p),
        ("decimal", c_char_p),
        ("tables", c_char_p),
        ("window", c_int),
        ("horizon", c_int),
        ("stride", c_int),
    ]
    _enums_ = {"missing": "tt_csv_missing", "unseen": "tt_csv_unseen"}


class tt_jsonl_opts(Structure):
    _fields_ = [
        ("opts_size", c_size_t),
        ("file", c_char_p),
        ("y", c_char_p),
        ("x", c_char_p),
        ("classes", c_bool),
        ("words", c_char_p),
        ("batch", c_int),
        ("no_shuffle", c_bool),
        ("seed", c_int64),
        ("workers", c_int),
        ("prefetch", c_int),
        ("compare_all", c_bool),
    ]


class tt_tfrecord_opts(Structure):
    _fields_ = [
        ("opts_size", c_size_t),
        ("file", c_char_p),
        ("x", c_char_p),
        ("y", c_char_p),
        ("shape", tt_shape),
        ("classes", c_int64),
        ("size", c_int * 2),
        ("channels", c_int),
        ("fit", c_int),
        ("batch", c_int),
        ("no_shuffle", c_bool),
        ("seed", c_int64),
        ("workers", c_int),
        ("prefetch", c_int),
        ("compare_all", c_bool),
    ]
    _enums_ = {"fit": "tt_images_fit"}


class tt_webdataset_opts(Structure):
    _fields_ = [
        ("opts_size", c_size_t),
        ("file", c_char_p),
        ("x", c_char_p),
        ("y", c_char_p),
        ("size", c_int * 2),
        ("channels", c_int),
        ("words", c_char_p),
        ("fit", c_int),
        ("scaled", c_bool),
        ("batch", c_int),
        ("no_shuffle", c_bool),
        ("seed", c_int64),
        ("workers", c_int),
        ("prefetch", c_int),
        ("compare_all", c_bool),
    ]
    _enums_ = {"fit": "tt_images_fit"}


class tt_npy_opts(Structure):
    _fields_ = [
        ("opts_size", c_size_t),
        ("x", c_char_p),
        ("y", c_char_p),
        ("file", c_char_p),
        ("batch", c_int),
        ("no_shuffle", c_bool),
        ("seed", c_int64),
        ("workers", c_int),
        ("prefetch", c_int),
        ("compare_all", c_bool),
    ]


class tt_tokens_opts(Structure):
    _fields_ = [
        ("opts_size", c_size_t),
        ("file", c_char_p),
        ("bits", c_int),
        ("context", c_int),
        ("stride", c_int),
        ("vocab", c_int64),
        ("from", c_double),
        ("to", c_double),
        ("batch", c_int),
        ("no_shuffle", c_bool),
        ("seed", c_int64),
        ("workers", c_int),
        ("prefetch", c_int),
        ("compare_all", c_bool),
    ]


class tt_text_opts(Structure):
    _fields_ = [
        ("opts_size", c_size_t),
        ("file", c_char_p),
        ("level", c_char_p),
        ("context", c_int),
        ("stride", c_int),
        ("from", c_double),
        ("to", c_double),
        ("batch", c_int),
        ("no_shuffle", c_bool),
        ("seed", c_int64),
        ("workers", c_int),
        ("prefetch", c_int),
        ("compare_all", c_bool),
    ]


class tt_array(Structure):
    _fields_ = [
        ("opts_size", c_size_t),
        ("name", c_char_p),
        ("data", c_void_p),
        ("dtype", c_int),
        ("shape", tt_shape),
    ]
    _enums_ = {"dtype": "tt_dtype"}


class tt_memory_opts(Structure):
    _fields_ = [
        ("opts_size", c_size_t),
        ("x", c_void_p),
        ("y", c_void_p),
        ("x_dtype", c_int),
        ("y_dtype", c_int),
        ("x_shape", tt_shape),
        ("y_shape", tt_shape),
        ("count", c_int64),
        ("batch", c_int),
        ("no_shuffle", c_bool),
        ("seed", c_int64),
        ("workers", c_int),
        ("prefetch", c_int),
        ("compare_all", c_bool),
        ("fields", c_void_p * 16),
    ]
    _enums_ = {"x_dtype": "tt_dtype", "y_dtype": "tt_dtype"}
    _points_ = {"fields": "tt_array"}


class tt_data_split_opts(Structure):
    _fields_ = [
        ("opts_size", c_size_t),
        ("fraction", c_double),
        ("rows", c_int64),
        ("stratify", c_char_p),
        ("group", c_char_p),
        ("take", c_int),
        ("seed", c_int64),
    ]
    _enums_ = {"take": "tt_split_take"}


class tt_transform_opts(Structure):
    _fields_ = [
        ("opts_size", c_size_t),
        ("field", c_char_p),
        ("mean", c_double),
        ("scale", c_double),
        ("means", c_char_p),
        ("scales", c_char_p),
        ("depth", c_int64),
        ("size", c_int * 2),
        ("pad", c_int),
        ("shift", c_int),
        ("smoothing", c_double),
        ("fit", c_int),
        ("like", c_void_p),
        ("value", c_double),
        ("min_scale", c_double),
        ("max_scale", c_double),
        ("max_aspect", c_double),
        ("degrees", c_double),
        ("zoom", c_double),
        ("brightness", c_double),
        ("contrast", c_double),
        ("saturation", c_double),
        ("hue", c_double),
        ("sigma", c_double),
        ("alpha", c_double),
        ("probability", c_double),
        ("vertical", c_bool),
    ]
    _enums_ = {"fit": "tt_normalise"}


class tt_batch_data(Structure):
    _fields_ = [
        ("rows", c_int64),
        ("epoch", c_int64),
        ("first", c_int64),
        ("fields", c_void_p * 16),
    ]


class tt_feed_opts(Structure):
    _fields_ = [
        ("opts_size", c_size_t),
        ("dtype", c_int),
        ("shape", tt_shape),
        ("name", c_char_p),
    ]
    _enums_ = {"dtype": "tt_dtype"}


class tt_init(Structure):
    _fields_ = [
        ("kind", c_int),
        ("a", c_double),
        ("b", c_double),
    ]
    _enums_ = {"kind": "tt_init_kind"}


class tt_variable_opts(Structure):
    _fields_ = [
        ("opts_size", c_size_t),
        ("dtype", c_int),
        ("shape", tt_shape),
        ("init", tt_init),
        ("name", c_char_p),
        ("no_train", c_bool),
    ]
    _enums_ = {"dtype": "tt_dtype"}


class tt_reduce_opts(Structure):
    _fields_ = [
        ("opts_size", c_size_t),
        ("axis", c_int),
        ("axes", tt_axes),
        ("keep_dims", c_bool),
    ]


class tt_matmul_opts(Structure):
    _fields_ = [
        ("opts_size", c_size_t),
        ("transpose_a", c_bool),
        ("transpose_b", c_bool),
        ("bias", c_void_p),
        ("act", c_int),
    ]
    _enums_ = {"act": "tt_act"}


class tt_conv2d_opts(Structure):
    _fields_ = [
        ("opts_size", c_size_t),
        ("stride", c_int * 2),
        ("padding", c_int),
        ("pad", c_int * 4),
        ("bias", c_void_p),
        ("act", c_int),
        ("dilation", c_int * 2),
        ("groups", c_int),
    ]
    _enums_ = {"padding": "tt_padding", "act": "tt_act"}


class tt_conv2d_transpose_opts(Structure):
    _fields_ = [
        ("opts_size", c_size_t),
        ("stride", c_int * 2),
        ("padding", c_int),
        ("pad", c_int * 4),
        ("extra", c_int * 2),
        ("bias", c_void_p),
        ("act", c_int),
    ]
    _enums_ = {"padding": "tt_padding", "act": "tt_act"}


class tt_pool_opts(Structure):
    _fields_ = [
        ("opts_size", c_size_t),
        ("size", c_int * 2),
        ("stride", c_int * 2),
        ("padding", c_int),
        ("pad", c_int * 4),
    ]
    _enums_ = {"padding": "tt_padding"}


class tt_norm_opts(Structure):
    _fields_ = [
        ("opts_size", c_size_t),
        ("eps", c_double),
    ]


class tt_batch_norm_opts(Structure):
    _fields_ = [
        ("opts_size", c_size_t),
        ("eps", c_double),
        ("momentum", c_double),
        ("infer", c_bool),
        ("act", c_int),
        ("residual", c_void_p),
        ("new_mean", c_void_p),
        ("new_var", c_void_p),
        ("over", c_int),
    ]
    _enums_ = {"act": "tt_act", "over": "tt_over"}


class tt_batch_norm_vars(Structure):
    _fields_ = [
        ("gamma", c_void_p),
        ("beta", c_void_p),
        ("mean", c_void_p),
        ("var", c_void_p),
    ]


class tt_cross_entropy_opts(Structure):
    _fields_ = [
        ("opts_size", c_size_t),
        ("smoothing", c_double),
        ("has_ignore", c_bool),
        ("ignore", c_int64),
    ]


class tt_attention_opts(Structure):
    _fields_ = [
        ("opts_size", c_size_t),
        ("heads", c_int),
        ("kv_heads", c_int),
        ("causal", c_bool),
        ("scale", c_double),
        ("mask", c_void_p),
        ("window", c_int64),
        ("alibi", c_bool),
    ]


class tt_update_opts(Structure):
    _fields_ = [
        ("opts_size", c_size_t),
        ("lr_scale", c_double),
        ("weight_decay", c_double),
        ("momentum", c_double),
        ("nesterov", c_bool),
        ("beta1", c_double),
        ("beta2", c_double),
        ("eps", c_double),
        ("initial", c_double),
        ("scale", c_void_p),
        ("exact", c_bool),
        ("l1", c_double),
        ("l2", c_double),
    ]


class tt_update_ema_opts(Structure):
    _fields_ = [
        ("opts_size", c_size_t),
        ("decay", c_double),
        ("scale", c_void_p),
    ]


class tt_update_scale_opts(Structure):
    _fields_ = [
        ("opts_size", c_size_t),
        ("squares", c_void_p),
        ("n_squares", c_int),
        ("clip", c_double),
        ("guard", c_bool),
        ("norm", c_void_p),
        ("go", c_void_p),
        ("largest", c_void_p),
        ("n_largest", c_int),
        ("square", c_double),
        ("step", c_double),
    ]


class tt_update_loss_scale_opts(Structure):
    _fields_ = [
        ("opts_size", c_size_t),
        ("every", c_int64),
        ("most", c_double),
        ("used", c_void_p),
    ]


class tt_sequential_opts(Structure):
    _fields_ = [
        ("opts_size", c_size_t),
        ("input", c_int64 * 8),
        ("dtype", c_int),
        ("name", c_char_p),
    ]
    _enums_ = {"dtype": "tt_dtype"}


class tt_input_opts(Structure):
    _fields_ = [
        ("opts_size", c_size_t),
        ("shape", c_int64 * 8),
        ("dtype", c_int),
        ("name", c_char_p),
    ]
    _enums_ = {"dtype": "tt_dtype"}


class tt_layer_dense_opts(Structure):
    _fields_ = [
        ("opts_size", c_size_t),
        ("units", c_int),
        ("act", c_int),
        ("no_bias", c_bool),
        ("init", tt_init),
        ("name", c_char_p),
        ("from", c_void_p * 8),
        ("share", c_void_p),
    ]
    _enums_ = {"act": "tt_act"}


class tt_layer_conv2d_opts(Structure):
    _fields_ = [
        ("opts_size", c_size_t),
        ("filters", c_int),
        ("kernel", c_int * 2),
        ("stride", c_int * 2),
        ("padding", c_int),
        ("pad", c_int * 2),
        ("act", c_int),
        ("no_bias", c_bool),
        ("init", tt_init),
        ("dilation", c_int * 2),
        ("groups", c_int),
        ("name", c_char_p),
        ("from", c_void_p * 8),
        ("share", c_void_p),
    ]
    _enums_ = {"padding": "tt_padding", "act": "tt_act"}


class tt_layer_max_pool2d_opts(Structure):
    _fields_ = [
        ("opts_size", c_size_t),
        ("size", c_int * 2),
        ("stride", c_int * 2),
        ("padding", c_int),
        ("pad", c_int * 2),
        ("name", c_char_p),
        ("from", c_void_p * 8),
        ("share", c_void_p),
    ]
    _enums_ = {"padding": "tt_padding"}


class tt_plain_opts(Structure):
    _fields_ = [
        ("opts_size", c_size_t),
        ("name", c_char_p),
        ("from", c_void_p * 8),
        ("share", c_void_p),
    ]


class tt_layer_concat_opts(Structure):
    _fields_ = [
        ("opts_size", c_size_t),
        ("axis", c_int),
        ("name", c_char_p),
        ("from", c_void_p * 8),
        ("share", c_void_p),
    ]


class tt_layer_reshape_opts(Structure):
    _fields_ = [
        ("opts_size", c_size_t),
        ("shape", tt_shape),
        ("name", c_char_p),
        ("from", c_void_p * 8),
        ("share", c_void_p),
    ]


class tt_layer_permute_opts(Structure):
    _fields_ = [
        ("opts_size", c_size_t),
        ("order", tt_ints),
        ("name", c_char_p),
        ("from", c_void_p * 8),
        ("share", c_void_p),
    ]


class tt_layer_dropout_opts(Structure):
    _fields_ = [
        ("opts_size", c_size_t),
        ("rate", c_double),
        ("name", c_char_p),
        ("from", c_void_p * 8),
        ("share", c_void_p),
    ]


class tt_layer_activation_opts(Structure):
    _fields_ = [
        ("opts_size", c_size_t),
        ("act", c_int),
        ("name", c_char_p),
        ("from", c_void_p * 8),
        ("share", c_void_p),
    ]
    _enums_ = {"act": "tt_act"}


class tt_layer_batch_norm_opts(Structure):
    _fields_ = [
        ("opts_size", c_size_t),
        ("eps", c_double),
        ("momentum", c_double),
        ("act", c_int),
        ("zero_scale", c_bool),
        ("over", c_int),
        ("name", c_char_p),
        ("from", c_void_p * 8),
        ("share", c_void_p),
    ]
    _enums_ = {"act": "tt_act", "over": "tt_over"}


class tt_layer_layer_norm_opts(Structure):
    _fields_ = [
        ("opts_size", c_size_t),
        ("eps", c_double),
        ("no_bias", c_bool),
        ("name", c_char_p),
        ("from", c_void_p * 8),
        ("share", c_void_p),
    ]


class tt_layer_embedding_opts(Structure):
    _fields_ = [
        ("opts_size", c_size_t),
        ("vocab", c_int64),
        ("width", c_int),
        ("init", tt_init),
        ("name", c_char_p),
        ("from", c_void_p * 8),
        ("share", c_void_p),
    ]


class tt_layer_positional_opts(Structure):
    _fields_ = [
        ("opts_size", c_size_t),
        ("fixed", c_bool),
        ("init", tt_init),
        ("name", c_char_p),
        ("from", c_void_p * 8),
        ("share", c_void_p),
    ]


class tt_layer_attention_opts(Structure):
    _fields_ = [
        ("opts_size", c_size_t),
        ("heads", c_int),
        ("kv_heads", c_int),
        ("causal", c_bool),
        ("no_bias", c_bool),
        ("dropout", c_double),
        ("name", c_char_p),
        ("from", c_void_p * 8),
        ("share", c_void_p),
    ]


class tt_layer_transformer_block_opts(Structure):
    _fields_ = [
        ("opts_size", c_size_t),
        ("heads", c_int),
        ("kv_heads", c_int),
        ("hidden", c_int),
        ("no_causal", c_bool),
        ("no_bias", c_bool),
        ("rms", c_bool),
        ("act", c_int),
        ("dropout", c_double),
        ("depth", c_double),
        ("name", c_char_p),
        ("from", c_void_p * 8),
        ("share", c_void_p),
    ]
    _enums_ = {"act": "tt_act"}


class tt_layer_custom_opts(Structure):
    _fields_ = [
        ("opts_size", c_size_t),
        ("fn", tt_layer_fn),
        ("user", c_void_p),
        ("name", c_char_p),
        ("from", c_void_p * 8),
        ("share", c_void_p),
    ]


class tt_layer_mlp_opts(Structure):
    _fields_ = [
        ("opts_size", c_size_t),
        ("units", tt_ints),
        ("act", c_int),
        ("dropout", c_double),
        ("name", c_char_p),
        ("from", c_void_p * 8),
        ("share", c_void_p),
    ]
    _enums_ = {"act": "tt_act"}


class tt_layer_lenet_opts(Structure):
    _fields_ = [
        ("opts_size", c_size_t),
        ("classes", c_int),
        ("name", c_char_p),
        ("from", c_void_p * 8),
        ("share", c_void_p),
    ]


class tt_layer_resnet_opts(Structure):
    _fields_ = [
        ("opts_size", c_size_t),
        ("depth", c_int),
        ("classes", c_int),
        ("width", c_int),
        ("small", c_bool),
        ("over", c_int),
        ("name", c_char_p),
        ("from", c_void_p * 8),
        ("share", c_void_p),
    ]
    _enums_ = {"over": "tt_over"}


class tt_layer_gpt_opts(Structure):
    _fields_ = [
        ("opts_size", c_size_t),
        ("layers", c_int),
        ("heads", c_int),
        ("width", c_int),
        ("vocab", c_int64),
        ("dropout", c_double),
        ("no_bias", c_bool),
        ("untied", c_bool),
        ("name", c_char_p),
        ("from", c_void_p * 8),
        ("share", c_void_p),
    ]


class tt_weight_info(Structure):
    _fields_ = [
        ("name", c_char_p),
        ("dtype", c_int),
        ("shape", tt_shape),
        ("trains", c_bool),
    ]
    _enums_ = {"dtype": "tt_dtype"}


class tt_catalog_entry(Structure):
    _fields_ = [
        ("name", c_char_p),
        ("help", c_char_p),
        ("main", c_char_p),
        ("n_options", c_int),
    ]


class tt_catalog_option(Structure):
    _fields_ = [
        ("name", c_char_p),
        ("help", c_char_p),
        ("form", c_int),
        ("type", c_char_p),
        ("value", c_char_p),
        ("is_required", c_bool),
        ("is_from_data", c_bool),
        ("has_bounds", c_bool),
        ("min", c_double),
        ("max", c_double),
        ("choices", c_void_p),
        ("group", c_int),
        ("section", c_char_p),
    ]
    _enums_ = {"form": "tt_catalog_form"}


class tt_catalog_layer_opts(Structure):
    _fields_ = [
        ("opts_size", c_size_t),
        ("options", c_char_p),
        ("name", c_char_p),
        ("from", c_void_p * 8),
        ("share", c_void_p),
    ]


class tt_catalog_source_opts(Structure):
    _fields_ = [
        ("opts_size", c_size_t),
        ("options", c_char_p),
        ("batch", c_int),
        ("no_shuffle", c_bool),
        ("seed", c_int64),
        ("workers", c_int),
        ("prefetch", c_int),
        ("compare_all", c_bool),
    ]


class tt_tasks(Structure):
    _fields_ = [
        ("opts_size", c_size_t),
        ("n", c_int),
        ("self", c_int),
        ("names", c_void_p),
        ("addresses", c_void_p),
        ("bind", c_char_p),
        ("secret", c_void_p),
        ("host", c_char_p),
        ("job", c_char_p),
        ("transport", c_char_p),
        ("no_encryption", c_bool),
        ("rendezvous_ms", c_int64),
        ("heartbeat_ms", c_int64),
        ("loss_ms", c_int64),
        ("stop", c_void_p),
    ]


class tt_task(Structure):
    _fields_ = [
        ("job", c_char_p),
        ("index", c_int),
        ("address", c_char_p),
        ("n_processes", c_int),
        ("first_rank", c_int),
    ]


class tt_cluster(Structure):
    _fields_ = [
        ("source", c_int),
        ("is_ignored", c_bool),
        ("found_in", c_char_p),
        ("text", c_char_p),
        ("tasks", c_void_p),
        ("n_tasks", c_int),
        ("task", c_int),
        ("rank", c_int),
        ("n_processes", c_int),
        ("local_rank", c_int),
        ("n_local", c_int),
        ("launcher", c_char_p),
        ("id", c_char_p),
        ("leader_derived", c_bool),
    ]
    _enums_ = {"source": "tt_cluster_source"}
    _points_ = {"tasks": "tt_task"}


class tt_session_opts(Structure):
    _fields_ = [
        ("opts_size", c_size_t),
        ("hashes", c_bool),
        ("trace", c_bool),
        ("no_fuse", c_bool),
        ("dump", c_char_p),
        ("no_fold", c_bool),
        ("store", c_void_p),
        ("recompute", c_char_p),
        ("bucket_hook", tt_bucket_fn),
        ("bucket_user", c_void_p),
        ("target", c_char_p),
        ("key", c_char_p),
        ("container", c_char_p),
        ("isolate", c_bool),
    ]


class tt_feed_value(Structure):
    _fields_ = [
        ("tensor", c_void_p),
        ("data", c_void_p),
        ("shape", tt_shape),
        ("dtype", c_int),
    ]
    _enums_ = {"dtype": "tt_dtype"}


class tt_fetch(Structure):
    _fields_ = [
        ("tensor", c_void_p),
        ("data", c_void_p),
        ("bytes", c_size_t),
    ]


class tt_batch(Structure):
    _fields_ = [
        ("first_row", c_int64),
        ("global_rows", c_int64),
        ("lanes", c_int),
    ]


class tt_run_opts(Structure):
    _fields_ = [
        ("opts_size", c_size_t),
        ("feeds", c_void_p),
        ("n_feeds", c_int),
        ("fetches", c_void_p),
        ("n_fetches", c_int),
        ("targets", c_void_p),
        ("n_targets", c_int),
        ("batch", tt_batch),
        ("step", c_int64),
        ("lr", c_float),
        ("grad_scale", c_float),
        ("micro", c_int),
        ("next", c_void_p),
        ("n_next", c_int),
        ("unapplied", c_int64),
    ]
    _points_ = {"feeds": "tt_feed_value", "fetches": "tt_fetch", "next": "tt_feed_value"}


class tt_plan_opts(Structure):
    _fields_ = [
        ("opts_size", c_size_t),
        ("targets", c_void_p),
        ("n_targets", c_int),
        ("rows", c_int64),
        ("form", c_int),
        ("n_fetched", c_int),
        ("micro", c_int),
    ]
    _enums_ = {"form": "tt_plan_form"}


class tt_plan_memory(Structure):
    _fields_ = [
        ("variables", c_size_t),
        ("activations", c_size_t),
        ("lower_bound", c_size_t),
        ("weights", c_size_t),
        ("gradients", c_size_t),
        ("optimizer", c_size_t),
        ("kept", c_size_t),
        ("workspace", c_size_t),
        ("total", c_size_t),
        ("limit", c_size_t),
    ]


class tt_part(Structure):
    _fields_ = [
        ("batch", tt_batch),
        ("rows", c_int64),
        ("first_lane", c_int),
        ("n_lanes", c_int),
        ("n_sums", c_int),
    ]


class tt_comm_open_opts(Structure):
    _fields_ = [
        ("opts_size", c_size_t),
        ("members", c_int),
        ("transport", c_char_p),
        ("deadline_ms", c_int64),
        ("ranks", c_void_p),
        ("n_ranks", c_int),
    ]


class tt_member(Structure):
    _fields_ = [
        ("in", c_void_p),
        ("out", c_void_p),
        ("count", c_int64),
        ("first_lane", c_int),
        ("n_lanes", c_int),
    ]


class tt_comm_opts(Structure):
    _fields_ = [
        ("opts_size", c_size_t),
        ("dtype", c_int),
        ("combine", c_int),
        ("fast", c_bool),
        ("factor", c_double),
        ("lanes", c_int),
        ("round", c_int),
        ("root", c_int),
        ("counts", c_void_p),
        ("received", c_void_p),
        ("handle", c_void_p),
        ("tag", c_int),
        ("member", c_int),
    ]
    _enums_ = {"dtype": "tt_dtype", "combine": "tt_combine", "round": "tt_dtype"}


class tt_bytes(Structure):
    _fields_ = [
        ("data", c_void_p),
        ("bytes", c_size_t),
    ]


class tt_gradient(Structure):
    _fields_ = [
        ("weight", c_char_p),
        ("shape", tt_shape),
        ("count", c_int64),
        ("data", c_void_p),
    ]


class tt_bucket(Structure):
    _fields_ = [
        ("size", c_size_t),
        ("comm", c_void_p),
        ("index", c_int),
        ("n_buckets", c_int),
        ("step", c_int64),
        ("n_replicas", c_int),
        ("n_gradients", c_int),
        ("gradients", c_void_p),
    ]
    _points_ = {"gradients": "tt_gradient"}


class tt_device_name(Structure):
    _fields_ = [
        ("job", c_char * 32),
        ("replica", c_int),
        ("task", c_int),
        ("type", c_char * 16),
        ("index", c_int),
    ]


class tt_device_info(Structure):
    _fields_ = [
        ("name", c_char * 32),
        ("physical", c_char * 32),
        ("model", c_char * 64),
        ("threads", c_int),
        ("limit", c_size_t),
        ("variables", c_size_t),
        ("arena", c_size_t),
        ("overhead", c_size_t),
    ]


class tt_loss(Structure):
    _fields_ = [
        ("opts_size", c_size_t),
        ("kind", c_int),
        ("weight", c_double),
        ("smoothing", c_double),
        ("has_ignore", c_bool),
        ("ignore", c_int64),
        ("delta", c_double),
        ("output", c_char_p),
        ("target", c_char_p),
        ("fn", tt_loss_fn),
        ("user", c_void_p),
        ("has_target", c_bool),
        ("target_dtype", c_int),
        ("target_shape", tt_shape),
        ("gamma", c_double),
        ("alpha", c_double),
        ("no_log", c_bool),
        ("sample_weight", c_char_p),
        ("class_weight", c_char_p),
    ]
    _enums_ = {"kind": "tt_loss_kind", "target_dtype": "tt_dtype"}


class tt_metric_inputs(Structure):
    _fields_ = [
        ("output", c_void_p),
        ("logits", c_void_p),
        ("target", c_void_p),
        ("mask", c_void_p),
    ]


class tt_metric(Structure):
    _fields_ = [
        ("opts_size", c_size_t),
        ("name", c_char_p),
        ("build", tt_metric_build_fn),
        ("value", tt_metric_value_fn),
        ("user", c_void_p),
        ("lower_is_better", c_bool),
        ("output", c_char_p),
    ]


class tt_schedule(Structure):
    _fields_ = [
        ("opts_size", c_size_t),
        ("kind", c_int),
        ("warmup", c_int64),
        ("steps", c_int64),
        ("final", c_double),
        ("factor", c_double),
        ("every", c_int64),
        ("peak", c_double),
        ("fn", tt_schedule_fn),
        ("user", c_void_p),
        ("pieces", c_char_p),
        ("power", c_double),
        ("grow", c_double),
        ("decay", c_double),
        ("shape", c_int),
    ]
    _enums_ = {"kind": "tt_schedule_kind", "shape": "tt_decay_shape"}


class tt_group(Structure):
    _fields_ = [
        ("opts_size", c_size_t),
        ("match", c_char_p),
        ("lr_scale", c_double),
        ("no_decay", c_bool),
        ("weight_decay", c_double),
        ("l1", c_double),
        ("max_norm", c_double),
        ("non_negative", c_bool),
    ]


class tt_optimizer(Structure):
    _fields_ = [
        ("opts_size", c_size_t),
        ("kind", c_int),
        ("lr", c_double),
        ("momentum", c_double),
        ("nesterov", c_bool),
        ("beta1", c_double),
        ("beta2", c_double),
        ("eps", c_double),
        ("initial", c_double),
        ("weight_decay", c_double),
        ("no_decay", c_char_p),
        ("clip_value", c_double),
        ("clip_norm", c_double),
        ("clip_global", c_double),
        ("ema", c_double),
        ("schedule", c_void_p),
        ("groups", c_void_p * 16),
        ("exact", c_bool),
        ("l1", c_double),
        ("l2", c_double),
        ("trust", c_double),
        ("layer_decay", c_double),
    ]
    _enums_ = {"kind": "tt_optimizer_kind"}
    _points_ = {"schedule": "tt_schedule", "groups": "tt_group"}


class tt_compile_opts(Structure):
    _fields_ = [
        ("opts_size", c_size_t),
        ("loss", c_int),
        ("losses", c_void_p * 8),
        ("optimizer", c_void_p),
        ("metrics", c_int),
        ("top_k", c_int),
        ("freeze", c_char_p),
        ("target_dtype", c_int),
        ("dense_targets", c_bool),
        ("precision", c_int),
        ("recompute", c_char_p),
        ("own_metrics", c_void_p * 8),
        ("bucket_hook", tt_bucket_fn),
        ("bucket_user", c_void_p),
        ("thresholds", c_int),
        ("threshold", c_double),
    ]
    _enums_ = {"loss": "tt_loss_kind", "target_dtype": "tt_dtype", "precision": "tt_precision"}
    _points_ = {"losses": "tt_loss", "optimizer": "tt_optimizer", "own_metrics": "tt_metric"}


class tt_progress(Structure):
    _fields_ = [
        ("step", c_int64),
        ("steps", c_int64),
        ("epoch", c_int64),
        ("epochs", c_int64),
        ("rows", c_int64),
        ("epoch_rows", c_int64),
        ("loss", c_double),
        ("n_metrics", c_int),
        ("names", c_char_p * 16),
        ("metrics", c_double * 16),
        ("lr", c_double),
        ("samples_per_second", c_double),
        ("seconds", c_double),
        ("has_validation", c_bool),
        ("validation_loss", c_double),
        ("validation", c_double * 16),
        ("step_loss", c_double),
        ("gradient_norm", c_double),
        ("loss_scale", c_double),
        ("is_skipped", c_bool),
        ("step_metrics", c_double * 16),
    ]


class tt_callback(Structure):
    _fields_ = [
        ("opts_size", c_size_t),
        ("at", c_int),
        ("every", c_int64),
        ("fn", tt_callback_fn),
        ("user", c_void_p),
    ]
    _enums_ = {"at": "tt_moment"}


class tt_watch(Structure):
    _fields_ = [
        ("opts_size", c_size_t),
        ("value", c_char_p),
        ("max", c_bool),
        ("patience", c_int),
        ("min_delta", c_double),
        ("factor", c_double),
        ("min_lr", c_double),
        ("restore", c_bool),
    ]


class tt_fit_opts(Structure):
    _fields_ = [
        ("opts_size", c_size_t),
        ("epochs", c_int64),
        ("steps", c_int64),
        ("batch", c_int64),
        ("accumulate", c_int64),
        ("validate", c_void_p),
        ("validate_every", c_int64),
        ("validate_rows", c_int64),
        ("callbacks", c_void_p * 16),
        ("early_stop", c_void_p),
        ("plateau", c_void_p),
        ("nan", c_int),
        ("checkpoints", c_char_p),
        ("save_every", c_int64),
        ("keep", c_int),
        ("best", c_void_p),
        ("resume", c_bool),
        ("job", c_char_p),
        ("profile", c_int64),
        ("hashes", c_bool),
        ("trace", c_bool),
        ("check_every", c_int64),
        ("restart", c_bool),
        ("progress", c_void_p),
        ("divergence", c_double),
    ]
    _enums_ = {"nan": "tt_nan"}
    _points_ = {"callbacks": "tt_callback", "early_stop": "tt_watch", "plateau": "tt_watch", "best": "tt_watch"}


class tt_fit_report(Structure):
    _fields_ = [
        ("last", c_void_p),
        ("steps", c_int64),
        ("epochs", c_int64),
        ("skipped", c_int64),
        ("first_step_seconds", c_double),
        ("step_ms_median", c_double),
        ("seconds", c_double),
        ("compute_seconds", c_double),
        ("data_seconds", c_double),
        ("checkpoint_seconds", c_double),
        ("validate_seconds", c_double),
        ("samples_per_second", c_double),
        ("weights", tt_hash),
        ("is_stopped", c_bool),
        ("saved", c_char_p),
        ("slowest", c_int),
        ("ended", c_int),
        ("total_steps", c_int64),
        ("best_name", c_char_p),
        ("best", c_double),
    ]
    _enums_ = {"ended": "tt_fit_end"}
    _points_ = {"last": "tt_progress"}


class tt_device_times(Structure):
    _fields_ = [
        ("name", c_char * 32),
        ("seconds", c_double),
        ("compute", c_double),
        ("communication", c_double),
        ("waiting", c_double),
        ("waiting_for", c_void_p),
        ("data", c_double),
        ("idle", c_double),
    ]


class tt_evaluate_opts(Structure):
    _fields_ = [
        ("opts_size", c_size_t),
        ("batch", c_int64),
        ("rows", c_int64),
        ("ema", c_bool),
        ("accumulate", c_int64),
        ("out_size", c_size_t),
    ]


class tt_evaluation(Structure):
    _fields_ = [
        ("loss", c_double),
        ("rows", c_int64),
        ("n_metrics", c_int),
        ("names", c_char_p * 16),
        ("metrics", c_double * 16),
    ]


class tt_predict_opts(Structure):
    _fields_ = [
        ("opts_size", c_size_t),
        ("batch", c_int64),
        ("inputs", c_void_p * 8),
        ("outputs", c_void_p * 8),
        ("raw", c_bool),
    ]


class tt_train_step_opts(Structure):
    _fields_ = [
        ("opts_size", c_size_t),
        ("lr", c_double),
        ("out_size", c_size_t),
    ]


class tt_mean_factors(Structure):
    _fields_ = [
        ("seed", c_float),
        ("scale", c_float),
    ]


class tt_load_opts(Structure):
    _fields_ = [
        ("opts_size", c_size_t),
        ("partial", c_bool),
        ("map", c_char_p),
        ("only", c_char_p),
        ("layout", c_int),
    ]
    _enums_ = {"layout": "tt_weight_layout"}


class tt_job_opts(Structure):
    _fields_ = [
        ("opts_size", c_size_t),
        ("sets", c_void_p),
        ("n_sets", c_int),
        ("no_env", c_bool),
    ]


class tt_job_parts(Structure):
    _fields_ = [
        ("train", c_void_p),
        ("validate", c_void_p),
        ("test", c_void_p),
        ("model", c_void_p),
        ("fit", c_void_p),
    ]
    _points_ = {"fit": "tt_fit_opts"}


class tt_layer_glu_opts(Structure):
    _fields_ = [
        ("opts_size", c_size_t),
        ("act", c_int),
        ("name", c_char_p),
        ("from", c_void_p * 8),
        ("share", c_void_p),
    ]
    _enums_ = {"act": "tt_act"}


class tt_layer_swiglu_opts(Structure):
    _fields_ = [
        ("opts_size", c_size_t),
        ("hidden", c_int),
        ("units", c_int),
        ("no_bias", c_bool),
        ("init", tt_init),
        ("name", c_char_p),
        ("from", c_void_p * 8),
        ("share", c_void_p),
    ]


class tt_layer_prelu_opts(Structure):
    _fields_ = [
        ("opts_size", c_size_t),
        ("slope", c_double),
        ("shared", c_bool),
        ("name", c_char_p),
        ("from", c_void_p * 8),
        ("share", c_void_p),
    ]


class tt_layer_dot_opts(Structure):
    _fields_ = [
        ("opts_size", c_size_t),
        ("normalise", c_bool),
        ("name", c_char_p),
        ("from", c_void_p * 8),
        ("share", c_void_p),
    ]


class tt_layer_repeat_opts(Structure):
    _fields_ = [
        ("opts_size", c_size_t),
        ("times", c_int),
        ("name", c_char_p),
        ("from", c_void_p * 8),
        ("share", c_void_p),
    ]


class tt_layer_zero_pad_opts(Structure):
    _fields_ = [
        ("opts_size", c_size_t),
        ("pad", tt_ints),
        ("name", c_char_p),
        ("from", c_void_p * 8),
        ("share", c_void_p),
    ]


class tt_layer_upsample2d_opts(Structure):
    _fields_ = [
        ("opts_size", c_size_t),
        ("factor", c_int * 2),
        ("mode", c_int),
        ("name", c_char_p),
        ("from", c_void_p * 8),
        ("share", c_void_p),
    ]
    _enums_ = {"mode": "tt_upsample_mode"}


class tt_layer_pixel_shuffle_opts(Structure):
    _fields_ = [
        ("opts_size", c_size_t),
        ("factor", c_int),
        ("name", c_char_p),
        ("from", c_void_p * 8),
        ("share", c_void_p),
    ]


class tt_layer_gaussian_noise_opts(Structure):
    _fields_ = [
        ("opts_size", c_size_t),
        ("deviation", c_double),
        ("name", c_char_p),
        ("from", c_void_p * 8),
        ("share", c_void_p),
    ]


class tt_layer_group_norm_opts(Structure):
    _fields_ = [
        ("opts_size", c_size_t),
        ("groups", c_int),
        ("eps", c_double),
        ("name", c_char_p),
        ("from", c_void_p * 8),
        ("share", c_void_p),
    ]


class tt_layer_conv1d_opts(Structure):
    _fields_ = [
        ("opts_size", c_size_t),
        ("filters", c_int),
        ("kernel", c_int),
        ("stride", c_int),
        ("padding", c_int),
        ("pad", c_int),
        ("causal", c_bool),
        ("dilation", c_int),
        ("groups", c_int),
        ("act", c_int),
        ("no_bias", c_bool),
        ("init", tt_init),
        ("name", c_char_p),
        ("from", c_void_p * 8),
        ("share", c_void_p),
    ]
    _enums_ = {"padding": "tt_padding", "act": "tt_act"}


class tt_layer_conv2d_transpose_opts(Structure):
    _fields_ = [
        ("opts_size", c_size_t),
        ("filters", c_int),
        ("kernel", c_int * 2),
        ("stride", c_int * 2),
        ("padding", c_int),
        ("pad", c_int * 2),
        ("extra", c_int * 2),
        ("act", c_int),
        ("no_bias", c_bool),
        ("init", tt_init),
        ("name", c_char_p),
        ("from", c_void_p * 8),
        ("share", c_void_p),
    ]
    _enums_ = {"padding": "tt_padding", "act": "tt_act"}


class tt_layer_conv1d_transpose_opts(Structure):
    _fields_ = [
        ("opts_size", c_size_t),
        ("filters", c_int),
        ("kernel", c_int),
        ("stride", c_int),
        ("padding", c_int),
        ("pad", c_int),
        ("extra", c_int),
        ("act", c_int),
        ("no_bias", c_bool),
        ("init", tt_init),
        ("name", c_char_p),
        ("from", c_void_p * 8),
        ("share", c_void_p),
    ]
    _enums_ = {"padding": "tt_padding", "act": "tt_act"}


class tt_layer_separable_conv2d_opts(Structure):
    _fields_ = [
        ("opts_size", c_size_t),
        ("filters", c_int),
        ("kernel", c_int * 2),
        ("stride", c_int * 2),
        ("padding", c_int),
        ("pad", c_int * 2),
        ("multiplier", c_int),
        ("act", c_int),
        ("no_bias", c_bool),
        ("init", tt_init),
        ("name", c_char_p),
        ("from", c_void_p * 8),
        ("share", c_void_p),
    ]
    _enums_ = {"padding": "tt_padding", "act": "tt_act"}


class tt_layer_max_pool1d_opts(Structure):
    _fields_ = [
        ("opts_size", c_size_t),
        ("size", c_int),
        ("stride", c_int),
        ("padding", c_int),
        ("pad", c_int),
        ("name", c_char_p),
        ("from", c_void_p * 8),
        ("share", c_void_p),
    ]
    _enums_ = {"padding": "tt_padding"}


class tt_layer_adaptive_avg_pool2d_opts(Structure):
    _fields_ = [
        ("opts_size", c_size_t),
        ("size", c_int * 2),
        ("name", c_char_p),
        ("from", c_void_p * 8),
        ("share", c_void_p),
    ]


class tt_layer_multi_head_attention_opts(Structure):
    _fields_ = [
        ("opts_size", c_size_t),
        ("heads", c_int),
        ("kv_heads", c_int),
        ("size", c_int),
        ("units", c_int),
        ("causal", c_bool),
        ("window", c_int),
        ("alibi", c_bool),
        ("rotary", c_bool),
        ("theta", c_double),
        ("no_bias", c_bool),
        ("dropout", c_double),
        ("init", tt_init),
        ("name", c_char_p),
        ("from", c_void_p * 8),
        ("share", c_void_p),
    ]


class tt_layer_lambda_opts(Structure):
    _fields_ = [
        ("opts_size", c_size_t),
        ("expr", c_char * 128),
        ("name", c_char_p),
        ("from", c_void_p * 8),
        ("share", c_void_p),
    ]


class tt_layer_llama_opts(Structure):
    _fields_ = [
        ("opts_size", c_size_t),
        ("layers", c_int),
        ("heads", c_int),
        ("kv_heads", c_int),
        ("width", c_int),
        ("hidden", c_int),
        ("vocab", c_int64),
        ("theta", c_double),
        ("eps", c_double),
        ("window", c_int),
        ("tied", c_bool),
        ("name", c_char_p),
        ("from", c_void_p * 8),
        ("share", c_void_p),
    ]


class tt_layer_bert_opts(Structure):
    _fields_ = [
        ("opts_size", c_size_t),
        ("layers", c_int),
        ("heads", c_int),
        ("width", c_int),
        ("hidden", c_int),
        ("vocab", c_int64),
        ("types", c_int),
        ("classes", c_int),
        ("dropout", c_double),
        ("name", c_char_p),
        ("from", c_void_p * 8),
        ("share", c_void_p),
    ]


class tt_layer_vit_opts(Structure):
    _fields_ = [
        ("opts_size", c_size_t),
        ("patch", c_int),
        ("layers", c_int),
        ("heads", c_int),
        ("width", c_int),
        ("hidden", c_int),
        ("classes", c_int),
        ("dropout", c_double),
        ("name", c_char_p),
        ("from", c_void_p * 8),
        ("share", c_void_p),
    ]


class tt_layer_mobilenet_v2_opts(Structure):
    _fields_ = [
        ("opts_size", c_size_t),
        ("classes", c_int),
        ("width", c_double),
        ("small", c_bool),
        ("dropout", c_double),
        ("over", c_int),
        ("name", c_char_p),
        ("from", c_void_p * 8),
        ("share", c_void_p),
    ]
    _enums_ = {"over": "tt_over"}


class tt_layer_unet_opts(Structure):
    _fields_ = [
        ("opts_size", c_size_t),
        ("classes", c_int),
        ("width", c_int),
        ("depth", c_int),
        ("over", c_int),
        ("name", c_char_p),
        ("from", c_void_p * 8),
        ("share", c_void_p),
    ]
    _enums_ = {"over": "tt_over"}


class tt_layer_lstm_lm_opts(Structure):
    _fields_ = [
        ("opts_size", c_size_t),
        ("layers", c_int),
        ("width", c_int),
        ("units", c_int),
        ("vocab", c_int64),
        ("dropout", c_double),
        ("tied", c_bool),
        ("name", c_char_p),
        ("from", c_void_p * 8),
        ("share", c_void_p),
    ]


class tt_layer_tabular_opts(Structure):
    _fields_ = [
        ("opts_size", c_size_t),
        ("categories", tt_ints),
        ("units", tt_ints),
        ("classes", c_int),
        ("dropout", c_double),
        ("no_batch_norm", c_bool),
        ("over", c_int),
        ("name", c_char_p),
        ("from", c_void_p * 8),
        ("share", c_void_p),
    ]
    _enums_ = {"over": "tt_over"}


class tt_layer_autoencoder_opts(Structure):
    _fields_ = [
        ("opts_size", c_size_t),
        ("units", tt_ints),
        ("act", c_int),
        ("last", c_int),
        ("name", c_char_p),
        ("from", c_void_p * 8),
        ("share", c_void_p),
    ]
    _enums_ = {"act": "tt_act", "last": "tt_act"}


class tt_record_opts(Structure):
    _fields_ = [
        ("opts_size", c_size_t),
        ("dir", c_char_p),
        ("root", c_char_p),
        ("name", c_char_p),
        ("job", c_char_p),
        ("no_tensorboard", c_bool),
        ("mlflow", c_char_p),
        ("http", c_char_p),
    ]


class tt_record_origin_opts(Structure):
    _fields_ = [
        ("opts_size", c_size_t),
        ("commit", c_char_p),
        ("changed", c_bool),
        ("train", c_void_p),
        ("validate", c_void_p),
        ("test", c_void_p),
    ]


class tt_record_histogram_opts(Structure):
    _fields_ = [
        ("opts_size", c_size_t),
        ("step", c_int64),
        ("values", c_void_p),
        ("count", c_int64),
    ]


class tt_record_image_opts(Structure):
    _fields_ = [
        ("opts_size", c_size_t),
        ("step", c_int64),
        ("pixels", c_void_p),
        ("height", c_int),
        ("width", c_int),
        ("channels", c_int),
    ]


class tt_record_confusion_opts(Structure):
    _fields_ = [
        ("opts_size", c_size_t),
        ("step", c_int64),
        ("counts", c_void_p),
        ("classes", c_int),
    ]


class tt_recurrent_opts(Structure):
    _fields_ = [
        ("opts_size", c_size_t),
        ("kind", c_int),
        ("bias", c_void_p),
        ("reverse", c_bool),
    ]
    _enums_ = {"kind": "tt_recurrent_kind"}


class tt_layer_lstm_opts(Structure):
    _fields_ = [
        ("opts_size", c_size_t),
        ("units", c_int),
        ("layers", c_int),
        ("bidirectional", c_bool),
        ("last", c_bool),
        ("dropout", c_double),
        ("no_bias", c_bool),
        ("init", tt_init),
        ("name", c_char_p),
        ("from", c_void_p * 8),
        ("share", c_void_p),
    ]


class tt_limits(Structure):
    _fields_ = [
        ("opts_size", c_size_t),
        ("clients", c_int),
        ("memory", c_size_t),
        ("graph", c_size_t),
        ("queues", c_int),
        ("run_ms", c_int64),
        ("devices", c_char_p),
        ("variables", c_size_t),
    ]


class tt_serve_opts(Structure):
    _fields_ = [
        ("opts_size", c_size_t),
        ("cluster", c_char_p),
        ("task", c_char_p),
        ("devices", c_char_p),
        ("bind", c_char_p),
        ("key", c_char_p),
        ("threads", c_int),
        ("limits", c_void_p),
    ]
    _points_ = {"limits": "tt_limits"}


class tt_cluster_local_opts(Structure):
    _fields_ = [
        ("opts_size", c_size_t),
        ("jobs", c_char_p),
        ("devices", c_char_p),
        ("threads", c_int),
        ("limits", c_void_p),
    ]
    _points_ = {"limits": "tt_limits"}


class tt_ping_opts(Structure):
    _fields_ = [
        ("opts_size", c_size_t),
        ("key", c_char_p),
        ("deadline_ms", c_int64),
    ]


class tt_server_info(Structure):
    _fields_ = [
        ("task", c_char * 64),
        ("version", c_char * 32),
        ("devices", c_char * 128),
        ("n_tasks", c_int),
        ("clients", c_int),
        ("sessions", c_int),
        ("containers", c_int),
        ("variables", c_int),
        ("queues", c_int),
        ("bytes", c_size_t),
        ("runs", c_int64),
        ("refused", c_int64),
        ("up_ms", c_int64),
        ("is_draining", c_bool),
    ]


class tt_state_opts(Structure):
    _fields_ = [
        ("opts_size", c_size_t),
        ("key", c_char_p),
        ("container", c_char_p),
        ("all", c_bool),
    ]


class tt_state_entry(Structure):
    _fields_ = [
        ("container", c_char * 64),
        ("name", c_char * 256),
        ("is_queue", c_bool),
        ("dtype", c_int),
        ("shape", tt_shape),
        ("bytes", c_size_t),
        ("version", c_int64),
    ]
    _enums_ = {"dtype": "tt_dtype"}


class tt_queue_part(Structure):
    _fields_ = [
        ("dtype", c_int),
        ("shape", tt_shape),
    ]
    _enums_ = {"dtype": "tt_dtype"}


class tt_queue_open_opts(Structure):
    _fields_ = [
        ("opts_size", c_size_t),
        ("kind", c_int),
        ("capacity", c_int64),
        ("min_after_dequeue", c_int64),
        ("seed", c_uint64),
        ("parts", c_void_p),
        ("n_parts", c_int),
        ("target", c_char_p),
        ("key", c_char_p),
        ("container", c_char_p),
        ("of", c_void_p),
    ]
    _enums_ = {"kind": "tt_queue_kind"}
    _points_ = {"parts": "tt_queue_part"}


class tt_enqueue_opts(Structure):
    _fields_ = [
        ("opts_size", c_size_t),
        ("values", c_void_p),
        ("shapes", c_void_p),
        ("n", c_int64),
        ("priorities", c_void_p),
        ("deadline_ms", c_int64),
    ]
    _points_ = {"shapes": "tt_shape"}


class tt_dequeue_opts(Structure):
    _fields_ = [
        ("opts_size", c_size_t),
        ("out", c_void_p),
        ("bytes", c_void_p),
        ("shapes", c_void_p),
        ("n", c_int64),
        ("up_to", c_bool),
        ("taken", c_void_p),
        ("deadline_ms", c_int64),
    ]
    _points_ = {"shapes": "tt_shape"}


class tt_queue_close_opts(Structure):
    _fields_ = [
        ("opts_size", c_size_t),
        ("cancel", c_bool),
    ]


class tt_port(Structure):
    _fields_ = [
        ("name", c_char_p),
        ("dtype", c_int),
        ("shape", tt_shape),
        ("raw_dtype", c_int),
        ("raw_shape", tt_shape),
        ("meaning", c_int),
    ]
    _enums_ = {"dtype": "tt_dtype", "raw_dtype": "tt_dtype", "meaning": "tt_meaning"}


class tt_export_onnx_opts(Structure):
    _fields_ = [
        ("opts_size", c_size_t),
        ("raw", c_bool),
    ]


# Functions: result, then parameters.

FUNCTIONS = {
    "tt_status_name": (c_void_p, (c_int,)),
    "tt_status_text": (c_void_p, (c_int,)),
    "tt_dtype_name": (c_void_p, (c_int,)),
    "tt_dtype_bytes": (c_size_t, (c_int,)),
    "tt_open_with": (c_void_p, (c_void_p,)),
    "tt_close": (c_int, (c_void_p,)),
    "tt_last_error": (tt_error, (c_void_p,)),
    "tt_status_of": (c_int, (c_void_p,)),
    "tt_clear_error": (None, (c_void_p,)),
    "tt_request_stop": (None, (c_void_p,)),
    "tt_alloc_stats_get": (tt_alloc_stats, (c_void_p,)),
    "tt_version_text": (c_void_p, ()),
    "tt_data_new_with": (c_void_p, (c_void_p, c_void_p, c_void_p,)),
    "tt_data_free": (None, (c_void_p,)),
    "tt_data_count": (c_int64, (c_void_p,)),
    "tt_data_fields": (c_int, (c_void_p, c_void_p,)),
    "tt_digits_with": (c_void_p, (c_void_p, c_void_p,)),
    "tt_mnist_with": (c_void_p, (c_void_p, c_void_p,)),
    "tt_idx_with": (c_void_p, (c_void_p, c_void_p,)),
    "tt_cifar10_with": (c_void_p, (c_void_p, c_void_p,)),
    "tt_images_with": (c_void_p, (c_void_p, c_void_p,)),
    "tt_csv_with": (c_void_p, (c_void_p, c_void_p,)),
    "tt_jsonl_with": (c_void_p, (c_void_p, c_void_p,)),
    "tt_tfrecord_with": (c_void_p, (c_void_p, c_void_p,)),
    "tt_webdataset_with": (c_void_p, (c_void_p, c_void_p,)),
    "tt_npy_with": (c_void_p, (c_void_p, c_void_p,)),
    "tt_tokens_with": (c_void_p, (c_void_p, c_void_p,)),
    "tt_text_with": (c_void_p, (c_void_p, c_void_p,)),
    "tt_memory_with": (c_void_p, (c_void_p, c_void_p,)),
    "tt_data_split_with": (c_void_p, (c_void_p, c_void_p,)),
    "tt_data_balance": (c_int, (c_void_p, c_char_p,)),
    "tt_transform_with": (c_int, (c_void_p, c_char_p, c_void_p,)),
    "tt_data_start": (c_int, (c_void_p, c_int64, c_int64,)),
    "tt_data_next_sized": (c_int, (c_void_p, c_void_p, c_size_t,)),
    "tt_data_stop": (None, (c_void_p,)),
    "tt_data_order": (c_int64, (c_void_p, c_int64, c_int64,)),
    "tt_graph_new": (c_void_p, (c_void_p,)),
    "tt_graph_free": (None, (c_void_p,)),
    "tt_graph_get_ctx": (c_void_p, (c_void_p,)),
    "tt_tensor_shape": (tt_shape, (c_void_p,)),
    "tt_tensor_dtype": (c_int, (c_void_p,)),
    "tt_tensor_name": (c_void_p, (c_void_p,)),
    "tt_tensor_get_node": (c_void_p, (c_void_p,)),
    "tt_graph_find": (c_void_p, (c_void_p, c_char_p,)),
    "tt_open_axis": (c_int, (c_void_p,)),
    "tt_shape_count": (c_int64, (c_void_p,)),
    "tt_shape_text": (c_void_p, (c_void_p, c_void_p,)),
    "tt_feed_with": (c_void_p, (c_void_p, c_void_p,)),
    "tt_const": (c_void_p, (c_void_p, c_int, tt_shape, c_void_p,)),
    "tt_scalar": (c_void_p, (c_void_p, c_double,)),
    "tt_fill": (c_void_p, (c_void_p, c_int, tt_shape, c_double,)),
    "tt_variable_with": (c_void_p, (c_void_p, c_void_p,)),
    "tt_trainable": (c_int, (c_void_p, c_void_p, c_int,)),
    "tt_name_push": (c_int, (c_void_p, c_char_p,)),
    "tt_name_pop": (c_int, (c_void_p,)),
    "tt_device_push": (c_int, (c_void_p, c_char_p,)),
    "tt_device_pop": (c_int, (c_void_p,)),
    "tt_pin": (c_int, (c_void_p, c_char_p,)),
    "tt_colocate": (c_int, (c_void_p, c_void_p,)),
    "tt_set_placement": (None, (c_void_p, tt_place_fn, c_void_p,)),
    "tt_after": (c_int, (c_void_p, c_void_p, c_int,)),
    "tt_grad": (c_int, (c_void_p, c_void_p, c_void_p, c_int, c_void_p, c_void_p,)),
    "tt_print": (c_void_p, (c_void_p, c_void_p, c_char_p,)),
    "tt_assert": (c_void_p, (c_void_p, c_void_p, c_void_p, c_char_p,)),
    "tt_graph_print": (c_void_p, (c_void_p,)),
    "tt_graph_parse": (c_void_p, (c_void_p, c_char_p, c_size_t,)),
    "tt_string_free": (None, (c_void_p, c_void_p,)),
    "tt_neg": (c_void_p, (c_void_p, c_void_p,)),
    "tt_abs": (c_void_p, (c_void_p, c_void_p,)),
    "tt_sqrt": (c_void_p, (c_void_p, c_void_p,)),
    "tt_rsqrt": (c_void_p, (c_void_p, c_void_p,)),
    "tt_exp": (c_void_p, (c_void_p, c_void_p,)),
    "tt_log": (c_void_p, (c_void_p, c_void_p,)),
    "tt_sin": (c_void_p, (c_void_p, c_void_p,)),
    "tt_cos": (c_void_p, (c_void_p, c_void_p,)),
    "tt_tanh": (c_void_p, (c_void_p, c_void_p,)),
    "tt_sigmoid": (c_void_p, (c_void_p, c_void_p,)),
    "tt_relu": (c_void_p, (c_void_p, c_void_p,)),
    "tt_gelu": (c_void_p, (c_void_p, c_void_p,)),
    "tt_gelu_erf": (c_void_p, (c_void_p, c_void_p,)),
    "tt_silu": (c_void_p, (c_void_p, c_void_p,)),
    "tt_softplus": (c_void_p, (c_void_p, c_void_p,)),
    "tt_selu": (c_void_p, (c_void_p, c_void_p,)),
    "tt_relu6": (c_void_p, (c_void_p, c_void_p,)),
    "tt_mish": (c_void_p, (c_void_p, c_void_p,)),
    "tt_hard_sigmoid": (c_void_p, (c_void_p, c_void_p,)),
    "tt_hard_swish": (c_void_p, (c_void_p, c_void_p,)),
    "tt_softsign": (c_void_p, (c_void_p, c_void_p,)),
    "tt_square": (c_void_p, (c_void_p, c_void_p,)),
    "tt_erf": (c_void_p, (c_void_p, c_void_p,)),
    "tt_sign": (c_void_p, (c_void_p, c_void_p,)),
    "tt_logical_not": (c_void_p, (c_void_p, c_void_p,)),
    "tt_add": (c_void_p, (c_void_p, c_void_p, c_void_p,)),
    "tt_sub": (c_void_p, (c_void_p, c_void_p, c_void_p,)),
    "tt_mul": (c_void_p, (c_void_p, c_void_p, c_void_p,)),
    "tt_div": (c_void_p, (c_void_p, c_void_p, c_void_p,)),
    "tt_pow": (c_void_p, (c_void_p, c_void_p, c_void_p,)),
    "tt_minimum": (c_void_p, (c_void_p, c_void_p, c_void_p,)),
    "tt_maximum": (c_void_p, (c_void_p, c_void_p, c_void_p,)),
    "tt_equal": (c_void_p, (c_void_p, c_void_p, c_void_p,)),
    "tt_not_equal": (c_void_p, (c_void_p, c_void_p, c_void_p,)),
    "tt_less": (c_void_p, (c_void_p, c_void_p, c_void_p,)),
    "tt_less_equal": (c_void_p, (c_void_p, c_void_p, c_void_p,)),
    "tt_greater": (c_void_p, (c_void_p, c_void_p, c_void_p,)),
    "tt_greater_equal": (c_void_p, (c_void_p, c_void_p, c_void_p,)),
    "tt_logical_and": (c_void_p, (c_void_p, c_void_p, c_void_p,)),
    "tt_logical_or": (c_void_p, (c_void_p, c_void_p, c_void_p,)),
    "tt_leaky_relu": (c_void_p, (c_void_p, c_void_p, c_double,)),
    "tt_elu": (c_void_p, (c_void_p, c_void_p, c_double,)),
    "tt_clip": (c_void_p, (c_void_p, c_void_p, c_double, c_double,)),
    "tt_scale": (c_void_p, (c_void_p, c_void_p, c_double, c_double,)),
    "tt_where": (c_void_p, (c_void_p, c_void_p, c_void_p, c_void_p,)),
    "tt_cast": (c_void_p, (c_void_p, c_void_p, c_int,)),
    "tt_identity": (c_void_p, (c_void_p, c_void_p,)),
    "tt_stop_gradient": (c_void_p, (c_void_p, c_void_p,)),
    "tt_broadcast": (c_void_p, (c_void_p, c_void_p, c_void_p,)),
    "tt_sum_like": (c_void_p, (c_void_p, c_void_p, c_void_p,)),
    "tt_activation": (c_void_p, (c_void_p, c_void_p, c_int,)),
    "tt_glu": (c_void_p, (c_void_p, c_void_p, c_int,)),
    "tt_prelu": (c_void_p, (c_void_p, c_void_p, c_void_p,)),
    "tt_sum_with": (c_void_p, (c_void_p, c_void_p, c_void_p,)),
    "tt_mean_with": (c_void_p, (c_void_p, c_void_p, c_void_p,)),
    "tt_max_with": (c_void_p, (c_void_p, c_void_p, c_void_p,)),
    "tt_min_with": (c_void_p, (c_void_p, c_void_p, c_void_p,)),
    "tt_logsumexp_with": (c_void_p, (c_void_p, c_void_p, c_void_p,)),
    "tt_argmax": (c_void_p, (c_void_p, c_void_p, c_int,)),
    "tt_count": (c_void_p, (c_void_p, c_void_p, c_void_p,)),
    "tt_matmul_with": (c_void_p, (c_void_p, c_void_p, c_void_p, c_void_p,)),
    "tt_conv2d_with": (c_void_p, (c_void_p, c_void_p, c_void_p, c_void_p,)),
    "tt_depthwise_conv2d_with": (c_void_p, (c_void_p, c_void_p, c_void_p, c_void_p,)),
    "tt_conv2d_transpose_with": (c_void_p, (c_void_p, c_void_p, c_void_p, c_void_p,)),
    "tt_max_pool2d_with": (c_void_p, (c_void_p, c_void_p, c_void_p,)),
    "tt_avg_pool2d_with": (c_void_p, (c_void_p, c_void_p, c_void_p,)),
    "tt_global_avg_pool2d": (c_void_p, (c_void_p, c_void_p,)),
    "tt_global_max_pool2d": (c_void_p, (c_void_p, c_void_p,)),
    "tt_layer_norm_with": (c_void_p, (c_void_p, c_void_p, c_void_p, c_void_p, c_void_p,)),
    "tt_rms_norm_with": (c_void_p, (c_void_p, c_void_p, c_void_p, c_void_p,)),
    "tt_batch_norm_with": (c_void_p, (c_void_p, c_void_p, tt_batch_norm_vars, c_void_p,)),
    "tt_softmax": (c_void_p, (c_void_p, c_void_p,)),
    "tt_log_softmax": (c_void_p, (c_void_p, c_void_p,)),
    "tt_cross_entropy_with": (c_void_p, (c_void_p, c_void_p, c_void_p, c_void_p,)),
    "tt_label_rank": (c_void_p, (c_void_p, c_void_p, c_void_p,)),
    "tt_embedding": (c_void_p, (c_void_p, c_void_p, c_void_p,)),
    "tt_gather": (c_void_p, (c_void_p, c_void_p, c_void_p, c_int,)),
    "tt_scatter_add": (c_void_p, (c_void_p, c_void_p, c_void_p, c_int64,)),
    "tt_one_hot": (c_void_p, (c_void_p, c_void_p, c_int64, c_int,)),
    "tt_reshape": (c_void_p, (c_void_p, c_void_p, tt_shape,)),
    "tt_flatten": (c_void_p, (c_void_p, c_void_p,)),
    "tt_transpose": (c_void_p, (c_void_p, c_void_p, tt_axes,)),
    "tt_concat": (c_void_p, (c_void_p, c_void_p, c_int, c_int,)),
    "tt_stack": (c_void_p, (c_void_p, c_void_p, c_int, c_int,)),
    "tt_split_at": (c_int, (c_void_p, c_void_p, c_int, c_int, c_void_p,)),
    "tt_slice": (c_void_p, (c_void_p, c_void_p, c_int, c_int64, c_int64,)),
    "tt_pad": (c_void_p, (c_void_p, c_void_p, c_int, c_int64, c_int64,)),
    "tt_tile": (c_void_p, (c_void_p, c_void_p, c_int, c_int64,)),
    "tt_squeeze": (c_void_p, (c_void_p, c_void_p, c_int,)),
    "tt_expand_dims": (c_void_p, (c_void_p, c_void_p, c_int,)),
    "tt_dropout": (c_void_p, (c_void_p, c_void_p, c_double,)),
    "tt_gaussian_noise": (c_void_p, (c_void_p, c_void_p, c_double,)),
    "tt_attention_with": (c_void_p, (c_void_p, c_void_p, c_void_p, c_void_p, c_void_p,)),
    "tt_assign": (c_void_p, (c_void_p, c_void_p, c_void_p,)),
    "tt_update_sgd_with": (c_void_p, (c_void_p, c_void_p, c_void_p, c_void_p,)),
    "tt_update_adam_with": (c_void_p, (c_void_p, c_void_p, c_void_p, c_void_p,)),
    "tt_update_adamw_with": (c_void_p, (c_void_p, c_void_p, c_void_p, c_void_p,)),
    "tt_update_rmsprop_with": (c_void_p, (c_void_p, c_void_p, c_void_p, c_void_p,)),
    "tt_update_adagrad_with": (c_void_p, (c_void_p, c_void_p, c_void_p, c_void_p,)),
    "tt_update_lion_with": (c_void_p, (c_void_p, c_void_p, c_void_p, c_void_p,)),
    "tt_update_adadelta_with": (c_void_p, (c_void_p, c_void_p, c_void_p, c_void_p,)),
    "tt_update_adamax_with": (c_void_p, (c_void_p, c_void_p, c_void_p, c_void_p,)),
    "tt_update_nadam_with": (c_void_p, (c_void_p, c_void_p, c_void_p, c_void_p,)),
    "tt_update_amsgrad_with": (c_void_p, (c_void_p, c_void_p, c_void_p, c_void_p,)),
    "tt_update_ftrl_with": (c_void_p, (c_void_p, c_void_p, c_void_p, c_void_p,)),
    "tt_update_ema_with": (c_void_p, (c_void_p, c_void_p, c_void_p, c_void_p,)),
    "tt_square_sum": (c_void_p, (c_void_p, c_void_p,)),
    "tt_max_abs": (c_void_p, (c_void_p, c_void_p, c_int,)),
    "tt_update_scale_with": (c_void_p, (c_void_p, c_void_p, c_void_p, c_void_p, c_void_p,)),
    "tt_update_loss_scale_with": (c_void_p, (c_void_p, c_void_p, c_void_p, c_void_p, c_void_p,)),
    "tt_sequential_with": (c_void_p, (c_void_p, c_void_p,)),
    "tt_model_new": (c_void_p, (c_void_p,)),
    "tt_model_free": (None, (c_void_p,)),
    "tt_input_with": (c_void_p, (c_void_p, c_void_p,)),
    "tt_output": (c_int, (c_void_p, c_void_p, c_char_p,)),
    "tt_layer_dense_with": (c_void_p, (c_void_p, c_void_p,)),
    "tt_layer_conv2d_with": (c_void_p, (c_void_p, c_void_p,)),
    "tt_layer_depthwise_conv2d_with": (c_void_p, (c_void_p, c_void_p,)),
    "tt_layer_max_pool2d_with": (c_void_p, (c_void_p, c_void_p,)),
    "tt_layer_avg_pool2d_with": (c_void_p, (c_void_p, c_void_p,)),
    "tt_layer_flatten_with": (c_void_p, (c_void_p, c_void_p,)),
    "tt_layer_global_avg_pool2d_with": (c_void_p, (c_void_p, c_void_p,)),
    "tt_layer_global_max_pool2d_with": (c_void_p, (c_void_p, c_void_p,)),
    "tt_layer_add_with": (c_void_p, (c_void_p, c_void_p,)),
    "tt_layer_concat_with": (c_void_p, (c_void_p, c_void_p,)),
    "tt_layer_reshape_with": (c_void_p, (c_void_p, c_void_p,)),
    "tt_layer_permute_with": (c_void_p, (c_void_p, c_void_p,)),
    "tt_layer_dropout_with": (c_void_p, (c_void_p, c_void_p,)),
    "tt_layer_activation_with": (c_void_p, (c_void_p, c_void_p,)),
    "tt_layer_batch_norm_with": (c_void_p, (c_void_p, c_void_p,)),
    "tt_layer_layer_norm_with": (c_void_p, (c_void_p, c_void_p,)),
    "tt_layer_rms_norm_with": (c_void_p, (c_void_p, c_void_p,)),
    "tt_layer_embedding_with": (c_void_p, (c_void_p, c_void_p,)),
    "tt_layer_positional_with": (c_void_p, (c_void_p, c_void_p,)),
    "tt_layer_attention_with": (c_void_p, (c_void_p, c_void_p,)),
    "tt_layer_transformer_block_with": (c_void_p, (c_void_p, c_void_p,)),
    "tt_layer_custom_with": (c_void_p, (c_void_p, c_void_p,)),
    "tt_build_graph": (c_void_p, (c_void_p,)),
    "tt_build_is_training": (c_bool, (c_void_p,)),
    "tt_layer_weight": (c_void_p, (c_void_p, c_char_p, tt_shape, tt_init,)),
    "tt_layer_mlp_with": (c_void_p, (c_void_p, c_void_p,)),
    "tt_layer_lenet_with": (c_void_p, (c_void_p, c_void_p,)),
    "tt_layer_resnet_with": (c_void_p, (c_void_p, c_void_p,)),
    "tt_layer_gpt_with": (c_void_p, (c_void_p, c_void_p,)),
    "tt_model_get_graph": (c_void_p, (c_void_p,)),
    "tt_summary": (c_void_p, (c_void_p, c_bool,)),
    "tt_model_parameters": (c_int64, (c_void_p,)),
    "tt_model_weights_sized": (c_int, (c_void_p, c_void_p, c_int, c_size_t,)),
    "tt_catalog_group_name": (c_void_p, (c_int,)),
    "tt_catalog_count": (c_int, (c_void_p, c_int,)),
    "tt_catalog_get_sized": (c_int, (c_void_p, c_int, c_int, c_void_p, c_size_t,)),
    "tt_catalog_option_sized": (c_int, (c_void_p, c_int, c_int, c_int, c_void_p, c_size_t,)),
    "tt_catalog_json": (c_void_p, (c_void_p,)),
    "tt_catalog_layer_with": (c_void_p, (c_void_p, c_char_p, c_void_p,)),
    "tt_catalog_source_with": (c_void_p, (c_void_p, c_char_p, c_void_p,)),
    "tt_secret_new": (c_int, (c_void_p, c_void_p,)),
    "tt_cluster_find": (c_int, (c_void_p, c_void_p,)),
    "tt_cluster_free": (None, (c_void_p, c_void_p,)),
    "tt_cluster_tasks": (c_int, (c_void_p, c_void_p, c_char_p, c_void_p,)),
    "tt_tasks_free": (None, (c_void_p, c_void_p,)),
    "tt_store_new": (c_void_p, ()),
    "tt_store_of": (c_void_p, (c_void_p,)),
    "tt_store_release": (None, (c_void_p,)),
    "tt_store_version": (c_int64, (c_void_p, c_char_p,)),
    "tt_session_new_with": (c_void_p, (c_void_p, c_void_p,)),
    "tt_session_free": (None, (c_void_p,)),
    "tt_run_with": (c_int, (c_void_p, c_void_p,)),
    "tt_eval": (c_int, (c_void_p, c_void_p, c_void_p, c_int64,)),
    "tt_get_variable": (c_int, (c_void_p, c_void_p, c_void_p, c_size_t,)),
    "tt_set_variable": (c_int, (c_void_p, c_void_p, c_void_p, c_size_t,)),
    "tt_weight_hash": (c_int, (c_void_p, c_void_p,)),
    "tt_plan_print_with": (c_void_p, (c_void_p, c_void_p,)),
    "tt_plan_memory_get_sized": (c_int, (c_void_p, c_int, c_void_p, c_size_t,)),
    "tt_trace_write": (c_int, (c_void_p, c_char_p,)),
    "tt_hashes_write": (c_int, (c_void_p, c_char_p,)),
    "tt_hashes_diff": (c_int, (c_void_p, c_char_p, c_char_p, c_void_p, c_void_p,)),
    "tt_batch_part": (c_int, (c_void_p, c_int64, c_int, c_int, c_void_p,)),
    "tt_comm_open_with": (c_void_p, (c_void_p, c_void_p,)),
    "tt_comm_free": (None, (c_void_p,)),
    "tt_comm_members": (c_int, (c_void_p,)),
    "tt_comm_first": (c_int, (c_void_p,)),
    "tt_comm_memory": (c_void_p, (c_void_p, c_size_t,)),
    "tt_all_reduce_with": (c_int, (c_void_p, c_void_p, c_void_p,)),
    "tt_reduce_to_with": (c_int, (c_void_p, c_void_p, c_void_p,)),
    "tt_reduce_scatter_with": (c_int, (c_void_p, c_void_p, c_void_p,)),
    "tt_all_gather_with": (c_int, (c_void_p, c_void_p, c_void_p,)),
    "tt_gather_to_with": (c_int, (c_void_p, c_void_p, c_void_p,)),
    "tt_scatter_from_with": (c_int, (c_void_p, c_void_p, c_void_p,)),
    "tt_broadcast_from_with": (c_int, (c_void_p, c_void_p, c_void_p,)),
    "tt_all_to_all_with": (c_int, (c_void_p, c_void_p, c_void_p,)),
    "tt_barrier": (c_int, (c_void_p,)),
    "tt_sum_lanes_with": (c_int, (c_void_p, c_void_p, c_int, c_void_p, c_void_p,)),
    "tt_broadcast_bytes_with": (c_int, (c_void_p, c_void_p, c_void_p, c_void_p,)),
    "tt_gather_bytes_with": (c_int, (c_void_p, c_void_p, c_void_p, c_void_p,)),
    "tt_bytes_free": (None, (c_void_p, c_void_p,)),
    "tt_send_to_with": (c_int, (c_void_p, c_void_p, c_int64, c_int, c_void_p,)),
    "tt_receive_from_with": (c_int, (c_void_p, c_void_p, c_int64, c_int, c_void_p,)),
    "tt_handle_wait": (c_int, (c_void_p,)),
    "tt_handle_test": (c_int, (c_void_p, c_void_p,)),
    "tt_handle_wait_all": (c_int, (c_void_p, c_int,)),
    "tt_handle_wait_any": (c_int, (c_void_p, c_int, c_void_p,)),
    "tt_call_group_begin": (c_int, (c_void_p,)),
    "tt_call_group_end_with": (c_int, (c_void_p, c_void_p,)),
    "tt_device_parse": (c_int, (c_void_p, c_char_p, c_void_p,)),
    "tt_device_merge": (None, (c_void_p, c_void_p,)),
    "tt_device_print": (None, (c_void_p, c_void_p,)),
    "tt_device_count": (c_int, (c_void_p,)),
    "tt_device_get_sized": (c_int, (c_void_p, c_int, c_void_p, c_size_t,)),
    "tt_metric_name": (c_void_p, (c_int,)),
    "tt_schedule_at": (c_double, (c_void_p, c_int64, c_int64,)),
    "tt_compile_with": (c_int, (c_void_p, c_void_p,)),
    "tt_fit_with": (c_int, (c_void_p, c_void_p, c_void_p,)),
    "tt_fit_report_get_sized": (c_int, (c_void_p, c_void_p, c_size_t,)),
    "tt_fit_device_times_sized": (c_int, (c_void_p, c_int, c_void_p, c_size_t,)),
    "tt_fit_profile": (c_void_p, (c_void_p, c_bool,)),
    "tt_request_end": (None, (c_void_p,)),
    "tt_evaluate_with": (c_int, (c_void_p, c_void_p, c_void_p, c_void_p,)),
    "tt_evaluate_table": (c_int64, (c_void_p, c_char_p, c_void_p, c_int64,)),
    "tt_predict_with": (c_int, (c_void_p, c_void_p, c_int64, c_void_p, c_void_p,)),
    "tt_train_step_with": (c_int, (c_void_p, c_void_p, c_void_p, c_void_p,)),
    "tt_mean_factors_of": (tt_mean_factors, (c_int64,)),
    "tt_model_get_session": (c_void_p, (c_void_p,)),
    "tt_model_get_train_graph": (c_void_p, (c_void_p,)),
    "tt_model_hash": (c_int, (c_void_p, c_void_p,)),
    "tt_save": (c_int, (c_void_p, c_char_p,)),
    "tt_load_with": (c_int, (c_void_p, c_char_p, c_void_p,)),
    "tt_export": (c_int, (c_void_p, c_char_p,)),
    "tt_job_read_with": (c_void_p, (c_void_p, c_char_p, c_void_p,)),
    "tt_job_parse": (c_void_p, (c_void_p, c_char_p, c_size_t, c_char_p,)),
    "tt_job_free": (None, (c_void_p,)),
    "tt_job_name": (c_void_p, (c_void_p,)),
    "tt_job_print": (c_void_p, (c_void_p,)),
    "tt_job_core_print": (c_void_p, (c_void_p,)),
    "tt_job_get": (c_void_p, (c_void_p, c_char_p,)),
    "tt_job_open_opts": (c_void_p, (c_void_p,)),
    "tt_job_build_sized": (c_int, (c_void_p, c_void_p, c_void_p, c_size_t,)),
    "tt_job_help": (c_void_p, (c_void_p, c_char_p,)),
    "tt_layer_glu_with": (c_void_p, (c_void_p, c_void_p,)),
    "tt_layer_swiglu_with": (c_void_p, (c_void_p, c_void_p,)),
    "tt_layer_geglu_with": (c_void_p, (c_void_p, c_void_p,)),
    "tt_layer_prelu_with": (c_void_p, (c_void_p, c_void_p,)),
    "tt_layer_multiply_with": (c_void_p, (c_void_p, c_void_p,)),
    "tt_layer_subtract_with": (c_void_p, (c_void_p, c_void_p,)),
    "tt_layer_average_with": (c_void_p, (c_void_p, c_void_p,)),
    "tt_layer_maximum_with": (c_void_p, (c_void_p, c_void_p,)),
    "tt_layer_minimum_with": (c_void_p, (c_void_p, c_void_p,)),
    "tt_layer_dot_with": (c_void_p, (c_void_p, c_void_p,)),
    "tt_layer_repeat_with": (c_void_p, (c_void_p, c_void_p,)),
    "tt_layer_zero_pad_with": (c_void_p, (c_void_p, c_void_p,)),
    "tt_layer_crop_with": (c_void_p, (c_void_p, c_void_p,)),
    "tt_layer_upsample2d_with": (c_void_p, (c_void_p, c_void_p,)),
    "tt_layer_pixel_shuffle_with": (c_void_p, (c_void_p, c_void_p,)),
    "tt_layer_pixel_unshuffle_with": (c_void_p, (c_void_p, c_void_p,)),
    "tt_layer_upsample1d_with": (c_void_p, (c_void_p, c_void_p,)),
    "tt_layer_spatial_dropout_with": (c_void_p, (c_void_p, c_void_p,)),
    "tt_layer_gaussian_dropout_with": (c_void_p, (c_void_p, c_void_p,)),
    "tt_layer_gaussian_noise_with": (c_void_p, (c_void_p, c_void_p,)),
    "tt_layer_group_norm_with": (c_void_p, (c_void_p, c_void_p,)),
    "tt_layer_instance_norm_with": (c_void_p, (c_void_p, c_void_p,)),
    "tt_layer_conv1d_with": (c_void_p, (c_void_p, c_void_p,)),
    "tt_layer_conv2d_transpose_with": (c_void_p, (c_void_p, c_void_p,)),
    "tt_layer_conv1d_transpose_with": (c_void_p, (c_void_p, c_void_p,)),
    "tt_layer_separable_conv2d_with": (c_void_p, (c_void_p, c_void_p,)),
    "tt_layer_max_pool1d_with": (c_void_p, (c_void_p, c_void_p,)),
    "tt_layer_avg_pool1d_with": (c_void_p, (c_void_p, c_void_p,)),
    "tt_layer_global_avg_pool1d_with": (c_void_p, (c_void_p, c_void_p,)),
    "tt_layer_global_max_pool1d_with": (c_void_p, (c_void_p, c_void_p,)),
    "tt_layer_adaptive_avg_pool2d_with": (c_void_p, (c_void_p, c_void_p,)),
    "tt_layer_adaptive_max_pool2d_with": (c_void_p, (c_void_p, c_void_p,)),
    "tt_layer_multi_head_attention_with": (c_void_p, (c_void_p, c_void_p,)),
    "tt_layer_lambda_with": (c_void_p, (c_void_p, c_void_p,)),
    "tt_layer_llama_with": (c_void_p, (c_void_p, c_void_p,)),
    "tt_layer_bert_with": (c_void_p, (c_void_p, c_void_p,)),
    "tt_layer_vit_with": (c_void_p, (c_void_p, c_void_p,)),
    "tt_layer_mobilenet_v2_with": (c_void_p, (c_void_p, c_void_p,)),
    "tt_layer_unet_with": (c_void_p, (c_void_p, c_void_p,)),
    "tt_layer_lstm_lm_with": (c_void_p, (c_void_p, c_void_p,)),
    "tt_layer_tabular_with": (c_void_p, (c_void_p, c_void_p,)),
    "tt_layer_autoencoder_with": (c_void_p, (c_void_p, c_void_p,)),
    "tt_record_with": (c_void_p, (c_void_p, c_void_p,)),
    "tt_recorder_folder": (c_void_p, (c_void_p,)),
    "tt_recorder_end": (None, (c_void_p,)),
    "tt_record_origin_with": (c_int, (c_void_p, c_void_p,)),
    "tt_record_histogram_with": (c_int, (c_void_p, c_char_p, c_void_p,)),
    "tt_record_image_with": (c_int, (c_void_p, c_char_p, c_void_p,)),
    "tt_record_confusion_with": (c_int, (c_void_p, c_char_p, c_void_p,)),
    "tt_recurrent_with": (c_void_p, (c_void_p, c_void_p, c_void_p, c_void_p,)),
    "tt_layer_lstm_with": (c_void_p, (c_void_p, c_void_p,)),
    "tt_layer_gru_with": (c_void_p, (c_void_p, c_void_p,)),
    "tt_layer_rnn_with": (c_void_p, (c_void_p, c_void_p,)),
    "tt_serve_with": (c_void_p, (c_void_p, c_void_p,)),
    "tt_cluster_local_with": (c_void_p, (c_void_p, c_int, c_void_p,)),
    "tt_server_count": (c_int, (c_void_p,)),
    "tt_server_target": (c_void_p, (c_void_p, c_int,)),
    "tt_server_task": (c_void_p, (c_void_p, c_int,)),
    "tt_server_stop": (c_int, (c_void_p, c_int64,)),
    "tt_server_free": (None, (c_void_p,)),
    "tt_ping_sized": (c_int, (c_void_p, c_char_p, c_void_p, c_size_t, c_void_p,)),
    "tt_state_list_with": (c_int, (c_void_p, c_char_p, c_void_p, c_void_p, c_void_p,)),
    "tt_state_free": (None, (c_void_p, c_void_p,)),
    "tt_state_save_with": (c_int, (c_void_p, c_char_p, c_char_p, c_void_p, c_void_p,)),
    "tt_state_load_with": (c_int, (c_void_p, c_char_p, c_char_p, c_void_p, c_void_p,)),
    "tt_state_clear_with": (c_int, (c_void_p, c_char_p, c_void_p, c_void_p,)),
    "tt_queue_open_with": (c_void_p, (c_void_p, c_char_p, c_void_p,)),
    "tt_queue_free": (None, (c_void_p,)),
    "tt_enqueue_with": (c_int, (c_void_p, c_void_p,)),
    "tt_dequeue_with": (c_int, (c_void_p, c_void_p,)),
    "tt_queue_size": (c_int, (c_void_p, c_void_p,)),
    "tt_queue_close_with": (c_int, (c_void_p, c_void_p,)),
    "tt_threads_new": (c_void_p, (c_void_p,)),
    "tt_threads_free": (None, (c_void_p,)),
    "tt_threads_start": (c_int, (c_void_p, c_char_p, tt_thread_fn, c_void_p,)),
    "tt_threads_watch": (c_int, (c_void_p, c_void_p,)),
    "tt_threads_should_stop": (c_bool, (c_void_p,)),
    "tt_threads_stop": (None, (c_void_p, c_void_p,)),
    "tt_threads_join": (c_int, (c_void_p, c_int64,)),
    "tt_model_load": (c_void_p, (c_void_p, c_char_p,)),
    "tt_model_compile": (c_int, (c_void_p,)),
    "tt_model_input_count": (c_int, (c_void_p,)),
    "tt_model_output_count": (c_int, (c_void_p,)),
    "tt_model_input_sized": (c_int, (c_void_p, c_int, c_void_p, c_size_t,)),
    "tt_model_output_sized": (c_int, (c_void_p, c_int, c_void_p, c_size_t,)),
    "tt_model_class": (c_void_p, (c_void_p, c_int, c_int64,)),
    "tt_model_prepare": (c_int, (c_void_p, c_void_p,)),
    "tt_model_finish": (c_int, (c_void_p, c_int, c_void_p, c_int64,)),
    "tt_export_onnx_with": (c_int, (c_void_p, c_char_p, c_void_p,)),
}

# What ops.py passes: a kind for each parameter behind the graph.

OPS = {
    "tt_print": ("tensor", "text",),
    "tt_assert": ("tensor", "tensor", "text",),
    "tt_neg": ("tensor",),
    "tt_abs": ("tensor",),
    "tt_sqrt": ("tensor",),
    "tt_rsqrt": ("tensor",),
    "tt_exp": ("tensor",),
    "tt_log": ("tensor",),
    "tt_sin": ("tensor",),
    "tt_cos": ("tensor",),
    "tt_tanh": ("tensor",),
    "tt_sigmoid": ("tensor",),
    "tt_relu": ("tensor",),
    "tt_gelu": ("tensor",),
    "tt_gelu_erf": ("tensor",),
    "tt_silu": ("tensor",),
    "tt_softplus": ("tensor",),
    "tt_selu": ("tensor",),
    "tt_relu6": ("tensor",),
    "tt_mish": ("tensor",),
    "tt_hard_sigmoid": ("tensor",),
    "tt_hard_swish": ("tensor",),
    "tt_softsign": ("tensor",),
    "tt_square": ("tensor",),
    "tt_erf": ("tensor",),
    "tt_sign": ("tensor",),
    "tt_logical_not": ("tensor",),
    "tt_add": ("tensor", "tensor",),
    "tt_sub": ("tensor", "tensor",),
    "tt_mul": ("tensor", "tensor",),
    "tt_div": ("tensor", "tensor",),
    "tt_pow": ("tensor", "tensor",),
    "tt_minimum": ("tensor", "tensor",),
    "tt_maximum": ("tensor", "tensor",),
    "tt_equal": ("tensor", "tensor",),
    "tt_not_equal": ("tensor", "tensor",),
    "tt_less": ("tensor", "tensor",),
    "tt_less_equal": ("tensor", "tensor",),
    "tt_greater": ("tensor", "tensor",),
    "tt_greater_equal": ("tensor", "tensor",),
    "tt_logical_and": ("tensor", "tensor",),
    "tt_logical_or": ("tensor", "tensor",),
    "tt_leaky_relu": ("tensor", "double",),
    "tt_elu": ("tensor", "double",),
    "tt_clip": ("tensor", "double", "double",),
    "tt_scale": ("tensor", "double", "double",),
    "tt_where": ("tensor", "tensor", "tensor",),
    "tt_cast": ("tensor", "tt_dtype",),
    "tt_identity": ("tensor",),
    "tt_stop_gradient": ("tensor",),
    "tt_broadcast": ("tensor", "tensor",),
    "tt_sum_like": ("tensor", "tensor",),
    "tt_activation": ("tensor", "tt_act",),
    "tt_glu": ("tensor", "tt_act",),
    "tt_prelu": ("tensor", "tensor",),
    "tt_sum_with": ("tensor", "tt_reduce_opts",),
    "tt_mean_with": ("tensor", "tt_reduce_opts",),
    "tt_max_with": ("tensor", "tt_reduce_opts",),
    "tt_min_with": ("tensor", "tt_reduce_opts",),
    "tt_logsumexp_with": ("tensor", "tt_reduce_opts",),
    "tt_argmax": ("tensor", "int",),
    "tt_count": ("tensor", "tt_reduce_opts",),
    "tt_matmul_with": ("tensor", "tensor", "tt_matmul_opts",),
    "tt_conv2d_with": ("tensor", "tensor", "tt_conv2d_opts",),
    "tt_depthwise_conv2d_with": ("tensor", "tensor", "tt_conv2d_opts",),
    "tt_conv2d_transpose_with": ("tensor", "tensor", "tt_conv2d_transpose_opts",),
    "tt_max_pool2d_with": ("tensor", "tt_pool_opts",),
    "tt_avg_pool2d_with": ("tensor", "tt_pool_opts",),
    "tt_global_avg_pool2d": ("tensor",),
    "tt_global_max_pool2d": ("tensor",),
    "tt_layer_norm_with": ("tensor", "tensor", "tensor", "tt_norm_opts",),
    "tt_rms_norm_with": ("tensor", "tensor", "tt_norm_opts",),
    "tt_batch_norm_with": ("tensor", "tt_batch_norm_vars", "tt_batch_norm_opts",),
    "tt_softmax": ("tensor",),
    "tt_log_softmax": ("tensor",),
    "tt_cross_entropy_with": ("tensor", "tensor", "tt_cross_entropy_opts",),
    "tt_label_rank": ("tensor", "tensor",),
    "tt_embedding": ("tensor", "tensor",),
    "tt_gather": ("tensor", "tensor", "int",),
    "tt_scatter_add": ("tensor", "tensor", "int64_t",),
    "tt_one_hot": ("tensor", "int64_t", "tt_dtype",),
    "tt_reshape": ("tensor", "tt_shape",),
    "tt_flatten": ("tensor",),
    "tt_transpose": ("tensor", "tt_axes",),
    "tt_concat": ("tensors", "count", "int",),
    "tt_stack": ("tensors", "count", "int",),
    "tt_slice": ("tensor", "int", "int64_t", "int64_t",),
    "tt_pad": ("tensor", "int", "int64_t", "int64_t",),
    "tt_tile": ("tensor", "int", "int64_t",),
    "tt_squeeze": ("tensor", "int",),
    "tt_expand_dims": ("tensor", "int",),
    "tt_dropout": ("tensor", "double",),
    "tt_gaussian_noise": ("tensor", "double",),
    "tt_attention_with": ("tensor", "tensor", "tensor", "tt_attention_opts",),
    "tt_assign": ("tensor", "tensor",),
    "tt_update_sgd_with": ("tensor", "tensor", "tt_update_opts",),
    "tt_update_adam_with": ("tensor", "tensor", "tt_update_opts",),
    "tt_update_adamw_with": ("tensor", "tensor", "tt_update_opts",),
    "tt_update_rmsprop_with": ("tensor", "tensor", "tt_update_opts",),
    "tt_update_adagrad_with": ("tensor", "tensor", "tt_update_opts",),
    "tt_update_lion_with": ("tensor", "tensor", "tt_update_opts",),
    "tt_update_adadelta_with": ("tensor", "tensor", "tt_update_opts",),
    "tt_update_adamax_with": ("tensor", "tensor", "tt_update_opts",),
    "tt_update_nadam_with": ("tensor", "tensor", "tt_update_opts",),
    "tt_update_amsgrad_with": ("tensor", "tensor", "tt_update_opts",),
    "tt_update_ftrl_with": ("tensor", "tensor", "tt_update_opts",),
    "tt_update_ema_with": ("tensor", "tensor", "tt_update_ema_opts",),
    "tt_square_sum": ("tensor",),
    "tt_max_abs": ("tensors", "count",),
    "tt_update_scale_with": ("tensor", "tensor", "tensor", "tt_update_scale_opts",),
    "tt_update_loss_scale_with": ("tensor", "tensor", "tensor", "tt_update_loss_scale_opts",),
    "tt_recurrent_with": ("tensor", "tensor", "tt_recurrent_opts",),
}
