"""Which processors and libraries compute the same bits, so that a digest recorded with some holds for others.

Attention, products of narrow weights and sampling are liboga's own: their bits depend on the instruction set, in the
classes that docs/guide/configure.md and kernels/attention/paged_attention.h promise. Norms, and the products of fp32,
are the runtime's: which of its kernels run depends on its version and on the processor. A small graph of the same
operators, run without liboga, tells what they compute: its output is part of the key, and so are some results of the
C library's functions that the sampler uses.
"""

from __future__ import annotations

import functools
import hashlib
import math
from typing import Any

import numpy as np
import onnx
import onnxruntime  # type: ignore[import-untyped]
from onnx import TensorProto, helper, numpy_helper

import oga

Floats = np.ndarray[Any, np.dtype[np.float32]]
HIDDEN, INNER = 576, 1536


def key_of(precision: str) -> str:
    """The key of this process, for example ``bfloat16 on 0123abcd``."""
    isa = oga.get_cpu_isa()
    arithmetic = {"avx2": "float", "avx512": "float", "avx512_bf16": "bfloat16", "amx": "bfloat16"}.get(isa, isa)
    if precision == "fp32" and arithmetic == "bfloat16":
        arithmetic = "float"  # that of attention over a cache in floats
    return f"{arithmetic} on {runtime_bits(products=precision == 'fp32')}"


@functools.cache
def runtime_bits(products: bool) -> str:
    """A hash of what the runtime and the C library compute."""
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    graph = products_graph() if products else norms_graph()
    session = onnxruntime.InferenceSession(graph.SerializeToString(), options, providers=["CPUExecutionProvider"])
    digest = hashlib.sha256()
    for rows in (1, 7):
        for output in session.run(None, {"x": numbers(rows, HIDDEN), "skip": numbers(rows, HIDDEN)}):
            digest.update(output.tobytes())
    places = [step / 7 for step in range(1, 400)]
    digest.update(repr([(math.exp(-place), math.log(place), math.pow(1.75, place)) for place in places]).encode())
    return digest.hexdigest()[:8]


def numbers(*shape: int) -> Floats:
    """Numbers of both signs below 1 that nothing but their shape decides."""
    count = math.prod(shape)
    mixed = (np.arange(1, count + 1, dtype=np.uint64) * 2654435761 + count) % 2**32
    return ((mixed >> 8).astype(np.float32) / np.float32(2**23) - 1).reshape(shape)


def norm_nodes(x: str, y: str) -> list[onnx.NodeProto]:
    """The two norms of a decoder, over ``x`` and over its sum with ``skip``."""
    skip_norm = "SkipSimplifiedLayerNormalization"
    return [
        helper.make_node("RMSNormalization", [x, "gain"], [f"{y}_first"], axis=-1, epsilon=1e-5),
        helper.make_node(skip_norm, [f"{y}_first", "skip", "gain"], [y], domain="com.microsoft", epsilon=1e-5),
    ]


def norms_graph() -> onnx.ModelProto:
    """What is the runtime's in a decoder with narrow weights."""
    return model_of(norm_nodes("x", "y"), {})


def products_graph() -> onnx.ModelProto:
    """What is the runtime's in a decoder of floats: a norm and a gated feed-forward."""
    nodes = [
        *norm_nodes("x", "normed"),
        helper.make_node("Gemm", ["normed", "up"], ["risen"], transB=1),
        helper.make_node("Sigmoid", ["risen"], ["gate"]),
        helper.make_node("Mul", ["risen", "gate"], ["gated"]),
        helper.make_node("Gemm", ["gated", "down"], ["y"], transB=1),
    ]
    return model_of(nodes, {"up": numbers(INNER, HIDDEN), "down": numbers(HIDDEN, INNER)})


def model_of(nodes: list[onnx.NodeProto], weights: dict[str, Floats]) -> onnx.ModelProto:
    """A model from ``x`` and ``skip`` to ``y``."""
    ports = {
        name: helper.make_tensor_value_info(name, TensorProto.FLOAT, ["rows", HIDDEN]) for name in ("x", "skip", "y")
    }
    constants = [
        numpy_helper.from_array(values, name) for name, values in (weights | {"gain": numbers(HIDDEN)}).items()
    ]
    graph = helper.make_graph(nodes, "probe", [ports["x"], ports["skip"]], [ports["y"]], constants)
    domains = [helper.make_opsetid("", 23), helper.make_opsetid("com.microsoft", 1)]
    return helper.make_model(graph, opset_imports=domains, ir_version=10)
