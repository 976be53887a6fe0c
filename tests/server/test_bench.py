"""`oga bench` against this server."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from running import Running
from typer.testing import CliRunner

from oga.cli.app import app


def measure(*arguments: Any) -> dict[str, Any]:
    done = CliRunner().invoke(app, ["bench", *map(str, arguments), "--json", "-"], env={"OPENAI_API_KEY": ""})
    assert done.exit_code == 0, done.output
    report: dict[str, Any] = json.loads(done.stdout)
    return report


def test_this_server_is_measured_as_any_other(server: Running, random_folder: Path) -> None:
    for endpoint in ("chat", "completions"):
        report = measure(
            server.url, "--endpoint", endpoint, "-c", 4, "--requests", 8, "--prompt-tokens", 20, "--output-tokens", 6,
            "--tokenizer", random_folder,
        )  # fmt: skip
        assert report["model"] == "random"
        assert report["requests"] == {"completed": 8, "failed": 0, "errors": {}}
        assert report["tokens"]["output"] == 8 * 6
        assert report["tokens"]["prompt"] >= 8 * 15
        assert report["latency_seconds"]["end_to_end"]["count"] == 8


def test_a_server_that_wants_a_key_gets_one(start: Any) -> None:
    running: Running = start(api_keys=("secret",))
    done = CliRunner().invoke(app, ["bench", running.url], env={"OPENAI_API_KEY": ""})
    assert done.exit_code == 1
    assert "Give a key: --api-key KEY." in done.stderr
    assert measure(running.url, "--api-key", "secret", "--requests", 2, "--output-tokens", 2)["tokens"]["output"] == 4
