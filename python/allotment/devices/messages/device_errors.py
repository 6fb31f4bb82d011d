"""Errors about devices, in TensorFlow's words, that also say what to do or to pass instead."""

from typing import TypeVar

from allotment.devices.messages.call_site import find_caller

_Error = TypeVar("_Error", ValueError, RuntimeError)


def explained(kind: type[_Error], text: str, detail: str, *, recorded: bool) -> _Error:
    """Make an error with TensorFlow's text, and with ``detail``.

    Args:
        kind: The class of the error.
        text: TensorFlow's text.
        detail: What to do about it, for people.
        recorded: Whether TensorFlow's whole text is on record, as it is for machines without a GPU. Programs may
            compare and print such a text, so that the detail is a note, which a traceback shows behind the text.
            Otherwise it is the text's next line.
    """
    if not recorded:
        return kind(f"{text}\n{detail}")
    error = kind(text)
    error.add_note(detail)
    return error


def expected_device(what: str, value: object, instead: str, *, of_many: str = "loop over it") -> str:
    """Return a text: the called function takes one device, and what to pass instead.

    Args:
        what: What the function takes, such as ``"PhysicalDevice"``.
        value: The argument that it got.
        instead: What to do about a value that holds no devices.
        of_many: What to do about a value that holds several.
    """
    # Devices are tuples, too: named ones.
    many = isinstance(value, list | set | frozenset | dict) or type(value) is tuple
    kind = type(value).__name__
    return f"{find_caller().function} expects one {what}, got {kind}; {of_many if many else instead}"
