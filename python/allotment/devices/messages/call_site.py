"""Finds the line of the program that called this package: the first frame outside of it."""

import sys
from dataclasses import dataclass
from types import CodeType, FrameType

_PACKAGE = __name__.partition(".")[0]


@dataclass(frozen=True, slots=True)
class Caller:
    """A call of the program into this package, for messages about earlier calls."""

    #: The called function, such as ``list_logical_devices``.
    function: str
    file: str
    line: int

    def __str__(self) -> str:
        return f"{self.function}() in {self.file}, line {self.line}"


def find_caller() -> Caller:
    """Return the program's innermost call into this package."""
    frame = sys._getframe()
    function = frame.f_code.co_qualname
    while frame.f_back is not None and is_ours(frame.f_globals.get("__name__")):
        function = frame.f_code.co_qualname
        frame = frame.f_back
    return Caller(function.removesuffix(".__init__"), frame.f_code.co_filename, frame.f_lineno)


@dataclass(frozen=True, slots=True, eq=False)
class CallStack:
    """The program's calls, outside of this package, that led to a place. Line numbers are computed on demand."""

    #: Code and the place in it, the innermost first.
    frames: tuple[tuple[CodeType, int], ...]

    def lines(self, *, innermost_first: bool = False, indent: str = "  ") -> str:
        """Return the calls as a traceback lists them, one a line."""
        found = self.frames if innermost_first else self.frames[::-1]
        return "".join(
            f'{indent}File "{code.co_filename}", line {_line_of(code, at)}, in {code.co_name}\n'
            for code, at in found
        )


#: The innermost calls identify a place, however deep it is.
_MOST = 20


def find_stack() -> CallStack:
    """Return the calls of the program that led to the caller."""
    frame: FrameType | None = sys._getframe()
    found: list[tuple[CodeType, int]] = []
    while frame is not None and len(found) < _MOST:
        if not is_ours(frame.f_globals.get("__name__")):
            found.append((frame.f_code, frame.f_lasti))
        frame = frame.f_back
    return CallStack(tuple(found))


def _line_of(code: CodeType, at: int) -> int:
    for start, end, line in code.co_lines():
        if start <= at < end and line is not None:
            return line
    return code.co_firstlineno


def is_ours(module: str | None) -> bool:
    """Return whether a module belongs to this package."""
    return module is not None and module.partition(".")[0] == _PACKAGE
