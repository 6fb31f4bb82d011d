"""Script that records TensorFlow's static shapes of the expressions in ``families.graphs``.

Run it with an interpreter that has TensorFlow. It writes ``tests/python/support/tf/static_shapes.json``, for tests that
run without TensorFlow.
"""

import json
from importlib import import_module
from pathlib import Path
from typing import Any

from families import graphs

tf: Any = import_module("tensorflow")
TARGET = Path(__file__).parents[1] / "python" / "support" / "tf" / "static_shapes.json"


def main() -> None:
    """Write the file."""
    recorded: list[list[object]] = []
    for chains in (graphs.SLICES, graphs.ARRANGED, graphs.JOINED, graphs.LAYERS):
        for expression, operands in chains:
            recorded += [
                _recorded(expression, [_placeholder(known, *each) for each in operands])
                for known in ("batch", "ranks", "nothing")
            ]
    recorded += [_recorded(expression, []) for expression in graphs.LARGE]
    lines = ",\n".join(json.dumps(each) for each in recorded)
    TARGET.write_text(f"[\n{lines}\n]\n")


def _placeholder(known: str, dtype: str, shape: tuple[int, ...]) -> tuple[str, list[int | None] | None]:
    if known == "nothing":
        return dtype, None
    return dtype, [None if known == "ranks" or not axis else length for axis, length in enumerate(shape)]


def _recorded(expression: str, operands: list[tuple[str, list[int | None] | None]]) -> list[object]:
    with tf.Graph().as_default():
        names = {
            f"x{index}": tf.compat.v1.placeholder(dtype, shape)
            for index, (dtype, shape) in enumerate(operands)
        }
        try:
            made = eval(expression, {"tf": tf, **names})
        except (TypeError, ValueError) as error:
            return [expression, operands, type(error).__name__]
    made = made if isinstance(made, list | tuple) else [made]
    return [
        expression,
        operands,
        [None if each.shape.rank is None else each.shape.as_list() for each in made],
    ]


if __name__ == "__main__":
    main()
