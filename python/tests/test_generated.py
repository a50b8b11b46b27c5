"""What is generated is up to date, complete, and laid out as the C compiler lays it out."""
import ctypes
import inspect
import os
import subprocess
import sys

import pytest
import tutti
from conftest import ROOT
from tutti import _c

sys.path.insert(0, os.path.join(ROOT, "python"))
import generate  # noqa: E402
import headers  # noqa: E402

needs_cc = pytest.mark.skipif(subprocess.run(["sh", "-c", "command -v cc"],
                                             capture_output=True).returncode != 0,
                              reason="there is no C compiler")


@needs_cc
def test_files_are_up_to_date():
    for name, text in generate.files(tutti.lib._path).items():
        with open(os.path.join(ROOT, "python", "tutti", name), encoding="utf-8") as f:
            assert f.read() == text, f"{name} is not what make python writes"


@needs_cc
def test_layouts_are_those_of_the_compiler(tmp_path):
    structs = {n: s for n, s in vars(_c).items()
               if isinstance(s, type) and issubclass(s, ctypes.Structure) and n.startswith("tt_")}
    assert len(structs) > 90
    lines = ["#include <stdio.h>", "#include <tutti/tutti.h>", "int main(void) {"]
    for name, s in structs.items():
        lines.append(f'printf("{name} %zu\\n", sizeof({name}));')
        for field, _ in s._fields_:
            lines.append(f'printf("{name}.{field} %zu %zu\\n", offsetof({name}, {field}), '
                         f"sizeof((({name} *)0)->{field}));")
    for enum, words in _c.ENUMS.items():
        lines.append(f'printf("{enum} %zu\\n", sizeof({enum}));')
        lines += [f'printf("{word} %d\\n", (int){word});' for word in words]
    (tmp_path / "layout.c").write_text("\n".join([*lines, "return 0; }"]))
    subprocess.run(["cc", "-std=c11", "-I", os.path.join(ROOT, "include"), "layout.c", "-o", "layout"],
                   cwd=tmp_path, check=True)
    told = subprocess.run([tmp_path / "layout"], capture_output=True, text=True, check=True).stdout
    ours = []
    for name, s in structs.items():
        ours.append(f"{name} {ctypes.sizeof(s)}")
        ours += [f"{name}.{f} {getattr(s, f).offset} {getattr(s, f).size}" for f, _ in s._fields_]
    for enum, words in _c.ENUMS.items():
        ours.append(f"{enum} {ctypes.sizeof(ctypes.c_int)}")
        ours += [f"{word} {value}" for word, value in words.items()]
    assert ours == told.split("\n")[:-1]


def test_every_function_is_in_the_library():
    for name in _c.FUNCTIONS:
        assert getattr(tutti.lib, name) is not None


@needs_cc
def test_every_public_function_is_declared():
    found = headers.read()
    assert set(found.functions) == set(_c.FUNCTIONS)
    assert len(found.functions) > 250


def catalogue():
    return generate.catalogue_of(tutti.lib._path)


@pytest.mark.parametrize("group, module", [
    ("layers", tutti.layers), ("losses", tutti.losses), ("metrics", tutti.metrics),
    ("optimizers", tutti.optimizers), ("schedules", tutti.schedules), ("sources", tutti.data),
    ("transforms", tutti.data)])
def test_the_whole_catalogue_is_reachable(group, module):
    for entry in catalogue()[group]:
        cls = getattr(module, generate.camel(entry["name"]))
        assert cls.kind == entry["name"] and cls.__doc__
        names = set(inspect.signature(cls.__init__).parameters)
        for o in entry["options"]:
            if o["name"] not in ("from", "share", "has_ignore") or group in ("sources",):
                assert generate.python_name(o["name"]) in names, (entry["name"], o["name"])
                assert o["name"] in cls.__doc__ or generate.python_name(o["name"]) in cls.__doc__


def test_ops_of_the_catalogue_are_reachable():
    left_out = {"const", "feed", "variable", "split", "residual", "update_moment", "lamb_direction"}
    for entry in catalogue()["ops"]:
        name = entry["name"]
        if name in left_out or name.endswith(("_grad", "_dx", "_dw")) or name.startswith("batch_norm_"):
            continue
        assert hasattr(tutti.ops, name) or hasattr(tutti.ops, name + "_"), name


def test_stubs_have_the_same_names():
    import ast
    for module in ("layers", "losses", "metrics", "optimizers", "schedules", "data", "ops"):
        names = []
        for end in (".py", ".pyi"):
            with open(os.path.join(ROOT, "python", "tutti", module + end), encoding="utf-8") as f:
                tree = ast.parse(f.read())
            names.append([n.name for n in tree.body if isinstance(n, (ast.ClassDef, ast.FunctionDef))])
        assert names[0] == names[1]
