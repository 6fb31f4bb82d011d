"""Sample calls of arithmetic, reductions, linear algebra and networks, on the device of the current scope."""

from collections.abc import Callable
from typing import Any

import numpy as np

from allotment.tf import bitwise, linalg, nn
from allotment.tf import math as m
from allotment.tf.ops.array.constants import constant
from allotment.tf.ops.math import complex_numbers, division
from allotment.tf.ops.math.arithmetic import clip_by_value
from allotment.tf.ops.reduction.norms import clip_by_global_norm, clip_by_norm

Sample = Callable[[dict[str, Any]], Any]


def inputs() -> dict[str, Any]:
    """Return the tensors that the samples use, by short names."""
    random = np.random.default_rng(11)
    square = random.normal(size=(3, 3)).astype(np.float32)
    arrays: dict[str, Any] = {
        "x": random.uniform(0.1, 0.9, (3, 4)).astype(np.float32),
        "y": random.uniform(1.1, 1.9, (3, 4)).astype(np.float32),
        "h": random.uniform(0.1, 0.9, (3, 4)).astype(np.float16),
        "d": random.uniform(0.1, 0.9, (3, 4)),
        "z": (random.normal(size=(3, 4)) + 1j).astype(np.complex64),
        "l": random.integers(1, 9, (3, 4)),
        "i": random.integers(1, 9, (3, 4)).astype(np.int32),
        "b": random.integers(0, 2, (3, 4)).astype(np.bool_),
        "s": square,
        "p": square @ square.T + np.eye(3, dtype=np.float32),
        "c": square.astype(np.complex128) + 1j,
        "n": np.array([0, 2, 2], np.int32),
        "m": random.normal(size=(2, 5, 4, 3)).astype(np.float32),
        "f": random.normal(size=(2, 2, 3, 2)).astype(np.float32),
    }
    return {name: constant(array) for name, array in arrays.items()}


_UNARY = (
    "abs acos asin asinh atan atanh ceil cos cosh erf erfc exp expm1 floor is_finite is_inf is_nan lgamma log log1p "
    "negative reciprocal rint round rsqrt sigmoid sign sin sinh sqrt square tan tanh softplus softsign softmax "
    "log_softmax l2_normalize"
)
_BINARY = (
    "add subtract multiply divide truediv floordiv floormod maximum minimum pow atan2 squared_difference "
    "divide_no_nan multiply_no_nan equal not_equal less less_equal greater greater_equal"
)
_REDUCE = "sum mean prod max min euclidean_norm logsumexp std variance"
_ACTIVATE = "relu relu6 leaky_relu elu selu gelu silu"


def _of(function: Callable[..., Any], *arguments: Any, **more: Any) -> Sample:
    """Return a sample: a call of a function, whose text arguments name tensors of ``inputs``."""
    return lambda t: function(*(t[each] if isinstance(each, str) else each for each in arguments), **more)


def samples() -> dict[str, Sample]:
    """Return all samples by the name of the called function."""
    found: dict[str, Sample] = {}
    for module, names in ((m, _UNARY), (nn, _ACTIVATE)):
        for name in names.split():
            function = getattr(module, name)
            found[name] = _of(function, "x")
            if name != "rint":  # has no kernel for float16
                found[f"{name}, half"] = _of(function, "h")
    for name in _BINARY.split():
        function = getattr(m, name)
        found |= {name: _of(function, "x", "y"), f"{name}, half": _of(function, "h", 0.5)}
        if name not in ("atan2", "multiply_no_nan"):
            found |= {f"{name}, int64": _of(function, "l", 2), f"{name}, int32": _of(function, "i", 2)}
    for name in _REDUCE.split():
        function = getattr(m, f"reduce_{name}")
        found |= {name: _of(function, "x"), f"{name}, half": _of(function, "h", axis=0)}
        found[f"{name}, axis"] = _of(function, "x", axis=1, keepdims=True)
    found["acosh"] = _of(m.acosh, "y")
    return found | _MATH | _LINALG | _NN


_MATH: dict[str, Sample] = {
    "complex abs": lambda t: m.abs(t["z"]),
    "complex squared difference": lambda t: m.squared_difference(t["z"], 1),
    "complex sign": lambda t: m.sign(t["z"]),
    "complex sum": lambda t: m.reduce_sum(t["z"], 0),
    "complex variance": lambda t: m.reduce_variance(t["z"], 0),
    "real": lambda t: m.real(t["z"]),
    "imag": lambda t: m.imag(t["z"]),
    "imag of reals": lambda t: m.imag(t["x"]),
    "conj": lambda t: m.conj(t["z"]),
    "angle": lambda t: m.angle(t["z"]),
    "angle of reals": lambda t: m.angle(t["x"]),
    "complex": lambda t: complex_numbers.complex(t["x"], t["y"]),
    "truncatediv": lambda t: division.truncatediv(t["l"], 3),
    "truncatediv, half": lambda t: division.truncatediv(t["h"], 3),
    "truncatemod": lambda t: division.truncatemod(t["l"], 3),
    "realdiv": lambda t: division.realdiv(t["d"], t["d"]),
    "mod": lambda t: m.mod(t["l"], 3),
    "int mean": lambda t: m.reduce_mean(t["l"], 1),
    "int norm": lambda t: m.reduce_euclidean_norm(t["l"], 1),
    "any": lambda t: m.reduce_any(t["b"], 0),
    "all": lambda t: m.reduce_all(t["b"]),
    "logical_and": lambda t: m.logical_and(t["b"], True),
    "logical_or": lambda t: m.logical_or(t["b"], t["b"]),
    "logical_xor": lambda t: m.logical_xor(t["b"], t["b"]),
    "logical_not": lambda t: m.logical_not(t["b"]),
    "bitwise_and": lambda t: bitwise.bitwise_and(t["l"], 3),
    "bitwise_or": lambda t: bitwise.bitwise_or(t["l"], 3),
    "bitwise_xor": lambda t: bitwise.bitwise_xor(t["l"], 3),
    "invert": lambda t: bitwise.invert(t["l"]),
    "left_shift": lambda t: bitwise.left_shift(t["l"], 3),
    "right_shift": lambda t: bitwise.right_shift(t["l"], 1),
    "add_n": lambda t: m.add_n([t["x"], t["y"], t["x"]]),
    "accumulate_n": lambda t: m.accumulate_n([t["h"], t["h"]]),
    "clip_by_value": lambda t: clip_by_value(t["x"], 0.2, 0.5),
    "clip_by_norm": lambda t: clip_by_norm(t["x"], 0.5, axes=1),
    "clip_by_global_norm": lambda t: clip_by_global_norm([t["x"], t["y"]], 0.5),
    "cumsum": lambda t: m.cumsum(t["x"], 1, exclusive=True),
    "cumprod": lambda t: m.cumprod(t["l"], reverse=True),
    "argmax": lambda t: m.argmax(t["x"], 1),
    "argmin": lambda t: m.argmin(t["x"], output_type="int32"),
    "count_nonzero": lambda t: m.count_nonzero(t["b"], 0),
    "bincount": lambda t: m.bincount(t["n"], weights=[0.5, 1.5, 2.5]),
    "bincount, rows": lambda t: m.bincount(t["l"], axis=-1),
    "segment_sum": lambda t: m.segment_sum(t["h"], t["n"]),
    "segment_mean": lambda t: m.segment_mean(t["x"], t["n"]),
    "segment_prod": lambda t: m.segment_prod(t["x"], t["n"]),
    "segment_max": lambda t: m.segment_max(t["x"], t["n"]),
    "segment_min": lambda t: m.segment_min(t["l"], t["n"]),
    "unsorted_segment_sum": lambda t: m.unsorted_segment_sum(t["x"], [1, -1, 0], 3),
    "unsorted_segment_prod": lambda t: m.unsorted_segment_prod(t["h"], t["n"], 3),
    "unsorted_segment_max": lambda t: m.unsorted_segment_max(t["x"], t["n"], 3),
    "unsorted_segment_min": lambda t: m.unsorted_segment_min(t["x"], t["n"], 3),
}

_LINALG: dict[str, Sample] = {
    "matmul": lambda t: linalg.matmul(t["s"], t["x"]),
    "matmul, turned": lambda t: linalg.matmul(t["x"], t["y"], transpose_b=True),
    "matmul, adjoint": lambda t: linalg.matmul(t["z"], t["z"], adjoint_a=True),
    "matmul, half": lambda t: linalg.matmul(t["h"], t["h"], transpose_a=True),
    "matmul, int64": lambda t: linalg.matmul(t["l"], t["l"], transpose_a=True),
    "matmul, int32": lambda t: linalg.matmul(t["i"], t["i"], transpose_a=True),
    "matmul, batch": lambda t: linalg.matmul(t["m"], t["m"], transpose_b=True),
    "matvec": lambda t: linalg.matvec(t["s"], [1.0, 2.0, 3.0]),
    "tensordot": lambda t: linalg.tensordot(t["x"], t["s"], [[0], [1]]),
    "cross": lambda t: linalg.cross(t["s"], t["p"]),
    "matrix_transpose": lambda t: linalg.matrix_transpose(t["m"]),
    "adjoint": lambda t: linalg.adjoint(t["z"]),
    "einsum": lambda t: linalg.einsum("ij,kj,il->kl", t["x"], t["x"], t["s"]),
    "einsum, one": lambda t: linalg.einsum("ij->ji", t["h"]),
    "diag": lambda t: linalg.diag(t["x"], k=1),
    "diag_part": lambda t: linalg.diag_part(t["s"], k=(-1, 1)),
    "set_diag": lambda t: linalg.set_diag(t["s"], [1.0, 2.0, 3.0]),
    "trace": lambda t: linalg.trace(t["s"]),
    "band_part": lambda t: linalg.band_part(t["s"], 1, 0),
    "norm": lambda t: linalg.norm(t["x"]),
    "norm, 2": lambda t: linalg.norm(t["s"], ord=2, axis=[0, 1]),
    "norm, 3": lambda t: linalg.norm(t["x"], ord=3, axis=1),
    "global_norm": lambda t: linalg.global_norm([t["x"], t["y"]]),
    "inv": lambda t: linalg.inv(t["c"], adjoint=True),
    "det": lambda t: linalg.det(t["p"]),
    "slogdet": lambda t: linalg.slogdet(t["c"]),
    "logdet": lambda t: linalg.logdet(t["p"]),
    "cholesky": lambda t: linalg.cholesky(t["p"]),
    "cholesky_solve": lambda t: linalg.cholesky_solve(t["p"], t["x"]),
    "solve": lambda t: linalg.solve(t["s"], t["x"]),
    "triangular_solve": lambda t: linalg.triangular_solve(t["s"], t["x"], adjoint=True),
    "lstsq": lambda t: linalg.lstsq(t["s"], t["x"], l2_regularizer=0.5),
    "qr": lambda t: linalg.qr(t["x"], full_matrices=True),
    "svd": lambda t: linalg.svd(t["z"]),
    "svd, values": lambda t: linalg.svd(t["x"], compute_uv=False),
    "eigh": lambda t: linalg.eigh(t["p"]),
    "eigvalsh": lambda t: linalg.eigvalsh(t["p"]),
    "eig": lambda t: linalg.eig(t["s"]),
    "eigvals": lambda t: linalg.eigvals(t["s"]),
    "expm": lambda t: linalg.expm(t["s"]),
}

_NN: dict[str, Sample] = {
    "gelu, approximate": lambda t: nn.gelu(t["x"], approximate=True),
    "leaky_relu, int32": lambda t: nn.leaky_relu(t["i"]),
    "softmax, first axis": lambda t: nn.softmax(t["x"], axis=0),
    "softmax_cross_entropy": lambda t: nn.softmax_cross_entropy_with_logits(t["x"], t["y"]),
    "sparse_softmax_cross_entropy": lambda t: nn.sparse_softmax_cross_entropy_with_logits(t["n"], t["h"]),
    "sigmoid_cross_entropy": lambda t: nn.sigmoid_cross_entropy_with_logits(t["x"], t["y"]),
    "l2_loss": lambda t: nn.l2_loss(t["h"]),
    "bias_add": lambda t: nn.bias_add(t["m"], [1.0, 2.0, 3.0]),
    "moments": lambda t: nn.moments(t["h"], [0]),
    "batch_normalization": lambda t: nn.batch_normalization(t["x"], 0.5, 2.0, 0.25, 3.0, 1e-3),
    "conv2d": lambda t: nn.conv2d(t["m"], t["f"], 2, "SAME"),
    "max_pool": lambda t: nn.max_pool(t["m"], 2, 2, "SAME"),
    "avg_pool": lambda t: nn.avg_pool(t["m"], 2, 1, "SAME"),
    "embedding_lookup": lambda t: nn.embedding_lookup(t["x"], t["n"], max_norm=0.5),
    "in_top_k": lambda t: nn.in_top_k(t["n"], t["x"], 2),
    "top_k": lambda t: nn.top_k(t["x"], 2),
    "zero_fraction": lambda t: nn.zero_fraction(t["b"]),
}
