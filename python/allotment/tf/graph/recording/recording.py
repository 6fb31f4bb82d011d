"""What operations meet instead of a placement while a graph is the default: they are recorded as nodes."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import Any, Final, NoReturn

import numpy as np

from allotment.devices.placement import Placement
from allotment.tf.graph.nodes.node import NodeGraph, SymbolicTensor
from allotment.tf.graph.nodes.random_sources import SHARED, Fixed, Shared, Start
from allotment.tf.graph.recording.constants import constant_array, shaped
from allotment.tf.graph.recording.numbers import numbers_of
from allotment.tf.ops.deferred import deferred_in, with_numbers
from allotment.tf.ops.execute import check_types_in_graph
from allotment.tf.ops.inference.common import stated
from allotment.tf.ops.inference.shape_functions import infer
from allotment.tf.ops.table import Host, operation
from allotment.tf.ops.table import Operation as Row
from allotment.tf.tensors.dtype import BY_NUMPY, DType
from allotment.tf.tensors.tensor import EagerTensor
from allotment.tf.tensors.tensor_shape import TensorShape

CONST: Final = operation("Const", lambda value: value, shape=stated, host=Host.NEVER)


class Recording(Placement):
    """Stands in for a placement while a graph is the default: it adds operations to the graph as nodes.

    Nothing runs, so nothing is placed, and no tensor has the home ``None``.
    """

    def __init__(self, graph: NodeGraph) -> None:
        # Without the base class's own: what else a placement has stays unset, and ``__getattr__`` refuses it.
        #: Equal to no version of the flags: no operation takes it for a placement that is up to date.
        self.version = -1
        self.home = None
        self.logging = False
        self.policy = "silent"
        self.graph = graph
        #: The names of constants that are made of operands.
        self._operands: dict[int, str] = {}

    def check(self, op: str, name: str | None) -> None:  # noqa: ARG002 - a placement's signature
        """Refuse what reads or changes an eager variable; nodes come to ``record``.

        Raises:
            RuntimeError: Always.
        """
        raise RuntimeError(
            f"{op}: a variable that was made eagerly has no place in a graph. Make the variable inside of "
            "`with graph.as_default():`, or use it outside."
        )

    def __getattr__(self, name: str) -> NoReturn:
        # Only operations on values ask for what else a placement has, and a graph has no values.
        if name.startswith("__"):
            raise AttributeError(name)
        raise RuntimeError(
            "Attempting to capture an EagerTensor without building a function. Use it outside of "
            "`with graph.as_default():`, or feed its value."
        )

    @contextmanager
    def naming(self, operands: dict[int, str]) -> Iterator[None]:
        """Call constants that are made of operands, known by their identity, by names of their own."""
        outer, self._operands = self._operands, operands
        try:
            yield
        finally:
            self._operands = outer

    def constant(
        self,
        value: Any,
        dtype: DType | None = None,
        shape: tuple[int, ...] | None = None,
        name: str | None = None,
        repeats_last: bool = False,
    ) -> SymbolicTensor:
        """Add a constant; one value fills a shape, or the last of too few.

        Raises:
            TensorsInsideError: A sequence of tensors.
            TypeError: Another number of values than the shape has, or a value of another sort than the type.
            ValueError: The last value is to fill the shape, and there are more than it has.
        """
        array = constant_array(value, dtype, shape)
        if shape is not None:
            array = shaped(array, shape, repeats_last)
        name = name or self._operands.get(id(value)) or "Const"
        output = (BY_NUMPY[array.dtype], TensorShape(array.shape))
        return self.graph.add(CONST, (), [output], (_frozen(array),), name=name)._outputs[0]

    def source(self, op: str, seed: int | None) -> Start | Shared:
        """Return the start of a node's random numbers, by the seeds of the graph and of the operation."""
        graph = self.graph
        if seed is not None:
            return Start("seeds", op, "none" if graph.seed is None else graph.seed, seed)
        if graph.seed is None:
            return SHARED
        graph._unseeded += 1
        return Start("graph", op, graph.seed, graph._unseeded)

    def fixed_source(self, numbers: Sequence[int]) -> Fixed:
        """Return the start of a stateless operation's random numbers, the same in every run."""
        return Fixed("stateless", *numbers)

    def numbers(self, value: Any, what: str = "an argument must be whole numbers") -> Any:
        """Whole numbers of an argument: a tuple where they are known, else a ``Deferred``."""
        return numbers_of(value, what)

    def record(
        self, row: Row, inputs: Sequence[Any], args: tuple[Any, ...], kwargs: dict[str, Any], name: str | None
    ) -> Any:
        """Add a node for a row of the operation table; returns its output, a tuple of several, or the node without any.

        Raises:
            RuntimeError: An input has a value: it was made eagerly.
            TypeError: Element types that the operation does not take.
            ValueError: An input of another graph, or shapes that do not go together.
        """
        self._check_graph(inputs)
        check_types_in_graph(row, inputs)
        outputs = [] if row.effect_only else infer(row, inputs, args, kwargs)
        count = len(inputs)
        row, inputs = _with_deferred(row, inputs, args, kwargs)
        node = self.graph.add(row, inputs, outputs, args, kwargs, name=name)
        node._count = count
        if row.effect_only:
            return node
        return node._outputs if len(outputs) != 1 or row.makes_tuple else node._outputs[0]

    def pair(self, function: Callable[..., Any], pair: Callable[..., Any], x: Any, y: Any, name: str) -> Any:
        """Record an operation with two operands, whose constants are called ``x`` and ``y`` inside of its name."""
        if isinstance(x, SymbolicTensor) and isinstance(y, SymbolicTensor):
            return function(x, y, name)
        with self.graph.name_scope(name) as scope, self.naming({id(x): "x", id(y): "y"}):
            x, y = pair(x, y)
            return function(x, y, scope)

    def _check_graph(self, inputs: Sequence[Any]) -> None:
        for tensor in inputs:
            if isinstance(tensor, EagerTensor):
                raise RuntimeError("Attempting to capture an EagerTensor without building a function.")
            if tensor.graph is not self.graph:
                raise ValueError(f"{tensor} must be from the same graph as the default graph.")


def _with_deferred(
    row: Row, inputs: Sequence[Any], args: tuple[Any, ...], kwargs: dict[str, Any]
) -> tuple[Row, tuple[Any, ...]]:
    """Make inputs of the numbers among the arguments that are known only when the operation runs."""
    if not args and not kwargs:
        return row, tuple(inputs)
    found = [each.tensor for argument in (*args, *kwargs.values()) for each in deferred_in(argument)]
    if not found:
        return row, tuple(inputs)
    count = len(inputs)
    fault = None if row.fault is None else with_numbers(row.fault, count, args, kwargs)
    row = replace(row, function=with_numbers(row.function, count, args, kwargs), fault=fault)
    return row, (*inputs, *found)


def _frozen(array: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    array = np.asarray(array)
    array.flags.writeable = False
    return array


__all__ = ["CONST", "Recording"]
