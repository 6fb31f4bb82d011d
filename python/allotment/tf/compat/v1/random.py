"""``tf.compat.v1.random``: ``tf.random`` with further names of TensorFlow 1."""

from typing import Any, Final

from allotment.tf import random
from allotment.tf.compat.functions.namespace import extend_namespace
from allotment.tf.names.missing_names import refuse_other_names


def multinomial(
    logits: Any, num_samples: Any, seed: Any = None, name: str | None = None, output_dtype: Any = None
) -> Any:
    """Draw classes at random by logits. As ``tf.compat.v1.multinomial``, which is ``tf.random.categorical`` today."""
    return random.categorical(logits, num_samples, output_dtype, seed, name)


_FUNCTIONS: Final = {
    "multinomial": multinomial,
    "random_normal": random.normal,
    "random_uniform": random.uniform,
    "set_random_seed": random.set_seed,
}

__getattr__, __dir__ = extend_namespace(__name__, random, _FUNCTIONS)

refuse_other_names(__name__)
