"""Text to ids and back: exact, streaming without half characters, and clear about files that are missing or broken."""

from __future__ import annotations

import json
import sys
import unicodedata
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from text_kinds import KINDS as FILES
from text_models import SPECIALS, byte_fallback, byte_level, with_bos, write_folder
from tokenizers import AddedToken
from tokenizers import Tokenizer as Core

import oga
from oga._native.loader import extensions_library

KINDS: dict[str, Callable[[], Core]] = {"byte level": byte_level, "byte fallback": byte_fallback}
NATIVE = [
    *("byte_level", "byte_level_prefix", "llama3", "smollm2", "holes", "llama2", "mistral", "gemma"),
    "normalized",
]
SINGLE_WORDS = (
    "zebra ZEBRA! zebra_ zebras (zebra) 2zebra",
    "ñé  ÑÉ! ñéñé ñéa ñé\u0301",
    "quartz  quartzes quartz QUARTZ",
    "a<|tool|> <|tool|>",
)


@pytest.fixture(scope="module", params=KINDS)
def tokenizer(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> oga.Tokenizer:
    return oga.Tokenizer(write_folder(tmp_path_factory.mktemp("text"), KINDS[request.param]()))


@pytest.fixture(scope="module")
def of_kind(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], oga.Tokenizer]:
    """A tokenizer of one of the kinds of tests/models/text_kinds.py."""
    made: dict[str, oga.Tokenizer] = {}

    def make(kind: str) -> oga.Tokenizer:
        if kind not in made:
            folder = tmp_path_factory.mktemp(kind)
            (folder / "tokenizer.json").write_text(json.dumps(FILES[kind]()), encoding="utf-8")
            made[kind] = oga.Tokenizer(folder)
        return made[kind]

    return make


@pytest.fixture
def without(monkeypatch: pytest.MonkeyPatch) -> Callable[[str], None]:
    """Makes a package uninstalled for the length of a test."""

    def hide(package: str) -> None:
        monkeypatch.setitem(sys.modules, package, None)

    return hide


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
    assert plain.prefix_ids == []
    assert adding.prefix_ids == [bos]
    assert plain.bos_token_id == adding.bos_token_id == bos
    assert adding.encode("hello").tolist() == [bos, *plain.encode("hello")]
    assert adding.encode("hello", add_special_tokens=False).tolist() == plain.encode("hello").tolist()


def test_a_token_is_found_by_its_text(tokenizer: oga.Tokenizer) -> None:
    assert tokenizer.decode([tokenizer.to_token_id("a")]) == "a"
    assert tokenizer.to_token_id("no such token") == -1


def test_a_missing_tokenizer_is_a_file_not_found_error_with_its_path(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError) as caught:
        oga.Tokenizer(tmp_path)
    assert str(tmp_path / "tokenizer.json") in str(caught.value)


@pytest.mark.parametrize("content", [b"", b"{", b"{}", b"\xff\xfe", b'{"model": {"type": "BPE"}}'])
def test_a_broken_tokenizer_is_a_value_error_with_its_path(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "tokenizer.json").write_bytes(content)
    with pytest.raises(oga.InvalidArgumentError) as caught:
        oga.Tokenizer(tmp_path)
    assert str(tmp_path / "tokenizer.json") in str(caught.value)


def test_a_folder_in_place_of_the_tokenizer_is_an_os_error(tmp_path: Path) -> None:
    (tmp_path / "tokenizer.json").mkdir()
    with pytest.raises(OSError, match=r"tokenizer\.json' is a folder; it must be a file"):
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


@pytest.mark.parametrize("kind", sorted(FILES))
def test_every_kind_decodes_as_the_reference(of_kind: Callable[[str], oga.Tokenizer], kind: str) -> None:
    tokenizer = of_kind(kind)
    ids = tokenizer.encode("Hello  🙂 e\u0301 模型\n<|im_end|> x", add_special_tokens=True).tolist()
    for cut in range(len(ids) + 1):
        for hidden in (True, False):
            wanted = tokenizer._core.decode(ids[:cut], skip_special_tokens=hidden)
            assert tokenizer.decode(ids[:cut], skip_special_tokens=hidden) == wanted
            stream = tokenizer.create_stream(skip_special_tokens=hidden)
            assert "".join(map(stream.decode, ids[:cut])) + stream.finish() == wanted


@pytest.mark.parametrize("kind", NATIVE)
def test_ids_are_the_same_without_the_package(
    of_kind: Callable[[str], oga.Tokenizer], without: Callable[[str], None], kind: str, tmp_path: Path
) -> None:
    tokenizer = of_kind(kind)
    texts = [
        "",
        "Hello world",
        "I <3 you <|im_end|> 12345",
        "  a\n\n b",
        "naïve 日本語 🙂",
        "two words<|tool|> <|left|> a",
    ]
    wanted = [tokenizer.encode(text, add_special_tokens=adds).tolist() for text in texts for adds in (True, False)]
    without("tokenizers")
    alone = oga.Tokenizer(tokenizer.path)
    assert [alone.encode(t, add_special_tokens=adds).tolist() for t in texts for adds in (True, False)] == wanted


def test_without_the_package_what_cannot_be_encoded_exactly_is_refused(
    of_kind: Callable[[str], oga.Tokenizer], without: Callable[[str], None]
) -> None:
    without("tokenizers")
    alone = oga.Tokenizer(of_kind("unigram_always").path)
    with pytest.raises(oga.UnsupportedError, match="Unigram"):
        alone.encode("x")
    with pytest.raises(ValueError, match="NUL"):
        oga.Tokenizer(of_kind("gemma").path).encode("a\0b")


def test_tokens_that_must_be_single_words_are_found_as_the_reference_finds_them(
    of_kind: Callable[[str], oga.Tokenizer],
) -> None:
    tokenizer = of_kind("single_words")
    reference = Core.from_file(str(tokenizer.path / "tokenizer.json"))
    added = {token: reference.token_to_id(token) for token in ("zebra", "ñé", "quartz", "<|tool|>")}
    ids = [tokenizer.encode(text).tolist() for text in SINGLE_WORDS]
    assert ids == [reference.encode(text).ids for text in SINGLE_WORDS]
    found = [[token for token, number in added.items() for _ in range(one.count(number))] for one in ids]
    assert found == [["zebra"] * 3, ["ñé"] * 2, ["quartz"] * 2, ["<|tool|>"]]
    for one in ids:
        for hidden in (True, False):
            wanted = reference.decode(one, skip_special_tokens=hidden)
            stream = tokenizer.create_stream(skip_special_tokens=hidden)
            assert "".join(map(stream.decode, one)) + stream.finish() == wanted
            assert tokenizer.decode(one, skip_special_tokens=hidden) == wanted


def test_tokens_that_must_be_single_words_need_the_package_to_encode_and_not_to_decode(
    of_kind: Callable[[str], oga.Tokenizer], without: Callable[[str], None]
) -> None:
    tokenizer = of_kind("single_words")
    ids = tokenizer.encode(SINGLE_WORDS[0]).tolist()
    text = tokenizer.decode(ids)
    without("tokenizers")
    alone = oga.Tokenizer(tokenizer.path)
    assert alone.decode(ids) == text
    with pytest.raises(oga.UnsupportedError, match="the added token 'zebra' that must be a single word"):
        alone.encode("a")


def test_a_single_word_that_only_the_settings_name_is_one(tmp_path: Path, without: Callable[[str], None]) -> None:
    core = byte_level()
    named = {str(core.get_vocab_size()): {"content": "word", "single_word": True, "normalized": True}}
    tokenizer = oga.Tokenizer(write_folder(tmp_path, core, added_tokens_decoder=named))
    core.add_tokens([AddedToken("word", single_word=True, normalized=True)])
    text = "word aword words (word)"
    assert tokenizer.encode(text).tolist() == core.encode(text).ids
    assert core.encode(text).ids.count(core.token_to_id("word")) == 2
    without("tokenizers")
    with pytest.raises(oga.UnsupportedError, match="the added token 'word' that must be a single word"):
        oga.Tokenizer(tmp_path).encode(text)


def test_an_unknown_component_is_refused_by_name(tmp_path: Path) -> None:
    for member, value in (("model", {"type": "Novel"}), ("decoder", {"type": "WordPiece", "prefix": "#"})):
        description = FILES["byte_level"]() | {member: value}
        (tmp_path / "tokenizer.json").write_text(json.dumps(description))
        with pytest.raises(oga.UnsupportedError, match=f"'{value['type']}' is not supported"):
            oga.Tokenizer(tmp_path)


@pytest.mark.parametrize(
    ("member", "value"),
    [
        ("normalizer", {"type": "Sequence", "normalizers": [{"type": "NFC"}, {"type": "Novel"}]}),
        ("pre_tokenizer", {"type": "Novel"}),
        ("post_processor", {"type": "Novel", "more": [1]}),
    ],
)
def test_an_unknown_component_of_encoding_is_refused_by_name_and_does_not_hinder_decoding(
    tmp_path: Path, without: Callable[[str], None], member: str, value: dict[str, Any]
) -> None:
    (tmp_path / "tokenizer.json").write_text(json.dumps(FILES["byte_level"]() | {member: value}))
    tokenizer = oga.Tokenizer(tmp_path)
    assert tokenizer.decode([tokenizer.to_token_id("a")]) == "a"
    with pytest.raises(oga.UnsupportedError, match="'Novel' is not supported"):
        tokenizer.encode("a")
    without("tokenizers")
    with pytest.raises(oga.UnsupportedError, match="'Novel' is not supported"):
        oga.Tokenizer(tmp_path).encode("a", add_special_tokens=True)


def test_a_training_length_neither_cuts_nor_fills_up(tmp_path: Path) -> None:
    core = byte_level()
    core.enable_truncation(3)
    core.enable_padding(length=8, pad_token=SPECIALS[0])
    tokenizer = oga.Tokenizer(write_folder(tmp_path, core))
    assert tokenizer.encode("abcdefghij").tolist() == byte_level().encode("abcdefghij").ids
    assert tokenizer.encode("a").tolist() == byte_level().encode("a").ids


def test_tokens_that_only_the_settings_name_are_tokens(tmp_path: Path, without: Callable[[str], None]) -> None:
    core = byte_level()
    size = core.get_vocab_size()
    named = {
        str(size): {"content": "<|extra|>", "special": True},
        str(size + 1): {"content": "<|more|>", "rstrip": True},
    }
    folder = write_folder(tmp_path, core, added_tokens_decoder=named)
    (folder / "added_tokens.json").write_text(json.dumps({"<|late|>": size + 2}))
    core.add_special_tokens([AddedToken("<|extra|>", normalized=False)])
    core.add_tokens([AddedToken("<|more|>", rstrip=True), "<|late|>"])
    text = "a<|extra|>b<|more|>  c<|late|>"
    ids = core.encode(text).ids
    tokenizer = oga.Tokenizer(folder)
    assert tokenizer.encode(text).tolist() == ids
    assert tokenizer.decode(ids) == core.decode(ids)
    without("tokenizers")
    assert oga.Tokenizer(folder).encode(text).tolist() == ids


def test_roles_and_bytes_of_tokens(tmp_path: Path) -> None:
    tokenizer = oga.Tokenizer(write_folder(tmp_path, byte_level()))
    assert (tokenizer.bos_token_id, tokenizer.eos_token_ids, tokenizer.pad_token_id) == (0, [2], None)
    for marker in ("bot", "eot", "bor", "eor"):
        assert getattr(tokenizer, f"{marker}_token_id") is None
    ids = tokenizer.encode("🙂 w").tolist()
    assert b"".join(map(tokenizer.token_bytes, ids)) == "🙂 w".encode()
    assert tokenizer.token_bytes(-1) == tokenizer.token_bytes(10**6) == b""


def test_options_hold_until_a_call_says_otherwise(tmp_path: Path) -> None:
    tokenizer = oga.Tokenizer(write_folder(tmp_path, with_bos(byte_level())))
    tokenizer.update_options(add_special_tokens=False, skip_special_tokens=False)
    assert tokenizer.encode("a").tolist() == byte_level().encode("a").ids
    assert len(tokenizer.encode("a", add_special_tokens=True)) == 2
    assert tokenizer.decode([0]) == SPECIALS[0]
    assert tokenizer.decode([0], skip_special_tokens=True) == ""
    with pytest.raises(TypeError):
        tokenizer.update_options(add_special_tokens="no")  # type: ignore[arg-type]


def test_a_tokenizer_comes_from_models_and_configs_open_or_closed(tiny_folder: Path) -> None:
    with oga.Config(tiny_folder) as config:
        config.overlay({"model": {"pad_token_id": 3}})
        of_config = oga.Tokenizer(config)
        with oga.Model(config) as model:
            of_model = oga.Tokenizer(model)
            kept = model.tokenizer
        assert of_config.pad_token_id == of_model.pad_token_id == kept.pad_token_id == 3
    assert of_model.decode(kept.encode("the one")) == "the one"
    assert oga.Tokenizer(model).decode(oga.Tokenizer(tiny_folder).encode("the one")) == "the one"
    assert model.tokenizer is kept


def test_a_stream_outlives_its_tokenizer_and_is_closed_by_hand(tmp_path: Path) -> None:
    with oga.Tokenizer(write_folder(tmp_path, byte_level())) as tokenizer:
        ids = tokenizer.encode("hello").tolist()
        stream = tokenizer.create_stream()
    with stream:
        assert "".join(map(stream.decode, ids)) + stream.finish() == "hello"
    with pytest.raises(oga.InvalidStateError):
        stream.decode(0)
    with pytest.raises(oga.InvalidStateError):
        tokenizer.decode([0])
    with pytest.raises(TypeError):
        oga.TokenizerStream()


@pytest.mark.parametrize("wrong", [None, "a", 2**40, 1.5, True])
def test_a_stream_takes_token_ids_only(tokenizer: oga.Tokenizer, wrong: object) -> None:
    stream = tokenizer.create_stream()
    with pytest.raises(ValueError, match="token"):
        stream.decode(wrong)  # type: ignore[arg-type]


CHAT = [{"role": "user", "content": 'say "hi"\n\t\\ <3'}, {"role": "assistant", "content": "hi"}]


def test_a_conversation_becomes_text(tmp_path: Path) -> None:
    tokenizer = oga.Tokenizer(write_folder(tmp_path, byte_level()))
    wanted = oga.ChatTemplate(tokenizer).render(CHAT)
    assert tokenizer.apply_chat_template(CHAT) == wanted
    assert tokenizer.apply_chat_template(json.dumps(CHAT)) == wanted
    assert not tokenizer.apply_chat_template(CHAT, add_generation_prompt=False).endswith("assistant\n")
    assert tokenizer.apply_chat_template(CHAT, template_str="{{ tools[0] }}", tools="[1]") == "1"
    with pytest.raises(ValueError, match="messages is not valid JSON"):
        tokenizer.apply_chat_template("nothing")


def test_without_jinja_the_text_comes_from_onnxruntime_extensions(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tokenizer = oga.Tokenizer(write_folder(tmp_path, byte_level()))
    emits = "{{ bos_token }}{% for m in messages %}[{{ m.role }}] {{ m.content }}{{ eos_token }}{% endfor %}"
    wanted = [tokenizer.apply_chat_template(CHAT, template_str=template) for template in (None, emits)]
    monkeypatch.setattr("oga.chat.has_jinja", lambda: False)
    assert [tokenizer.apply_chat_template(CHAT, template_str=template) for template in (None, emits)] == wanted
    assert tokenizer.apply_chat_template(json.dumps(CHAT)) == wanted[0]
    with pytest.raises(oga.InvalidArgumentError, match="alternate"):
        tokenizer.apply_chat_template(CHAT, template_str="{{ raise_exception('roles must alternate') }}")
    with pytest.raises(oga.InvalidArgumentError, match="refused"):
        tokenizer.apply_chat_template(CHAT, template_str="{% for %}")
    with pytest.raises(oga.InvalidArgumentError, match="messages"):
        tokenizer.apply_chat_template("nothing")
    with pytest.raises(oga.UnsupportedError, match="tools"):
        tokenizer.apply_chat_template(CHAT, tools=[{"name": "f"}])


def test_the_path_of_the_extensions_may_be_given(tmp_path: Path) -> None:
    oga.set_ort_extensions_library(None)
    installed = extensions_library()
    assert installed is not None
    oga.set_ort_extensions_library(installed)
