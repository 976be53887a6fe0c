"""Bodies that mean harm: refused quickly and in few words, while a running answer goes on undisturbed."""

from __future__ import annotations

import contextlib
import itertools
import json
import resource
import socket
import threading
import time
from collections.abc import Iterator
from typing import Any

import httpx
import pytest
from running import Running, ask, plain_client

LONGEST_GAP_SECONDS = 0.2
LONGEST_ANSWER_SECONDS = 1.0
LARGEST_ERROR_BYTES = 4096
LARGEST_GROWTH_MIB = 400
CHAT = "/v1/chat/completions"


def chat(**fields: Any) -> bytes:
    body = {"model": "random", "messages": [{"role": "user", "content": "x"}], "max_tokens": 1}
    return json.dumps(body | fields).encode()


def deep(levels: int) -> bytes:
    return chat()[:-1] + b', "tools": ' + b"[" * levels + b"]" * levels + b"}"


BODIES: dict[str, tuple[str, bytes]] = {
    "nothing": (CHAT, b""),
    "no JSON": (CHAT, b"{"),
    "a list": (CHAT, b"[]"),
    "null": (CHAT, b"null"),
    "a number": (CHAT, b"1e999"),
    "not UTF-8": (CHAT, b'{"model": "\xff"}'),
    "half a surrogate pair": (CHAT, b'{"model": "random", "messages": [{"role": "user", "content": "\\ud83d"}]}'),
    "NaN": (CHAT, chat()[:-1] + b', "temperature": NaN}'),
    "infinity": (CHAT, chat()[:-1] + b', "temperature": -Infinity}'),
    "huge number": (CHAT, chat()[:-1] + b', "seed": 1' + b"0" * 5000 + b"}"),
    "deep": (CHAT, deep(100_000)),
    "deep and legal": (CHAT, deep(150)),
    "a zero byte in a name": (CHAT, chat(model="ran\0dom")),
    "500,000 stop strings": (CHAT, chat(stop=[f"s{number}" for number in range(500_000)])),
    "a million choices": (CHAT, chat(n=10**6)),
    "a million biases": (CHAT, chat(logit_bias={str(number): 1 for number in range(500_000)})),
    "a million top logprobs": (CHAT, chat(logprobs=True, top_logprobs=10**6)),
    "50,000 messages": (CHAT, chat(messages=[{"role": "user", "content": "x"}] * 50_000)),
    "50,000 bad messages": (CHAT, chat(messages=[{"role": "nobody"}] * 50_000)),
    "a prompt of 7 MB": (CHAT, chat(messages=[{"role": "user", "content": "word " * 1_400_000}])),
    "a prompt of 100 MB": (CHAT, b" " * 100_000_000),
    "100,000 prompts": ("/v1/completions", json.dumps({"model": "random", "prompt": ["x"] * 100_000}).encode()),
    "a million tokens": ("/v1/completions", json.dumps({"model": "random", "prompt": [5] * 1_000_000}).encode()),
    "100,000 unknown fields": (CHAT, chat(**{f"field_{number}": number for number in range(100_000)})),
    "a long field name": (CHAT, chat(**{"x" * 1_000_000: 1})),
    "a long model name": (CHAT, chat(model="x" * 1_000_000)),
    "a regex of a million characters": (CHAT, chat(response_format={"type": "regex", "regex": "a" * 10**6})),
    "a regex of 60,000 characters": (CHAT, chat(response_format={"type": "regex", "regex": "(a|b)" * 12_000})),
    "a grammar of a million characters": (CHAT, chat(response_format={"type": "lark", "lark": "a" * 10**6})),
    "a million of the best": (
        "/v1/completions",
        json.dumps({"model": "random", "prompt": "x", "best_of": 10**6}).encode(),
    ),
    "a million logprobs": (
        "/v1/completions",
        json.dumps({"model": "random", "prompt": "x", "logprobs": 10**6}).encode(),
    ),
    "a million nulls": ("/v1/completions", b'{"prompt": ' + b"[" + b"null, " * 300_000 + b"null]}"),
    "2,000 unknown nulls": (CHAT, chat(**{f"field_{number}": None for number in range(2_000)}, max_tokens=0)),
    "a million tokens that are echoed": (
        "/v1/completions",
        json.dumps({"prompt": [5] * 500_000, "echo": True, "logprobs": 1}).encode(),
    ),
    "1,000 tools": (CHAT, chat(tools=[{"type": "function", "function": {"name": f"f{n}"}} for n in range(1000)])),
    "a fork bomb of a template": (CHAT, chat(chat_template_kwargs={"self": "x", "tools": []})),
    "a path for a model": (CHAT, chat(model="../../etc/passwd")),
}


@pytest.fixture(scope="module")
def long_answer(shared: Running) -> Iterator[list[float]]:
    """When each token of an answer arrived that goes on beside all tests of this file."""
    arrivals: list[float] = []
    stop = threading.Event()

    def read() -> None:
        body = {"model": "random", "messages": [{"role": "user", "content": "x"}], "stream": True, "min_tokens": 900}
        with httpx.Client(base_url=shared.url, timeout=30) as http:
            while not stop.is_set():
                with http.stream("POST", CHAT, json=body) as response:
                    for line in response.iter_lines():
                        if stop.is_set():
                            break
                        if line:
                            arrivals.append(time.monotonic())

    thread = threading.Thread(target=read)
    thread.start()
    yield arrivals
    stop.set()
    thread.join()


@pytest.mark.parametrize("name", BODIES)
def test_a_hostile_body_is_refused_quickly_and_disturbs_nobody(
    shared: Running, long_answer: list[float], name: str
) -> None:
    path, body = BODIES[name]
    while not long_answer:
        time.sleep(0.01)
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    # On a machine that is busy with other work a single try may be slow for no fault of the server.
    tries = [attempt(shared, path, body, long_answer) for _ in range(3)]
    assert min(seconds for seconds, _ in tries) < LONGEST_ANSWER_SECONDS
    assert min(gap for _, gap in tries) < LONGEST_GAP_SECONDS
    assert (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - memory) / 1024 < LARGEST_GROWTH_MIB


def attempt(server: Running, path: str, body: bytes, arrivals: list[float]) -> tuple[float, float]:
    """Sends a body; how long the refusal took, and the longest gap in the answer beside it."""
    response: httpx.Response | None = None
    with plain_client(server.url) as http:
        http.get("/health")
        start = time.monotonic()
        if len(body) > 16 * 2**20:
            # The answer is sent and the connection closed before the body is through.
            head = f"POST {path} HTTP/1.1\r\nHost: x\r\nContent-Length: {len(body)}\r\n\r\n"
            with contextlib.suppress(ConnectionError):
                assert raw(server, head.encode() + body).startswith(b"HTTP/1.1 413")
        else:
            response = http.post(path, content=body, headers={"Content-Type": "application/json"})
        seconds = time.monotonic() - start
        time.sleep(0.02)
        assert http.get("/health").status_code == 200
    if response is not None:
        assert 400 <= response.status_code < 500
        assert set(response.json()["error"]) == {"message", "type", "param", "code"}
        assert len(response.content) < LARGEST_ERROR_BYTES
    recent = [at for at in list(arrivals) if at >= start - 0.1]
    return seconds, max((later - earlier for earlier, later in itertools.pairwise(recent)), default=1.0)


def raw(server: Running, data: bytes, wait: float = 2.0) -> bytes:
    """What a server answers to bytes on a socket."""
    host, port = server.url.removeprefix("http://").split(":")
    with socket.create_connection((host, int(port)), timeout=wait) as connection:
        connection.sendall(data)
        answer = b""
        try:
            while piece := connection.recv(65536):
                answer += piece
        except TimeoutError:
            pass
        return answer


def test_a_content_length_that_lies_is_refused_or_waits_alone(shared: Running) -> None:
    head = b"POST /v1/chat/completions HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: "
    assert raw(shared, head + b"99999999999\r\n\r\n{}").startswith(b"HTTP/1.1 413")
    assert raw(shared, head + b"-1\r\n\r\n{}").startswith(b"HTTP/1.1 400")
    assert raw(shared, head + b"x\r\n\r\n{}").startswith(b"HTTP/1.1 400")
    assert raw(shared, head + b"5\r\n\r\n{}", wait=0.2) == b""
    with httpx.Client(base_url=shared.url) as http:
        assert ask(http, "x", max_tokens=1).status_code == 200


def test_a_body_in_chunks_is_counted(shared: Running) -> None:
    head = b"POST /v1/chat/completions HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n"
    chunk = b"100000\r\n" + b" " * 0x100000 + b"\r\n"
    assert b" 413 " in raw(shared, head + chunk * 3, wait=5).split(b"\r\n")[0]


@pytest.mark.parametrize(
    "path", ["/../oga/__init__.py", "/chat.js/../../app.py", "/static/index.html", "/v1/models/..%2f"]
)
def test_no_path_leads_to_a_file(shared: Running, path: str) -> None:
    response = httpx.get(shared.url + path)
    assert response.status_code == 404
    assert response.json()["error"]["type"] == "not_found_error"


def test_a_wrong_method_says_which_is_right(shared: Running) -> None:
    response = httpx.get(f"{shared.url}/v1/chat/completions")
    assert response.status_code == 405
    assert response.headers["allow"] == "POST"
    assert "error" in response.json()
