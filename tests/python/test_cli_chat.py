"""oga chat and oga doctor: what a person sees at the terminal."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import pty
import re
import signal
import subprocess
import sys
import threading
from pathlib import Path

import pytest

import oga

SECONDS = 60


def command(*words: str | Path, said: str = "", **variables: str) -> subprocess.CompletedProcess[str]:
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)} | variables
    return subprocess.run(
        [sys.executable, "-m", "oga", *words],
        input=said,
        capture_output=True,
        text=True,
        env=environment,
        timeout=SECONDS,
        check=False,
    )


def test_each_line_is_a_message_or_a_command(tiny_folder: Path) -> None:
    said = 'the end\n/stats\nagain\\\nand again\n"""\nmany\nlines\n"""\n\n'
    said += "/rewind 2\n/stats\n/nope\n/set x 1\n/quit\nnever\n"
    done = command("chat", tiny_folder, "-n", "3", said=said)
    assert done.returncode == 0, done.stderr
    assert "this conversation: 1 turns" in done.stdout
    assert "Turn 2 is taken back. It was: again\nand again" in done.stdout
    assert re.search(r"this conversation: 1 turns, \d+ tokens\n$", done.stdout)
    assert "there is no /nope" in done.stderr
    assert "no keyword 'x'" in done.stderr
    with oga.LLM(tiny_folder) as llm:
        first = llm.chat([{"role": "user", "content": "the end"}], max_new_tokens=3)
    assert done.stdout.startswith(first.text)


def test_the_system_prompt_and_the_settings_act(tiny_folder: Path) -> None:
    said = "/system be brief\n/set max_new_tokens 4\n/set\nthe end\n/set max_new_tokens default\n/set\n"
    done = command("chat", tiny_folder, said=said)
    assert done.stdout.count("max_new_tokens 4") == 1
    messages = [{"role": "system", "content": "be brief"}, {"role": "user", "content": "the end"}]
    with oga.LLM(tiny_folder) as llm:
        assert llm.chat(messages, max_new_tokens=4).text in done.stdout


def test_copies_go_their_own_ways(tiny_folder: Path) -> None:
    said = "one\n/fork\ntwo\n/switch 1\n/switch\n/switch 9\n/reset\n/switch\n"
    done = command("chat", tiny_folder, "-n", "2", said=said)
    assert re.search(r"\* 1: 1 turns, \d+ tokens\n  2: 2 turns", done.stdout)
    assert done.stdout.endswith("* 1: 0 turns, 0 tokens\n")
    assert "copies 1 to 2" in done.stderr


def test_an_error_ends_the_answer_and_not_the_program(tiny_folder: Path) -> None:
    done = command("chat", tiny_folder, "-n", "2", said="x" * 2000 + "\nthe end\n/stats\n")
    assert done.returncode == 0
    assert len(done.stderr.strip().splitlines()) == 1
    assert "this conversation: 1 turns" in done.stdout


@pytest.mark.usefixtures("slow_steps")
def test_an_interrupt_ends_the_answer_and_not_the_program(
    tiny_folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    from oga.cli.chat import Chat

    with asyncio.Runner() as runner:
        engine = runner.run(oga.AsyncEngine(tiny_folder).open())
        talk = Chat(engine, runner, None, {"min_new_tokens": 150})
        threading.Timer(0.1, os.kill, (os.getpid(), signal.SIGINT)).start()
        talk.take("the end")
        assert "[stopped]" in capsys.readouterr().out
        turn = talk.conversation.turns[-1] if talk.conversation.turns else None
        assert turn is None or len(turn.token_ids) < 150
        talk._settings = {"max_new_tokens": 3}
        talk.take("again")
        assert len(talk.conversation.turns) == 2
        runner.run(engine.close())


def test_a_terminal_gets_a_prompt_and_a_history(tiny_folder: Path, tmp_path: Path) -> None:
    ours, theirs = pty.openpty()
    environment = os.environ | {
        "PYTHONPATH": os.pathsep.join(sys.path),
        "XDG_STATE_HOME": str(tmp_path),
        "TERM": "dumb",
    }
    arguments = [sys.executable, "-m", "oga", "chat", str(tiny_folder), "-n", "3"]
    with subprocess.Popen(arguments, stdin=theirs, stdout=theirs, stderr=theirs, env=environment) as process:
        os.close(theirs)
        os.write(ours, b"the end\n/quit\n")
        shown = b""
        with contextlib.suppress(OSError):  # the other end is closed
            while piece := os.read(ours, 4096):
                shown += piece
        assert process.wait(SECONDS) == 0
    os.close(ours)
    assert b"> " in shown
    assert re.search(rb"3 tokens, [\d.-]+ tokens/s, first after [\d.]+ s", shown)
    history = tmp_path / "oga" / "chat_history"
    assert history.read_text().splitlines()[-2:] == ["the end", "/quit"]
    assert history.stat().st_mode & 0o077 == 0


def test_the_doctor_finds_a_healthy_machine(tiny_folder: Path) -> None:
    done = command("doctor", tiny_folder)
    assert done.returncode == 0, done.stdout
    for name in ("python", "liboga", "onnxruntime", "tokenizers", "processor", "threads", "memory", "cache bytes"):
        assert re.search(rf"^(ok|note) +{name} ", done.stdout, re.MULTILINE), name
    assert "MISSING" not in done.stdout


def test_the_doctor_says_what_to_do(tmp_path: Path) -> None:
    done = command("doctor", tmp_path / "nothing", "--json", OGA_LIBRARY=str(tmp_path / "no.so"), OGA_CPU_ISA="avx2")
    assert done.returncode == 1
    findings = {each["name"]: each for each in json.loads(done.stdout)}
    assert findings["liboga"]["is_needed"]
    assert "Reinstall" in findings["liboga"]["problem"]
    assert "OGA_CPU_ISA" in findings["processor"]["problem"]
    assert findings["model"]["problem"]
