"""Turns that fail, for each kind: on purpose where Python can bring it about, else with the kind put into C's mouth."""

from __future__ import annotations

import dataclasses
from typing import Any

import pytest

import oga
from oga._native.loader import lib

DEAD_END: dict[str, Any] = {"guidance": ("regex", "[ok]{4}"), "min_new_tokens": 3}


@dataclasses.dataclass(frozen=True)
class Case:
    """A turn that fails."""

    kind: oga.FailureKind
    model: str
    """``poisoned`` has no logits after token 300 or a Z, ``failing`` fails to run beyond 399, ``tiny`` is well."""
    prompt: list[int]
    dead_end: bool = False
    """Whether its grammar allows only what ends the turn, which its minimum of tokens excludes."""
    told: bool = False
    """Whether the failure is another one and C only says so."""

    @property
    def takes_the_engine(self) -> bool:
        return self.model == "failing"

    def prepare(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """Lets C tell the kind, where nothing that Python can do brings it about."""
        if not self.told:
            return
        real = lib.OgaEngineEventGetFailure

        def get_failure(event: Any, out: Any) -> Any:
            result = real(event, out)
            if out[0]:
                out[0] = int(self.kind)
            return result

        monkeypatch.setattr(lib, "OgaEngineEventGetFailure", get_failure)


CASES = [
    Case(oga.FailureKind.BAD_LOGITS, "poisoned", [5, 300]),
    Case(oga.FailureKind.NO_ALLOWED_TOKEN, "tiny", [5], dead_end=True),
    Case(oga.FailureKind.GRAMMAR_FAILED, "poisoned", [5, 300], told=True),
    Case(oga.FailureKind.NEVER_FITS, "poisoned", [5, 300], told=True),
    Case(oga.FailureKind.EXECUTION, "failing", [5, 450]),
    Case(oga.FailureKind.CONTRACT, "failing", [5, 450], told=True),
]
