"""Choosing, repeating and mapping as functions, and what has no effect eagerly."""

import contextlib
import re
from typing import Any

import pytest

import allotment.tf as tf
from allotment.errors import InvalidArgumentError
from support.tf.tensors import check, check_refused, tensor


def test_choosing() -> None:
    assert tf.cond(True, lambda: 1, lambda: 2) == 1
    assert tf.cond(tensor(False), lambda: 1, lambda: 2) == 2
    with pytest.raises(TypeError, match="'true_fn' must be callable"):
        tf.cond(True, 1, 2)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match=re.escape("cond(): 'false_fn' argument required")):
        tf.cond(True, lambda: 1)
    assert tf.case([(tensor(False), lambda: 1)], default=lambda: 3) == 3
    assert tf.case([(tensor(True), lambda: 1), (tensor(True), lambda: 2)]) == 1
    with pytest.raises(TypeError, match="pred must be a Tensor, got: True"):
        tf.case([(True, lambda: 1)])
    with pytest.raises(InvalidArgumentError, match="None of conditions evaluated as True"):
        tf.case([(tensor(False), lambda: 1)])
    assert tf.switch_case(tensor(1), [lambda: 1, lambda: 2]) == 2
    assert tf.switch_case(tensor(9), [lambda: 1, lambda: 2]) == 2
    with pytest.raises(ValueError, match=re.escape("contiguous range of [0 to 2) but found {0,2}")):
        tf.switch_case(tensor(0), {0: lambda: 1, 2: lambda: 2})


def test_repeating() -> None:
    count, product = tf.while_loop(lambda i, j: i < 3, lambda i, j: (i + 1, j * 2), (0, 1))
    check(count, 3, "int32")
    check(product, 8, "int32")
    limited = tf.while_loop(lambda i, j: i < 3, lambda i, j: (i + 1, j * 2), (0, 1), maximum_iterations=2)
    check(limited[1], 4, "int32")
    with pytest.raises(ValueError, match="'loop_vars' must be provided"):
        tf.while_loop(lambda i: i < 3, lambda i: i + 1, [])
    with pytest.raises(TypeError, match="'cond' must be callable"):
        tf.while_loop(5, lambda i: i + 1, [1])  # type: ignore[arg-type]


def _kind(value: Any) -> Any:
    return (type(value), *map(_kind, value)) if isinstance(value, list | tuple) else "tensor"


@pytest.mark.parametrize("where", ["eager", "graph"])
def test_results_of_loops_have_the_structure_that_tensorflow_gives_them(where: str) -> None:
    """The expected structures are those of TensorFlow 2.21."""
    first, two = tf.compat.v1.while_loop, (tuple, "tensor", "tensor")
    with tf.Graph().as_default() if where == "graph" else contextlib.nullcontext():
        zero = tf.constant(0)
        small, up = (lambda i: i < 10), (lambda i: i + 1)
        assert _kind(first(small, up, [zero])) == "tensor"
        assert _kind(first(small, up, [zero], maximum_iterations=3)) == "tensor"
        assert _kind(first(lambda i, j: i < 10, lambda i, j: (i + 1, j), (zero, zero))) == two
        assert _kind(tf.while_loop(small, lambda i: [i + 1], [zero])) == (list, "tensor")
        if where == "graph":
            assert _kind(first(small, lambda i: [i + 1], [zero])) == "tensor"
            assert _kind(first(small, up, [zero], return_same_structure=True)) == (list, "tensor")
            assert _kind(tf.while_loop(small, up, [zero])) == (list, "tensor")
            assert _kind(tf.while_loop(small, up, (zero,))) == (tuple, "tensor")
            with tf.compat.v1.Session() as session:
                count = first(small, up, [zero])
                assert session.run([count, count * 2]) == [10, 20]
        else:
            assert _kind(first(small, lambda i: [i + 1], [zero])) == (list, "tensor")
            assert int(first(small, up, [zero], maximum_iterations=3)) == 3
            with pytest.raises(TypeError, match="Cannot iterate over a scalar tensor"):
                tf.while_loop(small, up, [zero])


def test_mapping_and_folding() -> None:
    x = tensor([1, 2, 3])
    check(tf.map_fn(lambda each: each * 2, x), [2, 4, 6], "int32")
    check(tf.map_fn(lambda pair: pair[0] + pair[1], (x, x), fn_output_signature=tf.int32), [2, 4, 6], "int32")
    one, two = tf.map_fn(
        lambda each: (each, each), x, fn_output_signature=(tf.int32, tf.TensorSpec([], tf.int32))
    )
    check(one, [1, 2, 3], "int32")
    check(two, [1, 2, 3], "int32")
    check(tf.map_fn(lambda each: each, tf.zeros([0, 2])), [], "float32")
    check(tf.foldl(lambda a, each: a + each, x), 6, "int32")
    check(tf.foldr(lambda a, each: a - each, x), 0, "int32")
    check(tf.scan(lambda a, each: a + each, x), [1, 3, 6], "int32")
    with pytest.raises(ValueError, match="Elements in elems must be 1"):
        tf.map_fn(lambda each: each, 5)
    with pytest.raises(ValueError, match="don't have the same nested structure"):
        tf.map_fn(lambda each: (each, each), x)
    check_refused(
        tf.map_fn, lambda each: 1.5, x, text="TensorArray dtype is int32 but Op is trying to write dtype"
    )


def test_what_has_no_effect() -> None:
    tf.no_op()
    tf.group(1, 2)
    with tf.control_dependencies([tensor(1)]), tf.name_scope("a") as outer, tf.name_scope("b") as inner:
        assert (outer, inner, tf.get_current_name_scope()) == ("a/", "a/b/", "a/b")
    assert tf.get_current_name_scope() == ""
    assert tf.name_scope("a").name == "a"
    with pytest.raises(ValueError, match="name for name_scope must be a string"):
        tf.name_scope(5)  # type: ignore[arg-type]
    assert tf.timestamp().dtype is tf.float64
    assert tf.version.VERSION == "2.21.0"


def test_conditions_that_exclude_each_other() -> None:
    def chosen(*conditions: bool, **options: Any) -> Any:
        pairs = [(tf.constant(each), lambda number=number: number) for number, each in enumerate(conditions)]
        return tf.case(pairs, exclusive=True, **options)

    assert chosen(False, True, False, default=lambda: 9) == 1
    assert chosen(False, False, default=lambda: 9) == 9
    with pytest.raises(
        tf.errors.InvalidArgumentError, match=r"more than 1 conditions \(\?, \?\) evaluated as True"
    ):
        chosen(True, True, default=lambda: 9)
    # Without a default the last function is the default, as in TensorFlow.
    assert chosen(True, True) == 0
    with pytest.raises(tf.errors.InvalidArgumentError, match="more than 1 conditions"):
        chosen(True, True, False)
    with pytest.raises(ValueError, match="Unordered dictionaries are not supported"):
        tf.case({"a": lambda: 1})
    with pytest.raises(ValueError, match="at least one pair"):
        tf.case([])
    with (
        tf.Graph().as_default(),
        pytest.raises(tf.errors.InvalidArgumentError, match=r"\(Const:0, Const_1:0\)"),
    ):
        chosen(True, True, default=lambda: 9)


@pytest.mark.parametrize("function", [tf.foldl, tf.foldr, tf.scan])
def test_folds_of_no_slices(function: Any) -> None:
    with pytest.raises(tf.errors.OutOfRangeError, match="nothing to begin with"):
        function(lambda a, x: a + x, tf.zeros([0]))
    made = function(lambda a, x: (a[0] + x, a[1]), tf.zeros([0]), initializer=(tf.zeros([2]), 1))
    lengths = [0] if function is tf.scan else []
    assert [each.shape.as_list() for each in made] == [[*lengths, 2], lengths]
    assert [each.dtype for each in made] == [tf.float32, tf.int32]


def test_functions_of_slices_keep_to_types_and_shapes() -> None:
    def pair(x: Any) -> Any:
        return tf.fill([2], x)

    assert tf.map_fn(pair, tf.range(0), fn_output_signature=tf.TensorSpec([2], tf.int32)).shape == (0, 2)
    with pytest.raises(ValueError, match=r"Incompatible shape for value \(\(2,\)\), expected \(\(3,\)\)"):
        tf.map_fn(pair, tf.range(3), fn_output_signature=tf.TensorSpec([3], tf.int32))
    with pytest.raises(ValueError, match=r"Incompatible shape for value \(\(1,\)\), expected \(\(0,\)\)"):
        tf.map_fn(tf.range, tf.range(3))
    with pytest.raises(ValueError, match="Dimensions 3 and 2 are not compatible"):
        tf.map_fn(lambda x: x[0], (tf.range(3), tf.range(2)), fn_output_signature=tf.int32)
    with pytest.raises(ValueError, match="same nested structure"):
        tf.foldl(lambda a, x: (a, x), tf.ones([2]), initializer=0.0)
    with pytest.raises(tf.errors.InvalidArgumentError, match="TensorArray dtype is float32"):
        tf.scan(lambda a, x: tf.cast(a, tf.int32), tf.ones([2]), initializer=0.0)
