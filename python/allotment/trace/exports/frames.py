"""Frames of stacks in the texts of owners: a line each, ``file:line name``, the innermost first."""

import re
from dataclasses import dataclass
from functools import cache

_FRAME = re.compile(r"(.+?):(\d{1,9})(?: (.*))?")

#: The largest line number; some viewers keep it in 32 bits with sign.
_MAX_LINE = (1 << 31) - 1


@dataclass(frozen=True, slots=True)
class Frame:
    """One frame of a stack. The file is empty and the line 0 where the text does not say them."""

    #: The line of the text that the frame was made of: frames are equal if this is.
    text: str
    #: The function; empty where the text has only a file and a line.
    name: str
    file: str
    line: int

    @property
    def label(self) -> str:
        """The function's name, or the file with its line where the text does not name the function."""
        return self.name or self.text


@cache
def _frame(text: str) -> Frame:
    found = _FRAME.fullmatch(text)
    if found is None or int(found[2]) > _MAX_LINE:
        return Frame(text, text, "", 0)
    return Frame(text, found[3] or "", found[1], int(found[2]))


def frames_of(text: str) -> list[Frame]:
    """Return the frames of an owner's text, the innermost first; at least one."""
    return [_frame(line) for line in text.split("\n") if line] or [_frame("owner without a name")]
