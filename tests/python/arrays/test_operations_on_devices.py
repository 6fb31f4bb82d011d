"""Every row of the operation table runs on a strict device array, or is on the list of those that run on the host."""

import contextlib
import contextvars
import functools
from collections import defaultdict
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import allotment.tf as tf
from allotment.arrays.numpy import LIBRARY
from allotment.tf.dispatch import thread
from allotment.tf.ops.host_only import HOST_ONLY, READERS
from allotment.tf.ops.table import OPERATIONS, Host, Operation, StatefulArgument
from allotment.tf.ops.variables.resources import Storage
from allotment.tf.tensors.dtype import as_dtype
from every_module import import_every_module
from support.arrays.operation_calls import Call, recording
from support.arrays.storage_calls import STORAGE_CALLS, StorageCall
from support.arrays.strict_device import StrictDevice, StrictDeviceArray, StrictLibrary
from support.tf.derivatives import flat
from support.tf.gradient_samples import samples as gradient_samples
from support.tf.graph_samples import recorded
from support.tf.static_shapes import tensors_of

import_every_module()
v1: Any = tf.compat.v1

#: They make no array, return what a caller gives them, or are no kernels of arrays: a graph's own nodes.
NOT_RUN = {
    *("Assert", "Const", "InitializedValue", "IteratorGetNext", "IteratorV2", "MakeIterator", "NoOp"),
    *(
        "Placeholder",
        "PlaceholderWithDefault",
        "Print",
        "ReadVariableOp",
        "VarHandleOp",
        "VarIsInitializedOp",
    ),
    *("VariableV2", "_EagerConst"),
    # Assignments return the array they are given; the change of a slice needs a place in the storage's own terms.
    *("Assign", "AssignAdd", "AssignSub", "AssignVariableOp", "ResourceStridedSliceAssign"),
}
#: Runs in host memory with arrays of the host, as TensorFlow's does; or has inputs that only the host has.
ON_THE_HOST = {
    name
    for name, row in OPERATIONS.items()
    if row.host in (Host.OUTPUT, Host.ALL) or "GPU" not in row.kinds or name in ("Add", "StringFormat")
}


@functools.cache
def calls() -> dict[str, list[Call]]:
    """Return the calls of kernels that the samples of the tests make, by the row."""
    found: list[Call] = []
    with recording(found):
        graph, feeds = recorded("all")
        with v1.Session(graph=graph) as session:
            session.run(tensors_of(graph), feeds)
        for function, arrays in gradient_samples().values():
            _run_gradients(function, arrays)
        _more()
    by_row: dict[str, list[Call]] = defaultdict(list)
    for call in found:
        if not any(isinstance(each, np.ndarray) and each.dtype.hasobject for each in call.args):
            by_row[call.row.name].append(call)
    return by_row


def _more() -> None:
    """Call operations whose samples all are int32, which stays on the host, with other types."""
    numbers = tf.constant([2, 0, 1, 2], tf.int64)
    seed = tf.constant([1, 2], tf.int64)
    tf.range(0.0, 3.0, 0.5), tf.range(tf.constant(4, tf.int64))
    tf.math.invert_permutation(numbers[:3])
    tf.sequence_mask(numbers), tf.sequence_mask(numbers, 5), tf.sequence_mask(numbers[:0])
    for values in (numbers, tf.constant([2.5, 1.0, 2.5]), numbers[:0], tf.constant([7, 7, 9], tf.uint8)):
        tf.unique(values), tf.unique_with_counts(values)
    tf.random.split(seed, 3), tf.random.fold_in(seed, 3), tf.random.stateless_uniform([2], seed)
    # Types for which a GPU has no atomic operation.
    rows = {dtype: tf.cast([[3, 1], [2, 5], [4, 4]], dtype) for dtype in (tf.int8, tf.float16, tf.complex64)}
    for dtype, data in rows.items():
        for reduce in (tf.math.unsorted_segment_sum, tf.math.unsorted_segment_max)[
            : 1 + (not dtype.is_complex)
        ]:
            reduce(data, tf.constant([1, -1, 1], tf.int64), 3)


def _run_gradients(function: Callable[..., Any], arrays: Any) -> None:
    with tf.Graph().as_default() as graph:
        inputs = [v1.placeholder(each.dtype, each.shape) for each in arrays]
        # Loops over tensors have no place in a graph.
        with contextlib.suppress(tf.errors.OperatorNotAllowedInGraphError, ValueError):
            targets = flat(function(*inputs))
            tf.gradients(targets, inputs, [tf.ones_like(each) for each in targets])
    with v1.Session(graph=graph) as session, contextlib.suppress(tf.errors.OpError):
        session.run(tensors_of(graph), dict(zip(inputs, arrays, strict=True)))


def leaves(value: Any) -> list[Any]:
    return [leaf for each in value for leaf in leaves(each)] if isinstance(value, list | tuple) else [value]


def in_context(device: StrictDevice | None, function: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    context = contextvars.Context()
    context.run(np.seterr, all="ignore")
    if device is not None:
        context.run(LIBRARY.set, StrictLibrary(device))
    return context.run(function, *args, **kwargs)


def on(device: StrictDevice, row: Operation, value: Any) -> Any:
    """Return an argument where the executor brings it: single numbers that say what to make stay on the host."""
    return device.put(value) if isinstance(value, np.ndarray) and not row.reads_anywhere else value


def runs_on_device(call: Call) -> bool:
    """Whether the executor runs the call in a GPU's memory: int32 stays in the host's."""
    arrays = [each for each in call.args if isinstance(each, np.ndarray)]
    return not (call.row.host is Host.INT32 and arrays and arrays[0].dtype == np.int32)


def check(call: Call, device: StrictDevice) -> list[str]:
    """Make a call with NumPy's arrays and with strict ones and compare; return what the kernel read on the host."""
    row = call.row
    try:
        expected = in_context(None, row.function, *map(copied, call.args), **call.kwargs)
    except (ValueError, np.linalg.LinAlgError):
        return []
    arrays = [on(device, row, each) for each in call.args]
    if row.fault is not None:
        # A check may read elements, and copies nothing else.
        assert in_context(device, row.fault, *arrays, **call.kwargs) is None
    device.reads.clear()
    result = in_context(device, row.function, *arrays, **call.kwargs)
    compare(result, expected, device)
    return list(device.reads)


def copied(value: Any) -> Any:
    return value.copy() if isinstance(value, np.ndarray) else value


def compare(result: Any, expected: Any, device: StrictDevice) -> None:
    for made, wanted in zip(leaves(result), leaves(expected), strict=True):
        assert isinstance(made, StrictDeviceArray), f"{type(made)} is not on the device"
        assert made.device is device
        array = made._inner
        assert array.dtype == np.asarray(wanted).dtype
        if array.dtype.kind in "fc":
            tolerance = 2e-3 if array.dtype == np.float16 else 1e-6 if array.dtype.char in "fF" else 1e-12
            np.testing.assert_allclose(array, wanted, rtol=tolerance, atol=tolerance)
        else:
            np.testing.assert_array_equal(array, wanted)


ROWS = sorted(set(OPERATIONS) - NOT_RUN - ON_THE_HOST - {each.name for each in STORAGE_CALLS})


@pytest.mark.parametrize("name", [each for each in ROWS if each not in HOST_ONLY])
def test_a_row_runs_on_the_device(name: str) -> None:
    made = [call for call in calls()[name] if runs_on_device(call)]
    reads = {tuple(check(call, StrictDevice())) for call in made}
    assert made, "no sample"
    assert (reads != {()}) == (name in READERS), reads


@pytest.mark.parametrize("name", sorted(HOST_ONLY))
def test_a_row_that_is_listed_for_the_host_cannot_run_on_the_device(name: str) -> None:
    failed = 0
    for call in calls()[name]:
        try:
            check(call, StrictDevice())
        except (TypeError, NotImplementedError, AttributeError, AssertionError):
            failed += 1
    assert failed, "it runs: take it off the list"


@pytest.mark.parametrize("call", STORAGE_CALLS, ids=lambda call: f"{call.name}, {call.first.dtype}")
def test_a_row_that_changes_a_variable_runs_on_the_device(call: StorageCall) -> None:
    row, device = OPERATIONS[call.name], StrictDevice()

    def run(put: Callable[[Any], Any], where: StrictDevice | None) -> Any:
        def storage(array: Any) -> Storage:
            return Storage(put(array), as_dtype(array.dtype), None, None)  # type: ignore[arg-type]

        kept = () if call.kept is None else (tuple(map(storage, call.kept)), call.numbers)
        args = (*map(put, call.arrays), *kept, storage(call.first))
        if row.fault is not None:
            assert in_context(where, row.fault, *args) is None
        device.reads.clear()
        return [in_context(where, row.function, *args), *(each.array for group in kept[:1] for each in group)]

    compare(run(device.put, device), run(np.copy, None), device)
    assert device.reads == []


def test_rows_that_do_not_run_are_known() -> None:
    assert set(HOST_ONLY) <= set(ROWS)
    assert set(READERS) <= set(ROWS) - set(HOST_ONLY)
    assert NOT_RUN.isdisjoint(calls().keys() - {"Const", "Placeholder"})
    for name in ON_THE_HOST & calls().keys():
        row = OPERATIONS[name]
        for call in calls()[name]:
            if row.host is Host.OUTPUT and not isinstance(call.args[-1], StatefulArgument):
                device = StrictDevice()
                arrays = [on(device, row, each) for each in call.args]
                made = leaves(in_context(device, row.function, *arrays, **call.kwargs))
                # Shapes are read of arrays on the device, and no element is.
                assert all(isinstance(each, np.ndarray) for each in made)
                assert device.reads == []
    assert thread.state.graph is None
