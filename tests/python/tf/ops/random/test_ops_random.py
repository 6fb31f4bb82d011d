"""Random numbers: what decides them, and how they are distributed."""

import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from allotment.errors import NotFoundError
from allotment.tf import random
from support.child import run_program
from support.tf.tensors import check, check_refused, same, tensor

MANY = 100_000
ALL: list[Callable[..., Any]] = [
    lambda **seed: random.uniform([8], **seed),
    lambda **seed: random.uniform([8], 0, 1000, "int32", **seed),
    lambda **seed: random.normal([8], **seed),
    lambda **seed: random.truncated_normal([8], **seed),
    lambda **seed: random.shuffle(np.arange(100), **seed),
    lambda **seed: random.categorical(np.zeros((1, 1000), np.float32), 8, **seed),
    lambda **seed: random.poisson([8], 1000.0, **seed),
    lambda **seed: random.gamma([8], 2.0, **seed),
]
everything = pytest.mark.parametrize("draw", ALL)


@everything
def test_the_program_s_seed_starts_everything_again(draw: Callable[..., Any]) -> None:
    random.set_seed(7)
    first, second = draw(), draw()
    random.set_seed(7)
    assert same(draw(), first)
    assert same(draw(), second)
    assert not same(first, second)
    random.set_seed(8)
    assert not same(draw(), first)


@everything
def test_an_operation_s_seed_makes_a_sequence_of_its_own(draw: Callable[..., Any]) -> None:
    random.set_seed(7)
    first, second = draw(seed=1), draw(seed=1)
    other = draw(seed=2)
    assert not same(first, second)
    assert not same(first, other)
    random.set_seed(7)
    random.uniform([100])
    random.uniform([3], seed=3)
    assert same(draw(seed=1), first)
    assert same(draw(seed=2), other)
    assert same(draw(seed=1), second)
    random.set_seed(8)
    assert not same(draw(seed=1), first)


def test_sequences_are_the_same_in_every_process() -> None:
    program = """
        from allotment.tf import random
        print(random.uniform([3], seed=1).numpy(), random.uniform([3], seed=1).numpy())
        free = random.normal([3]).numpy()
        random.set_seed(5)
        print(random.normal([3]).numpy(), random.normal([3], seed=1).numpy())
        print(random.stateless_uniform([3], [1, 2]).numpy())
        print(random.Generator.from_seed(3).normal([3]).numpy())
        print("free", free)
    """
    first, second = (run_program(program) for _ in range(2))
    assert first.returncode == 0, first.stderr
    assert first.stdout.partition("free")[0] == second.stdout.partition("free")[0]
    assert first.stdout != second.stdout


def test_what_is_no_seed() -> None:
    for call in (random.set_seed, lambda seed: random.uniform([1], seed=seed)):
        for seed in ("a", [1, 2], object()):
            with pytest.raises(TypeError, match="seed must be one whole number, not"):
                call(seed)
    random.set_seed(-1)
    random.set_seed(2**70)
    random.set_seed(tensor(3))
    random.set_seed(None)
    assert not same(random.uniform([8]), random.uniform([8]))


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
def test_uniform_floats(dtype: str) -> None:
    random.set_seed(1)
    x = random.uniform([MANY], dtype=dtype)
    assert x.dtype.name == dtype
    values = x.numpy().astype(np.float64)
    assert values.min() >= 0
    assert values.max() < 1
    assert abs(values.mean() - 0.5) < 0.01
    # Each tenth has its share.
    counts = np.histogram(values, 10, (0, 1))[0]
    assert np.abs(counts / MANY - 0.1).max() < 0.01


def test_uniform_bounds() -> None:
    random.set_seed(1)
    values = random.uniform([MANY], -3, 5).numpy()
    assert -3 <= values.min() < -2.99
    assert 4.99 < values.max() <= 5
    assert random.uniform([], maxval=0.5).shape == []
    low, high = random.uniform([2], [0.0, 10.0], [1.0, 11.0]).numpy()
    assert 0 <= low < 1
    assert 10 <= high < 11


@pytest.mark.parametrize("dtype", ["int32", "int64"])
def test_uniform_integers(dtype: str) -> None:
    random.set_seed(1)
    x = random.uniform(tensor([MANY]), 3, 8, dtype)
    assert x.dtype.name == dtype
    values, counts = np.unique(x.numpy(), return_counts=True)
    assert values.tolist() == [3, 4, 5, 6, 7]
    assert np.abs(counts / MANY - 0.2).max() < 0.01


def test_uniform_numbers_that_cannot_be_drawn() -> None:
    with pytest.raises(ValueError, match="Must specify maxval for integer dtype"):
        random.uniform([2], dtype="int32")
    for dtype in ("uint8", "string", "complex64", "bool"):
        with pytest.raises(ValueError, match=re.escape("Accepted dtypes are (tf.float16, tf.float32")):
            random.uniform([2], 0, 1, dtype)
    check_refused(
        random.uniform, [2], 5, 5, "int32", text="Need minval < maxval, got 5 >= 5 [Op:RandomUniformInt]"
    )
    check_refused(random.uniform, [2], [1, 2], 5, "int32", text="minval must be 0-D, got shape [2]")
    check_refused(random.uniform, [-2], text="Dimension -2 must be >= 0 [Op:RandomUniform]")
    check_refused(random.uniform, "a", text="a shape must be whole numbers, not 'a'")


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
def test_normal_numbers(dtype: str) -> None:
    random.set_seed(1)
    x = random.normal([MANY], 10.0, 2.0, dtype)
    assert x.dtype.name == dtype
    values = (x.numpy().astype(np.float64) - 10) / 2
    assert abs(values.mean()) < 0.02
    assert abs(values.std() - 1) < 0.02
    assert abs((np.abs(values) > 1.96).mean() - 0.05) < 0.005


def test_truncated_normal_numbers() -> None:
    random.set_seed(1)
    values = random.truncated_normal([100, 1000], 1.0, 3.0).numpy()
    assert np.abs(values - 1).max() <= 6
    assert abs(values.mean() - 1) < 0.05
    # The standard deviation of a normal that is cut at two of its own.
    assert abs(values.std() / 3 - 0.87963) < 0.01
    assert random.truncated_normal([], dtype="float16").dtype.name == "float16"
    assert random.truncated_normal([0]).shape == [0]


def test_normal_numbers_that_cannot_be_drawn() -> None:
    for draw in (random.normal, random.truncated_normal):
        with pytest.raises(TypeError, match="int32"):
            draw([2], dtype="int32")
        check_refused(draw, [2], [1.0, 2.0, 3.0], text="Incompatible shapes: [2] vs. [3] [Op:AddV2]")


def test_shuffling_keeps_the_slices() -> None:
    random.set_seed(1)
    x = np.arange(300).reshape(100, 3)
    shuffled = random.shuffle(x)
    assert not (shuffled.numpy() == x).all()
    np.testing.assert_array_equal(np.sort(shuffled.numpy(), 0), x)
    assert (shuffled.numpy() % 3 == [0, 1, 2]).all()
    check(random.shuffle(5), 5, "int32")
    assert sorted(random.shuffle(["a", "b"]).numpy()) == [b"a", b"b"]


def test_every_order_is_as_likely() -> None:
    random.set_seed(1)
    orders = [tuple(random.shuffle([0, 1, 2]).numpy().tolist()) for _ in range(3000)]
    counts = [orders.count(order) for order in set(orders)]
    assert len(counts) == 6
    assert max(abs(count / 3000 - 1 / 6) for count in counts) < 0.03


def test_categories() -> None:
    random.set_seed(1)
    weights = np.array([[1.0, 2.0, 0.0, 5.0], [1.0, 1.0, 1.0, 1.0]])
    with np.errstate(divide="ignore"):
        logits = np.log(weights) + np.array([[3], [-700]])
    drawn = random.categorical(logits, MANY)
    assert drawn.dtype.name == "int64"
    assert drawn.shape == [2, MANY]
    for row, expected in zip(drawn.numpy(), weights / weights.sum(1, keepdims=True), strict=True):
        assert np.abs(np.bincount(row, minlength=4) / MANY - expected).max() < 0.01
    assert random.categorical([[0.0]], 2, "int32").dtype.name == "int32"
    assert random.categorical([[float("nan"), 1.0]], 50).numpy().min() == 1
    assert random.categorical(np.zeros((0, 2)), 3).shape == [0, 3]


def test_categories_that_cannot_be_drawn() -> None:
    check_refused(
        random.categorical, [0.0], 3, text="logits should be a matrix, got shape [1] [Op:Multinomial]"
    )
    check_refused(random.categorical, [[0.0]], -3, text="num_samples should be non-negative, got -3")
    check_refused(random.categorical, [[]], 3, text="num_classes should be positive, got 0")
    with pytest.raises(NotFoundError, match="T=DT_INT32"):
        random.categorical([[1]], 3)
    with pytest.raises(ValueError, match=re.escape("Accepted dtypes are (tf.int32, tf.int64)")):
        random.categorical([[0.0]], 3, "float32")


def test_counts_of_events() -> None:
    random.set_seed(1)
    x = random.poisson([MANY], [0.5, 20.0, 0.0, -1.0])
    assert x.shape == [MANY, 4]
    assert x.dtype.name == "float32"
    values = x.numpy()
    for column, rate in enumerate((0.5, 20, 0, 0)):
        assert abs(values[:, column].mean() - rate) < 0.1
        assert abs(values[:, column].var() - rate) < 0.5
    assert random.poisson([], 5, "int32").dtype.name == "int32"
    check_refused(random.poisson, [], 5.0, "uint8", text="Value for attr 'dtype' of uint8 is not in the list")


def test_gamma_numbers() -> None:
    random.set_seed(1)
    x = random.gamma([MANY], [0.5, 3.0], [[1.0], [2.0]])
    assert x.shape == [MANY, 2, 2]
    values = x.numpy()
    assert values.min() > 0
    for row, beta in enumerate((1, 2)):
        for column, alpha in enumerate((0.5, 3)):
            drawn = values[:, row, column]
            assert abs(drawn.mean() - alpha / beta) < 0.05
            assert abs(drawn.var() - alpha / beta**2) < 0.15
    assert np.isnan(random.gamma([2], -1.0).numpy()).all()
    assert random.gamma([2], 1.0, dtype="float16").dtype.name == "float16"
    with pytest.raises(ValueError, match="gamma numbers are floats, not int32"):
        random.gamma([2], 1, dtype="int32")
