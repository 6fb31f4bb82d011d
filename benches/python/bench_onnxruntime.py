"""How does a pool compare with ONNX Runtime's own arena: time per run, MiB at the peak, MiB given back?

Requests of different sizes in random order, as a server gets them. Each side runs in a process of its own; the
processes alternate, because the speed of shared machines drifts, and each figure is a median. Three sides: ``arena``,
ONNX Runtime's default; ``plain``, its CPU allocator without an arena; ``pool``.

    python benches/python/bench_onnxruntime.py [--rounds 5]
"""

import argparse
import json
import os
import random
import resource
import statistics
import subprocess
import sys
from time import perf_counter_ns
from typing import Any

import numpy as np

SIDES = ("arena", "plain", "pool")
#: Inputs and outputs of each layer.
WIDTH = 512
LAYERS = 6
#: The smallest and the largest batch.
BATCHES = (1, 4096)
RUNS = 60
MIB = 1 << 20


def model() -> bytes:
    """Return a network of dense layers with float32 weights of 6 MiB."""
    from onnx import TensorProto, helper

    generator = np.random.default_rng(0)
    weights, nodes, last = [], [], "x"
    for layer in range(LAYERS):
        values = generator.random((WIDTH, WIDTH), np.float32) / WIDTH
        weights.append(
            helper.make_tensor(f"w{layer}", TensorProto.FLOAT, values.shape, values.tobytes(), raw=True)
        )
        nodes.append(helper.make_node("MatMul", [last, f"w{layer}"], [f"m{layer}"]))
        nodes.append(helper.make_node("Relu", [f"m{layer}"], [f"r{layer}"]))
        last = f"r{layer}"
    shape: list[str | int | None] = ["b", WIDTH]
    graph = helper.make_graph(
        nodes,
        "dense",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, shape)],
        [helper.make_tensor_value_info(last, TensorProto.FLOAT, shape)],
        weights,
    )
    opset = helper.make_opsetid("", 17)
    content: bytes = helper.make_model(graph, opset_imports=[opset], ir_version=8).SerializeToString()
    return content


def resident() -> float:
    """Return the resident memory of this process in MiB."""
    with open("/proc/self/statm", encoding="ascii") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE") / MIB


def measure(side: str) -> dict[str, float]:
    """Return the figures of one side, in this process."""
    import onnxruntime

    from allotment import Pool
    from allotment.integrations import onnxruntime as pooled

    content, pool = model(), Pool("8GiB", name="bench")
    options: Any = pooled.session_options() if side == "pool" else onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    options.enable_cpu_mem_arena = side == "arena"
    order = random.Random(0)
    batches = [int(2 ** order.uniform(0, np.log2(BATCHES[1]))) for _ in range(RUNS)]
    inputs = {batch: np.ones((batch, WIDTH), np.float32) for batch in {*batches, BATCHES[1]}}
    before = resident()
    with pooled.use(pool):
        session = onnxruntime.InferenceSession(content, options, providers=["CPUExecutionProvider"])
    session.run(None, {"x": inputs[1]})
    start = perf_counter_ns()
    for batch in batches:
        session.run(None, {"x": inputs[batch]})
    figures = {"ms per run": (perf_counter_ns() - start) / RUNS / 1e6}
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    figures |= {"peak resident": peak - before, "resident after": resident() - before}
    # The arena gives its memory back at the end of a run with this option; the pool on request.
    shrinking = onnxruntime.RunOptions()
    if side == "arena":
        shrinking.add_run_config_entry("memory.enable_memory_arena_shrinkage", "cpu:0")
    session.run(None, {"x": inputs[1]}, shrinking)
    pool.trim()
    figures["resident given back"] = resident() - before
    stats = pool.stats()
    if side == "pool":
        figures["peak reserved / live"] = stats.peak_reserved / stats.peak_requested
    return figures


def main() -> None:
    """Measure all sides in processes of their own, and print medians."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--side", choices=SIDES)
    arguments = parser.parse_args()
    if arguments.side:
        print(json.dumps(measure(arguments.side)))
        return
    found: dict[str, list[dict[str, float]]] = {side: [] for side in SIDES}
    for _ in range(arguments.rounds):
        for side in SIDES:
            command = [sys.executable, __file__, "--side", side]
            done = subprocess.run(command, check=True, capture_output=True, text=True)
            found[side].append(json.loads(done.stdout))
    for side, rounds in found.items():
        shown = (f"{name} {statistics.median(each[name] for each in rounds):.2f}" for name in rounds[0])
        print(f"{side:6}", ", ".join(shown))


if __name__ == "__main__":
    main()
