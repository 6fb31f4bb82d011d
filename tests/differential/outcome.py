"""Outcomes of programs in a form common to both packages: nested arrays, shapes, types and exceptions."""

from collections.abc import Mapping
from typing import Any

import numpy as np


class Raised:
    """An exception as an outcome: the names of its class and base classes, and its text."""

    def __init__(self, error: BaseException) -> None:
        self.name = type(error).__name__
        self.classes = [each.__name__ for each in type(error).__mro__]
        self.text = str(error)[:4000]

    def __repr__(self) -> str:
        return f"raises {self.name}: {' '.join(self.text.split())[:300]}"


class Failed:
    """A program without an outcome: ``how`` is ``hang`` or ``crash``."""

    def __init__(self, how: str) -> None:
        self.how = how

    def __repr__(self) -> str:
        return self.how


class Array:
    """The value of a tensor or array as an outcome: element type and elements; texts are bytes."""

    def __init__(self, dtype: str, array: np.ndarray) -> None:
        self.dtype = dtype
        self.array = array

    def __repr__(self) -> str:
        text = np.array2string(self.array, threshold=24, max_line_width=100)
        return f"{self.dtype}{list(self.array.shape)} {text}"


class Shape:
    """A static shape as an outcome: ``None`` for an unknown rank, with ``None`` for unknown lengths."""

    def __init__(self, dims: list[int | None] | None) -> None:
        self.dims = dims

    def __repr__(self) -> str:
        return f"shape {self.dims}"


class Type:
    """An element type as an outcome."""

    def __init__(self, name: str) -> None:
        self.name = name

    def __repr__(self) -> str:
        return f"type {self.name}"


def described(value: Any, tf: Any) -> Any:
    """Convert a program's result to the form common to both packages."""
    if value is None or isinstance(value, (bool, str, bytes)):
        return value
    if isinstance(value, (int, float, complex)) and not isinstance(value, np.generic):
        return value
    if isinstance(value, (np.ndarray, np.generic)):
        return _array(np.asarray(value))
    if isinstance(value, tf.DType):
        return Type(value.name)
    if isinstance(value, tf.TensorShape):
        return Shape(None if value.rank is None else list(value.as_list()))
    if isinstance(value, Mapping):
        return {str(key): described(each, tf) for key, each in value.items()}
    if type(value).__name__ == "IndexedSlices":
        return _slices(value, tf)
    if hasattr(value, "numpy"):
        return _array(np.asarray(value.numpy()), value.dtype)
    if isinstance(value, (list, tuple)):
        return [described(each, tf) for each in value]
    if isinstance(getattr(value, "shape", None), tf.TensorShape):
        return [Type(value.dtype.name), described(value.shape, tf)]
    if hasattr(value, "name") and isinstance(value.name, str) and hasattr(value, "value"):
        return value.name
    return type(value).__name__


def _slices(slices: Any, tf: Any) -> Any:
    """Describe slices without the order of their rows: in it, the parts of an aggregate come in another order."""
    squares = tf.IndexedSlices(
        slices.values * tf.math.conj(slices.values), slices.indices, slices.dense_shape
    )
    described_parts = {
        "numbers": np.sort(np.asarray(slices.indices.numpy())),
        "dense_shape": None if slices.dense_shape is None else np.asarray(slices.dense_shape.numpy()),
    }
    if slices.dense_shape is not None:
        described_parts |= {
            "sums": np.asarray(tf.convert_to_tensor(slices).numpy()),
            "sums of squares": np.asarray(tf.convert_to_tensor(squares).numpy()),
        }
    return {"IndexedSlices": {name: described(each, tf) for name, each in described_parts.items()}}


def _array(array: np.ndarray, dtype: Any = None) -> Array:
    name = getattr(dtype, "name", dtype) or array.dtype.name
    if array.dtype.kind in "OSU":
        flat = [each.encode() if isinstance(each, str) else each for each in array.ravel().tolist()]
        made = np.empty(len(flat), object)
        made[:] = flat
        return Array("string", made.reshape(array.shape))
    if array.dtype.kind == "V":  # bfloat16, which NumPy alone does not know
        array = array.astype(np.float32)
    return Array(str(name).split(".")[-1].replace("_ref", ""), array)
