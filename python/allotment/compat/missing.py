"""The error of a name that a namespace does not have."""

import difflib
from collections.abc import Iterable
from typing import Final

#: How much two names must have in common, 1 being everything.
_NEAR: Final = 0.75


def missing(module: str, name: str, known: Iterable[str]) -> AttributeError:
    """Make the error, which says what there is of a similar name."""
    near = [] if name.startswith("_") else difflib.get_close_matches(name, list(known), 1, _NEAR)
    hint = f"; there is {near[0]!r}" if near else ""
    return AttributeError(f"module {module!r} has no attribute {name!r}{hint}")


__all__ = ["missing"]
