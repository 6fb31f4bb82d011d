"""Recipes for static shapes in graphs: chains of operations with known, unknown and large lengths."""

import random
from collections.abc import Callable, Sequence

from programs import Call, Family, Tolerance

FAMILY = Family()

#: A chain: an expression over ``x0`` (and ``x1``), and the element type and shape of each operand.
Chain = tuple[str, Sequence[tuple[str, tuple[int, ...]]]]

_ROWS = ("float32", (12, 20))
_IMAGES = ("float32", (3, 8, 8, 2))
_FLAT_IMAGES = ("float32", (2, 784))
_FILTERS = "tf.ones([3, 3, 2, 4])"

#: Slices of a batch whose length may be statically unknown.
SLICES: Sequence[Chain] = [
    (f"x0{index}", [_ROWS])
    for index in (
        *("[4:8]", "[4:]", "[:-4]", "[-4:]", "[:4, 3:]", "[::2]", "[1::3, ::-1]", "[5]", "[-1]", "[..., 2]"),
        *("[:, tf.newaxis]", "[:, 5:5]", "[8:4]", "[tf.shape(x0)[0] // 2:]", "[:tf.shape(x0)[0] // 2]"),
        *("[tf.shape(x0)[0] - 1]", "[:, :tf.shape(x0)[1] - 3]", "[tf.constant(2):]", "[..., :3]", "[0:0]"),
    )
] + [
    ("tf.slice(x0, [4, 0], [8, -1])", [_ROWS]),
    ("tf.slice(x0, [4, 0], [-1, 20])", [_ROWS]),
    ("tf.slice(x0, [tf.shape(x0)[0] - 2, 0], [2, -1])", [_ROWS]),
    ("tf.slice(x0, [0, 2], [tf.shape(x0)[0], 5])", [_ROWS]),
    ("tf.slice(x0, x1, [2, 3])", [_ROWS, ("int32", (2,))]),
    ("tf.strided_slice(x0, [1, 2], [tf.shape(x0)[0], 9], [2, 3])", [_ROWS]),
    ("tf.split(x0, 4)", [_ROWS]),
    ("tf.split(x0, [4, 8])", [_ROWS]),
    ("tf.split(x0, [4, -1])", [_ROWS]),
    ("tf.split(x0, [5, -1, 3], axis=1)", [_ROWS]),
    ("tf.split(x0, [tf.shape(x0)[0] - 3, 3])", [_ROWS]),
    ("tf.split(x0, 5, axis=-1)", [_ROWS]),
    ("tf.unstack(x0, axis=1)", [("float32", (6, 3))]),
    ("tf.unstack(x0, 12)", [_ROWS]),
]

#: Operations that take a shape as an operand.
ARRANGED: Sequence[Chain] = [
    ("tf.reshape(x0, [-1, 28, 28, 1])", [_FLAT_IMAGES]),
    ("tf.reshape(x0, [tf.shape(x0)[0], 28, 28, 1])", [_FLAT_IMAGES]),
    ("tf.reshape(x0, tf.stack([tf.shape(x0)[0], 28, 28, 1]))", [_FLAT_IMAGES]),
    ("tf.reshape(x0, tf.concat([tf.shape(x0)[:1], [28, 28]], 0))", [_FLAT_IMAGES]),
    ("tf.reshape(x0, [tf.shape(x0)[0], -1])", [_IMAGES]),
    ("tf.reshape(x0, [-1, x0.shape[-1]])", [_IMAGES]),
    ("tf.reshape(x0, [-1, tf.shape(x0)[-1]])", [_IMAGES]),
    ("tf.reshape(x0, [tf.shape(x0)[0] * tf.shape(x0)[1], -1])", [_IMAGES]),
    ("tf.reshape(x0, x1 * 0 + [20, 12])", [_ROWS, ("int32", (2,))]),
    ("tf.ones([tf.shape(x0)[0], 3])", [_ROWS]),
    ("tf.zeros(tf.shape(x0)[:1])", [_ROWS]),
    ("tf.zeros_like(x0, tf.int32)", [_ROWS]),
    ("tf.fill([2, tf.shape(x0)[0]], 7.)", [_ROWS]),
    ("tf.fill(tf.shape(x0), 7)", [_ROWS]),
    ("tf.eye(tf.shape(x0)[0], 5)", [_ROWS]),
    ("tf.eye(tf.shape(x0)[1], batch_shape=[2])", [_ROWS]),
    ("tf.range(tf.shape(x0)[0])", [_ROWS]),
    ("tf.range(tf.shape(x0)[1], 2, -3)", [_ROWS]),
    ("tf.linspace(0., 1., tf.shape(x0)[0])", [_ROWS]),
    ("tf.one_hot([1, 2], tf.shape(x0)[0])", [_ROWS]),
    ("tf.sequence_mask([1, 3], tf.shape(x0)[0])", [_ROWS]),
    ("tf.broadcast_to(x0[:1], [tf.shape(x0)[0], 20])", [_ROWS]),
    ("tf.broadcast_to(x0, tf.shape(tf.zeros([4, 12, 20])))", [_ROWS]),
    ("tf.tile(x0, [2, 3])", [_ROWS]),
    ("tf.tile(x0[:1], [tf.shape(x0)[0], 1])", [_ROWS]),
    ("tf.tile(x0, x1)", [_ROWS, ("int32", (2,))]),
    ("tf.repeat(x0, 3, axis=0)", [_ROWS]),
    ("tf.repeat(tf.reshape(x0, [-1, 20]), tf.range(tf.shape(x0)[0]), axis=0)", [_ROWS]),
    ("tf.pad(x0, [[1, 2], [0, 3]])", [_ROWS]),
    ("tf.pad(x0, [[tf.shape(x0)[0], 0], [1, 1]])", [_ROWS]),
    ("tf.pad(x0, [[1, 2], [2, 3]], 'REFLECT')", [_ROWS]),
    ("tf.transpose(x0, [1, 0])", [_ROWS]),
    ("tf.transpose(x0, tf.argsort(x1))", [_ROWS, ("int32", (2,))]),
    ("tf.transpose(x0, tf.range(tf.rank(x0))[::-1])", [_ROWS]),
    ("tf.expand_dims(x0, tf.rank(x0) - 1)", [_ROWS]),
    ("tf.squeeze(x0[:, :1], 1)", [_ROWS]),
    ("tf.squeeze(x0[:, :1])", [_ROWS]),
    ("tf.scatter_nd([[1], [3]], x0[:2], tf.shape(x0))", [_ROWS]),
    ("tf.boolean_mask(x0, x0[:, 0] > 0)", [_ROWS]),
    ("tf.gather(x0, [0, 2], axis=1)", [_ROWS]),
    ("tf.gather(x0, tf.where(x0[:, 0] > 0)[:, 0])", [_ROWS]),
    ("tf.nn.top_k(x0, tf.shape(x0)[1] // 2)", [_ROWS]),
    ("tf.math.unsorted_segment_sum(x0, tf.range(12) % 3, tf.constant(3) + 1)", [_ROWS]),
]

#: Operations on several tensors.
JOINED: Sequence[Chain] = [
    ("tf.concat([x0, x0], 0)", [_ROWS]),
    ("tf.concat([x0, x1], 1)", [_ROWS, ("float32", (12, 3))]),
    ("tf.concat([x0[:4], x0[4:]], 0)", [_ROWS]),
    ("tf.concat([x0, tf.zeros([tf.shape(x0)[0], 2])], -1)", [_ROWS]),
    ("tf.stack([x0, x0], 1)", [_ROWS]),
    ("tf.stack([tf.shape(x0)[0], 3])", [_ROWS]),
    ("tf.meshgrid(tf.range(tf.shape(x0)[0]), tf.range(3))", [_ROWS]),
    ("tf.where(x0 > 0, x0, 0.)", [_ROWS]),
    ("x0 + x1", [_ROWS, ("float32", (20,))]),
    ("x0 * tf.ones([tf.shape(x0)[0], 1])", [_ROWS]),
    ("tf.matmul(x0, tf.ones([20, 5]))", [_ROWS]),
    ("tf.matmul(x0, x1, transpose_b=True)", [_ROWS, ("float32", (12, 20))]),
    ("tf.tensordot(x0, tf.ones([20, 2, 3]), 1)", [_ROWS]),
    ("tf.tensordot(x0, tf.ones([2, 20]), [[1], [1]])", [_ROWS]),
    ("tf.einsum('ij,jk->ik', x0, tf.ones([20, 4]))", [_ROWS]),
    ("tf.linalg.matvec(x0, x0[0])", [_ROWS]),
]

#: Operations of neural networks.
LAYERS: Sequence[Chain] = [
    (f"tf.nn.conv2d(x0, {_FILTERS}, 1, 'SAME')", [_IMAGES]),
    (f"tf.nn.conv2d(x0, {_FILTERS}, 2, 'VALID')", [_IMAGES]),
    (f"tf.nn.conv2d(x0, {_FILTERS}, [1, 2, 3, 1], 'SAME')", [_IMAGES]),
    ("tf.nn.conv2d(x0, x1, 1, 'SAME')", [_IMAGES, ("float32", (3, 3, 2, 4))]),
    ("tf.nn.max_pool2d(x0, 2, 2, 'SAME')", [_IMAGES]),
    ("tf.nn.avg_pool2d(x0, 3, 2, 'VALID')", [_IMAGES]),
    ("tf.nn.depthwise_conv2d(x0, tf.ones([3, 3, 2, 2]), [1, 1, 1, 1], 'SAME')", [_IMAGES]),
    (
        "tf.nn.conv2d_transpose(x0, tf.ones([2, 2, 5, 2]), [tf.shape(x0)[0], 16, 16, 5], 2)",
        [_IMAGES],
    ),
    (
        "tf.nn.conv2d_transpose(x0, tf.ones([2, 2, 5, 2]), tf.stack([tf.shape(x0)[0], 16, 16, 5]), 2)",
        [_IMAGES],
    ),
    (
        f"tf.matmul(tf.reshape(tf.nn.max_pool2d(tf.nn.relu(tf.nn.conv2d(x0, {_FILTERS}, 1, 'SAME')), 2, 2, 'SAME'), "
        "[-1, 4 * 4 * 4]), tf.ones([64, 10]))",
        [_IMAGES],
    ),
    (
        "tf.nn.max_pool2d(tf.nn.conv2d(tf.reshape(x0, [-1, 28, 28, 1]), tf.ones([5, 5, 1, 3]), 1, 'SAME'), "
        "2, 2, 'SAME')",
        [_FLAT_IMAGES],
    ),
    ("tf.nn.moments(x0, [0])", [_ROWS]),
    ("tf.nn.moments(x0, [0, 1, 2], keepdims=True)", [_IMAGES]),
    ("tf.nn.bias_add(x0, tf.ones([2]))", [_IMAGES]),
    ("tf.nn.softmax(x0)", [_ROWS]),
    (
        "tf.nn.sparse_softmax_cross_entropy_with_logits(labels=tf.zeros(tf.shape(x0)[:1], tf.int32), logits=x0)",
        [_ROWS],
    ),
    ("tf.nn.softmax_cross_entropy_with_logits(labels=tf.one_hot(tf.argmax(x0, 1), 20), logits=x0)", [_ROWS]),
    ("tf.reduce_mean(x0, x1 % 2)", [_ROWS, ("int32", ())]),
    ("tf.reduce_sum(x0, tf.range(1, tf.rank(x0)))", [_ROWS]),
    ("tf.reduce_max(x0, -1, keepdims=True)", [_ROWS]),
    ("tf.argmax(x0, 1)", [_ROWS]),
    ("tf.cumsum(x0, tf.rank(x0) - 1)", [_ROWS]),
    ("tf.nn.embedding_lookup(tf.ones([100, 7]), tf.argmax(x0, 1))", [_ROWS]),
]

#: Operations on large operands, which are not run: only their static shapes are compared.
LARGE: Sequence[str] = [
    "tf.split(tf.zeros([60000, 784]), 10)",
    "tf.split(tf.zeros([600, 784]), [100, -1, 200])",
    "tf.unstack(tf.zeros([3, 60000]))",
    "tf.nn.conv2d(tf.zeros([500, 224, 224, 3]), tf.zeros([7, 7, 3, 64]), 2, 'SAME')",
    "tf.nn.max_pool2d(tf.zeros([500, 113, 113, 64]), 3, 2, 'VALID')",
    "tf.pad(tf.zeros([60000, 28, 28, 1]), [[0, 0], [2, 2], [2, 2], [0, 0]])",
    "tf.tile(tf.zeros([1, 5000]), [60000, 2])",
    "tf.concat([tf.zeros([60000, 7]), tf.zeros([60000, 9])], 1)",
    "tf.slice(tf.zeros([60000, 20]), [50000, 0], [10000, -1])",
    "tf.zeros([60000, 20])[50000:, ::3]",
    "tf.transpose(tf.zeros([60000, 28, 28]), [2, 0, 1])",
    "tf.reshape(tf.zeros([60000, 784]), [-1, 28, 28, 1])",
    "tf.matmul(tf.zeros([60000, 784]), tf.zeros([784, 1000]))",
    "tf.one_hot(tf.zeros([60000], tf.int32), 1000)",
    "tf.gather(tf.zeros([50000, 300]), tf.zeros([128, 35], tf.int32))",
    "tf.range(1000000)",
    "tf.reduce_mean(tf.zeros([60000, 28, 28]), [1, 2])",
    "tf.nn.conv2d_transpose(tf.zeros([500, 56, 56, 64]), tf.zeros([4, 4, 3, 64]), [500, 112, 112, 3], 2)",
]


def _recipe(chains: Sequence[Chain]) -> Callable[[str, random.Random], Call]:
    def recipe(function: str, rng: random.Random) -> Call:
        expression, operands = rng.choice(list(chains))
        kinds = ["index" if dtype == "int32" else "ordinary" for dtype, _ in operands]
        made = [(dtype, shape, kind) for (dtype, shape), kind in zip(operands, kinds, strict=True)]
        modes = ("in_graph", "graph_gradients")
        return Call(expression, made, Tolerance(of_largest=64), modes)

    return recipe


FAMILY.of("graph.slices")(_recipe(SLICES))
FAMILY.of("graph.arranged")(_recipe(ARRANGED))
FAMILY.of("graph.joined")(_recipe(JOINED))
FAMILY.of("graph.layers")(_recipe(LAYERS))


@FAMILY.of("graph.large")
def large(function: str, rng: random.Random) -> Call:
    return Call(f"static(lambda: {rng.choice(list(LARGE))})", modes=())
