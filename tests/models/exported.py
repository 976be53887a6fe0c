"""What an exported folder holds: its initializers, and the weights that its blocks stand for."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import onnx
from onnx import numpy_helper
from paged_oracle import decoded_blocks


def arrays_of(folder: Path) -> dict[str, npt.NDArray[Any]]:
    """All initializers by name; float weights and biases that stand in one array taken apart."""
    graph = onnx.load(folder / "model.onnx").graph
    return {
        name: part
        for tensor in graph.initializer
        for name, part in _parts_of(graph, tensor.name, numpy_helper.to_array(tensor))
    }


def block_weights(folder: Path) -> dict[str, npt.NDArray[np.float32]]:
    """The float weights of every matrix that is stored in blocks, by Hugging Face name."""
    arrays = arrays_of(folder)
    graph = onnx.load(folder / "model.onnx", load_external_data=False).graph
    result: dict[str, npt.NDArray[np.float32]] = {}
    for node in graph.node:
        attributes = {attribute.name: attribute.i for attribute in node.attribute}
        for codes, scales, zeros in _matrices_of(node):
            stem = scales.removesuffix(".scales")
            in_blocks = arrays[codes].reshape(*arrays[scales].shape, -1)
            weights = decoded_blocks(in_blocks, arrays[scales], arrays.get(zeros), attributes["bits"])
            if node.op_type == "GatherBlockQuantized" and f"{stem}.offsets" in arrays:
                weights += arrays[f"{stem}.offsets"].repeat(attributes["block_size"], axis=1)
            for name, rows in _parts_of(graph, f"{stem}.weight", weights):
                np.testing.assert_allclose(rows, result.get(name, rows), rtol=1e-5, atol=1e-6)
                result[name] = rows
    return result


def block_shapes(folder: Path) -> dict[str, tuple[int, int, bool]]:
    """Bits, block size, and whether there are zero points, of every matrix that is multiplied with, by its name."""
    graph = onnx.load(folder / "model.onnx", load_external_data=False).graph
    result = {}
    for node in graph.node:
        attributes = {attribute.name: attribute.i for attribute in node.attribute}
        for _, scales, zeros in _matrices_of(node):
            if node.op_type != "GatherBlockQuantized":
                shape = attributes["bits"], attributes["block_size"], bool(zeros)
                result[scales.removesuffix(".scales")] = shape
    return result


def _matrices_of(node: onnx.NodeProto) -> list[tuple[str, str, str]]:
    """The names of the codes, scales and zero points (empty for none) of each matrix in blocks that a node reads."""
    names = [*node.input, "", "", "", ""]
    if node.op_type == "MatMulNBits":
        return [(names[1], names[2], names[3])]
    if node.op_type == "GatherBlockQuantized":
        return [(names[0], names[2], names[3])]
    if node.op_type == "GatedMatMulNBits":
        return [(names[1], names[2], names[5]), (names[3], names[4], names[6])]
    return []


def _parts_of(graph: onnx.GraphProto, name: str, array: npt.NDArray[Any]) -> Iterator[tuple[str, npt.NDArray[Any]]]:
    """What the rows of an array are, by the names of Hugging Face."""
    prefix, _, ending = name.partition("qkv_proj.")
    if ending not in ("weight", "bias"):
        yield name, array
        return
    attention = next(node for node in graph.node if node.op_type == "PagedAttention")
    heads = {attribute.name: attribute.i for attribute in attention.attribute}
    size = len(array) // (heads["num_heads"] + 2 * heads["kv_num_heads"])
    borders = [heads["num_heads"] * size, (heads["num_heads"] + heads["kv_num_heads"]) * size]
    for part, rows in zip(("q_proj", "k_proj", "v_proj"), np.split(array, borders), strict=True):
        yield f"{prefix}{part}.{ending}", rows
