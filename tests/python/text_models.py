"""Small tokenizers of the kinds that models come with, written as model folders."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from tokenizers import (
    AddedToken,
    Tokenizer,
    decoders,
    models,
    normalizers,
    pre_tokenizers,
    processors,
)

SPECIALS = ("<|bos|>", "<|im_start|>", "<|im_end|>")
CHATML = (
    "{% for message in messages %}<|im_start|>{{ message['role'] }}\n{{ message['content'] | trim }}<|im_end|>\n"
    "{% endfor %}{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)


def byte_level() -> Tokenizer:
    """Byte-level BPE as of GPT-2 and its many heirs; half a character is a token of its own."""
    letters = sorted(pre_tokenizers.ByteLevel.alphabet())
    merges = [("h", "e"), ("he", "l"), ("hel", "l"), ("hell", "o"), ("Ġ", "w"), ("i", "m")]
    vocabulary = [*SPECIALS, *letters, *("".join(merge) for merge in merges)]
    tokenizer = Tokenizer(models.BPE({text: number for number, text in enumerate(vocabulary)}, merges))
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    tokenizer.add_special_tokens([AddedToken(text, normalized=False, special=True) for text in SPECIALS])
    return tokenizer


def byte_fallback() -> Tokenizer:
    """BPE over characters with byte tokens for the rest, as of Llama 2: spaces are letters, the first is dropped."""
    letters = [*"abcdefghijklmnopqrstuvwxyz", "▁", ".", "<", ">", "|", "_", "é"]
    merges = [("▁", "h"), ("▁h", "i"), ("a", "b")]
    vocabulary = [
        "<unk>",
        *SPECIALS,
        *(f"<0x{byte:02X}>" for byte in range(256)),
        *letters,
        *("".join(merge) for merge in merges),
    ]
    model = models.BPE(
        {text: number for number, text in enumerate(vocabulary)},
        merges,
        unk_token="<unk>",
        fuse_unk=True,
        byte_fallback=True,
    )
    tokenizer = Tokenizer(model)
    tokenizer.normalizer = normalizers.Sequence([normalizers.Prepend("▁"), normalizers.Replace(" ", "▁")])
    tokenizer.decoder = decoders.Sequence(
        [decoders.Replace("▁", " "), decoders.ByteFallback(), decoders.Fuse(), decoders.Strip(" ", 1, 0)]
    )
    tokenizer.add_special_tokens([AddedToken(text, normalized=False, special=True) for text in SPECIALS])
    return tokenizer


def with_bos(tokenizer: Tokenizer) -> Tokenizer:
    """Makes a tokenizer put a BOS before every text."""
    bos = SPECIALS[0]
    tokenizer.post_processor = processors.TemplateProcessing(
        single=f"{bos} $A", pair=f"{bos} $A $B", special_tokens=[(bos, tokenizer.token_to_id(bos))]
    )
    return tokenizer


def write_folder(folder: Path, tokenizer: Tokenizer, template: str | None = CHATML, **settings: Any) -> Path:
    """Writes the text files of a model folder."""
    folder.mkdir(parents=True, exist_ok=True)
    tokenizer.save(str(folder / "tokenizer.json"))
    content = {"bos_token": SPECIALS[0], "eos_token": {"content": SPECIALS[2]}, **settings}
    if template is not None:
        content["chat_template"] = template
    (folder / "tokenizer_config.json").write_text(json.dumps(content), encoding="utf-8")
    return folder
