"""Sessions: kept conversations with rewind and fork, which belong to their key."""

from __future__ import annotations

import concurrent.futures
import json
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import httpx
import pytest
from running import LIMITS, Running, ask

from oga.server import ModelSource


def said(http: httpx.Client, session: str, content: str, **fields: Any) -> str:
    response = ask(http, content, session_id=session, max_tokens=8, **fields)
    assert response.status_code == 200, response.text
    assert response.json()["session_id"] == session
    text: str = response.json()["choices"][0]["message"]["content"]
    return text


def test_a_session_remembers_what_was_said(http: httpx.Client) -> None:
    made = http.post("/v1/sessions", json={"model": "random", "messages": [{"role": "system", "content": "be brief"}]})
    assert made.status_code == 201
    session = made.json()["id"]
    first = said(http, session, "the end")
    second = said(http, session, "again")
    messages = [
        {"role": "system", "content": "be brief"},
        {"role": "user", "content": "the end"},
        {"role": "assistant", "content": first},
        {"role": "user", "content": "again"},
    ]
    whole = ask(http, "", messages=messages, max_tokens=8).json()
    assert whole["choices"][0]["message"]["content"] == second
    turns = http.get(f"/v1/sessions/{session}").json()["turns"]
    assert [turn["answer"]["content"] for turn in turns] == [first, second]
    assert [each["id"] for each in http.get("/v1/sessions").json()["data"]] == [session]


@pytest.mark.parametrize("is_streamed", [False, True])
def test_an_answer_that_fills_the_context_says_length(http: httpx.Client, is_streamed: bool) -> None:
    def reasons(**fields: Any) -> list[str]:
        response = ask(http, "x", ignore_eos=True, stream=is_streamed, **fields)
        assert response.status_code == 200, response.text
        if not is_streamed:
            return [response.json()["choices"][0]["finish_reason"]]
        chunks = [json.loads(line[6:]) for line in response.text.splitlines() if line.startswith("data: {")]
        return [reason for chunk in chunks if (reason := chunk["choices"][0]["finish_reason"])]

    assert reasons() == ["length"]
    session = http.post("/v1/sessions", json={"model": "random"}).json()["id"]
    assert reasons(session_id=session, max_tokens=8) == ["length"]
    assert http.get(f"/v1/sessions/{session}").json()["tokens"] < 1024
    assert reasons(session_id=session) == ["length"]
    assert http.get(f"/v1/sessions/{session}").json()["tokens"] == 1024
    full = ask(http, "x", session_id=session, stream=is_streamed)
    assert (full.status_code, full.json()["error"]["code"]) == (400, "context_length_exceeded")
    assert full.json()["error"]["param"] == "messages"


def test_rewinding_and_forking(http: httpx.Client) -> None:
    session = http.post("/v1/sessions", json={"model": "random"}).json()["id"]
    answers = [said(http, session, content) for content in ("one", "two", "three")]
    forked = http.post(f"/v1/sessions/{session}/fork")
    assert forked.status_code == 201
    other = forked.json()["id"]
    assert http.post(f"/v1/sessions/{session}/rewind", json={"turn": 2}).json()["turns"][-1]["turn"] == 1
    assert said(http, session, "two") == answers[1]
    assert len(http.get(f"/v1/sessions/{other}").json()["turns"]) == 3
    assert http.post(f"/v1/sessions/{session}/rewind", json={"turn": 9}).status_code == 404
    assert http.post(f"/v1/sessions/{session}/rewind", json={"turn": 0}).status_code == 400
    assert http.delete(f"/v1/sessions/{session}").json()["deleted"] is True
    assert http.get(f"/v1/sessions/{session}").status_code == 404
    assert ask(http, "x", session_id=session).status_code == 404
    assert said(http, other, "four")


@pytest.mark.parametrize("is_streamed", [False, True])
def test_a_turn_of_a_session_has_the_model_and_priority_of_the_session(http: httpx.Client, is_streamed: bool) -> None:
    made = http.post("/v1/sessions", json={"model": "random", "priority": 5})
    assert made.status_code == 201
    session = made.json()["id"]
    for field, value in (("model", "scripted"), ("model", "nothing"), ("priority", 0), ("priority", 7), ("n", 2)):
        refused = ask(http, "x", session_id=session, stream=is_streamed, **({"model": None} | {field: value}))
        assert refused.status_code == 400, refused.text
        assert refused.json()["error"]["param"] == field
    assert http.get(f"/v1/sessions/{session}").json()["turns"] == []
    for model in (None, "random"):
        assert said(http, session, "x", model=model, n=1, priority=None)
    for priority in (2**31, 1.5, "high"):
        refused = http.post("/v1/sessions", json={"priority": priority})
        assert (refused.status_code, refused.json()["error"]["param"]) == (400, "priority")


@pytest.mark.usefixtures("slow_steps")
def test_the_priority_of_a_session_is_that_of_its_turns(start: Callable[..., Running], random_folder: Path) -> None:
    one_at_a_time = {"engine": {"dynamic_batching": LIMITS | {"max_batch_size": 1}}}
    running = start(models=[ModelSource("random", random_folder, one_at_a_time)])
    ended: list[str] = []
    with httpx.Client(base_url=running.url, timeout=30) as http:
        sessions = {name: http.post("/v1/sessions", json={"priority": value}).json()["id"]
                    for name, value in (("first", 0), ("low", -5), ("high", 5))}  # fmt: skip
        sessions["fork of high"] = http.post(f"/v1/sessions/{sessions['high']}/fork").json()["id"]

        def turn(name: str) -> None:
            fields = {"session_id": sessions[name], "max_tokens": 60, "min_tokens": 60}
            assert ask(http, "x", **fields).status_code == 200
            ended.append(name)

        with concurrent.futures.ThreadPoolExecutor(4) as pool:
            for waiting, name in enumerate(("first", "low", "high", "fork of high"), start=1):
                pool.submit(turn, name)
                end = time.monotonic() + 10
                while running.engines[0].open_turns < waiting:
                    assert time.monotonic() < end
                    time.sleep(0.001)
    assert ended.index("low") == 3
    running.assert_idle()


@pytest.mark.usefixtures("slow_steps")
def test_a_session_answers_once_at_a_time(http: httpx.Client, server: Running) -> None:
    session = http.post("/v1/sessions", json={"model": "random"}).json()["id"]
    body = {"session_id": session, "stream": True, "min_tokens": 900, "messages": [{"role": "user", "content": "x"}]}
    with http.stream("POST", "/v1/chat/completions", json=body) as response:
        lines = response.iter_lines()
        next(lines)
        for refused in (
            ask(http, "y", session_id=session),
            http.post(f"/v1/sessions/{session}/rewind", json={"turn": 1}),
            http.post(f"/v1/sessions/{session}/fork"),
        ):
            assert refused.status_code == 409, refused.text
        next(lines)
    server.wait_idle()
    assert said(http, session, "y")
    assert ask(http, "y", session_id=session, n=2).status_code == 400


@pytest.mark.usefixtures("slow_steps")
def test_a_stopped_answer_stays_as_far_as_it_went(http: httpx.Client, server: Running) -> None:
    session = http.post("/v1/sessions", json={"model": "random"}).json()["id"]
    body = {"session_id": session, "stream": True, "min_tokens": 900, "messages": [{"role": "user", "content": "x"}]}
    with http.stream("POST", "/v1/chat/completions", json=body) as response:
        next(response.iter_lines())
    server.wait_idle()
    turns = http.get(f"/v1/sessions/{session}").json()["turns"]
    assert len(turns) == 1
    assert said(http, session, "go on")


def test_sessions_belong_to_their_key_and_are_bounded(start: Callable[..., Running]) -> None:
    running = start(api_keys=("one", "two"), max_sessions=3, max_sessions_per_key=2)
    one, two = (
        httpx.Client(base_url=running.url, headers={"Authorization": f"Bearer {key}"}) for key in ("one", "two")
    )
    with one, two:
        mine = [one.post("/v1/sessions", json={}).json()["id"] for _ in range(2)]
        refused = one.post("/v1/sessions", json={})
        assert (refused.status_code, refused.headers["retry-after"]) == (429, "60")
        assert one.post(f"/v1/sessions/{mine[0]}/fork").status_code == 429
        assert two.post("/v1/sessions", json={}).status_code == 201
        assert two.post("/v1/sessions", json={}).status_code == 429
        for call in (
            two.get(f"/v1/sessions/{mine[0]}"),
            two.delete(f"/v1/sessions/{mine[0]}"),
            two.post(f"/v1/sessions/{mine[0]}/fork"),
            ask(two, "x", session_id=mine[0]),
        ):
            assert call.status_code == 404
        assert len(two.get("/v1/sessions").json()["data"]) == 1
        assert one.delete(f"/v1/sessions/{mine[0]}").status_code == 200
        assert two.post("/v1/sessions", json={}).status_code == 201
        running.assert_idle()


def test_idle_sessions_are_closed(start: Callable[..., Running]) -> None:
    running = start(session_idle_seconds=0.05, max_sessions=1)
    with httpx.Client(base_url=running.url) as http:
        first = http.post("/v1/sessions", json={}).json()["id"]
        said(http, first, "x")
        time.sleep(0.1)
        assert http.post("/v1/sessions", json={}).status_code == 201
        assert http.get(f"/v1/sessions/{first}").status_code == 404
        running.assert_idle()
