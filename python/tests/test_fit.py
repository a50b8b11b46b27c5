"""fit(): kinds of data, callbacks, progress, own losses, metrics and schedules."""
import io
import math
import os
import signal
import subprocess
import sys
import threading

import numpy as np
import pytest
import tutti
from conftest import ROOT
from tutti import callbacks, data, losses, metrics, ops, optimizers, schedules
from tutti._progress import Progress


def line(options=None, **compile_):
    model = tutti.Sequential([tutti.Dense(1)], input=(2,), **(options or {}))
    model.compile(compile_.pop("optimizer", "sgd"), compile_.pop("loss", "mse"), **compile_)
    return model


X = np.random.default_rng(1).standard_normal((64, 2)).astype("f4")
Y = (X @ np.float32([[1], [2]]) + 3).astype("f4")


@pytest.mark.parametrize("name", [c.kind for c in vars(optimizers).values() if isinstance(c, type)
                                  and getattr(c, "kind", "")])
def test_every_optimizer_learns(name):
    cls = {c.kind: c for c in vars(optimizers).values() if isinstance(c, type) and c.kind}[name]
    rates = {"sgd": 0.1, "lion": 0.05, "adagrad": 0.5, "adadelta": 30, "ftrl": 1}
    h = line(optimizer=cls(rates.get(name, 0.1))).fit(X, Y, epochs=20, verbose=0)
    slow = 0.8 if name == "lars" else 0.3  # its steps are small parts of a weight
    assert h.history["loss"][-1] < slow * h.history["loss"][0]


@pytest.mark.parametrize("name", ["constant", "step", "exponential", "cosine", "linear", "one_cycle",
                                  "polynomial", "inverse_time", "cosine_restarts", "wsd",
                                  schedules.Piecewise(pieces=["2=0.5", "4=0.1"])])
def test_every_schedule(name):
    model = line(optimizer=optimizers.SGD(0.1, schedule=name))
    assert model.fit(X, Y, epochs=3, verbose=0).history["lr"]


@pytest.mark.parametrize("loss", ["mse", "mae", "huber", losses.Huber(delta=2), "binary_cross_entropy",
                                  "log_cosh", "msle"])
def test_every_loss_of_values(loss):
    y = (Y > 3).astype("f4") if loss == "binary_cross_entropy" else Y
    h = line(loss=loss, optimizer=optimizers.Adam(0.1)).fit(X, y, epochs=10, verbose=0)
    assert h.history["loss"][-1] < h.history["loss"][0]


def test_weights_of_records_and_classes():
    w = np.linspace(0, 1, 64).astype("f4")
    model = line(loss=losses.MSE(sample_weight="w"))
    h = model.fit({"x": X, "y": Y, "w": w}, epochs=5, verbose=0)
    assert h.history["loss"][-1] < h.history["loss"][0]
    model = tutti.Sequential([tutti.Dense(2)], input=(2,))
    model.compile(optimizers.Adam(0.1), losses.CrossEntropy(class_weight={1: 3.0}), ["auc", "confusion"])
    y = (Y[:, 0] > 3).astype("i4")
    model.fit(X, y, epochs=10, verbose=0)
    assert model.evaluate(X, y)["auc"] > 0.9
    assert sum(model.table("confusion")) == 64
    with pytest.raises(ValueError, match="no table of 'f1'"):
        model.table("f1")


def test_every_metric_of_classes(digits):
    x, y = digits
    model = tutti.Sequential([tutti.Flatten(), tutti.Dense(10)])
    names = ["accuracy", "top_k", "precision", "recall", "f1", "perplexity", "auc", "auc_pr",
             "iou", "confusion", "calibration_error", "bits_per_byte"]
    model.compile("adam", "cross_entropy", names, top_k=3, thresholds=50)
    h = model.fit(x, y, epochs=2, verbose=0)
    for name in names:
        assert len(h.history[name]) == 2
    assert h.history["top_k"][-1] >= h.history["accuracy"][-1]


def test_metrics_of_values():
    h = line(metrics=["mse", "mae"]).fit(X, Y, verbose=0)
    assert h.history["mse"][0] == pytest.approx(h.history["loss"][0], rel=1e-5)


def test_history(digits, small):
    h = small().fit(*digits, epochs=3, batch_size=40, validation_split=0.25, verbose=0)
    assert h.epoch == [1, 2, 3] and h.steps == 3 * 8 and h.ended == "finished"
    assert h.history["val_loss"] == h.history["validation_loss"] and len(h.history["val_loss"]) == 3
    assert len(h.hash) == 32 and h.samples_per_second > 0 and "loss" in repr(h)
    with pytest.raises(KeyError):
        h.history["nothing"]


def test_steps_instead_of_epochs(digits, small):
    h = small().fit(*digits, steps=7, verbose=0)
    assert h.steps == 7 and h.history["loss"]


def test_validation_data(digits, small):
    x, y = digits
    h = small().fit(x[:300], y[:300], validation_data=(x[300:], y[300:]), epochs=2, verbose=0)
    m = small()
    m.fit(x[:300], y[:300], epochs=2, verbose=0)
    assert m.evaluate(x[300:], y[300:])["accuracy"] == h.history["validation_accuracy"][-1]


def test_accumulated_batches_have_the_bits_of_one(digits, small):
    a = small().fit(*digits, batch_size=80, verbose=0)
    b = small().fit(*digits, batch_size=40, accumulate=2, verbose=0)
    assert a.hash == b.hash


# ---- data ----------------------------------------------------------------------------------------


def test_types_of_arrays():
    a = line().fit(X, Y, verbose=0).hash
    assert a == line().fit(X.astype("f8"), Y.astype("f8"), verbose=0).hash
    assert a == line().fit(tutti.tensor(X), tutti.tensor(Y), verbose=0).hash
    assert a == line().fit(np.asfortranarray(X), Y, verbose=0).hash
    assert a == line().fit((X, Y), verbose=0).hash
    assert a == line().fit(data.Arrays(X, Y), verbose=0).hash


def test_arrays_are_not_copied():
    assert data.Arrays(X, Y).arrays[0][1].ctypes.data == X.ctypes.data


def test_labels_of_every_integer_type(digits, small):
    x, y = digits
    hashes = {small().fit(x, y.astype(t), verbose=0).hash for t in ("i4", "i8", "u1", "i2")}
    assert len(hashes) == 1


def test_probabilities_as_targets(digits, small):
    x, y = digits
    h = small().fit(x, np.eye(10, dtype="f4")[y], verbose=0)
    assert h.history["loss"][0] == pytest.approx(small().fit(x, y, verbose=0).history["loss"][0], 1e-4)


def test_generators(digits, small):
    x, y = digits

    def batches():
        for i in range(0, 400, 50):
            yield x[i:i + 50], y[i:i + 50]

    assert small().fit(batches(), verbose=0).steps == 8
    assert small().fit(batches, epochs=2, verbose=0).steps == 16
    assert small().fit(batches, steps=5, verbose=0).steps == 5

    def endless():
        while True:
            yield from batches()

    h = small().fit(endless(), epochs=3, steps_per_epoch=4, verbose=0,
                    validation_data=(x, y))
    assert h.steps == 12 and len(h.history["validation_accuracy"]) == 3
    with pytest.raises(ValueError, match="can be read once"):
        small().fit(batches(), epochs=2)
    with pytest.raises(ValueError, match="no batches"):
        small().fit(iter([]), verbose=0)
    with pytest.raises(ValueError, match="takes records of shape"):
        m = small()
        m.fit(batches(), verbose=0)
        m.fit(iter([(x[:4].reshape(4, -1), y[:4])]), verbose=0)
    with pytest.raises(ValueError, match="the target has records of shape"):
        m.fit(iter([(x[:4], y[:4, None])]), verbose=0)


def test_train_on_batch():
    model = line(optimizer=optimizers.SGD(0.1))
    first = model.train_on_batch(X, Y)["loss"]
    for _ in range(30):
        last = model.train_on_batch(X, Y)["loss"]
    assert last < 0.1 * first
    w = model.get_weights()["dense_1.weight"]
    model.train_on_batch(X, Y, lr=0.0)
    assert np.array_equal(w, model.get_weights()["dense_1.weight"])


def test_records_by_number(digits):
    class Squares:
        def __len__(self):
            return 40

        def __getitem__(self, i):
            return np.float32([i / 40, 1]), np.float32([i * i / 1600])

    assert line().fit(Squares(), batch_size=8, verbose=0).steps == 5

    class Broken(Squares):
        def __getitem__(self, i):
            if i == 13:
                raise OSError("the disk is gone")
            return super().__getitem__(i)

    with pytest.raises(tutti.Error, match="record 13: OSError: the disk is gone"):
        line().fit(Broken(), batch_size=8, verbose=0)


def test_csv(tmp_path):
    rows = "\n".join(f"{a},{b},{a + 2 * b}" for a in range(8) for b in range(8))
    (tmp_path / "t.csv").write_text("a,b,sum\n" + rows + "\n")
    train = data.CSV(tmp_path / "t.csv", y="sum", transforms=[data.Normalise(fit=True)], batch=8)
    test = train.split(0.25, seed=1)
    model = tutti.Sequential([tutti.Dense(1)])
    model.compile(optimizers.Adam(0.3), "mse")
    h = model.fit(train, epochs=40, validation_data=test, verbose=0)
    assert len(train) == 48 and len(test) == 16
    assert h.history["validation_loss"][-1] < 1.0
    assert [f["name"] for f in train.fields] == ["x", "y"]


def test_transforms():
    d = data.Digits(30, batch=30, shuffle=False,
                    transforms=[data.OneHot(10, field="y"), data.Normalise(mean=0.5, scale=0.5)])
    x, y = next(iter(d))
    assert y.shape == (30, 10) and x.min() < -0.5
    x2, _ = next(iter(data.Digits(30, batch=30, shuffle=False)))
    np.testing.assert_allclose(x, (x2 - 0.5) / 0.5, rtol=1e-5, atol=1e-6)


def test_iterating_gives_every_record_once():
    seen = np.concatenate([b[0] for b in data.Arrays(np.arange(100, dtype="f4"), batch=7)])
    assert sorted(seen.tolist()) == list(range(100)) and seen.tolist() != list(range(100))


# ---- callbacks -----------------------------------------------------------------------------------


def test_callbacks_are_called(digits, small):
    calls = []

    class Watch(tutti.Callback):
        def on_train_begin(self, logs):
            calls.append("begin")

        def on_epoch_begin(self, epoch, logs):
            calls.append(f"epoch {epoch}")

        def on_epoch_end(self, epoch, logs):
            assert logs["loss"] > 0 and "accuracy" in logs and logs["lr"] > 0
            calls.append(f"end {epoch}")

        def on_batch_end(self, step, logs):
            calls.append(step)

        def on_validation_end(self, logs):
            calls.append("validation")

        def on_train_end(self, logs):
            assert self.model is model
            calls.append("done")

    x, y = digits
    model = small()
    model.fit(x, y, batch_size=200, epochs=2, validation_data=(x, y), callbacks=[Watch()], verbose=0)
    assert calls[0] == "begin" and calls[-1] == "done"
    assert [c for c in calls if isinstance(c, int)] == [1, 2, 3, 4]
    assert calls.count("validation") == 2 and calls.index("epoch 1") < calls.index("end 1")
    calls.clear()
    model.fit(lambda: iter([(x, y)]), epochs=2, validation_data=(x, y), callbacks=Watch(), verbose=0)
    assert calls.count("validation") == 2 and calls[0] == "begin" and calls[-1] == "done"


def test_a_callback_stops_the_fit(digits, small):
    class Stop(tutti.Callback):
        def on_batch_end(self, step, logs):
            self.model.stop_training = step >= 3

    h = small().fit(*digits, epochs=9, callbacks=[Stop()], verbose=0)
    assert h.steps == 3 and h.ended == "callback"
    h = small().fit(lambda: iter([digits] * 9), callbacks=[Stop()], verbose=0)
    assert h.steps == 3


def test_an_exception_in_a_callback_comes_out(digits, small):
    def fails(epoch, logs):
        raise LookupError("mine")

    model = small()
    with pytest.raises(LookupError, match="mine"):
        model.fit(*digits, callbacks=[callbacks.LambdaCallback(on_epoch_end=fails)], verbose=0)
    model.fit(*digits, verbose=0)


@pytest.mark.parametrize("is_stream", [False, True])
def test_early_stopping(is_stream):
    model = line(optimizer=optimizers.SGD(0.3))
    given = (lambda: iter([(X, Y)]),) if is_stream else (X, Y)
    h = model.fit(*given, epochs=500, verbose=0, callbacks=[
        callbacks.EarlyStopping("loss", patience=2, min_delta=1e-3, restore_best_weights=True)])
    assert 3 < len(h.epoch) < 200


@pytest.mark.parametrize("is_stream", [False, True])
def test_plateau(is_stream):
    model = line(optimizer=optimizers.SGD(0.3))
    given = (lambda: iter([(X, Y)]),) if is_stream else (X, Y)
    h = model.fit(*given, epochs=60, verbose=0, callbacks=[
        callbacks.ReduceLROnPlateau("loss", factor=0.5, patience=2, min_delta=1e-3)])
    assert h.history["lr"][-1] < 0.1


def test_checkpoints_and_the_log(digits, small, tmp_path):
    h = small().fit(*digits, epochs=3, verbose=0, callbacks=[
        callbacks.ModelCheckpoint(tmp_path / "c", keep=1), callbacks.CSVLogger(tmp_path / "l.csv")])
    assert os.path.isdir(h.saved) and str(tmp_path / "c") in h.saved
    assert len((tmp_path / "l.csv").read_text().strip().split("\n")) == 4
    assert tutti.load(tmp_path / "c").hash == h.hash
    with pytest.raises(ValueError, match="watches 'nothing'"):
        line().fit(lambda: iter([(X, Y)]), verbose=0, callbacks=[callbacks.EarlyStopping("nothing")])


# ---- own parts -----------------------------------------------------------------------------------


def test_own_loss_of_values():
    a = line(loss=lambda t, y: ops.square(y - t)).fit(X, Y, verbose=0)
    b = line(loss="mse").fit(X, Y, verbose=0)
    assert a.hash == b.hash and a.history["loss"] == b.history["loss"]


def test_own_metric_by_class():
    class Explained(metrics.Metric):
        def build(self, target, output):
            error = output - target
            return [ops.sum(error), ops.sum(ops.square(error)), ops.sum(target), ops.sum(ops.square(target)),
                    ops.sum(target * 0.0 + 1.0)]

        def value(self, sums):
            error, errors, total, squares, n = sums
            return 1 - (errors - error * error / n) / (squares - total * total / n)

    model = line(optimizer=optimizers.SGD(0.1), metrics=[Explained()])
    model.fit(X, Y, epochs=40, verbose=0)
    p = model.predict(X)
    want = 1 - (p - Y).var() / Y.var()
    assert model.evaluate(X, Y)["explained"] == pytest.approx(want, rel=1e-4)


def test_own_schedule_gives_the_rates():
    model = line(optimizer=optimizers.SGD(0.5, schedule=lambda step, steps: 1 - step / steps))
    rates = []
    model.fit(X, Y, batch_size=16, epochs=2, verbose=0, callbacks=[
        callbacks.LambdaCallback(on_batch_end=lambda step, logs: rates.append(logs["lr"]))])
    np.testing.assert_allclose(rates, [0.5 * (1 - i / 8) for i in range(8)], rtol=1e-6)
    model = line(optimizer=optimizers.SGD(0.5, schedule=schedules.schedule(
        lambda step, steps: 1, warmup=3)))
    h = model.fit(X, Y, batch_size=16, steps=2, verbose=0)
    assert h.history["lr"][-1] == pytest.approx(0.5 * 2 / 4)


def test_groups_of_weights_and_freezing():
    model = line(optimizer=optimizers.SGD(0.1, groups=[{"match": "*.bias", "lr_scale": 0.0}]))
    model.fit(X, Y, verbose=0)
    assert model.get_weights()["dense_1.bias"][0] == 0
    model = tutti.Sequential([tutti.Dense(1)], input=(2,))
    model.compile("sgd", "mse", freeze=["*.weight"])
    before = model.get_weights()["dense_1.weight"]
    model.fit(X, Y, verbose=0)
    assert np.array_equal(before, model.get_weights()["dense_1.weight"])


def test_a_loss_that_is_not_finite():
    with pytest.raises(tutti.NotFinite):
        line(optimizer=optimizers.SGD(1e30)).fit(X * 1e10, Y, epochs=3, verbose=0)
    with pytest.raises(tutti.NotFinite, match="step 1: the loss is nan"):
        line().fit(iter([(X * np.nan, Y)]), verbose=0)


# ---- progress ------------------------------------------------------------------------------------


def test_progress_outside_of_terminals(digits, small, capsys):
    small().fit(*digits, epochs=2)
    out = capsys.readouterr().out.strip().split("\n")
    assert len(out) == 2 and out[0].startswith("epoch 1/2 loss ") and "accuracy" in out[0]
    small().fit(*digits, verbose=0)
    assert capsys.readouterr().out == ""


def test_progress_in_terminals():
    stream = io.StringIO()
    p = Progress(1, stream)
    place = {"step": 1, "steps": 10, "epoch": 1, "epochs": 2, "rows": 50, "epoch_rows": 100}
    p.step(place, {"loss": 1.5, "lr": 0.1})
    p.step(place, {"loss": 1.4})  # too soon
    p.epoch(place, {"loss": 1.25})
    text = stream.getvalue()
    assert text.startswith("\repoch 1/2 [==========          ] loss 1.5000")
    assert text.count("\r") == 2 and text.endswith("\n") and "1.4" not in text


def test_only_the_first_process_writes(monkeypatch):
    monkeypatch.setenv("TUTTI_RANK", "1")
    assert Progress(2, io.StringIO()).verbose == 0


# ---- threads, signals, processes -----------------------------------------------------------------


def test_other_threads_run_during_a_fit(digits, small):
    beats, stop = [], threading.Event()

    def beat():
        while not stop.wait(0.001):
            beats.append(1)

    thread = threading.Thread(target=beat)
    thread.start()
    small().fit(*digits, epochs=40, verbose=0)
    stop.set()
    thread.join()
    assert len(beats) > 5


CTRL_C = """
import os, signal, sys, threading
sys.path.insert(0, sys.argv[1])
import numpy as np, tutti
model = tutti.Sequential([tutti.Dense(512), tutti.Dense(1)], input=(64,))
model.compile("sgd", "mse")
class Press(tutti.Callback):
    def on_batch_end(self, step, logs):
        if step == 5:
            os.kill(os.getpid(), signal.SIGINT)
try:
    model.fit(np.ones((640, 64)), np.ones((640, 1)), epochs=10000, checkpoints=sys.argv[2], verbose=2,
              callbacks=[Press()])
except KeyboardInterrupt as stopped:
    print(type(stopped).__name__, stopped.step, os.path.basename(stopped.saved))
print(len(model.predict(np.ones((2, 64)))), signal.getsignal(signal.SIGINT).__name__)
"""


def test_ctrl_c_stops_and_saves(tmp_path):
    run = subprocess.run([sys.executable, "-c", CTRL_C, os.path.join(ROOT, "python"),
                          str(tmp_path / "c")], capture_output=True, text=True, timeout=60)
    assert run.returncode == 0, run.stderr
    lines = run.stdout.strip().split("\n")
    assert lines[-2].startswith("Interrupted ") and lines[-1] == "2 default_int_handler"
    step = lines[-2].split()[1]
    assert lines[-2].split()[2] == f"step-{step}" and (tmp_path / "c" / f"step-{step}").is_dir()
    assert any(text.startswith(f"stopped after step {step}; saved to ") for text in lines)


TRAIN = """
import sys
sys.path.insert(0, sys.argv[1])
import tutti
model = tutti.Sequential([tutti.Flatten(), tutti.Dense(10)], strategy="mirrored")
model.compile("adam", "cross_entropy", ["accuracy"])
h = model.fit(tutti.data.Digits(400, batch=40), epochs=2)
print(h.hash)
"""


def test_four_processes_have_the_bits_of_one(tmp_path):
    from tutti import _paths
    (tmp_path / "train.py").write_text(TRAIN)
    words = [sys.executable, str(tmp_path / "train.py"), os.path.join(ROOT, "python")]
    one = subprocess.run(words, capture_output=True, text=True, timeout=60)
    many = subprocess.run([_paths.program(), "run", "-n", "4", *words], capture_output=True, text=True,
                          timeout=120)
    assert many.returncode == 0, many.stderr
    assert one.stdout.strip().split("\n")[-1] == many.stdout.strip().split("\n")[-1]
    assert len(one.stdout.strip().split("\n")[-1]) == 32
    assert many.stdout.count("epoch 1/2") == 1


def test_import_is_fast():
    words = "import numpy, sys, time; t = time.process_time(); sys.path.insert(0, sys.argv[1]); " \
        "import tutti; print(time.process_time() - t)"
    best = min(float(subprocess.run([sys.executable, "-c", words, os.path.join(ROOT, "python")],
                                    capture_output=True, text=True, check=True).stdout)
               for _ in range(3))
    assert best < 0.15


def test_jobs(tmp_path):
    (tmp_path / "j.yaml").write_text(
        "data: {train: {digits: 200}, validate: {digits: {count: 50, first: 900}}}\n"
        "model: [flatten, dense: 10]\n"
        "train: {loss: cross_entropy, metrics: [accuracy], batch: 50}\n")
    job = tutti.Job(tmp_path / "j.yaml", {"train.epochs": 2})
    assert job.name == "j" and job["train.batch"] == "50" and "cross_entropy" in str(job)
    seen = []
    h = job.fit(verbose=0, callbacks=[callbacks.LambdaCallback(
        on_epoch_end=lambda epoch, logs: seen.append(epoch))])
    assert seen == [1, 2] and len(h.history["validation_accuracy"]) == 2
    assert len(job.train) == 200 and job.test is None
    assert job.model.evaluate(job.validate)["accuracy"] == h.history["validation_accuracy"][-1]
    with pytest.raises(KeyError):
        job["train.nothing"]
    assert math.isfinite(h.seconds)


def test_catalogue_of_devices():
    assert tutti.devices("cpu:0*2")[1]["name"] == "cpu:1"
    tutti.configure(threads=2)
    try:
        assert line()._options == {}
    finally:
        from tutti import _context
        _context._defaults.clear()


def test_signals_are_left_alone_in_other_threads():
    out = []
    thread = threading.Thread(target=lambda: out.append(line().fit(X, Y, verbose=0).steps))
    before = signal.getsignal(signal.SIGINT)
    thread.start()
    thread.join()
    assert out == [2] and signal.getsignal(signal.SIGINT) is before


def test_runs_are_recorded(digits, small, tmp_path, monkeypatch):
    import json
    from tutti import _paths
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "argv", ["mine.py"])
    one = small().fit(*digits, epochs=2, verbose=0, run=True)
    two = small(strategy="mirrored", devices="cpu:0*2").fit(*digits, epochs=2, verbose=0, run=True)
    named = small().fit(*digits, verbose=0, batch_size=50, run="runs/other")
    assert (one.run, two.run, named.run) == ("runs/mine-001", "runs/mine-002", "runs/other")
    assert tutti.load("runs/mine-001").hash == one.hash
    assert os.path.isdir("runs/other/tensorboard")

    def tutti_runs(*words):
        out = subprocess.run([_paths.program(), "runs", *words, "--json"], capture_output=True,
                             text=True, check=True)
        return json.loads(out.stdout)

    assert [r["run"] for r in tutti_runs("--sort", "run")] == ["mine-001", "mine-002", "other"]
    same = tutti_runs("compare", "mine-001", "mine-002")
    assert same["weights_equal"] is True
    assert {d["key"] for d in same["job"]} == {"distribute.strategy", "distribute.devices"}
    about = tutti_runs("show", "other")
    assert about["job"]["train.batch"] == 50 and about["run"]["state"] == "finished"
    assert about["job"]["model.1.dense.units"] == 16 and "accuracy" in about["metrics"]
    assert about["job"]["train.optimizer.adam.lr"] == 0.001
    with pytest.raises(TypeError, match="recorded"):
        small().fit(iter([digits]), run=True)
    job = tmp_path / "j.yaml"
    job.write_text("data: {train: {digits: 96}}\nmodel: [flatten, dense: 10]\n"
                   "train: {loss: cross_entropy}\n")
    h = tutti.Job(job).fit(verbose=0, run=True)
    assert h.run == "runs/j-001" and tutti_runs("show", "j")["job"]["train.batch"] == 32


def test_models_that_are_gone_are_freed():
    import gc
    import ctypes
    from tutti import _c
    context = line().context

    def blocks():
        gc.collect()
        context.clean()
        fn = tutti.lib.tt_alloc_stats_get
        return fn(context.ptr).blocks

    line().fit(X, Y, verbose=0)
    before = blocks()
    for _ in range(20):
        model = line()
        model.fit(X, Y, verbose=0)
        model.predict(X)
        model.get_weights()
        ops.relu(X)
    model = None
    assert blocks() - before < 50, ctypes.sizeof(_c.tt_alloc_stats)


def test_threads_share_a_context():
    out = []

    def work():
        model = line()
        out.append(model.fit(X, Y, epochs=20, verbose=0).hash)
        out.append(model.evaluate(X, Y)["loss"] > 0)

    threads = [threading.Thread(target=work) for _ in range(4)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert len(out) == 8 and len({h for h in out if isinstance(h, str)}) == 1


JOB = """
import sys
sys.path.insert(0, sys.argv[1])
import numpy as np, tutti
images, labels = next(iter(tutti.data.Digits(8)))     # of this process alone
print(float(tutti.ops.sum(np.ones(3, "f4"))))
job = tutti.Job("job.yaml", {"distribute.strategy": "mirrored"})
print(job.fit(verbose=0).hash)
"""


def test_a_job_in_several_processes(tmp_path):
    from tutti import _paths
    (tmp_path / "job.yaml").write_text("data: {train: {digits: 200}}\nmodel: [flatten, dense: 10]\n"
                                       "train: {loss: cross_entropy, batch: 40}\n")
    (tmp_path / "train.py").write_text(JOB)
    words = [sys.executable, "train.py", os.path.join(ROOT, "python")]
    outs = []
    for start in ([], [_paths.program(), "run", "-n", "2"]):
        run = subprocess.run([*start, *words], capture_output=True, text=True, timeout=120,
                             cwd=tmp_path)
        assert run.returncode == 0, run.stderr
        outs.append(run.stdout)
    assert outs[0] == outs[1] and outs[0].startswith("3.0\n")
