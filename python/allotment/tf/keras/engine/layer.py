"""Layers: a computation with variables of its own. The base class of all, the user's own included."""

from collections.abc import Callable, Iterator, Sequence
from typing import Any, Final

import numpy as np

from allotment.tf import nest
from allotment.tf.keras import initializers, regularizers
from allotment.tf.keras.absent import lacks
from allotment.tf.keras.engine.arguments import dtype_argument, shape_of_sample
from allotment.tf.keras.engine.calls import calls, takes_training
from allotment.tf.keras.engine.input_spec import InputSpec
from allotment.tf.keras.engine.names import snake_case, unique_name
from allotment.tf.keras.engine.replicas import together
from allotment.tf.keras.engine.symbolic import KerasTensor, Node, Shape, shapes_of, symbolic_in
from allotment.tf.keras.engine.tracking import found_in, own_variables, without_repeats
from allotment.tf.keras.engine.trial import outputs_by_trial
from allotment.tf.ops.array.array import cast
from allotment.tf.ops.convert import to_tensor
from allotment.tf.ops.math.division import divide_no_nan
from allotment.tf.tensors.dtype import as_dtype
from allotment.tf.tensors.tensor import EagerTensor, Tensor
from allotment.tf.training.checkpoint_values import attributes
from allotment.tf.variables import restoring
from allotment.tf.variables.aggregation import VariableAggregation, VariableSynchronization
from allotment.tf.variables.variable import Variable

#: What ``Layer.__init__`` sets: whoever lacks it has not called it.
_SET_BY_INIT: Final = frozenset(
    {
        "built",
        "dtype",
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

#: Attributes that hold no variables of the layer's own: symbolic tensors, and those that are found elsewhere, too.
_NO_PARTS: Final = ("nodes", "_weights", "_build_shape")


@lacks(
    "compute_mask",
    "supports_masking",
    "get_config",
    "from_config",
    "get_build_config",
    "build_from_config",
    "save_own_variables",
    "load_own_variables",
    "stateless_call",
    "dtype_policy",
    "quantize",
)
class Layer:
    """A computation with variables. As ``keras.layers.Layer``.

    A layer of your own sets sublayers and plain values in ``__init__``, makes variables with ``add_weight`` in
    ``build(input_shape)``, and computes in ``call(inputs)``; with an argument ``training`` it is told whether the
    model is being trained.

    Args:
        trainable: Whether gradients and optimizers see its variables.
        dtype: The type of variables, and that floats are computed in.
        name: The name, made from the class if not given.
        activity_regularizer: A function of outputs that gives a loss, or its name: the loss for one sample counts.

    Raises:
        ValueError: Another keyword.
    """

    #: Whether it gives what it gets in the same type, as one that only moves elements does.
    keeps_dtype = False
    #: Whether floats are cast to the type of the layer.
    casts_inputs = True
    #: Whether ``build`` may make variables.
    makes_variables = True
    #: Whether a class of the user's own says how it makes a mask.
    _computes_mask = False

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        cls._computes_mask = cls._computes_mask or "compute_mask" in vars(cls)

    def __init__(
        self,
        *,
        trainable: bool = True,
        dtype: Any = None,
        name: str | None = None,
        activity_regularizer: Any = None,
        **kwargs: Any,
    ) -> None:
        length, input_shape = kwargs.pop("input_dim", None), kwargs.pop("input_shape", None)
        if length is not None:
            input_shape = (length,)
        if kwargs:
            raise ValueError(f"Unrecognized keyword arguments passed to {type(self).__name__}: {kwargs}")
        self.name = unique_name(snake_case(type(self).__name__)) if name is None else name
        self.dtype = dtype_argument(dtype).name
        self.built = False
        self.input_spec: InputSpec | None = None
        self._sample_shape = input_shape
        #: The calls with symbolic tensors.
        self.nodes: list[Node] = []
        #: What ``add_weight`` made, in that order.
        self._weights: list[Variable] = []
        #: Functions of its variables that give losses, by the variable's identity.
        self._regularizers: dict[int, Callable[[Any], Any]] = {}
        self.activity_regularizer = regularizers.get(activity_regularizer)
        self._trainable = trainable
        self._build_shape: Any = None

    def __getattr__(self, name: str) -> Any:
        if name in _SET_BY_INIT:
            raise RuntimeError(
                f"In layer {type(self).__name__!r}, you forgot to call `super().__init__()` as the first statement in "
                "the `__init__()` method. Go add it!"
            )
        # Once more, for its own words: a property may have raised the error.
        return object.__getattribute__(self, name)

    @property
    def sample_shape(self) -> Shape | None:
        """The shape of one sample, for a model that starts with this layer."""
        return None if self._sample_shape is None else shape_of_sample(self._sample_shape)

    def build(self, input_shape: Any) -> None:  # noqa: ARG002 - those that have variables look at it
        """Make the variables. Called once, before the first ``call``, with the shape of its first argument."""
        self.built = True

    def call(self, *args: Any, **kwargs: Any) -> Any:
        """Compute the output from inputs."""
        raise NotImplementedError(f"Layer {type(self).__name__} does not have a `call()` method implemented.")

    def compute_output_shape(self, input_shape: Any) -> Any:
        """The shape of what a call with an input of this shape gives.

        A class that does not say is tried out with zeros.
        """
        inputs = tensors_of(input_shape, self.dtype)
        self._build_for(inputs)
        return shapes_of(outputs_by_trial(self, (inputs,), {}))

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Compute the output; with symbolic tensors, record the call as a part of a functional model.

        Raises:
            ValueError: The inputs are no tensors, or of a shape that the layer does not take.
        """
        inputs: Any
        if args and type(args[0]) is EagerTensor and args[0]._dtype.name == self.dtype:
            inputs = args[0]
        elif symbolic_in((args, kwargs)):
            return self._record(args, kwargs)
        else:
            args = tuple(nest.map_structure(self._input, arg) for arg in args)
            inputs = args[0] if args else next(iter(kwargs.values()))
        if not self.built:
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
            kwargs["training"] = training
        elif "training" in kwargs:
            del kwargs["training"]
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
            if self.activity_regularizer is not None:
                self._regularize(outputs)
            return outputs
        finally:
            calls.training, calls.inside = before, not is_first

    def _input(self, value: Any) -> Any:
        """An input as a tensor; floats in the type the layer computes in."""
        if value is None:
            return None
        if not isinstance(value, Tensor):
            if not isinstance(value, np.ndarray | np.generic | Variable) and not hasattr(value, "_as_tensor"):
                raise ValueError(
                    "Only input tensors may be passed as positional arguments. The following argument value should be "
                    f"passed as a keyword argument: {value} (of type {type(value)})"
                )
            value = to_tensor(value)
        if not isinstance(value, EagerTensor):
            raise NotImplementedError(
                f"Keras is for eager programs: layer {self.name!r} does not record in a graph"
            )
        wanted = self.dtype
        is_other = self.casts_inputs and value._dtype.is_floating and value._dtype.name != wanted
        return cast(value, wanted) if is_other else value

    def _build_for(self, inputs: Any) -> None:
        """Make the variables for inputs, symbolic or not; once for all replicas."""
        if self.built:
            return
        shape = shapes_of(inputs)
        if not self.makes_variables or type(self).build is Layer.build:
            # Replicas share nothing of it, so none has to wait for others.
            self._build_once(shape)
        else:
            together(self, lambda layer: layer._build_once(shape))

    def _build_once(self, shape: Any) -> None:
        if self.input_spec is not None:
            self.input_spec.check(self.name, shape)
        self._build_shape = shape
        self.build(shape)
        # A `build` of the user's own need not say so.
        self.built = True
        if restoring.pending:
            restoring.restore_pending()

    def _checkpoint_parts(self) -> Iterator[tuple[str, Any]]:
        yield from attributes(self, _NO_PARTS)
        # Those that are no attributes.
        yield "_weights", self._weights

    def _record(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        inputs = args[0] if args else next(iter(kwargs.values()))
        self._build_for(inputs)
        shape = shapes_of(inputs)
        if self.input_spec is not None:
            self.input_spec.check(self.name, shape)
        if type(self).compute_output_shape is Layer.compute_output_shape:
            outputs = outputs_by_trial(self, args, kwargs)
        else:
            first = symbolic_in((args, kwargs))[0]
            keeps = self.keeps_dtype and not as_dtype(first.dtype).is_floating
            outputs = tensors_of(self.compute_output_shape(shape), first.dtype if keeps else self.dtype)
        Node(self, args, kwargs, outputs)
        return outputs

    def add_weight(
        self,
        shape: Any = None,
        initializer: Any = None,
        dtype: Any = None,
        trainable: bool = True,
        name: str | None = None,
        regularizer: Any = None,
        constraint: Any = None,
        aggregation: VariableAggregation = VariableAggregation.NONE,
        synchronization: VariableSynchronization = VariableSynchronization.AUTO,
    ) -> Variable:
        """Make a variable of the layer.

        Args:
            shape: Its shape, a single number if not given.
            initializer: What makes its first value, or the name of that; by default ``glorot_uniform`` for floats,
                else zeros.
            dtype: Its type, the layer's if not given.
            trainable: Whether gradients and optimizers see it.
            name: The name, behind that of the layer.
            regularizer: A function of the variable that gives a loss, or its name.
            constraint: What optimizers project a new value with.
            aggregation: How values from several replicas become one.
            synchronization: When copies on several devices are made equal.

        Raises:
            ValueError: A length of the shape is not known.
        """
        regularize = regularizers.get(regularizer)
        lengths = () if shape is None else shape_of_sample(shape)
        whole = f"{self.name}/{'variable' if name is None else name}"
        if None in lengths:
            raise ValueError(
                "Shapes used to initialize variables must be fully-defined (no `None` dimensions). "
                f"Received: shape={lengths} for variable path='{whole}'"
            )
        wanted = as_dtype(self.dtype if dtype is None else dtype)
        make = initializers.get(
            ("glorot_uniform" if wanted.is_floating else "zeros") if initializer is None else initializer
        )
        variable = Variable(
            lambda: make(lengths, dtype=wanted),
            trainable=trainable,
            name=whole,
            constraint=constraint,
            aggregation=aggregation,
            synchronization=synchronization,
        )
        self._weights.append(variable)
        if regularize is not None:
            self._regularizers[id(variable)] = regularize
        return variable

    @property
    def compute_dtype(self) -> str:
        """The type that floats are computed in; that of the variables, too."""
        return self.dtype

    variable_dtype = compute_dtype

    @property
    def trainable(self) -> bool:
        """Whether gradients and optimizers see the variables. Setting it sets it for all layers inside."""
        return self._trainable

    @trainable.setter
    def trainable(self, value: bool) -> None:
        self._trainable = bool(value)
        for layer in self._sublayers():
            layer.trainable = value

    def _sublayers(self) -> list["Layer"]:
        return without_repeats(found_in(self, Layer))

    @property
    def weights(self) -> list[Variable]:
        """All variables: the layer's own, those that are trained first, then those of the layers inside."""
        inner = (variable for layer in self._sublayers() for variable in layer.weights)
        return without_repeats(iter([*own_variables(self), *inner]))

    @property
    def trainable_weights(self) -> list[Variable]:
        """The variables that are trained."""
        if not self._trainable:
            return []
        own = (variable for variable in own_variables(self) if variable.trainable)
        inner = (variable for layer in self._sublayers() for variable in layer.trainable_weights)
        return without_repeats(iter([*own, *inner]))

    @property
    def non_trainable_weights(self) -> list[Variable]:
        """The variables that are not trained."""
        trained = {id(variable) for variable in self.trainable_weights}
        return [variable for variable in self.weights if id(variable) not in trained]

    variables = weights
    trainable_variables = trainable_weights
    non_trainable_variables = non_trainable_weights

    def count_params(self) -> int:
        """Return the number of elements in all variables.

        Raises:
            ValueError: There are no variables yet.
        """
        if not self.built:
            raise ValueError(
                f"You tried to call `count_params` on layer {self.name!r}, but the layer isn't built. You can build it "
                "manually via: `layer.build(input_shape)`."
            )
        return elements_of(self.weights)

    def get_weights(self) -> list[Any]:
        """Return the values of all variables as arrays."""
        return [variable.numpy() for variable in self.weights]

    def set_weights(self, weights: Sequence[Any]) -> None:
        """Set all variables, in the order of ``weights``; none changes if one does not fit.

        Raises:
            ValueError: There are not as many, or one has another shape.
        """
        mine = self.weights
        if len(weights) != len(mine):
            raise ValueError(
                f"You called `set_weights(weights)` on layer {self.name!r} with a weight list of length "
                f"{len(weights)}, but the layer was expecting {len(mine)} weights."
            )
        values = [np.asarray(value) for value in weights]
        for variable, value in zip(mine, values, strict=True):
            if variable.shape != value.shape:
                raise ValueError(
                    f"Layer {self.name} weight shape {tuple(variable.shape)} is not compatible with provided weight "
                    f"shape {value.shape}."
                )
        for variable, value in zip(mine, values, strict=True):
            variable.assign(value.astype(variable.dtype.as_numpy_dtype))

    @property
    def input(self) -> Any:
        """What the layer was called with in a functional model; only if that was once."""
        args, kwargs = self._only_node().arguments
        return args[0] if args else next(iter(kwargs.values()))

    @property
    def output(self) -> Any:
        """What the layer gives in a functional model; only if it was called once."""
        return self._only_node().outputs

    def add_loss(self, loss: Any) -> None:
        """Add a tensor that ``call`` computes, or several, to the loss of the model, until the model's next call.

        Raises:
            ValueError: It is no tensor.
        """
        added = nest.flatten(loss)
        for each in added:
            if not isinstance(each, EagerTensor):
                raise ValueError(
                    "`add_loss()` can only be called from inside `build()` or `call()`, on a tensor input. Received "
                    f"invalid value: {each}"
                )
        calls.losses.setdefault(self, []).extend(added)

    def _regularize(self, outputs: Any) -> None:
        """Add what the function of outputs gives, for one sample."""
        for output in nest.flatten(outputs):
            if isinstance(output, EagerTensor):
                loss = to_tensor(self.activity_regularizer(output))
                self.add_loss(
                    divide_no_nan(loss, cast(len(output._array), loss._dtype)) if output.ndim else loss
                )

    def _forget_losses(self) -> None:
        """Forget what was added in the last call."""
        if calls.losses:
            for layer in self._with_all_inside():
                calls.losses.pop(layer, None)

    def _with_all_inside(self) -> Iterator["Layer"]:
        yield self
        for layer in self._sublayers():
            yield from layer._with_all_inside()

    @property
    def losses(self) -> list[Any]:
        """What is added to the loss: by ``add_loss`` in the last call, and by regularizers for trained variables."""
        found: list[Any] = []
        if calls.losses:
            layers = without_repeats(self._with_all_inside())
            found = [loss for layer in layers for loss in calls.losses.get(layer, ())]
        functions = dict(self._all_regularizers())
        if functions:
            trained = self.trainable_weights
            found += [to_tensor(functions[id(each)](each)) for each in trained if id(each) in functions]
        return found

    def _all_regularizers(self) -> Iterator[tuple[int, Callable[[Any], Any]]]:
        yield from self._regularizers.items()
        for layer in self._sublayers():
            yield from layer._all_regularizers()

    def _only_node(self) -> Node:
        if len(self.nodes) == 1:
            return self.nodes[0]
        count = "has multiple inbound nodes" if self.nodes else "has never been called"
        raise AttributeError(f"The layer {self.name} {count} and thus has no defined input and output.")

    def __repr__(self) -> str:
        return f"<{type(self).__name__} name={self.name}, built={self.built}>"


def elements_of(variables: Sequence[Variable]) -> int:
    """Number of elements in variables."""
    return sum(variable.shape.num_elements() or 0 for variable in variables)


def tensors_of(shape: Any, dtype: str) -> Any:
    """Symbolic tensors of shapes: of one, or of several arranged as those are."""
    if isinstance(shape, dict):
        return {key: tensors_of(each, dtype) for key, each in shape.items()}
    if isinstance(shape, list | tuple) and any(isinstance(each, list | tuple | dict) for each in shape):
        return type(shape)(tensors_of(each, dtype) for each in shape)
    return KerasTensor(shape, dtype)


__all__ = ["Layer", "elements_of", "tensors_of"]
