"""TensorFlow 1's functions of variables."""

import math
from collections.abc import Iterable
from typing import Any

from allotment.devices.placement import thread
from allotment.graph.collections import GraphKeys
from allotment.graph.default import get_default_graph
from allotment.ops.control import group
from allotment.ops.random import uniform
from allotment.variable import Variable


def global_variables(scope: str | None = None) -> list[Any]:
    """Return the variables of the default graph. As ``tf.compat.v1.global_variables``."""
    return get_default_graph().get_collection(GraphKeys.GLOBAL_VARIABLES, scope)


def all_variables() -> list[Any]:
    """Return ``global_variables()``."""
    return global_variables()


def local_variables(scope: str | None = None) -> list[Any]:
    """Return the variables of the default graph that are not kept. As ``tf.compat.v1.local_variables``."""
    return get_default_graph().get_collection(GraphKeys.LOCAL_VARIABLES, scope)


def trainable_variables(scope: str | None = None) -> list[Any]:
    """Return the variables that optimizers change. As ``tf.compat.v1.trainable_variables``."""
    return get_default_graph().get_collection(GraphKeys.TRAINABLE_VARIABLES, scope)


def variables_initializer(var_list: Iterable[Any], name: str = "init") -> Any:
    """Return an operation that gives variables their first values. As ``tf.compat.v1.variables_initializer``."""
    return group(*[variable.initializer for variable in var_list], name=name)


def global_variables_initializer() -> Any:
    """Return an operation that gives all variables their first values; eagerly they have them.

    As ``tf.compat.v1.global_variables_initializer``.
    """
    return variables_initializer(global_variables()) if thread.state.graph is not None else None


def initialize_all_variables() -> Any:
    """Return ``global_variables_initializer()``."""
    return global_variables_initializer()


def local_variables_initializer() -> Any:
    """Return an operation that gives local variables their first values."""
    return variables_initializer(local_variables(), name="init") if thread.state.graph is not None else None


def is_variable_initialized(variable: Any) -> Any:
    """Return whether a variable has a value: a tensor. As ``tf.compat.v1.is_variable_initialized``."""
    return variable.is_initialized()


def assign(
    ref: Any,
    value: Any,
    validate_shape: bool | None = None,
    use_locking: bool | None = None,
    name: str | None = None,
) -> Any:
    """Replace the value of a variable. As ``tf.compat.v1.assign``."""
    del validate_shape, use_locking
    return ref.assign(value, name=name)


def assign_add(ref: Any, value: Any, use_locking: bool | None = None, name: str | None = None) -> Any:
    """Add to the value of a variable. As ``tf.compat.v1.assign_add``."""
    del use_locking
    return ref.assign_add(value, name=name)


def assign_sub(ref: Any, value: Any, use_locking: bool | None = None, name: str | None = None) -> Any:
    """Subtract from the value of a variable. As ``tf.compat.v1.assign_sub``."""
    del use_locking
    return ref.assign_sub(value, name=name)


def get_variable(
    name: str,
    shape: Any = None,
    dtype: Any = None,
    initializer: Any = None,
    trainable: bool | None = None,
    collections: Any = None,
    use_resource: bool | None = None,
    constraint: Any = None,
    **options: Any,
) -> Any:
    """Make a variable. As ``tf.compat.v1.get_variable`` outside of variable scopes.

    Args:
        name: The name, which no other variable of the graph may have.
        shape: The shape; not needed beside a value.
        dtype: The element type, float32 unless a value says another.
        initializer: A value, or something that makes one of a shape; without it small random numbers.
        trainable: Whether optimizers change it.
        collections: The collections it is in.
        use_resource: A resource or a reference variable.
        constraint: Kept for optimizers.
        options: TensorFlow's other arguments; not looked at.

    Raises:
        ValueError: The name is taken, or neither a shape nor a value is given.
    """
    del options
    graph = get_default_graph()
    if thread.state.graph is not None and any(
        each.name == f"{name}:0" for each in graph.get_collection(_ALL)
    ):
        raise ValueError(f"Variable {name} already exists, disallowed. Choose another name.")
    chosen = _glorot_uniform if initializer is None else initializer
    made = chosen() if isinstance(chosen, type) else chosen
    if callable(made):
        if shape is None:
            raise ValueError(
                f"Shape of a new variable ({name}) must be fully defined, but instead was <unknown>."
            )
        wanted = "float32" if dtype is None else dtype
        given: Any = lambda: made(shape, dtype=wanted)  # noqa: E731
    else:
        given = made
    if thread.state.graph is None:
        return Variable(given, trainable=trainable, name=name, dtype=dtype, constraint=constraint)
    make: Any = Variable
    variable = make(
        given,
        trainable=trainable,
        collections=collections,
        name=name,
        dtype=dtype,
        constraint=constraint,
        use_resource=use_resource,
    )
    graph.add_to_collection(_ALL, variable)
    return variable


def _glorot_uniform(shape: Any, dtype: Any = None) -> Any:
    """Small random numbers, the smaller the more inputs and outputs there are: what TensorFlow starts with."""
    lengths = [int(length) for length in shape]
    field = math.prod(lengths[:-2])
    sides = sum(lengths[-2:]) if len(lengths) > 1 else 2 * sum(lengths)
    limit = math.sqrt(6 / max(field * sides, 1))
    return uniform(lengths, -limit, limit, dtype)


#: The collection of what ``get_variable`` made.
_ALL = ("allotment", "variables by name")

__all__ = [
    "all_variables",
    "assign",
    "assign_add",
    "assign_sub",
    "get_variable",
    "global_variables",
    "global_variables_initializer",
    "initialize_all_variables",
    "is_variable_initialized",
    "local_variables",
    "local_variables_initializer",
    "trainable_variables",
    "variables_initializer",
]
