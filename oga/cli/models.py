"""From what a person types to a loaded engine."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from oga.cli.progress import stages, waiting
from oga.config import Config
from oga.engine import Engine
from oga.errors import MissingFileError
from oga.model import Model


def find_model(name: str) -> Path:
    """The folder of a model that is named by its path, or by a name that `oga pull` knows (fetched when it is not)."""
    path = Path(name)
    if path.exists():
        return path
    from oga import export
    from oga.export.pulling import MODELS

    if name not in MODELS:
        raise MissingFileError(
            f"{name} is neither a folder nor a model that can be pulled ({', '.join(sorted(MODELS))}). "
            "Make a folder from a Hugging Face folder or a GGUF file: oga convert SRC DST"
        )
    with stages() as progress:
        return export.pull(name, progress=progress)


@contextmanager
def open_engine(name: str, overlay: str | None) -> Iterator[Engine]:
    """Loads a model, with settings merged over its config, and creates an engine on it."""
    with Config(find_model(name)) as config:
        if overlay is not None:
            config.overlay(overlay)
        with waiting(f"Loading {name} ..."):
            model = Model(config)
            engine = Engine(model)
    with model, engine:
        yield engine
