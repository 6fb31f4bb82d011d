"""GPU libraries whose memory is in a pool: stand-ins for them, over the driver that stands in for NVIDIA's.

Each takes its memory as the real package does. What is looked at is the pool, and the order of streams that the driver
keeps.

Longer than 300 lines: one library after the other, over the same driver and checked by the same function.
"""

import textwrap

import pytest

from support.cuda import check, run_on_stand_in

_START = """
import gc
import allotment
from support.guests.gpu_libraries import Stream, install
"""
_NOTHING_IS_LEFT = """
assert pool.stats().num_live == 0, pool.stats()
"""


def play(program: str) -> None:
    """Run a program on two devices; in its end nothing of its `pool` is live."""
    text = _START + textwrap.dedent(program) + _NOTHING_IS_LEFT
    check(run_on_stand_in(text, ALLOTMENT_STAND_IN_DEVICES="2"))


def test_memory_of_a_stream_comes_behind_the_work_of_those_that_freed_some() -> None:
    play(
        """
        enter_context()
        pool = allotment.Pool("64MiB", source="cuda:0")
        assert pool.cuda_device == 0 and allotment.Pool("1MiB").cuda_device is None
        a, b = create_stream(), create_stream()
        address = pool.malloc_on_stream(1000, a)
        try:
            pool.free(address)
        except BufferError:
            pass
        else:
            raise AssertionError("a free that knows no stream")
        work = queue_work(a)
        pool.free_on_stream(address, a)
        assert pool.malloc_on_stream(1000, b) == address
        assert is_behind(b, work) and not is_behind(0, work)
        pool.free_on_stream(address, b)

        # Without a stream the host waits for all.
        work = queue_work(b)
        address = pool.malloc_on_stream("1KiB", None)
        assert is_behind(0, work)
        pool.free_on_stream(address, None)
        pool.free_on_stream(0, 0)
        for wrong, kind in ((lambda: pool.free_on_stream(address, 0), allotment.InvalidFreeError),
                            (lambda: pool.malloc_on_stream(1, -1), ValueError),
                            (lambda: pool.malloc_on_stream(1, "a"), TypeError),
                            (lambda: pool.malloc_on_stream("1GiB", 0), allotment.OutOfMemoryError),
                            (lambda: pool.malloc_on_stream(1, 0xBAD), RuntimeError)):
            try:
                pool.free_on_stream(pool.malloc_on_stream(8, 0), 0)
                wrong()
            except kind:
                pass
            else:
                raise AssertionError(kind)
        """
    )


def test_cupy_on_two_devices_from_two_pools() -> None:
    play(
        """
        cupy = install("cupy")
        from allotment.integrations import cupy as pooled
        pool, other = (allotment.Pool("8MiB", source=f"cuda:{n}") for n in "01")
        former = lambda nbytes: "CuPy's own"
        cupy.cuda.set_allocator(former)
        pooled.install(pool)
        first = cupy.empty(1000)
        cupy.cuda.device = 1
        assert cupy.cuda.allocate(8) == "CuPy's own"
        pooled.install(other)
        second = cupy.empty(1000)
        assert (pool.stats().num_live, other.stats().num_live) == (1, 1)
        cupy.cuda.device = 0
        try:
            pooled.install(pool)
        except RuntimeError as error:
            assert "CuPy takes memory of CUDA device 0 from a pool already" in str(error)
        else:
            raise AssertionError("installed twice")
        inner = allotment.Pool("1MiB", source="cuda:0")
        with pooled.use(inner):
            third = cupy.empty(10)
            try:
                cupy.empty(1 << 20)
            except cupy.cuda.memory.OutOfMemoryError as error:
                assert "out of memory: asked for 4 MiB" in error.__notes__[0]
            else:
                raise AssertionError("not refused")
        assert inner.stats().num_live == 1
        pooled.uninstall()
        assert cupy.cuda.get_allocator() is former
        del first, second, third
        assert inner.stats().num_live == other.stats().num_live == 0
        try:
            pooled.uninstall()
        except RuntimeError as error:
            assert "nothing to uninstall" in str(error)
        else:
            raise AssertionError("uninstalled twice")
        """
    )


def test_an_allocator_that_a_program_has_set_itself_stays() -> None:
    play(
        """
        cupy = install("cupy")
        from allotment.integrations import cupy as pooled
        pool = allotment.Pool("8MiB", source="cuda:0")
        pooled.install(pool)
        theirs = lambda nbytes: None
        cupy.cuda.set_allocator(theirs)
        pooled.uninstall()
        assert cupy.cuda.get_allocator() is theirs
        """
    )


def test_what_applies_to_all_threads_can_be_changed_inside_a_block() -> None:
    play(
        """
        cupy = install("cupy")
        from allotment.integrations import cupy as pooled
        pool, inner = (allotment.Pool("8MiB", source="cuda:0") for _ in "ab")
        former = lambda nbytes: "CuPy's own"
        cupy.cuda.set_allocator(former)
        with pooled.use(inner):
            pooled.install(pool)
            array = cupy.empty(10)
            assert (pool.stats().num_live, inner.stats().num_live) == (0, 1)
        array = cupy.empty(10)
        assert (pool.stats().num_live, inner.stats().num_live) == (1, 0)
        with pooled.use(inner):
            pooled.uninstall()
        assert cupy.cuda.get_allocator() is former
        del array
        """
    )


def test_cupys_arrays_of_two_streams() -> None:
    play(
        """
        cupy = install("cupy")
        from allotment.integrations import cupy as pooled
        enter_context()
        pool = allotment.Pool("8MiB", source="cuda:0")
        pooled.install(pool)
        streams = [type(cupy.cuda.stream)(create_stream()) for _ in range(2)]
        cupy.cuda.stream = streams[0]
        cycle = [cupy.empty(10)]
        cycle.append(cycle)
        work = queue_work(streams[0].ptr)
        cupy.cuda.stream = streams[1]
        del cycle
        gc.collect()
        array = cupy.empty(10)
        assert is_behind(streams[1].ptr, work)
        del array
        pooled.uninstall()
        """
    )


def test_pytorch_takes_segments_from_a_pool_on_every_thread_or_in_a_block() -> None:
    play(
        """
        torch = install("torch")
        from allotment.integrations import torch as pooled
        tensor = torch.state.tensor
        pool, other = (allotment.Pool("64MiB", source=f"cuda:{n}", name=f"of {n}") for n in "01")
        pooled.install(pool)
        pooled.install(other)
        kept = [tensor(2 << 20), tensor(20 << 20), tensor(2 << 20, device=1)]
        assert kept[0].address % 512 == 0
        assert (pool.stats().requested, other.stats().requested) == (22 << 20, 2 << 20)
        inner = allotment.Pool("4MiB", source="cuda:0", name="inner")
        with pooled.use(inner):
            kept.append(tensor(2 << 20))
        assert inner.stats().requested == 2 << 20
        try:
            with pooled.use(inner):
                tensor(20 << 20)
        except torch.OutOfMemoryError as error:
            (note,) = error.__notes__
            assert note.startswith("pool 'inner': ") and "out of memory: asked for 20 MiB" in note, note
        else:
            raise AssertionError("not refused")
        try:
            tensor(1 << 30)
        except torch.OutOfMemoryError:
            refusal = pooled.take_refusal()
            assert (refusal.requested, refusal.limit, refusal.pool) == (1 << 30, 64 << 20, "of 0")
        else:
            raise AssertionError("not refused")
        assert pooled.take_refusal() is None
        pooled.uninstall()
        assert tensor(5) is None and torch.state.own == [5]
        del kept
        assert inner.stats().num_live == other.stats().num_live == 0
        """
    )


def test_threads_that_enter_blocks_of_one_pool_together_share_its_allocator() -> None:
    play(
        """
        import sys, threading, time
        torch = install("torch")
        from allotment.integrations import torch as pooled
        sys.setswitchinterval(1e-6)
        start, entered = threading.Barrier(4), []

        def enter(blocks):
            for block in blocks:
                start.wait(20)
                # Threads that a barrier wakes run one after the other.
                moment = time.monotonic() + 0.002
                while time.monotonic() < moment: pass
                block.__enter__()
                entered.append(block)

        # There are 16 allocators.
        pools = [allotment.Pool("1MiB", source="cuda:0") for _ in range(16)]
        blocks = [[pooled.use(pool) for pool in pools] for _ in range(4)]
        threads = [threading.Thread(target=enter, args=(each,)) for each in blocks]
        for thread in threads: thread.start()
        for thread in threads: thread.join()
        assert len(entered) == 64
        for block in entered: block.__exit__(None, None, None)
        pool = pools[0]
        """
    )


def test_rmm_takes_its_memory_from_a_pool() -> None:
    play(
        """
        rmm = install("rmm")
        from allotment.integrations import rmm as pooled
        enter_context()
        pool = allotment.Pool("8MiB", source="cuda:0")
        own = rmm.mr.get_per_device_resource(0)
        pooled.install(pool)
        resource = rmm.mr.get_per_device_resource(0)
        a, b = (Stream(create_stream()) for _ in range(2))
        address = resource.allocate(1000, a)
        work = queue_work(a.handle)
        resource.deallocate(address, 1000, a)
        assert resource.allocate(1000, b) == address and is_behind(b.handle, work)
        assert resource.allocate(0, a) == 0
        try:
            resource.allocate(1 << 30, a)
        except MemoryError as error:
            assert "out of memory: asked for 1 GiB" in str(error)
        else:
            raise AssertionError("not refused")
        inner = allotment.Pool("1MiB", source="cuda:0")
        with pooled.use(inner):
            assert rmm.mr.get_per_device_resource(0) is not resource
        assert rmm.mr.get_per_device_resource(0) is resource
        pooled.uninstall()
        assert rmm.mr.get_per_device_resource(0) is own
        resource.deallocate(address, 1000, b)
        """
    )


def test_rmm_takes_memory_on_several_threads() -> None:
    play(
        """
        import threading, weakref
        rmm = install("rmm")
        from allotment.integrations import rmm as pooled
        enter_context()
        pool = allotment.Pool("8MiB", source="cuda:0")
        resource, stream = pooled.memory_resource(pool), Stream(0)
        ended, errors = threading.Event(), []

        def work():
            enter_context()
            for _ in range(3000):
                resource.deallocate(resource.allocate(1000, stream), 1000, stream)

        def look():
            try:
                while not ended.is_set():
                    pooled.memory_resource(pool)
                    # Kept in turns, as it has live memory.
                    for each in [pooled.memory_resource(pool) for _ in range(10)]:
                        each.deallocate(each.allocate(1000, stream), 1000, stream)
            except BaseException as error:
                errors.append(error)

        working, looking = [[threading.Thread(target=each) for _ in range(3)] for each in (work, look)]
        for thread in working + looking: thread.start()
        for thread in working: thread.join()
        ended.set()
        for thread in looking: thread.join()
        assert not errors, errors
        # Without live memory the resource is kept no longer, and with some it is.
        address, held = resource.allocate(1000, stream), weakref.ref(resource)
        del resource, work
        working.clear()
        pooled.memory_resource(pool)
        gc.collect()
        assert held() is not None
        held().deallocate(address, 1000, stream)
        pooled.memory_resource(pool)
        gc.collect()
        assert held() is None
        """
    )


def test_numba_takes_its_memory_from_a_pool_in_contexts_that_are_new() -> None:
    play(
        """
        cuda = install("numba.cuda")
        from allotment.integrations import numba as pooled
        enter_context()
        pool = allotment.Pool("8MiB", source="cuda:0")
        pooled.install(pool)
        here, elsewhere = cuda.make_context(0), cuda.make_context(1)
        array = here.memalloc(1000)
        assert (array.size, pool.stats().requested) == (1000, 1000)
        assert here.get_memory_info() == ((8 << 20) - pool.stats().in_use, 8 << 20)
        assert elsewhere.memalloc(5) == "5 bytes of Numba's own" and elsewhere.get_memory_info() == (1, 2)
        stream = create_stream()
        work = queue_work(stream)
        del array
        array = here.memalloc(1000)
        assert is_behind(0, work), "the host has waited"
        try:
            here.memalloc(1 << 30)
        except allotment.OutOfMemoryError:
            pass
        else:
            raise AssertionError("not refused")
        pooled.uninstall()
        assert here.memalloc(7) == "7 bytes of Numba's own"
        try:
            pooled.install(pool)
        except RuntimeError as error:
            assert "Numba has a context of CUDA device 0 already" in str(error)
        else:
            raise AssertionError("too late")
        del array
        """
    )


def test_cuda_core_allocates_buffers_from_a_pool() -> None:
    play(
        """
        core = install("cuda.core")
        from allotment.integrations import cuda_core as pooled
        enter_context()
        pool = allotment.Pool("8MiB", source="cuda:0")
        a, b = (Stream(create_stream()) for _ in range(2))
        resource = pooled.memory_resource(pool)
        assert isinstance(resource, core.MemoryResource)
        assert (resource.device_id, resource.is_device_accessible, resource.is_host_accessible) == (0, True, False)
        buffer = resource.allocate(1000, stream=a)
        work = queue_work(a.handle)
        buffer.close()
        pooled.install(pool)
        again = core.Device(0).allocate(1000, stream=b)
        assert again.handle == buffer.handle and is_behind(b.handle, work)
        again.close(stream=a)
        inner = allotment.Pool("8MiB", source="cuda:0")
        with pooled.use(inner):
            core.Device(0).allocate(10, stream=b).close()
        assert inner.stats().num_allocs == 1
        pooled.uninstall()
        assert core.Device(0).memory_resource == "cuda.core's own"
        """
    )


def test_warp_takes_its_memory_from_a_pool() -> None:
    play(
        """
        warp = install("warp")
        from allotment.integrations import warp as pooled
        enter_context()
        pool = allotment.Pool("8MiB", source="cuda:1")
        pooled.install(pool)
        allocator = warp.allocators["cuda:1"]
        address = allocator.allocate(1000)
        inner = allotment.Pool("8MiB", source="cuda:1")
        with pooled.use(inner):
            assert warp.allocators["cuda:1"] is not allocator
        assert warp.allocators["cuda:1"] is allocator
        pooled.uninstall()
        assert warp.allocators["cuda:1"] is None
        allocator.deallocate(address, 1000)
        """
    )


def test_a_pool_over_other_memory_is_refused() -> None:
    play(
        """
        import importlib
        from support.guests.gpu_libraries import MAKERS
        allotment.testing.simulate_gpus("1:64MiB")
        pool = allotment.Pool("1MiB")
        for library in MAKERS:
            install(library)
            pooled = importlib.import_module(
                "allotment.integrations." + library.removesuffix(".cuda").replace(".", "_")
            )
            for argument, kind, text in (
                (pool, ValueError, "needs memory of a CUDA device, and the pool is over other memory"),
                ("/GPU:0", ValueError, "pass a logical device on a GPU that is not simulated"),
                ("/GPU:7", ValueError, "/GPU:7"),
                (3, TypeError, "expected a Pool, a logical device or its name"),
            ):
                try:
                    pooled.install(argument)
                except kind as error:
                    assert text in str(error), error
                else:
                    raise AssertionError((library, argument))
        """
    )


@pytest.mark.parametrize("ending", ["", "sys.exit(3)", "raise SystemExit(4)", "os._exit(5)", "1 / 0"])
def test_arrays_that_are_alive_at_the_end_disturb_nothing(ending: str) -> None:
    program = f"""
    import os, sys, threading
    cupy, warp, cuda = install("cupy"), install("warp"), install("numba.cuda")
    from allotment.integrations import cupy as of_cupy, numba as of_numba, torch as of_torch, warp as of_warp
    torch = install("torch")
    pool = allotment.Pool("64MiB", source="cuda:0")
    for pooled in (of_cupy, of_numba, of_torch, of_warp):
        pooled.install(pool)
    kept = [cupy.empty(10), cuda.make_context(0).memalloc(100), torch.state.tensor(2 << 20)]
    kept.append(warp.allocators["cuda:0"].allocate(1000))
    cycle = [cupy.empty(10)]
    cycle.append(cycle)
    holder = threading.Thread(target=lambda array: threading.Event().wait(), args=(cupy.empty(10),), daemon=True)
    holder.start()
    del pool
    {ending}
    """
    done = run_on_stand_in(_START + textwrap.dedent(program))
    wanted = {"": 0, "sys.exit(3)": 3, "raise SystemExit(4)": 4, "os._exit(5)": 5, "1 / 0": 1}[ending]
    assert done.returncode == wanted, done.stderr
    if ending == "1 / 0":
        assert done.stderr.splitlines()[-1] == "ZeroDivisionError: division by zero"
        assert done.stderr.count("Traceback") == 1
    else:
        assert done.stderr == ""


def test_a_forked_child_frees_nothing_of_its_parents() -> None:
    play(
        """
        import os, warnings
        warnings.simplefilter("ignore", DeprecationWarning)
        cupy = install("cupy")
        from allotment.integrations import cupy as pooled
        pool = allotment.Pool("8MiB", source="cuda:0")
        pooled.install(pool)
        array = cupy.empty(1000)
        if (child := os.fork()) == 0:
            del array
            try:
                cupy.empty(10)
            except RuntimeError as error:
                os._exit("fork" in str(error))
            os._exit(9)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 1
        assert pool.stats().num_live == 1
        del array
        pooled.uninstall()
        """
    )
