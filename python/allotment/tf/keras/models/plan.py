"""The calls of a functional model in execution order, found by walking back from its outputs."""

from collections import defaultdict
from collections.abc import Sequence
from typing import Any

from allotment.tf import nest
from allotment.tf.keras.engine.calls import calls
from allotment.tf.keras.engine.symbolic import KerasTensor, Node, RecordedLayer


class _Call:
    """One call of a layer, with the positions of its inputs and outputs among the values of the model."""

    __slots__ = ("drops", "layer", "node", "outputs", "single", "takes")

    def __init__(self, node: Node, places: dict[int, int]) -> None:
        self.layer = node.layer
        self.node = node
        self.takes = {id(tensor): places[id(tensor)] for tensor in node.inputs}
        self.outputs = [places[id(tensor)] for tensor in nest.flatten(node.outputs)]
        args, kwargs = node.arguments
        #: The position of the only argument, if it is one tensor.
        self.single = (
            places[id(args[0])] if len(args) == 1 and args[0] in node.inputs and not kwargs else None
        )
        #: The positions of values that no later call takes.
        self.drops: list[int] = []

    def run(self, values: list[Any]) -> None:
        """Call the layer with values, and drop the values that no later call takes."""
        if self.single is not None:
            made = self.layer(values[self.single])
        else:
            args, kwargs = self.node.arguments_with(lambda tensor: values[self.takes[id(tensor)]])
            if "training" in kwargs and calls.training is not None:
                # As in Keras, the model's argument comes before that of the call that was recorded.
                kwargs["training"] = calls.training
            made = self.layer(*args, **kwargs)
        if len(self.outputs) == 1 and not nest.is_nested(made):
            values[self.outputs[0]] = made
        else:
            for place, value in zip(self.outputs, nest.flatten(made), strict=True):
                values[place] = value
        for place in self.drops:
            values[place] = None


class Plan:
    """The calls that compute some symbolic tensors from others.

    Args:
        inputs: The tensors whose values are given.
        outputs: The tensors to compute.

    Raises:
        ValueError: An output does not depend on inputs alone.
    """

    def __init__(self, inputs: Sequence[KerasTensor], outputs: Sequence[KerasTensor]) -> None:
        known = {id(tensor) for tensor in inputs}
        nodes = _nodes_before(outputs, known)
        ordered = _by_depth(nodes, known)
        tensors = [*inputs, *(tensor for node in ordered for tensor in nest.flatten(node.outputs))]
        places = {id(tensor): place for place, tensor in enumerate(tensors)}
        self._size = len(tensors)
        self._wanted = [places[id(tensor)] for tensor in outputs]
        self._calls = [_Call(node, places) for node in ordered]
        last = {place: call for call in self._calls for place in call.takes.values()}
        for place, call in last.items():
            if place not in self._wanted:
                call.drops.append(place)
        #: The layers of the inputs and of the calls, in the order of the calls.
        starts = [tensor.node.layer for tensor in inputs if tensor.node is not None]
        self.layers: list[RecordedLayer] = list(dict.fromkeys([*starts, *(node.layer for node in ordered)]))
        self.nodes = frozenset({*ordered, *(tensor.node for tensor in inputs if tensor.node is not None)})

    def run(self, inputs: Sequence[Any]) -> list[Any]:
        """Compute the outputs' values from those of the inputs."""
        values = [*inputs, *[None] * (self._size - len(inputs))]
        del inputs
        for call in self._calls:
            call.run(values)
        return [values[place] for place in self._wanted]


def _nodes_before(outputs: Sequence[KerasTensor], known: set[int]) -> list[Node]:
    """Return the calls that outputs depend on, in topological order."""
    done: dict[Node, None] = {}
    # An explicit stack: a model may be deeper than Python's recursion limit.
    waiting: list[tuple[KerasTensor, bool]] = [(tensor, False) for tensor in reversed(outputs)]
    while waiting:
        tensor, is_ready = waiting.pop()
        node = tensor.node
        if id(tensor) in known or node in done:
            continue
        if node is None or not node.inputs:
            raise ValueError(f"Output with name `{tensor.name}` is not connected to `inputs`")
        if is_ready:
            done[node] = None
        else:
            waiting.append((tensor, True))
            waiting.extend((each, False) for each in reversed(node.inputs))
    return list(done)


def _by_depth(nodes: Sequence[Node], known: set[int]) -> list[Node]:
    """Sort calls as Keras does, which is the order of layers and weights: the farthest from the outputs first."""
    depth: dict[Node, int] = defaultdict(int)
    deepest: dict[RecordedLayer, int] = defaultdict(int)
    for node in reversed(nodes):
        deepest[node.layer] = depth[node] = max(depth[node], deepest[node.layer])
        for tensor in node.inputs:
            if id(tensor) not in known and tensor.node is not None:
                depth[tensor.node] = max(depth[tensor.node], depth[node] + 1)
    return sorted(nodes, key=lambda node: -depth[node])


__all__ = ["Plan"]
