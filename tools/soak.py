"""Lets clients come, read and leave for minutes, and looks for what stays behind.

Starts ``oga serve`` and keeps many streaming clients on it; a third of them disconnects at a random moment. Meanwhile
another client measures ``/health``. At the end every block and slot must be back, no thread or task of a request left,
memory flat, and ``/health`` quick throughout. Then a short request is timed to its first text, alone and beside a long
answer: it may wait for a step of that, not for its end. The figures are printed; exit status 1 when one is not as it
should be.
"""

from __future__ import annotations

import argparse
import asyncio
import dataclasses
import json
import multiprocessing
import random
import re
import signal
import statistics
import subprocess
import sys
import time
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

import httpx

HEALTH_LIMIT_SECONDS = 0.05
GROWTH_LIMIT = 1.1  # memory at the end, by memory after the warm-up
WARM_UP_SHARE = 0.2
LEAVING_SHARE = 1 / 3
FIRST_TEXT_TRIES = 9
FIRST_TEXT_LIMIT = (
    3.0  # beside a long answer, by alone: each of its steps computes a row more, and one may be under way
)
LONG_TOKENS = 1500
WORDS = ["the", "sea", "a", "lamp", "of", "stones", "river", "and", "under", "glass", "seven", "wind"]


@dataclasses.dataclass
class Counts:
    """What the clients saw."""

    answers: int = 0
    left: int = 0
    refused: int = 0
    failed: int = 0
    tokens: int = 0
    health: list[float] = dataclasses.field(default_factory=list)
    memory_mib: list[float] = dataclasses.field(default_factory=list)
    first_text_alone: float = 0.0
    first_text_beside: float = 0.0


def main() -> int:
    """Runs the soak and judges it."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", default="smollm2", help="what oga serve takes")
    parser.add_argument("--seconds", type=float, default=300)
    parser.add_argument("--clients", type=int, default=64)
    parser.add_argument("--blocks", type=int, default=640, help="of the cache")
    parser.add_argument("--seed", type=int, default=1)
    given = parser.parse_args()
    # -P: the package that is installed, not the folder of that name that may lie here.
    command = [sys.executable, "-P", "-m", "oga", "serve", given.model, "--port", "0", "--json-logs", "--no-page"]
    # A small cache is soon full, so that memory which grows later is not the cache being used for the first time.
    command += ["--overlay", json.dumps({"engine": {"dynamic_batching": {"num_blocks": given.blocks}}})]
    server = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
    try:
        return asyncio.run(soak(server, given))
    finally:
        server.send_signal(signal.SIGINT)
        server.wait(60)


async def soak(server: subprocess.Popen[str], given: argparse.Namespace) -> int:
    """Runs the clients and compares before and after."""
    assert server.stderr
    said = await asyncio.to_thread(_wait_for_url, server)
    reading = asyncio.create_task(asyncio.to_thread(_drain, server.stderr))
    chance = random.Random(given.seed)
    counts = Counts()
    limits = httpx.Limits(max_connections=None)
    watcher = ProcessPoolExecutor(1, mp_context=multiprocessing.get_context("spawn"))
    async with httpx.AsyncClient(base_url=said, timeout=120, limits=limits) as http:
        await _visit(http, random.Random(0), counts, stays=True)
        before = await _settled(http, server.pid)
        end = time.monotonic() + given.seconds
        watching = asyncio.get_running_loop().run_in_executor(watcher, _watch, said, server.pid, given.seconds)
        seeds = [chance.random() for _ in range(given.clients)]
        await asyncio.gather(*(_client(http, random.Random(seed), counts, end) for seed in seeds))
        counts.health, counts.memory_mib = await watching
        after = await _settled(http, server.pid)
        await _time_first_text(http, counts)
    status = judge(counts, before, after, given.seconds)
    server.send_signal(signal.SIGINT)
    await reading
    return status


async def _client(http: httpx.AsyncClient, chance: random.Random, counts: Counts, end: float) -> None:
    while time.monotonic() < end:
        await _visit(http, chance, counts, stays=chance.random() > LEAVING_SHARE)


async def _visit(http: httpx.AsyncClient, chance: random.Random, counts: Counts, *, stays: bool) -> None:
    said = " ".join(chance.choices(WORDS, k=chance.randint(3, 60)))
    body = {
        "messages": [{"role": "user", "content": said}],
        "max_tokens": chance.randint(4, 48),
        "temperature": 0.8,
        "stream": True,
    }
    patience = chance.random() * 6
    try:
        async with asyncio.timeout(None if stays else patience):
            async with http.stream("POST", "/v1/chat/completions", json=body) as response:
                if response.status_code == 429:
                    counts.refused += 1
                    await asyncio.sleep(float(response.headers["retry-after"]))
                    return
                response.raise_for_status()
                last = ""
                async for line in response.aiter_lines():
                    counts.tokens += '"content":"' in line
                    last = line or last
                assert last == "data: [DONE]", last
        counts.answers += 1
    except TimeoutError:
        counts.left += 1
    except (httpx.HTTPError, AssertionError) as error:
        counts.failed += 1
        print(f"a client failed: {error!r}", flush=True)


async def _time_first_text(http: httpx.AsyncClient, counts: Counts) -> None:
    """Times a short request alone, and beside a long answer that goes on throughout."""
    await _seconds_to_first_text(http)
    counts.first_text_alone = await _median_to_first_text(http)
    long = {"messages": [{"role": "user", "content": "the sea"}], "max_tokens": LONG_TOKENS, "ignore_eos": True}
    async with http.stream("POST", "/v1/chat/completions", json=long | {"stream": True}) as response:
        response.raise_for_status()
        lines = response.aiter_lines()
        while '"content":""' not in await anext(lines):
            pass
        counts.first_text_beside = await _median_to_first_text(http)
        resources = (await http.get("/v1/resources")).json()
        if all(model["open_turns"] == 0 for model in resources["models"].values()):
            raise SystemExit("The long answer ended before the short ones beside it; raise LONG_TOKENS.")


async def _median_to_first_text(http: httpx.AsyncClient) -> float:
    return statistics.median([await _seconds_to_first_text(http) for _ in range(FIRST_TEXT_TRIES)])


async def _seconds_to_first_text(http: httpx.AsyncClient) -> float:
    """Seconds until a short request has its first piece of text, which is streamed."""
    body = {"messages": [{"role": "user", "content": "a lamp"}], "max_tokens": 8, "ignore_eos": True, "stream": True}
    start, seconds = time.monotonic(), 0.0
    async with http.stream("POST", "/v1/chat/completions", json=body) as response:
        response.raise_for_status()
        async for line in response.aiter_lines():
            if not seconds and '"content":"' in line and '"content":""' not in line:
                seconds = time.monotonic() - start
    return seconds


def _watch(url: str, process: int, seconds: float) -> tuple[list[float], list[float]]:
    """Seconds of each call of ``/health``, and the server's memory in MiB.

    Runs in a process of its own: it must not wait for the clients, which keep theirs busy.
    """
    times, memory = [], []
    end = time.monotonic() + seconds
    with httpx.Client(base_url=url, timeout=30) as http:
        while time.monotonic() < end:
            start = time.monotonic()
            http.get("/health").raise_for_status()
            times.append(time.monotonic() - start)
            memory.append(_memory_mib(process))
            time.sleep(0.1)
    return times, memory


async def _settled(http: httpx.AsyncClient, process: int) -> dict[str, int]:
    """What the server holds when nobody asks for anything."""
    for _ in range(200):
        resources = (await http.get("/v1/resources")).json()
        (model,) = resources["models"].values()
        if model["open_turns"] == 0:
            break
        await asyncio.sleep(0.05)
    await asyncio.sleep(0.5)
    resources = (await http.get("/v1/resources")).json()
    (model,) = resources["models"].values()
    threads = len(list(Path(f"/proc/{process}/task").iterdir()))
    held = {"blocks in use": model["total_blocks"] - model["free_blocks"], "requests": model["live_requests"]}
    return held | {"open turns": model["open_turns"], "tasks": resources["tasks"], "threads": threads}


def judge(counts: Counts, before: dict[str, int], after: dict[str, int], seconds: float) -> int:
    """Prints the figures and says whether they are as they should be."""
    warm = counts.memory_mib[int(len(counts.memory_mib) * WARM_UP_SHARE) :]
    part = max(1, len(warm) // 5)
    first, last = statistics.median(warm[:part]), statistics.median(warm[-part:])
    health = sorted(counts.health)
    print(f"{counts.answers} answers, {counts.left} clients left, {counts.refused} refused, {counts.failed} failed")
    print(f"{counts.tokens} pieces of text in {seconds:.0f} s: {counts.tokens / seconds:.1f} per second")
    print(f"/health: {len(health)} times, median {health[len(health) // 2] * 1000:.1f} ms, "
          f"95% {health[int(len(health) * 0.95)] * 1000:.1f} ms, slowest {health[-1] * 1000:.1f} ms")  # fmt: skip
    print(f"memory: {first:.0f} MiB after the warm-up, {last:.0f} MiB at the end, ratio {last / first:.3f}")
    for name, value in before.items():
        print(f"{name}: {value} before, {after[name]} after")
    ratio = counts.first_text_beside / counts.first_text_alone
    print(f"first text of a short request: {counts.first_text_alone * 1000:.1f} ms alone, "
          f"{counts.first_text_beside * 1000:.1f} ms beside a long answer, ratio {ratio:.2f}")  # fmt: skip
    problems = [name for name in before if after[name] > before[name]]
    problems += ["failed clients"] * (counts.failed > 0) + ["memory"] * (last / first > GROWTH_LIMIT)
    problems += ["/health"] * (health[-1] > HEALTH_LIMIT_SECONDS)
    problems += ["a short request beside a long answer"] * (ratio > FIRST_TEXT_LIMIT)
    print(f"Not as it should be: {', '.join(problems)}" if problems else "Everything is back.")
    return 1 if problems else 0


def _memory_mib(process: int) -> float:
    status = Path(f"/proc/{process}/status").read_text(encoding="utf-8")
    found = re.search(r"VmRSS:\s+(\d+) kB", status)
    assert found
    return int(found[1]) / 1024


def _wait_for_url(server: subprocess.Popen[str]) -> str:
    assert server.stderr
    for line in server.stderr:
        if found := re.search(r"serving on (http://\S+)", line):
            return found[1]
    raise SystemExit("oga serve ended before it served.")


def _drain(stream: object) -> None:
    for _ in stream:  # type: ignore[attr-defined]
        pass


if __name__ == "__main__":
    sys.exit(main())
