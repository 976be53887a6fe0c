"""Measures how the engine's speed grows with the number of conversations, with the small model of ``make run``.

All numbers come from one run on one machine; the ratios are what to compare. ``--json FILE`` writes them too.
"""

from __future__ import annotations

import argparse
import json
import statistics
import time
from pathlib import Path

import oga
from oga import export

ROW_COUNTS = (1, 4, 16)
PROMPT_TOKENS = 32
GENERATED_TOKENS = 48
PREFILL_TOKENS = 512


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


def main() -> int:
    """Prints the table, and writes it with ``--json``."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--model", help="a model folder (default: SmolLM2, fetched once)")
    parser.add_argument("--repeats", type=int, default=3, help="runs per number, of which the median counts")
    parser.add_argument("--json", type=Path, help="also write the numbers to this file")
    arguments = parser.parse_args()
    folder = arguments.model or export.pull("smollm2", precision="int8")
    config = oga.Config(folder)
    # Repeats send the same prompts: with the prefix cache the second one would measure a look-up.
    config.overlay({"engine": {"dynamic_batching": {"prefix_caching": False}}})
    with oga.Model(config) as model, oga.Engine(model) as engine:
        measure(engine, 1, PROMPT_TOKENS, 4)  # the first steps touch all memory once
        prefill = PREFILL_TOKENS / statistics.median(
            measure(engine, 1, PREFILL_TOKENS, 1)[0] for _ in range(arguments.repeats)
        )
        decode = {rows: median_rate(engine, rows, arguments.repeats) for rows in ROW_COUNTS}
        runtime = oga.get_ort_version()
    alone = decode[ROW_COUNTS[0]]
    print(f"model {folder}\nruntime {runtime}\n")
    print(f"{'what':<28}{'tokens/s':>10}{'ratio':>8}")
    for rows, rate in decode.items():
        print(f"{f'decode, {rows} together':<28}{rate:>10.1f}{rate / alone:>8.2f}")
    print(f"{f'prefill, {PREFILL_TOKENS} tokens':<28}{prefill:>10.1f}{prefill / alone:>8.2f}")
    if arguments.json:
        numbers = {"runtime": runtime, "prefill_tokens_per_second": prefill, "decode_tokens_per_second": decode}
        arguments.json.write_text(json.dumps(numbers, indent=2) + "\n", encoding="utf-8")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
