"""Training with several replicas: beside a plain loop over NumPy, and in how much memory."""

import pytest

from support.replicas import run

TRAINING = """
rng = np.random.default_rng(3)
STEPS, BATCH, RATE = 25, 24, np.float32(0.05)
X = rng.normal(size=(STEPS, BATCH, 6)).astype(np.float32)
Y = np.sin(X.sum(axis=2, keepdims=True)).astype(np.float32)
FIRST = [rng.normal(size=shape).astype(np.float32) * 0.5 for shape in ((6, 16), (16,), (16, 1), (1,))]

def plain():
    # The same model and its gradients by hand, in float64.
    a, b, c, d = (each.astype(np.float64) for each in FIRST)
    losses = []
    for x, y in zip(X.astype(np.float64), Y.astype(np.float64)):
        h = np.tanh(x @ a + b)
        e = h @ c + d - y
        losses.append((e * e).mean())
        g = 2 * e / BATCH
        back = (g @ c.T) * (1 - h * h)
        a, b, c, d = a - RATE * x.T @ back, b - RATE * back.sum(0), c - RATE * h.T @ g, d - RATE * g.sum(0)
    return losses, [a, b, c, d]

def train(devices, ops=None):
    s = tf.distribute.MirroredStrategy(devices, cross_device_ops=ops)
    with s.scope():
        weights = [tf.Variable(each) for each in FIRST]
    def step(batch):
        x, y = batch
        with tf.GradientTape() as tape:
            hidden = tf.tanh(tf.matmul(x, weights[0]) + weights[1])
            error = tf.matmul(hidden, weights[2]) + weights[3] - y
            loss = tf.reduce_sum(error * error) / BATCH
        gradients = ctx().all_reduce("SUM", tape.gradient(loss, weights))
        for weight, gradient in zip(weights, gradients):
            weight.assign_sub(RATE * gradient)
        return loss
    losses = []
    for batch in s.experimental_distribute_dataset(zip(X, Y)):
        losses.append(s.reduce("SUM", s.run(step, args=(batch,)), axis=None).numpy())
    for weight in weights:
        assert len({each.numpy().tobytes() for each in weight.values}) == 1, "copies drift apart"
    return losses, [each.numpy() for each in weights]
"""


@pytest.mark.parametrize("algorithm", ["ReductionToOneDevice", "HierarchicalCopyAllReduce", "NcclAllReduce"])
def test_any_number_of_replicas_trains_as_a_plain_loop_does(algorithm: str) -> None:
    run(
        TRAINING
        + f"""
losses, weights = plain()
for count in (1, 2, 3, 4, 5):
    found = train([f"gpu:{{i}}" for i in range(count)], tf.distribute.{algorithm}())
    assert np.allclose(found[0], losses, rtol=1e-5), count
    for mine, exact in zip(found[1], weights):
        assert np.allclose(mine, exact, rtol=1e-4, atol=1e-6), count
""",
        "5:16MiB",
    )


def test_the_same_steps_give_the_same_bits() -> None:
    run(
        TRAINING
        + """
first = train(["gpu:0", "gpu:1", "gpu:2"])
for _ in range(3):
    again = train(["gpu:0", "gpu:1", "gpu:2"])
    assert first[0] == again[0]
    assert all(one.tobytes() == other.tobytes() for one, other in zip(first[1], again[1]))
""",
        "3:16MiB",
    )


def test_a_replica_takes_what_one_alone_takes_and_its_reductions_buffers() -> None:
    run(
        """
WIDTH = 512
def peak(count, reduce):
    s = tf.distribute.MirroredStrategy([f"gpu:{i}" for i in range(count)])
    with s.scope():
        weights = [tf.Variable(tf.ones([WIDTH, WIDTH])) for _ in range(2)]
    x = s.run(lambda: tf.ones([128, WIDTH]))
    def step(x):
        with tf.GradientTape() as tape:
            loss = tf.reduce_sum(tf.matmul(tf.matmul(x, weights[0]), weights[1]))
        gradients = tape.gradient(loss, weights)
        if reduce:
            gradients = ctx().all_reduce("SUM", gradients)
        for weight, gradient in zip(weights, gradients):
            weight.assign_sub(gradient)
    s.run(step, args=(x,))
    for pool in pools():
        pool.reset_peaks()
    s.run(step, args=(x,))
    return [pool.stats().peak_in_use for pool in pools()][:count]
(alone,) = peak(1, False)
gradients = 2 * WIDTH * WIDTH * 4
without = peak(4, False)
with_reduction = peak(4, True)
print(alone, without, with_reduction, gradients)
# Without a reduction, exactly what one replica needs.
assert without == [alone] * 4, (alone, without)
# With one, the results and a share of the one that is being reduced beside.
assert all(each - alone <= gradients + gradients // 2 // 4 + 4096 for each in with_reduction)
""",
        "4:64MiB",
    )


def test_a_replica_without_rows_takes_part() -> None:
    run(
        TRAINING
        + """
# The last replica has nothing to do in each step: 24 rows in parts of 5.
losses, weights = plain()
X, Y = X[:, :21], Y[:, :21]
found = train([f"gpu:{i}" for i in range(8)])                  # parts of 3, the last one empty
one = train(["gpu:0"])
assert np.allclose(found[0], one[0], rtol=1e-5)
""",
        "8:16MiB",
    )
