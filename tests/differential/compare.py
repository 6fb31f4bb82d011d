"""Compares the outcomes of one program in both packages."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from outcome import Array, Failed, Raised, Shape, Type
from programs import Tolerance

#: The kinds of difference. ``raises``: here alone. ``accepts``: TensorFlow alone raises. ``less known``: of a static
#: shape that TensorFlow knows more of; ``more known``, which is no fault, is counted and not reported.
KINDS = (
    "value",
    "dtype",
    "shape",
    "static shape",
    "less known",
    "structure",
    "class",
    "raises",
    "accepts",
    "hang",
    "crash",
    "crash there",
)


@dataclass(frozen=True)
class Difference:
    """One difference: its kind and where in the results it is."""

    kind: str
    detail: str = ""


def compare(here: Any, there: Any, tolerance: Tolerance) -> list[Difference]:
    """Return the differences between the outcome here and TensorFlow's."""
    if isinstance(here, Failed):
        return [Difference(here.how)]
    if isinstance(there, Failed):
        return [Difference("crash there")]
    if isinstance(here, Raised) and isinstance(there, Raised):
        return [] if _is_caught(here, there) else [Difference("class", f"{here.name} for {there.name}")]
    if isinstance(here, Raised):
        return [Difference("raises", here.name)]
    if isinstance(there, Raised):
        return [Difference("accepts", there.name)]
    return _results(here, there, tolerance, "result")


def _is_caught(here: Raised, there: Raised) -> bool:
    """Whether an ``except`` clause for TensorFlow's exception catches ours."""
    if "OpError" in here.classes and "OpError" not in there.classes:
        return False
    return there.name in here.classes or there.name in ("_FallbackException", "_NotOkStatusException")


def _results(here: Any, there: Any, tolerance: Tolerance, where: str) -> list[Difference]:
    if isinstance(here, list) and isinstance(there, list):
        if len(here) != len(there):
            return [Difference("structure", f"{where}: {len(here)} for {len(there)}")]
        return [
            difference
            for index, pair in enumerate(zip(here, there, strict=True))
            for difference in _results(*pair, tolerance, f"{where}[{index}]")
        ]
    if isinstance(here, dict) and isinstance(there, dict):
        if here.keys() != there.keys():
            return [Difference("structure", f"{where}: {sorted(here)} for {sorted(there)}")]
        return [
            difference
            for key in here
            for difference in _results(here[key], there[key], tolerance, f"{where}[{key!r}]")
        ]
    if isinstance(here, Array) and isinstance(there, Array):
        return _arrays(here, there, tolerance, where)
    if isinstance(here, Shape) and isinstance(there, Shape):
        return _shapes(here, there, where)
    if isinstance(here, Type) and isinstance(there, Type):
        return (
            [] if here.name == there.name else [Difference("dtype", f"{where}: {here.name} for {there.name}")]
        )
    if type(here) is not type(there):
        return [Difference("structure", f"{where}: {_kind_of(here)} for {_kind_of(there)}")]
    if isinstance(here, (float, complex)):
        one, other = (Array("float64", np.asarray(each)) for each in (here, there))
        return _arrays(one, other, tolerance, where)
    return [] if here == there else [Difference("value", where)]


def _kind_of(value: Any) -> str:
    return type(value).__name__


def _shapes(here: Shape, there: Shape, where: str) -> list[Difference]:
    if there.dims is None:
        return []
    if here.dims is None:
        return [Difference("less known", where)]
    if len(here.dims) != len(there.dims):
        return [Difference("static shape", f"{where}: {here} for {there}")]
    pairs = list(zip(here.dims, there.dims, strict=True))
    if any(a is not None and b is not None and a != b for a, b in pairs):
        return [Difference("static shape", f"{where}: {here} for {there}")]
    if any(a is None and b is not None for a, b in pairs):
        return [Difference("less known", f"{where}: {here} for {there}")]
    return []


def _arrays(here: Array, there: Array, tolerance: Tolerance, where: str) -> list[Difference]:
    if here.dtype != there.dtype:
        return [Difference("dtype", f"{where}: {here.dtype} for {there.dtype}")]
    if here.array.shape != there.array.shape:
        return [Difference("shape", f"{where}: {here.array.shape} for {there.array.shape}")]
    if _are_near(here.array, there.array, tolerance):
        return []
    return [Difference("value", where)]


def _are_near(here: np.ndarray, there: np.ndarray, tolerance: Tolerance) -> bool:
    if here.dtype.kind == "c":
        largest = _largest(np.abs(there))
        return all(
            _floats_are_near(getattr(here, part), getattr(there, part), tolerance, largest)
            for part in ("real", "imag")
        )
    if here.dtype.kind != "f":
        return bool(np.array_equal(here, there))
    return _floats_are_near(here, there, tolerance, _largest(there))


def _largest(there: np.ndarray) -> float:
    finite = np.abs(there[np.isfinite(there)]).astype(np.float64)
    return float(finite.max()) if finite.size else 0.0


def _floats_are_near(here: np.ndarray, there: np.ndarray, tolerance: Tolerance, largest: float) -> bool:
    info = np.finfo(there.dtype)
    with np.errstate(all="ignore"):
        a, b = here.astype(np.float64), there.astype(np.float64)
        if not np.array_equal(np.isnan(a), np.isnan(b)):
            return False
        infinite = np.isinf(a) | np.isinf(b)
        # TensorFlow's kernels flush denormal numbers to zero.
        allowed = float(info.tiny) + float(info.eps) * (
            tolerance.ulps * np.maximum(np.abs(a), np.abs(b)) + tolerance.of_largest * largest
        )
        near = np.where(infinite, a == b, np.abs(a - b) <= allowed)
        zeros = (a == 0) & (b == 0)
        near &= ~zeros | (np.signbit(a) == np.signbit(b)) | (tolerance.of_largest > 0)
    return bool(np.all(near | np.isnan(a)))
