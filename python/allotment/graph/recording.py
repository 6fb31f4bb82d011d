"""What operations meet instead of a placement while a graph is the default: they are recorded as nodes."""

import itertools
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final, NoReturn

import numpy as np

from allotment.dtypes import BY_NUMPY, DType
from allotment.dtypes import bool as bool_
from allotment.graph.inference import Output, infer
from allotment.graph.node import SymbolicTensor
from allotment.graph.runtime_shapes import Lengths, as_lengths, expected_shape, with_lengths
from allotment.graph.sources import SHARED, Fixed, Shared, Start
from allotment.ops import faults
from allotment.ops.convert import to_array
from allotment.ops.table import Host, dims, operation
from allotment.ops.table import Operation as Row
from allotment.ops.type_checks import type_problem
from allotment.tensor import EagerTensor
from allotment.tensor_shape import TensorShape

if TYPE_CHECKING:
    from allotment.graph.graph import Graph

CONST: Final = operation("Const", lambda value: value, host=Host.NEVER)

#: How many outputs these have can only be told from their inputs.
_MANY_OUTPUTS: Final = frozenset(
    {"Split", "SplitV", "Unpack", "ShapeN", "DynamicPartition", "TopKV2", "UniqueV2"}
)

#: How many guesses at unknown lengths are made before shapes are left to the session.
_TRIES: Final = 1000


class Recording:
    """The stand-in of ``Placement`` in a graph. Nothing runs, so nothing is placed and no home is a tensor's."""

    #: No flags' version: it is never taken for up to date, and asked for each time.
    version = -1
    home = None
    logging = False
    policy = "silent"

    def __init__(self, graph: "Graph") -> None:
        self.graph = graph
        #: What constants are called that are made of operands.
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
        # What else a placement has is asked for values, which a graph does not have.
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
    ) -> SymbolicTensor:
        """Add a constant; of fewer values than the shape has, the last one fills the rest.

        Raises:
            TensorsInsideError: A sequence of tensors.
            TypeError: More values than the shape has.
        """
        array = to_array(value, dtype)
        if shape is not None:
            array = _shaped(array, shape)
        name = name or self._operands.get(id(value)) or "Const"
        output = (BY_NUMPY[array.dtype], TensorShape(array.shape))
        return self.graph.add(CONST, (), [output], (_frozen(array),), name=name)._outputs[0]

    def source(self, op: str, seed: int | None) -> Start | Shared:
        """Where a node starts to draw random numbers, by the seeds of the graph and of the operation."""
        graph = self.graph
        if seed is not None:
            return Start("seeds", op, "none" if graph.seed is None else graph.seed, seed)
        if graph.seed is None:
            return SHARED
        graph._unseeded += 1
        return Start("graph", op, graph.seed, graph._unseeded)

    def fixed_source(self, numbers: Sequence[int]) -> Fixed:
        """Where a stateless operation starts to draw in every run."""
        return Fixed("stateless", *numbers)

    def lengths(self, shape: Any) -> Any:
        """A shape that is an input of an operation: numbers where they are known, else what is known when it runs."""
        return as_lengths(shape)

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
        _check_types(row, inputs)
        inputs, args, function_row = _runtime_arguments(row, inputs, args)
        outputs = self._outputs(row, inputs, args, kwargs)
        node = self.graph.add(function_row, inputs, outputs, args, kwargs, name=name)
        if row.effect_only:
            return node
        return node._outputs if len(outputs) > 1 or _is_tuple(row, outputs) else node._outputs[0]

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

    def _outputs(
        self, row: Row, inputs: Sequence[Any], args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> list[Output]:
        if row.effect_only:
            return []
        lengths = next((each for each in args if isinstance(each, Lengths)), None)
        if lengths is not None:
            return [(expected_type(row, inputs, args), expected_shape(row, lengths))]
        made = infer(row, inputs, args, kwargs)
        if made is not None:
            return made
        if row.fault is not None:
            _refuse(row, inputs, args, kwargs)
        if row.name in _MANY_OUTPUTS:
            raise ValueError(
                f"how many tensors {row.name} makes must be known when the graph is built, and the shape of "
                f"{inputs[0]!r} does not tell. Give placeholders a full shape, or use `set_shape`."
            )
        asked = (
            args[0]
            if args and type(args[0]) is tuple and all(type(each) is int for each in args[0])
            else None
        )
        return [(expected_type(row, inputs, args), expected_shape(row, Lengths(None, asked)))]


def expected_type(row: Row, inputs: Sequence[Any], args: tuple[Any, ...]) -> DType:
    """The element type of an output that could not be tried."""
    asked = next((each for each in args if isinstance(each, DType)), None)
    # Conditions do not say what they choose from.
    given = next((each._dtype for each in inputs if each._dtype is not bool_), bool_)
    return row.result or asked or given


def _runtime_arguments(
    row: Row, inputs: Sequence[Any], args: tuple[Any, ...]
) -> tuple[tuple[Any, ...], tuple[Any, ...], Row]:
    """Make inputs of the lengths among the arguments that are known only when the operation runs."""
    lengths = [each for each in args if isinstance(each, Lengths)]
    if not lengths:
        return tuple(inputs), args, row
    return (*inputs, lengths[0].tensor), args, with_lengths(row, len(inputs), args)


def _is_tuple(row: Row, outputs: list[Output]) -> bool:
    return row.name in _MANY_OUTPUTS and len(outputs) == 1


def _check_types(row: Row, inputs: Sequence[Any]) -> None:
    if not inputs:
        return
    problem = type_problem(row, [tensor._dtype for tensor in inputs])
    if problem is None or problem.kind == "no kernel":
        return  # A session that runs the node refuses it.
    raise faults.of_types_in_graph(row.name, problem)


def _refuse(row: Row, inputs: Sequence[Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
    """Raise what is wrong with shapes, as far as they are known; what depends on values is left to the session."""
    assert row.fault is not None
    try:
        fault = row.fault(*[each._array for each in inputs], *args, **kwargs)
    except (TypeError, ValueError, AttributeError, IndexError):
        # It asked for more than is known.
        return
    if fault is not None and _is_of_shapes(row, inputs, args, kwargs):
        raise ValueError(f"{fault} for '{row.name}' with input shapes: {_told(inputs)}.")


def _is_of_shapes(row: Row, inputs: Sequence[Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> bool:
    """Whether other values of the same shapes would not go together either."""
    assert row.fault is not None
    if any(each._shape.rank is None for each in inputs):
        return True
    shapes = [each._shape.as_list() for each in inputs]
    lengths = {1, *(dim for shape in shapes for dim in shape if dim is not None)}
    unknown = sum(shape.count(None) for shape in shapes)
    if len(lengths) ** unknown > _TRIES:
        return False
    # A length that is not known may be any: one, or one of the others.
    for guessed in itertools.product(lengths, repeat=unknown):
        guess = iter(guessed)
        try:
            ones = [
                np.broadcast_to(
                    np.ones((), each._dtype.numpy), [next(guess) if dim is None else dim for dim in shape]
                )
                for each, shape in zip(inputs, shapes, strict=True)
            ]
            if row.fault(*ones, *args, **kwargs) is None:
                return False
        except (TypeError, ValueError, AttributeError, IndexError):
            continue
    return True


def _told(inputs: Sequence[Any]) -> str:
    return ", ".join(dims(each._array) if each._shape.rank is not None else "<unknown>" for each in inputs)


def _shaped(array: np.ndarray[Any, Any], shape: tuple[int, ...]) -> np.ndarray[Any, Any]:
    count = int(np.prod(shape, dtype=np.int64))
    if array.size == count:
        return array.reshape(shape)
    if array.size > count or array.size == 0:
        raise TypeError(
            f"a constant of {array.size} values cannot have the shape {list(shape)}, which has {count}. Give as many "
            "values as the shape has, or one."
        )
    flat = array.reshape(-1)
    return np.concatenate([flat, np.full(count - array.size, flat[-1], array.dtype)]).reshape(shape)


def _frozen(array: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    array = np.asarray(array)
    array.flags.writeable = False
    return array


__all__ = ["CONST", "Recording", "expected_type"]
