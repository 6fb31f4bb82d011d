"""Tensors in texts: ``tf.strings.format`` and ``tf.print``."""

import pprint
import re
import sys
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Final

import numpy as np

from allotment.tf import nest
from allotment.tf.dispatch import thread
from allotment.tf.ops.array.array import is_tensor
from allotment.tf.ops.arrays import Array
from allotment.tf.ops.convert import to_tensor
from allotment.tf.ops.execute import run
from allotment.tf.ops.inference.common import no_outputs
from allotment.tf.ops.inference.shape_functions import Inference, Output
from allotment.tf.ops.table import CPU_ONLY, operation
from allotment.tf.tensors.dtype import string
from allotment.tf.tensors.tensor import EagerTensor

_ESCAPES: Final = {"\\": "\\\\", '"': '\\"', "'": "\\'", "\n": "\\n", "\r": "\\r", "\t": "\\t"}


def escaped(text: str) -> str:
    """A text as C writes it, but for what is no ASCII."""
    return re.sub(
        r"[\\\"'\x00-\x1f\x7f]",
        lambda found: _ESCAPES.get(found[0]) or f"\\{ord(found[0]):03o}",
        text,
    )


def element(value: Any) -> str:
    """One element of an array as a text."""
    if isinstance(value, bytes):
        return '"' + escaped(value.decode("utf-8", "surrogateescape")) + '"'
    if isinstance(value, np.bool_):
        return str(int(value))
    if isinstance(value, np.floating):
        return _float(value)
    return str(value)


def _float(value: Any) -> str:
    """The fewer of two numbers of digits that says which float it is."""
    few, many = (15, 17) if value.dtype == np.float64 else (6, 9)
    text = f"{float(value):.{few}g}"
    # A half is a float of single precision to TensorFlow.
    kind = np.float64 if few == 15 else np.float32
    with np.errstate(over="ignore"):
        return text if kind(text) == kind(value) or value != value else f"{float(value):.{many}g}"


def summarized(array: Array, shown: int) -> str:
    """An array in brackets, with so many entries at both ends of each axis, all of them for a negative number."""
    ends = array.size if shown < 0 else min(shown, array.size)
    if array.dtype.kind == "c":
        return f"[{unworded(array, ends)}]" if array.ndim else unworded(array, ends)
    return _axis(array, 0, array.ndim, ends)


def unworded(array: Array, shown: int) -> str:
    """The first of complex numbers: TensorFlow has no words for them, and forgets their shape."""
    return " ".join("?" * min(shown, array.size)) + ("..." if shown < array.size else "")


def _axis(array: Array, depth: int, rank: int, ends: int) -> str:
    if depth == rank:
        return element(array[()] if isinstance(array, np.ndarray) else array)
    length = len(array)
    first = range(min(ends, length))
    last = range(max(ends, length - ends), length)
    parts = [_axis(array[index], depth + 1, rank, ends) for index in first]
    gap = " " if depth == rank - 1 else "\n" * (rank - depth - 1) + " " * (depth + 1)
    text = gap.join(parts)
    if length > 2 * ends:
        text += gap + "..."
    return "[" + text + "".join(gap + _axis(array[index], depth + 1, rank, ends) for index in last) + "]"


def _filled(*arrays: Array, template: str, placeholder: str, shown: int) -> Array:
    pieces = template.split(placeholder)
    texts: Iterator[str] = (summarized(array, shown) for array in arrays)
    filled = pieces[0] + "".join(text + piece for text, piece in zip(texts, pieces[1:], strict=True))
    made = np.empty((), object)
    made[()] = filled.encode("utf-8", "surrogateescape")
    return made


def _format_shape(c: Inference, **words: Any) -> list[Output]:
    return [(string, ())]


_format = operation("StringFormat", _filled, shape=_format_shape, kinds=CPU_ONLY)


def string_format(
    template: str, inputs: Any, placeholder: str = "{}", summarize: int = 3, name: str | None = None
) -> EagerTensor:
    """Put tensors in the place of placeholders in a text. As ``tf.strings.format``.

    Raises:
        ValueError: There are not as many tensors as places.
    """
    values = inputs if isinstance(inputs, list | tuple) else [inputs]
    tensors = [to_tensor(value) for value in values]
    found = template.count(placeholder)
    if found != len(tensors):
        raise ValueError(
            f"The template expects {found} tensors, but the inputs only has {len(tensors)}. Please ensure the number "
            "of placeholders in template matches inputs length."
        )
    if not tensors:
        return to_tensor(template)
    return run(  # type: ignore[no-any-return]
        _format, tensors, template=template, placeholder=placeholder, shown=summarize, name=name
    )


def _write(text: Array, write: Callable[[str], Any], end: str) -> tuple[()]:
    line: bytes = text[()]  # type: ignore[assignment]
    write(line.decode("utf-8", "replace") + end)
    return ()


_print = operation("PrintV2", _write, shape=no_outputs, kinds=CPU_ONLY, effect_only=True)


def _writer(stream: Any) -> Callable[[str], Any]:
    for each in (sys.stderr, sys.stdout):
        if stream is each:

            def write(text: str) -> None:
                stream.write(text)
                stream.flush()

            return write
    if isinstance(stream, str) and stream.startswith("file://"):

        def append(text: str) -> None:
            with open(stream.removeprefix("file://"), "a", encoding="utf-8") as file:
                file.write(text)

        return append
    raise ValueError(
        f"Unsupported output stream, logging level, or file.{stream}. Supported streams are sys.stdout, sys.stderr, "
        "tf.logging.info, tf.logging.warning, tf.logging.error. File needs to be in the form of "
        "'file://<filepath>'."
    )


def print_(*inputs: Any, **kwargs: Any) -> Any:
    """Write values to ``sys.stderr``, tensors without their type, shape and the middle of long axes. As ``tf.print``.

    In a graph: return an operation that writes when it is run.

    Args:
        *inputs: Tensors, texts, and lists, tuples and dictionaries of them.
        **kwargs: ``output_stream``, ``sys.stderr``, ``sys.stdout`` or ``"file://"`` and a path; ``summarize``, how
            many entries of each axis are shown at both ends, -1 for all; ``sep``; ``end``; ``name``.

    Raises:
        ValueError: Another stream, or another keyword.
    """
    stream = kwargs.pop("output_stream", sys.stderr)
    name = kwargs.pop("name", None)
    shown = kwargs.pop("summarize", 3)
    between, end = kwargs.pop("sep", " "), kwargs.pop("end", "\n")
    if kwargs:
        raise ValueError(f"Unrecognized keyword arguments for tf.print: {kwargs}")
    write = _writer(stream)
    made = run(_print, (_text(inputs, between, shown, name),), write, end, name=name)
    return None if thread.state.graph is None else made


def _text(inputs: Sequence[Any], between: str, shown: int, name: str | None) -> EagerTensor:
    if (
        len(inputs) == 1
        and _has_one_value(inputs[0])
        and inputs[0].dtype is string
        and not inputs[0].shape.rank
    ):
        # A text alone has no quotes.
        return to_tensor(inputs[0])
    plain = " ".join(
        pprint.pformat(nest.map_structure(lambda value: "" if _has_one_value(value) else value, each))
        for each in inputs
    )
    placeholder = "{}"
    while placeholder in plain:
        placeholder = "{" + placeholder + "}"
    tensors, templates = [], []
    for each in inputs:
        flat = nest.flatten(each)
        tensors += [value for value in flat if _has_one_value(value)]
        packed = nest.pack_sequence_as(
            each, [placeholder if _has_one_value(value) else value for value in flat]
        )
        templates.append(packed if _has_one_value(each) or isinstance(each, str) else pprint.pformat(packed))
    template = between.join(templates).replace(f"'{placeholder}'", placeholder)
    return string_format(template, tensors, placeholder, shown, name)


def _has_one_value(value: Any) -> bool:
    """Whether it is a tensor, and not the values of several replicas, which are written as Python does."""
    return is_tensor(value) and not hasattr(type(value), "_with_values")


__all__ = ["element", "escaped", "print_", "string_format", "summarized", "unworded"]
