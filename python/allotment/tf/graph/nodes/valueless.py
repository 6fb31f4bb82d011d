"""Base class of tensors of graphs: Python's questions for a value are errors."""

from collections.abc import Iterator
from typing import Any, NoReturn

from allotment.tf.dispatch import thread
from allotment.tf.errors import OperatorNotAllowedInGraphError
from allotment.tf.tensors.tensor import Tensor

#: The home of a tensor without a value: no placement has it.
_NOWHERE: Any = object()


class ValuelessTensor(Tensor):
    """A tensor that has a value only while a session runs."""

    __slots__ = ()

    @property
    def _home(self) -> Any:
        if thread.state.graph is None:
            raise TypeError(
                f"{self!r} is out of scope and cannot be used here: it is a tensor of a graph and has no value. "
                "Record with it inside `with graph.as_default():`, and let a session compute it."
            )
        return _NOWHERE

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> NoReturn:
        raise NotImplementedError(
            f"Cannot convert a symbolic tf.Tensor ({self.name}) to a numpy array. This error may indicate that you're "
            "trying to pass a Tensor to a NumPy call, which is not supported."
        )

    def __len__(self) -> NoReturn:
        raise TypeError(
            f"len is not well defined for a symbolic Tensor ({self.name}). Please call `x.shape` rather than `len(x)` "
            "for shape information."
        )

    def __bool__(self) -> NoReturn:
        raise OperatorNotAllowedInGraphError(
            "Using a symbolic `tf.Tensor` as a Python `bool` is not allowed. You can attempt the following resolutions "
            "to the problem: compute it in a session and use the value, or choose between tensors with tf.where."
        )

    def __iter__(self) -> Iterator[Any]:
        raise OperatorNotAllowedInGraphError(
            "Iterating over a symbolic `tf.Tensor` is not allowed. You can attempt the following resolutions to the "
            "problem: compute it in a session and iterate over the value, or use tf.unstack."
        )


__all__ = ["ValuelessTensor"]
