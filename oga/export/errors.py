"""What an export can fail with. Each message names the thing, what was found, what was wanted, and the next step."""

from __future__ import annotations

import importlib

_EXTRA_MODULES = ("numpy", "onnx_ir", "onnx", "gguf", "tokenizers")


class ExportError(Exception):
    """Base of everything that ``oga.export`` raises on purpose."""


class ConversionError(ExportError, ValueError):
    """The source cannot be converted, or the destination cannot be written. Nothing was left behind."""


class PullError(ExportError, RuntimeError):
    """A model could not be obtained. The cache is as it was."""


class MissingExtraError(ExportError, ImportError):
    """A package that only exporting needs is not installed."""


def require_extra() -> None:
    """Checks that the packages of the extra ``export`` are there.

    Raises:
        MissingExtraError: naming the first one that is not, and how to install it.
    """
    for module in _EXTRA_MODULES:
        try:
            importlib.import_module(module)
        except ImportError as error:
            raise MissingExtraError(
                f"Converting a model needs the Python package {module.replace('_', '-')}, which could not be imported "
                f"({error}); run: pip install 'oga[export]'",
                name=module,
            ) from error
