"""Requests that NumPy makes of its handler: sizes, alignment, zeros, refusals."""

import io
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from allotment import OutOfMemoryError, Pool
from allotment.integrations import numpy as pooled
from support.pools.numpy_handlers import OURS, CurrentHandler, address_of, handler_name

MIB = 1 << 20


def test_free_goes_to_whoever_allocated_in_any_order(pool: Pool) -> None:
    with pooled.use(pool):
        ours = [np.full(n + 1, n, np.int64) for n in range(0, 3000, 100)]
    theirs = [np.full(n + 1, n, np.int64) for n in range(0, 3000, 100)]
    mixed = [*ours[::2], *theirs[::2], *reversed(ours[1::2]), *theirs[1::2]]
    del ours, theirs
    while mixed:
        assert (mixed[len(mixed) // 2] == mixed[len(mixed) // 2].size - 1).all()
        del mixed[len(mixed) // 2]
    assert pool.stats().num_live == 0


@pytest.mark.parametrize("larger", [11, 300, 200_000, 3 * MIB])
@pytest.mark.parametrize("dtype", [np.uint8, np.float64])
def test_an_array_of_ours_is_resized_after_uninstall(pool: Pool, larger: int, dtype: type) -> None:
    with pooled.use(pool):
        a: np.ndarray[Any, Any] = np.arange(10, dtype=dtype)
    for size in (larger, 5, larger, 0, 1):
        a.resize(size, refcheck=False)
        assert handler_name(a) == OURS
        assert (a[:5] == np.arange(5)[: a.size]).all() or size == 1
        assert not a[10:].any()
    assert pool.stats().num_live == 1
    del a
    assert pool.stats().num_live == 0


@pytest.mark.parametrize("shape", [(2, 0, 2), (0,), (), (0, 0), (5, 0), (1,), (1, 1, 1)])
@pytest.mark.parametrize("make", [np.empty, np.zeros, np.ones])
def test_shapes_with_a_zero_in_them(pool: Pool, make: Any, shape: tuple[int, ...]) -> None:
    with pooled.use(pool):
        a = make(shape)
        b = a.copy()
        c = a + b
    assert [each.shape for each in (a, b, np.asarray(c))] == [shape] * 3
    assert handler_name(a) == OURS
    assert address_of(a)
    assert pool.stats().num_live >= 2
    del a, b, c
    assert pool.stats().num_live == 0


def test_zero_bytes_are_never_null_and_null_is_nothing(pool: Pool) -> None:
    with pooled.use(pool):
        handler = CurrentHandler()
    before = pool.stats().num_live
    given = [
        handler.malloc(0),
        handler.malloc(0),
        handler.calloc(0, 8),
        handler.calloc(3, 0),
        handler.realloc(None, 0),
    ]
    assert all(given)
    assert len(set(given)) == 5
    for size, address in enumerate(given):
        handler.free(address, size * 1000)
    handler.free(None, 0)
    handler.free(None, 17)
    assert pool.stats().num_live == before == 0


def test_free_never_trusts_the_size(pool: Pool) -> None:
    with pooled.use(pool):
        handler = CurrentHandler()
    for told in (0, 1, 1 << 40):
        address = handler.malloc(5000)
        handler.free(address, told)
    assert pool.stats().in_use == 0


def test_what_nobody_can_have_is_null(pool: Pool) -> None:
    with pooled.use(pool):
        handler = CurrentHandler()
    assert handler.malloc(2**64 - 1) is None
    assert handler.calloc(2**33, 2**33) is None
    kept = handler.malloc(100)
    assert handler.realloc(kept, 2**62) is None
    handler.free(kept, 100)
    assert pool.stats().num_live == 0


def test_data_starts_at_a_multiple_of_64(pool: Pool) -> None:
    with pooled.use(pool):
        arrays = [np.empty(n, np.uint8) for n in (1, 7, 100, 4097, MIB + 1)]
    assert [address_of(a) % 64 for a in arrays] == [0] * 5


def test_no_memory_is_numpys_own_error_and_a_smaller_request_is_served() -> None:
    pool = Pool("16MiB")
    with pooled.use(pool):
        for ask in (
            lambda: np.empty(17 * MIB, np.uint8),
            lambda: np.zeros((5, MIB)),
            lambda: np.ones(MIB) + [np.ones(MIB // 2)] * 3,
            lambda: np.arange(MIB * 4),
        ):
            with pytest.raises(MemoryError, match=r"Unable to allocate|\A\Z|pool") as refused:
                ask()
            assert type(refused.value).__module__ in (
                "numpy._core._exceptions",
                "numpy.exceptions",
                "builtins",
            )
            reason = pooled.take_refusal()
            assert isinstance(reason, OutOfMemoryError)
            assert reason.limit == 16 * MIB
            assert pooled.take_refusal() is None
            assert np.ones(1000).sum() == 1000
        grown = np.ones(MIB)
        with pytest.raises(MemoryError):
            grown.resize(3 * MIB, refcheck=False)
        assert grown.size == MIB
        assert grown.all()
    del grown, refused
    assert pool.stats().num_live == 0


def test_a_request_does_not_wait_for_memory_whatever_the_pool_says() -> None:
    pool = Pool("1MiB", wait_seconds=60)
    with pooled.use(pool), pytest.raises(MemoryError):
        np.empty(2 * MIB)
    kept = pool.malloc(MIB // 2)
    with pooled.use(pool), pytest.raises(MemoryError):
        np.empty(MIB, np.uint8)
    pool.free(kept)


def test_readers_that_resize_without_the_interpreters_lock(pool: Pool, tmp_path: Path) -> None:
    numbers = np.arange(20_000)
    text = " ".join(map(str, numbers))
    path = tmp_path / "numbers"
    path.write_text(text)
    with pooled.use(pool):
        read = [
            np.fromfile(path, dtype=np.int64, sep=" "),
            np.fromstring(text, dtype=np.int64, sep=" "),
            np.fromiter(iter(range(20_000)), np.int64),
            np.fromiter((n for n in range(20_000)), np.int64),
            np.loadtxt(io.StringIO(text.replace(" ", "\n")), dtype=np.int64),
        ]
    for each in read:
        assert (each == numbers).all()
    assert [handler_name(each) for each in read[:4]] == [OURS] * 4
    del read, each
    assert pool.stats().num_live == 0


def test_zeros_are_zero_in_memory_that_was_used(pool: Pool) -> None:
    with pooled.use(pool):
        for size in (1, 100, 4096, 70_000, MIB, 3 * MIB + 5, 40 * MIB):
            for _ in range(3):
                np.full(size, 0xA5, np.uint8)
                zeros = np.zeros(size, np.uint8)
                assert not zeros.any()
                zeros[size // 2] = 1
                del zeros


def test_untouched_zeros_take_up_no_memory() -> None:
    def resident() -> int:
        return int(Path("/proc/self/statm").read_text().split()[1]) * 4096

    pool = Pool("1TiB")
    before = resident()
    with pooled.use(pool):
        huge = np.zeros(1 << 36, np.uint8)
        huge[123_456_789] = 7
        first, last = huge[0], huge[-1]
        del huge
        again = np.zeros(1 << 36, np.uint8)
        assert (first, last, again[123_456_789]) == (0, 0, 0)
    assert resident() - before < 64 * MIB
    del again
    assert pool.trim() >= 1 << 36


def test_numpy_treats_errors_as_before_inside_and_after(pool: Pool) -> None:
    def tell(kind: str, flag: int) -> None:
        """A handler of the program."""

    former = np.geterr()
    with np.errstate(divide="raise", under="call", call=tell):
        chosen = np.geterr()
        with pooled.use(pool):
            assert np.geterr() == chosen
            assert np.geterrcall() is tell
            with pytest.raises(FloatingPointError):
                np.ones(3) / np.zeros(3)
            np.seterr(over="raise")
        assert np.geterr() == chosen | {"over": "raise"}
    assert np.geterr() == former
