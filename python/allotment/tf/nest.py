"""``tf.nest``: functions on nested lists, tuples and dictionaries."""

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from allotment.tf.names.missing_names import refuse_other_names


def is_nested(seq: Any) -> bool:
    """Whether a value is a list, tuple, range or dictionary. As ``tf.nest.is_nested``."""
    return isinstance(seq, list | tuple | range | Mapping)


def _parts(structure: Any) -> list[Any]:
    # TensorFlow orders the values of a dictionary by key.
    return [structure[key] for key in _keys(structure)] if isinstance(structure, Mapping) else list(structure)


def _keys(structure: Mapping[Any, Any]) -> list[Any]:
    try:
        return sorted(structure)
    except TypeError as error:
        error.__traceback__ = None
        raise TypeError("nest only supports dicts with sortable keys.") from None


def flatten(structure: Any, expand_composites: bool = False) -> list[Any]:  # noqa: ARG001 - TensorFlow's signature
    """Return the values of a structure as a flat list, those of a dictionary ordered by key. As ``tf.nest.flatten``.

    Example: ``flatten({"b": [2, 3], "a": 1})`` is ``[1, 2, 3]``.
    """
    if not is_nested(structure):
        return [structure]
    return [value for part in _parts(structure) for value in flatten(part)]


def pack_sequence_as(structure: Any, flat_sequence: Any, expand_composites: bool = False) -> Any:  # noqa: ARG001
    """Arrange a flat sequence of values in the form of a structure. As ``tf.nest.pack_sequence_as``.

    Example: ``pack_sequence_as([1, (2, 3)], ["a", "b", "c"])`` is ``["a", ("b", "c")]``.

    Raises:
        TypeError: ``flat_sequence`` is not a list, tuple or dictionary.
        ValueError: The number of values differs from that of the structure.
    """
    if not is_nested(flat_sequence):
        raise TypeError(
            f"Attempted to pack value:\n  {flat_sequence}\ninto a structure, but found incompatible type "
            f"`{type(flat_sequence)}` instead."
        )
    count = len(flatten(structure))
    if not is_nested(structure):
        if len(flat_sequence) != 1:
            raise ValueError(
                "The target structure is of type "
                f"`{type(structure)}`\n  {structure}\nHowever the input is a sequence ({type(flat_sequence)}) of "
                f"length {len(flat_sequence)}.\n  {flat_sequence}\nnest cannot guarantee that it is safe to map one "
                "to the other."
            )
        return flat_sequence[0]
    if len(flat_sequence) != count:
        raise ValueError(
            f"Could not pack sequence. Structure had {count} atoms, but flat_sequence had {len(flat_sequence)} items.  "
            f"Structure: {structure}, flat_sequence: {flat_sequence}."
        )
    return _packed(structure, iter(flat_sequence))


def _packed(structure: Any, values: Iterator[Any]) -> Any:
    if not is_nested(structure):
        return next(values)
    if isinstance(structure, Mapping):
        found = {key: _packed(structure[key], values) for key in _keys(structure)}
        ordered = {key: found[key] for key in structure}
        return ordered if type(structure) is dict else type(structure)(ordered)  # type: ignore[call-arg]
    parts = [_packed(part, values) for part in structure]
    kind: Any = list if type(structure) is range else type(structure)
    return kind(*parts) if hasattr(structure, "_fields") else kind(parts)


def assert_same_structure(
    nest1: Any,
    nest2: Any,
    check_types: bool = True,
    expand_composites: bool = False,  # noqa: ARG001 - TensorFlow's signature
) -> None:
    """Check that two structures have the same nesting. As ``tf.nest.assert_same_structure``.

    Args:
        nest1: A structure.
        nest2: Another structure.
        check_types: Whether the types of corresponding sequences must be the same.
        expand_composites: Has no effect.

    Raises:
        ValueError: The nesting differs.
        TypeError: The nesting is the same, but the types of two corresponding sequences differ.
    """
    fault = _difference(nest1, nest2, check_types)
    if fault is None:
        return
    kind, text = fault
    raise kind(
        f"The two structures don't have the same nested structure.\n\nFirst structure: {_shown(nest1)}\n\nSecond "
        f"structure: {_shown(nest2)}\n\nMore specifically: {text}\nEntire first structure:\n{_dots(nest1)}\n"
        f"Entire second structure:\n{_dots(nest2)}"
    )


class _Dot:
    """Placeholder of a value in the text of a structure."""

    def __repr__(self) -> str:
        return "."


def _dots(structure: Any) -> str:
    return str(pack_sequence_as(structure, [_Dot()] * len(flatten(structure))))


def _shown(structure: Any) -> str:
    return f"type={type(structure).__name__} str={structure}"


def _difference(one: Any, other: Any, check_types: bool) -> tuple[type[Exception], str] | None:
    """Return the error for two structures that differ, or ``None``."""
    if is_nested(one) != is_nested(other):
        nested, single = (one, other) if is_nested(one) else (other, one)
        return (
            ValueError,
            f'Substructure "{_shown(nested)}" is a sequence, while substructure "{_shown(single)}" is not',
        )
    if not is_nested(one):
        return None
    if check_types and type(one) is not type(other) and not _both(one, other, Mapping):
        return TypeError, (
            f"The two namedtuples don't have the same sequence type. First structure {_shown(one)} has type "
            f"{type(one).__name__}, while second structure {_shown(other)} has type {type(other).__name__}"
        )
    if len(one) != len(other):
        return ValueError, (
            f"The two structures don't have the same number of elements. First structure: {_shown(one)}. "
            f"Second structure: {_shown(other)}"
        )
    if _both(one, other, Mapping) and set(one) != set(other):
        return ValueError, (
            "The two dictionaries don't have the same set of keys. First structure has keys "
            f"{_shown(list(one))}, while second structure has keys {_shown(list(other))}"
        )
    pairs = zip(_parts(one), _parts(other), strict=True)
    return next((found for pair in pairs if (found := _difference(*pair, check_types)) is not None), None)


def _both(one: Any, other: Any, kind: type) -> bool:
    return isinstance(one, kind) and isinstance(other, kind)


def map_structure(func: Callable[..., Any], *structure: Any, **kwargs: Any) -> Any:
    """Apply a function to the corresponding values of structures; return the results in the first one's form.

    As ``tf.nest.map_structure``. Example: ``map_structure(operator.add, [1, (2,)], [10, (20,)])`` is ``[11, (22,)]``.

    Args:
        func: Called with one value of each structure.
        *structure: Structures of the same nesting.
        **kwargs: ``check_types``, as in ``assert_same_structure``; ``expand_composites`` has no effect.

    Raises:
        TypeError: ``func`` is not callable.
        ValueError: There is no structure, the structures differ, or a keyword is unknown.
    """
    if not callable(func):
        raise TypeError(f"func must be callable, got: {func}")
    if not structure:
        raise ValueError("Must provide at least one structure")
    check_types = kwargs.pop("check_types", True)
    kwargs.pop("expand_composites", False)
    if kwargs:
        raise ValueError(
            "Only valid keyword arguments are `check_types` and `expand_composites`, not: "
            f"`{'`, `'.join(kwargs)}`"
        )
    for other in structure[1:]:
        assert_same_structure(structure[0], other, check_types=check_types)
    columns = zip(*map(flatten, structure), strict=True)
    return pack_sequence_as(structure[0], [func(*values) for values in columns])


__all__ = ["assert_same_structure", "flatten", "is_nested", "map_structure", "pack_sequence_as"]

refuse_other_names(__name__)
