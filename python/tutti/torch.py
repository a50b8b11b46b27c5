"""Weights from and to torch.nn modules.

>>> import tutti.torch
>>> tutti.torch.load_from(model, module)     # PyTorch's weights into a model
>>> tutti.torch.copy_to(model, module)       # and back

Matrices and kernels are transposed where the two lay them out otherwise. Layers with weights are
matched in their order; map names them where that is not enough.
"""
import json
import os
import subprocess
import tempfile

import torch  # type: ignore[import-not-found, unused-ignore]

from . import _paths
from ._lib import FileError, error_of


def _prefixes(names):
    """The layers that have these weights, in order."""
    return list(dict.fromkeys(n.rpartition(".")[0] for n in names))


def _rules(model, state, map):
    """(theirs, ours) of each layer."""
    if map is not None:
        return [tuple(rule.split("=", 1)) for rule in map.replace(" ", "").split(",")]
    theirs, ours = _prefixes(state), _prefixes(model.weight_names)
    if len(theirs) != len(ours):
        raise ValueError(f"the module has {len(theirs)} layers with weights ({', '.join(theirs)}), but "
                         f"the model has {len(ours)} ({', '.join(ours)}); give map='0.*=dense_1.*, ...'")
    return [(f"{a}.*", f"{b}.*") for a, b in zip(theirs, ours)]


def load_from(model, module, map=None):
    """Copies the weights of a torch.nn.Module, or of its state_dict(), into a model."""
    state = module.state_dict() if hasattr(module, "state_dict") else module
    rules = _rules(model, state, map)
    with tempfile.TemporaryDirectory() as folder:
        file = os.path.join(folder, "weights.pt")
        torch.save({k: v.detach().cpu() for k, v in state.items()}, file)
        model.load_weights(file, map=", ".join(f"{a}={b}" for a, b in rules), layout="torch")
    return model


def copy_to(model, module, map=None):
    """Copies the weights of a model into a torch.nn.Module."""
    rules = _rules(model, module.state_dict(), map)
    with tempfile.TemporaryDirectory() as folder:
        ours, theirs = os.path.join(folder, "m.tutti"), os.path.join(folder, "m.safetensors")
        model.save(ours)
        run = subprocess.run([_paths.program(), "convert", ours, theirs, "--to", "torch", "--map",
                              ", ".join(f"{b}={a}" for a, b in rules)], capture_output=True, text=True)
        if run.returncode != 0:
            raise error_of(1, run.stderr.strip())
        state = _read(theirs)
    kept = {k: v for k, v in module.state_dict().items() if k.endswith("num_batches_tracked")}
    module.load_state_dict({**kept, **state})
    return module


def _read(file):
    """The tensors of a safetensors file."""
    types = {"F32": torch.float32, "F64": torch.float64, "F16": torch.float16, "I32": torch.int32,
             "BF16": torch.bfloat16, "I64": torch.int64, "U8": torch.uint8, "BOOL": torch.bool}
    with open(file, "rb") as f:
        data = bytearray(f.read())
    size = int.from_bytes(data[:8], "little")
    out = {}
    for name, about in json.loads(data[8:8 + size].decode()).items():
        if name == "__metadata__":
            continue
        begin, end = about["data_offsets"]
        if end > len(data) - 8 - size:
            raise FileError(f"{file}: tensor '{name}' ends behind the file")
        part = data[8 + size + begin:8 + size + end]
        out[name] = torch.frombuffer(part, dtype=types[about["dtype"]]).reshape(about["shape"])
    return out
