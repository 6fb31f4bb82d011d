"""Collections, initializers and assignments of variables in TensorFlow 1."""

from collections.abc import Iterable
from typing import Any

from allotment.tf.dispatch import thread
from allotment.tf.graph.collections import GraphKeys
from allotment.tf.graph.default import get_default_graph
from allotment.tf.graph.variables.graph_variable import GraphVariable
from allotment.tf.ops.array.constants import constant
from allotment.tf.ops.array.joining import stack
from allotment.tf.ops.control.control import group
from allotment.tf.ops.indexing.masking import boolean_mask
from allotment.tf.ops.math.logical import logical_not
from allotment.tf.ops.name_scopes import name_scope
from allotment.tf.tensors.dtype import string


def global_variables(scope: str | None = None) -> list[Any]:
    """Return the variables of the default graph. As ``tf.compat.v1.global_variables``."""
    return get_default_graph().get_collection(GraphKeys.GLOBAL_VARIABLES, scope)


def all_variables() -> list[Any]:
    """Return ``global_variables()``."""
    return global_variables()


def local_variables(scope: str | None = None) -> list[Any]:
    """Return the local variables of the default graph, which are not in checkpoints. As TensorFlow 1's function."""
    return get_default_graph().get_collection(GraphKeys.LOCAL_VARIABLES, scope)


def trainable_variables(scope: str | None = None) -> list[Any]:
    """Return the variables that optimizers change. As ``tf.compat.v1.trainable_variables``."""
    return get_default_graph().get_collection(GraphKeys.TRAINABLE_VARIABLES, scope)


def variables_initializer(var_list: Iterable[Any], name: str = "init") -> Any:
    """Return an operation that initializes variables; in eager mode they are initialized.

    As ``tf.compat.v1.variables_initializer``.
    """
    return group(*[variable.initializer for variable in var_list], name=name)


def global_variables_initializer() -> Any:
    """Return an operation that initializes all variables; in eager mode they are initialized.

    As ``tf.compat.v1.global_variables_initializer``.
    """
    return variables_initializer(global_variables()) if thread.state.graph is not None else None


def initialize_all_variables() -> Any:
    """Return ``global_variables_initializer()``."""
    return global_variables_initializer()


def local_variables_initializer() -> Any:
    """Return an operation that initializes local variables."""
    return variables_initializer(local_variables()) if thread.state.graph is not None else None


def initialize_local_variables() -> Any:
    """Return ``local_variables_initializer()``."""
    return local_variables_initializer()


def is_variable_initialized(variable: Any) -> Any:
    """Return whether a variable is initialized, as a tensor. As ``tf.compat.v1.is_variable_initialized``."""
    return variable.is_initialized()


def report_uninitialized_variables(
    var_list: Iterable[Any] | None = None, name: str = "report_uninitialized_variables"
) -> Any:
    """Return the names of uninitialized variables as a string tensor. As in ``tf.compat.v1``.

    Args:
        var_list: The variables, global and local ones unless given.
        name: The scope of the nodes.
    """
    if var_list is None:
        # An eager variable has a value, and is in no collection.
        var_list = [] if thread.state.graph is None else [*global_variables(), *local_variables()]
    variables = list(var_list)
    with name_scope(name):
        if not variables:
            return constant([], string)
        missing = logical_not(stack([each.is_initialized() for each in variables]))
        names = constant([each.op.name for each in variables])
        return boolean_mask(names, missing)


def assign(
    ref: Any,
    value: Any,
    validate_shape: bool | None = None,
    use_locking: bool | None = None,
    name: str | None = None,
) -> Any:
    """Replace the value of a variable. As ``tf.compat.v1.assign``.

    Args:
        ref: The variable.
        value: The new value.
        validate_shape: With ``False``, a reference variable may change its shape.
        use_locking: Has no effect: assignments are always locked.
        name: The node's name.
    """
    del use_locking
    if validate_shape is False and isinstance(ref, GraphVariable):
        return ref._assigned_any_shape(value, name)
    return ref.assign(value, name=name)


def assign_add(ref: Any, value: Any, use_locking: bool | None = None, name: str | None = None) -> Any:
    """Add to the value of a variable. As ``tf.compat.v1.assign_add``."""
    del use_locking
    return ref.assign_add(value, name=name)


def assign_sub(ref: Any, value: Any, use_locking: bool | None = None, name: str | None = None) -> Any:
    """Subtract from the value of a variable. As ``tf.compat.v1.assign_sub``."""
    del use_locking
    return ref.assign_sub(value, name=name)


__all__ = [
    "all_variables",
    "assign",
    "assign_add",
    "assign_sub",
    "global_variables",
    "global_variables_initializer",
    "initialize_all_variables",
    "initialize_local_variables",
    "is_variable_initialized",
    "local_variables",
    "local_variables_initializer",
    "report_uninitialized_variables",
    "trainable_variables",
    "variables_initializer",
]
