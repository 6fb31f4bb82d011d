"""Gradients of products of matrices."""

from typing import Any

from allotment.tf.ops.autodiff.broadcasting import shape_of, summed_to
from allotment.tf.ops.autodiff.differentiation import Call, gradient
from allotment.tf.ops.linalg.products import ADJOINT, AS_IT_IS, TRANSPOSED, matmul
from allotment.tf.ops.math.complex_numbers import conj


def _form(call: Call, index: int) -> str:
    """Return how a factor is transposed before the product; for real numbers, the transpose is the adjoint."""
    form: str = call.args[index] if call.args else AS_IT_IS
    return ADJOINT if form == TRANSPOSED and not call.inputs[index]._dtype.is_complex else form


def _product(a: Any, form_a: str, b: Any, form_b: str) -> Any:
    return matmul(
        a,
        b,
        transpose_a=form_a == TRANSPOSED,
        adjoint_a=form_a == ADJOINT,
        transpose_b=form_b == TRANSPOSED,
        adjoint_b=form_b == ADJOINT,
    )


def _adjoined(factor: Any, form: str) -> tuple[Any, str]:
    """The adjoint of a factor as it enters the product."""
    if form == TRANSPOSED:
        return conj(factor), AS_IT_IS
    return factor, AS_IT_IS if form == ADJOINT else ADJOINT


@gradient("MatMul", "BatchMatMulV2", inputs="beside others")
def _matmul(call: Call, upstream: Any) -> list[Any]:
    # Of c = a' b' it is c̄ b'ᴴ for a' and a'ᴴ c̄ for b'; where a' is the adjoint of a, the adjoint of that for a.
    (a, b), form_a, form_b = call.inputs, _form(call, 0), _form(call, 1)
    made: list[Any] = [None, None]
    if call.wanted[0]:
        if form_a == AS_IT_IS:
            found = _product(upstream, AS_IT_IS, *_adjoined(b, form_b))
        else:
            found = _product(b, form_b, upstream, ADJOINT)
        made[0] = _unbroadcast(call, conj(found) if form_a == TRANSPOSED else found, a)
    if call.wanted[1]:
        if form_b == AS_IT_IS:
            found = _product(*_adjoined(a, form_a), upstream, AS_IT_IS)
        else:
            found = _product(upstream, ADJOINT, a, form_a)
        made[1] = _unbroadcast(call, conj(found) if form_b == TRANSPOSED else found, b)
    return made


def _unbroadcast(call: Call, found: Any, factor: Any) -> Any:
    # Two matrices have no other axes.
    return found if call.row.name == "MatMul" else summed_to(found, shape_of(factor))


__all__: list[str] = []
