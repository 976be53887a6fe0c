"""The `oga` command: answers, files, machines, mistakes and Ctrl-C."""

from __future__ import annotations

import contextlib
import io
import json
import os
import pty
import re
import shutil
import signal
import subprocess
import sys
import termios
import xml.etree.ElementTree as ElementTree
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from driving import generate
from typer.testing import CliRunner, Result

import oga
from oga._native.loader import library_path
from oga.cli.app import app
from oga.stream import Stream

TOTALS = r"\d+ tokens in \d+\.\d\d s, \d+\.\d tokens/s, \d+ steps, \d+\.\d\d rows per step on average"


@pytest.fixture
def invoke() -> Callable[..., Result]:
    """Runs the command in this process."""

    def run(*arguments: Any, **options: Any) -> Result:
        return CliRunner().invoke(app, [str(argument) for argument in arguments], **options)

    return run


Invoke = Callable[..., Result]


def oga_command(*arguments: Any, **options: Any) -> subprocess.CompletedProcess[str]:
    """Runs the command in a process of its own."""
    environment = {**os.environ, "OGA_LIBRARY": str(library_path()), "PYTHONPATH": ":".join(sys.path)}
    environment |= options.pop("env", {})
    return subprocess.run(
        [sys.executable, "-m", "oga", *map(str, arguments)],
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
        env=environment,
        **options,
    )


def answer(engine: oga.Engine, prompt: str, count: int, system: str | None = None) -> str:
    """What the tiny model answers to a chat prompt."""
    messages = [{"role": "system", "content": system}] if system is not None else []
    tokens = engine.model.chat_template.encode([*messages, {"role": "user", "content": prompt}])
    return engine.model.tokenizer.decode(generate(engine, tokens.tolist(), count))


def test_one_answer_streams_and_ends_with_the_totals(invoke: Invoke, engine: oga.Engine, tiny_folder: Path) -> None:
    done = invoke("run", tiny_folder, "the end", "-n", 9)
    assert done.exit_code == 0, done.output
    assert done.stdout.startswith(answer(engine, "the end", 9) + "\n")
    assert re.fullmatch(TOTALS, done.stdout.splitlines()[-1])


def test_several_prompts_are_answered_together_and_printed_in_order(
    invoke: Invoke, engine: oga.Engine, tiny_folder: Path
) -> None:
    prompts = ["one", "a longer second prompt", "three"]
    done = invoke("run", tiny_folder, *prompts, "-n", 12)
    blocks = [f"[{number}] {prompt}\n{answer(engine, prompt, 12)}\n" for number, prompt in enumerate(prompts, start=1)]
    assert done.stdout.startswith("\n".join(blocks))
    rows = float(done.stdout.rsplit(", ", 1)[1].split()[0])
    assert rows > 1.5


def test_json_carries_everything(invoke: Invoke, engine: oga.Engine, tiny_folder: Path) -> None:
    done = invoke("run", tiny_folder, "one", "two", "-n", 7, "--json")
    content = json.loads(done.stdout)
    assert [entry["prompt"] for entry in content["answers"]] == ["one", "two"]
    assert [entry["text"] for entry in content["answers"]] == [answer(engine, prompt, 7) for prompt in ("one", "two")]
    for entry in content["answers"]:
        assert entry["error"] is None
        assert entry["finish_reason"] in ("eos", "max_generated_tokens")
        assert entry["usage"]["generated_tokens"] == len(entry["token_ids"])
    totals = content["totals"]
    assert totals["tokens"] == sum(len(entry["token_ids"]) for entry in content["answers"])
    assert totals["rows_per_step"] == totals["rows"] / totals["steps"]
    assert totals["tokens_per_second"] > 0


def test_quiet_prints_the_answers_only(invoke: Invoke, engine: oga.Engine, tiny_folder: Path) -> None:
    done = invoke("run", tiny_folder, "one", "two", "-n", 5, "-q")
    assert done.stdout == f"{answer(engine, 'one', 5)}\n\n{answer(engine, 'two', 5)}\n"


def test_raw_text_goes_without_the_template(invoke: Invoke, engine: oga.Engine, tiny_folder: Path) -> None:
    tokenizer = engine.model.tokenizer
    wanted = tokenizer.decode(generate(engine, tokenizer.encode("the end").tolist(), 6))
    assert invoke("run", tiny_folder, "the end", "--raw", "-n", 6, "-q").stdout == wanted + "\n"


def test_a_system_message_goes_in_front(invoke: Invoke, engine: oga.Engine, tiny_folder: Path) -> None:
    done = invoke("run", tiny_folder, "hi", "--system", "be brief", "-n", 6, "-q")
    assert done.stdout == answer(engine, "hi", 6, "be brief") + "\n"


def test_prompts_come_from_files_and_standard_input(
    invoke: Invoke, engine: oga.Engine, tiny_folder: Path, tmp_path: Path
) -> None:
    lines, strings = tmp_path / "prompts.txt", tmp_path / "prompts.jsonl"
    lines.write_text("first\n\n  second  \n", encoding="utf-8")
    strings.write_text('"two\\nlines"\n"é"\n', encoding="utf-8")

    def prompts(*arguments: Any, **options: Any) -> list[str]:
        done = invoke("run", tiny_folder, *arguments, "-n", 1, "--json", **options)
        return [entry["prompt"] for entry in json.loads(done.stdout)["answers"]]

    assert prompts("--file", lines) == ["first", "  second  "]
    assert prompts("-f", strings) == ["two\nlines", "é"]
    assert prompts("zero", "-f", lines) == ["zero", "first", "  second  "]
    assert prompts(input="all of it\nas one") == ["all of it\nas one"]
    assert prompts("a", "-", input="b") == ["a", "b"]


def test_sampling_is_off_unless_asked_for_and_a_seed_repeats_it(invoke: Invoke, tiny_folder: Path) -> None:
    def run(*options: Any) -> str:
        return invoke("run", tiny_folder, "x", "-n", 20, "-q", *options).stdout

    greedy = run()
    assert run() == run("--greedy") == run("--temperature", 0) == greedy
    hot = ("--temperature", 5, "--top-k", 0, "--seed", 4)
    assert run(*hot) == run(*hot) != greedy


def test_a_prompt_that_fails_does_not_stop_the_others(invoke: Invoke, poisoned_folder: Path) -> None:
    alone = invoke("run", poisoned_folder, "the end", "--raw", "-n", 8, "-q").stdout
    done = invoke("run", poisoned_folder, "aZ", "the end", "--raw", "-n", 8, "-q")
    assert done.exit_code == 1
    assert done.stdout.endswith("\n\n" + alone)
    assert done.stdout.startswith("[failed: ")
    assert done.stderr.startswith("oga: error: 1 of 2 prompts failed; prompt 1: ")
    answers = json.loads(invoke("run", poisoned_folder, "aZ", "the end", "--raw", "-n", 8, "--json").stdout)["answers"]
    assert [answer["error"] is None for answer in answers] == [False, True]
    assert answers[0]["finish_reason"] == "failed"


def test_an_overlay_changes_the_engine(invoke: Invoke, tiny_folder: Path) -> None:
    overlay = json.dumps({"engine": {"dynamic_batching": {"max_batch_size": 1}}})
    done = invoke("run", tiny_folder, "a", "b", "-n", 4, "--json", "--overlay", overlay)
    assert json.loads(done.stdout)["totals"]["rows_per_step"] == 1.0


def test_info_says_what_a_model_is(invoke: Invoke, tiny_folder: Path) -> None:
    facts = json.loads(invoke("info", tiny_folder, "--json").stdout)
    assert facts["family"] == "llama"
    assert facts["device"] == "CPU"
    assert facts["longest_request_tokens"] == 256
    assert facts["cache_bytes"] > 0
    assert facts["onnxruntime"] == oga.get_ort_version()
    assert facts["kernels"] == oga.get_cpu_isa()
    shown = invoke("info", tiny_folder).stdout
    assert "llama" in shown
    assert oga.__version__ in shown


def test_convert_writes_a_folder_that_runs(invoke: Invoke, tmp_path: Path) -> None:
    from tiny_llama import write_tiny_llama

    source, target = write_tiny_llama(tmp_path / "source"), tmp_path / "target folder"
    done = invoke("convert", source, target, "--precision", "int8")
    assert done.exit_code == 0, done.output
    assert ", int8, bf16 cache, 256 tokens of context" in done.stdout
    assert f"Run it: oga run '{target}'" in done.stdout
    assert invoke("run", target, "x", "-n", 3).exit_code == 0
    again = invoke("convert", source, target)
    assert again.exit_code == 1
    assert str(target) in again.stderr
    report = json.loads(invoke("convert", source, target, "--cache", "fp16", "--force", "--json").stdout)
    assert report["folder"] == str(target)
    assert (report["precision"], report["cache"]) == ("fp32", "fp16")


def test_convert_stores_blocks_as_it_is_told_or_says_what_does_not_go_together(invoke: Invoke, tmp_path: Path) -> None:
    from exported import block_shapes
    from tiny_llama import write_tiny_llama

    source, target = write_tiny_llama(tmp_path / "source", model_type="qwen2"), tmp_path / "target"
    blocks = ("--precision", "int4", "--block-size", 16, "--symmetric", "--head-precision", "int8")
    assert invoke("convert", source, target, *blocks).exit_code == 0
    shapes = block_shapes(target)
    assert shapes.pop("model.embed_tokens") == (8, 16, False)
    assert set(shapes.values()) == {(4, 16, False)}
    assert invoke("run", target, "x", "-n", 3).exit_code == 0
    refused = invoke("convert", source, tmp_path / "other", "--precision", "int4", "--block-size", 24)
    assert refused.exit_code == 1
    assert "block size 24 cannot be stored; known: 16, 32, 64, 128, 256" in refused.stderr.replace("\n", " ")
    refused = invoke("convert", source, tmp_path / "other", "--symmetric")
    assert "symmetric is a choice of int4, not of precision fp32" in refused.stderr.replace("\n", " ")


@pytest.fixture
def pulled(tiny_folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A cache in which the tiny model stands under the name smollm2."""
    from oga.export import pulling

    monkeypatch.setenv("OGA_CACHE", str(tmp_path))
    for precision in ("fp32", "bf16", "fp16", "int8", "int4"):
        shutil.copytree(tiny_folder, pulling._model_folder("smollm2", None, precision))
    return pulling._model_folder("smollm2", None, "fp32")


def test_a_pulled_model_runs_by_its_name(invoke: Invoke, pulled: Path) -> None:
    done = invoke("pull", "smollm2")
    assert done.stdout == f'smollm2 is in {pulled}. Run it: oga run smollm2 "Hello!"\n'
    assert json.loads(invoke("pull", "smollm2", "--json").stdout)["folder"] == str(pulled)
    assert invoke("run", "smollm2", "x", "-n", 2).exit_code == 0
    assert json.loads(invoke("info", "smollm2", "--json").stdout)["model"] == str(pulled)
    for precision in ("bf16", "fp16", "int8", "int4"):
        other = json.loads(invoke("pull", "smollm2", "--precision", precision, "--json").stdout)["folder"]
        assert precision in Path(other).name
        assert f'oga run {other} "Hello!"' in invoke("pull", "smollm2", "--precision", precision).stdout


def test_a_trace_is_summarised_and_drawn(invoke: Invoke, engine: oga.Engine, tmp_path: Path) -> None:
    path = tmp_path / "trace.jsonl"
    engine.set_trace_file(path)
    streams = [engine.stream([5, 6, 7], max_new_tokens=4, min_new_tokens=4) for _ in range(6)]
    assert [len(list(stream)) for stream in streams] == [4] * 6
    engine.set_trace_file(None)
    counts = engine.get_statistics()
    summary = json.loads(invoke("trace", path, "--json").stdout)
    assert summary["requests"] == 6
    assert summary["steps"] == counts.steps
    assert summary["rows"] == counts.rows
    assert summary["prefill_tokens"] == 18
    assert summary["decode_tokens"] == 18
    assert summary["waits"]["rows"] > 0
    assert summary["microseconds"]["execute"] > 0
    shown = invoke("trace", path).stdout.splitlines()
    assert shown[0].startswith(f"{counts.steps} steps of 6 requests")
    rows = [line for line in shown if line.startswith("request ")]
    assert len(rows) == 6
    assert re.fullmatch(r"request \d+  #---", rows[0])
    assert re.fullmatch(r"request \d+  \.+#---", rows[-1])


def test_a_run_writes_a_trace_that_becomes_a_picture(invoke: Invoke, tiny_folder: Path, tmp_path: Path) -> None:
    trace, picture = tmp_path / "trace.jsonl", tmp_path / "timeline.svg"
    assert invoke("run", tiny_folder, "Hello", "World", "-n", "3", "--trace", trace).exit_code == 0
    assert invoke("trace", trace, "--plot", picture).exit_code == 0
    root = ElementTree.parse(picture).getroot()
    assert root.tag.endswith("svg")
    titles = [title.text or "" for title in root.iter("{http://www.w3.org/2000/svg}title")]
    assert sum("request" in title for title in titles) == sum(
        len(json.loads(line)["rows"]) for line in trace.read_text().splitlines()
    )
    assert invoke("trace", trace, "--plot", tmp_path / "absent" / "x.svg").exit_code == 1


@pytest.mark.parametrize("content", ["", "{}\n", "no json\n", '{"attempt": 1}\n{"attempt": 2}\n'])
def test_a_file_that_is_no_trace_is_refused(invoke: Invoke, tmp_path: Path, content: str) -> None:
    path = tmp_path / "trace.jsonl"
    path.write_text(content, encoding="utf-8")
    done = invoke("trace", path)
    assert done.exit_code == 1
    assert str(path) in done.stderr


def test_pulling_without_a_network_says_what_to_do(tmp_path: Path) -> None:
    done = oga_command("pull", "smollm2", env={"OGA_CACHE": str(tmp_path), "PIP_NO_INDEX": "1"})
    assert done.returncode == 1
    (line,) = done.stderr.splitlines()
    assert line.startswith("oga: error: ")
    assert "network" in line


MISTAKES: list[tuple[list[str], int, str]] = [
    (["run", "no-such-model", "hi"], 1, "no-such-model is neither a folder nor a model"),
    (["run", "{tmp}", "hi"], 1, "genai_config.json"),
    (["run", "{model}", "hi", "--temperature", "nan"], 1, "temperature"),
    (["run", "{model}", "hi", "--overlay", "{{"], 1, "JSON"),
    (["run", "{model}", "hi", "--greedy", "--top-k", "5"], 1, "top_k"),
    (["run", "{model}", "ok", "far too long " * 100], 1, "Prompt 2"),
    (["run", "{model}", "--file", "{tmp}/absent.txt"], 1, "absent.txt"),
    (["run", "{model}", "--file", "{tmp}/empty.txt"], 1, "holds no prompt"),
    (["run", "{model}", "--file", "{tmp}/bad.jsonl"], 1, "prompt 1 must be a JSON string, not int"),
    (["run", "{model}", "hi", "--regex", "(a"], 1, "character 1"),
    (["run", "{model}", "hi", "--json-schema", '{{"typ": 1}}'], 1, "'typ' at #"),
    (["run", "{model}", "hi", "--json-schema", "{tmp}/absent.json"], 1, "absent.json"),
    (["run", "{model}", "hi", "--grammar", "{tmp}/absent.lark"], 1, "absent.lark"),
    (["run", "{model}", "hi", "--grammar", "{tmp}/latin.lark"], 1, "not UTF-8"),
    (["run", "{model}", "hi", "--stop", ""], 1, "stop string"),
    (["run", "{model}", "hi", *["--stop", "x"] * 17], 1, "16"),
    (["run", "{model}", "hi", "--regex", "a", "--json-object"], 2, "--json-object and --regex"),
    (["run", "{model}", "hi", "--logprobs", "21"], 2, "--logprobs"),
    (["run", "{model}", "hi", "--min-tokens", "9", "-n", "3"], 1, "min_generated_tokens"),
    (["pull", "unheard-of"], 1, "unheard-of"),
    (["convert", "{tmp}/absent", "{tmp}/out"], 1, "absent"),
    (["info", "{tmp}/absent"], 1, "absent"),
    (["run"], 2, "MODEL"),
    (["run", "{model}", "hi", "-n", "0"], 2, "--max-tokens"),
    (["run", "{model}", "hi", "--seed", "x"], 2, "--seed"),
    (["convert", "a", "b", "--precision", "int3"], 2, "int3"),
    (["convert", "a", "b", "--cache", "int8"], 2, "'auto', 'fp32', 'bf16'"),
    (["fly"], 2, "fly"),
    (["run", "{model}", "hi", "--nonsense"], 2, "--nonsense"),
]


@pytest.mark.parametrize(
    ("arguments", "code", "sentence"),
    MISTAKES,
    ids=lambda value: " ".join(value)[:40] if isinstance(value, list) else None,
)
def test_a_mistake_is_one_clear_line_and_an_exit_code(
    invoke: Invoke, tiny_folder: Path, tmp_path: Path, arguments: list[str], code: int, sentence: str
) -> None:
    (tmp_path / "empty.txt").write_text("\n", encoding="utf-8")
    (tmp_path / "bad.jsonl").write_text("5\n", encoding="utf-8")
    (tmp_path / "latin.lark").write_bytes(b'start: "\xe9"')
    done = invoke(*(argument.format(model=tiny_folder, tmp=tmp_path) for argument in arguments))
    assert done.exit_code == code, done.output
    assert sentence in done.stderr
    assert "Traceback" not in done.output
    if code == 1:
        (line,) = done.stderr.splitlines()
        assert line.startswith("oga: error: ")
        assert done.stdout == ""


def test_a_prompt_is_asked_for_on_a_terminal(
    invoke: Invoke, tiny_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from oga.cli import run as command

    monkeypatch.setattr(command.sys, "stdin", open_terminal())
    with pytest.raises(Exception, match="give a prompt"):
        command.read_prompts([], None)


def open_terminal() -> Any:
    """A standard input that says it is a terminal."""

    class Terminal:
        def isatty(self) -> bool:
            return True

    return Terminal()


def test_ctrl_c_closes_everything(invoke: Invoke, tiny_folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    steps = 0
    engines: list[oga.Engine] = []
    advance = Stream.advance

    def interrupted(self: Stream[Any]) -> None:
        nonlocal steps
        steps += 1
        engines.append(self._engine)
        if steps == 3:
            raise KeyboardInterrupt
        advance(self)

    monkeypatch.setattr(Stream, "advance", interrupted)
    done = invoke("run", tiny_folder, "one", "two")
    assert done.exit_code == 130
    assert done.stderr == "oga: interrupted\n"
    assert engines[0].closed


def test_ctrl_c_while_waiting_for_a_file_ends_with_130(tiny_folder: Path, tmp_path: Path) -> None:
    fifo = tmp_path / "prompts"
    os.mkfifo(fifo)
    process = subprocess.Popen(
        [sys.executable, "-m", "oga", "run", tiny_folder, "--file", fifo],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "OGA_LIBRARY": str(library_path()), "PYTHONPATH": ":".join(sys.path)},
    )
    with fifo.open("w"):  # opens when the command does
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=60)
    assert (process.returncode, out, err) == (130, "", "oga: interrupted\n")


def test_a_reader_that_goes_away_is_no_traceback(tiny_folder: Path) -> None:
    command = f'"{sys.executable}" -m oga run "{tiny_folder}" a b c -n 30 | head -c 1 > /dev/null'
    done = subprocess.run(
        ["bash", "-c", command],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
        env={**os.environ, "OGA_LIBRARY": str(library_path()), "PYTHONPATH": ":".join(sys.path)},
    )
    assert "Traceback" not in done.stderr


def test_the_command_runs_as_a_module_in_a_process_of_its_own(engine: oga.Engine, tiny_folder: Path) -> None:
    done = oga_command("run", tiny_folder, "the end", "-n", 5, "-q")
    assert (done.returncode, done.stdout, done.stderr) == (0, answer(engine, "the end", 5) + "\n", "")


def test_a_folder_of_bytes_that_are_no_text_is_printed(tiny_folder: Path, tmp_path: Path) -> None:
    folder = tmp_path / os.fsdecode(b"m\xff")
    folder.symlink_to(tiny_folder)
    done = oga_command("info", folder, env={"PYTHONIOENCODING": "ascii:strict"})
    assert done.returncode == 0
    assert "m\\udcff" in done.stdout
    assert json.loads(oga_command("info", folder, "--json").stdout)["model"] == str(folder)


def test_standard_input_that_is_no_text_is_refused(tiny_folder: Path, tmp_path: Path) -> None:
    (tmp_path / "input").write_bytes(b"\xff\xfe")
    with (tmp_path / "input").open() as file:
        for strictness in ("strict", "surrogateescape"):
            file.seek(0)
            done = oga_command("run", tiny_folder, stdin=file, env={"PYTHONIOENCODING": f"utf-8:{strictness}"})
            assert done.returncode == 1
            assert re.fullmatch(r"oga: error: .*(not text|not valid Unicode).*\n", done.stderr)


def test_answers_grow_in_panels_on_a_terminal(tiny_folder: Path) -> None:
    main, terminal = pty.openpty()
    termios.tcsetwinsize(terminal, (24, 80))
    environment = {**os.environ, "OGA_LIBRARY": str(library_path()), "PYTHONPATH": ":".join(sys.path), "TERM": "xterm"}
    command = [sys.executable, "-m", "oga", "run", tiny_folder, "one", "two", "-n", "5"]
    process = subprocess.Popen(command, stdin=terminal, stdout=terminal, stderr=subprocess.DEVNULL, env=environment)
    os.close(terminal)
    shown = b""
    with contextlib.suppress(OSError):  # the terminal ends with the process
        while piece := os.read(main, 65536):
            shown += piece
    os.close(main)
    assert process.wait(timeout=60) == 0
    text = shown.decode()
    assert re.search(r"╭─.* one ", text)
    assert re.search(r"╭─.* two ", text)
    assert re.fullmatch(TOTALS, text.splitlines()[-1])


def test_version_and_help(invoke: Invoke) -> None:
    assert invoke("--version").stdout == f"oga {oga.__version__}\n"
    shown = invoke("--help").stdout
    for word in ("run", "pull", "convert", "info", "Exit codes", "130"):
        assert word in shown
    assert invoke().exit_code == 2


def test_panels_grow_together_and_stay_whole_at_the_end(engine: oga.Engine) -> None:
    from rich.console import Console

    from oga.cli.display import PanelDisplay, Totals

    console = Console(force_terminal=True, width=60, height=20, record=True, file=io.StringIO())
    streams = [engine.stream([number + 5], max_new_tokens=2, min_new_tokens=2) for number in range(9)]
    display = PanelDisplay([f"prompt {number}" for number in range(9)], console=console)
    with display:
        for index, stream in enumerate(streams):
            display.piece(index, f"start {index} \x1b[31m " + "word " * 40 + f"end {index}")
            growing = console.render_lines(display._growing())
            assert len(growing) < 20
            list(stream)
            display.finished(index, stream)
    display.totals(Totals(tokens=18, seconds=2.0, steps=6, rows=18))
    shown = console.export_text()
    for index in range(9):
        assert f"prompt {index}" in shown
        assert f"start {index} ␛[31m" in shown
        assert f"end {index}" in shown
    assert "2 tokens, max_generated_tokens" in shown
    assert shown.rstrip().endswith("18 tokens in 2.00 s, 9.0 tokens/s, 6 steps, 3.00 rows per step on average")
