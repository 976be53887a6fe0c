"""The CPU kernels beside what the machine can do, both measured in turns: a part of ``make bench``.

``kernel_speed`` (tests/benchmarks) measures; this gives it graphs, adds oneDNN's product where torch is installed, and
makes tables. Speeds of one machine at one time: the shares and ratios are what to look at.
"""

from __future__ import annotations

import importlib.util
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import kernel_graphs

# The products of a layer of Qwen2.5-0.5B and its head: what it is, inputs, outputs.
SHAPES = {
    "q, k, v": (896, 1152),
    "attention out": (896, 896),
    "gate or up": (896, 4864),
    "down": (4864, 896),
    "head": (896, 151936),
}
BITS = (4, 8)
LIMITS = {
    "read_gb_s": "read memory, GB/s",
    "triad_gb_s": "stream triad, GB/s",
    "peak_gflop_s": "multiply-adds in registers, GFLOP/s",
}
NAME_WIDTH = 48
ONEDNN_ROWS = (64, 256)  # where a product of 16-bit weights is a peer: with fewer rows it reads four times as much

Line = dict[str, Any]
"""One measurement: ``part``, ``name``, ``gb_s`` and ``gflop_s``, ``read_share`` and ``peak_share``, and the ratios of
its speed to others' (``to_runtime``, ``to_onednn``), None where there is none."""


def measure(program: Path, runtime_library: Path | None) -> dict[str, Any]:
    """All measurements: ``{"seconds", "limits", "lines"}``. ``program`` is ``kernel_speed``."""
    start = time.monotonic()
    environment = {} if runtime_library is None else {"OGA_ORT_LIBRARY": str(runtime_library)}

    def run(*arguments: str | Path) -> Any:
        print("measuring", *(each for each in arguments if isinstance(each, str)), file=sys.stderr, flush=True)
        command = [program, *arguments]
        done = subprocess.run(command, env=os.environ | environment, stdout=subprocess.PIPE, check=True)
        return json.loads(done.stdout)

    measured = run("limits")
    seconds, threads = measured["seconds"], measured["threads"]
    limits = {"isa": measured["limits_isa"], "kernels_isa": measured["kernels_isa"], "threads": threads}
    for suffix, used in (("1", 1), ("all", threads)):
        limits[f"read_gb_s_{suffix}"] = measured["read_bytes"] / seconds[f"read_{suffix}"] / 1e9
        limits[f"triad_gb_s_{suffix}"] = measured["triad_bytes"] / seconds[f"triad_{suffix}"] / 1e9
        limits[f"peak_gflop_s_{suffix}"] = measured["peak_flops_per_thread"] * used / seconds[f"peak_{suffix}"] / 1e9
    lines: list[Line] = []
    with tempfile.TemporaryDirectory() as folder:
        for bits in BITS:
            for title, (k, n) in SHAPES.items():
                kernel_graphs.write(Path(folder), k, n, bits)
                # Before and after, as nothing else can take turns with what runs in another process.
                onednn = onednn_samples(k, n, threads)
                found = run("products", Path(folder), str(k), str(n), str(bits))
                for rows, samples in onednn_samples(k, n, threads).items():
                    onednn[rows] += samples
                lines += [product_line(title, found, rows, onednn) for rows in found["rows"]]
    for step in run("attention")["attention"]:
        lines.append(line("attention", f"{step['step']}, {step['cache']}", step, "cache_bytes"))
    return {
        "seconds": time.monotonic() - start,
        "limits": limits,
        "lines": lines,
        "variants": variant_lines(run("variants")["variants"]),
    }


def line(part: str, name: str, found: dict[str, Any], bytes_key: str) -> Line:
    """Speeds, and shares of the limits that were measured in turns with them."""
    seconds = found["seconds"]
    bytes_second, flops_second = found[bytes_key] / seconds["kernel"], found["flops"] / seconds["kernel"]
    return {
        "part": part,
        "name": name,
        "gb_s": bytes_second / 1e9,
        "gflop_s": flops_second / 1e9,
        "read_share": bytes_second / (found["read_bytes"] / seconds["read"]),
        "peak_share": flops_second / (found["peak_flops"] / seconds["peak"]),
        "to_runtime": None,
        "to_onednn": None,
    }


def product_line(title: str, found: dict[str, Any], rows: dict[str, Any], onednn: dict[int, list[float]]) -> Line:
    """One shape and number of rows."""
    k, n, seconds = found["k"], found["n"], rows["seconds"]
    count = "1 row" if rows["rows"] == 1 else f"{rows['rows']} rows"
    made = line("product", f"int{found['bits']} {k} x {n} ({title}), {count}", rows, "weight_bytes")
    # Both inside a session of one graph, so that what the runtime adds is on both sides.
    made["to_runtime"] = seconds["runtime"] / seconds["node"]
    if samples := onednn.get(rows["rows"]):
        made["to_onednn"] = statistics.median(samples) / (seconds["kernel"] / rows["products"])
    return made


def onednn_samples(k: int, n: int, threads: int) -> dict[int, list[float]]:
    """By number of rows: seconds of products of bfloat16 by torch, which has oneDNN do them; empty without torch."""
    if importlib.util.find_spec("torch") is None:
        return {}
    import torch

    torch.set_num_threads(threads)
    weights = torch.randn(n, k).bfloat16()
    samples: dict[int, list[float]] = {}
    with torch.inference_mode():
        for rows in ONEDNN_ROWS:
            x = torch.randn(rows, k).bfloat16()
            torch.nn.functional.linear(x, weights)
            for _ in range(3):
                start = time.perf_counter()
                torch.nn.functional.linear(x, weights)
                samples.setdefault(rows, []).append(time.perf_counter() - start)
    return samples


def variant_lines(found: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """By piece of work: the speed of each instruction set, in the unit that says more about it."""
    merged: dict[str, dict[str, Any]] = {}
    for each in found:
        reads = " 1 row" in each["what"]
        amount = each["bytes"] if reads else each["flops"]
        empty = {"what": each["what"], "unit": "GB/s" if reads else "GFLOP/s", "by_isa": {}}
        entry = merged.setdefault(each["what"], empty)
        entry["by_isa"] |= {isa: amount / seconds / 1e9 for isa, seconds in each["seconds"].items()}
    return list(merged.values())


def show(results: dict[str, Any], baseline: dict[str, Any] | None) -> None:
    """Prints the tables; with a ``baseline``, which ``measure`` returned before, also ratios to its speeds."""
    limits = results["limits"]
    print(f"\nkernels by {limits['kernels_isa']}, {limits['threads']} threads")
    title, threads = f"limits, {limits['isa']}", f"{limits['threads']} threads"
    print(f"\n{title:<{NAME_WIDTH}}{'1 thread':>12}{threads:>12}")
    for key, title in LIMITS.items():
        print(f"{title:<{NAME_WIDTH}}{limits[f'{key}_1']:>12.1f}{limits[f'{key}_all']:>12.1f}")
    before = {each["name"]: each for each in baseline["lines"]} if baseline else {}
    heads = ("GB/s", "of read", "GFLOP/s", "of peak", "/runtime", "/oneDNN", "/before")
    for part, title in (("product", "MatMulNBits"), ("attention", "PagedAttention")):
        print(f"\n{title:<{NAME_WIDTH}}" + "".join(f"{head:>9}" for head in heads))
        for each in results["lines"]:
            if each["part"] == part:
                print(f"{each['name']:<{NAME_WIDTH}}" + "".join(cells(each, before.get(each["name"]))))
    isas = list(results["variants"][0]["by_isa"])
    print(f"\n{'by instruction set':<{NAME_WIDTH}}{'unit':>9}" + "".join(f"{isa:>13}" for isa in isas))
    for each in results["variants"]:
        print(
            f"{each['what']:<{NAME_WIDTH}}{each['unit']:>9}" + "".join(f"{each['by_isa'][isa]:>13.1f}" for isa in isas)
        )
    print(f"\nkernels measured in {results['seconds']:.0f} s")


def cells(found: Line, before: Line | None) -> list[str]:
    """The numbers of a line."""
    to_before = found["gflop_s"] / before["gflop_s"] if before else None
    shares = [f"{found['gb_s']:9.1f}", f"{found['read_share']:9.0%}"]
    shares += [f"{found['gflop_s']:9.0f}", f"{found['peak_share']:9.0%}"]
    ratios = (found["to_runtime"], found["to_onednn"], to_before)
    return shares + [f"{'':>9}" if ratio is None else f"{ratio:9.2f}" for ratio in ratios]
