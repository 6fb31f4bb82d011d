"""Small models for ONNX Runtime."""

from typing import Any

import numpy as np
import pytest


def mlp(width: int = 64, layers: int = 3, seed: int = 0) -> bytes:
    """Return a model with the input ``x`` of shape (b, width): products with float32 weights, and ReLU."""
    onnx = pytest.importorskip("onnx")
    from onnx import TensorProto, helper

    generator = np.random.default_rng(seed)
    weights, nodes, last = [], [], "x"
    for layer in range(layers):
        values = generator.random((width, width), np.float32) / width
        weights.append(
            helper.make_tensor(f"w{layer}", TensorProto.FLOAT, values.shape, values.tobytes(), raw=True)
        )
        nodes.append(helper.make_node("MatMul", [last, f"w{layer}"], [f"m{layer}"]))
        nodes.append(helper.make_node("Relu", [f"m{layer}"], [f"r{layer}"]))
        last = f"r{layer}"
    shape: list[str | int | None] = ["b", width]
    graph = helper.make_graph(
        nodes,
        "mlp",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, shape)],
        [helper.make_tensor_value_info(last, TensorProto.FLOAT, shape)],
        weights,
    )
    opset = helper.make_opsetid("", 17)
    model: Any = helper.make_model(graph, opset_imports=[opset], ir_version=8)
    onnx.checker.check_model(model)
    content: bytes = model.SerializeToString()
    return content
