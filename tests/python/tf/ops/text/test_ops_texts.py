"""Texts."""

from typing import Any

import numpy as np
import pytest

from allotment.tf import strings
from support.child import run_program
from support.tf.tensors import check, check_refused, tensor


def texts(*values: str) -> Any:
    made = np.empty(len(values), object)
    made[:] = [value.encode() for value in values]
    return made


def test_joining() -> None:
    check(strings.join(["a", "b"]), np.array(b"ab", object), "string")
    check(strings.join([["a", "b"], ["c", "d"]], separator="-"), texts("a-c", "b-d"), "string")
    check(strings.join([tensor(["a", "b"]), "c"], b", "), texts("a, c", "b, c"), "string")
    check(strings.join([]), np.array(b"", object), "string")
    check_refused(
        strings.join, [["a", "b"], ["c"]], text="Input shapes do not match: [2] vs. [1] [Op:StringJoin]"
    )
    with pytest.raises(TypeError, match="Cannot convert 1 to EagerTensor of dtype string"):
        strings.join([1])


def test_lengths() -> None:
    check(strings.length(["abc", "ä€", ""]), [3, 5, 0], "int32")
    check(strings.length(["abc", "ä€", ""], unit="UTF8_CHAR"), [3, 2, 0], "int32")
    check_refused(strings.length, ["a"], unit="x", text="Value for attr 'unit' of \"x\"")


def test_letters() -> None:
    check(strings.lower(["ABC", "Ä"]), texts("abc", "Ä"), "string")
    check(strings.lower(["ABC", "Ä"], encoding="utf-8"), texts("abc", "ä"), "string")
    check(strings.upper(["abc", "ä"]), texts("ABC", "ä"), "string")
    check(strings.upper("ä", encoding="utf-8"), np.array("Ä".encode(), object), "string")
    check(strings.strip([" a b\n", ""]), texts("a b", ""), "string")
    check_refused(strings.upper, "a", encoding="latin", text="only utf-8 or '' (no encoding) is supported")


@pytest.mark.parametrize(
    ("values", "options", "expected"),
    [
        ([1, -2], {}, ["1", "-2"]),
        ([True, False], {}, ["true", "false"]),
        ([1.5, 1e10, np.nan, -np.inf], {}, ["1.500000", "10000000000.000000", "nan", "-inf"]),
        ([1.5, 2.0], {"precision": 2}, ["1.50", "2.00"]),
        ([1.5, 2.0, 1e-10], {"shortest": True}, ["1.5", "2", "1e-10"]),
        ([1.5], {"scientific": True}, ["1.500000e+00"]),
        ([1, -2], {"width": 4}, ["   1", "  -2"]),
        ([1, -2], {"width": 4, "fill": "0"}, ["0001", "-002"]),
        ([1, -2], {"width": 4, "fill": "-"}, ["1   ", "-2  "]),
        ([5, -5], {"width": 4, "fill": "+"}, ["  +5", "  -5"]),
        ([1 + 2j], {"precision": 1}, ["(1.0,2.0)"]),
        ([2**40], {}, ["1099511627776"]),
        (np.array([200], np.uint8), {"width": 5, "fill": "+"}, ["  200"]),
        ([5, -5], {"fill": " "}, [" 5", "-5"]),
        ([True], {"width": 6, "fill": "0"}, ["true"]),
        ([np.nan, -np.nan, -np.inf], {"width": 6, "fill": "0"}, ["   nan", "  -nan", "  -inf"]),
        ([1 - 2j], {"width": 10, "fill": "0"}, ["(001.000000,-02.000000)"]),
        ([2.5], {"precision": 0, "shortest": True, "fill": "#"}, ["2."]),
        (["ab", "é"], {"width": 4}, ["  ab", "  é"]),
        (["ab"], {"width": 4, "fill": "-", "precision": 1}, ["a   "]),
        (["ab"], {"precision": 1}, ["ab"]),
    ],
)
def test_numbers_as_texts(values: Any, options: dict[str, Any], expected: list[str]) -> None:
    check(strings.as_string(values, **options), texts(*expected), "string")


def test_numbers_that_cannot_be_written() -> None:
    check_refused(strings.as_string, [1], precision=2, text="precision not supported for datatype int32")
    check_refused(strings.as_string, [1.0], precision=1 << 16, text="must be less than 65536")
    check_refused(strings.as_string, [1], fill="xx", text="Fill string must be one or fewer characters")
    check_refused(
        strings.as_string, [1.0], scientific=True, shortest=True, text="Cannot select both scientific"
    )
    check_refused(strings.as_string, [1], fill="x", text='Fill argument not supported: "x"')
    check_refused(strings.as_string, [1], shortest=True, text="scientific and shortest format not supported")


def test_texts_as_numbers() -> None:
    check(strings.to_number(["1.5", " 2 ", "1e400", "-inf"]), [1.5, 2, np.inf, -np.inf], "float32")
    check(strings.to_number(["1", "-7"], "int64"), [1, -7], "int64")
    check(strings.to_number("4294967295", "uint32"), 2**32 - 1, "uint32")
    check(strings.to_number(["0x1F", "-0x1.8p1", "0x1p5000", "nan(1)"]), [31, -3, np.inf, np.nan], "float32")
    check(strings.to_number("-0X1P5000", "float64"), -np.inf, "float64")
    # Rounded once: the nearest float64 is as near to one float32 as to the next, or infinite as one.
    check(strings.to_number("1.000000059604644775390625000000001"), np.float32(1.0000001), "float32")
    check(strings.to_number("1.000000178813934326171874999999"), np.float32(1.0000001), "float32")
    check(strings.to_number("3.4028235677973366e38"), np.finfo(np.float32).max, "float32")


@pytest.mark.parametrize(
    ("text", "dtype"),
    [
        ("x", "float32"),
        ("", "float32"),
        ("1_0", "float32"),
        ("0x", "float64"),
        ("0x_1", "float32"),
        ("1.5", "int32"),
        ("99999999999", "int32"),
        ("-1", "uint32"),
    ],
)
def test_texts_that_are_no_numbers(text: str, dtype: str) -> None:
    check_refused(
        strings.to_number,
        text,
        dtype,
        text=f"StringToNumberOp could not correctly convert string: {text} [Op:StringToNumber]",
    )


def test_types_that_are_not_read() -> None:
    check_refused(strings.to_number, "1", "uint8", text="Value for attr 'out_type' of uint8")


def test_texts_are_on_the_cpu_where_there_is_a_gpu() -> None:
    done = run_program("""
        import os
        os.environ["ALLOTMENT_SIMULATED_GPUS"] = "1:1GiB"
        from allotment.tf import strings
        joined = strings.join([["a"], "b"])
        assert joined.device.endswith("CPU:0") and joined.backing_device.endswith("CPU:0")
        assert strings.length(joined).device.endswith("CPU:0")
    """)
    assert done.returncode == 0, done.stderr
