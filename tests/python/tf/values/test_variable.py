"""Variables: initial values, assignments, shapes, devices, and copies.

Longer than 300 lines: one rule after the other of one class.
"""

import copy
import gc
import pickle
import re
import threading
import weakref
from typing import Any

import numpy as np
import pytest

from allotment.errors import InvalidArgumentError
from allotment.tf.ops.array import array, constants, creation, layout, shapes
from allotment.tf.tensors.tensor_shape import TensorShape
from allotment.tf.variables.aggregation import VariableAggregation, VariableSynchronization
from allotment.tf.variables.variable import Variable
from support.devices import CPU
from support.interpreter import FREE_THREADED
from support.tf.tensors import check, check_refused, tensor


def shares(variable: Variable, x: Any) -> bool:
    return np.shares_memory(variable.value()._array, x._array)


@pytest.mark.simulated_gpus("it is on a machine without GPUs")
def test_attributes() -> None:
    v = Variable([1.0, 2.0])
    assert (v.name, v.dtype.name, v.device) == ("Variable:0", "float32", CPU)
    assert v.shape == v.get_shape() == [2]
    assert v.trainable is True
    assert v.constraint is None
    assert (v.synchronization, v.aggregation) == (VariableSynchronization.AUTO, VariableAggregation.NONE)
    assert Variable(1.0, name="mine", trainable=False).name == "mine:0"
    assert Variable(1.0, trainable=False).trainable is False
    assert array.is_tensor(v)
    assert not isinstance(v, type(v.value()))


@pytest.mark.parametrize(
    ("value", "options", "expected", "dtype"),
    [
        ([1, 2], {}, [1, 2], "int32"),
        ([1, 2], {"dtype": "float32"}, [1, 2], "float32"),
        (np.array([1.0]), {}, [1], "float64"),
        (lambda: creation.ones([2]), {}, [1, 1], "float32"),
        ("x", {}, np.array(b"x", object), "string"),
        (True, {}, True, "bool"),
        ([1.0, 2.0], {"shape": [2]}, [1, 2], "float32"),
        ([1.0, 2.0], {"shape": TensorShape([None])}, [1, 2], "float32"),
    ],
)
def test_first_values(value: Any, options: dict[str, Any], expected: Any, dtype: str) -> None:
    v = Variable(value, **options)
    check(v.value(), expected, dtype)
    check(v.read_value(), expected, dtype)
    np.testing.assert_array_equal(v.numpy(), expected)


def test_first_values_that_are_none() -> None:
    with pytest.raises(ValueError, match=r"arg to `tf\.Variable` must be specified"):
        Variable()
    with pytest.raises(
        ValueError, match=re.escape("initial value's shape ((2,)) is not compatible with the explic")
    ):
        Variable([1, 2], shape=[3])
    with pytest.raises(ValueError, match="Tensor conversion requested dtype float32"):
        Variable(tensor([1]), dtype="float32")
    with pytest.raises(TypeError, match="Cannot convert"):
        Variable([1.5], dtype="int32")


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ([1.0, 2.0], "shape=(2,) dtype=float32, numpy=array([1., 2.], dtype=float32)>"),
        (1, "shape=() dtype=int32, numpy=1>"),
        ("x", "shape=() dtype=string, numpy=b'x'>"),
        ([[1.0], [2.0]], "shape=(2, 1) dtype=float32, numpy=\narray([[1.],\n       [2.]], dtype=float32)>"),
    ],
)
def test_printing(value: Any, text: str) -> None:
    v = Variable(value)
    assert str(v) == repr(v) == f"{v}" == f"<tf.Variable 'Variable:0' {text}"
    assert repr(v.assign(value)) == f"<tf.Variable 'UnreadVariable' {text}"


def test_assigning() -> None:
    v = Variable([1.0, 2.0])
    same = v.assign([3, 4])
    check(v.value(), [3, 4], "float32")
    assert same is not None
    same.assign_add([1.0, 1.0])
    check(v.value(), [4, 5], "float32")
    v.assign_sub(np.array([1.0, 2.0], np.float32))
    check(v.value(), [3, 3], "float32")
    v.assign(v + v)
    check(v.value(), [6, 6], "float32")
    v.assign_add(v)
    check(v.value(), [12, 12], "float32")
    for method in (v.assign, v.assign_add, v.assign_sub):
        assert method([1.0, 1.0], read_value=False) is None
    texts = Variable("a")
    texts.assign("b")
    check(texts.value(), np.array(b"b", object), "string")


def test_values_that_cannot_be_assigned() -> None:
    v = Variable([1.0, 2.0])
    with pytest.raises(
        ValueError,
        match=re.escape(
            "Cannot assign value to variable ' Variable:0': Shape mismatch.The variable shape (2,), and the assigned "
            "value shape (3,) are incompatible."
        ),
    ):
        v.assign([1.0, 2.0, 3.0])
    for method in (v.assign, v.assign_add, v.assign_sub):
        with pytest.raises(
            ValueError, match="Tensor conversion requested dtype float32 for Tensor with dtype int32"
        ):
            method(tensor([1, 2]))
        with pytest.raises(ValueError, match="unsupported type"):
            method(None)
    check_refused(
        v.assign_add,
        1.0,
        text="Cannot update variable with shape [2] using a Tensor with shape [], shapes must be equal. "
        "[Op:AssignAddVariableOp]",
    )
    for value in (True, "x"):
        check_refused(Variable([value]).assign_add, [value], text="[Op:AssignAddVariableOp]")
    check(v.value(), [1, 2], "float32")


def test_shapes_that_may_change() -> None:
    v = Variable([1.0, 2.0], shape=[None])
    v.assign([1.0])
    assert v.shape == [None]
    check(v.value(), [1], "float32")
    with pytest.raises(ValueError, match="Shape mismatch"):
        v.assign([[1.0]])
    any_shape = Variable([1.0], shape=TensorShape(None))
    any_shape.assign([[1.0, 2.0]])
    assert any_shape.shape.rank is None
    # Whether the shape is validated does not say whether it may change.
    with pytest.raises(ValueError, match="Shape mismatch"):
        Variable([1.0], validate_shape=False).assign([1.0, 2.0])


def test_what_was_read_stays() -> None:
    v = Variable([1.0, 2.0])
    before, part, scalar = v.value(), v[1], v[0] + 0
    v.assign_add([10.0, 10.0])
    v.scatter_nd_update([[0]], [99.0])
    v[1].assign(7.0)
    check(before, [1, 2], "float32")
    check(part, 2, "float32")
    check(scalar, 1, "float32")
    check(v.value(), [99, 7], "float32")


def test_tensors_are_shared_and_never_changed() -> None:
    x = tensor([1.0, 2.0])
    v = Variable(x)
    assert shares(v, x)
    w = Variable(v)
    v.assign_add([1.0, 1.0])
    assert not shares(v, x)
    check(x, [1, 2], "float32")
    check(w.value(), [1, 2], "float32")
    y = tensor([5.0, 6.0])
    v.assign(y)
    assert shares(v, y)
    v[0].assign(0.0)
    check(y, [5, 6], "float32")
    view = layout.reshape(y, [2, 1])
    v.assign(y)
    del y
    v.assign_add([1.0, 1.0])
    check(view, [[5], [6]], "float32")


@pytest.mark.simulated_gpus("the memory is not for NumPy to read")
@pytest.mark.skipif(
    FREE_THREADED, reason="without a GIL no count of references is exact: a copy takes its place"
)
def test_a_value_that_nobody_else_holds_is_changed_in_place() -> None:
    v = Variable(np.zeros(4))
    address = v.value()._array.ctypes.data
    v.assign_add(np.ones(4))
    v.assign_sub(np.full(4, 0.5))
    v.scatter_nd_add([[1]], [1.0])
    v[2:].assign([7.0, 8.0])
    assert v.value()._array.ctypes.data == address
    check(v.value(), [0.5, 1.5, 7, 8], "float64")
    held = v.numpy()
    v.assign_add(np.ones(4))
    assert held.tolist() == [0.5, 1.5, 7, 8]
    seen = v.value()
    v.assign_add(np.ones(4))
    assert v.value()._array.ctypes.data != address
    check(seen, [1.5, 2.5, 8, 9], "float64")


def test_operators_and_operations() -> None:
    v = Variable([1.0, 2.0])
    check(v + 1, [2, 3], "float32")
    check(v * v, [1, 4], "float32")
    check(v == [1.0, 0.0], [True, False], "bool")
    check(array.cast(v, "int32"), [1, 2], "int32")
    same: Any = array.cast(v, "float32")
    assert same is v
    check(array.identity(v), [1, 2], "float32")
    check(shapes.shape(v), [2], "int32")
    check(constants.convert_to_tensor(v), [1, 2], "float32")
    assert np.add(v, 1).tolist() == [2, 3]
    assert np.asarray(v, np.float64).dtype == np.float64


def test_python_s_numbers() -> None:
    assert int(Variable(3)) == 3
    assert float(Variable(3.5)) == 3.5
    assert complex(Variable(1j)) == 1j
    assert bool(Variable(1))
    assert not bool(Variable(0.0))
    assert [float(each) for each in Variable([1.0, 2.0])] == [1, 2]
    v: Any = Variable([1, 2])
    with pytest.raises(TypeError):
        len(v)
    with pytest.raises(TypeError):
        int(v)
    with pytest.raises(TypeError, match="Cannot iterate over a scalar tensor"):
        iter(Variable(1))


def test_parts() -> None:
    v = Variable([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]])
    part: Any = v[1, ::2]
    check(part, [4, 6], "float32")
    assert repr(part) == "<tf.Tensor: shape=(2,), dtype=float32, numpy=array([4., 6.], dtype=float32)>"
    check(part + part, [8, 12], "float32")
    same = part.assign([7, 8])
    check(same.value(), [[1, 2, 3], [7, 5, 8]], "float32")
    v[0].assign(9.0)
    v[..., 1].assign([[0.0], [1.0]])
    check(v.value(), [[9, 0, 9], [7, 1, 8]], "float32")
    check(v[v > 8.0], [9, 9], "float32")
    with pytest.raises(
        InvalidArgumentError, match=re.escape("Cannot assign a value of shape [2] to a slice of shape [3]")
    ):
        v[0].assign([1.0, 2.0])
    with pytest.raises(InvalidArgumentError, match="slice index 2 of dimension 0 out of bounds"):
        v[2]


def test_places() -> None:
    v = Variable([1.0, 2.0, 3.0])
    v.scatter_nd_update([[0], [2]], [5.0, 6.0])
    v.scatter_nd_add([[0], [0]], [1.0, 2.0])
    v.scatter_nd_sub([[1]], [0.5])
    check(v.value(), [8, 1.5, 6], "float32")
    check(v.gather_nd([[2], [0]]), [6, 8], "float32")
    check(v.sparse_read([1, 1]), [1.5, 1.5], "float32")
    check_refused(v.scatter_nd_add, [[3]], [1.0], text="indices[0] = [3] does not index into shape [3]")
    check_refused(v.scatter_nd_add, [[0.0]], [1.0], text="Value for attr 'Tindices' of float")
    check(v.value(), [8, 1.5, 6], "float32")


def test_references_are_keys() -> None:
    v = Variable(1.0)
    with pytest.raises(
        TypeError, match=r"^Variable is unhashable\. Instead, use variable\.ref\(\) as the key\. "
    ):
        hash(v)
    assert v.ref() == v.ref()
    assert {v.ref(): "v"}[v.ref()] == "v"
    assert v.ref().deref() is v
    assert v in (v,)


@pytest.mark.simulated_gpus("it is on a machine without GPUs")
def test_copies() -> None:
    v = Variable([1.0], name="mine", trainable=False)
    deep, shallow = copy.deepcopy(v), copy.copy(v)
    v.assign_add([1.0])
    check(deep.value(), [1], "float32")
    check(shallow.value(), [2], "float32")
    assert (deep.name, deep.trainable, deep.device) == ("mine:0", False, CPU)
    again: Variable = pickle.loads(pickle.dumps(v))
    check(again.value(), [2], "float32")
    assert (again.name, again.trainable) == ("mine:0", False)
    assert again.shape == [1]
    pair = copy.deepcopy([v, v])
    assert pair[0] is pair[1]


def test_a_variable_dies_with_its_last_reference() -> None:
    gc.disable()
    try:
        v = Variable(np.zeros(4))
        array_of = weakref.ref(v.value()._array)
        gone = weakref.ref(v)
        v.assign_add(np.ones(4))
        del v
        assert gone() is None
        assert array_of() is None
    finally:
        gc.enable()


def test_threads_add_up() -> None:
    v = Variable(np.zeros(1000))
    one = tensor(np.ones(1000))
    torn = []

    def work() -> None:
        for _ in range(200):
            v.assign_add(one, read_value=False)
            value = v.numpy()
            if (value != value[0]).any():
                torn.append(value)

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not torn
    check(v.value(), np.full(1000, 800.0), "float64")
