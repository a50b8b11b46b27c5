#!/usr/bin/env python3
"""generate.py [--check] LIBRARY - writes the generated modules of the package tutti.

From the headers come the layouts and prototypes (_c.py) and the functions of ops (ops.py); from the
catalogue of the library (tt_catalog_json) come the classes of layers, losses, metrics, optimizers,
schedules, sources and transforms. Each module gets a stub (.pyi) with its types. --check writes
nothing and fails where a file differs from what would be written.
"""
import ctypes
import json
import os
import sys
import textwrap

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import headers  # noqa: E402

HERE = os.path.dirname(os.path.abspath(__file__))
PACKAGE = os.path.join(HERE, "tutti")
NOTE = "Written by python/generate.py from {}; not edited by hand."
SIMPLE = {
    "int": "c_int", "unsigned": "c_uint", "int64_t": "c_int64", "uint64_t": "c_uint64",
    "uint8_t": "c_uint8", "size_t": "c_size_t", "bool": "c_bool", "double": "c_double",
    "float": "c_float", "char": "c_char",
}
WORDS = {"mlp": "MLP", "gpt": "GPT", "rms": "RMS", "lenet": "LeNet", "resnet": "ResNet",
         "lstm": "LSTM", "llama": "LLaMA", "bert": "BERT", "vit": "ViT", "unet": "UNet", "lm": "LM",
         "mobilenet": "MobileNet", "lambda": "Expression",  # Lambda takes a function
         "gru": "GRU", "rnn": "RNN",
         "mse": "MSE", "mae": "MAE", "sgd": "SGD", "adamw": "AdamW", "rmsprop": "RMSprop",
         "mape": "MAPE", "msle": "MSLE", "auc": "AUC", "iou": "IoU", "rmse": "RMSE", "lamb": "LAMB",
         "lars": "LARS", "ftrl": "FTRL", "kl": "KL", "wsd": "WSD", "amsgrad": "AMSGrad",
         "csv": "CSV", "idx": "IDX", "npy": "NPY", "mnist": "MNIST", "cifar10": "CIFAR10"}
RESERVED = {"from": "from_", "lambda": "lambda_"}


def camel(name):
    parts = []
    for word in name.split("_"):
        title = WORDS.get(word, word[:1].upper() + word[1:])
        parts.append(title.replace("1d", "1D").replace("2d", "2D"))
    return "".join(parts)


# ---- _c.py: layouts and prototypes --------------------------------------------------------------


def c_type(h, t):
    if t.base == "(fn)":
        out = callback(h, t.fn)
    elif t.is_text():
        out = "c_char_p"
    elif t.stars > 0:
        out = "c_void_p"
    elif t.base in h.enums:
        out = "c_int"
    elif t.base in h.callbacks or t.base in h.structs:
        out = t.base
    else:
        out = SIMPLE[t.base]
    return f"{out} * {t.count}" if t.count else out


def result_type(h, t):
    if t.base == "void" and t.stars == 0:
        return "None"
    return "c_void_p" if t.stars > 0 else c_type(h, t)


def callback(h, fn):
    result, params = fn
    types = [result_type(h, result)] + [
        "c_void_p" if p.stars > 0 else c_type(h, p) for _, p in params]
    return f"CFUNCTYPE({', '.join(types)})"


def used_structs(h):
    """Structs by value first: the order in which ctypes can define them."""
    done = []

    def visit(name):
        if name in done or name not in h.structs:
            return
        for _, t in h.structs[name].fields:
            if t.stars == 0:
                visit(t.base)
        done.append(name)

    for name in h.structs:
        visit(name)
    return done


def write_c(h):
    out = [f'"""{NOTE.format("include/tutti/*.h")}"""', "from ctypes import (", "    CFUNCTYPE,"]
    names = sorted(set(SIMPLE.values()) | {"c_char_p", "c_void_p", "Structure"})
    out += [f"    {n}," for n in names] + [")", "", "# Function pointers.", ""]
    for name, fn in h.callbacks.items():
        out.append(f"{name} = {callback(h, fn)}")
    out += ["", "# Words of enums.", "", "ENUMS = {"]
    for name, values in h.enums.items():
        out.append(f'    "{name}": {{')
        out += [f'        "{word}": {value},' for word, value in values.items()]
        out.append("    },")
    out += ["}", "", "# Structs. _enums_ names the enum of a field, _points_ the struct it points to.", ""]
    for name in used_structs(h):
        s = h.structs[name]
        out += ["", f"class {name}(Structure):", "    _fields_ = ["]
        out += [f'        ("{f}", {c_type(h, t)}),' for f, t in s.fields]
        out.append("    ]")
        enums = {f: t.base for f, t in s.fields if t.stars == 0 and t.base in h.enums}
        points = {f: t.base for f, t in s.fields if t.stars == 1 and t.base in h.structs}
        if enums:
            out.append(f"    _enums_ = {json.dumps(enums)}")
        if points:
            out.append(f"    _points_ = {json.dumps(points)}")
        out.append("")
    out += ["", "# Functions: result, then parameters.", "", "FUNCTIONS = {"]
    for name, f in h.functions.items():
        types = "".join(f"{'c_void_p' if t.stars > 1 or (t.stars and not t.is_text()) else c_type(h, t)}, "
                        for _, t in f.params if t.base != "...")
        out.append(f'    "{name}": ({result_type(h, f.result)}, ({types.rstrip()})),')
    out += ["}", "", "# What ops.py passes: a kind for each parameter behind the graph.", "", "OPS = {"]
    for name, f in op_functions(h):
        kinds, params = [], f.params[1:]
        for i, (_, t) in enumerate(params):
            if t.base == "int" and i > 0 and params[i - 1][1].stars == 2:
                kinds.append("count")
            elif t.base in h.structs and (t.stars == 1 or t.base.endswith("_vars")):
                kinds.append(t.base)
            else:
                kinds.append(kind_of(h, t))
        words = "".join(f'"{k}", ' for k in kinds).rstrip()
        out.append(f'    "{name}": ({words}),')
    out += ["}", ""]
    return "\n".join(out)


# ---- parts of the catalogue ---------------------------------------------------------------------


def python_name(name):
    return RESERVED.get(name, name)


def default_of(o):
    """The default of an option as Python writes it; None where C or the data decides."""
    value, kind = o["default"], o["type"]
    if value is None or o["form"] != "value":
        return "None"
    if kind in ("bool", "int", "float"):
        return repr(value)
    if kind == "word" or (kind in ("text", "dtype") and value != ""):
        return json.dumps(value)
    if kind == "pair":
        return value
    return "None"


def hint_of(o):
    kinds = {"bool": "bool", "int": "int", "float": "float", "text": "str | Sequence[str]",
             "list": "Sequence[int]", "size": "int | str", "dtype": "Dtype",
             "shape": "int | Sequence[int]", "pair": "int | tuple[int, int]"}
    if o["form"] == "choice":
        return "str | Schedule | Callable[[int, int], float] | None"
    if o["form"] == "list":
        return "Sequence[Layer] | None" if o["group"] == "layers" else "Sequence[dict[str, Any]] | None"
    if o["type"] == "word":
        words = ", ".join(json.dumps(w) for w in o["choices"])
        kind = f"Literal[{words}] | bool" if "true" in o["choices"] else f"Literal[{words}]"
    else:
        kind = kinds[o["type"]]
    is_open = default_of(o) == "None" and not o["required"]
    return f"{kind} | None" if is_open else kind


def sentence(text):
    text = text.strip()
    return text[:1].upper() + text[1:] + ("" if text.endswith(".") else ".") if text else ""


def wrapped(text, indent, first="", width=100):
    return textwrap.fill(text, width, initial_indent=indent + first, subsequent_indent=indent + "    "
                         if first else indent, break_long_words=False, break_on_hyphens=False)


def docstring(help_, options, common):
    out = [wrapped(f'"""{sentence(help_)}', "    ")]
    rows = [(python_name(o["name"]), o["help"]) for o in options] + common
    if rows:
        out += ["", "    Args:"]
        out += [wrapped(f"{text}", "        ", first=f"{name}: ") for name, text in rows]
        out.append('    """')
    else:
        out[-1] += '"""'
    return out


def ordered(entry, left_out=()):
    """Options, the main one and the required ones first."""
    options = [o for o in entry["options"] if o["name"] not in left_out]
    rank = {entry["main"]: 0}
    return sorted(options, key=lambda o: (not o["required"], rank.get(o["name"], 1)))


def signature(options, common, with_types):
    """The parameters of __init__: those that must be given and the main one by position."""
    out, is_open = [], True
    for i, o in enumerate(options):
        if is_open and i > 0 and not o["required"]:
            out.append("*")
            is_open = False
        name = python_name(o["name"])
        hint = f": {hint_of(o)}" if with_types else ""
        equals = " = " if with_types else "="
        out.append(f"{name}{hint}" + ("" if o["required"] else f"{equals}{default_of(o)}"))
    if is_open and common:
        out.append("*")
    for name, hint, value in common:
        out.append(f"{name}: {hint} = {value}" if with_types else f"{name}={value}")
    return out


def joined(head, words, tail, indent="    "):
    line = indent + head + ", ".join(words) + tail
    if len(line) <= 100:
        return [line]
    return [indent + head] + [f"{indent}    {w}," for w in words] + [indent + tail]


GROUPS = {
    "layers": ("Layer", "_layer", [("name", "str | None", "None"), ("device", "str | None", "None")],
               {"name": "name of the layer; default: its type and a number",
                "device": "device, such as cpu:1; default: chosen by the strategy"},
               {"name", "from", "share", "device"}),
    "losses": ("Loss", "_parts", [], {}, {"has_ignore"}),
    "metrics": ("Metric", "_parts", [], {}, set()),
    "optimizers": ("Optimizer", "_parts", [], {}, set()),
    "schedules": ("Schedule", "_parts", [], {}, set()),
    "sources": ("Source", "_data",
                [("batch", "int", "32"), ("shuffle", "bool", "True"),
                 ("transforms", "Sequence[Transform]", "()"), ("workers", "int", "1"),
                 ("prefetch", "int", "0")],
                {"batch": "batch size, summed over all devices", "shuffle": "shuffle every epoch",
                 "transforms": "transforms of each record, in order",
                 "workers": "threads that load ahead; 0: none",
                 "prefetch": "batches loaded ahead; 0: chosen from their size"}, set()),
    "transforms": ("Transform", "_data", [], {}, set()),
}
NEEDS = {"layers": "", "losses": "", "metrics": "", "optimizers": "from .schedules import Schedule\n",
         "schedules": "", "sources": "", "transforms": ""}


def part_class(group, entry, with_types):
    base, _, common, help_, left_out = GROUPS[group]
    options = ordered(entry, left_out)
    if group == "losses":
        for o in options:
            if o["name"] == "ignore":
                o = o.update(default=None, required=False, type="int")
    name = camel(entry["name"])
    out = ["", "", f"class {name}({base}):"]
    out += docstring(entry["help"], options, [(n, help_[n]) for n, _, _ in common])
    params = ["self"] + signature(options, common, with_types)
    if with_types:
        return out + [""] + joined("def __init__(", params, ") -> None: ...")
    given = [f"{o['name']}={python_name(o['name'])}" if o["name"] not in RESERVED
             else f"**{{\"{o['name']}\": {python_name(o['name'])}}}" for o in options]
    out += ["", f'    kind = "{entry["name"]}"']
    words = {o["name"]: o["choices"] for o in options if o["choices"]}
    types = {o["name"]: o["type"] or o["form"] for o in options}
    out += joined("options = {", [f'"{k}": "{v}"' for k, v in types.items()], "}")
    if words:
        out.append("    choices = {")
        for k, v in words.items():
            text = ", ".join(json.dumps(w) for w in v)
            out.append(wrapped(f'"{k}": ({text}),', "        "))
        out.append("    }")
    out += [""] + joined("def __init__(", params + ["**unknown"], "):")
    out += joined("super().__init__(", ["unknown"] + [f"{n}={n}" for n, _, _ in common] + given,
                  ")", "        ")
    return out


def write_parts(catalogue, title, groups, with_types):
    names = [camel(e["name"]) for g in groups for e in catalogue[g]]
    bases = [(GROUPS[g][0], GROUPS[g][1]) for g in groups]
    out = [f'"""{title}', "", NOTE.format("the catalogue"), '"""']
    if with_types:
        out += ["from collections.abc import Callable, Sequence", "from typing import Any, Literal", "",
                "from ._lib import Dtype"]
    for base, module in bases:
        out.append(f"from .{module} import {base}{' as ' + base if with_types else ''}")
    if with_types and "optimizers" in groups:
        out.append("from ._parts import Schedule as Schedule")
    extra = EXTRA.get(groups[0], [])
    for module, extras in extra:
        out.append(f"from .{module} import " + ", ".join(
            f"{n} as {n}" if with_types else n for n in extras))
    names += [n for _, extras in extra for n in extras] + [b for b, _ in bases]
    if not with_types:
        out += [""] + joined("__all__ = [", [f'"{n}"' for n in sorted(set(names))], "]", "")
    for g in groups:
        for entry in catalogue[g]:
            out += part_class(g, entry, with_types)
    return "\n".join(out) + "\n"


EXTRA = {"layers": [("_layer", ["Input", "Lambda"])],
         "sources": [("_data", ["Arrays", "Data", "Map"])],
         "metrics": [("_parts", ["metric"])], "losses": [("_parts", ["loss"])],
         "schedules": [("_parts", ["schedule"])]}
MODULES = {
    "layers": ("Layers: the building blocks of models.", ["layers"]),
    "losses": ("Losses: what training minimises.", ["losses"]),
    "metrics": ("Metrics: what training reports beside the loss.", ["metrics"]),
    "optimizers": ("Optimizers: how weights are updated.", ["optimizers"]),
    "schedules": ("Schedules of the learning rate.", ["schedules"]),
    "data": ("Data: sources of records, and transforms of them.", ["sources", "transforms"]),
}

# ---- ops.py: functions that build nodes ---------------------------------------------------------

# Written by hand in _tensor.py: they make the ends of a graph, or return several tensors.
NOT_OPS = {"feed", "const", "variable", "scalar", "fill", "split_at"}


def op_name(function):
    name = function[3:]
    name = "assert_" if name == "assert" else name
    name = name[3:] if name.startswith("op_") else name
    return name[:-5] if name.endswith("_with") else name


def op_functions(h):
    for name, f in h.functions.items():
        params = f.params
        if not params or params[0][1].base != "tt_graph" or params[0][1].stars != 1:
            continue
        if f.result.base == "tt_tensor" and f.result.stars == 1 and op_name(name) not in NOT_OPS \
                and not op_name(name).startswith("graph_"):
            yield name, f


def op_params(h, f):
    """(name, kind, default) of each Python parameter; opts fields are keywords."""
    place, words = [], []
    params = f.params[1:]
    for i, (name, t) in enumerate(params):
        if t.base == "int" and i > 0 and params[i - 1][1].stars == 2:
            continue  # the number of tensors before it
        if t.base in h.structs and t.stars == 1:
            words += op_fields(h, t.base)
        elif t.base in h.structs and t.base.endswith("_vars"):
            place += [(n, "tensor", None) for n, _ in h.structs[t.base].fields]
        else:
            place.append((name, kind_of(h, t), None))
    return place, words


def kind_of(h, t):
    if t.base == "tt_tensor":
        return "tensors" if t.stars == 2 else "tensor"
    if t.is_text():
        return "text"
    return t.base


def op_fields(h, struct):
    out = []
    fields = h.structs[struct].fields
    counts = {n for n, _ in fields if n.startswith("n_")}
    both = {"axis", "axes"} <= {n for n, _ in fields}
    for name, t in fields:
        if name == "opts_size" or name in counts or (both and name == "axes"):
            continue
        is_list = f"n_{name}" in counts
        if t.base == "tt_tensor" and t.stars == 2 and not is_list:
            continue  # a second result
        kind = "axes" if both and name == "axis" else kind_of(h, t)
        out.append((name, kind, "None"))
    return out


OP_HINTS = {"tensor": "TensorLike", "tensors": "Sequence[TensorLike]", "text": "str", "int": "int",
            "int64_t": "int", "double": "float", "bool": "bool", "tt_dtype": "Dtype",
            "tt_shape": "Sequence[int]", "tt_axes": "Sequence[int]", "tt_act": "str",
            "tt_padding": "str", "tt_over": "str", "tt_recurrent_kind": "str",
            "axes": "int | Sequence[int]"}


def op_doc(h, catalogue, name, function):
    for e in catalogue["ops"]:
        if e["name"] == name.rstrip("_"):
            return e["help"].rstrip(".") + "."
    return sentence(h.comments.get(function, f"{name} of its inputs"))


def write_ops(h, catalogue, with_types):
    title = "Ops: functions of tensors. On symbols they add nodes to a graph, on arrays they compute."
    out = [f'"""{title}', "", NOTE.format("include/tutti/ops.h and the catalogue"), '"""']
    names = sorted(op_name(n) for n, _ in op_functions(h)) + ["split"]
    if with_types:
        out += ["from collections.abc import Sequence", "", "from ._lib import Dtype",
                "from ._tensor import Tensor, TensorLike, split as split"]
    else:
        out += ["from ._tensor import call as _call", "from ._tensor import split", ""]
        out += joined("__all__ = [", [f'"{n}"' for n in sorted(names)], "]", "")
    for function, f in op_functions(h):
        name = op_name(function)
        place, words = op_params(h, f)
        params = []
        for n, kind, default in place:
            hint = OP_HINTS[kind] + (" | None" if default else "")
            params.append(f"{n}: {hint}" if with_types else n)
        if words:
            params.append("*")
        for n, kind, default in words:
            params.append(f"{n}: {OP_HINTS[kind]} | None = None" if with_types else f"{n}=None")
        if with_types:
            out += ["", ""] + joined(f"def {name}(", params, ") -> Tensor: ...", "")
            continue
        out += ["", ""] + joined(f"def {name}(", params, "):", "")
        out.append(wrapped(f'"""{op_doc(h, catalogue, name, function)}"""', "    "))
        given = ", ".join(n for n, _, _ in place)
        given = f"({given},)" if len(place) == 1 else f"({given})"
        extra = [f"{n}={n}" for n, _, _ in words]
        out += joined("return _call(", [f'"{function}"', given] + extra, ")", "    ")
    return "\n".join(out) + "\n"


# ---- all files ----------------------------------------------------------------------------------


def catalogue_of(library):
    lib = ctypes.CDLL(os.path.abspath(library))
    lib.tt_open_with.restype = ctypes.c_void_p
    lib.tt_catalog_json.restype = ctypes.c_char_p
    lib.tt_catalog_json.argtypes = [ctypes.c_void_p]
    options = (ctypes.c_size_t * 1)(ctypes.sizeof(ctypes.c_size_t))
    return json.loads(lib.tt_catalog_json(lib.tt_open_with(options)).decode())


def files(library):
    h, catalogue = headers.read(), catalogue_of(library)
    out = {"_c.py": write_c(h), "ops.py": write_ops(h, catalogue, False),
           "ops.pyi": write_ops(h, catalogue, True)}
    for module, (title, groups) in MODULES.items():
        out[f"{module}.py"] = write_parts(catalogue, title, groups, False)
        out[f"{module}.pyi"] = write_parts(catalogue, title, groups, True)
    return out


def main(args):
    is_check = "--check" in args
    library = [a for a in args if a != "--check"]
    if len(library) != 1:
        sys.exit("usage: generate.py [--check] LIBRARY")
    stale = []
    for name, text in files(library[0]).items():
        path = os.path.join(PACKAGE, name)
        old = open(path, encoding="utf-8").read() if os.path.exists(path) else None
        if old != text:
            stale.append(name)
            if not is_check:
                with open(path, "w", encoding="utf-8") as f:
                    f.write(text)
    if is_check and stale:
        sys.exit(f"not up to date: {', '.join(stale)}; run make python")


if __name__ == "__main__":
    main(sys.argv[1:])
