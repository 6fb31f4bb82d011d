"""Whether a thread is training: layers inside of a model are told by it when nobody tells them."""

import inspect
import threading
from collections.abc import Callable
from functools import cache
from typing import Any


class _Calls(threading.local):
    """What the calls that a thread is in were told."""

    #: ``None`` outside of every call.
    training: bool | None = None


#: Of this thread.
calls = _Calls()


@cache
def takes_training(call: Callable[..., Any]) -> bool:
    """Whether a layer's ``call`` has a ``training`` argument."""
    parameters = inspect.signature(call).parameters.values()
    return any(each.name == "training" or each.kind is each.VAR_KEYWORD for each in parameters)


__all__ = ["calls", "takes_training"]
