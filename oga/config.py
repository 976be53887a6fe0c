"""A model folder's ``genai_config.json``, adjustable before the model is created."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from oga._native.arguments import c_text, path_bytes
from oga._native.check import create
from oga._native.handle import Handle
from oga._native.loader import lib
from oga.errors import OF_FILES, InvalidArgumentError, called

__all__ = ["Config"]


class Config(Handle):
    """The configuration of a model folder.

    Example::

        config = oga.Config("folder")
        config.overlay({"engine": {"dynamic_batching": {"max_batch_size": 8}}})
        model = oga.Model(config)

    Not bound to a thread, but to be used from one at a time.
    """

    _destroy = "OgaDestroyConfig"

    def __init__(self, config_path: str | bytes | os.PathLike[str] | os.PathLike[bytes]) -> None:
        """Reads ``genai_config.json`` of the folder ``config_path``.

        Raises :class:`oga.MissingFileError` (a ``FileNotFoundError``) or :class:`oga.FileAccessError` (an ``OSError``)
        naming the file, and :class:`oga.InvalidArgumentError` naming the JSON path of a bad value, what was found and
        what was wanted.
        """
        path = path_bytes(config_path, "config_path")
        super().__init__(create("OgaConfig", lib.OgaCreateConfig, path, classes=OF_FILES))
        self._path = Path(os.fsdecode(path))

    @property
    def path(self) -> Path:
        """The folder, as it was given."""
        return self._path

    def overlay(self, settings: str | Mapping[str, Any]) -> None:
        """Merges JSON text, or a mapping, over the config: objects merge key by key, every other value replaces.

        Raises :class:`oga.InvalidArgumentError`; a refused overlay leaves the config as it was.
        """
        if isinstance(settings, Mapping):
            try:
                settings = json.dumps(settings, allow_nan=False)
            except (TypeError, ValueError) as error:
                raise InvalidArgumentError(f"settings cannot be written as JSON: {error}", field="settings") from None
        with called(json="settings"):
            self._call(lib.OgaConfigOverlay, c_text(settings, "settings"))

    def clear_providers(self) -> None:
        """Removes every execution provider; the model then runs on the CPU."""
        self._call(lib.OgaConfigClearProviders)

    def append_provider(self, provider: str) -> None:
        """Appends an execution provider; ``"cpu"`` is accepted and needs nothing.

        Raises :class:`oga.UnsupportedError` when this build cannot use it.
        """
        self._call(lib.OgaConfigAppendProvider, c_text(provider, "provider"))
