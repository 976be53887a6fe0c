"""Scripts in interpreters of their own, over a model of a folder."""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

from oga._native.loader import library_path

SECONDS = 20  # a whole interpreter with its imports, on a busy machine; a hang never ends


def program(folder: Path, body: str) -> str:
    """A script with a model and an engine of the tiny model's folder."""
    start = f"import gc, os, sys, threading, time\nimport oga\nFOLDER = {str(folder)!r}\n"
    start += "model = oga.Model(FOLDER)\nengine = oga.Engine(model)\n"
    return start + textwrap.dedent(body)


def start(script: str, *flags: str) -> subprocess.Popen[str]:
    env = os.environ | {"OGA_LIBRARY": str(library_path()), "PYTHONPATH": os.pathsep.join(sys.path)}
    command = [sys.executable, "-W", "error", *flags, "-c", script]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=env)


def run(script: str, *flags: str) -> tuple[int, str, str]:
    """Exit status, output and error output of a script; warnings are errors. A script that hangs fails the test."""
    process = start(script, *flags)
    try:
        output, errors = process.communicate(timeout=SECONDS)
    except subprocess.TimeoutExpired:
        process.kill()
        output, errors = process.communicate()
        pytest.fail(f"the script did not end within {SECONDS} s; it wrote {output!r} and {errors!r}")
    return process.returncode, output, errors


# A turn in mid run, and one object of every kind.
BUSY = """
request = engine.create_request()
request.begin_turn([5, 6, 7], oga.TurnOptions(request, max_generated_tokens=200, min_generated_tokens=200))
buffer = engine.create_event_buffer(4)
options = oga.RequestOptions(max_session_tokens=9)
event = engine.run(buffer)[0]
"""
