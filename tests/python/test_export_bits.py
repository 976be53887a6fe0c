"""What a row computes never depends on who shares its batch: every operator of an exported graph, bit for bit.

PagedAttention is not among them; its kernel has tests of its own.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import onnx
import onnxruntime
import pytest
from gguf import GGMLQuantizationType as Kind
from tiny_gguf import write_tiny_gguf
from tiny_llama import write_tiny_llama

from oga.export import convert

ROWS = 33
GROUPS = (1, 2, 5, 8, 16, 32)
THREADS = (1, 2)
# The odd widths of SmolLM2, and its vocabulary: an LM head that is cut among threads.
SMOLLM = {
    "hidden_size": 576,
    "intermediate_size": 1536,
    "num_hidden_layers": 1,
    "num_attention_heads": 9,
    "num_key_value_heads": 3,
    "vocab_size": 49152,
}
BIASED = {**SMOLLM, "vocab_size": 520, "attention_bias": True, "mlp_bias": True, "tie_word_embeddings": False}
QWEN = {**BIASED, "model_type": "qwen3", "head_dim": 64, "mlp_bias": False}
NARROW = {"num_hidden_layers": 1, "hidden_size": 40, "intermediate_size": 72, "num_attention_heads": 5}
Feeds = dict[str, npt.NDArray[Any]]


def export(name: str, folder: Path) -> onnx.ModelProto:
    """Exports a model that takes a way of its own through the graph builder."""
    kind, *words = name.split(" ")
    if kind == "gguf":  # int8: blocks with zero points, and blocks of 16
        kinds = {"": Kind.Q4_1 if "int8" in words else Kind.Q4_0, "ffn_down": Kind.Q6_K}
        source = write_tiny_gguf(folder / "tiny.gguf", kinds=kinds, **{**SMOLLM, "vocab_size": 520})
    else:
        changes = {"tied": SMOLLM, "biased": BIASED, "qwen": QWEN, "narrow": {**NARROW, "num_key_value_heads": 1}}[kind]
        source = write_tiny_llama(folder / "source", tokenizer=False, **changes)
    convert(source, folder / "model", **options(words))
    return onnx.load(folder / "model" / "model.onnx")


def options(words: list[str]) -> dict[str, Any]:
    """What the words of a model's name ask of ``convert``: only what ONNX Runtime's own kernels compute row by row."""
    return {
        "precision": words[0],
        "block_size": 16 if "16" in words else None,
        "symmetric": "symmetric" in words,
        "head_precision": "int8" if "head8" in words else None,
    }


@pytest.fixture(
    scope="module",
    params=[
        "tied fp32",
        "tied int8",
        "tied int4",
        "biased fp32",
        "biased int8",
        "biased int4 16",
        "narrow int8",
        "narrow int4",
        "qwen fp32",
        "qwen int4 symmetric",
        "gguf int8",
        "gguf int4 head8",
    ],
)
def model(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> onnx.ModelProto:
    return export(request.param, tmp_path_factory.mktemp("bits"))


def session(model: onnx.ModelProto, threads: int) -> onnxruntime.InferenceSession:
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads
    options.enable_mem_pattern = False
    options.log_severity_level = 3
    return onnxruntime.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])


def one_node_model(model: onnx.ModelProto, node: onnx.NodeProto) -> onnx.ModelProto:
    """The node alone, with its initializers; what other nodes compute becomes an input."""
    graph = model.graph
    constants = {tensor.name: tensor for tensor in graph.initializer}
    values = {value.name: value for value in [*graph.value_info, *graph.input, *graph.output]}
    inputs = [values[name] for name in dict.fromkeys(node.input) if name and name not in constants]
    return onnx.helper.make_model(
        onnx.helper.make_graph(
            [node],
            "one",
            inputs,
            [values[name] for name in node.output if name],
            [constants[name] for name in dict.fromkeys(node.input) if name in constants],
        ),
        opset_imports=model.opset_import,
        ir_version=model.ir_version,
    )


def random_inputs(model: onnx.ModelProto, vocab_size: int) -> Feeds:
    """Inputs of 33 rows."""
    random = np.random.default_rng(0)
    feeds: Feeds = {}
    for value in model.graph.input:
        tensor = value.type.tensor_type
        shape = [dim.dim_value or ROWS for dim in tensor.shape.dim]
        if tensor.elem_type == onnx.TensorProto.INT64:
            feeds[value.name] = random.integers(0, ROWS if value.name == "logits_indices" else vocab_size, shape)
        elif tensor.elem_type == onnx.TensorProto.UINT8:
            feeds[value.name] = random.integers(0, 256, shape).astype(np.uint8)
        else:
            feeds[value.name] = random.standard_normal(shape).astype(np.float32)
    return feeds


def rows_of(feeds: Feeds, rows: slice) -> Feeds:
    """The inputs of some rows. Rows that are chosen by index stay where they are."""
    chosen = "logits_indices" in feeds
    return {name: value if chosen and name != "logits_indices" else value[rows] for name, value in feeds.items()}


def assert_rows_are_independent(model: onnx.ModelProto, feeds: Feeds, what: str) -> None:
    """Runs all rows together, each alone, and in groups, on one thread and on two; compares memory."""
    whole: list[npt.NDArray[Any]] | None = None
    for threads in THREADS:
        runtime = session(model, threads)
        together = runtime.run(None, feeds)
        whole = whole or together
        for output, first in zip(together, whole, strict=True):
            assert output.tobytes() == first.tobytes(), f"{what} differs on {threads} threads"
        for size in GROUPS:
            for begin in range(0, ROWS, size):
                rows = slice(begin, begin + size)
                for output, first in zip(runtime.run(None, rows_of(feeds, rows)), whole, strict=True):
                    assert output.tobytes() == first[rows].tobytes(), (
                        f"{what} differs in rows {rows} on {threads} threads"
                    )


def test_every_operator_computes_a_row_alone_as_in_a_batch(model: onnx.ModelProto) -> None:
    vocab_size = model.graph.output[0].type.tensor_type.shape.dim[1].dim_value
    checked = set()
    for node in model.graph.node:
        if node.op_type != "PagedAttention" and node.domain != "oga":
            single = one_node_model(model, node)
            assert_rows_are_independent(single, random_inputs(single, vocab_size), node.name)
            checked.add(node.op_type)
    assert checked >= {"Gather", "RMSNormalization", "SkipSimplifiedLayerNormalization"}
    assert checked & {"Gemm", "MatMulNBits"}


def with_rowwise_attention(model: onnx.ModelProto) -> onnx.ModelProto:
    """The graph with each attention replaced by a product within the row, so that the runtime can run and fuse it."""
    copy = onnx.ModelProto()
    copy.CopyFrom(model)
    del copy.graph.node[:]
    copy.graph.node.extend(stand_ins(model))
    used = {name for node in copy.graph.node for name in node.input}
    inputs = [value for value in copy.graph.input if value.name in used]
    del copy.graph.input[:]
    copy.graph.input.extend(inputs)
    del copy.graph.output[1:]  # the caches
    return copy


def two_products(node: onnx.NodeProto) -> Iterator[onnx.NodeProto]:
    """What a gated product means, in operators of the runtime."""
    x, gate, gate_scales, up, up_scales, *zeros = node.input
    names = {side: f"{node.name}/{side}" for side in ("gate", "up", "sigmoid", "silu")}
    settings = {attribute.name: attribute.i for attribute in node.attribute} | {"accuracy_level": 4}
    for side, matrix in zip(
        ("gate", "up"), ([gate, gate_scales, *zeros[:1]], [up, up_scales, *zeros[1:]]), strict=True
    ):
        yield onnx.helper.make_node("MatMulNBits", [x, *matrix], [names[side]], domain="com.microsoft", **settings)
    yield onnx.helper.make_node("Sigmoid", [names["gate"]], [names["sigmoid"]])
    yield onnx.helper.make_node("Mul", [names["gate"], names["sigmoid"]], [names["silu"]])
    yield onnx.helper.make_node("Mul", [names["silu"], names["up"]], [node.output[0]])


def stand_ins(model: onnx.ModelProto) -> Iterator[onnx.NodeProto]:
    widths = {value.name: value.type.tensor_type.shape.dim[-1].dim_value for value in model.graph.value_info}
    for node in model.graph.node:
        if node.op_type == "GatedMatMulNBits":
            yield from two_products(node)
            continue
        if node.op_type != "PagedAttention":
            yield node
            continue
        attributes = {attribute.name: attribute.i for attribute in node.attribute}
        query, key, value = node.input[:3]
        group = attributes["num_heads"] // attributes["kv_num_heads"]
        if not key:  # packed
            parts = [f"{node.name}/{part}" for part in ("query", "key", "value")]
            sizes = f"{node.name}/sizes"
            head = widths[query] // (attributes["num_heads"] + 2 * attributes["kv_num_heads"])
            each = [head * attributes[name] for name in ("num_heads", "kv_num_heads", "kv_num_heads")]
            yield onnx.helper.make_node("Constant", [], [sizes], value_ints=each)
            yield onnx.helper.make_node("Split", [query, sizes], parts, axis=1)
            query, key, value = parts
        repeated = f"{node.name}/repeated"
        yield onnx.helper.make_node("Concat", ([key, value] * group)[:group], [repeated], axis=1)
        yield onnx.helper.make_node("Mul", [query, repeated], [node.output[0]])


def test_the_graph_as_the_runtime_fuses_it_computes_a_row_alone_as_in_a_batch(model: onnx.ModelProto) -> None:
    rowwise = with_rowwise_attention(model)
    random = np.random.default_rng(1)
    vocab_size = model.graph.output[0].type.tensor_type.shape.dim[1].dim_value
    tokens = random.integers(0, vocab_size, ROWS)
    for threads in THREADS:
        runtime = session(rowwise, threads)
        together = runtime.run(["logits"], {"input_ids": tokens, "logits_indices": np.arange(ROWS)})[0]
        assert np.isfinite(together).all()
        for size in GROUPS:
            for begin in range(0, ROWS, size):
                part = tokens[begin : begin + size]
                alone = runtime.run(["logits"], {"input_ids": part, "logits_indices": np.arange(len(part))})[0]
                assert alone.tobytes() == together[begin : begin + size].tobytes(), f"rows {begin}, {size} together"
        picked = np.array([30, 4, 17])
        chosen = runtime.run(["logits"], {"input_ids": tokens, "logits_indices": picked})[0]
        assert chosen.tobytes() == together[picked].tobytes()


def test_a_step_without_wanted_logits_runs(model: onnx.ModelProto) -> None:
    vocab_size = model.graph.output[0].type.tensor_type.shape.dim[1].dim_value
    runtime = session(with_rowwise_attention(model), 2)
    none = runtime.run(["logits"], {"input_ids": np.arange(5), "logits_indices": np.zeros(0, np.int64)})[0]
    assert none.shape == (0, vocab_size)
