"""``tf.compat.v1.cond`` and ``while_loop``, which return one result alone and not in a list."""

from collections.abc import Callable
from typing import Any

from allotment.tf import nest
from allotment.tf.dispatch import thread
from allotment.tf.ops.control import control


def cond(
    pred: Any,
    true_fn: Callable[[], Any] | None = None,
    false_fn: Callable[[], Any] | None = None,
    strict: bool = False,
    name: str | None = None,
    fn1: Callable[[], Any] | None = None,
    fn2: Callable[[], Any] | None = None,
) -> Any:
    """Call one of two functions. As ``tf.compat.v1.cond``.

    Args:
        pred: The condition.
        true_fn: Called if it is true.
        false_fn: Called if it is false.
        strict: Return a list with one result as it is, instead of the result.
        name: The name in error messages.
        fn1: Old name of ``true_fn``.
        fn2: Old name of ``false_fn``.

    Raises:
        TypeError: A function is missing, or given by both names.
    """
    for old, new, names in ((fn1, true_fn, "'true_fn' and 'fn1'"), (fn2, false_fn, "'false_fn' and 'fn2'")):
        if old is not None and new is not None:
            raise TypeError(f"cond(): {names} may not be set simultaneously.")
    made = control.cond(pred, true_fn or fn1, false_fn or fn2, name)
    return made[0] if isinstance(made, list | tuple) and len(made) == 1 and not strict else made


def while_loop(
    cond: Callable[..., Any],
    body: Callable[..., Any],
    loop_vars: Any,
    shape_invariants: Any = None,
    parallel_iterations: int = 10,
    back_prop: bool = True,  # noqa: ARG001 - TensorFlow's signature
    swap_memory: bool = False,  # noqa: ARG001 - TensorFlow's signature
    name: str | None = None,  # noqa: ARG001 - TensorFlow's signature
    maximum_iterations: Any = None,
    return_same_structure: bool = False,
) -> Any:
    """Call ``body`` with the values it returned before for as long as ``cond`` is true. As ``tf.compat.v1.while_loop``.

    Args:
        cond: Takes the values, returns whether to go on.
        body: Takes the values, returns the next ones.
        loop_vars: The values to begin with, in a list or tuple.
        shape_invariants: The shapes of the values while Keras traces a layer; elsewhere without effect.
        parallel_iterations: Has no effect.
        back_prop: Has no effect.
        swap_memory: Has no effect.
        name: Has no effect.
        maximum_iterations: The largest number of calls of ``body``.
        return_same_structure: Return one value in the structure of ``loop_vars``, too.

    Returns:
        The last values as tensors; a tensor where there is only one and ``return_same_structure`` is false.

    Raises:
        OperatorNotAllowedInGraphError: In a graph: the condition is known only when that runs.
        TypeError: The first two are no functions, or ``parallel_iterations`` is not positive.
        ValueError: There are no values to begin with, or ``body`` returns another structure.
    """
    same = return_same_structure
    values, alone = control.repeat(
        cond, body, loop_vars, parallel_iterations, maximum_iterations, shape_invariants, packs=not same
    )
    if thread.state.graph is not None:
        flat = nest.flatten(values)
        return flat[0] if len(flat) == 1 and not same else values
    return values[0] if alone else values


__all__ = ["cond", "while_loop"]
