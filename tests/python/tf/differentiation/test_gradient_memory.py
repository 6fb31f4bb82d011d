"""Gradients on simulated GPUs: where they are computed, and how much memory tapes hold, and for how long."""

from typing import Any

import numpy as np
import pytest

import allotment.tf as tf
from allotment.testing import runtime
from support.tf.derivatives import taped
from support.tf.gradient_samples import samples
from support.tf.replicas import MIB, pools


def held(index: int = 0) -> int:
    return int(pools()[index].stats().requested)


def array(mib: int = 1, value: float = 0.5) -> Any:
    return tf.fill([mib * MIB // 4], value)


@runtime("1:64MiB")
def test_gradients_are_those_of_the_cpu() -> None:
    found, given = {}, samples()
    for where in ("/CPU:0", "/GPU:0"):
        with tf.device(where):
            found[where] = {name: taped(function, arrays) for name, (function, arrays) in given.items()}
    for name, expected in found["/CPU:0"].items():
        for one, other in zip(expected, found["/GPU:0"][name], strict=True):
            if one is None:
                assert other is None, name
            else:
                np.testing.assert_allclose(one, other, rtol=1e-9, atol=1e-9, err_msg=name)
    assert held() == 0


@runtime("2:8MiB")
def test_gradients_are_computed_on_the_device_of_the_scope_around_gradient() -> None:
    """As TensorFlow computes them, which a run with three logical CPUs showed."""
    with tf.device("/GPU:1"):
        x = tf.ones([100])
    with tf.GradientTape(persistent=True) as tape:
        tape.watch(x)
        with tf.device("/GPU:1"):
            y = x * x
        with tf.device("/CPU:0"):
            z = y * y
    assert (y.device[-5:], z.device[-5:]) == ("GPU:1", "CPU:0")
    assert tape.gradient(z, x).device.endswith("GPU:0")
    with tf.device("/CPU:0"):
        assert tape.gradient(z, y).device.endswith("CPU:0")
        assert tape.gradient(z, x).device.endswith("CPU:0")
    with tf.device("/GPU:1"):
        assert tape.gradient(z, x).device.endswith("GPU:1")
        assert tape.jacobian(z, x).device.endswith("GPU:1")
    assert tape.gradient(z, x).numpy().tolist() == [4] * 100
    assert held(0) == 0


@runtime("1:64MiB")
def test_copies_by_method_are_recorded() -> None:
    with tf.device("/CPU:0"):
        x: Any = tf.constant([1.0, 2.0])
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = x.gpu() * x.cpu()
    assert tape.gradient(y, x).numpy().tolist() == [2, 4]


@runtime("1:64MiB")
def test_a_gradient_gives_all_memory_back_but_its_own() -> None:
    w = tf.Variable(array())
    with tf.GradientTape() as tape:
        y: Any = w
        for _ in range(10):
            y = tf.sin(y) * w
        loss = tf.reduce_sum(y)
        del y
    assert held() > 20 * MIB
    slope = tape.gradient(loss, w)
    assert held() == 2 * MIB + 4
    del slope, loss
    assert held() == MIB


@runtime("1:64MiB")
def test_a_tape_keeps_only_what_gradients_look_at() -> None:
    x = array()
    mask = x > 0
    for operation, kept in (
        (lambda y: y + 1.0, 0),
        (lambda y: -y, 0),
        (lambda y: tf.reshape(y, [-1, 2]), 0),
        (lambda y: tf.reverse(y, [0]), 0),
        (tf.identity, 0),
        (lambda y: y * 0.5, 0),
        (lambda y: tf.gather(y, [0]), 0),
        (tf.sort, 8),
        (lambda y: tf.where(mask, y, 0.0), 0),
        (tf.exp, 8),
        (tf.sigmoid, 8),
        (tf.nn.relu, 8),
        (tf.square, 7),
    ):
        before = held()
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = x
            for _ in range(8):
                y = operation(y)
            del y
        grown = held() - before
        assert kept * MIB <= grown <= kept * MIB + 128, (grown, kept)
        del tape
        assert held() == before


@runtime("1:64MiB")
def test_what_nothing_can_depend_on_any_more_is_forgotten() -> None:
    w = tf.Variable(array())
    with tf.GradientTape() as tape:
        y = tf.sin(w) * 2.0
        before = held()
        for _ in range(10):
            dropped = tf.reduce_sum(tf.square(tf.sin(w) * w))
            del dropped
        tf.constant(0.0) + w[0]
        assert held() <= before + 3 * MIB + 256, held() - before
        recorded = tape._tape
        assert recorded is not None
        assert len(recorded.steps()) < 12
        del recorded
    assert tape.gradient(y, w).numpy()[0] == np.float32(2 * np.cos(np.float32(0.5)))


@runtime("1:64MiB")
def test_going_back_frees_on_the_way() -> None:
    x = array()
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = x
        for _ in range(20):
            y = tf.exp(y * 0.01)
    kept = held()
    pools()[0].reset_peaks()
    slope = tape.gradient(y, x)
    assert slope is not None
    # A few temporaries more than what the tape held, and by far not one more for each operation.
    assert pools()[0].stats().peak_in_use < kept + 6 * MIB
    del y
    assert held() == 2 * MIB


@runtime("1:64MiB")
def test_a_persistent_tape_keeps_until_it_is_gone() -> None:
    x = array()
    with tf.GradientTape(persistent=True) as tape:
        tape.watch(x)
        y = tf.exp(tf.exp(x))
    kept = [tape.gradient(y, x), tape.gradient(y, x)]
    assert len(kept) == 2
    assert held() == 5 * MIB
    del tape, y
    assert held() == 3 * MIB


@runtime("1:64MiB")
def test_sums_of_gradients_are_one_operation(capfd: pytest.CaptureFixture[str]) -> None:
    x = array()
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = x * 1.0 + x * 2.0 + x * 3.0
    tf.debugging.set_log_device_placement(True)
    slope = tape.gradient(y, x)
    line = "op AddN in device /job:localhost/replica:0/task:0/device:GPU:0"
    assert capfd.readouterr().err.count(line) == 1
    assert slope.numpy()[0] == 6


@runtime("1:8MiB")
def test_memory_that_runs_out_on_the_way_back_leaves_the_pool_as_it_was() -> None:
    x = array(2)
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = tf.exp(x)
    with tf.device("/CPU:0"):
        ones = tf.ones([2 * MIB // 4])
    taken = array(3)
    with pytest.raises(tf.errors.ResourceExhaustedError) as refused:
        tape.gradient(y, x, output_gradients=ones)
    assert refused.value.limit == 8 * MIB
    del refused
    del tape, y, taken
    assert held() == 2 * MIB


@runtime("1:64MiB")
def test_what_is_computed_again_is_not_kept() -> None:
    x = array()

    def block(y: Any) -> Any:
        for _ in range(5):
            y = tf.exp(y * 0.1)
        return y

    for function, kept in ((block, 10), (tf.recompute_grad(block), 3)):
        before = held()
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = function(function(x))
        assert held() - before <= kept * MIB + 256, (function, held() - before)
        slope = tape.gradient(y, x)
        del y, slope
        assert held() == before
