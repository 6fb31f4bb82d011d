"""The model: a layer with methods for training, evaluation and prediction."""

from typing import Any, ClassVar

from allotment.tf.keras.absent import refuse_unless_none
from allotment.tf.keras.engine.layer import Layer
from allotment.tf.keras.engine.replicas import replica_index
from allotment.tf.keras.engine.symbolic import Node, shapes_of
from allotment.tf.keras.models.summary import print_summary
from allotment.tf.keras.models.weights_file import load_weights, save_weights
from allotment.tf.keras.training.trainer import Trainer
from allotment.tf.names.absent_methods import lacks


@lacks(
    "save",
    "export",
    "to_json",
    "get_compile_config",
    "compile_from_config",
)
class Model(Trainer):
    """A layer with methods for training. As ``keras.Model``.

    ``Model(inputs, outputs)`` makes a functional model of symbolic tensors. A subclass sets layers in ``__init__`` and
    computes with them in ``call(inputs, training=None)``. A subclass with inputs and outputs is a functional model with
    methods of its own, such as ``train_step``.

    Args:
        inputs: Symbolic tensors.
        outputs: Symbolic tensors computed from them.
        name: The name.
    """

    _has_config = True
    #: The class of ``Model(inputs, outputs)``, which ``functional.py`` sets: it derives from this one.
    _functional: ClassVar["type[Model]"]

    def __new__(cls, *args: Any, **kwargs: Any) -> "Model":
        """Make a model; with inputs and outputs, a functional one."""
        kind = cls._functional if cls is Model and _are_of_functional(args, kwargs) else cls
        # Without the arguments: as in Keras, models of a program have their own ``get_config``, or no arguments.
        return super().__new__(kind)  # type: ignore[no-any-return]

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        if _are_of_functional(args, kwargs):
            _make_functional(type(self))
            self._functional.__init__(self, *args, **kwargs)
        else:
            super().__init__(*args, **kwargs)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Compute the output; see ``Layer``."""
        if self.built or replica_index() is not None:
            return super().__call__(*args, **kwargs)
        # New variables belong to the strategy in whose scope the model was made.
        with self._runner.scope():
            return super().__call__(*args, **kwargs)

    def _build_for(self, inputs: Any) -> None:
        # Without a ``build`` of its own, a model builds its layers when it calls them.
        if type(self).build is Layer.build:
            if not self.built:
                self._build_shape = shapes_of(inputs)
                builds_in_call = self._builds_in_call()
                self.built = True
                if not builds_in_call:
                    self._close()
        else:
            super()._build_for(inputs)

    @property
    def layers(self) -> list[Layer]:
        """The direct sublayers."""
        return list(self._sublayers())  # type: ignore[arg-type]

    def get_layer(self, name: str | None = None, index: int | None = None) -> Layer:
        """Return the layer with a name or at an index.

        Raises:
            ValueError: There is none, or neither or both were given.
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
            print_fn: Called with the text instead of ``print``.
            expand_nested: Not offered: call ``summary`` of the inner model.
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
        kept = getattr(self.optimizer, "variables", None) if self.compiled else None
        kept = kept if isinstance(kept, list) else []
        totals = [
            ("Total params", [*self.weights, *kept]),
            ("Trainable params", self.trainable_weights),
            ("Non-trainable params", self.non_trainable_weights),
            *([("Optimizer params", kept)] if kept else []),
        ]
        print_summary(self.name, self.layers, self._nodes, totals, line_length, print_fn)

    @property
    def _nodes(self) -> frozenset[Node] | None:
        """The recorded calls that belong to this model; ``None`` if it is not functional."""
        return None

    def save_weights(self, filepath: Any, overwrite: bool = True) -> None:
        """Write all variables to an ``.npz`` file.

        Raises:
            ValueError: Another file type, or the model is not built.
            FileExistsError: The file exists, and ``overwrite`` is false.
        """
        save_weights(self, filepath, overwrite)

    def load_weights(self, filepath: Any) -> None:
        """Read all variables from a file of ``save_weights``.

        Raises:
            ValueError: Not such a file, or it has other variables.
        """
        load_weights(self, filepath)


def _are_of_functional(args: tuple[Any, ...], kwargs: dict[str, Any]) -> bool:
    """Whether arguments of ``Model`` are those of a functional model."""
    return len(args) + ("inputs" in kwargs) + ("outputs" in kwargs) >= 2


def _make_functional(kind: type) -> None:
    """Derive a subclass of ``Model`` from the class of functional models, as Keras does when one is first made."""
    functional = Model._functional
    if not issubclass(kind, functional):
        kind.__bases__ = tuple(functional if base is Model else base for base in kind.__bases__)
        for base in kind.__bases__:
            if issubclass(base, Model):
                _make_functional(base)


__all__ = ["Model"]
