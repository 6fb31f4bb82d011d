"""Exceptions of operations and devices, with TensorFlow's names and codes.

Each is a ``RuntimeError``, unlike TensorFlow's: programs written for TensorFlow catch that class.
Source: docs/spec/placement.md, section 5.6, and TensorFlow's ``tf.errors``.
"""

from collections.abc import Mapping
from types import FunctionType
from typing import Any, ClassVar, Final, Self

from allotment._core import (
    Advice,
    InvalidFreeError,
    MemoryDamageError,
    OutOfMemoryError,
    OwnerGroup,
    SizeGroup,
    Splitter,
)

OK: Final = 0
CANCELLED: Final = 1
UNKNOWN: Final = 2
INVALID_ARGUMENT: Final = 3
DEADLINE_EXCEEDED: Final = 4
NOT_FOUND: Final = 5
ALREADY_EXISTS: Final = 6
PERMISSION_DENIED: Final = 7
RESOURCE_EXHAUSTED: Final = 8
FAILED_PRECONDITION: Final = 9
ABORTED: Final = 10
OUT_OF_RANGE: Final = 11
UNIMPLEMENTED: Final = 12
INTERNAL: Final = 13
UNAVAILABLE: Final = 14
DATA_LOSS: Final = 15
UNAUTHENTICATED: Final = 16


class WithFields:
    """Mixin that gives an exception ``_asdict()``: its message and its public attributes, for programs."""

    def _asdict(self) -> dict[str, Any]:
        """Return the message and the public attributes by name."""
        return {"message": str(self), **{name: value for name, value in vars(self).items() if name[0] != "_"}}


# The compiled module creates these classes and cannot give them methods.
for _class in (OutOfMemoryError, InvalidFreeError, MemoryDamageError):
    _class._asdict = WithFields._asdict  # type: ignore[method-assign,assignment]


class OpError(WithFields, RuntimeError):
    """Base class of the exceptions that operations and device creation raise. As TensorFlow's ``tf.errors.OpError``.

    Args:
        node_def: Description of the node that failed, in graph mode; else ``None``.
        op: The operation that failed, in graph mode; else ``None``.
        message: The text of the exception.
        error_code: One of the codes of this module, such as ``INVALID_ARGUMENT``.
        args: Optionally the mapping that ``experimental_payloads`` returns.
    """

    def __init__(self, node_def: Any, op: Any, message: str, error_code: int, *args: Any) -> None:
        # Without arguments, so that repr is the class alone, as TensorFlow's is.
        super().__init__()
        self._node_def = node_def
        self._op = op
        self._message = message
        self._error_code = error_code
        self._payloads = args[0] if args else {}

    @property
    def message(self) -> str:
        """The text of the exception."""
        return self._message

    @property
    def op(self) -> Any:
        """The graph operation that failed; ``None`` in eager mode."""
        return self._op

    @property
    def error_code(self) -> int:
        """The error code: one of the constants of this module."""
        return self._error_code

    @property
    def node_def(self) -> Any:
        """Description of the graph node that failed; ``None`` in eager mode."""
        return self._node_def

    @property
    def experimental_payloads(self) -> Mapping[bytes, bytes]:
        """Further data about the error, as given to the constructor; empty in the errors that this package raises."""
        payloads: Mapping[bytes, bytes] = self._payloads
        return payloads

    def __str__(self) -> str:
        return self._message

    def _asdict(self) -> dict[str, Any]:
        """Return the message, the code, the operation and the class's own attributes by name."""
        common = {"error_code": self.error_code, "op": self.op, "node_def": self.node_def}
        return common | super()._asdict()

    def __copy__(self) -> Self:
        copied = type(self).__new__(type(self))
        vars(copied).update(vars(self))
        return copied

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (None, None, self._message, self._error_code), self._state()

    def _state(self) -> dict[str, Any]:
        """Return the attributes to pickle, without the operation, which cannot leave its graph."""
        return {**vars(self), "_op": None}


class _CodedError(OpError):
    """Base class of the exceptions whose class determines the error code."""

    _code: ClassVar[int]

    def __init__(self, node_def: Any, op: Any, message: str, *args: Any) -> None:
        OpError.__init__(self, node_def, op, message, self._code, *args)

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        if "_code" in cls.__dict__:
            # One function for each class, so that Python's TypeError about missing arguments names the class.
            named = _CodedError.__init__.__code__.replace(co_qualname=f"{cls.__qualname__}.__init__")
            cls.__init__ = FunctionType(named, globals(), "__init__")  # type: ignore[method-assign]

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (None, None, self._message), self._state()


class CancelledError(_CodedError):
    """The operation was cancelled."""

    _code = CANCELLED


class UnknownError(_CodedError):
    """The operation failed for a reason that no other class describes."""

    _code = UNKNOWN


class InvalidArgumentError(_CodedError):
    """An argument, a device name or a configuration is invalid."""

    _code = INVALID_ARGUMENT


class DeadlineExceededError(_CodedError):
    """The operation did not finish before its deadline."""

    _code = DEADLINE_EXCEEDED


class NotFoundError(_CodedError):
    """A requested entity, such as a CPU device or a file, does not exist."""

    _code = NOT_FOUND


class AlreadyExistsError(_CodedError):
    """The entity to be created exists already."""

    _code = ALREADY_EXISTS


class PermissionDeniedError(_CodedError):
    """The caller has no permission for the operation."""

    _code = PERMISSION_DENIED


class UnauthenticatedError(_CodedError):
    """The caller's identity could not be verified."""

    _code = UNAUTHENTICATED


class ResourceExhaustedError(_CodedError, MemoryError):
    """A device has not enough memory for a request.

    The attributes are the pool's figures at the moment of the refusal, in bytes unless noted, as in
    ``allotment.OutOfMemoryError``. Each is ``None`` or empty if the request failed without a pool.
    """

    _code = RESOURCE_EXHAUSTED

    #: Bytes requested.
    requested: int | None = None
    #: The most that the pool may reserve.
    limit: int | None = None
    #: Bytes requested by the live allocations.
    live_requested: int | None = None
    #: Bytes of the chunks in use.
    in_use: int | None = None
    #: ``in_use - live_requested``: bytes lost inside chunks.
    internal_fragmentation: int | None = None
    #: Bytes of all regions.
    reserved: int | None = None
    #: ``reserved - in_use``.
    free: int | None = None
    #: Size of the largest free chunk.
    largest_free: int | None = None
    #: Number of live allocations.
    num_live: int | None = None
    #: Reason of the refusal: ``"full"``, ``"fragmented"``, ``"slack"``, ``"limit"``, ``"source"`` or ``"scope"``.
    verdict: str | None = None
    #: The setting or call that determined the limit.
    limit_set_by: str | None = None
    #: Name of the scope whose limit was reached, if the verdict is ``"scope"``.
    scope: str | None = None
    #: Changes that make the request succeed, the most useful first.
    advice: tuple[Advice, ...] = ()
    #: The advice in one sentence.
    suggestion: str | None = None
    #: The live allocations that take most memory, grouped by size.
    by_size: tuple[SizeGroup, ...] = ()
    #: The owners whose live allocations take most memory.
    by_owner: tuple[OwnerGroup, ...] = ()
    #: The live allocation between the largest free chunks, if there is one.
    splitter: Splitter | None = None

    @classmethod
    def of_pool(cls, message: str, refusal: BaseException | None, device: str = "") -> Self:
        """Create the exception for a request that a pool refused, with the pool's report and figures.

        Args:
            message: First line of the text.
            refusal: The pool's ``allotment.OutOfMemoryError``. Any other exception adds nothing to ``message``.
            device: Last line of the text, about the device; left out if empty.
        """
        if not isinstance(refusal, OutOfMemoryError):
            return cls(None, None, message)
        error = cls(None, None, "\n".join(filter(None, (message, str(refusal), device))))
        vars(error).update(vars(refusal))
        return error


class FailedPreconditionError(_CodedError):
    """The system is not in the state that the operation requires."""

    _code = FAILED_PRECONDITION


class AbortedError(_CodedError):
    """The operation was aborted, typically because of a concurrent one."""

    _code = ABORTED


class OutOfRangeError(_CodedError):
    """The operation went past the end of a valid range, such as the end of a data set."""

    _code = OUT_OF_RANGE


class UnimplementedError(_CodedError):
    """The operation is not implemented."""

    _code = UNIMPLEMENTED


class InternalError(_CodedError):
    """An invariant of the system is broken."""

    _code = INTERNAL


class UnavailableError(_CodedError):
    """The service is unavailable at the moment; a retry may succeed."""

    _code = UNAVAILABLE


class DataLossError(_CodedError):
    """Data is lost or corrupted beyond recovery."""

    _code = DATA_LOSS
