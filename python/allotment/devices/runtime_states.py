"""The two states of the runtime: open, where settings may change, and ready, where logical devices exist."""

from dataclasses import dataclass
from typing import NoReturn

from allotment.devices.configuration import Change, Configuration
from allotment.devices.logical import LogicalDeviceRuntime
from allotment.devices.messages.call_site import Caller
from allotment.devices.messages.device_errors import explained


@dataclass(frozen=True, slots=True)
class Open:
    """Physical devices are known, nothing is reserved, and the configuration may change."""

    configuration: Configuration
    #: The first call that asked about devices. It read the environment.
    asked_by: Caller

    def changeable(self, refusal: str, change: Change) -> Configuration:
        """Return the configuration to change. The other state raises an error with these arguments instead."""
        del refusal, change
        return self.configuration


@dataclass(frozen=True, slots=True)
class Ready:
    """Logical devices and their pools exist, until the process or ``allotment.testing.runtime`` ends."""

    configuration: Configuration
    #: The first call that asked about devices.
    asked_by: Caller
    #: The call that made the logical devices.
    started_by: Caller
    #: The CPU's first, then those of GPUs, each by index.
    devices: tuple[LogicalDeviceRuntime, ...]

    def changeable(self, refusal: str, change: Change) -> NoReturn:
        """Refuse a change in TensorFlow's words, with the change and the call that came before it.

        Args:
            refusal: TensorFlow's text.
            change: The refused change.

        Raises:
            RuntimeError: Always.
        """
        raise explained(
            RuntimeError,
            refusal,
            f"{change.what}: {change.now} now, and this call asks for {change.wanted}. "
            f"It was initialized by {self.started_by}. Make this call before that one: restart the program, in a "
            "notebook its kernel.",
            recorded=not self.configuration.gpus,
        )


State = Open | Ready
