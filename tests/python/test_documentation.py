"""The programs in the README and the guides run as they are printed."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest

import oga

ROOT = Path(__file__).resolve().parents[2]

C_FRAME = """\
#include <oga/oga.h>
#include <stdio.h>
#include <stdlib.h>

static int tokens = 0;

static void check(OgaResult* result) {
  if (result == NULL) return;
  fprintf(stderr, "%%s\\n", OgaResultGetError(result));
  exit(1);
}

static void handle(const OgaEngineEvent* event) {
  OgaEngineEventFlags flags;
  check(OgaEngineEventGetFlags(event, &flags));
  if (flags & OgaEngineEventFlag_Token) ++tokens;
}

int main(void) {
  const int32_t prompt[] = {5, 6, 7};
  const uint64_t prompt_length = 3;
  uint64_t turn;
%s
  printf("%%d\\n", tokens);
  OgaDestroyRequest(request);
  OgaDestroyEngineEventBuffer(events);
  OgaDestroyEngine(engine);
  OgaDestroyModel(model);
  return 0;
}
"""


def blocks(page: str, language: str) -> list[str]:
    """The code blocks of a page in one language."""
    text = (ROOT / page).read_text(encoding="utf-8")
    return re.findall(rf"^```{language}\n(.*?)^```$", text, re.DOTALL | re.MULTILINE)


@pytest.fixture
def beside_folder(tiny_folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A working folder in which "folder" is the tiny model, as the examples call theirs."""
    shutil.copytree(tiny_folder, tmp_path / "folder")
    monkeypatch.chdir(tmp_path)
    return tmp_path


GUIDES = ("asyncio", "configure", "text", "constrained-output")
PAGES = ("README.md", "docs/getting-started.md", *(f"docs/guide/{name}.md" for name in GUIDES))


@pytest.mark.parametrize("page", PAGES)
def test_a_python_example_runs_and_prints(page: str, beside_folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    examples = blocks(page, "python")
    assert examples
    for example in examples:
        exec(compile(example, page, "exec"), {})
        assert capsys.readouterr().out.strip()


def test_the_step_loop_of_the_guide_generates_what_streams_generate(model: oga.Model) -> None:
    names: dict[str, object] = {}
    loop, _ = blocks("docs/guide/step-loop.md", "python")
    exec(compile(loop, "step-loop.md", "exec"), names)
    prompts = [[5, 6, 7], [9, 8], [11, 12, 13, 14]]
    with oga.Engine(model) as engine:
        streams = [engine.stream(prompt, max_new_tokens=8) for prompt in prompts]
        expected = [list(stream) for stream in streams]
    assert names["generate"](model, prompts, 8) == expected  # type: ignore[operator]


def test_the_conversation_of_the_guide_can_be_rewound(engine: oga.Engine) -> None:
    _, conversation = blocks("docs/guide/step-loop.md", "python")
    options = oga.RequestOptions(max_session_tokens=12)
    with engine.create_request(options=options) as request, engine.create_event_buffer(4) as buffer:
        turn_options = oga.TurnOptions(request, max_generated_tokens=2)
        names = {"oga": oga, "engine": engine, "request": request, "buffer": buffer, "turn_options": turn_options}
        names |= {"question": [5, 6, 7], "follow_up": [8]}
        limited = conversation.replace("request.begin_turn(tokens)", "request.begin_turn(tokens, turn_options)")
        exec(compile(limited, "step-loop.md", "exec"), names)
        assert (names["first"], names["second"]) == (1, 2)
        assert names["ask"](engine, request, buffer, [8]) == (3, names["more"])  # type: ignore[operator]


def run_c(lines: str, folder: Path) -> subprocess.CompletedProcess[str]:
    """Builds a program around the lines against the installed package, and runs it in a folder."""
    (folder / "host.c").write_text(C_FRAME % lines, encoding="utf-8")
    pkgconfig = Path(oga.get_include()).parent / "lib" / "pkgconfig"
    env = os.environ | {"PKG_CONFIG_PATH": str(pkgconfig)}
    compiler = "cc -std=c99 -Wall -Wextra -Wstrict-prototypes -Werror host.c $(pkg-config --cflags --libs oga) -o host"
    subprocess.run(compiler, shell=True, cwd=folder, env=env, check=True)
    for variable, version in (
        ("OGA_ORT_LIBRARY", oga.get_ort_version()),
        ("OGA_LLGUIDANCE_LIBRARY", oga.get_llguidance_version()),
    ):
        path = re.search(r"\((.*)\)", version)
        assert path
        env[variable] = path[1]
    return subprocess.run([folder / "host"], cwd=folder, env=env, capture_output=True, text=True, check=False)


def test_the_c_lines_of_the_readme_build_and_run(beside_folder: Path) -> None:
    (lines,) = blocks("README.md", "c")
    assert len(lines.splitlines()) <= 16
    done = run_c(lines, beside_folder)
    assert done.returncode == 0, done.stderr
    assert int(done.stdout) > 0


def test_the_c_lines_of_the_guide_give_an_answer_its_form(beside_folder: Path) -> None:
    (lines,) = blocks("README.md", "c")
    (guided,) = blocks("docs/guide/constrained-output.md", "c")
    begin = "check(OgaRequestBeginTurn(request, NULL, prompt, prompt_length, &turn));\n"
    assert begin in lines
    done = run_c(lines.replace(begin, guided), beside_folder)
    if done.returncode == 0:
        assert int(done.stdout) in (2, 3)  # "no" and "yes", which the tiny model writes letter by letter
    else:
        assert "libpython3" in done.stderr  # this machine has no shared one
