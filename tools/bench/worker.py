"""One engine in one process, driven by ``compare`` over its standard input and output, one JSON object a line.

usage: worker.py ENGINE MODEL THREADS [KEY=VALUE ...], where ENGINE names a module ``eng_ENGINE`` on the path. Standard
library only beside the engine itself: it runs in the engine's own Python.
"""

from __future__ import annotations

import contextlib
import importlib
import json
import os
import sys
import time
import traceback
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent


def status_mb(key: str) -> float:
    """A line of /proc/self/status in MB; 0 where there is none."""
    with contextlib.suppress(OSError), Path("/proc/self/status").open(encoding="ascii") as lines:
        for line in lines:
            if line.startswith(key + ":"):
                return int(line.split()[1]) / 1024
    return 0.0


def reset_peak() -> None:
    """Lets VmHWM start again."""
    with contextlib.suppress(OSError):
        Path("/proc/self/clear_refs").write_text("5", encoding="ascii")


def drive(engine: Any, work: list[Any]) -> tuple[list[list[float]], list[list[int]]]:
    """Runs a workload; returns when each token of each request was there, and which it was."""
    seen: list[list[float]] = [[] for _ in work]
    tokens: list[list[int]] = [[] for _ in work]
    start = time.perf_counter()

    def emit(place: int, ids: list[int]) -> None:
        taken = [int(token) for token in ids[: work[place].new_tokens - len(seen[place])]]
        seen[place] += [time.perf_counter() - start] * len(taken)
        tokens[place] += taken

    arrived = 0
    while arrived < len(work) or (engine.dynamic and engine.pending()):
        due = arrived
        while due < len(work) and work[due].at <= time.perf_counter() - start:
            due += 1
        if not engine.dynamic:
            due = min(due, arrived + engine.max_batch)
        batch = [(place, work[place].prompt, work[place].new_tokens) for place in range(arrived, due)]
        arrived = due
        if engine.dynamic:
            for each in batch:
                engine.submit(*each)
            if engine.pending():
                for place, ids in engine.step():
                    emit(place, ids)
                continue
        elif batch:
            engine.run_batch(batch, emit)
            continue
        if arrived < len(work):
            time.sleep(max(0.0, work[arrived].at - (time.perf_counter() - start)))
    if hasattr(engine, "reset"):
        engine.reset()
    return seen, tokens


def main() -> None:
    """Loads the engine, then answers one workload per line until the end of input."""
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # whatever an engine prints goes to stderr

    def answer(value: dict[str, Any]) -> None:
        answers.write(json.dumps(value) + "\n")
        answers.flush()

    # Last, or files here would stand in for packages of an engine that have their names.
    sys.path[:] = [*(folder for folder in sys.path if folder != str(HERE)), str(HERE)]
    from workloads import measures, workload

    name, model, threads, *pairs = sys.argv[1:]
    start = time.perf_counter()
    try:
        module = importlib.import_module(f"eng_{name}")
        imported = time.perf_counter()
        engine = module.Engine(model, int(threads), **dict(pair.split("=", 1) for pair in pairs))
        loaded = time.perf_counter()
        drive(engine, workload("warm-up", engine.vocab, 0))
    except Exception as error:
        traceback.print_exc()
        answer({"ok": False, "error": f"{type(error).__name__}: {error}"[:500]})
        os._exit(1)
    answer({"ok": True, "import_seconds": imported - start, "load_seconds": loaded - imported, "info": engine.info()})
    for line in sys.stdin:
        asked = json.loads(line)
        work = workload(asked["workload"], engine.vocab, asked["seed"])
        # The system may have taken pages of the weights while this process stood still.
        drive(engine, workload("warm-up", engine.vocab, 0))
        reset_peak()
        try:
            seen, tokens = drive(engine, work)
        except Exception as error:
            answer({"ok": False, "error": f"{type(error).__name__}: {error}"[:500]})
            continue
        found = measures(work, seen) | {"peak_mb": status_mb("VmHWM")}
        answer({"ok": True, "measures": found, "tokens": tokens if asked.get("keep") else None})
    os._exit(0)  # no engine's shutdown is measured, and none may hang


if __name__ == "__main__":
    main()
