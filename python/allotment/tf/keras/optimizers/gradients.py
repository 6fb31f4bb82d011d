"""Clipping of gradients, and updates of variables that may have a copy for each replica."""

from collections.abc import Callable, Sequence
from typing import Any

from allotment.tf.keras.engine.replicas import number_of_replicas, replica_index, run_once
from allotment.tf.keras.engine.warnings import warn
from allotment.tf.ops.indexing.indexed_slices import dense
from allotment.tf.ops.math.arithmetic import clip_by_value
from allotment.tf.ops.reduction.norms import clip_by_global_norm, clip_by_norm
from allotment.tf.ops.variables import updates
from allotment.tf.variables.variable import Variable

#: Gradients or other values, and the variables that they update.
Pairs = Sequence[tuple[Any, Variable]]


def clip_gradients(
    gradients: list[Any], clipnorm: float | None, global_clipnorm: float | None, clipvalue: float | None
) -> list[Any]:
    """Clip gradients by the norm of each, by the norm of all, or by the value of each element."""
    if clipnorm and clipnorm > 0:
        return [clip_by_norm(gradient, clipnorm) for gradient in gradients]
    if global_clipnorm and global_clipnorm > 0:
        # Keras multiplies slices with a tensor, which makes tensors of them.
        return [dense(each) for each in clip_by_global_norm(gradients, global_clipnorm)[0]]
    if clipvalue and clipvalue > 0:
        return [clip_by_value(gradient, -clipvalue, clipvalue) for gradient in gradients]
    return gradients


def warn_of_missing_gradients(pairs: Pairs) -> None:
    """Warn of variables without a gradient.

    Raises:
        ValueError: No variable has one.
    """
    missing = [variable.name for gradient, variable in pairs if gradient is None]
    if len(missing) == len(pairs):
        raise ValueError("No gradients provided for any variable.")
    # Only the first replica warns.
    if missing and not replica_index():
        warn(
            f"Gradients do not exist for variables {missing} when minimizing the loss. If using `model.compile()`, "
            "did you forget to provide a `loss` argument?",
        )


def update_copies(pairs: Pairs, update: Callable[[Any, Variable], None]) -> None:
    """Update variables; each replica updates its own copies. Variables without copies are updated once."""
    several = replica_index() is not None and number_of_replicas() > 1
    shared = [pair for pair in pairs if several and not hasattr(pair[1], "distribute_strategy")]
    _update([pair for pair in pairs if not several or hasattr(pair[1], "distribute_strategy")], update)
    if shared:
        run_once(lambda: _update(shared, update))


def _update(pairs: Pairs, update: Callable[[Any, Variable], None]) -> None:
    for pair in pairs:
        update(*pair)


def constrain(_: Any, variable: Variable) -> None:
    """Project a variable with its constraint."""
    constraint = variable.constraint
    assert constraint is not None, "only variables with a constraint are projected"
    variable.assign(constraint(variable))


def overwrite(value: Any, variable: Variable) -> None:
    """Replace the value of a variable."""
    updates.overwrite(variable, value)


__all__ = ["clip_gradients", "constrain", "overwrite", "update_copies", "warn_of_missing_gradients"]
