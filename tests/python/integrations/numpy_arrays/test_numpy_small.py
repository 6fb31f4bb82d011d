"""Small data of dead arrays is kept for the next arrays; figures of the pool count it as free."""

import re
import time

import numpy as np

from allotment import HostMemory, OutOfMemoryError, Pool, experimental
from allotment.integrations import numpy as pooled
from support.pools.numpy_handlers import address_of

MIB = 1 << 20


def keep_back(count: int) -> None:
    """Drop arrays whose data is kept back."""
    arrays = [np.empty(1000, np.uint8) for _ in range(count)]
    del arrays


def has_room(memory: HostMemory, nbytes: int) -> bool:
    try:
        Pool(nbytes, source=memory, growth=False).allocate(nbytes).free()
    except OutOfMemoryError:
        return False
    return True


def test_data_of_a_dead_array_serves_the_next_one() -> None:
    with pooled.use(Pool("16MiB")):
        first = np.empty(1000, np.uint8)
        address = address_of(first)
        del first
        assert address_of(np.empty(1000, np.uint8)) == address


def test_metrics_do_not_count_what_is_kept_back() -> None:
    pool = Pool("16MiB", name="keeps")
    with pooled.use(pool):
        keep_back(5)
        found = re.search(r'allotment_pool_in_use_bytes{\S*"keeps"\S*} (\S+)', experimental.metrics_text())
    assert found is not None
    assert float(found[1]) == 0


def test_an_idle_pool_gives_back_what_is_kept_back() -> None:
    memory = HostMemory("16MiB")
    # The figures of the pool are not read: reading them gives it back.
    pool = Pool("16MiB", source=memory, growth=False, idle_trim_seconds=0.02)
    with pooled.use(pool):
        keep_back(5)
    assert not has_room(memory, 16 * MIB)
    deadline = time.monotonic() + 10
    while not has_room(memory, 16 * MIB) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert has_room(memory, 16 * MIB)


def test_a_request_that_what_is_kept_back_can_serve_is_no_refusal() -> None:
    pool = Pool("8KiB", growth=False)
    with pooled.use(pool):
        keep_back(5)
        large = np.empty(5000, np.uint8)
    stats = pool.stats()
    assert (stats.num_live, stats.num_refused) == (1, 0)
    assert pooled.take_refusal() is None
    del large
