"""Finds and opens liboga on first use, and tells it where the installed ONNX Runtime and its extensions are.

``lib`` has one attribute per function of the C API. The interpreter lock is free while one of them runs.
"""

from __future__ import annotations

import importlib.util
import os
import re
import threading
from importlib import import_module
from pathlib import Path
from typing import Any

from oga.errors import MissingFileError, UnsupportedError

__all__ = ["extensions_library", "ffi", "lib", "library_path", "llguidance_library", "onnxruntime_library"]

LIBRARY_VARIABLE = "OGA_LIBRARY"
LIBRARY_NAME = "liboga.so"

ffi: Any = import_module("oga._native._ffi").ffi

_opening = threading.Lock()


def library_path() -> Path:
    """The liboga this process uses: ``OGA_LIBRARY`` when it is set, else the one inside the package."""
    if named := os.environ.get(LIBRARY_VARIABLE):
        return Path(named)
    return Path(__file__).resolve().parent / "lib" / LIBRARY_NAME


def onnxruntime_library() -> Path | None:
    """The shared library of the installed ``onnxruntime`` package; None without one."""
    return _installed("onnxruntime", "capi/libonnxruntime.so*")


def extensions_library() -> Path | None:
    """The shared library of the installed ``onnxruntime_extensions`` package; None without one."""
    return _installed("onnxruntime_extensions", "_extensions_pydll*.so")


def llguidance_library() -> Path | None:
    """The shared library of the installed ``llguidance`` package; None without one."""
    return _installed("llguidance", "_lib*.so")


def _installed(package: str, pattern: str) -> Path | None:
    """The newest file of a package that matches, found without importing the package."""
    spec = importlib.util.find_spec(package)
    for folder in (spec.submodule_search_locations or []) if spec else []:
        if found := sorted(Path(folder).glob(pattern), key=_version_key):
            return found[-1]
    return None


def _version_key(path: Path) -> list[int]:
    return [int(part) for part in re.findall(r"\d+", path.name)]


class _Library:
    """Opens liboga when the first of its functions is looked up."""

    def __init__(self) -> None:
        self._opened: Any = None

    def __getattr__(self, name: str) -> Any:
        if self._opened is None:
            with _opening:
                self._opened = self._opened or _open_library()
        function = getattr(self._opened, name)
        setattr(self, name, function)
        return function


def _open_library() -> Any:
    path = library_path()
    if not path.is_file():
        raise MissingFileError(
            f"{path} does not exist: oga cannot run without its native library. "
            f"Reinstall the oga package, or let {LIBRARY_VARIABLE} name a {LIBRARY_NAME}."
        )
    try:
        opened = ffi.dlopen(str(path))
    except OSError as error:
        raise UnsupportedError(
            f"{path} cannot be loaded ({error}). Install a package built for this machine, or let "
            f"{LIBRARY_VARIABLE} name another {LIBRARY_NAME}."
        ) from None
    _check_version(opened, path)
    _name_onnxruntime(opened)
    _name_optional(extensions_library(), opened.OgaSetOrtExtensionsLibrary, opened)
    _name_optional(llguidance_library(), opened.OgaSetLlguidanceLibrary, opened)
    return opened


def _check_version(opened: Any, path: Path) -> None:
    wanted = opened.OGA_API_VERSION
    try:
        found = opened.OgaGetApiVersion()
    except (AttributeError, ffi.error):
        raise UnsupportedError(f"{path} is not a liboga: it has no function OgaGetApiVersion.") from None
    if found >> 16 != wanted >> 16 or found < wanted:
        raise UnsupportedError(
            f"{path} has API version {found >> 16}.{found & 0xFFFF}; this Python package needs "
            f"{wanted >> 16}.{wanted & 0xFFFF} or a later {wanted >> 16}.x. Install matching versions of both."
        )


def _name_onnxruntime(opened: Any) -> None:
    path = onnxruntime_library()
    if path is None:
        return
    # Refused only when a host program has already set a runtime to work; that one then stays.
    opened.OgaDestroyResult(opened.OgaSetOrtLibrary(os.fsencode(path)))


def _name_optional(path: Path | None, name: Any, opened: Any) -> None:
    if path is not None:
        opened.OgaDestroyResult(name(os.fsencode(path)))


lib = _Library()
