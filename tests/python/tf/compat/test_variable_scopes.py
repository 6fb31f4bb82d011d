"""Scopes of variables: names, sharing, and what variables are made of."""

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import allotment.tf as tf
import allotment.tf.v1 as tf1

v1 = tf.compat.v1


@pytest.fixture
def graph() -> Iterator[tf.Graph]:
    with tf.Graph().as_default() as graph:
        yield graph


def test_names_are_those_of_the_scopes(graph: tf.Graph) -> None:
    with v1.variable_scope("a") as scope:
        v = v1.get_variable("x", [2])
        assert (v.name, scope.name, scope.original_name_scope, scope.reuse) == ("a/x:0", "a", "a/", False)
        with v1.variable_scope("b"):
            w = v1.get_variable("y", [2])
            assert (w.name, v1.get_variable_scope().name, (w + 1.0).name) == ("a/b/y:0", "a/b", "a/b/add:0")
    assert v1.get_variable_scope().name == ""
    # Name scopes are names of nodes, not of variables that are made by name.
    with v1.name_scope("n"):
        assert v1.get_variable("z", [1]).name == "z:0"
        with v1.variable_scope("c"):
            assert v1.get_variable("q", [1]).name == "c/q:0"
            assert tf.constant(1.0).name == "n/c/Const:0"
            assert tf.Variable(1.0).name == "n/c/Variable:0"
    assert [each.name for each in v1.global_variables("a/")] == ["a/x:0", "a/b/y:0"]
    assert scope.global_variables() == scope.trainable_variables() == [v, w]
    assert scope.local_variables() == []


def test_a_scope_that_reuses_finds_what_is_there(graph: tf.Graph) -> None:
    with v1.variable_scope("a"):
        v = v1.get_variable("x", [2])
    with v1.variable_scope("a", reuse=True) as scope:
        assert v1.get_variable("x", [2]) is v1.get_variable("x") is v
        assert (scope.reuse, scope.original_name_scope) == (True, "a_1/")
        with v1.variable_scope("b") as inner:
            assert inner.reuse is True
        for args, words in (
            (("z", [1]), "Variable a/z does not exist, or was not created with tf.get_variable"),
            (("x", [3]), r"Trying to share variable a/x, but specified shape \(3,\) and found shape \(2,\)"),
            (("x", [2], tf.float64), "specified dtype float64 and found dtype float32"),
        ):
            with pytest.raises(ValueError, match=words):
                v1.get_variable(*args)
    with v1.variable_scope("a") as scope:
        assert scope.reuse is False
        scope.reuse_variables()
        assert v1.get_variable("x") is v
    with v1.variable_scope("a", reuse=v1.AUTO_REUSE):
        assert v1.get_variable("x", [2]) is v
        new = v1.get_variable("new", [2])
        assert v1.get_variable("new", [2]) is new
    assert len(v1.global_variables()) == 2


def test_a_name_that_is_taken_says_where(graph: tf.Graph) -> None:
    with v1.variable_scope("a"):
        v1.get_variable("x", [2])
        with pytest.raises(ValueError, match="already exists, disallowed") as raised:
            v1.get_variable("x", [2])
    text = str(raised.value)
    assert text.startswith(
        "Variable a/x already exists, disallowed. Did you mean to set reuse=True or reuse=tf.AUTO_REUSE in VarScope? "
        "Originally defined at:\n\n"
    )
    first = text.splitlines()[2]
    assert first.startswith(f'  File "{__file__}", line ')
    assert first.endswith("in test_a_name_that_is_taken_says_where")


def test_a_scope_is_entered_again(graph: tf.Graph) -> None:
    with v1.variable_scope("o"), v1.variable_scope("a") as scope:
        v = v1.get_variable("x", [2])
    with v1.variable_scope("other"), v1.variable_scope(scope) as again:
        assert (again.name, again.original_name_scope, again is scope) == ("o/a", "o/a/", False)
        assert tf.constant(1.0).name == "other/a/Const:0"
        again.reuse_variables()
        assert v1.get_variable("x") is v
    assert scope.reuse is False
    with v1.variable_scope(scope, reuse=True, auxiliary_name_scope=False):
        assert tf.constant(1.0).name == "Const:0"
        assert v1.get_variable("x") is v


def test_default_names_are_made_unique(graph: tf.Graph) -> None:
    def layer() -> str:
        with v1.variable_scope(None, default_name="d") as scope:
            v1.get_variable("w", [1])
            return scope.name

    assert [layer(), layer()] == ["d", "d_1"]
    with v1.variable_scope("outer"):
        assert [layer(), layer()] == ["outer/d", "outer/d_1"]
    # Inside of a scope that is entered anew they begin again.
    with v1.variable_scope("outer", reuse=True):
        assert layer() == "outer/d"
    with v1.variable_scope("given", default_name="d") as scope:
        assert scope.name == "given"


@pytest.mark.parametrize(
    ("args", "error", "words"),
    [
        ({"name_or_scope": None}, TypeError, "If default_name is None then name_or_scope is required"),
        ({"name_or_scope": 5}, TypeError, "name_or_scope must be a string or VariableScope"),
        ({"name_or_scope": "a", "reuse": 5}, ValueError, "reuse parameter must be True or False or None"),
        ({"name_or_scope": None, "default_name": "a", "reuse": True}, ValueError, "cannot be used without"),
        (
            {"name_or_scope": "a", "partitioner": len},
            NotImplementedError,
            "partitioner=.*Leave the argument out",
        ),
        ({"name_or_scope": "a", "custom_getter": len}, NotImplementedError, "custom_getter="),
    ],
)
def test_what_no_scope_takes(
    graph: tf.Graph, args: dict[str, Any], error: type[Exception], words: str
) -> None:
    with pytest.raises(error, match=words):
        v1.variable_scope(**args)
    assert v1.get_variable_scope().name == ""


def test_an_error_leaves_the_scope(graph: tf.Graph) -> None:
    with pytest.raises(ZeroDivisionError), v1.variable_scope("a", initializer=1.0):
        _ = 1 / 0
    assert v1.get_variable_scope().name == ""
    assert tf.constant(1.0).name == "Const:0"


def test_settings_hold_inside(graph: tf.Graph) -> None:
    four = v1.constant_initializer(4.0)
    outer = v1.variable_scope("a", initializer=four, dtype=tf.float64, use_resource=False, constraint=abs)
    with outer, v1.variable_scope("b"):
        v = v1.get_variable("v", [2])
        assert (v.dtype, v.op.type, v.constraint) == (tf.float64, "VariableV2", abs)
        w = v1.get_variable("w", [2], tf.int32, v1.ones_initializer())
    u = v1.get_variable("u", [2], use_resource=True)
    assert (w.dtype, u.dtype, u.op.type) == (tf.int32, tf.float32, "VarHandleOp")
    with v1.Session(config=v1.ConfigProto()) as session:
        session.run(v1.global_variables_initializer())
        assert [each.tolist() for each in session.run([v, w])] == [[4.0, 4.0], [1, 1]]


def test_regularizers_make_losses(graph: tf.Graph) -> None:
    def squared(v: tf.Variable) -> tf.Tensor:
        return tf.reduce_sum(tf.square(v))

    with v1.variable_scope("a", regularizer=squared):
        v1.get_variable("v", initializer=[1.0, 2.0])
    (loss,) = v1.get_collection(v1.GraphKeys.REGULARIZATION_LOSSES)
    assert loss.name.startswith("a/v/Regularizer/")
    with v1.Session(config=v1.ConfigProto()) as session:
        session.run(v1.global_variables_initializer())
        assert session.run(loss) == 5.0


def test_what_variables_start_with(graph: tf.Graph) -> None:
    def ones(shape: list[int], dtype: tf.DType, partition_info: object) -> tf.Tensor:
        return tf.ones(shape, dtype)

    made = {
        "constant": v1.get_variable("constant", initializer=tf.constant([1.0, 2.0])),
        "array": v1.get_variable("array", initializer=np.ones([2, 3])),
        "number": v1.get_variable("number", initializer=5),
        "class": v1.get_variable("class", [2], initializer=v1.zeros_initializer),
        "function": v1.get_variable(
            "function", [2], initializer=lambda shape, dtype, partition_info: tf.ones(shape, dtype)
        ),
        "alone": v1.get_variable("alone", initializer=lambda: tf.fill([2], 7.0)),
        "integers": v1.get_variable("integers", [2], tf.int32),
        "bools": v1.get_variable("bools", [2], tf.bool),
        "texts": v1.get_variable("texts", [1], tf.string),
        "too few": v1.get_variable("too_few", [3], initializer=v1.constant_initializer([1.0, 2.0])),
    }
    glorot = v1.get_variable("glorot", [300, 200])
    with v1.Session(config=v1.ConfigProto()) as session:
        session.run(v1.global_variables_initializer())
        found = {name: session.run(each).tolist() for name, each in made.items()}
        drawn = session.run(glorot)
    assert found == {
        "constant": [1.0, 2.0],
        "array": [[1.0] * 3] * 2,
        "number": 5,
        "class": [0.0, 0.0],
        "function": [1.0, 1.0],
        "alone": [7.0, 7.0],
        "integers": [0, 0],
        "bools": [False, False],
        "texts": [b""],
        "too few": [1.0, 2.0, 2.0],
    }
    assert made["array"].dtype is tf.float64
    limit = np.sqrt(6 / 500)
    assert np.abs(drawn).max() <= limit
    assert np.isclose(drawn.std(), limit / np.sqrt(3), rtol=0.02)


@pytest.mark.parametrize(
    ("args", "words"),
    [
        ({}, "Variable v did not get an initializer, so its `shape` argument must be specified"),
        ({"shape": [None, 2]}, "The initializer passed is not valid"),
        ({"shape": [2], "initializer": 1.0}, "If initializer is a constant, do not specify shape"),
        (
            {"initializer": 1, "dtype": tf.float32},
            "Initializer type 'tf.int32' and explicit dtype 'tf.float32'",
        ),
    ],
)
def test_what_no_variable_starts_with(graph: tf.Graph, args: dict[str, Any], words: str) -> None:
    with pytest.raises(ValueError, match=words):
        v1.get_variable("v", **args)


def test_local_variables_are_neither_global_nor_trained(graph: tf.Graph) -> None:
    local = v1.get_local_variable("l", [2])
    mine = v1.get_variable("m", [2], collections=["mine"], trainable=False)
    assert v1.local_variables() == [local]
    assert v1.get_collection("mine") == [mine]
    assert v1.global_variables() == v1.trainable_variables() == []
    assert sorted(graph.get_all_collection_keys()) == ["local_variables", "mine"]


def test_eagerly_each_call_makes_a_variable() -> None:
    with v1.variable_scope("a", initializer=v1.ones_initializer()) as scope:
        v, again = v1.get_variable("x", [2]), v1.get_variable("x", [2])
        with v1.variable_scope("b"):
            assert v1.get_variable("y", initializer=1.0).name == "a/b/y:0"
    assert (v.name, scope.original_name_scope, v is again) == ("a/x:0", "a/", False)
    assert v.numpy().tolist() == [1.0, 1.0]
    assert v1.report_uninitialized_variables().numpy().tolist() == []


def test_v1_makes_reference_variables() -> None:
    with tf1.Graph().as_default():
        with tf1.variable_scope("a"):
            v = tf1.get_variable("x", [2])
            with tf1.variable_scope("b", use_resource=True):
                w = tf1.get_variable("x", [2])
        with tf1.variable_scope("a", reuse=tf1.AUTO_REUSE):
            assert tf1.get_variable("x", [2]) is v
    assert (v.op.type, w.op.type) == ("VariableV2", "VarHandleOp")


INITIALIZERS = {
    "random_normal": (v1.random_normal_initializer(1.0, 2.0, seed=1), 1.0, 2.0),
    "random_uniform": (v1.random_uniform_initializer(seed=1), 0.5, 12**-0.5),
    "truncated_normal": (v1.truncated_normal_initializer(stddev=0.1, seed=1), 0.0, 0.08796),
    "glorot_normal": (v1.glorot_normal_initializer(seed=1), 0.0, (2 / 500) ** 0.5),
    "fan_in": (v1.variance_scaling_initializer(2.0, seed=1), 0.0, (2 / 300) ** 0.5),
    "fan_out": (
        v1.variance_scaling_initializer(1.0, "fan_out", "untruncated_normal", 1),
        0.0,
        (1 / 200) ** 0.5,
    ),
}


@pytest.mark.parametrize("name", INITIALIZERS)
def test_initializers_of_tensorflow_1_draw_what_they_say(name: str) -> None:
    initializer, mean, deviation = INITIALIZERS[name]
    drawn = initializer([300, 200]).numpy()
    assert drawn.dtype == np.float32
    assert np.isclose(drawn.mean(), mean, atol=deviation / 50)
    assert np.isclose(drawn.std(), deviation, rtol=0.02)
    again = type(initializer)(**initializer.get_config())
    assert again.get_config() == initializer.get_config()
    assert again([2], tf.float64).dtype is tf.float64


def test_initializers_of_tensorflow_1_have_a_type() -> None:
    assert v1.zeros_initializer(tf.int32)([2]).numpy().tolist() == [0, 0]
    assert v1.constant_initializer(3, tf.int64)([2]).dtype is tf.int64
    with pytest.raises(TypeError, match=r"Expected Tensor's shape: \(2,\), got \(3,\)"):
        v1.constant_initializer([1, 2, 3], verify_shape=True)([2])
    for args, words in (
        ((0.0,), "`scale` must be"),
        ((1.0, "in"), "`mode`"),
        ((1.0, "fan_in", "x"), "`distribution`"),
    ):
        with pytest.raises(ValueError, match=words):
            v1.variance_scaling_initializer(*args)
