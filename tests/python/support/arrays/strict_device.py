"""A strict device array: a stand-in, over host memory, for CuPy's arrays.

It accepts what CuPy's accept and refuses what CuPy's refuse: it takes part in NumPy's dispatch
(``__array_ufunc__`` and ``__array_function__``) with the functions, parameters and loops that CuPy has, raises
``TypeError`` where an array would be converted implicitly or meets a host array, and its device records each explicit
copy of elements to the host. It computes with a private NumPy array.

It is stricter than CuPy in one respect: CuPy copies a host array or a list that is used as an index, or assigned to
elements, to its device without a word. Here that is a ``TypeError``, too.

Longer than 300 lines: the attributes, operators and rules of one class.

Source: ``cupy/_core/core.pyx``, ``_kernel.pyx`` and ``_routines_indexing.pyx`` of CuPy 14.2.0;
``cupy_names.json``, which ``record_cupy_names.py`` writes.
"""

import ctypes
import functools
import json
import math
from collections.abc import Callable, Iterator
from contextvars import ContextVar
from pathlib import Path
from typing import Any, Final

import numpy as np

from allotment._core import OutOfMemoryError, Pool
from allotment.arrays.cupy import TOO_BIG
from support.arrays import device_dlpack

#: The pool that the arrays of a call are in.
_pool: Final[ContextVar[Pool | None]] = ContextVar("strict_device_pool", default=None)

#: Whether the errors of a call know the shape: those of the library's own methods do.
_has_shape: Final = ContextVar("strict_device_has_shape", default=False)

_NAMES: Final = json.loads(Path(__file__).with_name("cupy_names.json").read_text())
#: The version of CuPy that the names are of.
CUPY_VERSION: Final[str] = _NAMES["version"]
_FUNCTIONS: Final[dict[str, list[str] | None]] = _NAMES["functions"]
_UFUNCS: Final[dict[str, list[str] | None]] = _NAMES["ufuncs"]
_METHODS: Final = frozenset(_NAMES["methods"])

#: Functions that exist to copy from the host.
_CONVERTERS: Final = frozenset({"array", "asarray", "asanyarray", "ascontiguousarray"})
#: ``cupy.ufunc.reduce`` and ``accumulate`` are written for these only, ``reduceat`` for the first one.
_REDUCING: Final = ("add", "multiply")
#: ``cupy.ufunc.at`` is written for these only.
_SCATTERING: Final = frozenset(
    {"add", "subtract", "maximum", "minimum", "bitwise_and", "bitwise_or", "bitwise_xor"}
)
#: Functions of which NumPy's returns a Python number, and CuPy's an array.
_TESTS: Final = frozenset({"allclose", "array_equal", "array_equiv"})
_UFUNC_OPTIONS: Final = frozenset({"out", "dtype", "casting"})
#: The element types of ``cupy.ufunc.at``, by the name of the ufunc.
_SCATTERED_TYPES: Final = {
    "add": "ilqILQefd",
    "subtract": "iIL",
    "maximum": "ilqILQfd",
    "minimum": "ilqILQfd",
}
_SCALARS: Final = (bool, int, float, complex, np.generic)


class StrictDevice:
    """A device that strict arrays are on.

    Args:
        number: Its number, as in ``cupy.cuda.Device``.
    """

    def __init__(self, number: int = 0) -> None:
        self.id = number
        #: What copied elements to the host, in order: ``"item"``, ``"bool"``, ``"get"``, ...
        self.reads: list[str] = []

    def __repr__(self) -> str:
        return f"<Strict Device {self.id}>"

    def put(self, array: Any) -> "StrictDeviceArray":
        """Copy a host array to the device.

        Raises:
            ValueError: Its elements are of a type that no GPU has.
        """
        return StrictDeviceArray(self, _in_pool(np.array(array, order="C")), None)


def _in_pool(array: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """Return an array in the pool of the call, if there is one: a copy, unless it is there."""
    owner = array
    while isinstance(owner.base, np.ndarray):
        owner = owner.base
    if _pool.get() is None or owner.base is not None:
        return array
    columns = array.flags.f_contiguous and not array.flags.c_contiguous
    made = _allocated(array.shape[::-1], array.dtype).T if columns else _allocated(array.shape, array.dtype)
    made[...] = array
    return made


def _allocated(shape: tuple[int, ...], dtype: Any) -> np.ndarray[Any, Any]:
    """Return an array in the pool of the call, if there is one; its elements are not set.

    Raises:
        MemoryError: The pool refuses: as CuPy's allocator does, with the pool's error as its cause.
    """
    pool, dtype = _pool.get(), np.dtype(dtype)
    if pool is None:
        return np.empty(shape, dtype)
    nbytes = math.prod(shape) * dtype.itemsize
    if nbytes > np.iinfo(np.intp).max:
        raise ValueError(TOO_BIG)
    try:
        # As CuPy's allocator: a whole granule for an array without elements.
        allocation = pool.allocate(max(nbytes, 1))
    except OutOfMemoryError as error:
        failed = error.with_traceback(None)
    else:
        memory: Any = (ctypes.c_char * max(nbytes, 1)).from_address(allocation.address or 0)
        # It lives as long as an array over the memory does.
        memory.allocation = allocation
        return np.ndarray(shape, dtype, memory)
    refusal: Any = MemoryError(f"Out of memory allocating {nbytes:,} bytes")
    if _has_shape.get():
        refusal.shape, refusal.dtype = shape, dtype
    raise refusal from failed


class _Flags:
    """The flags of an array that CuPy knows."""

    def __init__(self, array: np.ndarray[Any, Any], owns: bool) -> None:
        self.c_contiguous = array.flags.c_contiguous
        self.f_contiguous = array.flags.f_contiguous
        self.owndata = owns


def _refuse_host(value: Any) -> None:
    """Raise for a host array, in CuPy's words, in nested sequences as well."""
    if isinstance(value, np.ndarray):
        raise TypeError(f"Unsupported type {type(value)}")
    if isinstance(value, list | tuple):
        for each in value:
            _refuse_host(each)


def _devices(value: Any) -> Iterator[StrictDevice]:
    if isinstance(value, StrictDeviceArray):
        yield value.device
    elif isinstance(value, list | tuple):
        for each in value:
            yield from _devices(each)


def _device_of(*values: Any) -> StrictDevice:
    found = list(_devices(values))
    if any(each is not found[0] for each in found):
        raise ValueError(f"arrays of several devices: {found}")
    return found[0]


def _inside(value: Any) -> Any:
    """Return the private arrays of strict ones, in nested sequences as well."""
    if isinstance(value, StrictDeviceArray):
        return value._inner
    if isinstance(value, list | tuple):
        inner = [_inside(each) for each in value]
        return type(value)(*inner) if hasattr(value, "_fields") else type(value)(inner)
    return value


def _index(key: Any) -> Any:
    """Return an index for the private array."""
    for each in key if type(key) is tuple else (key,):
        if not (
            each is None
            or each is Ellipsis
            or isinstance(each, StrictDeviceArray | int | np.integer)
            or (
                isinstance(each, slice)
                and not any(isinstance(at, StrictDeviceArray) for at in (each.start, each.stop))
            )
        ):
            raise TypeError(f"an index of type {type(each)} is copied to the device without a word")
    return _inside(key)


def _check_distinct(array: np.ndarray[Any, Any], index: Any) -> None:
    """Raise if an index names an element twice: CuPy leaves open which of two values stays."""
    if any(isinstance(each, np.ndarray) for each in (index if type(index) is tuple else (index,))):
        named = np.arange(array.size).reshape(array.shape)[index]
        if len(np.unique(named)) < named.size:
            raise ValueError("two values for one element: which one stays is not defined on a GPU")


class StrictDeviceArray:
    """An array on a ``StrictDevice``; ``StrictDevice.put`` and functions of other arrays make it."""

    __slots__ = ("__weakref__", "_inner", "base", "device")
    __array_priority__ = 100
    __hash__ = None  # type: ignore[assignment]

    def __init__(self, device: StrictDevice, inner: np.ndarray[Any, Any], base: Any) -> None:
        if inner.dtype.kind not in "biufc":
            raise ValueError(f"Unsupported dtype {inner.dtype}")
        self.device = device
        self._inner = inner
        #: The array whose memory this one shares, or ``None``.
        self.base = base

    def _wrap(self, value: Any) -> Any:
        return _wrapped(self.device, value, self)

    # Dispatch

    def __array__(self, *arguments: Any, **options: Any) -> Any:
        raise TypeError(
            "Implicit conversion to a NumPy array is not allowed. "
            "Please use `.get()` to construct a NumPy array explicitly."
        )

    def __array_ufunc__(self, ufunc: np.ufunc, method: str, *inputs: Any, **options: Any) -> Any:
        name = ufunc.__name__
        if name not in _UFUNCS:
            return NotImplemented
        out = options.get("out", ())
        if any(not isinstance(each, (StrictDeviceArray, np.ndarray, *_SCALARS)) for each in (*inputs, *out)):
            return NotImplemented
        _refuse_host((*inputs, *out))
        device = _device_of(*inputs, *out)
        if method == "__call__":
            if not options.keys() <= _UFUNC_OPTIONS or len(out) > 1:
                raise TypeError(f"Wrong arguments {options}")
            made = self._call(ufunc, _UFUNCS[name], inputs, options)
        else:
            _check_method(name, method)
            if method == "at" and inputs[0].dtype.char not in _SCATTERED_TYPES.get(name, "ilqILQ"):
                raise TypeError(f"cupy.{name}.at does not support {inputs[0].dtype}")
            made = getattr(ufunc, method)(
                *_inside(inputs), **{key: _inside(each) for key, each in options.items()}
            )
        return out[0] if out else _wrapped(device, made, None)

    def _call(self, ufunc: np.ufunc, loops: list[str] | None, inputs: Any, options: dict[str, Any]) -> Any:
        given = {key: _inside(each) for key, each in options.items()}
        made = ufunc(*_inside(inputs), **given)
        if (
            loops is None
            or given
            or ufunc.nout > 1
            or not all(isinstance(each, StrictDeviceArray) for each in inputs)
        ):
            return made
        types = [each.dtype for each in inputs]
        for loop in loops:
            takes, gives = loop.split("->")
            if all(np.can_cast(each, letter, "safe") for each, letter in zip(types, takes, strict=True)):
                return made.astype(gives) if made.dtype != gives else made
        raise TypeError(f"Wrong type ({types}) of arguments for {ufunc.__name__}")

    def __array_function__(self, func: Callable[..., Any], types: Any, args: Any, kwargs: Any) -> Any:
        name = ".".join((*func.__module__.split(".")[1:], func.__name__))
        if name not in _FUNCTIONS:
            return NotImplemented
        if any(not issubclass(each, StrictDeviceArray | np.ndarray) for each in types):
            return NotImplemented
        _check_parameters(name, _FUNCTIONS[name], args, kwargs)
        if func.__name__ not in _CONVERTERS:
            _refuse_host((*args, *kwargs.values()))
        made = func(*_inside(args), **{key: _inside(each) for key, each in kwargs.items()})
        if name == "diagonal":
            # NumPy's view cannot be written to, and CuPy's can.
            made.flags.writeable = True
        return self._wrap(np.asarray(made) if name in _TESTS else made)

    # Layout

    @property
    def shape(self) -> Any:
        return self._inner.shape

    @shape.setter
    def shape(self, shape: tuple[int, ...]) -> None:
        self._inner.shape = shape

    @property
    def dtype(self) -> Any:
        return self._inner.dtype

    @property
    def ndim(self) -> int:
        return self._inner.ndim

    @property
    def size(self) -> int:
        return self._inner.size

    @property
    def itemsize(self) -> int:
        return self._inner.itemsize

    @property
    def nbytes(self) -> int:
        return self._inner.nbytes

    @property
    def strides(self) -> tuple[int, ...]:
        return self._inner.strides

    @property
    def flags(self) -> _Flags:
        return _Flags(self._inner, self.base is None)

    @property
    def T(self) -> Any:  # noqa: N802 - NumPy's name
        return self._wrap(self._inner.T)

    @property
    def mT(self) -> Any:  # noqa: N802 - NumPy's name
        return self._wrap(self._inner.mT)

    @property
    def real(self) -> Any:
        return self._wrap(self._inner.real)

    @real.setter
    def real(self, value: Any) -> None:
        _refuse_host(value)
        self._inner.real = _inside(value)

    @property
    def imag(self) -> Any:
        return self._wrap(self._inner.imag)

    @imag.setter
    def imag(self, value: Any) -> None:
        _refuse_host(value)
        self._inner.imag = _inside(value)

    # Elements

    def __dlpack__(self, **_options: Any) -> Any:
        return device_dlpack.to_capsule(self._inner, self.device.id)

    def __dlpack_device__(self) -> tuple[int, int]:
        return device_dlpack.CUDA, self.device.id

    @property
    def __cuda_array_interface__(self) -> dict[str, Any]:
        return {**self._inner.__array_interface__, "version": 3, "stream": 1}

    def __len__(self) -> int:
        return len(self._inner)

    def __iter__(self) -> Iterator[Any]:
        return (self[index] for index in range(len(self)))

    def __getitem__(self, key: Any) -> Any:
        return self._wrap(self._inner[_index(key)])

    def __setitem__(self, key: Any, value: Any) -> None:
        if not isinstance(value, (StrictDeviceArray, *_SCALARS)):
            raise TypeError(f"a value of type {type(value)} is copied to the device without a word")
        index = _index(key)
        if isinstance(value, StrictDeviceArray) and value.ndim:
            _check_distinct(self._inner, index)
        self._inner[index] = _inside(value)

    def _read(self, how: str) -> Any:
        self.device.reads.append(how)
        return self._inner

    def get(self) -> np.ndarray[Any, Any]:
        return np.array(self._read("get"), order="C")

    def item(self) -> Any:
        return self._read("item").item()

    def tolist(self) -> Any:
        return self._read("tolist").tolist()

    def tobytes(self) -> bytes:
        return bytes(self._read("tobytes").tobytes())

    def __bool__(self) -> bool:
        return bool(self._read("bool"))

    def __int__(self) -> int:
        return int(self._read("int"))

    def __float__(self) -> float:
        return float(self._read("float"))

    def __complex__(self) -> complex:
        return complex(self._read("complex"))

    def __getattr__(self, name: str) -> Any:
        """Return a method of NumPy's arrays, if CuPy's have it."""
        if name not in _METHODS:
            raise AttributeError(f"'cupy.ndarray' object has no attribute {name!r}")
        method = getattr(self._inner, name)

        def call(*args: Any, **kwargs: Any) -> Any:
            _refuse_host((*args, *kwargs.values()))
            out = kwargs.get("out")
            made = method(*_inside(args), **{key: _inside(each) for key, each in kwargs.items()})
            return out if out is not None else self._wrap(made)

        return call


def _check_parameters(name: str, parameters: list[str] | None, args: Any, kwargs: Any) -> None:
    """Raise ``TypeError`` for arguments that a function of CuPy does not have."""
    if parameters is None:
        return
    stars = [each for each in parameters if each.startswith("*")]
    unknown = {} if any(each.startswith("**") for each in stars) else kwargs.keys() - set(parameters)
    variadic = any(not each.startswith("**") for each in stars)
    if unknown or (len(args) > len(parameters) and not variadic):
        raise TypeError(f"{name}() got an unexpected argument: {unknown or args[len(parameters) :]}")


def _check_method(name: str, method: str) -> None:
    """Raise what CuPy raises for a method of a ufunc that is not written."""
    has = {
        "outer": True,
        "at": name in _SCATTERING,
        "reduce": name in _REDUCING,
        "accumulate": name in _REDUCING,
        "reduceat": name == _REDUCING[0],
    }
    if not has[method]:
        raise NotImplementedError(f"`cupy_{name}.{method}` is not supported yet")


def _wrapped(device: StrictDevice, value: Any, source: StrictDeviceArray | None) -> Any:
    """Return a result with strict arrays for NumPy's arrays and scalars, in sequences as well."""
    if isinstance(value, np.generic):
        return StrictDeviceArray(device, _in_pool(np.asarray(value)), None)
    if isinstance(value, np.ndarray):
        base = None if value.base is None else value.base if source is None else source
        return StrictDeviceArray(device, _in_pool(value), base)
    if isinstance(value, list | tuple):
        wrapped = [_wrapped(device, each, source) for each in value]
        return type(value)(*wrapped) if hasattr(value, "_fields") else type(value)(wrapped)
    return value


def _operator(ufunc: np.ufunc) -> Callable[[Any, Any], Any]:
    return lambda self, other: ufunc(self, other)


def _reflected(ufunc: np.ufunc) -> Callable[[Any, Any], Any]:
    return lambda self, other: ufunc(other, self)


def _in_place(ufunc: np.ufunc) -> Callable[[Any, Any], Any]:
    return lambda self, other: ufunc(self, other, out=self)


def _alone(ufunc: np.ufunc) -> Callable[[Any], Any]:
    return lambda self: ufunc(self)


_OPERATORS: Final = {
    "add": np.add,
    "sub": np.subtract,
    "mul": np.multiply,
    "truediv": np.true_divide,
    "floordiv": np.floor_divide,
    "mod": np.remainder,
    "pow": np.power,
    "and": np.bitwise_and,
    "or": np.bitwise_or,
    "xor": np.bitwise_xor,
    "lshift": np.left_shift,
    "rshift": np.right_shift,
    "matmul": np.matmul,
}
_COMPARISONS: Final = {
    "eq": np.equal,
    "ne": np.not_equal,
    "lt": np.less,
    "le": np.less_equal,
    "gt": np.greater,
    "ge": np.greater_equal,
}
for _name, _ufunc in _OPERATORS.items():
    setattr(StrictDeviceArray, f"__{_name}__", _operator(_ufunc))
    setattr(StrictDeviceArray, f"__r{_name}__", _reflected(_ufunc))
    setattr(StrictDeviceArray, f"__i{_name}__", _in_place(_ufunc))
for _name, _ufunc in _COMPARISONS.items():
    setattr(StrictDeviceArray, f"__{_name}__", _operator(_ufunc))
for _name, _one in {"neg": np.negative, "pos": np.positive, "abs": np.absolute, "invert": np.invert}.items():
    setattr(StrictDeviceArray, f"__{_name}__", _alone(_one))


@functools.cache
def strict_device(number: int) -> StrictDevice:
    """Return the process's device of a number: logical devices of one GPU share it."""
    return StrictDevice(number)


class StrictLibrary:
    """The array library of a strict device (``ArrayLibrary``); its private arrays are in the pool, if there is one.

    The addresses of the pool are of host memory: those of the stand-in driver are.
    """

    name = "strict"
    fault = None

    def __init__(self, device: StrictDevice, pool: Pool | None = None) -> None:
        self.device = device
        self._memory = pool

    def owns(self, value: Any) -> bool:
        return isinstance(value, StrictDeviceArray)

    def call(self, function: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Any:
        former = _pool.set(self._memory)
        try:
            return function(*args, **kwargs)
        finally:
            _pool.reset(former)

    def empty(self, shape: tuple[int, ...], dtype: Any) -> StrictDeviceArray:
        return StrictDeviceArray(self.device, self._with_shape(_allocated, shape, dtype), None)

    def zeros(self, shape: tuple[int, ...], dtype: Any) -> StrictDeviceArray:
        return self.full(shape, 0, dtype)

    def full(self, shape: tuple[int, ...], value: Any, dtype: Any) -> StrictDeviceArray:
        made = self.empty(shape, dtype)
        here = isinstance(value, StrictDeviceArray) and value.device is self.device
        made[...] = value if here else getattr(value, "item", lambda: value)()
        return made

    def from_host(self, array: Any) -> StrictDeviceArray:
        if not isinstance(array, np.ndarray):
            raise TypeError(f"not an array of the host: {type(array)}")
        made: StrictDeviceArray = self._with_shape(self.device.put, array)
        return made

    def _with_shape(self, function: Callable[..., Any], *args: Any) -> Any:
        former = _has_shape.set(True)
        try:
            return self.call(function, *args)
        finally:
            _has_shape.reset(former)

    def to_host(self, array: Any) -> np.ndarray[Any, Any]:
        return array.get()  # type: ignore[no-any-return]

    def from_dlpack(self, value: Any) -> StrictDeviceArray:
        return StrictDeviceArray(self.device, device_dlpack.from_object(value, self.device.id), value)

    def copy(self, array: Any) -> StrictDeviceArray:
        return self.from_host(array._inner)


__all__ = ["CUPY_VERSION", "StrictDevice", "StrictDeviceArray", "StrictLibrary", "strict_device"]
