"""What is wrong with a trace."""

from allotment.errors import WithFields


class TraceError(WithFields, ValueError):
    """A file is no trace that can be replayed. The text is one line, with the file and the place in it."""
