"""Shape functions: each operation has one, and what it says is right. The shapes in tables are TensorFlow's."""

import contextlib
import json
from pathlib import Path
from typing import Any

import pytest

import allotment.tf as tf
from allotment.tf.ops.execute import run
from allotment.tf.ops.inference.common import stated
from allotment.tf.ops.table import OPERATIONS, Operation
from every_module import import_every_module
from support.tf.derivatives import flat
from support.tf.gradient_samples import samples as gradient_samples
from support.tf.graph_samples import recorded
from support.tf.static_shapes import check, tensors_of

import_every_module()


v1: Any = tf.compat.v1

#: What the caller that adds the node states the outputs of.
STATED = {
    "Const",  # its value has a type and a shape
    "Placeholder",  # its caller gives them
    *("VarHandleOp", "VariableV2"),  # the variable has them
    *("IteratorGetNext", "IteratorV2", "MakeIterator"),  # the data set has them
    *("AssignAdd", "AssignSub"),  # a variable of TensorFlow 1 that is changed is the output
    # They change an eager variable, or in a graph are made beside its handle, whose variable has type and shape.
    *("AssignAddVariableOp", "AssignSubVariableOp"),
    *(name for name in OPERATIONS if name.startswith("Resource")),
}
#: Their outputs are stated, or they change variables, or have no output; other tests run them.
NOT_SAMPLED = {
    *(STATED - {"Const", "Placeholder"}),
    *("Assign", "AssignVariableOp", "InitializedValue", "PlaceholderWithDefault", "ReadVariableOp"),
    *("Assert", "NoOp", "Print", "PrintV2", "VarIsInitializedOp", "_EagerConst"),
}


def test_every_operation_has_a_shape_function() -> None:
    assert [name for name, row in OPERATIONS.items() if row.shape is None] == []
    assert {name for name, row in OPERATIONS.items() if row.shape is stated} == STATED


def test_an_operation_without_a_shape_function_has_no_place_in_a_graph() -> None:
    with tf.Graph().as_default():
        x = tf.constant([1.0])
        with pytest.raises(NotImplementedError, match="operation Twice has no shape function"):
            run(Operation("Twice", lambda array: array * 2), (x,))
        with pytest.raises(NotImplementedError, match="the outputs of Placeholder are stated where"):
            run(OPERATIONS["Placeholder"], ())


@pytest.mark.parametrize("known", ["all", "ranks", "nothing"])
def test_what_a_graph_says_of_shapes_is_what_runs(known: str) -> None:
    graph, feeds = recorded(known)
    tensors = tensors_of(graph)
    with v1.Session(graph=graph) as session:
        check(tensors, session.run(tensors, feeds))


def test_every_operation_is_among_the_samples() -> None:
    seen = {each.type for each in recorded("all")[0].get_operations()}
    for function, arrays in gradient_samples().values():
        with tf.Graph().as_default() as graph:
            inputs = [v1.placeholder(each.dtype, each.shape) for each in arrays]
            # Loops over tensors have no place in a graph.
            with contextlib.suppress(tf.errors.OperatorNotAllowedInGraphError, ValueError):
                targets = flat(function(*inputs))
                tf.gradients(targets, inputs, [tf.ones_like(each) for each in targets])
        seen.update(each.type for each in graph.get_operations())
    assert set(OPERATIONS) - seen == NOT_SAMPLED


#: Chains of operations, the types and shapes of their placeholders, and the shapes or the exception of TensorFlow.
#: ``tests/differential/record_shapes.py`` writes the file.
RECORDED: list[Any] = json.loads(
    (Path(__file__).parents[2] / "support" / "tf" / "static_shapes.json").read_text()
)


def test_shapes_are_known_as_far_as_tensorflow_knows_them() -> None:
    for expression, operands, expected in RECORDED:
        with tf.Graph().as_default():
            names = {f"x{place}": v1.placeholder(*each) for place, each in enumerate(operands)}
            if isinstance(expected, str):
                # TensorFlow's own fault: it repeats nothing along an axis of a tensor whose rank it does not know.
                if not expression.startswith("tf.repeat("):
                    with pytest.raises((TypeError, ValueError)) as raised:
                        eval(expression, {"tf": tf, **names})
                    assert raised.type.__name__ == expected
                continue
            made = eval(expression, {"tf": tf, **names})
        made = made if isinstance(made, list | tuple) else [made]
        for tensor, shape in zip(made, expected, strict=True):
            assert tensor.shape.is_subtype_of(tf.TensorShape(shape)), (
                f"{expression} of {operands}: {tensor.shape}, {shape}"
            )


@pytest.mark.parametrize(
    "make",
    [
        lambda x: x + tf.zeros([3]),
        lambda x: tf.matmul(x, tf.zeros([3, 2])),
        lambda x: tf.reshape(tf.zeros([4, 6]), [5, -1]),
        lambda x: tf.reshape(tf.zeros([4, 6]), [5, 5]),
        lambda x: x[:, 20],
        lambda x: x[0, 0, 0],
        lambda x: x[:, ::0],
        lambda x: tf.concat([x, tf.zeros([2, 7])], 0),
        lambda x: tf.concat([x, tf.zeros([2])], 1),
        lambda x: tf.stack([x, tf.zeros([2, 7])]),
        lambda x: tf.split(x, 3, axis=1),
        lambda x: tf.split(x, [5, 5], axis=1),
        lambda x: tf.unstack(x),
        lambda x: tf.reduce_sum(x, 2),
        lambda x: tf.transpose(x, [0, 2]),
        lambda x: tf.transpose(x, [0, 1, 2]),
        lambda x: tf.expand_dims(x, 4),
        lambda x: tf.squeeze(x, 1),
        lambda x: tf.gather(x, [0], axis=2),
        lambda x: tf.tile(x, [1, 2, 3]),
        lambda x: tf.pad(x, [[1, 1]]),
        lambda x: tf.broadcast_to(x, [3, 7]),
        lambda x: tf.slice(x, [0, 25], [-1, -1]),
        lambda x: tf.nn.conv2d(x, tf.zeros([1, 1, 1, 1]), 1, "SAME"),
        lambda x: tf.nn.conv2d(tf.zeros([1, 4, 4, 3]), tf.zeros([2, 2, 2, 1]), 1, "SAME"),
        lambda x: tf.nn.max_pool2d(tf.zeros([1, 4, 4, 3]), 6, 1, "VALID"),
        lambda x: tf.nn.bias_add(x, tf.zeros([7])),
        lambda x: tf.linalg.inv(x[:10]) if x.set_shape([10, 20]) is None else None,
        lambda x: tf.einsum("ij,jk->ik", x, tf.zeros([3, 2])),
        lambda x: tf.range(5, 1),
        lambda x: tf.ensure_shape(x, [None, 7]),
    ],
)
def test_contradictions_are_errors_of_values_while_recording(make: Any) -> None:
    with tf.Graph().as_default(), pytest.raises(ValueError, match="with input shapes"):
        make(v1.placeholder(tf.float32, [None, 20]))


def test_more_that_becomes_known_of_a_shape_counts_from_then_on() -> None:
    with tf.Graph().as_default():
        x = v1.placeholder(tf.float32, [None, 3])
        lengths = tf.shape(x)
        before = tf.zeros(lengths)
        x.set_shape([5, None])
        assert (before.shape.as_list(), tf.zeros(lengths).shape.as_list()) == ([None, 3], [5, 3])
        assert tf.get_static_value(lengths).tolist() == [5, 3]


def test_long_chains_of_constants_are_followed() -> None:
    with tf.Graph().as_default():
        length = tf.constant(1)
        for _ in range(2000):
            length = length + 1
        assert tf.zeros([length]).shape == (2001,)
