"""The C functions that PyTorch calls, called through ctypes: devices, streams, refusals, frees of what is not there."""

import subprocess
import textwrap

from support.cuda import check, run_on_stand_in

_START = """
import ctypes, gc, threading, warnings
import allotment
from allotment._core import TorchAllocator, __file__ as path

library = ctypes.CDLL(path)

def functions(allocator):
    alloc, free = getattr(library, allocator.alloc_name), getattr(library, allocator.free_name)
    alloc.restype = ctypes.c_void_p
    alloc.argtypes = (ctypes.c_ssize_t, ctypes.c_int, ctypes.c_void_p)
    free.restype = None
    free.argtypes = (ctypes.c_void_p, ctypes.c_ssize_t, ctypes.c_int, ctypes.c_void_p)
    return alloc, free

pools = [allotment.Pool("64MiB", source=f"cuda:{n}", name=f"of {n}") for n in (0, 1)]
def live():
    return [pool.stats().num_live for pool in pools]
"""


def play(program: str) -> None:
    check(run(program))


def run(program: str) -> subprocess.CompletedProcess[str]:
    return run_on_stand_in(_START + textwrap.dedent(program), ALLOTMENT_STAND_IN_DEVICES="2")


def test_each_device_has_its_pool_and_the_address_decides_at_a_free() -> None:
    play(
        """
        alloc, free = functions(TorchAllocator(dict(enumerate(pools))))
        here, there = alloc(1 << 20, 0, None), alloc(1 << 20, 1, None)
        assert live() == [1, 1] and TorchAllocator.take_refusal() is None
        free(there, 1 << 20, 0, None)  # names the wrong device
        assert live() == [1, 0] and TorchAllocator.take_refusal() is None
        free(here, 5, 0, None)  # names the wrong size
        assert live() == [0, 0] and TorchAllocator.take_refusal() is None
        assert alloc(0, 0, None) is None and TorchAllocator.take_refusal() is None
        free(None, 0, 0, None)
        assert TorchAllocator.take_refusal() is None
        """
    )


def test_a_device_without_a_pool_and_a_free_of_what_is_not_there_are_told() -> None:
    play(
        """
        alloc, free = functions(TorchAllocator({0: pools[0]}))
        assert alloc(1 << 20, 9, None) is None
        error = TorchAllocator.take_refusal()
        assert type(error) is RuntimeError and "CUDA device 9, for which it was given no pool" in str(error)
        kept = alloc(1 << 20, 0, None)
        own = pools[0].malloc("1MiB")
        for wrong in (0x1000, own, kept + 256):
            free(wrong, 1 << 20, 0, None)
            error = TorchAllocator.take_refusal()
            assert type(error) is allotment.InvalidFreeError and f"freed {wrong:#x}" in str(error), error
        free(kept, 1 << 20, 0, None)
        free(kept, 1 << 20, 0, None)
        assert "nothing has changed" in str(TorchAllocator.take_refusal())
        pools[0].free(own)
        assert live() == [0, 0]
        """
    )


def test_a_refusal_is_null_with_the_report_and_is_forgotten_when_a_second_attempt_succeeds() -> None:
    play(
        """
        alloc, free = functions(TorchAllocator({0: pools[0]}))
        kept = alloc(40 << 20, 0, None)
        assert alloc(40 << 20, 0, None) is None
        error = TorchAllocator.take_refusal()
        assert type(error) is allotment.OutOfMemoryError and error.pool == "of 0"
        assert error.requested == 40 << 20 and error.limit == 64 << 20 and error.advice
        assert alloc(40 << 20, 0, None) is None
        free(kept, 40 << 20, 0, None)
        kept = alloc(40 << 20, 0, None)
        assert kept and TorchAllocator.take_refusal() is None
        free(kept, 40 << 20, 0, None)
        """
    )


def test_every_call_of_the_driver_fails_in_turn() -> None:
    play(
        """
        enter_context()
        allocator = TorchAllocator({0: pools[0]})
        alloc, free = functions(allocator)
        streams = [create_stream(), create_stream()]
        def play():
            told = 0
            for stream in streams * 2:
                address = alloc(1 << 20, 0, stream)
                told += address is None
                if address:
                    free(address, 1 << 20, 0, stream)
            pools[0].trim()
            return told
        before = calls()
        assert play() == 0
        refused = 0
        for nth in range(1, calls() - before + 3):
            fail_at(nth)
            refused += play()
            fail_at(0)
            assert live() == [0, 0], nth
        assert refused > 3
        TorchAllocator.take_refusal()
        del allocator, alloc, free
        pools.clear()
        gc.collect()
        assert outstanding() == {"contexts": 1}, outstanding()
        """
    )


def test_streams_are_ordered() -> None:
    play(
        """
        enter_context()
        alloc, free = functions(TorchAllocator({0: pools[0]}))
        a, b = create_stream(), create_stream()
        address = alloc(1 << 20, 0, a)
        work = queue_work(a)
        free(address, 1 << 20, 0, a)
        assert alloc(1 << 20, 0, b) == address and is_behind(b, work)
        assert alloc(1 << 20, 0, 0xBAD) is None
        assert "cuStreamGetId failed" in str(TorchAllocator.take_refusal())
        free(address, 1 << 20, 0, b)
        assert live() == [0, 0]
        """
    )


def test_pools_that_are_gone_make_room_and_a_pool_with_live_memory_stays() -> None:
    play(
        """
        alloc, free = functions(TorchAllocator({0: pools[0]}))
        kept = alloc(1 << 20, 0, None)
        del pools[0]
        gc.collect()
        assert outstanding()["bytes"] == 2 << 20
        others = [allotment.Pool("1MiB", source="cuda:0") for _ in range(15)]
        allocators = [TorchAllocator({0: pool}) for pool in others]
        assert len({allocator.alloc_name for allocator in allocators}) == 15
        try:
            TorchAllocator({0: others[0]})
        except RuntimeError as error:
            assert "16 sets of pools" in str(error)
        else:
            raise AssertionError("the pool with live memory was replaced")
        assert alloc(1 << 20, 0, None)  # it lives
        free(kept, 1 << 20, 0, None)
        del others[3]
        TorchAllocator({0: others[0]})
        others.clear()
        for _ in range(40):
            TorchAllocator({0: allotment.Pool("1MiB", source="cuda:0")})
        dead, _ = functions(allocators[7])
        assert dead(1000, 0, None) is None
        assert "no pool that is alive" in str(TorchAllocator.take_refusal())
        try:
            TorchAllocator({})
        except ValueError as error:
            assert "no pool was given" in str(error)
        else:
            raise AssertionError("nothing")
        """
    )


def test_many_threads_call_without_the_interpreter() -> None:
    play(
        """
        alloc, free = functions(TorchAllocator(dict(enumerate(pools))))  # ctypes lets go of the interpreter
        def work(number):
            for step in range(300):
                device = (number + step) % 2
                address = alloc(4096 + step, device, None)
                assert address
                ctypes.memset(address, number, 4096 + step)
                assert ctypes.string_at(address, 4096 + step) == bytes([number]) * (4096 + step)
                free(address, 4096 + step, device, None)
        threads = [threading.Thread(target=work, args=(number,)) for number in range(6)]
        for thread in threads: thread.start()
        for thread in threads: thread.join()
        assert live() == [0, 0] and TorchAllocator.take_refusal() is None
        """
    )


def test_a_forked_child_gets_null_and_frees_nothing() -> None:
    play(
        """
        import os
        warnings.simplefilter("ignore", DeprecationWarning)
        alloc, free = functions(TorchAllocator({0: pools[0]}))
        kept = alloc(1 << 20, 0, None)
        if (child := os.fork()) == 0:
            free(kept, 1 << 20, 0, None)
            os._exit(alloc(1 << 20, 0, None) is None)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 1
        assert live()[0] == 1
        free(kept, 1 << 20, 0, None)
        assert live()[0] == 0
        """
    )
