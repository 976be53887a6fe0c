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
    """The folder of a model that is named by its path or by a name that `oga pull` knows, which is fetched if need be.

    Where a model was pulled in several precisions, the most precise is taken.
    """
    path = Path(name)
    if path.exists():
        return path
    from oga import export

    if name not in export.pullable_names():
        raise MissingFileError(
            f"{name} is neither a folder nor a model that can be pulled ({', '.join(export.pullable_names())}). "
            "Make a folder from a Hugging Face folder or a GGUF file: oga convert SRC DST"
        )
    pulled = export.pulled_folder(name)
    if pulled is not None:
        return pulled
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
