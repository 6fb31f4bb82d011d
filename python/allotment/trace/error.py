"""What is wrong with a trace."""


class TraceError(ValueError):
    """A file is no trace that can be replayed. The text is one line, with the file and the place in it."""
