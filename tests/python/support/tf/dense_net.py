"""Reference implementation in NumPy of a network with two dense layers and its training, to compare Keras with."""

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[Any]

#: Adam's decay factors, rounded to float32 as in Keras' bias correction.
BETAS = float(np.float32(0.9)), float(np.float32(0.999))


@dataclass
class DenseNet:
    """``softmax(relu(x a + b) c + d)`` with the cross entropy as its loss, in double precision.

    ``rule`` is ``"sgd"``, ``"momentum"`` or ``"adam"``.
    """

    weights: list[Array]
    rule: str
    rate: float
    steps: int = 0
    first: list[Array] = field(default_factory=list)
    second: list[Array] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.weights = [each.astype(np.float64) for each in self.weights]
        self.first = [np.zeros_like(each) for each in self.weights]
        self.second = [np.zeros_like(each) for each in self.weights]

    def probabilities(self, x: Array) -> tuple[Array, Array]:
        """Return the output of the hidden layer and the probabilities of the classes."""
        a, b, c, d = self.weights
        hidden = np.maximum(x @ a + b, 0)
        logits = hidden @ c + d
        grown = np.exp(logits - logits.max(1, keepdims=True))
        return hidden, grown / grown.sum(1, keepdims=True)

    def loss(self, x: Array, y: Array) -> float:
        """Return the mean cross entropy."""
        return float(-np.log(self.probabilities(x)[1][np.arange(len(y)), y]).mean())

    def accuracy(self, x: Array, y: Array) -> float:
        """Return the share of samples whose most probable class is the label."""
        return float((self.probabilities(x)[1].argmax(1) == y).mean())

    def gradients(self, x: Array, y: Array) -> list[Array]:
        """Return the derivatives of the loss with respect to the weights."""
        hidden, shares = self.probabilities(x)
        error = shares.copy()
        error[np.arange(len(y)), y] -= 1
        error /= len(y)
        back = (error @ self.weights[2].T) * (hidden > 0)
        return [x.T @ back, back.sum(0), hidden.T @ error, error.sum(0)]

    def step(self, x: Array, y: Array) -> None:
        """Update the weights with one batch."""
        self.steps += 1
        for index, gradient in enumerate(self.gradients(x, y)):
            self.weights[index] = self.weights[index] - self._change(index, gradient)

    def _change(self, index: int, gradient: Array) -> Array:
        if self.rule == "sgd":
            return self.rate * gradient
        if self.rule == "momentum":
            self.first[index] = 0.9 * self.first[index] + self.rate * gradient
            return self.first[index]
        self.first[index] = 0.9 * self.first[index] + 0.1 * gradient
        self.second[index] = 0.999 * self.second[index] + 0.001 * gradient**2
        mean = self.first[index] / (1 - BETAS[0] ** self.steps)
        root = np.sqrt(self.second[index] / (1 - BETAS[1] ** self.steps))
        # Keras adds epsilon to the root before the bias correction.
        change: Array = self.rate * mean / (root + 1e-7 / np.sqrt(1 - BETAS[1] ** self.steps))
        return change


def classes_of_points(samples: int, seed: int = 0) -> tuple[Array, Array]:
    """Return random points around three centres, shape (samples, 4), and their classes, shape (samples,)."""
    draw = np.random.default_rng(seed)
    y = draw.integers(0, 3, samples)
    centres = np.array([[0, 0, 1, 1], [1, 1, 0, 0], [0, 1, 0, 1]])
    return (centres[y] + 0.3 * draw.standard_normal((samples, 4))).astype(np.float32), y
