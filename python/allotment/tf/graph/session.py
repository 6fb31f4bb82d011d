"""Sessions: they own devices and variables, place a graph and run parts of it.

Longer than 300 lines: one public class with its documentation.
"""

import itertools
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from types import TracebackType
from typing import Any, Final, Self, cast

from allotment import errors
from allotment.devices.context import LogicalDeviceRuntime as Device
from allotment.devices.context import context
from allotment.devices.sessions import session_devices
from allotment.devices.start_warnings import session_option_warnings
from allotment.tf.dispatch import thread
from allotment.tf.graph.default import get_default_graph
from allotment.tf.graph.graph import Graph
from allotment.tf.graph.nodes.default_session import default_sessions
from allotment.tf.graph.nodes.node import Operation, SymbolicTensor
from allotment.tf.graph.options.config_proto import ConfigProto, RunMetadata, RunOptions
from allotment.tf.graph.options.device_options import CPU_MEMORY, DeviceAttributes, options_of
from allotment.tf.graph.running import log
from allotment.tf.graph.running.execution import execute
from allotment.tf.graph.running.fetches import arranged, read_feeds, read_fetches
from allotment.tf.graph.running.ordering import needed
from allotment.tf.graph.running.placing import in_log_order, place
from allotment.tf.graph.running.program import Program, build
from allotment.tf.graph.running.state import State
from allotment.tf.graph.running.tracing import Tracer
from allotment.tf.names.absent_methods import lacks

_incarnations: Final = itertools.count(1)


def get_default_session() -> "BaseSession | None":
    """Return the innermost default session of this thread. As ``tf.compat.v1.get_default_session``."""
    stack = default_sessions()
    # Only sessions of this module add themselves.
    return cast(BaseSession, stack[-1]) if stack else None


@lacks("partial_run", "partial_run_setup")
class BaseSession:
    """The common part of both kinds of session: it places its graph and runs parts of it.

    Args:
        target: Only the empty text: there are no other processes.
        graph: The graph to run, the default graph unless given.
        config: Options; without them those of ``tf.config`` hold.

    Raises:
        TypeError: An argument of another type.
        NotFoundError: A target.
        OpError: The options ask for devices that do not exist.
    """

    def __init__(self, target: Any = "", graph: Any = None, config: Any = None) -> None:
        if graph is not None and not isinstance(graph, Graph):
            raise TypeError(f'Argument `graph` must be a tf.Graph, but got "{type(graph).__name__}"')
        if not isinstance(target, str | bytes):
            text = f'Argument `target` must be a string, but got "{type(target).__name__}".'
            if isinstance(target, ConfigProto):
                text += ' Did you do "Session(config)" instead of "Session(config=config)"?'
            raise TypeError(text)
        if target:
            raise errors.NotFoundError(
                None,
                None,
                f"No session factory registered for target {target!r}: there are no servers here. Leave it empty for "
                "the devices of this process.",
            )
        if config is not None and not isinstance(config, ConfigProto):
            raise TypeError(f'Argument `config` must be a tf.ConfigProto, but got "{type(config).__name__}"')
        self._graph: Graph = get_default_graph() if graph is None else graph
        self._config = ConfigProto()
        if config is None:
            self._soft, self._logs = context().soft_device_placement, context().log_device_placement
        else:
            self._config.CopyFrom(config)
            self._soft, self._logs = config.allow_soft_placement, config.log_device_placement
        self._devices: tuple[Device, ...] = session_devices(context(), options_of(config))
        self._incarnations = [next(_incarnations) for _ in self._devices]
        self._state = State()
        self._closed = False
        self._lock = threading.RLock()
        #: The graph's version when it was placed as a whole, and the devices of its nodes.
        self._placed_version = -1
        self._placed: dict[Operation, Device] = {}
        self._programs: dict[Any, Program] = {}
        if self._logs:
            log.mapping(self._devices)

    @property
    def graph(self) -> Graph:
        """The graph that it runs."""
        return self._graph

    @property
    def graph_def(self) -> str:
        """The nodes of the graph as text."""
        return "".join(f"node {{\n{each}}}\n" for each in self._graph.get_operations())

    @property
    def sess_str(self) -> str:
        """The target: empty."""
        return ""

    def list_devices(self) -> list[DeviceAttributes]:
        """Return the devices that nodes may be placed on.

        Raises:
            RuntimeError: The session is closed.
        """
        self._check_open()
        return [
            DeviceAttributes(
                device.name,
                device.kind,
                CPU_MEMORY if device.plan.limit is None else device.plan.limit.nbytes,
                incarnation,
            )
            for device, incarnation in zip(self._devices, self._incarnations, strict=True)
        ]

    def close(self) -> None:
        """Free the variables; the session cannot be used any more."""
        with self._lock:
            self._closed = True
            self._state.clear()
            self._programs.clear()

    def run(self, fetches: Any, feed_dict: Any = None, options: Any = None, run_metadata: Any = None) -> Any:
        """Run the nodes that fetches need and return their values in the same structure; ``None`` for operations.

        Args:
            fetches: A tensor, an operation, a name, or lists, tuples and dictionaries of them.
            feed_dict: Values instead of tensors.
            options: ``RunOptions``: ``report_tensor_allocations_upon_oom``, ``trace_level``.
            run_metadata: ``RunMetadata`` that is filled when there is a trace level.

        Raises:
            RuntimeError: The session is closed, or the graph empty.
            TypeError: Something that cannot be fetched or fed.
            ValueError: An element of another graph, or a value of the wrong shape.
            OpError: A node cannot be placed, or failed.
        """
        self._check_open()
        if self._graph.version == 0:
            raise RuntimeError(
                "The Session graph is empty. Add operations to the graph before calling run()."
            )
        if options is not None and not isinstance(options, RunOptions):
            raise TypeError(f'Argument `options` must be a tf.RunOptions, but got "{type(options).__name__}"')
        if run_metadata is not None and not isinstance(run_metadata, RunMetadata):
            raise TypeError(
                f'Argument `run_metadata` must be a tf.RunMetadata, but got "{type(run_metadata).__name__}"'
            )
        if options is not None:
            context().report_all(session_option_warnings(options.without_effect()))
        found = read_fetches(self._graph, fetches)
        feeds = read_feeds(self._graph, feed_dict)
        if not found:
            # Nothing runs, so that a graph with a node that has no kernel is no fault.
            return arranged(fetches, iter(()))
        program = self._program(found, tuple(feeds))
        traced = options is not None and options.trace_level > 0 and run_metadata is not None
        tracer = Tracer() if traced else None
        values = iter(
            execute(
                program,
                list(feeds.values()),
                report_upon_oom=options is not None and options.report_tensor_allocations_upon_oom,
                trace=tracer,
            )
        )
        if tracer is not None:
            assert run_metadata is not None
            tracer.fill(run_metadata)
        return arranged(
            fetches, (next(values) if isinstance(each, SymbolicTensor) else None for each in found)
        )

    def make_callable(self, fetches: Any, feed_list: Sequence[Any] | None = None) -> Callable[..., Any]:
        """Return a function that runs the fetches, with the values of ``feed_list`` as its arguments."""
        names = list(feed_list or ())

        def call(*args: Any, options: Any = None, run_metadata: Any = None) -> Any:
            if len(args) != len(names):
                raise TypeError(
                    f"Argument `feed_list` has {len(names)} entries, and {len(args)} values were given"
                )
            return self.run(fetches, dict(zip(names, args, strict=True)), options, run_metadata)

        return call

    @contextmanager
    def as_default(self) -> Iterator[Self]:
        """Make it the default session of a ``with`` block; it stays open."""
        stack = default_sessions()
        stack.append(self)
        try:
            yield self
        finally:
            stack.pop()

    def _check_open(self) -> None:
        if self._closed:
            raise RuntimeError("Attempted to use a closed Session.")

    def _program(
        self, found: Sequence[Operation | SymbolicTensor], fed: tuple[SymbolicTensor, ...]
    ) -> Program:
        version = self._graph.version
        key = (version, tuple(found), fed)
        program = self._programs.get(key)
        if program is not None:
            return program
        with self._lock:
            tensors = [each for each in found if isinstance(each, SymbolicTensor)]
            operations = [each for each in found if isinstance(each, Operation)]
            placed = self._place(version, tensors, operations, fed)
            if self._programs and next(iter(self._programs))[0] != version:
                self._programs.clear()
            program = build(tensors, operations, fed, placed, self._devices[0], self._state)
            self._programs[key] = program
        return program

    def _place(
        self,
        version: int,
        tensors: list[SymbolicTensor],
        operations: list[Operation],
        fed: Sequence[SymbolicTensor],
    ) -> dict[Operation, Device]:
        """Place the whole graph if it has changed; with ``place_pruned_graph`` the needed nodes only."""
        if self._config.graph_options.place_pruned_graph:
            given = set(fed)
            part = needed([each._op for each in tensors if each not in given] + operations, given)
            placed = place(part, self._devices, self._soft)
            if self._logs:
                log.nodes(in_log_order(part), placed, [tensor for tensor in tensors if tensor not in given])
            return placed
        if self._placed_version != version:
            everything = self._graph.get_operations()
            self._placed = place(everything, self._devices, self._soft)
            self._placed_version = version
            if self._logs:
                log.nodes(in_log_order(everything), self._placed)
        return self._placed


@lacks("reset")
class Session(BaseSession):
    """Runs a graph. As ``tf.compat.v1.Session``; ``with`` makes it the default and closes it at the end."""

    def __init__(self, target: Any = "", graph: Any = None, config: Any = None) -> None:
        super().__init__(target, graph, config)
        self._entered: list[Any] = []

    def __enter__(self) -> Self:
        if self._entered:
            raise RuntimeError(
                "Session context managers are not re-entrant. Use `Session.as_default()` if you want to enter a "
                "session multiple times."
            )
        self._entered = [self._graph.as_default(), self.as_default()]
        for each in self._entered:
            each.__enter__()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for each in reversed(self._entered):
            each.__exit__(None, None, None)
        self._entered = []
        self.close()


class InteractiveSession(BaseSession):
    """A session that is the default as soon as it is made, until it is closed. As TensorFlow's."""

    def __init__(self, target: Any = "", graph: Any = None, config: Any = None) -> None:
        super().__init__(target, graph, config)
        default_sessions().append(self)
        state = thread.state
        self._outer = state.graph if graph is not None else None
        self._given = graph is not None
        if self._given:
            state.set_graph(graph)

    def close(self) -> None:
        """Free the variables; it is no longer the default session."""
        super().close()
        stack = default_sessions()
        if self in stack:
            stack.remove(self)
            if self._given:
                state = thread.state
                state.set_graph(self._outer)


__all__ = ["BaseSession", "DeviceAttributes", "InteractiveSession", "Session", "get_default_session"]
