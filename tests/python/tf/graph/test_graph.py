"""Graphs: what they record instead of running it, and its names.

Longer than 300 lines: one rule after the other of recorded operations, on the same graph.
"""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import allotment.tf as tf
from allotment.tf.graph.nodes.node import SymbolicTensor
from support.tf import op_samples


@pytest.fixture
def graph() -> tf.Graph:
    return tf.Graph()


def names(graph: tf.Graph) -> list[str]:
    return [operation.name for operation in graph.get_operations()]


def test_operations_are_recorded_while_a_graph_is_the_default(graph: tf.Graph) -> None:
    with graph.as_default():
        a = tf.constant([[1.0, 2.0]], name="a")
        product = tf.matmul(a, a, transpose_b=True)
        assert not tf.executing_eagerly()
    assert tf.executing_eagerly()
    assert isinstance(product, SymbolicTensor)
    assert (product.name, product.op.type, product.shape) == ("MatMul:0", "MatMul", (1, 1))
    assert (str(a), repr(a)) == (
        'Tensor("a:0", shape=(1, 2), dtype=float32)',
        "<tf.Tensor 'a:0' shape=(1, 2) dtype=float32>",
    )
    assert tf.constant(1.0).numpy() == 1.0


def test_names_are_made_unique_as_tensorflow_does(graph: tf.Graph) -> None:
    with graph.as_default():
        x = tf.constant(1.0)
        tf.constant(2.0)
        tf.constant(3.0, name="CONST")
        _ = x + 1.0, x + 2.0, 2.0 * x, x / 3.0
        with tf.name_scope("tower"):
            tf.constant(1.0, name="w")
            with tf.name_scope("inner") as inner:
                tf.constant(1.0, name="w")
        with tf.name_scope("tower"):
            tf.constant(1.0, name="w")
        with tf.name_scope(inner):
            tf.constant(1.0, name="v")
    assert names(graph) == [
        *("Const", "Const_1", "CONST_2", "add/y", "add", "add_1/y", "add_1", "mul/x", "mul", "truediv/y"),
        *("truediv", "tower/w", "tower/inner/w", "tower_1/w", "tower/inner/v"),
    ]


def test_a_name_that_none_may_have_is_refused(graph: tf.Graph) -> None:
    with graph.as_default(), pytest.raises(ValueError, match=r"'\?\?' is not a valid node name"):
        tf.constant(1.0, name="??")
    with graph.as_default(), pytest.raises(ValueError, match="'a b' is not a valid root scope name"):
        tf.name_scope("a b").__enter__()


@pytest.mark.parametrize("use", [bool, iter, len, float, np.asarray])
def test_a_symbolic_tensor_is_no_python_value(graph: tf.Graph, use: object) -> None:
    with graph.as_default():
        x = tf.constant([1.0])
    with pytest.raises((TypeError, NotImplementedError)):
        use(x)  # type: ignore[operator]


def test_a_symbolic_tensor_is_equal_to_itself_alone(graph: tf.Graph) -> None:
    with graph.as_default():
        x, y = tf.constant(1.0), tf.constant(1.0)
    assert x == x
    assert x != y
    assert {x: 1}[x] == 1


def test_operators_record_in_the_graph_of_their_tensor(graph: tf.Graph) -> None:
    with graph.as_default():
        x = tf.constant([1.0, 2.0])
    total = 1.0 - x[0] * 2.0
    assert total.graph is graph


def test_a_function_outside_of_the_graph_says_what_to_do(graph: tf.Graph) -> None:
    with graph.as_default():
        x = tf.constant(1.0)
    with pytest.raises(TypeError, match=r"'Const:0'.* is out of scope .*with graph.as_default"):
        tf.sqrt(x)


def test_eager_tensors_and_tensors_of_other_graphs_are_refused(graph: tf.Graph) -> None:
    eager = tf.constant(1.0)
    with tf.Graph().as_default():
        other = tf.constant(1.0)
    with graph.as_default():
        with pytest.raises(RuntimeError, match="Attempting to capture an EagerTensor"):
            tf.sqrt(eager)
        with pytest.raises(RuntimeError, match="Attempting to capture an EagerTensor"):
            tf.add(eager, eager)
        with pytest.raises(ValueError, match="must be from the same graph"):
            tf.sqrt(other)


@pytest.mark.parametrize(
    ("make", "error", "words"),
    [
        (
            lambda: tf.constant([1.0]) + tf.constant([1]),
            TypeError,
            "has type int32 that does not match type float32",
        ),
        (
            lambda: tf.add([1.0, 2.0], [1.0, 2.0, 3.0]),
            ValueError,
            "Dimensions must be equal, but are 2 and 3 for",
        ),
        (
            lambda: tf.matmul([[1.0, 2.0]], [[1.0, 2.0]]),
            ValueError,
            "Dimensions must be equal, but are 2 and 1",
        ),
        (
            lambda: tf.matmul(v1.placeholder(tf.float32, [None, 4]), [[1.0]]),
            ValueError,
            r"are 4 and 1 for .* input shapes: \[\?,4\], \[1,1\]",
        ),
        (
            lambda: tf.sqrt(tf.constant("text")),
            TypeError,
            "not in list of allowed values: bfloat16, float16, float32",
        ),
    ],
)
def test_what_does_not_go_together_is_found_while_recording(
    graph: tf.Graph, make: object, error: type[Exception], words: str
) -> None:
    with graph.as_default(), pytest.raises(error, match=words):
        make()  # type: ignore[operator]


v1 = tf.compat.v1


@pytest.mark.parametrize(
    ("make", "shape"),
    [
        (lambda p: p + 1.0, "(None, 500)"),
        (lambda p: tf.reduce_sum(p, axis=1, keepdims=True), "(None, 1)"),
        (lambda p: tf.transpose(p), "(500, None)"),
        (lambda p: tf.matmul(p, tf.zeros([500, 30])), "(None, 30)"),
        (lambda p: tf.reshape(p, [tf.shape(p)[0], 5, -1]), "(None, 5, None)"),
        (lambda p: tf.concat([p, p], 1), "(None, 1000)"),
        (lambda p: tf.zeros([100_000, 100_000]), "(100000, 100000)"),
        (lambda p: tf.reshape(tf.zeros([100, 60]), [60, 100]), "(60, 100)"),
        (lambda p: tf.cast(p, tf.int32) // 2, "(None, 500)"),
        (lambda p: tf.reshape(tf.ones([1, 64]) * p[:, :1], [-1, 4, 4, 4]), "(None, 4, 4, 4)"),
        (lambda p: tf.reshape(tf.reshape(p[:, :64], [-1, 4, 4, 4]), [-1, 64]), "(None, 64)"),
        (lambda p: p[:20], "(None, 500)"),
        (lambda p: tf.zeros([1 << 21])[:100], "(100,)"),
        (lambda p: tf.zeros([3000, 3000])[5:1005, ::2], "(1000, 1500)"),
        (lambda p: tf.matmul(tf.zeros([3000, 4000]), tf.zeros([4000, 5000])), "(3000, 5000)"),
        (lambda p: tf.reduce_mean(tf.zeros([3000, 4000]), axis=1), "(3000,)"),
        (lambda p: tf.reshape(p, [50, 10]), "(50, 10)"),
        (lambda p: tf.shape(p), "(2,)"),
    ],
)
def test_shapes_are_known_as_far_as_inputs_tell(graph: tf.Graph, make: object, shape: str) -> None:
    with graph.as_default():
        made = make(v1.placeholder(tf.float32, [None, 500]))  # type: ignore[operator]
    assert str(made.shape) == shape


def test_what_must_be_known_and_is_not_says_so(graph: tf.Graph) -> None:
    with graph.as_default():
        p = v1.placeholder(tf.int32, [2], name="p")
        with pytest.raises(
            ValueError, match=r"value of <tf.Tensor 'Stateless.* must be known when the graph is built"
        ):
            tf.random.stateless_uniform([3], p)


def test_nodes_and_tensors_are_found_by_name(graph: tf.Graph) -> None:
    with graph.as_default():
        x = tf.constant(1.0, name="x")
    assert graph.get_tensor_by_name("x:0") is x  # type: ignore[comparison-overlap]
    assert graph.get_operation_by_name("x") is x.op
    for name, error in (("y:0", KeyError), ("x:1", KeyError), ("x", ValueError), ("x:", ValueError)):
        with pytest.raises(error):
            graph.get_tensor_by_name(name)


def test_control_dependencies_and_groups(graph: tf.Graph) -> None:
    with graph.as_default():
        x = tf.constant(1.0, name="x")
        with tf.control_dependencies([x]):
            waits = tf.no_op(name="waits")
            with tf.control_dependencies(None):
                free = tf.no_op()
        both = tf.group(waits, free, name="both")
    assert [each.name for each in waits.control_inputs] == ["x"]
    assert free.control_inputs == []
    assert {each.name for each in both.control_inputs} == {"waits", "NoOp"}


def test_a_finalized_graph_takes_no_more_nodes(graph: tf.Graph) -> None:
    graph.finalize()
    with graph.as_default(), pytest.raises(RuntimeError, match="finalized"):
        tf.constant(1.0)


def test_names_that_are_given_whole_are_made_unique(graph: tf.Graph) -> None:
    with graph.as_default():
        x = tf.constant([1.0, 2.0])
        first, second = x[0], x[1]
    assert (first.name, second.name) == ("strided_slice:0", "strided_slice_1:0")


def test_eager_variables_have_no_place_in_a_graph(graph: tf.Graph) -> None:
    v = tf.Variable(1.0)
    with graph.as_default():
        for use in (lambda: v + 1.0, v.value, lambda: v.assign(2.0)):
            with pytest.raises(RuntimeError, match="made eagerly has no place in a graph"):
                use()
    assert v.numpy() == 1.0


@pytest.mark.parametrize(
    ("make", "shape"),
    [
        (lambda p: tf.unique(p)[0], "(None,)"),
        (lambda p: tf.boolean_mask(tf.zeros([3, 2]), tf.greater(p, 0)), "(None, 2)"),
        (lambda p: tf.math.segment_sum(tf.zeros([3, 2]), p), "(None, 2)"),
        (lambda p: tf.range(p[0]), "(None,)"),
        (lambda p: tf.range(10, 2, -3), "(3,)"),
        (lambda p: tf.range(5.0), "(5,)"),
        (lambda p: tf.range(p[0], p[1]), "(None,)"),
        (lambda p: tf.range(p[0], p[1], p[2]), "(None,)"),
        (lambda p: tf.pad(tf.zeros([3, 4]), [[1, 0], [2, 1]]), "(4, 7)"),
        (lambda p: tf.linalg.inv(tf.zeros([2, 3, 3])), "(2, 3, 3)"),
        (lambda p: tf.math.floordiv(p, p), "(3,)"),
        (lambda p: tf.linalg.svd(v1.placeholder(tf.float32, [None, 4]), compute_uv=False), "(None,)"),
    ],
)
def test_shapes_that_depend_on_elements_are_unknown(graph: tf.Graph, make: object, shape: str) -> None:
    with graph.as_default():
        made = make(v1.placeholder(tf.int32, [3]))  # type: ignore[operator]
    assert str(made.shape) == shape


def test_every_sample_is_the_same_in_a_graph() -> None:
    eager, samples = op_samples.inputs(), op_samples.samples()
    expected = {name: tf.nest.flatten(sample(eager)) for name, sample in samples.items()}
    with tf.Graph().as_default():
        symbolic = op_samples.inputs()
        recorded = {name: tf.nest.flatten(sample(symbolic)) for name, sample in samples.items()}
        found = v1.Session(config=v1.ConfigProto()).run(recorded)
    for name, values in expected.items():
        for value, got, symbol in zip(values, found[name], recorded[name], strict=True):
            np.testing.assert_array_equal(np.asarray(value), got, err_msg=name)
            assert symbol.shape.is_compatible_with(got.shape), name
            assert symbol.dtype.as_numpy_dtype == got.dtype, name


def test_unknown_batches_train_and_drop_out(graph: tf.Graph) -> None:
    with graph.as_default():
        images = v1.placeholder(tf.float32, [None, 8, 8, 1])
        labels = v1.placeholder(tf.int64, [None])
        hidden = tf.nn.relu(tf.nn.conv2d(images, tf.ones([3, 3, 1, 4]), strides=[1, 1, 1, 1], padding="SAME"))
        flat = tf.reshape(tf.nn.max_pool2d(hidden, 2, 2, "VALID"), [-1, 4 * 4 * 4])
        logits = tf.matmul(tf.nn.dropout(flat, 0.5), tf.ones([64, 10]))
        losses = tf.nn.sparse_softmax_cross_entropy_with_logits(labels=labels, logits=logits)
        found = v1.Session(config=v1.ConfigProto()).run(
            [losses, tf.argmax(logits, 1)], {images: np.ones((5, 8, 8, 1)), labels: [0, 1, 2, 3, 4]}
        )
    assert str(logits.shape) == "(None, 10)"
    assert [each.shape for each in found] == [(5,), (5,)]


def test_what_chooses_must_be_known(graph: tf.Graph) -> None:
    with graph.as_default():
        x = v1.placeholder(tf.float32, [])
        choices: dict[str, Callable[[], object]] = {
            "tf.cond": lambda: tf.cond(x > 0.0, lambda: x, lambda: -x),
            "tf.case": lambda: tf.case([(x > 0.0, lambda: x)]),
            "tf.switch_case": lambda: tf.switch_case(tf.cast(x, tf.int32), [lambda: x]),
            "tf.while_loop": lambda: tf.while_loop(lambda i: i < x, lambda i: i + 1.0, [tf.constant(0.0)]),
        }
        for name, choose in choices.items():
            with pytest.raises(tf.errors.OperatorNotAllowedInGraphError, match=f"{name} chooses .*tf.where"):
                choose()
        # What follows from constants is chosen while the graph is built.
        found = [
            tf.cond(tf.constant(2) > 1, lambda: tf.constant(1.0), lambda: tf.constant(2.0)),
            tf.while_loop(lambda i: i < 10, lambda i: i + 3, [tf.constant(0)])[0],
            tf.map_fn(lambda each: each * 2.0, tf.constant([1.0, 2.0])),
            tf.scan(tf.add, tf.constant([1.0, 2.0, 3.0])),
        ]
        with v1.Session(config=v1.ConfigProto()) as session:
            assert [np.asarray(each).tolist() for each in session.run(found)] == [
                1.0,
                12,
                [2.0, 4.0],
                [1.0, 3.0, 6.0],
            ]


@pytest.mark.parametrize("shape", [[], None])
def test_an_axis_may_be_a_number_that_only_a_session_knows(graph: tf.Graph, shape: list[int] | None) -> None:
    rows = np.array([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]], np.float32)
    with graph.as_default(), v1.Session() as session:
        x, axis = v1.placeholder(tf.float32, [2, 3]), v1.placeholder(tf.int32, shape)
        total = tf.reduce_sum(x, axis)
        (back,) = v1.gradients(total * total, [x])
        made, found = session.run([total, back], {x: rows, axis: 1})
    assert made.tolist() == [6, 15]
    assert found.tolist() == [[12, 12, 12], [30, 30, 30]]


def test_a_mask_may_be_counted_from_the_end_of_an_unknown_shape(graph: tf.Graph) -> None:
    with graph.as_default(), v1.Session() as session:
        x = v1.placeholder(tf.float32)
        kept = tf.boolean_mask(x, [False, True], axis=-1)
        (back,) = v1.gradients(kept, [x])
        made, found = session.run([kept, back], {x: [3.0, 4.0]})
    assert made.tolist() == [4]
    assert found.tolist() == [0, 1]


def test_names_of_the_other_sort() -> None:
    with tf.Graph().as_default() as graph:
        c = tf.constant(1.0, name="c")
        tf.add(c, c)
    for name in ("zzz", "", "^c"):
        with pytest.raises(ValueError, match=r"looks like an \(invalid\) Operation name, not a Tensor"):
            graph.get_tensor_by_name(name)
    for name in ("c:0", "c:1", "zzz:0", "c:x"):
        with pytest.raises(ValueError, match=f"'{name}' appears to refer to a Tensor, not a Operation"):
            graph.get_operation_by_name(name)
    consumers: list[Any] = c.consumers()
    assert [each.name for each in consumers] == ["Add", "Add"]
