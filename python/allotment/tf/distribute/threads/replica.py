"""The state of a replica in a step, as the thread that leads the step tracks it."""

from collections.abc import Hashable
from dataclasses import dataclass, field
from queue import SimpleQueue
from typing import Any

from allotment.tf.distribute.scopes import Perform
from allotment.tf.distribute.threads.workers import Worker


class ReplicaStopped(BaseException):
    """Ends a replica whose step is over because another replica failed.

    Not an ``Exception``: a replica's own error handling is not meant to catch it.
    """


@dataclass(frozen=True, slots=True)
class CollectiveCall:
    """A call that a replica makes together with all others; see ``Channel.call_together``."""

    #: For messages, such as ``all_reduce(SUM)``.
    description: str
    #: Equal for calls that belong together.
    key: Hashable
    perform: Perform
    arguments: Any


@dataclass(slots=True, eq=False)
class Replica:
    """A replica of a step, as the leader sees it."""

    index: int
    #: Full name of its device.
    device: str
    worker: Worker
    replies: SimpleQueue[Any] = field(default_factory=SimpleQueue)
    #: The collective call that it waits in, if it waits.
    call: CollectiveCall | None = None
    ended: bool = False
    value: Any = None
    error: BaseException | None = None
    #: The leader does not wait for it any more.
    is_abandoned: bool = False

    @property
    def is_running(self) -> bool:
        """Whether it has neither ended nor waits in a collective call."""
        return not self.ended and self.call is None


__all__ = ["CollectiveCall", "Replica", "ReplicaStopped"]
