"""``device(...)``: a ``with`` block whose operations run on a requested device."""

from contextlib import AbstractContextManager
from types import TracebackType
from typing import Final

from allotment.devices.context import context
from allotment.devices.dispatch import DefaultGraph, thread
from allotment.devices.requested_device import RequestedDevice, read_request

_context: Final = context()

#: The request of an entry that opened a scope of a graph. No thread has it, so that leaving takes the slow path.
_IN_GRAPH: Final = RequestedDevice(None)

#: One entry of a scope: the request before it, its own, and the scope of a graph that it opened.
_Entry = tuple[RequestedDevice, RequestedDevice, AbstractContextManager[object] | None]


class device:  # noqa: N801 - the name of TensorFlow's function
    """Run the operations of a ``with`` block on a device.

    Making a scope starts the runtime; entering it reads the name. Scopes nest: the inner one adds to, or replaces,
    parts of the outer one's name. ``None`` forgets all enclosing scopes. Each thread has scopes of its own.
    (Placement, section 3.)

    Args:
        device_name: A name such as ``"/GPU:0"``, a ``DeviceSpec``, a ``LogicalDevice``, or ``None``.

    Raises:
        RuntimeError: A function instead of a name.
        ValueError: On entry: not a device name; the text lists the devices.
    """

    __slots__ = ("_earlier", "_given", "_graph_scope", "_outer", "_request")

    def __init__(self, device_name: object) -> None:
        if type(device_name) is not str and callable(device_name):
            raise RuntimeError("tf.device does not support functions.")
        # The attribute and not the method: a scope has to cost next to nothing.
        if _context._ready is None and thread.state.graph is None:
            _context.ready()
        self._given = device_name
        #: The requests that the innermost entry set and replaced; ``None`` while the scope is not entered.
        self._request: RequestedDevice | None = None
        self._outer: RequestedDevice
        #: Set by an entry that opened a scope of a graph.
        self._graph_scope: AbstractContextManager[object]
        #: Earlier entries: a scope may be entered again inside of itself.
        self._earlier: list[_Entry] | None = None

    def __enter__(self) -> None:
        state = thread.state
        if state.graph is not None:
            self._enter_graph(state.graph, state.request)
            return
        outer = state.request
        given = self._given
        request = outer.merged_with(given) if type(given) is str else read_request(given, outer)
        if self._request is not None:
            self._push()
        self._outer, self._request = outer, request
        state.request = request
        state.placement = state.placements.get(request)

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        state = thread.state
        request = self._request
        if state.request is not request:
            if request is _IN_GRAPH:
                scope = self._graph_scope
                self._pop()
                scope.__exit__(kind, value, trace)
                return
            if request is None:
                # TensorFlow looks for the last entry, and there is none.
                raise IndexError("list index out of range")
            raise RuntimeError("Exiting device scope without proper scope nesting")
        state.request = outer = self._outer
        state.placement = state.placements.get(outer)
        if self._earlier:
            self._pop()
        else:
            self._request = None

    def _enter_graph(self, graph: DefaultGraph, outer: RequestedDevice) -> None:
        scope = graph.device(self._given)
        scope.__enter__()
        if self._request is not None:
            self._push()
        self._outer, self._request, self._graph_scope = outer, _IN_GRAPH, scope

    def _push(self) -> None:
        """Keep the innermost entry, to enter the scope once more."""
        assert self._request is not None
        scope = self._graph_scope if self._request is _IN_GRAPH else None
        self._earlier = [*(self._earlier or ()), (self._outer, self._request, scope)]

    def _pop(self) -> None:
        """Make the entry before the innermost one the innermost."""
        if not self._earlier:
            self._request = None
            return
        self._outer, self._request, scope = self._earlier.pop()
        if scope is not None:
            self._graph_scope = scope
