"""Environment variables: what each accepts, and what is said of what cannot be used."""

import logging
from typing import Any

import pytest

import allotment
import allotment.tf as tf
from allotment.devices.environment.settings import VARIABLES, read_settings
from allotment.devices.environment.variables import CUDA_DRIVER, RECORD, Variable
from support.devices import MIB, fresh, pools, run_on_gpus

GIB = 1024 * MIB


def warnings_of(log: pytest.LogCaptureFixture) -> list[str]:
    records = [record for record in log.records if record.name == "allotment.settings"]
    assert all(record.levelno == logging.WARNING for record in records)
    return [record.getMessage() for record in records]


def test_nothing_set_gives_the_defaults(caplog: pytest.LogCaptureFixture) -> None:
    settings = read_settings({})
    assert settings.simulated_gpus is None
    assert settings.visible_devices is None
    assert settings.force_growth is None
    assert settings.trim_on_oom is True
    assert settings.system_reserve is None
    assert (settings.cpu_pool, settings.cpu_pool_limit) == (False, 64 * GIB)
    assert settings.log_level == 0
    assert settings.guard is False
    assert settings.replica_deadline == 600.0
    assert warnings_of(caplog) == []


def test_every_variable_says_what_it_accepts_and_does() -> None:
    assert len({variable.name for variable in VARIABLES}) == len(VARIABLES) == 19
    assert all(variable.accepted and variable.effect for variable in VARIABLES)


@pytest.mark.parametrize(
    ("text", "sizes"),
    [
        ("0", ()),
        ("", ()),
        ("4", (4 * GIB,) * 4),
        ("4:16GiB", (16 * GIB,) * 4),
        ("2:1GiB,1:512MiB", (GIB, GIB, 512 * MIB)),
        (" 1 , 1 : 512 KiB ", (4 * GIB, 512 * 1024)),
        ("1:1000000007", (1_000_000_007,)),
        ("1:2GB", (2 * 10**9,)),
        ("0:1GiB", ()),
    ],
)
def test_gpus_are_a_count_with_a_size(text: str, sizes: tuple[int, ...]) -> None:
    assert read_settings({"ALLOTMENT_SIMULATED_GPUS": text}).simulated_gpus == sizes


@pytest.mark.parametrize(
    "text", ["x", "-1", "1.5", "1:", "1:x", "1:0", ":1GiB", "1,,1", "1:1GiB:2", "999999999", "٣"]
)
def test_gpus_that_make_no_sense_are_an_error_that_names_them(text: str) -> None:
    with pytest.raises(ValueError, match="ALLOTMENT_SIMULATED_GPUS") as raised:
        read_settings({"ALLOTMENT_SIMULATED_GPUS": text})
    assert repr(text) in str(raised.value)
    assert "4:16GiB" in str(raised.value)


def test_gpus_that_make_no_sense_are_an_error_at_every_question(monkeypatch: pytest.MonkeyPatch) -> None:
    fresh(monkeypatch, "many")
    for ask in (tf.config.list_physical_devices, tf.config.list_logical_devices):
        with pytest.raises(ValueError, match="ALLOTMENT_SIMULATED_GPUS='many'"):
            ask()


USABLE = [
    ("TF_FORCE_GPU_ALLOW_GROWTH", "true", "force_growth", True),
    ("TF_FORCE_GPU_ALLOW_GROWTH", "false", "force_growth", False),
    ("TF_ENABLE_GPU_GARBAGE_COLLECTION", "true", "trim_on_oom", True),
    ("TF_ENABLE_GPU_GARBAGE_COLLECTION", "false", "trim_on_oom", False),
    ("TF_DEVICE_MIN_SYS_MEMORY_IN_MB", "100", "system_reserve", 100 * MIB),
    ("TF_DEVICE_MIN_SYS_MEMORY_IN_MB", "0", "system_reserve", 0),
    ("TF_DEVICE_MIN_SYS_MEMORY_IN_MB", "", "system_reserve", None),
    ("TF_CPU_ALLOCATOR_USE_BFC", "1", "cpu_pool", True),
    ("TF_CPU_ALLOCATOR_USE_BFC", "True", "cpu_pool", True),
    ("TF_CPU_ALLOCATOR_USE_BFC", "0", "cpu_pool", False),
    ("TF_CPU_BFC_MEM_LIMIT_IN_MB", "64", "cpu_pool_limit", 64 * MIB),
    ("TF_CPP_MIN_LOG_LEVEL", "2", "log_level", 2),
    ("TF_CPP_MIN_LOG_LEVEL", "", "log_level", 0),
    ("ALLOTMENT_REPLICA_DEADLINE", "2.5", "replica_deadline", 2.5),
    ("ALLOTMENT_REPLICA_DEADLINE", "0", "replica_deadline", None),
]


@pytest.mark.parametrize(("name", "text", "field", "value"), USABLE)
def test_what_can_be_used(
    name: str, text: str, field: str, value: object, caplog: pytest.LogCaptureFixture
) -> None:
    assert getattr(read_settings({name: text}), field) == value
    assert warnings_of(caplog) == []


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("TF_ENABLE_GPU_GARBAGE_COLLECTION", "True"),
        ("TF_ENABLE_GPU_GARBAGE_COLLECTION", ""),
        ("TF_DEVICE_MIN_SYS_MEMORY_IN_MB", "-1"),
        ("TF_DEVICE_MIN_SYS_MEMORY_IN_MB", "1GiB"),
        ("TF_CPU_ALLOCATOR_USE_BFC", "yes"),
        ("TF_CPU_BFC_MEM_LIMIT_IN_MB", "0"),
        ("TF_CPU_BFC_MEM_LIMIT_IN_MB", ""),
        ("TF_CPP_MIN_LOG_LEVEL", "verbose"),
        ("ALLOTMENT_REPLICA_DEADLINE", "-1"),
        ("ALLOTMENT_REPLICA_DEADLINE", "1e9"),
        ("ALLOTMENT_REPLICA_DEADLINE", "nan"),
        ("ALLOTMENT_REPLICA_DEADLINE", "soon"),
    ],
)
def test_what_cannot_be_used_is_said_once(name: str, text: str, caplog: pytest.LogCaptureFixture) -> None:
    (variable,) = (variable for variable in VARIABLES if variable.name == name)
    settings = read_settings({name: text})
    assert settings == read_settings({}) or settings.texts == {name: text}
    (warning,) = {*warnings_of(caplog)}
    assert f"{name}={text!r}" in warning
    assert variable.accepted in warning


def test_variables_that_only_tensorflow_obeys_are_named_once(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    fresh(
        monkeypatch, "1:64MiB", TF_GPU_ALLOCATOR="cuda_malloc_async", TF_PER_DEVICE_MEMORY_LIMIT_MB="0"
    ).ready()
    (warning,) = warnings_of(caplog)
    assert warning.startswith("TF_GPU_ALLOCATOR='cuda_malloc_async' has no effect here")


def test_importing_reads_no_variable() -> None:
    done = run_on_gpus(
        "nonsense",
        """
        import allotment.tf
        os.environ["ALLOTMENT_SIMULATED_GPUS"] = "1:64MiB"
        print(len(allotment.tf.config.list_physical_devices("GPU")))
        """,
    )
    assert (done.stdout, done.stderr) == ("1\n", "")


@pytest.mark.parametrize("policy", ["tensorflow", "tight", ""])
def test_the_environment_chooses_the_policy_of_device_pools(
    policy: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    environ = {"TF_CPU_ALLOCATOR_USE_BFC": "1", "ALLOTMENT_POOL_POLICY": policy}
    context = fresh(monkeypatch, "1:64MiB", **environ)
    found = pools(context)
    assert [pool.policy for pool in found] == [policy or "tensorflow"] * 2
    # TensorFlow's hands out a chunk of less than twice the request whole.
    _, pool = found
    pool.malloc("33MiB")
    assert pool.can_allocate("31MiB") is (policy == "tight")
    assert caplog.messages == []


def test_a_policy_that_there_is_not_lists_those_there_are(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    context = fresh(monkeypatch, "1:64MiB", ALLOTMENT_POOL_POLICY="loose\n")
    assert [pool.policy for pool in pools(context)] == ["tensorflow"]
    (warning,) = warnings_of(caplog)
    assert warning == (
        r"ALLOTMENT_POOL_POLICY='loose\n' cannot be used: it counts as unset. Accepted: tensorflow or tight."
    )


#: What no variable accepts; of the mask, each names no device.
HOSTILE = {
    "control characters": "x\x1b[31m\n\x07",
    "a no-break space": "\xa00",
    "digits": "9" * 4300,
    "more digits than Python reads": "9" * 5000,
    "much text": "x" * 10_000,
    "no UTF-8": "\udcff\udcfe",
    "lists in lists": '{"cluster":' + "[" * 1200 + "]" * 1200 + "}",
    "objects in objects": '{"cluster":' * 100_000 + "1" + "}" * 100_000,
}


# Any text may be the path of a driver, which only real GPUs need: test_real_gpus has one that cannot be opened.
@pytest.mark.parametrize(
    "variable",
    [variable for variable in VARIABLES if variable not in (CUDA_DRIVER, RECORD)],
    ids=lambda variable: variable.name,
)
@pytest.mark.parametrize("text", HOSTILE.values(), ids=HOSTILE.keys())
def test_whatever_a_variable_holds_it_is_named_once_in_a_short_line(
    variable: Variable[Any], text: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    context = fresh(monkeypatch, **{"ALLOTMENT_SIMULATED_GPUS": "2:64MiB", variable.name: text})
    if variable.strict:
        with pytest.raises(ValueError, match=variable.name) as raised:
            context.ready()
        messages = [str(raised.value)]
    else:
        for _ in range(2):
            tf.config.list_logical_devices()
        messages = caplog.messages
    assert len(messages) == 1
    assert variable.name in messages[0]
    assert messages[0].isprintable()
    assert len(messages[0]) < 900
    if variable.name == "CUDA_VISIBLE_DEVICES":
        assert tf.config.list_physical_devices("GPU") == []


@pytest.mark.parametrize("text", HOSTILE.values(), ids=HOSTILE.keys())
@pytest.mark.parametrize("name", ["TF_GPU_ALLOCATOR", "TF_PER_DEVICE_MEMORY_LIMIT_MB"])
def test_variables_that_are_not_obeyed_are_named_in_a_short_line(
    name: str, text: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    fresh(monkeypatch, "1:64MiB", **{name: text}).ready()
    (message,) = caplog.messages
    assert message.startswith(f"{name}=")
    assert message.isprintable()
    assert len(message) < 500


@pytest.mark.parametrize("name", ["ALLOTMENT_OWNER_TAGS", "ALLOTMENT_GUARD"])
@pytest.mark.parametrize("text", ["x\x1b[31m", "9" * 5000, "\udcff"])
def test_switches_that_every_pool_reads_are_named_in_a_short_line(
    name: str, text: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(name, text)
    with pytest.raises(ValueError, match=f"{name}='.* is neither 0 nor 1") as raised:
        allotment.Pool("1MiB")
    assert str(raised.value).isprintable()
    assert len(str(raised.value)) < 400


@pytest.mark.parametrize("text", ['{"cluster": {"worker": "abc"}}', '{"cluster": 7}', "[]", "7", "{"])
def test_a_cluster_is_lists_of_tasks(text: str, caplog: pytest.LogCaptureFixture) -> None:
    assert read_settings({"TF_CONFIG": text}).tf_config_workers is None
    assert len(warnings_of(caplog)) == 1
