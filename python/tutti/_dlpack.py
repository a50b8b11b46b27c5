"""Arrays of other libraries, without copies: NumPy's, and all that speak DLPack."""
import ctypes

import numpy as np

from ._lib import DTYPES, NUMPY, dtype_of

CPU, CUDA_HOST = 1, 3


class _DLTensor(ctypes.Structure):
    _fields_ = [("data", ctypes.c_void_p), ("device", ctypes.c_int32 * 2), ("ndim", ctypes.c_int32),
                ("code", ctypes.c_uint8), ("bits", ctypes.c_uint8), ("lanes", ctypes.c_uint16),
                ("shape", ctypes.POINTER(ctypes.c_int64)), ("strides", ctypes.POINTER(ctypes.c_int64)),
                ("offset", ctypes.c_uint64)]


def _is_bf16(value):
    return str(getattr(value, "dtype", "")) in ("torch.bfloat16", "bfloat16")


def _bits_of_bf16(value):
    """The bits of a bf16 tensor as u16; NumPy has no such type, so its capsule is read here."""
    get = ctypes.pythonapi.PyCapsule_GetPointer
    get.restype, get.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
    capsule = value.contiguous().__dlpack__() if hasattr(value, "contiguous") else value.__dlpack__()
    t = _DLTensor.from_address(get(capsule, b"dltensor"))
    shape = tuple(t.shape[i] for i in range(t.ndim))
    count = int(np.prod(shape, dtype=np.int64))
    memory = (ctypes.c_uint16 * count).from_address(t.data + t.offset)
    memory._owner = (capsule, value)  # the capsule frees it
    return np.frombuffer(memory, np.uint16).reshape(shape)


def array_of(value, dtype=None):
    """(array, dtype name) of anything array-like; contiguous, and not copied if it is already so.

    dtype converts, where the type differs. Lists and Python numbers become f32, i32 or bool.
    """
    if hasattr(value, "_array"):  # one of ours
        array, name = value._array, value.dtype
    elif isinstance(value, (list, tuple, int, float)):
        array = np.asarray([v.numpy() if hasattr(v, "numpy") else v for v in value]
                           if isinstance(value, (list, tuple)) else value)
        name = {"f": "f32", "i": "i32", "u": "i32", "b": "bool"}.get(array.dtype.kind)
        if name is None:
            raise TypeError(f"{type(value).__name__} of {array.dtype} is not an array of numbers")
        array = array.astype(NUMPY[name])
    elif isinstance(value, np.ndarray) or isinstance(value, np.generic):
        array = np.asarray(value)
        name = None
    elif hasattr(value, "__dlpack__"):
        if hasattr(value, "__dlpack_device__"):
            kind = int(value.__dlpack_device__()[0])
            if kind not in (CPU, CUDA_HOST):
                raise ValueError(
                    "the tensor is on a GPU; data comes from host memory, and Tutti copies it to its "
                    "devices: pass x.cpu()")
        value = value.detach() if hasattr(value, "detach") else value
        if _is_bf16(value):
            array, name = _bits_of_bf16(value), "bf16"
        else:
            array, name = np.from_dlpack(value), None
    elif hasattr(value, "__array__"):
        array, name = np.asarray(value), None
    else:
        raise TypeError(f"a {type(value).__name__} is not an array: pass a NumPy array, a tensor with "
                        "__dlpack__, or a list of numbers")
    if name is None:
        if array.dtype.kind in "iu" and array.dtype.name not in NUMPY.values():
            array = array.astype("int64" if array.dtype.itemsize > 2 else "int32")
        name = next((n for n in DTYPES if NUMPY[n] == array.dtype.name), None)
        if name == "bf16" or name is None:
            raise TypeError(f"arrays of {array.dtype} have no element type here; convert them first, "
                            "for example with x.astype('float32')")
    if dtype is not None and name != dtype_of(dtype):
        if "bf16" in (name, dtype_of(dtype)):
            raise TypeError(f"an array of {name} is not converted to {dtype_of(dtype)}; use ops.cast()")
        array, name = array.astype(NUMPY[dtype_of(dtype)]), dtype_of(dtype)
    return np.ascontiguousarray(array) if array.ndim else array.copy(), name


def capsule_of(array, name):
    """The array as a DLPack capsule; the memory is shared."""
    if name == "bf16":
        raise BufferError("NumPy cannot export bf16; take .numpy(), which has its bits as uint16")
    return array.__dlpack__()
