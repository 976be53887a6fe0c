"""Clients that leave, that are slow, and that are too many."""

from __future__ import annotations

import concurrent.futures
import json
import random
import socket
import statistics
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import httpx
import pytest
from running import LIMITS, Running, ask

import oga
from oga.generation import Delta
from oga.server import ModelSource
from oga.turns import OpenTurn, Turns

WITHIN_SECONDS = 2.0
ENDLESS: dict[str, Any] = {
    "model": "random",
    "messages": [{"role": "user", "content": "x"}],
    "min_tokens": 900,
    "max_tokens": 100_000,
}

pytestmark = pytest.mark.usefixtures("slow_steps")


def request_bytes(path: str = "/v1/chat/completions", **fields: Any) -> bytes:
    body = json.dumps(ENDLESS | fields).encode()
    return f"POST {path} HTTP/1.1\r\nHost: x\r\nContent-Length: {len(body)}\r\n\r\n".encode() + body


def connect(server: Running) -> socket.socket:
    host, port = server.url.removeprefix("http://").split(":")
    return socket.create_connection((host, int(port)), timeout=10)


def generated(server: Running) -> int:
    return sum(server.on_loop(engine.get_statistics()).generated_tokens for engine in server.engines)


def assert_stops(server: Running) -> None:
    """Nothing works for anybody any more, soon and for good."""
    end = time.monotonic() + WITHIN_SECONDS
    while any(engine.open_turns for engine in server.engines):
        assert time.monotonic() < end, "the turn of a client that left goes on"
        time.sleep(0.005)
    before = generated(server)
    time.sleep(0.03)
    assert generated(server) == before


@pytest.mark.parametrize("is_streamed", [False, True])
@pytest.mark.parametrize("when", ["at once", "in decode", "half-closed", "reset"])
def test_the_work_of_a_client_that_left_stops(server: Running, is_streamed: bool, when: str) -> None:
    connection = connect(server)
    connection.sendall(request_bytes(stream=is_streamed))
    if when != "at once":
        end = time.monotonic() + WITHIN_SECONDS
        before = generated(server)
        while generated(server) < before + 3:
            assert time.monotonic() < end
    if when == "half-closed":
        connection.shutdown(socket.SHUT_WR)
    if when == "reset":
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
    if when != "half-closed":
        connection.close()
    time.sleep(0.02)
    assert_stops(server)
    connection.close()


PREFILLS: dict[str, dict[str, Any]] = {
    "/v1/chat/completions": {"messages": [{"role": "user", "content": "x " * 400}]},
    "/v1/completions": {"prompt": "x " * 400},
    "/v1/responses": {"input": "x " * 400},
}


@pytest.mark.parametrize("path", PREFILLS)
@pytest.mark.parametrize("is_streamed", [False, True])
def test_nothing_leaves_of_a_client_that_left_in_prefill(
    start: Callable[..., Running], random_folder: Path, path: str, is_streamed: bool
) -> None:
    config = {"engine": {"dynamic_batching": LIMITS | {"max_scheduled_tokens": 8}}}
    running = start(models=[ModelSource("random", random_folder, config)])
    engine = running.engines[0]
    body = json.dumps(PREFILLS[path] | {"stream": is_streamed}).encode()
    for _ in range(3):
        running.on_loop(engine.drop_prefix_cache())
        before = running.on_loop(engine.get_statistics())
        with connect(running) as connection:
            head = f"POST {path} HTTP/1.1\r\nHost: x\r\nContent-Length: {len(body)}\r\n\r\n"
            connection.sendall(head.encode() + body)
            end = time.monotonic() + WITHIN_SECONDS
            while running.on_loop(engine.get_statistics()).scheduled_tokens < before.scheduled_tokens + 40:
                assert time.monotonic() < end
        assert_stops(running)
        after = running.on_loop(engine.get_statistics())
        assert after.generated_tokens == before.generated_tokens
        assert after.scheduled_tokens < before.scheduled_tokens + 400, "the whole prompt was computed for nobody"
        running.assert_idle()
    assert httpx.post(running.url + path, json=PREFILLS[path]).status_code == 200


@pytest.mark.parametrize("path", ["/v1/completions", "/v1/responses"])
def test_it_stops_on_every_endpoint(server: Running, path: str) -> None:
    body = {"/v1/completions": {"prompt": "x"}, "/v1/responses": {"input": "x"}}[path]
    for is_streamed in (False, True):
        body = body | {"model": "random", "stream": is_streamed}
        if path == "/v1/completions":
            body |= {"min_tokens": 900, "max_tokens": 1000}
        data = json.dumps(body).encode()
        connection = connect(server)
        connection.sendall(f"POST {path} HTTP/1.1\r\nHost: x\r\nContent-Length: {len(data)}\r\n\r\n".encode() + data)
        time.sleep(0.05)
        connection.close()
        assert_stops(server)


def test_a_queued_turn_whose_client_left_is_never_started(server: Running) -> None:
    connections = [connect(server) for _ in range(20)]
    for connection in connections:
        connection.sendall(request_bytes(stream=True))
    engine = server.engines[0]
    end = time.monotonic() + WITHIN_SECONDS
    while engine.open_turns < 20:
        assert time.monotonic() < end
        time.sleep(0.002)
    for connection in reversed(connections):
        connection.close()
    assert_stops(server)


def test_several_choices_stop_together(server: Running) -> None:
    for visit in range(200):
        with connect(server) as connection:
            connection.sendall(request_bytes(stream=True, n=4, seed=1, temperature=1))
            assert connection.recv(2000).startswith(b"HTTP/1.1 200")
        if visit % 50 == 0:
            assert_stops(server)
    assert_stops(server)


def test_many_clients_that_leave_at_random_moments_leave_nothing(server: Running, http: httpx.Client) -> None:
    chance = random.Random(5)

    def visit(delay: float) -> None:
        with connect(server) as connection:
            connection.sendall(request_bytes(stream=bool(chance.random() < 0.5)))
            time.sleep(delay)

    with concurrent.futures.ThreadPoolExecutor(16) as pool:
        list(pool.map(visit, [chance.random() * 0.05 for _ in range(100)]))
    assert_stops(server)
    start = time.monotonic()
    assert ask(http, "x", max_tokens=1).status_code == 200
    assert time.monotonic() - start < 1


def test_a_slow_reader_is_served_and_slows_nobody(server: Running, http: httpx.Client) -> None:
    with connect(server) as slow:
        slow.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1024)
        slow.sendall(request_bytes(stream=True, logprobs=True, top_logprobs=20, max_tokens=900))
        for _ in range(3):
            start = time.monotonic()
            answer = ask(http, "y", max_tokens=20, min_tokens=20).json()
            assert answer["usage"]["completion_tokens"] == 20
            assert time.monotonic() - start < 1
        slow.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 2**20)
        data = b""
        while not data.endswith(b"0\r\n\r\n"):
            data += slow.recv(65536)
    events = [line[6:] for line in data.split(b"\r\n") for line in line.split(b"\n") if line.startswith(b"data: ")]
    assert events[-1] == b"[DONE]"
    choices = [json.loads(event)["choices"][0] for event in events[:-1]]
    assert sum(len(choice["logprobs"]["content"]) for choice in choices if choice["logprobs"]) == 900


def test_a_full_queue_is_429_with_a_time_to_wait(start: Callable[..., Running]) -> None:
    running = start(max_waiting=2)
    connections = [connect(running) for _ in range(10)]
    for connection in connections:
        connection.sendall(request_bytes(stream=True))
    engine = running.engines[0]
    end = time.monotonic() + WITHIN_SECONDS
    while engine.open_turns < 10:
        assert time.monotonic() < end
        time.sleep(0.002)
    with httpx.Client(base_url=running.url) as http:
        for path, body in (
            ("/v1/chat/completions", ENDLESS),
            ("/v1/chat/completions", ENDLESS | {"stream": True}),
            ("/v1/completions", {"prompt": "x"}),
            ("/v1/responses", {"input": "x", "stream": True}),
        ):
            refused = http.post(path, json=body)
            assert refused.status_code == 429
            assert int(refused.headers["retry-after"]) >= 1
            assert refused.json()["error"]["code"] == "queue_full"
        metrics = http.get("/metrics").text
        assert 'oga:num_requests_running{model_name="random"} 8' in metrics
        assert 'oga:num_requests_waiting{model_name="random"} 2' in metrics
        for connection in connections:
            connection.close()
        assert_stops(running)
        assert ask(http, "x", max_tokens=1).status_code == 200
    running.assert_idle()


def first_piece(http: httpx.Client) -> float:
    """Seconds to the first text of a streamed short answer."""
    body = {"model": "random", "messages": [{"role": "user", "content": "y"}], "max_tokens": 4, "stream": True}
    start, seconds = time.monotonic(), 0.0
    with http.stream("POST", "/v1/chat/completions", json=body | {"ignore_eos": True}) as response:
        assert response.status_code == 200
        for line in response.iter_lines():
            if not seconds and '"content":"' in line and '"content":""' not in line:
                seconds = time.monotonic() - start
    assert seconds
    return seconds


def test_a_short_answer_does_not_wait_for_a_long_one(server: Running, http: httpx.Client) -> None:
    alone = statistics.median(first_piece(http) for _ in range(5))
    with connect(server) as long:
        long.sendall(request_bytes(stream=True))
        long.recv(2000)
        beside = statistics.median(first_piece(http) for _ in range(5))
        assert server.engines[0].open_turns == 1
    print(f"time to the first text: {alone * 1000:.1f} ms alone, {beside * 1000:.1f} ms beside a long answer, "
          f"ratio {beside / alone:.2f}")  # fmt: skip
    assert beside < 5 * alone, "the long answer takes hundreds of steps; the short one waited for many of them"
    assert_stops(server)


class Counting:
    """Stands before the reader of a turn and notes after how many steps its first token came."""

    def __init__(self, turn: OpenTurn, taken: list[int], found: list[int]) -> None:
        self._receiver, turn.receiver = turn.receiver, self
        self._taken = taken
        self._begun = taken[0]
        self._found: list[int] | None = found

    def receive(self, delta: Delta) -> None:
        if self._found is not None:
            self._found.append(self._taken[0] - self._begun)
            self._found = None
        self._receiver.receive(delta)

    def fail(self, error: oga.OgaError) -> None:
        self._receiver.fail(error)


def test_a_short_answer_starts_with_the_next_step_beside_a_long_one(
    server: Running, http: httpx.Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    taken, found = [0], []
    step, begin = Turns.step, Turns.begin

    def counted_step(turns: Turns) -> None:
        taken[0] += 1
        step(turns)

    def counted_begin(turns: Turns, *given: Any, **options: Any) -> OpenTurn:
        turn = begin(turns, *given, **options)
        Counting(turn, taken, found)
        return turn

    monkeypatch.setattr(Turns, "step", counted_step)
    with connect(server) as long:
        long.sendall(request_bytes(stream=True))
        long.recv(2000)
        monkeypatch.setattr(Turns, "begin", counted_begin)
        for _ in range(10):
            assert ask(http, "y", max_tokens=2).status_code == 200
        assert server.engines[0].open_turns == 1
    print(f"steps to the first token beside a long answer: {found}")
    assert found == [1] * 10
    assert_stops(server)
