"""``make peers``, with peers that take no time."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import peers
import pytest
from tiny_llama import write_tiny_llama


@pytest.fixture
def arguments(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """What the program is called with: a tiny model, and a folder that is not there yet."""
    made = [str(write_tiny_llama(tmp_path / "model", hidden_size=64)), str(tmp_path / "peers")]
    monkeypatch.setattr(sys, "argv", ["peers", *made])
    return made


def engines(folder: str) -> dict[str, dict[str, str]]:
    found: dict[str, dict[str, str]] = json.loads((Path(folder) / "engines.json").read_text(encoding="utf-8"))[
        "engines"
    ]
    return found


def test_a_peer_that_cannot_be_installed_is_left_out_and_the_others_are_ready(
    arguments: list[str], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def broken(model: Path, peer: peers.Peer) -> peers.Engines:
        peer.run(sys.executable, "-c", "raise SystemExit('no such wheel')")
        return {}

    monkeypatch.setattr(peers, "PEERS", {"broken": broken, "oga": peers.oga})
    assert peers.main() == 1
    printed = capsys.readouterr().out.splitlines()
    log = Path(arguments[1]) / "broken" / "setup.log"
    assert printed[0].startswith("broken: left out: ")
    assert printed[0].endswith(f"see {log}")
    assert "no such wheel" in log.read_text(encoding="utf-8")
    assert printed[1:] == ["oga: ready"]
    assert list(engines(arguments[1])) == ["oga-int4", "oga-int8"]
    assert all((Path(each["model"]) / "model.onnx").is_file() for each in engines(arguments[1]).values())


def test_a_second_run_keeps_what_is_there_and_makes_what_was_cut_off(
    arguments: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = Path(arguments[1])
    made: list[str] = []
    cut_off = True

    def fill(path: Path) -> None:
        path.mkdir()
        made.append(path.name)
        (path / "half").touch()
        if cut_off:
            raise subprocess.CalledProcessError(1, "make")

    def slow(model: Path, peer: peers.Peer) -> peers.Engines:
        return {"slow": {"engine": "slow", "model": str(peer.made("int4", fill))}}

    monkeypatch.setattr(peers, "PEERS", {"slow": slow})
    assert peers.main() == 1
    assert not (folder / "slow" / "int4").exists()
    cut_off = False
    assert peers.main() == 0
    assert peers.main() == 0
    assert len(made) == 2
    assert engines(arguments[1]) == {"slow": {"engine": "slow", "model": str(folder / "slow" / "int4")}}
