"""Graphs of independent ``MatMulNBits`` nodes for ``kernel_speed``."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

BLOCK_SIZE = 32
# What the nodes' weights come to together, so that no cache holds them.
THIN_BYTES = 192 << 20


def nodes_of(k: int, n: int, bits: int) -> int:
    """How many nodes make weights that no cache holds."""
    return max(1, -(-THIN_BYTES // (k * n * bits // 8)))


def graph(k: int, n: int, bits: int, nodes: int) -> onnx.ModelProto:
    """``nodes`` products ``x<i>`` [rows, k] -> ``y<i>`` [rows, n].

    Each has inputs of its own, or the runtime would merge them, and other weights, or it would keep them once.
    """
    random = np.random.default_rng(5)
    blocks = -(-k // BLOCK_SIZE)
    weights = []
    for i in range(nodes):
        codes = np.frombuffer(random.bytes(n * blocks * BLOCK_SIZE * bits // 8), np.uint8)
        scales = (0.01 + 0.01 * random.random(n * blocks, np.float32)).reshape(n, blocks)
        weights.append(numpy_helper.from_array(codes.reshape(n, blocks, -1), f"codes{i}"))
        weights.append(numpy_helper.from_array(scales, f"scales{i}"))
    # At level 4 the runtime may round activations to 8 bits, which is its fastest product.
    settings: dict[str, Any] = {"K": k, "N": n, "bits": bits, "block_size": BLOCK_SIZE, "accuracy_level": 4}
    body = helper.make_graph(
        [
            helper.make_node(
                "MatMulNBits",
                [f"x{i}", f"codes{i}", f"scales{i}"],
                [f"y{i}"],
                f"/{i}",
                domain="com.microsoft",
                **settings,
            )
            for i in range(nodes)
        ],
        "products",
        [helper.make_tensor_value_info(f"x{i}", TensorProto.FLOAT, ["rows", k]) for i in range(nodes)],
        [helper.make_tensor_value_info(f"y{i}", TensorProto.FLOAT, ["rows", n]) for i in range(nodes)],
        weights,
    )
    opsets = [helper.make_opsetid("", 18), helper.make_opsetid("com.microsoft", 1)]
    return helper.make_model(body, opset_imports=opsets, ir_version=10)


def write(folder: Path, k: int, n: int, bits: int) -> None:
    """Writes thin.onnx, for few rows, and wide.onnx with one node, for many."""
    onnx.save(graph(k, n, bits, nodes_of(k, n, bits)), folder / "thin.onnx")
    onnx.save(graph(k, n, bits, 1), folder / "wide.onnx")
