"""StatusCode equals the constants of include/oga/result.h."""

from __future__ import annotations

import pytest

import oga
from oga._native.loader import lib


def test_the_codes_equal_the_constants_of_the_header() -> None:
    for code in oga.StatusCode:
        name = "".join(part.capitalize() for part in code.name.split("_"))
        assert getattr(lib, f"OgaStatusCode_{name}") == code, name


def test_a_failed_call_raises_with_its_code_and_sentence() -> None:
    with pytest.raises(oga.OgaError, match="verbose") as caught:
        oga.set_log_bool("verbose", True)
    assert caught.value.code is oga.StatusCode.INVALID_ARGUMENT


def test_a_code_prints_as_its_name() -> None:
    assert f"{oga.StatusCode.NOT_FOUND}" == "StatusCode.NOT_FOUND"
