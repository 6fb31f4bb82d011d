"""The state of a thread's calls of layers: whether they train, and the losses that they have added."""

import inspect
import threading
from collections.abc import Callable
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


__all__ = ["calls", "takes_training"]
