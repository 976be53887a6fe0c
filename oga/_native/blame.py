"""What a message of the library is about.

Read from its fixed beginning only: later words may be quotes of what the caller gave.
"""

from __future__ import annotations

import re

from oga._native.sampling_table import DESCRIPTIONS
from oga.errors import OgaError, PromptTooLongError

__all__ = ["OPTIONS", "error_of"]

OPTIONS = (
    *DESCRIPTIONS,
    "max_generated_tokens",
    "min_generated_tokens",
    "seed",
    "logit_bias",
    "stop_tokens",
    "banned_sequences",
    "allowed_tokens",
    "dry_breakers",
    "logprobs",
    "logprob_tokens",
    "prompt_logprobs",
)
"""The options of a turn whose messages begin with their names."""

OPTION = re.compile(rf"({'|'.join(OPTIONS)}) (?:=|is|are|of|names|has) ")
NO_ROOM = re.compile(r"the sequence holds \d+ tokens and the input has ")
BEGINNINGS = (
    (re.compile(r"there are \d+ stop strings; |(?:the )?stop strings? "), "stop_strings"),
    (re.compile(r"the input is empty; |input token \d+ is "), "tokens"),
    (
        re.compile(
            r"the (?:JSON schema|JSON object grammar|regular expression|Lark grammar|keyword|guidance type) "
            r"|the (?:opening|closing) token |guidance (?:type|of) |delimited guidance |grammars need "
        ),
        "guidance",
    ),
)


def error_of(kind: type[OgaError], message: str) -> OgaError:
    """The exception for a message of the library, with its ``field``."""
    if NO_ROOM.match(message):
        return PromptTooLongError(message)
    error = kind(message)
    error.field = _field(message)
    return error


def _field(message: str) -> str | None:
    if found := OPTION.match(message):
        return found[1]
    return next((field for beginning, field in BEGINNINGS if beginning.match(message)), None)
