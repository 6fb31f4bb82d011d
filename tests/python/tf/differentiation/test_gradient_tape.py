"""Gradient tapes: what is recorded, what can be asked, and how often."""

import threading
from typing import Any

import numpy as np
import pytest

import allotment.tf as tf
from allotment.devices.dispatch import thread
from allotment.tf.differentiation import gradient_tape


@pytest.fixture(autouse=True)
def warnings_from_the_start(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gradient_tape, "_given", type(gradient_tape._given)())


def test_trainable_variables_are_watched_when_they_are_read() -> None:
    w, frozen = tf.Variable(3.0), tf.Variable(2.0, trainable=False)
    with tf.GradientTape() as tape:
        y = w * w * frozen
    assert tape.watched_variables() == (w,)
    assert [each if each is None else each.numpy() for each in tape.gradient(y, [w, frozen])] == [12, None]
    assert tape.watched_variables() == (w,)


def test_nothing_is_watched_by_itself_if_asked_not_to() -> None:
    w, v = tf.Variable(3.0), tf.Variable(2.0)
    with tf.GradientTape(watch_accessed_variables=False) as tape:
        tape.watch(w)
        y = w * v
    assert len(tape.watched_variables()) == 1
    assert [each if each is None else each.numpy() for each in tape.gradient(y, [w, v])] == [2, None]


def test_a_tensor_counts_once_it_is_watched() -> None:
    x, w = tf.constant(2.0), tf.Variable(3.0)
    with tf.GradientTape() as tape:
        y = x * w
    assert tape.gradient(y, x) is None
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = x * w
    assert tape.gradient(y, x).numpy() == 3


def test_variables_that_are_not_trainable_can_be_watched() -> None:
    frozen = tf.Variable(3.0, trainable=False)
    with tf.GradientTape() as tape:
        tape.watch(frozen)
        y = frozen * frozen
    assert tape.gradient(y, frozen).numpy() == 6


def test_a_target_that_is_its_own_source_has_the_gradient_one() -> None:
    x, w = tf.constant([2.0, 3.0]), tf.Variable(3.0)
    with tf.GradientTape(persistent=True) as tape:
        pass
    assert tape.gradient(x, x).numpy().tolist() == [1, 1]
    assert tape.gradient(w, w).numpy() == 1


def test_a_tape_is_used_once_unless_it_is_persistent() -> None:
    w = tf.Variable(3.0)
    with tf.GradientTape() as tape:
        y = w * w
    tape.gradient(y, w)
    text = r"A non-persistent GradientTape can only be used to compute one set of gradients \(or jacobians\)"
    for ask in (tape.gradient, tape.jacobian, tape.batch_jacobian):
        with pytest.raises(RuntimeError, match=text):
            ask(y, w)
    with tf.GradientTape(persistent=True) as tape:
        y = w * w
    assert [tape.gradient(y, w).numpy() for _ in range(3)] == [6, 6, 6]


def test_a_tape_that_was_never_entered_has_no_gradients() -> None:
    with pytest.raises(RuntimeError, match="non-persistent GradientTape"):
        tf.GradientTape().gradient(tf.constant(1.0), tf.constant(1.0))
    with pytest.raises(RuntimeError, match="not recording"):
        tf.GradientTape().watch(tf.constant(1.0))


def test_targets_and_sources_have_any_structure() -> None:
    w, v = tf.Variable(2.0), tf.Variable(5.0)
    with tf.GradientTape() as tape:
        targets = [w * 2, {"b": w * v}]
    found = tape.gradient(targets, (w, {"v": v, "w": w}))
    assert isinstance(found, tuple)
    assert (found[0].numpy(), found[1]["v"].numpy(), found[1]["w"].numpy()) == (7, 2, 7)


def test_output_gradients_weigh_targets() -> None:
    w = tf.Variable([1.0, 2.0])
    with tf.GradientTape(persistent=True) as tape:
        y, z = w * w, w * 3
    weight = tf.constant([10.0, 100.0])
    assert tape.gradient(y, w, output_gradients=weight).numpy().tolist() == [20, 400]
    # Where there are fewer of them, or a `None`, it is one.
    assert tape.gradient([y, z], w, output_gradients=[weight]).numpy().tolist() == [23, 403]
    assert tape.gradient([y, z], w, output_gradients=[None, weight]).numpy().tolist() == [32, 304]
    for wrong in (tf.constant([1.0, 2.0, 3.0]), tf.constant([1.0, 2.0], tf.float64)):
        with pytest.raises(tf.errors.InvalidArgumentError, match="type and shape of its target"):
            tape.gradient(y, w, output_gradients=wrong)


def test_unconnected_sources_have_none_or_zeros() -> None:
    w, other = tf.Variable(2.0), tf.Variable([1.0, 2.0])
    with tf.GradientTape(persistent=True) as tape:
        y = w * w
    assert tape.gradient(y, other) is None
    for zero in ("zero", tf.UnconnectedGradients.ZERO):
        found = tape.gradient(y, [other, tf.constant(1), w], unconnected_gradients=zero)
        assert [each.numpy().tolist() for each in found] == [[0, 0], 0, 4]
    with pytest.raises(ValueError, match="Unknown value for unconnected_gradients: 'nonsense'"):
        tape.gradient(y, w, unconnected_gradients="nonsense")


def test_what_is_no_tensor_is_refused() -> None:
    w = tf.Variable(2.0)
    with tf.GradientTape(persistent=True) as tape:
        y = w * w
        with pytest.raises(
            ValueError, match=r"Passed in object 3.0 of type 'float', not tf.Tensor or tf.Variable"
        ):
            tape.watch(3.0)
    with pytest.raises(TypeError, match="Argument `target` should be a list or nested structure of Tensors"):
        tape.gradient(None, w)
    with pytest.raises(TypeError, match=r"a source of gradients must be a tensor or a variable, not 3.0"):
        tape.gradient(y, [w, 3.0])
    with pytest.raises(TypeError, match=r"a target of gradients must be a tensor or a variable, not 3.0"):
        tape.gradient(3.0, w)


def test_whole_numbers_have_no_gradients(caplog: pytest.LogCaptureFixture) -> None:
    i, w = tf.constant(3), tf.Variable(2.0)
    with tf.GradientTape(persistent=True) as tape:
        tape.watch(i)
        y, whole = i * i, tf.cast(w, tf.int32)
    assert tape.gradient(y, i) is None
    assert tape.gradient(whole, w) is None
    text = "The dtype of the watched tensor must be floating (e.g. tf.float32), got tf.int32"
    assert [record.message for record in caplog.records] == [text]


def test_a_persistent_tape_records_its_own_gradients_inside_of_the_block(
    caplog: pytest.LogCaptureFixture,
) -> None:
    w = tf.Variable(3.0)
    with tf.GradientTape(persistent=True) as tape:
        y = w**3
        first = tape.gradient(y, w)
        second = tape.gradient(first, w)
    assert (first.numpy(), second.numpy(), tape.gradient(second, w).numpy()) == (27, 18, 6)
    assert len(caplog.records) == 1
    assert caplog.records[0].message.startswith(
        "Calling GradientTape.gradient on a persistent tape inside its context"
    )


def test_a_variable_is_what_it_was_when_it_was_read() -> None:
    w = tf.Variable(3.0)
    with tf.GradientTape() as tape:
        y = w * w
        w.assign(10.0)
        z = y * w
    # 2 * 3 * 10 + 9
    assert tape.gradient(z, w).numpy() == 69


def test_assigning_does_not_connect_a_variable() -> None:
    x, v = tf.constant(2.0), tf.Variable(1.0)
    with tf.GradientTape() as tape:
        tape.watch(x)
        v.assign(x * x)
        y = v * 3
    found = tape.gradient(y, [x, v])
    assert found[0] is None
    assert found[1].numpy() == 3


@pytest.mark.parametrize(
    "read",
    [
        lambda v: v.value(),
        lambda v: v.read_value(),
        lambda v: tf.convert_to_tensor(v),
        lambda v: v[:],
        lambda v: v.gather_nd([[0], [1]]),
        lambda v: v.sparse_read([0, 1]),
        lambda v: tf.stack(list(v)),
        lambda v: tf.identity(v),
        lambda v: v + 0,
        lambda v: 0 + v,
    ],
)
def test_all_ways_to_read_a_variable_are_recorded(read: Any) -> None:
    v = tf.Variable([2.0, 3.0])
    with tf.GradientTape() as tape:
        y = tf.reduce_sum(read(v) * [1.0, 10.0])
    assert tf.convert_to_tensor(tape.gradient(y, v)).numpy().tolist() == [1, 10]


def test_a_variable_is_one_under_all_its_names() -> None:
    v = tf.Variable(2.0)
    with tf.GradientTape() as tape:
        again = v.assign_add(1.0)
        assert again is not None
        y = again * v
    assert tape.gradient(y, [v, again])[0].numpy() == 6


def test_each_thread_has_tapes_of_its_own() -> None:
    w = tf.Variable(3.0)
    found: list[Any] = []

    def work() -> None:
        assert thread.state.recorder is None
        y = w * w
        with tf.GradientTape() as inner:
            z = w * 5
        found.extend([tape.gradient(y, w), inner.gradient(z, w)])

    with tf.GradientTape(persistent=True) as tape:
        worker = threading.Thread(target=work)
        worker.start()
        worker.join()
    assert found[0] is None
    assert found[1].numpy() == 5


def test_complex_gradients_point_uphill() -> None:
    z = tf.constant(1 + 2j)
    with tf.GradientTape(persistent=True) as tape:
        tape.watch(z)
        square, size = z * z, tf.abs(z) ** 2
    assert tape.gradient(square, z).numpy() == 2 - 4j
    np.testing.assert_allclose(tape.gradient(size, z).numpy(), 2 + 4j)


def test_a_tape_whose_gradient_failed_is_used_up() -> None:
    @tf.custom_gradient
    def failing(x: Any) -> Any:
        def back(upstream: Any) -> Any:
            raise ZeroDivisionError("no gradient today")

        return x * 2.0, back

    for way in ("gradient", "jacobian"):
        w = tf.Variable([3.0])
        with tf.GradientTape() as tape:
            y = failing(w)
        with pytest.raises(ZeroDivisionError):
            getattr(tape, way)(y, w)
        with pytest.raises(RuntimeError, match="non-persistent GradientTape"):
            getattr(tape, way)(y, w)
        assert tape.watched_variables() == (w,)
        # A mistake in the call itself costs nothing.
        with tf.GradientTape() as tape:
            y = w * w
        with pytest.raises(TypeError):
            getattr(tape, way)(None, w)
        assert getattr(tape, way)(y, w).numpy().ravel().tolist() == [6]


@pytest.mark.parametrize(
    ("function", "first"),
    [
        (tf.nn.relu, [0, 1, 1]),
        (tf.nn.relu6, [0, 1, 0]),
        (lambda x: tf.nn.leaky_relu(x, 0.25), [0.25, 1, 1]),
    ],
)
def test_the_second_gradient_of_lines_with_a_corner_is_zero_and_is_there(function: Any, first: Any) -> None:
    x = tf.Variable([-1.0, 2.0, 7.0])
    with tf.GradientTape() as outer:
        with tf.GradientTape() as inner:
            y = function(x)
        slope = inner.gradient(y, x)
    assert slope.numpy().tolist() == first
    assert outer.gradient(slope, x).numpy().tolist() == [0, 0, 0]
    # Of what comes from above it is no constant: the derivative of f(x)² is 2·f·f', the second 2·f'².
    with tf.GradientTape() as outer:
        with tf.GradientTape() as inner:
            y = function(x) ** 2
        slope = inner.gradient(y, x)
    assert outer.gradient(slope, x).numpy().tolist() == [2 * each * each for each in first]
