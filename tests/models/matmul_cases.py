"""Small graphs of MatMul and Gemm, with inputs and the product in double precision beside them.

FOLDER/<case>.onnx takes ``x`` and gives ``y``; <case>.x.f32 and <case>.y.f64 hold them raw, ROWS rows in all of K and
of N numbers. FOLDER/refused/ holds graphs that must not load.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

ROWS = 6
F32, F16, BF16 = TensorProto.FLOAT, TensorProto.FLOAT16, TensorProto.BFLOAT16
Array = np.ndarray[Any, Any]


@dataclass(frozen=True)
class Case:
    """A product: its operator, the types of both sides, and what its numbers are like."""

    operator: str = "MatMul"
    domain: str = ""
    k: int = 160
    n: int = 72
    weights: int = F32
    activations: int = F32  # x itself is float32, and so is y
    transposed: bool = False
    bias: tuple[int, ...] = ()  # its shape
    batch: tuple[int, ...] = ()  # dimensions of x in front of the rows
    outliers: float = 1.0  # four positions of K have activations this many times larger
    computed: bool = False  # the weights are a graph input as far as the runtime can tell
    added: bool = False  # the bias by an Add, which the runtime would fuse with a MatMul
    alpha: float = 1.0
    shape: tuple[int, ...] = ()  # of the weights, when it is not (K, N)
    opaque: bool = False  # the runtime cannot tell how many dimensions x has
    seed: int = 1


# The product itself is tested at native/kernels; these are the ways through the operators.
CASES = {
    "matmul": Case(batch=(2,)),
    "gemm": Case(operator="Gemm", k=201, n=37, transposed=True, bias=(37,), seed=2),
    "added": Case(bias=(72,), added=True, seed=3),
    "outliers": Case(k=896, n=256, outliers=100.0, seed=4),
    "one_column": Case(k=33, n=1, batch=(1, 1), seed=5),
    "own_bf16": Case(operator="Gemm", domain="oga", weights=BF16, transposed=True, bias=(72,), seed=6),
    "own_fp16": Case(operator="Gemm", domain="oga", weights=F16, seed=7),
    "bf16": Case(weights=BF16, activations=BF16, batch=(2,), seed=8),
    "fp16": Case(operator="Gemm", weights=F16, activations=F16, bias=(1, 72), seed=9),
    "computed": Case(batch=(2,), computed=True, seed=10),
    "opaque": Case(batch=(2,), opaque=True, seed=12),
    "stacked": Case(batch=(2,), shape=(1, 160, 72), seed=13),
    "vector": Case(n=1, shape=(160,), seed=14),
    "scaled": Case(operator="Gemm", alpha=0.5, bias=(1, 1), transposed=True, seed=11),
}


def rounded(array: Array, dtype: int) -> tuple[onnx.TensorProto, Array]:
    """The array as a tensor of that type, and the values it has then, as float64."""
    if dtype == BF16:
        bits = array.astype(np.float32).view(np.uint32)
        halves = ((bits + 0x7FFF + (bits >> 16 & 1)) >> 16).astype(np.uint16)
        tensor = TensorProto(data_type=BF16, dims=array.shape, raw_data=halves.tobytes())
        return tensor, (halves.astype(np.uint32) << 16).view(np.float32).astype(np.float64)
    values = array.astype(np.float16 if dtype == F16 else np.float32)
    return numpy_helper.from_array(values), values.astype(np.float64)


def opaque_copy() -> list[onnx.NodeProto]:
    """Nodes that give opaque_x, which is x, but has another number of dimensions when x is empty."""
    kept = helper.make_graph(
        [helper.make_node("Identity", ["x"], ["same_x"])], "kept", [], [helper.make_empty_tensor_value_info("same_x")]
    )
    flat = helper.make_graph(
        [helper.make_node("Flatten", ["x"], ["flat_x"])], "flat", [], [helper.make_empty_tensor_value_info("flat_x")]
    )
    return [
        helper.make_node("Size", ["x"], ["size"], "/size"),
        helper.make_node("Cast", ["size"], ["is_filled"], "/is_filled", to=TensorProto.BOOL),
        helper.make_node("If", ["is_filled"], ["opaque_x"], "/opaque", then_branch=kept, else_branch=flat),
    ]


def build(case: Case) -> tuple[onnx.ModelProto, Array, Array]:
    """The graph, x and y."""
    random = np.random.default_rng(case.seed)
    x = random.standard_normal((*case.batch, ROWS // math.prod(case.batch), case.k)).astype(np.float32)
    x[..., random.choice(case.k, 4, replace=False)] *= np.float32(case.outliers)
    _, seen = rounded(x, case.activations)
    drawn = 0.05 * random.standard_normal((case.n, case.k) if case.transposed else (case.k, case.n))
    tensors = {"weights": rounded(drawn, case.weights)}
    if case.bias:
        tensors["bias"] = rounded(random.standard_normal(case.bias), case.activations)
    weights = tensors["weights"][1]
    if case.shape:
        tensors["weights"][0].dims[:] = case.shape
    y = case.alpha * (seen @ (weights.T if case.transposed else weights))
    if case.bias:
        y = y + tensors["bias"][1]

    attributes: dict[str, Any] = {}
    if case.operator == "Gemm":
        attributes = {"transB": int(case.transposed)} | ({"alpha": case.alpha} if case.alpha != 1 else {})
    casts = case.activations != F32
    inputs = [
        "narrow_x" if casts else "opaque_x" if case.opaque else "x",
        "weights",
        *(["bias"] if case.bias and not case.added else []),
    ]
    last = "narrow_y" if casts else "y"
    product = "product" if case.added or case.shape == (case.k,) else last
    nodes = [helper.make_node(case.operator, inputs, [product], "/mlp", domain=case.domain, **attributes)]
    if case.added:
        nodes.append(helper.make_node("Add", [product, "bias"], [last], "/add"))
    if case.shape == (case.k,):
        last_axis = numpy_helper.from_array(np.array([-1]), "last_axis")
        nodes.append(helper.make_node("Unsqueeze", [product, "last_axis"], [last], "/columns"))
        tensors["last_axis"] = last_axis, np.array([-1])
    if case.opaque:
        nodes[:0] = opaque_copy()
    if casts:
        nodes.insert(0, helper.make_node("Cast", ["x"], ["narrow_x"], "/narrow", to=case.activations))
        nodes.append(helper.make_node("Cast", ["narrow_y"], ["y"], "/widen", to=F32))
    batch: list[int | str] = ["batch", *case.batch[1:]] if case.batch else []
    infos = [helper.make_tensor_value_info("x", F32, [*batch, "rows", case.k])]
    for name, (tensor, _) in tensors.items():
        tensor.name = name
        if case.computed:
            infos.append(helper.make_tensor_value_info(name, tensor.data_type, list(tensor.dims)))
    output = helper.make_tensor_value_info("y", F32, [*batch, "rows", case.n])
    body = helper.make_graph(nodes, "product", infos, [output], [tensor for tensor, _ in tensors.values()])
    opsets = [helper.make_opsetid("", 18), helper.make_opsetid("oga", 1)]
    return helper.make_model(body, opset_imports=opsets, ir_version=10), x, y


def refused() -> dict[str, onnx.ModelProto]:
    """Graphs that our kernel must refuse when they are loaded."""
    own = {"operator": "Gemm", "domain": "oga", "weights": BF16}
    return {
        "computed": build(Case(**own, computed=True))[0],
        "scaled": build(Case(**own, alpha=0.5))[0],
        "bias": build(Case(**own, bias=(1, 1)))[0],
    }


def write(folder: Path) -> None:
    """Writes every case."""
    (folder / "refused").mkdir(parents=True, exist_ok=True)
    for name, case in CASES.items():
        model, x, y = build(case)
        onnx.save_model(model, folder / f"{name}.onnx")
        (folder / f"{name}.x.f32").write_bytes(x.tobytes())
        (folder / f"{name}.y.f64").write_bytes(y.astype(np.float64).tobytes())
    for name, model in refused().items():
        onnx.save_model(model, folder / "refused" / f"{name}.onnx")
