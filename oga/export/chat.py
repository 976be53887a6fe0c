"""What a chat template says about where an answer ends."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

# Markers that close a message in the chat formats of the field.
_END_MARKERS = ("<|im_end|>", "<|eot_id|>", "<|end|>", "<end_of_turn>")


def end_of_turn_ids(chat_template: Any, special_tokens: Mapping[str, int]) -> list[int]:
    """Ids of the special tokens that close a message.

    Models whose configs name only the end of a document would otherwise talk on in the user's role.

    Args:
        chat_template: a Jinja template, a list of named ones, or None, as tokenizer_config.json holds it.
        special_tokens: ids by text.
    """
    templates = chat_template if isinstance(chat_template, list) else [{"template": chat_template or ""}]
    text = "\n".join(str(entry.get("template", "")) for entry in templates)
    return [special_tokens[marker] for marker in _END_MARKERS if marker in text and marker in special_tokens]
