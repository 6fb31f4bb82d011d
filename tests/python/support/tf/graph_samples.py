"""Graphs of sample calls that together have every operation of the operation table but for those of variables."""

from typing import Any

import allotment.tf as tf
from support.tf import op_samples

v1: Any = tf.compat.v1


def _more(t: dict[str, Any]) -> list[Any]:
    """Calls of operations that no sample has."""
    x, i, n, m = t["x"], t["i"], t["n"], t["m"]
    texts = tf.strings.as_string(i)
    pooled = tf.gradients(tf.nn.max_pool2d(m, 2, 2, "SAME") ** 2, m)
    draw = tf.random
    return [
        *(tf.saturate_cast(x, tf.uint8), tf.bitcast(x, tf.uint8), tf.one_hot(n, 4), tf.one_hot(i, 3, axis=1)),
        *(tf.histogram_fixed_width(x, [0.0, 1.0], 7), tf.histogram_fixed_width_bins(x, [0.0, 1.0], 7)),
        *(tf.math.invert_permutation([1, 0, 2]), tf.searchsorted(x, x), tf.searchsorted(x, x, "right")),
        *(
            tf.sequence_mask(n),
            tf.sequence_mask(i, 5),
            tf.shape_n([x, x]),
            tf.unique(n),
            tf.unique_with_counts(n),
        ),
        *(tf.unravel_index(n, [2, 3]), tf.broadcast_dynamic_shape(tf.shape(x), [1, 1]), tf.where(x > 0.5)),
        *(
            tf.strings.join([texts, texts]),
            tf.strings.length(texts),
            tf.strings.lower(texts),
            tf.strings.upper(texts),
        ),
        *(tf.strings.strip(texts), tf.strings.to_number(texts), tf.strings.substr(texts, 0, 1), texts),
        *(
            tf.strings.reduce_join(texts, 0),
            tf.strings.format("{}", [x]),
        ),
        *(tf.add(texts, texts), tf.timestamp()),
        *(
            draw.categorical(x, 5),
            draw.gamma([2], x),
            draw.poisson([2], x),
            draw.shuffle(x),
            draw.normal([2, 3]),
        ),
        *(draw.uniform([2, 3]), draw.uniform([2], 0, 3, tf.int32), draw.truncated_normal(tf.shape(x))),
        *(draw.split([1, 2], 3), draw.fold_in([1, 2], 3), draw.stateless_categorical(x, 5, [1, 2])),
        *(draw.stateless_uniform([2], [1, 2], None, None, tf.int32), draw.stateless_uniform([2], [1, 2])),
        *(draw.stateless_uniform([2], [1, 2], 0, 9, tf.int32), draw.stateless_normal([2], [1, 2])),
        *(tf.gradients(pooled, m), tf.gradients(tf.random.gamma([2], x), x)),
        *(
            tf.reverse_sequence(x, n, 1),
            tf.rank(x),
            v1.where(n > 0, x, x),
            v1.where(x > 0.5, x, x),
            tf.linalg.band_part(x, 1, 0),
            tf.nn.avg_pool2d(m, 2, 1, "SAME"),
        ),
    ]


def recorded(known: str) -> tuple[Any, dict[Any, Any]]:
    """A graph of all samples whose placeholders know all lengths, ``ranks`` or ``nothing``; and what to feed."""
    eager = op_samples.inputs()
    with tf.Graph().as_default() as graph:
        inputs = {}
        for name, each in eager.items():
            shape = each.shape if known == "all" else [None] * len(each.shape) if known == "ranks" else None
            inputs[name] = v1.placeholder(each.dtype, shape)
        for name, call in op_samples.samples().items():
            # Matrices whose rank is not known have no largest singular value here.
            if (name, known) != ("norm, 2", "nothing"):
                call(inputs)
        _more(inputs)
    return graph, {inputs[name]: each.numpy() for name, each in eager.items()}


__all__ = ["recorded"]
