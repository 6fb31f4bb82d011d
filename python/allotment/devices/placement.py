"""Where an operation runs: a wish, a rule to fall back on, and what exists give a device or an error.

The wish is the scope of ``device(...)``, one stack a thread. A thread keeps a ``Placement`` for the scope it is in:
everything an operation needs to know that does not change from one operation to the next.
"""

import contextvars
import threading
from collections.abc import Callable
from dataclasses import replace
from types import TracebackType
from typing import Any, Final

import numpy as np

from allotment import errors
from allotment._core import ArrayMemory
from allotment.device_spec import DeviceSpec
from allotment.devices.context import LogicalDeviceRuntime as Device
from allotment.devices.context import Ready, context
from allotment.devices.names import DeviceName, parse
from allotment.devices.values import LogicalDevice

#: Kinds of device, the best first.
_KINDS: Final = ("GPU", "CPU")

_context: Final = context()


class Placement:
    """What a thread's operations share while its scope and the flags stay as they are."""

    __slots__ = (
        "_inside",
        "_placed",
        "_ready",
        "_soft",
        "compute",
        "home",
        "host",
        "logging",
        "policy",
        "version",
        "wish",
    )

    def __init__(self, wish: DeviceName | None, inside: "dict[Device, Callable[..., Any]]") -> None:
        ready = _context.ready()
        #: The flags that this plan was made under.
        self.version = _context.flags_version
        self.wish = wish
        self.logging: bool = _context.log_device_placement
        self.policy: str = _context.device_policy
        self.host = ready.devices[0]
        self._ready: Ready = ready
        self._soft: bool = _context.soft_device_placement
        self._inside = inside
        self._placed: dict[tuple[str, ...], Device | None] = {}
        #: Where an operation with every kernel runs and keeps its values, if nothing about it takes a closer
        #: look: no log, no policy, a wish that can be met. No tensor's home is ``None``.
        self.home: Device | None = None
        #: Calls a function of arrays in the memory of ``home``.
        self.compute: Callable[..., Any] = self.inside(self.host)
        if not self.logging and self.policy == "silent":
            self.home = _pick(_KINDS, wish, self._soft, ready)
        if self.home is not None:
            self.compute = self.inside(self.home)

    def place(self, kinds: tuple[str, ...], op: str, name: str | None) -> Device:
        """The device of an operation that has kernels for ``kinds``, the best first.

        Raises:
            InvalidArgumentError: The wished device does not exist, or has no kernel, and may not be replaced.
        """
        if kinds not in self._placed:
            self._placed[kinds] = _pick(kinds, self.wish, self._soft, self._ready)
        device = self._placed[kinds]
        if device is not None:
            return device
        assert self.wish is not None, "without a wish there is always the CPU"
        existing = {each.kind for each in self._ready.devices}
        # Constants and variables are placed without an operation's name behind the text.
        tail = "" if op in _NAMELESS else f" [Op:{op}] name: {name or ''}"
        if op in _NAMELESS and not _same_process(self.wish):
            raise errors.InvalidArgumentError(None, None, f"{self.wish.to_string()} unknown device.")
        raise errors.InvalidArgumentError(
            None,
            None,
            f"Could not satisfy device specification '{self.wish.to_string()}'. "
            f"enable_soft_placement={int(self._soft)}. "
            f"Supported device types [{', '.join(kind for kind in kinds if kind in existing)}]. "
            f"All available devices [{', '.join(each.name for each in self._ready.devices)}].{tail}",
        )

    def inside(self, device: Device) -> Callable[..., Any]:
        """A function that calls another one so that the arrays it makes are in a device's memory.

        NumPy's choice of allocator and its handling of floating-point errors belong to a context of
        ``contextvars``: each thread has one for each device, made once, and entering it is cheap. What the
        program itself has set for NumPy stays as it is.
        """
        inside = self._inside.get(device)
        if inside is None:
            inside = self._inside[device] = _inside(device)
        return inside


def _inside(device: Device) -> Callable[..., Any]:
    inner = contextvars.Context()
    # Divisions by zero and the like have a value and no warning, as in TensorFlow.
    inner.run(np.seterr, all="ignore")
    if device.pool is not None:
        inner.run(ArrayMemory(device.pool).install)
    return inner.run


#: Operations that make values: their placement errors do not name them.
_NAMELESS: Final = frozenset({"_EagerConst", "VarHandleOp"})


def _same_process(wish: DeviceName) -> bool:
    return (wish.job, wish.replica, wish.task) == ("localhost", 0, 0)


def _pick(kinds: tuple[str, ...], wish: DeviceName | None, soft: bool, ready: Ready) -> Device | None:
    """The first device of the best kind that agrees with the wish; with soft placement, of any kind and index."""
    wishes = [wish or DeviceName()]
    if soft and wish is not None:
        wishes.append(replace(wish, kind=None, index=None))
    for each in wishes:
        for kind in kinds:
            for device in ready.devices:
                if device.kind == kind and each.matches(parse(device.name)):
                    return device
    return None


class _Wish:
    """A device name in force, and what entering a scope inside of it leads to.

    There is one object for each path of scopes, so that entering a scope again is one look into a dictionary,
    and leaving it can tell by identity whether it is the innermost.
    """

    __slots__ = ("_inner", "name")

    def __init__(self, name: DeviceName | None) -> None:
        self.name = name
        self._inner: dict[str, _Wish] = {}

    def merged_with(self, text: str) -> "_Wish":
        inner = self._inner.get(text)
        if inner is None:
            name = parse(text)
            # Outside of all scopes the first device lends what the text does not say.
            outer = parse(_context.ready().devices[0].name) if self.name is None else self.name
            inner = self._inner.setdefault(text, _Wish(outer.merged_with(name)))
        return inner


#: No scope, or one of ``None``.
_NO_WISH: Final = _Wish(None)


class _State:
    """What each thread has of its own."""

    __slots__ = ("inside", "placement", "placements", "wish")

    def __init__(self) -> None:
        self.wish = _NO_WISH
        #: The placement of that wish, or ``None`` if it is still to be made.
        self.placement: Placement | None = None
        self.placements: dict[_Wish, Placement] = {}
        self.inside: dict[Device, Callable[..., Any]] = {}


class _Thread(threading.local):
    """Finds a thread's state with one look into what is slow to look into."""

    def __init__(self) -> None:
        self.state = _State()


thread: Final = _Thread()


def current_placement() -> Placement:
    """The placement of this thread's scope.

    Raises:
        OpError: The process's devices cannot be made.
    """
    state = thread.state
    placement = state.placement
    if placement is not None and placement.version == _context.flags_version:
        return placement
    placement = state.placements.get(state.wish)
    if placement is None or placement.version != _context.flags_version:
        placement = state.placements[state.wish] = Placement(state.wish.name, state.inside)
    state.placement = placement
    return placement


class device:  # noqa: N801 - the name of TensorFlow's function
    """Run the operations of a ``with`` block on a device.

    Making a scope starts the runtime; the name is read when the block is entered. Scopes nest: the inner one
    adds to, or replaces, parts of the outer one's name. ``None`` forgets all enclosing scopes. Each thread has
    scopes of its own. (Placement, section 3.)

    Args:
        device_name: A name such as ``"/GPU:0"``, a ``DeviceSpec``, a ``LogicalDevice``, or ``None``.

    Raises:
        RuntimeError: A function instead of a name.
        ValueError: On entry: not a device name; the text says what is.
    """

    __slots__ = ("_again", "_given", "_outer", "_wish")

    def __init__(self, device_name: Any) -> None:
        if type(device_name) is not str and callable(device_name):
            raise RuntimeError("tf.device does not support functions.")
        # Looked at, not asked: a scope has to cost next to nothing.
        if _context._ready is None:
            _context.ready()
        self._given = device_name
        #: What it set, while it is entered, and what was set before.
        self._wish: _Wish | None = None
        self._outer: _Wish
        #: The same of earlier entries: a scope may be entered again inside itself.
        self._again: list[tuple[_Wish, _Wish]] | None = None

    def __enter__(self) -> None:
        state = thread.state
        outer = state.wish
        given = self._given
        wish = outer.merged_with(given) if type(given) is str else _read_wish(given, outer)
        if self._wish is not None:
            self._again = [*(self._again or ()), (self._outer, self._wish)]
        self._outer, self._wish = outer, wish
        state.wish = wish
        state.placement = state.placements.get(wish)

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        state = thread.state
        outer, wish = self._outer, self._wish
        if self._again:
            self._outer, self._wish = self._again.pop()
        else:
            self._wish = None
        if state.wish is not wish:
            raise RuntimeError("Exiting device scope without proper scope nesting")
        state.wish = outer
        state.placement = state.placements.get(outer)


def _read_wish(given: Any, outer: _Wish) -> _Wish:
    if given is None:
        return _NO_WISH
    if isinstance(given, DeviceSpec):
        given = given.to_string()
    elif isinstance(given, LogicalDevice):
        given = given.name
    elif not isinstance(given, str):
        raise ValueError(f"Expecting a string device name. Got {type(given)}({given})")
    return outer.merged_with(given)
