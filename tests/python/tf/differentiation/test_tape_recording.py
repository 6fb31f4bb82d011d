"""When a tape records: nested tapes, stopped recording, resets, and exceptions."""

import pytest

import allotment.tf as tf
from allotment.devices.dispatch import thread


def test_asking_inside_of_the_block_ends_recording() -> None:
    w = tf.Variable(3.0)
    with tf.GradientTape() as tape:
        assert tape.gradient(w * w, w).numpy() == 6
        assert thread.state.recorder is None
    assert thread.state.recorder is None


def test_nested_tapes_give_derivatives_of_higher_order() -> None:
    x = tf.constant(2.0)
    with tf.GradientTape() as third:
        third.watch(x)
        with tf.GradientTape() as second:
            second.watch(x)
            with tf.GradientTape() as first:
                first.watch(x)
                y = x**4
            slope = first.gradient(y, x)
        curve = second.gradient(slope, x)
    assert (slope.numpy(), curve.numpy(), third.gradient(curve, x).numpy()) == (32, 48, 48)


def test_tapes_side_by_side_watch_what_each_was_told() -> None:
    x, y = tf.constant(2.0), tf.constant(3.0)
    with tf.GradientTape() as one, tf.GradientTape() as other:
        one.watch(x)
        other.watch(y)
        z = x * y
    assert one.gradient(z, [x, y])[1] is None
    found = other.gradient(z, [x, y])
    assert found[0] is None
    assert found[1].numpy() == 2


def test_recording_can_be_stopped_for_a_while() -> None:
    w = tf.Variable(3.0)
    with tf.GradientTape() as tape:
        y = w * w
        with tape.stop_recording():
            z = w * y
            assert thread.state.recorder is None
        total = y + z
    assert tape.gradient(total, w).numpy() == 6


def test_stopping_a_tape_that_does_not_record_is_an_error() -> None:
    tape = tf.GradientTape()
    with pytest.raises(RuntimeError, match="Trying to stop recording a tape which is not recording"):
        tape.stop_recording().__enter__()
    with tape:
        pass
    with pytest.raises(ValueError, match="Tape is not recording"):
        tape.stop_recording().__enter__()
    with pytest.raises(ValueError, match="Tape is not recording"):
        tape.reset()


def test_a_reset_forgets_what_was_recorded() -> None:
    w = tf.Variable(3.0)
    with tf.GradientTape() as tape:
        y = w * w
        tape.reset()
        z = y + 2 * w
    assert tape.gradient(z, w).numpy() == 2


def test_a_tape_can_be_entered_again_but_not_twice_at_once() -> None:
    w = tf.Variable(3.0)
    tape = tf.GradientTape(persistent=True)
    with tape:
        y = w * w
        with pytest.raises(ValueError, match="Tape is still recording, This can happen"):
            tape.__enter__()
    with tape:
        z = y * y
    assert tape.gradient(z, w).numpy() == 108


def test_an_exception_ends_recording() -> None:
    def fail() -> None:
        with tf.GradientTape():
            raise KeyError

    with pytest.raises(KeyError):
        fail()
    assert thread.state.recorder is None
