"""What fit(run=...) writes for TensorBoard, and what it sends to servers."""
import http.server
import json
import threading

import numpy as np
import pytest
import tutti
from tutti.callbacks import TensorBoard


@pytest.fixture
def server():
    """A server that keeps what it gets: (address, [(path, body)])."""
    got = []

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_POST(self):
            body = self.rfile.read(int(self.headers["Content-Length"]))
            got.append((self.path, json.loads(body)))
            answer = b'{"run": {"info": {"run_id": "abc"}}, "experiment_id": "1"}'
            self.send_response(200)
            self.send_header("Content-Length", str(len(answer)))
            self.end_headers()
            self.wfile.write(answer)

        def do_GET(self):
            self.send_error(404)

        def log_message(self, *words):
            pass

    s = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=s.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{s.server_port}", got
    s.shutdown()
    s.server_close()


def test_events_are_sent(digits, small, server, tmp_path):
    history = small().fit(*digits, epochs=2, run=tmp_path / "a", http=server[0] + "/in", verbose=0)
    bodies = [body for path, body in server[1] if path == "/in"]
    assert bodies and all(b["run"] == "a" for b in bodies)
    events = [e for b in bodies for e in b["events"]]
    kinds = [e["event"] for e in events]
    assert kinds.count("epoch") == 2 and kinds.count("record") == 1 and kinds[-1] == "end"
    keys = next(e for e in events if e["event"] == "keys")["keys"]
    assert keys["train.optimizer.adam.lr"] == 0.001 and keys["train.batch"] == 32
    assert events[-1]["weights_hash"] == history.hash


def test_runs_are_sent_to_mlflow(digits, small, server, tmp_path, monkeypatch):
    monkeypatch.setenv("MY_SERVER", server[0])
    history = small().fit(*digits, epochs=1, run=tmp_path / "a", mlflow="$MY_SERVER", verbose=0)
    last = [p.rsplit("/", 1)[-1] for p, _ in server[1]]
    assert last[0] == "create" and "log-batch" in last and last[-1] == "update"
    params = {p["key"]: p["value"] for _, b in server[1] for p in b.get("params", ())}
    metrics = {m["key"]: m["value"] for _, b in server[1] for m in b.get("metrics", ())}
    assert params["train.batch"] == "32" and abs(metrics["loss"] - history.history["loss"][-1]) < 1e-6
    assert server[1][-1][1]["status"] == "FINISHED"


def test_a_server_that_is_down_changes_nothing(digits, small, tmp_path, caplog):
    alone = small().fit(*digits, verbose=0)
    told = small().fit(*digits, verbose=0, run=tmp_path / "a", mlflow="http://127.0.0.1:1")
    assert told.hash == alone.hash
    assert sum("output.mlflow: cannot connect" in r.message for r in caplog.records) == 1


@pytest.mark.parametrize("url", ["localhost:5000", "$TUTTI_NONE", "http://"])
def test_addresses_are_checked(url, digits, small, tmp_path):
    with pytest.raises(tutti.InvalidError, match="output.http"):
        small().fit(*digits, run=tmp_path / "a", http=url, verbose=0)


def test_where_a_run_comes_from_is_recorded(digits, small, tmp_path):
    small().fit(*digits, run=tmp_path / "a", verbose=0)
    lines = [json.loads(x) for x in (tmp_path / "a" / "events.jsonl").read_text().splitlines()]
    record = next(x for x in lines if x["event"] == "record")
    for key in ("version", "arithmetic", "compiler", "train_data", "host", "cores", "folder"):
        assert record[key]
    assert record["train_data"].startswith("400 records, ")


def test_tensorboard_has_histograms_images_and_matrices(digits, tmp_path):
    reader = pytest.importorskip("tensorboard.backend.event_processing.event_accumulator")
    model = tutti.Sequential([tutti.Flatten(), tutti.Dense(10)])
    model.compile("adam", "cross_entropy", ["confusion"])
    model.fit(*digits, validation_data=digits, epochs=2, run=tmp_path / "a", verbose=0, callbacks=[
        TensorBoard(images={"grey": np.zeros((4, 5)), "colours": np.full((2, 3, 3), 255, "u1")})])
    board = reader.EventAccumulator(str(tmp_path / "a" / "tensorboard"),
                                    size_guidance={"histograms": 0, "images": 0})
    board.Reload()
    got = [(e.step, e.histogram_value.num) for e in board.Histograms("weights/dense_1.weight")]
    assert got == [(13, 7840), (26, 7840)]
    assert [e.step for e in board.Images("confusion_matrix/validation")] == [13, 26]
    assert (board.Images("grey")[0].height, board.Images("grey")[0].width) == (4, 5)
    assert (board.Images("colours")[0].height, board.Images("colours")[0].width) == (2, 3)


def test_tensorboard_needs_a_run(digits, small):
    with pytest.raises(ValueError, match="run=True"):
        small().fit(*digits, verbose=0, callbacks=TensorBoard())


@pytest.mark.parametrize("pixels", [np.zeros(3), np.zeros((2, 2, 2)), np.zeros((1, 5000))])
def test_images_are_checked(pixels, digits, small, tmp_path):
    with pytest.raises(ValueError, match="image 'x'"):
        small().fit(*digits, verbose=0, run=tmp_path / "a", callbacks=TensorBoard(images={"x": pixels}))


@pytest.mark.parametrize("ranks", [1, 2])
def test_the_command_writes_them_too(ranks, tmp_path):
    import subprocess
    from tutti import _paths
    reader = pytest.importorskip("tensorboard.backend.event_processing.event_accumulator")
    (tmp_path / "j.yaml").write_text(
        "data: {train: {digits: 96}, validate: {digits: {count: 32, first: 900}}}\n"
        "model: [flatten, dense: 10]\ntrain: {loss: cross_entropy, metrics: [confusion]}\n"
        "output: {histograms: true, images: 3}\n")
    words = ["train"] if ranks == 1 else ["run", "-n", "2"]
    subprocess.run([_paths.program(), *words, "j.yaml", "--quiet", "--run", "a", "--devices", "cpu:0"]
                   + ([] if ranks == 1 else ["--strategy", "mirrored"]), cwd=tmp_path, check=True)
    board = reader.EventAccumulator(str(tmp_path / "a" / "tensorboard"))
    board.Reload()
    assert sorted(board.Tags()["images"]) == ["confusion_matrix/validation", "data/x/0", "data/x/1",
                                              "data/x/2"]
    assert sorted(board.Tags()["histograms"]) == ["weights/dense_1.bias", "weights/dense_1.weight"]


PROGRAM = """
import os, tutti
for lr in (0.001, 0.01):
    model = tutti.Sequential([tutti.Flatten(), tutti.Dense(10)])
    model.compile(tutti.optimizers.Adam(lr), "cross_entropy")
    model.fit(tutti.data.Digits(int(os.environ.get("COUNT", 640)), batch=64), run=f"runs/{lr}",
              verbose=0, http="http://127.0.0.1:1" if os.environ.get("TUTTI_REPEAT") else None)
"""


def test_the_run_of_a_program_is_repeated(tmp_path):
    import os
    import subprocess
    import sys
    from conftest import ROOT
    from tutti import _paths
    (tmp_path / "mine.py").write_text(PROGRAM)
    environment = {**os.environ, "PYTHONPATH": os.path.join(ROOT, "python")}
    subprocess.run([sys.executable, "mine.py"], cwd=tmp_path, env=environment, check=True)

    def reproduce(*words, **more):
        return subprocess.run([_paths.program(), "reproduce", *words], cwd=tmp_path, text=True,
                              env={**environment, **more}, capture_output=True)

    for words in (["./runs/0.01"], ["./runs/0.001", "--isa", "plain"], ["./runs/0.01", "-n", "2"]):
        out = reproduce(*words)
        assert out.returncode == 0 and "equal     all " in out.stdout, out.stderr
        assert "up to step 10; weights " in out.stdout and "warn" not in out.stderr
    out = reproduce("./runs/0.01", COUNT="128")
    assert out.returncode == 1 and "differs   first at step 1: " in out.stdout
    out = reproduce("./runs/0.01", "--devices", "cpu:0*2")
    assert out.returncode == 1 and "only --isa and -n can be given" in out.stderr
    (tmp_path / "mine.py").write_text("raise SystemExit(3)")
    out = reproduce("./runs/0.01")
    assert out.returncode == 1 and "it ended with exit code 3; its output is in " in out.stderr


def test_notify_tells_how_a_fit_ends(digits, small, server, tmp_path, monkeypatch):
    from tutti.callbacks import LambdaCallback, Notify
    monkeypatch.setenv("MY_HOOK", server[0] + "/hook")
    line = f'echo "$TUTTI_EVENT $TUTTI_STEP $TUTTI_MESSAGE" >> {tmp_path}/told'
    notify = Notify("$MY_HOOK", line)
    small().fit(*digits, epochs=1, verbose=0, run=tmp_path / "a", callbacks=notify)
    with pytest.raises(ZeroDivisionError):
        small().fit(*digits, verbose=0, callbacks=[
            notify, LambdaCallback(on_epoch_end=lambda epoch, logs: 1 / 0)])
    with pytest.raises(tutti.NotFinite):
        small().fit(np.full_like(digits[0], np.nan), digits[1], verbose=0, callbacks=notify)
    told = [body for path, body in server[1] if path == "/hook"]
    assert [b["event"] for b in told] == ["ended", "failed", "diverged"]
    assert told[0]["step"] == 13 and told[0]["run"] == str(tmp_path / "a")
    assert told[1]["message"] == "division by zero"
    lines = (tmp_path / "told").read_text().splitlines()
    assert lines[0] == "ended 13 " and lines[2].startswith("diverged 0 step 1: ")


def test_notify_tells_of_a_stall_and_of_what_it_cannot_tell(digits, small, server, caplog):
    import time
    from tutti.callbacks import LambdaCallback, Notify
    wait = LambdaCallback(on_epoch_end=lambda epoch, logs: time.sleep(0.5))
    small().fit(*digits, verbose=0, callbacks=[Notify(server[0], stall=0.1), wait])
    events = [b["event"] for _, b in server[1]]
    assert "stalled" in events and events[-1] == "ended" and events.count("ended") == 1
    small().fit(*digits, verbose=0, callbacks=Notify("http://127.0.0.1:1"))
    assert sum("'ended' was not told: " in r.message for r in caplog.records) == 1
    with pytest.raises(ValueError, match="is not an address"):
        Notify("localhost/hook")
    with pytest.raises(ValueError, match="needs a webhook or a command"):
        Notify()
