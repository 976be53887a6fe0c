"""Where weights come from: one interface over the file formats, with Hugging Face tensor names."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable
from pathlib import Path

import numpy as np

from oga.export.errors import ConversionError
from oga.export.precision import DEFAULT_BLOCK_SIZE, BlockFormat
from oga.export.quantization import F32Array, QuantizedMatrix, quantize
from oga.export.rounding import round_to_nibbles
from oga.export.spec import DecoderSpec

Progress = Callable[[str, int, int], None]


class WeightSource(ABC):
    """An opened model. Tensors are read one at a time; nothing read is kept.

    It remembers which tensors were read, because one that nobody asked for means that the model is not what its config
    says.
    """

    def __init__(self, path: Path, spec: DecoderSpec) -> None:
        """Opens nothing by itself: the subclass has read ``spec`` from ``path``."""
        self.path = path
        self.spec = spec
        self.parameters = 0
        self.progress: Progress | None = None
        self._read: set[str] = set()
        self._done_bytes = 0
        self._latest: str | None = None

    @abstractmethod
    def names(self) -> Iterable[str]:
        """The tensors of the model, by Hugging Face name."""

    @abstractmethod
    def write_text_files(self, folder: Path) -> list[str]:
        """Writes tokenizer.json, tokenizer_config.json and their companions into ``folder``, as far as there are any.

        Returns:
            Sentences about what is missing.
        """

    def rotary_divisors(self) -> F32Array | None:
        """Extra divisors of the rotary frequencies [head_size / 2], where the format keeps a scaling that way."""
        return None

    def read(self, name: str, *shape: int) -> F32Array:
        """A tensor as float32 of that shape.

        Raises:
            ConversionError: when it is missing, has another shape, or cannot be decoded.
        """
        self._claim(name, shape)
        tensor = self._load(name)
        self._advance(name)
        return tensor

    def read_quantized(self, name: str, shape: tuple[int, int], wanted: BlockFormat) -> QuantizedMatrix:
        """A matrix in blocks, exact where the source has such blocks already.

        Raises:
            ConversionError: see ``read``; and when a weight is infinite or no number, which blocks cannot store.
        """
        self._claim(name, shape)
        matrix = self._load_blocks(name, wanted) or self._round(name, wanted)
        self._advance(name)
        return matrix

    def stored_bits(self, name: str) -> int:
        """Bits that a weight takes in the source: 4 to 8 for blocks, 32 for floats of any width."""
        return 32

    def check_all_read(self) -> None:
        """Raises ConversionError when the source has a tensor that no part of the graph asked for."""
        left = sorted(name for name in self.names() if name not in self._read and not self._is_derived(name))
        if left:
            raise ConversionError(
                f"{self.path} has {len(left)} tensor(s) that a {self.spec.family} model of this config does not use, "
                f"first {left[0]}; it is another architecture, which cannot be converted"
            )

    @abstractmethod
    def _shape(self, name: str) -> tuple[int, ...]: ...

    @abstractmethod
    def _nbytes(self, name: str) -> int: ...

    @abstractmethod
    def _load(self, name: str) -> F32Array: ...

    def _load_blocks(self, name: str, wanted: BlockFormat) -> QuantizedMatrix | None:
        """The blocks of the source itself, where it has some that fit."""
        return None

    def _round(self, name: str, wanted: BlockFormat) -> QuantizedMatrix:
        weights = self._load(name)
        # A sum is not finite when a weight is not; sums of rows are a small array, a test of each weight is none.
        with np.errstate(invalid="ignore"):
            sums = np.add.reduce(weights, axis=-1, dtype=np.float64)
        if not np.isfinite(sums).all():
            raise ConversionError(
                f"{self.path}: tensor {name} has weights that are infinite or no number, which blocks cannot store; "
                "fetch the source again, or convert with precision fp32"
            )
        block_size = wanted.block_size or DEFAULT_BLOCK_SIZE
        if wanted.bits == 8:
            return quantize(weights, block_size)
        return round_to_nibbles(weights, block_size, symmetric=wanted.symmetric)

    def _is_derived(self, name: str) -> bool:
        """Whether a tensor that was not read holds nothing that the config does not say already."""
        return name.endswith("rotary_emb.inv_freq") or (name == "lm_head.weight" and self.spec.tied_embeddings)

    def _release(self, name: str) -> None:
        """Gives back the memory that a tensor, which may be a view of a mapped file, was read in."""

    def _claim(self, name: str, shape: tuple[int, ...]) -> None:
        if self._latest is not None:  # until now its reader may have been looking at it
            self._release(self._latest)
            self._latest = None
        if name not in self.names():
            raise ConversionError(f"{self.path} has no tensor {name}; the source is incomplete, fetch it again")
        found = self._shape(name)
        if found != shape:
            raise ConversionError(
                f"{self.path}: tensor {name} has shape {list(found)}, but the config wants {list(shape)}; "
                "config and weights do not belong together"
            )
        self._latest = name
        self._read.add(name)
        self.parameters += math.prod(shape)

    def _advance(self, name: str) -> None:
        self._done_bytes += self._nbytes(name)
        if self.progress is not None:
            total = sum(self._nbytes(name) for name in self.names() if not self._is_derived(name))
            self.progress("Converting", self._done_bytes, total)


def open_source(path: Path) -> WeightSource:
    """Opens a Hugging Face folder or a GGUF file.

    Raises:
        ConversionError: when it is neither, or is damaged, or is a model that cannot be converted.
    """
    from oga.export.gguf_source import GgufSource
    from oga.export.huggingface_source import HuggingFaceSource

    if path.is_dir():
        return HuggingFaceSource(path)
    if not path.exists():
        raise ConversionError(f"{path} does not exist; name a Hugging Face folder or a GGUF file")
    with path.open("rb") as file:
        magic = file.read(4)
    if magic != b"GGUF":
        raise ConversionError(
            f"{path} is no GGUF file (it starts with {magic!r}); name a Hugging Face folder or a GGUF file"
        )
    return GgufSource(path)
