"""``compat.v1``: functions with the arguments that TensorFlow 1 gave them."""

import inspect
from collections.abc import Callable
from contextlib import nullcontext
from typing import Any

import numpy as np
import pytest

import allotment.tf as tf
import allotment.tf.v1 as tf1
from support.tf.tensors import check_refused

v1 = tf.compat.v1


def test_dropout_is_told_what_to_keep() -> None:
    x = tf.ones([1000])
    for made in (v1.nn.dropout(x, 0.8, seed=1), v1.nn.dropout(x, rate=0.2, seed=1)):
        kept = np.asarray(made)
        assert set(kept.tolist()) == {0.0, 1.25}
        assert 700 < np.count_nonzero(kept) < 900
    assert v1.nn.dropout(x, 1.0).numpy().tolist() == x.numpy().tolist()
    refused: list[dict[str, Any]] = [
        {},
        {"keep_prob": 0.5, "rate": 0.5},
        {"keep_prob": 0.0},
        {"keep_prob": 1.5},
    ]
    for args in refused:
        with pytest.raises(ValueError, match="keep_prob"):
            v1.nn.dropout(x, **args)


def test_what_dropout_keeps_may_be_fed() -> None:
    with tf1.Graph().as_default(), tf1.Session() as session:
        keep = tf1.placeholder_with_default(1.0, [])
        x = tf1.placeholder(tf1.float32, [None, 10])
        made = tf1.nn.dropout(x, keep_prob=keep)
        given = np.ones((100, 10), np.float32)
        assert session.run(made, {x: given}).tolist() == given.tolist()
        half = session.run(made, {x: given, keep: 0.5})
        assert set(half.reshape(-1).tolist()) == {0.0, 2.0}
        assert 400 < np.count_nonzero(half) < 600


OLD: dict[str, tuple[Callable[..., Any], dict[str, Any], Callable[..., Any], dict[str, Any]]] = {
    "softmax": (v1.nn.softmax, {"dim": 0}, tf.nn.softmax, {"axis": 0}),
    "log_softmax": (v1.nn.log_softmax, {"dim": 0}, tf.nn.log_softmax, {"axis": 0}),
    "moments": (
        v1.nn.moments,
        {"axes": [0], "keep_dims": True},
        tf.nn.moments,
        {"axes": [0], "keepdims": True},
    ),
}


@pytest.mark.parametrize("name", OLD)
def test_old_names_of_arguments(name: str) -> None:
    old, old_names, new, names = OLD[name]
    x = tf.constant([[1.0, 2.0], [3.0, 5.0]])
    for one, other in zip(old(x, **old_names), new(x, **names), strict=True):
        assert np.array_equal(one, other)


def test_functions_with_other_arguments() -> None:
    x, w = tf.constant([[1.0, -2.0]]), tf.constant([[1.0, 0.0], [0.0, 1.0]])
    assert v1.nn.xw_plus_b(x, w, [1.0, 1.0]).numpy().tolist() == [[2.0, -1.0]]
    assert v1.nn.in_top_k([[0.1, 0.9], [0.8, 0.2]], [1, 1], 1).numpy().tolist() == [True, False]
    images, filters = tf.ones([1, 3, 3, 1]), tf.ones([2, 2, 1, 1])
    made = v1.nn.conv2d(images, filter=filters, strides=[1, 1, 1, 1], padding="VALID")
    assert made.numpy().reshape(-1).tolist() == [4.0] * 4
    pooled = v1.nn.max_pool(value=images, ksize=[1, 3, 3, 1], strides=[1, 1, 1, 1], padding="VALID")
    assert pooled.numpy().reshape(-1).tolist() == [1.0]
    losses = v1.nn.softmax_cross_entropy_with_logits_v2(labels=[[0.0, 1.0]], logits=[[0.0, 0.0]], dim=-1)
    assert np.allclose(losses, np.log(2))
    entropies = v1.nn.softmax_cross_entropy_with_logits
    with tf.GradientTape() as tape:
        labels, logits = tf.constant([[0.0, 1.0]]), tf.constant([[0.0, 0.0]])
        tape.watch([labels, logits])
        losses = entropies(labels=labels, logits=logits, dim=-1)
    by_labels, by_logits = tape.gradient(losses, [labels, logits])
    assert by_labels is None
    assert np.allclose(by_logits, [[0.5, -0.5]])
    assert np.allclose(entropies(labels=[[0.0], [1.0]], logits=[[0.0], [0.0]], axis=0), np.log(2))
    with pytest.raises(ValueError, match="Cannot specify both 'dim' and 'axis'"):
        entropies(labels=labels, logits=logits, dim=0, axis=1)


def test_quotients_of_the_first_releases() -> None:
    assert v1.div(7, 2).numpy() == 3
    assert v1.div(-7, 2).numpy() == -4
    assert v1.div(7.0, 2.0).numpy() == 3.5


def test_random_numbers_by_their_old_names() -> None:
    v1.random.set_random_seed(3)
    first = v1.random_normal([4]).numpy().tolist()
    v1.set_random_seed(3)
    assert v1.random.random_normal([4]).numpy().tolist() == first
    drawn = v1.multinomial([[0.0, -50.0]], 5, seed=1, output_dtype=tf.int32)
    assert (drawn.dtype, drawn.numpy().tolist()) == (tf.int32, [[0] * 5])
    tf.random.set_seed(None)


def test_names_that_are_missing_say_so() -> None:
    for module, name, words in (
        (v1.nn, "reluu", "module 'allotment.tf.compat.v1.nn' has no attribute 'reluu'; there is 'relu'"),
        (v1.random, "nothing", "module 'allotment.tf.compat.v1.random' has no attribute 'nothing'"),
        (v1.debugging, "assert_eqal", "has no attribute 'assert_eqal'; there is 'assert_equal'"),
        (v1, "summary", r"allotment\.tf\.compat\.v1\.summary is not offered\. Available: "),
    ):
        with pytest.raises(AttributeError, match=words):
            getattr(module, name)
        assert name not in dir(module)


def test_print_writes_each_time_a_tensor_is_computed(capfd: pytest.CaptureFixture[str]) -> None:
    x = tf.constant(1.0)
    assert v1.Print(x, [tf.constant([1, 2, 3, 4])], "m: ").numpy() == 1.0
    assert capfd.readouterr().err == "m: [1 2 3...]\n"
    with tf1.Graph().as_default(), tf1.Session() as session:
        y = tf1.Print(tf1.constant(2.0), [tf1.constant("a"), tf1.constant([0.5])], summarize=1)
        assert y.name == "Print:0"
        assert capfd.readouterr().err == ""
        assert session.run(y + 1.0) == 3.0
        assert capfd.readouterr().err == "[a][0.5]\n"
    with pytest.raises(NotImplementedError, match="first_n=3"):
        v1.Print(x, [x], first_n=3)


@pytest.mark.parametrize(
    ("condition", "expected"),
    [([True, False], [[1, 2], [7, 8]]), ([[True, False]] * 2, [[1, 6], [3, 8]]), (False, [[5, 6], [7, 8]])],
)
def test_a_vector_chooses_rows(condition: Any, expected: Any) -> None:
    x, y = tf.constant([[1.0, 2.0], [3.0, 4.0]]), tf.constant([[5.0, 6.0], [7.0, 8.0]])
    with tf.GradientTape() as tape:
        tape.watch(x)
        made = v1.where(condition, x, y)
    assert made.numpy().tolist() == expected
    assert tape.gradient(made, x).numpy().tolist() == np.equal(expected, x).tolist()
    with tf1.Graph().as_default(), tf1.Session() as session:
        x, y = tf1.constant(x.numpy()), tf1.constant(y.numpy())
        assert session.run(tf1.where(condition, x, y)).tolist() == expected


@pytest.mark.parametrize(
    ("condition", "x", "text"),
    [
        ([True], [[1.0], [2.0]], "Number of batches of 'then' must match size of 'cond', but saw: 2 vs. 1"),
        ([[True]], [1.0], "Input 0: [1,1] != input 1: [1]"),
        ([True], 1.0, "'then' must be at least a vector, but saw shape: []"),
    ],
)
def test_conditions_are_not_broadcast(condition: Any, x: Any, text: str) -> None:
    check_refused(v1.where, condition, x, x, text=text)
    check_refused(v1.where, True, [1.0], [1.0, 2.0], text="'then' and 'else' must have the same size")
    with pytest.raises(ValueError, match="must both be non-None"):
        v1.where(True, [1.0])


@pytest.mark.parametrize("graph", [False, True])
def test_rows_of_several_tables_alternate(graph: bool) -> None:
    tables = np.arange(12.0, dtype=np.float32).reshape(3, 2, 2)
    with tf1.Graph().as_default() if graph else nullcontext():

        def value(tensor: Any) -> Any:
            return tf1.Session().run(tensor) if graph else tensor.numpy()

        lookup: Any = (tf1 if graph else v1).nn.embedding_lookup
        params = [tf.constant(each) for each in tables]
        assert value(lookup(params, [[0, 1], [3, 5]]))[..., 0].tolist() == [[0, 4], [2, 10]]
        assert value(lookup(params, [1, 5], "div"))[:, 0].tolist() == [2, 10]
        norms = np.linalg.norm(value(lookup(params, [1, 5], max_norm=1.0)), axis=1)
        np.testing.assert_allclose(norms, [1, 1], rtol=1e-6)
        with pytest.raises(ValueError, match="Unrecognized partition strategy: rows"):
            lookup(params, [1], "rows")


X = np.ones((1, 4, 4, 1), np.float32)


@pytest.mark.parametrize(
    ("call", "expected"),
    [
        (lambda: v1.argmax([[1, 2], [3, 1]], 1, None, None, tf.int32), [1, 0]),
        (lambda: v1.argmax([[1, 2], [3, 1]], dimension=1), [1, 0]),
        (lambda: v1.reduce_sum([[1, 2]], reduction_indices=1, keep_dims=True), [[3]]),
        (lambda: v1.math.reduce_sum([[1, 2]], 1, None, None, None, True), [[3]]),
        (lambda: v1.expand_dims([1], dim=1), [[1]]),
        (lambda: v1.transpose([[1, 2]], [1, 0], "name", False), [[1], [2]]),
        (lambda: v1.pad([1], [[1, 1]], "CONSTANT", "name", 7), [7, 1, 7]),
        (lambda: v1.gather([[1, 2]], [1], None, "name", 1), [[2]]),
        (lambda: v1.ones_like(tensor=[5], optimize=False), [1]),
        (lambda: v1.shape([1], "name", tf.int64), [1]),
        (lambda: v1.count_nonzero(input_tensor=[1, 0], reduction_indices=0), 1),
        (lambda: v1.convert_to_tensor(1, preferred_dtype=tf.float32), 1.0),
        (lambda: v1.nn.softmax([[1.0, 2.0]], dim=0), [[1, 1]]),
        (lambda: v1.nn.crelu([1.0, -1.0], "name"), [1, 0, 0, 1]),
        (lambda: v1.nn.avg_pool(X, [1, 4, 4, 1], [1] * 4, "VALID")[0, 0, 0], [1]),
        (lambda: v1.nn.conv2d(X, X[0, ..., None], [1] * 4, "VALID", True)[0, 0, 0], [16]),
        (lambda: v1.strings.length(["ab"], "name", "BYTE"), [2]),
        (lambda: v1.substr("abc", 1, 1, "name"), b"b"),
        (lambda: v1.string_to_number(string_tensor="1"), 1),
        (lambda: v1.reverse_sequence([[1, 2]], [2], seq_dim=1, batch_dim=0), [[2, 1]]),
        (lambda: v1.math.in_top_k([[1.0, 2.0]], [1], 1), [True]),
        (lambda: v1.cond(tf.constant(True), fn1=lambda: [tf.constant(1)], fn2=lambda: [tf.constant(2)]), 1),
        (lambda: v1.cond(True, lambda: [tf.constant(1)], lambda: [tf.constant(2)], strict=True)[0], 1),
        (lambda: v1.initializers.constant(2)([2]), [2, 2]),
        (lambda: v1.random.poisson(0.0, [2]), [0, 0]),
    ],
)
def test_parameters_are_those_of_tensorflow_1(call: Callable[[], Any], expected: Any) -> None:
    assert np.asarray(call()).tolist() == expected


def test_parameters_are_shown_and_checked() -> None:
    names = ["input", "axis", "name", "dimension", "output_type"]
    assert list(inspect.signature(v1.argmax).parameters) == names
    assert list(inspect.signature(tf.argmax).parameters) == ["input", "axis", "output_type", "name"]
    assert v1.argmax is v1.math.argmax
    with pytest.raises(ValueError, match="Cannot specify both 'axis' and 'dimension'"):
        v1.argmax([1], axis=0, dimension=0)
    with pytest.raises(TypeError, match="unexpected keyword argument 'places'"):
        v1.argmax([1], places=0)
    with pytest.raises(TypeError, match="'true_fn' and 'fn1' may not be set"):
        v1.cond(True, lambda: 1, lambda: 2, fn1=lambda: 1)
