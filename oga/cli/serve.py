"""``oga serve``: models over HTTP."""

from __future__ import annotations

import re
from typing import Any

from oga.cli.models import find_model
from oga.errors import FileAccessError, InvalidArgumentError, UnsupportedError

NAME = re.compile(r"[\w.:/-]+")


def serve(
    models: list[str], host: str, port: int, shares_port: bool, overlay: str | None, settings: dict[str, Any]
) -> None:
    """Serves until it is told to stop."""
    try:
        from oga.server import ModelSource, ServerSettings
        from oga.server import run as server
    except ModuleNotFoundError as error:
        if error.name is None or error.name.split(".")[0] == "oga":
            raise
        raise UnsupportedError(
            f"The server needs the Python package {error.name!r}. Install it: pip install 'oga[server]'"
        ) from None
    if not re.fullmatch(r"[A-Za-z_]\w*", settings["metrics_prefix"]):
        raise InvalidArgumentError("--metrics-prefix must be a word of letters, digits and underscores.")
    sources = []
    for given in models:
        name, folder = named(given)
        path = find_model(folder)
        sources.append(ModelSource(name or path.resolve().name, path, overlay))
    names = [source.name for source in sources]
    if len(set(names)) < len(names):
        raise InvalidArgumentError(f"Two models have the same name: {', '.join(names)}. Give one another: NAME=FOLDER")
    try:
        server.serve(ServerSettings(models=sources, **settings), host, port, shares_port=shares_port)
    except OSError as error:
        raise FileAccessError(f"Cannot listen on {host} port {port}: {error.strerror}. Try another --port.") from None


def named(given: str) -> tuple[str | None, str]:
    """The name and the folder of ``NAME=FOLDER``; no name for a folder alone."""
    name, separator, folder = given.partition("=")
    return (name, folder) if separator and NAME.fullmatch(name) and "/" not in name else (None, given)
