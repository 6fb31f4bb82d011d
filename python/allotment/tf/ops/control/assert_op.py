"""The operation that checks a condition. Eagerly it raises; in a graph it is a node that fails when it is run."""

from collections.abc import Sequence
from typing import Any, Final

import numpy as np

from allotment import errors
from allotment.tf.dispatch import RecordingGraph, thread
from allotment.tf.ops.array.array import get_static_value, is_tensor
from allotment.tf.ops.arrays import Array
from allotment.tf.ops.convert import to_tensor
from allotment.tf.ops.execute import run
from allotment.tf.ops.inference.common import no_outputs
from allotment.tf.ops.table import dims, operation
from allotment.tf.ops.text.printing import element, escaped, unworded
from allotment.tf.tensors.dtype import bool as bool_
from allotment.tf.tensors.dtype import int32, string

#: How many elements an error shows unless it is told.
_SHOWN: Final = 3


def failed(text: str) -> errors.InvalidArgumentError:
    """The error of a condition that is false."""
    return errors.InvalidArgumentError(None, None, text)


def shown_count(summarize: int | None) -> int:
    """Return the number of elements to show; a negative number of the caller means all."""
    return _SHOWN if summarize is None else summarize if summarize >= 0 else 10**9


def elements(value: Any, shown: int) -> list[str]:
    """The first elements of an array as texts."""
    flat = np.asarray(value).reshape(-1)
    return [*map(str, flat[:shown]), *(["..."] if flat.size > shown else [])]


def Assert(  # noqa: N802 - the name TensorFlow has
    condition: Any, data: Sequence[Any], summarize: int | None = None, name: str | None = None
) -> Any:
    """Raise an error that shows values, unless a condition is true. As ``tf.debugging.Assert``.

    In a graph: return an operation that fails when it is run and the condition is false.

    Raises:
        InvalidArgumentError: The condition is false.
        TypeError: In a graph: the condition is no truth value, or the data no sequence.
        ValueError: In a graph: there is no data.
    """
    graph = thread.state.graph
    if graph is not None:
        return _recorded(graph, condition, data, summarize, name or "Assert")
    if condition:
        return None
    tensors = [to_tensor(value)._on_host() for value in data]
    shown = shown_count(summarize)
    texts = (", ".join(elements(each, shown)) for each in tensors)
    lines = "\n".join(texts)
    raise failed(f"Expected '{condition!s}' to be true. Summarized data: {lines}")


def _recorded(graph: RecordingGraph, condition: Any, data: Any, summarize: int | None, name: str) -> Any:
    if not isinstance(data, list | tuple):
        raise TypeError("values must be a sequence.")
    if not data:
        raise ValueError("Attr 'T' of 'Assert' Op passed list of length 0 less than minimum 1.")
    with graph.name_scope(name):
        condition = to_tensor(condition)
        if condition._dtype is not bool_:
            raise TypeError(
                f"Input 'condition' of 'Assert' Op has type {condition._dtype.name} that does not match expected type "
                "of bool."
            )
        # Texts stay with the node: they need no memory and no device.
        given: list[Any] = [each if isinstance(each, str | bytes) else to_tensor(each) for each in data]
        tensors = [each for each in given if is_tensor(each)]
        parts = tuple(None if is_tensor(each) else each for each in given)
        # TensorFlow looks at data that may be on a GPU only if it must.
        guarded = any(each._dtype not in (int32, string) for each in tensors)
        return run(
            _assert,
            (condition, *tensors),
            parts,
            shown_count(summarize),
            name="AssertGuard/Assert" if guarded else "Assert",
        )


def _nothing(*arrays_and_args: Any) -> tuple[()]:
    return ()


def _fault(condition: Array, *rest: Any) -> str | None:
    *arrays, parts, shown = rest
    if condition.ndim:
        return f"In[0] should be a scalar: {dims(condition)}"
    if condition:
        return None
    values = iter(arrays)
    texts = (
        summary(next(values), shown) if each is None else _escaped(np.asarray(each, object)[()])
        for each in parts
    )
    return f"assertion failed: {' '.join(f'[{each}]' for each in texts)}"


_assert = operation(
    "Assert",
    _nothing,
    shape=no_outputs,
    fault=_fault,
    reads_anywhere=True,
    effect_only=True,
)


def summary(array: Array, shown: int) -> str:
    """The first elements of an array, each axis but a lone one in brackets."""
    if array.dtype.kind == "c":
        return unworded(array, shown)
    flat = array.reshape(-1)
    shown = min(shown, flat.size)
    text = _axis(iter([_escaped(each) for each in flat[:shown]]), array.shape, 0, shown)[0]
    return text + "..." if flat.size > shown else text


def _axis(texts: Any, shape: tuple[int, ...], depth: int, left: int) -> tuple[str, int]:
    """The elements of one axis as a text, while some are left to show; and how many are left then."""
    if depth == len(shape):
        return (next(texts), left - 1) if left else ("", 0)
    last = depth == len(shape) - 1
    between = " " if last else ""
    parts: list[str] = []
    for _ in range(shape[depth]):
        if not left:
            # An inner axis that is cut short says so.
            return between.join(parts) + ("..." if last and depth else ""), 0
        text, left = _axis(texts, shape, depth + 1, left)
        parts.append(text if last else f"[{text}]")
    return between.join(parts), left


def _escaped(value: Any) -> str:
    if not isinstance(value, str | bytes):
        return element(value)
    text = value.decode("utf-8", "backslashreplace") if isinstance(value, bytes) else value
    return escaped(text)


def decided(condition: Any, data: Sequence[Any], summarize: int | None, *known: Any) -> Any:
    """In a graph: an ``Assert``; if it is known already to fail, its error.

    ``known`` are the tensors that decide.

    Raises:
        InvalidArgumentError: The condition is false for all values.
    """
    if all(get_static_value(each) is not None for each in known) and not get_static_value(condition):
        values = ((get_static_value(each) if is_tensor(each) else each) for each in data)
        raise failed("\n".join(str(each) for each in values))
    return Assert(condition, data, summarize)


def called(x: Any) -> str:
    """Return the name of a tensor in errors of assertions: that in its graph, else its description."""
    return f"shape={x.shape} dtype={x.dtype.name}" if thread.state.graph is None else str(x.name)


def no_op_named(name: str) -> Any:
    """In a graph: an operation in place of a check that was decided while recording; eagerly nothing."""
    graph = thread.state.graph
    return None if graph is None else graph.group((), name)


__all__ = [
    "Assert",
    "called",
    "decided",
    "elements",
    "failed",
    "no_op_named",
    "shown_count",
    "summary",
]
