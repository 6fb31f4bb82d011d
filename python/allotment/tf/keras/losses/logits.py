"""The logits behind probabilities, from which cross entropies are computed.

Logarithms of probabilities near 0 lose all digits, and their gradients vanish. As in Keras, a cross entropy looks for
the tensor that the probabilities were computed from: the activations of Keras leave it at their result, and in a graph,
or in a function that TensorFlow records as one, it is the input of the operation that made the probabilities.
"""

from typing import Any

from allotment.tf.dispatch import thread
from allotment.tf.keras.engine.warnings import warn
from allotment.tf.ops.convert import to_tensor
from allotment.tf.tensors.tensor import EagerTensor


def logits_behind(
    predicted: EagerTensor, from_logits: bool, activation: str, loss: str, *, of_captured: bool = False
) -> tuple[EagerTensor, bool]:
    """Return the logits that predictions were computed from, or the predictions, and whether they are logits.

    Args:
        predicted: The predictions of the model.
        from_logits: Whether the program says that the predictions are logits.
        activation: The type of the operation that has the logits as its input: ``"Softmax"`` or ``"Sigmoid"``.
        loss: The name of the loss, for the warning that ``from_logits`` is wrong.
        of_captured: Whether predictions count that a function captures, that is uses without being given them. Keras
            converts them first in most losses, and looks at the result of the conversion.
    """
    # An activation of Keras counts whatever its type.
    found = getattr(predicted, "_keras_logits", None)
    if not of_captured and thread.state.in_function and not hasattr(predicted, "_activation"):
        found = None
    elif found is None:
        found = _input_of(predicted, activation)
    if found is None:
        return predicted, from_logits
    if from_logits:
        warn(
            f"`{loss}` was told `from_logits=True`, but the predictions are the output of an activation, such as "
            f"{activation}, and no logits. The loss is computed from the input of the activation. Leave out "
            "`from_logits`, or the activation."
        )
    return to_tensor(found), True


def _input_of(predicted: EagerTensor, activation: str) -> Any:
    """Return the input of the operation that made a tensor, if it has a type and the tensor knows it."""
    if type(predicted) is EagerTensor:
        kind, features = getattr(predicted, "_activation", (None, None))
        return features if kind == activation else None
    op: Any = predicted.op
    return op.inputs[0] if op.type == activation else None


__all__ = ["logits_behind"]
