"""How upper floors hook into placement: each thread's state, in which graphs, tapes and strategies register.

A thread's operations run on devices until a floor above registers something in ``thread.state``:

- a *graph* (``DefaultGraph``), which records operations instead; device scopes are then the graph's own;
- a *recorder*, which is told of each operation that ran;
- a *strategy*, which says how variables are made.

Placement calls graphs alone, through their protocol. Of a recorder it only knows whether there is one, and of a
strategy nothing: the floors that call them know their types, and see the same ``thread`` as one of those types.
"""

import threading
import weakref
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import Final, Generic, Protocol, TypeVar

from allotment.devices.context import LogicalDeviceRuntime as Device
from allotment.devices.context import context
from allotment.devices.memory_runner import MemoryRunner, runner_of
from allotment.devices.placement import Placement
from allotment.devices.requested_device import NO_REQUEST, RequestedDevice

_context: Final = context()


class DefaultGraph(Protocol):
    """A graph that records a thread's operations, as placement sees it."""

    @property
    def _placement(self) -> Placement:
        """Stands in for a placement: its ``home`` is ``None``, so that no operation takes the fast path."""

    def device(self, device_name: object, /) -> AbstractContextManager[object]:
        """Request a device for the operations recorded in a ``with`` block."""


GraphT = TypeVar("GraphT", bound=DefaultGraph)
RecorderT = TypeVar("RecorderT")
StrategyT = TypeVar("StrategyT")


class ThreadState(Generic[GraphT, RecorderT, StrategyT]):
    """The state of one thread that placement, graphs, tapes and strategies use."""

    __slots__ = (
        "__weakref__",
        "_other_placements",
        "eager",
        "graph",
        "in_function",
        "placement",
        "placements",
        "recorder",
        "request",
        "runners",
        "strategy",
    )

    def __init__(self, graph: GraphT | None = None) -> None:
        #: The device that the thread's scope requests.
        self.request = NO_REQUEST
        #: The graph that records operations, instead of running them.
        self.graph = graph
        #: The placement of that request; ``None`` while a graph records, and until the next operation asks.
        self.placement: Placement | None = None
        self.placements: dict[RequestedDevice, Placement] = {}
        #: Is told of each operation that ran.
        self.recorder: RecorderT | None = None
        #: Whether functions that record elsewhere, as those of ``allotment.tf.v1``, run: in functions of data sets.
        self.eager = False
        #: Whether the thread runs a function that TensorFlow records as a graph, such as one of ``tf.function``.
        self.in_function = False
        #: Says how variables are made.
        self.strategy: StrategyT | None = None
        #: The memory runners of this thread, by device.
        self.runners: dict[Device, MemoryRunner] = {}
        #: The placements made with a recorder while there is none, and those made without while there is one.
        self._other_placements: dict[RequestedDevice, Placement] = {}
        _states.add(self)  # type: ignore[arg-type]

    def set_graph(self, graph: GraphT | None) -> None:
        """Record operations in a graph from now on; ``None`` runs them."""
        self.graph, self.placement = graph, None

    def set_recorder(self, recorder: RecorderT | None) -> None:
        """Pass operations to a recorder from now on, or to none for ``None``. A thread has one recorder."""
        if recorder is not self.recorder:
            self.placements, self._other_placements = self._other_placements, self.placements
            self.recorder, self.placement = recorder, None

    def forget_devices(self) -> None:
        """Drop all references to devices; the next operation makes them again."""
        self.placement = None
        self.placements.clear()
        self._other_placements.clear()
        self.runners.clear()


#: The states of all threads.
_states: "weakref.WeakSet[ThreadState[DefaultGraph, object, object]]" = weakref.WeakSet()

#: The graph that new threads start with; not ``None`` once eager execution is off.
_initial_graph: DefaultGraph | None = None


class Thread(threading.local, Generic[GraphT, RecorderT, StrategyT]):
    """Finds the state of the calling thread with a single lookup of a thread-local value, which is slow."""

    def __init__(self) -> None:
        self.state: ThreadState[GraphT, RecorderT, StrategyT] = ThreadState(_initial_graph)  # type: ignore[arg-type]

    @contextmanager
    def with_state(self, state: ThreadState[GraphT, RecorderT, StrategyT]) -> Iterator[None]:
        """Give the thread another state in a ``with`` block, which may run inside of an operation."""
        outer, self.state = self.state, state
        try:
            yield
        finally:
            self.state = outer


thread: Final = Thread[DefaultGraph, object, object]()


def set_initial_graph(graph: DefaultGraph | None) -> DefaultGraph | None:
    """Let threads that start later record in a graph, or run operations for ``None``. Returns the graph before."""
    global _initial_graph
    before, _initial_graph = _initial_graph, graph
    return before


@contextmanager
def new_state() -> Iterator[None]:
    """Give this thread the state of a new one in a ``with`` block, and start new threads as if the process were new.

    At the end all threads drop their references to devices: idle threads must not keep the memory of devices that
    end.
    """
    graph = set_initial_graph(None)
    try:
        with thread.with_state(ThreadState()):
            yield
    finally:
        set_initial_graph(graph)
        for state in _all_states():
            state.forget_devices()


def _all_states() -> "list[ThreadState[DefaultGraph, object, object]]":
    while True:
        try:
            return list(_states)
        except RuntimeError:
            # A thread started meanwhile, and the set has changed.
            continue


def current_placement() -> Placement:
    """Return the placement of this thread's scope, or the stand-in of its graph.

    Raises:
        OpError: The process's devices cannot be made.
    """
    state = thread.state
    placement = state.placement
    if placement is not None and placement.version == _context.flags_version:
        return placement
    if state.graph is not None:
        return state.graph._placement
    placement = state.placements.get(state.request)
    if placement is None or placement.version != _context.flags_version:
        placement = state.placements[state.request] = Placement(
            state.request.name, state.runners, recorded=state.recorder is not None
        )
    state.placement = placement
    return placement


def memory_runner(device: Device) -> MemoryRunner:
    """Return this thread's memory runner of a device, which may be one that only a session has."""
    return runner_of(thread.state.runners, device)
