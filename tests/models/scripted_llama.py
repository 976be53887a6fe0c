"""A llama that says what it is told: each script follows the character that the prompt ends with, then the end."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from safetensors.numpy import load_file, save_file
from tiny_llama import SPECIAL_TOKENS, tiny_tokenizer, write_tiny_llama
from tokenizers import AddedToken, Tokenizer, pre_tokenizers

END = 0
GAIN = 30.0  # the right token's logit; others reach about half of it

# A conversation ends with its last message, so that its last character chooses the script.
TEMPLATE = (
    "{% for message in messages %}<|im_start|>{{ message['role'] }}\n"
    "{% if message['content'] %}{{ message['content'] }}{% endif %}"
    "{% for call in message['tool_calls'] or [] %}{{ call['function']['arguments'] | tojson }}{% endfor %}"
    "{% if not loop.last %}<|im_end|>\n{% endif %}{% endfor %}"
)

Script = Sequence[bytes]


def write_scripted_llama(
    folder: Path, scripts: Mapping[str, Script], specials: Sequence[str] = (), **changes: Any
) -> Path:
    """Writes a Hugging Face folder.

    Args:
        folder: created when it is not there.
        scripts: what follows a prompt whose last token is the key's one character: pieces of text, a token each; no
            piece may be in two scripts. Single bytes are the tokenizer's own tokens.
        specials: texts of further special tokens; a piece that spells one is that token.
        changes: fields of config.json.

    Returns:
        ``folder``.
    """
    write_tiny_llama(folder, tie_word_embeddings=False, **changes)
    pieces = [piece for script in scripts.values() for piece in script]
    if len(set(pieces)) < len(pieces):
        raise ValueError("a piece is in two scripts, or twice in one")
    tokenizer = _tokenizer(pieces, specials)
    tokenizer.save(str(folder / "tokenizer.json"))
    settings = json.loads((folder / "tokenizer_config.json").read_text())
    (folder / "tokenizer_config.json").write_text(json.dumps(settings | {"chat_template": TEMPLATE}))
    _write_weights(folder / "model.safetensors", tokenizer, scripts)
    return folder


def token_of(tokenizer: Tokenizer, piece: bytes) -> int:
    """The id of a piece."""
    found = tokenizer.token_to_id(_letters(piece))
    found = tokenizer.token_to_id(piece.decode()) if found is None else found
    assert found is not None, piece
    return int(found)


def _letters(piece: bytes) -> str:
    """How a byte-level vocabulary writes bytes."""
    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    visible = [*range(33, 127), *range(161, 173), *range(174, 256)]
    hidden = [byte for byte in range(256) if byte not in visible]
    names = {byte: chr(byte) for byte in visible} | {byte: chr(256 + at) for at, byte in enumerate(hidden)}
    assert sorted(names.values()) == alphabet
    return "".join(names[byte] for byte in piece)


def _tokenizer(pieces: Sequence[bytes], specials: Sequence[str]) -> Tokenizer:
    description = json.loads(tiny_tokenizer(512).to_str())
    vocabulary = description["model"]["vocab"]
    for piece in pieces:
        if piece.decode("utf-8", "replace") not in specials:
            vocabulary.setdefault(_letters(piece), len(vocabulary))
    tokenizer = Tokenizer.from_str(json.dumps(description))
    known = len(tokenizer.get_vocab())
    tokenizer.add_special_tokens([AddedToken(text, normalized=False, special=True) for text in specials])
    assert len(tokenizer.get_vocab()) == known + len(specials) <= 512
    assert tokenizer.token_to_id(SPECIAL_TOKENS[0]) == END
    return tokenizer


def _write_weights(path: Path, tokenizer: Tokenizer, scripts: Mapping[str, Script]) -> None:
    """The last token alone decides: attention and the inner layers add nothing."""
    weights = load_file(path)
    for name, values in weights.items():
        if name.endswith(("o_proj.weight", "down_proj.weight")):
            values[:] = 0
        elif name.endswith("norm.weight"):
            values[:] = 1
    embedded = np.random.default_rng(7).standard_normal(weights["model.embed_tokens.weight"].shape)
    embedded /= np.sqrt((embedded**2).mean(axis=1, keepdims=True))
    head = np.zeros_like(weights["lm_head.weight"])
    for start, script in scripts.items():
        tokens = [token_of(tokenizer, piece) for piece in (start.encode(), *script)]
        for before, after in zip(tokens, [*tokens[1:], END], strict=True):
            head[after] += GAIN * embedded[before] / embedded.shape[1]
    weights["model.embed_tokens.weight"] = embedded.astype(np.float32)
    weights["lm_head.weight"] = head.astype(np.float32)
    save_file(weights, path, metadata={"format": "pt"})
