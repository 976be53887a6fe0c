"""Who asks: API keys, and the owner that a key stands for."""

from __future__ import annotations

import dataclasses
import hashlib
import hmac

from fastapi import Request

from oga.server.errors import ApiError


@dataclasses.dataclass(frozen=True)
class Caller:
    """Whoever holds a key; everybody is one caller where no key is needed."""

    name: str
    """Tells callers apart in logs and as owners of sessions; says nothing about the key."""
    cache_salt: int | None
    """Keeps callers with keys from telling by timing what others have asked."""


ANYBODY = Caller("anybody", None)


async def caller(request: Request) -> Caller:
    """The caller of a request. Raises 401 when a key is needed and none of them was given."""
    keys = request.app.state.settings.api_keys
    if not keys:
        return ANYBODY
    given = _bearer(request)
    if not any([hmac.compare_digest(given, key.encode()) for key in keys]):  # noqa: C419 (every key, every time)
        raise ApiError(
            401,
            "A valid API key is needed: send the header `Authorization: Bearer KEY`.",
            code="invalid_api_key",
            headers={"WWW-Authenticate": "Bearer"},
        )
    digest = hashlib.sha256(given).digest()
    return Caller(f"key-{digest[:4].hex()}", int.from_bytes(digest[8:16], "big"))


async def administrator(request: Request) -> None:
    """Raises 403 unless the request carries the administrator's key."""
    wanted = request.app.state.settings.admin_key
    if wanted is None or not hmac.compare_digest(_bearer(request), wanted.encode()):
        raise ApiError(403, "Loading and unloading models needs the key of `oga serve --admin-key`.", code="forbidden")


def _bearer(request: Request) -> bytes:
    kind, _, key = request.headers.get("authorization", "").partition(" ")
    return key.strip().encode("latin-1") if kind.lower() == "bearer" else b""
