"""Log: channels on and off, lines to a function."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import oga


@pytest.fixture
def lines() -> Iterator[list[str]]:
    """The log lines of a test."""
    received: list[str] = []
    oga.set_log_callback(received.append)
    yield received
    oga.set_log_callback(None)
    oga.set_log_options(info=False, warning=True)


def provoke(folder: Path, key: str) -> None:
    """Makes liboga say something: a key that it does not know, outside of `engine`."""
    with oga.Config(folder) as config:
        config.overlay({"model": {key: 1}})
        oga.Model(config).close()


def test_lines_reach_the_callback_whole(tiny_folder: Path, lines: list[str]) -> None:
    oga.set_log_options(enabled=True, info=True)
    provoke(tiny_folder, "wärme")
    assert any("wärme" in line for line in lines)
    assert not any(line.endswith("\n") for line in lines)


def test_a_channel_that_is_off_is_silent(tiny_folder: Path, lines: list[str]) -> None:
    oga.set_log_options(info=False, warning=False)
    provoke(tiny_folder, "unheard")
    assert lines == []


def test_none_restores_standard_error(tiny_folder: Path, lines: list[str], capfd: pytest.CaptureFixture[str]) -> None:
    oga.set_log_options(enabled=True, info=True)
    oga.set_log_callback(None)
    provoke(tiny_folder, "audible")
    assert lines == []
    assert "audible" in capfd.readouterr().err


def test_what_a_callback_raises_does_not_reach_the_caller(
    tiny_folder: Path, lines: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    reported: list[Any] = []
    monkeypatch.setattr(sys, "unraisablehook", reported.append)

    def broken(line: str) -> None:
        raise ValueError("no good")

    oga.set_log_options(enabled=True, info=True)
    oga.set_log_callback(broken)
    provoke(tiny_folder, "whatever")
    oga.set_log_callback(None)
    assert {str(report.exc_value) for report in reported} == {"no good"}


def test_an_unknown_channel_is_named() -> None:
    with pytest.raises(oga.InvalidArgumentError, match=r"(?s)verbose.*warning"):
        oga.set_log_options(verbose=True)


def test_arguments_are_checked() -> None:
    with pytest.raises(TypeError, match="callable"):
        oga.set_log_callback("print")  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="value"):
        oga.set_log_bool("info", 1)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="name"):
        oga.set_log_bool(3, True)  # type: ignore[arg-type]


def test_a_callback_set_at_exit_does_no_harm() -> None:
    script = "import oga; oga.set_log_callback(print)"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=60, check=False)
    assert (done.returncode, done.stderr) == (0, "")
