"""Where an operation runs: a requested device, a fallback rule and the existing devices give a device or an error.

The functions here know neither operations nor graphs. ``dispatch`` keeps a ``Placement`` for the device scope that a
thread is in: everything an operation needs to know that stays the same from one operation to the next.
"""

from collections.abc import Iterable
from dataclasses import replace
from typing import ClassVar, Final

from allotment import errors
from allotment._core import show_text
from allotment.devices.context import LogicalDeviceRuntime as Device
from allotment.devices.context import Ready, context
from allotment.devices.memory_runner import MemoryRunner, runner_of
from allotment.devices.names import DeviceName, parse, parse_runtime_slashes

#: Kinds of device, the best first.
_KINDS: Final = ("GPU", "CPU")

#: The operation that makes values. Its placement errors do not name it.
_CONST: Final = "_EagerConst"

_context: Final = context()


class Placement:
    """The placement of a thread's operations while its device scope and the flags stay the same.

    Args:
        request: The name that the device scope requests; ``None`` outside of all scopes.
        runners: The memory runners of this thread, by device; new ones are added to it.
        recorded: Whether a recorder is told of each operation, which then always takes the slow path.
    """

    #: Whether an operation that changes a variable changes it.
    changes_variables: ClassVar[bool] = True

    __slots__ = (
        "_kernels_elsewhere",
        "_placed",
        "_ready",
        "_request",
        "_runners",
        "_soft",
        "_unknown",
        "compute",
        "home",
        "host",
        "logging",
        "policy",
        "request",
        "run_on_host",
        "version",
    )

    def __init__(
        self, request: DeviceName | None, runners: dict[Device, MemoryRunner], *, recorded: bool
    ) -> None:
        ready = _context.ready()
        #: ``flags_version`` of the flags that this placement was made under.
        self.version = _context.flags_version
        self.request = request
        self.logging: bool = _context.log_device_placement
        self.policy: str = _context.device_policy
        self.host = ready.devices[0]
        self._ready: Ready = ready
        self._soft: bool = _context.soft_device_placement
        #: Whether an operation without a kernel for an existing requested device runs on another one.
        self._kernels_elsewhere: bool = _context.soft_placement is not False
        #: The request in the runtime's grammar, which places kernels: there ``*`` is a part that is not set.
        self._request: DeviceName | None = (
            None if request is None else parse_runtime_slashes(request.to_string())
        )
        #: Whether values cannot be made. They go to a ``CPU:0`` by its name, and no other device replaces it.
        self._unknown = request is not None and _is_unknown(request, ready)
        self._runners = runners
        self._placed: dict[tuple[str, ...], Device | None] = {}
        #: The device where an operation with all kernels runs and keeps its values on the fast path. ``None`` where
        #: every operation takes the slow path: with a log, a policy, a recorder or an impossible request. No tensor
        #: has the home ``None``, so that one comparison decides.
        self.home: Device | None = None
        #: Calls a function of arrays in the memory of the first CPU.
        self.run_on_host: MemoryRunner = self.runner(self.host)
        #: Calls a function of arrays in the memory of ``home``.
        self.compute: MemoryRunner = self.run_on_host
        if not self.logging and self.policy == "silent" and not recorded and not self._unknown:
            self.home = self._pick(_KINDS)
        if self.home is not None:
            self.compute = self.runner(self.home)

    def place(self, kinds: tuple[str, ...], op: str, name: str | None, constants: bool = False) -> Device:
        """Return the device of an operation.

        Args:
            kinds: Kinds of device that the operation has kernels for, the best first.
            op: The operation's type, for errors.
            name: The caller's name of the operation, for errors.
            constants: Whether values are made for it first, which the request may forbid.

        Raises:
            InvalidArgumentError: The requested device does not exist, or has no kernel, and no other may replace it;
                or the request is not a name in the runtime's grammar.
        """
        if self._unknown and (constants or op == _CONST):
            assert self.request is not None
            raise errors.InvalidArgumentError(
                None, None, f"{show_text(self.request.to_string())} unknown device."
            )
        if kinds not in self._placed:
            self._placed[kinds] = self._pick(kinds)
        device = self._placed[kinds]
        if device is not None:
            return device
        if constants:
            self.place(_KINDS, _CONST, None)
        raise self._refusal(kinds, op, name)

    def check(self, op: str, name: str | None) -> None:
        """Check the request of an operation that runs where its variable is, whatever the request.

        Raises:
            InvalidArgumentError: The request is not a name in the runtime's grammar.
        """
        if self.request is not None and self._request is None:
            raise self._refusal((), op, name)

    def _refusal(self, kinds: tuple[str, ...], op: str, name: str | None) -> errors.InvalidArgumentError:
        assert self.request is not None, "without a request there is always the CPU"
        if self._request is None:
            # TensorFlow goes on with the attributes of the operation.
            tail = "" if op == _CONST else f" name: {name or ''}"
            return errors.InvalidArgumentError(
                None,
                None,
                f"Malformed device specification '{show_text(self.request.to_string())}' in eager op: Name: {op}\n"
                f"Device Name: []\nDevice: []\nAttrs: {tail}",
            )
        existing = {each.kind for each in self._ready.devices if each.computes()}
        tail = "" if op == _CONST else f" [Op:{op}] name: {name or ''}"
        return errors.InvalidArgumentError(
            None,
            None,
            f"Could not satisfy device specification '{show_text(self._request.to_string())}'. "
            f"enable_soft_placement={int(self._soft)}. "
            f"Supported device types [{', '.join(kind for kind in kinds if kind in existing)}]. "
            f"All available devices [{', '.join(each.name for each in self._ready.devices)}].{tail}{self._absent()}",
        )

    def _absent(self) -> str:
        """Return lines for an error about a requested GPU: what hides GPUs, or what they lack."""
        if self._request is None or self._request.kind != "GPU":
            return ""
        asked = [each for each in self._ready.devices if self._request.matches(parse(each.name))]
        return f"\n{self._ready.configuration.why_gpus_are_absent()}".rstrip() + faults_of(asked)

    def _pick(self, kinds: tuple[str, ...]) -> Device | None:
        """Return the first device of the best kind that matches the request.

        With soft placement it may be of any kind and index. Unless the program turned soft placement off, an operation
        that has no kernel for an existing device gets one of any kind, too.
        """
        if self.request is None:
            requests = [DeviceName()]
        elif self._request is None:
            return None
        elif self._soft or (self._kernels_elsewhere and self._exists(self._request)):
            requests = [self._request, replace(self._request, kind=None, index=None)]
        else:
            requests = [self._request]
        for each in requests:
            for kind in kinds:
                for device in self._ready.devices:
                    if device.kind == kind and each.matches(parse(device.name)) and device.computes():
                        return device
        return None

    def _exists(self, request: DeviceName) -> bool:
        return any(request.matches(parse(device.name)) for device in self._ready.devices)

    def runner(self, device: Device) -> MemoryRunner:
        """Return this thread's memory runner of a device."""
        return runner_of(self._runners, device)


def faults_of(devices: Iterable[Device]) -> str:
    """Return why nothing can compute on devices, a line for each reason, each with a line break before it."""
    libraries = (device.library for device in devices)
    found = dict.fromkeys(each.fault for each in libraries if each is not None)
    return "".join(f"\nOperations do not run on real GPUs: {fault}." for fault in found if fault is not None)


def _is_unknown(request: DeviceName, ready: Ready) -> bool:
    name = request.to_string()
    return (request.kind, request.index) == ("CPU", 0) and all(
        device.name != name for device in ready.devices
    )
