"""The real SmolLM2-135M-Instruct: its tokenizer, its manifest, and greedy text against transformers."""

from __future__ import annotations

import json
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import gguf
import jinja2
import numpy as np
import pytest
import regex
from exported import arrays_of, block_shapes, block_weights
from paged_oracle import PagedRunner
from reference_hf import reference_greedy
from tokenizers import Tokenizer

from oga.export import convert

TEXTS = (
    "Hello, world!",
    "What is the capital of France?",
    "In 1984, 23% of 1,000,000 readers couldn't say why they'd   paused…",
    "  leading, trailing and\ttabbed \n\n lines \r\n",
    "naïve café, Straße, Ελληνικά, русский, 日本語のテキスト, हिन्दी, العربية",
    "def f(x: int) -> str:\n    return f'{x!r:>10}'  # ½ ² Ⅷ",
    "🙂 and 👩‍👩‍👧 and ∑ ∫ ≠ ∞",
    "I'm we'll they've IT'S O'Clock",
    "https://example.com/a?b=c&d=%20#e",
    "",
    " ",
    "0123456789 3.14159 -1e-5",
)
PROMPTS = ("What is the capital of France?", "Write one sentence about the sea.", "What is 2 plus 3?")
NEW_TOKENS = 10


@pytest.fixture(scope="module")
def tokenizer(smollm2_folder: Path) -> Tokenizer:
    return Tokenizer.from_file(str(smollm2_folder / "tokenizer.json"))


@pytest.fixture(scope="module")
def metadata(smollm2_source: Path) -> dict[str, Any]:
    reader = gguf.GGUFReader(smollm2_source)
    return {name: field.contents() for name, field in reader.fields.items() if name.startswith("tokenizer.")}


class NaiveTokenizer:
    """Byte-level BPE from its definition, with the words of the format: each digit alone, then GPT-2's."""

    words = regex.compile(r"'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+")

    def __init__(self, tokens: list[str], merges: list[str]) -> None:
        self.ids = {text: token for token, text in enumerate(tokens)}
        self.ranks = {tuple(merge.split(" ")): rank for rank, merge in enumerate(merges)}
        printable = [*range(33, 127), *range(161, 173), *range(174, 256)]
        others = [byte for byte in range(256) if byte not in printable]
        self.letters = {byte: chr(byte) for byte in printable}
        self.letters |= {byte: chr(256 + index) for index, byte in enumerate(others)}

    def encode(self, text: str) -> list[int]:
        digits = regex.split(r"(\p{N})", text)
        pieces = [word for part in digits for word in self.words.findall(part)]
        return [self.ids[token] for piece in pieces for token in self.merged(piece) if token in self.ids]

    def merged(self, piece: str) -> list[str]:
        parts = [self.letters[byte] for byte in piece.encode()]
        while True:
            pairs = [pair for pair in pairwise(parts) if pair in self.ranks]
            if not pairs:
                return parts
            best = min(pairs, key=self.ranks.__getitem__)
            parts = list(self.merge(parts, best))

    @staticmethod
    def merge(parts: list[str], pair: tuple[str, ...]) -> Iterator[str]:
        index = 0
        while index < len(parts):
            both = tuple(parts[index : index + 2]) == pair
            yield "".join(pair) if both else parts[index]
            index += 2 if both else 1


@pytest.mark.parametrize("text", TEXTS)
def test_text_becomes_the_tokens_of_a_tokenizer_written_from_the_definition(
    text: str, tokenizer: Tokenizer, metadata: dict[str, Any]
) -> None:
    naive = NaiveTokenizer(metadata["tokenizer.ggml.tokens"], metadata["tokenizer.ggml.merges"])
    found = tokenizer.encode(text).ids
    assert found == naive.encode(text)
    assert tokenizer.decode(found) == text


def test_the_vocabulary_is_the_files(tokenizer: Tokenizer, metadata: dict[str, Any], smollm2_folder: Path) -> None:
    tokens = metadata["tokenizer.ggml.tokens"]
    assert tokenizer.get_vocab() == {text: token for token, text in enumerate(tokens)}
    merges = json.loads((smollm2_folder / "tokenizer.json").read_text())["model"]["merges"]
    assert [" ".join(merge) for merge in merges] == metadata["tokenizer.ggml.merges"]


def test_chat_markers_are_single_tokens_that_decoding_leaves_out(tokenizer: Tokenizer) -> None:
    encoded = tokenizer.encode("<|im_start|>user\nHi 42<|im_end|>\n")
    assert [encoded.tokens[0], encoded.tokens[-2]] == ["<|im_start|>", "<|im_end|>"]
    assert [encoded.ids[0], encoded.ids[-2]] == [1, 2]
    assert tokenizer.decode(encoded.ids) == "user\nHi 42\n"
    assert tokenizer.decode(encoded.ids, skip_special_tokens=False) == "<|im_start|>user\nHi 42<|im_end|>\n"


def test_the_manifest_says_what_the_file_says(smollm2_folder: Path, metadata: dict[str, Any]) -> None:
    manifest = json.loads((smollm2_folder / "genai_config.json").read_text())
    model = manifest["model"]
    special = [model[name] for name in ("bos_token_id", "eos_token_id", "pad_token_id")]
    assert special == [1, [2], 2]
    assert (model["type"], model["vocab_size"], model["context_length"]) == ("llama", 49152, 8192)
    names = ("num_hidden_layers", "num_attention_heads", "num_key_value_heads", "head_size", "hidden_size")
    assert [model["decoder"][name] for name in names] == [30, 9, 3, 64, 576]
    settings = json.loads((smollm2_folder / "tokenizer_config.json").read_text())
    assert settings["chat_template"] == metadata["tokenizer.chat_template"]


def test_greedy_answers_are_those_of_transformers_alone_and_together(
    smollm2_reference: Any, smollm2_folder: Path, tokenizer: Tokenizer
) -> None:
    template = jinja2.Template(json.loads((smollm2_folder / "tokenizer_config.json").read_text())["chat_template"])
    prompts = {}
    for row, text in enumerate(PROMPTS):
        chat = template.render(messages=[{"role": "user", "content": text}], add_generation_prompt=True)
        prompts[row] = tokenizer.encode(chat).ids
    wanted = {row: reference_greedy(smollm2_reference, prompt, NEW_TOKENS, eos=[2]) for row, prompt in prompts.items()}
    assert greedy_together(PagedRunner(smollm2_folder, block_size=16, max_rows=len(prompts)), prompts) == wanted
    assert "Paris" in tokenizer.decode(wanted[0])


def test_int4_holds_exactly_the_weights_of_the_file(smollm2_source: Path, smollm2_folder: Path, tmp_path: Path) -> None:
    small = convert(smollm2_source, tmp_path / "int4", precision="int4").folder
    shapes = block_shapes(small)
    assert shapes.pop("model.embed_tokens") == (8, 32, False)  # as the file has it
    assert set(shapes.values()) == {(4, 32, True)}
    wanted = arrays_of(smollm2_folder)
    for name, values in block_weights(small).items():
        np.testing.assert_allclose(values, wanted[name], rtol=0, atol=1e-6, err_msg=name)
    size = (small / "model.onnx.data").stat().st_size
    assert size < 0.25 * (smollm2_folder / "model.onnx.data").stat().st_size


def greedy_together(runner: PagedRunner, prompts: dict[int, list[int]]) -> dict[int, list[int]]:
    """Greedy answers of all prompts in shared steps."""
    answers: dict[int, list[int]] = {row: [] for row in prompts}
    feed = dict(prompts)
    while feed:
        last = np.cumsum([len(tokens) for tokens in feed.values()]) - 1
        logits = runner.step(feed, logits_indices=last.tolist())
        chosen = {row: int(token) for row, token in zip(feed, logits.argmax(-1), strict=True)}
        feed = {}
        for row, token in chosen.items():
            if token != 2:
                answers[row].append(token)
                if len(answers[row]) < NEW_TOKENS:
                    feed[row] = [token]
    return answers
