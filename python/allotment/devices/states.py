"""The two states of the runtime: open, where settings may change, and ready, where logical devices exist."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple, NoReturn

from allotment.devices.caller import Caller
from allotment.devices.configuration import Configuration
from allotment.devices.explain import explained

if TYPE_CHECKING:
    # The devices are made of the configuration by modules whose setters take a state.
    from allotment.devices.logical import LogicalDeviceRuntime


class Change(NamedTuple):
    """A change of a setting, in texts for messages."""

    #: The setting and whose it is, such as ``Memory growth of /physical_device:GPU:0``.
    what: str
    now: str
    wanted: str


@dataclass(frozen=True, slots=True)
class Open:
    """Physical devices are known, nothing is reserved, and the configuration may change."""

    configuration: Configuration
    #: Who asked about devices first; the environment was read then.
    asked_by: Caller

    def changeable(self, refusal: str, change: Change) -> Configuration:
        """The configuration, to be changed. In the other state ``refusal`` is raised instead."""
        del refusal, change
        return self.configuration


@dataclass(frozen=True, slots=True)
class Ready:
    """Logical devices and their pools exist, for as long as the process lives."""

    configuration: Configuration
    asked_by: Caller
    #: Whose call made them.
    started_by: Caller
    #: The CPU's first, then those of GPUs, each by index.
    devices: "tuple[LogicalDeviceRuntime, ...]"

    def changeable(self, refusal: str, change: Change) -> NoReturn:
        """Refuse a change, in TensorFlow's words, and say what it is, and which call came before it.

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


#: What the setters work on.
State = Open | Ready
