"""Why a turn failed reaches the client by value, of every endpoint that generates, whole and in a stream."""

from __future__ import annotations

import contextlib
import json
import re
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from failing import CASES, DEAD_END, Case
from running import ENGINE, Running, plain_client

from oga import FailureKind
from oga.server import ModelSource, errors

MEANINGS = {
    FailureKind.BAD_LOGITS: (500, "bad_logits"),
    FailureKind.NO_ALLOWED_TOKEN: (400, "no_allowed_token"),
    FailureKind.GRAMMAR_FAILED: (400, "grammar_failed"),
    FailureKind.NEVER_FITS: (400, "never_fits"),
    FailureKind.EXECUTION: (500, "execution"),
    FailureKind.CONTRACT: (500, "contract"),
}
CHAT, COMPLETIONS, RESPONSES, SESSION = "/v1/chat/completions", "/v1/completions", "/v1/responses", "a session"
# Where the client wrote the grammar.
FORMATS = dict.fromkeys((CHAT, SESSION, COMPLETIONS), "response_format") | {RESPONSES: "text.format"}


class Failing:
    """A server of a model with which a turn fails, and the requests that bring it about."""

    def __init__(self, running: Running, case: Case, client: httpx.Client) -> None:
        self.running = running
        self.case = case
        self._client = client
        tokenizer = running.engines[0].model.tokenizer
        self.text = "Z" if case.model == "poisoned" else "x"
        self._ends = [tokenizer.to_token_id(letter) for letter in "ok"]

    def body(self, endpoint: str, text: str, *, fails: bool = True) -> dict[str, Any]:
        said = [{"role": "user", "content": text}]
        body: dict[str, Any] = {"prompt": text} if endpoint == COMPLETIONS else {"messages": said}
        if endpoint == RESPONSES:
            return {"input": text, "max_output_tokens": 6}
        if endpoint == SESSION:
            body["session_id"] = self._client.post("/v1/sessions", json={}).json()["id"]
        if fails and self.case.dead_end:
            given = {"type": "regex", "regex": DEAD_END["guidance"][1]}
            return body | {"response_format": given, "min_tokens": 3, "stop_token_ids": self._ends}
        return body | {"max_tokens": 6}

    def metrics(self) -> str:
        return self._client.get("/metrics").text

    def ask(self, endpoint: str, body: dict[str, Any]) -> httpx.Response:
        path = CHAT if endpoint == SESSION else endpoint
        return self._client.post(path, json=body)


@pytest.fixture(scope="module")
def never_runs(tiny_folder: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A model that fails to run whatever text it is given."""
    sys.path.append(str(Path(__file__).resolve().parents[1] / "conformance"))
    from failing_model import write_failing_model

    return write_failing_model(tiny_folder, tmp_path_factory.mktemp("never") / "model", last_good_id=0)


@pytest.fixture
def serve(
    tiny_folder: Path,
    poisoned_folder: Path,
    never_runs: Path,
    start: Callable[..., Running],
    monkeypatch: pytest.MonkeyPatch,
) -> Iterator[Callable[[Case], Failing]]:
    folders = {"tiny": tiny_folder, "poisoned": poisoned_folder, "failing": never_runs}

    with contextlib.ExitStack() as clients:

        def begin(case: Case) -> Failing:
            case.prepare(monkeypatch)
            running = start(models=[ModelSource("model", folders[case.model], ENGINE)])
            return Failing(running, case, clients.enter_context(plain_client(running.url)))

        yield begin


def of_endpoint(case: Case, endpoint: str) -> Case:
    """The case, or one that only C tells where an endpoint has no field for what it needs."""
    return Case(case.kind, "poisoned", [300], told=True) if case.dead_end and endpoint == RESPONSES else case


@pytest.mark.parametrize("is_streamed", [False, True], ids=["whole", "stream"])
@pytest.mark.parametrize("endpoint", FORMATS)
@pytest.mark.parametrize("case", CASES, ids=lambda case: case.kind.name)
def test_a_failed_turn_says_why(serve: Callable[[Case], Failing], case: Case, endpoint: str, is_streamed: bool) -> None:
    server = serve(of_endpoint(case, endpoint))
    status, code = MEANINGS[case.kind]
    response = server.ask(endpoint, server.body(endpoint, server.text) | {"stream": is_streamed})
    if is_streamed:
        assert response.status_code == 200, response.text
        events = [line.removeprefix("data: ") for line in response.text.splitlines() if line.startswith("data: ")]
        if endpoint != RESPONSES:
            assert events.pop() == "[DONE]"
        error = json.loads(events[-1])["error"]
    else:
        assert response.status_code == status, response.text
        error = response.json()["error"]
    assert error["code"] == code
    assert error["type"] == ("invalid_request_error" if status == 400 else "server_error")
    assert error["param"] == (FORMATS[endpoint] if case.kind is FailureKind.GRAMMAR_FAILED else None)
    assert "Retry-After" not in response.headers
    after = server.ask(endpoint, server.body(endpoint, "x", fails=False))
    if case.takes_the_engine:
        assert (after.status_code, after.json()["error"]["code"]) == (500, "engine_unhealthy")
    else:
        assert after.status_code == 200, after.text
    assert 'finished_reason="error"} 1' in server.metrics()


def test_every_kind_has_a_meaning() -> None:
    assert {kind: (meaning.status, meaning.code) for kind, meaning in errors.FAILURES.items()} == MEANINGS
    assert set(MEANINGS) == set(FailureKind) - {FailureKind.NONE} == {case.kind for case in CASES}
    assert not any(meaning.is_passing for meaning in errors.FAILURES.values())


def test_the_guide_lists_the_codes_that_there_are() -> None:
    root = Path(__file__).resolve().parents[2]
    rows = re.findall(
        r"^\| (\d+) \| (.+?) \|", (root / "docs/guide/serve.md").read_text(encoding="utf-8"), re.MULTILINE
    )
    listed = {(int(status), code) for status, codes in rows for code in codes.replace("`", "").split(", ")}
    meanings = [*errors.MEANINGS.values(), *errors.FAILURES.values()]
    assert {(meaning.status, meaning.code or "null") for meaning in meanings} - listed == set()
    sources = "\n".join(path.read_text(encoding="utf-8") for path in (root / "oga" / "server").glob("*.py"))
    codes = set(re.findall(r'code="(\w+)"', sources))
    assert codes <= {code for _, code in listed}
    assert [code for _, code in listed if code != "null" and f'"{code}"' not in sources] == []
