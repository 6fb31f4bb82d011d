"""Values of several replicas in one object, and structures of them taken apart and put together."""

from collections.abc import Mapping, Sequence
from typing import Any, Final, NoReturn

from allotment.tf.distribute.scopes import current_scope
from allotment.tf.nest import is_nested
from allotment.tf.ops.convert import to_tensor
from allotment.tf.ops.operators import OPERATORS, attach
from allotment.tf.tensors.tensor import EagerTensor, Operands

#: Constants that are the same when they are equal: that two of them are one object is up to the interpreter.
_CONSTANTS: Final = (int, str, bytes, type(None))


class DistributedValues:
    """A value of each replica. As ``tf.distribute.DistributedValues``."""

    def __init__(self, values: Sequence[Any]) -> None:
        self._values = tuple(values)

    @property
    def values(self) -> tuple[Any, ...]:
        """The values by replica."""
        return self._values

    def _own(self) -> Any:
        """The value of the replica that runs, of the first one where none does."""
        scope = current_scope()
        if scope is None or scope.replica is None:
            return self._values[0]
        return self._values[scope.replica._index]

    def __str__(self) -> str:
        return _listed(self, str)

    def __repr__(self) -> str:
        return _listed(self, repr)


class PerReplica(DistributedValues):
    """Values that differ from replica to replica: what ``Strategy.run`` returns."""

    @classmethod
    def _with_values(cls, values: Sequence[Any]) -> "PerReplica":
        """Make one of other values: ``tf.function`` makes tensors of those that it returns."""
        return cls(values)

    def _as_tensor(self) -> NoReturn:
        """No operation computes with the values of all replicas.

        Raises:
            ValueError: Always.
        """
        raise ValueError(
            "It looks like you are using a PerReplica object while not inside a replica context, which is not "
            "supported. Try running your op or function inside a replica context by using `strategy.run`"
        )


class PerReplicaSpec:
    """What is known of the values of several replicas before there are any. As TensorFlow's class of this name.

    Args:
        *specs: What is known of the value of each replica.
    """

    def __init__(self, *specs: Any) -> None:
        self._value_specs = specs

    def is_compatible_with(self, other: Any) -> bool:
        """Whether values of replicas, or what is known of such values, are as this says."""
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
    """Values that are the same on every replica. Used as one value, it is the replica's own, or the first."""

    def _as_tensor(self) -> EagerTensor:
        """What operations compute with."""
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
    """Put the values of the replicas together: structures part by part, and what is the same only once.

    ``always``: what is the same, too, is a distributed value.

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
    if not any(is_nested(value) for value in values):
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
    """The part of one replica: its value in the place of each distributed one."""
    if isinstance(structure, DistributedValues):
        # A variable picks its copy itself, whenever it is used.
        return structure if hasattr(structure, "_storage") else structure.values[index]
    if not is_nested(structure):
        return structure
    if isinstance(structure, Mapping):
        parts = {key: select(index, value) for key, value in structure.items()}
        return parts if type(structure) is dict else type(structure)(parts)  # type: ignore[call-arg]
    return _sequence(structure, [select(index, value) for value in structure])


def _sequence(like: Any, parts: list[Any]) -> Any:
    return type(like)(*parts) if hasattr(like, "_fields") else type(like)(parts)


__all__ = ["DistributedValues", "Mirrored", "PerReplica", "PerReplicaSpec", "regroup", "select"]
