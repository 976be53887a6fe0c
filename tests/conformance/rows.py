"""The table of behaviour: what is done and the transcript of it, one row a case. rows_of_*.py fill it.

A row's id is that of the behaviour page of onnxruntime-genai, whose programs we run; ``ruling`` says where we differ on
purpose. Rows about stop strings, drafts, guidance and static batching belong to those features.

Transcripts: ``A1 T`` is a token event of turn 1 of request A; ``F`` the end of a turn with its reason and its usage
[prompt, generated, cached]; ``-`` a run without events. A refused call is the name of its status.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from world import World

Play = Callable[[World], Iterable[str]]

MOST = 2**64 - 1


@dataclass(frozen=True)
class Case:
    id: str
    done: str
    expected: tuple[str, ...]
    play: Play
    ruling: str
    only: str | None
    failing_model: bool


CASES: list[Case] = []


def row(
    id: str, done: str, *expected: str, ruling: str = "", only: str | None = None, failing_model: bool = False
) -> Callable[[Play], Play]:
    """Adds a row: what is done, and the transcript of what must happen."""

    def add(play: Play) -> Play:
        CASES.append(Case(id, done, expected, play, ruling, only, failing_model))
        return play

    return add


def same(found: object, wanted: object) -> str:
    return "same" if found == wanted else f"{found} is not {wanted}"
