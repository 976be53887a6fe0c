"""The tokenizer that a GGUF file carries in its metadata, rebuilt as the files that Hugging Face tokenizers load."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers, processors

from oga.export.errors import ConversionError
from oga.export.fields import Fields
from oga.export.spec import DecoderSpec

_BYTE_LEVEL_BPE = "gpt2"
# Token types of the format that matter here.
_CONTROL, _USER_DEFINED = 3, 4
_LLAMA3_WORDS = (
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+"
    r"|\s+(?!\S)|\s+"
)
_QWEN2_WORDS = _LLAMA3_WORDS.replace(r"\p{N}{1,3}", r"\p{N}")  # each digit alone


def _gpt2() -> pre_tokenizers.PreTokenizer:
    return pre_tokenizers.ByteLevel(add_prefix_space=False)


def _smollm() -> pre_tokenizers.PreTokenizer:
    return pre_tokenizers.Sequence([pre_tokenizers.Digits(individual_digits=True), _gpt2()])


def _words(pattern: str) -> pre_tokenizers.PreTokenizer:
    words = pre_tokenizers.Split(Regex(pattern), behavior="isolated")
    return pre_tokenizers.Sequence([words, pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)])


@dataclass(frozen=True)
class _TextRules:
    """What a name of the format stands for.

    Attributes:
        cut: how text is cut into words.
        starts_with_bos: a sequence starts with the bos token by default.
        ignore_merges: a word that is a token stays whole, whatever the merges say.
        composed: text is brought into Unicode's composed form first.
    """

    cut: Callable[[], pre_tokenizers.PreTokenizer]
    starts_with_bos: bool = False
    ignore_merges: bool = False
    composed: bool = False


_TEXT_RULES: dict[str, _TextRules] = {
    "gpt-2": _TextRules(_gpt2),
    "llama-bpe": _TextRules(lambda: _words(_LLAMA3_WORDS), starts_with_bos=True, ignore_merges=True),
    "qwen2": _TextRules(lambda: _words(_QWEN2_WORDS), composed=True),
    "smollm": _TextRules(_smollm),
}


class GgufTokenizer:
    """Vocabulary, merges, special tokens and chat template of a GGUF file."""

    def __init__(self, metadata: Fields) -> None:
        """Reads the metadata. Raises ConversionError for a tokenizer that cannot be rebuilt."""
        fields = metadata.below("tokenizer.ggml.")
        model = fields.text("model")
        if model != _BYTE_LEVEL_BPE:
            raise fields.wrong(
                "model", model, f'"{_BYTE_LEVEL_BPE}"; convert the Hugging Face folder of the model instead'
            )
        pre = fields.text("pre", "gpt-2")
        if pre not in _TEXT_RULES:
            known = ", ".join(sorted(_TEXT_RULES))
            raise fields.wrong("pre", pre, f"one of {known}; convert the Hugging Face folder of the model instead")
        self._rules = _TEXT_RULES[pre]
        self._where = metadata.where
        self._tokens = fields.strings("tokens")
        self._merges = [_pair(merge) for merge in fields.strings("merges")]
        self._types = fields.integers("token_type")
        if len(self._types) not in (0, len(self._tokens)):
            raise ConversionError(
                f"{fields.where}: token_type has {len(self._types)} entries for {len(self._tokens)} tokens; "
                "fetch it again"
            )
        self.bos = self._token_id(fields, "bos_token_id")
        self.eos = self._token_id(fields, "eos_token_id")
        self.end_of_turn = self._token_id(fields, "eot_token_id")
        self.pad = self._token_id(fields, "padding_token_id")
        self.unknown = self._token_id(fields, "unknown_token_id")
        self.starts_with_bos: bool = fields.boolean("add_bos_token", self._rules.starts_with_bos)
        self.chat_template: str | None = metadata.text("tokenizer.chat_template", None)

    @property
    def vocab_size(self) -> int:
        """Number of token ids."""
        return len(self._tokens)

    @property
    def special_tokens(self) -> dict[str, int]:
        """Ids by text of the tokens that no text encodes to by accident."""
        return {self._tokens[token]: token for token, kind in enumerate(self._types) if kind == _CONTROL}

    def write(self, folder: Path, spec: DecoderSpec) -> list[str]:
        """Writes tokenizer.json, its configs and generation_config.json.

        Returns:
            Sentences about what is missing.
        """
        self._tokenizer().save(str(folder / "tokenizer.json"), pretty=False)
        names = {"bos_token": self.bos, "eos_token": self.eos, "unk_token": self.unknown, "pad_token": self.pad}
        special = {name: self._tokens[token] for name, token in names.items() if token is not None}
        config: dict[str, Any] = {
            **special,
            "add_bos_token": self.starts_with_bos,
            "clean_up_tokenization_spaces": False,
            "model_max_length": spec.context_length,
            # The class that takes tokenizer.json as it is; those with a model's name rebuild parts of it by habit.
            "tokenizer_class": "PreTrainedTokenizerFast",
        }
        if self.chat_template is not None:
            config["chat_template"] = self.chat_template
        generation = {
            "bos_token_id": spec.tokens.bos,
            "eos_token_id": list(spec.tokens.eos),
            "pad_token_id": spec.tokens.pad,
        }
        for name, content in (
            ("tokenizer_config.json", config),
            ("special_tokens_map.json", special),
            ("generation_config.json", generation),
        ):
            (folder / name).write_text(json.dumps(content, ensure_ascii=False, indent=2) + "\n", encoding="utf-8")
        return [] if self.chat_template else [f"{self._where} has no chat template"]

    def _token_id(self, fields: Fields, name: str) -> int | None:
        token: int | None = fields.integer(name, None)
        if token is not None and not 0 <= token < len(self._tokens):
            raise fields.wrong(name, token, f"below the vocabulary size {len(self._tokens)}")
        return token

    def _tokenizer(self) -> Tokenizer:
        vocabulary = {text: token for token, text in enumerate(self._tokens)}
        if len(vocabulary) != len(self._tokens):
            raise ConversionError(f"{self._where}: tokens repeat in the vocabulary; fetch the file again")
        try:
            tokenizer = Tokenizer(models.BPE(vocabulary, self._merges, ignore_merges=self._rules.ignore_merges))
        except Exception as error:  # the library has no error class of its own
            raise ConversionError(
                f"{self._where}: the merges do not fit the vocabulary ({error}); fetch it again"
            ) from error
        if self._rules.composed:
            tokenizer.normalizer = normalizers.NFC()
        tokenizer.pre_tokenizer = self._rules.cut()
        tokenizer.decoder = decoders.ByteLevel()
        if self.starts_with_bos and self.bos is not None:
            text = self._tokens[self.bos]
            tokenizer.post_processor = processors.TemplateProcessing(
                single=f"{text} $A", pair=f"{text} $A {text}:1 $B:1", special_tokens=[(text, self.bos)]
            )
        tokenizer.add_special_tokens(self._added_tokens(_CONTROL))
        tokenizer.add_tokens(self._added_tokens(_USER_DEFINED))
        return tokenizer

    def _added_tokens(self, kind: int) -> list[AddedToken]:
        return [
            AddedToken(text, normalized=False, special=kind == _CONTROL)
            for text, found in zip(self._tokens, self._types, strict=False)
            if found == kind
        ]


def _pair(merge: str) -> tuple[str, str]:
    left, _, right = merge.partition(" ")
    return left, right
