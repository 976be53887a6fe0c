"""One-node graphs of MatMulNBits and of the gated form, with inputs and the product in double precision beside them.

FOLDER/<case>.onnx takes ``x`` and gives ``y``; <case>.x.f32 and <case>.y.f64 hold them raw, of shape [2, ROWS / 2, K]
and [2, ROWS / 2, N]. FOLDER/refused/ holds graphs that must not load.
"""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

ROWS = 6
PLAIN_INPUTS = ("codes", "scales", "zeros", "group_index", "bias")


@dataclass(frozen=True)
class Case:
    """A product: the form of its weights, and what its activations are like."""

    k: int = 160
    n: int = 72
    bits: int = 4
    block_size: int = 32
    zeros: str = ""  # "uint8" or "float"
    bias: bool = False
    outliers: float = 1.0  # four positions of K have activations this many times larger
    computed: bool = False  # the weights are graph inputs as far as the runtime can tell
    seed: int = 1
    gated: bool = False  # oga's GatedMatMulNBits: a second matrix of the same form


# The product itself is tested at native/kernels; these are the ways through the operator.
CASES = {
    "plain": Case(),
    "eight_bits": Case(bits=8, zeros="uint8", seed=2),
    "everything": Case(k=200, n=37, block_size=64, zeros="uint8", bias=True, seed=3),
    "float_zeros": Case(k=128, block_size=16, zeros="float", bias=True, seed=4),
    "large_blocks": Case(k=300, n=5, bits=8, block_size=256, bias=True, seed=5),
    "computed": Case(zeros="uint8", computed=True, seed=6),
    "outliers": Case(k=896, n=256, outliers=100.0, seed=7),
    "eight_bit_outliers": Case(k=896, n=256, bits=8, outliers=100.0, seed=8),
    "gated": Case(n=70, zeros="uint8", seed=9, gated=True),
    "gated_eight_bits": Case(k=200, n=33, bits=8, seed=11, gated=True),
    "gated_computed": Case(zeros="float", computed=True, seed=13, gated=True),
}


def packed(codes: np.ndarray[Any, Any], bits: int) -> np.ndarray[Any, Any]:
    """Puts two codes of 4 bits along the last axis into a byte, the first one lower."""
    if bits == 8:
        return codes
    if codes.shape[-1] % 2:
        codes = np.concatenate([codes, np.zeros_like(codes[..., :1])], axis=-1)
    low, high = codes[..., 0::2], codes[..., 1::2]
    return np.asarray(low | high << 4, dtype=np.uint8)


def quantised(case: Case) -> tuple[dict[str, np.ndarray[Any, Any]], np.ndarray[Any, Any]]:
    """Returns the operator's constants by name, and the weights they stand for as float64 [n, k]."""
    random = np.random.default_rng(case.seed)
    blocks = -(-case.k // case.block_size)
    codes = random.integers(0, 1 << case.bits, (case.n, blocks, case.block_size), dtype=np.uint8)
    scales = (0.01 + 0.02 * random.random((case.n, blocks))).astype(np.float32)
    zeros: np.ndarray[Any, Any] = np.full((case.n, blocks), 1 << (case.bits - 1), np.float32)
    inputs = {"codes": packed(codes, case.bits), "scales": scales}
    if case.zeros == "uint8":
        zeros = random.integers(0, 1 << case.bits, (case.n, blocks), dtype=np.uint8)
        inputs["zeros"] = packed(zeros, case.bits)
    if case.zeros == "float":
        zeros = (zeros + random.standard_normal(zeros.shape)).astype(np.float32)
        inputs["zeros"] = zeros
    if case.bias:
        inputs["bias"] = random.standard_normal(case.n).astype(np.float32)
    weights = (codes.astype(np.float64) - zeros[..., None]) * scales[..., None].astype(np.float64)
    return inputs, weights.reshape(case.n, -1)[:, : case.k]


def gated(case: Case) -> tuple[dict[str, np.ndarray[Any, Any]], np.ndarray[Any, Any], np.ndarray[Any, Any]]:
    """Returns the constants of both matrices, and the weights of each."""
    inputs, weights = quantised(case)
    second, up = quantised(dataclasses.replace(case, seed=case.seed + 1))
    return inputs | {f"up_{name}": value for name, value in second.items()}, weights, up


def graph(case: Case, inputs: dict[str, np.ndarray[Any, Any]], activations: int, **attributes: Any) -> onnx.ModelProto:
    """Returns the graph of one node; ``attributes`` are set beside the usual ones, or instead of them."""
    order = ("codes", "scales", "up_codes", "up_scales", "zeros", "up_zeros") if case.gated else PLAIN_INPUTS
    names = ["x"] + [name if name in inputs else "" for name in order]
    while not names[-1]:
        names.pop()
    settings = {"K": case.k, "N": case.n, "bits": case.bits, "block_size": case.block_size, "accuracy_level": 4}
    operator, domain = ("GatedMatMulNBits", "oga") if case.gated else ("MatMulNBits", "com.microsoft")
    node = helper.make_node(operator, names, ["y"], "/mlp", domain=domain, **(settings | attributes))
    infos = [helper.make_tensor_value_info("x", activations, ["batch", "rows", case.k])]
    constants = []
    for name, value in inputs.items():
        tensor = numpy_helper.from_array(value, name)
        if case.computed:
            infos.append(helper.make_tensor_value_info(name, tensor.data_type, value.shape))
        constants.append(tensor)
    output = helper.make_tensor_value_info("y", activations, ["batch", "rows", case.n])
    body = helper.make_graph([node], "one_node", infos, [output], constants)
    opsets = [helper.make_opsetid("", 18), helper.make_opsetid(domain, 1)]
    return helper.make_model(body, opset_imports=opsets, ir_version=10)


def refused() -> dict[str, onnx.ModelProto]:
    """Returns graphs that our kernel must refuse when they are loaded."""
    f32, f16 = TensorProto.FLOAT, TensorProto.FLOAT16
    case = Case()
    inputs, _ = quantised(case)
    halves = {name: value.astype(np.float16) if name == "scales" else value for name, value in inputs.items()}
    order = np.zeros(case.k, np.int32)
    pair = CASES["gated"]
    both, *_ = gated(pair)
    return {
        "group_index": graph(case, inputs | {"group_index": order}, f32),
        "float16": graph(case, halves, f16),
        "float16_zeros": graph(case, inputs | {"zeros": np.zeros((case.n, 5), np.float16)}, f32),
        "two_bits": graph(case, inputs, f32, bits=2),
        "odd_block": graph(case, inputs, f32, block_size=48),
        "prepacked": graph(case, inputs, f32, weight_prepacked=1),
        "no_columns": graph(case, inputs, f32, N=0),
        "few_codes": graph(case, inputs | {"codes": inputs["codes"][:-1]}, f32),
        "few_zeros": graph(case, inputs | {"zeros": np.zeros((case.n, 2), np.uint8)}, f32),
        "gated_few_codes": graph(pair, both | {"up_codes": both["up_codes"][:-1]}, f32),
        "gated_one_zero": graph(pair, {name: value for name, value in both.items() if name != "up_zeros"}, f32),
        "gated_two_bits": graph(pair, both, f32, bits=2),
    }


def write(folder: Path) -> None:
    """Writes every case."""
    (folder / "refused").mkdir(parents=True, exist_ok=True)
    for name, case in CASES.items():
        inputs, weights, *up = gated(case) if case.gated else quantised(case)
        random = np.random.default_rng(case.seed + 100)
        x = random.standard_normal((2, ROWS // 2, case.k)).astype(np.float32)
        x[..., random.choice(case.k, 4, replace=False)] *= np.float32(case.outliers)
        y = x.astype(np.float64) @ weights.T + inputs.get("bias", np.zeros(case.n, np.float32))
        if case.gated:
            y = y / (1 + np.exp(-y)) * (x.astype(np.float64) @ up[0].T)
        onnx.save_model(graph(case, inputs, TensorProto.FLOAT), folder / f"{name}.onnx")
        (folder / f"{name}.x.f32").write_bytes(x.tobytes())
        (folder / f"{name}.y.f64").write_bytes(y.tobytes())
    for name, model in refused().items():
        onnx.save_model(model, folder / "refused" / f"{name}.onnx")
