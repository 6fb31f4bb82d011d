"""What a pool says when it refuses memory to an array, and where it is said: once, by name, of that moment."""

import contextlib
import threading
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from allotment import OutOfMemoryError, Pool
from allotment.integrations import numpy as pooled
from support.pools.numpy_handlers import passes, run_numpy_program


def refused_array(pool: Pool, elements: int = 10**6) -> None:
    with pooled.use(pool):
        np.ones(elements)


def notes(error: BaseException) -> list[str]:
    return list(getattr(error, "__notes__", []))


def test_leaving_a_block_adds_the_report_once() -> None:
    outer, pool = Pool("64MiB", name="outer"), Pool("1MiB", name="small")
    kept = pool.allocate(1000)
    with pytest.raises(MemoryError, match=r"Unable to allocate 7\.63 MiB") as refused, pooled.use(outer):
        refused_array(pool)
    (note,) = notes(refused.value)
    assert note.startswith("pool 'small': out of memory: asked for 7.63 MiB (8000000 bytes)")
    assert "1024 bytes in 1 allocation" in note
    assert pooled.take_refusal() is None
    kept.free()


@pytest.mark.parametrize(
    "ask",
    [
        lambda: np.empty(10**6),
        lambda: np.zeros((10, 10**5)),
        lambda: np.arange(10**6),
        lambda: np.ones(2)[:, None] + np.broadcast_to(1.0, 10**6),
        lambda: np.ones(10).resize(10**6, refcheck=False),
        lambda: np.array([1] * 10**6),
        lambda: np.ones(10**6, "S3"),
    ],
)
def test_whatever_numpy_raises_gets_the_report(ask: Callable[[], object]) -> None:
    with pytest.raises(MemoryError) as refused, pooled.use(Pool("1MiB", name="small")):
        ask()
    (note,) = notes(refused.value)
    assert note.startswith("pool 'small': out of memory")


def test_the_report_is_of_the_moment_of_the_refusal() -> None:
    pool = Pool("64MiB", name="busy")

    def free_on_the_way_out() -> None:
        with pooled.use(pool), pool.allocate("48MiB"):
            np.empty(32 << 20, np.uint8)

    with pytest.raises(MemoryError) as refused:
        free_on_the_way_out()
    (note,) = notes(refused.value)
    assert "in 1 allocation\n" in note
    assert "in use                  0 B" not in note


def test_a_refusal_that_the_program_got_over_is_not_told_of_another_error() -> None:
    pool = Pool("1MiB")

    def get_over_it(error: Exception) -> None:
        with pooled.use(pool):
            with contextlib.suppress(MemoryError):
                np.ones(10**6)
            raise error

    for error in (MemoryError("mine"), MemoryError(), ValueError("mine")):
        with pytest.raises(type(error)) as raised:
            get_over_it(error)
        assert notes(raised.value) == []
    assert isinstance(pooled.take_refusal(), OutOfMemoryError)


def test_an_error_with_a_report_of_its_own_gets_no_other() -> None:
    pool = Pool("1MiB")
    with pytest.raises(OutOfMemoryError) as refused, pooled.use(pool):
        pool.malloc("2MiB")
    assert notes(refused.value) == []


def test_an_error_that_another_led_to_is_told_at_the_first_one() -> None:
    def wrap() -> None:
        with pooled.use(Pool("1MiB", name="small")):
            try:
                np.ones(10**6)
            except MemoryError as error:
                raise RuntimeError("no room") from error

    with pytest.raises(RuntimeError, match="no room") as raised:
        wrap()
    assert notes(raised.value) == []
    assert raised.value.__cause__ is not None
    assert len(notes(raised.value.__cause__)) == 1


def test_uninstalling_on_the_way_out_adds_the_report() -> None:
    def install_for_a_while() -> None:
        pooled.install(Pool("1MiB", name="small"))
        try:
            np.ones(10**6)
        finally:
            pooled.uninstall()

    with pytest.raises(MemoryError) as refused:
        install_for_a_while()
    (note,) = notes(refused.value)
    assert note.startswith("pool 'small'")


def test_a_refusal_names_its_pool() -> None:
    with pooled.use(Pool("1MiB", name="small")):
        with pytest.raises(MemoryError):
            np.ones(10**6)
        refusal: Any = pooled.take_refusal()
    assert (refusal.pool, refusal.requested) == ("small", 8_000_000)


def test_each_thread_has_its_own_report() -> None:
    pools = [Pool(f"{n}MiB", name=f"of-{n}") for n in range(1, 5)]
    told: dict[str, list[str]] = {}
    together = threading.Barrier(len(pools))

    def work(pool: Pool) -> None:
        try:
            with pooled.use(pool):
                together.wait(20)
                np.ones(10**7)
        except MemoryError as error:
            told[pool.name] = notes(error)

    threads = [threading.Thread(target=work, args=(pool,)) for pool in pools]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(told) == ["of-1", "of-2", "of-3", "of-4"]
    for name, (note,) in told.items():
        assert note.startswith(f"pool '{name}': out of memory: asked for 76.29 MiB")


def test_a_pool_closed_inside_a_block_is_named() -> None:
    pool = Pool("16MiB", name="gone")

    def close_too_early() -> None:
        with pooled.use(pool):
            pool.close()
            np.ones(10)

    with pytest.raises(MemoryError) as refused:
        close_too_early()
    (note,) = notes(refused.value)
    assert note.startswith('pool "gone" is closed')
    assert "uninstall()" in note
    with pytest.raises(MemoryError, match="gave no memory for a first array") as refused, pooled.use(pool):
        pass
    assert str(refused.value.__cause__) == note


UNCAUGHT = """
small = Pool("1MiB", name="small")
INSTALL
BODY
"""
IN_THREAD = """
thread = threading.Thread(target=lambda: np.ones(10**6))
thread.start(); thread.join(); sys.exit(1)
"""
CLOSED = "small.close()\nnp.ones(10)\n"


@pytest.mark.parametrize("body", ["np.ones(10**6)", IN_THREAD], ids=["main", "thread"])
def test_an_uncaught_error_is_printed_with_the_report_once(body: str) -> None:
    install = "pooled.install(small, process_wide=True)"
    done = run_numpy_program(UNCAUGHT.replace("INSTALL", install).replace("BODY", body))
    assert done.returncode == 1
    assert "Unable to allocate 7.63 MiB" in done.stderr
    assert done.stderr.count("pool 'small': out of memory: asked for 7.63 MiB") == 1
    assert done.stderr.count("what helps") == 1
    assert done.stderr.count("Traceback") == 1


@pytest.mark.parametrize("process_wide", [False, True])
def test_a_closed_pool_that_is_installed_is_named_with_what_to_do(process_wide: bool) -> None:
    install = f"pooled.install(small, process_wide={process_wide})"
    done = run_numpy_program(UNCAUGHT.replace("INSTALL", install).replace("BODY", CLOSED))
    assert done.returncode == 1
    assert done.stderr.count('pool "small" is closed, and NumPy\'s arrays are still made in it') == 1
    assert "allotment.integrations.numpy.uninstall()" in done.stderr
    passes(
        f"""
        small = Pool("1MiB", name="small")
        pooled.install(small, process_wide={process_wide})
        small.close()
        try:
            np.ones(10)
        except MemoryError:
            assert "closed" in str(pooled.take_refusal())
        pooled.uninstall()
        assert np.ones(10).sum() == 10
        pooled.install(pool, process_wide={process_wide})
        assert np.ones(10**5).sum() == 10**5 and pool.stats().num_allocs > 0
        """
    )


def test_hooks_of_the_program_are_called_and_come_back() -> None:
    passes(
        """
        small = Pool("1MiB", name="small")
        seen = []
        def mine(kind, value, trace):
            seen.append((kind, value.__notes__))
        sys.excepthook = mine
        of_threads = threading.excepthook = lambda args: seen.append((args.exc_type, args.exc_value.__notes__))
        for _ in range(2):
            pooled.install(small, process_wide=True)
            t = threading.Thread(target=lambda: np.ones(10**6)); t.start(); t.join()
            try:
                np.ones(10**6)
            except MemoryError:
                sys.excepthook(*sys.exc_info())
            pooled.uninstall()
            assert (sys.excepthook, threading.excepthook) == (mine, of_threads)
        assert len(seen) == 4 and all(len(notes) == 1 and "'small'" in notes[0] for _, notes in seen), seen
        # One that is set while ours are there, and calls them, stays; and nothing goes round in circles.
        pooled.install(small, process_wide=True)
        ours = sys.excepthook
        def in_front(*about):
            seen.append("in front")
            ours(*about)
        sys.excepthook = in_front
        pooled.uninstall()
        assert sys.excepthook is in_front
        pooled.install(small, process_wide=True)
        try:
            np.ones(10**6)
        except MemoryError:
            sys.excepthook(*sys.exc_info())
        assert seen[-2] == "in front" and len(seen[-1][1]) == 1
        pooled.uninstall()
        assert sys.excepthook is in_front
        """
    )
