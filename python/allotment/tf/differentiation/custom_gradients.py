"""Functions that bring their own gradient: ``tf.custom_gradient``."""

import functools
import inspect
from collections.abc import Callable, Sequence
from typing import Any

from allotment.devices.placement import thread
from allotment.tf import nest
from allotment.tf.differentiation.gradient_tape import GradientTape, is_source
from allotment.tf.ops.array.array import identity
from allotment.tf.ops.autodiff.differentiation import Call, is_differentiable
from allotment.tf.ops.autodiff.tape import paused, variables_read
from allotment.tf.ops.convert import to_tensor
from allotment.tf.ops.execute import run
from allotment.tf.ops.inference.common import each_unchanged
from allotment.tf.ops.table import Gradient, Operation


def custom_gradient(f: Callable[..., Any] | None = None) -> Callable[..., Any]:
    """Let a function bring its own gradient; a decorator. As ``tf.custom_gradient``.

    The function returns its result and a second function, which takes the gradient of each tensor of the result and
    returns that of each positional argument; keywords are constants. If the first one reads trainable variables that
    are not arguments, the second one is called with ``variables=`` and returns a pair: the gradients of the arguments
    and those of the variables.

    Raises:
        TypeError: On a call: variables were read, and the second function takes none.
        ValueError: When going back: there are more or fewer gradients than arguments or variables. In a graph, on a
            call with keywords.
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
        with paused(), variables_read() as read:
            result, back = function(*args, **kwargs)
            results = [to_tensor(each) for each in nest.flatten(result)]
        variables = [each for each in read if id(each) not in given]
        if variables and not _takes_variables(back):
            raise TypeError(
                "@tf.custom_gradient grad_fn must accept keyword argument 'variables', since function uses variables: "
                f"{variables}"
            )
        row = _row(back, len(results), len(arguments), variables)
        inputs = [*arguments, *(to_tensor(each) for each in variables)]
        return nest.pack_sequence_as(result, _recorded(row, results, inputs))

    return call


def _is_differentiable(value: Any) -> bool:
    return is_source(value) and is_differentiable(value.dtype)


def _takes_variables(back: Callable[..., Any]) -> bool:
    parameters = inspect.signature(back).parameters
    return "variables" in parameters or any(each.kind is each.VAR_KEYWORD for each in parameters.values())


def _row(back: Callable[..., Any], results: int, arguments: int, variables: Sequence[Any]) -> Operation:
    """The operation that the function is for gradients: its results, made of its arguments and variables."""

    def gradients(call: Call, *given: Any) -> list[Any]:  # noqa: ARG001 - the gradient knows the call itself
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
        # The results themselves are the first inputs.
        return [*[None] * results, *made, *of_variables]

    def chosen(*arrays_and_count: Any) -> tuple[Any, ...]:
        return arrays_and_count[:results]

    return Operation(
        "IdentityN",
        chosen,
        shape=each_unchanged,
        makes_tuple=True,
        own_gradient=Gradient(gradients, inputs=False),
    )


def _recorded(row: Operation, results: list[Any], inputs: list[Any]) -> list[Any]:
    if thread.state.graph is not None:
        return list(run(row, [*results, *inputs], len(results)))
    with paused():
        # Tensors of their own, so that an argument that is returned as it is can be told from the result.
        made = [identity(each) for each in results]
    recorder = thread.state.recorder
    if recorder is not None:
        where = made[0]._device if made else None
        recorder.record(row, [*results, *inputs], (), {}, tuple(made), where)
    return made


def grad_pass_through(f: Callable[..., Any]) -> Callable[..., Any]:
    """Let the gradient of each result be that of the argument in its place. As ``tf.grad_pass_through``."""

    @functools.wraps(f)
    def both(*args: Any, **kwargs: Any) -> Any:
        def back(*upstream: Any, variables: Sequence[Any] = ()) -> Any:
            return (upstream, [None] * len(variables)) if variables else upstream

        return f(*args, **kwargs), back

    return custom_gradient(both)


def recompute_grad(f: Callable[..., Any]) -> Callable[..., Any]:
    """Call a function again on the way back, instead of keeping what its gradient looks at.

    As ``tf.recompute_grad``: less memory for more work. The function must do the same both times.
    """

    @functools.wraps(f)
    def both(*args: Any, **kwargs: Any) -> Any:
        def back(*upstream: Any, variables: Sequence[Any] = ()) -> Any:
            given = nest.flatten(args)
            # Copies: an argument that is given twice has a gradient in each place.
            copies = [identity(each) if _is_differentiable(each) else each for each in given]
            watched = [each for each in copies if _is_differentiable(each)]
            with GradientTape() as tape:
                tape.watch(watched)
                again = f(*nest.pack_sequence_as(args, copies), **kwargs)
            found = tape.gradient(again, [*watched, *variables], output_gradients=list(upstream))
            by_argument = iter(found[: len(watched)])
            gradients = [next(by_argument) if _is_differentiable(each) else None for each in given]
            return (gradients, found[len(watched) :]) if variables else gradients

        return f(*args, **kwargs), back

    return custom_gradient(both)


__all__ = ["custom_gradient", "grad_pass_through", "recompute_grad"]
