"""Where variables live, what they log, and what memory they take; on simulated GPUs."""

import sys
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from allotment import Pool, errors
from allotment.devices.device_scope import device
from allotment.testing import runtime
from allotment.tf import debugging
from allotment.tf.ops.array.constants import constant
from allotment.tf.ops.array.creation import ones
from allotment.tf.variables.variable import Variable
from support.interpreter import FREE_THREADED
from support.tf.replicas import pools

KIB = 1 << 10


def pool(index: int = 0) -> Pool:
    return pools()[index]


def used(index: int = 0) -> int:
    # What was asked for: a chunk that is used again may be a little larger.
    return pool(index).stats().requested


@runtime("2:64MiB")
def test_a_variable_stays_on_its_device() -> None:
    with device("/GPU:1"):
        v = Variable(ones([256 * KIB]))
    assert v.device.endswith("GPU:1")
    assert (used(0), used(1)) == (0, 1024 * KIB)
    with device("/CPU:0"):
        v.assign(ones([256 * KIB]))
        v.assign_add(ones([256 * KIB]))
        v[0].assign(5.0)
        v.scatter_nd_update([[1]], [6.0])
        w = v + 1.0
        r = v.value()
        i = v.read_value()
    assert v.device.endswith("GPU:1")
    assert (used(0), used(1)) == (0, 1024 * KIB)
    assert w.device.endswith("CPU:0")
    assert r.device.endswith("GPU:1")
    assert i.device.endswith("CPU:0")
    assert v.numpy()[:3].tolist() == [5, 6, 2]
    assert (v + 1.0).device.endswith("GPU:0")
    with device("/GPU:9"):
        v.assign(w)  # nothing has to be placed in the scope
    del v, w, r, i
    assert (used(0), used(1)) == (0, 0)


@pytest.mark.skipif(
    FREE_THREADED, reason="without a GIL no count of references is exact: a copy takes its place"
)
@runtime("2:64MiB")
def test_assigning_frees_the_old_value_at_once() -> None:
    v = Variable(ones([256 * KIB]))
    x = ones([256 * KIB])
    assert used() == 2048 * KIB
    v.assign(x)  # shared
    assert used() == 1024 * KIB
    v.assign_add(x)  # copied, for somebody else has it
    assert used() == 2048 * KIB
    pool().reset_peaks()
    v.assign_add(x)  # in place
    assert used() == pool().stats().peak_requested == 2048 * KIB
    held = v.value()
    assert used() == 2048 * KIB
    v.assign_sub(x)
    assert used() == 3072 * KIB
    del held, x
    assert used() == 1024 * KIB
    v[3].assign(7.0)
    assert used() == 1024 * KIB
    part = v[3]
    assert used() == 1024 * KIB + 4
    del part, v
    assert used() == 0


@runtime("2:64MiB")
def test_integers_and_texts_stay_in_host_memory() -> None:
    i, s = Variable([1, 2]), Variable(["a"])
    assert i.device.endswith("GPU:0")
    assert s.device.endswith("CPU:0")
    assert i.value().backing_device.endswith("CPU:0")
    assert used() == 0
    i.assign_add([1, 1])
    i[0].assign(9)
    assert i.numpy().tolist() == [9, 3]
    assert used() == 0
    assert i.value().device.endswith("GPU:0")
    j = Variable(np.array([1, 2]))
    assert j.dtype.name == "int64"
    assert used() == 16


@pytest.mark.skipif(
    FREE_THREADED, reason="without a GIL no count of references is exact: a copy takes its place"
)
@runtime("2:64MiB")
def test_a_value_that_does_not_fit_leaves_the_old_one() -> None:

    v = Variable(ones([6 * KIB * KIB]))  # 24 MiB of 64
    held = v.value()
    more = ones([6 * KIB * KIB])
    with pytest.raises(errors.ResourceExhaustedError, match=r"\[Op:AssignAddVariableOp\]"):
        v.assign_add(more)
    assert used() == 48 * KIB * KIB
    assert v.numpy()[0] == 1.0
    del held
    v.assign_add(more)
    assert v.numpy()[0] == 2.0


@runtime("2:64MiB")
def test_log_lines(capfd: pytest.CaptureFixture[str]) -> None:
    v = Variable([1.0, 2.0])
    debugging.set_log_device_placement(True)
    x: Any = constant([1.0, 2.0])
    calls: dict[str, Callable[[], object]] = {
        "new": lambda: Variable(x),
        "assign": lambda: v.assign(x),
        "add": lambda: v.assign_add(x),
        "sub": lambda: v.assign_sub(x),
        "use": lambda: v + v,
        "value": v.value,
        "numpy": v.numpy,
        "print": lambda: str(v),
        "part": lambda: v[0],
        "place": lambda: v.scatter_nd_update(constant([[0]]), constant([9.0])),
    }
    for name, call in calls.items():
        print(f"## {name}", file=sys.stderr)
        call()
    with device("/GPU:1"):
        print("## elsewhere", file=sys.stderr)
        v * x
    text = capfd.readouterr().err
    lines = [line.removesuffix("/job:localhost/replica:0/task:0/device:GPU:0") for line in text.splitlines()]
    told: dict[str, list[str]] = {}
    for line in lines[lines.index("## new") :]:
        if line.startswith("## "):
            told[line[3:]] = []
        elif "_EagerConst" not in line:
            told[list(told)[-1]].append(line.removeprefix("Executing op ").removesuffix(" in device "))
    assert told == {
        "new": ["VarHandleOp", "AssignVariableOp"],
        "assign": ["AssignVariableOp"],
        "add": ["AssignAddVariableOp"],
        "sub": ["AssignSubVariableOp"],
        "use": ["ReadVariableOp", "ReadVariableOp", "AddV2"],
        "value": ["ReadVariableOp"],
        "numpy": ["ReadVariableOp", "Identity"],
        "print": ["ReadVariableOp", "Identity"],
        "part": ["ReadVariableOp", "StridedSlice"],
        "place": ["ResourceScatterNdUpdate"],
        "elsewhere": ["ReadVariableOp", "Mul in device /job:localhost/replica:0/task:0/device:GPU:1"],
    }


@runtime("2:64MiB")
def test_a_device_that_is_not_there() -> None:

    x = constant([1.0])
    tails: dict[str, Callable[[], object]] = {
        "device:GPU:1].": lambda: Variable([1.0]),
        "device:GPU:1]. [Op:VarHandleOp] name: Variable/": lambda: Variable(x),
        "device:GPU:1]. [Op:VarHandleOp] name: w/": lambda: Variable(x, name="w"),
    }
    for tail, make in tails.items():
        with pytest.raises(errors.InvalidArgumentError) as caught, device("/GPU:7"):
            make()
        text = str(caught.value)
        assert "Could not satisfy device specification" in text
        assert "device:GPU:7'." in text
        assert text.endswith(tail)
