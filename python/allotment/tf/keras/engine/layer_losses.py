"""The losses that layers add to that of their model: by ``add_loss``, and by regularizers."""

from typing import Any

from allotment.tf import nest
from allotment.tf.keras import regularizers
from allotment.tf.keras.engine.calls import calls
from allotment.tf.keras.engine.layer_variables import LayerVariables
from allotment.tf.keras.engine.tracking import without_repeats
from allotment.tf.ops.array.array import cast
from allotment.tf.ops.convert import to_tensor
from allotment.tf.ops.math.division import divide_no_nan
from allotment.tf.tensors.tensor import EagerTensor


class LayerLosses(LayerVariables):
    """The part of ``Layer`` that adds losses.

    Args:
        activity_regularizer: A function of outputs that returns a loss, or its name.
        trainable: See ``LayerVariables``.
        dtype: See ``LayerVariables``.
        name: See ``LayerVariables``.
    """

    def __init__(self, activity_regularizer: Any, trainable: bool, dtype: str, name: str) -> None:
        super().__init__(trainable, dtype, name)
        self.activity_regularizer = regularizers.get(activity_regularizer)

    def add_loss(self, loss: Any) -> None:
        """Add a tensor that ``call`` computes, or several, to the loss of the model, until the model's next call.

        Raises:
            ValueError: It is no eager tensor.
        """
        added = nest.flatten(loss)
        for each in added:
            if not isinstance(each, EagerTensor) and not calls.tracing:
                raise ValueError(
                    "`add_loss()` can only be called from inside `build()` or `call()`, on a tensor input. Received "
                    f"invalid value: {each}"
                )
        if not calls.tracing:
            calls.losses.setdefault(self, []).extend(added)

    def _regularize(self, outputs: Any) -> None:
        """Add the loss of the activity regularizer, divided by the batch size."""
        for output in nest.flatten(outputs):
            if isinstance(output, EagerTensor):
                loss = to_tensor(self.activity_regularizer(output))
                self.add_loss(
                    divide_no_nan(loss, cast(len(output._array), loss._dtype)) if output.ndim else loss
                )

    def _forget_losses(self) -> None:
        """Drop the losses that the last call added."""
        if calls.losses:
            for layer in self._with_sublayers():
                calls.losses.pop(layer, None)

    @property
    def losses(self) -> list[Any]:
        """The losses of ``add_loss`` in the last call, and of regularizers of trainable variables."""
        found: list[Any] = []
        if calls.losses:
            layers = without_repeats(self._with_sublayers())
            found = [loss for layer in layers for loss in calls.losses.get(layer, ())]
        functions = dict(self._all_regularizers())
        if functions:
            trained = self.trainable_weights
            found += [to_tensor(functions[id(each)](each)) for each in trained if id(each) in functions]
        return found


__all__ = ["LayerLosses"]
