"""Every status code becomes the exception that a Python programmer expects."""

from __future__ import annotations

import pickle

import pytest

import oga
from oga.errors import error_type

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


@pytest.mark.parametrize("code", [code for code in oga.StatusCode if code is not oga.StatusCode.OK])
def test_a_code_has_its_own_exception(code: oga.StatusCode) -> None:
    error = error_type(code)("the message")
    assert error.code is code
    assert isinstance(error, BUILT_IN[code])
    assert isinstance(error, oga.OgaError)
    assert isinstance(error, RuntimeError)
    assert str(error) == "the message"


def test_a_missing_file_is_a_file_not_found_error() -> None:
    error = error_type(oga.StatusCode.NOT_FOUND, about_files=True)("folder does not exist")
    assert isinstance(error, FileNotFoundError)
    assert isinstance(error, oga.NotFoundError)
    assert str(error) == "folder does not exist"


def test_a_code_of_a_newer_library_is_still_an_oga_error() -> None:
    assert error_type(4711) is oga.OgaError


def test_an_error_survives_pickling() -> None:
    error = pickle.loads(pickle.dumps(oga.MissingFileError("gone")))
    assert (type(error), str(error)) == (oga.MissingFileError, "gone")
