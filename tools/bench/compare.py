"""Runs engines on the same workloads, interleaved, and prints the medians and the ratios to a baseline.

    python tools/bench/compare.py [--model FOLDER]                     oga alone; SmolLM2 in int8 unless told otherwise
    python tools/bench/compare.py CONFIG.json --rounds 3 --json OUT    oga beside others, and beside itself

CONFIG.json: ``{"engines": {NAME: {"engine": "oga", "model": FOLDER, "python": PATH, "path": FOLDER, "options": {...},
"env": {...}, "workloads": [...]}}}``; all but the first two may be left out. ``$NAME`` in a path is taken from the
environment. The first engine is the baseline of the ratios, unless ``--baseline OUT.json`` names an earlier run.

Adapters beside this file: oga, onnxruntime_genai, openvino, llamacpp, vllm; ``peers.py`` sets up what the last four
need. An engine whose Python, package or model is not there is left out, with a line that says so.

Every engine stays loaded in a process of its own, which is stopped while another one works, so nothing spins beside the
measured one. Token ids differ from round to round: a prefix cache never helps between rounds.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import math
import os
import select
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))

from workloads import NAMES, TITLES  # noqa: E402 (this folder must be on the path)

LOAD_SECONDS, WORK_SECONDS = 300.0, 300.0
COLUMNS = {
    "generated_tokens_per_second": ("tokens/s", 1, 1),
    "first_token_p50": ("first, ms", 1000, 0),
    "between_tokens_p50": ("between, ms", 1000, 1),
    "between_tokens_p95": ("p95, ms", 1000, 1),
    "peak_mb": ("peak, MB", 1, 0),
}


class EngineAbsentError(Exception):
    """What an engine needs is not on this machine."""


class Worker:
    """An engine in its own process, standing still unless asked."""

    def __init__(self, name: str, settings: dict[str, Any], threads: int, logs: Path) -> None:
        expand = os.path.expandvars
        environment = {**os.environ, "OMP_NUM_THREADS": str(threads), "TOKENIZERS_PARALLELISM": "false"}
        if "python" in settings:
            environment.pop("PYTHONPATH", None)  # it names packages for this Python
        environment |= {key: expand(value) for key, value in settings.get("env", {}).items()}
        if "path" in settings:
            environment["PYTHONPATH"] = expand(settings["path"])
        command = [expand(settings.get("python", sys.executable)), str(HERE / "worker.py"), settings["engine"]]
        command += [expand(settings["model"]), str(threads)]
        command += [f"{key}={value}" for key, value in settings.get("options", {}).items()]
        self.log = logs / f"{name}.log"
        if shutil.which(command[0]) is None:
            raise EngineAbsentError(f"there is no {command[0]}")
        if not Path(command[3]).exists():
            raise EngineAbsentError(f"there is no model {command[3]}")
        with self.log.open("wb") as log:
            self._process = subprocess.Popen(
                command,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=log,
                env=environment,
                start_new_session=True,
                bufsize=0,
            )
        self._read = b""
        self.hello = self._answer(LOAD_SECONDS)
        self._signal(signal.SIGSTOP)

    def ask(self, question: dict[str, Any]) -> dict[str, Any]:
        """Wakes the engine, runs one workload, and stops it again."""
        self._signal(signal.SIGCONT)
        assert self._process.stdin is not None
        try:
            self._process.stdin.write((json.dumps(question) + "\n").encode())
        except BrokenPipeError:
            return {"ok": False, "error": f"the engine ended, see {self.log}"}
        answer = self._answer(WORK_SECONDS)
        self._signal(signal.SIGSTOP)
        return answer

    def close(self) -> None:
        """Ends the process."""
        self._signal(signal.SIGCONT)
        self._signal(signal.SIGKILL)
        self._process.wait()

    def _signal(self, which: signal.Signals) -> None:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self._process.pid, which)

    def _answer(self, seconds: float) -> dict[str, Any]:
        assert self._process.stdout is not None
        end = time.monotonic() + seconds
        while b"\n" not in self._read:
            ready, _, _ = select.select([self._process.stdout], [], [], max(0.0, end - time.monotonic()))
            if not ready:
                return {"ok": False, "error": f"no answer in {seconds:.0f} s"}
            data = os.read(self._process.stdout.fileno(), 1 << 20)
            if not data:
                return {"ok": False, "error": f"the engine ended, see {self.log}"}
            self._read += data
        line, self._read = self._read.split(b"\n", 1)
        answer: dict[str, Any] = json.loads(line)
        return answer


def run(engines: dict[str, dict[str, Any]], names: list[str], rounds: int, threads: int) -> dict[str, Any]:
    """All rounds of all workloads: ``{"engines": {name: hello}, "runs": [...]}``."""
    results: dict[str, Any] = {"engines": {}, "runs": []}
    logs = Path(tempfile.mkdtemp(prefix="oga-bench-"))
    workers: dict[str, Worker] = {}
    try:
        for name, settings in engines.items():
            try:
                worker = Worker(name, settings, threads, logs)
            except EngineAbsentError as absent:
                print(f"{name}: left out: {absent}", file=sys.stderr, flush=True)
                continue
            results["engines"][name] = worker.hello
            if worker.hello["ok"]:
                workers[name] = worker
                print(f"{name}: loaded in {worker.hello['load_seconds']:.2f} s", file=sys.stderr, flush=True)
            else:
                print(f"{name}: left out: {worker.hello['error']}", file=sys.stderr, flush=True)
                worker.close()
        for number in range(rounds):
            for workload in names:
                for name, worker in workers.items():
                    if workload not in engines[name].get("workloads", [workload]):
                        continue
                    answer = worker.ask({"workload": workload, "seed": 1000 + number})
                    results["runs"].append({"engine": name, "workload": workload, "round": number, **answer})
                    found = answer.get("measures")
                    rate = f"{found['generated_tokens_per_second']:.1f} tokens/s" if found else answer["error"]
                    print(f"round {number + 1}, {workload}, {name}: {rate}", file=sys.stderr, flush=True)
    finally:
        for worker in workers.values():
            worker.close()
    return results


def medians(results: dict[str, Any]) -> dict[str, dict[str, dict[str, float]]]:
    """By workload: engine -> measure -> median over the rounds."""
    table: dict[str, dict[str, dict[str, float]]] = {}
    for workload in NAMES:
        for name in results["engines"]:
            found = [
                each["measures"]
                for each in results["runs"]
                if (each["engine"], each["workload"]) == (name, workload) and each["ok"]
            ]
            if found:
                row = {key: statistics.median(each[key] for each in found if each[key] is not None) for key in COLUMNS}
                table.setdefault(workload, {})[name] = row
    return table


def paired(results: dict[str, Any], workload: str, name: str, baseline: str) -> list[float]:
    """The ratios of an engine's throughput to another one's, round by round, in ascending order."""
    found: dict[str, dict[int, float]] = {}
    for each in results["runs"]:
        if each["workload"] == workload and each["ok"]:
            rate = each["measures"]["generated_tokens_per_second"]
            found.setdefault(each["engine"], {})[each["round"]] = rate
    first, own = found.get(baseline, {}), found.get(name, {})
    return sorted(own[number] / first[number] for number in own.keys() & first.keys())


def median_interval(ordered: list[float]) -> tuple[float, float] | None:
    """The 95% interval of the median of ``ordered``, by the binomial distribution of how many lie below it.

    None for fewer than six numbers, of which no interval is that sure.
    """
    count, below, rank = len(ordered), 0.0, 0
    while rank < count // 2 and below + math.comb(count, rank) / 2**count <= 0.025:
        below += math.comb(count, rank) / 2**count
        rank += 1
    return (ordered[rank - 1], ordered[count - rank]) if rank else None


def show_pairs(results: dict[str, Any]) -> None:
    """Prints the medians of the paired ratios to the first engine, with their 95% intervals."""
    first, *others = [name for name, hello in results["engines"].items() if hello["ok"]] or [""]
    for name in others:
        print(f"\n{name} to {first}, round by round: the median of the ratios of tokens/s, and its 95% interval")
        for workload in NAMES:
            ratios = paired(results, workload, name, first)
            if not ratios:
                continue
            interval = median_interval(ratios)
            sure = f"{interval[0]:.3f} to {interval[1]:.3f}" if interval else "needs six rounds"
            print(f"{workload:<8}{statistics.median(ratios):>8.3f}   {sure}")


def show(results: dict[str, Any], baseline: dict[str, Any] | None) -> None:
    """Prints a table per workload; the ratio is of tokens per second."""
    reference = medians(baseline) if baseline else None
    for workload, rows in medians(results).items():
        print(f"\n{workload}: {TITLES[workload]}")
        print(f"{'':<24}" + "".join(f"{title:>13}" for title, _, _ in COLUMNS.values()) + f"{'ratio':>8}")
        first = next(iter(rows.values()))["generated_tokens_per_second"]
        for name, row in rows.items():
            against = first
            if reference is not None:
                found = reference.get(workload, {}).get(name)
                against = found["generated_tokens_per_second"] if found else float("nan")
            cells = "".join(f"{row[key] * scale:>13.{digits}f}" for key, (_, scale, digits) in COLUMNS.items())
            print(f"{name:<24}{cells}{row['generated_tokens_per_second'] / against:>8.2f}")


def show_engines(results: dict[str, Any]) -> None:
    """Prints what each engine took to load, and the most memory that it held in any workload."""
    print(f"\n{'':<24}{'load, s':>13}{'peak, MB':>13}")
    for name, hello in results["engines"].items():
        peaks = [each["measures"]["peak_mb"] for each in results["runs"] if each["engine"] == name and each["ok"]]
        if hello["ok"] and peaks:
            print(f"{name:<24}{hello['load_seconds']:>13.2f}{max(peaks):>13.0f}")


def small_model() -> str:
    """The folder of SmolLM2 in int8, fetched once."""
    from oga import export

    return str(export.pull("smollm2", precision="int8"))


def main() -> int:
    """Prints the tables, and writes every run with ``--json``."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("config", nargs="?", type=Path, help="engines to compare")
    parser.add_argument("--model", help="a model folder for oga alone (default: SmolLM2 in int8, fetched once)")
    parser.add_argument("--workloads", default=",".join(NAMES), help="a list such as W1,W4")
    parser.add_argument("--rounds", type=int, default=3, help="of which the medians count")
    parser.add_argument("--threads", type=int, default=os.cpu_count() or 1, help="of every engine")
    parser.add_argument("--json", type=Path, help="also write every run to this file")
    parser.add_argument("--baseline", type=Path, help="a file of --json: ratios are to the same engine's numbers there")
    arguments = parser.parse_args()
    names = arguments.workloads.split(",")
    if unknown := set(names) - set(NAMES):
        parser.error(f"there is no workload {sorted(unknown)[0]!r}; there are {', '.join(NAMES)}")
    if arguments.config and arguments.model:
        parser.error("give a configuration file or --model, not both")
    if arguments.config:
        engines = json.loads(arguments.config.read_text(encoding="utf-8"))["engines"]
    else:
        engines = {"oga": {"engine": "oga", "model": arguments.model or small_model()}}
    results = run(engines, names, arguments.rounds, arguments.threads)
    show(results, json.loads(arguments.baseline.read_text(encoding="utf-8")) if arguments.baseline else None)
    show_engines(results)
    show_pairs(results)
    if arguments.json:
        arguments.json.write_text(json.dumps(results, indent=1) + "\n", encoding="utf-8")
    return 0 if any(each["ok"] for each in results["runs"]) else 1


if __name__ == "__main__":
    raise SystemExit(main())
