"""Bits: a fit from Python, a job file and a C program give one hash, on any devices."""
import subprocess

import numpy as np
import pytest
import tutti
from tutti import ops

JOB = """
data:
  train: {npy: {x: %s/x.npy, y: %s/y.npy}}
model:
  - conv2d: {filters: 4, act: relu}
  - max_pool2d: 2
  - flatten
  - dropout: 0.25
  - dense: {units: 16, act: relu}
  - dense: 10
train:
  loss: {cross_entropy: {smoothing: 0.1}}
  optimizer: {adamw: {lr: 0.002, clip_global: 1, schedule: {cosine: {warmup: 3}}}}
  metrics: [accuracy]
  batch: 48
  epochs: 2
"""
WAYS = [{}, {"strategy": "mirrored", "devices": "cpu:0*4"}, {"threads": 1},
        {"strategy": "mirrored", "devices": "cpu:0*2", "update": "shard"},
        {"strategy": "central", "devices": "cpu:0*2"}]


def layers():
    return [tutti.Conv2D(4, act="relu"), tutti.MaxPool2D(2), tutti.Flatten(), tutti.Dropout(0.25),
            tutti.Dense(16, act="relu"), tutti.Dense(10)]


def trained(digits, **options):
    model = tutti.Sequential(layers(), **options)
    model.compile(tutti.optimizers.AdamW(lr=0.002, clip_global=1, schedule=tutti.schedules.Cosine(
        warmup=3)), tutti.losses.CrossEntropy(smoothing=0.1), ["accuracy"])
    return model.fit(*digits, batch_size=48, epochs=2, verbose=0)


@pytest.fixture(scope="module")
def job(digits, tmp_path_factory):
    folder = tmp_path_factory.mktemp("job")
    np.save(folder / "x.npy", digits[0])
    np.save(folder / "y.npy", digits[1])
    (folder / "job.yaml").write_text(JOB % (folder, folder))
    return folder / "job.yaml"


@pytest.fixture(scope="module")
def wanted(job):
    return tutti.Job(job).fit(verbose=0)


@pytest.mark.parametrize("options", WAYS, ids=str)
def test_fit_has_the_hash_of_the_job(digits, wanted, options):
    got = trained(digits, **options)
    assert got.hash == wanted.hash
    assert got.history == wanted.history


def test_the_command_has_the_same_hash(job, wanted, tmp_path):
    from tutti import _paths
    import json
    out = subprocess.run([_paths.program(), "train", str(job), "--json", "--run", str(tmp_path / "r")],
                         capture_output=True, text=True, check=True).stdout
    assert json.loads(out.strip().split("\n")[-1])["weights_hash"] == wanted.hash


def test_a_job_on_four_devices(job, wanted):
    four = tutti.Job(job, {"distribute.strategy": "mirrored", "distribute.devices": "cpu:0*4"})
    assert len(four.context.devices) == 4
    assert four.fit(verbose=0).hash == wanted.hash


def test_another_seed_is_another_hash(digits, wanted):
    assert trained(digits, seed=1).hash != wanted.hash


def test_own_parts_have_the_bits_of_ours(digits):
    """A dense layer, cross entropy and a schedule written in Python."""
    class MyDense(tutti.Layer):
        def build(self, x):
            w = self.weight("weight", (x.shape[-1], 10))
            b = self.weight("bias", (10,), init="zeros")
            return ops.matmul(x, w, bias=b)

    hashes = []
    for own in (False, True):
        last = MyDense(name="dense_1") if own else tutti.Dense(10)
        model = tutti.Sequential([tutti.Flatten(), last])
        schedule = (lambda step, steps: 0.5 ** step) if own else tutti.schedules.Step(every=1, factor=0.5)
        model.compile(tutti.optimizers.SGD(0.1, schedule=schedule),
                      (lambda t, y: ops.cross_entropy(y, t)) if own else "cross_entropy", ["accuracy"])
        h = model.fit(*digits, epochs=1, verbose=0)
        hashes.append((h.hash, h.history["accuracy"], h.history["loss"]))
    assert hashes[0] == hashes[1]


def test_own_parts_on_four_devices(digits):
    hashes = set()
    for options in ({}, {"strategy": "mirrored", "devices": "cpu:0*4"}):
        model = tutti.Sequential([tutti.Flatten(), tutti.Lambda(lambda x: x * 2 - 1), tutti.Dense(10)],
                                 **options)
        model.compile("adam", lambda t, y: ops.cross_entropy(y, t) * 0.5,
                      [tutti.metrics.metric(lambda t, y: ops.equal(ops.argmax(y, -1), t), name="hit")])
        h = model.fit(*digits, epochs=2, verbose=0)
        hashes.add((h.hash, tuple(h.history["hit"]), tuple(h.history["loss"])))
    assert len(hashes) == 1


def test_batches_by_hand_have_the_bits_of_fit(digits):
    x, y = digits
    one = tutti.Sequential([tutti.Flatten(), tutti.Dense(10)])
    one.compile("adam", "cross_entropy")
    one.fit(x, y, batch_size=50, epochs=2, shuffle=False, verbose=0)
    two = tutti.Sequential([tutti.Flatten(), tutti.Dense(10)])
    two.compile("adam", "cross_entropy")
    two.fit(lambda: ((x[i:i + 50], y[i:i + 50]) for i in range(0, 400, 50)), epochs=2, verbose=0)
    assert one.hash == two.hash


def test_records_by_number_have_the_bits_of_arrays(digits, small):
    x, y = digits
    records = [(x[i], y[i]) for i in range(len(x))]
    assert small().fit(tutti.data.Map(records), epochs=1, verbose=0).hash == \
        small().fit(x, y, epochs=1, verbose=0).hash


def test_resumed_training_has_the_same_bits(digits, small, tmp_path):
    whole = small().fit(*digits, epochs=4, verbose=0)
    small().fit(*digits, epochs=2, verbose=0, checkpoints=tmp_path / "c")
    rest = small().fit(*digits, epochs=4, verbose=0, checkpoints=tmp_path / "c", resume=True)
    assert rest.hash == whole.hash
    assert rest.epoch == [3, 4]


def test_saving_and_loading_keeps_bits(digits, small, tmp_path):
    model = small()
    model.fit(*digits, verbose=0)
    for name in ("checkpoint", "m.tutti", "m.safetensors"):
        model.save(tmp_path / name)
        again = tutti.load(tmp_path / name)
        assert again.hash == model.hash
        assert np.array_equal(again.predict(digits[0]), model.predict(digits[0]))
    other = small(seed=5)
    other.built([{"name": "x", "dtype": "f32", "shape": (28, 28, 1), "classes": 0}])
    assert other.hash != model.hash
    other.load_weights(tmp_path / "m.safetensors")
    assert other.hash == model.hash
