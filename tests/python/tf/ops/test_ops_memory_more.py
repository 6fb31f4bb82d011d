"""The later operations on a simulated GPU: their results take what their elements take, and give it back."""

from support.devices import run_on_gpus

PROGRAM = """
import gc
import numpy as np
import allotment.tf as tf
from allotment.devices.context import context
from allotment.tf.tensors.tensor import EagerTensor

gpu = next(each for each in context().ready().devices if each.kind == "GPU")

def requested():
    return gpu.pool.stats().requested

def tensors(result):
    if isinstance(result, EagerTensor):
        return [result]
    return [each for part in result for each in tensors(part)] if isinstance(result, list | tuple) else []

def made(*shape):
    return tf.constant(np.random.default_rng(3).uniform(0.1, 0.9, shape).astype(np.float32))

x, y, s, image, series = made(3, 4), made(3, 4), made(4, 4), made(2, 8, 8, 3), made(2, 8, 3)
order = tf.constant(np.array([2, 0, 1], np.int64))
calls = {
    "xlogy": lambda: tf.math.xlogy(x, y),
    "xdivy": lambda: tf.math.xdivy(x, y),
    "xlog1py": lambda: tf.math.xlog1py(x, y),
    "polyval": lambda: tf.math.polyval([x, y], x),
    "nextafter": lambda: tf.math.nextafter(x, y),
    "cumulative_logsumexp": lambda: tf.math.cumulative_logsumexp(x, 1),
    "invert_permutation": lambda: tf.math.invert_permutation(order),
    "digamma": lambda: tf.math.digamma(x),
    "erfinv": lambda: tf.math.erfinv(x),
    "log_sigmoid": lambda: tf.math.log_sigmoid(x),
    "pinv": lambda: tf.linalg.pinv(s),
    "normalize": lambda: tf.linalg.normalize(x),
    "matrix_rank": lambda: tf.linalg.matrix_rank(s),
    "conv1d": lambda: tf.nn.conv1d(series, tf.ones([3, 3, 2]), 1, "SAME"),
    "depthwise_conv2d": lambda: tf.nn.depthwise_conv2d(image, tf.ones([3, 3, 3, 2]), [1, 1, 1, 1], "SAME"),
    "conv2d_transpose": lambda: tf.nn.conv2d_transpose(image, tf.ones([3, 3, 5, 3]), [2, 16, 16, 5], 2),
    "crelu": lambda: tf.nn.crelu(x),
    "max_pool1d": lambda: tf.nn.max_pool1d(series, 2, 2, "SAME"),
    "avg_pool1d": lambda: tf.nn.avg_pool1d(series, 2, 2, "SAME"),
    "weighted_cross_entropy": lambda: tf.nn.weighted_cross_entropy_with_logits(x, y, 2.0),
    "identity_n": lambda: tf.identity_n([x, y]),
    "unravel_index": lambda: tf.unravel_index(order, tf.constant(np.array([3, 4], np.int64))),
    "dynamic_partition": lambda: tf.dynamic_partition(x, [0, 1, 0], 2),
    "dynamic_stitch": lambda: tf.dynamic_stitch([[0, 1, 2], [3, 4, 5]], [x, y]),
    "histogram_fixed_width": lambda: tf.histogram_fixed_width(x, [0.0, 1.0]),
    "map_fn": lambda: tf.map_fn(lambda each: each * 2.0, x),
    "foldl": lambda: tf.foldl(lambda sum, each: sum + each, x),
    "scan": lambda: tf.scan(lambda sum, each: sum + each, x),
    "while_loop": lambda: tf.while_loop(lambda k: tf.reduce_sum(k) < 100.0, lambda k: [k * 2.0], [x]),
    "confusion_matrix": lambda: tf.math.confusion_matrix([1, 2], [2, 1]),
}
given = {id(each._array) for each in (x, y)}
for name, call in calls.items():
    before = requested()
    result = call()
    mine = {id(each._array): each._array.nbytes for each in tensors(result) if each._home is gpu}
    taken = requested() - before
    assert taken == sum(nbytes for key, nbytes in mine.items() if key not in given), (name, taken)
    del result
    assert requested() == before, name
del x, y, s, image, series, order
gc.collect()
assert gpu.pool.stats().in_use == 0
print("done")
"""


def test_results_take_what_their_elements_take_and_give_it_back() -> None:
    done = run_on_gpus("1:64MiB", PROGRAM)
    assert done.returncode == 0, done.stderr
    assert (done.stdout, done.stderr) == ("done\n", "")
