"""The boundary of functions that TensorFlow records as graphs, and that run eagerly here.

A loss of Keras looks for the logits behind probabilities: in a graph at the operation that made a tensor, and
everywhere at the logits that an activation of Keras left there. The outputs of a function are tensors of their own,
without either.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from allotment.devices.context import context
from allotment.tf.dispatch import thread
from allotment.tf.ops.array.array import identity
from allotment.tf.tensors.tensor import EagerTensor


def are_recorded() -> bool:
    """Whether functions are recorded in TensorFlow, and not set to run eagerly."""
    return not context().functions_run_eagerly


@contextmanager
def inside_function(is_recorded: bool = True) -> Iterator[None]:
    """Let the thread run a function that TensorFlow would record, or would not, in a ``with`` block."""
    state = thread.state
    before = state.in_function
    state.in_function = is_recorded
    try:
        yield
    finally:
        state.in_function = before


def across_boundary(value: Any) -> Any:
    """Return a tensor as the other side of a function's boundary sees it: without what is known of its origin."""
    knows = hasattr(value, "_keras_logits") or hasattr(value, "_activation")
    return identity(value) if knows and type(value) is EagerTensor else value


__all__ = ["across_boundary", "are_recorded", "inside_function"]
