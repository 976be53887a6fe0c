"""Exceptions of oga.

Every error is an :class:`OgaError`, which is a ``RuntimeError`` with a ``code``, a ``field`` and, when it is how a turn
ended, a ``failure``. Where a Python programmer expects a built-in exception, the subclass is that too: ``except
FileNotFoundError`` catches a missing model folder, ``except ValueError`` a temperature that is not a number.

==================================  ==================================  ===========================
class                               code                                also a
==================================  ==================================  ===========================
:class:`InvalidArgumentError`       ``INVALID_ARGUMENT``                ``ValueError``
:class:`ArgumentTypeError`          ``INVALID_ARGUMENT``                ``ValueError``, ``TypeError``
:class:`PromptTooLongError`         ``INVALID_ARGUMENT``                ``ValueError``
:class:`InvalidStateError`          ``INVALID_STATE``
:class:`NotFoundError`              ``NOT_FOUND``                       ``LookupError``
:class:`MissingFileError`           ``NOT_FOUND``                       ``FileNotFoundError``
:class:`UnsupportedError`           ``UNSUPPORTED``                     ``NotImplementedError``
:class:`ResourceExhaustedError`     ``RESOURCE_EXHAUSTED``              ``MemoryError``
:class:`OutOfMemoryError`           ``OUT_OF_MEMORY``                   ``MemoryError``
:class:`FileAccessError`            ``IO_ERROR``                        ``OSError``
:class:`ModelError`                 ``MODEL_ERROR``
:class:`EngineUnhealthyError`       ``ENGINE_UNHEALTHY``
:class:`InternalError`              ``INTERNAL``
:class:`QueueFullError`             ``RESOURCE_EXHAUSTED``
:class:`EngineClosedError`          ``INVALID_STATE``
==================================  ==================================  ===========================
"""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING, ClassVar, TypeAlias

from oga.result import StatusCode

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from oga.event import FailureKind

__all__ = [
    "ArgumentTypeError",
    "EngineClosedError",
    "EngineUnhealthyError",
    "FileAccessError",
    "InternalError",
    "InvalidArgumentError",
    "InvalidStateError",
    "MissingFileError",
    "ModelError",
    "NotFoundError",
    "OgaError",
    "OutOfMemoryError",
    "PromptTooLongError",
    "QueueFullError",
    "ResourceExhaustedError",
    "UnsupportedError",
]


class OgaError(RuntimeError):
    """A call of oga failed. ``str(error)`` says what was found, what was wanted and what to do next."""

    code: ClassVar[StatusCode] = StatusCode.INTERNAL
    """The kind of failure, for programs."""

    field: str | None = None
    """The keyword, argument or key that the error is about, such as ``"top_p"``; None when it is about none or several.

    A name as the call that raised it spells it, without an index.
    """

    failure: FailureKind | None = None
    """Why the turn failed, when this is how a turn ended; None for every other error."""

    def __init__(self, message: str = "", *, field: str | None = None) -> None:
        super().__init__(message)
        if field is not None:
            self.field = field


class InvalidArgumentError(OgaError, ValueError):
    """A value is not acceptable; nothing changed."""

    code = StatusCode.INVALID_ARGUMENT


class ArgumentTypeError(InvalidArgumentError, TypeError):
    """A value is of the wrong type, or an integer does not fit the parameter; nothing changed."""


class PromptTooLongError(InvalidArgumentError):
    """The prompt leaves no room for an answer in what a sequence may hold; nothing changed."""

    field = "tokens"


class InvalidStateError(OgaError):
    """The call is not legal now or from this thread; nothing changed."""

    code = StatusCode.INVALID_STATE


class NotFoundError(OgaError, LookupError):
    """Something named in the call is not there."""

    code = StatusCode.NOT_FOUND


class MissingFileError(NotFoundError, FileNotFoundError):
    """A file or folder is not there."""


class UnsupportedError(OgaError, NotImplementedError):
    """This build, or the model, does not have what was asked for."""

    code = StatusCode.UNSUPPORTED


class ResourceExhaustedError(OgaError, MemoryError):
    """A limit that was configured, or the memory found, does not suffice."""

    code = StatusCode.RESOURCE_EXHAUSTED


class OutOfMemoryError(OgaError, MemoryError):
    """An allocation failed."""

    code = StatusCode.OUT_OF_MEMORY


class FileAccessError(OgaError, OSError):
    """A file is there but could not be read or written."""

    code = StatusCode.IO_ERROR


class ModelError(OgaError):
    """The model's files contradict one another or the model failed to run."""

    code = StatusCode.MODEL_ERROR


class EngineUnhealthyError(OgaError):
    """The engine failed for good; closing it and creating another is the way on."""

    code = StatusCode.ENGINE_UNHEALTHY


class InternalError(OgaError):
    """A broken promise inside oga; worth a bug report."""


class QueueFullError(OgaError):
    """An :class:`oga.AsyncEngine` has as many turns waiting as it may; try again when some have ended."""

    code = StatusCode.RESOURCE_EXHAUSTED


class EngineClosedError(InvalidStateError):
    """The :class:`oga.AsyncEngine` was closed, or is closing and takes no more work."""


@contextlib.contextmanager
def about(field: str) -> Iterator[None]:
    """Lets what a block refuses be about ``field``: what the caller gave, by the caller's name for it."""
    try:
        yield
    except (InvalidArgumentError, UnsupportedError) as error:
        error.field = field
        raise


@contextlib.contextmanager
def called(**names: str) -> Iterator[None]:
    """Lets errors of a block have the caller's names: ``called(config_path="source")``, where C has the first one."""
    try:
        yield
    except OgaError as error:
        if error.field in names:
            error.field = names[error.field]
        raise


# The classes of status codes. Those of a call come before: a missing file is told from any other thing not found, and
# an input that is too long from any other length.
Classes: TypeAlias = "Mapping[tuple[int, str | None], type[OgaError]]"
"""Classes by code and field, as C spells it; the field None stands for all."""

BY_CODE: Classes = {
    (kind.code, None): kind
    for kind in (
        InvalidArgumentError,
        InvalidStateError,
        NotFoundError,
        UnsupportedError,
        ResourceExhaustedError,
        OutOfMemoryError,
        FileAccessError,
        ModelError,
        EngineUnhealthyError,
        InternalError,
    )
}
OF_FILES: Classes = {(StatusCode.NOT_FOUND, None): MissingFileError}
OF_PROMPTS: Classes = {(StatusCode.INVALID_ARGUMENT, "input_ids_count"): PromptTooLongError}

# What C calls otherwise than Python.
NAMES = {"input_ids": "tokens", "input_ids_count": "tokens"}


def error_of(code: int, field: str | None, message: str, classes: Classes | None = None) -> OgaError:
    """The exception for what C says of an error; codes of a newer library give :class:`OgaError`.

    ``classes`` are those of the call, which come before the ones of all calls.
    """
    every = {**BY_CODE, **(classes or {})}
    kind = every.get((code, field)) or every.get((code, None), OgaError)
    return kind(message, field=None if field is None else NAMES.get(field, field))
