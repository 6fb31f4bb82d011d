"""Helper functions for generated programs: run a call eagerly, with gradients or in a graph."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from keras_tools import KerasTools
from operands import operand


class Helpers:
    """Helper functions bound to one package: ``tf``, and ``v1`` for its ``compat.v1``."""

    def __init__(self, tf: Any, v1: Any) -> None:
        self._tf, self._v1 = tf, v1

    def names(self) -> dict[str, Any]:
        """Return the global names of a generated program."""
        return {
            "tf": self._tf,
            "v1": self._v1,
            "np": np,
            "operand": operand,
            "eager": self.eager,
            "gradients": self.gradients,
            "second_gradients": self.second_gradients,
            "in_graph": self.in_graph,
            "graph_gradients": self.graph_gradients,
            "static": self.static,
            "elements": self.elements,
            "described": self.described,
            "keras_tools": lambda: KerasTools(self._tf),
            "rebuilt": self.rebuilt,
        }

    def eager(self, function: Callable[..., Any], *xs: Any) -> Any:
        """Convert the arrays to tensors and call the function eagerly."""
        return function(*map(self._tensor, xs))

    def gradients(self, function: Callable[..., Any], *xs: Any, seed: int = 0, zero: bool = False) -> Any:
        """Return the results, and the gradient of each floating operand for random output gradients."""
        tensors = [self._tensor(x) for x in xs]
        watched = [each for each in tensors if self._is_floating(each)]
        with self._tf.GradientTape() as tape:
            for each in watched:
                tape.watch(each)
            made = function(*tensors)
        targets = [each for each in self._flat(made) if self._is_floating(each)]
        return made, tape.gradient(targets, watched, self._upstream(targets, seed, zero))

    def second_gradients(self, function: Callable[..., Any], *xs: Any, seed: int = 0) -> Any:
        """Return the first and second gradients of each floating operand."""
        tensors = [self._tensor(x) for x in xs]
        watched = [each for each in tensors if self._is_floating(each)]
        with self._tf.GradientTape() as outer:
            for each in watched:
                outer.watch(each)
            with self._tf.GradientTape() as inner:
                for each in watched:
                    inner.watch(each)
                made = function(*tensors)
                targets = [each for each in self._flat(made) if self._is_floating(each)]
            first = inner.gradient(targets, watched, self._upstream(targets, seed, zero=False))
        connected = [each for each in first if each is not None]
        connected = [self._tf.convert_to_tensor(each) for each in connected]
        return first, outer.gradient(connected, watched, self._upstream(connected, seed + 1, zero=False))

    def in_graph(self, function: Callable[..., Any], *xs: Any, shapes: Sequence[Any] = ()) -> Any:
        """Call the function in a graph with placeholders; return the results' static shapes and values.

        Args:
            function: The function.
            *xs: The arrays to feed.
            shapes: Static shapes of the placeholders; by default those of the arrays.
        """
        with self._v1.Graph().as_default():
            fed = self._placeholders(xs, shapes)
            made = self._flat(function(*(each for each, _ in fed)))
            static = [self.described(each) for each in made]
            with self._v1.Session() as session:
                return static, session.run(list(made), dict(fed))

    def static(self, function: Callable[..., Any]) -> Any:
        """Return types and static shapes of the results in a graph, without running it."""
        with self._v1.Graph().as_default():
            return self.described(self._flat(function()))

    def graph_gradients(
        self, function: Callable[..., Any], *xs: Any, shapes: Sequence[Any] = (), seed: int = 0
    ) -> Any:
        """Return which operands have a gradient, and the gradients, computed in a graph with placeholders."""
        with self._v1.Graph().as_default():
            fed = self._placeholders(xs, shapes)
            sources = [each for each, _ in fed if self._is_floating(each)]
            made = self._flat(function(*(each for each, _ in fed)))
            targets = [each for each in made if self._is_floating(each)]
            with self._v1.Session() as session:
                values = session.run(targets, dict(fed))
            upstream = [
                self._tf.constant(operand(value.dtype.name, value.shape, "ordinary", seed + i))
                for i, value in enumerate(map(np.asarray, values))
            ]
            found = self._v1.gradients(targets, sources, upstream)
            connected = [each for each in found if each is not None]
            with self._v1.Session() as session:
                return [each is not None for each in found], session.run(connected, dict(fed))

    def elements(self, dataset: Any, following: Callable[[Any], Any] = next) -> list[Any]:
        """Return the first elements of a data set, and names of errors in the places of those that cannot be made."""
        iterator = iter(dataset)
        made: list[Any] = []
        for _ in range(25):
            try:
                made.append(following(iterator))
            except StopIteration:
                made.append("end")
            except self._tf.errors.OpError as error:
                made.append(type(error).__name__)
        return made

    def described(self, value: Any) -> Any:
        """Return type and static shape of each tensor of a structure."""
        if isinstance(value, (list, tuple)):
            return [self.described(each) for each in value]
        return value.dtype, value.shape

    def rebuilt(self, values: Any, left: Any, right: Any = None) -> Any:
        """Return the values of a decomposition, and the product of its factors, as its vectors' signs are arbitrary."""
        tf = self._tf
        scaled = left * tf.cast(values, left.dtype)[..., None, :]
        return values, tf.matmul(scaled, left if right is None else right, adjoint_b=True)

    def _placeholders(self, xs: Sequence[Any], shapes: Sequence[Any]) -> list[tuple[Any, Any]]:
        made = []
        for index, x in enumerate(xs):
            array = np.asarray(x)
            dtype = self._tf.string if array.dtype == object else self._tf.as_dtype(array.dtype)
            shape = shapes[index] if index < len(shapes) else array.shape
            made.append((self._v1.placeholder(dtype, shape), array))
        return made

    def _tensor(self, x: Any) -> Any:
        if isinstance(x, np.ndarray) and x.dtype == object:
            return self._tf.constant(x, self._tf.string, shape=x.shape)
        return self._tf.constant(x)

    def _is_floating(self, tensor: Any) -> bool:
        return bool(tensor.dtype.is_floating or tensor.dtype.is_complex)

    def _flat(self, made: Any) -> list[Any]:
        if isinstance(made, (list, tuple)):
            return [leaf for each in made for leaf in self._flat(each)]
        return [] if made is None else [made]

    def _upstream(self, targets: Sequence[Any], seed: int, zero: bool) -> list[Any]:
        made = []
        for index, each in enumerate(targets):
            weights = operand(each.dtype.name, tuple(each.shape), "ordinary", 1000 + seed + index)
            made.append(self._tf.constant(weights * 0 if zero else weights))
        return made
