"""The step from open to ready: what makes it, what comes too late, and what never does."""

import threading
from typing import Any

import pytest

import allotment.tf as tf
from allotment.devices.context import Context
from support.devices import fresh, next_line, notes, run_on_gpus

Config = tf.config.LogicalDeviceConfiguration


@pytest.fixture(autouse=True)
def context(monkeypatch: pytest.MonkeyPatch) -> Context:
    return fresh(monkeypatch)


def cpu() -> tf.config.PhysicalDevice:
    return tf.config.list_physical_devices("CPU")[0]


TOO_LATE = {
    "Visible devices cannot be modified after being initialized": lambda: tf.config.set_visible_devices([]),
    "Virtual devices cannot be modified after being initialized": (
        lambda: tf.config.set_logical_device_configuration(cpu(), [Config()])
    ),
    "Intra op parallelism cannot be modified after initialization.": (
        lambda: tf.config.threading.set_intra_op_parallelism_threads(4)
    ),
    "Inter op parallelism cannot be modified after initialization.": (
        lambda: tf.config.threading.set_inter_op_parallelism_threads(4)
    ),
}


@pytest.mark.parametrize("words", TOO_LATE)
def test_a_change_that_comes_too_late_names_the_call_before_it(words: str, context: Context) -> None:
    line = next_line()
    tf.config.list_logical_devices()
    with pytest.raises(RuntimeError) as raised:
        TOO_LATE[words]()
    # The words alone: programs print and compare them. What happened before stands behind them.
    assert str(raised.value) == words
    assert f"initialized by list_logical_devices() in {__file__}, line {line}." in notes(raised.value)


def test_with_gpus_the_call_before_is_in_the_text(monkeypatch: pytest.MonkeyPatch) -> None:
    fresh(monkeypatch, "1:64MiB")
    tf.config.experimental.get_memory_info("GPU:0")
    with pytest.raises(RuntimeError) as raised:
        tf.config.set_visible_devices([], "GPU")
    first, second = str(raised.value).splitlines()
    assert first == "Visible devices cannot be modified after being initialized"
    assert f"initialized by get_memory_info() in {__file__}, line " in second


def test_what_changes_nothing_is_never_too_late() -> None:
    mine = (Config(), Config())
    tf.config.set_logical_device_configuration(cpu(), mine)
    tf.config.threading.set_intra_op_parallelism_threads(2)
    tf.config.list_logical_devices()
    tf.config.set_visible_devices(cpu())
    tf.config.set_visible_devices([cpu()], "CPU")
    tf.config.set_visible_devices([], "GPU")
    tf.config.set_logical_device_configuration(cpu(), (Config(), Config()))
    tf.config.threading.set_intra_op_parallelism_threads(2)
    tf.config.threading.set_inter_op_parallelism_threads(None)
    # A list is no tuple.
    with pytest.raises(RuntimeError, match="Virtual devices cannot be modified"):
        tf.config.set_logical_device_configuration(cpu(), [Config(), Config()])


def test_a_bad_argument_is_bad_before_it_is_late() -> None:
    bad: Any = ["nope"]
    tf.config.list_logical_devices()
    with pytest.raises(ValueError, match="Unrecognized device: 'nope'"):
        tf.config.set_visible_devices(bad)


def test_what_starts_the_runtime_and_what_does_not(context: Context) -> None:
    x = tf.config.experimental
    device = cpu()
    tf.config.get_visible_devices()
    tf.config.set_visible_devices(device)
    tf.config.get_logical_device_configuration(device)
    tf.config.set_soft_device_placement(True)
    tf.config.get_soft_device_placement()
    tf.debugging.set_log_device_placement(False)
    tf.debugging.get_log_device_placement()
    tf.config.threading.set_inter_op_parallelism_threads(2)
    tf.config.threading.get_intra_op_parallelism_threads()
    x.set_device_policy("silent")
    x.get_device_policy()
    x.set_synchronous_execution(True)
    x.get_synchronous_execution()
    x.get_device_details(device)
    tf.config.optimizer.set_jit(False)
    tf.config.optimizer.get_jit()
    tf.config.optimizer.get_experimental_options()
    tf.config.run_functions_eagerly(False)
    tf.config.functions_run_eagerly()
    tf.DeviceSpec.from_string("/gpu:1")
    tf.test.is_gpu_available()
    assert not context.is_ready
    version = context.flags_version
    with pytest.raises(ValueError, match="No matching devices"):
        x.get_memory_info("GPU:0")
    assert context.is_ready
    assert context.flags_version > version
    assert context.ready() is context.ready()


def test_threads_that_start_at_once_start_once(monkeypatch: pytest.MonkeyPatch) -> None:
    context = fresh(monkeypatch, "4:64MiB")
    gate = threading.Barrier(8)
    seen = []

    def start() -> None:
        gate.wait()
        seen.append(context.ready())

    threads = [threading.Thread(target=start) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(seen) == 8
    assert len({id(ready) for ready in seen}) == 1


def test_the_call_is_found_across_files_of_the_program() -> None:
    done = run_on_gpus(
        "1:64MiB",
        """
        import allotment.tf as tf

        def library_that_starts_it():
            return tf.config.list_logical_devices()

        library_that_starts_it()
        try:
            tf.config.experimental.set_memory_growth(tf.config.list_physical_devices("GPU")[0], True)
        except RuntimeError as error:
            print(error)
        """,
    )
    assert done.stdout.splitlines() == [
        "Physical devices cannot be modified after being initialized",
        "Memory growth of /physical_device:GPU:0: None now, and this call asks for True. It was initialized by "
        "list_logical_devices() in <string>, line 5. Make this call before that one: restart the program, in a "
        "notebook its kernel.",
    ]
