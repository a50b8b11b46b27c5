"""The programs of examples/python, the notebook, and the wheel in a clean environment."""
import gzip
import os
import re
import struct
import subprocess
import sys

import numpy as np
import pytest
import tutti
from conftest import ROOT

EXAMPLES = os.path.join(ROOT, "examples", "python")


def run(folder, *words):
    environment = {**os.environ, "PYTHONPATH": os.path.join(ROOT, "python")}
    out = subprocess.run([sys.executable, *words], cwd=folder, env=environment, capture_output=True,
                         text=True, timeout=120)
    assert out.returncode == 0, out.stderr
    return out.stdout


@pytest.fixture(scope="module")
def mnist(tmp_path_factory):
    """Generated digits in MNIST's format."""
    folder = tmp_path_factory.mktemp("mnist")
    for split, count, first in (("train", 600, 0), ("t10k", 100, 5000)):
        batches = list(tutti.data.Digits(count, first=first, shuffle=False))
        x = (np.concatenate([b[0] for b in batches]) * 255).astype("u1")
        y = np.concatenate([b[1] for b in batches]).astype("u1")
        with gzip.open(folder / f"{split}-images-idx3-ubyte.gz", "wb") as f:
            f.write(struct.pack(">IIII", 2051, count, 28, 28) + x.tobytes())
        with gzip.open(folder / f"{split}-labels-idx1-ubyte.gz", "wb") as f:
            f.write(struct.pack(">II", 2049, count) + y.tobytes())
    return folder


def test_mnist_has_the_bits_of_the_c_program_and_the_job(mnist, tmp_path):
    ours = run(tmp_path, os.path.join(EXAMPLES, "mnist_mlp.py"), str(mnist)).split()[-1]
    assert (tmp_path / "mnist.tutti").exists() and len(ours) == 32
    (tmp_path / "job.yaml").write_text(
        f"data: {{dir: {mnist}, train: {{mnist: train}}, validate: {{mnist: test}}}}\n"
        "model: [flatten, dense: {units: 128, act: relu}, dropout: 0.2, dense: {units: 10, act: softmax}]\n"
        "train: {loss: cross_entropy, optimizer: adam, metrics: [accuracy], batch: 256, epochs: 5}\n")
    assert tutti.Job(tmp_path / "job.yaml").fit(verbose=0).hash == ours
    program = os.path.join(os.path.dirname(tutti.lib._path), "examples", "mnist_mlp")
    if not os.path.exists(program):
        pytest.skip("examples/mnist_mlp is not built")
    os.remove(tmp_path / "mnist.tutti")
    subprocess.run([program, str(mnist)], cwd=tmp_path, check=True, capture_output=True)
    assert tutti.load(tmp_path / "mnist.tutti").hash == ours


@pytest.mark.parametrize("name", ["mirrored", "own_parts", "custom_loop"])
def test_examples(name, tmp_path):
    assert run(tmp_path, os.path.join(EXAMPLES, name + ".py"))


def test_notebook(monkeypatch, tmp_path):
    nbclient = pytest.importorskip("nbclient")
    nbformat = pytest.importorskip("nbformat")
    pytest.importorskip("ipykernel")
    monkeypatch.setenv("PYTHONPATH", os.path.join(ROOT, "python"))
    monkeypatch.chdir(tmp_path)
    notebook = nbformat.read(os.path.join(EXAMPLES, "digits.ipynb"), 4)
    nbclient.NotebookClient(notebook, timeout=60, kernel_name="python3").execute()
    texts = ["".join(o.get("text", "") or str(o.get("data", {}).get("text/plain", ""))
                     for o in c.get("outputs", [])) for c in notebook.cells if c.cell_type == "code"]
    shown = "".join(texts)
    assert "epoch 3/3 loss" in shown and "\r" in shown  # a line that is redrawn
    assert "dense_1" in texts[2] and texts[3] == "True"
    assert re.match(r"0\.\d+", texts[4])


def test_the_wheel_carries_the_library(tmp_path):
    sys.path.insert(0, os.path.join(ROOT, "python"))
    import backend
    import zipfile
    file = backend.build_wheel(str(tmp_path))
    assert re.fullmatch(r"tutti-[\d.]+-py3-none-manylinux_2_\d+_\w+\.whl", file)
    with zipfile.ZipFile(tmp_path / file) as z:
        names = z.namelist()
        z.extractall(tmp_path / "site")
    for name in ("tutti/lib/libtutti.so", "tutti/lib/tutti", "tutti/layers.pyi", "tutti/py.typed",
                 f"tutti-{backend.version()}.dist-info/RECORD"):
        assert name in names
    # Without a compiler, a source tree or the system's search path for programs.
    words = "import tutti; print(tutti.lib._path); m = tutti.Sequential([tutti.Dense(1)], input=(2,)); " \
        "print(m.predict([[1, 2]]).shape)"
    site = os.pathsep.join([str(tmp_path / "site"), os.path.dirname(os.path.dirname(np.__file__))])
    out = subprocess.run([sys.executable, "-c", words], cwd=tmp_path, text=True, check=True,
                         env={"PYTHONPATH": site, "PATH": "/nonexistent"}, capture_output=True).stdout
    assert out == f"{tmp_path}/site/tutti/lib/libtutti.so\n(1, 1)\n"


@pytest.fixture(scope="module")
def npz(tmp_path_factory):
    folder = tmp_path_factory.mktemp("npz")
    batches = list(tutti.data.Digits(640, shuffle=False))
    np.savez(folder / "digits.npz", x=np.concatenate([b[0] for b in batches]),
             y=np.concatenate([b[1] for b in batches]))
    return folder


@pytest.mark.parametrize("name, packages", [("tutti", ()), ("torch", ("torch",)),
                                            ("keras", ("keras", "tensorflow")),
                                            ("jax", ("jax", "optax"))])
def test_the_same_program_in_four_frameworks(name, packages, npz, monkeypatch):
    for package in packages:
        pytest.importorskip(package)
    program = os.path.join(EXAMPLES, "peers", f"with_{name}.py")
    words = ["-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2", program] \
        if name == "torch" else [program]
    out = run(npz, *words)
    assert "epoch 3/3" in out.lower() or "Epoch 3/3" in out


def test_the_table_of_frameworks_counts_right():
    """Lines and imports without comments and blank lines, as docs/python.md has them."""
    with open(os.path.join(ROOT, "docs", "python.md"), encoding="utf-8") as f:
        page = f.read()
    counts = {"lines": [], "imports": []}
    for name in ("tutti", "keras", "torch", "jax"):
        with open(os.path.join(EXAMPLES, "peers", f"with_{name}.py"), encoding="utf-8") as f:
            text = re.sub(r'^""".*?"""', "", f.read(), flags=re.S)
        lines = [x.strip() for x in text.split("\n") if x.strip() and not x.strip().startswith("#")]
        counts["lines"].append(len(lines))
        counts["imports"].append(sum(x.startswith(("import ", "from ")) for x in lines))
    for what, numbers in counts.items():
        assert "| " + " | ".join([what, *map(str, numbers)]) + " |" in page, (what, numbers)
