"""Several runtimes and NumPy in one pool: its figures are the sum of what they hold, whatever is refused."""

import ctypes
import math
import random
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest

from allotment import OutOfMemoryError, Pool
from allotment._core import GuestMemory
from allotment.integrations import numpy as pooled_numpy
from allotment.integrations import onnxruntime as pooled_onnxruntime
from allotment.integrations import pyarrow as pooled_pyarrow
from allotment.integrations import tvm_ffi as pooled_tvm_ffi
from support.models import mlp
from support.pools.owners import in_use, requested_by_owner
from support.tvm_ffi_module import Empty, compiled, loaded

LIMIT = 12 << 20
WIDTHS = (16, 64, 200)
LAYERS = 2


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
    assert FUNCTIONS.allocate(guest, 10, 1 << 21) is None
    assert "the request alone, with 2096896 bytes of padding, is above the limit" in refusal()
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


class Player:
    """Makes and drops random things of every guest in one pool, and knows what each guest holds."""

    def __init__(self, pool: Pool, seed: int, empty: Empty) -> None:
        self.pool = pool
        self.empty = empty
        self.tensors: list[Any] = []
        self.random = random.Random(seed)
        self.refused = 0
        self.buffers: list[Any] = []
        self.results: list[Any] = []
        self.arrays: list[np.ndarray[Any, Any]] = []
        #: With the bytes of its weights.
        self.sessions: list[tuple[Any, int]] = []
        self.outputs: list[np.ndarray[Any, Any]] = []
        self.memory = pooled_pyarrow.memory_pool(pool)

    def held(self) -> list[list[Any]]:
        return [self.tensors, self.buffers, self.results, self.arrays, self.sessions, self.outputs]

    def size(self) -> int:
        return int(2 ** self.random.uniform(0, 21.5))

    def allocate_buffer(self) -> None:
        import pyarrow

        self.buffers.append(pyarrow.allocate_buffer(self.size(), memory_pool=self.memory, resizable=True))

    def resize_buffer(self) -> None:
        if self.buffers:
            self.random.choice(self.buffers).resize(self.size(), shrink_to_fit=self.random.random() < 0.5)

    def compute(self) -> None:
        import pyarrow
        import pyarrow.compute

        values = pyarrow.array(np.arange(self.size() // 8 + 1))
        self.results.append(pyarrow.compute.add(values, values, memory_pool=self.memory))

    def make_array(self) -> None:
        with pooled_numpy.use(self.pool):
            self.arrays.append(np.zeros(self.size(), np.uint8))

    def make_tensor(self) -> None:
        with pooled_tvm_ffi.use(self.pool):
            self.tensors.append(self.empty(self.random.randint(1, 3), self.size(), dtype="int8"))

    def open_session(self) -> None:
        if len(self.sessions) < 8:
            width = self.random.choice(WIDTHS)
            self.sessions.append((session(MODELS[width][0]), MODELS[width][1]))

    def run_session(self) -> None:
        if self.sessions:
            made, _ = self.random.choice(self.sessions)
            width = made.get_inputs()[0].shape[1]
            x = np.ones((self.random.randint(1, 500), width), np.float32)
            self.outputs.append(made.run(None, {"x": x})[0])

    def drop(self) -> None:
        things = self.random.choice(self.held())
        if things:
            del things[self.random.randrange(len(things))]

    def step(self) -> None:
        """Do one thing; a refusal must be the guest's own exception with the pool's report."""
        makes = (
            self.allocate_buffer,
            self.resize_buffer,
            self.compute,
            self.make_array,
            self.make_tensor,
            self.open_session,
            self.run_session,
        )
        action = self.random.choice([*makes, *[self.drop] * 3])
        text = ""
        try:
            action()
        except Exception as error:
            text = self.report(error)
            error.__traceback__ = None
        if text:
            assert "out of memory: asked for" in text, text
            self.refused += 1

    def report(self, error: Exception) -> str:
        kind = type(error)
        assert kind.__module__.startswith(("pyarrow", "onnxruntime", "numpy")) or kind is MemoryError, repr(
            error
        )
        assert not isinstance(error, OutOfMemoryError)
        # NumPy's error has the report as a note, unless its first array was refused: then it is the cause.
        notes = getattr(error, "__notes__", [])
        return "\n".join([str(error), *notes, str(error.__cause__ or "")])

    def check(self) -> None:
        """Compare the pool's figures with the sums of what the guests hold."""
        requested = requested_by_owner(self.pool)
        arrow = requested.pop("pyarrow", 0)
        onnxruntime = requested.pop("onnxruntime", 0)
        assert arrow == self.memory.bytes_allocated()
        assert onnxruntime == sum(nbytes for _, nbytes in self.sessions) + sum(y.nbytes for y in self.outputs)
        tensors = requested.pop("tvm_ffi", 0)
        assert tensors == sum(math.prod(tensor.shape) for tensor in self.tensors)
        assert sum(requested.values()) == sum(array.nbytes for array in self.arrays)
        stats = self.pool.stats()
        assert stats.requested == arrow + onnxruntime + tensors + sum(requested.values())

    def inject(self) -> None:
        """Refuse growth until the next call, or allow it."""
        self.pool.trim()
        limit = max(self.pool.stats().reserved, 1 << 20) if self.random.random() < 0.5 else LIMIT
        self.pool.set_limit(limit)

    def end(self) -> None:
        for things in self.held():
            things.clear()


#: By width: a model, and the bytes of its weights in the layout that ONNX Runtime chooses for the processor.
MODELS: dict[int, tuple[bytes, int]] = {}


def session(model: bytes) -> Any:
    import onnxruntime

    options = pooled_onnxruntime.session_options()
    options.intra_op_num_threads = 1
    options.log_severity_level = 4
    return onnxruntime.InferenceSession(model, options, providers=["CPUExecutionProvider"])


@pytest.fixture(scope="module")
def empty(tmp_path_factory: pytest.TempPathFactory) -> Empty:
    """The function that makes tensors; skips the test if a guest is missing."""
    pytest.importorskip("pyarrow", reason="pyarrow is not installed")
    pytest.importorskip("onnxruntime", reason="ONNX Runtime is not installed")
    function = loaded(compiled(tmp_path_factory.mktemp("tvm_ffi")))
    for width in WIDTHS:
        if width not in MODELS:
            pool, model = Pool(LIMIT), mlp(width, LAYERS)
            with pooled_onnxruntime.use(pool):
                made = session(model)
            MODELS[width] = (model, pool.stats().requested)
            del made
    return function


def play(empty: Empty, steps: int, seed: int, guard: bool = False) -> None:
    pool = Pool(LIMIT, name="shared", owner_tags=True, guard=guard)
    player = Player(pool, seed, empty)
    with pooled_onnxruntime.use(pool):
        for step in range(steps):
            if step % 5 == 0:
                player.inject()
            player.step()
            if step % 10 == 0:
                player.check()
    assert player.refused > steps / 50
    player.end()
    assert in_use(pool) == 0
    pool.trim()
    assert pool.stats().reserved == 0


def test_a_thousand_random_steps_with_refusals(empty: Empty) -> None:
    play(empty, 1000, seed=1)


def test_no_guest_writes_outside_of_its_memory(empty: Empty) -> None:
    play(empty, 500, seed=5, guard=True)


def test_random_steps_on_four_threads(empty: Empty) -> None:
    pool = Pool(LIMIT, name="shared", owner_tags=True)
    players = [Player(pool, seed, empty) for seed in range(4)]

    def work(player: Player) -> int:
        for _ in range(150):
            player.step()
        return player.refused

    with pooled_onnxruntime.use(pool), ThreadPoolExecutor(4) as threads:
        assert sum(threads.map(work, players)) > 0
    for player in players:
        player.end()
    assert in_use(pool) == 0


@pytest.mark.long
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("seed", range(2, 4))
def test_ten_thousand_random_steps_with_refusals(empty: Empty, seed: int) -> None:
    play(empty, 10_000, seed)
