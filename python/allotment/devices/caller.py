"""Which line of the program made a call: the first frame outside of this package."""

import sys
from dataclasses import dataclass

_PACKAGE = __name__.partition(".")[0]


@dataclass(frozen=True, slots=True)
class Caller:
    """A call into this package, for messages that say what happened first."""

    #: The function that was called, such as ``list_logical_devices``.
    function: str
    file: str
    line: int

    def __str__(self) -> str:
        return f"{self.function}() in {self.file}, line {self.line}"


def find_caller() -> Caller:
    """Find the call that led here."""
    frame = sys._getframe()
    function = frame.f_code.co_qualname
    while frame.f_back is not None and is_ours(frame.f_globals.get("__name__")):
        function = frame.f_code.co_qualname
        frame = frame.f_back
    return Caller(function.removesuffix(".__init__"), frame.f_code.co_filename, frame.f_lineno)


def is_ours(module: str | None) -> bool:
    """Whether a module is one of this package."""
    return module is not None and module.partition(".")[0] == _PACKAGE
