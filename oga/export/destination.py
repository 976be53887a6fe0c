"""A folder that appears whole or not at all."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from oga.export.errors import ConversionError

PARTIAL_SUFFIX = ".partial"


@contextmanager
def atomic_folder(destination: Path, *, force: bool) -> Iterator[Path]:
    """Yields a temporary folder beside ``destination`` that takes its name when the block ends well.

    An exception, Ctrl-C included, removes the temporary folder and leaves ``destination`` as it was.

    Args:
        destination: where the folder will be.
        force: replace an existing model folder. Any other folder that is not empty is never replaced.

    Raises:
        ConversionError: when ``destination`` exists or its parent cannot be written.
    """
    destination = destination.absolute()
    check_replaceable(destination, force=force)
    try:
        destination.parent.mkdir(parents=True, exist_ok=True)
        temporary = Path(
            tempfile.mkdtemp(prefix=f".{destination.name}.", suffix=PARTIAL_SUFFIX, dir=destination.parent)
        )
    except OSError as error:
        raise _unwritable(destination, error) from error
    try:
        yield temporary
        # mkdtemp makes a private folder; the result is as readable as any folder of the user.
        temporary.chmod(destination.parent.stat().st_mode & 0o777 | 0o700)
        check_replaceable(destination, force=force)  # again: someone may have taken the name meanwhile
        _take_place(temporary, destination)
    except OSError as error:
        raise _unwritable(destination, error) from error
    finally:
        shutil.rmtree(temporary, ignore_errors=True)


def check_replaceable(destination: Path, *, force: bool) -> None:
    """Raises ConversionError when a conversion may not take the name ``destination``."""
    if not destination.exists() and not destination.is_symlink():
        return
    if destination.is_symlink() or not destination.is_dir():
        raise ConversionError(f"{destination} exists and is not a folder; choose another destination")
    if not any(destination.iterdir()):
        return
    if not force:
        raise ConversionError(
            f"{destination} exists and is not empty; choose another destination, or force replacing it"
        )
    if not (destination / "genai_config.json").is_file():
        raise ConversionError(
            f"{destination} is not replaced because it holds no genai_config.json, so it is no model folder; "
            "choose another destination"
        )


def _take_place(temporary: Path, destination: Path) -> None:
    if not destination.exists():
        temporary.rename(destination)
        return
    retired = Path(tempfile.mkdtemp(prefix=f".{destination.name}.", suffix=PARTIAL_SUFFIX, dir=destination.parent))
    destination.rename(retired)  # over the empty folder: its name was only a claim
    try:
        temporary.rename(destination)
    except BaseException:
        retired.rename(destination)
        raise
    shutil.rmtree(retired, ignore_errors=True)


def _unwritable(destination: Path, error: OSError) -> ConversionError:
    return ConversionError(f"{destination} could not be written ({error}); free space or choose another destination")
