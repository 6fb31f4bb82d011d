"""One call of ``Strategy.run``: replicas in threads of their own, and the meetings where they wait for each other.

Replicas only send: that they arrived at a meeting, ended or failed. The thread that called ``run`` leads: it alone
knows how far each is, does what a meeting is for, and answers. So nothing of a step is shared, and no lock is held
while a replica's code runs.

    replica 0    ──compute──arrived · · · · · answered──compute──ended
    replica 1    ──compute────────────arrived answered──compute───────ended
    leader                                  perform                        return
"""

import contextvars
import os
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, field
from queue import Empty, SimpleQueue
from typing import Any

from allotment.errors import DeadlineExceededError
from allotment.tf.distribute import failures
from allotment.tf.distribute.errands import helped_by
from allotment.tf.distribute.workers import Worker, dismiss, hire

#: Does what a meeting is for: from the arguments of each replica to the answer for each.
Perform = Callable[[list[Any]], Sequence[Any]]


class ReplicaStopped(BaseException):
    """Ends a replica whose step is over because another one failed.

    Not an ``Exception``: a replica's own error handling is not meant to catch it.
    """


@dataclass(frozen=True, slots=True)
class Meeting:
    """What a replica waits for the others with."""

    #: For people, such as ``all_reduce(SUM)``.
    what: str
    #: Replicas that meet must have the same.
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
    answers: SimpleQueue[Any] = field(default_factory=SimpleQueue)
    #: What it waits in, if it waits.
    meeting: Meeting | None = None
    ended: bool = False
    value: Any = None
    error: BaseException | None = None
    #: Nobody waits for it any more.
    given_up: bool = False

    @property
    def is_running(self) -> bool:
        """Whether nobody knows when it will be heard of next."""
        return not self.ended and self.meeting is None


@dataclass(frozen=True, slots=True)
class _Ended:
    value: Any = None
    error: BaseException | None = None
    #: Whether the thread can be used again.
    clean: bool = True


@dataclass(frozen=True, slots=True)
class _Errand:
    """What a replica that waits does for the leader."""

    #: Which ones it is done with, and its number among them.
    batch: object
    number: int
    function: Callable[[], Any]


@dataclass(frozen=True, slots=True)
class _Done:
    """What came of an errand."""

    errand: _Errand
    value: Any = None
    error: BaseException | None = None


_STOP = object()

#: Seconds that replicas have to end when the program is interrupted.
_LEAVE = 1.0


class Line:
    """A replica's own end of a step."""

    def __init__(
        self, replica: Replica, events: "SimpleQueue[tuple[Replica, Meeting | _Ended | _Done]]"
    ) -> None:
        self._replica = replica
        self._events = events
        self._process = os.getpid()
        self._stopped = False
        #: The replica has ended: nobody would hear it.
        self._is_over = False

    @property
    def is_inherited(self) -> bool:
        """Whether this is a forked child of the process that the step is in: no thread leads the step in a child."""
        return os.getpid() != self._process

    def close(self) -> None:
        """Let nobody wait here any more."""
        self._is_over = True

    def meet(self, what: str, key: Hashable, perform: Perform, arguments: Any) -> Any:
        """Wait for the other replicas; when all are there, get this one's answer.

        Raises:
            ReplicaStopped: The step has failed.
            RuntimeError: The replica has ended.
        """
        if self._is_over:
            raise RuntimeError(
                f"{what}: replica {self._replica.index} on {self._replica.device} has ended, so that no other one "
                "would come. A replica context is of use until its call of Strategy.run returns: ask for "
                "tf.distribute.get_replica_context() in each"
            )
        if self._stopped:
            raise ReplicaStopped
        if self.is_inherited:
            raise RuntimeError(
                f"{what}: this process was forked inside replica {self._replica.index}, and the other replicas are "
                "threads of its parent. Do not call the strategy in the child, or start processes with the method "
                '"spawn", outside of Strategy.run'
            )
        self._events.put((self._replica, Meeting(what, key, perform, arguments)))
        while isinstance(answer := self._replica.answers.get(), _Errand):
            self._run(answer)
            # While it waits for the next one, it holds nothing of this one.
            del answer
        if answer is _STOP:
            self._stopped = True
            raise ReplicaStopped
        return answer[0]

    def _run(self, errand: "_Errand") -> None:
        try:
            value = errand.function()
        except BaseException as error:
            self._events.put((self._replica, _Done(errand, error=error)))
        else:
            self._events.put((self._replica, _Done(errand, value)))


class Step:
    """Runs a function once for each replica, and leads.

    Args:
        devices: Full names of the replicas' devices.
        deadline: The longest time in seconds without a word of any replica; ``None`` waits for ever.
        title: What is said to have run, for people.
        is_clean: Asked on a replica's thread when it has ended: whether it left nothing there.
    """

    def __init__(
        self, devices: Sequence[str], deadline: float | None, title: str, is_clean: Callable[[], bool]
    ) -> None:
        self._devices = devices
        self._deadline = deadline
        self._title = title
        self._is_clean = is_clean
        self._events: SimpleQueue[tuple[Replica, Meeting | _Ended | _Done]] = SimpleQueue()
        self._replicas: list[Replica] = []
        #: Those that were not heard of for too long.
        self._lost: list[Replica] = []

    def run(self, function: Callable[[int, Line], Any]) -> list[Any]:
        """Call ``function`` with each replica's index and line, on threads of their own. Returns the values by replica.

        Raises:
            DeadlineExceededError: A replica is not heard of for too long.
            RuntimeError: The replicas do not meet for the same.
            BaseException: What a replica raised, or a meeting.
        """
        try:
            try:
                self._start(function)
                while self._wait():
                    self._hold_meeting()
            except BaseException as error:
                self._stop(error)
                raise
            if any(replica.error is not None for replica in self._replicas):
                raise self._stop(None)
            return [replica.value for replica in self._replicas]
        finally:
            # What the frames of an error hold would be held by it.
            self._replicas.clear()
            self._lost.clear()

    def _start(self, function: Callable[[int, Line], Any]) -> None:
        for index, device in enumerate(self._devices):
            replica = Replica(index, device, hire())
            self._replicas.append(replica)
            replica.worker.do(self._job(replica, function))

    def _job(self, replica: Replica, function: Callable[[int, Line], Any]) -> Callable[[], None]:
        # What the caller has set for this context, such as NumPy's handling of errors, holds in each replica.
        context = contextvars.copy_context()
        events, is_clean = self._events, self._is_clean

        def work() -> None:
            line = Line(replica, events)
            try:
                try:
                    value = context.run(function, replica.index, line)
                finally:
                    line.close()
            except BaseException as error:
                if line.is_inherited:
                    raise
                # Nothing in this frame may hold the error, which holds the frame, and so all that the replica had.
                if not replica.given_up:
                    events.put((replica, _Ended(error=error, clean=is_clean())))
            else:
                events.put((replica, _Ended(value, clean=is_clean())))

        return work

    def _wait(self) -> bool:
        """Wait until every replica waits or has ended, or one has failed. Returns whether there is a meeting."""
        while any(replica.is_running for replica in self._replicas):
            try:
                replica, event = self._events.get(timeout=self._deadline)
            except Empty as error:
                error.__traceback__ = None
                assert self._deadline is not None
                self._lost = [replica for replica in self._replicas if replica.is_running]
                raise failures.hung(self._title, self._replicas, self._deadline) from None
            if isinstance(event, Meeting):
                replica.meeting = event
                continue
            # What comes of an errand that nobody waited for any more is dropped.
            if isinstance(event, _Ended):
                self._end(replica, event)
                if event.error is not None:
                    return False
        return any(not replica.ended for replica in self._replicas)

    def _end(self, replica: Replica, event: _Ended) -> None:
        replica.ended, replica.value, replica.error = True, event.value, event.error
        if event.clean:
            dismiss(replica.worker)
        else:
            replica.worker.retire()

    def _hold_meeting(self) -> None:
        """Do what all replicas wait for, and answer them."""
        meetings = [replica.meeting for replica in self._replicas]
        first = meetings[0]
        if first is None or any(each is None or each.key != first.key for each in meetings):
            raise failures.disagreeing(self._replicas)
        arguments = [each.arguments for each in meetings if each is not None]
        with helped_by(self._help):
            answers = first.perform(arguments)
        for replica, answer in zip(self._replicas, answers, strict=True):
            replica.meeting = None
            replica.answers.put((answer,))

    def _help(self, functions: Sequence[Callable[[], Any]]) -> list[Any]:
        """Let the replicas, which all wait, call functions by turns."""
        batch = object()
        for number, function in enumerate(functions):
            self._replicas[number % len(self._replicas)].answers.put(_Errand(batch, number, function))
        values: list[Any] = [None] * len(functions)
        errors: dict[int, BaseException] = {}
        missing = len(functions)
        while missing:
            _, event = self._events.get()
            assert isinstance(event, _Done), "who waits does nothing else"
            # An earlier batch may have been left before it was done, by an interrupt.
            if event.errand.batch is batch:
                missing -= 1
                if event.error is None:
                    values[event.errand.number] = event.value
                else:
                    errors[event.errand.number] = event.error
            # What this frame holds, an error would hold that is raised here.
            del event
        if errors:
            values.clear()
            error = errors[min(errors)]
            errors.clear()
            try:
                raise error
            finally:
                del error
        return values

    def _stop(self, error: BaseException | None) -> BaseException:
        """End all replicas, wait for those that run, and say in a note to the error what became of each.

        Returns the error; without one that of the first replica that failed, as if they ran one after the other.
        """
        places = failures.places(self._replicas)
        # Those that were not heard of for too long get no more time.
        lost = self._lost if isinstance(error, DeadlineExceededError) else []
        for replica in self._replicas:
            replica.answers.put(_STOP)
        # Whoever interrupts a program does not want to wait for its replicas.
        patience = self._deadline if error is None or isinstance(error, Exception) else _LEAVE
        try:
            while any(not replica.ended and replica not in lost for replica in self._replicas):
                replica, event = self._events.get(timeout=patience)
                if isinstance(event, _Ended):
                    self._end(replica, event)
        except Empty:
            pass
        finally:
            for replica in self._replicas:
                if not replica.ended:
                    # What it does when it comes back is nobody's business any more.
                    replica.given_up = True
                    replica.worker.retire()
            if error is None:
                error = next(
                    replica.error
                    for replica in self._replicas
                    if replica.error is not None and not isinstance(replica.error, ReplicaStopped)
                )
            failures.add_note(error, self._title, self._replicas, places, ReplicaStopped)
            for replica in self._replicas:
                replica.value = replica.error = replica.meeting = None
        return error


__all__ = ["Line", "Meeting", "Replica", "ReplicaStopped", "Step"]
