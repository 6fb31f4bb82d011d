"""The state of a thread's calls of layers: whether they train, and the losses that they have added."""

import inspect
import threading
from collections.abc import Callable, Iterable
from functools import cache
from typing import Any
from weakref import WeakKeyDictionary


class _Calls(threading.local):
    """The state of the calls of layers that a thread is in."""

    #: ``None`` outside of every call.
    training: bool | None = None
    #: Whether the thread is inside the call of a layer.
    inside = False
    #: Whether the call is recorded to learn the shapes of its outputs, and computes nothing.
    tracing = False

    def __init__(self) -> None:
        #: The losses that each layer has added since the last outermost call; replicas share layers, not losses.
        self.losses: WeakKeyDictionary[Any, list[Any]] = WeakKeyDictionary()


#: The state of this thread.
calls = _Calls()


@cache
def takes_training(call: Callable[..., Any]) -> bool:
    """Whether a layer's ``call`` has a ``training`` argument."""
    parameters = inspect.signature(call).parameters.values()
    return any(each.name == "training" or each.kind is each.VAR_KEYWORD for each in parameters)


@cache
def requires_training(call: Callable[..., Any]) -> bool:
    """Whether a layer's ``call`` has a ``training`` argument without a default: each call has to give it."""
    training = inspect.signature(call).parameters.get("training")
    return training is not None and training.default is training.empty


@cache
def required_arguments(call: Callable[..., Any]) -> tuple[str, ...]:
    """Return the names of the positional arguments of a layer's ``call`` that have no default."""
    _, *parameters = inspect.signature(call).parameters.values()
    positional = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    return tuple(each.name for each in parameters if each.default is each.empty and each.kind in positional)


@cache
def _keywords(call: Callable[..., Any]) -> frozenset[str] | None:
    """Return the names of the arguments of a layer's ``call``, ``None`` if it takes any."""
    parameters = inspect.signature(call).parameters.values()
    if any(each.kind is each.VAR_KEYWORD for each in parameters):
        return None
    return frozenset(each.name for each in parameters)


def refuse_keywords(layer: Any, given: Iterable[str]) -> None:
    """Refuse keywords that the ``call`` of a layer does not have, in the name of its class.

    Raises:
        TypeError: There is one.
    """
    known = _keywords(type(layer).call)
    for name in given:
        if known is not None and name not in known:
            raise TypeError(f"{type(layer).__name__}.call() got an unexpected keyword argument {name!r}")


__all__ = ["calls", "refuse_keywords", "required_arguments", "requires_training", "takes_training"]
