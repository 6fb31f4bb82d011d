"""``tf.compat.v1.get_variable``: variables that are shared by name."""

import inspect
from collections.abc import Callable
from typing import Any, Final

from allotment.tf.compat.variables.initializers import glorot_uniform_initializer, zeros_initializer
from allotment.tf.compat.variables.scopes import (
    AUTO_REUSE,
    VariableScope,
    get_variable_scope,
    refuse_partitioning,
)
from allotment.tf.dispatch import thread
from allotment.tf.graph.collections import GraphKeys
from allotment.tf.graph.default import get_default_graph
from allotment.tf.ops.convert import to_tensor
from allotment.tf.ops.name_scopes import name_scope
from allotment.tf.tensors.dtype import DType, as_dtype
from allotment.tf.tensors.tensor_shape import TensorShape, as_shape
from allotment.tf.variables.variable import Variable


def get_variable(
    name: str,
    shape: Any = None,
    dtype: Any = None,
    initializer: Any = None,
    regularizer: Any = None,
    trainable: bool | None = None,
    collections: Any = None,
    caching_device: Any = None,
    partitioner: Any = None,
    validate_shape: bool = True,
    use_resource: bool | None = None,
    custom_getter: Any = None,
    constraint: Any = None,
    synchronization: Any = None,
    aggregation: Any = None,
) -> Any:
    """Make a variable in the current variable scope, or return the variable of that name if the scope reuses.

    As ``tf.compat.v1.get_variable``; in eager mode each call makes a new variable.

    Args:
        name: The name, which follows that of the scope.
        shape: The shape; not together with a value.
        dtype: The element type; unless given, that of the value or of the scope.
        initializer: A value, or a function of a shape that returns one; unless given, that of the scope, otherwise
            ``glorot_uniform_initializer``, or zeros for types other than floats.
        regularizer: A function of the variable; its loss is added to ``REGULARIZATION_LOSSES``.
        trainable: Whether optimizers change it.
        collections: The collections that it is added to.
        caching_device: Has no effect.
        partitioner: Not offered.
        validate_shape: With ``False``, values may have any shape.
        use_resource: Whether to make a resource or a reference variable.
        custom_getter: Not offered.
        constraint: A projection that optimizers apply.
        synchronization: An attribute of the variable.
        aggregation: An attribute of the variable.

    Raises:
        ValueError: The variable exists and the scope does not reuse, or the reverse; it has another shape or type;
            neither a shape nor a value is given, or both.
        NotImplementedError: A partitioner or a custom getter is given.
    """
    del caching_device
    refuse_partitioning(partitioner=partitioner, custom_getter=custom_getter)
    scope = get_variable_scope()
    full = f"{scope.name}/{name}" if scope.name else name
    wanted = None if dtype is None else as_dtype(dtype)
    if wanted is not None and initializer is not None and not callable(initializer):
        given = to_tensor(initializer)._dtype
        if given is not wanted:
            raise ValueError(f"Initializer type '{given!r}' and explicit dtype '{wanted!r}' don't match.")
    initializer = scope.initializer if initializer is None else initializer
    if initializer is not None and not callable(initializer) and shape is not None:
        raise ValueError("If initializer is a constant, do not specify shape.")
    graph = thread.state.graph
    asked = TensorShape(None) if shape is None else as_shape(shape)
    if graph is not None:
        found = _variables_by_name().get(full)
        if found is not None:
            return _shared(found, full, scope, asked, wanted or scope.dtype)
        if scope.reuse is True:
            raise ValueError(
                f"Variable {full} does not exist, or was not created with tf.get_variable(). Did you mean to set "
                "reuse=tf.AUTO_REUSE in VarScope?"
            )
    first, made_type = _first_value(full, asked, wanted or scope.dtype, initializer)
    options: dict[str, Any] = {
        "trainable": trainable,
        "validate_shape": validate_shape,
        "name": full,
        "dtype": made_type,
        "constraint": scope.constraint if constraint is None else constraint,
    }
    if synchronization is not None:
        options["synchronization"] = synchronization
    if aggregation is not None:
        options["aggregation"] = aggregation
    make: Any = Variable
    if graph is None:
        with name_scope(""):
            return make(first, **options)
    options["collections"] = collections
    options["use_resource"] = scope.use_resource if use_resource is None else use_resource
    with graph.name_scope(None):
        variable = make(first, **options)
    _variables_by_name()[full] = variable
    _regularize(variable, scope.regularizer if regularizer is None else regularizer)
    return variable


def get_local_variable(name: str, *args: Any, **kwargs: Any) -> Any:
    """Make or find a local variable, which is not trained and not in checkpoints. See ``get_variable``."""
    kwargs["trainable"] = False
    given = kwargs.get("collections") or []
    kwargs["collections"] = [*given, GraphKeys.LOCAL_VARIABLES]
    return get_variable(name, *args, **kwargs)


def _variables_by_name() -> dict[str, Any]:
    """Return the variables of the default graph by name."""
    kept = get_default_graph().get_collection_ref(_KEY)
    if not kept:
        kept.append({})
    return kept[0]  # type: ignore[no-any-return]


_KEY: Final = ("allotment", "variables by name")


def _shared(found: Any, name: str, scope: VariableScope, shape: TensorShape, dtype: DType) -> Any:
    if scope.reuse not in (True, AUTO_REUSE):
        raise ValueError(
            f"Variable {name} already exists, disallowed. Did you mean to set reuse=True or reuse=tf.AUTO_REUSE in "
            f"VarScope? Originally defined at:\n\n{found.op._stack.lines(innermost_first=True)}\n"
        )
    if not shape.is_compatible_with(found.shape):
        raise ValueError(
            f"Trying to share variable {name}, but specified shape {shape} and found shape {found.shape}."
        )
    if dtype is not found.dtype:
        raise ValueError(
            f"Trying to share variable {name}, but specified dtype {dtype.name} and found dtype {found.dtype.name}."
        )
    return found


def _first_value(name: str, shape: TensorShape, dtype: DType, initializer: Any) -> tuple[Any, DType | None]:
    """Return the initial value of a new variable or a function that makes it, and its type unless the value has it."""
    if initializer is None:
        if shape.rank is None:
            raise ValueError(
                f"Variable {name} did not get an initializer, so its `shape` argument must be specified."
            )
        initializer = glorot_uniform_initializer() if dtype.is_floating else zeros_initializer()
    if not callable(initializer):
        return initializer, None
    if inspect.isclass(initializer):
        initializer = initializer()
    if not shape.is_fully_defined():
        if not _takes_no_arguments(initializer):
            raise ValueError(
                "The initializer passed is not valid. It should be a callable with no arguments and the shape should "
                "not be provided or an instance of `tf.keras.initializers.*' and `shape` should be fully defined."
            )
        return initializer, None
    lengths = shape.as_list()
    more: dict[str, Any] = {"partition_info": None} if "partition_info" in _parameters(initializer) else {}
    return lambda: initializer(lengths, dtype=dtype, **more), dtype


def _parameters(function: Callable[..., Any]) -> dict[str, inspect.Parameter]:
    try:
        return dict(inspect.signature(function).parameters)
    except (TypeError, ValueError):
        return {}


def _takes_no_arguments(function: Callable[..., Any]) -> bool:
    return all(
        each.default is not each.empty or each.kind in (each.VAR_POSITIONAL, each.VAR_KEYWORD)
        for each in _parameters(function).values()
    )


def _regularize(variable: Any, regularizer: Any) -> None:
    if regularizer is None:
        return
    graph = get_default_graph()
    with graph.colocate_with(variable.op), graph.name_scope(f"{variable.op.name}/Regularizer/"):
        loss = regularizer(variable)
    if loss is not None:
        graph.add_to_collection(GraphKeys.REGULARIZATION_LOSSES, loss)


__all__ = ["get_local_variable", "get_variable"]
