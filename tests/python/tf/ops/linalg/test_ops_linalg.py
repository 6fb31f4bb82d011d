"""Products of matrices and vectors."""

from typing import Any

import numpy as np
import pytest

from allotment.errors import FailedPreconditionError
from allotment.tf import linalg
from support.tf.tensors import check, check_refused, tensor

NUMBERS = [
    "float16",
    "float32",
    "float64",
    "complex64",
    "complex128",
    "int8",
    "int16",
    "int32",
    "int64",
    "uint8",
]
A = [[1, 2, 3], [4, 5, 6]]
B = [[1, 2], [3, 4], [5, 6]]
PRODUCT = [[22, 28], [49, 64]]


def transposed(rows: list[list[int]]) -> list[list[int]]:
    return [list(column) for column in zip(*rows, strict=True)]


@pytest.mark.parametrize("dtype", [each for each in NUMBERS if each not in ("int8", "int16", "uint8")])
def test_products_keep_the_type(dtype: str) -> None:
    check(linalg.matmul(tensor(A, dtype), tensor(B, dtype)), PRODUCT, dtype)


@pytest.mark.parametrize("dtype", ["float16", "float32", "int32", "complex128"])
def test_transposes(dtype: str) -> None:
    a, b = tensor(A, dtype), tensor(B, dtype)
    turned_a, turned_b = tensor(transposed(A), dtype), tensor(transposed(B), dtype)
    check(linalg.matmul(turned_a, b, transpose_a=True), PRODUCT, dtype)
    check(linalg.matmul(a, turned_b, transpose_b=True), PRODUCT, dtype)
    check(linalg.matmul(turned_a, turned_b, True, True), PRODUCT, dtype)
    check(linalg.matmul(turned_a, turned_b, adjoint_a=True, adjoint_b=True), PRODUCT, dtype)


def test_adjoints() -> None:
    a, b = tensor([[1 + 1j, 2j]]), tensor([[1 + 0j, 1j]])
    check(linalg.matmul(a, b, adjoint_b=True), [[1 + 1j + 2]], "complex128")
    check(linalg.matmul(a, b, transpose_b=True), [[1 + 1j - 2]], "complex128")
    check(linalg.matmul(a, b, adjoint_a=True), [[1 - 1j, 1j + 1], [-2j, 2]], "complex128")
    check(linalg.adjoint(a), [[1 - 1j], [-2j]], "complex128")
    check(linalg.matrix_transpose(tensor([A])), [transposed(A)], "int32")
    with pytest.raises(ValueError, match=r"Argument `a` should be a \(batch\) matrix"):
        linalg.matrix_transpose(tensor([1.0]))


def test_a_matrix_is_not_both_transposed_and_adjoint() -> None:
    both: list[dict[str, Any]] = [
        {"transpose_a": True, "adjoint_a": True},
        {"transpose_b": True, "adjoint_b": True},
    ]
    for wrong in both:
        with pytest.raises(ValueError, match=r"Only one of `transpose_.` and `adjoint_.` can be True"):
            linalg.matmul(tensor(A), tensor(B), **wrong)


def test_batches_are_broadcast() -> None:
    a, b = np.arange(24.0).reshape(2, 2, 2, 3), np.arange(12.0).reshape(2, 3, 2)
    expected = [[a[i, j] @ b[j] for j in range(2)] for i in range(2)]
    check(linalg.matmul(tensor(a), tensor(b)), expected, "float64")
    check(linalg.matmul(tensor(a), tensor(b[0])), [[each @ b[0] for each in pair] for pair in a], "float64")
    turned = tensor(np.swapaxes(b, -1, -2).copy())
    check(linalg.matmul(tensor(a), turned, transpose_b=True), expected, "float64")


def test_halves_are_multiplied_in_single_precision() -> None:
    ones = tensor(np.ones((1, 4096), np.float16))
    check(linalg.matmul(ones, ones, transpose_b=True), [[4096]], "float16")


def test_the_type_of_the_result_can_be_another() -> None:
    big = tensor([[100, 100]], "int8")
    check(linalg.matmul(big, big, transpose_b=True, output_type="int32"), [[20000]], "int32")


def test_python_values_and_empty_matrices() -> None:
    check(linalg.matmul([[1.0]], [[2.0]]), [[2]], "float32")
    check(linalg.matmul(tensor(np.zeros((2, 0))), tensor(np.zeros((0, 3)))), np.zeros((2, 3)), "float64")


@pytest.mark.simulated_gpus("the texts name the CPU")
def test_sizes_that_do_not_fit() -> None:
    a = tensor(A, "float32")
    head = "{{function_node __wrapped__MatMul_device_/job:localhost/replica:0/task:0/device:CPU:0}} "
    size = "Matrix size-incompatible: In[0]: [2,3], In[1]: [2,3] [Op:MatMul] name: "
    check_refused(linalg.matmul, a, a, text=head + size)
    check_refused(linalg.matmul, a, a, True, True, text=size)
    check_refused(
        linalg.matmul, a, tensor([1.0, 2.0, 3.0]), text="In[0] and In[1] has different ndims: [2,3] vs. [3]"
    )
    check_refused(linalg.matmul, tensor([1.0]), tensor([1.0]), text="In[0] and In[1] ndims must be == 2: 1")
    batch = tensor(np.ones((2, 2, 3)))
    check_refused(
        linalg.matmul,
        batch,
        batch,
        text="Matrix size-incompatible: In[0]: [2,2,3], In[1]: [2,2,3] [Op:BatchMatMulV2]",
    )
    check_refused(linalg.matmul, batch, tensor([1.0], "float64"), text="In[1] ndims must be >= 2: 1")
    other = tensor(np.ones((3, 3, 2)))
    check_refused(
        linalg.matmul,
        batch,
        other,
        text="In[0] and In[1] must have compatible batch dimensions: [2,2,3] vs. [3,3,2]",
    )
    check_refused(linalg.matmul, tensor(A), a, text="cannot compute MatMul as input #1(zero-based)")
    check_refused(linalg.matmul, tensor([[True]]), tensor([[True]]), text="[Op:MatMul]")


def test_matrices_and_vectors() -> None:
    check(linalg.matvec(tensor(A), tensor([1, 0, 2])), [7, 16], "int32")
    check(linalg.matvec(tensor(A), tensor([1, 2]), transpose_a=True), [9, 12, 15], "int32")
    check(linalg.matvec(tensor([[1j]]), tensor([2 + 0j]), adjoint_a=True), [-2j], "complex128")
    check(linalg.matvec(tensor([A, A]), tensor([[1, 0, 0], [0, 0, 1]])), [[1, 4], [3, 6]], "int32")


@pytest.mark.parametrize(
    "axes",
    [
        0,
        1,
        2,
        [[1], [0]],
        (1, 0),
        [[0, 1], [0, 1]],
        [[2, 0], [1, 0]],
        [[-1], [-2]],
        np.array([[1], [0]]),
        tensor([[1], [0]]),
    ],
)
def test_tensor_products(axes: Any) -> None:
    a, b = np.arange(8.0).reshape(2, 2, 2), np.arange(12.0).reshape(2, 2, 3)
    theirs = axes.numpy() if hasattr(axes, "numpy") else axes
    theirs = theirs.tolist() if isinstance(theirs, np.ndarray | np.generic) else theirs
    check(linalg.tensordot(tensor(a), tensor(b), axes), np.tensordot(a, b, theirs), "float64")


def test_tensor_products_of_axes_that_are_not_there() -> None:
    x = tensor([[1.0, 2.0]])
    for axes, kind, text in [
        (-1, ValueError, "`axes` must be at least 0"),
        (3, ValueError, "`axes` must not be larger than the number of dimensions"),
        ([[0, 1], [0]], ValueError, "Different number of contraction axes `a` and `b`, 2 != 1"),
        ([0], ValueError, "`axes` must be an integer or have length 2"),
        ([[2], [0]], IndexError, "names an axis that a tensor with 2 axes has not: 2"),
        ([[1.5], [0]], TypeError, "has something else than whole numbers: 1.5"),
        (1.5, TypeError, "Cannot convert 1.5"),
        ("ab", TypeError, "Cannot convert 'ab'"),
    ]:
        with pytest.raises(kind, match=text):
            linalg.tensordot(x, x, axes)
    check_refused(linalg.tensordot, x, x, tensor(1), text="Attempting to slice scalar input.")
    check_refused(linalg.tensordot, x, x, 1, text="Matrix size-incompatible: In[0]: [1,2], In[1]: [1,2]")


def test_cross_products() -> None:
    check(linalg.cross(tensor([1, 0, 0]), tensor([0, 1, 0])), [0, 0, 1], "int32")
    check(linalg.cross(tensor([[1.0, 2.0, 3.0]]), tensor([[4.0, 5.0, 6.0]])), [[-3, 6, -3]], "float32")
    check(linalg.cross(tensor([1, 2, 3], "float16"), tensor([4, 5, 6], "float16")), [-3, 6, -3], "float16")
    with pytest.raises(
        FailedPreconditionError, match="Cross-products are only defined for 3-element vectors"
    ):
        linalg.cross(tensor([1, 2]), tensor([1, 2]))
    check_refused(
        linalg.cross,
        tensor([1, 2, 3]),
        tensor([[1, 2, 3]]),
        text="Both inputs must be of same shape: [3] vs. [1,3]",
    )
