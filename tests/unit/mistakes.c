/*
 * mistakes.c - the typical mistakes of new users, as a table: each is made with the real command,
 * and the answer must name the culprit and the remedy. (Those of several processes: dist/mistakes.)
 */
#include "../mistakes.h"
#include "base/base.h"

// One line of job.yaml replaced, then trained.
#define CHANGED(old, new) "sed -i 's/" old "/" new "/' job.yaml"
#define TRAIN             "$TUTTI train job.yaml --quiet"
#define TRAINED           "$TUTTI train $J --quiet" // a run small-001, before the mistake

// ---- the job file ----------------------------------------------------------------------------

static const mistake in_jobs[] = {
    {"batch_size", TRAIN, 3, "job.yaml:9:3: train: unknown key 'batch_size'", "use train.batch",
     CHANGED("batch:", "batch_size:")},
    {"lr beside the optimizer", TRAIN, 3, "job.yaml:9:3: train: unknown key 'lr'",
     "as in optimizer: {adam: {lr: 0.001}}", CHANGED("batch: 32", "lr: 0.1")},
    {"learning_rate below the optimizer", TRAIN, 3, "unknown key 'learning_rate'", "use lr\n",
     CHANGED("{lr:", "{learning_rate:")},
    {"a key near to one", TRAIN, 3, "unknown key 'bacth'", "did you mean 'batch'?",
     CHANGED("batch:", "bacth:")},
    {"a key of nothing", TRAIN, 3, "job.yaml:1:1: unknown key 'tokenizer'",
     "possible: name, seed, data, model, train, init, checkpoint, distribute, output",
     CHANGED("name: job", "tokenizer: bpe")},
    {"an unknown layer", TRAIN, 3, "job.yaml:6:5: model.1: unknown layer 'blurb'",
     "tabular, autoencoder\n", CHANGED("dense:", "blurb:")},
    {"a layer of PyTorch", TRAIN, 3, "unknown layer 'Linear'", "use dense",
     CHANGED("dense:", "Linear:")},
    {"units as a list", TRAIN, 3, "job.yaml:6:20: model.1.dense.units: is a list",
     "for several layers use mlp: [128, 10]", CHANGED("dense: 10", "dense: {units: [128, 10]}")},
    {"a loss of PyTorch", TRAIN, 3, "unknown loss 'CrossEntropyLoss'", "use cross_entropy",
     CHANGED("cross_entropy", "CrossEntropyLoss")},
    {"no section train", TRAIN, 3, "job.yaml has no section train",
     "for example train: {loss: cross_entropy", "sed -i '/^train:/,$d' job.yaml"},
    {"no loss", TRAIN, 3, "job.yaml:8:3: train: loss must be given", NULL,
     "sed -i '/loss:/d' job.yaml"},
    {"no model", TRAIN, 3, "job.yaml:1:1: model must be given", NULL,
     "sed -i '/^model:/,/dense/d' job.yaml"},
    {"no data", TRAIN, 3, "data: train must be given", NULL, "sed -i '2,3d' job.yaml"},
    {"a text as a number", TRAIN, 3, "job.yaml:9:10: train.batch: 'many' is not an integer", NULL,
     CHANGED("batch: 32", "batch: many")},
    {"a number out of range", TRAIN, 3, "train.batch: '0' is below 1", NULL,
     CHANGED("batch: 32", "batch: 0")},
    {"a map as a number", TRAIN, 3, "train.batch: is a map, but must be an integer", NULL,
     CHANGED("batch: 32", "batch: {size: 32}")},
    {"a key twice", TRAIN, 3, "job.yaml:9:3: key 'epochs' was given before, at line 8", NULL,
     CHANGED("batch: 32", "epochs: 32")},
    {"epochs and steps", TRAIN, 3, "train.steps: is 5, but train.epochs is 1", "only one of them",
     CHANGED("batch: 32", "steps: 5")},
    {"tabs for spaces", TRAIN, 3, "job.yaml:9:1: found ", NULL,
     CHANGED("  batch: 32", "\\tbatch: 32")},
    {"an empty file", TRAIN, 3, "job.yaml:1:1: is empty", NULL, ": > job.yaml"},
    {"a job file that is not there", "$TUTTI train jbo.yaml", 3, "cannot open 'jbo.yaml'",
     "No such file", NULL},
    {"a kernel larger than the image", TRAIN, 3, "a kernel of 30 x 30 does not fit", "28, 28, 1",
     CHANGED("- flatten", "- conv2d: {filters: 2, kernel: 30}")},
    {"a metric of nothing", TRAIN, 3, "unknown metric 'acc'", "use accuracy",
     CHANGED("batch: 32", "metrics: [acc]")},
    {"an activation in capitals", TRAIN, 3, "'ReLU' is unknown", "did you mean 'relu'?",
     CHANGED("dense: 10", "dense: {units: 10, act: ReLU}")},
    {"an early stop of nothing", TRAIN, 3, "early_stop watches 'acuracy'", "needs validation data",
     CHANGED("batch: 32", "early_stop: {value: acuracy, patience: 2}")},
};

TEST(mistakes_in_job_files)
{
    test_need_yaml();
    mistakes_make(in_jobs, TTI_COUNT(in_jobs));
}

// ---- the command line ------------------------------------------------------------------------

static const mistake in_lines[] = {
    {"--batch-size", "$TUTTI train $J --batch-size 3", 2, "unknown flag --batch-size",
     "use --batch\n", NULL},
    {"--num-workers", "$TUTTI train $J --num-workers 3", 2, "unknown flag --num-workers",
     "use --set data.workers=VALUE", NULL},
    {"a misspelt command", "$TUTTI trian $J", 2, "unknown command 'trian'", "did you mean 'train'?",
     NULL},
    {"a misspelt flag", "$TUTTI train $J --reusme", 2, "unknown flag --reusme",
     "did you mean --resume?", NULL},
    {"no job", "$TUTTI train", 2, "tutti train needs JOB", NULL, NULL},
    {"a key that is not there", "$TUTTI train $J --set train.bacth=3", 3, "--set train.bacth",
     "did you mean 'batch'?", NULL},
    {"a strategy of nothing", "$TUTTI train $J --strategy fast", 2, "'fast' is not one of",
     "single, mirrored, central, pipeline", NULL},
    {"a strategy of PyTorch", "$TUTTI train $J --strategy ddp", 2, "'ddp' is unknown",
     "did you mean 'mirrored'?", NULL},
    {"a device of nothing", "$TUTTI train $J --devices tpu:0", 2, "there are no 'tpu' devices",
     "only cpu and gpu", NULL},
    {"a device that is not there", "$TUTTI train $J --devices cpu:7", 2, "cpu:7 does not exist",
     "this machine has 1 (cpu:0)", NULL},
    {"more replicas than lanes", "$TUTTI train $J --strategy mirrored --devices 'cpu:0*9'", 3,
     "9 replicas, but 8 lanes", "use lanes: 9 (which changes the bits), or 8 devices", NULL},
    {"devices that are not used", "$TUTTI train $J --devices 'cpu:0*2' --quiet", 0,
     "2 devices, but strategy is single", "use strategy mirrored", NULL},
    {"a pipeline longer than the model",
     "$TUTTI train job.yaml --devices 'cpu:0*4' --strategy pipeline --quiet", 0,
     "strategy pipeline: 4 stages, but the model has only 1 layer with a weight matrix",
     "use at most 1 device per replica, or strategy mirrored", NULL},
    {"more memory than there is",
     "$TUTTI train $J --set model.1.dense.units=300000000 --set data.train.digits.count=32", 3,
     "more than the ", "of memory that this machine has", NULL},
    {"more memory than there is, --dry-run",
     "$TUTTI train $J --set model.1.dense.units=300000000 --dry-run --quiet", 3, "more than the ",
     "of memory that this machine has", NULL},
    {"a TF_CONFIG that is cut off", "TF_CONFIG='{\"cluster\": {\"worker\": [' $TUTTI train $J", 3,
     "TF_CONFIG is not valid JSON: line 1", "TUTTI_CLUSTER=ignore to ignore it", NULL},
    {"a TF_CONFIG with another index",
     "TF_CONFIG='{\"cluster\": {\"worker\": [\"a:1\"]}, \"task\": {\"type\": \"worker\", "
     "\"index\": 5}}' $TUTTI train $J",
     3, "task is worker 5, but cluster has 1", "use an index from 0 to 0", NULL},
};

TEST(mistakes_on_the_command_line)
{
    test_need_yaml();
    mistakes_make(in_lines, TTI_COUNT(in_lines));
}

// ---- runs ------------------------------------------------------------------------------------

static const mistake with_runs[] = {
    {"--resume of a finished run", "$TUTTI train $J --resume", 0,
     "already finished with 30 of 30 steps; nothing was trained", "add --epochs N", TRAINED},
    {"--resume with a misspelt name", "$TUTTI train smal --resume", 1, "there is no run 'smal'",
     "did you mean 'small'?", TRAINED},
    {"--resume with a misspelt folder", "$TUTTI train $J --run runs/smal-001 --resume", 1,
     "there is no run 'runs/smal-001' to resume", "did you mean 'runs/small-001'?", TRAINED},
    {"--resume with another optimizer",
     "$TUTTI train $J --resume --epochs 4 --set "
     "'train.optimizer={sgd: {lr: 0.1}}'",
     3, "the optimizer has changed: the checkpoint is of adam or adamw, this training uses sgd",
     "resume with the same optimizer, or start a new run from these weights with init:", TRAINED},
    {"--resume with another batch", "$TUTTI train $J --resume --epochs 4 --batch 64", 3,
     "was made with updates of 32 x 1 rows, this fit has 64 x 1", "resume with the same product",
     TRAINED},
    {"--resume with another model",
     "$TUTTI train $J --resume --epochs 4 --set "
     "model.1.dense.units=17",
     3, "'dense_1.weight' is f32 [784, 16] but the model's is [784, 17]", "step-30", TRAINED},
    {"--resume with other lanes", "$TUTTI train $J --resume --epochs 4 --lanes 4", 3,
     "was made with 8 lanes, this fit has 4", NULL, TRAINED},
    {"a run without --resume", "$TUTTI train small-001", 2, "'runs/small-001' is a run",
     "add --resume to continue it", TRAINED},
    {"a second run in a folder", "$TUTTI train $J --run a", 1, "'a' already holds a run",
     "add --resume to continue it", "$TUTTI train $J --quiet --run a"},
    {"two processes in a folder",
     "$TUTTI train $J --quiet --run a --epochs 1000000 & p=$!; while [ ! -e "
     "a/checkpoints/step-10 ]; do sleep 0.02; done; $TUTTI train a --resume; c=$?; kill $p; wait "
     "$p; exit $c",
     1, "another process is training in 'a'", NULL, NULL},
    {"Ctrl-C",
     "$TUTTI train $J --epochs 1000000 --run a >out2 & p=$!; while [ ! -e "
     "a/checkpoints/step-10 ]; do sleep 0.02; done; kill -TERM $p; wait $p",
     85, "stopped and saved", "to continue: tutti train a --resume", NULL},
    {"Adam with a learning rate of 1e6", "$TUTTI train $J --lr 1e6", 4,
     "training has diverged: the loss is ", "the learning rate is 1e+06: lower it", NULL},
    {"early stopping", "$TUTTI train $J --epochs 99 --lr 0.2 --set train.early_stop.patience=2", 0,
     "\nearly stopping after step ", "validation_loss has not improved in 2 checks", NULL},
    {"a run that is not there", "$TUTTI plot samll", 1, "there is no run 'samll'",
     "did you mean 'small'?", TRAINED},
    {"a checkpoint that is not there", "$TUTTI eval small --checkpoint step-7", 1,
     "runs/small-001/checkpoints/step-7", NULL, TRAINED},
    {"eval before training", "$TUTTI eval $J", 1, "there is no run of 'small' in 'runs'",
     "train it first", NULL},
};

TEST(mistakes_with_runs)
{
    test_need_yaml();
    mistakes_make(with_runs, TTI_COUNT(with_runs));
}

// ---- models and weights ----------------------------------------------------------------------

// A matrix that fits in both orientations, in a file that does not say which it has.
#define SQUARE                                                                   \
    CHANGED("dense: 10", "dense: 784")                                           \
    "; " TRAIN "; $TUTTI convert job w.safetensors --to torch; LC_ALL=C sed -i " \
    "'s/\"format\":\"pt\"/\"formax\":\"pt\"/' w.safetensors"
#define CONVOLUTION                                              \
    CHANGED("- flatten", "- conv2d: {filters: 4}\\n  - flatten") \
    "; " TRAIN "; $TUTTI convert job w.safetensors --to torch"

static const mistake with_models[] = {
    {"pictures in another layout", "$TUTTI predict small --input nchw.npy", 3, "nchw.npy",
     "--layout nchw converts them", TRAINED},
    {"pictures of another size", "$TUTTI predict small --input wrong.npy", 3,
     "wrong.npy: records have shape [27, 27, 1], but the model's input 'x' has [28, 28, 1]", NULL,
     TRAINED},
    {"a photo", "$TUTTI predict small --input photo.jpg", 3, "photo.jpg", "numpy.save()",
     TRAINED "; printf '\\377\\330\\377\\340aaaaaaaaaaaaaaaaaaaaaaaa' > photo.jpg"},
    {"an input that is not there", "$TUTTI predict small --input nothing.npy", 3,
     "cannot open 'nothing.npy'", NULL, TRAINED},
    {"HDF5", "$TUTTI convert small m.h5", 2, "the format '.h5' cannot be written",
     "use .tutti (a whole model), .safetensors", TRAINED},
    {"square weights of PyTorch", "$TUTTI train job.yaml --set init=w.safetensors", 3,
     "w.safetensors: 'dense_1.weight'", "layout: torch", SQUARE},
    {"kernels of PyTorch taken as Tutti's",
     "$TUTTI train job.yaml --set init.file=w.safetensors --set init.layout=tutti", 3,
     "'conv2d_1.weight' is f32 [4, 1, 3, 3] but the model's is [3, 3, 1, 4]", "layout: torch",
     CONVOLUTION},
    {"init of a misspelt run", "$TUTTI train $J --set init=smal", 3,
     "there is no file 'smal', and no run of that name in 'runs'", NULL, TRAINED},
    {"init of a file that is no .pt", "$TUTTI train $J --set init=model.pt", 3, "model.pt",
     "torch.save()", "echo 12345678 > model.pt"},
    {"a model in place of a job", "$TUTTI train m.tutti", 3, "m.tutti", NULL,
     TRAINED "; $TUTTI convert small m.tutti"},
};

TEST(mistakes_with_models)
{
    test_need_yaml();
    command_npy("nchw.npy", "2, 1, 28, 28", 2 * 784);
    command_npy("wrong.npy", "2, 27, 27, 1", 2 * 27 * 27);
    mistakes_make(with_models, TTI_COUNT(with_models));
}

// A run's name is what init takes; it was refused once.
TEST(init_takes_the_name_of_a_run)
{
    test_need_yaml();
    command_write("small.yaml", command_small_job);
    command_ok("train small.yaml --quiet");
    command_ok("train small.yaml --quiet --set init=small-001");
    command_ok("train small.yaml --quiet --set init=small");
}
