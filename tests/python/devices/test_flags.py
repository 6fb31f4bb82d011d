"""Flags: soft placement, logging, policies, threads, optimizer. Facts of TensorFlow 2.21, and where we differ."""

import threading
from typing import Any

import numpy as np
import pytest

import allotment
import allotment.tf as tf
from allotment.devices.context import Context
from support.devices import fresh, run_on_gpus

x = tf.config.experimental


@pytest.fixture(autouse=True)
def context(monkeypatch: pytest.MonkeyPatch) -> Context:
    return fresh(monkeypatch)


def test_soft_placement_is_off_until_it_is_asked_for(context: Context) -> None:
    # TensorFlow 2.21 has it on when eager; document 004 says that a missing device is an error until asked.
    assert tf.config.get_soft_device_placement() is False
    for value, read in ((False, False), (True, True), (0, False), (1, True), (2, True), (None, False)):
        tf.config.set_soft_device_placement(value)  # type: ignore[arg-type]
        assert tf.config.get_soft_device_placement() is read
    context.ready()
    tf.config.set_soft_device_placement(True)
    assert tf.config.get_soft_device_placement() is True
    tf.config.set_soft_device_placement(None)
    assert tf.config.get_soft_device_placement() is False


def test_placement_logging_is_off_until_it_is_asked_for(context: Context) -> None:
    assert tf.debugging.get_log_device_placement() is False
    for value, read in ((1, True), (0, False), (True, True), (None, False)):
        tf.debugging.set_log_device_placement(value)  # type: ignore[arg-type]
        assert tf.debugging.get_log_device_placement() is read
    context.ready()
    tf.debugging.set_log_device_placement(True)
    assert tf.debugging.get_log_device_placement() is True


@pytest.mark.parametrize(
    ("setter", "getter"),
    [
        (tf.config.set_soft_device_placement, tf.config.get_soft_device_placement),
        (tf.debugging.set_log_device_placement, tf.debugging.get_log_device_placement),
    ],
)
@pytest.mark.parametrize("value", ["yes", []])
def test_what_is_no_bool_is_found_by_the_getter(
    setter: Any, getter: Any, value: Any, context: Context
) -> None:
    setter(value)
    with pytest.raises(TypeError):
        getter()
    with pytest.raises(TypeError):
        context.ready()
    setter(True)
    context.ready()
    # From now on the setter finds it.
    with pytest.raises(TypeError):
        setter(value)
    assert getter() is True


@pytest.mark.parametrize(
    ("setter", "getter"),
    [
        (tf.config.set_soft_device_placement, tf.config.get_soft_device_placement),
        (tf.debugging.set_log_device_placement, tf.debugging.get_log_device_placement),
    ],
)
def test_numbers_that_are_not_whole_are_found_by_the_getter_at_any_time(
    setter: Any, getter: Any, context: Context
) -> None:
    for ready in (False, True):
        setter(1.5)
        with pytest.raises(TypeError) as raised:
            getter()
        assert str(raised.value) == "'float' object cannot be interpreted as an integer"
        setter(np.True_)
        assert getter() is True
        setter(np.False_)
        assert getter() is False
        if not ready:
            context.ready()


def test_every_change_of_a_flag_can_be_seen(context: Context) -> None:
    changes: list[Any] = [
        lambda: tf.config.set_soft_device_placement(True),
        lambda: tf.debugging.set_log_device_placement(True),
        lambda: x.set_device_policy("warn"),
        lambda: context.ready(),
        lambda: x.set_device_policy("explicit"),
    ]
    for change in changes:
        before = context.flags_version
        change()
        assert context.flags_version > before


def test_device_policy() -> None:
    assert x.get_device_policy() == "silent"
    for value in ("warn", "explicit", "silent_for_int32", "silent", None):
        x.set_device_policy(value)
        assert x.get_device_policy() == (value or "silent")
    with pytest.raises(ValueError, match=r"Invalid argument `device_policy`: 'loud'\. Please refer to"):
        x.set_device_policy("loud")


def test_a_policy_is_each_thread_s_own_once_the_runtime_is_ready(context: Context) -> None:
    x.set_device_policy("warn")
    context.ready()
    x.set_device_policy("explicit")
    seen = []
    thread = threading.Thread(target=lambda: seen.append(x.get_device_policy()))
    thread.start()
    thread.join()
    assert (seen, x.get_device_policy()) == (["warn"], "explicit")


def test_flags_that_are_only_kept() -> None:
    assert x.get_synchronous_execution() is True
    for value, read in ((False, False), (True, True), (None, True), (0, False), (1, True)):
        x.set_synchronous_execution(value)  # type: ignore[arg-type]
        assert x.get_synchronous_execution() is read
    assert x.tensor_float_32_execution_enabled() is True
    x.enable_tensor_float_32_execution(False)
    assert x.tensor_float_32_execution_enabled() is False
    x.enable_op_determinism()
    assert tf.config.functions_run_eagerly() is False
    tf.config.run_functions_eagerly(True)
    assert tf.config.functions_run_eagerly() is True
    tf.config.experimental_run_functions_eagerly(False)
    assert tf.config.experimental_functions_run_eagerly() is False


def test_threads(context: Context) -> None:
    h = tf.config.threading
    assert (h.get_intra_op_parallelism_threads(), h.get_inter_op_parallelism_threads()) == (0, 0)
    h.set_intra_op_parallelism_threads(2)
    h.set_inter_op_parallelism_threads(num_threads=-3)
    assert (h.get_intra_op_parallelism_threads(), h.get_inter_op_parallelism_threads()) == (2, -3)
    h.set_intra_op_parallelism_threads(None)
    context.ready()
    h.set_intra_op_parallelism_threads(None)
    # 0 is what the getter says of never set, and not the same.
    assert h.get_intra_op_parallelism_threads() == 0
    with pytest.raises(RuntimeError, match="Intra op parallelism cannot be modified after initialization"):
        h.set_intra_op_parallelism_threads(0)


def test_a_number_of_threads_that_is_none_is_found_by_every_getter() -> None:
    odd: Any = "two"
    tf.config.threading.set_inter_op_parallelism_threads(odd)
    for getter in (
        tf.config.threading.get_inter_op_parallelism_threads,
        tf.config.threading.get_intra_op_parallelism_threads,
        tf.config.list_logical_devices,
    ):
        with pytest.raises(TypeError):
            getter()


@pytest.mark.parametrize(
    ("value", "error", "said"),
    [
        (
            True,
            TypeError,
            "Field tensorflow.ConfigProto.intra_op_parallelism_threads: Expected an int, got a boolean.",
        ),
        (10**12, ValueError, "Value out of range: 1000000000000"),
        (2**31, ValueError, "Value out of range: 2147483648"),
        (-(2**31) - 1, ValueError, "Value out of range: -2147483649"),
    ],
)
def test_threads_that_are_no_number_of_32_bits(value: int, error: type[Exception], said: str) -> None:
    tf.config.threading.set_intra_op_parallelism_threads(value)
    for getter in (tf.config.threading.get_intra_op_parallelism_threads, tf.config.list_logical_devices):
        with pytest.raises(error) as raised:
            getter()
        assert str(raised.value) == said


def test_setting_threads_is_no_question_about_devices() -> None:
    tf.config.threading.set_intra_op_parallelism_threads(2)
    allotment.testing.simulate_gpus("1:64MiB")
    assert len(tf.config.list_physical_devices("GPU")) == 1


def test_jit() -> None:
    o = tf.config.optimizer
    assert o.get_jit() == ""
    for value, read in (
        ("autoclustering", True),
        (False, False),
        (True, True),
        ("", False),
        ("other", False),
    ):
        o.set_jit(value)
        assert o.get_jit() == ("autoclustering" if read else "")


def test_optimizer_options() -> None:
    o = tf.config.optimizer
    assert o.get_experimental_options() == {"disable_model_pruning": False, "disable_meta_optimizer": False}
    o.set_experimental_options({"constant_folding": True, "disable_meta_optimizer": True})
    o.set_experimental_options({"layout_optimizer": False, "unknown_key": 1, "remapping": None})
    assert list(o.get_experimental_options().items()) == [
        ("layout_optimizer", False),
        ("constant_folding", True),
        ("disable_model_pruning", False),
        ("disable_meta_optimizer", True),
    ]
    o.set_experimental_options({"constant_folding": None, "layout_optimizer": None})
    pairs: Any = [("remapping", True), ["debug_stripper", 0]]
    o.set_experimental_options(pairs)
    assert o.get_experimental_options() == {
        "remapping": True,
        "debug_stripper": False,
        "disable_model_pruning": False,
        "disable_meta_optimizer": True,
    }
    o.set_experimental_options({"min_graph_nodes": 3.5})
    with pytest.raises(TypeError, match="'float' object cannot be interpreted as an integer"):
        o.get_experimental_options()


@pytest.mark.parametrize(("value", "kind"), [(None, "NoneType"), (5, "int")])
def test_optimizer_options_are_pairs(value: Any, kind: str) -> None:
    with pytest.raises(TypeError, match=f"^'{kind}' object is not iterable$"):
        tf.config.optimizer.set_experimental_options(value)


@pytest.mark.parametrize("value", ["x", []])
def test_the_flag_of_rounding_is_a_truth_value(value: Any) -> None:
    with pytest.raises(TypeError):
        x.enable_tensor_float_32_execution(value)
    x.enable_tensor_float_32_execution(0)  # type: ignore[arg-type]
    assert x.tensor_float_32_execution_enabled() is False


def test_deprecated_names_say_so_once() -> None:
    done = run_on_gpus(
        "0",
        """
        import allotment
        import allotment.tf as tf
        for _ in range(2):
            tf.config.experimental_run_functions_eagerly(True)
            tf.config.optimizer.set_jit(True)
            tf.test.is_gpu_available()
        """,
    )
    assert done.stderr.count("is deprecated") == 3
    assert "tf.config.list_physical_devices('GPU')" in done.stderr
