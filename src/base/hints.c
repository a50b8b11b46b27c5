/*
 * hints.c - the table of words from Keras, PyTorch, Lightning, Hugging Face and others.
 *
 * A word that is Tutti's own but for case and signs ("Conv2D", "batch-norm") needs no row: it is
 * recognised as the same. `ours` must exist: a test looks every one up.
 */
#include "base/hints.h"
#include <ctype.h>
#include <stdio.h>
#include <string.h>

#define KEY(where_, words_, ours_, note_)   \
    {                                       \
        "key", where_, words_, ours_, note_ \
    }
#define OF_OPTIMIZER "an option of the optimizer, as in optimizer: "

static const tti_hint hints[] = {
    // ---- training ----------------------------------------------------------------------------
    KEY(NULL,
        "batch_size bs mini_batch minibatch_size per_device_train_batch_size train_batch_size "
        "global_batch_size",
        "train.batch", "the global batch size over all devices"),
    KEY("train.optimizer", "learning_rate initial_lr base_lr init_lr", "lr", NULL),
    KEY("train.optimizer", "betas", "beta1", "and beta2"),
    KEY("train.optimizer", "epsilon", "eps", NULL),
    KEY("train.optimizer", "decay wd", "weight_decay", NULL),
    KEY("train.optimizer", "scheduler lr_scheduler lr_schedule", "schedule", NULL),
    KEY("train.optimizer", "max_grad_norm grad_clip clip gradient_clip_val global_clipnorm",
        "clip_global", NULL),
    KEY(NULL, "learning_rate lr initial_lr base_lr init_lr", "train.optimizer.adam.lr",
        OF_OPTIMIZER "{adam: {lr: 0.001}}"),
    KEY(NULL, "num_epochs n_epochs nb_epoch max_epochs num_train_epochs epoch", "train.epochs",
        NULL),
    KEY(NULL, "max_steps num_steps total_steps steps_per_epoch max_iter iterations", "train.steps",
        "the number of weight updates in total"),
    KEY(NULL, "weight_decay wd decay", "train.optimizer.adamw.weight_decay",
        OF_OPTIMIZER "{adamw: {weight_decay: 0.01}}"),
    KEY(NULL, "momentum", "train.optimizer.sgd.momentum",
        OF_OPTIMIZER "{sgd: {lr: 0.01, momentum: 0.9}}"),
    KEY(NULL, "betas", "train.optimizer.adam.beta1", "and beta2: adam: {beta1: 0.9, beta2: 0.999}"),
    KEY(NULL, "epsilon", "train.optimizer.adam.eps", "an option of the optimizer"),
    KEY(NULL, "criterion loss_fn loss_function objective", "train.loss", NULL),
    KEY(NULL, "optim opt", "train.optimizer", NULL),
    KEY(NULL, "metric", "train.metrics", "a list: metrics: [accuracy]"),
    KEY(NULL, "scheduler lr_scheduler lr_schedule learning_rate_schedule warmup warmup_steps",
        "train.optimizer.adam.schedule",
        OF_OPTIMIZER "{adam: {schedule: {cosine: {warmup: 100}}}}"),
    KEY(NULL, "early_stopping patience early_stopping_patience", "train.early_stop",
        "as in early_stop: {patience: 5}"),
    KEY(NULL, "reduce_lr_on_plateau", "train.plateau", "as in plateau: {patience: 3}"),
    KEY(NULL, "callbacks", NULL,
        "early stopping is train.early_stop, a lower learning rate on plateaus is train.plateau, "
        "checkpoints are the section checkpoint"),
    KEY(NULL, "monitor", "train.early_stop.value", "and checkpoint.best for the best checkpoint"),
    KEY("train.early_stop", "restore_best_weights", "restore", NULL),
    KEY("train.early_stop", "mode", "max", "max: true if higher is better"),
    KEY(NULL, "gradient_accumulation_steps accumulate_grad_batches grad_accum accumulation_steps",
        "train.accumulate", NULL),
    KEY(NULL,
        "max_grad_norm gradient_clip_val grad_clip clip_grad_norm gradient_clipping "
        "global_clipnorm clip",
        "train.optimizer.adam.clip_global", OF_OPTIMIZER "{adam: {clip_global: 1.0}}"),
    KEY(NULL, "clipnorm", "train.optimizer.adam.clip_norm", "an option of the optimizer"),
    KEY(NULL, "clipvalue clip_grad_value", "train.optimizer.adam.clip_value",
        "an option of the optimizer"),
    KEY(NULL, "mixed_precision amp fp16 bf16 half use_amp dtype autocast", "train.precision",
        "one of f32, bf16, f16"),
    KEY(NULL, "gradient_checkpointing activation_checkpointing remat", "train.recompute", NULL),
    KEY(NULL, "eval_steps val_check_interval validation_freq", "train.validate_every", NULL),
    KEY(NULL, "trainable requires_grad frozen freeze_layers", "train.freeze",
        "as name patterns: freeze: [conv2d_*]"),
    KEY(NULL, "random_state manual_seed random_seed rng_seed", "seed", NULL),

    // ---- data --------------------------------------------------------------------------------
    KEY(NULL, "num_workers n_workers dataloader_num_workers workers", "data.workers", NULL),
    KEY(NULL, "prefetch_factor buffer_size", "data.prefetch", NULL),
    KEY(NULL, "pin_memory persistent_workers", NULL, "leave it out: Tutti does this by itself"),
    KEY(NULL, "drop_last drop_remainder", NULL,
        "leave it out: the last batch of an epoch may be smaller"),
    KEY(NULL, "val_split validation_split val_size valid_pct val_fraction val_ratio",
        "data.validate", "as in validate: {split: 0.1}"),
    KEY(NULL, "validation_data val_data val_dataset eval_dataset valid validation dev eval",
        "data.validate", NULL),
    KEY(NULL, "train_data train_dataset training_data dataset", "data.train", NULL),
    KEY(NULL, "test_data test_dataset test_size", "data.test", NULL),
    KEY(NULL, "data_dir dataset_dir data_path root data_root", "data.dir", NULL),
    KEY(NULL, "transforms preprocessing augmentation augment", "data.transform", NULL),
    KEY("data", "path filename file_path csv_path files", "file", NULL),
    KEY("data", "sep delimiter separator", "comma", NULL),
    KEY("data", "target label labels target_column label_column", "y", "the target columns"),
    KEY("data", "features inputs feature_columns columns", "x", "the input columns"),
    KEY("data", "header has_header", "no_header", "no_header: true if there is no header line"),
    KEY("data", "class_names", "words", NULL),
    KEY("data", "seq_len sequence_length block_size max_length", "context", NULL),
    KEY("data", "tokenizer", "level", "char or byte; for other tokenizers use the source tokens"),
    KEY(NULL, "tokenizer", NULL,
        "characters or bytes: data: {train: {text: {file: a.txt, level: char, context: 64}}}; for "
        "other tokenizers write token files and use the source tokens"),
    KEY("data", "std stddev variance", "scale", NULL),

    // ---- the model ---------------------------------------------------------------------------
    KEY("model", "out_features output_dim num_outputs hidden_size hidden_units n_units", "units",
        NULL),
    KEY("model", "out_channels num_filters n_filters channels", "filters", NULL),
    KEY("model",
        "in_features in_channels input_dim input_size num_features input_shape in_planes d_model "
        "embed_dim",
        NULL, "leave it out: it is known from the layer before"),
    KEY("model", "kernel_size filter_size ksize", "kernel", NULL),
    KEY("model", "pool_size window", "size", NULL),
    KEY("model", "strides", "stride", NULL),
    KEY("model", "activation nonlinearity activation_function", "act", NULL),
    KEY("model", "use_bias bias", "no_bias", "no_bias: true leaves the bias out"),
    KEY("model", "kernel_initializer weight_init initializer", "init", NULL),
    KEY("model", "p prob dropout_rate drop_rate", "rate", NULL),
    KEY("model", "num_embeddings vocab_size input_vocab", "vocab", NULL),
    KEY("model", "embedding_dim emb_dim n_embd embedding_size", "width", NULL),
    KEY("model", "num_heads n_head nhead n_heads", "heads", NULL),
    KEY("model", "num_layers n_layer n_layers depth", "layers", NULL),
    KEY("model", "dim_feedforward intermediate_size ffn_dim", "hidden", NULL),
    KEY("model", "is_causal use_causal_mask", "causal", NULL),
    KEY(NULL, "layers architecture network net sequential module", "model", "a list of layers"),

    // ---- losses' options ---------------------------------------------------------------------
    KEY("train.loss", "label_smoothing", "smoothing", NULL),
    KEY("train.loss", "ignore_index", "ignore", NULL),
    KEY("train.loss", "from_logits", NULL,
        "leave it out: the loss takes logits, and a final softmax or sigmoid is skipped"),
    KEY("train.loss", "reduction", NULL, "leave it out: the loss is a mean"),
    KEY("train.loss", "class_weights pos_weight", "class_weight", "as in [0=1, 1=5]"),
    KEY(NULL, "class_weight class_weights pos_weight", "train.loss.cross_entropy.class_weight",
        "an option of the loss: {cross_entropy: {class_weight: [0=1, 1=5]}}"),
    KEY(NULL, "sample_weight sample_weights", "train.loss.mse.sample_weight",
        "an option of the loss: {mse: {sample_weight: NAME}}, NAME a field of the data"),

    // ---- devices, output ---------------------------------------------------------------------
    KEY(NULL, "device gpus num_gpus n_gpu accelerator gpu cuda", "distribute.devices",
        "cpu:0, gpu:0, all"),
    KEY(NULL, "distribution_strategy ddp distributed parallel", "distribute.strategy", NULL),
    KEY(NULL, "num_nodes nproc_per_node world_size", NULL,
        "tutti run -n N or -H HOSTS starts several processes"),
    KEY(NULL, "save_steps save_every save_freq every_n_train_steps", "checkpoint.every", NULL),
    KEY(NULL, "save_total_limit max_to_keep save_top_k keep_checkpoint_max", "checkpoint.keep",
        NULL),
    KEY(NULL, "save_best_only load_best_model_at_end model_checkpoint", "checkpoint.best", NULL),
    KEY(NULL, "checkpoints checkpointing", "checkpoint", NULL),
    KEY(NULL, "output_dir log_dir logging_dir save_dir default_root_dir checkpoint_dir logdir",
        "output.dir", NULL),
    KEY(NULL, "pretrained weights load_weights resume_from_checkpoint from_pretrained ckpt",
        "init.file", "to continue a run, use --resume"),
    KEY(NULL, "experiment_name run_name project title", "name", NULL),
    KEY(NULL, "version description comment", NULL, "leave it out; a comment begins with #"),

    // ---- layers ------------------------------------------------------------------------------
    {"layer", NULL, "linear fc fully_connected lazy_linear inner_product", "dense", NULL},
    {"layer", NULL, "conv convolution convolution2d lazy_conv2d", "conv2d", NULL},
    {"layer", NULL, "depthwise_conv", "depthwise_conv2d", NULL},
    {"layer", NULL, "separable_conv", "separable_conv2d", NULL},
    {"layer", NULL, "convolution1d lazy_conv1d", "conv1d", NULL},
    {"layer", NULL, "conv_transpose2d convolution2d_transpose deconv2d deconv", "conv2d_transpose",
     NULL},
    {"layer", NULL, "conv_transpose1d", "conv1d_transpose", NULL},
    {"layer", NULL, "max_pooling1d", "max_pool1d", NULL},
    {"layer", NULL, "average_pooling1d average_pool1d", "avg_pool1d", NULL},
    {"layer", NULL, "global_average_pooling1d", "global_avg_pool1d", NULL},
    {"layer", NULL, "global_max_pooling1d", "global_max_pool1d", NULL},
    {"layer", NULL, "max_pooling2d max_pool maxpooling pool2d", "max_pool2d", NULL},
    {"layer", NULL, "average_pooling2d avg_pool average_pool2d", "avg_pool2d", NULL},
    {"layer", NULL, "global_average_pooling2d global_avg_pool global_average_pool",
     "global_avg_pool2d", NULL},
    {"layer", NULL, "global_max_pooling2d global_max_pool", "global_max_pool2d", NULL},
    {"layer", NULL,
     "relu gelu sigmoid tanh silu elu softplus softmax selu relu6 mish hard_sigmoid hard_swish "
     "softsign",
     "activation", "as in activation: relu, or act: relu in the layer before"},
    {"layer", NULL, "leakyrelu swish log_softmax", "activation",
     "one of linear, relu, gelu, gelu_erf, sigmoid, tanh, silu, elu, leaky_relu, softplus, "
     "softmax, selu, relu6, mish, hard_sigmoid, hard_swish, softsign"},
    {"layer", NULL, "batch_norm2d batch_norm1d batch_normalization bn sync_batch_norm",
     "batch_norm", NULL},
    {"layer", NULL, "layer_normalization ln", "layer_norm", NULL},
    {"layer", NULL, "rms_normalization", "rms_norm", NULL},
    {"layer", NULL, "dropout1d dropout2d spatial_dropout1d spatial_dropout2d", "spatial_dropout",
     NULL},
    {"layer", NULL, "alpha_dropout", "dropout", NULL},
    {"layer", NULL, "group_normalization", "group_norm", NULL},
    {"layer", NULL, "instance_norm1d instance_norm2d", "instance_norm", NULL},
    {"layer", NULL, "repeat_vector", "repeat", NULL},
    {"layer", NULL, "cropping1d cropping2d", "crop", NULL},
    {"layer", NULL, "zero_padding1d zero_padding2d zero_pad1d zero_pad2d pad", "zero_pad",
     "a convolution pads by its keys padding and pad"},
    {"layer", NULL, "upsample upsampling2d up_sampling2d upsampling_nearest2d", "upsample2d", NULL},
    {"layer", NULL, "upsampling_bilinear2d", "upsample2d", "with mode: bilinear"},
    {"layer", NULL, "up_sampling1d upsampling1d", "upsample1d", NULL},
    {"layer", NULL, "mul", "multiply", NULL},
    {"layer", NULL, "sub", "subtract", NULL},
    {"layer", NULL, "cosine_similarity", "dot", "with normalise: true"},
    {"layer", NULL, "self_attention scaled_dot_product_attention", "attention", NULL},
    {"layer", NULL, "mha group_query_attention grouped_query_attention", "multi_head_attention",
     NULL},
    {"layer", NULL, "transformer_encoder_layer transformer_encoder transformer transformer_layer",
     "transformer_block", NULL},
    {"layer", NULL, "positional_encoding position_embedding positional_embedding pos_embed",
     "positional", NULL},
    {"layer", NULL, "concatenate cat", "concat", NULL},
    {"layer", NULL, "view", "reshape", NULL},
    {"layer", NULL, "transpose", "permute", NULL},
    {"layer", NULL, "skip shortcut residual_block basic_block", "residual", NULL},
    {"layer", NULL, "resnet18 resnet34 resnet50", "resnet", "as in resnet: {depth: 18}"},
    {"layer", NULL, "gpt2", "gpt", NULL},
    {"layer", NULL, "llama2 llama3 mistral", "llama", NULL},
    {"layer", NULL, "vision_transformer", "vit", NULL},
    {"layer", NULL, "mobilenet", "mobilenet_v2", NULL},
    {"layer", NULL, "input input_layer", NULL,
     "leave it out: the input is known from the data (or model.inputs)"},
    {"layer", NULL, "sequential", NULL, "leave it out: the model is a list of layers"},
    {"layer", NULL, "identity", NULL, "leave it out: it does nothing"},
    {"layer", NULL, "simple_rnn", "rnn", NULL},
    {"layer", NULL, "bidirectional", "lstm", "as in lstm: {units: 32, bidirectional: true}"},
    {"layer", NULL, "conv3d conv_transpose3d max_pool3d avg_pool3d", NULL,
     "the convolutions are conv1d, conv2d, depthwise_conv2d, separable_conv2d, conv1d_transpose "
     "and "
     "conv2d_transpose"},

    // ---- losses, optimizers, metrics, schedules ----------------------------------------------
    {"loss", NULL,
     "cross_entropy_loss categorical_crossentropy sparse_categorical_crossentropy ce "
     "nll_loss nll softmax_cross_entropy log_loss",
     "cross_entropy", NULL},
    {"loss", NULL, "bce_loss bce bce_with_logits_loss binary_cross_entropy_with_logits",
     "binary_cross_entropy", NULL},
    {"loss", NULL, "mse_loss mean_squared_error l2 l2_loss squared_error", "mse", NULL},
    {"loss", NULL, "l1_loss l1 mean_absolute_error mae_loss", "mae", NULL},
    {"loss", NULL, "smooth_l1_loss huber_loss smooth_l1", "huber", NULL},
    {"loss", NULL, "kl kl_div kl_div_loss kullback_leibler_divergence kld", "kl_divergence", NULL},
    {"loss", NULL, "cosine cosine_loss cosine_embedding_loss", "cosine_similarity", NULL},
    {"loss", NULL, "poisson_nll_loss poisson_loss", "poisson", NULL},
    {"loss", NULL, "focal_loss categorical_focal_crossentropy", "focal", NULL},
    {"loss", NULL, "binary_focal_crossentropy sigmoid_focal_loss", "binary_focal", NULL},
    {"loss", NULL, "dice_loss", "dice", NULL},
    {"loss", NULL, "mean_absolute_percentage_error", "mape", NULL},
    {"loss", NULL, "mean_squared_logarithmic_error", "msle", NULL},
    {"loss", NULL, "ctc ctc_loss triplet triplet_margin_loss contrastive info_nce tversky circle",
     NULL, "there is no such loss; a C or Python program can define it (docs/training-map.md)"},
    {"optimizer", NULL, "momentum nesterov stochastic_gradient_descent gradient_descent", "sgd",
     "as in sgd: {lr: 0.01, momentum: 0.9}"},
    {"optimizer", NULL, "radam adafactor muon sam lookahead schedule_free", "adamw",
     "or another one"},
    {"optimizer", NULL, "follow_the_regularized_leader ftrl_proximal", "ftrl", NULL},
    {"optimizer", NULL, "rms", "rmsprop", NULL},
    {"optimizer", NULL, "lr learning_rate", NULL,
     "the learning rate stands below the optimizer's name: optimizer: {adam: {lr: 0.001}}"},
    {"optimizer", NULL, "type class_name name", NULL,
     "the optimizer's name is the key: optimizer: {adam: {lr: 0.001}}"},
    {"metric", NULL,
     "acc categorical_accuracy sparse_categorical_accuracy binary_accuracy accuracy_score",
     "accuracy", NULL},
    {"metric", NULL, "top5 top_5 top_k_categorical_accuracy top_k_accuracy top5_accuracy", "top_k",
     "its k is train.top_k"},
    {"metric", NULL, "f1_score fscore", "f1", NULL},
    {"metric", NULL, "mean_squared_error", "mse", NULL},
    {"metric", NULL, "root_mean_squared_error", "rmse", NULL},
    {"metric", NULL, "roc_auc auroc auc_roc roc_auc_score", "auc", NULL},
    {"metric", NULL, "average_precision average_precision_score auprc pr_auc", "auc_pr", NULL},
    {"metric", NULL, "mean_io_u miou jaccard jaccard_index", "iou", NULL},
    {"metric", NULL, "r2_score", "r2", NULL},
    {"metric", NULL, "mean_absolute_percentage_error", "mape", NULL},
    {"metric", NULL, "cosine_similarity", "cosine", NULL},
    {"metric", NULL, "ece expected_calibration_error", "calibration_error", NULL},
    {"metric", NULL, "confusion_matrix", "confusion", NULL},
    {"metric", NULL, "bpb bits_per_character bpc", "bits_per_byte", NULL},
    {"metric", NULL, "mean_absolute_error", "mae", NULL},
    {"metric", NULL, "ppl", "perplexity", NULL},
    {"metric", NULL, "loss", NULL, "leave it out: the loss is always reported"},
    {"schedule", NULL, "cosine_annealing cosine_annealing_lr cosine_decay cosine_lr", "cosine",
     NULL},
    {"schedule", NULL,
     "cosine_annealing_warm_restarts cosine_decay_restarts sgdr warm_restarts restarts",
     "cosine_restarts", NULL},
    {"schedule", NULL, "warmup_stable_decay trapezoidal", "wsd", NULL},
    {"schedule", NULL, "inverse_time_decay", "inverse_time", NULL},
    {"schedule", NULL, "step_lr step_decay", "step", NULL},
    {"schedule", NULL, "multi_step_lr multi_step piecewise_constant piecewise_constant_decay",
     "piecewise", "as in piecewise: {pieces: [1000=0.5, 2000=0.1]}"},
    {"schedule", NULL, "polynomial_decay polynomial_lr poly", "polynomial", NULL},
    {"schedule", NULL, "exponential_lr exponential_decay", "exponential", NULL},
    {"schedule", NULL, "linear_lr linear_decay", "linear", NULL},
    {"schedule", NULL, "one_cycle_lr", "one_cycle", NULL},
    {"schedule", NULL, "reduce_lr_on_plateau", NULL, "use train.plateau"},
    {"schedule", NULL, "warmup linear_warmup", "cosine",
     "warmup is a key of every schedule: cosine: {warmup: 100}"},

    // ---- data --------------------------------------------------------------------------------
    {"source", NULL, "fashion_mnist", "mnist", "with data.dir: its files have the same format"},
    {"source", NULL, "cifar", "cifar10", NULL},
    {"source", NULL, "numpy array np npz", "npy", NULL},
    {"source", NULL, "tsv pandas dataframe", "csv", "comma: tab for tab-separated columns"},
    {"source", NULL, "txt corpus", "text", NULL},
    {"source", NULL, "image_folder image_dataset_from_directory jpeg jpg png photos", "images",
     NULL},
    {"source", NULL, "json ndjson", "jsonl", NULL},
    {"source", NULL, "tfrecords tfrecord_dataset", "tfrecord", NULL},
    {"source", NULL, "wds tar", "webdataset", NULL},
    {"transform", NULL, "normalize normalization standardize standardise standard_scaler rescale",
     "normalise", NULL},
    {"transform", NULL, "to_categorical", "one_hot", NULL},
    {"transform", NULL, "random_horizontal_flip horizontal_flip hflip", "random_flip", NULL},
    {"transform", NULL, "random_translation random_affine", "random_shift", NULL},
    {"transform", NULL, "to_tensor", NULL,
     "leave it out: bytes are scaled by the transform normalise"},
    {"transform", NULL, "nchw_to_nhwc", "channels_last", NULL},
    {"transform", NULL, "center_crop", "centre_crop", NULL},
    {"transform", NULL, "color_jitter colour_jitter random_brightness random_contrast random_color",
     "random_colour", NULL},
    {"transform", NULL, "gaussian_blur", "random_blur", NULL},
    {"transform", NULL, "random_rotation", "random_rotate", NULL},
    {"transform", NULL, "mixup", "random_mixup", NULL},
    {"transform", NULL, "cutmix", "random_cutmix", NULL},
    {"transform", NULL, "fillna simple_imputer impute", "fill_missing", NULL},

    // ---- values of keys, by the key's name ---------------------------------------------------
    {"strategy", NULL,
     "ddp dp data_parallel distributed_data_parallel mirrored_strategy multi_worker_mirrored "
     "multi_worker_mirrored_strategy horovod allreduce",
     "mirrored", NULL},
    {"strategy", NULL, "fsdp zero deepspeed fully_sharded_data_parallel", "mirrored",
     "with distribute.update: shard the optimizer's state is divided"},
    {"strategy", NULL, "parameter_server parameter_server_strategy central_storage ps", "central",
     NULL},
    {"strategy", NULL, "pp gpipe pipeline_parallel 1f1b", "pipeline", NULL},
    {"strategy", NULL, "one_device_strategy none default one_device", "single", NULL},
    {"act", NULL, "swish", "silu", NULL},
    {"act", NULL, "gelu_tanh gelu_new", "gelu", NULL},
    {"act", NULL, "none identity", "linear", NULL},
    {"act", NULL, "logistic", "sigmoid", NULL},
    {"init", NULL, "xavier_uniform xavier", "glorot_uniform", NULL},
    {"init", NULL, "xavier_normal", "glorot_normal", NULL},
    {"init", NULL, "kaiming_uniform", "he_uniform", NULL},
    {"init", NULL, "kaiming_normal kaiming", "he_normal", NULL},
    {"precision", NULL, "float32 fp32 full 32", "f32", NULL},
    {"precision", NULL, "bfloat16 mixed_bfloat16 bf16_mixed", "bf16", NULL},
    {"precision", NULL, "float16 fp16 half mixed_float16 16_mixed 16", "f16", NULL},
    {"list", NULL, "units", NULL, "for several layers use mlp: [128, 10], or one dense for each"},
    {"list", NULL, "filters", NULL, "use one conv2d for each"},
    {"list", NULL, "rate", NULL, "use one dropout for each"},

    // ---- flags, where no key and no flag of ours says it -------------------------------------
    {"flag", NULL, "config config_file job file yaml", NULL,
     "the job file is given without a flag: "
     "tutti train job.yaml"},
    {"flag", NULL, "verbose v", NULL, "use --level info"},
    {"flag", NULL, "debug", NULL, "use --level debug"},
    {"flag", NULL, "silent", NULL, "use --quiet"},
    {"flag", NULL, "log_level logging loglevel", NULL, "use --level"},
    {"flag", NULL, "resume_from_checkpoint continue resume_training", NULL,
     "use --resume; the run may be given by its name: tutti train NAME --resume"},
    {"flag", NULL, "nproc_per_node nproc np num_processes n_procs nprocs", NULL,
     "use tutti run -n N"},
    {"flag", NULL, "nnodes node_rank master_addr master_port hostfile", NULL,
     "use tutti run -H HOSTS or --hosts FILE"},
    {"flag", NULL, "overwrite force", NULL, "use --restart to start a run again at step 0"},
    {"flag", NULL, "format", NULL, "use --json, or the ending of --output's file"},
    {"flag", NULL, "num_threads cores cpus jobs", NULL, "use --threads N"},
};

const tti_hint *tti_hint_at(int i)
{
    return i >= 0 && i < TTI_COUNT(hints) ? &hints[i] : NULL;
}

// ---- comparing -------------------------------------------------------------------------------

// The next letter or digit, in lower case; 0 at the end, which is also a space.
static int next(const char **s)
{
    while (**s != '\0' && **s != ' ' && !isalnum((unsigned char)**s))
        (*s)++;
    return **s == '\0' || **s == ' ' ? 0 : tolower((unsigned char)*(*s)++);
}

bool tti_is_same_word(const char *a, const char *b)
{
    int x, y;
    do {
        x = next(&a);
        y = next(&b);
    } while (x == y && x != 0);
    return x == y;
}

// What follows the last dot: "Linear" of "torch.nn.Linear".
static const char *last_part(const char *word)
{
    const char *dot = strrchr(word, '.');
    return dot != NULL && dot[1] != '\0' ? dot + 1 : word;
}

static bool has_word(const tti_hint *h, const char *word)
{
    for (const char *s = h->words; *s != '\0'; s += strspn(s, " ")) {
        if (tti_is_same_word(s, word))
            return true;
        s += strcspn(s, " ");
    }
    return false;
}

// Is path the section, or below it?
static bool is_in(const char *path, const char *section)
{
    size_t n = strlen(section);
    return path != NULL && strncmp(path, section, n) == 0 && (path[n] == '\0' || path[n] == '.');
}

const tti_hint *tti_hint_find(const char *kind, const char *path, const char *word)
{
    const tti_hint *general = NULL;
    word = last_part(word);
    if (tti_is_same_word(word, ""))
        return NULL;
    for (int i = 0; i < TTI_COUNT(hints); i++) {
        const tti_hint *h = &hints[i];
        if (strcmp(h->kind, kind) != 0 || !has_word(h, word))
            continue;
        if (h->where != NULL && is_in(path, h->where))
            return h;
        if (h->where == NULL && general == NULL)
            general = h;
    }
    return general;
}

const char *tti_hint_text(const tti_hint *h, char out[TTI_HINT_MAX])
{
    if (h->ours == NULL)
        snprintf(out, TTI_HINT_MAX, "%s", h->note);
    else
        snprintf(out, TTI_HINT_MAX, "use %s%s%s%s", h->ours, h->note != NULL ? " (" : "",
                 h->note != NULL ? h->note : "", h->note != NULL ? ")" : "");
    return out;
}

bool tti_hint_helps(const tti_hint *h, const char *word, const char *near)
{
    if (h == NULL || near == NULL)
        return h != NULL;
    return !tti_is_same_word(last_part(word), near) &&
           (h->ours == NULL || strcmp(h->ours, near) != 0);
}

const char *tti_meant(const char *word, const char *const *names)
{
    const char *last = last_part(word);
    for (int i = 0; names[i] != NULL; i++)
        if (tti_is_same_word(last, names[i]) && !tti_is_same_word(last, ""))
            return names[i];
    return tti_nearest(word, names);
}
