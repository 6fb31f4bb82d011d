"""Where an operation runs: a wish, a rule to fall back on, and what exists give a device or an error.

The wish is the scope of ``device(...)``, one stack a thread. A thread keeps a ``Placement`` for the scope it is in:
everything an operation needs to know that does not change from one operation to the next.
"""

import contextvars
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from types import TracebackType
from typing import Any, ClassVar, Final

import numpy as np

from allotment import errors
from allotment._core import ArrayMemory
from allotment.devices.context import LogicalDeviceRuntime as Device
from allotment.devices.context import Ready, context
from allotment.devices.names import DeviceName, parse, parse_runtime_slashes
from allotment.devices.tags import tagged
from allotment.devices.wishes import NO_WISH, Wish, read_wish
from allotment.text import show_text

#: Kinds of device, the best first.
_KINDS: Final = ("GPU", "CPU")

#: The operation that makes values. Its placement errors do not name it.
_CONST: Final = "_EagerConst"

_context: Final = context()


class Placement:
    """What a thread's operations share while its scope and the flags stay as they are."""

    #: Nothing is recorded: operations run.
    graph: ClassVar[None] = None

    __slots__ = (
        "_inside",
        "_kernels_elsewhere",
        "_placed",
        "_ready",
        "_soft",
        "_unknown",
        "_wish",
        "compute",
        "home",
        "host",
        "logging",
        "on_host",
        "policy",
        "recorder",
        "version",
        "wish",
    )

    def __init__(
        self, wish: DeviceName | None, inside: "dict[Device, Callable[..., Any]]", recorder: Any = None
    ) -> None:
        ready = _context.ready()
        #: The flags that this plan was made under.
        self.version = _context.flags_version
        self.wish = wish
        self.logging: bool = _context.log_device_placement
        self.policy: str = _context.device_policy
        #: What is told of each operation that ran, or ``None``.
        self.recorder = recorder
        self.host = ready.devices[0]
        self._ready: Ready = ready
        self._soft: bool = _context.soft_device_placement
        #: Whether an operation without a kernel for the device that is asked for, and is there, runs elsewhere.
        self._kernels_elsewhere: bool = _context.soft_placement is not False
        #: The wish as kernels are placed by it: in the runtime's grammar ``*`` is a part that is not set.
        self._wish: DeviceName | None = None if wish is None else parse_runtime_slashes(wish.to_string())
        #: Whether values cannot be made. They go to a ``CPU:0`` by its name, and nothing stands in for it.
        self._unknown = wish is not None and _is_unknown(wish, ready)
        self._inside = inside
        self._placed: dict[tuple[str, ...], Device | None] = {}
        #: Where an operation with every kernel runs and keeps its values, if nothing about it takes a closer
        #: look: no log, no policy, no recorder, a wish that can be met. No tensor's home is ``None``.
        self.home: Device | None = None
        #: Calls a function of arrays in the memory of the first CPU.
        self.on_host: Callable[..., Any] = self.inside(self.host)
        #: Calls a function of arrays in the memory of ``home``.
        self.compute: Callable[..., Any] = self.on_host
        if not self.logging and self.policy == "silent" and recorder is None and not self._unknown:
            self.home = self._pick(_KINDS)
        if self.home is not None:
            self.compute = self.inside(self.home)

    def place(self, kinds: tuple[str, ...], op: str, name: str | None, constants: bool = False) -> Device:
        """The device of an operation that has kernels for ``kinds``, the best first.

        ``constants``: values are made for it first, which the wish may keep from being made.

        Raises:
            InvalidArgumentError: The wished device does not exist, or has no kernel, and may not be replaced; or
                the wish is no name in the runtime's grammar.
        """
        if self._unknown and (constants or op == _CONST):
            assert self.wish is not None
            raise errors.InvalidArgumentError(
                None, None, f"{show_text(self.wish.to_string())} unknown device."
            )
        if kinds not in self._placed:
            self._placed[kinds] = self._pick(kinds)
        device = self._placed[kinds]
        if device is not None:
            return device
        if constants:
            self.place(_KINDS, _CONST, None)
        raise self._refusal(kinds, op, name)

    def check(self, op: str, name: str | None) -> None:
        """Check the wish of an operation that runs where a variable is, whatever is wished.

        Raises:
            InvalidArgumentError: The wish is no name in the runtime's grammar.
        """
        if self.wish is not None and self._wish is None:
            raise self._refusal((), op, name)

    def _refusal(self, kinds: tuple[str, ...], op: str, name: str | None) -> errors.InvalidArgumentError:
        assert self.wish is not None, "without a wish there is always the CPU"
        if self._wish is None:
            # TensorFlow goes on with the attributes of the operation.
            tail = "" if op == _CONST else f" name: {name or ''}"
            return errors.InvalidArgumentError(
                None,
                None,
                f"Malformed device specification '{show_text(self.wish.to_string())}' in eager op: Name: {op}\n"
                f"Device Name: []\nDevice: []\nAttrs: {tail}",
            )
        existing = {each.kind for each in self._ready.devices}
        tail = "" if op == _CONST else f" [Op:{op}] name: {name or ''}"
        return errors.InvalidArgumentError(
            None,
            None,
            f"Could not satisfy device specification '{show_text(self._wish.to_string())}'. "
            f"enable_soft_placement={int(self._soft)}. "
            f"Supported device types [{', '.join(kind for kind in kinds if kind in existing)}]. "
            f"All available devices [{', '.join(each.name for each in self._ready.devices)}].{tail}{self._absent()}",
        )

    def _absent(self) -> str:
        """What hides GPUs, as a further line where one is wished for."""
        if self._wish is None or self._wish.kind != "GPU":
            return ""
        return f"\n{self._ready.configuration.why_gpus_are_absent()}".rstrip()

    def _pick(self, kinds: tuple[str, ...]) -> Device | None:
        """The first device of the best kind that agrees with the wish; with soft placement, of any kind and index.

        Unless soft placement was turned off, an operation that has no kernel for a device which is there gets one of
        any kind, too.
        """
        if self.wish is None:
            wishes = [DeviceName()]
        elif self._wish is None:
            return None
        elif self._soft or (self._kernels_elsewhere and self._is_there(self._wish)):
            wishes = [self._wish, replace(self._wish, kind=None, index=None)]
        else:
            wishes = [self._wish]
        for each in wishes:
            for kind in kinds:
                for device in self._ready.devices:
                    if device.kind == kind and each.matches(parse(device.name)):
                        return device
        return None

    def _is_there(self, wish: DeviceName) -> bool:
        return any(wish.matches(parse(device.name)) for device in self._ready.devices)

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


def inside_of(device: Device) -> Callable[..., Any]:
    """Return ``Placement.inside`` of a device in this thread, also of one that is a session's own."""
    inside = thread.state.inside.get(device)
    if inside is None:
        inside = thread.state.inside[device] = _inside(device)
    return inside


def _inside(device: Device) -> Callable[..., Any]:
    inner = contextvars.Context()
    # Divisions by zero and the like have a value and no warning, as in TensorFlow.
    inner.run(np.seterr, all="ignore")
    if device.pool is not None:
        inner.run(ArrayMemory(device.pool).install)
        if device.pool.owner_tags:
            return tagged(inner.run)
    return inner.run


def _is_unknown(wish: DeviceName, ready: Ready) -> bool:
    name = wish.to_string()
    return (wish.kind, wish.index) == ("CPU", 0) and all(device.name != name for device in ready.devices)


#: The graph that threads start with, once eager execution is off.
default_graph: Any = None


class _State:
    """What each thread has of its own."""

    __slots__ = (
        "eager",
        "graph",
        "inside",
        "others",
        "placement",
        "placements",
        "recorder",
        "strategy",
        "wish",
    )

    def __init__(self) -> None:
        self.wish = NO_WISH
        #: The graph that operations are recorded in, instead of run; then there is no placement.
        self.graph: Any = default_graph
        #: The placement of that wish, or ``None`` if it is still to be made.
        self.placement: Placement | None = None
        self.placements: dict[Wish, Placement] = {}
        #: What is told of each operation that ran, or ``None``.
        self.recorder: Any = None
        #: Whether names that record elsewhere, as those of ``allotment.tf.v1``, run: in functions of data sets.
        self.eager = False
        #: The placements for when there is a recorder, while there is none, and the other way around.
        self.others: dict[Wish, Placement] = {}
        self.inside: dict[Device, Callable[..., Any]] = {}
        #: What says how variables are made, while a strategy is in force.
        self.strategy: Any = None


class _Thread(threading.local):
    """Finds a thread's state with one look into what is slow to look into."""

    def __init__(self) -> None:
        self.state = _State()

    @contextmanager
    def with_state(self, state: "_State") -> Iterator[None]:
        """Let the thread have another state in a ``with`` block: what runs there may be inside of an operation."""
        outer, self.state = self.state, state
        try:
            yield
        finally:
            self.state = outer


def eager_state() -> _State:
    """Make a state in which operations run, whatever the default graph."""
    made = _State()
    made.graph = None
    return made


thread: Final = _Thread()


def current_placement() -> Placement:
    """The placement of this thread's scope, or what stands for one while a graph is the default.

    Raises:
        OpError: The process's devices cannot be made.
    """
    state = thread.state
    placement = state.placement
    if placement is not None and placement.version == _context.flags_version:
        return placement
    if state.graph is not None:
        return state.graph._recording  # type: ignore[no-any-return]
    placement = state.placements.get(state.wish)
    if placement is None or placement.version != _context.flags_version:
        placement = state.placements[state.wish] = Placement(state.wish.name, state.inside, state.recorder)
    state.placement = placement
    return placement


def record_with(recorder: Any) -> None:
    """Tell the thread's recorder of operations from now on; ``None`` tells nobody. A thread has one recorder."""
    state = thread.state
    if recorder is not state.recorder:
        state.placements, state.others = state.others, state.placements
        state.recorder, state.placement = recorder, None


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
        if _context._ready is None and thread.state.graph is None:
            _context.ready()
        self._given = device_name
        #: What it set, while it is entered, and what was set before.
        self._wish: Wish | None = None
        self._outer: Wish
        #: The same of earlier entries: a scope may be entered again inside itself.
        self._again: list[Any] | None = None

    def __enter__(self) -> None:
        state = thread.state
        if state.graph is not None:
            scope = state.graph.device(self._given)
            scope.__enter__()
            self._again = [*(self._again or ()), scope]
            return
        outer = state.wish
        given = self._given
        wish = outer.merged_with(given) if type(given) is str else read_wish(given, outer)
        if self._wish is not None:
            self._again = [*(self._again or ()), (self._outer, self._wish)]
        self._outer, self._wish = outer, wish
        state.wish = wish
        state.placement = state.placements.get(wish)

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        state = thread.state
        wish = self._wish
        if state.wish is not wish:
            if wish is None and self._again:
                # Entered while a graph was the default: the scope is the graph's.
                self._again.pop().__exit__(kind, value, trace)
                return
            if wish is None:
                # TensorFlow looks at what it entered last, and there is nothing.
                raise IndexError("list index out of range")
            raise RuntimeError("Exiting device scope without proper scope nesting")
        state.wish = outer = self._outer
        state.placement = state.placements.get(outer)
        if self._again:
            self._outer, self._wish = self._again.pop()
        else:
            self._wish = None
