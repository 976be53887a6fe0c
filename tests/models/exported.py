"""What an exported folder holds: its initializers, and the weights that its blocks stand for."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import onnx
from onnx import numpy_helper
from paged_oracle import decoded_blocks


def arrays_of(folder: Path) -> dict[str, npt.NDArray[Any]]:
    """All initializers by name."""
    graph = onnx.load(folder / "model.onnx").graph
    return {tensor.name: numpy_helper.to_array(tensor) for tensor in graph.initializer}


def block_weights(folder: Path) -> dict[str, npt.NDArray[np.float32]]:
    """The float weights of every matrix that is stored in blocks, by Hugging Face name."""
    arrays = arrays_of(folder)
    graph = onnx.load(folder / "model.onnx", load_external_data=False).graph
    result = {}
    for node in graph.node:
        if node.op_type not in ("MatMulNBits", "GatherBlockQuantized"):
            continue
        attributes = {attribute.name: attribute.i for attribute in node.attribute}
        gathered = node.op_type == "GatherBlockQuantized"
        names = [*node.input, "", ""]
        codes, scales, zero = arrays[names[0 if gathered else 1]], arrays[names[2]], arrays.get(names[3])
        stem = names[2].removesuffix(".scales")
        weights = decoded_blocks(codes.reshape(*scales.shape, -1), scales, zero, attributes["bits"])
        if gathered and f"{stem}.offsets" in arrays:
            weights += arrays[f"{stem}.offsets"].repeat(attributes["block_size"], axis=1)
        name = f"{stem}.weight"
        np.testing.assert_allclose(weights, result.get(name, weights), rtol=1e-5, atol=1e-6)
        result[name] = weights
    return result


def block_shapes(folder: Path) -> dict[str, tuple[int, int, bool]]:
    """Bits, block size, and whether there are zero points, of every matrix that is multiplied with, by its name."""
    graph = onnx.load(folder / "model.onnx", load_external_data=False).graph
    result = {}
    for node in graph.node:
        if node.op_type == "MatMulNBits":
            attributes = {attribute.name: attribute.i for attribute in node.attribute}
            shape = attributes["bits"], attributes["block_size"], len(node.input) > 3 and bool(node.input[3])
            result[node.input[2].removesuffix(".scales")] = shape
    return result
