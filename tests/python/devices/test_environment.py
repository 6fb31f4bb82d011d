"""The environment as a user meets it: words that are misspelt, and changes that come late (B019, B020)."""

import logging

import pytest

import allotment
import allotment.tf as tf
from allotment.devices.environment.settings import late_changes, read_settings
from support.devices import MIB, fresh, run_on_gpus


def warnings_of(log: pytest.LogCaptureFixture) -> list[str]:
    records = [record for record in log.records if record.name == "allotment.settings"]
    assert all(record.levelno == logging.WARNING for record in records)
    return [record.getMessage() for record in records]


# Field report B019 (RasaHQ/rasa#5230): the only words are true and false.
@pytest.mark.parametrize("text", [None, "true", "false", "True", "TRUE", "1", "0", "yes", "", " true "])
@pytest.mark.parametrize("in_code", [None, True])
def test_b019_growth_by_the_environment(
    text: str | None, in_code: bool | None, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    environ = {} if text is None else {"TF_FORCE_GPU_ALLOW_GROWTH": text}
    context = fresh(monkeypatch, "1:64MiB", **environ)
    (gpu,) = tf.config.list_physical_devices("GPU")
    if in_code is not None:
        tf.config.experimental.set_memory_growth(gpu, in_code)
    configured = bool(in_code)
    effective = {"true": True, "false": False}.get(text or "", configured)

    assert allotment.experimental.get_memory_growth(gpu) is effective
    pool = context.ready().devices[1].pool
    assert pool is not None
    assert pool.growth is effective
    assert allotment.experimental.get_memory_growth(gpu) is effective
    pool.free(pool.malloc(1))
    assert pool.stats().reserved == (2 * MIB if effective else 64 * MIB)

    if text in ("true", "false"):
        expected = [
            "Overriding orig_value setting because the TF_FORCE_GPU_ALLOW_GROWTH environment variable is set. "
            f"Original config value was {configured:d}."
        ]
        assert warnings_of(caplog) == (expected if effective != configured else [])
    elif text is None:
        assert warnings_of(caplog) == []
    else:
        assert warnings_of(caplog) == [
            "The TF_FORCE_GPU_ALLOW_GROWTH environment variable is set but could not be parsed: "
            f'"{text}". Valid values are "true" or "false". Using original config value of {configured:d}.'
        ]


def test_b019_the_warning_is_seen_without_any_set_up() -> None:
    done = run_on_gpus(
        "1:64MiB",
        """
        import allotment
        import allotment.tf as tf
        tf.config.list_logical_devices()
        tf.config.list_logical_devices()
        """,
        TF_FORCE_GPU_ALLOW_GROWTH="True",
    )
    assert done.returncode == 0
    assert done.stderr.count("TF_FORCE_GPU_ALLOW_GROWTH") == 1
    assert '"True"' in done.stderr


# Field report B020 (adityab/CrossQ#7): the same variables at three moments.
CHANGES = {
    "CUDA_VISIBLE_DEVICES": "1",
    "TF_FORCE_GPU_ALLOW_GROWTH": "true",
    "ALLOTMENT_SIMULATED_GPUS": "3:64MiB",
    "TF_CPP_MIN_LOG_LEVEL": "2",
}
ASK = """
{before_import}
import allotment
import allotment.tf as tf
from allotment.devices.context import context
{before_question}
tf.config.list_physical_devices()
tf.config.list_logical_devices()
{after_start}
for _ in range(3):
    tf.config.list_logical_devices()
    tf.config.list_physical_devices()
gpus = tf.config.list_physical_devices("GPU")
assert len(gpus) == len(tf.config.list_logical_devices("GPU"))
details = [tf.config.experimental.get_device_details(gpu)["hardware_index"] for gpu in gpus]
print(details, allotment.experimental.get_memory_growth(gpus[0]), context().settings.log_level)
"""
IN_FORCE = {
    "CUDA_VISIBLE_DEVICES": "[1] False 0",
    "TF_FORCE_GPU_ALLOW_GROWTH": "[0, 1] True 0",
    "ALLOTMENT_SIMULATED_GPUS": "[0, 1, 2] False 0",
    "TF_CPP_MIN_LOG_LEVEL": "[0, 1] False 2",
}


@pytest.mark.parametrize("name", CHANGES)
@pytest.mark.parametrize("moment", ["before_import", "before_question", "after_start"])
def test_b020_a_variable_counts_until_the_first_question_and_then_is_warned_of(
    name: str, moment: str
) -> None:
    moments = dict.fromkeys(("before_import", "before_question", "after_start"), "")
    moments[moment] = f"os.environ[{name!r}] = {CHANGES[name]!r}"
    done = run_on_gpus("2:64MiB", ASK.format(**moments))
    assert done.returncode == 0, done.stderr
    late = moment == "after_start"
    assert done.stdout.strip() == ("[0, 1] False 0" if late else IN_FORCE[name])
    warnings = [line for line in done.stderr.splitlines() if "too late" in line]
    assert len(warnings) == late
    if late:
        assert name in warnings[0]
        assert repr(CHANGES[name]) in warnings[0]


def test_b020_a_change_that_means_the_same_is_not_worth_a_word() -> None:
    settings = read_settings({"ALLOTMENT_SIMULATED_GPUS": "2", "TF_CPU_ALLOCATOR_USE_BFC": "1"})
    same = {
        "ALLOTMENT_SIMULATED_GPUS": "2:4GiB",
        "TF_CPU_ALLOCATOR_USE_BFC": "true",
        "TF_CPP_MIN_LOG_LEVEL": "0",
    }
    assert list(late_changes(settings, same)) == []
    other = same | {"TF_CPP_MIN_LOG_LEVEL": "loud"}
    ((name, sentence),) = late_changes(settings, other)
    assert name == "TF_CPP_MIN_LOG_LEVEL"
    assert "unset" in sentence
    assert "'loud'" in sentence
