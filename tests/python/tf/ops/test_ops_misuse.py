"""Calls with arguments of no use: an error of ours that says so, and nothing else."""

import inspect
import random
import traceback
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from allotment import errors
from allotment.tf import bitwise, linalg, nn
from allotment.tf import math as tf_math
from allotment.tf.tensors.tensor import EagerTensor
from support.tf.tensors import tensor

TYPES = [
    "float16",
    "float32",
    "float64",
    "int8",
    "int32",
    "int64",
    "uint8",
    "bool",
    "complex64",
    "complex128",
]
SHAPES: list[tuple[int, ...]] = [
    (),
    (1,),
    (3,),
    (0,),
    (2, 2),
    (2, 3),
    (0, 2),
    (2, 2, 2),
    (1, 4, 4, 3),
    (2, 2, 3, 2),
]
TENSORS = [
    tensor((np.arange(np.prod(shape, dtype=int)).reshape(shape) % 3).astype(dtype))
    for shape in SHAPES
    for dtype in TYPES
] + [tensor(["a", "b"]), tensor("a")]
VALUES: list[Any] = [
    *(
        None,
        "a",
        b"x",
        object(),
        True,
        1,
        -1,
        0,
        2,
        5,
        1.5,
        1j,
        float("nan"),
        2**40,
        -(2**70),
        10**400,
        np.float64(2),
    ),
    *([], [[]], [1, 2], [0, 1], [1.0, 2.0], (0,), [None], [[1], [1, 2]], [1, 2, 2, 1], range(3), {}, {1: 2}),
    *("SAME", "VALID", [[0, 0], [1, 1], [0, 0], [0, 0]], np.ones((2, 2)), np.array(["q"]), lambda: 0),
]
EQUATIONS = ["ij,jk->ik", "ij->ji", "i", "...i->i"]
#: Element types are looked at elsewhere.
TYPE_ARGUMENTS = {"dtype", "output_type", "tensor_dtype", "index_type", "name"}


def functions() -> list[Callable[..., Any]]:
    """Every function of the namespaces, but not those that another file's tests misuse."""
    found = {getattr(each, name) for each in (tf_math, linalg, nn, bitwise) for name in each.__all__}
    return sorted(found - {linalg.eye}, key=lambda each: str(each.__name__))


def arguments(function: Callable[..., Any], dice: random.Random) -> tuple[list[Any], dict[str, Any]]:
    positional: list[Any] = []
    named = {}
    for parameter in inspect.signature(function).parameters.values():
        pool = TENSORS if dice.random() < 0.7 else VALUES
        if parameter.kind is parameter.VAR_POSITIONAL:
            positional += [dice.choice(pool) for _ in range(dice.randint(0, 2))]
        elif parameter.kind is parameter.VAR_KEYWORD or parameter.name in TYPE_ARGUMENTS:
            continue
        elif parameter.name == "equation":
            positional.append(dice.choice(EQUATIONS))
        elif parameter.default is parameter.empty:
            positional.append(dice.choice(pool))
        elif dice.random() < 0.4:
            named[parameter.name] = dice.choice(VALUES)
    return positional, named


def tensors(result: Any) -> list[EagerTensor]:
    if isinstance(result, list | tuple):
        return [found for each in result for found in tensors(each)]
    return [result] if isinstance(result, EagerTensor) else []


def is_ours(error: Exception) -> bool:
    """Whether an error is one of an operation, or of Python's kinds and raised by this package on purpose."""
    if isinstance(error, errors.OpError):
        return True
    last = traceback.extract_tb(error.__traceback__)[-1]
    raised = (last.line or "").strip().startswith(("raise", ")"))
    return isinstance(error, TypeError | ValueError | IndexError) and "allotment" in last.filename and raised


def outcome(
    function: Callable[..., Any], positional: list[Any], named: dict[str, Any]
) -> tuple[list[EagerTensor], Exception | None]:
    try:
        return tensors(function(*positional, **named)), None
    except Exception as error:
        return [], error


@pytest.mark.parametrize("function", functions(), ids=lambda each: each.__name__)
def test_an_error_says_what_is_wrong(function: Callable[..., Any]) -> None:
    dice = random.Random(function.__name__)
    for _ in range(60):
        positional, named = arguments(function, dice)
        found, error = outcome(function, positional, named)
        assert error is None or is_ours(error), (positional, named)
        for each in found:
            assert each._array.dtype == each.dtype.numpy, (positional, named)
            assert each._array.flags.c_contiguous, (positional, named)
