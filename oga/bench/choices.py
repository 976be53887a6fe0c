"""The choices that the command line offers; apart from what they choose, so that its help loads nothing else."""

from __future__ import annotations

import enum


class Arrivals(enum.StrEnum):
    """How the moments of an open loop are spread."""

    POISSON = "poisson"
    CONSTANT = "constant"


class Endpoint(enum.StrEnum):
    """Which of the API's ways of asking is measured."""

    CHAT = "chat"
    COMPLETIONS = "completions"
