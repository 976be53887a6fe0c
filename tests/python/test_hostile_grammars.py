"""Grammars made to hurt: refused in time with a reason, or followed within bounds, while others talk on undisturbed."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import re
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from asyncs import asynchronous

import oga
from oga._native.loader import library_path

MOST_SECONDS = 2.0  # of all processors together, to refuse or accept a grammar
MOST_MEGABYTES = 256
MOST_GAP_SECONDS = 0.2  # between the tokens of others, beyond what a harmless grammar causes
TALK: dict[str, Any] = {"max_new_tokens": 200, "ignore_eos": True, "temperature": 2.0, "top_k": 0}


def nested(depth: int) -> str:
    return '{"items":' * depth + "{}" + "}" * depth


def optional(count: int) -> dict[str, Any]:
    properties = {f"p{number}": {"type": "integer"} for number in range(count)}
    return {"type": "object", "properties": properties, "additionalProperties": False}


def cycle() -> dict[str, Any]:
    return {"$ref": "#/$defs/a", "$defs": {"a": {"$ref": "#/$defs/b"}, "b": {"$ref": "#/$defs/a"}}}


FILE_REFERENCE = {"$ref": "file:///etc/passwd"}
# name: type, data, and what the refusal says
REFUSED: dict[str, tuple[str, Any, str]] = {
    "an open group": ("regex", "(", "character 1"),
    "a range backwards": ("regex", "[z-a]", "character 2"),
    "60,000 open groups": ("regex", "(" * 60_000, "at most 8192"),
    "4,000 open groups": ("regex", "(" * 4_000, "character 4000"),
    "4,000 nested groups": ("regex", "(" * 4_000 + "a" + ")" * 4_000, "character"),
    "a look-ahead": ("regex", "(?=a)ab", "character 1: look-around"),
    "a look-behind": ("regex", "b(?<!a)b", "character 2: look-around"),
    "a backreference": ("regex", r"(a)\1", "character 4: backreferences"),
    "an unknown property": ("regex", r"\p{Nope}", "character 1: Unicode property"),
    "a schema 10,000 deep": ("json_schema", nested(10_000), "64 levels"),
    "references in a circle": ("json_schema", cycle(), "admits no text"),
    "a reference to itself": ("json_schema", {"$ref": "#"}, "admits no text"),
    "a remote reference": ("json_schema", {"$ref": "http://127.0.0.1:9/x.json"}, "'$ref' at #"),
    "a reference to a file": ("json_schema", FILE_REFERENCE, "'$ref' at #"),
    "100,000 values": ("json_schema", {"enum": list(range(100_000))}, "at most 262144"),
    "30,000 values": ("json_schema", {"enum": list(range(10_000, 40_000))}, "'enum' at #"),
    "an undefined rule": ("lark", "start: nothing", 'unknown name: "nothing"'),
    "only left recursion": ("lark", 'start: start "a"', "admits no text"),
    "rules in a circle": ("lark", "start: a\na: b\nb: a", "admits no text"),
    "a million repetitions": ("regex", "a{1000000}", "make its repetitions smaller"),
    "a billion repetitions": ("regex", "((a{1000}){1000}){1000}", "make its repetitions smaller"),
    "a million repetitions in Lark": ("lark", 'start: X\nX: "a"{1000000}', "make its repetitions smaller"),
    "a million rules in a row": ("lark", 'start: x{1000000}\nx: "a"', "make its repetitions smaller"),
    "5,000 rules": (
        "lark",
        "start: r0\n" + "".join(f"r{i}: r{i + 1}\n" for i in range(5000)) + 'r5000: "a"',
        "5002 lines",
    ),
}
# name: type, data, and what the output looks like from its start on
FOLLOWED: dict[str, tuple[str, Any, str]] = {
    "ambiguous stars": ("regex", "(a|a)*b", "a*b?"),
    "a property": ("regex", r"\p{L}{1,5}", r"\w*"),
    "a large property": ("regex", r"[\p{L}\p{N}\p{P}\p{S}]{1,9}", r"\S*"),
    "200,000,000 characters": ("json_schema", {"type": "string", "maxLength": 200_000_000}, '".*'),
    "200,000,000 characters at least": ("json_schema", {"type": "string", "minLength": 200_000_000}, '"[^"]*.*'),
    "200,000,000 items": (
        "json_schema",
        {"items": {"type": "integer"}, "type": "array", "maxItems": 2 * 10**8},
        r"\[.*",
    ),
    "20,000 values": ("json_schema", {"enum": [f"{i:x}" for i in range(20_000)]}, '"[0-9a-f]*"?'),
    "200 optional properties": ("json_schema", optional(200), r"\{.*"),
    "a million letters": ("regex", "[a-z]{1000000}", "[a-z]*"),
    "left recursion": ("lark", 'start: start "a" | "b"', "ba*"),
    "a schema of itself": ("json_schema", {"type": "object", "properties": {"next": {"$ref": "#"}}}, r"\{.*"),
}
NEIGHBOURS: tuple[dict[str, Any], ...] = (
    {"max_new_tokens": 40, "ignore_eos": True, "temperature": 2.0, "top_k": 0, "seed": 1},
    {"max_new_tokens": 40, "guidance": ("regex", "[a-z ]{40,60}"), "temperature": 2.0, "top_k": 0, "seed": 2},
)


@pytest.fixture(scope="module")
def alone(model: oga.Model) -> list[list[int]]:
    """What the neighbours say when nobody is beside them."""
    with oga.Engine(model) as engine:
        return [list(engine.stream([5, 6, 7], **neighbour)) for neighbour in NEIGHBOURS]


def start_neighbours(engine: oga.Engine) -> list[oga.Stream[int]]:
    streams = [engine.stream([5, 6, 7], **neighbour) for neighbour in NEIGHBOURS]
    for _ in range(5):
        streams[0].advance()
    return streams


@pytest.mark.parametrize("name", REFUSED)
def test_it_is_refused_in_time_with_a_reason_and_nobody_notices(
    engine: oga.Engine, alone: list[list[int]], name: str
) -> None:
    kind, data, sentence = REFUSED[name]
    neighbours = start_neighbours(engine)
    start = time.process_time()
    with pytest.raises(oga.InvalidArgumentError, match=re.escape(sentence)) as raised:
        engine.stream([5], guidance=(kind, data))
    assert time.process_time() - start < MOST_SECONDS
    assert len(str(raised.value)) < 600
    assert [list(stream) for stream in neighbours] == alone


@pytest.mark.parametrize("name", FOLLOWED)
def test_it_is_followed_within_bounds_and_nobody_notices(engine: oga.Engine, alone: list[list[int]], name: str) -> None:
    kind, data, pattern = FOLLOWED[name]
    neighbours = start_neighbours(engine)
    start = time.process_time()
    hostile = engine.stream("x", guidance=(kind, data), temperature=1.0, seed=3, max_new_tokens=20)
    text = "".join(hostile)
    assert time.process_time() - start < MOST_SECONDS
    assert text
    assert re.fullmatch(pattern, text.rstrip("\ufffd"), re.DOTALL), text
    assert [list(stream) for stream in neighbours] == alone


@asynchronous
async def test_no_stream_waits_for_a_hostile_grammar(model: oga.Model) -> None:
    """Compiled beside the engine's thread, and followed within a limit on each step."""
    async with oga.AsyncEngine(model) as engine:
        gaps: list[float] = []

        async def talk() -> None:
            last = time.monotonic()
            while True:
                async for _ in engine.stream([5, 6, 7], **TALK):
                    now = time.monotonic()
                    gaps.append(now - last)
                    last = now

        async def hear(more: int) -> None:
            wanted = len(gaps) + more
            while len(gaps) < wanted:
                await asyncio.sleep(0.001)

        async def worst_gap_beside(wishes: list[tuple[str, Any]]) -> float:
            talkers = [asyncio.create_task(talk()) for _ in range(2)]
            await hear(10)
            gaps.clear()
            for wish in wishes:
                with contextlib.suppress(oga.InvalidArgumentError, oga.ModelError):
                    await engine.generate("x", guidance=wish, temperature=1.0, seed=3, max_new_tokens=10)
            await hear(10)
            for talker in talkers:
                talker.cancel()
            await asyncio.gather(*talkers, return_exceptions=True)
            return max(gaps)

        beside_harmless = await worst_gap_beside([("regex", "[a-z]{9}")] * 20)
        for name, (kind, data, _) in (REFUSED | FOLLOWED).items():
            assert await worst_gap_beside([(kind, data)]) < MOST_GAP_SECONDS + beside_harmless, name


MEASURED = """
import json, resource, sys
import oga

with oga.Model(sys.argv[1]) as model, oga.Engine(model) as engine:
    "".join(engine.stream("x", guidance=("regex", "ok")))
    for kind, data in json.load(sys.stdin):
        before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        try:
            "".join(engine.stream("x", guidance=(kind, data), max_new_tokens=10))
        except oga.OgaError:
            pass
        print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before)
"""


def test_none_takes_much_memory(tiny_folder: Path) -> None:
    cases = REFUSED | FOLLOWED
    wishes = [case[:2] for case in cases.values()]
    environment = os.environ | {"OGA_LIBRARY": str(library_path()), "PYTHONPATH": ":".join(sys.path)}
    done = subprocess.run(
        [sys.executable, "-c", MEASURED, str(tiny_folder)],
        input=json.dumps(wishes),
        env=environment,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    grown = dict(zip(cases, map(int, done.stdout.split()), strict=True))
    assert {name: kilobytes for name, kilobytes in grown.items() if kilobytes > MOST_MEGABYTES * 1024} == {}
