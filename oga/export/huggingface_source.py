"""A Hugging Face folder: config.json, safetensors files, tokenizer files."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from typing import Any

from oga.export.chat import end_of_turn_ids
from oga.export.errors import ConversionError
from oga.export.families import spec_from_config
from oga.export.fields import Fields, read_fields
from oga.export.quantization import F32Array
from oga.export.safetensors_reader import SafetensorsReader
from oga.export.source import WeightSource
from oga.export.spec import DecoderSpec

_INDEX = "model.safetensors.index.json"
_COPIED = ("tokenizer.json", "special_tokens_map.json", "generation_config.json")


class HuggingFaceSource(WeightSource):
    """Reads a folder as ``save_pretrained`` writes it."""

    def __init__(self, folder: Path) -> None:
        """Reads the configs and the headers of the weight files. Raises ConversionError."""
        if not (folder / "config.json").is_file():
            raise ConversionError(f"{folder} has no config.json; name a Hugging Face folder or a GGUF file")
        self._tokenizer = _read_optional(folder / "tokenizer.json")
        self._tokenizer_config = _tokenizer_config(folder)
        super().__init__(folder, self._spec(folder))
        readers = [SafetensorsReader(file) for file in _weight_files(folder)]
        self._reader = {name: reader for reader in readers for name in reader.entries}

    def names(self) -> Iterable[str]:
        """See the base class."""
        return self._reader.keys()

    def write_text_files(self, folder: Path) -> list[str]:
        """See the base class. A chat template kept in a file of its own moves into tokenizer_config.json."""
        for name in _COPIED:
            if (self.path / name).is_file():
                shutil.copyfile(self.path / name, folder / name)
        if self._tokenizer_config:
            text = json.dumps(self._tokenizer_config, ensure_ascii=False, indent=2)
            (folder / "tokenizer_config.json").write_text(text + "\n", encoding="utf-8")
        if not self._tokenizer:
            return [f"{self.path} has no tokenizer.json: the model takes token ids only"]
        return [] if self._tokenizer_config.get("chat_template") else [f"{self.path} has no chat template"]

    def _spec(self, folder: Path) -> DecoderSpec:
        spec = spec_from_config(
            read_fields(folder / "config.json"),
            Fields(_read_optional(folder / "generation_config.json"), str(folder / "generation_config.json")),
        )
        special = {
            token.get("content"): token.get("id")
            for token in self._tokenizer.get("added_tokens", [])
            if token.get("special")
        }
        ends = end_of_turn_ids(self._tokenizer_config.get("chat_template"), special)
        return replace(spec, tokens=replace(spec.tokens, eos=tuple(dict.fromkeys((*spec.tokens.eos, *ends)))))

    def _shape(self, name: str) -> tuple[int, ...]:
        return self._reader[name].entries[name].shape

    def _nbytes(self, name: str) -> int:
        return self._reader[name].entries[name].nbytes

    def _load(self, name: str) -> F32Array:
        return self._reader[name].read(name)

    def _release(self, name: str) -> None:
        self._reader[name].release(name)


def _weight_files(folder: Path) -> list[Path]:
    """The files that hold the weights: those the index names, or every safetensors file."""
    if (folder / _INDEX).is_file():
        names = set(read_fields(folder / _INDEX).section("weight_map").values.values())
        missing = sorted(name for name in names if not (folder / name).is_file())
        if missing:
            raise ConversionError(f"{folder} lacks {missing[0]}, which {_INDEX} names; fetch it again")
        return [folder / name for name in sorted(names)]
    files = sorted(folder.glob("*.safetensors"))
    if not files:
        raise ConversionError(
            f"{folder} has no *.safetensors file; save the model again with safe_serialization=True, or fetch it again"
        )
    return files


def _read_optional(path: Path) -> dict[str, Any]:
    return dict(read_fields(path).values) if path.is_file() else {}


def _tokenizer_config(folder: Path) -> dict[str, Any]:
    """tokenizer_config.json with the chat template in it, wherever the folder keeps that."""
    config = _read_optional(folder / "tokenizer_config.json")
    template = folder / "chat_template.jinja"
    if template.is_file():
        config["chat_template"] = template.read_text(encoding="utf-8")
    return config
