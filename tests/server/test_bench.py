"""oga bench: the same load for an engine in this process and for a server."""

from __future__ import annotations

import json
import xml.etree.ElementTree as ElementTree
from pathlib import Path
from typing import Any

import pytest
from running import Running
from typer.testing import CliRunner

from oga.cli.app import app
from oga.cli.bench import percentiles
from oga.cli.bench_load import Load, requests_of


def report(*words: str) -> dict[str, Any]:
    done = CliRunner().invoke(app, ["bench", *words, "--json"])
    assert done.exit_code == 0, done.output
    found: dict[str, Any] = json.loads(done.stdout)
    return found


MIX = ("-n", "12", "-c", "4", "--prompt-words", "4,20:40", "--output-tokens", "3:9")


def test_the_engine_and_the_server_bear_the_same_load(server: Running, random_folder: Path, tmp_path: Path) -> None:
    picture = tmp_path / "plot.svg"
    here = report(str(random_folder), *MIX, "--plot", str(picture))
    there = report(server.url, "--model", "random", *MIX)
    for found in (here, there):
        assert (found["requests"], found["failed"]) == (12, 0)
        assert found["tokens"] == sum(request.output_tokens for request in requests_of(load_of(found)))
        assert found["first_token_ms"]["p50"] <= found["first_token_ms"]["p95"] <= found["whole_ms"]["max"]
        assert all(len(sample["gaps"]) < sample["tokens"] for sample in found["samples"])
        assert any(sample["gaps"] for sample in found["samples"])
    assert here["prompt_tokens"] == there["prompt_tokens"]
    bars = ElementTree.parse(picture).getroot().findall("{http://www.w3.org/2000/svg}rect")
    assert len(bars) == 1 + 2 * 12


def load_of(found: dict[str, Any]) -> Load:
    return Load(**found["load"])


def test_an_open_loop_arrives_at_its_rate(server: Running) -> None:
    found = report(f"{server.url}/v1", *MIX, "--rate", "100", "--shared-prefix", "8")
    starts = [sample["begun"] for sample in found["samples"]]
    assert starts == sorted(starts)
    assert 0.02 < starts[-1] < 1
    assert found["failed"] == 0
    prompts = [request.prompt.split()[:8] for request in requests_of(load_of(found))]
    assert prompts == [prompts[0]] * 12


def test_what_a_server_refuses_is_counted_and_said(server: Running) -> None:
    done = CliRunner().invoke(app, ["bench", server.url, "--model", "nothing", *MIX])
    assert done.exit_code == 1
    partly = report(server.url, "-n", "6", "--prompt-words", "4,900", "--output-tokens", "3", "--model", "random")
    assert 0 < partly["failed"] < 6
    assert "session limit" in partly["errors"][0]


@pytest.mark.parametrize("words", [("--prompt-words", "0"), ("--output-tokens", "9:3"), ("--prompt-words", "a")])
def test_a_mix_that_is_none_is_refused(random_folder: Path, words: tuple[str, str]) -> None:
    done = CliRunner().invoke(app, ["bench", str(random_folder), *words])
    assert done.exit_code == 1


def test_percentiles_of_few_and_of_many_values() -> None:
    assert percentiles([]) == {}
    assert percentiles([5.0]) == {"mean": 5.0, "p50": 5.0, "p90": 5.0, "p95": 5.0, "p99": 5.0, "max": 5.0}
    many = percentiles([float(value) for value in range(1000)])
    assert (many["p50"], many["p99"], many["max"]) == (500.0, 990.0, 999.0)
