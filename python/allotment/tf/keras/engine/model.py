"""Models: layers that are trained."""

from typing import Any

from allotment.tf.keras.absent import lacks, refuse_unless_none
from allotment.tf.keras.engine.layer import Layer, tensors_of
from allotment.tf.keras.engine.replicas import replica
from allotment.tf.keras.engine.summary import print_summary
from allotment.tf.keras.engine.symbolic import shapes_of
from allotment.tf.keras.engine.trial import outputs_by_trial
from allotment.tf.keras.engine.weights_file import load_weights, save_weights
from allotment.tf.keras.training.trainer import Trainer


@lacks(
    "save",
    "export",
    "to_json",
    "get_compile_config",
    "compile_from_config",
)
class Model(Trainer, Layer):
    """A layer that is trained. As ``keras.Model``.

    ``Model(inputs, outputs)`` is what is computed between symbolic tensors. A model of your own sets layers in
    ``__init__`` and computes with them in ``call(inputs, training=None)``.

    Args:
        inputs: Symbolic tensors.
        outputs: Symbolic tensors computed from them.
        name: The name.
    """

    def __new__(cls, *args: Any, **kwargs: Any) -> "Model":
        """Make a model, a functional one of inputs and outputs."""
        if cls is Model and (args or "inputs" in kwargs or "outputs" in kwargs):
            from allotment.tf.keras.engine.functional import Functional

            return object.__new__(Functional)
        return object.__new__(cls)

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        if args or "inputs" in kwargs or "outputs" in kwargs:
            raise NotImplementedError(
                f"{type(self).__name__}: a class of your own with `inputs` and `outputs` is not offered; set the "
                "layers in `__init__`, compute in `call`, or make a plain `keras.Model(inputs, outputs)`"
            )
        Layer.__init__(self, **kwargs)
        Trainer.__init__(self)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Compute the output; see ``Layer``."""
        if self.built or replica() is not None:
            return super().__call__(*args, **kwargs)
        # Variables that are made now are those of the strategy that the model was made under.
        with self._runner.scope():
            return super().__call__(*args, **kwargs)

    def _build_for(self, inputs: Any) -> None:
        # The layers of a model that does not say how it is built are built when they are called.
        if type(self).build is Model.build:
            if not self.built:
                self._build_shape = shapes_of(inputs)
                self.built = True
        else:
            super()._build_for(inputs)

    def build(self, input_shape: Any) -> None:
        """Make all variables, for data of this shape, or of these; by trying the model out with zeros."""
        outputs_by_trial(self, (tensors_of(input_shape, self.dtype),), {})
        self._build_shape = input_shape
        self.built = True

    @property
    def layers(self) -> list[Layer]:
        """The layers, without those inside of them."""
        return self._sublayers()

    def get_layer(self, name: str | None = None, index: int | None = None) -> Layer:
        """Return the layer of a name or a number.

        Raises:
            ValueError: There is none, or neither or both was given.
        """
        if index is not None and name is not None:
            raise ValueError(
                f"Provide only a layer name or a layer index. Received: index={index}, name={name}."
            )
        layers = self.layers
        if index is not None:
            if len(layers) <= index:
                raise ValueError(
                    f"Was asked to retrieve layer at index {index} but model only has {len(layers)} layers."
                )
            return layers[index]
        if name is None:
            raise ValueError("Provide either a layer name or layer index at `get_layer`.")
        for layer in layers:
            if layer.name == name:
                return layer
        raise ValueError(f"No such layer: {name}. Existing layers are: {[each.name for each in layers]}.")

    def summary(
        self,
        line_length: int | None = None,
        positions: Any = None,
        print_fn: Any = None,
        expand_nested: bool = False,
        show_trainable: bool = False,
        layer_range: Any = None,
    ) -> None:
        """Print a table of the layers, with shapes and numbers of elements.

        Args:
            line_length: The width in characters.
            positions: Not offered.
            print_fn: Gets the text in the place of ``print``.
            expand_nested: Not offered: print ``summary`` of the model inside.
            show_trainable: Not offered.
            layer_range: Not offered.
        """
        refuse_unless_none(
            "summary",
            positions=positions,
            expand_nested=expand_nested,
            show_trainable=show_trainable,
            layer_range=layer_range,
        )
        print_summary(self, line_length, print_fn)

    def save_weights(self, filepath: Any, overwrite: bool = True) -> None:
        """Write all variables into an ``.npz`` file.

        Raises:
            ValueError: Another kind of file, or the model is not built.
            FileExistsError: The file is there and must not be overwritten.
        """
        save_weights(self, filepath, overwrite)

    def load_weights(self, filepath: Any) -> None:
        """Read all variables from what ``save_weights`` wrote, into a model with the same ones.

        Raises:
            ValueError: No such file, or one of other variables.
        """
        load_weights(self, filepath)


__all__ = ["Model"]
