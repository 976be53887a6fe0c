"""The tutorial's program for a team, against a real server."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

from running import Running
from terminals import environment

EXAMPLE = Path(__file__).resolve().parents[2] / "docs" / "examples" / "serve_a_team.py"


def test_a_team_asks_at_once(server: Running) -> None:
    done = subprocess.run(
        [sys.executable, EXAMPLE, server.url], capture_output=True, text=True, timeout=60, check=False,
        env=environment(),
    )  # fmt: skip
    assert (done.returncode, done.stderr) == (0, "")
    assert f"{server.url} serves random" in done.stdout
    assert set(re.findall(r"^(\w+): \d+ tokens: ", done.stdout, re.MULTILINE)) == {"Ada", "Ben", "Cleo"}
