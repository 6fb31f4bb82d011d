"""Records the calls of kernels that sample programs make, so that they can be made again with other arrays."""

import contextlib
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np

from allotment.tf.ops.table import OPERATIONS, Operation


class Call(NamedTuple):
    """A call of a row's function."""

    row: Operation
    args: tuple[Any, ...]
    kwargs: dict[str, Any]


def _kept(value: Any) -> Any:
    """Return an argument as it is now: kernels may change an array later."""
    return value.copy() if isinstance(value, np.ndarray) else value


@contextlib.contextmanager
def recording(calls: list[Call]) -> Iterator[None]:
    """Append each call of a row's function to ``calls``, before it is made."""

    def recorder(row: Operation, function: Callable[..., Any]) -> Callable[..., Any]:
        def call(*args: Any, **kwargs: Any) -> Any:
            calls.append(Call(row, tuple(map(_kept, args)), dict(kwargs)))
            return function(*args, **kwargs)

        return call

    before = {name: row.function for name, row in OPERATIONS.items()}
    try:
        for name, row in OPERATIONS.items():
            # The rows are frozen for programs; the function of a node is looked up when it runs.
            object.__setattr__(row, "function", recorder(row, before[name]))
        yield
    finally:
        for name, row in OPERATIONS.items():
            object.__setattr__(row, "function", before[name])


__all__ = ["Call", "recording"]
