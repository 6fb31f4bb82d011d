"""``tf.custom_gradient`` and related decorators: functions that define their own gradient."""

import functools
import inspect
from collections.abc import Callable, Sequence
from typing import Any

from allotment.tf import nest
from allotment.tf.differentiation.gradient_tape import GradientTape
from allotment.tf.differentiation.targets import is_tensor_or_variable
from allotment.tf.dispatch import thread
from allotment.tf.ops.array.array import identity
from allotment.tf.ops.autodiff.differentiation import Call, is_differentiable
from allotment.tf.ops.autodiff.tape import paused, variables_read
from allotment.tf.ops.convert import to_tensor
from allotment.tf.ops.execute import run
from allotment.tf.ops.inference.common import each_unchanged
from allotment.tf.ops.table import Gradient, Operation


def custom_gradient(f: Callable[..., Any] | None = None) -> Callable[..., Any]:
    """Decorate a function that returns its result and its gradient function. As ``tf.custom_gradient``.

    The gradient function receives the gradient of each tensor of the result and returns that of each positional
    argument; keyword arguments are constants. If the decorated function reads trainable variables that are not its
    arguments, the gradient function receives them as ``variables=`` and returns a pair: the gradients of the arguments
    and those of the variables.

    Args:
        f: The function; without it the call returns the decorator.

    Raises:
        TypeError: On a call: the function reads variables, but its gradient function has no parameter ``variables``.
        ValueError: In the gradient: the number of gradients differs from that of the arguments or variables. On a call
            in a graph: there are keyword arguments.

    Example::

        @tf.custom_gradient
        def clipped(x):
            return tf.identity(x), lambda upstream: tf.clip_by_value(upstream, -1.0, 1.0)
    """
    if f is None:
        return custom_gradient
    function = f

    @functools.wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        graph = thread.state.graph
        if graph is not None and kwargs:
            raise ValueError(
                "The custom_gradient decorator currently supports keywords arguments only when eager execution is "
                "enabled."
            )
        arguments = [to_tensor(each) for each in nest.flatten(args)]
        given = {id(each) for each in nest.flatten(args) + nest.flatten(kwargs)}
        # Tapes record the function, too, as in TensorFlow: its tensors can be used elsewhere, as in its gradient.
        with variables_read() as read:
            result, back = function(*args, **kwargs)
            results = [to_tensor(each) for each in nest.flatten(result)]
        variables = [each for each in read if id(each) not in given]
        if variables and not _takes_variables(back):
            raise TypeError(
                "@tf.custom_gradient grad_fn must accept keyword argument 'variables', since function uses variables: "
                f"{variables}"
            )
        inputs = [*arguments, *(to_tensor(each) for each in variables)]
        # The node of a graph computes its results from those of the function. A tape needs no such inputs.
        inner = results if graph is not None else []
        row = _create_operation(back, len(inner), len(arguments), variables)
        return nest.pack_sequence_as(result, _record(row, results, [*inner, *inputs]))

    return call


def _is_differentiable(value: Any) -> bool:
    return is_tensor_or_variable(value) and is_differentiable(value.dtype)


def _takes_variables(back: Callable[..., Any]) -> bool:
    parameters = inspect.signature(back).parameters
    return "variables" in parameters or any(each.kind is each.VAR_KEYWORD for each in parameters.values())


def _create_operation(
    back: Callable[..., Any], inner: int, arguments: int, variables: Sequence[Any]
) -> Operation:
    """Create the operation to record for a call; its inputs are ``inner`` results, the arguments and the variables."""

    def gradients(call: Call, *given: Any) -> list[Any]:  # noqa: ARG001 - ``back`` has the call in its closure
        if variables:
            made, of_variables = back(*given, variables=list(variables))
        else:
            made, of_variables = back(*given), []
        made, of_variables = nest.flatten(made), nest.flatten(of_variables)
        if len(of_variables) != len(variables):
            raise ValueError("Must return gradient for each variable from @custom_gradient grad_fn.")
        if len(made) != arguments:
            raise ValueError(
                f"custom_gradient function expected to return {arguments} gradients, but returned {len(made)} instead."
            )
        return [*[None] * inner, *made, *of_variables]

    def chosen(*arrays_and_count: Any) -> tuple[Any, ...]:
        return arrays_and_count[:inner]

    return Operation(
        "IdentityN",
        chosen,
        shape=each_unchanged,
        makes_tuple=True,
        own_gradient=Gradient(gradients, inputs=False, slices=True),
    )


def _record(row: Operation, results: list[Any], inputs: list[Any]) -> list[Any]:
    if thread.state.graph is not None:
        return list(run(row, inputs, len(results)))
    # New tensors, so that a result differs from an argument that the function returns unchanged. A tape that watches
    # one of the row's inputs goes back through the row alone, others through the copies.
    made = [identity(each) for each in results]
    recorder = thread.state.recorder
    if recorder is not None:
        recorder.record(row, inputs, (), {}, tuple(made), replaces=True)
    return made


def grad_pass_through(f: Callable[..., Any]) -> Callable[..., Any]:
    """Decorate a function so that its gradient is that of the identity. As ``tf.grad_pass_through``.

    The gradient of each result becomes that of the argument at the same position.
    """

    @functools.wraps(f)
    def both(*args: Any, **kwargs: Any) -> Any:
        def back(*upstream: Any, variables: Sequence[Any] = ()) -> Any:
            return (upstream, [None] * len(variables)) if variables else upstream

        return f(*args, **kwargs), back

    return custom_gradient(both)


def recompute_grad(f: Callable[..., Any]) -> Callable[..., Any]:
    """Decorate a function so that its gradient recomputes the intermediate results instead of storing them.

    As ``tf.recompute_grad``: it saves memory and takes more time. Both calls of the function must compute the same.
    """

    @functools.wraps(f)
    def both(*args: Any, **kwargs: Any) -> Any:
        def back(*upstream: Any, variables: Sequence[Any] = ()) -> Any:
            given = nest.flatten(args)
            # Copies, so that an argument passed twice has a gradient at each position.
            copies = [identity(each) if _is_differentiable(each) else each for each in given]
            watched = [each for each in copies if _is_differentiable(each)]
            with GradientTape() as tape:
                tape.watch(watched)
                again = f(*nest.pack_sequence_as(args, copies), **kwargs)
            found = tape.gradient(again, [*watched, *variables], output_gradients=list(upstream))
            by_argument = iter(found[: len(watched)])
            gradients = [next(by_argument) if _is_differentiable(each) else None for each in given]
            return (gradients, found[len(watched) :]) if variables else gradients

        with paused():
            return f(*args, **kwargs), back

    return custom_gradient(both)


__all__ = ["custom_gradient", "grad_pass_through", "recompute_grad"]
