"""The base class of layers: how a layer is built, called, and recorded.

Longer than 300 lines: it holds one public class with its documentation.
"""

from collections.abc import Iterator
from typing import Any, Final

import numpy as np

from allotment.tf import nest
from allotment.tf.graph.scratch import outside_scratch_graph
from allotment.tf.keras.engine.arguments import dtype_argument, shape_of_sample
from allotment.tf.keras.engine.calls import calls, refuse_keywords, requires_training, takes_training
from allotment.tf.keras.engine.configured import Configured
from allotment.tf.keras.engine.input_spec import InputSpec
from allotment.tf.keras.engine.layer_losses import LayerLosses
from allotment.tf.keras.engine.names import snake_case, unique_name
from allotment.tf.keras.engine.replicas import build_together
from allotment.tf.keras.engine.symbolic import KerasTensor, Node, Shape, shapes_of, symbolic_in
from allotment.tf.keras.engine.tracing import outputs_by_tracing
from allotment.tf.keras.engine.tracking import without_repeats
from allotment.tf.keras.engine.warnings import warn
from allotment.tf.names.absent_methods import lacks
from allotment.tf.ops.array.array import cast
from allotment.tf.ops.convert import to_tensor
from allotment.tf.tensors.dtype import as_dtype
from allotment.tf.tensors.tensor import EagerTensor, Tensor
from allotment.tf.training.checkpoint_values import attributes
from allotment.tf.variables import restoring
from allotment.tf.variables.variable import Variable

#: Attributes that ``Layer.__init__`` sets: a layer without one has not called it.
_SET_BY_INIT: Final = frozenset(
    {
        "built",
        "dtype",
        "autocast",
        "name",
        "nodes",
        "input_spec",
        "_trainable",
        "_build_shape",
        "activity_regularizer",
        "_weights",
        "_regularizers",
    }
)

#: Attributes without variables for checkpoints: symbolic tensors, and lists of variables that other attributes hold.
_NO_PARTS: Final = ("nodes", "_weights", "_build_shape", "_plain_arguments", "_tracker")


@lacks(
    "compute_mask",
    "supports_masking",
    "get_build_config",
    "build_from_config",
    "save_own_variables",
    "load_own_variables",
    "stateless_call",
    "dtype_policy",
    "quantize",
)
class Layer(LayerLosses, Configured):
    """A computation with variables. As ``keras.layers.Layer``.

    A subclass sets sublayers and plain values in ``__init__``, makes variables with ``add_weight`` in
    ``build(input_shape)``, and computes in ``call(inputs)``, which may have an argument ``training``.

    Args:
        trainable: Whether gradients and optimizers see its variables.
        dtype: The type of variables and of computations with floats.
        autocast: Whether floats among the inputs are cast to the type of the layer.
        name: The name, made from the class if not given.
        activity_regularizer: A function of outputs that returns a loss, or its name; the loss is divided by the batch
            size.

    Raises:
        ValueError: Another keyword.
    """

    _has_config = True
    _internal = frozenset(
        {"_weights", "_regularizers", "_plain_arguments", "_build_shape", "input_spec", "nodes"}
    )
    #: Whether the state is complete once the layer is built.
    _closes = True
    #: Whether the output has the type of the input, as that of a layer that only moves elements.
    _keeps_dtype = False
    #: Whether floats are cast to the type of the layer.
    _casts_inputs = True
    #: Whether ``build`` may make variables.
    _makes_variables = True
    #: Whether a subclass of the program defines ``compute_mask``.
    _computes_mask = False

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        cls._computes_mask = cls._computes_mask or "compute_mask" in vars(cls)

    def __init__(
        self,
        *,
        trainable: bool = True,
        dtype: Any = None,
        autocast: bool = True,
        name: str | None = None,
        activity_regularizer: Any = None,
        **kwargs: Any,
    ) -> None:
        length, input_shape = kwargs.pop("input_dim", None), kwargs.pop("input_shape", None)
        if length is not None:
            input_shape = (length,)
        if kwargs:
            raise ValueError(f"Unrecognized keyword arguments passed to {type(self).__name__}: {kwargs}")
        super().__init__(
            activity_regularizer,
            trainable,
            dtype_argument(dtype).name,
            unique_name(snake_case(type(self).__name__)) if name is None else name,
        )
        self.autocast = bool(autocast)
        self.input_spec: InputSpec | None = None
        self._sample_shape = input_shape
        #: The calls with symbolic tensors.
        self.nodes: list[Node] = []
        self._build_shape: Any = None

    def __getattr__(self, name: str) -> Any:
        if name in _SET_BY_INIT:
            raise RuntimeError(
                f"In layer {type(self).__name__!r}, you forgot to call `super().__init__()` as the first statement in "
                "the `__init__()` method. Go add it!"
            )
        # Raises the original error: a property may have raised it.
        return object.__getattribute__(self, name)

    @property
    def _shape_of_sample(self) -> Shape | None:
        """The shape of one sample, if this is the first layer of a model."""
        return None if self._sample_shape is None else shape_of_sample(self._sample_shape)

    def build(self, input_shape: Any) -> None:
        """Make the variables. Called once, before the first ``call``, with the shape of its first argument.

        A subclass that does not override it makes none here, and warns if its sublayers have none yet: they make their
        variables when ``call`` calls them.
        """
        self._build_shape = input_shape
        is_own = type(self).build is not Layer.build
        if self._builds_in_call():
            warn(
                f"`build()` was called on layer '{self.name}', however the layer does not have a `build()` method "
                "implemented and it looks like it has unbuilt state. This will cause the layer to be marked as built, "
                "despite not being actually built, which may cause failures down the line. Make sure to implement a "
                "proper `build()` method."
            )
        self.built = True
        if not is_own:
            self._close()

    def _close(self) -> None:
        """Refuse new variables and sublayers from now on."""
        self._tracker.is_closed = self._closes

    def _builds_in_call(self) -> bool:
        """Whether ``call`` will make variables: of sublayers that ``build`` does not build."""
        return type(self).build is Layer.build and any(not layer.built for layer in self._sublayers())

    def _is_built_throughout(self) -> bool:
        return all(layer.built for layer in self._with_sublayers())

    def call(self, *args: Any, **kwargs: Any) -> Any:
        """Compute the output from inputs."""
        raise NotImplementedError(f"Layer {type(self).__name__} does not have a `call()` method implemented.")

    def compute_output_shape(self, input_shape: Any) -> Any:
        """Return the shape of the output for an input of this shape.

        For a subclass that does not override it, ``call`` is recorded in a graph that never runs.
        """
        inputs = tensors_of(input_shape, self.dtype)
        self._build_for(inputs)
        return shapes_of(outputs_by_tracing(self, (inputs,), {}))

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Compute the output; with symbolic tensors, record the call as a part of a functional model.

        Raises:
            ValueError: The inputs are no tensors, or have an invalid shape.
        """
        inputs: Any
        if len(args) == 1 and type(args[0]) is EagerTensor and args[0]._dtype.name == self.dtype:
            inputs = args[0]
        elif symbolic_in((args, kwargs)):
            return self._record(args, kwargs)
        else:
            args = tuple(nest.map_structure(self._input, arg) for arg in args)
            inputs = self._first_input(args, kwargs)
        if kwargs:
            kwargs = {name: nest.map_structure(self._keyword, each) for name, each in kwargs.items()}
        is_new = not self.built
        if is_new:
            self._build_for(inputs)
        if self.input_spec is not None:
            self.input_spec.check(
                self.name, shapes_of(inputs) if nest.is_nested(inputs) else inputs._array.shape
            )
        before = calls.training
        training = kwargs.get("training")
        if training is None:
            training = before
        if takes_training(type(self).call):
            if "training" not in kwargs and requires_training(type(self).call):
                raise TypeError(
                    f"{type(self).__name__}.call() has an argument `training` without a default: pass it in each call "
                    "of the layer, or give it the default None, which stands for that of the calls around it."
                )
            kwargs["training"] = training
        elif "training" in kwargs:
            del kwargs["training"]
        if kwargs:
            refuse_keywords(self, kwargs)
        calls.training = training
        is_first, calls.inside = not calls.inside, True
        if is_first:
            self._forget_losses()
        try:
            outputs = self.call(*args, **kwargs)
            if self._computes_mask and self.compute_mask(inputs, None) is not None:
                raise NotImplementedError(
                    f"Layer {self.name!r} computes a mask, which is not offered: layers pass no masks on"
                )
            if self.activity_regularizer is not None and not calls.tracing:
                self._regularize(outputs)
            if is_new:
                self._close()
            return outputs
        finally:
            calls.training, calls.inside = before, not is_first

    def _first_input(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Return the argument that a layer is built for.

        Raises:
            TypeError: There is no argument.
        """
        if not args and not kwargs:
            raise TypeError(f"layer {self.name!r} is called without an input: pass a tensor")
        return args[0] if args else next(iter(kwargs.values()))

    def _keyword(self, value: Any) -> Any:
        """Convert a keyword argument if it is a tensor or an array."""
        is_input = isinstance(value, Tensor | np.ndarray | np.generic | Variable)
        return self._input(value) if is_input else value

    def _input(self, value: Any) -> Any:
        """Convert an input to a tensor, and floats to the type of the layer."""
        if value is None:
            return None
        if not isinstance(value, Tensor):
            if not isinstance(value, np.ndarray | np.generic | Variable) and not hasattr(value, "_as_tensor"):
                raise ValueError(
                    "Only input tensors may be passed as positional arguments. The following argument value should be "
                    f"passed as a keyword argument: {value} (of type {type(value)})"
                )
            value = to_tensor(value)
        if not isinstance(value, EagerTensor) and not calls.tracing:
            raise NotImplementedError(
                f"Keras is for eager programs: layer {self.name!r} does not record in a graph"
            )
        wanted = self.dtype
        casts = self._casts_inputs and self.autocast
        is_other = casts and value._dtype.is_floating and value._dtype.name != wanted
        return cast(value, wanted) if is_other else value

    def _build_for(self, inputs: Any) -> None:
        """Build the layer for inputs, symbolic or not; once for all replicas."""
        if self.built:
            return
        shape = shapes_of(inputs)
        if not self._makes_variables or type(self).build is Layer.build:
            # Without variables, replicas need not build it together.
            self._build_once(shape)
        else:
            build_together(self, lambda layer: layer._build_once(shape))

    def _build_once(self, shape: Any) -> None:
        if self.input_spec is not None:
            self.input_spec.check(self.name, shape)
        self._build_shape = shape
        if type(self).build is not Layer.build:
            with outside_scratch_graph():
                self.build(shape)
        # A `build` of the program need not set it.
        builds_in_call = self._builds_in_call()
        self.built = True
        if not builds_in_call:
            self._close()
        if restoring.pending:
            restoring.restore_pending()

    def _checkpoint_parts(self) -> Iterator[tuple[str, Any]]:
        yield from attributes(self, _NO_PARTS)
        # Variables that no attribute holds.
        yield "_weights", self._weights

    def _record(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        inputs = self._first_input(args, kwargs)
        was_built = self.built
        self._build_for(inputs)
        shape = shapes_of(inputs)
        if self.input_spec is not None:
            self.input_spec.check(self.name, shape)
        if type(self).compute_output_shape is Layer.compute_output_shape:
            outputs = outputs_by_tracing(self, args, kwargs)
        else:
            if not was_built and self._builds_in_call():
                self._build_layers(args, kwargs)
            first = symbolic_in((args, kwargs))[0]
            keeps = self._keeps_dtype and not as_dtype(first.dtype).is_floating
            outputs = tensors_of(self.compute_output_shape(shape), first.dtype if keeps else self.dtype)
        Node(self, args, kwargs, outputs)
        return outputs

    def _build_layers(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        """Let ``call`` build the sublayers."""
        try:
            outputs_by_tracing(self, args, kwargs)
        except Exception as error:
            warn(
                f"Layer '{self.name}' looks like it has unbuilt state, but Keras is not able to trace the layer "
                "`call()` in order to build it automatically. Implement the `def build(self, input_shape)` method of "
                "the layer, which creates all variables used by the layer (e.g. by calling `layer.build()` on all its "
                f"children layers). Exception encountered: ''{error}''"
            )

    @property
    def metrics(self) -> list[Any]:
        """The metrics among the attributes, and those of the layers inside."""
        inner = (metric for layer in self._tracker.layers for metric in layer.metrics)
        return without_repeats(iter([*self._tracker.metrics, *inner]))

    @property
    def compute_dtype(self) -> str:
        """The type of computations with floats and of variables."""
        return self.dtype

    variable_dtype = compute_dtype

    @property
    def input(self) -> Any:
        """The symbolic input of the layer, if it was called once."""
        args, kwargs = self._only_node().arguments
        return args[0] if args else next(iter(kwargs.values()))

    @property
    def output(self) -> Any:
        """The symbolic output of the layer, if it was called once."""
        return self._only_node().outputs

    def _only_node(self) -> Node:
        if len(self.nodes) == 1:
            return self.nodes[0]
        count = "has multiple inbound nodes" if self.nodes else "has never been called"
        raise AttributeError(f"The layer {self.name} {count} and thus has no defined input and output.")

    def __repr__(self) -> str:
        return f"<{type(self).__name__} name={self.name}, built={self.built}>"


def tensors_of(shape: Any, dtype: str) -> Any:
    """Make symbolic tensors of a shape, or of a structure of shapes."""
    if isinstance(shape, dict):
        return {key: tensors_of(each, dtype) for key, each in shape.items()}
    if isinstance(shape, list | tuple) and any(isinstance(each, list | tuple | dict) for each in shape):
        return type(shape)(tensors_of(each, dtype) for each in shape)
    return KerasTensor(shape, dtype)


__all__ = ["Layer", "tensors_of"]
