"""Generators: random numbers with a state of one's own."""

import copy
from typing import Any, Final

import numpy as np

from allotment.tf.ops.arguments.integers import number_argument, numbers_argument
from allotment.tf.ops.random.draws import Source
from allotment.tf.ops.random.seeds import generator_of
from allotment.tf.ops.random.stateless import normal_from, truncated_normal_from, uniform_from
from allotment.tf.tensors.dtype import float32, uint64
from allotment.tf.tensors.tensor import EagerTensor

_ALGORITHMS: Final = ("philox", "threefry", "auto_select")


class Generator:
    """Draws random numbers from a state of its own, whatever ``set_seed`` says. As ``tf.random.Generator``.

    Threads may share one. The numbers are not TensorFlow's for the same seed, and the algorithm is NumPy's.

    Args:
        copy_from: A generator to start where it is now.
        state: Numbers that decide where to start, with ``alg``.
        alg: The name of an algorithm, which has no effect.

    Raises:
        AssertionError: Both a generator and a state are given, or none, or only half of the state.
    """

    _source: Source

    def __init__(self, copy_from: "Generator | None" = None, state: Any = None, alg: Any = None) -> None:
        if (copy_from is None) == (state is None and alg is None):
            raise AssertionError("give either a generator to copy, or a state and an algorithm")
        if copy_from is not None:
            self._source = copy.deepcopy(copy_from._source)
            return
        if state is None or alg is None:
            raise AssertionError("a state needs an algorithm, and an algorithm a state")
        _check_algorithm(alg)
        self._source = generator_of(*numbers_argument(state, "state"))

    @classmethod
    def _of(cls, source: Source) -> "Generator":
        made = cls.__new__(cls)
        made._source = source
        return made

    @classmethod
    def from_state(cls, state: Any, alg: Any) -> "Generator":
        """Return a generator that starts where every one with this state does."""
        return cls(state=state, alg=alg)

    @classmethod
    def from_seed(cls, seed: Any, alg: Any = None) -> "Generator":
        """Return a generator that starts where every one with this seed does.

        Raises:
            TypeError: Not whole numbers.
            ValueError: There is no such algorithm.
        """
        _check_algorithm(alg)
        return cls._of(generator_of(*numbers_argument(seed, "seed")))

    @classmethod
    def from_non_deterministic_state(cls, alg: Any = None) -> "Generator":
        """Return a generator that starts somewhere else each time."""
        _check_algorithm(alg)
        return cls._of(np.random.default_rng())

    def reset_from_seed(self, seed: Any) -> None:
        """Start again where every generator with this seed does."""
        self._source = generator_of(*numbers_argument(seed, "seed"))

    def split(self, count: Any = 1) -> list["Generator"]:
        """Return generators whose numbers have nothing to do with each other's or this one's."""
        seeds = self._source.integers(0, 2**63, (number_argument(count, "count"), 2))
        return [Generator._of(generator_of(*seed)) for seed in seeds.tolist()]

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
