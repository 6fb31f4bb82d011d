"""The process's one context: first open, then ready; and the flags that may change at any time."""

import logging
import os
import threading
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal

from allotment._core import format_size, machine_memory
from allotment.devices.configuration import Configuration
from allotment.devices.environment import settings as environment
from allotment.devices.environment.settings import Settings, late_changes, read_settings
from allotment.devices.environment.variables import FORCE_GROWTH, SYSTEM_RESERVE, read_gpus
from allotment.devices.limits.growth import check_growth, configured_growth, dropped_growth, overridden_growth
from allotment.devices.limits.overridden import overridden_options
from allotment.devices.limits.sizes import GRANULE
from allotment.devices.limits.splits import check_splits
from allotment.devices.logical import LogicalDeviceRuntime, Made, make_devices
from allotment.devices.messages.call_site import find_caller
from allotment.devices.options.flags import Flags, check_truth
from allotment.devices.options.thread_pools import Threads, Which, check_threads, set_threads
from allotment.devices.physical import discover
from allotment.devices.plan import plan_devices
from allotment.devices.runtime_states import Open, Ready, State
from allotment.text import show_text

_logger = logging.getLogger("allotment.devices")


class Context(Flags):
    """What the process knows and wants of devices.

    The first question about devices reads the environment and makes it open; the first operation, logical
    listing, device scope or memory question makes it ready, all at once or not at all.

    Args:
        environ: Pairs to read instead of the environment.
    """

    def __init__(self, environ: Mapping[str, str] | None = None) -> None:
        super().__init__()
        self.threads: Threads = {}
        self._environ = environ
        #: Held while a setting changes, while the devices of a session are made, and from the check of all settings
        #: until the context is ready. Re-entrant: what is logged on the way may ask about devices again.
        self.lock = threading.RLock()
        self._state: State | None = None
        self._ready: Ready | None = None
        self._simulated_gpus: tuple[int, ...] | None = None
        self._reported: set[str] = set()
        #: Pools that exist, of sessions and of the devices that are ready.
        self.made = Made()

    def ready(self) -> Ready:
        """The logical devices; made by the first call. Later calls cost next to nothing.

        Raises:
            ValueError: The environment or the configuration cannot be used.
            OpError: The configuration asks for devices or memory that do not exist.
        """
        ready = self._ready
        return self._start() if ready is None else ready

    def state(self) -> State:
        """The state to read from and, if it is open, to change; the first call makes it open.

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
        """Whether logical devices exist; asks nothing itself."""
        return self._ready is not None

    def state_if_known(self) -> State | None:
        """The state, or ``None`` if nobody has asked about devices yet; asks nothing itself."""
        return self._state

    @property
    def settings(self) -> Settings:
        """What the environment said at the first question about devices."""
        state = self._state
        return (self._open() if state is None else state).configuration.settings

    def change(self, setter: Callable[..., None], *values: Any) -> None:
        """Call a setter with the state, which stays what it is until the setter is done, and these values.

        Raises:
            ValueError: ``ALLOTMENT_SIMULATED_GPUS`` or ``ALLOTMENT_GUARD`` cannot be used; or as the setter.
        """
        # Without the lock: it may log.
        self.state()
        with self.lock:
            setter(self._state, *values)

    def set_threads(self, which: Which, count: Any) -> None:
        """Store the size of a thread pool; asks nothing about devices.

        Raises:
            RuntimeError: The runtime is ready and has another number.
        """
        with self.lock:
            set_threads(self.threads, self._state, which, count)

    def store_flag(self, name: Literal["soft_placement", "log_placement"], enabled: Any) -> None:
        """Store a flag of placement: anything before the runtime is ready, later what is true or false.

        Raises:
            TypeError: The runtime is ready, and it is neither.
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
            TypeError: Something that was stored without a look has the wrong type.
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
            RuntimeError: Somebody has asked about devices, and there are others.
        """
        sizes = read_gpus(gpus)
        with self.lock:
            state = self._state
            if state is None:
                self._simulated_gpus = sizes
            elif (state.configuration.settings.simulated_gpus or ()) != sizes:
                raise RuntimeError(
                    f"simulate_gpus({gpus!r}) comes too late: the first question about devices was "
                    f"{state.asked_by}. Make this call before that one."
                )

    def report_growth(self, configuration: Configuration) -> None:
        """Report, once, what the environment's word on growth changes or fails to change."""
        unusable = configuration.settings.unusable_force_growth
        if unusable is not None:
            configured = any(
                configured_growth(configuration, gpu.device).on for gpu in configuration.visible_gpus
            )
            self.report(
                f"{FORCE_GROWTH.name}, unusable",
                f"The {FORCE_GROWTH.name} environment variable is set but could not be parsed: "
                f'"{show_text(unusable)}". Valid values are "true" or "false". '
                f"Using original config value of {configured:d}.",
            )
        original = overridden_growth(configuration)
        if original is not None:
            self.report(
                f"{FORCE_GROWTH.name}, overriding",
                f"Overriding orig_value setting because the {FORCE_GROWTH.name} environment variable is set. "
                f"Original config value was {original:d}.",
            )

    def _open(self) -> Open | Ready:
        with self.lock:
            if self._state is None:
                settings = read_settings(self._environ, simulated_gpus=self._simulated_gpus)
                self._state = Open(Configuration(settings, discover(settings)), find_caller())
            return self._state

    def _start(self) -> Ready:
        started_by = find_caller()
        with self.lock:
            if self._ready is not None:
                return self._ready
            configuration = self.assemble()
            devices = make_devices(plan_devices(configuration), configuration.settings, self.made)
            state = self.state()
            self._state = self._ready = Ready(configuration, state.asked_by, started_by, devices)
            self._policy_per_thread = True
            self.flags_changed()
        self._announce(self._ready)
        return self._ready

    def _announce(self, ready: Ready) -> None:
        configuration = ready.configuration
        self.report_growth(configuration)
        if dropped := dropped_growth(configuration):
            names = ", ".join(device.name for device in dropped)
            self.report(
                "dropped growth",
                f"Memory growth of {names} has no effect, because logical devices are configured: each takes "
                "its whole limit at first use. allotment.experimental.set_memory_growth allows both.",
            )
        if configuration.visible_gpus:
            for name in configuration.settings.not_honoured:
                self.report(name, environment.not_honoured(name, configuration.settings.not_honoured[name]))
        self.report_overridden(configuration)
        self._report_more_than_machine(ready)
        reserve = configuration.settings.system_reserve
        for logical in ready.devices:
            gpu, limit = logical.physical.gpu, logical.plan.limit
            if gpu is None or limit is None:
                continue
            if limit.nbytes < GRANULE:
                self.report(
                    f"{logical.name}, without memory",
                    f"Nothing can be allocated on {logical.short_name}: its limit is {limit.nbytes} bytes, set by "
                    f"{limit.set_by}. The smallest limit that serves a request is {GRANULE} bytes.",
                )
            if reserve is not None and reserve > gpu.memory:
                self.report(
                    SYSTEM_RESERVE.name,
                    f"{SYSTEM_RESERVE.name} has no effect on {logical.physical.device.name}: it asks for "
                    f"{reserve >> 20} MiB to be left alone, and there are {gpu.memory >> 20} MiB.",
                )
            _logger.info(
                "Created device %s with %d MB memory:  -> %s",
                logical.name,
                limit.nbytes >> 20,
                logical.physical.description,
            )

    def _report_more_than_machine(self, ready: Ready) -> None:
        """Report simulated GPUs that may take more memory together than the machine has."""
        limits = sum(
            device.plan.limit.nbytes
            for device in ready.devices
            if device.plan.limit is not None and device.physical.gpu is not None
        )
        machine = machine_memory()
        if machine is not None and limits > machine:
            self.report(
                "machine",
                f"The simulated GPUs may use {format_size(limits)} together, and this machine has "
                f"{format_size(machine)} of memory. An allocation that the machine has no memory for is refused; with "
                "smaller sizes in ALLOTMENT_SIMULATED_GPUS, or lower limits, a device's own limit refuses it first.",
            )

    def report_options(self, names: Sequence[str]) -> None:
        """Report, once each, options of sessions that are kept and do nothing."""
        for name in names:
            why = ": NumPy has threads of its own" if "threads" in name or "thread_pool" in name else ""
            self.report(name, f"{name} is set, and has no effect here{why}.")

    def report_overridden(self, configuration: Configuration) -> None:
        """Report, once each, the options that others override."""
        for sentence in overridden_options(configuration):
            self.report(sentence, sentence)

    def report(self, what: str, sentence: str) -> None:
        """Warn of something about the environment or the options, once for each ``what``."""
        if what not in self._reported:
            self._reported.add(what)
            environment.warn(sentence)


_context = Context()


def _renew_locks() -> None:
    # A thread that a forked child does not have may hold them.
    _context.lock = threading.RLock()
    _context._version_lock = threading.Lock()


os.register_at_fork(after_in_child=_renew_locks)


def context() -> Context:
    """The process's one context."""
    return _context


__all__ = ["Context", "LogicalDeviceRuntime", "Open", "Ready", "context"]
