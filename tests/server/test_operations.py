"""What operators rely on: keys, loading, health, metrics, logs, stopping and starting again."""

from __future__ import annotations

import json
import logging
import os
import re
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path

import httpx
import pytest
from asyncs import engine_threads
from running import Running, ask, started

from oga.server import ModelSource, ServerSettings


def test_without_a_key_the_api_is_closed_and_health_is_open(start: Callable[..., Running]) -> None:
    running = start(api_keys=("right", "other"))
    with httpx.Client(base_url=running.url) as http:
        for path in ("/health", "/ready", "/metrics", "/", "/openapi.json"):
            assert http.get(path).status_code == 200, path
        for headers in ({}, {"Authorization": "Bearer wrong"}, {"Authorization": "Basic right"}):
            for method, path in (("GET", "/v1/models"), ("POST", "/tokenize"), ("POST", "/v1/chat/completions")):
                refused = http.request(method, path, headers=headers, json={})
                assert refused.status_code == 401
                assert refused.json()["error"]["code"] == "invalid_api_key"
                assert refused.headers["www-authenticate"] == "Bearer"
        for key in ("right", "other"):
            assert http.get("/v1/models", headers={"Authorization": f"Bearer {key}"}).status_code == 200
        answered = ask(http, "x", max_tokens=1)
        assert answered.status_code == 401


def test_models_are_loaded_and_unloaded_by_the_administrator_only(
    start: Callable[..., Running], sources: list[ModelSource]
) -> None:
    running = start(models=sources, admin_key="admin")
    with httpx.Client(base_url=running.url, timeout=30) as http:
        assert http.post("/admin/models/scripted/unload").status_code == 403
        http.headers["Authorization"] = "Bearer admin"
        assert http.post("/admin/models/nothing/load").status_code == 404
        session = http.post("/v1/sessions", json={"model": "scripted"}).json()["id"]
        assert http.post("/admin/models/scripted/unload").json()["state"] == "unloaded"
        assert http.get(f"/v1/sessions/{session}").status_code == 404
        gone = ask(http, "1", model="scripted")
        assert (gone.status_code, gone.json()["error"]["code"]) == (503, "model_not_loaded")
        states = {each["id"]: each["state"] for each in http.get("/v1/models").json()["data"]}
        assert states == {"random": "loaded", "scripted": "unloaded"}
        assert ask(http, "x", model=None, max_tokens=1).status_code == 200
        for _ in range(2):
            assert http.post("/admin/models/scripted/load").json()["state"] == "loaded"
        assert ask(http, "1", model="scripted").json()["choices"][0]["message"]["content"] == "UNO DUE TRE"
        running.assert_idle()


def test_without_an_admin_key_nobody_is_the_administrator(http: httpx.Client) -> None:
    for headers in ({}, {"Authorization": "Bearer"}, {"Authorization": "Bearer None"}):
        assert http.post("/admin/models/random/unload", headers=headers).status_code == 403


def test_metrics_have_the_names_and_the_numbers(http: httpx.Client, server: Running) -> None:
    def values() -> dict[str, float]:
        text = http.get("/metrics").text
        found = {}
        for line in text.splitlines():
            if not line.startswith("#"):
                assert re.fullmatch(r'[a-z_]+:[a-z0-9_]+\{([a-z_]+="[^"]*",?)+\} [0-9.e+-]+', line), line
                name, _, value = line.rpartition(" ")
                found[name] = float(value)
        return found

    label = '{model_name="random"}'
    before = values()
    for count in (1, 2):
        ask(http, "x", max_tokens=100, min_tokens=100, n=count)
    after = values()

    def grown(name: str) -> float:
        return after[name] - before.get(name, 0)

    assert grown(f"oga:generation_tokens_total{label}") == 300
    assert grown('oga:request_success_total{model_name="random",finished_reason="length"}') == 3
    for name in (
        "time_to_first_token_seconds",
        "request_queue_time_seconds",
        "request_prefill_time_seconds",
        "request_decode_time_seconds",
        "e2e_request_latency_seconds",
    ):
        assert grown(f"oga:{name}_count{label}") == 3, name
        assert grown(f'oga:{name}_bucket{{model_name="random",le="+Inf"}}') == 3
    assert grown(f"oga:inter_token_latency_seconds_count{label}") > 0
    for name in (
        "num_requests_running",
        "num_requests_waiting",
        "kv_cache_usage_perc",
        "num_preemptions_total",
        "prefix_cache_queries_total",
        "prefix_cache_hits_total",
        "prompt_tokens_total",
    ):
        assert f"oga:{name}{label}" in after
    assert grown('oga:http_requests_total{handler="/v1/chat/completions",status="200"}') == 2
    resources = http.get("/v1/resources").json()["models"]["random"]
    assert resources["open_turns"] == 0
    assert resources["cache_bytes"] > 0
    assert server.url


def test_health_and_metrics_answer_while_a_step_takes_for_ever(
    server: Running, http: httpx.Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    from oga.turns import Turns

    entered, going_on = threading.Event(), threading.Event()
    step = Turns.step

    def stuck(turns: Turns) -> None:
        entered.set()
        assert going_on.wait(30)
        step(turns)

    monkeypatch.setattr(Turns, "step", stuck)
    answers: list[httpx.Response] = []

    def ask_for_one() -> None:
        with httpx.Client(base_url=server.url, timeout=60) as other:
            answers.append(ask(other, "x", max_tokens=2))

    asking = threading.Thread(target=ask_for_one)
    asking.start()
    try:
        assert entered.wait(10)
        for path in ("/health", "/ready", "/metrics", "/v1/models", "/v1/resources", "/"):
            assert http.get(path, timeout=10).status_code == 200, path
        assert http.get("/v1/resources").json()["models"]["random"]["open_turns"] == 1
    finally:
        going_on.set()
        asking.join()
    assert answers[0].status_code == 200


def test_every_answer_has_an_id_and_a_line_in_the_log(
    http: httpx.Client, caplog: pytest.LogCaptureFixture, start: Callable[..., Running]
) -> None:
    with caplog.at_level(logging.INFO, "oga.server.access"):
        given = ask(http, "secret words", max_tokens=2)
        named = http.get("/health", headers={"X-Request-Id": "mine-1"})
        forged = http.get("/health", headers={"X-Request-Id": "a b"})
        made = ask(http, "x", unknown=1)
        running = start(log_format="json", is_lenient=True)
        with httpx.Client(base_url=running.url) as other:
            assert ask(other, "secret words", unknown=1, max_tokens=2).status_code == 200
        end = time.monotonic() + 10  # a line is written when the client has its answer
        while len(lines := [each.getMessage() for each in caplog.records if each.name == "oga.server.access"]) < 5:
            assert time.monotonic() < end
            time.sleep(0.01)
    assert named.headers["x-request-id"] == "mine-1"
    assert re.fullmatch(r"req-[0-9a-f]{32}", forged.headers["x-request-id"])
    own = next(line for line in lines if given.headers["x-request-id"] in line)
    assert all(part in own for part in ("status=200", "model=random", "completion_tokens=2", "first_token_seconds="))
    assert any(made.headers["x-request-id"] in line and "status=400" in line for line in lines)
    parsed = json.loads(lines[-1])
    assert (parsed["status"], parsed["path"], parsed["finish"]) == (200, "/v1/chat/completions", "length")
    assert not any("secret" in line for line in lines)
    assert any("unknown field unknown" in record.getMessage() for record in caplog.records)


def test_a_broken_engine_fails_its_callers_and_is_replaced_on_request(
    random_folder: Path, tmp_path: Path, start: Callable[..., Running]
) -> None:
    sys.path.append(str(Path(__file__).resolve().parents[1] / "conformance"))
    from failing_model import write_failing_model

    folder = write_failing_model(random_folder, tmp_path / "failing")
    running = start(models=[ModelSource("failing", folder)], admin_key="admin")
    with httpx.Client(base_url=running.url, timeout=30) as http:
        failed = http.post("/v1/completions", json={"prompt": [450]})
        assert failed.status_code == 500
        assert "short_lookup" in failed.json()["error"]["message"]
        health = http.get("/health")
        assert health.status_code == 503
        assert "short_lookup" in health.json()["error"]["message"]
        assert http.get("/ready").status_code == 503
        assert http.post("/v1/completions", json={"prompt": "x"}).status_code == 500
        assert http.get("/metrics").status_code == 200
        loaded = http.post("/admin/models/failing/load", headers={"Authorization": "Bearer admin"})
        assert loaded.json()["state"] == "loaded"
        assert http.get("/health").status_code == 200
        assert http.post("/v1/completions", json={"prompt": "x"}).status_code == 200


def test_servers_start_and_stop_one_after_the_other(random_folder: Path) -> None:
    before = len(engine_threads())
    answers = []
    for _ in range(3):
        settings = ServerSettings(models=[ModelSource("random", random_folder)])
        with started(settings) as running, httpx.Client(base_url=running.url) as http:
            answers.append(ask(http, "x", max_tokens=5).json()["choices"])
        assert len(engine_threads()) == before
    assert answers[0] == answers[1] == answers[2]


COMMAND = [sys.executable, "-m", "oga", "serve"]


def launched(folder: Path, port: int, *options: str) -> subprocess.Popen[str]:
    """The command on its own, once it is ready."""
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)}
    command = [*COMMAND, f"tiny={folder}", "--port", str(port), *options]
    process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True, env=environment)
    assert process.stderr
    said = process.stderr.readline()
    assert said == f"serving on http://127.0.0.1:{port}\n", said + process.stderr.read()
    return process


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


def test_a_signal_lets_open_answers_end_and_the_next_server_takes_over(random_folder: Path) -> None:
    port = free_port()
    first = launched(random_folder, port, "--share-port")
    body = {"prompt": "x", "max_tokens": 900, "min_tokens": 900, "stream": True}
    with httpx.Client(timeout=30) as http:
        with http.stream("POST", f"http://127.0.0.1:{port}/v1/completions", json=body) as response:
            lines = response.iter_lines()
            next(lines)
            second = launched(random_folder, port, "--share-port")
            first.send_signal(signal.SIGTERM)
            rest = [line for line in lines if line]
            assert rest[-1] == "data: [DONE]"
        assert first.wait(20) == 0
        for _ in range(5):
            assert httpx.get(f"http://127.0.0.1:{port}/health").status_code == 200
    second.send_signal(signal.SIGINT)
    assert second.wait(20) == 0
    for process in (first, second):
        assert process.stderr
        errors = process.stderr.read()
        process.stderr.close()
        assert "Traceback" not in errors
        assert "status=200" in errors


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["nowhere"], "neither a folder nor a model"),
        (["{folder}", "{folder}"], "same name"),
        (["{folder}", "--metrics-prefix", "a b"], "--metrics-prefix"),
        (["{folder}", "--port", "{taken}"], "Cannot listen"),
    ],
)
def test_a_wrong_command_line_is_one_line(random_folder: Path, options: list[str], message: str) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        given = [each.format(folder=random_folder, taken=taken.getsockname()[1]) for each in options]
        environment = os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)}
        command = [*COMMAND, *given]
        done = subprocess.run(command, capture_output=True, text=True, env=environment, timeout=30, check=False)
    assert done.returncode == 1
    assert message in done.stderr
    assert len(done.stderr.strip().splitlines()) == 1
