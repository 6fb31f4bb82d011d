"""Formatting of foreign texts and values for messages of one line."""

from allotment._core import show_text, show_value

#: The blank characters of C's ``isspace``. Python's ``str.strip`` also removes the no-break space, which no other
#: reader of environment variables does.
BLANKS = " \t\n\v\f\r"


def one_line(text: str) -> str:
    """Return ``text`` with an escape for every unprintable character, such as a newline in a file name."""
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)


__all__ = ["BLANKS", "one_line", "show_text", "show_value"]
