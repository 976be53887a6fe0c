"""Entry point of the developer commands: ``python3 tools/dev run|test|check|docs|bench|build``."""

import sys

if sys.version_info < (3, 11):  # noqa: UP036 - this file runs on whatever the machine calls python3
    sys.exit(
        f"oga needs Python 3.11 or newer, found {sys.version.split()[0]}. Name another one: make PYTHON=python3.12"
    )

import commands

sys.exit(commands.main())
