"""Scopes over the pools of devices, which count and limit the allocations of a ``with`` block."""

from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from types import MappingProxyType, TracebackType
from typing import Any, Self

from allotment._core import Scope
from allotment.devices.context import context
from allotment.devices.logical import LogicalDeviceRuntime
from allotment.devices.memory.live_changes import with_pool


class MemoryScope:
    """Counts and limits the allocations of a ``with`` block on one device or on several, each with a scope of its own.

    Figures are bytes, as those of ``Scope``: the present ones while the block runs, those of its end afterwards.
    """

    def __init__(self, name: str, scopes: Mapping[str, Scope]) -> None:
        self.name = name
        #: The scope of each device, by the device's name.
        self.by_device: Mapping[str, Scope] = MappingProxyType(dict(scopes))
        self._entered = ExitStack()

    @property
    def peak(self) -> int:
        """The peak of the bytes held; of several devices, the sum of their peaks."""
        return sum(scope.peak for scope in self.by_device.values())

    @property
    def allocated(self) -> int:
        """Bytes ever allocated in it."""
        return sum(scope.allocated for scope in self.by_device.values())

    @property
    def freed(self) -> int:
        """Bytes freed of those."""
        return sum(scope.freed for scope in self.by_device.values())

    @property
    def live(self) -> int:
        """Bytes held now, or at the end of the block."""
        return sum(scope.live for scope in self.by_device.values())

    def set_limit(self, limit: int | str | None) -> None:
        """Change the limit of the scope on each of its devices, or take it away with ``None``.

        Args:
            limit: The most that each device may hold for the block: bytes, or a text such as ``"1GiB"``.

        Raises:
            ValueError: Not a size.
            RuntimeError: The block has ended.
        """
        for scope in self.by_device.values():
            scope.set_limit(limit)

    def __repr__(self) -> str:
        devices = ", ".join(f"{name}: {scope!r}" for name, scope in self.by_device.items())
        return f"<allotment.MemoryScope {self.name!r}: {devices}>"

    def __enter__(self) -> Self:
        with ExitStack() as entered:
            for scope in self.by_device.values():
                entered.enter_context(scope)
            self._entered = entered.pop_all()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._entered.__exit__(kind, value, trace)


def make_scope(
    devices: Sequence[LogicalDeviceRuntime],
    name: str,
    device: Any,
    limit: int | str | None,
    every_thread: bool,
) -> MemoryScope:
    """Make a scope over a device, or over all GPUs for ``None``; ``limit`` is for each.

    Raises:
        ValueError: No such device, or it has no pool; or there is no GPU.
    """
    if device is not None:
        chosen = [with_pool(devices, device)]
    else:
        chosen = [(one, one.pool) for one in devices if one.kind == "GPU" and one.pool is not None]
    if not chosen:
        why = context().state().configuration.why_gpus_are_absent()
        raise ValueError(
            f"There is no GPU to count the memory of: name a device that has a pool. {why}".rstrip()
        )
    scopes = {
        one.short_name: pool.scope(name, limit=limit, every_thread=every_thread) for one, pool in chosen
    }
    return MemoryScope(name, scopes)
