"""Device scopes of a graph: they set the requested device of each new node."""

from collections.abc import Callable
from typing import Any

from allotment._core import show_value
from allotment.devices.device_spec import DeviceSpec
from allotment.devices.names import DeviceName, parse

#: A scope: a name, a function of the node, or ``None``, which forgets all scopes around it.
Scope = DeviceName | Callable[[Any], Any] | None


def read_scope(given: Any) -> Scope:
    """Read the argument of a graph's ``device(...)``.

    Raises:
        ValueError: Not a device name.
        TypeError: Neither a name, nor a spec, nor a function; or bytes.
    """
    if given is None or (callable(given) and not isinstance(given, str)):
        return given
    if isinstance(given, DeviceSpec):
        return parse(given.to_string())
    if not isinstance(given, str):
        raise TypeError(
            f"a device of a graph is a name such as '/GPU:0', a DeviceSpec, a function or None, not {show_value(given)}"
        )
    return parse(given)


def apply_scopes(scopes: list[Scope], operation: Any) -> None:
    """Set the requested device of a new node, from the innermost scope outwards.

    A name fills in the parts that are still open; the result of a function replaces everything.

    Raises:
        TypeError: A function returned something that is no name.
    """
    for scope in reversed(scopes):
        if scope is None:
            return
        if isinstance(scope, DeviceName):
            inner = parse(operation.device) if operation.device else DeviceName()
            operation._device = scope.merged_with(inner).to_string()
        else:
            operation._device = _text_of(scope(operation))


def _text_of(returned: Any) -> str:
    if isinstance(returned, DeviceSpec):
        return returned.to_string()
    if isinstance(returned, bytes):
        return returned.decode()
    if not isinstance(returned, str):
        raise TypeError(f"Expected binary or unicode string, got {show_value(returned)}")
    return returned


__all__ = ["Scope", "apply_scopes", "read_scope"]
