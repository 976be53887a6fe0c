"""``oga run``: several prompts answered together."""

from __future__ import annotations

import dataclasses
import json
import sys
import time
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from oga.cli.display import Display, JsonDisplay, PanelDisplay, PlainDisplay, Totals
from oga.cli.logprobs import TokenTable
from oga.cli.models import open_engine
from oga.errors import InvalidArgumentError, OgaError

if TYPE_CHECKING:
    from oga.engine import Engine
    from oga.stream import Generation, Stream

STDIN = "-"


@dataclasses.dataclass(frozen=True)
class Style:
    """How prompts are put and answers are shown."""

    system: str | None = None
    raw: bool = False
    json: bool = False
    quiet: bool = False


def read_prompts(given: Sequence[str], file: Path | None) -> list[str]:
    """The prompts of the command line, of a file, and of standard input."""
    prompts = [_standard_input() if prompt == STDIN else prompt for prompt in given]
    if file is not None:
        prompts += _prompts_of_file(file)
    if not given and file is None:
        if sys.stdin.isatty():
            raise typer.BadParameter('give a prompt, for example: oga run MODEL "Hello!"', param_hint="PROMPT")
        prompts.append(_standard_input())
    if not prompts:
        raise InvalidArgumentError(f"{file} holds no prompt; it needs one per line.")
    return prompts


def _standard_input() -> str:
    try:
        return sys.stdin.read()
    except UnicodeDecodeError as error:
        raise InvalidArgumentError(f"Standard input is not text in {error.encoding} ({error.reason}).") from None


def _prompts_of_file(file: Path) -> list[str]:
    try:
        lines = [line for line in file.read_text(encoding="utf-8").splitlines() if line.strip()]
    except UnicodeDecodeError as error:
        raise InvalidArgumentError(f"{file} is not UTF-8 text ({error}).") from None
    if file.suffix != ".jsonl":
        return lines
    prompts: list[str] = []
    for number, line in enumerate(lines, start=1):
        try:
            prompt = json.loads(line)
        except json.JSONDecodeError as error:
            raise InvalidArgumentError(f"{file}, prompt {number} is not JSON: {error}.") from None
        if not isinstance(prompt, str):
            raise InvalidArgumentError(f"{file}, prompt {number} must be a JSON string, not {type(prompt).__name__}.")
        prompts.append(prompt)
    return prompts


def run(
    model: str, prompts: list[str], style: Style, generation: Generation, overlay: str | None, trace_file: Path | None
) -> None:
    """Answers ``prompts`` together and ends with one line of totals. Fails when any of them failed."""
    with open_engine(model, overlay) as engine, ExitStack() as closing:
        engine.set_trace_file(trace_file)
        streams = [
            closing.enter_context(_open_stream(engine, number, prompt, style, generation))
            for number, prompt in enumerate(prompts, start=1)
        ]
        start = time.perf_counter()
        table = TokenTable(engine.model.tokenizer) if generation.get("logprobs") is not None else None
        with _display(prompts, style, table) as display:
            _generate(streams, display)
        display.totals(Totals.of(engine.get_statistics(), time.perf_counter() - start))
    failed = [(number, stream.error) for number, stream in enumerate(streams, start=1) if stream.error is not None]
    if failed:
        number, error = failed[0]
        raise type(error)(f"{len(failed)} of {len(prompts)} prompts failed; prompt {number}: {error}")


def _open_stream(engine: Engine, number: int, prompt: str, style: Style, generation: Generation) -> Stream[str]:
    try:
        if style.raw:
            return engine.stream(prompt, **generation)
        messages = [{"role": "system", "content": style.system}] if style.system is not None else []
        return engine.stream([*messages, {"role": "user", "content": prompt}], **generation)
    except OgaError as error:
        raise type(error)(f"Prompt {number}: {error}") from error


def _display(prompts: list[str], style: Style, table: TokenTable | None) -> Display:
    if style.json:
        return JsonDisplay(prompts, table)
    if sys.stdout.isatty() and not style.quiet:
        return PanelDisplay(prompts, table)
    return PlainDisplay(prompts, table, quiet=style.quiet)


def _generate(streams: Sequence[Stream[str]], display: Display) -> None:
    """Runs all streams to their ends, a step for all of them at a time."""
    open_streams = dict(enumerate(streams))
    while open_streams:
        next(iter(open_streams.values())).advance()
        for index, stream in list(open_streams.items()):
            for piece in stream.ready():
                display.piece(index, piece)
            if stream.done:
                del open_streams[index]
                display.finished(index, stream)
        display.refresh()
