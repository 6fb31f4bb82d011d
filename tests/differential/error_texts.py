"""Programs that fail, whose error texts are recorded from TensorFlow in ``error_texts.json``.

ALLOTMENT_TENSORFLOW=PYTHON python error_texts.py    # records the texts again
"""

import json
import os
import re
from pathlib import Path

from judge import outcomes
from outcome import Raised

FILE = Path(__file__).with_name("error_texts.json")

#: Programs that fail.
PROGRAMS = (
    "tf.add([1.0, 2.0], [1.0, 2.0, 3.0])",
    "tf.constant(1) + tf.constant(1.0)",
    "tf.constant(1) + 1.5",
    "tf.matmul([[1.0, 2.0]], [[1.0, 2.0]])",
    "tf.matmul([1.0], [1.0])",
    "tf.matmul(tf.ones([2, 3]), tf.ones([2, 3], tf.float64))",
    "tf.reshape(tf.ones([2, 3]), [4])",
    "tf.reshape(tf.ones([2, 3]), [-1, -1])",
    "tf.reshape(tf.ones([2, 3]), [-1, 4])",
    "tf.concat([tf.ones([2, 3]), tf.ones([3, 2])], 0)",
    "tf.concat([tf.ones([2, 3]), tf.ones([2, 3])], 2)",
    "tf.stack([tf.ones([2]), tf.ones([3])])",
    "tf.gather([1, 2, 3], 3)",
    "tf.gather([1, 2, 3], [0, -1])",
    "tf.gather_nd([[1, 2], [3, 4]], [[0, 2]])",
    "tf.gather([1, 2], 1.5)",
    "tf.expand_dims(tf.ones([2]), 3)",
    "tf.squeeze(tf.ones([2, 1]), 0)",
    "tf.transpose(tf.ones([2, 3]), [0, 0])",
    "tf.tile(tf.ones([2]), [1, 2])",
    "tf.reduce_sum(tf.ones([2, 2]), 2)",
    "tf.reduce_sum(tf.ones([2, 2]), [0, 0])",
    "tf.argmax(tf.ones([2, 2]), 2)",
    "tf.cumsum(tf.ones([2, 2]), 2)",
    "tf.constant(7) // 0",
    "tf.constant(7) % 0",
    "tf.pow(2, -1)",
    "tf.math.reciprocal(tf.constant([1, 2], tf.uint8))",
    "tf.sqrt('text')",
    "tf.where(tf.constant([1, 2]), 1, 2)",
    "tf.math.top_k([1.0, 2.0], 3)",
    "tf.math.segment_sum([1.0, 2.0], [1, 0])",
    "tf.math.unsorted_segment_sum([1.0, 2.0], [0, 3], 2)",
    "tf.scatter_nd([[3]], [1.0], [2])",
    "tf.tensor_scatter_nd_update([1.0, 2.0], [[2]], [3.0])",
    "tf.linalg.inv([[1.0, 1.0], [1.0, 1.0]])",
    "tf.linalg.inv(tf.ones([2, 3]))",
    "tf.linalg.solve(tf.ones([2, 2]), tf.ones([3, 1]))",
    "tf.nn.conv2d(tf.ones([1, 4, 4, 3]), tf.ones([2, 2, 2, 1]), 1, 'SAME')",
    "tf.nn.sparse_softmax_cross_entropy_with_logits([3], [[1.0, 2.0]])",
    "tf.nn.bias_add(tf.ones([2, 3]), tf.ones([2]))",
    "tf.debugging.check_numerics([float('nan')], 'weights')",
    "tf.strings.to_number('a')",
    "tf.strings.substr('abc', 5, 1)",
    "tf.constant([[1, 2], [3]])",
    "tf.constant([1, 'a'])",
    "tf.constant(1.5, tf.int32)",
    "tf.convert_to_tensor(tf.constant(1), tf.float32)",
    "tf.zeros([-1])",
    "tf.fill([2, -1], 0)",
    "tf.range(0, 5, 0)",
    "tf.range(5, 0)",
    "tf.split(tf.ones([5]), 2)",
    "tf.split(tf.ones([5]), [2, 2])",
    "tf.unstack(tf.ones([2]), 3)",
    "tf.slice(tf.ones([3]), [2], [2])",
    "tf.ones([3])[4]",
    "tf.ones([3])[0, 0]",
    "tf.ones([3])['a']",
    "tf.ones([3])[::0]",
    "tf.ensure_shape(tf.ones([3]), [2])",
    "tf.one_hot([1], -1)",
    "tf.broadcast_to(tf.ones([3]), [2])",
    "tf.Variable([1.0, 2.0]).assign([1.0])",
    "tf.Variable([1.0, 2.0]).assign_add([1.0])",
    "tf.Variable(1.0).assign(tf.constant(1))",
    "tf.GradientTape().gradient(tf.constant(1.0), tf.constant(1.0))",
    "bool(tf.ones([2]))",
    "int(tf.ones([2]))",
    "len(tf.constant(1))",
    "list(tf.constant(1))",
    "hash(tf.constant(1))",
    "tf.cast('a', tf.int32)",
    "tf.as_dtype('nothing')",
    "tf.TensorShape([1, 2]).assert_is_compatible_with([1, 3])",
    "tf.TensorShape([1, -2])",
)


def source(program: str) -> str:
    """Return the program as the judge runs it."""
    return f"result = {program}"


def plain(text: str) -> str:
    """Remove node names, devices and addresses from an error text, and join its lines."""
    text = re.sub(r"\{\{function_node [^}]*\}\} ", "", text)
    text = re.sub(r"\s*(; NodeDef: .*|\[Op:.*)", "", text, flags=re.DOTALL)
    text = re.sub(r"0x[0-9a-f]+", "0x…", text)
    return " ".join(text.split())


def main() -> None:
    """Record the errors of all programs."""
    recorded = {}
    made = outcomes("tensorflow", os.environ["ALLOTMENT_TENSORFLOW"], [source(each) for each in PROGRAMS])
    for program, outcome in zip(PROGRAMS, made, strict=True):
        if not isinstance(outcome, Raised):
            raise ValueError(f"{program} does not fail: {outcome!r}")
        recorded[program] = [outcome.name, plain(outcome.text)]
    FILE.write_text(json.dumps(recorded, indent=1, ensure_ascii=False) + "\n")


if __name__ == "__main__":
    main()
