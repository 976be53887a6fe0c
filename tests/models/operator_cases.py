"""One-node graphs that PagedAttention on the CPU must take, or refuse when they are loaded."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

HEADS, KV_HEADS = 4, 2
INPUTS = [
    "query", "key", "value", "key_cache", "value_cache", "cumulative", "past", "table", "cos", "sin",
    "slot_mapping", "head_sink", "q_norm", "k_norm", "k_scale", "v_scale", "metadata",
]  # fmt: skip


def graph(
    head_size: int = 8,
    activations: int = TensorProto.FLOAT,
    cache: int = TensorProto.FLOAT,
    lengths: int = TensorProto.INT32,
    given: dict[str, tuple[int, list[int | str]]] | None = None,
    absent: tuple[str, ...] = (),
    outputs: int = 3,
    **attributes: Any,
) -> onnx.ModelProto:
    """Returns a graph of one node; ``given`` adds optional inputs, ``absent`` takes usual ones away."""
    width = head_size * KV_HEADS
    shapes: dict[str, tuple[int, list[int | str]]] = {
        "query": (activations, ["tokens", head_size * HEADS]),
        "key": (activations, ["tokens", width]),
        "value": (activations, ["tokens", width]),
        "key_cache": (cache, ["blocks", 4, KV_HEADS, head_size]),
        "value_cache": (cache, ["blocks", 4, KV_HEADS, head_size]),
        "cumulative": (lengths, ["rows_plus_1"]),
        "past": (lengths, ["rows"]),
        "table": (lengths, ["rows", "columns"]),
    }
    shapes = {name: shape for name, shape in (shapes | (given or {})).items() if name not in absent}
    names = [name if name in shapes else "" for name in INPUTS]
    while not names[-1]:
        names.pop()
    settings = {"num_heads": HEADS, "kv_num_heads": KV_HEADS} | attributes
    settings = {name: value for name, value in settings.items() if value is not None}
    results = ["output", "key_cache_out", "value_cache_out"][:outputs]
    node = helper.make_node("PagedAttention", names, results, "/attn", domain="com.microsoft", **settings)
    inputs = [helper.make_tensor_value_info(name, dtype, shape) for name, (dtype, shape) in shapes.items()]
    kinds = [(activations, ["tokens", "width"]), shapes["key_cache"], shapes["value_cache"]]
    infos = [helper.make_tensor_value_info(name, *kind) for name, kind in zip(results, kinds, strict=False)]
    body = helper.make_graph([node], "one_node", inputs, infos)
    opsets = [helper.make_opsetid("", 18), helper.make_opsetid("com.microsoft", 1)]
    return helper.make_model(body, opset_imports=opsets, ir_version=10)


def optional_inputs(activations: int, head_size: int = 16) -> dict[str, tuple[int, list[int | str]]]:
    """Returns every optional input of a node over int8 caches, with a key scale per channel."""
    return {
        "cos": (activations, [64, (head_size - 8) // 2]),
        "sin": (activations, [64, (head_size - 8) // 2]),
        "slot_mapping": (TensorProto.INT32, ["tokens"]),
        "head_sink": (activations, [HEADS]),
        "q_norm": (activations, [head_size]),
        "k_norm": (activations, [head_size]),
        "k_scale": (TensorProto.FLOAT, ["scale_heads", "one", head_size]),
        "v_scale": (TensorProto.FLOAT, [1]),
        "metadata": (TensorProto.INT32, [3]),
    }


def with_everything(activations: int) -> onnx.ModelProto:
    """Returns a graph whose node has every option that the CPU kernel takes."""
    return graph(
        head_size=16,
        activations=activations,
        cache=TensorProto.INT8,
        given=optional_inputs(activations),
        do_rotary=1,
        rotary_offset=8,
        rotary_interleaved=1,
        softcap=5.0,
        scale=0.3,
        qk_norm_epsilon=1e-3,
        local_window_size=6,
        k_quant_type="PER_CHANNEL",
        v_quant_type="PER_TENSOR",
        k_cache_dtype="int8",
    )


def cases() -> dict[str, onnx.ModelProto]:
    """Returns the graphs by name; those that begin with ``accepted`` load."""
    f32, f16, i8, i32 = TensorProto.FLOAT, TensorProto.FLOAT16, TensorProto.INT8, TensorProto.INT32
    norm: dict[str, tuple[int, list[int | str]]] = {"q_norm": (f32, [8]), "k_norm": (f32, [8])}
    scales: dict[str, tuple[int, list[int | str]]] = {"k_scale": (f32, [1]), "v_scale": (f32, [1])}
    rotary: dict[str, tuple[int, list[int | str]]] = {"cos": (f32, [64, 4]), "sin": (f32, [64, 4])}
    in_steps = {"k_quant_type": "PER_TENSOR", "v_quant_type": "PER_TENSOR"}
    return {
        "accepted": graph(given=rotary | {"metadata": (i32, [3])}, do_rotary=1),
        "accepted_float16_cache": graph(cache=f16),
        "accepted_bfloat16_cache": graph(cache=TensorProto.BFLOAT16),
        "accepted_everything": with_everything(f32),
        "accepted_everything_float16": with_everything(f16),
        "accepted_everything_bfloat16": with_everything(TensorProto.BFLOAT16),
        "no_cache_outputs": graph(outputs=1),
        "negative_softcap": graph(softcap=-50.0),
        "one_norm": graph(given={"q_norm": norm["q_norm"]}),
        "negative_epsilon": graph(given=norm, qk_norm_epsilon=-1.0),
        "double_sink": graph(given={"head_sink": (TensorProto.DOUBLE, [HEADS])}),
        "int64_slots": graph(given={"slot_mapping": (TensorProto.INT64, ["tokens"])}),
        "scale_of_floats": graph(given=scales),
        "int8_cache_without_type": graph(cache=i8, given=scales),
        "int8_cache_without_scale": graph(cache=i8, given={"k_scale": scales["k_scale"]}, **in_steps),
        "float16_scale": graph(cache=i8, given=scales | {"v_scale": (f16, [1])}, **in_steps),
        "uint8_cache": graph(cache=TensorProto.UINT8, given=scales, k_cache_dtype="int4", **in_steps),
        "double_activations": graph(activations=TensorProto.DOUBLE),
        "mixed_activations": graph(given={"value": (f16, ["tokens", 16])}),
        "mixed_caches": graph(given={"value_cache": (f16, ["blocks", 4, KV_HEADS, 8])}),
        "int64_lengths": graph(lengths=TensorProto.INT64),
        "not_causal": graph(is_causal=0),
        "rotary_offset": graph(rotary_offset=4),
        "v_head_size": graph(v_head_size=4, scale=0.5),
        "latent": graph(kv_cache_layout="LATENT"),
        "quantized": graph(k_quant_type="PER_TENSOR"),
        "unknown_quantization": graph(v_quant_type="PER_BLOCK"),
        "packed_cache_type": graph(k_cache_dtype="int4"),
        "key_without_value": graph(absent=("value",)),
        "rotary_without_tables": graph(do_rotary=1),
        "window_zero": graph(local_window_size=0),
        "uneven_heads": graph(num_heads=3),
        "no_heads": graph(num_heads=0),
        "missing_heads": graph(kv_num_heads=None),
        "odd_head_size": graph(head_size=12),
        "large_head_size": graph(head_size=1024),
    }


def add_one() -> onnx.ModelProto:
    """Returns a graph that adds one to a vector of any length; what a session does without our operators."""
    x = helper.make_tensor_value_info("x", TensorProto.FLOAT, ["n"])
    y = helper.make_tensor_value_info("y", TensorProto.FLOAT, ["n"])
    one = numpy_helper.from_array(np.ones(1, np.float32), "one")
    body = helper.make_graph([helper.make_node("Add", ["x", "one"], ["y"], "add")], "add_one", [x], [y], [one])
    return helper.make_model(body, opset_imports=[helper.make_opsetid("", 18)], ir_version=10)
