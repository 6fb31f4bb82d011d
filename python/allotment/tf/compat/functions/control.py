"""``tf.compat.v1.cond``, which unpacks a list with one result."""

from collections.abc import Callable
from typing import Any

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


__all__ = ["cond"]
