"""Iterators over data sets in graphs. What is expected was observed on TensorFlow."""

from typing import Any

import numpy as np
import pytest

import allotment.tf as tf
from support.child import run_program
from support.devices import run_on_gpus

v1, Dataset = tf.compat.v1, tf.data.Dataset


@pytest.fixture
def session() -> Any:
    with tf.Graph().as_default(), v1.Session() as sess:
        yield sess


def test_an_iterator_that_starts_by_itself(session: Any) -> None:
    iterator = v1.data.make_one_shot_iterator(Dataset.range(5).batch(2))
    element = iterator.get_next()
    assert (element.op.type, element.op.name, element.shape.as_list()) == (
        "IteratorGetNext",
        "IteratorGetNext",
        [None],
    )
    assert iterator.get_next("foo").op.name == "foo"
    assert (iterator.output_types, iterator.output_shapes.as_list()) == (tf.int64, [None])
    assert [session.run(element).tolist() for _ in range(3)] == [[0, 1], [2, 3], [4]]
    for _ in range(2):
        with pytest.raises(tf.errors.OutOfRangeError, match="End of sequence") as raised:
            session.run(element)
        assert raised.value.op is element.op
    with v1.Session() as other:
        assert other.run(element).tolist() == [0, 1]
    with pytest.raises(ValueError, match="The iterator does not have an initializer"):
        iterator.initializer  # noqa: B018 - to be refused
    with pytest.raises(RuntimeError, match="only supports Python-style iteration in eager mode"):
        iter(Dataset.range(3))


def test_an_element_is_drawn_once_in_each_run(session: Any) -> None:
    iterator = v1.data.make_one_shot_iterator(
        Dataset.range(4).map(lambda x: {"x": x, "y": tf.cast(x, tf.float32) / 2})
    )
    one, two = iterator.get_next(), iterator.get_next()
    found = session.run([one, one, two])
    assert found[0] == found[1]
    assert sorted((found[0]["x"], found[2]["x"])) == [0, 1]
    assert session.run(one["y"]) == 1.0


def test_an_iterator_over_what_is_fed(session: Any) -> None:
    x = v1.placeholder(tf.float32, [None, 3])
    made = (
        Dataset.from_tensor_slices({"x": x, "y": x[:, 0]})
        .map(lambda row: row | {"x": row["x"] * 2})
        .repeat(2)
    )
    iterator = v1.data.make_initializable_iterator(made.batch(2))
    element = iterator.get_next()
    assert element["x"].shape.as_list() == [None, 3]
    with pytest.raises(tf.errors.FailedPreconditionError, match="the iterator has not been initialized"):
        session.run(element)
    with pytest.raises(tf.errors.InvalidArgumentError, match="You must feed a value for placeholder"):
        session.run(iterator.initializer)
    fed = np.ones((3, 3), np.float32)
    session.run(iterator.initializer, {x: fed})
    fed[:] = 9
    assert [session.run(element)["x"].tolist() for _ in range(3)] == [[[2.0] * 3] * 2] * 3
    session.run(iterator.initializer, {x: np.zeros((1, 3))})
    assert session.run(element)["y"].tolist() == [0.0, 0.0]
    assert iterator.initializer.type == "MakeIterator"
    with pytest.raises(ValueError, match="Cannot capture a placeholder"):
        v1.data.make_one_shot_iterator(made)
    z = v1.placeholder(tf.float32, [None])
    both = v1.data.make_initializable_iterator(Dataset.from_tensor_slices((x, z)))
    with pytest.raises(tf.errors.InvalidArgumentError, match="Dimensions 1 and 2 are not compatible"):
        session.run(both.initializer, {x: np.ones((1, 3)), z: [1, 2]})
    with pytest.raises(tf.errors.FailedPreconditionError, match="the iterator has not been initialized"):
        session.run(both.get_next())


def test_an_iterator_for_several_data_sets(session: Any) -> None:
    iterator = v1.data.Iterator.from_structure(tf.int64, tf.TensorShape([]))
    element = iterator.get_next()
    first, second = (
        iterator.make_initializer(Dataset.range(2)),
        iterator.make_initializer(Dataset.range(10, 13)),
    )
    for start, values in ((first, [0]), (second, [10, 11]), (first, [0, 1])):
        session.run(start)
        assert [session.run(element) for _ in values] == values
    with pytest.raises(TypeError, match="Incompatible dataset elements"):
        iterator.make_initializer(Dataset.from_tensors(1.0))
    with pytest.raises(NotImplementedError, match="from_string_handle is not offered"):
        v1.data.Iterator.from_string_handle("a")


def test_elements_train_a_variable(session: Any) -> None:
    w = v1.get_variable("w", [2, 1], initializer=v1.zeros_initializer())
    made = (
        Dataset.from_tensor_slices((np.eye(2, dtype=np.float32), tf.constant([[1.0], [-2.0]])))
        .repeat()
        .batch(2)
    )
    x, y = v1.data.make_one_shot_iterator(made).get_next()
    step = v1.train.GradientDescentOptimizer(0.5).minimize(tf.reduce_sum((tf.matmul(x, w) - y) ** 2))
    session.run(v1.global_variables_initializer())
    session.run(step)
    assert session.run(w).tolist() == [[1.0], [-2.0]]


def test_eagerly() -> None:
    assert v1.data.make_one_shot_iterator(Dataset.range(3)).get_next().numpy() == 0
    assert Dataset.range(3).make_one_shot_iterator().get_next().numpy() == 0
    with pytest.raises(RuntimeError, match="is not supported in eager mode"):
        v1.data.make_initializable_iterator(Dataset.range(3))
    assert v1.data.get_output_types(Dataset.range(3)) is tf.int64
    assert v1.data.get_output_shapes(Dataset.range(3)).as_list() == []


def test_programs_of_tensorflow_1() -> None:
    done = run_program("""
import allotment.tf.v1 as tf
import numpy as np
d = tf.data.Dataset.from_tensor_slices(np.arange(6, dtype="f")).map(lambda x: tf.cast(x, tf.float64) * 2).batch(2)
assert isinstance(d, tf.data.Dataset)
element = d.make_one_shot_iterator().get_next()
fed = tf.placeholder(tf.float32, [None])
iterator = tf.data.Dataset.from_tensor_slices(fed).map(tf.square).make_initializable_iterator()
square = iterator.get_next()
nodes = len(tf.get_default_graph().get_operations())
with tf.Session() as sess:
    assert sess.run(element).tolist() == [0.0, 2.0]
    sess.run(iterator.initializer, {fed: [2.0, 3.0]})
    assert [sess.run(square), sess.run(square)] == [4.0, 9.0]
# Functions of data sets add nothing to the graph.
assert len(tf.get_default_graph().get_operations()) == nodes
""")
    assert done.returncode == 0, done.stderr


def test_elements_are_made_in_host_memory() -> None:
    done = run_on_gpus(
        "1:64MiB",
        """
import allotment.tf as tf
import numpy as np
v1 = tf.compat.v1
with tf.Graph().as_default(), v1.Session() as sess:
    made = tf.data.Dataset.from_tensor_slices(np.ones((4, 1000), "f")).map(lambda x: x + 1).batch(2)
    element = v1.data.make_one_shot_iterator(made).get_next()
    with tf.device("/GPU:0"):
        total = tf.reduce_sum(tf.reshape(element, [-1]))
    assert sess.run(total) == 4000 and sess.run(total) == 4000
""",
    )
    assert done.returncode == 0, done.stderr
