"""``MultiWorkerMirroredStrategy``: one program in several processes, as MPI starts them."""

from itertools import chain

import pytest

from support.arrays.stand_in_gpus import VARIABLE
from support.mpi import facts, run_processes


@pytest.mark.parametrize("gpus", ["simulated", "stand-in"])
def test_values_are_reduced_gathered_and_handed_out_over_all_processes(gpus: str) -> None:
    # MPI knows nothing of a device's memory: strict arrays go through the host, or the call raises.
    ran = run_processes(
        """
        from allotment.devices.context import context as devices
        allotment.testing.simulate_gpus("2:64MiB")
        strategy = strategy()
        rank = strategy.cluster_resolver.task_id
        context = tf.distribute.get_replica_context
        ids = strategy.run(lambda: context().replica_id_in_sync_group)
        number = lambda: tf.cast(context().replica_id_in_sync_group, tf.float32)
        rows = strategy.run(
            lambda: tf.fill([context().replica_id_in_sync_group + 1, 2], number())
        )
        in_run = strategy.run(lambda: context().all_reduce("MEAN", {"a": number()}))
        joined = strategy.run(lambda: context().all_gather(tf.reshape(context().replica_id_in_sync_group, [1]), axis=0))
        with strategy.scope():
            total = tf.Variable(0.0, aggregation=tf.VariableAggregation.SUM)
            first = tf.Variable(-1.0, aggregation=tf.VariableAggregation.ONLY_FIRST_REPLICA)
            seen = tf.Variable(
                0.0, synchronization=tf.VariableSynchronization.ON_READ, aggregation=tf.VariableAggregation.SUM
            )
        def change():
            own = number()
            total.assign_add(own)
            first.assign(own + 10)
            seen.assign_add(own)
        strategy.run(change)
        made = strategy.experimental_distribute_values_from_function(lambda each: each.replica_id_in_sync_group)
        dealt = strategy.distribute_datasets_from_function(
            lambda each: [np.array([each.input_pipeline_id, each.num_input_pipelines, each.num_replicas_in_sync])] * 2
        )
        (per_replica,) = list(dealt)
        batches = strategy.experimental_distribute_dataset([np.arange(10)])
        (parts,) = list(batches)
        half = strategy.run(lambda: tf.constant([0.5, 1.0], tf.float16))
        tell(
            rank=rank,
            ids=[int(each) for each in ids.values],
            sum=int(strategy.reduce("SUM", ids, axis=None)),
            mean=float(strategy.reduce("MEAN", rows, axis=0)[0]),
            sums=strategy.reduce("SUM", rows, axis=0).numpy().tolist(),
            half=strategy.reduce("SUM", half, axis=None).numpy().tolist(),
            gathered=strategy.gather(rows, axis=0).numpy()[:, 0].tolist(),
            in_run=[float(each) for each in in_run["a"].values],
            joined=[each.numpy().tolist() for each in joined.values],
            total=[float(each) for each in total.values],
            first=[float(each) for each in first.values],
            seen=float(seen),
            made=list(made.values),
            dealt=per_replica.values[0].numpy().tolist(),
            parts=[each.numpy().tolist() for each in parts.values],
            devices=[each.device[-5:] for each in parts.values],
            library=getattr(devices().ready().devices[-1].library, "name", None),
        )
        """,
        2,
        **{VARIABLE: "stand-in" if gpus == "stand-in" else ""},
    )
    assert ran.status == 0, ran.stderr
    for rank, told in enumerate(facts(ran.stdout)):
        assert told.pop("library") == (None if gpus == "simulated" else "strict")
        assert told == {
            "rank": rank,
            "ids": [2 * rank, 2 * rank + 1],
            "sum": 0 + 1 + 2 + 3,
            "mean": (0 * 1 + 1 * 2 + 2 * 3 + 3 * 4) / 10,
            "sums": [20.0, 20.0],
            "half": [2.0, 4.0],
            "gathered": [0, 1, 1, 2, 2, 2, 3, 3, 3, 3],
            "in_run": [1.5, 1.5],
            "joined": [[0, 1, 2, 3]] * 2,
            "total": [6.0, 6.0],
            "first": [10.0, 10.0],
            "seen": 6.0,
            "made": [2 * rank, 2 * rank + 1],
            "dealt": [rank, 2, 4],
            "parts": [[[0, 1, 2], [3, 4, 5]], [[6, 7, 8], [9]]][rank],
            "devices": ["GPU:0", "GPU:1"],
        }


def test_a_process_with_one_replica_counts_like_any_other() -> None:
    ran = run_processes(
        """
        strategy = strategy()
        rank = strategy.cluster_resolver.task_id
        with strategy.scope():
            mean = tf.Variable(0.0, aggregation=tf.VariableAggregation.MEAN)
        rows = strategy.run(lambda: tf.fill([rank + 1], float(rank)))
        strategy.run(lambda: mean.assign(float(rank)))
        tell(
            rank=rank,
            sum=float(strategy.reduce("SUM", strategy.run(lambda: tf.constant(rank + 1.0)), axis=None)),
            mean=float(strategy.reduce("MEAN", rows, axis=0)),
            gathered=strategy.gather(rows, axis=0).numpy().tolist(),
            variable=float(mean),
        )
        """,
        3,
    )
    assert ran.status == 0, ran.stderr
    for rank, told in enumerate(facts(ran.stdout)):
        assert told == {
            "rank": rank,
            "sum": 6.0,
            "mean": pytest.approx((0 + 1 + 1 + 2 + 2 + 2) / 6),
            "gathered": [0, 1, 1, 2, 2, 2],
            "variable": 1.0,
        }


def test_each_replica_has_random_numbers_of_its_own_whichever_process_it_is_in() -> None:
    draws = """
tf.random.set_seed(5)
drawn = [strategy.gather(strategy.run(lambda: tf.random.uniform([2])), axis=0).numpy().tolist() for _ in range(2)]
tell(rank=tf.distribute.get_replica_context().num_replicas_in_sync, drawn=drawn)
"""
    alone = run_processes(
        "allotment.testing.simulate_gpus('2:64MiB')\nstrategy = tf.distribute.MirroredStrategy()\n" + draws, 1
    )
    several = run_processes("allotment.testing.simulate_gpus('1:64MiB')\nstrategy = strategy()\n" + draws, 2)
    assert alone.status == several.status == 0, alone.stderr + several.stderr
    (expected,) = (each["drawn"] for each in facts(alone.stdout))
    assert [each["drawn"] for each in facts(several.stdout)] == [expected, expected]
    assert len({number for numbers in expected for number in numbers}) == 8


@pytest.mark.parametrize("gpus", ["simulated", "stand-in"])
def test_reductions_between_processes_take_their_memory_from_the_devices_pools(gpus: str) -> None:
    ran = run_processes(
        """
        allotment.testing.simulate_gpus("1:64MiB")
        strategy = strategy()
        figures = tf.config.experimental.get_memory_info
        value = strategy.run(lambda: tf.ones([4 << 20]))  # 16 MiB
        tf.config.experimental.reset_memory_stats("GPU:0")
        before = figures("GPU:0")["current"]
        total = strategy.reduce("SUM", value, axis=None)
        peak = figures("GPU:0")["peak"] - before
        del total
        tell(rank=strategy.cluster_resolver.task_id, peak=peak, left=figures("GPU:0")["current"] - before)
        """,
        2,
        **{VARIABLE: "stand-in" if gpus == "stand-in" else ""},
    )
    assert ran.status == 0, ran.stderr
    for told in facts(ran.stdout):
        assert 16 << 20 <= told["peak"] <= (16 << 20) + 4096
        assert told["left"] == 0


@pytest.mark.parametrize("seed", [None, 3])
def test_processes_divide_the_same_batches_of_a_data_set_that_is_shuffled_without_a_seed(
    seed: int | None,
) -> None:
    ran = run_processes(
        f"""
tf.random.set_seed({seed})
# Made before anybody knows of other processes, and after each has drawn numbers of its own.
if {seed} is None:
    tf.random.uniform([1 + int(os.environ["OMPI_COMM_WORLD_RANK"])])
numbers = tf.data.Dataset.range(40)
changing = numbers.shuffle(40).batch(8).repeat(2)
lasting = numbers.shuffle(40, reshuffle_each_iteration=False).batch(8)
noisy = numbers.map(lambda x: tf.random.uniform([])).batch(8)
strategy = strategy()

def gone_through(dataset, times):
    distributed = strategy.experimental_distribute_dataset(dataset)
    return [[each.numpy().tolist() for each in distributed] for _ in range(times)]

tell(
    rank=strategy.cluster_resolver.task_id,
    changing=gone_through(changing, 2),
    lasting=gone_through(lasting, 2),
    noisy=gone_through(noisy, 1),
    own=tf.random.uniform([4]).numpy().tolist(),
)
""",
        2,
    )
    assert ran.status == 0, ran.stderr
    one, other = sorted(facts(ran.stdout), key=lambda each: each["rank"])
    orders = []
    for mine, others in zip(one["changing"], other["changing"], strict=True):
        # Each pass goes through all numbers twice.
        whole = [a + b for a, b in zip(mine, others, strict=True)]
        for half in (whole[:5], whole[5:]):
            orders.append(list(chain.from_iterable(half)))
            assert sorted(orders[-1]) == list(range(40))
    assert len({tuple(each) for each in orders}) == 4
    first, again = (
        [a + b for a, b in zip(mine, others, strict=True)]
        for mine, others in zip(one["lasting"], other["lasting"], strict=True)
    )
    assert first == again
    order = list(chain.from_iterable(first))
    assert sorted(order) == list(range(40)) != order
    assert len(set(chain.from_iterable(one["noisy"][0] + other["noisy"][0]))) == 40
    assert (one["own"] == other["own"]) == (seed is not None)
