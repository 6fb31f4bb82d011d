"""Runs ONNX's tests of operators in ONNX Runtime twice, with its own memory and in a pool, and compares the outcomes.

``run_onnx.py [PATTERN]``: the tests whose names match, all without one. The outcome of a test is its outputs, to the
bit, or the class of the exception. Exit status: 1 if a test differs, or the pool is not empty afterwards.
"""

import fnmatch
import gc
import sys
from collections import Counter
from typing import Any

import numpy as np
import onnxruntime
from onnx.backend.test.loader import load_model_tests

from allotment import Pool
from allotment.integrations import onnxruntime as pooled

#: Operators that are random without a seed.
RANDOM = ("test_bernoulli*", "test_dropout*", "test_training_dropout*", "test_multinomial*", "test_random*")


def options() -> "onnxruntime.SessionOptions":
    """Options that let a session use the pool, if one is installed. Threads would only cost time."""
    made = pooled.session_options()
    made.intra_op_num_threads = 1
    made.log_severity_level = 4
    return made


def outcome(test: Any) -> tuple[str, list[Any]]:
    """Run a test's model on its data: the kind of the outcome, and the outputs."""
    try:
        session = onnxruntime.InferenceSession(
            test.model.SerializeToString(), options(), providers=["CPUExecutionProvider"]
        )
        names = [each.name for each in session.get_inputs()]
        outputs = [session.run(None, dict(zip(names, inputs, strict=False))) for inputs, _ in test.data_sets]
    except Exception as error:
        error.__traceback__ = None
        return type(error).__name__, []
    return "computed", outputs


def as_bytes(value: Any) -> Any:
    """A value that equals that of another run only if it has the same bits."""
    if isinstance(value, np.ndarray):
        content = value.tolist() if value.dtype == object else value.tobytes()
        return value.dtype.str, value.shape, content
    if isinstance(value, list | tuple):
        return [as_bytes(each) for each in value]
    if isinstance(value, dict):
        return {key: as_bytes(each) for key, each in value.items()}
    return value


def main(arguments: list[str]) -> int:
    """Run and compare; the exit status."""
    pattern = arguments[0] if arguments else "*"
    tests = [test for test in load_model_tests(kind="node") if fnmatch.fnmatch(test.name, pattern)]
    pool = Pool("4GiB", name="suite")
    kinds: Counter[str] = Counter()
    different = []
    for test in tests:
        plain = outcome(test)
        with pooled.use(pool):
            in_pool = outcome(test)
        is_random = any(fnmatch.fnmatch(test.name, each) for each in RANDOM)
        same = plain[0] == in_pool[0] and (is_random or as_bytes(plain[1]) == as_bytes(in_pool[1]))
        if not same:
            different.append(test.name)
        kinds[in_pool[0]] += 1
    served = pool.stats()
    del plain, in_pool
    gc.collect()
    for kind, count in kinds.most_common():
        print(f"{count:5} {kind}")
    print(f"{len(different)} of {len(tests)} tests differ: {', '.join(different[:20])}")
    print(f"{served.num_allocs:,} allocations, {served.peak_in_use:,} bytes at the most")
    print(f"{pool.stats().num_live} allocations are left")
    return bool(different) or pool.stats().num_live > 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
