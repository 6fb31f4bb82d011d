"""``ConfigProto`` and the messages in it."""

import copy

import pytest

import allotment.tf as tf
from support.child import run_program

v1 = tf.compat.v1


def test_a_message_is_written_as_protocol_buffers_write_it() -> None:
    config = v1.ConfigProto(
        device_count={"GPU": 2, "CPU": 1},
        gpu_options={
            "allow_growth": True,
            "per_process_gpu_memory_fraction": 0.4,
            "visible_device_list": "1,0",
        },
        log_device_placement=True,
        graph_options=v1.GraphOptions(place_pruned_graph=True),
    )
    assert str(config).splitlines() == [
        *(
            "device_count {",
            '  key: "CPU"',
            "  value: 1",
            "}",
            "device_count {",
            '  key: "GPU"',
            "  value: 2",
            "}",
        ),
        *("gpu_options {", "  per_process_gpu_memory_fraction: 0.4", "  allow_growth: true"),
        *('  visible_device_list: "1,0"', "}", "log_device_placement: true"),
        *("graph_options {", "  place_pruned_graph: true", "}"),
    ]
    assert config.SerializeToString().hex() == (
        "0a070a0343505510010a070a0347505510023210099a9999999999d93f20012a03312c30400152023001"
    )


def test_copies_and_comparisons_go_by_value() -> None:
    one = v1.ConfigProto(gpu_options=v1.GPUOptions(allow_growth=True))
    other = copy.deepcopy(one)
    assert one == other
    other.gpu_options.allow_growth = False
    other.gpu_options.experimental.virtual_devices.add(memory_limit_mb=[10, 20])
    assert one != other
    one.MergeFrom(other)
    assert one.gpu_options.allow_growth
    assert list(one.gpu_options.experimental.virtual_devices[0].memory_limit_mb) == [10.0, 20.0]
    one.Clear()
    assert str(one) == ""
    with pytest.raises(
        TypeError, match="must be instance of same class: expected ConfigProto got GPUOptions"
    ):
        one.CopyFrom(v1.GPUOptions())


def test_what_is_set_is_known() -> None:
    config = v1.ConfigProto()
    assert not config.HasField("gpu_options")
    config.gpu_options.CopyFrom(v1.GPUOptions(allow_growth=True))
    assert config.HasField("gpu_options")
    config.ClearField("gpu_options")
    assert not config.gpu_options.allow_growth
    for call in (config.HasField, config.ClearField):
        with pytest.raises(ValueError, match=r'no .*"foo" field'):
            call("foo")
    assert "foo" not in dir(config)
    assert "gpu_options" in dir(config)
    assert not hasattr(config, "foo")


@pytest.mark.parametrize(
    "change",
    [
        lambda config: setattr(config, "intra_op_parallelism_threads", 1.5),
        lambda config: setattr(config, "intra_op_parallelism_threads", "1"),
        lambda config: config.device_count.__setitem__(1, 1),
        lambda config: config.device_count.__setitem__("CPU", "1"),
        lambda config: config.device_filters.append(3),
        lambda config: setattr(config.gpu_options, "visible_device_list", 0),
    ],
)
def test_values_of_other_types_are_refused(change: object) -> None:
    config = v1.ConfigProto()
    with pytest.raises(TypeError):
        change(config)  # type: ignore[operator]
    assert str(config) == ""


def test_none_is_as_if_it_were_not_given() -> None:
    assert v1.ConfigProto(gpu_options=None, log_device_placement=None) == v1.ConfigProto()


def test_options_that_only_are_kept_say_so_once() -> None:
    done = run_program("""
import allotment.tf as tf
v1 = tf.compat.v1
config = v1.ConfigProto(intra_op_parallelism_threads=4, inter_op_parallelism_threads=0, allow_soft_placement=True)
config.gpu_options.allow_growth = True
config.gpu_options.force_gpu_compatible = True
config.gpu_options.experimental.virtual_devices.add(priority=[1])
config.graph_options.optimizer_options.opt_level = -1
with tf.Graph().as_default():
    x = tf.constant(1.0)
    for _ in range(2):
        with v1.Session(config=config) as session:
            session.run(x, options=v1.RunOptions(timeout_in_ms=5, report_tensor_allocations_upon_oom=True))
    v1.Session(config=v1.ConfigProto(device_count={"CPU": 1})).run(x)
""")
    assert done.returncode == 0, done.stderr
    assert done.stderr.splitlines() == [
        "intra_op_parallelism_threads is set, and has no effect here: NumPy has threads of its own.",
        "gpu_options.force_gpu_compatible is set, and has no effect here.",
        "gpu_options.experimental.virtual_devices.priority is set, and has no effect here.",
        "graph_options.optimizer_options.opt_level is set, and has no effect here.",
        "timeout_in_ms is set, and has no effect here.",
    ]
