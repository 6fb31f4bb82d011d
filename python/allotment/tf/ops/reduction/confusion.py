"""How often each class is taken for each other."""

from typing import Any

from allotment.tf.ops.array.array import cast
from allotment.tf.ops.array.creation import ones_like
from allotment.tf.ops.array.joining import stack
from allotment.tf.ops.array.layout import squeeze
from allotment.tf.ops.control.assertions import assert_less, assert_non_negative
from allotment.tf.ops.convert import to_tensor
from allotment.tf.ops.indexing.scattering import scatter_nd
from allotment.tf.ops.known_shapes import rank_of
from allotment.tf.ops.math.arithmetic import add, maximum, multiply
from allotment.tf.ops.name_scopes import in_name_scope
from allotment.tf.ops.reduction.reduce import reduce_max
from allotment.tf.tensors.dtype import as_dtype, int32, int64
from allotment.tf.tensors.tensor import EagerTensor


@in_name_scope("confusion_matrix", None)
def confusion_matrix(
    labels: Any,
    predictions: Any,
    num_classes: Any = None,
    weights: Any = None,
    dtype: Any = int32,
    name: str | None = None,
) -> EagerTensor:
    """Count predictions by label (rows) and what was predicted (columns). As ``tf.math.confusion_matrix``.

    Args:
        labels: Numbers of classes.
        predictions: As many.
        num_classes: How many classes there are; without it as many as the numbers say.
        weights: What each prediction counts.
        dtype: Of the result.
        name: Not looked at.

    Raises:
        InvalidArgumentError: A number is negative or not below that of the classes, or the shapes differ.
        ValueError: The weights have another shape.
    """
    wanted = as_dtype(dtype)
    labels, predictions = to_tensor(labels), to_tensor(predictions)
    # One of them may have an axis of length 1 more.
    ranks = rank_of(predictions), rank_of(labels)
    if None not in ranks:
        if predictions.ndim == labels.ndim + 1:
            predictions = squeeze(predictions, -1)
        elif labels.ndim == predictions.ndim + 1:
            labels = squeeze(labels, -1)
    labels, predictions = cast(labels, int64), cast(predictions, int64)
    assert_non_negative(labels, message="`labels` contains negative values")
    assert_non_negative(predictions, message="`predictions` contains negative values")
    if num_classes is None:
        count = add(maximum(reduce_max(predictions), reduce_max(labels)), 1)
    else:
        count = cast(to_tensor(num_classes), int64)
        assert_less(labels, count, message="`labels` out of bound")
        assert_less(predictions, count, message="`predictions` out of bound")
    values = ones_like(predictions, wanted)
    if weights is not None:
        weights = to_tensor(weights)
        if not predictions.shape.is_compatible_with(weights.shape):
            raise ValueError(f"Shapes {predictions.shape} and {weights.shape} are incompatible")
        values = multiply(cast(weights, wanted), values)
    return scatter_nd(stack([labels, predictions], 1), values, stack([count, count]))


__all__ = ["confusion_matrix"]
