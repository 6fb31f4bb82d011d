"""``tf.function``: called eagerly, with arguments and results as a compiled function has them."""

import numpy as np
import pytest

import allotment.tf as tf
from allotment.tf.tf_function import warn_jit_compile_ignored


def test_numbers_and_arrays_become_tensors() -> None:
    @tf.function
    def call(x, times=2):  # type: ignore[no-untyped-def]
        """Say something."""
        assert isinstance(x, tf.Tensor)
        assert isinstance(times, int)
        return x * times, {"three": 3.0, "none": None}

    made, others = call(np.ones(2, np.float32), times=4)
    assert made.numpy().tolist() == [4, 4]
    assert isinstance(others["three"], tf.Tensor)
    assert others["none"] is None
    assert (call.__name__, call.__doc__) == ("call", "Say something.")
    assert call.python_function(tf.ones([1]))[0].numpy().tolist() == [2]


def test_methods_and_arguments_of_the_decorator() -> None:
    class Scaled:
        def __init__(self, by: float) -> None:
            self.by = by

        @tf.function(reduce_retracing=True)
        def __call__(self, x):  # type: ignore[no-untyped-def]
            return x * self.by

    assert float(Scaled(2.0)(tf.constant(3.0))) == 6
    assert float(Scaled(5.0)(tf.constant(3.0))) == 15


def test_variables_are_changed_at_each_call_and_gradients_go_through() -> None:
    v = tf.Variable(1.0)

    @tf.function
    def step():  # type: ignore[no-untyped-def]
        with tf.GradientTape() as tape:
            loss = v * v
        v.assign_sub(0.25 * tape.gradient(loss, v))
        return loss

    assert [float(step()) for _ in range(3)] == [1.0, 0.25, 0.0625]
    with tf.GradientTape() as tape:
        squared = tf.function(lambda x: x * x)(v)
    assert float(tape.gradient(squared, v)) == 0.25


def test_a_signature_converts_and_refuses() -> None:
    @tf.function(input_signature=[tf.TensorSpec([None], tf.float32)])
    def call(x):  # type: ignore[no-untyped-def]
        return x + 1

    assert call([1, 2]).numpy().tolist() == [2, 3]
    for bad in (tf.constant([1, 2]), tf.zeros([2, 2])):
        with pytest.raises(TypeError, match="call takes TensorSpec"):
            call(bad)
    with pytest.raises(TypeError, match="takes 1 arguments by its input_signature, and got 2"):
        call([1.0], 2)


def test_jit_compile_is_warned_of_once(caplog: pytest.LogCaptureFixture) -> None:
    warn_jit_compile_ignored.cache_clear()
    made = [tf.function(lambda x: x + 1, jit_compile=True), tf.function(jit_compile=True)(lambda x: x + 1)]
    assert [call(1).numpy() for call in made] == [2, 2]
    assert tf.function(lambda: 3, jit_compile=False)().numpy() == 3
    assert caplog.messages == [
        "jit_compile=True has no effect: functions run eagerly here, none is compiled."
    ]


def test_what_is_not_offered_says_so() -> None:
    with pytest.raises(NotImplementedError, match="get_concrete_function"):
        tf.function(lambda: 1).get_concrete_function()
    with pytest.raises(TypeError, match="takes a function, not 3"):
        tf.function(3)  # type: ignore[arg-type]


def test_a_signature_of_more_arguments_than_the_function_takes() -> None:
    pair = [tf.TensorSpec([], tf.int32)] * 2
    with pytest.raises(
        TypeError, match="input_signature contains 1 extra type constraints: <lambda> takes 1 arg"
    ):
        tf.function(lambda x: x, input_signature=pair)
    assert tf.function(lambda *args: args[0] + args[1], input_signature=pair)(1, 2) == 3
    assert tf.function(lambda x, y=5: x + y, input_signature=pair)(1, 2) == 3
