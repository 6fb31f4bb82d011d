"""Errors in TensorFlow's words that also say what to do."""

from typing import TypeVar

_Error = TypeVar("_Error", ValueError, RuntimeError)


def explained(kind: type[_Error], text: str, detail: str, *, recorded: bool) -> _Error:
    """Make an error whose text is TensorFlow's, and that carries ``detail``.

    Where TensorFlow's whole text is on record (``recorded``: on machines without a GPU), programs may compare
    it and print it, so the detail is a note, which a traceback shows behind the text. Elsewhere it is the
    text's next line.
    """
    if not recorded:
        return kind(f"{text}\n{detail}")
    error = kind(text)
    error.add_note(detail)
    return error
