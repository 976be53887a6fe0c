"""StringArray: strings as the C API passes them."""

from __future__ import annotations

from typing import Any

import pytest

import oga

TEXTS = ["", "plain", "héllo 🙂", "two\nlines"]


def test_strings_come_back_as_they_went_in() -> None:
    with oga.StringArray(TEXTS) as strings:
        strings.append("more")
        strings.append(b"bytes \xc3\xa9")
        assert list(strings) == [*TEXTS, "more", "bytes é"]
        assert len(strings) == 6
        assert strings[-1] == "bytes é"


def test_an_empty_one_grows() -> None:
    with oga.StringArray() as strings:
        assert len(strings) == 0
        strings.append("x")
        assert list(strings) == ["x"]


@pytest.mark.parametrize("wrong", ["abc", b"abc", [1], [None], 5])
def test_what_is_no_list_of_strings_is_a_type_error(wrong: Any) -> None:
    with pytest.raises(TypeError):
        oga.StringArray(wrong)


@pytest.mark.parametrize("text", ["a\0b", "\ud800"])
def test_what_c_cannot_carry_is_refused(text: str) -> None:
    with pytest.raises(oga.InvalidArgumentError):
        oga.StringArray([text])
    with oga.StringArray() as strings:
        with pytest.raises(oga.InvalidArgumentError):
            strings.append(text)
        assert len(strings) == 0


def test_indices_behave_as_those_of_a_list() -> None:
    with oga.StringArray(["a"]) as strings:
        for index in (1, -2):
            with pytest.raises(IndexError):
                strings[index]


def test_a_closed_one_says_so() -> None:
    strings = oga.StringArray(["a"])
    strings.close()
    for use in (lambda: len(strings), lambda: strings[0], lambda: strings.append("b")):
        with pytest.raises(oga.InvalidStateError, match="StringArray cannot be used"):
            use()
