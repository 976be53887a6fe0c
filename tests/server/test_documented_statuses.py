"""Every status that the OpenAPI document names for an operation is seen, as it is described there.

Each scenario brings a server into the state in which a status comes, and asks every operation that has it. The last
test compares what was seen with the document: a status that no request can bring does not belong there.
"""

from __future__ import annotations

import contextlib
import shutil
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
import schemathesis
from running import Running
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    response_schema_conformance,
    status_code_conformance,
)

from oga.server import ModelSource

CHECKS = [status_code_conformance, content_type_conformance, response_schema_conformance]
ADMIN = {"Authorization": "Bearer admin"}
MESSAGES = [{"role": "user", "content": "x"}]
LONG = {"max_tokens": 900, "min_tokens": 900}
CHAT, COMPLETIONS, RESPONSES = "POST /v1/chat/completions", "POST /v1/completions", "POST /v1/responses"
GENERATING: dict[str, dict[str, Any]] = {
    CHAT: {"messages": MESSAGES, "max_tokens": 2},
    COMPLETIONS: {"prompt": "x", "max_tokens": 2},
    RESPONSES: {"input": "x", "max_output_tokens": 2},
}
WITH_BODY: dict[str, dict[str, Any]] = {
    **GENERATING,
    "POST /v1/sessions": {},
    "POST /v1/sessions/{session_id}/rewind": {"turn": 1},
    "POST /tokenize": {"prompt": "x"},
    "POST /detokenize": {"tokens": [5]},
}
seen: set[tuple[str, int]] = set()


class Asked:
    """A server and its document; every answer is compared with it and noted."""

    def __init__(self, running: Running) -> None:
        self.url = running.url
        self.running = running
        self._api = schemathesis.openapi.from_url(f"{running.url}/openapi.json")
        self.names = {"session_id": "none", "response_id": "none", "model": "none"}

    def ask(self, operation: str, status: int, body: Any = None, **headers: str) -> Any:
        """The answer's JSON, None for other content."""
        method, path = operation.split()
        named = {name: value for name, value in self.names.items() if "{" + name + "}" in path}
        with_body = {} if body is None else {"body": body, "media_type": "application/json"}
        case = self._api[path][method].Case(path_parameters=named, headers=headers, **with_body)
        response = case.call(base_url=self.url, timeout=30)
        assert response.status_code == status, f"{operation}: {response.text}"
        case.validate_response(response, checks=CHECKS)
        seen.add((operation, status))
        return response.json() if "application/json" in response.headers["content-type"] else None

    @property
    def operations(self) -> dict[str, set[int]]:
        """The statuses that the document has for each operation."""
        document = httpx.get(f"{self.url}/openapi.json").json()
        return {
            f"{method.upper()} {path}": set(map(int, described["responses"]))
            for path, methods in document["paths"].items()
            for method, described in methods.items()
        }

    def ask_all(self, status: int, **headers: str) -> None:
        """Asks every operation for which the document has this status, with the body that would be right."""
        for operation, statuses in self.operations.items():
            if status in statuses:
                self.ask(operation, status, WITH_BODY.get(operation), **headers)

    @contextlib.contextmanager
    def streaming(self, operation: str, body: dict[str, Any]) -> Iterator[None]:
        """An answer that goes on until the block is left."""
        path = operation.split()[1]
        with httpx.stream("POST", self.url + path, json=body | {"stream": True}, timeout=30) as response:
            assert response.status_code == 200
            lines = response.iter_lines()  # dropped, it would close the stream
            next(lines)
            yield
        self.running.wait_idle()


@pytest.fixture
def ask_server(start: Callable[..., Running]) -> Callable[..., Asked]:
    return lambda **settings: Asked(start(**settings))


def test_what_is_right_is_answered(ask_server: Callable[..., Asked]) -> None:
    server = ask_server(admin_key="admin")
    server.names["model"] = "random"
    server.names["session_id"] = server.ask("POST /v1/sessions", 201, {})["id"]
    session = {"session_id": server.names["session_id"]}
    server.ask(CHAT, 200, GENERATING[CHAT] | session)
    server.ask(COMPLETIONS, 200, GENERATING[COMPLETIONS])
    server.names["response_id"] = server.ask(RESPONSES, 200, GENERATING[RESPONSES] | {"store": True})["id"]
    server.ask("POST /v1/sessions/{session_id}/fork", 201)
    server.ask("POST /v1/sessions/{session_id}/rewind", 200, {"turn": 1})
    server.ask("POST /tokenize", 200, {"prompt": "x"})
    server.ask("POST /detokenize", 200, {"tokens": [5]})
    for operation in ("GET /v1/sessions", "GET /v1/models", "GET /health", "GET /ready", "GET /metrics"):
        server.ask(operation, 200)
    for operation in ("GET /v1/resources", "GET /v1/models/{model}"):
        server.ask(operation, 200)
    for noun in ("sessions/{session_id}", "responses/{response_id}"):
        server.ask(f"GET /v1/{noun}", 200)
        server.ask(f"DELETE /v1/{noun}", 200)
    for change in ("unload", "load"):
        server.ask("POST /admin/models/{model}/" + change, 200, **ADMIN)


def test_what_is_wrong_is_refused(ask_server: Callable[..., Asked]) -> None:
    server = ask_server(max_body_bytes=4096)
    for operation in WITH_BODY:
        server.ask(operation, 400, {"no_such_field": 1})
        server.ask(operation, 413, {"user": "x" * 8192})
    server.ask("POST /v1/embeddings", 400, {"input": "x"})


def test_callers_without_a_key_are_turned_away(ask_server: Callable[..., Asked]) -> None:
    ask_server(api_keys=("right",)).ask_all(401)
    ask_server(admin_key="admin").ask_all(403)


def test_what_is_not_there_is_not_found(ask_server: Callable[..., Asked]) -> None:
    server = ask_server(admin_key="admin")
    nobody = {"model": "none"}
    for operation in (*GENERATING, "POST /v1/sessions", "POST /tokenize", "POST /detokenize"):
        server.ask(operation, 404, WITH_BODY[operation] | nobody)
    for operation, statuses in server.operations.items():
        if 404 in statuses and "{" in operation:
            server.ask(operation, 404, WITH_BODY.get(operation), **ADMIN)


@pytest.mark.usefixtures("slow_steps")
def test_one_turn_at_a_time(ask_server: Callable[..., Asked]) -> None:
    server = ask_server()
    session = server.ask("POST /v1/sessions", 201, {})["id"]
    server.names["session_id"] = session
    body = GENERATING[CHAT] | {"session_id": session}
    with server.streaming(CHAT, body | LONG):
        server.ask(CHAT, 409, body)
        server.ask("POST /v1/sessions/{session_id}/rewind", 409, {"turn": 1})
        server.ask("POST /v1/sessions/{session_id}/fork", 409)
    first = server.ask(RESPONSES, 200, GENERATING[RESPONSES] | {"store": True})["id"]
    continued = GENERATING[RESPONSES] | {"previous_response_id": first}
    with server.streaming(RESPONSES, continued | {"max_output_tokens": 900}):
        server.ask(RESPONSES, 409, continued)


@pytest.mark.usefixtures("slow_steps")
def test_too_much_is_put_off(ask_server: Callable[..., Asked]) -> None:
    server = ask_server(max_waiting=0, max_sessions=2)
    with server.streaming(CHAT, GENERATING[CHAT] | LONG | {"n": 8}):
        assert [engine.open_turns for engine in server.running.engines] == [8]
        for operation, body in GENERATING.items():
            server.ask(operation, 429, body)
    for _ in range(2):
        server.names["session_id"] = server.ask("POST /v1/sessions", 201, {})["id"]
    server.ask("POST /v1/sessions", 429, {})
    server.ask("POST /v1/sessions/{session_id}/fork", 429)


def test_a_failure_says_so(random_folder: Path, tmp_path: Path, ask_server: Callable[..., Asked]) -> None:
    sys.path.append(str(Path(__file__).resolve().parents[1] / "conformance"))
    from failing_model import write_failing_model

    folder = write_failing_model(random_folder, tmp_path / "failing")
    server = ask_server(models=[ModelSource("failing", folder)], admin_key="admin")
    server.names["model"] = "failing"
    server.ask(COMPLETIONS, 500, {"prompt": [450]})
    for operation, body in GENERATING.items():
        server.ask(operation, 500, body)
    server.ask("GET /health", 503)
    shutil.rmtree(folder)
    message = server.ask("POST /admin/models/{model}/load", 500, **ADMIN)["error"]["message"]
    assert "'failing'" in message
    assert str(folder) in message


def test_a_server_that_is_not_ready_says_so(ask_server: Callable[..., Asked]) -> None:
    server = ask_server(admin_key="admin")
    server.names["model"] = "random"
    server.ask("POST /admin/models/{model}/unload", 200, **ADMIN)
    for operation, body in WITH_BODY.items():
        if "{" not in operation:
            server.ask(operation, 503, body)
    server.ask("GET /ready", 503)
    server.running.app.state.registry.is_draining = True
    for operation in GENERATING:
        server.ask(operation, 503, WITH_BODY[operation])
    server.ask("POST /admin/models/{model}/load", 503, **ADMIN)


def test_every_documented_status_was_seen(ask_server: Callable[..., Asked]) -> None:
    documented = {(name, status) for name, statuses in ask_server().operations.items() for status in statuses}
    assert documented - seen == set(), "not seen by the tests above, which must have run"
