"""Option messages as TensorFlow's are: typed fields with defaults, printed as text, compared by value.

A message class lists its fields; this file knows what a field of each sort takes and how it is written.
"""

import contextlib
import struct
from collections.abc import Iterator, Mapping, MutableMapping, MutableSequence
from dataclasses import dataclass
from typing import Any, ClassVar, Self

import numpy as np

from allotment.text import show_value


@dataclass(frozen=True, slots=True)
class Field:
    """One field of a message."""

    number: int
    #: ``bool``, ``int``, ``float``, ``str``, or a class of messages.
    kind: type
    repeated: bool = False
    #: Texts to whole numbers.
    is_map: bool = False
    #: Four bytes on the wire instead of eight.
    single: bool = False
    #: Whether it is more than kept; of a message, its fields say.
    effect: bool = False


class Message:
    """A set of options. Only keywords make one; a field that is not set has its default.

    Raises:
        TypeError: A positional argument, or a value of the wrong type.
        ValueError: A keyword that is no field.
    """

    FIELDS: ClassVar[dict[str, Field]] = {}

    def __init__(self, *args: Any, **fields: Any) -> None:
        if args:
            raise TypeError("No positional arguments allowed")
        vars(self)["_set"] = {}
        for name, value in fields.items():
            field = self.FIELDS.get(name)
            if field is None:
                raise ValueError(f'Protocol message {type(self).__name__} has no "{name}" field.')
            if value is None:
                continue
            if field.is_map:
                getattr(self, name).update(value)
            elif field.repeated:
                getattr(self, name).extend(value)
            elif issubclass(field.kind, Message):
                given = field.kind(**value) if isinstance(value, Mapping) else value
                getattr(self, name).CopyFrom(given)
                self._set[name]._touched = True
            else:
                setattr(self, name, value)

    def __getattr__(self, name: str) -> Any:
        field = self.FIELDS.get(name)
        if field is None:
            raise AttributeError(f"{name!r} is no field of {type(self).__name__}")
        found = self._set.get(name)
        if found is None:
            if field.is_map:
                found = self._set[name] = _Map()
            elif field.repeated:
                found = self._set[name] = _Repeated(field.kind, name)
            elif issubclass(field.kind, Message):
                found = self._set[name] = field.kind()
            else:
                return field.kind()
        return found

    def __setattr__(self, name: str, value: Any) -> None:
        if name == "_touched":
            vars(self)[name] = value
            return
        field = self.FIELDS.get(name)
        if field is None:
            raise AttributeError(f'Protocol message {type(self).__name__} has no "{name}" field.')
        if field.is_map or field.repeated or issubclass(field.kind, Message):
            what = "message" if issubclass(field.kind, Message) and not field.repeated else "repeated"
            raise AttributeError(
                f'Assignment not allowed to {what} field "{name}" in protocol message object.'
            )
        self._set[name] = _checked(field.kind, value, name)

    def _is_set(self, name: str) -> bool:
        value = self._set.get(name)
        if isinstance(value, Message):
            return getattr(value, "_touched", False) or any(map(value._is_set, value.FIELDS))
        if isinstance(value, _Map | _Repeated):
            return len(value) > 0
        return value is not None and value != self.FIELDS[name].kind()

    def HasField(self, field_name: str) -> bool:  # noqa: N802 - the name TensorFlow has
        """Whether a message field was set.

        Raises:
            ValueError: No field that knows.
        """
        field = self.FIELDS.get(field_name)
        if field is None or field.repeated or field.is_map:
            raise ValueError(f'Protocol message {type(self).__name__} has no singular "{field_name}" field.')
        return self._is_set(field_name)

    def ClearField(self, field_name: str) -> None:  # noqa: N802 - the name TensorFlow has
        """Give a field its default again.

        Raises:
            ValueError: No field.
        """
        if field_name not in self.FIELDS:
            raise ValueError(f'Protocol message {type(self).__name__} has no "{field_name}" field.')
        self._set.pop(field_name, None)

    def Clear(self) -> None:  # noqa: N802 - the name TensorFlow has
        """Give every field its default again."""
        self._set.clear()

    def CopyFrom(self, other: "Message") -> None:  # noqa: N802 - the name TensorFlow has
        """Become equal to another message of the same class.

        Raises:
            TypeError: It is of another class.
        """
        if other is not self:
            self._check(other, "CopyFrom")
            self.Clear()
            self.MergeFrom(other)

    def MergeFrom(self, other: "Message") -> None:  # noqa: N802 - the name TensorFlow has
        """Take what another message of the same class has set.

        Raises:
            TypeError: It is of another class.
        """
        self._check(other, "MergeFrom")
        for name, value in other._set.items():
            if not other._is_set(name):
                continue
            if isinstance(value, Message):
                getattr(self, name).MergeFrom(value)
                self._set[name]._touched = True
            elif isinstance(value, _Map):
                getattr(self, name).update(value)
            elif isinstance(value, _Repeated):
                getattr(self, name).extend(value)
            else:
                self._set[name] = value

    def _check(self, other: Any, what: str) -> None:
        if type(other) is not type(self):
            name = type(self).__name__
            raise TypeError(
                f"Parameter to {what}() must be instance of same class: expected {name} got {type(other).__name__}."
            )

    def ListFields(self) -> list[tuple[Field, Any]]:  # noqa: N802 - the name TensorFlow has
        """Return the fields that are set, by number, with their values."""
        return [(self.FIELDS[name], getattr(self, name)) for name in self._names()]

    def _names(self) -> Iterator[str]:
        ordered = sorted(self.FIELDS, key=lambda name: self.FIELDS[name].number)
        return (name for name in ordered if self._is_set(name))

    def without_effect(self, prefix: str = "") -> list[str]:
        """Return the names of the fields that are set and only kept, those of messages with dots."""
        found: dict[str, None] = {}
        for name in self._names():
            field, value = self.FIELDS[name], self._set[name]
            if issubclass(field.kind, Message):
                for each in value if field.repeated else [value]:
                    found.update(dict.fromkeys(each.without_effect(f"{prefix}{name}.")))
            elif not field.effect:
                found[f"{prefix}{name}"] = None
        return list(found)

    def SerializeToString(self) -> bytes:  # noqa: N802 - the name TensorFlow has
        """Return the message as bytes, in the form of protocol buffers."""
        return b"".join(_wire(self.FIELDS[name], self._set[name]) for name in self._names())

    def __eq__(self, other: object) -> bool:
        if type(other) is not type(self):
            return NotImplemented
        assert isinstance(other, Message)
        names, others = list(self._names()), list(other._names())
        return names == others and all(getattr(self, name) == getattr(other, name) for name in names)

    __hash__ = None  # type: ignore[assignment]

    def __deepcopy__(self, memo: dict[int, Any]) -> Self:
        made = type(self)()
        made.CopyFrom(self)
        return made

    def __dir__(self) -> list[str]:
        return [*super().__dir__(), *self.FIELDS]

    def __str__(self) -> str:
        return "".join(f"{line}\n" for line in self._lines())

    __repr__ = __str__

    def _lines(self) -> Iterator[str]:
        for name in self._names():
            value = self._set[name]
            if isinstance(value, _Map):
                for key, number in sorted(value.items()):
                    yield from (f"{name} {{", f'  key: "{key}"', f"  value: {number}", "}")
                continue
            for each in value if isinstance(value, _Repeated) else (value,):
                if isinstance(each, Message):
                    yield f"{name} {{"
                    yield from (f"  {line}" for line in each._lines())
                    yield "}"
                else:
                    yield f"{name}: {_text(each)}"


class _Map(MutableMapping[str, int]):
    """Texts to whole numbers; a text that is asked for and not there has 0, as in TensorFlow."""

    def __init__(self) -> None:
        self._values: dict[str, int] = {}

    def __getitem__(self, key: str) -> int:
        return self._values.setdefault(_checked(str, key, "key"), 0)

    def __setitem__(self, key: str, value: int) -> None:
        self._values[_checked(str, key, "key")] = _checked(int, value, "value")

    def get(self, key: str, default: Any = None) -> Any:
        """Return the number of a text, or the default; the text is not entered."""
        return self._values.get(key, default)

    def __delitem__(self, key: str) -> None:
        del self._values[key]

    def __contains__(self, key: object) -> bool:
        return key in self._values

    def __iter__(self) -> Iterator[str]:
        return iter(self._values)

    def __len__(self) -> int:
        return len(self._values)

    def __repr__(self) -> str:
        return repr(self._values)


class _Repeated(MutableSequence[Any]):
    """The values of a repeated field."""

    def __init__(self, kind: type, name: str) -> None:
        self._kind = kind
        self._name = name
        self._values: list[Any] = []

    def add(self, **fields: Any) -> Any:
        """Append a message and return it."""
        self._values.append(self._kind(**fields))
        return self._values[-1]

    def __getitem__(self, index: Any) -> Any:
        return self._values[index]

    def __setitem__(self, index: Any, value: Any) -> None:
        self._values[index] = self._check(value)

    def __delitem__(self, index: Any) -> None:
        del self._values[index]

    def __len__(self) -> int:
        return len(self._values)

    def insert(self, index: int, value: Any) -> None:
        """Put a value before another one."""
        self._values.insert(index, self._check(value))

    def _check(self, value: Any) -> Any:
        if issubclass(self._kind, Message):
            made = self._kind(**value) if isinstance(value, Mapping) else self._kind()
            if not isinstance(value, Mapping):
                made.CopyFrom(value)
            return made
        return _checked(self._kind, value, self._name)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, MutableSequence | list) and list(self) == list(other)

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return repr(self._values)


def _checked(kind: type, value: Any, name: str) -> Any:
    """The value as a field's type holds it.

    Raises:
        TypeError: It is of another type.
    """
    whole = isinstance(value, int | np.integer | np.bool_)
    if kind is bool and whole:
        return bool(value)
    if kind is int and whole:
        return int(value)
    if kind is float and (whole or isinstance(value, float | np.floating)):
        with contextlib.suppress(OverflowError):
            return float(value)
        raise ValueError(f"{name} must be a number that a float can hold, not {show_value(value)}")
    if kind is str and isinstance(value, str | bytes):
        return value.decode() if isinstance(value, bytes) else value
    raise TypeError(
        f"{show_value(value)} has type {type(value).__name__}, but {name} expected one of: {kind.__name__}"
    )


def _text(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        return '"' + value.replace("\\", "\\\\").replace('"', '\\"') + '"'
    if isinstance(value, float):
        return f"{value:.17g}" if float(f"{value:g}") != value else f"{value:g}"
    return str(value)


def _wire(field: Field, value: Any) -> bytes:
    """A field as protocol buffers write it."""
    if isinstance(value, _Map):
        entries = [
            _wire(Field(1, str), key) + (_wire(Field(2, int), number))
            for key, number in sorted(value.items())
        ]
        return b"".join(_delimited(field.number, entry) for entry in entries)
    if isinstance(value, _Repeated):
        if issubclass(field.kind, Message | str):
            return b"".join(_wire(Field(field.number, field.kind), each) for each in value)
        return _delimited(field.number, b"".join(_bare(field, each) for each in value))
    if isinstance(value, Message):
        return _delimited(field.number, value.SerializeToString())
    if isinstance(value, str):
        return _delimited(field.number, value.encode())
    sort = (5 if field.single else 1) if isinstance(value, float) else 0
    return _varint(field.number << 3 | sort) + _bare(field, value)


def _bare(field: Field, value: Any) -> bytes:
    if isinstance(value, float):
        return struct.pack("<f" if field.single else "<d", value)
    return _varint(int(value))


def _delimited(number: int, data: bytes) -> bytes:
    return _varint(number << 3 | 2) + _varint(len(data)) + data


def _varint(value: int) -> bytes:
    value %= 1 << 64
    out = bytearray()
    while value >= 0x80:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


__all__ = ["Field", "Message"]
