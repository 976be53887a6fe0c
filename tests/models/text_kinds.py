"""Small tokenizers of every kind that models come with, trained on a few lines, as tokenizer.json objects."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

from tokenizers import Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers, processors, trainers

Description = dict[str, Any]

BOS, START, END = "<|bos|>", "<|im_start|>", "<|im_end|>"
SPECIALS = (BOS, START, END)
GPT2 = r"'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+"
LLAMA3 = (
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+"
    r"|\s+(?!\S)|\s+"
)
QWEN2 = LLAMA3.replace(r"\p{N}{1,3}", r"\p{N}")
# Emoji with joiners and skin tones, Chinese, Japanese, Korean, combining marks, right-to-left, code, spaces.
TEXT = (
    "Hello world, hello 🙂! I'm sure they'll say IT'S fine: naïve café, crème brûlée.\n"
    "Decomposed: e\u0301a\u0308o\u0302 n\u0303 \u0915\u094d\u0937\u093f.\n\n"
    "模型在中文里说你好。日本語のテキストも、カタカナも。한국어도 됩니다. Привет, мир! שלום مرحبا\n"
    "👨\u200d👩\u200d👧\u200d👦 👍🏽 🏳️\u200d🌈 ❤️ x²½ 12345 6,789.01  two  spaces\t\ttabs\r\nCRLF\n"
    "if (a<b) {\n    return x->y[0] != '\\0';\n}\n<|not|> <3 a_b__c  end. "
)


def corpus() -> list[str]:
    """Lines to train on: the text, and plain words so that merges of several letters exist."""
    plain = "the model says hello to the world and tells them that we will be there then "
    return TEXT.splitlines() * 3 + [plain[i:] + plain[:i] for i in range(0, len(plain), 5)]


def _description(tokenizer: Tokenizer) -> Description:
    found: Description = json.loads(tokenizer.to_str())
    return found


def _added(token_id: int, content: str, **flags: bool) -> Description:
    default = {"single_word": False, "lstrip": False, "rstrip": False, "normalized": False, "special": True}
    return {"id": token_id, "content": content, **default, **flags}


def byte_level(pre_tokenizer: Any = None, normalizer: Any = None) -> Description:
    """Byte-level BPE as of GPT-2 and its heirs, with added tokens of every sort."""
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizer or pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    if normalizer is not None:
        tokenizer.normalizer = normalizer
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    trainer = trainers.BpeTrainer(
        vocab_size=420, initial_alphabet=alphabet, special_tokens=list(SPECIALS), show_progress=False
    )
    tokenizer.train_from_iterator(corpus(), trainer)
    found = _description(tokenizer)
    size = len(found["model"]["vocab"])
    found["added_tokens"] += [
        _added(size, "<|tool|>", special=False),
        _added(size + 1, "<|left|>", lstrip=True),
        _added(size + 2, "<|right|>", rstrip=True, special=False),
        _added(size + 3, "two words\n", special=False),
        _added(size + 4, "ñé", special=False),
    ]
    return found


def split(pattern: str) -> Any:
    """Pieces by a regular expression, as of Llama 3 and Qwen 2."""
    return pre_tokenizers.Sequence(
        [
            pre_tokenizers.Split(Regex(pattern), "isolated"),
            pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False),
        ]
    )


def digits() -> Any:
    """Digits one by one, as of SmolLM2."""
    return pre_tokenizers.Sequence(
        [pre_tokenizers.Digits(individual_digits=True), pre_tokenizers.ByteLevel(add_prefix_space=False)]
    )


def merges_as_text() -> Description:
    """The merges written "a b", as files of old versions have them."""
    found = byte_level()
    found["model"]["merges"] = [" ".join(merge) for merge in found["model"]["merges"]]
    found["model"]["ignore_merges"] = True
    return found


def holes() -> Description:
    """A vocabulary with unused ids, and added tokens that it holds and that it does not."""
    found = byte_level()
    vocab: dict[str, int] = found["model"]["vocab"]
    found["model"]["vocab"] = {text: number + 7 * (number > 100) + 5 * (number > 300) for text, number in vocab.items()}
    found["added_tokens"] = [token for token in found["added_tokens"] if token["content"] in SPECIALS]
    found["added_tokens"].append(_added(999, "<|late|>"))
    return found


def sentencepiece(normalizer: Any = None, pre_tokenizer: Any = None, strip: bool = True) -> Description:
    """BPE over characters with byte tokens for the rest, as of Llama 2: spaces are letters."""
    trained = Tokenizer(models.BPE())
    trained.pre_tokenizer = pre_tokenizers.Metaspace()
    byte_tokens = [f"<0x{byte:02X}>" for byte in range(256)]
    trainer = trainers.BpeTrainer(
        vocab_size=480, special_tokens=["<unk>", *SPECIALS, *byte_tokens], limit_alphabet=90, show_progress=False
    )
    trained.train_from_iterator(corpus(), trainer)
    found = _description(trained)
    model = found["model"]
    for left, right in (("▁", "▁"), ("▁▁", "▁▁"), ("▁▁", "▁")):
        model["vocab"].setdefault(left + right, len(model["vocab"]))
        model["merges"].append([left, right])
    model |= {"unk_token": "<unk>", "fuse_unk": True, "byte_fallback": True}
    tokenizer = Tokenizer.from_str(json.dumps({**found, "added_tokens": [], "pre_tokenizer": None}))
    tokenizer.normalizer = normalizer
    tokenizer.pre_tokenizer = pre_tokenizer
    last = [decoders.Strip(" ", 1, 0)] if strip else []
    tokenizer.decoder = decoders.Sequence([decoders.Replace("▁", " "), decoders.ByteFallback(), decoders.Fuse(), *last])
    result = _description(tokenizer)
    result["added_tokens"] = [_added(number, text) for number, text in enumerate(("<unk>", *SPECIALS))]
    return result


def llama2() -> Description:
    """Spaces written by a normalizer, one more before every text."""
    return sentencepiece(normalizers.Sequence([normalizers.Prepend("▁"), normalizers.Replace(" ", "▁")]))


def mistral() -> Description:
    """Spaces written by a pre-tokenizer, one more before a text but not behind an added token."""
    return sentencepiece(pre_tokenizer=pre_tokenizers.Metaspace(prepend_scheme="first", split=False))


def gemma() -> Description:
    """No space before the text, none dropped from it."""
    parts = pre_tokenizers.Split(" ", "merged_with_previous")
    return sentencepiece(normalizers.Replace(" ", "▁"), parts, strip=False)


def unigram(scheme: str) -> Description:
    """A unigram model as of T5; the decoder drops spaces from the first token unless the scheme is "never"."""
    tokenizer = Tokenizer(models.Unigram())
    tokenizer.pre_tokenizer = pre_tokenizers.Metaspace(prepend_scheme=scheme)
    tokenizer.decoder = decoders.Metaspace(prepend_scheme=scheme)
    trainer = trainers.UnigramTrainer(
        vocab_size=300, special_tokens=["<unk>", *SPECIALS], unk_token="<unk>", show_progress=False
    )
    tokenizer.train_from_iterator(corpus(), trainer)
    return _description(tokenizer)


def words() -> Description:
    """A list of words without a decoder: tokens stand apart."""
    tokenizer = Tokenizer(models.WordLevel({"<unk>": 0, "hello": 1, "world": 2, "模型": 3, "🙂": 4}, unk_token="<unk>"))
    tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
    tokenizer.add_special_tokens(["<unk>", *SPECIALS])
    return _description(tokenizer)


def single_words() -> Description:
    """Added tokens that are found only where no letter is next to them, some in lower-cased text."""
    found = byte_level(normalizer=normalizers.Lowercase())
    size = len(found["model"]["vocab"])
    found["added_tokens"] = [token for token in found["added_tokens"] if token["content"] in SPECIALS]
    found["added_tokens"] += [
        _added(size, "zebra", single_word=True, normalized=True, special=False),
        _added(size + 1, "ñé", single_word=True, normalized=True, lstrip=True, special=False),
        _added(size + 2, "quartz", single_word=True, rstrip=True, special=False),
        _added(size + 3, "<|tool|>", single_word=True),
    ]
    return found


def normalized() -> Description:
    """Added tokens that are looked for in normalized text, where a space is a letter.

    They decode alike as written and as normalized: which one counts depends on the version of the library.
    """
    found = gemma()
    size = len(found["model"]["vocab"])
    found["added_tokens"] += [
        _added(size, "two words", normalized=True, special=False),
        _added(size + 1, "<|tool|>", normalized=True),
        _added(size + 2, "<|left|>", normalized=True, lstrip=True, special=False),
        _added(size + 3, "<|right|>", normalized=True, rstrip=True, special=False),
        _added(size + 4, "ñé", special=False),
    ]
    return found


def with_bos(found: Description, suffix: str = "") -> Description:
    """Makes a tokenizer put a BOS before every text, and ``suffix`` behind it."""
    tokenizer = Tokenizer.from_str(json.dumps(found))
    tokens = [(text, tokenizer.token_to_id(text)) for text in SPECIALS]
    single = f"{BOS} $A {suffix}".strip()
    template = processors.TemplateProcessing(single=single, pair=f"{single} $B", special_tokens=tokens)
    tokenizer.post_processor = (
        processors.Sequence([processors.ByteLevel(trim_offsets=False), template]) if suffix else template
    )
    return _description(tokenizer)


KINDS: dict[str, Callable[[], Description]] = {
    "byte_level": byte_level,
    "byte_level_prefix": lambda: byte_level(pre_tokenizers.ByteLevel(add_prefix_space=True)),
    "llama3": lambda: with_bos(byte_level(split(LLAMA3)), END),
    "qwen2": lambda: byte_level(split(QWEN2), normalizers.NFC()),
    "smollm2": lambda: byte_level(digits()),
    "merges_as_text": merges_as_text,
    "holes": holes,
    "llama2": lambda: with_bos(llama2()),
    "mistral": lambda: with_bos(mistral()),
    "gemma": lambda: with_bos(gemma()),
    "normalized": lambda: with_bos(normalized()),
    "single_words": single_words,
    "unigram_always": lambda: unigram("always"),
    "unigram_first": lambda: unigram("first"),
    "unigram_never": lambda: unigram("never"),
    "words": words,
}
