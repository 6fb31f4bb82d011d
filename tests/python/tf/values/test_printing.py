"""``tf.print`` and ``tf.strings.format``."""

import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import allotment.tf as tf
from support.tf.tensors import check, tensor


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ((1, 2.5, "a", True, None), "1 2.5 a True None"),
        ((tensor([1.0, 2.5]),), "[1 2.5]"),
        ((tensor(range(20)),), "[0 1 2 ... 17 18 19]"),
        ((tensor(np.zeros((2, 2, 2))),), "[[[0 0]\n  [0 0]]\n\n [[0 0]\n  [0 0]]]"),
        ((tensor(1.5), [1, 2], {"a": tensor(1)}, (1, tensor(2))), "1.5 [1, 2] {'a': 1} (1, 2)"),
        ((tensor("hi"), tensor(["a", "b"])), '"hi" ["a" "b"]'),
        ((tensor("hi"),), "hi"),
        ((tensor(True), tensor([True, False])), "1 [1 0]"),
        (
            (tensor(1e10), tensor(1 / 3), tensor(123456789.0), tensor(1234567.0)),
            "1e+10 0.333333343 123456792 1234567",
        ),
        ((tensor(0.1, "float64"), tensor(0.1, "float16"), tensor(1e-5)), "0.1 0.0999755859 1e-05"),
        ((tensor([np.inf, -np.inf, np.nan]),), "[inf -inf nan]"),
        ((tensor(np.zeros(0)), tensor(np.zeros((2, 0)))), "[] [\n ...]"),
        ((np.array([1, 2]), tf.float32), "array([1, 2]) tf.float32"),
        (("%s {} x", tensor(1)), "%s {} x 1"),
        ((), ""),
    ],
)
def test_what_is_printed(capsys: Any, values: tuple[Any, ...], expected: str) -> None:
    tf.print(*values)
    assert capsys.readouterr().err == expected + "\n"


def test_long_axes_are_cut(capsys: Any) -> None:
    tf.print(tf.range(20), summarize=2)
    tf.print(tf.range(8), summarize=-1)
    tf.print(tf.reshape(tf.range(64), [8, 8]))
    assert capsys.readouterr().err.splitlines() == [
        "[0 1 ... 18 19]",
        "[0 1 2 3 4 5 6 7]",
        "[[0 1 2 ... 5 6 7]",
        " [8 9 10 ... 13 14 15]",
        " [16 17 18 ... 21 22 23]",
        " ...",
        " [40 41 42 ... 45 46 47]",
        " [48 49 50 ... 53 54 55]",
        " [56 57 58 ... 61 62 63]]",
    ]


def test_where_it_goes(capsys: Any, tmp_path: Path) -> None:
    tf.print("a", "b", sep="-", end="!\n", output_stream=sys.stdout)
    assert capsys.readouterr().out == "a-b!\n"
    tf.print("a", output_stream=f"file://{tmp_path / 'out'}")
    assert (tmp_path / "out").read_text() == "a\n"
    with pytest.raises(ValueError, match="Unsupported output stream, logging level, or file"):
        tf.print("a", output_stream=5)
    with pytest.raises(ValueError, match=r"Unrecognized keyword arguments for tf\.print: \{'foo': 1\}"):
        tf.print("a", foo=1)


def test_tensors_in_texts() -> None:
    made = tf.strings.format("x {} y {}", (tensor(1), tensor([1.0, 2.0])))
    check(made, np.array(b"x 1 y [1 2]", object), "string")
    with pytest.raises(ValueError, match="The template expects 1 tensors, but the inputs only has 2"):
        tf.strings.format("x {}", [1, 2])
    made = tf.strings.format("{}", tensor(['\t"', "\\\x00", "é'\x7f"]), summarize=-1)
    check(made, np.array(r'["\t\"" "\\\000" "é\'\177"]'.encode(), object), "string")
    # Of complex numbers TensorFlow says only how many there are.
    check(tf.strings.format("{}", tensor([[1j] * 4] * 2)), np.array(b"[? ? ?...]", object), "string")
