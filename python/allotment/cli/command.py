"""Exit statuses, the error, the outcome and the size parameter that the commands share."""

from dataclasses import dataclass
from typing import Any

import click

from allotment._core import parse_size

#: Exit statuses. 0 means that the command finished and no request was refused.
INTERNAL_ERROR = 1
BAD_INPUT = 2
REFUSED = 3
INTERRUPTED = 130
BROKEN_PIPE = 141


class BadInput(click.ClickException):
    """A file, an environment variable or an argument is invalid; the text names it. Exit status 2."""

    exit_code = BAD_INPUT


@dataclass(frozen=True, slots=True)
class Outcome:
    """Text for stdout and exit status of a finished command."""

    text: str
    status: int = 0


class Size(click.ParamType[int]):
    """Parameter type for a number of bytes, such as ``4096`` or ``1.5GiB``."""

    name = "size"

    def __init__(self, *, minimum: int = 0, maximum: int | None = None, multiple_of: int = 1) -> None:
        self.minimum = minimum
        self.maximum = maximum
        self.multiple_of = multiple_of

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int:
        """Parse a size, or fail with a message that states the allowed values."""
        try:
            nbytes = parse_size(value)
        except ValueError as error:
            self.fail(str(error), param, ctx)
        if nbytes < self.minimum:
            self.fail(
                f"{value!r}: must be at least {self.minimum} byte{'s' * (self.minimum > 1)}", param, ctx
            )
        if self.maximum is not None and nbytes > self.maximum:
            self.fail(f"{value!r}: must be at most {self.maximum} bytes", param, ctx)
        if nbytes % self.multiple_of:
            self.fail(f"{value!r}: must be a multiple of {self.multiple_of} bytes", param, ctx)
        return nbytes
