"""Workers of a Dask cluster with a pool each: real processes, and one client.

Longer than 300 lines: all tests use one cluster, which takes seconds to start.
"""

import os
import signal
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from types import SimpleNamespace
from typing import Any

import dask
import numpy as np
import pytest
from distributed import Client, KilledWorker, LocalCluster, get_worker, wait
from distributed.spill import SpillBuffer
from numpy.typing import NDArray

import allotment
import allotment.tf as tf
from allotment.integrations import dask_limits
from allotment.integrations.dask import AllotmentSetup
from support.child import run_program
from support.pools.numpy_handlers import OURS, handler_name

MIB = 1 << 20
#: Of each worker; its process has some 80 MiB before it does anything.
MEMORY_LIMIT = 1024 * MIB
#: No step of these tests takes longer, a worker's restart included.
DEADLINE_SECONDS = 30


@pytest.fixture(scope="module")
def cluster() -> Iterator[LocalCluster]:
    # A task whose worker dies is not tried on the other ones.
    with (
        dask.config.set({"distributed.scheduler.allowed-failures": 0}),
        LocalCluster(
            n_workers=2,
            threads_per_worker=1,
            processes=True,
            dashboard_address=":0",
            memory_limit=MEMORY_LIMIT,
        ) as cluster,
    ):
        yield cluster


@pytest.fixture
def client(cluster: LocalCluster) -> Iterator[Client]:
    with Client(cluster, timeout=DEADLINE_SECONDS) as client:
        client.wait_for_workers(2, timeout=DEADLINE_SECONDS)
        yield client
        if AllotmentSetup.name in client.run_on_scheduler(
            lambda dask_scheduler: list(dask_scheduler.worker_plugins)
        ):
            client.unregister_worker_plugin(AllotmentSetup.name)
        eventually(lambda: metrics(client) == [{}, {}])


def ones(nbytes: int) -> NDArray[np.uint8]:
    return np.ones(nbytes, np.uint8)


def handler(_: Any = None) -> str | None:
    return handler_name(np.empty(100))


def metrics(client: Client) -> list[dict[str, Any]]:
    workers = client.scheduler_info(n_workers=-1)["workers"].values()
    return [
        {
            name.removeprefix("allotment_"): value
            for name, value in worker["metrics"].items()
            if "allotment" in name
        }
        for worker in workers
    ]


def eventually(holds: Callable[[], object]) -> None:
    """Wait until it holds: figures reach the scheduler with a worker's next heartbeat."""
    end = time.monotonic() + DEADLINE_SECONDS
    while not holds():
        assert time.monotonic() < end
        time.sleep(0.05)


def test_arrays_of_tasks_are_in_their_workers_pool_and_the_scheduler_has_its_figures(client: Client) -> None:
    client.register_plugin(AllotmentSetup(maximum_pool_size="64MiB"))
    eventually(lambda: [worker.get("limit") for worker in metrics(client)] == [64 * MIB] * 2)
    workers = list(client.scheduler_info(n_workers=-1)["workers"])
    results = [
        client.submit(ones, (3 + n) * MIB, workers=[worker], pure=False) for n, worker in enumerate(workers)
    ]
    wait(results, timeout=DEADLINE_SECONDS)
    eventually(lambda: all(8 * MIB > worker.get("in_use", 0) >= 3 * MIB for worker in metrics(client)))
    assert client.gather(client.map(handler, range(4), pure=False)) == [OURS] * 4
    del results
    eventually(lambda: [worker["in_use"] for worker in metrics(client)] == [0, 0])
    for n, worker in enumerate(metrics(client)):
        assert 64 * MIB >= worker["peak_reserved"] >= worker["peak_in_use"] >= (3 + n) * MIB
        assert worker["reserved"] >= worker["in_use"]
        assert worker["num_refused"] == 0


def test_a_task_that_exhausts_its_pool_ends_with_the_report_and_the_worker_lives_on(client: Client) -> None:
    client.register_plugin(AllotmentSetup(maximum_pool_size="64MiB"))

    def hungry() -> None:
        held = [ones(10 * MIB) for _ in range(7)]
        assert not held

    before = client.run(os.getpid)
    with pytest.raises(allotment.OutOfMemoryError, match="set by AllotmentSetup") as refused:
        client.submit(hungry).result(timeout=DEADLINE_SECONDS)
    error = refused.value
    assert (error.requested, error.limit, error.verdict) == (10 * MIB, 64 * MIB, "slack")
    assert error.num_live >= 5
    assert sum(group.bytes for group in error.by_size) == error.in_use >= 50 * MIB
    assert "Unable to allocate 10.0 MiB" in str(error.__cause__)  # NumPy's words
    assert "hungry" in [entry.name for entry in refused.traceback]
    eventually(lambda: all(worker.get("in_use") == 0 for worker in metrics(client)))
    assert sum(worker["num_refused"] for worker in metrics(client)) >= 1
    assert client.submit(lambda: int(ones(60 * MIB)[-1])).result(timeout=DEADLINE_SECONDS) == 1
    assert client.run(os.getpid) == before


def test_data_from_another_worker_arrives_though_the_pool_is_full(client: Client) -> None:
    client.register_plugin(AllotmentSetup(maximum_pool_size="64MiB"))
    full, other = client.scheduler_info(n_workers=-1)["workers"]
    data = client.submit(ones, 30 * MIB, workers=[other])

    def fill() -> int:
        worker: Any = get_worker()
        worker.held = [ones(14 * MIB) for _ in range(4)]
        return len(worker.held)

    def empty() -> None:
        worker: Any = get_worker()
        del worker.held

    assert client.submit(fill, workers=[full]).result(timeout=DEADLINE_SECONDS) == 4
    try:
        assert client.submit(len, data, workers=[full]).result(timeout=DEADLINE_SECONDS) == 30 * MIB
    finally:
        client.submit(empty, workers=[full]).result(timeout=DEADLINE_SECONDS)


def test_a_memory_error_that_no_pool_raised_stays_what_it_is(client: Client) -> None:
    client.register_plugin(AllotmentSetup(maximum_pool_size="64MiB"))

    def own() -> None:
        raise MemoryError("mine")

    def recovers() -> None:
        with pytest.raises(MemoryError):
            ones(80 * MIB)

    (worker, _) = client.scheduler_info(n_workers=-1)["workers"]
    client.submit(recovers, workers=[worker]).result(timeout=DEADLINE_SECONDS)
    with pytest.raises(MemoryError, match=r"^mine$"):
        client.submit(own, workers=[worker]).result(timeout=DEADLINE_SECONDS)


def test_a_killed_worker_is_an_error_in_time_and_the_next_one_has_the_plugin(client: Client) -> None:
    client.register_plugin(AllotmentSetup(maximum_pool_size="64MiB"))
    before = client.run(os.getpid)

    def die() -> None:
        os.kill(os.getpid(), signal.SIGKILL)

    with pytest.raises(KilledWorker, match="die"):
        client.submit(die).result(timeout=DEADLINE_SECONDS)
    eventually(lambda: [worker.get("limit") for worker in metrics(client)] == [64 * MIB] * 2)
    after = client.run(os.getpid)
    assert len(set(before.values()) & set(after.values())) == 1
    assert client.run(handler) == dict.fromkeys(after, OURS)


def test_what_tasks_keep_is_spilled_before_the_pool_is_full(client: Client) -> None:
    client.register_plugin(AllotmentSetup(maximum_pool_size="64MiB"))
    results = client.map(lambda n: np.full(8 * MIB, n, np.uint8), range(24), pure=False)
    assert client.gather(client.map(lambda array: int(array.sum()) // (8 * MIB), results)) == list(range(24))
    spilled = client.run(lambda dask_worker: dask_worker.data.spilled_total.disk)
    assert sum(spilled.values()) >= (24 * 8 - 2 * 64) * MIB
    eventually(lambda: [worker.get("num_refused") for worker in metrics(client)] == [0, 0])
    # Dask's share of the pool, and not of the worker's memory.
    assert set(client.run(lambda dask_worker: dask_worker.data.n).values()) == {int(0.6 * 64 * MIB)}


def test_a_total_is_shared_among_the_workers_of_the_host_and_never_twice(
    cluster: LocalCluster, client: Client
) -> None:
    client.register_plugin(AllotmentSetup(total_pool_size="128MiB"))
    eventually(lambda: [worker.get("limit") for worker in metrics(client)] == [64 * MIB] * 2)
    cluster.scale(3)
    client.wait_for_workers(3, timeout=DEADLINE_SECONDS)
    eventually(lambda: any("error" in worker for worker in metrics(client)))
    (late,) = (worker for worker in metrics(client) if "error" in worker)
    assert "total_pool_size=134217728" in late["error"]
    assert "limit" not in late
    client.register_plugin(AllotmentSetup(total_pool_size="96MiB"))
    eventually(lambda: [worker.get("limit") for worker in metrics(client)] == [32 * MIB] * 3)
    assert not any("error" in worker for worker in metrics(client))
    cluster.scale(2)
    eventually(lambda: len(metrics(client)) == 2)


def test_registered_again_it_is_replaced_and_unregistered_it_is_gone(client: Client) -> None:
    normal = client.run(lambda dask_worker: dask_worker.data.n)
    client.register_plugin(AllotmentSetup(maximum_pool_size="64MiB"))
    client.register_plugin(AllotmentSetup("16MiB", "32MiB"))
    eventually(lambda: [worker.get("limit") for worker in metrics(client)] == [32 * MIB] * 2)
    assert all(32 * MIB >= worker["reserved"] >= 16 * MIB for worker in metrics(client))
    assert set(client.run(handler).values()) == {OURS}
    client.unregister_worker_plugin(AllotmentSetup.name)
    eventually(lambda: metrics(client) == [{}, {}])
    assert set(client.run(handler).values()) == {"default_allocator"}
    assert client.run(lambda dask_worker: dask_worker.data.n) == normal
    assert not any(client.run(lambda dask_worker: "get_process_memory" in vars(dask_worker.monitor)).values())


def test_without_a_size_the_pool_gets_what_dask_leaves_below_its_pause(client: Client) -> None:
    client.register_plugin(AllotmentSetup())
    held = client.run(lambda dask_worker: dask_worker.monitor.get_process_memory())
    eventually(lambda: all("limit" in worker for worker in metrics(client)))
    for worker, now in zip(metrics(client), held.values(), strict=True):
        assert 0.8 * MEMORY_LIMIT - now <= worker["limit"] + 8 * MIB
        assert worker["limit"] < 0.8 * MEMORY_LIMIT
    client.register_plugin(AllotmentSetup(maximum_pool_size=0.25))
    eventually(lambda: [worker.get("limit") for worker in metrics(client)] == [256 * MIB] * 2)


def test_free_regions_go_back_before_dask_spills_for_them() -> None:
    def leaves_a_region_behind(kept: NDArray[np.uint8]) -> tuple[int, int, int]:
        worker: Any = get_worker()
        pool = worker.plugins["allotment"].pool
        first = ones(250 * MIB)
        del first
        # Does not fit where the first one was. With both, the process is above the threshold for spilling.
        second = ones(430 * MIB)
        # Dask looks at the memory of its process every so often.
        deadline = time.monotonic() + 30
        while pool.stats().reserved >= 500 * MIB and time.monotonic() < deadline:
            time.sleep(0.05)
        stats = pool.stats()
        del second
        return stats.peak_reserved, stats.reserved, worker.data.spilled_total.disk + len(kept)

    # A process that is new has as much room as there can be.
    with (
        LocalCluster(
            n_workers=1,
            threads_per_worker=1,
            processes=True,
            dashboard_address=":0",
            memory_limit=MEMORY_LIMIT,
        ) as cluster,
        Client(cluster) as client,
    ):
        client.register_plugin(AllotmentSetup())
        kept = client.submit(ones, 10 * MIB)
        peak, after, spilled_and_kept = client.submit(leaves_a_region_behind, kept).result(
            timeout=DEADLINE_SECONDS
        )
    assert peak >= 690 * MIB
    assert after < 500 * MIB
    assert spilled_and_kept == 10 * MIB


def test_a_pool_that_dask_would_not_let_fill_up_is_an_error_at_the_client(client: Client) -> None:
    with pytest.raises(ValueError, match=r"a pool of 900 MiB \(943718400 bytes\) does not fit in the worker"):
        client.register_plugin(AllotmentSetup(maximum_pool_size="900MiB"))
    assert set(client.run(handler).values()) == {"default_allocator"}


def test_a_workers_devices_are_simulated_and_arrays_can_live_on_one(client: Client) -> None:
    client.register_plugin(
        AllotmentSetup(maximum_pool_size="48MiB", simulated_gpus="1:64MiB", device="/GPU:0")
    )

    def on_device() -> tuple[str, int]:
        array = ones(MIB)
        with tf.device("/GPU:0"):
            name = tf.constant([1.0]).device
        return name, tf.config.experimental.get_memory_info("GPU:0")["current"] - array.nbytes

    name, others = client.submit(on_device).result(timeout=DEADLINE_SECONDS)
    assert name.endswith("GPU:0")
    assert 0 <= others < MIB
    with pytest.raises(
        allotment.errors.ResourceExhaustedError, match=r"set by allotment\.experimental"
    ) as refused:
        client.submit(_on_gpu, 49 * MIB).result(timeout=DEADLINE_SECONDS)
    assert refused.value.limit == 48 * MIB


def _on_gpu(nbytes: int) -> None:
    with tf.device("/GPU:0"):
        tf.zeros([nbytes], tf.uint8)


def test_dask_measures_a_process_after_its_pools_free_regions_have_gone_back() -> None:
    pool = allotment.Pool("64MiB")
    resident = [1000 * MIB]

    def measured() -> int:
        return resident[0] + pool.stats().reserved

    data = SpillBuffer("unused", target=600 * MIB)
    manager = SimpleNamespace(
        memory_limit=1024 * MIB,
        memory_target_fraction=0.6,
        memory_spill_fraction=0.7,
        memory_pause_fraction=0.8,
        data=data,
    )
    monitor = SimpleNamespace(get_process_memory=measured)
    worker: Any = SimpleNamespace(memory_manager=manager, monitor=monitor)
    with ExitStack() as undo:
        dask_limits.adapt_thresholds(worker, pool, undo)
        assert data.n == int(0.6 * 64 * MIB)
        pool.free(pool.malloc("8MiB"))
        assert monitor.get_process_memory() == 1000 * MIB
        resident[0] = 100 * MIB
        pool.free(pool.malloc("8MiB"))
        assert monitor.get_process_memory() == 100 * MIB + pool.stats().reserved
        assert pool.stats().reserved >= 8 * MIB
    assert data.n == 600 * MIB


def test_several_workers_in_one_process_are_refused_and_one_is_served() -> None:
    ran = run_program(
        """
        import logging
        from distributed import Client, LocalCluster
        from allotment.integrations.dask import AllotmentSetup
        from numpy._core.multiarray import get_handler_name

        logging.disable()
        options = dict(processes=False, threads_per_worker=1, dashboard_address=":0", memory_limit="2GiB")
        with LocalCluster(n_workers=2, **options) as cluster, Client(cluster) as client:
            try:
                client.register_plugin(AllotmentSetup(maximum_pool_size="8MiB"))
            except RuntimeError as error:
                print(str(error).split(": ")[1], get_handler_name())
        with LocalCluster(n_workers=1, **options) as cluster, Client(cluster) as client:
            client.register_plugin(AllotmentSetup(maximum_pool_size="8MiB"))
            print(client.submit(get_handler_name).result(20))
        print(get_handler_name())
        """
    )
    assert ran.stdout.split("\n") == [
        "NumPy's arrays of a process are in one pool, so none of them can have a limit of its own. "
        "Start them with processes=True, or only one default_allocator",
        "allotment",
        "default_allocator",
        "",
    ], ran.stderr


def test_without_dask_the_package_imports_and_the_plugin_says_what_is_missing() -> None:
    ran = run_program(
        """
        import sys
        import allotment
        assert not {"dask", "distributed"} & set(sys.modules)
        sys.modules["distributed"] = None
        from allotment.integrations.dask import AllotmentSetup
        AllotmentSetup()
        """
    )
    assert ran.stderr.endswith(
        "ModuleNotFoundError: AllotmentSetup needs Dask's distributed: pip install 'allotment[dask]'\n"
    )


@pytest.mark.parametrize(
    ("arguments", "error", "text"),
    [
        ({"maximum_pool_size": "1GiB", "total_pool_size": "2GiB"}, ValueError, "give one of them"),
        ({"maximum_pool_size": "much"}, ValueError, "much"),
        (
            {"maximum_pool_size": 1.5},
            ValueError,
            "a share of the worker's memory limit is above 0 and at most 1",
        ),
        ({"initial_pool_size": -1}, ValueError, "-1"),
        ({"maximum_pool_size": [1]}, TypeError, "list"),
        ({"total_pool_size": 0.5}, TypeError, "float"),
        ({"external_lib_list": ["cupy"]}, NotImplementedError, "'cupy' cannot take its memory from a pool"),
    ],
)
def test_arguments_are_judged_where_the_plugin_is_made(
    arguments: dict[str, Any], error: type[Exception], text: str
) -> None:
    with pytest.raises(error, match=text):
        AllotmentSetup(**arguments)
