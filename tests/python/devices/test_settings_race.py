"""Settings against the start of the runtime: each comes before it and holds, or after it and is refused (B217)."""

import threading
from collections.abc import Callable
from typing import Any

import pytest

from allotment import experimental
from allotment.devices import context as module
from allotment.devices.context import Context
from allotment.devices.plan import plan_devices
from allotment.tf import config
from allotment.tf.config import LogicalDeviceConfiguration
from support.attempts import Outcome, attempt, run_together
from support.devices import fresh, gpus, limits, run_on_gpus

#: What changes a setting; what the setting is; and the value that a context starts with.
SETTERS: dict[str, tuple[Callable[[], Any], Callable[[Context], Any]]] = {
    "split": (
        lambda: config.set_logical_device_configuration(gpus()[0], [LogicalDeviceConfiguration(8)] * 2),
        lambda context: len(context.ready().configuration.splits),
    ),
    "visible devices": (
        lambda: config.set_visible_devices([], "GPU"),
        lambda context: len(context.ready().configuration.visible),
    ),
    "growth": (
        lambda: config.experimental.set_memory_growth(gpus()[0], True),
        lambda context: [*context.ready().configuration.growth.values()],
    ),
    "own growth": (
        lambda: experimental.set_memory_growth(gpus()[0], True),
        lambda context: len(context.ready().configuration.experimental_growth),
    ),
    "own limit": (
        lambda: experimental.set_memory_limit(gpus()[0], "8MiB"),
        lambda context: len(context.ready().configuration.experimental_limits),
    ),
    "growth of all": (
        lambda: config.gpu.set_per_process_memory_growth(True),
        lambda context: context.ready().configuration.process_growth,
    ),
    "share of all": (
        lambda: config.gpu.set_per_process_memory_fraction(0.5),
        lambda context: context.ready().configuration.process_fraction,
    ),
    "threads": (
        lambda: config.threading.set_intra_op_parallelism_threads(3),
        lambda context: context.threads.get("intra"),
    ),
}


@pytest.mark.parametrize("name", SETTERS)
def test_a_setting_that_comes_while_the_runtime_starts_is_refused(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    change, value = SETTERS[name]
    context = fresh(monkeypatch, "1:64MiB")
    config.list_physical_devices()
    planning, go = threading.Event(), threading.Event()
    plan = plan_devices

    def slow_plan(configuration: Any) -> Any:
        planning.set()
        assert go.wait(20)
        return plan(configuration)

    monkeypatch.setattr(module, "plan_devices", slow_plan)
    starting = threading.Thread(target=context.ready)
    starting.start()
    assert planning.wait(20)
    outcomes: list[Outcome] = []
    setting = threading.Thread(target=lambda: outcomes.append(attempt(change)))
    setting.start()
    setting.join(0.2)
    go.set()
    starting.join(20)
    setting.join(20)
    (outcome,) = outcomes
    assert isinstance(outcome.error, RuntimeError), outcome
    monkeypatch.setattr(module, "_context", untouched := Context({"ALLOTMENT_SIMULATED_GPUS": "1:64MiB"}))
    assert value(context) == value(untouched)


@pytest.mark.usefixtures("hasty_switches")
def test_b217_a_split_is_there_or_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    outcomes = set()
    for _ in range(150):
        context = fresh(monkeypatch, "1:64MiB")
        wanted = [LogicalDeviceConfiguration(8)] * 2

        def split(wanted: list[LogicalDeviceConfiguration] = wanted) -> None:
            config.set_logical_device_configuration(gpus()[0], wanted)

        *_, accepted = run_together([*[config.list_logical_devices] * 6, split])
        refused = accepted.error is not None
        assert not refused or isinstance(accepted.error, RuntimeError)
        assert limits(context) == ([("GPU:0", 64)] if refused else [("GPU:0", 8), ("GPU:0", 8)])
        shown = config.get_logical_device_configuration(gpus()[0])
        assert shown == (None if refused else wanted)
        outcomes.add(refused)
    assert outcomes


def test_b217_in_a_process_of_its_own() -> None:
    for _ in range(5):
        done = run_on_gpus(
            "1:64MiB",
            """
            import sys, threading
            from allotment.tf import config
            sys.setswitchinterval(1e-6)
            gpu, = config.list_physical_devices("GPU")
            wanted = [config.LogicalDeviceConfiguration(8)] * 2
            start, answers = threading.Barrier(8), []
            def listed():
                start.wait()
                config.list_logical_devices()
            def split():
                start.wait()
                try:
                    answers.append(config.set_logical_device_configuration(gpu, wanted))
                except RuntimeError:
                    answers.append("refused")
            threads = [threading.Thread(target=work) for work in [listed] * 7 + [split]]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
            assert len(config.list_logical_devices("GPU")) == (2 if answers == [None] else 1), answers
            print("done")
            """,
        )
        assert (done.returncode, done.stdout) == (0, "done\n"), done.stderr


@pytest.mark.simulated_gpus("a forked child cannot use the driver")
def test_a_child_that_is_forked_while_the_runtime_starts_can_start_its_own() -> None:
    done = run_on_gpus(
        "1:64MiB",
        """
        import os, threading, warnings
        warnings.simplefilter("ignore")
        from allotment.tf import config
        from allotment.devices import context as module
        plan, planning, go = module.plan_devices, threading.Event(), threading.Event()
        def slow_plan(configuration):
            planning.set()
            go.wait(20)
            return plan(configuration)
        module.plan_devices = slow_plan
        thread = threading.Thread(target=config.list_logical_devices)
        thread.start()
        planning.wait(20)
        if os.fork() == 0:
            module.plan_devices = plan
            os._exit(len(config.list_logical_devices()))
        print(os.waitstatus_to_exitcode(os.wait()[1]))
        go.set()
        thread.join()
        """,
    )
    assert (done.returncode, done.stdout) == (0, "2\n"), done.stderr
