"""Helper functions of ``Saver``: names of variables, step numbers, and assignment in a session."""

from collections.abc import Mapping, Sequence
from typing import Any

from allotment.errors import InvalidArgumentError
from allotment.tf.variables.variable import Variable


def mismatch_error(text: str) -> InvalidArgumentError:
    """Create the exception for a value that does not match its variable."""
    return InvalidArgumentError(
        None,
        None,
        "Restoring from checkpoint failed. This is most likely due to a mismatch between the current graph and the "
        f"graph from the checkpoint: {text}",
    )


def names_to_variables(given: Any) -> dict[str, Any]:
    """Return the variables by their names in the file.

    Args:
        given: Variables, or a dictionary from names to variables.

    Raises:
        TypeError: A value is not a variable.
        ValueError: Two variables have the same name.
    """
    if isinstance(given, Mapping):
        pairs = [(str(name), variable) for name, variable in given.items()]
    else:
        # TensorFlow orders the variables by name.
        pairs = sorted(((_variable_name(each), each) for each in given), key=lambda pair: pair[0])
    found: dict[str, Any] = {}
    for name, variable in pairs:
        if not isinstance(variable, Variable):
            raise TypeError(
                "names_to_saveables must be a dict mapping string names to Tensors/Variables. Not a variable: "
                f"{variable}"
            )
        if name in found:
            raise ValueError(f"At least two variables have the same name: {name}")
        found[name] = variable
    return found


def _variable_name(variable: Any) -> str:
    """Return a variable's name in the file."""
    if not isinstance(variable, Variable):
        raise TypeError(f"a Saver takes variables, not {variable!r}")
    return variable.name.removesuffix(":0")


def step_number(step: Any, sess: Any) -> int:
    """Convert a global step to a number.

    Args:
        step: A number, or a variable or tensor that holds one.
        sess: The session in which to evaluate it.

    Raises:
        TypeError: The step is not an integer.
    """
    if hasattr(step, "eval") and hasattr(step, "op"):
        return int(step.eval(session=sess))
    try:
        return int(step)
    except (TypeError, ValueError) as error:
        error.__traceback__ = None
    raise TypeError(
        f"global_step must be a whole number, or a variable or tensor that holds one, not {step!r}"
    )


def assign_in_session(feeds: Sequence[tuple[Any, Any]], sess: Any) -> None:
    """Assign values to variables of a graph by running their initializers with fed initial values.

    Variables that share an initial value need separate runs of the session.
    """
    left = [*feeds]
    while left:
        run: dict[Any, Any] = {}
        chosen = []
        rest = []
        for variable, value in left:
            if variable.initial_value in run:
                rest.append((variable, value))
            else:
                run[variable.initial_value] = value
                chosen.append(variable.initializer)
        sess.run(chosen, run)
        left = rest


__all__ = ["assign_in_session", "mismatch_error", "names_to_variables", "step_number"]
