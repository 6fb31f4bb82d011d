"""Training in several processes, which agrees with one process bit by bit."""

from typing import Any

import numpy as np
import pytest

from support.arrays.stand_in_gpus import VARIABLE
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
    # A process that simulates no GPU has none, also where others have those of the stand-in driver.
    ran = run_processes(PROGRAM, processes, GPUS=str(gpus), **({} if gpus else {VARIABLE: ""}))
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
