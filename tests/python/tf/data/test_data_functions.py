"""Functions that data sets call: with what, where, and what is known of their results."""

from typing import Any

import pytest

import allotment.tf as tf
from support.child import run_program
from support.tf.data_sets import listed, spec

Dataset = tf.data.Dataset


def test_functions_are_called_with_each_element() -> None:
    assert listed(Dataset.range(3).map(lambda x: (x, x * 2))) == [(0, 0), (1, 2), (2, 4)]
    assert listed(Dataset.zip(Dataset.range(2), Dataset.range(2)).map(lambda x, y: x + y)) == [0, 2]
    assert listed(Dataset.from_tensor_slices({"a": [1]}).map(lambda d: d["a"])) == [1]
    assert listed(Dataset.range(2).map(lambda x: [x, 1.0], num_parallel_calls=tf.data.AUTOTUNE)) == [
        (0, 1.0),
        (1, 1.0),
    ]
    assert listed(Dataset.range(5).filter(lambda x: x % 2 == 0)) == [0, 2, 4]
    with pytest.raises(ValueError, match=r"must return a `tf\.bool` scalar tensor"):
        list(Dataset.range(2).filter(lambda x: x))
    with pytest.raises(ValueError, match="should not be empty"):
        list(Dataset.range(2).map(lambda x: None))
    not_a_function: Any = 3
    for method in (Dataset.range(2).map, Dataset.range(2).filter):
        with pytest.raises(ValueError, match=r"Argument `func` must be a callable\. Received func=3"):
            method(not_a_function)


def test_functions_run_on_the_cpu_and_leave_scopes_alone() -> None:
    done = run_program("""
import allotment
import allotment.tf as tf
allotment.testing.simulate_gpus("1:16MiB")
places = []
def place(x):
    places.append(tf.constant(1.0).device[-5:])
    return x + 1
with tf.device("/GPU:0"):
    for element in tf.data.Dataset.range(3).map(place).batch(2).enumerate().filter(lambda i, x: i >= 0):
        assert tf.constant(1.0).device.endswith("GPU:0")
        assert element[1].backing_device.endswith("CPU:0")
assert places == ["CPU:0"] * 3
assert tf.config.experimental.get_memory_info("GPU:0")["current"] == 0
""")
    assert done.returncode == 0, done.stderr


def test_what_a_function_makes_is_known_beforehand() -> None:
    called = []

    def function(x: Any) -> Any:
        called.append(x)
        return {"sum": tf.reduce_sum(x), "more": tf.cast(x, tf.float32)}

    made = Dataset.range(4).batch(2).map(function)
    assert made.element_spec == {"sum": spec(), "more": spec(None, dtype=tf.float32)}
    assert made.batch(3).element_spec["more"] == spec(None, None, dtype=tf.float32)
    # One that looks at values does not run in a graph: the first element tells.
    by_value = Dataset.range(4).map(lambda x: tf.ones([int(x) + 1]))
    assert by_value.element_spec == spec(1, dtype=tf.float32)
    with pytest.raises(ValueError, match="there is no element"):
        _ = Dataset.range(0).map(lambda x: tf.ones([int(x)])).element_spec
