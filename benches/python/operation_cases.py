"""Child process that times operations of one package: ``python operation_cases.py allotment.tf``.

Each input line contains the name of a case and a number of seconds; the answer is the least and the median CPU time of
a call in microseconds, which excludes other programs on the machine. The file imports only NumPy and the named package.

Longer than 300 lines: one table of cases.
"""

import importlib
import itertools
import sys
from collections.abc import Callable
from statistics import median
from time import process_time
from typing import Any

import numpy as np

MILLION = 1_000_000
#: Calls that take longer are timed one by one, shorter ones many at once.
SECONDS_A_SAMPLE = 2e-3


def cases(tf: Any) -> dict[str, Callable[[], Any]]:
    """Return all cases by name: functions without arguments that call an operation on existing tensors."""
    rng = np.random.default_rng(0)
    f32 = np.float32
    made: dict[str, Callable[[], Any]] = {}

    numbers = rng.normal(size=MILLION).astype(f32)
    x, y = tf.constant(numbers), tf.constant(rng.normal(size=MILLION).astype(f32))
    positive = tf.constant(np.abs(numbers) + f32(0.1))
    unit = tf.constant(rng.uniform(-0.999, 0.999, MILLION).astype(f32))
    share = tf.constant(rng.uniform(0.001, 0.999, MILLION).astype(f32))
    above = tf.constant(np.abs(numbers) + f32(1.1))
    half, double = tf.cast(x, tf.float16), tf.cast(x, tf.float64)
    i, j = (tf.constant(rng.integers(1, 1000, MILLION).astype(np.int32)) for _ in range(2))
    b, c = tf.constant(numbers > 0), tf.constant(rng.random(MILLION) < 0.5)
    bytes_ = tf.constant(rng.integers(0, 256, MILLION).astype(np.uint8))
    m, n = (tf.constant(rng.normal(size=(1000, 1000)).astype(f32)) for _ in range(2))
    cube = tf.constant(rng.normal(size=(100, 100, 100)).astype(f32))
    ascending = tf.sort(x)

    # Element-wise operations.
    for name, operand in {
        "abs": x, "acos": unit, "acosh": above, "asin": unit, "asinh": x, "atan": x, "atanh": unit, "ceil": x,
        "cos": x, "cosh": x, "digamma": positive, "erf": x, "erfc": x, "erfcinv": share, "erfinv": unit, "exp": x,
        "expm1": x, "floor": x, "is_finite": x, "is_inf": x, "is_nan": x, "lgamma": positive, "log": positive,
        "log1p": positive, "log_sigmoid": x, "logical_not": b, "ndtri": share, "negative": x, "reciprocal": positive,
        "rint": x, "round": x, "rsqrt": positive, "sigmoid": x, "sign": x, "sin": x, "sinh": x, "sqrt": positive,
        "square": x, "tan": x, "tanh": x, "zero_fraction": x,
    }.items():  # fmt: skip
        made[name] = _call(getattr(tf.math, name), operand)
    for name in (
        "crelu", "elu", "gelu", "l2_loss", "leaky_relu", "log_softmax", "relu", "relu6", "selu", "silu", "softmax",
        "softplus", "softsign",
    ):  # fmt: skip
        made[name] = _call(getattr(tf.nn, name), x if name not in ("log_softmax", "softmax") else m)
    made["gelu approximate"] = lambda: tf.nn.gelu(x, approximate=True)
    for name in (
        "add", "atan2", "divide", "divide_no_nan", "equal", "floordiv", "floormod", "greater", "greater_equal", "less",
        "less_equal", "maximum", "minimum", "multiply", "multiply_no_nan", "nextafter", "not_equal",
        "squared_difference", "subtract",
    ):  # fmt: skip
        made[name] = _call(getattr(tf.math, name), x, y)
    for name in ("pow", "xdivy", "xlog1py", "xlogy"):
        made[name] = _call(getattr(tf.math, name), positive, y if name == "pow" else positive)
    for name in ("logical_and", "logical_or", "logical_xor"):
        made[name] = _call(getattr(tf.math, name), b, c)
    for name in ("add", "multiply", "floordiv", "floormod", "maximum"):
        made[f"{name} int32"] = _call(getattr(tf.math, name), i, j)
    for name in ("bitwise_and", "bitwise_or", "bitwise_xor", "invert"):
        made[name] = _call(getattr(tf.bitwise, name), *((i,) if name == "invert" else (i, j)))
    made["square by pow"] = lambda: tf.pow(x, 2.0)
    made["polyval"] = lambda: tf.math.polyval([1.0, 2.0, 3.0], x)
    made["clip_by_value"] = lambda: tf.clip_by_value(x, -1.0, 1.0)
    made["clip_by_norm"] = lambda: tf.clip_by_norm(x, 1.0)
    made["where"] = lambda: tf.where(b, x, y)
    made["where with a number"] = lambda: tf.where(b, x, 0.0)
    made["where, places"] = lambda: tf.where(b)
    made["cast to float16"] = lambda: tf.cast(x, tf.float16)
    made["cast from float16"] = lambda: tf.cast(half, tf.float32)
    made["cast to float64"] = lambda: tf.cast(x, tf.float64)
    made["cast to int32"] = lambda: tf.cast(x, tf.int32)
    made["cast from int32"] = lambda: tf.cast(i, tf.float32)
    made["cast to bool"] = lambda: tf.cast(x, tf.bool)
    made["cast from bool"] = lambda: tf.cast(b, tf.float32)
    made["cast from uint8"] = lambda: tf.cast(bytes_, tf.float32)
    made["saturate_cast"] = lambda: tf.saturate_cast(x, tf.uint8)
    made["add float16"] = lambda: half + half
    made["add float64"] = lambda: double + double
    made["add_n"] = lambda: tf.add_n([x, y, x])
    made["add a row"] = lambda: m + m[0]
    made["bias_add"] = lambda: tf.nn.bias_add(m, m[0])
    made["add a number"] = lambda: x + 1.0
    made["stop_gradient"] = lambda: tf.stop_gradient(x)

    # Reductions, scans, sorting.
    for name in (
        "reduce_sum", "reduce_mean", "reduce_max", "reduce_min", "reduce_prod", "reduce_logsumexp", "reduce_std",
        "reduce_variance", "reduce_euclidean_norm",
    ):  # fmt: skip
        made[name] = _call(getattr(tf.math, name), x)
        for axis in (0, 1):
            made[f"{name}, axis {axis}"] = _call(getattr(tf.math, name), m, axis)
    made["reduce_mean of images"] = lambda: tf.reduce_mean(images, (0, 1, 2))
    made["reduce_sum int32"] = lambda: tf.reduce_sum(i)
    made["reduce_any"], made["reduce_all"] = (lambda: tf.reduce_any(b)), (lambda: tf.reduce_all(b))
    made["count_nonzero"] = lambda: tf.math.count_nonzero(x)
    made["moments"] = lambda: tf.nn.moments(m, [0])
    made["argmax"], made["argmin, axis 1"] = (lambda: tf.argmax(x)), (lambda: tf.argmin(m, 1))
    made["argmax, axis 0"] = lambda: tf.argmax(m, 0)
    made["cumsum"], made["cumprod"] = (lambda: tf.cumsum(x)), (lambda: tf.math.cumprod(x))
    made["cumsum, axis 0"] = lambda: tf.cumsum(m, 0)
    made["cumulative_logsumexp"] = lambda: tf.math.cumulative_logsumexp(x)
    made["sort"], made["argsort"] = (lambda: tf.sort(x)), (lambda: tf.argsort(x))
    made["top_k"], made["top_k of rows"] = (lambda: tf.math.top_k(x, 10)), (lambda: tf.math.top_k(m, 10))
    made["in_top_k"] = lambda: tf.math.in_top_k(classes, m, 5)
    made["searchsorted"] = lambda: tf.searchsorted(ascending, x[:10_000])
    made["unique"] = lambda: tf.unique(i)
    made["bincount"] = lambda: tf.math.bincount(i)
    made["histogram_fixed_width"] = lambda: tf.histogram_fixed_width(x, [-3.0, 3.0])
    made["is_non_decreasing"] = lambda: tf.math.is_non_decreasing(ascending)

    # Moving elements.
    classes = tf.constant(rng.integers(0, 1000, 1000).astype(np.int32))
    ids = tf.constant(np.sort(rng.integers(0, 1000, MILLION)).astype(np.int32))
    rows = tf.constant(np.sort(rng.integers(0, 100, 1000)).astype(np.int32))
    shuffled = tf.constant(rng.permutation(1000).astype(np.int32))
    places = tf.constant(rng.permutation(MILLION).astype(np.int32))
    numbers_list = numbers[:100_000].tolist()
    made["constant of an array"] = lambda: tf.constant(numbers)
    made["constant of a list"] = lambda: tf.constant(numbers_list)
    made["constant of a list, float32"] = lambda: tf.constant(numbers_list, tf.float32)
    made["zeros"], made["ones"] = (lambda: tf.zeros([1000, 1000])), (lambda: tf.ones([1000, 1000]))
    made["fill"], made["zeros_like"] = (lambda: tf.fill([1000, 1000], 2.0)), (lambda: tf.zeros_like(x))
    made["range"], made["linspace"] = (lambda: tf.range(MILLION)), (lambda: tf.linspace(0.0, 1.0, MILLION))
    made["eye"], made["one_hot"] = (lambda: tf.eye(1000)), (lambda: tf.one_hot(classes, 1000))
    made["sequence_mask"] = lambda: tf.sequence_mask(classes, 1000)
    made["meshgrid"] = lambda: tf.meshgrid(x[:1000], y[:1000])
    made["numpy"] = lambda: x.numpy()
    made["reshape"], made["expand_dims"] = (
        (lambda: tf.reshape(x, [1000, 1000])),
        (lambda: tf.expand_dims(x, 0)),
    )
    made["transpose"], made["transpose cube"] = (
        (lambda: tf.transpose(m)),
        (lambda: tf.transpose(cube, [1, 2, 0])),
    )
    made["transpose images"] = lambda: tf.transpose(images, [0, 3, 1, 2])
    made["split"], made["split, axis 1"] = (lambda: tf.split(m, 10)), (lambda: tf.split(m, 10, 1))
    made["unstack"], made["stack"] = (lambda: tf.unstack(m[:100])), (lambda: tf.stack([x, y]))
    made["concat"], made["concat, axis 1"] = (lambda: tf.concat([m, n], 0)), (lambda: tf.concat([m, n], 1))
    made["tile"], made["repeat"] = (lambda: tf.tile(m[:100], [10, 1])), (lambda: tf.repeat(m[:100], 10, 0))
    made["broadcast_to"] = lambda: tf.broadcast_to(m[0], [1000, 1000])
    made["pad"], made["pad, reflect"] = (
        (lambda: tf.pad(m, [[1, 1], [1, 1]])),
        (lambda: tf.pad(m, [[1, 1], [1, 1]], "REFLECT")),
    )
    made["reverse"], made["roll"] = (lambda: tf.reverse(m, [1])), (lambda: tf.roll(m, 3, 0))
    made["slice"], made["strided slice"] = (lambda: m[10:990, 10:990]), (lambda: m[::2, ::2])
    made["slice of rows"] = lambda: m[10:990]
    made["gather rows"], made["gather elements"] = (
        (lambda: tf.gather(m, shuffled)),
        (lambda: tf.gather(x, places)),
    )
    made["gather columns"] = lambda: tf.gather(m, shuffled, axis=1)
    made["gather_nd"] = lambda: tf.gather_nd(m, tf.expand_dims(shuffled, 1))
    made["embedding_lookup"] = lambda: tf.nn.embedding_lookup(m, shuffled)
    made["scatter_nd"] = lambda: tf.scatter_nd(tf.expand_dims(shuffled, 1), m, [1000, 1000])
    made["tensor_scatter_nd_add"] = lambda: tf.tensor_scatter_nd_add(m, tf.expand_dims(shuffled, 1), m)
    made["tensor_scatter_nd_update"] = lambda: tf.tensor_scatter_nd_update(
        x, places[:1000, tf.newaxis], x[:1000]
    )
    made["boolean_mask"] = lambda: tf.boolean_mask(x, b)
    made["dynamic_partition"] = lambda: tf.dynamic_partition(m, rows // 10, 10)
    made["dynamic_stitch"] = lambda: tf.dynamic_stitch([shuffled], [m])
    made["reverse_sequence"] = lambda: tf.reverse_sequence(m, classes, 1, 0)
    made["band_part"], made["diag"] = (lambda: tf.linalg.band_part(m, -1, 0)), (lambda: tf.linalg.diag(m[0]))
    made["diag_part"], made["trace"] = (lambda: tf.linalg.diag_part(m)), (lambda: tf.linalg.trace(m))
    for name in ("sum", "mean", "max", "min", "prod"):
        made[f"segment_{name}"] = _call(getattr(tf.math, f"segment_{name}"), x, ids)
        made[f"segment_{name} of rows"] = _call(getattr(tf.math, f"segment_{name}"), m, rows)
    for name in ("sum", "max"):
        made[f"unsorted_segment_{name}"] = _call(getattr(tf.math, f"unsorted_segment_{name}"), x, i, 1000)
        made[f"unsorted_segment_{name} of rows"] = _call(
            getattr(tf.math, f"unsorted_segment_{name}"), m, rows, 100
        )

    # Matrices.
    small, stacked = m[:256, :256], tf.reshape(m[:, :1000], [100, 100, 100])
    definite = tf.matmul(small, small, transpose_b=True) + 300.0 * tf.eye(256)
    vector = m[0]
    made["matmul"], made["matvec"] = (lambda: tf.matmul(m, n)), (lambda: tf.linalg.matvec(m, vector))
    made["matmul, transposed"] = lambda: tf.matmul(m, n, transpose_b=True)
    made["matmul of stacks"] = lambda: tf.matmul(stacked, stacked)
    made["matmul float64"] = lambda: tf.matmul(double_matrix, double_matrix)
    double_matrix = tf.cast(m[:500, :500], tf.float64)
    made["tensordot"] = lambda: tf.tensordot(cube, m[:100, :100], 1)
    made["einsum"] = lambda: tf.einsum("ijk,kl->ijl", cube, m[:100, :100])
    made["norm"], made["normalize"] = (lambda: tf.norm(x)), (lambda: tf.linalg.normalize(m, axis=1))
    made["l2_normalize"], made["global_norm"] = (
        (lambda: tf.math.l2_normalize(m, 1)),
        (lambda: tf.linalg.global_norm([x, y])),
    )
    made["cross"] = lambda: tf.linalg.cross(vectors, vectors)
    vectors = tf.reshape(x[:999_999], [-1, 3])
    for name in ("cholesky", "det", "inv", "logdet", "qr", "eigh", "svd", "eigvalsh", "pinv", "expm"):
        made[name] = _call(getattr(tf.linalg, name), definite)
    made["solve"] = lambda: tf.linalg.solve(definite, small)
    made["triangular_solve"] = lambda: tf.linalg.triangular_solve(tf.linalg.band_part(definite, -1, 0), small)
    made["inv of stacks"] = lambda: tf.linalg.inv(matrices)
    matrices = tf.reshape(definite[:, :16], [16, 16, 16]) + 10.0 * tf.eye(16)

    # Images of the size that small networks have.
    images = tf.constant(rng.normal(size=(16, 64, 64, 16)).astype(f32))
    pictures = tf.constant(rng.normal(size=(8, 128, 128, 3)).astype(f32))
    filters = tf.constant(rng.normal(size=(3, 3, 16, 32)).astype(f32))
    wide = tf.constant(rng.normal(size=(5, 5, 3, 16)).astype(f32))
    points = tf.constant(rng.normal(size=(1, 1, 16, 32)).astype(f32))
    depthwise = tf.constant(rng.normal(size=(3, 3, 16, 1)).astype(f32))
    signals = tf.reshape(images, [16, 4096, 16])
    smaller = tf.constant(rng.normal(size=(16, 32, 32, 32)).astype(f32))
    made["conv2d"] = lambda: tf.nn.conv2d(images, filters, 1, "SAME")
    made["conv2d, stride 2"] = lambda: tf.nn.conv2d(images, filters, 2, "SAME")
    made["conv2d, 5 by 5 of pictures"] = lambda: tf.nn.conv2d(pictures, wide, 1, "VALID")
    made["conv2d, 1 by 1"] = lambda: tf.nn.conv2d(images, points, 1, "SAME")
    made["conv2d, dilated"] = lambda: tf.nn.conv2d(images, filters, 1, "SAME", dilations=2)
    made["conv1d"] = lambda: tf.nn.conv1d(signals, filters[0], 1, "SAME")
    made["conv2d_transpose"] = lambda: tf.nn.conv2d_transpose(smaller, filters, [16, 64, 64, 16], 2)
    made["depthwise_conv2d"] = lambda: tf.nn.depthwise_conv2d(images, depthwise, [1, 1, 1, 1], "SAME")
    made["depthwise_conv2d, stride 2"] = lambda: tf.nn.depthwise_conv2d(
        images, depthwise, [1, 2, 2, 1], "SAME"
    )
    for kind in ("max", "avg"):
        pool = getattr(tf.nn, f"{kind}_pool2d")
        made[f"{kind}_pool2d"] = _call(pool, images, 2, 2, "VALID")
        made[f"{kind}_pool2d, 3 by 3, stride 1"] = _call(pool, images, 3, 1, "SAME")
        made[f"{kind}_pool2d, 3 by 3, stride 2"] = _call(pool, images, 3, 2, "SAME")
    channels = tf.constant(rng.normal(size=16).astype(f32))
    scale = tf.math.abs(channels) + 0.5
    made["batch_normalization"] = lambda: tf.nn.batch_normalization(
        images, channels, scale, channels, scale, 1e-3
    )
    made["sigmoid_cross_entropy"] = lambda: tf.nn.sigmoid_cross_entropy_with_logits(share, x)
    made["softmax_cross_entropy"] = lambda: tf.nn.softmax_cross_entropy_with_logits(tf.nn.softmax(n), m)
    made["sparse_softmax_cross_entropy"] = lambda: tf.nn.sparse_softmax_cross_entropy_with_logits(classes, m)
    made["dropout"] = lambda: tf.nn.dropout(x, 0.5)

    # Random numbers.
    shape = [1000, 1000]
    made["random normal"], made["random uniform"] = (
        (lambda: tf.random.normal(shape)),
        (lambda: tf.random.uniform(shape)),
    )
    made["truncated_normal"] = lambda: tf.random.truncated_normal(shape)
    made["stateless_uniform"] = lambda: tf.random.stateless_uniform(shape, [1, 2])
    made["stateless_normal"] = lambda: tf.random.stateless_normal(shape, [1, 2])
    made["shuffle"] = lambda: tf.random.shuffle(m)
    made["categorical"] = lambda: tf.random.categorical(m[:100], 100)

    # Operations with their gradients.
    def gradient(name: str, function: Callable[..., Any], *operands: Any) -> None:
        def call() -> Any:
            with tf.GradientTape() as tape:
                tape.watch(operands)
                result = function(*operands)
            return tape.gradient(result, operands)

        made[f"gradient of {name}"] = call

    for name in ("relu", "relu6", "elu", "gelu", "leaky_relu", "selu", "silu", "softplus"):
        gradient(name, getattr(tf.nn, name), x)
    for name in ("tanh", "sigmoid", "exp", "sin", "square", "erf", "abs"):
        gradient(name, getattr(tf.math, name), x)
    gradient("softmax", tf.nn.softmax, m)
    gradient("where", lambda x, y: tf.where(b, x, y), x, y)
    gradient("maximum", tf.maximum, x, y)
    gradient("multiply", tf.multiply, x, y)
    gradient("clip_by_value", lambda x: tf.clip_by_value(x, -1.0, 1.0), x)
    gradient("reduce_sum", tf.reduce_sum, x)
    gradient("reduce_max", lambda x: tf.reduce_max(x, 1), m)
    gradient("bias_add", tf.nn.bias_add, m, vector)
    gradient("matmul", tf.matmul, m[:500], n)
    gradient("transpose", tf.transpose, m)
    gradient("concat", lambda x, y: tf.concat([x, y], 1), m, n)
    gradient("split", lambda x: tf.split(x, 10), m)
    gradient("gather", lambda x: tf.convert_to_tensor(tf.gather(x, shuffled)), m)
    gradient("cumsum", tf.cumsum, x)
    gradient("cross entropy", lambda x: tf.nn.sparse_softmax_cross_entropy_with_logits(classes, x), m)
    gradient("segment_sum", lambda x: tf.math.segment_sum(x, rows), m)
    gradient("slice", lambda x: x[10:990, 10:990], m)
    gradient("conv2d", lambda x, f: tf.nn.conv2d(x, f, 1, "SAME"), images, filters)
    gradient("conv2d, stride 2", lambda x, f: tf.nn.conv2d(x, f, 2, "SAME"), images, filters)
    gradient(
        "depthwise_conv2d", lambda x, f: tf.nn.depthwise_conv2d(x, f, [1, 1, 1, 1], "SAME"), images, depthwise
    )
    gradient("max_pool2d", lambda x: tf.nn.max_pool2d(x, 2, 2, "VALID"), images)
    gradient("avg_pool2d", lambda x: tf.nn.avg_pool2d(x, 2, 2, "VALID"), images)

    # Small common operations.
    made["shape"] = lambda: x.shape
    made["tf.shape"] = lambda: tf.shape(x)

    # Input pipelines.
    table = np.arange(20_000, dtype=f32).reshape(10_000, 2)
    whole = tf.data.Dataset.from_tensor_slices(table)
    made["Dataset.batch"] = _drain(whole.batch(32))
    made["Dataset.shuffle"] = _drain(whole.shuffle(10_000).batch(32))
    return made


def steps(tf: Any) -> dict[str, Callable[[], Any]]:
    """Return the training steps by name, each a ``tf.function``."""
    rng = np.random.default_rng(0)
    f32 = np.float32

    def variable(*shape: int) -> Any:
        return tf.Variable(rng.normal(size=shape).astype(f32) / np.sqrt(np.prod(shape[:-1])).astype(f32))

    def training(
        model: Callable[[Any], Any], weights: list[Any], inputs: Any, labels: Any
    ) -> Callable[[], Any]:
        def step() -> Any:
            with tf.GradientTape() as tape:
                losses = tf.nn.sparse_softmax_cross_entropy_with_logits(labels, model(inputs))
                loss = tf.reduce_mean(losses)
            for weight, gradient in zip(weights, tape.gradient(loss, weights), strict=True):
                weight.assign_sub(0.01 * gradient)
            return loss

        compiled: Callable[[], Any] = tf.function(step)
        return compiled

    labels = tf.constant(rng.integers(0, 10, 128).astype(np.int32))
    dense = [
        variable(784, 512),
        variable(512),
        variable(512, 256),
        variable(256),
        variable(256, 10),
        variable(10),
    ]

    def perceptron(x: Any) -> Any:
        x = tf.nn.relu(tf.matmul(x, dense[0]) + dense[1])
        x = tf.nn.relu(tf.matmul(x, dense[2]) + dense[3])
        return tf.matmul(x, dense[4]) + dense[5]

    filters = [
        variable(3, 3, 1, 16),
        variable(16),
        variable(3, 3, 16, 32),
        variable(32),
        variable(7 * 7 * 32, 10),
    ]

    def convolutional(x: Any) -> Any:
        x = tf.nn.relu(tf.nn.bias_add(tf.nn.conv2d(x, filters[0], 1, "SAME"), filters[1]))
        x = tf.nn.max_pool2d(x, 2, 2, "VALID")
        x = tf.nn.relu(tf.nn.bias_add(tf.nn.conv2d(x, filters[2], 1, "SAME"), filters[3]))
        x = tf.nn.max_pool2d(x, 2, 2, "VALID")
        return tf.matmul(tf.reshape(x, [128, -1]), filters[4])

    digits = rng.normal(size=(128, 784)).astype(f32)
    flat, pictures = tf.constant(digits), tf.constant(digits.reshape(128, 28, 28, 1))
    return {
        "step of an MLP": training(perceptron, dense, flat, labels),
        "step of a convolutional network": training(convolutional, filters, pictures, labels),
    }


def _call(function: Callable[..., Any], *operands: Any) -> Callable[[], Any]:
    return lambda: function(*operands)


def _drain(dataset: Any) -> Callable[[], None]:
    def call() -> None:
        for _ in dataset:
            pass

    return call


def microseconds(call: Callable[[], Any], seconds: float) -> tuple[float, float]:
    """Time a call in samples of about ``seconds`` in total; return the least and the median time of a call."""
    start = process_time()
    call()
    calls = max(1, int(SECONDS_A_SAMPLE / (process_time() - start)))
    samples: list[float] = []
    end = process_time() + seconds
    while True:
        start = process_time()
        for _ in itertools.repeat(None, calls):
            call()
        now = process_time()
        samples.append((now - start) / calls * 1e6)
        if now >= end:
            return min(samples), median(samples)


def main() -> None:
    """Time the operations named on standard input and print the results."""
    tf = importlib.import_module(sys.argv[1])
    tf.config.threading.set_intra_op_parallelism_threads(1)
    tf.config.threading.set_inter_op_parallelism_threads(1)
    made = cases(tf) | steps(tf)
    print("\t".join(made), flush=True)
    for line in sys.stdin:
        name, seconds = line.rstrip("\n").split("\t")
        print(*microseconds(made[name], float(seconds)), flush=True)


if __name__ == "__main__":
    main()
