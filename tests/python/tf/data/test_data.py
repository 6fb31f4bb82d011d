"""Data sets: their elements, how many there are, and what is known of them. Expected values are TensorFlow's.

Longer than 300 lines: one method of data sets after the other.
"""

import collections
import gc
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import allotment.tf as tf
from support.tf.data_sets import listed, spec

Dataset = tf.data.Dataset


def test_slices_and_whole_tensors() -> None:
    pair = Dataset.from_tensor_slices({"a": ([1, 2], [[3.0], [4.0]])})
    assert listed(pair) == [{"a": (1, [3.0])}, {"a": (2, [4.0])}]
    assert pair.element_spec == {"a": (spec(dtype=tf.int32), spec(1, dtype=tf.float32))}
    assert len(pair) == 2
    # Lists are values, tuples are structure.
    assert Dataset.from_tensor_slices([(1, 2), (3, 4)]).element_spec == spec(2, dtype=tf.int32)
    assert listed(Dataset.from_tensors(([1, 2], 3))) == [([1, 2], 3)]
    assert listed(Dataset.from_tensor_slices(["a", "b"])) == [b"a", b"b"]
    assert Dataset.from_tensor_slices(np.ones(2)).element_spec == spec(dtype=tf.float64)
    assert listed(Dataset.from_tensor_slices([])) == []
    Point = collections.namedtuple("Point", "x y")
    (element,) = Dataset.from_tensor_slices(Point([1], [2]))
    assert type(element) is Point
    assert element.y.device.endswith("CPU:0")


@pytest.mark.parametrize(
    ("tensors", "words"),
    [
        (([1, 2], [1]), "Dimensions 2 and 1 are not compatible"),
        (1, "Unbatching a tensor is only supported for rank >= 1"),
        (None, "Invalid `element`. `element` should not be empty."),
        ((), "Invalid `element`. `element` should not be empty."),
    ],
)
def test_what_has_no_slices_is_refused(tensors: Any, words: str) -> None:
    with pytest.raises(ValueError, match=words):
        Dataset.from_tensor_slices(tensors)


def test_numbers() -> None:
    assert listed(Dataset.range(3)) == [0, 1, 2]
    assert listed(Dataset.range(1, 10, 3)) == [1, 4, 7]
    assert listed(Dataset.range(5, 0, -2)) == [5, 3, 1]
    assert next(iter(Dataset.range(2, output_type=tf.int32))).dtype is tf.int32
    assert next(iter(Dataset.range(2))).dtype is tf.int64
    with pytest.raises(ValueError, match="between 1 and 3 but was 4"):
        Dataset.range(1, 2, 3, 4)
    with pytest.raises(tf.errors.InvalidArgumentError, match="step must be a non-zero integer"):
        Dataset.range(1, 5, 0)
    with pytest.raises(TypeError):
        Dataset.range(2.5)


def test_generators() -> None:
    calls = []

    def numbers(first: Any) -> Iterator[int]:
        calls.append(first)
        yield from range(int(first), int(first) + 2)

    made = Dataset.from_generator(numbers, output_types=tf.float32, args=(3,))
    assert listed(made) == listed(made) == [3.0, 4.0]
    assert len(calls) == 2
    with pytest.raises(TypeError, match="length is unknown"):
        len(made)
    pairs = Dataset.from_generator(
        lambda: [(1, [2.0])], output_types=(tf.int32, tf.float32), output_shapes=([], [None])
    )
    assert pairs.element_spec == (spec(dtype=tf.int32), spec(None, dtype=tf.float32))
    assert listed(pairs) == [(1, [2.0])]
    assert listed(Dataset.from_generator(lambda: [{"a": 1}], output_signature={"a": spec()})) == [{"a": 1}]
    assert listed(Dataset.from_generator(lambda: [(1, 2)], output_types=tf.int32)) == [[1, 2]]


@pytest.mark.parametrize(
    ("value", "options", "words"),
    [
        ([1], {"output_signature": tf.TensorSpec([], tf.int32)}, r"of shape \(1,\) where an element of shape \(\)"),
        ("a", {"output_types": tf.int32}, "the yielded element was a"),
        ((1, 2, 3), {"output_types": (tf.int32, tf.int32)}, r"the yielded element was \(1, 2, 3\)"),
    ],
)  # fmt: skip
def test_a_generator_keeps_its_word(value: Any, options: Any, words: str) -> None:
    with pytest.raises(tf.errors.InvalidArgumentError, match=words):
        list(Dataset.from_generator(lambda: [value], **options))


def test_what_a_generator_gives_must_be_said_once() -> None:
    for options in (
        {},
        {"output_types": tf.int32, "output_signature": spec()},
        {"output_signature": tf.int32},
    ):
        with pytest.raises(TypeError):
            Dataset.from_generator(lambda: [1], **options)
    not_a_function: Any = [1]
    with pytest.raises(TypeError, match="must be a Python callable"):
        Dataset.from_generator(not_a_function, output_types=tf.int32)


def test_batches() -> None:
    assert listed(Dataset.range(5).batch(2)) == [[0, 1], [2, 3], [4]]
    assert listed(Dataset.range(5).batch(2, drop_remainder=True)) == [[0, 1], [2, 3]]
    assert Dataset.range(5).batch(2).element_spec == spec(None)
    assert Dataset.range(5).batch(2, drop_remainder=True).element_spec == spec(2)
    assert Dataset.range(5).batch(2).batch(2).element_spec == spec(None, None)
    nested = Dataset.from_tensor_slices({"a": [1, 2], "b": [[3.0], [4.0]]}).batch(2)
    assert listed(nested) == [{"a": [1, 2], "b": [[3.0], [4.0]]}]
    with pytest.raises(tf.errors.InvalidArgumentError, match="Batch size must be greater than zero"):
        Dataset.range(3).batch(0)
    ragged = Dataset.from_generator(lambda: [[1], [2, 3]], output_types=tf.int32).batch(2)
    with pytest.raises(tf.errors.InvalidArgumentError) as refused:
        list(ragged)
    assert (
        "Cannot batch tensors with different shapes in component 0. First element had shape [1] and element 1 had "
        "shape [2]." in str(refused.value)
    )


def test_shuffling_gives_each_element_once() -> None:
    shuffled = Dataset.range(50).shuffle(50, seed=1)
    first, second = listed(shuffled), listed(shuffled)
    assert sorted(first) == sorted(second) == list(range(50))
    assert first != second != list(range(50))
    assert listed(Dataset.range(50).shuffle(50, seed=1)) == first
    assert listed(Dataset.range(50).shuffle(50, seed=2)) != first
    fixed = Dataset.range(50).shuffle(50, seed=1, reshuffle_each_iteration=False)
    assert listed(fixed) == listed(fixed)
    twice = listed(Dataset.range(20).shuffle(20, seed=1).repeat(2))
    assert sorted(twice[:20]) == sorted(twice[20:]) == list(range(20))
    assert twice[:20] != twice[20:]
    assert sorted(listed(Dataset.range(9).shuffle(-2))) == list(range(9))
    with pytest.raises(tf.errors.InvalidArgumentError, match="buffer_size must be greater than zero"):
        Dataset.range(3).shuffle(0)


def test_a_small_buffer_shuffles_near_by() -> None:
    for number, element in enumerate(listed(Dataset.range(200).shuffle(5, seed=3))):
        assert element < number + 5
    assert listed(Dataset.range(9).shuffle(1)) == list(range(9))


def test_the_programs_seed_counts() -> None:
    tf.random.set_seed(3)
    first, second = listed(Dataset.range(30).shuffle(30)), listed(Dataset.range(30).shuffle(30))
    tf.random.set_seed(3)
    assert listed(Dataset.range(30).shuffle(30)) == first != second
    tf.random.set_seed(None)


def test_every_place_in_the_order_is_as_likely() -> None:
    counts = np.zeros((4, 4))
    for seed in range(400):
        for place, element in enumerate(listed(Dataset.range(4).shuffle(4, seed=seed))):
            counts[place, element] += 1
    assert (abs(counts - 100) < 40).all(), counts


def test_parts_and_repetitions() -> None:
    numbers = Dataset.range(4)
    assert (listed(numbers.take(2)), listed(numbers.take(-1)), listed(numbers.take(9))) == (
        [0, 1],
        [0, 1, 2, 3],
        [0, 1, 2, 3],
    )
    assert (listed(numbers.skip(3)), listed(numbers.skip(-1)), listed(numbers.skip(9))) == ([3], [], [])
    assert listed(Dataset.range(2).repeat(2)) == [0, 1, 0, 1]
    assert listed(Dataset.range(2).repeat().take(5)) == [0, 1, 0, 1, 0]
    assert listed(Dataset.range(2).repeat(0)) == listed(Dataset.range(0).repeat()) == []
    assert listed(Dataset.range(2).enumerate(start=5)) == [(5, 0), (6, 1)]
    assert listed(Dataset.range(2).concatenate(Dataset.range(3))) == [0, 1, 0, 1, 2]
    assert listed(numbers.prefetch(tf.data.AUTOTUNE)) == [0, 1, 2, 3]
    with pytest.raises(tf.errors.InvalidArgumentError, match="buffer_size must be >= 0"):
        numbers.prefetch(-5)
    with pytest.raises(TypeError, match="Incompatible dataset elements"):
        numbers.concatenate(Dataset.from_tensors("a"))
    rows = Dataset.from_tensor_slices(tf.ones([2, 3])).concatenate(
        Dataset.from_tensor_slices(tf.ones([2, 4]))
    )
    assert rows.element_spec == spec(None, dtype=tf.float32)


def test_several_together() -> None:
    long, short = Dataset.range(4), Dataset.range(10, 12)
    assert listed(Dataset.zip((long, short))) == listed(Dataset.zip(long, short)) == [(0, 10), (1, 11)]
    nested = Dataset.zip({"a": long, "b": (short,)})
    assert listed(nested)[1] == {"a": 1, "b": (11,)}
    assert nested.element_spec == {"a": spec(), "b": (spec(),)}
    with pytest.raises(TypeError, match="Python `list` is not supported"):
        Dataset.zip([long])
    for bad in ((3,), (), (long, 3)):
        with pytest.raises(TypeError):
            Dataset.zip(*bad)


def test_a_cache_calls_once() -> None:
    calls = []

    def noted(x: Any) -> Any:
        calls.append(int(x))
        return x

    cached = Dataset.range(3).map(noted).cache()
    next(iter(cached))
    assert listed(cached) == listed(cached) == [0, 1, 2]
    assert calls == [0, 0, 1, 2]
    with pytest.raises(NotImplementedError, match="in memory only"):
        Dataset.range(3).cache("file")


@pytest.mark.parametrize(
    ("made", "count"),
    [
        ("range(10).batch(3)", 4),
        ("range(10).batch(3, drop_remainder=True)", 3),
        ("range(10).take(3)", 3),
        ("range(10).take(-1)", 10),
        ("range(10).skip(3)", 7),
        ("range(10).skip(30)", 0),
        ("range(3).skip(-1)", 0),
        ("range(3).repeat().take(5)", 5),
        ("range(3).repeat().batch(2)", -1),
        ("range(3).repeat().skip(2)", -1),
        ("range(3).repeat(0)", 0),
        ("range(0).repeat()", 0),
        ("range(3).concatenate(D.range(4))", 7),
        ("range(3).concatenate(D.range(4).repeat())", -1),
        ("range(3).filter(bool).concatenate(D.range(3))", -2),
        ("range(3).filter(bool).concatenate(D.range(3).repeat())", -1),
        ("zip((D.range(3), D.range(4)))", 3),
        ("zip((D.range(3).repeat(), D.range(4)))", 4),
        ("range(3).filter(bool).batch(2)", -2),
        ("range(3).filter(bool).take(1)", -2),
        ("range(3).filter(bool).repeat()", -1),
        ("range(3).cache().shuffle(2).prefetch(1).map(abs).enumerate()", 3),
        ("range(5, 0, -2)", 3),
    ],
)
def test_how_many_elements_there_are(made: str, count: int) -> None:
    dataset = eval(f"D.{made}", {"D": Dataset})
    assert dataset.cardinality().numpy() == count
    assert dataset.cardinality().dtype is tf.int64
    if count >= 0:
        assert len(dataset) == len(list(dataset)) == count
    else:
        infinite = count == tf.data.INFINITE_CARDINALITY
        with pytest.raises(TypeError, match="is infinite" if infinite else "length is unknown"):
            len(dataset)
        assert infinite or count == tf.data.UNKNOWN_CARDINALITY


def test_iterators() -> None:
    dataset = Dataset.range(2)
    one, other = iter(dataset), iter(dataset)
    assert (next(one), next(one), next(other)) == (0, 1, 0)
    assert one.element_spec == spec()
    assert iter(one) is one
    assert next(one, None) is None
    with pytest.raises(tf.errors.OutOfRangeError, match="End of sequence"):
        one.get_next()
    assert other.get_next() == 1
    assert bool(Dataset.range(0))


def test_a_data_set_prints_and_says_what_it_offers() -> None:
    assert repr(Dataset.range(3).batch(2)) == (
        "<_BatchDataset element_spec=TensorSpec(shape=(None,), dtype=tf.int64, name=None)>"
    )
    assert isinstance(Dataset.range(3), Dataset)
    with pytest.raises(
        AttributeError, match=r"'interleave' here. There are: as_numpy_iterator, batch, cache"
    ):
        _ = Dataset.range(3).interleave
    assert not hasattr(Dataset.range(3), "padded_batch")
    with pytest.raises(TypeError, match="must be an integer, not 'x'"):
        Dataset.range(3).take("x")


def test_an_unfinished_pass_holds_nothing() -> None:
    kept = []

    class Noted:
        def __init__(self) -> None:
            kept.append(1)

        def __del__(self) -> None:
            kept.pop()

    def make() -> Iterator[int]:
        noted = Noted()
        yield 1
        yield 2
        del noted

    iterator = iter(Dataset.from_generator(make, output_types=tf.int32).repeat().batch(3).prefetch(2))
    next(iterator)
    assert kept
    gc.disable()
    try:
        del iterator
        assert not kept
    finally:
        gc.enable()
