"""Tiny random decoders in the packed paged form, as onnx graphs and as float64 arithmetic."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import ml_dtypes
import numpy as np
import numpy.typing as npt
import onnx
from onnx import TensorProto, helper, numpy_helper

Array = npt.NDArray[np.float64]
MICROSOFT = "com.microsoft"
HIDDEN = 32
VOCAB = 61
CONTEXT = 64


@dataclass(frozen=True)
class Decoder:
    """What differs between the test decoders; sizes are small enough for a reader to follow by hand."""

    layers: int = 2
    heads: int = 4
    kv_heads: int = 2
    head_size: int = 8
    packed: bool = False
    cache_type: int = TensorProto.FLOAT
    rotary_dim: int = 8  # 0: no rotary embedding
    interleaved: bool = False
    window: int = -1
    scale: float | None = None
    softcap: float = 0.0
    sinks: bool = False
    norm: bool = False  # of queries and keys
    logits: str = "index"  # which rows carry logits: "index", "token" or "row"
    index_type: int = TensorProto.INT32
    position_components: int = 0  # 0: no position_ids; 1: [tokens]; 3: [3, tokens]
    metadata: bool = True
    seed: int = 1
    extra_inputs: dict[str, tuple[int, list[int | str]]] = field(default_factory=dict)


def weights(decoder: Decoder) -> dict[str, Array]:
    """Returns the named float32-exact weights of ``decoder``."""
    rng = np.random.default_rng(decoder.seed)
    d = decoder.head_size
    shapes = {"embed": (VOCAB, HIDDEN), "head": (HIDDEN, VOCAB)}
    for i in range(decoder.layers):
        shapes[f"q.{i}"] = (HIDDEN, decoder.heads * d)
        shapes[f"k.{i}"] = shapes[f"v.{i}"] = (HIDDEN, decoder.kv_heads * d)
        shapes[f"o.{i}"] = (decoder.heads * d, HIDDEN)
    return {
        name: (rng.standard_normal(shape) * (1.0 if name == "embed" else 0.3)).astype(np.float32).astype(np.float64)
        for name, shape in shapes.items()
    }


def options(decoder: Decoder, layer: int) -> dict[str, Array]:
    """Returns the float32-exact inputs of a layer's attention that are switched on, by the operator's names."""
    rng = np.random.default_rng(decoder.seed + 100 * layer + 50)
    drawn = {
        "head_sink": rng.uniform(-1, 2, decoder.heads),
        "q_norm_weight": rng.uniform(0.5, 1.5, decoder.head_size),
        "k_norm_weight": rng.uniform(0.5, 1.5, decoder.head_size),
        "k_scale": rng.uniform(0.03, 0.04, (decoder.kv_heads, 1, decoder.head_size)),
        "v_scale": rng.uniform(0.05, 0.06, 1),
    }
    quantized = decoder.cache_type == TensorProto.INT8
    on = [decoder.sinks, decoder.norm, decoder.norm, quantized, quantized]
    return {
        name: value.astype(np.float32).astype(np.float64)
        for (name, value), given in zip(drawn.items(), on, strict=True)
        if given
    }


def normalise(heads: Array, gains: Array | None) -> Array:
    """Returns ``heads`` [tokens, heads, head_size] after the RMS norm that there is if there are ``gains``."""
    return heads if gains is None else heads / np.sqrt((heads**2).mean(-1, keepdims=True) + 1e-6) * gains


def rotary_tables(decoder: Decoder) -> tuple[Array, Array]:
    """Returns the cos and sin tables, each [CONTEXT, rotary_dim / 2]."""
    frequencies = 1.0 / 100.0 ** (np.arange(0, decoder.rotary_dim, 2) / decoder.rotary_dim)
    angles = np.outer(np.arange(CONTEXT), frequencies)
    return (
        np.cos(angles).astype(np.float32).astype(np.float64),
        np.sin(angles).astype(np.float32).astype(np.float64),
    )


def rotate(decoder: Decoder, x: Array, positions: npt.NDArray[np.int64]) -> Array:
    """Rotates the first ``rotary_dim`` channels of ``x`` [tokens, heads, head_size]."""
    if not decoder.rotary_dim:
        return x
    cos, sin = (table[positions][:, None] for table in rotary_tables(decoder))
    n = decoder.rotary_dim
    first, second = (slice(0, n, 2), slice(1, n, 2)) if decoder.interleaved else (slice(0, n // 2), slice(n // 2, n))
    out = x.copy()
    out[..., first] = x[..., first] * cos - x[..., second] * sin
    out[..., second] = x[..., second] * cos + x[..., first] * sin
    return out


def stored(decoder: Decoder, x: Array, scale: Array | None) -> Array:
    """Returns what the cache holds after ``x`` [tokens, kv_heads, head_size] was written to it."""
    if scale is not None:
        steps = scale[:, 0] if scale.ndim == 3 else scale
        return np.clip(np.rint(x / steps), -128, 127) * steps
    if decoder.cache_type == TensorProto.BFLOAT16:
        return x.astype(np.float32).astype(ml_dtypes.bfloat16).astype(np.float64)
    if decoder.cache_type == TensorProto.FLOAT16:
        return x.astype(np.float32).astype(np.float16).astype(np.float64)
    return x


def attend(decoder: Decoder, layer: int, q: Array, k: Array, v: Array) -> Array:
    """Causal attention of one whole sequence; q, k, v are [tokens, heads * head_size]."""
    given = options(decoder, layer)
    n, d, groups = len(q), decoder.head_size, decoder.heads // decoder.kv_heads
    positions = np.arange(n)
    queries = rotate(decoder, normalise(q.reshape(n, decoder.heads, d), given.get("q_norm_weight")), positions)
    keys = rotate(decoder, normalise(k.reshape(n, decoder.kv_heads, d), given.get("k_norm_weight")), positions)
    keys = stored(decoder, keys, given.get("k_scale")).repeat(groups, 1)
    values = stored(decoder, v.reshape(n, decoder.kv_heads, d), given.get("v_scale")).repeat(groups, 1)
    scores = np.einsum("qhd,khd->hqk", queries, keys) * (decoder.scale or d**-0.5)
    if decoder.softcap:
        scores = decoder.softcap * np.tanh(scores / decoder.softcap)
    distance = positions[:, None] - positions[None]
    seen = (distance >= 0) & ((distance < decoder.window) | (decoder.window < 0))
    scores = np.where(seen, scores, -np.inf)
    highest = scores.max(-1, keepdims=True)
    probabilities = np.exp(scores - highest)
    sinks = np.exp(given["head_sink"][:, None, None] - highest) if decoder.sinks else 0
    probabilities /= probabilities.sum(-1, keepdims=True) + sinks
    return np.einsum("hqk,khd->qhd", probabilities, values).reshape(n, -1)


def logits(decoder: Decoder, tokens: list[int]) -> Array:
    """Float64 logits [tokens, VOCAB] of one sequence from its start."""
    w = weights(decoder)
    x = w["embed"][tokens]
    if decoder.position_components:
        x = x + 0.01 * np.arange(len(tokens))[:, None] * decoder.position_components
    for i in range(decoder.layers):
        x = x + np.tanh(attend(decoder, i, x @ w[f"q.{i}"], x @ w[f"k.{i}"], x @ w[f"v.{i}"]) @ w[f"o.{i}"])
    return x @ w["head"]


class Graph:
    """Collects nodes, weights and the graph's inputs and outputs."""

    def __init__(self) -> None:
        self.nodes: list[onnx.NodeProto] = []
        self.initializers: list[onnx.TensorProto] = []
        self.inputs: list[onnx.ValueInfoProto] = []
        self.outputs: list[onnx.ValueInfoProto] = []

    def add(self, op: str, inputs: list[str], output: str, domain: str = "", **attributes: Any) -> str:
        """Adds a node of one output and returns the output's name."""
        self.nodes.append(helper.make_node(op, inputs, [output], f"/{output}", domain=domain, **attributes))
        return output

    def constant(self, name: str, value: npt.ArrayLike, dtype: type) -> str:
        """Adds a weight and returns its name."""
        self.initializers.append(numpy_helper.from_array(np.asarray(value).astype(dtype), name))
        return name

    def input(self, name: str, dtype: int, shape: list[int | str]) -> str:
        """Declares a graph input and returns its name."""
        self.inputs.append(helper.make_tensor_value_info(name, dtype, shape))
        return name

    def output(self, name: str, dtype: int, shape: list[int | str]) -> None:
        """Declares the value ``name`` as a graph output."""
        self.outputs.append(helper.make_tensor_value_info(name, dtype, shape))

    def model(self) -> onnx.ModelProto:
        """Returns the whole model."""
        graph = helper.make_graph(self.nodes, "decoder", self.inputs, self.outputs, self.initializers)
        opsets = [helper.make_opsetid("", 18), helper.make_opsetid(MICROSOFT, 1)]
        return helper.make_model(graph, opset_imports=opsets, ir_version=10, producer_name="oga-test")


def attention_node(graph: Graph, decoder: Decoder, layer: int, qkv: list[str]) -> str:
    """Adds one PagedAttention node and returns the name of its output."""
    attributes: dict[str, Any] = {"num_heads": decoder.heads, "kv_num_heads": decoder.kv_heads}
    if decoder.rotary_dim:
        attributes |= {"do_rotary": 1, "rotary_interleaved": int(decoder.interleaved)}
    if decoder.window > 0:
        attributes["local_window_size"] = decoder.window
    if decoder.scale is not None:
        attributes["scale"] = decoder.scale
    if decoder.softcap:
        attributes["softcap"] = decoder.softcap
    given = options(decoder, layer)
    if "k_scale" in given:
        attributes |= {"k_quant_type": "PER_CHANNEL", "v_quant_type": "PER_TENSOR"}
    caches = [f"past_key_values.{layer}.{side}" for side in ("key", "value")]
    tables = ["cumulative_sequence_lengths", "past_sequence_lengths", "block_table"]
    rotary = ["cos_cache", "sin_cache"] if decoder.rotary_dim else ["", ""]
    names = ["head_sink", "q_norm_weight", "k_norm_weight", "k_scale", "v_scale"]
    for name, value in given.items():
        graph.constant(f"{name}.{layer}", value, np.float32)
    tail = ["", *(f"{name}.{layer}" if name in given else "" for name in names)]
    tail += ["attention_metadata"] if decoder.metadata else []
    outputs = [f"attention.{layer}", f"present.{layer}.key", f"present.{layer}.value"]
    inputs = qkv + caches + tables + rotary + tail
    while not inputs[-1]:
        inputs.pop()
    graph.nodes.append(
        helper.make_node("PagedAttention", inputs, outputs, f"/layers.{layer}/attn", domain=MICROSOFT, **attributes)
    )
    return outputs[0]


def declare_tables(graph: Graph, decoder: Decoder) -> None:
    """Declares the packed inputs and the caches."""
    graph.input("input_ids", TensorProto.INT64, ["num_tokens"])
    graph.input("cumulative_sequence_lengths", TensorProto.INT32, ["batch_size_plus_1"])
    graph.input("past_sequence_lengths", TensorProto.INT32, ["batch_size"])
    graph.input("block_table", TensorProto.INT32, ["batch_size", "max_blocks"])
    if decoder.metadata:
        graph.input("attention_metadata", TensorProto.INT32, [3])
    if decoder.position_components:
        shape: list[int | str] = ["num_tokens"] if decoder.position_components == 1 else [3, "num_tokens"]
        graph.input("position_ids", TensorProto.INT64, shape)
    if decoder.logits == "index":
        graph.input("logits_indices", decoder.index_type, ["num_logits"])
    for name, (dtype, shape) in decoder.extra_inputs.items():
        graph.input(name, dtype, shape)
    for i in range(decoder.layers):
        for side in ("key", "value"):
            cache: list[int | str] = ["num_blocks", "block_size", decoder.kv_heads, decoder.head_size]
            graph.input(f"past_key_values.{i}.{side}", decoder.cache_type, cache)
            graph.output(f"present.{i}.{side}", decoder.cache_type, cache)


def embed(graph: Graph, decoder: Decoder) -> str:
    """Adds the token embedding, with the positions mixed in where the decoder reads them."""
    x = graph.add("Gather", ["embed", "input_ids"], "embedded")
    if not decoder.position_components:
        return x
    positions = graph.add("Cast", ["position_ids"], "position_floats", to=TensorProto.FLOAT)
    if decoder.position_components == 3:
        axis = graph.constant("axis_0", [0], np.int64)
        positions = graph.add("ReduceSum", [positions, axis], "position_sums", keepdims=0)
    step = graph.constant("position_step", 0.01, np.float32)
    column = graph.constant("axis_1", [1], np.int64)
    scaled = graph.add("Mul", [graph.add("Unsqueeze", [positions, column], "position_column"), step], "position_offset")
    return graph.add("Add", [x, scaled], "positioned")


def select_rows(graph: Graph, decoder: Decoder, x: str) -> tuple[str, str]:
    """Adds the choice of the rows that get logits; returns them and the symbol of their number."""
    if decoder.logits == "token":
        return x, "num_tokens"
    if decoder.logits == "index":
        return graph.add("Gather", [x, "logits_indices"], "selected"), "num_logits"
    bounds = [graph.constant(name, [value], np.int64) for name, value in (("one", 1), ("end", 2**31 - 1))]
    ends = graph.add("Slice", ["cumulative_sequence_lengths", *bounds], "row_ends")
    last = graph.add("Sub", [ends, graph.constant("one_32", 1, np.int32)], "last_tokens")
    return graph.add("Gather", [x, last], "selected"), "batch_size"


def build(decoder: Decoder) -> onnx.ModelProto:
    """Returns the graph of ``decoder``."""
    graph = Graph()
    declare_tables(graph, decoder)
    w = weights(decoder)
    for name, value in w.items():
        if not (decoder.packed and name[0] in "qkv" and name[1] == "."):
            graph.constant(name, value, np.float32)
    if decoder.rotary_dim:
        for name, table in zip(("cos_cache", "sin_cache"), rotary_tables(decoder), strict=True):
            graph.constant(name, table, np.float32)
    x = embed(graph, decoder)
    for i in range(decoder.layers):
        if decoder.packed:
            joined = np.concatenate([w[f"{part}.{i}"] for part in "qkv"], axis=1)
            qkv = [graph.add("MatMul", [x, graph.constant(f"qkv.{i}", joined, np.float32)], f"qkv_proj.{i}"), "", ""]
        else:
            qkv = [graph.add("MatMul", [x, f"{part}.{i}"], f"{part}_proj.{i}") for part in "qkv"]
        mixed = graph.add("MatMul", [attention_node(graph, decoder, i, qkv), f"o.{i}"], f"o_proj.{i}")
        x = graph.add("Add", [x, graph.add("Tanh", [mixed], f"tanh.{i}")], f"hidden.{i}")
    rows, symbol = select_rows(graph, decoder, x)
    graph.add("MatMul", [rows, "head"], "logits")
    graph.output("logits", TensorProto.FLOAT, [symbol, VOCAB])
    return graph.model()
