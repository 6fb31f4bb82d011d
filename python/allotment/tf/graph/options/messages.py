"""Option messages as TensorFlow's are: typed fields with defaults, printed as text, compared by value.

A message class lists its fields; this file knows what a field of each sort takes and how it is written.
"""

from collections.abc import Iterator, Mapping, MutableSequence
from typing import Any, ClassVar, Self

from allotment.tf.graph.options.fields import Field, NumberMap, bare, checked, delimited, shown, varint


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
                found = self._set[name] = NumberMap()
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
        self._set[name] = checked(field.kind, value, name)

    def _is_set(self, name: str) -> bool:
        value = self._set.get(name)
        if isinstance(value, Message):
            return getattr(value, "_touched", False) or any(map(value._is_set, value.FIELDS))
        if isinstance(value, NumberMap | _Repeated):
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
            elif isinstance(value, NumberMap):
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
            if isinstance(value, NumberMap):
                for key, number in sorted(value.items()):
                    yield from (f"{name} {{", f'  key: "{key}"', f"  value: {number}", "}")
                continue
            for each in value if isinstance(value, _Repeated) else (value,):
                if isinstance(each, Message):
                    yield f"{name} {{"
                    yield from (f"  {line}" for line in each._lines())
                    yield "}"
                else:
                    yield f"{name}: {shown(each)}"


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
        return checked(self._kind, value, self._name)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, MutableSequence | list) and list(self) == list(other)

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return repr(self._values)


def _wire(field: Field, value: Any) -> bytes:
    """A field as protocol buffers write it."""
    if isinstance(value, NumberMap):
        entries = [
            _wire(Field(1, str), key) + (_wire(Field(2, int), number))
            for key, number in sorted(value.items())
        ]
        return b"".join(delimited(field.number, entry) for entry in entries)
    if isinstance(value, _Repeated):
        if issubclass(field.kind, Message | str):
            return b"".join(_wire(Field(field.number, field.kind), each) for each in value)
        return delimited(field.number, b"".join(bare(field, each) for each in value))
    if isinstance(value, Message):
        return delimited(field.number, value.SerializeToString())
    if isinstance(value, str):
        return delimited(field.number, value.encode())
    sort = (5 if field.single else 1) if isinstance(value, float) else 0
    return varint(field.number << 3 | sort) + bare(field, value)


__all__ = ["Field", "Message"]
