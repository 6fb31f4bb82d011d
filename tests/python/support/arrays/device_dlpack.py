"""DLPack capsules of CUDA devices over host memory: NumPy's, with another device written into them."""

import ctypes
from typing import Any

import numpy as np

CPU = 1
CUDA = 2


def _write_device(capsule: Any, kind: int, index: int) -> None:
    get = ctypes.pythonapi.PyCapsule_GetPointer
    get.restype, get.argtypes = ctypes.c_void_p, (ctypes.py_object, ctypes.c_char_p)
    start = get(capsule, b"dltensor")
    assert start is not None
    device = (ctypes.c_int32 * 2).from_address(start + 8)
    device[0], device[1] = kind, index


def to_capsule(array: np.ndarray[Any, Any], index: int) -> Any:
    """Return a capsule of a CUDA device."""
    capsule = array.__dlpack__()
    _write_device(capsule, CUDA, index)
    return capsule


def from_object(value: Any, index: int) -> np.ndarray[Any, Any]:
    """Take the capsule of an object whose memory is on a CUDA device."""
    assert value.__dlpack_device__() == (CUDA, index)
    capsule = value.__dlpack__(stream=None)
    _write_device(capsule, CPU, 0)

    class OnHost:
        def __dlpack__(self, **_: Any) -> Any:
            return capsule

        def __dlpack_device__(self) -> tuple[int, int]:
            return CPU, 0

    return np.from_dlpack(OnHost())


__all__ = ["CUDA", "from_object", "to_capsule"]
