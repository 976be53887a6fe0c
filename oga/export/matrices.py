"""Matrices of a graph, in floats or in blocks: how they are stored, multiplied with, and looked up in.

A row's result must not depend on its batch, so only operator forms whose rows are independent are emitted: Gemm with a
constant, transposed right side, and MatMulNBits at accuracy_level 4. Both take weights as [outputs, inputs], so an
embedding that is tied to the LM head is stored once and read by both. Weights of 16 bits, under activations in float32,
are no inputs of ONNX's Gemm; the engine's own Gemm takes them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import onnx_ir as ir

from oga.export.graph_writer import CONTRIB, OWN, GraphWriter, dims_of
from oga.export.halves import to_bfloat16, to_float16
from oga.export.precision import FloatPrecision
from oga.export.quantization import QuantizedMatrix
from oga.export.source import WeightSource

_MATMUL_ACCURACY = 4  # activations rounded to 8 bits per block; the row-invariant form


@dataclass(frozen=True)
class FloatMatrix:
    """Weights [rows, columns] as float32, bfloat16 or float16."""

    weights: ir.Value


@dataclass(frozen=True)
class BlockMatrix:
    """Weights in blocks, see ``QuantizedMatrix``; ``offsets`` are for ``look_up`` where that cannot use zero points."""

    codes: ir.Value
    scales: ir.Value
    zero_points: ir.Value | None
    bits: int
    columns: int
    offsets: ir.Value | None

    @property
    def blocks(self) -> int:
        """Blocks of a row."""
        return dims_of(self.scales)[1]

    @property
    def block_size(self) -> int:
        """Weights of a block."""
        return dims_of(self.codes)[2] * 8 // self.bits


Matrix = FloatMatrix | BlockMatrix


def store_floats(
    graph: GraphWriter,
    source: WeightSource,
    name: str,
    parts: Mapping[str, int],
    columns: int,
    precision: FloatPrecision,
) -> FloatMatrix:
    """Writes the rows of ``parts`` below one another, as they are or rounded to 16 bits.

    Args:
        graph: receives them.
        source: has the parts.
        name: of the whole.
        parts: name and rows of each.
        columns: of all.
        precision: of a weight.

    Raises:
        ConversionError: for weights that float16 cannot hold.
    """
    arrays: list[np.ndarray[Any, Any]] = []
    for part, rows in parts.items():
        weights = source.read(f"{part}.weight", rows, columns)
        if precision == "bf16":
            arrays.append(to_bfloat16(weights))
        elif precision == "fp16":
            arrays.append(to_float16(weights, f"{source.path}: tensor {part}.weight"))
        else:
            arrays.append(weights)
    whole = arrays[0] if len(arrays) == 1 else np.concatenate(arrays)
    return FloatMatrix(graph.store(f"{name}.weight", whole, ir.DataType.BFLOAT16 if precision == "bf16" else None))


def store_blocks(graph: GraphWriter, name: str, matrix: QuantizedMatrix, *, looked_up: bool) -> BlockMatrix:
    """Writes the blocks of a matrix; ``looked_up`` says that ``look_up`` will read it."""
    zero_points = matrix.zero_points
    offsets = matrix.offsets() if looked_up and _needs_offsets(matrix) else None
    return BlockMatrix(
        codes=graph.store(f"{name}.codes", matrix.codes),
        scales=graph.store(f"{name}.scales", matrix.scales),
        zero_points=None if zero_points is None else graph.store(f"{name}.zero_points", zero_points),
        bits=matrix.bits,
        columns=matrix.columns,
        offsets=None if offsets is None else graph.store(f"{name}.offsets", offsets),
    )


def multiply(
    graph: GraphWriter, x: ir.Value, matrix: Matrix, name: str, bias: ir.Value | None, output: str | None = None
) -> ir.Value:
    """``x`` times the transposed matrix, plus the bias."""
    if isinstance(matrix, FloatMatrix):
        inputs = [x, matrix.weights] if bias is None else [x, matrix.weights, bias]
        domain = "" if matrix.weights.dtype == ir.DataType.FLOAT else OWN
        outputs = dims_of(matrix.weights)[0]
        return graph.node("Gemm", inputs, f"{name}/Gemm", outputs, domain=domain, output=output, transB=1)
    optional = [matrix.zero_points, None, bias]
    while optional and optional[-1] is None:
        optional.pop()
    outputs = dims_of(matrix.codes)[0]
    return graph.node(
        "MatMulNBits",
        [x, matrix.codes, matrix.scales, *optional],
        f"{name}/MatMulNBits",
        outputs,
        domain=CONTRIB,
        output=output,
        N=outputs,
        K=matrix.columns,
        bits=matrix.bits,
        block_size=matrix.block_size,
        accuracy_level=_MATMUL_ACCURACY,
    )


def multiply_gated(graph: GraphWriter, x: ir.Value, gate: Matrix, up: Matrix, name: str) -> ir.Value | None:
    """SwiGLU: silu of ``x`` times one transposed matrix, times ``x`` times the other.

    An operator of the engine's own, which never writes the two products. None when it does not take such matrices.
    """
    if not isinstance(gate, BlockMatrix) or not isinstance(up, BlockMatrix):
        return None
    types = [None if each.zero_points is None else each.zero_points.dtype for each in (gate, up)]
    if types[0] != types[1] or dims_of(gate.codes) != dims_of(up.codes) or gate.bits != up.bits:
        return None
    outputs = dims_of(gate.codes)[0]
    zero_points = [] if gate.zero_points is None else [gate.zero_points, up.zero_points]
    return graph.node(
        "GatedMatMulNBits",
        [x, gate.codes, gate.scales, up.codes, up.scales, *zero_points],
        f"{name}/GatedMatMulNBits",
        outputs,
        domain=OWN,
        N=outputs,
        K=gate.columns,
        bits=gate.bits,
        block_size=gate.block_size,
    )


def look_up(graph: GraphWriter, matrix: Matrix, rows: ir.Value, name: str) -> ir.Value:
    """The rows of a matrix that an input names, as floats. No second, decoded copy of the matrix is made."""
    if isinstance(matrix, FloatMatrix):
        columns, stored = dims_of(matrix.weights)[1], matrix.weights.dtype or ir.DataType.FLOAT
        found = graph.node("Gather", [matrix.weights, rows], f"{name}/Gather", columns, dtype=stored)
        if stored == ir.DataType.FLOAT:
            return found
        return graph.node("Cast", [found], f"{name}/Cast", columns, to=ir.DataType.FLOAT.value)
    # The lookup wants the codes of a row in one dimension, the product in two.
    vocabulary, blocks, block_bytes = dims_of(matrix.codes)
    codes = graph.stored_again(f"{name}.code_rows", matrix.codes, vocabulary, blocks * block_bytes)
    zero_points = [matrix.zero_points] if matrix.zero_points is not None and matrix.offsets is None else []
    padded = matrix.blocks * matrix.block_size
    values = graph.node(
        "GatherBlockQuantized",
        [codes, rows, matrix.scales, *zero_points],
        f"{name}/GatherBlockQuantized",
        padded,
        domain=CONTRIB,
        gather_axis=0,
        quantize_axis=1,
        block_size=matrix.block_size,
        bits=matrix.bits,
    )
    if matrix.offsets is not None:
        values = _shift(graph, values, matrix, matrix.offsets, rows, name)
    if padded == matrix.columns:
        return values
    bounds = [
        graph.constant(f"{name}/{tag}", np.array([value], np.int64))
        for tag, value in (("begin", 0), ("end", matrix.columns), ("axis", 1))
    ]
    return graph.node("Slice", [values, *bounds], f"{name}/Slice", matrix.columns)


def _needs_offsets(matrix: QuantizedMatrix) -> bool:
    """Whether GatherBlockQuantized cannot take the zero points as they are.

    It knows no float ones, and onnxruntime 1.23 misreads those of half a byte when a row has an odd number of them.
    """
    zero_points = matrix.zero_points
    if zero_points is None:
        return False
    return zero_points.dtype != np.uint8 or (matrix.bits == 4 and matrix.scales.shape[1] % 2 == 1)


def _shift(
    graph: GraphWriter, values: ir.Value, matrix: BlockMatrix, offsets: ir.Value, rows: ir.Value, name: str
) -> ir.Value:
    """Adds to each block of the looked up rows what its zero point differs from the symmetric one by."""
    blocks, block_size = matrix.blocks, matrix.block_size
    in_blocks = graph.constant(f"{name}/in_blocks", np.array([0, blocks, block_size], np.int64))
    in_rows = graph.constant(f"{name}/in_rows", np.array([0, blocks * block_size], np.int64))
    last = graph.constant(f"{name}/last_axis", np.array([-1], np.int64))
    found = graph.node("Gather", [offsets, rows], f"{name}/offsets/Gather", blocks)
    found = graph.node("Unsqueeze", [found, last], f"{name}/offsets/Unsqueeze", blocks, 1)
    values = graph.node("Reshape", [values, in_blocks], f"{name}/blocks/Reshape", blocks, block_size)
    values = graph.node("Add", [values, found], f"{name}/offsets/Add", blocks, block_size)
    return graph.node("Reshape", [values, in_rows], f"{name}/rows/Reshape", blocks * block_size)
