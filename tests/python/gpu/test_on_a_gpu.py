"""What needs a GPU: real kernels in a pool's memory, streams that overlap, exchange between libraries.

`make test-gpu` runs these tests, the documents' programs for a GPU and the examples. Each test is a process of its own.
None of them has run yet: no GPU was at hand.
"""

import textwrap
from pathlib import Path

import pytest

from support.child import run_program
from support.cuda import check

pytestmark = [pytest.mark.gpu, pytest.mark.timeout(600)]

_START = f"import sys\nsys.path.insert(0, {str(Path(__file__).parents[1])!r})\nimport gc\nimport allotment\n"


def play(program: str, *packages: str) -> None:
    for package in packages:
        pytest.importorskip(package)
    check(run_program(_START + textwrap.dedent(program), timeout=500))


@pytest.mark.parametrize("source", ["cuda:0", "cuda-vmm:0"])
def test_a_pool_grows_trims_and_ends(source: str) -> None:
    play(
        f"""
        import random
        from allotment._core import cuda_memory_info
        numbers = random.Random(1)
        pool = allotment.Pool("1GiB", source={source!r})
        live = []
        for _ in range(5000):
            if live and numbers.random() < 0.5:
                pool.free(live.pop(numbers.randrange(len(live))))
            else:
                try:
                    live.append(pool.malloc(numbers.randrange(1, 16 << 20)))
                except allotment.OutOfMemoryError:
                    pool.free(live.pop())
        for address in live:
            pool.free(address)
        held, _ = cuda_memory_info(0)
        reserved = pool.stats().reserved
        assert pool.trim() == reserved
        assert cuda_memory_info(0)[0] - held >= reserved * 0.9
        pool.free(pool.malloc("1GiB"))
        """
    )


def test_streams_that_overlap_never_see_each_others_values() -> None:
    play(
        """
        import random
        import cupy
        from allotment.integrations import cupy as pooled
        pool = allotment.Pool("256MiB", source="cuda:0")  # full of reuse
        numbers = random.Random(2)
        streams = [cupy.cuda.Stream(non_blocking=True) for _ in range(4)]
        wrong = []
        with pooled.use(pool):
            counts = [cupy.zeros(1, "i8") for _ in streams]
            for step in range(4000):
                number = numbers.randrange(4)
                with streams[number]:
                    array = cupy.full(numbers.randrange(1 << 16, 1 << 21), step, "i4")
                    for _ in range(3):
                        array += 1
                    counts[number] += (array != step + 3).sum()
                    del array  # while the kernels are queued
            for stream in streams:
                stream.synchronize()
            assert [int(count[0]) for count in counts] == [0] * 4
            del counts
        assert pool.stats().num_live == 0
        """,
        "cupy",
    )


def test_cupy_on_threads_in_one_pool() -> None:
    play(
        """
        import threading
        import cupy
        from allotment.integrations import cupy as pooled
        pool = allotment.Pool("512MiB", source="cuda:0")
        pooled.install(pool)
        found = []
        def work(number):
            with cupy.cuda.Stream(non_blocking=True):
                for step in range(300):
                    array = cupy.full(100_000, number, "f4")
                    found.append(float(array.sum()) == 100_000.0 * number)
        threads = [threading.Thread(target=work, args=(number,)) for number in range(4)]
        for thread in threads: thread.start()
        for thread in threads: thread.join()
        assert len(found) == 1200 and all(found)
        pooled.uninstall()
        gc.collect()
        assert pool.stats().num_live == 0
        """,
        "cupy",
    )


def test_pytorch_computes_gradients_in_a_pool_and_refusals_pass() -> None:
    play(
        """
        import torch
        from allotment.integrations import torch as pooled
        pool = allotment.Pool("1GiB", source="cuda:0", name="net")
        pooled.install(pool)
        weights = torch.ones(1024, 1024, device="cuda", requires_grad=True)
        (weights @ weights).sum().backward()
        assert torch.all(weights.grad == 2048.0)
        assert pool.stats().in_use >= 3 * (4 << 20)
        try:
            torch.empty(2 << 30, dtype=torch.uint8, device="cuda")
        except torch.OutOfMemoryError:
            assert pooled.take_refusal().limit == 1 << 30
        else:
            raise AssertionError("not refused")
        torch.empty(1 << 20, device="cuda")
        del weights
        pooled.uninstall()
        torch.cuda.empty_cache()
        gc.collect()
        assert pool.stats().num_live == 0, pool.stats()
        inner = allotment.Pool("64MiB", source="cuda:0", name="inner")
        try:
            with pooled.use(inner):
                torch.empty(1 << 30, dtype=torch.uint8, device="cuda")
        except torch.OutOfMemoryError as error:
            assert error.__notes__[0].startswith("pool 'inner': ")
        """,
        "torch",
    )


def test_an_allocation_is_an_array_of_cupy_and_pytorch() -> None:
    play(
        """
        import cupy
        pool = allotment.Pool("64MiB", source="cuda:0")
        allocation = pool.allocate(4096)
        array = cupy.from_dlpack(allocation).view("f4")
        array[:] = 2.0
        again = cupy.asarray(allocation).view("f4")
        assert float(again.sum()) == 2048.0
        try:
            allocation.free()
        except BufferError:
            pass
        else:
            raise AssertionError("freed under an array")
        del array, again
        gc.collect()
        allocation.free()
        """,
        "cupy",
    )
    play(
        """
        import torch
        pool = allotment.Pool("64MiB", source="cuda:0")
        allocation = pool.allocate(4096)
        tensor = torch.from_dlpack(allocation).view(torch.float32)
        tensor.fill_(2.0)
        assert float(tensor.sum()) == 2048.0 and tensor.data_ptr() == allocation.address
        del tensor, allocation
        gc.collect()
        assert pool.stats().num_live == 0
        """,
        "torch",
    )


def test_operations_on_the_gpu_agree_with_those_on_the_cpu() -> None:
    play(
        """
        import numpy as np
        import allotment.tf as tf
        from allotment.tf.tensors.tensor import EagerTensor
        from support.tf.op_samples import inputs, samples

        def tensors(result):
            return [result] if isinstance(result, EagerTensor) else [t for each in result for t in tensors(each)]

        with tf.device("CPU:0"):
            given = inputs()
            wanted = {name: tensors(sample(given)) for name, sample in samples().items()}
        with tf.device("GPU:0"):
            given = inputs()
            for name, sample in samples().items():
                for found, expected in zip(tensors(sample(given)), wanted[name], strict=True):
                    assert found.dtype is expected.dtype, name
                    near = 4e-3 if found.dtype.name == "float16" else 1e-4
                    np.testing.assert_allclose(found.numpy(), expected.numpy(), near, near, err_msg=name)
            x = tf.constant([[1.0, 2.0], [3.0, 4.0]])
        assert x.backing_device.endswith("GPU:0")
        y = tf.experimental.dlpack.from_dlpack(tf.experimental.dlpack.to_dlpack(x))
        assert y.backing_device.endswith("GPU:0") and y.numpy().tolist() == x.numpy().tolist()
        """,
        "cupy",
    )
