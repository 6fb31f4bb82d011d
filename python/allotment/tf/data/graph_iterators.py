"""Iterators over data sets in graphs: nodes that return the next element in each run of a session."""

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from allotment.tf.data.elements import ElementSource
from allotment.tf.data.resumable import Resumable
from allotment.tf.data.spec import common_spec
from allotment.tf.data.structure import captured, flatten, map_values, on_host, pack
from allotment.tf.dispatch import ThreadState, thread
from allotment.tf.graph.default import get_default_graph
from allotment.tf.graph.nodes.node import Operation
from allotment.tf.graph.nodes.rows import GET_NEXT, ITERATOR, MAKE_ITERATOR
from allotment.tf.names.missing_names import NotOfferedError
from allotment.tf.ops.convert import to_tensor
from allotment.tf.tensors.dtype import as_dtype
from allotment.tf.tensors.tensor import Tensor
from allotment.tf.tensors.tensor_shape import TensorShape
from allotment.tf.tensors.tensor_spec import TensorSpec

#: Starts an iteration over a data set, given the values of the tensors that it is made of.
Start = Callable[[tuple[Any, ...]], Iterator[list[Any]]]


class GraphIterator:
    """An iterator over a data set in the sessions of a graph. As ``tf.compat.v1.data.Iterator``.

    Made by ``make_one_shot_iterator``, ``make_initializable_iterator`` or ``from_structure``.
    """

    def __init__(self, spec: Any, start: Start | None = None, name: str | None = None) -> None:
        self._graph = get_default_graph()
        self._spec = spec
        self._start = start
        self._node: Operation = self._graph.add(ITERATOR, (), [], name=name)
        self._initializer: Any = None

    @staticmethod
    def from_structure(
        output_types: Any,
        output_shapes: Any = None,
        shared_name: str | None = None,
        output_classes: Any = None,
    ) -> "GraphIterator":
        """Make an iterator for several data sets; ``make_initializer`` switches to one of them.

        Args:
            output_types: The element types, in the structure of an element.
            output_shapes: The shapes, in the same structure; any shapes if not given.
            shared_name: The name of its node.
            output_classes: Has no effect.

        Raises:
            TypeError: A value of ``output_types`` is no type.
        """
        del output_classes
        if output_shapes is None:
            spec = map_values(lambda dtype: TensorSpec(None, as_dtype(dtype)), output_types)
        else:
            spec = map_values(
                lambda dtype, shape: TensorSpec(TensorShape(shape), as_dtype(dtype)),
                output_types,
                output_shapes,
            )
        return GraphIterator(spec, name=shared_name)

    @staticmethod
    def from_string_handle(*_: Any, **__: Any) -> Any:
        """Not offered.

        Raises:
            NotImplementedError: Always.
        """
        raise NotOfferedError(
            "Iterator.from_string_handle is not offered. Available: from_structure, make_initializer, get_next."
        )

    def make_initializer(self, dataset: ElementSource, name: str | None = None) -> Operation:
        """Return an operation that starts an iteration over a data set.

        Raises:
            TypeError: Not a data set, or its elements have another structure or other types.
        """
        if not isinstance(dataset, ElementSource):
            raise TypeError(f"make_initializer takes a tf.data.Dataset, not {dataset!r}")
        common_spec(self._spec, dataset.element_spec)
        with self._graph.as_default():
            return self._graph.add(
                MAKE_ITERATOR, dataset._captured, [], (self._node, _start_of(dataset)), name=name
            )

    @property
    def initializer(self) -> Operation:
        """The operation that starts the iteration.

        Raises:
            ValueError: The iterator starts without it, or is for several data sets.
        """
        if self._initializer is None:
            raise ValueError(
                "The iterator does not have an initializer. This means it was likely created using "
                "`tf.data.Dataset.make_one_shot_iterator()`. For an initializable iterator, use "
                "`tf.data.Dataset.make_initializable_iterator()` instead."
            )
        made: Operation = self._initializer
        return made

    def get_next(self, name: str | None = None) -> Any:
        """Return the tensors of the next element, which change with each run of a session.

        A run raises ``OutOfRangeError`` at the end, and ``FailedPreconditionError`` before the initializer ran.
        """
        outputs = [(spec.dtype, spec.shape) for spec in flatten(self._spec)]
        with self._graph.as_default():
            node = self._graph.add(GET_NEXT, (), outputs, (self._node, self._start), name=name)
        return pack(self._spec, node._outputs)

    @property
    def element_spec(self) -> Any:
        """Types and shapes of the elements."""
        return self._spec

    @property
    def output_types(self) -> Any:
        """The element types."""
        return map_values(lambda spec: spec.dtype, self._spec)

    @property
    def output_shapes(self) -> Any:
        """The shapes."""
        return map_values(lambda spec: spec.shape, self._spec)

    @property
    def output_classes(self) -> Any:
        """The classes of the values, which are all ``Tensor``."""
        return map_values(lambda spec: Tensor, self._spec)  # noqa: ARG005 - all alike


def make_one_shot_iterator(dataset: ElementSource) -> Any:
    """Make an iterator that needs no initializer; in eager mode a Python iterator.

    As ``tf.compat.v1.data.make_one_shot_iterator``.

    Raises:
        ValueError: The data set is made of tensors of the graph.
    """
    if thread.state.graph is None:
        return iter(dataset)
    for tensor in dataset._captured:
        raise ValueError(
            f"Cannot capture a placeholder (name:{tensor.op.name}, type:{tensor.op.type}) by value. Use "
            "make_initializable_iterator, whose initializer takes it."
        )
    return GraphIterator(dataset.element_spec, _start_of(dataset))


def make_initializable_iterator(dataset: ElementSource, shared_name: str | None = None) -> GraphIterator:
    """Make an iterator that each run of its ``initializer`` starts again.

    As ``tf.compat.v1.data.make_initializable_iterator``.

    Raises:
        RuntimeError: Eager mode.
    """
    if thread.state.graph is None:
        raise RuntimeError(
            "`make_initializable_iterator()` is not supported in eager mode. Use Python-style iteration instead."
        )
    made = GraphIterator(dataset.element_spec, name=shared_name)
    made._initializer = made.make_initializer(dataset)
    return made


def _start_of(dataset: ElementSource) -> Start:
    def start(arrays: tuple[Any, ...]) -> Iterator[list[Any]]:
        with thread.with_state(ThreadState()), on_host():
            # The program may change an array that it has fed.
            values = {
                tensor: to_tensor(np.array(array), tensor.dtype)
                for tensor, array in zip(dataset._captured, arrays, strict=True)
            }
        return _elements(dataset, values)

    return start


def _elements(dataset: ElementSource, values: dict[Any, Any]) -> Iterator[list[Any]]:
    # A session runs this inside a node.
    state = ThreadState()
    with thread.with_state(state), captured(values):
        elements = dataset._start()

    def following() -> list[Any]:
        with thread.with_state(state), captured(values):
            element = next(elements)
        return [tensor._on_host() for tensor in flatten(element)]

    return Resumable(following)


__all__ = ["GraphIterator", "make_initializable_iterator", "make_one_shot_iterator"]
