"""A model: an ONNX decoder loaded once and shared by engines."""

from __future__ import annotations

import os
import threading
from pathlib import Path
from typing import TYPE_CHECKING

from oga._native.arguments import path_bytes
from oga._native.check import create, take_string
from oga._native.handle import Handle, borrowed
from oga._native.loader import lib
from oga.config import Config
from oga.errors import OF_FILES, called

if TYPE_CHECKING:
    from oga.chat import ChatTemplate
    from oga.tokenizer import Tokenizer

__all__ = ["Model"]


class Model(Handle):
    """A loaded model. Any thread; engines on it keep it alive, so it may be closed as soon as they exist."""

    _destroy = "OgaDestroyModel"

    def __init__(self, source: str | bytes | os.PathLike[str] | os.PathLike[bytes] | Config) -> None:
        """Loads the model folder ``source``, or the one of a :class:`oga.Config`, which may change afterwards.

        Other Python threads run while the model loads. Raises what :class:`oga.Config` raises, and
        :class:`oga.ModelError` when the graph does not match its config (naming the tensor, what was found and what was
        wanted), :class:`oga.UnsupportedError` for a graph this build cannot run, and :class:`oga.NotFoundError` when
        there is no ONNX Runtime.
        """
        if isinstance(source, Config):
            with borrowed(source) as config:
                pointer = create("OgaModel", lib.OgaCreateModelFromConfig, config, classes=OF_FILES)
            self._path = source.path
        else:
            path = path_bytes(source, "source")
            with called(config_path="source"):
                pointer = create("OgaModel", lib.OgaCreateModel, path, classes=OF_FILES)
            self._path = Path(os.fsdecode(path))
        super().__init__(pointer)
        self._text_lock = threading.Lock()
        self._tokenizer: Tokenizer | None = None
        self._chat_template: ChatTemplate | None = None

    @property
    def path(self) -> Path:
        """The model folder, as it was given."""
        return self._path

    @property
    def type(self) -> str:
        """The model's family, ``model.type`` of its config (for example ``"llama"``)."""
        with self._guard:
            return take_string(lib.OgaModelGetType, self._pointer)

    @property
    def device_type(self) -> str:
        """Where the model runs: ``"CPU"``."""
        with self._guard:
            return take_string(lib.OgaModelGetDeviceType, self._pointer)

    @property
    def tokenizer(self) -> Tokenizer:
        """The folder's tokenizer, loaded at first use and kept; do not close it.

        Raises :class:`oga.MissingFileError` when the folder has no ``tokenizer.json``. Works on a closed model.
        """
        with self._text_lock:
            if self._tokenizer is None:
                from oga.tokenizer import Tokenizer

                self._tokenizer = Tokenizer(self)
            return self._tokenizer

    @property
    def chat_template(self) -> ChatTemplate:
        """The folder's chat template, compiled at first use.

        Raises :class:`oga.MissingFileError` when the folder has no tokenizer or no template. Works on a closed model.
        """
        tokenizer = self.tokenizer
        with self._text_lock:
            if self._chat_template is None:
                from oga.chat import ChatTemplate

                self._chat_template = ChatTemplate(tokenizer)
            return self._chat_template
