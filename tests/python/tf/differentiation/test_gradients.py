"""Gradients of all operations against differences of their values, in every precision, and once more of gradients."""

import math
from typing import Any

import numpy as np
import pytest

import allotment.tf as tf
from allotment.tf import linalg, nn
from support.tf.arrays import apart, complexes, reals
from support.tf.derivatives import check, flat, slope, taped
from support.tf.gradient_samples import samples

SAMPLES = samples()

#: TensorFlow's second derivatives of these are not those of mathematics, and neither are ours.
FIRST_ONLY = {
    # The mean is a constant for the variance, which is right once.
    "moments",
    # Of running products with a zero in them the derivative is taken for zero.
    "reduce_prod with a zero",
    "reduce_prod with two",
}


@pytest.mark.parametrize("name", SAMPLES)
def test_gradients_are_the_slopes_that_differences_show(name: str) -> None:
    function, arrays = SAMPLES[name]
    check(function, arrays)


@pytest.mark.parametrize("name", [name for name in SAMPLES if name not in FIRST_ONLY])
def test_gradients_have_gradients(name: str) -> None:
    function, arrays = SAMPLES[name]
    check(slope(function), arrays, step=1e-5, tolerance=1e-4, tries=1)
    squares = slope(lambda *inputs: [each * each for each in flat(function(*inputs))])
    check(squares, arrays, step=1e-5, tolerance=1e-4, tries=1)


#: Draw doubles, which are no other numbers with fewer digits.
DOUBLES_ONLY = {"uniform", "normal", "truncated_normal"}


@pytest.mark.parametrize("name", [name for name in SAMPLES if name not in DOUBLES_ONLY])
def test_fewer_digits_give_the_same_gradients(name: str) -> None:
    function, arrays = SAMPLES[name]
    kinds = "".join(each.dtype.kind for each in arrays)
    for floats, tolerance in ((np.float32, 2e-3), (np.float16, 6e-2)):
        if floats is np.float16 and ("c" in kinds or name == "complex"):
            continue
        low = [each.astype(np.complex64 if each.dtype.kind == "c" else floats) for each in arrays]
        try:
            found = taped(function, low)
        except (tf.errors.InvalidArgumentError, tf.errors.NotFoundError) as refused:
            # Not every operation takes halves, and some of the samples' numbers have a type of their own.
            if any(
                words in str(refused) for words in ("allowed values", "was expected to be", "All kernels")
            ):
                continue
            raise
        expected = taped(
            function, [each.astype(exact.dtype) for each, exact in zip(low, arrays, strict=True)]
        )
        for one, other in zip(found, expected, strict=True):
            assert (one is None) == (other is None)
            if one is not None and one.size:
                scale = max(1.0, float(np.abs(other).max()))
                assert float(np.abs(one - other).max()) < tolerance * scale


def test_a_third_derivative_of_pooling() -> None:
    def pooled(x: Any) -> Any:
        return nn.max_pool(x, 2, 2, "SAME") ** 3

    check(slope(slope(pooled)), [apart(1, 3, 3, 1)], step=1e-5, tolerance=1e-4)


def gradient(function: Any, *arrays: Any) -> Any:
    """The gradient of a function's results, added up, by its only argument, or a list of those by each."""
    inputs = [tf.constant(each) for each in arrays]
    with tf.GradientTape() as tape:
        tape.watch(inputs)
        result = function(*inputs)
    found = [
        None if each is None else tf.convert_to_tensor(each).numpy() for each in tape.gradient(result, inputs)
    ]
    return found[0] if len(found) == 1 else found


def test_slopes_at_corners_are_those_of_tensorflow() -> None:
    zero = np.zeros(2, np.float32)
    assert gradient(tf.abs, zero).tolist() == [0, 0]
    assert gradient(nn.relu, zero).tolist() == [0, 0]
    assert gradient(nn.leaky_relu, zero).tolist() == pytest.approx([0.2, 0.2])
    assert gradient(nn.elu, zero).tolist() == [1, 1]
    assert gradient(tf.sign, zero).tolist() == [0, 0]
    assert [each.tolist() for each in gradient(tf.maximum, zero, zero)] == [[1, 1], [0, 0]]
    assert [each.tolist() for each in gradient(tf.minimum, zero, zero)] == [[1, 1], [0, 0]]
    assert gradient(tf.reduce_max, zero).tolist() == [0.5, 0.5]
    assert np.isnan(gradient(lambda x: tf.pow(x, 0.0), zero)).all()
    assert gradient(lambda y: tf.pow(tf.zeros(2), y), zero).tolist() == [0, 0]
    assert np.isinf(gradient(tf.sqrt, zero)).all()


def test_a_zero_wins_in_gradients_too() -> None:
    zero, two = np.zeros(1, np.float32), np.full(1, 2, np.float32)
    assert [each.tolist() for each in gradient(tf.math.divide_no_nan, two, zero)] == [[0], [0]]
    assert [each.tolist() for each in gradient(tf.math.xlogy, zero, two)] == [[0], [0]]
    assert [each.tolist() for each in gradient(tf.math.xdivy, zero, two)] == [[0], [0]]


@pytest.mark.parametrize(
    ("function", "slope"),
    [
        (tf.sqrt, 0.25),
        (tf.math.rsqrt, -0.0625),
        (tf.math.reciprocal, -0.0625),
        (lambda x: tf.norm(x[:, None], axis=1), 1.0),
    ],
)
def test_a_masked_singular_point_has_no_gradient(function: Any, slope: float) -> None:
    masked = np.array([0, 4], np.float32)
    assert gradient(lambda x: tf.where(x > 0, function(x), 0.0), masked).tolist() == [0, slope]
    # Others have NaN there, in TensorFlow, too.
    assert np.isnan(gradient(lambda x: tf.where(x > 0, tf.math.log(x), 0.0), masked)[0])


def test_only_what_fits_into_a_type_has_a_slope_when_saturated() -> None:
    x = np.array([3.0, 1e9, -1e9])
    assert gradient(lambda x: tf.saturate_cast(x, tf.float16), x).tolist() == [1, 0, 0]
    assert gradient(lambda x: tf.saturate_cast(x, tf.float32), x).tolist() == [1, 1, 1]


def test_a_cast_through_whole_numbers_has_no_gradient() -> None:
    assert gradient(lambda x: tf.cast(tf.cast(x, tf.int32), tf.float32) + 1, np.ones(2)) is None


@pytest.mark.parametrize(
    "function",
    [tf.floor, tf.round, tf.math.ceil, tf.math.rint, tf.stop_gradient, tf.zeros_like, lambda x: x // 2],
)
def test_steps_and_constants_have_no_gradient(function: Any) -> None:
    assert gradient(function, np.ones(2)) is None


def test_dropout_and_its_gradient_agree_on_what_was_dropped() -> None:
    x = tf.ones([100])
    with tf.GradientTape() as tape:
        tape.watch(x)
        dropped = nn.dropout(x, 0.5, seed=3)
    np.testing.assert_array_equal(tape.gradient(dropped, x).numpy(), dropped.numpy())
    assert 0 < np.count_nonzero(dropped.numpy()) < 100


def below(alpha: float, z: float) -> float:
    """The probability that a draw of a gamma distribution is below a number, by adding up its density."""
    # With the square of a number in the place of each, the density has no pole at zero.
    roots = np.linspace(0, np.sqrt(z), 100_001)
    density = 2 * roots ** (2 * alpha - 1) * np.exp(-(roots**2)) / math.gamma(alpha)
    return float(np.sum((density[1:] + density[:-1]) / 2) * roots[1])


def test_draws_of_gamma_distributions_move_with_their_parameter() -> None:
    alpha = tf.constant([0.7, 1.0, 3.5, 20.0], tf.float64)
    with tf.GradientTape() as tape:
        tape.watch(alpha)
        drawn = tf.random.gamma([3], alpha, dtype=tf.float64, seed=7)
    found = tape.jacobian(drawn, alpha).numpy()
    for place, (a, z) in enumerate(zip(np.tile(alpha.numpy(), 3), drawn.numpy().reshape(-1), strict=True)):
        density = z ** (a - 1) * math.exp(-z) / math.gamma(a)
        expected = -(below(a + 1e-4, z) - below(a - 1e-4, z)) / 2e-4 / density
        row = found.reshape(12, 4)[place]
        assert row[place % 4] == pytest.approx(expected, rel=1e-5)
        assert np.count_nonzero(row) == 1


@pytest.mark.parametrize("alpha", [0.3, 9e3, 2e4])
def test_the_mean_of_draws_moves_as_far_as_their_parameter(alpha: float) -> None:
    given = tf.constant(alpha, tf.float64)
    with tf.GradientTape() as tape:
        tape.watch(given)
        mean = tf.reduce_mean(tf.random.gamma([20_000], given, dtype=tf.float64, seed=7))
    assert float(tape.gradient(mean, given)) == pytest.approx(1, abs=0.03)


def test_rows_get_the_gradient_of_a_lookup_once_for_each_use() -> None:
    found = gradient(lambda table: nn.embedding_lookup(table, [2, 0, 2]), np.zeros((3, 2), np.float32))
    assert found.tolist() == [[1, 1], [0, 0], [2, 2]]


def test_a_hermitian_matrix_gets_a_gradient_for_the_triangle_that_is_read() -> None:
    values = gradient(linalg.eigvalsh, complexes(3, 3))
    np.testing.assert_array_equal(values, np.tril(values))


@pytest.mark.parametrize("function", [linalg.qr, linalg.svd])
def test_full_decompositions_of_matrices_that_are_not_square_say_that_there_is_no_gradient(
    function: Any,
) -> None:
    with pytest.raises(NotImplementedError, match="full_matrices=False"):
        gradient(lambda x: function(x, full_matrices=True), reals(4, 3))


def test_a_function_of_nothing_has_gradients_of_nothing() -> None:
    assert gradient(lambda x: tf.reduce_sum(x * x), np.zeros((0, 3), np.float32)).shape == (0, 3)
    assert gradient(lambda x: tf.matmul(x, tf.ones([3, 2])), np.zeros((0, 3), np.float32)).shape == (0, 3)
