"""Prompts to token ids without holding up the event loop, and without counting what can never fit."""

from __future__ import annotations

import asyncio
from concurrent.futures import ThreadPoolExecutor
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any

from oga.errors import PromptTooLongError
from oga.generation import encode_prompt, is_chat

if TYPE_CHECKING:
    from collections.abc import Callable

    from oga._native.tokens import Tokens
    from oga.model import Model


class PromptEncoder:
    """Encodes on a thread of its own, one prompt at a time."""

    def __init__(self, model: Model, max_request_tokens: int) -> None:
        self._model = model
        self._max_request_tokens = max_request_tokens
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="oga-text")

    async def encode(self, prompt: Any, encode: Callable[[Any], Any] | None = None) -> Tokens:
        """Token ids of text and messages, by ``encode`` when it is given; ids are passed on.

        Raises :class:`oga.PromptTooLongError` for a text that has more characters than the longest request has room
        for, before it is tokenized.
        """
        if not isinstance(prompt, str) and not is_chat(prompt):
            tokens: Tokens = prompt
            return tokens
        encoded: Tokens = await self.run(self._encode, prompt, encode)
        return encoded

    async def run(self, function: Callable[..., Any], *arguments: Any, **keywords: Any) -> Any:
        """Calls ``function`` on the text thread."""
        return await asyncio.get_running_loop().run_in_executor(self._thread, partial(function, *arguments, **keywords))

    def check_length(self, prompt: Any) -> None:
        """Refuses a text, or messages, that cannot fit whatever they consist of."""
        characters = count_characters(prompt)
        most = self._max_request_tokens * self._longest_token
        if characters > most:
            raise PromptTooLongError(
                f"The prompt has {characters} characters. The longest request has {self._max_request_tokens} tokens, "
                f"which are at most {most} characters: shorten the prompt."
            )

    def close(self) -> None:
        """Ends the thread."""
        self._thread.shutdown(wait=False)

    def _encode(self, prompt: Any, encode: Callable[[Any], Any] | None) -> Tokens:
        self.check_length(prompt)
        tokens: Tokens = encode_prompt(self._model, prompt) if encode is None else encode(prompt)
        return tokens

    @cached_property
    def _longest_token(self) -> int:
        """Characters of the longest token; a token of a byte-level vocabulary has one per byte."""
        return max((len(text) for text in self._model.tokenizer._core.get_vocab()), default=1)


def count_characters(value: Any) -> int:
    """The characters of all texts in a value."""
    if isinstance(value, str):
        return len(value)
    if isinstance(value, dict):
        return sum(map(count_characters, value.values()))
    return sum(map(count_characters, value)) if isinstance(value, list | tuple) else 0
