"""Where the parts of the package lie: in a wheel, or in the source tree after make."""
import os

HERE = os.path.dirname(os.path.abspath(__file__))
BUILD = os.path.join(os.path.dirname(os.path.dirname(HERE)), "build", "release")


def first(*places):
    return next((p for p in places if p and os.path.exists(p)), None)


def library():
    """libtutti.so: $TUTTI_LIBRARY, the wheel's, or that of the tree; None if there is none."""
    return first(os.environ.get("TUTTI_LIBRARY"), os.path.join(HERE, "lib", "libtutti.so"),
                 os.path.join(BUILD, "libtutti.so"))


def program():
    return first(os.path.join(HERE, "lib", "tutti"), os.path.join(BUILD, "tutti"))


def deps():
    """The folder of libraries that a wheel carries for libtutti.so."""
    return os.path.join(HERE, "lib", "deps")
