"""``tf.data.Options``: options of data sets, which are inherited and merged and have no effect.

Strategies with several processes check ``experimental_distribute.auto_shard_policy``: see ``distribute/input``.
"""

from enum import IntEnum
from typing import Any, ClassVar, Self


class AutoShardPolicy(IntEnum):
    """The policy by which processes divide the elements of a data set. As ``tf.data.experimental.AutoShardPolicy``."""

    OFF = -1
    AUTO = 0
    FILE = 1
    DATA = 2
    HINT = 3


class _Fields:
    """An object with attributes of given names and types, which are ``None`` or a default until they are set."""

    #: The type of each attribute.
    _types: ClassVar[dict[str, type]] = {}
    #: The defaults of attributes other than ``None``.
    _defaults: ClassVar[dict[str, Any]] = {}
    #: Other names of attributes.
    _aliases: ClassVar[dict[str, str]] = {}

    def __init__(self) -> None:
        parts = {name: kind() for name, kind in self._types.items() if issubclass(kind, _Fields)}
        object.__setattr__(self, "_values", parts)
        object.__setattr__(self, "_is_result", False)

    def __getattr__(self, name: str) -> Any:
        name = self._aliases.get(name, name)
        if name not in self._types:
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")
        return self._values.get(name, self._defaults.get(name))

    def __setattr__(self, name: str, value: Any) -> None:
        if self._is_result:
            raise ValueError(
                "Mutating `tf.data.Options()` returned by `tf.data.Dataset.options()` has no effect. Use "
                "`tf.data.Dataset.with_options(options)` to set or update dataset options."
            )
        name = self._aliases.get(name, name)
        if name not in self._types:
            raise AttributeError(f"Cannot set the property {name} on {type(self).__name__}.")
        if not isinstance(value, self._types[name]):
            raise TypeError(
                f'Property "{name}" must be of type {self._types[name]}, got: {value} (type: {type(value)})'
            )
        self._values[name] = value

    def __dir__(self) -> list[str]:
        return sorted({*super().__dir__(), *self._types, *self._aliases})

    def __eq__(self, other: object) -> bool:
        return type(self) is type(other) and all(
            getattr(self, name) == getattr(other, name) for name in self._types
        )

    __hash__ = None  # type: ignore[assignment]

    def _merged(self, later: Self) -> Self:
        """Merge two objects; values of ``later`` take precedence."""
        made = type(self)()
        for name, kind in self._types.items():
            if issubclass(kind, _Fields):
                made._values[name] = getattr(self, name)._merged(getattr(later, name))
            else:
                given = later._values.get(name, self._values.get(name))
                if given is not None:
                    made._values[name] = given
        return made

    def _frozen(self) -> Self:
        """Return a copy that refuses changes."""
        made = self._merged(type(self)())
        for part in (made, *(each for each in made._values.values() if isinstance(each, _Fields))):
            object.__setattr__(part, "_is_result", True)
        return made


class DistributeOptions(_Fields):
    """Options for data sets of several processes. As ``tf.data.experimental.DistributeOptions``."""

    _types: ClassVar = {"auto_shard_policy": AutoShardPolicy, "num_devices": int}
    _defaults: ClassVar = {"auto_shard_policy": AutoShardPolicy.AUTO}


class ThreadingOptions(_Fields):
    """Numbers of threads. As ``tf.data.ThreadingOptions``."""

    _types: ClassVar = {"max_intra_op_parallelism": int, "private_threadpool_size": int}


class Options(_Fields):
    """Options of a data set, for ``Dataset.with_options``. As ``tf.data.Options``."""

    _types: ClassVar = {
        "deterministic": bool,
        "experimental_distribute": DistributeOptions,
        "threading": ThreadingOptions,
    }
    _aliases: ClassVar = {
        "experimental_deterministic": "deterministic",
        "experimental_threading": "threading",
    }

    def merge(self, options: "Options") -> "Options":
        """Return options with the values of both, those of ``options`` where both have some."""
        return self._merged(options)


__all__ = [
    "AutoShardPolicy",
    "DistributeOptions",
    "Options",
    "ThreadingOptions",
]
