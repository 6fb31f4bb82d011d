"""Generators: random numbers with a state of one's own."""

from typing import Any, Final

import numpy as np

from allotment.dtypes import float32, uint64
from allotment.ops.arguments import number_argument, numbers_argument
from allotment.ops.draws import Source
from allotment.ops.seeds import generator_of
from allotment.ops.stateless import normal_from, truncated_normal_from, uniform_from
from allotment.tensor import EagerTensor

_ALGORITHMS: Final = ("philox", "threefry", "auto_select")


class Generator:
    """Draws random numbers from a state of its own, whatever ``set_seed`` says. As ``tf.random.Generator``.

    Threads may share one. The numbers are not TensorFlow's for the same seed, and the algorithm is NumPy's.
    """

    def __init__(self, source: Source) -> None:
        self._source = source

    @classmethod
    def from_seed(cls, seed: Any, alg: Any = None) -> "Generator":
        """Return a generator that starts where every one with this seed does.

        Raises:
            TypeError: Not whole numbers.
            ValueError: There is no such algorithm.
        """
        _check_algorithm(alg)
        return cls(generator_of(*numbers_argument(seed, "seed")))

    @classmethod
    def from_non_deterministic_state(cls, alg: Any = None) -> "Generator":
        """Return a generator that starts somewhere else each time."""
        _check_algorithm(alg)
        return cls(np.random.default_rng())

    def reset_from_seed(self, seed: Any) -> None:
        """Start again where every generator with this seed does."""
        self._source = generator_of(*numbers_argument(seed, "seed"))

    def split(self, count: Any = 1) -> list["Generator"]:
        """Return generators whose numbers have nothing to do with each other's or this one's."""
        seeds = self._source.integers(0, 2**63, (number_argument(count, "count"), 2))
        return [Generator(generator_of(*seed)) for seed in seeds.tolist()]

    def uniform(
        self,
        shape: Any,
        minval: Any = 0,
        maxval: Any = None,
        dtype: Any = float32,
        name: str | None = None,
    ) -> EagerTensor:
        """Draw numbers that are all as likely, from ``minval`` up to, but not including, ``maxval``.

        Raises:
            ValueError: Integers with only one bound.
        """
        return uniform_from(self._source, shape, minval, maxval, dtype, name)

    def uniform_full_int(self, shape: Any, dtype: Any = uint64, name: str | None = None) -> EagerTensor:
        """Draw integers from all that a type has."""
        return uniform_from(self._source, shape, None, None, dtype, name)

    def normal(
        self,
        shape: Any,
        mean: Any = 0.0,
        stddev: Any = 1.0,
        dtype: Any = float32,
        name: str | None = None,
    ) -> EagerTensor:
        """Draw normal numbers."""
        return normal_from(self._source, shape, mean, stddev, dtype, name)

    def truncated_normal(
        self,
        shape: Any,
        mean: Any = 0.0,
        stddev: Any = 1.0,
        dtype: Any = float32,
        name: str | None = None,
    ) -> EagerTensor:
        """Draw normal numbers at most two standard deviations from the mean."""
        return truncated_normal_from(self._source, shape, mean, stddev, dtype, name)


def _check_algorithm(alg: Any) -> None:
    if isinstance(alg, str) and alg not in _ALGORITHMS:
        raise ValueError(
            f"Argument `alg` got unsupported value {alg}. Supported values are philox for the Philox algorithm, "
            "threefry for the ThreeFry algorithm, and auto_select for auto-selection."
        )


_global: list[Generator] = []


def get_global_generator() -> Generator:
    """Return the generator of the process, made when it is first asked for."""
    if not _global:
        _global.append(Generator.from_non_deterministic_state())
    return _global[0]


def set_global_generator(generator: Generator) -> None:
    """Make a generator that of the process."""
    _global[:] = [generator]


__all__ = ["Generator", "get_global_generator", "set_global_generator"]
