"""The ``oga`` command.

Exit codes: 0 done, 1 something failed (one line on standard error says what and what to do), 2 the command line is
wrong, 130 interrupted by Ctrl-C.
"""

from __future__ import annotations

import io
import sys

__all__ = ["main"]


def main() -> None:
    """Entry point of the ``oga`` command and of ``python -m oga``."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")  # a path may hold bytes that no encoding has
    try:
        from oga.cli.app import app
    except KeyboardInterrupt:
        sys.exit(130)
    except ModuleNotFoundError as error:
        if error.name is None or error.name.split(".")[0] == "oga":
            raise
        print(
            f"oga: error: the command line needs the Python package {error.name!r}. Install it: pip install 'oga[cli]'",
            file=sys.stderr,
        )
        sys.exit(1)
    app(prog_name="oga")
