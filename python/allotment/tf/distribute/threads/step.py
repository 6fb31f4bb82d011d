"""One step, which is one call of ``Strategy.run``: replicas on threads of their own, and their collective calls.

Replicas only send events: a collective call, the end, or an error. The thread that called ``run`` is the leader: it
alone tracks the progress of each replica, performs collective calls and replies. So replicas share no state of the
step, and hold no lock while their code runs.

    replica 0    ──compute──call · · · · · · reply──compute──end
    replica 1    ──compute────────────call · reply──compute───────end
    leader                                perform                      return

Longer than 300 lines: the channel of replicas and the leader are the two ends of one protocol.
"""

import contextvars
import os
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from queue import Empty, SimpleQueue
from typing import Any

from allotment.errors import DeadlineExceededError
from allotment.tf.distribute.reductions.parallel import use_helpers
from allotment.tf.distribute.scopes import Perform
from allotment.tf.distribute.threads import failures
from allotment.tf.distribute.threads.replica import CollectiveCall, Replica, ReplicaStopped
from allotment.tf.distribute.threads.workers import give_back, take_worker


@dataclass(frozen=True, slots=True)
class _Ended:
    value: Any = None
    error: BaseException | None = None
    #: Whether the thread can be used again.
    clean: bool = True


@dataclass(frozen=True, slots=True)
class _Task:
    """A function that a replica runs for the leader while it waits."""

    #: The batch of tasks that it belongs to, and its number in the batch.
    batch: object
    number: int
    function: Callable[[], Any]


@dataclass(frozen=True, slots=True)
class _TaskResult:
    """The result of a task, or its error."""

    task: _Task
    value: Any = None
    error: BaseException | None = None


_STOP = object()

#: Seconds that replicas have to end when the program is interrupted.
_INTERRUPT_GRACE = 1.0


class StepChannel:
    """A replica's connection to the leader of its step, through which it waits for the other replicas."""

    def __init__(
        self, replica: Replica, events: "SimpleQueue[tuple[Replica, CollectiveCall | _Ended | _TaskResult]]"
    ) -> None:
        self._replica = replica
        self._events = events
        self._process = os.getpid()
        self._stopped = False
        #: The replica has ended, so that nothing reads its events.
        self._is_closed = False

    @property
    def is_inherited(self) -> bool:
        """Whether this process is a forked child of the step's, in which no thread leads the step."""
        return os.getpid() != self._process

    def close(self) -> None:
        """Refuse further calls."""
        self._is_closed = True

    def call_together(self, description: str, key: Hashable, perform: Perform, arguments: Any) -> Any:
        """Wait until every replica makes the same call, and return this replica's result. See ``Channel``.

        Raises:
            ReplicaStopped: The step has failed.
            RuntimeError: The replica has ended.
        """
        if self._is_closed:
            raise RuntimeError(
                f"{description}: replica {self._replica.index} on {self._replica.device} has ended, and no other "
                "replica makes this call. A replica context is valid until its call of Strategy.run returns: call "
                "tf.distribute.get_replica_context() in each"
            )
        if self._stopped:
            raise ReplicaStopped
        if self.is_inherited:
            raise RuntimeError(
                f"{description}: this process was forked inside replica {self._replica.index}, and the other "
                "replicas are threads of its parent. Do not call the strategy in the child, or start processes "
                'with the method "spawn", outside of Strategy.run'
            )
        self._events.put((self._replica, CollectiveCall(description, key, perform, arguments)))
        while isinstance(reply := self._replica.replies.get(), _Task):
            self._run(reply)
            # A reference here would keep the task's arrays alive until the next reply.
            del reply
        if reply is _STOP:
            self._stopped = True
            raise ReplicaStopped
        return reply[0]

    def _run(self, task: _Task) -> None:
        try:
            value = task.function()
        except BaseException as error:
            self._events.put((self._replica, _TaskResult(task, error=error)))
        else:
            self._events.put((self._replica, _TaskResult(task, value)))


class Step:
    """Runs a function once for each replica, and performs their collective calls.

    Args:
        devices: Full names of the replicas' devices.
        deadline: The longest time in seconds without an event of any replica; ``None`` waits for ever.
        title: The name of the call, for messages.
        is_clean: Called on a replica's thread when it has ended: whether the thread can run other replicas.
    """

    def __init__(
        self, devices: Sequence[str], deadline: float | None, title: str, is_clean: Callable[[], bool]
    ) -> None:
        self._devices = devices
        self._deadline = deadline
        self._title = title
        self._is_clean = is_clean
        self._events: SimpleQueue[tuple[Replica, CollectiveCall | _Ended | _TaskResult]] = SimpleQueue()
        self._replicas: list[Replica] = []
        #: The replicas that sent no event before the deadline.
        self._overdue: list[Replica] = []

    def run(self, function: Callable[[int, StepChannel], Any]) -> list[Any]:
        """Call ``function`` with each replica's index and channel, each on a thread of its own.

        Returns:
            The values by replica.

        Raises:
            DeadlineExceededError: A replica sends no event before the deadline.
            RuntimeError: The replicas make different collective calls.
            BaseException: The error of a replica, or of a collective call.
        """
        try:
            try:
                self._start(function)
                while self._wait():
                    self._perform_call()
            except BaseException as error:
                self._stop(error)
                raise
            if any(replica.error is not None for replica in self._replicas):
                raise self._stop(None)
            return [replica.value for replica in self._replicas]
        finally:
            # An error holds this frame, and would keep the replicas' values alive.
            self._replicas.clear()
            self._overdue.clear()

    def _start(self, function: Callable[[int, StepChannel], Any]) -> None:
        for index, device in enumerate(self._devices):
            replica = Replica(index, device, take_worker())
            self._replicas.append(replica)
            replica.worker.submit(self._job(replica, function))

    def _job(self, replica: Replica, function: Callable[[int, StepChannel], Any]) -> Callable[[], None]:
        # The caller's context variables, such as NumPy's handling of errors, are set in each replica.
        context = contextvars.copy_context()
        events, is_clean = self._events, self._is_clean

        def outcome() -> _Ended:
            channel = StepChannel(replica, events)
            try:
                try:
                    value = context.run(function, replica.index, channel)
                finally:
                    channel.close()
            except BaseException as error:
                if channel.is_inherited:
                    raise
                return _Ended(error=None if replica.is_abandoned else error, clean=is_clean())
            return _Ended(value, clean=is_clean())

        def work() -> None:
            # Outside of the handler and in no variable: this thread may pause here, and must not keep the error,
            # whose frames hold the replica's arrays.
            events.put((replica, outcome()))

        return work

    def _wait(self) -> bool:
        """Wait until every replica waits or has ended, or one has failed. Returns whether they wait in a call."""
        while any(replica.is_running for replica in self._replicas):
            try:
                replica, event = self._events.get(timeout=self._deadline)
            except Empty as error:
                error.__traceback__ = None
                assert self._deadline is not None
                self._overdue = [replica for replica in self._replicas if replica.is_running]
                raise failures.deadline_error(self._title, self._replicas, self._deadline) from None
            if isinstance(event, CollectiveCall):
                replica.call = event
                continue
            # The result of a task that an interrupted call has left behind is dropped.
            if isinstance(event, _Ended):
                self._end(replica, event)
                if event.error is not None:
                    return False
        return any(not replica.ended for replica in self._replicas)

    def _end(self, replica: Replica, event: _Ended) -> None:
        replica.ended, replica.value, replica.error = True, event.value, event.error
        if event.clean:
            give_back(replica.worker)
        else:
            replica.worker.retire()

    def _perform_call(self) -> None:
        """Perform the call that all replicas wait in, and reply to them."""
        calls = [replica.call for replica in self._replicas]
        first = calls[0]
        if first is None or any(each is None or each.key != first.key for each in calls):
            raise failures.mismatch_error(self._replicas)
        arguments = [each.arguments for each in calls if each is not None]
        with use_helpers(self._run_tasks):
            results = first.perform(arguments)
        for replica, result in zip(self._replicas, results, strict=True):
            replica.call = None
            replica.replies.put((result,))

    def _run_tasks(self, functions: Sequence[Callable[[], Any]]) -> list[Any]:
        """Run functions in turn on the threads of the replicas, which all wait."""
        batch = object()
        for number, function in enumerate(functions):
            self._replicas[number % len(self._replicas)].replies.put(_Task(batch, number, function))
        values: list[Any] = [None] * len(functions)
        errors: dict[int, BaseException] = {}
        missing = len(functions)
        while missing:
            _, event = self._events.get()
            assert isinstance(event, _TaskResult), "a replica that waits sends nothing else"
            # An earlier batch may have been left before it was done, by an interrupt.
            if event.task.batch is batch:
                missing -= 1
                if event.error is None:
                    values[event.task.number] = event.value
                else:
                    errors[event.task.number] = event.error
            # An error that is raised here holds this frame, and so the event.
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
        """End all replicas, wait for those that run, and add a note on the state of each to the error.

        Returns the error; without one that of the first replica that failed, as if they ran one after the other.
        """
        states = failures.describe_states(self._replicas)
        # Replicas that missed the deadline get no more time.
        overdue = self._overdue if isinstance(error, DeadlineExceededError) else []
        for replica in self._replicas:
            replica.replies.put(_STOP)
        # An interrupted program does not wait for its replicas.
        timeout = self._deadline if error is None or isinstance(error, Exception) else _INTERRUPT_GRACE
        try:
            while any(not replica.ended and replica not in overdue for replica in self._replicas):
                replica, event = self._events.get(timeout=timeout)
                if isinstance(event, _Ended):
                    self._end(replica, event)
        except Empty:
            pass
        finally:
            for replica in self._replicas:
                if not replica.ended:
                    # Events that it still sends are not read.
                    replica.is_abandoned = True
                    replica.worker.retire()
            if error is None:
                error = next(
                    replica.error
                    for replica in self._replicas
                    if replica.error is not None and not isinstance(replica.error, ReplicaStopped)
                )
            failures.add_note(error, self._title, self._replicas, states)
            for replica in self._replicas:
                replica.value = replica.error = replica.call = None
        return error


__all__ = ["Step", "StepChannel"]
