"""Shape-like operations on simulated GPUs: where results are, and that no byte is lost."""

import pytest

from support.devices import run_on_gpus

SETUP = """
import numpy as np
from allotment.tf import random, strings
from allotment.devices.context import context
from allotment.devices.device_scope import device
from allotment.tf.ops import operators
from allotment.tf.ops.array import array, constants, creation, joining, layout, padding, reordering, repetition
from allotment.tf.ops.array import shapes, splitting
from allotment.tf.ops.indexing import gathering, indicators, masking, scattering, searching, slicing, sorting
from allotment.tf.ops.linalg import matrices
from allotment.tf.ops.math import sequences
from allotment.tf.ops.random import initializers
from allotment.tf.tensors.tensor import EagerTensor
from allotment.tf.variables.variable import Variable
def requested(index=0):
    return [each.pool for each in context().ready().devices if each.kind == "GPU"][index].stats().requested
def tensors(result):
    if isinstance(result, EagerTensor):
        return [result]
    return [tensor for each in result for tensor in tensors(each)] if isinstance(result, list | tuple) else []
x = constants.constant(np.arange(24.0).reshape(2, 3, 4))
y = constants.constant(np.arange(6.0).reshape(2, 3))
m = constants.constant([[True, False, True], [False, False, True]])
v = Variable(np.arange(6.0).reshape(2, 3))
"""

CALLS = """
array.identity(x) + 0
array.cast(x, "float32")
array.cast(x, "int32")
array.cast(constants.constant([1, 2]), "float32")
array.saturate_cast(x, "uint8")
creation.zeros_like(x)
creation.ones_like(x, "float32")
layout.transpose(x, [2, 0, 1])
reordering.reverse(x, [0, 2])
reordering.roll(x, [1, 2], [0, 1])
reordering.reverse_sequence(y, [2, 1], seq_axis=1)
repetition.broadcast_to(y, [4, 2, 3])
repetition.tile(y, [2, 3])
repetition.repeat(y, [1, 2], axis=0)
padding.pad(y, [[1, 0], [2, 1]])
padding.pad(y, [[1, 1], [0, 2]], "REFLECT")
padding.pad(y, [[1, 1], [0, 2]], "SYMMETRIC")
repetition.meshgrid([1.0, 2.0], [3.0])
joining.concat([y, y], 1)
joining.stack([y, y], 2)
splitting.unstack(x, axis=1)
splitting.split(x, [1, 2], 1)
splitting.split(x, 2, 2)
slicing.slice_(x, [0, 1, 0], [-1, 1, 2])
slicing.strided_slice(x, [0, 0], [2, 3], [1, 2])
x[0]
x[:, 1, ::-1]
x[..., None]
y[m]
gathering.gather(x, [2, 0], axis=1)
gathering.gather(y, [[0, 1], [2, 2]], axis=1, batch_dims=1)
gathering.gather_nd(x, [[0, 1], [1, 2]])
gathering.gather_nd(y, [[2], [0]], batch_dims=1)
masking.boolean_mask(x, m)
masking.where(y)
masking.where(m, y, 0.0)
scattering.scatter_nd([[0], [3]], [1.0, 2.0], [5])
scattering.tensor_scatter_nd_add(y, [[0]], [[1.0, 2.0, 3.0]])
sequences.range(5.0)
sequences.linspace(0.0, 1.0, 7)
matrices.eye(3, batch_shape=[2])
indicators.one_hot([0, 2], 3)
indicators.sequence_mask([1, 2], 4)
sorting.sort(x, 1, "DESCENDING")
sorting.top_k(y, 2)
searching.unique(constants.constant([1.0, 2.0, 1.0]))
searching.searchsorted(y, y)
random.uniform([7])
random.uniform([7], 0, 5, "int32")
random.normal([7], 1.0, 2.0)
random.truncated_normal([7, 7])
random.shuffle(y)
random.categorical(y, 5)
random.poisson([3], y)
random.gamma([3], y, 2.0, "float64")
random.stateless_normal([7], [1, 2])
random.Generator.from_seed(1).uniform([7])
initializers.constant_initializer(3.0)([2, 2])
v + y
v[0]
(v.assign_add(y), v.assign(y), v.scatter_nd_add([[0]], [[1.0, 2.0, 3.0]]), v[1].assign([0.0, 0.0, 0.0]))
(x == x, x != 1.0, -x, abs(x), x / 2, x // 2, x % 2, x ** 2)
""".strip().splitlines()


def test_results_are_on_the_gpu_and_their_memory_goes_with_them() -> None:
    done = run_on_gpus(
        "2:1GiB",
        SETUP
        + f"""
for call in {CALLS!r}:
    before = requested(0), requested(1)
    result = eval(call)
    for tensor in tensors(result):
        assert tensor.device.endswith("GPU:0"), call
    held = sum(tensor._array.nbytes for tensor in tensors(result) if tensor.backing_device.endswith("GPU:0"))
    if "v." not in call:
        assert requested(0) - before[0] == held, (call, requested(0) - before[0], held)
    assert requested(1) == before[1]
    del result
    tensor = None
    assert requested(0) == before[0], call
    with device("/GPU:1"):
        there = eval(call)
        for tensor in tensors(there):
            assert tensor.device.endswith("GPU:1"), call
    del there
    tensor = None
    assert (requested(0), requested(1)) == before, call
""",
    )
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize(
    ("call", "expected"),
    [
        # Shapes and counts are the host's, and so is what is made of int32.
        ("shapes.shape(x)", "CPU:0"),
        ("shapes.size(x, 'int64')", "CPU:0"),
        ("shapes.rank(x)", "CPU:0"),
        ("sequences.range(5)", "CPU:0"),
        ("creation.zeros_like(constants.constant([1, 2]))", "CPU:0"),
        ("constants.constant([1, 2])[0]", "CPU:0"),
        ("array.identity(constants.constant([1]))", "CPU:0"),
        ("array.cast(x, 'int32')", "GPU:0"),
        ("random.uniform([3], 0, 5, 'int32')", "GPU:0"),
        ("sequences.range(5.0)", "GPU:0"),
        ("sorting.argsort(y)", "GPU:0"),
        ("masking.where(y)", "GPU:0"),
    ],
)
def test_whose_memory_holds_a_result(call: str, expected: str) -> None:
    done = run_on_gpus("1:1GiB", SETUP + f"made = {call}\nprint(made.device[-5:], made.backing_device[-5:])")
    assert done.returncode == 0, done.stderr
    assert done.stdout.split() == ["GPU:0", expected]


def test_copies_share_memory_only_where_they_stay() -> None:
    done = run_on_gpus(
        "2:1GiB",
        SETUP
        + """
before = requested(0), requested(1)
made = [array.identity(x), layout.expand_dims(x, 0), layout.squeeze(x), array.stop_gradient(x),
        array.ensure_shape(x, None), array.bitcast(x, "int64"), layout.reshape(x, [-1])]
assert (requested(0), requested(1)) == before
with device("/GPU:1"):
    there = array.identity(x)
    wider = layout.expand_dims(x, 0)
assert (requested(0), requested(1) - before[1]) == (before[0], 2 * 192)
assert there.backing_device.endswith("GPU:1") and wider.backing_device.endswith("GPU:1")
del x
assert requested(0) == before[0]           # what was made of it holds it
del made
assert requested(0) == before[0] - 192
del there, wider
assert requested(1) == before[1]
""",
    )
    assert done.returncode == 0, done.stderr


def test_results_that_do_not_fit() -> None:
    done = run_on_gpus(
        "1:8MiB",
        SETUP
        + """
from allotment.errors import ResourceExhaustedError
big = creation.ones([1 << 20])
before = requested()
for call in ("repetition.tile(big, [2])", "joining.concat([big, big], 0)", "array.cast(big, 'float64')",
             "random.uniform([1 << 22])", "random.normal([1 << 22], seed=1)", "big[::-1] + reordering.roll(big, 1, 0)",
             "sequences.range(5e6)", "sorting.sort(big)", "gathering.gather(big, np.zeros(1 << 21, int))"):
    try:
        eval(call)
    except ResourceExhaustedError as error:
        assert "OOM when allocating " in str(error), call
        assert error.limit == 8 << 20
        del error
    else:
        raise AssertionError(call)
    assert requested() == before, call
""",
    )
    assert done.returncode == 0, done.stderr
