"""What the operator decides."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

__all__ = ["ModelSource", "ServerSettings"]


@dataclasses.dataclass(frozen=True)
class ModelSource:
    """A model that may be served. Requests name it; they never name a path."""

    name: str
    folder: Path
    config: str | Mapping[str, Any] | None = None
    """Merged over the folder's config."""


@dataclasses.dataclass(frozen=True)
class ServerSettings:
    """Limits and choices of a server."""

    models: Sequence[ModelSource]
    """The first one answers requests that name no model."""
    api_keys: Sequence[str] = ()
    """Any of them opens the API; none: it is open to everybody who can connect."""
    admin_key: str | None = None
    """Loads and unloads models; without it nobody can."""
    is_lenient: bool = False
    """Logs unknown fields instead of refusing them."""
    max_waiting: int = 256
    """Turns that may wait beyond the largest batch; one more is answered 429."""
    max_body_bytes: int = 2 * 2**20
    """A body is parsed in one go, which holds up everybody for some 10 ms per MiB."""
    max_choices: int = 16
    """Turns that one request may ask for: ``n``, times prompts."""
    max_sessions: int = 256
    """Kept conversations, of all keys."""
    max_sessions_per_key: int = 64
    session_idle_seconds: float = 3600.0
    """A kept conversation that nobody has used for so long is closed."""
    max_responses: int = 256
    """Stored responses that ``previous_response_id`` can name; the oldest goes first."""
    keep_alive_seconds: float = 15.0
    """A stream that is silent for so long gets a comment, so that nobody in between hangs up."""
    drain_seconds: float = 30.0
    """How long open turns may go on when the server stops."""
    metrics_prefix: str = "oga"
    """The word before the colon of a metric's name."""
    log_format: str = "text"
    """``text`` or ``json``: one line per request."""
    has_page: bool = True
    """Serve the chat page at ``/``."""
