"""A program that uses only the names of the public Oga Python binding runs with ``import oga as og``."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
from driving import generate

import oga
from oga._native.loader import library_path

PROGRAM = """
import json
import sys

import numpy as np
import oga as og

model = og.Model(sys.argv[1])
engine = og.Engine(model)
request_options = og.RequestOptions()
request_options.set_max_session_tokens(200)
request = engine.create_request(options=request_options)
turn_options = og.TurnOptions(request)
turn_options.set_max_generated_tokens(6)
event_buffer = engine.create_event_buffer(8)
said = []

for fragment in (np.array([5, 6, 7], dtype=np.int32), [8, 9]):
    turn_id = request.begin_turn(fragment, turn_options)
    tokens, reason, usage = [], None, None
    while engine.has_pending_requests():
        for event in engine.run(event_buffer):
            if event.request is None:
                if event.flags & (og.EngineEventFlags.CAPACITY_BLOCKED | og.EngineEventFlags.RETRYABLE):
                    continue
                raise RuntimeError(f"flags={event.flags}, error_code={event.error_code}")
            assert event.request is request
            assert event.turn_id == turn_id
            if event.flags & og.EngineEventFlags.FAILED:
                raise RuntimeError(f"failed: {event.error_code}")
            if event.flags & og.EngineEventFlags.TOKEN:
                tokens.append(event.token)
            if event.flags & og.EngineEventFlags.TURN_FINISHED:
                reason = event.finish_reason
                usage = (event.usage.prompt_tokens, event.usage.generated_tokens, event.usage.cached_prompt_tokens)
    said.append([turn_id, tokens, str(reason), usage])

request.close()
capabilities = engine.get_capabilities()
said.append([capabilities.configured_max_batch_size > 0, capabilities.max_request_length])
print(json.dumps(said))
"""


@pytest.fixture(scope="module")
def said(tiny_folder: Path, tmp_path_factory: pytest.TempPathFactory) -> list[list[object]]:
    """What the program prints."""
    path = tmp_path_factory.mktemp("peer") / "program.py"
    path.write_text(PROGRAM, encoding="utf-8")
    done = subprocess.run(
        [sys.executable, path, tiny_folder],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
        env={"OGA_LIBRARY": str(library_path()), "PYTHONPATH": ":".join(sys.path)},
    )
    assert (done.returncode, done.stderr) == (0, "")
    return list(json.loads(done.stdout))


def test_two_turns_of_a_conversation_stream(engine: oga.Engine, said: list[list[object]]) -> None:
    first = generate(engine, [5, 6, 7], 6)
    second = generate(engine, [5, 6, 7, *first, 8, 9], 6)
    assert said[0] == [1, first, "FinishReason.MAX_GENERATED_TOKENS", [3, 6, 0]]
    assert said[1] == [2, second, "FinishReason.MAX_GENERATED_TOKENS", [2, 6, 0]]


def test_capabilities_are_read_by_their_names(said: list[list[object]]) -> None:
    assert said[2] == [True, 256]
