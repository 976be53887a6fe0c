"""Builds the packed paged decoder graph: one step over all rows' tokens, with a paged key-value cache.

What a row computes must not depend on its batch, bit for bit, so the graph holds only operator forms whose rows are
independent, and none that the runtime would fuse into another form: matrices as ``matrices`` says, and additions to the
residual stream as part of SkipSimplifiedLayerNormalization.

After the attention of the last layer only the rows whose logits are wanted go on.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx_ir as ir

from oga.export.graph_writer import CONTRIB, GraphWriter, dims_of
from oga.export.matrices import Matrix, look_up, multiply, multiply_gated, store_blocks, store_floats
from oga.export.precision import EMBEDDING, HEAD, FloatFormat, FloatPrecision, WeightFormats
from oga.export.quantization import stack
from oga.export.rope import rotary_tables
from oga.export.source import WeightSource
from oga.export.tensor_file import TensorFile

# Symbolic dimensions.
_TOKENS, _LOGITS = "num_tokens", "num_logits"
_CACHE_DTYPES: dict[FloatPrecision, ir.DataType] = {
    "fp32": ir.DataType.FLOAT,
    "bf16": ir.DataType.BFLOAT16,
    "fp16": ir.DataType.FLOAT16,
}


def build_decoder(
    source: WeightSource, formats: WeightFormats, cache: FloatPrecision, context_length: int, data: TensorFile
) -> ir.Model:
    """Builds the graph of a model and writes its weights into ``data``.

    Args:
        source: weights and spec.
        formats: how matrices are stored.
        cache: how keys and values are stored.
        context_length: positions that the rotary tables cover.
        data: receives the weights in the order of the graph.

    Raises:
        ConversionError: when a tensor is missing, has a wrong shape, or is not used.
    """
    model = _DecoderBuilder(source, formats, cache, context_length, data).build()
    source.check_all_read()
    return model


class _DecoderBuilder:
    """Walks through the layers once."""

    def __init__(
        self, source: WeightSource, formats: WeightFormats, cache: FloatPrecision, context_length: int, data: TensorFile
    ) -> None:
        self._source = source
        self._spec = source.spec
        self._formats = formats
        self._cache_dtype = _CACHE_DTYPES[cache]
        self._context_length = context_length
        self._graph = GraphWriter(data, _TOKENS)
        self._matrices: dict[str, Matrix] = {}

    def build(self) -> ir.Model:
        """The whole model."""
        spec = self._spec
        self._declare_inputs()
        presents: list[ir.Value] = []
        embedding = self._matrix(EMBEDDING, spec.vocab_size, spec.hidden_size)
        residual = look_up(self._graph, embedding, self._input_ids, EMBEDDING)
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
        head = EMBEDDING if spec.tied_embeddings else HEAD
        logits = self._linear(hidden, head, spec.vocab_size, spec.hidden_size, output="logits")
        return self._graph.model([logits, *presents])

    def _declare_inputs(self) -> None:
        spec = self._spec
        self._input_ids = self._graph.input("input_ids", ir.DataType.INT64, [_TOKENS])
        self._cumulative = self._graph.input("cumulative_sequence_lengths", ir.DataType.INT32, ["num_rows_plus_one"])
        self._past = self._graph.input("past_sequence_lengths", ir.DataType.INT32, ["num_rows"])
        self._table = self._graph.input("block_table", ir.DataType.INT32, ["num_rows", "num_columns"])
        self._metadata = self._graph.input("attention_metadata", ir.DataType.INT32, [3])
        self._logits_indices = self._graph.input("logits_indices", ir.DataType.INT64, [_LOGITS])
        self._caches = [
            [
                self._graph.input(f"past_key_values.{layer}.{side}", self._cache_dtype, self._cache_dims)
                for side in ("key", "value")
            ]
            for layer in range(spec.num_layers)
        ]
        tables = rotary_tables(spec.rope, spec.head_size, self._context_length, self._source.rotary_divisors())
        self._rotary = [
            self._graph.store(name, table) for name, table in zip(("cos_cache", "sin_cache"), tables, strict=True)
        ]

    # Parts of the decoder

    def _attention(self, hidden: ir.Value, prefix: str, layer: int) -> list[ir.Value]:
        """The attention of one layer up to its output projection, and the layer's updated caches."""
        spec = self._spec
        query, key, value = self._project(hidden, f"{prefix}.self_attn")
        attributes: dict[str, Any] = {
            "num_heads": spec.num_heads,
            "kv_num_heads": spec.num_kv_heads,
            "scale": spec.head_size**-0.5,
            "do_rotary": 1,
            "rotary_interleaved": 0,
        }
        window = spec.window(layer)
        if window is not None:
            attributes["local_window_size"] = window
        norms: list[ir.Value | None] = [None, None]
        if spec.qk_norm:
            norms = [self._vector(f"{prefix}.self_attn.{side}_norm.weight", spec.head_size) for side in ("q", "k")]
            attributes["qk_norm_epsilon"] = spec.norm_epsilon
        outputs = [
            self._graph.value(f"{prefix}.self_attn/PagedAttention_output", _TOKENS, spec.query_width),
            *(self._cache_output(layer, side) for side in ("key", "value")),
        ]
        inputs = [query, key, value, *self._caches[layer], self._cumulative, self._past, self._table, *self._rotary]
        self._graph.nodes.append(
            ir.node(
                "PagedAttention",
                # Without slot mapping, head sinks and cache scales.
                [*inputs, None, None, *norms, None, None, self._metadata],
                attributes,
                domain=CONTRIB,
                outputs=outputs,
                name=f"{prefix}.self_attn/PagedAttention",
            )
        )
        return outputs

    def _project(self, hidden: ir.Value, prefix: str) -> tuple[ir.Value, ir.Value | None, ir.Value | None]:
        """Query, key and value of each token; in one, where their weights can stand in one matrix."""
        spec = self._spec
        widths = dict.fromkeys((f"{prefix}.k_proj", f"{prefix}.v_proj"), spec.kv_width)
        parts = {f"{prefix}.q_proj": spec.query_width} | widths
        matrices = self._joined(f"{prefix}.qkv_proj", parts, spec.hidden_size)
        if len(matrices) == 1:
            bias = self._stacked_bias(f"{prefix}.qkv_proj", parts) if spec.qkv_bias else None
            return multiply(self._graph, hidden, matrices[0], f"{prefix}.qkv_proj", bias), None, None
        self._matrices |= zip(parts, matrices, strict=True)
        query, key, value = (
            self._linear(hidden, name, width, spec.hidden_size, bias=spec.qkv_bias) for name, width in parts.items()
        )
        return query, key, value

    def _mlp(self, hidden: ir.Value, prefix: str) -> ir.Value:
        inner, outer, bias = self._spec.intermediate_size, self._spec.hidden_size, self._spec.mlp_bias
        gates, ups = (self._matrix(f"{prefix}.{name}_proj", inner, outer) for name in ("gate", "up"))
        gated = None if bias else multiply_gated(self._graph, hidden, gates, ups, prefix)
        if gated is not None:
            return self._linear(gated, f"{prefix}.down_proj", outer, inner)
        gate = self._linear(hidden, f"{prefix}.gate_proj", inner, outer, bias=bias)
        up = self._linear(hidden, f"{prefix}.up_proj", inner, outer, bias=bias)
        sigmoid = self._graph.node("Sigmoid", [gate], f"{prefix}.act/Sigmoid", inner)
        activated = self._graph.node("Mul", [gate, sigmoid], f"{prefix}.act/Mul", inner)
        gated = self._graph.node("Mul", [activated, up], f"{prefix}/Mul", inner)
        return self._linear(gated, f"{prefix}.down_proj", outer, inner, bias=bias)

    def _select(self, rows: ir.Value, name: str) -> ir.Value:
        """Keeps the rows whose logits are wanted."""
        self._graph.rows = _LOGITS
        return self._graph.node("Gather", [rows, self._logits_indices], f"{name}/Gather", *dims_of(rows)[1:])

    # Layers

    def _linear(
        self, x: ir.Value, name: str, outputs: int, inputs: int, *, bias: bool = False, output: str | None = None
    ) -> ir.Value:
        matrix = self._matrix(name, outputs, inputs)
        added = self._vector(f"{name}.bias", outputs) if bias else None
        return multiply(self._graph, x, matrix, name, added, output)

    def _norm(self, x: ir.Value, name: str) -> ir.Value:
        weight = self._vector(f"{name}.weight", self._spec.hidden_size)
        return self._graph.node(
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
        weight = self._vector(f"{name}.weight", width)
        node_name = f"{name}/SkipSimplifiedLayerNormalization"
        rows = self._graph.rows
        normalised, total = (self._graph.value(f"{node_name}_{part}", rows, width) for part in ("output", "sum"))
        skipped = [ir.Value(name="") for _ in range(2)]  # statistics that only training reads
        self._graph.nodes.append(
            ir.node(
                "SkipSimplifiedLayerNormalization",
                [x, residual, weight],
                {"epsilon": self._spec.norm_epsilon},
                domain=CONTRIB,
                outputs=[normalised] if last else [normalised, *skipped, total],
                name=node_name,
            )
        )
        return normalised, total

    # Values

    def _matrix(self, name: str, rows: int, columns: int) -> Matrix:
        """A matrix [rows, columns] in the format that was asked for. Written once."""
        if name not in self._matrices:
            (self._matrices[name],) = self._joined(name, {name: rows}, columns)
        return self._matrices[name]

    def _joined(self, name: str, parts: dict[str, int], columns: int) -> list[Matrix]:
        """One matrix, the rows of all parts below one another; where their blocks differ, one for each part."""
        wanted = {part: self._formats.of(part, self._source.stored_bits(f"{part}.weight")) for part in parts}
        blocks = []
        for part, form in wanted.items():
            if isinstance(form, FloatFormat):
                return [store_floats(self._graph, self._source, name, parts, columns, form.precision)]
            blocks.append(self._source.read_quantized(f"{part}.weight", (parts[part], columns), form))
        whole = stack(blocks)
        if whole is not None:
            return [store_blocks(self._graph, name, whole, looked_up=name == EMBEDDING)]
        return [
            store_blocks(self._graph, part, each, looked_up=False) for part, each in zip(parts, blocks, strict=True)
        ]

    def _stacked_bias(self, name: str, parts: dict[str, int]) -> ir.Value:
        biases = [self._source.read(f"{part}.bias", rows) for part, rows in parts.items()]
        return self._graph.store(f"{name}.bias", np.concatenate(biases))

    def _vector(self, name: str, size: int) -> ir.Value:
        return self._graph.store(name, self._source.read(name, size))

    def _cache_output(self, layer: int, side: str) -> ir.Value:
        return self._graph.value(f"present.{layer}.{side}", *self._cache_dims, dtype=self._cache_dtype)

    @property
    def _cache_dims(self) -> list[int | str]:
        return ["num_blocks", "block_size", self._spec.num_kv_heads, self._spec.head_size]
