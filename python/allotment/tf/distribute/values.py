"""Objects that hold a value for each replica; ``regroup`` makes structures of them and ``select`` takes one part."""

from collections.abc import Mapping, Sequence
from typing import Any, Final, NoReturn

from allotment.tf import nest
from allotment.tf.distribute.scopes import current_replica
from allotment.tf.ops.convert import to_tensor
from allotment.tf.ops.operators import OPERATORS, attach
from allotment.tf.tensors.tensor import EagerTensor, Operands

#: Constants that are the same when they are equal: that two of them are one object is up to the interpreter.
_CONSTANTS: Final = (int, str, bytes, type(None))


class DistributedValues:
    """A value for each replica. As ``tf.distribute.DistributedValues``."""

    def __init__(self, values: Sequence[Any]) -> None:
        self._values = tuple(values)

    @property
    def values(self) -> tuple[Any, ...]:
        """The values by replica."""
        return self._values

    def _own(self) -> Any:
        """Return the value of the replica that runs, or of the first one if none runs."""
        replica = current_replica()
        return self._values[0 if replica is None else replica._index]

    def __str__(self) -> str:
        return _listed(self, str)

    def __repr__(self) -> str:
        return _listed(self, repr)


class PerReplica(DistributedValues):
    """Values that differ from replica to replica, such as those that ``Strategy.run`` returns."""

    @classmethod
    def _with_values(cls, values: Sequence[Any]) -> "PerReplica":
        """Make an object with other values, as ``tf.function`` does when it makes tensors of its results."""
        return cls(values)

    def _as_tensor(self) -> NoReturn:
        """Refuse: no operation computes with the values of all replicas.

        Raises:
            ValueError: Always.
        """
        raise ValueError(
            "It looks like you are using a PerReplica object while not inside a replica context, which is not "
            "supported. Try running your op or function inside a replica context by using `strategy.run`"
        )


class PerReplicaSpec:
    """Types and shapes of the values of several replicas. As TensorFlow's class of this name.

    Args:
        *specs: The type and shape of each replica's value, as a ``TensorSpec``.
    """

    def __init__(self, *specs: Any) -> None:
        self._value_specs = specs

    def is_compatible_with(self, other: Any) -> bool:
        """Whether distributed values, or another ``PerReplicaSpec``, have these types and shapes."""
        parts = other._value_specs if isinstance(other, PerReplicaSpec) else getattr(other, "values", ())
        return len(parts) == len(self._value_specs) and all(
            spec.is_compatible_with(part) for spec, part in zip(self._value_specs, parts, strict=True)
        )

    def __eq__(self, other: object) -> bool:
        return isinstance(other, PerReplicaSpec) and self._value_specs == other._value_specs

    def __hash__(self) -> int:
        return hash(self._value_specs)

    def __repr__(self) -> str:
        return f"PerReplicaSpec({', '.join(map(repr, self._value_specs))})"


class Mirrored(DistributedValues, Operands):
    """Values that are equal on every replica. Operations take the value of the replica that runs, or the first."""

    def _as_tensor(self) -> EagerTensor:
        """Return the tensor that operations compute with."""
        return to_tensor(self._own())

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")
        return getattr(self._own(), name)


attach(Mirrored, OPERATORS)


def _listed(values: DistributedValues, text: Any) -> str:
    rows = ",\n".join(f"  {index}: {text(value)}" for index, value in enumerate(values.values))
    return f"{type(values).__name__}:{{\n{rows}\n}}"


def regroup(
    values: Sequence[Any], kind: type[DistributedValues] = PerReplica, *, always: bool = False
) -> Any:
    """Make one structure of those of the replicas, with distributed values in it.

    Args:
        values: The value or structure of each replica.
        kind: The class of the distributed values.
        always: Make a distributed value of equal values, too, instead of returning the one value.

    Raises:
        AssertionError: The structures differ.
    """
    first = values[0]
    if len(values) == 1 or (not always and all(value is first for value in values)):
        return first
    if (
        not always
        and isinstance(first, _CONSTANTS)
        and all(type(value) is type(first) and value == first for value in values)
    ):
        return first
    if not any(nest.is_nested(value) for value in values):
        return kind(values)
    for index, value in enumerate(values):
        if type(value) is not type(first):
            raise AssertionError(
                f"replicas gave structures that differ: replica 0 a {type(first).__name__}, {first!r}; "
                f"replica {index} a {type(value).__name__}, {value!r}"
            )
        if len(value) != len(first):
            raise AssertionError(f"len(v) == {len(value)}, len(v0) == {len(first)}, v: {value}, v0: {first}")
        if isinstance(first, Mapping) and set(value) != set(first):
            raise AssertionError(
                f"replicas gave structures that differ: replica 0 the keys {sorted(map(str, first))}, "
                f"replica {index} the keys {sorted(map(str, value))}"
            )
    if isinstance(first, Mapping):
        parts = {key: regroup([value[key] for value in values], kind, always=always) for key in first}
        return parts if type(first) is dict else type(first)(parts)  # type: ignore[call-arg]
    return _sequence(first, [regroup(column, kind, always=always) for column in zip(*values, strict=True)])


def select(index: int, structure: Any) -> Any:
    """Return a structure with the value of one replica in the place of each distributed value."""
    if isinstance(structure, DistributedValues):
        # A variable picks its copy itself, whenever it is used.
        return structure if hasattr(structure, "_storage") else structure.values[index]
    if not nest.is_nested(structure):
        return structure
    if isinstance(structure, Mapping):
        parts = {key: select(index, value) for key, value in structure.items()}
        return parts if type(structure) is dict else type(structure)(parts)  # type: ignore[call-arg]
    return _sequence(structure, [select(index, value) for value in structure])


def local_results(count: int, value: Any) -> tuple[Any, ...]:
    """Return the values of ``count`` replicas of this process, a tuple of one for a plain value."""
    if count == 1 or not any(isinstance(each, DistributedValues) for each in nest.flatten(value)):
        return (_copy_of(0, value),)
    return tuple(_copy_of(index, value) for index in range(count))


def _copy_of(index: int, value: Any) -> Any:
    return nest.map_structure(
        lambda each: each.values[index] if isinstance(each, DistributedValues) else each, value
    )


def _sequence(like: Any, parts: list[Any]) -> Any:
    return type(like)(*parts) if hasattr(like, "_fields") else type(like)(parts)


__all__ = [
    "DistributedValues",
    "Mirrored",
    "PerReplica",
    "PerReplicaSpec",
    "local_results",
    "regroup",
    "select",
]
