"""Advice of refusals: each piece, followed to the letter, makes the request succeed."""

import pickle
import random
import threading
import time

import numpy as np
import pytest

import allotment.tf as tf
from allotment import Advice, Allocation, OutOfMemoryError, Pool
from allotment.integrations import numpy as pooled
from support.devices import run_on_gpus
from support.pools.refusals import refusal
from support.pools.sources import MappedSource

KIB = 1 << 10
MIB = 1 << 20


def numbers(advice: tuple[Advice, ...]) -> list[tuple[str, int, str]]:
    return [(piece.action, piece.bytes, piece.when) for piece in advice]


def test_a_piece_has_an_action_a_number_a_time_and_words() -> None:
    pool = Pool("1MiB", growth=False)
    error = refusal(pool, "2MiB")
    raised, smaller, again = error.advice
    assert numbers(error.advice[:2]) == [("raise_limit", 2 * MIB, "now"), ("ask_for", MIB, "now")]
    assert str(raised) == "raise the limit to 2097152 bytes (2 MiB), the smallest that serves it"
    assert smaller.text == "ask for at most 1048576 bytes (1 MiB)"
    assert (again.action, again.when) == ("raise_limit", "next run")
    assert all(piece.text in str(error) and piece.text in error.suggestion for piece in error.advice)
    assert pool.explain("2MiB").advice == error.advice
    assert pool.explain("1MiB").advice == ()


def test_advice_survives_pickling_and_can_be_made() -> None:
    advice = refusal(Pool("1MiB"), "2MiB").advice
    for protocol in range(2, pickle.HIGHEST_PROTOCOL + 1):
        assert pickle.loads(pickle.dumps(advice, protocol)) == advice
    made = Advice("free", 256, "now", "free allocation 1", [1])
    assert (made.allocations, made.targets, made.exact, made.needs_grant) == ([1], [], False, False)
    assert repr(made) == 'Advice(action="free", bytes=256, when="now", text="free allocation 1")'


def follow(pool: Pool, held: dict[int, Allocation], piece: Advice, size: int) -> int | None:
    """Does what the advice says; returns the size to ask for, None where it is for the next run."""
    if piece.when != "now":
        return None
    match piece.action:
        case "free":
            for number in piece.allocations:
                held.pop(number).free()
        case "raise_limit":
            pool.set_limit(piece.bytes)
        case "trim":
            assert pool.trim() == piece.bytes
        case "ask_for":
            return piece.bytes
        case _:
            raise AssertionError(piece)
    return size


@pytest.mark.parametrize("seed", range(60))
def test_b201_every_piece_of_advice_of_random_pools_works(seed: int) -> None:
    generator = random.Random(seed)
    options = {
        "growth": generator.random() < 0.5,
        "trim_on_oom": generator.random() < 0.7,
        "policy": generator.choice(["tensorflow", "tight"]),
        "source": generator.choice(["host", "address-space"]),
    }

    def played() -> tuple[Pool, dict[int, Allocation], int, OutOfMemoryError]:
        steps = random.Random(seed)
        pool = Pool(MIB << seed % 5, **options)  # type: ignore[arg-type]
        held: dict[int, Allocation] = {}
        while True:
            size = 1 + steps.randrange(pool.limit >> steps.randrange(6))
            if held and steps.random() < 0.4:
                held.pop(steps.choice(sorted(held))).free()
                continue
            try:
                made = pool.allocate(size)
            except OutOfMemoryError as error:
                return pool, held, size, error
            held[made.id] = made

    *_, error = played()
    for place in range(len(error.advice)):
        pool, held, size, error = played()
        wanted = follow(pool, held, error.advice[place], size)
        if wanted is not None:
            pool.allocate(wanted).free()


def test_b202_a_scope_that_holds_nothing_has_nothing_to_free() -> None:
    pool = Pool("1MiB")
    with pool.scope("cap", limit="100KiB"):
        explained = pool.explain("300KiB")
    assert numbers(explained.advice) == [("raise_scope", 300 * KIB, "now"), ("ask_for", 100 * KIB, "now")]
    assert explained.advice[0].targets == [("cap", 300 * KIB)]


def test_limits_of_scopes_are_raised_while_they_are_entered() -> None:
    pool = Pool("64MiB")
    with pool.scope("outer", limit="10MiB") as outer:
        held = pool.malloc("9MiB")
        with pool.scope("inner", limit="1MiB") as inner:
            (raised, *_) = refusal(pool, "2MiB").advice
            assert raised.targets == [("outer", 11 * MIB), ("outer/inner", 2 * MIB)]
            assert raised.bytes == 11 * MIB
            assert raised.text == (
                'raise the limit of scope "outer" to 11534336 bytes (11 MiB) and scope "outer/inner" to '
                "2097152 bytes (2 MiB), the smallest that serves it"
            )
            scopes = {"outer": outer, "outer/inner": inner}
            for name, limit in raised.targets:
                scopes[name].set_limit(limit)
            assert (outer.limit, inner.limit) == (11 * MIB, 2 * MIB)
            pool.free(pool.malloc("2MiB"))
            inner.set_limit(None)
            assert inner.limit is None
            with pytest.raises(ValueError, match="12 parsecs"):
                inner.set_limit("12 parsecs")
        pool.free(held)
    with pytest.raises(RuntimeError, match='scope "outer" was left'):
        outer.set_limit("1MiB")
    new = pool.scope("new")
    new.set_limit("1MiB")
    with new:
        refusal(pool, "2MiB")


def test_held_arrays_are_not_named_as_something_to_free() -> None:
    pool = Pool("1MiB", growth=False)
    held = pool.allocate("1MiB")
    view = memoryview(held)
    assert "free" not in {piece.action for piece in pool.explain("1MiB").advice}
    view.release()
    assert "free" in {piece.action for piece in pool.explain("1MiB").advice}


def test_a_refusal_of_a_pool_that_waits_does_not_wait_for_its_advice() -> None:
    pool = Pool("1MiB", growth=False, wait_seconds=0.2)
    for size in (400_000, 400_000):
        pool.malloc(size)
    start = time.monotonic()
    assert {piece.when for piece in pool.explain(8).advice} == {"now", "next run"}
    assert time.monotonic() - start < 0.2
    start = time.monotonic()
    refusal(pool, 8)
    assert time.monotonic() - start < 0.6


def test_a_resize_in_place_ends_what_is_known_of_the_next_run() -> None:
    pool = Pool("10MiB", growth=False)
    with pooled.use(pool):
        array = np.empty(6 << 20, np.uint8)
        array.resize(8 << 20, refcheck=False)
    assert {piece.when for piece in refusal(pool, "2MiB").advice} == {"now"}
    del array


def test_another_thread_ends_what_is_known_of_the_next_run() -> None:
    pool = Pool("1MiB", growth=False)
    pool.malloc(400_000)
    thread = threading.Thread(target=pool.malloc, args=(400_000,))
    thread.start()
    thread.join()
    assert {piece.when for piece in refusal(pool, 8).advice} == {"now"}


def test_b203_bytes_lost_inside_chunks_are_named_and_the_next_run_is_served() -> None:
    def run(error: OutOfMemoryError | None = None, **settings: object) -> OutOfMemoryError | None:
        pool = Pool(**({"limit": "1MiB", "growth": False} | settings))  # type: ignore[arg-type]
        for size in (400_000, 400_000):
            pool.malloc(size)
        try:
            pool.malloc(8)
        except OutOfMemoryError as refused:
            return refused
        return None

    error = run()
    assert error is not None
    assert (error.verdict, error.live_requested, error.internal_fragmentation) == ("slack", 800_000, 248_576)
    assert "248576 bytes" in str(error)
    later = {piece.action: piece.bytes for piece in error.advice if piece.when == "next run"}
    assert set(later) == {"policy", "elastic", "raise_limit"}
    assert run(elastic=True, page_size=later["elastic"]) is None
    assert run(policy="tight") is None
    assert run(limit=later["raise_limit"]) is None


@pytest.mark.parametrize("source", ["host", "address-space"])
def test_a_fragmented_pool_advises_an_elastic_one(source: str) -> None:
    def run(**settings: object) -> OutOfMemoryError | None:
        pool = Pool(64 * MIB, growth=False, source=source, **settings)  # type: ignore[arg-type]
        layers = [pool.malloc("8MiB") for _ in range(7)]
        for address in layers[1::2]:
            pool.free(address)
        try:
            pool.malloc("12MiB")
        except OutOfMemoryError as refused:
            return refused
        return None

    error = run()
    assert error is not None
    assert error.verdict == "fragmented"
    # Seven layers of eight pages touch nine each at worst; of 2 MiB these would be 35, and the limit has 32.
    (advised,) = (piece for piece in error.advice if piece.action == "elastic")
    assert (advised.bytes, advised.when) == (MIB, "next run")
    assert advised.text == "start the program again with an elastic pool, in pages of 1048576 bytes (1 MiB)"
    assert run(elastic=True, page_size=advised.bytes) is None


def test_a_source_without_pages_has_no_elastic_advice() -> None:
    pool = Pool(64 * MIB, growth=False, source=MappedSource(1 << 30))
    layers = [pool.malloc("8MiB") for _ in range(7)]
    for address in layers[1::2]:
        pool.free(address)
    assert all(piece.action != "elastic" for piece in refusal(pool, "12MiB").advice)


@pytest.mark.parametrize("policy", ["tensorflow", "tight"])
def test_b204_what_would_have_served_is_said(policy: str) -> None:
    pool = Pool("64MiB", source="address-space", policy=policy)  # type: ignore[arg-type]
    pool.free(pool.malloc(256))
    for _ in range(7):
        pool.malloc("8MiB")
    if policy == "tight":
        pool.malloc("8MiB")
    else:
        error = refusal(pool, "8MiB")
        assert error.verdict == "slack"
        assert [piece.text for piece in error.advice if piece.action == "policy"] == [
            'start the program again with policy "tight"'
        ]


def test_the_error_of_a_device_carries_the_advice() -> None:
    run = run_on_gpus(
        "1:64MiB",
        """
import allotment
import allotment.tf as tf
try:
    with tf.device("/GPU:0"):
        tf.zeros([32 << 20])
except tf.errors.ResourceExhaustedError as error:
    print([(piece.action, piece.bytes >> 20, piece.when) for piece in error.advice])
    print(error.live_requested, error.internal_fragmentation)
""",
    )
    assert run.stdout.splitlines() == ["[('ask_for', 64, 'now')]", "0 0"]
    assert tf.errors.ResourceExhaustedError(None, None, "made by hand").advice == ()
