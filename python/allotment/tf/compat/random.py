"""``tf.compat.v1.random``: ``tf.random`` with TensorFlow 1's names beside."""

from typing import Any, Final

from allotment.tf import random
from allotment.tf.compat.signatures import as_in_1
from allotment.tf.names.missing_names import missing_name_error


def multinomial(
    logits: Any, num_samples: Any, seed: Any = None, name: str | None = None, output_dtype: Any = None
) -> Any:
    """Draw numbers of columns by weight. As ``tf.compat.v1.multinomial``, which is ``tf.random.categorical`` today."""
    return random.categorical(logits, num_samples, output_dtype, seed, name)


_FUNCTIONS: Final = {
    "multinomial": multinomial,
    "random_normal": random.normal,
    "random_uniform": random.uniform,
    "set_random_seed": random.set_seed,
}


def __getattr__(name: str) -> Any:
    if name in _FUNCTIONS:
        return _FUNCTIONS[name]
    if name in random.__all__:
        return as_in_1(name, getattr(random, name))
    raise missing_name_error("allotment.tf.compat.v1.random", name, __dir__())


def __dir__() -> list[str]:
    return sorted({*random.__all__, *_FUNCTIONS})
