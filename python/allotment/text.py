"""Texts and values from outside, made fit for messages and for one line of a terminal."""

from allotment._core import show_text, show_value

#: What C's ``isspace`` takes for blank. Python also counts the no-break space, which no other reader of the
#: environment does.
BLANKS = " \t\n\v\f\r"


def one_line(text: str) -> str:
    """``text`` with every character that does not print, such as a newline in a file name, as an escape."""
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)


__all__ = ["BLANKS", "one_line", "show_text", "show_value"]
