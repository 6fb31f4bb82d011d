"""Scopes: what a block allocates, and caps that hold."""

import gc
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest

import allotment
from allotment import OutOfMemoryError, Pool, Scope
from support.devices import MIB, fresh, pools, run_on_gpus


def figures(scope: Scope) -> tuple[int, int, int, int]:
    return scope.peak, scope.allocated, scope.freed, scope.live


def test_a_scope_counts_what_its_block_allocates() -> None:
    pool = Pool("64MiB")
    before = pool.allocate(MIB)
    with pool.scope("step") as scope:
        kept = pool.allocate(2 * MIB)
        pool.free(pool.malloc(1000))
        before.free()
        assert figures(scope) == (2 * MIB + 1024, 2 * MIB + 1024, 1024, 2 * MIB)
    after = pool.allocate(MIB)
    kept.free()
    # The figures are of the moment when the block ended.
    assert figures(scope) == (2 * MIB + 1024, 2 * MIB + 1024, 1024, 2 * MIB)
    assert (scope.name, scope.limit, scope.num_live) == ("step", None, 1)
    after.free()


def test_scopes_nest_and_the_inner_counts_for_the_outer() -> None:
    pool = Pool("64MiB")
    with pool.scope("outer") as outer:
        with pool.scope("inner") as inner:
            pool.malloc(MIB)
        pool.malloc(2 * MIB)
    assert (inner.live, outer.live) == (MIB, 3 * MIB)


def test_threads_are_apart_unless_asked_otherwise() -> None:
    pool = Pool("64MiB")
    with ThreadPoolExecutor(1) as threads:
        with pool.scope("mine") as mine:
            threads.submit(pool.malloc, MIB).result()
        with pool.scope("all", every_thread=True) as everyone:
            threads.submit(pool.malloc, MIB).result()
    assert (mine.live, everyone.live) == (0, MIB)


def test_a_cap_holds_and_is_named() -> None:
    pool = Pool("64MiB")
    with pool.scope("tenant", limit="4MiB") as tenant, pool.scope("step"):
        held = pool.allocate("3MiB")
        with pytest.raises(OutOfMemoryError) as raised:
            pool.allocate("2MiB")
        error = raised.value
        assert (error.verdict, error.scope) == ("scope", "tenant")
        assert "tenant" in str(error)
        assert not pool.can_allocate("2MiB")
        assert pool.explain("2MiB").verdict == "scope"
        held.free()
        pool.free(pool.malloc("4MiB"))
    assert tenant.peak == 4 * MIB
    pool.free(pool.malloc("8MiB"))


def test_garbage_is_collected_before_a_cap_refuses() -> None:
    pool = Pool("64MiB")

    class Cycle:
        def __init__(self) -> None:
            self.me = self
            self.memory = pool.allocate("3MiB")

    with pool.scope("tenant", limit="4MiB"):
        Cycle()
        pool.allocate("3MiB").free()


def steps(pool: Pool) -> Iterator[None]:
    with pool.scope("step", limit=1000):
        yield


def is_capped(pool: Pool) -> bool:
    try:
        pool.free(pool.malloc(MIB))
    except OutOfMemoryError as error:
        return error.verdict == "scope"
    return False


def elsewhere(work: Callable[[], object]) -> None:
    thread = threading.Thread(target=work)
    thread.start()
    thread.join(10)
    assert not thread.is_alive()


def test_b216_a_generator_that_is_closed_or_collected_leaves_no_cap() -> None:
    pool = Pool("64MiB")
    entered = steps(pool)
    next(entered)
    assert is_capped(pool)
    elsewhere(entered.close)  # type: ignore[attr-defined]
    assert not is_capped(pool)
    entered = steps(pool)
    next(entered)
    assert is_capped(pool)
    del entered
    assert not is_capped(pool)
    cycle: list[object] = [steps(pool)]
    cycle.append(cycle)
    next(cycle[0])  # type: ignore[call-overload]
    assert is_capped(pool)
    del cycle
    elsewhere(gc.collect)
    assert not is_capped(pool)


@pytest.mark.parametrize("every_thread", [False, True])
def test_b216_a_scope_that_is_dropped_while_it_is_entered_ends(every_thread: bool) -> None:
    pool = Pool("64MiB")
    scope = pool.scope("step", limit=1000, every_thread=every_thread)
    scope.__enter__()
    held = [scope]
    assert is_capped(pool)
    del scope
    elsewhere(held.clear)
    assert not is_capped(pool)
    with pool.scope("next") as after:
        pool.free(pool.malloc(MIB))
    assert after.allocated == MIB


def test_b216_a_scope_over_devices_that_is_dropped_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    (pool,) = pools(fresh(monkeypatch, "1:64MiB"))
    scope = allotment.experimental.memory_scope("step", "GPU:0", limit=1000)
    scope.__enter__()
    assert is_capped(pool)
    del scope
    assert not is_capped(pool)


def test_b216_scopes_end_by_whichever_thread_drops_them_while_others_allocate() -> None:
    pool = Pool("64MiB")
    over = threading.Event()

    def work() -> None:
        while not over.is_set():
            pool.allocate(100_000).free()

    with ThreadPoolExecutor(3) as threads:
        done = [threads.submit(work) for _ in range(2)]
        try:
            for _ in range(100):
                entered = [steps(pool), steps(pool)]
                assert [next(entered[0]), next(entered[1])] == [None, None]
                assert is_capped(pool)
                threads.submit(entered.clear).result()
                assert not is_capped(pool)
        finally:
            over.set()
        for one in done:
            one.result()


def test_a_scope_is_entered_once_and_left_once() -> None:
    pool = Pool("1MiB")
    scope = pool.scope("once")
    assert figures(scope) == (0, 0, 0, 0)
    with pytest.raises(RuntimeError, match="not entered"):
        scope.__exit__(None, None, None)
    with scope, pytest.raises(RuntimeError, match="entered before"):
        scope.__enter__()
    with pytest.raises(RuntimeError, match="entered before"):
        scope.__enter__()
    with pytest.raises(RuntimeError, match="not entered"):
        scope.__exit__(None, None, None)


def test_of_two_threads_one_enters() -> None:
    for _ in range(50):
        pool = Pool("1MiB")
        scope = pool.scope("both", limit=256, every_thread=True)
        start = threading.Barrier(2)

        def enter(scope: Scope = scope, start: threading.Barrier = start) -> bool:
            start.wait()
            try:
                scope.__enter__()
            except RuntimeError:
                return False
            return True

        with ThreadPoolExecutor(2) as threads:
            entered = [threads.submit(enter) for _ in range(2)]
            assert sorted(one.result() for one in entered) == [False, True]
        scope.__exit__(None, None, None)
        pool.free(pool.malloc(1024))


def test_scopes_left_in_another_order_lose_nothing() -> None:
    pool = Pool("64MiB")
    first, second = pool.scope("first"), pool.scope("second")
    first.__enter__()
    second.__enter__()
    pool.malloc(MIB)
    first.__exit__(None, None, None)
    pool.malloc(MIB)
    second.__exit__(None, None, None)
    assert (first.live, second.live) == (MIB, 2 * MIB)


@pytest.mark.parametrize("limit", [-1, "1 apple", 1.5])
def test_odd_limits_are_refused(limit: object) -> None:
    with pytest.raises((ValueError, TypeError)):
        Pool("1MiB").scope("odd", limit=limit)  # type: ignore[arg-type]


def test_a_pool_may_die_before_its_scope() -> None:
    scope = Pool("1MiB").scope("alone")
    with scope:
        pass
    assert scope.live == 0


def test_figures_hold_while_threads_work() -> None:
    pool = Pool("64MiB")
    over = threading.Event()

    def work() -> None:
        while not over.is_set():
            pool.allocate(100_000).free()

    with ThreadPoolExecutor(2) as threads, pool.scope("all", every_thread=True, limit="1MiB") as scope:
        done = [threads.submit(work) for _ in range(2)]
        for _ in range(300):
            live, peak = scope.live, scope.peak
            assert 0 <= live <= MIB
            assert live <= peak <= MIB
        over.set()
        for one in done:
            one.result()
    assert scope.live == 0
    assert scope.allocated == scope.freed > 0


def test_a_scope_over_devices() -> None:
    program = """
    import allotment
    import allotment.tf as tf
    MIB = 1 << 20
    with allotment.experimental.memory_scope("step") as step, tf.device("/GPU:1"):
        kept = tf.zeros([MIB // 4])
        with allotment.experimental.memory_scope("inner", "GPU:1", limit="2MiB") as inner:
            try:
                tf.zeros([MIB])
            except tf.errors.ResourceExhaustedError as refused:
                print(refused.scope, refused.verdict)
            tf.zeros([MIB // 4])
    print({name: scope.live // MIB for name, scope in step.by_device.items()})
    print([figure // MIB for figure in (step.live, step.peak, step.allocated, step.freed, inner.peak)])
    """
    done = run_on_gpus("2:64MiB", program)
    assert done.stdout.splitlines() == [
        "step/inner scope",
        "{'/device:GPU:0': 0, '/device:GPU:1': 1}",
        "[1, 2, 2, 1, 1]",
    ], done.stderr


def test_devices_without_pools_have_no_scope(monkeypatch: pytest.MonkeyPatch) -> None:
    fresh(monkeypatch)
    with pytest.raises(ValueError, match="There is no GPU"):
        allotment.experimental.memory_scope("step")
    with pytest.raises(ValueError, match="CPU:0 has no pool"):
        allotment.experimental.memory_scope("step", "CPU:0")


@pytest.mark.parametrize("name", [None, 3, b"step"])
def test_a_name_is_a_text(name: object) -> None:
    with pytest.raises(TypeError, match=f"name must be a text, such as 'step', not {type(name).__name__}"):
        Pool("1MiB").scope(name)  # type: ignore[arg-type]
