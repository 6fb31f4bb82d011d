"""Decompositions, inverses, determinants and systems of equations: by what defines them, and by known numbers."""

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import allotment.tf as tf
from allotment.tf import linalg
from support.tf.tensors import check, check_refused, tensor

# The type, and how far a product of a few factors may be off.
TYPES = {"float32": 1e-5, "float64": 1e-12, "complex64": 1e-5, "complex128": 1e-12}
SEED = np.random.default_rng(7)
#: Matrices with an inverse, real and imaginary part of each.
SQUARES = SEED.normal(size=(2, 3, 3)) + 1j * SEED.normal(size=(2, 3, 3)) + 3 * np.eye(3)
TALL = SEED.normal(size=(2, 4, 3)) + 1j * SEED.normal(size=(2, 4, 3))


def of_type(array: Any, dtype: str) -> Any:
    return (array if "complex" in dtype else np.real(array)).astype(dtype)


def adjoint(array: Any) -> Any:
    return np.conj(np.swapaxes(array, -1, -2))


def close(result: Any, expected: Any, dtype: str) -> None:
    check(result, expected, dtype, rtol=TYPES[dtype], atol=TYPES[dtype])


@pytest.mark.parametrize("dtype", TYPES)
def test_inverses(dtype: str) -> None:
    x = of_type(SQUARES, dtype)
    for adjoined in (False, True):
        found = linalg.inv(tensor(x), adjoint=adjoined)
        assert found.dtype.name == dtype
        product = (adjoint(x) if adjoined else x) @ found.numpy()
        np.testing.assert_allclose(product, np.broadcast_to(np.eye(3), x.shape), atol=TYPES[dtype])


def test_a_known_inverse() -> None:
    check(linalg.inv(tensor([[4.0, 7.0], [2.0, 6.0]])), [[0.6, -0.7], [-0.2, 0.4]], "float32", rtol=1e-5)
    check(linalg.inv(tensor([[2.0]], "float16")), [[0.5]], "float16")
    check(linalg.inv(tensor(np.zeros((0, 0)))), np.zeros((0, 0)), "float64")


@pytest.mark.parametrize("dtype", TYPES)
def test_determinants(dtype: str) -> None:
    x = of_type(SQUARES, dtype)
    a, b, c, d, e, f, g, h, i = (x[:, row, column] for row in range(3) for column in range(3))
    expected = a * (e * i - f * h) - b * (d * i - f * g) + c * (d * h - e * g)
    close(linalg.det(tensor(x)), expected, dtype)
    sign, log = linalg.slogdet(tensor(x))
    close(sign, expected / np.abs(expected), dtype)
    close(log, np.log(np.abs(expected)), dtype)
    assert linalg.slogdet(tensor(x)).log_abs_determinant.dtype.name == dtype


def test_known_determinants() -> None:
    check(linalg.det(tensor([[1.0, 2.0], [3.0, 4.0]])), -2, "float32")
    check(linalg.det(tensor([[1.0, 2.0], [2.0, 4.0]])), 0, "float32")
    check(linalg.logdet(tensor([[2.0, 0.0], [0.0, 8.0]])), math.log(16), "float32")


@pytest.mark.parametrize("dtype", TYPES)
def test_systems(dtype: str) -> None:
    x, rhs = of_type(SQUARES, dtype), of_type(TALL[:, :3, :2], dtype)
    for adjoined in (False, True):
        found = linalg.solve(tensor(x), tensor(rhs), adjoint=adjoined)
        close(tensor((adjoint(x) if adjoined else x) @ found.numpy()), rhs, dtype)
    lower = linalg.triangular_solve(tensor(x), tensor(rhs))
    close(tensor(np.tril(x) @ lower.numpy()), rhs, dtype)
    upper = linalg.triangular_solve(tensor(x), tensor(rhs), lower=False, adjoint=True)
    close(tensor(adjoint(np.triu(x)) @ upper.numpy()), rhs, dtype)


def test_triangles_and_right_hand_sides_are_broadcast() -> None:
    triangle = tensor([[2.0, 0.0], [1.0, 4.0]])
    sides = tensor([[[2.0], [5.0]], [[4.0], [10.0]], [[-2.0], [3.0]]])
    check(linalg.triangular_solve(triangle, sides), [[[1], [1]], [[2], [2]], [[-1], [1]]], "float32")
    twice = linalg.triangular_solve(tensor([[[2.0, 0.0], [1.0, 4.0]]] * 2), sides[0])
    check(twice, [[[1], [1]]] * 2, "float32")
    solved = [[[0.375], [0.25]], [[0.75], [0.5]], [[-0.625], [0.25]]]
    check(linalg.cholesky_solve(triangle, sides), solved, "float32")


@pytest.mark.parametrize("dtype", TYPES)
def test_cholesky(dtype: str) -> None:
    x = of_type(TALL, dtype)
    positive = adjoint(x) @ x
    found = linalg.cholesky(tensor(positive))
    np.testing.assert_array_equal(np.triu(found.numpy(), 1), np.zeros_like(found.numpy()))
    close(tensor(found.numpy() @ adjoint(found.numpy())), positive, dtype)
    rhs = of_type(TALL[:, :3, :1], dtype)
    solved = linalg.cholesky_solve(found, tensor(rhs))
    np.testing.assert_allclose(positive @ solved.numpy(), rhs, rtol=1e-3, atol=50 * TYPES[dtype])
    check(linalg.cholesky(tensor([[4.0, 2.0], [2.0, 5.0]])), [[2, 0], [1, 2]], "float32")


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("full", [False, True])
def test_qr(dtype: str, full: bool) -> None:
    x = of_type(TALL, dtype)
    found = linalg.qr(tensor(x), full_matrices=full)
    assert found.q.shape == ((2, 4, 4) if full else (2, 4, 3))
    assert found.r.shape == ((2, 4, 3) if full else (2, 3, 3))
    q, r = found.q.numpy(), found.r.numpy()
    close(tensor(q @ r), x, dtype)
    np.testing.assert_allclose(
        adjoint(q) @ q, np.broadcast_to(np.eye(q.shape[-1]), (2, *[q.shape[-1]] * 2)), atol=TYPES[dtype]
    )
    np.testing.assert_array_equal(np.tril(r, -1), np.zeros_like(r))


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("full", [False, True])
def test_svd_gives_values_then_left_then_right_vectors(dtype: str, full: bool) -> None:
    x = of_type(TALL, dtype)
    s, u, v = linalg.svd(tensor(x), full_matrices=full)
    assert s.dtype.name == dtype.replace("complex128", "float64").replace("complex64", "float32")
    assert (s.shape, u.shape, v.shape) == ((2, 3), (2, 4, 4 if full else 3), (2, 3, 3))
    product = u.numpy()[..., :3] @ (s.numpy()[..., None] * adjoint(v.numpy()))
    close(tensor(product.astype(dtype)), x, dtype)
    assert (np.diff(s.numpy()) <= 0).all()
    np.testing.assert_allclose(linalg.svd(tensor(x), compute_uv=False).numpy(), s.numpy(), rtol=TYPES[dtype])


@pytest.mark.parametrize("dtype", TYPES)
def test_self_adjoint_eigenvalues(dtype: str) -> None:
    x = of_type(SQUARES + adjoint(SQUARES), dtype)
    values, vectors = linalg.eigh(tensor(x))
    close(tensor(x @ vectors.numpy()), vectors.numpy() * values.numpy()[..., None, :], dtype)
    np.testing.assert_allclose(linalg.eigvalsh(tensor(x)).numpy(), values.numpy(), rtol=1e-4)
    assert (np.diff(values.numpy().real) >= 0).all()
    # Only the lower triangle counts.
    np.testing.assert_array_equal(linalg.eigh(tensor(np.tril(x)))[0].numpy(), values.numpy())


@pytest.mark.parametrize("dtype", TYPES)
def test_eigenvalues_are_always_complex(dtype: str) -> None:
    x = of_type(SQUARES, dtype)
    values, vectors = linalg.eig(tensor(x))
    wanted = {"float32": "complex64", "float64": "complex128"}.get(dtype, dtype)
    assert (values.dtype.name, vectors.dtype.name) == (wanted, wanted)
    tolerance = TYPES[dtype] * 10
    np.testing.assert_allclose(
        x @ vectors.numpy(), vectors.numpy() * values.numpy()[..., None, :], atol=tolerance
    )
    assert linalg.eigvals(tensor([[2.0, 0.0], [0.0, 3.0]])).numpy().tolist() == [2, 3]
    check(linalg.eig(tensor([[0.0, -1.0], [1.0, 0.0]]))[0], [1j, -1j], "complex64", atol=1e-6)


def test_least_squares() -> None:
    # The line through (0, 1), (1, 3), (2, 4): slope 3/2, and 7/6 at zero.
    points, heights = tensor([[0.0, 1.0], [1.0, 1.0], [2.0, 1.0]]), tensor([[1.0], [3.0], [4.0]])
    check(linalg.lstsq(points, heights), [[1.5], [7 / 6]], "float32", rtol=1e-5)
    check(linalg.lstsq(points, heights, fast=False), [[1.5], [7 / 6]], "float32", rtol=1e-5)
    # With a pull to zero of 1: (AᵀA + I) x = Aᵀb, that is [[6, 3], [3, 4]] x = [11, 8].
    check(linalg.lstsq(points, heights, l2_regularizer=1.0), [[20 / 15], [1]], "float32", rtol=1e-5)
    # The shortest of many solutions of x + y = 2.
    check(linalg.lstsq(tensor([[[1.0, 1.0]]]), tensor([[[2.0]]])), [[[1], [1]]], "float32", rtol=1e-5)
    check(linalg.lstsq(tensor([[1j]]), tensor([[2 + 0j]])), [[-2j]], "complex128")


@pytest.mark.parametrize("dtype", TYPES)
def test_exponentials(dtype: str) -> None:
    theta = 2.5
    turn = of_type(np.array([[0, -theta], [theta, 0]]), dtype)
    expected = [[math.cos(theta), -math.sin(theta)], [math.sin(theta), math.cos(theta)]]
    close(linalg.expm(tensor(np.array([turn, 0 * turn]))), [expected, np.eye(2)], dtype)
    check(linalg.expm(tensor([[10.0]])), [[math.exp(10)]], "float32", rtol=1e-5)
    check(linalg.expm(tensor([[0.0, 1.0], [0.0, 0.0]])), [[1, 1], [0, 1]], "float32")
    with pytest.raises(ValueError, match="does not support matrices of type"):
        linalg.expm(tensor([[1]]))


SQUARE_ONLY = [linalg.inv, linalg.det, linalg.slogdet, linalg.cholesky, linalg.eigh, linalg.eig, linalg.expm]


@pytest.mark.parametrize("operation", SQUARE_ONLY)
def test_matrices_must_be_square(operation: Callable[..., Any]) -> None:
    check_refused(operation, tensor([[1.0, 2.0]]), text="Input matrix must be square, got shape [1,2] [Op:")
    check_refused(operation, tensor([1.0]), text="Input tensor 0 must have rank >= 2, got shape [1]")
    check_refused(operation, tensor([[True]]), text="[Op:")


@pytest.mark.simulated_gpus("the texts name the CPU")
def test_matrices_without_an_inverse() -> None:
    flat = tensor([[1.0, 2.0], [2.0, 4.0]])
    head = "{{function_node __wrapped__MatrixInverse_device_/job:localhost/replica:0/task:0/device:CPU:0}} "
    check_refused(linalg.inv, flat, text=head + "Input is not invertible. [Op:MatrixInverse] name: ")
    check_refused(
        linalg.solve, flat, tensor([[1.0], [1.0]]), text="Input matrix is not invertible. [Op:MatrixSolve]"
    )
    check_refused(
        linalg.triangular_solve, tensor([[0.0]]), tensor([[1.0]]), text="Input matrix is not invertible."
    )
    check_refused(linalg.inv, tensor([np.eye(2), np.zeros((2, 2))]), text="Input is not invertible.")


def test_what_is_not_positive_definite_has_no_triangle() -> None:
    nan = np.nan
    check(linalg.cholesky(tensor([[-4.0]])), [[nan]], "float32")
    check(linalg.cholesky(tensor([[1.0, 2.0], [2.0, 1.0]])), [[nan, 0], [nan, nan]], "float32")
    several = tensor([[[4.0, 2.0], [2.0, -3.0]], [[4.0, 2.0], [2.0, 5.0]]])
    check(linalg.cholesky(several), [[[nan, 0], [nan, nan]], [[2, 0], [1, 2]]], "float32")


def test_what_is_no_number_has_no_decomposition() -> None:
    lost = tensor([[np.nan, 1.0], [1.0, 1.0]])
    for values in (linalg.eigh, linalg.eigvalsh):
        check_refused(values, lost, text="Self-adjoint eigen decomposition was not successful.")
        check_refused(values, tensor([[np.inf]], "float64"), text="Self-adjoint eigen decomposition")
    check(linalg.eigvalsh(tensor([[1.0, np.nan], [0.0, 2.0]])), [1, 2], "float32")
    check_refused(linalg.eig, lost, text="Eigen decomposition was not successful.")


def test_right_hand_sides_that_do_not_fit() -> None:
    x = tensor([[1.0, 0.0], [0.0, 1.0]])
    check_refused(linalg.triangular_solve, x, tensor([1.0, 2.0]), text="ndims must be >= 2: 1")
    check_refused(linalg.triangular_solve, x, tensor([[1.0]]), text="Input matrix and rhs are incompatible")
    twice = tensor([np.eye(2)] * 2)
    check_refused(
        linalg.triangular_solve, twice, tensor(np.ones((3, 2, 1))), text="compatible batch dimensions"
    )
    for solve in (linalg.solve, linalg.lstsq):
        check_refused(solve, x, tensor([1.0, 2.0]), text="All input tensors must have the same rank")
        check_refused(solve, x, tensor([[1.0]]), text="Input matrix and rhs are incompatible")
        check_refused(
            solve, tensor([np.eye(2)] * 2), tensor(np.ones((3, 2, 1))), text="the same outer dimensions"
        )


def test_matrices_that_are_not_finite_have_no_singular_values() -> None:
    matrices = np.array([[[3, 0], [0, 4]], [[np.inf, 1], [2, 3]], [[1, np.nan], [2, 3]]], np.float32)
    values, left, right = (np.asarray(each) for each in linalg.svd(matrices))
    np.testing.assert_allclose(values[0], [4, 3], rtol=1e-6)
    assert np.isfinite(left[0]).all()
    assert all(np.isnan(each[1:]).all() for each in (values, left, right))
    np.testing.assert_array_equal(linalg.svd(matrices, compute_uv=False), values)


@pytest.mark.parametrize("adjoint", [False, True])
@pytest.mark.parametrize("lower", [False, True])
def test_many_triangular_systems_are_those_of_one_after_the_other(lower: bool, adjoint: bool) -> None:
    dice = np.random.default_rng(0)
    matrices = dice.normal(size=(50, 3, 3)) + 1j * dice.normal(size=(50, 3, 3)) + 4 * np.eye(3)
    sides = dice.normal(size=(50, 3, 2)) + 0j
    triangles = np.tril(matrices) if lower else np.triu(matrices)
    wanted = np.linalg.solve(np.conj(np.swapaxes(triangles, -1, -2)) if adjoint else triangles, sides)
    assert np.allclose(tf.linalg.triangular_solve(matrices, sides, lower, adjoint), wanted)
    matrices[7, 1, 1] = 0
    with pytest.raises(tf.errors.InvalidArgumentError, match="not invertible"):
        tf.linalg.triangular_solve(matrices, sides, lower, adjoint)
    matrices[7, 1, 1] = np.nan
    assert np.isnan(tf.linalg.triangular_solve(matrices, sides, lower, adjoint).numpy()[7]).any()
