"""Every status code becomes the exception that a Python programmer expects, with the field that it is about."""

from __future__ import annotations

import copy
import pickle
from pathlib import Path
from typing import Any

import pytest

import oga
from oga import errors
from oga._native import arguments, check
from oga._native.loader import ffi, lib
from oga._native.tokens import as_int32
from oga.errors import OF_FILES, OF_PROMPTS, about, called, error_of
from oga.tokenizer import read_bytes, read_optional_json

BUILT_IN = {
    oga.StatusCode.INVALID_ARGUMENT: ValueError,
    oga.StatusCode.INVALID_STATE: RuntimeError,
    oga.StatusCode.NOT_FOUND: LookupError,
    oga.StatusCode.UNSUPPORTED: NotImplementedError,
    oga.StatusCode.RESOURCE_EXHAUSTED: MemoryError,
    oga.StatusCode.IO_ERROR: OSError,
    oga.StatusCode.MODEL_ERROR: RuntimeError,
    oga.StatusCode.ENGINE_UNHEALTHY: RuntimeError,
    oga.StatusCode.OUT_OF_MEMORY: MemoryError,
    oga.StatusCode.INTERNAL: RuntimeError,
}


KINDS = [getattr(errors, name) for name in errors.__all__]


@pytest.mark.parametrize("code", [code for code in oga.StatusCode if code is not oga.StatusCode.OK])
def test_a_code_has_its_own_exception(code: oga.StatusCode) -> None:
    error = error_of(code, "top_p", "the message")
    assert error.code is code
    assert isinstance(error, BUILT_IN[code])
    assert isinstance(error, oga.OgaError)
    assert isinstance(error, RuntimeError)
    assert str(error) == "the message"
    assert error.field == "top_p"
    assert error.failure is None


def test_a_missing_file_is_a_file_not_found_error() -> None:
    error = error_of(oga.StatusCode.NOT_FOUND, None, "folder does not exist", OF_FILES)
    assert isinstance(error, FileNotFoundError)
    assert isinstance(error, oga.NotFoundError)
    assert str(error) == "folder does not exist"
    assert error.field is None


def test_an_input_that_leaves_no_room_is_told_by_code_and_field() -> None:
    error = error_of(oga.StatusCode.INVALID_ARGUMENT, "input_ids_count", "no room", OF_PROMPTS)
    assert (type(error), error.field) == (oga.PromptTooLongError, "tokens")
    for code, field in (
        (oga.StatusCode.INVALID_ARGUMENT, "tokens"),
        (oga.StatusCode.INVALID_ARGUMENT, None),
        (oga.StatusCode.RESOURCE_EXHAUSTED, "input_ids_count"),
    ):
        assert not isinstance(error_of(code, field, "no room", OF_PROMPTS), oga.PromptTooLongError)
    assert type(error_of(oga.StatusCode.INVALID_ARGUMENT, "input_ids_count", "no room")) is oga.InvalidArgumentError


def test_a_code_of_a_newer_library_is_still_an_oga_error() -> None:
    assert type(error_of(4711, "new", "the message")) is oga.OgaError


class OfC:
    """A result as the C API gives it."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, code: int, field: str, message: str) -> None:
        self.destroyed: list[Any] = []
        self._texts = [ffi.new("char[]", text.encode()) for text in (field, message)]
        monkeypatch.setattr(lib, "OgaResultGetCode", lambda _: code)
        monkeypatch.setattr(lib, "OgaResultGetField", lambda _: self._texts[0])
        monkeypatch.setattr(lib, "OgaResultGetError", lambda _: self._texts[1])
        monkeypatch.setattr(lib, "OgaDestroyResult", self.destroyed.append)


def test_what_c_says_is_raised_and_its_result_is_freed(monkeypatch: pytest.MonkeyPatch) -> None:
    of_c = OfC(monkeypatch, oga.StatusCode.INVALID_ARGUMENT, "brand_new", "brand_new is 7; it must be 8.")
    with pytest.raises(oga.InvalidArgumentError) as raised:
        check.check("a result")
    assert (raised.value.field, str(raised.value)) == ("brand_new", "brand_new is 7; it must be 8.")
    assert of_c.destroyed == ["a result"]


def test_an_error_about_nothing_in_particular_has_no_field(monkeypatch: pytest.MonkeyPatch) -> None:
    OfC(monkeypatch, oga.StatusCode.INTERNAL, "", "top_p is 7; it must be 8.")
    with pytest.raises(oga.InternalError) as raised:
        check.check("a result")
    assert raised.value.field is None


@pytest.mark.parametrize("kind", KINDS)
def test_an_error_survives_pickling_and_copying(kind: type[oga.OgaError]) -> None:
    error = kind("the message", field="top_p")
    error.failure = oga.FailureKind.BAD_LOGITS
    for same in (pickle.loads(pickle.dumps(error)), copy.copy(error), copy.deepcopy(error)):
        assert type(same) is kind
        assert (str(same), same.field, same.failure) == ("the message", "top_p", oga.FailureKind.BAD_LOGITS)
        assert repr(same) == repr(error) == f"{kind.__name__}('the message')"


def test_the_field_of_a_class_gives_way_to_none() -> None:
    assert oga.PromptTooLongError("long").field == "tokens"
    assert oga.PromptTooLongError("long", field="messages").field == "messages"
    assert oga.OgaError("x").field is None


def test_what_a_block_refuses_is_about_what_its_caller_gave() -> None:
    with pytest.raises(oga.ArgumentTypeError) as refused, about("logit_bias"):
        arguments.number("x", "logit_bias[5]")
    assert refused.value.field == "logit_bias"
    with pytest.raises(oga.InvalidStateError) as wrong, about("logit_bias"):
        raise oga.InvalidStateError("closed")
    assert wrong.value.field is None


@pytest.mark.parametrize(
    "refuse",
    [
        lambda: arguments.kind(1, oga.Config, "given"),
        lambda: arguments.integer(True, "given", 0, 1),
        lambda: arguments.integer("1", "given", 0, 1),
        lambda: arguments.integer(2, "given", 0, 1),
        lambda: arguments.number("1", "given"),
        lambda: arguments.boolean(1, "given"),
        lambda: arguments.path_bytes(1, "given"),  # type: ignore[arg-type]
        lambda: arguments.path_bytes("\ud800", "given"),
        lambda: arguments.path_bytes("a\0", "given"),
        lambda: arguments.c_text("\ud800", "given"),
        lambda: arguments.c_text(1, "given"),
        lambda: arguments.c_text("a\0", "given"),
        lambda: as_int32(None, "given"),
        lambda: as_int32(1, "given"),
        lambda: as_int32([True], "given"),
        lambda: as_int32(["x"], "given"),
        lambda: as_int32([2**31], "given"),
        lambda: as_int32(memoryview(b"12").cast("c"), "given"),
    ],
)
def test_what_python_refuses_names_the_argument(refuse: Any) -> None:
    with pytest.raises(oga.InvalidArgumentError) as refused:
        refuse()
    assert refused.value.field == "given"


def test_the_strings_of_a_list_are_about_the_list() -> None:
    for strings in ("one", ["a\0"]):
        with pytest.raises(oga.InvalidArgumentError) as refused:
            oga.StringArray(strings)
        assert refused.value.field == "strings"


def test_an_argument_has_the_name_that_python_gave_it(tmp_path: Path) -> None:
    for refuse in (lambda: oga.Model(""), lambda: oga.Tokenizer("")):
        with pytest.raises(oga.InvalidArgumentError) as refused:
            refuse()
        assert refused.value.field == "source"
    with pytest.raises(oga.InvalidArgumentError) as refused:
        oga.Config("")
    assert refused.value.field == "config_path"
    with called(json="settings"), pytest.raises(oga.OgaError) as kept:
        raise oga.OgaError("x", field="other")
    assert kept.value.field == "other"


def test_a_file_is_the_field_whoever_reads_it(tmp_path: Path) -> None:
    path = tmp_path / "tokenizer.json"
    with pytest.raises(oga.MissingFileError) as missing:
        read_bytes(path)
    path.write_bytes(b"\xff")
    with pytest.raises(oga.InvalidArgumentError) as broken:
        read_optional_json(path)
    assert missing.value.field == broken.value.field == str(path)
