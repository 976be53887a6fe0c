"""Writes what the `tokenizers` library makes of texts and tokens: build_texts.py FOLDER.

FOLDER/<kind>/ holds a tokenizer.json and golden.json, which has

- "ids" of one text and "cuts" of it: [begin, end, text without special tokens, text with them];
- "random": the same for lists of any ids, some of which the tokenizer does not know: [ids, text, text];
- "strings": [string, ids, ids with what the tokenizer adds around a text];
- "known": every id that the tokenizer knows.
"""

from __future__ import annotations

import json
import random
import sys
from pathlib import Path
from typing import Any

from text_kinds import KINDS, SPECIALS, TEXT, Description
from tokenizers import Tokenizer

CUTS = 5000
RANDOM_LISTS = 1000
STRINGS = 2000
LONGEST_CUT = 48
# fmt: off
PIECES = [
    *"abehlostw .,!?'_<|>/\\-0123456789\n\t\r",
    *(
        "é",
        "e\u0301",
        "ñ",
        "模",
        "型",
        "日本",
        "한",
        "Ж",
        "שׁ",
        "🙂",
        "👍🏽",
        "\u200d",
        "\0",
        "½",
        "²",
        "٣",
        "Ⅷ",
        "\u00a0",
        "\u3000",
    ),
    *(
        "\u017f",
        "\u2028",
        "\u212a",
        "'LL",
        "'s",
        "'ll ",
        "  ",
        "   ",
        "\n\n",
        " \n",
        "\r\n",
        "hello",
        " world",
        " the",
        "123",
        "4567",
    ),
    *(
        "two words\n",
        "two words",
        "ñé",
        "<|tool|>",
        "<|left|>",
        "<|right|>",
        " <|left|> ",
        " <|right|> \n ",
        "<|tool",
        "<|",
    ),
    *SPECIALS,
]


def texts_of(tokenizer: Tokenizer, ids: list[int]) -> list[str]:
    """What the ids decode to, without and with special tokens."""
    return [tokenizer.decode(ids, skip_special_tokens=hidden) for hidden in (True, False)]


def golden(description: Description, name: str) -> dict[str, Any]:
    """The answers of the reference for one tokenizer."""
    tokenizer = Tokenizer.from_str(json.dumps(description))
    choose = random.Random(name)
    specials = [tokenizer.token_to_id(text) for text in SPECIALS]
    ids = tokenizer.encode(TEXT, add_special_tokens=False).ids
    for special in specials * 3:
        ids.insert(choose.randrange(len(ids) + 1), special)
    cuts = []
    for _ in range(CUTS):
        begin = choose.randrange(len(ids)) if choose.random() < 0.7 else 0
        end = choose.randrange(begin, min(begin + LONGEST_CUT, len(ids)) + 1)
        cuts.append([begin, end, *texts_of(tokenizer, ids[begin:end])])
    known = sorted(set(tokenizer.get_vocab().values()))
    lists = [[choose.randrange(known[-1] + 9) for _ in range(choose.randrange(20))] for _ in range(RANDOM_LISTS)]
    strings = ["".join(choose.choices(PIECES, k=choose.randrange(14))) for _ in range(STRINGS)]
    return {
        "ids": ids,
        "cuts": cuts,
        "random": [[some, *texts_of(tokenizer, some)] for some in lists],
        "strings": [
            [text, *(tokenizer.encode(text, add_special_tokens=adds).ids for adds in (False, True))] for text in strings
        ],
        "known": known,
    }


def main(target: Path) -> None:
    """Builds everything under ``target``."""
    for name, build in KINDS.items():
        folder = target / name
        folder.mkdir(parents=True, exist_ok=True)
        description = build()
        (folder / "tokenizer.json").write_text(json.dumps(description), encoding="utf-8")
        (folder / "golden.json").write_text(json.dumps(golden(description, name)), encoding="utf-8")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
