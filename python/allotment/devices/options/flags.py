"""Settings that may change at any time (device-config API, section 7)."""

import operator
import threading
from typing import Any, Generic, TypeVar, overload

import numpy as np

from allotment._core import show_value

_T = TypeVar("_T")

POLICIES = ("silent", "silent_for_int32", "warn", "explicit")

#: Rewrites of graphs that are on, off or unset, in TensorFlow's order.
_TOGGLES_BEFORE = (
    "layout_optimizer",
    "constant_folding",
    "shape_optimization",
    "remapping",
    "arithmetic_optimization",
    "dependency_optimization",
    "loop_optimization",
    "function_optimization",
    "debug_stripper",
)
_TOGGLES_BETWEEN = (
    "scoped_allocator_optimization",
    "pin_to_host_optimization",
    "implementation_selector",
    "auto_mixed_precision",
    "use_plugin_optimizers",
)
_TOGGLES_AFTER = ("auto_mixed_precision_onednn_bfloat16", "auto_mixed_precision_mkl")


class _Flag(Generic[_T]):
    """An attribute; each change of it increments ``flags_version``."""

    def __init__(self, default: _T) -> None:
        self.default = default

    def __set_name__(self, owner: type, name: str) -> None:
        self.slot = f"_{name}"

    @overload
    def __get__(self, flags: None, owner: type) -> "_Flag[_T]": ...
    @overload
    def __get__(self, flags: "Flags", owner: type) -> _T: ...
    def __get__(self, flags: "Flags | None", owner: type) -> "_Flag[_T] | _T":
        if flags is None:
            return self
        value: _T = flags.__dict__.get(self.slot, self.default)
        return value

    def __set__(self, flags: "Flags", value: _T) -> None:
        flags.__dict__[self.slot] = value
        flags.flags_changed()


class Flags:
    """The flags of the process; the device policy is each thread's own once the runtime is ready."""

    #: Whether an operation may run elsewhere if its requested device cannot run it. ``None``: unset, which means off.
    soft_placement = _Flag[bool | None](None)
    #: Whether each operation logs its device. ``None``: unset, which means off.
    log_placement = _Flag[bool | None](None)
    #: Whether operations are done when their call returns. They always are; the flag is only kept.
    synchronous_execution = _Flag(True)
    #: Whether functions that TensorFlow would compile run as Python. They always do; the flag is only kept.
    functions_run_eagerly = _Flag(False)
    #: Rounding of float32 products on GPUs that can; only kept.
    tensor_float_32 = _Flag(True)
    #: Whether operations give the same result every time; only kept.
    deterministic = _Flag(False)
    #: Whether a compiler fuses operations; only kept.
    jit = _Flag(False)

    def __init__(self) -> None:
        #: Counts the changes of flags, and the step to ready. A value computed under one number is valid until the
        #: number changes.
        self.flags_version = 0
        self._version_lock = threading.Lock()
        self._policy: str = POLICIES[0]
        self._thread = threading.local()
        self._policy_per_thread = False
        self._optimizer_options: dict[str, Any] = {}

    def flags_changed(self) -> None:
        """Count ``flags_version`` up."""
        with self._version_lock:
            self.flags_version += 1

    @property
    def soft_device_placement(self) -> bool:
        """Whether an operation may run elsewhere if its requested device cannot run it."""
        return bool(self.soft_placement)

    @property
    def log_device_placement(self) -> bool:
        """Whether each operation logs its device."""
        return bool(self.log_placement)

    @property
    def device_policy(self) -> str:
        """The treatment of inputs on another device than the operation's: one of ``POLICIES``."""
        policy: str = getattr(self._thread, "policy", self._policy)
        return policy

    @device_policy.setter
    def device_policy(self, policy: str | None) -> None:
        if policy is None:
            policy = POLICIES[0]
        if policy not in POLICIES:
            raise ValueError(
                f"Invalid argument `device_policy`: {show_value(policy)}. Please refer to "
                "https://www.tensorflow.org/api_docs/python/tf/config/experimental/set_device_policy "
                f"for valid `device_policy` arguments: {', '.join(map(repr, POLICIES))}, or None."
            )
        if self._policy_per_thread:
            self._thread.policy = policy
        else:
            self._policy = policy
        self.flags_changed()

    @property
    def optimizer_options(self) -> dict[str, bool | int]:
        """The options that were set, and two that are always listed, in TensorFlow's order."""

        def listed(names: tuple[str, ...]) -> dict[str, bool | int]:
            return {
                name: bool(self._optimizer_options[name])
                for name in names
                if self._optimizer_options.get(name) is not None
            }

        options = listed(_TOGGLES_BEFORE)
        options["disable_model_pruning"] = bool(self._optimizer_options.get("disable_model_pruning"))
        options |= listed(_TOGGLES_BETWEEN)
        options["disable_meta_optimizer"] = bool(self._optimizer_options.get("disable_meta_optimizer"))
        options |= listed(_TOGGLES_AFTER)
        if nodes := self._optimizer_options.get("min_graph_nodes"):
            options["min_graph_nodes"] = operator.index(nodes)
        return options

    def add_optimizer_options(self, options: Any) -> None:
        """Set options, as ``dict.update`` does; ``None`` unsets one, and unknown names are never listed.

        Raises:
            TypeError: Neither a dictionary nor pairs.
            ValueError: Elements that are not pairs.
        """
        self._optimizer_options.update(options)
        self.flags_changed()

    def check_flags(self) -> None:
        """Check the flags of placement, which setters store unchecked.

        Raises:
            TypeError: A flag of placement is no bool.
        """
        for value in (self.soft_placement, self.log_placement):
            if value is not None:
                # Truth values and whole numbers are what TensorFlow's settings hold.
                operator.index(bool(value) if isinstance(value, np.bool_) else value)


def as_bool(value: Any) -> bool:
    """Read a bool as TensorFlow's settings of devices do: whole numbers are accepted, other things are not.

    Raises:
        TypeError: Neither a bool nor a whole number.
    """
    if isinstance(value, int) or hasattr(value, "__index__"):
        return bool(value)
    raise TypeError(f"{show_value(value)} has type {type(value).__name__}, but expected one of: (bool, int)")


def check_truth(value: Any) -> None:
    """Check that a value has a truth value of its own, as numbers do, and not one by its length.

    Raises:
        TypeError: It has none.
    """
    if value is not None and not hasattr(value, "__bool__"):
        raise TypeError(
            f"{show_value(value)} has type {type(value).__name__}, but expected one of: (bool, int)"
        )
