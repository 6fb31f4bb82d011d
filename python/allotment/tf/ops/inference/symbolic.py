"""Protocols of the tensors and operations of graphs, as far as shape inference reads them."""

from collections.abc import Sequence
from typing import Any, NamedTuple, Protocol

import numpy.typing as npt

from allotment.tf.ops.table import Operation as Row
from allotment.tf.tensors.dtype import DType
from allotment.tf.tensors.tensor_shape import TensorShape


class Known(NamedTuple):
    """The known part of a value."""

    #: The elements; those that are not known are 1.
    array: npt.NDArray[Any]
    #: Which elements are known, ``None`` for all.
    mask: npt.NDArray[Any] | None


class GraphOfTensor(Protocol):
    """A graph, which counts how often the known shape of one of its tensors changed."""

    @property
    def _shapes_version(self) -> int: ...


class SymbolicOperation(Protocol):
    """An operation in a graph: a row of the operation table with its inputs and arguments."""

    @property
    def _row(self) -> Row: ...

    @property
    def _inputs(self) -> Sequence["Symbolic"]: ...

    @property
    def _args(self) -> tuple[Any, ...]: ...

    @property
    def _kwargs(self) -> dict[str, Any]: ...

    @property
    def _variable(self) -> "SymbolicOperation | None": ...


class Symbolic(Protocol):
    """A tensor in a graph: it has a type and a shape that may be known in part."""

    #: The known value, and the graph's ``_shapes_version`` it was computed for; ``None`` as version: it is final.
    _value: tuple[int | None, Known | None] | None

    @property
    def _op(self) -> SymbolicOperation: ...

    @property
    def _index(self) -> int: ...

    @property
    def _dtype(self) -> DType: ...

    @property
    def _shape(self) -> TensorShape: ...

    @property
    def graph(self) -> GraphOfTensor:
        """The graph it belongs to."""
        ...


__all__ = ["GraphOfTensor", "Known", "Symbolic", "SymbolicOperation"]
