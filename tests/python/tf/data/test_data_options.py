"""Options of data sets, parts of them, and iterators that say whether there is an element. Values are TensorFlow's."""

from typing import Any

import pytest

import allotment.tf as tf
from support.tf.data_sets import listed

Dataset = tf.data.Dataset
AutoShardPolicy = tf.data.experimental.AutoShardPolicy


@pytest.mark.parametrize(
    ("count", "index", "elements"),
    [(3, 0, [0, 3, 6]), (3, 1, [1, 4]), (3, 2, [2, 5]), (1, 0, list(range(7))), (9, 8, [])],
)
def test_a_shard_is_each_so_manieth_element(count: int, index: int, elements: list[int]) -> None:
    made = Dataset.range(7).shard(count, index)
    assert listed(made) == listed(made) == elements
    assert made.cardinality().numpy() == len(made) == len(elements)
    assert made.element_spec == tf.TensorSpec([], tf.int64)
    assert repr(made).startswith("<_ShardDataset ")


def test_how_many_elements_a_shard_has_of_those_that_cannot_be_counted() -> None:
    assert Dataset.range(7).filter(lambda x: x > 1).shard(2, 1).cardinality().numpy() == -2
    assert Dataset.range(7).repeat().shard(2, 1).cardinality().numpy() == -1


@pytest.mark.parametrize(
    ("count", "index", "error", "text"),
    [
        (3, 3, tf.errors.InvalidArgumentError, r"Index must be between 0 and 2 \(currently index = 3\)"),
        (3, -1, tf.errors.InvalidArgumentError, r"Index must be between 0 and 2 \(currently index = -1\)"),
        (0, 0, tf.errors.InvalidArgumentError, r"must be greater than zero \(currently num_shards = 0\)"),
        (3, 1.5, TypeError, "index must be an integer, not 1.5"),
        ("a", 1, TypeError, "num_shards must be an integer, not 'a'"),
    ],
)
def test_a_shard_that_there_is_not(count: Any, index: Any, error: type[Exception], text: str) -> None:
    with pytest.raises(error, match=text):
        Dataset.range(7).shard(count, index)


def test_options_are_passed_on_and_merged() -> None:
    options, later = tf.data.Options(), tf.data.Options()
    assert options == later
    assert options.experimental_distribute.auto_shard_policy is AutoShardPolicy.AUTO
    assert (options.deterministic, options.threading.private_threadpool_size) == (None, None)
    options.experimental_distribute.auto_shard_policy = AutoShardPolicy.DATA
    options.deterministic = False
    later.experimental_deterministic = True
    made = Dataset.range(4).with_options(options)
    assert repr(made).startswith("<_OptionsDataset ")
    assert listed(made) == [0, 1, 2, 3]
    assert made.batch(2).map(lambda x: x).shuffle(2).options() == options != later
    both = made.with_options(later).options()
    assert both.deterministic is True
    assert both.experimental_distribute.auto_shard_policy is AutoShardPolicy.DATA
    assert options.merge(later) == both
    assert Dataset.zip((made, Dataset.range(2))).options().deterministic is False
    assert made.concatenate(Dataset.range(2).with_options(later)).options().deterministic is True
    assert Dataset.range(2).options() == tf.data.Options()


def test_options_that_there_are_not() -> None:
    options = tf.data.Options()
    with pytest.raises(AttributeError, match="Cannot set the property foo on Options"):
        options.foo = 1
    with pytest.raises(AttributeError, match="'Options' object has no attribute 'foo'"):
        options.foo  # noqa: B018 - to be refused
    with pytest.raises(TypeError, match=r'Property "deterministic" must be of type .*bool.*, got: 3'):
        options.deterministic = 3
    with pytest.raises(TypeError, match=r'Property "auto_shard_policy" must be of type .*, got: DATA'):
        options.experimental_distribute.auto_shard_policy = "DATA"
    kept = Dataset.range(2).with_options(options).options()
    for part, name, value in ((kept, "deterministic", True), (kept.threading, "max_intra_op_parallelism", 1)):
        with pytest.raises(ValueError, match=r"returned by `tf\.data\.Dataset\.options"):
            setattr(part, name, value)
    with pytest.raises(TypeError, match=r"options must be a tf\.data\.Options, not None"):
        Dataset.range(2).with_options(None)  # type: ignore[arg-type]


def test_the_next_element_if_there_is_one() -> None:
    iterator = iter(Dataset.range(2).map(lambda x: (x, {"a": x + 1})))
    first = iterator.get_next_as_optional()
    assert first.has_value().numpy()
    assert first.has_value().dtype is tf.bool
    assert [each.numpy() for each in tf.nest.flatten(first.get_value())] == [0, 1]
    scalar = tf.TensorSpec([], tf.int64)
    assert first.element_spec == (scalar, {"a": scalar})
    next(iterator)
    for _ in range(2):
        last = iterator.get_next_as_optional()
        assert not last.has_value().numpy()
        assert last.element_spec == first.element_spec
        with pytest.raises(tf.errors.InvalidArgumentError, match="The given optional does not have a value"):
            last.get_value()


def test_optionals_are_made_by_their_functions() -> None:
    optional = tf.data.experimental.Optional
    assert optional.from_value((1, [2.0])).element_spec == (
        tf.TensorSpec([], tf.int32),
        tf.TensorSpec([1], tf.float32),
    )
    assert not optional.empty(tf.TensorSpec([2])).has_value().numpy()
    with pytest.raises(TypeError, match="Can't instantiate abstract class Optional"):
        optional()


@pytest.mark.parametrize("number", [0, -5])
def test_a_number_of_parallel_calls_that_is_none(number: int) -> None:
    numbers = tf.data.Dataset.range(2)
    calls: list[tuple[Any, Any]] = [(numbers.map, lambda x: x), (numbers.batch, 2)]
    for change, argument in calls:
        with pytest.raises(
            tf.errors.InvalidArgumentError, match="num_parallel_calls must be greater than zero"
        ):
            change(argument, num_parallel_calls=number)
    assert len(list(numbers.map(lambda x: x, num_parallel_calls=tf.data.AUTOTUNE))) == 2
