"""Makes the errors of operations, with TensorFlow's texts."""

from collections.abc import Sequence
from typing import Final

from allotment import errors
from allotment._core import ArrayMemory, OutOfMemoryError, format_size
from allotment.devices.context import LogicalDeviceRuntime as Device
from allotment.devices.context import context
from allotment.tf.dispatch import thread
from allotment.tf.ops.types.type_checks import TypeProblem
from allotment.tf.tensors.dtype import BY_NUMPY, DType

#: Texts of NumPy's ``ValueError`` for arrays that no address space holds.
_TOO_LARGE: Final = ("array is too big", "iterator is too large", "Maximum allowed dimension exceeded")

#: Names of floating-point types in error texts.
ERROR_NAMES: Final = {"float16": "half", "float32": "float", "float64": "double"}

#: The largest request that a pool counts.
_LARGEST: Final = (1 << 63) - 256


def tail(op: str, name: str | None) -> str:
    """Return the end of the text of an operation's error."""
    return f" [Op:{op}] name: {name or ''}"


class Unimplemented(str):
    """The text of a fault: TensorFlow's kernel does not implement these inputs."""

    __slots__ = ()


class Unprepared(str):
    """The text of a fault: TensorFlow's kernel reports these inputs as a failed precondition."""

    __slots__ = ()


class OutOfRange(str):
    """The text of a fault: indices out of range, where TensorFlow's kernel has an error of its own for them."""

    __slots__ = ()


KernelErrorClass = (
    type[errors.InvalidArgumentError]
    | type[errors.UnimplementedError]
    | type[errors.FailedPreconditionError]
    | type[errors.OutOfRangeError]
)

_CLASSES: Final[dict[type, KernelErrorClass]] = {
    Unimplemented: errors.UnimplementedError,
    Unprepared: errors.FailedPreconditionError,
    OutOfRange: errors.OutOfRangeError,
}


def class_of(text: str) -> KernelErrorClass:
    """Return the class of error for the text of a fault."""
    return _CLASSES.get(type(text), errors.InvalidArgumentError)


def invalid(op: str, device: Device, text: str, name: str | None) -> errors.OpError:
    """Make the error of a kernel that refuses its inputs."""
    return class_of(text)(None, None, f"{_head(op, device)}{text}{tail(op, name)}")


def mismatched(op: str, index: int, wanted: DType, found: DType, name: str | None) -> Exception:
    """Make the error of an input whose element type is not that of the first; in a graph no node can be made."""
    if thread.state.graph is not None:
        return TypeError(
            f"Input {index} of '{op}' Op has type {found.name} that does not match type {wanted.name}."
        )
    return errors.InvalidArgumentError(
        None,
        None,
        f"cannot compute {op} as input #{index}(zero-based) was expected to be a {wanted.error_name} tensor but is "
        f"a {found.error_name} tensor{tail(op, name)}",
    )


def of_types(op: str, problem: TypeProblem, name: str | None, *, pinned: bool = False) -> Exception:
    """Make the error of element types that an operation does not compute with."""
    found = problem.found
    if problem.wanted is not None:
        return mismatched(op, problem.index, problem.wanted, found, name)
    if problem.kind == "not allowed":
        allowed = ", ".join(ERROR_NAMES.get(each, each) for each in problem.allowed)
        text = f"Value for attr '{problem.attribute}' of {found.error_name} is not in the list of allowed values: "
        return errors.InvalidArgumentError(None, None, text + allowed + tail(op, name))
    text = f"{no_kernel(op, op, problem)}{tail(op, name)}"
    if pinned:
        return errors.InvalidArgumentError(None, None, f"No OpKernel was registered to support Op {text}")
    return errors.NotFoundError(None, None, f"Could not find device for node: {text}")


def of_types_in_graph(op: str, problem: TypeProblem) -> TypeError:
    """Make the error of element types for which no node can be made."""
    found, argument = problem.found.name, problem.input_name
    if problem.wanted is None:
        allowed = ", ".join(problem.allowed)
        return TypeError(
            f"Value passed to parameter '{argument}' has DataType {found} not in list of allowed values: {allowed}"
        )
    given_by = f"type {problem.wanted.name} of argument '{problem.wanted_by}'"
    wanted = f"expected type of {problem.wanted.name}" if problem.wanted_by is None else given_by
    return TypeError(f"Input '{argument}' of '{op}' Op has type {found} that does not match {wanted}.")


def below_minimum(op: str, attribute: str, value: int, minimum: int, name: str | None) -> Exception:
    """Make the error of an attribute that is too small; in a graph of one for which no node can be made."""
    if thread.state.graph is not None:
        return ValueError(f"Attr '{attribute}' of '{op}' Op passed {value} less than minimum {minimum}.")
    text = f"Value for attr '{attribute}' of {value} must be at least minimum {minimum}{tail(op, name)}"
    return errors.InvalidArgumentError(None, None, text)


def not_listed(op: str, attribute: str, text: str, allowed: Sequence[str], name: str | None) -> Exception:
    """Make the error of a text that is none of an attribute's; in a graph of one for which no node can be made."""
    listed = ", ".join(f'"{each}"' for each in allowed)
    if thread.state.graph is not None:
        return ValueError(f"Attr '{attribute}' of '{op}' Op passed string '{text}' not in: {listed}.")
    words = f"Value for attr '{attribute}' of \"{text}\" is not in the list of allowed values: {listed}{tail(op, name)}"
    return errors.InvalidArgumentError(None, None, words)


def no_kernel(op: str, node: str, problem: TypeProblem) -> str:
    """Return the text about a node without a kernel, with the registered kernels."""
    return (
        f"{{{{node {node}}}}} = {op}[{problem.attribute}={_enum_name(problem.found.name)}]\n"
        f"All kernels registered for op {op}:\n  device='CPU'; {problem.attribute} in "
        f"[{', '.join(map(_enum_name, problem.allowed))}]\n"
    )


def _enum_name(dtype: str) -> str:
    return f"DT_{ERROR_NAMES.get(dtype, dtype).upper()}"


def elsewhere(index: int, home: Device, actual: Device, device: Device) -> str:
    """Return the text about an input that is not on the device that the kernel needs."""
    return (
        f"input #{index} was expected to be on {home.name} but is actually on {actual.name} "
        f"(operation running on {device.name})"
    )


def conflicting(op: str, where: str, name: str | None) -> errors.InvalidArgumentError:
    """Make the error of a copy that the device policy forbids."""
    return errors.InvalidArgumentError(
        None,
        None,
        f"Tensors on conflicting devices: cannot compute {op} as {where} Tensors can be copied explicitly using: "
        "`with tf.device(device_name): x = tf.identity(x)` or transparently copied by using "
        "tf.config.experimental.set_device_policy('silent'). Copying tensors between devices may slow down your "
        f"model{tail(op, name)}",
    )


def is_beyond_memory(error: ValueError) -> bool:
    """Whether an error of NumPy's means that no address space holds an array, so that it asked for no memory."""
    return any(words in str(error) for words in _TOO_LARGE)


def exhausted(
    op: str, device: Device, home: Device, name: str | None, error: MemoryError | ValueError
) -> BaseException:
    """Make the error of a device whose memory does not hold a result.

    TensorFlow's line comes first, then the report of the pool that refused. What else a pool raises, as in a
    forked child, is passed on as it is.
    """
    # A variable that changed too late, such as that of owner tags, may be why the report is not what was expected.
    context().state()
    if isinstance(error, ValueError):
        return _beyond_memory(op, device, home, name)
    # CuPy's allocator raises from the pool's refusal, NumPy's cannot.
    cause = error.__cause__
    refusal = cause if isinstance(cause, OutOfMemoryError) else ArrayMemory.take_refusal()
    if refusal is not None and not isinstance(refusal, MemoryError):
        return refusal
    shape: Sequence[int] | None = getattr(error, "shape", None)
    if shape is None and isinstance(refusal, OutOfMemoryError):
        # Only NumPy's error knows which array it could not make.
        what = f"{refusal.requested} bytes"
    else:
        dtype = BY_NUMPY.get(getattr(error, "dtype", None))  # type: ignore[arg-type]
        dims = ",".join(map(str, shape or ()))
        what = f"tensor with shape[{dims}] and type {dtype.error_name if dtype else 'unknown'}"
    return errors.ResourceExhaustedError.of_pool(
        _line(op, device, home, name, what), refusal, _memory_of(home)
    )


def _beyond_memory(op: str, device: Device, home: Device, name: str | None) -> BaseException:
    """Make the error of a result too large to request, with the pool's report on the largest request it counts."""
    refusal: BaseException | None = None
    if home.pool is not None:
        try:
            home.pool.malloc(_LARGEST)
        except (MemoryError, RuntimeError) as refused:
            refusal = refused.with_traceback(None)
    what = f"tensor of more than {_LARGEST} bytes"
    return errors.ResourceExhaustedError.of_pool(
        _line(op, device, home, name, what), refusal, _memory_of(home)
    )


def _memory_of(device: Device) -> str:
    """Return the line of a report with the memory of a GPU, of which a limit may leave a part."""
    gpu = device.physical.gpu
    if gpu is None:
        return ""
    return f"  {'device has':<14} {format_size(gpu.memory):>12}  {gpu.memory} bytes, {device.physical.device.name}"


def _line(op: str, device: Device, home: Device, name: str | None, what: str) -> str:
    allocator = "cpu" if home.pool is None else home.pool.name
    return f"{_head(op, device)}OOM when allocating {what} on {home.name} by allocator {allocator}{tail(op, name)}"


def _head(op: str, device: Device) -> str:
    """Return the start of TensorFlow's error texts for an operation on a device."""
    return f"{{{{function_node __wrapped__{op}_device_{device.name}}}}} "
