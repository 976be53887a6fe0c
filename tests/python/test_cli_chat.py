"""`oga chat`: at a terminal and in a pipe."""

from __future__ import annotations

import json
import shutil
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import tokenizers
from terminals import CTRL_C, CTRL_D, OnTerminal
from tokenizers.processors import TemplateProcessing
from typer.testing import CliRunner, Result

import oga
from oga.cli.answer import column_after
from oga.cli.app import app
from oga.cli.lines import append_history, assemble, read_history
from oga.turns import Turns

PASTE_BEGIN, PASTE_END = "\x1b[200~", "\x1b[201~"
# The tiny model says anything; this many tokens last a second and a half.
SLOW = """
import sys, time
from oga.turns import Turns
step = Turns.step
Turns.step = lambda turns: (time.sleep(0.015), step(turns))
sys.argv[0] = "oga"
from oga.cli import main
main()
"""


@pytest.fixture
def chat(tiny_folder: Path) -> Callable[..., Result]:
    """Runs a chat in this process, with lines from a pipe; answers have 6 tokens."""

    def run(*lines: str, folder: Path = tiny_folder, options: tuple[str, ...] = ()) -> Result:
        arguments = ["chat", str(folder), "--set", "ignore_eos=true", "-n", "6", *options]
        return CliRunner().invoke(app, arguments, input="".join(f"{line}\n" for line in lines))

    return run


Chat = Callable[..., Result]


@pytest.fixture
def begun(monkeypatch: pytest.MonkeyPatch) -> list[list[int]]:
    """The tokens that each turn fed to its sequence."""
    found: list[list[int]] = []
    begin = Turns.begin

    def noted(turns: Turns, tokens: Any, *arguments: Any, **keywords: Any) -> Any:
        found.append([int(token) for token in tokens])
        return begin(turns, tokens, *arguments, **keywords)

    monkeypatch.setattr(Turns, "begin", noted)
    return found


@pytest.fixture
def terminal(tiny_folder: Path, tmp_path: Path) -> Iterator[Callable[..., OnTerminal]]:
    """Starts a slow chat on a terminal."""
    opened: list[OnTerminal] = []

    def start(*options: str) -> OnTerminal:
        command = [sys.executable, "-c", SLOW, "chat", tiny_folder, "--set", "ignore_eos=true", *options]
        opened.append(OnTerminal(command, {"XDG_STATE_HOME": str(tmp_path), "INPUTRC": "/dev/null"}))
        opened[-1].expect("> ")
        return opened[-1]

    yield start
    for each in opened:
        each.__exit__()


def answers(model: oga.Model, *questions: str, system: str | None = None, count: int = 6) -> list[str]:
    """What the model answers to questions of one conversation."""
    messages: list[dict[str, str]] = [] if system is None else [{"role": "system", "content": system}]
    found = []
    with oga.Engine(model) as engine:
        for question in questions:
            messages.append({"role": "user", "content": question})
            found.append("".join(engine.stream(messages, max_new_tokens=count, ignore_eos=True)))
            messages.append({"role": "assistant", "content": found[-1]})
    return found


def lines_of(*texts: str) -> str:
    return "".join(text if text.endswith("\n") else f"{text}\n" for text in texts if text)


def test_a_pipe_gets_the_answers_of_one_conversation_and_nothing_else(chat: Chat, model: oga.Model) -> None:
    done = chat("hello", "and then", "the end")
    assert (done.exit_code, done.stderr) == (0, "")
    assert done.stdout == lines_of(*answers(model, "hello", "and then", "the end"))


@pytest.fixture(scope="module")
def scripted_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A model whose answers are written in whole words, so that they read back as the same tokens."""
    from scripted_llama import write_scripted_llama

    from oga import export

    home = tmp_path_factory.mktemp("scripted")
    source = write_scripted_llama(home / "source", {"1": [b"UNO", b" DUE"], "2": [b"Al", b"ice"], "3": [b"TRE"]})
    return export.convert(source, home / "model", precision="fp32").folder


@pytest.mark.parametrize("template_has_bos", [False, True])
@pytest.mark.parametrize("tokenizer_has_bos", [False, True])
def test_later_turns_feed_only_what_is_new_and_one_bos_in_all(
    scripted_folder: Path, tmp_path: Path, begun: list[list[int]], template_has_bos: bool, tokenizer_has_bos: bool
) -> None:
    folder = tmp_path / "model"
    shutil.copytree(scripted_folder, folder)
    core = tokenizers.Tokenizer.from_file(str(folder / "tokenizer.json"))
    bos = "<|im_start|>"
    if tokenizer_has_bos:
        core.post_processor = TemplateProcessing(single=f"{bos} $A", special_tokens=[(bos, core.token_to_id(bos))])
        core.save(str(folder / "tokenizer.json"))
    template = "{% for message in messages %}{% if message['role'] == 'user' %}user: {{ message['content'] }}"
    template += "{% else %}{{ message['content'] }}\n{% endif %}{% endfor %}"
    settings = json.loads((folder / "tokenizer_config.json").read_text())
    settings |= {"bos_token": bos, "chat_template": "{{ bos_token }}" * template_has_bos + template}
    (folder / "tokenizer_config.json").write_text(json.dumps(settings))
    (folder / "chat_template.jinja").unlink(missing_ok=True)

    done = CliRunner().invoke(app, ["chat", str(folder)], input="say 1\nsay 2\nsay 3\n")

    assert done.stdout == "UNO DUE\nAlice\nTRE\n"
    firsts = core.token_to_id(bos) if template_has_bos or tokenizer_has_bos else None
    assert [tokens.count(core.token_to_id(bos)) for tokens in begun] == [int(firsts is not None), 0, 0]
    assert firsts is None or begun[0][0] == firsts
    said = [core.decode(tokens) for tokens in begun]
    assert said == ["user: say 1", "\nuser: say 2", "\nuser: say 3"]


def test_rewinding_lets_another_question_take_the_place(chat: Chat, model: oga.Model) -> None:
    done = chat("first", "wrong", "worse", "/rewind 2", "second")
    first, second = answers(model, "first", "second")
    assert done.exit_code == 0
    assert done.stdout.startswith(lines_of(first))
    assert done.stdout.endswith(lines_of(second))
    assert "2 turns taken back, 1 turn left. Taken back first: wrong" in done.stderr


def test_a_fork_goes_its_own_way_and_the_original_stays(chat: Chat, model: oga.Model) -> None:
    done = chat("root", "/fork", "left", "/switch 1", "right", "/switch")
    assert done.exit_code == 0
    root, left = answers(model, "root", "left")
    _, right = answers(model, "root", "right")
    assert done.stdout == lines_of(root, left, right)
    assert done.stderr.splitlines()[-2:] == ["* 1  2 turns: right", "  2  2 turns: left"]


def test_reset_begins_again(chat: Chat, model: oga.Model) -> None:
    (plain,), (brief,) = answers(model, "hi"), answers(model, "hi", system="be brief")
    assert plain != brief
    assert chat("hi", "/reset", "hi").stdout == lines_of(plain, plain)
    options = ("--system", "be brief")
    assert chat("hi", "/reset", "hi", options=options).stdout == lines_of(brief, brief)


def test_another_system_message_acts_on_what_was_said_before(chat: Chat, model: oga.Model) -> None:
    done = chat("hi", "/system be brief", "again", "/rewind", "/system", "/system none", "again")
    assert done.exit_code == 0
    first, plain = answers(model, "hi", "again")
    messages = [{"role": "system", "content": "be brief"}, {"role": "user", "content": "hi"}]
    messages += [{"role": "assistant", "content": first}, {"role": "user", "content": "again"}]
    with oga.Engine(model) as engine:
        brief = "".join(engine.stream(messages, max_new_tokens=6, ignore_eos=True))
    assert brief != plain
    assert done.stdout == lines_of(first, brief, plain)
    assert "The system message is: be brief" in done.stderr


def test_settings_act_on_the_next_answer(chat: Chat, model: oga.Model, scripted_folder: Path) -> None:
    (short,), (long,) = answers(model, "hi", count=2), answers(model, "hi", count=6)
    done = chat("/set max_tokens 2", "hi", "/reset", "/set max_tokens 6", "hi", "/set")
    assert done.stdout == lines_of(short, long)
    assert "Known: max_tokens, min_tokens, stop, seed" in done.stderr
    assert done.stderr.splitlines()[-1] == "Set: ignore_eos true, max_tokens 6"
    assert "seed: Makes sampling reproducible." in chat("/set seed 3", "/set seed").stderr
    for stop in ('" DUE"', '["DUE", "x"]', "'\\n' ' D'"):
        done = CliRunner().invoke(app, ["chat", str(scripted_folder)], input=f"/set stop {stop}\nsay 1\n")
        assert done.stdout.strip() == "UNO"
    hot = ("--set", "temperature=5", "--set", "seed=3")
    drawn = chat("hi", options=hot).stdout
    assert drawn == chat("hi", options=hot).stdout != lines_of(long)
    assert chat("/set temperature default", "hi", options=hot).stdout == lines_of(long)


@pytest.mark.parametrize(
    ("line", "sentence"),
    [
        ("/rewnd", "There is no /rewnd; the nearest is /rewind."),
        ("/set temprature 1", "There is no setting 'temprature'; the nearest is 'temperature'."),
        ("/set top_p 7", "top_p"),
        ("/set top_k many", "top_k: 'many' is no integer."),
        ("/set top_q", "There is no setting 'top_q'; the nearest is 'top_p'."),
        ("/set ignore_eos maybe", "neither true nor false"),
        ("/set stop [1]", "strings only"),
        ("/rewind", "nothing to rewind"),
        ("/switch 2", "'2' is no number from 1 to 1"),
        ("/reset now", "/reset takes nothing after it"),
        ("far too long " * 100, "session limit of 256"),
    ],
)
def test_what_cannot_be_done_is_said_and_the_conversation_goes_on(
    chat: Chat, model: oga.Model, line: str, sentence: str
) -> None:
    done = chat(line, "hi")
    assert done.exit_code == 1
    assert sentence in done.stderr.splitlines()[0]
    assert done.stderr.startswith("oga: error: ")
    assert done.stdout == lines_of(*answers(model, "hi"))


def test_a_setting_without_effect_is_refused_with_the_cause(chat: Chat, model: oga.Model) -> None:
    done = chat("/set temperature 0", "/set top_p 0.5", "hi")
    assert done.exit_code == 1
    assert "oga: error: top_p is 0.5, which has no effect: temperature is 0" in done.stderr
    assert "do_sample" not in done.stderr
    assert done.stdout == lines_of(*answers(model, "hi"))


def test_stats_count_what_the_conversation_holds(chat: Chat) -> None:
    lines = dict(line.split("  ", 1) for line in chat("hi", "again", "/stats").stderr.splitlines())
    assert lines["conversation"].startswith("2 turns, ")
    assert lines["last answer"].strip().startswith("6 tokens, ")
    assert lines["engine"].strip().startswith("12 tokens in ")
    assert lines["settings"].strip() == "ignore_eos true, max_tokens 6"


def test_several_lines_make_one_message(chat: Chat, begun: list[list[int]], tiny_folder: Path) -> None:
    assert chat("a\\", "b", '"""', "c", "", 'd"""', '"""e"""', "//f", "", '"""g').exit_code == 0
    with oga.Tokenizer(tiny_folder) as tokenizer:
        asked = [tokenizer.decode(tokens) for tokens in begun]
    for message, text in zip(("a\nb", "c\n\nd", "e", "/f", "g"), asked, strict=True):
        assert f"user\n{message}" in text


def test_lines_are_put_together() -> None:
    def read(*lines: str) -> str | None:
        rest = iter(lines)
        return assemble(lambda _: next(rest, None), "> ")

    assert read() is None
    assert read("a\\", "b\\") == "a\nb\n"
    assert read('"""a', "b", '"""') == "a\nb"
    assert read('"""', 'a"""') == "a"
    assert read('""""""') == ""


def test_a_history_survives_and_is_nobody_elses(tmp_path: Path) -> None:
    path = tmp_path / "deep" / "history"
    assert read_history(path) == []
    for message in ("one", "two\nlines", "é"):
        append_history(path, message)
    with path.open("a") as file:
        file.write("no json\n5\n")
    assert read_history(path) == ["one", "two\nlines", "é"]
    assert path.stat().st_mode & 0o077 == 0
    for number in range(3000):
        append_history(path, str(number))
    assert read_history(path)[-1] == "2999"
    assert len(path.read_text().splitlines()) == 1000
    append_history(tmp_path, "a folder is no history")


def test_the_column_of_the_cursor_is_known() -> None:
    assert column_after("abc", 0, 80) == 3
    assert column_after("abc\nd", 5, 80) == 1
    assert column_after("abc", 78, 80) == 1
    assert column_after("ab", 78, 80) == 80
    assert column_after("日本", 0, 80) == 4
    assert column_after("a\tb", 0, 80) == 9
    assert column_after("日", 79, 80) == 2  # half of it does not fit
    assert column_after("e\u0301", 79, 80) == 80
    assert column_after("a\t", 79, 80) == 79


def test_ctrl_c_ends_the_answer_and_the_conversation_goes_on(terminal: Callable[..., OnTerminal]) -> None:
    shown = terminal()
    shown.send("hello\r")
    shown.expect("tokens/s")
    shown.send(CTRL_C)
    shown.expect("stopped; the conversation keeps what is there")
    shown.expect("> ")
    shown.send("/set max_tokens 5\r")
    shown.expect("Set: ")
    shown.expect("> ")
    shown.send("and now\r")
    shown.expect("5 tokens, ")
    shown.expect("cut at max_tokens")
    shown.expect("> ")
    shown.send("/stats\r")
    shown.expect("conversation  2 turns, ")
    shown.expect("> ")
    shown.send("never sent")
    shown.interrupt("> ")
    shown.send(CTRL_D)
    assert shown.end() == 0
    assert "Traceback" not in shown.raw


def test_lines_can_be_edited_completed_found_again_and_pasted(
    terminal: Callable[..., OnTerminal], tmp_path: Path
) -> None:
    shown = terminal("--set", "max_tokens=2")
    shown.send("hexlo\x1b[D\x1b[D\x7fl\r")  # twice to the left, and one letter for another
    shown.expect("cut at max_tokens")
    shown.expect("> ")
    shown.send(f"{PASTE_BEGIN}two\nlines{PASTE_END}\r")
    shown.expect("cut at max_tokens")
    shown.expect("> ")
    shown.send("/st\t\r")
    shown.expect("conversation  2 turns")
    shown.expect("> ")
    shown.send("/rewind\r")
    shown.expect("Taken back first: two lines")
    shown.expect("> ")
    shown.send("/quit\r")
    assert shown.end() == 0
    kept = read_history(tmp_path / "oga" / "chat_history.jsonl")
    assert kept == ["hello", "two\nlines", "/stats ", "/rewind", "/quit"]
    again = terminal("--set", "max_tokens=2")
    again.send("\x1b[A\x1b[A\x1b[A\r")
    again.expect("conversation  0 turns")
    again.expect("> ")
    again.send(CTRL_D)
    assert again.end() == 0


def test_nothing_is_kept_when_nothing_shall_be(terminal: Callable[..., OnTerminal], tmp_path: Path) -> None:
    shown = terminal("--no-history")
    shown.send("/fork\r")
    shown.expect("[2]> ")
    shown.send('"""\ropen')
    shown.expect("... ")
    shown.interrupt("[2]> ")
    shown.send("/quit\r")
    assert shown.end() == 0
    assert not (tmp_path / "oga").exists()
