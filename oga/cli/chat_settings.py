"""The settings that ``/set`` and ``--set`` know: those of the sampling table, and a few more."""

from __future__ import annotations

import difflib
import json
import shlex
from collections.abc import Callable
from typing import Any, cast

from oga._native.sampling_table import DESCRIPTIONS, INTEGERS, NUMBERS
from oga.errors import InvalidArgumentError
from oga.stream import Generation

UNSET = "default"
TRUE, FALSE = ("true", "on", "yes", "1"), ("false", "off", "no", "0")


def _integer(text: str) -> int:
    try:
        return int(text)
    except ValueError:
        raise InvalidArgumentError(f"{text!r} is no integer.") from None


def _number(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        raise InvalidArgumentError(f"{text!r} is no number.") from None


def _boolean(text: str) -> bool:
    if text.lower() in TRUE:
        return True
    if text.lower() in FALSE:
        return False
    raise InvalidArgumentError(f"{text!r} is neither true nor false.")


def _strings(text: str) -> list[str]:
    r"""A JSON list, or words as in a shell; ``\n`` and ``\t`` are a new line and a tab."""
    if text.startswith("["):
        try:
            found = json.loads(text)
        except ValueError as error:
            raise InvalidArgumentError(f"The list is not JSON: {error}.") from None
        if not all(isinstance(each, str) for each in found):
            raise InvalidArgumentError("The list may hold strings only.")
        return list(found)
    try:
        words = shlex.split(text)
    except ValueError as error:
        raise InvalidArgumentError(f"{text!r} cannot be read: {error}.") from None
    return [word.replace("\\n", "\n").replace("\\t", "\t") for word in words]


# What is typed: the keyword of Engine.stream, and how its value is read.
KNOWN: dict[str, tuple[str, Callable[[str], Any]]] = {
    "max_tokens": ("max_new_tokens", _integer),
    "min_tokens": ("min_new_tokens", _integer),
    "stop": ("stop_strings", _strings),
    "seed": ("seed", _integer),
    **{
        name: (name, _integer if name in INTEGERS else _number if name in NUMBERS else _boolean)
        for name in DESCRIPTIONS
    },
}
HELP = DESCRIPTIONS | {
    "max_tokens": "The most tokens of one answer.",
    "min_tokens": "The fewest tokens of one answer.",
    "stop": "Texts that end an answer: words as in a shell, or a JSON list.",
    "seed": "Makes sampling reproducible.",
}


class Settings:
    """What the next turns are generated with; what is not set takes the model's default."""

    def __init__(self) -> None:
        self._values: dict[str, Any] = {}

    @property
    def generation(self) -> Generation:
        """The keywords of a turn."""
        return cast("Generation", {KNOWN[name][0]: value for name, value in self._values.items()})

    def changed(self, name: str, value: str) -> Settings:
        """These settings with another value; ``default`` unsets. Raises for an unknown name, naming the nearest."""
        check_name(name)
        changed = Settings()
        changed._values = {key: kept for key, kept in self._values.items() if key != name}
        if value != UNSET:
            try:
                changed._values[name] = KNOWN[name][1](value)
            except InvalidArgumentError as error:
                raise InvalidArgumentError(f"{name}: {error}") from None
        return changed

    def __str__(self) -> str:
        shown = ", ".join(f"{name} {json.dumps(value, ensure_ascii=False)}" for name, value in self._values.items())
        return shown or "the model's defaults"


def check_name(name: str) -> None:
    """Raises for an unknown setting, naming the nearest one."""
    if name not in KNOWN:
        raise InvalidArgumentError(f"There is no setting {name!r}; the nearest is {nearest(name, list(KNOWN))!r}.")


def nearest(word: str, words: list[str]) -> str:
    """The word that is most like another one."""
    return difflib.get_close_matches(word, words, n=1, cutoff=0.0)[0]
