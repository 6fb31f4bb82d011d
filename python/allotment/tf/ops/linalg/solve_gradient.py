"""Gradients of inverses, determinants, and solutions of linear equations."""

from typing import Any

from allotment.tf.ops.array.array import cast
from allotment.tf.ops.array.layout import expand_dims
from allotment.tf.ops.autodiff.broadcasting import length_of, shape_of, summed_to
from allotment.tf.ops.autodiff.differentiation import Call, gradient
from allotment.tf.ops.linalg.band_part import band_part
from allotment.tf.ops.linalg.factor import svd
from allotment.tf.ops.linalg.matrices import eye
from allotment.tf.ops.linalg.products import matmul
from allotment.tf.ops.linalg.solve import inv, solve, triangular_solve
from allotment.tf.ops.math.complex_numbers import conj


@gradient("MatrixInverse", inputs=False, outputs=True)
def _inv(call: Call, upstream: Any) -> Any:
    y = call.outputs[0]
    if call.args[0]:
        return -matmul(y, matmul(upstream, y, adjoint_a=True))
    return -matmul(y, matmul(upstream, y, adjoint_b=True), adjoint_a=True)


@gradient("MatrixDeterminant", outputs=True)
def _det(call: Call, upstream: Any) -> Any:
    return _for_each_matrix(upstream * conj(call.outputs[0])) * inv(call.inputs[0], adjoint=True)


def _for_each_matrix(numbers: Any) -> Any:
    return expand_dims(expand_dims(numbers, -1), -1)


@gradient("LogMatrixDeterminant", outputs=True)
def _slogdet(call: Call, of_sign: Any, of_log: Any) -> Any:
    # The sign of real numbers changes in steps.
    return _for_each_matrix(of_log) * inv(call.inputs[0], adjoint=True)


@gradient("MatrixSolve", outputs=True)
def _solve(call: Call, upstream: Any) -> list[Any]:
    matrix, adjoint_ = call.inputs[0], call.args[0]
    by_rhs = solve(matrix, upstream, adjoint=not adjoint_)
    return [_by_matrix(call.outputs[0], by_rhs, adjoint_) if call.wanted[0] else None, by_rhs]


def _by_matrix(solution: Any, by_rhs: Any, adjoint_: bool) -> Any:
    if adjoint_:
        return -matmul(solution, by_rhs, adjoint_b=True)
    return -matmul(by_rhs, solution, adjoint_b=True)


@gradient("MatrixTriangularSolve", outputs=True)
def _triangular_solve(call: Call, upstream: Any) -> list[Any]:
    (matrix, rhs), (lower, adjoint_) = call.inputs, call.args
    by_rhs = triangular_solve(matrix, upstream, lower=lower, adjoint=not adjoint_)
    by_matrix = None
    if call.wanted[0]:
        whole = _by_matrix(call.outputs[0], by_rhs, adjoint_)
        triangle = band_part(whole, -1, 0) if lower else band_part(whole, 0, -1)
        by_matrix = summed_to(triangle, shape_of(matrix))
    return [by_matrix, summed_to(by_rhs, shape_of(rhs))]


@gradient("MatrixSolveLs", outputs=True)
def _least_squares(call: Call, upstream: Any) -> list[Any]:
    (a, b), x, regularizer = call.inputs, call.outputs[0], call.args[0]
    sides = a.shape[-2:]
    if not regularizer and not sides.is_fully_defined():
        return _least_squares_of_any_sides(a, b, x, upstream)
    if regularizer or sides[0] >= sides[1]:
        columns = length_of(a, -1)
        # x solves (aᴴa + λ) x = aᴴ b.
        normal = matmul(a, a, adjoint_a=True) + regularizer * eye(columns, dtype=a._dtype)
        inner = solve(normal, upstream)
        rest = b - matmul(a, x)
        by_a = matmul(rest, inner, adjoint_b=True) - matmul(matmul(a, inner), x, adjoint_b=True)
        return [by_a, matmul(a, inner)]
    # The shortest one: x = aᴴ y, where y solves (a aᴴ) y = b.
    normal = matmul(a, a, adjoint_b=True)
    by_b = solve(normal, matmul(a, upstream))
    y = solve(normal, b)
    spare = upstream - matmul(a, by_b, adjoint_a=True)
    return [matmul(y, spare, adjoint_b=True) - matmul(by_b, x, adjoint_b=True), by_b]


def _least_squares_of_any_sides(a: Any, b: Any, x: Any, upstream: Any) -> list[Any]:
    """The same in a graph that does not know whether there are more rows or columns."""
    s, u, v = svd(a)
    inverse = matmul(v / expand_dims(cast(s, v._dtype), -2), u, adjoint_b=True)
    by_b = matmul(inverse, upstream, adjoint_a=True)
    y = matmul(inverse, x, adjoint_a=True)
    rest, spare = b - matmul(a, x), upstream - matmul(a, by_b, adjoint_a=True)
    by_a = matmul(rest, matmul(inverse, by_b), adjoint_b=True) + matmul(y, spare, adjoint_b=True)
    return [by_a - matmul(by_b, x, adjoint_b=True), by_b]


__all__: list[str] = []
