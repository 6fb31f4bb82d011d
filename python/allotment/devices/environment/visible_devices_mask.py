"""``CUDA_VISIBLE_DEVICES``: which GPUs there are and in which order, by the rules of NVIDIA's driver."""

import re
from collections.abc import Sequence
from dataclasses import dataclass

from allotment._core import show_value
from allotment.devices.device_tuples import HardwareIndex
from allotment.devices.environment.variables import BLANKS

#: As C's ``strtoul`` reads: leading digits count, whatever follows does not.
_LEADING_NUMBER = re.compile(rf"[{BLANKS}]*(?P<sign>[+-]?)0*(?P<digits>[0-9]+)")

#: Texts that programs write for "none": they need no warning.
_DELIBERATE = frozenset({"", "-1", "NoDevFiles", "none", "void"})


@dataclass(frozen=True, slots=True)
class Mask:
    """The GPUs that a value of the variable leaves."""

    #: The GPUs that are left, in the order of the value.
    chosen: tuple[HardwareIndex, ...]
    #: A sentence about the part of the value that names no GPU; ``None`` if each part names one.
    fault: str | None = None


def read_mask(text: str | None, identifiers: Sequence[str]) -> Mask:
    """Apply a mask to GPUs with these identifiers (``GPU-…``), in the hardware's order.

    Unset means all. Otherwise a list: indices, or prefixes of identifiers that fit one GPU alone; the first
    item says which of the two. The list ends at the first item that names no GPU. A GPU that is named twice
    leaves none at all.
    """
    if text is None:
        return Mask(tuple(HardwareIndex(index) for index in range(len(identifiers))))
    chosen: list[HardwareIndex] = []
    by_identifier = text.startswith(("GPU-", "MIG-"))
    for item in text.split(","):
        index = _by_identifier(item, identifiers) if by_identifier else _by_index(item, len(identifiers))
        if index is None:
            if item.strip(BLANKS) in _DELIBERATE:
                return Mask(tuple(chosen))
            return Mask(tuple(chosen), f"{show_value(item)} names no GPU, and the list ends there")
        if index in chosen:
            return Mask((), f"{show_value(item)} names a GPU for the second time, which leaves none at all")
        chosen.append(index)
    return Mask(tuple(chosen))


def _by_index(item: str, count: int) -> HardwareIndex | None:
    number = _LEADING_NUMBER.match(item)
    # Python does not read a number of more than 4300 digits; no machine has GPUs enough for ten.
    if number is None or number["sign"] == "-" or len(number["digits"]) >= 10:
        return None
    index = int(number["digits"])
    return HardwareIndex(index) if index < count else None


def _by_identifier(item: str, identifiers: Sequence[str]) -> HardwareIndex | None:
    # "MIG-…" lands here, too: part of a GPU, of which there are none.
    if not item.startswith("GPU-"):
        return None
    fitting = [index for index, identifier in enumerate(identifiers) if identifier.startswith(item)]
    return HardwareIndex(fitting[0]) if len(fitting) == 1 else None
