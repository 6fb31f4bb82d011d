"""``MultiWorkerMirroredStrategy``: one program in several processes, as MPI starts them."""

from itertools import chain
from typing import Any

import numpy as np
import pytest

import allotment.tf as tf
from support.child import run_program
from support.mpi import facts, run_processes

#: A linear model of four inputs, twelve steps over batches of 18 that do not divide evenly by four replicas.
TRAINING = """
rng = np.random.default_rng(7)
inputs = rng.normal(size=(54, 4)).astype(np.float32)
targets = (inputs @ np.array([[1], [-2], [3], [0.5]], np.float32) + 0.25).astype(np.float32)
batches = [(inputs[n : n + 18], targets[n : n + 18]) for n in range(0, 54, 18)]
"""
PROGRAM = (
    TRAINING
    + """
if gpus := int(os.environ["GPUS"]):
    allotment.testing.simulate_gpus(f"{gpus}:64MiB")
strategy = strategy()
rank = strategy.cluster_resolver.task_id
with strategy.scope():
    # Each process would begin elsewhere.
    weights = tf.Variable(np.full([4, 1], 1 + rank, np.float32))
    bias = tf.Variable(np.full([1], rank, np.float32))

def step(x, y):
    with tf.GradientTape() as tape:
        error = tf.matmul(x, weights) + bias - y
        loss = tf.reduce_sum(error * error) / 18
    gradients = tf.distribute.get_replica_context().all_reduce("SUM", tape.gradient(loss, [weights, bias]))
    weights.assign_sub(0.1 * gradients[0])
    bias.assign_sub(0.1 * gradients[1])
    return loss

for _ in range(4):
    for x, y in strategy.experimental_distribute_dataset(batches):
        loss = strategy.reduce("SUM", strategy.run(step, args=(x, y)), axis=None)
del x, y
copies = [each.numpy() for each in weights.values]
memory = [
    tf.config.experimental.get_memory_info(each.name.removeprefix("/device:"))["current"]
    for each in tf.config.list_logical_devices("GPU")
]
tell(
    rank=rank,
    replicas=strategy.num_replicas_in_sync,
    loss=float(loss),
    weights=[copy.ravel().tolist() for copy in copies],
    bias=float(bias.values[0].numpy()[0]),
    memory=memory,
)
"""
)


def trained_by_numpy() -> tuple[np.ndarray[Any, Any], float, float]:
    """The same training in a plain loop, with double precision."""
    names: dict[str, Any] = {"np": np}
    exec(TRAINING, names)
    weights, bias, loss = np.ones((4, 1)), np.zeros(1), 0.0
    for _ in range(4):
        for x, y in names["batches"]:
            error = x.astype(float) @ weights + bias - y
            loss = float((error * error).sum() / 18)
            weights = weights - 0.1 * 2 / 18 * x.T @ error
            bias = bias - 0.1 * 2 / 18 * error.sum()
    return weights.ravel(), float(bias[0]), loss


@pytest.mark.parametrize(("processes", "gpus"), [(1, 0), (2, 0), (4, 0), (2, 2)])
def test_training_in_processes_agrees_with_a_plain_loop_and_bit_by_bit_among_them(
    processes: int, gpus: int
) -> None:
    ran = run_processes(PROGRAM, processes, GPUS=str(gpus))
    assert ran.status == 0, ran.stderr
    told = facts(ran.stdout)
    assert [each["rank"] for each in told] == list(range(processes))
    weights, bias, loss = trained_by_numpy()
    for each in told:
        assert each["replicas"] == processes * max(gpus, 1)
        assert len(each["weights"]) == max(gpus, 1)
        for copy in each["weights"]:
            assert copy == told[0]["weights"][0]
            assert copy == pytest.approx(weights, rel=2e-6, abs=2e-6)
        assert each["bias"] == told[0]["bias"] == pytest.approx(bias, rel=2e-6, abs=2e-6)
        assert each["loss"] == told[0]["loss"] == pytest.approx(loss, rel=2e-5)
        # The variables, and on the first GPU the loss: nothing is left of the reductions.
        assert each["memory"] == [768, 512][:gpus]


def test_values_are_reduced_gathered_and_handed_out_over_all_processes() -> None:
    ran = run_processes(
        """
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
        )
        """,
        2,
    )
    assert ran.status == 0, ran.stderr
    for rank, told in enumerate(facts(ran.stdout)):
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


#: Each replica has its own number of rows. What a replica gives counts in the losses of all.
GRADIENTS = """
context = tf.distribute.get_replica_context

def step():
    number = tf.cast(context().replica_id_in_sync_group, tf.float32)
    x = tf.reshape(tf.range(2.0 * (number + 1.0)), [-1, 2])
    with tf.GradientTape() as tape:
        tape.watch(x)
        rows = context().all_gather(x, axis=0)
        total = context().all_reduce("MEAN", tf.reduce_sum(x * x))
        weights = tf.reshape(tf.range(20.0), [10, 2]) * (number + 1.0)
        loss = tf.reduce_sum(rows * rows * weights) + total * total
    return tape.gradient(loss, x)
"""


def test_gradients_go_through_collectives_of_all_processes_as_through_those_of_one() -> None:
    tells = "tell(rank={rank}, gradients=[each.numpy().tolist() for each in strategy.run(step).values])"
    alone = run_processes(
        "allotment.testing.simulate_gpus('4:64MiB')\nstrategy = tf.distribute.MirroredStrategy()\n"
        + GRADIENTS
        + tells.format(rank=0),
        1,
    )
    several = run_processes(
        "allotment.testing.simulate_gpus('2:64MiB')\nstrategy = strategy()\n"
        + GRADIENTS
        + tells.format(rank="strategy.cluster_resolver.task_id"),
        2,
    )
    assert alone.status == several.status == 0, alone.stderr + several.stderr
    (expected,) = (each["gradients"] for each in facts(alone.stdout))
    assert [gradient for each in facts(several.stdout) for gradient in each["gradients"]] == expected
    assert np.isfinite(np.concatenate(expected)).all()


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


def test_reductions_between_processes_take_their_memory_from_the_devices_pools() -> None:
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
    )
    assert ran.status == 0, ran.stderr
    for told in facts(ran.stdout):
        assert 16 << 20 <= told["peak"] <= (16 << 20) + 4096
        assert told["left"] == 0


def test_a_process_that_mpi_did_not_start_is_the_only_worker() -> None:
    ran = run_program(
        """
        import sys
        import allotment
        import allotment.tf as tf
        assert "mpi4py" not in sys.modules
        strategy = tf.distribute.MultiWorkerMirroredStrategy()
        with strategy.scope():
            v = tf.Variable(1.0, aggregation=tf.VariableAggregation.SUM)
        strategy.run(lambda: v.assign_add(1.0))
        print(strategy.num_replicas_in_sync, strategy.cluster_resolver, float(v))
        print(float(strategy.reduce("SUM", strategy.run(lambda: tf.constant(2.0)), axis=None)))
        """
    )
    assert ran.stdout == "1 WorkerRole(task_id=0, task_type='worker') 2.0\n2.0\n", ran.stderr


def test_tf_config_makes_no_cluster_and_says_so() -> None:
    ran = run_program(
        """
        import json, os
        os.environ["TF_CONFIG"] = json.dumps({"cluster": {"chief": ["a:1"], "worker": ["b:1"]}, "task": {"index": 1}})
        import allotment
        import allotment.tf as tf
        try:
            tf.distribute.MultiWorkerMirroredStrategy()
        except ValueError as error:
            print(error)
        """
    )
    assert ran.stdout == (
        "TF_CONFIG names 2 workers, and MPI has started 1. Processes are started by MPI here, as in `mpirun -n 2 "
        "python train.py`; unset TF_CONFIG to train in this one alone\n"
    ), ran.stderr


def test_without_mpi4py_the_error_says_what_to_install() -> None:
    ran = run_program(
        """
        import sys
        sys.modules["mpi4py"] = None
        import allotment
        import allotment.tf as tf
        tf.distribute.MultiWorkerMirroredStrategy()
        """
    )
    assert ran.stderr.splitlines()[-1].startswith(
        "ModuleNotFoundError: MultiWorkerMirroredStrategy runs on MPI, through mpi4py: pip install 'allotment[mpi]'"
    )


def test_options_are_tensorflows_and_what_does_not_exist_is_an_error() -> None:
    options = tf.distribute.experimental.CommunicationOptions
    implementations = tf.distribute.experimental.CommunicationImplementation
    strategy: Any = tf.distribute.MultiWorkerMirroredStrategy
    assert str(options()) == (
        "Options(bytes_per_pack=0,timeout_seconds=None, implementation=CommunicationImplementation.AUTO)"
    )
    assert options(implementation="ring").implementation is implementations.RING
    with pytest.raises(ValueError, match=r"Argument `bytes_per_pack` must be >=0, Received -1\."):
        options(bytes_per_pack=-1)
    with pytest.raises(ValueError, match="'X' is not a valid CommunicationImplementation"):
        options(implementation="x")
    with pytest.raises(
        ValueError, match="implementation must be a CommunicationImplementation, AUTO or RING, not 3"
    ):
        options(implementation=3)
    with pytest.raises(ValueError, match="timeout_seconds must be more than 0, or None, not 0"):
        options(timeout_seconds=0)
    with pytest.raises(ValueError, match=r"must be an instance of tf\.distribute\.experimental"):
        strategy(communication_options="AUTO")
    with pytest.raises(ValueError, match="MPI decides which processes there are"):
        strategy(cluster_resolver=object())


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
