"""Measures the kernels, how the engine's speed grows with the number of conversations, and what guidance costs.

The model is the small one of ``make run``. All numbers come from one run on one machine: the ratios are to be compared.
``--save FILE`` keeps them, ``--baseline FILE`` compares with kept ones, ``--plot FILE`` draws the kernels' shares of
what the machine can do.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import oga
from oga import export
from oga._native.loader import llguidance_library, onnxruntime_library

sys.path.insert(0, str(Path(__file__).resolve().parent / "bench"))

import kernel_bench
import kernel_plot

ROW_COUNTS = (1, 4, 16)
PROMPT_TOKENS = 32
GENERATED_TOKENS = 48
PREFILL_TOKENS = 512
GUIDED_ROWS = 16
GUIDED_STEPS = 64
# Forms that leave a choice at every place, so that a guided step computes as many tokens as a free one.
FORMS = {
    "a JSON string": ("json_schema", '{"type": "string", "minLength": 1000}'),
    "words": ("regex", "([a-z]+ ){200,}"),
}


def tokens(count: int, start: int) -> list[int]:
    """Returns ``count`` token ids; different for each ``start``, the same in every run."""
    return [1000 + (start * 7919 + index * 104729) % 20000 for index in range(count)]


def measure(engine: oga.Engine, rows: int, prompt_tokens: int, new_tokens: int) -> tuple[float, float]:
    """Runs ``rows`` requests together; returns seconds until all prompts are consumed, and seconds after that."""
    requests = [engine.create_request() for _ in range(rows)]
    for index, request in enumerate(requests):
        options = oga.TurnOptions(
            request, max_generated_tokens=new_tokens, min_generated_tokens=new_tokens, do_sample=False
        )
        request.begin_turn(tokens(prompt_tokens, index), options)
    buffer = engine.create_event_buffer(rows)
    waiting_for_first = set(requests)
    start = prefilled = time.perf_counter()
    while engine.has_pending_requests():
        for event in engine.run(buffer):
            if event.request in waiting_for_first:
                waiting_for_first.discard(event.request)
                prefilled = time.perf_counter()
    end = time.perf_counter()
    for request in requests:
        request.close()
    return prefilled - start, end - prefilled


def median_rate(engine: oga.Engine, rows: int, repeats: int) -> float:
    """Returns decoded tokens per second of all rows together, the median of ``repeats`` runs."""
    rates = [
        rows * (GENERATED_TOKENS - 1) / measure(engine, rows, PROMPT_TOKENS, GENERATED_TOKENS)[1]
        for _ in range(repeats)
    ]
    return statistics.median(rates)


def decode_steps(engine: oga.Engine, guidance: tuple[str, str] | None) -> dict[str, float]:
    """Decodes GUIDED_ROWS rows together; returns the median microseconds of a step and of its phase of sampling."""
    with tempfile.TemporaryDirectory() as folder:
        trace = Path(folder, "trace.jsonl")
        requests = [engine.create_request() for _ in range(GUIDED_ROWS)]
        for index, request in enumerate(requests):
            options = oga.TurnOptions(request, max_generated_tokens=GUIDED_STEPS, guidance=guidance, seed=index)
            options.set_do_sample(True)
            options.set_temperature(1.0)
            options.set_min_generated_tokens(GUIDED_STEPS)
            request.begin_turn(tokens(PROMPT_TOKENS, index), options)
        engine.set_trace_file(trace)
        with engine.create_event_buffer(GUIDED_ROWS) as buffer:
            while engine.has_pending_requests():
                engine.run(buffer)
        engine.set_trace_file(None)
        for request in requests:
            request.close()
        steps = [json.loads(line) for line in trace.read_text(encoding="utf-8").splitlines()]
    decoding = [step["us"] for step in steps if step["tokens"] == len(step["rows"]) == GUIDED_ROWS]
    return {
        "step": statistics.median(sum(phases.values()) for phases in decoding),
        "sample": statistics.median(phases["sample"] for phases in decoding),
    }


def guidance_costs(engine: oga.Engine) -> dict[str, dict[str, float]]:
    """What a decode step takes without a form and with each of FORMS, in turns, so that drift hits all alike."""
    kinds: dict[str, tuple[str, str] | None] = {"free": None, **FORMS}
    runs: dict[str, list[dict[str, float]]] = {name: [] for name in kinds}
    for _ in range(3):
        for name, guidance in kinds.items():
            runs[name].append(decode_steps(engine, guidance))
    return {
        name: {phase: statistics.median(run[phase] for run in found) for phase in ("step", "sample")}
        for name, found in runs.items()
    }


def print_guidance_costs(costs: dict[str, dict[str, float]]) -> None:
    """One line per form; the share is what guidance adds to a step."""
    free = costs["free"]
    print(f"\n{f'decode step of {GUIDED_ROWS} rows':<28}{'us/step':>10}{'ratio':>8}{'us/row of sampling':>22}")
    for name, cost in costs.items():
        sampling = cost["sample"] / GUIDED_ROWS
        print(f"{name:<28}{cost['step']:>10.0f}{cost['step'] / free['step']:>8.3f}{sampling:>22.1f}")


def print_mask_costs(programs: Path, folder: Path) -> int:
    """Runs the program that measures single masks; returns its exit status."""
    environment = {
        "OGA_TEST_DATA_DIR": str(programs / "data"),
        "OGA_TEST_LLGUIDANCE_LIBRARY": str(llguidance_library()),
    }
    print(flush=True)
    command = [programs / "simulation" / "guidance_cost", folder]
    return subprocess.run(command, env=os.environ | environment, check=False).returncode


def engine_numbers(folder: Path, repeats: int) -> dict[str, Any]:
    """Tokens per second of conversations together and of a prompt, and what guidance adds to a step."""
    config = oga.Config(folder)
    # Repeats send the same prompts: with the prefix cache the second one would measure a look-up.
    config.overlay({"engine": {"dynamic_batching": {"prefix_caching": False}}})
    with oga.Model(config) as model, oga.Engine(model) as engine:
        measure(engine, 1, PROMPT_TOKENS, 4)  # the first steps touch all memory once
        seconds = statistics.median(measure(engine, 1, PREFILL_TOKENS, 1)[0] for _ in range(repeats))
        decode = {str(rows): median_rate(engine, rows, repeats) for rows in ROW_COUNTS}
        return {
            "runtime": oga.get_ort_version(),
            "prefill_tokens_per_second": PREFILL_TOKENS / seconds,
            "decode_tokens_per_second": decode,
            "guided_step_microseconds": guidance_costs(engine),
        }


def print_engine(numbers: dict[str, Any], before: dict[str, Any] | None) -> None:
    """Rates beside that of one conversation alone, and beside those of an earlier run."""
    print(f"runtime {numbers['runtime']}\n")
    print(f"{'what':<28}{'tokens/s':>10}{'ratio':>8}" + (f"{'/before':>9}" if before else ""))
    rates = {f"decode, {rows} together": rate for rows, rate in numbers["decode_tokens_per_second"].items()}
    old = (
        {f"decode, {rows} together": rate for rows, rate in before["decode_tokens_per_second"].items()}
        if before
        else {}
    )
    prefill = f"prefill, {PREFILL_TOKENS} tokens"
    alone = next(iter(rates.values()))
    rates[prefill] = numbers["prefill_tokens_per_second"]
    if before:
        old[prefill] = before["prefill_tokens_per_second"]
    for what, rate in rates.items():
        print(f"{what:<28}{rate:>10.1f}{rate / alone:>8.2f}" + (f"{rate / old[what]:>9.2f}" if what in old else ""))
    print_guidance_costs(numbers["guided_step_microseconds"])


def main() -> int:
    """Prints the tables; ``--save`` keeps the numbers, and ``--baseline`` shows the ratio of each to kept ones."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--model", help="a model folder (default: SmolLM2, fetched once)")
    parser.add_argument("--repeats", type=int, default=3, help="runs per number, of which the median counts")
    parser.add_argument("--programs", type=Path, help="the build folder of the tests: kernels, and the cost of masks")
    parser.add_argument("--parts", default="kernels,engine", help="what to measure: kernels, engine, or both")
    parser.add_argument("--save", "--json", dest="save", type=Path, help="also write the numbers to this file")
    parser.add_argument("--baseline", type=Path, help="a file of --save, to which ratios are shown")
    parser.add_argument("--plot", type=Path, help="an SVG file: how near each kernel comes to its limit")
    arguments = parser.parse_args()
    parts = set(arguments.parts.split(","))
    if unknown := parts - {"kernels", "engine"}:
        parser.error(f"there is no part {sorted(unknown)[0]!r}; there are kernels, engine")
    baseline = json.loads(arguments.baseline.read_text(encoding="utf-8")) if arguments.baseline else {}
    numbers: dict[str, Any] = {}
    status = 0
    if "kernels" in parts and arguments.programs:
        numbers["kernels"] = kernel_bench.measure(
            arguments.programs / "benchmarks" / "kernel_speed", onnxruntime_library()
        )
        kernel_bench.show(numbers["kernels"], baseline.get("kernels"))
        if arguments.plot:
            kernel_plot.write(numbers["kernels"]["lines"], arguments.plot)
    if "engine" in parts:
        folder = Path(arguments.model or export.pull("smollm2", precision="int8"))
        print(f"\nmodel {folder}")
        numbers["engine"] = engine_numbers(folder, arguments.repeats)
        print_engine(numbers["engine"], baseline.get("engine"))
        status = print_mask_costs(arguments.programs, folder) if arguments.programs else 0
    if arguments.save:
        arguments.save.write_text(json.dumps(numbers, indent=2) + "\n", encoding="utf-8")
    return status


if __name__ == "__main__":
    raise SystemExit(main())
