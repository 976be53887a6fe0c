"""Builds the packed paged decoder graph: one step over all rows' tokens, with a paged key-value cache.

What a row computes must not depend on its batch, bit for bit, so the graph holds only operator forms of the runtime
whose rows are independent, and none that the runtime would fuse into another form:

- matrices are Gemm with a constant, transposed right side, or MatMulNBits with 8-bit blocks at accuracy_level 4; both
  take weights as [outputs, inputs], so a tied embedding is stored once and read by the LM head and by the lookup;
- additions to the residual stream are part of SkipSimplifiedLayerNormalization.

After the attention of the last layer only the rows whose logits are wanted go on.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

import numpy as np
import onnx_ir as ir

from oga.export.quantization import SYMMETRIC_ZERO_POINT
from oga.export.rope import rotary_tables
from oga.export.source import WeightSource
from oga.export.tensor_file import TensorFile

Precision = Literal["fp32", "int8"]

_CONTRIB = "com.microsoft"
_OPSETS = {"": 23, _CONTRIB: 1}
_IR_VERSION = 10  # what onnxruntime 1.23 reads
_MATMUL_ACCURACY = 4  # activations rounded to 8 bits per block; the row-invariant form
_EMBEDDING, _HEAD = "model.embed_tokens", "lm_head"

# Symbolic dimensions.
_TOKENS, _LOGITS = "num_tokens", "num_logits"


def build_decoder(source: WeightSource, precision: Precision, context_length: int, data: TensorFile) -> ir.Model:
    """Builds the graph of a model and writes its weights into ``data``.

    Args:
        source: weights and spec.
        precision: fp32, or int8 for all matrices and the embedding.
        context_length: positions that the rotary tables cover.
        data: receives the weights in the order of the graph.

    Raises:
        ConversionError: when a tensor is missing, has a wrong shape, or is not used.
    """
    model = _DecoderBuilder(source, precision, context_length, data).build()
    source.check_all_read()
    return model


class _DecoderBuilder:
    """Collects nodes and initializers while it walks through the layers once."""

    def __init__(self, source: WeightSource, precision: Precision, context_length: int, data: TensorFile) -> None:
        self._source = source
        self._spec = source.spec
        self._quantized = precision == "int8"
        self._context_length = context_length
        self._data = data
        self._nodes: list[ir.Node] = []
        self._inputs: list[ir.Value] = []
        self._initializers: dict[str, ir.Value] = {}
        self._rows = _TOKENS  # leading dimension of what is computed now

    def build(self) -> ir.Model:
        """The whole model."""
        spec = self._spec
        self._declare_inputs()
        presents: list[ir.Value] = []
        residual = self._embed(self._input_ids)
        hidden = self._norm(residual, "model.layers.0.input_layernorm")
        for layer in range(spec.num_layers):
            prefix, last = f"model.layers.{layer}", layer == spec.num_layers - 1
            attended, *present = self._attention(hidden, prefix, layer)
            presents += present
            if last:
                attended = self._select(attended, f"{prefix}/attended")
                residual = self._select(residual, f"{prefix}/residual")
            output = self._linear(
                attended, f"{prefix}.self_attn.o_proj", spec.hidden_size, spec.query_width, bias=spec.output_bias
            )
            hidden, residual = self._add_and_norm(output, residual, f"{prefix}.post_attention_layernorm")
            output = self._mlp(hidden, f"{prefix}.mlp")
            following = "model.norm" if last else f"model.layers.{layer + 1}.input_layernorm"
            hidden, residual = self._add_and_norm(output, residual, following, last=last)
        head = _EMBEDDING if spec.tied_embeddings else _HEAD
        logits = self._linear(hidden, head, spec.vocab_size, spec.hidden_size, output="logits")
        return self._model([logits, *presents])

    def _declare_inputs(self) -> None:
        spec = self._spec
        cache: list[int | str] = ["num_blocks", "block_size", spec.num_kv_heads, spec.head_size]
        self._input_ids = self._input("input_ids", ir.DataType.INT64, [_TOKENS])
        self._cumulative = self._input("cumulative_sequence_lengths", ir.DataType.INT32, ["num_rows_plus_one"])
        self._past = self._input("past_sequence_lengths", ir.DataType.INT32, ["num_rows"])
        self._table = self._input("block_table", ir.DataType.INT32, ["num_rows", "num_columns"])
        self._metadata = self._input("attention_metadata", ir.DataType.INT32, [3])
        self._logits_indices = self._input("logits_indices", ir.DataType.INT64, [_LOGITS])
        self._caches = [
            [self._input(f"past_key_values.{layer}.{side}", ir.DataType.FLOAT, cache) for side in ("key", "value")]
            for layer in range(spec.num_layers)
        ]
        tables = rotary_tables(spec.rope, spec.head_size, self._context_length, self._source.rotary_divisors())
        self._rotary = [
            self._store(name, table) for name, table in zip(("cos_cache", "sin_cache"), tables, strict=True)
        ]

    # Parts of the decoder

    def _embed(self, token_ids: ir.Value) -> ir.Value:
        rows = self._weight(_EMBEDDING, self._spec.vocab_size, self._spec.hidden_size)
        if not self._quantized:
            return self._node("Gather", [rows[0], token_ids], f"{_EMBEDDING}/Gather", self._spec.hidden_size)
        return self._dequantizing_lookup(rows, token_ids)

    def _dequantizing_lookup(self, weight: Sequence[ir.Value], token_ids: ir.Value) -> ir.Value:
        """Looks up rows of the matrix that the LM head multiplies with, instead of a second, decoded copy."""
        codes, scales, *zero_points = weight
        blocks, block_size = _dims(codes)[1:]
        name = _EMBEDDING

        def look_up(part: ir.Value, tag: str, *dims: int) -> ir.Value:
            return self._node("Gather", [part, token_ids], f"{name}/{tag}/Gather", *dims, dtype=part.dtype)

        def per_block(values: ir.Value, tag: str) -> ir.Value:
            axes = self._constant("last_axis", np.array([-1], np.int64))
            return self._node("Unsqueeze", [values, axes], f"{name}/{tag}/Unsqueeze", blocks, 1)

        def to_float(values: ir.Value, tag: str, *dims: int) -> ir.Value:
            return self._node("Cast", [values], f"{name}/{tag}/Cast", *dims, to=ir.DataType.FLOAT)

        values = to_float(look_up(codes, "codes", blocks, block_size), "codes", blocks, block_size)
        if zero_points:
            found = to_float(look_up(zero_points[0], "zero_points", blocks), "zero_points", blocks)
            zero = per_block(found, "zero_points")
        else:
            zero = self._constant("symmetric_zero_point", np.array(SYMMETRIC_ZERO_POINT, np.float32))
        values = self._node("Sub", [values, zero], f"{name}/Sub", blocks, block_size)
        scale = per_block(look_up(scales, "scales", blocks), "scales")
        values = self._node("Mul", [values, scale], f"{name}/Mul", blocks, block_size)
        width, padded = self._spec.hidden_size, blocks * block_size
        shape = self._constant("embedding_shape", np.array([0, padded], np.int64))
        flat = self._node("Reshape", [values, shape], f"{name}/Reshape", padded)
        if padded == width:
            return flat
        bounds = [
            self._constant(f"embedding_{tag}", np.array([value], np.int64))
            for tag, value in (("begin", 0), ("end", width), ("axis", 1))
        ]
        return self._node("Slice", [flat, *bounds], f"{name}/Slice", width)

    def _attention(self, hidden: ir.Value, prefix: str, layer: int) -> list[ir.Value]:
        """The attention of one layer up to its output projection, and the layer's updated caches."""
        spec = self._spec
        projections = [
            self._linear(hidden, f"{prefix}.self_attn.{name}_proj", width, spec.hidden_size, bias=spec.qkv_bias)
            for name, width in (("q", spec.query_width), ("k", spec.kv_width), ("v", spec.kv_width))
        ]
        unused = [None] * 6  # slot mapping, head sinks, query and key norms, cache scales
        attributes: dict[str, Any] = {
            "num_heads": spec.num_heads,
            "kv_num_heads": spec.num_kv_heads,
            "scale": spec.head_size**-0.5,
            "do_rotary": 1,
            "rotary_interleaved": 0,
        }
        if spec.window is not None:
            attributes["local_window_size"] = spec.window
        outputs = [
            self._value(f"{prefix}.self_attn/PagedAttention_output", _TOKENS, spec.query_width),
            *(self._cache_output(layer, side) for side in ("key", "value")),
        ]
        inputs = [*projections, *self._caches[layer], self._cumulative, self._past, self._table, *self._rotary]
        self._nodes.append(
            ir.node(
                "PagedAttention",
                [*inputs, *unused, self._metadata],
                attributes,
                domain=_CONTRIB,
                outputs=outputs,
                name=f"{prefix}.self_attn/PagedAttention",
            )
        )
        return outputs

    def _mlp(self, hidden: ir.Value, prefix: str) -> ir.Value:
        inner, outer, bias = self._spec.intermediate_size, self._spec.hidden_size, self._spec.mlp_bias
        gate = self._linear(hidden, f"{prefix}.gate_proj", inner, outer, bias=bias)
        up = self._linear(hidden, f"{prefix}.up_proj", inner, outer, bias=bias)
        sigmoid = self._node("Sigmoid", [gate], f"{prefix}.act/Sigmoid", inner)
        activated = self._node("Mul", [gate, sigmoid], f"{prefix}.act/Mul", inner)
        gated = self._node("Mul", [activated, up], f"{prefix}/Mul", inner)
        return self._linear(gated, f"{prefix}.down_proj", outer, inner, bias=bias)

    def _select(self, rows: ir.Value, name: str) -> ir.Value:
        """Keeps the rows whose logits are wanted."""
        self._rows = _LOGITS
        return self._node("Gather", [rows, self._logits_indices], f"{name}/Gather", *_dims(rows)[1:])

    # Layers

    def _linear(
        self, x: ir.Value, name: str, outputs: int, inputs: int, *, bias: bool = False, output: str | None = None
    ) -> ir.Value:
        weight = self._weight(name, outputs, inputs)
        added = [self._store(f"{name}.bias", self._source.read(f"{name}.bias", outputs))] if bias else []
        if not self._quantized:
            return self._node("Gemm", [x, *weight, *added], f"{name}/Gemm", outputs, output=output, transB=1)
        codes, scales, *zero_points = weight
        optional: list[ir.Value | None] = [*zero_points] or [None]
        optional += [None, *added]
        while optional and optional[-1] is None:
            optional.pop()
        return self._node(
            "MatMulNBits",
            [x, codes, scales, *optional],
            f"{name}/MatMulNBits",
            outputs,
            domain=_CONTRIB,
            output=output,
            N=outputs,
            K=inputs,
            bits=8,
            block_size=_dims(codes)[2],
            accuracy_level=_MATMUL_ACCURACY,
        )

    def _norm(self, x: ir.Value, name: str) -> ir.Value:
        weight = self._store(f"{name}.weight", self._source.read(f"{name}.weight", self._spec.hidden_size))
        return self._node(
            "RMSNormalization",
            [x, weight],
            f"{name}/RMSNormalization",
            self._spec.hidden_size,
            axis=-1,
            epsilon=self._spec.norm_epsilon,
        )

    def _add_and_norm(
        self, x: ir.Value, residual: ir.Value, name: str, *, last: bool = False
    ) -> tuple[ir.Value, ir.Value]:
        """The normalised sum, and the sum: the residual stream from here on, which ends with the last one."""
        width = self._spec.hidden_size
        weight = self._store(f"{name}.weight", self._source.read(f"{name}.weight", width))
        node_name = f"{name}/SkipSimplifiedLayerNormalization"
        normalised, total = (self._value(f"{node_name}_{part}", self._rows, width) for part in ("output", "sum"))
        skipped = [ir.Value(name="") for _ in range(2)]  # statistics that only training reads
        self._nodes.append(
            ir.node(
                "SkipSimplifiedLayerNormalization",
                [x, residual, weight],
                {"epsilon": self._spec.norm_epsilon},
                domain=_CONTRIB,
                outputs=[normalised] if last else [normalised, *skipped, total],
                name=node_name,
            )
        )
        return normalised, total

    # Values

    def _weight(self, name: str, rows: int, columns: int) -> list[ir.Value]:
        """The initializers of a matrix [rows, columns]: itself, or codes, scales and zero points. Written once."""
        full = f"{name}.weight"
        if full in self._initializers:
            return [self._initializers[full]]
        if f"{name}.codes" in self._initializers:
            parts = ("codes", "scales", "zero_points")
            return [self._initializers[f"{name}.{part}"] for part in parts if f"{name}.{part}" in self._initializers]
        if not self._quantized:
            return [self._store(full, self._source.read(full, rows, columns))]
        matrix = self._source.read_quantized(full, rows, columns)
        arrays = {"codes": matrix.codes, "scales": matrix.scales, "zero_points": matrix.zero_points}
        return [self._store(f"{name}.{part}", array) for part, array in arrays.items() if array is not None]

    def _store(self, name: str, array: Any) -> ir.Value:
        value = self._data.append(name, array)
        self._initializers[name] = value
        return value

    def _constant(self, name: str, array: Any) -> ir.Value:
        """A small initializer inside the model file, where shape inference finds it."""
        if name not in self._initializers:
            tensor = ir.tensor(array, name=name)
            self._initializers[name] = ir.Value(
                name=name, shape=ir.Shape(array.shape), type=ir.TensorType(tensor.dtype), const_value=tensor
            )
        return self._initializers[name]

    def _input(self, name: str, dtype: ir.DataType, dims: Sequence[int | str]) -> ir.Value:
        self._inputs.append(_typed(name, dtype, dims))
        return self._inputs[-1]

    def _cache_output(self, layer: int, side: str) -> ir.Value:
        dims = ("num_blocks", "block_size", self._spec.num_kv_heads, self._spec.head_size)
        return self._value(f"present.{layer}.{side}", *dims)

    def _value(self, name: str, *dims: int | str) -> ir.Value:
        return _typed(name, ir.DataType.FLOAT, dims)

    def _node(
        self,
        operator: str,
        inputs: Sequence[ir.Value | None],
        name: str,
        *dims: int,
        dtype: ir.DataType | None = None,
        domain: str = "",
        output: str | None = None,
        **attributes: Any,
    ) -> ir.Value:
        """Adds a node with one output, of the current rows by ``dims``."""
        value = _typed(output or f"{name}_output", dtype or ir.DataType.FLOAT, (self._rows, *dims))
        self._nodes.append(ir.node(operator, inputs, attributes, domain=domain, outputs=[value], name=name))
        return value

    def _model(self, outputs: Sequence[ir.Value]) -> ir.Model:
        graph = ir.Graph(
            self._inputs,
            outputs,
            nodes=self._nodes,
            initializers=list(self._initializers.values()),
            opset_imports=_OPSETS,
            name="decoder",
        )
        return ir.Model(graph, ir_version=_IR_VERSION, producer_name="oga")


def _typed(name: str, dtype: ir.DataType, dims: Sequence[int | str]) -> ir.Value:
    return ir.Value(name=name, shape=ir.Shape(dims), type=ir.TensorType(dtype))


def _dims(value: ir.Value) -> list[int]:
    """Dimensions of a value, 0 for a symbolic one."""
    dims = value.shape if value.shape is not None else ()
    return [dim if isinstance(dim, int) else 0 for dim in dims]
