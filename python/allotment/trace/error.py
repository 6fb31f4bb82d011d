"""The exception about an invalid trace file."""

from allotment.errors import WithFields


class TraceError(WithFields, ValueError):
    """A file cannot be read or replayed as a trace. The text is one line with the file and the place in it."""
