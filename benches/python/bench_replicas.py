"""Do two replicas on two cores take less time than one for the same global batch?

Budget: 0.65 of the time of one replica, for a model dominated by matrix products, with one thread for each product.
Both strategies are measured alternately in one process, where OpenBLAS uses one thread. For comparison, NumPy's product
alone, on one thread and split over two, shows the speed-up that the machine allows at that time.

    .venv/bin/python benches/python/bench_replicas.py
"""

import json
import os
import subprocess
import sys
import textwrap

BUDGET = 0.65

PROGRAM = """
import json, time
from concurrent.futures import ThreadPoolExecutor
import numpy as np
import allotment
import allotment.tf as tf

WIDTH, BATCH, ROUNDS = 512, 1024, 60
allotment.testing.simulate_gpus("2:1GiB")
rng = np.random.default_rng(0)
x = rng.normal(size=(BATCH, WIDTH)).astype(np.float32)
y = rng.normal(size=(BATCH, 1)).astype(np.float32)


def training(replicas):
    strategy = tf.distribute.MirroredStrategy([f"GPU:{index}" for index in range(replicas)])
    batch = next(iter(strategy.experimental_distribute_dataset([(x, y)])))
    with strategy.scope():
        shapes = [(WIDTH, WIDTH), (WIDTH, WIDTH), (WIDTH, 1)]
        weights = [tf.Variable(rng.normal(size=shape).astype(np.float32) / WIDTH**0.5) for shape in shapes]

    def step(batch):
        inputs, wanted = batch
        with tf.GradientTape() as tape:
            hidden = tf.nn.relu(tf.matmul(tf.nn.relu(tf.matmul(inputs, weights[0])), weights[1]))
            loss = tf.reduce_sum(tf.square(tf.matmul(hidden, weights[2]) - wanted)) / BATCH
        gradients = tf.distribute.get_replica_context().all_reduce("SUM", tape.gradient(loss, weights))
        for weight, gradient in zip(weights, gradients):
            weight.assign_sub(0.01 * gradient)
        return loss

    def train():
        start = time.perf_counter()
        strategy.reduce("SUM", strategy.run(step, args=(batch,)), axis=None)
        return time.perf_counter() - start

    return train


def products(threads):
    matrix = rng.normal(size=(WIDTH, WIDTH)).astype(np.float32)
    rows = x[: BATCH // threads]

    def work(_):
        for _ in range(6):
            rows @ matrix

    def multiply():
        start = time.perf_counter()
        list(pool.map(work, range(threads)))
        return time.perf_counter() - start

    return multiply


pool = ThreadPoolExecutor(2)
sides = {"one": training(1), "two": training(2), "plain one": products(1), "plain two": products(2)}
times = {name: [] for name in sides}
for _ in range(ROUNDS):
    for name, side in sides.items():
        times[name].append(side())
print(json.dumps(times))
"""


def main() -> int:
    """Measure, print the ratios, and return 1 if the budget is exceeded."""
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(PROGRAM)],
        env={**os.environ, "OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"},
        stdout=subprocess.PIPE,
        text=True,
        timeout=300,
        check=True,
    )
    # The fastest round, because other work on the machine slows down some of the rounds only.
    best = {name: min(times) * 1e3 for name, times in json.loads(done.stdout).items()}
    ratio = best["two"] / best["one"]
    print(f"one replica {best['one']:.1f} ms, two {best['two']:.1f} ms: {ratio:.2f} (budget {BUDGET})")
    print(f"NumPy's products alone on two threads: {best['plain two'] / best['plain one']:.2f}")
    return int(ratio > BUDGET)


if __name__ == "__main__":
    sys.exit(main())
