"""Programs that train models on one device and on several, and compare them."""

from support.devices import run_on_gpus

SETUP = """
from contextlib import nullcontext
import numpy as np
import allotment.tf as tf
from allotment.devices.context import context
k, L = tf.keras, tf.keras.layers
draw = np.random.default_rng(0)
x = draw.standard_normal((26, 6, 6, 2)).astype(np.float32)
y = draw.integers(0, 3, 26)
ALL = (0, 1, 2, 4)

def strategy_of(count):
    return tf.distribute.MirroredStrategy([f"GPU:{i}" for i in range(count)]) if count else None

def trained(count, make, optimizer, **given):
    # The last of the batches of 8 has 2 samples: not enough for 4 replicas.
    strategy = strategy_of(count)
    with strategy.scope() if strategy else nullcontext():
        model = make()
        metrics = ["accuracy", *(each() for each in given.get("metrics", ()))]
        model.compile(optimizer(), "sparse_categorical_crossentropy", metrics=metrics)
    if model.built:
        values = np.random.default_rng(1)
        model.set_weights([values.uniform(0.1, 0.4, each.shape) for each in model.get_weights()])
    history = model.fit(x, y, batch_size=8, epochs=2, verbose=0, shuffle=False).history
    return model, history

def agree(make, optimizer=lambda: k.optimizers.SGD(0.05), counts=ALL, **given):
    wanted = None
    for count in counts:
        model, history = trained(count, make, optimizer, **given)
        found = [*history.values(), *model.get_weights()]
        wanted = wanted or found
        for one, other in zip(found, wanted, strict=True):
            np.testing.assert_allclose(one, other, rtol=2e-5, atol=2e-6)
    return model, history

def held():
    # Without a GIL what other threads have made is freed by collections, one level of it by each.
    import gc, sysconfig
    for _ in range(4 if sysconfig.get_config_var("Py_GIL_DISABLED") else 0):
        gc.collect()
    return [device.pool.stats().in_use for device in context().ready().devices if device.pool is not None]
"""


def run(program: str, gpus: str = "4:64MiB") -> str:
    """Run a program on simulated GPUs and return what it wrote to standard output."""
    # Replicas that share two cores do not take them from each other.
    done = run_on_gpus(gpus, SETUP + program, OPENBLAS_NUM_THREADS="1")
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    return done.stdout
