"""Programs of the kinds that TensorFlow's guides show, as users write them: they behave as the guides say."""

import pytest

from support.child import run_program

J = "/job:localhost/replica:0/task:0/device:"
PRODUCT = "[[22. 28.]\n [49. 64.]]"


def run(program: str, gpus: str, status: int = 0) -> tuple[str, str]:
    setting = f"import os\nos.environ['ALLOTMENT_SIMULATED_GPUS'] = {gpus!r}\nimport allotment, allotment.tf as tf\n"
    done = run_program(setting + program)
    assert done.returncode == status, done.stderr
    return done.stdout, done.stderr


def operations(log: str) -> list[str]:
    """The log's lines without those of constants, which the guides do not show."""
    return [line for line in log.splitlines() if "_EagerConst" not in line]


def test_a_cpu_split_in_two_cannot_be_split_again_later() -> None:
    out, _ = run(
        """
config = tf.config.experimental
(cpu,) = config.list_physical_devices("CPU")
config.set_virtual_device_configuration(cpu, [config.VirtualDeviceConfiguration() for _ in "ab"])
print(len(config.list_logical_devices("CPU")))
try:
    config.set_virtual_device_configuration(cpu, virtual_devices=[config.VirtualDeviceConfiguration()] * 4)
except RuntimeError as error:
    print("too late:", str(error).splitlines()[0])
""",
        "0",
    )
    assert out.splitlines() == ["2", "too late: Virtual devices cannot be modified after being initialized"]


def test_a_gpu_split_in_two_takes_no_growth_and_no_other_split() -> None:
    out, _ = run(
        """
config = tf.config.experimental
gpus = config.list_physical_devices("GPU")
half = config.VirtualDeviceConfiguration(memory_limit=100)
config.set_virtual_device_configuration(gpus[0], [half, half])
for change in (
    lambda: config.set_memory_growth(gpus[0], True),
    lambda: config.list_logical_devices("GPU"),
    lambda: config.set_virtual_device_configuration(gpus[0], [half] * 3),
):
    try:
        print(len(change()))
    except (ValueError, RuntimeError) as error:
        print(type(error).__name__)
""",
        "1:1GiB",
    )
    assert out.split() == ["ValueError", "2", "RuntimeError"]


@pytest.mark.parametrize(("gpus", "count"), [("2:1GiB", 1), ("0", 0)])
def test_one_gpu_of_several_can_be_chosen(gpus: str, count: int) -> None:
    out, _ = run(
        """
gpus = tf.config.list_physical_devices("GPU")
if gpus:
    tf.config.set_visible_devices(gpus[0], "GPU")
print(len(gpus), len(tf.config.list_logical_devices("GPU")))
""",
        gpus,
    )
    assert out.split() == [gpus[0], str(count)]


def test_growth_for_every_gpu() -> None:
    out, _ = run(
        """
for gpu in tf.config.list_physical_devices("GPU"):
    tf.config.experimental.set_memory_growth(gpu, True)
print([tf.config.experimental.get_memory_growth(g) for g in tf.config.list_physical_devices("GPU")])
print(len(tf.config.list_logical_devices("GPU")))
""",
        "2:1GiB",
    )
    assert out.splitlines() == ["[True, True]", "2"]


def test_the_early_names_grow_and_take_a_share() -> None:
    run(
        """
for arguments in ((), (True,)):
    tf.config.gpu.set_per_process_memory_growth(*arguments)
tf.config.gpu.set_per_process_memory_growth(enabled=True)
assert tf.config.gpu.get_per_process_memory_growth() is True
tf.gpu.set_per_process_memory_fraction(0.4)
x = tf.zeros([1024])
with tf.device("GPU:1"):
    tf.zeros([int(0.35 * 2**30 / 4)])
    try:
        tf.zeros([int(0.45 * 2**30 / 4)])
    except tf.errors.ResourceExhaustedError as error:
        assert error.limit == int(0.4 * 2**30)
    else:
        raise AssertionError("not refused")
""",
        "2:1GiB",
    )


PRODUCT_OF_TWO = """
tf.debugging.set_log_device_placement(True)
a = tf.constant([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]])
b = tf.constant([1.0, 2.0, 3.0, 4.0, 5.0, 6.0], shape=[3, 2])
print(tf.matmul(a, b))
"""


@pytest.mark.parametrize(("gpus", "device"), [("0", "CPU:0"), ("1:1GiB", "GPU:0")])
def test_the_log_says_where_a_product_was_computed(gpus: str, device: str) -> None:
    out, log = run(PRODUCT_OF_TWO, gpus)
    assert out == f"tf.Tensor(\n{PRODUCT}, shape=(2, 2), dtype=float32)\n"
    assert f"Executing op MatMul in device {J}{device}" in operations(log)


def test_constants_placed_by_hand_and_a_product_placed_by_itself() -> None:
    out, log = run(
        """
tf.debugging.set_log_device_placement(True)
with tf.device("/CPU:0"):
    a = tf.constant([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]])
    b = tf.constant([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]])
c = tf.matmul(a, b)
print(c)
assert a.device.endswith("CPU:0") and c.device.endswith("GPU:0")
""",
        "1:1GiB",
    )
    assert PRODUCT in out
    assert operations(log) == [f"Executing op MatMul in device {J}GPU:0"]


@pytest.mark.parametrize("gpus", ["3:1GiB", "1:1GiB"])
def test_a_gpu_that_is_not_there_is_an_error_that_can_be_caught_and_then_a_choice(gpus: str) -> None:
    program = """
try:
    with tf.device("/device:GPU:2"):
        a = tf.constant([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]])
        print(tf.matmul(a, a, transpose_b=True).device)
except RuntimeError as error:
    print(type(error).__name__, "GPU:2" in str(error))
tf.config.set_soft_device_placement(True)
with tf.device("/device:GPU:2"):
    print(tf.constant([1.0]).device)
"""
    out, _ = run(program, gpus)
    if gpus.startswith("3"):
        assert out.split() == [J + "GPU:2"] * 2
    else:
        assert out.splitlines() == ["InvalidArgumentError True", J + "GPU:0"]


def test_towers_on_two_gpus_summed_on_the_cpu() -> None:
    out, log = run(
        """
tf.debugging.set_log_device_placement(True)
towers = []
for gpu in tf.config.list_logical_devices("GPU")[2:]:
    with tf.device(gpu.name):
        a = tf.constant([1.0, 2.0, 3.0, 4.0, 5.0, 6.0], shape=[2, 3])
        b = tf.constant([1.0, 2.0, 3.0, 4.0, 5.0, 6.0], shape=[3, 2])
        towers.append(tf.matmul(a, b))
with tf.device("/CPU:0"):
    print(tf.add_n(towers))
""",
        "4:1GiB",
    )
    assert out == "tf.Tensor(\n[[ 44.  56.]\n [ 98. 128.]], shape=(2, 2), dtype=float32)\n"
    assert [line for line in operations(log) if "Reshape" not in line] == [
        f"Executing op MatMul in device {J}GPU:2",
        f"Executing op MatMul in device {J}GPU:3",
        f"Executing op AddN in device {J}CPU:0",
    ]


def test_a_limit_in_mebibytes() -> None:
    run(
        """
(gpu,) = tf.config.list_physical_devices("GPU")
tf.config.set_logical_device_configuration(gpu, [tf.config.LogicalDeviceConfiguration(memory_limit=1024)])
assert tf.config.get_logical_device_configuration(gpu)[0].memory_limit == 1024
assert len(tf.config.list_logical_devices("GPU")) == 1
""",
        "1:4GiB",
    )
