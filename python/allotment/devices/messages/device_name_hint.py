"""Suggests a device name in place of a refused one."""

import re
from collections.abc import Iterable, Iterator
from typing import Protocol

from allotment._core import show_text
from allotment.devices.device_tuples import PhysicalDevice
from allotment.devices.names import parse_runtime


class _Physical(Protocol):
    @property
    def device(self) -> PhysicalDevice: ...


class _Logical(Protocol):
    @property
    def short_name(self) -> str: ...
    @property
    def kind(self) -> str: ...
    @property
    def physical(self) -> _Physical: ...


_OTHER_LIBRARIES = re.compile(r"/?cuda(?::(?P<index>[0-9]+))?", re.IGNORECASE)
_CASE = re.compile(r"(?P<kind>cpu|gpu):(?P<index>[0-9]+)", re.IGNORECASE)


def hint_for(text: str, devices: Iterable[_Logical]) -> str:
    """Return sentences: what to write instead of ``text``, and the names of all devices."""
    devices = tuple(devices)
    names = ", ".join(device.short_name for device in devices)
    return " ".join([*_better(text, devices), f"There are: {names}."])


def _better(text: str, devices: tuple[_Logical, ...]) -> Iterator[str]:
    if (other := _OTHER_LIBRARIES.fullmatch(text)) is not None:
        yield f"Write '/GPU:{other['index'] or 0}'."
    elif text.startswith("/physical_device:"):
        logical = [device.short_name for device in devices if device.physical.device.name == text]
        if logical:
            yield f"'{show_text(text)}' names a physical device; write {' or '.join(map(repr, logical))}."
        else:
            yield f"'{show_text(text)}' names a physical device that no logical device is on."
    elif (case := _CASE.fullmatch(text)) is not None and text != text.upper():
        yield f"Write '{show_text(text.upper())}' or '/{case['kind'].lower()}:{case['index']}'."
    elif parse_runtime(text) is None:
        yield "Write a type and an index, as in 'GPU:0', '/GPU:0' or '/device:GPU:0'."
