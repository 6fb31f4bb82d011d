"""Recordings of pools while a program runs."""

import atexit
import errno
import os
import sys
import threading
import weakref
from collections.abc import Callable
from types import TracebackType
from typing import Self

from allotment._core import EventLog, Pool
from allotment.trace.journal import Events, make_journal, unpack
from allotment.trace.recorded import programs
from allotment.trace.recording import Columns

#: Events that a ring keeps by default.
DEFAULT_EVENTS = 65_536

#: Events that may wait to be written by default: at twenty million a second, a thread that writes falls behind.
_WAITING_EVENTS = 1 << 22

#: Seconds between two writes.
_PERIOD = 0.05


class Recording:
    """Events of pools, in a file or in a ring of the last ones. Ends at :meth:`stop` or as a context manager.

    With a file, a thread writes the events as they come, and a refused request waits until all before it are written.
    Until the end the file is a journal, which the readers of this module read as well: of a process that was killed, or
    that ended by ``os._exit``, it lacks the events of up to about a twentieth of a second. The end turns it into an
    ``.npz``. A recording that was not stopped ends when the interpreter exits.
    """

    def __init__(
        self, log: EventLog, file: str | None, on_oom: str | None, at_end: str | None = None
    ) -> None:
        self._log = log
        self._path = file
        self._on_oom = on_oom
        #: The file that the recording writes, with symbolic links resolved.
        self._output = os.path.realpath(output) if (output := file or on_oom) is not None else None
        #: The file that receives the ring at the end, unless a refusal wrote it.
        self._at_end = at_end
        self._process = os.getpid()
        self._stopped = threading.Event()
        self._ended = False
        self._failure: OSError | None = None
        #: Held while the recording ends. Re-entrant, as :data:`_changing`.
        self._ending = threading.RLock()
        self._thread: threading.Thread | None = None
        with _changing:
            if output is not None:
                _check_output(output)
            if file is not None:
                log.write_journal(file, round(1000 * _PERIOD))
            elif on_oom is not None:
                log.write_at_refusal(on_oom)
            _running.add(self)
        if output is not None:
            self._thread = threading.Thread(target=self._run, name="allotment recording", daemon=True)
            self._thread.start()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    @property
    def lost(self) -> int:
        """Number of events that are missing: of a ring the oldest ones, of a file those that came too fast.

        A file that could not be written any further lacks those from then on, too.
        """
        return self._log.lost

    @property
    def refused(self) -> int:
        """Number of requests that were refused."""
        return self._log.refused

    def columns(self) -> list[Columns]:
        """Return the events in the ring, a program for each pool; blocks from before them come first.

        Raises:
            ValueError: The events go to a file.
        """
        if self._path is not None:
            raise ValueError(f"the events are in {self._path}: stop the recording and read it")
        return programs("recording", self._events())

    def dump(self, file: str | os.PathLike[str]) -> None:
        """Write the events in the ring to an ``.npz`` trace, atomically.

        Raises:
            ValueError: The events go to a file already.
            OSError: The file cannot be written.
        """
        from allotment.trace.writer import write_events

        if self._path is not None:
            raise ValueError(f"the events are in {self._path}: stop the recording and read it")
        write_events(os.fspath(file), self._events())

    def stop(self) -> None:
        """End the recording. A file is then an ``.npz``; a ring stays readable.

        Raises:
            OSError: The file could not be written. What was written of it is readable.
        """
        if self._process != os.getpid():
            return  # The file and the thread are the parent's.
        self._log.stop()
        self._stopped.set()
        if self._thread is not None and self._thread is not threading.current_thread():
            self._thread.join()
        with self._ending:
            self._flush(self._log.close)
            if self._failure is None and not self._ended:
                self._finish()
            self._ended = True
            failure, self._failure = self._failure, None
        with _changing:
            _running.discard(self)
        if failure is not None:
            raise failure

    def _events(self) -> Events:
        return Events(unpack(self._log.copy()), self._log.tags, self._log.pools, self._log.lost)

    def _finish(self) -> None:
        """Turn the journal into an ``.npz``, or write the ring if that was asked for and no refusal did."""
        from allotment.trace.writer import finish_journal

        journal = self._path or (self._on_oom if self._log.refused else None)
        try:
            if journal is not None:
                finish_journal(journal)
            elif self._at_end is not None:
                self.dump(self._at_end)
        except OSError as error:
            self._failure = error

    def _run(self) -> None:
        while not self._stopped.wait(_PERIOD):
            self._flush(self._log.flush)

    def _flush(self, write: Callable[[], None]) -> None:
        try:
            write()
        except OSError as error:
            self._failure = error
            self._log.stop()


#: Recordings that are not ended.
_running: "weakref.WeakSet[Recording]" = weakref.WeakSet()

#: Held while recordings are looked through, and while one begins or leaves them: of two that begin at the same time
#: with one file, one gets it. Re-entrant: a finaliser may begin or end a recording.
_changing = threading.RLock()


def _renew_lock() -> None:
    global _changing
    # A thread that a forked child does not have may hold it.
    _changing = threading.RLock()


os.register_at_fork(after_in_child=_renew_lock)


def record(
    file: str | os.PathLike[str] | None = None,
    *,
    events: int | None = None,
    on_oom: str | os.PathLike[str] | None = None,
    stacks: int = 0,
) -> Recording:
    """Record all pools of the process, and those that are made later.

    Args:
        file: The trace to write; ``None`` (default) for a ring in memory. :func:`read_traces` reads a program for each
            pool.
        events: The most events of the ring, 65,536 by default; with a file the most that wait to be written.
        on_oom: Without ``file``: a file that receives the ring when a request was refused.
        stacks: Number of frames of Python's stack that the recording notes for each request, the innermost ones, up to
            64; 0 by default. It takes each request some microseconds. Pools with ``owner_tags`` note lines instead.

    Raises:
        OSError: The file cannot be written.
        ValueError: An argument is out of range, or another recording of this process writes the file.
    """
    log, recording = _new(file, events, on_oom, stacks)
    log.start_all()
    return recording


def record_pool(
    pool: Pool,
    file: str | os.PathLike[str] | None = None,
    *,
    events: int | None = None,
    on_oom: str | os.PathLike[str] | None = None,
    stacks: int = 0,
) -> Recording:
    """Record one pool: see :meth:`allotment.Pool.record`."""
    log, recording = _new(file, events, on_oom, stacks)
    log.start(pool)
    return recording


def record_process(file: str, *, events: int | None = None, stacks: int = 0) -> Recording:
    """Record the process into ``file``, or into ``file.PID`` if that exists: another process records there.

    A forked child has a recording of its own, which begins with its first pool. With ``events`` the file has that many
    of the last events: it is written when a request was refused, and at the end if none was.
    """
    name = make_journal(file)
    if events is None:
        recording = record(name, stacks=stacks)
    else:
        log = EventLog(events, "last", stacks)
        recording = Recording(log, None, name, name)
        log.start_all()
    util = sys.modules.get("multiprocessing.util")
    if util is not None:
        # Processes of multiprocessing end without the interpreter's own handlers.
        util.Finalize(None, recording.stop, exitpriority=-100)
    return recording


def ring(log: EventLog) -> Recording:
    """Return the recording of a log that a pool fills from its first event on."""
    return Recording(log, None, None)


def _new(
    file: str | os.PathLike[str] | None,
    events: int | None,
    on_oom: str | os.PathLike[str] | None,
    stacks: int,
) -> tuple[EventLog, Recording]:
    if file is not None and on_oom is not None:
        raise ValueError("on_oom is of a ring: a file has the events before each refusal")
    most = events if events is not None else DEFAULT_EVENTS if file is None else _WAITING_EVENTS
    log = EventLog(most, "last" if file is None else "first", stacks)
    path, dump = (None if one is None else os.fspath(one) for one in (file, on_oom))
    return log, Recording(log, path, dump)


def _check_output(path: str) -> None:
    """Check that a recording can write a file, before there are events. The caller holds :data:`_changing`.

    Raises:
        OSError: It cannot.
        ValueError: Another recording of this process writes it.
    """
    target = os.path.realpath(path)
    if any(one._output == target and one._process == os.getpid() for one in list(_running)):
        raise ValueError(
            f"{path}: another recording of this process writes this file: stop that one first, or name another file"
        )
    number = 0
    if os.path.isdir(target):
        number = errno.EISDIR
    elif os.path.exists(target) and not os.path.isfile(target):
        raise OSError(errno.EINVAL, "not the path of a regular file", path)
    elif not os.path.isdir(folder := os.path.dirname(target)):
        number = errno.ENOTDIR if os.path.exists(folder) else errno.ENOENT
    elif not os.access(target if os.path.exists(target) else folder, os.W_OK):
        number = errno.EACCES
    if number:
        raise OSError(number, os.strerror(number), path)


@atexit.register
def _stop_all() -> None:
    with _changing:
        running = list(_running)
    for recording in running:
        try:
            recording.stop()
        except OSError as error:
            # The others are stopped all the same. An exception would be shown as ignored, with a traceback.
            print(
                f"allotment: {recording._output}: was not written in full: {error.strerror or error}",
                file=sys.stderr,
            )
