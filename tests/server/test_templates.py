"""Chat templates that refuse, that are broken, and that are missing: 400 with the reason, never 500."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from running import Running, started

from oga.server import ModelSource, ServerSettings

ALTERNATING = (
    "{% for message in messages %}{% if (message['role'] == 'user') != (loop.index0 % 2 == 0) %}"
    "{{ raise_exception('Conversation roles must alternate user/assistant') }}{% endif %}"
    "<|im_start|>{{ message['content'] }}<|im_end|>{% endfor %}"
)
TEMPLATES: dict[str, str | None] = {
    "alternating": ALTERNATING,
    "undefined": "{{ messages[0]['content'] }}{{ nothing | tojson }}",
    "missing": None,
    "syntax": "{% for message in messages %}",
    "attribute": "{{ messages[0]['content'].nothing.more }}",
    "arithmetic": "{{ messages[0]['content'] }}{{ 1 / 0 }}",
    "escape": "{{ ''.__class__.__mro__[1].__subclasses__() }}",
    "endless": "{% for number in range(100000000) %}x{% endfor %}",
    "tools": "{% for message in messages %}{{ message['content'] }}{% endfor %}"
    "{% if tools %}{% for tool in tools %}{{ tool | tojson }}{% endfor %}{% endif %}{{ mood }}",
}


def with_template(folder: Path, target: Path, template: str | None) -> Path:
    shutil.copytree(folder, target)
    (target / "chat_template.jinja").unlink(missing_ok=True)
    path = target / "tokenizer_config.json"
    settings = json.loads(path.read_text())
    settings.pop("chat_template", None)
    path.write_text(json.dumps(settings | ({} if template is None else {"chat_template": template})))
    return target


@pytest.fixture(scope="module")
def templates(random_folder: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    home = tmp_path_factory.mktemp("templates")
    cache = {"engine": {"dynamic_batching": {"num_blocks": 64}}}
    sources = [
        ModelSource(name, with_template(random_folder, home / name, template), cache)
        for name, template in TEMPLATES.items()
    ]
    with started(ServerSettings(models=sources)) as running:
        yield running


@pytest.fixture
def say(templates: Running) -> Iterator[Callable[..., httpx.Response]]:
    with httpx.Client(base_url=templates.url, timeout=30) as http:

        def send(model: str, *messages: Any, **fields: Any) -> httpx.Response:
            given = [each if isinstance(each, dict) else {"role": "user", "content": each} for each in messages]
            body = {"model": model, "messages": given, "max_tokens": 2} | fields
            return http.post("/v1/chat/completions", json=body)

        yield send
    templates.assert_idle()


Say = Callable[..., httpx.Response]


@pytest.mark.parametrize(
    ("model", "reason"),
    [
        ("undefined", "undefined"),
        ("missing", "no chat template"),
        ("syntax", "line 1"),
        ("attribute", "has no attribute"),
        ("arithmetic", "division"),
        ("escape", "unsafe"),
        ("endless", "too big"),
    ],
)
def test_a_template_that_cannot_be_used_is_the_reason_of_a_refusal(say: Say, model: str, reason: str) -> None:
    for fields in ({}, {"stream": True}):
        response = say(model, "hello", **fields)
        assert response.status_code == 400, response.text
        message = response.json()["error"]["message"]
        assert reason in message.lower()
        assert model in message, "the file is not named"
        assert len(response.content) < 4096


def test_a_template_that_refuses_a_conversation_says_why(say: Say) -> None:
    assert say("alternating", "hello").status_code == 200
    answer = {"role": "assistant", "content": "hi"}
    assert say("alternating", "hello", answer, "again").status_code == 200
    for messages in (
        ["hello", "again"],
        [{"role": "system", "content": "x"}],
        [{"role": "system", "content": "x"}, "hello"],
        ["hello", answer, answer, "x"],
    ):
        response = say("alternating", *messages)
        assert response.status_code == 400
        assert "roles must alternate" in response.json()["error"]["message"]


def test_a_call_without_content_reaches_the_template(say: Say) -> None:
    call = {"id": "call_1", "type": "function", "function": {"name": "f", "arguments": '{"a": 1}'}}
    for content in ({}, {"content": None}, {"content": ""}):
        calling = {"role": "assistant", "tool_calls": [call]} | content
        result = {"role": "tool", "tool_call_id": "call_1", "content": "2"}
        assert say("tools", "hello", calling, result).status_code == 200


def test_tools_and_variables_reach_the_template(say: Say) -> None:
    def prompt_tokens(**fields: Any) -> int:
        response = say("tools", "hello", **fields)
        assert response.status_code == 200, response.text
        count: int = response.json()["usage"]["prompt_tokens"]
        return count

    plain = prompt_tokens()
    assert prompt_tokens(chat_template_kwargs={"mood": "glad"}) == plain + len("glad")
    tool = {"type": "function", "function": {"name": "get_weather", "parameters": {"type": "object"}}}
    assert prompt_tokens(tools=[tool], tool_choice="none") > plain + 40


def test_completions_need_no_template(templates: Running) -> None:
    body = {"model": "missing", "prompt": "hello", "max_tokens": 2}
    assert httpx.post(f"{templates.url}/v1/completions", json=body).status_code == 200
