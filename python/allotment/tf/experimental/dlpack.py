"""``tf.experimental.dlpack``: tensors in DLPack capsules of the form without versions, and tensors from them.

A library that knows DLPack's Python protocol takes a tensor itself: ``np.from_dlpack(tensor)``,
``cupy.from_dlpack(tensor)``, ``torch.from_dlpack(tensor)``.

Tensors on real GPUs were tested with a stand-in for CuPy's arrays. It has not run on a GPU yet.
"""

import ctypes
from typing import TYPE_CHECKING, Any, Final

from allotment.arrays.numpy import NUMPY
from allotment.devices.context import context
from allotment.errors import InvalidArgumentError
from allotment.tf.names.missing_names import refuse_other_names
from allotment.tf.tensors.dtype import as_dtype
from allotment.tf.tensors.tensor import EagerTensor, tensor_of

if TYPE_CHECKING:
    from allotment.devices.logical import LogicalDeviceRuntime

_NAME: Final = b"dltensor"
#: DLPack's types of devices.
_CPU: Final = 1
_CUDA: Final = 2


def to_dlpack(tf_tensor: Any) -> Any:
    """Return a capsule with a tensor, for a library that takes capsules: it can be taken once.

    The tensor's memory on a GPU is shared: the library must not write there. In host memory the capsule has a copy.

    Raises:
        InvalidArgumentError: The argument is not an eager tensor, or DLPack has no such type of elements.
    """
    if not isinstance(tf_tensor, EagerTensor):
        raise InvalidArgumentError(
            None, None, "The argument to `to_dlpack` must be a TF tensor, not Python object"
        )
    try:
        return tf_tensor.__dlpack__()
    except BufferError as error:
        reason = str(error)
    raise InvalidArgumentError(None, None, f"{tf_tensor.dtype.name} is not supported by dlpack: {reason}")


def from_dlpack(dlcapsule: Any) -> EagerTensor:
    """Return a tensor over the memory of another library, from its capsule. The library must not write there any more.

    Raises:
        TypeError: The argument is not a capsule.
        InvalidArgumentError: The capsule was taken before, is of another form, or has elements or strides that tensors
            cannot have; or no logical device is on the memory's device.
    """
    if type(dlcapsule).__name__ != "PyCapsule":
        raise TypeError(
            f"from_dlpack takes a capsule, such as array.__dlpack__(), not {type(dlcapsule).__name__}"
        )
    capsule = _Capsule(dlcapsule)
    device = _device_of(capsule)
    try:
        array = (device.library or NUMPY).from_dlpack(capsule)
        dtype = as_dtype(array.dtype)
    except (BufferError, RuntimeError, TypeError) as error:
        reason = str(error)
    else:
        if array.flags.c_contiguous:
            return tensor_of(array, dtype, device, device)
        reason = "Invalid strides array from DLPack"
    raise InvalidArgumentError(None, None, reason)


class _Capsule:
    """A capsule as an object of DLPack's Python protocol."""

    def __init__(self, capsule: Any) -> None:
        api = ctypes.pythonapi
        api.PyCapsule_GetName.restype = ctypes.c_char_p
        api.PyCapsule_GetName.argtypes = (ctypes.py_object,)
        api.PyCapsule_GetPointer.restype = ctypes.c_void_p
        api.PyCapsule_GetPointer.argtypes = (ctypes.py_object, ctypes.c_char_p)
        name = api.PyCapsule_GetName(capsule)
        if name != _NAME:
            got = "one without a name" if name is None else name.decode(errors="replace")
            raise InvalidArgumentError(
                None,
                None,
                f'DLPack tensor must be a capsule with name "dltensor", got "{got}". Note that a DLPack tensor may be '
                "consumed at most once.",
            )
        start = api.PyCapsule_GetPointer(capsule, _NAME)
        assert start is not None
        self._capsule = capsule
        # Behind the address of the elements: type and index of the device.
        kind, index = (ctypes.c_int32 * 2).from_address(start + ctypes.sizeof(ctypes.c_void_p))
        self._device = int(kind), int(index)

    def __dlpack__(self, **_options: Any) -> Any:
        return self._capsule

    def __dlpack_device__(self) -> tuple[int, int]:
        return self._device


def _device_of(capsule: _Capsule) -> "LogicalDeviceRuntime":
    kind, index = capsule.__dlpack_device__()
    for device in context().ready().devices:
        if kind == _CPU and device.kind == "CPU":
            return device
        gpu = device.physical.gpu
        if kind == _CUDA and gpu is not None and device.library is not None and gpu.hardware_index == index:
            return device
    raise InvalidArgumentError(
        None,
        None,
        f"the memory is on DLPack's device ({kind}, {index}), and no logical device is on it: (1, 0) is the host, "
        f"({_CUDA}, n) CUDA device n",
    )


__all__ = ["from_dlpack", "to_dlpack"]

refuse_other_names(__name__)
