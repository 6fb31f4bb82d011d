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
from support.tf import op_samples
from support.tf.derivatives import flat
from support.tf.gradient_samples import samples as gradient_samples
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


def _more(t: dict[str, Any]) -> list[Any]:
    """Calls of operations that no sample has."""
    x, i, n, m = t["x"], t["i"], t["n"], t["m"]
    texts = tf.strings.as_string(i)
    pooled = tf.gradients(tf.nn.max_pool2d(m, 2, 2, "SAME") ** 2, m)
    draw = tf.random
    return [
        *(tf.saturate_cast(x, tf.uint8), tf.bitcast(x, tf.uint8), tf.one_hot(n, 4), tf.one_hot(i, 3, axis=1)),
        *(tf.histogram_fixed_width(x, [0.0, 1.0], 7), tf.histogram_fixed_width_bins(x, [0.0, 1.0], 7)),
        *(tf.math.invert_permutation([1, 0, 2]), tf.searchsorted(x, x), tf.searchsorted(x, x, "right")),
        *(
            tf.sequence_mask(n),
            tf.sequence_mask(i, 5),
            tf.shape_n([x, x]),
            tf.unique(n),
            tf.unique_with_counts(n),
        ),
        *(tf.unravel_index(n, [2, 3]), tf.broadcast_dynamic_shape(tf.shape(x), [1, 1]), tf.where(x > 0.5)),
        *(
            tf.strings.join([texts, texts]),
            tf.strings.length(texts),
            tf.strings.lower(texts),
            tf.strings.upper(texts),
        ),
        *(tf.strings.strip(texts), tf.strings.to_number(texts), tf.strings.substr(texts, 0, 1), texts),
        *(
            tf.strings.reduce_join(texts, 0),
            tf.strings.regex_replace(texts, "1", "2"),
            tf.strings.format("{}", [x]),
        ),
        *(tf.strings.regex_full_match(texts, "1"), tf.add(texts, texts), tf.timestamp()),
        *(
            draw.categorical(x, 5),
            draw.gamma([2], x),
            draw.poisson([2], x),
            draw.shuffle(x),
            draw.normal([2, 3]),
        ),
        *(draw.uniform([2, 3]), draw.uniform([2], 0, 3, tf.int32), draw.truncated_normal(tf.shape(x))),
        *(draw.split([1, 2], 3), draw.fold_in([1, 2], 3), draw.stateless_categorical(x, 5, [1, 2])),
        *(draw.stateless_uniform([2], [1, 2], None, None, tf.int32), draw.stateless_uniform([2], [1, 2])),
        *(draw.stateless_uniform([2], [1, 2], 0, 9, tf.int32), draw.stateless_normal([2], [1, 2])),
        *(tf.gradients(pooled, m), tf.gradients(tf.random.gamma([2], x), x)),
        *(
            tf.reverse_sequence(x, n, 1),
            tf.rank(x),
            v1.where(n > 0, x, x),
            v1.where(x > 0.5, x, x),
            tf.linalg.band_part(x, 1, 0),
            tf.nn.avg_pool2d(m, 2, 1, "SAME"),
        ),
    ]


def recorded(known: str) -> tuple[Any, dict[Any, Any]]:
    """A graph of all samples whose placeholders know all lengths, ``ranks`` or ``nothing``; and what to feed."""
    eager = op_samples.inputs()
    with tf.Graph().as_default() as graph:
        inputs = {}
        for name, each in eager.items():
            shape = each.shape if known == "all" else [None] * len(each.shape) if known == "ranks" else None
            inputs[name] = v1.placeholder(each.dtype, shape)
        for name, call in op_samples.samples().items():
            # Matrices whose rank is not known have no largest singular value here.
            if (name, known) != ("norm, 2", "nothing"):
                call(inputs)
        _more(inputs)
    return graph, {inputs[name]: each.numpy() for name, each in eager.items()}


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
