"""Options of data sets: ``tf.data.Options`` and what is in it. They are kept, passed on and merged; none has an effect.

With several processes ``experimental_distribute.auto_shard_policy`` is looked at: see ``distribute.input``.
"""

from enum import Enum, IntEnum
from typing import Any, ClassVar, Self


class AutoShardPolicy(IntEnum):
    """How processes divide the elements of a data set. As ``tf.data.experimental.AutoShardPolicy``."""

    OFF = -1
    AUTO = 0
    FILE = 1
    DATA = 2
    HINT = 3


class ExternalStatePolicy(Enum):
    """What becomes of state that cannot be saved. As ``tf.data.experimental.ExternalStatePolicy``."""

    WARN = 0
    IGNORE = 1
    FAIL = 2


class AutotuneAlgorithm(Enum):
    """How numbers of threads are found. As ``tf.data.experimental.AutotuneAlgorithm``."""

    DEFAULT = 0
    HILL_CLIMB = 1
    GRADIENT_DESCENT = 2
    MAX_PARALLELISM = 3
    STAGE_BASED = 4


class _Fields:
    """Attributes of given names and types, ``None`` or a default until they are set."""

    #: The type of each attribute.
    _types: ClassVar[dict[str, type]] = {}
    #: What attributes are before they are set, other than ``None``.
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
        """One with the values of both, those of ``later`` where both have some."""
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
        """A copy that refuses changes."""
        made = self._merged(type(self)())
        for part in (made, *(each for each in made._values.values() if isinstance(each, _Fields))):
            object.__setattr__(part, "_is_result", True)
        return made


class AutotuneOptions(_Fields):
    """How numbers of threads are found. As ``tf.data.experimental.AutotuneOptions``."""

    _types: ClassVar = {
        "autotune_algorithm": AutotuneAlgorithm,
        "cpu_budget": int,
        "enabled": bool,
        "initial_parallelism": int,
        "min_parallelism": int,
        "ram_budget": int,
    }


class DistributeOptions(_Fields):
    """How processes divide a data set. As ``tf.data.experimental.DistributeOptions``."""

    _types: ClassVar = {"auto_shard_policy": AutoShardPolicy, "num_devices": int}
    _defaults: ClassVar = {"auto_shard_policy": AutoShardPolicy.AUTO}


class OptimizationOptions(_Fields):
    """Which rewrites are made of a data set. As ``tf.data.experimental.OptimizationOptions``."""

    _types: ClassVar = dict.fromkeys(
        (
            *("apply_default_optimizations", "filter_fusion", "filter_parallelization", "inject_prefetch"),
            *("map_and_batch_fusion", "map_and_filter_fusion", "map_fusion", "map_parallelization"),
            *("noop_elimination", "parallel_batch", "seq_interleave_prefetch", "shuffle_and_repeat_fusion"),
        ),
        bool,
    )


class ServiceOptions(_Fields):
    """Options of a service for data. As ``tf.data.experimental.ServiceOptions``."""

    _types: ClassVar = {"pinned": bool}


class ThreadingOptions(_Fields):
    """Numbers of threads. As ``tf.data.ThreadingOptions``."""

    _types: ClassVar = {"max_intra_op_parallelism": int, "private_threadpool_size": int}


class Options(_Fields):
    """Options of a data set, for ``Dataset.with_options``. As ``tf.data.Options``."""

    _types: ClassVar = {
        "autotune": AutotuneOptions,
        "dataset_name": str,
        "deterministic": bool,
        "experimental_distribute": DistributeOptions,
        "experimental_external_state_policy": ExternalStatePolicy,
        "experimental_optimization": OptimizationOptions,
        "experimental_service": ServiceOptions,
        "experimental_slack": bool,
        "experimental_symbolic_checkpoint": bool,
        "experimental_warm_start": bool,
        "framework_type": list,
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
    "AutotuneAlgorithm",
    "AutotuneOptions",
    "DistributeOptions",
    "ExternalStatePolicy",
    "OptimizationOptions",
    "Options",
    "ServiceOptions",
    "ThreadingOptions",
]
