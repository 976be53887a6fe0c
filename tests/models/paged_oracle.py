"""The operators of an exported graph in NumPy, for onnx's reference evaluator, and a driver that runs it in steps.

``paged_attention`` is the golden reference of the PagedAttention operator: written from its definition, one query at a
time, in float64. It reads only cache slots that belong to the row, so unowned ones may hold NaN.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import onnx
from onnx.reference import ReferenceEvaluator
from onnx.reference.op_run import OpRun

Array = npt.NDArray[Any]


def rotate(heads: Array, positions: Array, cos: Array, sin: Array, *, interleaved: bool, offset: int = 0) -> Array:
    """Rotary embedding of heads [tokens, heads, head_size]: twice the tables' width of channels behind ``offset``."""
    half = cos.shape[1]
    c, s = cos[positions][:, None].astype(np.float64), sin[positions][:, None].astype(np.float64)
    rotated = heads.astype(np.float64).copy()
    pairs = rotated[..., offset : offset + 2 * half]
    first, second = (pairs[..., 0::2], pairs[..., 1::2]) if interleaved else (pairs[..., :half], pairs[..., half:])
    turned = first * c - second * s, second * c + first * s
    first[...], second[...] = turned
    return rotated


def normalise(heads: Array, gains: Array | None, epsilon: float) -> Array:
    """RMS norm of each head [tokens, heads, head_size] with ``gains`` [head_size]; the heads themselves without."""
    wide = heads.astype(np.float64)
    if gains is None:
        return wide
    return wide / np.sqrt((wide**2).mean(-1, keepdims=True) + epsilon) * gains.astype(np.float64)


def to_cache(values: Array, cache: Array, scale: Array | None) -> Array:
    """Heads [kv_heads, head_size] as ``cache`` stores them: codes of steps of ``scale``, or rounded numbers."""
    if scale is None:
        return values.astype(cache.dtype)
    steps = values / (scale.astype(np.float64).reshape(values.shape) if scale.size > 1 else scale[0])
    return np.clip(np.rint(steps), -128, 127).astype(np.int8)


def from_cache(stored: Array, scale: Array | None) -> Array:
    """What cached heads [..., kv_heads, head_size] stand for, as float64."""
    wide = stored.astype(np.float64)
    return wide if scale is None else wide * (scale.reshape(stored.shape[-2:]) if scale.size > 1 else scale[0])


@dataclass(frozen=True)
class Options:
    """What a PagedAttention node may be told besides its usual inputs.

    Attributes:
        scale: of the scores; 1 / sqrt(head_size) when None or 0.
        interleaved: rotated channels are neighbours instead of halves.
        rotary_offset: the first channel that is rotated.
        window: keys that a query sees, itself included; no limit when not positive.
        softcap: scores become softcap * tanh(score / softcap); 0 for none.
        epsilon: of the norm.
        slot_mapping: [tokens] where each token is cached, block * block_size + slot, or -1 for nowhere; by the table
            when None.
        head_sink: [heads], a logit of each head's softmax that carries no value.
        q_norm: [head_size] gains of the queries' RMS norm before their rotation.
        k_norm: of the keys.
        k_scale: [1] or [kv_heads, 1, head_size], the step of an int8 key cache; None for a cache of floats.
        v_scale: of the value cache.
    """

    scale: float | None = None
    interleaved: bool = False
    rotary_offset: int = 0
    window: int = -1
    softcap: float = 0.0
    epsilon: float = 1e-6
    slot_mapping: Array | None = None
    head_sink: Array | None = None
    q_norm: Array | None = None
    k_norm: Array | None = None
    k_scale: Array | None = None
    v_scale: Array | None = None


def attend(query: Array, keys: Array, values: Array, options: Options) -> Array:
    """One query [heads, head_size] over the keys and values [seen, heads, head_size] it sees."""
    scores = np.einsum("khd,hd->hk", keys, query) * (options.scale or query.shape[-1] ** -0.5)
    if options.softcap:
        scores = options.softcap * np.tanh(scores / options.softcap)
    highest = scores.max(-1, keepdims=True)
    weights = np.exp(scores - highest)
    total = weights.sum(-1, keepdims=True)
    if options.head_sink is not None:
        total += np.exp(options.head_sink.astype(np.float64)[:, None] - highest)
    attended: Array = np.einsum("hk,khd->hd", weights / total, values)
    return attended


def paged_attention(
    query: Array,
    key: Array | None,
    value: Array | None,
    key_cache: Array,
    value_cache: Array,
    cumulative: Array,
    past: Array,
    block_table: Array,
    cos: Array | None = None,
    sin: Array | None = None,
    *,
    num_heads: int,
    kv_num_heads: int,
    options: Options,
) -> tuple[Array, Array, Array]:
    """Attention of packed ragged rows over a paged cache.

    Args:
        query: [tokens, heads * head_size]; with ``key`` and ``value`` None, the packed queries, keys and values.
        key: [tokens, kv_heads * head_size].
        value: like ``key``.
        key_cache: [blocks, block_size, kv_heads, head_size]; not changed.
        value_cache: like ``key_cache``.
        cumulative: [rows + 1] borders of the rows in the tokens.
        past: [rows] tokens that are in the cache already.
        block_table: [rows, columns] physical blocks, -1 where there is none.
        cos: [positions, rotated / 2], or None for no rotary embedding.
        sin: like ``cos``.
        num_heads: query heads.
        kv_num_heads: key-value heads.
        options: of the node.

    Returns:
        The output [tokens, heads * head_size] as float64, and both caches with the new tokens written.
    """
    head_size = key_cache.shape[3]
    if key is None or value is None:
        widths = [num_heads * head_size, (num_heads + kv_num_heads) * head_size]
        query, key, value = np.split(query, widths, axis=-1)
    queries = normalise(query.reshape(-1, num_heads, head_size), options.q_norm, options.epsilon)
    keys = normalise(key.reshape(-1, kv_num_heads, head_size), options.k_norm, options.epsilon)
    values = value.reshape(-1, kv_num_heads, head_size).astype(np.float64)
    lengths = np.diff(cumulative)
    positions = np.concatenate([first + np.arange(n) for first, n in zip(past, lengths, strict=True)])
    if cos is not None and sin is not None:
        turn = {"interleaved": options.interleaved, "offset": options.rotary_offset}
        queries, keys = (rotate(heads, positions, cos, sin, **turn) for heads in (queries, keys))
    key_cache, value_cache = key_cache.copy(), value_cache.copy()
    rows = np.repeat(np.arange(len(lengths)), lengths)
    _write(keys, values, key_cache, value_cache, rows, positions, block_table, options)
    output = np.zeros_like(queries)
    for token, (row, position) in enumerate(zip(rows, positions, strict=True)):
        begin = max(0, position + 1 - options.window) if options.window > 0 else 0
        seen = np.arange(begin, position + 1)
        slots = block_table[row, seen // key_cache.shape[1]], seen % key_cache.shape[1]
        group = num_heads // kv_num_heads
        seen_keys = from_cache(key_cache[slots], options.k_scale).repeat(group, 1)
        seen_values = from_cache(value_cache[slots], options.v_scale).repeat(group, 1)
        output[token] = attend(queries[token], seen_keys, seen_values, options)
    return output.reshape(len(queries), -1), key_cache, value_cache


def _write(
    keys: Array,
    values: Array,
    key_cache: Array,
    value_cache: Array,
    rows: Array,
    positions: Array,
    block_table: Array,
    options: Options,
) -> None:
    """Writes each token's key and value into the caches, where the table or the mapping says."""
    block_size = key_cache.shape[1]
    for token, (row, position) in enumerate(zip(rows, positions, strict=True)):
        slot = block_table[row, position // block_size], position % block_size
        if options.slot_mapping is not None:
            slot = divmod(options.slot_mapping[token], block_size)
        if slot[0] >= 0:
            key_cache[slot] = to_cache(keys[token], key_cache, options.k_scale)
            value_cache[slot] = to_cache(values[token], value_cache, options.v_scale)


class PagedAttention(OpRun):
    """The operator as the evaluator calls it."""

    op_domain = "com.microsoft"

    def _run(self, *inputs: Any, **attributes: Any) -> tuple[Array, ...]:
        # The evaluator passes whatever an unnamed output left behind for an unnamed input.
        given = [value if name else None for name, value in zip(self.onnx_node.input, inputs, strict=True)]
        given += [None] * (17 - len(given))
        rotary = attributes.get("do_rotary")
        names = ["slot_mapping", "head_sink", "q_norm", "k_norm", "k_scale", "v_scale"]
        options = Options(
            scale=attributes.get("scale"),
            interleaved=bool(attributes.get("rotary_interleaved")),
            rotary_offset=attributes.get("rotary_offset") or 0,
            window=attributes.get("local_window_size") or -1,
            softcap=attributes.get("softcap") or 0.0,
            epsilon=attributes.get("qk_norm_epsilon") or 1e-6,
            **dict(zip(names, given[10:16], strict=True)),
        )
        output, key_cache, value_cache = paged_attention(
            *given[:8],
            *(given[8:10] if rotary else (None, None)),
            num_heads=attributes["num_heads"],
            kv_num_heads=attributes["kv_num_heads"],
            options=options,
        )
        return output.astype(given[0].dtype), key_cache, value_cache


class SkipSimplifiedLayerNormalization(OpRun):
    """RMS norm of a sum; the two statistics in between are never read."""

    op_domain = "com.microsoft"

    def _run(self, x: Array, skip: Array, weight: Array, epsilon: float | None = None) -> tuple[Array, ...]:
        total = x + skip
        square = (total.astype(np.float64) ** 2).mean(-1, keepdims=True)
        normalised = (total / np.sqrt(square + epsilon) * weight).astype(np.float32)
        unread = np.zeros(1, np.float32)
        return (normalised, unread, unread, total)[: len(self.onnx_node.output)]


def decoded_blocks(codes: Array, scales: Array, zero: Array | None, bits: int) -> Array:
    """The float32 weights [rows, blocks * block_size] that blocks stand for.

    Args:
        codes: uint8 [rows, blocks, bytes of a block].
        scales: float32 [rows, blocks].
        zero: as codes or as floats [rows, blocks], or codes packed like ``codes``; None when symmetric.
        bits: of a code.
    """
    rows, blocks = scales.shape
    if bits == 4:
        codes = np.stack([codes & 15, codes >> 4], -1).reshape(rows, blocks, -1)
        if zero is not None and zero.dtype == np.uint8:
            zero = np.stack([zero & 15, zero >> 4], -1).reshape(rows, -1)[:, :blocks]
    zero = np.full((rows, blocks), 1 << bits - 1) if zero is None else zero
    weights = (codes.astype(np.float32) - zero[..., None].astype(np.float32)) * scales[..., None]
    return weights.astype(np.float32).reshape(rows, -1)


class MatMulNBits(OpRun):
    """A product with blocks, in float: what the blocks stand for, not how a kernel rounds activations."""

    op_domain = "com.microsoft"

    def _run(self, x: Array, codes: Array, scales: Array, *rest: Any, **attributes: Any) -> tuple[Array]:
        names = self.onnx_node.input[3:]
        optional = {index: value for index, (name, value) in enumerate(zip(names, rest, strict=True)) if name}
        if not hasattr(self, "_weights"):
            decoded = decoded_blocks(codes, scales, optional.get(0), attributes["bits"])
            self._weights = decoded[:, : attributes["K"]].T
        return ((x @ self._weights + optional.get(2, np.float32(0))).astype(np.float32),)


class OwnGemm(OpRun):
    """The engine's Gemm of weights of 16 bits, in float: what the weights are, not how a kernel rounds activations."""

    op_domain = "oga"

    def _run(self, x: Array, weights: Array, *bias: Array, **attributes: Any) -> tuple[Array]:
        wide = weights.astype(np.float32)
        product = x @ (wide.T if attributes.get("transB") else wide)
        return ((product + bias[0] if bias else product).astype(np.float32),)


OwnGemm.__name__ = "Gemm"  # the evaluator knows an operator by its class's name


class GatedMatMulNBits(OpRun):
    """The engine's SwiGLU of two products with blocks, in float like ``MatMulNBits``."""

    op_domain = "oga"

    def _run(self, x: Array, *weights: Array, **attributes: Any) -> tuple[Array]:
        if not hasattr(self, "_weights"):
            zeros = weights[4:] or (None, None)
            self._weights = [
                decoded_blocks(codes, scales, zero, attributes["bits"])[:, : attributes["K"]].T
                for codes, scales, zero in zip(weights[0:4:2], weights[1:4:2], zeros, strict=True)
            ]
        gate, up = (x @ each for each in self._weights)
        return ((gate / (1 + np.exp(-gate)) * up).astype(np.float32),)


class GatherBlockQuantized(OpRun):
    """Rows of a matrix in blocks, decoded."""

    op_domain = "com.microsoft"

    def _run(self, codes: Array, rows: Array, scales: Array, *zero: Array, **attributes: Any) -> tuple[Array]:
        if not hasattr(self, "_weights"):
            in_blocks = codes.reshape(*scales.shape, -1)
            self._weights = decoded_blocks(in_blocks, scales, zero[0] if zero else None, attributes["bits"])
        return (self._weights[rows],)


OPERATORS = [
    PagedAttention,
    SkipSimplifiedLayerNormalization,
    MatMulNBits,
    OwnGemm,
    GatedMatMulNBits,
    GatherBlockQuantized,
]


@dataclass
class _Row:
    blocks: Array
    past: int = 0


@dataclass
class PagedRunner:
    """Runs an exported folder step by step, as the engine would, over a shuffled cache that starts as NaN.

    Attributes:
        folder: the model folder.
        block_size: tokens of a block.
        blocks_per_row: the most a row may use.
        max_rows: rows that may be alive.
    """

    folder: Path
    block_size: int = 4
    blocks_per_row: int = 16
    max_rows: int = 4
    seed: int = 0
    _rows: dict[int, _Row] = field(default_factory=dict)

    def __post_init__(self) -> None:
        model = onnx.load(self.folder / "model.onnx")
        self._evaluator = ReferenceEvaluator(model, new_ops=OPERATORS)
        self._outputs = [output.name for output in model.graph.output]
        count = self.max_rows * self.blocks_per_row + 3
        order = np.random.default_rng(self.seed).permutation(count).astype(np.int32)
        self._free = list(order.reshape(-1)[: self.max_rows * self.blocks_per_row].reshape(self.max_rows, -1))
        self._caches = {
            value.name: np.full((count, self.block_size, *_fixed_dims(value)[2:]), np.nan, _dtype(value))
            for value in model.graph.input
            if value.name.startswith("past_key_values.")
        }

    def step(self, tokens: Mapping[int, Sequence[int]], logits_indices: Sequence[int] | None = None) -> Array:
        """Runs one step.

        Args:
            tokens: the new tokens of each row; a new key is a new row.
            logits_indices: packed tokens whose logits are wanted; all when not given.

        Returns:
            float32 [indices, vocabulary].
        """
        for key in tokens:
            self._rows.setdefault(key, _Row(self._free[len(self._rows)]) if key not in self._rows else self._rows[key])
        rows = [self._rows[key] for key in tokens]
        lengths = [len(part) for part in tokens.values()]
        packed = np.concatenate([np.asarray(part, np.int64) for part in tokens.values()])
        wanted = range(len(packed)) if logits_indices is None else logits_indices
        columns = max(-(-(row.past + n) // self.block_size) for row, n in zip(rows, lengths, strict=True))
        table = np.full((len(rows), columns), -1, np.int32)
        for index, (row, n) in enumerate(zip(rows, lengths, strict=True)):
            used = -(-(row.past + n) // self.block_size)
            table[index, :used] = row.blocks[:used]
        ends = [row.past + n for row, n in zip(rows, lengths, strict=True)]
        results = self._evaluator.run(
            None,
            {
                "input_ids": packed,
                "cumulative_sequence_lengths": np.cumsum([0, *lengths]).astype(np.int32),
                "past_sequence_lengths": np.array([row.past for row in rows], np.int32),
                "block_table": table,
                "attention_metadata": np.array([max(lengths), max(ends), max(ends)], np.int32),
                "logits_indices": np.array(wanted, np.int64),
                **self._caches,
            },
        )
        named = dict(zip(self._outputs, results, strict=True))
        for name in self._caches:
            self._caches[name] = named[name.replace("past_key_values", "present")]
        for row, end in zip(rows, ends, strict=True):
            row.past = end
        logits: Array = named["logits"]
        return logits


def _fixed_dims(value: onnx.ValueInfoProto) -> list[int]:
    return [dim.dim_value for dim in value.type.tensor_type.shape.dim]


def _dtype(value: onnx.ValueInfoProto) -> np.dtype[Any]:
    return onnx.helper.tensor_dtype_to_np_dtype(value.type.tensor_type.elem_type)
