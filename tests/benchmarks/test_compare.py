"""``make compare`` with engines that are there and engines that are not."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import compare as comparing
import pytest

COMPARE = Path(__file__).resolve().parents[2] / "tools" / "bench" / "compare.py"
COUNTING = """
class Engine:
    dynamic = True
    vocab = 32000

    def __init__(self, model, threads, start="0"):
        self.left, self.start = {}, int(start)

    def info(self):
        return {}

    def submit(self, place, ids, new):
        self.left[place] = new

    def pending(self):
        return bool(self.left)

    def step(self):
        tokens = [(place, [self.start + left]) for place, left in self.left.items()]
        self.left = {place: left - 1 for place, left in self.left.items() if left > 1}
        return tokens
"""


def compare(folder: Path, engines: dict[str, dict[str, object]]) -> subprocess.CompletedProcess[str]:
    """Runs W1 once on engines whose adapters lie in ``folder``."""
    (folder / "eng_counting.py").write_text(COUNTING, encoding="utf-8")
    (folder / "eng_broken.py").write_text("raise RuntimeError('no such instruction')\n", encoding="utf-8")
    settings = {name: {"model": str(folder), "path": str(folder)} | engine for name, engine in engines.items()}
    config = folder / "engines.json"
    config.write_text(json.dumps({"engines": settings}), encoding="utf-8")
    command = [sys.executable, COMPARE, config, "--workloads", "W1", "--rounds", "1", "--json", folder / "out.json"]
    return subprocess.run(command, capture_output=True, text=True, check=False, timeout=120)


def test_engines_are_measured_side_by_side(tmp_path: Path) -> None:
    done = compare(tmp_path, {"one": {"engine": "counting"}, "two": {"engine": "counting", "options": {"start": 5}}})
    assert done.returncode == 0, done.stderr
    table = done.stdout.split("W1: one request, 32 + 128 tokens")[1].splitlines()
    assert [line.split()[0] for line in table[2:4]] == ["one", "two"]
    assert table[2].split()[-1] == "1.00"
    loading = table[5:]
    assert loading[0].split() == ["load,", "s", "peak,", "MB"]
    assert [line.split()[0] for line in loading[1:3]] == ["one", "two"]
    runs = json.loads((tmp_path / "out.json").read_text(encoding="utf-8"))["runs"]
    assert [run["measures"]["generated_tokens"] for run in runs] == [128, 128]


def test_the_ratios_of_a_run_are_paired_by_round() -> None:
    rates = {"old": {0: 100.0, 1: 50.0, 2: 10.0}, "new": {0: 110.0, 1: 50.0, 3: 7.0}}
    runs = [
        {
            "engine": name,
            "workload": "W1",
            "round": number,
            "ok": True,
            "measures": {"generated_tokens_per_second": rate},
        }
        for name, rounds in rates.items()
        for number, rate in rounds.items()
    ]
    assert comparing.paired({"runs": runs}, "W1", "new", "old") == [1.0, 1.1]
    assert comparing.paired({"runs": runs}, "W2", "new", "old") == []


def test_the_interval_of_a_median_holds_with_95_percent() -> None:
    assert comparing.median_interval([1.0] * 5) is None
    assert comparing.median_interval([1.0, 2.0, 3.0, 4.0, 5.0, 6.0]) == (1.0, 6.0)
    assert comparing.median_interval([float(number) for number in range(1, 13)]) == (3.0, 10.0)


@pytest.mark.parametrize(
    ("engine", "reason"),
    [
        ({"engine": "counting", "python": "$OGA_NOT_SET/bin/python"}, "there is no $OGA_NOT_SET/bin/python"),
        ({"engine": "counting", "model": "/nowhere/model"}, "there is no model /nowhere/model"),
        ({"engine": "nobody"}, "ModuleNotFoundError: No module named 'eng_nobody'"),
        ({"engine": "broken"}, "RuntimeError: no such instruction"),
    ],
    ids=["python", "model", "adapter", "loading"],
)
def test_an_engine_that_cannot_run_is_left_out_with_its_reason(
    tmp_path: Path, engine: dict[str, object], reason: str
) -> None:
    done = compare(tmp_path, {"peer": engine, "one": {"engine": "counting"}})
    assert done.returncode == 0, done.stderr
    assert f"peer: left out: {reason}" in done.stderr
    assert "peer" not in done.stdout
    assert "one" in done.stdout
