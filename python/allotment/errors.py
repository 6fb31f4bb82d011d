"""The errors of operations and devices, with TensorFlow's names and codes (placement, section 5.6).

Each is a ``RuntimeError``, unlike TensorFlow's: programs written for TensorFlow catch that class.
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
    """What an error of this package tells programs."""

    def _asdict(self) -> dict[str, Any]:
        """The message and the fields, by name."""
        return {"message": str(self), **{name: value for name, value in vars(self).items() if name[0] != "_"}}


# The compiled module makes these classes, and can give them no methods.
for _class in (OutOfMemoryError, InvalidFreeError, MemoryDamageError):
    _class._asdict = WithFields._asdict  # type: ignore[method-assign,assignment]


class OpError(WithFields, RuntimeError):
    """An operation, or the making of a device, failed.

    Args:
        node_def: Description of the node that failed, in graph mode; else ``None``.
        op: The operation that failed, in graph mode; else ``None``.
        message: What happened.
        error_code: One of the codes of this module.
        args: The first is what ``experimental_payloads`` returns.
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
        """What happened."""
        return self._message

    @property
    def op(self) -> Any:
        """The operation that failed, if it is known."""
        return self._op

    @property
    def error_code(self) -> int:
        """One of the codes of this module."""
        return self._error_code

    @property
    def node_def(self) -> Any:
        """Description of the node that failed, if it is known."""
        return self._node_def

    @property
    def experimental_payloads(self) -> Mapping[bytes, bytes]:
        """Further data about the error: what it was made with, empty in all of ours."""
        payloads: Mapping[bytes, bytes] = self._payloads
        return payloads

    def __str__(self) -> str:
        return self._message

    def _asdict(self) -> dict[str, Any]:
        """The message, the code, the operation, and the figures that the class adds, by name."""
        about = {"error_code": self.error_code, "op": self.op, "node_def": self.node_def}
        return about | super()._asdict()

    def __copy__(self) -> Self:
        copied = type(self).__new__(type(self))
        vars(copied).update(vars(self))
        return copied

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (None, None, self._message, self._error_code), self._state()

    def _state(self) -> dict[str, Any]:
        """The attributes that travel: an operation stays with its graph."""
        return {**vars(self), "_op": None}


class _CodedError(OpError):
    """An error whose class fixes its code."""

    _code: ClassVar[int]

    def __init__(self, node_def: Any, op: Any, message: str, *args: Any) -> None:
        OpError.__init__(self, node_def, op, message, self._code, *args)

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        if "_code" in cls.__dict__:
            # One function a class, so that Python's word on arguments that lack names the class.
            named = _CodedError.__init__.__code__.replace(co_qualname=f"{cls.__qualname__}.__init__")
            cls.__init__ = FunctionType(named, globals(), "__init__")  # type: ignore[method-assign]

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (None, None, self._message), self._state()


class CancelledError(_CodedError):
    """The operation was cancelled."""

    _code = CANCELLED


class UnknownError(_CodedError):
    """A failure of no other kind."""

    _code = UNKNOWN


class InvalidArgumentError(_CodedError):
    """An argument, a device name or a configuration cannot be used."""

    _code = INVALID_ARGUMENT


class DeadlineExceededError(_CodedError):
    """The operation took too long."""

    _code = DEADLINE_EXCEEDED


class NotFoundError(_CodedError):
    """Something that was asked for, such as a CPU device, does not exist."""

    _code = NOT_FOUND


class AlreadyExistsError(_CodedError):
    """Something that was to be made exists."""

    _code = ALREADY_EXISTS


class PermissionDeniedError(_CodedError):
    """The caller may not do this."""

    _code = PERMISSION_DENIED


class UnauthenticatedError(_CodedError):
    """The caller is not known."""

    _code = UNAUTHENTICATED


class ResourceExhaustedError(_CodedError, MemoryError):
    """A device's memory does not hold what was asked for.

    The figures are bytes at the moment of the refusal, as in ``allotment.OutOfMemoryError``; each is ``None``
    where no pool refused.
    """

    _code = RESOURCE_EXHAUSTED

    #: Bytes asked for.
    requested: int | None = None
    #: The most the pool may reserve.
    limit: int | None = None
    #: Bytes that the allocations held asked for.
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
    #: Allocations held.
    num_live: int | None = None
    #: ``"full"``, ``"fragmented"``, ``"slack"``, ``"limit"``, ``"source"`` or ``"scope"``.
    verdict: str | None = None
    #: What set the limit.
    limit_set_by: str | None = None
    #: The scope whose limit does not allow it, if one's does not.
    scope: str | None = None
    #: Changes that make the request succeed, the most useful first.
    advice: tuple[Advice, ...] = ()
    #: The advice in one sentence.
    suggestion: str | None = None
    #: The allocations that take most, by size.
    by_size: tuple[SizeGroup, ...] = ()
    #: The owners that hold most.
    by_owner: tuple[OwnerGroup, ...] = ()
    #: The allocation that splits the largest free chunks, if one does.
    splitter: Splitter | None = None

    @classmethod
    def of_pool(cls, message: str, refusal: BaseException | None, device: str = "") -> Self:
        """Make the error of a pool's refusal: ``message``, the pool's report, ``device``, and the pool's figures.

        ``refusal`` is an ``allotment.OutOfMemoryError``; of anything else only ``message`` is kept. ``device`` is a
        line about the device, or empty.
        """
        if not isinstance(refusal, OutOfMemoryError):
            return cls(None, None, message)
        error = cls(None, None, "\n".join(filter(None, (message, str(refusal), device))))
        vars(error).update(vars(refusal))
        return error


class FailedPreconditionError(_CodedError):
    """The system is not in the state that the operation needs."""

    _code = FAILED_PRECONDITION


class AbortedError(_CodedError):
    """The operation was given up, because of another one at the same time."""

    _code = ABORTED


class OutOfRangeError(_CodedError):
    """Past the end, as of a data set."""

    _code = OUT_OF_RANGE


class UnimplementedError(_CodedError):
    """There is no such operation here."""

    _code = UNIMPLEMENTED


class InternalError(_CodedError):
    """Something that must hold does not."""

    _code = INTERNAL


class UnavailableError(_CodedError):
    """What was asked for is not there just now."""

    _code = UNAVAILABLE


class DataLossError(_CodedError):
    """Data was lost or is damaged."""

    _code = DATA_LOSS
