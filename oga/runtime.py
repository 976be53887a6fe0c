"""The native library itself: its version, the ONNX Runtime it drives, and its end."""

from __future__ import annotations

import os
from pathlib import Path

from oga._native.arguments import path_bytes
from oga._native.check import check, take_string
from oga._native.loader import ffi, lib
from oga.errors import OF_FILES, MissingFileError

__all__ = [
    "get_api_version",
    "get_cpu_isa",
    "get_include",
    "get_llguidance_version",
    "get_ort_version",
    "set_llguidance_library",
    "set_ort_extensions_library",
    "set_ort_library",
    "shutdown",
]


def get_api_version() -> tuple[int, int]:
    """The API version of liboga as ``(major, minor)``. Any thread."""
    version = lib.OgaGetApiVersion()
    return version >> 16, version & 0xFFFF


def get_cpu_isa() -> str:
    """The instruction set that the kernels use: ``"portable"``, ``"avx2"``, ``"avx512"`` ...

    It is the best of this machine, unless the environment variable ``OGA_CPU_ISA`` names another one. Raises
    :class:`oga.InvalidArgumentError` or :class:`oga.UnsupportedError` when that is not known or does not run here.
    Any thread.
    """
    return take_string(lib.OgaGetCpuIsa)


def get_ort_version() -> str:
    """The version and file path of the ONNX Runtime in use, as ``"1.23.0 (/path/libonnxruntime.so)"``.

    Loads the runtime when it is not loaded yet. Raises :class:`oga.NotFoundError`, :class:`oga.UnsupportedError` or
    :class:`oga.FileAccessError` when no usable one is found, naming what was tried. Any thread.
    """
    return take_string(lib.OgaGetOrtVersion)


def set_ort_library(path: str | bytes | os.PathLike[str] | os.PathLike[bytes] | None) -> None:
    """Names the ONNX Runtime library to load, before the first model is created; None forgets an earlier name.

    Without a call, the library of the installed ``onnxruntime`` package is used. The environment variable
    ``OGA_ORT_LIBRARY`` wins over both. Raises :class:`oga.InvalidStateError` when a runtime is already in use from
    another path. Any thread.
    """
    check(lib.OgaSetOrtLibrary(ffi.NULL if path is None else path_bytes(path, "path")), OF_FILES)


def set_ort_extensions_library(path: str | bytes | os.PathLike[str] | os.PathLike[bytes] | None) -> None:
    """Names the library of ``onnxruntime-extensions``; None forgets an earlier name.

    Only :meth:`oga.Tokenizer.apply_chat_template` without ``jinja2`` uses it. Without a call, the library of the
    installed package is used. The environment variable ``OGA_ORTX_LIBRARY`` wins over both. Raises
    :class:`oga.InvalidStateError` when one is already in use from another path. Any thread.
    """
    check(lib.OgaSetOrtExtensionsLibrary(ffi.NULL if path is None else path_bytes(path, "path")), OF_FILES)


def get_llguidance_version() -> str:
    """The version and file path of the llguidance in use, as ``"1.8.0 (/path/_lib.abi3.so)"``.

    Loads it when it is not loaded yet. Raises :class:`oga.UnsupportedError` when no usable one is found, naming what to
    install. Any thread.
    """
    return take_string(lib.OgaGetLlguidanceVersion)


def set_llguidance_library(path: str | bytes | os.PathLike[str] | os.PathLike[bytes] | None) -> None:
    """Names the library of ``llguidance`` that grammars use; None forgets an earlier name.

    Without a call, the library of the installed package is used. The environment variable ``OGA_LLGUIDANCE_LIBRARY``
    wins over both. Raises :class:`oga.InvalidStateError` when one is already in use from another path. Any thread.
    """
    check(lib.OgaSetLlguidanceLibrary(ffi.NULL if path is None else path_bytes(path, "path")), OF_FILES)


def shutdown() -> None:
    """Releases process-wide state (the ONNX Runtime environment). Optional and idempotent.

    oga can be used again afterwards. State that live models still need is released with the last of them. Any thread.
    """
    lib.OgaShutdown()


def get_include() -> str:
    """The folder to put on a C compiler's include path for ``#include <oga/oga.h>``.

    Raises :class:`oga.NotFoundError` when the headers were not installed with the package.
    """
    package = Path(__file__).resolve().parent
    for folder in (package / "include", package.parent / "include"):
        if (folder / "oga" / "oga.h").is_file():
            return str(folder)
    raise MissingFileError(f"{package / 'include' / 'oga' / 'oga.h'} does not exist; reinstall the oga package.")
