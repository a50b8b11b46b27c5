"""The build backend of the package (PEP 517, PEP 660): pip install . and wheels.

A wheel carries libtutti.so, the command and the libraries that both need beside the system's own,
so that installing it needs no compiler. From a source tree the library is built with make first,
unless it is there. Nothing is downloaded: the backend needs Python alone.
"""
import base64
import glob
import hashlib
import os
import re
import shutil
import subprocess
import sys
import tarfile
import zipfile

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
BUILD = os.path.join(ROOT, "build", "release")
# What every Linux with glibc has; see PEP 600.
SYSTEM = re.compile(r"^(linux-vdso|ld-linux.*|libc|libm|libdl|libpthread|librt|libresolv|libgcc_s"
                    r"|libstdc\+\+|libutil)\.so")


def read(path):
    with open(os.path.join(ROOT, path), encoding="utf-8") as f:
        return f.read()


def version():
    return re.search(r'TT_VERSION\s+"([^"]+)"', read("include/tutti/base.h")).group(1)


def project():
    """The fields of pyproject.toml that are needed here; Python 3.9 has no reader for it."""
    text = read("pyproject.toml")
    def one(key): return re.search(rf'^{key} = "(.*)"$', text, re.M).group(1)
    depends = re.findall(r'"([^"]+)"', re.search(r"^dependencies = \[(.*)\]$", text, re.M).group(1))
    extras = re.findall(r'^(\w+) = \["(.*)"\]$', text.split("[project.optional-dependencies]")[1]
                        .split("[project.scripts]")[0], re.M)
    scripts = re.findall(r'^(\w+) = "(.*)"$', text.split("[project.scripts]")[1], re.M)
    return {"name": one("name"), "summary": one("description"), "python": one("requires-python"),
            "depends": depends, "extras": extras, "scripts": scripts}


def metadata():
    p = project()
    lines = ["Metadata-Version: 2.1", f"Name: {p['name']}", f"Version: {version()}",
             f"Summary: {p['summary']}", f"Requires-Python: {p['python']}",
             "Description-Content-Type: text/markdown"]
    lines += [f"Requires-Dist: {d}" for d in p["depends"]]
    for extra, package in p["extras"]:
        lines += [f"Provides-Extra: {extra}", f'Requires-Dist: {package} ; extra == "{extra}"']
    return "\n".join(lines) + "\n\n" + read("README.md")


def entry_points():
    return "[console_scripts]\n" + "".join(f"{n} = {f}\n" for n, f in project()["scripts"])


# ---- the library ---------------------------------------------------------------------------------


def built():
    """Builds the library and the command where they are not there yet."""
    paths = [os.path.join(BUILD, n) for n in ("libtutti.so", "tutti")]
    if not all(os.path.exists(p) for p in paths):
        print("building libtutti.so: make CUDA=0 all", file=sys.stderr)
        subprocess.run(["make", "CUDA=0", "all"], cwd=ROOT, check=True)
    return paths


def needed(paths):
    """The shared libraries, by path, that these files need beside the system's own."""
    out = {}
    for path in paths:
        text = subprocess.run(["ldd", path], capture_output=True, text=True, check=True).stdout
        for name, file in re.findall(r"(\S+) => (/\S+)", text):
            if not SYSTEM.match(name):
                out[name] = os.path.realpath(file)
    return out


def stripped(path, to):
    """A copy without debugging information, where strip is there."""
    shutil.copyfile(path, to)
    if shutil.which("strip"):
        subprocess.run(["strip", "--strip-unneeded", to], check=True)
    return to


def platform_tag(paths):
    """manylinux_2_x: the newest version of glibc that any of the files asks for."""
    newest = (2, 17)
    for path in paths:
        with open(path, "rb") as f:
            for major, minor in re.findall(rb"GLIBC_(\d+)\.(\d+)", f.read()):
                newest = max(newest, (int(major), int(minor)))
    return f"manylinux_{newest[0]}_{newest[1]}_{os.uname().machine}"


# ---- wheels --------------------------------------------------------------------------------------


class Wheel:
    def __init__(self, path):
        self.zip = zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED)
        self.record = []

    def add(self, name, data, mode=0o644):
        info = zipfile.ZipInfo(name, (1980, 1, 1, 0, 0, 0))  # the same files, the same wheel
        info.external_attr = (0o100000 | mode) << 16
        info.compress_type = zipfile.ZIP_DEFLATED
        self.zip.writestr(info, data)
        digest = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()
        self.record.append(f"{name},sha256={digest},{len(data)}")

    def add_file(self, name, path, mode=0o644):
        with open(path, "rb") as f:
            self.add(name, f.read(), mode)

    def close(self, folder, tag, is_pure):
        self.add(f"{folder}/METADATA", metadata().encode())
        self.add(f"{folder}/entry_points.txt", entry_points().encode())
        self.add(f"{folder}/LICENSE", read("LICENSE").encode())
        self.add(f"{folder}/WHEEL", (f"Wheel-Version: 1.0\nGenerator: tutti\nRoot-Is-Purelib: "
                                     f"{'true' if is_pure else 'false'}\nTag: {tag}\n").encode())
        name = f"{folder}/RECORD"
        self.zip.writestr(name, "\n".join([*self.record, f"{name},,", ""]))
        self.zip.close()


def build_wheel(wheel_directory, config_settings=None, metadata_directory=None):
    library, command = built()
    parts = os.path.join(ROOT, "build", "wheel")
    shutil.rmtree(parts, ignore_errors=True)
    os.makedirs(os.path.join(parts, "deps"))
    files = {"libtutti.so": stripped(library, os.path.join(parts, "libtutti.so")),
             "tutti": stripped(command, os.path.join(parts, "tutti"))}
    module = os.path.join(BUILD, "libtutti-cuda.so")
    if os.path.exists(module):
        files["libtutti-cuda.so"] = module
    for name, path in needed([library, command]).items():
        files[f"deps/{name}"] = path
    tag = f"py3-none-{platform_tag(files.values())}"
    file = f"tutti-{version()}-{tag}.whl"
    wheel = Wheel(os.path.join(wheel_directory, file))
    for path in sorted(glob.glob(os.path.join(ROOT, "python", "tutti", "*"))):
        if path.endswith((".py", ".pyi", "py.typed")):
            wheel.add_file(f"tutti/{os.path.basename(path)}", path)
    for name, path in files.items():
        wheel.add_file(f"tutti/lib/{name}", path, 0o755)
    wheel.close(f"tutti-{version()}.dist-info", tag, False)
    return file


def build_editable(wheel_directory, config_settings=None, metadata_directory=None):
    """pip install -e .: Python finds the source tree, which has its library in build/release."""
    built()
    file = f"tutti-{version()}-py3-none-any.whl"
    wheel = Wheel(os.path.join(wheel_directory, file))
    wheel.add("tutti.pth", (os.path.join(ROOT, "python") + "\n").encode())
    wheel.close(f"tutti-{version()}.dist-info", "py3-none-any", True)
    return file


def build_sdist(sdist_directory, config_settings=None):
    name = f"tutti-{version()}"
    file = f"{name}.tar.gz"
    listed = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=True)
    with tarfile.open(os.path.join(sdist_directory, file), "w:gz") as out:
        for path in listed.stdout.split("\n"):
            if path and os.path.isfile(os.path.join(ROOT, path)):
                out.add(os.path.join(ROOT, path), f"{name}/{path}")
        info_path = os.path.join(ROOT, "build", "PKG-INFO")
        with open(info_path, "w", encoding="utf-8") as f:
            f.write(metadata())
        out.add(info_path, f"{name}/PKG-INFO")
    return file


def get_requires_for_build_wheel(config_settings=None):
    return []


get_requires_for_build_editable = get_requires_for_build_sdist = get_requires_for_build_wheel
