"""Buffers of ggml in a pool, by the buffer type of the example in C."""

import ctypes
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from allotment import MemoryDamageError, Pool
from support.guests.ggml import F32, FRONT, Ggml, Tensor
from support.pools.owners import in_use, requested_by_owner


@pytest.fixture(scope="module")
def ggml(tmp_path_factory: pytest.TempPathFactory) -> Ggml:
    return Ggml(tmp_path_factory.mktemp("ggml"))


@pytest.fixture
def pool() -> Pool:
    return Pool("8MiB", name="guests", owner_tags=True)


@pytest.mark.parametrize("elements", [1, 7, 1000, 1 << 20])
def test_tensors_are_in_the_pool_and_go_home(elements: int, pool: Pool, ggml: Ggml) -> None:
    tensor = Tensor(ggml, ggml.buffer_type(pool), elements)
    assert requested_by_owner(pool) == {"ggml": tensor.nbytes + FRONT}
    assert tensor.nbytes >= 4 * elements
    assert tensor.address % 64 == 0
    (chunk,) = (chunk for region in pool.snapshot().regions for chunk in region.chunks if chunk.in_use)
    assert chunk.address < tensor.address <= chunk.address + chunk.size - 4 * elements
    tensor.values[elements - 1] = 1.5
    assert tensor.values[elements - 1] == 1.5
    del tensor
    assert in_use(pool) == 0


def test_a_refusal_is_a_null_buffer_and_the_pool_says_why(pool: Pool, ggml: Ggml) -> None:
    buffer_type = ggml.buffer_type(pool)
    ggml.log.clear()
    with pytest.raises(
        MemoryError, match=r"pool 'guests': out of memory: asked for 8.00 MiB \(8388672 bytes"
    ):
        Tensor(ggml, buffer_type, 1 << 21)
    assert "failed to allocate" in "".join(ggml.log)
    tensor = Tensor(ggml, buffer_type, 1 << 18)
    del tensor
    assert in_use(pool) == 0


def test_the_cpu_computes_in_the_pool(pool: Pool, ggml: Ggml) -> None:
    def tensor(name: str, *arguments: Any) -> ctypes.c_void_p:
        return ctypes.c_void_p(ggml.call(name, ctypes.c_void_p, context, *arguments))

    context = ctypes.c_void_p(ggml.context(1 << 20))
    a = tensor("ggml_new_tensor_1d", F32, 1000)
    total = tensor("ggml_sum", tensor("ggml_sqr", a))
    graph = tensor("ggml_new_graph")
    ggml.call("ggml_build_forward_expand", None, graph, total)
    buffer = ctypes.c_void_p(
        ggml.call(
            "ggml_backend_alloc_ctx_tensors_from_buft",
            ctypes.c_void_p,
            context,
            ctypes.c_void_p(ggml.buffer_type(pool)),
        )
    )
    values = (ctypes.c_float * 1000).from_address(ggml.call("ggml_get_data", ctypes.c_void_p, a))
    values[:] = [float(number) for number in range(1000)]
    backend = ctypes.c_void_p(ggml.call("ggml_backend_cpu_init", ctypes.c_void_p))
    assert ggml.call("ggml_backend_graph_compute", ctypes.c_int, backend, graph) == 0
    result = ctypes.c_float.from_address(ggml.call("ggml_get_data", ctypes.c_void_p, total)).value
    assert result == pytest.approx(sum(number**2 for number in range(1000)), rel=1e-6)
    ggml.call("ggml_backend_free", None, backend)
    ggml.call("ggml_backend_buffer_free", None, buffer)
    ggml.call("ggml_free", None, context)
    assert in_use(pool) == 0


def test_buffers_are_freed_on_other_threads(pool: Pool, ggml: Ggml) -> None:
    buffer_type = ggml.buffer_type(pool)
    with ThreadPoolExecutor(4) as threads:
        tensors = list(threads.map(lambda elements: Tensor(ggml, buffer_type, elements), range(1, 100)))
        list(threads.map(lambda _: tensors.pop(), range(99)))
    assert in_use(pool) == 0


def test_guard_mode_finds_a_write_past_the_end(ggml: Ggml) -> None:
    pool = Pool("8MiB", guard=True)
    tensor = Tensor(ggml, ggml.buffer_type(pool), 100)
    ctypes.c_float.from_address(tensor.address + tensor.nbytes).value = 1.0
    del tensor
    with pytest.raises(MemoryDamageError, match="past its end"):
        pool.allocate(1)
