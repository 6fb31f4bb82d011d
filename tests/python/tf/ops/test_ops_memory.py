"""Arithmetic, linear algebra and networks on a simulated GPU: the CPU's values, and not a byte more than they take."""

from pathlib import Path

from support.devices import run_on_gpus

SETUP = """
import sys
sys.path.insert(0, os.environ["SUPPORT"])
import numpy as np
import allotment
from allotment.devices.context import context
from allotment.devices.device_scope import device
from allotment.tf.tensors.tensor import EagerTensor
from support.tf.op_samples import inputs, samples

gpu = next(each for each in context().ready().devices if each.kind == "GPU")

def requested():
    return gpu.pool.stats().requested

def tensors(result):
    if isinstance(result, EagerTensor):
        return [result]
    return [tensor for each in result for tensor in tensors(each)]
"""


def run(program: str, gpus: str = "1:64MiB") -> None:
    done = run_on_gpus(gpus, SETUP + program, SUPPORT=str(Path(__file__).parents[2]))
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    assert done.stdout == "done\n"


def test_values_are_those_of_the_cpu() -> None:
    run("""
with device("/CPU:0"):
    given = inputs()
    wanted = {name: tensors(sample(given)) for name, sample in samples().items()}
with device("/GPU:0"):
    given = inputs()
    for name, sample in samples().items():
        for result, expected in zip(tensors(sample(given)), wanted[name], strict=True):
            assert result.dtype is expected.dtype, name
            if result.dtype.is_floating or result.dtype.is_complex:
                np.testing.assert_allclose(result.numpy(), expected.numpy(), rtol=1e-6, atol=1e-6, err_msg=name)
            else:
                np.testing.assert_array_equal(result.numpy(), expected.numpy(), name)
print("done")
""")


def test_results_take_what_their_elements_take_and_give_it_back() -> None:
    run("""
with device("/GPU:0"):
    given = inputs()
    kept = requested()
    assert kept == sum(each._array.nbytes for each in given.values() if each.dtype.name != "int32")
    for name, sample in samples().items():
        result = sample(given)
        mine = {id(each): each._array for each in tensors(result) if each._home is gpu}
        taken = requested() - kept
        assert taken == sum(array.nbytes for array in mine.values()), (name, taken)
        for each in tensors(result):
            assert each.device.endswith("GPU:0"), name
            assert each._array.flags.c_contiguous, name
        del result, mine, each
        assert requested() == kept, name
    del given
assert requested() == 0
assert gpu.pool.stats().in_use == 0
print("done")
""")


def test_int32_is_computed_in_host_memory() -> None:
    run("""
with device("/GPU:0"):
    given = inputs()
    kept = requested()
    for name in ("add, int32", "floordiv, int32", "matmul, int32", "equal, int32"):
        result = samples()[name](given)
        assert result.device.endswith("GPU:0"), name
        assert result.backing_device.endswith("CPU:0"), name
        assert requested() == kept, name
    # A position is computed where the elements are.
    assert samples()["argmin"](given).backing_device.endswith("GPU:0")
print("done")
""")


def test_memory_that_runs_out_within_an_operation_comes_back() -> None:
    run(
        """
from allotment.tf import math, nn
from allotment.errors import ResourceExhaustedError
from allotment.tf.ops.array.creation import ones
with device("/GPU:0"):
    image = ones([1, 512, 512, 4])            # 4 MiB; with a result of 24 MiB, no copy with a border fits
    filters = ones([3, 3, 4, 24])
    kept = requested()
    try:
        nn.conv2d(image, filters, 1, "SAME")
    except ResourceExhaustedError as error:
        assert "OOM when allocating tensor with shape[" in str(error), error
        assert "[Op:Conv2D]" in str(error), error
    else:
        raise AssertionError("32 MiB and a border fit?")
    assert requested() == kept
    # All windows as rows would be 36 MiB.
    nn.conv2d(image, filters[..., :1], 1, "SAME")
    assert math.reduce_sum(image).numpy() == 1 << 20
print("done")
""",
        gpus="1:32MiB",
    )


def test_a_result_of_a_size_that_cannot_be_asked_for_is_refused_with_the_devices_figures() -> None:
    done = run_on_gpus(
        "1:64MiB",
        r"""
        import allotment.tf as tf
        import allotment.tf.v1 as v1

        def refused(call):
            try:
                call()
            except tf.errors.ResourceExhaustedError as error:
                assert (error.limit, error.verdict) == (64 << 20, "limit"), error
                return str(error)

        with tf.device("GPU:0"):
            for call in (
                lambda: tf.zeros([1 << 62]),
                lambda: tf.tile(tf.zeros([1]), [1 << 62]),
                lambda: tf.random.uniform([1 << 61]),
            ):
                assert "OOM when allocating tensor of more than 9223372036854775552 bytes on" in refused(call)
        with v1.device("/gpu:0"):
            lengths = v1.placeholder(v1.int64, [1])
            many = v1.fill(lengths, 1.0)
        with v1.Session() as session:
            text = refused(lambda: session.run(many, {lengths: [1 << 62]}))
            assert "Node: 'Fill'\nOOM when allocating tensor of more than" in text
            assert session.run(many, {lengths: [3]}).sum() == 3
        """,
    )
    assert (done.returncode, done.stderr) == (0, "")
