"""Sample calls for tests of gradients; together they cover every differentiable operation of the operation table.

Longer than 300 lines: one table, a row for each operation.
"""

from collections.abc import Callable
from typing import Any

import numpy as np

import allotment.tf as tf
from allotment.tf import debugging, nn
from allotment.tf import math as m
from allotment.tf.ops.math import complex_numbers, division
from support.tf.arrays import apart, between, complexes, reals
from support.tf.matrix_samples import MATRIX_SAMPLES, Sample


def _binary(function: Callable[..., Any], low: float = 0.2, high: float = 1.8) -> dict[str, Sample]:
    """Return samples of a function of two tensors, one for each kind of broadcasting."""
    shapes: dict[str, tuple[tuple[int, ...], tuple[int, ...]]] = {
        "alike": ((3, 4), (3, 4)),
        "a row": ((3, 4), (4,)),
        "both ways": ((3, 1), (2, 1, 4)),
        "scalars": ((), ()),
        "a scalar": ((2, 3), ()),
        "one and many": ((1,), (3,)),
        "empty": ((0, 3), (1, 3)),
    }
    return {
        f"{function.__name__}, {name}": (function, [between(low, high, *x), between(low, high, *y)])
        for name, (x, y) in shapes.items()
    }


def samples() -> dict[str, Sample]:
    """Return all samples by name: pairs of a function and its arguments."""
    found: dict[str, Sample] = {}
    for function in (
        m.add,
        m.subtract,
        m.multiply,
        m.divide,
        m.pow,
        m.squared_difference,
        m.multiply_no_nan,
        m.divide_no_nan,
        m.xdivy,
        m.xlogy,
        m.xlog1py,
        m.maximum,
        m.minimum,
        m.atan2,
        m.floormod,
        division.realdiv,
    ):
        found |= _binary(function)
    for name in _UNARY.split():
        function = getattr(m, name)
        found[name] = (function, [between(0.15, 0.85, 2, 3)])
        found[f"{name}, scalar"] = (function, [between(0.15, 0.85)])
        found[f"{name}, empty"] = (function, [np.zeros((0, 2))])
    for name in _COMPLEX.split():
        found[f"{name}, complex"] = (getattr(m, name), [0.4 * complexes(2, 3)])
    for name in _NEGATIVE.split():
        found[f"{name}, both signs"] = (getattr(m, name), [0.4 * reals(3, 3)])
    for name in ["relu", "relu6", "leaky_relu", "elu", "selu", "gelu", "silu", "softsign", "softplus"]:
        found[name] = (getattr(nn, name), [np.array([-3.1, -0.7, 0.4, 2.2, 7.5])])
    for name in _REDUCE.split():
        found |= _reductions(name)
    return found | _MATH | _SHAPES | _PICKS | MATRIX_SAMPLES | _NN | _CONTROL | _CHANCE


_UNARY = (
    "abs acos asin asinh atan atanh cos cosh digamma erf erfc erfcinv erfinv exp expm1 lgamma log log1p ndtri negative "
    "reciprocal rsqrt sigmoid sign sin sinh softplus softsign sqrt square tan tanh"
)
_NEGATIVE = "abs asinh atan cosh erf exp sinh softplus square tanh"
_COMPLEX = (
    "abs acos angle asin asinh atan atanh conj cos cosh exp expm1 imag log log1p negative real reciprocal rsqrt "
    "sigmoid sin sinh sqrt square tan tanh"
)
_REDUCE = "sum mean prod max min euclidean_norm logsumexp std variance"


def _reductions(name: str) -> dict[str, Sample]:
    function = getattr(m, f"reduce_{name}")
    found: dict[str, Sample] = {
        f"reduce_{name}": (function, [apart(3, 4)]),
        f"reduce_{name}, an axis": (lambda x: function(x, 1), [apart(2, 3, 4)]),
        f"reduce_{name}, kept": (lambda x: function(x, [0, -1], keepdims=True), [apart(2, 3, 4)]),
    }
    if name != "std":
        found[f"reduce_{name}, scalar"] = (function, [np.asarray(0.7)])
    return found


_MATH: dict[str, Sample] = {
    "multiply, complex": (m.multiply, [complexes(2, 1), complexes(3)]),
    "divide, complex": (m.divide, [complexes(2, 1), complexes(3)]),
    "pow, complex": (m.pow, [complexes(2, 1), complexes(3)]),
    "pow, of zero": (lambda x: x**2, [np.zeros(2)]),
    "multiply_no_nan, complex": (m.multiply_no_nan, [complexes(2), complexes(2)]),
    "complex": (complex_numbers.complex, [reals(3, 1), reals(2)]),
    "acosh": (m.acosh, [between(1.2, 3, 4)]),
    "acosh, complex": (m.acosh, [2 + 0.3 * complexes(4)]),
    "polygamma": (lambda x: m.polygamma(np.array([[1.0], [2.0]]), x), [between(0.4, 3, 4)]),
    "zeta": (lambda q: m.zeta(np.array([[2.0], [3.5]]), q), [between(0.4, 3, 4)]),
    "nextafter": (m.nextafter, [reals(3), np.full(3, 9.0)]),
    "cast": (lambda x: tf.cast(x, tf.complex128) * (1 + 2j), [reals(3)]),
    "cast from complex": (lambda x: tf.cast(x * (1 + 2j), tf.float64), [complexes(3)]),
    "add_n": (lambda x, y: m.add_n([x, y, x]), [reals(2, 3), reals(2, 3)]),
    "cumsum": (lambda x: m.cumsum(x, 1), [reals(2, 4)]),
    "cumsum, exclusive": (lambda x: m.cumsum(x, -1, exclusive=True, reverse=True), [reals(2, 4)]),
    "cumprod": (lambda x: m.cumprod(x, 1), [reals(2, 4)]),
    "cumprod, exclusive": (lambda x: m.cumprod(x, 0, exclusive=True, reverse=True), [reals(4, 2)]),
    "cumprod, complex": (lambda x: m.cumprod(x, 1), [complexes(2, 3)]),
    "cumulative_logsumexp": (lambda x: m.cumulative_logsumexp(x, 1), [reals(2, 4)]),
    "cumulative_logsumexp, reverse": (
        lambda x: m.cumulative_logsumexp(x, 0, exclusive=False, reverse=True),
        [reals(4, 2)],
    ),
    "reduce_prod with a zero": (m.reduce_prod, [np.array([1.5, 0.0, 2.5])]),
    "reduce_prod with two": (lambda x: m.reduce_prod(x, 1), [np.array([[1.5, 0.0, 0.0], [0.0, 2.0, 3.0]])]),
    "reduce_prod, complex": (lambda x: m.reduce_prod(x, 1), [complexes(2, 3)]),
    "reduce_sum of nothing": (m.reduce_sum, [np.zeros((0, 3))]),
    "reduce_mean along nothing": (lambda x: m.reduce_mean(x, 0), [np.zeros((3, 0))]),
    "reduce_max, equal": (lambda x: m.reduce_max(tf.stack([x, x]), 0), [reals(3)]),
    "reduce_sum, complex": (lambda x: m.reduce_sum(x, 0), [complexes(2, 3)]),
    "reduce_mean, complex": (m.reduce_mean, [complexes(2, 3)]),
    "segment_sum": (lambda x: m.segment_sum(x, [0, 0, 2]), [reals(3, 2)]),
    "segment_mean": (lambda x: m.segment_mean(x, [0, 1, 1]), [reals(3, 2)]),
    "segment_prod": (
        lambda x: m.segment_prod(x, [0, 1, 1]),
        [np.array([[2.0, 0.0], [0.0, 3.0], [4.0, 5.0]])],
    ),
    "segment_max": (lambda x: m.segment_max(x, [0, 1, 1]), [apart(3, 2)]),
    "segment_min": (lambda x: m.segment_min(x, [0, 0, 1]), [apart(3, 2)]),
    "unsorted_segment_sum": (lambda x: m.unsorted_segment_sum(x, [2, -1, 0], 3), [reals(3, 2)]),
    "unsorted_segment_sum, ranks": (
        lambda x: m.unsorted_segment_sum(x, [[1, 0], [1, 1]], 2),
        [reals(2, 2, 3)],
    ),
    "unsorted_segment_prod": (lambda x: m.unsorted_segment_prod(x, [1, 1, -1, 0], 3), [reals(4, 2)]),
    "unsorted_segment_max": (lambda x: m.unsorted_segment_max(x, [1, -1, 1, 0], 2), [apart(4, 2)]),
    "unsorted_segment_min": (lambda x: m.unsorted_segment_min(x, [1, 1, 0, -1], 2), [apart(4, 2)]),
    "clip_by_value": (lambda x, low: tf.clip_by_value(x, low, 0.8), [apart(3, 3), np.asarray(-0.7)]),
    "clip_by_norm": (lambda x: tf.clip_by_norm(x, 0.5, axes=1), [reals(3, 3)]),
    "clip_by_global_norm": (lambda x, y: tf.clip_by_global_norm([x, y], 0.5), [reals(3), reals(2)]),
    "l2_normalize": (lambda x: m.l2_normalize(x, 1), [reals(3, 3)]),
    "polyval": (lambda c, x: m.polyval([c, 2 * c, c * c], x), [reals(), reals(3)]),
    "linspace": (lambda x, y: tf.linspace(x, y, 4, axis=1), [reals(3), reals(2, 1)]),
    "linspace of one": (lambda x, y: tf.linspace(x, y, 1), [reals(), reals()]),
    "check_numerics": (lambda x: debugging.check_numerics(x, "here"), [reals(3)]),
}

_SHAPES: dict[str, Sample] = {
    "identity": (tf.identity, [reals(3)]),
    "identity_n": (lambda x, y: tf.identity_n([x, y]), [reals(3), reals(2)]),
    "ensure_shape": (lambda x: tf.ensure_shape(x, [None]), [reals(3)]),
    "reshape": (lambda x: tf.reshape(x, [-1, 2]), [reals(3, 4)]),
    "reshape, empty": (lambda x: tf.reshape(x, [4, 0]), [np.zeros((0, 2))]),
    "fill": (lambda x: tf.fill([2, 3], x), [reals()]),
    "expand_dims": (lambda x: tf.expand_dims(x, 1), [reals(3, 2)]),
    "squeeze": (lambda x: tf.squeeze(x), [reals(3, 1, 2, 1)]),
    "transpose": (lambda x: tf.transpose(x, [2, 0, -2]), [reals(2, 3, 4)]),
    "transpose, whole": (tf.transpose, [reals(2, 3, 4)]),
    "transpose, conjugate": (lambda x: tf.transpose(x, [1, 0], conjugate=True), [complexes(2, 3)]),
    "reverse": (lambda x: tf.reverse(x, [0, -1]), [reals(2, 3, 2)]),
    "roll": (lambda x: tf.roll(x, [1, -2], [0, 1]), [reals(3, 4)]),
    "reverse_sequence": (lambda x: tf.reverse_sequence(x, [2, 0, 3], seq_axis=1), [reals(3, 4)]),
    "getitem": (lambda x: x[1:, ..., None, 0], [reals(3, 2, 4)]),
    "getitem, steps": (lambda x: x[::-2, 1], [reals(5, 2)]),
    "getitem, twice": (lambda x: x[0] * x[1], [reals(2, 3)]),
    "strided_slice": (lambda x: tf.strided_slice(x, [0, 1], [3, 4], [2, 1]), [reals(3, 4)]),
    "slice": (lambda x: tf.slice(x, [1, 0], [-1, 2]), [reals(3, 4)]),
    "iteration": (lambda x: [each * each for each in x], [reals(3, 2)]),
    "concat": (lambda x, y: tf.concat([x, y, x], 1), [reals(2, 3), reals(2, 1)]),
    "concat, last axis": (lambda x, y: tf.concat([x, y], -2), [reals(1, 3), reals(2, 3)]),
    "stack": (lambda x, y: tf.stack([x, y], 1), [reals(2, 3), reals(2, 3)]),
    "stack in lists": (lambda x, y: m.sin([[x, y], [y, 1.0]]), [reals(), reals()]),
    "unstack": (lambda x: tf.unstack(x, axis=1)[::2], [reals(2, 3)]),
    "split": (lambda x: tf.split(x, 2, 1)[1], [reals(2, 4)]),
    "split, sizes": (lambda x: tf.split(x, [1, -1, 2], 0)[1:], [reals(5, 2)]),
    "broadcast_to": (lambda x: tf.broadcast_to(x, [2, 3, 4]), [reals(3, 1)]),
    "tile": (lambda x: tf.tile(x, [2, 1, 3]), [reals(2, 3, 1)]),
    "tile, scalar": (lambda x: tf.tile(x, []), [reals()]),
    "repeat": (lambda x: tf.repeat(x, 3, axis=1), [reals(2, 2)]),
    "repeat, each": (lambda x: tf.repeat(x, [2, 0, 1], axis=-1), [reals(2, 3)]),
    "meshgrid": (lambda x, y: tf.meshgrid(x, y), [reals(2), reals(3)]),
    "pad": (lambda x: tf.pad(x, [[1, 0], [2, 1]]), [reals(2, 3)]),
    "pad, value": (lambda x, v: tf.pad(x, [[1, 0], [2, 1]], constant_values=v), [reals(2, 3), reals()]),
    "pad, reflect": (lambda x: tf.pad(x, [[2, 1], [0, 3]], "REFLECT"), [reals(3, 4)]),
    "pad, symmetric": (lambda x: tf.pad(x, [[3, 1], [2, 4]], "SYMMETRIC"), [reals(3, 4)]),
}

_PICKS: dict[str, Sample] = {
    "v1.where": (
        lambda x, y: tf.compat.v1.where(tf.constant([True, False]), x, y),
        [reals(2, 3), reals(2, 3)],
    ),
    "where": (lambda x, y: tf.where(tf.constant([[True], [False]]), x, y), [reals(3), reals(2, 3)]),
    "gather": (lambda x: tf.gather(x, [2, 0, 0]), [reals(3, 2)]),
    "gather, scalar": (lambda x: tf.gather(x, 1, axis=1), [reals(3, 2)]),
    "gather, axis": (lambda x: tf.gather(x, [[0, 2], [2, 1]], axis=1), [reals(2, 3, 2)]),
    "gather, batch": (lambda x: tf.gather(x, [[0, 2], [1, 1]], batch_dims=1, axis=2), [reals(2, 3, 4)]),
    "gather_nd": (lambda x: tf.gather_nd(x, [[0, 1], [2, 0], [0, 1]]), [reals(3, 2, 2)]),
    "gather_nd, batch": (lambda x: tf.gather_nd(x, [[[1], [0]], [[1], [1]]], batch_dims=1), [reals(2, 3)]),
    "gather_nd, whole": (lambda x: tf.gather_nd(x, np.zeros((2, 0), np.int32)), [reals(3)]),
    "boolean_mask": (lambda x: tf.boolean_mask(x, [True, False, True], axis=1), [reals(2, 3)]),
    "a mask": (lambda x: x[tf.constant([[True, False], [True, True]])], [reals(2, 2, 2)]),
    "scatter_nd": (lambda x: tf.scatter_nd([[1], [3], [1]], x, [5, 2]), [reals(3, 2)]),
    "scatter update": (
        lambda x, y: tf.tensor_scatter_nd_update(x, [[0], [2]], y),
        [reals(3, 2), reals(2, 2)],
    ),
    "scatter add": (lambda x, y: tf.tensor_scatter_nd_add(x, [[0], [0]], y), [reals(3, 2), reals(2, 2)]),
    "scatter sub": (lambda x, y: tf.tensor_scatter_nd_sub(x, [[0], [0]], y), [reals(3, 2), reals(2, 2)]),
    "scatter min": (
        lambda x, y: tf.tensor_scatter_nd_min(x, [[0], [2]], y),
        [apart(3, 2), 0.9 * apart(2, 2)],
    ),
    "scatter max": (
        lambda x, y: tf.tensor_scatter_nd_max(x, [[0], [2]], y),
        [apart(3, 2), 0.9 * apart(2, 2)],
    ),
    "dynamic_partition": (lambda x: tf.dynamic_partition(x, [1, 0, 1], 2)[1], [reals(3, 2)]),
    "dynamic_stitch": (lambda x, y: tf.dynamic_stitch([[0, 3], [2, 1]], [x, y]), [reals(2, 3), reals(2, 3)]),
    "top_k": (lambda x: m.top_k(x, 2)[0], [apart(3, 5)]),
    "sort": (lambda x: tf.sort(x, axis=0, direction="DESCENDING"), [apart(4, 2)]),
    "embedding_lookup": (lambda x: nn.embedding_lookup(x, [[1, 0], [1, 1]]), [reals(3, 2)]),
}


_NN: dict[str, Sample] = {
    "softmax": (nn.softmax, [reals(3, 4)]),
    "softmax, axis": (lambda x: nn.softmax(x, axis=0), [reals(3, 4)]),
    "log_softmax": (nn.log_softmax, [reals(3, 4)]),
    "cross entropy": (
        lambda labels, logits: nn.softmax_cross_entropy_with_logits(nn.softmax(labels), logits),
        [reals(3, 4), reals(3, 4)],
    ),
    "sparse cross entropy": (
        lambda x: nn.sparse_softmax_cross_entropy_with_logits([1, 0, 3], x),
        [reals(3, 4)],
    ),
    "sigmoid cross entropy": (nn.sigmoid_cross_entropy_with_logits, [between(0.1, 0.9, 3, 4), reals(3, 4)]),
    "weighted cross entropy": (
        lambda x, y, w: nn.weighted_cross_entropy_with_logits(x, y, w),
        [between(0.1, 0.9, 3), reals(3), np.asarray(1.7)],
    ),
    "l2_loss": (nn.l2_loss, [reals(3, 4)]),
    "crelu": (nn.crelu, [apart(3, 4)]),
    "gelu, approximate": (lambda x: nn.gelu(x, approximate=True), [reals(3, 4)]),
    "bias_add": (nn.bias_add, [reals(2, 3, 4), reals(4)]),
    "bias_add, first": (lambda x, b: nn.bias_add(x, b, "NCHW"), [reals(2, 3, 4, 2), reals(3)]),
    "moments": (lambda x: nn.moments(x, [0, 1]), [reals(3, 4, 2)]),
    "batch_normalization": (
        lambda x, mean, variance, offset, scale: nn.batch_normalization(
            x, mean, variance, offset, scale, 1e-3
        ),
        [reals(3, 4), reals(4), between(0.5, 2, 4), reals(4), reals(4)],
    ),
    "conv2d": (lambda x, f: nn.conv2d(x, f, 1, "SAME"), [reals(2, 5, 4, 3), reals(3, 2, 3, 2)]),
    "conv2d, strides": (
        lambda x, f: nn.conv2d(x, f, [2, 1], "VALID", dilations=[1, 2]),
        [reals(2, 7, 6, 2), reals(2, 3, 2, 3)],
    ),
    "conv2d, pads": (
        lambda x, f: nn.conv2d(x, f, 2, [[0, 0], [2, 1], [0, 3], [0, 0]]),
        [reals(1, 5, 4, 2), reals(3, 3, 2, 2)],
    ),
    "conv2d, groups": (lambda x, f: nn.conv2d(x, f, 1, "SAME"), [reals(2, 4, 4, 6), reals(2, 2, 3, 4)]),
    "conv2d, channels first": (
        lambda x, f: nn.conv2d(x, f, 2, "SAME", data_format="NCHW"),
        [reals(2, 3, 5, 4), reals(2, 2, 3, 2)],
    ),
    "conv2d_transpose": (
        lambda x, f: nn.conv2d_transpose(x, f, [2, 6, 8, 2], 2, "SAME"),
        [reals(2, 3, 4, 3), reals(3, 3, 2, 3)],
    ),
    "conv1d": (lambda x, f: nn.conv1d(x, f, 2, "SAME"), [reals(2, 5, 3), reals(2, 3, 2)]),
    "depthwise_conv2d": (
        lambda x, f: nn.depthwise_conv2d(x, f, [1, 2, 2, 1], "SAME"),
        [reals(2, 5, 5, 3), reals(3, 2, 3, 2)],
    ),
    "depthwise_conv2d, channels first": (
        lambda x, f: nn.depthwise_conv2d(x, f, [1, 1, 1, 1], "VALID", data_format="NCHW"),
        [reals(2, 3, 5, 5), reals(3, 2, 3, 1)],
    ),
    "max_pool": (lambda x: nn.max_pool(x, 2, 2, "SAME"), [apart(2, 5, 4, 2)]),
    "max_pool, overlapping": (
        lambda x: nn.max_pool(x, 3, 1, "VALID", data_format="NCHW"),
        [apart(1, 2, 5, 4)],
    ),
    "max_pool, pads": (
        lambda x: nn.max_pool(x, 2, 2, [[0, 0], [1, 0], [0, 1], [0, 0]]),
        [apart(1, 3, 3, 1)],
    ),
    "avg_pool": (lambda x: nn.avg_pool(x, 2, 1, "SAME"), [reals(2, 4, 3, 2)]),
    "avg_pool, channels first": (
        lambda x: nn.avg_pool(x, 3, 2, "VALID", data_format="NCHW"),
        [reals(1, 2, 5, 7)],
    ),
}

#: Control flow, which runs in Python while the tape records the operations inside.
_CONTROL: dict[str, Sample] = {
    "map_fn": (lambda x: tf.map_fn(lambda row: row * row[0], x), [reals(3, 2)]),
    "foldl": (lambda x: tf.foldl(lambda total, each: total * 0.5 + each**2, x), [reals(4)]),
    "foldr": (lambda x, y: tf.foldr(lambda total, each: total * each, x, initializer=y), [reals(4), reals()]),
    "scan": (lambda x: tf.scan(lambda total, each: total * each, x), [reals(4)]),
    "while_loop": (
        lambda x: tf.while_loop(lambda i, y: i < 3, lambda i, y: (i + 1, y * y + x), [tf.constant(0), x])[1],
        [0.5 * reals(2)],
    ),
    "cond": (lambda x: tf.cond(x > 100, lambda: x, lambda: x * x), [reals()]),
    "case": (lambda x: tf.case([(x > 100, lambda: x)], default=lambda: m.sin(x)), [reals()]),
    "switch_case": (lambda x: tf.switch_case(tf.constant(1), [lambda: x, lambda: x * x]), [reals()]),
    "scalar_mul": (tf.scalar_mul, [reals(), reals(3)]),
    "convert_to_tensor": (lambda x, y: tf.convert_to_tensor([x, y]) ** 2, [reals(2), reals(2)]),
    "constants beside": (lambda x: tf.stack([x, 2.0, x * x]), [reals()]),
    "log_sigmoid": (m.log_sigmoid, [reals(3)]),
    "reciprocal_no_nan": (m.reciprocal_no_nan, [reals(3)]),
    "swish": (nn.swish, [reals(3)]),
    "max_pool1d": (lambda x: nn.max_pool1d(x, 2, 2, "SAME"), [apart(2, 5, 2)]),
    "avg_pool1d": (lambda x: nn.avg_pool1d(x, 2, 1, "VALID"), [reals(2, 5, 2)]),
}


#: Random functions with a fixed seed, which return the same numbers in each call.
_CHANCE: dict[str, Sample] = {
    kind: (
        lambda a, b, draw=draw: draw([3], [1, 2], a, b, tf.float64),
        [between(0.1, 0.5), between(0.6, 0.9)],
    )
    for kind, draw in {
        "uniform": tf.random.stateless_uniform,
        "normal": tf.random.stateless_normal,
        "truncated_normal": tf.random.stateless_truncated_normal,
    }.items()
}
