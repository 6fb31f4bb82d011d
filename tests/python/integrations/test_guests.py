"""NumPy and five runtimes in one pool: its figures are the sum of what they hold, whatever is refused."""

import ctypes
from concurrent.futures import ThreadPoolExecutor

import pytest

from allotment import Pool
from allotment._core import GuestMemory
from allotment.integrations import onnxruntime as pooled_onnxruntime
from support.guests.player import LIMIT, Guests, Player
from support.pools.owners import in_use, requested_by_owner


class Functions(ctypes.Structure):
    """The table of `rust/bindings/src/guests/functions.rs`."""

    _fields_ = (
        ("allocate", ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.c_void_p, ctypes.c_size_t, ctypes.c_size_t)),
        (
            "resize_in_place",
            ctypes.CFUNCTYPE(ctypes.c_bool, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_size_t),
        ),
        ("free", ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_void_p)),
        ("last_refusal", ctypes.CFUNCTYPE(ctypes.c_char_p)),
    )


FUNCTIONS = Functions.from_address(GuestMemory.functions)


def refusal() -> str:
    return (FUNCTIONS.last_refusal() or b"").decode()


def test_the_functions_for_code_in_c() -> None:
    pool = Pool("1MiB", name="small", owner_tags=True)
    guest = GuestMemory(pool, "mine").address
    addresses = [
        FUNCTIONS.allocate(guest, nbytes, 1 << shift) for shift, nbytes in enumerate((0, 1, 300, 5000))
    ]
    addresses.append(FUNCTIONS.allocate(guest, 100, 256))
    assert all(address % 256 == 0 for address in addresses)
    assert requested_by_owner(pool) == {"mine": 1 + 1 + 300 + 5000 + 100}
    assert FUNCTIONS.resize_in_place(guest, addresses[1], 256)
    assert not FUNCTIONS.resize_in_place(guest, addresses[1], 1 << 20)
    assert not FUNCTIONS.resize_in_place(guest, addresses[1] + 1, 1)
    assert FUNCTIONS.allocate(guest, 2 << 20, 64) is None
    assert refusal().startswith("pool 'small': out of memory: asked for 2 MiB")
    assert FUNCTIONS.allocate(guest, 1 << 63, 64) is None
    assert refusal().startswith("pool 'small': cannot allocate 9223372036854775808 bytes")
    for alignment in (512, 4096, 1 << 16):
        aligned = FUNCTIONS.allocate(guest, 10, alignment)
        assert aligned % alignment == 0
        assert FUNCTIONS.resize_in_place(guest, aligned, 100)
        FUNCTIONS.free(guest, aligned)
    # A region of 1 MiB may happen to contain a multiple of 2 MiB, and hardly one of 64 GiB.
    assert FUNCTIONS.allocate(guest, 10, 1 << 36) is None
    assert f"the request alone, with {(1 << 36) - 256} bytes of padding, is above the limit" in refusal()
    assert FUNCTIONS.allocate(guest, 10, 3000) is None
    assert refusal().startswith("pool 'small': alignment 3000 is not a power of two")
    with ThreadPoolExecutor(1) as other:
        assert other.submit(refusal).result() == ""
    with pytest.raises(BufferError):
        pool.free(addresses[0])
    for address in [*addresses, addresses[0], None]:  # one of them twice
        FUNCTIONS.free(guest, address)
    assert in_use(pool) == 0


def test_a_guest_of_a_pool_is_there_once() -> None:
    pool, other = Pool("1MiB"), Pool("1MiB")
    guest = GuestMemory(pool, "mine")
    assert guest.address == GuestMemory(pool, "mine").address
    assert len({guest.address, GuestMemory(pool, "yours").address, GuestMemory(other, "mine").address}) == 3


@pytest.fixture(scope="module")
def guests(tmp_path_factory: pytest.TempPathFactory) -> Guests:
    return Guests(tmp_path_factory.mktemp("guests"))


def play(guests: Guests, steps: int, seed: int, refusals: int = 0, guard: bool = False) -> None:
    """Play so many steps, and on until so many requests were refused."""
    pool = Pool(LIMIT, name="shared", owner_tags=True, guard=guard)
    player = Player(pool, seed, guests)
    step = 0
    with pooled_onnxruntime.use(pool):
        while step < steps or player.refused < refusals:
            if step % 5 == 0:
                player.inject()
            player.step()
            player.check()
            step += 1
    assert player.refused > steps / 50
    player.end()
    player.settle(0)
    assert in_use(pool) == 0
    pool.trim()
    assert pool.stats().reserved == 0


def test_a_thousand_random_steps_with_refusals(guests: Guests) -> None:
    play(guests, 1000, seed=1)


def test_no_guest_writes_outside_of_its_memory(guests: Guests) -> None:
    play(guests, 500, seed=5, guard=True)


def test_random_steps_on_four_threads(guests: Guests) -> None:
    pool = Pool(LIMIT, name="shared", owner_tags=True)
    players = [Player(pool, seed, guests) for seed in range(4)]

    def work(player: Player) -> int:
        for _ in range(150):
            player.step()
        return player.refused

    with pooled_onnxruntime.use(pool), ThreadPoolExecutor(4) as threads:
        assert sum(threads.map(work, players)) > 0
    for player in players:
        player.end()
    players[0].settle(0)
    assert in_use(pool) == 0


@pytest.mark.long
@pytest.mark.timeout(1800)
@pytest.mark.parametrize(("seed", "refusals"), [(2, 10_000), (3, 0)])
def test_ten_thousand_random_steps_with_refusals(guests: Guests, seed: int, refusals: int) -> None:
    play(guests, 10_000, seed, refusals)
