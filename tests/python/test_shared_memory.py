"""Two models in one process share what ``OGA_MEMORY_LIMIT`` or the machine leaves, instead of each taking half."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import oga

MIB = 1 << 20
GIB = 1 << 30

# Loads a folder twice, creates an engine on each, fills their caches when told to, and reports what it saw.
SCRIPT = """
import json, random, sys
import oga

folder, prompt, fill = sys.argv[1], json.loads(sys.argv[2]), sys.argv[3] == "fill"
models, engines, caches, logged = [], [], [], []
oga.set_log_callback(logged.append)
oga.set_log_options(enabled=True, info=True)
for _ in range(2):
    models.append(oga.Model(folder))
    engines.append(oga.Engine(models[-1]))
    counts = engines[-1].get_statistics()
    caches.append(counts.total_blocks * counts.block_bytes)

def answers():
    return [list(engine.stream(prompt, max_new_tokens=8)) for engine in engines]

before = answers()
for engine in engines if fill else []:
    counts, longest = engine.get_statistics(), engine.get_capabilities().max_request_length
    for _ in range(counts.total_blocks * counts.block_size // (longest - 8) + 1):
        tokens = [random.randrange(3, 500) for _ in range(longest - 8)]
        list(engine.stream(tokens, max_new_tokens=1))
status = dict(line.split(":", 1) for line in open("/proc/self/status"))
result = {"caches": caches, "before": before, "after": answers(), "most_bytes": int(status["VmHWM"].split()[0]) * 1024}
result["logged"] = [line for line in logged if line.startswith(("memory:", "key-value cache:"))]
print(json.dumps(result))
"""


def run_two(folder: Path, prompt: list[int], limit: str, *, fill: bool = False) -> dict[str, Any]:
    """What the script reports under that limit."""
    command = [sys.executable, "-c", SCRIPT, str(folder), json.dumps(prompt), "fill" if fill else ""]
    environment = {**os.environ, "OGA_MEMORY_LIMIT": limit}
    done = subprocess.run(command, capture_output=True, text=True, timeout=600, check=False, env=environment)
    assert done.returncode == 0, done.stderr
    result: dict[str, Any] = json.loads(done.stdout)
    return result


@pytest.fixture(scope="module")
def wide_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A tiny model whose every token takes 32 KiB of cache, so that caches are full within seconds."""
    from tiny_llama import write_tiny_llama

    from oga import export

    home = tmp_path_factory.mktemp("wide")
    changes = {"num_attention_heads": 8, "num_key_value_heads": 8, "head_dim": 256, "max_position_embeddings": 1024}
    source = write_tiny_llama(home / "source", **changes)
    return export.convert(source, home / "model", precision="fp32", cache="fp32").folder


def test_two_engines_stay_within_the_limit_when_their_caches_are_full(wide_folder: Path) -> None:
    limit = 1536 * MIB
    result = run_two(wide_folder, [5, 6, 7], "1536MiB", fill=True)
    first, second = result["caches"]
    assert limit * 0.49 < first <= limit // 2, "the first takes half of what is left beside its weights"
    assert limit * 0.24 < second <= limit // 4, "the second takes half of what the first has left"
    assert result["after"] == result["before"]
    assert first + second < result["most_bytes"], "the caches were not filled"
    assert result["most_bytes"] <= limit, "the process holds more than was stated"
    assert "OGA_MEMORY_LIMIT" in result["logged"][0]
    assert result["logged"][-1].startswith("memory: 1.1 GiB of 1.5 GiB, by OGA_MEMORY_LIMIT: weights ")


def test_two_real_models_answer_under_four_gibibytes(smollm2_folder: Path) -> None:
    with oga.Model(smollm2_folder) as model:
        prompt = model.chat_template.encode([{"role": "user", "content": "What is the capital of France?"}]).tolist()
    result = run_two(smollm2_folder, prompt, "4GiB")
    weights = sum(path.stat().st_size for path in smollm2_folder.glob("model.onnx*"))
    first, second = result["caches"]
    assert first > second > 256 * MIB
    assert first + second + 2 * weights <= 4 * GIB, "the sum of what was claimed is within the limit"
    assert result["most_bytes"] <= 4 * GIB
    assert result["before"][0] == result["before"][1] == result["after"][0] == result["after"][1]


@pytest.mark.parametrize("limit", ["lots", "0", "4GB"])
def test_a_limit_that_is_no_number_of_bytes_is_named(tiny_folder: Path, limit: str) -> None:
    script = (
        "import sys, oga\n"
        "try:\n    oga.Model(sys.argv[1])\n"
        "except oga.InvalidArgumentError as error:\n    print(error.field)\n"
    )
    environment = {**os.environ, "OGA_MEMORY_LIMIT": limit}
    done = subprocess.run(
        [sys.executable, "-c", script, str(tiny_folder)], capture_output=True, text=True, check=False, env=environment
    )
    assert (done.stdout.strip(), done.returncode) == ("OGA_MEMORY_LIMIT", 0), done.stderr
