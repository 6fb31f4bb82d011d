"""Identity, casts, shapes, and tensors like another."""

import numpy as np
import pytest

from allotment.errors import UnimplementedError
from allotment.tf.ops.array import array, creation, shapes
from allotment.tf.tensors import dtype as dtypes
from allotment.tf.tensors.tensor import EagerTensor
from support.tf.tensors import check, check_refused, tensor


def test_identity_is_a_new_tensor_that_shares_the_memory() -> None:
    x = tensor([1.0, 2.0])
    for function in (array.identity, array.stop_gradient):
        y = function(x)
        check(y, [1, 2], "float32")
        assert y is not x
        assert np.shares_memory(x._array, y._array)
    check(array.identity("text"), np.array(b"text", object), "string")
    check(array.identity([1, 2]), [1, 2], "int32")


@pytest.mark.parametrize(
    ("value", "dtype", "expected"),
    [
        ([1.7, -1.7, 0.2], "int32", [1, -1, 0]),
        ([2.0, 0.0, -0.5], "bool", [True, False, True]),
        ([True, False], "float32", [1, 0]),
        ([True, False], "complex64", [1, 0]),
        ([3, -4], "complex128", [3, -4]),
        ([1 + 2j, 3 - 4j], "float32", [1, 3]),
        ([1 + 2j, 0j], "bool", [True, False]),
        ([300, -1], "uint8", [44, 255]),
        (1.5, "float64", 1.5),
        ([], "int64", np.zeros(0)),
    ],
)
def test_cast(value: object, dtype: str, expected: object) -> None:
    check(array.cast(value, dtype), np.asarray(expected), dtype)


def test_a_cast_to_the_same_type_is_the_tensor_itself() -> None:
    x = tensor([1.0])
    assert array.cast(x, "float32") is x
    assert array.cast(x, dtypes.float32) is x
    check(array.cast([1, 2], "int32"), [1, 2], "int32")


def test_texts_cannot_be_cast() -> None:
    for value, dtype in ((["1"], "int32"), ([1], "string")):
        with pytest.raises(UnimplementedError, match=r"Cast \w+ to \w+ is not supported \[Op:Cast\]"):
            array.cast(value, dtype)
    with pytest.raises(ValueError, match="unsupported type"):
        array.cast(None, "float32")
    with pytest.raises(TypeError, match="'nonsense'"):
        array.cast([1], "nonsense")


@pytest.mark.parametrize(
    ("value", "dtype", "expected"),
    [
        ([300.0, -1.0, 7.9], "uint8", [255, 0, 7]),
        ([300, -300, 5], "int8", [127, -128, 5]),
        ([-5, 5], "uint64", [0, 5]),
        ([1e20, -1e20], "int32", [2147483520, -2147483648]),
        (np.array([1e300, -1e300]), "float32", [np.finfo(np.float32).max, np.finfo(np.float32).min]),
        (np.array([6e4, -6e4], np.float16), "int32", [60000, -60000]),
        (np.array([6e4], np.float16), "uint8", [255]),
        (np.array([70000]), "float16", [65504]),
        ([1.5, np.inf], "float64", [1.5, float(np.finfo(np.float32).max)]),
        ([300 + 5j, -7j], "uint8", [255, 0]),
        (np.array([1e300 + 5j]), "complex64", [np.finfo(np.float32).max + 5j]),
    ],
)
def test_saturate_cast(value: object, dtype: str, expected: object) -> None:
    check(array.saturate_cast(value, dtype), np.asarray(expected), dtype)


def test_what_has_no_limits_is_not_saturated() -> None:
    for value, dtype in (([True], "uint8"), ([1], "bool"), (["a"], "float32")):
        with pytest.raises(TypeError, match="Cannot find minimum value of"):
            array.saturate_cast(value, dtype)


def test_bitcast_reads_the_same_bytes() -> None:
    check(array.bitcast(1.0, "int32"), 0x3F800000, "int32")
    check(array.bitcast([1.0, 2.0], "uint8"), [[0, 0, 0x80, 0x3F], [0, 0, 0, 0x40]], "uint8")
    check(array.bitcast(tensor([[1, 0], [0, 1]], "int32"), "int64"), [1, 1 << 32], "int64")
    x = tensor([1.0])
    assert np.shares_memory(array.bitcast(x, "int32")._array, x._array)
    check_refused(array.bitcast, [1.0], "int64", text="Cannot bitcast from float32 to int64")
    check_refused(array.bitcast, [1.0], "string", text="Value for attr 'type' of string")
    check_refused(array.bitcast, "text", "int32", text="[Op:Bitcast]")


def test_shapes() -> None:
    x = tensor(np.zeros((2, 3, 4)))
    check(shapes.shape(x), [2, 3, 4], "int32")
    check(shapes.shape(x, "int64"), [2, 3, 4], "int64")
    check(shapes.shape(5), np.zeros(0), "int32")
    check(shapes.size(x), 24, "int32")
    check(shapes.size([], dtypes.int64), 0, "int64")
    check(shapes.rank(x), 3, "int32")
    check(shapes.rank("text"), 0, "int32")
    first, second = shapes.shape_n([x, np.zeros(5)])
    check(first, [2, 3, 4], "int32")
    check(second, [5], "int32")
    check_refused(
        shapes.shape,
        x,
        "float32",
        text="Value for attr 'out_type' of float is not in the list of allowed values: int32, int64",
    )


def test_ensured_shapes() -> None:
    x = tensor(np.ones((2, 3)))
    for shape in ([2, 3], [2, None], [None, None], None):
        check(array.ensure_shape(x, shape), np.ones((2, 3)), "float64")
    check_refused(
        array.ensure_shape,
        x,
        [None, 4],
        text="Shape of tensor input [2,3] is not compatible with expected shape [?,4]. [Op:EnsureShape]",
    )


@pytest.mark.parametrize("dtype", ["float16", "float64", "int8", "int32", "uint64", "bool", "complex64"])
def test_tensors_like_another(dtype: str) -> None:
    x = tensor(np.array([[0, 1]]).astype(dtype))
    check(creation.zeros_like(x), [[0, 0]], dtype)
    check(creation.ones_like(x), [[1, 1]], dtype)
    check(creation.zeros_like(x, "int64"), [[0, 0]], "int64")
    check(creation.ones_like(x, dtypes.float32), [[1, 1]], "float32")


def test_texts_like_another() -> None:
    check(creation.zeros_like(["a", "b"]), np.array([b"", b""], object), "string")
    check_refused(creation.ones_like, ["a"], text="[Op:OnesLike]")


def test_what_a_tensor_is() -> None:
    assert array.is_tensor(tensor(1))
    assert not any(map(array.is_tensor, (1, [1], np.zeros(2), None, "text")))


def test_operations_run_when_they_are_called() -> None:
    assert array.executing_eagerly() is True


def test_static_values() -> None:
    value = array.get_static_value(tensor([1, 2]))
    assert isinstance(value, np.ndarray)
    assert value.tolist() == [1, 2]
    assert array.get_static_value(5) == 5


def test_every_type_can_be_cast_to_every_other() -> None:
    names = [each.name for each in dtypes._ALL if each is not dtypes.string]
    for have in names:
        for wanted in names:
            result = array.cast(tensor(np.array([0, 1, 1]).astype(have)), wanted)
            assert isinstance(result, EagerTensor)
            check(result, [0, 1, 1], wanted)
