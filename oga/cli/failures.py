"""From exceptions to one line on standard error and an exit code."""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable
from typing import ParamSpec

import typer

from oga.errors import OgaError

P = ParamSpec("P")

FAILED = 1
INTERRUPTED = 130


def reported(command: Callable[P, None]) -> Callable[P, None]:
    """Wraps a command: an error that has a cause outside oga ends in one line, not in a traceback."""

    @functools.wraps(command)
    def wrapper(*args: P.args, **kwargs: P.kwargs) -> None:
        try:
            command(*args, **kwargs)
        except KeyboardInterrupt:
            complain("interrupted")
            raise typer.Exit(INTERRUPTED) from None
        except BrokenPipeError:
            raise  # the reader of our output has gone; typer ends quietly
        except Exception as error:
            if not is_expected(error):
                raise
            complain(f"error: {one_line(error)}")
            raise typer.Exit(FAILED) from None

    return wrapper


def is_expected(error: Exception) -> bool:
    """Whether the message of an error is written for the person at the command line."""
    export = sys.modules.get("oga.export.errors")
    return isinstance(error, OgaError | OSError) or (export is not None and isinstance(error, export.ExportError))


def one_line(error: Exception) -> str:
    """The message of an error without line breaks."""
    return " ".join(str(error).split()) or type(error).__name__


def complain(message: str) -> None:
    """Writes one line to standard error."""
    print(f"oga: {message}", file=sys.stderr, flush=True)
