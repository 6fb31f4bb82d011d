"""Device names: the two grammars, where they differ, merging, and printing (field report B022)."""

import pytest

from allotment.devices.names import (
    DeviceName,
    device_name,
    full_name,
    parse,
    parse_runtime,
    parse_runtime_slashes,
    short_name,
)

# From the record of TensorFlow 2.21: what its Python parser makes of a text.
CANONICAL = {
    "/cpu:0": "/device:CPU:0",
    "cpu:0": "/device:CPU:0",
    "CPU:0": "/device:CPU:0",
    "Cpu:0": "/device:CPU:0",
    "gPu:1": "/device:GPU:1",
    "gpu": "/device:GPU:*",
    "/gpu": "/device:GPU:*",
    "gpu:*": "/device:GPU:*",
    "/device:GPU:*": "/device:GPU:*",
    "device:gpu:2": "/device:GPU:2",
    "/device:Foo:3": "/device:Foo:3",
    "/device:XLA_CPU:0": "/device:XLA_CPU:0",
    "/device:*:0": "/device:*:0",
    "/tpu:0": "/device:TPU:0",
    "/device:tpu:0": "/device:tpu:0",
    "epu:2": "/device:EPU:2",
    "/CUSTOM:*": "/device:CUSTOM:*",
    "/job:localhost/replica:0/task:0/cpu:0": "/job:localhost/replica:0/task:0/device:CPU:0",
    "/task:1/replica:2/job:foo": "/job:foo/replica:2/task:1",
    "/job:a/job:b": "/job:b",
    "/task:1/task:2": "/task:2",
    "/job:*": "/job:*",
    "/job:": "/job:",
    "/job:1bad": "/job:1bad",
    "": "",
    "/": "",
    "//": "",
    "//cpu:0": "/device:CPU:0",
    "/job:a//cpu:1/": "/job:a/device:CPU:1",
    "/cpu:01": "/device:CPU:1",
    "cpu:0 ": "/device:CPU:0",
    "/cpu: 1": "/device:CPU:1",
    "/cpu:-1": "/device:CPU:-1",
    "/cpu:1_0": "/device:CPU:10",
    "/task:+2": "/task:2",
}

UNKNOWN = {
    "nonsense": "nonsense",
    "/foo:3": "foo",
    "XLA_CPU:0": "XLA_CPU",
    " cpu:0": " cpu",
    "/cpu:0:1": "cpu",
    "/JOB:a": "JOB",
    "/device:GPU:0:0": "device",
    "/device:CPU": "device",
    "/device:*": "device",
    "/physical_device:CPU:0": "physical_device",
    "/job:a:b/cpu:0": "job",
}


@pytest.mark.parametrize(("text", "canonical"), CANONICAL.items())
def test_the_python_grammar_reads_and_prints(text: str, canonical: str) -> None:
    assert parse(text).to_string() == canonical
    assert parse(canonical) == parse(text)


def test_nothing_is_the_empty_name() -> None:
    assert parse(None) == DeviceName()


@pytest.mark.parametrize(("text", "first"), UNKNOWN.items())
def test_the_python_grammar_names_what_it_does_not_know(text: str, first: str) -> None:
    with pytest.raises(ValueError, match="Unknown attribute") as raised:
        parse(text)
    assert str(raised.value) == (
        f"Unknown attribute '{first}' is encountered while parsing the device spec: '{text}'."
    )


@pytest.mark.parametrize("text", ["/cpu:0/gpu:0", "/device:CPU:0/device:CPU:0", "/cpu:0/gpu:x"])
def test_a_name_has_one_device(text: str) -> None:
    with pytest.raises(ValueError, match="Multiple") as raised:
        parse(text)
    assert (
        str(raised.value) == f"Multiple device types are not allowed while parsing the device spec: {text}."
    )


@pytest.mark.parametrize(
    ("text", "digits"),
    [
        ("/cpu:x", "x"),
        ("/device:GPU:x", "x"),
        ("/CPU:", ""),
        ("/replica:*", "*"),
        ("/task:*", "*"),
        ("/replica:one", "one"),
    ],
)
def test_an_index_is_a_number(text: str, digits: str) -> None:
    with pytest.raises(ValueError, match="invalid literal") as raised:
        parse(text)
    assert str(raised.value) == f"invalid literal for int() with base 10: '{digits}'"


@pytest.mark.parametrize(
    ("value", "error"), [(3, AttributeError), (b"/cpu:0", TypeError), (["/cpu:0"], TypeError)]
)
def test_a_name_is_a_text(value: object, error: type[Exception]) -> None:
    with pytest.raises(error):
        parse(value)


def test_names_merge_part_by_part() -> None:
    inner, outer = parse("/cpu:*"), parse("/job:w/gpu:2")
    assert outer.merged_with(inner).to_string() == "/job:w/device:CPU:2"
    assert inner.merged_with(outer).to_string() == "/job:w/device:GPU:2"
    assert outer.merged_with(DeviceName()) == outer


def test_names_of_this_process() -> None:
    assert full_name("GPU", 3) == "/job:localhost/replica:0/task:0/device:GPU:3"
    assert short_name("CPU", 0) == "/device:CPU:0"
    assert device_name("GPU", 3) == parse(full_name("GPU", 3)) == parse_runtime(full_name("GPU", 3))


RUNTIME = {
    "CPU:0": DeviceName(kind="CPU", index=0),
    "CPU:00": DeviceName(kind="CPU", index=0),
    # Types are case-sensitive here, and not checked.
    "cpu:0": DeviceName(kind="cpu", index=0),
    "FOO:0": DeviceName(kind="FOO", index=0),
    "unknown_device:0": DeviceName(kind="unknown_device", index=0),
    "/cpu:0": DeviceName(kind="CPU", index=0),
    "/CPU:0": DeviceName(kind="CPU", index=0),
    "/gpu:*": DeviceName(kind="GPU"),
    "/device:GPU": DeviceName(kind="GPU"),
    "/device:GPU:*": DeviceName(kind="GPU"),
    "/device:gpu:1": DeviceName(kind="gpu", index=1),
    "/device:*": DeviceName(),
    "/replica:*": DeviceName(),
    "/job:localhost": DeviceName(job="localhost"),
    "/job:w_1/replica:2/task:3/device:GPU:4": DeviceName("w_1", 2, 3, "GPU", 4),
    "/device:GPU:4/job:w": DeviceName(job="w", kind="GPU", index=4),
    "/gpu:1/device:CPU": DeviceName(kind="CPU"),
    "": DeviceName(),
    "/": DeviceName(),
}


@pytest.mark.parametrize(("text", "name"), RUNTIME.items())
def test_the_runtime_grammar_reads(text: str, name: DeviceName) -> None:
    assert parse_runtime(text) == name


@pytest.mark.parametrize(
    "text",
    [
        "CPU:*",
        "CPU",
        "/cpu",
        "GPU",
        "/gpu",
        "CPU:",
        "CPU:GPU",
        "nonexistent",
        "CPU:0 ",
        "GPU:0:1",
        "/job:1bad",
        "/job:a-b",
        "/device:GPU:",
        "/tpu:0",
        "/Cpu:0",
        "//cpu:0",
        "/cpu:0/",
        "job:a/cpu:0",
        "/physical_device:GPU:0",
    ],
)
def test_the_runtime_grammar_refuses(text: str) -> None:
    assert parse_runtime(text) is None


def test_graphs_are_placed_by_the_form_with_slashes_alone() -> None:
    assert parse_runtime_slashes("/device:GPU:1") == DeviceName(kind="GPU", index=1)
    assert parse_runtime_slashes("GPU:1") is None


def test_a_part_that_is_not_set_matches_all() -> None:
    device = device_name("GPU", 1)
    for text in ("", "/job:localhost", "/gpu:*", "/gpu:1", "/task:0/device:GPU"):
        name = parse_runtime(text)
        assert name is not None
        assert name.matches(device), text
    for text in ("/job:worker", "/task:1", "/gpu:0", "/cpu:*", "gpu:1"):
        name = parse_runtime(text)
        assert name is not None
        assert not name.matches(device), text
