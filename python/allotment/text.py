"""Texts from outside, made fit for one line of a terminal."""


def one_line(text: str) -> str:
    """``text`` with every character that does not print, such as a newline in a file name, as an escape."""
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)
