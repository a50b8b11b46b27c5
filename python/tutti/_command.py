"""The tutti command of a wheel: runs the program that it carries, with its libraries."""
import os
import sys

from ._paths import deps, program


def main():
    path = program()
    if path is None:
        sys.exit("tutti: error: the command is not in this package; run make in the source tree")
    environment = dict(os.environ)
    if os.path.isdir(deps()):
        old = environment.get("LD_LIBRARY_PATH")
        environment["LD_LIBRARY_PATH"] = deps() + (os.pathsep + old if old else "")
    os.execve(path, [path, *sys.argv[1:]], environment)
