"""`DeviceSpec`: construction, members, equality, and the class that can change. Facts of TensorFlow 2.21."""

import copy
import pickle
from typing import Any

import pytest

import allotment.tf as tf

Spec = tf.DeviceSpec
Mutable = tf.compat.v1.DeviceSpec


def test_the_empty_spec() -> None:
    spec = Spec()
    assert str(spec) == "<DeviceSpec(job=None, replica=None, task=None, device_type=None, device_index=None)>"
    assert spec.to_string() == ""


@pytest.mark.parametrize(
    ("fields", "text"),
    [
        ({"job": "ps", "device_type": "GPU", "device_index": 0}, "/job:ps/device:GPU:0"),
        ({"device_type": "cpu"}, "/device:CPU:*"),
        ({"device_type": "gpu"}, "/device:GPU:*"),
        ({"device_type": "Gpu"}, "/device:Gpu:*"),
        ({"device_type": "tpu"}, "/device:tpu:*"),
        ({"device_type": 5}, "/device:5:*"),
        ({"job": 0}, "/job:0"),
        ({"device_type": "GPU", "device_index": "3"}, "/device:GPU:3"),
        ({"task": 1.7}, "/task:1"),
        ({"task": True}, "/task:1"),
        ({"device_index": 1}, ""),
    ],
)
def test_fields_are_converted(fields: dict[str, Any], text: str) -> None:
    assert Spec(**fields).to_string() == text


def test_fields_come_in_order() -> None:
    spec = Spec("w", 1, 2, "CPU", 3)
    assert spec.to_string() == "/job:w/replica:1/task:2/device:CPU:3"
    assert (spec.job, spec.replica, spec.task, spec.device_type, spec.device_index) == ("w", 1, 2, "CPU", 3)
    assert repr(spec) == "<DeviceSpec(job=w, replica=1, task=2, device_type=CPU, device_index=3)>"


def test_an_index_must_be_a_number() -> None:
    with pytest.raises(ValueError, match=r"invalid literal for int\(\) with base 10: 'x'"):
        Spec(replica="x")


@pytest.mark.parametrize("make", [lambda: Spec(device="GPU"), lambda: Spec(job="a").replace(device="GPU")])  # type: ignore[call-arg]
def test_a_field_must_exist(make: Any) -> None:
    with pytest.raises(TypeError, match="got an unexpected keyword argument 'device'"):
        make()


def test_a_text_gives_a_new_spec() -> None:
    spec = Spec.from_string("/CPU:0")
    other = spec.parse_from_string("/GPU:0")
    assert (spec.to_string(), other.to_string()) == ("/device:CPU:0", "/device:GPU:0")
    assert Spec.from_string(None) == Spec()
    assert type(Mutable.from_string("/CPU:0")) is Mutable


@pytest.mark.parametrize(
    ("value", "error"),
    [(3, AttributeError), (b"/cpu:0", TypeError), (["/cpu:0"], TypeError), (Spec(), AttributeError)],
)
def test_a_text_is_a_text(value: Any, error: type[Exception]) -> None:
    with pytest.raises(error):
        Spec.from_string(value)


def test_merging_takes_what_is_set() -> None:
    a = Spec(job="a", task=1, device_type="CPU")
    b = Spec(device_type="GPU", device_index=1)
    assert a.make_merged_spec(b).to_string() == "/job:a/task:1/device:GPU:1"
    assert b.make_merged_spec(a).to_string() == "/job:a/task:1/device:CPU:1"
    assert a.to_string() == "/job:a/task:1/device:CPU:*"


def test_replacing_makes_a_new_spec_and_none_clears() -> None:
    spec = Spec(job="a", device_type="CPU", device_index=2)
    assert spec.replace(device_type="GPU").to_string() == "/job:a/device:GPU:2"
    assert spec.replace(job=None, device_index=None).to_string() == "/device:CPU:*"
    assert spec.replace() == spec
    assert spec.replace() is not spec


def test_equal_means_the_same_text() -> None:
    spec = Spec(job="a", device_type="CPU")
    assert spec == Spec(job="a", device_type="cpu")
    assert Spec(device_index=1) == Spec()
    assert spec != "/job:a/device:CPU:*"
    assert spec != Spec(job="b")
    assert hash(spec) == hash(spec.to_string())
    assert {spec: 1}[Spec("a", device_type="CPU")] == 1


@pytest.mark.parametrize("name", ["job", "replica", "task", "device_type", "device_index", "other"])
def test_a_spec_cannot_change(name: str) -> None:
    with pytest.raises(AttributeError):
        setattr(Spec(job="a"), name, "x")
    assert not hasattr(Spec, "merge_from")


@pytest.mark.parametrize("cls", [Spec, Mutable])
def test_specs_are_copied_and_pickled(cls: type[tf.DeviceSpec]) -> None:
    spec = cls.from_string("/job:a/gpu:1")
    copies = [copy.copy(spec), copy.deepcopy(spec)]
    copies += [pickle.loads(pickle.dumps(spec, protocol)) for protocol in range(pickle.HIGHEST_PROTOCOL + 1)]
    for each in copies:
        assert each == spec
        assert type(each) is cls


def test_the_class_of_tensorflow_1_can_change() -> None:
    spec = Mutable(device_type="CPU")
    spec.device_index = "2"
    spec.job = "w"
    spec.replica = 1
    spec.device_type = "gpu"
    assert spec.to_string() == "/job:w/replica:1/device:GPU:2"
    assert spec.parse_from_string("/gpu:1") is spec
    assert spec.to_string() == "/device:GPU:1"
    spec.merge_from(Mutable(task=3))
    assert spec.to_string() == "/task:3/device:GPU:1"
    spec.task = None
    assert spec.to_string() == "/device:GPU:1"


def test_the_class_of_tensorflow_1_is_a_subclass_and_never_equal() -> None:
    assert issubclass(Mutable, Spec)
    assert Mutable(job="a") == Mutable(job="a")
    assert Mutable(job="a") != Spec(job="a")
    assert Spec(job="a") != Mutable(job="a")
