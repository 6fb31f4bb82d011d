"""The process's one context: its state, first open, then ready, and the flags that may change at any time."""

import logging
import os
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Concatenate, Literal, ParamSpec

from allotment.devices.configuration import Configuration
from allotment.devices.environment.settings import Settings, late_changes, read_settings, warn
from allotment.devices.environment.variables import read_gpus
from allotment.devices.limits.growth import check_growth
from allotment.devices.limits.splits import check_splits
from allotment.devices.logical import CreatedDevices, LogicalDeviceRuntime, make_devices
from allotment.devices.messages.call_site import find_caller
from allotment.devices.options.flags import Flags, check_truth
from allotment.devices.options.thread_pools import Threads, Which, check_threads, set_threads
from allotment.devices.physical import discover
from allotment.devices.plan import plan_devices
from allotment.devices.runtime_states import Open, Ready, State
from allotment.devices.start_warnings import Warnings, start_warnings

_logger = logging.getLogger("allotment.devices")
_P = ParamSpec("_P")


class Context(Flags):
    """The devices of a process, and what the program has set about them.

    The first question about devices reads the environment and makes the context open. The first operation, logical
    listing, device scope or memory question makes it ready, all at once or not at all.

    Args:
        environ: Variables to read instead of the process's environment.
    """

    def __init__(self, environ: Mapping[str, str] | None = None) -> None:
        super().__init__()
        self.threads: Threads = {}
        self._environ = environ
        #: Held while a setting changes, while the devices of a session are made, and from the check of all settings
        #: until the context is ready. Re-entrant: log handlers that run meanwhile may ask about devices again.
        self.lock = threading.RLock()
        self._state: State | None = None
        self._ready: Ready | None = None
        self._simulated_gpus: tuple[int, ...] | None = None
        #: The keys of the warnings that were given, each with the object of the thread that gave it.
        self._reported: dict[str, object] = {}
        #: The logical GPUs and pools that exist, which sessions and eager operations share.
        self.created = CreatedDevices()

    def ready(self) -> Ready:
        """Return the logical devices. The first call makes them; later calls cost next to nothing.

        Raises:
            ValueError: The environment or the configuration cannot be used.
            OpError: The configuration asks for devices or memory that do not exist.
        """
        ready = self._ready
        return self._start() if ready is None else ready

    def state(self) -> State:
        """Return the state to read from and, if it is open, to change. The first call makes it open.

        Raises:
            ValueError: ``ALLOTMENT_SIMULATED_GPUS``, ``ALLOTMENT_GUARD`` or ``ALLOTMENT_COLLECT_GARBAGE`` cannot be
                used.
        """
        state = self._state
        if state is None:
            return self._open()
        for name, sentence in late_changes(state.configuration.settings, self._environ):
            self.report(name, sentence)
        return state

    @property
    def is_ready(self) -> bool:
        """Whether logical devices exist. Does not count as a question about devices."""
        return self._ready is not None

    def state_if_known(self) -> State | None:
        """Return the state, or ``None`` before the first question about devices. Does not count as one."""
        return self._state

    @property
    def settings(self) -> Settings:
        """The environment as the first question about devices read it."""
        state = self._state
        return (self._open() if state is None else state).configuration.settings

    def change(
        self, setter: Callable[Concatenate[State, _P], None], *values: _P.args, **named: _P.kwargs
    ) -> None:
        """Call a setter with the state and these values, while no other thread changes the state.

        Raises:
            ValueError: ``ALLOTMENT_SIMULATED_GPUS`` or ``ALLOTMENT_GUARD`` cannot be used; or as the setter.
        """
        # Without the lock: it may log.
        state = self.state()
        with self.lock:
            setter(self._state or state, *values, **named)

    def set_threads(self, which: Which, count: object) -> None:
        """Store the size of a thread pool. Does not count as a question about devices.

        Raises:
            RuntimeError: The runtime is ready and has another number.
        """
        with self.lock:
            set_threads(self.threads, self._state, which, count)

    def store_flag(self, name: Literal["soft_placement", "log_placement"], enabled: object) -> None:
        """Store a flag of placement: any value before the runtime is ready, later a value that is true or false.

        Raises:
            TypeError: The runtime is ready, and the value is neither.
        """
        with self.lock:
            if self._ready is not None:
                check_truth(enabled)
            # TensorFlow keeps it, and the next getter complains.
            setattr(self, name, enabled)

    def assemble(self) -> Configuration:
        """Put the settings together, as some of TensorFlow's getters do, and check that they agree.

        Raises:
            ValueError: Growth differs between visible GPUs, or a GPU's logical devices are incomplete.
            TypeError: A setter stored a value of the wrong type unchecked.
        """
        configuration = self.state().configuration
        check_threads(self.threads)
        self.check_flags()
        check_splits(configuration)
        check_growth(configuration)
        return configuration

    def simulate_gpus(self, gpus: str) -> None:
        """Simulate GPUs, whatever the environment says (``allotment.testing.simulate_gpus``).

        Raises:
            ValueError: Not of the form of ``ALLOTMENT_SIMULATED_GPUS``.
            RuntimeError: An earlier call asked about devices, and there are others.
        """
        sizes = read_gpus(gpus)
        with self.lock:
            state = self._state
            if state is None:
                self._simulated_gpus = sizes
                return
            simulated = state.configuration.settings.simulated_gpus or ()
            # No simulated GPU is not no GPU: there may be real ones, or devices of OpenCL.
            has_others = not simulated and any(one.gpu is not None for one in state.configuration.physical)
            if simulated != sizes or has_others:
                raise RuntimeError(
                    f"simulate_gpus({gpus!r}) comes too late: the first question about devices was "
                    f"{state.asked_by}. Make this call before that one."
                )

    @contextmanager
    def replaced(self, environ: Mapping[str, str]) -> Iterator[None]:
        """Start anew with other environment variables in a ``with`` block, and restore the state at its end.

        Modules hold this object, so that its attributes change and not the object. ``allotment.testing.runtime`` does
        the same for the state of threads.
        """
        with self.lock:
            kept = vars(self).copy()
            self._become(vars(Context(environ)))
        try:
            yield
        finally:
            with self.lock:
                self._become(kept)

    def _become(self, attributes: Mapping[str, object]) -> None:
        """Take the attributes of another context, except for the locks, for which other threads may wait."""
        own = ("lock", "_version_lock", "flags_version")
        with self._version_lock:
            # No attribute is missing at any moment: other threads may look.
            vars(self).update({name: value for name, value in attributes.items() if name not in own})
            for name in vars(self).keys() - attributes.keys():
                del vars(self)[name]
            # At the end, and never back: placements made under the flags of before must not count as up to date.
            self.flags_version += 1

    def _open(self) -> Open | Ready:
        with self.lock:
            if self._state is None:
                settings = read_settings(self._environ, simulated_gpus=self._simulated_gpus)
                self._state = Open(Configuration(settings, discover(settings)), find_caller())
            return self._state

    def _start(self) -> Ready:
        """Make the logical devices and their pools from the current settings, once."""
        started_by = find_caller()
        with self.lock:
            if self._ready is not None:
                return self._ready
            configuration = self.assemble()
            devices = make_devices(plan_devices(configuration), configuration.settings, self.created)
            state = self.state()
            self._state = self._ready = ready = Ready(configuration, state.asked_by, started_by, devices)
            self._policy_per_thread = True
            self.flags_changed()
        self.report_all(start_warnings(configuration, devices))
        for logical in devices:
            if logical.physical.gpu is not None and logical.plan.limit is not None:
                _logger.info(
                    "Created device %s with %d MB memory:  -> %s",
                    logical.name,
                    logical.plan.limit.nbytes >> 20,
                    logical.physical.description,
                )
        return ready

    def report(self, key: str, sentence: str) -> None:
        """Warn about the environment or the options, once for each ``key``."""
        mine = object()
        # One step, and no lock: a warning may run a log handler that asks about devices.
        if self._reported.setdefault(key, mine) is mine:
            warn(sentence)

    def report_all(self, warnings: Warnings) -> None:
        """Report each of some warnings, which are pairs of key and sentence."""
        for key, sentence in warnings:
            self.report(key, sentence)


_context = Context()


def _renew_locks() -> None:
    # A thread that a forked child does not have may hold them.
    _context.lock = threading.RLock()
    _context._version_lock = threading.Lock()


os.register_at_fork(after_in_child=_renew_locks)


def context() -> Context:
    """Return the process's one context."""
    return _context


__all__ = ["Context", "LogicalDeviceRuntime", "Open", "Ready", "context"]
