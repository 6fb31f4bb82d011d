"""Slices sorted into tensors, coordinates, histograms, and permutations."""

from typing import Any

import numpy as np
import pytest

import allotment.tf as tf
from support.tf.tensors import check, check_refused, tensor


def test_slices_are_sorted_and_put_together() -> None:
    first, second = tf.dynamic_partition([[1, 2], [3, 4]], [[0, 1], [1, 0]], 2)
    check(first, [1, 4], "int32")
    check(second, [2, 3], "int32")
    check_refused(tf.dynamic_partition, [1, 2, 3], [0, 2, 0], 2, text="partitions[1] = 2 is not in [0, 2)")
    check_refused(
        tf.dynamic_partition,
        [1, 2],
        [0, 1, 1],
        2,
        text="data.shape must start with partitions.shape, got data.shape",
    )
    check_refused(
        tf.dynamic_partition, [1, 2], [0, 1], 0, text="'num_partitions' of 0 must be at least minimum 1"
    )
    check(tf.dynamic_stitch([[0, 2], [1]], [[1.0, 3.0], [2.0]]), [1, 2, 3], "float32")
    check(tf.dynamic_stitch([[0, 2], [0]], [[1.0, 3.0], [2.0]]), [2, 0, 3], "float32")
    check(tf.dynamic_stitch([0, [2]], [[1.0, 3.0], [[2.0, 4.0]]]), [[1, 3], [0, 0], [2, 4]], "float32")
    check_refused(tf.dynamic_stitch, [[0], [-1]], [[1.0], [2.0]], text="indices[0] is out of range")
    check_refused(
        tf.dynamic_stitch,
        [[0], [1]],
        [[1.0], [2.0, 3.0]],
        text="data[1].shape = [2] does not start with indices[1].shape = [1]",
    )


def test_coordinates() -> None:
    check(tf.unravel_index(5, [2, 3]), [1, 2], "int32")
    check(tf.unravel_index([5, 1], [2, 3]), [[1, 0], [2, 1]], "int32")
    check_refused(tf.unravel_index, [5, 6], [2, 3], text="index is out of bound as with dims")
    check_refused(tf.unravel_index, 1, [2, -3], text="Input dims cannot be negative. Got dim = -3 at index 1")


def test_histograms() -> None:
    values = [-1.0, 0.0, 1.5, 2.0, 5.0, 15.0]
    check(tf.histogram_fixed_width(values, [0.0, 5.0], nbins=5), [2, 1, 1, 0, 2], "int32")
    check(tf.histogram_fixed_width([1], [0, 5], nbins=5, dtype=tf.int64), [0, 1, 0, 0, 0], "int64")
    check(tf.histogram_fixed_width_bins(values, [0.0, 5.0], nbins=5), [0, 0, 1, 2, 4, 4], "int32")
    check_refused(
        tf.histogram_fixed_width, [1.0], [5.0, 5.0], text="value_range[0] < value_range[1], but got '[5, 5]'"
    )
    check_refused(tf.histogram_fixed_width, [1.0], [0.0, 5.0], 0, text="nbins should be a positive number")


def test_several_tensors_as_they_are() -> None:
    one, two = tf.identity_n([[1.0], 2])
    check(one, [1], "float32")
    check(two, 2, "int32")
    check_refused(tf.identity_n, [], text="Length for attr 'T' of 0 must be at least minimum 1")


def test_permutations() -> None:
    check(tf.math.invert_permutation([2, 0, 1]), [1, 2, 0], "int32")
    check_refused(tf.math.invert_permutation, [2, 0, 3], text="3 is not between 0 and 3")
    check_refused(tf.math.invert_permutation, [2, 0, 0], text="0 is duplicated in the input.")


def test_confusion() -> None:
    found = tf.math.confusion_matrix([1, 2], [2, 1], num_classes=4, weights=[2, 3], dtype=tf.float32)
    check(found, [[0, 0, 0, 0], [0, 0, 2, 0], [0, 3, 0, 0], [0, 0, 0, 0]], "float32")
    check(tf.math.confusion_matrix([0, 1], [1, 1]), [[0, 1], [0, 1]], "int32")
    check_refused(tf.math.confusion_matrix, [1, 2], [2, 1], 2, text="`labels` out of bound\nCondition x < y")
    check_refused(tf.math.confusion_matrix, [-1, 2], [2, 1], text="`labels` contains negative values.  \n")


def test_scattering_outside() -> None:
    x = tensor([1.0, 2.0])
    check(tf.scatter_nd([[5], [0]], [1.0, 2.0], [2], "IGNORE"), [2, 0], "float32")
    check(tf.tensor_scatter_nd_add(x, [[5], [1]], [1.0, 1.0], "IGNORE"), [1, 3], "float32")
    check_refused(
        tf.tensor_scatter_nd_max, x, [[5]], [1.0], "ERROR", text="indices[0] = [5] does not index into"
    )
    check_refused(tf.scatter_nd, [[0]], [1.0], [2], "x", text="Unknown bad indices handling attribute: x")
    with pytest.raises(TypeError):
        tf.tensor_scatter_nd_update(x, [[5]], [1.0], bad_indices_policy="IGNORE")  # type: ignore[call-arg]


def test_special_functions() -> None:
    nan, inf = np.nan, np.inf
    check(
        tf.math.digamma([1.0, 0.5, -0.5, 0.0, 10.0]),
        [-0.5772157, -1.963510, 0.03648998, nan, 2.2517526],
        "float32",
    )
    check(
        tf.math.erfinv([0.0, 0.5, -0.9, 1.0, -1.0, 2.0]),
        [0, 0.4769363, -1.1630871, inf, -inf, nan],
        "float32",
    )
    orders, places = (
        np.array([[0.0], [1.0], [2.0], [7.0], [-1.0], [1.5]]),
        np.array([1.0, 0.5, -0.5, 0.0, 100.0]),
    )
    check(
        tf.math.polygamma(orders, places),
        [
            [-0.5772156649015323, -1.9635100260214227, 0.03648997397857645, nan, 4.600161852738088],
            [1.6449340668482266, 4.93480220054468, 8.934802200544679, inf, 0.010050166663333573],
            [-2.404113806319188, -16.828796644234316, -0.82879664423432, nan, -0.00010100499983335001],
            [5060.549875237633, 1290440.2181855962, 2580680.218185594, inf, 7.455359496158317e-12],
            [nan] * 5,
            [nan] * 5,
        ],
        "float64",
        rtol=1e-13,
    )
    check(
        tf.math.zeta(np.array([[1.0], [2.0], [2.5], [0.5], [40.0]]), places),
        [
            [inf] * 5,
            [1.6449340668482266, 4.93480220054468, 8.934802200544679, inf, 0.010050166663333573],
            [1.3414872572509176, 6.247110634568814, nan, nan, 0.0006716874994531716],
            [nan] * 5,
            [1.0000000000009095, 1099511627776.0, 2199023255552.0, inf, 3.0973406595072183e-80],
        ],
        "float64",
        rtol=1e-13,
    )
    check(tf.math.ndtri([0.5, 0.9, 0.0, 1.0]), [0, 1.2815515, -inf, inf], "float32")
    check(tf.math.xlogy([0.0, 2.0, 0.0], [0.0, 3.0, nan]), [0, 2.1972246, 0], "float32")
    check(tf.math.xdivy([0.0, 2.0], [0.0, 0.0]), [0, inf], "float32")
    check(tf.math.xlog1py([0.0, 2.0], [-1.0, 0.5]), [0, 0.8109302], "float32")
    check(tf.math.polyval([1.0, 2.0, 3.0], 2.0), 11, "float32")
    check(tf.math.nextafter(1, 2), 1.0000001192092896, "float32")
    check(tf.math.cumulative_logsumexp([1.0, 2.0, 3.0]), [1, 2.3132617, 3.4076061], "float32")
    check(tf.math.scalar_mul(2, tensor([1, 2])), [2, 4], "int32")


def test_matrices() -> None:
    wanted = [[-4 / 3, -1 / 3, 2 / 3], [13 / 12, 1 / 3, -5 / 12]]
    check(tf.linalg.pinv([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]]), wanted, "float32", rtol=1e-5)
    check(tf.linalg.matrix_rank([[1.0, 2.0], [2.0, 4.0]]), 1, "int32")
    unit, size = tf.linalg.normalize([3.0, 4.0])
    check(unit, [0.6, 0.8], "float32")
    check(size, [5], "float32")
    check(tf.nn.l2_normalize([[3.0, 4.0]], dim=1), [[0.6, 0.8]], "float32")
    with pytest.raises(ValueError, match="Cannot specify both 'dim' and 'axis'"):
        tf.nn.l2_normalize([[3.0, 4.0]], axis=0, dim=1)


@pytest.mark.parametrize(
    ("function", "first", "second", "dtype", "expected"),
    [
        ("zeta", 2.0, [-1e30, -1e5, -np.inf, np.inf, np.nan], "float32", [np.inf] * 3 + [0, np.nan]),
        ("zeta", 3.0, [-1e30, -1e5, -np.inf], "float32", [np.nan] * 3),
        ("zeta", 2.0, [1e30, 1e5, -1000.5], "float32", [0, 1.000005e-05, -0.0009990009]),
        ("zeta", 50.0, [1e15, 10.0, 0.25], "float32", [0, 0, 1.2676506e30]),
        (
            "zeta",
            2.0,
            [-1e30, -1e5 - 0.5, -1e15 - 0.5],
            "float64",
            [np.inf, 9.86959440118936, 9.869604401089358],
        ),
        ("zeta", np.inf, [2.0, -1.5, -2.0], "float64", [0, np.inf, np.inf]),
        (
            "polygamma",
            1.0,
            [1e30, -1e30, np.inf, np.nan, 1e5],
            "float32",
            [0, np.inf, 0, np.nan, 1.000005e-05],
        ),
        ("polygamma", 40.0, [10.0, 0.5], "float32", [np.nan, -np.inf]),
        ("polygamma", 2.0, [-1e30, 1e15], "float64", [np.nan, -1e-30]),
    ],
)
def test_far_arguments_of_zeta(function: str, first: float, second: Any, dtype: str, expected: Any) -> None:
    call = getattr(tf.math, function)
    check(
        call(tensor(first, dtype), tensor(second, dtype)),
        expected,
        dtype,
        rtol=1e-5 if dtype == "float32" else 1e-12,
    )


def test_parameters_of_zeta_are_named() -> None:
    assert tf.math.zeta(x=2.0, q=1.0).numpy() == tf.math.polygamma(a=1.0, x=1.0).numpy()


def test_one_bin_has_all_elements() -> None:
    check(tf.histogram_fixed_width([float("nan"), 1.0], [0.0, 1.0], 1), [2], "int32")
