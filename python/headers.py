"""headers.py - reads Tutti's public headers: structs, enums and functions, for generate.py.

The C preprocessor expands the macros; what it leaves of include/tutti is a small part of C, which
is read here. Nothing is compiled.
"""
import os
import re
import subprocess
from dataclasses import dataclass, field

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
INCLUDE = os.path.join(ROOT, "include")


@dataclass
class Type:
    """base is a name of C ("int", "tt_shape", "(fn)"); stars counts pointers; count is an array's."""

    base: str
    stars: int = 0
    count: int = 0
    fn: tuple = ()  # of "(fn)": result, parameters
    is_const: bool = False

    def is_text(self):
        return self.base == "char" and self.stars == 1 and self.is_const


@dataclass
class Struct:
    name: str
    fields: list = field(default_factory=list)  # (name, Type)


@dataclass
class Function:
    name: str
    result: Type
    params: list  # (name, Type)


@dataclass
class Headers:
    structs: dict = field(default_factory=dict)
    enums: dict = field(default_factory=dict)
    functions: dict = field(default_factory=dict)
    callbacks: dict = field(default_factory=dict)  # name of a function pointer: (result, params)
    aliases: dict = field(default_factory=dict)
    comments: dict = field(default_factory=dict)  # the comment above a function


def preprocess(compiler):
    source = "#include <tutti/tutti.h>\n"
    command = [compiler, "-E", "-std=c11", "-I", INCLUDE, "-x", "c", "-"]
    text = subprocess.run(command, input=source, capture_output=True, text=True, check=True).stdout
    out, ours = [], False
    for line in text.splitlines():
        mark = re.match(r'# \d+ "([^"]*)"', line)
        if mark:
            ours = "/tutti/" in mark.group(1)
        elif ours:
            out.append(line)
    text = re.sub(r"__attribute__\(\(.*?\)\)+", " ", " ".join(out))
    return re.sub(r"\s+", " ", text)


def declarations(text):
    """The text between semicolons that stand outside of braces."""
    depth, begin = 0, 0
    for i, c in enumerate(text):
        if c == "{":
            depth += 1
        elif c == "}":
            depth -= 1
        elif c == ";" and depth == 0:
            yield text[begin:i].strip()
            begin = i + 1


def split_commas(text):
    depth, begin, out = 0, 0, []
    for i, c in enumerate(text):
        depth += (c in "([{") - (c in ")]}")
        if c == "," and depth == 0:
            out.append(text[begin:i].strip())
            begin = i + 1
    out.append(text[begin:].strip())
    return [s for s in out if s]


def number(text, known):
    return int(eval(text, {"__builtins__": {}}, dict(known)))  # constants of our own headers


class Reader:
    def __init__(self, text):
        self.out = Headers()
        self.numbers = {}
        for declaration in declarations(text):
            self.declaration(declaration)

    # ---- types -------------------------------------------------------------------------------

    def one(self, text):
        """(name, Type) of a declaration such as "const char *name" or "int64_t dim[8]"."""
        is_const = re.match(r"\s*const\b", text) is not None
        text = re.sub(r"\b(const|volatile|extern|struct|enum|static|inline)\b", " ", text).strip()
        call = re.match(r"(.+?)\(\s*\*\s*(\w*)\s*\)\s*\((.*)\)$", text)
        if call:
            result = self.one(call.group(1) + " r")[1]
            return call.group(2), Type("(fn)", fn=(result, self.parameters(call.group(3))))
        array = re.match(r"(.*?)\[(.*?)\](?:\[.*\])?$", text)
        count = 0
        if array:
            count = number(array.group(2), self.numbers) if array.group(2).strip() else 0
            text = array.group(1).strip()
        stars = text.count("*")
        words = text.replace("*", " ").replace("_Bool", "bool").split()
        name = words.pop() if len(words) > 1 else ""
        base = self.out.aliases.get(words[0], words[0])
        if array and count == 0:
            stars, count = stars + 1, 0
        return name, Type(base, stars, count, is_const=is_const)

    def many(self, text):
        """The declarations of "int64_t low, high" or "const char *x, *y"."""
        if "(" in text:
            return [self.one(text)]
        first, *rest = split_commas(text)
        out = [self.one(first)]
        head = re.match(r"((?:const |volatile |struct |enum )*\w+)", first).group(1)
        for more in rest:
            out.append(self.one(head + " " + more))
        return out

    def parameters(self, text):
        if text.strip() in ("void", ""):
            return []
        out = []
        for part in split_commas(text):
            name, type_ = ("...", Type("...")) if part == "..." else self.one(part)
            if type_.count:  # an array is a pointer here
                type_ = Type(type_.base, type_.stars + 1, is_const=type_.is_const)
            out.append((name, type_))
        return out

    # ---- declarations ------------------------------------------------------------------------

    def declaration(self, text):
        body = re.match(r"(typedef )?(struct|enum) (\w+)? ?\{(.*)\} ?(\w*)$", text)
        if body and body.group(2) == "enum":
            return self.enum(body.group(5) or body.group(3), body.group(4))
        if body:
            name = body.group(5) or body.group(3)
            fields = [f for part in body.group(4).split(";") if part.strip()
                      for f in self.many(part.strip())]
            self.out.structs[name] = Struct(name, fields)
        elif text.startswith("typedef") and "(*" in text.replace(" ", ""):
            name, type_ = self.one(text[len("typedef"):])
            self.out.callbacks[name] = type_.fn
        elif re.match(r"typedef (struct|enum) (\w+) \2$", text):
            pass  # opaque
        elif text.startswith("typedef"):
            base, *names = re.split(r"[ ,]+", text[len("typedef"):].replace("struct ", " ").strip())
            for name in names:
                self.out.aliases[name] = self.out.aliases.get(base, base)
        elif text.endswith(")"):
            head, _, rest = text.partition("(")
            name, result = self.one(head.strip())
            self.out.functions[name] = Function(name, result, self.parameters(rest[:-1]))

    def enum(self, name, body):
        values, at = {}, 0
        for part in split_commas(body):
            word, _, value = part.partition("=")
            at = number(value, self.numbers) if value else at
            values[word.strip()] = at
            at += 1
        self.numbers.update(values)
        if name:
            self.out.enums[name] = values


def comments():
    """The comment that stands above each public function."""
    out = {}
    for file in sorted(os.listdir(os.path.join(INCLUDE, "tutti"))):
        with open(os.path.join(INCLUDE, "tutti", file), encoding="utf-8") as f:
            text = f.read()
        above = r"(/\*(?:[^*]|\*(?!/))*\*/|(?://[^\n]*\n)+)\s*TT_API[^;]*?\b(tt_\w+)\("
        for comment, name in re.findall(above, text):
            comment = re.sub(r"^\s*(/\*+|\*/|\*|//)\s?", "", comment, flags=re.M)
            out[name] = re.sub(r"\s+", " ", comment.replace("*/", "")).strip()
        for name, comment in re.findall(r"TT_API[^;\n]*\b(tt_\w+)\([^;\n]*;[ \t]*// ([^\n]*)", text):
            out[name] = comment
    return out


def read(compiler=None):
    found = Reader(preprocess(compiler or os.environ.get("CC", "cc"))).out
    found.comments = comments()
    return found
