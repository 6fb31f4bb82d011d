"""Train a small convolutional network on images of digits, on several simulated GPUs at once.

Each GPU holds a copy of the network and processes its part of every batch. The table at the end shows the memory used
on each GPU.

    python examples/data_parallel_digits.py --replicas 4 --epochs 8
"""

import click
import numpy as np
from rich.console import Console
from rich.table import Table
from sklearn.datasets import load_digits

import allotment
import allotment.tf as tf
from allotment.tf import keras
from allotment.tf.keras import layers

#: Samples in a batch of all replicas together.
BATCH = 64
#: Memory of each simulated GPU.
MEMORY = "16MiB"


def digits() -> tuple[tuple[np.ndarray, np.ndarray], tuple[np.ndarray, np.ndarray]]:
    """Load images of digits, shape (n, 8, 8, 1), and their labels, and split them into training (4/5) and test data."""
    data = load_digits()
    images = (data.images[..., None] / 16).astype(np.float32)
    order = np.random.default_rng(0).permutation(len(images))
    train, test = np.split(order, [len(order) * 4 // 5])
    return (images[train], data.target[train]), (images[test], data.target[test])


def net() -> keras.Model:
    """Create a model with two convolutions and two dense layers."""
    inputs = keras.Input(shape=(8, 8, 1))
    x = layers.Conv2D(16, 3, activation="relu", padding="same")(inputs)
    x = layers.MaxPooling2D()(x)
    x = layers.Conv2D(32, 3, activation="relu", padding="same")(x)
    x = layers.Flatten()(x)
    x = layers.Dense(64, activation="relu")(x)
    return keras.Model(inputs, layers.Dense(10)(x), name="digits")


def memory() -> Table:
    """Create a table of the current and peak memory of each GPU."""
    table = Table("device", "now", "at most", title="Memory")
    for device in tf.config.list_logical_devices("GPU"):
        figures = tf.config.experimental.get_memory_info(device.name.removeprefix("/device:"))
        table.add_row(device.name, *(f"{figures[name] / 2**20:.2f} MiB" for name in ("current", "peak")))
    return table


@click.command()
@click.option("--replicas", default=4, show_default=True, type=click.IntRange(1, 64), help="Simulated GPUs.")
@click.option(
    "--epochs", default=8, show_default=True, type=click.IntRange(1), help="Passes over the training data."
)
def main(replicas: int, epochs: int) -> None:
    """Train on images of digits, on several simulated GPUs at once."""
    allotment.testing.simulate_gpus(f"{replicas}:{MEMORY}")
    tf.random.set_seed(0)
    train, test = digits()
    strategy = tf.distribute.MirroredStrategy()
    with strategy.scope():
        model = net()
        model.compile(
            optimizer=keras.optimizers.Adam(0.003),
            loss=keras.losses.SparseCategoricalCrossentropy(from_logits=True),
            metrics=["accuracy"],
        )
    model.summary()
    model.fit(*train, batch_size=BATCH, epochs=epochs, verbose=2)
    _, accuracy = model.evaluate(*test, verbose=0)
    console = Console()
    console.print(f"\naccuracy on {len(test[0])} test images: {accuracy:.1%}\n")
    console.print(memory())


if __name__ == "__main__":
    main()
