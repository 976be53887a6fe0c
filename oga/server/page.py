"""The chat page at ``/``: three files of the package, and nothing from anywhere else.

Its sampler settings are the sampler fields of requests, so that an option of the table is there without a line here.
"""

from __future__ import annotations

import html
from pathlib import Path
from typing import Any

from fastapi import APIRouter
from fastapi.responses import Response

from oga._native.sampling_table import WARPERS
from oga.server.schemas.sampler import SamplerFields

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


# Where index.html has the settings that shape a distribution, and where all others.
PLACES = {"<!-- warpers -->": True, "<!-- other options -->": False}
STEPS = {"integer": "1", "number": "0.01"}
UNSET = "model's"


@router.get("/", include_in_schema=False)
async def index() -> Response:
    """The page."""
    page = (FOLDER / "index.html").read_text(encoding="utf-8")
    fields = SamplerFields.model_json_schema()["properties"]
    for place, is_warper in PLACES.items():
        listed = [name for name in SamplerFields.__annotations__ if (name in WARPERS) is is_warper]
        page = page.replace(place, "\n      ".join(setting(name, fields[name]) for name in listed))
    return Response(page, media_type=FILES["index.html"], headers=HEADERS)


def setting(name: str, field: dict[str, Any]) -> str:
    """The label and the input of a sampler field, of which ``field`` is the JSON schema."""
    kind = field["anyOf"][0]
    label = html.escape(name.replace("_", " ").capitalize())
    if kind["type"] == "boolean":
        choices = f'<option value="">{UNSET}</option><option>true</option><option>false</option>'
        entry = f'<select name="{name}">{choices}</select>'
    else:
        step = STEPS[kind["type"]]
        low = kind.get("minimum", step)  # what is excluded is one step away
        limits = f'min="{low}" max="{kind["maximum"]}" step="{step}"'
        entry = f'<input name="{name}" type="number" {limits} placeholder="{UNSET}">'
    return f'<label title="{html.escape(field["description"])}">{label} {entry}</label>'


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
