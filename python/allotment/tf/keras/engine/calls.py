"""What a thread knows of the calls of layers that it is in: whether it is training, and the losses they have added."""

import inspect
import threading
from collections.abc import Callable
from functools import cache
from typing import Any
from weakref import WeakKeyDictionary


class _Calls(threading.local):
    """What the calls that a thread is in were told."""

    #: ``None`` outside of every call.
    training: bool | None = None
    #: Whether it is inside of the call of a layer.
    inside = False

    def __init__(self) -> None:
        #: The losses that each layer has added since the last call from outside: replicas share layers, not these.
        self.losses: WeakKeyDictionary[Any, list[Any]] = WeakKeyDictionary()


#: Of this thread.
calls = _Calls()


@cache
def takes_training(call: Callable[..., Any]) -> bool:
    """Whether a layer's ``call`` has a ``training`` argument."""
    parameters = inspect.signature(call).parameters.values()
    return any(each.name == "training" or each.kind is each.VAR_KEYWORD for each in parameters)


__all__ = ["calls", "takes_training"]
