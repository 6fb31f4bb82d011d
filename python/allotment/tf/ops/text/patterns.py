"""Regular expressions over texts: RE2's, whose Python binding is imported at the first call."""

import functools
from collections.abc import Callable
from typing import Any

import numpy as np

from allotment import errors
from allotment.tf.ops import faults
from allotment.tf.ops.arguments.scalars import attribute_flag
from allotment.tf.ops.arrays import Array
from allotment.tf.ops.convert import to_fixed_type, to_tensor
from allotment.tf.ops.execute import run
from allotment.tf.ops.inference.common import unchanged
from allotment.tf.ops.table import CPU_ONLY, dims, operation
from allotment.tf.ops.text.texts import each
from allotment.tf.tensors.dtype import bool as bool_
from allotment.tf.tensors.dtype import string
from allotment.tf.tensors.tensor import EagerTensor

_TEXTS: Any = {"kinds": CPU_ONLY}


@functools.cache
def _compiled(pattern: bytes) -> Any:
    import re2

    options = re2.Options()
    options.log_errors = False
    return re2.compile(pattern, options)


def _pattern_fault(array: Array, pattern: bytes, *rest: Any) -> str | None:
    import re2

    try:
        _compiled(pattern)
    except re2.error as error:
        reason = error.args[0]
        text = reason.decode("utf-8", "replace") if isinstance(reason, bytes) else str(reason)
        return f"Invalid pattern: {pattern.decode('utf-8', 'replace')}, error: {text}"
    return None


class _Rewrite:
    """What matches are replaced by: a text with numbers of groups in it, as far as it is a valid one."""

    def __init__(self, text: bytes) -> None:
        self._parts: list[bytes | int] = []
        self.is_valid = True
        symbols = iter(text[place : place + 1] for place in range(len(text)))
        for symbol in symbols:
            if symbol == b"\\":
                symbol = next(symbols, b"")
                if not symbol.isdigit() and symbol != b"\\":
                    self.is_valid = False
                    break
                self._parts.append(int(symbol) if symbol.isdigit() else symbol)
            else:
                self._parts.append(symbol)
        self.groups = max((each for each in self._parts if type(each) is int), default=0)

    def of(self, match: Any) -> bytes:
        return b"".join(each if isinstance(each, bytes) else match[each] or b"" for each in self._parts)


def _replace(array: Array, pattern: bytes, rewrite: bytes, everywhere: bool) -> Array:
    compiled, new = _compiled(pattern), _Rewrite(rewrite)
    if new.groups > compiled.groups:
        # As RE2: a rewrite that names a group that is not there replaces nothing.
        return array.copy()
    replace: Callable[[Any, _Rewrite, bytes], bytes] = _replace_all if everywhere else _replace_first
    return each(lambda text: replace(compiled, new, text), array)


def _replace_first(compiled: Any, new: _Rewrite, text: bytes) -> bytes:
    match = compiled.search(text)
    if match is None or not new.is_valid:
        return text
    return b"".join([text[: match.start()], new.of(match), text[match.end() :]])


def _replace_all(compiled: Any, new: _Rewrite, text: bytes) -> bytes:
    parts, place, end = [], 0, -1
    while place <= len(text):
        match = compiled.search(text, place)
        if match is None:
            break
        parts.append(text[place : match.start()])
        if match.start() == match.end() == end:
            # An empty match right behind another is none: a character is passed.
            place += _character_size(text, place)
            parts.append(text[end:place])
            end = -1
            continue
        parts.append(new.of(match))
        place = end = match.end()
    return b"".join([*parts, text[place:]])


def _character_size(text: bytes, place: int) -> int:
    """How many bytes the UTF-8 character at a place has, 1 if there is none."""
    for size in range(1, 5):
        try:
            text[place : place + size].decode()
        except UnicodeDecodeError:
            continue
        return size
    return 1


_replace_row = operation("StaticRegexReplace", _replace, shape=unchanged, fault=_pattern_fault, **_TEXTS)
_match_row = operation(
    "StaticRegexFullMatch",
    lambda array, pattern: each(lambda text: _compiled(pattern).fullmatch(text) is not None, array, np.bool_),
    shape=unchanged,
    fault=_pattern_fault,
    result=bool_,
    **_TEXTS,
)


def regex_replace(
    input: Any,  # noqa: A002 - TensorFlow's name
    pattern: Any,
    rewrite: Any,
    replace_global: bool = True,
    name: str | None = None,
) -> EagerTensor:
    r"""Replace what a pattern of RE2's matches. As ``tf.strings.regex_replace``.

    In ``rewrite`` ``\1`` is the first group and ``\0`` all that was matched.

    Raises:
        InvalidArgumentError: It is no pattern.
    """
    everywhere = attribute_flag(replace_global, "replace_global", default=True)
    arguments = _one(pattern, "Pattern", name), _one(rewrite, "Rewrite", name), everywhere
    return run(_replace_row, to_fixed_type(string, input), *arguments, name=name)  # type: ignore[no-any-return]


def regex_full_match(input: Any, pattern: Any, name: str | None = None) -> EagerTensor:  # noqa: A002
    """Whether a pattern of RE2's matches whole texts. As ``tf.strings.regex_full_match``.

    Raises:
        InvalidArgumentError: It is no pattern.
    """
    wanted = _one(pattern, "Pattern", name)
    return run(_match_row, to_fixed_type(string, input), wanted, name=name)  # type: ignore[no-any-return]


def _one(value: Any, what: str, name: str | None) -> bytes:
    text = to_tensor(value, string)
    if text.ndim:
        raise errors.InvalidArgumentError(
            None,
            None,
            f"{what} must be scalar, but received {dims(text._array)}{faults.tail('RegexReplace', name)}",
        )
    return bytes(text._array.item())


__all__ = ["regex_full_match", "regex_replace"]
