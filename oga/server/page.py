"""The chat page at ``/``: three files of the package, and nothing from anywhere else."""

from __future__ import annotations

from pathlib import Path

from fastapi import APIRouter
from fastapi.responses import Response

router = APIRouter()
FOLDER = Path(__file__).parent / "static"
FILES = {
    "index.html": "text/html; charset=utf-8",
    "chat.css": "text/css; charset=utf-8",
    "chat.js": "text/javascript; charset=utf-8",
}
# What a model writes is shown as text; were it ever more, the browser would still load and run nothing.
POLICY = "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src data:; base-uri 'none'"
HEADERS = {
    "Content-Security-Policy": POLICY + "; form-action 'none'; frame-ancestors 'none'",
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cache-Control": "no-cache",
}


@router.get("/", include_in_schema=False)
async def index() -> Response:
    """The page."""
    return _file("index.html")


@router.get("/chat.css", include_in_schema=False)
async def style() -> Response:
    """Its look."""
    return _file("chat.css")


@router.get("/chat.js", include_in_schema=False)
async def script() -> Response:
    """What it does."""
    return _file("chat.js")


def _file(name: str) -> Response:
    return Response((FOLDER / name).read_bytes(), media_type=FILES[name], headers=HEADERS)
