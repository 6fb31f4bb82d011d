"""Scopes inside of scopes: the device name that is in force, and what it becomes in the next scope."""

from typing import Any, ClassVar, Final

from allotment.devices.context import context
from allotment.devices.device_spec import DeviceSpec
from allotment.devices.expected import expected_device
from allotment.devices.explain import explained
from allotment.devices.names import DeviceName, parse
from allotment.devices.values import LogicalDevice
from allotment.text import show_text

_context: Final = context()


class Wish:
    """A device name in force, and what entering a scope inside of it leads to.

    There is one object for each name and the scope entered in it, so that entering a scope again is one look into
    a dictionary, and leaving it can tell by identity, as TensorFlow does, whether it is the innermost.
    """

    __slots__ = ("_inner", "name")

    #: What is inside of equal names is the same.
    _inners: ClassVar[dict[DeviceName | None, "dict[str | None, Wish]"]] = {}

    def __init__(self, name: DeviceName | None) -> None:
        self.name = name
        self._inner = self._inners.setdefault(name, {})

    def merged_with(self, text: str | None) -> "Wish":
        """The wish inside of this one; that of ``None`` forgets all names.

        Raises:
            ValueError: Not a device name.
        """
        inner = self._inner.get(text)
        if inner is None:
            inner = self._inner.setdefault(text, Wish(None if text is None else self._merged_name(text)))
        return inner

    def _merged_name(self, text: str) -> DeviceName:
        name = parse(text)
        # Outside of all scopes the first device lends what the text does not say.
        outer = parse(_context.ready().devices[0].name) if self.name is None else self.name
        return outer.merged_with(name)


#: No scope.
NO_WISH: Final = Wish(None)


def read_wish(given: Any, outer: Wish) -> Wish:
    """The wish of what was given to ``device(...)`` inside of another one.

    Raises:
        ValueError: Not a device name.
    """
    if isinstance(given, DeviceSpec):
        given = given.to_string()
    elif isinstance(given, LogicalDevice):
        given = given.name
    elif given is not None and not isinstance(given, str):
        text = f"Expecting a string device name. Got {type(given)}({show_text(str(given))})"
        names = ", ".join(each.short_name for each in _context.ready().devices)
        detail = expected_device(
            "name of a device", given, f"there are: {names}", of_many="open a scope for each"
        )
        recorded = not _context.ready().configuration.machine_has_gpus
        raise explained(ValueError, text, detail, recorded=recorded)
    return outer.merged_with(given)
