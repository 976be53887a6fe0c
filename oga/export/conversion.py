"""``convert``: from a Hugging Face folder or a GGUF file to a model folder."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from oga.export.destination import atomic_folder, check_replaceable
from oga.export.errors import ConversionError, require_extra
from oga.export.precision import (
    DEFAULT_CACHE,
    DEFAULT_PRECISION,
    CachePrecision,
    FloatPrecision,
    Precision,
    WeightFormats,
    cache_precision,
)

if TYPE_CHECKING:
    from oga.export.source import WeightSource

GRAPH_FILE = "model.onnx"


@dataclass(frozen=True)
class ConvertReport:
    """What a conversion made.

    Attributes:
        folder: the model folder.
        family: the model family, as in the source's config.
        precision: of the matrices.
        cache: of keys and values: "fp32", "bf16" or "fp16".
        parameters: weights of the model; a tied embedding counts once.
        context_length: tokens that a sequence may reach.
        bytes: size of all files together.
        seconds: how long it took.
        notes: sentences about what the folder lacks.
    """

    folder: Path
    family: str
    precision: str
    cache: str
    parameters: int
    context_length: int
    bytes: int
    seconds: float
    notes: tuple[str, ...]


def convert(
    source: str | Path,
    destination: str | Path,
    *,
    precision: Precision = DEFAULT_PRECISION,
    head_precision: Precision | None = None,
    block_size: int | None = None,
    symmetric: bool = False,
    cache: CachePrecision = DEFAULT_CACHE,
    context_length: int | None = None,
    force: bool = False,
    progress: Callable[[str, int, int], None] | None = None,
) -> ConvertReport:
    """Converts a model into a folder that the engine loads.

    The folder appears whole or not at all. Memory stays at about one tensor above the mapped source.

    Args:
        source: a Hugging Face folder (config.json, safetensors) or a GGUF file of a known family.
        destination: the folder to make; its parents are made too.
        precision: "fp32"; "bf16" or "fp16" for matrices of that type; or "int8" or "int4" for matrices in blocks of
            codes of that many bits. Blocks of a GGUF file are carried over without rounding the weights a second time
            where their format allows it.
        head_precision: the same for the embedding and the LM head, which small models feel most. When not given,
            ``precision``; but what a GGUF file holds in 5 to 8 bits is int8 then, not int4.
        block_size: weights that share a scale: 16, 32, 64, 128 or 256. When not given, those of a GGUF file's blocks,
            otherwise 32.
        symmetric: int4 blocks have no zero points: a little smaller, less exact.
        cache: how keys and values are stored: "fp32", "bf16", "fp16", or "auto": as fp32 for precision "fp32", else as
            bf16.
        context_length: tokens that a sequence may reach; the model's own length when not given, and never more.
        force: replace ``destination`` when it is a model folder already.
        progress: called with ("Converting", bytes of the source done, bytes in all).

    Raises:
        ConversionError: when the source is unknown, incomplete, damaged or not supported, or the destination cannot be
            written.
        MissingExtraError: when the extra ``export`` is not installed.
    """
    require_extra()
    from oga.export.source import open_source  # imports packages that only the extra brings

    started = time.monotonic()
    source, destination = Path(source), Path(destination)
    formats = WeightFormats(precision, head_precision, block_size, symmetric)
    stored_cache = cache_precision(cache, precision)
    check_replaceable(destination, force=force)
    if source.is_dir() and source.resolve().is_relative_to(destination.resolve()):
        raise ConversionError(f"{destination} holds the source {source}; choose another destination")
    model = open_source(source)
    model.progress = progress
    length = _context_length(context_length, model.spec.context_length, source)
    with atomic_folder(destination, force=force) as folder:
        notes = model.write_text_files(folder)
        _write_model(model, folder, formats, stored_cache, length)
        size = sum(file.stat().st_size for file in folder.iterdir())
    return ConvertReport(
        folder=destination,
        family=model.spec.family,
        precision=precision,
        cache=stored_cache,
        parameters=model.parameters,
        context_length=length,
        bytes=size,
        seconds=time.monotonic() - started,
        notes=tuple(notes),
    )


def _context_length(wanted: int | None, trained: int, source: Path) -> int:
    if wanted is None:
        return trained
    if not 1 <= wanted <= trained:
        raise ConversionError(
            f"context length {wanted} is out of range: {source} was trained for 1 to {trained} tokens"
        )
    return wanted


def _write_model(
    model: WeightSource, folder: Path, formats: WeightFormats, cache: FloatPrecision, context_length: int
) -> None:
    import onnx_ir as ir

    from oga.export.genai_config import write_genai_config
    from oga.export.graph import build_decoder
    from oga.export.tensor_file import TensorFile

    with TensorFile(folder, f"{GRAPH_FILE}.data") as data:
        graph = build_decoder(model, formats, cache, context_length, data)
    ir.save(graph, folder / GRAPH_FILE)
    write_genai_config(folder, model.spec, GRAPH_FILE, context_length)
