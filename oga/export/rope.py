"""Tables of the rotary embedding.

The arithmetic follows the reference implementation operation by operation in float32, roundings included: a model is
compared with that reference, and at position 8000 an angle that was computed more exactly differs by 5e-4.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from oga.export.spec import RopeSpec

F32Array = npt.NDArray[np.float32]


def rotary_tables(
    rope: RopeSpec, head_size: int, context_length: int, divisors: F32Array | None = None
) -> tuple[F32Array, F32Array]:
    """Cosines and sines, each float32 [context_length, head_size / 2].

    Args:
        rope: base frequency and scaling.
        head_size: rotated channels of a head.
        context_length: number of positions.
        divisors: [head_size / 2] extra divisors of the frequencies, the form in which GGUF files keep a scaling.
    """
    frequencies = _frequencies(rope, head_size)
    if divisors is not None:
        frequencies = frequencies / divisors
    angles = np.arange(context_length, dtype=np.float32)[:, None] * frequencies
    cosines, sines = np.empty_like(angles), np.empty_like(angles)
    # Evaluated in double so that every machine gets the same table.
    np.cos(angles, out=cosines, dtype=np.float64, casting="same_kind")
    np.sin(angles, out=sines, dtype=np.float64, casting="same_kind")
    return cosines, sines


def _frequencies(rope: RopeSpec, head_size: int) -> F32Array:
    exponents = np.arange(0, head_size, 2, dtype=np.float32) / np.float32(head_size)
    powers = (np.float64(rope.theta) ** exponents.astype(np.float64)).astype(np.float32)
    frequencies: F32Array = np.float32(1) / powers
    if rope.kind == "linear":
        return frequencies / np.float32(rope.factor)
    if rope.kind == "llama3":
        return _llama3_frequencies(rope, frequencies)
    return frequencies


def _llama3_frequencies(rope: RopeSpec, frequencies: F32Array) -> F32Array:
    """Low frequencies are divided by the factor, high ones kept, the band between is blended."""
    low, high = np.float32(rope.low_frequency_factor), np.float32(rope.high_frequency_factor)
    original, factor = np.float32(rope.original_context_length), np.float32(rope.factor)
    wavelengths = np.float32(2 * np.pi) / frequencies
    scaled = np.where(wavelengths > original / low, frequencies / factor, frequencies)
    smooth = (original / wavelengths - low) / (high - low)
    blended = (1 - smooth) * scaled / factor + smooth * scaled
    between = (wavelengths >= original / high) & (wavelengths <= original / low)
    result: F32Array = np.where(between, blended, scaled).astype(np.float32)
    return result
