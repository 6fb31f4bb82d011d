"""The base of data sets: how to start over their elements, and their types, shapes and number."""

from collections.abc import Callable, Iterator
from functools import reduce
from typing import Any

from allotment.tf.data import cardinality as counts
from allotment.tf.data.iterators import OwnedIterator
from allotment.tf.data.options import Options
from allotment.tf.data.structure import arrays_of, on_host
from allotment.tf.dispatch import thread
from allotment.tf.ops.convert import to_tensor
from allotment.tf.tensors.dtype import int64
from allotment.tf.tensors.tensor import EagerTensor


class ElementSource:
    """A sequence of elements that can be iterated over again and again.

    Args:
        kind: TensorFlow's name of the class, for ``repr``.
        start: Starts from the first element.
        spec: Finds types and shapes of the elements.
        count: The number of elements; see ``cardinality``.
        *inputs: The data sets that the elements are made of.
    """

    def __init__(
        self,
        kind: str,
        start: Callable[[], Iterator[Any]],
        spec: Callable[[], Any],
        count: int,
        *inputs: "ElementSource",
    ) -> None:
        self._kind, self._start, self._spec, self._count = kind, start, spec, count
        given = [each._options for each in inputs if each._options is not None]
        #: The merged options of the inputs.
        self._options: Options | None = reduce(Options.merge, given) if given else None
        #: The tensors of a graph that the elements are made of.
        self._captured: tuple[Any, ...] = tuple(
            dict.fromkeys(tensor for each in inputs for tensor in each._captured)
        )
        #: Whether its iterators are made in the default graph, as in ``allotment.tf.v1``.
        self._records: bool = any(each._records for each in inputs)

    @property
    def element_spec(self) -> Any:
        """Types and shapes of the elements, ``None`` for lengths that differ.

        For results of a function of the program, they are found by a call in a graph; if the function does not run in
        a graph, by making the first element.
        """
        return self._spec()

    def options(self) -> Options:
        """Return the options, which cannot be changed; ``with_options`` makes a data set with others."""
        return (self._options or Options())._frozen()

    def cardinality(self, name: str | None = None) -> EagerTensor:
        """Return the number of elements, or ``INFINITE_CARDINALITY`` or ``UNKNOWN_CARDINALITY``."""
        with on_host():
            return to_tensor(self._count, like=int64)

    def as_numpy_iterator(self) -> Iterator[Any]:
        """Iterate over the elements as NumPy arrays and scalars."""
        return map(arrays_of, self._start())

    def __iter__(self) -> OwnedIterator:
        if thread.state.graph is not None:
            raise RuntimeError(
                "`tf.data.Dataset` only supports Python-style iteration in eager mode or within tf.function. In a "
                "graph use tf.compat.v1.data.make_one_shot_iterator(dataset)."
            )
        return OwnedIterator(self._start(), self._spec)

    def __len__(self) -> int:
        if self._count == counts.INFINITE:
            raise TypeError("The dataset is infinite.")
        if self._count == counts.UNKNOWN:
            raise TypeError("The dataset length is unknown.")
        return self._count

    def __bool__(self) -> bool:
        return True

    def __repr__(self) -> str:
        return f"<{self._kind} element_spec={self.element_spec}>"


__all__ = ["ElementSource"]
