"""An error that the server knows nothing of reaches the client with its field: nothing in between reads its words."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import httpx
import pytest
from running import Running

from oga._native.loader import ffi, lib

FIELD = "a_field_of_tomorrow"
ROUTES: dict[str, dict[str, Any]] = {
    "/v1/chat/completions": {"messages": [{"role": "user", "content": "x"}]},
    "/v1/completions": {"prompt": "x"},
    "/v1/responses": {"input": "x"},
}


def result_about(tokenizer: Any, field: str) -> Any:
    """A refusal that the library itself makes, about a name of our choice: of an option that no tokenizer has."""
    keys, values = ffi.new("char[]", field.encode()), ffi.new("char[]", b"true")
    result = lib.OgaUpdateTokenizerOptions(
        tokenizer, ffi.new("const char *[]", [keys]), ffi.new("const char *[]", [values]), 1
    )
    assert result != ffi.NULL
    return result


@pytest.fixture
def plant(server: Running, monkeypatch: pytest.MonkeyPatch) -> Callable[[str], str]:
    """Lets the library refuse every turn for a reason that is about ``field``; returns the sentence."""

    def planted(field: str) -> str:
        tokenizer = server.engines[0].model.tokenizer._pointer
        monkeypatch.setattr(lib, "OgaRequestBeginTurn", lambda *_: result_about(tokenizer, field))
        result = result_about(tokenizer, field)
        sentence: str = ffi.string(lib.OgaResultGetError(result)).decode()
        lib.OgaDestroyResult(result)
        return sentence

    return planted


def refusals(http: httpx.Client, path: str) -> list[dict[str, Any]]:
    """The error objects of the answer, asked for whole and as a stream."""
    found = []
    for is_streamed in (False, True):
        response = http.post(path, json={"model": "random", "stream": is_streamed} | ROUTES[path])
        assert response.status_code == 400, response.text
        found.append(response.json()["error"])
    return found


@pytest.mark.parametrize("path", ROUTES)
def test_the_field_of_a_new_error_is_the_param(http: httpx.Client, plant: Callable[[str], str], path: str) -> None:
    sentence = plant(FIELD)
    assert FIELD in sentence
    for error in refusals(http, path):
        assert error == {"message": sentence, "type": "invalid_request_error", "param": FIELD, "code": None}


@pytest.mark.parametrize("path", ROUTES)
def test_a_field_that_requests_call_otherwise_is_the_param_by_their_name(
    http: httpx.Client, plant: Callable[[str], str], path: str
) -> None:
    sentence = plant("stop_strings")
    for error in refusals(http, path):
        assert error == {
            "message": f"stop: {sentence}",
            "type": "invalid_request_error",
            "param": "stop",
            "code": None,
        }


def test_no_file_of_the_server_names_the_new_field() -> None:
    folder = Path(__file__).resolve().parents[2] / "oga"
    assert not [path for path in folder.rglob("*.py") if FIELD in path.read_text(encoding="utf-8")]


@pytest.mark.parametrize("field", ["/srv/models/m/tokenizer.json", "search.num_beams", "OGA_NUM_THREADS"])
def test_what_is_no_field_of_a_request_is_no_param(http: httpx.Client, plant: Callable[[str], str], field: str) -> None:
    sentence = plant(field)
    for error in refusals(http, "/v1/completions"):
        assert (error["message"], error["param"]) == (sentence, None)
