"""Generators of random numbers, and numbers that only a seed decides."""

import threading
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from allotment.tf import random
from support.tf.tensors import check_refused, same, tensor

MANY = 100_000
STATELESS: list[Callable[[Any], Any]] = [
    lambda seed: random.stateless_uniform([8], seed),
    lambda seed: random.stateless_uniform([8], seed, 0, 1000, "int64"),
    lambda seed: random.stateless_uniform([8], seed, None, None, "uint32"),
    lambda seed: random.stateless_normal([8], seed),
    lambda seed: random.stateless_truncated_normal([8], seed),
]


@pytest.mark.parametrize("draw", STATELESS)
def test_numbers_of_nothing_but_a_seed(draw: Callable[[Any], Any]) -> None:
    random.set_seed(1)
    first = draw([1, 2])
    random.set_seed(2)
    assert same(draw(tensor([1, 2], "int64")), first)
    assert not same(draw([2, 1]), first)
    assert not same(draw([1, -2]), first)


def test_numbers_of_nothing_but_a_seed_are_distributed_as_others() -> None:
    drawn = random.stateless_uniform([MANY], [1, 2], -1, 1).numpy()
    assert abs(drawn.mean()) < 0.01
    drawn = random.stateless_normal([MANY], [1, 2], 5.0, 0.5).numpy()
    assert abs(drawn.mean() - 5) < 0.01
    assert abs(drawn.std() - 0.5) < 0.01
    assert np.abs(random.stateless_truncated_normal([MANY], [1, 2]).numpy()).max() <= 2
    full = random.stateless_uniform([MANY], [1, 2], None, None, "int32").numpy()
    assert full.min() < -(2**30)
    assert full.max() > 2**30


def test_numbers_that_no_seed_makes() -> None:
    for seed in (1, [1, 2, 3]):
        check_refused(random.stateless_uniform, [2], seed, text="seed must have shape [2], not [")
    check_refused(random.stateless_uniform, [2], [1.0, 2.0], text="[Op:StatelessRandomGetKeyCounter]")
    check_refused(
        random.stateless_uniform, [2], [1, 2], 5, 1, "int32", text="Need minval < maxval, got 5 >= 1"
    )
    for options in ({"maxval": None}, {"minval": None, "maxval": 5}):
        with pytest.raises(ValueError, match="must be both None or not None"):
            random.stateless_uniform([2], [1, 2], dtype="int32", **options)
    with pytest.raises(TypeError, match=r"Cannot convert 0\.0 to EagerTensor of dtype int32"):
        random.stateless_normal([2], [1, 2], dtype="int32")
    with pytest.raises(ValueError, match="Please don't use unsigned integers"):
        random.stateless_uniform([2], [1, 2], 0, 5, "uint32")


def test_a_number_is_no_shape_of_random_numbers() -> None:
    for draw in (random.normal, random.uniform, random.truncated_normal):
        for shape in (3, np.int64(3), tensor(3, "int32")):
            check_refused(draw, shape, text="shape must be a vector of {int32,int64}, got shape []")
    check_refused(random.poisson, 3, 1.0, text="shape must be a vector")
    check_refused(random.stateless_normal, 3, [1, 2], text="shape must be a vector")
    for by_rate in (random.gamma, random.poisson):
        with pytest.raises(TypeError, match=r"Cannot convert \[2\.5\] to EagerTensor of dtype int32"):
            by_rate([2.5], 1.0)


def test_generators() -> None:
    one, two = random.Generator.from_seed(1), random.Generator.from_seed(1)
    draws: list[Callable[[random.Generator], Any]] = [
        lambda generator: generator.uniform([8]),
        lambda generator: generator.uniform([8], 0, 1000, "int32"),
        lambda generator: generator.uniform_full_int([8]),
        lambda generator: generator.normal([8], 5.0),
        lambda generator: generator.truncated_normal([8]),
    ]
    for draw in draws:
        random.set_seed(3)
        first = draw(one)
        assert same(draw(two), first)
        assert not same(draw(one), first)
        draw(two)
    two.reset_from_seed(1)
    assert same(two.uniform([8]), random.Generator.from_seed(1).uniform([8]))
    assert not same(
        random.Generator.from_seed([1, 2]).uniform([8]), random.Generator.from_seed(1).uniform([8])
    )
    three, four = (random.Generator.from_non_deterministic_state() for _ in range(2))
    assert not same(three.uniform([8]), four.uniform([8]))


def test_generators_split() -> None:
    numbers = [each.uniform([8]) for each in random.Generator.from_seed(1).split(3)]
    again = [each.uniform([8]) for each in random.Generator.from_seed(1).split(3)]
    assert all(map(same, numbers, again))
    assert len({tuple(each.numpy()) for each in numbers}) == 3


def test_the_generator_of_the_process() -> None:
    random.set_global_generator(random.Generator.from_seed(1))
    assert random.get_global_generator() is random.get_global_generator()
    assert same(random.get_global_generator().uniform([8]), random.Generator.from_seed(1).uniform([8]))


def test_generators_of_no_kind() -> None:
    with pytest.raises(ValueError, match="Argument `alg` got unsupported value x"):
        random.Generator.from_seed(1, alg="x")
    check_refused(random.Generator.from_seed, "a", text="seed must be whole numbers, not 'a'")


def test_threads_share_one_sequence() -> None:
    random.set_seed(1)
    drawn: list[Any] = []

    def work() -> None:
        drawn.extend(random.uniform([4]).numpy() for _ in range(50))

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    # Each thread got numbers of its own.
    assert len(np.unique(np.concatenate(drawn))) > 795
