"""Compares the outcomes of a program in this package and in TensorFlow."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from outcome import Array, Failed, Raised, Shape, Type
from programs import Tolerance

#: The kinds of difference. ``not finite``: complex numbers differ, and all of them have an infinite or NaN part in one
#: package. ``sign of zero``: only signs of zeros differ. ``raises``: only this package raises an error. ``accepts``:
#: only TensorFlow raises an error. ``less known``: TensorFlow knows more of a static shape.
KINDS = (
    "value",
    "not finite",
    "sign of zero",
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
    """A difference between two outcomes: its kind, and its position in the results."""

    kind: str
    detail: str = ""


def compare(here: Any, there: Any, tolerance: Tolerance) -> list[Difference]:
    """Return the differences between the outcome in this package (``here``) and in TensorFlow (``there``)."""
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
    kind = _difference(here.array, there.array, tolerance)
    return [] if kind is None else [Difference(kind, where)]


def _difference(here: np.ndarray, there: np.ndarray, tolerance: Tolerance) -> str | None:
    if here.dtype.kind not in "fc":
        return None if np.array_equal(here, there) else "value"
    with np.errstate(all="ignore"):
        size = np.abs(there).astype(np.float64)
        largest = float(size.max(initial=tolerance.terms, where=np.isfinite(size)))
        if here.dtype.kind == "f":
            far = _far(here, there, size, largest, tolerance)
        else:
            # The error of a product of complex numbers is relative to the number's absolute value, not to the part.
            size = np.maximum(size, np.abs(here))
            parts = ((getattr(each, part) for each in (here, there)) for part in ("real", "imag"))
            far = np.logical_or.reduce([_far(a, b, size, largest, tolerance) for a, b in parts])
    if far.any():
        odd = ~(np.isfinite(here) & np.isfinite(there))
        return "not finite" if here.dtype.kind == "c" and odd[far].all() else "value"
    if tolerance.of_largest:
        return None
    return None if _zeros_agree(here, there) else "sign of zero"


def _far(here: np.ndarray, there: np.ndarray, size: np.ndarray, largest: float, allowed: Tolerance) -> Any:
    """Return a mask of the elements whose difference exceeds the tolerance, for real arrays."""
    info = np.finfo(there.dtype)
    a, b = here.astype(np.float64), there.astype(np.float64)
    scale = np.maximum(np.abs(a), np.where(np.isfinite(size), size, np.abs(b)))
    # TensorFlow's kernels flush denormal numbers to zero.
    gap = float(info.tiny) + float(info.eps) * (allowed.ulps * scale + allowed.of_largest * largest)
    near = np.where(np.isinf(a) | np.isinf(b), a == b, np.abs(a - b) <= gap)
    return ~np.where(np.isnan(a) | np.isnan(b), np.isnan(a) & np.isnan(b), near)


def _zeros_agree(here: np.ndarray, there: np.ndarray) -> bool:
    if here.dtype.kind == "c":
        return _zeros_agree(here.real, there.real) and _zeros_agree(here.imag, there.imag)
    zeros = (here == 0) & (there == 0)
    return bool(np.array_equal(np.signbit(here)[zeros], np.signbit(there)[zeros]))
