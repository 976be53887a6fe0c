"""Fixtures of the server's tests: a random and a scripted model behind one real server, and clients."""

from __future__ import annotations

import shutil
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import httpx
import openai
import pytest
from tokenizers import Tokenizer, processors

TESTS = Path(__file__).resolve().parents[1]
sys.path.append(str(TESTS / "models"))
sys.path.append(str(TESTS / "python"))

from running import BOS, ENGINE, Running, plain_client, started  # noqa: E402
from tiny_models import poisoned_folder, tiny_folder  # noqa: E402

from oga import export  # noqa: E402
from oga.server import ModelSource, ServerSettings  # noqa: E402

__all__ = ["poisoned_folder", "tiny_folder"]

EMOJI = "🙂".encode()
# The last character of a prompt chooses what is said; what no script holds leads nowhere.
SCRIPTS = {
    "1": [b"UNO", b" DUE", b" TRE"],
    "2": [b" Al", b"ice", b"!"],
    "3": [b"smile ", *(EMOJI[at : at + 1] for at in range(4)), b"~"],
    "4": [b"one\n", b"two\n", b"three"],
    "5": [b"<|private|>", b"hidden", b"</private|>", b" shown"],
    "6": [
        b"Let me see. ",
        b"<tool_call>",
        b"\n",
        b'{"name": "get_weather", "arguments": ',
        b'{"city": "',
        b"Paris",
        b'"}',
        b"}",
        b"</tool_call>",
        b" Done.",
    ],
}
SPECIALS = ("<tool_call>", "</tool_call>", "<|private|>", "</private|>")
SESSION_TOKENS = 1024


@pytest.fixture(scope="session")
def random_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A model that says anything, with a context of 1024 tokens."""
    from tiny_llama import write_tiny_llama

    home = tmp_path_factory.mktemp("random")
    source = write_tiny_llama(home / "source", max_position_embeddings=SESSION_TOKENS)
    return export.convert(source, home / "model", precision="fp32").folder


@pytest.fixture(scope="session")
def scripted_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A model that says what SCRIPTS has."""
    from scripted_llama import write_scripted_llama

    home = tmp_path_factory.mktemp("scripted")
    source = write_scripted_llama(home / "source", SCRIPTS, SPECIALS, max_position_embeddings=SESSION_TOKENS)
    return export.convert(source, home / "model", precision="fp32").folder


@pytest.fixture(scope="session")
def sources(random_folder: Path, scripted_folder: Path) -> list[ModelSource]:
    tokenizer = Tokenizer.from_file(str(scripted_folder / "tokenizer.json"))
    marks = {"bot_token_id": tokenizer.token_to_id(SPECIALS[0]), "eot_token_id": tokenizer.token_to_id(SPECIALS[1])}
    return [
        ModelSource("random", random_folder, ENGINE),
        ModelSource("scripted", scripted_folder, ENGINE | {"model": marks}),
    ]


@pytest.fixture(scope="session")
def bos_folder(random_folder: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The random model with a tokenizer that puts BOS before every text."""
    folder = tmp_path_factory.mktemp("bos") / "model"
    shutil.copytree(random_folder, folder)
    path = str(folder / "tokenizer.json")
    tokenizer = Tokenizer.from_file(path)
    number = tokenizer.token_to_id(BOS)
    tokenizer.post_processor = processors.TemplateProcessing(single=f"{BOS} $A", special_tokens=[(BOS, number)])
    tokenizer.save(path)
    return folder


@pytest.fixture(scope="session")
def shared(sources: list[ModelSource]) -> Iterator[Running]:
    with started(ServerSettings(models=sources, max_sessions=24, max_responses=24)) as running:
        yield running


@pytest.fixture
def server(shared: Running) -> Iterator[Running]:
    """The server of most tests; after each, everything that it took must be back."""
    yield shared
    shared.assert_idle()


@pytest.fixture
def start(sources: list[ModelSource]) -> Iterator[Callable[..., Running]]:
    """Starts a server of its own for a test, with other settings."""
    opened: list[Any] = []

    def begin(**settings: Any) -> Running:
        opened.append(started(ServerSettings(**({"models": sources[:1]} | settings))))
        running: Running = opened[-1].__enter__()
        return running

    yield begin
    for each in reversed(opened):
        each.__exit__(None, None, None)


@pytest.fixture
def slow_steps(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every step takes two milliseconds more, so that a long answer lasts."""
    from oga.turns import Turns

    step = Turns.step

    def slow(turns: Turns) -> None:
        time.sleep(0.002)
        step(turns)

    monkeypatch.setattr(Turns, "step", slow)


@pytest.fixture
def client(server: Running) -> Iterator[openai.OpenAI]:
    """The official client."""
    plain = openai.DefaultHttpxClient(verify=False)  # as plain_client
    with openai.OpenAI(base_url=f"{server.url}/v1", api_key="none", max_retries=0, http_client=plain) as created:
        yield created


@pytest.fixture
def http(server: Running) -> Iterator[httpx.Client]:
    """A plain client."""
    with plain_client(server.url) as created:
        yield created
