"""Creates the operands of generated programs: random arrays that depend on a seed only."""

import math

import numpy as np

FLOATS = ("float16", "float32", "float64")
COMPLEX = ("complex64", "complex128")
SIGNED = ("int8", "int16", "int32", "int64")
UNSIGNED = ("uint8", "uint16", "uint32", "uint64")
INTEGERS = SIGNED + UNSIGNED
NUMBERS = FLOATS + COMPLEX + INTEGERS
#: Every element type that both packages have.
TYPES = (*NUMBERS, "bool", "string")

_TEXTS = (
    b"",
    b"a",
    b"Hello, World",
    "Größe €".encode(),
    b"\xff\x00z",
    b"12",
    b"-1.5e3",
    b" spaces \t",
    b"aXbXc",
    b"0x1F",
    b"nan",
    b"True",
)
_SPECIAL_FLOATS = (
    0.0,
    -0.0,
    math.inf,
    -math.inf,
    math.nan,
    1.0,
    -1.0,
    0.5,
    -0.5,
    2.0,
    -3.0,
    1e-5,
    100.0,
    -1e4,
    1e30,
    -1e30,
)


def operand(dtype: str, shape: tuple[int, ...], kind: str = "ordinary", seed: int = 0) -> np.ndarray:
    """Return a random array.

    Args:
        dtype: Name of the element type.
        shape: The shape.
        kind: ``ordinary`` (small numbers of both signs), ``positive``, ``unit`` (between -1 and 1), ``whole`` (whole
            numbers in any type), ``index`` (0 to 3), ``special`` (NaN, infinities, both zeros, extreme integers),
            ``denormal`` (also some normal numbers and both zeros) or ``distinct`` (no element twice).
        seed: Seed of the random numbers.
    """
    rng = np.random.default_rng(seed)
    size = math.prod(shape)
    if dtype == "string":
        return np.array([_TEXTS[i] for i in rng.integers(0, len(_TEXTS), size)], object).reshape(shape)
    if dtype == "bool":
        return rng.integers(0, 2, size).astype(bool).reshape(shape)
    made = _elements(np.dtype(dtype), size, kind, rng)
    with np.errstate(all="ignore"):
        return np.asarray(made).astype(dtype).reshape(shape)


def _elements(dtype: np.dtype, size: int, kind: str, rng: np.random.Generator) -> np.ndarray:
    if dtype.kind == "c":
        part = np.dtype(f"f{dtype.itemsize // 2}")
        return _elements(part, size, kind, rng).astype(part) + 1j * _elements(part, size, kind, rng).astype(
            part
        )
    if kind == "distinct":
        return rng.permutation(size) - (0 if dtype.kind == "u" else size // 2)
    if kind == "index":
        return rng.integers(0, 4, size)
    if dtype.kind in "iu":
        if kind == "special":
            ends = np.iinfo(dtype)
            chosen = (0, 1, 2, 3, ends.max, ends.max - 1, ends.min, ends.min + 1, ends.max // 2)
            return np.array([chosen[i] for i in rng.integers(0, len(chosen), size)], dtype)
        low = 0 if dtype.kind == "u" else -9
        return rng.integers(1, 10, size) if kind == "positive" else rng.integers(low, 10, size)
    if kind == "special":
        return np.array(_SPECIAL_FLOATS)[rng.integers(0, len(_SPECIAL_FLOATS), size)]
    if kind == "denormal":
        small = float(np.finfo(dtype).tiny)
        return np.array((small / 2, -small / 8, small, 0.0, -0.0, 1.5, -2.5))[rng.integers(0, 7, size)]
    if kind == "whole":
        return rng.integers(-4, 5, size).astype(np.float64)
    if kind == "unit":
        return rng.uniform(-1, 1, size)
    ordinary = rng.normal(size=size) * 2
    return np.abs(ordinary) + 0.1 if kind == "positive" else ordinary
