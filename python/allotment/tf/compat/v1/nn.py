"""``tf.compat.v1.nn``: ``tf.nn`` with the arguments of TensorFlow 1."""

from collections.abc import Callable
from typing import Any, Final

from allotment.tf import nn
from allotment.tf.compat.functions.namespace import extend_namespace
from allotment.tf.compat.functions.signatures import as_in_1
from allotment.tf.names.missing_names import refuse_other_names
from allotment.tf.ops.array.array import cast, is_tensor, stop_gradient
from allotment.tf.ops.array.joining import concat
from allotment.tf.ops.array.layout import reshape
from allotment.tf.ops.array.shapes import shape, size
from allotment.tf.ops.convert import to_tensor
from allotment.tf.ops.indexing.gathering import gather
from allotment.tf.ops.indexing.partition import dynamic_partition, dynamic_stitch
from allotment.tf.ops.linalg.products import matmul
from allotment.tf.ops.math.arithmetic import add
from allotment.tf.ops.math.division import floordiv, floormod
from allotment.tf.ops.math.sequences import range as range_of
from allotment.tf.ops.reduction.norms import clip_by_norm
from allotment.tf.tensors.dtype import int32


def dropout(
    x: Any,
    keep_prob: Any = None,
    noise_shape: Any = None,
    seed: Any = None,
    name: str | None = None,
    rate: Any = None,
) -> Any:
    """Set elements to zero at random, given the probability of keeping one. As ``tf.compat.v1.nn.dropout``.

    Args:
        x: Floats.
        keep_prob: The probability of keeping an element; not together with ``rate``.
        noise_shape: A shape that broadcasts to that of ``x``.
        seed: The seed of the random numbers.
        name: The node's name.
        rate: The probability of setting an element to zero.

    Raises:
        ValueError: Both probabilities are given, or none, or one that is no probability.
    """
    if (keep_prob is None) == (rate is None):
        raise ValueError("You must provide either a `rate` or a `keep_prob` to `dropout`, and not both.")
    if keep_prob is not None:
        if not is_tensor(keep_prob) and not 0 < float(keep_prob) <= 1:
            raise ValueError(f"keep_prob must be a number above 0 and up to 1, not {keep_prob!r}")
        rate = 1 - keep_prob
    return nn.dropout(x, rate, noise_shape, seed, name)


def embedding_lookup(
    params: Any,
    ids: Any,
    partition_strategy: str = "mod",
    name: str | None = None,
    validate_indices: bool = True,  # noqa: ARG001 - they always are, as in TensorFlow
    max_norm: Any = None,
) -> Any:
    """Look up rows by number in one table or several. As ``tf.compat.v1.nn.embedding_lookup``.

    Args:
        params: A table, or a list of tables.
        ids: Numbers of rows.
        partition_strategy: How rows are numbered: one of each table in turn (``"mod"``), or table after table
            (``"div"``).
        name: The name of the result's node.
        validate_indices: Has no effect.
        max_norm: Shrink rows with a larger Euclidean norm to this one.

    Raises:
        InvalidArgumentError: There is no such row.
        ValueError: There is no table, or another strategy.
    """
    tables = list(params) if isinstance(params, list | tuple) else [params]
    if len(tables) < 2 or partition_strategy == "div":
        return nn.embedding_lookup(params, ids, max_norm, name)
    if partition_strategy != "mod":
        raise ValueError(
            f"Unrecognized partition strategy: {partition_strategy}. Must be one of either `mod` or `div`."
        )
    ids = to_tensor(ids)
    flat, count = reshape(ids, [-1]), to_tensor(len(tables), like=ids._dtype)
    table = cast(floormod(flat, count), int32)
    numbers = dynamic_partition(floordiv(flat, count), table, len(tables))
    places = dynamic_partition(range_of(size(flat)), table, len(tables))
    rows = dynamic_stitch(places, [gather(*each) for each in zip(tables, numbers, strict=True)])
    if max_norm is not None:
        rows = clip_by_norm(rows, max_norm, axes=list(range(1, len(rows.shape))))
    return reshape(rows, concat([shape(ids), shape(rows)[1:]], 0), name=name)


def in_top_k(predictions: Any, targets: Any, k: Any, name: str | None = None) -> Any:
    """Whether targets are among the ``k`` largest predictions. As ``tf.compat.v1.nn.in_top_k``."""
    return nn.in_top_k(targets, predictions, k, name)


def softmax_cross_entropy_with_logits(
    labels: Any = None, logits: Any = None, dim: Any = -1, name: str | None = None, axis: Any = None
) -> Any:
    """Return the cross entropy of distributions and logits, without a gradient for the distributions.

    As ``tf.compat.v1.nn.softmax_cross_entropy_with_logits``; ``axis`` is another name of ``dim``.

    Raises:
        InvalidArgumentError: The shapes do not fit.
        ValueError: Labels or logits are missing, or the axis is given by both names.
    """
    if axis is not None and dim != -1:
        raise ValueError("Cannot specify both 'dim' and 'axis'.")
    fixed = None if labels is None else stop_gradient(labels)
    return nn.softmax_cross_entropy_with_logits(fixed, logits, dim if axis is None else axis, name)


def xw_plus_b(x: Any, weights: Any, biases: Any, name: str | None = None) -> Any:
    """Compute ``x @ weights + biases``. As ``tf.compat.v1.nn.xw_plus_b``."""
    return add(matmul(x, weights), biases, name)


_FUNCTIONS: Final[dict[str, Callable[..., Any]]] = {
    "dropout": dropout,
    "embedding_lookup": embedding_lookup,
    "in_top_k": in_top_k,
    "softmax_cross_entropy_with_logits": softmax_cross_entropy_with_logits,
    "softmax_cross_entropy_with_logits_v2": as_in_1(
        "softmax_cross_entropy_with_logits_v2", nn.softmax_cross_entropy_with_logits
    ),
    "xw_plus_b": xw_plus_b,
}

__getattr__, __dir__ = extend_namespace(__name__, nn, _FUNCTIONS)

refuse_other_names(__name__)
