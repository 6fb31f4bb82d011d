"""The device that a scope requests: a device name, and what it becomes in a scope inside of it."""

from typing import ClassVar, Final

from allotment._core import show_text
from allotment.devices.context import context
from allotment.devices.device_spec import DeviceSpec
from allotment.devices.device_tuples import LogicalDevice
from allotment.devices.messages.device_errors import expected_device, explained
from allotment.devices.names import DeviceName, parse

_context: Final = context()


class RequestedDevice:
    """A requested device name, and the requests of the scopes entered inside of it.

    There is one object for each name and the scope entered in it. Entering a scope again is then one dictionary
    lookup, and leaving a scope compares identities, as TensorFlow does, to find out whether it is the innermost.
    """

    __slots__ = ("_inner", "name")

    #: Requests inside of a name, by the text of the inner scope. Equal names share them.
    _inner_by_name: ClassVar[dict[DeviceName | None, "dict[str | None, RequestedDevice]"]] = {}

    def __init__(self, name: DeviceName | None) -> None:
        self.name = name
        self._inner = self._inner_by_name.setdefault(name, {})

    def merged_with(self, text: str | None) -> "RequestedDevice":
        """Return the request of a scope inside of this one; ``None`` forgets all names.

        Raises:
            ValueError: ``text`` is not a device name.
        """
        inner = self._inner.get(text)
        if inner is None:
            name = None if text is None else self._merged_name(text)
            inner = self._inner.setdefault(text, RequestedDevice(name))
        return inner

    def _merged_name(self, text: str) -> DeviceName:
        name = parse(text)
        # Outside of all scopes the first device supplies the parts that the text leaves out.
        outer = parse(_context.ready().devices[0].name) if self.name is None else self.name
        return outer.merged_with(name)


#: The request outside of all scopes: any device.
NO_REQUEST: Final = RequestedDevice(None)


def read_request(given: object, outer: RequestedDevice) -> RequestedDevice:
    """Return the request of ``device(given)`` inside of the scope of ``outer``.

    Args:
        given: A text, a ``DeviceSpec``, a ``LogicalDevice`` or ``None``.
        outer: The request of the enclosing scope.

    Raises:
        ValueError: ``given`` is not a device name.
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
