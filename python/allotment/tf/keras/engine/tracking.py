"""The layers, variables and metrics that an object owns, in the order in which the program set them as attributes.

As in Keras 3, a layer owns the variables that ``add_weight`` of any layer made, and no ``tf.Variable`` that the program
made. A sublayer stays: neither another value of the attribute nor its deletion makes a layer forget it. Lists,
dictionaries and sets become containers that add new elements to what their owner has, and that remove an element from
it with ``pop``, ``remove`` or ``clear``.
"""

from collections import OrderedDict
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final, Protocol

from allotment.tf.tensors.tensor import EagerTensor
from allotment.tf.variables.variable import Variable

#: Types of values without parts.
_PLAIN: Final = frozenset({type(None), bool, int, float, str, bytes, EagerTensor})


class Tracker:
    """What an object owns."""

    def __init__(self) -> None:
        self.layers: list[Any] = []
        self.variables: list[Variable] = []
        self.metrics: list[Any] = []
        #: Whether the owner is built, and can own nothing new.
        self.is_closed = False

    def track(self, value: Any) -> Any:
        """Add a value, or the parts of a container, and return it; of a list, dictionary or set, its tracked form.

        Raises:
            ValueError: The owner is built, and the value is new.
        """
        if type(value) in _PLAIN:
            return value
        kept = self._kept(value)
        if kept is not None:
            if not _has(kept, value):
                self._check_open(value)
                kept.append(value)
            return value
        if isinstance(value, tuple):
            parts = [self.track(each) for each in value]
            return type(value)(*parts) if hasattr(value, "_fields") else type(value)(parts)
        form = _TRACKED.get(type(value))
        if form is not None:
            return form(value, self)
        if isinstance(value, list | set):
            self.track_all(value)
        elif isinstance(value, dict):
            self.track_all(value.values())
        return value

    def track_all(self, values: Iterable[Any]) -> None:
        """Add several values."""
        for value in values:
            self.track(value)

    def forget(self, value: Any) -> None:
        """Remove a value if it is there."""
        kept = self._kept(value)
        if kept is not None:
            kept[:] = [each for each in kept if each is not value]

    def _kept(self, value: Any) -> list[Any] | None:
        """Return the list for a value, ``None`` if it is neither a layer, nor a variable of one, nor a metric."""
        if isinstance(value, Variable):
            return self.variables if value._is_weight else None
        kind = getattr(type(value), "_tracked_as", None)
        return None if kind is None else getattr(self, kind)

    def _check_open(self, value: Any) -> None:
        if self.is_closed:
            raise ValueError(
                "A layer that is built takes no new variables, sublayers or metrics: make them in `__init__` or in "
                f"`build`. Received: {value!r}"
            )


def _has(values: list[Any], value: Any) -> bool:
    return any(each is value for each in values)


class _Tracked:
    """The part of a container that tells its owner of its elements."""

    #: ``None`` while a copy is made.
    _tracker: Tracker | None = None

    def _note(self, value: Any) -> Any:
        return value if self._tracker is None else self._tracker.track(value)

    def _drop(self, value: Any) -> None:
        if self._tracker is not None:
            self._tracker.forget(value)


class TrackedList(_Tracked, list[Any]):
    """A list with elements that its owner tracks, except those that replace others by their index."""

    def __init__(self, values: Iterable[Any] = (), tracker: Tracker | None = None) -> None:
        self._tracker = tracker
        super().__init__(map(self._note, values))

    def append(self, value: Any) -> None:
        self._note(value)
        super().append(value)

    def insert(self, index: Any, value: Any) -> None:
        self._note(value)
        super().insert(index, value)

    def extend(self, values: Iterable[Any]) -> None:
        super().extend(list(map(self._note, values)))

    def remove(self, value: Any) -> None:
        super().remove(value)
        self._drop(value)

    def pop(self, index: Any = -1) -> Any:
        value = super().pop(index)
        self._drop(value)
        return value

    def clear(self) -> None:
        for value in self:
            self._drop(value)
        super().clear()

    def __delitem__(self, index: Any) -> None:
        value = self[index]
        super().__delitem__(index)
        self._drop(value)


class _TrackedValues(_Tracked, dict[Any, Any]):
    """The methods of a dictionary with values that its owner tracks."""

    def __setitem__(self, key: Any, value: Any) -> None:
        self._note(value)
        super().__setitem__(key, value)

    def update(self, *args: Any, **kwargs: Any) -> None:
        """Add values, of which containers get their tracked form."""
        for key, value in dict(*args, **kwargs).items():
            super().__setitem__(key, self._note(value))

    def pop(self, key: Any, *default: Any) -> Any:
        value = super().pop(key, *default)
        self._drop(value)
        return value

    def popitem(self, *args: Any, **kwargs: Any) -> tuple[Any, Any]:
        key, value = super().popitem(*args, **kwargs)
        self._drop(value)
        return key, value

    def clear(self) -> None:
        for value in self.values():
            self._drop(value)
        super().clear()


class TrackedDict(_TrackedValues):
    """A dictionary with values that its owner tracks, except those of ``setdefault``."""

    def __init__(self, values: Any = (), tracker: Tracker | None = None) -> None:
        self._tracker = tracker
        super().__init__()
        self.update(values)


class TrackedOrderedDict(_TrackedValues, OrderedDict[Any, Any]):
    """An ordered dictionary with values that its owner tracks."""

    def __init__(self, values: Any = (), tracker: Tracker | None = None) -> None:
        self._tracker = tracker
        super().__init__()
        self.update(values)


class TrackedSet(_Tracked, set[Any]):
    """A set with elements that its owner tracks."""

    def __init__(self, values: Iterable[Any] = (), tracker: Tracker | None = None) -> None:
        self._tracker = tracker
        super().__init__(map(self._note, values))

    def add(self, value: Any) -> None:
        self._note(value)
        super().add(value)

    def update(self, *values: Iterable[Any]) -> None:
        for each in values:
            super().update(list(map(self._note, each)))

    def remove(self, value: Any) -> None:
        super().remove(value)
        self._drop(value)

    def pop(self) -> Any:
        value = super().pop()
        self._drop(value)
        return value

    def clear(self) -> None:
        for value in self:
            self._drop(value)
        super().clear()


class _Form(Protocol):
    def __call__(self, values: Any, tracker: Tracker) -> Any: ...


_TRACKED: Final[dict[type, _Form]] = {
    list: TrackedList,
    TrackedList: TrackedList,
    dict: TrackedDict,
    TrackedDict: TrackedDict,
    OrderedDict: TrackedOrderedDict,
    TrackedOrderedDict: TrackedOrderedDict,
    set: TrackedSet,
    TrackedSet: TrackedSet,
}


def found_in(owner: Any, kind: type | tuple[type, ...]) -> Iterator[Any]:
    """Yield the objects of a class among the attributes and their containers, in the order of the attributes."""
    for value in tuple(vars(owner).values()):
        yield from _found(value, kind)


def _found(value: Any, kind: type | tuple[type, ...]) -> Iterator[Any]:
    if isinstance(value, kind):
        yield value
    elif isinstance(value, Mapping):
        for each in tuple(value.values()):
            yield from _found(each, kind)
    elif isinstance(value, list | tuple):
        for each in value:
            yield from _found(each, kind)


def without_repeats(values: Iterator[Any]) -> list[Any]:
    """Return the objects without repetitions."""
    return list({id(value): value for value in values}.values())


__all__ = ["Tracker", "found_in", "without_repeats"]
