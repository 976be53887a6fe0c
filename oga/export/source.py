"""Where weights come from: one interface over the file formats, with Hugging Face tensor names."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable
from pathlib import Path

from oga.export.errors import ConversionError
from oga.export.quantization import F32Array, QuantizedMatrix, quantize
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

    def read_quantized(self, name: str, *shape: int) -> QuantizedMatrix:
        """A matrix as 8-bit blocks, exact where the format allows it. Raises what ``read`` raises."""
        self._claim(name, shape)
        matrix = self._load_quantized(name)
        self._advance(name)
        return matrix

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

    def _load_quantized(self, name: str) -> QuantizedMatrix:
        return quantize(self._load(name))

    def _is_derived(self, name: str) -> bool:
        """Whether a tensor that was not read holds nothing that the config does not say already."""
        return name.endswith("rotary_emb.inv_freq") or (name == "lm_head.weight" and self.spec.tied_embeddings)

    def _claim(self, name: str, shape: tuple[int, ...]) -> None:
        if name not in self.names():
            raise ConversionError(f"{self.path} has no tensor {name}; the source is incomplete, fetch it again")
        found = self._shape(name)
        if found != shape:
            raise ConversionError(
                f"{self.path}: tensor {name} has shape {list(found)}, but the config wants {list(shape)}; "
                "config and weights do not belong together"
            )
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
