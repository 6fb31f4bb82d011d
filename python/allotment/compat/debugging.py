"""``tf.compat.v1.debugging``: ``tf.debugging`` with TensorFlow 1's forms of assertions."""

from typing import Any

from allotment import debugging
from allotment.compat.assertions import ASSERTIONS


def __getattr__(name: str) -> Any:
    if name in ASSERTIONS:
        return ASSERTIONS[name]
    if name in debugging.__all__:
        return getattr(debugging, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*debugging.__all__, *ASSERTIONS})
