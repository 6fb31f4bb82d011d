"""Errors in some elements of data sets: iterators go on with the next element. Expected values are TensorFlow's."""

from collections.abc import Callable, Iterator
from typing import Any

import pytest

import allotment.tf as tf
from allotment.tf import v1

Dataset = tf.data.Dataset


def without(*numbers: float) -> Callable[[Any], Any]:
    """Make a function of numbers that fails for some."""

    def function(x: Any) -> Any:
        given = tf.cast(x, tf.float32)
        wrong = tf.reduce_any(tf.equal(given, numbers))
        return tf.debugging.check_numerics(tf.where(wrong, float("nan"), given), "bad")

    return function


def outcomes(dataset: Any, count: int = 9) -> list[Any]:
    """List the first elements, ``"error"`` for those that cannot be made."""
    iterator, made = iter(dataset), []
    for _ in range(count):
        try:
            made.append(next(iterator).numpy().tolist())
        except tf.errors.InvalidArgumentError:
            made.append("error")
        except StopIteration:
            made.append("end")
    return made


SIX = Dataset.range(6).map(without(1, 4))
BAD = "error"


@pytest.mark.parametrize(
    ("dataset", "elements"),
    [
        (SIX, [0, BAD, 2, 3, BAD, 5]),
        (SIX.prefetch(2).with_options(tf.data.Options()), [0, BAD, 2, 3, BAD, 5]),
        (SIX.take(3), [0, BAD, 2, 3]),
        (SIX.skip(1), [BAD, 2, 3, BAD, 5]),
        (SIX.skip(2), [BAD, BAD, 5]),
        (SIX.shard(2, 0), [0, BAD, 3, BAD]),
        (SIX.shard(2, 1), [BAD, 2, BAD, 5]),
        (SIX.enumerate().map(lambda n, x: n), [0, BAD, 2, 3, BAD, 5]),
        (Dataset.zip((SIX, Dataset.range(6))).map(lambda x, n: n), [0, BAD, 2, 3, BAD, 5]),
        (SIX.filter(lambda x: x > 2), [BAD, 3, BAD, 5]),
        (Dataset.range(6).filter(lambda x: without(1, 4)(x) > 2), [BAD, 3, BAD, 5]),
        (SIX.take(2).repeat(2), [0, BAD, 2, 0, BAD, 2]),
        (Dataset.range(1).map(without(0)).repeat(), [BAD]),
        (SIX.shuffle(1), [0, BAD, 2, 3, BAD, 5]),
        (SIX.concatenate(SIX.take(2)), [0, BAD, 2, 3, BAD, 5, 0, BAD, 2]),
        (SIX.take(9).batch(2), [BAD, [2, 3], BAD, [5]]),
        (SIX.take(9).batch(2, drop_remainder=True), [BAD, [2, 3], BAD]),
    ],
)
def test_transformations_go_on_after_an_error(dataset: Any, elements: list[Any]) -> None:
    assert outcomes(dataset) == [*elements, *["end"] * (9 - len(elements))]


def test_a_cache_keeps_the_elements_without_an_error() -> None:
    cached = SIX.cache()
    assert outcomes(cached) == [0, BAD, 2, 3, BAD, 5, "end", "end", "end"]
    assert outcomes(cached, 5) == [0, 2, 3, 5, "end"]


def test_a_shuffle_goes_on_to_fill_its_buffer() -> None:
    made = outcomes(SIX.shuffle(3, seed=1))
    assert made[0] == BAD
    assert sorted(map(str, made)) == sorted(map(str, [0.0, 2.0, 3.0, 5.0, BAD, BAD, "end", "end", "end"]))


def test_batches_of_unequal_shapes() -> None:
    lists = Dataset.from_generator(lambda: iter([[1], [1, 2], [3], [4]]), output_types=tf.int32)
    assert outcomes(lists.batch(2), 3) == [BAD, [[3], [4]], "end"]


def test_sessions_go_on_after_an_error() -> None:
    with tf.Graph().as_default(), v1.Session() as session:
        element = v1.data.make_one_shot_iterator(v1.data.Dataset.range(3).map(without(1))).get_next()
        assert session.run(element) == 0
        with pytest.raises(tf.errors.InvalidArgumentError):
            session.run(element)
        assert session.run(element) == 2
        with pytest.raises(tf.errors.OutOfRangeError):
            session.run(element)


@pytest.mark.parametrize(
    ("error", "expected"),
    [
        (ValueError("words"), tf.errors.InvalidArgumentError),
        (TypeError("words"), tf.errors.InvalidArgumentError),
        (KeyError("words"), tf.errors.UnknownError),
        (ZeroDivisionError("words"), tf.errors.UnknownError),
        (NotImplementedError("words"), tf.errors.UnimplementedError),
        (MemoryError("words"), tf.errors.ResourceExhaustedError),
        (tf.errors.NotFoundError(None, None, "words"), tf.errors.UnknownError),
    ],
)
def test_errors_of_generators(error: Exception, expected: type[Exception]) -> None:
    def generator() -> Iterator[int]:
        yield 1
        raise error

    iterator = iter(Dataset.from_generator(generator, output_types=tf.int32))
    assert next(iterator) == 1
    with pytest.raises(expected, match=f"{type(error).__name__}: .*words") as caught:
        next(iterator)
    assert caught.value.__cause__ is error
    assert next(iterator, None) is None
    with pytest.raises(expected, match="words"):
        next(iter(Dataset.from_generator(lambda: _raise(error), tf.int32)))


def _raise(error: Exception) -> Any:
    raise error


def test_a_function_that_raises_stop_iteration_is_an_error_and_no_end() -> None:
    numbers = iter(Dataset.range(2))
    for dataset in (
        Dataset.range(5).map(lambda x: x + next(numbers)),
        Dataset.range(5).filter(lambda x: x < next(numbers)),
    ):
        with pytest.raises(RuntimeError, match="a function of a data set, raised StopIteration"):
            list(dataset)


def test_an_iterator_that_is_false_at_its_end_is_not_started_again() -> None:
    class Numbers:
        def __init__(self) -> None:
            self.left = [1, 2, 3]

        def __len__(self) -> int:
            return len(self.left)

        def __iter__(self) -> "Numbers":
            return self

        def __next__(self) -> int:
            if not self.left:
                raise StopIteration
            return self.left.pop(0)

    assert outcomes(Dataset.from_generator(Numbers, tf.int32).take(10), 4) == [1, 2, 3, "end"]


def test_a_refusal_in_a_generator_is_raised_as_it_is() -> None:
    error = tf.errors.ResourceExhaustedError(None, None, "words")
    with pytest.raises(tf.errors.ResourceExhaustedError) as caught:
        next(iter(Dataset.from_generator(lambda: _raise(error), tf.int32)))
    assert caught.value is error
    assert error.__cause__ is None
