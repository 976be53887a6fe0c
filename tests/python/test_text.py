"""Text to ids and back: exact, streaming without half characters, and clear about files that are missing or broken."""

from __future__ import annotations

import unicodedata
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from text_models import SPECIALS, byte_fallback, byte_level, with_bos, write_folder
from tokenizers import Tokenizer as Core

import oga

KINDS: dict[str, Callable[[], Core]] = {"byte level": byte_level, "byte fallback": byte_fallback}


@pytest.fixture(scope="module", params=KINDS)
def tokenizer(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> oga.Tokenizer:
    return oga.Tokenizer(write_folder(tmp_path_factory.mktemp("text"), KINDS[request.param]()))


def pieces(tokenizer: oga.Tokenizer, ids: list[int]) -> list[str]:
    stream = tokenizer.create_stream()
    return [*(stream.decode(token) for token in ids), stream.finish()]


def test_ids_are_those_of_the_reference(tokenizer: oga.Tokenizer) -> None:
    reference = Core.from_file(str(tokenizer.path / "tokenizer.json"))
    for text in ("hello world", "", "  two  spaces\n\ttab", "日本語 🙂 é", "\0", SPECIALS[1] + "x"):
        ids = tokenizer.encode(text)
        assert ids.dtype == np.int32
        assert ids.tolist() == reference.encode(text).ids
        assert tokenizer.decode(ids, skip_special_tokens=False) == reference.decode(ids, skip_special_tokens=False)


@given(text=st.text(max_size=60))
def test_a_stream_adds_up_to_the_decoded_whole(tokenizer: oga.Tokenizer, text: str) -> None:
    ids = tokenizer.encode(text).tolist()
    assert "".join(pieces(tokenizer, ids)) == tokenizer.decode(ids)


@given(data=st.data())
def test_a_stream_of_any_tokens_adds_up_to_the_decoded_whole(tokenizer: oga.Tokenizer, data: st.DataObject) -> None:
    count = tokenizer._core.get_vocab_size()
    ids = data.draw(st.lists(st.integers(0, count + 5), max_size=40))
    assert "".join(pieces(tokenizer, ids)) == tokenizer.decode(ids)


@given(text=st.text(st.characters(blacklist_categories=["Cs"], blacklist_characters="\ufffd"), max_size=40))
def test_no_piece_ends_inside_a_character(tokenizer: oga.Tokenizer, text: str) -> None:
    assert "\ufffd" not in "".join(pieces(tokenizer, tokenizer.encode(text).tolist()))


def test_a_character_comes_with_its_last_byte(tmp_path: Path) -> None:
    tokenizer = oga.Tokenizer(write_folder(tmp_path, byte_level()))
    ids = tokenizer.encode("a🙂b").tolist()
    assert pieces(tokenizer, ids) == ["a", "", "", "", "🙂", "b", ""]


def test_bytes_that_never_become_a_character_come_at_the_end(tmp_path: Path) -> None:
    tokenizer = oga.Tokenizer(write_folder(tmp_path, byte_level()))
    ids = tokenizer.encode("a🙂").tolist()[:-1]
    assert pieces(tokenizer, ids) == ["a", "", "", "", "\ufffd"]
    assert tokenizer.decode(ids) == "a\ufffd"


def test_a_stream_starts_afresh_after_its_end(tokenizer: oga.Tokenizer) -> None:
    stream = tokenizer.create_stream()
    ids = tokenizer.encode("hi ab").tolist()
    twice = ["".join([*(stream.decode(token) for token in ids), stream.finish()]) for _ in range(2)]
    assert twice == ["hi ab", "hi ab"]


def test_special_tokens_are_left_out_unless_asked_for(tokenizer: oga.Tokenizer) -> None:
    ids = tokenizer.encode(f"hi{SPECIALS[2]}")
    assert tokenizer.decode(ids) == "hi"
    assert tokenizer.decode(ids, skip_special_tokens=False).endswith(SPECIALS[2])
    stream = tokenizer.create_stream(skip_special_tokens=False)
    assert "".join(map(stream.decode, ids)) + stream.finish() == tokenizer.decode(ids, skip_special_tokens=False)


def test_bos_is_added_only_where_the_tokenizer_does_and_only_when_wanted(tmp_path: Path) -> None:
    plain = oga.Tokenizer(write_folder(tmp_path / "plain", byte_level()))
    adding = oga.Tokenizer(write_folder(tmp_path / "adding", with_bos(byte_level())))
    bos = plain.to_token_id(SPECIALS[0])
    assert plain.bos_id is None
    assert adding.bos_id == bos
    assert adding.encode("hello").tolist() == [bos, *plain.encode("hello")]
    assert adding.encode("hello", add_special_tokens=False).tolist() == plain.encode("hello").tolist()


def test_a_token_is_found_by_its_text(tokenizer: oga.Tokenizer) -> None:
    assert tokenizer.decode([tokenizer.to_token_id("a")]) == "a"
    assert tokenizer.to_token_id("no such token") == -1


def test_a_missing_tokenizer_is_a_file_not_found_error_with_its_path(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError) as caught:
        oga.Tokenizer(tmp_path)
    assert str(tmp_path / "tokenizer.json") in str(caught.value)


@pytest.mark.parametrize("content", [b"", b"{", b"{}", b"\xff\xfe", b'{"model": {"type": "Novel"}}'])
def test_a_broken_tokenizer_is_a_value_error_with_its_path(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "tokenizer.json").write_bytes(content)
    with pytest.raises(oga.InvalidArgumentError) as caught:
        oga.Tokenizer(tmp_path)
    assert str(tmp_path / "tokenizer.json") in str(caught.value)


def test_a_folder_in_place_of_the_tokenizer_is_an_os_error(tmp_path: Path) -> None:
    (tmp_path / "tokenizer.json").mkdir()
    with pytest.raises(OSError, match=r"tokenizer\.json cannot be read"):
        oga.Tokenizer(tmp_path)


def test_broken_settings_are_named_when_they_are_needed(tmp_path: Path) -> None:
    tokenizer = oga.Tokenizer(write_folder(tmp_path, byte_level()))
    (tmp_path / "tokenizer_config.json").write_text("[1]")
    with pytest.raises(oga.InvalidArgumentError, match=r"tokenizer_config\.json must hold a JSON object, not list"):
        oga.ChatTemplate(tokenizer)


@pytest.mark.parametrize("wrong", [None, 5, ["a"]])
def test_text_must_be_text(tokenizer: oga.Tokenizer, wrong: object) -> None:
    with pytest.raises(TypeError):
        tokenizer.encode(wrong)  # type: ignore[arg-type]


def test_a_lone_surrogate_is_refused(tokenizer: oga.Tokenizer) -> None:
    with pytest.raises(ValueError, match="not valid Unicode"):
        tokenizer.encode("a\ud800b")


def test_text_survives_whatever_its_normal_form(tmp_path: Path) -> None:
    tokenizer = oga.Tokenizer(write_folder(tmp_path, byte_level()))
    for form in ("NFC", "NFD"):
        text = unicodedata.normalize(form, "Crème brûlée, ὀφθαλμός")  # type: ignore[arg-type]
        assert tokenizer.decode(tokenizer.encode(text)) == text
