"""Default names of layers, models, metrics and optimizers: ``dense``, ``dense_1``."""

import re
import threading
from collections import Counter
from typing import Any, Final

_lock: Final = threading.Lock()
_given: Final[Counter[str]] = Counter()


def snake_case(name: str) -> str:
    """Convert a class name: ``MaxPooling2D`` to ``max_pooling2d``, ``<lambda>`` to ``lambda``."""
    name = re.sub(r"\W", "", name)
    apart = re.sub(r"(?<=.)(?=[A-Z][a-z0-9])|(?<=[a-z])(?=[A-Z])", "_", name)
    return re.sub("__+", "_", apart).lower()


def unique_name(base: str) -> str:
    """Make a name unique: the base at first, later with a number."""
    with _lock:
        count = _given[base]
        _given[base] += 1
    return f"{base}_{count}" if count else base


def object_name(named: Any) -> str:
    """Return the name of an object of Keras, or one made of the name of a function or class."""
    name = getattr(named, "name", None)
    return name if name is not None else snake_case(getattr(named, "__name__", type(named).__name__))


def forget_names() -> None:
    """Reset the numbers of names."""
    with _lock:
        _given.clear()


__all__ = ["forget_names", "object_name", "snake_case", "unique_name"]
