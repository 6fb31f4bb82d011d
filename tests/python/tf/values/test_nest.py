"""Nested structures, specifications of tensors, and conversions of texts."""

import copy
import pathlib
import pickle
from typing import Any

import pytest

import allotment.tf as tf
from allotment.tf import compat, nest
from support.tf.tensors import tensor


def test_flat_and_back() -> None:
    assert nest.flatten({"b": 1, "a": [2, (3,)]}) == [2, 3, 1]
    assert nest.flatten(5) == [5]
    assert nest.pack_sequence_as({"b": 1, "a": 2}, [5, 6]) == {"b": 6, "a": 5}
    assert nest.map_structure(lambda a, b: a + b, [1, (2,)], [3, (4,)]) == [4, (6,)]
    assert [nest.is_nested(each) for each in ("a", [1], {1: 2}, {1})] == [False, True, True, False]


@pytest.mark.parametrize(
    ("one", "other", "kind", "text"),
    [
        (
            [1, (2,)],
            [3, 4],
            ValueError,
            'Substructure "type=tuple str=(2,)" is a sequence, while substructure',
        ),
        ([1], (1,), TypeError, "First structure type=list str=[1] has type list, while second structure"),
        ([1, 2], [1], ValueError, "don't have the same number of elements."),
        ({"a": 1}, {"b": 1}, ValueError, "First structure has keys type=list str=['a'], while second"),
        (
            [1, (2,)],
            [3, 4],
            ValueError,
            "Entire first structure:\n[., (.,)]\nEntire second structure:\n[., .]",
        ),
    ],
)
def test_structures_that_differ(one: Any, other: Any, kind: type[Exception], text: str) -> None:
    with pytest.raises(kind) as raised:
        nest.assert_same_structure(one, other)
    assert text in str(raised.value)


def test_values_that_cannot_be_packed() -> None:
    with pytest.raises(ValueError, match="Structure had 2 atoms, but flat_sequence had 1 items"):
        nest.pack_sequence_as([1, [2]], [5])
    with pytest.raises(TypeError, match="but found incompatible type `<class 'int'>` instead"):
        nest.pack_sequence_as([1], 5)
    with pytest.raises(TypeError, match="func must be callable, got: 5"):
        nest.map_structure(5, [1])  # type: ignore[arg-type]


def test_specifications() -> None:
    spec = tf.TensorSpec([2, None], tf.float32)
    assert repr(spec) == "TensorSpec(shape=(2, None), dtype=tf.float32, name=None)"
    assert spec == tf.TensorSpec([2, None])
    assert hash(spec) == hash(tf.TensorSpec([2, None]))
    assert spec.is_compatible_with(tf.zeros([2, 5]))
    assert not spec.is_compatible_with(tf.zeros([2, 5], tf.int32))
    assert tf.TensorSpec.from_tensor(tensor([1])) == tf.TensorSpec([1], tf.int32)
    assert tf.TensorSpec([2]).is_subtype_of(tf.TensorSpec([None]))
    assert not tf.TensorSpec([None]).is_subtype_of(tf.TensorSpec([2]))
    assert tf.TensorSpec([None]).most_specific_compatible_type(tf.TensorSpec([2])) == tf.TensorSpec([None])
    assert pickle.loads(pickle.dumps(spec)) == copy.copy(spec) == spec


def test_texts_and_bytes() -> None:
    assert compat.as_bytes("ä") == b"\xc3\xa4"
    assert compat.as_str(b"\xc3\xa4") == compat.as_text("ä") == "ä"
    assert (compat.as_str_any(5), compat.as_str_any(b"a")) == ("5", "a")
    assert compat.path_to_str(pathlib.Path("a/b")) == "a/b"
    assert compat.dimension_value(3) == 3
    for convert in (compat.as_bytes, compat.as_text, compat.as_str):
        with pytest.raises(TypeError, match="Expected binary or unicode string, got 5"):
            convert(5)


def test_ranges_are_sequences() -> None:
    assert nest.flatten([range(2), 5]) == [0, 1, 5]
    assert nest.map_structure(lambda each: each + 1, {"a": range(2)}) == {"a": [1, 2]}
    assert nest.pack_sequence_as([range(2), 3], [4, 5, 6]) == [[4, 5], 6]
